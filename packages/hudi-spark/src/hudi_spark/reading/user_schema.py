"""Columns in the schema that a read was given, by name at every depth.

Spark's file sources find columns and fields by name, in any case unless the session distinguishes them, and give null
for what a file lacks.  A cast between structs goes by place, and so must not be used.

Source: Spark's SQL configuration, `spark.sql.caseSensitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.errors import SchemaError
from hudi_format.schema.evolution import conform
from hudi_spark.types import promoted, quoted

CASE_SENSITIVE = "spark.sql.caseSensitive"
READ_AS_IT_IS = "leave it to the table's type in .schema(...), and cast what the read gives."


@dataclass(frozen=True)
class UserSchema:
    """A schema that a read was given."""

    wanted: T.StructType
    case_sensitive: bool

    @classmethod
    def of(cls, spark: SparkSession, given: T.StructType | str) -> UserSchema:
        """The schema of a StructType or DDL text."""
        wanted = given if isinstance(given, T.StructType) else spark.createDataFrame([], given).schema
        return cls(wanted, (spark.conf.get(CASE_SENSITIVE, None) or "").lower() == "true")

    def names(self, have: Sequence[str]) -> list[str]:
        """Names that the schema asks for, of those that there are, each once; one at least.

        Batches that cross to Spark without any column lose their rows.
        """
        found = (self._same(field.name, have) for field in self.wanted.fields)
        return list(dict.fromkeys(name for name in found if name is not None)) or list(have[:1])

    def of_frame(self, frame: DataFrame) -> DataFrame:
        """The frame's rows in the columns of the schema.

        Raises:
            SchemaError: a type that a column cannot be cast to; names it.
        """
        columns = self.columns(frame.schema)
        try:
            return frame.select(*columns)
        except AnalysisException:
            for field, column in zip(self.wanted.fields, columns, strict=True):
                try:
                    frame.select(column)
                except AnalysisException as e:
                    raise self._refused(field, frame.schema) from e
            raise

    def _refused(self, field: T.StructField, have: T.StructType) -> SchemaError:
        own = have[self._same(field.name, have.names) or field.name].dataType.simpleString()
        wanted = field.dataType.simpleString()
        return SchemaError(
            f"column {field.name} has type {own} in the table, and cannot be read as {wanted}",
            remedy=READ_AS_IT_IS,
            column=field.name,
            source=own,
            target=wanted,
        )

    def columns(self, have: T.StructType) -> list[Column]:
        """Columns of the schema, made of a frame's."""
        return [self._field(quoted, have, field) for field in self.wanted.fields]

    def _same(self, name: str, have: Sequence[str]) -> str | None:
        if name in have or self.case_sensitive:
            return name if name in have else None
        return next((n for n in have if n.lower() == name.lower()), None)

    def _column(self, column: Column, own: T.DataType, wanted: T.DataType) -> Column:
        if own.simpleString() == wanted.simpleString():
            return column
        if isinstance(own, T.StructType) and isinstance(wanted, T.StructType):
            fields = [self._field(column.getField, own, field) for field in wanted.fields]
            return F.when(column.isNotNull(), F.struct(*fields))
        if isinstance(own, T.ArrayType) and isinstance(wanted, T.ArrayType):
            return F.transform(column, lambda e: self._column(e, own.elementType, wanted.elementType))
        if isinstance(own, T.MapType) and isinstance(wanted, T.MapType):
            if own.keyType.simpleString() != wanted.keyType.simpleString():
                column = F.transform_keys(column, lambda k, v: self._column(k, own.keyType, wanted.keyType))
            return F.transform_values(column, lambda k, v: self._column(v, own.valueType, wanted.valueType))
        return promoted(column, own, wanted)

    def _field(self, get: Callable[[str], Column], own: T.StructType, wanted: T.StructField) -> Column:
        """A field of the schema; `get` gives those that there are."""
        name = self._same(wanted.name, own.names)
        if name is None:
            return F.lit(None).cast(wanted.dataType).alias(wanted.name)
        return self._column(get(name), own[name].dataType, wanted.dataType).alias(wanted.name)


# --- without a session -----------------------------------------------------------------------------------


def columns_of(wanted: pa.Schema, own: pa.Schema) -> list[str]:
    """The table's columns that a user's schema names; others are null.

    What cannot be is found here, once, and not in each task.

    Raises:
        SchemaError: a type that a column's values cannot become; or a name that differs from the table's in case only,
            which without the session's setting for it can be neither null nor that column.
    """
    names = [n for n in wanted.names if n in own.names]
    for given, known in _misspelt(wanted, own):
        raise SchemaError(
            f"{given} in .schema(...) differs from the table's column {known} in case only",
            remedy=f"write {known}, or call hudi_spark.enable(spark), which goes by {CASE_SENSITIVE}.",
            column=known,
        )
    try:
        conform(own.empty_table().select(list(dict.fromkeys(names))), wanted)
    except SchemaError as e:
        e.remedy = READ_AS_IT_IS
        raise
    return names


def _misspelt(
    wanted: Iterable[pa.Field], own: Iterable[pa.Field], path: str = ""
) -> Iterator[tuple[str, str]]:
    """Columns and fields of the one schema that are the other's in other case, with their names there."""
    by_name = {f.name: f for f in own}
    lowered = {name.lower(): name for name in by_name}
    for field in wanted:
        known = by_name.get(field.name)
        if known is not None:
            yield from _misspelt_inside(field.type, known.type, f"{path}{field.name}")
        elif field.name.lower() in lowered:
            yield path + field.name, path + lowered[field.name.lower()]


def _misspelt_inside(wanted: pa.DataType, own: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    inner, known = ([kind.field(n) for n in range(kind.num_fields)] for kind in (wanted, own))
    if pt.is_struct(wanted) and pt.is_struct(own):
        yield from _misspelt(inner, known, f"{path}.")
    else:  # elements of lists, keys and values of maps
        for one, other in zip(inner, known, strict=False):
            yield from _misspelt_inside(one.type, other.type, path)
