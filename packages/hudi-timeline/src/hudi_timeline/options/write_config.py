"""Write options, parsed once; inside, only `WriteConfig` travels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnsupportedError
from hudi_format.keygen.key_generator import kind_of
from hudi_format.merge.payloads import PAYLOADS
from hudi_timeline.options.implemented import (
    CODEC,
    DELETE_FIELD,
    DELETE_MARKER,
    DROP_DUPLICATES,
    DUP_POLICY,
    INDEX_CLASS,
    INDEX_TYPE,
    KEYGEN_CLASS,
    KEYGEN_TYPE,
    MERGE,
    OPERATION,
    OTHER_THAN_BEFORE,
    PARALLELISM,
    PARTITIONER,
    PARTITIONS_TO_DELETE,
    PAYLOAD,
    PAYLOAD_ORDERING,
    PRECOMBINE,
    RECORD_KEY,
    SAME_BEFORE_AND_AFTER,
    SINGLE_VALUE,
    SORT_COLUMNS,
    SOURCE_SCHEMA_FILE,
    STATIC_PARTITIONS,
    STORAGE_LEVEL,
    TARGET_SCHEMA_FILE,
    VALIDATORS,
    WRITE_FIELDS,
    WRITE_SCHEMA,
    ZSTD_LEVEL,
)
from hudi_timeline.options.option import INDEX_CLASSES, PREPPED
from hudi_timeline.options.registry import ParsedOptions, canonical
from hudi_timeline.options.service_config import (
    CallbackConfig,
    ServiceConfig,
    callback_config,
    service_config,
)
from hudi_timeline.options.unsupported import (
    SQL_VALIDATORS,
    VALIDATOR_PACKAGE,
    WRITE,
    refuse_effects,
    say_tuning,
)


@dataclass(frozen=True)
class WriteConfig:
    """What a write was asked for; plain values, so that it crosses to executors.

    None means "not given": the table, or Apache Hudi's default, decides.  Sizes in bytes, times in
    milliseconds, unless the name says otherwise.

    Attributes:
        partition_fields: `()` where the option was given empty: not partitioned, on purpose.
        ordering_field: None with `ordering_given` where the option was given empty: no ordering, on purpose.
        keygen_class, payload_class, lock_provider: full names of Java classes.
        codec_level: of zstd only.
        small_file_limit_bytes: base files below it take new records; 0 or less: none does.
        index_switch: an index within partitions may follow a global one.
        record_size_threshold: share of the small-file limit that a commit must have written to count.
        drop_duplicates, duplicate_policy: what insert does with rows whose key is in the table: it leaves them out
            (drop), fails (fail), or takes them (none).
        insert_split_size: records of a new file group, unless `auto_split` computes it.
        lock_expire_minutes: age at which a lock file counts as left over; 0: never.
        delete_field, delete_marker: a row whose `delete_field` has the text `delete_marker` is a delete.
        validators: SQL validators by the last part of their class, and Python functions as module:name.
        equality_queries, inequality_queries, single_value_queries: as given, `;` between them.
        rules: conditions of rows to write, as given.
        quarantine_path: None: bad rows fail the write.
        memory_max: bytes for the rows of a write; None where none were given: they stay in memory.
        null_texts: refuse or as_hudi, for values of partition columns that would be read back as null.
        types: table or data, whose types of a column count; None leaves it to the engine.
        write_schema: Avro JSON that the rows are brought to; source_schema_file, target_schema_file: files with such.
        merge: a merge of the user's; see `hudi_format.merge.user_merger`.
        shuffle_parallelism: of the operation; None leaves it to the engine.
        extra_metadata: goes into the commit's extraMetadata.
        raw: what was given, under the main names, class names with their package.
    """

    table_name: str | None = None
    database: str | None = None
    table_type: str | None = None
    operation: str = "upsert"
    operation_given: bool = False
    record_key_fields: tuple[str, ...] | None = None
    partition_fields: tuple[str, ...] | None = None
    ordering_field: str | None = None
    ordering_given: bool = False
    prepped: bool = False
    partitioner: str | None = None
    keygen_class: str | None = None
    keygen_type: str | None = None
    hive_style: bool | None = None
    url_encode: bool | None = None
    drop_partition_columns: bool = False
    populate_meta_fields: bool = True
    payload_class: str | None = None
    index_type: str | None = None
    index_switch: bool = False
    bloom_prune_by_ranges: bool = True
    bloom_update_partition: bool = True
    simple_update_partition: bool = True
    combine_before_insert: bool = False
    combine_before_upsert: bool = True
    combine_before_delete: bool = True
    allow_duplicate_on_inserts: bool = True
    codec: str = "zstd"
    codec_level: int | None = None
    parquet_block_bytes: int = 125829120
    parquet_page_bytes: int = 1048576
    parquet_max_file_bytes: int = 125829120
    dictionary: bool = True
    small_file_limit_bytes: int = 104857600
    record_size_estimate: int = 1024
    record_size_threshold: float = 1.0
    insert_split_size: int = 500000
    auto_split: bool = True
    bloom_enabled: bool = True
    bloom_type: str = "DYNAMIC_V0"
    bloom_entries: int = 60000
    bloom_fpp: float = 0.000000001
    bloom_max_entries: int = 100000
    heartbeat_interval_ms: int = 60000
    heartbeat_misses: int = 2
    failed_writes_policy: str = "EAGER"
    lock_provider: str | None = None
    lock_path: str | None = None
    lock_expire_minutes: int = 0
    lock_wait_ms: int = 60000
    consistency_check: bool = False
    consistency_first_ms: int = 2000
    consistency_most_ms: int = 300000
    consistency_checks: int = 7
    metadata_enable: bool | None = None
    partitions_to_delete: tuple[str, ...] = ()
    static_overwrite_partitions: tuple[str, ...] = ()
    overwrite_mode: str | None = None
    allow_empty_commit: bool = True
    set_null_for_missing_columns: bool = False
    allow_column_drop: bool = False
    reconcile_schema: bool = False
    validate_schema: bool = False
    types: str | None = None
    null_texts: str = "refuse"
    write_schema: str | None = None
    source_schema_file: str | None = None
    target_schema_file: str | None = None
    event_time_field: str = "ts"
    delete_field: str | None = None
    delete_marker: str | None = None
    table_timezone: str | None = None
    storage_level: str = "MEMORY_AND_DISK"
    shuffle_parallelism: int | None = None
    bulk_insert_sort_mode: str = "NONE"
    bulk_insert_sort_columns: tuple[str, ...] = ()
    drop_duplicates: bool = False
    duplicate_policy: str = "none"
    validators: tuple[str, ...] = ()
    equality_queries: str = ""
    inequality_queries: str = ""
    single_value_queries: str = ""
    rules: str = ""
    quarantine_path: str | None = None
    quarantine_max_rows: int | None = None
    progress: str = "auto"
    durability: str = "flush"
    merge: str | None = None
    memory_max: int | None = None
    spill_path: str = ""
    spill_compress: bool = True
    callback: CallbackConfig | None = None
    services: ServiceConfig = field(default_factory=ServiceConfig)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, str] = field(default_factory=dict)


def parse_write_options(options: Mapping[str, str]) -> WriteConfig:
    """The options of a write, typed.

    Raises:
        UnknownOptionError: a name that no release of Apache Hudi knows; the remedy is the nearest one.
        InvalidOptionError: a value that its option does not take.
        ConflictingOptionError: two options that contradict each other.
        UnsupportedError: an option that asks for something not provided yet.
    """
    given = canonical(options)
    refuse_effects(given, WRITE)
    values: dict[str, Any] = {
        name: given.parsed[key] for name, key in WRITE_FIELDS.items() if key in given.parsed
    }
    operation = str(values.get("operation", "upsert"))
    prepped = operation.endswith(PREPPED)
    if prepped:
        values["operation"] = operation = operation.removesuffix(PREPPED)
        _refuse_for_prepped(given, operation)
    _refuse_contradictions(given, operation)
    if values.get("drop_duplicates"):
        values["duplicate_policy"] = "drop"
        if operation == "upsert":  # as Apache Hudi: what is left when known keys are dropped are inserts
            values["operation"] = operation = "insert"
    values["validators"] = _validators(given)
    say_tuning(given)
    codec = str(given.parsed.get(CODEC, "zstd"))
    if codec in ("", "none"):
        codec = "uncompressed"
    if codec == "zstd":
        values["codec_level"] = given.parsed.get(ZSTD_LEVEL)
    values["index_type"] = _index(given)
    # An empty text is "none" for what may be missing.
    for name in (
        "database",
        "lock_path",
        "merge",
        "write_schema",
        "source_schema_file",
        "target_schema_file",
    ):
        if not values.get(name):
            values.pop(name, None)
    tasks = given.parsed.get(PARALLELISM.get(operation, PARALLELISM["insert"]))
    level = str(given.parsed.get(STORAGE_LEVEL, "MEMORY_AND_DISK_SER"))
    return WriteConfig(
        **values,
        prepped=prepped,
        partitioner=_function(given),
        operation_given=OPERATION in given.parsed,
        ordering_field=_ordering(given),
        ordering_given=PRECOMBINE in given.parsed or bool(given.parsed.get(PAYLOAD_ORDERING)),
        codec=codec,
        # Rows of a DataFrame are kept in one form; the levels with and without SER are the same there.
        storage_level=level.replace("_SER", ""),
        shuffle_parallelism=tasks if isinstance(tasks, int) and tasks > 0 else None,
        callback=callback_config(given),
        services=service_config(given),
        extra_metadata=given.extra,
        raw=given.text,
    )


_QUERIES = dict(zip(SQL_VALIDATORS, (SAME_BEFORE_AND_AFTER, OTHER_THAN_BEFORE, SINGLE_VALUE), strict=True))


def _validators(given: ParsedOptions) -> tuple[str, ...]:
    """The validators, each SQL validator with its queries and the other way round.

    Raises:
        ConflictingOptionError: one without the other, which would check nothing.
    """
    parsed = given.parsed.get(VALIDATORS)
    names = tuple(n.removeprefix(VALIDATOR_PACKAGE) for n in parsed) if isinstance(parsed, tuple) else ()
    for name, key in _QUERIES.items():
        queries = bool(str(given.parsed.get(key) or "").strip())
        if name in names and not queries:
            raise _conflict(
                f"{VALIDATORS} names {name}, but {key} is not given", f"give its queries in {key}."
            )
        if queries and name not in names:
            raise _conflict(f"{key} is given, but {VALIDATORS} does not name {name}", f"add {name} to it.")
    return names


def _ordering(given: ParsedOptions) -> str | None:
    fields = given.parsed.get(PRECOMBINE)
    if PRECOMBINE not in given.parsed:
        return str(given.parsed.get(PAYLOAD_ORDERING) or "") or None
    if not isinstance(fields, tuple) or not fields:
        return None
    if len(fields) > 1:
        raise UnsupportedError(
            f"several ordering fields ({', '.join(fields)}) need table version 9",
            remedy=f"name the one field that decides in {PRECOMBINE}.",
            option=given.given_as[PRECOMBINE],
        )
    return str(fields[0])


def _index(given: ParsedOptions) -> str | None:
    """The index, by its type or by its class."""
    kind, class_name = given.parsed.get(INDEX_TYPE), given.parsed.get(INDEX_CLASS)
    if not class_name:
        return str(kind) if kind else None
    named = INDEX_CLASSES[str(class_name)]
    if kind and kind != named:
        raise _conflict(
            f"{given.given_as[INDEX_TYPE]} is {kind}, {given.given_as[INDEX_CLASS]} is {class_name}",
            "give one of them.",
        )
    return named


def _refuse_contradictions(given: ParsedOptions, operation: str) -> None:
    """Options of one map that cannot both be meant.

    Raises:
        ConflictingOptionError, InvalidOptionError.
    """
    parsed = given.parsed
    if parsed.get(PARTITIONS_TO_DELETE) and operation != "delete_partition":
        raise _conflict(
            f"{PARTITIONS_TO_DELETE} is given, but the operation is {operation}",
            f"set {OPERATION}=delete_partition, or leave the partitions out.",
        )
    for file in (SOURCE_SCHEMA_FILE, TARGET_SCHEMA_FILE):
        if parsed.get(WRITE_SCHEMA) and parsed.get(file):
            raise _conflict(f"{WRITE_SCHEMA} and {given.given_as[file]} are given", "give one of them.")
    if parsed.get(STATIC_PARTITIONS) and operation != "insert_overwrite":
        raise _conflict(
            f"{STATIC_PARTITIONS} is given, but the operation is {operation}",
            f"set {OPERATION}=insert_overwrite, or leave the partitions out.",
        )
    if (DELETE_FIELD in parsed) != (DELETE_MARKER in parsed):
        raise _conflict(f"{DELETE_FIELD} and {DELETE_MARKER} go together", "give both or none.")
    payload = str(parsed.get(PAYLOAD, ""))
    if payload and parsed.get(MERGE):
        raise _conflict(
            f"{given.given_as[PAYLOAD]} is {payload}, and {MERGE} says another merge", "give one of them."
        )
    if DELETE_FIELD in parsed and parsed.get(MERGE):
        raise _conflict(
            f"{DELETE_FIELD} has no meaning to {MERGE}",
            "let the function mark deletes, or use _hoodie_is_deleted.",
        )
    rule = PAYLOADS.get(payload.rpartition(".")[2])
    if DELETE_FIELD in parsed and rule is not None and not rule.delete_fields:
        raise _conflict(
            f"{DELETE_FIELD} needs DefaultHoodieRecordPayload, but {given.given_as[PAYLOAD]} is {payload}",
            f"set {PAYLOAD}=org.apache.hudi.common.model.DefaultHoodieRecordPayload.",
        )
    ordering, fields = parsed.get(PAYLOAD_ORDERING), parsed.get(PRECOMBINE)
    if ordering and isinstance(fields, tuple) and fields and ordering != fields[0]:
        raise _conflict(
            f"{PAYLOAD_ORDERING} is {ordering}, but {given.given_as[PRECOMBINE]} is {fields[0]}",
            f"leave {PAYLOAD_ORDERING} out; it follows the other.",
        )
    if operation == "bulk_insert" and parsed.get(DROP_DUPLICATES):
        raise _conflict(
            f"{DROP_DUPLICATES} is true, but a bulk_insert looks up no keys",
            f"set {OPERATION}=insert, or leave it out.",
        )
    if parsed.get(DROP_DUPLICATES) and parsed.get(DUP_POLICY) == "fail":
        raise _conflict(f"{DROP_DUPLICATES} is true, but {DUP_POLICY} is fail", "give one of them.")
    if _function(given) and parsed.get(SORT_COLUMNS):
        raise _conflict(f"{PARTITIONER} names a function, and {SORT_COLUMNS} is given", "give one of them.")
    if parsed.get(PARTITIONER) and not _function(given) and not parsed.get(SORT_COLUMNS):
        raise _conflict(f"{PARTITIONER} is given without {SORT_COLUMNS}", "name the columns to sort by.")
    kind, class_name = parsed.get(KEYGEN_TYPE), parsed.get(KEYGEN_CLASS)
    if kind and class_name and kind_of(str(class_name)) != kind:
        raise _conflict(
            f"{given.given_as[KEYGEN_TYPE]} is {kind}, {given.given_as[KEYGEN_CLASS]} is {class_name}",
            "give one of them.",
        )
    if parsed.get(RECORD_KEY) == ():
        raise InvalidOptionError(
            "the record key field is given, but empty",
            remedy="name the column(s) that identify a record.",
            option=RECORD_KEY,
        )


def _refuse_for_prepped(given: ParsedOptions, operation: str) -> None:
    """Options that look for equal keys, which a prepped operation does not."""
    names = {"upsert": "upsert", "delete": "delete"}.get(operation, "insert")
    combine = f"hoodie.combine.before.{names}"
    for key, asks in ((combine, True), (DROP_DUPLICATES, True), (DUP_POLICY, "drop"), (DUP_POLICY, "fail")):
        if given.parsed.get(key) == asks:
            raise _conflict(
                f"{given.given_as[key]}={given.text[key]} does not go with {operation}{PREPPED}, which "
                "takes each row as it is",
                f"leave it out, or set {OPERATION}={operation}.",
            )


def _function(given: ParsedOptions) -> str | None:
    """The partitioner where it is a Python function, as `module:function`."""
    name = str(given.parsed.get(PARTITIONER) or "")
    return name if ":" in name else None


def _conflict(text: str, remedy: str) -> ConflictingOptionError:
    return ConflictingOptionError(text, remedy=remedy)
