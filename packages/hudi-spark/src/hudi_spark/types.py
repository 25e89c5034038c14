"""Conversion of column types between Arrow and Spark, and columns by their names.

Spark's own converters are not part of its public interface and name no column in their errors.  Timestamps with
a zone are instants in microseconds UTC on both sides, those without are TIMESTAMP_NTZ.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.errors import SchemaError

_TO_ARROW: tuple[tuple[type[T.DataType], pa.DataType], ...] = (
    (T.BooleanType, pa.bool_()),
    (T.ByteType, pa.int8()),
    (T.ShortType, pa.int16()),
    (T.IntegerType, pa.int32()),
    (T.LongType, pa.int64()),
    (T.FloatType, pa.float32()),
    (T.DoubleType, pa.float64()),
    (T.StringType, pa.string()),  # CHAR and VARCHAR are of this kind in a frame's schema
    (T.CharType, pa.string()),
    (T.VarcharType, pa.string()),
    (T.BinaryType, pa.binary()),
    (T.DateType, pa.date32()),
    (T.TimestampType, pa.timestamp("us", tz="UTC")),
    (T.TimestampNTZType, pa.timestamp("us")),
    (T.NullType, pa.null()),
)

# The collation of texts that are compared by bytes, which a column has that names none.
_BINARY = "UTF8_BINARY"


def to_arrow_schema(schema: T.StructType) -> pa.Schema:
    """Arrow schema of a frame, nullability kept; void columns have Arrow's null type.

    Raises:
        SchemaError: a type that no Hudi table stores; names the column and a way round.
    """
    return pa.schema([_arrow_field(f, f.name) for f in schema.fields])


def _arrow_field(field: T.StructField, path: str) -> pa.Field:
    return _field(field.name, to_arrow_type(field.dataType, path), field.nullable)


def _field(name: str, kind: pa.DataType, nullable: bool) -> pa.Field:
    # Spark says of array(), which has no elements, that none of them is null.
    return pa.field(name, kind, nullable=nullable or pa.types.is_null(kind))


def to_arrow_type(kind: T.DataType, column: str = "") -> pa.DataType:
    """The Arrow type of a Spark type; errors as `to_arrow_schema`."""
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, T.ArrayType):
        element = to_arrow_type(kind.elementType, f"{column}.element")
        return pa.list_(_field("element", element, kind.containsNull))
    if isinstance(kind, T.MapType):
        value = to_arrow_type(kind.valueType, f"{column}.value")
        key = to_arrow_type(kind.keyType, f"{column}.key")
        if pa.types.is_null(key):
            key = pa.string()  # of map(), which has no keys: those of tables are text
        return pa.map_(key, _field("value", value, kind.valueContainsNull))
    if isinstance(kind, T.StructType):
        return pa.struct([_arrow_field(f, f"{column}.{f.name}") for f in kind.fields])
    if isinstance(kind, T.UserDefinedType):
        return to_arrow_type(kind.sqlType(), column)
    for spark, arrow in _TO_ARROW:
        if isinstance(kind, spark):
            return arrow
    raise SchemaError(
        f"column {column!r} has type {kind.simpleString()}, which Hudi tables do not support",
        remedy="cast it to a supported type, such as string, or omit the column.",
        column=column,
    )


def lost_collations(schema: T.StructType) -> tuple[str, ...]:
    """Warnings about the collations of a frame, which no table keeps, one for each."""
    found: dict[str, list[str]] = {}
    for field in schema.fields:
        for name, collation in _collations(field.dataType, field.name):
            found.setdefault(collation, []).append(name)
    return tuple(
        f"{', '.join(names)}: the collation {collation} is not stored, as tables have none: who reads them compares "
        f"their texts by bytes, as record keys are compared; use collate(column, '{collation}') after reading"
        for collation, names in found.items()
    )


def _collations(kind: T.DataType, column: str) -> Iterator[tuple[str, str]]:
    if isinstance(kind, T.StringType):
        collation = getattr(kind, "collation", _BINARY)  # of Spark 4
        if collation != _BINARY:
            yield column, collation
    elif isinstance(kind, T.ArrayType):
        yield from _collations(kind.elementType, f"{column}.element")
    elif isinstance(kind, T.MapType):
        yield from _collations(kind.keyType, f"{column}.key")
        yield from _collations(kind.valueType, f"{column}.value")
    elif isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from _collations(field.dataType, f"{column}.{field.name}")


def to_spark_schema(schema: pa.Schema) -> T.StructType:
    """Spark schema of table columns; all are nullable.

    Raises:
        SchemaError: a type that Spark does not have.
    """
    return T.StructType([T.StructField(f.name, to_spark_type(f.type, f.name), True) for f in schema])


def to_spark_type(kind: pa.DataType, column: str = "") -> T.DataType:
    """The Spark type of an Arrow type; nested fields are nullable."""
    if pa.types.is_decimal(kind):
        return T.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return T.ArrayType(to_spark_type(kind.value_type, f"{column}.element"), True)
    if pa.types.is_map(kind):
        return T.MapType(
            to_spark_type(kind.key_type, f"{column}.key"),
            to_spark_type(kind.item_type, f"{column}.value"),
            True,
        )
    if pa.types.is_struct(kind):
        return T.StructType(
            [T.StructField(f.name, to_spark_type(f.type, f"{column}.{f.name}"), True) for f in kind]
        )
    if pa.types.is_timestamp(kind):
        return T.TimestampNTZType() if kind.tz is None else T.TimestampType()
    if pa.types.is_large_string(kind):
        return T.StringType()
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return T.BinaryType()
    for spark, arrow in _TO_ARROW:
        if arrow.equals(kind):
            return spark()
    raise SchemaError(
        f"column {column!r} has type {kind}, which Spark does not support",
        remedy="leave the column out, or read it without Spark.",
        column=column,
    )


def without_void(kind: T.DataType, wanted: T.DataType) -> T.DataType:
    """A column's type with void parts replaced by the wanted types."""
    if isinstance(kind, T.NullType):
        return wanted
    if isinstance(kind, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return T.ArrayType(without_void(kind.elementType, wanted.elementType), kind.containsNull)
    if isinstance(kind, T.MapType) and isinstance(wanted, T.MapType):
        key = without_void(kind.keyType, wanted.keyType)
        return T.MapType(key, without_void(kind.valueType, wanted.valueType), kind.valueContainsNull)
    if isinstance(kind, T.StructType) and isinstance(wanted, T.StructType):
        return T.StructType(
            [
                T.StructField(f.name, without_void(f.dataType, wanted[f.name].dataType), f.nullable)
                if f.name in wanted.names
                else f
                for f in kind.fields
            ]
        )
    return kind


def quoted(*path: str) -> Column:
    """A column, or the field inside of one, by its names, whatever characters they have."""
    return F.col(".".join(f"`{name.replace('`', '``')}`" for name in path))


def promoted(column: Column, own: T.DataType, wanted: T.DataType) -> Column:
    """The column in a wider type; floats keep their printed digits, as in Apache Hudi."""
    if isinstance(own, T.FloatType) and isinstance(wanted, T.DoubleType):
        return column.cast("string").cast(wanted)
    return column.cast(wanted)
