"""Incremental query of a merge-on-read table: merged slices written in the range.

A slice is made of what those commits wrote alone: its logs without a base file where that is older than the
range.  Only rows whose newest version was written in the range are given, so that a compaction or clustering in
it, which keeps commit times, repeats nothing.

Source: spec "Queries", section 4; MergeOnReadIncrementalRelation of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hudi_format.errors import CorruptFileError
from hudi_format.file_names import parse_base_file, parse_log_file
from hudi_format.log.corruption import CommittedRange, committed_range
from hudi_format.model import BaseFile, FileSlice, LogFile, join_path
from hudi_timeline.file_system_view.base_files import CommittedBaseFile, Group, check_size
from hudi_timeline.file_system_view.file_slices import SliceBuilder, files_by_group
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.partition_values import FROM_PATH, PARTITION, PathValues, path_values
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.reading.incremental.incremental_range import IncrementalSource, completion_times, is_start
from hudi_timeline.reading.merged_query import MergedSource, memory_limit, read_merge
from hudi_timeline.reading.plan import INCREMENTAL, FileDecision, ScanPlan, SliceLogs, as_file
from hudi_timeline.timeline.commit_metadata import stat_to_json
from hudi_timeline.timeline.instant import REPLACE_COMMIT


@dataclass(frozen=True, slots=True)
class _Changed:
    """Files written by the commits of a range.

    Attributes:
        bases: base files by group.
        logs: log files by group and path.
        written: by path, what a commit says of a file.
        committed: by path of a log file, what completed instants wrote of it.
        replaced: the instant that replaced a group.
    """

    bases: dict[Group, dict[str, BaseFile]]
    logs: dict[Group, dict[str, LogFile]]
    written: dict[str, CommittedBaseFile]
    committed: dict[str, tuple[CommittedRange, ...]]
    replaced: dict[Group, str]


@dataclass(frozen=True, slots=True)
class MergedIncrementalSource(IncrementalSource):
    """Incremental query of a merge-on-read table: plans and explains itself."""

    def _changed(self) -> _Changed:
        out = _Changed({}, {}, {}, {}, self._replaced_before())
        for instant in self.range.instants:
            metadata = self.snapshot.commits.get(instant)
            for partition, stats in metadata.partition_to_stats.items():
                for stat in stats:
                    path = stat.path.lstrip("/")
                    name = path.rpartition("/")[2]
                    base, log = parse_base_file(partition, name), parse_log_file(partition, name)
                    if base is not None:
                        out.bases.setdefault((partition, base.file_id), {})[base.instant] = base
                    elif log is not None:
                        out.logs.setdefault((partition, log.file_id), {})[path] = log
                        part = committed_range(instant.time, stat_to_json(stat))
                        if part is not None:
                            out.committed[path] = (*out.committed.get(path, ()), part)
                    else:
                        continue
                    if path != join_path(partition, name):
                        raise CorruptFileError(
                            f"a commit names {path} in the partition {partition!r}",
                            table=self.snapshot.storage.uri,
                            instant=instant.time,
                            file=instant.path,
                        )
                    out.written[path] = CommittedBaseFile(path, stat.file_size_in_bytes, instant.time)
            out.replaced.update(dict.fromkeys(metadata.replaced_groups, instant.time))
        return out

    def _replaced_before(self) -> dict[Group, str]:
        """File groups replaced before the range, though its commits may have written to them.

        Apache Hudi's consistent hashing goes on with the groups of a deleted partition.  No snapshot has those rows;
        nor, from 1.0 on, does a range have them, where 0.15 gives them in one that begins after the replacement.
        """
        snapshot, begin = self.snapshot, self.range.begin
        out: dict[Group, str] = {}
        if not snapshot.config.version.ranges_know_earlier_replacements:
            return out
        for instant, at in completion_times(snapshot).items():
            if at <= begin and instant.action == REPLACE_COMMIT:
                out.update(dict.fromkeys(snapshot.commits.get(instant).replaced_groups, instant.time))
        return out

    def _slices(self, changed: _Changed) -> list[FileSlice]:
        """Newest slice of each written, unreplaced group, from those files alone."""
        builder = SliceBuilder.of(self.snapshot, logs=bool(changed.logs))
        wanted = self._wanted() if self.options.incr_path_glob else None
        out = []
        for group in sorted({*changed.bases, *changed.logs} - changed.replaced.keys()):
            found = builder.newest(group, changed.bases.get(group, {}), changed.logs.get(group, {}).values())
            if found is not None and (wanted is None or any(wanted(f.path) for f in found.files)):
                out.append(found)
        return out

    def _listed(self, slices: list[FileSlice], changed: _Changed) -> list[FileSlice]:
        """The slices with file sizes.

        Raises:
            MissingFileError, CorruptFileError: a file of them is not there, or not as it was written.
        """
        written = (changed.written[f.path] for s in slices for f in s.files)
        sizes = self._sizes({s.partition for s in slices}, written)
        out = []
        for part in slices:
            base = part.base_file
            if base is not None:
                check_size(changed.written[base.path], sizes[base.path], self.snapshot.storage.uri)
            out.append(
                replace(
                    part,
                    base_file=None if base is None else replace(base, size=sizes[base.path]),
                    log_files=tuple(replace(f, size=sizes[f.path]) for f in part.log_files),
                )
            )
        return out

    def _planned(self) -> ScanPlan:
        changed = self._changed()
        slices = self._listed(self._slices(changed), changed)
        plan = self._of_range([s.base_file for s in slices if s.base_file is not None])
        if plan.commit_time_range is not None:
            # As Apache Hudi 0.15: what a compaction of the range took from archived commits after the begin counts.
            # Nothing sorts between `begin` and `begin` with a digit after it.
            plan = replace(plan, commit_time_range=(f"{self.range.begin}0", plan.commit_time_range[1]))
        chosen = frozenset(i.time for i in self.range.instants)
        merge = read_merge(self.snapshot, self.options)
        merge = replace(merge, scope=replace(merge.scope, instants=chosen, latest=max(chosen, default="")))
        logs = tuple(SliceLogs.of(s, changed.committed) for s in slices if s.log_files)
        values = PathValues(plan.partition_values, plan.untold)
        if any(
            c.source == FROM_PATH for c in plan.partition_columns
        ):  # also of partitions that have logs only
            partitions = {*values.table.column(PARTITION).to_pylist(), *(p.slice.partition for p in logs)}
            uri = self.snapshot.storage.uri
            values = path_values(sorted(partitions), plan.partition_columns, uri=uri)
        return replace(
            plan, logs=logs, merge=merge, table_schema=self.schema,
            partition_values=values.table, untold=values.untold,
        )  # fmt: skip

    def _whole(self, snapshot: TableSnapshot) -> ScanPlan:
        limit = memory_limit(self.options)
        plan = MergedSource(
            snapshot, self.schema, merge=self.options.merge, limit=limit,
            by_path=self.options.extract_partition_values_from_path, by_files=True,
        ).plan()  # fmt: skip
        if not self.options.incr_path_glob:
            return plan
        wanted = self._wanted()
        bases = {p for p in plan.files.column("path").to_pylist() if wanted(p)}
        logs = tuple(
            p
            for p in plan.logs
            if (
                any(wanted(f.path) for f in p.slice.log_files)
                if p.slice.base_file is None
                else p.slice.base_file.path in bases
            )
        )
        keep = [p in bases for p in plan.files.column("path").to_pylist()]
        return replace(plan, files=plan.files.filter(keep), logs=logs)

    def fates(self) -> Iterator[FileDecision]:
        """Decision for every file written in the range, or read by a full scan."""
        if not self.range.complete and self.range.full_scan:
            yield from self._fates_of_whole()
            return
        changed = self._changed()
        slices = {(s.partition, s.file_id): s for s in self._slices(changed)}
        read = {f.path for s in slices.values() for f in s.files}
        every = [b for by_instant in changed.bases.values() for b in by_instant.values()]
        files: list[tuple[BaseFile, BaseFile | LogFile]] = [(b, b) for b in every]
        files += [(as_file(f), f) for logs in changed.logs.values() for f in logs.values()]
        for shown, file in sorted(files, key=lambda f: f[0].path):
            group = (file.partition, file.file_id)
            shown = replace(shown, size=changed.written[file.path].size)
            if file.path in read:
                what = "the newest file" if isinstance(file, BaseFile) else "a log of the newest slice"
                yield FileDecision(shown, True, f"{what} of its group in the range")
            elif group in changed.replaced:
                yield FileDecision(shown, False, f"its file group was replaced at {changed.replaced[group]}")
            elif group not in slices:
                yield FileDecision(shown, False, "not of the path pattern of the query")
            else:
                reason = f"of an older slice; the newest is of {slices[group].base_instant}"
                yield FileDecision(shown, False, reason, older=True)


# Plan an incremental query of a merge-on-read table that looks at base files alone.
#
# A row turns up in the read-optimized view when its slice is compacted, which may be long after its commit.  So the
# base files count that completed instants of the range wrote, and of their rows those that the base file before, the
# newest at the range's begin, cannot have: a log record is later than the base file whose slice it was written to.
# Consecutive ranges give every version of a row that the view ever shows once, except that rows of a clustering's
# files come again where the groups that it replaced had base files of different ages.
#
# Source: RFC-22, "Incremental reads"; MergeOnReadIncrementalRelation of Apache Hudi 0.15 for which files count.


@dataclass(frozen=True, slots=True)
class OptimizedIncrementalSource(IncrementalSource):
    """Read-optimized incremental query of base files: plans and explains itself."""

    def _planned(self) -> ScanPlan:
        written, _ = self._written()
        files = self._existing(written)
        plan = replace(self._of_range(files), commit_time_range=None, commit_times=None)
        return replace(plan, since=self._since(files))

    def _full_scan(self) -> ScanPlan:
        """All rows of the view, since it is unknown when a row entered it."""
        return replace(self._whole(self.snapshot), kind=INCREMENTAL)

    def _since(self, files: list[BaseFile]) -> dict[str, str]:
        """By file path, the instant up to which its rows were visible at the range's begin."""
        if is_start(self.range.begin):
            return {}
        before = self._bases_at_begin({f.partition for f in files})
        replaced: dict[tuple[str, str], list[str]] = {}
        for instant in self.range.instants:
            for partition, file_ids in self.snapshot.commits.get(instant).replaced.items():
                ages = [before.get((partition, i), "") for i in file_ids]
                replaced.setdefault((partition, instant.time), []).extend(ages)
        out = {}
        for file in files:
            own = before.get((file.partition, file.file_id))
            # What was written in the place of other groups may have rows of each.
            ages = [own] if own is not None else replaced.get((file.partition, file.instant), [""])
            out[file.path] = min(ages, default="")
        return out

    def _bases_at_begin(self, partitions: set[str]) -> dict[Group, str]:
        """Instant of each group's newest base file at the begin of the range."""
        snapshot, begin = self.snapshot, self.range.begin
        visible = snapshot.visible()
        completed = {i.time: at for i, at in completion_times(snapshot).items()}

        def was_there(file: BaseFile | LogFile) -> bool:
            # Of what is archived all was completed before; what is being filled will be.
            other = "~" if file.instant in visible.completed else ""
            at = completed.get(file.instant, other) if self.range.by_completion else file.instant
            return file.instant in visible and at <= begin

        bases, _ = files_by_group(list_partition_files(snapshot.storage, partitions), was_there)
        return {group: max(b.instant for b in found) for group, found in bases.items()}
