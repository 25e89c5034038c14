"""Transaction options of writes and table services, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_timeline.options.config_key import given_value, keys_of, value_of
from hudi_timeline.options.registry import ParsedOptions, canonical
from hudi_timeline.options.transaction_options import (
    ALLOW_EMPTY_COMMIT,
    CONCURRENCY_MODE,
    CONSISTENCY_CHECK,
    CONSISTENCY_CHECKS,
    CONSISTENCY_FIRST_MS,
    CONSISTENCY_MOST_MS,
    DURABILITY,
    FAILED_WRITES_POLICY,
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_MISSES,
    LOCK_EXPIRE_MINUTES,
    LOCK_PATH,
    LOCK_PROVIDER,
    LOCK_VALIDITY_S,
    LOCK_WAIT_MS,
    METADATA_ENABLE,
)

EAGER, LAZY, NEVER = "EAGER", "LAZY", "NEVER"


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """Options of a transaction; the defaults are Apache Hudi's.

    Attributes:
        failed_writes: EAGER rolls back dead pending writes at the beginning and refuses to run beside a
            live one; LAZY and NEVER leave them alone.
        lock_provider: the full name of a Java class.
        lock_wait_ms: how long to wait for the lock, in all.
        raw: what was given, for the store of the lock's folder.
    """

    heartbeat_interval_ms: int = value_of(HEARTBEAT_INTERVAL_MS)
    heartbeat_misses: int = value_of(HEARTBEAT_MISSES)
    failed_writes: str = value_of(FAILED_WRITES_POLICY)
    lock_provider: str | None = given_value(LOCK_PROVIDER)
    lock_path: str | None = given_value(LOCK_PATH)
    lock_expire_minutes: int = value_of(LOCK_EXPIRE_MINUTES)
    lock_validity_s: int = value_of(LOCK_VALIDITY_S)
    lock_wait_ms: int = value_of(LOCK_WAIT_MS)
    consistency_check: bool = value_of(CONSISTENCY_CHECK)
    consistency_first_ms: int = value_of(CONSISTENCY_FIRST_MS)
    consistency_most_ms: int = value_of(CONSISTENCY_MOST_MS)
    consistency_checks: int = value_of(CONSISTENCY_CHECKS)
    metadata_enable: bool | None = given_value(METADATA_ENABLE)
    durability: str = value_of(DURABILITY)
    allow_empty: bool = value_of(ALLOW_EMPTY_COMMIT)
    raw: Mapping[str, str] = field(default_factory=dict)


TRANSACTION_FIELDS = keys_of(TransactionConfig)


def transaction_config(given: ParsedOptions) -> TransactionConfig:
    """Transaction options of a call."""
    values: dict[str, Any] = {n: given.parsed[k] for n, k in TRANSACTION_FIELDS.items() if k in given.parsed}
    if not values.get("lock_path"):
        values.pop("lock_path", None)
    policy = values.get("failed_writes", FAILED_WRITES_POLICY.value)
    if policy == EAGER and given.parsed.get(CONCURRENCY_MODE) == "OPTIMISTIC_CONCURRENCY_CONTROL":
        values["failed_writes"] = LAZY  # writers must not roll back each other
    return TransactionConfig(**values, raw=given.text)


def parse_transaction_options(options: Mapping[str, str]) -> TransactionConfig:
    """Transaction options of a table service or repair.

    Raises:
        UnknownOptionError, InvalidOptionError, ConflictingOptionError: as for writes.
    """
    return transaction_config(canonical(options))
