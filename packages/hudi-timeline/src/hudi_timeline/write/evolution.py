"""The schema that a write leaves the table with, what that changes, and what of it is refused.

Decided from schemas alone, before a row is read.  The rules are `hudi_format.schema.evolve`'s; added here is
what a table's keys ask for: a column whose values make record keys or partition paths must not change the text
of the values that are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.config import WriteConfig
from hudi_format.errors import SchemaError
from hudi_format.keys import KeySpec
from hudi_format.schema.changes import ADDED, DROPPED, WIDENED, SchemaChange, schema_changes
from hudi_format.schema.evolve import TYPES_OPTION, reconcile


@dataclass(frozen=True, slots=True)
class Evolution:
    """The schema to write with, which becomes the table's; what changes; what the user should know."""

    schema: pa.Schema
    changes: tuple[SchemaChange, ...] = ()
    warnings: tuple[str, ...] = ()


def evolve(
    incoming: pa.Schema,
    stored: pa.Schema | None,
    config: WriteConfig,
    key_spec: KeySpec,
    *,
    keeps_types: bool = False,
    own: pa.Schema | None = None,
) -> Evolution:
    """What a write of rows makes of the table's schema.

    Args:
        incoming: the data's schema, normalised, without meta columns.
        stored: the table's; None where it has none yet.
        keeps_types: columns keep their types and order; the rules are Apache Hudi's otherwise, by which types grow
            and the data gives the order.
        own: the data's schema as it came, for the report on what is converted; None for `incoming`.

    Raises:
        SchemaError, MissingColumnError: columns and types that do not go together.
    """
    if stored is None:
        return Evolution(incoming, warnings=tuple(about_zones(incoming, ())))
    schema = reconcile(
        incoming,
        stored,
        set_null_for_missing=config.set_null_for_missing_columns,
        allow_column_drop=config.allow_column_drop,
        reconcile=config.reconcile_schema,
        validate=config.validate_schema,
        in_place=keeps_types,
    )
    check_key_types(stored, schema, (*key_spec.key_fields, *key_spec.partition_fields))
    if keeps_types:
        _refuse_other_types(schema_changes(incoming, stored, schema))
    changes = schema_changes(incoming if own is None else own, stored, schema)
    return Evolution(schema, changes, (*_warnings(changes), *about_zones(schema, stored.names)))


def _refuse_other_types(changes: Iterable[SchemaChange]) -> None:
    for change in changes:
        if change.kind == WIDENED:
            raise SchemaError(
                f"column {change.column} has type {change.old} in the table, and would become {change.new}",
                remedy=f"cast it to {change.old} before it is written, or set {TYPES_OPTION}=data.",
                column=change.column,
                source=change.new,
                target=change.old,
            )


def left_out(columns: Sequence[str]) -> Iterable[str]:
    """What is to be said of new columns all of whose values are null."""
    if columns:
        yield (
            f"{', '.join(columns)}: left out, as new columns of nulls only have no type; give them one to add them to "
            "the table"
        )


def check_key_types(stored: pa.Schema, schema: pa.Schema, fields: Iterable[str]) -> None:
    """Refuse other types of key and partition columns, where the stored keys would have another text.

    Raises:
        SchemaError: naming the column and both types.
    """
    for name in dict.fromkeys(fields):
        old, new = _type_at(stored, name), _type_at(schema, name)
        if old is None or new is None or old == new or _same_text(old, new):
            continue
        raise SchemaError(
            f"column {name} makes record keys or partition paths, and has type {new} in the data and {old} in "
            "the table: the keys of equal values would differ",
            remedy=f"cast the column to {old} before it is written.",
            column=name,
            source=str(new),
            target=str(old),
        )


def check_former_types(
    changes: Iterable[SchemaChange], schema: pa.Schema, former: Iterable[pa.Schema]
) -> None:
    """Refuse to add a column that the table once had, in a type that does not go with the new one.

    Files of that time still hold it, and would be read for it.

    Args:
        former: schemas that the table had.

    Raises:
        SchemaError: naming the column and both types.
    """
    added = [c.column for c in changes if c.kind == ADDED]
    for old in former if added else ():
        for name in added:
            was, now = _type_at(old, name), _type_at(schema, name)
            if was is None or now is None:
                continue
            try:
                fits = reconcile(pa.schema([("c", was)]), pa.schema([("c", now)]), set_null_for_missing=True)
            except SchemaError:
                fits = None
            if fits is None or fits.field("c").type != now:
                raise SchemaError(
                    f"column {name} was in the table before, as {was}, and cannot be added again as {now}: files of "
                    "that time would be read for it",
                    remedy=f"give the column another name, or cast it to {was}.",
                    column=name,
                    source=str(now),
                    target=str(was),
                )


def _same_text(old: pa.DataType, new: pa.DataType) -> bool:
    if pt.is_integer(old):
        return bool(pt.is_integer(new) or pt.is_string(new))
    return bool(pt.is_floating(old) and pt.is_string(new))


def _type_at(schema: pa.Schema, path: str) -> pa.DataType | None:
    if path in schema.names:
        return schema.field(path).type
    root, *inner = path.split(".")
    if schema.get_field_index(root) < 0:
        return None
    kind = schema.field(root).type
    for name in inner:
        if not pt.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(kind.get_field_index(name)).type
    return kind


def about_zones(schema: pa.Schema, known: Iterable[str]) -> Iterable[str]:
    """What is to be said of new columns of timestamps without a zone."""
    names = [f.name for f in schema if f.name not in known and _holds_zoneless(f.type)]
    if names:
        yield (
            f"{', '.join(names)}: timestamps without a zone, which Apache Hudi 1.2 reads; with 0.15 the whole "
            "table cannot be read on Spark, with 1.0 they are numbers, or an error within lists, maps and structs; "
            "give them the time zone UTC for these"
        )


def _holds_zoneless(kind: pa.DataType) -> bool:
    if pt.is_nested(kind):
        return any(_holds_zoneless(kind.field(n).type) for n in range(kind.num_fields))
    return bool(pt.is_timestamp(kind) and kind.tz is None)


def _warnings(changes: Iterable[SchemaChange]) -> Iterable[str]:
    for change in changes:
        if change.kind == DROPPED:
            yield f"column {change.column} ({change.old}) leaves the table's schema, as the data lacks it"
        elif change.kind == WIDENED:
            what = "text" if change.new == "string" else change.new
            text = f"column {change.column} is {what} from now on, it was {change.old}"
            if change.nested and change.new != "string":
                text += (
                    ": Apache Hudi 0.15 cannot read such a column of lists, maps or structs from files that were "
                    "written before"
                )
            yield f"{text}; {TYPES_OPTION}=table refuses that"
