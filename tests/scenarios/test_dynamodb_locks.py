"""Locks in DynamoDB: the item of Apache Hudi's client, its lease, roles and tables of locks."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import boto3
import pyarrow as pa
import pytest

from hudi_format.errors import InvalidOptionError, LockError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.locks import dynamodb as dynamodb_lock
from hudi_timeline.concurrency.locks.dynamodb import DynamoDBLock
from hudi_timeline.concurrency.locks.provider import TableLock
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.options.transaction_options import DYNAMODB_IMPLICIT
from lock_providers import (
    LOCK,
    SCHEMA,
    Provider,
    assert_each_table_has_its_own,
    dynamodb,
    lock_on,
    table_lock,
)
from s3_server import KEY, REGION, SECRET


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
    assert_each_table_has_its_own(tmp_path, options)


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
