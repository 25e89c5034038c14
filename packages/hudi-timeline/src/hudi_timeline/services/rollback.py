"""Rollback service: for one write or compaction, or for all dead writes.

What happens in which order stands in `hudi_timeline.transaction.rollback_executor`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from hudi_format.errors import InstantNotFoundError
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.file_slices import newest_slices
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.services.pending_cleans import paths_of, take_back
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.action_metadata import RollbackPlan
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering
from hudi_timeline.timeline.instant import ROLLBACK, WRITE_ACTIONS, Instant
from hudi_timeline.transaction import rollback_executor
from hudi_timeline.transaction.rollback_guard import (
    dead_log_compactions,
    refuse_alive,
    refuse_needed,
    refuse_written_to,
)
from hudi_timeline.transaction.rollback_plan import check_plan, make_rollback_plan, read_plan, target_of

log = logging.getLogger("hudi")


@dataclass(frozen=True)
class RollbackResult(HtmlView):
    """Result of a rollback, or of its `dry_run`.

    Attributes:
        undone: instants that are no more, newest first.
        plans: what undoing each of them takes, in the same order.
        instants: the rollbacks' own instant times, in the same order; () of a dry run.
        finished: rollbacks that an earlier process had begun, and this one finished.
        files: data files that are deleted.
        blocks: slices whose log gets a command block.
        seconds: how long it took.
    """

    undone: tuple[str, ...]
    plans: tuple[RollbackPlan, ...]
    instants: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    files: int = 0
    blocks: int = 0
    seconds: float = 0.0

    def __repr__(self) -> str:
        what = ", ".join(self.undone) or "nothing"
        done = f"{self.seconds:.2f} s" if self.instants or self.finished else "not executed"
        return f"RollbackResult({what}: {self.files:,} files deleted, {self.blocks:,} command blocks; {done})"


def rollback(
    context: ServiceContext,
    instant: str | None,
    *,
    dry_run: bool = False,
    now: Callable[[], float] = time.time,
) -> RollbackResult:
    """Roll back a write or inflight compaction; without instant, all dead pending writes.

    Raises:
        InstantNotFoundError: the active timeline has no such instant.
        ConcurrentWriterError: its writer is alive.
        OptionError, UnsupportedError, MissingFileError: others depend on it, see `rollback_guard`.
    """
    began = time.monotonic()
    storage = context.storage
    if dry_run:
        snapshot = context.look()
        plans = []
        targets = _targets(context, snapshot.timeline, instant)
        for target in targets:
            _check(context, snapshot, target)
            plans.append(_plan(snapshot, target))
        return _result(targets, plans, seconds=time.monotonic() - began)
    done: list[str] = []
    with context.locked() as snapshot:
        marked, beating = markers.list_instants(storage), heartbeat.list_instants(storage)
        if marked or beating:
            # The timeline is looked at after them: what a writer without our lock began had its instant before that.
            snapshot = snapshot.reloaded()
        snapshot = rollback_executor.withdraw_overtaken(snapshot, going=instant or "")
        targets = _targets(context, snapshot.timeline, instant)
        for target in targets:
            _check(context, snapshot, target)
            if target.completed:
                _keep_state_before(snapshot, target)
        plans = []
        for target in targets:
            plans.append(_plan(snapshot, target))
            done.append(rollback_executor.rollback_instant(snapshot, target, plan=plans[-1], now=now))
            snapshot = snapshot.reloaded()
        finished: list[str] = []
        if instant is None:
            finished = [i.time for i in snapshot.timeline.pending(ROLLBACK)]
            snapshot = rollback_executor.finish_pending(snapshot)
        context.sweep(snapshot.timeline, marked, beating)
    result = _result(targets, plans, tuple(done), tuple(finished), time.monotonic() - began)
    log.info("%s: %r", storage.uri, result)
    return result


def _targets(context: ServiceContext, timeline: Timeline, instant: str | None) -> list[Instant]:
    storage = context.storage
    if instant is None:
        beating = heartbeat.list_instants(storage)
        return [
            *dead_log_compactions(storage, timeline, context.options, beating),
            *(
                i for i in reversed(timeline.pending_writes())
                if not is_clustering(storage, timeline, i) and not context.is_alive(i)
            ),
        ]  # fmt: skip
    found = [i for i in timeline.instants if i.time == instant]
    found.sort(key=lambda i: i.action not in WRITE_ACTIONS)
    if not found:
        raise InstantNotFoundError(
            f"the active timeline has no instant {instant or repr(instant)}",
            table=storage.uri,
            instant=instant,
            remedy="`hudi timeline PATH`, or inspect.timeline() of the table, lists them; what was archived cannot be "
            "rolled back.",
        )
    return found[:1]


def _check(context: ServiceContext, snapshot: TableSnapshot, target: Instant) -> None:
    """Refuse an invalid rollback before anything is written."""
    rollback_executor.refuse_kind(context.storage, target)
    if target.completed:
        refuse_needed(snapshot, target)
    else:
        refuse_alive(context.storage, target, context.options)
        refuse_written_to(snapshot, target)


def _keep_state_before(snapshot: TableSnapshot, target: Instant) -> None:
    """Take back cleanings that would delete files of the state before a write."""
    before = snapshot.timeline.with_files(f for f in snapshot.timeline.files if f.time != target.time)
    needed = paths_of(newest_slices(snapshot.with_timeline(before)))
    take_back(snapshot.storage, snapshot.timeline, needed, by="rollback")


def _plan(snapshot: TableSnapshot, target: Instant) -> RollbackPlan:
    plan = None
    for pending in snapshot.timeline.pending(ROLLBACK):
        found = read_plan(snapshot.storage, pending)
        if found is not None and target_of(found).time == target.time:
            plan = found
    plan = plan or make_rollback_plan(snapshot.storage, snapshot.timeline, target)
    check_plan(plan)
    return plan


def _result(
    targets: list[Instant],
    plans: list[RollbackPlan],
    instants: tuple[str, ...] = (),
    finished: tuple[str, ...] = (),
    seconds: float = 0.0,
) -> RollbackResult:
    requests = [r for p in plans for r in p.requests]
    return RollbackResult(
        tuple(t.time for t in targets),
        tuple(plans),
        instants,
        finished,
        sum(len(r.files) for r in requests),
        len({(r.partition, r.file_id, r.base_instant) for r in requests if r.log_blocks}),
        seconds,
    )
