"""Probing of many keys against many bloom filters, without decoding the filters.

A footer holds a filter as base64, 431,380 digits of it by default; a key that is not in the file is told by
looking at one or two of them.  So the digits are looked at where they lie, and the first hashes of each key are
worked out once for all filters: they do not depend on a filter's size, and small files have many sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from hudi_format.arrow.text_buffers import TextBuffers, one_text_array, text_buffers
from hudi_format.errors import CorruptFileError
from hudi_index.bloom import _base64, _filter
from hudi_index.bloom.filter import Shape, layout_of

Rows: TypeAlias = np.ndarray

# Hashes that are worked out ahead: in a filter at its rated fill a key that is not there passes one of 256 times.
ROUNDS_AHEAD = 8


@dataclass(frozen=True, slots=True)
class FilterText:
    """A serialised filter in base64, as in a footer.

    Attributes:
        text: base64 digits.
        bases: per row of the filter, where its bits begin, in decoded bytes (int64).
    """

    text: memoryview
    shape: Shape
    bases: np.ndarray


def filter_text(text: memoryview, type_code: str | None = None) -> FilterText:
    """The filter text with the offsets of its bits.

    Args:
        text: base64, as in the footer.
        type_code: the footer's `hoodie_bloom_filter_type_code`; None (absent) means SIMPLE.

    Raises:
        CorruptFileError: an unknown type, headers that are none, or a length that is not the filter's.
    """
    found = layout_of(partial(_decoded, text), type_code)
    end = found.size
    if len(text) != 4 * (-(-end // 3)):
        raise CorruptFileError(
            f"the bloom filter has {len(text)} base64 digits, but its {end} bytes need {4 * -(-end // 3)}",
            offset=end,
        )
    return FilterText(text, found.shape, np.array(found.bases, dtype=np.int64))


def _decoded(text: memoryview, start: int, length: int) -> bytes:
    """Decoded bytes from `start`, fewer at the end of the text."""
    first = start // 3
    digits = bytes(text[4 * first : 4 * (-(-(start + length) // 3))])
    data = _base64.decode(digits)
    if data is None:
        raise CorruptFileError("the bloom filter is not base64", offset=start)
    return data[start - 3 * first :][:length]


class Probe:
    """Keys to look for in filters; shareable between threads.

    Memory: 32 bytes for each key, and the key column itself.

    Args:
        keys: record keys; none null or empty.

    Attributes:
        rows: how many keys.
    """

    __slots__ = ("_buffers", "_hashes", "keys", "rows")

    def __init__(self, keys: pa.Array | pa.ChunkedArray) -> None:
        self.keys = one_text_array(keys)
        self._buffers = text_buffers(self.keys)
        self.rows = self._buffers.rows
        self._hashes: dict[bool, np.ndarray] = {}

    @property
    def buffers(self) -> TextBuffers:
        return self._buffers

    def might_be_in(self, filter: FilterText, rows: Rows | None = None) -> Rows:
        """The keys among `rows` (int64; None: all) that the filter does not rule out, in order.

        Raises:
            CorruptFileError: a byte of the filter that is no base64.
        """
        shape, text = filter.shape, filter.text
        out = np.empty(self.rows if rows is None else len(rows), dtype=np.int64)
        rounds = min(ROUNDS_AHEAD, shape.hashes)
        count = _filter.screen(text, filter.bases, shape.bits, rounds, self._ahead(shape.murmur), rows, out)
        if count > 0 and shape.hashes > ROUNDS_AHEAD:
            data, offsets, _ = self._buffers
            count = _filter.confirm(
                text, filter.bases, shape.bits, shape.hashes, shape.murmur, data, offsets, out, count
            )
        if count < 0:
            raise CorruptFileError("the bloom filter is not base64", offset=0)
        return out[:count]

    def _ahead(self, murmur: bool) -> np.ndarray:
        found = self._hashes.get(murmur)
        if found is None:
            found = np.zeros((ROUNDS_AHEAD, self.rows), dtype=np.uint32)
            data, offsets, _ = self._buffers
            _filter.first_hashes(ROUNDS_AHEAD, murmur, data, offsets, found)
            self._hashes[murmur] = found  # two threads may both have made it: the same
        return found
