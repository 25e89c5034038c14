"""Structs of Thrift's compact protocol, and the footers that they make.

They are taken apart and put together again.  Fields are the bytes that they are: what is not looked at stays as it
was written.  Damaged bytes end in `ValueError`.

Source: Thrift compact protocol; Parquet format, "File format": a footer, its length in 4 bytes, and "PAR1".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

from hudi_format.errors import CorruptFileError
from hudi_format.parquet import _fields

MAGIC = b"PAR1"
TAIL = 8  # bytes behind the footer

BOOLEANS, BINARY, LISTS, STRUCT = (1, 2), 8, (9, 10), 12
I16, I32, I64, LIST = 4, 5, 6, 9
_VARINTS = (I16, I32, I64)

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


def text(data: bytes) -> bytes:
    """A text, or bytes."""
    return varint(len(data)) + data


def structs(values: Sequence[bytes]) -> bytes:
    """A list of structs."""
    return _list(STRUCT, values)


def texts(values: Iterable[bytes]) -> bytes:
    """A list of texts."""
    return _list(BINARY, [text(v) for v in values])


def _list(kind: int, values: Sequence[bytes]) -> bytes:
    count = len(values)
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + varint(count)
    return head + b"".join(values)


def footer_of(file: Any) -> tuple[int, bytes]:
    """Place and bytes of the footer of a whole file in memory, which Arrow has just written."""
    view = memoryview(file)
    end = len(view) - TAIL
    begin = end - int.from_bytes(view[end : end + 4], "little")
    return begin, bytes(view[begin:end])


def file_end(footer: bytes) -> bytes:
    """The last bytes of a file with this footer."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


@contextmanager
def of_base_file() -> Iterator[None]:
    """Turn what is wrong with a footer's bytes into CorruptFileError, without its file."""
    try:
        yield
    except ValueError as e:
        raise CorruptFileError(f"the base file cannot be read as Parquet: {e}") from None


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
        data, at, value = self.data, self.at, 0
        for shift in range(0, 70, 7):
            if at >= len(data):
                raise ValueError("it is cut off")
            value |= (data[at] & 0x7F) << shift
            at += 1
            if data[at - 1] < 0x80 and value < 1 << 64:
                self.at = at
                return value
        raise ValueError("a number of more than 64 bits")

    def list_head(self) -> tuple[int, int]:
        """Number and type of a list's elements."""
        byte = self._byte()
        count = byte >> 4
        return (count if count < 15 else self.varint()), byte & 15

    def structs(self) -> list[Fields]:
        """A list of structs."""
        out, self.at = _fields.structs(self.data, self.at)
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
        out, self.at = _fields.fields(self.data, self.at)
        return out

    def skip(self, kind: int) -> None:
        """Skip a value."""
        self.at = _fields.behind(self.data, self.at, kind)


def once(fields: Fields, known: Set[int] | None = None) -> Fields:
    """The fields, each of which is there once.

    Of two Arrow takes the last, and rows would be counted otherwise.

    Args:
        known: their numbers; None for any.

    Raises:
        ValueError: one that is there twice, or is not known.
    """
    numbers = {number for number, _, _ in fields}
    if len(numbers) < len(fields):
        raise ValueError("a field that is there twice")
    if known is not None and not numbers <= known:
        raise ValueError(f"a field that is not known: {min(numbers - known)}")
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
            value = (raw[0] if len(raw) == 1 else Cursor(raw).varint()) if kind in _VARINTS else 1
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
