"""Avro schemas as a graph of types, for the codec to walk.

Names of types only tie a use to its definition; they are never compared between two schemas, because Apache
Hudi's writers name the same record differently.  A type that holds itself is a cycle in the graph.

Source: Avro 1.11 specification, "Schema Declaration", "Names" and "Aliases".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from hudi_format.errors import CorruptFileError
from hudi_format.schema.avro import full_name, leaf_type, qualified, record_fields, record_node, schema_json

Json: TypeAlias = Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MAX_DEPTH = 200  # of types inside types; the stack of the loops that run over values is as deep


class Missing:
    """Marker for a field without a default (None is a default of its own)."""


MISSING = Missing()


@dataclass(slots=True, eq=False)
class AvroType:
    """One type of a schema.

    Attributes:
        kind: Avro's word for it; `union` for a list of types.
        node: its JSON object, for sizes and annotations.
        items: what an array or map holds.
        fields: of a record.
        branches: of a union.
        symbols: of an enumeration; `default` is the one that stands for unknown ones, or None.
        least: the fewest bytes that a value takes.
        exact: the bytes that every value takes; None where they differ.
    """

    kind: str
    node: Mapping[str, Json]
    items: AvroType | None = None
    fields: list[AvroField] = field(default_factory=list)
    branches: list[AvroType] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    default: str | None = None
    least: int = 0
    exact: int | None = None

    @property
    def inside(self) -> AvroType:
        """Element type of an array or map."""
        if self.items is None:
            raise ValueError(f"Avro's type {self.kind} has no element type")
        return self.items

    def annotated(self) -> bool:
        """Whether the logical type changes the meaning of the values."""
        return self.kind not in ("string", "enum") and self.arrow("") != _PLAIN.get(
            self.kind, pa.binary(self.node["size"]) if self.kind == "fixed" else None
        )

    def arrow(self, path: str) -> pa.DataType:
        """Arrow type of a leaf type; see `leaf_type`."""
        return leaf_type(self.node, path, wide=True)


_PLAIN = {k: leaf_type({"type": k}, "") for k in PRIMITIVES if k != "null"}


@dataclass(slots=True, eq=False)
class AvroField:
    """A field of a record; `default` is JSON, or MISSING."""

    name: str
    type: AvroType
    aliases: tuple[str, ...]
    default: Json


def parse(schema: str | Mapping[str, Json]) -> AvroType:
    """The record type that a schema describes.

    Raises:
        CorruptFileError: no Avro schema, or not that of a record.
    """
    root = record_node(schema_json(schema) if isinstance(schema, str) else schema)
    parser = _SchemaParser()
    found = parser.type(root, "", "", 0)
    _measure(parser.all)
    return found


class _SchemaParser:
    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}
        self.all: list[AvroType] = []

    def _new(self, kind: str, node: Mapping[str, Json]) -> AvroType:
        out = AvroType(kind, node)
        self.all.append(out)
        return out

    def type(self, node: Json, namespace: str, path: str, depth: int) -> AvroType:
        if depth > MAX_DEPTH:
            raise CorruptFileError("an Avro schema nested too deeply")
        if isinstance(node, str):
            return self._by_name(node, namespace, path)
        if isinstance(node, list):
            return self._union(node, namespace, path, depth)
        if not isinstance(node, Mapping):
            raise CorruptFileError(f"an Avro type that is neither a name nor an object ({path})")
        kind = node.get("type")
        if isinstance(kind, (Mapping, list)):  # {"type": {"type": "long", ...}}: one level too many, allowed
            return self.type(kind, namespace, path, depth + 1)
        if kind in ("record", "error"):
            return self._record(node, namespace, path, depth)
        if kind in ("array", "map"):
            word = "items" if kind == "array" else "values"
            if word not in node:
                raise CorruptFileError(f"an Avro {kind} without {word} ({path})")
            out = self._new(kind, node)
            inner = f"{path}.{'element' if kind == 'array' else 'value'}"
            out.items = self.type(node[word], namespace, inner, depth + 1)
            return out
        if kind in ("enum", "fixed"):
            return self._flat_named(kind, node, namespace, path)
        if not isinstance(kind, str):
            raise CorruptFileError(f"an Avro type without a kind ({path})")
        return self._new(kind, node) if kind in PRIMITIVES else self._by_name(kind, namespace, path)

    def _by_name(self, name: str, namespace: str, path: str) -> AvroType:
        if name in PRIMITIVES:
            return self._new(name, {"type": name})
        found = self._named.get(qualified(name, namespace)) or self._named.get(name)
        if found is None:
            raise CorruptFileError(f"an undefined Avro type {name!r} ({path})")
        return found

    def _union(self, node: list[Json], namespace: str, path: str, depth: int) -> AvroType:
        if not node:
            raise CorruptFileError(f"an empty Avro union ({path})")
        out = self._new("union", {"type": "union"})
        out.branches = [self.type(b, namespace, path, depth + 1) for b in node]
        if any(b.kind == "union" for b in out.branches):
            raise CorruptFileError(f"an Avro union in a union ({path})")
        return out

    def _flat_named(self, kind: str, node: Mapping[str, Json], namespace: str, path: str) -> AvroType:
        out = self._new(kind, node)
        self._named[full_name(node, namespace, path)[0]] = out
        if kind == "enum":
            symbols, default = node.get("symbols"), node.get("default")
            if (
                not isinstance(symbols, list)
                or not symbols
                or not all(isinstance(s, str) for s in symbols)
                or len(set(symbols)) < len(symbols)
                or (default is not None and default not in symbols)
            ):
                raise CorruptFileError(f"an Avro enumeration with unusable symbols ({path})")
            out.symbols, out.default = tuple(symbols), default
        else:
            leaf_type({**node, "logicalType": None}, path)  # checks the size
        return out

    def _record(self, node: Mapping[str, Json], namespace: str, path: str, depth: int) -> AvroType:
        full, inner = full_name(node, namespace, path)
        out = self._new("record", node)
        self._named[full] = out
        for f in record_fields(node, path or full):
            name = f["name"]
            aliases = f.get("aliases") or []
            if not isinstance(aliases, list) or not all(isinstance(a, str) for a in aliases):
                raise CorruptFileError(f"an Avro field with unusable aliases ({path or full})")
            kind = self.type(f["type"], inner, f"{path}.{name}" if path else name, depth + 1)
            out.fields.append(AvroField(name, kind, tuple(aliases), f.get("default", MISSING)))
        return out


_EXACT = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_PASSES = 8  # one and one that changes nothing, but for types that hold themselves
_MOST = 1 << 40  # bytes; no buffer is as long, so greater sizes need not be told apart


def _inside_first(types: list[AvroType]) -> list[AvroType]:
    """Records and unions, after the types nested in them; cycles are cut at some point."""
    out: list[AvroType] = []
    seen: set[int] = set()
    for start in types:
        todo = [(start, False)]
        while todo:
            t, done = todo.pop()
            if done:
                out.append(t)
            elif t.kind in ("record", "union") and id(t) not in seen:
                seen.add(id(t))
                todo.append((t, True))
                todo += [(i, False) for i in t.branches + [f.type for f in t.fields]]
    return out


def _measure(types: list[AvroType]) -> None:
    """Fill in `least` and `exact`, the encoded sizes.

    Both grow from "nothing known" until they stay the same, so that types which hold themselves are no
    special case.  For types in circles within circles `least` may stay below the fewest bytes, which is no fault: it
    is a bound.
    """
    for t in types:
        t.exact = t.node["size"] if t.kind == "fixed" else _EXACT.get(t.kind)
        t.least = {"int": 1, "long": 1, "bytes": 1, "string": 1, "enum": 1, "array": 1, "map": 1, "union": 1}.get(
            t.kind, t.exact or 0
        )  # fmt: skip
    compound = _inside_first(types)
    for _ in range(_PASSES):
        changed = False
        for t in compound:
            least, exact = t.least, t.exact
            if t.kind == "record":
                sizes = [f.type.exact for f in t.fields]
                known = [s for s in sizes if s is not None]
                exact = min(sum(known), _MOST) if len(known) == len(sizes) else None
                least = min(sum(f.type.least for f in t.fields), _MOST)
            else:
                least = 1 + min(b.least for b in t.branches)
            if (least, exact) != (t.least, t.exact):
                t.least, t.exact, changed = least, exact, True
        if not changed:
            return
