"""Bloom filters in Apache Hudi's formats.

SIMPLE is one row of bits; DYNAMIC_V0 starts with one row and adds another for every `entries` keys, up to
`max_entries`, after which keys go to the rows in turn.

Source: Apache Hudi 0.15 (SimpleBloomFilter, InternalDynamicBloomFilter, HoodieDynamicBoundedBloomFilter);
filters in the footers of the golden tables come out bit for bit when built again from the keys.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_format._lazy import CompiledParts
from hudi_format.arrow.text_buffers import text_buffers, text_chunks
from hudi_format.errors import CorruptFileError, RecordKeyError

with CompiledParts():
    from hudi_index.bloom import _base64, _filter

SIMPLE: Final = "SIMPLE"
DYNAMIC: Final = "DYNAMIC_V0"

_VERSION = -1
_JENKINS, _MURMUR = 0, 1
_HEADER = struct.Struct(">iibi")  # version, hashes, hash type, bits
_OLD_HEADER = struct.Struct(">ii")  # hashes, bits; Jenkins
_GROWTH = struct.Struct(">iii")  # entries per row, entries in the last row, rows

_MAX_BITS = 2**31 - 1
# -log2 of the smallest positive double: no false positive rate asks for more hashes.
_MAX_HASHES = 1075


@dataclass(frozen=True, slots=True)
class Shape:
    """Bits, hash count and hash function, the same in all rows of a filter."""

    bits: int
    hashes: int
    murmur: bool = True

    @property
    def nbytes(self) -> int:
        return (self.bits + 7) // 8


def shape_for(entries: int, fpp: float) -> Shape:
    """Shape for a number of keys and a false positive rate (Hudi's BloomFilterUtils).

    Raises:
        ValueError: no positive number of entries, a rate outside ]0, 1[, or a filter beyond 2^31 bits.
    """
    if entries < 1:
        raise ValueError(f"a bloom filter needs at least one entry, not {entries}")
    if not 0.0 < fpp < 1.0:
        raise ValueError(f"the false positive rate must be between 0 and 1, not {fpp}")
    bits = math.ceil(entries * (-math.log(fpp) / (math.log(2) * math.log(2))))
    if bits > _MAX_BITS:
        raise ValueError(
            f"a bloom filter for {entries} keys at {fpp} needs {bits} bits, more than {_MAX_BITS}"
        )
    return Shape(bits, math.ceil(math.log(2) * bits / entries))


class BloomFilter:
    """Bloom filter of record keys.

    Not for concurrent `add`; `might_contain` may run on any thread.

    Attributes:
        type_code: SIMPLE or DYNAMIC_V0.
        shape: bits, hashes, hash function.
        entries: keys per row (DYNAMIC_V0; for SIMPLE what it was made for, 0 if it was parsed).
        count: keys added to the newest row, and all that followed (DYNAMIC_V0); for SIMPLE all that this
            object was given.
        max_entries: beyond that many keys no row is added.
        rows: the bits, uint8, bit i in byte i // 8 with mask 1 << (i % 8).
    """

    __slots__ = ("count", "entries", "max_entries", "rows", "shape", "type_code")

    def __init__(
        self, type_code: str, shape: Shape, entries: int, count: int, max_entries: int, rows: list[np.ndarray]
    ) -> None:
        self.type_code = type_code
        self.shape = shape
        self.entries = entries
        self.count = count
        self.max_entries = max_entries
        self.rows = rows

    @classmethod
    def create(
        cls,
        type_code: str = DYNAMIC,
        entries: int = 60000,
        fpp: float = 0.000000001,
        max_entries: int = 100000,
    ) -> BloomFilter:
        """An empty filter; the defaults are Apache Hudi's.

        Raises:
            ValueError: an unknown type, or a size that no filter has (`shape_for`).
        """
        if type_code not in (SIMPLE, DYNAMIC):
            raise ValueError(f"bloom filter types are {SIMPLE} and {DYNAMIC}, not {type_code!r}")
        shape = shape_for(entries, fpp)
        return cls(type_code, shape, entries, 0, max_entries, [_empty_row(shape)])

    @property
    def total(self) -> int:
        """Number of keys added, repeats included; for a parsed SIMPLE filter, since parsing."""
        return (len(self.rows) - 1) * self.entries + self.count if self.type_code == DYNAMIC else self.count

    def copy(self) -> BloomFilter:
        """A copy of the filter."""
        rows = [row.copy() for row in self.rows]
        return BloomFilter(self.type_code, self.shape, self.entries, self.count, self.max_entries, rows)

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add record keys.

        Raises:
            RecordKeyError: a null or empty key; nothing of that chunk is added.
        """
        for chunk in text_chunks(keys):
            buffers = text_buffers(chunk)
            n = buffers.rows
            none = np.diff(buffers.offsets) == 0
            if buffers.valid is not None:
                none |= buffers.valid == 0
            if none.any():
                raise RecordKeyError(f"{int(none.sum())} keys are null or empty")
            start = 0
            while start < n:
                start += self._fill(buffers.data, buffers.offsets, start, n - start)

    def _fill(self, data: np.ndarray, offsets: np.ndarray, start: int, left: int) -> int:
        """Add the next keys that go to the same rows; returns their number."""
        if self.type_code == SIMPLE:
            self._add(0, data, offsets, start, 1, left)
            self.count += left
            return left
        room = self.entries - self.count
        if room <= 0 and len(self.rows) * self.entries < self.max_entries:
            self.rows.append(_empty_row(self.shape))
            self.count, room = 0, self.entries
        if room > 0:
            taken = min(room, left)
            self._add(len(self.rows) - 1, data, offsets, start, 1, taken)
            self.count += taken
            return taken
        # Full: the first key beyond goes to row 0, and the ones after it to rows 0, 1, 2 ... 0, 1 ...
        beyond = self.count - self.entries
        rows = len(self.rows)
        self.count += left
        taken = 0
        if beyond == 0:
            self._add(0, data, offsets, start, 1, 1)
            taken, beyond = 1, 1
        for i in range(min(rows, left - taken)):
            row = (beyond - 1 + i) % rows
            first = taken + i
            self._add(row, data, offsets, start + first, rows, -(-(left - first) // rows))
        return left

    def _add(
        self, row: int, data: np.ndarray, offsets: np.ndarray, start: int, step: int, count: int
    ) -> None:
        shape = self.shape
        _filter.add(self.rows[row], shape.bits, shape.hashes, shape.murmur, data, offsets, start, step, count)

    def might_contain(self, keys: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        """Membership per key: False is certain; null for a null key, False for an empty one."""
        parts = [self._test(chunk) for chunk in text_chunks(keys)]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.bool_())

    def _test(self, keys: pa.Array) -> pa.BooleanArray:
        data, offsets, valid = text_buffers(keys)
        shape = self.shape
        found = np.zeros(len(keys), dtype=np.uint8)
        for row in self.rows:
            _filter.contains(row, shape.bits, shape.hashes, shape.murmur, data, offsets, found)
        return pa.array(found.view(np.bool_), mask=None if valid is None else valid == 0)

    def to_bytes(self) -> bytes:
        """The filter in Apache Hudi's serialised form, before base64."""
        header = _header(self.shape)
        if self.type_code == SIMPLE:
            return header + self.rows[0].tobytes()
        growth = _GROWTH.pack(self.entries, self.count, len(self.rows))
        return b"".join([header, growth, *(part for row in self.rows for part in (header, row.tobytes()))])

    def to_base64(self) -> str:
        """The filter's text in a base file footer."""
        return _base64.encode(self.to_bytes()).decode("ascii")


def _header(shape: Shape) -> bytes:
    if shape.murmur:
        return _HEADER.pack(_VERSION, shape.hashes, _MURMUR, shape.bits)
    return _HEADER.pack(_VERSION, shape.hashes, _JENKINS, shape.bits)


def _empty_row(shape: Shape) -> np.ndarray:
    return np.zeros(shape.nbytes, dtype=np.uint8)


def parse_filter(text: str, type_code: str | None = None, *, max_entries: int = 100000) -> BloomFilter:
    """The filter of a footer's text.

    Args:
        text: base64.
        type_code: the footer's `hoodie_bloom_filter_type_code`; None (absent) means SIMPLE.
        max_entries: where a DYNAMIC_V0 filter stops growing if keys are added; the text does not say.

    Raises:
        CorruptFileError: no base64, an unknown type, sizes that do not fit the length, or bytes after the
            end; `details["offset"]` counts decoded bytes.
    """
    data = _base64.decode(text.encode("utf-8", "replace"))
    if data is None:
        raise CorruptFileError("the bloom filter is not base64", offset=0)

    def read(at: int, length: int) -> bytes:
        _require(at <= len(data), "the bloom filter is cut off", len(data))
        return data[at : at + length]

    found = layout_of(read, type_code)
    shape, last = found.shape, found.bases[-1]
    _require(found.size <= len(data), f"{shape.bits} bits exceed the {len(data) - last} bytes left", last)
    _require(found.size == len(data), "bytes follow the bloom filter", found.size)
    rows = [np.frombuffer(data, np.uint8, shape.nbytes, base).copy() for base in found.bases]
    code = type_code or SIMPLE
    most = 0 if code == SIMPLE else max_entries
    return BloomFilter(code, shape, found.entries, found.count, most, rows)


@dataclass(frozen=True, slots=True)
class FilterLayout:
    """Layout of a serialised filter, in bytes.

    Attributes:
        entries, count: keys of a row, and in the newest one; 0 for SIMPLE.
        bases: of each row, where its bits begin.
        size: of the filter.
    """

    shape: Shape
    entries: int
    count: int
    bases: list[int]
    size: int


def layout_of(read: Callable[[int, int], bytes], type_code: str | None) -> FilterLayout:
    """Layout of a filter, by its headers.

    Args:
        read: gives bytes of the filter from a place on, so many or fewer at its end.
        type_code: as of `parse_filter`.

    Raises:
        CorruptFileError: an unknown type, or headers that are none.
    """
    code = type_code or SIMPLE
    _require(code in (SIMPLE, DYNAMIC), f"unknown bloom filter type {code!r}", 0)
    shape, at = _parse_header(read, 0)
    if code == SIMPLE:
        return FilterLayout(shape, 0, 0, [at], at + shape.nbytes)
    growth = read(at, _GROWTH.size)
    _require(len(growth) == _GROWTH.size, "the bloom filter is cut off", at)
    entries, count, number = _GROWTH.unpack(growth)
    _require(entries > 0 and count >= 0 and number > 0, "a bloom filter without rows or entries", at)
    at += _GROWTH.size
    bases: list[int] = []
    while len(bases) < number:
        row_shape, base = _parse_header(read, at)
        _require(row_shape == shape, "a row's shape differs from the bloom filter's", at)
        bases.append(base)
        at = base + shape.nbytes
    return FilterLayout(shape, entries, count, bases, at)


def _parse_header(read: Callable[[int, int], bytes], at: int) -> tuple[Shape, int]:
    """Shape of a filter or of one of its rows, and the offset of its bits or growth."""
    data, size, murmur = read(at, _HEADER.size), _OLD_HEADER.size, False
    _require(len(data) >= size, "the bloom filter is cut off", at)
    hashes, bits = _OLD_HEADER.unpack_from(data)
    if hashes <= 0:
        _require(hashes == _VERSION, f"bloom filter version {hashes} is unknown", at)
        size = _HEADER.size
        _require(len(data) == size, "the bloom filter is cut off", at)
        _, hashes, kind, bits = _HEADER.unpack(data)
        _require(kind in (_JENKINS, _MURMUR), f"hash function {kind} is unknown", at + 8)
        murmur = kind == _MURMUR
    _require(0 < hashes <= _MAX_HASHES, f"{hashes} hashes per key", at)
    _require(bits > 0, f"a bloom filter of {bits} bits", at)
    return Shape(bits, hashes, murmur), at + size


def _require(condition: bool, message: str, offset: int) -> None:
    if not condition:
        raise CorruptFileError(message, offset=offset)
