"""Sizes and counts that the input made up: refused, without the memory or the time that they ask for."""

import base64
import io
import json
import struct

import pyarrow as pa
import pyarrow.parquet
import pytest
from limits import little_memory
from log_bytes import SCHEMA, avro_content, block, zigzag

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError
from hudi_format.log.batches import BlockDecoder
from hudi_format.log.blocks import BlockType, LogBlock
from hudi_format.log.deletes import read_deletes
from hudi_format.log.positions import RoaringError, read_roaring64, record_positions
from hudi_format.log.reader import LogFileReader
from hudi_format.names import parse_log_file
from hudi_format.schema.avro import from_avro


def record(*types):
    return {
        "type": "record",
        "name": "R",
        "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(types)],
    }


def fixed(size):
    return {"type": "fixed", "name": "F", "size": size}


def array(items):
    return {"type": "array", "items": items}


WIDE = {
    "type": "record", "name": "W", "fields": [{"name": f"w{i}", "type": ["null", "long"]} for i in range(5000)],
}  # fmt: skip


def doubling(levels):
    """Each record holds two of the one before: 2^levels columns in a few lines."""
    kinds = [{"type": "record", "name": "A0", "fields": [{"name": "x", "type": "long"}]}]
    for i in range(1, levels):
        pair = [{"name": side, "type": f"A{i - 1}"} for side in "lr"]
        kinds.append({"type": "record", "name": f"A{i}", "fields": pair})
    return record(*kinds)


AVRO = {
    "a large fixed type that is null": (record(["null", fixed(10**9)]), b"\0", 1),
    "one whose bits wrap round": (record(["null", fixed(2**29 + 1)]), b"\0", 1),
    "many of them": (record(["null", fixed(10**6)]), bytes(4000), 4000),
    "a large fixed value that is not there": (record(fixed(2**31 - 1)), b"\1", 1),
    "null records of many fields": (record(array(["null", WIDE])), zigzag(200_000) + bytes(200_001), 1),
    "records of nothing": (record(array(record())), zigzag(2**60) + b"\0", 1),
    "items": (record(array("long")), zigzag(2**60), 1),
    "a negative number of items": (record(array("long")), zigzag(-(2**62)) + zigzag(4) + bytes(4), 1),
    "a text": (record("string"), zigzag(2**60) + b"x", 1),
    "entries of a map": (record({"type": "map", "values": "null"}), zigzag(2**40), 1),
    "digits": (record({"type": "bytes", "logicalType": "decimal", "precision": 10**9}), b"\2\1", 1),
    "long symbols": (record({"type": "enum", "name": "E", "symbols": ["A" * 60_000, "B"]}), bytes(30_000), 30_000),
    "columns by doubling": (doubling(40), b"\0", 1),
    "nesting": ('{"type":"record","name":"R","fields":[{"name":"a","type":' * 5000, b"", 1),
}  # fmt: skip


@pytest.mark.parametrize("case", AVRO)
def test_avro(case):
    schema, data, rows = AVRO[case]
    with little_memory(), pytest.raises(HudiError):
        Decoder(schema).decode_stream(data, 0, rows)


def test_avro_rows_by_offsets_take_no_more_memory_than_their_bytes_can_fill():
    schema = record(*["long"] * 2000)
    with little_memory(), pytest.raises(CorruptFileError):
        Decoder(schema).decode(b"\0" * 100, [0] * 200_000, [100] * 200_000)


def test_avro_defaults_of_the_reader_do_not_multiply():
    writer = record("boolean")
    reader = record("boolean")
    reader["fields"].append({"name": "s", "type": "string", "default": "x" * 50_000})
    with little_memory():
        assert len(Decoder(writer, reader).decode_stream(bytes(1000), 0, 1000)[0]) == 1000
        with pytest.raises(UnsupportedError, match="defaults"):
            Decoder(writer, reader).decode_stream(bytes(20_000), 0, 20_000)


def test_sparse_records_are_none_of_that():
    schema = record(*[["null", WIDE]] + [["null", "long"]] * 50)
    body = (bytes(1) + b"\2\2" * 50) * 2000
    rows, end = Decoder(schema, columns=["f0", "f50"]).decode_stream(body, 0, 2000)
    assert (len(rows), end) == (2000, len(body))
    assert rows.column("f0").null_count == 2000


def test_columns_of_a_table_do_not_double():
    assert len(from_avro(json.dumps(doubling(10)))) == 10
    with little_memory(), pytest.raises(UnsupportedError, match="types"):
        from_avro(json.dumps(doubling(40)))


def one(kind, content):
    log = LogFileReader(block(kind, {0: "1", 2: SCHEMA}, content), file="f")
    return log.blocks[0], log.content(log.blocks[0])


@pytest.mark.parametrize("count", [2**31 - 1, 2**24, -1])
def test_log_blocks(count):
    number = struct.pack(">i", count)
    with little_memory():
        with pytest.raises(CorruptFileError):
            list(BlockDecoder().batches(*one(3, b"\0\0\0\3" + number)))
        with pytest.raises(CorruptFileError):
            list(BlockDecoder().batches(*one(3, avro_content([])[:4] + b"\0\0\0\1" + number)))
        for version in (1, 2, 3):
            with pytest.raises(CorruptFileError):
                read_deletes(*one(1, struct.pack(">i", version) + number))
        deletes = zigzag(count) + bytes(9)
        with pytest.raises(CorruptFileError):
            read_deletes(*one(1, struct.pack(">ii", 3, len(deletes)) + deletes))
        whole = block(3, {0: "1"}, b"")
        for at in (6, 14, 18, 22, 26, 30):  # size, version, type, number of entries, key, length
            bad = (
                whole[:at]
                + struct.pack(">q" if at == 6 else ">i", count)
                + whole[at + (8 if at == 6 else 4) :]
            )
            (found,) = LogFileReader(bad).blocks
            assert found.type is BlockType.CORRUPT or at in (26, 30)


def roaring(containers):
    """All numbers of so many containers, as runs: ten bytes each."""
    out = struct.pack("<QII", 1, 0, 12347 | (containers - 1) << 16) + b"\xff" * ((containers + 7) // 8)
    out += b"".join(struct.pack("<HH", i, 65535) for i in range(containers))
    if containers >= 4:
        out += bytes(4 * containers)
    return out + struct.pack("<HHH", 1, 0, 65535) * containers


def test_bitmaps():
    assert len(read_roaring64(roaring(4))) == 4 << 16
    with little_memory(), pytest.raises(RoaringError, match="numbers"):
        read_roaring64(roaring(20_000))
    text = base64.b64encode(roaring(100)).decode()
    with pytest.raises(CorruptFileError, match="numbers"):
        record_positions(LogBlock("f", 0, 0, BlockType.AVRO_DATA, {5: text}, 0, 1000))
    assert len(record_positions(LogBlock("f", 0, 0, BlockType.AVRO_DATA, {5: text}, 0, 200_000))) == 100 << 16


class Counted(io.BytesIO):
    """Counts what is read."""

    taken = 0

    def read(self, size=-1):
        self.taken += size
        return super().read(size)


HEAVY = {
    "magics": b"#HUDI#" * 100_000,
    "blocks that claim most of the file": (b"#HUDI#" + struct.pack(">q", 1 << 20) + bytes(20)) * 30_000,
    "blocks that claim all numbers": (b"#HUDI#" + b"\x7f" + b"\xff" * 7) * 50_000,
    "parts of a magic": b"#HUD" * 600_000,
    "small blocks": block(1, {0: "1"}, b"\0\0\0\3\0\0\0\1\0") * 10_000,
}


@pytest.mark.parametrize("case", HEAVY)
def test_a_log_file_is_read_a_few_times_at_most(case, monkeypatch):
    monkeypatch.setattr("hudi_format.log.reader.WHOLE_FILE", 0)
    source = Counted(HEAVY[case])
    blocks = LogFileReader(source).blocks
    assert blocks == LogFileReader(HEAVY[case]).blocks
    assert source.taken < 5 * len(HEAVY[case])


def test_numbers_of_thousands_of_digits():
    digits = "9" * 5000
    assert parse_log_file("p", f".f_1.log.{digits}_0-0-0") is None
    with pytest.raises(CorruptFileError, match="BLOCK_IDENTIFIER"):
        LogBlock("f", 0, 0, BlockType.AVRO_DATA, {6: f"{digits},1"}).identifier  # noqa: B018


def test_a_parquet_content_is_refused_without_its_sizes():
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table({"a": ["x"] * 10}), sink)
    data = bytearray(sink.getvalue())
    with little_memory():
        for size in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0\0\0\0"):
            data[-8:-4] = size
            with pytest.raises(CorruptFileError):
                list(BlockDecoder().batches(*one(5, bytes(data))))
