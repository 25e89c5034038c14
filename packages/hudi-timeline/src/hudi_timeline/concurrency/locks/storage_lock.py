"""Lock file of StorageBasedLockProvider: `.hoodie/.locks/table_lock.json`, a lease.

Taken by writes on condition, so that one of several contenders has it, and kept until a time that stands in it.
The file stays; giving the lock back marks it as expired.  A lease that has run out, or whose owner was a
process of this machine that is no more, may be taken by anybody.  Clocks of writers may be wrong: that it has run out
is told by the store's, and of a lease of ours by its age.

Source: StorageBasedLockProvider of Apache Hudi 1.0.2; spec "Concurrency".
"""

from __future__ import annotations

import json
import logging
import re
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
from hudi_timeline.concurrency.store_clock import store_seconds
from hudi_timeline.options.transaction_options import LOCK_VALIDITY_S

log = logging.getLogger("hudi")

_FOLDER = ".hoodie/.locks"
PATH = f"{_FOLDER}/table_lock.json"
_VALIDITY = re.compile(r" (\d{1,15})ms ")  # in the owner of a lease of ours, as clocks of others may be wrong
DEFAULT_VALIDITY_S: int = LOCK_VALIDITY_S.value
# Apache Hudi's allowance for clocks that do not agree.
DRIFT_MS = 500


class StorageLock:
    """Lock of a table on a store with conditional writes.

    Args:
        validity_s: how long a lease counts that is not renewed; `verify` renews it.
        now: the clock of all, in seconds since the epoch; None for this process's, which is put right by the store's.
        steady: seconds that only grow.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        validity_s: int = DEFAULT_VALIDITY_S,
        now: Callable[[], float] | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        if not isinstance(storage, ReplacingStorage) or not storage.can_replace:
            remedy = "name another one with hoodie.write.lock.provider, or write from one process at a time."
            if storage.is_local:
                remedy = (
                    "omit hoodie.write.lock.provider: the processes of this machine have a lock without it."
                )
            raise LockError(
                "the store cannot replace a file on condition, which this lock needs",
                table=storage.uri,
                remedy=remedy,
            )
        self._storage = storage
        self._files: ReplacingStorage = storage
        self._threads = InProcessLock(storage.uri)
        self._validity_ms = validity_s * 1000
        self._given, self._now, self._steady = now, now or time.time, steady
        self._renewed = (0.0, 0.0)
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
        self._owner = f"{uuid.uuid4()} {self._validity_ms}ms {heartbeat.this_process().text()}"
        renewed, content = self._lengthened()
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
        self._version, self._renewed = again[1], renewed
        return True

    def _lengthened(self) -> tuple[tuple[float, float], bytes]:
        """The moment, by two clocks, and the content of a lease from it on."""
        begun = self._now(), self._steady()
        self._until = int(begun[0] * 1000) + self._validity_ms
        return begun, self._content(expired=False)

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
        if expired:
            return True
        process = process_in(owner)
        if process is not None and heartbeat.has_ended(process):
            return True
        return self._now_ms() > until + DRIFT_MS and (self._given is not None or self._is_old(owner, until))

    def _is_old(self, owner: str, until: int) -> bool:
        """Whether a lease that has run out by our clock has done so by the store's."""
        now_ms = store_seconds(self._storage, _FOLDER) * 1000
        noted = _VALIDITY.search(owner)
        if noted is None:  # Apache Hudi's, whose clock its writers believe in
            return now_ms > until + DRIFT_MS
        info = self._storage.info(PATH)
        # Stores tell whole seconds.
        return info is not None and now_ms > info.mtime_ms + int(noted[1]) + DRIFT_MS + 1000

    def verify(self) -> None:
        self._threads.verify()
        found = self._files.read_version(PATH)
        if found is None or found[1] != self._version:
            raise self._lost()
        # A clock that stands still in a suspended machine, or one that is set, says too little: the other does not.
        held_s = max(self._now() - self._renewed[0], self._steady() - self._renewed[1])
        if held_s * 1000 > self._validity_ms // 2:
            renewed, content = self._lengthened()
            self._files.replace(PATH, content, self._version)
            again = self._files.read_version(PATH)
            if again is None or again[0] != content:
                raise self._lost()
            self._version, self._renewed = again[1], renewed

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
