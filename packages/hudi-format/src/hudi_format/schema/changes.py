"""Schema changes of a write, column by column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

ADDED, WIDENED, DROPPED, FILLED, CONVERTED, RELAXED, REORDERED = (
    "added", "widened", "dropped", "filled", "converted", "relaxed", "reordered",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One column's change.

    Attributes:
        kind: `added`, `widened` (the table takes the data's type), `dropped` (leaves the table), `filled` (not
            in the data, null in its rows), `converted` (the data takes the table's type), `relaxed` (may be
            null from now on) or `reordered` (the columns of a struct, or of the table, stand in another order).
        column: its name, dots between levels; `element` and `value` for what lists and maps hold; "" for
            the table itself.
        old: the type in the table before; for `converted` that in the data; "" where there was none.
        new: the type in the table afterwards; "" where there is none.
    """

    kind: str
    column: str
    old: str = ""
    new: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "added":
                return f"{self.column} added as {self.new}"
            case "widened":
                return f"{self.column} from {self.old} to {self.new}"
            case "dropped":
                return f"{self.column} dropped, was {self.old}"
            case "filled":
                return f"{self.column} filled with null"
            case "converted":
                return f"{self.column} converted from {self.old} to {self.new}"
            case "relaxed":
                return f"{self.column} may be null"
        return f"{self.column or 'columns'} reordered"

    @property
    def nested(self) -> bool:
        """Whether the column is nested in another one."""
        return "." in self.column


def schema_changes(incoming: pa.Schema, table: pa.Schema, result: pa.Schema) -> tuple[SchemaChange, ...]:
    """Schema changes from writing data of one schema to a table of another.

    Args:
        incoming: the data's schema, as `normalize_schema` gives it.
        table: the table's before.
        result: the table's afterwards, as `reconcile` gives it.
    """
    return tuple(_fields(list(incoming), list(table), list(result), ""))


def _fields(
    incoming: list[pa.Field], table: list[pa.Field], result: list[pa.Field], path: str
) -> Iterator[SchemaChange]:
    given, old = {f.name: f for f in incoming}, {f.name: f for f in table}
    after = {f.name for f in result}
    for field in result:
        full = f"{path}{field.name}"
        before, data = old.get(field.name), given.get(field.name)
        if before is None:
            yield SchemaChange(ADDED, full, "", str(field.type))
            continue
        if field.nullable and not before.nullable:
            yield SchemaChange(RELAXED, full, str(before.type), str(field.type))
        if data is None:
            yield SchemaChange(FILLED, full, str(before.type), str(field.type))
        else:
            yield from _types(data.type, before.type, field.type, full)
    for field in table:
        if field.name not in after:
            yield SchemaChange(DROPPED, f"{path}{field.name}", str(field.type), "")
    if [f.name for f in table if f.name in after] != [f.name for f in result if f.name in old]:
        yield SchemaChange(REORDERED, path.rstrip("."))


def _types(
    incoming: pa.DataType, table: pa.DataType, result: pa.DataType, path: str
) -> Iterator[SchemaChange]:
    kinds = (incoming, table, result)
    if all(map(pt.is_struct, kinds)):
        yield from _fields(list(incoming), list(table), list(result), f"{path}.")
    elif all(map(pt.is_list, kinds)):
        fields = (incoming.value_field, table.value_field, result.value_field)
        yield from _inner(*fields, f"{path}.element")
    elif all(map(pt.is_map, kinds)):
        yield from _inner(incoming.item_field, table.item_field, result.item_field, f"{path}.value")
    elif result != table:
        yield SchemaChange(WIDENED, path, str(table), str(result))
    elif result != incoming:
        yield SchemaChange(CONVERTED, path, str(incoming), str(result))


def _inner(incoming: pa.Field, table: pa.Field, result: pa.Field, path: str) -> Iterator[SchemaChange]:
    if result.nullable and not table.nullable:
        yield SchemaChange(RELAXED, path, str(table.type), str(result.type))
    yield from _types(incoming.type, table.type, result.type, path)
