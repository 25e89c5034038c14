"""Restore: returns the table to an earlier commit and undoes later ones permanently.

    lock { plan -> <r>.restore.requested -> .inflight -> the instants after the commit, newest first: completed file,
           then data files and command blocks, then the other files of the instant -> <r>.restore }

Newest first, so that each state on the way is one that the table once had.  A process that dies on the way leaves a
pending restore, which refuses writes until the same restore is run again.

Source: BaseRestoreActionExecutor and RestorePlanActionExecutor of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from hudi_format.errors import OptionError, UnsupportedError
from hudi_format.file_names import parse_data_file
from hudi_format.model import FileSlice
from hudi_format.storage.protocol import Storage
from hudi_timeline import metadata_config, table_config
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.concurrency.locks.provider import verify_held
from hudi_timeline.concurrency.own_files import complete_own, create_if_absent
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.file_slices import MERGE_ON_READ, newest_slices, refuse_hidden_logs
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.file_system_view.restores import restored_to
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.initialisation import can_initialise, initialise
from hudi_timeline.services.pending_cleans import paths_of, take_back
from hudi_timeline.services.savepoints import commit_of, completed_commit
from hudi_timeline.services.table_service import WHILE_RESTORING, ServiceContext
from hudi_timeline.timeline.action_metadata import (
    InstantName,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    render_action,
)
from hudi_timeline.timeline.active_timeline import Timeline, completion_ms, is_clustering
from hudi_timeline.timeline.archived_timeline import archived_write_between
from hudi_timeline.timeline.instant import (
    COMPACTION,
    COMPLETED,
    INFLIGHT,
    LOG_COMPACTION,
    RESTORE,
    WRITE_ACTIONS,
    Committed,
    Instant,
    instant_path,
    zone_of,
)
from hudi_timeline.timeline.instant_generator import request_instant
from hudi_timeline.transaction.rollback_executor import (
    delete_files,
    rollback_metadata,
    tidy,
    undo,
    withdraw_overtaken,
)
from hudi_timeline.transaction.rollback_guard import refuse_alive
from hudi_timeline.transaction.rollback_plan import Files, by_listing, check_plan, paths_to_delete, target_of

log = logging.getLogger("hudi")

_UNDONE = WRITE_ACTIONS | {COMPACTION, LOG_COMPACTION}
_CLOCKS_APART_MS = 3_600_000


@dataclass(frozen=True)
class RestoreResult(HtmlView):
    """Result of a restore, or of its `dry_run`.

    Attributes:
        to: the commit that the table went back to.
        undone: instants that are no more, newest first.
        instant: the restore's own instant time; "" of a dry run.
        deleted: how many data files were deleted.
        blocks: log files that got a command block.
        warnings: what the user should know, one sentence each.
        seconds: how long it took.
        files: the data files that are deleted, below the table, sorted.
    """

    to: str
    undone: tuple[str, ...]
    instant: str = ""
    deleted: int = 0
    seconds: float = 0.0
    blocks: int = 0
    warnings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __repr__(self) -> str:
        files = f"{self.deleted:,} files deleted; {self.seconds:.2f} s"
        done = files if self.instant else f"{len(self.files):,} files to delete, not executed"
        return f"RestoreResult(to {self.to}: {len(self.undone):,} instants undone, {done})"


def restore(
    context: ServiceContext,
    to: str | date | Committed,
    *,
    dry_run: bool = False,
    now: Callable[[], float] = time.time,
) -> RestoreResult:
    """Restore the table to the commit `to`, or to the one that was the newest at the time `to`.

    Raises:
        InstantNotFoundError: no completed commit of the active timeline has that time.
        MissingFileError: files of that state are gone; savepoint a commit to keep them.
        OptionError: a later commit is savepointed, or another restore is not finished.
        UnsupportedError: later commits of a merge-on-read table are archived.
        ConcurrentWriterError: a write after it is running.
    """
    began = time.monotonic()
    storage = context.storage
    if dry_run:
        snapshot = context.looked(allowed=WHILE_RESTORING)
        to = commit_of(snapshot, to)
        timeline, (undone, _) = snapshot.timeline, _plan(context, snapshot, to)
        warnings = _out_of_order(context, timeline, undone, to)
        times = tuple(i.time for i in undone)
        listed = walk(storage)
        plans = _rollback_plans(storage, timeline, undone, listed)
        beyond = _archived_files(timeline, to, listed)
        files = _files(plans, beyond)
        return RestoreResult(to, times, seconds=time.monotonic() - began, warnings=warnings, files=files)
    with context.locked(allowed=WHILE_RESTORING) as snapshot:
        to = commit_of(snapshot, to)
        marked, beating = markers.list_instants(storage), heartbeat.list_instants(storage)
        undone, needed = _plan(context, snapshot, to)
        snapshot = withdraw_overtaken(snapshot, kept=to)
        timeline = snapshot.timeline
        warnings = _out_of_order(context, timeline, undone, to)
        # It lists files that are deleted now, and is made anew when they are.
        is_listed = metadata_config.FILES in snapshot.config.metadata_partitions
        had = snapshot.config.metadata_partitions
        if is_listed:
            metadata_config.drop(storage, snapshot.config)
        take_back(storage, timeline, paths_of(needed), by="restore", after=to)
        pending = timeline.pending(RESTORE)
        verify_held()  # a restore that is begun shuts the table to writers until it is run again
        if pending:
            instant = pending[0].time
        else:
            plan = RestorePlan(tuple(InstantName(i.time, i.action) for i in undone), to)
            instant = request_instant(storage, timeline, context.table, RESTORE, render_action(plan), now)
        inflight = instant_path(context.table, instant, RESTORE, INFLIGHT)
        create_if_absent(storage, inflight, b"")
        listed = walk(storage)
        plans = _rollback_plans(storage, timeline, undone, listed)
        beyond = _archived_files(timeline, to, listed)
        delete_files(storage, beyond)
        times = tuple(i.time for i in undone)
        rolled = [_undo(storage, plan, instant) for plan in plans]
        done = RestoreMetadata(
            instant,
            int((time.monotonic() - began) * 1000),
            times,
            {t: (r,) for t, r in zip(times, rolled, strict=True)},
            tuple(target_of(plan) for plan in plans),
        )
        path = instant_path(context.table, instant, RESTORE, COMPLETED)
        complete_own(storage, path, render_action(done), what="restore", instant=instant)
        after = replace(snapshot, config=table_config.load(storage)).reloaded()
        context.sweep(after.timeline, marked, beating)
        if is_listed and can_initialise(after):
            context.table, not_made = initialise(after, had, context.options.indexes)
            context.warnings += not_made
    deleted = sum(r.files_deleted for r in rolled) + len(beyond)
    blocks = sum(len(p.command_logs) for r in rolled for p in r.partitions.values())
    result = RestoreResult(
        to,
        times,
        instant,
        deleted,
        time.monotonic() - began,
        blocks,
        (*context.warnings, *warnings),
        _files(plans, beyond),
    )
    log.info("%s: %r", storage.uri, result)
    return result


def _plan(context: ServiceContext, snapshot: TableSnapshot, to: str) -> tuple[list[Instant], list[FileSlice]]:
    """Writes to undo, newest first, after a check of all of them; and the slices of the state before them."""
    storage, timeline = snapshot.storage, snapshot.timeline
    done = completed_commit(snapshot, to)
    later = [t for t in timeline.savepoints if t > to]
    if later:
        raise OptionError(
            f"the commit {later[0]} is savepointed, and would be undone",
            table=storage.uri,
            instant=later[0],
            remedy="delete the savepoint first.",
        )
    _refuse_other_restore(storage, timeline, to)
    if snapshot.config.table_type == MERGE_ON_READ:
        # Not by where the timeline begins: the savepoint that later commits were archived beyond may be deleted.
        there = {i.time for i in timeline.instants}
        beyond = archived_write_between(
            storage, snapshot.config, to, None, unless=there.__contains__,
            written_since_ms=max(0, completion_ms(done, zone_of(snapshot.config.timezone)) - _CLOCKS_APART_MS),
        )  # fmt: skip
        if beyond is not None:
            raise UnsupportedError(
                f"{beyond} came after {to} and is archived: what it appended to log files cannot be taken back",
                table=storage.uri,
                instant=to,
                remedy=f"read the table as of {to} and write the rows into a new table.",
            )
    undone = [i for i in reversed(timeline.instants) if i.time > to and i.action in _UNDONE]
    for instant in undone:
        if not instant.completed:
            refuse_alive(storage, instant, context.options)
    # Clusterings that wait for their run go first, as in Apache Hudi.
    waiting = [i for i in undone if not i.completed and is_clustering(storage, timeline, i)]
    # Every file of that state must be there: this raises where the cleaner was at it.
    refuse_hidden_logs(snapshot.at(to))
    slices = newest_slices(snapshot.at(to))
    return [*waiting, *(i for i in undone if i not in waiting)], slices


def _out_of_order(
    context: ServiceContext, timeline: Timeline, undone: Sequence[Instant], to: str
) -> tuple[str, ...]:
    """Warnings for overlapping writes, whose instants and completions differ in order."""
    zone = zone_of(context.table.timezone)
    kept = [i for i in timeline.completed_writes() if i.time <= to]
    ended = {i.time: completion_ms(i, zone) for i in (*kept, *undone) if i.completed}
    last = max(((ended[i.time], i.time) for i in kept), default=(0, ""))
    first = min(((ended[i.time], i.time) for i in undone if i.time in ended), default=None)
    if first is None or first[0] >= last[0]:
        return ()
    return (
        f"writes overlapped: {last[1]} stays and was completed after {first[1]}, which is "
        "undone; if it was made from rows of that write, the table now holds a state that "
        "never existed before",
    )


def _refuse_other_restore(storage: Storage, timeline: Timeline, to: str) -> None:
    for pending in timeline.pending(RESTORE):
        begun = restored_to(storage, pending)
        # One without a plan never began: ours takes its place under the same instant.
        if begun not in ("", to):
            raise OptionError(
                f"a restore to {begun} was begun and not finished",
                table=storage.uri,
                instant=pending.time,
                remedy=f"run restore({begun!r}) first.",
            )


def _rollback_plans(
    storage: Storage, timeline: Timeline, undone: Sequence[Instant], listed: Files
) -> list[RollbackPlan]:
    """Rollback plans of the instants, in their order."""
    gone = {i.time for i in undone}
    plans = []
    for instant in undone:
        requests = by_listing(storage, timeline, instant, restoring=True, listed=listed)
        # A slice that goes with the instant that began it needs no command block first.
        kept = tuple(r for r in requests if not (r.log_blocks and r.base_instant in gone))
        plans.append(RollbackPlan(InstantName(instant.time, instant.action), kept))
        check_plan(plans[-1])
    return plans


def _archived_files(timeline: Timeline, to: str, listed: Files) -> list[str]:
    """Files of instants after `to` that are not on the timeline: of commits that were archived, with
    hoodie.archive.beyond.savepoint, or of writes that failed.

    Left there, they count when the timeline begins with a later write.  Where it begins now says nothing: the savepoint
    that they were archived beyond, or one after it, may be deleted.
    """
    there, last = {i.time for i in timeline.instants}, timeline.newest_time
    found: list[str] = []
    for partition, entries in listed.items():
        for entry in entries:
            file = parse_data_file(partition, entry.name)
            if file is not None and to < file.instant < last and file.instant not in there:
                found.append(file.path)
    return found


def _files(plans: Sequence[RollbackPlan], beyond: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*beyond, *(path for plan in plans for path in paths_to_delete(plan))}))


def _undo(storage: Storage, plan: RollbackPlan, restore: str) -> RollbackMetadata:
    """Undo one instant, repeatably; returns the metadata of its rollback."""
    began = time.monotonic()
    target = target_of(plan)
    undone = undo(storage, plan, restore)
    tidy(storage, target.time, restore)
    return rollback_metadata(storage, restore, target, undone, int((time.monotonic() - began) * 1000))
