"""Parts that the Avro schemas of the timeline are put together from, in the form that Java writes."""

from __future__ import annotations

from typing import Any

# How an Avro object container begins; known here too, because `hudi_format.avro.container` brings fastavro along.
MAGIC = b"Obj\x01"

Schema = dict[str, Any]

_NAMESPACE = "org.apache.hudi.avro.model"


def text() -> Schema:
    """The type of a text."""
    return {"type": "string", "avro.java.string": "String"}


def record_of(name: str, *fields: Schema) -> Schema:
    """A record type."""
    return {"type": "record", "name": name, "fields": list(fields)}


def top_record(record: Schema) -> Schema:
    """A record as the root of a file: there it carries the namespace."""
    return {
        "type": "record",
        "name": record["name"],
        "namespace": _NAMESPACE,
        "fields": record["fields"],
    }


def field_of(name: str, kind: Any, **rest: Any) -> Schema:
    """A field of any type."""
    return {"name": name, "type": kind, **rest}


def optional(name: str, kind: Any, **rest: Any) -> Schema:
    """A field that may be null, and is where a writer does not say."""
    return {"name": name, "type": ["null", kind], **rest, "default": None}


def array_of(items: Any, **rest: Any) -> Schema:
    """A list type."""
    return {"type": "array", "items": items, **rest}


def map_of(values: Any, **rest: Any) -> Schema:
    """A map from texts."""
    return {"type": "map", "values": values, "avro.java.string": "String", **rest}


def version_field(default: int = 1) -> Schema:
    """The field that tells the version of the format."""
    return {"name": "version", "type": ["int", "null"], "default": default}
