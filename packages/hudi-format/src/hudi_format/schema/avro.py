"""Conversion between Avro schemas, as stored in commits and footers, and Arrow schemas.

Source: Hudi format, "Avro and Parquet conventions"; names and order of attributes as in files of Apache
Hudi 0.15 (Spark's SchemaConverters), so that a schema that went through Arrow is the same text again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from hudi_format._checks import loads
from hudi_format.errors import CorruptFileError, SchemaError, UnsupportedError
from hudi_format.schema.extension_types import vector_type
from hudi_format.schema.meta_fields import META_COLUMNS

Json: TypeAlias = Any

PRIMITIVES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL_LONGS: dict[str, pa.DataType] = {
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
}
# Avro's types that tables are not given columns of, and what records of other writers decode to.
_WIDE: dict[tuple[str, str], pa.DataType] = {
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
MAX_TYPES = 200_000  # types that name each other can unfold to any number
MAX_LEVELS = 100  # of types inside types, also by name: whoever walks over columns calls itself for each
DEFAULT = b"avro.default"
"""Key of a field's metadata for the default, as JSON, of a field of a record that must not be null."""
MEMBER = "member"
_MEMBER_NAME = re.compile(f"{MEMBER}[0-9]{{1,9}}")
_NAMES: dict[pa.DataType, str] = {kind: name for name, kind in PRIMITIVES.items()}


def decimal_bytes(precision: int) -> int:
    """Minimum number of bytes for a signed decimal of this precision."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


def record_name(table_name: str) -> tuple[str, str]:
    """Name and namespace of a table's Avro record.

    Source: HoodieAvroUtils.sanitizeName of 0.15: two underscores for each character that Avro forbids.
    """
    name = re.sub(r"\A[^A-Za-z_]", "__", table_name)
    name = re.sub(r"[^A-Za-z0-9_]", "__", name)
    return f"{name}_record", f"hoodie.{name}"


def to_avro(schema: pa.Schema, table_name: str) -> str:
    """The Avro schema's JSON text, without spaces, as Apache Hudi writes it.

    Args:
        schema: types as they are stored (`normalize_schema`, `from_avro`); meta columns may be among them.

    Raises:
        SchemaError: a type that has no Avro form.
    """
    name, namespace = record_name(table_name)
    record = {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": [_field(f, f"{namespace}.{name}", f.name) for f in schema],
    }
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def _field(field: pa.Field, namespace: str, path: str) -> dict[str, Json]:
    out: dict[str, Json] = {"name": field.name, "type": _nullable(field, field.name, namespace, path)}
    if field.name in META_COLUMNS and path == field.name:
        out["doc"] = ""
    if field.nullable:
        out["default"] = None
    elif (default := (field.metadata or {}).get(DEFAULT)) is not None:
        out["default"] = json.loads(default)
    return out


def _nullable(field: pa.Field, name: str, namespace: str, path: str) -> Json:
    kind = _avro_type(field.type, name, namespace, path)
    return ["null", kind] if field.nullable else kind


def _avro_type(kind: pa.DataType, name: str, namespace: str, path: str) -> Json:
    """Avro type of an Arrow type.

    `name`, `namespace`: of the nearest field above, which records and fixed types are named after.
    """
    # A nested type is none of these, and to look it up takes as long as it is deep.
    if not pt.is_nested(kind) and kind in _NAMES:
        return _NAMES[kind]
    if pt.is_date32(kind):
        return {"type": "int", "logicalType": "date"}
    if pt.is_timestamp(kind) and kind.unit in ("us", "ms"):
        unit = "micros" if kind.unit == "us" else "millis"
        return {"type": "long", "logicalType": f"timestamp-{unit}" if kind.tz else f"local-timestamp-{unit}"}
    if pt.is_decimal128(kind):
        fixed = {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}"}
        size = decimal_bytes(kind.precision)
        return {
            **fixed, "size": size, "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale,
        }  # fmt: skip
    if pt.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": kind.byte_width}
    if pt.is_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field, name, namespace, f"{path}.element")}
    if pt.is_map(kind) and pt.is_string(kind.key_type):
        return {"type": "map", "values": _nullable(kind.item_field, name, namespace, f"{path}.value")}
    if pt.is_struct(kind) and kind.num_fields:
        return {
            "type": "record",
            "name": name,
            "namespace": namespace,
            "fields": [_field(f, f"{namespace}.{name}", f"{path}.{f.name}") for f in kind],
        }
    raise SchemaError(f"column {path} has type {kind}, which has no Avro type", column=path, source=str(kind))


def from_avro(text: str, *, times_as_numbers: bool = False) -> pa.Schema:
    """The Arrow schema of an Avro record schema of any writer.

    Unions may name null first or last; decimals may be on fixed or on bytes; enumerations and UUIDs are text; Apache
    Hudi's vectors are lists of numbers, as it reads them (`hudi_format.schema.extension_types`), and no longer vectors.
    A union of several types is a struct with a field for each, `member0`, `member1` and so on in the union's order
    without null, of which one is not null; but one of int and long is long, and one of float and double is double
    (Spark's SchemaConverters; base files have the struct for these too).  Defaults of fields of records that must not
    be null are kept in their metadata (`DEFAULT`).

    Args:
        times_as_numbers: times of day and nanoseconds are numbers, as Spark has them.

    Raises:
        CorruptFileError: the text is no Avro schema, or not that of a record.
        SchemaError: a type that Arrow columns of a table cannot have; names the column.
        UnsupportedError: more than `MAX_TYPES` types.
    """
    return (_known if len(text) <= _MOST_KEPT else _schema_of)(text, times_as_numbers)


def _schema_of(text: str, times_as_numbers: bool) -> pa.Schema:
    root = record_node(schema_json(text))
    try:
        kind = _Reader(times_as_numbers).record(root, "", "")
    except RecursionError as e:
        raise CorruptFileError("an Avro schema nested too deeply") from e
    return pa.schema(list(kind))


# A table's schema stands in each of its commits and in each footer.
_KEPT, _MOST_KEPT = 64, 65_536
_known = lru_cache(maxsize=_KEPT)(_schema_of)


def schema_json(text: str) -> Json:
    """A schema's JSON, checked for names that can be written.

    Raises:
        CorruptFileError: no JSON, JSON that is nested too deeply, or half a character in one of its texts.
    """
    try:
        return loads(text)
    except (ValueError, RecursionError) as e:
        raise CorruptFileError(f"not an Avro schema: {e}") from e


def record_node(root: Json) -> Mapping[str, Json]:
    """A schema's JSON, which is that of a record.

    Raises:
        CorruptFileError: of another type.
    """
    root = root[0] if isinstance(root, list) and len(root) == 1 else root
    if not isinstance(root, Mapping) or root.get("type") not in ("record", "error"):
        raise CorruptFileError("not the Avro schema of a record")
    return root


def record_fields(node: Mapping[str, Json], where: str) -> list[Mapping[str, Json]]:
    """The fields in a record's JSON, each with a name of its own and a type.

    Args:
        where: the record's place, for messages.

    Raises:
        CorruptFileError: others.
    """
    fields = node.get("fields")
    if not isinstance(fields, list):
        raise CorruptFileError(f"an Avro record without a list of fields ({where})")
    names = set()
    for f in fields:
        if not isinstance(f, Mapping) or not isinstance(f.get("name"), str) or "type" not in f:
            raise CorruptFileError(f"an Avro field without a name or a type ({where})")
        if f["name"] in names:
            raise CorruptFileError(f"an Avro record with two fields {f['name']} ({where})")
        names.add(f["name"])
    return fields


class _Reader:
    """Converts one schema's JSON to Arrow types; remembers its named types."""

    def __init__(self, times_as_numbers: bool = False) -> None:
        self._times_as_numbers = times_as_numbers
        self._named: dict[str, pa.DataType | None] = {}  # None: being defined
        self._sizes: dict[str, int] = {}  # types in each of them
        self._heights: dict[str, int] = {}  # levels of types in each of them
        self._count = 0
        self._level = self._deepest = 0

    def record(self, node: Mapping[str, Json], namespace: str, path: str) -> pa.StructType:
        full, inner = full_name(node, namespace, path)
        self._named[full] = None
        before, deepest, self._deepest = self._count, self._deepest, self._level
        out: list[pa.Field] = []
        for f in record_fields(node, path or full):
            name = f["name"]
            kind, nullable = self._optional(f["type"], inner, f"{path}.{name}" if path else name)
            # Of the table's own columns null is given where a file lacks one; within records null may not be allowed.
            kept = path and not nullable and f.get("default") is not None
            out.append(pa.field(name, kind, nullable, {DEFAULT: json.dumps(f["default"])} if kept else None))
        struct = pa.struct(out)
        self._named[full] = struct
        self._sizes[full] = self._count - before
        self._heights[full] = self._deepest - self._level
        self._deepest = max(deepest, self._deepest)
        return struct

    def _optional(self, node: Json, namespace: str, path: str) -> tuple[pa.DataType, bool]:
        if not isinstance(node, list):
            return self._type(node, namespace, path), node == "null"
        branches = [b for b in node if b != "null"]
        nullable = len(branches) < len(node)
        if len(branches) == 1:
            return self._type(branches[0], namespace, path), nullable
        number = union_number([b.get("type") if isinstance(b, dict) else b for b in branches])
        if number is not None:
            return PRIMITIVES[number], nullable
        if branches:
            parts = [self._type(b, namespace, f"{path}.{MEMBER}{n}") for n, b in enumerate(branches)]
            fields = [pa.field(f"{MEMBER}{n}", kind) for n, kind in enumerate(parts)]
            return pa.struct(fields), nullable
        raise SchemaError(f"column {path} is a union of null only, which cannot be a column", column=path)

    def _add(self, types: int) -> None:
        self._count += types
        if self._count > MAX_TYPES:
            raise UnsupportedError(f"an Avro schema of more than {MAX_TYPES} types")

    def _reach(self, levels: int) -> None:
        self._deepest = max(self._deepest, self._level + levels)
        if self._deepest > MAX_LEVELS:
            raise CorruptFileError("an Avro schema nested too deeply")

    def _type(self, node: Json, namespace: str, path: str) -> pa.DataType:
        self._add(1)
        self._level += 1
        self._reach(0)
        found = self._found(node, namespace, path)
        self._level -= 1
        return found

    def _found(self, node: Json, namespace: str, path: str) -> pa.DataType:
        if isinstance(node, str):
            return self._by_name(node, namespace, path)
        if not isinstance(node, dict):
            raise CorruptFileError(f"an Avro type that is neither a name nor an object ({path})")
        kind = node.get("type")
        if isinstance(kind, (dict, list)):  # {"type": {"type": "long", ...}}: one level too many, allowed
            return self._optional(kind, namespace, path)[0]
        if kind in ("record", "error"):
            return self.record(node, namespace, path)
        if kind == "array":
            inner, nullable = self._optional(node.get("items"), namespace, f"{path}.element")
            return pa.list_(pa.field("element", inner, nullable))
        if kind == "map":
            inner, nullable = self._optional(node.get("values"), namespace, f"{path}.value")
            return pa.map_(pa.string(), pa.field("value", inner, nullable))
        if kind == "enum":
            self._named[full_name(node, namespace, path)[0]] = pa.string()
            return pa.string()
        if kind == "fixed":
            fixed = vector_type(node, path) or leaf_type(node, path)
            self._named[full_name(node, namespace, path)[0]] = fixed
            return fixed
        if not isinstance(kind, str):
            raise CorruptFileError(f"an Avro type without a kind ({path})")
        if self._times_as_numbers and (kind, node.get("logicalType")) in _WIDE:
            return PRIMITIVES[kind]
        return leaf_type(node, path) if kind in PRIMITIVES else self._by_name(kind, namespace, path)

    def _by_name(self, name: str, namespace: str, path: str) -> pa.DataType:
        if name in PRIMITIVES:
            return PRIMITIVES[name]
        if name == "null":
            raise SchemaError(f"column {path} has Avro's type null, which cannot be a column", column=path)
        full = qualified(name, namespace)
        if full not in self._named:
            full = name
        if full not in self._named:
            raise CorruptFileError(f"an undefined Avro type {name!r} ({path})")
        known = self._named[full]
        if known is None:
            raise SchemaError(f"column {path} has a recursive type, which cannot be a column", column=path)
        self._add(self._sizes.get(full, 0))
        self._reach(self._heights.get(full, 0))
        return known


def union_number(kinds: Sequence[Json]) -> str | None:
    """Number type that a union of two number types is read as; None for other unions."""
    if len(kinds) == 2 and all(isinstance(k, str) for k in kinds):
        for number, pair in (("long", {"int", "long"}), ("double", {"float", "double"})):
            if set(kinds) == pair:
                return number
    return None


def is_union(names: Sequence[str]) -> bool:
    """Whether a struct's field names are those of a union's types: all, or the wanted ones."""
    return bool(names) and all(_MEMBER_NAME.fullmatch(n) is not None for n in names)


def leaf_type(node: Mapping[str, Json], path: str, *, wide: bool = False) -> pa.DataType:
    """The Arrow type of a primitive, fixed or enumeration Avro type.

    Args:
        node: its JSON object; annotations that Avro asks to ignore are ignored.
        path: the column's name, for error messages.
        wide: give times of day, nanoseconds and decimals of 39 to 76 digits a type too.

    Raises:
        CorruptFileError: sizes or digits that no type has.
        SchemaError: no Arrow type for it.
    """
    kind, logical = node["type"], node.get("logicalType")
    if kind == "enum":
        return pa.string()
    if kind == "fixed":
        size = node.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 1 << 31:
            raise CorruptFileError(f"an Avro fixed type of size {size!r} ({path})")
        return _decimal(node, path, wide) if logical == "decimal" else pa.binary(size)
    if not isinstance(logical, str):
        return PRIMITIVES[kind]
    if (kind, logical) in _WIDE:
        if wide:
            return _WIDE[kind, logical]
        raise SchemaError(
            f"column {path} has Avro's type {logical}, which is not supported",
            remedy="use the column as long or text in the job that writes the table.",
            column=path,
        )
    if kind == "int" and logical == "date":
        return pa.date32()
    if kind == "long":
        return _LOGICAL_LONGS.get(logical, pa.int64())
    if kind == "bytes" and logical == "decimal":
        return _decimal(node, path, wide)
    return PRIMITIVES[kind]


def full_name(node: Mapping[str, Json], namespace: str, path: str) -> tuple[str, str]:
    """Full name of a named type, and the namespace of its members.

    Raises:
        CorruptFileError: it has no name.
    """
    name, own = node.get("name"), node.get("namespace", namespace)
    if not isinstance(name, str) or not isinstance(own, str):
        raise CorruptFileError(f"an Avro {node.get('type')} without a name ({path})")
    full = qualified(name, own)
    return full, full.rpartition(".")[0]


def qualified(name: str, namespace: str) -> str:
    """The full name of a name in a namespace."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _decimal(node: Mapping[str, Json], path: str, wide: bool) -> pa.DataType:
    precision, scale = node.get("precision"), node.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
        raise CorruptFileError(f"an Avro decimal of precision {precision!r} and scale {scale!r} ({path})")
    most = 76 if wide else 38
    if not 1 <= precision <= most:
        raise SchemaError(
            f"column {path} is a decimal of {precision} digits; at most {most} are supported",
            column=path,
            source="decimal",
        )
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
