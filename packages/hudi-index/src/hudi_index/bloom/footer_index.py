"""Bloom index lookup in file footers, without reads or listings.

A file is ruled out for a key by its range of keys or by its bloom filter.  A file that says neither may hold
any key.  What is not ruled out has to be looked for in the file: a filter may answer "maybe" for a key that is
not there, never "no" for one that is.

Source: HoodieBloomIndex of Apache Hudi 0.15; spec "Base files", section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import CorruptFileError
from hudi_format.parquet.footer import BLOOM_TYPE, MAX_KEY, MIN_KEY, filter_entry
from hudi_index.bloom import _filter
from hudi_index.bloom.probe import Probe, filter_text
from hudi_index.hashing.java import orders_part

# What an index asks of the caller, who owns files and listings.


class FooterValues(Protocol):
    """Key-value entries of a base file footer, as read by `read_entries`."""

    @property
    def values(self) -> Mapping[str, memoryview]: ...


RANGE: Final = "range"
FILTER: Final = "filter"
MAYBE: Final = "maybe"

_LEAST, _GREATEST = np.uint64(0), np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Keys that a footer does not rule out.

    Attributes:
        verdict: MAYBE, or what rules out every key: RANGE or FILTER.
        rows: the keys that may be in the file (int64), in no order; None for all of them.
    """

    verdict: str
    rows: np.ndarray | None


class BloomIndex:
    """Keys to look up in many files' footers; shareable between threads.

    Args:
        keys: record keys; none null or empty.
        prune_by_ranges: whether footers' key ranges are believed (`hoodie.bloom.index.prune.by.ranges`).
    """

    def __init__(self, keys: pa.Array | pa.ChunkedArray, *, prune_by_ranges: bool = True) -> None:
        self.probe = Probe(keys)
        self._ranges = _Ranges(self.probe) if prune_by_ranges and self.probe.rows else None

    def candidates(self, footer: FooterValues) -> Candidates:
        """Keys that may be in the file with this footer.

        Raises:
            CorruptFileError: a filter that is none, or a least key above the greatest.
        """
        rows: np.ndarray | None = None
        if self._ranges is not None:
            low, high = footer.values.get(MIN_KEY), footer.values.get(MAX_KEY)
            if low is not None and high is not None:
                rows = self._ranges.between(bytes(low), bytes(high))
                if rows is not None and not len(rows):
                    return Candidates(RANGE, rows)
        text = filter_entry(footer.values)
        if not text:
            return Candidates(MAYBE, rows)
        code = footer.values.get(BLOOM_TYPE)
        rows = self.probe.might_be_in(filter_text(text, None if code is None else bytes(code).decode()), rows)
        return Candidates(MAYBE if len(rows) else FILTER, rows)


class _Ranges:
    """Sorted keys, compared by 8 bytes after their common prefix.

    What is equal there counts as within: a key too many costs a look into a file, a key too few would be wrong.
    """

    def __init__(self, probe: Probe) -> None:
        ends = pc.min_max(probe.keys).as_py()
        self._first, self._last = ends["min"].encode(), ends["max"].encode()
        self._common = _common_prefix(self._first, self._last)
        self._probe = probe
        self._sorted: tuple[np.ndarray, np.ndarray] | None = None

    def between(self, low: bytes, high: bytes) -> np.ndarray | None:
        """Keys that may lie between two bounds, inclusive; None for all."""
        if orders_part(low) or orders_part(high):
            return None
        if low > high:
            raise CorruptFileError("the footer's smallest record key is above its largest")
        if self._last < low or high < self._first:
            return np.empty(0, dtype=np.int64)
        if low <= self._first and self._last <= high:
            return None
        numbers, order = self._in_order()
        start = np.searchsorted(numbers, self._number(low), side="left")
        end = np.searchsorted(numbers, self._number(high), side="right")
        return order[start:end]

    def _number(self, bound: bytes) -> np.uint64:
        """Position of a bound among the keys' 8 bytes."""
        if bound.startswith(self._common):
            rest = bound[len(self._common) :][:8]
            return np.uint64(int.from_bytes(rest.ljust(8, b"\0"), "big"))
        return _LEAST if bound < self._common else _GREATEST

    def _in_order(self) -> tuple[np.ndarray, np.ndarray]:
        if self._sorted is None:
            numbers = np.empty(self._probe.rows, dtype=np.uint64)
            data, offsets, _ = self._probe.buffers
            _filter.prefixes(data, offsets, len(self._common), numbers)
            order = np.argsort(numbers, kind="stable")
            self._sorted = numbers[order], order
        return self._sorted


def _common_prefix(a: bytes, b: bytes) -> bytes:
    n = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:n]
