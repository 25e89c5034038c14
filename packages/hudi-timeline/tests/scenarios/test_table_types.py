"""Rows of guessed or foreign types, written to a table without a JVM: the table's columns stay what they are.

Values take the table's types where nothing of them is lost, through every door; else the write is refused with column,
value and row, and nothing of it stays.
"""

import datetime
import logging
import math
import uuid

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typed_tables import DAY, GROW, MOMENT, NULLS, SCHEMA, TYPES, UTC, D, create, stored

from hudi_format.errors import MissingColumnError, SchemaError
from hudi_format.schema.meta_fields import META_COLUMNS
from hudi_timeline import HudiTable
from hudi_timeline.writing.parquet_import import import_parquet


@pytest.fixture
def table(tmp_path):
    return create(tmp_path / "t")


@pytest.fixture(scope="module")
def same_table(tmp_path_factory):
    table = create(tmp_path_factory.mktemp("types") / "t")
    table.insert([{"id": 9}], options=NULLS)
    return table


def files_of(table):
    from pathlib import Path

    return {str(f): f.read_bytes() for f in Path(table.uri).rglob("*") if f.is_file()}


# --- what fits ---------------------------------------------------------------------------------------------


def arrow(value, kind):
    return pa.array([value], kind)


def named(value):
    return str(value.type) if isinstance(value, pa.Array) else None


FITS = [
    ("n", arrow(7, pa.int64()), 7),
    ("n", arrow(7, pa.uint64()), 7),
    ("n", arrow(7, pa.int8()), 7),
    ("n", arrow(1.0, pa.float64()), 1),
    ("n", arrow(1.0, pa.float16()), 1),
    ("n", arrow(D("7.00"), pa.decimal128(6, 2)), 7),
    ("big", arrow(2**53, pa.int64()), 2**53),
    ("big", arrow(2.0**53, pa.float64()), 2**53),
    ("big", arrow(D(2**62), pa.decimal256(40, 0)), 2**62),
    ("f", arrow(0.5, pa.float64()), 0.5),
    ("f", arrow(math.inf, pa.float64()), math.inf),
    ("f", arrow(2**24, pa.int64()), 2.0**24),
    ("f", arrow(D("0.5"), pa.decimal128(3, 1)), 0.5),
    ("fare", arrow(3, pa.int64()), 3.0),
    ("fare", arrow(2**60, pa.int64()), 2.0**60),
    ("fare", arrow(-(2**63), pa.int64()), -(2.0**63)),
    ("fare", arrow(0.1, pa.float32()), 0.1),  # as it prints, in all of Apache Hudi
    ("fare", arrow(D("1.5"), pa.decimal128(2, 1)), 1.5),
    ("city", arrow("x", pa.large_string()), "x"),
    ("city", arrow("x", pa.string_view()), "x"),
    ("city", pa.array(["x"]).dictionary_encode(), "x"),
    ("city", arrow(5, pa.int64()), "5"),
    ("city", arrow(b"x", pa.binary()), "x"),
    ("city", pa.array([uuid.UUID(int=5)], pa.uuid()), str(uuid.UUID(int=5))),
    ("raw", arrow(b"abcd", pa.binary(4)), b"abcd"),
    ("raw", pa.array([uuid.UUID(int=5)], pa.uuid()), uuid.UUID(int=5).bytes),
    ("day", arrow(DAY, pa.date64()), DAY),
    ("day", arrow("2024-02-29", pa.string()), DAY),
    ("day", pa.array(["2024-02-29"]).dictionary_encode(), DAY),
    ("day", arrow("2024-02-29 00:00:00", pa.string_view()), DAY),
    ("day", arrow(datetime.datetime(2024, 2, 29), pa.timestamp("ns")), DAY),
    ("at", arrow(MOMENT, pa.timestamp("ns", "Asia/Tokyo")), MOMENT.replace(tzinfo=UTC)),
    ("at", arrow(MOMENT, pa.timestamp("s", "UTC")), MOMENT.replace(tzinfo=UTC)),
    ("at", arrow(MOMENT, pa.timestamp("us")), MOMENT.replace(tzinfo=UTC)),
    ("at", arrow("2024-02-29T13:30+01:00", pa.string()), MOMENT.replace(tzinfo=UTC)),
    ("at", arrow("2024-02-29 12:30:00", pa.large_string()), MOMENT.replace(tzinfo=UTC)),
    ("local", arrow("2024-02-29T12:30:00.000000000", pa.string()), MOMENT),
    ("local", arrow(MOMENT, pa.timestamp("ns")), MOMENT),
    ("local", arrow(DAY, pa.date32()), datetime.datetime(2024, 2, 29)),
    ("money", arrow(D("1.5"), pa.decimal128(20, 1)), D("1.50")),
    ("money", arrow(D("1.5000"), pa.decimal256(40, 4)), D("1.50")),
    ("money", arrow(7, pa.int64()), D("7.00")),
    ("money", arrow(7, pa.uint64()), D("7.00")),
    ("money", arrow(0.1, pa.float64()), D("0.10")),
    ("l", arrow([1, None], pa.large_list(pa.int64())), [1, None]),
    ("l", arrow([1.0, 2.0], pa.list_(pa.float64(), 2)), [1, 2]),
    ("l", arrow([], pa.list_(pa.null())), []),
    ("l", arrow([None, None], pa.list_(pa.null())), [None, None]),
    ("s", arrow({"y": None, "x": 1}, pa.struct([("y", pa.null()), ("x", pa.int64())])), {"x": 1, "y": None}),
    ("m", arrow([("k", 1)], pa.map_(pa.string(), pa.int64())), [("k", 1.0)]),
    ("m", arrow([("k", None)], pa.map_(pa.string(), pa.null())), [("k", None)]),
    ("m", arrow({}, pa.struct([])), []),
    ("ls", arrow([{"q": None}], pa.list_(pa.struct([("q", pa.null())]))), [{"q": None}]),
    ("ls", arrow([None, {"q": 1.0}], pa.list_(pa.struct([("q", pa.float64())]))), [None, {"q": 1}]),
]  # fmt: skip


@pytest.mark.req("SE-02")
@pytest.mark.parametrize(("column", "values", "want"), FITS, ids=named)
@pytest.mark.sampled(8)
def test_values_that_lose_nothing_take_the_tables_type(same_table, column, values, want):
    table = same_table
    result = table.upsert(pa.table({column: values, "id": pa.array([1], pa.int64())}), options=NULLS)
    assert stored(table, column) == want
    assert table.schema.equals(SCHEMA)
    assert all("null elements" in w or "taken for UTC" in w for w in result.warnings)


KINDS_OF_NULLS = [
    pa.null(),
    pa.string(),
    pa.float64(),
    pa.list_(pa.int8()),
    pa.duration("s"),
    pa.dictionary(pa.int8(), pa.null()),
]


@pytest.mark.parametrize("kind", KINDS_OF_NULLS, ids=str)
@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_nulls_of_any_type_go_into_every_column(table, operation, kind):
    nulls = (
        pa.nulls(2, kind)
        if kind != KINDS_OF_NULLS[-1]
        else pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.nulls(1))
    )
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), **dict.fromkeys(TYPES, nulls)})
    getattr(table, operation)(rows)
    assert table.schema.equals(SCHEMA)
    found = table.read(list(TYPES)).to_arrow()
    assert found.num_rows == 2
    assert {c.null_count for c in found.columns} == {2}


# --- what does not -----------------------------------------------------------------------------------------

MISFITS = [
    ("flag", arrow(1, pa.int64())),
    ("flag", arrow("true", pa.string())),
    ("n", arrow(2**31, pa.int64())),
    ("n", arrow(True, pa.bool_())),
    ("n", arrow(1.5, pa.float64())),
    ("n", arrow(math.nan, pa.float64())),
    ("n", arrow("7", pa.string())),
    ("n", arrow("7", pa.string_view())),
    ("n", arrow(D("1.5"), pa.decimal128(2, 1))),
    ("n", arrow(DAY, pa.date32())),
    ("n", arrow(datetime.timedelta(1), pa.duration("us"))),
    ("n", arrow(datetime.time(1), pa.time64("us"))),
    ("big", arrow(2**63, pa.uint64())),
    ("big", arrow(2.0**54, pa.float64())),
    ("big", arrow(2.0**25, pa.float32())),
    ("f", arrow(0.1, pa.float64())),
    ("f", arrow(1e300, pa.float64())),
    ("f", arrow(2**24 + 1, pa.int64())),
    ("fare", arrow(2**53 + 1, pa.int64())),
    ("fare", arrow(2**64 - 1, pa.uint64())),
    ("fare", arrow("1.5", pa.string())),
    ("fare", arrow(True, pa.bool_())),
    ("fare", arrow(D("0.12345678901234567890"), pa.decimal128(30, 20))),
    ("city", arrow(True, pa.bool_())),
    ("city", arrow(MOMENT, pa.timestamp("us"))),
    ("city", arrow(b"\xff", pa.binary())),
    ("city", arrow(["x"], pa.list_(pa.string()))),
    ("raw", arrow(1, pa.int64())),
    ("day", arrow(MOMENT, pa.timestamp("us"))),
    ("day", arrow(datetime.datetime(2024, 2, 29), pa.timestamp("us", "UTC"))),
    ("day", arrow("2024-2-29", pa.string())),
    ("day", arrow("2024-02-29T12:30", pa.large_string())),
    ("at", arrow("2024-02-29", pa.string())),
    ("at", arrow("2024-02-29T12:30:00.0000001Z", pa.string())),
    ("at", arrow("noon", pa.string_view())),
    ("local", arrow("2024-02-29T12:30Z", pa.string())),
    ("day", arrow(1, pa.int32())),
    ("at", arrow(1, pa.timestamp("ns", "UTC"))),
    ("at", arrow(DAY, pa.date32())),
    ("at", arrow(1, pa.int64())),
    ("local", arrow(MOMENT, pa.timestamp("us", "UTC"))),
    ("local", arrow(1, pa.timestamp("ns"))),
    ("money", arrow(D("0.005"), pa.decimal128(4, 3))),
    ("money", arrow(D("1234567.00"), pa.decimal128(9, 2))),
    ("money", arrow(0.005, pa.float64())),
    ("money", arrow("1.50", pa.string())),
    ("l", arrow(1, pa.int32())),
    ("l", arrow([1, 2**31], pa.list_(pa.int64()))),
    ("l", arrow(["1"], pa.list_(pa.string()))),
    ("s", arrow([1], pa.list_(pa.int32()))),
    ("s", arrow({"x": "1", "y": "q"}, pa.struct([("x", pa.string()), ("y", pa.string())]))),
    ("m", arrow([("k", "v")], pa.map_(pa.string(), pa.string()))),
    ("m", arrow({"x": 1}, pa.struct([("x", pa.int32())]))),
    ("ls", arrow([{"q": 1}, {"q": 1.5}], pa.list_(pa.struct([("q", pa.float64())])))),
]  # fmt: skip


@pytest.mark.req("SE-02", "NEW-36")
@pytest.mark.parametrize(("column", "values"), MISFITS, ids=named)
@pytest.mark.sampled(8)
def test_values_that_do_not_fit_are_named_and_nothing_of_the_write_stays(same_table, column, values):
    table = same_table
    before = files_of(table)
    some = pa.concat_arrays([pa.nulls(2, values.type), values, values])
    rows = pa.table({"id": pa.array([1, 2, 3, 4], pa.int32()), column: some})
    for data in (rows, pa.Table.from_batches(rows.to_batches(max_chunksize=1)), rows.to_reader(1)):
        with pytest.raises(SchemaError, match=rf"column {column}(\.\w+)* .* in row 2 ") as e:
            table.upsert(data, options=NULLS)
        assert e.value.details["row"] == 2
        assert e.value.details["column"].partition(".")[0] == column
        assert "value" in e.value.details
        assert e.value.remedy
        assert e.value.table == table.uri
        assert files_of(table) == before
    with pytest.raises(SchemaError, match="in row 2 "):
        table.schema_changes(rows, options=NULLS)
    with pytest.raises(SchemaError, match="in row 2 "):
        table.bulk_insert(rows, options=NULLS)
    assert files_of(table) == before


def test_a_stream_that_is_read_once_is_rolled_back_and_its_rows_are_counted(table):
    table.insert([{"id": 9, "n": 1}], options=NULLS)
    good = pa.record_batch({"id": pa.array([1, 2], pa.int32()), "n": pa.array([1, 2])})
    bad = pa.record_batch({"id": pa.array([3, 4], pa.int32()), "n": pa.array([3, 2**40])})
    stream = pa.RecordBatchReader.from_batches(good.schema, [good, good, bad])
    with pytest.raises(SchemaError, match=r"column n .* 1099511627776 in row 5 "):
        table.bulk_insert(stream, options=NULLS)
    assert table.read(["id", "n"]).to_arrow().to_pylist() == [{"id": 9, "n": 1}]
    assert table.schema.equals(SCHEMA)
    assert [f for f in files_of(table) if f.endswith(".parquet")] == [
        f for f in files_of(table) if ".parquet" in f
    ]
    assert len([f for f in files_of(table) if f.endswith(".parquet")]) == 1


# --- doors -------------------------------------------------------------------------------------------------

ROW = {"city": "x", "fare": 2, "n": 3, "f": 0.1, "id": 1}


def relation(row):
    picked = ", ".join(f"{'NULL' if v is None else repr(v)} AS {k}" for k, v in row.items())
    return duckdb.connect().sql(f"SELECT {picked}")  # one that no error of before holds


DOORS = {
    "list of dicts": lambda r: [r],
    "dict": lambda r: {k: [v] for k, v in r.items()},
    "pandas": lambda r: pd.DataFrame([r]),
    "polars": lambda r: pl.DataFrame([r]),
    "pyarrow": lambda r: pa.Table.from_pylist([r]),
    "stream": lambda r: pa.Table.from_pylist([r]).to_reader(),
    "DuckDB": relation,
}
OTHERS = ["insert", "insert_overwrite", "insert_overwrite_table"]


@pytest.mark.req("SE-02")
@pytest.mark.parametrize(
    ("door", "operation"),
    [*((d, o) for d in DOORS for o in ("upsert", "bulk_insert")), *(("list of dicts", o) for o in OTHERS)],
)
@pytest.mark.sampled(2)
def test_through_every_door_the_table_stays_as_it_was_declared(tmp_path, door, operation):
    table = create(tmp_path / "t", pa.schema([SCHEMA.field(n) for n in ("id", "n", "fare", "city", "f")]))
    declared = table.schema
    make = DOORS[door]
    row = {**ROW, "f": 0.5}
    for given in (row, {k: (v if k == "id" else None) for k, v in row.items()}, {**row, "n": 4}):
        getattr(table, operation)(make(given))
        assert table.schema.equals(declared)
    last = [r for r in table.read(declared.names).to_arrow().to_pylist() if r["n"] == 4]
    assert last == [{"id": 1, "n": 4, "fare": 2.0, "city": "x", "f": 0.5}]
    before = files_of(table)
    for column, value in (("fare", "abc"), ("id", "x"), ("n", 2**40), ("n", 1.5), ("fare", True)):
        with pytest.raises(SchemaError, match=rf"column {column} .* in row 0 "):
            getattr(table, operation)(make({**row, column: value}))
        assert table.schema.equals(declared)
        if door not in ("stream", "polars", "DuckDB") or operation != "bulk_insert":
            assert files_of(table) == before
    assert table.delete(make({"id": 1})).deleted >= 1


@pytest.mark.parametrize("door", ["list of dicts", "dict", "pandas"])
def test_pythons_numbers_are_rounded_to_floats_and_are_too_large_for_some(table, door):
    table.upsert(DOORS[door]({"id": 1, "f": 0.1}), options=NULLS)
    assert stored(table, "f") == pa.scalar(0.1, pa.float32()).as_py()
    with pytest.raises(SchemaError, match="too large for float"):
        table.upsert(DOORS[door]({"id": 1, "f": 1e300}), options=NULLS)


def test_a_missing_value_in_pandas_leaves_whole_numbers_whole(table):
    table.upsert(
        pd.DataFrame({"id": [1, 2], "n": [1, None], "big": [None, 5], "city": [None, None]}), options=NULLS
    )
    assert table.schema.equals(SCHEMA)
    found = table.read(["id", "n", "big"]).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 1, "n": 1, "big": None}, {"id": 2, "n": None, "big": 5}]
    table.upsert(pd.DataFrame({"id": [3], "city": [float("nan")]}), options=NULLS)
    assert stored(table, "city", 3) is None


def test_dicts_are_structs_or_maps_as_the_table_has_it(table):
    rows = [
        {"id": 1, "m": {"a": 1, "b": None}, "s": {"x": 1}},
        {"id": 2, "m": {}, "s": {}, "l": []},
        {"id": 3, "m": None, "s": None, "ls": [{}]},
        {"id": 4, "m": [("c", 2.5)]},
    ]
    for row in rows:
        table.upsert([row], options=NULLS)
    assert table.schema.equals(SCHEMA)
    assert [stored(table, "m", n) for n in (1, 2, 3, 4)] == [
        [("a", 1.0), ("b", None)],
        [],
        None,
        [("c", 2.5)],
    ]
    assert [stored(table, "s", n) for n in (1, 2, 3)] == [{"x": 1, "y": None}, {"x": None, "y": None}, None]
    assert stored(table, "ls", 3) == [{"q": None}]
    with pytest.raises(SchemaError, match=r"column m\.value .* cannot become double: 'v' in row 1 "):
        table.upsert([{"id": 1, "m": {}}, {"id": 2, "m": {"k": "v"}}], options=NULLS)


def test_dicts_with_columns_of_their_own_lose_none(table):
    table.upsert([{"id": 1, "n": 1}, {"id": 2, "city": "x"}], options=NULLS)
    assert (stored(table, "n", 1), stored(table, "city", 2)) == (1, "x")
    with pytest.raises(SchemaError, match=r"column fare: 'abc' in row 1 \(counted from 0\) has another type"):
        table.upsert([{"id": 1, "fare": 1.5}, {"id": 2, "fare": "abc"}], options=NULLS)
    with pytest.raises(SchemaError, match="column big: 36893488147419103232 in row 0"):
        table.upsert([{"id": 1, "big": 2**65}], options=NULLS)


def test_parquet_files_are_imported_into_the_tables_types(table, tmp_path):
    (tmp_path / "files").mkdir()
    pa.parquet.write_table(pa.table({"id": [1], "n": [5], "fare": [7]}), tmp_path / "files" / "a.parquet")
    given = {"hoodie.write.set.null.for.missing.columns": "true"}
    import_parquet(str(tmp_path / "files"), table.uri, given, upsert=True)
    assert table.schema.equals(SCHEMA)
    assert (stored(table, "n"), stored(table, "fare")) == (5, 7.0)


# --- columns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("meta", [True, False])
def test_what_a_read_gave_can_be_written_back_in_any_order(tmp_path, meta):
    table = create(tmp_path / "t", partition_fields=["city"])
    full = {"flag": True, "n": 1, "big": 2, "f": 0.1, "fare": 0.1, "city": "x", "raw": b"r", "day": DAY,
            "at": MOMENT.replace(tzinfo=UTC), "local": MOMENT, "money": D("1.50"), "l": [1, None],
            "s": {"x": 1, "y": "q"},            "m": [("k", 1.5)], "ls": [{"q": 1}, None]}  # fmt: skip
    table.insert(pa.Table.from_pylist([{"id": 1, **full}], schema=SCHEMA))
    want = table.read(SCHEMA.names).to_arrow()
    read = table.read(meta_columns=meta).to_arrow()
    turned = read.select([*[n for n in META_COLUMNS if n in read.schema.names], *SCHEMA.names[::-1]])
    for data in (
        read,
        turned,
        turned.to_reader(),
        pl.from_arrow(turned.drop_columns(["m"])),
        turned.to_pylist(),
        turned.to_pandas(),
    ):
        table.upsert(data, options=NULLS if isinstance(data, pl.DataFrame) else {})
        assert table.schema.equals(SCHEMA)
        found = table.read(SCHEMA.names).to_arrow()
        if isinstance(data, pl.DataFrame):  # which has no maps
            assert found.drop_columns(["m"]).equals(want.drop_columns(["m"]))
        else:
            assert found.equals(want)


def test_new_columns_come_last_and_those_of_nulls_only_are_left_out(table, caplog):
    row = {
        "new": 1,
        "id": 1,
        "none": None,
        "s": {"z": 1, "x": 1, "y": "q", "w": None},
        "ls": [{"r": "t", "q": 1}],
    }
    with caplog.at_level(logging.WARNING, "hudi"):
        result = table.upsert([row], options=NULLS)
    assert table.schema.names == [*SCHEMA.names, "new"]
    assert [f.name for f in table.schema.field("s").type] == ["x", "y", "z"]
    assert [f.name for f in table.schema.field("ls").type.value_type] == ["q", "r"]
    (warning,) = result.warnings
    assert warning.startswith("none, s.w: left out")
    assert "none, s.w: left out" in caplog.text
    assert stored(table, "s") == {"x": 1, "y": "q", "z": 1}
    table.upsert([{"id": 1, "none": "now it has one"}], options=NULLS)
    assert table.schema.names == [*SCHEMA.names, "new", "none"]


@pytest.mark.parametrize("values", [[None], [[]], [[None]], [{}], [{"a": None}], [[{"a": None}]]], ids=str)
def test_what_a_first_write_has_of_nulls_is_left_out_or_refused(tmp_path, values):
    from hudi_format.storage.local import LocalStorage
    from hudi_timeline.writing.local_engine import LocalEngine
    from hudi_timeline.writing.operation import execute

    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    storage = LocalStorage(str(tmp_path / "t"))
    rows = pa.table({"id": [1], "new": values})
    if values == [None]:
        assert "new: left out" in execute(LocalEngine(), storage, rows, options).warnings[0]
        assert HudiTable._of(storage).schema.names == ["id"]
    else:
        with pytest.raises(SchemaError, match="column new"):
            execute(LocalEngine(), storage, rows, options)
        assert storage.list("") == []


def test_missing_columns_and_values_of_required_ones_are_refused(tmp_path):
    kind = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    schema = pa.schema(
        [
            SCHEMA.field("id"),
            pa.field("n", pa.int32(), nullable=False),
            ("s", kind),
            ("l", pa.list_(pa.field("element", kind, nullable=False))),
        ]
    )
    table = create(tmp_path / "t", schema)
    table.insert([{"id": 1, "n": 1, "s": {"x": 1}, "l": [{"x": 1}]}])
    assert table.schema.equals(schema)
    for row, column in (
        ({"n": None}, "n"), ({"id": None}, "id"), ({"s": {"x": None}}, r"s\.x"),
        ({"l": [{"x": 1}, None]}, r"l\.element"), ({"l": [{"x": None}]}, r"l\.element\.x"),
    ):  # fmt: skip
        good = {"id": 2, "n": 2, "s": {"x": 2}, "l": []}
        with pytest.raises(SchemaError, match=rf"column {column} must not be null, but is null in row 1 "):
            table.upsert([good, {**good, **row}])
    with pytest.raises(MissingColumnError, match="n \\(int32\\)") as e:
        table.upsert([{"id": 2, "s": None, "l": None}])
    assert all(o in e.value.remedy for o in ("set.null.for.missing.columns", "column.drop"))
    with pytest.raises(MissingColumnError, match="must not be null: n"):
        table.upsert([{"id": 2, "s": None, "l": None}], options=NULLS)
    table.upsert([{"id": 2, "n": 2, "s": None}], options=NULLS)
    assert table.schema.equals(schema)


def test_names_of_columns_are_told_apart_as_before(table):
    for rows, match in (
        (pa.table({"id": [1], "Fare": [1.5]}), "in case only"),
        (pa.table([[1], [1], [2]], names=["id", "n", "n"]), "duplicated"),
        (pa.table({"id": [1], "s": [{"X": 1}]}), "in case only"),
    ):
        with pytest.raises(SchemaError, match=match):
            table.upsert(rows, options=NULLS)


# --- on purpose --------------------------------------------------------------------------------------------


@pytest.mark.req("SE-02")
def test_types_grow_where_that_is_asked_for(table):
    wide = pa.table({"id": pa.array([1], pa.int32()), "n": [2**40]})
    with pytest.raises(SchemaError, match="in row 0 ") as e:
        table.upsert(wide, options=NULLS)
    assert "hudi.write.types=data the whole column becomes int64" in e.value.remedy
    result = table.upsert(wide, options=NULLS | GROW)
    assert table.schema.field("n").type == pa.int64()
    assert "column n is int64 from now on, it was int32" in result.warnings[0]
    fields = [{"name": "id", "type": "int"}, {"name": "n", "type": ["null", "double"], "default": None}]
    given = {
        "hoodie.write.schema": '{"type": "record", "name": "t", "fields": '
        + str(fields).replace("'", '"').replace("None", "null")
        + "}"
    }
    table.upsert([{"id": 2, "n": 1}], options=given | NULLS)
    assert table.schema.field("n").type == pa.float64()


def test_an_option_that_is_neither_is_refused(table):
    with pytest.raises(ValueError, match=r"hudi\.write\.types"):
        table.upsert([{"id": 1}], options={"hudi.write.types": "both"})
