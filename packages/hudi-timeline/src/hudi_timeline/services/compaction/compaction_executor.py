"""Execution of a compaction plan: begun and completed under the lock, run without it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hudi_format.model import WriteStat
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import with_history
from hudi_timeline.options.compaction_config import CompactionConfig
from hudi_timeline.services.compaction.pending_plans import (
    executable_slices,
    find_pending,
    read_pending,
    refuse_overtaken,
    warns_of_done,
)
from hudi_timeline.services.compaction.plan_execution import (
    COMPACTING,
    HARMED,
    PlanExecution,
    run_to_end,
    take,
)
from hudi_timeline.services.compaction.slice_tasks import Runner, make_tasks, run_on_threads
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.instant import (
    INFLIGHT,
    ROLLBACK,
    Instant,
)
from hudi_timeline.transaction import rollback_executor
from hudi_timeline.transaction.rollback_guard import refuse_alive
from hudi_timeline.transaction.rollback_plan import read_plan, target_of
from hudi_timeline.transaction.schema_history import as_planned
from hudi_timeline.transaction.write_basis import Changes


def execute(
    context: ServiceContext,
    time: str,
    config: CompactionConfig,
    *,
    run: Runner = run_on_threads,
    seen: bool = False,
) -> tuple[WriteStat, ...] | None:
    """Execute a pending plan; returns the statistics of its new base files.

    An execution that another process left dead is rolled back first.

    Args:
        time: the plan's instant.
        run: runs the tasks.
        seen: the caller saw the plan pending, so that one which is no more was executed, or taken back, by another
            process since: None is returned, and the context has a warning.

    Raises:
        InstantNotFoundError: no such plan is pending, and it was not `seen`.
        ConcurrentWriterError: another process executes it, or took it back meanwhile.
        CorruptFileError, MissingFileError, UnsupportedError: the plan or a file of it cannot be read; it stays.
    """
    begun = _begin(context, time, config, RunningCall.here(), seen=seen)
    if begun is None:
        return None
    return run_to_end(context, begun, run, partial(_check_ours, begun))


def _begin(
    context: ServiceContext, time: str, config: CompactionConfig, call: RunningCall, *, seen: bool
) -> PlanExecution | None:
    """Take a plan, after all checks: nothing is changed where one of them fails.

    Returns None where one that was `seen` is pending no more.
    """
    storage, options = context.storage, context.options
    with context.locked(also=HARMED, keep_metadata=True) as snapshot:
        if seen and warns_of_done(context, snapshot.timeline, time):
            return None
        instant = find_pending(snapshot.timeline, time, table=storage.uri)
        refuse_alive(storage, instant, options)
        pending = read_pending(storage, instant)
        if instant.state == INFLIGHT:  # the rollback goes into the metadata table too
            context.settle_metadata_table(snapshot)
            snapshot = replace(snapshot, config=context.table)
        snapshot = rolled_back(snapshot, instant)
        slices = executable_slices(snapshot, pending)
        tasks = make_tasks(with_history(as_planned(snapshot, time), None), time, slices, config)
        beat = take(context, COMPACTING, instant, snapshot, call)
    return PlanExecution(COMPACTING, pending, snapshot, tuple(tasks), beat)


def rolled_back(snapshot: TableSnapshot, instant: Instant) -> TableSnapshot:
    """Snapshot after a dead execution of a plan was rolled back, under the lock.

    So is what a rollback of it has left to do: finished later it would take the files of the next execution away.
    """
    if instant.state == INFLIGHT:
        rollback_executor.rollback_instant(snapshot, instant)
        return snapshot.reloaded()
    for rollback in snapshot.timeline.pending(ROLLBACK):
        plan = read_plan(snapshot.storage, rollback)
        if plan is not None and target_of(plan).time == instant.time:
            rollback_executor.execute(snapshot, rollback.time, plan)
            snapshot = snapshot.reloaded()
    return snapshot


def _check_ours(begun: PlanExecution, snapshot: TableSnapshot, changes: Changes) -> None:
    """Raise where the files were merged for another state than there is."""
    earlier = any(i.time < begun.time for i in changes.written)
    if changes.undone or changes.restores or changes.properties or changes.untold or earlier:
        raise changes.conflict(
            "the files were merged for what was there before; the plan is still there",
            table=snapshot.storage.uri,
            instant=begun.time,
            remedy="run the compaction again.",
        )
    refuse_overtaken(snapshot, begun.pending)
