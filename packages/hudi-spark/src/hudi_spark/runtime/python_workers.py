"""Python worker functions without PySpark's cost per task.

At the start of every task PySpark's worker calls `importlib.invalidate_caches()`, which makes Python 3.11 read the
directories of PySpark's zips and of Spark's core jar again, once for each package in them: 65 to 70 ms of CPU where
that was measured, and later Pythons do it at the next import.  These archives never change while an application runs,
so their finders are forgotten at the end of a task; the next import makes them anew from what is known.
"""

from __future__ import annotations

import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from hudi_format.arrow.input import whole_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")
Work = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]

_OF_SPARK = ("pyspark.zip", "py4j-", "spark-core_")


def in_workers(rows: DataFrame, work: Work, schema: StructType | str) -> DataFrame:
    """Result of `work` over the rows' batches, per task."""
    return rows.mapInArrow(_InWorker(work), schema)


def in_groups(
    spark: SparkSession,
    groups: Sequence[Sequence[T]],
    work: Callable[[T], Iterable[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Result of `work` for each item of each group; a group is a task."""
    numbers = spark.range(0, len(groups), 1, len(groups))
    return in_workers(numbers, _OfGroups(groups, work), schema)


def forget_archives() -> None:
    """Drop the importers of Spark's own archives; archives added by a user stay."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            name = finder.archive.replace("\\", "/").rpartition("/")[2]
            if name.startswith(_OF_SPARK):
                sys.path_importer_cache.pop(path, None)


@dataclass(frozen=True)
class _InWorker:
    work: Work

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.work(map(whole_batch, batches))
        finally:
            forget_archives()
            # Spark keeps the process for a later task: what Arrow holds of this one would stay resident beside the JVM.
            pa.default_memory_pool().release_unused()


@dataclass(frozen=True)
class _OfGroups(Generic[T]):
    """Worker whose incoming rows are numbers of groups."""

    groups: Sequence[Sequence[T]]
    work: Callable[[T], Iterable[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for item in self.groups[number]:
                    yield from self.work(item)
