"""Rows in every form in which callers have them, as the same Arrow data; and what is no table."""

import datetime as dt
import subprocess
import sys
import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hudi_format.errors import MissingColumnError, SchemaError
from hudi_format.schema.exact import Exact
from hudi_format.schema.fit import fit
from hudi_format.schema.input_rows import as_reader, telling_the_index, types_are_guessed

ROWS = [{"id": "a", "n": 1}, {"id": "b", "n": None}]
TABLE = pa.Table.from_pylist(ROWS)


class Stream:
    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


FORMS = {
    "table": TABLE,
    "reader": TABLE.to_reader(),
    "batch": TABLE.to_batches()[0],
    "batches": [TABLE.to_batches()[0].slice(n, 1) for n in range(2)],
    "stream": Stream(),
    "dicts": ROWS,
    "columns": {"id": ["a", "b"], "n": [1, None]},
    "pandas": pd.DataFrame({"id": ["a", "b"], "n": pd.array([1, None], dtype="Int64")}, index=[7, 9]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_rows(form):
    found = as_reader(FORMS[form])
    table = found if isinstance(found, pa.Table) else found.read_all()
    assert table.to_pylist() == ROWS
    assert types_are_guessed(FORMS[form]) == (form in ("dicts", "columns", "pandas"))


def test_a_column_that_only_a_later_row_has_is_there():
    assert as_reader([{"a": 1}, {"b": 2}]).to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_dicts_are_maps_where_the_table_says_so():
    schema = pa.schema(
        [
            ("m", pa.map_(pa.string(), pa.int64())),
            ("s", pa.struct([("a", pa.int64())])),
            ("l", pa.list_(pa.map_(pa.string(), pa.int64()))),
        ]
    )
    asked = []

    def known():
        asked.append(1)
        return schema

    found = as_reader({"m": [[("x", 1)], None], "s": [{"a": 1}, None], "l": [[{"y": 2}], []]}, known)
    assert found.schema.field("l").type == schema.field("l").type
    assert found.schema.field("s").type == schema.field("s").type
    assert asked
    as_reader({"n": [1]}, lambda: pytest.fail("values that say what they are ask for nothing"))


MAPS = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (MAPS, [[], None, []]),
        (pa.list_(MAPS), [[[]], [], None]),
        (pa.struct([("m", MAPS), ("n", pa.int64())]), [{"m": [], "n": 1}, {"m": None, "n": 2}, None]),
    ],
    ids=str,
)
def test_maps_of_nothing_that_a_read_gave_as_lists_are_maps(kind, values):
    column = pa.array(values, kind)
    found = as_reader({"m": column.to_pylist()}, lambda: pa.schema([("m", kind)]))
    assert found.column("m").type == kind
    assert found.column("m").to_pylist() == values


@pytest.mark.parametrize("data", ["rows.csv", Path("rows.parquet")])
def test_a_path_is_told_what_opens_it(data):
    with pytest.raises(SchemaError, match="cannot read rows from") as e:
        as_reader(data)
    assert "dataset(path)" in e.value.remedy
    assert "hudi import" in e.value.remedy


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"n": [1, 2, "x"]},
            r"column n: 'x' in row 2 \(counted from 0\) has another type than the values before it",
        ),
        ({"a": [1], "b": [1, 2]}, "do not form a table"),
        ({1: ["a"]}, "a column has the name 1, which is no text"),
        ([{"a": 1}, {None: 1}], "a column has the name None, which is no text"),
        ({"id": "abc", "v": [1, 2, 3]}, "column id is one str, 'abc', and no list of values"),
        ({"id": "a", "v": b"x"}, "column id is one str"),
        ({"s": {"a": 1}}, "column s is one dict"),
        ({"n": 1}, "column n is one int, 1, and no list of values"),
        ([{"\ud800": 1}], "a column has the name '.*ud800', which is no text"),
        (7, "cannot read rows from int"),
        ([], "an empty list has no columns"),
        (np.ones((2, 2)), "cannot read rows from ndarray"),
        ("text", "cannot read rows from str"),
    ],
)
def test_what_makes_no_table_is_told_with_its_place(data, message):
    with pytest.raises(SchemaError, match=message):
        as_reader(data)


@pytest.mark.parametrize(
    ("column", "message", "remedy"),
    [
        (pd.arrays.SparseArray([0, 1]), "column v is sparse", "to_dense()"),
        (np.array([1j, 2j]), "column v holds complex numbers", "real and imaginary"),
    ],
)
def test_columns_of_pandas_that_arrow_does_not_have_are_named(column, message, remedy):
    with pytest.raises(SchemaError, match=message) as e:
        as_reader(pd.DataFrame({"id": [1, 2], "v": column}))
    assert remedy in e.value.remedy
    assert e.value.details["column"] == "v"


def test_a_column_that_is_the_index_of_a_frame_is_found_there():
    frame = pd.DataFrame({"v": [1]}, index=pd.MultiIndex.from_tuples([("a", 1)], names=["id", "city"]))
    for data, missing, found in ((frame, "city", True), (frame, "v", False), ({"v": [1]}, "city", False)):
        with pytest.raises(MissingColumnError) as e, telling_the_index(data):
            raise MissingColumnError("no column", remedy="add the column.", column=missing)
        assert ("reset_index()" in e.value.remedy) is found


@pytest.mark.parametrize(
    ("unit", "n", "kind", "expected"),
    [
        ("Y", 1, pa.date32(), dt.date(1971, 1, 1)),
        ("M", 2, pa.date32(), dt.date(1970, 3, 1)),
        ("W", 1, pa.date32(), dt.date(1970, 1, 8)),
        ("D", -1, pa.date32(), dt.date(1969, 12, 31)),
        ("h", 25, pa.timestamp("s"), dt.datetime(1970, 1, 2, 1)),
        ("m", -1, pa.timestamp("s"), dt.datetime(1969, 12, 31, 23, 59)),
        ("s", 1, pa.timestamp("s"), dt.datetime(1970, 1, 1, 0, 0, 1)),
        ("ms", 1, pa.timestamp("ms"), dt.datetime(1970, 1, 1, 0, 0, 0, 1000)),
        ("us", 1, pa.timestamp("us"), dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
    ],
)
def test_moments_of_numpy_are_dates_and_timestamps_in_each_of_its_units(unit, n, kind, expected):
    scalar = np.datetime64(n, unit)
    for values in ([scalar, None], np.array([scalar, "NaT"], f"datetime64[{unit}]")):
        found = as_reader({"d": values}).column("d")
        assert found.type == kind
        assert found.to_pylist() == [expected, None]


def test_dates_of_numpy_among_other_values_are_told():
    with pytest.raises(SchemaError, match=r"column d: .*2020-01-01.* in row 1"):
        as_reader({"d": [1, np.datetime64("2020-01-01")]})


def test_a_table_of_invalid_data_is_refused():
    offsets = pa.py_buffer(b"\0\0\0\0\1\0\0\0")
    broken = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff")])
    with pytest.raises(SchemaError, match="UTF"):
        as_reader(pa.table({"c": broken}))


DAY, HOUR = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)


@pytest.mark.parametrize(
    "data",
    [
        {"d": [DAY, HOUR]},
        [{"d": DAY}, {"d": HOUR}],
        {"d": [[DAY], [None, HOUR]]},
        {"d": [{"x": DAY}, {"x": HOUR}]},
        pd.DataFrame({"d": pd.Series([DAY, HOUR], dtype=object)}),
        pd.DataFrame({"d": [{"x": DAY}, {"x": HOUR}]}),
    ],
    ids=str,
)
def test_a_time_of_day_among_dates_is_refused(data):
    with pytest.raises(SchemaError, match=r"in row 1 \(counted from 0\) has a time of day"):
        as_reader(data)


AWARE = HOUR.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [(HOUR, AWARE, "has a time zone, and values before it have none"), (AWARE, HOUR, "has no time zone")],
    ids=["a zone later", "no zone later"],
)
@pytest.mark.parametrize(
    "rows",
    [
        lambda *v: {"d": [None, *v]},
        lambda *v: [{}, *({"d": x} for x in v)],
        lambda *v: {"d": [[], *([None, x] for x in v)]},
        lambda *v: {"d": [None, *({"x": x} for x in v)]},
        lambda *v: pd.DataFrame({"d": pd.Series([pd.NaT, *v], dtype=object)}),
    ],
    ids=["columns", "rows", "lists", "structs", "pandas"],
)
def test_moments_with_and_without_a_zone_are_no_column(rows, first, second, what):
    with pytest.raises(SchemaError, match=rf"in row 2 \(counted from 0\) {what}"):
        as_reader(rows(first, second))


def test_moments_of_several_zones_are_one_column():
    data = {"d": [AWARE, None, AWARE.astimezone(dt.UTC)]}
    assert as_reader(data)["d"].to_pylist() == [AWARE, None, AWARE]


def test_midnights_among_dates_are_dates():
    midnight = dt.datetime(2020, 1, 2)
    for data in (
        {"d": [DAY, midnight, None]},
        pd.DataFrame({"d": pd.Series([DAY, midnight, pd.NaT], dtype=object)}),
    ):
        assert as_reader(data).column(0).to_pylist() == [DAY, midnight.date(), None]


def test_a_pandas_frame_of_nested_columns_only():
    frame = pd.DataFrame({"k": [{"a": 1}, {"a": 2}], "l": [[1], []]})
    assert as_reader(frame).to_pylist() == [{"k": {"a": 1}, "l": [1]}, {"k": {"a": 2}, "l": []}]


ID = uuid.UUID(int=5)


@pytest.mark.parametrize(
    ("values", "kind", "found"),
    [
        ([ID, "a", None], None, [str(ID), "a", None]),
        ([[ID], None], None, [[str(ID)], None]),
        ([{"u": ID, "n": 1}], None, [{"u": str(ID), "n": 1}]),
        ([{"u": ID}], pa.map_(pa.string(), pa.string()), [[("u", str(ID))]]),
        ([[{"u": ID}]], pa.list_(pa.struct([("u", pa.binary(16))])), [[{"u": ID.bytes}]]),
        ([{"u": ID}], pa.map_(pa.string(), pa.binary()), [[("u", ID.bytes)]]),
        ([ID, b"a"], pa.binary(), [ID.bytes, b"a"]),
    ],
)
def test_uuids_at_any_depth_are_text_or_the_bytes_that_the_table_has(values, kind, found):
    known = None if kind is None else lambda: pa.schema([("c", kind)])
    assert as_reader({"c": values}, known)["c"].to_pylist() == found
    frame = pd.DataFrame({"c": pd.Series(values, dtype="object"), "n": range(len(values))})
    assert as_reader(frame, known)["c"].to_pylist() == found


def test_a_column_of_uuids_and_numbers_is_refused_at_the_first_number():
    with pytest.raises(SchemaError) as e:
        as_reader({"c": [ID, None, 1]})
    assert (e.value.details["column"], e.value.details["row"]) == ("c", 2)


def _broken(error):
    yield {"id": 1}
    raise error


@pytest.mark.parametrize(
    "error", [ValueError("no more"), KeyError("x"), RuntimeError("gone\nfor good")], ids=repr
)
def test_a_source_that_fails_is_told_as_that_with_its_own_error_as_the_cause(error):
    with pytest.raises(SchemaError, match=f"reading rows failed: {type(error).__name__}: ") as e:
        as_reader(_broken(error))
    assert e.value.__cause__ is error
    assert "\n" not in str(e.value)
    schema = pa.schema([("id", pa.int64())])
    batches = (pa.record_batch([[row["id"]]], schema=schema) for row in _broken(error))
    with pytest.raises(
        SchemaError, match=f"the stream of rows after 1 batches failed: {type(error).__name__}"
    ):
        as_reader(pa.RecordBatchReader.from_batches(schema, batches)).read_all()


def test_an_interrupt_of_a_source_stays_one():
    with pytest.raises(KeyboardInterrupt):
        as_reader(_broken(KeyboardInterrupt()))


def test_a_lazy_frame_that_cannot_be_collected_is_told():
    polars = pytest.importorskip("polars")
    with pytest.raises(SchemaError, match="reading the LazyFrame failed: ColumnNotFoundError: ") as e:
        as_reader(polars.LazyFrame({"id": [1]}).select("nope"))
    assert "\n" not in str(e.value)


def test_integers_of_128_bits_are_told_by_column():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": [1], "wide": polars.Series([2**100], dtype=polars.Int128)})
    with pytest.raises(SchemaError, match="column wide has Polars' type Int128") as e:
        as_reader(frame)
    assert "Decimal(38, 0)" in e.value.remedy


def test_a_series_and_a_stream_that_fails_are_no_table():
    class Failing:
        def __arrow_c_stream__(self, requested_schema=None):
            raise RuntimeError("no stream today")

    with pytest.raises(SchemaError, match="Failing gives no Arrow stream of a table: no stream today"):
        as_reader(Failing())
    polars = pytest.importorskip("polars")
    with pytest.raises(SchemaError, match="Series gives no Arrow stream of a table"):
        as_reader(polars.Series("id", [1]))


def test_batches_of_other_columns_are_refused_with_the_first_that_differs():
    one, other = pa.record_batch({"id": [1]}), pa.record_batch({"id": ["a"]})
    for rows in (
        [one, other],
        iter([one, other]),
        pa.RecordBatchReader.from_batches(one.schema, iter([one, other])),
    ):
        with pytest.raises(SchemaError, match=r"batch 1 .* has column id as string, and not as int64"):
            as_reader(rows).read_all()
    with pytest.raises(SchemaError, match=r"batch 1 .* has the columns no, and not id"):
        as_reader([one, pa.record_batch({"no": [1]})])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(pa.int32()), [[1, None], None, []]),
        (pa.list_(pa.float32()), [[0.5, None], [1.0]]),
        (pa.list_(pa.list_(pa.int32())), [[[1, None], None, [2]], None]),
        (pa.list_(pa.string()), [["a", None], None]),
        (pa.list_(pa.date32()), [[dt.date(2024, 3, 5), None], []]),
    ],
    ids=str,
)
def test_what_arrow_gives_to_pandas_comes_back_with_its_nulls(kind, values):
    given = pa.table({"id": list(range(len(values))), "l": pa.array(values, kind)})
    assert as_reader(given.to_pandas())["l"].to_pylist() == values


def test_a_generator_that_was_read_to_its_end_is_no_table_without_rows():
    rows = ({"a": n} for n in range(2))
    assert as_reader(rows).num_rows == 2
    closed = ({"a": n} for n in range(2))
    closed.close()
    for gone in (rows, closed):
        with pytest.raises(SchemaError, match="generator given for rows was read to its end"):
            as_reader(gone, lambda: pa.schema([("a", pa.int64())]))
        with pytest.raises(SchemaError, match="generator given for column a was"):
            as_reader({"a": gone})
    # One that never had a row, or has some left, is as good as any.
    some = iter([{"a": 1}, {"a": 2}])
    next(some)
    assert as_reader(some).num_rows == 1
    none = (n for n in ())
    assert as_reader(none, lambda: pa.schema([("a", pa.int64())])).num_rows == 0


NO_PAIRS = """
import collections
import pyarrow as pa
from hudi_format.errors import SchemaError
from hudi_format.schema.input_rows import as_reader

MAP = pa.map_(pa.string(), pa.int64())
OF_MAPS = pa.map_(pa.string(), pa.list_(MAP))
SOUND = [("a", 1)]
for kind, sound, lacking in (
    (MAP, SOUND, [("a", 1), None]),
    (MAP, SOUND, (None,)),
    (MAP, SOUND, {None}),
    (MAP, SOUND, collections.deque([None])),
    (pa.list_(MAP), [SOUND], [[None]]),
    (pa.struct([("n", pa.int64()), ("m", MAP)]), {"m": SOUND}, {"m": [None]}),
    (pa.struct([("n", pa.int64()), ("m", MAP)]), {"m": SOUND}, (1, [None])),
    (pa.struct([("n", pa.int64()), ("m", MAP)]), {"m": SOUND}, [("m", [None])]),
    (OF_MAPS, [("k", [SOUND])], [("k", [[None]])]),
    (OF_MAPS, {"k": [SOUND]}, {"k": [[None]]}),
):
    try:
        found = as_reader({"c": [None, sound, lacking]}, lambda: pa.schema([("c", kind)]))
    except SchemaError as e:
        assert e.details["column"] == "c" and e.details.get("row", 2) == 2, (kind, lacking, e)
    else:
        assert found.column("c").type != kind, (kind, lacking)
print("all are told")
"""


def test_a_null_in_the_place_of_a_maps_pair_does_not_end_the_process():
    ended = subprocess.run([sys.executable, "-c", NO_PAIRS], capture_output=True, text=True, check=False)
    assert ended.stdout == "all are told\n", ended


def test_pairs_and_dicts_are_maps_at_any_depth():
    kind = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.map_(pa.string(), pa.int64()))))])
    deep = [("k", [[("a", 1)], None]), ("l", None)]
    found = as_reader({"c": [{"m": deep}, {"m": dict(deep)}, {"m": None}]}, lambda: pa.schema([("c", kind)]))
    assert found.column("c").to_pylist() == [{"m": deep}, {"m": deep}, {"m": None}]


MAP = pa.map_(pa.string(), pa.int64())
OF_DATES = pa.map_(pa.string(), pa.date32())
NOON = dt.datetime(2024, 1, 1, 12)


@pytest.mark.parametrize("form", [dict, list], ids=["dicts", "pairs"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (MAP, lambda form: form([("a", 1.5)])),
        (OF_DATES, lambda form: form([("a", NOON)])),
        (pa.list_(MAP), lambda form: [form([("a", 1.5)])]),
        (pa.struct([("m", MAP)]), lambda form: {"m": form([("a", 1.5)])}),
        (pa.struct([("m", MAP), ("n", pa.int64())]), lambda form: {"m": form([("a", 1)]), "n": 1.5}),
        (pa.struct([("m", MAP), ("d", pa.date32())]), lambda form: {"m": form([("a", 1)]), "d": NOON}),
        (pa.map_(pa.string(), MAP), lambda form: {"k": form([("a", 1.5)])}),
    ],
    ids=["map", "dates", "list", "struct", "beside", "date-beside", "map-of-maps"],
)
def test_what_a_map_or_the_struct_around_it_does_not_hold_is_refused_and_not_cut(kind, value, form):
    schema = pa.schema([("c", kind)])
    given = as_reader({"c": [None, value(form)]}, lambda: schema)
    with pytest.raises(SchemaError) as caught:
        fit(given, schema, exact=Exact())
    assert caught.value.details["row"] == 1


def test_members_beside_a_map_that_the_table_lacks_are_there():
    schema = pa.schema([("c", pa.struct([("m", MAP)]))])
    for map_ in ({"a": 1}, [("a", 1)]):
        assert as_reader({"c": [{"m": map_, "x": 5}]}, lambda: schema).column("c").to_pylist() == [
            {"m": [("a", 1)], "x": 5}
        ]


def test_nanoseconds_in_a_map_are_refused():
    schema = pa.schema([("c", pa.map_(pa.string(), pa.timestamp("us")))])
    for map_ in ({"a": pd.Timestamp(1)}, [("a", pd.Timestamp(1))]):
        with pytest.raises(SchemaError, match="has nanoseconds"):
            as_reader({"c": [map_]}, lambda: schema)


IN_STRUCT = pa.struct([("m", MAP), ("n", pa.int64())])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (MAP, {"a": Fraction(1, 2)}),
        (MAP, [("a", Fraction(1, 2))]),
        (MAP, {"a": 1, "b": True}),
        (MAP, {"a": 1.5, "b": Decimal("1.5")}),
        (MAP, {"a": Decimal("1.5"), "b": np.int64(2**53 + 1)}),
        (MAP, {"a": pa.scalar(1), "b": True}),
        (MAP, {"a": np.float32(0.5), "b": np.float16(1.5)}),
        (OF_DATES, {"a": Decimal("0.1"), "b": 5}),
        (pa.map_(pa.string(), pa.timestamp("us")), {"a": 16777217.0, "b": Decimal("0.1")}),
        (pa.map_(pa.string(), pa.float64()), {"a": 1, "b": np.uint64(2**64 - 1), "c": -1}),
        (IN_STRUCT, ({"a": 1}, 1.5)),
        (pa.list_(MAP), [{"a": Fraction(1, 2)}]),
        (pa.map_(pa.string(), IN_STRUCT), {"k": ({"a": 1}, 1.5)}),
    ],
)
def test_values_in_a_map_that_have_no_one_type_are_refused_and_not_made_the_tables(kind, value):
    schema = pa.schema([("c", kind)])
    with pytest.raises(SchemaError) as caught:
        as_reader([{"c": None}, {"c": value}], lambda: schema)
    assert (caught.value.details["column"], caught.value.details["row"]) == ("c", 1)
