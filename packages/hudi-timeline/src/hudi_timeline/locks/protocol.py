"""What a table lock can do, and how it is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from hudi_format.errors import LockError

# Critical sections take milliseconds to seconds: look again soon, then less often.
_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.25

DEFAULT_WAIT_MS = 60_000


class Lock(Protocol):
    """One process's handle on the lock of one table.  Not re-entrant."""

    @property
    def name(self) -> str:
        """What is locked, for messages."""
        ...

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it.

        Raises:
            LockError: this thread holds it already, or the lock cannot work here.
        """
        ...

    def verify(self) -> None:
        """Make sure, while holding it, that the lock is still this holder's.

        Raises:
            LockError: it was lost.
        """
        ...

    def release(self) -> None:
        """Give the lock back; nothing happens where it is not held."""
        ...

    def holder(self) -> str:
        """Who seems to hold the lock, for messages; "" where that is unknown."""
        ...


@contextmanager
def hold(
    lock: Lock,
    wait_ms: int = DEFAULT_WAIT_MS,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the lock for a block.

    Raises:
        LockError: the lock was not free within `wait_ms`.
    """
    deadline = clock() + wait_ms / 1000
    wait_s = _FIRST_PAUSE_S
    while not lock.try_acquire():
        if clock() >= deadline:
            holder = lock.holder()
            raise LockError(
                f"the table's lock was not free within {wait_ms} ms: {lock.name}"
                + (f", held by {holder}" if holder else ""),
                remedy="run the write again later, or raise hoodie.write.lock.wait_time_ms; if a file-system "
                "lock is left over from a writer that died, delete its lock file.",
            )
        pause(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_PAUSE_S)
    try:
        yield
    finally:
        lock.release()
