"""Heartbeats: who is alive, who is dead, and when a writer must give up."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from hudi_format.errors import ConcurrentWriterError, StorageError
from hudi_format.storage.local import LocalStorage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.heartbeat import heartbeat_path, liveness

T = "20260101000000000"
pytestmark = pytest.mark.req("CC-25")


def foreign(storage, **changes):
    """A heartbeat as another process would write it."""
    owner = {**json.loads(json.dumps(heartbeat.asdict(heartbeat.this_process()))), "token": "x", **changes}
    storage.publish(heartbeat_path(T), json.dumps(owner).encode())


def test_a_running_writer_is_alive_and_leaves_no_file(storage):
    beat = heartbeat.start(storage, T)
    state = liveness(storage, T)
    assert state.alive
    assert state.age_ms < 60_000
    assert state.owner.pid == os.getpid()
    assert heartbeat.list_instants(storage) == [T]
    beat.check()
    beat.stop()
    beat.stop()
    assert heartbeat.list_instants(storage) == []
    assert not liveness(storage, T).alive


def test_without_a_file_the_writer_is_dead(storage):
    state = liveness(storage, T)
    assert (state.alive, state.age_ms) == (False, None)


def test_apache_hudis_empty_file_counts_by_its_age(storage):
    storage.publish(heartbeat_path(T), b"")
    assert liveness(storage, T).alive
    beat_at = storage.info(heartbeat_path(T)).mtime_ms / 1000
    late = liveness(storage, T, now=lambda: beat_at + 121.5)
    assert not late.alive
    assert "121 s old" in late.reason
    assert liveness(storage, T, interval_ms=100_000, now=lambda: beat_at + 121.5).alive


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"3", b'{"pid": "x"}', b'{"what": 1}', b"\xff", b'{"pid": 1e999}']
)
def test_a_file_of_nonsense_counts_by_its_age(storage, content):
    storage.publish(heartbeat_path(T), content)
    assert liveness(storage, T).alive


def test_the_longer_of_both_writers_intervals_counts(storage):
    foreign(storage, pid=1, started="", interval_ms=3_600_000, misses=2)
    assert liveness(storage, T, now=lambda: time.time() + 7000).alive
    assert not liveness(storage, T, now=lambda: time.time() + 7300).alive


@pytest.mark.parametrize("ahead_s", [-900, 900])
def test_a_writer_is_not_dead_because_the_clock_of_who_looks_is_wrong(storage, ahead_s):
    foreign(storage, boot="another", interval_ms=60_000, misses=2)
    assert liveness(storage, T, now=lambda: time.time() + ahead_s, to_act=True).alive
    os.utime(f"{storage.uri}/{heartbeat_path(T)}", (time.time() - 130,) * 2)
    state = liveness(storage, T, now=lambda: time.time() + max(ahead_s, 0), to_act=True)
    assert not state.alive
    assert 129_000 < state.age_ms < 200_000


def test_another_machines_writer_counts_by_its_age(storage):
    foreign(storage, boot="another", pid=2**22 + 1)
    assert liveness(storage, T).alive


@pytest.mark.parametrize("pid", [2**31, 2**63, 10**400])
def test_a_number_that_no_process_has_is_dead(storage, pid):
    foreign(storage, pid=pid)
    assert not liveness(storage, T).alive


@pytest.mark.parametrize("pid", ["\u00b2", "\u0663", "1" * 5000, "-1", ""])
def test_a_word_without_a_number_names_no_process(pid):
    assert heartbeat.Owner.of_text(f"host|boot|space|{pid}|started") is None


def test_a_leftover_ofthis_process_is_dead_at_once(storage):
    foreign(storage)
    state = liveness(storage, T)
    assert not state.alive
    assert "has ended" in state.reason


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_a_number_that_another_process_has_now_is_dead(storage):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        foreign(storage, pid=child.pid, started="1")
        assert not liveness(storage, T).alive
        foreign(storage, pid=child.pid, started=heartbeat._start_and_state(child.pid)[0])
        assert liveness(storage, T).alive
    finally:
        child.kill()
        child.communicate()


WRITER = """
import sys, time
from hudi_format.storage.open import LocalStorage
from hudi_timeline.concurrency import heartbeat
heartbeat.start(LocalStorage(sys.argv[1]), sys.argv[2])
print("beating", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_a_killed_process_is_dead_at_once_even_before_it_is_reaped(storage):
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, storage.uri, T], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "beating\n"
        state = liveness(storage, T)
        assert state.alive
        assert state.owner.pid == child.pid
        os.kill(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, still in the table of processes
        assert not liveness(storage, T).alive
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert not liveness(storage, T).alive


@pytest.mark.req("CC-26")
def test_a_writer_whose_beats_were_missed_gives_up(storage):
    seconds = [100.0]
    beat = heartbeat.start(storage, T, clock=lambda: seconds[0])
    seconds[0] += 119
    beat.check()
    seconds[0] += 2
    with pytest.raises(ConcurrentWriterError, match="121 s ago") as e:
        beat.check()
    assert e.value.instant == T
    beat.beat()
    beat.check()
    beat.stop()


@pytest.mark.req("CC-26")
def test_a_writer_whose_file_was_removed_gives_up_and_does_not_make_it_again(storage):
    beat = heartbeat.start(storage, T)
    heartbeat.delete(storage, T)
    with pytest.raises(ConcurrentWriterError, match="removed"):
        beat.check()
    beat.beat()
    assert heartbeat.list_instants(storage) == []
    with pytest.raises(ConcurrentWriterError, match="removed"):
        beat.check()
    beat.stop()


@pytest.mark.req("CC-26")
def test_a_writer_whose_beat_was_removed_before_it_was_in_its_place_gives_up(storage, monkeypatch):
    """Stopped at that moment, and taken for dead: its file and its temporary ones are gone when it goes on."""
    beat = heartbeat.start(storage, T)
    replace = os.replace

    def taken(temporary, full):
        os.unlink(temporary)
        os.unlink(full)
        replace(temporary, full)

    monkeypatch.setattr(os, "replace", taken)
    beat.beat()
    monkeypatch.undo()
    assert heartbeat.list_instants(storage) == []
    with pytest.raises(ConcurrentWriterError, match="removed"):
        beat.check()
    beat.stop()


def test_a_writer_whose_file_is_anothers_gives_up(storage):
    beat = heartbeat.start(storage, T)
    foreign(storage)
    with pytest.raises(ConcurrentWriterError, match="another writer"):
        beat.check()
    beat.stop()


def test_an_instant_that_has_a_heartbeat_is_not_taken_over(storage):
    beat = heartbeat.start(storage, T)
    with pytest.raises(FileExistsError):
        heartbeat.start(storage, T)
    beat.check()
    beat.stop()


class _Refusing(LocalStorage):
    refuse = False

    def publish(self, path, data):
        if self.refuse:
            raise StorageError("no space")
        super().publish(path, data)


def test_a_beat_that_the_storage_refuses_is_named_once_it_is_too_late(storage):
    refusing = _Refusing(storage.uri)
    seconds = [0.0]
    beat = heartbeat.start(refusing, T, clock=lambda: seconds[0])
    refusing.refuse = True
    seconds[0] = 60
    beat.beat()
    beat.check()
    seconds[0] = 121
    with pytest.raises(ConcurrentWriterError, match="no space"):
        beat.check()
    beat.stop()


class _Renewed(LocalStorage):
    """Tells when a heartbeat was renewed."""

    def __init__(self, uri):
        super().__init__(uri)
        self.renewed = threading.Event()

    def publish(self, path, data):
        super().publish(path, data)
        self.renewed.set()


def test_the_thread_renews_the_file(storage):
    telling = _Renewed(storage.uri)
    beat = heartbeat.start(telling, T, interval_ms=1)
    assert telling.renewed.wait(300)  # for ever, as far as a busy machine goes
    beat.stop()
    assert not beat._thread.is_alive()
