"""Rows of guessed or foreign types in a table's types, level by level."""

import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_format.schema.exact import Exact
from hudi_format.schema.fit import fit, in_table_types, stored_types, unlike, without_untyped

TABLE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("n", pa.int32()),
        ("s", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float32()))])),
        ("m", pa.map_(pa.string(), pa.int32())),
    ]
)


def test_columns_take_the_tables_types_in_the_order_of_the_rows():
    rows = pa.schema(
        [("new", pa.int64()), ("s", pa.struct([("c", pa.int8()), ("a", pa.null())])), ("n", pa.int64())]
    )
    made = in_table_types(rows, TABLE)
    assert made.names == ["new", "s", "n"]
    assert made.field("new").type == pa.int64()
    assert made.field("n").type == pa.int32()
    assert made.field("s").type == pa.struct([("c", pa.int8()), ("a", pa.int64())])


def test_only_what_has_no_type_of_its_own_takes_one_where_that_is_asked_for():
    rows = pa.schema([("n", pa.int64()), ("s", pa.struct([("a", pa.null())])), ("m", pa.null())])
    made = in_table_types(rows, TABLE, nulls_only=True)
    assert made.field("n").type == pa.int64()
    assert made.field("s").type == pa.struct([("a", pa.int64())])
    assert made.field("m").type == TABLE.field("m").type


def test_columns_of_nulls_are_left_out_by_their_dotted_names():
    schema = pa.schema(
        [
            ("k", pa.null()),
            ("gone", pa.null()),
            ("s", pa.struct([("a", pa.int64()), ("gone", pa.null())])),
            ("l", pa.list_(pa.struct([("a", pa.int64()), ("gone", pa.null())]))),
            ("m", pa.map_(pa.string(), pa.struct([("a", pa.int64()), ("gone", pa.null())]))),
            ("empty", pa.struct([("x", pa.null())])),
        ]
    )
    kept, gone = without_untyped(schema, {"k"})
    assert kept.names == ["k", "s", "l", "m", "empty"]
    assert gone == ["gone", "s.gone", "l.element.gone", "m.value.gone"]
    assert kept.field("s").type == pa.struct([("a", pa.int64())])


def test_types_that_are_not_stored_come_from_the_other_schema():
    rows = pa.schema([("a", pa.uint8()), ("b", pa.null()), ("c", pa.null())])
    assert stored_types(rows, pa.schema([("b", pa.int8())])).types == [pa.int32(), pa.int8(), pa.null()]
    assert stored_types(rows).types == [pa.int32(), pa.null(), pa.null()]


def test_rows_that_fit_are_turned_and_keep_columns_and_order():
    rows = pa.table({"new": [1, 2], "n": pa.array([1, 2], pa.int64()), "id": ["a", "b"]})
    made = fit(rows, TABLE, exact=Exact())
    assert made.schema.names == ["new", "n", "id"]
    assert made.schema.field("n").type == pa.int32()
    assert made.to_pydict() == rows.to_pydict()
    assert unlike(made.schema, pa.schema([("n", pa.int32()), ("new", pa.int64())])) == []


@pytest.mark.parametrize(
    ("rows", "column", "row"),
    [
        ({"id": ["a", "b"], "n": pa.array([1, 2**40])}, "n", 101),
        ({"id": ["a", None], "n": pa.array([1, 2])}, "id", 101),
        ({"id": ["a", "b"], "s": [{"a": "x", "b": None}, None]}, "s.a", 100),
        ({"id": ["a", "b"], "n": ["1", None]}, "n", 100),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_row(rows, column, row):
    with pytest.raises(SchemaError, match=f"{row:,}") as e:
        fit(pa.table(rows), TABLE, first=100, exact=Exact())
    assert e.value.details["column"] == column


def _struct(required, values):
    """Structs of a required member, with nulls below whatever the type says."""
    made = pa.array([None if v is ... else {"a": v} for v in values], pa.struct([("a", pa.int64())]))
    mask = made.is_null()
    return pa.StructArray.from_arrays(
        [made.field(0)], fields=[pa.field("a", pa.int64(), nullable=not required)], mask=mask
    )


def _nested(how, required, values):
    """(column, row of each value) of the same values in a struct, in lists and in maps."""
    inner = _struct(required, values)
    if how == "struct":
        return inner, list(range(len(values)))
    offsets = pa.array([0, 2, None, 2, len(values)], pa.int32())
    rows = [0 if n < 2 else 3 for n in range(len(values))]
    if how == "list":
        kind = pa.list_(pa.field("element", inner.type))
        return pa.ListArray.from_arrays(offsets, inner, type=kind), rows
    keys = pa.array([str(n) for n in range(len(values))])
    plain = pa.array([0, 2, 2, 2, len(values)], pa.int32())
    return pa.MapArray.from_arrays(plain, keys, inner), rows


@pytest.mark.parametrize("sliced", [False, True])
@pytest.mark.parametrize("how", ["struct", "list", "map"])
@pytest.mark.parametrize("values", [[1, 2, 3, 4], [1, ..., 3, 4], [1, 2, 3, None], [1, ..., None, 4]])
def test_a_null_where_none_may_be_is_named_at_any_depth(values, how, sliced):
    column, rows = _nested(how, True, values)
    table = pa.table({"v": pa.chunked_array([column, column])}, schema=pa.schema([("v", column.type)]))
    given = table.slice(1) if sliced else table
    before = 1 if sliced else 0
    bad = [rows[n] for n, v in enumerate(values) if v is None and rows[n] >= before]
    if not bad:
        made = fit(given, table.schema, exact=Exact())
        assert made.to_pydict() == given.to_pydict()
        made.validate(full=True)
        return
    with pytest.raises(SchemaError, match="must not be null") as e:
        fit(given, table.schema, first=100, exact=Exact())
    assert e.value.details["row"] == 100 + bad[0] - before
    assert e.value.details["column"].startswith("v.")
    # Where they may be null nothing is refused.
    loose, _ = _nested(how, False, values)
    as_is = pa.table({"v": loose})
    assert fit(as_is, as_is.schema, exact=Exact()).to_pydict() == as_is.to_pydict()


def test_a_column_that_only_says_that_it_has_no_nulls_is_looked_at():
    schema = pa.schema([pa.field("v", pa.int64(), nullable=False)])
    lying = pa.Table.from_arrays([pa.array([1, None], pa.int64())], schema=schema)
    with pytest.raises(SchemaError, match="v must not be null, but is null in row 1"):
        fit(lying, schema, exact=Exact())


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_time_that_python_does_not_hold_is_named_by_its_number(unit):
    rows = pa.table({"t": pa.array([1, 2**62], pa.int64()).cast(pa.timestamp(unit))})
    with pytest.raises(SchemaError, match=f"{2**62}.* in row 1"):
        fit(rows, pa.schema([("t", pa.timestamp("us"))]), exact=Exact())
