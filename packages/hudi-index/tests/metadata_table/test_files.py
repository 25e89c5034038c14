"""The metadata table's list of files, from HFiles whose records contradict themselves."""

import io
import json

import fastavro
import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.hfile.writer import hfile_bytes
from hudi_format.log.scanner import BlockScope
from hudi_format.model import BaseFile, FileSlice
from hudi_format.storage.open import open_storage
from hudi_index.metadata_table.files import read_table_files

NAME = "files-0000-0_0-1-2_1.hfile"
FILE = "f_0-1-2_1.parquet"


def schema(entry):
    """Of a record of the partition `files`; `entry` is what its map holds."""
    return {
        "type": "record",
        "name": "HoodieMetadataRecord",
        "fields": [
            {"name": "key", "type": "string"},
            {"name": "type", "type": "int"},
            {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": entry}]},
        ],
    }


def entry(size="long", state="boolean"):
    fields = [{"name": "size", "type": size}, {"name": "isDeleted", "type": state}]
    return {"type": "record", "name": "HoodieMetadataFileInfo", "fields": fields}


def read(tmp_path, lists, kind=None):
    """What is read of an HFile with these lists, by key: (type, entries by name)."""
    text = schema(kind or entry())
    values = []
    for _, (number, entries) in sorted(lists.items()):
        out = io.BytesIO()
        record = {"key": "", "type": number, "filesystemMetadata": entries}
        fastavro.schemaless_writer(out, fastavro.parse_schema(text), record)
        values.append(out.getvalue())
    keys = pa.array(sorted(lists))
    data = hfile_bytes(keys, pa.array(values, pa.binary()), schema=json.dumps(text), codec="none")
    (tmp_path / NAME).write_bytes(data)
    base = BaseFile("", NAME, "files-0000-0", "1", "0-1-2", len(data))
    return read_table_files(
        open_storage(str(tmp_path)), [FileSlice("", "files-0000-0", "1", base)], BlockScope()
    )


def info(size=7, deleted=False):
    return {"size": size, "isDeleted": deleted}


def listed(partition, **files):
    return {"__all_partitions__": (1, {partition: info(0)}), partition: (2, files)}


def test_files_are_read(tmp_path):
    gone = {"f_0-1-2_0.parquet": info(5, True)}
    found = read(tmp_path, listed("p", **{FILE: info(), **gone}))
    assert {p: dict(f) for p, f in found.files.items()} == {"p": {FILE: 7}}


CASES = {
    "lists the partition '../p'": (listed("../p", **{FILE: info()}), None),
    "lists the partition 'p..0'".replace("..", "/../"): (listed("p/../0"), None),
    r"lists the partition 'p\\x00'": (listed("p\0", **{FILE: info()}), None),
    "a file entry with an invalid name": (listed("p", **{"f\0_0-1-2_1.parquet": info()}), None),
    "an invalid name": (listed("p", **{f"../{FILE}": info()}), None),
    "a file entry without": (listed("p", **{FILE: None}), ["null", entry()]),
    "a file entry without size or state": (listed("p", **{FILE: info(None)}), entry(["null", "long"])),
    "file entry without size or state": (
        listed("p", **{FILE: info(5, None)}),
        entry(state=["null", "boolean"]),
    ),
    "the unlisted partition": ({"p": (2, {FILE: info()})}, None),
}


@pytest.mark.parametrize("what", CASES)
def test_what_no_table_has_is_refused(tmp_path, what):
    lists, kind = CASES[what]
    with pytest.raises(CorruptFileError, match=what) as e:
        read(tmp_path, lists, kind)
    assert e.value.remedy
