"""Conversion of rows with guessed or foreign types to a table's types.

Values decide: a column of longs goes into one of ints where each value fits, nulls go everywhere.  What does not fit
is refused with its column, value and row.  Types, order and nullability of the table's columns stay.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_format.arrow.arrays import requires
from hudi_format.errors import SchemaError
from hudi_format.schema.arrow import equal_types, normalize_type
from hudi_format.schema.casts import convert, is_any_list, refusal, stored_leaf, unwrapped
from hudi_format.schema.evolution import TYPES_OPTION, reconcile
from hudi_format.schema.exact import Exact, MisfitError
from hudi_format.schema.python_values import shown

Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)


def in_table_types(rows: pa.Schema, table: pa.Schema, *, nulls_only: bool = False) -> pa.Schema:
    """The rows' schema with the table's types for all columns the table has.

    Args:
        nulls_only: only for what has no type of its own, as all its values are null.
    """
    return pa.schema(_fields(list(rows), list(table), nulls_only))


def _fields(rows: list[pa.Field], table: list[pa.Field], nulls_only: bool) -> list[pa.Field]:
    known = {f.name: f for f in table}
    return [_field(f, known[f.name], nulls_only) if f.name in known else f for f in rows]


def _field(field: pa.Field, table: pa.Field, nulls_only: bool) -> pa.Field:
    kind = _type(field.type, table.type, nulls_only)
    return field.with_type(kind) if nulls_only else pa.field(table.name, kind, table.nullable)


def _type(kind: pa.DataType, table: pa.DataType, nulls_only: bool) -> pa.DataType:
    kind = unwrapped(kind)
    if pt.is_struct(kind) and pt.is_struct(table) and kind.num_fields:
        return pa.struct(_fields(list(kind), list(table), nulls_only))
    if is_any_list(kind) and pt.is_list(table):
        return pa.list_(_field(kind.value_field, table.value_field, nulls_only))
    if pt.is_map(kind) and pt.is_map(table):
        key = _type(kind.key_type, table.key_type, nulls_only)
        return pa.map_(key, _field(kind.item_field, table.item_field, nulls_only))
    return table if pt.is_null(kind) or not nulls_only else kind


def in_utc(schema: pa.Schema) -> pa.Schema:
    """The schema with the time zone UTC for timestamps without one."""
    return pa.schema([f.with_type(_in_utc(f.type)) for f in schema])


def _in_utc(kind: pa.DataType) -> pa.DataType:
    plain = unwrapped(kind)
    if pt.is_timestamp(plain) and plain.tz is None:
        return pa.timestamp(plain.unit, "UTC")
    if pt.is_struct(plain):
        fields = [f.with_type(_in_utc(f.type)) for f in plain]
        return kind if fields == list(plain) else pa.struct(fields)
    if is_any_list(plain):
        inner = _in_utc(plain.value_type)
        return kind if inner == plain.value_type else pa.list_(plain.value_field.with_type(inner))
    if pt.is_map(plain):
        key, item = _in_utc(plain.key_type), _in_utc(plain.item_type)
        same = key == plain.key_type and item == plain.item_type
        return kind if same else pa.map_(key, plain.item_field.with_type(item))
    return kind


def stored_types(rows: pa.Schema, others: pa.Schema | None = None) -> pa.Schema:
    """The rows' schema in stored types; types without one come from `others` or stay."""
    fields = []
    for field in rows:
        try:
            fields.append(field.with_type(normalize_type(field.type, field.name)))
        except SchemaError:
            index = -1 if others is None else others.get_field_index(field.name)
            fields.append(field if others is None or index < 0 else others.field(index))
    return pa.schema(fields)


def without_untyped(schema: pa.Schema, keep: Container[str]) -> tuple[pa.Schema, list[str]]:
    """The schema without untyped (all-null) columns and members, and their dotted names.

    All their values are null, so nothing is lost with them.

    Args:
        keep: columns to leave, as they are needed.
    """
    gone: list[str] = []
    fields = []
    for field in schema:
        if field.name in keep:
            fields.append(field)
        elif pt.is_null(unwrapped(field.type)):
            gone.append(field.name)
        else:
            fields.append(field.with_type(_typed(field.type, field.name, gone)))
    return pa.schema(fields), gone


def _typed(kind: pa.DataType, path: str, gone: list[str]) -> pa.DataType:
    kind = unwrapped(kind)
    if is_any_list(kind):
        field = kind.value_field
        inner = _typed(field.type, f"{path}.element", gone)
        return kind if inner == field.type else pa.list_(field.with_type(inner))
    if pt.is_map(kind):
        item = kind.item_field
        return pa.map_(kind.key_type, item.with_type(_typed(item.type, f"{path}.value", gone)))
    if not pt.is_struct(kind) or all(pt.is_null(unwrapped(f.type)) for f in kind):
        return kind  # a struct of nulls would have no member: normalize_type refuses it
    fields = []
    for field in kind:
        full = f"{path}.{field.name}"
        if pt.is_null(unwrapped(field.type)):
            gone.append(full)
        else:
            fields.append(field.with_type(_typed(field.type, full, gone)))
    return pa.struct(fields)


def fit(rows: Batch, schema: pa.Schema, *, first: int = 0, exact: Exact) -> Batch:
    """The rows with the columns of `schema` in its types; all columns and their order stay.

    Only what is another type, not another representation of the same one, is converted: `conform` does the rest.

    Args:
        first: number of the first row, for the error.

    Raises:
        SchemaError: a value does not survive, or is null where none may be; names column, value and row.
    """
    for index, field in unlike(rows.schema, schema):
        name = field.name
        column = rows.column(index)
        try:
            if not _same(column.type, field.type):
                column = convert(column, field.type, name, float_digits=True, exact=exact)
            else:
                _refuse_nulls_inside(column, field)
            if not field.nullable and column.null_count:
                missing = pc.index(column.is_null(), True).as_py()
                raise _absent(name, missing, field)
        except MisfitError as e:
            raise _refused(e, first) from None
        rows = rows.set_column(index, field.with_nullable(True).with_type(column.type), column)
    return rows


def unlike(rows: pa.Schema, schema: pa.Schema) -> list[tuple[int, pa.Field]]:
    """Positions and wanted fields of the columns that `fit` has to convert."""
    out = []
    for index, given in enumerate(rows):
        at = schema.get_field_index(given.name)
        field = schema.field(at) if at >= 0 else None
        # That a column says to have no nulls is not believed: Arrow lets any array stand in it.
        if field is not None and not (
            _same(given.type, field.type) and field.nullable and not requires(field.type)
        ):
            out.append((index, field))
    return out


def _absent(path: str, row: int, field: pa.Field) -> MisfitError:
    return MisfitError(path, row, None, field.type, field.type, "it must not be null")


def _refuse_nulls_inside(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> None:
    """Check a column of the wanted type; what is converted is checked by that.

    Raises:
        MisfitError: a null below the column where none may be.
    """
    if column.type != field.type or not requires(field.type):
        return
    first = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        _check_inside(chunk, field.type, field.name, np.arange(first, first + len(chunk)))
        first += len(chunk)


def _check_inside(array: pa.Array, kind: pa.DataType, path: str, rows: np.ndarray) -> None:
    """`rows` are the numbers of the rows that the values stand in."""
    if not requires(kind):
        return
    if array.null_count:  # what lies below a null is no value
        array, rows = array.drop_null(), rows[np.asarray(array.is_valid(), dtype=bool)]
    if pt.is_struct(kind):
        inner = [(array.field(n), f, f"{path}.{f.name}") for n, f in enumerate(kind)]
    else:
        field = kind.item_field if pt.is_map(kind) else kind.value_field
        values = (array.items if pt.is_map(kind) else array.values).slice(
            array.offsets[0].as_py(), array.offsets[-1].as_py() - array.offsets[0].as_py()
        )
        inner = [(values, field, f"{path}.{'value' if pt.is_map(kind) else 'element'}")]
        rows = np.repeat(rows, np.diff(array.offsets.to_numpy()))
    for values, field, full in inner:
        if not field.nullable and values.null_count:
            raise _absent(full, int(rows[pc.index(values.is_null(), True).as_py()]), field)
        _check_inside(values, field.type, full, rows)


def _same(kind: pa.DataType, target: pa.DataType) -> bool:
    """Whether both types hold the same values, or the values fit without a check."""
    if kind == target:
        return True
    plain = unwrapped(kind)
    if pt.is_nested(plain) or pt.is_nested(target):
        return False
    return bool(stored_leaf(plain) == target and (pt.is_string(target) or pt.is_binary(target)))


def _refused(e: MisfitError, first: int) -> SchemaError:
    row = first + e.index
    if e.value is None:
        error = SchemaError(
            f"column {e.path} must not be null, but is null in row {row:,} (counted from 0)",
            remedy="fill it.",
            column=e.path,
        )
    else:
        error = refusal(e.path, e.source, e.target, f"{shown(e.value)} in row {row:,} (counted from 0)")
        if e.reason:
            error.message += f"; {e.reason}"
        error.details["value"] = e.value
        wider = _wider(e.source, e.target)
        if wider is not None:
            error.remedy += f" With {TYPES_OPTION}=data the whole column becomes {wider}, as in Apache Hudi."
    error.details["row"] = row
    return error


def _wider(source: pa.DataType, target: pa.DataType) -> pa.DataType | None:
    """The type that Apache Hudi would widen the table's to; None where it refuses or keeps it."""
    try:
        stored = normalize_type(source, "c")
        merged = reconcile(pa.schema([("c", stored)]), pa.schema([("c", target)]))
    except SchemaError:
        return None
    kind = merged.field("c").type
    return None if equal_types(kind, target) else kind
