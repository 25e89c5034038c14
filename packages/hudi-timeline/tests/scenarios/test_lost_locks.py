"""Services that are stopped under the lock for longer than it lasts, and go on after others had it."""

import json
from contextlib import suppress

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, HudiError, LockError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.services import cleaning
from hudi_timeline.services.compaction import plan_execution
from hudi_timeline.timeline.instant import COMPACTION

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
LOCK_FILE = ".hoodie/lock"
OCC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.enable": "true",
}
pytestmark = pytest.mark.req("CC-26")


class Killed(BaseException):
    """The process is no more."""


def made(path, table_type):
    HudiTable.create(
        path, SCHEMA, name="t", table_type=table_type, record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
    )  # fmt: skip
    table = HudiTable.open(path, options=OCC)
    table.insert([{"id": "a", "p": "x", "ts": 0}, {"id": "b", "p": "y", "ts": 0}])
    for ts in (1, 2):
        table.upsert([{"id": "a", "p": "x", "ts": ts}])
    return table


@pytest.fixture
def stop_before(monkeypatch):
    """Stops whoever is about to change a file, as `which` says, under the lock; its lock is taken away meanwhile."""

    def arrange(which, meanwhile):
        waiting = [True]

        def stopping(name, act):
            def change(self, path, *rest, **more):
                if waiting and LOCK_FILE not in path and which(name, f"{self.uri}/{path}"):
                    waiting.clear()
                    try:
                        meanwhile()
                    except HudiError as e:
                        raise AssertionError("the others failed") from e
                return act(self, path, *rest, **more)

            return change

        for name in ("create", "delete", "publish"):
            monkeypatch.setattr(LocalStorage, name, stopping(name, getattr(LocalStorage, name)))
        return waiting

    return arrange


def dead_compaction(table, monkeypatch):
    """A compaction whose process died before it was completed; gives its instant."""

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(plan_execution, "_publish", killed)
        patch.setattr(plan_execution, "_give_back", lambda *_: None)
        with pytest.raises(Killed):
            table.compact()
    (pending,) = HudiTable.open(table.uri).timeline.pending(COMPACTION)
    taken_for_dead(table, pending.time)
    return pending.time


def taken_for_dead(table, instant):
    """Its heartbeat names a process that is not there."""
    path = heartbeat.heartbeat_path(instant)
    owner = json.loads(table.storage.read(path))
    table.storage.publish(path, json.dumps({**owner, "started": "1", "pid": 4194303}).encode())


@pytest.mark.parametrize(
    ("change", "end"),
    [
        ("delete", ".parquet"),
        ("delete", ".compaction.inflight"),
        ("create", ".deltacommit.requested"),
    ],
)
@pytest.mark.sampled(3)
def test_a_rollback_of_a_compaction_that_was_run_again_meanwhile_takes_nothing_of_it(
    tmp_path, monkeypatch, stop_before, change, end
):
    path = str(tmp_path / "t")
    table = made(path, "MERGE_ON_READ")
    instant = dead_compaction(table, monkeypatch)

    def meanwhile():
        table.storage.delete(LOCK_FILE)
        other = HudiTable.open(path, options=OCC)
        other.clean()
        other.compact()
        assert HudiTable.open(path).timeline.find(instant).completed
        other.upsert([{"id": "b", "p": "y", "ts": 5}])

    waiting = stop_before(lambda name, full: name == change and full.endswith(end), meanwhile)
    with suppress(LockError, ConcurrentWriterError):
        HudiTable.open(path, options=OCC).rollback(instant)
    assert not waiting
    assert rows(path) == {"a": 2, "b": 5}
    HudiTable.open(path, options=OCC).upsert([{"id": "a", "p": "x", "ts": 9}])
    assert rows(path) == {"a": 9, "b": 5}
    errors = [f for f in HudiTable.open(path, options=OCC).verify(deep=True) if f.severity == "error"]
    assert errors == []


def test_a_cleaning_that_lost_its_lock_deletes_nothing_that_a_savepoint_keeps_by_now(
    tmp_path, monkeypatch, stop_before
):
    monkeypatch.setattr(cleaning, "_THREADS", 1)
    path = str(tmp_path / "t")
    table = made(path, "COPY_ON_WRITE")
    for ts in (3, 4):
        table.upsert([{"id": "a", "p": "x", "ts": ts}])
    kept = table.timeline.completed_writes()[-3].time

    def meanwhile():
        table.storage.delete(LOCK_FILE)
        HudiTable.open(path, options=OCC).savepoint(kept)

    waiting = stop_before(lambda name, full: name == "delete" and full.endswith(".parquet"), meanwhile)
    with pytest.raises(LockError, match="taken away"):
        HudiTable.open(path, options=OCC).clean()
    assert not waiting
    assert {r["id"]: r["ts"] for r in HudiTable.open(path).read(as_of=kept).to_arrow().to_pylist()} == {
        "a": 2,
        "b": 0,
    }


def test_a_restore_that_lost_its_lock_before_it_began_shuts_the_table_to_nobody(tmp_path, stop_before):
    path = str(tmp_path / "t")
    table = made(path, "COPY_ON_WRITE")
    to = table.timeline.completed_writes()[-2].time

    def meanwhile():
        table.storage.delete(LOCK_FILE)
        HudiTable.open(path, options=OCC).upsert([{"id": "b", "p": "y", "ts": 5}])

    waiting = stop_before(
        lambda name, full: name == "create" and full.endswith("hoodie.properties"), meanwhile
    )
    with pytest.raises(ConcurrentWriterError, match="has taken the lock meanwhile"):
        HudiTable.open(path, options=OCC).restore(to)
    assert not waiting
    HudiTable.open(path, options=OCC).upsert([{"id": "b", "p": "y", "ts": 6}])
    assert rows(path) == {"a": 2, "b": 6}


@pytest.mark.parametrize("state", ["requested", "inflight"])
@pytest.mark.sampled(2)
def test_a_write_that_was_rolled_back_while_it_was_mirrored_is_not_in_the_metadata_table(
    tmp_path, stop_before, state
):
    path = str(tmp_path / "t")
    table = made(path, "COPY_ON_WRITE")

    def meanwhile():
        table.storage.delete(LOCK_FILE)
        taken_for_dead(table, HudiTable.open(path).timeline.pending_writes()[-1].time)
        other = HudiTable.open(path, options=OCC)
        other.rollback()
        other.upsert([{"id": "b", "p": "y", "ts": 5}])

    end = f".deltacommit.{state}"
    waiting = stop_before(lambda name, full: name == "create" and full.endswith(end), meanwhile)
    with pytest.raises((LockError, ConcurrentWriterError)):
        HudiTable.open(path, options=OCC).upsert([{"id": "a", "p": "x", "ts": 9}])
    assert not waiting
    assert [f for f in HudiTable.open(path).verify(deep=True) if f.severity == "error"] == []
    HudiTable.open(path, options=OCC).upsert([{"id": "b", "p": "y", "ts": 6}])
    assert rows(path) == {"a": 2, "b": 6}


@pytest.mark.parametrize("state", ["requested", "inflight", ""])
@pytest.mark.sampled(3)
def test_a_cleaning_that_others_finished_meanwhile_ends_with_an_error_that_says_so(
    tmp_path, stop_before, state
):
    path = str(tmp_path / "t")
    table = made(path, "COPY_ON_WRITE")
    end = f".deltacommit.{state}".rstrip(".")

    def meanwhile():
        table.storage.delete(LOCK_FILE)
        other = HudiTable.open(path, options=OCC)
        other.clean()
        other.upsert([{"id": "b", "p": "y", "ts": 5}])

    waiting = stop_before(lambda name, full: name == "create" and full.endswith(end), meanwhile)
    with pytest.raises((LockError, ConcurrentWriterError)):
        HudiTable.open(path, options=OCC).clean()
    assert not waiting
    assert HudiTable.open(path).verify(deep=True) == []
    assert rows(path) == {"a": 2, "b": 5}


def rows(path):
    return {
        r["id"]: r["ts"] for r in HudiTable.open(path, options=OCC).read(["id", "ts"]).to_arrow().to_pylist()
    }
