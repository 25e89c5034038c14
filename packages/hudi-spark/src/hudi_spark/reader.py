"""`spark.read.format("hudi").load(path)`: planned here once, read by Spark's own Parquet scan.

The driver plans with `hudi_timeline`; base files then make one native scan, vectorised, column-pruned, filters
pushed down, whose partition columns prune files.  Where the JVM has no file system for the table's scheme, Python
workers read the files.

Source: design, "Spark: where the work runs"; spec "Queries".
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.config import ReadConfig, parse_read_options
from hudi_format.config.read import INCREMENTAL
from hudi_format.errors import OptionError, UnsupportedError
from hudi_format.schema.meta_columns import COMMIT_TIME
from hudi_format.storage import hadoop_options, without_hadoop_options
from hudi_spark.config import merged, session_options, table_path
from hudi_spark.file_schemas import files_by_schema
from hudi_spark.files import base_files, lacks_file_system
from hudi_spark.path_columns import partition_columns
from hudi_spark.read_tasks import ReadFiles, grouped
from hudi_spark.types import to_spark_schema, to_spark_type
from hudi_timeline.scan.plan import FROM_PATH, ScanPlan
from hudi_timeline.scan.result import Scan
from hudi_timeline.table import HudiTable

log = logging.getLogger("hudi")

_said: set[str] = set()


def load_frame(
    spark: SparkSession, path: str | Sequence[str] | None, options: Mapping[str, str], *, schema: Any = None
) -> DataFrame:
    """The rows that a read with these options gives.

    Args:
        path: the table's base path.
        options: of the call; the session's `hoodie.*` settings are added below them.
        schema: columns and types to give instead of the table's: StructType or DDL text.

    Raises:
        NotAHudiTableError, UnsupportedError, OptionError ...: the errors of `HudiTable.read`.
    """
    given = merged(session_options(spark), options)
    config = parse_read_options(without_hadoop_options(given))
    uri = table_path(spark, _one_path(path), what="load")
    table = HudiTable.open(uri, options=hadoop_options(given))
    wanted = None if schema is None else _struct_type(spark, schema)
    scan = _scan(table, config, wanted)
    frame = _frame(spark, table, scan, config.filter, hadoop_options(given))
    return frame if wanted is None else frame.select(*_chosen(frame.schema, wanted))


def _one_path(path: str | Sequence[str] | None) -> str | None:
    if path is None or isinstance(path, str):
        found = path
    else:
        paths = [str(p) for p in path]
        if len(paths) > 1:
            raise UnsupportedError(
                f"{len(paths)} paths cannot be read as one table",
                remedy="give the table's base path, and filter on the partition columns.",
            )
        found = paths[0] if paths else None
    if found is not None and found.rstrip("/").endswith("*"):
        raise OptionError(
            f"the path {found} holds wildcards",
            remedy="give the table's base path; the partitions are found by themselves.",
            option="path",
        )
    return found


def _struct_type(spark: SparkSession, schema: Any) -> T.StructType:
    return schema if isinstance(schema, T.StructType) else spark.createDataFrame([], schema).schema


def _scan(table: HudiTable, config: ReadConfig, wanted: T.StructType | None) -> Scan:
    """The scan that the options mean; with a schema of the user's only its columns are read."""
    options = dict(config.raw)

    def ask(columns: Sequence[str] | None) -> Scan:
        if config.query_type == INCREMENTAL:
            return table.read_incremental(config.begin or "", config.end, columns=columns, options=options)
        return table.read(columns, query=config.query_type, as_of=config.as_of, options=options)

    scan = ask(None)
    if wanted is None:
        return scan
    return ask([f.name for f in wanted.fields if f.name in scan.schema.names])


def _chosen(have: T.StructType, wanted: T.StructType) -> list[Column]:
    out = []
    for field in wanted.fields:
        column = F.col(f"`{field.name}`") if field.name in have.names else F.lit(None)
        out.append(column.cast(field.dataType).alias(field.name))
    return out


def _frame(
    spark: SparkSession, table: HudiTable, scan: Scan, condition: str | None, hadoop: Mapping[str, str]
) -> DataFrame:
    plan = scan.plan
    if not plan.files.num_rows:
        return spark.createDataFrame([], to_spark_schema(scan.schema))
    try:
        frame = _native(spark, table, plan, hadoop)
        frame = frame.where(condition) if condition else frame
        return frame.select(*(F.col(f"`{n}`") for n in scan.schema.names))
    except (Py4JJavaError, PySparkException) as e:
        if not lacks_file_system(e):
            raise
    scheme = table.uri.partition("://")[0]
    if scheme not in _said:
        _said.add(scheme)
        log.warning(
            "this Spark has no file system for %s://, so Python workers read the table: slower than Spark's own "
            "scan; select columns early with .schema(...), or add the file system's jar to Spark",
            scheme,
        )
    return _by_workers(spark, scan)


# --- Spark's own scan ------------------------------------------------------------------------------------


def _native(spark: SparkSession, table: HudiTable, plan: ScanPlan, hadoop: Mapping[str, str]) -> DataFrame:
    """One scan for each set of files of the same column types; the union has the plan's columns."""
    from_path = {c.name for c in plan.partition_columns if c.source == FROM_PATH}
    stored = pa.schema([f for f in plan.schema if f.name not in from_path])
    placed = partition_columns(plan)
    parts = []
    for types, paths in files_by_schema(table, plan, stored):
        rows = base_files(spark, table.storage, paths, to_spark_schema(types), hadoop)
        if plan.commit_time_range is not None:
            first, last = plan.commit_time_range
            rows = rows.where((F.col(COMMIT_TIME) >= first) & (F.col(COMMIT_TIME) <= last))
        columns = []
        for field in plan.schema:
            if field.name in placed:
                columns.append(placed[field.name])
                continue
            column = F.col(f"`{field.name}`")
            wanted = to_spark_type(field.type, field.name)
            if to_spark_type(types.field(field.name).type, field.name) != wanted:
                column = column.cast(wanted).alias(field.name)
            columns.append(column)
        parts.append(rows.select(*columns))
    return reduce(DataFrame.union, parts)


# --- Python workers --------------------------------------------------------------------------------------


def _by_workers(spark: SparkSession, scan: Scan) -> DataFrame:
    groups = grouped(scan.plan_files())
    numbers = spark.range(0, len(groups), 1, len(groups))
    return numbers.mapInArrow(ReadFiles(groups), to_spark_schema(scan.schema))
