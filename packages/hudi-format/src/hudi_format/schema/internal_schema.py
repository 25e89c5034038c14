"""Versioned schemas of schema on read: columns by id, through renames, drops and retypes.

Every column, at each level, has an id that it keeps for its life.  A file knows the names and types of the version
that was the newest when it was written; a reader that wants another version finds its columns by id.

Source: InternalSchema, SerDeHelper and InternalSchemaMerger of Apache Hudi 0.15; files of its ALTER TABLE.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.types as pt

from hudi_format._checks import loads
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.schema.avro import PRIMITIVES
from hudi_format.schema.casts import convert

Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)

MAX_DEPTH = 100
RECORD, ARRAY, MAP = "record", "array", "map"
_NOT_WANTED = ""  # no column has this name
_KEPT: Mapping[tuple[str, str], pa.DataType] = MappingProxyType(
    {("float", "double"): pa.float32(), ("string", "date"): pa.string()}
)


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """One column of a schema version.

    Attributes:
        kind: `record`, `array`, `map`, or the type's text, such as `long` and `decimal(12, 4)`.
        inside: fields of a record; the element of an array; key and value of a map.
        optional: whether it may be null.
        doc: its description, None for none.
    """

    id: int
    name: str
    kind: str
    inside: tuple[SchemaColumn, ...] = ()
    optional: bool = field(default=True, compare=False)
    doc: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The columns of a table from one instant on.

    Attributes:
        version: the instant as a number; 0 for what was there before the first ALTER.
        most: the greatest id that a column has or had, -1 where it is not said: ids are not given again.
    """

    version: int
    columns: tuple[SchemaColumn, ...]
    most: int = field(default=-1, compare=False)


def parse_version(text: str) -> SchemaVersion:
    """A version from the JSON text in a commit's `latest_schema`.

    Raises:
        CorruptFileError: another text.
    """
    return _version(_json(text))


def parse_versions(text: str | bytes) -> tuple[SchemaVersion, ...]:
    """All versions of a schemacommit file, oldest first.

    Raises:
        CorruptFileError: not JSON, or JSON of another shape.
    """
    try:
        root = _json(text.decode() if isinstance(text, bytes) else text)
    except UnicodeDecodeError as e:
        raise CorruptFileError("a schema history that is not UTF-8", offset=e.start) from None
    found = _get(root, "schemas", list)
    return tuple(sorted((_version(v) for v in found), key=lambda v: v.version))


def _json(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError) as e:
        raise CorruptFileError(f"a schema history that is not JSON: {e}") from None


def _get(node: Any, key: str, kind: type) -> Any:
    value = node.get(key) if isinstance(node, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise CorruptFileError(f"a schema version with {key!r} {str(value)[:40]!r}")
    return value


def _version(node: Any) -> SchemaVersion:
    version = _get(node, "version_id", int)
    most = node.get("max_column_id")
    return SchemaVersion(version, _fields(node, 0), most if isinstance(most, int) else -1)


def _fields(node: Any, depth: int) -> tuple[SchemaColumn, ...]:
    fields = _get(node, "fields", list)
    out = [
        _column(
            _get(f, "id", int), _get(f, "name", str), f.get("type"), depth, f.get("optional"), f.get("doc")
        )
        for f in fields
    ]
    if len({c.name for c in out}) < len(out) or len({c.id for c in out}) < len(out):
        raise CorruptFileError("a schema version with two columns of one name or id")
    return tuple(out)


def _column(
    id: int, name: str, kind: Any, depth: int, optional: object = True, doc: object = None
) -> SchemaColumn:
    may, text = optional is not False, doc if isinstance(doc, str) else None
    if depth > MAX_DEPTH:
        raise CorruptFileError("a schema version nested too deeply")
    if isinstance(kind, str):
        return SchemaColumn(id, name, kind, (), may, text)
    shape = _get(kind, "type", str)
    if shape == RECORD:
        return SchemaColumn(id, name, shape, _fields(kind, depth + 1), may, text)
    if shape == ARRAY:
        element = _column(
            _get(kind, "element_id", int),
            "element",
            kind.get("element"),
            depth + 1,
            kind.get("element_optional"),
        )
        return SchemaColumn(id, name, shape, (element,), may, text)
    if shape == MAP:
        parts = [
            _column(_get(kind, f"{n}_id", int), n, kind.get(n), depth + 1, kind.get(f"{n}_optional"))
            for n in ("key", "value")
        ]
        return SchemaColumn(id, name, shape, tuple(parts), may, text)
    raise CorruptFileError(f"a schema version with column {name} of unknown type {shape[:40]!r}")


@dataclass(frozen=True, slots=True)
class ColumnLocation:
    """Location of a wanted column in a file of another version.

    Attributes:
        name: the wanted name.
        source: the name in the file; None where the file is older than the column.
        inside: of nested columns, the place of each column inside; () where these are the same.
        kept: the file's type, where its values do not become the wanted ones as in other evolution: floats that are
            doubles now, text that is dates, fractions and text that are decimals; None elsewhere.
        hollow: of a record of which the file has nothing that is wanted, but has the record: name and type of some
            column that the file has inside of it; None for others.
    """

    name: str
    source: str | None
    inside: tuple[ColumnLocation, ...] = ()
    kept: pa.DataType | None = None
    hollow: tuple[str, pa.DataType] | None = None

    @property
    def same(self) -> bool:
        return self.source == self.name and not self.inside and self.kept is None

    def there(self, logged: bool) -> bool:
        """Whether the column's values are read.

        Of a hollow record that is whether it is null, which Apache Hudi looks at in log blocks only: there a record
        becomes one of nulls; in a base file it becomes null.
        """
        return self.source is not None and (logged or self.hollow is None)


@dataclass(frozen=True, slots=True)
class Reading:
    """Mapping from files of one schema version to another; picklable.

    Attributes:
        places: the columns that are not simply the file's column of that name.
    """

    places: Mapping[str, ColumnLocation]

    def stored(self, schema: pa.Schema, *, logged: bool = False) -> pa.Schema:
        """The wanted columns under the file's names, without those the file lacks.

        Args:
            logged: the file is a log block.
        """
        out = []
        for field_ in schema:
            place = self.places.get(field_.name)
            if place is None:
                out.append(field_)
            elif place.source is not None and place.there(logged):
                out.append(pa.field(place.source, _type(field_.type, place, logged, stored=True), True))
        return pa.schema(out)

    def columns(self, wanted: Iterable[str], stored: frozenset[str]) -> frozenset[str]:
        """Wanted columns that partial records of a file contain.

        A column that is younger than the file is none of them: its value is whatever another record says.
        """
        places = ((n, self.places.get(n)) for n in wanted)
        return frozenset(n for n, p in places if (n if p is None else p.source) in stored)

    def given(
        self, rows: Batch, schema: pa.Schema, *,
        logged: bool = False, logged_digits: bool = True, nested_digits: bool = False,
    ) -> Batch:  # fmt: skip
        """Rows of `stored(schema)` as rows of `schema`; columns that the file lacks are null.

        Floats become the doubles that print as they do (0.1, not 0.10000000149), as in Apache Hudi's reader of logs
        (HoodieAvroUtils) and its vectorised reader of base files.  By value have them base files in which a nested
        column changed, which that one does not read, before 1.2, and what 1.0 reads of logs.  Text becomes the dates
        that Java's Date.valueOf sees in it.

        Args:
            logged: the rows are those of a log block.
            logged_digits: whether those of log blocks keep their digits; not in tables of version 8.
            nested_digits: whether those of base files do though a nested column changed; in tables of version 9.

        Raises:
            SchemaError: a value that the wanted column cannot hold, such as a text that is no date; names the column.
        """
        nested = any(p.inside for p in self.places.values())
        float_digits = logged_digits if logged else nested_digits or not nested
        columns = []
        for field_ in schema:
            place = self.places.get(field_.name)
            if place is None:
                columns.append(rows.column(field_.name))
            elif place.source is None or not place.there(logged):
                columns.append(pa.nulls(rows.num_rows, field_.type))
            else:
                column = rows.column(place.source)
                if place.inside:
                    column = _relabeled(column, _type(field_.type, place, logged, stored=False))
                columns.append(
                    convert(column, field_.type, field_.name, float_digits=float_digits, retyped=True)
                )
        if not columns:
            return rows.select([])
        return type(rows).from_arrays(columns, schema=schema)


def _type(kind: pa.DataType, place: ColumnLocation, logged: bool, *, stored: bool) -> pa.DataType:
    """`kind` with the file's columns, under the file's names or the wanted ones."""
    if place.kept is not None:
        return place.kept
    if place.hollow is not None:
        name, there = place.hollow
        return pa.struct([pa.field(name if stored else _NOT_WANTED, there, True)])
    inside = place.inside
    if not inside:
        return kind
    if pt.is_struct(kind):
        return pa.struct(
            [
                pa.field(
                    (p.source or "") if stored else p.name,
                    _type(kind.field(p.name).type, p, logged, stored=stored),
                    True,
                )
                for p in inside
                if p.there(logged) and kind.get_field_index(p.name) >= 0
            ]
        )
    if pt.is_list(kind):
        item = kind.value_field
        return pa.list_(item.with_type(_type(item.type, inside[0], logged, stored=stored)))
    if pt.is_map(kind):
        item = kind.item_field
        return pa.map_(kind.key_type, item.with_type(_type(item.type, inside[1], logged, stored=stored)))
    return kind


class _RetypedMemory:
    """An array's memory under another type of the same layout."""

    def __init__(self, array: pa.Array, kind: pa.DataType) -> None:
        self._array, self._kind = array, kind

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._kind.__arrow_c_schema__(), self._array.__arrow_c_array__()[1]


def _relabeled(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The column with other inner field names; nothing is copied."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([pa.array(_RetypedMemory(c, kind)) for c in column.chunks], kind)
    return pa.array(_RetypedMemory(column, kind))


def reading(wanted: SchemaVersion, stored: SchemaVersion) -> Reading | None:
    """The mapping from files of `stored` to `wanted`; None where names and places agree.

    Raises:
        UnsupportedError: a list or map of records of which nothing is left that the file has; a record of which
            nothing is left but nested columns were there.
    """
    if wanted == stored:
        return None
    places = _places(wanted.columns, stored.columns, "")
    changed = {p.name: p for p in places if not p.same}
    # A dropped column's name is free: what a file has under it is no column that is wanted.
    return Reading(changed) if changed else None


def _places(
    wanted: Iterable[SchemaColumn], stored: Iterable[SchemaColumn], path: str
) -> list[ColumnLocation]:
    there = {c.id: c for c in stored}
    return [_place(c, there.get(c.id), path) for c in wanted]


def _place(wanted: SchemaColumn, stored: SchemaColumn | None, path: str) -> ColumnLocation:
    if stored is None:
        return ColumnLocation(wanted.name, None)
    if not wanted.inside or wanted.kind != stored.kind:
        return ColumnLocation(wanted.name, stored.name, kept=_kept(stored.kind, wanted.kind))
    full = f"{path}{wanted.name}"
    if wanted.kind == RECORD:
        inside = _places(wanted.inside, stored.inside, f"{full}.")
        if all(p.source is None for p in inside):
            # A column that tells whether the record around it is null.
            some = next(((c.name, PRIMITIVES[c.kind]) for c in stored.inside if c.kind in PRIMITIVES), None)
            if some is None:
                raise _unreadable(full, "its current fields, and no flat one")
            return ColumnLocation(wanted.name, stored.name, tuple(inside), hollow=some)
    else:  # an element, or a key and a value: there is one of each, whatever its id
        pairs = zip(wanted.inside, stored.inside, strict=True)
        inside = [_place(w, s, f"{full}.") for w, s in pairs]
        if any(p.hollow is not None for p in inside):
            # How many elements there are cannot be read from a base file without a column of theirs.
            raise _unreadable(full, "its elements' current fields")
    changed = any(not p.same for p in inside)
    return ColumnLocation(wanted.name, stored.name, tuple(inside) if changed else ())


def _unreadable(column: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"column {column}: an older file has none of {what}",
        remedy="read the table as of an older instant, or rewrite the files with Apache Hudi (clustering).",
        column=column,
    )


def _kept(stored: str, wanted: str) -> pa.DataType | None:
    if wanted.startswith("decimal") and stored in ("float", "double", "string"):
        return PRIMITIVES[stored]  # rounded, which nothing else does
    return _KEPT.get((stored, wanted))


@dataclass(frozen=True, slots=True)
class ReadEvolution:
    """The wanted schema version, and the version of each instant's files; picklable.

    Attributes:
        wanted: the version of the result.
        versions: all versions, oldest first.
        of_instant: the version that an instant's own metadata names, by instant.
    """

    wanted: SchemaVersion
    versions: tuple[SchemaVersion, ...]
    of_instant: Mapping[str, int] = field(default_factory=dict)

    def version_of(self, instant: str) -> SchemaVersion:
        """The schema version of an instant's files and blocks.

        An instant whose metadata does not say has the newest version that is not younger than it; one that is
        older than all has the oldest.
        """
        named = self.of_instant.get(instant)
        numbers = [v.version for v in self.versions]
        if named is None:
            digits = instant[:17]
            named = int(digits) if digits.isdecimal() else 0
        return self.versions[max(bisect_right(numbers, named) - 1, 0)]

    def reading(self, instant: str) -> Reading | None:
        """The mapping for an instant's files; None where none is needed.

        Raises:
            UnsupportedError: see `reading`.
        """
        return reading(self.wanted, self.version_of(instant))
