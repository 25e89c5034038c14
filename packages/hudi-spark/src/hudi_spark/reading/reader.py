"""`spark.read.format("hudi").load(path)`: a plan on the driver, run by Spark's Parquet scan.

The driver plans with `hudi_timeline`; base files then make one native scan, vectorised, column-pruned, filters
pushed down, whose partition columns prune files.  Of file slices with logs it leaves out the rows that the logs change,
which Python workers merge.  Where the JVM has no file system for the table's scheme, workers read the files.

Source: design, "Spark: where the work runs"; spec "Queries".
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import methodcaller
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_format.errors import OptionError, SchemaError
from hudi_format.schema.extension_types import may_be_vector
from hudi_format.schema.meta_fields import COMMIT_TIME
from hudi_format.storage.hadoop_options import hadoop_options, without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_spark.reading.file_schemas import files_by_schema
from hudi_spark.reading.filter_columns import filter_columns
from hudi_spark.reading.logged_slices import (
    PARQUET,
    PLACE,
    WORDS,
    changed_words,
    split,
    unchanged,
)
from hudi_spark.reading.parquet_scan import base_files, beyond_bounds, lacks_file_system
from hudi_spark.reading.partition_columns import partition_columns
from hudi_spark.reading.read_tasks import Task, grouped, shares
from hudi_spark.reading.user_schema import UserSchema
from hudi_spark.runtime.java_names import keep_names
from hudi_spark.runtime.options import merged, session_options, table_path, take_option
from hudi_spark.runtime.python_workers import in_groups
from hudi_spark.types import promoted, quoted, to_spark_schema, to_spark_type
from hudi_timeline.file_system_view.partition_values import FROM_PATH
from hudi_timeline.options import ReadConfig, parse_read_options
from hudi_timeline.options.option_types import has_wildcard, patterns_in
from hudi_timeline.options.read_options import CDC, INCREMENTAL, PATHS
from hudi_timeline.reading.path_globs import base_of
from hudi_timeline.reading.plan import CHANGES, ScanPlan, ToldAlike, told_alike
from hudi_timeline.reading.scan import Scan
from hudi_timeline.reading.task import ReadTask
from hudi_timeline.table import HudiTable
from hudi_timeline.table_config import PROPERTIES_FILE

# The scan that read options mean, whichever door they came through.


def scan_for(table: HudiTable, config: ReadConfig, columns: Sequence[str] | None = None) -> Scan:
    """The snapshot, incremental or CDC query of a table, meta columns included.

    Raises:
        HudiError: as `HudiTable.read`, `.read_incremental` and `.read_changes`.
    """
    if config.query_type != INCREMENTAL:
        return table.read(
            columns, query=config.query_type, as_of=config.as_of, meta_columns=True, options=dict(config.raw)
        )
    return changes_for(table, config, config.begin or "", config.end, columns)


def changes_for(
    table: HudiTable, config: ReadConfig, begin: str, end: str | None, columns: Sequence[str] | None = None
) -> Scan:
    """The incremental or CDC query of a range, whatever range the options name; as `scan_for`."""
    options = dict(config.raw)
    if config.incremental_format == CDC:
        return table.read_changes(begin, end, columns=columns, options=options)
    return table.read_incremental(begin, end, columns=columns, meta_columns=True, options=options)


log = logging.getLogger("hudi")

GROUPS_PER_CORE = 3

_said: set[str] = set()


def load_frame(
    spark: SparkSession, path: str | Sequence[str] | None, options: Mapping[str, str], *, schema: Any = None
) -> DataFrame:
    """The rows of a read with these options, as a frame.

    Args:
        path: the table's base path, or paths and patterns below it.
        options: of the call; the session's `hoodie.*` settings are added below them.
        schema: columns and types to give instead of the table's: StructType or DDL text.

    Raises:
        NotAHudiTableError, UnsupportedError, OptionError ...: the errors of `HudiTable.read`.
    """
    keep_names(spark)
    uri, given = _base_path(spark, path, merged(session_options(spark), options))
    config = parse_read_options(without_hadoop_options(given))
    table = HudiTable.open(uri, options=hadoop_options(given))
    wanted = None if schema is None else UserSchema.of(spark, schema)
    scan = _scan(table, config, wanted)
    frame = frame_of(spark, scan, hadoop_options(given))
    try:
        return frame if wanted is None else wanted.of_frame(frame)
    except SchemaError as e:
        raise e.at(table=table.uri) from None


def _base_path(
    spark: SparkSession, path: str | Sequence[str] | None, options: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """The table's base path, and options with the requested paths below it.

    A path may be a pattern, as scripts for older releases have it (`base/*/*`), and there may be several.

    Raises:
        OptionError, NotAHudiTableError: no path, or paths of no table or of several.
    """

    def is_table(folder: str) -> bool:
        return open_storage(folder, options=options).info(PROPERTIES_FILE) is not None

    given = [table_path(spark, p, what="load") for p in ([path] if isinstance(path, str) else path or ())]
    listed = [p.strip() for p in patterns_in(take_option(options, PATHS) or "") if p.strip()]
    main = None
    # A table's own path may look like a pattern.
    if len(given) == 1 and (not has_wildcard(given[0]) or is_table(given[0])):
        main = given[0]
    paths = listed if main is not None else [*given, *listed]
    if main is not None and not paths and (is_table(main) or base_of(main, is_table) is None):
        return main, options
    if main is None and not paths:
        return table_path(spark, None, what="load"), options
    paths = paths or [main or ""]
    bases = {base_of(p, is_table) for p in ([main] if main else paths)}
    base = bases.pop()
    if bases or base is None:
        raise OptionError(
            f"the paths {', '.join(paths)} are not below one Hudi table",
            remedy="give the table's base path; partitions are found automatically.",
            option="path",
        )
    return base, {**options, PATHS: ",".join(paths)}


def _scan(table: HudiTable, config: ReadConfig, wanted: UserSchema | None) -> Scan:
    """The scan of the options; with a user schema, only its columns are read."""
    scan = scan_for(table, config)
    if wanted is None:
        return scan
    return scan_for(table, config, wanted.names(scan.schema.names))


def frame_of(spark: SparkSession, scan: Scan, hadoop: Mapping[str, str]) -> DataFrame:
    """The rows of a scan as a frame.

    Args:
        hadoop: `fs.*` options of the call.
    """
    plan = scan.plan
    vectors = any(may_be_vector(f.type) for f in plan.schema)  # Spark takes them for bytes
    if plan.kind == CHANGES or plan.sources or vectors:
        return _by_workers(spark, scan)
    # Python workers merge logs and find columns by id; files without either are a scan of Spark's.
    by_id = plan.evolution is not None and any(
        isinstance(t, ReadTask) and t.reading is not None for t in scan.plan_files()
    )
    parquet = pc.all(pc.ends_with(plan.files.column("path"), PARQUET)).as_py()
    if not plan.files.num_rows and not plan.logs:
        return spark.createDataFrame([], to_spark_schema(scan.schema))
    filter = scan.filter_text
    condition = None if filter is None else filter_columns(filter, plan.schema)
    try:
        if not plan.logs and not by_id and parquet:
            frame = _native(spark, scan, plan, hadoop)
            return _only(frame if condition is None else frame.where(condition), plan, scan.schema)
        return _by_both(spark, scan, condition, hadoop)
    except (Py4JJavaError, PySparkException) as e:
        if not lacks_file_system(e):
            raise
    scheme = scan.table_uri.partition("://")[0]
    if scheme not in _said:
        _said.add(scheme)
        log.warning(
            "Spark has no file system for %s://, so Python workers read the table, slower than "
            "Spark's own scan; select columns early with .schema(...), or add the file "
            "system's jar to Spark",
            scheme,
        )
    return _by_workers(spark, scan)


# --- Spark's own scan ------------------------------------------------------------------------------------

# Each column that PySpark makes is several calls into the JVM, and each step on a frame an analysis of its plan: of a
# small read they are most of the time.


def _only(frame: DataFrame, plan: ScanPlan, wanted: pa.Schema) -> DataFrame:
    """The wanted columns of a frame that has those of the plan."""
    if wanted.names == plan.schema.names:
        return frame
    return frame.select(*map(quoted, wanted.names))


def _stored(plan: ScanPlan) -> pa.Schema:
    """The columns of a plan that come from each of the files."""
    from_path = {c.name for c in plan.partition_columns if c.source == FROM_PATH}
    return pa.schema([f for f in plan.schema if f.name not in from_path])


def _native(
    spark: SparkSession,
    scan: Scan,
    plan: ScanPlan,
    hadoop: Mapping[str, str],
    more: Sequence[tuple[str, str]] = (),
) -> DataFrame:
    """One scan per set of files with equal column types; the union has the plan's columns.

    Args:
        plan: the scan's, or one with some of its files.
        more: further columns with the expressions that make them.
    """
    parts = [_told_alike(spark, scan, part, hadoop, more) for part in told_alike(plan)]
    return reduce(DataFrame.union, parts)


def _told_alike(
    spark: SparkSession,
    scan: Scan,
    part: ToldAlike,
    hadoop: Mapping[str, str],
    more: Sequence[tuple[str, str]],
) -> DataFrame:
    plan = part.plan
    placed = partition_columns(plan)
    parts = []
    for types, paths in files_by_schema(scan.snapshot, plan, _stored(plan), part.held):
        rows = base_files(spark, scan.storage, paths, to_spark_schema(types), hadoop)
        if plan.commit_time_range is not None:
            first, last = plan.commit_time_range
            rows = rows.where((F.col(COMMIT_TIME) >= first) & (F.col(COMMIT_TIME) <= last))
        if plan.commit_times is not None:
            rows = rows.where(F.col(COMMIT_TIME).isin(list(plan.commit_times)))
        made = dict(placed)
        for field in types:
            own = to_spark_type(field.type, field.name)
            wanted = to_spark_type(plan.schema.field(field.name).type, field.name)
            unbounded = beyond_bounds(field.name, own)
            if own != wanted:
                made[field.name] = promoted(
                    quoted(field.name) if unbounded is None else unbounded, own, wanted
                )
            elif unbounded is not None:
                made[field.name] = unbounded
        made |= {name: F.expr(text) for name, text in more}
        names = [*plan.schema.names, *(name for name, _ in more)]
        if list(dict.fromkeys([*types.names, *made])) != names or len({n.lower() for n in names}) < len(
            names
        ):
            rows = rows.select(*(made[n].alias(n) if n in made else quoted(n) for n in names))
        elif made:
            rows = rows.withColumns(made)
        parts.append(rows)
    return reduce(DataFrame.union, parts)


def _by_both(
    spark: SparkSession, scan: Scan, condition: Column | None, hadoop: Mapping[str, str]
) -> DataFrame:
    """Native scans of base files, and workers for what logs change and for what only they read."""
    tasks = [t for t in scan.plan_files() if isinstance(t, ReadTask)]
    parts = split(scan, tasks, _stored(scan.plan))
    changed = shares(parts.both, spark.sparkContext.defaultParallelism)
    frames = []
    if parts.spark:
        frames.append(_native(spark, scan, _of(scan.plan, parts.spark), hadoop))
    if changed:
        words = in_groups(spark, changed, changed_words, to_spark_schema(WORDS))
        rows = _native(spark, scan, _of(scan.plan, parts.both), hadoop, PLACE)
        frames.append(unchanged(rows, words))
    if condition is not None:
        frames = [f.where(condition) for f in frames]
    frames = [_only(f, scan.plan, scan.schema) for f in frames]
    if changed:
        frames.append(in_groups(spark, changed, ReadTask.changed_batches, to_spark_schema(scan.schema)))
    if parts.workers:
        frames.append(_by_workers(spark, scan, parts.workers))
    return reduce(DataFrame.union, frames)


def _of(plan: ScanPlan, tasks: Sequence[ReadTask]) -> ScanPlan:
    """The plan with the base files of some tasks."""
    wanted = pa.array([t.path for t in tasks], pa.string())
    return replace(plan, files=plan.files.filter(pc.is_in(plan.files.column("path"), value_set=wanted)))


# --- Python workers --------------------------------------------------------------------------------------


def _by_workers(spark: SparkSession, scan: Scan, tasks: Sequence[Task] | None = None) -> DataFrame:
    """Rows of a scan, or of some of its tasks, that workers read whole."""
    # Some groups for each core, so that none waits for the longest.
    least = GROUPS_PER_CORE * spark.sparkContext.defaultParallelism
    groups = grouped(scan.plan_files() if tasks is None else tasks, least=least)
    return in_groups(spark, groups, methodcaller("to_batches"), to_spark_schema(scan.schema))
