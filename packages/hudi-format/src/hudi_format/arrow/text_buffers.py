"""Buffers of text columns for the C kernels: bytes, 64-bit offsets, validity.

Kernels take plain buffers, so that nothing links against pyarrow.  Slices and `array.offset` are resolved
here, and so are the several ways in which Arrow stores text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array


class TextBuffers(NamedTuple):
    """Buffers of a text column of n rows.

    Attributes:
        data: uint8; borrowed from the Arrow array.
        offsets: int64, n + 1 of them; row i is `data[offsets[i]:offsets[i + 1]]`.
        valid: uint8, 1 where the row is not null; None where no row is.
    """

    data: np.ndarray
    offsets: np.ndarray
    valid: np.ndarray | None

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1


def text_chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """The chunks of a text column, each a string or large_string array.

    Raises:
        TypeError: a column that is not text (string of any layout, or a dictionary or runs of strings).
    """
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        raise TypeError(
            f"expected a text column (a pyarrow Array or ChunkedArray), got {type(array).__name__}"
        )
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return [_plain(chunk) for chunk in chunks]


def one_text_array(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A text column as one array: string, or large_string beyond 2 GiB of text.

    Raises:
        TypeError: a column that is not text.
    """
    chunks = text_chunks(array)
    kind = next((c.type for c in chunks if pa.types.is_large_string(c.type)), pa.string())
    return one_array(pa.chunked_array([c.cast(kind) for c in chunks], kind))


def one_binary_array(array: pa.Array | pa.ChunkedArray) -> pa.LargeBinaryArray:
    """A column of texts or bytes as one array of bytes."""
    one = one_array(array)
    return (one.dictionary_decode() if pa.types.is_dictionary(one.type) else one).cast(pa.large_binary())


def text_buffers(array: pa.Array, *, widen: bool = True) -> TextBuffers:
    """The buffers of an array of texts or bytes, also large ones; the array must outlive them.

    Args:
        widen: false for offsets as they are in the array, of 32 or 64 bits, without a copy.
    """
    n = len(array)
    if n == 0:
        return TextBuffers(np.empty(0, np.uint8), np.zeros(1, np.int64), None)
    _, offsets, data = array.buffers()
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    kind = np.int64 if large else np.int32
    starts = np.frombuffer(offsets, dtype=kind)[array.offset : array.offset + n + 1]
    valid = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8) if array.null_count else None
    content = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return TextBuffers(content, starts.astype(np.int64, copy=False) if widen else starts, valid)


def _plain(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(array))
    if pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return array.cast(pa.string())
    raise TypeError(f"expected a text column, got {kind}")
