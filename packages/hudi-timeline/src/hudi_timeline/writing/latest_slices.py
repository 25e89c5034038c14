"""Latest file slices that a write looks for keys in, and adds to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hudi_format.errors import UnsupportedError
from hudi_format.file_slice.record_versions import LoggedSlices
from hudi_format.model import BaseFile, FileSlice
from hudi_format.schema.meta_fields import with_meta
from hudi_index.lookup import CUSTOM, RECORD_INDEX, LoggedFiles, LookupTask
from hudi_timeline.custom_index.indexed_table import with_custom_index
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slices import CommittedLogs, newest_with_ranges, pending_compactions
from hudi_timeline.file_system_view.slice_merge import slice_merge
from hudi_timeline.file_system_view.snapshot import TableSnapshot, is_base_file
from hudi_timeline.file_system_view.table_schema import history_file, with_history
from hudi_timeline.metadata_table.bloom_footers import with_footers
from hudi_timeline.metadata_table.record_index import with_record_index
from hudi_timeline.writing.planning.bucket_index import with_groups
from hudi_timeline.writing.planning.write_plan import Plan, lookup_task


@dataclass(frozen=True)
class LatestSlices:
    """Latest file slices of a table, or of some partitions.

    Attributes:
        slices: by partition.
        committed: ranges of their log files.
        pending: instant of the pending compaction of a file group.
    """

    slices: Mapping[str, Sequence[FileSlice]] = field(default_factory=dict)
    committed: CommittedLogs = field(default_factory=dict)
    pending: Mapping[Group, str] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: TableSnapshot, partitions: Sequence[str] | None) -> LatestSlices:
        """Slices of the given partitions; None for all."""
        out: dict[str, list[FileSlice]] = {p: [] for p in partitions or ()}
        found, committed = newest_with_ranges(snapshot, partitions)
        for file_slice in found:
            out.setdefault(file_slice.partition, []).append(file_slice)
        return cls(out, committed, pending_compactions(snapshot))

    @property
    def base_files(self) -> dict[str, list[BaseFile]]:
        """Base files by partition: where the indexes look for keys."""
        return {p: [s.base_file for s in of if s.base_file is not None] for p, of in self.slices.items()}

    def candidates(self, task: LookupTask) -> dict[str, list[BaseFile]]:
        """Files by partition that a look-up looks for keys in.

        A file group whose merged records have the keys is a file without a name.
        """
        merged = task.alone.slices if task.alone is not None else {}
        files = {p: [f for f in of if (p, f.file_id) not in merged] for p, of in self.base_files.items()}
        for (partition, file_id), one in merged.items():
            files.setdefault(partition, []).append(BaseFile(partition, "", file_id, one.base_instant))
        return files

    def _with_keys_in_logs(self, snapshot: TableSnapshot) -> dict[Group, FileSlice]:
        """Slices whose keys are not all in their base files: those without one, and those with inserts in logs.

        What a commit that was archived inserted is not told.
        """
        of_logs = {
            stat.path.lstrip("/")
            for instant in snapshot.instants
            for stat in snapshot.commits.get(instant).stats
            if stat.num_inserts and not is_base_file(stat.path)
        }
        return {
            (one.partition, one.file_id): one
            for of in self.slices.values()
            for one in of
            if one.log_files and (one.base_file is None or any(f.path in of_logs for f in one.log_files))
        }

    def look_up(
        self, plan: Plan, snapshot: TableSnapshot, *, keys: bool = False, after: LookupTask | None = None
    ) -> LookupTask:
        """Look-up in these slices; with their logs, which may have deleted a key.

        Args:
            keys: they are looked for also where the index needs no look-up.
            after: an earlier look-up of the same rows.

        Raises:
            UnsupportedError: as `with_groups`.
        """
        task = with_groups(lookup_task(plan), self.slices, snapshot, looks=keys)
        if task.index == RECORD_INDEX and not task.prepped:
            task = with_record_index(task, self.slices, snapshot)
        if task.index == CUSTOM and not task.prepped:
            task = with_custom_index(task, self.slices, snapshot, plan.custom_index)
        if task.uses_filters and plan.config.bloom_use_metadata and not task.prepped:
            task = with_footers(task, self.base_files, snapshot)
        every = {(s.partition, s.file_id): s for of in self.slices.values() for s in of if s.log_files}
        logs = {s.base_file.path: s.log_files for s in every.values() if s.base_file is not None}
        if not every:
            return task
        table = snapshot.schema
        schema = with_meta(table) if snapshot.config.populate_meta_fields else table
        planned = {
            b.path for of in self.base_files.values() for b in of if (b.partition, b.file_id) in self.pending
        }
        merge = replace(slice_merge(snapshot, plan.config.merge), limit=task.memory)
        if task.prepped:  # the only ones that look at no keys
            slices = LoggedSlices(every, merge, schema, self.committed)
            return replace(task, slices=slices.after(None if after is None else after.slices))
        # Other engines insert so; the indexes of Apache Hudi on Spark look into base files alone.
        if task.bucket is None and (alone := self._with_keys_in_logs(snapshot)):
            task = replace(task, alone=LoggedSlices(alone, merge, schema, self.committed))
        if not logs:
            return task
        meets = task.compares_stored or task.takes_values_along
        if history_file(snapshot):  # older files have columns under other names, or in other types
            merge = replace(merge, evolution=with_history(snapshot, None).evolution)
        logged = LoggedFiles(logs, merge, schema, self.committed, frozenset(planned))
        return replace(task, logged=logged, only_living=plan.operation == "insert" or meets)


def refuse_planned(snapshot: TableSnapshot, partitions: Sequence[str]) -> None:
    """Refuse to delete partitions with file groups in a pending compaction.

    Raises:
        UnsupportedError: the compaction, and how many file groups.
    """
    planned = {g: at for g, at in pending_compactions(snapshot).items() if g[0] in partitions}
    if planned:
        raise UnsupportedError(
            f"{len(planned)} file groups of these partitions are in the pending compaction {min(planned.values())}",
            table=snapshot.storage.uri,
            remedy="run or unschedule the compaction, then delete the partitions.",
            instants=sorted(set(planned.values())),
        )


def rows_of(slices: Sequence[FileSlice], snapshot: TableSnapshot) -> int | None:
    """Row count of base files by their commits; None where one is no longer active."""
    paths = {s.base_file.path for s in slices if s.base_file is not None}
    wrote = {s.base_file.instant for s in slices if s.base_file is not None}
    stats = [s for i in snapshot.instants if i.time in wrote for s in snapshot.commits.get(i).stats]
    written = {s.path.lstrip("/"): s.num_writes for s in stats}
    rows = {p: n for p, n in written.items() if p in paths}
    return sum(rows.values()) if rows.keys() == paths else None
