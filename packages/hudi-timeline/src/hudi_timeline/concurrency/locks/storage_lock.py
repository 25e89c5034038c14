"""Lock file of StorageBasedLockProvider: `.hoodie/.locks/table_lock.json`, a lease.

Taken by writes on condition, so that one of several contenders has it, and kept until a time that stands in it.
The file stays; giving the lock back marks it as expired.  A lease that has run out, or whose owner was a
process of this machine that is no more, may be taken by anybody.

Source: StorageBasedLockProvider of Apache Hudi 1.0.2; spec "Concurrency".
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable
from contextlib import suppress

from hudi_format._checks import loads
from hudi_format.errors import LockError, StorageError
from hudi_format.fork_safe import Owned
from hudi_format.storage.protocol import ReplacingStorage, Storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.file_system import UNREADABLE
from hudi_timeline.concurrency.locks.holding import Holding, process_in
from hudi_timeline.concurrency.locks.provider import InProcessLock
from hudi_timeline.options.transaction_options import LOCK_VALIDITY_S

log = logging.getLogger("hudi")

PATH = ".hoodie/.locks/table_lock.json"
DEFAULT_VALIDITY_S: int = LOCK_VALIDITY_S.value
# Apache Hudi's allowance for clocks that do not agree.
DRIFT_MS = 500


class StorageLock:
    """Lock of a table on a store with conditional writes.

    Args:
        validity_s: how long a lease counts that is not renewed; `verify` renews it.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        validity_s: int = DEFAULT_VALIDITY_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(storage, ReplacingStorage) or not storage.can_replace:
            raise LockError(
                "the store cannot replace a file on condition, which this lock needs",
                table=storage.uri,
                remedy="omit hoodie.write.lock.provider, and write from one process at a time.",
            )
        self._storage = storage
        self._files: ReplacingStorage = storage
        self._threads = InProcessLock(storage.uri)
        self._validity_ms = validity_s * 1000
        self._now = now
        self._owned = Owned()
        self._owner = ""
        self._version = ""
        self._until = 0

    @property
    def name(self) -> str:
        return f"lock file {self._storage.uri}/{PATH}"

    def _now_ms(self) -> int:
        return int(self._now() * 1000)

    def _content(self, *, expired: bool) -> bytes:
        value = {"expired": expired, "validUntil": self._until, "owner": self._owner}
        return json.dumps(value, separators=(",", ":")).encode()

    def try_acquire(self) -> bool:
        if not self._threads.try_acquire():
            return False
        try:
            taken = self._take()
        except BaseException:
            self._threads.release()
            raise
        if not taken:
            self._threads.release()
        return taken

    def _take(self) -> bool:
        found = self._files.read_version(PATH)
        if found is not None and not self._is_free(found[0]):
            return False
        self._owned = Owned()
        self._owner = f"{uuid.uuid4()} {heartbeat.this_process().text()}"
        self._until = self._now_ms() + self._validity_ms
        content = self._content(expired=False)
        # What is there afterwards decides: a client that repeats a request whose answer was lost is told that the
        # condition does not hold, because its own first request has made it so.
        if found is None:
            with suppress(FileExistsError):
                self._storage.create(PATH, content)
        else:
            self._files.replace(PATH, content, found[1])
        again = self._files.read_version(PATH)
        if again is None or again[0] != content:
            return False
        self._version = again[1]
        return True

    def _is_free(self, content: bytes) -> bool:
        try:
            value = loads(content)
            expired, until = bool(value["expired"]), int(value["validUntil"])
            owner = str(value["owner"])
        except UNREADABLE:
            raise LockError(
                f"the lock file cannot be read: {self.name}",
                remedy=f"delete {PATH} if no write is running.",
            ) from None
        if expired or self._now_ms() > until + DRIFT_MS:
            return True
        process = heartbeat.Owner.of_text(owner.partition(" ")[2])
        return process is not None and heartbeat.has_ended(process)

    def verify(self) -> None:
        self._threads.verify()
        found = self._files.read_version(PATH)
        if found is None or found[1] != self._version:
            raise self._lost()
        if self._now_ms() + self._validity_ms // 2 > self._until:
            self._until = self._now_ms() + self._validity_ms
            content = self._content(expired=False)
            self._files.replace(PATH, content, self._version)
            again = self._files.read_version(PATH)
            if again is None or again[0] != content:
                raise self._lost()
            self._version = again[1]

    def _lost(self) -> LockError:
        return LockError(
            f"the lock was taken away by another writer: {self.name}",
            table=self._storage.uri,
            remedy=f"raise {LOCK_VALIDITY_S}, then run the write again.",
        )

    def release(self) -> None:
        if not self._owned.here:  # the lease is that of the process that forked this one
            self._version = self._owner = ""
            return
        try:
            if (
                self._owner and not self._version
            ):  # interrupted before it was known whether the lease was taken
                found = self._files.read_version(PATH)
                if found is not None and found[0] == self._content(expired=False):
                    self._version = found[1]
            if self._version:
                # Another's lease must stay: ours had run out and was taken, and the version is no longer ours.
                self._files.replace(PATH, self._content(expired=True), self._version)
        except StorageError as e:
            # What was done under the lock stays done; the lease runs out by itself.
            log.warning("%s could not be given back and runs out by itself: %s", self.name, e)
        finally:
            self._version = self._owner = ""
            self._threads.release()

    def holding(self) -> Holding | None:
        found = self._files.read_version(PATH)
        if found is None:
            return None
        try:
            value = loads(found[0])
            owner, until, expired = str(value["owner"]), int(value["validUntil"]), bool(value["expired"])
        except UNREADABLE:
            return Holding(found[1], "")
        if expired:
            return None
        return Holding(found[1], owner, process_in(owner), expires_ms=until)

    def end_holding(self, token: str) -> bool:
        found = self._files.read_version(PATH)
        if found is None or found[1] != token:
            return False
        ended = json.dumps({"expired": True, "validUntil": 0, "owner": ""}, separators=(",", ":")).encode()
        self._files.replace(PATH, ended, token)
        again = self._files.read_version(PATH)
        return again is not None and again[0] == ended

    def holder(self) -> str:
        found = self._files.read_version(PATH)
        try:
            return self._threads.holder() or str(loads(found[0])["owner"] if found else "")
        except UNREADABLE:
            return ""
