"""Delete lists as releases up to 0.10 of Apache Hudi wrote them: HoodieKey[] by Kryo, content version 1.

Source: bytes of Apache Hudi's own classes; `hudi_format.log.kryo` reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from hudi_format.log.kryo import KEY_CLASS

_VERSION = 1
_NULL, _NEW, _BY_NAME = b"\x00", b"\x01", b"\x01"


def kryo_delete_content(keys: Sequence[str], partition: str | None) -> bytes:
    """The content of a delete block of version 1; keys and partition are ASCII."""
    out = _BY_NAME + _varint(0) + _text(f"[L{KEY_CLASS};") + _NEW + _varint(len(keys) + 1)
    for place, key in enumerate(keys):
        out += _BY_NAME + _varint(1)
        if place == 0:
            out += _text(KEY_CLASS)
        out += _NEW + (_NULL if partition is None else _NEW + _text(partition)) + _NEW + _text(key)
    return struct.pack(">ii", _VERSION, len(out)) + out


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(text: str) -> bytes:
    data = text.encode("ascii")
    if len(data) < 2:  # a count, which is one more, and the characters
        return bytes([0x80 | (len(data) + 1)]) + data
    return data[:-1] + bytes([data[-1] | 0x80])
