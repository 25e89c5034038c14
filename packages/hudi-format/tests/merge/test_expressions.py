"""Merge expressions against a plain reference, and sums at their limits."""

import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_format.errors import SchemaError
from hudi_format.merge import record_merger
from hudi_format.merge.expressions import NAMES, combine_column
from hudi_format.merge.log_entries import Entries
from hudi_format.merge.user_merger import Chains, CustomMerge

SCHEMA = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("count", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("flag", pa.bool_()),
        ("text", pa.string()),
    ]
)


def plain(name, old, new, newer):
    """One expression on Python values."""
    pair = [v for v in (old, new) if v is not None]
    if name in ("last", "first"):
        return new if name == "last" else old
    if name == "latest":
        return new if newer else old
    if not pair:
        return None
    if name == "non_null":
        return pair[-1]
    if name in ("sum", "append"):
        return pair[0] + pair[1] if len(pair) == 2 else pair[0]
    if name == "union":
        return list(dict.fromkeys([x for part in pair for x in part]))
    return {"min": min, "max": max, "any": any, "all": all}[name](pair)


COLUMN_OF = {"sum": "count", "union": "tags", "append": "tags", "any": "flag", "all": "flag"}
record = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abcd"),
        "ts": st.one_of(st.none(), st.integers(-2, 2)),
        "count": st.one_of(st.none(), st.integers(-3, 3)),
        "tags": st.one_of(st.none(), st.lists(st.sampled_from(["x", "y", None]), max_size=3)),
        "flag": st.one_of(st.none(), st.booleans()),
        "text": st.one_of(st.none(), st.text(max_size=2)),
    }
)
KINDS = st.sampled_from(
    [record_merger.DATA] * 4
    + [record_merger.DATA_DELETED, record_merger.DELETE, record_merger.DELETE_DEFAULT]
)


def chained(merge, rows, kinds, ordering="ts"):
    """What records come to that no stored row meets."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    chains = Chains(merge, ordering)
    resolved = chains.resolve(Entries(table, table.column("id"), None, np.array(kinds, np.uint8)))
    return chains.alone(resolved, np.ones(len(resolved.keys), bool))[0].rows.to_pylist()


@pytest.mark.req("NEW-04", "PM-10")
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=50)
@given(given_rows=st.lists(st.tuples(record, KINDS), max_size=12))
@pytest.mark.sampled(3)
def test_an_expression_agrees_with_going_record_by_record(name, given_rows):
    column = COLUMN_OF.get(name, "text")
    want = {}
    for number, (row, kind) in enumerate(given_rows):
        new = {**row, "_hoodie_commit_time": str(number)}
        key = row["id"]
        old = want.pop(key, None)
        if kind != record_merger.DATA:
            continue
        if old is not None:
            newer = old["ts"] is None or (row["ts"] is not None and row["ts"] >= old["ts"])
            merged = {n: new[n] if newer else old[n] for n in SCHEMA.names}
            merged[column] = plain(name, old[column], new[column], newer)
            new = {**merged, "_hoodie_commit_time": str(number)}
        want[key] = new
    rows = [{**r, "_hoodie_commit_time": str(n)} for n, (r, _) in enumerate(given_rows)]
    found = chained(CustomMerge(columns=((column, name),)), rows, [k for _, k in given_rows])
    assert found == list(want.values())


def row(key, count, **more):
    return {"id": key, "count": count, **more}


@pytest.mark.req("NEW-04", "PM-10")
def test_sums_of_decimals_of_38_digits_are_made_where_they_fit():
    kind, one = pa.decimal128(38, 2), decimal.Decimal("1.50")
    most = decimal.Decimal("9" * 36 + ".99")
    old, new = pa.array([one, None, one, most], kind), pa.array([one, one, None, -one], kind)
    with decimal.localcontext(prec=40):
        want = [one + one, one, one, most - one]
    assert combine_column("sum", old, new, None).to_pylist() == want
    assert combine_column("sum", old[:0], new[:0], None).type == kind
    with pytest.raises(SchemaError, match="does not fit"):
        combine_column("sum", old[3:], pa.array([one], kind), None)


def test_sums_that_overflow_are_an_error():
    with pytest.raises(SchemaError, match="does not fit int64"):
        chained(CustomMerge(columns=(("count", "sum"),)), [row("a", 2**62), row("a", 2**62)], [0, 0])


@pytest.mark.req("NEW-04")
def test_nan_is_the_greatest_number_as_in_spark():
    nan = float("nan")
    for old, new in ((nan, 1.0), (1.0, nan)):
        pair = pa.array([old]), pa.array([new])
        assert str(combine_column("max", *pair, None)[0]) == "nan"
        assert combine_column("min", *pair, None).to_pylist() == [1.0]
    for old, new in ((nan, None), (None, nan)):
        pair = pa.array([old], pa.float64()), pa.array([new], pa.float64())
        assert {str(combine_column(n, *pair, None)[0]) for n in ("min", "max")} == {"nan"}
