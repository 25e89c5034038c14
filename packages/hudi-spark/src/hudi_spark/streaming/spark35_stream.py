"""`spark.readStream.format("hudi").load(path)` on Spark 3.5, without Python data sources.

The frame follows a folder of offset files (`streaming.offset_files`) with Spark's own file source, plans each step in
one task and reads it in many.  A thread on the driver looks at the table while the query runs, and makes the files.
"""

from __future__ import annotations

import io
import logging
import pickle
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from hudi_format.errors import HudiError, OptionError, StorageError, UnsupportedError
from hudi_format.schema.evolution import conform
from hudi_format.storage.open import open_storage
from hudi_spark.reading.parquet_scan import WHOLE
from hudi_spark.reading.read_tasks import grouped
from hudi_spark.reading.user_schema import UserSchema
from hudi_spark.runtime.options import merged, session_options, table_path, take_option
from hudi_spark.runtime.python_workers import in_workers
from hudi_spark.streaming.offset_files import ERROR, OffsetFile, create, finished, given_out, stream_id
from hudi_spark.streaming.table_stream import START, TableStream, with_allowed_merge
from hudi_spark.types import to_spark_schema
from hudi_timeline.options.read_options import STREAM_FOLDER

log = logging.getLogger("hudi")

POLL_SECONDS = 1.0
"""Between two looks at the table, if the option does not say."""
MOST_FAILURES = 10
CHECKPOINT = "checkpointlocation"
_DEFAULT_CHECKPOINT = "spark.sql.streaming.checkpointLocation"


@dataclass(frozen=True)
class PlanMarkers:
    """Worker that plans offset files into groups of read tasks, pickled."""

    stream: TableStream
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name in batch.column(0).to_pylist():
                if name.startswith(ERROR):
                    raise StorageError(
                        f"following the table failed: {name.removeprefix(ERROR)}",
                        table=self.stream.uri,
                        remedy="restart the query with the same checkpoint; no change is lost.",
                    )
                marker = OffsetFile.parse(name.strip())
                if marker is None:
                    raise UnsupportedError(
                        f"{name!r} is not an offset file of a stream",
                        remedy="remove what others have written into the stream's folder, and restart the query.",
                    )
                scan = self.stream.scan(marker.begin, marker.end)
                columns = [n for n in self.columns if n in scan.schema.names]
                scan = self.stream.scan(marker.begin, marker.end, columns)
                groups = [pickle.dumps(g) for g in grouped(scan.plan_files())]
                yield pa.RecordBatch.from_arrays([pa.array(groups, pa.binary())], names=["tasks"])


@dataclass(frozen=True)
class ReadPlanned:
    """Worker that reads groups of read tasks."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for group in batch.column(0).to_pylist():
                for task in pickle.loads(group):
                    for rows in task.to_batches():
                        yield conform(rows, self.schema)


@dataclass
class StreamFollower:
    """A loaded stream and its folder of offset files, which one query at a time reads."""

    stream: TableStream
    id: str
    folder: str
    poll_s: float
    last: str = ""
    stopped: threading.Event = field(default_factory=threading.Event)
    query: StreamingQuery | None = None
    thread: threading.Thread | None = None
    starting: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, checkpoint: str | None) -> None:
        """Restore offsets from the checkpoint, and the offset files of unfinished batches.

        Raises:
            UnsupportedError: another query reads the folder, and would take these steps for its own.
        """
        self._end()
        self.last = ""
        if checkpoint:
            storage = open_storage(checkpoint, options=dict(self.stream.options))
            found = [g for g in given_out(storage) if g.marker.stream == self.id]
            if len({g.source for g in found}) > 1:
                raise UnsupportedError(
                    "a query reads the same table stream twice",
                    table=self.stream.uri,
                    remedy="load it once and use that frame twice.",
                )
            done = finished(storage)
            for given in found:
                # Spark looks at the last finished batch once more before it goes on.
                if given.batch >= done.get(given.source, -1):
                    create(given.path.rpartition("/")[0], given.marker.name)
            self.last = max((g.marker.end for g in found), default="")
        if not self.last:
            # The checkpoint is to know where the stream began, though nothing may come for a while.
            self.last = self.stream.initial()
            create(self.folder, OffsetFile(self.id, self.last, self.last).name)

    def _end(self) -> None:
        """Take away what an earlier query of this folder has left, which has begun where this one need not."""
        if self.query is not None and self.query.isActive:
            raise UnsupportedError(
                "a frame of a table stream is for one query at a time, and one that runs has it",
                table=self.stream.uri,
                remedy="load the stream again for each query, or write to several sinks in one foreachBatch.",
            )
        self.stopped.set()
        if self.thread is not None:
            self.thread.join()
        self.stopped, self.thread, self.query = threading.Event(), None, None
        folder = open_storage(self.folder)
        for entry in folder.list(""):
            if OffsetFile.parse(entry.name) is not None:
                folder.delete(entry.name)

    def step(self) -> None:
        """Create an offset file for new commits."""
        latest = self.stream.latest()
        if latest > self.last:
            create(self.folder, OffsetFile(self.id, self.last, latest).name)
            self.last = latest

    def follow(self, query: StreamingQuery) -> None:
        """Create offset files until the query ends; a long failure to read the table fails it."""
        stopped, self.query = self.stopped, query

        def run() -> None:
            failed = 0
            while not stopped.wait(self.poll_s) and query.isActive:
                try:
                    self.step()
                    failed = 0
                except HudiError as e:
                    failed += 1
                    log.warning("reading the table %s failed: %s", self.stream.uri, e)
                    if failed == MOST_FAILURES:  # now the query is to fail too
                        self._fail(e)
                        return
                except BaseException as e:  # without the thread the query would go on and give nothing
                    self._fail(e)
                    raise

        self.thread = threading.Thread(target=run, name=f"hudi-stream-{self.id}", daemon=True)
        self.thread.start()

    def _fail(self, error: BaseException) -> None:
        """Fail the query with an error's text."""
        create(self.folder, OffsetFile(self.id, f"{self.last}0", self.last).name, str(error) or repr(error))


_followers: dict[str, StreamFollower] = {}
_lock = threading.Lock()


def load_stream(
    spark: SparkSession, path: str | None, options: Mapping[str, str], *, schema: Any = None
) -> DataFrame:
    """The streaming frame of a read with these options.

    Args:
        schema: columns to give instead of the table's: StructType or DDL text.

    Raises:
        NotAHudiTableError, UnsupportedError, OptionError: as `load_frame`.
    """
    given = merged(session_options(spark), options)
    uri = table_path(spark, path, what="load")
    stream = TableStream.of(uri, with_allowed_merge(uri, given))
    config = stream.config
    full = stream.scan(START, START).schema
    wanted = None if schema is None else UserSchema.of(spark, schema)
    if wanted is not None:
        full = pa.schema([full.field(n) for n in wanted.names(full.names)])
    id = stream_id(stream.open().uri, config.incremental_format)
    folder = _folder(spark, config.stream_folder)
    with _lock:
        _followers[folder] = StreamFollower(stream, id, folder, config.poll_seconds or POLL_SECONDS)
    marks = (
        spark.readStream.format("text")
        .option("maxFileAge", "3650d")
        .option("fileNameOnly", "true")
        .options(**WHOLE)
        .load(f"{folder}/*.hudi")
    )
    planned = in_workers(marks, PlanMarkers(stream, tuple(full.names)), "tasks binary")
    spread = planned.repartition(max(2, spark.sparkContext.defaultParallelism))
    rows = in_workers(spread, ReadPlanned(full), to_spark_schema(full))
    return rows if wanted is None else rows.select(*wanted.columns(rows.schema))


def _folder(spark: SparkSession, given: str | None) -> str:
    if given is None:
        if not str(spark.sparkContext.master).startswith("local"):
            raise OptionError(
                f"a stream on a cluster of this Spark version needs {STREAM_FOLDER}",
                remedy="name a folder that the driver and all executors reach; it may be empty at each start.",
                option=STREAM_FOLDER,
            )
        return tempfile.mkdtemp(prefix="hudi-stream-")
    folder = f"{given.rstrip('/')}/{uuid.uuid4().hex}"
    open_storage(folder).make_dir("")
    return folder


def following(
    start: Callable[[], StreamingQuery], frame: DataFrame, options: Mapping[str, str], name: str | None
) -> StreamingQuery:
    """Start a query and the followers of its table streams.

    Args:
        options: of the stream's writer; they name the checkpoint.
        name: of the query.
    """
    checkpoint = take_option(dict(options), CHECKPOINT)
    folder = frame.sparkSession.conf.get(_DEFAULT_CHECKPOINT, None)
    if checkpoint is None and folder and name:
        checkpoint = f"{folder}/{name}"
    followers = _of(frame)
    if not followers:
        return start()
    with ExitStack() as held:
        for follower in followers:  # of two starts of one frame, the second finds the query of the first
            held.enter_context(follower.starting)
        for follower in followers:
            follower.begin(checkpoint)
            follower.step()
        query = start()
        for follower in followers:
            follower.follow(query)
    return query


def _of(frame: DataFrame) -> list[StreamFollower]:
    """Followers of a frame's streams, by the folders in its plan."""
    with _lock:
        known = list(_followers.values())
    if not known:
        return []
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(True)
    return [f for f in known if f.folder in text.getvalue()]
