"""Default values of Avro fields, encoded from schema JSON to Avro binary.

Source: Avro 1.11 specification, "Complex Types" (defaults) and "Binary Encoding".
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

from hudi_format.avro.types import MISSING, AvroField, AvroType
from hudi_format.errors import SchemaError

Json: TypeAlias = Any


def has_default(field: AvroField) -> bool:
    """Whether a field may be absent: it has a default, or its type allows null.

    Avro asks for a default in both cases; Apache Hudi 0.15 takes null for nullable fields that have none.
    """
    return field.default is not MISSING or _nullable(field.type)


def default_bytes(field: AvroField, path: str) -> bytes:
    """The field's default value in Avro binary.

    Raises:
        SchemaError: no default, or one that is no value of the type.
    """
    default = None if field.default is MISSING else field.default
    out = bytearray()
    if not has_default(field) or not _put(out, field.type, default):
        raise SchemaError(
            f"the default {default!r} of column {path} is not a value of its type"
            if has_default(field)
            else f"column {path} is missing in the data, must not be null and has no default",
            column=path,
        )
    return bytes(out)


def _nullable(kind: AvroType) -> bool:
    return kind.kind == "null" or any(b.kind == "null" for b in kind.branches)


def varint(number: int) -> bytes:
    """A signed number in Avro's variable-length encoding of int and long."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _put(out: bytearray, kind: AvroType, value: Json) -> bool:
    """Append the encoded value; False if it is not a value of the type."""
    match kind.kind:
        case "null":
            return value is None
        case "boolean":
            out += b"\x01" if value else b"\x00"
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if kind.kind == "int" else 63
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if not isinstance(value, int) or isinstance(value, bool) or not -(1 << bits) <= value < 1 << bits:
                return False
            out += varint(value)
            return True
        case "float" | "double":
            return _put_float(out, kind.kind, value)
        case "string":
            return isinstance(value, str) and _put_bytes(out, value, "utf-8")
        case "bytes":
            return isinstance(value, str) and _put_bytes(out, value, "latin-1")
        case "fixed":
            if not isinstance(value, str) or len(value) != kind.node["size"] or max(value) > "\xff":
                return False
            out += value.encode("latin-1")
            return True
        case "enum":
            if value not in kind.symbols:
                return False
            out += varint(kind.symbols.index(value))
            return True
        case "union":
            return _put_branch(out, kind, value)
        case "record":
            return _put_record(out, kind, value)
    return _put_items(out, kind, value)


def _put_float(out: bytearray, kind: str, value: Json) -> bool:
    if isinstance(value, str):  # as Jackson writes what JSON has no numbers for
        value = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        out += struct.pack("<f" if kind == "float" else "<d", value)
    except OverflowError:
        return False
    return True


def _put_bytes(out: bytearray, value: str, encoding: str) -> bool:
    try:
        raw = value.encode(encoding)
    except UnicodeEncodeError:
        return False
    out += varint(len(raw)) + raw
    return True


def _put_branch(out: bytearray, kind: AvroType, value: Json) -> bool:
    """Append a default of a union.

    Avro asks for a value of the first branch; tables have null defaults with null second, too.
    """
    for number, branch in enumerate(kind.branches):
        start = len(out)
        out += varint(number)
        if _put(out, branch, value):
            return True
        del out[start:]
    return False


def _put_record(out: bytearray, kind: AvroType, value: Json) -> bool:
    if not isinstance(value, dict):
        return False
    for f in kind.fields:
        inner = value.get(f.name, f.default)
        if inner is MISSING or not _put(out, f.type, inner):
            return False
    return True


def _put_items(out: bytearray, kind: AvroType, value: Json) -> bool:
    if not isinstance(value, list if kind.kind == "array" else dict):
        return False
    if value:
        out += varint(len(value))
    for item in value:
        if kind.kind == "map":
            if not _put_bytes(out, item, "utf-8"):
                return False
            item = value[item]
        if not _put(out, kind.inside, item):
            return False
    out += b"\x00"
    return True
