"""Spark 4's Python data source: `format("hudi")` for scripts that import nothing of ours.

Everything here runs in Python processes that Spark starts: no session, no shuffle, no native scan.  It reads all
columns that are asked for by schema, and writes by staging the rows as Arrow files, which the engine without a JVM
then commits; so it is for amounts that fit in memory.  `hudi_spark.enable(spark)` has no such limit.

Source: spec "What PySpark lets a Python-only package do", sections 1 to 4.
"""

# mypy looks at PySpark 3.5, which has no data sources: hence the ignored bases.
from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hudi_format.config import parse_read_options
from hudi_format.config.read import INCREMENTAL
from hudi_format.errors import InvalidOptionError, OptionError, UnsupportedError
from hudi_format.schema.evolve import conform
from hudi_format.storage import Storage, open_storage
from hudi_spark.config import take_option
from hudi_spark.read_tasks import grouped
from hudi_spark.types import to_arrow_schema as arrow_schema
from hudi_spark.types import to_spark_schema
from hudi_timeline.engine.local import LocalEngine
from hudi_timeline.scan.result import Scan
from hudi_timeline.scan.task import ReadTask
from hudi_timeline.table import HudiTable
from hudi_timeline.write.operation import APPEND, OVERWRITE, execute

MAX_BYTES = "hudi.datasource.max.bytes"
"""Our own option: how many bytes of Arrow data one write through the data source may have."""
DEFAULT_MAX_BYTES = 256 << 20
STAGING = ".hoodie_staging"
_ENABLE = "call hudi_spark.enable(spark) before the {}, which then runs on Spark itself."


def _path_of(options: dict[str, str]) -> str:
    path = take_option(options, "path")
    if path is None and take_option(options, "paths") is not None:
        raise UnsupportedError(
            "several paths cannot be read as one table", remedy="give the table's base path."
        )
    if not path:
        raise OptionError("no path is given", remedy="use load(path) or save(path).", option="path")
    return path


# --- reading ---------------------------------------------------------------------------------------------


def _scan(options: Mapping[str, str], columns: Sequence[str] | None = None) -> Scan:
    given = dict(options)
    table = HudiTable.open(_path_of(given))
    config = parse_read_options(given)
    raw = dict(config.raw)
    if config.query_type == INCREMENTAL:
        return table.read_incremental(config.begin or "", config.end, columns=columns, options=raw)
    return table.read(columns, query=config.query_type, as_of=config.as_of, options=raw)


def table_schema(options: Mapping[str, str]) -> StructType:
    """The columns that a read with these options gives."""
    return to_spark_schema(_scan(options).schema)


class Files(InputPartition):  # type: ignore[misc]
    """The files that one task reads."""

    def __init__(self, tasks: tuple[ReadTask, ...]) -> None:
        super().__init__(len(tasks))
        self.tasks = tasks


class HudiReader(DataSourceReader):  # type: ignore[misc]
    """Plans in the driver's helper process, reads in the tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.options = dict(options)
        # The exact Arrow schema that Spark compares the first batch with, nullability included.
        of_spark: Any = to_arrow_schema  # PySpark 3.5 knows no time zone here
        self.schema: pa.Schema = of_spark(schema, timezone="UTC")

    def partitions(self) -> Sequence[InputPartition]:
        known = set(_scan(self.options).schema.names)
        scan = _scan(self.options, [n for n in self.schema.names if n in known])
        # A list without any partition would make Spark call read() with None.
        return [Files(g) for g in grouped(scan.plan_files())] or [Files(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        tasks = partition.tasks if isinstance(partition, Files) else ()
        for task in tasks:
            for batch in task.to_batches():
                yield conform(batch, self.schema)


# --- writing ---------------------------------------------------------------------------------------------


@dataclass
class Staged(WriterCommitMessage):  # type: ignore[misc]
    """What one task staged; `path` is "" where it had no rows."""

    path: str
    size: int


class HudiWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Stages in the tasks, commits with the engine without a JVM."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self.schema = arrow_schema(schema)
        given = dict(options)
        self.path = _path_of(given)
        self.limit = _limit(take_option(given, MAX_BYTES))
        self.options = given
        self.mode = OVERWRITE if overwrite else APPEND
        self.folder = f"{STAGING}/{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        context = TaskContext.get()
        number = (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)
        path, size = f"{self.folder}/{number[0]}-{number[1]}.arrow", 0
        writer: pa.ipc.RecordBatchStreamWriter | None = None
        output: Any = None
        try:
            for batch in iterator:
                size += batch.nbytes
                self._check(size)
                if writer is None:
                    output = open_storage(self.path).open_output(path)
                    writer = pa.ipc.new_stream(output, batch.schema)
                writer.write_batch(batch)
        finally:
            if writer is not None:
                writer.close()
                output.close()
        return Staged(path if writer is not None else "", size)

    def _check(self, size: int) -> None:
        if size > self.limit:
            raise UnsupportedError(
                f"this way of writing takes {self.limit:,} bytes of Arrow data at most, and there are more",
                table=self.path,
                remedy=_ENABLE.format("write") + f" Or raise the option {MAX_BYTES}, if memory allows.",
            )

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        staged = [m for m in messages if isinstance(m, Staged) and m.path]
        storage = open_storage(self.path)
        try:
            self._check(sum(m.size for m in staged))
            rows = _rows(storage, staged, self.schema)
        finally:
            # Also before the write: with mode overwrite nothing of ours may lie in the table's folder.
            self._clean(storage)
        execute(LocalEngine(), storage, rows, self.options, mode=self.mode)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._clean(open_storage(self.path))

    def _clean(self, storage: Storage) -> None:
        storage.delete_dir(self.folder)
        if storage.info(STAGING) is not None and not storage.list(STAGING):
            storage.delete_dir(STAGING)


def _rows(storage: Storage, staged: Sequence[Staged], schema: pa.Schema) -> pa.Table:
    tables = [schema.empty_table()]
    for message in sorted(staged, key=lambda m: int(m.path.rpartition("/")[2].partition("-")[0])):
        tables.append(pa.ipc.open_stream(pa.BufferReader(storage.read(message.path))).read_all().cast(schema))
    return pa.concat_tables(tables)


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_MAX_BYTES
    try:
        limit = int(text)
    except ValueError:
        limit = -1
    if limit < 0:
        raise InvalidOptionError(
            f"{MAX_BYTES}={text!r} is no number of bytes", remedy="give a whole number.", option=MAX_BYTES
        )
    return limit
