"""Blocks of HFiles: checksums, and keys to look for."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.hfile._block import Keys
from hudi_format.hfile._checksum import chunk_checksums


@given(st.binary(max_size=200), st.integers(1, 64))
def test_checksums_are_those_of_each_chunk(data, chunk):
    for castagnoli in (False, True):
        got = chunk_checksums(data, chunk, castagnoli=castagnoli)
        assert got == chunk_checksums(data, chunk, castagnoli=castagnoli, by_table=True)
        assert len(got) == 4 * -(-len(data) // chunk)
    crc32 = b"".join(zlib.crc32(data[i : i + chunk]).to_bytes(4) for i in range(0, len(data), chunk))
    assert chunk_checksums(data, chunk, castagnoli=False) == crc32


def test_crc32c_of_the_standard_check_text():
    assert chunk_checksums(b"123456789", 100, castagnoli=True).hex() == "e3069283"


def test_keys_to_look_for_are_checked():
    with pytest.raises(ValueError, match="offsets leave"):
        Keys(b"ab", np.array([0, 3]))
    with pytest.raises(ValueError, match="not sorted"):
        Keys(b"ba", np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="not sorted"):
        Keys(b"aa", np.array([0, 1, 2]))
