"""Options that ask for an effect which this version does not provide: refused before anything is written.

Only a value that asks for the effect is refused; `hoodie.datasource.hive_sync.enable=false` is fine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hudi_format.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Effect:
    """What an option asks for, when it does, and what to do instead."""

    key: str
    asks: Callable[[str], bool]
    what: str
    way_round: str


def _true(value: str) -> bool:
    return value.strip().lower() == "true"


def _given(value: str) -> bool:
    return bool(value.strip())


def _other_than(*allowed: str) -> Callable[[str], bool]:
    """Whether a value, a class with or without package, is none of these."""
    lowered = {a.lower() for a in allowed}
    return lambda value: bool(value.strip()) and value.strip().rpartition(".")[2].lower() not in lowered


_SYNC = "leave it out, and register the table in the catalog by other means, for example with Apache Hudi's sync tool"
_LATER = "leave it out; Apache Hudi can do it on the same table"
_SERVICES = "leave it out, and run the service with Apache Hudi on the same table"

EFFECTS: tuple[Effect, ...] = (
    Effect("hoodie.datasource.hive_sync.enable", _true, "syncing to Hive", _SYNC),
    Effect("hoodie.datasource.meta.sync.enable", _true, "syncing to a catalog", _SYNC),
    Effect("hoodie.datasource.write.table.type", _other_than("COPY_ON_WRITE"), "merge-on-read tables",
           "set it to COPY_ON_WRITE"),
    Effect("hoodie.table.type", _other_than("COPY_ON_WRITE"), "merge-on-read tables", "set it to COPY_ON_WRITE"),
    Effect("hoodie.index.type", _other_than("SIMPLE"), "an index other than SIMPLE",
           "set it to SIMPLE, which finds the same records"),
    Effect("hoodie.index.class", _given, "an index class of the user", "set hoodie.index.type=SIMPLE"),
    Effect("hoodie.storage.layout.type", _other_than("DEFAULT"), "the bucket layout", "set it to DEFAULT"),
    Effect("hoodie.datasource.write.payload.class",
           _other_than("OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload"), "another payload class",
           "use OverwriteWithLatestAvroPayload or DefaultHoodieRecordPayload"),
    Effect("hoodie.compaction.payload.class",
           _other_than("OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload"), "another payload class",
           "use OverwriteWithLatestAvroPayload or DefaultHoodieRecordPayload"),
    Effect("hoodie.datasource.write.record.merger.impls",
           _other_than("HoodieAvroRecordMerger", "HoodieSparkRecordMerger"), "a record merger of the user", _LATER),
    Effect("hoodie.record.merge.mode", _given, "merge modes of table version 8",
           "set the payload class instead; tables are written in version 6"),
    Effect("hoodie.write.record.merge.mode", _given, "merge modes of table version 8",
           "set the payload class instead; tables are written in version 6"),
    Effect("hoodie.write.table.version", lambda v: v.strip() != "6", "another table version", "set it to 6"),
    Effect("hoodie.table.base.file.format", _other_than("PARQUET"), "base files other than Parquet",
           "set it to PARQUET"),
    Effect("hoodie.datasource.write.keygenerator.class",
           _other_than("SimpleKeyGenerator", "ComplexKeyGenerator", "NonpartitionedKeyGenerator"),
           "another key generator", "use SimpleKeyGenerator, ComplexKeyGenerator or NonpartitionedKeyGenerator"),
    Effect("hoodie.datasource.write.keygenerator.type", _other_than("SIMPLE", "COMPLEX", "NON_PARTITION"),
           "another key generator", "use SIMPLE, COMPLEX or NON_PARTITION"),
    Effect("hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", _true,
           "timestamp keys as text", "cast the timestamp to string in the data"),
    Effect("hoodie.populate.meta.fields", lambda v: v.strip().lower() == "false", "virtual keys", "set it to true"),
    Effect("hoodie.datasource.write.drop.partition.columns", _true, "dropping partition columns", "set it to false"),
    Effect("hoodie.allow.operation.metadata.field", _true, "the operation meta column", _LATER),
    Effect("hoodie.table.cdc.enabled", _true, "change data capture", _LATER),
    Effect("hoodie.schema.on.read.enable", _true, "schema on read", "leave it out; columns may be added and widened"),
    Effect("hoodie.datasource.write.insert.drop.duplicates", _true, "dropping duplicates on insert",
           "use the operation upsert"),
    Effect("hoodie.datasource.insert.dup.policy", _other_than("none"), "a policy for duplicates on insert",
           "use the operation upsert"),
    Effect("hoodie.bulkinsert.sort.mode", _other_than("NONE"), "sorting in bulk_insert",
           "leave it out, and sort or repartition the data before the write"),
    Effect("hoodie.bulkinsert.user.defined.partitioner.class", _given, "a partitioner of the user",
           "sort or repartition the data before the write"),
    Effect("hoodie.write.lock.provider", _other_than("InProcessLockProvider", "FileSystemBasedLockProvider"),
           "this lock provider",
           "use org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider where all writers share a file "
           "system, or write from one process at a time"),
    Effect("hoodie.write.concurrency.mode", _other_than("SINGLE_WRITER"), "concurrent writers",
           "set it to SINGLE_WRITER; a second writer gets ConcurrentWriterError and may try again"),
    Effect("hoodie.write.concurrency.early.conflict.detection.enable", _true, "early conflict detection", _LATER),
    Effect("hoodie.clustering.inline", _true, "clustering", _SERVICES),
    Effect("hoodie.clustering.async.enabled", _true, "clustering", _SERVICES),
    Effect("hoodie.clustering.schedule.inline", _true, "clustering", _SERVICES),
    Effect("hoodie.compact.inline", _true, "compaction", "leave it out; copy-on-write tables need none"),
    Effect("hoodie.compact.schedule.inline", _true, "compaction", "leave it out; copy-on-write tables need none"),
    Effect("hoodie.log.compaction.inline", _true, "log compaction", "leave it out; copy-on-write tables need none"),
    Effect("hoodie.clean.async", _true, "asynchronous cleaning", _SERVICES),
    Effect("hoodie.archive.async", _true, "asynchronous archival", _SERVICES),
    Effect("hoodie.metadata.index.column.stats.enable", _true, "the column_stats index", _LATER),
    Effect("hoodie.metadata.index.bloom.filter.enable", _true, "the bloom_filters index", _LATER),
    Effect("hoodie.metadata.record.index.enable", _true, "the record index", _LATER),
    Effect("hoodie.metadata.index.async", _true, "asynchronous indexing", _LATER),
    Effect("hoodie.precommit.validators", _given, "pre-commit validators", "validate the data before the write"),
    Effect("hoodie.write.commit.callback.on", _true, "commit callbacks",
           "act on what the write returns, for example its CommitResult"),
    Effect("hoodie.errortable.enable", _true, "error tables", "separate bad rows before the write"),
    Effect("hoodie.bootstrap.base.path", _given, "bootstrap", "write the source's rows with bulk_insert"),
    Effect("hoodie.partition.ttl.inline", _true, "dropping old partitions by age", "use delete_partition"),
    Effect("hoodie.metrics.on", _true, "metrics reporters", "read timings and counts from the CommitResult"),
    Effect("hoodie.partition.metafile.use.base.format", _true, "partition metadata in Parquet", "set it to false"),
)  # fmt: skip


def refuse_effects(options: Mapping[str, str]) -> None:
    """Check options (under their main names).

    Raises:
        UnsupportedError: naming option, value and way round.
    """
    for effect in EFFECTS:
        value = options.get(effect.key)
        if value is not None and effect.asks(value):
            raise UnsupportedError(
                f"{effect.key}={value} asks for {effect.what}, which this version does not provide",
                remedy=f"{effect.way_round}.",
                option=effect.key,
                value=value,
            )
