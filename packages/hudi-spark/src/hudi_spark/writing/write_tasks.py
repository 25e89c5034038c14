"""Writing tasks in Spark's Python workers.

Only importable, picklable callables live here.  A task gives back rows of (kind, payload): write statistics, or
an error of ours that no retry would mend.  Other failures are raised, so that Spark tries the task again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from hudi_format.errors import (
    CorruptFileError,
    InvalidOptionError,
    MergeFunctionError,
    MissingFileError,
    OrderingValueError,
    PartitionPathError,
    RecordKeyError,
    SchemaError,
    UnsupportedError,
    WriteConflictError,
)
from hudi_format.file_slice.writer import RowCounter
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.partition_path import check_names, check_safe, null_text_error
from hudi_format.keygen.record_keys import made_up_keys, partition_paths, record_keys
from hudi_format.model import WriteStat
from hudi_format.schema.evolution import conform
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_index.bucket import BucketIndex, new_bucket_file_id
from hudi_spark.runtime.jobs import run_job
from hudi_spark.runtime.python_workers import in_groups
from hudi_spark.writing.key_columns import refuse_untold, refused_field
from hudi_spark.writing.key_places import ROW_ID
from hudi_timeline.services.buckets.resize_tasks import ResizeTask, run_resize_task
from hudi_timeline.services.compaction.slice_tasks import Task, run_task
from hudi_timeline.writing.engine import PrepareTask
from hudi_timeline.writing.local_engine import check_ordering
from hudi_timeline.writing.workers.bucket_worker import write_bucket
from hudi_timeline.writing.workers.bulk_insert import write_stream
from hudi_timeline.writing.workers.tasks import CREATE, Bucket, TaskToken, WriteContext, as_written

BUCKET = "_hudi_bucket"
STATUS_DDL = "kind string, payload binary"
STATUS_SCHEMA = pa.schema([("kind", pa.string()), ("payload", pa.binary())])
STATS, ERROR = "stats", "error"
MOST_KEYS = 2_000
"""New keys that the statistics of a file take through the driver; more of them are read from the file."""

# The data is at fault, or another writer was first: running the task again gives the same.
_FINAL = (
    RecordKeyError,
    OrderingValueError,
    PartitionPathError,
    SchemaError,
    UnsupportedError,
    MergeFunctionError,
    InvalidOptionError,
    WriteConflictError,
)


def stats_row(stats: Iterable[WriteStat]) -> pa.RecordBatch:
    """The row that tells the driver what was written."""
    few = [
        replace(s, new_keys=None) if s.new_keys is not None and len(s.new_keys) > MOST_KEYS else s
        for s in stats
    ]
    return _status(STATS, few)


def _status(kind: str, value: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([kind]), pa.array([pickle.dumps(value)], pa.binary())], schema=STATUS_SCHEMA
    )


def statuses(rows: list[tuple[str, bytes]]) -> list[WriteStat]:
    """Write statistics of collected rows.

    Raises:
        HudiError: the first error that a task gave back.
    """
    values = [(kind, pickle.loads(payload)) for kind, payload in rows]
    for kind, value in values:
        if kind == ERROR:
            raise value
    return [s for kind, value in values if kind == STATS for s in value]


def current_token() -> TaskToken:
    """Token of the current task attempt."""
    task = TaskContext.get()
    if task is None:
        return TaskToken()
    return TaskToken(task.partitionId(), task.stageId(), int(task.taskAttemptId()))


@dataclass(frozen=True)
class WriteBuckets:
    """Worker that writes buckets; rows of one bucket are adjacent."""

    context: WriteContext
    buckets: tuple[Bucket, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        token, counter = current_token(), RowCounter()

        def write(number: int | str, rows: pa.Table) -> list[WriteStat]:
            return write_bucket(self.context, self.buckets[int(number)], rows, token, counter)

        yield from _by_bucket(self.context, batches, write)


def _by_bucket(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    write: Callable[[int | str, pa.Table], list[WriteStat]],
) -> Iterator[pa.RecordBatch]:
    """Statuses of writing each bucket, of which one at a time is held."""
    schema = context.row_schema()
    runs = (run for batch in batches for run in _runs(batch))
    try:
        for bucket, of in groupby(runs, key=itemgetter(0)):
            yield stats_row(write(bucket, pa.concat_tables(_as_written((rows for _, rows in of), schema))))
    except _FINAL as e:
        yield _status(ERROR, e.at(table=context.storage.uri, instant=context.instant))


def _as_written(parts: Iterator[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows in the types to write; in their order, where `ROW_ID` says it."""
    for rows in parts:
        if ROW_ID in rows.schema.names:  # a shuffle keeps none
            whole = pa.concat_tables([rows, *parts])
            yield as_written(whole.sort_by(ROW_ID), schema)
        else:
            yield as_written(rows, schema)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[int | str, pa.Table]]:
    """Rows of a batch by runs of one bucket, without the bucket column."""
    if batch.num_rows == 0:
        return
    index = batch.schema.get_field_index(BUCKET)
    ends = pa.compute.run_end_encode(batch.column(index))
    table = pa.Table.from_batches([batch]).remove_column(index)
    start = 0
    for bucket, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
        yield bucket, table.slice(start, end - start)
        start = end


class UnwrittenPathError(PartitionPathError):
    """A partition path that Spark's expression does not make: the kernels must make all of them."""


@dataclass(frozen=True)
class WriteNewBuckets:
    """Worker of a bulk insert into buckets: each run of one `BUCKET` becomes a file group.

    `BUCKET` is here the bucket in eight digits, followed by the partition path; no other task has rows of it.
    """

    context: WriteContext
    task: PrepareTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        token, counter = current_token(), RowCounter()

        def write(bucket: int | str, rows: pa.Table) -> list[WriteStat]:
            return self._write(str(bucket), rows, token, counter)

        yield from _by_bucket(self.context, map(self._checked, batches), write)

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        keyless = batch.column(RECORD_KEY).null_count
        if keyless:
            raise keyless_error(self.task.key_spec, keyless, batch.num_rows)
        if batch.column(BUCKET).null_count:
            raise UnwrittenPathError("a partition path is not made by Spark's expression")
        check_ordering(batch, self.task)
        return batch

    def _write(self, bucket: str, rows: pa.Table, token: TaskToken, counter: RowCounter) -> list[WriteStat]:
        number, partition = int(bucket[:8]), check_safe(bucket[8:])
        if self.context.storage.is_local:
            check_names(partition)
        if not self.task.stored_keys and (field := refused_field(partition, self.task.key_spec)) is not None:
            raise null_text_error(field, rows.num_rows, rows.num_rows)
        if not self.task.stored_keys:
            refuse_untold((partition,), self.task.key_spec)
        file_id = new_bucket_file_id(number, self.context.seed, partition)
        group = Bucket(0, partition, CREATE, file_id.removesuffix("-0"))
        return write_bucket(self.context, group, rows, token, counter)


def keyless_error(spec: KeySpec, keyless: int, total: int) -> RecordKeyError:
    """Error about rows without a record key, of `total` that were looked at."""
    fields = ", ".join(repr(f) for f in spec.key_fields) or RECORD_KEY
    return RecordKeyError(
        f"the record key ({fields}) is null or empty in {keyless:,} of {total:,} rows",
        remedy="fill the columns, or omit these rows.",
        columns=list(spec.key_fields),
    )


@dataclass(frozen=True)
class WriteStream:
    """Worker of a bulk insert: all rows of a task into new files, by partition."""

    context: WriteContext
    task: PrepareTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def checked() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                check_ordering(batch, self.task)
                yield batch

        try:
            yield stats_row(write_stream(self.context, checked(), current_token()))
        except _FINAL as e:
            yield _status(ERROR, e)


def _service_status(task: Task | ResizeTask) -> Iterator[pa.RecordBatch]:
    """Status of a table service's task: a compaction of a file slice, or a division of buckets."""
    try:
        yield stats_row(_run(task))
    except (*_FINAL, CorruptFileError, MissingFileError) as e:
        yield _status(ERROR, e)


def _run(task: Task | ResizeTask) -> list[WriteStat]:
    attempt = current_token().attempt_id
    if isinstance(task, ResizeTask):
        return run_resize_task(task.of_attempt(attempt))
    stat = run_task(task.of_attempt(attempt))
    return [] if stat is None else [stat]


def run_on_spark(spark: SparkSession, tasks: Sequence[Task | ResizeTask], what: str) -> list[WriteStat]:
    """Statistics of the files that a table service's tasks made in Spark's Python workers.

    Each task is a partition, the largest first.

    Args:
        what: the job's name in Spark's console.

    Raises:
        HudiError: the first error that a task gave back; WriteFailedError for other failures.
    """
    if not tasks:
        return []
    groups = [(task,) for task in sorted(tasks, key=lambda t: -t.bytes)]

    def collect() -> list[tuple[str, bytes]]:
        found = in_groups(spark, groups, _service_status, STATUS_DDL).collect()
        return [(row.kind, bytes(row.payload)) for row in found]

    return statuses(run_job(spark, collect, f"hudi: {what}", settle=True))


def key_columns(task: PrepareTask) -> list[str]:
    """Top-level columns of the rows needed for record keys and partition paths."""
    names = task.schema.names
    fields = (*task.key_spec.key_fields, *task.key_spec.partition_fields)
    return list(dict.fromkeys(f if f in names else f.partition(".")[0] for f in fields))


@dataclass(frozen=True)
class AddKeys:
    """Worker that adds record key and partition path, where Spark's text differs from Hudi's.

    They are made of the values as they will be stored.
    """

    task: PrepareTask
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stored = pa.schema([self.task.schema.field(n) for n in key_columns(self.task)])
        spec, counter, number = self.task.key_spec, RowCounter(), current_token().partition_id
        for batch in batches:
            made_of = conform(batch.select(stored.names), stored)
            if spec.auto:
                keys = made_up_keys("", number, counter.take(batch.num_rows))
            else:
                keys = record_keys(made_of, spec)
            paths = partition_paths(made_of, self.task.key_spec).cast(pa.string())
            columns = [keys, paths, *batch.columns]
            names = [RECORD_KEY, PARTITION_PATH, *batch.schema.names]
            yield pa.RecordBatch.from_arrays(columns, names=names).cast(self.schema)


@dataclass(frozen=True)
class OnRings:
    """Number of each row's bucket on its partition's ring; rows are key and partition path."""

    index: BucketIndex

    def __call__(self, rows: pa.RecordBatch) -> pa.Array:
        paths = rows.column(1).dictionary_encode()
        codes = paths.indices.to_numpy(zero_copy_only=False)
        return pa.array(self.index.numbers(rows.column(0), codes, paths.dictionary.to_pylist()))
