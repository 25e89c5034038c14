"""Compaction service: schedules a plan, executes pending ones, or both.

    lock { plan -> <t>.compaction.requested }
    lock { checks, heartbeat, .compaction.inflight } -> new base files with markers, without the lock
    lock { still ours? files of other attempts deleted, <t>.commit } -> markers deleted, heartbeat ends

Writers go on meanwhile: what they append goes to the slice that the plan has begun.  Every step may be the last one of
a process.  An execution that dies, or fails, is rolled back: the plan is requested again, and is executed from the
start.  Nothing of it is visible before `<t>.commit`, and the files that it merges stay where they are.

Source: ScheduleCompactionActionExecutor, RunCompactionActionExecutor and HoodieCompactor of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from hudi_format.errors import UnsupportedError, WriteConflictError
from hudi_format.model import WriteStat
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.outlived_snapshot import looks_again
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.compaction_config import CompactionConfig, parse_compaction_options
from hudi_timeline.services.compaction.compaction_executor import execute
from hudi_timeline.services.compaction.compaction_planner import (
    is_due,
    make_compaction_plan,
    open_writes,
    reserved_groups,
)
from hudi_timeline.services.compaction.pending_plans import executable_slices, find_pending, read_pending
from hudi_timeline.services.compaction.plan_execution import HARMED
from hudi_timeline.services.compaction.slice_tasks import (
    Runner,
    make_tasks,
    run_on_threads,
    stored_schema_text,
)
from hudi_timeline.services.compaction.status import CompactionStatus, compaction_status
from hudi_timeline.services.table_service import (
    BOTH,
    EXECUTE,
    SCHEDULE,
    ServiceContext,
    check_mode,
    dry_run_looks_again,
)
from hudi_timeline.timeline.action_metadata import CompactionOperation, CompactionPlan
from hudi_timeline.timeline.instant import COMPACTION, INFLIGHT, Instant
from hudi_timeline.timeline.instant_generator import request_instant
from hudi_timeline.transaction.retries import waited_for
from hudi_timeline.transaction.rollback_guard import running_writes

log = logging.getLogger("hudi")


@dataclass(frozen=True)
class ScheduleResult(HtmlView):
    """Result of scheduling a compaction, or of its `dry_run`.

    Attributes:
        instant: of the plan; "" where nothing was written.
        plan: what it compacts.
        skipped: why nothing was planned, where that is so; one sentence.
    """

    instant: str
    plan: CompactionPlan
    skipped: str = ""


@dataclass(frozen=True)
class CompactionResult(HtmlView):
    """Result of a compaction, or of its `dry_run`.

    Attributes:
        scheduled: instant of the plan that was made; "" where none was.
        plan: what it compacts.
        executed: instants of the compactions that were completed, oldest first.
        write_stats: the new base files, by that instant.
        skipped: why nothing was planned, where that is so; one sentence.
        warnings: what the user should know, one sentence each.
        seconds: how long it took.
    """

    scheduled: str
    plan: CompactionPlan
    executed: tuple[str, ...] = ()
    write_stats: dict[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    skipped: str = ""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def __repr__(self) -> str:
        slices = len(self.plan.operations)
        planned = (
            f"{self.scheduled or 'not written'}: {slices:,} slices planned" if slices else "nothing planned"
        )
        files = sum(map(len, self.write_stats.values()))
        ran = f"{', '.join(self.executed)} executed, {files:,} files" if self.executed else "nothing executed"
        why = f" ({self.skipped})" if self.skipped else ""
        return f"CompactionResult({planned}{why}; {ran}; {self.seconds:.2f} s)"


@dry_run_looks_again
def compact(
    context: ServiceContext,
    config: CompactionConfig | None = None,
    *,
    mode: str = BOTH,
    plan: CompactionPlan | None = None,
    instant: str | None = None,
    seen: bool = False,
    only_if_due: bool = False,
    dry_run: bool = False,
    run: Runner | None = None,
    now: Callable[[], float] = time.time,
) -> CompactionResult:
    """Execute the pending compactions, then schedule one, and execute it too.

    Args:
        config: what the context's options say, if not given.
        mode: only one of the two: "schedule" or "execute".
        plan: an earlier dry run's; made anew if not given.
        instant: of the pending compaction to execute; all of them, oldest first, if not given.
        seen: the caller saw `instant` pending; where it is no more, that is a warning of the result.
        only_if_due: plan nothing before the trigger of the options fires.
        dry_run: give the plan and change nothing.
        run: runs the tasks of an execution; None for threads of this process.

    Raises:
        UnsupportedError: no merge-on-read table, one that would be harmed, or a plan of a newer version.
        CorruptFileError, MissingFileError: files of a plan are damaged or gone; the plan stays pending.
        ConcurrentWriterError: another process executes the plan, or took it back.
        WriteConflictError: the plan that was given does not fit the table any more.
        LockError, StorageError.
    """
    began = time.monotonic()
    check_mode(mode)
    if (plan is not None and mode == EXECUTE) or (instant is not None and mode != EXECUTE):
        raise ValueError("plan goes with scheduling, and instant with mode='execute'")
    refuse_copy_on_write(context)
    config = config or parse_compaction_options(context.options.raw)
    executed: dict[str, tuple[WriteStat, ...]] = {}
    if not dry_run and mode != SCHEDULE:
        times = [instant] if instant is not None else [i.time for i in _unbegun(context)]
        seen = seen or instant is None
        for time_ in times:
            stats = execute(context, time_, config, run=run or run_on_threads, seen=seen)
            if stats is not None:
                executed[time_] = stats
    elif dry_run and mode == EXECUTE:
        return replace(look_into(context, instant, config), seconds=time.monotonic() - began)
    made = ScheduleResult("", CompactionPlan())
    if mode != EXECUTE:
        made = schedule(context, config, plan=plan, only_if_due=only_if_due, dry_run=dry_run, now=now)
        if made.instant and mode == BOTH:
            stats = execute(context, made.instant, config, run=run or run_on_threads, seen=True)
            if stats is not None:
                executed[made.instant] = stats
    result = CompactionResult(
        made.instant,
        made.plan,
        tuple(executed),
        executed,
        made.skipped,
        tuple(context.warnings),
        time.monotonic() - began,
    )
    log.info("%s: %r", context.storage.uri, result)
    return result


@looks_again
def status(
    context: ServiceContext, config: CompactionConfig | None = None, *, now: Callable[[], float] = time.time
) -> CompactionStatus:
    """Status of compaction; errors as `compaction_status`, or not merge-on-read."""
    refuse_copy_on_write(context)
    config = config or parse_compaction_options(context.options.raw)
    return compaction_status(context.look(), config, context.clock(now))


def look_into(context: ServiceContext, instant: str | None, config: CompactionConfig) -> CompactionResult:
    """The plans that an execution would run, after its checks of them; errors as `compact`."""
    snapshot = context.look()
    pending = _unbegun(context) if instant is None else ()
    if instant is not None:
        pending = (find_pending(snapshot.timeline, instant, table=snapshot.storage.uri),)
    operations: list[CompactionOperation] = []
    if pending:
        context.check(snapshot, also=HARMED)
    for one in pending:
        found = read_pending(snapshot.storage, one)
        make_tasks(snapshot, one.time, executable_slices(snapshot, found), config)
        operations += found.plan.operations
    return CompactionResult(
        "",
        CompactionPlan(tuple(operations)),
        skipped="" if pending else "no plan is pending",
        warnings=tuple(context.warnings),
    )


def schedule(
    context: ServiceContext,
    config: CompactionConfig | None = None,
    *,
    plan: CompactionPlan | None = None,
    only_if_due: bool = False,
    dry_run: bool = False,
    now: Callable[[], float] = time.time,
) -> ScheduleResult:
    """Plan a compaction and put it on the timeline; arguments and errors as `compact`."""
    refuse_copy_on_write(context)
    config = config or parse_compaction_options(context.options.raw)
    if dry_run:
        snapshot = context.looked(also=HARMED)
        skipped = _skips(snapshot, config, only_if_due, context.clock(now))
        found = CompactionPlan() if skipped else plan or _plan(snapshot, config, context.clock(now))
        return ScheduleResult("", found, skipped or _nothing(found))
    with context.standing(first=_has_precedence(context, config, context.clock(now))) as standing:
        return waited_for(lambda: _schedule(context, config, plan, only_if_due, now, standing), 0)


def _schedule(
    context: ServiceContext,
    config: CompactionConfig,
    plan: CompactionPlan | None,
    only_if_due: bool,
    now: Callable[[], float],
    standing: Precedence,
) -> ScheduleResult:
    """One try to plan under the lock.

    Raises:
        ConcurrentWriterError: with precedence, it waits for open writes.
    """
    storage = context.storage
    with context.locked(also=HARMED, keep_metadata=True) as snapshot:
        marked, beating = markers.list_instants(storage), heartbeat.list_instants(storage)
        if marked or beating:  # left by an execution that died right after its commit
            snapshot = snapshot.reloaded()
            context.sweep(snapshot.timeline, marked, beating)
        clock = context.clock(now)
        if standing.is_first and not (only_if_due and not is_due(snapshot.timeline, config, clock).is_due):
            standing.give_way(True, lambda: running_writes(snapshot, context.options))
        skipped = _skips(snapshot, config, only_if_due, clock)
        if skipped:
            log.info("%s: no compaction is scheduled: %s", storage.uri, skipped)
            return ScheduleResult("", CompactionPlan(), skipped)
        if plan is None:
            plan = _plan(snapshot, config, clock)
        else:
            _refuse_stale(snapshot, plan, config, clock)
        if not plan:
            return ScheduleResult("", plan, _nothing(plan))
        context.check_lock()
        instant = request_instant(storage, snapshot.timeline, context.table, COMPACTION, plan.to_bytes(), now)
    log.info("%s: compaction %s of %d slices is scheduled", storage.uri, instant, len(plan.operations))
    return ScheduleResult(instant, plan)


def _has_precedence(context: ServiceContext, config: CompactionConfig, clock: datetime) -> bool:
    """Whether writes kept a compaction from being planned at so many commits that they are to wait for it."""
    patience = context.patience
    if patience is None:
        return False
    due = is_due(context.look().timeline, config, clock)
    return due.is_due and due.delta_commits >= config.delta_commits + patience


def refuse_copy_on_write(context: ServiceContext) -> None:
    """Raise UnsupportedError for a table without log files."""
    if context.table.table_type != "MERGE_ON_READ":
        raise UnsupportedError(
            "a copy-on-write table has no log files to compact",
            table=context.storage.uri,
            remedy="leave it out: each of its writes makes whole base files.",
        )


def begun_elsewhere(context: ServiceContext, pending: Instant, warnings: list[str] | None = None) -> bool:
    """Whether a compaction was begun by another program, which does not say whether it is alive.

    Run beside it, its files would be taken away, and its commit could name them all the same.

    Args:
        warnings: get a sentence with the way out.
    """
    if pending.state != INFLIGHT or pending.time in heartbeat.list_instants(context.storage):
        return False
    name, way = (
        ("compaction", f"run it: `hudi compact run PATH {pending.time}`")
        if pending.action == COMPACTION
        else ("log compaction", f"roll it back: `hudi rollback PATH {pending.time}`")
    )
    if warnings is not None:
        warnings.append(
            f"{name} {pending.time} was begun by another program, which does not say whether it is alive; "
            f"if it is dead, {way}"
        )
    return True


def _unbegun(context: ServiceContext) -> tuple[Instant, ...]:
    """Pending compactions but those of other programs, of which the context gets warnings."""
    pending = context.look().timeline.pending(COMPACTION)
    return tuple(i for i in pending if not begun_elsewhere(context, i, context.warnings))


def _skips(snapshot: TableSnapshot, config: CompactionConfig, only_if_due: bool, clock: datetime) -> str:
    """Why nothing is to be planned now; "" where that may be done."""
    if only_if_due:
        due = is_due(snapshot.timeline, config, clock)
        if not due.is_due:
            return f"it is not due: {due}"
    earlier = open_writes(snapshot.storage, snapshot.timeline)
    if earlier:
        return (
            f"the write {earlier[0].time} is not completed, and what it appends to a slice could be missed; "
            "schedule it again afterwards, or roll back the write if its writer is dead"
        )
    return ""


def _nothing(plan: CompactionPlan) -> str:
    return "" if plan else "no file slice has log files to compact by the strategy"


def _plan(snapshot: TableSnapshot, config: CompactionConfig, clock: datetime) -> CompactionPlan:
    stored_schema_text(snapshot)  # what could not be executed is not planned
    return make_compaction_plan(snapshot, config, now=clock)


def _refuse_stale(
    snapshot: TableSnapshot, plan: CompactionPlan, config: CompactionConfig, clock: datetime
) -> None:
    """Raise WriteConflictError where a plan is not of the newest slices any more."""
    wide = replace(config, strategies=(), partition_regex=None)
    now = {(o.partition, o.file_id): o for o in _plan(snapshot, wide, clock).operations}
    for operation in plan.operations:
        found = now.get((operation.partition, operation.file_id))
        same = found is not None and (found.data_file, found.log_files) == (
            operation.data_file,
            operation.log_files,
        )
        if not same:
            taken = (operation.partition, operation.file_id) in reserved_groups(snapshot)
            why = "is in another pending plan" if taken else "has other files than when the plan was made"
            raise WriteConflictError(
                f"the file group {operation.file_id} {why}",
                table=snapshot.storage.uri,
                remedy="make the plan anew.",
                file_groups=[f"{operation.partition or '.'}/{operation.file_id}"],
            )
