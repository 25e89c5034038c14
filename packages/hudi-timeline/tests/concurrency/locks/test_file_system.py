"""Locks by lock file."""

import json
import os
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


@pytest.mark.parametrize("ahead_s", [-900, 900])
def test_a_wrong_clock_takes_no_fresh_lock_file_for_an_old_one(storage, monkeypatch, ahead_s):
    real = time.time
    held = FileSystemLock(storage, expire_minutes=5)
    assert held.try_acquire()
    monkeypatch.setattr(time, "time", lambda: real() + ahead_s)
    other = FileSystemLock(storage, expire_minutes=5)
    assert not other.try_acquire()
    monkeypatch.undo()
    held.verify()
    os.utime(f"{storage.uri}/.hoodie/lock", (real() - 301,) * 2)
    monkeypatch.setattr(time, "time", lambda: real() + max(ahead_s, 0))
    assert other.try_acquire()
    with pytest.raises(LockError, match="taken away"):
        held.verify()
    other.release()
    assert os.listdir(f"{storage.uri}/.hoodie").count("lock") == 0


def test_who_holds_it_for_so_long_that_others_take_it_for_left_over_does_not_pass(storage):
    clock = [0.0]
    held = FileSystemLock(storage, expire_minutes=5, steady=lambda: clock[0])
    assert held.try_acquire()
    clock[0] = 299
    held.verify()
    clock[0] = 301
    with pytest.raises(LockError, match="left over") as e:
        held.verify()
    assert "filesystem.expire" in e.value.remedy
    held.release()
    assert storage.info(".hoodie/lock") is None


def test_a_lock_file_that_another_contender_has_just_made_is_not_taken_away(storage, monkeypatch):
    dead, quick, late = (FileSystemLock(storage, expire_minutes=5) for _ in range(3))
    assert dead.try_acquire()
    path = f"{storage.uri}/.hoodie/lock"
    os.utime(path, (time.time() - 400,) * 2)
    rename, first = type(storage).rename, []

    def after_another(self, source, target):
        if not first:
            first.append(source)
            assert quick.try_acquire()
        rename(self, source, target)

    monkeypatch.setattr(type(storage), "rename", after_another)
    assert not late.try_acquire()
    quick.verify()
    quick.release()
    assert late.try_acquire()
    late.release()
