"""Locks on their real servers: between processes, after `kill -9`, and when they are lost before a commit."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

from hudi_format.errors import HudiError, InvalidOptionError, LockError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.locks import dynamodb as dynamodb_lock
from hudi_timeline.concurrency.locks.dynamodb import DynamoDBLock
from hudi_timeline.concurrency.locks.hive_metastore import HiveMetastoreLock
from hudi_timeline.concurrency.locks.provider import InProcessLock, Lock, TableLock
from hudi_timeline.concurrency.locks.select import (
    DYNAMODB,
    DYNAMODB_IMPLICIT,
    HIVE_METASTORE,
    ZOOKEEPER,
    ZOOKEEPER_IMPLICIT,
    lock_of,
)
from hudi_timeline.concurrency.locks.thrift_client import ThriftClient, ThriftError
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.transaction.transaction import Transaction
from lock_servers import LockServer
from s3_server import KEY, REGION, SECRET

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
LOCK = "hoodie.write.lock."


@dataclass(frozen=True)
class Provider:
    """A lock provider on its server.

    Attributes:
        options: of a new lock.
        lose: takes the lock away from its holder, as a server does that has not heard of it for long.
    """

    options: Callable[[], dict[str, str]]
    lose: Callable[[Any], None]


def zookeeper(port: int) -> Provider:
    from kazoo.client import KazooClient

    def options() -> dict[str, str]:
        return {
            LOCK + "provider": ZOOKEEPER,
            LOCK + "zookeeper.url": "127.0.0.1",
            LOCK + "zookeeper.port": str(port),
            LOCK + "zookeeper.base_path": "/hudi/locks",
            LOCK + "zookeeper.lock_key": uuid.uuid4().hex,
            LOCK + "zookeeper.session_timeout_ms": "1500",
        }

    def lose(lock: Any) -> None:
        # Whoever has the number and password of a session may end it.
        other = KazooClient(hosts=f"127.0.0.1:{port}", client_id=lock._client.client_id, timeout=1.5)
        other.start()
        other.stop()
        other.close()

    return Provider(options, lose)


def dynamodb(url: str, **more: str) -> Provider:
    client = boto3.client(
        "dynamodb", endpoint_url=url, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=SECRET
    )

    def options() -> dict[str, str]:
        return {
            LOCK + "provider": DYNAMODB,
            LOCK + "dynamodb.table": "hudi_locks",
            LOCK + "dynamodb.partition_key": uuid.uuid4().hex,
            LOCK + "dynamodb.region": REGION,
            LOCK + "dynamodb.endpoint_url": url,
            "hoodie.aws.access.key": KEY,
            "hoodie.aws.secret.key": SECRET,
            **more,
        }

    def lose(lock: Any) -> None:
        # What a writer does that has seen no renewal for as long as the lease.
        item = {"key": lock._key, "ownerName": "another", "leaseDuration": "1", "recordVersionNumber": "1"}
        client.put_item(TableName="hudi_locks", Item={k: {"S": v} for k, v in item.items()})

    return Provider(options, lose)


def metastore(port: int) -> Provider:
    def options() -> dict[str, str]:
        return {
            LOCK + "provider": HIVE_METASTORE,
            LOCK + "hivemetastore.uris": f"thrift://127.0.0.1:{port}",
            LOCK + "hivemetastore.database": "default",
            LOCK + "hivemetastore.table": f"t_{uuid.uuid4().hex}",
        }

    def lose(lock: Any) -> None:
        # As an administrator does, or the metastore itself where it has not heard of the holder in time.
        assert HiveMetastoreLock(lock._config)._unlock(lock._id)

    return Provider(options, lose)


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


def lock_on(path: Path, options: dict[str, str]) -> Lock:
    return lock_of(open_storage(str(path)), parse_transaction_options(options)).lock


def table_lock(path: Path, options: dict[str, str]) -> TableLock:
    return lock_of(open_storage(str(path)), parse_transaction_options(options))


def in_thread(act: Callable[[], Any]) -> Any:
    """What another thread gets, as handles of one thread know of each other."""
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(act()))
    thread.start()
    thread.join(60)
    return got[0]


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
    one, same, other = (lock_on(tmp_path / name, options) for name in ("a", "a", "b"))
    assert one.try_acquire()
    assert in_thread(same.try_acquire) is False
    assert in_thread(other.try_acquire) is True
    for lock in (one, same, other):
        lock.release()


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


@pytest.fixture
def in_dynamodb(s3_server) -> Provider:
    return dynamodb(s3_server.url)


def client_of(options: dict[str, str]) -> Any:
    return boto3.client(
        "dynamodb", endpoint_url=options[LOCK + "dynamodb.endpoint_url"], region_name=REGION,
        aws_access_key_id=KEY, aws_secret_access_key=SECRET,
    )  # fmt: skip


def item_of(options: dict[str, str]) -> dict[str, str]:
    key = {"key": {"S": options[LOCK + "dynamodb.partition_key"]}}
    found = client_of(options).get_item(TableName=options[LOCK + "dynamodb.table"], Key=key)
    return {k: v["S"] for k, v in found.get("Item", {}).items()}


def put_item(options: dict[str, str], **more: str) -> None:
    item = {"key": options[LOCK + "dynamodb.partition_key"], "ownerName": "a JVM", **more}
    client_of(options).put_item(
        TableName=options[LOCK + "dynamodb.table"], Item={k: {"S": v} for k, v in item.items()}
    )


@pytest.mark.req("CC-11")
def test_the_item_is_that_of_apache_hudis_client(tmp_path, in_dynamodb):
    options = in_dynamodb.options()
    lock = lock_on(tmp_path, options)
    assert lock.try_acquire()
    first = item_of(options)
    assert set(first) == {"key", "ownerName", "leaseDuration", "recordVersionNumber"}
    assert first["leaseDuration"] == "60000"
    lock.verify()
    renewed = item_of(options)
    assert renewed["recordVersionNumber"] != first["recordVersionNumber"]
    assert renewed | first == first | {"recordVersionNumber": first["recordVersionNumber"]}
    lock.release()
    assert item_of(options) == {}
    with pytest.raises(LockError, match="not held"):
        lock.verify()


def test_a_role_is_assumed_for_dynamodb(tmp_path, in_dynamodb, s3_server, monkeypatch):
    role = {
        "hoodie.aws.role.arn": "arn:aws:iam::123456789012:role/writer",
        "hoodie.aws.role.session.name": "nightly",
        "hoodie.aws.role.external.id": "ours",
    }
    options = in_dynamodb.options() | role | {LOCK + "num_retries": "0"}
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    dynamodb_lock._client.cache_clear()
    with pytest.raises(LockError, match=r"127\.0\.0\.1:1"), table_lock(tmp_path, options).held():
        pass
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", s3_server.url)
    dynamodb_lock._client.cache_clear()
    with table_lock(tmp_path, options).held():
        assert client_of(options).get_item(
            TableName=options[LOCK + "dynamodb.table"],
            Key={"key": {"S": options[LOCK + "dynamodb.partition_key"]}},
        )["Item"]
    dynamodb_lock._client.cache_clear()


def test_a_role_without_credentials_to_assume_it_is_an_error(tmp_path, in_dynamodb, monkeypatch):
    options = in_dynamodb.options() | {"hoodie.aws.role.arn": "arn:aws:iam::123456789012:role/writer"}
    options = {
        k: v for k, v in options.items() if k not in ("hoodie.aws.access.key", "hoodie.aws.secret.key")
    }
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    dynamodb_lock._client.cache_clear()
    with pytest.raises(LockError, match="no credentials") as e, table_lock(tmp_path, options).held():
        pass
    assert "hoodie.aws.access.key" in e.value.remedy


@pytest.mark.req("CC-11", "CC-07")
def test_an_item_of_apache_hudi_is_waited_for_until_its_version_stays_for_a_lease(tmp_path, in_dynamodb):
    options = in_dynamodb.options()
    lock_on(tmp_path, options).release()
    now = [0.0]
    lock = DynamoDBLock(options[LOCK + "dynamodb.partition_key"],
                        parse_transaction_options(options).lock, clock=lambda: now[0])  # fmt: skip
    assert lock.try_acquire()  # it makes the table
    lock.release()
    put_item(options, leaseDuration="5000", recordVersionNumber="1")
    assert not lock.try_acquire()
    assert lock.holder() == "a JVM"
    now[0] += 4.9
    assert not lock.try_acquire()
    put_item(options, leaseDuration="5000", recordVersionNumber="2")
    now[0] += 0.2
    assert not lock.try_acquire(), "it was renewed"
    now[0] += 5.1
    assert lock.try_acquire()
    lock.verify()
    lock.release()
    put_item(options, leaseDuration="5000", recordVersionNumber="3", isReleased="1")
    assert lock.try_acquire(), "it was given back without being deleted"
    lock.release()
    for lease in ("", "-1", "\u0664", "9" * 30, "1e3"):
        put_item(options, leaseDuration=lease, recordVersionNumber="1")
        with pytest.raises(LockError, match="not written by a lock"):
            lock.try_acquire()


@pytest.mark.req("CC-11")
def test_a_lease_is_renewed_while_it_is_held_and_no_longer(tmp_path, in_dynamodb):
    options = in_dynamodb.options()
    held = TableLock(lock_on(tmp_path, options))
    held.lock._lease_ms = 60  # three renewals in it
    with held.held():
        version = item_of(options)["recordVersionNumber"]
        deadline = threading.Event()
        while item_of(options)["recordVersionNumber"] == version:
            deadline.wait(0.01)
    assert item_of(options) == {}
    assert not [t for t in threading.enumerate() if options[LOCK + "dynamodb.partition_key"] in t.name]


@pytest.mark.req("CC-11")
def test_a_lock_is_taken_although_the_answer_was_lost(tmp_path, in_dynamodb, monkeypatch):
    options = in_dynamodb.options()
    lock = lock_on(tmp_path, options)
    ask = DynamoDBLock._ask

    def twice(self, method, **arguments):
        answer = ask(self, method, **arguments)
        return ask(self, method, **arguments) if method in ("put_item", "delete_item") else answer

    monkeypatch.setattr(DynamoDBLock, "_ask", twice)
    assert lock.try_acquire()
    lock.verify()
    lock.release()
    assert item_of(options) == {}


@pytest.mark.req("CC-11")
def test_tables_name_their_own_items_where_writers_name_none(tmp_path, in_dynamodb):
    made = in_dynamodb.options()
    options = {k: v for k, v in made.items() if "partition_key" not in k}
    with pytest.raises(InvalidOptionError, match="partition_key"):
        lock_on(tmp_path, options)
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, name="named", record_keys=["id"])
    table.insert(pa.table({"id": ["a"], "v": [1]}, SCHEMA), options=options)
    named = lock_on(tmp_path, {**options, "hoodie.table.name": "named"})
    assert "'named'" in named.name
    options[LOCK + "provider"] = DYNAMODB_IMPLICIT
    one, same, other = (lock_on(tmp_path / name, options) for name in ("a", "a", "b"))
    assert one.try_acquire()
    assert in_thread(same.try_acquire) is False
    assert in_thread(other.try_acquire) is True
    for lock in (one, same, other):
        lock.release()


@pytest.mark.req("CC-11")
@pytest.mark.parametrize("billing", ["PAY_PER_REQUEST", "provisioned"])
def test_a_table_of_locks_is_made_once(tmp_path, s3_server, billing):
    options = dynamodb(s3_server.url, **{LOCK + "dynamodb.billing_mode": billing}).options()
    options[LOCK + "dynamodb.table"] = f"locks-{uuid.uuid4().hex}"
    locks = [
        lock_on(tmp_path / str(n), {**options, LOCK + "dynamodb.partition_key": str(n)}) for n in range(3)
    ]
    for lock in locks:
        assert lock.try_acquire()
    for lock in locks:
        lock.release()
    made = client_of(options).describe_table(TableName=options[LOCK + "dynamodb.table"])["Table"]
    assert made["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
    units = made["ProvisionedThroughput"]["ReadCapacityUnits"]
    assert units == (20 if billing == "provisioned" else 0)


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
