"""Plans and results on the timeline: Avro object containers with one record each.

Read from any writer's container by the schema in its header, in full (every field is known by name,
appended ones are kept).  Written as Apache Hudi 0.15 does: no codec, one metadata key, its schemas.
"""

from __future__ import annotations

import copy
import io
import json
import os
import struct
from collections.abc import Mapping
from itertools import islice
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException

from hudi_format.errors import CorruptFileError
from hudi_timeline.metadata import avro_schemas as schemas

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16

Record = dict[str, Any]

SCHEMAS: Mapping[str, schemas.Schema] = {
    s["name"]: s
    for s in (
        schemas.ROLLBACK_PLAN,
        schemas.ROLLBACK_METADATA,
        schemas.RESTORE_PLAN,
        schemas.RESTORE_METADATA,
        schemas.CLEAN_METADATA,
        schemas.CLEANER_PLAN,
        schemas.SAVEPOINT_METADATA,
        schemas.REQUESTED_REPLACE,
    )
}


def schema_text(name: str) -> str:
    """A schema as it stands in a container's header: compact JSON."""
    return json.dumps(SCHEMAS[name], separators=(",", ":"))


def render(name: str, record: Mapping[str, object], *, sync: bytes | None = None) -> bytes:
    """A container with one record of the schema `name`; missing fields get their defaults.

    Args:
        sync: the 16 bytes between blocks; random where it is not given.
    """
    # fastavro's own writer stores a rewritten schema and an `avro.codec` key; Apache Hudi stores
    # neither, so the frame is made here and fastavro encodes the record alone.
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _parsed(name), dict(record))
    header = schema_text(name).encode()
    marker = sync or os.urandom(_SYNC_BYTES)
    key = b"avro.schema"
    meta = _long(1) + _long(len(key)) + key + _long(len(header)) + header + _long(0)
    data = body.getvalue()
    return _MAGIC + meta + marker + _long(1) + _long(len(data)) + data + marker


def _parsed(name: str) -> Any:
    # parse_schema writes into nested parts of what it is given.
    return fastavro.parse_schema(copy.deepcopy(SCHEMAS[name]))


def _long(value: int) -> bytes:
    """Avro's zig-zag variable-length integer, for values that are not negative."""
    n = value << 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def parse(name: str, data: bytes, *, path: str = "") -> Record:
    """The one record of a container.

    Raises:
        CorruptFileError: no container, another record type, cut off, or not exactly one record.
    """
    if data[: len(_MAGIC)] != _MAGIC:
        raise _corrupt(name, "it does not begin as an Avro container", path)
    try:
        reader = fastavro.reader(io.BytesIO(data))
        found = reader.writer_schema
        if _takes_no_bytes(found, set()):
            raise ValueError("a list of its schema has elements without bytes")
        records = list(islice(reader, 2))
    # What fastavro raises on damaged input is not documented; these are the kinds seen under fuzzing.
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        MemoryError,
        RecursionError,
        SchemaParseException,
        StopIteration,
        TypeError,
        ValueError,
        struct.error,
    ) as e:
        raise _corrupt(name, f"{type(e).__name__}: {e}", path) from None
    full_name = found.get("name", "") if isinstance(found, dict) else ""
    if full_name.rpartition(".")[2] != name:
        raise _corrupt(name, f"it holds {full_name or found!r}", path)
    if len(records) != 1 or not isinstance(records[0], dict):
        raise _corrupt(name, f"it holds {len(records)} records instead of one", path)
    return records[0]


def _takes_no_bytes(schema: object, empty: set[str]) -> bool:
    """Whether the schema has an array whose elements take no bytes, so that a few bytes of input could
    stand for any number of them.  `empty` collects the names of types without bytes."""
    if isinstance(schema, list):
        return any(_takes_no_bytes(s, empty) for s in schema)
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    if kind == "record":
        fields = [f.get("type") for f in schema["fields"]]
        found = any(_takes_no_bytes(f, empty) for f in fields)
        if all(_is_empty(f, empty) for f in fields):
            empty.add(schema["name"])
        return found
    if kind == "array":
        return _takes_no_bytes(schema["items"], empty) or _is_empty(schema["items"], empty)
    if kind == "map":
        return _takes_no_bytes(schema["values"], empty)
    return isinstance(kind, (dict, list)) and _takes_no_bytes(kind, empty)


def _is_empty(schema: object, empty: set[str]) -> bool:
    if isinstance(schema, str):
        return schema == "null" or schema in empty
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    if kind == "record":
        return schema["name"] in empty
    if kind == "fixed":
        return schema.get("size") == 0
    return kind == "null" or (isinstance(kind, dict) and _is_empty(kind, empty))


def _corrupt(name: str, reason: str, path: str) -> CorruptFileError:
    return CorruptFileError(
        f"no readable {name}: {reason}",
        file=path,
        remedy="restore the file from a backup of the table; a pending plan that nothing has executed "
        "yet may be deleted.",
    )


def is_clustering_request(data: bytes, *, path: str = "") -> bool:
    """Whether the requested file of a replacecommit plans a clustering.

    Raises:
        CorruptFileError: the file cannot be read.
    """
    record = parse("HoodieRequestedReplaceMetadata", data, path=path)
    return record.get("operationType") == "CLUSTER" and record.get("clusteringPlan") is not None


def empty_replace_request() -> bytes:
    """The requested file of an insert_overwrite, insert_overwrite_table or delete_partition."""
    return render("HoodieRequestedReplaceMetadata", {})
