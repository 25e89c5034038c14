"""Ordering values in comparable form: 64-bit numbers, or text in UTF-8 byte order.

Source: `compareTo` of the values that Apache Hudi holds: Integer, Long, Boolean, BigDecimal, LocalDate, Avro's
Utf8 (by bytes, which is the order of code points), ByteBuffer (by signed bytes), and Float and Double (-0.0
before 0.0, NaN after all else and equal to itself).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import is_text, one_array
from hudi_format.arrow.text_buffers import TextBuffers, one_text_array, text_buffers
from hudi_format.errors import SchemaError
from hudi_format.keygen.record_keys import nested_column
from hudi_format.log.delete_block import OrderingType

_UNITS = ("s", "ms", "us", "ns")
_SIGN = np.int64(-(2**63))


@dataclass(frozen=True, slots=True)
class OrderingValues:
    """Values of one column, comparable within one call's results.

    Attributes:
        numbers: int64 in the values' order, or None where `text` is used.
        text: the values themselves.
        valid: uint8, 1 where a value is not null; None where none is null.
        source: the Arrow array that `text` borrows from.
    """

    numbers: np.ndarray | None
    text: TextBuffers | None
    valid: np.ndarray | None
    source: pa.Array | None = None


def ordering_values(*columns: pa.Array | pa.ChunkedArray) -> list[OrderingValues]:
    """Columns in a form comparable with one another.

    Structs are compared field by field, as the values of several ordering fields are; null comes first there.

    Raises:
        SchemaError: a type without an order, or types that do not compare with one another.
    """
    if any(pa.types.is_struct(c.type) for c in columns):
        return _of_structs(columns)
    arrays = _common([_plain(c) for c in columns])
    kind = arrays[0].type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = [one_text_array(a) for a in arrays]
        return [OrderingValues(None, text_buffers(t), _valid(t), t) for t in texts]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _ranked([_signed_bytes(a) for a in arrays])
    if pa.types.is_decimal(kind) and not (pa.types.is_decimal128(kind) and kind.precision <= 18):
        return _ranked(arrays)  # beyond 64 bits
    return [OrderingValues(_numbers(a), None, _valid(a)) for a in arrays]


def ordering_column(
    rows: pa.Table, field: str | None, sequence: bool = False
) -> pa.Array | pa.ChunkedArray | None:
    """Ordering values of rows; None without a field, or where the rows lack it.

    Args:
        field: its name, dots between levels.
        sequence: they are places in a log of changes (`sequences`).

    Raises:
        SchemaError: as `sequences`.
    """
    column = nested_column(rows, field) if field else None
    return sequences(column) if sequence and column is not None else column


def sequences(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Log positions such as `10.254` (file and position) as structs of two numbers.

    Raises:
        SchemaError: a column or a value of another kind.
    """
    text = _plain(column)
    if not (pa.types.is_string(text.type) or pa.types.is_large_string(text.type)):
        raise SchemaError(f"log positions must be text such as 10.254, not {text.type}", remedy=_POSITIONS)
    found = pc.extract_regex(text, _SEQUENCE)
    wrong = pc.and_(text.is_valid(), pc.is_null(found))
    if pc.any(wrong).as_py():
        value = text.filter(wrong)[0].as_py()
        raise SchemaError(f"{value!r} is not a log position such as 10.254", remedy=_POSITIONS)
    numbers = []
    for name in ("file", "position"):
        part = pc.struct_field(found, name)
        try:
            numbers.append(part.cast(pa.int64()))
        except pa.ArrowInvalid as e:
            raise SchemaError(f"a log position exceeds 64 bits: {e}", remedy=_POSITIONS) from None
    return pa.StructArray.from_arrays(numbers, ["file", "position"], mask=pc.is_null(text))


_SEQUENCE = r"^(?P<file>[+-]?[0-9]+)\.(?P<position>[+-]?[0-9]+)(?:\..*)?$"
_POSITIONS = (
    "make the column of the number in the name of the binary log's file and the position in it: 3.154 for "
    "mysql-bin.000003 and 154. A stored record that has another value has to be deleted."
)


def _of_structs(columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[OrderingValues]:
    arrays = [one_array(c) for c in columns]
    if any(not pa.types.is_struct(a.type) or a.type.num_fields != arrays[0].type.num_fields for a in arrays):
        raise SchemaError("values of several ordering fields are not comparable with those of one")
    ends = np.cumsum([len(a) for a in arrays])
    places = np.zeros(int(ends[-1]), dtype=np.int64)
    for n in range(arrays[0].type.num_fields):
        field = _ranks([a.flatten()[n] for a in arrays])
        # The place among the fields before, and within it that of this one.
        pairs = places * (int(field.max(initial=0)) + 1) + field
        places = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    parts = np.split(places, ends[:-1])
    return [
        OrderingValues(np.ascontiguousarray(p), None, _valid(a)) for p, a in zip(parts, arrays, strict=True)
    ]


def _ranks(columns: Sequence[pa.Array]) -> np.ndarray:
    """Ranks of the values of all columns, one after the other, from 1 on; null is 0."""
    values = ordering_values(*columns)
    if values[0].text is None:
        numbers = np.concatenate([v.numbers for v in values if v.numbers is not None])
        ranks = np.unique(numbers, return_inverse=True)[1] + 1
    else:
        texts = [v.source.cast(pa.large_binary()) for v in values if v.source is not None]
        ranks = np.concatenate([v.numbers for v in _ranked(texts) if v.numbers is not None])
    there = [
        np.ones(len(c), bool) if v.valid is None else v.valid != 0
        for c, v in zip(columns, values, strict=True)
    ]
    return np.where(np.concatenate(there), ranks, 0)


def _ranked(arrays: Sequence[pa.Array]) -> list[OrderingValues]:
    """Ranks in the sorted order of all values."""
    ranks = pc.rank(pa.concat_arrays(arrays), sort_keys="ascending", tiebreaker="dense")
    numbers = ranks.to_numpy(zero_copy_only=False).astype(np.int64)
    parts = np.split(numbers, np.cumsum([len(a) for a in arrays])[:-1])
    return [
        OrderingValues(np.ascontiguousarray(p), None, _valid(a)) for p, a in zip(parts, arrays, strict=True)
    ]


def _signed_bytes(array: pa.Array) -> pa.Array:
    """Bytes in unsigned order equal to that of Java's ByteBuffer, which compares signed."""
    array = pa.concat_arrays([array])  # offset 0
    validity, offsets, data = array.buffers()
    turned = np.frombuffer(data or b"", dtype=np.uint8) ^ np.uint8(0x80)
    return pa.Array.from_buffers(
        array.type,
        len(array),
        [validity, offsets, pa.py_buffer(turned.tobytes())],
        array.null_count,
        array.offset,
    )


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One plain array, not chunked or dictionary-encoded; text as string."""
    column = one_array(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _family(column.type) == "text" and not pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    return column


def check_comparable(kind: pa.DataType) -> None:
    """Check that values of a type have an order.

    Raises:
        SchemaError: they have none.
    """
    _family(kind)


def _family(kind: pa.DataType) -> str:
    checks = {
        "null": pa.types.is_null,
        "whole number": pa.types.is_integer,
        "fraction": pa.types.is_floating,
        "boolean": pa.types.is_boolean,
        "decimal": pa.types.is_decimal,
        "date": pa.types.is_date,
        "timestamp": pa.types.is_timestamp,
    }
    for name, check in checks.items():
        if check(kind):
            return name
    if is_text(kind):
        return "text"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "bytes"
    raise SchemaError(
        f"values of type {kind} are not comparable",
        remedy="choose an ordering field that is a number, a date, a timestamp, a boolean, text or bytes.",
        type=str(kind),
    )


def _common(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Arrays in a common type to which all values convert without loss of order."""
    kinds = [a.type for a in arrays if not pa.types.is_null(a.type)] or [pa.int64()]
    families = {_family(k) for k in kinds}
    target = kinds[0]
    if families == {"text"}:
        target = pa.large_string() if any(pa.types.is_large_string(k) for k in kinds) else pa.string()
    elif families == {"bytes"}:
        target = pa.large_binary() if any(pa.types.is_large_binary(k) for k in kinds) else pa.binary()
    elif families == {"whole number"}:
        if len(set(kinds)) > 1 or target != pa.uint64():
            target = pa.int64()
    elif families <= {"whole number", "fraction"}:
        target = pa.float64()
    elif families == {"decimal"}:
        scale = max(k.scale for k in kinds)
        whole = max(k.precision - k.scale for k in kinds)
        target = pa.decimal128(whole + scale, scale) if whole + scale <= 38 else pa.decimal256(76, scale)
    elif families == {"date"}:
        target = pa.date32()
    elif families == {"timestamp"}:
        target = pa.timestamp(max((k.unit for k in kinds), key=_UNITS.index))
    elif len(families) > 1:
        raise SchemaError(
            f"ordering values of types {' and '.join(str(k) for k in kinds)} are not comparable",
            remedy="give the ordering field the type that it has in the table.",
        )
    return [_cast(a, target) for a in arrays]


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type):
        array = array.view(pa.timestamp(array.type.unit))  # the zone does not change the moment
    try:
        return array.cast(target)
    except pa.ArrowInvalid as e:
        raise SchemaError(f"ordering values of type {array.type} do not fit {target}: {e}") from e


def _numbers(array: pa.Array) -> np.ndarray:
    kind = array.type
    if pa.types.is_decimal128(kind):
        # Up to 18 digits the low word of the two's complement is the value.
        words = np.frombuffer(array.buffers()[1] or b"", dtype="<i8")
        start = 2 * array.offset
        return words[start : start + 2 * len(array) : 2].astype(np.int64)
    if pa.types.is_floating(kind):
        return _float_order(pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        array = array.cast(pa.int8() if pa.types.is_boolean(kind) else pa.int32()).cast(pa.int64())
    elif kind == pa.uint64():
        raw = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(raw).view(np.int64) ^ _SIGN
    elif kind != pa.int64():
        array = array.cast(pa.int64())
    if array.null_count:
        array = pc.fill_null(array, 0)
    return np.ascontiguousarray(array.to_numpy(zero_copy_only=False))


def _float_order(values: np.ndarray) -> np.ndarray:
    """Integers in the order of Java's Double.compare."""
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    # Negative doubles have descending bit patterns; turn all bits but the sign.
    return bits ^ ((bits >> np.int64(63)) & np.int64(2**63 - 1))


def _valid(array: pa.Array) -> np.ndarray | None:
    if not array.null_count:
        return None
    out: np.ndarray = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    return out


# Ordering values of deletes beside those of the records that they meet: their classes, and the column's type.

# Java classes: a delete's value of another type is none of these in the records of a log (Avro's Utf8, a number
# of days, raw bytes of a decimal), so that Apache Hudi never compares the two.
_SAME_CLASS: dict[OrderingType, Callable[[pa.DataType], bool]] = {
    OrderingType.BOOLEAN: pa.types.is_boolean,
    OrderingType.INT: pa.types.is_int32,
    OrderingType.LONG: lambda t: pa.types.is_int64(t) or pa.types.is_timestamp(t),
    OrderingType.FLOAT: pa.types.is_float32,
    OrderingType.DOUBLE: pa.types.is_float64,
    OrderingType.TIMESTAMP_MICROS: pa.types.is_timestamp,
}

_WIDER: dict[OrderingType, tuple[pa.DataType, ...]] = {
    OrderingType.INT: (pa.int64(), pa.float32(), pa.float64()),
    OrderingType.LONG: (pa.float32(), pa.float64()),
    OrderingType.FLOAT: (pa.float64(),),
}


def of_column(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Ordering values of deletes in the column's type."""
    if pa.types.is_timestamp(target) and pa.types.is_integer(values.type):
        values = values.cast(pa.timestamp("us")).cast(pa.timestamp(target.unit))
    if pa.types.is_timestamp(target):
        values = values.view(pa.timestamp(values.type.unit)).cast(target)
    return values.cast(target)


def of_several(values: Sequence[object], target: pa.DataType) -> pa.Array:
    """Values of several ordering fields, one struct per delete.

    Raises:
        SchemaError: they are not those of the table's fields.
    """
    count = target.num_fields if pa.types.is_struct(target) else 1
    if not pa.types.is_struct(target) or any(not isinstance(v, tuple) or len(v) != count for v in values):
        raise SchemaError(
            f"deletes with several ordering values, but the table has {count} ordering field{'s' * (count > 1)}"
        )
    try:
        fields = [of_column(pa.array([v[n] for v in values]), target[n].type) for n in range(count)]  # type: ignore[index]
    except pa.ArrowInvalid as e:
        raise SchemaError(f"ordering values of deletes do not fit the table's columns: {e}") from None
    return pa.StructArray.from_arrays(fields, [f.name for f in target])


def same_class(kind: OrderingType, column: pa.DataType) -> bool:
    """Whether a delete's ordering value has the Java class of the column's values."""
    check = _SAME_CLASS.get(kind)
    return check is not None and bool(check(column))


def widened(kind: OrderingType, column: pa.DataType) -> bool:
    """Whether a delete's ordering value is a number of the column's type before widening.

    Apache Hudi 1.0.2 and 1.2.0 compare the two, and fail (ClassCastException).  As numbers they have an order.
    """
    return column in _WIDER.get(kind, ())


def null_is_zero(column: pa.Array | pa.ChunkedArray | None) -> pa.Array | pa.ChunkedArray | None:
    """Ordering values as Apache Hudi 1.x compares them: int 0 in place of null.

    Only values that are themselves ints in Java compare with it; with others it fails on such a record, and null
    stays before all else here.
    """
    if column is None or not column.null_count or not pa.types.is_int32(column.type):
        return column
    return pc.fill_null(column, 0)
