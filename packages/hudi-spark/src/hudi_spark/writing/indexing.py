"""Indexes of the metadata table, built and dropped from a Spark session by its driver.

What is read are footers and key columns, by threads of the driver: no rows cross to it, and no job is started.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import SparkSession

from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_spark.runtime.options import merged, session_options, table_path
from hudi_timeline import HudiTable
from hudi_timeline.services.indexing import IndexDropResult, IndexingResult


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


__all__ = ["build_index", "drop_index"]
