"""Reader of a table's metadata table: look-ups by key or beginning of keys, and scans.

A metadata table is written ahead of the table's own timeline: what a write has put there counts once the write is
completed, so that blocks of its logs are believed for instants of these kinds only: writes that the table's timeline
has as completed, or as archived; what the metadata table did for itself; its initial state.  Which of its partitions
are complete stands in the table's properties alone.

Source: HoodieBackedTableMetadata and HoodieTableMetadataUtil.getValidInstantTimestamps of Apache Hudi 0.15 and 1.x;
spec "Metadata table", section 10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hudi_format.errors import (
    CorruptFileError,
    MissingFileError,
    NotAHudiTableError,
    SchemaError,
    UnsupportedError,
)
from hudi_format.log.scanner import BlockScope
from hudi_format.model import FileSlice
from hudi_format.storage.protocol import Storage
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table.records import schema_of
from hudi_index.metadata_table.slice_records import ALL, WantedRecords, read_slices
from hudi_timeline.file_system_view.file_slices import files_by_group, merged_slices, refuse_shortened
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.snapshot import TableSnapshot, open_snapshot
from hudi_timeline.metadata_config import own_storage
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import Instant

# What the metadata table does for itself up to version 6: compaction 001, clean 002, restore 003, indexing 004, log
# compaction 005, rollback 006; initialisation of partitions from 010 on.
# Behind times of 17 digits; one of 14 (before 0.10) with a suffix looks like a time of 17.
_OWN = re.compile(r"\d{17}(?:00[1-6]|0[1-9]\d)(?:00[1-6])?")
_OWN_OF_OLD = re.compile(r"(\d{14})(?:00[1-6]|0[1-9]\d)")
_INITIAL = "0" * 14


def trusted_scope(own: Timeline, data: Timeline, *, suffixes: bool) -> BlockScope:
    """Log blocks of a metadata table that count.

    Args:
        own: timeline of the metadata table.
        data: of the table.
        suffixes: as of `TableVersion.suffixes_metadata_instants`.
    """
    completed = {i.time for i in data.instants if i.completed}
    pending = {i.time for i in data.instants if not i.completed} - completed
    archived = data.archived()
    newest = data.newest_time

    def counts(time: str) -> bool:
        if time in completed or time.startswith(_INITIAL):
            return True
        if time in pending:
            return False
        if suffixes:
            old = _OWN_OF_OLD.fullmatch(time)
            own_one = _OWN.fullmatch(time) is not None or (old is not None and old[1] in completed)
            return time in archived or own_one
        return time <= newest  # the metadata table's own instants have times as writes have

    refused = {i.time for i in own.completed_writes() if not counts(i.time)} | pending
    inflight = frozenset(i.time for i in own.pending_writes())
    if suffixes:
        return BlockScope(visible=own.visible(), inflight=inflight, rolled_back=frozenset(refused))
    return BlockScope(rolled_back=frozenset(refused), grouped=True)


def partition_slices(own: TableSnapshot, partition: str) -> list[FileSlice]:
    """File slices of a metadata table's partition.

    One that was dropped and made again has nothing of what earlier instants wrote into it.

    Raises:
        MissingFileError: a file that its timeline names is not there.
        CorruptFileError: as `merged_slices`; a log file is shorter than what was committed to it.
    """
    listing = list_partition_files(own.storage, [partition])
    bases, logs = files_by_group(listing)
    times = [f.instant for of in bases.values() for f in of] + [f.instant for of in logs.values() for f in of]
    first = min(times, default="")
    before = _before_making(own, partition, first, {e.name for e in listing[partition]})
    since = Timeline.of_files(i for i in own.timeline.instants if i.time >= first and i not in before)
    slices, committed = merged_slices(own.with_timeline(since), listing)
    refuse_shortened(slices, committed, table=own.storage.uri)
    return slices


def _before_making(own: TableSnapshot, partition: str, first: str, names: Set[str]) -> frozenset[Instant]:
    """Later instants than that of a partition's making that were completed before it, and whose files are gone.

    Apache Hudi 1.2 makes an index anew after a restore, at an older instant than those that wrote to it.  Of writes
    beside an indexing, which are completed before it too, the files are there.

    Args:
        first: the oldest instant of the partition's files.
        names: of these files.
    """
    writes = own.timeline.completed_writes()
    made = next((i.completion for i in writes if i.time == first), "")
    before = [i for i in writes if i.time > first and i.completion and i.completion < made]
    written = zip(before, own.commits.files(before), strict=True)
    return frozenset(
        i
        for i, commit in written
        if not any(f.partition == partition and f.path.rpartition("/")[2] in names for f in commit.files)
    )


@dataclass(frozen=True)
class MetadataTable:
    """A table's metadata table at one moment.

    Attributes:
        snapshot: the table, which it was opened for.
        storage: the metadata table's.
        scope: whose log blocks count.
        by_value: as of `keys.sharded_part`.
    """

    snapshot: TableSnapshot = field(repr=False)
    storage: Storage
    scope: BlockScope = field(repr=False)
    by_value: bool
    _own: TableSnapshot = field(repr=False)
    _slices: dict[str, tuple[FileSlice, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, snapshot: TableSnapshot, own: TableSnapshot | None = None) -> MetadataTable:
        """The metadata table of a table.

        Args:
            own: the metadata table's snapshot, where it was loaded; under the lock it is the newest.

        Raises:
            NotAHudiTableError: there is none.
            CorruptFileError, UnsupportedError: it cannot be read.
        """
        if own is None:
            own = open_snapshot(own_storage(snapshot.storage))
        storage = own.storage
        version = own.config.version
        scope = trusted_scope(own.timeline, snapshot.timeline, suffixes=version.suffixes_metadata_instants)
        return cls(snapshot, storage, scope, snapshot.config.version.shards_secondary_keys_by_value, own)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Its partitions that are complete, by the table's properties."""
        return self.snapshot.config.metadata_partitions

    def slices(self, partition: str) -> tuple[FileSlice, ...]:
        """File slices of a partition by shard, from 0 on.

        Raises:
            UnsupportedError: it is not complete, or its shards are those of data partitions.
            CorruptFileError: a shard is missing, or no shard is there.
            MissingFileError: a file that its timeline names is not there.
        """
        known = self._slices.get(partition)
        if known is None:
            self._require(partition)
            found = partition_slices(self._own, partition)
            shards: dict[int, FileSlice] = {k.shard_of(partition, s.file_id): s for s in found}
            if sorted(shards) != list(range(len(shards))) or len(shards) != len(found) or not shards:
                raise CorruptFileError(
                    f"the partition {partition} of the metadata table has the file groups "
                    f"{sorted(s.file_id for s in found)}, of which some are missing",
                    table=self.storage.uri,
                    remedy=REBUILD,
                )
            known = tuple(s for _, s in sorted(shards.items()))
            self._slices[partition] = known
        return known

    def _require(self, partition: str) -> None:
        if partition not in self.partitions:
            raise UnsupportedError(
                f"the partition {partition} of the metadata table is not complete",
                table=self.snapshot.storage.uri,
                remedy=f"it has {', '.join(self.partitions) or 'no partition that is'}.",
            )

    def lookup(
        self, partition: str, keys: pa.Array | pa.ChunkedArray | Sequence[str], *, is_rare: bool = False
    ) -> pa.Table:
        """Records of keys, in no order; absent keys give no row.

        Reads the blocks of base files and logs that may hold them.

        Args:
            is_rare: as of `WantedRecords`.

        Returns:
            columns as `hudi_index.metadata_table.records.schema_of` says.

        Raises:
            as `slices`, and `hudi_index.metadata_table.slice_records.read_records`.
        """
        slices = self.slices(partition)
        given = keys if isinstance(keys, (pa.Array, pa.ChunkedArray)) else pa.array(keys, pa.string())
        wanted = k.sorted_keys(given)
        parts = [(slices[0], wanted)]
        if len(slices) > 1:
            hashed = wanted
            if partition.startswith(k.SECONDARY_INDEX):
                hashed = k.sharded_part(wanted, by_value=self.by_value)
            shards = k.shards(hashed, len(slices))
            parts = [(slices[n], wanted.filter(pa.array(shards == n))) for n in np.unique(shards).tolist()]
        chosen = [(s, WantedRecords(keys=own, is_rare=is_rare)) for s, own in parts if len(own)]
        return self._read(partition, chosen)

    def _read(self, partition: str, wanted: Iterable[tuple[FileSlice, WantedRecords]]) -> pa.Table:
        return read_slices(self.storage, wanted, self.scope, schema_of(partition))

    def by_prefix(self, partition: str, prefixes: Sequence[str]) -> pa.Table:
        """Records whose keys begin with one of the prefixes; columns and errors as of `lookup`.

        Such as those of a column in all files (`keys.column_stats_prefix`).
        """
        if not prefixes:
            return schema_of(partition).empty_table()
        wanted = WantedRecords(prefixes=tuple(prefixes))
        return self._read(partition, ((s, wanted) for s in self.slices(partition)))

    def scan(self, partition: str) -> pa.Table:
        """All records of a partition; columns and errors as of `lookup`."""
        return self._read(partition, ((s, ALL) for s in self.slices(partition)))

    def is_current(self) -> bool:
        """Whether the table is still as it was in the snapshot that this was opened for.

        What was read here may else be of a later state: a key index and statistics of partitions say what is newest.
        Ask after reading.
        """
        if self.snapshot.as_of is not None:
            return False
        return is_current(self.snapshot)


def is_current(snapshot: TableSnapshot) -> bool:
    """Whether the table is as it was when a snapshot was taken, with the same metadata table.

    If it is not, what the metadata table lacks may be gone with that state: dropped, cleaned or rolled back.
    """
    now = open_snapshot(snapshot.storage, commits=snapshot.commits)
    same = _states(now.timeline) == _states(snapshot.timeline)
    return same and now.config.metadata_partitions == snapshot.config.metadata_partitions


# An index that cannot be used; all else is the caller's.
UNUSABLE = (CorruptFileError, MissingFileError, NotAHudiTableError, SchemaError, UnsupportedError)

REBUILD = (
    "run `hudi verify --deep` for what is wrong; a write with hoodie.metadata.enable=false takes the metadata table "
    "away, and Apache Hudi builds it again."
)


def _states(timeline: Timeline) -> Mapping[tuple[str, str], bool]:
    return {(i.time, i.action): i.completed for i in timeline.instants}
