"""Records of golden data blocks as Arrow batches, against fastavro, pyarrow and the HFile's keys."""

import io
import json
from datetime import date

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_logs import VERSIONS, golden_logs
from log_bytes import SCHEMA, avro, avro_content, block

from hudi_format.errors import CorruptFileError, SchemaError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.writer import hfile_bytes
from hudi_format.log.block import BlockType, HeaderKey, LogBlock
from hudi_format.log.data_block import BlockDecoder, BlockRows, read_avro
from hudi_format.log.reader import LogFileReader
from hudi_format.schema.avro import from_avro


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


@pytest.mark.req("LF-17")
@pytest.mark.parametrize("version", ["v6", "v8", "v9"])
def test_parquet_blocks_have_the_columns_of_their_schema(version):
    rows = 0
    for b, content in with_content(version, BlockType.PARQUET_DATA):
        table = pa.Table.from_batches(BlockDecoder().batches(b, content))
        assert table.schema.equals(from_avro(b.schema))
        assert table["_hoodie_record_key"].equals(
            pq.read_table(pa.BufferReader(content))["_hoodie_record_key"]
        )
        rows += len(table)
    assert rows > 10


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
def test_a_parquet_content_that_lost_rows_or_columns_is_an_error():
    """Arrow reads what a footer says: no row groups are no rows, and no error."""
    b, content = next(with_content("v6", BlockType.PARQUET_DATA))
    rows = sum(map(len, BlockDecoder().batches(b, content)))
    fewer = missing = 0
    for at in range(len(content) - 4096 if len(content) > 4096 else 0, len(content)):
        data = bytearray(content)
        data[at] ^= 4
        try:
            found = list(BlockDecoder().batches(b, pa.py_buffer(bytes(data))))
        except CorruptFileError as e:
            fewer += "row groups" in e.message
            missing += "without column" in e.message
        else:
            assert sum(map(len, found)) == rows
    assert fewer > 0
    assert missing > 0


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("kind", [4, 5])
def test_contents_of_another_kind_are_errors_with_file_and_offset(kind):
    with pytest.raises(CorruptFileError) as caught:
        list(BlockDecoder().batches(*one(block(kind, {0: "7", 2: SCHEMA}, avro_content([b"\2a"])))))
    assert caught.value.file == "f"
    assert caught.value.details["offset"] >= 22


@pytest.mark.req("NEW-37", "LF-15")
def test_a_parquet_content_of_other_types_than_the_block_says_is_damage():
    written = {"type": "record", "name": "r", "fields": [
        {"name": "s", "type": {"type": "record", "name": "i", "fields": [{"name": "a", "type": "long"}]}},
    ]}  # fmt: skip

    def parquet(values, kind, inner=True):
        rows = pa.table({"s": pa.array(values, pa.struct([pa.field("a", kind, nullable=inner)]))})
        out = io.BytesIO()
        pq.write_table(rows, out)
        return one(block(5, {0: "7", 2: json.dumps(written)}, out.getvalue()))

    for bad in (parquet([{"a": None}], pa.int64()), parquet([{"a": [1]}], pa.list_(pa.int64()))):
        with pytest.raises(CorruptFileError, match=r"contradicts the block's schema: column s\.a") as caught:
            list(BlockDecoder().batches(*bad))
        assert caught.value.file == "f"
    wanted = pa.schema([("s", pa.struct([("a", pa.int64())]))])
    with pytest.raises(CorruptFileError, match=r"contradicts the block's schema: column s\.a"):
        list(BlockRows(wanted, None, 1 << 20).read(*bad))
    fine = parquet([{"a": 7}], pa.int64(), inner=False)
    with pytest.raises(SchemaError, match=r"s\.a"):  # it is what is wanted that does not fit
        list(BlockDecoder(schema=pa.schema([("s", pa.struct([("a", pa.bool_())]))])).batches(*fine))


@pytest.mark.req("NEW-37", "LF-15")
def test_a_member_that_a_parquet_content_names_otherwise_is_damage():
    """It would be nulls: one changed byte of the footer's."""
    inner = {"type": "record", "name": "i", "fields": [{"name": "amount", "type": "long"}]}
    written = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "s", "type": {"type": "array", "items": inner}}],
    }
    out = io.BytesIO()
    pq.write_table(pa.table({"s": [[{"amount": 7}]]}), out, store_schema=False)
    for content, sound in (
        (out.getvalue(), True),
        (out.getvalue().replace(b"\x06amount", b"\x06amounu"), False),
    ):
        b, data = one(block(5, {0: "7", 2: json.dumps(written)}, content))
        if sound:
            assert next(iter(BlockDecoder().batches(b, data))).to_pylist() == [{"s": [{"amount": 7}]}]
            continue
        with pytest.raises(CorruptFileError, match=r"without column s\.amount"):
            list(BlockDecoder().batches(b, data))
        wanted = from_avro(json.dumps(written))
        with pytest.raises(CorruptFileError, match=r"column s\.amount"):
            list(BlockRows(wanted, None, 1 << 20).read(b, data))


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
