"""State that a forked child process must not take over from its parent.

A child has one thread, the one that forked.  A lock that another thread held stays locked in it for ever, and what
belongs to the parent's writes (locks of tables, heartbeats, descriptors) is the parent's alone.  Python's own lock of a
module that another thread is importing is such a lock too, and these packages import much only when it is asked for: a
fork waits for such imports.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from contextlib import suppress

_locks: list[ProcessLock] = []
# Modules whose import a fork waits for: these packages', and Arrow's, which they import late.
_WAITED_FOR = ("hudi_", "pyarrow")
_MOST_LOOKS = 10


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


def _importing() -> list[str]:
    return [
        name
        for name, module in list(sys.modules.items())
        if name.startswith(_WAITED_FOR) and getattr(getattr(module, "__spec__", None), "_initializing", False)
    ]


def _finish_imports() -> None:
    """Wait for the imports of other threads; those of this thread stay what they are.

    Another thread may begin one meanwhile, so it is looked again; what this thread is importing is found each time.
    """
    for _ in range(_MOST_LOOKS):
        names = _importing()
        if not names:
            return
        for name in names:
            with suppress(ImportError):  # the thread that imports it gets the error
                importlib.import_module(name)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_finish_imports, after_in_child=_renew_all)
