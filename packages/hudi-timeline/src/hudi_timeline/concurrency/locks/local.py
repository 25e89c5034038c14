"""Default lock of local tables: flock() on `.hoodie`, and a lock between threads.

Between threads an in-process lock, between processes flock() on the `.hoodie` folder itself: the kernel
takes it back when the process ends, however it ends, and it leaves no file behind.
"""

from __future__ import annotations

import errno
import fcntl
import os

from hudi_format.errors import LockError, NotAHudiTableError
from hudi_format.fork_safe import Owned
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.holding import Holding
from hudi_timeline.concurrency.locks.provider import InProcessLock

_NO_FLOCK = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)

# Descriptors of locks that are held: a forked child closes its copies, so that the lock does not
# outlive the process that took it.
_open_descriptors: set[int] = set()


def _close_inherited() -> None:
    for descriptor in _open_descriptors:
        os.close(descriptor)
    _open_descriptors.clear()


os.register_at_fork(after_in_child=_close_inherited)


class LocalLock:
    """The lock of a table in a local folder."""

    def __init__(self, storage: Storage) -> None:
        self._folder = f"{storage.uri.rstrip('/')}/.hoodie"
        # The same folder may be reached by several paths.
        self._threads = InProcessLock(os.path.realpath(self._folder))
        self._descriptor = -1
        self._owned = Owned()

    @property
    def name(self) -> str:
        return f"flock on {self._folder}"

    def try_acquire(self) -> bool:
        if not self._threads.try_acquire():
            return False
        try:
            taken = self._flock()
        except BaseException:
            self.release()
            raise
        if not taken:
            self.release()
        return taken

    def _flock(self) -> bool:
        self._owned = Owned()
        try:
            self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NotAHudiTableError(
                f"the folder {self._folder} to lock does not exist", remedy="check the path."
            ) from None
        except OSError as e:
            raise LockError(
                f"cannot open {self._folder} to lock it: {e.strerror}",
                remedy="give this user the right to read it.",
            ) from e
        _open_descriptors.add(self._descriptor)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return self._is_in_place()
        except BlockingIOError:
            return False
        except OSError as e:
            remedy = (
                "set hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock."
                "FileSystemBasedLockProvider."
                if e.errno in _NO_FLOCK
                else ""
            )
            raise LockError(f"the file system cannot lock {self._folder}: {e.strerror}", remedy=remedy) from e

    def _is_in_place(self) -> bool:
        """Whether the locked folder is still the table's, not a replacement at the same path."""
        held = os.fstat(self._descriptor)
        try:
            there = os.stat(self._folder)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)

    def verify(self) -> None:
        self._threads.verify()
        if not self._is_in_place():
            raise LockError(
                f"{self._folder} was removed or replaced while it was locked",
                remedy="run the write again on the table that is there now.",
            )

    def release(self) -> None:
        if not self._owned.here:  # the process that forked this one goes on holding it
            self._descriptor = -1
        if self._descriptor >= 0:
            # Explicitly, because a child may hold a copy of the descriptor.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            descriptor, self._descriptor = self._descriptor, -1
            _open_descriptors.discard(descriptor)
            os.close(descriptor)
        self._threads.release()

    def holding(self) -> Holding | None:
        inside = self._threads.holding()
        if inside is not None:
            return inside
        try:
            if self.try_acquire():
                return None
        finally:
            self.release()
        process = self._holder_process()
        named = f"process {process.pid} on this machine" if process else "another process on this machine"
        return Holding(str(process.pid if process else 0), named, process)

    def _holder_process(self) -> heartbeat.Owner | None:
        """Process that the kernel names as the holder; None where it does not tell."""
        folder = os.stat(self._folder)
        place = f"{os.major(folder.st_dev):02x}:{os.minor(folder.st_dev):02x}:{folder.st_ino}"
        try:
            with open("/proc/locks", encoding="ascii") as f:
                lines = [line.split() for line in f]
        except OSError:  # not Linux
            return None
        # 1: FLOCK  ADVISORY  WRITE 4242 08:01:1234 0 EOF; who waits has an arrow as its second word.
        pids = [
            int(w[4]) for w in lines if len(w) > 5 and w[1] == "FLOCK" and w[5] == place and w[4].isdecimal()
        ]
        return heartbeat.process_of(pids[0]) if pids and pids[0] > 0 else None

    def end_holding(self, token: str) -> bool:
        raise LockError(
            f"{self.name} is released by the kernel when its process ends, and in no other way",
            remedy=f"end process {token}." if token != "0" else "end the process that holds it.",
        )

    def holder(self) -> str:
        return self._threads.holder() or "another process on this machine"
