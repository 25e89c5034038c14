"""Write options, parsed once as `WriteConfig`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnsupportedError
from hudi_format.keygen.key_generator import kind_of
from hudi_format.merge.payloads import PAYLOADS
from hudi_index.lookup import CUSTOM
from hudi_timeline.options import file_options as file
from hudi_timeline.options import table_options as table
from hudi_timeline.options import write_options as write
from hudi_timeline.options.config_key import WRITE, given_value, value_of
from hudi_timeline.options.registry import ParsedOptions, canonical
from hudi_timeline.options.service_config import (
    CallbackConfig,
    ServiceConfig,
    callback_config,
    service_config,
)
from hudi_timeline.options.transaction_config import TransactionConfig, transaction_config
from hudi_timeline.options.unsupported import refuse_effects, say_tuning

# The number of tasks by operation; the others are as an insert.
PARALLELISM = {
    "upsert": write.UPSERT_PARALLELISM,
    "delete": write.DELETE_PARALLELISM,
    "bulk_insert": write.BULK_INSERT_PARALLELISM,
    "insert": write.INSERT_PARALLELISM,
}


def _frame_level(level: str) -> str:
    """Storage level of a DataFrame; levels with and without SER are equal there."""
    return level.replace("_SER", "")


@dataclass(frozen=True)
class WriteConfig(file.FileConfig):
    """Options of a write, as plain values that cross to executors.

    A field that is bound to an option has its parsed value; what it means stands with the option.  None means "not
    given": the table, or Apache Hudi's default, decides.  Sizes in bytes, times in milliseconds, unless the name says
    otherwise.

    Attributes:
        partition_fields: `()` where the option was given empty: not partitioned, on purpose.
        ordering_field: None with `ordering_given` where the option was given empty: no ordering, on purpose.
        keygen_class, payload_class: full names of Java classes.
        duplicate_policy: also where it was asked for by `drop_duplicates`.
        validators: SQL validators by the last part of their class, and Python functions as module:name.
        partitioner: a Python function as module:name.
        shuffle_parallelism: of the operation; None leaves it to the engine.
        extra_metadata: goes into the commit's extraMetadata.
        raw: what was given, under the main names, class names with their package.
    """

    table_name: str | None = given_value(table.TABLE_NAME)
    database: str | None = given_value(table.DATABASE)
    table_type: str | None = given_value(table.TABLE_TYPE)
    operation: str = value_of(write.OPERATION)
    operation_given: bool = False
    record_key_fields: tuple[str, ...] | None = given_value(table.RECORD_KEY)
    partition_fields: tuple[str, ...] | None = given_value(table.PARTITION)
    ordering_field: str | None = None
    ordering_given: bool = False
    prepped: bool = False
    partitioner: str | None = None
    keygen_class: str | None = given_value(table.KEYGEN_CLASS)
    keygen_type: str | None = given_value(table.KEYGEN_TYPE)
    hive_style: bool | None = given_value(table.HIVE_STYLE)
    url_encode: bool | None = given_value(table.URL_ENCODE)
    drop_partition_columns: bool = value_of(table.DROP_PARTITION_COLUMNS)
    populate_meta_fields: bool = value_of(table.POPULATE_META_FIELDS)
    payload_class: str | None = given_value(table.PAYLOAD)
    index_type: str | None = given_value(file.INDEX_TYPE)
    index_switch: bool = value_of(file.INDEX_SWITCH)
    index_class: str | None = given_value(file.INDEX_CLASS)
    bucket_engine: str | None = given_value(file.BUCKET_ENGINE)
    num_buckets: int | None = given_value(file.NUM_BUCKETS)
    hash_fields: tuple[str, ...] | None = given_value(file.HASH_FIELDS)
    bloom_prune_by_ranges: bool = value_of(file.BLOOM_PRUNE_BY_RANGES)
    bloom_use_metadata: bool = value_of(file.BLOOM_USE_METADATA)
    bloom_update_partition: bool = value_of(file.BLOOM_UPDATE_PARTITION)
    simple_update_partition: bool = value_of(file.SIMPLE_UPDATE_PARTITION)
    record_update_partition: bool | None = given_value(file.RECORD_UPDATE_PARTITION)
    combine_before_insert: bool = value_of(write.COMBINE_BEFORE_INSERT)
    combine_before_upsert: bool = value_of(write.COMBINE_BEFORE_UPSERT)
    combine_before_delete: bool = value_of(write.COMBINE_BEFORE_DELETE)
    allow_duplicate_on_inserts: bool = value_of(write.ALLOW_DUPLICATE_ON_INSERTS)
    small_file_limit_bytes: int = value_of(file.SMALL_FILE_LIMIT_BYTES)
    small_group_candidates: int = value_of(file.SMALL_GROUP_CANDIDATES)
    log_file_bytes: int = value_of(file.LOG_FILE_BYTES)
    record_size_estimate: int = value_of(file.RECORD_SIZE_ESTIMATE)
    record_size_threshold: float = value_of(file.RECORD_SIZE_THRESHOLD)
    insert_split_size: int = value_of(file.INSERT_SPLIT_SIZE)
    auto_split: bool = value_of(file.INSERT_AUTO_SPLIT)
    partitions_to_delete: tuple[str, ...] = value_of(write.PARTITIONS_TO_DELETE, otherwise=())
    static_overwrite_partitions: tuple[str, ...] = value_of(write.STATIC_PARTITIONS, otherwise=())
    overwrite_mode: str | None = given_value(write.OVERWRITE_MODE)
    set_null_for_missing_columns: bool = value_of(table.SET_NULL_FOR_MISSING_COLUMNS)
    allow_column_drop: bool = value_of(table.ALLOW_COLUMN_DROP)
    reconcile_schema: bool = value_of(table.RECONCILE_SCHEMA)
    validate_schema: bool = value_of(table.VALIDATE_SCHEMA)
    types: str | None = given_value(table.WRITE_TYPES)
    schema_mode: str = value_of(table.SCHEMA_MODE)
    null_texts: str = value_of(table.NULL_TEXTS)
    write_schema: str | None = given_value(table.WRITE_SCHEMA)
    source_schema_file: str | None = given_value(table.SOURCE_SCHEMA_FILE)
    target_schema_file: str | None = given_value(table.TARGET_SCHEMA_FILE)
    event_time_field: str = value_of(table.EVENT_TIME)
    delete_field: str | None = given_value(table.DELETE_FIELD)
    delete_marker: str | None = given_value(table.DELETE_MARKER)
    table_timezone: str | None = given_value(table.TABLE_TIMEZONE)
    cdc_enabled: bool = value_of(table.CDC_ENABLED)
    cdc_mode: str | None = given_value(table.CDC_MODE)
    storage_level: str = _frame_level(write.STORAGE_LEVEL.value)
    shuffle_parallelism: int | None = None
    bulk_insert_sort_mode: str = value_of(write.SORT_MODE)
    bulk_insert_sort_columns: tuple[str, ...] = value_of(write.SORT_COLUMNS, otherwise=())
    drop_duplicates: bool = value_of(write.DROP_DUPLICATES)
    duplicate_policy: str = value_of(write.DUP_POLICY)
    validators: tuple[str, ...] = value_of(write.VALIDATORS, otherwise=())
    equality_queries: str = value_of(write.SAME_BEFORE_AND_AFTER, otherwise="")
    inequality_queries: str = value_of(write.OTHER_THAN_BEFORE, otherwise="")
    single_value_queries: str = value_of(write.SINGLE_VALUE, otherwise="")
    rules: str = value_of(write.RULES, otherwise="")
    quarantine_path: str | None = given_value(write.QUARANTINE)
    quarantine_max_rows: int | None = given_value(write.QUARANTINE_MOST)
    progress: str = value_of(write.PROGRESS)
    merge: str | None = given_value(table.MERGE)
    memory_max: int | None = given_value(table.MEMORY_MAX)
    spill_path: str = value_of(table.SPILL_PATH, otherwise="")
    spill_compress: bool = value_of(table.SPILL_COMPRESS)
    callback: CallbackConfig | None = None
    transaction: TransactionConfig = field(default_factory=TransactionConfig)
    services: ServiceConfig = field(default_factory=ServiceConfig)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, str] = field(default_factory=dict)

    @property
    def index_arguments(self) -> dict[str, str]:
        """Arguments of an index of one's own."""
        prefix = file.INDEX_ARGUMENTS
        return {k.removeprefix(prefix): v for k, v in self.raw.items() if k.startswith(prefix)}


def parse_write_options(options: Mapping[str, str]) -> WriteConfig:
    """Typed options of a write.

    Raises:
        UnknownOptionError: a name that no release of Apache Hudi knows; the remedy is the nearest one.
        InvalidOptionError: a value that its option does not take.
        ConflictingOptionError: two options that contradict each other.
        UnsupportedError: an option that asks for something not provided yet.
    """
    given = canonical(options)
    refuse_effects(given, WRITE)
    values = file.given_file_values(WriteConfig, given.parsed)
    operation = str(values.get("operation", write.OPERATION.value))
    prepped = operation.endswith(write.PREPPED)
    if prepped:
        values["operation"] = operation = operation.removesuffix(write.PREPPED)
        _refuse_for_prepped(given, operation)
    _refuse_contradictions(given, operation)
    if values.get("drop_duplicates"):
        values["duplicate_policy"] = "drop"
        if operation == "upsert":  # as Apache Hudi: what is left when known keys are dropped are inserts
            values["operation"] = operation = "insert"
    values["validators"] = _validators(given)
    say_tuning(given)
    values["index_type"] = _index(given)
    if values["index_type"] != CUSTOM:
        values.pop("index_class", None)
    _refuse_other_index(given, values["index_type"], operation)
    # An empty text is "none" for what may be missing.
    for name in ("database", "merge", "write_schema", "source_schema_file", "target_schema_file"):
        if not values.get(name):
            values.pop(name, None)
    tasks = given.parsed.get(PARALLELISM.get(operation, PARALLELISM["insert"]))
    return WriteConfig(
        **values,
        prepped=prepped,
        partitioner=_function(given),
        operation_given=write.OPERATION in given.parsed,
        ordering_field=_ordering(given),
        ordering_given=table.PRECOMBINE in given.parsed or bool(given.parsed.get(table.PAYLOAD_ORDERING)),
        storage_level=_frame_level(str(given.parsed.get(write.STORAGE_LEVEL, write.STORAGE_LEVEL.value))),
        shuffle_parallelism=tasks if isinstance(tasks, int) and tasks > 0 else None,
        callback=callback_config(given),
        transaction=transaction_config(given),
        services=service_config(given),
        extra_metadata=given.extra,
        raw=given.text,
    )


_QUERY_OPTIONS = (write.SAME_BEFORE_AND_AFTER, write.OTHER_THAN_BEFORE, write.SINGLE_VALUE)
_QUERIES = dict(zip(write.SQL_VALIDATORS, _QUERY_OPTIONS, strict=True))


def _validators(given: ParsedOptions) -> tuple[str, ...]:
    """Validators of the options, checked for SQL validators without queries and the reverse.

    Raises:
        ConflictingOptionError: one without the other, which would check nothing.
    """
    parsed = given.parsed.get(write.VALIDATORS)
    names = (
        tuple(n.removeprefix(write.VALIDATOR_PACKAGE) for n in parsed) if isinstance(parsed, tuple) else ()
    )
    for name, key in _QUERIES.items():
        queries = bool(str(given.parsed.get(key) or "").strip())
        if name in names and not queries:
            raise _conflict(
                f"{write.VALIDATORS} names {name}, but {key} is not given", f"give its queries in {key}."
            )
        if queries and name not in names:
            raise _conflict(
                f"{key} is given, but {write.VALIDATORS} does not name {name}", f"add {name} to it."
            )
    return names


def _ordering(given: ParsedOptions) -> str | None:
    fields = given.parsed.get(table.PRECOMBINE)
    if table.PRECOMBINE not in given.parsed:
        return str(given.parsed.get(table.PAYLOAD_ORDERING) or "") or None
    if not isinstance(fields, tuple) or not fields:
        return None
    if len(fields) > 1:
        raise UnsupportedError(
            f"several ordering fields ({', '.join(fields)}) need table version 9",
            remedy=f"name the one field that decides in {table.PRECOMBINE}.",
            option=given.given_as[table.PRECOMBINE],
        )
    return str(fields[0])


def _index(given: ParsedOptions) -> str | None:
    """Index of the options, by type or class."""
    kind, class_name = given.parsed.get(file.INDEX_TYPE), given.parsed.get(file.INDEX_CLASS)
    if not class_name:
        return str(kind) if kind else None
    named = file.INDEX_CLASSES.get(str(class_name), CUSTOM)
    if kind and kind != named:
        raise _conflict(
            f"{given.given_as[file.INDEX_TYPE]} is {kind}, {given.given_as[file.INDEX_CLASS]} is {class_name}",
            "give one of them.",
        )
    return named


def _refuse_other_index(given: ParsedOptions, index: str | None, operation: str) -> None:
    """Refuse options of the bucket index beside another index, and those that do not go with it.

    Raises:
        ConflictingOptionError: an option, and the index that was named.
    """
    layout, partitioner = given.parsed.get(file.LAYOUT_TYPE), given.parsed.get(file.LAYOUT_PARTITIONER)
    if index == "BUCKET":
        if layout == "DEFAULT":
            raise _conflict(
                f"{file.LAYOUT_TYPE} is DEFAULT, but the index BUCKET lays files out by bucket", "omit it."
            )
        for key in (write.PARTITIONER, write.SORT_COLUMNS):
            if operation == "bulk_insert" and given.parsed.get(key):
                raise _conflict(
                    f"{key} is given, but rows of the index BUCKET go to the file groups of their buckets",
                    "leave it out.",
                )
    elif index is not None:
        for key in (file.NUM_BUCKETS, file.HASH_FIELDS, file.BUCKET_ENGINE):
            if given.parsed.get(key) and given.parsed.get(key) != key.value:
                raise _conflict(
                    f"{given.given_as[key]} is given, but the index is {index}",
                    f"set {file.INDEX_TYPE}=BUCKET, or leave it out.",
                )
    if index != "BUCKET" and (layout == "BUCKET" or partitioner):
        key = file.LAYOUT_TYPE if layout == "BUCKET" else file.LAYOUT_PARTITIONER
        raise _conflict(
            f"{key}={given.text[key]} goes with the index BUCKET only",
            f"set {file.INDEX_TYPE}=BUCKET, or omit it.",
        )


def _refuse_contradictions(given: ParsedOptions, operation: str) -> None:
    """Refuse contradictory options.

    Raises:
        ConflictingOptionError, InvalidOptionError.
    """
    parsed = given.parsed
    if parsed.get(write.PARTITIONS_TO_DELETE) and operation != "delete_partition":
        raise _conflict(
            f"{write.PARTITIONS_TO_DELETE} is given, but the operation is {operation}",
            f"set {write.OPERATION}=delete_partition, or omit the partitions.",
        )
    for schema_file in (table.SOURCE_SCHEMA_FILE, table.TARGET_SCHEMA_FILE):
        if parsed.get(table.WRITE_SCHEMA) and parsed.get(schema_file):
            raise _conflict(
                f"{table.WRITE_SCHEMA} and {given.given_as[schema_file]} are given", "give one of them."
            )
    if parsed.get(write.STATIC_PARTITIONS) and operation != "insert_overwrite":
        raise _conflict(
            f"{write.STATIC_PARTITIONS} is given, but the operation is {operation}",
            f"set {write.OPERATION}=insert_overwrite, or omit the partitions.",
        )
    if (table.DELETE_FIELD in parsed) != (table.DELETE_MARKER in parsed):
        raise _conflict(
            f"{table.DELETE_FIELD} and {table.DELETE_MARKER} must be given together", "give both or none."
        )
    payload = str(parsed.get(table.PAYLOAD, ""))
    if payload and parsed.get(table.MERGE):
        raise _conflict(
            f"{given.given_as[table.PAYLOAD]} is {payload}, and {table.MERGE} says another merge",
            "give one of them.",
        )
    if table.DELETE_FIELD in parsed and parsed.get(table.MERGE):
        raise _conflict(
            f"{table.DELETE_FIELD} has no meaning to {table.MERGE}",
            "let the function mark deletes, or use _hoodie_is_deleted.",
        )
    rule = PAYLOADS.get(payload.rpartition(".")[2])
    if table.DELETE_FIELD in parsed and rule is not None and not rule.delete_fields:
        raise _conflict(
            f"{table.DELETE_FIELD} needs DefaultHoodieRecordPayload, but {given.given_as[table.PAYLOAD]} is {payload}",
            f"set {table.PAYLOAD}=org.apache.hudi.common.model.DefaultHoodieRecordPayload.",
        )
    ordering, fields = parsed.get(table.PAYLOAD_ORDERING), parsed.get(table.PRECOMBINE)
    if ordering and isinstance(fields, tuple) and fields and ordering != fields[0]:
        raise _conflict(
            f"{table.PAYLOAD_ORDERING} is {ordering}, but {given.given_as[table.PRECOMBINE]} is {fields[0]}",
            f"omit {table.PAYLOAD_ORDERING}; it follows the other option.",
        )
    if operation == "bulk_insert" and parsed.get(write.DROP_DUPLICATES):
        raise _conflict(
            f"{write.DROP_DUPLICATES} is true, but a bulk_insert looks up no keys",
            f"set {write.OPERATION}=insert, or leave it out.",
        )
    if parsed.get(write.DROP_DUPLICATES) and parsed.get(write.DUP_POLICY) == "fail":
        raise _conflict(
            f"{write.DROP_DUPLICATES} is true, but {write.DUP_POLICY} is fail", "give one of them."
        )
    if _function(given) and parsed.get(write.SORT_COLUMNS):
        raise _conflict(
            f"{write.PARTITIONER} names a function, and {write.SORT_COLUMNS} is given", "give one of them."
        )
    if parsed.get(write.PARTITIONER) and not _function(given) and not parsed.get(write.SORT_COLUMNS):
        raise _conflict(
            f"{write.PARTITIONER} is given without {write.SORT_COLUMNS}", "name the columns to sort by."
        )
    kind, class_name = parsed.get(table.KEYGEN_TYPE), parsed.get(table.KEYGEN_CLASS)
    if kind and class_name and kind_of(str(class_name)) != kind:
        raise _conflict(
            f"{given.given_as[table.KEYGEN_TYPE]} is {kind}, {given.given_as[table.KEYGEN_CLASS]} is {class_name}",
            "give one of them.",
        )
    if parsed.get(table.RECORD_KEY) == ():
        raise InvalidOptionError(
            "the record key field is given, but empty",
            remedy="name the column(s) that identify a record.",
            option=table.RECORD_KEY,
        )


def _refuse_for_prepped(given: ParsedOptions, operation: str) -> None:
    """Refuse deduplicating options of a prepped operation."""
    combine = {"upsert": write.COMBINE_BEFORE_UPSERT, "delete": write.COMBINE_BEFORE_DELETE}.get(
        operation, write.COMBINE_BEFORE_INSERT
    )
    for key, asks in (
        (combine, (True,)),
        (write.DROP_DUPLICATES, (True,)),
        (write.DUP_POLICY, ("drop", "fail")),
    ):
        if given.parsed.get(key) in asks:
            raise _conflict(
                f"{given.given_as[key]}={given.text[key]} does not go with {operation}{write.PREPPED}, which "
                "takes each row as it is",
                f"leave it out, or set {write.OPERATION}={operation}.",
            )


def _function(given: ParsedOptions) -> str | None:
    """The partitioner if it is a Python function, as `module:function`."""
    name = str(given.parsed.get(write.PARTITIONER) or "")
    return name if ":" in name else None


def _conflict(text: str, remedy: str) -> ConflictingOptionError:
    return ConflictingOptionError(text, remedy=remedy)
