"""What a table does, on every store: operations, modes, recovery, queries and rivals."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, StorageError, TableExistsError
from hudi_timeline import HudiTable, table_config
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.testing import CHANGES, CRASH, FAIL, Fault, Faults
from hudi_timeline.transaction import transaction
from hudi_timeline.writing import operation
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}
# A slash, a sign that URLs encode, a wildcard and a space: folders that must be taken as they are.
PLACES = ["a/b", "50%", "x*", "y z"]


def rows(n, start=0, v=0):
    ids = range(start, start + n)
    return pa.table(
        {
            "id": [f"k{i}" for i in ids],
            "v": pa.array([v] * n, pa.int64()),
            "ts": pa.array([v] * n, pa.int64()),
            "p": [PLACES[i % len(PLACES)] for i in ids],
        }
    )


def write(storage, data, operation="upsert", mode="append", **more):
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation, **more}
    return execute(LocalEngine(2), storage, data, options, mode=mode)


def content(table):
    found = table.read(["id", "v"]).to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def pairs(*parts):
    return sorted((f"k{i}", v) for ids, v in parts for i in ids)


@pytest.mark.req("SS-02", "SS-05", "SS-06")
@pytest.mark.sampled(3)
def test_every_operation_leaves_the_same_rows(store):
    storage = store.storage()
    write(storage, rows(8), "bulk_insert")
    table = store.open()
    assert content(table) == pairs((range(8), 0))
    write(storage, rows(4, 6, v=1))
    assert content(table) == pairs((range(6), 0), (range(6, 10), 1))
    write(storage, rows(2, 10, v=2), "insert")
    write(storage, rows(2).select(["id", "p"]), "delete")
    assert content(table) == pairs((range(2, 6), 0), (range(6, 10), 1), (range(10, 12), 2))
    write(storage, rows(1, 0, v=3), "insert_overwrite")
    assert [v for k, v in content(table) if k in ("k0", "k4", "k8")] == [3], "its partition was replaced"
    table.delete_partitions("p=x%2A")
    assert {k for k, _ in content(table)}.isdisjoint({"k2", "k6", "k10"})
    table.delete("id = 'k0'")
    write(storage, rows(3, 20, v=4), "insert_overwrite_table")
    assert content(table) == pairs((range(20, 23), 4))
    assert content(HudiTable.open(store.uri(), storage_options=store.options)) == content(table)
    assert table.get(["k21", "no"])["id"].to_pylist() == ["k21"]
    assert not table.timeline.pending_writes()
    assert storage.list(".hoodie/.temp") == []
    assert storage.list(".hoodie/.heartbeat") == []


@pytest.mark.req("SS-02")
def test_a_table_is_created_once(store):
    schema = rows(1).schema
    arguments = {"name": "t", "record_keys": ["id"], "storage_options": store.options}
    HudiTable.create(store.uri(), schema, **arguments).insert(rows(1))
    with pytest.raises(TableExistsError):
        HudiTable.create(store.uri(), schema, **arguments)
    assert content(store.open()) == [("k0", 0)]


@pytest.mark.sampled(3)
def test_queries_of_earlier_states(store):
    storage = store.storage()
    first = write(storage, rows(4), "insert")
    second = write(storage, rows(2, v=1))
    write(storage, rows(1, 8, v=2), "insert_overwrite_table")
    table = store.open()
    old = table.read(["id", "v"], as_of=first.instant).to_arrow()
    assert sorted(old["v"].to_pylist()) == [0, 0, 0, 0]
    changed = table.read_incremental(first.instant, second.instant, columns=["id", "v"]).to_arrow()
    assert sorted(changed["id"].to_pylist()) == ["k0", "k1"]
    everything = table.read_incremental("000", columns=["id"]).to_arrow()
    assert everything["id"].to_pylist() == ["k8"], "replaced groups do not show"
    some = table.read(["v"], "p = '50%' and v >= 0", as_of=second.instant).to_arrow()
    assert some["v"].to_pylist() == [1]


@pytest.mark.sampled(3)
def test_overwriting_gives_a_new_table_or_the_old_one(store):
    storage = store.storage()
    write(storage, rows(8), "insert")
    with pytest.raises(TableExistsError):
        write(storage, rows(1), "insert", "errorifexists")
    assert write(storage, rows(1), "insert", "ignore").instant == ""
    failing = Faults(Fault(FAIL, operation="create", path="*.commit")).wrap(storage)
    with pytest.raises(StorageError):
        write(failing, rows(2, 50, v=5), "insert", "overwrite")
    assert content(store.open()) == pairs((range(8), 0))
    write(storage, rows(2, 50, v=5), "insert", "overwrite")
    assert content(store.open()) == pairs((range(50, 52), 5))
    assert len(store.open().timeline.completed_writes()) == 1
    assert storage.info(".hoodie/.overwrite") is None


def crash(at):
    """The end of a process before its `at`-th change."""
    return Faults(Fault(CRASH, operation=CHANGES, nth=at))


@pytest.mark.sampled(6, values=False)
@pytest.mark.req("RC-01", "SS-06")
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_crash_at_any_change_is_mended_by_the_next_writer(store, mode):
    old, new = pairs((range(4), 0)), pairs((range(2), 1), (range(2, 4), 0))
    if mode == "overwrite":
        new = pairs((range(2), 1))
    # Every other change in memory; elsewhere, where they cost more, fewer of them.
    step = {"memory": 2, "local": 3, "folders": 5, "s3": 11 if os.environ.get("HUDI_SOAK") else 19}[
        store.name
    ]
    seen = set()
    for at in range(1, 400, step):
        name = f"t{at}"
        write(store.storage(name), rows(4), "insert")
        faults = crash(at)
        with faults.process():
            write(faults.wrap(store.storage(name)), rows(2, v=1), mode=mode)
        if mode == "append":
            assert content(store.open(name)) in (old, new), f"change {at}"
        write(store.storage(name), rows(1, 90, v=9))
        found = [r for r in content(store.open(name)) if r[0] != "k90"]
        assert found in (old, new), f"change {at}, after the next write"
        seen.add(found == new)
        assert not store.open(name).timeline.pending_writes()
        assert store.storage(name).info(".hoodie/.overwrite") is None
        if not faults.dead:
            break
    else:
        pytest.fail("the write made more changes than were tried")
    assert seen == {False, True}


@pytest.mark.req("SS-06", "SS-09")
def test_one_of_many_rivals_makes_a_file(store):
    storage = store.storage()
    won = []

    def race(number):
        with contextlib.suppress(FileExistsError):
            storage.create("race", f"{number}".encode())
            won.append(number)

    threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(won) == 1
    assert storage.read("race") == f"{won[0]}".encode()


@pytest.mark.req("CC-01")
@pytest.mark.sampled(3)
def test_the_second_of_two_writers_is_told_so(store):
    write(store.storage(), rows(4), "insert")
    config = table_config.load(store.storage())
    raw = {**OPTIONS, "hoodie.client.heartbeat.interval_in_ms": "60000"}
    options = parse_transaction_options(raw)
    first = transaction.begin_transaction(store.storage(), config, operation="UPSERT", options=options)
    with first, pytest.raises(ConcurrentWriterError):
        write(store.storage(), rows(1, v=1), **{"hoodie.client.heartbeat.interval_in_ms": "60000"})
    write(store.storage(), rows(1, v=1))
    assert content(store.open()) == pairs((range(1), 1), (range(1, 4), 0))


def test_properties_survive_a_crash_of_their_update(store):
    write(store.storage(), rows(1), "insert")
    for at in range(1, 12):
        faults = crash(at)
        with faults.process():
            table_config.update(faults.wrap(store.storage()), {"hoodie.x": str(at)})
        assert table_config.load(store.storage(), pause=lambda s: None).name == "t"
        table_config.recover(store.storage())
        assert table_config.load(store.storage()).properties.get("hoodie.x") in (None, str(at), str(at - 1))
        if not faults.dead:
            break
    assert table_config.load(store.storage()).properties["hoodie.x"] == str(at)
    assert store.storage().info(table_config.BACKUP_FILE) is None


def test_tasks_carry_their_storage_elsewhere(store):
    write(store.storage(), rows(4), "insert")
    tasks = pickle.loads(pickle.dumps(store.open().read(["id"]).plan_files()))
    assert sum(b.num_rows for t in tasks for b in t.to_batches()) == 4
    assert "s3cr3t" not in repr(tasks) + repr(store.storage())


@pytest.mark.req("CC-40", "SE-02")
@pytest.mark.parametrize("moment", ["before the instant", "while it writes"])
@pytest.mark.sampled(6, values=False)
def test_a_column_that_another_writer_adds_meanwhile_stays(store, monkeypatch, moment):
    storage = store.storage()
    write(storage, rows(8))
    lazy = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
    name, of = (
        ("begin_transaction", operation)
        if moment == "before the instant"
        else ("inflight", transaction.Transaction)
    )
    step, done = getattr(of, name), []

    def rival(*args, **kwargs):
        made = step(*args, **kwargs) if name == "inflight" else None
        if not done:
            done.append(1)
            more = rows(4, 100, v=5).append_column("note", pa.array(["kept"] * 4))
            write(store.storage(), more, "bulk_insert", **lazy)
        return made if name == "inflight" else step(*args, **kwargs)

    monkeypatch.setattr(of, name, rival)
    result = write(storage, rows(4, 200, v=7), "bulk_insert", **lazy)
    assert "this write" in " ".join(result.warnings)
    table = store.open()
    assert table.schema.names == ["id", "v", "ts", "p", "note"]
    assert table.read(["note"], "note = 'kept'").to_arrow().num_rows == 4
    assert content(table) == pairs((range(8), 0), (range(100, 104), 5), (range(200, 204), 7))
    assert table.verify(deep=True) == []
