"""Reader of a file slice: base file rows merged with log records.

The records of the logs are held in memory, one per key, or on disk beyond the limit; the base file streams past
them.  Order: base rows in their order, changed ones in place, then the records that have no base row.

Source: HoodieMergedLogRecordScanner and RecordMergingFileIterator of Apache Hudi 0.15; checked on the golden tables.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format._checks import text_list
from hudi_format.arrow.arrays import filtered, one_array
from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import HudiError, MissingColumnError
from hudi_format.file_slice.base_file import open_other
from hudi_format.file_slice.base_rows import BATCH_ROWS, BaseFileRead, BaseFileReader, over_base
from hudi_format.file_slice.slice_entries import SliceEntries, open_log
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import nested_column, record_keys
from hudi_format.log.corruption import CommittedRange
from hudi_format.log.scanner import BlockScope
from hudi_format.merge import record_merger
from hudi_format.merge.log_entries import Patches
from hudi_format.merge.log_records import MergeCounts
from hudi_format.merge.ordering import null_is_zero, sequences
from hudi_format.merge.overlay import written_out
from hudi_format.merge.partial_update import has_mask, is_has
from hudi_format.merge.payloads import IS_DELETED, MergeRule, Order
from hudi_format.merge.user_merger import Chains, custom_of
from hudi_format.model import FileSlice, LogFile
from hudi_format.parquet.row_group_filter import RowGroupFilter
from hudi_format.schema.internal_schema import ReadEvolution
from hudi_format.schema.meta_fields import META_COLUMNS, RECORD_KEY
from hudi_format.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class SliceMerge:
    """Merge settings of a read, the same for all slices; picklable.

    Attributes:
        rule: of the table's payload or merge mode.
        ordering_field: column of the ordering values, a nested one by dot path; None for none.
        scope: whose log blocks count.
        key_spec: how keys are made where the table fills no meta columns; else None.
        limit: the memory for the records of a slice's logs; None for no limit.
        unmerged: base rows stay as they are, and the logs' records, one per key, follow them.
        more_ordering: further columns that decide where `ordering_field` is equal (table version 9).
        evolution: how older blocks are read by column id, where the table has a schema history; else None.
        float_digits: floats that are doubles now keep the digits that they print with in records of the log, and on
            every level of base files, as in Apache Hudi 1.2 (table version 9); else those of records and inside of
            other columns are the doubles nearest to them, but for records of version 6 that are read by column id.
    """

    rule: MergeRule
    ordering_field: str | None = None
    scope: BlockScope = field(default_factory=BlockScope)
    key_spec: KeySpec | None = None
    limit: MemoryLimit | None = None
    unmerged: bool = False
    more_ordering: tuple[str, ...] = ()
    evolution: ReadEvolution | None = None
    float_digits: bool = False

    @property
    def key_columns(self) -> list[str]:
        """Columns of the record key."""
        if self.key_spec is None:
            return [RECORD_KEY]
        return list(dict.fromkeys(k.partition(".")[0] for k in self.key_spec.key_fields))

    def chains(self) -> Chains | None:
        """The chains of a user-defined merge, else None."""
        custom = custom_of(self.rule)
        return None if custom is None else Chains(custom, self.ordering_field)

    def merge_schema(self, wanted: pa.Schema, table: pa.Schema) -> pa.Schema:
        """Nullable columns that a merge must read for the wanted ones.

        Args:
            wanted: columns of the result.
            table: all columns, with meta columns.
        """
        names = self.key_columns
        custom = custom_of(self.rule)
        if custom is not None:
            names += custom.columns_for(wanted.names, table.names, self.ordering_field)
        else:
            names += [f.partition(".")[0] for f in (self.ordering_field, *self.more_ordering) if f]
        names += [IS_DELETED, self.rule.delete_field]
        more = [table.field(n) for n in dict.fromkeys(names) if n in table.names and n not in wanted.names]
        return pa.schema([f.with_nullable(True) for f in (*wanted, *more)])

    def handed_on(self, schema: pa.Schema) -> list[str]:
        """Text columns of base rows that the merge ignores, and that may stay dictionaries."""
        if custom_of(self.rule) is not None:
            return []
        ordering = (f.partition(".")[0] for f in (self.ordering_field, *self.more_ordering) if f)
        seen = {*self.key_columns, *ordering, IS_DELETED, self.rule.delete_field}
        return [f.name for f in schema if pa.types.is_string(f.type) and f.name not in seen]

    @property
    def stored_may_be_skipped(self) -> bool:
        """Whether base rows do not affect the result of a log record."""
        # From table version 8 on a log may have partial updates, which leave some of the base row's values.
        return self.rule.against_stored == Order.LATER and not self.rule.fills and not self.scope.grouped

    @property
    def skipped_by(self) -> frozenset[str] | None:
        """Columns whose filters may drop base rows before the merge; None for all.

        Where a merge looks at base rows, that is the record key: the row that comes of a base row and of a log's
        record has the key of both, so that a filter does not keep it either.  Not the key's own fields, of which
        different values (null and its text) may make one key.  A merge of the user's may give any values.
        """
        if self.stored_may_be_skipped:
            return None
        by_key = self.key_spec is None and custom_of(self.rule) is None
        return frozenset([RECORD_KEY]) if by_key else frozenset()

    def stored_ordering(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray | None:
        """Ordering values of base rows; None where they are not compared."""
        found = self.ordering(rows)
        if found is None or not self.rule.by_value or self.scope.grouped:
            return found
        # What Apache Hudi 0.15 makes of a log's record is another Java class than what it makes of a base row.
        other = (
            "." in (self.ordering_field or "")
            or pa.types.is_decimal(found.type)
            or pa.types.is_date(found.type)
        )
        return None if other else found

    @property
    def whole_records(self) -> bool:
        """Whether a merged row is the base row or the log's record, whole."""
        # From table version 8 on a log may have partial updates.
        return not self.rule.fills and not self.scope.grouped

    def deciding(self, schema: pa.Schema) -> pa.Schema:
        """Columns of log records that say which base rows they change."""
        if custom_of(self.rule) is not None:
            return schema
        needed = self.merge_schema(pa.schema([]), schema)
        return pa.schema([f for f in schema if f.name in needed.names])

    def compared(self, schema: pa.Schema) -> pa.Schema:
        """Columns of base rows that say so: record keys, and ordering values if compared."""
        names = self.key_columns
        if self.whole_records and self.rule.against_stored != Order.LATER:
            names += [f.partition(".")[0] for f in (self.ordering_field, *self.more_ordering) if f]
        return pa.schema([f for f in schema if f.name in names])

    def keys(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        return rows.column(RECORD_KEY) if self.key_spec is None else record_keys(rows, self.key_spec)

    def ordering(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray | None:
        """Ordering values, as structs for several fields; None without ordering fields.

        Raises:
            SchemaError: a value that is none of its kind.
        """
        if not self.ordering_field:
            return None
        if not self.more_ordering:
            column = nested_column(rows, self.ordering_field)
            if self.rule.sequence and column is not None:
                return sequences(column)
            return null_is_zero(column) if self.rule.tombstones_compare else column
        found = [nested_column(rows, f) for f in (self.ordering_field, *self.more_ordering)]
        columns = [one_array(c) for c in found if c is not None]
        if len(columns) < len(found):
            return None
        return pa.StructArray.from_arrays(columns, [str(n) for n in range(len(columns))])


class LogRecords:
    """Log records of a slice, ready to meet base rows; a context manager, as it may spill.

    Args:
        files: the slice's log files, in any order.
        schema: the columns, as `SliceMerge.merge_schema` gives them.
        committed: what completed instants say that they wrote, by path; see `SliceLog`.

    Attributes:
        counts: what was read and merged so far.

    Raises:
        MissingFileError, CorruptFileError: naming the log file, and where in it.
        SchemaError: a column of a log that does not fit the table's.
        UnsupportedError: a kind of block that cannot be read yet.
        SpillError: the records exceed the limit, and the folder for them is full.
    """

    def __init__(
        self,
        storage: Storage,
        files: Sequence[LogFile],
        merge: SliceMerge,
        schema: pa.Schema,
        *,
        committed: Mapping[str, Sequence[CommittedRange]] | None = None,
    ) -> None:
        self._merge = merge
        self._schema = schema
        with open_log(storage, files, merge, committed) as log:
            parts = SliceEntries(merge, schema, log.blocks)
            self._records = parts.records(files)
            try:
                self.counts = parts.add_all(log, storage.uri)
            except BaseException:
                self._records.close()
                raise

    @property
    def spilled(self) -> bool:
        """Whether the records were spilled; then `meet` must see the base rows' keys first."""
        return self._records.spilled

    @property
    def merges(self) -> bool:
        """Whether there are records to merge."""
        return not self._merge.unmerged

    @property
    def rows_at_once(self) -> int:
        """Number of base rows per merge step."""
        return self._records.rows_at_once

    def meet(self, base: Iterable[pa.Table]) -> None:
        """Take base rows in order, with the columns `SliceMerge.key_columns` at least."""
        self._records.meet(self._merge.keys(part) for part in base)

    def merged(self, base: pa.Table) -> pa.Table:
        """Base rows merged with the log records of their keys.

        Args:
            base: the columns of the schema, those of `SliceMerge.handed_on` in dictionaries or not.
        """
        return written_out(self._merged(base))

    def changed(self, base: pa.Table) -> np.ndarray:
        """Places of the base rows that `merged` changes, or may change (int64, ascending).

        Args:
            base: the columns of `SliceMerge.compared`.
        """
        patches = self._patches(base)
        if patches is None:
            return np.zeros(0, np.int64)
        take = self._decide(base, patches).take if self._merge.whole_records else patches.found
        return np.flatnonzero(take >= 0)

    def replacements(self, base: pa.Table) -> pa.Table:
        """Rows that `merged` makes of those base rows.

        Args:
            base: the columns of `SliceMerge.compared` where `SliceMerge.whole_records`; else those of the schema.
        """
        patches = self._patches(base)
        if patches is None:
            return self._schema.empty_table()
        if not self._merge.whole_records:
            hits = np.flatnonzero(patches.found >= 0)
            counts = None if patches.counts is None else patches.counts[hits]
            return self._with(
                base.take(pa.array(hits)), replace(patches, found=patches.found[hits], counts=counts)
            )
        met = self._decide(base, patches)
        keep = met.take >= 0
        if met.gone is not None:
            keep &= ~met.gone
            self.counts.deleted += int(met.gone.sum())
        taken = met.take[keep]
        self.counts.updated += len(taken)
        return patches.entries.rows.select(self._schema.names).take(pa.array(taken))

    def _patches(self, base: pa.Table) -> Patches | None:
        return self._records.patches(self._merge.keys(base)) if self.merges else None

    def _decide(self, base: pa.Table, patches: Patches) -> record_merger.Decision:
        entries = patches.entries
        return record_merger.decide(
            patches.found, self._merge.rule,
            stored_ordering=self._merge.stored_ordering(base), ordering=entries.ordering, kinds=entries.kinds,
        )  # fmt: skip

    def _merged(self, base: pa.Table) -> pa.Table:
        patches = self._patches(base)
        return base if patches is None else self._with(base, patches)

    def _with(self, base: pa.Table, patches: Patches) -> pa.Table:
        """Base rows with the records that they meet."""
        custom = self._merge.chains()
        if custom is not None:
            folded = _folded(base, custom, patches)
            gone = base.num_rows - folded.num_rows
            self.counts.deleted += gone
            self.counts.updated += int((patches.found >= 0).sum()) - gone
            return folded
        rule, entries = self._merge.rule, patches.entries
        met = self._decide(base, patches)
        take, stored_wins = met.take, met.stored_wins
        if met.gone is not None:
            keep = ~met.gone
            self.counts.deleted += int(met.gone.sum())
            base, take = base.filter(pa.array(keep)), take[keep]
            stored_wins = None if stored_wins is None else stored_wins[keep]
        hits = np.flatnonzero(take >= 0)
        self.counts.updated += len(hits)
        if not len(hits):
            return base
        columns = []
        for name in base.column_names:
            # Meta columns are those of the later record, or of the winner.
            fill = rule.fill_stored and name not in META_COLUMNS
            columns.append(
                record_merger.merged_column(
                    base.column(name), entries.rows.column(name), take,
                    fill=fill, stored_wins=stored_wins if fill or rule.meta_of_winner else None,
                    has=has_mask(entries.rows, name), gap=rule.gap(name), hits=hits,
                )
            )  # fmt: skip
        fields = [f.with_type(c.type) for f, c in zip(base.schema, columns, strict=True)]
        return pa.table(columns, schema=pa.schema(fields, base.schema.metadata))

    def rest(self) -> Iterator[pa.Table]:
        """Log records without a base row, deletes excluded."""
        for part in self._records.rest():
            self.counts.inserted += part.rows.num_rows
            yield part.rows.select([n for n in part.rows.column_names if not is_has(n)])

    def close(self) -> None:
        """Release memory and disk space."""
        self._records.close()

    def __enter__(self) -> LogRecords:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _folded(base: pa.Table, chains: Chains, patches: Patches) -> pa.Table:
    """Base rows after a user-defined merge."""
    hits = np.flatnonzero(patches.found >= 0)
    counts = np.ones(len(hits), np.int64) if patches.counts is None else patches.counts[hits]
    rows, alive = chains.fold(base.take(pa.array(hits)), patches.entries, patches.found[hits], counts)
    take = np.full(base.num_rows, -1, dtype=np.int64)
    take[hits] = np.arange(len(hits))
    if not alive.all():
        keep = np.ones(base.num_rows, dtype=bool)
        keep[hits] = alive
        base, take = base.filter(pa.array(keep)), take[keep]
    columns = [record_merger.merged_column(base.column(n), rows.column(n), take) for n in base.column_names]
    return pa.table(columns, schema=base.schema)


def read_file_slice(
    storage: Storage,
    file_slice: FileSlice,
    merge: SliceMerge,
    schema: pa.Schema,
    *,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,
    keys: Sequence[str] | None = None,
    memory_limit: int | None = None,
    committed: Mapping[str, Sequence[CommittedRange]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Merged rows of one file slice, in batches.

    Holds the log records and one row group in memory.

    Args:
        schema: the table's columns, with meta columns where the table fills them.
        columns: the columns to give, in that order; None for all.
        filter: only merged rows for which it is true, over any columns of `schema`.  It does not say which, so that
            all of them are read.  Row groups of a Parquet base file that by their statistics have no such row are
            left out where no record of the logs needs their rows: there are no logs, or its records replace rows
            whole, or the keys alone say so (`SliceMerge.skipped_by`).
        keys: the record keys whose rows are wanted, which a base file that is an HFile is not read whole for; None
            for all.
        memory_limit: bytes that the logs' records may take; beyond it they go to disk.  None for what
            `merge.limit` says.
        committed: by log file's path, what completed instants say that they wrote into it: see `SliceLog`.

    Raises:
        as `LogRecords`; MissingFileError, CorruptFileError of the base file too.
        MissingColumnError: a column of `columns`, of `filter` or of the record keys that `schema` does not have.
        ValueError: a column is asked for twice, or a limit that is not above 0.
        TypeError: columns or keys that are no list of texts, a filter that is no expression.
    """
    columns = None if columns is None else text_list("columns", columns)
    keys = None if keys is None else text_list("keys", keys)
    if filter is not None and not isinstance(filter, pc.Expression):
        raise TypeError(f"filter must be a pyarrow.compute.Expression, not {type(filter).__name__}")
    if memory_limit is not None:
        if operator.index(memory_limit) <= 0:
            raise ValueError(f"memory_limit must be a number of bytes above 0, not {memory_limit}")
        merge = replace(merge, limit=replace(merge.limit or MemoryLimit(), bytes=memory_limit))
    if columns is not None and len(set(columns)) < len(columns):
        raise ValueError("a column is requested twice")
    unknown = [n for n in (*(columns or ()), *merge.key_columns) if n not in schema.names]
    if unknown:
        raise MissingColumnError(f"the schema has no column {unknown[0]}", column=unknown[0])
    wanted = schema if columns is None else pa.schema([schema.field(n) for n in columns])
    if filter is not None:
        _passing(schema.empty_table(), filter)  # a column that is not there is told before anything is read
    base = base_of(
        storage, file_slice, merge, merge.merge_schema(wanted if filter is None else schema, schema)
    )
    if keys is not None:
        base = replace(base, open_file=functools.partial(open_other, storage, base.path, keys=keys))
    chosen = None if keys is None else pa.array(keys, pa.string())
    pruned = None if filter is None else RowGroupFilter(filter, schema)
    for part in merged_rows(base, file_slice.log_files, merge, committed=committed, filter=pruned):
        if chosen is not None:
            part = part.filter(pc.is_in(merge.keys(part).cast(pa.string()), value_set=chosen))
        if filter is not None:
            part = _passing(part, filter)
        yield from part.select(wanted.names).to_batches()


def merged_rows(
    base: BaseFileRead,
    logs: Sequence[LogFile],
    merge: SliceMerge,
    *,
    committed: Mapping[str, Sequence[CommittedRange]] | None = None,
    filter: RowGroupFilter | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.Table]:
    """The rows of a slice, base file and logs merged, part by part.

    Args:
        base: with the columns that the merge reads, see `SliceMerge.merge_schema`; its path is "" where the slice has
            no base file.
        committed: as of `LogRecords`.
        filter: of what is made of the rows: row groups of the base file are left out that by their statistics have no
            row that it keeps, where no record of the logs needs their rows.

    Raises:
        as `LogRecords`; MissingFileError, CorruptFileError of the base file too.
    """
    if filter is not None and logs:
        filter = replace(filter, by=merge.skipped_by)
    handed_on = merge.handed_on(base.schema)
    again = functools.partial(stored_rows, keys_of(base, merge), handed_on, filter, batch_rows)
    with log_records(base, logs, merge, committed) as records:
        rows = stored_rows(base, handed_on, filter, batch_rows)
        yield from over_base(records, base, rows, again, records.merged)
        yield from records.rest()


@dataclass(frozen=True, slots=True)
class MergedPart:
    """Rows of a row group of the base file, before and after; new ones have none, and group -1."""

    group: int
    before: pa.Table | None
    after: pa.Table


def merged_by_group(
    base: BaseFileRead,
    logs: Sequence[LogFile],
    merge: SliceMerge,
    *,
    committed: Mapping[str, Sequence[CommittedRange]] | None = None,
    counted: Callable[[MergeCounts], None] | None = None,
) -> Iterator[MergedPart]:
    """The rows of `merged_rows`, by row group of the base file; arguments and errors as there.

    Args:
        counted: is given the counts, which are complete after the last part.
    """
    handed_on = merge.handed_on(base.schema)
    again = functools.partial(stored_rows, keys_of(base, merge), handed_on, None, BATCH_ROWS)
    group = -1

    def rows() -> Iterator[pa.Table]:
        nonlocal group
        for number, part in stored_groups(base, handed_on):
            group = number
            yield part

    with log_records(base, logs, merge, committed) as records:
        if counted is not None:
            counted(records.counts)
        for before, after in over_base(records, base, rows(), again, lambda p: (p, records.merged(p))):
            yield MergedPart(group, before, after)
        for rest in records.rest():
            yield MergedPart(-1, None, rest)


def base_of(storage: Storage, file_slice: FileSlice, merge: SliceMerge, schema: pa.Schema) -> BaseFileRead:
    """The read of a slice's base file, in the columns that the merge reads."""
    file = file_slice.base_file
    instant = file_slice.base_instant if file is None else file.instant
    return BaseFileRead(
        storage,
        "" if file is None else file.path,
        schema,
        instant=instant,
        reading=merge.evolution.reading(instant) if merge.evolution and file is not None else None,
        nested_digits=merge.float_digits,
    )


def log_records(
    base: BaseFileRead,
    logs: Sequence[LogFile],
    merge: SliceMerge,
    committed: Mapping[str, Sequence[CommittedRange]] | None,
) -> LogRecords:
    """Log records for the rows of a base file; errors name its instant."""
    try:
        return LogRecords(base.storage, logs, merge, base.schema, committed=committed)
    except HudiError as e:
        raise e.at(table=base.storage.uri, instant=base.instant) from e.__cause__


def keys_of(base: BaseFileRead, merge: SliceMerge) -> BaseFileRead:
    """The read of a base file's record keys alone."""
    return replace(base, schema=pa.schema([base.schema.field(n) for n in merge.key_columns]))


def stored_groups(base: BaseFileRead, handed_on: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of a base file in parts of one row group each, with its number; 0 without any."""
    if not base.path:
        return
    file = BaseFileReader(base, [n for n in handed_on if n in base.schema.names], BATCH_ROWS)
    try:
        for group in list(file.row_groups) or [0]:
            file.row_groups = [group] if file.row_groups else []
            for batch in file.batches(file.rows_of_part(group), frugal=True):
                yield group, pa.Table.from_batches([batch])
    finally:
        file.close()


def stored_rows(
    base: BaseFileRead, handed_on: Sequence[str], filter: RowGroupFilter | None, batch_rows: int
) -> Iterator[pa.Table]:
    """The rows of a base file, if there is one."""
    if not base.path:
        return
    file = BaseFileReader(base, [n for n in handed_on if n in base.schema.names], batch_rows)
    try:
        if filter is not None:
            file.keep_row_groups(filter)
        for batch in file.batches(batch_rows):
            yield pa.Table.from_batches([batch])
    finally:
        file.close()


def _passing(rows: pa.Table, filter: pc.Expression) -> pa.Table:
    """The rows that pass the filter."""
    try:
        return filtered(rows, filter)
    except pa.ArrowInvalid as e:
        if "FieldRef" not in str(e):
            raise
        raise MissingColumnError(f"the filter names a missing column: {e}") from None
