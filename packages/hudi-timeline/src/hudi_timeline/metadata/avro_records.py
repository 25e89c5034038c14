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
import zlib
from collections.abc import Mapping
from functools import lru_cache
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
    found, record = read_container(data, what=name, path=path)
    if found != name:
        raise _corrupt(name, f"it holds {found!r}", path)
    return record


# What fastavro raises on damaged input is not documented; these are the kinds seen under fuzzing.
_DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError, SchemaParseException,
    StopIteration, TypeError, ValueError, struct.error,
)  # fmt: skip


def read_container(data: bytes, *, what: str = "Avro container", path: str = "") -> tuple[str, Record]:
    """The name of a container's record type, without its namespace, and its one record.

    Args:
        what: what is expected, for messages.

    Raises:
        CorruptFileError: no container, cut off, or not exactly one record.
    """
    if data[: len(_MAGIC)] != _MAGIC:
        raise _corrupt(what, "it does not begin as an Avro container", path)
    try:
        meta, at = _header(data)
        codec = meta.get("avro.codec", b"null")
        if codec not in (b"null", b"deflate"):
            raise ValueError(f"codec {codec[:20]!r}")
        name, schema = _writer_schema(meta["avro.schema"])
        marker = data[at : at + _SYNC_BYTES]
        count, at = _read_long(data, at + _SYNC_BYTES)
        size, at = _read_long(data, at)
        end = at + size
        if count != 1 or size < 0 or data[end:] != marker:
            raise ValueError(f"a block of {count} records in {size} bytes, where one to the end is expected")
        body = data[at:end] if codec == b"null" else _inflate(data[at:end], _MOST_INFLATED)
        source = io.BytesIO(body)
        record = fastavro.schemaless_reader(source, schema, None)
        if source.tell() != len(body):
            raise ValueError(f"{len(body) - source.tell()} bytes after the record")
    except _DAMAGE as e:
        raise _corrupt(what, f"{type(e).__name__}: {e}", path) from None
    if not isinstance(record, dict):
        raise _corrupt(what, f"it holds a {type(record).__name__} and no record", path)
    return name, record


_MOST_INFLATED = 256 << 20


def _inflate(data: bytes, most: int) -> bytes:
    inflater = zlib.decompressobj(-15)
    try:
        out = inflater.decompress(data, most)
    except zlib.error as e:
        raise ValueError(str(e)) from None
    if inflater.unconsumed_tail or not inflater.eof:
        raise ValueError("deflated data that does not end, or is too long")
    return out


def _header(data: bytes) -> tuple[dict[str, bytes], int]:
    """The metadata map of a container, and where it ends."""
    meta: dict[str, bytes] = {}
    at = len(_MAGIC)
    while True:
        count, at = _read_long(data, at)
        if count == 0:
            return meta, at
        if count < 0:  # then the block's size in bytes follows
            _, at = _read_long(data, at)
        for _ in range(abs(count)):
            key, at = _read_bytes(data, at)
            value, at = _read_bytes(data, at)
            meta[key.decode()] = value


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _read_long(data, at)
    if not 0 <= size <= len(data) - at:
        raise EOFError("a length that leaves the file")
    return data[at : at + size], at + size


def _read_long(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


@lru_cache(maxsize=64)
def _writer_schema(text: bytes) -> tuple[str, Any]:
    """The record's name, and the schema made ready for fastavro; the same header is in file after file."""
    schema = json.loads(text)
    if _takes_no_bytes(schema, set()):
        raise ValueError("a list of its schema has elements without bytes")
    name = schema.get("name", "") if isinstance(schema, dict) else ""
    return str(name).rpartition(".")[2], fastavro.parse_schema(schema)


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
