"""Arrow's reader of Parquet files as other engines write them."""

import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.parquet.arrow_file import as_instants, has_arrow_schema, has_int96, parquet_file
from hudi_format.parquet.footer import footer_bytes
from hudi_format.parquet.reader import Pieces
from hudi_format.storage.local import LocalStorage

DAY = datetime(2024, 1, 1, tzinfo=UTC)
INSTANT = pa.timestamp("us", "UTC")


def written(table, **how):
    out = io.BytesIO()
    pq.write_table(table, out, **how)
    return pa.BufferReader(out.getvalue())


ARROWS_OWN = {
    "codes": (pa.dictionary(pa.int32(), pa.string()), ["a", None, "a"], pa.string()),
    "runs of codes": (pa.dictionary(pa.int8(), pa.large_string()), ["a", "b", None], pa.string()),
    "long text": (pa.large_string(), ["a", None, ""], pa.string()),
    "view": (pa.string_view(), ["a", None, "x" * 20], pa.string()),
    "long bytes": (pa.large_binary(), [b"a", None, b""], pa.binary()),
    "duration": (pa.duration("us"), [timedelta(microseconds=7), None, timedelta(0)], pa.int64()),
    "short decimal": (pa.decimal32(5, 2), [Decimal("1.25"), None, Decimal(0)], pa.decimal128(5, 2)),
    "long decimal": (pa.decimal256(10, 2), [Decimal("1.25"), None, Decimal(0)], pa.decimal128(10, 2)),
    "zone": (pa.timestamp("us", "Europe/Oslo"), [DAY, None, DAY], INSTANT),
    "long list": (pa.large_list(pa.large_string()), [["a"], None, []], pa.list_(pa.string())),
    "in a struct": (pa.struct([("x", pa.large_string())]), [{"x": "a"}, None, {"x": None}],
                    pa.struct([("x", pa.string())])),
    "in a map": (pa.map_(pa.string(), pa.large_string()), [[("k", "a")], None, []],
                 pa.map_(pa.string(), pa.string())),
}  # fmt: skip


@pytest.mark.parametrize("name", ARROWS_OWN)
def test_types_are_those_of_parquet_and_not_of_arrows_schema_in_the_footer(name):
    kind, values, plain = ARROWS_OWN[name]
    table = pa.table({"id": [1, 2, 3], "v": pa.array(values, kind)}).replace_schema_metadata({"kept": "yes"})
    source = written(table, row_group_size=2)
    own = parquet_file(source, arrow_types=True)
    assert own.schema_arrow.field("v").type != plain
    file = parquet_file(source)
    found = file.read().column("v")
    assert pa.schema([("v", found.type)]).equals(pa.schema([("v", plain)]))
    if not pa.types.is_integer(plain):
        assert found.to_pylist() == pa.array(values, plain).to_pylist()
    else:
        assert found.to_pylist() == [7, None, 0]
    assert file.metadata.metadata[b"kept"] == b"yes"
    assert file.metadata.num_row_groups == 2


def test_a_footer_whose_types_are_parquets_stays_as_it_is():
    kinds = [
        pa.string(),
        pa.decimal128(20, 4),
        INSTANT,
        pa.timestamp("us"),
        pa.list_(pa.date32()),
        pa.float16(),
    ]
    source = written(pa.table([pa.nulls(2, kind) for kind in kinds], names=list("abcdef")))
    assert b"ARROW:schema" in parquet_file(source).metadata.metadata


@pytest.mark.parametrize("stored", [True, False])
def test_a_schema_of_arrow_is_an_entry_and_no_text_in_another(stored):
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, pa.schema([("a", pa.int64())]), store_schema=stored) as writer:
        writer.write_table(pa.table({"a": [1]}))
        writer.add_key_value_metadata({"ARROW:schemas": "1", "other": "ARROW:schema", "empty": ""})
    footer = footer_bytes(pa.BufferReader(sink.getvalue()))
    assert has_arrow_schema(footer) is stored
    with pytest.raises(CorruptFileError):
        has_arrow_schema(footer[: len(footer) // 2])


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN", None])
def test_columns_are_dictionaries_where_their_encoding_allows_it(encoding):
    table = pa.table({"a": ["x"] * 5, "b": ["y"] * 5})
    how = {} if encoding is None else {"use_dictionary": ["b"], "column_encoding": {"a": encoding}}
    file = parquet_file(written(table, row_group_size=2, **how), dictionary_columns=["a", "b"])
    assert file.read().cast(table.schema) == table
    deltas = str(encoding).startswith("DELTA")
    assert [pa.types.is_dictionary(t) for t in file.schema_arrow.types] == [not deltas, True]
    with pytest.raises(KeyError):
        parquet_file(written(table), dictionary_columns=["c"])


@pytest.mark.parametrize("store_schema", [True, False])
def test_int96_are_instants(tmp_path, store_schema):
    near = [datetime(1700, 1, 1, tzinfo=UTC), None, datetime(2262, 1, 1, 0, 0, 0, 7, tzinfo=UTC)]
    table = pa.table(
        {
            "at": pa.array(near, INSTANT),
            "in": pa.array([{"at": t} for t in near], pa.struct([("at", INSTANT)])),
            "many": pa.array([[t] for t in near], pa.list_(INSTANT)),
            "by": pa.array([[("k", t)] for t in near], pa.map_(pa.string(), INSTANT)),
            "d": pa.array([Decimal(1)] * 3, pa.decimal128(5, 2)),
        }
    )
    how = {"use_deprecated_int96_timestamps": True, "store_schema": store_schema}
    file = parquet_file(written(table, **how))
    assert has_int96(file)
    assert as_instants(file.schema_arrow).field("at").type == INSTANT
    (tmp_path / "f.parquet").write_bytes(written(table, **how).read())
    with Pieces(LocalStorage(str(tmp_path)), "f.parquet", dictionary_columns=()) as pieces:
        (rows,) = pieces
    assert rows.to_pylist() == table.to_pylist()
    assert not has_int96(parquet_file(written(table)))
