"""Compaction and log compaction by a Spark session: the driver plans, the workers merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import SparkSession

from hudi_format.model import WriteStat
from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_spark.runtime.jobs import run_job
from hudi_spark.runtime.options import merged, session_options, table_path
from hudi_spark.runtime.python_workers import in_workers
from hudi_spark.writing.write_tasks import STATUS_DDL, CompactSlices, statuses
from hudi_timeline import HudiTable
from hudi_timeline.services.compaction.compaction import CompactionResult
from hudi_timeline.services.compaction.slice_tasks import Task
from hudi_timeline.timeline.action_metadata import CompactionPlan


def compact(
    spark: SparkSession,
    path: str,
    *,
    mode: str = "schedule_and_execute",
    plan: CompactionPlan | None = None,
    instant: str | None = None,
    only_if_due: bool = False,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
) -> CompactionResult:
    """Compact a table with the executors of a session; see `hudi_timeline.HudiTable.compact`.

    Args:
        options: of the call; the session's `hoodie.*` settings are added below them.

    Raises:
        HudiError: as `hudi_timeline.HudiTable.compact`.
    """
    given = merged(session_options(spark), dict(options or {}))
    storage = open_storage(table_path(spark, path, what="compact"), options=given)
    return HudiTable.open(storage).compact(
        plan=plan, mode=mode, instant=instant, only_if_due=only_if_due, dry_run=dry_run,
        options=without_hadoop_options(given), run=partial(run_on_spark, spark),
    )  # fmt: skip


def log_compact(
    spark: SparkSession,
    path: str,
    *,
    mode: str = "schedule_and_execute",
    instant: str | None = None,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
) -> CompactionResult:
    """Merge log blocks on the executors of a session; see `hudi_timeline.HudiTable.log_compact`.

    Args:
        options: of the call; the session's `hoodie.*` settings are added below them.

    Raises:
        HudiError: as `hudi_timeline.HudiTable.log_compact`.
    """
    given = merged(session_options(spark), dict(options or {}))
    storage = open_storage(table_path(spark, path, what="log_compact"), options=given)
    return HudiTable.open(storage).log_compact(
        mode=mode, instant=instant, dry_run=dry_run,
        options=without_hadoop_options(given), run=partial(run_on_spark, spark),
    )  # fmt: skip


def run_on_spark(spark: SparkSession, tasks: Sequence[Task]) -> list[WriteStat | None]:
    """Run compaction tasks in Spark's Python workers, a partition each, the largest first.

    Raises:
        HudiError: the first error that a task gave back; WriteFailedError for other failures.
    """
    if not tasks:
        return []
    ordered = tuple(sorted(tasks, key=lambda t: -t.bytes))
    numbers = spark.range(0, len(ordered), 1, len(ordered))

    def collect() -> list[tuple[str, bytes]]:
        found = in_workers(numbers, CompactSlices(ordered), STATUS_DDL).collect()
        return [(row.kind, bytes(row.payload)) for row in found]

    return [*statuses(run_job(spark, collect, "hudi: compaction", settle=True))]


__all__ = ["compact", "log_compact", "run_on_spark"]
