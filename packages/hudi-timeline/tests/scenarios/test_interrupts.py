"""After KeyboardInterrupt at any step the same process writes on at once, though a notebook keeps the traceback.

A sample of the steps here; `HUDI_SOAK=1` (nox session `soak`) tries many more.
"""

import os
import random
import shutil
import sys
import threading

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, HudiError, LockError, UnsupportedError
from hudi_format.schema.input_rows import as_reader
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks import provider
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.local import LocalLock
from hudi_timeline.concurrency.locks.provider import InProcessLock
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.testing.interrupts import Interrupt, steps_of
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.instant_generator import new_instant
from hudi_timeline.transaction.transaction import begin_transaction
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

LONG = os.environ.get("HUDI_SOAK") == "1"
STEPS = int(os.environ.get("HUDI_INTERRUPTS") or (200 if LONG else 6))
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
OPTIONS = {
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.write.lock.wait_time_ms": "500",
}
ALONE = {**OPTIONS, "hoodie.table.services.enabled": "false"}
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}


def pair(v):
    return [{"id": "a", "p": "x", "v": v, "ts": v}, {"id": "b", "p": "y", "v": -v, "ts": v}]


def commits(t):
    return sorted(t.inspect.commits().column("instant").to_pylist())


def overwrite(t, v):
    storage = open_storage(t.storage.uri)
    return execute(LocalEngine(), storage, as_reader(pair(v)), {**OPTIONS, **TABLE}, mode="overwrite")


OPERATIONS = {
    "upsert": lambda t, v: t.upsert(pair(v), options=OPTIONS),
    "upsert without services": lambda t, v: t.upsert(pair(v), options=ALONE),
    "bulk_insert": lambda t, v: t.bulk_insert([{"id": "c", "p": "x", "v": 0, "ts": v}], options=OPTIONS),
    "insert_overwrite": lambda t, v: t.insert_overwrite(pair(v), options=OPTIONS),
    "delete": lambda t, v: t.delete("id = 'k'", options=OPTIONS),
    "overwrite": overwrite,
    "lock file": lambda t, v: t.upsert(
        pair(v),
        options={**ALONE, "hoodie.write.lock.provider":
                 "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"},
    ),
    "clean": lambda t, v: t.clean(options=OPTIONS),
    "archive": lambda t, v: t.archive(options=OPTIONS),
    "savepoint": lambda t, v: t.delete_savepoint(t.savepoint(options=OPTIONS), options=OPTIONS),
    "rollback": lambda t, v: t.rollback(commits(t)[-1], options=OPTIONS),
    "restore": lambda t, v: t.restore(commits(t)[-2], options=OPTIONS),
    "downgrade": lambda t, v: t.downgrade(5, options=OPTIONS),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table in which every service has something to do."""
    path = tmp_path_factory.mktemp("made") / "t"
    t = HudiTable.create(path, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"],
                         ordering_fields=["ts"])  # fmt: skip
    t.insert([{"id": "k", "p": "x", "v": 0, "ts": 0}], options=ALONE)
    for v in range(1, 8):
        t.upsert(pair(v), options=ALONE)
    return path


def interrupted(made, path, name, at):
    """Interrupt an operation on a copy of the table, and give what does not hold afterwards."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(made, path)
    t = HudiTable.open(path)
    target = commits(t)[-2]
    try:
        with Interrupt(at) as struck:
            OPERATIONS[name](t, 100)
    except HudiError as e:
        sys.last_value = e
    sys.last_value = struck.error or getattr(sys, "last_value", None)  # as a notebook does
    try:
        problems = list(_problems(t, name, path, target))
    except Exception as e:  # noqa: BLE001 - each is a finding, told with its step
        problems = [f"{type(e).__name__}: {e}"]
    finally:
        # What one step leaves is told once, and not of all steps and operations that follow it.
        provider._held.clear()
        for beat in list(heartbeat._running.values()):
            beat.give_up()
    return [f"{name} at {at}, {struck.where}: {p}" for p in problems]


def _problems(t, name, path, target):
    try:
        _write_on(t, name, target)
    except (LockError, ConcurrentWriterError) as e:
        yield f"cannot write on: {type(e).__name__}: {e}"
        return
    rows = {r["id"]: r for r in t.read().to_arrow().to_pylist()}
    if rows["next"]["v"] != 1 or rows["a"]["v"] != -rows["b"]["v"] or rows["a"]["v"] not in (6, 7, 100):
        yield f"wrong rows {rows}"
    if provider._held:
        yield f"locks are held: {provider._held}"
    if heartbeat._running or beating():
        yield "a heartbeat goes on"
    for finding in t.verify(deep=True):
        if finding.severity.name != "INFO":
            yield f"verify: {finding.severity.name} {finding.code} {finding.path} {finding.message}"
    hidden = [n for n in os.listdir(path) if n.startswith(".") and n != ".hoodie"]
    if hidden:
        yield f"left behind: {hidden}"


def _write_on(t, name, target):
    row = [{"id": "next", "p": "x", "v": 1, "ts": 1}]
    try:
        return t.upsert(row, options=OPTIONS)
    except UnsupportedError as e:
        # As documented: a restore or downgrade that was begun is called again, and goes on.
        if name == "restore" and "restore" in str(e):
            t.restore(target, options=OPTIONS)
        elif name == "downgrade" and "version 5" in str(e):
            t.upgrade(options=OPTIONS)
        else:
            raise
    return t.upsert(row, options=OPTIONS)


@pytest.mark.req("RC-01", "CC-25")
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.sampled(8, values=False)
def test_an_interrupt_at_any_step_lets_the_same_process_write_on(made, tmp_path, name):
    shutil.copytree(made, tmp_path / "t")
    count = steps_of(lambda: OPERATIONS[name](HudiTable.open(tmp_path / "t"), 100))
    assert count > 100
    chosen = sorted(random.Random(f"{name} {STEPS}").sample(range(1, count), min(STEPS, count - 1)))
    bad = [p for at in chosen for p in interrupted(made, tmp_path / "t", name, at)]
    assert not bad, "\n".join(bad[:20])


def _lock(kind, path):
    storage = open_storage(path)
    return {"in process": lambda: InProcessLock(storage.uri), "flock": lambda: LocalLock(storage),
            "file": lambda: FileSystemLock(storage)}[kind]()  # fmt: skip


@pytest.mark.parametrize("kind", ["in process", "flock", "file"])
def test_a_lock_is_free_after_an_interrupt_at_each_step_of_holding_it(made, kind):
    inside = ("hudi_", "contextlib")

    def hold(lock):
        with provider.hold(lock, 0):
            lock.verify()

    count = steps_of(lambda: hold(_lock(kind, made)), within=inside)
    for at in range(1, count + 1):
        with Interrupt(at, within=inside) as struck:
            hold(_lock(kind, made))
        sys.last_value = struck.error
        hold(_lock(kind, made))
        assert not provider._held, struck.where
    assert count > 20


def beating():
    """Threads of heartbeats that go on; one that was told to end may need a moment on a busy machine."""
    found = [x for x in threading.enumerate() if x.name.startswith("hudi-heartbeat")]
    for thread in found:
        thread.join(20)
    return [x for x in found if x.is_alive()]


@pytest.mark.req("CC-25")
@pytest.mark.timeout(60)  # what is left held makes the next one wait for ever
@pytest.mark.parametrize("ended", [heartbeat.Heartbeat.stop, heartbeat.Heartbeat.give_up])
def test_no_heartbeat_is_left_after_an_interrupt_at_each_step_of_keeping_it(tmp_path, ended):
    storage = open_storage(tmp_path)
    instants = iter(range(20260101000000000, 20270101000000000))

    def keep():
        beat = heartbeat.start(storage, str(next(instants)), call=RunningCall.here())
        beat.check()
        ended(beat)

    count = steps_of(keep)
    for at in range(1, count + 1):
        with Interrupt(at) as struck:
            keep()
        sys.last_value = struck.error
        keep()
        assert not heartbeat._running, struck.where
        assert not beating(), struck.where
    assert count > 100


@pytest.mark.req("CC-25")
@pytest.mark.timeout(60)
def test_a_heartbeat_ends_after_an_interrupt_at_each_step_of_ending_it_in_pythons_own_modules_too(tmp_path):
    storage = open_storage(tmp_path)
    inside = ("hudi_", "threading.py")

    def begun(number):
        return heartbeat.start(storage, f"202601010000{number:05}", call=RunningCall.here())

    counted = begun(0)
    count = steps_of(counted.stop, within=inside)
    for at in range(1, count + 1):
        beat = begun(at)
        with Interrupt(at, within=inside) as struck:
            beat.stop()
        sys.last_value = struck.error
        beat.stop()
        assert not heartbeat._running, struck.where
        assert not beating(), struck.where
    assert count > 20


@pytest.mark.req("CC-25")
@pytest.mark.timeout(60)
def test_an_interrupt_at_each_step_of_a_new_instant_lets_the_next_one_be_made(made):
    t = HudiTable.open(made)
    timeline = load_timeline(t.storage, t.config)

    def make():
        return new_instant(timeline, t.config)

    count = steps_of(make)
    for at in range(1, count + 1):
        before = make()
        with Interrupt(at):
            make()
        assert make() > before
    assert count > 5


@pytest.mark.req("CC-25")
def test_a_block_that_was_given_up_does_not_give_back_what_is_held_anew(made):
    lock = _lock("flock", made)
    block = provider.hold(lock, 0)

    def interrupted_before_its_end():
        block.__enter__()

    interrupted_before_its_end()
    with provider.hold(lock, 0):
        block.gen.close()  # as when its traceback goes
        lock.verify()


@pytest.mark.req("CC-25")
def test_what_another_thread_holds_is_not_taken_from_it(made):
    taken, done = threading.Event(), threading.Event()

    def holder():
        with provider.hold(_lock("flock", made), 0):
            taken.set()
            done.wait(30)

    thread = threading.Thread(target=holder)
    thread.start()
    try:
        assert taken.wait(30)
        with pytest.raises(LockError), provider.hold(_lock("flock", made), 0):
            pass
    finally:
        done.set()
        thread.join()
    with provider.hold(_lock("flock", made), 0):
        pass


@pytest.mark.req("CC-25")
def test_a_write_counts_as_dead_once_the_call_that_made_it_is_over(made, tmp_path):
    shutil.copytree(made, tmp_path / "t")
    t = HudiTable.open(tmp_path / "t")
    kept = []

    def write(ends):
        kept.append(begin_transaction(t.storage, t.config, operation="UPSERT", caller=RunningCall.here()))
        with pytest.raises(ConcurrentWriterError):
            begin_transaction(t.storage, t.config, operation="UPSERT")
        if ends:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(True)
    with begin_transaction(t.storage, t.config, operation="UPSERT") as ours:
        assert kept[0].instant not in {i.time for i in ours.snapshot.timeline.instants}
        with pytest.raises(ConcurrentWriterError):
            kept[0].inflight(None)


def test_an_interrupt_after_the_commit_says_that_it_is_visible(made, tmp_path):
    shutil.copytree(made, tmp_path / "t")
    t = HudiTable.open(tmp_path / "t")

    def write(transaction):
        with transaction:
            transaction.inflight(None)
            publish = transaction._publish

            def interrupted(metadata):
                publish(metadata)
                raise KeyboardInterrupt

            transaction._publish = interrupted
            transaction.commit([], schema_text="")

    with pytest.raises(KeyboardInterrupt) as caught:
        write(begin_transaction(t.storage, t.config, operation="UPSERT"))
    assert "completed and visible" in caught.value.__notes__[0]
