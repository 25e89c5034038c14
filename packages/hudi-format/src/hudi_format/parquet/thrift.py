"""Structs of Thrift's compact protocol, taken apart and put together again.

Fields are the bytes that they are: what is not looked at stays as it was written.  Damaged bytes end in `ValueError`.

Source: Thrift compact protocol.
"""

from __future__ import annotations

from collections.abc import Sequence

BOOLEANS, BYTE, DOUBLE, BINARY, LISTS, MAP, STRUCT = (1, 2), 3, 7, 8, (9, 10), 11, 12
I16, I32, I64, LIST = 4, 5, 6, 9
_VARINTS = (I16, I32, I64)
_DEEPEST = 32  # parquet.thrift nests 7 deep

Fields = list[tuple[int, int, bytes]]
"""Fields of a struct: number, type and bytes of each."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(value: int) -> bytes:
    """A number that is not negative."""
    return varint(value << 1)


def struct(fields: Fields) -> bytes:
    """A struct of fields in ascending order of their numbers."""
    out, last = bytearray(), 0
    for number, kind, raw in fields:
        step = number - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + integer(number)
        out += raw
        last = number
    return bytes(out) + b"\0"


def structs(values: Sequence[bytes]) -> bytes:
    """A list of structs."""
    count = len(values)
    head = bytes([count << 4 | STRUCT]) if count < 15 else bytes([0xF0 | STRUCT]) + varint(count)
    return head + b"".join(values)


class Cursor:
    """Cursor in bytes of Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def _byte(self) -> int:
        if self.at >= len(self.data):
            raise ValueError("it is cut off")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while shift < 64:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
        raise ValueError("a number of more than 64 bits")

    def list_head(self) -> tuple[int, int]:
        """Number and type of a list's elements."""
        byte = self._byte()
        count = byte >> 4
        return (count if count < 15 else self.varint()), byte & 15

    def structs(self) -> list[Fields]:
        """A list of structs."""
        count, kind = self.list_head()
        if count and kind != STRUCT:
            raise ValueError(f"a list of Thrift's type {kind}")
        out = []
        for _ in range(count):  # each takes a byte at least
            out.append(self.fields())
        return out

    def field(self, last: int = 0) -> tuple[int, int]:
        """Number and type of a struct's next field, whose value follows; 0 and 0 at its end."""
        byte = self._byte()
        if not byte:
            return 0, 0
        if not byte & 15:
            raise ValueError("Thrift's type 0")
        return (self.varint() >> 1 if byte < 16 else last + (byte >> 4)), byte & 15

    def fields(self, depth: int = 0) -> Fields:
        """Fields of a struct."""
        out: Fields = []
        last = 0
        while True:
            number, kind = self.field(last)
            if not kind:
                break
            begin = self.at
            if kind not in BOOLEANS:  # a field's own boolean is its type
                self.skip(kind, depth)
            out.append((number, kind, self.data[begin : self.at]))
            last = number
        return out

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip a value."""
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if kind == BYTE or kind in BOOLEANS:
            self._byte()
        elif kind in _VARINTS:
            self.varint()
        elif kind == DOUBLE:
            self._forward(8)
        elif kind == BINARY:
            self._forward(self.varint())
        elif kind in LISTS:
            count, inner = self.list_head()
            for _ in range(count):
                self.skip(inner, depth + 1)
        elif kind == STRUCT:
            self.fields(depth + 1)
        elif kind == MAP:
            count = self.varint()
            if count:
                kinds = self._byte()
                for _ in range(count):
                    self.skip(kinds >> 4, depth + 1)
                    self.skip(kinds & 15, depth + 1)
        else:
            raise ValueError(f"Thrift's type {kind}")

    def _forward(self, length: int) -> None:
        if length > len(self.data) - self.at:
            raise ValueError("it is cut off")
        self.at += length


def once(fields: Fields) -> Fields:
    """The fields, each of which is there once.

    Of two Arrow takes the last, and rows would be counted otherwise.

    Raises:
        ValueError: one that is there twice.
    """
    if len({number for number, _, _ in fields}) < len(fields):
        raise ValueError("a field that is there twice")
    return fields


def number_of(fields: Fields, number: int) -> int:
    """The integer field of this number.

    Raises:
        ValueError: there is none, or it is negative.
    """
    found = optional_number(fields, number)
    if found is None:
        raise ValueError(f"field {number} is missing")
    return found


def optional_number(fields: Fields, number: int) -> int | None:
    """The integer field of this number; None where it is not there.

    Raises:
        ValueError: it is negative, or no integer.
    """
    for at, kind, raw in fields:
        if at == number:
            value = Cursor(raw).varint() if kind in _VARINTS else 1
            if value & 1:
                raise ValueError(f"field {number} is negative, or no integer")
            return value >> 1
    return None


def raw_of(fields: Fields, number: int) -> bytes:
    """Bytes of the field of this number.

    Raises:
        ValueError: there is none.
    """
    for at, _, raw in fields:
        if at == number:
            return raw
    raise ValueError(f"field {number} is missing")


def replaced(fields: Fields, by: dict[int, tuple[int, bytes]]) -> Fields:
    """The fields with those of some numbers exchanged, or added: type and bytes by number."""
    kept = [f for f in fields if f[0] not in by]
    return sorted([*kept, *((number, kind, raw) for number, (kind, raw) in by.items())])
