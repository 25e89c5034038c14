"""Schemas that differ: what an incoming one does to the table's, and rows from one to the other.

Source: Apache Hudi 0.15's schema handling on write: columns may be added, reordered and widened
(int to long to float to double); missing ones need an option; nothing is narrowed.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import SchemaError
from hudi_format.schema.arrow import equal_types

SET_NULL = "hoodie.write.set.null.for.missing.columns"
ALLOW_DROP = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"

_RANK = {pa.int32(): 0, pa.int64(): 1, pa.float32(): 2, pa.float64(): 3}


def reconcile(
    incoming: pa.Schema,
    table: pa.Schema,
    *,
    set_null_for_missing: bool = False,
    allow_column_drop: bool = False,
    reconcile: bool = False,
) -> pa.Schema:
    """The schema to write incoming rows with, both given without meta columns.

    The table's columns come first, in their order, each in the wider of both types; new columns follow.
    A column is nullable if it is in either schema, or is not in the incoming one.

    Raises:
        SchemaError: a column is missing, or its types do not fit, naming the option that would allow it.
    """
    by_name = {f.name: f for f in incoming}
    folded = {f.name.lower(): f.name for f in incoming}
    out: list[pa.Field] = []
    for old in table:
        new = by_name.pop(old.name, None)
        if new is None:
            other = folded.get(old.name.lower())
            if other is not None and other in by_name:
                raise SchemaError(
                    f"column {other!r} is {old.name!r} in the table: they differ in case",
                    remedy=f"rename it to {old.name!r}.",
                    column=other,
                )
            if allow_column_drop and not (set_null_for_missing or reconcile):
                continue
            if not (set_null_for_missing or reconcile):
                raise SchemaError(
                    f"column {old.name!r} of the table ({old.type}) is not in the data",
                    remedy=f"add it, or set {SET_NULL}=true to fill it with nulls.",
                    column=old.name,
                )
            out.append(old.with_nullable(True))
            continue
        out.append(pa.field(old.name, merge_types(new.type, old.type, old.name), old.nullable or new.nullable))
    out += [f.with_nullable(True) for f in by_name.values()]
    return pa.schema(out)


def merge_types(new: pa.DataType, old: pa.DataType, column: str) -> pa.DataType:
    """The type that holds the values of both.

    Raises:
        SchemaError: there is none that Hudi allows.
    """
    if equal_types(new, old):
        return _loosened(new, old, column)
    if new in _RANK and old in _RANK:
        return max(new, old, key=lambda t: _RANK[t])
    if pa.types.is_decimal(new) and pa.types.is_decimal(old) and new.scale == old.scale:
        return new if new.precision > old.precision else old
    if _nested(new) and _nested(old) and new.id == old.id:
        return _loosened(new, old, column)
    raise SchemaError(
        f"column {column!r} is {new} in the data and {old} in the table",
        remedy=f"cast it to {old}; a type may only be widened (int, long, float, double).",
        column=column,
    )


def _nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def _loosened(new: pa.DataType, old: pa.DataType, column: str) -> pa.DataType:
    """Equal or nested types with their children merged, nullable where either is."""
    if pa.types.is_list(old):
        a, b = new.value_field, old.value_field
        merged = merge_types(a.type, b.type, f"{column}.element")
        return pa.list_(pa.field("element", merged, a.nullable or b.nullable))
    if pa.types.is_map(old):
        a, b = new.item_field, old.item_field
        merged = merge_types(a.type, b.type, f"{column}.value")
        return pa.map_(old.key_type, pa.field("value", merged, a.nullable or b.nullable))
    if pa.types.is_struct(old):
        fields = {new.field(i).name: new.field(i) for i in range(new.num_fields)}
        out = []
        for i in range(old.num_fields):
            b = old.field(i)
            a = fields.pop(b.name, None)
            if a is None:
                out.append(b.with_nullable(True))
                continue
            merged = merge_types(a.type, b.type, f"{column}.{b.name}")
            out.append(pa.field(b.name, merged, a.nullable or b.nullable))
        return pa.struct([*out, *(f.with_nullable(True) for f in fields.values())])
    return old


Rows = pa.RecordBatch | pa.Table


def conform(rows: Rows, schema: pa.Schema) -> Rows:
    """The rows in exactly this schema: columns chosen by name, missing ones null, types widened.

    Raises:
        SchemaError: a value that does not fit, or a null in a column that takes none.
    """
    if rows.schema.equals(schema):
        return rows
    n = rows.num_rows
    columns = []
    for field in schema:
        index = rows.schema.get_field_index(field.name)
        column = rows.column(index) if index >= 0 else pa.nulls(n, field.type)
        if not column.type.equals(field.type):
            column = convert(column, field.type, field.name)
        if not field.nullable and column.null_count:
            raise SchemaError(
                f"column {field.name!r} takes no nulls and has {column.null_count} of them", column=field.name
            )
        columns.append(column)
    if isinstance(rows, pa.RecordBatch):
        flat = [c if isinstance(c, pa.Array) else _one(c) for c in columns]
        return pa.RecordBatch.from_arrays(flat, schema=schema)
    return pa.Table.from_arrays(columns, schema=schema)


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def convert(column: pa.Array | pa.ChunkedArray, target: pa.DataType, path: str) -> pa.Array | pa.ChunkedArray:
    """A column in the target type: numbers widened, nested children matched by name, others cast safely.

    Raises:
        SchemaError: no such conversion, or a value that it would change.
    """
    if column.type.equals(target):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([convert(c, target, path) for c in column.chunks], target)
    if pa.types.is_dictionary(column.type):
        return convert(column.dictionary_decode(), target, path)
    if isinstance(column, pa.ExtensionArray):
        return convert(column.storage, target, path)
    if pa.types.is_struct(target) and pa.types.is_struct(column.type):
        return _convert_struct(column, target, path)
    if pa.types.is_list(target) and pa.types.is_nested(column.type) and not pa.types.is_map(column.type):
        return _convert_list(column, target, path)
    if pa.types.is_map(target) and pa.types.is_map(column.type):
        return _convert_map(column, target, path)
    # Widening int64 to a float may round; Hudi's promotion allows it.
    safe = not (pa.types.is_integer(column.type) and pa.types.is_floating(target))
    try:
        return pc.cast(column, target, safe=safe)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise SchemaError(
            f"column {path!r} of type {column.type} does not fit {target}: {str(e).splitlines()[0]}",
            remedy="cast it before writing.",
            column=path,
        ) from None


def _validity(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _convert_struct(array: pa.StructArray, target: pa.StructType, path: str) -> pa.Array:
    children = []
    for i in range(target.num_fields):
        field = target.field(i)
        index = array.type.get_field_index(field.name)
        child = array.field(index) if index >= 0 else pa.nulls(len(array), field.type)
        children.append(convert(child, field.type, f"{path}.{field.name}"))
    fields = [target.field(i) for i in range(target.num_fields)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_validity(array))


def _convert_list(array: pa.Array, target: pa.ListType, path: str) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    # Offsets of a slice do not begin at 0: values from the first offset on, offsets moved to match.
    values = convert(_values(array), target.value_type, f"{path}.element")
    offsets = pc.subtract(array.offsets, array.offsets[0])
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=_validity(array))


def _values(array: pa.Array) -> pa.Array:
    """Child values between the first and last offset, those under nulls too."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return array.values.slice(first, last - first)


def _convert_map(array: pa.MapArray, target: pa.MapType, path: str) -> pa.Array:
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    keys = convert(array.keys.slice(first, last - first), target.key_type, f"{path}.key")
    items = convert(array.items.slice(first, last - first), target.item_type, f"{path}.value")
    offsets = pc.subtract(array.offsets, array.offsets[0])
    # from_arrays takes no mask: a null entry is one whose offset is null.
    if array.null_count:
        null = pa.concat_arrays([array.is_null(), pa.array([False])])
        offsets = pc.if_else(null, pa.scalar(None, pa.int32()), offsets)
    return pa.MapArray.from_arrays(offsets, keys, items, type=target)
