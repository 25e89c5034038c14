"""Options that ask for an effect which this version does not provide: refused before anything is done.

Only a value that asks for the effect is refused; `hoodie.datasource.hive_sync.enable=false` is fine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from hudi_format.errors import UnsupportedError
from hudi_format.fork_safe import ProcessLock
from hudi_format.keygen.key_generator import is_provided
from hudi_format.merge.payloads import PAYLOADS
from hudi_timeline.options.implemented import HEEDED, METADATA_ENABLE, TARGET_SCHEMA_FILE, WRITE_SCHEMA
from hudi_timeline.options.option import COLUMN_SORTERS, INDEX_CLASSES, LATER_OPERATIONS, OPERATIONS
from hudi_timeline.options.registry import ParsedOptions, names_of, shown

WRITE, READ = "write", "read"


@dataclass(frozen=True, slots=True)
class Effect:
    """What an option asks for, for which values, and what to do instead.

    Attributes:
        key: main name.
        asks: whether a parsed value asks for it.
        scopes: the calls that are refused; a writer's option does not stop a read.
    """

    key: str
    asks: Callable[[object], bool]
    what: str
    way_round: str
    scopes: frozenset[str] = frozenset({WRITE})


def _true(value: object) -> bool:
    return value is True


def _false(value: object) -> bool:
    return value is False


def _given(value: object) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def _other_than(*allowed: str) -> Callable[[object], bool]:
    """Whether a value is none of these; nothing given is nothing asked."""
    return lambda value: _given(value) and value not in allowed


def _java(package: str, *names: str) -> Callable[[object], bool]:
    """Whether a class is none of these, of Apache Hudi's own package."""
    return _other_than(*(package + name for name in names))


def _version_but_6(value: object) -> bool:
    return str(value).strip().upper() not in ("6", "SIX")


# Of the package org.apache.hudi.client.validator.
SQL_VALIDATORS = (
    "SqlQueryEqualityPreCommitValidator",
    "SqlQueryInequalityPreCommitValidator",
    "SqlQuerySingleResultPreCommitValidator",
)
VALIDATOR_PACKAGE = "org.apache.hudi.client.validator."


def _foreign_validator(value: object) -> bool:
    names = value if isinstance(value, tuple) else ()
    return any(":" not in n and n.removeprefix(VALIDATOR_PACKAGE) not in SQL_VALIDATORS for n in names)


_SYNC = (
    "leave it out, and register the table in the catalog by other means, for example Apache Hudi's sync tool"
)
_LATER = "leave it out; Apache Hudi can do it on the same table"
_SERVICE = "leave it out, and run the service with Apache Hudi on the same table"
_NO_LOGS = "leave it out; a copy-on-write table has nothing to compact"
_MODELS = "org.apache.hudi.common.model."
_LOCKS = "org.apache.hudi.client.transaction.lock."
_V6 = "leave it out; tables are written in version 6, which every engine reads"
_PAYLOAD_INSTEAD = (
    "leave it out, and set hoodie.datasource.write.payload.class to DefaultHoodieRecordPayload (the greatest "
    "ordering value wins) or OverwriteWithLatestAvroPayload (the latest write wins)"
)
_SCHEMA_FILE = f"keep the schema in a file, and name that in {TARGET_SCHEMA_FILE}"
_BOTH = frozenset({WRITE, READ})
_ONLY_READ = frozenset({READ})

EFFECTS: tuple[Effect, ...] = (
    # --- what is written
    Effect(
        "hoodie.datasource.write.operation",
        lambda v: v in LATER_OPERATIONS,
        "an operation",
        f"use one of {', '.join(OPERATIONS)}",
    ),
    Effect(
        "hoodie.datasource.write.table.type",
        _other_than("COPY_ON_WRITE"),
        "merge-on-read tables",
        "set it to COPY_ON_WRITE",
    ),
    Effect("hoodie.table.version", _version_but_6, "another table version", _V6),
    Effect("hoodie.write.table.version", _version_but_6, "another table version", _V6),
    Effect("hoodie.timeline.layout.version", lambda v: v != 1, "another timeline layout", _V6),
    Effect("hoodie.table.format", _other_than("native"), "another table format", "leave it out"),
    Effect(
        "hoodie.table.base.file.format",
        _other_than("PARQUET"),
        "base files other than Parquet",
        "set it to PARQUET",
    ),
    Effect("hoodie.table.multiple.base.file.formats.enable", _true, "several base file formats", _LATER),
    Effect(
        "hoodie.archivelog.folder",
        _other_than("archived"),
        "another folder for archived instants",
        "leave it out",
    ),
    Effect("hoodie.allow.operation.metadata.field", _true, "the operation meta column", _LATER),
    Effect(
        "hoodie.partition.metafile.use.base.format", _true, "partition metadata in Parquet", "set it to false"
    ),
    Effect(
        "hoodie.parquet.compression.codec",
        lambda v: v in ("brotli", "lzo"),
        "a Parquet codec",
        "use zstd, gzip, snappy, lz4 or uncompressed",
    ),
    Effect(
        "hoodie.parquet.outputtimestamptype",
        _other_than("TIMESTAMP_MICROS"),
        "timestamps in another form",
        "leave it out; timestamps are written with microseconds, which every engine reads",
    ),
    Effect("hoodie.table.cdc.enabled", _true, "change data capture", _LATER),
    Effect("hoodie.avro.schema", _given, "another name of a given schema", f"use {WRITE_SCHEMA}"),
    Effect("hoodie.streamer.schemaprovider.registry.url", _given, "a schema registry", _SCHEMA_FILE),
    Effect("hoodie.streamer.schemaprovider.registry.targetUrl", _given, "a schema registry", _SCHEMA_FILE),
    Effect(
        "hoodie.internal.schema", _given, "schema on read", "leave it out; columns may be added and widened"
    ),
    Effect(
        "hoodie.schema.on.read.enable",
        _true,
        "schema on read",
        "leave it out; columns may be added and widened",
    ),
    Effect(
        "hoodie.table.create.schema",
        _given,
        "a schema as an option",
        "create the table with HudiTable.create, or let the first write make it",
    ),
    # --- keys and merging
    Effect(
        "hoodie.datasource.write.keygenerator.class",
        lambda v: _given(v) and not is_provided(str(v)),
        "another key generator",
        "use Simple-, Complex-, Nonpartitioned-, TimestampBased- or CustomKeyGenerator; for made-up keys leave the "
        "record key field out",
    ),
    Effect(
        "hoodie.write.complex.keygen.new.encoding", _true, "another encoding of complex keys", "leave it out"
    ),
    Effect(
        "hoodie.datasource.write.payload.class",
        _java(_MODELS, *PAYLOADS, *(f"debezium.{name}" for name in PAYLOADS if "Debezium" in name)),
        "a payload class",
        f"use one of {', '.join(PAYLOADS)}",
    ),
    Effect(
        "hoodie.datasource.write.record.merger.impls",
        lambda v: v not in ((), ("HoodieAvroRecordMerger",), (_MODELS + "HoodieAvroRecordMerger",)),
        "a record merger",
        _PAYLOAD_INSTEAD,
    ),
    Effect(
        "hoodie.datasource.write.record.merger.strategy",
        _other_than("eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"),
        "a merge strategy",
        _PAYLOAD_INSTEAD,
    ),
    Effect(
        "hoodie.compaction.record.merger.strategy",
        _other_than("eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"),
        "a merge strategy",
        _PAYLOAD_INSTEAD,
    ),
    Effect("hoodie.record.merge.mode", _given, "merge modes of table version 8", _PAYLOAD_INSTEAD),
    Effect("hoodie.write.record.merge.mode", _given, "merge modes of table version 8", _PAYLOAD_INSTEAD),
    Effect("hoodie.table.partial.update.mode", _given, "partial updates", "write whole rows"),
    Effect("hoodie.write.partial.update.schema", _given, "partial updates", "write whole rows"),
    Effect("hoodie.merge.data.validation.enabled", _true, "counting rows after each merge", "leave it out"),
    Effect(
        "hoodie.fail.job.on.duplicate.data.file.detection",
        _true,
        "looking for duplicate data files",
        "leave it out",
    ),
    Effect(
        "hoodie.bulkinsert.overwrite.operation.type",
        _given,
        "overwriting by bulk_insert",
        "use the operation insert_overwrite or insert_overwrite_table",
    ),
    Effect(
        "hoodie.bulkinsert.user.defined.partitioner.class",
        lambda v: ":" not in str(v) and _java("org.apache.hudi.execution.bulkinsert.", *COLUMN_SORTERS)(v),
        "a Java class of the user",
        "name a Python function as module:function, which takes the rows and gives them back in its order; or leave "
        "it out, and name the columns to sort by in "
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns, or sort and repartition the data before the "
        "write (hoodie.bulkinsert.sort.mode=NONE keeps its order)",
    ),
    Effect(
        "hoodie.fileid.prefix.provider.class",
        _other_than("org.apache.hudi.table.RandomFileIdPrefixProvider"),
        "a provider of file ids",
        "leave it out",
    ),
    Effect(
        "hoodie.writestatus.class",
        _other_than("org.apache.hudi.client.WriteStatus"),
        "a class of the JVM",
        "leave it out",
    ),
    # --- index and layout
    Effect(
        "hoodie.index.type",
        _other_than(*INDEX_CLASSES.values()),
        "an index that is not provided",
        f"set it to one of {', '.join(INDEX_CLASSES.values())}, or leave it out",
    ),
    Effect(
        "hoodie.index.class",
        _other_than(*INDEX_CLASSES),
        "an index class",
        f"set hoodie.index.type to one of {', '.join(INDEX_CLASSES.values())}",
    ),
    Effect("hoodie.storage.layout.type", _other_than("DEFAULT"), "the bucket layout", "set it to DEFAULT"),
    Effect("hoodie.storage.layout.partitioner.class", _given, "a layout partitioner", "leave it out"),
    Effect("hoodie.metadata.index.column.stats.enable", _true, "the column_stats index", _LATER),
    Effect("hoodie.metadata.index.bloom.filter.enable", _true, "the bloom_filters index", _LATER),
    Effect("hoodie.metadata.bloom.filter.enable", _true, "the bloom_filters index", _LATER),
    Effect("hoodie.metadata.record.index.enable", _true, "the record index", _LATER),
    Effect("hoodie.metadata.record.level.index.enable", _true, "the record index", _LATER),
    Effect("hoodie.metadata.index.expression.enable", _true, "expression indexes", _LATER),
    Effect("hoodie.metadata.index.secondary.column", _given, "secondary indexes", _LATER),
    Effect("hoodie.datasource.write.secondarykey.column", _given, "secondary indexes", _LATER),
    Effect("hoodie.expression.index.function", _given, "expression indexes", _LATER),
    Effect("hoodie.table.secondary.indexes.metadata", _given, "secondary indexes", _LATER),
    Effect("hoodie.metadata.index.async", _true, "asynchronous indexing", _LATER),
    Effect("hoodie.metadata.index.drop", _given, "dropping an index", _LATER),
    # --- transactions
    Effect("hoodie.auto.commit", _false, "a commit by the caller", "leave it out; each write is one commit"),
    Effect(
        "hoodie.write.concurrency.mode",
        _other_than("SINGLE_WRITER"),
        "concurrent writers",
        "set it to SINGLE_WRITER; a second writer gets ConcurrentWriterError and may try again",
    ),
    Effect(
        "hoodie.write.concurrency.early.conflict.detection.enable",
        _true,
        "early conflict detection",
        "leave it out; overlapping writes are refused when they commit",
    ),
    Effect(
        "hoodie.write.lock.provider",
        _java(_LOCKS, "InProcessLockProvider", "FileSystemBasedLockProvider", "StorageBasedLockProvider"),
        "a lock provider",
        f"use {_LOCKS}FileSystemBasedLockProvider where all writers share a file system, "
        "StorageBasedLockProvider on S3, or write from one process at a time",
    ),
    Effect(
        "hoodie.rollback.instant.backup.enabled", _true, "backups of rolled back instants", "leave it out"
    ),
    Effect(
        "_.hoodie.allow.multi.write.on.same.instant", _true, "several writes of one instant", "leave it out"
    ),
    # --- services, checks and callbacks
    Effect("hoodie.datasource.hive_sync.enable", _true, "syncing to Hive", _SYNC),
    Effect("hoodie.datasource.meta.sync.enable", _true, "syncing to a catalog", _SYNC),
    Effect("hoodie.clustering.inline", _true, "clustering", _SERVICE),
    Effect("hoodie.clustering.async.enabled", _true, "clustering", _SERVICE),
    Effect("hoodie.clustering.schedule.inline", _true, "clustering", _SERVICE),
    Effect("hoodie.layout.optimize.enable", _true, "sorting by a space-filling curve", _SERVICE),
    Effect("hoodie.compact.inline", _true, "compaction", _NO_LOGS),
    Effect("hoodie.compact.schedule.inline", _true, "compaction", _NO_LOGS),
    Effect("hoodie.log.compaction.enable", _true, "log compaction", _NO_LOGS),
    Effect("hoodie.log.compaction.inline", _true, "log compaction", _NO_LOGS),
    Effect("hoodie.clean.async", _true, "asynchronous cleaning", _SERVICE),
    Effect("hoodie.archive.async", _true, "asynchronous archival", _SERVICE),
    Effect(
        "hoodie.partition.ttl.inline",
        _true,
        "dropping old partitions by age",
        "use the operation delete_partition",
    ),
    Effect("hoodie.table.service.manager.enabled", _true, "the table service manager", _LATER),
    Effect("hoodie.metaserver.enabled", _true, "the metaserver", "leave it out", _BOTH),
    Effect(
        "hoodie.precommit.validators",
        _foreign_validator,
        "a validator that only a JVM can load",
        f"use {', '.join(SQL_VALIDATORS)} of Apache Hudi, or a Python function as module:name",
    ),
    Effect("hoodie.client.init.callback.classes", _given, "callbacks of the JVM", "leave it out"),
    Effect("hoodie.errortable.enable", _true, "error tables", "separate bad rows before the write"),
    Effect("hoodie.metrics.on", _true, "reporting metrics", "read timings and counts from the CommitResult"),
    Effect("hoodie.bootstrap.base.path", _given, "bootstrap", "write the source's rows with bulk_insert"),
    Effect(
        "write.ignore.failed",
        _true,
        "commits of writes some of whose records failed, as Flink makes them",
        "set hudi.quarantine.path, which keeps bad rows in a table of their own",
    ),
    # --- reading
    Effect(
        "hoodie.datasource.read.incr.skip_cluster",
        _true,
        "skipping clustering commits",
        "set it to false",
        _ONLY_READ,
    ),
    Effect(
        "hoodie.datasource.read.table.valued.function.timeline.relation",
        _true,
        "reading the timeline as a table",
        "use HudiTable.inspect.commits()",
        _ONLY_READ,
    ),
    Effect(
        "hoodie.datasource.read.create.filesystem.relation",
        _true,
        "reading the file listing as a table",
        "use HudiTable.inspect.files()",
        _ONLY_READ,
    ),
)


@cache
def effects_by_key() -> Mapping[str, Effect]:
    """The effects by the main name of their option."""
    return {effect.key: effect for effect in EFFECTS}


def refuse_effects(given: ParsedOptions, scope: str) -> None:
    """Check the options of a call.

    Raises:
        UnsupportedError: naming option, value and way round.
    """
    for key, parsed in given.parsed.items():
        effect = effects_by_key().get(key)
        if effect is None or scope not in effect.scopes or not effect.asks(parsed):
            continue
        name = given.given_as[key]
        value = shown(name, given.text[key])
        raise UnsupportedError(
            f"{name}={value} asks for {effect.what}, which this version does not provide",
            remedy=f"{effect.way_round}.",
            option=name,
            value=value,
        )


# What is said of options that are accepted without effect: once per process and option.

log = logging.getLogger("hudi")

_said: set[str] = set()
_said_lock = ProcessLock()


def is_tuning(key: str) -> bool:
    """Whether an option, by its main name, is accepted without effect here."""
    return key not in HEEDED and key not in effects_by_key() and key not in ("path", "paths")


def say_tuning(given: ParsedOptions) -> None:
    """List the options without effect at INFO, and warn of a metadata table that is not maintained."""
    asked = given.parsed.get(METADATA_ENABLE) is True
    with _said_lock.threads:
        fresh = {given.given_as[key] for key in given.text if is_tuning(key)} - _said
        _said.update(fresh)
        asked = asked and METADATA_ENABLE not in _said
        if asked:
            _said.add(METADATA_ENABLE)
    if fresh:
        log.info("options accepted without effect here: %s", names_of(fresh))
    if asked:
        log.warning(
            "%s=true: snapshots read the table's metadata table, and writes do not keep it up to date yet",
            METADATA_ENABLE,
        )
