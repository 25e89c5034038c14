"""Sizes and counts that the input made up: refused, without the memory or the time that they ask for."""

import io
import json
import struct
import tracemalloc
import zlib

import pyarrow as pa
import pyarrow.parquet
import pytest
from limits import little_memory
from log_bytes import SCHEMA, avro_content, block, zigzag

from hudi_format.avro.container import read_container
from hudi_format.avro.decoder import Decoder
from hudi_format.avro.types import parse
from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError
from hudi_format.file_names import is_bucket_file_id, parse_log_file
from hudi_format.log.block import BlockType
from hudi_format.log.block_index import IndexColumn, index
from hudi_format.log.corruption import check_file
from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.kryo import KryoError, read_kryo
from hudi_format.log.reader import LogFileReader
from hudi_format.schema.avro import from_avro, to_avro


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


def doubling(levels, leaf="long"):
    """Each record holds two of the one before: 2^levels columns in a few lines."""
    kinds = [{"type": "record", "name": "A0", "fields": [{"name": "x", "type": leaf}]}]
    for i in range(1, levels):
        pair = [{"name": side, "type": f"A{i - 1}"} for side in "lr"]
        kinds.append({"type": "record", "name": f"A{i}", "fields": pair})
    return record(*kinds)


def chain(length, leaf="long"):
    """Each record holds the one before, by its name: as deep as there are fields."""
    kinds = [{"type": "record", "name": "A0", "fields": [{"name": "x", "type": leaf}]}]
    for i in range(1, length):
        kinds.append({"type": "record", "name": f"A{i}", "fields": [{"name": "x", "type": f"A{i - 1}"}]})
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
@pytest.mark.sampled(4)
def test_avro_records_of_hostile_sizes_are_an_error(case):
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


def test_columns_of_a_table_do_not_nest_without_end():
    shallow = from_avro(json.dumps(chain(90)))
    assert from_avro(to_avro(shallow, "t")).equals(shallow)
    for length in (101, 300, 5000):
        with pytest.raises((CorruptFileError, UnsupportedError), match=r"deep|types"):
            from_avro(json.dumps(chain(length)))
    assert len(from_avro(json.dumps(chain(2)))) == 2


def test_sizes_of_records_that_hold_each_other_by_name_are_known():
    assert {f.type.least for f in parse(chain(1000)).fields} == {1}
    assert {f.type.exact for f in parse(chain(1000, "double")).fields} == {8}
    own = {
        "type": "record",
        "name": "L",
        "fields": [{"name": "x", "type": "long"}, {"name": "next", "type": ["null", "L"]}],
    }
    assert [f.type.least for f in parse(record(own, "L")).fields] == [2, 2]


def container(schema, body, *, codec=b"null", blocks=1):
    head = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": codec}
    text = b"".join(zigzag(len(t)) + t for pair in head.items() for t in pair)
    out = b"Obj\1" + zigzag(len(head)) + text + b"\0" + b"s" * 16
    for count in (1, *[0] * (blocks - 1)):
        out += zigzag(count) + zigzag(len(body)) + body + b"s" * 16
    return out


def deflated(data):
    writer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return writer.compress(data) + writer.flush()


CONTAINERS = {
    "without bytes": container(doubling(40, "null"), b""),
    "without bytes \\(f0\\)": container(record("null"), b""),
    "too deeply": container(chain(250), bytes(250)),
    "exceeds [0-9]+ bytes": container(
        record("bytes"), deflated(bytes(1 << 20)), codec=b"deflate", blocks=500
    ),
}


@pytest.mark.parametrize("case", CONTAINERS)
def test_containers_of_hostile_sizes_are_damage(case):
    with little_memory(), pytest.raises(CorruptFileError, match=case):
        read_container(CONTAINERS[case])


def test_names_that_are_half_a_character():
    half = json.dumps({"type": "record", "name": "R", "fields": [{"name": "\ud800", "type": "long"}]})
    symbol = json.dumps(record({"type": "enum", "name": "E", "symbols": ["\ud800"]}))
    for text in (half, symbol):
        for reader in (parse, from_avro, Decoder):
            with pytest.raises(CorruptFileError, match="surrogates"):
                reader(text)
    log = LogFileReader(block(3, {0: "1", 2: half}, avro_content([b"\2"])), file="f")
    with pytest.raises(CorruptFileError, match="file f"):
        list(BlockDecoder().batches(log.blocks[0], log.content(log.blocks[0])))
    assert from_avro(json.dumps(record({"type": "string", "doc": "\U0001f600"}))).names == ["f0"]


def one(kind, content):
    log = LogFileReader(block(kind, {0: "1", 2: SCHEMA}, content), file="f")
    return log.blocks[0], log.content(log.blocks[0])


@pytest.mark.parametrize("count", [2**31 - 1, 2**24, -1])
def test_log_blocks_of_hostile_sizes_are_damage(count):
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


def kryo_keys(count, key):
    """A list of version 1 whose keys are all one text, written once."""
    name = b"org.apache.hudi.common.model.HoodieKey"

    def text(data):
        size = len(data) + 1
        out = [0x80 | 0x40 | size & 0x3F, size >> 6 & 0x7F | 0x80, size >> 13]
        return bytes(out) + data

    def marked(data):
        return data[:-1] + bytes([data[-1] | 0x80])

    def number(value):
        return bytes([value]) if value < 128 else bytes([value & 0x7F | 0x80]) + number(value >> 7)

    head = b"\1\0" + marked(b"[L" + name + b";") + b"\1" + number(count + 1)
    return head + b"\1\1" + marked(name) + b"\1\0\1" + text(key) + b"\1\1\1\0\4" * (count - 1)


def test_deletes_that_are_one_text_again_and_again():
    keys = [d.key for d in read_kryo(kryo_keys(50, b"k" * 1000), 1)]
    assert keys == ["k" * 1000] * 50
    with little_memory(), pytest.raises(KryoError, match="100 times"):
        read_kryo(kryo_keys(10_000, b"k" * 100_000), 1)


@pytest.mark.parametrize(
    ("branch", "number"), [(8, 2**31 - 1), (12, -(2**31)), (10, -1), (10, 86_400_000_000), (11, 2**63 - 1)]
)
def test_times_that_are_none_in_deletes_of_several_ordering_fields(branch, number):
    value = zigzag(1) + zigzag(1) + zigzag(branch) + zigzag(number) + b"\0"
    deletes = zigzag(1) + zigzag(1) + zigzag(1) + b"k" + zigzag(0) + zigzag(12) + value + b"\0"
    with pytest.raises(CorruptFileError, match="outside"):
        read_deletes(*one(1, struct.pack(">ii", 3, len(deletes)) + deletes))


class Counted(io.BytesIO):
    """Counts what is read."""

    taken = 0

    def read(self, size=-1):
        self.taken += size
        return super().read(size)


HEAVY = {
    "magics": b"#HUDI#" * 30_000,
    "blocks that claim most of the file": (b"#HUDI#" + struct.pack(">q", 1 << 20) + bytes(20)) * 10_000,
    "blocks that claim all numbers": (b"#HUDI#" + b"\x7f" + b"\xff" * 7) * 15_000,
    "parts of a magic": b"#HUD" * 200_000,
    "small blocks": block(1, {0: "1"}, b"\0\0\0\3\0\0\0\1\0") * 10_000,
}


@pytest.mark.parametrize("case", HEAVY)
@pytest.mark.sampled(3)
def test_a_log_file_is_read_a_few_times_at_most(case, monkeypatch):
    monkeypatch.setattr("hudi_format.log.reader.WHOLE_FILE", 0)
    source = Counted(HEAVY[case])
    blocks = LogFileReader(source).blocks
    assert blocks == LogFileReader(HEAVY[case]).blocks
    assert source.taken < 5 * len(HEAVY[case])


@pytest.mark.req("LF-14")
@pytest.mark.parametrize("whole", [True, False])
def test_a_log_file_of_nothing_but_magics_is_one_damaged_stretch(whole, monkeypatch):
    if not whole:
        monkeypatch.setattr("hudi_format.log.reader.WHOLE_FILE", 0)
    good = block(1, {0: "1"}, b"\0\0\0\3\0\0\0\1\0")
    data = good + b"#HUDI" * 20_000 + good
    found = LogFileReader(io.BytesIO(data)).blocks
    assert [(b.type, b.offset, b.end) for b in found] == [
        (BlockType.DELETE, 0, len(good)),
        (BlockType.CORRUPT, len(good), len(data) - len(good)),
        (BlockType.DELETE, len(data) - len(good), len(data)),
    ]
    with pytest.raises(CorruptFileError) as e:
        check_file(found, file="f", size=len(data))
    assert e.value.details["offset"] == len(good)


@pytest.mark.req("LF-14")
def test_many_beginnings_of_blocks_take_a_small_multiple_of_their_bytes():
    good = block(1, {0: "1"}, b"\0\0\0\3\0\0\0\1\0")
    data = good + b"#HUDI" * 1_000_000 + b"x" * 40 + good + b"#HUDI" * 300_000 + good
    tracemalloc.start()
    try:
        rows = index(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * len(data)
    first, second, size = 5 * 1_000_000, 5 * 300_000, len(good)
    long = size + first - 10  # the last of the first magics, which runs on through what is none
    sound = size + first + 40
    assert rows[:, IndexColumn.OFFSET].tolist() == [0, size, long, sound, sound + size, sound + size + second]
    assert rows[1:, IndexColumn.OFFSET].tolist() == rows[:-1, IndexColumn.END].tolist()


def test_numbers_of_thousands_of_digits():
    digits = "9" * 5000
    assert parse_log_file("p", f".f_1.log.{digits}_0-0-0") is None
    # A digit to Python, and no number.
    assert not is_bucket_file_id("\u00b2" * 8 + "-5724-4d7b-89a7-01b6b3b68831-0")


def test_a_parquet_content_is_refused_without_its_sizes():
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table({"a": ["x"] * 10}), sink)
    data = bytearray(sink.getvalue())
    with little_memory():
        for size in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0\0\0\0"):
            data[-8:-4] = size
            with pytest.raises(CorruptFileError):
                list(BlockDecoder().batches(*one(5, bytes(data))))
