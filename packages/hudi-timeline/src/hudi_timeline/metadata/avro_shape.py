"""Whether records of a schema have the shape that this package reads: a plan's writer may have had any other.

Records are read by the schema in their file's header.  A field of another type than Apache Hudi's, or without the
parts that Apache Hudi always writes, is damage: there it could not be read under the reader's schema either.

Source: Avro 1.11 specification, "Schema Resolution".
"""

from __future__ import annotations

from hudi_format.avro.model import MISSING, AvroType

# Kinds that are one in Python.
_ALIKE = {"int": "number", "long": "number", "float": "fraction", "double": "fraction", "enum": "string",
          "fixed": "bytes"}  # fmt: skip


def misfit(written: AvroType, wanted: AvroType, where: str = "") -> str:
    """What of a schema's records is not as wanted, "" where all of it is.

    Fields that are not wanted may be anything; wanted ones that have a default may be missing.
    """
    choices = _branches(wanted)
    for kind in _branches(written):
        same = [c for c in choices if _kind(c) == _kind(kind)]
        if not same:
            words = " or ".join(c.kind for c in choices)
            return f"{where or 'the record'} is a {kind.kind} and no {words}"
        found = [_inside(kind, c, where) for c in same]
        if all(found):
            return found[0]
    return ""


def _branches(kind: AvroType) -> list[AvroType]:
    return kind.branches if kind.kind == "union" else [kind]


def _kind(kind: AvroType) -> str:
    return _ALIKE.get(kind.kind, kind.kind)


def _inside(written: AvroType, wanted: AvroType, where: str) -> str:
    if written.items is not None and wanted.items is not None:
        return misfit(written.items, wanted.items, f"{where}[]")
    there = {f.name: f.type for f in written.fields}
    for f in wanted.fields:
        path = f"{where}.{f.name}" if where else f.name
        if f.name in there:
            found = misfit(there[f.name], f.type, path)
            if found:
                return found
        elif f.default is MISSING:
            return f"{path} is missing"
    return ""
