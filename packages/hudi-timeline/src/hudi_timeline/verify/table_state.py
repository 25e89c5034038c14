"""Table state for the checks, collected once and tolerant of damage."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hudi_format.errors import CorruptFileError, HudiError, MissingFileError, UnsupportedError
from hudi_format.file_names import (
    PARTITION_METADATA,
    parse_base_file,
    parse_data_file,
    parse_log_file,
    parse_slice_file,
)
from hudi_format.fork_safe import cached_property
from hudi_format.model import BaseFile, LogFile, join_path
from hudi_format.storage.parallel import REMOTE_THREADS, side_by_side
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline import metadata_config
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slices import SliceBuilder, files_by_group
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.action_metadata import (
    Action,
    CleanMetadata,
    CleanPlan,
    RestoreMetadata,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
    read_action,
)
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.archived_timeline import archived_actions
from hudi_timeline.timeline.commit_files import CommitFiles
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    REQUESTED,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
)
from hudi_timeline.verify.findings import VerifyReport

# What the archive says, as far as the checks need it: which instants there were, which files were deleted.


@dataclass
class Removed:
    """Files deleted on purpose by instants.

    Attributes:
        files: partition path and file name.
        partitions: whole partitions.
    """

    files: set[tuple[str, str]] = field(default_factory=set)
    partitions: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)

    def has(self, partition: str, name: str) -> bool:
        return partition in self.partitions or (partition, name) in self.files

    def take(self, action: Action | None) -> None:
        """Add deletions of a clean, rollback or restore, planned ones included."""
        if isinstance(action, CleanMetadata):
            for partition, cleaned in action.partitions.items():
                self._names(partition, (*cleaned.deleted, *cleaned.failed, *cleaned.patterns))
                if cleaned.is_partition_deleted:
                    self.partitions.add(partition)
        elif isinstance(action, CleanPlan):
            for partition, names in action.files.items():
                self._names(partition, names)
            self.partitions |= set(action.partitions)
        elif isinstance(action, RollbackMetadata):
            self.targets |= {*action.commits, *(i.time for i in action.instants)}
            for partition, back in action.partitions.items():
                self._names(partition, (*back.deleted, *back.failed))
        elif isinstance(action, RollbackPlan):
            if action.target is not None:
                self.targets.add(action.target.time)
            for request in action.requests:
                self._names(request.partition, request.files)
        elif isinstance(action, RestoreMetadata):
            self.targets |= {*action.commits, *(i.time for i in action.instants)}
            for rollback in (r for several in action.rollbacks.values() for r in several):
                self.take(rollback)

    def _names(self, partition: str, paths: Iterable[str]) -> None:
        self.files |= {(partition, p.rpartition("/")[2]) for p in paths}


@dataclass
class Archived:
    """The archived timeline.

    Attributes:
        writes: times of completed writes in it.
        times: of all instants in it.
        problem: why it could not be read, "" where it could.
    """

    removed: Removed
    writes: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()
    problem: HudiError | None = None

    @property
    def oldest(self) -> str:
        """Oldest archived write, "" for none; older archives may have been deleted."""
        return min(self.writes, default="")


def read_archived_facts(storage: Storage, config: TableConfig) -> Archived:
    """Archive state, from one pass."""
    out = Archived(Removed())
    writes, times = set(), set()
    try:
        for instant, action in archived_actions(storage, config, frozenset({CLEAN, ROLLBACK, RESTORE})):
            times.add(instant.time)
            if instant.completed:
                if instant.action in WRITE_ACTIONS:
                    writes.add(instant.time)
                out.removed.take(action)
    except HudiError as e:
        out.problem = e
    out.writes, out.times = frozenset(writes), frozenset(times)
    return out


_T = TypeVar("_T")
_R = TypeVar("_R")

TEMPORARY_AGE_MS = 60_000
# Files of a local timeline that take no longer to read than threads take to start.
_FEW = 32
WRITES = WRITE_ACTIONS | {COMPACTION, LOG_COMPACTION, CLUSTERING}


def is_old(entry: FileInfo) -> bool:
    """Whether a temporary file is too old for an active writer."""
    return time.time() * 1000 - entry.mtime_ms > TEMPORARY_AGE_MS


@dataclass(frozen=True)
class TableFacts:
    """A table as read for the checks.

    Attributes:
        entries: what lies in the timeline's folder.
        timeline: the instants that these make, whatever their files hold.
        contents: what the files of instants say, by path; None for an empty file.
        unreadable: paths of instants' files that could not be read.
        folders: the files of every folder of the table but `.hoodie`, by path below the table.
        overwritten: what lies there of the table whose place this one took; it is in no other attribute.
        workers: how many files are looked at at once.
    """

    storage: Storage
    config: TableConfig
    entries: tuple[FileInfo, ...]
    timeline: Timeline
    contents: Mapping[str, Action | None]
    unreadable: frozenset[str]
    folders: Mapping[str, Sequence[FileInfo]]
    workers: int = 1
    is_metadata: bool = False
    overwritten: tuple[BaseFile | LogFile, ...] = ()

    @cached_property
    def commits(self) -> dict[Instant, CommitMetadata]:
        """Readable completed writes, oldest first."""
        found = ((i, self.contents.get(i.path)) for i in self.timeline.completed_writes())
        return {i: c for i, c in found if isinstance(c, CommitMetadata)}

    @cached_property
    def written(self) -> dict[Instant, CommitFiles]:
        """File entries of completed writes."""
        return {i: CommitFiles.of(c) for i, c in self.commits.items()}

    @cached_property
    def unreadable_times(self) -> frozenset[str]:
        """Times of unreadable completed writes."""
        return frozenset(i.time for i in self.timeline.completed_writes() if i not in self.commits)

    @cached_property
    def partitions(self) -> dict[str, Sequence[FileInfo]]:
        """Files of the partition folders.

        Those of a metadata table are known by their names: Apache Hudi marks one with its first record only.
        """
        return {
            p: files
            for p, files in self.folders.items()
            if (self.is_metadata and p) or any(f.name.startswith(PARTITION_METADATA) for f in files)
        }

    @cached_property
    def base_files(self) -> list[BaseFile]:
        """Base files in the partitions but those of pending instants."""
        files = (parse_base_file(p, e.name, e.size) for p, of in self.partitions.items() for e in of)
        return [f for f in files if f is not None and f.instant not in self.pending_times]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """File sizes by path, without `.hoodie`."""
        return {join_path(p, f.name): f.size for p, files in self.folders.items() for f in files}

    @cached_property
    def archived(self) -> Archived:
        """Archive state, read on demand."""
        return read_archived_facts(self.storage, self.config)

    @cached_property
    def known_times(self) -> frozenset[str]:
        """Times of active write instants in any state."""
        return frozenset(i.time for i in self.timeline.instants if i.action in WRITES)

    @cached_property
    def pending_times(self) -> frozenset[str]:
        return frozenset(i.time for i in self.timeline.instants if not i.completed)

    @cached_property
    def pending_rollbacks(self) -> tuple[RollbackPlan, ...]:
        """Plans of unfinished rollbacks; the instant files of what they undo may be gone."""
        plans = (self.contents.get(i.path_in(REQUESTED)) for i in self.timeline.pending(ROLLBACK))
        return tuple(p for p in plans if isinstance(p, RollbackPlan))

    @cached_property
    def open_times(self) -> frozenset[str]:
        """Times of pending instants, and of those that a rollback which is not finished undoes."""
        undone = {p.target.time for p in self.pending_rollbacks if p.target is not None}
        completed = {i.time for i in self.timeline.instants if i.completed}
        return self.pending_times | (undone - completed)

    def each(self, call: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
        """Results of `call` for each item, in parallel, in order."""
        return list(side_by_side(call, list(items), self.workers, "hudi-verify"))


def gather(
    storage: Storage, config: TableConfig, report: VerifyReport, workers: int | None = None
) -> TableFacts | None:
    """State of a table; None where it has no usable timeline.

    Args:
        workers: how many files to look at at once; None for a number that fits the machine and the store.
    """
    at_once = workers or ((os.cpu_count() or 1) if storage.is_local else REMOTE_THREADS)
    folder = config.timeline_folder
    entries = storage.list(folder)
    if (
        not entries
        and config.version.has_timeline_folder
        and storage.is_local
        and storage.info(folder) is None
    ):
        report.add("timeline-folder", folder, "the timeline's folder is missing")
        return None
    timeline = Timeline.of_listing(entries, folder, config)
    contents: dict[str, Action | None] = {}
    unreadable: set[str] = set()
    files = timeline.files
    few = storage.is_local and len(files) <= _FEW
    found = side_by_side(lambda i: _content(storage, i), files, 1 if few else at_once, "hudi-verify")
    for instant, content in zip(files, found, strict=True):
        if isinstance(content, Exception):
            unreadable.add(instant.path)
            empty = instant.completed and instant.size == 0
            code = "timeline-empty" if empty else "timeline-unreadable"
            message = getattr(content, "message", str(content))
            report.add(code, instant.path, message, instant.time, action=instant.action, state=instant.state)
        else:
            contents[instant.path] = content
    folders, overwritten = _apart(walk(storage), timeline)
    return TableFacts(
        storage,
        config,
        tuple(entries),
        timeline,
        contents,
        frozenset(unreadable),
        folders,
        at_once,
        metadata_config.is_one(config),
        overwritten,
    )


def _apart(
    folders: Mapping[str, Sequence[FileInfo]], timeline: Timeline
) -> tuple[Mapping[str, Sequence[FileInfo]], tuple[BaseFile | LogFile, ...]]:
    """The table's files, and those of the table whose place it took."""
    if not timeline.overwritten.until:
        return folders, ()
    own: dict[str, list[FileInfo]] = {}
    others: list[BaseFile | LogFile] = []
    for folder, entries in folders.items():
        own[folder] = []
        for entry in entries:
            file = parse_data_file(folder, entry.name, entry.size)
            if file is not None and file.instant in timeline.overwritten:
                others.append(file)
            else:
                own[folder].append(entry)
    return own, tuple(others)


def _content(storage: Storage, instant: Instant) -> Action | CorruptFileError | None:
    try:
        return read_action(storage, instant)
    except CorruptFileError as e:
        return e
    except MissingFileError:  # archived or rolled back since the listing; the run is repeated then
        return None
    except UnsupportedError as e:
        # Nothing that any state needs: releases put their own notes into inflight files.
        return None if not instant.completed and instant.state != REQUESTED else _as_corrupt(e)


def _as_corrupt(error: UnsupportedError) -> CorruptFileError:
    return CorruptFileError(error.message, file=error.file, instant=error.instant)


# Which files the newest state of a table and its savepoints need, by what commits say.


def replaced_groups(facts: TableFacts) -> set[Group]:
    """File groups that were replaced."""
    return {
        (p, file_id)
        for commit in facts.written.values()
        for p, ids in commit.replaced.items()
        for file_id in ids
    }


def live_files(facts: TableFacts) -> set[str]:
    """Paths of the newest snapshot's files, whether they are there or not."""
    archived = facts.timeline.archived()
    bases, logs = files_by_group(
        facts.partitions, lambda file: isinstance(file, BaseFile) and file.instant in archived
    )
    said: dict[str, str] = {}
    for commit in facts.written.values():
        for stat in commit.files:
            name, group = stat.path.rpartition("/")[2], (stat.partition, stat.file_id)
            base, log = parse_base_file(stat.partition, name), parse_log_file(stat.partition, name)
            if base is not None:
                bases.setdefault(group, []).append(base)
                said[base.path] = stat.path
            elif log is not None:
                logs.setdefault(group, []).append(log)
                said[log.path] = stat.path
    builder = SliceBuilder(facts.storage, facts.config, facts.timeline, {})
    out: set[str] = set()
    for group in {*bases, *logs} - replaced_groups(facts):
        by_instant = {b.instant: b for b in sorted(bases.get(group, ()), key=lambda b: b.path)}
        found = builder.newest(group, by_instant, logs.get(group, ()))
        if found is not None:
            out |= {said.get(f.path, f.path) for f in (found.base_file, *found.log_files) if f is not None}
    return out


def saved_files(facts: TableFacts) -> dict[str, str]:
    """Paths of savepointed files, with the savepoint's time."""
    out: dict[str, str] = {}
    for instant in facts.timeline.of(SAVEPOINT):
        saved = facts.contents.get(instant.path)
        if instant.completed and isinstance(saved, SavepointMetadata):
            for partition, kept in saved.partitions.items():
                out.update((join_path(partition, n.rpartition("/")[2]), instant.time) for n in kept.files)
    return out


_NEVER = "~"  # behind all instants


def beginning_of(facts: TableFacts, partition: str) -> str:
    """Oldest instant of the files in a metadata partition; without any, later than all."""
    names = [f.name for f in facts.partitions.get(partition, ())]
    found = [parse_slice_file(partition, n) for n in names]
    return min((f.instant for f in found if f is not None), default=_NEVER)


def is_of_earlier_partition(facts: TableFacts, partition: str, instant: Instant) -> bool:
    """Whether a write to a metadata partition was completed before that was made anew.

    The partition may be made at an older instant than those of its last one, as Apache Hudi does after a restore: what
    was completed before counts then, where names of files say when that was.
    """
    beginning = beginning_of(facts, partition)
    if instant.time < beginning:
        return True
    made = next((i for i in facts.commits if i.time == beginning), None)
    return made is not None and bool(instant.completion) and instant.completion < made.completion
