import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index.hashing.java import crc32


@given(st.lists(st.one_of(st.none(), st.text())), st.integers(0, 5))
def test_crc32_is_that_of_zlib_also_in_slices(texts, start):
    array = pa.array(texts, pa.string()).slice(min(start, len(texts)))
    assert crc32(array).to_pylist() == [zlib.crc32((t or "").encode()) for t in array.to_pylist()]


def test_crc32_of_chunks_and_large_texts():
    array = pa.chunked_array([["a", "b"], [], ["é"]], pa.large_string())
    assert crc32(array).to_pylist() == [zlib.crc32(t.encode()) for t in ("a", "b", "é")]


def test_offsets_that_leave_the_data_are_refused():
    import numpy as np

    from hudi_index.hashing._crc import crc32_of

    with pytest.raises(ValueError, match="leave"):
        crc32_of(np.array([0, 9], np.int32), np.zeros(3, np.uint8), np.zeros(1, np.uint32))
