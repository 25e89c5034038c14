"""Snapshot query and time travel of a merge-on-read table: merged file slices.

Source: spec "Queries", sections 2, 3 and 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.file_slice.reader import SliceMerge
from hudi_format.model import FileSlice, LogFile
from hudi_format.schema.meta_fields import with_meta
from hudi_timeline.file_system_view.base_files import table_of
from hudi_timeline.file_system_view.file_slices import checked_slices, newest_slices
from hudi_timeline.file_system_view.partition_values import (
    PartitionColumn,
    copied_columns,
    partition_columns,
    path_values,
)
from hudi_timeline.file_system_view.slice_merge import slice_merge
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.read_config import ReadConfig
from hudi_timeline.reading.plan import (
    FileDecision,
    ScanPlan,
    SliceLogs,
    as_file,
)
from hudi_timeline.reading.snapshot_query import (
    SnapshotSource,
    ruled_out,
)
from hudi_timeline.table_config import TableConfig


def merged_schema(config: TableConfig, table: pa.Schema) -> pa.Schema:
    """Result columns: meta columns, then the table's in order.

    Values of partition columns come from the path or the files: see `MergedSource.columns`.
    """
    schema = pa.schema([f.with_nullable(True) for f in table])
    return with_meta(schema) if config.populate_meta_fields else schema


def read_merge(snapshot: TableSnapshot, options: ReadConfig) -> SliceMerge:
    """Merge settings with the merger and memory limit of the read options."""
    return replace(slice_merge(snapshot, options.merge), limit=memory_limit(options))


def memory_limit(options: ReadConfig) -> MemoryLimit:
    """Memory limit of a slice's log records in the read options."""
    return MemoryLimit.of(options.memory_max, options.spill_path, options.spill_compress)


@dataclass(frozen=True, slots=True)
class MergedSource(SnapshotSource):
    """Merged snapshot query: plans and explains itself.

    Attributes:
        merge: see `slice_merge`.
        limit: the memory for the log records of each slice.
        unmerged: base rows and log records side by side.
        by_path: partition columns have the values that paths say, whatever the files hold; else, of table versions
            where files tell them, copied ones do (`copied_columns`).
        by_files: unless `by_path`, none do in these table versions, as in incremental queries.
    """

    merge: str | None = None
    limit: MemoryLimit = field(default_factory=MemoryLimit)
    unmerged: bool = False
    by_path: bool = False
    by_files: bool = False

    @property
    def columns(self) -> tuple[PartitionColumn, ...]:
        config, schema = self.snapshot.config, self.snapshot.schema
        if self.by_path or config.drop_partition_columns or config.version.paths_tell_partition_values:
            return partition_columns(config, schema, from_path=True)
        if self.by_files:
            return partition_columns(config, schema, from_path=False)
        return copied_columns(config, schema)

    @property
    def _is_newest(self) -> bool:
        return not self.unmerged

    def _planned(self, snapshot: TableSnapshot) -> ScanPlan:
        written = snapshot.written()
        wanted = self._wanted()
        listing = snapshot.listing(wanted, written=written)
        slices, committed = checked_slices(snapshot, listing.files, written, wanted=wanted)
        if self.groups is not None:
            slices = [s for s in slices if (s.partition, s.file_id) in self.groups]
        if (choice := self._buckets()) is not None:
            dropped = choice.dropped(((s.partition, s.file_id) for s in slices), snapshot)
            slices = [s for s in slices if (s.partition, s.file_id) not in dropped]
        merge = replace(slice_merge(snapshot, self.merge), limit=self.limit, unmerged=self.unmerged)
        skipped = self._skipped(slices, merge.skipped_by)
        if skipped is not None:
            slices = skipped.slices(slices)
        logs = tuple(SliceLogs.of(s, committed) for s in slices if s.log_files and self._selects(s))
        plan = self._plan_of(table_of(s.base_file for s in slices if s.base_file is not None))
        if skipped is not None:
            plan = replace(plan, warnings=(*plan.warnings, *skipped.warnings))
        table = self.schema if snapshot.config.populate_meta_fields else pa.schema(snapshot.schema)
        # Also of the partitions that have logs only.
        values = path_values(sorted({s.partition for s in slices}), self.columns, uri=snapshot.storage.uri)
        return replace(
            plan, logs=logs, merge=merge, table_schema=table,
            partition_values=values.table, untold=values.untold,
        )  # fmt: skip

    def _selects(self, file_slice: FileSlice) -> bool:
        """Whether the requested paths include the slice: its base file, else any log file."""
        if self.paths is None:
            return True
        if file_slice.base_file is not None:
            return file_slice.base_file.path in self.paths
        return any(f.path in self.paths for f in file_slice.log_files)

    def fates(self) -> Iterator[FileDecision]:
        """Decision for every base and log file in the table's folders."""
        plan = self.plan()
        read = set(plan.files.column("path").to_pylist())
        dropped, skipped = self._ruled_out()
        yield from (
            f
            if f.file.path in read or not f.read
            else FileDecision(f.file, False, "of an older slice", older=True)
            for f in self._fates(skipped)
        )
        for part in plan.logs:
            for log in part.slice.log_files:
                yield FileDecision(as_file(log), True, "a log of the newest slice of its group")
        for log in dropped:
            yield ruled_out(as_file(log), skipped[log.path])

    def _ruled_out(self) -> tuple[list[LogFile], Mapping[str, str]]:
        """Log files of slices of which nothing is left, and the index that rules out each file that one does."""
        if not self.by_indexes or self.predicate is None:
            return [], {}
        slices = newest_slices(self.snapshot)
        found = self._skipped(slices, slice_merge(self.snapshot, self.merge).skipped_by)
        if found is None:
            return [], {}
        left = {(s.partition, s.file_id) for s in found.slices(slices)}
        gone = [f for s in slices if (s.partition, s.file_id) not in left for f in s.log_files]
        return gone, found.by

    def _not_skipped(self, files: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
        """The files as they are: whole slices were looked at."""
        return files, ()
