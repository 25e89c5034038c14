"""Building blocks of the timeline's Avro schemas, in Java's form."""

from __future__ import annotations

from typing import Any

# How an Avro object container begins; known here too, because `hudi_format.avro.container` brings fastavro along.
MAGIC = b"Obj\x01"

Schema = dict[str, Any]

_NAMESPACE = "org.apache.hudi.avro.model"


def text() -> Schema:
    """Text type."""
    return {"type": "string", "avro.java.string": "String"}


def record_of(name: str, *fields: Schema) -> Schema:
    """Record type."""
    return {"type": "record", "name": name, "fields": list(fields)}


def top_record(record: Schema) -> Schema:
    """Root record of a file, with namespace."""
    return {
        "type": "record",
        "name": record["name"],
        "namespace": _NAMESPACE,
        "fields": record["fields"],
    }


def field_of(name: str, kind: Any, **rest: Any) -> Schema:
    """Field of any type."""
    return {"name": name, "type": kind, **rest}


def optional(name: str, kind: Any, **rest: Any) -> Schema:
    """Nullable field, null by default."""
    return {"name": name, "type": ["null", kind], **rest, "default": None}


def array_of(items: Any, **rest: Any) -> Schema:
    """List type."""
    return {"type": "array", "items": items, **rest}


def map_of(values: Any, **rest: Any) -> Schema:
    """Map type with text keys."""
    return {"type": "map", "values": values, "avro.java.string": "String", **rest}


def version_field(default: int = 1) -> Schema:
    """Version field of a format."""
    return {"name": "version", "type": ["int", "null"], "default": default}
