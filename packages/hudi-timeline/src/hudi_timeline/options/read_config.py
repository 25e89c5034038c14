"""Read options, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_format.errors import ConflictingOptionError
from hudi_timeline.options import read_options as read
from hudi_timeline.options import table_options as table
from hudi_timeline.options.config_key import READ, given_value, given_values, value_of
from hudi_timeline.options.registry import canonical
from hudi_timeline.options.transaction_options import METADATA_ENABLE
from hudi_timeline.options.unsupported import refuse_effects, say_tuning


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

    query_type: str = value_of(read.QUERY_TYPE)
    incremental_format: str = value_of(read.INCREMENTAL_FORMAT)
    start_offset: str = value_of(read.START_OFFSET)
    start_offset_order: str | None = given_value(read.START_OFFSET_ORDER)
    poll_seconds: float | None = given_value(read.POLL_SECONDS)
    stream_folder: str | None = given_value(read.STREAM_FOLDER)
    as_of: str | None = given_value(read.AS_OF)
    begin: str | None = given_value(read.BEGIN)
    end: str | None = given_value(read.END)
    paths: tuple[str, ...] = value_of(read.PATHS, otherwise=())
    incr_path_glob: str = value_of(read.PATH_GLOB, otherwise="")
    incr_filters: str = value_of(read.INCR_FILTERS, otherwise="")
    on_missing: str | None = given_value(read.ON_MISSING)
    order: str | None = given_value(read.ORDER)
    columns: tuple[str, ...] | None = given_value(read.COLUMNS)
    filter: str | None = given_value(read.FILTER)
    fallback_full_scan: bool | None = given_value(read.FULL_SCAN_FALLBACK)
    hollow_policy: str = value_of(read.HOLLOW_POLICY)
    use_end_schema: bool = value_of(read.USE_END_SCHEMA)
    extract_partition_values_from_path: bool = value_of(read.EXTRACT_PARTITION_VALUES_FROM_PATH)
    metadata_enable: bool | None = given_value(METADATA_ENABLE)
    data_skipping: bool | None = given_value(read.DATA_SKIPPING)
    schema_on_read: bool | None = given_value(table.SCHEMA_ON_READ)
    merge: str | None = given_value(table.MERGE)
    merge_type: str = value_of(read.MERGE_TYPE)
    memory_max: int | None = given_value(table.MEMORY_MAX)
    spill_path: str = value_of(table.SPILL_PATH, otherwise="")
    spill_compress: bool = value_of(table.SPILL_COMPRESS)
    raw: Mapping[str, str] = field(default_factory=dict)


def parse_read_options(options: Mapping[str, str]) -> ReadConfig:
    """Typed options of a read; write options are checked, but ignored.

    Raises:
        UnknownOptionError, InvalidOptionError, ConflictingOptionError, UnsupportedError: as for writes.
    """
    given = canonical(options)
    refuse_effects(given, READ)
    values = given_values(ReadConfig, given.parsed)
    values = {name: value for name, value in values.items() if value not in ("", ())}
    query = values.get("query_type", read.SNAPSHOT)
    bound = read.BEGIN if "begin" in values else read.END if "end" in values else ""
    if query == read.INCREMENTAL and "begin" not in values:
        raise ConflictingOptionError(
            "an incremental query needs a begin",
            remedy=f"set {read.BEGIN}; 000 reads from the beginning.",
            option=read.BEGIN,
        )
    if query == read.INCREMENTAL and "as_of" in values:
        raise ConflictingOptionError(
            f"{read.AS_OF} and an incremental query exclude each other",
            remedy=f"use {read.END} as the upper bound.",
            option=read.AS_OF,
        )
    if query == read.INCREMENTAL and "paths" in values:
        raise ConflictingOptionError(
            f"{read.PATHS} chooses the files of a snapshot, and the query is incremental",
            remedy=f"use {read.PATH_GLOB}.",
            option=read.PATHS,
        )
    if query != read.INCREMENTAL and bound:
        raise ConflictingOptionError(
            f"{bound} is given but the query is {query}",
            remedy=f"set {read.QUERY_TYPE}=incremental.",
            option=bound,
        )
    if values.get("fallback_full_scan") and values.get("on_missing") not in (None, read.FULL_SCAN):
        raise ConflictingOptionError(
            f"{read.FULL_SCAN_FALLBACK}=true contradicts {read.ON_MISSING}={values['on_missing']}",
            remedy="omit one of them.",
            option=read.ON_MISSING,
        )
    order, policy = values.get("order"), values.get("hollow_policy")
    meant = {read.STABLE: (read.BLOCK,), read.START_ORDER: (), read.COMPLETION: (read.TRANSITION,)}
    if order is not None and policy is not None and policy not in meant[order]:
        raise ConflictingOptionError(
            f"{read.ORDER}={order} contradicts {read.HOLLOW_POLICY}={policy}",
            remedy="omit one of them.",
            option=read.ORDER,
        )
    for name, key in (("incr_path_glob", read.PATH_GLOB), ("incr_filters", read.INCR_FILTERS)):
        if query != read.INCREMENTAL and name in values and read.QUERY_TYPE in given.parsed:
            raise ConflictingOptionError(
                f"{key} is given but the query is {query}",
                remedy=f"set {read.QUERY_TYPE}=incremental, or use {read.FILTER}.",
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
    if options.fallback_full_scan or options.on_missing == read.FULL_SCAN:
        option = read.HOLLOW_POLICY if options.order is None else read.ORDER
        raise ConflictingOptionError(
            f"{option}={options.order or options.hollow_policy} cannot go with a scan of the whole table before table "
            "version 8: nothing says when the commits of its rows were completed",
            table=table,
            remedy="omit one of them.",
            option=option,
        )
