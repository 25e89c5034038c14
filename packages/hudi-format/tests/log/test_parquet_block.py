"""Parquet data blocks: the columns of their schema, and contents that are something else."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_logs import golden_logs
from log_bytes import block

from hudi_format.errors import CorruptFileError, SchemaError
from hudi_format.log.block import BlockType
from hudi_format.log.data_block import BlockDecoder, BlockRows
from hudi_format.log.encoder import contents
from hudi_format.log.reader import LogFileReader
from hudi_format.schema.avro import from_avro, to_avro


def with_content(version, *types):
    for name, data in golden_logs(version).items():
        with LogFileReader(data, file=name) as log:
            for b in log.blocks:
                if b.type in types:
                    yield b, log.content(b)


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


CODECS = {"gzip": "GZIP", "snappy": "SNAPPY", "zstd": "ZSTD", "lz4": "LZ4", "lz4_raw": "LZ4",
          **dict.fromkeys(("uncompressed", "UNCOMPRESSED", "none", ""), "UNCOMPRESSED")}  # fmt: skip


@pytest.mark.parametrize(("codec", "stored"), CODECS.items())
@pytest.mark.parametrize("kind", [pa.string(), pa.decimal128(25, 3)], ids=str)
def test_every_codec_of_base_files_is_one_of_parquet_blocks(codec, stored, kind):
    rows = pa.table({"a": pa.array(["1.5", None]).cast(kind)})
    schema = to_avro(rows.schema, "t")
    (content,) = contents(rows, BlockType.PARQUET_DATA, schema, most=1 << 20, codec=codec)
    file = pq.ParquetFile(pa.BufferReader(content))
    assert file.metadata.row_group(0).column(0).compression == stored
    assert file.read().to_pydict() == rows.to_pydict()


def one(data):
    log = LogFileReader(data, file="f")
    return log.blocks[0], log.content(log.blocks[0])


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


@pytest.mark.req("NEW-37", "LF-17")
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


@pytest.mark.req("NEW-37", "LF-17")
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
