"""Ordering values of deletes beside those of the records that they meet: their classes, and the column's type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from hudi_format.errors import SchemaError
from hudi_format.log.deletes import OrderingType

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
    """Ordering values of deletes in the type of the column."""
    if pa.types.is_timestamp(target) and pa.types.is_integer(values.type):
        values = values.cast(pa.timestamp("us")).cast(pa.timestamp(target.unit))
    if pa.types.is_timestamp(target):
        values = values.view(pa.timestamp(values.type.unit)).cast(target)
    return values.cast(target)


def of_several(values: Sequence[object], target: pa.DataType) -> pa.Array:
    """The values of several ordering fields, one tuple for each delete.

    Raises:
        SchemaError: they are not those of the table's fields.
    """
    count = target.num_fields if pa.types.is_struct(target) else 1
    if not pa.types.is_struct(target) or any(not isinstance(v, tuple) or len(v) != count for v in values):
        raise SchemaError(
            f"deletes with several ordering values, where the table has {count} ordering field{'s' * (count > 1)}"
        )
    try:
        fields = [of_column(pa.array([v[n] for v in values]), target[n].type) for n in range(count)]  # type: ignore[index]
    except pa.ArrowInvalid as e:
        raise SchemaError(f"ordering values of deletes do not fit the table's columns: {e}") from None
    return pa.StructArray.from_arrays(fields, [f.name for f in target])


def same_class(kind: OrderingType, column: pa.DataType) -> bool:
    """Whether a delete's ordering value is of the Java class that the column's values have."""
    check = _SAME_CLASS.get(kind)
    return check is not None and bool(check(column))


def widened(kind: OrderingType, column: pa.DataType) -> bool:
    """Whether a delete's ordering value is a number of a class that the column had before it was widened.

    Apache Hudi 1.0.2 and 1.2.0 compare the two, and fail (ClassCastException).  As numbers they have an order.
    """
    return column in _WIDER.get(kind, ())


__all__ = ["of_column", "of_several", "same_class", "widened"]
