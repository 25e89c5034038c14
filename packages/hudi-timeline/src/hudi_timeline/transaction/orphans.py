"""Removal of orphaned files of crashed writers.

Markers and heartbeats of writes that are over; temporary files, of writers killed between writing a file and giving it
its name; and folders of staged rows, of Spark's Python data source.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from hudi_format.errors import HudiError
from hudi_format.file_names import META_DIR, PARTITION_METADATA, parse_cdc_file, parse_data_file
from hudi_format.fork_safe import cached_property
from hudi_format.keygen.partition_path import is_safe
from hudi_format.log.reader import LogFileReader
from hudi_format.model import LogFile, join_path
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline import table_config
from hudi_timeline.concurrency import heartbeat, markers, precedence
from hudi_timeline.concurrency.locks.provider import hold, verify_held
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.file_system_view.listing import list_partition_files, walk
from hudi_timeline.file_system_view.snapshot import TableSnapshot, load_snapshot
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.timeline.action_metadata import (
    InstantName,
    RestoreMetadata,
    RollbackMetadata,
    RollbackRequest,
    read_action,
)
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.archived_timeline import archived_actions
from hudi_timeline.timeline.instant import CLUSTERING, COMPACTION, LOG_COMPACTION, RESTORE, ROLLBACK, Instant
from hudi_timeline.transaction import rollback_executor
from hudi_timeline.transaction.rollback_plan import CLOCK_SLACK_MS

# `LocalStorage` names them so; other stores write in one step.
_TEMPORARY = re.compile(r"^\.(?P<name>.+)\.[0-9a-f]{32}\.tmp$")
STAGING = ".hoodie_staging_"
"""Beginning of the name of a folder in which a write stages rows before they are committed; 32 hex digits follow."""
_STAGING = re.compile(re.escape(STAGING) + r"[0-9a-f]{32}\Z")
STAGING_AGE_MS = 24 * 3_600_000
"""A folder of staged rows into which nothing came for so long belongs to no write any more."""
TEMPORARY_AGE_MS = 24 * 3_600_000
"""Nor does a temporary file of that age: to write one and to name it takes moments."""
_UNBORN_WAIT_MS = 1000
_RUN_AGAIN = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING})
"""Actions whose plan stays where an execution of it is rolled back."""
_INSTANT = re.compile(r"^\d{14,17}(?!\d)")


def remove_marks(storage: Storage, timeline: Timeline, marked: Sequence[str]) -> None:
    """Remove markers of completed instants, and of unknown ones with their files.

    Called under the table's lock.

    Args:
        marked: instants that had markers before the timeline was loaded.
    """
    there = {i.time for i in timeline.instants}
    undone = _Undone(storage, timeline)
    for time_ in marked:
        if time_ in there:
            found = timeline.find(time_)
            if found is not None and found.completed:
                markers.delete(storage, time_)
        elif time_ in timeline.overwritten:
            _remove_overwritten(storage, timeline, time_)
        elif time_ > timeline.first_active or time_ in undone:
            # Files of an instant that is nowhere, left by tasks that outlived its rollback.  Older ones than
            # the timeline may belong to commits that were archived.
            rollback_executor.remove_leftovers(storage, time_)
        else:
            markers.delete(storage, time_)


def _remove_overwritten(storage: Storage, timeline: Timeline, time_: str) -> None:
    """Remove the marked files of a writer of the table that was overwritten.

    Also log files of slices that were begun before it: they are of that table as well.
    """
    marked = ((m, parse_data_file(m.partition, m.file_name)) for m in markers.list_markers(storage, time_))
    late = [m.path for m, file in marked if file is not None and file.instant in timeline.overwritten]
    rollback_executor.delete_files(storage, late)
    markers.delete(storage, time_)
    heartbeat.delete(storage, time_)


class _Undone:
    """Instants of which a rollback or restore is on the timeline, or a rollback was archived, and at which nothing was
    completed.

    A compaction whose execution was rolled back may have been executed again, at the same instant, and then archived.
    A restore takes its plan away too.
    Where the archive cannot be read there are none.  It is read when it is first asked for, and once: under the table's
    lock, as one read before it would miss what was archived since.
    """

    def __init__(self, storage: Storage, timeline: Timeline) -> None:
        self._storage, self._timeline = storage, timeline

    def __contains__(self, instant: str) -> bool:
        return instant in self._times

    @cached_property
    def _times(self) -> frozenset[str]:
        storage = self._storage
        again: set[str] = set()
        named: list[InstantName] = []
        restored: list[InstantName] = []
        try:
            for rollback in self._timeline.of(ROLLBACK):
                named += [i for did in _did(storage, rollback) for i in _named(did)]
            for restore in self._timeline.of(RESTORE):
                restored += [i for did in _did(storage, restore) for i in _named(did)]
            for archived, did in archived_actions(storage, table_config.load(storage), frozenset({ROLLBACK})):
                if archived.action != ROLLBACK and archived.completed:
                    again.add(archived.time)
                if isinstance(did, RollbackMetadata):
                    named += _named(did)
        except HudiError:
            return frozenset()
        again |= {i.time for i in named if i.action in _RUN_AGAIN} - {i.time for i in restored}
        return frozenset(i.time for i in (*named, *restored)) - again


def _did(storage: Storage, undoing: Instant) -> tuple[RollbackMetadata, ...]:
    """Rollbacks that a completed rollback or restore has made.

    Raises HudiError: it says nothing.
    """
    did = read_action(storage, undoing) if undoing.completed else None
    if isinstance(did, RestoreMetadata):
        return tuple(rollback for of in did.rollbacks.values() for rollback in of)
    return (did,) if isinstance(did, RollbackMetadata) else ()


def _named(rollback: RollbackMetadata) -> list[InstantName]:
    """Instants that a rollback has undone."""
    return [i for i in rollback.instants if i.time in rollback.commits]


def remove_late_files(snapshot: TableSnapshot, leaving: Collection[Instant] = ()) -> list[str]:
    """Undo files that came after the rollback of their write, or a restore; returns their paths.

    Tasks of a writer may outlive its rollback, and no marker needs to tell of their files: one was stopped between the
    marker and the file, or asked the timeline server for the marker.  Nobody reads the file while the timeline begins
    before its instant: called under the table's lock, before instants are archived.

    They are looked for where the rollbacks of the timeline, those of restores too, have deleted files, or say that the
    write was to write; in the whole table where a rollback says nothing of that, once: when it, or the instant that it
    undid, is about to leave the timeline.  And only while the timeline begins before: what is older may be that of an
    execution at the same instant that was archived, or of a slice that others have written to.

    Args:
        leaving: the files of instants that are archived next.

    Raises:
        CorruptFileError, MissingFileError: a commit cannot be read, or a log file.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    there = {i.time for i in timeline.instants}
    known = _Undone(storage, timeline)
    for time_ in markers.list_instants(storage):
        if time_ not in there and time_ in timeline.overwritten:
            _remove_overwritten(storage, timeline, time_)
        elif time_ not in there and time_ in known:
            rollback_executor.remove_leftovers(storage, time_)
    places = _Places.of(snapshot, leaving)
    found: list[tuple[str, RollbackRequest]] = []
    logs: list[tuple[LogFile, set[str]]] = []
    for partition, entries in places.listing(storage).items():
        times = places.times_in(partition)
        for entry in entries if times else ():
            file = parse_data_file(partition, entry.name, entry.size)
            if file is not None and file.instant in times:
                path = f"{storage.uri}/{file.path}"
                found.append((file.instant, RollbackRequest(partition, file.file_id, file.instant, (path,))))
            elif isinstance(file, LogFile) and parse_cdc_file(partition, entry.name) is None:
                lately = {t for t in times if not 0 < entry.mtime_ms < places.since[t] - CLOCK_SLACK_MS}
                if lately:
                    logs.append((file, lately))
    if logs:
        commits = snapshot.commits.files(timeline.completed_writes())
        written = {f.path for commit in commits for f in commit.files}
        for log, lately in logs:
            if log.path not in written:
                found += _late_blocks(storage, log, lately)
    late = [(time_, request) for time_, request in found if time_ in known]
    for undone in dict.fromkeys(time_ for time_, _ in late):
        rollback_executor.undo_late(storage, undone, tuple(r for time_, r in late if time_ == undone))
    names = ((r.partition, n) for _, r in late for n in (*r.files, *r.log_blocks))
    return sorted(join_path(partition, name.rpartition("/")[2]) for partition, name in names)


@dataclass
class _Places:
    """Where files may come after a rollback.

    Attributes:
        named: instants that were undone by partition.
        anywhere: those of which no rollback names a partition.
        since: when they were undone, in milliseconds since 1970.
    """

    named: dict[str, set[str]] = field(default_factory=dict)
    anywhere: set[str] = field(default_factory=set)
    since: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(snapshot: TableSnapshot, leaving: Collection[Instant]) -> _Places:
        storage, timeline = snapshot.storage, snapshot.timeline
        there = {i.time for i in timeline.instants}
        gone = {f.path for f in leaving}
        next_active = Timeline.of_files(f for f in timeline.files if f.path not in gone).first_active
        out = _Places()
        for undoing in (*timeline.of(ROLLBACK), *timeline.of(RESTORE)):
            try:
                rollbacks = _did(storage, undoing)
            except HudiError:  # it says nothing, and archives as such
                continue
            for did in rollbacks:
                times = {t for t in did.commits if t > timeline.first_active} - there
                for time_ in times:
                    out.since.setdefault(time_, undoing.mtime_ms)
                partitions = list(filter(is_safe, did.partitions)) if times else []
                for partition in partitions:
                    out.named.setdefault(partition, set()).update(times)
                if not partitions and (undoing.path in gone or any(t < next_active for t in times)):
                    out.anywhere |= times
        return out

    def listing(self, storage: Storage) -> Mapping[str, Sequence[FileInfo]]:
        return walk(storage) if self.anywhere else list_partition_files(storage, self.named)

    def times_in(self, partition: str) -> set[str]:
        return self.named.get(partition, set()) | self.anywhere


def _late_blocks(storage: Storage, log: LogFile, times: Set[str]) -> list[tuple[str, RollbackRequest]]:
    """Blocks of these instants in a log file of another write's slice, unless a command block takes them back."""
    with LogFileReader.open(storage, log.path) as reader:
        holding = {b.instant for b in reader.blocks if not b.is_rollback} & times
    request = RollbackRequest(log.partition, log.file_id, log.instant, log_blocks={log.name: log.size})
    return [
        (t, request)
        for t in sorted(holding)
        if not rollback_executor.is_taken_back(storage, request, [log.name], t)
    ]


def remove_heartbeats(
    storage: Storage, timeline: Timeline, beating: Sequence[str], options: TransactionConfig
) -> None:
    """Remove dead heartbeats without a pending instant.

    Args:
        beating: instants that had a heartbeat before the timeline was loaded.
    """
    for time_ in beating:
        pending = any(i.time == time_ and not i.completed for i in timeline.instants)
        if not pending and not heartbeat.liveness(storage, time_, *options.beats, to_act=True).alive:
            heartbeat.delete(storage, time_)


def remove_temporaries(storage: Storage) -> None:
    """Remove temporary files of dead writers: of the timeline, heartbeats and claims.

    Called under the table's lock, after dead writes were rolled back: what begins, commits or is rolled back does
    so under that lock, and what runs meanwhile has a heartbeat.  Files of no instant (hoodie.properties, claims) may
    be those of a caller that holds no lock, and stay for a day.
    """
    if not storage.is_local:
        return
    at_work = set(heartbeat.list_instants(storage))
    for folder in (META_DIR, heartbeat.FOLDER, precedence.FOLDER):
        for entry in storage.list(folder):
            found = None if entry.is_dir else _TEMPORARY.match(entry.name)
            if found is None:
                continue
            instant = None if folder == precedence.FOLDER else _INSTANT.match(found["name"])
            if instant is not None:
                gone = instant[0] not in at_work
            else:
                gone = time.time() * 1000 - entry.mtime_ms > TEMPORARY_AGE_MS
            if gone:
                storage.delete(f"{folder}/{entry.name}")


def remove_staging(storage: Storage) -> None:
    """Remove folders of staged rows unchanged for a day."""
    for entry in storage.list(""):
        if not entry.is_dir or not _STAGING.match(entry.name):
            continue
        # Object stores have no time of a folder; the youngest of its files says as much.
        youngest = max((f.mtime_ms for f in storage.list(entry.name)), default=0)
        if time.time() * 1000 - max(youngest, entry.mtime_ms) > STAGING_AGE_MS:
            storage.delete_dir(entry.name)


def remove_unborn(storage: Storage, options: TransactionConfig, *, table_name: str) -> None:
    """Remove a table created by a failed first write, unless another writer has begun.

    Under the table's lock: else who begins meanwhile would lose the table beneath its write.  Whoever holds it for long
    has begun.

    Args:
        options: of the write.
        table_name: as of `lock_of`.
    """
    try:
        lock = lock_of(storage, options, table_name=table_name)
        held: AbstractContextManager[None] = hold(lock.lock, min(lock.wait_ms, _UNBORN_WAIT_MS))
    except HudiError:  # no other write with these options has begun either
        held = nullcontext()
    try:
        with held:
            timeline = load_snapshot(storage, table_config.load(storage)).timeline
            if timeline.completed_writes() or timeline.pending_writes():
                return
            # Without its metadata a table with a file left over would be no table, and could not be written to again.
            if remove_bare_partitions(storage):
                verify_held()  # who has the lock meanwhile may have written the first commit
                storage.delete_dir(META_DIR)
    except HudiError:
        return  # half made or damaged: left for the user to see


def remove_bare_partitions(storage: Storage) -> bool:
    """Remove partition folders without data files.

    Returns:
        False where some folder holds other files; then nothing is removed.
    """
    top = [e for e in storage.list("") if not e.name.startswith(META_DIR)]
    if not all(e.is_dir and _is_bare(storage, e.name) for e in top):
        return False
    for entry in top:
        storage.delete_dir(entry.name)
    storage.delete(PARTITION_METADATA)
    return True


def _is_bare(storage: Storage, folder: str) -> bool:
    return all(
        _is_bare(storage, f"{folder}/{e.name}")
        if e.is_dir
        else e.name.startswith((PARTITION_METADATA, f".{PARTITION_METADATA}"))
        for e in storage.list(folder)
    )
