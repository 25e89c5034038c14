"""Index over record keys: lookup, deduplication, choice of the winning record.

Rows are positions, counted from 0 over all chunks of a column.  The kernels release the GIL.

Source: Apache Hudi 0.15: preCombine of OverwriteWithLatestAvroPayload and DefaultHoodieRecordPayload (greater
ordering value, the later record among equals).
"""

from __future__ import annotations

import random
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from hudi_format._lazy import CompiledParts
from hudi_format.arrow.text_buffers import one_text_array, text_buffers, text_chunks
from hudi_format.errors import OrderingValueError, RecordKeyError

with CompiledParts():
    from hudi_format.merge import _keymerge

from hudi_format.merge.ordering import OrderingValues, ordering_values

Keys: TypeAlias = pa.Array | pa.ChunkedArray

# Below so many keys the hash table is in the processor's cache, above the other a filter of it is not either.
_FILTERED_FROM, _FILTERED_TO = 1 << 14, 1 << 22
# How many keys an error names.
_SHOWN = 3


class KeyIndex:
    """Hash index from record key to row.

    Memory: 16 to 32 bytes per key, and the key column itself, which it keeps; 1 to 2 more for a filter once many keys
    were looked up, most of which tend to be others.  Threads may share an index.

    Args:
        keys: text, any number of chunks.  Null keys are never found.

    Attributes:
        rows: how many rows `keys` has.
        duplicates: whether a key stands in more than one row.
    """

    __slots__ = ("_buffers", "_seed", "_slots", "_words", "duplicates", "keys", "rows")

    def __init__(self, keys: Keys) -> None:
        self.keys = one_text_array(keys)
        self._buffers = text_buffers(self.keys)
        self.rows = self._buffers.rows
        # Another seed in each index: nobody can choose keys that collide.
        self._seed = random.getrandbits(64)
        self._slots = _slots(self.rows)
        self._words: np.ndarray | None = None
        self.duplicates = _keymerge.build(self._buffers, self._slots, self._seed) > 0

    def find(self, keys: Keys) -> np.ndarray:
        """Last row of each key in the index (int64); -1 for missing keys and null."""
        chunks = text_chunks(keys)
        rows = sum(len(c) for c in chunks)
        # Arrow's pool keeps the pages of such sizes for the next call, which malloc gives back.
        out = np.frombuffer(pa.allocate_buffer(8 * rows), np.int64) if rows else np.empty(0, np.int64)
        words = self._filter(rows)
        start = 0
        for chunk in chunks:
            part = out[start : start + len(chunk)]
            probes = text_buffers(chunk, widen=False)
            _keymerge.find(self._buffers, self._slots, self._seed, probes, words, part, None)
            start += len(chunk)
        return out

    def found(self, keys: Keys) -> np.ndarray:
        """Last rows (int64) in the index of the keys that it has; each once, ascending."""
        chunks = text_chunks(keys)
        marks = np.zeros(self.rows, dtype=np.uint8)
        words = self._filter(sum(len(c) for c in chunks))
        for chunk in chunks:
            probes = text_buffers(chunk, widen=False)
            _keymerge.find(self._buffers, self._slots, self._seed, probes, words, None, marks)
        return np.flatnonzero(marks)

    def _filter(self, probes: int) -> np.ndarray | None:
        """Filter of the hash table, made where so many look-ups pay for it."""
        if self._words is None and probes >= self.rows and _FILTERED_FROM <= self.rows <= _FILTERED_TO:
            words = np.zeros(len(self._slots) // 16, dtype=np.uint64)  # 8 to 16 bits a key, two of them set
            _keymerge.words(self._slots, words)
            self._words = words
        return self._words

    def any(self, keys: Keys) -> bool:
        """Whether any of the keys is in the index."""
        return self.rows > 0 and len(self.found(keys)) > 0


def key_groups(keys: Keys) -> np.ndarray:
    """First row with each row's key (int64); -1 for null."""
    buffers = text_buffers(one_text_array(keys))
    out = np.empty(buffers.rows, dtype=np.int64)
    _keymerge.group(buffers, _slots(buffers.rows), random.getrandbits(64), out)
    return out


def precombine(keys: Keys, ordering: pa.Array | pa.ChunkedArray | None = None) -> np.ndarray:
    """Ascending rows (int64) of the surviving record per key.

    Args:
        keys: record keys; not null.
        ordering: per row, the ordering value; the greatest wins, the later row among equals.  Without it
            the later row wins.

    Raises:
        RecordKeyError: a null key.
        OrderingValueError: a null ordering value.
        SchemaError: an ordering column of a type without an order.
    """
    array = one_text_array(keys)
    if array.null_count:
        raise RecordKeyError(
            f"the record key is null in {array.null_count} of {len(array)} rows", rows=array.null_count
        )
    buffers = text_buffers(array)
    values = OrderingValues(None, None, None)
    if ordering is not None:
        if len(ordering) != len(array):
            raise ValueError(f"one ordering value per key is needed: {len(ordering)} for {len(array)}")
        _refuse_null_ordering(ordering, array)
        (values,) = ordering_values(ordering)
    dead = np.zeros(buffers.rows, dtype=np.uint8)
    seed = random.getrandbits(64)
    _keymerge.losers(buffers, _slots(buffers.rows), seed, values.numbers, values.text, dead)
    return np.flatnonzero(dead == 0)


def _refuse_null_ordering(ordering: pa.Array | pa.ChunkedArray, keys: pa.Array) -> None:
    if not ordering.null_count:
        return
    rows = np.flatnonzero(~ordering.is_valid().to_numpy(zero_copy_only=False).astype(bool))[:_SHOWN]
    first = keys.take(pa.array(rows)).to_pylist()
    raise OrderingValueError(
        f"the ordering value is null in {ordering.null_count} of {len(ordering)} rows, first for the "
        "record keys " + ", ".join(repr(k) for k in first),
        remedy="fill the column, or choose another hoodie.datasource.write.precombine.field.",
        rows=ordering.null_count,
        first_keys=first,
    )


def _slots(rows: int) -> np.ndarray:
    """An empty hash table for `rows` keys: a power of two, at most half full."""
    return np.zeros(1 << max(2 * rows - 1, 1).bit_length(), dtype=np.uint64)
