"""Read options, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_format.errors import ConflictingOptionError
from hudi_timeline.options import table_options as table
from hudi_timeline.options.config_key import READ, given_value, keys_of, value_of
from hudi_timeline.options.read_options import (
    AS_OF,
    BEGIN,
    COLUMNS,
    DATA_SKIPPING,
    END,
    EXTRACT_PARTITION_VALUES_FROM_PATH,
    FILTER,
    FULL_SCAN_FALLBACK,
    HOLLOW_POLICY,
    INCR_FILTERS,
    INCREMENTAL_FORMAT,
    MERGE_TYPE,
    ON_MISSING,
    ORDER,
    PATH_GLOB,
    PATHS,
    POLL_SECONDS,
    QUERY_TYPE,
    START_OFFSET,
    START_OFFSET_ORDER,
    STREAM_FOLDER,
    USE_END_SCHEMA,
)
from hudi_timeline.options.registry import canonical
from hudi_timeline.options.transaction_options import METADATA_ENABLE
from hudi_timeline.options.unsupported import refuse_effects, say_tuning

__all__ = [
    "AS_OF",
    "BEGIN",
    "COLUMNS",
    "END",
    "FILTER",
    "FULL_SCAN_FALLBACK",
    "HOLLOW_POLICY",
    "INCREMENTAL",
    "INCREMENTAL_FORMAT",
    "INCR_FILTERS",
    "ON_MISSING",
    "ORDER",
    "PATHS",
    "PATH_GLOB",
    "QUERY_TYPE",
    "READ_OPTIMIZED",
    "SNAPSHOT",
    "USE_END_SCHEMA",
    "ReadConfig",
    "parse_read_options",
    "refuse_whole",
]

STABLE, START_ORDER, COMPLETION = "stable", "start", "completion"
FAIL, BLOCK, TRANSITION = "FAIL", "BLOCK", "USE_TRANSITION_TIME"
ERROR, FULL_SCAN, SKIP = "error", "full_scan", "skip"
CDC = "cdc"
SNAPSHOT, READ_OPTIMIZED, INCREMENTAL = "snapshot", "read_optimized", "incremental"


@dataclass(frozen=True)
class ReadConfig:
    """Options of a read.

    Each field but `raw` is the value of its option; what it means stands there.  None means "not given".

    Attributes:
        as_of: as the user wrote it; the table's time zone decides what it means.
        begin, end: bounds of an incremental read, (begin, end].
        on_missing: None leaves it to the begin.
        order: None leaves it to `hollow_policy`.
        fallback_full_scan: an incremental read whose instants or files are gone reads the whole table and
            keeps the rows of the range.
        raw: what was given, under the main names.
    """

    query_type: str = value_of(QUERY_TYPE)
    incremental_format: str = value_of(INCREMENTAL_FORMAT)
    start_offset: str = value_of(START_OFFSET)
    start_offset_order: str | None = given_value(START_OFFSET_ORDER)
    poll_seconds: float | None = given_value(POLL_SECONDS)
    stream_folder: str | None = given_value(STREAM_FOLDER)
    as_of: str | None = given_value(AS_OF)
    begin: str | None = given_value(BEGIN)
    end: str | None = given_value(END)
    paths: tuple[str, ...] = value_of(PATHS, otherwise=())
    incr_path_glob: str = value_of(PATH_GLOB, otherwise="")
    incr_filters: str = value_of(INCR_FILTERS, otherwise="")
    on_missing: str | None = given_value(ON_MISSING)
    order: str | None = given_value(ORDER)
    columns: tuple[str, ...] | None = given_value(COLUMNS)
    filter: str | None = given_value(FILTER)
    fallback_full_scan: bool | None = given_value(FULL_SCAN_FALLBACK)
    hollow_policy: str = value_of(HOLLOW_POLICY)
    use_end_schema: bool = value_of(USE_END_SCHEMA)
    extract_partition_values_from_path: bool = value_of(EXTRACT_PARTITION_VALUES_FROM_PATH)
    metadata_enable: bool | None = given_value(METADATA_ENABLE)
    data_skipping: bool | None = given_value(DATA_SKIPPING)
    schema_on_read: bool | None = given_value(table.SCHEMA_ON_READ)
    merge: str | None = given_value(table.MERGE)
    merge_type: str = value_of(MERGE_TYPE)
    memory_max: int | None = given_value(table.MEMORY_MAX)
    spill_path: str = value_of(table.SPILL_PATH, otherwise="")
    spill_compress: bool = value_of(table.SPILL_COMPRESS)
    raw: Mapping[str, str] = field(default_factory=dict)


READ_FIELDS = keys_of(ReadConfig)


def parse_read_options(options: Mapping[str, str]) -> ReadConfig:
    """Typed options of a read; write options are checked, but ignored.

    Raises:
        UnknownOptionError, InvalidOptionError, ConflictingOptionError, UnsupportedError: as for writes.
    """
    given = canonical(options)
    refuse_effects(given, READ)
    values: dict[str, Any] = {
        name: given.parsed[key] for name, key in READ_FIELDS.items() if key in given.parsed
    }
    values = {name: value for name, value in values.items() if value not in ("", ())}
    query = values.get("query_type", SNAPSHOT)
    bound = BEGIN if "begin" in values else END if "end" in values else ""
    if query == INCREMENTAL and "begin" not in values:
        raise ConflictingOptionError(
            "an incremental query needs a begin",
            remedy=f"set {BEGIN}; 000 reads from the beginning.",
            option=BEGIN,
        )
    if query == INCREMENTAL and "as_of" in values:
        raise ConflictingOptionError(
            f"{AS_OF} and an incremental query exclude each other",
            remedy=f"use {END} as the upper bound.",
            option=AS_OF,
        )
    if query == INCREMENTAL and "paths" in values:
        raise ConflictingOptionError(
            f"{PATHS} chooses the files of a snapshot, and the query is incremental",
            remedy=f"use {PATH_GLOB}.",
            option=PATHS,
        )
    if query != INCREMENTAL and bound:
        raise ConflictingOptionError(
            f"{bound} is given but the query is {query}",
            remedy=f"set {QUERY_TYPE}=incremental.",
            option=bound,
        )
    if values.get("fallback_full_scan") and values.get("on_missing") not in (None, FULL_SCAN):
        raise ConflictingOptionError(
            f"{FULL_SCAN_FALLBACK}=true contradicts {ON_MISSING}={values['on_missing']}",
            remedy="omit one of them.",
            option=ON_MISSING,
        )
    order, policy = values.get("order"), values.get("hollow_policy")
    meant = {STABLE: (BLOCK,), START_ORDER: (), COMPLETION: (TRANSITION,)}.get(str(order), (policy,))
    if order is not None and policy is not None and policy not in meant:
        raise ConflictingOptionError(
            f"{ORDER}={order} contradicts {HOLLOW_POLICY}={policy}",
            remedy="omit one of them.",
            option=ORDER,
        )
    for name, key in (("incr_path_glob", PATH_GLOB), ("incr_filters", INCR_FILTERS)):
        if query != INCREMENTAL and name in values and QUERY_TYPE in given.parsed:
            raise ConflictingOptionError(
                f"{key} is given but the query is {query}",
                remedy=f"set {QUERY_TYPE}=incremental, or use {FILTER}.",
                option=key,
            )
    say_tuning(given)
    return ReadConfig(**values, raw=given.text)


def refuse_whole(options: ReadConfig, table: str) -> None:
    """Refuse a scan of the whole table by times of completion, for tables before version 8.

    Their archive does not say when a commit was completed.

    Raises:
        ConflictingOptionError: the options ask for both.
    """
    if options.fallback_full_scan or options.on_missing == FULL_SCAN:
        option = HOLLOW_POLICY if options.order is None else ORDER
        raise ConflictingOptionError(
            f"{option}={options.order or options.hollow_policy} cannot go with a scan of the whole table before table "
            "version 8: nothing says when the commits of its rows were completed",
            table=table,
            remedy="omit one of them.",
            option=option,
        )
