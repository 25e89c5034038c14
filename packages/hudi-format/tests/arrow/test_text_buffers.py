"""Buffers of text columns in every form in which Arrow stores text."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.arrow.text_buffers import one_text_array, text_buffers, text_chunks

KINDS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def rows_of(buffers):
    data, offsets = buffers.data.tobytes(), buffers.offsets.tolist()
    valid = [1] * buffers.rows if buffers.valid is None else buffers.valid.tolist()
    return [data[offsets[i] : offsets[i + 1]].decode() if v else None for i, v in enumerate(valid)]


@given(
    st.lists(st.one_of(st.none(), st.text(max_size=5))),
    st.sampled_from(KINDS),
    st.integers(0, 3),
    st.booleans(),
)
def test_rows_come_back_from_slices_of_any_kind_of_text(texts, kind, start, widen):
    array = (
        pa.array(texts, kind)
        if not pa.types.is_dictionary(kind)
        else pa.array(texts, pa.string()).dictionary_encode()
    )
    array = array.slice(min(start, len(texts)))
    (plain,) = text_chunks(array)
    buffers = text_buffers(plain, widen=widen)
    assert rows_of(buffers) == texts[start:]
    assert buffers.rows == len(texts[start:])


def test_offsets_stay_as_narrow_as_they_are_where_that_is_asked_for():
    array = pa.array(["a", "bc"])
    assert text_buffers(array).offsets.dtype == "int64"
    assert text_buffers(array, widen=False).offsets.dtype == "int32"
    assert text_buffers(array.cast(pa.large_string()), widen=False).offsets.dtype == "int64"


def test_chunks_become_one_array_as_wide_as_the_widest():
    mixed = [pa.array(["a", None]), pa.array(["b"], pa.large_string())]
    assert one_text_array(pa.chunked_array([["a"], ["b", None]])).equals(pa.array(["a", "b", None]))
    assert one_text_array(pa.chunked_array([], pa.string())).equals(pa.array([], pa.string()))
    assert (
        one_text_array(pa.chunked_array([m.cast(pa.large_string()) for m in mixed])).type == pa.large_string()
    )
    assert one_text_array(pa.array([None, None])).equals(pa.array([None, None], pa.string()))


@pytest.mark.parametrize(
    "column", [pa.array([1]), pa.array([b"a"]), pa.array([["a"]]), pa.array([1]).dictionary_encode()]
)
def test_a_column_that_is_no_text_is_refused(column):
    with pytest.raises(TypeError, match="expected a text column"):
        text_chunks(column)
