"""Count of the stages that resolve a write's keys, for a dry run on Spark.

A key may be looked for by several tasks, each in files of its own, so that no task can say what became of it.  Where
keys are counted, the workers of a look-up therefore give marks beside places: rows whose file id is no file group's.
One aggregation by row tells them together; the marks are left out of what is joined with the rows.

Source: `hudi_index.lookup.KeyStages`, which the local engine counts by masks of its rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_index.lookup import KeyStages
from hudi_spark.types import to_arrow_schema
from hudi_spark.writing.key_places import ROW_ID
from hudi_spark.writing.stored_keys import FILE_ID

# No file id begins so: it would be no name of a file in Hadoop's file systems.
_MARK = ":"
TOLD = ":told"
"""The index says the row's file group, without a look into files."""
COMPARED = ":compared"
"""The row's key was compared with those of a file."""


def marks(kinds: T.StructType, ids: np.ndarray, mark: str) -> pa.RecordBatch:
    """A mark for each row, in the shape of the places that a worker gives.

    Args:
        kinds: of the places.
        ids: the rows' numbers.
    """
    known = {ROW_ID: pa.array(ids, pa.int64()), FILE_ID: pa.repeat(pa.scalar(mark), len(ids))}
    schema = to_arrow_schema(kinds)
    columns = [known[f.name] if f.name in known else pa.nulls(len(ids), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def without_marks(found: DataFrame) -> DataFrame:
    """Places alone."""
    return found.where(F.col(FILE_ID).isNull() | ~F.col(FILE_ID).startswith(_MARK))


def count_stages(
    found: DataFrame, rows: int, run: Callable[[Callable[[], list[T.Row]]], list[T.Row]]
) -> KeyStages:
    """Stages of a look-up, in one job.

    Args:
        found: places and marks; kept, as they are used again.
        rows: number of incoming rows.
        run: runs the job.
    """
    place = F.col(FILE_ID)

    def has(condition: Column) -> Column:
        return F.max(F.coalesce(condition, F.lit(False)))

    by_row = found.groupBy(ROW_ID).agg(
        has(place == TOLD).alias("told"),
        has(place == COMPARED).alias("compared"),
        has(~place.startswith(_MARK)).alias("found"),
        has(place.isNull()).alias("lost"),  # another row of its key is kept
    )

    def number(condition: Column) -> Column:
        return F.coalesce(F.sum(condition.cast("long")), F.lit(0))

    told, compared = F.col("told"), F.col("compared") & ~F.col("told")
    (counted,) = run(
        by_row.agg(
            number(told),
            number(compared & F.col("found")),
            number(compared & ~F.col("found")),
            number(F.col("lost")),
        ).collect
    )
    told_rows, hits, in_vain, lost = map(int, counted)
    return KeyStages(told_rows, rows - lost - told_rows - hits - in_vain, hits, in_vain)
