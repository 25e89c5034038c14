"""Columns turned into a table's types where every value survives, and the first value that does not."""

import contextlib
import datetime as dt
import gc
import math
import weakref
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.schema.exact import Exact, MisfitError, exactly, hopeless, nulls_of, without_nulls

STRICT, ROUNDS = Exact(), Exact(rounds=True)
MOMENT = dt.datetime(2024, 3, 5)


def turned(array, target, how=STRICT):
    return exactly(array, target, "c", how, None)


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([1, None, -128], pa.int64(), pa.int8()),
        ([1.0, None, -(2.0**53)], pa.float64(), pa.int64()),
        ([Decimal(7), None], pa.decimal128(10, 0), pa.int32()),
        ([2**24, None], pa.int64(), pa.float32()),
        ([2**63], pa.uint64(), pa.float64()),
        ([1.5, None, math.inf], pa.float64(), pa.float32()),
        ([MOMENT, None], pa.timestamp("us"), pa.date32()),
        ([MOMENT.date(), None], pa.date32(), pa.timestamp("us")),
        ([2**64 - 1], pa.uint64(), pa.decimal128(20, 0)),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.decimal128(10, 4)),
    ],
)
def test_values_that_lose_nothing_are_turned(values, source, target):
    found = turned(pa.array(values, source), target)
    assert found.type == target
    back = found.cast(source)
    assert back.equals(pa.array(values, source))
    assert found.null_count == values.count(None)


@pytest.mark.parametrize(
    ("values", "source", "target", "at"),
    [
        ([1, 300], pa.int64(), pa.int8(), 1),
        ([None, 1.0, 1.5, 2.5], pa.float64(), pa.int64(), 2),
        ([2.0**54], pa.float64(), pa.int64(), 0),
        ([math.nan], pa.float64(), pa.int32(), 0),
        ([0, 2**24 + 1], pa.int64(), pa.float32(), 1),
        ([0.1], pa.float64(), pa.float32(), 0),
        ([MOMENT, MOMENT + dt.timedelta(seconds=1)], pa.timestamp("us"), pa.date32(), 1),
        (["1"], pa.string(), pa.int64(), 0),
        ([None, "2024-03-05", "1"], pa.string(), pa.date32(), 2),
        (["true"], pa.string(), pa.bool_(), 0),
        ([None, True], pa.bool_(), pa.int64(), 1),
        ([MOMENT.date()], pa.date32(), pa.timestamp("us", "UTC"), 0),
    ],
)
def test_the_first_value_that_does_not_survive_is_named(values, source, target, at):
    with pytest.raises(MisfitError) as e:
        turned(pa.array(values, source), target)
    assert (e.value.path, e.value.index, e.value.target) == ("c", at, target)
    assert e.value.value == values[at] or values[at] != values[at]


def test_iso_texts_become_dates_and_times_and_the_first_other_text_is_named_with_its_reason():
    assert turned(pa.array(["2024-03-05", None]), pa.date32()).to_pylist() == [MOMENT.date(), None]
    with pytest.raises(MisfitError, match="no such day") as e:
        turned(pa.array([None, "2024-03-05", "2024-02-30", "soon"]), pa.date32())
    assert (e.value.index, e.value.value) == (2, "2024-02-30")
    how = Exact()
    moments = turned(pa.array(["2024-03-05T00:00:00Z"]), pa.timestamp("us", "UTC"), how)
    assert moments.to_pylist() == [MOMENT.replace(tzinfo=dt.UTC)]
    assert not how.without_zone
    turned(pa.array(["2024-03-05 00:00"]), pa.timestamp("us"), how)
    assert not how.without_zone
    turned(pa.array(["2024-03-05 00:00"]), pa.timestamp("us", "UTC"), how)
    assert how.without_zone == {"c"}


def test_decimals_become_the_nearest_floats():
    """Arrow makes 1.0050000000000001 of 1.005."""
    texts = ["1.005", "0.1", "-123.457", "1E-36", "4.35", "99999.999"]
    for text in texts:
        array = pa.array([Decimal(text), None])
        assert turned(array, pa.float64()).to_pylist() == [float(text), None]


def test_guessed_doubles_are_rounded_to_floats_unless_they_are_too_large():
    assert turned(pa.array([0.1, math.nan]), pa.float32(), ROUNDS)[0].as_py() == pytest.approx(0.1, rel=1e-6)
    with pytest.raises(MisfitError, match="too large"):
        turned(pa.array([1e39]), pa.float32(), ROUNDS)


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))))
def test_longs_become_doubles_only_where_the_doubles_say_the_same(values):
    fits = all(v is None or int(float(v)) == v for v in values)
    array = pa.array(values, pa.int64())
    if fits:
        assert [None if v is None else int(v) for v in turned(array, pa.float64()).to_pylist()] == values
    else:
        with pytest.raises(MisfitError, match="digits"):
            turned(array, pa.float64())


def test_a_column_of_nulls_becomes_anything_and_a_value_is_named():
    kind = pa.struct([pa.field("a", pa.int32(), nullable=False), ("b", pa.list_(pa.int8()))])
    assert hopeless(pa.nulls(3), pa.null(), kind, "c").equals(pa.array([None] * 3, kind))
    with pytest.raises(MisfitError) as e:
        hopeless(pa.array([None, "x"]), pa.string(), kind, "c")
    assert (e.value.index, e.value.value, e.value.reason) == (1, "x", "")


def test_nulls_of_a_struct_have_values_where_its_fields_must_have_them():
    inner = pa.struct([pa.field("must", pa.int64(), nullable=False), pa.field("may", pa.string())])
    made = nulls_of(2, inner)
    assert made.null_count == 2
    assert (made.field("must").null_count, made.field("may").null_count) == (0, 2)
    made.validate(full=True)
    assert without_nulls(pa.array([1, None])).null_count == 0


FAR = pa.array([2**62], pa.timestamp("us"))


@pytest.mark.parametrize(
    "far",
    [
        FAR,
        pa.ListArray.from_arrays([0, 1], FAR),
        pa.StructArray.from_arrays([FAR], names=["x"]),
        pa.MapArray.from_arrays([0, 1], pa.array(["k"]), FAR),
    ],
    ids=lambda a: str(a.type),
)
def test_values_that_python_does_not_hold_are_named_at_any_depth(far):
    with pytest.raises(MisfitError) as e:
        hopeless(far, far.type, pa.int64(), "c")
    assert str(2**62) in str(e.value.value)


class Held:
    """What a caller has in hand while values are converted, such as a scan."""


@pytest.mark.parametrize(
    ("values", "target"), [(["x"], pa.float64()), ([1.5], pa.int64()), (["x"], pa.date32())]
)
def test_a_refusal_lets_go_of_all_that_its_callers_had_without_the_garbage_collector(values, target):
    def refused():
        held = Held()
        with contextlib.suppress(MisfitError):
            exactly(pa.array(values), target, "c", Exact(), None)
            raise AssertionError(values)
        return weakref.ref(held)

    gc.disable()
    try:
        assert refused()() is None
    finally:
        gc.enable()
