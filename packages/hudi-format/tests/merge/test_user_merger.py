"""Merges of the user's: expressions against a plain reference, functions, and what is refused."""

import decimal

import merge_functions
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_format.errors import InvalidOptionError, MergeFunctionError, SchemaError
from hudi_format.merge import record_merger
from hudi_format.merge.expressions import NAMES, combine_column
from hudi_format.merge.log_entries import Entries
from hudi_format.merge.user_merger import Chains, CustomMerge, custom_of, custom_rule, merge_text, parse_merge

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


@pytest.mark.req("NEW-04", "PM-02", "PM-10")
def test_a_function_sees_pairs_and_may_delete():
    merge = parse_merge(merge_text(merge_functions.add_up))
    rows = [row("a", 1), row("b", 5), row("a", 2, text="last"), row("b", -5), row("b", 7), row("c", 0)]
    found = chained(merge, rows, [0] * 6)
    assert [(r["id"], r["count"], r["text"]) for r in found] == [
        ("a", 3, "last"), ("b", 7, None), ("c", 0, None),
    ]  # fmt: skip


@pytest.mark.req("NEW-04")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fail", "RuntimeError: on purpose"),
        ("too_short", "0 rows for 1 pairs"),
        ("no_table", "gave a int"),
        ("moves_keys", "changed 'id'"),
        ("strange_column", "'more'"),
    ],
)
def test_a_function_that_goes_wrong_is_named(name, said):
    merge = CustomMerge(function=f"merge_functions:{name}", fixed=("id",))
    with pytest.raises(MergeFunctionError, match=said) as e:
        chained(merge, [row("a", 1), row("a", 2)], [0, 0])
    assert f"merge_functions:{name}" in str(e.value)
    assert e.value.remedy


def inner_function():
    def inside(old, new, context):
        return new

    return inside


@pytest.mark.req("NEW-04")
@pytest.mark.parametrize(
    "given_merge",
    [lambda o, n, c: n, inner_function(), print, CustomMerge()],
    ids=["lambda", "inner function", "built in", "nothing"],
)
def test_what_executors_cannot_import_is_refused(given_merge):
    with pytest.raises(InvalidOptionError, match="module:name"):
        merge_text(given_merge)


@pytest.mark.req("NEW-04")
@pytest.mark.parametrize("text", ["", "no colon", "{", "{}", '{"a": "average"}', "a:b c", "mod:1x"])
def test_text_that_names_no_merge_is_refused(text):
    with pytest.raises(InvalidOptionError) as e:
        custom_rule(text)
    assert e.value.details["option"] == "hudi.merge"


@pytest.mark.req("NEW-04")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nothing": "sum"}', "'nothing'"),
        ('{"text": "sum"}', "takes no values of type string"),
        ('{"count": "union"}', "takes no values of type int64"),
        ('{"id": "last"}', "record key"),
        ('{"count": "latest"}', "ordering field"),
    ],
)
def test_expressions_that_do_not_fit_the_columns_are_refused(text, said):
    merge = custom_of(custom_rule(text, ["id"]))
    with pytest.raises(SchemaError, match=said):
        merge.check(SCHEMA)


@pytest.mark.req("NEW-04")
@pytest.mark.parametrize("text", ["no_such_module:f", "merge_functions:nothing", "merge_functions:__doc__"])
def test_a_function_that_is_not_there_is_named(text):
    with pytest.raises(InvalidOptionError, match=text):
        custom_of(custom_rule(text)).check(SCHEMA)


def test_a_merge_comes_back_from_its_text():
    for merge in (CustomMerge(columns=(("count", "sum"), ("é", "last"))), CustomMerge("m.n:f.g")):
        assert parse_merge(merge.text) == merge
    assert parse_merge(merge_text({"count": "sum"})) == CustomMerge(columns=(("count", "sum"),))
    assert merge_text(merge_functions.newest) == "merge_functions:newest"


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
