"""Log compaction: the log blocks of file slices merged into one each, between compactions.

    lock { plan -> <t>.logcompaction.requested }
    lock { checks, heartbeat, .logcompaction.inflight } -> new log files with markers, without the lock
    lock { still ours, slices as they were? <t>.deltacommit } -> markers deleted, heartbeat ends

It changes no row and begins no slice, so it gives way to everything else: where a write is open, or has touched a
slice since, it is taken back with its plan, and planned anew another time.  So its block is always the newest of its
slice, which also readers need that do not know that it stands for older ones.

Source: HoodieLogCompactionPlanGenerator, RunCompactionActionExecutor and BaseHoodieTableServiceClient.logCompact of
Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hudi_format.errors import ConcurrentWriterError, UnsupportedError, WriteConflictError
from hudi_format.file_names import log_sort_key
from hudi_format.file_slice.compacted_log import count_blocks, refuse_merge
from hudi_format.model import FileSlice, WriteStat
from hudi_format.storage.open import flush
from hudi_format.storage.parallel import on_threads
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.file_slices import newest_slices, newest_slices_of, planned_groups
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import with_history
from hudi_timeline.options.compaction_config import CompactionConfig, parse_compaction_options
from hudi_timeline.services.compaction.compaction import (
    CompactionResult,
    begun_elsewhere,
    refuse_copy_on_write,
)
from hudi_timeline.services.compaction.compaction_planner import (
    PLAN_VERSION,
    open_writes,
    operation_of,
    reserved_groups,
)
from hudi_timeline.services.compaction.pending_plans import (
    find_pending,
    read_pending,
    warns_of_done,
)
from hudi_timeline.services.compaction.plan_execution import (
    COMPACTING_LOGS,
    HARMED,
    PLAN_AGAIN,
    PlanExecution,
    run_to_end,
    take,
)
from hudi_timeline.services.compaction.slice_tasks import (
    Runner,
    make_log_tasks,
    merge_of,
    run_on_threads,
    stored_schema_text,
)
from hudi_timeline.services.table_service import (
    BOTH,
    EXECUTE,
    SCHEDULE,
    ServiceContext,
    check_mode,
    dry_run_looks_again,
)
from hudi_timeline.timeline.action_metadata import CompactionOperation, CompactionPlan, CompactionStrategy
from hudi_timeline.timeline.instant import (
    INFLIGHT,
    LOG_COMPACTION,
    REQUESTED,
)
from hudi_timeline.timeline.instant_generator import request_instant
from hudi_timeline.transaction import rollback_executor
from hudi_timeline.transaction.retries import waited_for
from hudi_timeline.transaction.rollback_guard import refuse_alive, running_writes
from hudi_timeline.transaction.schema_history import refuse_older_than_history
from hudi_timeline.transaction.write_basis import Changes

log = logging.getLogger("hudi")

STRATEGY = CompactionStrategy("org.apache.hudi.table.action.compact.LogCompactionExecutionHelper")


@dataclass(frozen=True, slots=True)
class _LogExecution(PlanExecution):
    """Execution of what of a plan still fits.

    Attributes:
        operations: of its tasks.
    """

    operations: tuple[CompactionOperation, ...]


@dry_run_looks_again
def log_compact(
    context: ServiceContext,
    config: CompactionConfig | None = None,
    *,
    mode: str = BOTH,
    instant: str | None = None,
    dry_run: bool = False,
    run: Runner | None = None,
    now: Callable[[], float] = time.time,
) -> CompactionResult:
    """Execute the pending log compactions, then plan one, and execute it too.

    Args:
        config: what the context's options say, if not given.
        mode: only one of the two: "schedule" or "execute".
        instant: of the pending log compaction to execute; all of them, oldest first, if not given.
        dry_run: give the plan and change nothing.
        run: runs the tasks of an execution; None for threads of this process.

    Raises:
        UnsupportedError: no merge-on-read table, one that would be harmed, or a merge that meets every record.
        CorruptFileError, MissingFileError: files of a slice are damaged or gone; nothing is changed.
        ConcurrentWriterError: a write is open, or another process executes the plan.
        WriteConflictError: the slices were written to since; the plan is withdrawn.
        LockError, StorageError.
    """
    began = time.monotonic()
    check_mode(mode)
    if instant is not None and mode != EXECUTE:
        raise ValueError("instant goes with mode='execute'")
    refuse_copy_on_write(context)
    config = config or parse_compaction_options(context.options.raw)
    run = run or run_on_threads
    executed: dict[str, tuple[WriteStat, ...]] = {}
    plan, scheduled, skipped = CompactionPlan(), "", ""
    if dry_run and mode == EXECUTE:
        plan, skipped = _look_into(context, instant)
    elif mode != SCHEDULE:
        executed = {} if dry_run else _execute_pending(context, instant, config, run)
    if mode != EXECUTE and dry_run:
        plan, skipped = _planned(context.looked(also=HARMED), config)
    elif mode != EXECUTE:
        with context.standing(first=_has_precedence(context, config)) as standing:
            scheduled, plan, skipped = waited_for(lambda: _schedule(context, config, now, standing), 0)
            # It gives way to every write that begins beside it, so that others wait until it is executed.
            if scheduled and mode == BOTH:
                stats = _execute(context, scheduled, config, run, seen=True)
                if stats is not None:
                    executed[scheduled] = stats
    result = CompactionResult(
        scheduled, plan, tuple(executed), executed, skipped, tuple(context.warnings), time.monotonic() - began
    )
    log.info("%s: log compaction: %r", context.storage.uri, result)
    return result


# --- planning -------------------------------------------------------------------------------------------


def make_log_compaction_plan(snapshot: TableSnapshot, config: CompactionConfig) -> CompactionPlan:
    """Plan of a log compaction: the slices with as many log blocks as the options say.

    The logs are opened, and their blocks counted as a read would go through them.

    Raises:
        CorruptFileError, MissingFileError: a committed file is not there, or damaged; a plan cannot be read.
        UnsupportedError: columns or a merge that cannot be executed here.
    """
    storage = snapshot.storage
    stored_schema_text(snapshot)  # what could not be executed is not planned
    merge = merge_of(snapshot, config)
    refuse_merge(merge, storage.uri)
    reserved = set(reserved_groups(snapshot))
    reserved.update(*(planned_groups(storage, i) for i in snapshot.timeline.pending(LOG_COMPACTION)))
    slices = [
        s
        for s in newest_slices(snapshot, snapshot.listing().files)
        if s.log_files and (s.partition, s.file_id) not in reserved
    ]
    with snapshot.of_its_state():
        counts = [*on_threads(storage, lambda s: count_blocks(storage, s, merge), slices)]
    chosen = [s for s, blocks in zip(slices, counts, strict=True) if blocks >= config.log_compact_blocks]
    return CompactionPlan(
        tuple(operation_of(s, config) for s in chosen),
        strategy=STRATEGY,
        preserve_meta_columns=True,
        version=PLAN_VERSION,
    )


def _planned(snapshot: TableSnapshot, config: CompactionConfig) -> tuple[CompactionPlan, str]:
    """The plan, and why there is none."""
    waiting = _waits_for(snapshot)
    plan = CompactionPlan() if waiting else make_log_compaction_plan(snapshot, config)
    return plan, waiting or ("" if plan else f"no file slice has {config.log_compact_blocks} log blocks")


def _has_precedence(context: ServiceContext, config: CompactionConfig) -> bool:
    """Whether open writes are to be waited for: slices have got so many more log blocks than they should."""
    patience = context.patience
    if patience is None:
        return False
    snapshot = context.look()
    if not _waits_for(snapshot):
        return False
    late = replace(config, log_compact_blocks=config.log_compact_blocks + patience)
    return bool(make_log_compaction_plan(snapshot, late))


def _schedule(
    context: ServiceContext, config: CompactionConfig, now: Callable[[], float], standing: Precedence
) -> tuple[str, CompactionPlan, str]:
    """Plan, and put the plan on the timeline; gives its instant, the plan, and why there is none.

    Raises:
        ConcurrentWriterError: with precedence, it waits for open writes.
    """
    storage = context.storage
    with context.locked(also=HARMED, keep_metadata=True) as snapshot:
        if standing.is_first:
            standing.give_way(True, lambda: running_writes(snapshot, context.options))
        plan, skipped = _planned(snapshot, config)
        if not plan:
            return "", plan, skipped
        context.check_lock()
        instant = request_instant(
            storage, snapshot.timeline, context.table, LOG_COMPACTION, plan.to_bytes(), now
        )
    log.info("%s: log compaction %s of %d slices is scheduled", storage.uri, instant, len(plan.operations))
    return instant, plan, ""


def _waits_for(snapshot: TableSnapshot) -> str:
    """Why nothing is to be planned now; "" where that may be done."""
    found = open_writes(snapshot.storage, snapshot.timeline)
    return f"{found[0]} is not completed, and may append to its slices" if found else ""


# --- execution ------------------------------------------------------------------------------------------


def _look_into(context: ServiceContext, instant: str | None) -> tuple[CompactionPlan, str]:
    """The operations that an execution of pending plans would run, after its checks of them."""
    snapshot = context.look()
    found = snapshot.timeline.pending(LOG_COMPACTION)
    if instant is not None:
        uri = snapshot.storage.uri
        found = (find_pending(snapshot.timeline, instant, table=uri, action=LOG_COMPACTION),)
    operations: list[CompactionOperation] = []
    if found:
        context.check(snapshot, also=HARMED)
    for one in found:
        pending = read_pending(snapshot.storage, one)
        operations += [o for o, _ in _fitting(snapshot, pending.plan.operations, one.time)]
    skipped = "" if operations else "no plan is pending" if not found else "its slices were written to since"
    return CompactionPlan(tuple(operations)), skipped


def _execute_pending(
    context: ServiceContext, instant: str | None, config: CompactionConfig, run: Runner
) -> dict[str, tuple[WriteStat, ...]]:
    """Execute one pending plan, or all; those among all that do not fit are withdrawn with a warning."""
    if instant is not None:
        given = _execute(context, instant, config, run, seen=False)
        return {} if given is None else {instant: given}
    done = {}
    for pending in context.look().timeline.pending(LOG_COMPACTION):
        if begun_elsewhere(context, pending, context.warnings) or context.is_alive(pending):
            continue
        try:
            stats = _execute(context, pending.time, config, run, seen=True)
            if stats is not None:
                done[pending.time] = stats
        except WriteConflictError as e:
            context.warnings.append(f"log compaction {pending.time} was withdrawn: {e.message}")
    return done


def _execute(
    context: ServiceContext, time: str, config: CompactionConfig, run: Runner, *, seen: bool
) -> tuple[WriteStat, ...] | None:
    """Execute a pending plan; None where one that was `seen` pending is no more."""
    begun = _begin(context, time, config, RunningCall.here(), seen=seen)
    if begun is None:
        return None
    return run_to_end(context, begun, run, partial(_check_ours, begun))


def _begin(
    context: ServiceContext, time: str, config: CompactionConfig, call: RunningCall, *, seen: bool
) -> _LogExecution | None:
    """Take a plan, after all checks; one of which nothing fits any more is withdrawn."""
    storage, options = context.storage, context.options
    with context.locked(also=HARMED, keep_metadata=True) as snapshot:
        if seen and warns_of_done(context, snapshot.timeline, time, action=LOG_COMPACTION):
            return None
        instant = find_pending(snapshot.timeline, time, table=storage.uri, action=LOG_COMPACTION)
        refuse_alive(storage, instant, options)
        if instant.state == INFLIGHT:  # Apache Hudi runs none again either
            context.settle_metadata_table(snapshot)
            rollback_executor.rollback_instant(replace(snapshot, config=context.table), instant)
            raise _withdrawn(
                storage.uri, time, "an execution of it had died, and is rolled back with the plan"
            )
        pending = read_pending(storage, instant)
        writing = open_writes(storage, snapshot.timeline)
        if writing:
            raise ConcurrentWriterError(
                f"{writing[0]} is not completed, and may append to the slices of the log compaction",
                table=storage.uri,
                instant=time,
                remedy=f"wait for it; if its writer is dead, roll it back (`hudi rollback PATH {writing[0].time}`).",
            )
        fitting = _fitting(snapshot, pending.plan.operations, time)
        why = "" if fitting else "its slices were written to, or planned for something else, since"
        try:
            refuse_older_than_history(snapshot, time)
        except UnsupportedError as e:  # a write has brought a column: no execution can be completed any more
            why = e.message
        if why:
            context.check_lock()
            storage.delete(instant.path_in(REQUESTED))
            flush(storage, [instant.path_in(REQUESTED)], written=False)
            raise _withdrawn(storage.uri, time, why)
        tasks = make_log_tasks(with_history(snapshot, None), time, [s for _, s in fitting], config)
        beat = take(context, COMPACTING_LOGS, instant, snapshot, call)
    operations = tuple(o for o, _ in fitting)
    return _LogExecution(COMPACTING_LOGS, pending, snapshot, tuple(tasks), beat, operations)


def _withdrawn(table: str, time: str, why: str) -> WriteConflictError:
    return WriteConflictError(
        f"the plan of the log compaction is withdrawn: {why}", table=table, instant=time, remedy=PLAN_AGAIN
    )


def _fitting(
    snapshot: TableSnapshot, operations: Sequence[CompactionOperation], time: str
) -> list[tuple[CompactionOperation, FileSlice]]:
    """The operations whose slices are the newest of their groups, with no other log files than those named.

    Args:
        time: of the log compaction, whose own log files do not count.
    """
    storage = snapshot.storage
    others = (i for i in snapshot.timeline.pending(LOG_COMPACTION) if i.time != time)
    reserved = {*reserved_groups(snapshot, without=time)}.union(*(planned_groups(storage, i) for i in others))
    own = {m.path for m in markers.log_files(markers.list_markers(storage, time), time)}
    slices = {
        (s.partition, s.file_id): s for s in newest_slices_of(snapshot, {o.partition for o in operations})
    }
    fitting = []
    for operation in operations:
        group = (operation.partition, operation.file_id)
        found = slices.get(group)
        if found is None or group in reserved:
            continue
        logs = tuple(f for f in found.log_files if f.path not in own)
        base = "" if found.base_file is None else found.base_file.name
        if (base, sorted(f.name for f in logs)) == (operation.data_file, sorted(operation.log_files)):
            fitting.append((operation, replace(found, log_files=tuple(sorted(logs, key=log_sort_key)))))
    return fitting


def _check_ours(begun: _LogExecution, snapshot: TableSnapshot, changes: Changes) -> None:
    """Raise where the log compaction has to give way."""
    storage, time = snapshot.storage, begun.time
    if changes.undone or changes.restores or changes.properties or changes.untold:
        raise changes.conflict(
            "the log blocks were merged for what was there before",
            table=storage.uri,
            instant=time,
            remedy=PLAN_AGAIN,
        )
    writing = [i for i in open_writes(storage, snapshot.timeline) if i.time != time]
    if writing or len(_fitting(snapshot, begun.operations, time)) < len(begun.operations):
        what = (
            f"{writing[0]} is at work"
            if writing
            else "its slices were written to, or planned for something else"
        )
        raise WriteConflictError(
            f"the log compaction gives way, as {what}", table=storage.uri, instant=time, remedy=PLAN_AGAIN
        )
