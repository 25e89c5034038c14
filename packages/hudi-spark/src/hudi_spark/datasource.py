"""Spark 4 Python data source `hudi`, for scripts without `hudi_spark` imports.

Everything here runs in Python processes that Spark starts: no session, no shuffle, no native scan.  It reads the
columns that `.schema(...)` or `hudi.read.columns` name, and writes by staging the rows as Arrow files, which the
engine without a JVM then commits; so it is for amounts that fit in memory.  `hudi_spark.enable(spark)` has no
such limit.  `pushFilters` is left out on purpose: a reader that has it fails while Spark's setting for it is off,
and no setting can be seen from here; `hudi.read.filter` does the same.

Rows are staged in a folder of each write's own, `.hoodie_staging_<uuid>` in the base path.  That is storage which
every task and the driver reach, unlike a temporary folder.  It is not below `.hoodie`, which would make a path
look like a table before there is one.  What a killed write leaves there does no harm: it is no partition, it does
not count as something else at the path, readers pass over it, and the first write that begins a day later takes
it away.

Source: spec "What PySpark lets a Python-only package do", sections 1 to 4.
"""

# mypy looks at PySpark 3.5, which has no data sources: hence the ignored bases.
from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import NoReturn

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from hudi_format.arrow.input import whole_batch
from hudi_format.arrow.sizes import size_of
from hudi_format.errors import (
    ConflictingOptionError,
    HudiError,
    InvalidOptionError,
    OptionError,
    StorageError,
    UnsupportedError,
    WriteFailedError,
)
from hudi_format.fork_safe import cached_property
from hudi_format.schema.evolution import conform
from hudi_format.storage.hadoop_options import hadoop_options, without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_spark.reading.read_tasks import grouped
from hudi_spark.reading.reader import scan_for
from hudi_spark.reading.user_schema import columns_of
from hudi_spark.refused_sql import LOAD, SAVE, STREAM_WRITE
from hudi_spark.runtime.helper_process import one_line
from hudi_spark.runtime.options import take_option
from hudi_spark.runtime.python_workers import forget_archives
from hudi_spark.streaming.table_stream import START, TableStream
from hudi_spark.types import lost_collations, to_arrow_schema, to_spark_schema
from hudi_timeline.options import parse_read_options
from hudi_timeline.options.read_options import (
    AS_OF,
    BEGIN,
    CDC,
    END,
    INCREMENTAL,
    INCREMENTAL_FORMAT,
    QUERY_TYPE,
    START_OFFSET,
)
from hudi_timeline.options.write_options import STAGING_LIMIT
from hudi_timeline.reading.incremental.cdc_task import ChangeTask
from hudi_timeline.reading.scan import Scan
from hudi_timeline.reading.task import ReadTask
from hudi_timeline.table import HudiTable
from hudi_timeline.transaction.orphans import STAGING
from hudi_timeline.transaction.retries import LOOKUPS, retried
from hudi_timeline.transaction.write_basis import FirstBasis
from hudi_timeline.writing.engine import DATA
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import check, execute
from hudi_timeline.writing.planning.write_plan import APPEND, OVERWRITE

DEFAULT_STAGING_LIMIT = 256 << 20
"""Bytes of Arrow data that one write may have, if the option does not say."""
_OF_A_TABLE = ("owner", "location", "provider")  # properties that Spark gives to tables that it creates
_NO_PATH = (
    "use load(path) or save(path), and for SQL a view: create temporary view v using hudi options (path '...'). A "
    "table of the catalog (create table ... using hudi) has no use, as Spark does not tell a Python data source its "
    "location: remove it with drop table, which leaves what is at a LOCATION."
)
_BOUNDS = (BEGIN, END, AS_OF)
_ENABLE = "call hudi_spark.enable(spark) before the {}, which then runs on Spark itself."


def path_of(options: dict[str, str]) -> str:
    """The table's base path, removed from the options."""
    path = take_option(options, "path")
    if path is None and take_option(options, "paths") is not None:
        raise UnsupportedError(
            "several paths cannot be read as one table", remedy="give the table's base path."
        )
    if not path or not path.strip():
        raise OptionError("no path is given", remedy=_NO_PATH, option="path")
    return path


# --- reading ---------------------------------------------------------------------------------------------


def _scan(options: Mapping[str, str], columns: Sequence[str] | None = None) -> Scan:
    given = dict(options)
    path = path_of(given)
    config = parse_read_options(without_hadoop_options(given))
    table = HudiTable.open(path, options=hadoop_options(given))
    return scan_for(table, config, columns)


@one_line()
def table_schema(options: Mapping[str, str]) -> StructType:
    """Schema of a read with these options; Spark does not say whether it is a stream.

    It asks for it to create a table without columns too, with the table's properties among the options.  Where the
    statement has columns it asks nothing, and the first use of the table is refused.
    """
    if any(name.lower() in _OF_A_TABLE for name in options):
        raise UnsupportedError(
            "SQL on tables USING hudi is not supported yet", remedy=f"{SAVE} For queries {LOAD}"
        )
    if _changes_only_as_stream(options):
        return _schema_of_stream(options)
    try:
        return to_spark_schema(_scan(options).schema)
    except HudiError as e:
        if isinstance(e, OptionError):
            # An incremental query without a begin, say, is a stream; if it is none, its reader says so.
            with suppress(HudiError):
                return _schema_of_stream(options)
        # The way for a query is none for a stream, and Spark does not say which of the two this is.
        if e.details.get("option") in _BOUNDS:
            e.remedy += f" A stream begins at {START_OFFSET}: earliest, latest or an instant."
        raise


def _schema_of_stream(options: Mapping[str, str]) -> StructType:
    given = dict(options)
    return to_spark_schema(TableStream.of(path_of(given), given).scan(START, START).schema)


def _changes_only_as_stream(options: Mapping[str, str]) -> bool:
    """Whether changes are requested without an incremental query, as streams may do."""
    given = {k.lower(): v.strip().lower() for k, v in options.items()}
    return given.get(INCREMENTAL_FORMAT) == CDC and given.get(QUERY_TYPE) != INCREMENTAL


class Files(InputPartition):  # type: ignore[misc]
    """Files of one task, as an input partition."""

    def __init__(self, tasks: tuple[ReadTask | ChangeTask, ...]) -> None:
        super().__init__(len(tasks))
        self.tasks = tasks


def _inputs(scan: Scan) -> list[InputPartition]:
    # A list without any partition would make Spark call read() with None.
    return [Files(g) for g in grouped(scan.plan_files())] or [Files(())]


class HudiReader(DataSourceReader):  # type: ignore[misc]
    """Batch reader: plans in the driver's helper process, reads in the tasks."""

    @one_line()
    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        if _changes_only_as_stream(options):
            raise ConflictingOptionError(
                f"{INCREMENTAL_FORMAT}={CDC} requires an incremental query",
                remedy=f"set {QUERY_TYPE}={INCREMENTAL}.",
                option=INCREMENTAL_FORMAT,
            )
        parse_read_options(without_hadoop_options(dict(options)))
        self.options = dict(options)
        # What Spark compares the first batch with, nullability included; its own converter is not public and
        # takes other arguments in each version.
        self.schema = to_arrow_schema(schema)

    @one_line()
    def partitions(self) -> Sequence[InputPartition]:
        return _inputs(_scan(self.options, columns_of(self.schema, _scan(self.options).schema)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows_of(partition, self.schema)


def _rows_of(partition: InputPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with one_line():
        for task in partition.tasks if isinstance(partition, Files) else ():
            for batch in task.to_batches():
                yield conform(batch, schema)
    forget_archives()


# --- writing ---------------------------------------------------------------------------------------------


@dataclass
class Staged(WriterCommitMessage):  # type: ignore[misc]
    """Staged rows of one task; `path` is "" where it had none."""

    path: str
    size: int


class HudiWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Batch writer: stages in the tasks, commits with the local engine."""

    @one_line()
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Validate options and schema before a row is evaluated; errors as of `execute`."""
        given = dict(options)
        self.path = path_of(given)
        self.limit = _limit(given)
        self.schema = to_arrow_schema(schema)
        self.warnings = lost_collations(schema)
        self.mode = OVERWRITE if overwrite else APPEND
        self.folder = STAGING + uuid.uuid4().hex
        self.store = hadoop_options(given)
        self.options = without_hadoop_options(given)
        storage = self._storage()
        check(LocalEngine(types=DATA), storage, self.schema.empty_table(), self.options, mode=self.mode)

    def _storage(self) -> Storage:
        return open_storage(self.path, options=self.store)

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        context = TaskContext.get()
        partition, attempt = (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
        first = next(iterator, None)
        if first is None:
            return Staged("", 0)
        storage, path = self._storage(), f"{self.folder}/{partition}-{attempt}.arrow"
        others, size = _staged_by_others(storage, self.folder, partition), 0
        with storage.open_output(path) as output:
            writer = pa.ipc.new_stream(output, first.schema)
            for batch in map(whole_batch, chain((first,), iterator)):
                size += size_of(batch)
                self._check(others + size)
                with _refusals(storage, path):
                    writer.write_batch(batch)
            with _refusals(storage, path):
                writer.close()
                output.close()  # a remote store takes the bytes only now
        return Staged(path, size)

    def _check(self, size: int) -> None:
        if size > self.limit:
            raise UnsupportedError(
                f"this write path takes at most {self.limit:,} bytes of Arrow data, and the frame has more",
                table=self.path,
                remedy=_ENABLE.format("write") + f" Or raise the option {STAGING_LIMIT}, if memory allows.",
                option=STAGING_LIMIT,
            )

    @one_line()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        staged = [m for m in messages if isinstance(m, Staged) and m.path]
        storage = self._storage()
        try:
            self._check(sum(m.size for m in staged))
            rows = _rows(storage, staged, self.schema)
        finally:
            # Before the write: mode overwrite moves or deletes all that lies at the path.
            storage.delete_dir(self.folder)
        options, mode, first = self.options, self.mode, FirstBasis()

        retried(
            options,
            lambda lost: execute(
                LocalEngine(types=DATA, warnings=self.warnings),
                storage,
                rows,
                options,
                mode=mode,
                lost=lost,
                first=first,
            ),
            lookups=LOOKUPS,
        )

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._storage().delete_dir(self.folder)


def _staged_by_others(storage: Storage, folder: str, partition: int) -> int:
    """Bytes staged by other tasks; of several attempts of a task, the largest counts."""
    sizes: dict[str, int] = {}
    for entry in storage.list(folder):
        task = entry.name.partition("-")[0]
        if task != str(partition):
            sizes[task] = max(sizes.get(task, 0), entry.size)
    return sum(sizes.values())


@contextmanager
def _refusals(storage: Storage, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise StorageError(
            f"the storage refused the staged rows: {e.strerror or e}",
            table=storage.uri,
            file=path,
            remedy="free space, or grant this user access to the table's folder; nothing was written.",
        ) from e


def _rows(storage: Storage, staged: Sequence[Staged], schema: pa.Schema) -> pa.Table:
    tables = [schema.empty_table()]
    for message in sorted(staged, key=lambda m: int(m.path.rpartition("/")[2].partition("-")[0])):
        try:
            data = storage.read(message.path)
        except FileNotFoundError:
            raise WriteFailedError(
                "staged rows of this write are missing",
                table=storage.uri,
                file=message.path,
                remedy="run the write again; nothing of it is visible.",
            ) from None
        tables.append(pa.ipc.open_stream(pa.BufferReader(data)).read_all().cast(schema))
    return pa.concat_tables(tables)


def _limit(options: dict[str, str]) -> int:
    """The staging limit in bytes; its option is removed."""
    text = take_option(options, STAGING_LIMIT)
    if text is None:
        return DEFAULT_STAGING_LIMIT
    try:
        limit = int(text)
    except ValueError:
        limit = -1
    if limit < 0:
        raise InvalidOptionError(
            f"{STAGING_LIMIT}={text!r} is not a number of bytes",
            remedy="give a whole number.",
            option=STAGING_LIMIT,
        )
    return limit


@one_line()
def refuse_stream() -> NoReturn:
    """Refuse a streaming write, which Spark would otherwise refuse with a traceback of its own."""
    raise UnsupportedError("writeStream.format('hudi') is not supported yet", remedy=STREAM_WRITE)


# Offsets are those of Apache Hudi, `{"commitTime": "<instant>"}`, kept by Spark in the query's checkpoint.
OFFSET = "commitTime"


class HudiStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Stream reader: plans each batch in the driver's helper process, reads in the tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        """A reader that has not looked at anything.

        Spark stops readers that it could not make, and tells the error of that instead.
        """
        self._given = (dict(options), schema)
        self._latest, self._looked = "", 0.0

    @cached_property
    def stream(self) -> TableStream:
        return TableStream.of(path_of(self._given[0]), self._given[0])

    @cached_property
    def schema(self) -> pa.Schema:
        return to_arrow_schema(self._given[1])

    @one_line()
    def initialOffset(self) -> dict[str, str]:
        return {OFFSET: self.stream.initial()}

    @one_line()
    def latestOffset(self) -> dict[str, str]:
        wait = self.stream.config.poll_seconds or 0.0
        if not self._latest or time.monotonic() - self._looked >= wait:
            self._latest, self._looked = self.stream.latest(), time.monotonic()
        return {OFFSET: self._latest}

    @one_line()
    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        columns = columns_of(self.schema, self.stream.scan(START, START).schema)
        return _inputs(self.stream.scan(start[OFFSET], end[OFFSET], columns))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows_of(partition, self.schema)

    def commit(self, end: dict[str, str]) -> None:
        """Does nothing: the checkpoint keeps the offset."""
