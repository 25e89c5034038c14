"""Columns that are Avro unions of several types, kept over writes of rows with structs.

In Arrow, and in Parquet, such a column is a struct with a field for each type (`hudi_format.schema.avro.from_avro`).  A
schema that is made of Arrow's would call it a record from then on, which no reader of older log records takes for the
union; so a write's schema takes these columns from the one before it.

A union of int and long, or of float and double, is one number in Arrow, and a struct in Parquet all the same.  Apache
Hudi writes base files with it, and then fails to read them; such columns are read here, and not written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from hudi_format._checks import loads
from hudi_format.errors import CorruptFileError, SchemaError
from hudi_format.schema.avro import from_avro, qualified, schema_json, union_number

Json: TypeAlias = Any

_NAMED = ("record", "error", "enum", "fixed")
_INNER = ("type", "items", "values")


def union_columns(text: str) -> list[str]:
    """Names of columns that are, or contain, unions of several types.

    Raises:
        CorruptFileError: the text is no Avro schema of a record.
    """
    return [name for name, branches in _unions(text) if branches]


def number_unions(text: str) -> list[str]:
    """Names of columns that are, or contain, unions of two number types that are read as one.

    Raises:
        CorruptFileError: the text is no Avro schema of a record.
    """
    return [name for name, branches in _unions(text) if any(union_number(b) for b in branches)]


def _unions(text: str) -> list[tuple[str, list[list[Json]]]]:
    """Columns, with the types of each union of several types in them."""
    try:
        fields = schema_json(text)["fields"]
        return [(f["name"], list(_branches(f["type"]))) for f in fields]
    except (LookupError, TypeError, AttributeError, RecursionError) as e:
        raise CorruptFileError(f"not the Avro schema of a record: {e}") from e


def _branches(node: Json) -> Iterable[list[Json]]:
    if isinstance(node, list):
        others = [b for b in node if b != "null"]
        if len(others) > 1:
            yield [b.get("type") if isinstance(b, dict) else b for b in others]
        for branch in others:
            yield from _branches(branch)
    elif isinstance(node, dict):
        for word in _INNER:
            if not isinstance(node.get(word), str):
                yield from _branches(node.get(word))
        for field in node.get("fields") or ():
            yield from _branches(field["type"])


def with_unions_of(text: str, former: str) -> str:
    """An Avro schema with the unions of several types of a former one.

    Args:
        text: made of Arrow's schema, in which they are records.
        former: a record's schema; with other columns too.

    Raises:
        CorruptFileError: the former one is no record's schema.
        SchemaError: a column with a union that has another type now; names it.
    """
    made = json.loads(text)
    unions = set(union_columns(former))
    wanted = [f["name"] for f in made["fields"] if f["name"] in unions]
    if not wanted:
        return text
    now, before = from_avro(text), from_avro(former)
    taken = {f["name"]: f for f in _NamedTypes(loads(former)).fields(wanted)}
    for n, field in enumerate(made["fields"]):
        name = field["name"]
        if name not in unions:
            continue
        old, new = before.field(name), now.field(name)
        if old.type != new.type:
            raise SchemaError(
                f"column {name} has unions of several types, whose types do not change: it was {old.type}, and would "
                f"be {new.type}",
                remedy="give the column the members that it has in the table, in the same types.",
                column=name,
                source=str(new.type),
                target=str(old.type),
            )
        made["fields"][n] = taken[name]
        if new.nullable and not old.nullable:
            kind = taken[name]["type"]
            branches = kind if isinstance(kind, list) else [kind]
            made["fields"][n] = {**taken[name], "type": ["null", *branches], "default": None}
    return json.dumps(made, separators=(",", ":"), ensure_ascii=False)


def schema_of_unions(text: str) -> str:
    """The schema of a record of the columns with unions alone; "" where there are none.

    Raises:
        CorruptFileError: the text is no Avro schema of a record.
    """
    names = union_columns(text)
    if not names:
        return ""
    root = loads(text)
    return json.dumps({"type": "record", "name": "unions", "fields": _NamedTypes(root).fields(names)})


class _NamedTypes:
    """A record's named types; each is defined with its full name where it first comes up, and named after that."""

    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._known: dict[str, Json] = {}
        self._defined: set[str] = set()
        self._collect(root, "")

    def fields(self, names: Iterable[str]) -> list[dict[str, Json]]:
        """Fields of the record, which need no others, in the given order."""
        space = _space(self._root, "")
        found = {f["name"]: f for f in self._root["fields"]}
        return [{**found[n], "type": self._whole(found[n]["type"], space)} for n in names]

    def _collect(self, node: Json, space: str) -> None:
        if isinstance(node, list):
            for branch in node:
                self._collect(branch, space)
        elif isinstance(node, dict):
            if node.get("type") in _NAMED:
                space = _space(node, space)
                self._known[qualified(node["name"], space)] = (node, space)
            for word in _INNER:
                if not isinstance(node.get(word), str):
                    self._collect(node.get(word), space)
            for field in node.get("fields") or ():
                self._collect(field["type"], space)

    def _whole(self, node: Json, space: str) -> Json:
        if isinstance(node, str):
            full = next((n for n in (qualified(node, space), node) if n in self._known), None)
            return node if full is None else self._definition(full)
        if isinstance(node, list):
            return [self._whole(branch, space) for branch in node]
        if node.get("type") in _NAMED:
            return self._definition(qualified(node["name"], _space(node, space)))
        if node.get("type") in ("array", "map"):
            word = "items" if node["type"] == "array" else "values"
            return {**node, word: self._whole(node[word], space)}
        return {**node, "type": self._whole(node["type"], space)}

    def _definition(self, full: str) -> Json:
        if full in self._defined:
            return full
        self._defined.add(full)
        node, space = self._known[full]
        own, _, name = full.rpartition(".")
        out = {**node, "name": name, "namespace": own}
        if "fields" in node:
            out["fields"] = [{**f, "type": self._whole(f["type"], space)} for f in node["fields"]]
        return out


def _space(node: Mapping[str, Json], space: str) -> str:
    """Namespace of a named type."""
    name: str = node["name"]
    return name.rpartition(".")[0] if "." in name else node.get("namespace", space)
