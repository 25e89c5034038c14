"""What a writer's options mean: one frozen value, parsed once at the door.

Inside, only `WriteConfig` travels; it is made of plain values, so it crosses to Spark's executors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class WriteConfig:
    """Parsed options of one write.

    `None` says that an option was not given, so that the table's own value, or what follows from other
    options, decides.  Sizes are bytes, intervals milliseconds, unless the name says otherwise.

    Attributes:
        operation: upsert, insert, bulk_insert, delete, insert_overwrite, insert_overwrite_table or
            delete_partition; `operation_given` says whether the user named it.
        partition_fields: `()` where the option was given empty: not partitioned on purpose.
        ordering_field: None with `ordering_given` where the option was given empty: no ordering on purpose.
        keygen_class, payload_class: full Java class names.
        codec: gzip, snappy, zstd, lz4, lz4_raw, brotli or uncompressed.
        codec_level: of the codec; None is the codec's own default.
        small_file_limit_bytes: base files below it take new inserts; 0 or less: none does.
        record_size_estimate: of a row, before any commit tells.
        record_size_threshold: share of the small-file limit from which a commit is taken for the estimate.
        insert_split_size: rows of a new file group, unless `auto_split` computes it.
        lock_provider: full Java class name of the in-process or the file-system lock.
        lock_expire_minutes: age at which a lock file counts as left over; 0: never.
        metadata_enable: None if not given.
        delete_field, delete_marker: a row whose `delete_field` has the text `delete_marker` is a delete.
        extra_metadata: goes into the commit's extraMetadata.
        storage_level: of the input kept while it is written, Spark's name.
        raw: what was given, untouched; `canonical` the same under each option's main name.
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
    index_type: str | None = None
    combine_before_insert: bool = False
    combine_before_upsert: bool = True
    combine_before_delete: bool = True
    allow_duplicate_on_inserts: bool = True
    codec: str = "zstd"
    codec_level: int | None = None
    parquet_block_bytes: int = 125829120
    parquet_page_bytes: int = 1048576
    parquet_max_file_bytes: int = 125829120
    small_file_limit_bytes: int = 104857600
    dictionary: bool = True
    record_size_estimate: int = 1024
    record_size_threshold: float = 1.0
    insert_split_size: int = 500000
    auto_split: bool = True
    bloom_enabled: bool = True
    bloom_type: str = "DYNAMIC_V0"
    bloom_entries: int = 60000
    bloom_fpp: float = 1e-9
    bloom_max_entries: int = 100000
    heartbeat_interval_ms: int = 60000
    heartbeat_misses: int = 2
    failed_writes_policy: str = "EAGER"
    lock_provider: str | None = None
    lock_path: str | None = None
    lock_expire_minutes: int = 0
    lock_wait_ms: int = 60000
    lock_retries: int = 50
    lock_retry_wait_ms: int = 5000
    metadata_enable: bool | None = None
    partitions_to_delete: tuple[str, ...] = ()
    static_overwrite_partitions: tuple[str, ...] = ()
    overwrite_mode: str | None = None
    allow_empty_commit: bool = True
    set_null_for_missing_columns: bool = False
    allow_column_drop: bool = False
    reconcile_schema: bool = False
    delete_field: str | None = None
    delete_marker: str | None = None
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    storage_level: str = "MEMORY_AND_DISK_SER"
    insert_parallelism: int | None = None
    upsert_parallelism: int | None = None
    bulk_insert_parallelism: int | None = None
    delete_parallelism: int | None = None
    bulk_insert_sort_mode: str = "NONE"
    merge_data_validation: bool = False
    table_timezone: str | None = None
    raw: Mapping[str, str] = field(default_factory=dict)
    canonical: Mapping[str, str] = field(default_factory=dict)
