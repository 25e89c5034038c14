"""Arrow columns without pyarrow's converters: the same as with them."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_format.arrow import arrays
from hudi_format.arrow.arrays import (
    column_of,
    contains,
    doubles,
    filtered,
    flags,
    flags_of,
    integers,
    numbers_of,
    one_array,
    python_rows,
    python_values,
    table_of,
    text,
    texts,
    without_hidden_nulls,
)

TEXTS = (
    [],
    [""],
    ["a", "", "bcd"],
    ["ä", "€uro", "x", "𝄞"],
    [None],
    ["a", None, "", "é", None],
    ["x"] * 20 + [None],
)


@pytest.mark.parametrize("values", TEXTS)
def test_texts_are_those_that_arrow_makes(values):
    made = texts(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))
    assert made.null_count == values.count(None)


MOMENT = pa.timestamp("ms", "UTC")
COLUMNS = (
    (pa.string(), ["a", None, "é"]),
    (pa.bool_(), [True, None, False]),
    (pa.int8(), [-128, 127, None]),
    (pa.int64(), [2**63 - 1, None, -(2**63)]),
    (pa.float64(), [0.5, None, float("inf")]),
    (MOMENT, [0, None, 1_700_000_000_123]),
    (pa.float32(), [0.5, None]),  # pyarrow's way
    (pa.date32(), [19_000, None]),
    (pa.list_(pa.string()), [["a", None], None, [], ["b"]]),
    (pa.list_(pa.list_(pa.int32())), [[[1], None, []], None, [[2, None]]]),
    (pa.map_(pa.string(), pa.string()), [[("a", "1"), ("b", None)], None, [], [("a", "2")]]),
    (pa.map_(pa.string(), pa.list_(pa.int64())), [[("a", [1, None])], None]),
)


@pytest.mark.parametrize(("kind", "values"), COLUMNS, ids=[str(k) for k, _ in COLUMNS])
def test_columns_are_those_of_pyarrow(kind, values):
    tried = (values, [v for v in values if v is not None], [None] * 9, [], values * 5)
    for some in tried:
        made = column_of(some, kind)
        made.validate(full=True)
        assert made.type == kind
        assert made.equals(pa.array(some, kind))
        assert made.null_count == some.count(None)


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.int8(), 128), (pa.int32(), -(2**31) - 1), (pa.int64(), 2**63)]
)
def test_a_number_that_a_type_does_not_hold_is_refused(kind, value):
    with pytest.raises((OverflowError, pa.ArrowInvalid)):
        column_of([value], kind)


def test_a_table_of_rows_is_that_of_pyarrow():
    schema = pa.schema({"a": pa.int64(), "b": pa.map_(pa.string(), pa.string()), "c": MOMENT})
    for rows in ([], [{"a": 1, "b": [("x", "y")], "c": 5}, {"c": None}, {"b": [], "other": 1}]):
        made = table_of(rows, schema)
        made.validate(full=True)
        assert made.equals(pa.Table.from_pylist(rows, schema))


def test_a_text_that_utf_8_does_not_have_is_refused_as_pyarrow_does():
    with pytest.raises(UnicodeEncodeError):
        texts(["a", "\udce4"])
    with pytest.raises(UnicodeEncodeError):
        pa.array(["a", "\udce4"], pa.string())


def test_one_text_is_a_scalar_of_arrow():
    assert text("é") == pa.scalar("é")


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_numbers_and_flags(count):
    numbers = np.arange(count) - 3
    mask = numbers % 3 == 0
    for made, right in (
        (integers(numbers), pa.array(numbers, pa.int64())),
        (integers(numbers.tolist()), pa.array(numbers, pa.int64())),
        (doubles(numbers / 2), pa.array(numbers / 2, pa.float64())),
        (flags(mask), pa.array(mask, pa.bool_())),
    ):
        made.validate(full=True)
        assert made.equals(right)
    for part in (slice(0, None), slice(1, None), slice(count // 2, count - 1)):
        assert numbers_of(integers(numbers)[part]).tolist() == numbers[part].tolist()
        assert numbers_of(doubles(numbers)[part]).tolist() == numbers[part].tolist()
        assert numbers_of(integers(numbers).cast(pa.int32())[part]).tolist() == numbers[part].tolist()
        assert flags_of(flags(mask)[part]).tolist() == mask[part].tolist()


def test_nulls_have_no_number():
    for call, column in ((numbers_of, pa.array([1, None])), (flags_of, pa.array([True, None]))):
        with pytest.raises(ValueError, match="nulls"):
            call(column)


def test_rows_that_pass_a_filter_are_those_of_pyarrow():
    table = pa.table({"a": pa.chunked_array([[1, 2, None], [4, 5]]), "b": ["x", "y", None, "x", "z"]})
    for expression in (
        pc.field("a") > 1,
        pc.field("b").isin(["x"]),
        pc.field("a").is_null(),
        pc.field("a") > 9,
    ):
        assert filtered(table, expression).equals(table.filter(expression))
    with pytest.raises(pa.ArrowInvalid):
        filtered(table, pc.field("c") > 1)


def test_times_that_python_does_not_have_are_text():
    far = pa.array([2**62, None, 0], pa.timestamp("us", "UTC"))
    pairs = pa.StructArray.from_arrays([far, pa.array([1, 2, 3])], ["t", "n"])
    nested = pa.array(
        [[p.as_py()] if i else None for i, p in enumerate(pairs) if i != 0], pa.list_(pairs.type)
    )
    assert [str(v)[:10] for v in python_values(far)] == ["17036-07-0", "None", "1970-01-01"]
    assert [r["n"] for r in python_values(pairs)] == [1, 2, 3]
    maps = pa.array([[("a", 2**62)], None], pa.map_(pa.string(), pa.timestamp("us")))
    rows = python_rows(pa.table({"m": maps, "l": nested, "d": pa.array([2**30, 0], pa.date32())}))
    assert (rows[0]["m"][0][0], rows[1]["m"]) == ("a", None)
    assert str(2**62) in rows[0]["m"][0][1]
    assert str(2**30) in rows[0]["d"]


REQUIRED = pa.struct([pa.field("a", pa.int64(), False), pa.field("b", pa.string(), False)])
EVERY = pa.struct([
    pa.field("n", REQUIRED, False), pa.field("m", pa.map_(pa.string(), pa.int64()), False),
    pa.field("d", pa.decimal128(30, 2), False), pa.field("o", pa.bool_(), False),
    pa.field("f", pa.binary(3), False), pa.field("l", pa.list_(REQUIRED), False),
    pa.field("e", pa.dictionary(pa.int8(), pa.string()), False), pa.field("free", pa.int64()),
])  # fmt: skip


def hidden(kind, value, count=3):
    """Structs of which every other one is null, and all below it."""
    valid = pa.array([n % 2 == 1 for n in range(count)])
    children = []
    for field in kind:
        child = pa.array([value[field.name] if v else None for v in valid.to_pylist()], field.type)
        children.append(
            hidden(field.type, value[field.name], count) if pa.types.is_struct(field.type) else child
        )
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=pc.invert(valid))


def below(array):
    value = {"n": {"a": 1, "b": "x"}, "m": [("k", 1)], "d": Decimal("1.50"), "o": True, "f": b"abc", "l": [None],
             "e": "q", "free": None}  # fmt: skip
    structs = hidden(EVERY, value, 5)
    return {
        "structs": structs,
        "a slice": structs.slice(1, 3),
        "lists": pa.ListArray.from_arrays([0, 2, 3, 5], structs).slice(1, 2),
        "maps": pa.MapArray.from_arrays([0, 1, 3], ["k", "l", "m"], structs.slice(2, 3)).slice(1, 1),
        "large lists": pa.LargeListArray.from_arrays(
            [0, 2, 2, 5], structs, mask=pa.array([False, True, False])
        ),
    }[array]


@pytest.mark.parametrize("array", ["structs", "a slice", "lists", "maps", "large lists"])
def test_nulls_that_nobody_sees_are_no_reason_to_refuse_rows(array):
    rows = pa.table({"v": below(array)})
    made = without_hidden_nulls(rows)
    made.validate(full=True)
    assert (made.schema, made.to_pylist()) == (rows.schema, rows.to_pylist())
    if array == "structs":
        with pytest.raises(pa.ArrowInvalid, match="non-nullable but contains nulls"):
            pq.write_table(rows, pa.BufferOutputStream())
    out = pa.BufferOutputStream()
    pq.write_table(made, out)
    assert pq.read_table(out.getvalue()).to_pylist() == rows.to_pylist()


def test_nulls_that_are_seen_are_refused_as_before():
    array = pa.StructArray.from_arrays([pa.array([1, None]), pa.array(["x", "y"])], fields=list(REQUIRED))
    rows = pa.table({"v": array})
    assert without_hidden_nulls(rows).column("v").chunk(0).field(0).null_count == 1
    with pytest.raises(pa.ArrowInvalid, match="non-nullable but contains nulls"):
        pq.write_table(without_hidden_nulls(rows), pa.BufferOutputStream())


@pytest.mark.parametrize(
    "around",
    [
        lambda k: k,
        pa.list_,
        pa.large_list,
        pa.list_view,
        lambda k: pa.list_(k, 2),
        lambda k: pa.struct([("a", pa.string()), ("b", k)]),
        lambda k: pa.map_(pa.string(), k),
        lambda k: pa.map_(k, pa.string()),
        lambda k: pa.dictionary(pa.int8(), k),
        lambda k: pa.run_end_encoded(pa.int32(), k),
        lambda k: pa.opaque(k, "some", "one"),
        lambda k: pa.list_(pa.struct([("a", pa.map_(pa.string(), pa.dictionary(pa.int8(), k)))])),
    ],
)
def test_a_type_is_found_wherever_it_stands_inside_another(around):
    assert contains(around(pa.float64()), pa.types.is_floating)
    assert not contains(around(pa.binary()), pa.types.is_floating)


@pytest.mark.parametrize(
    ("kind", "long"),
    [(pa.string(), pa.large_string()), (pa.binary(), pa.large_binary()), (pa.int64(), pa.int64())],
)
def test_a_column_is_one_array_however_long_it_is(kind, long, monkeypatch):
    values = ["1", None, "22"] if kind != pa.int64() else [1, None, 22]
    piece = pa.array(values, kind)
    for column in (piece, pa.chunked_array([piece]), pa.chunked_array([piece, piece])):
        made = one_array(column)
        assert isinstance(made, pa.Array)
        assert (made.type, made.to_pylist()) == (kind, column.to_pylist())
    assert one_array(pa.chunked_array([], kind)).equals(pa.array([], kind))
    monkeypatch.setattr(arrays, "_MOST_BYTES", 20)  # of 2 GiB, beyond which Arrow raises
    made = one_array(pa.chunked_array([piece, piece]))
    assert (made.type, made.to_pylist()) == (long, piece.to_pylist() * 2)
