"""The schema that a write's options give to its rows; without one the rows' own counts, or the table's.

It is Avro's JSON, in `hoodie.write.schema` or in a file that the options of Apache Hudi's file-based schema provider
name.  Rows take its columns, types and nullability: what they lack becomes null.  What it has no place for is
refused, as a slip in it would lose a column.

Source: FilebasedSchemaProvider of Apache Hudi 0.15; FAQ, "What's Hudi's schema evolution story?".
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

from hudi_format.config import WriteConfig
from hudi_format.config.heeded import SOURCE_SCHEMA_FILE, TARGET_SCHEMA_FILE, WRITE_SCHEMA
from hudi_format.errors import (
    CorruptFileError,
    InvalidOptionError,
    MissingColumnError,
    MissingFileError,
    SchemaError,
    UnsupportedError,
)
from hudi_format.schema.arrow import equal_types
from hudi_format.schema.avro import from_avro
from hudi_format.schema.evolve import reconcile
from hudi_format.schema.meta_columns import without_meta
from hudi_format.schema.vector import own_types
from hudi_format.storage import Storage, folder_and_name, open_beside


@dataclass(frozen=True)
class GivenSchema:
    """The schema to take rows for, and the option that gives it."""

    schema: pa.Schema
    option: str
    text: str

    def check(self, incoming: pa.Schema, storage: Storage) -> None:
        """Refuse rows that do not have this schema.

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
    """The schema that the options give.

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
                f"{option} has columns of Apache Hudi's own types, which are read, not written: "
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
    """The option that counts, and its schema's text; None where none is given."""
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
                    f"there is no such file, which {option} names",
                    table=storage.uri,
                    file=path,
                    remedy="correct the path.",
                    option=option,
                ) from None
            except UnicodeDecodeError:
                raise InvalidOptionError(
                    f"{option} names a file that is no text",
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
            remedy="add it to the schema, or leave it out of the rows.",
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
    """Columns whose default is another than null."""
    root = json.loads(text)
    fields = (root[0] if isinstance(root, list) else root)["fields"]
    return {f["name"] for f in fields if f.get("default") is not None}


__all__ = ["GivenSchema", "given_schema"]
