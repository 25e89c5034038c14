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

from hudi_format.errors import ConcurrentWriterError, HudiError, StorageError, WriteConflictError
from hudi_format.file_names import log_sort_key
from hudi_format.file_slice.compacted_log import count_blocks, refuse_merge
from hudi_format.model import FileSlice, WriteStat
from hudi_format.storage.open import flush
from hudi_format.storage.parallel import on_threads
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.concurrency.heartbeat import Heartbeat
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.file_slices import newest_slices, newest_slices_of
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.mirror import mirror_write
from hudi_timeline.options.compaction_config import CompactionConfig, parse_compaction_options
from hudi_timeline.services.compaction.compaction import (
    BOTH,
    EXECUTE,
    MODES,
    SCHEDULE,
    CompactionResult,
    begun_elsewhere,
    refuse_copy_on_write,
)
from hudi_timeline.services.compaction.compaction_executor import BY_NAME, holds
from hudi_timeline.services.compaction.compaction_planner import (
    PLAN_VERSION,
    open_writes,
    operation_of,
    planned_groups,
    reserved_groups,
)
from hudi_timeline.services.compaction.pending_plans import (
    PendingPlan,
    find_pending,
    read_pending,
    warns_of_done,
)
from hudi_timeline.services.compaction.slice_tasks import (
    LogCompactionTask,
    Runner,
    make_log_tasks,
    merge_of,
    run_on_threads,
    stored_schema_text,
)
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.action_metadata import CompactionOperation, CompactionPlan, CompactionStrategy
from hudi_timeline.timeline.commit_metadata import LOG_COMPACT, SCHEMA_KEY, CommitMetadata
from hudi_timeline.timeline.instant import (
    COMPLETED,
    DELTA_COMMIT,
    INFLIGHT,
    LOG_COMPACTION,
    REQUESTED,
    file_name,
    instant_path,
)
from hudi_timeline.timeline.instant_generator import new_instant, wait_for_next_tick
from hudi_timeline.transaction import consistency_guard, rollback_executor
from hudi_timeline.transaction.rollback_guard import refuse_alive
from hudi_timeline.transaction.write_basis import Basis

log = logging.getLogger("hudi")

STRATEGY = CompactionStrategy("org.apache.hudi.table.action.compact.LogCompactionExecutionHelper")
_AGAIN = "nothing is lost; run the log compaction again, which plans anew."


@dataclass(frozen=True, slots=True)
class _Begun:
    """A plan that this process executes, or what of it still fits."""

    pending: PendingPlan
    operations: tuple[CompactionOperation, ...]
    snapshot: TableSnapshot
    tasks: tuple[LogCompactionTask, ...]
    beat: Heartbeat

    @property
    def time(self) -> str:
        return self.pending.time


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
    if mode not in MODES:
        raise ValueError(f"mode is one of {', '.join(MODES)}, not {mode!r}")
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
    if mode != EXECUTE:
        scheduled, plan, skipped = _schedule(context, config, dry_run=dry_run, now=now)
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
    storage, timeline = snapshot.storage, snapshot.timeline
    stored_schema_text(snapshot)  # what could not be executed is not planned
    merge = merge_of(snapshot, config)
    refuse_merge(merge, storage.uri)
    reserved = {*reserved_groups(snapshot), *planned_groups(storage, timeline.pending(LOG_COMPACTION))}
    slices = [
        s
        for s in newest_slices(snapshot, snapshot.listing().files)
        if s.log_files and (s.partition, s.file_id) not in reserved
    ]
    counts = on_threads(storage, lambda s: count_blocks(storage, s, merge), slices)
    chosen = [s for s, blocks in zip(slices, counts, strict=True) if blocks >= config.log_compact_blocks]
    return CompactionPlan(
        tuple(operation_of(s, config) for s in chosen),
        strategy=STRATEGY,
        preserve_meta_columns=True,
        version=PLAN_VERSION,
    )


def _schedule(
    context: ServiceContext, config: CompactionConfig, *, dry_run: bool, now: Callable[[], float]
) -> tuple[str, CompactionPlan, str]:
    """Plan, and put the plan on the timeline; gives its instant, the plan, and why there is none."""
    storage, nothing = context.storage, CompactionPlan()
    few = f"no file slice has {config.log_compact_blocks} log blocks"
    if dry_run:
        snapshot = context.look()
        waiting = _waits_for(snapshot)
        plan = nothing if waiting else make_log_compaction_plan(snapshot, config)
        return "", plan, waiting or ("" if plan else few)
    with context.locked(also=BY_NAME, keep_metadata=True) as snapshot:
        waiting = _waits_for(snapshot)
        if waiting:
            return "", nothing, waiting
        plan = make_log_compaction_plan(snapshot, config)
        if not plan:
            return "", plan, few
        instant = new_instant(snapshot.timeline, context.table, now, table=storage.uri)
        path = instant_path(context.table, instant, LOG_COMPACTION, REQUESTED)
        context.check_lock()
        storage.create(path, plan.to_bytes())
        flush(storage, [path], written=False)
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
        if begun_elsewhere(context, pending):
            context.warnings.append(
                f"log compaction {pending.time} was begun by another program, which does not say whether it is alive; "
                f"if it is dead, roll it back: `hudi rollback PATH {pending.time}`"
            )
            continue
        if context.is_alive(pending):
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
    try:
        stats = tuple(s for s in run(begun.tasks) if s is not None)
        if context.options.consistency_check:
            consistency_guard.wait_for_files(context.storage, stats, context.options)
        _commit(context, begun, stats)
    except BaseException as e:
        _take_back(context, begun, e)
        raise
    try:
        markers.delete(context.storage, time)
        begun.beat.stop()
    except (StorageError, OSError) as e:
        begun.beat.give_up()
        context.warnings.append(f"leftovers of the completed log compaction {time} could not be removed: {e}")
    return stats


def _begin(
    context: ServiceContext, time: str, config: CompactionConfig, call: RunningCall, *, seen: bool
) -> _Begun | None:
    """Take a plan, after all checks; one of which nothing fits any more is withdrawn."""
    storage, options = context.storage, context.options
    with context.locked(also=BY_NAME, keep_metadata=True) as snapshot:
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
        if not fitting:
            context.check_lock()
            storage.delete(instant.path_in(REQUESTED))
            flush(storage, [instant.path_in(REQUESTED)], written=False)
            raise _withdrawn(
                storage.uri, time, "its slices were written to, or planned for something else, since"
            )
        tasks = make_log_tasks(snapshot, time, [s for _, s in fitting], config)
        heartbeat.delete(storage, time)  # of a process that died between this one and its inflight file
        beat = heartbeat.start(
            storage, time, options.heartbeat_interval_ms, options.heartbeat_misses, call=call
        )
        try:
            context.settle_metadata_table(snapshot)
            context.check_lock()
            storage.create(instant.path_in(INFLIGHT), b"")
        except FileExistsError:
            beat.stop()
            raise _taken_away(storage.uri, time, "its inflight file is there already") from None
        except BaseException:
            beat.stop()
            raise
    return _Begun(pending, tuple(o for o, _ in fitting), snapshot, tuple(tasks), beat)


def _withdrawn(table: str, time: str, why: str) -> WriteConflictError:
    return WriteConflictError(
        f"the plan of the log compaction is withdrawn: {why}", table=table, instant=time, remedy=_AGAIN
    )


def _taken_away(table: str, time: str, what: str) -> ConcurrentWriterError:
    return ConcurrentWriterError(
        f"this log compaction was rolled back, or completed, by another process: {what}",
        table=table,
        instant=time,
        remedy=_AGAIN,
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
    reserved = {*reserved_groups(snapshot, without=time), *planned_groups(storage, others)}
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


def _commit(context: ServiceContext, begun: _Begun, stats: Sequence[WriteStat]) -> None:
    storage, time = context.storage, begun.time
    with context.locked(also=BY_NAME, keep_metadata=True) as snapshot:
        _check_ours(context, begun, snapshot, stats)
        context.settle_metadata_table(snapshot)
        kept = {s.path for s in stats}
        for marker in markers.log_files(markers.list_markers(storage, time), time):
            if marker.path not in kept:
                storage.delete(marker.path)
                flush(storage, [marker.path], written=False)
        if storage.is_local:
            wait_for_next_tick(max((i.mtime_ms for i in snapshot.timeline.completed_writes()), default=0))
        metadata = _metadata(begun, stats)
        now = replace(snapshot, config=context.table)
        context.warnings += mirror_write(now, time, metadata, context.options.indexes).warnings
        content = metadata.to_json()
        context.check_lock()
        begun.beat.check()
        path = instant_path(context.table, time, DELTA_COMMIT, COMPLETED)
        try:
            storage.create(path, content)
        except (FileExistsError, StorageError) as e:
            # A store may report a failure after it has done the work.
            if not holds(context, path, content):
                if isinstance(e, StorageError):
                    raise
                raise _taken_away(storage.uri, time, "another completed file is there") from None
        flush(storage, [path], written=False)


def _metadata(begun: _Begun, stats: Sequence[WriteStat]) -> CommitMetadata:
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in stats:
        by_partition.setdefault(stat.partition, []).append(stat)
    return CommitMetadata(
        {p: tuple(of) for p, of in by_partition.items()},
        extra={**begun.pending.plan.extra, SCHEMA_KEY: stored_schema_text(begun.snapshot)},
        operation=LOG_COMPACT,
        compacted=True,
    )


def _check_ours(
    context: ServiceContext, begun: _Begun, snapshot: TableSnapshot, stats: Sequence[WriteStat]
) -> None:
    """Raise where the execution must not be completed, under the lock."""
    storage, time, timeline = context.storage, begun.time, snapshot.timeline
    begun.beat.check()
    lost = ""
    for state in (REQUESTED, INFLIGHT):
        if not timeline.has_file(file_name(time, LOG_COMPACTION, state)):
            lost = f"its {state.lower()} file is gone"
    if any(i.time == time and i.completed for i in timeline.completed_writes()):
        lost = "another process completed it"
    marked = {m.path for m in markers.list_markers(storage, time)}
    if any(s.path not in marked for s in stats):
        lost = "its markers are gone"
    if not lost and read_pending(storage, begun.pending.instant).data != begun.pending.data:
        lost = "its plan was changed"
    if lost:
        raise _taken_away(storage.uri, time, lost)
    before = begun.snapshot
    changes = Basis.of(before.config, before.timeline).changes(snapshot.config, timeline)
    writing = [i for i in open_writes(storage, timeline) if i.time != time]
    if changes.undone or changes.restores or changes.properties:
        raise changes.conflict(
            "the log blocks were merged for what was there before",
            table=storage.uri,
            instant=time,
            remedy=_AGAIN,
        )
    if writing or len(_fitting(snapshot, begun.operations, time)) < len(begun.operations):
        what = (
            f"{writing[0]} is at work"
            if writing
            else "its slices were written to, or planned for something else"
        )
        raise WriteConflictError(
            f"the log compaction gives way, as {what}", table=storage.uri, instant=time, remedy=_AGAIN
        )


def _take_back(context: ServiceContext, begun: _Begun, error: BaseException) -> None:
    """Roll a failed execution back with its plan; what cannot be done now is left to the next one."""
    storage, beat, time = context.storage, begun.beat, begun.time
    if not beat.is_own:  # a forked child that ends does not end what its parent does
        return
    log.info("%s: log compaction %s is rolled back: %r", storage.uri, time, error)
    try:
        with context.locked(while_restoring=True, keep_metadata=True) as snapshot:
            now = next((i for i in snapshot.timeline.instants if i.time == time), None)
            beat.check()  # else the files at this instant are another execution's
            if now is not None and now.completed:
                error.add_note(f"The log compaction itself is completed, and visible as {time}.")
            elif now is None:
                rollback_executor.remove_leftovers(storage, time)
            else:
                rollback_executor.rollback_instant(snapshot, now)
        beat.stop()
    except (HudiError, OSError) as e:
        beat.give_up()
        error.add_note(
            f"The failed log compaction {time} could not be rolled back at once ({e}); nothing of it is visible, and "
            "the next one does that."
        )
