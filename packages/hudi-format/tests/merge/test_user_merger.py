"""Merges of the user's: expressions against a plain reference, functions, and what is refused."""

import merge_functions
import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import InvalidOptionError, MergeFunctionError, SchemaError
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


def chained(merge, rows, kinds, ordering="ts"):
    """What records come to that no stored row meets."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    chains = Chains(merge, ordering)
    resolved = chains.resolve(Entries(table, table.column("id"), None, np.array(kinds, np.uint8)))
    return chains.alone(resolved, np.ones(len(resolved.keys), bool))[0].rows.to_pylist()


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fail", "RuntimeError: on purpose"),
        ("too_short", "0 rows for 1 pairs"),
        ("no_table", "returned a int"),
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


@pytest.mark.parametrize(
    "given_merge",
    [lambda o, n, c: n, inner_function(), print, CustomMerge()],
    ids=["lambda", "inner function", "built in", "nothing"],
)
def test_what_executors_cannot_import_is_refused(given_merge):
    with pytest.raises(InvalidOptionError, match="module:name"):
        merge_text(given_merge)


@pytest.mark.parametrize("text", ["", "no colon", "{", "{}", '{"a": "average"}', "a:b c", "mod:1x"])
def test_text_that_names_no_merge_is_refused(text):
    with pytest.raises(InvalidOptionError) as e:
        custom_rule(text)
    assert e.value.details["option"] == "hudi.merge"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nothing": "sum"}', "'nothing'"),
        ('{"text": "sum"}', "does not support type string"),
        ('{"count": "union"}', "does not support type int64"),
        ('{"id": "last"}', "record key"),
        ('{"count": "latest"}', "ordering field"),
    ],
)
def test_expressions_that_do_not_fit_the_columns_are_refused(text, said):
    merge = custom_of(custom_rule(text, ["id"]))
    with pytest.raises(SchemaError, match=said):
        merge.check(SCHEMA)


@pytest.mark.parametrize("text", ["no_such_module:f", "merge_functions:nothing", "merge_functions:__doc__"])
def test_a_function_that_is_not_there_is_named(text):
    with pytest.raises(InvalidOptionError, match=text):
        custom_of(custom_rule(text)).check(SCHEMA)


def test_a_merge_comes_back_from_its_text():
    for merge in (CustomMerge(columns=(("count", "sum"), ("é", "last"))), CustomMerge("m.n:f.g")):
        assert parse_merge(merge.text) == merge
    assert parse_merge(merge_text({"count": "sum"})) == CustomMerge(columns=(("count", "sum"),))
    assert merge_text(merge_functions.newest) == "merge_functions:newest"


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"function": "m:f", "count": "sum"}, "'count'"),
        ({"function": "m:f", "properties": {"n": 1}}, "no texts"),
        ({"function": "m:f", "properties": "n"}, "no texts"),
        ({"function": "m:f", "insert": "g"}, "function reference"),
        ({"function": "m: f"}, "function reference"),
    ],
)
def test_a_function_with_what_it_does_not_take_is_refused(given, match):
    with pytest.raises(InvalidOptionError, match=match):
        parse_merge(merge_text(given))


def test_a_merge_with_properties_is_one_text_whatever_their_order():
    one = {"function": merge_functions.in_unit, "properties": {"b": "1", "a": "2"}}
    other = {"properties": {"a": "2", "b": "1"}, "insert": "", "function": "merge_functions:in_unit"}
    assert parse_merge(merge_text(one)) == parse_merge(merge_text(other))
    assert parse_merge(parse_merge(merge_text(one)).text) == parse_merge(merge_text(one))
    assert parse_merge('{"function": "sum"}').columns == (("function", "sum"),)
