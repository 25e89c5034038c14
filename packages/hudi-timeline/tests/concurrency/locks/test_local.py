"""Locks of a folder of this machine, between threads and processes."""

import os
import subprocess
import sys
import threading

import pytest

from hudi_format.errors import LockError, NotAHudiTableError
from hudi_format.storage.local import LocalStorage
from hudi_timeline.concurrency.locks.local import LocalLock
from hudi_timeline.concurrency.locks.provider import hold

pytestmark = pytest.mark.req("CC-09")


def in_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def test_the_local_lock_leaves_no_file(storage):
    before = sorted(e.name for e in storage.list(".hoodie"))
    with hold(LocalLock(storage)):
        assert sorted(e.name for e in storage.list(".hoodie")) == before
    assert sorted(e.name for e in storage.list(".hoodie")) == before


def test_one_folder_has_one_lock_by_whatever_path(storage, tmp_path):
    (tmp_path / "link").symlink_to(storage.uri)
    with hold(LocalLock(storage)):
        assert not in_thread(LocalLock(LocalStorage(str(tmp_path / "link"))).try_acquire)


def test_a_folder_that_was_replaced_is_a_lost_lock(storage):
    lock = LocalLock(storage)
    assert lock.try_acquire()
    os.rename(f"{storage.uri}/.hoodie", f"{storage.uri}/.old")
    with pytest.raises(LockError, match="replaced"):
        lock.verify()
    os.mkdir(f"{storage.uri}/.hoodie")
    with pytest.raises(LockError, match="replaced"):
        lock.verify()
    lock.release()


def test_a_path_without_a_table_cannot_be_locked(tmp_path):
    with pytest.raises(NotAHudiTableError):
        LocalLock(LocalStorage(str(tmp_path))).try_acquire()
    (tmp_path / ".hoodie").mkdir()
    with hold(LocalLock(LocalStorage(str(tmp_path)))):
        pass


HOLDER = """
import sys
from hudi_format.storage.open import LocalStorage
from hudi_timeline.concurrency.locks.local import LocalLock
assert LocalLock(LocalStorage(sys.argv[1])).try_acquire()
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_process_is_locked_out_until_the_holder_dies(storage):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, storage.uri], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "held\n"
        lock = LocalLock(storage)
        assert not lock.try_acquire()
        assert "another process" in lock.holder()
        child.kill()
        child.wait()
        assert lock.try_acquire()
        lock.release()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        child.stdin.close()


def test_a_forked_child_does_not_keep_the_lock(storage):
    lock = LocalLock(storage)
    assert lock.try_acquire()
    descriptor = lock._descriptor
    pid = os.fork()
    if pid == 0:
        try:
            os.fstat(descriptor)
            os._exit(1)
        except OSError:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    lock.verify()
    lock.release()
