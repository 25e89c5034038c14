"""Selection of a table's lock: the configured provider, or the storage's default."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import ReplacingStorage, Storage
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.provider import InProcessLock, Lock, TableLock
from hudi_timeline.concurrency.locks.storage_lock import StorageLock
from hudi_timeline.options.table_options import TABLE_NAME
from hudi_timeline.options.transaction_config import LockConfig, TransactionConfig
from hudi_timeline.options.transaction_options import (
    CONCURRENCY_MODE,
    DYNAMODB,
    DYNAMODB_IMPLICIT,
    DYNAMODB_KEY,
    FILE_SYSTEM,
    HIVE_METASTORE,
    IN_PROCESS,
    LEAST_LEASE_MS,
    LOCK_PROVIDER,
    LOCK_PROVIDERS,
    OVERLAPPING,
    STORAGE,
    ZOOKEEPER,
    ZOOKEEPER_IMPLICIT,
)


def lock_of(storage: Storage, config: TransactionConfig, *, table_name: str = "") -> TableLock:
    """Table lock configured by transaction options.

    Args:
        table_name: for providers that name the lock by it, where the options have none.

    Raises:
        InvalidOptionError: several writers on a store without a lock between processes, and no provider.
    """
    settings = config.lock
    options = {TABLE_NAME: table_name, **config.raw} if table_name else config.raw
    lock = lock_for(storage, settings, options=options)
    within_process = isinstance(lock, InProcessLock) and not settings.provider
    if config.mode in OVERLAPPING and within_process and not storage.uri.startswith("memory://"):
        raise InvalidOptionError(
            f"{CONCURRENCY_MODE}={config.mode} needs a lock between processes, and this store has none of its own",
            table=storage.uri,
            remedy=f"give {LOCK_PROVIDER} to all writers of the table: one of {', '.join(sorted(LOCK_PROVIDERS))}.",
            option=LOCK_PROVIDER,
        )
    wait_ms = settings.wait_ms
    if settings.provider in (DYNAMODB, DYNAMODB_IMPLICIT):
        # As in Apache Hudi's client: a holder that died has its lease for as long as a try waits, from when it is seen.
        wait_ms += max(wait_ms, LEAST_LEASE_MS)
    return TableLock(lock, wait_ms, settings.client_retries or 0, settings.client_pause_ms)


def lock_for(
    storage: Storage, config: LockConfig | None = None, *, options: Mapping[str, str] | None = None
) -> Lock:
    """The lock of a table.

    Args:
        config: without a provider the default: `LocalLock` for folders of this machine, `StorageLock` where the
            store replaces files on condition, else a lock within this process, as Apache Hudi's single-writer mode.
        options: the call's, for the store of a lock file and for classes of the user.

    Raises:
        UnsupportedError: another provider, or one whose client library is missing.
        InvalidOptionError, LockError: as `own_lock`.
    """
    config = config or LockConfig()
    if not config.provider:
        return _default(storage, config)
    if ":" in config.provider:
        from hudi_timeline.concurrency.locks.own_class import own_lock

        return own_lock(storage.uri, config.provider, options or {})
    make = _PROVIDERS.get(config.provider)
    if make is None:
        raise UnsupportedError(
            f"{LOCK_PROVIDER}={config.provider} is not supported",
            table=storage.uri,
            remedy=f"use one of {', '.join(sorted(LOCK_PROVIDERS))}, or a lock of your own as module:Class.",
            option=LOCK_PROVIDER,
        )
    return make(storage, config, options or {})


def _default(storage: Storage, config: LockConfig) -> Lock:
    if storage.is_local:
        from hudi_timeline.concurrency.locks.local import LocalLock  # fcntl is not there on every system

        return LocalLock(storage)
    if isinstance(storage, ReplacingStorage) and storage.can_replace:
        return StorageLock(storage, validity_s=config.validity_s)
    return InProcessLock(storage.uri)


def _file_system(storage: Storage, config: LockConfig, options: Mapping[str, str]) -> Lock:
    minutes = config.expire_minutes
    if config.path:
        return FileSystemLock(open_storage(config.path, options=options), "", expire_minutes=minutes)
    return FileSystemLock(storage, expire_minutes=minutes)


def _zookeeper(storage: Storage, config: LockConfig, _: Mapping[str, str]) -> Lock:
    from hudi_timeline.concurrency.locks.zookeeper import ZookeeperLock

    implicit = config.provider == ZOOKEEPER_IMPLICIT
    path = (
        f"/tmp/{_hash(storage.uri)}/lock_key"
        if implicit
        else f"{config.zookeeper_base_path}/{config.zookeeper_lock_key}"
    )
    return ZookeeperLock(
        config.zookeeper_url or "",
        path,
        port=config.zookeeper_port,
        session_ms=config.zookeeper_session_ms,
        connection_ms=config.zookeeper_connection_ms,
        retries=config.retries,
        pause_ms=config.pause_ms,
        most_pause_ms=config.most_pause_ms,
    )


def _dynamodb(storage: Storage, config: LockConfig, options: Mapping[str, str]) -> Lock:
    from hudi_timeline.concurrency.locks.dynamodb import DynamoDBLock

    if config.provider == DYNAMODB_IMPLICIT:
        return DynamoDBLock(_hash(storage.uri), config)
    key = config.dynamodb_key or options.get(TABLE_NAME)
    if not key:
        raise InvalidOptionError(
            f"{DYNAMODB_KEY} is not given, and neither is the table's name",
            table=storage.uri,
            remedy=f"give {DYNAMODB_KEY}, the same for all writers of the table.",
            option=DYNAMODB_KEY,
        )
    return DynamoDBLock(key, config)


def _hive_metastore(_: Storage, config: LockConfig, __: Mapping[str, str]) -> Lock:
    from hudi_timeline.concurrency.locks.hive_metastore import HiveMetastoreLock

    return HiveMetastoreLock(config)


def _hash(uri: str) -> str:
    """Hash of a base path, by which implicit providers of Apache Hudi 1.x name a table's lock."""
    from hudi_index.hashing.name_ids import xxh64  # of no other lock

    return f"{xxh64(pa.array([uri], pa.string()))[0].as_py():016X}"


_PROVIDERS: dict[str, Callable[[Storage, LockConfig, Mapping[str, str]], Lock]] = {
    IN_PROCESS: lambda storage, _, __: InProcessLock(storage.uri),
    FILE_SYSTEM: _file_system,
    STORAGE: lambda storage, config, _: StorageLock(storage, validity_s=config.validity_s),
    ZOOKEEPER: _zookeeper,
    ZOOKEEPER_IMPLICIT: _zookeeper,
    DYNAMODB: _dynamodb,
    DYNAMODB_IMPLICIT: _dynamodb,
    HIVE_METASTORE: _hive_metastore,
}
