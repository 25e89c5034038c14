"""Queries of a table: scans from the arguments and options of a read.

    options -> ReadConfig -> TableSnapshot -> source -> Scan

A source is imported by the query that needs it: planning a snapshot takes a new process as long as its imports do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any, TypeAlias

import pyarrow as pa

from hudi_format.errors import (
    ConflictingOptionError,
    CorruptFileError,
    InvalidOptionError,
    UnsupportedError,
)
from hudi_format.schema.meta_fields import without_meta
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.snapshot import CommitCache, TableSnapshot, open_snapshot, snapshot_of
from hudi_timeline.file_system_view.table_schema import with_history
from hudi_timeline.options.read_config import ReadConfig, parse_read_options
from hudi_timeline.options.read_options import (
    AS_OF,
    BEGIN,
    END,
    ERROR,
    FULL_SCAN,
    INCREMENTAL,
    INCREMENTAL_FORMAT,
    ON_MISSING,
    ORDER,
    PATHS,
    QUERY_TYPE,
    READ_OPTIMIZED,
    SKIP,
    SNAPSHOT,
)
from hudi_timeline.reading.filters import Condition, all_of, make_predicate
from hudi_timeline.reading.plan import JSON, STRUCT
from hudi_timeline.reading.scan import Scan
from hudi_timeline.reading.snapshot_query import START, SnapshotSource, snapshot_schema
from hudi_timeline.timeline.instant import (
    INSTANT_DIGITS,
    Committed,
    Instant,
    named_instant,
    parse_query_instant,
    zone_of,
)

Moment: TypeAlias = str | date | Committed
"""An instant time (digits), `yyyy-MM-dd[ HH:mm[:ss[.SSS]]]` in the table's time zone, a date or datetime, or the result
of a write."""

# Measured (3,000,000 rows of 4 columns): with the meta columns, which few queries name, a read takes 6 times as long
# and its rows 5 times the memory.
META_BY_DEFAULT = False

# Options that arguments of a query of a range take the place of.
_RANGE = (QUERY_TYPE, BEGIN, END)


def scan_snapshot(
    storage: Storage,
    options: Mapping[str, str],
    columns: Sequence[str] | None = None,
    filter: Condition | None = None,
    *,
    query: str = SNAPSHOT,
    as_of: Moment | None = None,
    meta_columns: bool = META_BY_DEFAULT,
    on_missing: str | None = None,
    commits: CommitCache | None = None,
) -> Scan:
    """Scan of a snapshot; arguments and errors as of `HudiTable.read`."""
    _check_query(query)
    asked = _read_config(options, on_missing)
    if asked.on_missing == FULL_SCAN:
        raise ConflictingOptionError(
            f"{ON_MISSING}={FULL_SCAN} is given to a query that is not incremental",
            remedy=f"use {ERROR} or {SKIP}.",
            option=ON_MISSING,
        )
    if asked.query_type == INCREMENTAL:
        raise ConflictingOptionError(
            f"{QUERY_TYPE}={INCREMENTAL} is given to read()",
            remedy="use read_incremental(begin, end).",
            option=QUERY_TYPE,
        )
    as_of = asked.as_of if as_of is None else as_of
    columns = asked.columns if columns is None else columns
    filter = asked.filter if filter is None else filter
    snapshot = open_snapshot(storage, commits=commits)
    if as_of is not None:
        from hudi_timeline.reading.time_travel import check_as_of, check_begun

        config, timeline = snapshot.config, snapshot.timeline
        at = _state_of(as_of, snapshot)
        check_as_of(storage, config, timeline, at)
        if asked.on_missing != SKIP:
            check_begun(storage, config, timeline, at)
        snapshot = snapshot_of(storage, config, timeline, at, commits=snapshot.commits)
    snapshot = with_history(snapshot, asked.schema_on_read)
    if asked.metadata_enable:
        from hudi_timeline.reading.metadata_listing import through_metadata

        snapshot = through_metadata(snapshot)
    # A table that was merge on read has earlier states with rows in logs; with a type edited by hand the newest too.
    is_merge_on_read = snapshot.config.table_type == "MERGE_ON_READ"
    merged = query == SNAPSHOT and (is_merge_on_read or _hides_logs(snapshot))
    by_id = snapshot.evolution is not None
    if merged:
        from hudi_timeline.file_system_view.partition_values import with_path_types, with_times_as_text
        from hudi_timeline.reading.merged_query import MergedSource, memory_limit, merged_schema

        schema = merged_schema(snapshot.config, with_times_as_text(snapshot.config, snapshot.schema))
        if asked.extract_partition_values_from_path:
            schema = with_path_types(snapshot.config, schema)
        if not is_merge_on_read:  # the order is that of the type that it has now
            names = snapshot_schema(snapshot.config, snapshot.schema, in_place=by_id).names
            schema = pa.schema([schema.field(n) for n in names])
    else:
        schema = snapshot_schema(snapshot.config, snapshot.schema, in_place=by_id)
    predicate = None if filter is None else make_predicate(filter, schema)
    paths = None
    if asked.paths:
        from hudi_timeline.reading.path_globs import PathSelection

        paths = PathSelection.of(asked.paths, storage.uri, PATHS)
    on_missing = asked.on_missing or ERROR
    by_indexes = bool(asked.metadata_enable) and skips_data(asked, snapshot)
    source: SnapshotSource
    if merged:
        source = MergedSource(
            snapshot,
            schema,
            predicate,
            paths,
            on_missing,
            merge=asked.merge,
            limit=memory_limit(asked),
            unmerged=asked.merge_type == "skip_merge",
            by_path=asked.extract_partition_values_from_path,
            by_indexes=by_indexes,
        )
    else:
        source = SnapshotSource(snapshot, schema, predicate, paths, on_missing, by_indexes=by_indexes)
    return Scan(storage, source, _columns(schema, columns, meta_columns, snapshot.schema))


def scan_range(
    storage: Storage,
    options: Mapping[str, str],
    begin: Moment | None,
    end: Moment | None = None,
    *,
    columns: Sequence[str] | None = None,
    filter: Condition | None = None,
    query: str = SNAPSHOT,
    meta_columns: bool = META_BY_DEFAULT,
    on_missing: str | None = None,
    order: str | None = None,
    commits: CommitCache | None = None,
) -> Scan:
    """Scan of a commit range; arguments and errors as of `HudiTable.read_incremental`."""
    from hudi_timeline.reading.incremental import incremental_range

    _check_query(query)
    asked = _range_config(options, on_missing, order, _RANGE, "an incremental query")
    columns = asked.columns if columns is None else columns
    filter = asked.filter if filter is None else filter
    snapshot, start, stop = _between(storage, commits, begin, end, asked)
    range = incremental_range.incremental_range(snapshot, start, stop, asked)
    _refuse_two_actions(snapshot, range.instants)
    if asked.use_end_schema and range.instants:
        at_end = snapshot.at(range.instants[-1].time).stored_schema
        if at_end is not None:
            snapshot = TableSnapshot(
                storage, snapshot.config, snapshot.timeline, at_end, None, snapshot.commits
            )
    snapshot = with_history(snapshot, asked.schema_on_read)
    schema = incremental_range.incremental_schema(snapshot)
    if asked.extract_partition_values_from_path:
        from hudi_timeline.file_system_view.partition_values import with_path_types

        schema = with_path_types(snapshot.config, schema)
    texts = [filter] if filter is not None else []
    texts += [f.strip() for f in asked.incr_filters.split(",") if f.strip()]
    predicate = all_of([make_predicate(t, schema) for t in texts], schema)
    kind = incremental_range.IncrementalSource
    if snapshot.has_merged_states:
        from hudi_timeline.reading.incremental.incremental_query import (
            MergedIncrementalSource,
            OptimizedIncrementalSource,
        )

        kind = OptimizedIncrementalSource if query == READ_OPTIMIZED else MergedIncrementalSource
    source = kind(snapshot, range, schema, asked, predicate)
    return Scan(storage, source, _columns(schema, columns, meta_columns, snapshot.schema))


def scan_changes(
    storage: Storage,
    options: Mapping[str, str],
    begin: Moment | None,
    end: Moment | None = None,
    *,
    columns: Sequence[str] | None = None,
    filter: Condition | None = None,
    images: str = JSON,
    on_missing: str | None = None,
    order: str | None = None,
    commits: CommitCache | None = None,
) -> Scan:
    """CDC scan of a commit range; arguments and errors as of `HudiTable.read_changes`."""
    from hudi_timeline.reading.incremental.cdc import ChangesSource, changes_range, changes_schema

    if images not in (JSON, STRUCT):
        raise InvalidOptionError(f"images={images!r} is unknown", remedy=f"use {JSON!r} or {STRUCT!r}.")
    asked = _range_config(options, on_missing, order, (*_RANGE, INCREMENTAL_FORMAT), "a query of changes")
    columns = asked.columns if columns is None else columns
    filter = asked.filter if filter is None else filter
    snapshot, start, stop = _between(storage, commits, begin, end, asked)
    range = changes_range(snapshot, start, stop, asked)
    _refuse_two_actions(snapshot, range.instants)
    snapshot = with_history(snapshot, asked.schema_on_read)
    if snapshot.evolution is not None and images == STRUCT:
        raise UnsupportedError(
            "changes that were logged under earlier column names do not fit into structs",
            table=storage.uri,
            remedy=f"use images={JSON!r}, where logged images have the names of their time.",
        )
    schema = changes_schema(snapshot.schema, images)
    predicate = None if filter is None else make_predicate(filter, schema)
    return Scan(storage, ChangesSource(snapshot, range, schema, asked, predicate), columns)


def latest_offset(storage: Storage, options: Mapping[str, str], *, commits: CommitCache | None = None) -> str:
    """Latest offset of an incremental read; "" for no commit."""
    from hudi_timeline.reading.incremental.incremental_range import by_completion, latest_checkpoint
    from hudi_timeline.reading.stability import settled

    asked = _read_config(options, without=(*_RANGE, INCREMENTAL_FORMAT))
    snapshot, last = open_snapshot(storage, commits=commits), None
    if by_completion(asked):
        snapshot, last = settled(snapshot, None)
    return latest_checkpoint(snapshot, asked) if last is None else last


def skips_data(asked: ReadConfig, snapshot: TableSnapshot) -> bool:
    """Whether the metadata table's indexes may rule out files."""
    if asked.data_skipping is None:
        return snapshot.config.version.skips_data_by_default
    return asked.data_skipping


def _read_config(
    options: Mapping[str, str],
    on_missing: str | None = None,
    order: str | None = None,
    without: Collection[str] = (),
) -> ReadConfig:
    given = dict(options)
    if on_missing is not None:
        given[ON_MISSING] = str(on_missing)
    if order is not None:
        given[ORDER] = str(order)
    # Keys with "_" are a write's own metadata, given for all calls.
    return parse_read_options({k: v for k, v in given.items() if k not in without and k[:1] != "_"})


def _range_config(
    options: Mapping[str, str],
    on_missing: str | None,
    order: str | None,
    without: Collection[str],
    what: str,
) -> ReadConfig:
    asked = _read_config(options, on_missing, order, without)
    if asked.as_of is not None:
        raise ConflictingOptionError(
            f"{AS_OF} and {what} exclude each other", remedy="use end as the upper bound."
        )
    return asked


def _columns(
    schema: pa.Schema, columns: Sequence[str] | None, meta_columns: bool, table: pa.Schema
) -> Sequence[str] | None:
    """Names of the columns to give; None for all, in the order in which Apache Hudi gives them."""
    return columns if columns is not None or meta_columns else in_order(without_meta(schema).names, table)


def _hides_logs(snapshot: TableSnapshot) -> bool:
    """Whether base files alone would hide rows of a copy-on-write table's state, from when it was merge on read."""
    if not snapshot.has_merged_states:
        return False  # the module below brings decoders, which most copy-on-write tables never need
    from hudi_timeline.file_system_view.file_slices import hidden_logs

    return bool(hidden_logs(snapshot))


def in_order(names: Sequence[str], table: pa.Schema) -> list[str]:
    """Names in the order of the table's columns; the others, which paths alone have, come last."""
    own = set(names)
    return [*(n for n in table.names if n in own), *(n for n in names if n not in set(table.names))]


def _state_of(as_of: Moment, snapshot: TableSnapshot) -> str:
    """Instant of a time travel: one of the table's, which need not be a time, or what stands for a time."""
    named = named_instant(as_of) if isinstance(as_of, str) or hasattr(as_of, "instant") else ""
    if named.isdigit() and snapshot.timeline.find(named) is not None:
        return named
    return parse_query_instant(as_of, zone_of(snapshot.config.timezone))


def _check_query(query: str) -> None:
    if query not in (SNAPSHOT, READ_OPTIMIZED):
        raise InvalidOptionError(
            f"query={query!r} is unknown",
            remedy=f"use {SNAPSHOT!r} or {READ_OPTIMIZED!r}; read_incremental() gives changes.",
        )


def _refuse_two_actions(snapshot: TableSnapshot, instants: Sequence[Instant]) -> None:
    """Refuse two completed writes at one instant: rows say only the time, and each of both would claim them.

    Raises CorruptFileError.
    """
    known: dict[str, Instant] = {}
    for instant in instants:
        other = known.setdefault(instant.time, instant)
        if other is not instant:
            raise CorruptFileError(
                f"one instant is a {other.action} and a {instant.action}: what was changed at it cannot be told",
                table=snapshot.storage.uri,
                instant=instant.time,
                file=instant.path,
                remedy="`hudi verify` names the files of both (timeline-contradiction): find out which of them the "
                "write was, and move the files of the other away; the range can be read from that instant on.",
            )


def _between(
    storage: Storage, commits: CommitCache | None, begin: Moment | None, end: Moment | None, asked: ReadConfig
) -> tuple[TableSnapshot, str, str | None]:
    """The table, and the bounds of a range of its commits; errors as `_bounds`."""
    from hudi_timeline.reading.incremental.incremental_range import by_completion
    from hudi_timeline.reading.stability import settled

    snapshot = open_snapshot(storage, commits=commits)
    start, stop = _bounds(snapshot, begin, end)
    if by_completion(asked):
        snapshot, stop = settled(snapshot, stop)
    return snapshot, start, stop


def _bounds(snapshot: TableSnapshot, begin: Moment | None, end: Moment | None) -> tuple[str, str | None]:
    """Bounds of a range as instants.

    Raises ConflictingOptionError: the range ends before it begins; one that ends where it begins is empty.
    """
    zone = zone_of(snapshot.config.timezone)
    start = START if begin is None else _bound(begin, zone)
    if end is None:
        return start, None
    stop = _bound(end, zone)
    # A bound may have fewer digits; those that it lacks count as zeros.
    if start.ljust(INSTANT_DIGITS, "0") > stop.ljust(INSTANT_DIGITS, "0"):
        raise ConflictingOptionError(
            f"the range ends at {stop}, before it begins at {start}: no commit can be in it",
            table=snapshot.storage.uri,
            remedy=f"give bounds in order: begin ({BEGIN}) is exclusive, end ({END}) inclusive; without an end the "
            "range goes up to the newest commit.",
            option=END,
        )
    return start, stop


def _bound(value: Moment, zone: Any) -> str:
    """A range bound as an instant; digits of any length are unchanged."""
    if isinstance(value, str) and value.strip().isdigit():
        return value.strip()
    return parse_query_instant(value, zone)
