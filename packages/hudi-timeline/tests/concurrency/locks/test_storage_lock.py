"""Leases in a lock file: clocks of their writers that are wrong, that are set, and that stand still."""

import json
import time
import uuid

import pytest

from hudi_format.errors import LockError
from hudi_format.storage.open import open_storage
from hudi_timeline.concurrency import store_clock
from hudi_timeline.concurrency.locks.provider import InProcessLock
from hudi_timeline.concurrency.locks.storage_lock import PATH, StorageLock
from hudi_timeline.testing import memory_storage
from hudi_timeline.testing.memory_storage import MemoryStorage

REAL = time.time


class Clocks:
    """By how much the clock of whoever acts now is ahead, and what the store's says."""

    def __init__(self):
        self.ahead_s = self.passed_s = 0.0


@pytest.fixture
def clocks(monkeypatch):
    made = Clocks()
    monkeypatch.setattr(time, "time", lambda: REAL() + made.passed_s + made.ahead_s)
    monkeypatch.setattr(memory_storage, "_now_ms", lambda: int((REAL() + made.passed_s) * 1000))
    store_clock._known.clear()
    return made


@pytest.fixture
def store():
    return MemoryStorage()


def of_another_process(store, **more):
    lock = StorageLock(store, **more)
    lock._threads = InProcessLock(f"another of {uuid.uuid4()}")
    return lock


def not_of_this_machine(store):
    """The lease there, as a process of another machine has it."""
    value = json.loads(store.read(PATH))
    head, _, _ = value["owner"].rpartition(" ")
    store.publish(PATH, json.dumps({**value, "owner": f"{head} other|boot|space|1|2"}).encode())


@pytest.mark.parametrize(("holder_s", "other_s"), [(-900, 0), (0, 900), (-900, 900), (0, -900), (0, 0)])
def test_a_live_lease_is_nobody_elses_whichever_clock_is_wrong(store, clocks, holder_s, other_s):
    clocks.ahead_s = holder_s
    assert of_another_process(store).try_acquire()
    not_of_this_machine(store)
    clocks.ahead_s = other_s
    other = of_another_process(store)
    assert not other.try_acquire()
    clocks.passed_s = 290
    assert not other.try_acquire()
    clocks.passed_s = 303 + max(-other_s, 0)
    assert other.try_acquire()
    other.verify()


def test_a_lease_of_apache_hudi_counts_by_the_stores_clock(store, clocks):
    until = int((REAL() + 300) * 1000)
    store.create(PATH, json.dumps({"expired": False, "validUntil": until, "owner": "a JVM"}).encode())
    clocks.ahead_s = 900
    lock = of_another_process(store)
    assert not lock.try_acquire()
    clocks.passed_s = 303
    assert lock.try_acquire()


@pytest.mark.parametrize("set_s", [-3600, 0])
def test_a_holder_renews_although_its_clock_was_set_back_or_stood_still(store, clocks, set_s):
    steady = [0.0]
    held = of_another_process(store, steady=lambda: steady[0])
    assert held.try_acquire()
    first = store.read(PATH)
    held.verify()
    assert store.read(PATH) == first
    clocks.ahead_s, clocks.passed_s = set_s, 200
    steady[0] = 0 if not set_s else 200  # it stands still in a machine that is suspended
    held.verify()
    assert store.read(PATH) != first
    clocks.passed_s, clocks.ahead_s = 400, 0  # 200 s after the renewal
    not_of_this_machine(store)
    assert not of_another_process(store).try_acquire()


def test_a_holder_that_was_away_for_longer_than_its_lease_asks_who_has_it(store, clocks):
    held = of_another_process(store)
    assert held.try_acquire()
    not_of_this_machine(store)
    clocks.passed_s = 303
    other = of_another_process(store)
    assert other.try_acquire()
    with pytest.raises(LockError, match="taken away"):
        held.verify()
    held.release()
    other.verify()


def test_a_store_that_replaces_nothing_on_condition_has_another_lock(tmp_path):
    with pytest.raises(LockError, match=r"omit hoodie\.write\.lock\.provider: the processes of this machine"):
        StorageLock(open_storage(str(tmp_path)))
    with pytest.raises(LockError, match=r"name another one with hoodie\.write\.lock\.provider"):
        StorageLock(open_storage("memory://without-conditions/t"))
