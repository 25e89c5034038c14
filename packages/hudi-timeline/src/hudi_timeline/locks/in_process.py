"""The lock between threads of one process: what Apache Hudi's InProcessLockProvider does."""

from __future__ import annotations

import threading

from hudi_format.errors import LockError

_registry_lock = threading.Lock()
_holders: dict[str, int] = {}  # key -> ident of the thread that holds it


class InProcessLock:
    """A lock by name, e.g. by the table's base path; each handle locks against all others of the name."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._held = False

    @property
    def name(self) -> str:
        return f"in-process lock of {self._key}"

    def try_acquire(self) -> bool:
        me = threading.get_ident()
        with _registry_lock:
            holder = _holders.get(self._key)
            if holder == me:
                raise LockError(f"this thread holds the lock already: {self.name}", table=self._key)
            if holder is not None:
                return False
            _holders[self._key] = me
            self._held = True
            return True

    def verify(self) -> None:
        if not self._held:
            raise LockError(f"the lock is not held: {self.name}", table=self._key)

    def release(self) -> None:
        with _registry_lock:
            if self._held:
                self._held = False
                _holders.pop(self._key, None)

    def holder(self) -> str:
        with _registry_lock:
            ident = _holders.get(self._key)
        names = {t.ident: t.name for t in threading.enumerate()}
        return "" if ident is None else f"thread {names.get(ident, ident)} of this process"
