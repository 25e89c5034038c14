"""Read tasks: one file's part of a scan, and its execution.

A task holds everything its worker may know, so the same worker runs on threads and in other processes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import integers, no_columns, put_together, repeated, text, texts
from hudi_format.errors import HudiError, LibraryError
from hudi_format.file_slice.base_file import OtherBaseFile
from hudi_format.file_slice.base_rows import BaseFileRead, BaseFileReader, filtered
from hudi_format.file_slice.bootstrap import BootstrapSourceFile
from hudi_format.file_slice.changed_rows import changed_positions, changed_rows
from hudi_format.file_slice.keyed_file import WantedKeys, open_keyed
from hudi_format.file_slice.reader import SliceMerge, merged_rows
from hudi_format.merge.user_merger import among_stored
from hudi_format.parquet.row_group_filter import RowGroupFilter, all_of
from hudi_format.schema.internal_schema import Reading
from hudi_format.schema.meta_fields import COMMIT_TIME, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.partition_values import FROM_PATH, PARTITION
from hudi_timeline.reading.bootstrap import BootstrapFile
from hudi_timeline.reading.plan import BATCH_ROWS, Predicate, ScanPlan, SliceLogs, to_be_held


@dataclass(frozen=True, slots=True, eq=False)
class ReadTask:
    """Read of one base file or file slice.

    Attributes:
        storage: the table's.
        path, partition, size, instant, file_id: the file, see `plan.FILES_SCHEMA`.
        schema: the columns to give, in order.
        needed: all columns that are looked at, with those of the filter; types of the table.
        constants: one row with the columns that have one value in the whole file, or None.
        held: columns that the file has to hold, because its path does not say their value.
        filter: rows to keep, over `needed`; None for all.
        filter_columns: the columns of `filter`.
        logs, merge: what is merged into the file, and how; None where nothing is.  Then `path` is "" where the
            slice has no base file.
        merge_schema: the columns that the merge reads.
        nested_digits: as `ScanPlan`.
        source, source_storage: of a skeleton file: the file with the data columns, and the storage it is in.
        reading: how the file is read by column id, where it has another version of the schema; else None.
        keys: record keys of the rows that `filter` keeps, which a base file is not read whole for; None where that is
            not known.
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
    held: tuple[str, ...] = ()
    keys: WantedKeys | None = None

    def to_batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows of the file, or merged slice, in batches of `schema`, in the file's order.

        Raises:
            MissingFileError, CorruptFileError, SchemaError: naming table, instant and file.
        """
        if self.logs is not None:
            for table in _merged(_streamed(self), batch_rows):
                yield from table.to_batches(max_chunksize=batch_rows)
            return
        file = self.open()
        try:
            yield from file.batches(batch_rows)
        finally:
            file.close()

    def base_file(self) -> BaseFileRead:
        """The read of the base file."""
        opened: Callable[[pa.Schema], OtherBaseFile | None] | None = None
        if self.source is not None and self.source_storage is not None:
            opened = functools.partial(
                BootstrapFile, self.storage, self.path, self.source_storage, self.source
            )
        elif self.keys is not None and self._by_key:
            opened = functools.partial(open_keyed, self.storage, self.path, self.keys)
        columns = None if len(self.needed) == len(self.schema) else self.schema.names
        return BaseFileRead(
            self.storage, self.path, self.needed, columns, self.instant, self.constants, self.filter,
            self.filter_columns, self.reading, self.nested_digits, opened, self.held,
        )  # fmt: skip

    @property
    def _by_key(self) -> bool:
        """Whether base rows with other keys make no difference."""
        by = self.merge.skipped_by if self.merge is not None else None
        return by is None or RECORD_KEY in by

    def open(self) -> BaseFileReader:
        """The base file, opened; the caller closes it.

        Raises:
            MissingFileError, CorruptFileError: naming the file.
        """
        return BaseFileReader(self.base_file())

    def to_table(self) -> pa.Table:
        """The rows of `to_batches` at once."""
        if self.logs is not None:
            return put_together(list(_merged(self, BATCH_ROWS)), self.schema)
        file = self.open()
        try:
            return file.read()
        finally:
            file.close()

    def changed_positions(self) -> np.ndarray:
        """Positions of base rows that the logs change; see `hudi_format.file_slice.changed_rows`."""
        base, logs, merge = _of_slice(_streamed(self))
        return changed_positions(base, logs.slice.log_files, merge, committed=logs.committed)

    def changed_batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows of `to_batches` that are not base rows as they are, in batches."""
        base, logs, merge = _of_slice(_streamed(self))
        parts = changed_rows(
            base, logs.slice.log_files, merge, committed=logs.committed, batch_rows=batch_rows
        )
        for part in parts:
            yield from _given(self, part).to_batches(max_chunksize=batch_rows)


def make_tasks(
    storage: Storage, plan: ScanPlan, schema: pa.Schema, predicate: Predicate | None
) -> list[ReadTask]:
    """A task for each file of a plan.

    Args:
        schema: the columns that are wanted, in order.
    """
    time = pc.field(COMMIT_TIME)
    conditions = [] if predicate is None else [predicate.expression]
    if plan.commit_times is not None:
        conditions.insert(0, time.isin(texts(plan.commit_times)))
    if plan.commit_time_range is not None:
        first, last = plan.commit_time_range
        conditions.insert(0, (time >= text(first)) & (time <= text(last)))
    filter = all_of(conditions)
    filter_columns = () if predicate is None else predicate.columns
    if not plan.has_whole_files:
        filter_columns = tuple(dict.fromkeys((COMMIT_TIME, *filter_columns)))
    extra = [plan.schema.field(n) for n in filter_columns if n not in schema.names]
    needed = pa.schema([*schema, *extra])
    constant = [c.name for c in plan.partition_columns if c.source == FROM_PATH and c.name in needed.names]
    values = {row.column(PARTITION)[0].as_py(): row.select(constant) for row in _rows(plan.partition_values)}
    values |= {
        p: values[p].select([n for n in constant if n not in names]) for p, names in plan.untold.items()
    }
    held = {
        p: tuple(n for n in to_be_held(plan.partition_columns, names) if n in constant)
        for p, names in plan.untold.items()
    }
    columns = (plan.files.column(n).to_pylist() for n in ("path", "partition", "size", "instant", "file_id"))
    readings = _readings(storage, plan)
    tasks = [
        ReadTask(
            storage, path, partition, size, instant, file_id, schema, needed,
            _constants(values, partition), _later(filter, plan.since.get(path)), filter_columns,
            reading=readings[instant],
            source=plan.sources.get(path), source_storage=plan.source_storage,
            nested_digits=plan.nested_digits, held=held.get(partition, ()),
        )
        for path, partition, size, instant, file_id in zip(*columns, strict=True)
    ]  # fmt: skip
    if not plan.logs:
        return tasks
    # A slice without a base file is like one with a file that has no rows.
    bare = ReadTask(storage, "", "", 0, "", "", schema, needed, None, filter, filter_columns)
    return _with_logs(tasks, bare, plan, values)


def _constants(values: Mapping[str, pa.RecordBatch], partition: str) -> pa.RecordBatch | None:
    """The columns whose value a partition's path says; None for none."""
    found = values.get(partition)
    return found if found is not None and found.num_columns else None


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
        merge, instants = plan.merge, plan.merge.scope.instants
        if instants is not None and (merge.scope.grouped or logs.slice.base_instant not in instants):
            # What the records change is stored before the range.
            merge = replace(merge, rule=among_stored(merge.rule))
        out.append(
            replace(
                bare, partition=partition, size=logs.size, instant=logs.slice.base_instant, file_id=file_id,
                logs=logs, merge=merge, merge_schema=merge_schema, constants=_constants(values, partition),
            )
        )  # fmt: skip
    return out


def _rows(table: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in table.combine_chunks().to_batches():
        for n in range(batch.num_rows):
            # A slice would keep, and pickle, the whole column.
            yield batch.take(integers([n]))


def _streamed(task: ReadTask) -> ReadTask:
    """The task with the memory limit of one stream."""
    if task.merge is None or task.merge.limit is None:
        return task
    return replace(task, merge=replace(task.merge, limit=task.merge.limit.for_stream()))


def _of_slice(task: ReadTask) -> tuple[BaseFileRead, SliceLogs, SliceMerge]:
    """The base file of a slice with all columns of the merge, what is merged into it, and how."""
    logs, merge, schema = task.logs, task.merge, task.merge_schema
    if logs is None or merge is None or schema is None:
        raise ValueError("the task has nothing to merge")
    base = replace(
        task.base_file(), schema=schema, columns=None, constants=None, filter=None, filter_columns=()
    )
    return base, logs, merge


def _merged(task: ReadTask, batch_rows: int) -> Iterator[pa.Table]:
    """The rows of a slice, base file and logs merged, part by part."""
    base, logs, merge = _of_slice(task)
    pruned = None
    if task.filter is not None:
        columns, constants = tuple(task.filter_columns), task.constants
        pruned = RowGroupFilter(task.filter, task.needed, columns=columns, constants=constants)
    parts = merged_rows(
        base, logs.slice.log_files, merge, committed=logs.committed, filter=pruned, batch_rows=batch_rows
    )
    for part in parts:
        yield _given(task, part)


def _given(task: ReadTask, part: pa.Table) -> pa.Table:
    """The task's columns of merged rows, and those of the rows that it keeps."""
    part = _with_constants(part, task.constants)
    if task.filter is not None:
        try:
            part = filtered(part, task.filter)
        except LibraryError as e:
            raise e.at(table=task.storage.uri, instant=task.instant, file=task.path) from e.__cause__
    if not len(task.schema):
        return no_columns(part.num_rows)
    return pa.table([part.column(n) for n in task.schema.names], schema=task.schema)


def _with_constants(rows: pa.Table, constants: pa.RecordBatch | None) -> pa.Table:
    """The rows with the columns whose value the path says."""
    if constants is None:
        return rows
    for name in constants.schema.names:
        place = rows.schema.get_field_index(name)
        if place >= 0:
            value = repeated(constants.column(name)[0], rows.num_rows)
            rows = rows.set_column(place, pa.field(name, value.type), value)
    return rows
