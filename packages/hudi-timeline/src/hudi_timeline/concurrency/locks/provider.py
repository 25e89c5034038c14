"""Lock protocol of a table, and waiting for a lock."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hudi_format.errors import LockError
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.holding import Holding
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.options.transaction_options import LOCK_CLIENT_RETRIES, LOCK_WAIT_MS

log = logging.getLogger("hudi")

# Critical sections take milliseconds to seconds: look again soon, then less often.
_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.25
# How long one wait for a turn in a queue lasts, after which the lock is asked again.
_LONGEST_TURN_S = 1.0

DEFAULT_WAIT_MS: int = LOCK_WAIT_MS.value

# What blocks of this process hold or are about to, so that it can be given back for one that an interrupt kept from
# doing so.
_held: dict[int, tuple[Lock, RunningCall, int]] = {}


class Lock(Protocol):
    """One process's handle on a table's lock; not re-entrant.

    `release` may come at any time, also after an interrupt in the middle of `try_acquire` or `release`.  It also gives
    up the place in a queue that a `try_acquire` may keep that did not get the lock.
    """

    @property
    def name(self) -> str:
        """Name of the locked resource, for messages."""
        ...

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free.

        Raises:
            LockError: this thread holds it already, or the lock cannot work here.
        """
        ...

    def verify(self) -> None:
        """Check that this holder still has the lock.

        Raises:
            LockError: it was lost.
        """
        ...

    def release(self) -> None:
        """Release the lock; does nothing where it is not held."""
        ...

    def holder(self) -> str:
        """Presumed holder of the lock, for messages; "" where it is unknown."""
        ...


@runtime_checkable
class QueuedLock(Lock, Protocol):
    """A lock whose waiters stand in a queue: nobody holds it while the next of them sleeps."""

    def wait_for_turn(self, seconds: float) -> None:
        """Wait until the lock may be this handle's, at most so long.

        Raises:
            LockError: the lock cannot work here.
        """
        ...


@contextmanager
def hold(
    lock: Lock,
    wait_ms: int = DEFAULT_WAIT_MS,
    *,
    retries: int = 0,
    retry_pause_ms: int = 0,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Context manager that holds the lock.

    Args:
        wait_ms: how long one try waits.
        retries, retry_pause_ms: further tries, and the pause before each, in which no place in a queue is kept.

    Raises:
        LockError: the lock was not free within `wait_ms` of the last try.
    """
    give_back_abandoned()
    held = (lock, RunningCall.here(), threading.get_ident())
    try:
        _held[id(held)] = held  # before it is taken: an interrupt may come before we know that it is
        for left in range(retries, -1, -1):
            if _wait(lock, wait_ms, clock, pause):
                break
            if not left:
                raise _not_free(lock, wait_ms, retries)
            lock.release()
            pause(retry_pause_ms / 1000)
        _forget_older(held)
        yield
    finally:
        try:
            _give_back(held)
        except KeyboardInterrupt:
            _give_back(held)
            raise
        except Exception as e:  # noqa: BLE001 - a class of the user's raises anything
            # What was done under the lock stays done: a commit that is published must not be taken for one that
            # failed.  It is tried again when this process takes a lock next.
            log.warning("%s could not be given back: %s: %s", lock.name, type(e).__name__, e)
            _held.pop(id(held), None)
            unreleased = (lock, RunningCall(None), held[2])
            _held[id(unreleased)] = unreleased


def _wait(lock: Lock, wait_ms: int, clock: Callable[[], float], pause: Callable[[float], None]) -> bool:
    """Wait for the lock; returns whether it was acquired."""
    deadline = clock() + wait_ms / 1000
    wait_s = _FIRST_PAUSE_S
    while not lock.try_acquire():
        left = deadline - clock()
        if left <= 0:
            return False
        if isinstance(lock, QueuedLock):
            lock.wait_for_turn(min(left, _LONGEST_TURN_S))
            continue
        pause(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_PAUSE_S)
    return True


def _not_free(lock: Lock, wait_ms: int, retries: int) -> LockError:
    holder = lock.holder()
    tries = f" in each of {retries + 1} tries" if retries else ""
    return LockError(
        f"the table's lock was not free within {wait_ms} ms{tries}: {lock.name}"
        + (f", held by {holder}" if holder else ""),
        remedy=f"run the write again later, or raise {LOCK_WAIT_MS} or {LOCK_CLIENT_RETRIES}; if a file-system "
        "lock is left over from a writer that died, delete its lock file.",
    )


@dataclass(frozen=True, slots=True)
class TableLock:
    """Table lock as configured by a call's options.

    Attributes:
        wait_ms: how long one try waits for it.
        retries, retry_pause_ms: further tries, and the pause before each.
    """

    lock: Lock
    wait_ms: int = DEFAULT_WAIT_MS
    retries: int = 0
    retry_pause_ms: int = 0

    def held(self) -> AbstractContextManager[None]:
        """Context manager that holds the lock; errors as `hold`."""
        return hold(self.lock, self.wait_ms, retries=self.retries, retry_pause_ms=self.retry_pause_ms)

    def verify(self) -> None:
        """Check that the held lock was not lost.

        Raises LockError.
        """
        self.lock.verify()


def give_back_abandoned() -> None:
    """Release locks of this process whose blocks ended without it, by an interrupt or an error."""
    for held in list(_held.values()):
        if held[1].is_over:
            try:
                _give_back(held)
            except Exception as e:  # noqa: BLE001 - a class of the user's raises anything
                log.warning("%s could not be given back: %s", held[0].name, e)


def _forget_older(held: tuple[Lock, RunningCall, int]) -> None:
    """Forget what could not be given back of a lock that is held anew: giving it back now would end this holding."""
    for key, older in list(_held.items()):
        if older is not held and older[0].name == held[0].name and older[1].is_over:
            _held.pop(key, None)


def verify_held() -> None:
    """Check that the lock was not lost whose block this thread is in, the innermost of several.

    For steps of a longer work under the lock that would undo what another process has done since: who is stopped for
    longer than its lease lasts goes on where it was.

    Raises LockError.
    """
    me = threading.get_ident()
    for lock, call, thread in reversed(list(_held.values())):
        if thread == me and not call.is_over:
            lock.verify()
            return


def check_begun(storage: Storage, inflight: str, plan: str) -> None:
    """Check that the inflight file of a plan was made before the lock was lost.

    Args:
        inflight: path; it is removed where others have taken the plan back since.
        plan: path.  A plan stays: others may have written to what it announces.

    Raises LockError.
    """
    try:
        verify_held()
    except LockError:
        if storage.info(plan) is None:
            storage.delete(inflight)
        raise


def is_abandoned(lock: Lock) -> bool:
    """Whether the block that held the lock was interrupted before it gave it back."""
    return any(held[0] is lock and held[1].is_over for held in list(_held.values()))


def _give_back(held: tuple[Lock, RunningCall, int]) -> None:
    # A block that was given up ends a second time when its traceback goes: the lock may be held anew by then.
    if _held.get(id(held)) is held:
        held[0].release()
        _held.pop(id(held), None)


# The lock between threads of one process: what Apache Hudi's InProcessLockProvider does.

# The handle that holds the lock of a key.  Each change is one step of the dictionary, so that no interrupt leaves a
# handle in doubt whether it holds.
_holders: dict[str, InProcessLock] = {}
if hasattr(os, "register_at_fork"):  # a child has none of the threads that hold, nor their locks
    os.register_at_fork(after_in_child=_holders.clear)


class InProcessLock:
    """Lock by name, e.g. by base path; excludes all other handles of that name."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._thread = 0

    @property
    def name(self) -> str:
        return f"in-process lock of {self._key}"

    def try_acquire(self) -> bool:
        me = threading.get_ident()
        holder = _holders.get(self._key)
        if holder is None:
            self._thread = me
            holder = _holders.setdefault(self._key, self)
            if holder is self:
                return True
        if holder._thread == me:
            raise LockError(f"this thread holds the lock already: {self.name}", table=self._key)
        return False

    def verify(self) -> None:
        if _holders.get(self._key) is not self:
            raise LockError(f"the lock is not held: {self.name}", table=self._key)

    def release(self) -> None:
        if _holders.get(self._key) is self:
            _holders.pop(self._key, None)

    def holding(self) -> Holding | None:
        holder = _holders.get(self._key)
        return None if holder is None else Holding(str(id(holder)), self.holder(), heartbeat.this_process())

    def end_holding(self, token: str) -> bool:
        raise LockError(
            f"a lock within a process cannot be broken from outside: {self.name}",
            remedy="end the write, or its process.",
            table=self._key,
        )

    def holder(self) -> str:
        holder = _holders.get(self._key)
        names = {t.ident: t.name for t in threading.enumerate()}
        return "" if holder is None else f"thread {names.get(holder._thread, holder._thread)} of this process"
