"""`HudiTable`: a Hudi table without a JVM.

Each method is one call into the room that does it.  What only some calls need is imported by those: opening a table and
planning a snapshot takes a new process as long as its imports do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_timeline import feature_gate
from hudi_timeline.file_system_view.outlived_snapshot import looks_again
from hudi_timeline.file_system_view.snapshot import CommitCache, load_both, open_snapshot
from hudi_timeline.options.read_options import SNAPSHOT
from hudi_timeline.options.user_options import as_options, call_options, with_waiting
from hudi_timeline.reading import queries
from hudi_timeline.reading.plan import JSON
from hudi_timeline.reading.queries import Moment
from hudi_timeline.reading.scan import Scan
from hudi_timeline.table_config import TableConfig, load
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import named_instant

if TYPE_CHECKING:
    import pandas
    import polars

    from hudi_format.merge.laws import LawReport
    from hudi_format.merge.user_merger import MergeFunction
    from hudi_format.schema.changes import SchemaChange
    from hudi_timeline.display.plots import Plots
    from hudi_timeline.inspector import Inspector
    from hudi_timeline.keys.deduplicate import DedupeResult
    from hudi_timeline.keys.erasure import ErasureReport
    from hudi_timeline.keys.key_history import KeyHistory
    from hudi_timeline.reading.incremental.checkpoints import ConvertedCheckpoint
    from hudi_timeline.reading.point_lookup import KeptIndex, Keys
    from hudi_timeline.services.alter import AlterBuilder
    from hudi_timeline.services.archival import ArchiveResult
    from hudi_timeline.services.buckets.resize_plan import ResizePlan
    from hudi_timeline.services.buckets.resize_tasks import Runner as ResizeRunner
    from hudi_timeline.services.buckets.resizing import ResizeResult
    from hudi_timeline.services.cleaning import CleanResult
    from hudi_timeline.services.compaction.background import BackgroundCompaction
    from hudi_timeline.services.compaction.compaction import CompactionResult
    from hudi_timeline.services.compaction.compaction_withdrawal import OperationCheck, WithdrawalResult
    from hudi_timeline.services.compaction.plan_repair import PlanRepair
    from hudi_timeline.services.compaction.slice_tasks import Runner
    from hudi_timeline.services.compaction.status import CompactionStatus
    from hudi_timeline.services.indexing import IndexDropResult, IndexingResult
    from hudi_timeline.services.lock_doctor import LockReport
    from hudi_timeline.services.replace_properties import PropertiesChange
    from hudi_timeline.services.restore import RestoreResult
    from hudi_timeline.services.rollback import RollbackResult
    from hudi_timeline.services.table_service import ServiceContext
    from hudi_timeline.services.upgrade import UpgradeResult
    from hudi_timeline.timeline.action_metadata import CleanPlan, CompactionPlan
    from hudi_timeline.validation.precommit import Validator
    from hudi_timeline.verify.findings import Finding
    from hudi_timeline.verify.repair import RepairPlan, RepairResult
    from hudi_timeline.writing.computed_rows import MergeBuilder
    from hudi_timeline.writing.result import CommitResult
    from hudi_timeline.writing.writes import Rules

Columns: TypeAlias = str | Sequence[str] | None
Filter: TypeAlias = str | pc.Expression | Sequence[Any] | None
Options: TypeAlias = Mapping[str, object] | None
Validators: TypeAlias = "Sequence[Validator]"


class HudiTable:
    """A table at a path; each read opens a new snapshot.

    Writes take `validators`: functions that see the change before it is committed and may refuse it, see
    `hudi_timeline.validation.precommit`.  Writes of rows take `rules`: conditions by name that each row must meet, text
    or pyarrow expressions, see `hudi_timeline.validation.row_rules`.  With `schema_mode="strict"`
    they change no column of the table (option `hudi.write.schema.mode`).  With `dry_run` a service only gives its plan,
    and a write a result with what it would insert, update, delete and change in the schema; validators are not asked.
    """

    _storage: Storage
    _options: Mapping[str, str]
    _commits: CommitCache
    _kept: tuple[object, KeptIndex] | None = None  # of `get`, with what its last call asked for

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("a HudiTable comes from HudiTable.open(uri) or HudiTable.create(uri, schema, ...)")

    @classmethod
    def _of(cls, storage: Storage, options: Options = None) -> HudiTable:
        """Table in a storage, unchecked; `options` apply to every call, below the call's own."""
        table = cls.__new__(cls)
        table._storage = storage
        table._options = without_hadoop_options(as_options(options))
        table._commits = CommitCache(storage)  # completed instants do not change: each is read once
        return table

    @classmethod
    def open(
        cls, uri: str | PathLike[str] | Storage, *, storage_options: Mapping[str, Any] | None = None,
        options: Options = None, write_retries: int | None = None, lock_wait: float | None = None,
    ) -> HudiTable:  # fmt: skip
        """The table at `uri`: a local path, any URL of fsspec, or an open `Storage`.

        Args:
            storage_options: for fsspec, or by other libraries' names: `key`, `AWS_ACCESS_KEY_ID`, `s3.access-key-id`.
            options: for all calls of this object; Hadoop's of the store (`fs.s3a.access.key`) are translated.
            write_retries: how often a write that lost to another one is run again
                (`hoodie.write.num.retries.on.conflict.failures`).
            lock_wait: seconds to wait for the table's lock, and for another write that runs (`hudi.write.wait_ms`).

        Raises:
            NotAHudiTableError: nothing is there, or something else; inside of a table the remedy names the table.
            CorruptFileError: hoodie.properties cannot be read.
            UnsupportedError: a table that this version would read wrong.
        """
        given = with_waiting(as_options(options), write_retries, lock_wait)
        storage = open_storage(uri, storage_options, options=given)
        feature_gate.readable_config(storage)
        return cls._of(storage, given)

    @classmethod
    def create(
        cls, uri: str | PathLike[str], schema: pa.Schema | object, *, name: str | None = None,
        table_type: str | None = None, record_keys: str | Sequence[str], partition_fields: str | Sequence[str] = (),
        ordering_fields: str | Sequence[str] = (), options: Options = None,
        storage_options: Mapping[str, Any] | None = None, exist_ok: bool = False,
    ) -> HudiTable:  # fmt: skip
        """A new, empty table at `uri`.

        Args:
            schema: the data columns, without meta columns; or data that has them, in any form that a write takes.
            name: of the table; its folder's if not given.
            table_type: COPY_ON_WRITE ("cow"), if not given, or MERGE_ON_READ ("mor").
            record_keys: columns that identify a record within its partition; nested ones by dot path.  One text stands
                for one column, here and in the next two.
            partition_fields: columns of the partition path.
            ordering_fields: the column that decides between records of one key; at most one.
            options: Apache Hudi's write options; those that a table does not store hold for all calls of this object,
                as with `open`, and so does a merge function (`hudi.merge`), which others give too, or allow.
            exist_ok: open the table that is there, if its keys, partitions and type are these, and it has the columns.

        Raises:
            TableExistsError: there is a table already.
            MissingColumnError, SchemaError, OptionError: what was given does not make a table, or not the one that is
                there; or one thing was given as an argument and, otherwise, as an option.
            UnsupportedError: a kind of table that cannot be written yet.
        """
        from hudi_timeline.writing.table_creation import create_table

        storage, kept = create_table(
            uri, schema, name=name, table_type=table_type, record_keys=record_keys,
            partition_fields=partition_fields, ordering_fields=ordering_fields, options=options,
            storage_options=storage_options, exist_ok=exist_ok,
        )  # fmt: skip
        return cls._of(storage, kept)

    @property
    def uri(self) -> str:
        return self._storage.uri

    @property
    def storage(self) -> Storage:
        return self._storage

    @property
    def config(self) -> TableConfig:
        """Current configuration of the table."""
        return TableConfig(load(self._storage).properties)  # a copy, whose entries a caller may change

    @property
    def timeline(self) -> Timeline:
        """Current active timeline."""
        return load_both(self._storage)[1]

    @property
    def schema(self) -> pa.Schema:
        """Newest schema without meta columns, in the table's column order."""
        return open_snapshot(self._storage, commits=self._commits).schema

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def table_type(self) -> str:
        """COPY_ON_WRITE or MERGE_ON_READ."""
        return self.config.table_type

    @property
    def table_version(self) -> int:
        return int(self.config.version)

    @property
    def inspect(self) -> Inspector:
        """Inspection of the table as Arrow tables."""
        from hudi_timeline.inspector import Inspector

        return Inspector(self._storage, self._commits)

    def _given(self, options: Options, operation: str | None = None) -> dict[str, str]:
        return call_options(self._options, options, self.uri, operation)

    def read(
        self, columns: Columns = None, filter: Filter = None, *, query: str = SNAPSHOT, as_of: Moment |
        None = None, meta_columns: bool = queries.META_BY_DEFAULT, on_missing: str | None = None,
        options: Options = None,
    ) -> Scan:  # fmt: skip
        """Rows of the newest snapshot, or of an earlier one.

        Args:
            columns: the columns to give, in that order; None for all, in the table's order.  Partition columns have the
                values of the path; of a merge-on-read table, and from table version 8 on, those of the files.
            filter: the rows to give: text such as "city = 'sf' and ts > 5" (see `hudi_timeline.reading.filters`), a
                pyarrow expression, or tuples as pyarrow.parquet takes them.  It may name columns that are not given.
            query: "snapshot", or "read_optimized": of a merge-on-read table the base files alone.
            as_of: time travel: what the table held at that time.
            meta_columns: whether all columns are those that Apache Hudi gives: the `_hoodie_*` columns first, and
                those whose values come from partition paths last; `columns` and `filter` may name them in any case.
            on_missing: what to do where files of that state are gone, cleaned in most cases: "error"; or "skip", which
                as Apache Hudi gives the rows of what is left, with a warning and `complete` False.
            options: `hoodie.*` read options.  With `hoodie.metadata.enable=true` the metadata table says which files
                there are, and no folder is listed; a file of an active commit that it does not name is an error.

        Raises:
            MissingColumnError, SchemaError: columns or filter do not fit the table.
            HollowCommitError, InstantNotFoundError: the table cannot be read as of that time.
            OptionError: an option that is unknown, has a wrong value or says another query.
        """
        return queries.scan_snapshot(
            self._storage, self._given(options), columns, filter, query=query, as_of=as_of,
            meta_columns=meta_columns, on_missing=on_missing, commits=self._commits,
        )  # fmt: skip

    def read_incremental(
        self, begin: Moment | None, end: Moment | None = None, *, columns: Columns = None, filter: Filter = None,
        query: str = SNAPSHOT, meta_columns: bool = queries.META_BY_DEFAULT, on_missing: str | None = None,
        order: str | None = None, options: Options = None,
    ) -> Scan:  # fmt: skip
        """Rows written after `begin` up to `end`, each once, in its newest state.

        Deletes do not show.  Columns are in the table's order, values are those of the files; in merge-on-read tables
        of what the range wrote, as in Apache Hudi.  Bounds are instants, from version 8 on times of completion.

        Args:
            begin: exclusive; "000" or None for the table's start.
            end: inclusive; None for the newest completed commit.
            query: "read_optimized": of a merge-on-read table the rows that came into its base files in the range.
            on_missing: what to do where commits after `begin` were archived: "error"; "full_scan", which reads the
                whole table as it was at `end` and keeps the rows of the range (where files of that state were cleaned
                the table as it is now, with a warning and `complete` False); or "skip", which as Apache Hudi 0.15 gives
                the rows of what is left on the timeline, with a warning and `complete` False.  Not given, it is "skip"
                for the begin "000" and "error" for any other; from table version 8 on the whole table as it was at
                `end`, which is an error where files of it were cleaned.
            order: what to do at a commit that is still open while later ones are completed: "stable" reads up to it;
                "start" reads past it, and `checkpoint` stays before it, so that the next read gives rows again and
                misses none; "completion" takes bounds as times of completion, waits for nothing and repeats nothing.
                Not given, such a commit is an error that names who blocks.  Logs may bring older rows after newer ones.
            options: `hoodie.read.timeline.holes.resolution.policy` (FAIL, BLOCK or USE_TRANSITION_TIME),
                `hoodie.datasource.read.schema.use.end.instanttime`, and `hoodie.datasource.read.incr.path.glob`,
                `.filters` and `.fallback.fulltablescan.enable`.

        Raises:
            InstantNotFoundError: commits after `begin` are archived; names the oldest instant to begin at.
            ConflictingOptionError: `end` is before `begin`.  HollowCommitError: a commit in the range is still open.
            MissingColumnError, SchemaError: columns or filter do not fit the table.
        """
        return queries.scan_range(
            self._storage, self._given(options), begin, end, columns=columns, filter=filter, query=query,
            meta_columns=meta_columns, on_missing=on_missing, order=order, commits=self._commits,
        )  # fmt: skip

    def read_changes(
        self, begin: Moment | None, end: Moment | None = None, *, columns: Columns = None, filter: Filter = None,
        images: str = JSON, on_missing: str | None = None, order: str | None = None, options: Options =
        None,
    ) -> Scan:  # fmt: skip
        """Change data capture: all changes of the commits after `begin` up to `end`, in order.

        Columns: `op` (i, u, d), `ts_ms` (the commit's instant), `before` and `after`; where a record moves, its delete
        comes first.  The changes are those that the writer logged (`hoodie.table.cdc.enabled`); where it logged none
        they are told by comparing files, so that a table without such a log has a feed too while older files are there.

        Args:
            begin, end, order, options: as of `read_incremental`.
            filter: the changes to give, such as "op = 'd'".
            images: "json": `before` and `after` are JSON texts as Apache Hudi 0.15 gives them; timestamps are
                numbers there.  "struct": they are structs of the table's columns.
            on_missing: what to do where commits after `begin` were archived: "error", or "skip", which gives the rest
                with a warning.  By default "skip" for the begin "000" where anything is left, "error" for any other.

        Raises:
            MissingFileError: a file with rows before or after a change was cleaned; more as of `read_incremental`.
        """
        return queries.scan_changes(
            self._storage, self._given(options), begin, end, columns=columns, filter=filter,
            images=images, on_missing=on_missing, order=order, commits=self._commits,
        )  # fmt: skip

    def history(self, limit: int | None = None) -> pa.Table:
        """Completed writes of the active timeline, newest first, with their statistics."""
        return self.inspect.history(limit)

    @looks_again
    def head(self, n: int = 5) -> pa.Table:
        """Some rows: `read().head(n)`."""
        return self.read().head(n)

    @looks_again
    def count(self, filter: Filter = None) -> int:
        """Number of rows: `read(filter=filter).count()`."""
        return self.read(filter=filter).count()

    @looks_again
    def to_pandas(self, columns: Columns = None, filter: Filter = None) -> pandas.DataFrame:
        """Rows as a pandas frame: `read(columns, filter).to_pandas()`."""
        return self.read(columns, filter).to_pandas()

    @looks_again
    def to_polars(self, columns: Columns = None, filter: Filter = None) -> polars.DataFrame:
        """Rows as a Polars frame: `read(columns, filter).to_polars()`."""
        return self.read(columns, filter).to_polars()

    def latest_offset(self, *, options: Options = None) -> str:
        """Latest offset of an incremental read: its `end`, and the next `begin`; "" for no commit.

        It lies before a commit that is still open, unless times of completion are compared (table version 8 and
        later, or `hoodie.read.timeline.holes.resolution.policy=USE_TRANSITION_TIME`), which need not wait for it.
        """
        return queries.latest_offset(self._storage, self._given(options), commits=self._commits)

    def convert_checkpoint(self, checkpoint: str, *, order: str, to: str) -> ConvertedCheckpoint:
        """Checkpoint of `read_incremental` converted to another order.

        Nothing is missed, or it is an InstantNotFoundError; `repeated` names commits whose rows come once more.
        """
        from hudi_timeline.reading.incremental.checkpoints import convert

        return convert(open_snapshot(self._storage, commits=self._commits), checkpoint, order=order, to=to)

    def get(
        self, keys: Keys, *, partitions: Sequence[str] | None = None, as_of: Moment | None = None,
        meta_columns: bool = queries.META_BY_DEFAULT, options: Mapping[str, str] | None = None,
    ) -> pa.Table:  # fmt: skip
        """Newest rows with the given record keys; unknown keys give none.

        Key ranges and bloom filters in footers tell which files need not be read; in a table without meta columns the
        key columns do.  Of a merge-on-read table logs are looked through.  With `hoodie.metadata.enable=true` the
        record index tells the one file of each key that it has, of the newest state; it stays open between calls
        until the table changes.  Of a Parquet file only pages with the keys, or their rows, are read.

        Args:
            keys: record keys as text (`_hoodie_record_key`), values of the record key column, where there is one, or
                rows that hold the record key columns: a table, a data frame, or a list of dicts.
            partitions: paths of the partitions to look in; None for all.
            as_of: the rows as they were at that time.
            meta_columns, options: as of `read`.

        Raises:
            MissingColumnError: a table without one of the record key columns.  Others as `read`.
        """
        from hudi_timeline.reading.point_lookup import KeptIndex, newest_rows

        given = self._given(options)
        kept = self._kept  # read once: another thread may ask for something else meanwhile
        if kept is None or kept[0] != (given, meta_columns):
            self._kept = kept = (given, meta_columns), KeptIndex()
        return newest_rows(
            partial(self.read, as_of=as_of, meta_columns=True), self._storage, keys, partitions, self._commits,
            given, kept[1] if as_of is None else None, meta_columns=meta_columns,
        )  # fmt: skip

    def duplicates(
        self, *, partitions: Sequence[str] | None = None, across_partitions: bool = False, options: Options = None
    ) -> pa.Table:  # fmt: skip
        """Rows whose key stands more than once in its partition, or in the table."""
        from hudi_timeline.keys.duplicates import duplicates

        return duplicates(self._storage, self._given(options), partitions, across_partitions, self._commits)

    def deduplicate(
        self, *, partitions: Sequence[str] | None = None, keep: str = "merge", across_partitions: bool = False,
        dry_run: bool = False, options: Options = None,
    ) -> DedupeResult:  # fmt: skip
        """Leave one row of each key, in one commit; `keep` says which, as `DedupeType` does."""
        from hudi_timeline.keys.deduplicate import deduplicate

        context = self._service(options, dry_run=dry_run)
        return deduplicate(
            context, partitions, kind=keep, across_partitions=across_partitions, dry_run=dry_run
        )

    def key_history(
        self, keys: Keys, *, partitions: Sequence[str] | None = None, options: Options = None
    ) -> KeyHistory:
        """Each commit that touched the keys with the rows before and after, told by files."""
        from hudi_timeline.keys.key_history import key_history

        return key_history(self._storage, self._given(options), keys, partitions, commits=self._commits)

    def erasure_report(self, keys: Keys, *, options: Options = None) -> ErasureReport:
        """Every file below the table that holds the keys, and the services to erase them."""
        from hudi_timeline.keys.erasure import erasure_report

        return erasure_report(self._storage, self._given(options), keys, commits=self._commits)

    def erase(self, keys: Keys, *, dry_run: bool = False, options: Options = None) -> ErasureReport:
        """Erase keys from every file by the plan of `erasure_report`; `by_hand` says what is left."""
        from hudi_timeline.keys.erasure import erase

        look = partial(self.erasure_report, keys, options=options)
        return look() if dry_run else erase(self, look)

    def check_merge(
        self, merge: str | Mapping[str, str] | MergeFunction | None = None, *, payload: str | None = None,
        real: bool = True, deletes: bool = False, cases: int = 2000, seed: int = 0,
    ) -> LawReport:  # fmt: skip
        """Check that a merge gives the same rows in any order of writes.

        Args:
            merge: a function, its `module:name`, or expressions by column, instead of the table's merge.
            payload: a payload class instead.
            real: try it on rows of the table, as versions of one key; else on records that are made up.
            deletes, cases: with deletes among them; how many groups of records to try.

        Raises:
            InvalidOptionError, UnsupportedError, SchemaError: no such merge, or one that does not fit the table.
            MergeFunctionError: the function fails on some of the records.
        """
        from hudi_timeline.verify.check_merge_laws import check_merge

        snapshot = open_snapshot(self._storage, commits=self._commits)
        rows = self.read() if real else None
        return check_merge(snapshot, rows, merge, payload=payload, deletes=deletes, cases=cases, seed=seed)

    def _write(
        self, operation: str, data: object, options: Options, validators: Validators, rules: Rules = None,
        schema_mode: str | None = None, dry_run: bool = False,
    ) -> CommitResult:  # fmt: skip
        from hudi_timeline.writing.writes import with_schema_mode, write

        given = with_schema_mode(self._given(options, operation), schema_mode)
        return write(self._storage, operation, data, given, validators, rules, self._commits, dry_run=dry_run)

    def insert(
        self, data: object, *, options: Options = None, validators: Validators = (), rules: Rules = None,
        schema_mode: str | None = None, dry_run: bool = False,
    ) -> CommitResult:  # fmt: skip
        """Add rows without key lookup; existing keys become duplicates."""
        return self._write("insert", data, options, validators, rules, schema_mode, dry_run)

    def upsert(
        self, data: object, *, options: Options = None, validators: Validators = (), rules: Rules = None,
        schema_mode: str | None = None, dry_run: bool = False,
    ) -> CommitResult:  # fmt: skip
        """Insert rows with new keys in their partition, update the others.

        With `hoodie.datasource.write.operation=upsert_prepped` rows that were read from the table
        (`read(meta_columns=True)`) go back to where their meta columns say, and no key is looked up.
        """
        return self._write("upsert", data, options, validators, rules, schema_mode, dry_run)

    def bulk_insert(
        self, data: object, *, options: Options = None, validators: Validators = (), rules: Rules = None,
        schema_mode: str | None = None, dry_run: bool = False,
    ) -> CommitResult:  # fmt: skip
        """Add rows in one streaming pass, into new files only."""
        return self._write("bulk_insert", data, options, validators, rules, schema_mode, dry_run)

    def insert_overwrite(
        self, data: object, *, options: Options = None, validators: Validators = (), rules: Rules = None,
        schema_mode: str | None = None, dry_run: bool = False,
    ) -> CommitResult:  # fmt: skip
        """Replace the partitions of the rows by the rows."""
        return self._write("insert_overwrite", data, options, validators, rules, schema_mode, dry_run)

    def insert_overwrite_table(
        self, data: object, *, options: Options = None, validators: Validators = (), rules: Rules = None,
        schema_mode: str | None = None, dry_run: bool = False,
    ) -> CommitResult:  # fmt: skip
        """Replace all rows of the table; time travel still reads earlier states."""
        return self._write("insert_overwrite_table", data, options, validators, rules, schema_mode, dry_run)

    def update(
        self, set: Mapping[str, object], where: Filter = None, *, options: Options = None,
        validators: Validators = (), dry_run: bool = False,
    ) -> CommitResult:  # fmt: skip
        """Set columns of the rows that pass a filter, in one commit.

            trips.update({"fare": pc.multiply(pc.field("fare"), 2), "note": None}, "city = 'oslo'")

        Args:
            set: by column a Python value, or a pyarrow expression over the row's columns.
            where: as the filter of `read`; None for all rows, which are held in memory.

        Raises:
            SchemaError: a column of keys or partitions, or a value that the column does not hold.
            MissingColumnError: a column that the table lacks.
            UnsupportedError: a table whose rows cannot be written as they are computed.
        """
        from hudi_timeline.writing.computed_rows import update

        given = self._given(options, "upsert")
        return update(self.read, self._storage, set, where, given, validators, dry_run=dry_run)

    def merge(self, source: object, *, options: Options = None) -> MergeBuilder:
        """Merge of rows into the table by record key; its clauses say what becomes of them.

        trips.merge(rows).when_matched_update().when_not_matched_insert().execute()
        """
        from hudi_timeline.writing.computed_rows import merge_builder

        given = self._given(options, "upsert")
        return merge_builder(self.read, self._storage, source, given, lambda: self.schema)

    def delete(
        self, rows_or_filter: object, *, options: Options = None, validators: Validators = (), dry_run: bool = False,
    ) -> CommitResult:  # fmt: skip
        """Delete rows, by data with key and partition columns, or by a filter.

        A filter is a `pyarrow.compute.Expression` or a text such as `"city = 'oslo' and fare < 3"`.  It is asked again
        where others commit before the rows that it found are deleted.
        """
        if not isinstance(rows_or_filter, (pc.Expression, str)):
            return self._write("delete", rows_or_filter, options, validators, dry_run=dry_run)
        from hudi_timeline.writing.writes import delete_where

        given = self._given(options, "delete")
        return delete_where(self._storage, rows_or_filter, given, validators, self.read, dry_run=dry_run)

    def alter(self, *, options: Options = None) -> AlterBuilder:
        """Changes of columns: add, rename, drop, widen, move; files stay (schema on read).

        trips.alter().add("note", "string", after="city").rename("fare", "price").execute()
        """
        from hudi_timeline.services.alter import alter_of

        return alter_of(self._storage, self._given(options))

    def delete_partitions(
        self, partitions: str | Iterable[str], *, missing_ok: bool = False, options: Options = None,
        validators: Validators = (), dry_run: bool = False,
    ) -> CommitResult:  # fmt: skip
        """Delete all rows of partitions, by path; `*` in what is no path matches any text.

        Args:
            missing_ok: names that are no partitions give a warning and no error, as of Apache Hudi.

        Raises:
            UnknownPartitionError: a name or pattern that no partition answers to; nothing was deleted.
        """
        from hudi_timeline.writing.writes import delete_partitions

        given = self._given(options, "delete_partition")
        return delete_partitions(self._storage, partitions, given, validators, missing_ok, dry_run=dry_run)

    def schema_changes(
        self, data: object, *, operation: str = "upsert", options: Options = None
    ) -> tuple[SchemaChange, ...]:
        """Schema changes of a write of this data, without writing.

        What the write itself would refuse before it begins is refused: SchemaError, OptionError ...
        """
        from hudi_timeline.writing.writes import schema_changes

        return schema_changes(self._storage, data, operation, self._given(options), commits=self._commits)

    def _service(self, options: Options, *, dry_run: bool = False) -> ServiceContext:
        from hudi_timeline.services.table_service import ServiceContext

        return ServiceContext.of(self._storage, self._given(options), dry_run=dry_run)

    def clean(
        self, *, plan: CleanPlan | None = None, instant: str = "", dry_run: bool = False, options: Options = None,
    ) -> CleanResult:  # fmt: skip
        """Delete file versions outside the retention policy; a write does this itself.

        Args:
            plan: of an earlier dry run; made anew if not given.
            instant: of one pending cleaning to finish; else all are, but those that others began within a day.
            options: `hoodie.cleaner.*`, for example `hoodie.cleaner.commits.retained`.

        Raises:
            InstantNotFoundError, UnsupportedError, CorruptFileError, MissingFileError: nothing was deleted.
        """
        from hudi_timeline.services.cleaning import clean

        return clean(self._service(options, dry_run=dry_run), plan=plan, instant=instant, dry_run=dry_run)

    def vacuum(self, *, dry_run: bool = False, options: Options = None) -> CleanResult:
        """Alias of `clean`, by the name that other table formats have for it."""
        return self.clean(dry_run=dry_run, options=options)

    def archive(self, *, dry_run: bool = False, options: Options = None) -> ArchiveResult:
        """Move old instants to the archive; a write does this itself.

        Options are `hoodie.keep.min.commits`, `hoodie.keep.max.commits` ...  After an error nothing was moved.
        """
        from hudi_timeline.services import archival

        return archival.archive(self._service(options, dry_run=dry_run), dry_run=dry_run)

    def compact(
        self, *, plan: CompactionPlan | None = None, mode: str = "schedule_and_execute", instant: str | None = None,
        only_if_due: bool = False, dry_run: bool = False, options: Options = None, run: Runner | None = None,
    ) -> CompactionResult:  # fmt: skip
        """Merge log files into base files: run pending compactions, then plan one and run it.

        Writers and readers go on.  After an error the plan is pending as before.

        Args:
            plan: of an earlier dry run; made anew if not given.
            mode: "schedule" or "execute" for one of the two.  instant: to execute; else all no other program began.
            only_if_due: plan nothing before `hoodie.compact.inline.trigger.strategy` says so.
            options: `hoodie.compaction.*`.  run: runs the tasks; None for threads, `hudi_spark.compact` has Spark's.

        Raises:
            UnsupportedError, CorruptFileError, MissingFileError: it would do harm; nothing is lost.
            ConcurrentWriterError: another process executes the plan, or an earlier write is still open.
        """
        from hudi_timeline.services.compaction import compaction

        context = self._service(options, dry_run=dry_run)
        return compaction.compact(
            context, mode=mode, plan=plan, instant=instant, only_if_due=only_if_due, dry_run=dry_run, run=run
        )

    def resize_buckets(
        self, num_buckets: int | None = None, *, partitions: Collection[str] | None = None, engine: str | None = None,
        overwrite: bool = False, mode: str = "schedule_and_execute", plan: ResizePlan | None = None,
        dry_run: bool = False, options: Options = None, run: ResizeRunner | None = None,
    ) -> ResizeResult:  # fmt: skip
        """Split and merge the buckets of a bucket index, each by itself, without a shuffle.

        With a number the buckets of all partitions are split into as many each; without one, full buckets are split and
        nearly empty ones are merged, by their sizes.

        Args:
            num_buckets: of each partition: a multiple of what it is, or of the engine SIMPLE any number by `overwrite`.
            partitions: only these.
            engine: `EXTENDIBLE_HASHING` makes the partitions of a table with the engine SIMPLE differ from here on:
                Apache Hudi reads it then, and writes it no more.
            mode: "schedule" plans a clustering of rings, "execute" executes those that are pending, of Apache Hudi too.
            plan: an earlier dry run's; made anew if not given.
            run: runs the tasks elsewhere than on threads of this process.

        Raises:
            UnsupportedError: a table without a bucket index, or whose keys stand in buckets of other settings.
            OptionError: nothing says what to do, or the buckets cannot become what is asked for.
            WriteConflictError: others wrote to the same buckets meanwhile; nothing was changed.
        """
        from hudi_timeline.services.buckets import resizing

        return resizing.resize(
            self._service(options, dry_run=dry_run), num_buckets=num_buckets, partitions=partitions, engine=engine,
            overwrite=overwrite, mode=mode, plan=plan, dry_run=dry_run, run=run,
        )  # fmt: skip

    def optimize(self, *, dry_run: bool = False, options: Options = None) -> CompactionResult:
        """Alias of `compact`, by the name that other table formats have for it."""
        return self.compact(dry_run=dry_run, options=options)

    def log_compact(
        self, *, mode: str = "schedule_and_execute", instant: str | None = None, dry_run: bool = False,
        options: Options = None, run: Runner | None = None,
    ) -> CompactionResult:  # fmt: skip
        """Merge the log blocks of file slices that have many into one each; no base file is made.

        Arguments and errors as of `compact`; `hoodie.log.compaction.blocks.threshold` says how many.  It gives way to
        writes: WriteConflictError where one came between.
        """
        from hudi_timeline.services.compaction.log_compaction import log_compact

        return log_compact(
            self._service(options, dry_run=dry_run), mode=mode, instant=instant, dry_run=dry_run, run=run
        )

    def compact_in_background(
        self, *, seconds: float = 5.0, options: Options = None, run: Runner | None = None
    ) -> BackgroundCompaction:
        """Compact on a thread of this process while it writes, until the result is closed.

        Writes are to leave it to the thread: `hoodie.compact.inline=false`, or `hoodie.compact.schedule.inline=true`
        to plan; else the thread plans where no write is open.

        Args:
            seconds: between two looks for what is due and what is pending.
            options: as of `compact`.  run: as of `compact`.

        Raises:
            UnsupportedError: no merge-on-read table.
        """
        from hudi_timeline.services.compaction.background import BackgroundCompaction

        return BackgroundCompaction(lambda: self._service(options), seconds=seconds, run=run)

    def build_index(
        self, partitions: str | Collection[str] = (), *, mode: str = "schedule_and_execute", instant: str | None = None,
        dry_run: bool = False, options: Options = None,
    ) -> IndexingResult:  # fmt: skip
        """Build partitions of the metadata table beside writers; readers see complete ones.

        "files", "column_stats", "bloom_filters", "record_index"; none: what is pending;
        `mode`, `instant` and errors as of `compact`; a plan that was there stays.
        """
        from hudi_timeline.services import indexing

        context = self._service(options, dry_run=dry_run)
        return indexing.build_index(context, partitions, mode=mode, instant=instant, dry_run=dry_run)

    def drop_index(
        self, partitions: str | Collection[str], *, dry_run: bool = False, options: Options = None
    ) -> IndexDropResult:
        """Drop indexes and pending builds of them; "files" drops the metadata table."""
        from hudi_timeline.services import indexing

        return indexing.drop_index(self._service(options), partitions, dry_run=dry_run)

    def rebuild_index(self, *, options: Options = None) -> int:
        """Number of file groups that an index of one's own, which options name, was made anew of."""
        from hudi_timeline.custom_index.indexed_table import rebuild_index

        return rebuild_index(self._storage, self._given(options))

    def unschedule_compaction(
        self, instant: str, *, partition: str | None = None, file_id: str | None = None, dry_run: bool = False,
        options: Options = None,
    ) -> WithdrawalResult:  # fmt: skip
        """Withdraw a pending compaction, or one file group of it; those written to since stay in it.

        Raises:
            UnsupportedError: all of them were written to since: the plan is to be executed.
            ConcurrentWriterError: it is being executed, or a write is at work.
            InstantNotFoundError: no such plan is pending, or it has no such file group.
        """
        from hudi_timeline.services.compaction import compaction_withdrawal

        context = self._service(options, dry_run=dry_run)
        return compaction_withdrawal.unschedule(
            context, instant, partition=partition, file_id=file_id, dry_run=dry_run
        )

    def validate_compaction(self, instant: str, *, options: Options = None) -> tuple[OperationCheck, ...]:
        """Check of each file group of a pending compaction, whether it can be executed.  Read-only."""
        from hudi_timeline.services.compaction import compaction_withdrawal

        return compaction_withdrawal.validate(self._service(options), instant)

    def repair_compaction(
        self, instant: str, *, accept_missing: bool = False, dry_run: bool = False, options: Options = None
    ) -> PlanRepair:
        """Plan file groups of a pending compaction anew that have other files than it names.

        Args:
            accept_missing: files that only the plan names, and that are gone, are not needed.

        Raises:
            InstantNotFoundError, ConcurrentWriterError: no such plan is pending, or it or a write is at work.
            MissingFileError: a file of its slices is gone; nothing is changed.
        """
        from hudi_timeline.services.compaction import plan_repair

        context = self._service(options, dry_run=dry_run)
        return plan_repair.repair(context, instant, accept_missing=accept_missing, dry_run=dry_run)

    def compaction_status(self, *, options: Options = None) -> CompactionStatus:
        """Status of compaction: log files, and the lag of read-optimized queries.  Read-only."""
        from hudi_timeline.services.compaction import compaction

        return compaction.status(self._service(options))

    def lock_report(self, *, options: Options = None) -> LockReport:
        """Holder of the table's lock, and whether that one is alive.

        Args:
            options: `hoodie.write.lock.*`, as the writers have them.

        Raises:
            LockError: the lock's server gives no answer.
        """
        from hudi_timeline.services import lock_doctor

        return lock_doctor.lock_report(self._service(options))

    def break_lock(self, *, force: bool = False, options: Options = None) -> LockReport:
        """End a lock that is left over; its holder, if it lives, fails before it publishes.

        Args:
            force: also where the holder is alive, or where that cannot be told.

        Raises:
            LockError: its holder is alive, or a lock of this kind ends with its process.
        """
        from hudi_timeline.services import lock_doctor

        return lock_doctor.break_lock(self._service(options), force=force)

    def savepoint(
        self, instant: Moment | None = None, *, user: str = "", comment: str = "", dry_run: bool = False,
        options: Options = None,
    ) -> str:  # fmt: skip
        """Create a savepoint, which protects a commit from cleaning and archival.

        Args:
            instant: of a completed commit, its result, or a time, for the newest commit up to it; the newest of all
                if not given.  It is given back.

        Raises:
            InstantNotFoundError: there is no such commit on the active timeline.
            OptionError: it is savepointed already, or its files may be cleaned away.
        """
        from hudi_timeline.services import savepoints

        context = self._service(options, dry_run=dry_run)
        return savepoints.save(context, instant, user=user, comment=comment, dry_run=dry_run)

    def delete_savepoint(
        self, instant: str | CommitResult, *, dry_run: bool = False, options: Options = None
    ) -> None:
        """Delete a savepoint; InstantNotFoundError where there is none."""
        from hudi_timeline.services import savepoints

        savepoints.give_up(self._service(options, dry_run=dry_run), named_instant(instant), dry_run=dry_run)

    @property
    def savepoints(self) -> list[str]:
        """Savepointed commits, oldest first."""
        return self.timeline.savepoints

    def restore(self, instant: Moment, *, dry_run: bool = False, options: Options = None) -> RestoreResult:
        """Restore the table to a commit; later writes are undone permanently.

        With writers that overlapped, a commit after `instant` may have begun before it: what it wrote is undone too.

        Args:
            instant: of a completed commit whose files are all there (savepoint one to keep them), its result, or a
                time, for the newest commit up to it.

        Raises:
            InstantNotFoundError: there is no such commit on the active timeline.
            MissingFileError: files of that state were cleaned away.
            OptionError: a later commit is savepointed.
        """
        from hudi_timeline.services import restore

        return restore.restore(self._service(options), instant, dry_run=dry_run)

    def rollback(
        self, instant: str | CommitResult | None = None, *, dry_run: bool = False, options: Options = None
    ) -> RollbackResult:
        """Roll back the newest write, a pending one, or all dead ones, permanently.

        An inflight compaction goes back to its plan.  In log files a command block takes back what the write appended.

        Args:
            instant: of the write, completed or not.  Without it: all pending writes whose writers are dead, and
                rollbacks that were begun and not finished.

        Raises:
            InstantNotFoundError, ConcurrentWriterError: there is no such active instant, or its writer is alive.
            OptionError, UnsupportedError, MissingFileError: it is savepointed, later writes stand on it, or what was
                before it is cleaned away.
        """
        from hudi_timeline.services import rollback

        instant = None if instant is None else named_instant(instant)
        return rollback.rollback(self._service(options, dry_run=dry_run), instant, dry_run=dry_run)

    def upgrade(self, to: int = 6, *, dry_run: bool = False, options: Options = None) -> UpgradeResult:
        """Upgrade from version 5 to 6; Apache Hudi before 0.14 cannot read the table then.

        Failed writes are rolled back before.  A crash leaves a table of the old version; the same call goes on.

        Raises:
            UnsupportedError: another version; or log files are to go down, which version 5 would have in another form.
            ConcurrentWriterError: a write is running.
        """
        from hudi_timeline.services import upgrade

        return upgrade.change_version(self._service(options), to, up=True, dry_run=dry_run)

    def downgrade(self, to: int = 5, *, dry_run: bool = False, options: Options = None) -> UpgradeResult:
        """Downgrade from version 6 to 5, for Apache Hudi before 0.14; drops the metadata table.

        Errors and crashes as of `upgrade`.
        """
        from hudi_timeline.services import upgrade

        return upgrade.change_version(self._service(options), to, up=False, dry_run=dry_run)

    def overwrite_properties(
        self, new: Mapping[str, str], *, dry_run: bool = False, force: bool = False
    ) -> PropertiesChange:
        """Replace all entries of hoodie.properties by `new`; the checksum is computed.

        A table becomes merge on read by `hoodie.table.type` alone, and copy on write where no log file holds rows.

        Args:
            force: take also lost and unknown entries, and those that contradict the table's files.

        Raises:
            OptionError, UnsupportedError: entries that do not fit, in `details["errors"]`; or rows would be hidden.
        """
        from hudi_timeline.services import replace_properties

        return replace_properties.overwrite_properties(self._service(None), new, dry_run=dry_run, force=force)

    def verify(self, *, deep: bool = False, workers: int | None = None) -> list[Finding]:
        """All findings of the table, worst first; [] for a sound one. Read-only.

        The timeline's states and files, names, block framing, sizes and counts against commits, hoodie.properties, the
        metadata table against storage, plans, the archive.  What a dead write left is no fault.

        Args:
            deep: also read all data: rows against statistics, key ranges and bloom filters, every log block decoded,
                keys that are there twice, the metadata table's indexes against rows.
            workers: how many files to look at at once; None for a number that fits the machine and the store.
        """
        from hudi_timeline.verify.verify import verify

        return verify(self._storage, deep=deep, workers=workers, scan_of=self.read)

    def repair(
        self, *, plan: RepairPlan | None = None, dry_run: bool = False, deep: bool = False,
        only: Collection[str] | None = None, keep: bool = True, options: Options = None,
    ) -> RepairResult:  # fmt: skip
        """Repair findings where it is safe; the plan gives reasons for the others.

        Under the table's lock, and not while a writer is at work.  What is taken away or replaced is kept in
        `.hoodie/.repair_backup_<time>/`, with the plan.  After a crash run it again.

        Args:
            plan: of an earlier dry run: only what is in it is done, and only what is still so.
            deep: also by what a deep verification finds.
            only: codes of findings, or paths, to repair; None for all.
            keep: False to delete what is taken away.
            options: of the lock: `hoodie.write.lock.*`.

        Raises:
            ConcurrentWriterError, LockError: a writer is at work.  OptionError: a code that there is not.
        """
        from hudi_timeline.verify.repair import repair

        return repair(
            self._storage, plan=plan, dry_run=dry_run, deep=deep, only=only, keep=keep,
            options=self._given(options), scan_of=self.read,
        )  # fmt: skip

    @property
    def plot(self) -> Plots:
        """Plots of the table: `timeline()`, `file_sizes()`, `log_backlog()`, `key_ranges()`."""
        from hudi_timeline.display.plots import Plots

        return Plots(self.inspect, self.name)

    def _repr_html_(self) -> str:
        from hudi_timeline.display.html_view import facts_view, schema_rows, titled

        facts = [("at", self.uri), *self.config.facts(), ("columns", schema_rows(self.schema))]
        return titled("HudiTable", facts_view([*facts, ("newest writes", self.inspect.newest_writes())]))

    def __repr__(self) -> str:
        config = self.config
        kind = config.table_type.lower().replace("_", "-")
        return f"HudiTable({config.name!r} at {self.uri}, {kind}, version {config.version})"
