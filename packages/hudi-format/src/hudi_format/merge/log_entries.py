"""Log records with keys, ordering values and kinds, as the merge needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

Column: TypeAlias = pa.Array | pa.ChunkedArray


@dataclass(frozen=True, slots=True)
class Entries:
    """Records in order of arrival; all attributes have one element per record.

    Attributes:
        rows: their columns.
        keys: record keys, text.
        ordering: ordering values; None where there are none.
        kinds: what each is (`hudi_format.merge.record_merger`, uint8).
    """

    rows: pa.Table
    keys: Column
    ordering: Column | None
    kinds: np.ndarray

    def __len__(self) -> int:
        return len(self.kinds)

    def take(self, places: np.ndarray) -> Entries:
        at = pa.array(places)
        ordering = None if self.ordering is None else self.ordering.take(at)
        return Entries(self.rows.take(at), self.keys.take(at), ordering, self.kinds[places])


@dataclass(frozen=True, slots=True)
class Patches:
    """Records to merge into some stored rows.

    Attributes:
        entries: the records.
        found: per stored row, the first record that it meets, -1 for none (int64).
        counts: per stored row, how many records it meets, which follow each other; None where that is at most
            one (int64).
    """

    entries: Entries
    found: np.ndarray
    counts: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """Records resolved per key, ready to meet stored rows.

    Attributes:
        entries: one record for each key; or all of them, those of a key one after the other.
        keys: the keys, each once.
        places: of each key, the place that it has in the order of the result (int64): that of the record
            that stands for it, or of its last.
        starts, counts: of each key, its first record and how many it has; None where each has one.
    """

    entries: Entries
    keys: Column
    places: np.ndarray
    starts: np.ndarray | None = None
    counts: np.ndarray | None = None

    def patches(self, hits: np.ndarray) -> Patches:
        """Records of the keys with numbers `hits` (-1 for none)."""
        if self.starts is None or self.counts is None:
            return Patches(self.entries, hits)
        if not len(self.starts):
            return Patches(self.entries, hits, np.zeros(len(hits), np.int64))
        hit = hits >= 0
        number = np.maximum(hits, 0)
        return Patches(
            self.entries, np.where(hit, self.starts[number], -1), np.where(hit, self.counts[number], 0)
        )


class Resolver(Protocol):
    """Resolution of the records of one key."""

    def resolve(self, entries: Entries) -> Resolved:
        """Resolved records, given all records of their keys."""
        ...

    def alone(self, resolved: Resolved, unseen: np.ndarray) -> tuple[Entries, np.ndarray]:
        """Rows of keys without a stored row, and their places; deletes are left out.

        Args:
            unseen: per key, whether it is asked for.
        """
        ...
