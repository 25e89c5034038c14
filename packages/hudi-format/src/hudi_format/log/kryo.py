"""Kryo 4 decoder for delete lists of versions 1 and 2, which are serialised Java objects.

Source: bytes that SerializationUtils of Apache Hudi 0.15.0 makes of HoodieKey[] (version 1, up to 0.10) and
DeleteRecord[] (version 2, 0.11 to 0.13).  Classes go by name, the first time they occur; objects by number, from
the second time on; fields in the order of their names; numbers are varints.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hudi_format.errors import UnsupportedError
from hudi_format.schema.decimals import exact_decimal

_MODEL = "org.apache.hudi.common.model."
KEY_CLASS = _MODEL + "HoodieKey"
RECORD_CLASS = _MODEL + "DeleteRecord"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HALF_DAY_MS = 43_200_000
_DAY_MS = 86_400_000
_DECIMAL_BYTES, _DECIMAL_DIGITS = 16, 38  # the most that Spark and Arrow's decimal128 have

# Class numbers that Kryo itself gives out; what an application registers comes after them.
_REGISTERED = {0: "int", 1: "String", 2: "float", 3: "boolean", 4: "byte", 5: "char", 6: "short", 7: "long",
               8: "double"}  # fmt: skip
_FIRST_OF_HUDI = 10
# Characters that the texts of a list may have, as a text that is written once may stand for every record's.
_MOST_PER_BYTE, _FEW_CHARACTERS = 100, 1 << 20


class KryoError(ValueError):
    """Bytes that are not valid Kryo data; `offset` is the first invalid one."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class KryoDelete:
    """One deleted record; `ordering` is (Java's simple class name, value) or None."""

    key: str
    partition: str | None
    ordering: tuple[str, Any] | None = None


@dataclass(slots=True)
class _Input:
    """Cursor over Kryo data, with the classes and objects seen so far, by number."""

    data: bytes
    at: int = 0
    classes: dict[int, str] = field(default_factory=dict)
    objects: list[Any] = field(default_factory=list)

    def fail(self, what: str) -> KryoError:
        return KryoError(what, self.at)

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self.data) - self.at:
            raise self.fail(f"{count} bytes, but only {len(self.data) - self.at} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self, bits: int = 32) -> int:
        """Unsigned number; a long has at most nine bytes, the last with eight payload bits."""
        value, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            if bits == 64 and shift == 56:
                return value | byte << shift
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28 and bits == 32:
                raise self.fail("an unterminated number")

    def zigzag(self, bits: int = 32) -> int:
        value = self.varint(bits)
        return (value >> 1) ^ -(value & 1)

    def signed(self) -> int:
        """A long in Kryo's encoding for positive numbers."""
        value = self.varint(64)
        return value - (1 << 64) if value >= 1 << 63 else value

    def text(self) -> str | None:
        """A string: seven-bit characters ended by a high bit, or a count and UTF-16 units."""
        first = self.take(1)[0]
        if first < 0x80:
            start = self.at - 1
            end = next((i for i in range(start, len(self.data)) if self.data[i] >= 0x80), -1)
            if end < 0:
                raise self.fail("an unterminated text")
            self.at = end + 1
            return (self.data[start:end] + bytes([self.data[end] & 0x7F])).decode("ascii")
        count = first & 0x3F
        if first & 0x40:
            shift = 6
            while True:
                byte = self.take(1)[0]
                count |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
                if shift > 27:
                    raise self.fail("a text of an impossible length")
        if count == 0:
            return None
        if count - 1 > len(self.data) - self.at:
            raise self.fail(
                f"a text of {count - 1} characters, but only {len(self.data) - self.at} bytes are left"
            )
        return self._units(count - 1)

    def _units(self, count: int) -> str:
        start = self.at
        for _ in range(count):
            lead = self.take(1)[0]
            self.take(0 if lead < 0x80 else 1 if lead >> 5 == 6 else 2 if lead >> 4 == 14 else -1)
        try:
            # Characters beyond U+FFFF come as two units of three bytes each.
            units = self.data[start : self.at].decode("utf-8", "surrogatepass")
            return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError as e:
            raise KryoError("an invalid text", start) from e

    def class_name(self) -> str | None:
        """Class name of the next object, `#` and a number for classes registered by Hudi, or None."""
        tag = self.varint()
        if tag == 0:
            return None
        if tag >= 2:
            number = tag - 2
            if number in _REGISTERED:
                return _REGISTERED[number]
            if number < _FIRST_OF_HUDI:
                raise self.fail(f"class number {number} has no values")
            return f"#{number}"
        number = self.varint()
        if number not in self.classes:
            name = self.text()
            if number != len(self.classes) or not name:
                raise self.fail(f"class number {number} without a name")
            self.classes[number] = name
        return self.classes[number]

    def object(self, read: Callable[[], Any]) -> Any:
        """An object, null, or a reference to an earlier one."""
        mark = self.varint()
        if mark == 0:
            return None
        if mark >= 2:
            if mark - 2 >= len(self.objects):
                raise self.fail(f"a reference to object {mark - 2} of {len(self.objects)}")
            return self.objects[mark - 2]
        place = len(self.objects)
        self.objects.append(None)
        self.objects[place] = read()
        return self.objects[place]

    def key(self) -> tuple[str | None, str | None] | None:
        """Record key and partition path of a HoodieKey."""
        name = self.class_name()
        if name is None:
            return None
        if name != KEY_CLASS:
            raise self.fail(f"a {name} in place of a key")
        found = self.object(self._key_fields)
        if found is not None and not isinstance(found, tuple):
            raise self.fail("a reference to an object that is not a key")
        return found

    def _key_fields(self) -> tuple[str | None, str | None]:
        partition = self._string()
        return self._string(), partition

    def _string(self) -> str | None:
        value = self.object(self.text)
        if value is not None and not isinstance(value, str):
            raise self.fail("a reference to an object that is not a text")
        return value

    def record(self) -> KryoDelete | None:
        name = self.class_name()
        if name is None:
            return None
        if name != RECORD_CLASS:
            raise self.fail(f"a {name} in place of a delete")
        found = self.object(self._record_fields)
        if found is not None and not isinstance(found, KryoDelete):
            raise self.fail("a reference to an object that is not a delete")
        return found

    def _record_fields(self) -> KryoDelete:
        key = self.key()
        name = self.class_name()
        ordering = None if name is None else self._ordering(name)
        if key is None or key[0] is None:
            raise self.fail("a delete without a record key")
        return KryoDelete(key[0], key[1], ordering)

    def _ordering(self, name: str) -> tuple[str, Any] | None:
        if name in _NUMBERS:
            return name, _NUMBERS[name](self)
        plain = name.rpartition(".")[2]
        if name.startswith("#"):
            plain = "Utf8"  # the only class of an ordering value among those that Hudi registers
            read: Callable[[_Input], Any] | None = _registered_utf8
        else:
            read = _OBJECTS.get(name)
        if read is None and name.endswith("org.apache.avro.util.Utf8"):  # also where a bundle renamed it
            read = _utf8_fields
        if read is None:
            raise UnsupportedError(
                f"a delete with an ordering value of Java's class {name}",
                remedy="compact the table with the release of Apache Hudi that wrote it.",
            )
        value = self.object(lambda: read(self))
        if value is not None and type(value) is not _CLASSES[plain]:
            raise self.fail(f"a reference to an object that is not a {plain}")
        return None if value is None else (plain, value)


def _counted(i: _Input) -> bytes:
    """Bytes prefixed with their number plus one."""
    count = i.varint()
    return i.take(count - 1)


def _registered_utf8(i: _Input) -> str:
    try:
        return _counted(i).decode()
    except UnicodeDecodeError as e:
        raise i.fail("a text that is not UTF-8") from e


def _utf8_fields(i: _Input) -> str:
    """Fields of Avro's Utf8 by name: bytes, hash (from Avro 1.9 on), length, string."""
    data = i.object(lambda: _counted(i))
    if not isinstance(data, bytes):
        raise i.fail("a text without bytes")
    start = i.at
    for numbers in (2, 1):  # with and without the hash
        i.at = start
        length = [i.zigzag() for _ in range(numbers)][-1]
        if not 0 <= length <= len(data) or i.data[i.at : i.at + 1] not in (b"\0", b"\1"):
            continue
        try:
            text = data[:length].decode()
        except UnicodeDecodeError:
            continue
        known, end = len(i.objects), i.at
        cached = i._string()
        if cached is None or cached == text:
            return text
        del i.objects[known:]
        i.at = end
    raise i.fail("a text of unknown format")


def _decimal(i: _Input) -> Decimal:
    unscaled = _counted(i)
    scale = i.zigzag()
    if len(unscaled) > _DECIMAL_BYTES or not 0 <= scale <= _DECIMAL_DIGITS:
        raise i.fail(f"a decimal of {len(unscaled)} bytes and scale {scale}")
    return exact_decimal(int.from_bytes(unscaled, "big", signed=True), scale)


def _sql_date(i: _Input) -> date:
    # Midnight in the writer's zone; the nearest midnight of UTC is the same day for zones within 12 hours.
    return date(1970, 1, 1) + _days(i, (i.signed() + _HALF_DAY_MS) // _DAY_MS)


def _local_date(i: _Input) -> date:
    year = i.varint()
    month, day = i.take(2)
    try:
        return date(year, month, day)
    except (ValueError, OverflowError) as e:
        raise i.fail("an invalid date") from e


def _days(i: _Input, days: int) -> timedelta:
    if not -719_162 <= days <= 2_932_896:  # years 1 to 9999
        raise i.fail("an invalid date")
    return timedelta(days)


def _moment(i: _Input, micros: int) -> datetime:
    if not -62_135_596_800_000_000 <= micros < 253_402_300_800_000_000:  # years 1 to 9999
        raise i.fail("an invalid time")
    return _EPOCH + timedelta(microseconds=micros)


def _instant(i: _Input) -> datetime:
    seconds = i.signed()
    return _moment(i, seconds * 1_000_000 + i.varint() // 1000)


def _boolean(i: _Input) -> bool:
    value = i.take(1)[0]
    if value > 1:
        raise i.fail("an invalid boolean")
    return value == 1


def _float(i: _Input, size: int) -> float:
    value: float = struct.unpack(">f" if size == 4 else ">d", i.take(size))[0]
    return value


_NUMBERS: dict[str, Callable[[_Input], Any]] = {
    "int": lambda i: i.zigzag(),
    "long": lambda i: i.zigzag(64),
    "float": lambda i: _float(i, 4),
    "double": lambda i: _float(i, 8),
    "boolean": _boolean,
    "byte": lambda i: int.from_bytes(i.take(1), "big", signed=True),
    "short": lambda i: int.from_bytes(i.take(2), "big", signed=True),
}
_OBJECTS: dict[str, Callable[[_Input], Any]] = {
    "String": lambda i: i.text(),
    "java.math.BigDecimal": _decimal,
    "java.sql.Date": _sql_date,
    "java.sql.Timestamp": lambda i: _moment(i, i.signed() * 1000),
    "java.time.LocalDate": _local_date,
    "java.time.Instant": _instant,
}
_CLASSES: dict[str, type] = {
    "String": str,
    "Utf8": str,
    "BigDecimal": Decimal,
    "Date": date,
    "LocalDate": date,
    "Timestamp": datetime,
    "Instant": datetime,
}


def read_kryo(data: bytes, version: int) -> list[KryoDelete]:
    """The deletes of a list of version 1 or 2.

    Raises:
        KryoError: bytes that are no such list.
        UnsupportedError: an ordering value of a class that is not known.
    """
    i = _Input(bytes(data))
    element = KEY_CLASS if version == 1 else RECORD_CLASS
    name = i.class_name()
    if name != f"[L{element};":
        raise i.fail(f"a {name} in place of a list of {element}")
    if i.varint() != 1:
        raise i.fail("a null list")
    i.objects.append(None)
    count = i.varint() - 1
    if not 0 <= count <= len(i.data) - i.at:
        raise i.fail(f"a list of {count} deletes in {len(i.data) - i.at} bytes")
    out = []
    left = _MOST_PER_BYTE * len(i.data) + _FEW_CHARACTERS
    for _ in range(count):
        if version == 1:
            key = i.key()
            found = None if key is None or key[0] is None else KryoDelete(key[0], key[1])
        else:
            found = i.record()
        if found is None:
            raise i.fail("a delete without a record key")
        left -= len(found.key) + len(found.partition or "")
        if found.ordering is not None and isinstance(found.ordering[1], str):
            left -= len(found.ordering[1])
        if left < 0:
            raise i.fail(f"texts of more than {_MOST_PER_BYTE} times the list's length")
        out.append(found)
    if i.at != len(i.data):
        raise i.fail("bytes follow the list")
    return out
