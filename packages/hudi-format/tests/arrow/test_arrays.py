"""Arrow columns without pyarrow's converters: the same as with them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.arrow.arrays import doubles, filtered, flags, flags_of, integers, numbers_of, text, texts

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
