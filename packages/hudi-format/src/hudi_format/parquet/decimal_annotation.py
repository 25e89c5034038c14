"""DECIMAL annotation of byte columns, which Arrow cannot write: patched into the footer.

Arrow writes each decimal as a fixed type of the least size.  Avro's decimals on bytes, and those on fixed types
that are longer, are such bytes in Apache Hudi's Parquet files too, and its readers ask for them so.

Source: Parquet format, "Logical types: DECIMAL" and the Thrift definition of FileMetaData and SchemaElement.
"""

from __future__ import annotations

from collections.abc import Mapping

_MAGIC = b"PAR1"
_TAIL = 8
# Thrift's compact protocol.
_BOOLEANS, _BYTE, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, 7, 8, (9, 10), 11, 12
_VARINTS = (4, 5, 6)
_I32 = 5
_SCHEMA = 2  # field of FileMetaData
_CHILDREN, _CONVERTED, _SCALE, _PRECISION, _LOGICAL = 5, 6, 7, 8, 10  # fields of SchemaElement
_DECIMAL_WAS, _DECIMAL_IS = 5, 5  # in ConvertedType and in LogicalType

Fields = list[tuple[int, int, bytes]]


def with_decimals(file: bytes, decimals: Mapping[int, tuple[int, int]]) -> bytes:
    """A Parquet file with some byte columns annotated as decimals.

    Args:
        file: as Arrow wrote it, without statistics of these columns: theirs are in another order.
        decimals: precision and scale, by the column's number among those that hold values.
    """
    length = int.from_bytes(file[-_TAIL:-4], "little")
    begin = len(file) - _TAIL - length
    footer = _Thrift(file[begin : begin + length])
    out: Fields = []
    for number, kind, raw in footer.fields():
        out.append((number, kind, _annotated(raw, decimals) if number == _SCHEMA else raw))
    written = _struct(out)
    return b"".join((file[:begin], written, len(written).to_bytes(4, "little"), _MAGIC))


def _annotated(elements: bytes, decimals: Mapping[int, tuple[int, int]]) -> bytes:
    source = _Thrift(elements)
    head, leaf = source.list_head(), 0
    parts = [elements[: source.at]]
    for _ in range(head[0]):
        fields = source.fields()
        if not any(number == _CHILDREN for number, _, _ in fields):
            if leaf in decimals:
                fields = _decimal(fields, *decimals[leaf])
            leaf += 1
        parts.append(_struct(fields))
    return b"".join(parts)


def _decimal(fields: Fields, precision: int, scale: int) -> Fields:
    digits = _struct([(1, _I32, _int(scale)), (2, _I32, _int(precision))])
    ours = {
        _CONVERTED: (_I32, _int(_DECIMAL_WAS)),
        _SCALE: (_I32, _int(scale)),
        _PRECISION: (_I32, _int(precision)),
        _LOGICAL: (_STRUCT, _struct([(_DECIMAL_IS, _STRUCT, digits)])),
    }
    kept = [f for f in fields if f[0] not in ours]
    return sorted([*kept, *((number, kind, raw) for number, (kind, raw) in ours.items())])


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _int(value: int) -> bytes:
    return _varint(value << 1)  # none is negative


def _struct(fields: Fields) -> bytes:
    out, last = bytearray(), 0
    for number, kind, raw in fields:
        step = number - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _int(number)
        out += raw
        last = number
    return bytes(out) + b"\0"


class _Thrift:
    """Cursor in bytes of Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def list_head(self) -> tuple[int, int]:
        """Number and type of a list's elements."""
        byte = self.data[self.at]
        self.at += 1
        count = byte >> 4
        return (count if count < 15 else self.varint()), byte & 15

    def fields(self) -> Fields:
        """Fields of a struct: number, type and bytes of each."""
        out: Fields = []
        last = 0
        while byte := self.data[self.at]:
            self.at += 1
            number = self.varint() >> 1 if byte < 16 else last + (byte >> 4)
            begin, kind = self.at, byte & 15
            if kind not in _BOOLEANS:  # a field's own boolean is its type
                self.skip(kind)
            out.append((number, kind, self.data[begin : self.at]))
            last = number
        self.at += 1
        return out

    def skip(self, kind: int) -> None:
        """Skip a value."""
        if kind == _BYTE or kind in _BOOLEANS:
            self.at += 1
        elif kind in _VARINTS:
            self.varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            length = self.varint()
            self.at += length
        elif kind in _LISTS:
            count, inner = self.list_head()
            for _ in range(count):
                self.skip(inner)
        elif kind == _STRUCT:
            self.fields()
        elif kind == _MAP:
            count = self.varint()
            if count:
                kinds = self.data[self.at]
                self.at += 1
                for _ in range(count):
                    self.skip(kinds >> 4)
                    self.skip(kinds & 15)
        else:
            raise ValueError(f"Thrift's type {kind}")
