"""Options of transactions."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_timeline.options.config_key import ConfigKey, Unsupported, is_given
from hudi_timeline.options.option_types import (
    BOOLEAN,
    BYTES,
    FIELDS,
    MILLISECONDS,
    NAME,
    TEXT,
    WHOLE,
    OptionType,
    choice,
    class_or_function,
    java_class,
    number,
    whole,
)

LOCKS = "org.apache.hudi.client.transaction.lock."
IN_PROCESS = LOCKS + "InProcessLockProvider"
FILE_SYSTEM = LOCKS + "FileSystemBasedLockProvider"
STORAGE = LOCKS + "StorageBasedLockProvider"
ZOOKEEPER = LOCKS + "ZookeeperBasedLockProvider"
ZOOKEEPER_IMPLICIT = LOCKS + "ZookeeperBasedImplicitBasePathLockProvider"
DYNAMODB = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"
DYNAMODB_IMPLICIT = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider"
HIVE_METASTORE = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
LOCK_PROVIDERS: Mapping[str, str] = {
    name.rpartition(".")[2]: name
    for name in (
        IN_PROCESS,
        FILE_SYSTEM,
        STORAGE,
        ZOOKEEPER,
        ZOOKEEPER_IMPLICIT,
        DYNAMODB,
        DYNAMODB_IMPLICIT,
        HIVE_METASTORE,
    )
}
"""Full names of the lock providers, by their names without package, which are in several packages."""


def _lock_class(text: str) -> object:
    return LOCK_PROVIDERS.get(text.strip()) or _CLASS_OR_FUNCTION.parse(text)


_CLASS_OR_FUNCTION = class_or_function(LOCKS)
LOCK_CLASS = OptionType(_CLASS_OR_FUNCTION.allowed, _lock_class)

_STRATEGY_PACKAGE = "org.apache.hudi.client.transaction."
SIMPLE_STRATEGY = _STRATEGY_PACKAGE + "SimpleConcurrentFileWritesConflictResolutionStrategy"
BUCKET_STRATEGY = _STRATEGY_PACKAGE + "BucketIndexConcurrentFileWritesConflictResolutionStrategy"
PRIMARY_STRATEGIES = (  # the second is its name in releases 0.14 and later
    _STRATEGY_PACKAGE + "IngestionPrimaryWriterBasedConflictResolutionStrategy",
    _STRATEGY_PACKAGE + "PreferWriterConflictResolutionStrategy",
)
STRATEGIES = (SIMPLE_STRATEGY, BUCKET_STRATEGY, *PRIMARY_STRATEGIES)
STRATEGY_CLASS = class_or_function(_STRATEGY_PACKAGE)

# Strategies of early conflict detection.  The third one is for markers that Apache Hudi's timeline server keeps: there
# is none here, and what it finds after a while is found at once.
_MARKER_PACKAGE = "org.apache.hudi.table.marker."
EARLY_DIRECT = _MARKER_PACKAGE + "SimpleDirectMarkerBasedDetectionStrategy"
EARLY_TRANSACTION = _MARKER_PACKAGE + "SimpleTransactionDirectMarkerBasedDetectionStrategy"
EARLY_ASYNC = "org.apache.hudi.timeline.service.handlers.marker.AsyncTimelineServerBasedDetectionStrategy"
_EARLY = {name.rpartition(".")[2]: name for name in (EARLY_DIRECT, EARLY_TRANSACTION, EARLY_ASYNC)}
_EARLY_CLASS = java_class(_MARKER_PACKAGE)
EARLY_STRATEGY_CLASS = OptionType(
    _EARLY_CLASS.allowed, lambda text: _EARLY.get(text.strip()) or _EARLY_CLASS.parse(text)
)

# What belongs together of a declaration stands in one line.
# fmt: off
HEARTBEAT_INTERVAL_MS = ConfigKey(
    "hoodie.client.heartbeat.interval_in_ms", MILLISECONDS, "60000",
    doc="How often a running write shows that it is alive."
)
HEARTBEAT_MISSES = ConfigKey(
    "hoodie.client.heartbeat.tolerable.misses", whole(1, unit="heartbeats"), "2",
    doc="Missed heartbeats after which a write counts as dead."
)
FAILED_WRITES_POLICY = ConfigKey(
    "hoodie.cleaner.policy.failed.writes", choice("EAGER", "LAZY", "NEVER"), "EAGER",
    doc="EAGER: a write first rolls back what dead writes left.", alternatives=("hoodie.clean.failed.writes.policy",)
)
LOCK_PROVIDER = ConfigKey(
    "hoodie.write.lock.provider", LOCK_CLASS,
    "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider", since="0.8.0",
    doc="Lock between writers: a class of Apache Hudi, or module:Class of Python; not given: flock on local file "
    "systems, a lock file on S3, else within the process.",
    unsupported=Unsupported(
        lambda value: is_given(value) and value not in LOCK_PROVIDERS.values() and ":" not in str(value),
        "a lock provider",
        f"use one of {', '.join(sorted(LOCK_PROVIDERS))}, or a lock of your own as module:Class"
    )
)
LOCK_PATH = ConfigKey(
    "hoodie.write.lock.filesystem.path", TEXT, since="0.8.0",
    doc="Folder of the lock file; not given: the table's .hoodie."
)
LOCK_EXPIRE_MINUTES = ConfigKey(
    "hoodie.write.lock.filesystem.expire", whole(0, unit="minutes (0: never)"), "0", since="0.12.0",
    doc="Age in minutes at which a lock file counts as left over; 0: never."
)
LOCK_VALIDITY_S = ConfigKey(
    "hoodie.write.lock.storage.validity.timeout.secs", whole(1, unit="seconds"), "300", since="1.0.2",
    doc="How long a lock on S3 counts if its writer dies without giving it back."
)
LOCK_WAIT_MS = ConfigKey(
    "hoodie.write.lock.wait_time_ms", whole(0, unit="milliseconds"), "60000", since="0.8.0",
    doc="How long one try waits for the lock; on DynamoDB also how long a lock counts that is not renewed."
)
LOCK_CLIENT_RETRIES = ConfigKey(
    "hoodie.write.lock.client.num_retries", whole(0, unit="tries"), "50", since="0.8.0",
    doc="Further tries after the first one; not given: none."
)
LOCK_CLIENT_PAUSE_MS = ConfigKey(
    "hoodie.write.lock.client.wait_time_ms_between_retry", whole(0, unit="milliseconds"), "5000", since="0.8.0",
    doc="Pause between two tries."
)
LOCK_RETRIES = ConfigKey(
    "hoodie.write.lock.num_retries", whole(0, unit="tries"), "15", since="0.8.0",
    doc="Further tries of a request that the lock's server does not answer."
)
LOCK_PAUSE_MS = ConfigKey(
    "hoodie.write.lock.wait_time_ms_between_retry", whole(0, unit="milliseconds"), "1000", since="0.8.0",
    doc="Pause before the first of them; each is twice as long as the one before."
)
LOCK_MOST_PAUSE_MS = ConfigKey(
    "hoodie.write.lock.max_wait_time_ms_between_retry", whole(0, unit="milliseconds"), "16000", since="0.8.0",
    doc="The longest such pause."
)
ZOOKEEPER_URL = ConfigKey(
    "hoodie.write.lock.zookeeper.url", NAME, since="0.8.0",
    doc="Hosts of ZooKeeper with commas between them, each with its port or without."
)
ZOOKEEPER_PORT = ConfigKey(
    "hoodie.write.lock.zookeeper.port", whole(1, 65535), since="0.8.0",
    doc="Port of the hosts that are given without one; not given: 2181."
)
ZOOKEEPER_BASE_PATH = ConfigKey(
    "hoodie.write.lock.zookeeper.base_path", NAME, since="0.8.0", doc="Node below which the lock's node lies."
)
ZOOKEEPER_LOCK_KEY = ConfigKey(
    "hoodie.write.lock.zookeeper.lock_key", NAME, since="0.8.0", doc="Name of the lock's node: one for each table."
)
ZOOKEEPER_SESSION_MS = ConfigKey(
    "hoodie.write.lock.zookeeper.session_timeout_ms", MILLISECONDS, "60000", since="0.8.0",
    doc="After how long a writer that is not heard of loses the lock."
)
ZOOKEEPER_CONNECTION_MS = ConfigKey(
    "hoodie.write.lock.zookeeper.connection_timeout_ms", MILLISECONDS, "15000", since="0.8.0",
    doc="How long to wait for a connection."
)
# A lease in DynamoDB is as long as a try waits; shorter ones run out between two requests.
LEAST_LEASE_MS = 10_000
DYNAMODB_TABLE = ConfigKey(
    "hoodie.write.lock.dynamodb.table", NAME, since="0.10.0",
    doc="DynamoDB table of the locks; it is made where it is not there."
)
DYNAMODB_KEY = ConfigKey(
    "hoodie.write.lock.dynamodb.partition_key", NAME, since="0.10.0",
    doc="Key of the lock's item; not given: the table's name."
)
DYNAMODB_REGION = ConfigKey(
    "hoodie.write.lock.dynamodb.region", NAME, "us-east-1", since="0.10.0",
    doc="Region of the table; not given: that of AWS_REGION in the environment."
)
DYNAMODB_ENDPOINT = ConfigKey(
    "hoodie.write.lock.dynamodb.endpoint_url", NAME, since="0.10.0",
    doc="Address of DynamoDB; not given: that of the region."
)
DYNAMODB_BILLING_MODE = ConfigKey(
    "hoodie.write.lock.dynamodb.billing_mode", choice("PAY_PER_REQUEST", "PROVISIONED"), "PAY_PER_REQUEST",
    since="0.10.0", doc="Billing of a table that is made."
)
DYNAMODB_READ_CAPACITY = ConfigKey(
    "hoodie.write.lock.dynamodb.read_capacity", whole(1, unit="units"), "20", since="0.10.0",
    doc="Read capacity of a PROVISIONED table that is made."
)
DYNAMODB_WRITE_CAPACITY = ConfigKey(
    "hoodie.write.lock.dynamodb.write_capacity", whole(1, unit="units"), "10", since="0.10.0",
    doc="Write capacity of a PROVISIONED table that is made."
)
DYNAMODB_CREATION_MS = ConfigKey(
    "hoodie.write.lock.dynamodb.table_creation_timeout", MILLISECONDS, "120000", since="0.10.0",
    doc="How long to wait for a table that is made."
)
AWS_ACCESS_KEY = ConfigKey(
    "hoodie.aws.access.key", NAME, since="0.10.0",
    doc="Access key for DynamoDB; not given: the credentials of the environment."
)
AWS_SECRET_KEY = ConfigKey("hoodie.aws.secret.key", NAME, since="0.10.0", doc="Secret of the access key.")
AWS_SESSION_TOKEN = ConfigKey(
    "hoodie.aws.session.token", NAME, since="0.10.0", doc="Token of temporary credentials."
)
AWS_ROLE_ARN = ConfigKey(
    "hoodie.aws.role.arn", NAME, since="0.15.0",
    doc="Role that is assumed for DynamoDB by the credentials that are given, or those of the environment."
)
AWS_ROLE_SESSION = ConfigKey(
    "hoodie.aws.role.session.name", NAME, "hoodie", since="0.15.0", doc="Name of the assumed role's session."
)
AWS_ROLE_EXTERNAL_ID = ConfigKey(
    "hoodie.aws.role.external.id", NAME, since="0.15.0", doc="External id that the role's trust asks for."
)
HIVE_DATABASE = ConfigKey(
    "hoodie.write.lock.hivemetastore.database", NAME, since="0.8.0",
    doc="Database of the table that is locked in the Hive metastore."
)
HIVE_TABLE = ConfigKey(
    "hoodie.write.lock.hivemetastore.table", NAME, since="0.8.0",
    doc="Table that is locked in the Hive metastore; it need not be there."
)
HIVE_URIS = ConfigKey(
    "hoodie.write.lock.hivemetastore.uris", NAME, since="0.8.0",
    doc="Addresses of the metastore, thrift://host:port with commas between them."
)
HIVE_HEARTBEAT_MS = ConfigKey(
    "hoodie.write.lock.heartbeat_interval_ms", MILLISECONDS, "60000", since="0.15.0",
    doc="How often the metastore hears of the lock's holder, which is twice in this time."
)
CONSISTENCY_CHECK = ConfigKey(
    "hoodie.consistency.check.enabled", BOOLEAN, "false", since="0.5.0",
    doc="Before a commit the store is asked for each of its files, for stores that show new files late."
)
CONSISTENCY_FIRST_MS = ConfigKey(
    "hoodie.consistency.check.initial_interval_ms", WHOLE, "2000", since="0.5.0",
    doc="Pause before files that are not there are looked for again."
)
CONSISTENCY_MOST_MS = ConfigKey(
    "hoodie.consistency.check.max_interval_ms", WHOLE, "300000", since="0.5.0",
    doc="The longest such pause; each is twice as long as the one before."
)
CONSISTENCY_CHECKS = ConfigKey(
    "hoodie.consistency.check.max_checks", WHOLE, "7", since="0.5.0", doc="How often the files are looked for."
)
METADATA_ENABLE = ConfigKey(
    "hoodie.metadata.enable", BOOLEAN, "true", since="0.7.0",
    doc="true: snapshots list files through the metadata table, and a write makes one; false: a write drops it. "
    "Not given: folders are listed, and a metadata table that is there is kept up to date."
)
COLUMN_STATS_ENABLE = ConfigKey(
    "hoodie.metadata.index.column.stats.enable", BOOLEAN, "false", since="0.11.0",
    doc="true: a write makes the metadata table's partition column_stats, with the bounds of columns in each file; "
    "false: a write drops it. Not given: one that is there is kept up to date."
)
COLUMN_STATS_COLUMNS = ConfigKey(
    "hoodie.metadata.index.column.stats.column.list", FIELDS, since="0.11.0",
    doc="Columns of column_stats, nested ones by dot path. All top-level columns if not given."
)
COLUMN_STATS_GROUPS = ConfigKey(
    "hoodie.metadata.index.column.stats.file.group.count", whole(1, 9999, unit="file groups"), "2", since="0.11.0",
    doc="File groups of column_stats, when it is made."
)
BLOOM_FILTERS_ENABLE = ConfigKey(
    "hoodie.metadata.index.bloom.filter.enable", BOOLEAN, "false", since="0.11.0",
    doc="true: a write makes the metadata table's partition bloom_filters, with the filters of base files; false: a "
    "write drops it. Not given: one that is there is kept up to date."
)
BLOOM_FILTERS_COLUMNS = ConfigKey(
    "hoodie.metadata.index.bloom.filter.column.list", FIELDS, since="0.11.0",
    doc="Columns of bloom_filters: the record key alone, as in base files.",
    unsupported=Unsupported(
        lambda found: found not in (None, (), ("_hoodie_record_key",)), "bloom filters of other columns than the key",
        "leave it out: the record key is indexed"
    )
)
BLOOM_FILTERS_GROUPS = ConfigKey(
    "hoodie.metadata.index.bloom.filter.file.group.count", whole(1, 9999, unit="file groups"), "4", since="0.11.0",
    doc="File groups of bloom_filters, when it is made."
)
ASYNC_INDEX = ConfigKey(
    "hoodie.metadata.index.async", BOOLEAN, "false", since="0.11.0",
    doc="true: a write does not make the indexes that its options ask for; `build_index`, which runs while writers go "
    "on, does. Those that are there are kept up to date."
)
RECORD_INDEX_ENABLE = ConfigKey(
    "hoodie.metadata.record.index.enable", BOOLEAN, "false", since="0.14.0",
    alternatives=("hoodie.metadata.global.record.level.index.enable",),
    doc="true: a write makes the metadata table's partition record_index, with the file group of each record key, "
    "where each key is in one; false: a write drops it. Not given: one that is there is kept up to date."
)
RECORD_INDEX_LEAST_GROUPS = ConfigKey(
    "hoodie.metadata.record.index.min.filegroup.count", whole(1, 9999, unit="file groups"), "10", since="0.14.0",
    alternatives=("hoodie.metadata.global.record.level.index.min.filegroup.count",),
    doc="Least number of file groups of record_index, when it is made."
)
RECORD_INDEX_MOST_GROUPS = ConfigKey(
    "hoodie.metadata.record.index.max.filegroup.count", whole(1, 10000, unit="file groups"), "10000", since="0.14.0",
    alternatives=("hoodie.metadata.global.record.level.index.max.filegroup.count",),
    doc="Greatest number of file groups of record_index, when it is made."
)
RECORD_INDEX_GROWTH = ConfigKey(
    "hoodie.metadata.record.index.growth.factor", number(above=0), "2.0", since="0.14.0",
    doc="How many times as many keys as there are the file groups of record_index are made for."
)
RECORD_INDEX_GROUP_BYTES = ConfigKey(
    "hoodie.metadata.record.index.max.filegroup.size", BYTES, "1073741824", since="0.14.0",
    doc="Size of a file group of record_index that their number is chosen for."
)
ALLOW_EMPTY_COMMIT = ConfigKey(
    "hoodie.allow.empty.commit", BOOLEAN, "true", doc="A write without rows makes a commit."
)
DURABILITY = ConfigKey(
    "hudi.durability", choice("flush", "none"), "flush", since="0.1.0",
    doc=(
        "flush: what a call has published outlives a power failure; none: it is left to the system when it reaches a "
        "local disk."
    )
)
# The modes of a table's writers.
SINGLE_WRITER, OPTIMISTIC, NON_BLOCKING = (
    "SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"
)
OVERLAPPING = (OPTIMISTIC, NON_BLOCKING)
# What two writers are compared by.
BY_FILE_GROUPS, BY_KEYS = "file_groups", "keys"
CONCURRENCY_MODE = ConfigKey(
    "hoodie.write.concurrency.mode", choice(SINGLE_WRITER, OPTIMISTIC, NON_BLOCKING), SINGLE_WRITER, since="0.8.0",
    doc="OPTIMISTIC_CONCURRENCY_CONTROL: writers overlap, and the second of two that changed one file group fails; it "
    "implies the policy LAZY of failed writes, and ZooKeeper's lock where its address is given and no provider. "
    "NON_BLOCKING_CONCURRENCY_CONTROL: the same, but writers that append to one file group both succeed, in "
    "merge-on-read tables with a simple bucket index whose merge does not depend on the order of writes."
)
CONFLICT_STRATEGY = ConfigKey(
    "hoodie.write.lock.conflict.resolution.strategy", STRATEGY_CLASS, SIMPLE_STRATEGY, since="0.8.0",
    doc="What is a conflict of two writers that overlap: a class of Apache Hudi, or module:Class of Python.",
    alternatives=("hoodie.write.conflict.resolution.strategy",),
    unsupported=Unsupported(
        lambda value: is_given(value) and value not in STRATEGIES and ":" not in str(value),
        "a conflict strategy",
        f"use one of {', '.join(sorted(STRATEGIES))}, or a class of your own as module:Class"
    )
)
CONFLICT_RETRIES = ConfigKey(
    "hoodie.write.num.retries.on.conflict.failures", whole(0, unit="tries"), "0", since="0.14.0",
    doc="How often a write is run again from its plan on, with a new instant, after it lost to another writer."
)
LOW, NORMAL, HIGH = "LOW", "NORMAL", "HIGH"
PRIORITY = ConfigKey(
    "hudi.write.priority", choice(LOW, NORMAL, HIGH), NORMAL, since="0.1.0",
    doc="Class of a write or table service where several overlap: those of lower classes do not begin beside one that "
    "is HIGH, and one that is LOW begins where no other write is open."
)
PRECEDENCE_AFTER = ConfigKey(
    "hudi.write.precedence.after", whole(0, unit="tries"), "3", since="0.1.0",
    doc="After how many tries that lost to others a write has precedence: no other one begins until it has ended, so "
    "that its next try wins; the same goes for a resize of buckets. A compaction has it where writes kept it from "
    "being planned at so many commits after it was due, a log compaction where slices have so many log blocks more "
    "than they should, and both at once where they are HIGH. 0: never."
)
PRECEDENCE_WAIT_MS = ConfigKey(
    "hudi.write.precedence.wait_ms", whole(0, unit="milliseconds"), "60000", since="0.1.0",
    doc="How long others wait for one with precedence or of a higher class, and it for those that are open, before "
    "they go on; what a higher class held up for so long has precedence then, and waits as long again for those that "
    "are open: twice this time bounds each wait. One of more than a second is logged, and is a warning of the result."
)
CONFLICT_DETECTION = ConfigKey(
    "hudi.write.conflict.detection", choice(BY_FILE_GROUPS, BY_KEYS), BY_FILE_GROUPS, since="0.1.0",
    doc="keys: writers of other keys of one file group both succeed, the second made again on top of the first, and a "
    "key that two writers add is a conflict; file_groups: as in Apache Hudi."
)
EARLY_DETECTION = ConfigKey(
    "hoodie.write.concurrency.early.conflict.detection.enable", BOOLEAN, "false", since="0.13.0",
    doc="true: before a writer begins a data file it looks at the markers of others, and fails where one of them is at "
    f"work on the same file group; needs {OPTIMISTIC}."
)
EARLY_STRATEGY = ConfigKey(
    "hoodie.write.concurrency.early.conflict.detection.strategy", EARLY_STRATEGY_CLASS, EARLY_DIRECT, since="0.13.0",
    doc="SimpleDirectMarkerBasedDetectionStrategy: of two writers that meet, the one that began later fails; "
    "SimpleTransactionDirectMarkerBasedDetectionStrategy: the one that comes second, told apart under a lock: with "
    "ZooKeeper one for each file group, else the table's.",
    unsupported=Unsupported(
        lambda value: is_given(value) and value not in _EARLY.values(), "a strategy of early conflict detection",
        f"use one of {', '.join(sorted(_EARLY))}"
    )
)
EARLY_COMMITS = ConfigKey(
    "hoodie.write.concurrency.early.conflict.check.commit.conflict", BOOLEAN, "false", since="0.13.0",
    doc="true: writes that were completed since this one began are looked at too, before each file; the timeline is "
    "listed for each."
)
WRITE_INSTANT = ConfigKey(
    "hudi.write.instant", NAME, since="0.1.0",
    doc="Instant time of the write, as yyyyMMddHHmmssSSS: later than all of the table, and not in the future; not "
    "given: the clock's. With hudi.write.seed a write can be repeated byte for byte."
)
WRITE_SEED = ConfigKey(
    "hudi.write.seed", TEXT, "", since="0.1.0",
    doc="Text of which, with the instant, the ids of new file groups are made, which are random without it. The same "
    "rows with the same seed and instant on the same table make the same files, byte for byte, where no JVM runs the "
    "write; commits say no durations then."
)
RUNNING_WAIT_MS = ConfigKey(
    "hudi.write.wait_ms", whole(0, unit="milliseconds"), "0", since="0.1.0",
    doc="How long a write of a single-writer table waits for the end of another one that runs, before it fails."
)
