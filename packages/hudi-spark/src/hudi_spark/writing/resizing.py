"""Resize of a bucket index by a Spark session, whose workers divide the buckets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from pyspark.sql import SparkSession

from hudi_format.model import WriteStat
from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_spark.runtime.jobs import run_job
from hudi_spark.runtime.options import merged, session_options, table_path
from hudi_spark.runtime.python_workers import in_workers
from hudi_spark.writing.write_tasks import STATUS_DDL, DivideBuckets, statuses
from hudi_timeline import HudiTable
from hudi_timeline.services.buckets.resize_plan import ResizePlan
from hudi_timeline.services.buckets.resize_tasks import ResizeTask
from hudi_timeline.services.buckets.resizing import ResizeResult


def resize_buckets(
    spark: SparkSession,
    path: str,
    num_buckets: int | None = None,
    *,
    partitions: Collection[str] | None = None,
    engine: str | None = None,
    mode: str = "schedule_and_execute",
    plan: ResizePlan | None = None,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
) -> ResizeResult:
    """Split and merge buckets on a session's executors; see `HudiTable.resize_buckets`.

    Args:
        options: of the call; the session's `hoodie.*` settings are added below them.

    Raises:
        HudiError: as `hudi_timeline.HudiTable.resize_buckets`.
    """
    given = merged(session_options(spark), dict(options or {}))
    storage = open_storage(table_path(spark, path, what="resize_buckets"), options=given)
    return HudiTable.open(storage).resize_buckets(
        num_buckets, partitions=partitions, engine=engine, mode=mode, plan=plan, dry_run=dry_run,
        options=without_hadoop_options(given), run=partial(_run_on_spark, spark),
    )  # fmt: skip


def _run_on_spark(spark: SparkSession, tasks: Sequence[ResizeTask]) -> list[WriteStat]:
    """Run tasks in Spark's Python workers, a partition each, the largest first.

    Raises:
        HudiError: the first error that a task gave back; WriteFailedError for other failures.
    """
    if not tasks:
        return []
    ordered = tuple(sorted(tasks, key=lambda t: -t.bytes))
    numbers = spark.range(0, len(ordered), 1, len(ordered))

    def collect() -> list[tuple[str, bytes]]:
        found = in_workers(numbers, DivideBuckets(ordered), STATUS_DDL).collect()
        return [(row.kind, bytes(row.payload)) for row in found]

    return statuses(run_job(spark, collect, "hudi: resize of buckets", settle=True))


__all__ = ["resize_buckets"]
