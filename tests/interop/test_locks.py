"""One lock in ZooKeeper: Apache Hudi's writers and ours wait for each other, in one queue."""

import threading
import uuid
from contextlib import ExitStack, contextmanager

import pyarrow as pa
import pytest

from hudi_format.errors import WriteConflictError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.options.transaction_options import ZOOKEEPER
from hudi_timeline.transaction.transaction import Transaction
from interop.spark_process import SparkProcessError
from lock_servers import LockServer

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
LOCK = "hoodie.write.lock."
QUEUE = "/hudi/locks"


@pytest.fixture(scope="module")
def zookeeper():
    server = LockServer("zookeeper")
    yield server.port
    server.stop()


@pytest.fixture
def options(zookeeper):
    return {
        LOCK + "provider": ZOOKEEPER,
        LOCK + "zookeeper.url": f"127.0.0.1:{zookeeper}",
        LOCK + "zookeeper.base_path": QUEUE,
        LOCK + "zookeeper.lock_key": uuid.uuid4().hex,
        "hoodie.parquet.small.file.limit": "0",  # inserts that fill one small file are a conflict, on both sides
    }


@contextmanager
def queue_of(options):
    """What is in the lock's queue, as another client of ZooKeeper sees it."""
    from kazoo.client import KazooClient

    client = KazooClient(hosts=options[LOCK + "zookeeper.url"])
    client.start()
    try:
        yield lambda: client.get_children(f"{QUEUE}/{options[LOCK + 'zookeeper.lock_key']}")
    finally:
        client.stop()
        client.close()


def rows(*ids):
    return pa.table({"id": list(ids), "v": [1] * len(ids)}, SCHEMA)


def content(path):
    return sorted(HudiTable.open(str(path)).read(["id"]).to_arrow()["id"].to_pylist())


def theirs_of(options, operation):
    return {
        **options,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "v",
        "hoodie.datasource.write.operation": operation,
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.metadata.enable": "false",
    }


@pytest.mark.req("CC-10", "CC-30", "CC-40")
def test_apache_hudi_is_a_rival_between_our_plan_and_our_commit(tmp_path, apache, options, monkeypatch):
    """Its options as they stand are ours too: what it committed first is kept, and ours comes after it."""
    path = tmp_path / "t"
    table = HudiTable.create(str(path), SCHEMA, name="t", record_keys=["id"], ordering_fields=["v"])
    table.insert(rows("a", "b"), options=options)
    inflight, lost = Transaction.inflight, []

    def announced(transaction, profile):
        inflight(transaction, profile)
        if not lost:
            lost.append(transaction.instant)
            apache.write(
                path, pa.table({"id": ["a", "x"], "v": [5, 5]}, SCHEMA), theirs_of(options, "upsert")
            )

    monkeypatch.setattr(Transaction, "inflight", announced)
    ours = theirs_of(options, "upsert")
    with pytest.raises(WriteConflictError):
        table.upsert(pa.table({"id": ["a", "n"], "v": [9, 9]}, SCHEMA), options=ours)
    lost.clear()
    ours["hoodie.write.num.retries.on.conflict.failures"] = "2"
    result = table.upsert(pa.table({"id": ["a", "n"], "v": [9, 9]}, SCHEMA), options=ours)
    assert result.retries == 1
    wanted = {"a": 9, "b": 1, "n": 9, "x": 5}
    there = table.read(["id", "v"]).to_arrow()
    assert dict(zip(there["id"].to_pylist(), there["v"].to_pylist(), strict=True)) == wanted
    there = apache.read(path)
    assert dict(zip(there["id"].to_pylist(), there["v"].to_pylist(), strict=True)) == wanted
    assert HudiTable.open(str(path)).verify(deep=True) == []


@pytest.mark.req("CC-10")
def test_apache_hudi_and_we_wait_for_each_other(tmp_path, apache, options):
    path = tmp_path / "t"
    table = HudiTable.create(str(path), SCHEMA, name="t", record_keys=["id"])
    table.insert(rows("a"), options=options)
    theirs = {
        **options,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.metadata.enable": "false",
        LOCK + "client.num_retries": "0",
    }
    ours = lock_of(open_storage(str(path)), parse_transaction_options(options))
    with ours.held(), pytest.raises(SparkProcessError, match=r"(?i)lock"):
        apache.write(path, rows("x"), {**theirs, LOCK + "wait_time_ms": "200"})
    done, waiting = [], threading.Event()
    precedence = Precedence(open_storage(str(path)), parse_transaction_options(theirs), first=True)
    with ExitStack() as stack, queue_of(options) as queue:
        stack.callback(precedence.end)
        with ours.held():
            thread = threading.Thread(target=lambda: done.append(apache.write(path, rows("b"), theirs)))
            thread.start()
            while thread.is_alive() and len(queue()) < 2:
                waiting.wait(0.05)
            assert len(queue()) == 2
            assert done == []
            ours.verify()
        # It is in front of us in the queue, which then is empty again; that we have precedence is nothing to it.
        table.insert(rows("c"), options={**options, "hoodie.cleaner.policy.failed.writes": "LAZY"})
        thread.join(120)
        assert queue() == []
    assert len(done) == 1
    assert content(path) == ["a", "b", "c"]
    assert sorted(apache.read(path)["id"].to_pylist()) == ["a", "b", "c"]
