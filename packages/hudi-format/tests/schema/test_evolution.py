from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from arrow_strategies import tables
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import MissingColumnError, SchemaError
from hudi_format.keygen.java_float import float_text
from hudi_format.schema.evolution import (
    DROP_OPTION,
    RECONCILE_OPTION,
    SET_NULL_OPTION,
    conform,
    reconcile,
)

TABLE = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("a", pa.int32()),
        pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        pa.field("l", pa.list_(pa.field("element", pa.struct([("p", pa.int32())])))),
        pa.field("d", pa.decimal128(10, 2)),
    ]
)


def changed(**kinds: pa.DataType | None) -> pa.Schema:
    """The table's schema with other types, without the columns that are None."""
    fields = [f.with_type(kinds.get(f.name) or f.type) for f in TABLE if kinds.get(f.name, f) is not None]
    return pa.schema([*fields, *(pa.field(n, k) for n, k in kinds.items() if k and n not in TABLE.names)])


def test_the_same_schema_stays_and_the_datas_order_becomes_the_tables() -> None:
    assert reconcile(TABLE, TABLE) == TABLE
    turned = pa.schema(list(TABLE)[::-1])
    assert reconcile(turned, TABLE) == turned  # as Apache Hudi 0.15.0


@pytest.mark.req("SE-02")
def test_columns_are_added_where_the_data_has_them_at_every_level() -> None:
    incoming = pa.schema(
        [
            pa.field("id", pa.string()),
            pa.field("n1", pa.string(), nullable=False),
            *list(TABLE)[1:3],
            pa.field("s", pa.struct([("x", pa.int32()), ("n2", pa.int64()), ("y", pa.string())])),
            pa.field("l", pa.list_(pa.field("element", pa.struct([("q", pa.string()), ("p", pa.int32())])))),
            TABLE.field("d"),
        ]
    )
    found = reconcile(incoming, TABLE)
    assert found.names == ["id", "n1", "ts", "a", "s", "l", "d"]
    assert found.field("n1").nullable  # rows of older files have no value
    assert [f.name for f in found.field("s").type] == ["x", "n2", "y"]
    assert [f.name for f in found.field("l").type.value_type] == ["q", "p"]


@pytest.mark.parametrize(
    ("incoming", "table", "result"),
    [
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.float32(), pa.int32(), pa.float32()),
        (pa.float64(), pa.int64(), pa.float64()),
        (pa.float64(), pa.float32(), pa.float64()),
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.int64(), pa.string(), pa.string()),
        (pa.float64(), pa.string(), pa.string()),
        (pa.date32(), pa.string(), pa.string()),
        (pa.decimal128(10, 2), pa.string(), pa.string()),
        (pa.string(), pa.int32(), pa.string()),
        (pa.string(), pa.float64(), pa.string()),
        (pa.int64(), pa.decimal128(10, 2), pa.decimal128(10, 2)),
        (pa.string(), pa.decimal128(10, 2), pa.decimal128(10, 2)),
        (pa.float32(), pa.decimal128(10, 2), pa.decimal128(10, 2)),
        (pa.binary(), pa.string(), pa.string()),
        (pa.string(), pa.binary(), pa.binary()),
        (pa.binary(), pa.binary(4), pa.binary(4)),
        (pa.decimal128(8, 2), pa.decimal128(10, 2), pa.decimal128(10, 2)),
        (pa.decimal128(8, 1), pa.decimal128(10, 2), pa.decimal128(10, 2)),
        (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), pa.timestamp("ms", "UTC")),
    ],
    ids=str,
)
def test_types_grow_and_the_wider_one_of_the_table_stays(
    incoming: pa.DataType, table: pa.DataType, result: pa.DataType
) -> None:
    for wrap in (lambda t: t, lambda t: pa.list_(pa.field("element", t)), lambda t: pa.map_(pa.string(), t)):
        new, old = pa.schema([pa.field("c", wrap(incoming))]), pa.schema([pa.field("c", wrap(table))])
        assert reconcile(new, old) == pa.schema([pa.field("c", wrap(result))])


@pytest.mark.parametrize(
    ("incoming", "table"),
    [
        (pa.string(), pa.date32()),
        (pa.timestamp("us", "UTC"), pa.string()),
        (pa.bool_(), pa.string()),
        (pa.decimal128(12, 2), pa.decimal128(10, 2)),
        (pa.decimal128(10, 4), pa.decimal128(10, 2)),
        (pa.decimal128(10, 0), pa.int32()),
        (pa.date32(), pa.int32()),
        (pa.bool_(), pa.int32()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.struct([("a", pa.int32())]), pa.int32()),
        (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32())),
    ],
    ids=str,
)
def test_types_that_do_not_go_together_are_named_with_their_column(
    incoming: pa.DataType, table: pa.DataType
) -> None:
    def schema(kind: pa.DataType) -> pa.Schema:
        return pa.schema([pa.field("s", pa.struct([pa.field("c", kind)]))])

    with pytest.raises(SchemaError) as e:
        reconcile(schema(incoming), schema(table))
    assert e.value.details["column"] == "s.c"
    assert str(incoming) in str(e.value)
    assert str(table) in str(e.value)
    assert e.value.remedy


@pytest.mark.parametrize(
    ("kinds", "missing"),
    [({"a": None, "d": None}, ["a", "d"]), ({"s": pa.struct([("x", pa.int32())])}, ["s.y"])],
)
def test_a_missing_column_is_an_error_that_names_the_options(kinds: dict, missing: list[str]) -> None:
    with pytest.raises(MissingColumnError) as e:
        reconcile(changed(**kinds), TABLE)
    assert e.value.details["columns"] == missing
    assert SET_NULL_OPTION in e.value.remedy
    assert DROP_OPTION in e.value.remedy


@pytest.mark.req("SE-05")
@pytest.mark.parametrize("option", ["set_null_for_missing", "reconcile"])
def test_missing_columns_are_kept_in_the_tables_order_when_asked_for(option: str) -> None:
    required = pa.schema([f.with_nullable(f.name != "a") for f in TABLE])
    incoming = pa.schema(
        [
            TABLE.field("d"),
            pa.field("id", pa.string()),
            pa.field("n", pa.int32()),
            pa.field("m", pa.int32()),
            pa.field("ts", pa.int32()),
            pa.field("s", pa.struct([("x", pa.int64())])),
            TABLE.field("l"),
        ]
    )
    found = reconcile(incoming, required, **{option: True})
    assert found.names == ["id", "n", "m", "ts", "a", "s", "l", "d"]
    assert found.field("a").nullable
    assert found.field("ts").type == pa.int64()
    assert found.field("s").type == pa.struct([("x", pa.int64()), ("y", pa.string())])


def test_missing_columns_are_dropped_when_asked_for() -> None:
    incoming = changed(a=None, s=pa.struct([("x", pa.int32())]))
    assert reconcile(incoming, TABLE, allow_column_drop=True) == incoming
    both = reconcile(incoming, TABLE, allow_column_drop=True, set_null_for_missing=True)
    assert both == incoming  # as Apache Hudi 0.15.0
    kept = reconcile(incoming, TABLE, allow_column_drop=True, reconcile=True)
    assert kept == TABLE


@pytest.mark.req("SE-05")
def test_reconciled_data_that_only_adds_columns_gives_its_order_to_the_table() -> None:
    turned = pa.schema([*list(TABLE)[::-1], pa.field("n", pa.int32())])
    assert reconcile(turned, TABLE, reconcile=True) == turned
    assert reconcile(pa.schema(list(TABLE)[::-1]), TABLE, reconcile=True) == TABLE
    inner = changed(s=pa.struct([("y", pa.string()), ("n", pa.int32()), ("x", pa.int32())]))
    assert reconcile(inner, TABLE, reconcile=True) == inner
    both = reconcile(changed(a=None, n=pa.int32()), TABLE, reconcile=True)
    assert both.names == [*TABLE.names, "n"]


def test_validated_data_must_have_all_columns_at_every_level() -> None:
    for incoming in (changed(a=None), changed(s=pa.struct([("x", pa.int32())]))):
        with pytest.raises(MissingColumnError, match=RECONCILE_OPTION):
            reconcile(incoming, TABLE, validate=True, set_null_for_missing=True)
        assert reconcile(incoming, TABLE, validate=True, reconcile=True) == TABLE
        assert reconcile(incoming, TABLE, validate=True, allow_column_drop=True) == incoming
    assert reconcile(TABLE, TABLE, validate=True) == TABLE


# What Apache Hudi 0.15.0 makes of a column of the table (row) when the data has another type (column): the type
# afterwards, "-" where it refuses, "!" where it goes by the bits or cannot read the table any more.
KINDS: dict[str, pa.DataType] = {
    "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
    "bool": pa.bool_(), "bytes": pa.binary(), "date": pa.date32(), "time": pa.timestamp("us", "UTC"),
    "decimal": pa.decimal128(10, 2),
}  # fmt: skip
APACHE = """
        int    long   float  double string bool bytes  date   time   decimal
int     int    long   float  double string -    -      !      !      -
long    long   long   float  double string -    -      -      !      -
float   float  float  float  double string -    -      -      -      -
double  double double double double string -    -      -      -      -
string  string string string string string -    string string -      string
bool    -      -      -      -      -      bool -      -      -      -
bytes   -      -      -      -      bytes  -    bytes  -      -      -
date    !      !      !      !      !      -    -      date   !      -
time    -      !      !      !      !      -    -      -      time   -
decimal decimal decimal decimal decimal decimal - - - - decimal
"""
MATRIX = [
    (row[0], name, verdict)
    for header, *rows in [[line.split() for line in APACHE.strip().splitlines()]]
    for row in rows
    for name, verdict in zip(header, row[1:], strict=True)
]


@pytest.mark.req("SE-01", "SE-02")
@pytest.mark.parametrize(("table", "incoming", "verdict"), MATRIX)
def test_each_pair_of_types_ends_as_with_apache_hudi_or_is_refused(
    table: str, incoming: str, verdict: str
) -> None:
    new, old = pa.schema([("c", KINDS[incoming])]), pa.schema([("c", KINDS[table])])
    if verdict in "-!":
        with pytest.raises(SchemaError):
            reconcile(new, old)
    else:
        assert reconcile(new, old) == pa.schema([("c", KINDS[verdict])])


def test_values_take_the_text_and_the_digits_that_java_gives_them() -> None:
    rows = pa.table(
        {
            "f": pa.array([1.0, 1e7, 1.1, None], pa.float32()),
            "d": pa.array([2.5, 1e-5, 0.0, None]),
            "day": pa.array([0, 19723, None, 1], pa.date32()),
            "n": pa.array([7, -3, 0, None], pa.int64()),
        }
    )
    text = conform(rows, pa.schema([(n, pa.string()) for n in rows.schema.names]))
    assert text.to_pydict() == {
        "f": ["1.0", "1.0E7", "1.1", None],
        "d": ["2.5", "1.0E-5", "0.0", None],
        "day": ["1970-01-01", "2024-01-01", None, "1970-01-02"],
        "n": ["7", "-3", "0", None],
    }
    more = pa.table({"i": pa.array([7, None], pa.int32()), "d": [2.5, 10.0], "s": ["1.50", " 3".strip()]})
    exact = conform(more, pa.schema([(n, pa.decimal128(10, 2)) for n in more.schema.names]))
    assert [[str(v) if v is not None else None for v in c.to_pylist()] for c in exact.columns] == [
        ["7.00", None], ["2.50", "10.00"], ["1.50", "3.00"],
    ]  # fmt: skip


def test_a_name_in_another_case_is_refused() -> None:
    incoming = pa.schema([f.with_name("A") if f.name == "a" else f for f in TABLE])
    with pytest.raises(SchemaError, match="A differs from the table's column a in case"):
        reconcile(incoming, TABLE, set_null_for_missing=True)


def test_a_column_is_nullable_where_either_side_says_so() -> None:
    def one(nullable: bool) -> pa.Schema:
        return pa.schema([pa.field("c", pa.list_(pa.field("element", pa.int32(), nullable)), nullable)])

    assert reconcile(one(False), one(True)) == one(True)
    assert reconcile(one(True), one(False)) == one(True)
    assert reconcile(one(False), one(False)) == one(False)


def test_rows_follow_at_every_level() -> None:
    old = pa.table(
        {
            "l": pa.array(
                [[{"p": 1}], None, [None]], pa.list_(pa.field("array", pa.struct([("p", pa.int32())])))
            ),
            "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
            "a": pa.array([1, None, 3], pa.int32()),
        }
    )
    target = pa.schema(
        [
            pa.field("a", pa.float64()),
            pa.field("new", pa.list_(pa.int32())),
            pa.field("m", pa.map_(pa.string(), pa.int64())),
            pa.field("l", pa.list_(pa.field("element", pa.struct([("q", pa.string()), ("p", pa.int64())])))),
        ]
    )
    found = conform(old, target)
    assert found.schema == target
    found.validate(full=True)
    assert found.to_pylist() == [
        {"a": 1.0, "new": None, "m": [("k", 1)], "l": [{"q": None, "p": 1}]},
        {"a": None, "new": None, "m": None, "l": None},
        {"a": 3.0, "new": None, "m": [], "l": [None]},
    ]
    one = conform(old.combine_chunks().to_batches()[0].slice(1), target)
    assert isinstance(one, pa.RecordBatch)
    one.validate(full=True)
    assert one.to_pylist() == found.to_pylist()[1:]


@given(tables(), st.data())
def test_rows_survive_any_order_and_any_slice(table: pa.Table, data: st.DataObject) -> None:
    order = data.draw(st.permutations(table.schema.names))
    target = pa.schema([table.schema.field(n) for n in order])
    start = data.draw(st.integers(0, table.num_rows))
    found = conform(table.slice(start), target)
    assert found.schema == target
    assert found.to_pylist() == table.select(order).slice(start).to_pylist()


@given(tables(), st.data())
def test_lists_and_maps_named_otherwise_keep_their_rows(table: pa.Table, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, table.num_rows))
    legacy = conform(table, pa.schema([f.with_type(_legacy(f.type)) for f in table.schema])).slice(start)
    back = conform(legacy, table.schema)
    back.validate(full=True)
    assert back.schema == table.schema
    assert back.to_pylist() == table.slice(start).to_pylist()


def _legacy(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(pa.field("array", _legacy(kind.value_type), kind.value_field.nullable))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), pa.field("v", _legacy(kind.item_type), kind.item_field.nullable))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_legacy(f.type)) for f in kind])
    return kind


def test_rows_that_fit_are_given_back_as_they_are() -> None:
    table = pa.table({"a": ["x"]})
    assert conform(table, table.schema) is table
    named = table.replace_schema_metadata({"pandas": "{}"})
    assert conform(named, table.schema) is named
    more = pa.table({"b": [1], "a": ["x"]})
    assert conform(more, table.schema).column("a").chunk(0).buffers()[2].address == (
        more.column("a").chunk(0).buffers()[2].address
    )


def test_whole_numbers_become_floats_and_text() -> None:
    big = pa.table({"c": pa.array([2**53 + 1, 7], pa.int64())})
    assert conform(big, pa.schema([pa.field("c", pa.float64())])).column(0).to_pylist() == [2.0**53, 7.0]
    assert conform(big, pa.schema([pa.field("c", pa.string())])).column(0).to_pylist() == [
        str(2**53 + 1),
        "7",
    ]


@pytest.mark.parametrize(
    ("array", "target", "says"),
    [
        (pa.array([b"\xff"]), pa.string(), "UTF"),
        (pa.array([b"abc"]), pa.binary(4), "c has type binary"),
        (pa.array([1500], pa.timestamp("us", "UTC")), pa.timestamp("ms", "UTC"), "lose"),
        (pa.array([0], pa.timestamp("us")), pa.timestamp("us", "UTC"), "to UTC"),
        (pa.array([1.5]), pa.int64(), "double"),
        (pa.array([1.555]), pa.decimal128(10, 2), "data loss"),
        (pa.array([10**12]), pa.decimal128(10, 2), "fit"),
        (pa.array(["n/a"]), pa.decimal128(10, 2), "n/a"),
        (pa.array([float("nan")]), pa.decimal128(10, 2), "NaN"),
        (pa.array([1]), pa.list_(pa.int64()), "int64"),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), pa.list_(pa.int32()), "map"),
    ],
    ids=str,
)
def test_values_that_do_not_survive_are_errors(array: pa.Array, target: pa.DataType, says: str) -> None:
    with pytest.raises(SchemaError, match=says) as e:
        conform(pa.table({"c": array}), pa.schema([pa.field("c", target)]))
    assert e.value.details["column"] == "c"


@pytest.mark.parametrize(
    ("array", "kind", "column"),
    [
        (pa.array([{"x": None}]), pa.struct([pa.field("x", pa.int32(), False)]), "c.x"),
        (
            pa.array([[None]], pa.list_(pa.int32())),
            pa.list_(pa.field("element", pa.int64(), False)),
            "c.element",
        ),
        (pa.array([{"y": 1}]), pa.struct([pa.field("x", pa.int32(), False)]), "c.x"),
    ],
    ids=["struct", "list", "absent"],
)
def test_a_null_inside_where_none_may_be_is_an_error(array: pa.Array, kind: pa.DataType, column: str) -> None:
    if pa.types.is_struct(array.type) and array.type.field(0).name == "x":
        array = pa.array([{"x": None}], pa.struct([("x", pa.int32())]))
    with pytest.raises(SchemaError, match="must not be null") as e:
        conform(pa.table({"c": array}), pa.schema([pa.field("c", kind)]))
    assert e.value.details["column"] == column


def test_a_required_field_of_a_null_struct_is_fine() -> None:
    array = pa.array([None, {"x": 1}], pa.struct([("x", pa.int32())]))
    kind = pa.struct([pa.field("x", pa.int64(), False)])
    found = conform(pa.table({"c": array}), pa.schema([pa.field("c", kind)]))
    assert found.column(0).to_pylist() == [None, {"x": 1}]


def test_a_column_that_is_there_twice_or_required_and_absent_is_an_error() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["c", "c"])
    with pytest.raises(SchemaError, match="duplicated"):
        conform(twice, pa.schema([pa.field("c", pa.int64()), pa.field("d", pa.int64())]))
    with pytest.raises(MissingColumnError):
        conform(pa.table({"a": [1]}), pa.schema([pa.field("c", pa.int64(), False)]))


def test_floats_become_the_doubles_that_javas_text_of_them_says() -> None:
    draw = np.random.default_rng(3)
    bits = draw.integers(0, 2**32, 3000, dtype=np.uint32).view(np.float32)
    plain = (10.0 ** draw.uniform(-35, 7, 3000)).astype(np.float32)
    edges = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e7, 9999999.0, 1e-35, 1.17549435e-38, 1e-45, 3.4028235e38]
    values = np.concatenate([bits, plain, -plain[:99], np.array(edges, np.float32)])
    floats = pa.array([None, *values.tolist()], pa.float32())
    (found,) = conform(pa.table({"f": floats}), pa.schema([("f", pa.float64())])).columns
    wanted = [None, *(float(float_text(v)) for v in values)]
    assert repr(found.to_pylist()) == repr(wanted)
