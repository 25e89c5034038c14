"""Avro object containers of plans and bootstrap indexes, checked before fastavro runs.

fastavro recurses on the C stack, for a schema's nesting and for values inside values: a schema that is nested deep,
or a type that holds itself, ends the process.  And it believes counts, where items take no bytes.  None of Hudi's
records is such.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException

from hudi_format.avro.types import MAX_DEPTH, AvroType
from hudi_format.avro.types import parse as parse_model
from hudi_format.errors import CorruptFileError, UnsupportedError

MAGIC = b"Obj\x01"
"""How an Avro object container begins."""

# What fastavro raises on damaged input is not documented; these are the kinds seen under fuzzing.
DECODING_ERRORS = (
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
)

SYNC_BYTES = 16
# Bytes that a container's compressed blocks may become together: text of a plan packs ten to one.
MOST_INFLATED = 100
LEAST_INFLATED = 1 << 20


@lru_cache(maxsize=64)
def checked_schema(text: str) -> Any:
    """The parsed schema for fastavro, after checks of its nesting.

    Raises:
        CorruptFileError: no Avro schema of a record, or one that no writer of timelines uses.
    """
    root = parse_model(text)
    _check(root, [], {})
    try:
        return fastavro.parse_schema(json.loads(text))
    except DECODING_ERRORS as e:
        raise CorruptFileError(f"not an Avro schema: {type(e).__name__}: {e}") from None


def _check(kind: AvroType, above: list[AvroType], done: dict[int, int]) -> int:
    """Nesting depth of a type, itself included; `done` holds the depth of types already seen."""
    if any(kind is a for a in above):
        raise CorruptFileError(f"a recursive type in an Avro schema ({kind.node.get('name')})")
    if id(kind) in done:
        return done[id(kind)]
    inner = [f.type for f in kind.fields] + kind.branches
    if kind.items is not None:
        if kind.kind == "array" and kind.items.least == 0:
            raise CorruptFileError("a list of an Avro schema has elements without bytes")
        inner.append(kind.items)
    # Records that hold two of another by name, which holds two of a third, have values without end, but no bytes.
    empty = next((f.name for f in kind.fields if f.type.least == 0), None)
    if empty is not None:
        raise CorruptFileError(f"an Avro schema with a field without bytes ({empty})")
    above.append(kind)
    levels = 1 + max((_check(t, above, done) for t in inner), default=0)
    above.pop()
    if levels > MAX_DEPTH:
        raise CorruptFileError("an Avro schema nested too deeply")
    done[id(kind)] = levels
    return levels


@dataclass(frozen=True, slots=True)
class ContainerHeader:
    """Header of an Avro object container.

    `prefix` is all of it but the marker between blocks.
    """

    prefix: bytes
    schema: str
    codec: bytes


@dataclass(frozen=True, slots=True)
class Container:
    """An Avro object container: header, and blocks as (number of records, bytes)."""

    header: ContainerHeader
    blocks: list[tuple[int, bytes]]

    @property
    def schema(self) -> str:
        """JSON text of the writer's schema."""
        return self.header.schema


def container_header(data: bytes) -> ContainerHeader:
    """The header of an Avro object container; errors as of `container_parts`."""
    if data[: len(MAGIC)] != MAGIC:
        raise CorruptFileError("it does not begin with the magic of an Avro container", offset=0)
    found: dict[bytes, bytes] = {}
    at = len(MAGIC)
    while True:
        count, at = _long(data, at)
        if count == 0:
            break
        if count < 0:
            _, at = _long(data, at)
            count = -count
        if count > (len(data) - at) // 2:
            raise CorruptFileError("the container's header is cut off", offset=at)
        for _ in range(count):
            key, at = _bytes(data, at)
            found[key], at = _bytes(data, at)
    codec = found.get(b"avro.codec", b"null")
    if codec not in (b"null", b"deflate"):
        raise UnsupportedError(
            f"an Avro container compressed with {codec[:20]!r}",
            remedy="Apache Hudi does not compress timeline files: restore the original file.",
        )
    try:
        schema = found[b"avro.schema"].decode()
    except (KeyError, UnicodeDecodeError):
        raise CorruptFileError("the container's header has no schema", offset=at) from None
    return ContainerHeader(data[:at], schema, codec)


def container_parts(data: bytes, known: ContainerHeader | None = None) -> Container:
    """Header and blocks of an Avro object container.

    Args:
        known: the head of another one, which most likely is this one's too.

    Raises:
        CorruptFileError: no container, or one that is cut off; `details["offset"]` says where.
        UnsupportedError: a codec other than null and deflate.
    """
    head = known if known is not None and data.startswith(known.prefix) else container_header(data)
    at = len(head.prefix)
    sync = data[at : at + SYNC_BYTES]
    at += SYNC_BYTES
    blocks = []
    left = max(MOST_INFLATED * len(data), LEAST_INFLATED)
    while at < len(data):
        start = at
        count, at = _long(data, at)
        block, at = _bytes(data, at)
        if len(sync) < SYNC_BYTES or data[at : at + SYNC_BYTES] != sync or count < 0:
            raise CorruptFileError("a block of the container is cut off or damaged", offset=start)
        at += SYNC_BYTES
        if head.codec != b"null":
            block = _inflated(block, start, left)
            left -= len(block)
        blocks.append((count, block))
    return Container(head, blocks)


def _inflated(block: bytes, at: int, most: int) -> bytes:
    reader = zlib.decompressobj(-15)
    try:
        out = reader.decompress(block, max(1, most))  # 0 would be no bound
    except zlib.error as e:
        raise CorruptFileError(f"a block of the container cannot be decompressed: {e}", offset=at) from None
    if not reader.eof:
        raise CorruptFileError(
            f"a block of the container is cut off, or exceeds {most} bytes decompressed", offset=at
        )
    return out


def _long(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + i + 1
    raise CorruptFileError("the container is cut off", offset=at)


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, start = _long(data, at)
    if not 0 <= size <= len(data) - start:
        raise CorruptFileError("the container is cut off", offset=at)
    return data[start : start + size], start + size


def read_container(data: bytes, *, what: str = "Avro container") -> tuple[str, dict[str, Any]]:
    """Record type (without namespace) and the single record of a container.

    Args:
        what: what is expected, for messages.

    Raises:
        CorruptFileError: no container, cut off, or not exactly one record; `details["offset"]` where it is known.
        UnsupportedError: a codec that Apache Hudi does not use.
    """
    try:
        container = container_parts(data)
        schema = checked_schema(container.schema)
        count = sum(n for n, _ in container.blocks)
        if count != 1:
            raise CorruptFileError(f"it holds {count} records instead of one")
        source = io.BytesIO(b"".join(block for _, block in container.blocks))
        record = fastavro.schemaless_reader(source, schema, None)
        if source.read(1):
            raise CorruptFileError("bytes follow its record")
    except CorruptFileError as e:
        raise _unreadable(what, e.message, e.details.get("offset")) from None
    except DECODING_ERRORS as e:
        raise _unreadable(what, f"{type(e).__name__}: {e}") from None
    if not isinstance(record, dict):
        raise _unreadable(what, f"it holds a {type(record).__name__}, not a record")
    return str(schema.get("name", "")).rpartition(".")[2], record


def _unreadable(what: str, reason: str, offset: object = None) -> CorruptFileError:
    if offset is None:
        return CorruptFileError(f"unreadable {what}: {reason}")
    return CorruptFileError(f"unreadable {what}: {reason}, at byte {offset}", offset=offset)
