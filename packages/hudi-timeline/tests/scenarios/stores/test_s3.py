"""What is S3's own: names and options, its refusals, its lock, and a wire that is cut."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import uuid

import pyarrow as pa
import pytest

from cut_wire import CutWire
from hudi_format.errors import (
    ConflictingOptionError,
    HudiError,
    InvalidOptionError,
    LockError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.provider import InProcessLock, hold
from hudi_timeline.concurrency.locks.select import lock_for
from hudi_timeline.concurrency.locks.storage_lock import PATH, StorageLock
from hudi_timeline.options.transaction_config import LockConfig
from hudi_timeline.options.transaction_options import FILE_SYSTEM, STORAGE
from s3_server import KEY, REGION, SECRET, S3Server

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])


def rows(*ids, v=0):
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, SCHEMA)


def make(uri, **arguments):
    return HudiTable.create(uri, SCHEMA, name="t", record_keys=["id"], **arguments)


def content(table):
    return sorted(table.read(["id"]).to_arrow()["id"].to_pylist())


@pytest.fixture
def bucket(s3_server):
    return s3_server.new_bucket()


@pytest.fixture
def storage(s3_server, bucket):
    return open_storage(f"s3://{bucket}/t", s3_server.storage_options)


# --- names and options -----------------------------------------------------------------------------------


@pytest.mark.req("SS-02")
def test_all_names_of_s3_are_one_place(s3_server, bucket):
    table = make(f"s3a://{bucket}/t/", storage_options=s3_server.storage_options)
    table.insert(rows("a"))
    for scheme in ("s3", "s3a", "s3n"):
        again = HudiTable.open(f"{scheme}://{bucket}/t", storage_options=s3_server.storage_options)
        assert (again.uri, content(again)) == (f"s3://{bucket}/t", ["a"])
    assert all(k.startswith("t/") and not k.endswith("/") for k in s3_server.keys(bucket))


@pytest.mark.req("SS-02")
def test_hadoops_options_reach_the_store(s3_server, bucket):
    options = s3_server.hadoop_options
    make(f"s3a://{bucket}/t", options=options).upsert(rows("a"))
    session = {f"spark.hadoop.{k}": v for k, v in options.items()}
    table = HudiTable.open(f"s3a://{bucket}/t", options=session)
    table.upsert(rows("b"))
    assert content(table) == ["a", "b"]
    only_this = {k.replace("fs.s3a.", f"fs.s3a.bucket.{bucket}."): v for k, v in options.items()}
    assert content(HudiTable.open(f"s3a://{bucket}/t", options={**only_this, "fs.s3a.access.key": "x"})) == [
        "a",
        "b",
    ]
    assert SECRET.encode() not in json.dumps(table.inspect.commits().to_pylist(), default=str).encode()
    with pytest.raises(OptionError, match=r"fs\.s3a\.access\.key"):
        table.upsert(rows("c"), options=options)
    with pytest.raises(OptionError, match=r"fs\.s3a\.access\.key"):
        table.read(options=options)


def test_options_that_contradict_each_other_are_refused_without_showing_them(s3_server, bucket):
    given = {**s3_server.storage_options, "key": "another"}
    with pytest.raises(ConflictingOptionError) as e:
        open_storage(f"s3://{bucket}/t", given, options=s3_server.hadoop_options)
    assert KEY not in str(e.value)
    assert "key" in str(e.value)
    with pytest.raises(InvalidOptionError):
        open_storage(f"s3://{bucket}/t", options={"fs.s3a.path.style.access": "yes"})
    for key in ("fs.s3a.assumed.role.arn", "fs.s3a.encryption.algorithm"):
        with pytest.raises(UnsupportedError, match=key):
            open_storage(f"s3://{bucket}/t", options={key: "x"})
    with pytest.raises(OptionError, match="secret"):
        open_storage(f"s3://{bucket}/t", {"secrte": "x"})


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.req("NEW-36")
def test_a_bucket_that_is_not_there_is_never_made(s3_server):
    uri = f"s3://no-{uuid.uuid4().hex}/t"
    for call in (
        lambda: make(uri, storage_options=s3_server.storage_options),
        lambda: HudiTable.open(uri, storage_options=s3_server.storage_options),
    ):
        with pytest.raises(StorageError, match=r"the bucket .* does not exist") as e:
            call()
        assert e.value.remedy
        assert "\n" not in str(e.value)
    assert uri.split("/")[2] not in [b["Name"] for b in s3_server.client.list_buckets()["Buckets"]]


@pytest.mark.req("NEW-36")
def test_wrong_credentials_are_an_error_in_one_line():
    server = S3Server()
    try:
        bucket = server.new_bucket()
        table = make(f"s3://{bucket}/t", storage_options=server.storage_options)
        table.insert(rows("a"))
        before = server.keys(bucket)
        server.check_credentials(True)
        for call in (
            lambda: HudiTable.open(f"s3://{bucket}/t", storage_options=server.storage_options),
            lambda: table.insert(rows("b")),
            lambda: table.read().to_arrow(),
        ):
            with pytest.raises(StorageError, match="access was denied") as e:
                call()
            assert "\n" not in str(e.value)
            assert "fs.s3a.access.key" in e.value.remedy
            assert SECRET not in str(e.value)
            assert SECRET not in repr(e.value.__dict__)
        server.check_credentials(False)
        assert server.keys(bucket) == before
    finally:
        server.stop()


@pytest.fixture
def wire(s3_server):
    made = CutWire(s3_server.port)
    yield made
    made.close()


@pytest.mark.req("NEW-36", "RC-01")
@pytest.mark.parametrize(
    "moment", [".parquet", ".inflight", ".commit.requested", ".marker.", "/.hoodie/.locks/", ".commit HTTP"]
)
@pytest.mark.sampled(3)
def test_a_store_that_goes_away_in_a_write_leaves_the_table_as_it_was(s3_server, bucket, wire, moment):
    whole = make(f"s3://{bucket}/t", storage_options=s3_server.storage_options)
    whole.insert(rows("a", "b"))
    options = {
        **s3_server.storage_options,
        "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{wire.port}", "region_name": REGION},
        "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 2},
    }
    table = HudiTable.open(f"s3://{bucket}/t", storage_options=options)
    wire.cut_on(moment.encode())
    with pytest.raises(HudiError) as e:
        table.upsert(rows("b", "c", v=1))
    assert "\n" not in str(e.value)
    assert isinstance(e.value, StorageError)
    assert e.value.remedy
    assert content(whole) == ["a", "b"]
    wire.mend()
    table.upsert(rows("c", v=2))
    assert content(whole) == ["a", "b", "c"]
    assert not whole.timeline.pending_writes()


# --- lock ------------------------------------------------------------------------------------------------


def test_the_lock_of_s3_is_apache_hudis_lock_file(storage):
    now = [1000.0]
    first = StorageLock(storage, validity_s=60, now=lambda: now[0])
    assert first.try_acquire()
    value = json.loads(storage.read(PATH))
    assert (value["expired"], value["validUntil"]) == (False, 1_060_000)
    now[0] += 40
    first.verify()
    assert json.loads(storage.read(PATH))["validUntil"] == 1_100_000, "renewed in its second half"
    first.release()
    value = json.loads(storage.read(PATH))
    assert value["expired"] is True
    with hold(StorageLock(storage)):
        assert json.loads(storage.read(PATH))["expired"] is False


def test_a_lease_counts_until_it_runs_out(storage):
    other = {"expired": False, "validUntil": 1_000_000, "owner": "an Apache Hudi writer elsewhere"}
    storage.create(PATH, json.dumps(other).encode())
    now = [1000.1]
    lock = StorageLock(storage, now=lambda: now[0])
    assert not lock.try_acquire()
    assert lock.holder() == "an Apache Hudi writer elsewhere"
    now[0] = 1000.6
    assert lock.try_acquire()
    storage.publish(PATH, json.dumps({**other, "validUntil": 9_000_000}).encode())
    with pytest.raises(LockError, match="taken away"):
        lock.verify()
    lock.release()
    assert json.loads(storage.read(PATH))["validUntil"] == 9_000_000, "another's lease stays"
    endless = json.dumps({**other, "validUntil": float("inf")}).encode()
    for content in (b"{}", b"[" * 100_000, endless, b"\xff"):
        storage.publish(PATH, content)
        with pytest.raises(LockError, match="cannot be read"):
            lock.try_acquire()
    owner = f"x {heartbeat.this_process().text()}".replace(f"|{os.getpid()}|", "|\u00b2|")
    storage.publish(PATH, json.dumps({**other, "validUntil": 9_000_000, "owner": owner}).encode())
    assert not lock.try_acquire()


HOLD = """
import pickle, sys
from hudi_timeline.concurrency.locks.storage_lock import StorageLock
lock = StorageLock(pickle.loads(bytes.fromhex(sys.argv[1])))
print(lock.try_acquire(), flush=True)
sys.stdin.read()
"""


def test_a_process_that_dies_gives_its_lock_back(storage):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, pickle.dumps(storage).hex()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().strip() == "True"
    lock = StorageLock(storage)
    assert not lock.try_acquire()
    process.kill()
    process.wait()
    assert lock.try_acquire()
    lock.release()


def test_a_lock_is_taken_although_the_answer_was_lost(storage):
    """The client sends the request again, and is told that the file has changed: by itself."""

    class Repeating(type(storage)):
        def create(self, path, data):
            super().create(path, data)
            super().create(path, data)

        def replace(self, path, data, version):
            assert super().replace(path, data, version)
            return super().replace(path, data, version)

    lock = StorageLock(Repeating(storage.uri, storage.__reduce__()[1][1]))
    for _ in range(2):
        assert lock.try_acquire()
        lock.verify()
        lock.release()
    assert json.loads(storage.read(PATH))["expired"] is True


def test_which_lock_a_table_has(storage):
    assert isinstance(lock_for(storage), StorageLock)
    assert isinstance(lock_for(storage, LockConfig(STORAGE)), StorageLock)
    assert isinstance(lock_for(storage, LockConfig(FILE_SYSTEM)), FileSystemLock)
    memory = open_storage("memory://x")
    assert isinstance(lock_for(memory), InProcessLock)
    with pytest.raises(LockError, match="on condition"):
        lock_for(memory, LockConfig(STORAGE))


def test_a_bucket_may_be_the_table(s3_server, bucket):
    table = make(f"s3://{bucket}", storage_options=s3_server.storage_options)
    table.insert(rows("a"))
    table.upsert(rows("a", "b", v=1))
    assert content(HudiTable.open(f"s3a://{bucket}/", storage_options=s3_server.storage_options)) == [
        "a",
        "b",
    ]
