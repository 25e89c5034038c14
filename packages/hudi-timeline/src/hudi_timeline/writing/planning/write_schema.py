"""Table schema after a write: changes and refusals.

Decided from schemas alone, before a row is read.  The rules are `hudi_format.schema.evolution`'s; added here is
what a table's keys ask for: a column whose values make record keys or partition paths must not change the text
of the values that are stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.arrow.arrays import contains
from hudi_format.errors import (
    CorruptFileError,
    InvalidOptionError,
    MissingColumnError,
    MissingFileError,
    SchemaError,
    UnsupportedError,
)
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.schema.arrow import equal_types
from hudi_format.schema.avro import from_avro
from hudi_format.schema.changes import (
    ADDED,
    DROPPED,
    RELAXED,
    REORDERED,
    WIDENED,
    SchemaChange,
    schema_changes,
)
from hudi_format.schema.evolution import TYPES_OPTION, reconcile
from hudi_format.schema.extension_types import own_types
from hudi_format.schema.fit import in_table_types, stored_types
from hudi_format.schema.meta_fields import without_meta
from hudi_format.storage.open import folder_and_name, open_beside
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import history_file
from hudi_timeline.options import WriteConfig
from hudi_timeline.options.table_options import (
    SCHEMA_MODE,
    SOURCE_SCHEMA_FILE,
    TARGET_SCHEMA_FILE,
    WRITE_SCHEMA,
)
from hudi_timeline.writing.planning.keys import type_of

STRICT = "strict"


@dataclass(frozen=True, slots=True)
class WriteEvolution:
    """Schema to write with (the table's afterwards), changes, and warnings."""

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
) -> WriteEvolution:
    """Schema evolution by a write.

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
        return WriteEvolution(incoming, warnings=tuple(about_zones(incoming, ())))
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
    if config.schema_mode == STRICT:
        _refuse_changes(changes)
    return WriteEvolution(schema, changes, (*_warnings(changes), *about_zones(schema, stored.names)))


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


def _refuse_changes(changes: Iterable[SchemaChange]) -> None:
    for change in changes:
        if change.kind in (ADDED, WIDENED, DROPPED, RELAXED, REORDERED):
            raise SchemaError(
                f"{SCHEMA_MODE}={STRICT} keeps the table's schema, which the write would change: {change}",
                remedy="give the rows the table's columns and types, or set it to merge.",
                column=change.column,
                change=change.kind,
            )


def refuse_left_out(columns: Sequence[str], config: WriteConfig) -> None:
    """Refuse new columns of nulls only, where the schema is to stay.

    Raises:
        SchemaError: naming the first.
    """
    if columns and config.schema_mode == STRICT:
        raise SchemaError(
            f"{SCHEMA_MODE}={STRICT} keeps the table's schema, which has no column {columns[0]}",
            remedy="leave the column out, or set it to merge.",
            column=columns[0],
            change=ADDED,
        )


def left_out(columns: Sequence[str]) -> Iterable[str]:
    """Warnings about new columns of nulls only."""
    if columns:
        yield (
            f"{', '.join(columns)}: left out, as new columns of nulls only have no type; give them one to add them to "
            "the table"
        )


def check_key_types(stored: pa.Schema, schema: pa.Schema, fields: Iterable[str]) -> None:
    """Refuse type changes of key and partition columns that change the keys' text.

    Raises:
        SchemaError: naming the column and both types.
    """
    for name in dict.fromkeys(fields):
        old, new = type_of(stored, name), type_of(schema, name)
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
    """Refuse a new column whose former type is incompatible.

    Files of that time still hold it, and would be read for it.

    Args:
        former: schemas that the table had.

    Raises:
        SchemaError: naming the column and both types.
    """
    added = [c.column for c in changes if c.kind == ADDED]
    for old in former if added else ():
        for name in added:
            was, now = type_of(old, name), type_of(schema, name)
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


def about_zones(schema: pa.Schema, known: Iterable[str]) -> Iterable[str]:
    """Warnings about new timestamp columns without time zone."""
    names = [f.name for f in schema if f.name not in known and _holds(f.type, None)]
    if names:
        yield (
            f"{', '.join(names)}: timestamps without a zone, which Apache Hudi 1.2 reads; with 0.15 the whole "
            "table cannot be read on Spark, with 1.0 they are numbers, or an error within lists, maps and structs; "
            "give them the time zone UTC for these"
        )


def about_utc(given: pa.Schema, stored: pa.Schema) -> Iterable[str]:
    """Warnings about timestamps without time zone that are taken for UTC.

    Args:
        given: the rows' schema.
        stored: the same columns, as they are stored.
    """
    names = [
        f.name
        for f in given
        if f.name in stored.names and _holds(f.type, None) and _holds(stored.field(f.name).type, "UTC")
    ]
    if names:
        yield (
            f"{', '.join(names)}: times without a zone are taken for UTC, as with others no release of Apache Hudi "
            f"before 1.2 can read the table; give them their time zone, or set {TYPES_OPTION}=data to store them "
            "without one"
        )


def about_texts(columns: Iterable[str]) -> Iterable[str]:
    """Warnings about texts of times without time zone that were taken for UTC."""
    if columns:
        yield f"{', '.join(sorted(columns))}: texts of times without a zone are taken for UTC; end them in their zone"


def _holds(kind: pa.DataType, zone: str | None) -> bool:
    """Whether there are timestamps of a time zone."""
    return contains(kind, lambda k: pt.is_timestamp(k) and k.tz == zone)


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


# The schema that a write's options give to its rows; without one the rows' own counts, or the table's.
#
# It is Avro's JSON, in `hoodie.write.schema` or in a file that the options of Apache Hudi's file-based schema provider
# name.  Rows take its columns, types and nullability: what they lack becomes null.  What it has no place for is
# refused, as a slip in it would lose a column.
#
# Source: FilebasedSchemaProvider of Apache Hudi 0.15; FAQ, "What's Hudi's schema evolution story?".


@dataclass(frozen=True)
class GivenSchema:
    """Schema given by an option."""

    schema: pa.Schema
    option: str
    text: str

    def check(self, incoming: pa.Schema, storage: Storage) -> None:
        """Refuse rows with another schema.

        Args:
            incoming: the rows' schema, normalised, without meta columns.

        Raises:
            InvalidOptionError, CorruptFileError: the text is no Avro schema of a record.
            MissingColumnError: the rows lack a column that must not be null, or whose default is not null.
            SchemaError: columns or types of the rows that the given schema has no place for.
        """
        try:
            _check(incoming, self.schema, self.text, self.option)
        except SchemaError as e:
            raise e.at(table=storage.uri) from None


def given_schema(config: WriteConfig, storage: Storage) -> GivenSchema | None:
    """The schema in the options.

    Args:
        storage: the table's; a schema file on its store is read with its credentials.

    Raises:
        InvalidOptionError, CorruptFileError: what is given is no Avro schema of a record.
        MissingFileError: there is no such file.
        UnsupportedError: vectors, blobs or variants.
    """
    option, text = _text(config, storage)
    if text is None:
        return None
    try:
        given = without_meta(from_avro(text))
        own = own_types(text)
        if own:
            raise UnsupportedError(
                f"{option} has columns of Apache Hudi's own types, which can be read, but not written: "
                + ", ".join(f"{name} ({kind})" for name, kind in own.items()),
                table=storage.uri,
                remedy="give arrays and records in their places, or write with Apache Hudi 1.2 or later.",
                columns=list(own),
            )
    except CorruptFileError as e:
        raise InvalidOptionError(
            f"{option} gives no schema of rows: {e.message}",
            table=storage.uri,
            remedy="give an Avro record as JSON.",
            option=option,
        ) from None
    except SchemaError as e:
        raise e.at(table=storage.uri) from None
    return GivenSchema(given, option, text)


def _text(config: WriteConfig, storage: Storage) -> tuple[str, str | None]:
    """The effective option, and its schema text; None where none is given."""
    if config.write_schema is not None:
        return WRITE_SCHEMA, config.write_schema
    for option, path in (
        (TARGET_SCHEMA_FILE, config.target_schema_file),
        (SOURCE_SCHEMA_FILE, config.source_schema_file),
    ):
        if path is not None:
            folder, name = folder_and_name(path)
            try:
                return option, open_beside(storage, folder).read(name).decode()
            except FileNotFoundError:
                raise MissingFileError(
                    f"the file named by {option} does not exist",
                    table=storage.uri,
                    file=path,
                    remedy="correct the path.",
                    option=option,
                ) from None
            except UnicodeDecodeError:
                raise InvalidOptionError(
                    f"{option} names a file that is not UTF-8",
                    table=storage.uri,
                    file=path,
                    remedy="name a file with an Avro schema as JSON.",
                    option=option,
                ) from None
    return "", None


def _check(incoming: pa.Schema, given: pa.Schema, text: str, option: str) -> None:
    more = [n for n in incoming.names if n not in given.names]
    if more:
        raise SchemaError(
            f"the schema of {option} has no column {', '.join(more)}, which the rows have",
            remedy="add it to the schema, or drop it from the rows.",
            columns=more,
        )
    for field in incoming:
        target = given.field(field.name)
        try:
            merged = reconcile(pa.schema([field]), pa.schema([target]), set_null_for_missing=True)
            fits = equal_types(merged.field(0).type, target.type)
        except SchemaError:
            fits = False
        if not fits:
            raise SchemaError(
                f"column {field.name} has type {field.type} in the rows and {target.type} in the schema of {option}, "
                "which does not hold it",
                remedy="cast the column before it is written, or correct the schema.",
                column=field.name,
                source=str(field.type),
                target=str(target.type),
            )
    filled = _defaults(text)
    lost = [f.name for f in given if f.name not in incoming.names and (not f.nullable or f.name in filled)]
    if lost:
        raise MissingColumnError(
            f"the rows lack {', '.join(lost)}, which the schema of {option} has without null as its default",
            remedy="add it to the rows; only null is filled in.",
            columns=lost,
        )


def _defaults(text: str) -> set[str]:
    """Columns with a non-null default."""
    root = json.loads(text)
    fields = (root[0] if isinstance(root, list) else root)["fields"]
    return {f["name"] for f in fields if f.get("default") is not None}


def former_schemas(snapshot: TableSnapshot | None) -> Iterator[pa.Schema]:
    """Schemas of the active timeline's commits, newest first, read lazily."""
    seen: set[str] = set()
    if snapshot is None or history_file(snapshot):  # the history tells columns of one name apart
        return
    for instant in reversed(snapshot.timeline.completed_writes()):
        text = snapshot.commits.get(instant).schema_text
        if text and text not in seen:
            seen.add(text)
            yield from_avro(text)


def own_schema(given: pa.Schema, stored: pa.Schema | None, incoming: pa.Schema) -> pa.Schema:
    """Original schema of the rows, in types that tables have, for conversion reports."""
    return stored_types(given if stored is None else in_table_types(given, stored, nulls_only=True), incoming)
