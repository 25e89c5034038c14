"""Log files that are written come back, and are laid out as Apache Hudi's."""

import errno
import io
import json
import os
import struct
from datetime import UTC, date, datetime
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_logs import VERSIONS, golden_logs
from hypothesis import given
from hypothesis import strategies as st
from log_bytes import SCHEMA, block, zigzag

from hudi_format.errors import RecordKeyError, SchemaError, StorageError
from hudi_format.log.block import BlockType, HeaderKey
from hudi_format.log.data_block import read_avro
from hudi_format.log.delete_block import OrderingType, read_deletes
from hudi_format.log.encoder import avro_content, delete_content, frame
from hudi_format.log.reader import LogFileReader
from hudi_format.log.scanner import BlockScope, order_blocks
from hudi_format.log.writer import LogWriter
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage


def datums(*texts):
    """Data and offsets of records of the one string column of SCHEMA."""
    parts = [zigzag(len(t.encode())) + t.encode() for t in texts]
    return b"".join(parts), np.cumsum([0, *map(len, parts)])


def writer(storage, **more):
    options = {"instant": "7", "schema": SCHEMA, "write_token": "1-2-3", **more}
    return LogWriter(storage, "p", "f-0", "5", **options)


def ordering_of(deletes):
    """The ordering values of deletes of one type, null for defaults."""
    values, kind = [None] * len(deletes), pa.null()
    for part in deletes.ordering:
        for row, value in zip(part.rows.tolist(), part.values.to_pylist(), strict=True):
            if not deletes.is_default[row]:
                assert kind in (pa.null(), part.values.type)
                values[row], kind = value, part.values.type
    return pa.array(values, kind)


def read_all(storage, path):
    with LogFileReader.open(storage, path) as log:
        return [(b, bytes(log.content(b))) for b in log.blocks]


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path))


def framed(b, content):
    before, after = frame(b.type, b.header, len(content))
    return before + content + after


@pytest.mark.req("LF-01", "LF-02", "LF-05", "LF-09")
@pytest.mark.parametrize("version", VERSIONS)
def test_every_golden_block_is_framed_again_byte_by_byte(version):
    for name, data in golden_logs(version).items():
        with LogFileReader(data, file=name) as log:
            made = b"".join(framed(b, bytes(log.content(b))) for b in log.blocks)
        assert made == data


@pytest.mark.req("LF-15", "LF-11")
@pytest.mark.parametrize("version", VERSIONS)
def test_golden_contents_are_made_again_byte_by_byte(version):
    deletes = records = 0
    for name, data in golden_logs(version).items():
        with LogFileReader(data, file=name) as log:
            for b in log.blocks:
                content = log.content(b)
                if b.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
                    found = read_avro(b, content)
                    pieces = [
                        content.slice(o, n).to_pybytes()
                        for o, n in zip(found.offsets.tolist(), found.lengths.tolist(), strict=True)
                    ]
                    offsets = np.cumsum([0, *map(len, pieces)])
                    assert bytes(avro_content(b"".join(pieces), offsets)) == bytes(content)
                    records += len(found)
                if b.type is BlockType.DELETE and len(content) > 9:
                    found = read_deletes(b, content)
                    # Several ordering fields are of version 9, which is not written.
                    if len(found.ordering) == 1 and found.ordering[0].type is not OrderingType.ARRAY:
                        assert delete_content(found.keys, found.partitions, ordering_of(found)) == bytes(
                            content
                        )
                        deletes += len(found)
    assert (deletes > 10, records > 100) == (True, True)


@pytest.mark.req("LF-15", "LF-10", "LF-12")
def test_what_is_written_is_read(storage):
    with writer(storage) as log:
        log.append_avro(*datums("a", "ü" * 300, ""))
        log.append_deletes(pa.array(["x", "y"]), pa.array(["p", None]), pa.array([5, None], pa.int64()))
        log.append_rollback("6")
        (written,) = log.close()
    assert written.file.name == ".f-0_5.log.1_1-2-3"
    assert written.blocks == 3
    assert written.size == written.file.size == storage.info(written.file.path).size
    (data, records), (deletes, said), (command, nothing) = read_all(storage, written.file.path)
    assert (data.type, data.instant, data.schema) == (BlockType.AVRO_DATA, "7", SCHEMA)
    found = read_avro(data, pa.py_buffer(records))
    schema = fastavro.parse_schema(json.loads(SCHEMA))
    texts = [
        fastavro.schemaless_reader(io.BytesIO(records[o : o + n]), schema)["a"]
        for o, n in zip(found.offsets.tolist(), found.lengths.tolist(), strict=True)
    ]
    assert texts == ["a", "ü" * 300, ""]
    found = read_deletes(deletes, pa.py_buffer(said))
    assert (found.keys.to_pylist(), found.partitions.to_pylist()) == (["x", "y"], ["p", None])
    assert ordering_of(found).to_pylist() == [5, None]
    assert deletes.schema == SCHEMA
    assert (command.is_rollback, command.target_instant, command.header) == (
        True,
        "6",
        {3: "0", 1: "6", 0: "7"},
    )
    assert nothing == b""
    assert order_blocks([data, deletes, command], BlockScope()).rolled_back == 0


@pytest.mark.req("LF-17")
def test_parquet_and_other_contents_go_in_whole(storage):
    rows = pa.table({"a": ["1", "2"]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    with writer(storage) as log:
        log.append_parquet(sink.getvalue(), header={HeaderKey.COMPACTED_BLOCK_TIMES: "3,2"})
        log.append_hfile(b"any")
        (written,) = log.close()
    (parquet, content), (hfile, other) = read_all(storage, written.file.path)
    assert (parquet.type, parquet.compacted_instants) == (BlockType.PARQUET_DATA, ("3", "2"))
    assert pq.read_table(pa.BufferReader(content)) == rows
    assert (hfile.type, other) == (BlockType.HFILE_DATA, b"any")


@pytest.mark.req("LF-15")
def test_files_of_changes_hold_cdc_blocks(storage):
    with writer(storage, cdc=True) as log:
        log.append_avro(*datums("a"))
        (written,) = log.close()
    assert written.file.name == ".f-0_5.log.1_1-2-3.cdc"
    assert [b.type for b, _ in read_all(storage, written.file.path)] == [BlockType.CDC_DATA]


@pytest.mark.req("FS-04")
def test_a_file_past_its_size_is_followed_by_the_next_version(storage):
    with writer(storage, max_file_size=500) as log:
        for text in "abcdef":
            log.append_avro(*datums(text * 200))
        files = log.close()
    assert [f.file.version for f in files] == [1, 2, 3]
    assert [f.blocks for f in files] == [2, 2, 2]
    assert all(f.size == storage.info(f.file.path).size for f in files)


def test_large_blocks_are_split(storage):
    with writer(storage, max_block_size=100) as log:
        log.append_avro(*datums(*["x" * 30] * 7, "y" * 500, "z"))
        (written,) = log.close()
    counts = [struct.unpack(">i", c[4:8])[0] for _, c in read_all(storage, written.file.path)]
    assert counts == [2, 2, 2, 1, 1, 1]


class Growing(LocalStorage):
    """A local folder whose files may be appended to, as HDFS."""

    def open_append(self, path):
        return open(self.full(path), "ab")


@pytest.mark.req("FS-04", "FS-12")
@pytest.mark.parametrize("kind", [LocalStorage, Growing])
def test_a_version_that_is_taken_is_passed_over_also_where_files_could_grow(tmp_path, kind):
    storage, seen = kind(str(tmp_path)), {}
    for version in (1, 2, 3):
        with writer(storage, instant=str(version)) as log:
            log.append_rollback("1")
            log.append_rollback("2")
            (written,) = log.close()
        assert (written.file.version, written.blocks) == (version, 2)
        assert written.size == storage.info(written.file.path).size
        assert {path: storage.read(path) for path in seen} == seen
        seen[written.file.path] = storage.read(written.file.path)


@pytest.mark.req("LF-14")
def test_a_torn_block_is_told_from_the_next_one_in_a_file_that_has_grown(storage):
    """As files of Apache Hudi on HDFS have."""
    with writer(storage, instant="7") as log:
        log.append_avro(*datums("a"))
        (first,) = log.close()
    with writer(storage, instant="9") as log:
        log.append_avro(*datums("b"))
        (second,) = log.close()
    whole, after = storage.read(first.file.path), storage.read(second.file.path)
    for torn in range(len(whole)):
        storage.touch(first.file.path, whole + whole[:torn].replace(b"7", b"8") + after)
        good = [b.instant for b, _ in read_all(storage, first.file.path) if b.type is not BlockType.CORRUPT]
        assert good == ["7", "9"]


def test_nothing_written_makes_no_file(storage):
    with writer(storage) as log:
        assert log.close() == log.close() == ()
    assert storage.list("p") == []
    with writer(storage, schema="") as log, pytest.raises(ValueError, match="schema"):
        log.append_avro(*datums("a"))


some_texts = st.text(max_size=9)


@pytest.mark.req("LF-11")
@pytest.mark.parametrize(
    ("kind", "values", "type_"),
    [
        (pa.bool_(), [True, False], OrderingType.BOOLEAN),
        (pa.int32(), [5, -(2**31)], OrderingType.INT),
        (pa.int16(), [5, -5], OrderingType.INT),
        (pa.int64(), [2**63 - 1, -1], OrderingType.LONG),
        (pa.float32(), [1.5, -2.25], OrderingType.FLOAT),
        (pa.float64(), [1.1, float("-inf")], OrderingType.DOUBLE),
        (pa.binary(), [b"\0x", b""], OrderingType.BYTES),
        (pa.string(), ["ü", ""], OrderingType.STRING),
        (pa.date32(), [date(2024, 1, 2), date(1, 1, 1)], OrderingType.DATE),
        (
            pa.decimal128(30, 15),
            [Decimal("-1.5"), Decimal("123456789012345.123456789012345")],
            OrderingType.DECIMAL,
        ),
        (
            pa.timestamp("us", "UTC"),
            [datetime(2024, 1, 2, 3, 4, 5, 6, UTC)] * 2,
            OrderingType.TIMESTAMP_MICROS,
        ),
    ],
)
def test_ordering_values_of_every_type_come_back(kind, values, type_):
    content = delete_content(pa.array(["a", "b", "c"]), None, pa.array([values[0], None, values[1]], kind))
    log = LogFileReader(block(1, {0: "1"}, content))
    deletes = read_deletes(log.blocks[0], log.content(log.blocks[0]))
    assert deletes.partitions.to_pylist() == ["", "", ""]
    (part,) = [
        p for p in deletes.ordering if (p.type is type_ and len(p.rows) > 1) or len(deletes.ordering) == 1
    ]
    kept = [v for r, v in zip(part.rows.tolist(), part.values.to_pylist(), strict=True) if r != 1]
    assert kept == values
    assert deletes.is_default.tolist() == [False, True, False]


@given(st.lists(st.tuples(some_texts, st.one_of(st.none(), some_texts)), max_size=9), st.integers(0, 3))
def test_sliced_columns_of_deletes_are_written_as_they_are(rows, skip):
    keys = pa.array(["skip"] * skip + [k for k, _ in rows], pa.string()).slice(skip)
    parts = pa.array([None] * skip + [p for _, p in rows], pa.string()).slice(skip)
    log = LogFileReader(block(1, {0: "1"}, delete_content(keys, parts)))
    deletes = read_deletes(log.blocks[0], log.content(log.blocks[0]))
    assert list(zip(deletes.keys.to_pylist(), deletes.partitions.to_pylist(), strict=True)) == rows


def test_deletes_that_cannot_be_written_are_refused():
    with pytest.raises(RecordKeyError):
        delete_content(pa.array(["a", None]))
    with pytest.raises(SchemaError):
        delete_content(pa.array(["a"]), None, pa.array([[1]]))
    with pytest.raises(SchemaError):
        delete_content(pa.array(["a"]), None, pa.array([Decimal("1e20")], pa.decimal128(38, 16)))
    with pytest.raises(ValueError, match="2147483647"):
        frame(BlockType.PARQUET_DATA, {0: "1"}, 2**31)


@pytest.mark.parametrize(
    "wrong",
    [
        {"instant": ""}, {"instant": "7x"}, {"instant": "٧"}, {"write_token": "1 2"}, {"write_token": ""},
        {"file_id": "a_b"}, {"file_id": "../f"}, {"file_id": ""}, {"base_instant": "x"}, {"base_instant": ""},
    ],
    ids=str,
)  # fmt: skip
def test_a_file_that_no_reader_would_take_is_not_begun(storage, tmp_path, wrong):
    options = {"file_id": "f-0", "base_instant": "5", "instant": "7", "write_token": "1-2-3", **wrong}
    with pytest.raises(ValueError, match=r"instant|log file name"):
        LogWriter(storage, "p", schema=SCHEMA, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.req("LF-04", "LF-06", "LF-14")
def test_a_block_that_no_reader_would_take_is_not_written(storage, tmp_path):
    log = writer(storage)
    for kind, header in (
        (BlockType.CORRUPT, {}), (7, {}), (BlockType.DELETE, {-1: "x"}), (BlockType.DELETE, {9: "x"}),
        (BlockType.DELETE, {HeaderKey.IS_PARTIAL: True}), (BlockType.DELETE, {HeaderKey.SCHEMA: "\ud800"}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"CORRUPT|not a valid|must be text|surrogates"):
            log.append(kind, b"", header)
    with pytest.raises(ValueError, match="not a number"):
        log.append_rollback("last")
    assert log.close() == ()
    assert not list(tmp_path.iterdir())


@pytest.mark.req("LF-11")
def test_deletes_come_in_any_layout_of_arrow():
    plain = delete_content(pa.array(["a", "b"]), pa.array(["p", None]), pa.array(["x", None]))
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        keys, parts, ordering = (pa.array(v, kind) for v in (["a", "b"], ["p", None], ["x", None]))
        assert delete_content(keys, parts, ordering) == plain
        chunked = [pa.chunked_array([c.slice(0, 1), c.slice(1)]) for c in (keys, parts, ordering)]
        assert delete_content(*chunked) == plain
    for value, stored in (
        (pa.array([3], pa.uint8()), pa.int32()), (pa.array([3], pa.uint32()), pa.int64()),
        (pa.array([np.float16(3)]), pa.float32()), (pa.array([0], pa.date64()), pa.date32()),
        (pa.array([3], pa.timestamp("s")), pa.timestamp("us")),
    ):  # fmt: skip
        key = pa.array(["a"])
        assert delete_content(key, None, value) == delete_content(key, None, value.cast(stored))


def test_deletes_that_do_not_go_together_are_refused():
    keys = pa.array(["a", "b"])
    for more in ((pa.array(["p"]),), (None, pa.array([1])), (None, pa.array([1, 2, 3]))):
        with pytest.raises(SchemaError, match="2 deletes, but"):
            delete_content(keys, *more)
    with pytest.raises(SchemaError, match="record key"):
        delete_content(pa.array([b"\xff"]))
    with pytest.raises(SchemaError, match="would lose data"):
        delete_content(pa.array(["a"]), None, pa.array([1], pa.timestamp("ns")))


class _Full:
    """A stream of a disk that has no room once `room` writes were made to all of its files."""

    def __init__(self, out, room):
        self._out, self._room = out, room

    def write(self, data):
        if not self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._room.pop()
        return self._out.write(data)

    def flush(self):
        self._out.flush()

    def close(self):
        self._out.close()


@pytest.mark.parametrize("room", range(6))
def test_a_disk_without_room_is_a_storage_error_and_an_aborted_writer_leaves_no_file(
    storage, tmp_path, monkeypatch, room
):
    real, left = storage.open_output, [None] * room
    monkeypatch.setattr(storage, "open_output", lambda path: _Full(real(path), left))
    log = writer(storage, max_file_size=1)

    def append():
        for text in ("a", "b", "c"):
            log.append_avro(*datums(text))

    with pytest.raises(StorageError, match="No space left") as e:
        append()
    assert e.value.file.startswith(f"p/.f-0_5.log.{room // 3 + 1}_")
    log.abort()
    log.abort()
    assert not list(tmp_path.glob("p/.f-0*"))


def test_an_aborted_writer_removes_complete_files_too_and_none_of_others(storage, tmp_path):
    with writer(storage, write_token="9-9-9") as other:
        other.append_avro(*datums("x"))
    log = writer(storage, version=2, max_file_size=1)
    for text in ("a", "b"):
        log.append_avro(*datums(text))
    assert len(log.close()) == 2
    log.abort()
    assert [f.name for f in tmp_path.glob("p/.f-0*")] == [".f-0_5.log.1_9-9-9"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork()")
def test_a_forked_child_that_aborts_leaves_its_parent_s_file(storage):
    log = writer(storage)
    log.append_avro(*datums("a"))
    pid = os.fork()
    if not pid:
        log.abort()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    log.append_avro(*datums("b"))
    (written,) = log.close()
    assert len(read_all(storage, written.file.path)) == 2
