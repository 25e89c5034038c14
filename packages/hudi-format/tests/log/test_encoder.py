"""Rows into data blocks of each type, one log file for each commit, and names that tell which commit."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import MissingColumnError, OptionError, RecordKeyError, SchemaError, UnsupportedError
from hudi_format.file_names import parse_log_file
from hudi_format.log.block import BlockType
from hudi_format.log.data_block import BlockDecoder, BlockRows
from hudi_format.log.encoder import block_type, contents
from hudi_format.log.reader import LogFileReader
from hudi_format.log.writer import LogWriter
from hudi_format.parquet.decimal_annotation import with_decimals
from hudi_format.parquet.footer import reading
from hudi_format.schema.avro import to_avro
from hudi_format.storage.open import open_storage

KEY = "_hoodie_record_key"
ROWS = pa.table(
    {
        KEY: [f"k{n * 7919 % 1000:04d}" for n in range(1000)],
        "a": pa.array([None if n % 9 == 0 else n for n in range(1000)], pa.int64()),
        "ü": [f"text {n}" * (n % 5) for n in range(1000)],
        "list": [[n, None] if n % 3 else None for n in range(1000)],
    }
)
SCHEMA = to_avro(ROWS.schema, "t")


def writer(storage, instant="7", **more):
    return LogWriter(storage, "p", "f-0", "5", instant=instant, schema=SCHEMA, write_token="0-1-2", **more)


def read(storage, path):
    """(type, rows) of each block."""
    out = []
    with LogFileReader.open(storage, path) as log:
        for b in log.blocks:
            of = BlockRows(ROWS.schema, None, 1 << 30).read(b, log.content(b))
            out.append((b.type, pa.concat_tables(of)))
    return out


@pytest.mark.req("LF-15", "LF-16", "LF-17", "LF-18")
@pytest.mark.parametrize(
    ("option", "kind"),
    [("avro", BlockType.AVRO_DATA), ("PARQUET", BlockType.PARQUET_DATA), ("hfile", BlockType.HFILE_DATA)],
)
@pytest.mark.parametrize("most", [1 << 20, 9000])
def test_rows_come_back_from_blocks_of_the_type_that_the_option_chose(tmp_path, option, kind, most):
    storage = open_storage(str(tmp_path))
    with writer(storage, max_block_size=most) as log:
        log.append_rows(ROWS, block_type(option))
        (written,) = log.close()
    blocks = read(storage, written.file.path)
    assert {b for b, _ in blocks} == {kind}
    assert (len(blocks) == 1) == (most == 1 << 20)
    found = pa.concat_tables(rows for _, rows in blocks)
    if kind is BlockType.HFILE_DATA:
        for _, rows in blocks:
            assert rows[KEY].to_pylist() == sorted(rows[KEY].to_pylist())
        assert found.sort_by(KEY).equals(ROWS.sort_by(KEY))
    else:
        assert found.equals(ROWS)


@pytest.mark.req("LF-18")
def test_without_the_option_base_files_decide_and_another_text_is_refused():
    assert block_type(None) is block_type("") is BlockType.AVRO_DATA
    with pytest.raises(OptionError, match="avro, parquet, hfile"):
        block_type("orc")


@pytest.mark.req("LF-16")
def test_a_row_without_a_key_goes_into_no_hfile(tmp_path):
    rows = ROWS.set_column(0, KEY, pa.array([None] * 1000, pa.string()))
    with writer(open_storage(str(tmp_path))) as log, pytest.raises(RecordKeyError):
        log.append_rows(rows, BlockType.HFILE_DATA)


@pytest.mark.req("FS-12", "FS-08")
def test_a_second_commit_leaves_the_first_ones_log_file_as_it_is(tmp_path):
    """Where files do not grow, which are all stores but HDFS, each commit has files of its own."""
    storage = open_storage(str(tmp_path))
    files, bytes_before = [], {}
    for instant in ("7", "8", "9"):
        with writer(storage, instant) as log:
            log.append_rows(ROWS.slice(0, 10))
            log.append_deletes(pa.array(["k0001"]))
            (written,) = log.close()
        assert {p: (tmp_path / p).read_bytes() for p in bytes_before} == bytes_before
        bytes_before[written.file.path] = (tmp_path / written.file.path).read_bytes()
        files.append(written.file)
    assert [f.version for f in files] == [1, 2, 3]
    for file, instant in zip(files, ("7", "8", "9"), strict=True):
        with LogFileReader.open(storage, file.path) as log:  # and a reader takes several blocks in one file
            assert [(b.type.name, b.instant) for b in log.blocks] == [
                ("AVRO_DATA", instant),
                ("DELETE", instant),
            ]


@pytest.mark.req("FS-13")
def test_names_of_logs_hold_the_slice_or_the_commit_and_both_are_read():
    """Version 6 names the slice's base instant, version 8 the instant that wrote the file."""
    of_slice = parse_log_file("p", ".f-0_20240101000000000.log.3_0-1-2")
    of_commit = parse_log_file("p", ".f-0_20240202000000000.log.1_0-1-2")
    assert (of_slice.instant, of_slice.version) == ("20240101000000000", 3)
    assert (of_commit.instant, of_commit.version) == ("20240202000000000", 1)
    assert of_slice.file_id == of_commit.file_id == "f-0"


@pytest.mark.req("SE-02")
@pytest.mark.parametrize(
    ("option", "digits", "top", "inside"),
    [
        ("avro", False, 0.10000000149011612, 0.30000001192092896),  # Apache Hudi 0.15.0 and 1.0.2
        ("avro", True, 0.1, 0.3),  # Apache Hudi 1.2.0
        ("parquet", False, 0.1, 0.3),
    ],
)
def test_floats_of_a_log_that_are_doubles_now(tmp_path, option, digits, top, inside):
    old = pa.schema(
        [(KEY, pa.string()), ("f", pa.float32()), ("l", pa.list_(pa.struct([("g", pa.float32())])))]
    )
    new = pa.schema(
        [(KEY, pa.string()), ("f", pa.float64()), ("l", pa.list_(pa.struct([("g", pa.float64())])))]
    )
    rows = pa.table([["a", "b"], [0.1, None], [[{"g": 0.3}, None], None]], schema=old)
    storage = open_storage(str(tmp_path))
    with LogWriter(
        storage, "p", "f-0", "5", instant="7", schema=to_avro(old, "t"), write_token="0-1-2"
    ) as log:
        log.append_rows(rows, block_type(option))
        (written,) = log.close()
    with LogFileReader.open(storage, written.file.path) as file:
        (b,) = file.blocks
        found = pa.concat_tables(BlockRows(new, None, 1 << 30, digits).read(b, file.content(b)))
    assert found.schema.types == new.types
    assert found["f"].to_pylist() == [top, None]
    assert found["l"].to_pylist() == [[{"g": inside}, None], None]


def record(*fields):
    key = {"name": KEY, "type": "string"}
    return json.dumps({"type": "record", "name": "r", "fields": [key, *fields]})


def column(kind, **more):
    return record({"name": "v", "type": kind, **more})


def keyed(values=None):
    return pa.table({KEY: ["a", "b"]} | ({} if values is None else {"v": values}))


LATER = {"type": "long", "logicalType": "timestamp-micros"}
MISFITS = {
    "a column that is not there": (column("long"), keyed(), MissingColumnError),
    "one too many": (record(), keyed([1, 2]), SchemaError),
    "text for a number": (column("long"), keyed(["1", "2"]), SchemaError),
    "a larger number": (column("int"), keyed([1, 1 << 40]), SchemaError),
    "null": (column("long"), keyed([1, None]), SchemaError),
    "no symbol": (column({"type": "enum", "name": "e", "symbols": ["A"]}), keyed(["A", "B"]), SchemaError),
    "no zone": (column(LATER), keyed(pa.array([1, 2], pa.timestamp("us"))), SchemaError),
}


@pytest.mark.req("LF-15", "LF-16", "LF-17")
@pytest.mark.parametrize("option", ["avro", "parquet", "hfile"])
@pytest.mark.parametrize(("schema", "rows", "error"), MISFITS.values(), ids=MISFITS.keys())
def test_rows_that_do_not_fit_the_schema_are_refused_before_anything_is_written(
    tmp_path, option, schema, rows, error
):
    with (
        LogWriter(
            open_storage(str(tmp_path)), "p", "f-0", "5", instant="7", schema=schema, write_token="0-1-2"
        ) as log,
        pytest.raises(error, match="column v") as raised,
    ):
        log.append_rows(rows, block_type(option))
    assert raised.value.details["column"] == "v"
    assert not list(tmp_path.rglob("*.log*"))


FITTED = {
    "null where it may be": (column(["null", "long"], default=None), keyed(), [None, None]),
    "a default": (column("long", default=7), keyed(), [7, 7]),
    "smaller numbers": (column("long"), keyed(pa.array([1, 2], pa.int32())), [1, 2]),
    "unsigned numbers": (column("int"), keyed(pa.array([1, 255], pa.uint8())), [1, 255]),
    "a dictionary": (column("string"), keyed(pa.array(["x", "y"]).dictionary_encode()), ["x", "y"]),
    "milliseconds": (
        column(LATER),
        keyed(pa.array([1, 2], pa.timestamp("ms", "UTC"))),
        [datetime.fromtimestamp(n / 1000, UTC) for n in (1, 2)],
    ),
}


@pytest.mark.req("LF-17")
@pytest.mark.parametrize(("schema", "rows", "want"), FITTED.values(), ids=FITTED.keys())
def test_parquet_contents_have_the_types_of_the_schema(tmp_path, schema, rows, want):
    (content,) = contents(rows, BlockType.PARQUET_DATA, schema, most=1 << 20)
    found = pq.read_table(pa.BufferReader(content))
    assert found.schema.equals(Decoder(schema).schema)
    assert found["v"].to_pylist() == want


def decimal(kind, precision, scale, **more):
    return {"type": kind, "logicalType": "decimal", "precision": precision, "scale": scale, **more}


def _named(kind, name):
    return {**kind, "name": name} if kind["type"] == "fixed" else kind


@pytest.mark.req("LF-17")
@pytest.mark.parametrize("nodes", [1, 20])  # lists of 15 and more have another head
def test_decimals_are_the_bytes_in_parquet_that_they_are_in_avro(nodes):
    """parquet-avro's reader takes a decimal only as the schema of the block has it."""
    kinds = {
        "on_bytes": decimal("bytes", 38, 10),
        "long_fixed": decimal("fixed", 9, 2, size=11),
        "least_fixed": decimal("fixed", 9, 2, size=4),
        "inside": {
            "type": "map",
            "values": {"type": "array", "items": ["null", decimal("bytes", 5, 5)]},
        },
    }
    names = [f"{name}{n}" for n in range(nodes) for name in kinds]
    fields = [{"name": n, "type": _named(kinds[n.rstrip("0123456789")], n)} for n in names]
    values = {
        "on_bytes": pa.array(
            [Decimal("-" + "9" * 28 + ".0000000001"), Decimal("0.0000000128")], pa.decimal128(38, 10)
        ),
        "long_fixed": pa.array([Decimal("-1234567.89"), Decimal("0.01")], pa.decimal128(9, 2)),
        "least_fixed": pa.array([Decimal("-9999999.99"), Decimal("1.28")], pa.decimal128(9, 2)),
        "inside": pa.array(
            [[("k", [Decimal("-0.99999"), None])], []], pa.map_(pa.string(), pa.list_(pa.decimal128(5, 5)))
        ),
    }
    rows = pa.table({KEY: ["a", "b"]} | {n: values[n.rstrip("0123456789")] for n in names})
    (content,) = contents(rows, BlockType.PARQUET_DATA, record(*fields), most=1 << 20)
    file = pq.ParquetFile(pa.BufferReader(content))
    physical = {c.path.split(".")[0]: c for c in map(file.schema.column, range(len(file.schema)))}
    for n in names:
        stored = physical[n]
        length = {"on_bytes": 0, "long_fixed": 11, "least_fixed": 4, "inside": 0}[n.rstrip("0123456789")]
        want = ("FIXED_LEN_BYTE_ARRAY" if length else "BYTE_ARRAY", length)
        assert (stored.physical_type, stored.length or 0) == want
        assert (stored.logical_type.type, stored.converted_type) == ("DECIMAL", "DECIMAL")
    found = file.read()
    assert all(found[n].to_pylist() == rows[n].to_pylist() for n in names)


@pytest.mark.req("LF-17")
def test_what_we_could_not_read_again_goes_into_no_parquet():
    wide = column(decimal("fixed", 38, 0, name="x", size=17))
    with pytest.raises(UnsupportedError, match=r"column v .*17 bytes.*\bformat=avro"):
        list(
            contents(
                keyed(pa.array([1, 2], pa.decimal128(38, 0))), BlockType.PARQUET_DATA, wide, most=1 << 20
            )
        )
    with pytest.raises(UnsupportedError, match=r"column v .*\bformat=avro"):
        list(contents(keyed([1, 2]), BlockType.PARQUET_DATA, column(["int", "long"]), most=1 << 20))


@pytest.mark.req("LF-17")
def test_a_decimal_in_more_bytes_than_arrow_reads_is_no_damage(tmp_path):
    """parquet-avro writes it as it is in Avro."""
    raw = pa.table({KEY: ["a"], "v": pa.array([bytes(16) + b"\1"], pa.binary(17))})
    sink = pa.BufferOutputStream()
    pq.write_table(raw, sink, store_schema=False, write_statistics=False)
    content = with_decimals(sink.getvalue().to_pybytes(), {1: (38, 0)})
    storage = open_storage(str(tmp_path))
    storage.create("f.parquet", content)
    with pytest.raises(UnsupportedError, match="decimal of 17 bytes"), reading(storage, "f.parquet"):
        pq.read_table(pa.BufferReader(content))
    schema = column(decimal("fixed", 38, 0, name="x", size=17))
    with LogWriter(storage, "p", "f-0", "5", instant="7", schema=schema, write_token="0-1-2") as log:
        log.append_parquet(content)
        (written,) = log.close()
    with LogFileReader.open(storage, written.file.path) as file:
        (b,) = file.blocks
        with pytest.raises(UnsupportedError, match="decimal of 17 bytes") as raised:
            list(BlockDecoder().batches(b, file.content(b)))
    assert written.file.path in str(raised.value)
