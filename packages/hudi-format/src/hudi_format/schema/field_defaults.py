"""Defaults of an Avro schema's fields, kept over writes of rows that have none.

Arrow's schemas have no defaults, so that the schema of a write says null for all of them.  Those that are not null come
from a schema registry; payloads and partial updates go by them (`hudi_timeline.file_system_view.table_schema`).
"""

from __future__ import annotations

import json
from typing import Any

from hudi_format._checks import loads

# What a type may have been before: the default of a narrower number is one of the wider.
_WIDER = {"int": ("long", "float", "double"), "long": ("float", "double"), "float": ("double",)}


def with_defaults_of(text: str, former: str) -> str:
    """An Avro schema with the non-null defaults of the fields of a former one.

    A field keeps its default where its type is the same, or a wider number.  A default belongs to the first type of a
    union, so that null comes second where it is not null.

    Args:
        text: the schema, of fields that are null by default or have none.
        former: a record's schema.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, RecursionError: the former one is no record's schema.
    """
    old = loads(former)
    found = json.loads(text)
    if not _record(found, old):
        return text
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _record(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Give a record's fields their defaults; whether there was one."""
    before = {f["name"]: f for f in old["fields"]}
    changed = False
    for field in new["fields"]:
        former = before.get(field["name"])
        if former is None:
            continue
        changed |= _within(field["type"], former["type"])
        default = former.get("default")
        if default is None or field.get("default") is not None:
            continue
        kind = _branch(field["type"])
        # The default is of the former type's first branch.
        given = former["type"][0] if isinstance(former["type"], list) else former["type"]
        if not _same(kind, given):
            continue
        if isinstance(field["type"], list):
            field["type"] = [kind, "null"]
        field["default"] = default
        changed = True
    return changed


def _within(new: Any, old: Any) -> bool:
    """The same of records inside of a type."""
    new, old = _branch(new), _branch(old)
    if not isinstance(new, dict) or not isinstance(old, dict) or new.get("type") != old.get("type"):
        return False
    if new["type"] == "record":
        return _record(new, old)
    inner = {"array": "items", "map": "values"}.get(new["type"])
    return inner is not None and _within(new[inner], old[inner])


def _branch(kind: Any) -> Any:
    """The type without null; of a union of several the first."""
    if not isinstance(kind, list):
        return kind
    return next((k for k in kind if k != "null"), "null")


def _same(new: Any, old: Any) -> bool:
    if isinstance(new, str) and isinstance(old, str):
        return new == old or new in _WIDER.get(old, ())
    if isinstance(new, dict) and isinstance(old, dict):
        # Names of records and of what only readers look at may differ.
        logical = [k.get("logicalType") for k in (new, old)]
        sizes = [(k.get("precision"), k.get("scale")) for k in (new, old)]
        return new.get("type") == old.get("type") and logical[0] == logical[1] and sizes[0] == sizes[1]
    plain, other = (new, old) if isinstance(new, str) else (old, new)
    # `{"type": "string", "avro.java.string": "String"}` is a string.
    return isinstance(other, dict) and other.get("type") == plain and "logicalType" not in other
