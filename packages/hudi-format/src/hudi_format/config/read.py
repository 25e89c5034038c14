"""Read options, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_format.config import values
from hudi_format.config.registry import canonical
from hudi_format.errors import ConflictingOptionError, UnsupportedError

SNAPSHOT, READ_OPTIMIZED, INCREMENTAL = "snapshot", "read_optimized", "incremental"
QUERY_TYPE = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
AS_OF = "as.of.instant"
HOLLOW_POLICY = "hoodie.read.timeline.holes.resolution.policy"
FULL_SCAN_FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
USE_END_SCHEMA = "hoodie.datasource.read.schema.use.end.instanttime"
COLUMNS = "hudi.read.columns"
FILTER = "hudi.read.filter"


@dataclass(frozen=True)
class ReadConfig:
    """What a read was asked for.

    Attributes:
        begin, end: bounds of an incremental read, (begin, end]; end None for the newest.
        columns, filter: our own options `hudi.read.columns` (comma list) and `hudi.read.filter` (SQL-like
            text), for doors that push down neither.
        fallback_full_scan: an incremental read whose instants or files are gone reads the whole table and
            keeps the rows of the range.
        hollow_policy: FAIL or BLOCK, what an incremental read does at a commit that is still open.
        use_end_schema: an incremental read's columns are those of its last instant, not the newest.
    """

    query_type: str = SNAPSHOT
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    paths: tuple[str, ...] = ()
    incr_path_glob: str = ""
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    fallback_full_scan: bool = False
    hollow_policy: str = "FAIL"
    use_end_schema: bool = False
    extract_partition_values_from_path: bool = False
    metadata_enable: bool | None = None
    raw: Mapping[str, str] = field(default_factory=dict)


def parse_read_options(options: Mapping[str, str]) -> ReadConfig:
    """The options of a read, typed.

    Raises:
        UnknownOptionError, InvalidOptionError, ConflictingOptionError, UnsupportedError: as for writes.
    """
    o, _ = canonical(options, "")
    query = values.choice(o, QUERY_TYPE, SNAPSHOT, (SNAPSHOT, READ_OPTIMIZED, INCREMENTAL))
    _refuse(o)
    as_of, begin, end = o.get(AS_OF), o.get(BEGIN), o.get(END)
    if query == INCREMENTAL and not begin:
        raise ConflictingOptionError(
            "an incremental query needs a begin", remedy=f"set {BEGIN}; 000 reads from the beginning.", option=BEGIN
        )
    if query == INCREMENTAL and as_of:
        raise ConflictingOptionError(
            f"{AS_OF} and an incremental query exclude each other", remedy=f"use {END} as the upper bound."
        )
    if query != INCREMENTAL and (begin or end):
        raise ConflictingOptionError(
            f"{BEGIN if begin else END} is given but the query is not incremental",
            remedy=f"set {QUERY_TYPE}=incremental.",
        )
    return ReadConfig(
        query_type=query,
        as_of=as_of,
        begin=begin,
        end=end,
        paths=values.names(o, "hoodie.datasource.read.paths") or (),
        incr_path_glob=o.get("hoodie.datasource.read.incr.path.glob", ""),
        columns=values.names(o, COLUMNS),
        filter=o.get(FILTER) or None,
        fallback_full_scan=values.boolean(o, FULL_SCAN_FALLBACK, False),
        hollow_policy=values.choice(o, HOLLOW_POLICY, "FAIL", ("FAIL", "BLOCK", "USE_TRANSITION_TIME")),
        use_end_schema=values.boolean(o, USE_END_SCHEMA, False),
        extract_partition_values_from_path=values.boolean(
            o, "hoodie.datasource.read.extract.partition.values.from.path", False
        ),
        metadata_enable=values.optional_boolean(o, "hoodie.metadata.enable"),
        raw=o,
    )


def _refuse(o: Mapping[str, str]) -> None:
    def no(what: str, remedy: str) -> UnsupportedError:
        return UnsupportedError(f"{what} is not provided yet", remedy=remedy)

    if o.get("hoodie.datasource.query.incremental.format", "latest_state").lower() != "latest_state":
        raise no("reading change data capture", "use the incremental format latest_state.")
    if o.get(HOLLOW_POLICY, "").upper() == "USE_TRANSITION_TIME":
        raise no("ordering by transition time", "use FAIL or BLOCK.")
    if o.get("hoodie.datasource.read.paths") or o.get("hoodie.datasource.read.incr.path.glob"):
        raise no("choosing files by path", "filter on the partition columns; their files alone are read.")
    if o.get("hoodie.datasource.read.incr.filters"):
        raise no("hoodie.datasource.read.incr.filters", "filter the result instead.")
    if values.boolean(o, "hoodie.schema.on.read.enable", False):
        raise no("schema on read", "leave hoodie.schema.on.read.enable out.")
