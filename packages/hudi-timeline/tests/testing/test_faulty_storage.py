"""Stores that fail on purpose: each fault does what it says, and a run can be repeated."""

import pickle
import threading

import pyarrow as pa
import pytest

from hudi_format.errors import StorageError
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_beside, open_storage
from hudi_format.storage.remote import FsspecStorage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.testing import (
    CRASH,
    DELAY,
    DOUBLE,
    FAIL,
    LOSE,
    STALE,
    STALL,
    TEAR,
    Crash,
    Fault,
    Faults,
    FaultyStorage,
)

ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})


@pytest.fixture
def inner(tmp_path):
    return LocalStorage(str(tmp_path / "t"))


@pytest.mark.parametrize("after", [False, True])
def test_a_call_fails_before_or_after_it_is_done(inner, after):
    storage = Faults(Fault(FAIL, operation="create", path="a/*", nth=2, after=after)).wrap(inner)
    storage.create("a/1", b"1")
    storage.create("b/1", b"1")
    with pytest.raises(StorageError, match="the store does not answer"):
        storage.create("a/2", b"2")
    storage.create("a/3", b"3")
    assert {e.name for e in inner.list("a")} == {"1", "3"} | ({"2"} if after else set())


def test_after_a_crash_there_is_no_further_call(inner):
    faults = Faults(Fault(CRASH, number=2))
    storage = faults.wrap(inner)
    storage.touch("a")
    for _ in range(3):
        with pytest.raises(Crash):
            storage.touch("b")
    assert faults.dead
    assert [e.name for e in inner.list("")] == ["a"]
    assert [(c.number, c.operation, c.path, c.fault) for c in faults.log] == [
        (1, "touch", "a", ""),
        (2, "touch", "b", "crash"),
    ]


def test_a_lost_call_is_not_done_and_a_doubled_one_is_answered_as_the_second(inner):
    storage = Faults(
        Fault(LOSE, operation="touch"), Fault(DOUBLE, operation=("create", "delete"), times=0)
    ).wrap(inner)
    storage.touch("a")
    assert inner.info("a") is None
    with pytest.raises(FileExistsError):
        storage.create("a", b"")
    assert not storage.delete("a"), "the first of the two has removed it"


def test_a_delayed_call_waits(inner):
    waited = []
    storage = Faults(Fault(DELAY, operation="touch", seconds=3.0), sleep=waited.append).wrap(inner)
    storage.touch("a")
    storage.touch("b")
    assert waited == [3.0]


@pytest.mark.req("NEW-12")
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after it"])
def test_a_process_is_stopped_and_counts_as_dead_for_so_long(inner, after):
    seen = []

    def others():
        alive = heartbeat.liveness(inner, "20260101000000000").alive
        seen.append((alive, inner.info("a") is not None))

    storage = Faults(Fault(STALL, operation="touch", path="a", after=after), stall=others).wrap(inner)
    beat = heartbeat.start(storage, "20260101000000000")
    storage.touch("a")
    storage.touch("b")
    assert seen == [(False, after)]
    assert heartbeat.liveness(inner, "20260101000000000").alive
    beat.check()
    beat.stop()


def put(storage, operation, data):
    if operation != "close_output":
        getattr(storage, operation)(f"f/{operation}", data)
        return
    with storage.open_output("f/close_output") as out:
        out.write(data)


def test_torn_content_arrives_in_part_where_the_store_can_tear_it(tmp_path):
    local = LocalStorage(str(tmp_path))
    memory = open_storage("memory://torn/t")
    for inner, written in ((local, b"01234"), (memory, None)):
        for operation in ("touch", "close_output", "create"):
            storage = Faults(Fault(TEAR, operation=operation)).wrap(inner)
            with pytest.raises(Crash):
                put(storage, operation, b"0123456789")
        assert inner.read("f/touch") == b"01234"
        assert inner.info("f/create") is None, "it is one step"
        if written is None:
            assert inner.info("f/close_output") is None
        else:
            assert inner.read("f/close_output") == written
    temporaries = [e for e in local.list("f") if e.name.endswith(".tmp")]
    assert [t.size for t in temporaries] == [5]


def test_a_stale_listing_is_that_of_some_changes_ago(inner):
    storage = Faults(Fault(STALE, lag=2)).wrap(inner)
    for name in ("f/1", "f/2", "f/3"):
        storage.touch(name)
    storage.delete("f/1")
    assert {e.name for e in storage.list("f")} == {"1", "2"}
    assert {e.name for e in storage.list("f")} == {"2", "3"}


def test_a_seed_repeats_a_run_and_what_struck_repeats_it_without_the_seed(tmp_path):
    def run(name, faults):
        inner = LocalStorage(str(tmp_path / name))
        storage = faults.wrap(inner)
        outcomes = []
        for n in range(200):
            try:
                storage.touch(f"f/{n}")
                outcomes.append(len(storage.list("f")))
            except StorageError:
                outcomes.append("failed")
        return outcomes, [(c.operation, c.path, c.fault, c.error) for c in faults.log]

    kinds = (FAIL, LOSE, DOUBLE, STALE)
    first = Faults.random(7, rate=0.1, kinds=kinds)
    told = run("a", first)
    assert {f.kind for f in first.struck} == set(kinds)
    assert run("b", Faults.random(7, rate=0.1, kinds=kinds)) == told
    assert run("c", Faults.random(8, rate=0.1, kinds=kinds)) != told
    assert run("d", Faults(*first.struck)) == told


def test_a_process_that_ends_takes_its_heartbeats_along_and_leaves_their_files(inner):
    faults = Faults(Fault(CRASH, operation="touch"))
    with faults.process():
        storage = faults.wrap(inner)
        heartbeat.start(storage, "20260101000000000", 60_000)
        assert heartbeat.liveness(inner, "20260101000000000").alive
        storage.touch("a")
    assert heartbeat.list_instants(inner) == ["20260101000000000"]
    assert not heartbeat.liveness(inner, "20260101000000000").alive
    assert not [t for t in threading.enumerate() if t.name == "hudi-heartbeat-20260101000000000"]


def test_a_crash_of_another_process_is_not_taken_for_ones_own(inner):
    with pytest.raises(Crash), Faults().process():
        raise Crash("elsewhere")


def test_it_stands_before_any_store_and_stays_here_when_tasks_go_elsewhere(inner):
    storage = Faults().wrap(FsspecStorage("memory://any/t"))
    assert not storage.can_replace
    assert isinstance(pickle.loads(pickle.dumps(storage)), FsspecStorage)
    beside = open_beside(Faults().wrap(inner), f"{inner.uri}-2")
    assert isinstance(beside, FaultyStorage)
    assert beside.uri == f"{inner.uri}-2"


@pytest.mark.req("RC-01", "NEW-23")
def test_the_example_of_the_readme(inner):
    table = HudiTable.create(inner.uri, ROWS.schema, name="t", record_keys=["id"])
    table.insert(ROWS)
    for after in (False, True):
        faults = Faults(Fault(CRASH, operation="create", path="*.commit", after=after))
        with faults.process():
            HudiTable._of(faults.wrap(table.storage)).upsert(pa.table({"id": ["a"], "v": [3]}))
        assert faults.dead
        found = table.read(["v"]).to_arrow()["v"].to_pylist()
        assert sorted(found) == ([2, 3] if after else [1, 2])
        table.upsert(pa.table({"id": ["b"], "v": [2]}))
        assert not table.timeline.pending_writes()
