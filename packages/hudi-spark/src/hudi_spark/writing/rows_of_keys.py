"""Rows with one key in several partitions, for the indexes over all of them, on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hudi_format.merge.ordering import ordering_column
from hudi_format.merge.record_merger import combine
from hudi_format.schema.evolution import conform
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_index.lookup import LookupTask
from hudi_index.tagging import record_kinds
from hudi_spark.runtime.python_workers import in_workers
from hudi_spark.types import quoted
from hudi_spark.writing.deleted_keys import is_delete
from hudi_spark.writing.key_places import ROW_ID

# Whether any row of the key is no delete.
HAS_DATA = "_hudi_has_data"
_ROWS, _LAST = "_hudi_rows", "_hudi_last"


def one_per_key(rows: DataFrame, task: LookupTask, tasks: int | None = None) -> DataFrame:
    """Rows for `task.fills_within`: one per key, nulls filled, in the last partition."""
    together = rows.repartition(tasks, RECORD_KEY) if tasks else rows.repartition(RECORD_KEY)
    return in_workers(together, FillByKey(task), rows.schema)


@dataclass(frozen=True)
class FillByKey:
    """Worker that merges the rows of a key, all in one task."""

    task: LookupTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [b for b in batches if b.num_rows]
        if not parts:
            return
        rows = pa.Table.from_batches(parts).sort_by(ROW_ID)
        kinds = record_kinds(self.task, rows)
        keys = rows.column(RECORD_KEY)
        yield from (
            combine(keys, self.task.rule, ordering=ordering_of(rows, self.task), kinds=kinds)
            .take(rows)
            .to_batches()
        )


def repeated_keys(rows: DataFrame, task: LookupTask) -> DataFrame:
    """Keys of several rows, with the partition of the last that is no delete; null if all are."""
    data = F.when(~is_delete(rows, task), F.struct(ROW_ID, PARTITION_PATH))
    of_key = rows.groupBy(RECORD_KEY).agg(F.count(F.lit(1)).alias(_ROWS), F.max(data).alias(_LAST))
    return of_key.where(F.col(_ROWS) > 1).select(RECORD_KEY, F.col(f"{_LAST}.{PARTITION_PATH}").alias(_LAST))


def together(rows: DataFrame, repeated: DataFrame, task: LookupTask) -> DataFrame:
    """Rows for `task.keeps_together`, those of a key in the partition of its last; `HAS_DATA`.

    Args:
        repeated: as `repeated_keys` gives it.
    """
    marked = repeated.withColumn(_ROWS, F.lit(True))
    found = rows.join(marked, RECORD_KEY, "left")
    data = F.when(F.col(_ROWS), F.col(_LAST).isNotNull()).otherwise(~is_delete(rows, task))
    path = F.coalesce(F.col(_LAST), F.col(PARTITION_PATH))
    others = [quoted(n) for n in rows.columns if n not in (RECORD_KEY, PARTITION_PATH)]
    return found.select(RECORD_KEY, path.alias(PARTITION_PATH), *others, data.alias(HAS_DATA))


def ordering_of(rows: pa.Table, task: LookupTask) -> pa.ChunkedArray | pa.Array | None:
    """Ordering values of rows, in the type to write."""
    if task.ordering_column is None or task.ordering_column.name not in rows.schema.names:
        return None
    column = rows.select([task.ordering_column.name])
    path = task.ordering_field or task.ordering_column.name
    return ordering_column(conform(column, pa.schema([task.ordering_column])), path, task.rule.sequence)
