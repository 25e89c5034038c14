"""Options whose only effect is unsupported.

Only a value that asks for it is refused; `hoodie.datasource.hive_sync.enable=false` is fine.
"""

from __future__ import annotations

from hudi_format.merge.payloads import MODELS
from hudi_timeline.options.config_key import (
    READ,
    WRITE,
    ConfigKey,
    Unsupported,
    is_false,
    is_given,
    refused_if_given,
    refused_if_true,
    refused_unless,
)
from hudi_timeline.options.option_types import BOOLEAN, FIELDS, NAME, WHOLE, choice
from hudi_timeline.table_version import WRITE_VERSION


def _other_version(value: object) -> bool:
    return str(value).strip().upper() not in (str(WRITE_VERSION), WRITE_VERSION.label)


_SYNC = (
    "leave it out, and register the table in the catalog by other means, for example Apache Hudi's sync tool"
)
_LATER = "leave it out; Apache Hudi can do it on the same table"
_SERVICE = "leave it out, and run the service with Apache Hudi on the same table"
_ELSEWHERE = (
    "leave it out, and each write does it; or set {0}=false, and run HudiTable.{1}() on a thread, or `hudi {1} PATH` "
    "beside the writers"
)
_MERGE_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_WRITTEN = f"leave it out; tables are written in version {WRITE_VERSION}, which every engine reads"
_PAYLOAD_INSTEAD = (
    "leave it out, and set hoodie.datasource.write.payload.class to DefaultHoodieRecordPayload (the greatest "
    "ordering value wins) or OverwriteWithLatestAvroPayload (the latest write wins)"
)
_SCHEMA_FILE = "keep the schema in a file, and name that in hoodie.streamer.schemaprovider.target.schema.file"
_BOTH = frozenset({WRITE, READ})
_ONLY_READ = frozenset({READ})

# What belongs together of a declaration stands in one line.
# fmt: off
UNSUPPORTED = (
    ConfigKey(
        "hoodie.table.version", NAME, "ZERO",
        unsupported=Unsupported(_other_version, "another table version", _WRITTEN)
    ),
    ConfigKey(
        "hoodie.write.table.version", NAME, "9", since="1.0.0",
        unsupported=Unsupported(_other_version, "another table version", _WRITTEN)
    ),
    ConfigKey(
        "hoodie.timeline.layout.version", WHOLE, "1", since="0.5.1",
        unsupported=Unsupported(lambda v: v != WRITE_VERSION.layout, "another timeline layout", _WRITTEN)
    ),
    refused_unless("hoodie.table.format", "native", "another table format", "leave it out", since="1.2.0"),
    refused_unless(
        "hoodie.table.base.file.format", "PARQUET", "base files other than Parquet", "set it to PARQUET",
        type=choice("PARQUET", "ORC", "HFILE"),
        alternatives=("hoodie.table.ro.file.format", "hoodie.base.file.format")
    ),
    refused_if_true(
        "hoodie.table.multiple.base.file.formats.enable", "several base file formats", _LATER, since="1.0.0"
    ),
    refused_unless(
        "hoodie.archivelog.folder", "archived", "another folder for archived instants", "leave it out"
    ),
    refused_if_true("hoodie.allow.operation.metadata.field", "the operation meta column", _LATER, since="0.9.0"),
    refused_if_true("hoodie.partition.metafile.use.base.format", "partition metadata in Parquet", "set it to false"),
    refused_unless(
        "hoodie.parquet.outputtimestamptype", "TIMESTAMP_MICROS", "timestamps in another form",
        "leave it out; timestamps are written with microseconds, which every engine reads",
        type=choice("TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96")
    ),
    refused_if_given("hoodie.avro.schema", "another name of a given schema", "use hoodie.write.schema"),
    refused_if_given(
        "hoodie.streamer.schemaprovider.registry.url", "a schema registry", _SCHEMA_FILE,
        alternatives=("hoodie.deltastreamer.schemaprovider.registry.url",)
    ),
    refused_if_given(
        "hoodie.streamer.schemaprovider.registry.targetUrl", "a schema registry", _SCHEMA_FILE,
        alternatives=("hoodie.deltastreamer.schemaprovider.registry.targetUrl",)
    ),
    refused_if_given("hoodie.internal.schema", "schema on read", "leave it out: HudiTable.alter() changes columns"),
    refused_if_given(
        "hoodie.table.create.schema", "a schema as an option",
        "create the table with HudiTable.create, or let the first write make it"
    ),
    refused_if_true(
        "hoodie.write.complex.keygen.new.encoding", "another encoding of complex keys", "leave it out", since="1.1.0"
    ),
    ConfigKey(
        "hoodie.datasource.write.record.merger.impls", FIELDS, "org.apache.hudi.common.model.HoodieAvroRecordMerger",
        since="0.13.0", alternatives=("hoodie.write.record.merge.custom.implementation.classes",),
        unsupported=Unsupported(
            lambda v: v not in ((), ("HoodieAvroRecordMerger",), (MODELS + "HoodieAvroRecordMerger",)),
            "a record merger", _PAYLOAD_INSTEAD
        )
    ),
    refused_unless(
        "hoodie.datasource.write.record.merger.strategy", _MERGE_STRATEGY, "a merge strategy", _PAYLOAD_INSTEAD,
        since="0.13.0", alternatives=("hoodie.write.record.merge.strategy.id",)
    ),
    refused_unless(
        "hoodie.compaction.record.merger.strategy", _MERGE_STRATEGY, "a merge strategy", _PAYLOAD_INSTEAD,
        since="0.13.0", alternatives=("hoodie.record.merge.strategy.id",)
    ),
    ConfigKey(
        "hoodie.record.merge.mode", choice("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM"), since="1.0.0",
        unsupported=Unsupported(is_given, "merge modes of table version 8", _PAYLOAD_INSTEAD)
    ),
    ConfigKey(
        "hoodie.write.record.merge.mode", choice("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM"),
        since="1.0.0", unsupported=Unsupported(is_given, "merge modes of table version 8", _PAYLOAD_INSTEAD)
    ),
    refused_if_given("hoodie.table.partial.update.mode", "partial updates", "write whole rows", since="1.1.0"),
    refused_if_given("hoodie.write.partial.update.schema", "partial updates", "write whole rows", since="1.0.0"),
    refused_if_true("hoodie.merge.data.validation.enabled", "counting rows after each merge", "leave it out"),
    refused_if_true(
        "hoodie.fail.job.on.duplicate.data.file.detection", "looking for duplicate data files", "leave it out",
        since="1.0.0"
    ),
    ConfigKey(
        "hoodie.bulkinsert.overwrite.operation.type", choice("", "insert_overwrite", "insert_overwrite_table"),
        unsupported=Unsupported(
            is_given, "overwriting by bulk_insert", "use the operation insert_overwrite or insert_overwrite_table"
        )
    ),
    refused_unless(
        "hoodie.fileid.prefix.provider.class", "org.apache.hudi.table.RandomFileIdPrefixProvider",
        "a provider of file ids", "leave it out", since="0.10.0"
    ),
    refused_unless(
        "hoodie.writestatus.class", "org.apache.hudi.client.WriteStatus", "a class of the JVM", "leave it out"
    ),
    refused_if_true("hoodie.metadata.bloom.filter.enable", "the bloom_filters index", _LATER, since="1.1.0"),
    refused_if_true("hoodie.metadata.record.level.index.enable", "the record index", _LATER, since="1.1.0"),
    refused_if_true("hoodie.metadata.index.expression.enable", "expression indexes", _LATER, since="1.0.0"),
    refused_if_given("hoodie.metadata.index.secondary.column", "secondary indexes", _LATER, since="1.0.1"),
    refused_if_given("hoodie.datasource.write.secondarykey.column", "secondary indexes", _LATER, since="1.0.0"),
    refused_if_given("hoodie.expression.index.function", "expression indexes", _LATER, since="1.0.0"),
    refused_if_given("hoodie.table.secondary.indexes.metadata", "secondary indexes", _LATER, since="0.13.0"),
    refused_if_given("hoodie.metadata.index.drop", "dropping an index", _LATER, since="1.0.1"),
    ConfigKey(
        "hoodie.auto.commit", BOOLEAN, "true",
        unsupported=Unsupported(is_false, "a commit by the caller", "leave it out; each write is one commit")
    ),
    refused_if_true("hoodie.rollback.instant.backup.enabled", "backups of rolled back instants", "leave it out"),
    refused_if_true("_.hoodie.allow.multi.write.on.same.instant", "several writes of one instant", "leave it out"),
    refused_if_true("hoodie.datasource.hive_sync.enable", "syncing to Hive", _SYNC),
    refused_if_true("hoodie.datasource.meta.sync.enable", "syncing to a catalog", _SYNC),
    refused_if_true(
        "hoodie.clustering.inline", "clustering", _SERVICE, since="0.7.0",
        alternatives=("hoodie.datasource.clustering.inline.enable",)
    ),
    refused_if_true(
        "hoodie.clustering.async.enabled", "clustering", _SERVICE, since="0.7.0",
        alternatives=("hoodie.datasource.clustering.async.enable",)
    ),
    refused_if_true("hoodie.clustering.schedule.inline", "clustering", _SERVICE),
    refused_if_true("hoodie.layout.optimize.enable", "sorting by a space-filling curve", _SERVICE, since="0.10.0"),
    refused_if_true(
        "hoodie.clean.async", "asynchronous cleaning", _ELSEWHERE.format("hoodie.clean.automatic", "clean"),
        alternatives=("hoodie.clean.async.enabled",)
    ),
    refused_if_true(
        "hoodie.archive.async", "asynchronous archival", _ELSEWHERE.format("hoodie.archive.automatic", "archive"),
        since="0.11.0"
    ),
    refused_if_true(
        "hoodie.partition.ttl.inline", "dropping old partitions by age", "use the operation delete_partition",
        since="1.0.0"
    ),
    refused_if_true("hoodie.table.service.manager.enabled", "the table service manager", _LATER, since="0.13.0"),
    refused_if_true("hoodie.metaserver.enabled", "the metaserver", "leave it out", scopes=_BOTH, since="0.13.0"),
    refused_if_given("hoodie.client.init.callback.classes", "callbacks of the JVM", "leave it out", since="0.14.0"),
    refused_if_true("hoodie.errortable.enable", "error tables", "separate bad rows before the write"),
    refused_if_true(
        "hoodie.metrics.on", "reporting metrics", "read timings and counts from the CommitResult", since="0.5.0"
    ),
    refused_if_given(
        "hoodie.bootstrap.base.path", "bootstrap", "write the source's rows with bulk_insert", since="0.6.0"
    ),
    refused_if_true(
        "write.ignore.failed", "commits of writes some of whose records failed, as Flink makes them",
        "set hudi.quarantine.path, which keeps bad rows in a table of their own"
    ),
    refused_if_true(
        "hoodie.datasource.read.incr.skip_cluster", "skipping clustering commits", "set it to false",
        scopes=_ONLY_READ, since="1.0.1"
    ),
    refused_if_true(
        "hoodie.datasource.read.table.valued.function.timeline.relation", "reading the timeline as a table",
        "use HudiTable.inspect.commits()", scopes=_ONLY_READ, since="1.0.0"
    ),
    refused_if_true(
        "hoodie.datasource.read.create.filesystem.relation", "reading the file listing as a table",
        "use HudiTable.inspect.files()", scopes=_ONLY_READ, since="1.0.0"
    ),
    # --- of Apache Hudi 1.2
    refused_if_true(
        "hoodie.datasource.write.slash.separated.date.partitioning", "partition paths of dates with slashes",
        "write a partition column of yyyy/MM/dd by the timestamp key generator", since="1.2.0"
    ),
    refused_if_true(
        "hoodie.datasource.read.partition.value.extractor.enabled", "partition values by a class of the JVM",
        "leave it out", scopes=_ONLY_READ, since="1.2.0"
    ),
    refused_unless(
        "hoodie.read.blob.inline.mode", "DESCRIPTOR", "the bytes of blobs in reads", "leave it out",
        type=choice("CONTENT", "DESCRIPTOR"), scopes=_ONLY_READ, since="1.2.0"
    ),
    refused_unless(
        "hoodie.precommit.validators.failure.policy", "FAIL", "commits that a validator objects to",
        "leave it out, or leave the validator out", since="1.2.0"
    ),
    refused_unless(
        "hoodie.prewrite.cleaner.policy", "NONE", "a cleaning before the write",
        "leave it out, and call HudiTable.clean first", since="1.2.0"
    ),
    refused_if_given(
        "hoodie.prewrite.validators", "checks before a write by classes of the JVM", "use hudi.write.rules",
        since="1.2.0"
    ),
    refused_if_given(
        "hoodie.clean.partition.filter.regex", "cleaning of some partitions only", _SERVICE, since="1.2.0",
        alternatives=("hoodie.cleaner.partition.filter.regex",)
    ),
    refused_if_given(
        "hoodie.clean.partition.filter.selected", "cleaning of some partitions only", _SERVICE, since="1.2.0",
        alternatives=("hoodie.cleaner.partition.filter.selected",)
    ),
    refused_if_true(
        "hoodie.archive.block.on.latest.clean.ectr", "archival that waits for cleanings", _SERVICE, since="1.2.0"
    ),
    refused_if_given(
        "hoodie.write.rolling.metadata.keys", "metadata that goes from commit to commit",
        "give it with every write, below hoodie.datasource.write.commitmeta.key.prefix", since="1.2.0"
    ),
    refused_if_given(
        "hoodie.parquet.write.config.injector.class", "settings of Parquet by a class of the JVM", "leave it out",
        since="1.2.0"
    ),
)
