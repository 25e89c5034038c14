"""State that a forked child process must not take over from its parent.

A child has one thread, the one that forked.  A lock that another thread held stays locked in it for ever, and what
belongs to the parent's writes (locks of tables, heartbeats, descriptors) is the parent's alone.
"""

from __future__ import annotations

import os
import threading

_locks: list[ProcessLock] = []


class ProcessLock:
    """Lock between threads that a forked child finds released: `with lock.threads:`.

    Attributes:
        threads: the lock. Python's own, which a `with` takes and gives back in one step: KeyboardInterrupt in methods
            of ours that did so would leave it held, and the next one to take it would wait for ever.
    """

    def __init__(self) -> None:
        self.threads = threading.Lock()
        _locks.append(self)

    def renew(self) -> None:
        self.threads = threading.Lock()


class Owned:
    """Base of objects that belong to the process in which they were made."""

    __slots__ = ("_pid",)

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def here(self) -> bool:
        return self._pid == os.getpid()


def _renew_all() -> None:
    for lock in _locks:
        lock.renew()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_all)
