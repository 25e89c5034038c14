"""Which Arrow types a Hudi table stores, and how others become one of them.

Source: the Avro and Parquet conventions of Apache Hudi's writers ("Avro and parquet conventions"): no unsigned
numbers, microsecond timestamps, decimals up to 38 digits, texts as text.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import SchemaError
from hudi_format.schema.meta_columns import META_COLUMNS


def normalize_schema(schema: pa.Schema) -> pa.Schema:
    """The schema in storable types; names, order and nullability stay.

    Raises:
        SchemaError: a type that Hudi has no place for, or a name twice (in any case), naming column and remedy.
    """
    seen: dict[str, str] = {}
    for name in schema.names:
        other = seen.setdefault(name.lower(), name)
        if other is not name or schema.names.count(name) > 1:
            raise SchemaError(
                f"columns {other!r} and {name!r} differ at most in case",
                remedy="rename one of them; Spark and Hive do not tell such columns apart.",
                column=name,
            )
        if name in META_COLUMNS:
            raise SchemaError(f"column {name!r} is Hudi's own", remedy="leave it out.", column=name)
        if not name:
            raise SchemaError("a column has no name", remedy="name it.")
    return pa.schema([pa.field(f.name, normalize_type(f.type, f.name), f.nullable) for f in schema])


def normalize_type(kind: pa.DataType, column: str) -> pa.DataType:
    """The storable type that holds all values of `kind`.

    Raises:
        SchemaError: there is none.
    """
    for test, target in _SIMPLE:
        if test(kind):
            return target
    if pa.types.is_dictionary(kind):
        return normalize_type(kind.value_type, column)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_decimal(kind):
        if kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
            return pa.decimal128(kind.precision, kind.scale)
        raise _refused(column, kind, "decimals have at most 38 digits and a scale from 0 to the precision")
    if _is_list(kind):
        item = kind.value_field
        return pa.list_(pa.field("element", normalize_type(item.type, f"{column}.element"), item.nullable))
    if pa.types.is_map(kind):
        key = normalize_type(kind.key_type, f"{column}.key")
        if not pa.types.is_string(key):
            raise _refused(column, kind, "keys of maps are texts")
        value = kind.item_field
        return pa.map_(key, pa.field("value", normalize_type(value.type, f"{column}.value"), value.nullable))
    if pa.types.is_struct(kind):
        if kind.num_fields == 0:
            raise _refused(column, kind, "a struct has at least one field")
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct(
            [pa.field(f.name, normalize_type(f.type, f"{column}.{f.name}"), f.nullable) for f in fields]
        )
    if isinstance(kind, pa.BaseExtensionType):
        return normalize_type(kind.storage_type, column)
    raise _refused(column, kind, _ADVICE.get(kind.id, "cast it to a type that Hudi stores"))


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def _refused(column: str, kind: pa.DataType, advice: str) -> SchemaError:
    return SchemaError(
        f"column {column!r} has type {kind}, which a Hudi table cannot store", remedy=f"{advice}.", column=column
    )


_t = pa.types
_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (_t.is_string, pa.string()),
    (_t.is_large_string, pa.string()),
    (_t.is_string_view, pa.string()),
    (_t.is_boolean, pa.bool_()),
    (_t.is_int32, pa.int32()),
    (_t.is_int64, pa.int64()),
    (_t.is_int8, pa.int32()),
    (_t.is_int16, pa.int32()),
    (_t.is_uint8, pa.int32()),
    (_t.is_uint16, pa.int32()),
    (_t.is_uint32, pa.int64()),
    (_t.is_float16, pa.float32()),
    (_t.is_float32, pa.float32()),
    (_t.is_float64, pa.float64()),
    (_t.is_date, pa.date32()),
    (_t.is_binary, pa.binary()),
    (_t.is_large_binary, pa.binary()),
    (_t.is_fixed_size_binary, pa.binary()),
    (_t.is_binary_view, pa.binary()),
)
_ADVICE = {
    pa.uint64().id: "cast it to int64, or to decimal(20, 0) where values exceed it",
    pa.time32("ms").id: "cast it to int64 or to text; Spark has no time of day",
    pa.time64("us").id: "cast it to int64 or to text; Spark has no time of day",
    pa.duration("us").id: "cast it to int64",
    pa.null().id: "give the column a type, for example by casting it to string",
}


def normalize_batch(batch: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch | pa.Table:
    """The rows in the types of `schema` (same columns); a value that does not fit is an error.

    Raises:
        SchemaError: a lossy cast, naming the column.
    """
    if batch.schema.equals(schema):
        return batch
    columns = [cast_column(batch.column(f.name), f) for f in schema]
    return type(batch).from_arrays(columns, schema=schema)


def cast_column(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    """`column` in the field's type.

    Raises:
        SchemaError: there is no such cast, or it would lose something.
    """
    if column.type.equals(field.type):
        return column
    try:
        return pc.cast(column, field.type, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise SchemaError(
            f"column {field.name!r} of type {column.type} does not fit {field.type}: {str(e).splitlines()[0]}",
            remedy="cast it before writing.",
            column=field.name,
        ) from None


def equal_types(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether two types hold the same values: names of list and map children and nullability apart."""
    if _is_list(a) and _is_list(b):
        return equal_types(a.value_type, b.value_type)
    if pa.types.is_map(a) and pa.types.is_map(b):
        return equal_types(a.key_type, b.key_type) and equal_types(a.item_type, b.item_type)
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        return a.num_fields == b.num_fields and all(
            a.field(i).name == b.field(i).name and equal_types(a.field(i).type, b.field(i).type)
            for i in range(a.num_fields)
        )
    return bool(a.equals(b))
