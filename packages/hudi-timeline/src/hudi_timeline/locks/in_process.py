"""The lock between threads of one process: what Apache Hudi's InProcessLockProvider does."""

from __future__ import annotations

import os
import threading

from hudi_format.errors import LockError

# The handle that holds the lock of a key.  Each change is one step of the dictionary, so that no interrupt leaves a
# handle in doubt whether it holds.
_holders: dict[str, InProcessLock] = {}
if hasattr(os, "register_at_fork"):  # a child has none of the threads that hold, nor their locks
    os.register_at_fork(after_in_child=_holders.clear)


class InProcessLock:
    """A lock by name, e.g. by the table's base path; each handle locks against all others of the name."""

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

    def holder(self) -> str:
        holder = _holders.get(self._key)
        names = {t.ident: t.name for t in threading.enumerate()}
        return "" if holder is None else f"thread {names.get(holder._thread, holder._thread)} of this process"
