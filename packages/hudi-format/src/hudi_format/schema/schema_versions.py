"""New versions of a schema history: column ids of a schema, and changes of its columns.

Ids travel in the metadata of Arrow fields: whatever becomes of a field, its column stays the same one.  A field without
an id is a new column and gets the next number that no column ever had.

Source: InternalSchema, AvroInternalSchemaConverter, SerDeHelper and TableChanges of Apache Hudi 0.15.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from hudi_format._checks import loads
from hudi_format.errors import CorruptFileError, MissingColumnError, SchemaError, UnsupportedError
from hudi_format.schema.arrow import is_avro_name
from hudi_format.schema.evolution import reconcile
from hudi_format.schema.internal_schema import ARRAY, MAP, RECORD, SchemaColumn, SchemaVersion

_ID, _KIND, _DOC = b"column id", b"column kind", b"column doc"
FIRST = 0
"""Number of the version that a table had before its first change."""

_KINDS: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.time32("ms"): "time",
    pa.time64("us"): "time",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("ms", "UTC"): "timestamp",
}


def numbered(schema: pa.Schema, version: SchemaVersion | None) -> pa.Schema:
    """The schema with the ids that a version has for columns of these names."""
    known = {} if version is None else {c.name: c for c in version.columns}
    return pa.schema([_numbered(f, known.get(f.name)) for f in schema])


def _numbered(field_: pa.Field, column: SchemaColumn | None) -> pa.Field:
    if column is None:
        return field_
    kind = field_.type
    notes = {_ID: str(column.id), _KIND: f"{kind}|{column.kind}"}
    if column.doc is not None:
        notes[_DOC] = column.doc
    if pt.is_struct(kind) and column.kind == RECORD:
        inside = {c.name: c for c in column.inside}
        kind = pa.struct([_numbered(f, inside.get(f.name)) for f in kind])
    elif pt.is_list(kind) and column.kind == ARRAY:
        kind = pa.list_(_numbered(kind.value_field, column.inside[0]))
    elif pt.is_map(kind) and column.kind == MAP:
        key, value = column.inside
        kind = pa.map_(_numbered(kind.key_field, key), _numbered(kind.item_field, value))
    return field_.with_type(kind).with_metadata(notes)


def without_ids(schema: pa.Schema) -> pa.Schema:
    """The schema without ids."""
    return pa.schema([_plain(f) for f in schema])


def _plain(field_: pa.Field) -> pa.Field:
    kind = field_.type
    if pt.is_struct(kind):
        kind = pa.struct([_plain(f) for f in kind])
    elif pt.is_list(kind):
        kind = pa.list_(_plain(kind.value_field))
    elif pt.is_map(kind):
        kind = pa.map_(_plain(kind.key_field), _plain(kind.item_field))
    return pa.field(field_.name, kind, field_.nullable)


def version_of(schema: pa.Schema, number: int, most: int = -1) -> SchemaVersion:
    """The version that a numbered schema is.

    Args:
        number: of the version.
        most: the greatest id that any column of the table has or had.

    Raises:
        UnsupportedError: a column of a type that Apache Hudi's history has no name for.
    """
    ids = _Ids(max(most, *_given(schema), -1))
    columns = _columns(list(schema), ids, "")
    return SchemaVersion(number, columns, ids.most)


@dataclass
class _Ids:
    most: int

    def of(self, field_: pa.Field) -> int:
        given = (field_.metadata or {}).get(_ID)
        if given is not None:
            return int(given)
        self.most += 1
        return self.most


def _given(fields: Iterable[pa.Field]) -> Iterable[int]:
    yield -1
    for f in fields:
        given = (f.metadata or {}).get(_ID)
        if given is not None:
            yield int(given)
        if pt.is_nested(f.type):
            yield from _given(_inside(f.type))


def _inside(kind: pa.DataType) -> list[pa.Field]:
    if pt.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(n) for n in range(kind.num_fields)]


def _columns(fields: Sequence[pa.Field], ids: _Ids, path: str) -> tuple[SchemaColumn, ...]:
    # The fields of one record are numbered before what is inside of them, as Apache Hudi does.
    pairs = [(ids.of(f), f) for f in fields]
    return tuple(_column(id, f.name, f, ids, path) for id, f in pairs)


def _column(id: int, name: str, field_: pa.Field, ids: _Ids, path: str) -> SchemaColumn:
    kind, full = field_.type, f"{path}{name}"
    doc = (field_.metadata or {}).get(_DOC)
    rest = (field_.nullable, None if doc is None else doc.decode())
    if pt.is_struct(kind):
        return SchemaColumn(id, name, RECORD, _columns(list(kind), ids, f"{full}."), *rest)
    if pt.is_list(kind) or pt.is_map(kind):
        names = ("key", "value") if pt.is_map(kind) else ("element",)
        pairs = [(ids.of(f), n, f) for n, f in zip(names, _inside(kind), strict=True)]
        inside = tuple(_column(i, n, f, ids, f"{full}.") for i, n, f in pairs)
        return SchemaColumn(id, name, MAP if pt.is_map(kind) else ARRAY, inside, *rest)
    return SchemaColumn(id, name, _kind_of(field_, full), (), *rest)


def _kind_of(field_: pa.Field, path: str) -> str:
    kind = field_.type
    was, _, known = (field_.metadata or {}).get(_KIND, b"").decode().rpartition("|")
    if known and was == str(kind):  # such as uuid, which is text to Arrow
        return str(known)
    if kind in _KINDS:
        return str(_KINDS[kind])
    if pt.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pt.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    raise UnsupportedError(
        f"column {path} has type {kind}, for which Apache Hudi's schema history has no name",
        remedy="write the column with another type first: timestamps with the time zone UTC.",
        column=path,
    )


def node_of(version: SchemaVersion) -> dict[str, Any]:
    """JSON object of a version, as in a commit's `latest_schema`."""
    return {
        "max_column_id": version.most,
        "version_id": version.version,
        "type": RECORD,
        "fields": [_field_node(c) for c in version.columns],
    }


def _field_node(column: SchemaColumn) -> dict[str, Any]:
    out = {"id": column.id, "name": column.name, "optional": column.optional, "type": _type_node(column)}
    return out if column.doc is None else {**out, "doc": column.doc}


def _type_node(column: SchemaColumn) -> Any:
    if column.kind == RECORD:
        return {"type": RECORD, "fields": [_field_node(c) for c in column.inside]}
    if column.kind == ARRAY:
        return {"type": ARRAY, **_part("element", column.inside[0])}
    if column.kind == MAP:
        key, value = (_part(n, c) for n, c in zip(("key", "value"), column.inside, strict=True))
        return {"type": MAP, **key, **value}
    return column.kind


def _part(name: str, column: SchemaColumn) -> dict[str, Any]:
    out = {f"{name}_id": column.id, name: _type_node(column)}
    return out if name == "key" else {**out, f"{name}_optional": column.optional}


def latest_text(version: SchemaVersion) -> str:
    """Text of a commit's `latest_schema`."""
    return json.dumps(node_of(version), separators=(",", ":"), ensure_ascii=False)


def history_text(older: str | SchemaVersion, newest: SchemaVersion) -> str:
    """Text of a schemacommit file: the newest version before all that were.

    Args:
        older: text of the file before, or the first version.

    Raises:
        CorruptFileError: a text of another shape.
    """
    if isinstance(older, SchemaVersion):
        nodes = [node_of(older)]
    else:
        try:
            nodes = loads(older)["schemas"]
            nodes = [n for n in nodes if n["version_id"] != newest.version]
        except (ValueError, LookupError, TypeError) as e:
            raise CorruptFileError(f"a schema history of another form: {e}") from None
    return json.dumps({"schemas": [node_of(newest), *nodes]}, separators=(",", ":"), ensure_ascii=False)


def same_columns(one: SchemaVersion, other: SchemaVersion) -> bool:
    """Whether two versions say the same of every column, whatever their numbers."""
    return bool(node_of(one)["fields"] == node_of(other)["fields"])


# Changes of a numbered schema, column by column.


@dataclass
class SchemaEdit:
    """Changes of a table's columns, one after the other; columns inside of records by dot path.

    Attributes:
        schema: numbered, without meta columns; as it is after the changes.
        fixed: columns that make keys, partition paths or the order of records: they stay as they are.
    """

    schema: pa.Schema
    fixed: frozenset[str] = field(default_factory=frozenset)

    def add(self, path: str, kind: pa.DataType, *, after: str | None = None, first: bool = False) -> None:
        """Add a column, null in all rows that are there."""

        def act(fields: list[pa.Field], name: str) -> list[pa.Field]:
            _refuse_taken(fields, name, path)
            return _placed(fields, pa.field(name, kind), after, first, path)

        _refuse_name(path.rpartition(".")[2], path, path, "give another one")
        self._edit(path, act)

    def rename(self, path: str, name: str) -> None:
        """Give a column another name; its values stay."""

        def act(fields: list[pa.Field], old: str) -> list[pa.Field]:
            at = _index(fields, old, path)
            if old == name:
                raise SchemaError(
                    f"column {path} has that name already", remedy="give another name.", column=path
                )
            _refuse_taken([f for n, f in enumerate(fields) if n != at], name, name)
            return [f.with_name(name) if n == at else f for n, f in enumerate(fields)]

        _refuse_name(name, name, path, "give the last part of its path alone")
        self._refuse_fixed(path, "renamed")
        self._edit(path, act)

    def drop(self, path: str) -> None:
        """Take a column out of the schema; its values stay in files until these are cleaned."""

        def act(fields: list[pa.Field], name: str) -> list[pa.Field]:
            at = _index(fields, name, path)
            if len(fields) == 1:
                raise SchemaError(f"{path} is the only column there", remedy="keep it.", column=path)
            return [f for n, f in enumerate(fields) if n != at]

        self._refuse_fixed(path, "dropped")
        self._edit(path, act)

    def widen(self, path: str, kind: pa.DataType) -> None:
        """Give a column a type that holds all of its values."""

        def act(fields: list[pa.Field], name: str) -> list[pa.Field]:
            at = _index(fields, name, path)
            old = fields[at]
            if old.type == kind:
                raise SchemaError(
                    f"column {path} has type {kind} already",
                    remedy="omit this change.",
                    column=path,
                    source=str(old.type),
                    target=str(kind),
                )
            if pt.is_nested(old.type) or not _widens(old.type, kind):
                raise SchemaError(
                    f"column {path} has type {old.type}, which does not widen to {kind}",
                    remedy="whole numbers and fractions widen to larger ones of their kind, and all of them to text.",
                    column=path,
                    source=str(old.type),
                    target=str(kind),
                )
            return [f.with_type(kind) if n == at else f for n, f in enumerate(fields)]

        self._refuse_fixed(path, "widened")
        self._edit(path, act)

    def move(self, path: str, *, after: str | None = None, first: bool = False) -> None:
        """Put a column behind another one of its record, or first."""

        def act(fields: list[pa.Field], name: str) -> list[pa.Field]:
            at = _index(fields, name, path)
            rest = [f for n, f in enumerate(fields) if n != at]
            return _placed(rest, fields[at], after, first, path)

        if first == (after is not None):
            raise SchemaError(
                f"column {path}: one place is needed", remedy="give `after` or `first`.", column=path
            )
        self._edit(path, act)

    def _refuse_fixed(self, path: str, what: str) -> None:
        root = next((n for n in self.fixed if n == path or n.startswith(f"{path}.")), None)
        if root is not None:
            raise SchemaError(
                f"column {path} makes keys, partition paths or the order of records, and cannot be {what}",
                remedy="write the rows into a new table that has it as you want it.",
                column=path,
            )

    def _edit(self, path: str, act: Callable[[list[pa.Field], str], list[pa.Field]]) -> None:
        self.schema = pa.schema(_edited(list(self.schema), path.split("."), act, path))


def _edited(
    fields: list[pa.Field],
    parts: Sequence[str],
    act: Callable[[list[pa.Field], str], list[pa.Field]],
    path: str,
) -> list[pa.Field]:
    name, *rest = parts
    if not rest:
        return act(fields, name)
    at = _index(fields, name, path)
    fields[at] = fields[at].with_type(_edited_type(fields[at].type, rest, act, path))
    return fields


def _edited_type(
    kind: pa.DataType,
    parts: Sequence[str],
    act: Callable[[list[pa.Field], str], list[pa.Field]],
    path: str,
) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct(_edited(list(kind), parts, act, path))
    name, *rest = parts
    if rest and pt.is_list(kind) and name == "element":
        item = kind.value_field
        return pa.list_(item.with_type(_edited_type(item.type, rest, act, path)))
    if rest and pt.is_map(kind) and name == "value":
        item = kind.item_field
        return pa.map_(kind.key_field, item.with_type(_edited_type(item.type, rest, act, path)))
    raise SchemaError(
        f"{path} is no column of a record",
        remedy="name columns of a record by `record.column`, of the records in a list by `list.element.column`, in a "
        "map by `map.value.column`.",
        column=path,
    )


def _index(fields: Sequence[pa.Field], name: str, path: str) -> int:
    for n, f in enumerate(fields):
        if f.name == name:
            return n
    names = [f.name for f in fields]
    raise MissingColumnError(
        f"there is no column {path!r}", remedy=f"the columns there are {', '.join(names)}.", column=path
    )


def _refuse_name(name: str, shown: str, path: str, remedy: str) -> None:
    if not is_avro_name(name) or name.startswith("_hoodie_"):
        raise SchemaError(
            f"{shown!r} is no name for a column",
            remedy=f"{remedy}: letters, digits and underscores, no digit first.",
            column=path,
        )


def _refuse_taken(fields: Iterable[pa.Field], name: str, path: str) -> None:
    # Spark does not tell names apart by case.
    taken = next((f.name for f in fields if f.name.lower() == name.lower()), None)
    if taken is not None:
        raise SchemaError(
            f"there is a column {taken} already", remedy=f"give another name than {name}.", column=path
        )


def _placed(
    fields: list[pa.Field], new: pa.Field, after: str | None, first: bool, path: str
) -> list[pa.Field]:
    if first and after is not None:
        raise SchemaError(
            f"column {path}: two places are given", remedy="give `after` or `first`.", column=path
        )
    at = 0 if first else len(fields)
    if after is not None:
        at = _index(fields, after.rpartition(".")[2], after) + 1
    return [*fields[:at], new, *fields[at:]]


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    if pt.is_decimal(old) and pt.is_decimal(new):
        whole = new.precision - new.scale >= old.precision - old.scale
        return bool(old != new and whole and new.scale >= old.scale)
    try:
        merged = reconcile(pa.schema([("c", new)]), pa.schema([("c", old)]), set_null_for_missing=True)
    except SchemaError:
        return False
    return bool(old != new and merged.field("c").type == new)
