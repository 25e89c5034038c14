"""Read tasks: one file's part of a scan, and its execution.

A task holds everything its worker may know, so the same worker runs on threads and in other processes.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_format.errors import (
    CorruptFileError,
    HudiError,
    LibraryError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from hudi_format.file_slice.base_file import OtherBaseFile, open_other
from hudi_format.file_slice.base_rows import merge_base
from hudi_format.file_slice.bootstrap import BootstrapSourceFile
from hudi_format.file_slice.reader import LogRecords, SliceMerge
from hudi_format.parquet.footer import check_columns, corrupt, footer_bytes, stream_bytes
from hudi_format.parquet.reader import row_counts, wrong_rows
from hudi_format.parquet.row_group_filter import matching_row_groups
from hudi_format.parquet.row_groups import repeating, row_groups
from hudi_format.parquet.utf8 import check_text, texts_as_bytes
from hudi_format.schema.evolution import conform
from hudi_format.schema.internal_schema import Reading
from hudi_format.schema.meta_fields import COMMIT_TIME
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.partition_values import FROM_PATH
from hudi_timeline.reading.bootstrap import BootstrapFile
from hudi_timeline.reading.plan import BATCH_ROWS, Predicate, ScanPlan, SliceLogs


@dataclass(frozen=True, slots=True, eq=False)
class ReadTask:
    """Read of one base file or file slice.

    Attributes:
        storage: the table's.
        path, partition, size, instant, file_id: the file, see `plan.FILES_SCHEMA`.
        schema: the columns to give, in order.
        needed: all columns that are looked at, with those of the filter; types of the table.
        constants: one row with the columns that have one value in the whole file, or None.
        filter: rows to keep, over `needed`; None for all.
        filter_columns: the columns of `filter`.
        logs, merge: what is merged into the file, and how; None where nothing is.  Then `path` is "" where the
            slice has no base file.
        merge_schema: the columns that the merge reads.
        nested_digits: as `ScanPlan`.
        source, source_storage: of a skeleton file: the file with the data columns, and the storage it is in.
        reading: how the file is read by column id, where it has another version of the schema; else None.
    """

    storage: Storage
    path: str
    partition: str
    size: int
    instant: str
    file_id: str
    schema: pa.Schema
    needed: pa.Schema
    constants: pa.RecordBatch | None = None
    filter: pc.Expression | None = None
    filter_columns: tuple[str, ...] = ()
    logs: SliceLogs | None = None
    merge: SliceMerge | None = None
    merge_schema: pa.Schema | None = None
    reading: Reading | None = None
    source: BootstrapSourceFile | None = None
    source_storage: Storage | None = None
    nested_digits: bool = False

    def to_batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Rows in batches; see `read_slice`."""
        return read_slice(self, batch_rows)

    def to_table(self) -> pa.Table:
        """All rows at once; see `read_whole`."""
        return read_whole(self)


def make_tasks(
    storage: Storage, plan: ScanPlan, schema: pa.Schema, predicate: Predicate | None
) -> list[ReadTask]:
    """A task for each file of a plan.

    Args:
        schema: the columns that are wanted, in order.
    """
    filter = None if predicate is None else predicate.expression
    filter_columns = () if predicate is None else predicate.columns
    if plan.commit_time_range is not None:
        first, last = plan.commit_time_range
        time = pc.field(COMMIT_TIME)
        in_range = (time >= pa.scalar(first)) & (time <= pa.scalar(last))
        filter = in_range if filter is None else in_range & filter
        filter_columns = tuple(dict.fromkeys((COMMIT_TIME, *filter_columns)))
    if plan.commit_times is not None:
        chosen = pc.field(COMMIT_TIME).isin(pa.array(plan.commit_times, pa.string()))
        filter = chosen if filter is None else chosen & filter
        filter_columns = tuple(dict.fromkeys((COMMIT_TIME, *filter_columns)))
    if plan.since:
        filter_columns = tuple(dict.fromkeys((COMMIT_TIME, *filter_columns)))
    extra = [plan.schema.field(n) for n in filter_columns if n not in schema.names]
    needed = pa.schema([*schema, *extra])
    constant = [c.name for c in plan.partition_columns if c.source == FROM_PATH and c.name in needed.names]
    values = {
        row.column("partition")[0].as_py(): row.select(constant) for row in _rows(plan.partition_values)
    }
    columns = (plan.files.column(n).to_pylist() for n in ("path", "partition", "size", "instant", "file_id"))
    readings = _readings(storage, plan)
    tasks = [
        ReadTask(
            storage, path, partition, size, instant, file_id, schema, needed,
            values[partition] if constant else None, _later(filter, plan.since.get(path)), filter_columns,
            reading=readings[instant],
            source=plan.sources.get(path), source_storage=plan.source_storage,
            nested_digits=plan.nested_digits,
        )
        for path, partition, size, instant, file_id in zip(*columns, strict=True)
    ]  # fmt: skip
    if not plan.logs:
        return tasks
    # A slice without a base file is like one with a file that has no rows.
    bare = ReadTask(storage, "", "", 0, "", "", schema, needed, None, filter, filter_columns)
    return _with_logs(tasks, bare, plan, values if constant else {})


def _later(filter: pc.Expression | None, since: str | None) -> pc.Expression | None:
    """The filter, limited to rows of commits after an instant."""
    if not since:
        return filter
    later = pc.field(COMMIT_TIME) > pa.scalar(since)
    return later if filter is None else later & filter


def _readings(storage: Storage, plan: ScanPlan) -> dict[str, Reading | None]:
    """Schema mappings for the files of each instant in a plan."""
    instants = set(plan.files.column("instant").to_pylist())
    if plan.evolution is None:
        return dict.fromkeys(instants)
    try:
        return {i: plan.evolution.reading(i) for i in instants}
    except HudiError as e:
        raise e.at(table=storage.uri) from None


def _with_logs(
    tasks: list[ReadTask], bare: ReadTask, plan: ScanPlan, values: Mapping[str, pa.RecordBatch]
) -> list[ReadTask]:
    """The tasks with log files added, and tasks for slices without a base file.

    Args:
        values: the columns that come from the path, by partition.
    """
    if plan.merge is None or plan.table_schema is None:
        raise ValueError("a plan with logs says how they are merged")
    merge_schema = plan.merge.merge_schema(bare.needed, plan.table_schema)
    by_group = {(p.slice.partition, p.slice.file_id): p for p in plan.logs}
    out = []
    for task in tasks:
        logs = by_group.pop((task.partition, task.file_id), None)
        if logs is not None:
            size = max(task.size, 0) + logs.size
            task = replace(task, size=size, logs=logs, merge=plan.merge, merge_schema=merge_schema)
        out.append(task)
    for (partition, file_id), logs in by_group.items():
        out.append(
            replace(
                bare, partition=partition, size=logs.size, instant=logs.slice.base_instant, file_id=file_id,
                logs=logs, merge=plan.merge, merge_schema=merge_schema, constants=values.get(partition),
            )
        )  # fmt: skip
    return out


def _rows(table: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in table.combine_chunks().to_batches():
        for n in range(batch.num_rows):
            # A slice would keep, and pickle, the whole column.
            yield batch.take(pa.array([n]))


# Names and texts of a damaged file are decoded by Arrow's Python side: then it is a ValueError.
_UNREADABLE = (pa.ArrowException, ValueError, OSError)


class SliceFile:
    """An open base file and the columns that a task reads; the caller closes it."""

    def __init__(self, task: ReadTask, dictionaries: Collection[str] = (), batch_rows: int = 0) -> None:
        """Open the file and read its footer.

        Args:
            dictionaries: text columns to give as dictionaries where that is less work, in batches of so many rows.

        Raises:
            MissingFileError, CorruptFileError: naming the file.
        """
        self.task = task
        fixed = set(task.constants.schema.names) if task.constants is not None else set()
        self._from_file = pa.schema([f for f in task.needed if f.name not in fixed])
        reading = task.reading
        self._stored = self._from_file if reading is None else reading.stored(self._from_file)
        self._other = _open_other(task, self._stored)
        if self._other is not None:
            self._columns = [n for n in self._stored.names if n in set(self._other.names)]
            self.row_groups = []
            return
        self._source = _open(task)
        repeated = self._repeating(dictionaries, batch_rows)
        try:
            # Remote stores: one request for the column chunks of a row group instead of one for each.
            self._file = pq.ParquetFile(
                self._source, pre_buffer=not task.storage.is_local, buffer_size=stream_bytes(self._source),
                read_dictionary=repeated,
            )  # fmt: skip
            check_columns(self._file.schema_arrow)
            self._texts = texts_as_bytes(self._file)
            stored = set(self._file.schema_arrow.names)
            self._rows = row_counts(self._file.metadata)
        except (*_UNREADABLE, KeyError) as e:  # KeyError: row groups have a column that the schema has not
            self._source.close()
            raise _corrupt(task, e) from None
        self._stored = _with_dictionaries(self._stored, self._file.schema_arrow, repeated)
        self._columns = [n for n in self._stored.names if n in stored]
        self.row_groups = list(range(self._file.num_row_groups))
        if task.filter is not None:
            self.keep_row_groups(task)

    def _repeating(self, columns: Collection[str], batch_rows: int) -> list[str]:
        """Text columns that are cheaper as dictionaries.

        One text over and over, as in most meta columns, is then written once for each row, with the merged values in
        their places, rather than by Arrow and then again.
        """
        # Of a remote file the footer would be one more request.
        if not columns or self.task.reading is not None or not self.task.storage.is_local:
            return []
        try:
            return repeating(row_groups(footer_bytes(self._source), columns), columns, batch_rows)
        except (CorruptFileError, UnsupportedError, *_UNREADABLE):
            return []  # Arrow says what is wrong with it

    def keep_row_groups(self, wanted: ReadTask, by: frozenset[str] | None = None) -> None:
        """Skip row groups that fail the task's filter by their statistics.

        Args:
            wanted: the task with the filter, its columns and constants; this file's may have fewer columns.
            by: the columns whose statistics may do so; None for all.
        """
        columns = [n for n in wanted.filter_columns if by is None or n in by]
        if wanted.filter is None or not columns:
            return
        # Statistics lie under the names of the file, which may mean other columns now.
        if self.row_groups and self.task.reading is None:
            try:
                footer = footer_bytes(self._source)  # Arrow has just read it
                stored = _without_dictionaries(self._file.schema_arrow)
                self.row_groups = matching_row_groups(
                    footer, stored, wanted.filter, columns, wanted.needed, wanted.constants
                )
            except (CorruptFileError, UnsupportedError) as e:
                raise _placed(e, self.task) from None

    @property
    def num_row_groups(self) -> int:
        """Number of row groups in the file; `row_groups` are those to read."""
        return 0 if self._other is not None else int(self._file.num_row_groups)

    def close(self) -> None:
        if self._other is not None:
            self._other.close()
            return
        self._file.close()
        self._source.close()

    def read(self) -> pa.Table:
        """All rows at once."""
        if self._other is not None:
            if not self._columns:
                return self._finish(pa.table({}), self._other.rows)
            parts = list(self._other_batches(self._other, BATCH_ROWS))
            return put_together([pa.Table.from_batches([p]) for p in parts], self.task.schema)
        try:
            if len(self.row_groups) == self._file.num_row_groups:
                raw = self._file.read(columns=self._columns)
            else:
                raw = self._file.read_row_groups(self.row_groups, columns=self._columns)
            check_text(raw, self._texts)
        except _UNREADABLE as e:
            raise _corrupt(self.task, e) from None
        rows = sum(self._rows[n] for n in self.row_groups)
        if self._columns and raw.num_rows != rows:
            raise _corrupt(self.task, wrong_rows(raw.num_rows, rows))
        return self._finish(raw, rows)

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in batches of at most `batch_rows`, with one row group in memory."""
        if self._other is not None and self._columns:
            yield from self._other_batches(self._other, batch_rows)
            return
        if not self.row_groups and self._other is None:
            return
        if not self._columns:  # nothing to decode: only the count of the rows matters
            yield from self.read().to_batches(max_chunksize=batch_rows)
            return
        # A batch is no longer than a row group: rows are wide where row groups are short.
        longest = max(self._rows[n] for n in self.row_groups)
        left = sum(self._rows[n] for n in self.row_groups)
        batch_rows = max(1, min(batch_rows, longest))
        raw = self._file.iter_batches(
            batch_size=batch_rows, row_groups=self.row_groups, columns=self._columns, use_threads=True
        )
        while True:
            try:
                batch = next(raw, None)
                if batch is not None:
                    check_text(batch, self._texts)
            except _UNREADABLE as e:
                raise _corrupt(self.task, e) from None
            if batch is None:
                if left:
                    rows = sum(self._rows[n] for n in self.row_groups)
                    raise _corrupt(self.task, wrong_rows(rows - left, rows))
                return
            left -= batch.num_rows
            yield from self._finish(pa.Table.from_batches([batch]), batch.num_rows).to_batches(
                max_chunksize=batch_rows
            )

    def _other_batches(self, file: OtherBaseFile, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows of a file other than Parquet."""
        try:
            for batch in file.batches(self._columns, batch_rows):
                yield from self._finish(pa.Table.from_batches([batch]), batch.num_rows).to_batches()
        except HudiError as e:
            raise _placed(e, self.task) from e.__cause__
        except _UNREADABLE as e:
            raise _corrupt(self.task, e) from None

    def _finish(self, raw: pa.Table, rows: int) -> pa.Table:
        """The task's columns of file rows: table types, constants, filter applied."""
        task = self.task
        wanted = self._stored
        try:
            if raw.schema.types != wanted.types or raw.schema.names != wanted.names:
                raw = (
                    conform(raw, wanted, nested_digits=task.nested_digits)
                    if raw.num_columns
                    else _nulls(wanted, rows)
                )
            if task.reading is not None:
                raw = (
                    task.reading.given(raw, self._from_file, nested_digits=task.nested_digits)
                    if raw.num_columns
                    else _nulls(self._from_file, rows)
                )
        except HudiError as e:
            raise _placed(e, task) from None
        columns: list[pa.ChunkedArray | pa.Array] = []
        for field in task.needed:
            if task.constants is not None and field.name in task.constants.schema.names:
                columns.append(_repeated(task.constants.column(field.name)[0], rows))
            else:
                columns.append(raw.column(field.name))
        needed = pa.schema([f.with_type(c.type) for f, c in zip(task.needed, columns, strict=True)])
        table = pa.table(columns, schema=needed) if columns else no_columns(rows)
        if task.filter is not None:
            try:
                table = table.filter(task.filter)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
                # The filter was tried on the schema when the scan was made: the rows are not at fault.
                reason = (str(e).splitlines() or [type(e).__name__])[0]
                raise _placed(
                    LibraryError(
                        f"pyarrow {pa.__version__} could not evaluate the filter: {reason}",
                        remedy="write the condition in another way, or install another version of pyarrow.",
                    ),
                    task,
                ) from e
        return table if len(task.needed) == len(task.schema) else table.select(task.schema.names)


def _with_dictionaries(schema: pa.Schema, stored: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The schema with the columns that Arrow returns as text dictionaries."""
    kind = pa.dictionary(pa.int32(), pa.string())
    for name in columns:
        if stored.field(name).type == kind:
            schema = schema.set(schema.get_field_index(name), schema.field(name).with_type(kind))
    return schema


def _without_dictionaries(schema: pa.Schema) -> pa.Schema:
    kinds = (t.value_type if pa.types.is_dictionary(t) else t for t in schema.types)
    return pa.schema([f.with_type(t) for f, t in zip(schema, kinds, strict=True)])


def _repeated(value: pa.Scalar, rows: int) -> pa.Array:
    return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, value.type)


def _nulls(schema: pa.Schema, rows: int) -> pa.Table:
    return pa.table([pa.nulls(rows, f.type) for f in schema], schema=schema)


def no_columns(rows: int) -> pa.Table:
    """A table without columns that has a number of rows."""
    return pa.table({"": pa.nulls(rows)}).select([])


def put_together(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenated tables of one schema, with row counts kept where there are no columns."""
    if not len(schema):
        return no_columns(sum(p.num_rows for p in parts))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _open(task: ReadTask) -> pa.NativeFile:
    try:
        return task.storage.open_input(task.path)
    except FileNotFoundError:
        raise _placed(MissingFileError("a file of the scan is gone"), task) from None


def _open_other(task: ReadTask, schema: pa.Schema) -> OtherBaseFile | None:
    try:
        if task.source is not None and task.source_storage is not None:
            return BootstrapFile(task.storage, task.path, task.source_storage, task.source, schema)
        return open_other(task.storage, task.path, schema)
    except FileNotFoundError:
        raise _placed(MissingFileError("a file of the scan is gone"), task) from None
    except HudiError as e:
        raise _placed(e, task) from e.__cause__
    except _UNREADABLE as e:
        raise _corrupt(task, e) from None


def _corrupt(task: ReadTask, error: Exception) -> HudiError:
    if isinstance(error, OSError) and error.errno:  # the system's own, which says nothing about the bytes
        return _placed(StorageError(f"the storage refused: {error.strerror or error}"), task)
    kind = {"orc": "ORC", "hfile": "HFile"}.get(task.path.rpartition(".")[2], "Parquet")
    return _placed(corrupt(task.storage, task.path, error, kind), task)


def _placed(error: HudiError, task: ReadTask) -> HudiError:
    """The error with the file's place and a remedy."""
    if isinstance(error, MissingFileError):
        remedy = "read the table again: a cleaner may have removed the file since the scan was planned."
    elif isinstance(error, StorageError):
        remedy = "run it again once the store answers."
    else:
        remedy = CorruptFileError.usual_remedy
    if not isinstance(error, LibraryError):
        error.advise(remedy)
    return error.at(table=task.storage.uri, instant=task.instant, file=task.path)


def read_slice(task: ReadTask, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Rows of one file or merged slice, in batches of `task.schema`, in file order.

    Raises:
        MissingFileError, CorruptFileError, SchemaError: naming table, instant and file.
    """
    if task.logs is not None:
        if task.merge is not None and task.merge.limit is not None:
            task = replace(task, merge=replace(task.merge, limit=task.merge.limit.for_stream()))
        for table in _merged(task, batch_rows):
            yield from table.to_batches(max_chunksize=batch_rows)
        return
    file = SliceFile(task)
    try:
        yield from file.batches(batch_rows)
    finally:
        file.close()


def read_whole(task: ReadTask) -> pa.Table:
    """Rows of one file or merged slice as a table; errors as `read_slice`."""
    if task.logs is not None:
        return put_together(list(_merged(task, BATCH_ROWS)), task.schema)
    file = SliceFile(task)
    try:
        return file.read()
    finally:
        file.close()


def _merged(task: ReadTask, batch_rows: int) -> Iterator[pa.Table]:
    """Merged rows of a slice, in parts."""
    logs, merge, schema = task.logs, task.merge, task.merge_schema
    if logs is None or merge is None or schema is None:
        raise ValueError("the task has nothing to merge")
    try:
        records = LogRecords(task.storage, logs.slice.log_files, merge, schema, committed=logs.committed)
    except HudiError as e:
        raise e.at(table=task.storage.uri, instant=task.instant) from e.__cause__
    keys = pa.schema([schema.field(n) for n in merge.key_columns])
    base = _base_rows(task, schema, batch_rows)
    again = functools.partial(_base_rows, task, keys, batch_rows)
    for part in merge_base(records, base, again, table=task.storage.uri, file=task.path):
        part = _with_constants(part, task.constants)
        if task.filter is not None:
            part = part.filter(task.filter)
        if len(task.schema):
            yield pa.table([part.column(n) for n in task.schema.names], schema=task.schema)
        else:
            yield no_columns(part.num_rows)


def _with_constants(rows: pa.Table, constants: pa.RecordBatch | None) -> pa.Table:
    """The rows with constant columns from the path."""
    if constants is None:
        return rows
    for name in constants.schema.names:
        place = rows.schema.get_field_index(name)
        if place >= 0:
            value = _repeated(constants.column(name)[0], rows.num_rows)
            rows = rows.set_column(place, pa.field(name, value.type), value)
    return rows


def _base_rows(task: ReadTask, schema: pa.Schema, batch_rows: int) -> Iterator[pa.Table]:
    if not task.path:
        return
    base = replace(
        task, schema=schema, needed=schema, constants=None, filter=None, filter_columns=(), logs=None
    )
    handed_on = task.merge.handed_on(schema) if task.merge is not None else ()
    file = SliceFile(base, handed_on, batch_rows)
    try:
        if task.merge is not None:
            file.keep_row_groups(task, task.merge.skipped_by)
        for batch in file.batches(batch_rows):
            yield pa.Table.from_batches([batch])
    finally:
        file.close()
