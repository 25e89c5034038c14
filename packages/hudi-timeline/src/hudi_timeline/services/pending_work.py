"""Pending instants of a table: whether someone is at work on each, and what ends it.

A process that was killed leaves its instant pending.  No row of it is visible, and most of it the next write takes away
by itself; an operator who meets it wants to know which of the two it is, and the call that does it now.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from hudi_timeline.concurrency import heartbeat
from hudi_timeline.file_system_view.restores import restored_to
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering, resizes_buckets
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMPACTION,
    INDEXING,
    LOG_COMPACTION,
    REQUESTED,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    Instant,
)

_PLANNED = {CLEAN, COMPACTION, INDEXING, LOG_COMPACTION}


@dataclass(frozen=True, slots=True)
class PendingWork:
    """A pending instant.

    Attributes:
        instant: the instant.
        alive: whether its process is at work, by its heartbeat.
        why: of `alive`, in words; "" of a plan that nobody has begun.
        way: what ends it, in one sentence with the command, if its process is gone.
    """

    instant: Instant
    alive: bool
    why: str
    way: str

    def __str__(self) -> str:
        if self.alive:
            return f"{self.instant}: at work ({self.why})"
        return f"{self.instant}: {f'left behind ({self.why})' if self.why else 'planned'}; {self.way}"


def pending_work(context: ServiceContext) -> Iterator[PendingWork]:
    """The table's pending instants, oldest first.

    Raises:
        StorageError: the timeline or a heartbeat cannot be looked at.
    """
    timeline = context.look().timeline
    for instant in timeline.instants:
        if instant.completed:
            continue
        seen = heartbeat.liveness(context.storage, instant.time)
        planned = instant.state == REQUESTED and (
            instant.action in _PLANNED or is_clustering(context.storage, timeline, instant)
        )
        way = _undone_by_restore(timeline, instant) or _way(context, timeline, instant)
        yield PendingWork(instant, seen.alive, "" if planned and not seen.alive else seen.reason, way)


def _undone_by_restore(timeline: Timeline, instant: Instant) -> str:
    """What ends an instant that a pending restore undoes: nothing else can be run before it."""
    restores = timeline.pending(RESTORE)
    return "the pending restore takes it away" if restores and instant not in restores else ""


def _way(context: ServiceContext, timeline: Timeline, instant: Instant) -> str:
    path = shlex.quote(context.storage.uri)
    action = instant.action
    if action == RESTORE:
        to = restored_to(context.storage, instant) or "INSTANT"
        return f"no write is taken before it is done: `hudi restore {path} {to} -y` goes on with it"
    if action == ROLLBACK:
        return f"the next write finishes it, or now `hudi rollback {path}`"
    if action == CLEAN:
        return f"the next cleaning finishes it, or now `hudi clean {path} --instant {instant.time}`"
    if action == COMPACTION:
        return f"the next compaction does it, or now `hudi compact run {path} {instant.time}`"
    if action == INDEXING:
        return f"`hudi index run {path} --pending` does it"
    if action == SAVEPOINT:
        return f"it protects nothing: `hudi savepoint create {path} {instant.time}` makes it anew"
    if action == LOG_COMPACTION and instant.state == REQUESTED:
        return "Apache Hudi, which planned it, does it; nothing waits for it here"
    if is_clustering(context.storage, timeline, instant):
        if resizes_buckets(context.storage, instant):
            return f"`hudi buckets resize {path} --pending` does it"
        return "Apache Hudi, which planned the clustering, does it"
    return f"readers see no row of it, and the next write takes it away, or now `hudi rollback {path}`"
