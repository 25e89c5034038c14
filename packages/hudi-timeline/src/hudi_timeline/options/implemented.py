"""The options that have a meaning here: what each is for, and which attribute of the value holds it."""

from __future__ import annotations

from hudi_format.keygen import timestamp_based
from hudi_format.keygen.partition_path import NULL_TEXTS_OPTION
from hudi_timeline.options.service_config import DOCS as CALLBACK_DOCS
from hudi_timeline.options.service_config import SERVICE_DOCS

OPERATION = "hoodie.datasource.write.operation"
RECORD_KEY = "hoodie.datasource.write.recordkey.field"
PARTITION = "hoodie.datasource.write.partitionpath.field"
PRECOMBINE = "hoodie.datasource.write.precombine.field"
PAYLOAD = "hoodie.datasource.write.payload.class"
MERGE = "hudi.merge"
MEMORY_MAX, SPILL_PATH = "hoodie.memory.merge.max.size", "hoodie.memory.spillable.map.path"
MERGE_TYPE = "hoodie.datasource.merge.type"
SPILL_COMPRESS = "hoodie.common.diskmap.compression.enabled"
PAYLOAD_ORDERING = "hoodie.payload.ordering.field"
EVENT_TIME = "hoodie.payload.event.time.field"
DELETE_FIELD, DELETE_MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
WRITE_SCHEMA = "hoodie.write.schema"
SOURCE_SCHEMA_FILE = "hoodie.streamer.schemaprovider.source.schema.file"
TARGET_SCHEMA_FILE = "hoodie.streamer.schemaprovider.target.schema.file"
KEYGEN_CLASS = "hoodie.datasource.write.keygenerator.class"
KEYGEN_TYPE = "hoodie.datasource.write.keygenerator.type"
INDEX_TYPE, INDEX_CLASS = "hoodie.index.type", "hoodie.index.class"
STORAGE_LEVEL = "hoodie.write.tagged.record.storage.level"
PARTITIONS_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
STATIC_PARTITIONS = "hoodie.static.overwrite.partition.paths"
DROP_DUPLICATES = "hoodie.datasource.write.insert.drop.duplicates"
DUP_POLICY = "hoodie.datasource.insert.dup.policy"
PARTITIONER = "hoodie.bulkinsert.user.defined.partitioner.class"
SORT_COLUMNS = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
CODEC, ZSTD_LEVEL = "hoodie.parquet.compression.codec", "parquet.compression.codec.zstd.level"
METADATA_ENABLE = "hoodie.metadata.enable"
SCHEMA_ON_READ = "hoodie.schema.on.read.enable"
METADATA_PREFIX = "hoodie.datasource.write.commitmeta.key.prefix"
STAGING_LIMIT = "hudi.write.staging.limit.bytes"
VALIDATORS = "hoodie.precommit.validators"
SAME_BEFORE_AND_AFTER = "hoodie.precommit.validators.equality.sql.queries"
OTHER_THAN_BEFORE = "hoodie.precommit.validators.inequality.sql.queries"
SINGLE_VALUE = "hoodie.precommit.validators.single.value.sql.queries"
RULES = "hudi.write.rules"
QUARANTINE, QUARANTINE_MOST = "hudi.quarantine.path", "hudi.quarantine.max.rows"
PROGRESS = "hudi.progress"
DURABILITY = "hudi.durability"
STREAMING_IGNORE_FAILED = "hoodie.datasource.write.streaming.ignore.failed.batch"
QUERY_TYPE = "hoodie.datasource.query.type"
INCREMENTAL_FORMAT = "hoodie.datasource.query.incremental.format"
START_OFFSET = "hoodie.datasource.streaming.startOffset"
START_OFFSET_ORDER = "hudi.streaming.start.order"
AS_OF = "as.of.instant"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
HOLLOW_POLICY = "hoodie.read.timeline.holes.resolution.policy"
FULL_SCAN_FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
USE_END_SCHEMA = "hoodie.datasource.read.schema.use.end.instanttime"
COLUMNS, FILTER = "hudi.read.columns", "hudi.read.filter"
ORDER = "hudi.read.incremental.order"
ON_MISSING = "hudi.read.incremental.on.missing"
PATHS = "hoodie.datasource.read.paths"
PATH_GLOB = "hoodie.datasource.read.incr.path.glob"
INCR_FILTERS = "hoodie.datasource.read.incr.filters"
PARALLELISM = {
    "upsert": "hoodie.upsert.shuffle.parallelism",
    "delete": "hoodie.delete.shuffle.parallelism",
    "bulk_insert": "hoodie.bulkinsert.shuffle.parallelism",
    "insert": "hoodie.insert.shuffle.parallelism",
}

# Attribute of WriteConfig -> the option that it is the parsed value of.
WRITE_FIELDS = {
    "table_name": "hoodie.table.name",
    "database": "hoodie.database.name",
    "table_type": "hoodie.datasource.write.table.type",
    "operation": OPERATION,
    "record_key_fields": RECORD_KEY,
    "partition_fields": PARTITION,
    "keygen_class": KEYGEN_CLASS,
    "keygen_type": KEYGEN_TYPE,
    "hive_style": "hoodie.datasource.write.hive_style_partitioning",
    "url_encode": "hoodie.datasource.write.partitionpath.urlencode",
    "populate_meta_fields": "hoodie.populate.meta.fields",
    "drop_partition_columns": "hoodie.datasource.write.drop.partition.columns",
    "payload_class": PAYLOAD,
    "index_type": INDEX_TYPE,
    "index_switch": "hudi.index.allow.switch",
    "bloom_prune_by_ranges": "hoodie.bloom.index.prune.by.ranges",
    "bloom_update_partition": "hoodie.bloom.index.update.partition.path",
    "simple_update_partition": "hoodie.simple.index.update.partition.path",
    "combine_before_insert": "hoodie.combine.before.insert",
    "combine_before_upsert": "hoodie.combine.before.upsert",
    "combine_before_delete": "hoodie.combine.before.delete",
    "allow_duplicate_on_inserts": "hoodie.merge.allow.duplicate.on.inserts",
    "parquet_block_bytes": "hoodie.parquet.block.size",
    "parquet_page_bytes": "hoodie.parquet.page.size",
    "parquet_max_file_bytes": "hoodie.parquet.max.file.size",
    "dictionary": "hoodie.parquet.dictionary.enabled",
    "small_file_limit_bytes": "hoodie.parquet.small.file.limit",
    "record_size_estimate": "hoodie.copyonwrite.record.size.estimate",
    "record_size_threshold": "hoodie.record.size.estimation.threshold",
    "insert_split_size": "hoodie.copyonwrite.insert.split.size",
    "auto_split": "hoodie.copyonwrite.insert.auto.split",
    "bloom_enabled": "hoodie.parquet.bloom.filter.enabled",
    "bloom_type": "hoodie.bloom.index.filter.type",
    "bloom_entries": "hoodie.index.bloom.num_entries",
    "bloom_fpp": "hoodie.index.bloom.fpp",
    "bloom_max_entries": "hoodie.bloom.index.filter.dynamic.max.entries",
    "heartbeat_interval_ms": "hoodie.client.heartbeat.interval_in_ms",
    "heartbeat_misses": "hoodie.client.heartbeat.tolerable.misses",
    "failed_writes_policy": "hoodie.cleaner.policy.failed.writes",
    "lock_provider": "hoodie.write.lock.provider",
    "lock_path": "hoodie.write.lock.filesystem.path",
    "lock_expire_minutes": "hoodie.write.lock.filesystem.expire",
    "lock_wait_ms": "hoodie.write.lock.wait_time_ms",
    "consistency_check": "hoodie.consistency.check.enabled",
    "consistency_first_ms": "hoodie.consistency.check.initial_interval_ms",
    "consistency_most_ms": "hoodie.consistency.check.max_interval_ms",
    "consistency_checks": "hoodie.consistency.check.max_checks",
    "metadata_enable": METADATA_ENABLE,
    "partitions_to_delete": PARTITIONS_TO_DELETE,
    "static_overwrite_partitions": STATIC_PARTITIONS,
    "overwrite_mode": "hoodie.datasource.overwrite.mode",
    "allow_empty_commit": "hoodie.allow.empty.commit",
    "set_null_for_missing_columns": "hoodie.write.set.null.for.missing.columns",
    "allow_column_drop": "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
    "reconcile_schema": "hoodie.datasource.write.reconcile.schema",
    "validate_schema": "hoodie.avro.schema.validate",
    "types": "hudi.write.types",
    "null_texts": NULL_TEXTS_OPTION,
    "write_schema": WRITE_SCHEMA,
    "source_schema_file": SOURCE_SCHEMA_FILE,
    "target_schema_file": TARGET_SCHEMA_FILE,
    "event_time_field": EVENT_TIME,
    "delete_field": DELETE_FIELD,
    "delete_marker": DELETE_MARKER,
    "table_timezone": "hoodie.table.timeline.timezone",
    "bulk_insert_sort_mode": "hoodie.bulkinsert.sort.mode",
    "bulk_insert_sort_columns": SORT_COLUMNS,
    "drop_duplicates": DROP_DUPLICATES,
    "duplicate_policy": DUP_POLICY,
    "validators": VALIDATORS,
    "equality_queries": SAME_BEFORE_AND_AFTER,
    "inequality_queries": OTHER_THAN_BEFORE,
    "single_value_queries": SINGLE_VALUE,
    "rules": RULES,
    "quarantine_path": QUARANTINE,
    "quarantine_max_rows": QUARANTINE_MOST,
    "progress": PROGRESS,
    "durability": DURABILITY,
    "merge": MERGE,
    "memory_max": MEMORY_MAX,
    "spill_path": SPILL_PATH,
    "spill_compress": SPILL_COMPRESS,
}
# Attribute of ReadConfig -> its option.
READ_FIELDS = {
    "query_type": QUERY_TYPE,
    "incremental_format": INCREMENTAL_FORMAT,
    "start_offset": START_OFFSET,
    "start_offset_order": START_OFFSET_ORDER,
    "as_of": AS_OF,
    "begin": BEGIN,
    "end": END,
    "paths": PATHS,
    "incr_path_glob": PATH_GLOB,
    "incr_filters": INCR_FILTERS,
    "on_missing": ON_MISSING,
    "order": ORDER,
    "columns": COLUMNS,
    "filter": FILTER,
    "fallback_full_scan": FULL_SCAN_FALLBACK,
    "use_end_schema": USE_END_SCHEMA,
    "hollow_policy": HOLLOW_POLICY,
    "merge": MERGE,
    "merge_type": MERGE_TYPE,
    "memory_max": MEMORY_MAX,
    "spill_path": SPILL_PATH,
    "spill_compress": SPILL_COMPRESS,
    "extract_partition_values_from_path": "hoodie.datasource.read.extract.partition.values.from.path",
    "metadata_enable": METADATA_ENABLE,
    "schema_on_read": SCHEMA_ON_READ,
}

DOCS = {
    "hoodie.table.name": "Name of the table; needed by its first write, and the same ever after.",
    "hoodie.database.name": "Database that the table belongs to; kept in hoodie.properties.",
    "hoodie.datasource.write.table.type": "Type of the table that a first write makes.",
    OPERATION: (
        "What the write does with the rows. upsert_prepped and the like take rows that were read from the table to "
        "where their meta columns say, and look nothing up."
    ),
    RECORD_KEY: (
        "Column(s) that identify a record; dots reach into structs. Taken from the table once it exists."
    ),
    PARTITION: (
        "Column(s) whose values make the folder of a record; empty: not partitioned. CustomKeyGenerator takes "
        "field:SIMPLE and field:TIMESTAMP, with every write."
    ),
    PRECOMBINE: (
        "Column that decides between records of one key: the greatest value wins, of equal ones the later "
        "row. Not given: `ts`, if a new table has that column."
    ),
    KEYGEN_CLASS: (
        "How record key and partition path are made; follows from the number of fields if not given."
    ),
    KEYGEN_TYPE: "Short form of the key generator's class.",
    "hoodie.sql.origin.keygen.class": "The class that Spark SQL's own key generator stands for.",
    timestamp_based.TYPE: (
        "What the timestamp key generator's column holds; SCALAR counts in a unit. Not kept in hoodie.properties: give "
        "it with every write."
    ),
    timestamp_based.UNIT: "Unit of a column of type SCALAR, a name of Java's TimeUnit.",
    timestamp_based.INPUT: "Pattern of a column of dates as text; several, with the delimiter between them.",
    timestamp_based.DELIMITER: "Regular expression of what stands between several input patterns.",
    timestamp_based.INPUT_ZONE: "Time zone of dates as text that name none.",
    timestamp_based.OUTPUT: "Pattern of the partition path, such as yyyy/MM/dd.",
    timestamp_based.OUTPUT_ZONE: "Time zone of the partition path.",
    timestamp_based.BOTH_ZONES: "Time zone of input and output.",
    timestamp_based.PARSER_CLASS: "Java class that knows patterns and zones; only Apache Hudi's own.",
    timestamp_based.CONSISTENT: (
        "Timestamps in keys are text with milliseconds, as Apache Hudi's bulk_insert makes them, not numbers. Not "
        "kept in hoodie.properties: give it with every write."
    ),
    "hoodie.datasource.write.hive_style_partitioning": "Folders are named `column=value` instead of `value`.",
    "hoodie.populate.meta.fields": (
        "false: files hold no record keys (virtual keys); they are made of the key columns when they are needed."
    ),
    "hoodie.datasource.write.drop.partition.columns": (
        "Partition columns are kept in folder names only; they read back as text."
    ),
    "hoodie.datasource.write.partitionpath.urlencode": "Partition values are URL-encoded in folder names.",
    PAYLOAD: (
        "How records of one key meet. OverwriteWithLatestAvroPayload: the latest write wins. "
        "DefaultHoodieRecordPayload, EventTimeAvroPayload: the greatest ordering value (a late delete loses, "
        "or deletes all the same). FirstValueAvroPayload: of equal ones the first. "
        "OverwriteNonDefaultsWithLatestAvroPayload: nulls leave the stored value. PartialUpdateAvroPayload: "
        "nulls of the greater are filled from the other. AWSDmsAvroPayload: `Op` = `D` deletes."
    ),
    MERGE: (
        "A merge of your own: module:name of a Python function over Arrow batches, or a JSON object of expressions "
        'for columns, such as {"count": "sum"}. A table\'s first write keeps it; a read may name another.'
    ),
    MERGE_TYPE: (
        "skip_merge: a snapshot of a merge-on-read table gives base rows as they are, and after them the records of "
        "the logs, one per key."
    ),
    MEMORY_MAX: (
        "Bytes that the log records of one file slice may take while they are merged; beyond it they go to disk. Of a "
        "write without a JVM, if it is given: bytes that its rows may take; their keys come on top."
    ),
    SPILL_PATH: "Folder of the temporary files of merges that exceed their memory; the system's if not given.",
    SPILL_COMPRESS: "The temporary files of merges are compressed.",
    PAYLOAD_ORDERING: "Ordering column of the payload; the precombine field, if that is not given.",
    EVENT_TIME: (
        "Column of seconds or milliseconds whose range over the updated records stands in the commit "
        "(DefaultHoodieRecordPayload)."
    ),
    DELETE_FIELD: "Column that marks deletes, together with its marker.",
    DELETE_MARKER: "Text in the delete field that makes a row a delete.",
    INDEX_TYPE: (
        "How the file of an incoming key is found: by reading keys (SIMPLE), or after a look at key ranges and "
        "bloom filters (BLOOM); within partitions, or in all of them (GLOBAL_...). SIMPLE if not given, or the "
        "global index that the table remembers."
    ),
    INDEX_CLASS: "The index by its class.",
    "hudi.index.allow.switch": "An index within partitions may follow a global one.",
    "hoodie.bloom.index.prune.by.ranges": "BLOOM leaves out files whose key range does not hold a key.",
    "hoodie.bloom.index.update.partition.path": (
        "GLOBAL_BLOOM moves a record whose partition changed; else it is updated where it is."
    ),
    "hoodie.simple.index.update.partition.path": (
        "GLOBAL_SIMPLE moves a record whose partition changed; else it is updated where it is."
    ),
    "hoodie.combine.before.insert": "Of rows with one key in the input, insert and bulk_insert keep one.",
    "hoodie.combine.before.upsert": "Of rows with one key in the input, upsert keeps one.",
    "hoodie.combine.before.delete": "Keys that stand twice in the input are deleted once.",
    "hoodie.merge.allow.duplicate.on.inserts": (
        "Inserts into small files are appended without comparing keys."
    ),
    CODEC: "Compression of base files. zstd here, gzip in Apache Hudi.",
    ZSTD_LEVEL: "Compression level of zstd.",
    "hoodie.parquet.block.size": "Size of a row group.",
    "hoodie.parquet.page.size": "Size of a page.",
    "hoodie.parquet.max.file.size": "Size at which a base file ends and the next begins.",
    "hoodie.parquet.dictionary.enabled": "Columns are dictionary-encoded while that pays.",
    "hoodie.parquet.small.file.limit": (
        "Base files below it take new records; 0: new records go to new files."
    ),
    "hoodie.copyonwrite.record.size.estimate": "Size of a record until a commit tells a better one.",
    "hoodie.record.size.estimation.threshold": (
        "Share of the small-file limit that a commit must have written for its record size to count."
    ),
    "hoodie.copyonwrite.insert.split.size": "New records of a file group when auto split is off.",
    "hoodie.copyonwrite.insert.auto.split": "New records of a file group follow from the record size.",
    "hoodie.parquet.bloom.filter.enabled": "Base files carry a bloom filter of their keys.",
    "hoodie.bloom.index.filter.type": "Bloom filter of one size, or one that grows.",
    "hoodie.index.bloom.num_entries": "Keys that a bloom filter is made for, at first.",
    "hoodie.index.bloom.fpp": "False positive rate of a bloom filter.",
    "hoodie.bloom.index.filter.dynamic.max.entries": "Keys up to which a dynamic bloom filter grows.",
    "hoodie.client.heartbeat.interval_in_ms": "How often a running write shows that it is alive.",
    "hoodie.client.heartbeat.tolerable.misses": "Missed heartbeats after which a write counts as dead.",
    "hoodie.cleaner.policy.failed.writes": "EAGER: a write first rolls back what dead writes left.",
    "hoodie.write.lock.provider": (
        "Lock between writers; not given: flock on local file systems, a lock file on S3, else within the process."
    ),
    "hoodie.write.lock.filesystem.path": "Folder of the lock file; not given: the table's .hoodie.",
    "hoodie.write.lock.filesystem.expire": (
        "Age in minutes at which a lock file counts as left over; 0: never."
    ),
    "hoodie.write.lock.storage.validity.timeout.secs": (
        "How long a lock on S3 counts if its writer dies without giving it back."
    ),
    "hoodie.write.lock.wait_time_ms": "How long to wait for the lock.",
    "hoodie.consistency.check.enabled": (
        "Before a commit the store is asked for each of its files, for stores that show new files late."
    ),
    "hoodie.consistency.check.initial_interval_ms": "Pause before files that are not there are looked for again.",
    "hoodie.consistency.check.max_interval_ms": "The longest such pause; each is twice as long as the one before.",
    "hoodie.consistency.check.max_checks": "How often the files are looked for.",
    METADATA_ENABLE: (
        "Folders are listed whatever it says; false also lets a write drop a metadata table that holds "
        "indexes."
    ),
    METADATA_PREFIX: "Options that begin with it go into the commit's metadata.",
    PARTITIONS_TO_DELETE: "Partitions of the operation delete_partition; * stands for any text.",
    STATIC_PARTITIONS: "Partitions that insert_overwrite replaces, instead of those that the rows fall into.",
    "hoodie.datasource.overwrite.mode": (
        "Counts in SQL only, as in Apache Hudi: here insert_overwrite replaces the partitions of its rows, "
        "insert_overwrite_table the whole table."
    ),
    "hoodie.allow.empty.commit": "A write without rows makes a commit.",
    "hoodie.write.set.null.for.missing.columns": "Columns of the table that the rows lack become null.",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": (
        "Columns that the rows lack leave the table's schema; stronger than nulls for missing columns."
    ),
    "hoodie.datasource.write.reconcile.schema": (
        "The table's schema is kept and extended, never narrowed; columns that the rows lack become null."
    ),
    WRITE_SCHEMA: (
        "Avro schema of the rows: they take its columns and types, and columns that they lack become null."
    ),
    SOURCE_SCHEMA_FILE: "File with the Avro schema of the rows, as of Apache Hudi's file-based schema provider.",
    TARGET_SCHEMA_FILE: "File with the Avro schema to write the rows in; that of the rows if not given.",
    "hudi.write.types": (
        "table: columns keep the table's types, and values take them where nothing is lost (on Spark rows that would "
        "change a type are refused). data: types grow with the rows', as with Apache Hudi. Not given: data on "
        "Spark, table without."
    ),
    NULL_TEXTS_OPTION: (
        "Rows to write whose partition column is empty text or __HIVE_DEFAULT_PARTITION__: refuse, or as_hudi, which "
        "puts them into the partition of null, as which snapshots give them back."
    ),
    "hoodie.avro.schema.validate": "The rows must have all columns of the table; nulls do not fill them.",
    "hoodie.avro.schema.external.transformation": (
        "Stored rows take the new schema when their file is written again; here they always do."
    ),
    "hoodie.table.timeline.timezone": "Time zone of the instants of a new table.",
    "hoodie.bulkinsert.sort.mode": (
        "Order of a bulk_insert: as given (NONE), by partition and key over all rows (GLOBAL_SORT) or within each "
        "task (PARTITION_SORT), or a partition's rows brought to one task (PARTITION_PATH_REPARTITION...)."
    ),
    PARTITIONER: (
        "One of Apache Hudi's partitioners that sort by columns, its sort.columns say which; or a Python function as "
        "module:function, which takes the rows of a bulk_insert and the number of tasks and gives them back in order."
    ),
    SORT_COLUMNS: "Columns that a bulk_insert sorts by within the partitions, instead of a sort mode.",
    DROP_DUPLICATES: "insert leaves out rows whose key is in the table, and keeps one row per key.",
    DUP_POLICY: "What insert does with keys that are in the table: none, drop, or fail.",
    VALIDATORS: (
        "What is checked before a commit, comma separated: Apache Hudi's three SQL validators by class, with or "
        "without package, and Python functions as module:name, which take a hudi_timeline.validation.precommit.Change."
    ),
    SAME_BEFORE_AND_AFTER: (
        "Queries whose rows must be the same before and after the write; ; between them, <TABLE_NAME> for the table's "
        "changed partitions."
    ),
    OTHER_THAN_BEFORE: "Queries whose rows must not be the same before and after the write.",
    SINGLE_VALUE: "Queries with the one value that they must give after the write: query#value.",
    RULES: (
        "Conditions that each row to write must meet, `name: condition` or `condition`, with ; between them; a row for "
        "which one is not true, null included, fails the write or goes to the quarantine."
    ),
    QUARANTINE: (
        "Base path of a table that takes the rows which break a rule, or have no key, ordering value or safe "
        "partition, with the reason; not given: such rows fail the write."
    ),
    QUARANTINE_MOST: "More rows than this for the quarantine fail the write; not given: no limit.",
    DURABILITY: "flush: what a call has published outlives a power failure; none: it is left to the system when it "
    "reaches a local disk.",
    PROGRESS: "Progress of writes on a terminal or in a notebook; auto: where standard error is one of them.",
    STREAMING_IGNORE_FAILED: (
        "Of streaming sinks only, as in Apache Hudi: a write of a DataFrame fails whatever it says."
    ),
    STORAGE_LEVEL: "Where Spark keeps the input while it is written.",
    PARALLELISM["upsert"]: (
        "On Spark, tasks that an upsert shuffles its rows to: at most one for each file group, and more than given "
        "where each would get too much. Without effect where there is no Spark: nothing is shuffled there."
    ),
    PARALLELISM["insert"]: "Tasks of an insert or an overwrite, as of an upsert.",
    PARALLELISM["bulk_insert"]: "Tasks of a bulk_insert.",
    PARALLELISM["delete"]: "Tasks of a delete, as of an upsert.",
    STAGING_LIMIT: "Size up to which the data source without interception takes an append.",
    QUERY_TYPE: "What a read answers.",
    INCREMENTAL_FORMAT: (
        "What an incremental query gives: latest_state, each row once in its newest state; or cdc, every change with "
        "the row before and after it."
    ),
    START_OFFSET: (
        "Where a stream without a checkpoint begins: earliest, latest, or an instant, whose own changes are left out."
    ),
    START_OFFSET_ORDER: (
        "Order of the reader whose checkpoint the start offset is, if it is not the stream's own: fenced, start or "
        "completion; the stream begins where it misses nothing."
    ),
    AS_OF: "Instant or date to read the table at.",
    BEGIN: "Start of an incremental query, exclusive; 000 is the beginning.",
    END: "End of an incremental query, inclusive; the newest if not given.",
    PATHS: "Paths and patterns below the table, with commas between them; only their files are read.",
    PATH_GLOB: "Files that an incremental query reads: a pattern that full paths end with.",
    INCR_FILTERS: "Filters of an incremental query, with commas between them.",
    ORDER: (
        "How an incremental query goes about a commit that is still open: fenced, it reads up to it; start, it reads "
        "past it, and gives rows again later; completion, it goes by the times at which commits were completed."
    ),
    ON_MISSING: (
        "What an incremental query does whose begin lies before archived instants: error, full_scan, or as_hudi, "
        "which gives the rows that are still on the timeline; not given: as_hudi for the begin 000, else error. "
        "Of other queries, where files are gone: error, or as_hudi."
    ),
    COLUMNS: "Columns to read, for doors that push down none.",
    FILTER: "Rows to read, such as `city = 'oslo' and fare < 3`, for doors that push down none.",
    FULL_SCAN_FALLBACK: ("An incremental query whose files are gone reads the whole table."),
    USE_END_SCHEMA: ("Incremental rows have the schema of the last instant."),
    HOLLOW_POLICY: (
        "What an incremental query does where a commit is still open: FAIL, read up to it (BLOCK), or go by the "
        "times at which commits were completed (USE_TRANSITION_TIME)."
    ),
    SCHEMA_ON_READ: (
        "Reads: older files are read by column id where the table has a schema history (ALTER TABLE); so they are if "
        "it is not given. false: by name."
    ),
    "hoodie.datasource.read.extract.partition.values.from.path": (
        "Partition columns have the values of the folders' names also in snapshots of merge-on-read tables and in "
        "incremental queries, which else give what the files hold; the two differ where a key generator formats times."
    ),
}

DOCS.update(SERVICE_DOCS)
DOCS.update(CALLBACK_DOCS)
HEEDED = frozenset(DOCS)
