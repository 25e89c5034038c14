"""CDC files written: schema, what they hold of a merge in each logging mode, blocks, and what a failure leaves."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import StorageError
from hudi_format.file_slice.cdc_writer import CdcSettings, CdcWriter, cdc_schema
from hudi_format.file_slice.writer import FileSpec, Incoming, RowCounter, concat_file, merge_file, stamp
from hudi_format.log.block import BlockType
from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.reader import LogFileReader
from hudi_format.merge.record_merger import DATA, DATA_DELETED
from hudi_format.model import CDC_MODES, BaseFile
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.local import LocalStorage

# A field that must not be null, inside an image that may be.
SCHEMA = pa.schema(
    [
        pa.field("v", pa.int64(), nullable=False),
        pa.field("s", pa.struct([("x", pa.string()), ("y", pa.list_(pa.int32()))])),
    ]
)
TABLE = to_avro(SCHEMA, "t")
IMAGE = (
    '{"type":"record","name":"t_record","fields":[{"name":"id","type":["null","string"],"default":null},'
    '{"name":"n","type":["null","int"],"default":null}]}'
)


def test_schemas_are_those_of_apache_hudi():
    table = to_avro(pa.schema([("id", pa.string()), ("n", pa.int32())]), "t")
    op, key, time = (
        f'{{"name":"{n}","type":["null","string"],"doc":"","default":null}}'
        for n in ("op", "record_key", "ts_ms")
    )
    before = f'{{"name":"before","type":["null",{IMAGE}],"doc":"","default":null}}'
    after = '{"name":"after","type":["null","t_record"],"doc":"","default":null}'
    head = '{"type":"record","name":"CDC","namespace":"hoodie.t","fields":['
    assert cdc_schema("DATA_BEFORE", table) == f"{head}{op},{key},{before}]}}"
    assert cdc_schema("DATA_BEFORE_AFTER", table) == f"{head}{op},{time},{before},{after}]}}"
    assert cdc_schema("OP_KEY_ONLY", table) == (
        '{"type":"record","name":"Record","fields":[{"name":"op","type":["string","null"]},'
        '{"name":"record_key","type":["string","null"]}]}'
    )


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


def spec(instant):
    return FileSpec("p", "f-0", "0-1-1", instant, SCHEMA, ParquetConfig(), f"{instant}_0_")


def image(n):
    return {"v": n, "s": None if n % 3 == 0 else {"x": str(n), "y": [n, None]}}


def records(numbered):
    rows = [{"_hoodie_record_key": k, **image(n)} for k, n in numbered.items()]
    return pa.Table.from_pylist(rows, schema=pa.schema([("_hoodie_record_key", pa.string()), *SCHEMA]))


def stored(storage, numbered):
    made = spec("1")
    with BaseFileWriter(storage, made.path, with_meta(SCHEMA), config=ParquetConfig()) as writer:
        writer.write(stamp(records(numbered), made, RowCounter()))
        writer.close()
    return BaseFile("p", made.name, "f-0", "1", "0-1-1")


def changes_to(storage, mode, block_bytes=1 << 20):
    settings = CdcSettings(mode, TABLE, block_bytes)
    return CdcWriter(
        storage, settings, SCHEMA, partition="p", file_id="f-0", instant="2", write_token="0-1-1"
    )


def logged(storage, path):
    """Records of a CDC file, and how many blocks it has."""
    with LogFileReader.open(storage, path) as reader:
        blocks = reader.blocks
        assert {b.type for b in blocks} == {BlockType.CDC_DATA}
        assert {b.instant for b in blocks} == {"2"}
        batches = [r for b in blocks for r in BlockDecoder().batches(b, reader.content(b))]
        return [row for batch in batches for row in batch.to_pylist()], len(blocks)


def expected(mode, op, key, before, after):
    row = {"op": op}
    if mode == "DATA_BEFORE_AFTER":
        row["ts_ms"] = "2"
    else:
        row["record_key"] = key
    if mode != "OP_KEY_ONLY":
        row["before"] = None if before is None else image(before)
    if mode == "DATA_BEFORE_AFTER":
        row["after"] = None if after is None else image(after)
    return row


KEYS = st.sampled_from("abcdefgh")


@given(
    mode=st.sampled_from(CDC_MODES),
    old=st.dictionaries(KEYS, st.integers(0, 99), min_size=1),
    new=st.dictionaries(KEYS, st.tuples(st.integers(100, 199), st.booleans()), min_size=1),
    block_bytes=st.sampled_from([1, 60, 1 << 20]),
    limit=st.sampled_from([None, MemoryLimit(1)]),
)
def test_the_changes_of_a_merge_are_logged_as_what_they_were(
    tmp_path_factory, mode, old, new, block_bytes, limit
):
    storage = LocalStorage(str(tmp_path_factory.mktemp("t")))
    base = stored(storage, old)
    kinds = np.array([DATA_DELETED if gone else DATA for _, gone in new.values()], np.uint8)
    incoming = Incoming(records({k: n for k, (n, _) in new.items()}), kinds=kinds)
    stat = merge_file(
        storage,
        spec("2"),
        base,
        incoming,
        changes=changes_to(storage, mode, block_bytes=block_bytes),
        limit=limit,
    )
    wanted = [
        expected(mode, "d", k, n, None) if new[k][1] else expected(mode, "u", k, n, new[k][0])
        for k, n in old.items()
        if k in new
    ]
    wanted += [expected(mode, "i", k, None, n) for k, (n, gone) in new.items() if k not in old and not gone]
    ((path, size),) = stat.cdc_files.items()
    assert path == "p/.f-0_2.log.1_0-1-1.cdc"
    assert size == storage.info(path).size
    found, blocks = logged(storage, path)
    assert found == wanted
    assert blocks >= 1
    assert stat.paths == (spec("2").path, path)


@pytest.mark.parametrize("mode", CDC_MODES)
def test_appended_rows_are_inserts_whatever_their_keys(storage, mode):
    base = stored(storage, {"a": 1})
    parts = [records({"a": 5}), records({"b": 6})]
    stat = concat_file(storage, spec("2"), base, parts, changes=changes_to(storage, mode))
    (path,) = stat.cdc_files
    wanted = [expected(mode, "i", "a", None, 5), expected(mode, "i", "b", None, 6)]
    assert logged(storage, path) == (wanted, 1)


def test_a_merge_that_changes_nothing_leaves_an_empty_block(storage):
    base = stored(storage, {"a": 1})
    kinds = np.array([DATA_DELETED], np.uint8)
    incoming = Incoming(records({"gone": 5}), kinds=kinds)
    stat = merge_file(storage, spec("2"), base, incoming, changes=changes_to(storage, "DATA_BEFORE"))
    (path,) = stat.cdc_files
    assert logged(storage, path) == ([], 1)


def test_blocks_end_where_they_are_large_enough(storage):
    base = stored(storage, {"a": 1})
    parts = [records({f"k{n}": n}) for n in range(4)]
    changes = changes_to(storage, "DATA_BEFORE_AFTER", block_bytes=1)
    stat = concat_file(storage, spec("2"), base, parts, changes=changes)
    (path,) = stat.cdc_files
    wanted = [expected("DATA_BEFORE_AFTER", "i", f"k{n}", None, n) for n in range(4)]
    assert logged(storage, path) == (wanted, 4)


def appended(storage, base, **more):
    return concat_file(storage, spec("2"), base, [records({"b": 2})], **more)


def merged(storage, base, **more):
    return merge_file(storage, spec("2"), base, Incoming(records({"a": 2})), **more)


@pytest.mark.parametrize("write", [appended, merged])
def test_a_write_that_fails_leaves_no_file_of_changes(storage, write):
    base = stored(storage, {"a": 1})

    def refuse():
        raise RuntimeError("the marker is gone")

    changes = changes_to(storage, "DATA_BEFORE", block_bytes=1)
    with pytest.raises(RuntimeError, match="marker"):
        write(storage, base, guard=refuse, changes=changes)
    assert storage.info(changes.path) is None


class Full(LocalStorage):
    """A disk that takes base files only."""

    def open_output(self, path):
        if path.endswith(".cdc"):
            raise OSError(28, "No space left on device")
        return super().open_output(path)


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_a_refusal_of_the_storage_names_the_file(tmp_path, block_bytes):
    storage = Full(str(tmp_path))
    base = stored(storage, {"a": 1})
    changes = changes_to(storage, "DATA_BEFORE", block_bytes=block_bytes)
    with pytest.raises(StorageError, match="No space left") as e:
        merged(storage, base, changes=changes)
    assert e.value.file == changes.path
    assert storage.info(spec("2").path) is None


def test_the_schema_of_a_file_is_json_of_its_header(storage):
    base = stored(storage, {"a": 1})
    stat = merged(storage, base, changes=changes_to(storage, "DATA_BEFORE"))
    (path,) = stat.cdc_files
    with LogFileReader.open(storage, path) as reader:
        (block,) = reader.blocks
        assert json.loads(block.schema) == json.loads(cdc_schema("DATA_BEFORE", TABLE))
