"""Values of several kinds in one column: the same values in Arrow, or an error with the place; never other values."""

import datetime as dt
import itertools
import subprocess
import sys
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_format.schema.input_rows import as_reader

UTC = dt.UTC
VALUES = [
    True, 1, 2**40, 2**53 + 1, 1.5, float("inf"), Decimal("1.5"), Decimal("1E-10"), "a", b"a", bytearray(b"b"),
    memoryview(b"c"), np.str_("s"), np.bytes_(b"q"), np.int8(3), np.uint64(2**64 - 1), np.float16(1.5),
    np.float32(0.1), np.bool_(True), np.datetime64("2024-01-01"), np.datetime64("2024-01-01T01:02:03.123456789"),
    dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC),
    pd.Timestamp(1), pd.Timestamp(1, tz="UTC"), pd.Timestamp("2024-07-01", tz="Europe/Oslo"), dt.time(1, 2),
    dt.timedelta(1), uuid.UUID(int=5), [1], [1.5], ["a"], [b"a"], [None], [], (1, 2), {1}, {"a": 1}, {"a": "x"},
    {"a": b"x"}, {"b": 2}, {"a": pd.Timestamp(1)}, [dt.date(2024, 1, 1)], [dt.datetime(2024, 1, 1, 5)],
    np.array([1, 2]), range(2), None, pd.NaT, pd.NA, 1j,
]  # fmt: skip
FORMS = {
    "dicts": lambda values: [{"x": v} for v in values],
    "generator": lambda values: iter([{"x": v} for v in values]),
    "lists": lambda values: {"x": list(values)},
    "pandas": lambda values: pd.DataFrame({"x": pd.Series(list(values), dtype=object)}),
    "inside a list": lambda values: {"x": [list(values)]},
    "inside a struct": lambda values: {"x": [{"z": v} for v in values]},
}


def _is_same(given, found):
    """Whether a value of Arrow is the one that was given, of its kind."""
    if given is None or given is pd.NaT or given is pd.NA:
        return found is None
    if isinstance(given, (set, tuple, range, np.ndarray)):
        given = list(given)
    if isinstance(given, list):
        return isinstance(found, list) and len(given) == len(found) and all(map(_is_same, given, found))
    if isinstance(given, dict):
        return isinstance(found, dict) and all(
            _is_same(given.get(k), found.get(k)) for k in given.keys() | found
        )
    if isinstance(given, uuid.UUID):
        return str(given) == str(found)
    if isinstance(given, (bytearray, memoryview)):
        given = bytes(given)
    if isinstance(given, np.datetime64):
        return pd.Timestamp(given) == pd.Timestamp(found)
    if isinstance(given, dt.datetime) and type(found) is dt.date:
        return given == dt.datetime.combine(found, dt.time())
    booleans = [isinstance(v, (bool, np.bool_)) for v in (given, found)]
    return booleans[0] == booleans[1] and bool(given == found)


@pytest.mark.parametrize("form", FORMS)
def test_no_pair_of_values_becomes_another_one(form):
    """Arrow makes 5 of a UUID beside a number, -1.0 of 2**64 - 1 beside a fraction, and b'a' of text beside bytes."""
    written = 0
    for pair in itertools.product(VALUES, VALUES):
        try:
            table = as_reader(FORMS[form](pair))
        except SchemaError:
            continue
        found = table.column("x").to_pylist()
        if form == "inside a list":
            found = found[0]
        if form == "inside a struct":
            found = [row["z"] for row in found]
        assert all(map(_is_same, pair, found)), (pair, found)
        written += 1
    assert written > len(VALUES), "most values are a column by themselves"


@pytest.mark.parametrize(
    ("values", "row", "what"),
    [
        (["a", "b", b"c"], 2, "has another type than the values before it"),
        ([1, uuid.UUID(int=5)], 1, "has another type than the values before it"),
        ([None, True, 1.5], 2, "has another type than the values before it"),
        ([[1], ["a", b"b"]], 1, "has values of several types"),
        ([{"a": 1}, {"a": True}], 1, "has another type than the values before it"),
        ([pd.Timestamp("2024-01-01"), pd.Timestamp(1)], 1, "has nanoseconds, which a table does not store"),
        ([dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC)], 1, "has a time zone"),
        ([1, 2**64], 1, "does not fit into 64 bits"),
        (["a", "\ud800"], 1, "is half of a surrogate pair"),
    ],
)
@pytest.mark.parametrize("form", ["dicts", "pandas"])
def test_the_first_value_that_does_not_fit_is_named(values, row, what, form):
    with pytest.raises(SchemaError, match=rf"column x: .* in row {row} \(counted from 0\) {what}") as e:
        as_reader(FORMS[form](values))
    assert e.value.details["row"] == row
    assert e.value.remedy
    str(e.value).encode()


def test_numbers_of_numpy_of_several_kinds_are_taken_by_their_value():
    assert as_reader({"x": [np.float16(1.5), 2]}).column("x").to_pylist() == [1.5, 2.0]
    assert as_reader({"x": [{"a": np.int8(3)}, {"a": 0.5}]}).column("x").to_pylist() == [
        {"a": 3.0},
        {"a": 0.5},
    ]
    assert as_reader({"x": [np.int8(3), None]}).schema.field("x").type == pa.int8()


def test_nat_and_na_of_records_are_nulls():
    frame = pd.DataFrame({"at": pd.to_datetime([None, "2024-01-01"]), "n": pd.array([None, 2], "Int64")})
    days = [{"d": dt.date(2024, 1, 1)}, {"d": pd.NaT}]
    assert as_reader({"s": days}).column("s").to_pylist() == [days[0], {"d": None}]
    assert as_reader(frame.to_dict("records")).to_pylist() == [
        {"at": None, "n": None},
        {"at": dt.datetime(2024, 1, 1), "n": 2},
    ]


def test_pairs_of_a_map_have_two_types():
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int64()))])
    rows = [{"m": [("a", 1), ("b", None)]}, {"m": {"c": 2}}]
    assert as_reader(rows, lambda: schema).column("m").to_pylist() == [[("a", 1), ("b", None)], [("c", 2)]]
    with pytest.raises(SchemaError, match=r"column m: .* has values of several types"):
        as_reader([{"m": [("a", 1), ("b", True)]}], lambda: schema)


BESIDE_DATES = """
import numpy as np
import pyarrow as pa
from hudi_format.errors import SchemaError
from hudi_format.schema.input_rows import as_reader

DAYS = [np.datetime64("2024-01-01")]
for array in (np.array([1]), np.array([1.5]), np.array([]), np.array([True]), np.array(["a"]), np.zeros((1, 1))):
    for values in ([DAYS, array], [None, DAYS, array], [[DAYS], [array]], [{"d": DAYS}, {"d": array}]):
        try:
            found = as_reader({"c": values})
        except SchemaError as e:
            assert e.details["row"] == len(values) - 1, e
        else:
            raise AssertionError((values, found))
schema = pa.schema([("c", pa.map_(pa.string(), pa.int64()))])
for value in ((DAYS[0], 1), (DAYS[0], np.int8(1)), [(DAYS[0], 1)], [("a", DAYS[0]), np.array([1])]):
    try:
        found = as_reader({"c": [("a", 1), value] if isinstance(value, tuple) else [value]}, lambda: schema)
    except SchemaError as e:
        assert e.details["column"] == "c", e
    else:
        raise AssertionError((value, found))
print("all are told")
"""


def test_an_array_beside_a_list_of_dates_of_numpy_does_not_end_the_process():
    ended = subprocess.run([sys.executable, "-c", BESIDE_DATES], capture_output=True, text=True, check=False)
    assert ended.stdout == "all are told\n", ended


def test_arrays_beside_lists_of_the_same_kind_are_one_column():
    for ours, array in (
        ([1], np.array([2])),
        ([1.5], np.array([2.5])),
        (["a"], np.array(["b"])),
        ([b"a"], np.array([b"b"])),
    ):
        assert as_reader({"c": [ours, array]}).column("c").to_pylist() == [ours, array.tolist()]
    day = np.datetime64("2024-01-01", "ns")
    assert as_reader({"c": [[day], np.array([day])]}).column("c").to_pylist() == [[pd.Timestamp(day)]] * 2


@pytest.mark.parametrize("other", [5, -1, np.int8(3), np.uint64(5)])
@pytest.mark.parametrize(
    "of", [lambda v: v, lambda v: [v], lambda v: {"x": v}], ids=["flat", "list", "struct"]
)
def test_long_doubles_beside_whole_numbers_are_refused_and_not_cut(of, other):
    for values in ([other, np.longdouble(0.5)], [np.longdouble(0.5), other]):
        with pytest.raises(SchemaError, match="in row 1"):
            as_reader({"c": [of(v) for v in values]})
