"""Lock file of FileSystemBasedLockProvider: `<path>/lock`, created if absent.

Writers of Apache Hudi that are configured with the same provider are locked out by it, and the other
way round.  A lock file survives the death of its writer; it is taken away by hand, or by the next
contender once it is older than the configured expiry.  Its age is told by the store's clock, which stamped it.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from hudi_format._checks import loads
from hudi_format.errors import LockError
from hudi_format.fork_safe import Owned
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.holding import Holding, milliseconds_of, process_in
from hudi_timeline.concurrency.own_files import create_own
from hudi_timeline.concurrency.store_clock import store_seconds

FILE_NAME = "lock"
UNREADABLE = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)
"""What a lock file of somebody else's may raise."""
_LONGER = "raise hoodie.write.lock.filesystem.expire, then run the write again."


class FileSystemLock:
    """A lock file in a folder of a storage.

    Args:
        storage: where the lock file lies; of the table itself unless a lock path is configured.
        folder: below the storage's base path.
        expire_minutes: age after which a lock file is taken for left over; 0 means never.
        now: the store's clock, in seconds since the epoch; None to ask it where a lock file looks left over.
        steady: seconds that only grow.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str = ".hoodie",
        *,
        expire_minutes: int = 0,
        now: Callable[[], float] | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._folder = folder
        self._path = f"{folder}/{FILE_NAME}" if folder else FILE_NAME
        self._expire_ms = expire_minutes * 60_000
        self._now, self._steady = now, steady
        self._since = (0.0, 0.0)
        self._content = b""
        self._owned = Owned()

    @property
    def name(self) -> str:
        return f"lock file {self._storage.uri}/{self._path}"

    def try_acquire(self) -> bool:
        if self._content and self._owned.here:
            raise LockError(f"the lock is held already: {self.name}")
        self._remove_expired()
        content = json.dumps(
            {
                "lockCreateTime": datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
                "lockThreadName": f"{threading.current_thread().name} {uuid.uuid4().hex} "
                f"{heartbeat.this_process().text()}",
                "lockStacksInfo": [],
            }
        ).encode()
        self._owned = Owned()
        self._content = content  # before it is made: what is there decides on release
        self._since = time.time(), self._steady()
        try:
            create_own(self._storage, self._path, content)
        except FileExistsError:
            self._content = b""
            return False
        return True

    def _remove_expired(self) -> None:
        if self._expire_ms <= 0:
            return
        info = self._storage.info(self._path)
        if info is None or not self._is_expired(info.mtime_ms):
            return
        if not self._storage.is_local:
            self._storage.delete(self._path)
            return
        # What is moved away is looked at: another contender may have put its own file there meanwhile.
        away = f"{self._folder}/.{FILE_NAME}.{uuid.uuid4().hex}.tmp".lstrip("/")
        try:
            self._storage.rename(self._path, away)
            moved, content = self._storage.info(away), self._storage.read(away)
        except FileNotFoundError:
            return
        if moved is not None and moved.mtime_ms > info.mtime_ms:
            with suppress(FileExistsError):  # its holder finds that it has lost the lock
                self._storage.create(self._path, content)
        self._storage.delete(away)

    def _is_expired(self, made_ms: int) -> bool:
        def is_old(now_s: float) -> bool:
            return now_s * 1000 - made_ms > self._expire_ms

        if self._now is not None:
            return is_old(self._now())
        # Our clock may be ahead: it only says when it is worth to ask the store's.
        return is_old(time.time()) and is_old(store_seconds(self._storage, self._folder))

    def _is_mine(self) -> bool:
        try:
            # What is held belongs to the process that took it, not to one that was forked from it.
            return (
                bool(self._content) and self._owned.here and self._storage.read(self._path) == self._content
            )
        except FileNotFoundError:
            return False

    def verify(self) -> None:
        if not self._is_mine():
            raise LockError(
                f"the lock was taken away by another writer: {self.name}",
                remedy=_LONGER,
            )
        # What is so old may be taken away at any moment.  A clock that stands still in a suspended machine, or one
        # that is set, says too little: the other does not.
        held_s = max(time.time() - self._since[0], self._steady() - self._since[1])
        if 0 < self._expire_ms < held_s * 1000:
            raise LockError(
                f"the lock is held for {held_s:.0f} s, and counts as left over by now: {self.name}",
                remedy=_LONGER,
            )

    def release(self) -> None:
        # Another's file must stay: ours had expired and was replaced.
        if self._is_mine():
            self._storage.delete(self._path)
        self._content = b""

    def holding(self) -> Holding | None:
        try:
            content = self._storage.read(self._path)
            info = self._storage.info(self._path)
        except FileNotFoundError:
            return None
        try:
            value = loads(content)
            holder, since = str(value["lockThreadName"]), milliseconds_of(str(value["lockCreateTime"]))
        except UNREADABLE:  # Apache Hudi's may be empty
            holder, since = "", None
        made_ms = info.mtime_ms if info is not None else None
        return Holding(
            hashlib.sha256(content).hexdigest()[:16],
            holder,
            process_in(holder),
            since or made_ms,
            made_ms,
            made_ms + int(self._expire_ms) if made_ms is not None and self._expire_ms > 0 else None,
        )

    def end_holding(self, token: str) -> bool:
        found = self.holding()
        if found is None or found.token != token:
            return False
        self._storage.delete(self._path)
        return True

    def holder(self) -> str:
        try:
            value = loads(self._storage.read(self._path))
            return f"{value['lockThreadName']} since {value['lockCreateTime']}"
        except (FileNotFoundError, *UNREADABLE):  # gone, or Apache Hudi's empty one
            return ""
