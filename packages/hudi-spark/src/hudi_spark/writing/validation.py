"""Validation of a write on Spark: rules as SQL expressions, validators as queries.

Rows are marked with the rule that they break in one pass, and kept, so that good and bad ones come from one
evaluation of the input.  Only counts and some keys reach the driver.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.errors import HudiError, InvalidOptionError, UnsupportedError
from hudi_format.merge.payloads import IS_DELETED
from hudi_spark.functions import kernel_column
from hudi_spark.runtime.jobs import run_job
from hudi_spark.types import quoted, to_spark_schema
from hudi_spark.writing.key_columns import column_at
from hudi_timeline.options.write_options import RULES
from hudi_timeline.reading.filters import missing_column
from hudi_timeline.reading.scan import Scan
from hudi_timeline.validation.precommit import SHOWN
from hudi_timeline.validation.row_rules import (
    ID,
    INSTANT,
    OPERATION,
    OWN,
    REASON,
    RULE,
    RowChecks,
    Screening,
    key_problems,
)

MARK = "_hudi_mark"
_BEFORE, _AFTER = "hudi_before_", "hudi_after_"
ROWS_OF_A_TASK = 500_000
T_ = TypeVar("T_")


# --- rows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problems:
    """Rule and reason of rows with invalid keys, separated by a line break; else null."""

    task: RowChecks

    def __call__(self, rows: pa.RecordBatch) -> pa.Array:
        numbers, problems = key_problems(pa.Table.from_batches([rows]), self.task)
        texts = np.array([*("\n".join(p) for p in problems), None], dtype=object)
        return pa.array(texts[numbers], pa.string())


class SparkScreened:
    """Valid and invalid rows from one evaluation of the input."""

    def __init__(self, data: DataFrame, screening: Screening, keep: Callable[[DataFrame], DataFrame]) -> None:
        """Screening of a frame.

        Args:
            keep: keeps the marked rows until the write has ended.
        """
        self._screening = screening
        self._columns = data.columns
        self._marked = keep(self._mark(data))
        self.counts: Mapping[str, int] = self._count(data.sparkSession)
        self.data = self._marked.where(F.col(MARK).isNull()).drop(MARK)

    def _mark(self, data: DataFrame) -> DataFrame:
        """The rows with rule and reason of their first violated rule, null for valid ones."""
        task = self._screening.task
        wanted = to_spark_schema(task.schema)
        have = {n.lower() for n in data.columns}
        lacking = [f for f in wanted if f.name.lower() not in have]
        rows = data.select("*", *(F.lit(None).cast(f.dataType).alias(f.name) for f in lacking))
        marks: list[Column] = []
        deleted = F.coalesce(F.col(IS_DELETED), F.lit(False)) if IS_DELETED in rows.columns else F.lit(False)
        for rule in self._screening.rules:
            if not isinstance(rule.condition, str):
                raise UnsupportedError(
                    f"rule {rule.name!r} is a pyarrow expression", remedy="on Spark give rules as text."
                )
            holds = _condition(rows, rule.name, rule.condition)
            text = F.lit(f"{rule.name}\n{rule.reason}")
            marks.append(F.when(~F.coalesce(holds, F.lit(False)) & ~deleted, text))
        if self._screening.keep_bad and not task.stored_keys:
            names = [*task.key_spec.key_fields, *task.key_spec.partition_fields]
            if task.check_ordering and task.ordering_field:
                names.append(task.ordering_field)
            names = list(dict.fromkeys(names))
            if names:
                marks.append(
                    kernel_column(Problems(task), "string", [column_at(n, rows) for n in names], tuple(names))
                )
        mark = F.coalesce(*marks) if marks else F.lit(None).cast("string")
        return rows.withColumn(MARK, mark).select(*(quoted(n) for n in data.columns), MARK)

    def _count(self, spark: SparkSession) -> dict[str, int]:
        bad = self._marked.where(F.col(MARK).isNotNull())
        rule = F.substring_index(F.col(MARK), "\n", 1)
        found = run_job(spark, bad.groupBy(rule.alias(RULE)).count().collect, "hudi: check rows")
        counts = {r[0]: r[1] for r in found}
        sample: dict[str, list[str]] = {}
        keys = [column_at(n, self._marked).cast("string") for n in self._screening.task.key_spec.key_fields]
        if counts and keys:
            most = max(counts, key=lambda r: counts[r])
            shown = F.concat_ws(":", *keys)
            rows = run_job(
                spark, bad.where(rule == most).select(shown).limit(SHOWN).collect, "hudi: bad rows"
            )
            sample[most] = [r[0] for r in rows]
        self._screening.check(counts, sample)
        return counts

    def bad_rows(self, instant: str) -> DataFrame:
        bad = self._marked.where(F.col(MARK).isNotNull())
        wanted = to_spark_schema(self._screening.task.schema)
        columns = []
        for field in wanted:
            if field.name in OWN:
                continue
            there = field.name in self._columns
            column = quoted(field.name) if there else F.lit(None)
            columns.append(column.cast(field.dataType).alias(field.name))
        number = F.monotonically_increasing_id().cast("string")
        return bad.select(
            F.concat(F.lit(f"{instant}_"), number).alias(ID),
            F.lit(instant).alias(INSTANT),
            F.lit(self._screening.operation).alias(OPERATION),
            F.substring_index(F.col(MARK), "\n", 1).alias(RULE),
            F.substring_index(F.col(MARK), "\n", -1).alias(REASON),
            *columns,
        )

    def tasks(self) -> int:
        return 1 + sum(self.counts.values()) // ROWS_OF_A_TASK


def _condition(rows: DataFrame, name: str, text: str) -> Column:
    """A rule's condition as a column.

    Raises:
        InvalidOptionError, MissingColumnError: Spark does not understand it.
    """
    try:
        condition = F.expr(text)
        kind = rows.select(condition).schema[0].dataType
    except PySparkException as e:
        raise _not_understood(rows, name, e) from e
    if not isinstance(kind, T.BooleanType):
        raise InvalidOptionError(
            f"rule {name!r} has type {kind.simpleString()}, not boolean",
            remedy="give a condition; nothing was written.",
            option=RULES,
        )
    return condition


def _not_understood(rows: DataFrame, name: str, error: PySparkException) -> HudiError:
    parameters = error.getMessageParameters() or {}
    if (error.getErrorClass() or "").startswith("UNRESOLVED_COLUMN"):
        column = parameters.get("objectName", "").replace("`", "")
        missing = missing_column(column, pa.schema([(n, pa.null()) for n in rows.columns]))
        missing.message = f"rule {name!r}: {missing.message}"
        return missing
    return InvalidOptionError(
        f"rule {name!r} is invalid: {_first_line(error)}",
        remedy="correct the condition; nothing was written.",
        option=RULES,
    )


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


# --- queries ---------------------------------------------------------------------------------------------


class SparkQueries:
    """SQL over the states before and after a write; see `sql_validators.Queries`."""

    def __init__(self, spark: SparkSession, number: str) -> None:
        self.before, self.after = _BEFORE + number, _AFTER + number
        self._spark = spark

    def check(self, sql: str) -> None:
        try:
            _ = self._spark.sql(sql).schema
        except PySparkException as e:
            raise ValueError(_first_line(e)) from e

    def compare(self, first: str, second: str) -> tuple[int, int, int]:
        def count(rows: DataFrame) -> int:
            return int(
                run_job(self._spark, lambda: rows.agg(F.count(F.lit(1))).collect(), "hudi: validate")[0][0]
            )

        def act() -> tuple[int, int, int]:
            one, other = self._spark.sql(first), self._spark.sql(second)
            return count(one), count(other), count(one.intersect(other))

        return _run(act)

    def values(self, sql: str) -> list[tuple[str | None, ...]]:
        def act() -> list[tuple[str | None, ...]]:
            found = self._spark.sql(sql).limit(2)
            names = [f"c{n}" for n in range(len(found.columns))]
            fields = [
                _java_text(F.col(name), field.dataType)
                for name, field in zip(names, found.schema.fields, strict=True)
            ]
            texts = found.toDF(*names).select(*fields)
            return [tuple(r) for r in run_job(self._spark, texts.collect, "hudi: validate")]

        return _run(act)


def _java_text(value: Column, kind: T.DataType) -> Column:
    """Java's toString of a value: Spark's cast, with the fraction of timestamps."""
    text = value.cast("string")
    if isinstance(kind, T.TimestampType):
        return F.when(F.instr(text, ".") == 0, F.concat(text, F.lit(".0"))).otherwise(text)
    return text


def _run(act: Callable[[], T_]) -> T_:
    try:
        return act()
    except (Py4JJavaError, PySparkException) as e:
        raise ValueError(_first_line(e)) from e
    except HudiError as e:  # of a job: Spark's own words are in it
        raise ValueError(e.message) from e


@contextmanager
def spark_queries(
    spark: SparkSession,
    before: Scan | pa.Table,
    after: Scan | pa.Table,
    frame_of: Callable[[Scan], DataFrame],
) -> Iterator[SparkQueries]:
    """SQL over both states, as temporary views with unique names."""
    queries = SparkQueries(spark, uuid.uuid4().hex)
    try:
        for name, rows in ((queries.before, before), (queries.after, after)):
            empty = isinstance(rows, pa.Table)
            frame = spark.createDataFrame([], to_spark_schema(rows.schema)) if empty else frame_of(rows)
            frame.createOrReplaceTempView(name)
        yield queries
    finally:
        for name in (queries.before, queries.after):
            spark.catalog.dropTempView(name)
