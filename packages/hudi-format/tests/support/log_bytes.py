"""Log blocks built byte by byte, as the format says and apart from the code under test."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

SCHEMA = '{"type":"record","name":"r","fields":[{"name":"a","type":"string"}]}'


def entries(values: Mapping[int, str]) -> bytes:
    out = struct.pack(">i", len(values))
    for key, text in values.items():
        data = text.encode()
        out += struct.pack(">ii", key, len(data)) + data
    return out


def block(
    kind: int, header: Mapping[int, str], content: bytes = b"", footer: Mapping[int, str] | None = None
) -> bytes:
    body = struct.pack(">ii", 1, kind) + entries(header) + struct.pack(">q", len(content)) + content
    body += entries(footer or {})
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def avro_content(records: Sequence[bytes], version: int = 3) -> bytes:
    out = struct.pack(">ii", version, len(records))
    return out + b"".join(struct.pack(">i", len(r)) + r for r in records)


def zigzag(number: int) -> bytes:
    """Avro's int or long."""
    value = (number << 1) ^ (number >> 63)
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def avro(instant: str, *texts: str, compacted: str = "") -> bytes:
    """A data block of one string column `a`."""
    records = [zigzag(len(t.encode())) + t.encode() for t in texts]
    header = {0: instant, 2: SCHEMA} | ({4: compacted} if compacted else {})
    return block(3, header, avro_content(records))


def rollback(instant: str, target: str) -> bytes:
    return block(0, {3: "0", 1: target, 0: instant})


def empty_delete(instant: str) -> bytes:
    return block(1, {0: instant}, bytes.fromhex("000000030000000100"))
