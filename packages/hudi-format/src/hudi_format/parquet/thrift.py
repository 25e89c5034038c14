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
        try:
            value, self.at = _varint_at(self.data, self.at)
        except IndexError:
            raise ValueError("it is cut off") from None
        return value

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

    def fields(self) -> Fields:
        """Fields of a struct."""
        out: Fields = []
        data, at, number = self.data, self.at, 0
        try:
            while byte := data[at]:
                kind = byte & 15
                if not kind:
                    raise ValueError("Thrift's type 0")
                if byte > 15:
                    number += byte >> 4
                    at += 1
                else:
                    number, at = _varint_at(data, at + 1)
                    number >>= 1
                begin = at
                if kind not in BOOLEANS:  # a field's own boolean is its type
                    at = _behind(data, at, kind, 0)
                out.append((number, kind, data[begin:at]))
        except IndexError:
            raise ValueError("it is cut off") from None
        self.at = at + 1
        return out

    def skip(self, kind: int) -> None:
        """Skip a value."""
        try:
            self.at = _behind(self.data, self.at, kind, 0)
        except IndexError:
            raise ValueError("it is cut off") from None


# Footers have thousands of values that nobody looks at: they are walked over by places, without a call for each byte.


def _behind(data: bytes, at: int, kind: int, depth: int) -> int:
    """Place behind a value; IndexError where the bytes end before it."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if kind in _VARINTS:
        return _behind_varint(data, at)
    if kind == BINARY:
        length, at = _varint_at(data, at)
        return _forward(data, at, length)
    if kind == STRUCT:
        while byte := data[at]:
            inner = byte & 15
            if not inner:
                raise ValueError("Thrift's type 0")
            at = at + 1 if byte > 15 else _behind_varint(data, at + 1)
            if inner not in BOOLEANS:
                at = _behind(data, at, inner, depth + 1)
        return at + 1
    if kind == BYTE or kind in BOOLEANS:
        return _forward(data, at, 1)
    if kind == DOUBLE:
        return _forward(data, at, 8)
    if kind in LISTS:
        head = data[at]
        count, at = (head >> 4, at + 1) if head < 0xF0 else _varint_at(data, at + 1)
        for _ in range(count):
            at = _behind(data, at, head & 15, depth + 1)
        return at
    if kind == MAP:
        count, at = _varint_at(data, at)
        if count:
            kinds = data[at]
            at += 1
            for _ in range(count):
                at = _behind(data, at, kinds >> 4, depth + 1)
                at = _behind(data, at, kinds & 15, depth + 1)
        return at
    raise ValueError(f"Thrift's type {kind}")


def _behind_varint(data: bytes, at: int) -> int:
    for place in range(at, at + 10):
        if data[place] < 0x80:
            return place + 1
    raise ValueError("a number of more than 64 bits")


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    """A number, and the place behind it."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    end = _behind_varint(data, at)
    value = 0
    for place in range(end - 1, at - 1, -1):
        value = value << 7 | data[place] & 0x7F
    return value, end


def _forward(data: bytes, at: int, length: int) -> int:
    if length > len(data) - at:
        raise IndexError
    return at + length


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
