"""Avro schemas of Hudi's writers, to and from Arrow.

Source: what Apache Hudi 0.15 writes into commits, footers and hoodie.properties: record `<table>_record` in
namespace `hoodie.<table>`, nullable as ["null", T] with default null, decimals as the smallest fixed, nested
records named after their column below the namespace of the record around them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from hudi_format.errors import CorruptFileError, SchemaError
from hudi_format.schema.meta_columns import META_COLUMNS

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")


def to_avro(schema: pa.Schema, table_name: str) -> str:
    """The Avro schema of rows with this Arrow schema (of storable types), as JSON text."""
    name = _NOT_A_NAME.sub("_", table_name)
    full = f"hoodie.{name}.{name}_record"
    record = {
        "type": "record",
        "name": f"{name}_record",
        "namespace": f"hoodie.{name}",
        "fields": [_field(f, full) for f in schema],
    }
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def _field(field: pa.Field, around: str) -> dict[str, Any]:
    out: dict[str, Any] = {"name": field.name, "type": _nullable(field, field.name, around)}
    if field.name in META_COLUMNS:
        out["doc"] = ""
    if field.nullable:
        out["default"] = None
    return out


def _nullable(field: pa.Field, name: str, around: str) -> Any:
    kind = _avro_type(field.type, name, around)
    return ["null", kind] if field.nullable else kind


def _avro_type(kind: pa.DataType, name: str, around: str) -> Any:
    for text, arrow in _PRIMITIVES.items():
        if kind.equals(arrow):
            return text
    if pa.types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if pa.types.is_decimal(kind):
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{around}.{name}",
            "size": decimal_bytes(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field, name, around)}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _nullable(kind.item_field, name, around)}
    if pa.types.is_struct(kind):
        own = f"{around}.{name}"
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return {"type": "record", "name": name, "namespace": around, "fields": [_field(f, own) for f in fields]}
    raise SchemaError(f"column {name!r} of type {kind} has no Avro type", column=name)


def decimal_bytes(precision: int) -> int:
    """The least number of bytes that hold every decimal of this precision, with its sign."""
    size = 1
    while 2 ** (8 * size - 1) - 1 < 10**precision - 1:
        size += 1
    return size


def from_avro(text: str) -> pa.Schema:
    """The Arrow schema of an Avro record schema, of any Hudi writer; meta columns stay.

    Raises:
        CorruptFileError: no Avro record schema.
        SchemaError: a type that Spark tables do not have (times of day, unions of several types).
    """
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError as e:
        raise CorruptFileError(f"the Avro schema is no JSON: {e}") from None
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise CorruptFileError("the Avro schema is no record")
    try:
        return pa.schema(_fields(parsed, {}, ""))
    except (KeyError, TypeError, AttributeError, RecursionError) as e:
        raise CorruptFileError(f"the Avro schema is malformed: {e!r}") from None


def _fields(record: dict[str, Any], named: dict[str, pa.DataType], path: str) -> list[pa.Field]:
    out = []
    for f in record["fields"]:
        kind, nullable = _arrow(f["type"], named, f"{path}{f['name']}")
        out.append(pa.field(f["name"], kind, nullable))
    return out


def _arrow(avro: Any, named: dict[str, pa.DataType], path: str) -> tuple[pa.DataType, bool]:
    """The Arrow type and whether it may be null."""
    if isinstance(avro, list):
        others = [a for a in avro if a != "null"]
        if len(others) != 1:
            raise SchemaError(f"column {path!r} is a union of {len(others)} types", column=path)
        return _arrow(others[0], named, path)[0], len(others) < len(avro)
    if isinstance(avro, str):
        if avro in _PRIMITIVES:
            return _PRIMITIVES[avro], False
        known = named.get(avro) or named.get(avro.rpartition(".")[2])
        if known is None:
            raise SchemaError(f"column {path!r} has the unknown Avro type {avro!r}", column=path)
        return known, False
    logical = avro.get("logicalType")
    kind = avro["type"]
    if isinstance(kind, (dict, list)):
        return _arrow(kind, named, path)
    result = _logical(logical, avro, path) or _complex(kind, avro, named, path)
    if kind in ("record", "enum", "fixed"):
        full = f"{avro['namespace']}.{avro['name']}" if avro.get("namespace") else avro["name"]
        named[full] = named[avro["name"]] = result
    return result, False


def _logical(logical: str | None, avro: dict[str, Any], path: str) -> pa.DataType | None:
    if logical == "decimal":
        return pa.decimal128(int(avro["precision"]), int(avro.get("scale", 0)))
    if logical == "date":
        return pa.date32()
    if logical in ("timestamp-micros", "timestamp-millis"):
        return pa.timestamp("us", "UTC")
    if logical in ("local-timestamp-micros", "local-timestamp-millis"):
        return pa.timestamp("us")
    if logical in ("time-micros", "time-millis"):
        raise SchemaError(f"column {path!r} is a time of day, which Spark tables do not have", column=path)
    return None


def _complex(kind: str, avro: dict[str, Any], named: dict[str, pa.DataType], path: str) -> pa.DataType:
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if kind == "fixed":
        return pa.binary()
    if kind == "enum":
        return pa.string()
    if kind == "array":
        item, nullable = _arrow(avro["items"], named, f"{path}.element")
        return pa.list_(pa.field("element", item, nullable))
    if kind == "map":
        value, nullable = _arrow(avro["values"], named, f"{path}.value")
        return pa.map_(pa.string(), pa.field("value", value, nullable))
    if kind == "record":
        return pa.struct(_fields(avro, named, f"{path}."))
    known = named.get(kind) or named.get(kind.rpartition(".")[2])
    if known is None:
        raise SchemaError(f"column {path!r} has the unknown Avro type {kind!r}", column=path)
    return known
