"""Blocks found in log files: those of Apache Hudi, and bytes that are none."""

import dataclasses
import io
import json
import pickle
import struct

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_logs import VERSIONS, golden_logs
from hypothesis import given, settings
from hypothesis import strategies as st
from log_bytes import SCHEMA, avro, avro_content, block, empty_delete, rollback

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.log import _scan, reader
from hudi_format.log.block import MAGIC, BlockType, Damage, HeaderKey
from hudi_format.log.block_index import Headers, IndexColumn, block_of, blocks_of, index
from hudi_format.log.data_block import read_avro
from hudi_format.log.reader import LogFileReader
from hudi_format.storage.open import open_storage

A, B = avro("001", "x" * 300), avro("002", "y" * 700, "z")


def blocks(data):
    return LogFileReader(data, file="f").blocks


def shape(data):
    """Type, offset and size of each block."""
    return [(b.type.name, b.offset, b.size) for b in blocks(data)]


@pytest.mark.req("LF-01", "LF-02", "LF-03", "LF-04", "LF-05", "LF-07", "LF-08", "LF-09", "LF-19")
@pytest.mark.parametrize("version", VERSIONS)
def test_every_golden_log_file_is_whole_blocks_without_a_gap(version):
    for name, data in golden_logs(version).items():
        found = LogFileReader(data, file=name).blocks
        at = 0
        for b in found:
            assert (b.file, b.offset, b.damage) == (name, at, Damage.NONE)
            assert data[at : at + 6] == MAGIC
            size, format_version, kind = struct.unpack(">qii", data[at + 6 : at + 22])
            assert (size + 14, format_version, kind) == (b.size, 1, b.type)
            assert struct.unpack(">q", data[b.end - 8 : b.end])[0] == b.size - 8
            assert b.footer == {}
            assert b.instant.isdigit()
            at = b.end
        assert at == len(data)


@pytest.mark.req("LF-06", "LF-10", "LF-18")
def test_all_block_types_and_header_keys_are_in_the_golden_files():
    types, keys = set(), set()
    for version in VERSIONS:
        for data in golden_logs(version).values():
            for b in blocks(data):
                types.add(b.type)
                keys |= {(b.type, HeaderKey(k)) for k in b.header}
    assert types == set(BlockType) - {BlockType.CORRUPT}
    assert {k for _, k in keys} == set(HeaderKey) - {HeaderKey.BLOCK_IDENTIFIER}
    assert (BlockType.COMMAND, HeaderKey.TARGET_INSTANT_TIME) in keys
    assert (BlockType.AVRO_DATA, HeaderKey.IS_PARTIAL) in keys


@pytest.mark.req("LF-15", "LF-07")
@pytest.mark.parametrize("version", VERSIONS)
def test_each_avro_record_ends_where_its_length_says(version):
    seen = 0
    for name, data in golden_logs(version).items():
        with LogFileReader(data, file=name) as log:
            for b in log.blocks:
                if b.type not in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
                    continue
                records = read_avro(b, log.content(b))
                schema = fastavro.parse_schema(json.loads(b.schema))
                for offset, length in zip(records.offsets.tolist(), records.lengths.tolist(), strict=True):
                    stream = io.BytesIO(records.data.slice(offset, length))
                    fastavro.schemaless_reader(stream, schema)
                    assert stream.tell() == length
                    seen += 1
    assert seen > 100


@pytest.mark.req("LF-17")
def test_parquet_content_is_a_parquet_file():
    rows = 0
    for version in ("v6", "v8", "v9"):
        for data in golden_logs(version, "mor_parquet_logs").values():
            with LogFileReader(data) as log:
                for b in log.blocks:
                    if b.type is BlockType.PARQUET_DATA:
                        table = pq.read_table(pa.BufferReader(log.content(b)))
                        assert table["_hoodie_commit_time"].unique().to_pylist() == [b.instant]
                        rows += len(table)
    assert rows > 0


@pytest.mark.req("LF-16")
def test_hfile_content_is_handed_on_whole():
    found = [
        bytes(log.content(b))
        for data in golden_logs("v6", "mdt_all_indexes").values()
        for log in [LogFileReader(data)]
        for b in log.blocks
        if b.type is BlockType.HFILE_DATA
    ]
    assert found
    assert all(c.startswith(b"DATABLK*") and b'TRABLK"$' in c for c in found)


@pytest.mark.req("LF-14")
@pytest.mark.parametrize(
    ("data", "want"),
    [
        (b"", []),
        (A + B, [("AVRO_DATA", 0, len(A)), ("AVRO_DATA", len(A), len(B))]),
        (A + B[:700], [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 700)]),
        (A[:300] + B, [("CORRUPT", 0, 300), ("AVRO_DATA", 300, len(B))]),
        (A + b"#HU", [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 3)]),
        (A + MAGIC + B, [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 6), ("AVRO_DATA", len(A) + 6, len(B))]),
        # Apache Hudi loses A in these two; what follows a block says nothing about it.
        (A + b"g" * 22 + B, [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 22), ("AVRO_DATA", len(A) + 22, len(B))]),
        (A + b"g" * 8, [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 8)]),
        (A[:300] + b"g", [("CORRUPT", 0, 301)]),
    ],
)  # fmt: skip
def test_damaged_stretches_are_blocks_of_their_own(data, want):
    assert shape(data) == want


def changed(data, offset, new):
    return data[:offset] + new + data[offset + len(new) :]


@pytest.mark.req("LF-14")
@pytest.mark.parametrize(
    ("data", "damage"),
    [
        (changed(A, 0, b"%"), Damage.BAD_MAGIC),
        (changed(A, 14, b"\1"), Damage.BAD_VERSION),
        (changed(A, 21, b"\2"), Damage.BAD_TYPE),
        (changed(A, 21, b"\7"), Damage.BAD_TYPE),
        (changed(A, 18, b"\xff\xff\xff\xff"), Damage.BAD_TYPE),
        (changed(A, 25, b"\3"), Damage.BAD_HEADER),
        (changed(A, 22, b"\xff"), Damage.BAD_HEADER),
        (changed(A, 30, b"\xff"), Damage.BAD_HEADER),
        (block(3, {0: "1"})[:30] + struct.pack(">i", -1) + block(3, {0: "1"})[34:], Damage.BAD_HEADER),
        (changed(A, len(A) - 12, b"\0\0\0\1"), Damage.BAD_FOOTER),
        (changed(A, len(A) - 1, b"\0"), Damage.DISAGREES),
        (changed(A, 13, b"\x20"), Damage.DISAGREES),
        (changed(A, 6, b"\x80"), Damage.DISAGREES),
        (changed(A, 6, b"\x7f"), Damage.TORN),
        (b"nothing of a log file", Damage.NO_MAGIC),
        (A[:-1], Damage.TORN),
        (A[:5], Damage.STRAY),
    ],
)
def test_why_a_stretch_is_no_block(data, damage):
    first, *_ = blocks(data)
    assert (first.type, first.damage, first.offset) == (BlockType.CORRUPT, damage, 0)


@pytest.mark.req("LF-14", "NEW-37")
def test_a_torn_block_still_names_its_instant():
    torn, whole = blocks(B[:500] + A)
    assert (torn.instant, torn.size, whole.instant) == ("002", 500, "001")


def test_a_content_length_beyond_the_block_is_damage():
    at = A.index(avro_content([])[:4], 100) - 8
    for value in (len(A), -1, 2**62, -(2**63)):
        (only,) = blocks(changed(A, at, struct.pack(">q", value)))
        assert only.damage is Damage.BAD_CONTENT


@pytest.mark.parametrize("header", [b"\xff\xfe", b"ab\xc3"])
def test_a_header_that_is_no_text_is_damage(header):
    data = block(3, {0: "123"}).replace(b"123", (header + b"___")[:3])
    assert blocks(data)[0].damage is Damage.BAD_HEADER


def test_a_header_key_that_comes_twice_is_damage():
    data = block(3, {0: "123", 4: "456"}).replace(struct.pack(">ii", 4, 3), struct.pack(">ii", 0, 3))
    assert blocks(data)[0].damage is Damage.BAD_HEADER


def test_magic_inside_a_record_is_not_taken_for_a_block():
    data = avro("1", "before#HUDI#after") + A
    assert [b.instant for b in blocks(data)] == ["1", "001"]


@given(
    st.integers(0, 40),
    st.lists(st.sampled_from([b"#", b"#HUDI", b"H", b"UDI#", b"a", b"#HUDI#", b"DI"]), max_size=12),
)
def test_the_search_for_a_magic_finds_what_bytes_find_does(start, pieces):
    data = b"".join(pieces)
    want = data.find(MAGIC, start)
    assert _scan.find_magic(data, start) == (want if want >= 0 else len(data))


@settings(max_examples=60)
@given(st.data())
def test_ranged_reading_finds_the_same_blocks(data):
    pieces = [A, B, rollback("9", "1"), empty_delete("5"), b"#HUDI#", b"garbage", A[:70], B[:900], b"#HU"]
    text = b"".join(data.draw(st.lists(st.sampled_from(pieces), max_size=8)))
    cut = text[: data.draw(st.integers(0, len(text)))]
    window = data.draw(st.sampled_from([16, 100, 700, 65536]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "WHOLE_FILE", -1)
        patch.setattr(reader, "_WINDOW", window)
        patch.setattr(reader, "_SEARCH", max(window, 16))
        with LogFileReader(io.BytesIO(cut), file="f") as log:
            assert log.blocks == blocks(cut)
            for b in log.blocks:
                assert bytes(log.content(b)) == cut[b.content_offset : b.content_offset + b.content_length]


@pytest.mark.req("QR-06")
def test_ranged_reading_leaves_contents_unread(monkeypatch):
    class Counting(io.BytesIO):
        read_bytes = requests = 0

        def read(self, size=-1, /):
            out = super().read(size)
            Counting.read_bytes += len(out)
            Counting.requests += 1
            return out

    monkeypatch.setattr(reader, "WHOLE_FILE", 1 << 20)
    big = b"".join(avro(f"{i:03d}", "x" * 63, *["y" * 60] * 20_000) for i in range(6))
    with LogFileReader(Counting(big)) as log:
        assert [b.instant for b in log.blocks] == [f"{i:03d}" for i in range(6)]
        assert Counting.requests <= len(log.blocks) + 2
        assert Counting.read_bytes < len(big) / 10


@pytest.mark.req("LF-19")
@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_log_files_of_any_storage_are_opened(tmp_path, scheme):
    storage = open_storage(str(tmp_path) if scheme == "file" else "memory://logs")
    storage.touch("p/.a_1.log.1_0-0-0", A + B)
    storage.touch("p/.b_1.log.1_0-0-0", b"")
    with LogFileReader.open(storage, "p/.a_1.log.1_0-0-0") as log:
        assert [b.instant for b in log.blocks] == ["001", "002"]
        content = log.content(log.blocks[1])
    assert content.to_pybytes() in B
    with LogFileReader.open(storage, "p/.b_1.log.1_0-0-0") as log:
        assert log.blocks == ()
    with pytest.raises(MissingFileError, match="log file is not there"):
        LogFileReader.open(storage, "p/none")


def test_content_of_a_file_that_became_shorter_is_an_error():
    (whole,) = LogFileReader(A, file="f").blocks
    with LogFileReader(A[:50], file="g") as cut, pytest.raises(CorruptFileError) as error:
        cut.content(whole)
    assert error.value.file == "g"
    assert error.value.details["offset"] == 50


@pytest.mark.req("LF-15")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_of_avro_content_is_read(version):
    data = block(3, {0: "1", 2: SCHEMA}, avro_content([b"\2a", b"", b"\4bc"], version))
    with LogFileReader(data) as log:
        records = read_avro(log.blocks[0], log.content(log.blocks[0]))
    assert len(records) == 3
    assert (records.offsets.tolist(), records.lengths.tolist()) == ([12, 18, 22], [2, 0, 3])


@pytest.mark.parametrize(
    ("content", "error", "offset"),
    [
        (b"", CorruptFileError, 0),
        (avro_content([b"ab"])[:-1], CorruptFileError, 8),
        (avro_content([b"ab"]) + b"x", CorruptFileError, 14),
        (struct.pack(">ii", 3, 2**31 - 1), CorruptFileError, 4),
        (struct.pack(">ii", 3, -1), CorruptFileError, 4),
        (struct.pack(">ii", 0, 0), CorruptFileError, 0),
        (struct.pack(">iii", 3, 1, -5), CorruptFileError, 8),
        (struct.pack(">ii", 4, 0), UnsupportedError, None),
    ],
)
def test_content_that_does_not_add_up_is_an_error(content, error, offset):
    with LogFileReader(block(3, {0: "7"}, content), file="f") as log:
        (only,) = log.blocks
        with pytest.raises(error) as caught:
            read_avro(only, log.content(only))
    assert (caught.value.file, caught.value.instant) == ("f", "7")
    if offset is not None:
        assert caught.value.details["offset"] == only.content_offset + offset


def test_the_index_of_many_blocks_is_complete():
    small = [rollback(f"{i:05d}", "1") for i in range(20_000)]
    rows = index(b"".join(small))
    assert len(rows) == 20_000
    assert (rows[:, IndexColumn.DAMAGE] == 0).all()
    assert rows[-1, IndexColumn.END] == sum(map(len, small))


@pytest.mark.req("LF-04", "LF-05")
def test_values_of_a_whole_file_are_those_that_are_made_one_by_one():
    odd = block(3, {0: "7", 2: SCHEMA}, avro_content([b"\2a"]), footer={0: "x"})
    broken = block(1, {0: "8"}).replace(b"8", b"\xff")
    for data in (
        A + A + B + rollback("9", "1") + odd + broken + A + b"#HUDI#" + B[:200],
        *golden_logs("v9").values(),
    ):
        rows = index(data)
        headers = Headers()
        one_by_one = [block_of(r, "f", lambda at, n, d=data: d[at : at + n], headers) for r in rows.tolist()]
        found = blocks_of(data, rows, "f")
        assert found == one_by_one
        assert [repr(b) for b in found] == [repr(b) for b in one_by_one]
        assert [type(b.type) for b in found] == [BlockType] * len(found)
    found = blocks_of(A + A, index(A + A), "f")
    assert found[0].header is found[1].header
    assert pickle.loads(pickle.dumps(found)) == found
    assert dataclasses.replace(found[0], offset=found[1].offset) != found[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found[0].offset = 1


def test_rows_of_other_bytes_are_refused():
    rows = index(A)
    for column, value in (
        (IndexColumn.HEADER, -1),
        (IndexColumn.CONTENT, 1 << 40),
        (IndexColumn.CONTENT, 0),
        (IndexColumn.TYPE, 99),
    ):
        bad = rows.copy()
        bad[0, column] = value
        with pytest.raises(ValueError, match="not of these bytes"):
            blocks_of(A, bad, "f")
    with pytest.raises(ValueError, match="not of these bytes"):
        blocks_of(A[:30], rows, "f")
    with pytest.raises(ValueError, match="columns"):
        blocks_of(A, rows[:, :5].copy(), "f")


def test_doors_refuse_what_would_leave_the_buffers():
    import numpy as np

    rows = np.empty((1, 16), np.int64)
    with pytest.raises(ValueError):
        _scan.scan(A, -1, rows)
    with pytest.raises(ValueError):
        _scan.scan(A, 0, np.empty((1, 3), np.int64))
    with pytest.raises(ValueError):
        _scan.parse(A, A, 0, 5, len(A), rows[0])
    with pytest.raises(ValueError):
        _scan.records(A, len(A) + 1, rows[0])
    assert _scan.scan(b"", 0, rows) == (0, 0)
