"""Delete blocks: deleted keys with their ordering values.

Source: HoodieDeleteBlock and HoodieDeleteRecord.avsc of Apache Hudi (version 3 from 0.14 on; versions 1 and 2
are Java objects, see `hudi_format.log.kryo`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_format.errors import UnsupportedError
from hudi_format.log import _delete
from hudi_format.log.block import BlockType, LogBlock
from hudi_format.log.kryo import KryoDelete, KryoError, read_kryo
from hudi_format.schema.decimals import exact_decimal

AVRO_VERSION = 3
_NEWEST_VERSION = 3


class OrderingType(IntEnum):
    """Java class of an ordering value, by its number in the Avro union of version 3."""

    NONE = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    STRING = 7
    DATE = 8
    DECIMAL = 9
    TIME_MICROS = 10
    TIMESTAMP_MICROS = 11
    ARRAY = 12


ORDERING_ARROW: dict[OrderingType, pa.DataType] = {
    OrderingType.NONE: pa.null(),
    OrderingType.BOOLEAN: pa.bool_(),
    OrderingType.INT: pa.int32(),
    OrderingType.LONG: pa.int64(),
    OrderingType.FLOAT: pa.float32(),
    OrderingType.DOUBLE: pa.float64(),
    OrderingType.BYTES: pa.binary(),
    OrderingType.STRING: pa.string(),
    OrderingType.DATE: pa.date32(),
    OrderingType.DECIMAL: pa.decimal128(30, 15),
    OrderingType.TIME_MICROS: pa.time64("us"),
    OrderingType.TIMESTAMP_MICROS: pa.timestamp("us", "UTC"),
}
_DECIMAL_SCALE = 15
_DAY_MICROS = 86_400_000_000
# A value of an array of ordering values may also be a LocalDate, in the place where the union has ARRAY.
_LOCAL_DATE = OrderingType.ARRAY


@dataclass(frozen=True, slots=True)
class DeleteOrderingValues:
    """The ordering values of one type in a delete block.

    Attributes:
        type: Java's class of them.
        rows: which records have them, int64, ascending.
        values: one for each row; a list of tuples where the table has several ordering fields (ARRAY).
            Decimals of versions 1 and 2 have the digits that they need.
    """

    type: OrderingType
    rows: npt.NDArray[np.int64]
    values: pa.Array | list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class DeleteBlock:
    """Content of a delete block, one row per deleted record.

    Attributes:
        keys: record keys.
        partitions: partition paths, null where none was written.
        ordering: ordering values, grouped by their type; every row is in one of them, or has none.
        version: of the block's content.
    """

    keys: pa.StringArray
    partitions: pa.StringArray
    ordering: tuple[DeleteOrderingValues, ...]
    version: int = AVRO_VERSION

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def is_default(self) -> npt.NDArray[np.bool_]:
        """Mask of deletes without an ordering value: null, or the int 0 in its place.

        Such a delete wins over everything before it.
        """
        out = np.ones(len(self.keys), np.bool_)
        for part in self.ordering:
            out[part.rows] = False
            if part.type is OrderingType.INT:
                out[part.rows] = part.values.to_numpy(zero_copy_only=False) == 0  # type: ignore[union-attr]
        return out


def read_deletes(block: LogBlock, content: pa.Buffer) -> DeleteBlock:
    """The deletes of a delete block.

    Raises:
        CorruptFileError: the content is no list of deletes; with file and offset.
        UnsupportedError: a content version that is newer than this package.
    """
    if block.type is not BlockType.DELETE:
        raise ValueError(f"a {block.type.name} block holds no deletes")
    view = memoryview(content).cast("B")
    start = block.content_offset
    if len(view) < 8:
        raise block.broken("a delete block without its version and length", start)
    version = int.from_bytes(view[:4], "big", signed=True)
    length = int.from_bytes(view[4:8], "big", signed=True)
    if length != len(view) - 8:
        raise block.broken(f"deletes of {length} bytes declared in a content of {len(view)}", start + 4)
    block.check_version(version, "a delete block", _NEWEST_VERSION)
    if version < AVRO_VERSION:
        return _kryo_deletes(block, view[8:], start + 8, version)
    return _avro_deletes(block, view[8:], start + 8)


def _avro_deletes(block: LogBlock, data: memoryview, at: int) -> DeleteBlock:
    rows, read, sound = _delete.walk(data, np.empty((0, 7), np.int64))
    if not sound or read != len(data):
        raise block.broken("an inconsistent list of deletes", at + read)
    table = np.empty((rows, 7), np.int64)
    _delete.walk(data, table)
    columns = np.ascontiguousarray(table.T)
    try:
        keys = _texts(data, columns[0], columns[1], pa.string())
        if keys.null_count:
            raise block.broken("a delete without a record key", at)
        partitions = _texts(data, columns[2], columns[3], pa.string())
        ordering = tuple(
            DeleteOrderingValues(kind, where, _values(data, kind, columns[5][where], columns[6][where]))
            for kind in map(OrderingType, np.unique(columns[4]).tolist())
            if kind is not OrderingType.NONE
            for where in [np.flatnonzero(columns[4] == kind)]
        )
    except pa.ArrowInvalid as e:
        raise block.broken(f"deletes with an invalid text or value ({e})", at) from e
    return DeleteBlock(keys, partitions, ordering)


_BY_JAVA_CLASS = {
    "boolean": OrderingType.BOOLEAN,
    "byte": OrderingType.INT,
    "short": OrderingType.INT,
    "int": OrderingType.INT,
    "long": OrderingType.LONG,
    "float": OrderingType.FLOAT,
    "double": OrderingType.DOUBLE,
    "String": OrderingType.STRING,
    "Utf8": OrderingType.STRING,
    "BigDecimal": OrderingType.DECIMAL,
    "Date": OrderingType.DATE,
    "LocalDate": OrderingType.DATE,
    "Timestamp": OrderingType.TIMESTAMP_MICROS,
    "Instant": OrderingType.TIMESTAMP_MICROS,
}


def _kryo_deletes(block: LogBlock, data: memoryview, at: int, version: int) -> DeleteBlock:
    try:
        found = read_kryo(bytes(data), version)
        keys = pa.array([f.key for f in found], pa.string())
        partitions = pa.array([f.partition for f in found], pa.string())
        ordering = _by_class(found)
    except KryoError as e:
        raise block.broken(f"an unreadable list of deletes: {e}", at + e.offset) from e
    except (pa.ArrowInvalid, UnicodeEncodeError, OverflowError) as e:
        raise block.broken(f"deletes with an invalid text or value ({e})", at) from e
    except UnsupportedError as e:
        raise block.placed(e) from None
    return DeleteBlock(keys, partitions, ordering, version)


def _by_class(found: list[KryoDelete]) -> tuple[DeleteOrderingValues, ...]:
    groups: dict[OrderingType, tuple[list[int], list[Any]]] = {}
    for row, delete in enumerate(found):
        if delete.ordering is not None:
            rows, values = groups.setdefault(_BY_JAVA_CLASS[delete.ordering[0]], ([], []))
            rows.append(row)
            values.append(delete.ordering[1])
    out = []
    for kind in sorted(groups):
        rows, values = groups[kind]
        arrow = None if kind is OrderingType.DECIMAL else ORDERING_ARROW[kind]
        out.append(DeleteOrderingValues(kind, np.array(rows, np.int64), pa.array(values, arrow)))
    return tuple(out)


def _texts(
    data: memoryview, places: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], kind: pa.DataType
) -> pa.Array:
    """Texts or bytes gathered into one array, null where the length is -1."""
    present = lengths >= 0
    out = np.empty(int(lengths[present].sum()), np.uint8)
    offsets = np.empty(len(places) + 1, np.int32)
    _delete.gather(data, np.ascontiguousarray(places), np.ascontiguousarray(lengths), offsets, out)
    valid = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    array = pa.Array.from_buffers(kind, len(places), [valid, pa.py_buffer(offsets), pa.py_buffer(out)])
    array.validate(full=True)
    return array


def _values(
    data: memoryview, kind: OrderingType, numbers: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> pa.Array | list[tuple[Any, ...]]:
    if kind is OrderingType.ARRAY:
        return [_tuple(data, at, n) for at, n in zip(numbers.tolist(), lengths.tolist(), strict=True)]
    arrow = ORDERING_ARROW[kind]
    if kind is OrderingType.DECIMAL:
        return pa.array(
            [_decimal(data[at : at + n]) for at, n in zip(numbers.tolist(), lengths.tolist(), strict=True)],
            arrow,
        )
    if kind in (OrderingType.STRING, OrderingType.BYTES):
        return _texts(data, numbers, lengths, arrow)
    if kind is OrderingType.FLOAT:
        return pa.array(numbers.astype(np.uint32).view(np.float32))
    if kind is OrderingType.DOUBLE:
        return pa.array(np.ascontiguousarray(numbers).view(np.float64))
    if kind is OrderingType.BOOLEAN:
        return pa.array(numbers.astype(np.bool_))
    if kind is OrderingType.DATE:
        return pa.array(numbers.astype(np.int32)).cast(arrow)
    if kind is OrderingType.TIME_MICROS and ((numbers < 0) | (numbers >= _DAY_MICROS)).any():
        raise pa.ArrowInvalid("a time of day outside of a day")
    return pa.array(numbers).cast(arrow)


def _decimal(data: Sequence[int] | memoryview) -> Decimal:
    if len(data) > 16:
        raise pa.ArrowInvalid(f"a decimal of {len(data)} bytes")
    return exact_decimal(int.from_bytes(bytes(data), "big", signed=True), _DECIMAL_SCALE)


def _tuple(data: memoryview, at: int, length: int) -> tuple[Any, ...]:
    """The values of one record with several ordering fields."""
    out: list[Any] = []
    for branch, number, size in _delete.array_items(data, at, length) or ():
        if branch == OrderingType.NONE:
            out.append(None)
            continue
        kind = OrderingType.DATE if branch == _LOCAL_DATE else OrderingType(branch)
        numbers, sizes = np.array([number], np.int64), np.array([size], np.int64)
        values = _values(data, kind, numbers, sizes)
        try:
            out.append(values[0].as_py() if isinstance(values, pa.Array) else values[0])
        except (OverflowError, ValueError) as e:
            raise pa.ArrowInvalid("a date or time outside the years 1 to 9999") from e
    return tuple(out)
