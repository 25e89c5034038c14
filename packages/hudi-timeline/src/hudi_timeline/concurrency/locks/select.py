"""Selection of a table's lock: the configured provider, or the storage's default."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_format.errors import UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import ReplacingStorage, Storage
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.provider import InProcessLock, Lock, TableLock
from hudi_timeline.concurrency.locks.storage_lock import DEFAULT_VALIDITY_S, StorageLock
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.transaction_options import LOCK_PROVIDER, LOCKS

IN_PROCESS = LOCKS + "InProcessLockProvider"
FILE_SYSTEM = LOCKS + "FileSystemBasedLockProvider"
STORAGE = LOCKS + "StorageBasedLockProvider"


def lock_of(storage: Storage, config: TransactionConfig) -> TableLock:
    """Table lock configured by transaction options."""
    lock = lock_for(
        storage,
        config.lock_provider,
        path=config.lock_path,
        expire_minutes=config.lock_expire_minutes,
        validity_s=config.lock_validity_s,
        options=config.raw,
    )
    return TableLock(lock, config.lock_wait_ms)


def lock_for(
    storage: Storage,
    provider: str | None = None,
    *,
    path: str | None = None,
    expire_minutes: int = 0,
    validity_s: int = DEFAULT_VALIDITY_S,
    options: Mapping[str, str] | None = None,
) -> Lock:
    """The lock of a table.

    Args:
        provider: class name of Apache Hudi's lock provider; None for the default: `LocalLock` for
            folders of this machine, `StorageLock` where the store replaces files on condition, else a lock
            within this process, as Apache Hudi's single-writer mode.
        path, expire_minutes: `hoodie.write.lock.filesystem.path` and `.expire`.
        validity_s: `hoodie.write.lock.storage.validity.timeout.secs`.
        options: the write's, for the store of `path`.

    Raises:
        UnsupportedError: another provider.
    """
    if not provider:
        if storage.is_local:
            from hudi_timeline.concurrency.locks.local import LocalLock  # fcntl is not there on every system

            return LocalLock(storage)
        if isinstance(storage, ReplacingStorage) and storage.can_replace:
            return StorageLock(storage, validity_s=validity_s)
        return InProcessLock(storage.uri)
    if provider == IN_PROCESS:
        return InProcessLock(storage.uri)
    if provider == FILE_SYSTEM:
        if path:
            return FileSystemLock(open_storage(path, options=options), "", expire_minutes=expire_minutes)
        return FileSystemLock(storage, expire_minutes=expire_minutes)
    if provider == STORAGE:
        return StorageLock(storage, validity_s=validity_s)
    raise UnsupportedError(
        f"{LOCK_PROVIDER}={provider} is not supported yet",
        table=storage.uri,
        remedy=f"use {FILE_SYSTEM} or {STORAGE}, or omit the option: tables on local file systems "
        "are then locked between processes by flock, tables on S3 by a lock file.",
        option=LOCK_PROVIDER,
    )
