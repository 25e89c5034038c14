"""Properties files of Java, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError
from hudi_format.properties import parse, render


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_properties_round_trip(properties):
    assert parse(render(properties, ["comment"])) == properties


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_properties_or_an_error(data):
    try:
        parse(data)
    except CorruptFileError:
        return


def test_properties_of_java_in_all_their_forms():
    text = b"# c\n! d\n\na=1\nb : 2\n  c 3\nd\\ e=f\\\n   g\nu=\\u00e9\\t\nempty\nx==y\n"
    assert parse(text) == {"a": "1", "b": "2", "c": "3", "d e": "fg", "u": "é\t", "empty": "", "x": "=y"}


@pytest.mark.req("TL-02")
@pytest.mark.parametrize("digits", ["1_23", "0x1f", "+123", " 123", "12", "12g4", ""])
def test_an_escape_without_four_hexadecimal_digits_is_corrupt(digits):
    """Java says so too; Python's int() takes most of them."""
    with pytest.raises(CorruptFileError, match="escape"):
        parse(f"a=\\u{digits}".encode())


@pytest.mark.parametrize("first", [b"a=1", b"a:1", b"  a 1", b"a=1\r\n#c", b"a"])
def test_a_byte_order_mark_before_an_entry_is_no_part_of_its_name(first):
    """Editors write it; Java reads it as letters, and the entry is lost."""
    with pytest.raises(CorruptFileError, match="a byte order mark before "):
        parse(b"\xef\xbb\xbf" + first + b"\nb=2\n")
    assert parse(b"\xef\xbb\xbf#comment\n" + first)["a"] in ("1", "")
    assert parse(b"\xef\xbb\xbf\n" + first)["a"] in ("1", "")
