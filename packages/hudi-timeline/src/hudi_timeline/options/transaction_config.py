"""Transaction options of writes and table services, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_format.errors import ConflictingOptionError, InvalidOptionError
from hudi_timeline.options import transaction_options as keys
from hudi_timeline.options.config_key import ConfigKey, given_value, given_values, keys_of, value_of
from hudi_timeline.options.registry import ParsedOptions, canonical

EAGER, LAZY, NEVER = "EAGER", "LAZY", "NEVER"


@dataclass(frozen=True, slots=True)
class LockConfig:
    """Options of the table's lock; the defaults are Apache Hudi's.

    Attributes:
        provider: the full name of a Java class, or module:Class of Python; None for the store's default.
        wait_ms: how long one try waits for it.
        client_retries, client_pause_ms: further tries, and the pause between two; None for no more.
        retries, pause_ms, most_pause_ms: of requests that the lock's server does not answer.
    """

    provider: str | None = given_value(keys.LOCK_PROVIDER)
    path: str | None = given_value(keys.LOCK_PATH)
    expire_minutes: int = value_of(keys.LOCK_EXPIRE_MINUTES)
    validity_s: int = value_of(keys.LOCK_VALIDITY_S)
    wait_ms: int = value_of(keys.LOCK_WAIT_MS)
    client_retries: int | None = given_value(keys.LOCK_CLIENT_RETRIES)
    client_pause_ms: int = value_of(keys.LOCK_CLIENT_PAUSE_MS)
    retries: int = value_of(keys.LOCK_RETRIES)
    pause_ms: int = value_of(keys.LOCK_PAUSE_MS)
    most_pause_ms: int = value_of(keys.LOCK_MOST_PAUSE_MS)
    zookeeper_url: str | None = given_value(keys.ZOOKEEPER_URL)
    zookeeper_port: int | None = given_value(keys.ZOOKEEPER_PORT)
    zookeeper_base_path: str | None = given_value(keys.ZOOKEEPER_BASE_PATH)
    zookeeper_lock_key: str | None = given_value(keys.ZOOKEEPER_LOCK_KEY)
    zookeeper_session_ms: int = value_of(keys.ZOOKEEPER_SESSION_MS)
    zookeeper_connection_ms: int = value_of(keys.ZOOKEEPER_CONNECTION_MS)
    dynamodb_table: str | None = given_value(keys.DYNAMODB_TABLE)
    dynamodb_key: str | None = given_value(keys.DYNAMODB_KEY)
    dynamodb_region: str | None = given_value(keys.DYNAMODB_REGION)
    dynamodb_endpoint: str | None = given_value(keys.DYNAMODB_ENDPOINT)
    dynamodb_billing_mode: str = value_of(keys.DYNAMODB_BILLING_MODE)
    dynamodb_read_capacity: int = value_of(keys.DYNAMODB_READ_CAPACITY)
    dynamodb_write_capacity: int = value_of(keys.DYNAMODB_WRITE_CAPACITY)
    dynamodb_creation_ms: int = value_of(keys.DYNAMODB_CREATION_MS)
    hive_database: str | None = given_value(keys.HIVE_DATABASE)
    hive_table: str | None = given_value(keys.HIVE_TABLE)
    hive_uris: str | None = given_value(keys.HIVE_URIS)
    hive_heartbeat_ms: int = value_of(keys.HIVE_HEARTBEAT_MS)
    aws_access_key: str | None = given_value(keys.AWS_ACCESS_KEY)
    aws_secret_key: str | None = field(
        default=None, repr=False, metadata=given_value(keys.AWS_SECRET_KEY).metadata
    )
    aws_session_token: str | None = field(
        default=None, repr=False, metadata=given_value(keys.AWS_SESSION_TOKEN).metadata
    )
    aws_role_arn: str | None = given_value(keys.AWS_ROLE_ARN)
    aws_role_session: str = value_of(keys.AWS_ROLE_SESSION)
    aws_role_external_id: str | None = given_value(keys.AWS_ROLE_EXTERNAL_ID)


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """Options of the metadata table's indexes; the defaults are Apache Hudi's.

    Attributes:
        column_stats, bloom_filters, record_index: whether a write makes or drops one; None: it is kept as it is.
        columns: of column_stats; None for all top-level ones.
        is_async: whether indexes are left to a build beside writers.
    """

    is_async: bool = value_of(keys.ASYNC_INDEX)

    column_stats: bool | None = given_value(keys.COLUMN_STATS_ENABLE)
    columns: tuple[str, ...] | None = given_value(keys.COLUMN_STATS_COLUMNS)
    column_stats_groups: int = value_of(keys.COLUMN_STATS_GROUPS)
    bloom_filters: bool | None = given_value(keys.BLOOM_FILTERS_ENABLE)
    bloom_filters_groups: int = value_of(keys.BLOOM_FILTERS_GROUPS)
    record_index: bool | None = given_value(keys.RECORD_INDEX_ENABLE)
    record_index_least: int = value_of(keys.RECORD_INDEX_LEAST_GROUPS)
    record_index_most: int = value_of(keys.RECORD_INDEX_MOST_GROUPS)
    record_index_growth: float = value_of(keys.RECORD_INDEX_GROWTH)
    record_index_bytes: int = value_of(keys.RECORD_INDEX_GROUP_BYTES)

    @property
    def switches(self) -> dict[str, bool | None]:
        """Switches by metadata partition."""
        return {
            "column_stats": self.column_stats,
            "bloom_filters": self.bloom_filters,
            "record_index": self.record_index,
        }


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """Options of a transaction; the defaults are Apache Hudi's.

    Attributes:
        failed_writes: EAGER rolls back dead pending writes at the beginning and refuses to run beside a
            live one; LAZY and NEVER leave them alone.
        mode: of concurrency; those in which writers overlap have the policy LAZY, as in Apache Hudi.
        conflict_strategy: the full name of a Java class, or module:Class of Python.
        detection: of conflicts, by file groups or by keys.
        early_detection: whether markers of others are looked at before each file is begun.
        early_strategy: the full name of a Java class.
        early_commits: whether commits since its begin are looked at then too.
        conflict_retries: how often a write that lost to another one is run again.
        priority: class among writes and services that overlap.
        precedence_after: lost tries after which a write has precedence; 0 for never.
        precedence_wait_ms: how long others wait for it.
        running_wait_ms: how long the policy EAGER waits for a live pending write.
        instant: of the write; None for the clock's.
        seed: of the ids of new file groups; "" for random ones.
        lock: of the table's lock.
        indexes: of the metadata table.
        raw: what was given, for the store of the lock's folder.
    """

    heartbeat_interval_ms: int = value_of(keys.HEARTBEAT_INTERVAL_MS)
    heartbeat_misses: int = value_of(keys.HEARTBEAT_MISSES)
    failed_writes: str = value_of(keys.FAILED_WRITES_POLICY)
    mode: str = value_of(keys.CONCURRENCY_MODE)
    conflict_strategy: str = value_of(keys.CONFLICT_STRATEGY)
    detection: str = value_of(keys.CONFLICT_DETECTION)
    early_detection: bool = value_of(keys.EARLY_DETECTION)
    early_strategy: str = value_of(keys.EARLY_STRATEGY)
    early_commits: bool = value_of(keys.EARLY_COMMITS)
    conflict_retries: int = value_of(keys.CONFLICT_RETRIES)
    priority: str = value_of(keys.PRIORITY)
    precedence_after: int = value_of(keys.PRECEDENCE_AFTER)
    precedence_wait_ms: int = value_of(keys.PRECEDENCE_WAIT_MS)
    running_wait_ms: int = value_of(keys.RUNNING_WAIT_MS)
    instant: str | None = given_value(keys.WRITE_INSTANT)
    seed: str = value_of(keys.WRITE_SEED)
    lock: LockConfig = field(default_factory=LockConfig)
    consistency_check: bool = value_of(keys.CONSISTENCY_CHECK)
    consistency_first_ms: int = value_of(keys.CONSISTENCY_FIRST_MS)
    consistency_most_ms: int = value_of(keys.CONSISTENCY_MOST_MS)
    consistency_checks: int = value_of(keys.CONSISTENCY_CHECKS)
    metadata_enable: bool | None = given_value(keys.METADATA_ENABLE)
    indexes: IndexConfig = field(default_factory=IndexConfig)
    durability: str = value_of(keys.DURABILITY)
    allow_empty: bool = value_of(keys.ALLOW_EMPTY_COMMIT)
    raw: Mapping[str, str] = field(default_factory=dict)

    @property
    def beats(self) -> tuple[int, int]:
        """Interval of heartbeats in milliseconds, and tolerable misses."""
        return self.heartbeat_interval_ms, self.heartbeat_misses


INDEX_FIELDS = keys_of(IndexConfig)

_ZOOKEEPER = (keys.ZOOKEEPER, keys.ZOOKEEPER_IMPLICIT)
_DYNAMODB = (keys.DYNAMODB, keys.DYNAMODB_IMPLICIT)
# Of a provider's own options: the providers that read them, and whether one needs it.
_OF_PROVIDERS: tuple[tuple[ConfigKey, tuple[str, ...], tuple[str, ...]], ...] = (
    (keys.LOCK_PATH, (keys.FILE_SYSTEM,), ()),
    (keys.LOCK_EXPIRE_MINUTES, (keys.FILE_SYSTEM,), ()),
    # Apache Hudi gives a metastore's provider the address of a ZooKeeper too, which the metastore itself does not ask.
    (keys.ZOOKEEPER_URL, (*_ZOOKEEPER, keys.HIVE_METASTORE), _ZOOKEEPER),
    (keys.ZOOKEEPER_PORT, (*_ZOOKEEPER, keys.HIVE_METASTORE), ()),
    (keys.ZOOKEEPER_BASE_PATH, (keys.ZOOKEEPER,), (keys.ZOOKEEPER,)),
    (keys.ZOOKEEPER_LOCK_KEY, (keys.ZOOKEEPER,), (keys.ZOOKEEPER,)),
    (keys.ZOOKEEPER_SESSION_MS, (*_ZOOKEEPER, keys.HIVE_METASTORE), ()),
    (keys.ZOOKEEPER_CONNECTION_MS, _ZOOKEEPER, ()),
    (keys.HIVE_DATABASE, (keys.HIVE_METASTORE,), (keys.HIVE_METASTORE,)),
    (keys.HIVE_TABLE, (keys.HIVE_METASTORE,), (keys.HIVE_METASTORE,)),
    (keys.HIVE_URIS, (keys.HIVE_METASTORE,), (keys.HIVE_METASTORE,)),
    (keys.HIVE_HEARTBEAT_MS, (keys.HIVE_METASTORE,), ()),
    (keys.DYNAMODB_TABLE, _DYNAMODB, _DYNAMODB),
    (keys.DYNAMODB_KEY, (keys.DYNAMODB,), ()),
    (keys.DYNAMODB_REGION, _DYNAMODB, ()),
    (keys.DYNAMODB_ENDPOINT, _DYNAMODB, ()),
    (keys.DYNAMODB_BILLING_MODE, _DYNAMODB, ()),
    (keys.DYNAMODB_READ_CAPACITY, _DYNAMODB, ()),
    (keys.DYNAMODB_WRITE_CAPACITY, _DYNAMODB, ()),
    (keys.DYNAMODB_CREATION_MS, _DYNAMODB, ()),
)


def transaction_config(given: ParsedOptions) -> TransactionConfig:
    """Transaction options of a call.

    Raises:
        InvalidOptionError: a lock provider without what it needs.
        ConflictingOptionError: options of a lock provider that is not chosen.
    """
    values = given_values(TransactionConfig, given.parsed)
    if values.get("mode") in keys.OVERLAPPING:
        values["failed_writes"] = LAZY  # writers must not roll back each other
    if values.get("early_detection"):
        _check_early(values)
    if values.get("mode") == keys.NON_BLOCKING and values.get("detection") == keys.BY_KEYS:
        raise ConflictingOptionError(
            f"{keys.CONFLICT_DETECTION}={keys.BY_KEYS} is for {keys.OPTIMISTIC}: with {keys.NON_BLOCKING} each key has "
            "one file group",
            remedy="leave out one of the two.",
            option=str(keys.CONFLICT_DETECTION),
        )
    indexes = _index_config(given, values.get("metadata_enable"))
    return TransactionConfig(**values, lock=_lock_config(given), indexes=indexes, raw=given.text)


def _check_early(values: Mapping[str, Any]) -> None:
    """Refuse early conflict detection where nothing overlaps, or where overlapping is no conflict yet.

    Raises:
        ConflictingOptionError: the mode, or the detection by keys.
    """
    if values.get("mode") != keys.OPTIMISTIC:
        raise ConflictingOptionError(
            f"{keys.EARLY_DETECTION}=true is for writers that overlap",
            remedy=f"set {keys.CONCURRENCY_MODE}={keys.OPTIMISTIC} in all writers, or leave it out.",
            option=str(keys.EARLY_DETECTION),
        )
    if values.get("detection") == keys.BY_KEYS:
        raise ConflictingOptionError(
            f"{keys.EARLY_DETECTION}=true compares file groups, and {keys.CONFLICT_DETECTION}={keys.BY_KEYS} the keys "
            "in them, which are known when a writer commits",
            remedy="leave out one of the two.",
            option=str(keys.EARLY_DETECTION),
        )


def _index_config(given: ParsedOptions, metadata_enable: bool | None) -> IndexConfig:
    values = given_values(IndexConfig, given.parsed)
    found = IndexConfig(**values)
    asked = [INDEX_FIELDS[name] for name, switch in found.switches.items() if switch]
    if asked and metadata_enable is False:
        raise ConflictingOptionError(
            f"{given.given_as[asked[0]]}=true asks for an index of the metadata table, and "
            f"{keys.METADATA_ENABLE}=false drops it",
            remedy=f"set {keys.METADATA_ENABLE}=true, or leave the index out.",
            option=str(asked[0]),
        )
    if found.record_index_least > found.record_index_most:
        raise ConflictingOptionError(
            f"{keys.RECORD_INDEX_LEAST_GROUPS}={found.record_index_least} is more than "
            f"{keys.RECORD_INDEX_MOST_GROUPS}={found.record_index_most}",
            remedy="set the least to no more than the greatest.",
            option=str(keys.RECORD_INDEX_LEAST_GROUPS),
        )
    return found


def _lock_config(given: ParsedOptions) -> LockConfig:
    values = given_values(LockConfig, given.parsed)
    if not values.get("path"):
        values.pop("path", None)
    by_address = any(
        given.text.get(k) for k in (keys.ZOOKEEPER_URL, keys.ZOOKEEPER_BASE_PATH, keys.ZOOKEEPER_LOCK_KEY)
    )
    if (
        by_address
        and not values.get("provider")
        and given.parsed.get(keys.CONCURRENCY_MODE) in keys.OVERLAPPING
    ):
        # The default of Apache Hudi 0.x, which its documentation's example of several writers relies on.
        values["provider"] = keys.ZOOKEEPER
    provider = values.get("provider")
    for key, readers, needers in _OF_PROVIDERS:
        if provider in needers and key not in given.parsed:
            raise InvalidOptionError(
                f"{provider} needs {key}, which is not given",
                remedy=f"give {key}: {key.doc[0].lower()}{key.doc[1:]}",
                option=str(key),
            )
        own_class = provider is not None and ":" in provider  # it may read what it likes
        if key in given.parsed and given.text[key] and provider not in readers and not own_class:
            # Left out, two writers of one table would have two locks, without a word.
            chosen = f"{keys.LOCK_PROVIDER}={provider}" if provider else f"no {keys.LOCK_PROVIDER}"
            raise ConflictingOptionError(
                f"{given.given_as[key]} is given with {chosen}, whose lock does not read it",
                remedy=f"set {keys.LOCK_PROVIDER}={readers[0]}, or leave the option out.",
                option=str(key),
            )
    return LockConfig(**values)


def parse_transaction_options(options: Mapping[str, str]) -> TransactionConfig:
    """Transaction options of a table service or repair.

    Raises:
        UnknownOptionError, InvalidOptionError, ConflictingOptionError: as for writes.
    """
    return transaction_config(canonical(options))
