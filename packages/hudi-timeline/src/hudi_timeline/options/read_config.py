"""Read options, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_format.errors import ConflictingOptionError
from hudi_timeline.options.implemented import (
    AS_OF,
    BEGIN,
    COLUMNS,
    END,
    FILTER,
    FULL_SCAN_FALLBACK,
    HOLLOW_POLICY,
    INCR_FILTERS,
    INCREMENTAL_FORMAT,
    ON_MISSING,
    ORDER,
    PATH_GLOB,
    PATHS,
    QUERY_TYPE,
    READ_FIELDS,
    USE_END_SCHEMA,
)
from hudi_timeline.options.registry import canonical
from hudi_timeline.options.unsupported import READ, refuse_effects, say_tuning

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
]

FENCED, START_ORDER, COMPLETION = "fenced", "start", "completion"
FAIL, BLOCK, TRANSITION = "FAIL", "BLOCK", "USE_TRANSITION_TIME"
ERROR, FULL_SCAN, AS_HUDI = "error", "full_scan", "as_hudi"
CDC = "cdc"
SNAPSHOT, READ_OPTIMIZED, INCREMENTAL = "snapshot", "read_optimized", "incremental"


@dataclass(frozen=True)
class ReadConfig:
    """What a read was asked for.

    Attributes:
        incremental_format: "latest_state", or CDC: an incremental query gives every change.
        start_offset: where a stream begins: earliest, latest or an instant, as the user wrote it.
        start_offset_order: order of the reader that `start_offset` is a checkpoint of; None for the stream's own.
        as_of: as the user wrote it; the table's time zone decides what it means.
        begin, end: bounds of an incremental read, (begin, end]; end None for the newest.
        columns, filter: our own options `hudi.read.columns` (comma list) and `hudi.read.filter` (SQL-like
            text), for doors that push down neither.
        paths: paths and patterns below the table; only files below them are read.
        incr_path_glob: pattern that the full paths of the files of an incremental read end with.
        incr_filters: filters of an incremental read, with commas between them.
        on_missing: ERROR, FULL_SCAN or AS_HUDI: what an incremental read does whose begin lies before archived
            instants; None leaves it to the begin.
        order: FENCED, START_ORDER or COMPLETION: what an incremental read does at a commit that is still open; None
            leaves it to `hollow_policy`.
        fallback_full_scan: an incremental read whose instants or files are gone reads the whole table and
            keeps the rows of the range.
        hollow_policy: FAIL or BLOCK, what an incremental read does at a commit that is still open; or
            USE_TRANSITION_TIME: begin and end are compared with the times at which commits were completed.
        schema_on_read: False reads files by column names even where the table has a schema history.
        use_end_schema: an incremental read's columns are those of its last instant, not the newest.
        merge: a merge of the user's instead of the table's; see `hudi_format.merge.user_merger`.
        merge_type: payload_combine, or skip_merge.
        memory_max: bytes for the log records of a slice; None where none were given.
        spill_path, spill_compress: of the temporary files of larger ones.
        raw: what was given, under the main names.
    """

    query_type: str = SNAPSHOT
    incremental_format: str = "latest_state"
    start_offset: str = "earliest"
    start_offset_order: str | None = None
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    paths: tuple[str, ...] = ()
    incr_path_glob: str = ""
    incr_filters: str = ""
    on_missing: str | None = None
    order: str | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    fallback_full_scan: bool = False
    hollow_policy: str = "FAIL"
    use_end_schema: bool = False
    extract_partition_values_from_path: bool = False
    metadata_enable: bool | None = None
    schema_on_read: bool | None = None
    merge: str | None = None
    merge_type: str = "payload_combine"
    memory_max: int | None = None
    spill_path: str = ""
    spill_compress: bool = True
    raw: Mapping[str, str] = field(default_factory=dict)


def parse_read_options(options: Mapping[str, str]) -> ReadConfig:
    """The options of a read, typed.  A writer's options in the same map are checked, and not heeded.

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
            f"{FULL_SCAN_FALLBACK}=true and {ON_MISSING}={values['on_missing']} say different things",
            remedy="leave one of them out.",
            option=ON_MISSING,
        )
    order, policy = values.get("order"), values.get("hollow_policy")
    meant = {FENCED: (BLOCK,), START_ORDER: (), COMPLETION: (TRANSITION,)}.get(str(order), (policy,))
    if order is not None and policy is not None and policy not in meant:
        raise ConflictingOptionError(
            f"{ORDER}={order} and {HOLLOW_POLICY}={policy} say different things",
            remedy="leave one of them out.",
            option=ORDER,
        )
    whole = values.get("fallback_full_scan") or values.get("on_missing") == FULL_SCAN
    if whole and TRANSITION in (policy, *meant):
        raise ConflictingOptionError(
            f"{HOLLOW_POLICY}={TRANSITION} cannot go with a scan of the whole table, whose rows do not say when their "
            "commits were completed",
            remedy="leave one of them out.",
            option=HOLLOW_POLICY,
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
