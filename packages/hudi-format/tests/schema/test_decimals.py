"""Decimals of text and of numbers."""

from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_format.schema.casts import convert
from hudi_format.schema.decimals import decimals_of, rescaled

KIND = pa.decimal128(30, 5)


@pytest.mark.parametrize(
    "text",
    [
        "0", "-0", "12.5", "+7", ".5", "5.", "1e3", "1E+3", "-1.5e-3", "0e999999999", "1.000000000000000000000000000",
        "9" * 25 + ".99999", "-" + "9" * 25 + ".99999", "0" * 100 + "7",
    ],
)  # fmt: skip
def test_texts_say_decimals(text):
    assert decimals_of(pa.array([text, None, text]), KIND).to_pylist() == [Decimal(text), None, Decimal(text)]


# Arrow's cast makes 0.00000 of the first; the second ends the process.
@pytest.mark.parametrize(
    "text",
    [
        "1." + "1" * 80, "1E-999999999", "1E-400", "1E999999999", "1e25", "9" * 26, "9" * 60, "0.000001",
        "1e9999999999", "", " 7", "1_0", "abc", "NaN", "Infinity", "0x10", "\u0967", "1e", ".", "--1",
    ],
)  # fmt: skip
def test_what_is_no_such_decimal_is_an_error(text):
    with pytest.raises(pa.ArrowInvalid):
        decimals_of(pa.array(["1", text]), KIND)
    with pytest.raises(SchemaError, match="column c "):
        convert(pa.array(["1", text]), KIND, "c")


NARROW = [pa.decimal128(38, 37), pa.decimal128(38, 38), pa.decimal128(37, 37), pa.decimal128(38, 20)]
NUMBERS = [
    (7, pa.int8()), (38, pa.int8()), (16777217, pa.int32()), (-(2**63), pa.int64()), (2**63 - 1, pa.int64()),
    (2**64 - 1, pa.uint64()), (Decimal(16777217), pa.decimal128(38, 0)), (Decimal("-9.25"), pa.decimal128(10, 2)),
    (Decimal("0.5"), pa.decimal128(38, 1)), (Decimal(10**18), pa.decimal64(18, 0)),
]  # fmt: skip


@pytest.mark.parametrize("target", NARROW, ids=str)
@pytest.mark.parametrize(("number", "source"), NUMBERS, ids=str)
def test_a_number_with_too_many_digits_before_the_point_becomes_no_other_one(number, source, target):
    """Arrow makes 3.2378... of 16,777,217 in a decimal(38, 37): the product does not fit into 128 bits."""
    fits = abs(number) < 10 ** (target.precision - target.scale)
    ways = [
        lambda: rescaled(pa.array([number, None], source), target),
        lambda: decimals_of(pa.array([str(number), None]), target),
    ]
    if isinstance(number, int) and source != pa.uint64():
        ways.append(lambda: convert(pa.array([number, None], source), target, "c"))
    for convert_to in ways:
        if fits:
            assert convert_to().to_pylist() == [number, None]
        else:
            with pytest.raises((pa.ArrowInvalid, SchemaError)):
                convert_to()
