"""Base64 of bloom filters says what the standard library says, of right text and wrong."""

import base64
import binascii

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_index.bloom import _base64


@pytest.mark.req("IX-04")
@given(st.binary(max_size=200))
def test_bytes_come_back(data):
    text = base64.b64encode(data)
    assert _base64.encode(data) == text
    assert _base64.decode(text) == data


@given(st.binary(min_size=1, max_size=40), st.integers(0, 60), st.integers(0, 255), st.integers(0, 3))
@example(b"a", 1, ord("="), 0)
@example(b"abc", 3, ord("="), 0)
@example(b"a", 0, 0x80, 0)
def test_wrong_text_is_refused_where_the_standard_library_refuses_it(data, at, byte, cut):
    text = bytearray(base64.b64encode(data))
    text[at % len(text)] = byte
    text = bytes(text[: len(text) - cut])
    try:
        want = base64.b64decode(text, validate=True)
    except binascii.Error:
        want = None
    assert _base64.decode(text) == want
