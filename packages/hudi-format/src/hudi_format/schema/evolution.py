"""Schema evolution of writes: reconciles the data's schema with the table's.

Rules, from Apache Hudi 0.15.0 (each was tried with it):

- Columns are matched by name at every level; their order in the data becomes the table's.
- A column that the table lacks is added, nullable.  One that the data lacks is an error, unless an option
  fills it with null or drops it.
- Types only grow: int, long, float, double, text.  Where the table's type is the wider one it stays, and the
  data's values are converted: numbers, dates and decimals to text, numbers and text to decimals, smaller
  decimals to larger ones, text and bytes to each other.
- A column is nullable where either side says so.

With `in_place` columns stay where they are and new ones come last, at every level: so it is where the data's types
and order are guessed, and `hudi_format.schema.fit` gave its columns the table's types before.

Where this differs from 0.15.0, it is on the side of the data: Apache Hudi turns dates, times and whole numbers
into each other by their bits, rounds what a decimal cannot hold, refuses to widen a type or to add a column
beside a missing one under `reconcile`, and drops a nested column under `validate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.errors import MissingColumnError, SchemaError
from hudi_format.schema.arrow import equal_types, required
from hudi_format.schema.casts import NUMBERS, convert, promotes, zone_remedy
from hudi_format.schema.exact import nulls_of

Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)

SET_NULL_OPTION = "hoodie.write.set.null.for.missing.columns"
DROP_OPTION = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"
RECONCILE_OPTION = "hoodie.datasource.write.reconcile.schema"
TYPES_OPTION = "hudi.write.types"


def reconcile(
    incoming: pa.Schema,
    table: pa.Schema,
    *,
    set_null_for_missing: bool = False,
    allow_column_drop: bool = False,
    reconcile: bool = False,
    validate: bool = False,
    in_place: bool = False,
) -> pa.Schema:
    """The schema to write with, which becomes the table's.

    Args:
        incoming: the data's schema, as `normalize_schema` gives it, without meta columns.
        table: the table's schema, without meta columns.
        set_null_for_missing: columns that the data lacks are null in its rows.  The table's columns keep their
            order; a new one comes before the known column that follows it in the data.
        allow_column_drop: columns that the data lacks leave the table's schema; stronger than
            `set_null_for_missing`.
        reconcile: the table's schema stays or is extended: as `set_null_for_missing`, and stronger than
            `allow_column_drop`.  Data that only adds columns gives its order to the table.
        validate: `set_null_for_missing` does not count: the data must have all columns.
        in_place: the table's columns keep their order and must have a value where they had to; new ones come last.

    Raises:
        SchemaError: types that do not go together (names the column and both types), or a column that
            differs from one of the table's in case only.
        MissingColumnError: the data lacks a column; the remedy names the options.
    """
    fills = reconcile or (set_null_for_missing and not allow_column_drop and not validate)
    if reconcile and not _lacks(incoming, table) and _lacks(table, incoming):
        fills = False
    rules = _Rules(fills, allow_column_drop and not reconcile, validate, in_place)
    return pa.schema(rules.fields(list(incoming), list(table), ""))


def _lacks(having: Iterable[pa.Field], wanted: Iterable[pa.Field]) -> bool:
    """Whether `having` lacks a column of `wanted`, at any level."""
    ours = {f.name: f.type for f in having}
    return any(f.name not in ours or _lacks_inside(ours[f.name], f.type) for f in wanted)


def _lacks_inside(having: pa.DataType, wanted: pa.DataType) -> bool:
    if pt.is_struct(having) and pt.is_struct(wanted):
        return _lacks(having, wanted)
    if pt.is_list(having) and pt.is_list(wanted):
        return _lacks_inside(having.value_type, wanted.value_type)
    if pt.is_map(having) and pt.is_map(wanted):
        return _lacks_inside(having.item_type, wanted.item_type)
    return False


def as_stored(column: pa.Field, stored: pa.Schema) -> pa.Field:
    """A key column converted to the table's type, where it fits.

    Record keys are the text of that type.
    """
    index = stored.get_field_index(column.name)
    if index < 0:
        return column
    try:
        return reconcile(
            pa.schema([column]), pa.schema([stored.field(index)]), set_null_for_missing=True
        ).field(0).with_nullable(True)  # fmt: skip
    except SchemaError:
        return column  # other types may have the same text: 7 and "7"


@dataclass(frozen=True, slots=True)
class _Rules:
    keep_missing: bool
    drop_missing: bool
    validate: bool
    in_place: bool

    def fields(self, incoming: list[pa.Field], table: list[pa.Field], path: str) -> list[pa.Field]:
        ours = {f.name: f for f in table}
        folded = {f.name.lower(): f.name for f in table}
        theirs = {f.name for f in incoming}
        missing = [f for f in table if f.name not in theirs]
        merged: dict[str, pa.Field] = {}
        for field in incoming:
            full = path + field.name
            known = ours.get(field.name)
            if known is not None:
                merged[field.name] = self.field(field, known, full)
                continue
            twin = folded.get(field.name.lower())
            if twin is not None:
                raise SchemaError(
                    f"column {full} differs from the table's column {path}{twin} in case only",
                    remedy=f"rename it to {twin}.",
                    column=full,
                )
            # Rows of older files have no value here.  What lies inside is only there where the column itself is.
            merged[field.name] = field.with_nullable(True)
        if missing and not self.keep_missing and not self.drop_missing:
            raise _missing(missing, path, self.validate)
        if self.in_place:
            return self._in_place(merged, table, missing, path)
        if not self.keep_missing:
            return list(merged.values())
        return _in_table_order(merged, incoming, table)

    def _in_place(
        self, merged: dict[str, pa.Field], table: list[pa.Field], missing: list[pa.Field], path: str
    ) -> list[pa.Field]:
        lost = [f for f in missing if not f.nullable]
        if lost and self.keep_missing:
            raise MissingColumnError(
                f"the data lacks columns that must not be null: {', '.join(path + f.name for f in lost)}",
                remedy="add them with a value in every row.",
                columns=[path + f.name for f in lost],
            )
        kept = [merged.pop(f.name, f) for f in table if f.name in merged or self.keep_missing]
        return [*kept, *merged.values()]

    def field(self, incoming: pa.Field, table: pa.Field, path: str) -> pa.Field:
        kind = self.type(incoming.type, table.type, path)
        return pa.field(table.name, kind, incoming.nullable or table.nullable)

    def type(self, incoming: pa.DataType, table: pa.DataType, path: str) -> pa.DataType:
        if incoming == table:
            return table
        if pt.is_struct(incoming) and pt.is_struct(table):
            return pa.struct(self.fields(list(incoming), list(table), f"{path}."))
        if pt.is_list(incoming) and pt.is_list(table):
            return pa.list_(self.field(incoming.value_field, table.value_field, f"{path}.element"))
        if pt.is_map(incoming) and pt.is_map(table):
            if not equal_types(incoming.key_type, table.key_type):
                raise _incompatible(f"{path}.key", incoming.key_type, table.key_type)
            item = self.field(incoming.item_field, table.item_field, f"{path}.value")
            return pa.map_(table.key_type, item)
        if incoming in NUMBERS and table in NUMBERS:
            return max(incoming, table, key=NUMBERS.__getitem__)
        if not pt.is_nested(incoming) and not pt.is_nested(table) and promotes(incoming, table):
            return table
        if pt.is_string(incoming) and table in NUMBERS:
            return incoming
        raise _incompatible(path, incoming, table)


def _in_table_order(
    merged: dict[str, pa.Field], incoming: list[pa.Field], table: list[pa.Field]
) -> list[pa.Field]:
    """Fields in the table's order, each new column before its successor in the data."""
    out = [merged.get(f.name) or f.with_nullable(True) for f in table]
    known = {f.name for f in table}
    for n, field in enumerate(incoming):
        if field.name not in known:
            follower = next((f.name for f in incoming[n + 1 :] if f.name in known), None)
            place = len(out) if follower is None else [f.name for f in out].index(follower)
            out.insert(place, merged[field.name])
    return out


def _missing(fields: list[pa.Field], path: str, validate: bool) -> MissingColumnError:
    shown = [f"{path}{f.name} ({f.type})" for f in fields]
    text = ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
    nulls = f"{RECONCILE_OPTION}=true" if validate else f"{SET_NULL_OPTION}=true"
    return MissingColumnError(
        f"the data lacks columns of the table: {text}",
        remedy=f"add them, set {nulls} for nulls, or {DROP_OPTION}=true to drop them.",
        columns=[path + f.name for f in fields],
    )


def _incompatible(path: str, incoming: pa.DataType, table: pa.DataType) -> SchemaError:
    remedy = zone_remedy(incoming, table) or f"cast the column to {table} before writing."
    return SchemaError(
        f"column {path} has the incompatible types {incoming} in the data and {table} in the table",
        remedy=f"{remedy} No option allows this change of a table column's type.",
        column=path,
        source=str(incoming),
        target=str(table),
    )


def conform(
    batch: Batch,
    schema: pa.Schema,
    *,
    keep_dictionaries: bool = False,
    naive_is_utc: bool = False,
    nested_digits: bool = True,
) -> Batch:
    """The rows in the columns of `schema`: reordered, null-filled, promoted, at every level.

    Nothing is copied where types are equal.  The data may also be in any representation that
    `normalize_schema` accepts.  Floats that become doubles keep the digits that they print with: 0.1 stays 0.1, as
    all of Apache Hudi's writers have it, and its readers of base files.

    Args:
        schema: types as they are stored.
        keep_dictionaries: text columns that are dictionary-encoded stay so.
        naive_is_utc: take timestamps without a zone for UTC.
        nested_digits: false where floats inside of other columns become the doubles nearest to them, which is what
            readers before Apache Hudi 1.2 make of those in base files.

    Raises:
        MissingColumnError: a column that must not be null is not there.
        SchemaError: a column cannot be converted, or is there twice; names it.
    """
    own = batch.schema
    if own.equals(schema, check_metadata=False):
        return batch
    columns = []
    fields = []
    for field in schema:
        index = own.get_field_index(field.name)
        if index < 0:
            columns.append(_absent(batch, field))
        else:
            column = batch.column(index)
            if column.type != field.type:
                column = convert(
                    column,
                    field.type,
                    field.name,
                    keep_dictionary=keep_dictionaries,
                    naive_is_utc=naive_is_utc,
                    float_digits=nested_digits or not pt.is_nested(field.type),
                )
            columns.append(required(column, field))
        fields.append(field.with_type(columns[-1].type))
    if not columns:  # Arrow gives a table without columns no rows
        return batch.select([])
    return type(batch).from_arrays(columns, schema=pa.schema(fields))


def _absent(batch: pa.RecordBatch | pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    if batch.schema.names.count(field.name) > 1:
        raise SchemaError(f"column {field.name} is duplicated", column=field.name)
    if not field.nullable:
        raise MissingColumnError(
            f"the data lacks column {field.name}, which must not be null", column=field.name
        )
    nulls = nulls_of(batch.num_rows, field.type)
    return pa.chunked_array([nulls]) if isinstance(batch, pa.Table) else nulls
