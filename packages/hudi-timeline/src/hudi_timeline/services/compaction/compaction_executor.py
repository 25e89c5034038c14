"""Execution of a compaction plan: begun and completed under the lock, run without it.

A process that executes a plan has a heartbeat at the plan's instant, so that no two execute it at a time.  One that was
taken for dead finds its heartbeat, its inflight file or its markers gone, and completes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hudi_format.errors import ConcurrentWriterError, HudiError, StorageError
from hudi_format.model import WriteStat
from hudi_format.storage.open import flush
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.concurrency.heartbeat import Heartbeat
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import with_history
from hudi_timeline.metadata_table.mirror import mirror_write
from hudi_timeline.options.compaction_config import CompactionConfig
from hudi_timeline.services.compaction.pending_plans import (
    PendingPlan,
    find_pending,
    planned_slices,
    read_pending,
    refuse_misfit,
    refuse_overtaken,
    warns_of_done,
)
from hudi_timeline.services.compaction.slice_tasks import (
    CompactionTask,
    Runner,
    make_tasks,
    run_on_threads,
    stored_schema_text,
)
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.commit_metadata import COMPACT, SCHEMA_KEY, CommitMetadata
from hudi_timeline.timeline.instant import (
    COMMIT,
    COMPACTION,
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    ROLLBACK,
    Instant,
    file_name,
    instant_path,
)
from hudi_timeline.timeline.instant_generator import wait_for_next_tick
from hudi_timeline.transaction import consistency_guard, rollback_executor, schema_history
from hudi_timeline.transaction.rollback_guard import refuse_alive
from hudi_timeline.transaction.rollback_plan import read_plan, target_of
from hudi_timeline.transaction.schema_history import refuse_older_than_history
from hudi_timeline.transaction.write_basis import Basis

log = logging.getLogger("hudi")

HARMED = ("base file format", "bootstrap")
"""Features of the gate that new base files would harm, and services that make none leave alone."""
BY_NAME = (*HARMED, "schema on read")
"""And that go by the names of columns, where files have others of an earlier version."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A plan that this process executes."""

    pending: PendingPlan
    snapshot: TableSnapshot
    tasks: tuple[CompactionTask, ...]
    beat: Heartbeat

    @property
    def time(self) -> str:
        return self.pending.time


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
    try:
        stats = tuple(s for s in run(begun.tasks) if s is not None)
        if context.options.consistency_check:
            consistency_guard.wait_for_files(context.storage, stats, context.options)
        _commit(context, begun, stats)
    except BaseException as e:
        _give_back(context, begun, e)
        raise
    try:
        markers.delete(context.storage, time)
        begun.beat.stop()
    except (StorageError, OSError) as e:
        begun.beat.give_up()
        context.warnings.append(f"leftovers of the completed compaction {time} could not be removed: {e}")
    return stats


def _begin(
    context: ServiceContext, time: str, config: CompactionConfig, call: RunningCall, *, seen: bool
) -> _Begun | None:
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
        refuse_overtaken(snapshot, pending)
        listing = list_partition_files(storage, {o.partition for o in pending.plan.operations})
        slices = planned_slices(pending, listing, table=storage.uri)
        refuse_misfit(snapshot, pending)
        refuse_older_than_history(snapshot, time)
        tasks = make_tasks(with_history(snapshot, None), time, slices, config)
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
    return _Begun(pending, snapshot, tuple(tasks), beat)


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


def _commit(context: ServiceContext, begun: _Begun, stats: Sequence[WriteStat]) -> None:
    storage, time = context.storage, begun.time
    with context.locked(also=HARMED, keep_metadata=True) as snapshot:
        _check_ours(context, begun, snapshot, stats)
        context.settle_metadata_table(snapshot)
        kept = {s.path for s in stats}
        for marker in markers.own_files(markers.list_markers(storage, time), time):
            if marker.path not in kept:
                storage.delete(marker.path)
                flush(storage, [marker.path], written=False)
        if storage.is_local:
            wait_for_next_tick(max((i.mtime_ms for i in snapshot.timeline.completed_writes()), default=0))
        refuse_older_than_history(snapshot, time)
        metadata = compaction_metadata(begun.snapshot, begun.pending, stats)
        now = replace(snapshot, config=context.table)
        metadata, history = schema_history.continued(now, time, metadata)
        for file in history:
            file.store()
        context.warnings += mirror_write(now, time, metadata, context.options.indexes).warnings
        content = metadata.to_json()
        context.check_lock()
        begun.beat.check()
        path = instant_path(context.table, time, COMMIT, COMPLETED)
        try:
            storage.create(path, content)
        except (FileExistsError, StorageError) as e:
            # A store may report a failure after it has done the work.
            if not holds(context, path, content):
                if isinstance(e, StorageError):
                    raise
                raise _taken_away(storage.uri, time, "another completed file is there") from None
        flush(storage, [path], written=False)


def holds(context: ServiceContext, path: str, content: bytes) -> bool:
    """Whether a file has this content, after its creation was reported as failed."""
    try:
        return context.storage.read(path) == content
    except (FileNotFoundError, StorageError):
        return False


def _check_ours(
    context: ServiceContext, begun: _Begun, snapshot: TableSnapshot, stats: Sequence[WriteStat]
) -> None:
    """Raise where the execution must not be completed, under the lock."""
    storage, time, timeline = context.storage, begun.time, snapshot.timeline
    begun.beat.check()
    for state in (REQUESTED, INFLIGHT):
        if not timeline.has_file(file_name(time, COMPACTION, state)):
            raise _taken_away(storage.uri, time, f"its {state.lower()} file is gone")
    if any(i.time == time and i.completed for i in timeline.completed_writes()):
        raise _taken_away(storage.uri, time, "another process completed it")
    if read_pending(storage, begun.pending.instant).data != begun.pending.data:
        raise _taken_away(storage.uri, time, "its plan was changed")
    marked = {m.path for m in markers.list_markers(storage, time)}
    if any(s.path not in marked for s in stats):
        raise _taken_away(storage.uri, time, "its markers are gone")
    before = begun.snapshot
    changes = Basis.of(before.config, before.timeline).changes(snapshot.config, timeline)
    earlier = tuple(i.time for i in changes.written if i.time < time)
    if changes.undone or changes.restores or changes.properties or earlier:
        raise changes.conflict(
            "the files were merged for what was there before; the plan is still there",
            table=storage.uri,
            instant=time,
            remedy="run the compaction again.",
        )
    refuse_overtaken(snapshot, begun.pending)


def compaction_metadata(
    snapshot: TableSnapshot, pending: PendingPlan, stats: Sequence[WriteStat]
) -> CommitMetadata:
    """Metadata of a completed compaction, with the table's schema and the entries of the plan."""
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in stats:
        by_partition.setdefault(stat.partition, []).append(stat)
    return CommitMetadata(
        {p: tuple(of) for p, of in by_partition.items()},
        extra={**pending.plan.extra, SCHEMA_KEY: stored_schema_text(snapshot)},
        operation=COMPACT,
        compacted=True,
    )


def _give_back(context: ServiceContext, begun: _Begun, error: BaseException) -> None:
    """Roll a failed execution back to its plan; what cannot be done now is left to the next one."""
    storage, beat, time = context.storage, begun.beat, begun.time
    if not beat.is_own:  # a forked child that ends does not end what its parent does
        return
    log.info("%s: compaction %s is rolled back to its plan: %r", storage.uri, time, error)
    try:
        with context.locked(while_restoring=True, keep_metadata=True) as snapshot:
            now = next((i for i in snapshot.timeline.instants if i.time == time), None)
            beat.check()  # else the files at this instant are another execution's
            if now is not None and now.completed:
                error.add_note(f"The compaction itself is completed, and visible as {time}.")
            elif now is None:
                rollback_executor.remove_leftovers(storage, time)
            elif now.state == INFLIGHT:
                rollback_executor.rollback_instant(snapshot, now)
        beat.stop()
    except (HudiError, OSError) as e:
        beat.give_up()
        error.add_note(
            f"The failed compaction {time} could not be rolled back at once ({e}); nothing of it is visible, and the "
            "next execution of the plan does that."
        )


def _taken_away(table: str, time: str, what: str) -> ConcurrentWriterError:
    return ConcurrentWriterError(
        f"this compaction was rolled back, or completed, by another process: {what}",
        table=table,
        instant=time,
        remedy="look at the timeline; where the plan is still pending, run it again.",
    )
