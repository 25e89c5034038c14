"""Writers that are stopped between their last look at the lock and the publication of their commit."""

import json

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, LockError, StorageError, WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.services.compaction import plan_execution
from hudi_timeline.timeline.action_metadata import InstantName, RollbackPlan, render_action
from hudi_timeline.timeline.instant import INFLIGHT, REQUESTED, ROLLBACK, instant_path
from hudi_timeline.transaction import late_publication
from hudi_timeline.transaction.transaction import Transaction

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
OCC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
    "hoodie.clean.automatic": "false",
}
OWN = {"id": "a", "p": "x", "ts": 7}
pytestmark = pytest.mark.req("CC-26")


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(tmp_path, request):
    HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", table_type=request.param, record_keys=["id"],
        partition_fields=["p"], ordering_fields=["ts"],
    )  # fmt: skip
    made = HudiTable.open(str(tmp_path / "t"), options=OCC)
    made.insert([{"id": "a", "p": "x", "ts": 0}, {"id": "b", "p": "y", "ts": 0}])
    return made


@pytest.fixture
def stopped(table, monkeypatch):
    """Stops the next writer right before it publishes, or right after; its lock is taken away meanwhile."""

    def at(*acts, after=()):
        publish, waiting = Transaction._publish, [True]

        def late(transaction, metadata):
            ours = bool(waiting) and waiting.pop()
            if ours:
                transaction._lock.lock._storage.delete(transaction._lock.lock._path)
                for act in acts:
                    act(transaction)
            publish(transaction, metadata)
            for act in after if ours else ():
                act(transaction)

        monkeypatch.setattr(Transaction, "_publish", late)

    return at


@pytest.fixture
def stopped_compaction(table, monkeypatch):
    """A scheduled compaction whose execution is stopped after its last look, before its file; its lock is taken away.

    Given what happens meanwhile, it returns the instant.
    """

    def at(act):
        table.upsert([{**OWN, "ts": 3}])
        instant = table.compact(mode="schedule").scheduled
        publish, check = plan_execution._publish, heartbeat.Heartbeat.check

        def late(context, begun, snapshot, metadata):
            def stopped(beat):
                check(beat)
                monkeypatch.undo()
                context.storage.delete(context.lock.lock._path)
                act(context.storage, begun)

            monkeypatch.setattr(heartbeat.Heartbeat, "check", stopped)
            publish(context, begun, snapshot, metadata)

        monkeypatch.setattr(plan_execution, "_publish", late)
        return instant

    return at


def of_others(*rows):
    return lambda _: HudiTable.open(_.storage.uri).upsert(list(rows), options=OCC)


def taken_for_dead(storage, instant):
    """Its heartbeat names a process that is not there."""
    path = heartbeat.heartbeat_path(instant)
    owner = json.loads(storage.read(path))
    storage.publish(path, json.dumps({**owner, "started": "1", "pid": 4194303}).encode())


def rolled_back(transaction):
    """As a cleaning does to whom it takes for dead."""
    taken_for_dead(transaction.storage, transaction.instant)
    options = {**OCC, "hoodie.cleaner.policy.failed.writes": "LAZY"}
    HudiTable.open(transaction.storage.uri).clean(options=options)
    assert HudiTable.open(transaction.storage.uri).timeline.find(transaction.instant) is None


def content(table):
    table = HudiTable.open(table.uri)
    assert table.verify(deep=True) == []
    return {r["id"]: r["ts"] for r in table.read(["id", "ts"]).to_arrow().to_pylist()}


def test_a_write_that_was_rolled_back_before_it_was_published_is_withdrawn(table, stopped):
    stopped(rolled_back)
    with pytest.raises(ConcurrentWriterError, match="rolled back by another writer"):
        table.upsert([OWN])
    assert content(table) == {"a": 0, "b": 0}
    table.upsert([OWN])
    assert content(table) == {"a": 7, "b": 0}


def test_a_write_that_met_another_one_is_taken_back_and_run_again(table, stopped):
    stopped(of_others({"id": "a", "p": "x", "ts": 5}))
    with pytest.raises(WriteConflictError, match="is rolled back"):
        table.upsert([OWN])
    assert content(table) == {"a": 5, "b": 0}
    stopped(of_others({"id": "a", "p": "x", "ts": 6}))
    result = table.upsert([OWN], options={"hoodie.write.num.retries.on.conflict.failures": "1"})
    assert result.retries == 1
    assert content(table) == {"a": 7, "b": 0}


def test_a_write_that_nobody_met_stands(table, stopped):
    stopped()
    table.upsert([OWN])
    assert content(table) == {"a": 7, "b": 0}
    stopped(of_others({"id": "b", "p": "y", "ts": 5}))
    assert table.upsert([{**OWN, "ts": 8}]).warnings == ()
    assert content(table) == {"a": 8, "b": 5}


def test_what_others_have_built_on_stays_and_is_said(table, stopped):
    stopped(of_others({"id": "a", "p": "x", "ts": 5}), after=[of_others({"id": "a", "p": "x", "ts": 9})])
    result = table.upsert([OWN])
    assert any("cannot be taken back" in w for w in result.warnings)
    assert content(table)["a"] == 9


@pytest.mark.parametrize("is_local", [True, False])
def test_one_of_the_same_time_has_not_seen_it_where_times_are_exact(table, stopped, monkeypatch, is_local):
    """On a local disk whoever sees a commit waits for the clock's next tick; other stores may tell the second only."""
    monkeypatch.setattr(late_publication, "completion_ms", lambda instant, zone: 1_000)
    stopped(
        of_others({"id": "a", "p": "x", "ts": 5}), after=[lambda t: setattr(t.storage, "is_local", is_local)]
    )
    if is_local:
        with pytest.raises(WriteConflictError, match="is rolled back"):
            table.upsert([OWN])
        assert content(table) == {"a": 5, "b": 0}
    else:
        assert any("cannot be taken back" in w for w in table.upsert([OWN]).warnings)


def test_who_cannot_ask_for_the_lock_again_says_so(table, stopped, monkeypatch):
    def unreachable(*_):
        raise LockError("the server gives no answer")

    stopped(lambda _: monkeypatch.setattr(FileSystemLock, "try_acquire", unreachable))
    result = table.upsert([OWN], options={"hoodie.metadata.enable": "false"})
    monkeypatch.undo()
    assert any("gives no answer" in w for w in result.warnings)
    assert content(table) == {"a": 7, "b": 0}


def test_a_store_that_fails_after_the_publication_leaves_a_completed_write(table, stopped, monkeypatch):
    read, failing = FileSystemLock._is_mine, [1, 1]

    def fails_once(lock):
        if failing:
            failing.pop()
            raise StorageError("the store gives no answer")
        return read(lock)

    stopped(after=[lambda _: monkeypatch.setattr(FileSystemLock, "_is_mine", fails_once)])
    result = table.upsert([OWN])
    monkeypatch.undo()
    assert any("gives no answer" in w for w in result.warnings)
    assert content(table) == {"a": 7, "b": 0}


@pytest.mark.parametrize("table", ["MERGE_ON_READ"], indirect=True)
def test_a_compaction_that_was_rolled_back_before_it_was_published_is_withdrawn(table, stopped_compaction):
    def dead(storage, begun):
        taken_for_dead(storage, begun.time)
        HudiTable.open(table.uri, options=OCC).rollback(begun.time)

    instant = stopped_compaction(dead)
    with pytest.raises(ConcurrentWriterError, match="rolled back"):
        table.compact(mode="execute")
    assert content(table) == {"a": 3, "b": 0}
    assert HudiTable.open(table.uri, options=OCC).compact(mode="execute").executed == (instant,)
    assert content(table) == {"a": 3, "b": 0}


@pytest.mark.parametrize("table", ["MERGE_ON_READ"], indirect=True)
def test_a_compaction_whose_beats_were_late_stands_where_nobody_acted_on_it(table, stopped_compaction):
    def longer_than_lease_and_heartbeat(_, begun):
        begun.beat._last_beat -= 10_000

    instant = stopped_compaction(longer_than_lease_and_heartbeat)
    assert table.compact(mode="execute").executed == (instant,)
    assert instant in [i.time for i in HudiTable.open(table.uri).timeline.completed_writes()]
    assert content(table) == {"a": 3, "b": 0}


def begun_rollback(storage, instant, action):
    """A rollback that deleted files and then stopped: its plan is there, and the instant's own files are."""
    plan = RollbackPlan(InstantName(instant, action))
    at = str(int(instant) + 1)
    config = HudiTable.open(storage.uri).config
    storage.create(instant_path(config, at, ROLLBACK, REQUESTED), render_action(plan))
    storage.create(instant_path(config, at, ROLLBACK, INFLIGHT), b"")


def test_a_write_whose_rollback_was_begun_is_withdrawn(table, stopped):
    stopped(lambda t: begun_rollback(t.storage, t.instant, t.action))
    with pytest.raises(ConcurrentWriterError, match="rolled back"):
        table.upsert([OWN])
    found = HudiTable.open(table.uri).read(["id", "ts"]).to_arrow().to_pylist()
    assert {"id": "a", "ts": 0} in found


@pytest.mark.parametrize("table", ["MERGE_ON_READ"], indirect=True)
def test_a_compaction_whose_rollback_was_begun_is_withdrawn(table, stopped_compaction):
    instant = stopped_compaction(lambda storage, begun: begun_rollback(storage, begun.time, "compaction"))
    with pytest.raises(ConcurrentWriterError, match="rolled back"):
        table.compact(mode="execute")
    assert instant not in [i.time for i in HudiTable.open(table.uri).timeline.completed_writes()]
