"""Texts of doubles and floats: those of Java 17, digit for digit."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.keygen.java_float import double_text, float_text

# Printed by OpenJDK 17.0.15; Java 19 and later print fewer digits for some.
JAVA_DOUBLES = {
    0.1: "0.1",
    1.0: "1.0",
    100.0: "100.0",
    9999999.0: "9999999.0",
    1e7: "1.0E7",
    0.001: "0.001",
    9.999e-4: "9.999E-4",
    1.1e-5: "1.1E-5",
    123456789.125: "1.23456789125E8",
    1e22: "1.0E22",
    2.0**-44: "5.6843418860808015E-14",
    2.0**62: "4.6116860184273879E18",
    1e23: "9.999999999999999E22",
    2e23: "1.9999999999999998E23",
    8.41e21: "8.409999999999999E21",
    4.9e-324: "4.9E-324",
    2.2250738585072014e-308: "2.2250738585072014E-308",
    1.7976931348623157e308: "1.7976931348623157E308",
    -0.0: "-0.0",
    math.inf: "Infinity",
    -math.inf: "-Infinity",
    math.nan: "NaN",
}
JAVA_FLOATS = {
    0x3DCCCCCD: "0.1",
    0x69000000: "9.6714065E24",
    0x6A1DC24E: "4.7679732E25",
    0xEA323186: "-5.3855665E25",
    0x00000001: "1.4E-45",
    0x7F7FFFFF: "3.4028235E38",
    0x4B189680: "1.0E7",
    0x80000000: "-0.0",
}


@pytest.mark.parametrize(("value", "text"), JAVA_DOUBLES.items())
def test_doubles_have_the_text_of_java_17(value, text):
    assert double_text(value) == text


@pytest.mark.parametrize(("bits", "text"), JAVA_FLOATS.items())
def test_floats_have_the_text_of_java_17(bits, text):
    assert float_text(struct.unpack("<f", struct.pack("<I", bits))[0]) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_reads_back_as_the_same_double(value):
    # Also where the digits are not the shortest: Java's older algorithm never loses the number.
    assert struct.pack("<d", float(double_text(value))) == struct.pack("<d", value)


@given(st.floats(min_value=2.0**-10, max_value=2.0**24, width=32), st.booleans())
def test_the_text_of_a_float_is_near_the_float(value, negative):
    value = -value if negative else value
    assert math.isclose(float(float_text(value)), value, rel_tol=1e-7)
