"""Execution of a plan of compaction or log compaction by this process.

A process that executes a plan has a heartbeat at the plan's instant, so that no two execute it at a time.  One that was
taken for dead finds its heartbeat, its inflight file or its markers gone, and completes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hudi_format.errors import ConcurrentWriterError, HudiError, StorageError
from hudi_format.model import WriteStat
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.heartbeat import Heartbeat
from hudi_timeline.concurrency.markers import Marker
from hudi_timeline.concurrency.own_files import create_own
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.mirror import mirror_write
from hudi_timeline.services.compaction.pending_plans import PendingPlan, read_pending
from hudi_timeline.services.compaction.slice_tasks import Runner, Task, stored_schema_text
from hudi_timeline.services.table_service import WHILE_RESTORING, ServiceContext
from hudi_timeline.timeline.commit_metadata import (
    COMPACT,
    LOG_COMPACT,
    SCHEMA_KEY,
    CommitMetadata,
    by_partition,
)
from hudi_timeline.timeline.instant import (
    COMMIT,
    COMPACTION,
    COMPLETED,
    DELTA_COMMIT,
    INFLIGHT,
    LOG_COMPACTION,
    REQUESTED,
    Instant,
    file_name,
    instant_path,
)
from hudi_timeline.timeline.instant_generator import wait_for_next_tick
from hudi_timeline.transaction import (
    consistency_guard,
    late_publication,
    rollback_executor,
    schema_history,
)
from hudi_timeline.transaction.write_basis import Basis, Changes

log = logging.getLogger("hudi")

HARMED = ("base file format", "bootstrap")
"""Features of the gate that new base files would harm, and services that make none leave alone."""
BY_NAME = (*HARMED, "schema on read")
"""And that go by the names of columns, where files have others of an earlier version."""
PLAN_AGAIN = "nothing is lost; run the log compaction again, which plans anew."


@dataclass(frozen=True, slots=True)
class PlanKind:
    """Kind of a plan: all in which executions of compactions and log compactions differ.

    Attributes:
        name: in messages.
        action: of the pending plan.
        completed: action of the completed instant.
        operation: in its metadata.
        own_files: those of an instant's markers whose files an execution at it has made.
        remedy: where another process took the plan away.
        next_step: who does what a failed execution leaves to do.
        keeps_plan: an execution that fails leaves its plan pending.
    """

    name: str
    action: str
    completed: str
    operation: str
    own_files: Callable[[list[Marker], str], list[Marker]]
    remedy: str
    next_step: str
    keeps_plan: bool

    def taken_away(self, table: str, time: str, what: str) -> ConcurrentWriterError:
        """Error of an execution whose plan is another process's now, or nobody's."""
        return ConcurrentWriterError(
            f"this {self.name} was rolled back, or completed, by another process: {what}",
            table=table,
            instant=time,
            remedy=self.remedy,
        )


COMPACTING = PlanKind(
    "compaction", COMPACTION, COMMIT, COMPACT, markers.own_files,
    "look at the timeline; where the plan is still pending, run it again.", "the next execution of the plan does that",
    keeps_plan=True,
)  # fmt: skip
COMPACTING_LOGS = PlanKind(
    "log compaction", LOG_COMPACTION, DELTA_COMMIT, LOG_COMPACT, markers.log_files, PLAN_AGAIN,
    "the next one does that", keeps_plan=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanExecution:
    """A pending plan that this process executes, or what of it still fits.

    Attributes:
        snapshot: of the table when the plan was taken.
    """

    kind: PlanKind
    pending: PendingPlan
    snapshot: TableSnapshot
    tasks: tuple[Task, ...]
    beat: Heartbeat

    @property
    def time(self) -> str:
        """Instant of the plan."""
        return self.pending.time


def take(
    context: ServiceContext, kind: PlanKind, instant: Instant, snapshot: TableSnapshot, call: RunningCall
) -> Heartbeat:
    """Heartbeat of an execution, begun here under the lock after all checks of its plan.

    Raises:
        ConcurrentWriterError: its inflight file is there already.
    """
    beat = context.heartbeat_at(instant.time, call)
    try:
        context.settle_metadata_table(snapshot)
        context.check_lock()
    except BaseException:
        beat.stop()
        raise
    _create_inflight(context.storage, instant, kind, beat)
    return beat


def _create_inflight(storage: Storage, instant: Instant, kind: PlanKind, beat: Heartbeat) -> None:
    """Create the inflight file, or leave none.

    A store that fails may have created it.  Without a heartbeat it would count as another program's, which nobody
    rolls back; with one it is ours, so it is taken back, or the heartbeat stays and tells that its process died.
    """
    path = instant.path_in(INFLIGHT)
    try:
        storage.create(path, b"")
    except FileExistsError:
        beat.stop()
        raise kind.taken_away(storage.uri, instant.time, "its inflight file is there already") from None
    except BaseException as e:
        try:
            storage.delete(path)
            flush(storage, [path], written=False)
            beat.stop()
        except (HudiError, OSError) as undo_error:
            beat.give_up()
            e.add_note(
                f"Whether the {kind.name} {instant.time} was begun is not known ({undo_error}); nothing of it is "
                f"visible, and {kind.next_step}."
            )
        raise


def run_to_end(
    context: ServiceContext,
    begun: PlanExecution,
    run: Runner,
    check: Callable[[TableSnapshot, Changes], None],
) -> tuple[WriteStat, ...]:
    """Statistics of the new files of an execution, which is completed, or given back.

    Args:
        check: raises where the execution must not be completed; it is given the table under the lock, and what became
            of it since the plan was taken.
    """
    try:
        stats = tuple(s for s in run(begun.tasks) if s is not None)
        if context.options.consistency_check:
            consistency_guard.wait_for_files(context.storage, stats, context.options)
        _complete(context, begun, stats, check)
    except BaseException as e:
        _give_back(context, begun, e)
        raise
    try:
        markers.delete(context.storage, begun.time)
        begun.beat.stop()
    except (StorageError, OSError) as e:
        begun.beat.give_up()
        context.warnings.append(
            f"leftovers of the completed {begun.kind.name} {begun.time} could not be removed: {e}"
        )
    return stats


def _complete(
    context: ServiceContext,
    begun: PlanExecution,
    stats: tuple[WriteStat, ...],
    check: Callable[[TableSnapshot, Changes], None],
) -> None:
    with context.locked(also=HARMED, keep_metadata=True) as snapshot:
        _refuse_taken_away(context, begun, snapshot, stats)
        before = begun.snapshot
        check(snapshot, Basis.of(before.config, before.timeline).changes(snapshot.config, snapshot.timeline))
        context.settle_metadata_table(snapshot)
        _remove_failed_tries(context, begun, snapshot, stats)
        _publish(context, begun, snapshot, stats)


def _refuse_taken_away(
    context: ServiceContext, begun: PlanExecution, snapshot: TableSnapshot, stats: Sequence[WriteStat]
) -> None:
    """Raise where the execution is not this process's any more, under the lock."""
    storage, time, timeline, kind = context.storage, begun.time, snapshot.timeline, begun.kind
    begun.beat.check()
    for state in (REQUESTED, INFLIGHT):
        if not timeline.has_file(file_name(time, kind.action, state)):
            raise kind.taken_away(storage.uri, time, f"its {state.lower()} file is gone")
    if any(i.time == time and i.completed for i in timeline.completed_writes()):
        raise kind.taken_away(storage.uri, time, "another process completed it")
    if read_pending(storage, begun.pending.instant).data != begun.pending.data:
        raise kind.taken_away(storage.uri, time, "its plan was changed")
    marked = {m.path for m in markers.list_markers(storage, time)}
    if any(s.path not in marked for s in stats):
        raise kind.taken_away(storage.uri, time, "its markers are gone")


def _remove_failed_tries(
    context: ServiceContext, begun: PlanExecution, snapshot: TableSnapshot, stats: Sequence[WriteStat]
) -> None:
    """Delete what tasks that ran twice have made besides, under the lock."""
    storage, time = context.storage, begun.time
    kept = {s.path for s in stats}
    for marker in begun.kind.own_files(markers.list_markers(storage, time), time):
        if marker.path not in kept:
            storage.delete(marker.path)
            flush(storage, [marker.path], written=False)
    if storage.is_local:
        wait_for_next_tick(max((i.mtime_ms for i in snapshot.timeline.completed_writes()), default=0))


def _plan_metadata(
    kind: PlanKind, snapshot: TableSnapshot, pending: PendingPlan, stats: Sequence[WriteStat]
) -> CommitMetadata:
    """Metadata of a completed plan, with the table's schema and the entries of the plan."""
    return CommitMetadata(
        by_partition(stats),
        extra={**pending.plan.extra, SCHEMA_KEY: stored_schema_text(snapshot)},
        operation=kind.operation,
        compacted=True,
    )


def _publish(
    context: ServiceContext, begun: PlanExecution, snapshot: TableSnapshot, stats: Sequence[WriteStat]
) -> None:
    """Complete the execution under the lock; the completed file comes last."""
    storage, time, kind = context.storage, begun.time, begun.kind
    if not kind.keeps_plan:
        schema_history.refuse_older_than_history(snapshot, time)
    now = replace(snapshot, config=context.table)
    planned = schema_history.as_planned(begun.snapshot, time)
    metadata, history = schema_history.continued(
        now, time, _plan_metadata(kind, planned, begun.pending, stats)
    )
    for file in history:
        file.store()
    context.warnings += mirror_write(now, time, metadata, context.options.indexes).warnings
    content = metadata.to_json()
    context.check_lock()
    begun.beat.check()
    path = instant_path(context.table, time, kind.completed, COMPLETED)
    try:
        create_own(storage, path, content)
    except FileExistsError:
        raise kind.taken_away(storage.uri, time, "another completed file is there") from None
    flush(storage, [path], written=False)
    late = late_publication.check_plan(context.lock, now, time, kind.action, path, begun.beat)
    context.warnings += [late] if late else []


def _give_back(context: ServiceContext, begun: PlanExecution, error: BaseException) -> None:
    """Roll a failed execution back; what cannot be done now is left to the next one."""
    storage, beat, time, kind = context.storage, begun.beat, begun.time, begun.kind
    if not beat.is_own:  # a forked child that ends does not end what its parent does
        return
    log.info("%s: %s %s is rolled back: %r", storage.uri, kind.name, time, error)
    try:
        with context.locked(allowed=WHILE_RESTORING, keep_metadata=True) as snapshot:
            now = next((i for i in snapshot.timeline.instants if i.time == time), None)
            beat.check()  # else the files at this instant are another execution's
            if now is not None and now.completed:
                error.add_note(f"The {kind.name} itself is completed, and visible as {time}.")
            elif now is None:
                rollback_executor.remove_leftovers(storage, time)
            elif now.state == INFLIGHT or not kind.keeps_plan:
                rollback_executor.rollback_instant(snapshot, now, own=True)
        beat.stop()
    except (HudiError, OSError) as e:
        beat.give_up()
        error.add_note(
            f"The failed {kind.name} {time} could not be rolled back at once ({e}); nothing of it is visible, and "
            f"{kind.next_step}."
        )
