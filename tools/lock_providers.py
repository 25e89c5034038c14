"""Lock providers on their servers, and how a server takes a lock away from its holder."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa

from hudi_format import open_storage
from hudi_timeline.concurrency.locks.hive_metastore import HiveMetastoreLock
from hudi_timeline.concurrency.locks.provider import Lock, TableLock
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.options.transaction_options import DYNAMODB, HIVE_METASTORE, ZOOKEEPER
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


def assert_each_table_has_its_own(path: Path, options: dict[str, str]) -> None:
    """One table's lock keeps others from that table, and nobody from another one."""
    one, same, other = (lock_on(path / name, options) for name in ("a", "a", "b"))
    assert one.try_acquire()
    assert in_thread(same.try_acquire) is False
    assert in_thread(other.try_acquire) is True
    for lock in (one, same, other):
        lock.release()
