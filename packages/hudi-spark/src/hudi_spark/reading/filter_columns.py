"""A filter's text as conditions of Spark, which mean what they mean everywhere else.

The files of a scan are chosen, and changed rows are read, by what `hudi_timeline.reading.filters` understands of the
text.  Spark's own parser understands some of it in another way: text in double quotes, two quotes in a text,
backslashes, times by the clock of the session, and NaN, which is greater than all numbers in Spark.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from hudi_format.arrow.filter_conditions import COMPARE, FilterColumn, paired
from hudi_spark.types import quoted, to_spark_type
from hudi_timeline.reading.filters import conditions


def filter_columns(text: str, schema: pa.Schema) -> Column:
    """The condition of a filter's text; true for the rows to keep.

    Raises:
        HudiError: as `hudi_timeline.reading.filters.conditions`.
    """
    make = SparkConditions()
    return make.joined(conditions(text, schema, make), conjunction=True)


class SparkConditions:
    """Conditions as columns of Spark; see `hudi_format.arrow.filter_conditions.Conditions`."""

    def compare(self, op: str, left: FilterColumn, right: FilterColumn | pa.Scalar) -> Column:
        one = quoted(*left.path)
        other = quoted(*right.path) if isinstance(right, FilterColumn) else literal(right)
        found: Column = COMPARE[op](one, other)
        floats = [c for c, of in ((one, left), (other, right)) if pa.types.is_floating(of.type)]
        # Beside a null NaN is nothing either: the comparison stays null, which its negation is too.
        for number in floats:
            if op == "!=":
                found = found | (F.isnan(number) & one.isNotNull() & other.isNotNull())
            else:
                found = found & (~F.isnan(number) | one.isNull() | other.isNull())
        return found

    def among(self, column: FilterColumn, values: Sequence[pa.Scalar]) -> Column:
        wanted = [literal(v) for v in values]
        if pa.types.is_floating(column.type):  # Arrow takes a set in the column's type
            wanted = [w.cast(to_spark_type(column.type)) for w in wanted]
        return F.coalesce(quoted(*column.path).isin(*wanted), F.lit(False))

    def like(self, column: FilterColumn, pattern: str) -> Column:
        return quoted(*column.path).like(pattern)

    def is_null(self, column: FilterColumn) -> Column:
        return quoted(*column.path).isNull()

    def is_valid(self, column: FilterColumn) -> Column:
        return quoted(*column.path).isNotNull()

    def flag(self, column: FilterColumn) -> Column:
        return quoted(*column.path)

    def never(self) -> Column:
        return F.lit(False)

    def negated(self, condition: Column) -> Column:
        return ~condition

    def joined(self, conditions: Sequence[Column], *, conjunction: bool) -> Column:
        return paired(operator.and_ if conjunction else operator.or_, conditions)


def literal(value: pa.Scalar) -> Column:
    """A constant of the value's type, whatever the session is set to."""
    kind = value.type
    if pa.types.is_timestamp(kind):
        micros = value.cast(pa.timestamp("us", kind.tz)).value
        if kind.tz is not None:
            return F.expr(f"timestamp_micros({micros})")
        # By way of UTC: Spark makes times without a zone of text alone.
        return F.lit(str(value.cast(pa.timestamp("us")).cast(pa.string()))).cast("timestamp_ntz")
    if pa.types.is_date(kind):
        return F.expr(f"date_from_unix_date({value.cast(pa.date32()).value})")
    if pa.types.is_binary(kind):
        return F.expr(f"X'{value.as_py().hex()}'")
    return F.lit(value.as_py()).cast(to_spark_type(kind))
