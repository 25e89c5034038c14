"""`HudiTable`: a Hudi table without a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import (
    ConflictingOptionError,
    InvalidOptionError,
    NotAHudiTableError,
    StaleSnapshotError,
    StorageError,
    UnsupportedError,
)
from hudi_format.schema.meta_fields import META_COLUMNS
from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_timeline import feature_gate
from hudi_timeline.file_system_view.snapshot import (
    CommitCache,
    TableSnapshot,
    load_both,
    open_snapshot,
    snapshot_of,
)
from hudi_timeline.file_system_view.table_schema import with_history
from hudi_timeline.options.read_config import (
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
    SNAPSHOT,
    ReadConfig,
    parse_read_options,
)
from hudi_timeline.options.table_options import MERGE
from hudi_timeline.options.user_options import as_options, call_options
from hudi_timeline.reading.filters import all_of, make_predicate
from hudi_timeline.reading.plan import JSON, STRUCT
from hudi_timeline.reading.scan import Scan
from hudi_timeline.reading.snapshot_query import SnapshotSource, snapshot_schema
from hudi_timeline.services.table_services import ServiceMethods
from hudi_timeline.table_config import TableConfig, load
from hudi_timeline.timeline.active_timeline import Timeline, latest_schema
from hudi_timeline.timeline.instant import parse_query_instant, zone_of
from hudi_timeline.verify.table_methods import VerifyMethods
from hudi_timeline.writing.writes import WriteMethods, create_table

# What only some questions need is imported by those that ask them: opening a table and planning a snapshot takes a new
# process as long as its imports do.
if TYPE_CHECKING:
    from hudi_format.merge.laws import LawReport
    from hudi_format.merge.user_merger import MergeFunction
    from hudi_timeline.inspector import Inspector
    from hudi_timeline.reading.checkpoints import ConvertedCheckpoint

LOOKS = 3
"""How often a look-up begins again where the table is cleaned under it."""

Moment: TypeAlias = str | datetime
"""An instant time (digits), `yyyy-MM-dd[ HH:mm:ss[.SSS]]` in the table's time zone, or a datetime."""


class HudiTable(WriteMethods, ServiceMethods, VerifyMethods):
    """A table at a path.  Each read looks at the table anew; a scan stands for the state it was made in."""

    def __init__(self, storage: Storage, options: Mapping[str, object] | None = None) -> None:
        """Use `HudiTable.open`.  `options` apply to every call, under those of the call itself."""
        self._storage = storage
        self._options = without_hadoop_options(as_options(options))
        self._commits = CommitCache(storage)

    @classmethod
    def open(
        cls,
        uri: str | PathLike[str],
        *,
        storage_options: Mapping[str, Any] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> HudiTable:
        """The table at `uri`, which may be a local path or any URL that fsspec knows.

        Args:
            storage_options: for fsspec: credentials, endpoints.
            options: `hoodie.*` options for all reads and writes through this object; Hadoop's options of the
                store, such as `fs.s3a.access.key`, are translated.

        Raises:
            NotAHudiTableError: nothing is there, or something else; inside of a table the remedy names the table.
            CorruptFileError: hoodie.properties cannot be read.
            UnsupportedError: a table that this version would read wrong.
        """
        storage = open_storage(uri, storage_options, options=as_options(options))
        try:
            config = load(storage)
        except NotAHudiTableError as e:
            from hudi_timeline.feature_gate import with_what_is_there

            raise with_what_is_there(storage, e) from None
        except StorageError:
            root = storage.info("")
            if root is None or root.is_dir:
                raise
            raise NotAHudiTableError(
                "no Hudi table: it is a file", table=storage.uri, remedy="give the table's folder."
            ) from None
        feature_gate.check_read(storage, config)
        return cls(storage, options)

    @classmethod
    def create(
        cls,
        uri: str | PathLike[str],
        schema: pa.Schema,
        *,
        name: str,
        table_type: str = "COPY_ON_WRITE",
        record_keys: Sequence[str],
        partition_fields: Sequence[str] = (),
        ordering_fields: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> HudiTable:
        """A new, empty table at `uri`.

        Args:
            schema: the data columns, without meta columns.
            record_keys: columns that identify a record within its partition; nested ones by dot path.
            partition_fields: columns of the partition path.
            ordering_fields: the column that decides between records of one key; at most one.
            options: Apache Hudi's write options that shape a table, such as
                `hoodie.datasource.write.hive_style_partitioning`.  A merge function (`hudi.merge`) is also used by
                the reads and writes of this object; others give it too, or allow it (`hudi_timeline.allow_functions`).

        Raises:
            TableExistsError: there is a table already.
            MissingColumnError, SchemaError, OptionError: what was given does not make a table.
            UnsupportedError: a kind of table that cannot be written yet.
        """
        storage = create_table(
            uri,
            schema,
            name=name,
            table_type=table_type,
            record_keys=record_keys,
            partition_fields=partition_fields,
            ordering_fields=ordering_fields,
            options=options,
            storage_options=storage_options,
        )
        # A function that made the table may go on merging it; expressions need no permission.
        merge = as_options(options).get(MERGE, "")
        return cls(storage, None if not merge or merge.lstrip().startswith("{") else {MERGE: merge})

    @property
    def uri(self) -> str:
        return self._storage.uri

    @property
    def storage(self) -> Storage:
        return self._storage

    @property
    def commits(self) -> CommitCache:
        """The metadata of completed instants, each read once by this object."""
        return self._commits

    @property
    def config(self) -> TableConfig:
        """The table's configuration, as it is now."""
        return load(self._storage)

    @property
    def timeline(self) -> Timeline:
        """The active timeline, as it is now."""
        return load_both(self._storage)[1]

    @property
    def schema(self) -> pa.Schema:
        """The newest schema, without meta columns, in the table's own column order."""
        return self._snapshot().schema

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def table_type(self) -> str:
        """COPY_ON_WRITE or MERGE_ON_READ."""
        return self.config.table_type

    @property
    def table_version(self) -> int:
        return self.config.version

    @property
    def inspect(self) -> Inspector:
        """What the table consists of, as Arrow tables."""
        from hudi_timeline.inspector import Inspector  # a read needs none of what it imports

        return Inspector(self._storage, self._commits)

    def _snapshot(self) -> TableSnapshot:
        return open_snapshot(self._storage, commits=self._commits)

    def _asked(self, options: Mapping[str, object] | None, without: Sequence[str] = ()) -> ReadConfig:
        given = call_options(self._options, options, self.uri)
        # Keys with "_" are a write's own metadata, given for all calls.
        return parse_read_options({k: v for k, v in given.items() if k not in without and k[:1] != "_"})

    def read(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,
        *,
        query: str = SNAPSHOT,
        as_of: Moment | None = None,
        meta_columns: bool = True,
        on_missing: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> Scan:
        """The table's rows, of its newest completed state or of an earlier one.

        Args:
            columns: the columns to give, in that order; None for all.  Values of partition columns are those
                of the partition path, and they come last, as in Apache Hudi; in a snapshot of a merge-on-read
                table they are those of the files, in the table's order.  From table version 8 on all stay there.
            filter: the rows to give: text such as "city = 'sf' and ts > 5" (see scan.predicate), or a pyarrow
                expression.  It may name columns that are not given.
            query: "snapshot", or "read_optimized": of a merge-on-read table the base files alone; of a
                copy-on-write table the same.
            as_of: time travel: what the table held at that time.
            meta_columns: whether the `_hoodie_*` columns are among all columns.
            on_missing: what to do where files of that state are gone, cleaned in most cases: "error"; or "as_hudi",
                which as Apache Hudi gives the rows of what is left, with a warning and `complete` False.
            options: `hoodie.*` read options.  With `hoodie.metadata.enable=true` the table's metadata table says
                which files there are, without a folder being listed; each file that an active commit wrote and that
                it does not name is an error.

        Raises:
            MissingColumnError, SchemaError: columns or filter do not fit the table.
            HollowCommitError, InstantNotFoundError: the table cannot be read as of that time.
            OptionError: an option that is unknown, has a wrong value or says another query.
        """
        _check_query(query)
        if on_missing is not None:
            options = {**(options or {}), ON_MISSING: on_missing}
        asked = self._asked(options)
        if asked.on_missing == FULL_SCAN:
            raise ConflictingOptionError(
                f"{ON_MISSING}={FULL_SCAN} is given to a query that is not incremental",
                remedy="use error or as_hudi.",
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
        snapshot = self._snapshot()
        if as_of is not None:
            from hudi_timeline.reading.time_travel import check_as_of

            config, timeline = snapshot.config, snapshot.timeline
            at = parse_query_instant(as_of, zone_of(config.timezone))
            check_as_of(self._storage, config, timeline, at)
            snapshot = snapshot_of(self._storage, config, timeline, at, commits=self._commits)
        snapshot = with_history(snapshot, asked.schema_on_read)
        if asked.metadata_enable:
            from hudi_timeline.reading.metadata_listing import through_metadata

            snapshot = through_metadata(snapshot, asked.metadata_enable)
        merged = query == SNAPSHOT and snapshot.config.table_type == "MERGE_ON_READ"
        if merged:
            from hudi_timeline.file_system_view.partition_values import with_path_types, with_times_as_text
            from hudi_timeline.reading.merged_query import MergedSource, memory_limit, merged_schema

            schema = merged_schema(snapshot.config, with_times_as_text(snapshot.config, snapshot.schema))
            if asked.extract_partition_values_from_path:
                schema = with_path_types(snapshot.config, schema)
        else:
            by_id = snapshot.evolution is not None
            schema = snapshot_schema(snapshot.config, snapshot.schema, in_place=by_id)
        predicate = None if filter is None else make_predicate(filter, schema)
        paths = None
        if asked.paths:
            from hudi_timeline.reading.path_globs import PathSelection

            paths = PathSelection.of(asked.paths, self.uri, PATHS)
        on_missing = asked.on_missing or ERROR
        source: SnapshotSource
        if merged:
            limit = memory_limit(asked)
            source = MergedSource(
                snapshot,
                schema,
                predicate,
                paths,
                on_missing,
                merge=asked.merge,
                limit=limit,
                unmerged=asked.merge_type == "skip_merge",
                by_path=asked.extract_partition_values_from_path,
            )
        else:
            source = SnapshotSource(snapshot, schema, predicate, paths, on_missing)
        return Scan(self._storage, source, _columns(schema, columns, meta_columns))

    def read_incremental(
        self,
        begin: Moment,
        end: Moment | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,
        query: str = SNAPSHOT,
        meta_columns: bool = True,
        on_missing: str | None = None,
        order: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> Scan:
        """The rows written by the commits after `begin` up to `end`, each once, in its newest state.

        Deletes do not show.  All values come from the files, columns are in the table's order.  Bounds are instants,
        from table version 8 on the times at which commits were completed (`inspect.timeline()` has them).

        Args:
            begin: exclusive; "000" for the table's start.
            end: inclusive; None for the newest completed commit.
            query: "read_optimized": of a merge-on-read table the rows that came into its base files in the range, by a
                compaction in most cases, whenever they were committed; of a copy-on-write table the same.
            on_missing: what to do where commits after `begin` were archived: "error"; "full_scan", which reads
                the whole table as it was at `end` and keeps the rows of the range (where files of that state were
                cleaned the table as it is now, with a warning and `complete` False); or "as_hudi", which as Apache
                Hudi 0.15 gives the rows of what is left on the timeline, with a warning and `complete` False.  Not
                given, it is "as_hudi" for the begin "000" and "error" for any other; from table version 8 on the
                whole table as it was at `end`, which is an error where files of it were cleaned.
            order: what to do at a commit that is still open while later ones are completed: "fenced" reads up to it;
                "start" reads past it, and `checkpoint` stays before it, so that the next read gives rows again and
                misses none; "completion" takes bounds as times of completion, waits for nothing and repeats nothing.
                Not given, such a commit is an error that names who blocks.
            options: `hoodie.read.timeline.holes.resolution.policy` (FAIL, BLOCK or USE_TRANSITION_TIME),
                `hoodie.datasource.read.incr.path.glob`, `hoodie.datasource.read.incr.filters`,
                `hoodie.datasource.read.incr.fallback.fulltablescan.enable`,
                `hoodie.datasource.read.schema.use.end.instanttime`.

        Raises:
            InstantNotFoundError: commits after `begin` are archived; names the oldest instant to begin at.
            HollowCommitError: a commit in the range is still open.
            MissingColumnError, SchemaError: columns or filter do not fit the table.
        """
        from hudi_timeline.reading import incremental_range

        _check_query(query)
        if on_missing is not None:
            options = {**(options or {}), ON_MISSING: on_missing}
        if order is not None:
            options = {**(options or {}), ORDER: order}
        asked = self._asked(options, without=(QUERY_TYPE, BEGIN, END))
        if asked.as_of is not None:
            raise ConflictingOptionError(
                f"{AS_OF} and an incremental query exclude each other", remedy="use end as the upper bound."
            )
        columns = asked.columns if columns is None else columns
        filter = asked.filter if filter is None else filter
        snapshot = self._snapshot()
        zone = zone_of(snapshot.config.timezone)
        start, stop = _bound(begin, zone), None if end is None else _bound(end, zone)
        range = incremental_range.incremental_range(snapshot, start, stop, asked)
        if asked.use_end_schema and range.instants:
            at_end = latest_schema(self._storage, snapshot.timeline, snapshot.config, range.instants[-1].time)
            if at_end is not None:
                snapshot = TableSnapshot(
                    self._storage, snapshot.config, snapshot.timeline, at_end, None, self._commits
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
        if snapshot.config.table_type == "MERGE_ON_READ":
            from hudi_timeline.reading.incremental_query import (
                MergedIncrementalSource,
                OptimizedIncrementalSource,
            )

            kind = OptimizedIncrementalSource if query == READ_OPTIMIZED else MergedIncrementalSource
        source = kind(snapshot, range, schema, asked, predicate)
        return Scan(self._storage, source, _columns(schema, columns, meta_columns))

    def read_changes(
        self,
        begin: Moment,
        end: Moment | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,
        images: str = JSON,
        on_missing: str | None = None,
        order: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> Scan:
        """Change data capture: every change that the commits after `begin` up to `end` made, in their order.

        Columns: `op` (i, u, d), `ts_ms` (the commit's instant), `before` and `after`.  The changes are those that
        the writer logged (`hoodie.table.cdc.enabled`); where it logged none they are told by comparing files, so
        that a table without such a log has a change feed too while its older files are there.

        Args:
            begin: exclusive; "000" for the table's start.
            end: inclusive; None for the newest completed commit.
            columns: those to give.
            filter: the changes to give, such as "op = 'd'".
            images: "json": `before` and `after` are JSON texts as Apache Hudi 0.15 gives them; timestamps are
                numbers there.  "struct": they are structs of the table's columns.
            on_missing: what to do where commits after `begin` were archived: "error", or "as_hudi", which gives the
                changes of what is left, with a warning.  Not given, it is "as_hudi" for the begin "000", as long as
                anything is left, and "error" for any other.
            order: as of `read_incremental`.
            options: as of `read_incremental`.

        Raises:
            InstantNotFoundError, HollowCommitError: as `read_incremental`.
            MissingFileError: a file that shows rows before or after a change was cleaned.
        """
        from hudi_timeline.reading.cdc import ChangesSource, changes_range, changes_schema

        if images not in (JSON, STRUCT):
            raise InvalidOptionError(f"images={images!r} is unknown", remedy=f"use {JSON!r} or {STRUCT!r}.")
        if on_missing is not None:
            options = {**(options or {}), ON_MISSING: on_missing}
        if order is not None:
            options = {**(options or {}), ORDER: order}
        asked = self._asked(options, without=(QUERY_TYPE, BEGIN, END, INCREMENTAL_FORMAT))
        if asked.as_of is not None:
            raise ConflictingOptionError(
                f"{AS_OF} and a query of changes exclude each other", remedy="use end as the upper bound."
            )
        columns = asked.columns if columns is None else columns
        filter = asked.filter if filter is None else filter
        snapshot = self._snapshot()
        zone = zone_of(snapshot.config.timezone)
        start, stop = _bound(begin, zone), None if end is None else _bound(end, zone)
        range = changes_range(snapshot, start, stop, asked)
        snapshot = with_history(snapshot, asked.schema_on_read)
        if snapshot.evolution is not None and images == STRUCT:
            raise UnsupportedError(
                "changes that were logged under older names of columns have no place in structs",
                table=self.uri,
                remedy=f"use images={JSON!r}, where logged images have the names of their time.",
            )
        schema = changes_schema(snapshot.schema, images)
        predicate = None if filter is None else make_predicate(filter, schema)
        source = ChangesSource(snapshot, range, schema, asked, predicate)
        return Scan(self._storage, source, columns)

    def latest_offset(self, *, options: Mapping[str, object] | None = None) -> str:
        """How far an incremental read may go now: the `end` to give, and the `begin` of the next; "" for no commit.

        It lies before a commit that is still open, unless times of completion are compared (table version 8 and
        later, or `hoodie.read.timeline.holes.resolution.policy=USE_TRANSITION_TIME`), which need not wait for it.
        """
        from hudi_timeline.reading.incremental_range import latest_checkpoint

        asked = self._asked(options, without=(QUERY_TYPE, BEGIN, END, INCREMENTAL_FORMAT))
        return latest_checkpoint(self._snapshot(), asked)

    def convert_checkpoint(self, checkpoint: str, *, order: str, to: str) -> ConvertedCheckpoint:
        """The checkpoint of a reader of one order (of `read_incremental`) for one that goes on in another order.

        Nothing is missed; `repeated` names the commits whose rows come once more.

        Raises:
            InstantNotFoundError: commits after the checkpoint are archived.
        """
        from hudi_timeline.reading.checkpoints import convert

        return convert(self._snapshot(), checkpoint, order=order, to=to)

    def get(
        self,
        keys: Sequence[Any] | pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch,
        *,
        partitions: Sequence[str] | None = None,
        as_of: Moment | None = None,
    ) -> pa.Table:
        """The newest rows with the given record keys; keys that are not in the table give none.

        Key ranges and bloom filters in the files' footers tell which files need not be read; in a table without
        meta columns the key columns do.  Of a merge-on-read table logs are looked through.

        Args:
            keys: record keys as text (`_hoodie_record_key`), values of the record key column, where there is one, or
                rows that hold the record key columns: a table or a list of dicts.
            partitions: paths of the partitions to look in; None for all.
            as_of: the rows as they were at that time.

        Raises:
            MissingColumnError: a table without one of the record key columns.
            HollowCommitError, InstantNotFoundError: the table cannot be read as of that time.
        """
        from hudi_timeline.reading.point_lookup import look_up

        config = load(self._storage)

        def scan_of(columns: Sequence[str] | None = None, filter: str | pc.Expression | None = None) -> Scan:
            return self.read(columns, filter, as_of=as_of)

        for _ in range(LOOKS):
            try:
                return look_up(scan_of, self._storage, config, self.schema, keys, partitions)
            except StaleSnapshotError:  # no state was promised: look at a newer one
                continue
        return look_up(scan_of, self._storage, config, self.schema, keys, partitions)

    def check_merge(
        self,
        merge: str | Mapping[str, str] | MergeFunction | None = None,
        *,
        payload: str | None = None,
        real: bool = True,
        deletes: bool = False,
        cases: int = 2000,
        seed: int = 0,
    ) -> LawReport:
        """Whether the table's merge, or another, gives the same rows however writes come about.

        Args:
            merge: a function, its `module:name`, or expressions by column, instead of the table's merge.
            payload: a payload class instead.
            real: try it on rows of the table, as versions of one key; else on records that are made up.
            deletes: with deletes among them.
            cases: how many groups of records to try.

        Raises:
            InvalidOptionError, UnsupportedError, SchemaError: no such merge, or one that does not fit the table.
            MergeFunctionError: the function fails on some of the records.
        """
        from hudi_format.merge.user_merger import merge_text
        from hudi_timeline.verify.check_merge_laws import check_merge

        snapshot = self._snapshot()
        scan = self.read(meta_columns=False) if real else None
        text = None if merge is None else merge_text(merge)
        return check_merge(
            snapshot, scan, merge=text, payload=payload, deletes=deletes, cases=cases, seed=seed
        )

    def __repr__(self) -> str:
        config = self.config
        kind = config.table_type.lower().replace("_", "-")
        return f"HudiTable({config.name!r} at {self.uri}, {kind}, version {config.version})"


def _columns(schema: pa.Schema, columns: Sequence[str] | None, meta_columns: bool) -> Sequence[str] | None:
    if columns is not None or meta_columns:
        return columns
    return [n for n in schema.names if n not in META_COLUMNS]


def _check_query(query: str) -> None:
    if query not in (SNAPSHOT, READ_OPTIMIZED):
        raise InvalidOptionError(
            f"query={query!r} is no query",
            remedy=f"use {SNAPSHOT!r} or {READ_OPTIMIZED!r}; read_incremental() gives changes.",
        )


def _bound(value: Moment, zone: Any) -> str:
    """A bound of a range as an instant; digits of any length are taken as they are."""
    if isinstance(value, str) and value.strip().isdigit():
        return value.strip()
    return parse_query_instant(value, zone)
