"""Key ranges of many files against many keys at once.

A range admits the keys from its least to its greatest one.  Both sides are sorted once, and each range is then a run of
the sorted keys: that takes the place of Apache Hudi's tree of ranges (`hoodie.bloom.index.use.treebased.filter`), which
is asked key by key.

    >>> import pyarrow as pa
    >>> found = keys_in_ranges(pa.array(["b", "z", "d"]), pa.array(["a", "e", None]), pa.array(["c", "f", None]))
    >>> found.counts.tolist()  # of a range that is not known, all keys
    [1, 0, 3]
    >>> found.rows(0).tolist()
    [0]

Source: IntervalTreeBasedIndexFileFilter of Apache Hudi 0.15.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.text_buffers import one_text_array
from hudi_index.hashing.java import ORDERS_PART


@dataclass(frozen=True, slots=True, eq=False)
class KeysInRanges:
    """Keys that each of many ranges admits.

    Attributes:
        first, end: of each range, its run in `order` (int64).
        order: rows of the keys in the order of the keys (int64).
    """

    first: np.ndarray
    end: np.ndarray
    order: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Number of keys that each range admits (int64)."""
        counts: np.ndarray = self.end - self.first
        return counts

    def rows(self, number: int) -> np.ndarray:
        """Rows of the keys that a range admits (int64), in the order of the keys."""
        rows: np.ndarray = self.order[self.first[number] : self.end[number]]
        return rows


def keys_in_ranges(
    keys: pa.Array | pa.ChunkedArray, low: pa.Array | pa.ChunkedArray, high: pa.Array | pa.ChunkedArray
) -> KeysInRanges:
    """Keys that each range admits, in the order of the texts' bytes.

    Ranges in footers are Java's, which orders text otherwise where a character from U+E000 on stands in it: a range
    with such an end admits all keys.

    Args:
        keys: texts; not null.
        low, high: least and greatest key of each range, included; null where a range is not known: it admits all.

    Raises:
        TypeError: other columns than texts, whose order would not be that of their values.
        ValueError: not as many of one as of the other.
    """
    if len(low) != len(high):
        raise ValueError(f"there are {len(low)} least and {len(high)} greatest keys")
    texts, lows, highs = (_one(a) for a in (keys, low, high))
    order = pc.sort_indices(texts).to_numpy().astype(np.int64)
    known = np.asarray(pc.and_(lows.is_valid(), highs.is_valid()), dtype=bool)
    for ends in (lows, highs):
        known &= ~np.asarray(pc.fill_null(pc.match_substring_regex(ends, ORDERS_PART), True), dtype=bool)
    first = np.zeros(len(lows), dtype=np.int64)
    end = np.full(len(lows), len(texts), dtype=np.int64)
    chosen = pa.array(known)
    first[known] = _before(texts, lows.filter(chosen), equal=False)
    end[known] = np.maximum(_before(texts, highs.filter(chosen), equal=True), first[known])
    return KeysInRanges(first, end, order)


def _one(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    return one_text_array(texts).cast(pa.large_string())


def _before(keys: pa.Array, bounds: pa.Array, *, equal: bool) -> np.ndarray:
    """Number of keys below each bound, or up to it."""
    parts = [keys, bounds] if equal else [bounds, keys]  # of equal texts the first one stays first
    order = pc.sort_indices(pa.concat_arrays(parts)).to_numpy()
    is_bound = order >= len(keys) if equal else order < len(bounds)
    counts = np.cumsum(~is_bound)
    number = order[is_bound] - (len(keys) if equal else 0)
    out = np.empty(len(bounds), dtype=np.int64)
    out[number] = counts[is_bound]
    return out
