"""Write options, parsed once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_format.config import values
from hudi_format.config.effects import refuse_effects
from hudi_format.config.registry import canonical, names_of
from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnsupportedError

log = logging.getLogger("hudi")

OPERATIONS = (
    "upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table", "delete_partition",
)  # fmt: skip
LATER_OPERATIONS = ("bootstrap", "insert_prepped", "upsert_prepped", "bulk_insert_prepped", "delete_prepped")
ZSTD_LEVEL = "parquet.compression.codec.zstd.level"


@dataclass(frozen=True)
class WriteConfig:
    """What a write was asked for.  None means "not given": the table, or Apache Hudi's default, decides.

    Sizes in bytes, times in milliseconds.  `raw` holds what was given, under the main names.
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
    keygen_class: str | None = None
    keygen_type: str | None = None
    hive_style: bool | None = None
    url_encode: bool | None = None
    payload_class: str | None = None
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
    metadata_enable: bool | None = None
    partitions_to_delete: tuple[str, ...] = ()
    static_overwrite_partitions: tuple[str, ...] = ()
    allow_empty_commit: bool = True
    set_null_for_missing_columns: bool = False
    allow_column_drop: bool = False
    reconcile_schema: bool = False
    delete_field: str | None = None
    delete_marker: str | None = None
    table_timezone: str | None = None
    storage_level: str = "MEMORY_AND_DISK"
    shuffle_parallelism: int | None = None
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, str] = field(default_factory=dict)


def parse_write_options(options: Mapping[str, str]) -> WriteConfig:
    """The options of a write, typed.

    Raises:
        UnknownOptionError: a name that no release of Apache Hudi knows; the remedy is the nearest one.
        InvalidOptionError: a value that is not allowed.
        ConflictingOptionError: two options that contradict each other.
        UnsupportedError: an option that asks for something not provided yet.
    """
    prefix = options.get("hoodie.datasource.write.commitmeta.key.prefix", "_")
    o, extra = canonical(options, prefix)
    operation = o.get("hoodie.datasource.write.operation", "upsert").strip().lower()
    if operation in LATER_OPERATIONS:
        raise UnsupportedError(
            f"operation {operation!r} is not provided yet", remedy=f"use one of {', '.join(OPERATIONS)}."
        )
    if operation not in OPERATIONS:
        raise InvalidOptionError(
            f"unknown operation {operation!r}", remedy=f"use one of {', '.join(OPERATIONS)}.",
            option="hoodie.datasource.write.operation",
        )  # fmt: skip
    refuse_effects(o)
    _say_tuning(o)
    policy = values.choice(o, "hoodie.cleaner.policy.failed.writes", "EAGER", ("EAGER", "LAZY", "NEVER"))
    overwrite = o.get("hoodie.datasource.overwrite.mode", "").upper()
    if overwrite not in ("", "STATIC", "DYNAMIC"):
        raise InvalidOptionError(f"hoodie.datasource.overwrite.mode={overwrite} is not STATIC or DYNAMIC")
    if operation == "insert_overwrite" and overwrite == "STATIC":
        operation = "insert_overwrite_table"
    delete_field, delete_marker = o.get("hoodie.payload.delete.field"), o.get("hoodie.payload.delete.marker")
    if (delete_field is None) != (delete_marker is None):
        raise ConflictingOptionError(
            "hoodie.payload.delete.field and hoodie.payload.delete.marker go together", remedy="give both or none."
        )
    ordering = o.get("hoodie.datasource.write.precombine.field", o.get("hoodie.table.precombine.field"))
    ordering = ordering.strip() if ordering else None
    if ordering and "," in ordering:
        raise UnsupportedError(
            f"several ordering fields ({ordering}) need table version 9",
            remedy="name the one field that decides in hoodie.datasource.write.precombine.field.",
        )
    v = values
    return WriteConfig(
        table_name=o.get("hoodie.table.name"),
        database=o.get("hoodie.database.name"),
        table_type=o.get("hoodie.datasource.write.table.type", o.get("hoodie.table.type")),
        operation=operation,
        operation_given="hoodie.datasource.write.operation" in o,
        record_key_fields=_either(
            o, "hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields"
        ),
        partition_fields=_either(
            o, "hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields"
        ),
        ordering_field=ordering,
        ordering_given=ordering is not None,
        keygen_class=o.get("hoodie.datasource.write.keygenerator.class", o.get("hoodie.table.keygenerator.class")),
        keygen_type=o.get("hoodie.datasource.write.keygenerator.type"),
        hive_style=v.optional_boolean(o, "hoodie.datasource.write.hive_style_partitioning"),
        url_encode=v.optional_boolean(o, "hoodie.datasource.write.partitionpath.urlencode"),
        payload_class=_payload(
            o.get("hoodie.datasource.write.payload.class", o.get("hoodie.compaction.payload.class"))
        ),
        combine_before_insert=v.boolean(o, "hoodie.combine.before.insert", False),
        combine_before_upsert=v.boolean(o, "hoodie.combine.before.upsert", True),
        combine_before_delete=v.boolean(o, "hoodie.combine.before.delete", True),
        allow_duplicate_on_inserts=v.boolean(o, "hoodie.merge.allow.duplicate.on.inserts", True),
        codec=o.get("hoodie.parquet.compression.codec", "zstd").strip().lower(),
        codec_level=v.optional_integer(o, ZSTD_LEVEL),
        parquet_block_bytes=v.integer(o, "hoodie.parquet.block.size", 125829120, least=1024, unit="bytes"),
        parquet_page_bytes=v.integer(o, "hoodie.parquet.page.size", 1048576, least=1024, unit="bytes"),
        parquet_max_file_bytes=v.integer(o, "hoodie.parquet.max.file.size", 125829120, least=1024, unit="bytes"),
        dictionary=v.boolean(o, "hoodie.parquet.dictionary.enabled", True),
        small_file_limit_bytes=v.integer(o, "hoodie.parquet.small.file.limit", 104857600, unit="bytes"),
        record_size_estimate=v.integer(o, "hoodie.copyonwrite.record.size.estimate", 1024, least=1, unit="bytes"),
        record_size_threshold=v.decimal(
            o, "hoodie.record.size.estimation.threshold", 1.0, above=-1e-9, below=1e9
        ),
        insert_split_size=v.integer(o, "hoodie.copyonwrite.insert.split.size", 500000, least=1, unit="records"),
        auto_split=v.boolean(o, "hoodie.copyonwrite.insert.auto.split", True),
        bloom_enabled=v.boolean(o, "hoodie.parquet.bloom.filter.enabled", True),
        bloom_type=v.choice(o, "hoodie.bloom.index.filter.type", "DYNAMIC_V0", ("SIMPLE", "DYNAMIC_V0")),
        bloom_entries=v.integer(o, "hoodie.index.bloom.num_entries", 60000, least=1, unit="entries"),
        bloom_fpp=v.decimal(o, "hoodie.index.bloom.fpp", 0.000000001, above=0.0, below=1.0),
        bloom_max_entries=v.integer(o, "hoodie.bloom.index.filter.dynamic.max.entries", 100000, least=1),
        metadata_enable=v.optional_boolean(o, "hoodie.metadata.enable"),
        partitions_to_delete=v.names(o, "hoodie.datasource.write.partitions.to.delete") or (),
        static_overwrite_partitions=v.names(o, "hoodie.static.overwrite.partition.paths") or (),
        allow_empty_commit=v.boolean(o, "hoodie.allow.empty.commit", True),
        set_null_for_missing_columns=v.boolean(o, "hoodie.write.set.null.for.missing.columns", False),
        allow_column_drop=v.boolean(
            o, "hoodie.datasource.write.schema.allow.auto.evolution.column.drop", False
        ),
        reconcile_schema=v.boolean(o, "hoodie.datasource.write.reconcile.schema", False),
        delete_field=delete_field,
        delete_marker=delete_marker,
        table_timezone=(
            v.choice(o, "hoodie.table.timeline.timezone", "LOCAL", ("LOCAL", "UTC"))
            if "hoodie.table.timeline.timezone" in o
            else None
        ),
        storage_level=_storage_level(o.get("hoodie.write.tagged.record.storage.level", "MEMORY_AND_DISK_SER")),
        shuffle_parallelism=_parallelism(o, operation),
        extra_metadata=extra,
        raw={**o, "hoodie.cleaner.policy.failed.writes": policy} if policy != "EAGER" else o,
    )


def _either(o: Mapping[str, str], *keys: str) -> tuple[str, ...] | None:
    for key in keys:
        if key in o:
            return values.names(o, key)
    return None


def _payload(name: str | None) -> str | None:
    """A payload class with its package, which options may leave out."""
    if not name:
        return None
    return name if "." in name else f"org.apache.hudi.common.model.{name}"


def _storage_level(text: str) -> str:
    # Rows of a DataFrame are kept in one form; the levels with and without SER are the same there.
    name = text.strip().upper().removesuffix("_SER")
    allowed = ("MEMORY_AND_DISK", "MEMORY_ONLY", "DISK_ONLY", "MEMORY_AND_DISK_2", "DISK_ONLY_2", "OFF_HEAP")
    if name not in allowed:
        raise InvalidOptionError(
            f"hoodie.write.tagged.record.storage.level={text!r} is no storage level",
            remedy=f"use one of {', '.join(allowed)}.",
        )
    return name


def _parallelism(o: Mapping[str, str], operation: str) -> int | None:
    key = {"upsert": "hoodie.upsert.shuffle.parallelism", "delete": "hoodie.delete.shuffle.parallelism",
           "bulk_insert": "hoodie.bulkinsert.shuffle.parallelism"}.get(operation, "hoodie.insert.shuffle.parallelism")  # fmt: skip
    return values.optional_integer(o, key, least=0) or None


# Options that this version honours; all other known ones are tuning of the JVM or of services without effect.
HONOURED = frozenset(
    """
    hoodie.table.name hoodie.database.name hoodie.datasource.write.table.type hoodie.table.type
    hoodie.datasource.write.operation hoodie.datasource.write.recordkey.field hoodie.table.recordkey.fields
    hoodie.datasource.write.partitionpath.field hoodie.table.partition.fields
    hoodie.datasource.write.precombine.field hoodie.table.precombine.field
    hoodie.datasource.write.keygenerator.class hoodie.datasource.write.keygenerator.type
    hoodie.table.keygenerator.class hoodie.datasource.write.hive_style_partitioning
    hoodie.datasource.write.partitionpath.urlencode hoodie.datasource.write.payload.class
    hoodie.compaction.payload.class hoodie.combine.before.insert hoodie.combine.before.upsert
    hoodie.combine.before.delete hoodie.merge.allow.duplicate.on.inserts hoodie.parquet.compression.codec
    hoodie.parquet.block.size hoodie.parquet.page.size hoodie.parquet.max.file.size
    hoodie.parquet.dictionary.enabled hoodie.parquet.small.file.limit hoodie.copyonwrite.record.size.estimate
    hoodie.record.size.estimation.threshold hoodie.copyonwrite.insert.split.size
    hoodie.copyonwrite.insert.auto.split hoodie.parquet.bloom.filter.enabled hoodie.bloom.index.filter.type
    hoodie.index.bloom.num_entries hoodie.index.bloom.fpp hoodie.bloom.index.filter.dynamic.max.entries
    hoodie.metadata.enable hoodie.datasource.write.partitions.to.delete hoodie.static.overwrite.partition.paths
    hoodie.allow.empty.commit hoodie.write.set.null.for.missing.columns
    hoodie.datasource.write.schema.allow.auto.evolution.column.drop hoodie.datasource.write.reconcile.schema
    hoodie.payload.delete.field hoodie.payload.delete.marker hoodie.table.timeline.timezone
    hoodie.write.tagged.record.storage.level hoodie.upsert.shuffle.parallelism hoodie.insert.shuffle.parallelism
    hoodie.delete.shuffle.parallelism hoodie.bulkinsert.shuffle.parallelism
    hoodie.client.heartbeat.interval_in_ms hoodie.client.heartbeat.tolerable.misses
    hoodie.cleaner.policy.failed.writes hoodie.write.lock.provider hoodie.write.lock.filesystem.path
    hoodie.write.lock.filesystem.expire hoodie.write.lock.wait_time_ms hoodie.datasource.overwrite.mode
    hoodie.datasource.write.commitmeta.key.prefix hoodie.index.type parquet.compression.codec.zstd.level
    """.split()
)
_said: set[str] = set()
_said_lock = threading.Lock()


def _say_tuning(o: Mapping[str, str]) -> None:
    """List options that are accepted without effect, each once per process."""
    with _said_lock:
        fresh = {k for k in o if k not in HONOURED and k.startswith(("hoodie.", "_hoodie."))} - _said
        _said.update(fresh)
        metadata = o.get("hoodie.metadata.enable", "").lower() == "true" and "hoodie.metadata.enable" not in _said
        if metadata:
            _said.add("hoodie.metadata.enable")
    if fresh:
        log.info("options accepted without effect here: %s", names_of(fresh))
    if metadata:
        log.warning("hoodie.metadata.enable=true: files are listed instead; no metadata table is kept up to date yet")
