"""Options of a write's rows and of its checks before the commit."""

from __future__ import annotations

from hudi_timeline.options.config_key import ConfigKey, Unsupported, class_other_than
from hudi_timeline.options.option_types import (
    BOOLEAN,
    FIELDS,
    NAME,
    PATH_LIST,
    STORAGE_LEVELS,
    STRIPPED,
    TASKS,
    TEXT,
    choice,
    class_or_function,
    whole,
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
# Those that look up the keys of their rows, that only add rows, that write none, and that replace partitions.
LOOKS_UP = ("upsert", "delete")
ADDS_ROWS = ("insert", "bulk_insert")
WRITES_NO_ROWS = ("delete", "delete_partition")
REPLACING = ("insert_overwrite", "insert_overwrite_table", "delete_partition")
# The same on rows whose meta columns say key, partition path and file.
PREPPED = "_prepped"
PREPPED_OPERATIONS = ("insert_prepped", "upsert_prepped", "bulk_insert_prepped", "delete_prepped")
LATER_OPERATIONS = ("bootstrap",)
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


# What belongs together of a declaration stands in one line.
# fmt: off
OPERATION = ConfigKey(
    "hoodie.datasource.write.operation", choice(*OPERATIONS, *PREPPED_OPERATIONS, *LATER_OPERATIONS), "upsert",
    since="0.9.0",
    doc=(
        "What the write does with the rows. upsert_prepped and the like take rows that were read from the table to "
        "where their meta columns say, and look nothing up."
    ),
    unsupported=Unsupported(lambda v: v in LATER_OPERATIONS, "an operation", f"use one of {', '.join(OPERATIONS)}")
)
COMBINE_BEFORE_INSERT = ConfigKey(
    "hoodie.combine.before.insert", BOOLEAN, "false",
    doc="Of rows with one key in the input, insert and bulk_insert keep one."
)
COMBINE_BEFORE_UPSERT = ConfigKey(
    "hoodie.combine.before.upsert", BOOLEAN, "true", doc="Of rows with one key in the input, upsert keeps one."
)
COMBINE_BEFORE_DELETE = ConfigKey(
    "hoodie.combine.before.delete", BOOLEAN, "true", doc="Keys that stand twice in the input are deleted once."
)
ALLOW_DUPLICATE_ON_INSERTS = ConfigKey(
    "hoodie.merge.allow.duplicate.on.inserts", BOOLEAN, "true",
    doc="Inserts into small files are appended without comparing keys."
)
METADATA_PREFIX = ConfigKey(
    "hoodie.datasource.write.commitmeta.key.prefix", NAME, "_", since="0.9.0",
    doc="Options that begin with it go into the commit's metadata."
)
PARTITIONS_TO_DELETE = ConfigKey(
    "hoodie.datasource.write.partitions.to.delete", PATH_LIST, since="0.9.0",
    doc="Partitions of the operation delete_partition; * stands for any text."
)
STATIC_PARTITIONS = ConfigKey(
    "hoodie.static.overwrite.partition.paths", PATH_LIST,
    doc="Partitions that insert_overwrite replaces, instead of those that the rows fall into."
)
OVERWRITE_MODE = ConfigKey(
    "hoodie.datasource.overwrite.mode", choice("STATIC", "DYNAMIC"), since="0.14.0",
    doc=(
        "Counts in SQL only, as in Apache Hudi: here insert_overwrite replaces the partitions of its rows, "
        "insert_overwrite_table the whole table."
    )
)
SORT_MODE = ConfigKey(
    "hoodie.bulkinsert.sort.mode",
    choice(
        "NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"
    ),
    "NONE",
    doc=(
        "Order of a bulk_insert: as given (NONE), by partition and key over all rows (GLOBAL_SORT) or within each "
        "task (PARTITION_SORT), or a partition's rows brought to one task (PARTITION_PATH_REPARTITION...)."
    )
)
PARTITIONER = ConfigKey(
    "hoodie.bulkinsert.user.defined.partitioner.class", class_or_function("org.apache.hudi.execution.bulkinsert."),
    doc=(
        "One of Apache Hudi's partitioners that sort by columns, its sort.columns say which; or a Python function as "
        "module:function, which takes the rows of a bulk_insert and the number of tasks and gives them back in order."
    ),
    unsupported=Unsupported(
        lambda v: (":" not in str(v) and class_other_than("org.apache.hudi.execution.bulkinsert.", *COLUMN_SORTERS)(v)),
        "a Java class of the user",
        "name a Python function as module:function, which takes the rows and gives them back in its order; or "
        "leave it out, and name the columns to sort by in "
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns, or sort and repartition the data before the "
        "write (hoodie.bulkinsert.sort.mode=NONE keeps its order)"
    )
)
SORT_COLUMNS = ConfigKey(
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns", FIELDS,
    doc="Columns that a bulk_insert sorts by within the partitions, instead of a sort mode."
)
DROP_DUPLICATES = ConfigKey(
    "hoodie.datasource.write.insert.drop.duplicates", BOOLEAN, "false", since="0.9.0",
    doc="insert leaves out rows whose key is in the table, and keeps one row per key."
)
DUP_POLICY = ConfigKey(
    "hoodie.datasource.insert.dup.policy", choice("none", "drop", "fail"), "none", since="0.14.0",
    doc="What insert does with keys that are in the table: none, drop, or fail."
)
VALIDATORS = ConfigKey(
    "hoodie.precommit.validators", FIELDS,
    doc=(
        "What is checked before a commit, comma separated: Apache Hudi's three SQL validators by class, with or "
        "without package, and Python functions as module:name, which take a "
        "hudi_timeline.validation.precommit.Change."
    ),
    unsupported=Unsupported(
        _foreign_validator, "a validator that only a JVM can load",
        f"use {', '.join(SQL_VALIDATORS)} of Apache Hudi, or a Python function as module:name"
    )
)
SAME_BEFORE_AND_AFTER = ConfigKey(
    "hoodie.precommit.validators.equality.sql.queries", TEXT,
    doc=(
        "Queries whose rows must be the same before and after the write; ; between them, <TABLE_NAME> for the "
        "table's changed partitions."
    )
)
OTHER_THAN_BEFORE = ConfigKey(
    "hoodie.precommit.validators.inequality.sql.queries", TEXT,
    doc="Queries whose rows must not be the same before and after the write."
)
SINGLE_VALUE = ConfigKey(
    "hoodie.precommit.validators.single.value.sql.queries", TEXT,
    doc="Queries with the one value that they must give after the write: query#value."
)
RULES = ConfigKey(
    "hudi.write.rules", STRIPPED, since="0.1.0",
    doc=(
        "Conditions that each row to write must meet, `name: condition` or `condition`, with ; between them; a row "
        "for which one is not true, null included, fails the write or goes to the quarantine."
    )
)
QUARANTINE = ConfigKey(
    "hudi.quarantine.path", NAME, since="0.1.0",
    doc=(
        "Base path of a table that takes the rows which break a rule, or have no key, ordering value or safe "
        "partition, with the reason; not given: such rows fail the write."
    )
)
QUARANTINE_MOST = ConfigKey(
    "hudi.quarantine.max.rows", whole(0, unit="rows"), since="0.1.0",
    doc="More rows than this for the quarantine fail the write; not given: no limit."
)
PROGRESS = ConfigKey(
    "hudi.progress", choice("auto", "true", "false"), "auto", since="0.1.0",
    doc="Progress of writes on a terminal or in a notebook; auto: where standard error is one of them."
)
STREAMING_IGNORE_FAILED = ConfigKey(
    "hoodie.datasource.write.streaming.ignore.failed.batch", BOOLEAN, "false", since="0.9.0",
    doc="Of streaming sinks only, as in Apache Hudi: a write of a DataFrame fails whatever it says."
)
STORAGE_LEVEL = ConfigKey(
    "hoodie.write.tagged.record.storage.level", STORAGE_LEVELS, "MEMORY_AND_DISK_SER",
    doc="Where Spark keeps the input while it is written."
)
UPSERT_PARALLELISM = ConfigKey(
    "hoodie.upsert.shuffle.parallelism", TASKS, "0",
    doc=(
        "On Spark, tasks that an upsert shuffles its rows to: at most one for each file group, and more than given "
        "where each would get too much. Without effect where there is no Spark: nothing is shuffled there."
    )
)
INSERT_PARALLELISM = ConfigKey(
    "hoodie.insert.shuffle.parallelism", TASKS, "0", doc="Tasks of an insert or an overwrite, as of an upsert."
)
BULK_INSERT_PARALLELISM = ConfigKey(
    "hoodie.bulkinsert.shuffle.parallelism", TASKS, "0", doc="Tasks of a bulk_insert."
)
DELETE_PARALLELISM = ConfigKey(
    "hoodie.delete.shuffle.parallelism", TASKS, "0", doc="Tasks of a delete, as of an upsert."
)
STAGING_LIMIT = ConfigKey(
    "hudi.write.staging.limit.bytes", TEXT, since="0.1.0",
    doc="Size up to which the data source without interception takes an append."
)
