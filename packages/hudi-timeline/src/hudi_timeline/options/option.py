"""What kind of value each option takes, and how its text is parsed.

The kind follows from Apache Hudi's default (`true` is a boolean, `10` a whole number), except where this
module names it: enumerations, bounds, class names and lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_WHOLE = re.compile(r"[+-]?\d+\Z", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)
# Java's long: what Apache Hudi keeps sizes and counts in.
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class OptionType:
    """A kind of value.

    Attributes:
        allowed: what may stand there, to follow "it takes".
        parse: the value of a text; ValueError where it is not allowed.
    """

    allowed: str
    parse: Callable[[str], object]


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def whole(least: int | None = None, most: int = _MOST, unit: str = "") -> OptionType:
    """A whole number within bounds, both inclusive."""

    def parse(text: str) -> int:
        if not _WHOLE.match(text.strip()):
            raise ValueError(text)
        number = int(text)
        if (least is not None and number < least) or number > most:
            raise ValueError(text)
        return number

    of = f" of {unit}" if unit else ""
    bounds = "" if least is None else f" from {least}"
    if most != _MOST:
        bounds += f" to {most}"
    return OptionType(f"a whole number{of}{bounds}", parse)


def number(
    least: float | None = None, below: float | None = None, *, above: float | None = None
) -> OptionType:
    """A number within bounds: `least` inclusive, the others not."""

    def parse(text: str) -> float:
        if not _NUMBER.match(text.strip()):
            raise ValueError(text)
        value = float(text)
        if least is not None and value < least:
            raise ValueError(text)
        if (above is not None and value <= above) or (below is not None and value >= below):
            raise ValueError(text)
        return value

    bounds = [f"from {least:g}"] if least is not None else []
    bounds += [f"above {above:g}"] if above is not None else []
    bounds += [f"below {below:g}"] if below is not None else []
    return OptionType(" ".join(["a number", " and ".join(bounds)]).rstrip(), parse)


def choice(*allowed: str) -> OptionType:
    """One of some names, in any case; the spelling given here comes back."""
    by_lower = {a.lower(): a for a in allowed}

    def parse(text: str) -> str:
        found = by_lower.get(text.strip().lower())
        if found is None:
            raise ValueError(text)
        return found

    return OptionType("one of " + ", ".join(a or '""' for a in allowed), parse)


FUNCTION = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z"


def java_class(package: str) -> OptionType:
    """A Java class: its full name comes back, also for a name without package."""

    def parse(text: str) -> str:
        name = text.strip()
        if not re.match(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*\Z", name):
            raise ValueError(text)
        if "." not in name:
            return package + name
        # The package of the releases before Apache.
        return (
            "org.apache.hudi" + name.removeprefix("com.uber.hoodie")
            if name.startswith("com.uber.hoodie.")
            else name
        )

    return OptionType(f"the name of a Java class, with or without {package.rstrip('.')}", parse)


def class_or_function(package: str) -> OptionType:
    """A Java class as in `java_class`, or a Python function as `module:function`."""
    of_java = java_class(package)

    def parse(text: str) -> object:
        return text.strip() if re.match(FUNCTION, text.strip()) else of_java.parse(text)

    return OptionType(f"{of_java.allowed}, or a Python function as module:function", parse)


def _fields(text: str) -> tuple[str, ...]:
    parts = tuple(p for p in (p.strip() for p in text.split(",")) if p)
    if len(set(parts)) != len(parts):
        raise ValueError(text)
    return parts


def _name(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text.strip()


TEXT = OptionType("text", lambda text: text)
STRIPPED = OptionType("text", str.strip)
NAME = OptionType("a name, not empty", _name)
BOOLEAN = OptionType("true or false", _boolean)
FIELDS = OptionType("names, comma separated, each once", _fields)
PATHS = OptionType("paths, comma separated, each once", _fields)

_BYTES = whole(1, unit="bytes")
_MILLIS = whole(1, unit="milliseconds")
_PARALLELISM = whole(0, 2**31 - 1, unit="tasks (0 leaves it to the engine)")
_TABLE_TYPE = choice("COPY_ON_WRITE", "MERGE_ON_READ")
_BASE_FORMAT = choice("PARQUET", "ORC", "HFILE")
_SORT_MODES = (
    "NONE",
    "GLOBAL_SORT",
    "PARTITION_SORT",
    "PARTITION_PATH_REPARTITION",
    "PARTITION_PATH_REPARTITION_AND_SORT",
)
# The partitioners of Apache Hudi that sort a bulk_insert by columns of the user's.
COLUMN_SORTERS = ("RowCustomColumnsSortPartitioner", "RDDCustomColumnsSortPartitioner")
OPERATIONS = (
    "upsert",
    "insert",
    "bulk_insert",
    "delete",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partition",
)
# The same on rows whose meta columns say key, partition path and file.
PREPPED = "_prepped"
PREPPED_OPERATIONS = ("insert_prepped", "upsert_prepped", "bulk_insert_prepped", "delete_prepped")
LATER_OPERATIONS = ("bootstrap",)
# The classes behind `hoodie.index.type`, which `hoodie.index.class` may name instead.
INDEX_CLASSES = {
    "org.apache.hudi.index.simple.HoodieSimpleIndex": "SIMPLE",
    "org.apache.hudi.index.simple.HoodieGlobalSimpleIndex": "GLOBAL_SIMPLE",
    "org.apache.hudi.index.bloom.HoodieBloomIndex": "BLOOM",
    "org.apache.hudi.index.bloom.HoodieGlobalBloomIndex": "GLOBAL_BLOOM",
}
_STORAGE_LEVELS = (
    *(
        f"{memory}{form}"
        for memory in ("MEMORY_AND_DISK", "MEMORY_ONLY")
        for form in ("", "_2", "_SER", "_SER_2")
    ),
    *("DISK_ONLY", "DISK_ONLY_2", "DISK_ONLY_3", "OFF_HEAP"),
)

KINDS: dict[str, OptionType] = {
    # what a write does
    "hoodie.table.name": NAME,
    "hoodie.database.name": STRIPPED,
    "hoodie.datasource.write.table.type": _TABLE_TYPE,
    "hoodie.datasource.write.operation": choice(*OPERATIONS, *PREPPED_OPERATIONS, *LATER_OPERATIONS),
    "hoodie.datasource.write.recordkey.field": FIELDS,
    "hoodie.datasource.write.partitionpath.field": FIELDS,
    "hoodie.datasource.write.precombine.field": FIELDS,
    "hoodie.payload.ordering.field": STRIPPED,
    "hoodie.payload.event.time.field": STRIPPED,
    "hoodie.payload.delete.field": NAME,
    "hoodie.payload.delete.marker": NAME,
    "hoodie.datasource.write.keygenerator.class": java_class("org.apache.hudi.keygen."),
    "hoodie.datasource.write.keygenerator.type": choice(
        "SIMPLE", "COMPLEX", "TIMESTAMP", "CUSTOM", "NON_PARTITION", "GLOBAL_DELETE"
    ),
    "hoodie.datasource.write.payload.class": java_class("org.apache.hudi.common.model."),
    "hoodie.datasource.write.record.merger.impls": FIELDS,
    "hoodie.datasource.write.partitions.to.delete": PATHS,
    "hoodie.static.overwrite.partition.paths": PATHS,
    "hoodie.datasource.write.commitmeta.key.prefix": NAME,
    "hoodie.datasource.overwrite.mode": choice("STATIC", "DYNAMIC"),
    "hoodie.datasource.insert.dup.policy": choice("none", "drop", "fail"),
    "hoodie.bulkinsert.sort.mode": choice(*_SORT_MODES),
    "hoodie.bulkinsert.user.defined.partitioner.class": class_or_function(
        "org.apache.hudi.execution.bulkinsert."
    ),
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns": FIELDS,
    "hoodie.bulkinsert.overwrite.operation.type": choice("", "insert_overwrite", "insert_overwrite_table"),
    "hoodie.write.tagged.record.storage.level": choice(*_STORAGE_LEVELS),
    "hoodie.write.status.storage.level": choice(*_STORAGE_LEVELS),
    "hoodie.spark.sql.insert.into.operation": choice("insert", "bulk_insert", "upsert"),
    "hoodie.sql.insert.mode": choice("upsert", "strict", "non-strict"),
    "hoodie.record.merge.mode": choice("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM"),
    "hoodie.write.record.merge.mode": choice("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM"),
    "hoodie.upsert.shuffle.parallelism": _PARALLELISM,
    "hoodie.insert.shuffle.parallelism": _PARALLELISM,
    "hoodie.bulkinsert.shuffle.parallelism": _PARALLELISM,
    "hoodie.delete.shuffle.parallelism": _PARALLELISM,
    # files
    "hoodie.table.base.file.format": _BASE_FORMAT,
    "hoodie.parquet.compression.codec": choice(
        "gzip", "snappy", "zstd", "lz4", "lz4_raw", "brotli", "lzo", "uncompressed", "none", ""
    ),
    "parquet.compression.codec.zstd.level": whole(-7, 22),
    "hoodie.parquet.block.size": _BYTES,
    "hoodie.parquet.page.size": _BYTES,
    "hoodie.parquet.max.file.size": _BYTES,
    "hoodie.parquet.small.file.limit": whole(unit="bytes (0 or less: no file takes new records)"),
    "hoodie.parquet.outputtimestamptype": choice("TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"),
    "hoodie.copyonwrite.record.size.estimate": whole(1, unit="bytes"),
    "hoodie.copyonwrite.insert.split.size": whole(1, unit="records"),
    "hoodie.record.size.estimation.threshold": number(0),
    "hoodie.bloom.index.filter.type": choice("SIMPLE", "DYNAMIC_V0"),
    "hoodie.index.bloom.num_entries": whole(1, 2**31 - 1, unit="keys"),
    "hoodie.index.bloom.fpp": number(above=0, below=1),
    "hoodie.bloom.index.filter.dynamic.max.entries": whole(1, 2**31 - 1, unit="keys"),
    "hoodie.logfile.data.block.format": choice("avro", "parquet", "hfile"),
    "hoodie.table.cdc.supplemental.logging.mode": choice("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"),
    "hoodie.table.timeline.timezone": choice("LOCAL", "UTC"),
    # index and layout
    "hoodie.index.type": choice(
        "SIMPLE",
        "GLOBAL_SIMPLE",
        "BLOOM",
        "GLOBAL_BLOOM",
        "BUCKET",
        "RECORD_INDEX",
        "GLOBAL_RECORD_LEVEL_INDEX",
        "RECORD_LEVEL_INDEX",
        "INMEMORY",
        "HBASE",
        "FLINK_STATE",
        "BUCKET_HASH_INDEX",
    ),
    "hoodie.index.class": STRIPPED,
    "hudi.index.allow.switch": BOOLEAN,
    "hoodie.index.bucket.engine": choice("SIMPLE", "CONSISTENT_HASHING"),
    "hoodie.storage.layout.type": choice("DEFAULT", "BUCKET"),
    # concurrency
    "hoodie.write.concurrency.mode": choice(
        "SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"
    ),
    "hoodie.write.commit.callback.class": class_or_function("org.apache.hudi.callback.impl."),
    "hoodie.write.commit.callback.http.timeout.seconds": whole(1, unit="seconds"),
    "hoodie.write.lock.provider": java_class("org.apache.hudi.client.transaction.lock."),
    "hoodie.write.lock.filesystem.expire": whole(0, unit="minutes (0: never)"),
    "hoodie.write.lock.wait_time_ms": whole(0, unit="milliseconds"),
    "hoodie.write.lock.client.num_retries": whole(0),
    "hoodie.write.lock.client.wait_time_ms_between_retry": whole(0, unit="milliseconds"),
    "hoodie.client.heartbeat.interval_in_ms": _MILLIS,
    "hoodie.client.heartbeat.tolerable.misses": whole(1, unit="heartbeats"),
    "hoodie.cleaner.policy.failed.writes": choice("EAGER", "LAZY", "NEVER"),
    "hoodie.write.markers.type": choice("DIRECT", "TIMELINE_SERVER_BASED"),
    "hoodie.write.executor.type": choice("SIMPLE", "BOUNDED_IN_MEMORY", "DISRUPTOR"),
    # services
    "hoodie.cleaner.policy": choice(
        "KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"
    ),
    "hoodie.clean.trigger.strategy": choice("NUM_COMMITS"),
    "hoodie.clean.max.commits": whole(1, unit="commits"),
    "hoodie.cleaner.commits.retained": whole(1, unit="commits"),
    "hoodie.cleaner.hours.retained": whole(1, unit="hours"),
    "hoodie.cleaner.fileversions.retained": whole(1, unit="versions"),
    "hoodie.keep.min.commits": whole(1, unit="commits"),
    "hoodie.keep.max.commits": whole(1, unit="commits"),
    "hoodie.commits.archival.batch": whole(1, unit="entries"),
    "hoodie.compact.inline.trigger.strategy": choice(
        "NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"
    ),
    "hoodie.clustering.plan.partition.filter.mode": choice(
        "NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"
    ),
    "hoodie.layout.optimize.curve.build.method": choice("DIRECT", "SAMPLE"),
    "hoodie.layout.optimize.strategy": choice("LINEAR", "ZORDER", "HILBERT"),
    "hoodie.common.spillable.diskmap.type": choice("BITCASK", "ROCKS_DB"),
    "hoodie.filesystem.view.type": choice(
        "MEMORY", "SPILLABLE_DISK", "EMBEDDED_KV_STORE", "REMOTE_ONLY", "REMOTE_FIRST"
    ),
    "hoodie.bootstrap.mode.selector.regex.mode": choice("METADATA_ONLY", "FULL_RECORD"),
    "hoodie.datasource.hive_sync.mode": choice("hms", "jdbc", "hiveql", "glue"),
    "hoodie.datasource.hive_sync.table.strategy": choice("ALL", "RO", "RT"),
    "hoodie.metrics.reporter.type": choice(
        "GRAPHITE",
        "INMEMORY",
        "JMX",
        "DATADOG",
        "CONSOLE",
        "PROMETHEUS_PUSHGATEWAY",
        "PROMETHEUS",
        "CLOUDWATCH",
        "M3",
        "SLF4J",
    ),
    "hoodie.keygen.timebased.timestamp.type": choice(
        "UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "SCALAR", "DATE_STRING", "MIXED"
    ),
    # reading
    "hoodie.datasource.query.type": choice("snapshot", "read_optimized", "incremental"),
    "hoodie.datasource.query.incremental.format": choice("latest_state", "cdc"),
    "hoodie.datasource.merge.type": choice("payload_combine", "skip_merge"),
    "hoodie.datasource.read.paths": PATHS,
    "hoodie.datasource.read.file.index.listing.mode": choice("lazy", "eager"),
    "hoodie.fileIndex.dataSkippingFailureMode": choice("fallback", "strict"),
    "hoodie.read.timeline.holes.resolution.policy": choice("FAIL", "BLOCK", "USE_TRANSITION_TIME"),
    "as.of.instant": NAME,
    "hoodie.datasource.read.begin.instanttime": NAME,
    "hoodie.datasource.read.end.instanttime": NAME,
    "hoodie.precommit.validators": FIELDS,
    "hudi.write.rules": STRIPPED,
    "hudi.write.types": choice("table", "data"),
    "hudi.partition.null.texts": choice("refuse", "as_hudi"),
    "hudi.quarantine.path": NAME,
    "hudi.quarantine.max.rows": whole(0, unit="rows"),
    "hudi.progress": choice("auto", "true", "false"),
    "hudi.durability": choice("flush", "none"),
    "hudi.read.columns": FIELDS,
    "hudi.read.filter": STRIPPED,
    "hudi.merge": STRIPPED,
    "hoodie.memory.merge.max.size": whole(1, unit="bytes"),
    "hoodie.memory.spillable.map.path": STRIPPED,
    "hudi.read.incremental.order": choice("fenced", "start", "completion"),
    "hudi.streaming.start.order": choice("fenced", "start", "completion"),
    "hudi.read.incremental.on.missing": choice("error", "full_scan", "as_hudi"),
    # whose default hides the kind
    "hoodie.metrics.executor.enable": BOOLEAN,
    "hoodie.base.file.format": _BASE_FORMAT,
    "hoodie.sensitive.config.keys": TEXT,
    "hoodie.table.version": NAME,
    "hoodie.write.table.version": NAME,
    "hoodie.datasource.write.streaming.checkpoint.identifier": TEXT,
}


def kind_of(key: str, default: str | None) -> OptionType:
    """The kind of an option: as named here, else as its default shows."""
    named = KINDS.get(key)
    if named is not None:
        return named
    if default is None:
        return TEXT
    if default in ("true", "false"):
        return BOOLEAN
    if _WHOLE.match(default):
        return whole()
    if _NUMBER.match(default):
        return number()
    return TEXT
