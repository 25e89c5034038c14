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
