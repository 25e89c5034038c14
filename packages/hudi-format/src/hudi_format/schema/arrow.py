"""Arrow schemas of input data and their normalised form in tables.

A table holds: boolean, int32, int64, float32, float64, string, binary, date32, timestamps in
microseconds (UTC, or without a zone), decimals of up to 38 digits, lists, maps with text as keys, and
structs.  Other types are turned into one of these where every value survives, and refused elsewhere.
Two more are only kept where a table already has them: timestamps in milliseconds and fixed-size binary.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.errors import SchemaError
from hudi_format.schema.casts import is_any_list, stored_leaf, unwrapped
from hudi_format.schema.meta_fields import META_NAMES

Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)

# Arrow reads no Parquet schema of more; a list or a map is two, and its elements.
_MOST_LEVELS = 99


def normalize_schema(schema: pa.Schema) -> pa.Schema:
    """The stored schema of data with the given one; metadata is dropped.

    Raises:
        SchemaError: a type that no column can have, a name that Avro or Apache Hudi does not allow, or two
            names that differ in case only.  Names the column, its type and the remedy.
    """
    _check_names((f.name for f in schema), "")
    for name in schema.names:
        if name.lower() in META_NAMES:
            raise SchemaError(
                f"column {name} has the name of a meta column",
                remedy="drop it before writing; the table adds it itself.",
                column=name,
            )
    return pa.schema([pa.field(f.name, normalize_type(f.type, f.name), f.nullable) for f in schema])


def is_avro_name(name: str) -> bool:
    """Whether Avro allows a name; by Java's rule: letters and digits of any script."""
    return (
        bool(name) and all(c == "_" or c.isalpha() or c.isdecimal() for c in name) and not name[0].isdecimal()
    )


def _check_names(names: Iterable[str], path: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        full = path + name
        if not is_avro_name(name):
            raise SchemaError(
                f"column {full!r} has a name that Avro does not allow",
                remedy="rename it: letters, digits and underscores, no digit first.",
                column=full,
            )
        other = seen.get(name.lower())
        if other is not None:
            what = f"column {full} is duplicated"
            if other != full:
                what = f"columns {other} and {full} differ in case only, which Spark ignores"
            raise SchemaError(what, remedy="rename or drop one of them.", column=full)
        seen[name.lower()] = full


def normalize_type(kind: pa.DataType, path: str, level: int = 1) -> pa.DataType:
    """The stored type of values of `kind`.

    Args:
        level: of groups of Parquet inside one another.

    Raises SchemaError, naming `path`, where there is none.
    """
    kind = unwrapped(kind)
    if level > _MOST_LEVELS:
        column = path.partition(".")[0]
        raise SchemaError(
            f"column {column} is nested too deeply: its files could not be read again",
            remedy="write what lies deeper than 49 lists, or 98 structs, as text such as JSON.",
            column=column,
        )
    if is_any_list(kind):
        field = kind.value_field
        element = normalize_type(field.type, f"{path}.element", level + 2)
        return pa.list_(pa.field("element", element, field.nullable))
    if pt.is_map(kind):
        key = normalize_type(kind.key_type, f"{path}.key", level + 2)
        if not pt.is_string(key):
            raise _refused(path, kind, "map keys must be text", "cast the keys to text.")
        value = normalize_type(kind.item_type, f"{path}.value", level + 2)
        return pa.map_(key, pa.field("value", value, kind.item_field.nullable))
    if pt.is_struct(kind):
        fields = list(kind)
        if not fields:
            raise _refused(path, kind, "a struct without fields cannot be stored", "drop the column.")
        _check_names((f.name for f in fields), f"{path}.")
        found = (normalize_type(f.type, f"{path}.{f.name}", level + 1) for f in fields)
        return pa.struct([pa.field(f.name, t, f.nullable) for f, t in zip(fields, found, strict=True)])
    if pt.is_fixed_size_binary(kind):
        return pa.binary()
    if pt.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz is not None else None)
    stored = stored_leaf(kind)
    if stored is None:
        raise _unstorable(path, kind)
    return stored


def _unstorable(path: str, kind: pa.DataType) -> SchemaError:
    if pt.is_uint64(kind):
        return _refused(path, kind, "Hudi has no unsigned 64-bit type", "cast it to decimal(20, 0) or int64.")
    if pt.is_time(kind):
        return _refused(path, kind, "Spark and Hudi have no time-of-day type", "cast it to int64 or to text.")
    if pt.is_duration(kind) or pt.is_interval(kind):
        return _refused(path, kind, "Hudi has no duration type", "cast it to int64.")
    if pt.is_null(kind):
        return _refused(path, kind, "a column of nulls has no type", "cast it to the intended type.")
    if pt.is_decimal(kind):
        if kind.precision > 38:
            return _refused(path, kind, "decimals have at most 38 digits", "cast it to a smaller decimal.")
        return _refused(
            path, kind, "a decimal's scale must be between 0 and its precision", "cast it to a valid decimal."
        )
    return _refused(path, kind, "Hudi has no such type", "cast it, for example to text.")


def _refused(path: str, kind: pa.DataType, reason: str, remedy: str) -> SchemaError:
    return SchemaError(
        f"column {path} has type {kind}: {reason}", remedy=remedy, column=path, source=str(kind)
    )


def required(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    """The column, after a check for nulls in a required field."""
    if not field.nullable and column.null_count:
        raise SchemaError(
            f"column {field.name} must not be null, but has {column.null_count} nulls",
            column=field.name,
        )
    return column


def equal_types(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether two types hold the same values, ignoring nullability and inner field names."""
    if a == b:
        return True
    if pt.is_list(a) and pt.is_list(b):
        return equal_types(a.value_type, b.value_type)
    if pt.is_map(a) and pt.is_map(b):
        return equal_types(a.key_type, b.key_type) and equal_types(a.item_type, b.item_type)
    if pt.is_struct(a) and pt.is_struct(b):
        return a.num_fields == b.num_fields and all(
            x.name == y.name and equal_types(x.type, y.type) for x, y in zip(a, b, strict=True)
        )
    return False
