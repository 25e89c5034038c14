"""State that a forked child process must not take over from its parent.

A child has one thread, the one that forked.  A lock that another thread held stays locked in it for ever, and what
belongs to the parent's writes (locks of tables, heartbeats, descriptors) is the parent's alone.  Python's own lock of a
module that another thread is importing is such a lock too, and these packages import much only when it is asked for: a
fork waits for such imports, and a child forgets those that have begun since.  So is that of
`functools.cached_property` before Python 3.12, one for all objects.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import _bootstrap
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: TID251
else:

    class cached_property:
        """Property that is kept in its object once it was computed, without a lock.

        Two threads at once may both compute it; one value is kept.  Python's own has one lock for all objects of a
        class, held while one computes: other threads wait for what is of another table, a forked child for ever.
        """

        def __init__(self, compute: Any) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__
            if self._name not in kept:
                kept.setdefault(self._name, self._compute(instance))
            return kept[self._name]


_locks: WeakSet[ProcessLock] = WeakSet()
# Modules whose import a fork waits for: these packages', and Arrow's, which they import late.
_WAITED_FOR = ("hudi_", "pyarrow")
_MOST_LOOKS = 10
_MODULE_LOCKS: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})


class ProcessLock:
    """Lock between threads that a forked child finds released: `with lock.threads:`.

    It may be a module's or an object's, with which it goes.

    Attributes:
        threads: the lock. Python's own, which a `with` takes and gives back in one step: KeyboardInterrupt in methods
            of ours that did so would leave it held, and the next one to take it would wait for ever.
    """

    def __init__(self) -> None:
        self.threads = threading.Lock()
        _locks.add(self)

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
    for lock in list(_locks):
        lock.renew()


def _imports() -> dict[str, int | None]:
    """Modules that other threads have to do with, and who imports each.

    Of each import there is a lock for as long as a thread has to do with it: before the module is, and after.
    """
    me = threading.get_ident()
    locks = [(name, ref()) for name, ref in list(_MODULE_LOCKS.items()) if name.startswith(_WAITED_FOR)]
    return {name: lock.owner for name, lock in locks if lock is not None and lock.owner != me}


def _finish_imports() -> None:
    """Wait for the imports of other threads; those of this thread stay what they are.

    Nothing keeps them from beginning others before the fork is made: what is held here, other handlers wait for with
    locks of theirs, under which a thread may import something.
    """
    for _ in range(_MOST_LOOKS):
        names = [name for name, owner in _imports().items() if owner is not None]
        if not names:
            return
        for name in names:
            _bootstrap._lock_unlock_module(name)  # type: ignore[attr-defined]


def _forget_unfinished() -> None:
    """Forget modules whose import only a thread of the parent would have ended: they are imported anew."""
    for name in _imports():
        _MODULE_LOCKS.pop(name, None)
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            for begun in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
                del sys.modules[begun]


def _begin() -> None:
    _renew_all()
    _forget_unfinished()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_finish_imports, after_in_child=_begin)
