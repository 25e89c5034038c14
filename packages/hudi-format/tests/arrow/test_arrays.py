"""Arrow columns without pyarrow's converters: the same as with them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.arrow.arrays import (
    doubles,
    filtered,
    flags,
    flags_of,
    integers,
    numbers_of,
    python_rows,
    python_values,
    text,
    texts,
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
def test_texts(values):
    made = texts(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))
    assert made.null_count == values.count(None)


def test_a_text_that_utf_8_does_not_have_is_refused_as_pyarrow_does():
    with pytest.raises(UnicodeEncodeError):
        texts(["a", "\udce4"])
    with pytest.raises(UnicodeEncodeError):
        pa.array(["a", "\udce4"], pa.string())


def test_one_text():
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
