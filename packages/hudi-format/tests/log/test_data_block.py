"""Records of golden data blocks as Arrow batches, against fastavro, pyarrow and the HFile's keys."""

import io
import json
import struct
from datetime import date

import fastavro
import pyarrow as pa
import pytest
from golden_logs import VERSIONS, golden_logs
from log_bytes import SCHEMA, avro, avro_content, block

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.writer import hfile_bytes
from hudi_format.log.block import BlockType, HeaderKey, LogBlock
from hudi_format.log.data_block import BlockDecoder, read_avro
from hudi_format.log.reader import LogFileReader


def with_content(version, *types):
    for name, data in golden_logs(version).items():
        with LogFileReader(data, file=name) as log:
            for b in log.blocks:
                if b.type in types:
                    yield b, log.content(b)


@pytest.mark.req("LF-15")
@pytest.mark.parametrize("version", VERSIONS)
def test_avro_and_cdc_blocks_are_what_fastavro_reads(version):
    decoder = BlockDecoder(batch_rows=5)
    rows = 0
    for b, content in with_content(version, BlockType.AVRO_DATA, BlockType.CDC_DATA):
        batches = list(decoder.batches(b, content))
        assert all(len(x) <= 5 for x in batches)
        records = read_avro(b, content)
        schema = fastavro.parse_schema(json.loads(b.schema))
        want = [
            fastavro.schemaless_reader(io.BytesIO(content.slice(o, n)), schema)
            for o, n in zip(records.offsets.tolist(), records.lengths.tolist(), strict=True)
        ]
        assert sum(map(len, batches)) == len(want)
        if not want:
            continue
        table = pa.Table.from_batches(batches)
        assert table.column_names == list(want[0])
        for name in table.column_names:
            got = table[name]
            if pa.types.is_map(got.type) or pa.types.is_nested(got.type):
                continue  # maps are lists of pairs in Arrow; the decoder's own tests compare them
            assert got.to_pylist() == [r[name] for r in want], name
        rows += len(want)
    assert rows > 100


@pytest.mark.req("LF-16")
@pytest.mark.parametrize("version", ["v6", "v9"])
def test_hfile_blocks_get_their_keys_back(version):
    decoder = BlockDecoder(columns=["key", "type"])  # column statistics are unions of many types
    rows = 0
    for b, content in with_content(version, BlockType.HFILE_DATA):
        if "HoodieMetadataRecord" not in b.schema:
            continue  # rows of a data table, which have no field of that name
        table = pa.Table.from_batches(decoder.batches(b, content))
        entries = HFileReader.from_buffer(memoryview(content).cast("B")).scan()
        assert table["key"].cast(pa.binary()).to_pylist() == entries["key"].to_pylist()
        assert table["type"].null_count == 0
        rows += len(table)
    assert rows > 100


@pytest.mark.parametrize("kind", [BlockType.AVRO_DATA, BlockType.PARQUET_DATA])
def test_a_wanted_schema_reorders_adds_and_leaves_out(kind):
    want = pa.schema([("new", pa.int64()), ("_hoodie_record_key", pa.string())])
    decoder = BlockDecoder(schema=want)
    b, content = next(with_content("v6", kind))
    batches = list(decoder.batches(b, content))
    assert batches
    for batch in batches:
        assert batch.schema.equals(want)
        assert batch["new"].null_count == len(batch)
        assert batch["_hoodie_record_key"].null_count == 0
    first = next(BlockDecoder(columns=["_hoodie_record_key"]).batches(b, content))
    assert first.schema.names == ["_hoodie_record_key"]


def one(data):
    log = LogFileReader(data, file="f")
    return log.blocks[0], log.content(log.blocks[0])


@pytest.mark.req("NEW-37")
def test_a_bad_record_is_named_with_its_place_in_the_file():
    data = avro("7", "aa", "bb")
    at = data.index(b"\x04bb")
    with pytest.raises(CorruptFileError, match="record 1") as caught:
        list(BlockDecoder().batches(*one(data[:at] + b"\x0a" + data[at + 1 :])))
    assert (caught.value.file, caught.value.instant) == ("f", "7")
    assert at <= caught.value.details["offset"] <= at + 3


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("kind", [4, 5])
def test_contents_of_another_kind_are_errors_with_file_and_offset(kind):
    with pytest.raises(CorruptFileError) as caught:
        list(BlockDecoder().batches(*one(block(kind, {0: "7", 2: SCHEMA}, avro_content([b"\2a"])))))
    assert caught.value.file == "f"
    assert caught.value.details["offset"] >= 22


@pytest.mark.req("LF-16")
@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ('["null",{"type":"array","items":"int"}]', b"\x02\x02\x0e\0", [7]),
        ('{"type":"int","logicalType":"date"}', b"\0", date(1970, 1, 1)),
        ('"int"', b"\x0e", 7),
        ('"string"', b"\x02x", "x"),
        ('"string"', b"\0", "k"),
    ],
)
def test_a_column_of_the_users_named_key_is_not_the_entrys_key(kind, value, wanted):
    schema = f'{{"type":"record","name":"r","fields":[{{"name":"key","type":{kind}}}]}}'
    content = pa.py_buffer(hfile_bytes(pa.array(["k"]), pa.array([value], pa.binary()), schema=schema))
    header = {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: schema}
    block = LogBlock("f", 0, content.size, BlockType.HFILE_DATA, header, 0, content.size)
    (batch,) = BlockDecoder().batches(block, content)
    assert batch.to_pylist() == [{"key": wanted}]


@pytest.mark.req("NEW-37", "LF-15")
@pytest.mark.parametrize("kind", [3, 5])
def test_a_schema_that_is_none_is_told_with_the_block_that_has_it(kind):
    first = avro("6", "a")
    with LogFileReader(first + block(kind, {0: "7", 2: "{"}, avro_content([b"\2a"])), file="f") as log:
        bad = log.blocks[1]
        with pytest.raises(CorruptFileError, match="not an Avro schema") as caught:
            list(BlockDecoder().batches(bad, log.content(bad)))
    assert (caught.value.file, caught.value.instant) == ("f", "7")
    assert caught.value.details["offset"] == len(first)


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
