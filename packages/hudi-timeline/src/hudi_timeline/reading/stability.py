"""Whether a scan's result is final, and which pending commits prevent it.

A commit that is open when a table is read may be completed later, with a time that lies within what was read.  The
same question would then have another answer, and a reader that went on from there would miss its rows.

Source: RFC-22, "Incremental reads".
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from hudi_format.fork_safe import ProcessLock
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency.heartbeat import liveness
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.timeline.active_timeline import Timeline, completed_at, is_clustering
from hudi_timeline.timeline.instant import Instant, format_instant, zone_of

# A second is over by then, whatever the clock here says: what was listed was written before.  What is stamped at the
# begin of a request may show up at its end.
_OVER_S = 1.5
# By how much the clock here may be ahead of the store's.
_AHEAD_S = 2.0


@dataclass(frozen=True, slots=True)
class OpenWrite:
    """A pending write.

    Attributes:
        instant, action, state: of the timeline.
        alive: whether its writer is at work, by its heartbeat.
        heartbeat_age_s: seconds since the last one; None where it has none.
        owner: host and process, "" where nobody said.
        why: why it counts as alive or dead.
    """

    instant: str
    action: str
    state: str
    alive: bool
    heartbeat_age_s: float | None
    owner: str
    why: str

    def __str__(self) -> str:
        by = f" by {self.owner}" if self.owner else ""
        return f"the {self.action} {self.instant} is {self.state.lower()}{by}: {self.why}"


@dataclass(frozen=True, slots=True)
class Stability:
    """Whether a query's result is final.

    Attributes:
        stable: it cannot; cleaning apart, after which it has no answer.
        upto: the time up to which the answer is final: an instant, of reads by completion a time of completion.
        changed_by: the open writes that would change it.
        reason: in words, "" where it is stable.
    """

    stable: bool
    upto: str
    changed_by: tuple[OpenWrite, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        return f"final up to {self.upto}" if self.stable else f"not final: {self.reason}"


class _Source(Protocol):
    """Required attributes of a scan's source."""

    @property
    def snapshot(self) -> TableSnapshot: ...

    @property
    def bounds(self) -> tuple[str, str, bool]: ...


def open_writes(
    storage: Storage, timeline: Timeline, *, since: str = "", until: str = "~"
) -> tuple[OpenWrite, ...]:
    """Pending writes in (since, until], oldest first, without clusterings, which change no rows."""
    found = (
        i
        for i in timeline.pending_writes()
        if since < i.time <= until and not is_clustering(storage, timeline, i)
    )
    return tuple(_described(storage, i) for i in found)


def _described(storage: Storage, instant: Instant) -> OpenWrite:
    seen = liveness(storage, instant.time)
    return OpenWrite(
        instant.time,
        instant.action,
        instant.state,
        seen.alive,
        None if seen.age_ms is None else seen.age_ms / 1000,
        seen.process,
        seen.reason,
    )


def stability_of(source: _Source) -> Stability:
    """Stability of a scan."""
    snapshot = source.snapshot
    since, until, by_completion = source.bounds
    zone = zone_of(snapshot.config.timezone)
    now = format_instant(datetime.fromtimestamp(time.time(), zone))
    if until > now and until.isdigit():
        return Stability(False, min(until, now), (), f"{until} lies in the future")
    if by_completion:
        # What is completed from now on is completed later than anything that was read.
        return Stability(True, until)
    blocking = open_writes(snapshot.storage, snapshot.timeline, since=since, until=until)
    if not blocking:
        return Stability(True, until)
    final = max((i.time for i in snapshot.instants if i.time < blocking[0].instant), default=since)
    return Stability(False, final, blocking, "; ".join(str(b) for b in blocking))


def settled(
    snapshot: TableSnapshot,
    end: str | None,
    *,
    now: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[TableSnapshot, str | None]:
    """The table, and an end in the order of completion up to which no commit can turn up.

    Before table version 8 the modification time of a commit's file is its time of completion, and some stores, S3 among
    them, tell whole seconds: of two commits in one second a reader that came between them would take the second one for
    read.  So where the newest one is of this second, this waits and looks again; what was completed meanwhile, after
    that second, is of the next read.

    Args:
        end: of the range, in times of completion; None for the newest commit.
    """
    writes = snapshot.timeline.completed_writes()
    if not writes or any(i.completion or not i.mtime_ms or i.mtime_ms % 1000 for i in writes):
        return snapshot, end
    newest = max(writes, key=lambda i: i.mtime_ms)
    last = completed_at(newest, zone_of(snapshot.config.timezone))
    if (end is not None and end < last) or now() - newest.mtime_ms / 1000 > _OVER_S + _AHEAD_S:
        return snapshot, end
    pause(_OVER_S)
    snapshot = snapshot.reloaded()
    if all(i.mtime_ms <= newest.mtime_ms for i in snapshot.timeline.completed_writes()):
        return snapshot, end
    return snapshot, last


# Which states of which tables reads of this process stand for, so that the cleaner leaves their files alone.
#
# A read counts from when it is made until the object is dropped.


class Read(Protocol):
    """A read with its table's URI, its snapshot and the instant of it ("" before the first)."""

    @property
    def table_uri(self) -> str: ...

    @property
    def as_of(self) -> str: ...

    @property
    def snapshot(self) -> TableSnapshot: ...


_open: weakref.WeakSet[Read] = weakref.WeakSet()
_lock = ProcessLock()


def register_read(read: Read) -> None:
    """Register a read for the lifetime of the object."""
    with _lock.threads:
        _open.add(read)


def instants(table_uri: str, commits: Sequence[Instant]) -> list[str]:
    """Times up to which a table's registered reads count all commits.

    That is before the instant of the snapshot where an older one was completed since.

    Args:
        commits: the completed writes now, oldest first.
    """
    with _lock.threads:
        reads = [r for r in _open if r.table_uri == table_uri and r.as_of]
    return [_whole_until(r, commits) for r in reads]


def _whole_until(read: Read, commits: Sequence[Instant]) -> str:
    seen = {i.time for i in read.snapshot.instants}
    late = next((i.time for i in commits if i.time not in seen), None)
    if late is None or late > read.as_of:
        return read.as_of
    return str(int(late) - 1).zfill(len(late))  # not of a clock, but before it as text
