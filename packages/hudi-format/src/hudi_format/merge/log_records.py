"""Log records by key, looked up while base rows stream.

They stay in memory up to a limit and go to disk beyond it (`hudi_format.merge.spilled_records`); what comes out is the
same, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_format.arrow.sizes import size_of
from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import CorruptFileError
from hudi_format.merge import record_merger
from hudi_format.merge.key_index import KeyIndex, Keys
from hudi_format.merge.log_entries import Entries, Patches, Resolved, Resolver
from hudi_format.merge.payloads import MergeRule
from hudi_format.merge.spilled_records import SpilledRecords
from hudi_format.model import LogFile

_ALL = 1 << 62
_DATA = (record_merger.DATA, record_merger.DATA_FLAG_NULL)


@dataclass(slots=True)
class MergeCounts:
    """Counts of one merge, for the statistics of a compaction.

    The first ones are known once the logs are read, the last three when all rows have been taken.

    Attributes:
        blocks: valid data and delete blocks.
        corrupt: damaged stretches that nothing committed is in.
        rolled_back: blocks taken back by rollback blocks.
        records: records of data blocks, deletes by delete blocks not among them.
        keys: keys of all records, where they were not too many to be held; else all records.
        updated, deleted, inserted: base rows that were changed or removed, and rows without a base row.
    """

    blocks: int = 0
    corrupt: int = 0
    rolled_back: int = 0
    records: int = 0
    keys: int = 0
    updated: int = 0
    deleted: int = 0
    inserted: int = 0

    def totals(self, files: Sequence[LogFile]) -> dict[str, int]:
        """Entries of the write statistic of a compaction, by Apache Hudi's names.

        Args:
            files: log files that were compacted.
        """
        return {
            "totalLogRecords": self.records,
            "totalLogFilesCompacted": len(files),
            "totalLogSizeCompacted": sum(max(f.size, 0) for f in files),
            "totalUpdatedRecordsCompacted": self.keys,
            "totalLogBlocks": self.blocks + self.rolled_back,
            "totalCorruptLogBlock": self.corrupt,
            "totalRollbackBlocks": self.rolled_back,
        }


@dataclass(frozen=True, slots=True)
class OnePerKey:
    """Resolver that keeps one record per key.

    Attributes:
        logged: as `modes.combine`.
        ordered: whether ordering values count among the records.
        partial: whether some records lack columns (`hudi_format.merge.partial_update`).
    """

    rule: MergeRule
    logged: bool = True
    ordered: bool = True
    partial: bool = False

    def resolve(self, entries: Entries) -> Resolved:
        among = entries.ordering if self.ordered else None
        combined = record_merger.combine(
            entries.keys,
            self.rule,
            ordering=among,
            kinds=entries.kinds,
            logged=self.logged,
            partial=self.partial,
        )
        at = pa.array(combined.rows)
        keys = entries.keys.take(at)
        ordering = None if entries.ordering is None else entries.ordering.take(at)
        one = Entries(combined.take(entries.rows), keys, ordering, combined.kinds)
        return Resolved(one, keys, combined.rows)

    def alone(self, resolved: Resolved, unseen: np.ndarray) -> tuple[Entries, np.ndarray]:
        left = np.flatnonzero(unseen & np.isin(resolved.entries.kinds, _DATA))
        return resolved.entries.take(left), resolved.places[left]


class Records:
    """Records added part by part, then looked up by stored rows in order.

    Args:
        limit: None: all stay in memory.
        expected: bytes of all records in memory, roughly.

    Raises:
        SpillError: from every call, where the records exceed the limit.
    """

    def __init__(
        self,
        resolver: Resolver,
        columns: pa.Schema,
        ordering: pa.DataType | None = None,
        limit: MemoryLimit | None = None,
        *,
        expected: int = 0,
    ) -> None:
        self._resolver = resolver
        self._columns = columns
        self._ordering = ordering
        self._limit = limit
        self._expected = expected
        self._parts: list[Entries] = []
        self._held = 0
        self._spilled: SpilledRecords | None = None
        self._resolved: Resolved | None = None
        self._index: KeyIndex | None = None
        self._seen = np.zeros(0, dtype=bool)
        self._at = 0

    @property
    def spilled(self) -> bool:
        """Whether the records were spilled; then `meet` must see the stored keys first."""
        return self._spilled is not None

    @property
    def rows_at_once(self) -> int:
        """Number of stored rows per lookup, so that their records fit in memory."""
        return _ALL if self._spilled is None else self._spilled.rows_at_once

    @property
    def bytes_on_disk(self) -> int:
        return 0 if self._spilled is None else self._spilled.bytes_on_disk

    @property
    def keys(self) -> int | None:
        """Number of keys once sealed; None where the records were spilled."""
        return None if self._index is None else self._index.rows

    def add(self, entries: Entries) -> None:
        """Add records, later than those before."""
        self._parts.append(entries)
        if self._limit is None:
            return
        self._held += size_of(entries.rows)
        if self._held <= self._limit.held:
            return
        if self._spilled is None:
            self._spilled = SpilledRecords(
                self._resolver, self._columns, self._ordering, self._limit, expected=self._expected
            )
        self._flush(self._spilled)

    def _flush(self, spilled: SpilledRecords) -> None:
        # Together: each is a step of a block, and a part of the records would get a few rows of each.
        if self._parts:
            spilled.add(joined(self._parts, self._columns, self._ordering))
        self._parts, self._held = [], 0

    def seal(self) -> None:
        """End the additions."""
        if self._spilled is not None:
            self._flush(self._spilled)
            return
        self._resolved = self._resolver.resolve(joined(self._parts, self._columns, self._ordering))
        self._parts = []
        self._index = KeyIndex(self._resolved.keys)
        self._seen = np.zeros(self._index.rows, dtype=bool)

    def meet(self, stored: Iterable[Keys]) -> None:
        """Take the keys of all stored rows, in the order of later `patches` calls.

        Raises:
            CorruptFileError: a stored row has no key.
        """
        if self._spilled is not None:
            self._spilled.meet(map(_all_there, stored))

    def patches(self, keys: Keys) -> Patches | None:
        """Records that the next stored rows meet, by their keys; None for nothing.

        Raises:
            CorruptFileError: one has no key, and there are records: which of them are its own cannot be told.
        """
        if self._spilled is not None:
            start, self._at = self._at, self._at + len(keys)
            found = self._spilled.patches(start, self._at)
            return found if len(found.entries) else None
        assert self._index is not None
        assert self._resolved is not None
        hits = self._index.find(_all_there(keys) if self._index.rows else keys)
        some = hits[hits >= 0]
        if not len(some):
            return None
        self._seen[some] = True
        return self._resolved.patches(hits)

    def rest(self) -> Iterator[Entries]:
        """Records whose key no stored row had, in order; at least one part, maybe empty."""
        if self._spilled is not None:
            yield from self._spilled.rest()
            return
        assert self._resolved is not None
        yield self._resolver.alone(self._resolved, ~self._seen)[0]

    def close(self) -> None:
        """Release memory and disk space."""
        if self._spilled is not None:
            self._spilled.close()
        self._parts, self._resolved, self._index = [], None, None

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def joined(parts: list[Entries], columns: pa.Schema, ordering: pa.DataType | None) -> Entries:
    """All entries as one value."""
    if not parts:
        none = None if ordering is None else pa.chunked_array([], ordering)
        return Entries(columns.empty_table(), pa.chunked_array([], pa.string()), none, np.zeros(0, np.uint8))
    rows = pa.concat_tables([p.rows for p in parts])
    keys = pa.chunked_array([c for p in parts for c in _chunks(p.keys)], pa.string())
    values = None
    if ordering is not None:
        values = pa.chunked_array(
            [c for p in parts if p.ordering is not None for c in _chunks(p.ordering)], ordering
        )
    return Entries(rows, keys, values, np.concatenate([p.kinds for p in parts]))


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _all_there(keys: Keys) -> Keys:
    """Record keys of stored rows.

    Raises CorruptFileError where one is null.
    """
    if keys.null_count:
        raise CorruptFileError(
            f"{keys.null_count} base file rows have no record key, which the merge with log records needs",
            remedy=CorruptFileError.usual_remedy,
        )
    return keys
