"""Table locks: within a process, between processes, by lock file."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from hudi_format.errors import LockError, NotAHudiTableError, UnsupportedError
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.local import LocalLock
from hudi_timeline.concurrency.locks.provider import InProcessLock, hold
from hudi_timeline.concurrency.locks.select import FILE_SYSTEM, IN_PROCESS, lock_for

pytestmark = pytest.mark.req("CC-09")


def in_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def make(kind, storage):
    return {
        "in-process": lambda: InProcessLock(storage.uri),
        "local": lambda: LocalLock(storage),
        "file-system": lambda: FileSystemLock(storage),
    }[kind]()


@pytest.mark.req("CC-13")
@pytest.mark.parametrize("kind", ["in-process", "local", "file-system"])
def test_a_lock_is_held_by_one_and_free_again(storage, kind):
    first, second = make(kind, storage), make(kind, storage)
    assert first.try_acquire()
    first.verify()
    assert not in_thread(second.try_acquire)
    assert first.name
    assert second.holder()
    first.release()
    first.release()
    assert second.try_acquire()
    second.release()


@pytest.mark.parametrize("kind", ["in-process", "local", "file-system"])
def test_taking_a_held_lock_again_is_an_error_not_a_dead_lock(storage, kind):
    lock = make(kind, storage)
    assert lock.try_acquire()
    with pytest.raises(LockError, match="already"):
        lock.try_acquire()
    lock.verify()
    lock.release()


@pytest.mark.parametrize("kind", ["in-process", "file-system"])
def test_a_lock_that_is_not_held_does_not_verify(storage, kind):
    with pytest.raises(LockError):
        make(kind, storage).verify()


def test_waiting_ends_with_an_error_that_names_the_holder(storage):
    holder, waiter = LocalLock(storage), LocalLock(storage)
    seconds = [0.0]

    def pause(s):
        seconds[0] += s

    def wait():
        try:
            with hold(waiter, 1000, clock=lambda: seconds[0], pause=pause):
                return None
        except LockError as e:
            return e

    assert holder.try_acquire()
    error = in_thread(wait)
    holder.release()
    assert "within 1000 ms" in str(error)
    assert "MainThread" in str(error)
    assert 1.0 <= seconds[0] < 1.5


def test_waiting_ends_when_the_lock_is_free(storage):
    holder, waiter = FileSystemLock(storage), FileSystemLock(storage)
    assert holder.try_acquire()
    with hold(waiter, 1000, pause=lambda s: holder.release()):
        waiter.verify()
    assert storage.info(".hoodie/lock") is None


def test_an_exception_in_the_block_frees_the_lock(storage):
    lock = LocalLock(storage)
    with pytest.raises(KeyError), hold(lock):
        raise KeyError
    with hold(lock):
        pass


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


@pytest.mark.req("CC-06")
def test_the_lock_file_is_that_of_apache_hudi(storage):
    with hold(FileSystemLock(storage)):
        content = json.loads(storage.read(".hoodie/lock"))
        assert set(content) == {"lockCreateTime", "lockThreadName", "lockStacksInfo"}
    assert storage.info(".hoodie/lock") is None


def test_apache_hudis_empty_lock_file_locks_us_out(storage):
    storage.publish(".hoodie/lock", b"")
    lock = FileSystemLock(storage)
    assert not lock.try_acquire()
    assert lock.holder() == ""


@pytest.mark.req("CC-07")
def test_an_expired_lock_file_is_taken_over_and_its_old_holder_notices(storage):
    old = FileSystemLock(storage, expire_minutes=5)
    assert old.try_acquire()
    assert not FileSystemLock(storage, expire_minutes=5).try_acquire()
    assert not FileSystemLock(storage, expire_minutes=0, now=lambda: time.time() + 10**6).try_acquire()
    new = FileSystemLock(storage, expire_minutes=5, now=lambda: time.time() + 301)
    assert new.try_acquire()
    with pytest.raises(LockError, match="taken away"):
        old.verify()
    old.release()
    new.verify()
    new.release()


def test_the_provider_chooses_the_lock(storage, tmp_path):
    assert isinstance(lock_for(storage), LocalLock)
    assert isinstance(lock_for(open_storage("memory://locks/t")), InProcessLock)
    assert isinstance(lock_for(storage, IN_PROCESS), InProcessLock)
    lock = lock_for(storage, FILE_SYSTEM, path=str(tmp_path / "locks"))
    with hold(lock):
        assert (tmp_path / "locks/lock").exists()
    assert isinstance(lock_for(storage, FILE_SYSTEM), FileSystemLock)
    with pytest.raises(UnsupportedError, match="Zookeeper"):
        lock_for(storage, "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider")
