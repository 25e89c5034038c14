"""Spark engine: native plans evaluate and route rows, Python workers write them.

The incoming rows cross from the JVM to Python once, as Arrow, in the task that writes them.  Base files are read
where they are merged.  The driver sees counts, routing and statistics, never rows.

Source: design, "Spark: where the work runs".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.errors import OrderingValueError
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.partition_path import null_text_error
from hudi_format.model import BaseFile, WriteStat
from hudi_format.schema.meta_fields import FILE_NAME, PARTITION_PATH, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.bucket import BucketIndex, files_of_buckets
from hudi_index.lookup import KeyStages, LookupCount, LookupTask
from hudi_index.tagging import MOVED, STORED_IN, check_files, refuse_changed
from hudi_spark.functions import bucket_id, kernel_column
from hudi_spark.reading.reader import frame_of
from hudi_spark.runtime.jobs import run_job
from hudi_spark.runtime.python_workers import Work, in_workers
from hudi_spark.runtime.settings import setting
from hudi_spark.types import (
    lost_collations,
    promoted,
    quoted,
    to_arrow_schema,
    to_arrow_type,
    to_spark_schema,
    to_spark_type,
    without_void,
)
from hudi_spark.writing.bucket_partitioner import place, slots, spread
from hudi_spark.writing.bulk_insert_sort import ordered
from hudi_spark.writing.deleted_keys import deletes_among
from hudi_spark.writing.key_columns import (
    column_at,
    partition_path,
    record_key,
    refuse_untold,
    refused_field,
)
from hudi_spark.writing.key_lookup import LEFT, Lookup, of_their_keys
from hudi_spark.writing.key_places import ROW_ID, checksum
from hudi_spark.writing.key_stages import count_stages
from hudi_spark.writing.rows_of_keys import one_per_key, repeated_keys, together
from hudi_spark.writing.stored_keys import FILE_ID, file_id, stored_keys
from hudi_spark.writing.table_services import run_slices
from hudi_spark.writing.validation import SparkQueries, SparkScreened, spark_queries
from hudi_spark.writing.version_check import changed_records
from hudi_spark.writing.write_tasks import (
    BUCKET,
    STATUS_DDL,
    AddKeys,
    OnRings,
    UnwrittenPathError,
    WriteBuckets,
    WriteNewBuckets,
    WriteStream,
    key_columns,
    keyless_error,
    statuses,
)
from hudi_timeline.display.progress import AUTO, OFF
from hudi_timeline.reading.scan import Scan
from hudi_timeline.services.compaction.slice_tasks import Task
from hudi_timeline.validation.row_rules import Screening
from hudi_timeline.writing.engine import DATA, PrepareTask
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.workers.tasks import ProfileRow, Routing, WriteContext

_BUCKET = "_hudi_key_bucket"
CACHE_COMPRESSED = "spark.sql.inMemoryColumnarStorage.compressed"
CONSOLE_PROGRESS = "spark.ui.showConsoleProgress"
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
# Spark's default of 10,000 rows a batch costs a third of the crossing; a user's own setting stays.
BATCH_ROWS = "65536"
_SPARK_DEFAULT_ROWS = "10000"
# Key sets up to this size go to every task as a broadcast; above it Spark chooses the join.
BROADCAST_ROWS = 500_000
# SIMPLE: up to so many keys are sent to the workers that read those of the files, which is several times as fast
# as Spark's scan and join, but sends the keys of a partition to each task that has files of it.
SENT_KEYS = 2_000_000


@dataclass(frozen=True)
class SparkFrame:
    """Evaluated rows: record key, partition path, data columns, `ROW_ID`, `FILE_ID` if tagged.

    `tasks` are those that the user asked for; None leaves them to the engine.  With a bucket index `FILE_ID` is the
    bucket in eight digits; `buckets` counts the rows of each, and `groups` has its file id once it is tagged.
    """

    rows: DataFrame
    counts: Mapping[str, int]
    tagged: bool = False
    tasks: int | None = None
    buckets: Mapping[tuple[str, str], int] | None = None
    groups: Mapping[tuple[str, str], str] | None = None


class SparkEngine:
    """Engine of one write, on the session of its input."""

    name = "spark"
    types = DATA
    streams_buckets = True

    def __init__(
        self, data: DataFrame, hadoop: Mapping[str, str] | None = None, *, counts_keys: bool = False
    ) -> None:
        """Engine for one frame.

        Args:
            hadoop: `fs.*` options of the call, for Spark's own scans.
            counts_keys: say what resolved the keys, which takes a job.
        """
        self._counts_keys = counts_keys
        self.warnings = lost_collations(data.schema)
        self._hadoop = dict(hadoop or {})
        self._spark = data.sparkSession
        self.parallelism = self._spark.sparkContext.defaultParallelism
        self._kept: list[DataFrame] = []
        self._lookup: Lookup | None = None
        self._counted: LookupCount | None = None
        self.on_progress: Callable[[int, int], None] = lambda done, total: None

    def progress(self, asked: str) -> str:
        # Spark draws bars of its own on a terminal; two would overwrite each other.
        own = self._spark.conf.get(CONSOLE_PROGRESS, "false") == "true" and sys.stderr.isatty()
        return OFF if asked == AUTO and own else asked

    def schema(self, data: DataFrame) -> pa.Schema:
        return to_arrow_schema(data.schema)

    # --- check -----------------------------------------------------------------------------------------

    def fitted(self, data: DataFrame, schema: pa.Schema, *, exact: bool) -> DataFrame:
        """The frame with void columns typed; frames declare all other types."""
        if data is None:
            return data
        wanted = to_spark_schema(schema)
        out, changed = [], False
        for field in data.schema.fields:
            kind = field.dataType
            if field.name in wanted.names:
                kind = without_void(kind, wanted[field.name].dataType)
            column = quoted(field.name)
            same = kind == field.dataType
            out.append(column if same else column.cast(kind).alias(field.name))
            changed = changed or not same
        return data.select(*out) if changed else data

    def screen(self, data: DataFrame, screening: Screening) -> SparkScreened:
        level = _storage_level(screening.task.storage_level)
        try:
            return SparkScreened(data, screening, lambda rows: self._keep(rows, level))
        except BaseException:
            self._give_up()
            raise

    def another(self, data: DataFrame | None) -> tuple[LocalEngine | SparkEngine, DataFrame | None]:
        if data is None:  # nothing to evaluate
            return LocalEngine(), None
        return SparkEngine(data, self._hadoop), data

    def queries(
        self, before: Scan | pa.Table, after: Scan | pa.Table
    ) -> AbstractContextManager[SparkQueries]:
        return spark_queries(self._spark, before, after, self.frame_of)

    def frame_of(self, scan: Scan) -> DataFrame:
        return frame_of(self._spark, scan, self._hadoop)

    # --- evaluate ------------------------------------------------------------------------------------

    def prepare(self, data: DataFrame, task: PrepareTask) -> SparkFrame:
        task = replace(task, read_back=None)  # the rows are not in this process
        by_kernels = False
        while True:
            rows = _keyed(data, task, by_kernels=by_kernels).withColumn(
                ROW_ID, F.monotonically_increasing_id()
            )
            at_once = None if task.bucket is None or task.bucket.by_partition else task.bucket
            if (
                at_once is not None
            ):  # kept with the rows, because it is used for the profile and for the write
                rows = rows.withColumn(FILE_ID, _digits(at_once))
            rows = self._keep(rows, _storage_level(task.storage_level))
            try:
                found = self._count(rows, task, all_paths=by_kernels or task.stored_keys)
            except BaseException:
                self._give_up()
                raise
            if found is not None:
                buckets = None if at_once is None else found
                return SparkFrame(rows, _by_path(found), tasks=task.order.tasks, buckets=buckets)
            # A date of a year that Spark's expression does not write.  What the rows are made of stays kept: good and
            # bad ones are of one evaluation.
            self._kept.pop().unpersist()
            by_kernels = True

    def _keep(self, rows: DataFrame, level: StorageLevel) -> DataFrame:
        # Choosing an encoding for each column takes longer than all else that is done with the rows.
        with setting(self._spark, CACHE_COMPRESSED, "false"):
            self._kept.append(rows)  # first: an interrupt may come once it is kept
            return rows.persist(level)

    def _give_up(self) -> None:
        # What was made last goes first: Spark re-makes a cache whose source is given up before it.
        while self._kept:
            self._kept.pop().unpersist()

    def _count(
        self, rows: DataFrame, task: PrepareTask, *, all_paths: bool
    ) -> dict[tuple[str, str], int] | None:
        """Row counts by partition and bucket in one pass, which fills the cache and finds invalid rows.

        The bucket is "" where the table's index has none.  None where the path of a row is left to the kernels, which
        is not so with `all_paths`.
        """
        no_key = F.sum(F.when(F.col(RECORD_KEY).isNull(), 1).otherwise(0))
        no_order = F.lit(0)
        if task.check_ordering and task.ordering_field:
            no_order = F.sum(F.when(column_at(task.ordering_field, rows).isNull(), 1).otherwise(0))
        bucket = F.col(FILE_ID) if FILE_ID in rows.columns else F.lit("")
        grouped = rows.groupBy(PARTITION_PATH, bucket).agg(F.count(F.lit(1)), no_key, no_order)
        counted = self._run(grouped.collect, "evaluate")
        if not all_paths and any(path is None for path, *_ in counted):
            return None
        keyless = sum(without if path is not None else n for path, _, n, without, _ in counted)
        orderless = sum(without for *_, without in counted)
        total = sum(n for _, _, n, _, _ in counted)
        if keyless:
            raise keyless_error(task.key_spec, keyless, total)
        if orderless:
            raise OrderingValueError(
                f"ordering field {task.ordering_field!r} is null in {orderless:,} of {total:,} rows",
                remedy="fill the column, or choose another hoodie.datasource.write.precombine.field.",
                column=task.ordering_field,
            )
        found = {(path, bucket): n for path, bucket, n, _, _ in counted}
        if not task.stored_keys:
            _refuse_null_texts(_by_path(found), task.key_spec)
        return found

    def partition_counts(self, frame: SparkFrame) -> dict[str, int]:
        return dict(frame.counts)

    # --- tag -----------------------------------------------------------------------------------------

    def tag(
        self, frame: SparkFrame, storage: Storage, files: Mapping[str, Sequence[BaseFile]], task: LookupTask
    ) -> SparkFrame:
        latest = [f for of in files.values() for f in of]
        if frame.tagged and task.bucket is None:
            # Only to keep one row per key: what was said of their places does not count.
            frame = replace(frame, rows=frame.rows.drop(FILE_ID, MOVED, LEFT, STORED_IN), tagged=False)
        if task.bucket is not None:
            return self._in_buckets(frame, storage, files, task)
        if frame.buckets is not None:  # keys are looked for, whatever their bucket
            frame = replace(frame, rows=frame.rows.drop(FILE_ID), buckets=None)
        if task.prepped:
            return self._located(frame, storage, files, task)
        if task.fills_within:
            frame = replace(
                frame, rows=self._keep(one_per_key(frame.rows, task, frame.tasks), frame.rows.storageLevel)
            )
        elif task.keeps_together:
            repeated = self._keep(repeated_keys(frame.rows, task), frame.rows.storageLevel)
            if self._run(repeated.limit(1).collect, "tag"):
                frame = replace(
                    frame, rows=self._keep(together(frame.rows, repeated, task), frame.rows.storageLevel)
                )
        given = sum(frame.counts.values())
        if task.fills_within and self._counts_keys:
            given = frame.rows.count()
        few = given <= BROADCAST_ROWS
        sent = given * min(self.parallelism, len(latest))
        # Which keys a log has, or has deleted, is for workers to see.
        logs = task.logged is not None or task.alone is not None
        by_workers = task.uses_filters or task.keeps_keys or sent <= SENT_KEYS or logs
        if task.is_global or (latest and by_workers):
            stages = self._stages(frame.rows, given) if self._counts_keys else None
            self._lookup = Lookup(self._spark, storage, task, self.parallelism, given, stages)
            tags = self._keep(self._lookup.find(frame.rows, files), frame.rows.storageLevel)
            joined = frame.rows.join(F.broadcast(tags) if few else tags, ROW_ID, "left")
            return replace(frame, rows=self._lookup.placed(joined), tagged=True)
        self._counted = LookupCount(task.index, len(latest), opened=len(latest))
        if not latest:
            if self._counts_keys:
                self._counted = replace(self._counted, keys=KeyStages(0, given, 0, 0))
            return frame
        stored = stored_keys(self._spark, storage, latest, self._hadoop, task.virtual)
        on = [RECORD_KEY, PARTITION_PATH]
        keys = frame.rows.select(*on, ROW_ID)
        found = stored.join(F.broadcast(keys) if few else keys, on).select(ROW_ID, checksum(), file_id())
        # Kept, because it is used twice, for the profile and for the write; the joined rows are made twice
        # instead, the first time without their columns.
        tags = self._keep(found, frame.rows.storageLevel)
        if self._counts_keys:
            (hits,) = self._run(tags.select(F.countDistinct(ROW_ID)).collect, "tag")
            compared = sum(n for p, n in frame.counts.items() if files.get(p))
            stages_of = KeyStages(0, given - compared, int(hits[0]), compared - int(hits[0]))
            self._counted = replace(self._counted, keys=stages_of)
        rows = of_their_keys(frame.rows.join(F.broadcast(tags) if few else tags, ROW_ID, "left"))
        rows = rows.withColumn(FILE_ID, F.coalesce(F.col(FILE_ID), F.lit("")))
        return replace(frame, rows=rows, tagged=True)

    def _stages(self, rows: DataFrame, given: int) -> Callable[[DataFrame], tuple[DataFrame, KeyStages]]:
        """What keeps the places of a look-up and counts the stages of its keys."""

        def run(action: Callable[[], list[T.Row]]) -> list[T.Row]:
            return self._run(action, "tag")

        def counted(found: DataFrame) -> tuple[DataFrame, KeyStages]:
            kept = self._keep(found, rows.storageLevel)
            return kept, count_stages(kept, given, run)

        return counted

    def _in_buckets(
        self, frame: SparkFrame, storage: Storage, files: Mapping[str, Sequence[BaseFile]], task: LookupTask
    ) -> SparkFrame:
        """The frame with the file group of each bucket."""
        if task.bucket is not None and task.bucket.by_partition:
            frame = self._on_rings(frame, task.bucket)
        if task.bucket is None or frame.buckets is None:
            raise ValueError("rows were not prepared for a bucket index")
        if task.prepped and FILE_NAME in frame.rows.columns:
            self._check_located(frame, storage, files, task)
        rows, counts = frame.rows, frame.buckets
        if task.drop_known:
            # Under another name while the look-up says where it found keys.
            named = replace(frame, rows=rows.withColumnRenamed(FILE_ID, _BUCKET), buckets=None)
            looked = self.tag(named, storage, files, task.looking()).rows
            fresh = looked.where(F.col(FILE_ID) == "") if FILE_ID in looked.columns else looked
            rows = fresh.drop(FILE_ID).withColumnRenamed(_BUCKET, FILE_ID)
            counts = self._counts(rows.groupBy(PARTITION_PATH, FILE_ID).count())
        else:
            self._counted = LookupCount(task.index, sum(len(of) for of in task.groups.values()))
            if self._counts_keys:
                told = KeyStages(sum(counts.values()), 0, 0, 0)
                self._counted = replace(self._counted, keys=told)
        used: dict[str, list[int]] = {}
        for partition, digits in counts:
            used.setdefault(partition, []).append(int(digits))
        ids = files_of_buckets(task.bucket, used, task.groups, table=storage.uri)
        groups = {(p, f"{number:08d}"): file_id for (p, number), file_id in ids.items()}
        return replace(frame, rows=rows, tagged=True, buckets=counts, groups=groups)

    def _on_rings(self, frame: SparkFrame, index: BucketIndex) -> SparkFrame:
        """The frame with the bucket of each row on its partition's ring, which is known only by now."""
        number = kernel_column(
            OnRings(index), "int", [F.col(RECORD_KEY), F.col(PARTITION_PATH)], (RECORD_KEY, PARTITION_PATH)
        )
        rows = frame.rows.drop(FILE_ID).withColumn(FILE_ID, F.lpad(number.cast("string"), 8, "0"))
        rows = self._keep(rows, frame.rows.storageLevel)
        return replace(frame, rows=rows, buckets=self._counts(rows.groupBy(PARTITION_PATH, FILE_ID).count()))

    def _counts(self, counted: DataFrame) -> dict[tuple[str, str], int]:
        """Numbers of rows by two texts, of a frame that counts them."""
        return {(r[0], r[1]): r[2] for r in self._run(counted.collect, "tag")}

    def _check_located(
        self, frame: SparkFrame, storage: Storage, files: Mapping[str, Sequence[BaseFile]], task: LookupTask
    ) -> None:
        """Check that rows are located in latest base files, or are the records that the logs have now."""
        counted = frame.rows.where(F.col(FILE_NAME).isNotNull()).groupBy(PARTITION_PATH, FILE_NAME).count()
        found, rows = self._counts(counted), frame.rows
        beside = check_files(found, files, task.slices, columns=rows.columns, table=storage.uri)
        if beside and task.slices is not None:
            changed = changed_records(
                self._spark, rows, storage, task.slices.of(beside), min(self.parallelism, len(beside))
            )
            refuse_changed(self._counts(changed), table=storage.uri)

    def _located(
        self, frame: SparkFrame, storage: Storage, files: Mapping[str, Sequence[BaseFile]], task: LookupTask
    ) -> SparkFrame:
        """The frame with each row's stated file as its location."""
        self._check_located(frame, storage, files, task)
        file = F.coalesce(F.substring_index(FILE_NAME, "_", 1), F.lit(""))
        return replace(frame, rows=frame.rows.withColumn(FILE_ID, file), tagged=True)

    def deleted_keys(self, frame: SparkFrame, among: Mapping[str, pa.Array], task: LookupTask) -> list[str]:
        found = deletes_among(frame.rows, among, task)
        return [r[0] for r in self._run(found.distinct().collect, "commit")]

    @property
    def looked_up(self) -> LookupCount | None:
        return self._counted if self._lookup is None else self._lookup.count

    def profile(self, frame: SparkFrame) -> list[ProfileRow]:
        if not frame.tagged:
            return [ProfileRow(p, "", n) for p, n in frame.counts.items()]
        if frame.groups is not None and frame.buckets is not None:
            return [ProfileRow(p, frame.groups[p, b], n) for (p, b), n in frame.buckets.items()]
        left, moved = (F.col(n).cast("long") if n in frame.rows.columns else F.lit(0) for n in (LEFT, MOVED))
        counted = frame.rows.groupBy(PARTITION_PATH, FILE_ID).agg(
            F.count(F.lit(1)), F.sum(left), F.coalesce(F.sum(moved), F.lit(0))
        )
        found = self._run(counted.collect, "tag")
        if self._lookup is not None:
            self._lookup.left = sum(r[3] for r in found)
        return [ProfileRow(r[0], r[1], r[2], r[4] if r[1] else 0) for r in found]

    # --- write ---------------------------------------------------------------------------------------

    def write(self, frame: SparkFrame, context: WriteContext, routing: Routing) -> list[WriteStat]:
        if not routing.buckets:
            return []
        if frame.groups is not None:
            digits = {(p, file_id): (p, b) for (p, b), file_id in frame.groups.items()}
            routing = replace(
                routing, located={digits[group]: n for group, n in routing.located.items() if group in digits}
            )
        # Tagged rows without places for them are dropped: inserts whose key is there already.
        all_placed = set(frame.counts) <= set(routing.inserts) and not (frame.tagged and not routing.located)
        if frame.groups is not None and frame.buckets is not None:
            all_placed = routing.located.keys() >= frame.buckets.keys()
        task_of = spread(routing.buckets, self.parallelism, frame.tasks)
        tasks = max(task_of) + 1
        number = slots(tasks)
        rows = frame.rows if frame.tagged else frame.rows.withColumn(FILE_ID, F.lit(""))
        in_order = (ROW_ID,) if context.rule.custom else ()
        placed = place(
            self._spark, rows, routing, [number[t] for t in task_of], tasks,
            [n for n in (*context.row_schema().names, MOVED, STORED_IN, *in_order) if n in rows.columns],
            all_placed=all_placed,
        )  # fmt: skip
        return self._write(placed, WriteBuckets(context, routing.buckets))

    def write_stream(self, data: DataFrame, task: PrepareTask, context: WriteContext) -> list[WriteStat]:
        if task.bucket is not None:
            try:
                return self._stream_buckets(data, task, context, task.bucket, by_kernels=False)
            except UnwrittenPathError:
                # What was written until then is not in the commit, and so removed before it.
                return self._stream_buckets(data, task, context, task.bucket, by_kernels=True)
        stored = (RECORD_KEY, PARTITION_PATH) if task.stored_keys else ()
        present = [n for n in (*task.schema.names, *stored) if n in data.columns]
        rows = ordered(data.select(*(quoted(n) for n in present)), task)
        return self._write(rows, WriteStream(context, task))

    def _stream_buckets(
        self,
        data: DataFrame,
        task: PrepareTask,
        context: WriteContext,
        index: BucketIndex,
        *,
        by_kernels: bool,
    ) -> list[WriteStat]:
        rows = _keyed(data, task, by_kernels=by_kernels)
        wanted = [quoted(n) for n in context.row_schema().names if n in rows.columns]
        # A missing path or key gives null, which the worker sees.
        keyed = rows.select(F.concat(_digits(index), PARTITION_PATH).alias(BUCKET), *wanted)
        asked = () if task.order.tasks is None else (task.order.tasks,)
        together = keyed.repartition(*asked, BUCKET).sortWithinPartitions(BUCKET)
        return self._write(together, WriteNewBuckets(context, task))

    def _write(self, rows: DataFrame, worker: Work) -> list[WriteStat]:
        with self._large_batches():
            status = in_workers(rows, worker, STATUS_DDL)
            found = self._run(status.collect, "write", settle=True)
        return statuses([(r[0], bytes(r[1])) for r in found])

    def _run(self, action: Callable[[], list[T.Row]], what: str, *, settle: bool = False) -> list[T.Row]:
        return run_job(self._spark, action, f"hudi: {what}", settle=settle)

    def _large_batches(self) -> AbstractContextManager[None]:
        if self._spark.conf.get(ARROW_ROWS) in (_SPARK_DEFAULT_ROWS, BATCH_ROWS):
            return setting(self._spark, ARROW_ROWS, BATCH_ROWS)
        return nullcontext()

    def compact(self, tasks: Sequence[Task]) -> list[WriteStat | None]:
        return run_slices(self._spark, tasks)

    def release(self, frame: SparkFrame | None) -> None:
        # All that was kept for the write: the caller has the frame of before the tagging.
        self._give_up()


def _by_path(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Numbers of rows by partition, of those by partition and bucket."""
    out: dict[str, int] = {}
    for (path, _), n in counts.items():
        out[path] = out.get(path, 0) + n
    return out


def _digits(index: BucketIndex) -> Column:
    """Bucket of a record key, as its file group's id begins."""
    number = bucket_id(F.col(RECORD_KEY), fields=index.fields, num_buckets=index.num_buckets)
    return F.lpad(number.cast("string"), 8, "0")


def _refuse_null_texts(counts: Mapping[str, int], spec: KeySpec) -> None:
    """Refuse paths whose values would be read back as null, or not at all."""
    refused = {p: field for p in counts if (field := refused_field(p, spec)) is not None}
    for first in refused.values():
        rows = sum(n for p, n in counts.items() if refused.get(p) == first)
        raise null_text_error(first, rows, sum(counts.values()))
    refuse_untold(counts, spec)


def _keyed(data: DataFrame, task: PrepareTask, *, by_kernels: bool = False) -> DataFrame:
    """Record key, partition path and wanted columns of the rows.

    Args:
        by_kernels: not by Spark's expressions, even if there are any.
    """
    meta = [RECORD_KEY, PARTITION_PATH] if task.stored_keys else []
    meta += [n for n in task.stated if n in data.columns]
    stored = [quoted(n).cast("string").alias(f"_hudi{n}") for n in meta]
    data = data.select(*stored, *_as_stored(data.schema, task.schema))
    present = [quoted(n) for n in data.columns[len(stored) :]]
    if stored:
        return data.select(*(F.col(f"_hudi{n}").alias(n) for n in meta), *present)
    key = record_key(task.key_spec, data.schema)
    path = partition_path(task.key_spec, data.schema)
    if key is not None and path is not None and not by_kernels and _keys_as_stored(data.schema, task):
        return data.select(key.alias(RECORD_KEY), path.alias(PARTITION_PATH), *present)
    fields = [T.StructField(RECORD_KEY, T.StringType()), T.StructField(PARTITION_PATH, T.StringType())]
    schema = T.StructType([*fields, *data.schema.fields])
    return in_workers(data, AddKeys(task, to_arrow_schema(schema)), schema)


def _as_stored(schema: T.StructType, wanted: pa.Schema) -> list[Column]:
    """The available wanted columns; numbers that fit in the table's type.

    Keys are made of the stored value: 1.5 of a narrower decimal is 1.50 in a table that keeps two digits.
    """
    out = []
    for target in to_spark_schema(wanted):
        if target.name not in schema.names:
            continue
        column = quoted(target.name)
        kind = schema[target.name].dataType
        if kind != target.dataType and _always_fits(kind, target.dataType):
            column = promoted(column, kind, target.dataType).alias(target.name)
        out.append(column)
    return out


_RANK = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType)


def _always_fits(kind: T.DataType, wanted: T.DataType) -> bool:
    """Whether Spark's cast equals the worker's conversion for every value."""
    if isinstance(kind, T.DecimalType) and isinstance(wanted, T.DecimalType):
        whole = kind.precision - kind.scale
        return whole <= wanted.precision - wanted.scale and kind.scale <= wanted.scale
    if isinstance(kind, _RANK) and isinstance(wanted, _RANK):
        return _RANK.index(type(kind)) < _RANK.index(type(wanted))
    return False


def _keys_as_stored(schema: T.StructType, task: PrepareTask) -> bool:
    """Whether key columns already have the types to write."""
    wanted = to_spark_schema(task.schema)
    return all(
        to_spark_type(to_arrow_type(schema[name].dataType, name), name) == wanted[name].dataType
        for name in key_columns(task)
        if name in wanted.names
    )


def _storage_level(name: str) -> StorageLevel:
    level: StorageLevel = getattr(StorageLevel, name)
    return level
