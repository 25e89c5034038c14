"""Record versions: whether rows that were read are still the stored records of their keys.

Every write gives the records that it changes a `_hoodie_commit_seqno` that no other has, and compactions keep it.  So a
record that was read is still there as it was where the merged record of its key has the same one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.keygen.java_text import to_text
from hudi_format.log.corruption import CommittedRange
from hudi_format.merge.key_index import KeyIndex
from hudi_format.model import FileSlice
from hudi_format.schema.meta_fields import COMMIT_SEQNO, RECORD_KEY
from hudi_format.storage.protocol import Storage


@dataclass(frozen=True)
class LoggedSlices:
    """File slices with log files, and how they are merged; picklable.

    Attributes:
        slices: by partition path and file id.
        merge: settings of the table's merge.
        schema: the table's, with meta columns where it fills them.
        committed: what completed instants say that they wrote, by path of the log file.
        compared: those of which the same rows were compared before, and that are as they were then.
    """

    slices: Mapping[tuple[str, str], FileSlice]
    merge: SliceMerge
    schema: pa.Schema
    committed: Mapping[str, Sequence[CommittedRange]] = field(default_factory=dict)
    compared: frozenset[tuple[str, str]] = frozenset()

    @property
    def untold(self) -> str:
        """Reason for which the versions of records cannot be told; "" for none."""
        if self.merge.key_spec is not None:
            return "the table fills no meta columns"
        if self.merge.rule.custom:
            # Its records come of several, of which only one's number stays.
            return "a user-defined merge may change a record and keep its _hoodie_commit_seqno"
        return ""

    def after(self, earlier: LoggedSlices | None) -> LoggedSlices:
        """The slices, where the same rows were compared with earlier ones and found unchanged."""
        if earlier is None or _visible(self.merge) != _visible(earlier.merge):
            return self
        # An instant that has begun since then adds nothing that is read; one that is gone may be complete.
        if not earlier.merge.scope.inflight <= self.merge.scope.inflight:
            return self
        same = {g for g, s in self.slices.items() if earlier.slices.get(g) == s}
        return replace(self, compared=frozenset(g for g in same if self._ranges(g) == earlier._ranges(g)))

    def _ranges(self, group: tuple[str, str]) -> list[Sequence[CommittedRange] | None]:
        return [self.committed.get(f.path) for f in self.slices[group].log_files]

    def of(self, groups: Collection[tuple[str, str]]) -> LoggedSlices:
        """Some of the slices, for a worker."""
        slices = {g: self.slices[g] for g in groups}
        paths = {f.path for s in slices.values() for f in s.log_files}
        return replace(self, slices=slices, committed={p: r for p, r in self.committed.items() if p in paths})

    def keys(self, storage: Storage, group: tuple[str, str]) -> Iterator[pa.Array]:
        """Record keys of a slice's merged records, deleted ones left out.

        Raises:
            as `read_file_slice`.
        """
        columns = list(self.merge.key_columns)
        stored = read_file_slice(
            storage, self.slices[group], self.merge, self.schema, columns=columns, committed=self.committed
        )
        for batch in stored:
            yield one_array(self.merge.keys(pa.Table.from_batches([batch]))).cast(pa.string())

    def unchanged(self, storage: Storage, group: tuple[str, str], rows: pa.Table) -> np.ndarray:
        """Mask of rows (bool) that have the version of the merged record of their key.

        Args:
            group: partition path and file id of the slice.
            rows: with record keys and `_hoodie_commit_seqno`; a null in either is no version.

        Raises:
            as `read_file_slice`.
        """
        asked, keys = KeyIndex(_versions(rows)), KeyIndex(to_text(rows.column(RECORD_KEY)))
        found = np.zeros(asked.rows, dtype=bool)
        if not asked.rows:
            return found
        stored = read_file_slice(
            storage,
            self.slices[group],
            self.merge,
            self.schema,
            columns=[RECORD_KEY, COMMIT_SEQNO],
            committed=self.committed,
        )
        for batch in stored:
            met = pa.array(np.flatnonzero(keys.find(batch.column(0)) >= 0))
            at = asked.find(_versions(pa.Table.from_batches([batch.take(met)])))
            found[at[at >= 0]] = True
        if asked.duplicates:  # each stands for all that are equal to it
            same = asked.find(asked.keys)
            return np.where(same < 0, False, found[np.maximum(same, 0)])
        return found


def _visible(merge: SliceMerge) -> SliceMerge:
    return replace(merge, scope=replace(merge.scope, inflight=frozenset()))


def _versions(rows: pa.Table) -> pa.LargeStringArray:
    """One text of sequence number and key; null where either is."""
    number, key = (to_text(rows.column(n)).cast(pa.large_string()) for n in (COMMIT_SEQNO, RECORD_KEY))
    return pc.binary_join_element_wise(number, key, pa.scalar("\0", pa.large_string()))
