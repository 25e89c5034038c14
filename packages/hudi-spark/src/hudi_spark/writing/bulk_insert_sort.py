"""Partitioning and order of a bulk insert's rows.

Source: Apache Hudi 0.15, "bulk_insert" of the writer documentation (sort modes of the row writer).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from hudi_format.errors import OptionError
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_spark.writing import key_columns
from hudi_timeline.writing.bulk_insert_sort import user_function
from hudi_timeline.writing.engine import PrepareTask


def ordered(rows: DataFrame, task: PrepareTask) -> DataFrame:
    """The rows sorted by `task.order`.

    Keys are sorted as text.  Where Spark writes a key or partition value as other text than Hudi, the columns
    themselves give the order.
    """
    order = task.order
    if order.function:
        return _by_user(rows, order.function, order.tasks)
    if order.mode == "NONE" and not order.columns:
        return rows.coalesce(order.tasks) if order.tasks else rows
    path, key = _path(rows, task), _key(rows, task)
    if not path and not key and not order.columns:
        return rows
    if order.columns:
        return _globally(rows, [*path, *(_column(rows, n) for n in order.columns)], order.tasks)
    if order.mode == "GLOBAL_SORT":
        return _globally(rows, [*path, *key], order.tasks)
    if order.mode == "PARTITION_SORT":
        rows = rows.coalesce(order.tasks) if order.tasks else rows
        return rows.sortWithinPartitions(*path, *key)
    if not path:  # nothing to bring together
        return rows.coalesce(order.tasks) if order.tasks else rows
    together = rows.repartition(order.tasks, *path) if order.tasks else rows.repartition(*path)
    return together.sortWithinPartitions(*path) if order.mode.endswith("_AND_SORT") else together


def _by_user(rows: DataFrame, name: str, tasks: int | None) -> DataFrame:
    out = user_function(name)(rows, tasks)
    if getattr(out, "schema", None) != rows.schema:
        got = f"columns {out.columns}" if hasattr(out, "columns") else type(out).__name__
        raise OptionError(
            f"the partitioner {name} returned {got}, not the given columns {rows.columns}",
            remedy="it may change only the order and the partitions of the rows; return a DataFrame.",
        )
    ordered: DataFrame = out
    return ordered


def _globally(rows: DataFrame, by: list[Column], tasks: int | None) -> DataFrame:
    if tasks is None:
        return rows.orderBy(*by)
    return rows.repartitionByRange(tasks, *by).sortWithinPartitions(*by)


def _path(rows: DataFrame, task: PrepareTask) -> list[Column]:
    if task.stored_keys:
        return [rows[PARTITION_PATH]]
    if not task.key_spec.partition_fields:
        return []
    found = key_columns.partition_path(task.key_spec, rows.schema)
    return [_column(rows, n) for n in task.key_spec.partition_fields] if found is None else [found]


def _key(rows: DataFrame, task: PrepareTask) -> list[Column]:
    if task.stored_keys:
        return [rows[RECORD_KEY]]
    if task.key_spec.auto:  # made-up keys follow the order of the rows
        return []
    found = key_columns.record_key(task.key_spec, rows.schema)
    return [_column(rows, n) for n in task.key_spec.key_fields] if found is None else [found]


def _column(rows: DataFrame, name: str) -> Column:
    found = key_columns.nested_field(name, rows.schema)
    return rows[name] if found is None else found[0]
