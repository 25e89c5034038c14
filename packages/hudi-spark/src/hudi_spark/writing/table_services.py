"""Table services run by a Spark session: compactions, resizes of buckets, builds of indexes.

The driver plans. Its executors merge file slices and divide buckets; indexes are built by threads of the driver from
footers and key columns, and no job is started.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from pyspark.sql import SparkSession

from hudi_format.model import WriteStat
from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_spark.runtime.options import merged, session_options, table_path
from hudi_spark.writing.write_tasks import run_on_spark
from hudi_timeline import HudiTable
from hudi_timeline.services.buckets.resize_plan import ResizePlan
from hudi_timeline.services.buckets.resizing import ResizeResult
from hudi_timeline.services.compaction.compaction import CompactionResult
from hudi_timeline.services.compaction.slice_tasks import Task
from hudi_timeline.services.indexing import IndexDropResult, IndexingResult
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
    table, given = _table(spark, path, options, "compact")
    return table.compact(
        plan=plan, mode=mode, instant=instant, only_if_due=only_if_due, dry_run=dry_run,
        options=given, run=partial(run_slices, spark),
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
    table, given = _table(spark, path, options, "log_compact")
    return table.log_compact(
        mode=mode, instant=instant, dry_run=dry_run,
        options=given, run=partial(run_slices, spark),
    )  # fmt: skip


def run_slices(spark: SparkSession, tasks: Sequence[Task]) -> list[WriteStat | None]:
    """Run compaction tasks in Spark's Python workers; see `run_on_spark`."""
    return [*run_on_spark(spark, tasks, "compaction")]


def resize_buckets(
    spark: SparkSession,
    path: str,
    num_buckets: int | None = None,
    *,
    partitions: Collection[str] | None = None,
    engine: str | None = None,
    overwrite: bool = False,
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
    table, given = _table(spark, path, options, "resize_buckets")
    return table.resize_buckets(
        num_buckets, partitions=partitions, engine=engine, overwrite=overwrite, mode=mode, plan=plan, dry_run=dry_run,
        options=given, run=partial(run_on_spark, spark, what="resize of buckets"),
    )  # fmt: skip


def build_index(
    spark: SparkSession,
    path: str,
    partitions: str | Collection[str] = (),
    *,
    mode: str = "schedule_and_execute",
    instant: str | None = None,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
) -> IndexingResult:
    """Build indexes of a table's metadata table; see `hudi_timeline.HudiTable.build_index`.

    Args:
        options: of the call; the session's `hoodie.*` settings are added below them.

    Raises:
        HudiError: as `hudi_timeline.HudiTable.build_index`.
    """
    table, given = _table(spark, path, options, "build_index")
    return table.build_index(partitions, mode=mode, instant=instant, dry_run=dry_run, options=given)


def drop_index(
    spark: SparkSession,
    path: str,
    partitions: str | Collection[str],
    *,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
) -> IndexDropResult:
    """Drop indexes of a table's metadata table; see `hudi_timeline.HudiTable.drop_index`.

    Args:
        options: of the call; the session's `hoodie.*` settings are added below them.

    Raises:
        HudiError: as `hudi_timeline.HudiTable.drop_index`.
    """
    table, given = _table(spark, path, options, "drop_index")
    return table.drop_index(partitions, dry_run=dry_run, options=given)


def _table(
    spark: SparkSession, path: str, options: Mapping[str, str] | None, what: str
) -> tuple[HudiTable, dict[str, str]]:
    given = merged(session_options(spark), dict(options or {}))
    storage = open_storage(table_path(spark, path, what=what), options=given)
    return HudiTable.open(storage), without_hadoop_options(given)
