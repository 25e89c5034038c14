"""What a process that was forked must not take over from the one that it came from.

A child has one thread, the one that forked.  A lock that another thread held stays locked in it for ever, and what
belongs to the parent's writes (locks of tables, heartbeats, descriptors) is the parent's alone.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

_locks: list[ProcessLock] = []


class ProcessLock:
    """A lock between threads, for the whole run of a process; a forked child finds it open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.append(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def renew(self) -> None:
        self._lock = threading.Lock()


class Owned:
    """Whether this is the process that made the object."""

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
