"""Decimals of text."""

from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_format.schema.casts import convert
from hudi_format.schema.decimals import decimals_of

KIND = pa.decimal128(30, 5)


@pytest.mark.req("SE-04")
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
@pytest.mark.req("SE-04")
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
