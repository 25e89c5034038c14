"""Records of the metadata table as Apache Hudi 0.15 writes them."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import RecordKeyError, SchemaError
from hudi_format.hfile.reader import HFileReader
from hudi_index.bloom.filter import parse_filter
from hudi_index.metadata_table.encoding import (
    base_file_of,
    file_records,
    hfile_of,
    record_schema,
    stored_schema,
)
from hudi_index.metadata_table.index_records import location_records

GOLDEN = Path(__file__).parents[4] / "tests/golden/v6/mor_rollback.zip"
META = "mor_rollback/.hoodie/metadata"


def _entries(data):
    return HFileReader.from_buffer(data).scan()


def test_the_schemas_are_those_of_apache_hudi_to_the_letter():
    with zipfile.ZipFile(GOLDEN) as archive:
        commit = json.loads(archive.read(f"{META}/.hoodie/20261121054715975.deltacommit"))
        (log,) = [n for n in archive.namelist() if "/files/.files-0000-0" in n and ".log.12_" in n]
        block = archive.read(log)
    assert record_schema() == commit["extraMetadata"]["schema"]
    start = block.index(b'{"type"')
    length = int.from_bytes(block[start - 4 : start])
    assert stored_schema().encode() == block[start : start + length]


def test_a_change_lists_partitions_and_files():
    records = file_records(
        {"b": {"new": 7}, "": {"top": 1}}, {"b": ["old"], "c": ["gone"]}, partitions=["d"], gone=["e"]
    ).to_pylist()
    assert [r["key"] for r in records] == [".", "__all_partitions__", "b", "c"]
    assert [r["type"] for r in records] == [2, 1, 2, 2]
    live, dead = {"size": 0, "isDeleted": False}, {"size": 0, "isDeleted": True}
    lists = {r["key"]: dict(r["filesystemMetadata"]) for r in records}
    assert lists["__all_partitions__"] == {".": live, "b": live, "d": live, "e": dead}
    assert lists["b"] == {"new": {"size": 7, "isDeleted": False}, "old": dead}
    assert lists["c"] == {"gone": dead}


def test_a_change_of_nothing_still_has_the_list_of_partitions():
    (record,) = file_records({}).to_pylist()
    assert (record["key"], record["type"], record["filesystemMetadata"]) == ("__all_partitions__", 1, [])


def test_keys_stand_in_the_entries_and_values_begin_with_five_nulls_and_an_empty_key():
    entries = _entries(hfile_of(file_records({"z": {"f": 3}, "é": {}, "a": {"g": 4}})))
    keys = [bytes(k).decode() for k in entries.column("key").to_pylist()]
    assert keys == sorted(keys, key=str.encode)
    assert keys == ["__all_partitions__", "a", "z"]
    values = entries.column("value").to_pylist()
    # Source: spec "Metadata table", section 3: five nulls, key "", type 2 as zigzag, branch 1, a map of one entry.
    assert values[1][:8] == bytes([0, 0, 0, 0, 0, 0, 4, 2])


def test_chunked_and_empty_records_are_taken():
    table = pa.concat_tables(
        [
            pa.Table.from_batches([file_records({"b": {"f": 1}})]).slice(1),
            pa.Table.from_batches([file_records({})]),
        ]
    )
    assert _entries(hfile_of(table)).column("key").to_pylist() == [b"__all_partitions__", b"b"]
    assert _entries(hfile_of(table.slice(0, 0))).num_rows == 0


def test_a_key_that_is_there_twice_and_a_strange_column_are_refused():
    one = pa.Table.from_batches([file_records({})])
    with pytest.raises(RecordKeyError, match="duplicated"):
        hfile_of(pa.concat_tables([one, one]))
    with pytest.raises(SchemaError):
        hfile_of(one.append_column("stranger", pa.array([1])))


def _located(keys):
    return location_records(pa.array(keys), np.zeros(len(keys), np.int64), [("p", "f-0")], 0)


def test_a_base_file_of_the_record_index_has_a_filter_and_the_range_of_its_keys():
    keys = [f"k{n}" for n in range(2000)]
    reader = HFileReader.from_buffer(base_file_of(_located(keys)))
    assert reader.file_info[b"minRecordKey"] == b"k0"
    assert reader.file_info[b"maxRecordKey"] == b"k999"
    code = reader.file_info[b"bloomFilterTypeCode"].decode()
    found = parse_filter(reader.meta_block("bloomFilter").decode(), code)
    assert found.might_contain(pa.array(keys)).to_pylist() == [True] * 2000
    absent = found.might_contain(pa.array([f"x{n}" for n in range(2000)])).to_pylist()
    assert sum(absent) < 40  # two are to be expected
    assert reader.entry_count == 2000


@pytest.mark.parametrize(
    "records",
    [file_records({"p": {"f": 1}}), _located(["", "a"]), _located([])],
    ids=["files", "empty", "none"],
)
def test_what_has_no_filter_has_none(records):
    reader = HFileReader.from_buffer(base_file_of(records))
    assert reader.meta_blocks == []
    assert reader.entry_count == records.num_rows
