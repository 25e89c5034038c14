"""Locks by lock file."""

import json
import time

import pytest

from hudi_format.errors import LockError
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.provider import hold

pytestmark = pytest.mark.req("CC-09")


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
