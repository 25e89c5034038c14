"""Locks on their real servers: between processes, after `kill -9`, and when they are lost before a commit."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.errors import HudiError, LockError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.locks.provider import InProcessLock, TableLock
from hudi_timeline.concurrency.locks.thrift_client import ThriftClient, ThriftError
from hudi_timeline.options.transaction_options import ZOOKEEPER_IMPLICIT
from hudi_timeline.transaction.transaction import Transaction
from lock_providers import (
    LOCK,
    SCHEMA,
    Provider,
    assert_each_table_has_its_own,
    dynamodb,
    in_thread,
    lock_on,
    metastore,
    table_lock,
    zookeeper,
)
from lock_servers import LockServer

KINDS = ("zookeeper", "dynamodb", "metastore", pytest.param("dynamodb-local", marks=pytest.mark.slow))


@pytest.fixture(scope="module")
def zookeeper_port() -> Iterator[int]:
    server = LockServer("zookeeper")
    yield server.port
    server.stop()


@pytest.fixture(scope="module")
def dynamodb_port() -> Iterator[int]:
    server = LockServer("dynamodb")
    yield server.port
    server.stop()


@pytest.fixture(scope="module")
def metastore_port() -> Iterator[int]:
    server = LockServer("metastore")
    yield server.port
    server.stop()


@pytest.fixture(params=KINDS)
def provider(request: pytest.FixtureRequest) -> Provider:
    if request.param == "dynamodb-local":
        return dynamodb(f"http://127.0.0.1:{request.getfixturevalue('dynamodb_port')}")
    if request.param == "metastore":
        return metastore(request.getfixturevalue("metastore_port"))
    if request.param == "dynamodb":
        return dynamodb(request.getfixturevalue("s3_server").url)
    return zookeeper(request.getfixturevalue("zookeeper_port"))


def kind(options: dict[str, str]) -> str:
    """Which options of `hoodie.write.lock.*` are the provider's."""
    return next(k.split(".")[3] for k in options if k.startswith(LOCK) and k.count(".") > 3)


WORKER = """
import json, sys
from pathlib import Path
from hudi_format.storage.open import open_storage
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.options.transaction_config import parse_transaction_options

folder, times, options = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
lock = lock_of(open_storage(str(folder)), parse_transaction_options(options))
if not times:
    print(lock.lock.try_acquire(), flush=True)
    sys.stdin.read()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(times):
    with lock.held():
        number = int((folder / "number").read_text())
        lock.verify()
        (folder / "number").write_text(str(number + 1))
"""


def worker(folder: Path, times: int, options: dict[str, str]) -> subprocess.Popen[str]:
    """A process that adds one to a number as often, or holds the lock until it is killed."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder), str(times), json.dumps(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.req("CC-09", "CC-10", "CC-11", "CC-12")
def test_one_process_at_a_time_has_the_lock(tmp_path, provider):
    options = provider.options()
    (tmp_path / "number").write_text("0")
    workers = [worker(tmp_path, 8, options) for _ in range(2)]
    assert [line(w) for w in workers] == ["ready"] * 2
    for w in workers:
        w.communicate("go\n", timeout=120)
    assert [w.returncode for w in workers] == [0, 0]
    assert (tmp_path / "number").read_text() == "16"


@pytest.mark.req("CC-10")
def test_the_lock_of_a_killed_process_is_free_when_it_is_not_heard_of(tmp_path, provider):
    options = provider.options()
    process = worker(tmp_path, 0, options)
    try:
        assert line(process) == "True"
        lock = lock_on(tmp_path, options)
        assert not lock.try_acquire()
        assert f"|{process.pid}|" in lock.holder()
        lock.release()
    finally:
        process.kill()
        process.wait(60)
    after = table_lock(tmp_path, options)
    with after.held():
        after.verify()


@pytest.mark.req("CC-10")
def test_another_holders_lock_is_neither_taken_nor_given_back(tmp_path, provider):
    options = provider.options()
    first, second = lock_on(tmp_path, options), lock_on(tmp_path, options)
    assert first.try_acquire()
    with pytest.raises(LockError, match="already"):
        first.try_acquire()
    assert in_thread(second.try_acquire) is False
    second.release()
    first.verify()
    provider.lose(first)
    third = lock_on(tmp_path, options)
    with pytest.raises(LockError, match="lost"):
        first.verify()
    first._threads.release()  # as if it were in another process
    with TableLock(third, 30_000).held():
        first.release()
        third.verify()
    with pytest.raises(LockError):
        third.verify()


@pytest.mark.req("CC-10", "CC-26")
def test_a_writer_that_lost_its_lock_does_not_publish(tmp_path, provider, monkeypatch):
    options = provider.options()
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"])
    table.insert(pa.table({"id": ["a"], "v": [1]}, SCHEMA), options=options)
    tidy = Transaction._delete_other_attempts
    lost = []

    def before_the_last_look(transaction, metadata):
        tidy(transaction, metadata)
        if not lost:
            lost.append(transaction)
            provider.lose(transaction._lock.lock)

    monkeypatch.setattr(Transaction, "_delete_other_attempts", before_the_last_look)
    with pytest.raises(LockError, match="lost") as e:
        table.upsert(pa.table({"id": ["a", "b"], "v": [2, 2]}, SCHEMA), options=options)
    assert e.value.remedy
    assert lost
    assert table.read(["id", "v"]).to_arrow().to_pylist() == [{"id": "a", "v": 1}]
    assert not table.timeline.pending_writes()
    table.upsert(pa.table({"id": ["b"], "v": [3]}, SCHEMA), options=options)
    assert sorted(table.read(["v"]).to_arrow()["v"].to_pylist()) == [1, 3]
    assert table.verify(deep=True) == []


@pytest.mark.req("CC-10")
def test_writers_in_threads_take_turns_on_one_table(tmp_path, provider):
    options = {**provider.options(), "hoodie.cleaner.policy.failed.writes": "LAZY"}
    options |= {"hoodie.parquet.small.file.limit": "0"}
    path = str(tmp_path / "t")
    HudiTable.create(path, SCHEMA, name="t", record_keys=["id"])

    def write(name: str) -> list[HudiError]:
        failed: list[HudiError] = []
        for n in range(3):
            try:
                HudiTable.open(path).bulk_insert(
                    pa.table({"id": [f"{name}{n}"], "v": [n]}, SCHEMA), options=options
                )
            except HudiError as e:
                failed.append(e)
        return failed

    got: dict[str, list[HudiError]] = {}
    threads = [threading.Thread(target=lambda n=n: got.update({n: write(n)})) for n in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert got == {"x": [], "y": [], "z": []}
    ids = HudiTable.open(path).read(["id"]).to_arrow()["id"].to_pylist()
    assert sorted(ids) == sorted(f"{a}{n}" for a in "xyz" for n in range(3))


@pytest.mark.req("CC-10")
def test_a_session_that_ends_in_the_queue_is_no_lock(tmp_path, zookeeper_port):
    made = zookeeper(zookeeper_port)
    options = made.options()
    first, second = lock_on(tmp_path, options), lock_on(tmp_path, options)
    second._threads = InProcessLock("of another process")  # so that it asks ZooKeeper
    assert first.try_acquire()
    assert in_thread(second.try_acquire) is False
    made.lose(second)
    first.release()
    with table_lock(tmp_path, options).held():
        pass
    # It may have lost its place without knowing it yet: then it gets in line again.
    second_lock = TableLock(second, 30_000)
    with second_lock.held():
        second_lock.verify()


@pytest.mark.req("CC-10")
def test_the_next_in_the_queue_is_woken_when_the_lock_is_free(tmp_path, zookeeper_port):
    options = zookeeper(zookeeper_port).options()
    first, second, third = (lock_on(tmp_path, options) for _ in range(3))
    second._threads, third._threads = InProcessLock("of another process"), InProcessLock("of a third")
    assert [lock.try_acquire() for lock in (first, second, third)] == [True, False, False]
    woken: list[bool] = []

    def wait() -> None:
        second.wait_for_turn(600)
        woken.append(second.try_acquire())
        second.release()
        woken.append(third.try_acquire())

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert not woken
    first.release()
    waiting.join(60)
    assert woken == [True, True]
    third.wait_for_turn(600)  # who has it waits for nobody
    third.release()


@pytest.mark.req("CC-10")
def test_tables_name_their_own_nodes_where_writers_name_none(tmp_path, zookeeper_port):
    made = zookeeper(zookeeper_port).options()
    options = {k: v for k, v in made.items() if "base_path" not in k and "lock_key" not in k}
    options[LOCK + "provider"] = ZOOKEEPER_IMPLICIT
    assert_each_table_has_its_own(tmp_path, options)


@pytest.mark.req("CC-10")
def test_a_server_that_is_not_there_is_an_error_in_words(tmp_path, provider):
    nowhere = {
        LOCK + "zookeeper.port": "1",
        LOCK + "zookeeper.connection_timeout_ms": "300",
        LOCK + "dynamodb.endpoint_url": "http://127.0.0.1:1",
        LOCK + "hivemetastore.uris": "thrift://127.0.0.1:1",
    }
    given = provider.options()
    options = {**given, **{k: v for k, v in nowhere.items() if k.split(".")[3] == kind(given)}}
    options[LOCK + "num_retries"] = "0"
    with pytest.raises(LockError, match="no answer") as e, table_lock(tmp_path, options).held():
        pass
    assert f"lock.{kind(given)}." in e.value.remedy
    assert "\n" not in str(e.value)


@pytest.mark.req("CC-12")
def test_a_metastores_lock_is_taken_and_given_back_although_the_answers_were_lost(
    tmp_path, metastore_port, monkeypatch
):
    options = {**metastore(metastore_port).options(), LOCK + "wait_time_ms_between_retry": "1"}
    call, lost = ThriftClient.call, []

    def cut(self, method, *arguments):
        answer = call(self, method, *arguments)
        if method in ("lock", "unlock") and method not in lost:
            lost.append(method)
            raise ThriftError("cut")
        return answer

    monkeypatch.setattr(ThriftClient, "call", cut)
    with table_lock(tmp_path, options).held():
        pass
    assert lost == ["lock", "unlock"]
    lock = lock_on(tmp_path, options)
    assert lock.try_acquire(), "one lock was asked for, and that is given back"
    lock.release()


@pytest.mark.req("CC-12")
def test_who_dies_in_a_metastores_queue_does_not_hold_it_up(tmp_path, metastore_port):
    options = metastore(metastore_port).options()
    held = lock_on(tmp_path, options)
    assert held.try_acquire()
    waiter = worker(tmp_path, 0, options)
    try:
        assert line(waiter) == "False"
    finally:
        waiter.kill()
        waiter.wait(60)
    held.release()
    with table_lock(tmp_path, options).held():
        pass


@pytest.mark.req("NEW-35")
def test_a_servers_lock_is_shown_and_broken_and_its_holder_notices(tmp_path, provider):
    options = provider.options()
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"])
    assert table.lock_report(options=options).holding is None
    process = worker(tmp_path / "t", 0, options)
    try:
        assert line(process) == "True"
        report = table.lock_report(options=options)
        assert report.holding.process.pid == process.pid
        assert report.alive is True
        with pytest.raises(LockError, match="runs on this machine"):
            table.break_lock(options=options)
        assert table.break_lock(force=True, options=options).holding == report.holding
        assert table.lock_report(options=options).holding is None
        with table_lock(tmp_path / "t", options).held():
            shown = lock_on(tmp_path / "t", options)
            assert shown.end_holding(report.holding.token) is False
            assert shown.holding().token != report.holding.token
            shown.release()
    finally:
        process.kill()
        process.wait(60)
