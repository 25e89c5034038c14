"""Options of the table: keys, merging, schema."""

from __future__ import annotations

from hudi_format.keygen.key_generator import is_provided
from hudi_format.merge.payloads import MODELS, PAYLOADS, payload_class
from hudi_format.model import CDC_MODES, DATA_BEFORE_AFTER
from hudi_timeline.options.config_key import (
    ConfigKey,
    Unsupported,
    is_given,
    is_true,
    other_than,
)
from hudi_timeline.options.option_types import (
    BOOLEAN,
    FIELDS,
    NAME,
    STRIPPED,
    TEXT,
    OptionType,
    choice,
    java_class,
    whole,
)

_MODEL = java_class(MODELS)

# What belongs together of a declaration stands in one line.
# fmt: off
TABLE_NAME = ConfigKey(
    "hoodie.table.name", NAME, since="0.13.0",
    doc="Name of the table; needed by its first write, and the same ever after.",
    alternatives=("hoodie.datasource.write.table.name",)
)
DATABASE = ConfigKey(
    "hoodie.database.name", STRIPPED, since="0.13.0",
    doc="Database that the table belongs to; kept in hoodie.properties."
)
TABLE_TYPE = ConfigKey(
    "hoodie.datasource.write.table.type", choice("COPY_ON_WRITE", "MERGE_ON_READ"), "COPY_ON_WRITE", since="0.9.0",
    doc="Type of the table that a first write makes.",
    alternatives=("hoodie.datasource.write.storage.type", "hoodie.table.type")
)
RECORD_KEY = ConfigKey(
    "hoodie.datasource.write.recordkey.field", FIELDS,
    doc="Column(s) that identify a record; dots reach into structs. Taken from the table once it exists.",
    alternatives=("hoodie.table.recordkey.fields",)
)
PARTITION = ConfigKey(
    "hoodie.datasource.write.partitionpath.field", FIELDS,
    doc=(
        "Column(s) whose values make the folder of a record; empty: not partitioned. CustomKeyGenerator takes "
        "field:SIMPLE and field:TIMESTAMP, with every write."
    ),
    alternatives=("hoodie.table.partition.fields",)
)
PRECOMBINE = ConfigKey(
    "hoodie.datasource.write.precombine.field", FIELDS, "ts",
    doc=(
        "Column that decides between records of one key: the greatest value wins, of equal ones the later row. Not "
        "given: `ts`, if a new table has that column."
    ),
    alternatives=("hoodie.table.precombine.field", "hoodie.table.ordering.fields")
)
KEYGEN_CLASS = ConfigKey(
    "hoodie.datasource.write.keygenerator.class", java_class("org.apache.hudi.keygen."),
    "org.apache.hudi.keygen.SimpleKeyGenerator", since="0.9.0",
    doc="How record key and partition path are made; follows from the number of fields if not given.",
    alternatives=("hoodie.table.keygenerator.class",),
    unsupported=Unsupported(
        lambda v: is_given(v) and not is_provided(str(v)), "another key generator",
        "use Simple-, Complex-, Nonpartitioned-, TimestampBased- or CustomKeyGenerator; for made-up keys leave "
        "the record key field out"
    )
)
KEYGEN_TYPE = ConfigKey(
    "hoodie.datasource.write.keygenerator.type",
    choice("SIMPLE", "COMPLEX", "TIMESTAMP", "CUSTOM", "NON_PARTITION", "GLOBAL_DELETE"), "SIMPLE",
    doc="Short form of the key generator's class.", alternatives=("hoodie.table.keygenerator.type",)
)
SQL_ORIGIN_KEYGEN = ConfigKey(
    "hoodie.sql.origin.keygen.class", TEXT, doc="The class that Spark SQL's own key generator stands for."
)
TIMESTAMP_TYPE = ConfigKey(
    "hoodie.keygen.timebased.timestamp.type",
    choice("UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "SCALAR", "DATE_STRING", "MIXED"),
    doc=(
        "What the timestamp key generator's column holds; SCALAR counts in a unit. Not kept in hoodie.properties: "
        "give it with every write."
    ),
    alternatives=("hoodie.deltastreamer.keygen.timebased.timestamp.type",)
)
TIMESTAMP_UNIT = ConfigKey(
    "hoodie.keygen.timebased.timestamp.scalar.time.unit", TEXT, "SECONDS",
    doc="Unit of a column of type SCALAR, a name of Java's TimeUnit.",
    alternatives=("hoodie.deltastreamer.keygen.timebased.timestamp.scalar.time.unit",)
)
TIMESTAMP_INPUT = ConfigKey(
    "hoodie.keygen.timebased.input.dateformat", TEXT,
    doc="Pattern of a column of dates as text; several, with the delimiter between them.",
    alternatives=("hoodie.deltastreamer.keygen.timebased.input.dateformat",)
)
TIMESTAMP_DELIMITER = ConfigKey(
    "hoodie.keygen.timebased.input.dateformat.list.delimiter.regex", TEXT, ",",
    doc="Regular expression of what stands between several input patterns.",
    alternatives=("hoodie.deltastreamer.keygen.timebased.input.dateformat.list.delimiter.regex",)
)
TIMESTAMP_INPUT_ZONE = ConfigKey(
    "hoodie.keygen.timebased.input.timezone", TEXT, "UTC", doc="Time zone of dates as text that name none.",
    alternatives=("hoodie.deltastreamer.keygen.timebased.input.timezone",)
)
TIMESTAMP_OUTPUT = ConfigKey(
    "hoodie.keygen.timebased.output.dateformat", TEXT, doc="Pattern of the partition path, such as yyyy/MM/dd.",
    alternatives=("hoodie.deltastreamer.keygen.timebased.output.dateformat",)
)
TIMESTAMP_OUTPUT_ZONE = ConfigKey(
    "hoodie.keygen.timebased.output.timezone", TEXT, "UTC", doc="Time zone of the partition path.",
    alternatives=("hoodie.deltastreamer.keygen.timebased.output.timezone",)
)
TIMESTAMP_BOTH_ZONES = ConfigKey(
    "hoodie.keygen.timebased.timezone", TEXT, "UTC", doc="Time zone of input and output.",
    alternatives=("hoodie.deltastreamer.keygen.timebased.timezone",)
)
TIMESTAMP_PARSER = ConfigKey(
    "hoodie.keygen.datetime.parser.class", TEXT, "org.apache.hudi.keygen.parser.HoodieDateTimeParser",
    doc="Java class that knows patterns and zones; only Apache Hudi's own.",
    alternatives=("hoodie.deltastreamer.keygen.datetime.parser.class",)
)
TIMESTAMP_CONSISTENT = ConfigKey(
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", BOOLEAN, "false", since="0.10.1",
    doc=(
        "Timestamps in keys are text with milliseconds, as Apache Hudi's bulk_insert makes them, not numbers. Not "
        "kept in hoodie.properties: give it with every write."
    )
)
HIVE_STYLE = ConfigKey(
    "hoodie.datasource.write.hive_style_partitioning", BOOLEAN, "false",
    doc="Folders are named `column=value` instead of `value`."
)
POPULATE_META_FIELDS = ConfigKey(
    "hoodie.populate.meta.fields", BOOLEAN, "true",
    doc="false: files hold no record keys (virtual keys); they are made of the key columns when they are " "needed."
)
DROP_PARTITION_COLUMNS = ConfigKey(
    "hoodie.datasource.write.drop.partition.columns", BOOLEAN, "false",
    doc="Partition columns are kept in folder names only; they read back as text."
)
URL_ENCODE = ConfigKey(
    "hoodie.datasource.write.partitionpath.urlencode", BOOLEAN, "false",
    doc="Partition values are URL-encoded in folder names."
)
PAYLOAD = ConfigKey(
    "hoodie.datasource.write.payload.class",
    OptionType(_MODEL.allowed, lambda text: payload_class(str(_MODEL.parse(text)))),
    "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    doc=(
        "How records of one key meet. OverwriteWithLatestAvroPayload: the latest write wins. "
        "DefaultHoodieRecordPayload, EventTimeAvroPayload: the greatest ordering value (a late delete loses, or "
        "deletes all the same). FirstValueAvroPayload: of equal ones the first. "
        "OverwriteNonDefaultsWithLatestAvroPayload: nulls leave the stored value. PartialUpdateAvroPayload: nulls of "
        "the greater are filled from the other. AWSDmsAvroPayload: `Op` = `D` deletes."
    ),
    alternatives=("hoodie.compaction.payload.class",),
    unsupported=Unsupported(
        other_than(*map(payload_class, PAYLOADS)),
        "a payload class", f"use one of {', '.join(PAYLOADS)}"
    )
)
MERGE = ConfigKey(
    "hudi.merge", STRIPPED, since="0.1.0",
    doc=(
        "A merge of your own: module:name of a Python function over Arrow batches, or a JSON object of expressions "
        'for columns, such as {"count": "sum"}. A table\'s first write keeps it; a read may name another.'
    )
)
MEMORY_MAX = ConfigKey(
    "hoodie.memory.merge.max.size", whole(1, unit="bytes"), "1073741824",
    doc=(
        "Bytes that the log records of one file slice may take while they are merged; beyond it they go to disk. Of "
        "a write without a JVM, if it is given: bytes that its rows may take; their keys come on top."
    )
)
SPILL_PATH = ConfigKey(
    "hoodie.memory.spillable.map.path", STRIPPED,
    doc="Folder of the temporary files of merges that exceed their memory; the system's if not given."
)
SPILL_COMPRESS = ConfigKey(
    "hoodie.common.diskmap.compression.enabled", BOOLEAN, "true", doc="The temporary files of merges are compressed."
)
PAYLOAD_ORDERING = ConfigKey(
    "hoodie.payload.ordering.field", STRIPPED, "ts",
    doc="Ordering column of the payload; the precombine field, if that is not given."
)
EVENT_TIME = ConfigKey(
    "hoodie.payload.event.time.field", STRIPPED, "ts",
    doc=(
        "Column of seconds or milliseconds whose range over the updated records stands in the commit "
        "(DefaultHoodieRecordPayload)."
    )
)
DELETE_FIELD = ConfigKey(
    "hoodie.payload.delete.field", NAME, doc="Column that marks deletes, together with its marker."
)
DELETE_MARKER = ConfigKey(
    "hoodie.payload.delete.marker", NAME, doc="Text in the delete field that makes a row a delete."
)
SET_NULL_FOR_MISSING_COLUMNS = ConfigKey(
    "hoodie.write.set.null.for.missing.columns", BOOLEAN, "false", since="0.14.1",
    doc="Columns of the table that the rows lack become null."
)
ALLOW_COLUMN_DROP = ConfigKey(
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop", BOOLEAN, "false", since="0.13.0",
    doc="Columns that the rows lack leave the table's schema; stronger than nulls for missing columns."
)
RECONCILE_SCHEMA = ConfigKey(
    "hoodie.datasource.write.reconcile.schema", BOOLEAN, "false",
    doc="The table's schema is kept and extended, never narrowed; columns that the rows lack become null."
)
WRITE_SCHEMA = ConfigKey(
    "hoodie.write.schema", TEXT,
    doc="Avro schema of the rows: they take its columns and types, and columns that they lack become null."
)
SOURCE_SCHEMA_FILE = ConfigKey(
    "hoodie.streamer.schemaprovider.source.schema.file", TEXT,
    doc="File with the Avro schema of the rows, as of Apache Hudi's file-based schema provider.",
    alternatives=("hoodie.deltastreamer.schemaprovider.source.schema.file",)
)
TARGET_SCHEMA_FILE = ConfigKey(
    "hoodie.streamer.schemaprovider.target.schema.file", TEXT,
    doc="File with the Avro schema to write the rows in; that of the rows if not given.",
    alternatives=("hoodie.deltastreamer.schemaprovider.target.schema.file",)
)
WRITE_TYPES = ConfigKey(
    "hudi.write.types", choice("table", "data"), since="0.1.0",
    doc=(
        "table: columns keep the table's types, and values take them where nothing is lost (on Spark rows that would "
        "change a type are refused). data: types grow with the rows', as with Apache Hudi. Not given: data on Spark, "
        "table without."
    )
)
SCHEMA_MODE = ConfigKey(
    "hudi.write.schema.mode", choice("merge", "strict"), "merge", since="0.1.0",
    doc=(
        "What a write may change in the table's schema. merge: it adds columns, and types grow where hudi.write.types "
        "says so. strict: nothing; rows with a new column or another type are refused."
    )
)
NULL_TEXTS = ConfigKey(
    "hudi.partition.null.texts", choice("refuse", "write"), "refuse", since="0.1.0",
    doc=(
        "Rows to write whose partition column is empty text or __HIVE_DEFAULT_PARTITION__: refuse, or write, which "
        "puts them into the partition of null, as which snapshots give them back. The same holds of paths that do not "
        "tell the values of several columns apart, as of text with slashes without Hive style and URL encoding."
    )
)
VALIDATE_SCHEMA = ConfigKey(
    "hoodie.avro.schema.validate", BOOLEAN, "false",
    doc="The rows must have all columns of the table; nulls do not fill them."
)
EXTERNAL_TRANSFORMATION = ConfigKey(
    "hoodie.avro.schema.external.transformation", BOOLEAN, "false",
    doc="Stored rows take the new schema when their file is written again; here they always do.",
    alternatives=("hoodie.avro.schema.externalTransformation",)
)
TABLE_TIMEZONE = ConfigKey(
    "hoodie.table.timeline.timezone", choice("LOCAL", "UTC"), "LOCAL", doc="Time zone of the instants of a new table."
)
CDC_ENABLED = ConfigKey(
    "hoodie.table.cdc.enabled", BOOLEAN, "false", since="0.13.0",
    doc=(
        "A new table logs the changes of each write, for change data capture: a CDC file beside each base file that is "
        "rewritten. Kept in hoodie.properties, and the same ever after."
    )
)
CDC_MODE = ConfigKey(
    "hoodie.table.cdc.supplemental.logging.mode", choice(*CDC_MODES), DATA_BEFORE_AFTER, since="0.13.0",
    doc=(
        "What a logged change holds: OP_KEY_ONLY, its kind and record key; DATA_BEFORE, also the row before it; "
        "DATA_BEFORE_AFTER, the rows before and after. The less, the faster the write and the slower the CDC query. "
        "Kept in hoodie.properties, and the same ever after."
    )
)
SCHEMA_ON_READ = ConfigKey(
    "hoodie.schema.on.read.enable", BOOLEAN, "false",
    doc=(
        "Reads: older files are read by column id where the table has a schema history (ALTER TABLE); so they are if "
        "it is not given. false: by name."
    ),
    unsupported=Unsupported(
        is_true, "schema on read", "leave it out: a history that is there is kept; HudiTable.alter() begins one"
    )
)
