"""Lock doctor: the holder of a table's lock, and the end of a lock that is left over.

Whoever loses a lock notices before its commit is published, so that ending one by mistake costs a write, not the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from hudi_format.errors import LockError
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.holding import Holding, ShownLock, is_dead
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.options.transaction_options import LOCK_PROVIDER
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.transaction.transaction import LOCK_NOTE

_COMMITS = 20  # the newest, whose locks are compared


@dataclass(frozen=True, slots=True)
class LockReport(HtmlView):
    """State of a table's lock.

    Attributes:
        lock: what is locked, where.
        holding: None for a lock that is free.
        alive: whether its holder is at work; None where that cannot be told.
        why: of `alive`, in words.
        age_ms: since it was acquired; None where that is not told.
        instants: pending writes of the holder's process.
        others: locks that newest commits were made under and that are not this one, with the instant of the newest
            commit under each; writers with different locks do not see each other.
    """

    lock: str
    holding: Holding | None
    alive: bool | None
    why: str
    age_ms: int | None
    instants: tuple[str, ...]
    others: dict[str, str]

    @property
    def host(self) -> str:
        """Machine of the holder, where it is told."""
        process = None if self.holding is None else self.holding.process
        return "" if process is None else process.host


def lock_report(context: ServiceContext, *, now: Callable[[], float] = time.time) -> LockReport:
    """State of the table's lock by the provider that the options choose.

    Raises:
        LockError: the lock cannot be looked at.
    """
    lock = _shown(context)
    try:
        holding = lock.holding()
    finally:
        context.lock.lock.release()  # it is not held: ends the connection to a server
    name = context.lock.lock.name
    if holding is None:
        return LockReport(name, None, None, "nobody holds it", None, (), _others(context, name))
    instants = _instants(context, holding)
    alive, why = _liveness(context, holding, instants, int(now() * 1000))
    since = holding.since_ms
    age_ms = None if since is None else max(int(now() * 1000) - since, 0)
    return LockReport(name, holding, alive, why, age_ms, instants, _others(context, name))


def break_lock(context: ServiceContext, *, force: bool = False) -> LockReport:
    """End the holding of the table's lock; returns what was there.

    Args:
        force: also where the holder is alive, or where that cannot be told.

    Raises:
        LockError: the holder is alive; or this kind of lock is not ended from outside; or another one has the lock now.
    """
    report = lock_report(context)
    holding = report.holding
    if holding is None:
        return report
    if not force and report.alive is not False:
        raise LockError(
            f"{report.lock} is held by {holding.holder or 'a writer without a name'}: {report.why}",
            table=context.storage.uri,
            remedy="end that writer first; with force=True (on the command line --force) its lock is taken away, and "
            "its write fails before it is published.",
        )
    try:
        ended = _shown(context).end_holding(holding.token)
    finally:
        context.lock.lock.release()
    if not ended:
        raise LockError(
            f"{report.lock} has changed hands meanwhile, and was left as it is",
            table=context.storage.uri,
            remedy="look at it again.",
        )
    return report


def _shown(context: ServiceContext) -> ShownLock:
    lock = context.lock.lock
    if not isinstance(lock, ShownLock):
        raise LockError(
            f"{lock.name} does not show who holds it",
            table=context.storage.uri,
            remedy=f"the class of {LOCK_PROVIDER} needs the methods holding and end_holding.",
        )
    return lock


def _instants(context: ServiceContext, holding: Holding) -> tuple[str, ...]:
    """Pending writes of the process that holds the lock."""
    process = holding.process
    if process is None:
        return ()
    found = []
    for instant in heartbeat.list_instants(context.storage):
        owner = heartbeat.liveness(context.storage, instant).owner
        if owner is not None and owner.text() == process.text():
            found.append(instant)
    return tuple(found)


def _liveness(
    context: ServiceContext, holding: Holding, instants: tuple[str, ...], now_ms: int
) -> tuple[bool | None, str]:
    process = holding.process
    if process is not None and is_dead(process):
        return False, f"process {process.pid} on {process.host} has ended"
    if holding.expires_ms is not None and holding.expires_ms < now_ms:
        return False, f"it has run out {(now_ms - holding.expires_ms) // 1000} s ago"
    if process is None:
        return None, "its writer does not say which process it is"
    for instant in instants:
        found = heartbeat.liveness(context.storage, instant, *context.options.beats)
        if found.alive:
            return True, f"its write {instant} is alive: {found.reason}"
    here = heartbeat.this_process()
    if (process.boot, process.namespace) == (here.boot, here.namespace) and process.boot:
        return True, f"process {process.pid} runs on this machine"
    return None, f"process {process.pid} is on {process.host}, and has no write with a heartbeat"


def _others(context: ServiceContext, name: str) -> dict[str, str]:
    snapshot = context.look()
    found: dict[str, str] = {}
    for instant in snapshot.instants[-_COMMITS:]:
        note = snapshot.commits.get(instant).extra.get(LOCK_NOTE, "")
        if note and note != name:
            found[note] = instant.time
    return found
