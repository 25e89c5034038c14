"""Spark 4's Python data source as a stream: `spark.readStream.format("hudi").load(path)`.

Offsets are those of Apache Hudi, `{"commitTime": "<instant>"}`, kept by Spark in the query's checkpoint.
"""

# mypy looks at PySpark 3.5, which has no data sources: hence the ignored bases.
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from hudi_format.schema.evolution import conform
from hudi_spark.datasource import Files, path_of
from hudi_spark.reading.read_tasks import grouped
from hudi_spark.runtime.python_workers import forget_archives
from hudi_spark.streaming.table_stream import START, TableStream
from hudi_spark.types import to_arrow_schema

OFFSET = "commitTime"


class HudiStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Plans each batch in the driver's helper process, reads it in the tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        given = dict(options)
        self.stream = TableStream.of(path_of(given), given)
        self.schema = to_arrow_schema(schema)

    def initialOffset(self) -> dict[str, str]:
        return {OFFSET: self.stream.initial()}

    def latestOffset(self) -> dict[str, str]:
        return {OFFSET: self.stream.latest()}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        known = self.stream.scan(START, START).schema.names
        columns = [n for n in self.schema.names if n in known]
        scan = self.stream.scan(start[OFFSET], end[OFFSET], columns)
        return [Files(g) for g in grouped(scan.plan_files())] or [Files(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for task in partition.tasks if isinstance(partition, Files) else ():
            for batch in task.to_batches():
                yield conform(batch, self.schema)
        forget_archives()

    def commit(self, end: dict[str, str]) -> None:
        """Nothing to do: the checkpoint keeps the offset."""


__all__ = ["HudiStreamReader"]
