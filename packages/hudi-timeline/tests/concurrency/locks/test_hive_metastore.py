"""Locks of a metastore that comes back without its state, and one that answers late or not at all."""

import uuid

import pytest

from hudi_format.errors import LockError
from hudi_timeline.concurrency.locks import hive_metastore
from hudi_timeline.concurrency.locks.hive_metastore import HiveMetastoreLock
from hudi_timeline.concurrency.locks.provider import InProcessLock
from hudi_timeline.concurrency.locks.thrift_client import RefusedError, ThriftError
from hudi_timeline.options.transaction_config import parse_transaction_options

LOCK = "hoodie.write.lock."
OPTIONS = {
    LOCK + "provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
    LOCK + "hivemetastore.uris": "thrift://127.0.0.1:1",
    LOCK + "hivemetastore.database": "default",
    LOCK + "hivemetastore.table": "t",
}
pytestmark = pytest.mark.req("CC-12")


class Metastore:
    """What a metastore answers; the first lock in its queue is acquired.

    Attributes:
        locks: numbers and who asked for them.
        away: how many calls get no answer.
    """

    def __init__(self):
        self.locks: dict[int, str] = {}
        self.number = self.away = 0
        self.asked = []

    def comes_back_empty(self):
        self.locks, self.number = {}, 0

    def _state(self, number):
        return 1 if number == min(self.locks) else 2

    def call(self, method, argument):
        fields = {number: value for number, _, value in argument[2]}
        self.asked.append(method)
        if self.away:
            self.away -= 1
            raise ThriftError("cut")
        if method == "lock":
            self.number += 1
            self.locks[self.number] = fields[5]
            return {1: self.number, 2: self._state(self.number)}
        if method == "show_locks":
            return {1: [{1: n, 5: self._state(n), 13: a.encode()} for n, a in sorted(self.locks.items())]}
        if fields[1] not in self.locks:
            raise RefusedError(1, {1: b"no such lock"})
        if method == "unlock":
            del self.locks[fields[1]]
        return {1: fields[1], 2: self._state(fields[1])} if method == "check_lock" else None


@pytest.fixture
def metastore(monkeypatch):
    made = Metastore()
    monkeypatch.setattr(
        HiveMetastoreLock, "_once", lambda self, method, argument: made.call(method, argument)
    )
    return made


def lock(**more):
    made = HiveMetastoreLock(parse_transaction_options({**OPTIONS, **more}).lock, pause=lambda s: None)
    made._threads = InProcessLock(f"another of {uuid.uuid4()}")
    return made


def test_anothers_lock_with_our_number_is_neither_held_nor_given_back(metastore):
    first, second = lock(), lock()
    assert first.try_acquire()
    first.verify()
    metastore.comes_back_empty()
    assert second.try_acquire()
    assert first._id == second._id
    with pytest.raises(LockError, match="lost"):
        first.verify()
    first.release()
    assert list(metastore.locks.values()) == [second._agent]
    second.verify()
    second.release()
    assert metastore.locks == {}


def test_a_place_in_the_queue_that_is_anothers_by_now_is_no_lock(metastore):
    first, second, third = lock(), lock(), lock()
    assert first.try_acquire()
    assert not second.try_acquire()
    metastore.comes_back_empty()
    assert third.try_acquire()
    metastore.locks[second._id] = metastore.locks.pop(third._id)
    third._id = second._id
    assert not second.try_acquire()
    third.verify()
    third.release()
    second.release()
    assert metastore.locks == {}
    first.release()


def test_a_metastore_without_an_answer_is_asked_so_often_and_no_longer(metastore, monkeypatch):
    clock = [0.0]
    asked = lock(**{LOCK + "num_retries": "1000"})
    asked._clock = lambda: clock[0]
    asked._pause = lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    metastore.away = 10_000
    with pytest.raises(LockError, match="gives no answer") as e:
        asked.try_acquire()
    assert "hivemetastore.uris" in e.value.remedy
    assert clock[0] < 2 * hive_metastore._LONGEST_S


def test_giving_back_to_a_metastore_that_is_away_is_not_tried_for_long(metastore):
    held = lock()
    assert held.try_acquire()
    metastore.asked.clear()
    metastore.away = 10_000
    held.release()
    assert len(metastore.asked) <= 3
    assert lock()._id == 0


@pytest.mark.parametrize("answer", [None, {}, {1: b"x"}, {2: 1}])
def test_an_answer_without_a_number_is_an_error_in_words(metastore, monkeypatch, answer):
    monkeypatch.setattr(metastore, "call", lambda method, argument: answer if method == "lock" else {})
    with pytest.raises(LockError, match="no number"):
        lock().try_acquire()


def test_who_stands_farther_back_asks_less_often_and_the_whole_queue_is_looked_at_once_a_second(metastore):
    clock, slept = [0.0], []
    waiting = [lock() for _ in range(4)]
    for made in waiting:
        made._clock = lambda: clock[0]
        made._pause = slept.append
    assert waiting[0].try_acquire()
    assert not any(w.try_acquire() for w in waiting[1:])
    for made in waiting[1:]:
        made.wait_for_turn(600)
    assert slept == pytest.approx([0.05, 0.1, 0.15])
    waiting[3].wait_for_turn(0.01)
    assert slept[-1] == 0.01
    metastore.asked.clear()
    for _ in range(9):
        clock[0] += 0.1
        assert not waiting[3].try_acquire()
    assert metastore.asked == ["check_lock"] * 9
    waiting[1].release()
    clock[0] += 0.2
    assert not waiting[3].try_acquire()
    assert metastore.asked[-1] == "show_locks"
    waiting[3].wait_for_turn(600)
    assert slept[-1] == pytest.approx(0.1), "one less stands before it"
    for made in waiting:
        made.release()
    assert metastore.locks == {}
