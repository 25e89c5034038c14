"""What every lock of a table keeps: one holder, waiting for it, and an end with its block."""

import threading

import pytest

from hudi_format.errors import LockError, StorageError
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.local import LocalLock
from hudi_timeline.concurrency.locks.provider import InProcessLock, TableLock, hold

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


class Queue(FileSystemLock):
    """A lock that says when its turn comes."""

    def wait_for_turn(self, seconds):
        self.waited = [*getattr(self, "waited", []), seconds]
        if len(self.waited) == 3:
            self.free()


def test_a_place_in_a_queue_is_waited_for_until_the_deadline(storage):
    holder, waiter = FileSystemLock(storage), Queue(storage)
    waiter.free = holder.release
    seconds = iter([0.0, 0.1, 0.2, 0.9])
    assert holder.try_acquire()
    with hold(waiter, 1000, clock=lambda: next(seconds), pause=None):
        waiter.verify()
    assert waiter.waited == pytest.approx([0.9, 0.8, 0.1])


def test_an_exception_in_the_block_frees_the_lock(storage):
    lock = LocalLock(storage)
    with pytest.raises(KeyError), hold(lock):
        raise KeyError
    with hold(lock):
        pass


@pytest.mark.parametrize(
    "error", [StorageError("no answer"), OSError("no answer"), RuntimeError("no answer")]
)
def test_a_lock_that_cannot_be_given_back_leaves_what_was_done_under_it_done(storage, caplog, error):
    class NoAnswer(FileSystemLock):
        def release(self):
            if failing:
                raise error
            super().release()

    failing = True
    lock = NoAnswer(storage)
    with hold(lock):
        pass
    assert [r.message for r in caplog.records if lock.name in r.message and "no answer" in r.message]
    with pytest.raises(KeyError), hold(other := NoAnswer(storage, "elsewhere")):
        raise KeyError
    # This process tries it again when it takes a lock next, be it the same one.
    failing = False
    with hold(lock):
        lock.verify()
    assert not lock.holder()
    assert not other.holder()


def test_what_could_not_be_given_back_is_not_given_back_when_it_is_held_anew(storage):
    """By another thread that takes any lock: the handle is the same, and held by now."""

    class RunsOut(InProcessLock):
        def release(self):
            if calls.pop():
                raise OSError("no answer")
            super().release()

    def elsewhere():
        with hold(InProcessLock("another")):
            return True

    lock, calls = RunsOut(storage.uri), [False, True, True]
    with hold(lock):
        pass
    InProcessLock.release(lock)  # it ran out by itself
    with hold(lock):  # after it was tried again in vain
        assert calls == [False]
        assert in_thread(elsewhere)
        lock.verify()
    assert calls == []


def test_the_lock_of_a_table_waits_as_long_as_its_options_say(storage):
    first, second = (TableLock(InProcessLock(storage.uri), wait_ms) for wait_ms in (60_000, 0))

    def taken():
        with second.held():
            return True

    def refused():
        with pytest.raises(LockError, match="within 0 ms"):
            taken()
        return True

    with first.held():
        first.verify()
        with pytest.raises(LockError):
            second.verify()
        assert in_thread(refused)
    assert taken()


def test_further_tries_pause_and_give_up_their_place_in_between(storage):
    holder, waiter = FileSystemLock(storage), FileSystemLock(storage)
    pauses, given_up = [], []
    release = waiter.release
    waiter.release = lambda: (given_up.append(len(pauses)), release())
    assert holder.try_acquire()
    with (
        pytest.raises(LockError, match="in each of 3 tries"),
        hold(waiter, 0, retries=2, retry_pause_ms=5000, pause=pauses.append),
    ):
        pass
    assert pauses == [5.0, 5.0]
    assert given_up == [0, 1, 2]
    with hold(waiter, 0, retries=2, retry_pause_ms=5000, pause=lambda s: holder.release()):
        waiter.verify()
