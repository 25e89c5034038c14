"""Records of the metadata table's indexes, as they are written.

Statistics of columns, bloom filters, locations of keys.

Of table version 6: the columns of what is written are those of its record schema, `written_schema`.

Source: HoodieMetadataPayload of Apache Hudi 0.15; spec "Metadata table", sections 3 and 5.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_format.parquet.row_groups import RowGroup
from hudi_format.schema.avro import from_avro
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_index.hashing.java import text_bounds
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table.encoding import stored_schema
from hudi_index.metadata_table.records import payload_field

_UNKNOWN = -1
_LONG = 64  # characters, or bytes, of a bound that is greater than all values
_DECIMAL_SCALE, _DECIMAL_DIGITS = 15, 30
# Days and microseconds that Java's calendars still reach: Apache Hudi takes bounds of times through them.
_FAR_DAYS, _FAR_MICROS = 10**7, 10**18
_A_DAY = 86_400_000_000
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TEXT, _BINARY = (pa.types.is_string, pa.types.is_large_string), (
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary,
)  # fmt: skip
# Members of the union of a bound, by what holds of the column's type.
_DECIMAL, _BYTES = 8, 5
_MEMBERS = (
    (0, (pa.types.is_boolean,)),
    (1, (pa.types.is_int8, pa.types.is_int16, pa.types.is_int32, pa.types.is_time32)),
    (2, (pa.types.is_int64, pa.types.is_timestamp, pa.types.is_time64)),
    (3, (pa.types.is_float32,)),
    (4, (pa.types.is_float64,)),
    (_BYTES, _BINARY),
    (6, _TEXT),
    (7, (pa.types.is_date32,)),
    (_DECIMAL, (pa.types.is_decimal128,)),
)
_TIME_OF_DAY = "member9"
# A file id is a UUID with an index, or a text of its own.
_BY_UUID, _BY_TEXT = 0, 1
_NO_INDEX = -1
_HALF = 1 << 63


@cache
def written_schema(partition: str) -> pa.Schema:
    """Columns of a partition's records in version 6: key, type and the partition's own."""
    key, kind, payload = plain_schema(partition)
    if partition == k.COLUMN_STATS:
        payload = payload.with_type(pa.struct([_with_times(f) for f in payload.type]))
    return pa.schema([key, kind, payload])


@cache
def plain_schema(partition: str) -> pa.Schema:
    """Columns to read records in that are written again: times of day are numbers."""
    own = from_avro(stored_schema(), times_as_numbers=True)
    return pa.schema([own.field(n).with_nullable(True) for n in ("key", "type", payload_field(partition))])


def _with_times(field: pa.Field) -> pa.Field:
    """A field of statistics; of a bound, with the member that is a time of day."""
    if not pa.types.is_struct(field.type):
        return field
    time = pa.struct([pa.field("value", pa.time64("us"), nullable=False)])
    members = [f.with_type(time) if f.name == _TIME_OF_DAY else f for f in field.type]
    return field.with_type(pa.struct(members))


def _batch(partition: str, keys: Sequence[str], kind: int, payloads: Sequence[Any]) -> pa.RecordBatch:
    schema = written_schema(partition)
    columns = [
        pa.array(keys, pa.string()),
        pa.repeat(pa.scalar(kind, pa.int32()), len(keys)),
        pa.array(payloads, schema.field(2).type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# --- column statistics ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """Statistics of a column of a file.

    Attributes:
        low, high: bounds; None where they are not known.
        values, nulls, packed, unpacked: values with nulls, nulls, bytes in the file and before compression; -1 for
            unknown.
    """

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    values: int = _UNKNOWN
    nulls: int = _UNKNOWN
    packed: int = _UNKNOWN
    unpacked: int = _UNKNOWN


def ranges_of(groups: Sequence[RowGroup], columns: Mapping[str, pa.DataType]) -> dict[str, ColumnRange]:
    """Statistics of a Parquet file's columns by dotted path, from its footer.

    Columns that the file does not have are absent.
    Apache Hudi's readers leave a file out whose bounds are not known, so that these are the widest then; a column whose
    type has none `lacks_bounds`.  Those of
    floats end in infinity: Parquet's leave NaN out of account, and a bound that is NaN leaves all files out.  Record
    keys lie between the bounds in Java's order of text too, by which Apache Hudi's index looks for them, but where the
    greatest one begins with a character above U+FFFF: no text is behind all keys then, and bounds are as its own.
    """
    out = {}
    for name, kind in columns.items():
        chunks = [g.columns[name] for g in groups if name in g.columns]
        if not chunks or len(chunks) != len(groups):
            continue
        filled = [c for c in chunks if c.nulls is None or c.nulls < c.num_values]
        bounds = [c.bounds(kind) for c in filled]
        known = [b for b in bounds if b is not None]
        low, high = (None, None) if not filled else _widest(kind)
        if known and len(known) == len(bounds):
            low = min((b[0] for b in known), key=_order)
            if not pa.types.is_floating(kind):
                high = max((b[1] for b in known), key=_order)
            if name == RECORD_KEY and low is not None and high is not None:
                both = text_bounds(low.as_py(), high.as_py())
                low, high = (low, high) if both is None else (pa.scalar(b, kind) for b in both)
        nulls = [c.nulls for c in chunks]
        out[name] = ColumnRange(
            low,
            high,
            sum(c.num_values for c in chunks),
            _UNKNOWN if None in nulls else sum(n for n in nulls if n is not None),
            sum(c.packed for c in chunks),
            sum(c.unpacked for c in chunks),
        )
    return out


def _widest(kind: pa.DataType) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """Bounds between which all values of a type lie, but NaN; None for types that have none.

    Times are those that Apache Hudi can take.
    """
    t = pa.types
    if t.is_floating(kind):
        ends: tuple[Any, Any] = (-math.inf, math.inf)
    elif t.is_boolean(kind):
        ends = (False, True)
    elif t.is_integer(kind):
        ends = (-(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1)
    elif _is(kind, _TEXT):
        ends = ("", "\U0010ffff" * _LONG)
    elif t.is_fixed_size_binary(kind):
        ends = (b"\x00" * kind.byte_width, b"\xff" * kind.byte_width)
    elif _is(kind, _BINARY):
        ends = (b"", b"\xff" * _LONG)
    elif t.is_decimal128(kind):
        most = Decimal(10**kind.precision - 1).scaleb(-kind.scale, Context(prec=kind.precision))
        ends = (most.copy_negate(), most)  # arithmetic rounds to 28 digits
    elif t.is_date32(kind):
        ends = (-_FAR_DAYS, _FAR_DAYS)
    elif t.is_timestamp(kind):
        far = min(_FAR_MICROS * _PER_SECOND[kind.unit] // 10**6, _HALF - 1)
        ends = (-far, far)
    elif t.is_time(kind):
        ends = (0, _A_DAY * _PER_SECOND[kind.unit] // 10**6 - 1)
    else:
        return None, None
    if t.is_temporal(kind):
        plain = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.scalar(ends[0], plain).cast(kind), pa.scalar(ends[1], plain).cast(kind)
    return pa.scalar(ends[0], kind), pa.scalar(ends[1], kind)


def _is(kind: pa.DataType, one_of: Sequence[Callable[[pa.DataType], bool]]) -> bool:
    return any(holds(kind) for holds in one_of)


@lru_cache(maxsize=1024)
def _member_of(kind: pa.DataType) -> int | None:
    return next((n for n, one_of in _MEMBERS if _is(kind, one_of)), None)


def _order(value: pa.Scalar) -> Any:
    if pa.types.is_temporal(value.type):
        return value.value
    plain = value.as_py()
    return plain.encode() if isinstance(plain, str) else plain


def column_stats_records(
    ranges: Mapping[tuple[str, str], Mapping[str, ColumnRange]],
    deleted: Mapping[tuple[str, str], Sequence[str]] | None = None,
) -> pa.RecordBatch:
    """Records of `column_stats`.

    Args:
        ranges: by partition path and file name, then by column.
        deleted: columns whose statistics are struck out, by partition path and file name.
    """
    keys: list[str] = []
    payloads: list[dict[str, Any]] = []
    for (partition, name), columns in ranges.items():
        for column, found in columns.items():
            keys.append(k.column_stats_key(column, partition, name))
            payloads.append(_stats(name, column, found, deleted=False))
    for (partition, name), struck in (deleted or {}).items():
        for column in struck:
            keys.append(k.column_stats_key(column, partition, name))
            payloads.append(_stats(name, column, ColumnRange(), deleted=True))
    return _batch(k.COLUMN_STATS, keys, k.STATS, payloads)


def lacks_bounds(found: ColumnRange) -> bool:
    """Whether a column with values has no bounds that a record can hold.

    Apache Hudi takes such a file for one of nulls, and leaves it out for each filter on the column.
    """
    return found.nulls != found.values and _both(found) is None


def _stats(name: str, column: str, found: ColumnRange, *, deleted: bool) -> dict[str, Any]:
    low, high = _both(found) or (None, None)
    return {
        "fileName": name, "columnName": column, "minValue": low, "maxValue": high, "valueCount": found.values,
        "nullCount": found.nulls, "totalSize": found.packed, "totalUncompressedSize": found.unpacked,
        "isDeleted": deleted,
    }  # fmt: skip


def _both(found: ColumnRange) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Both bounds as the union has them; None where it does not have both."""
    low, high = _wrapped(found.low, ROUND_FLOOR), _wrapped(found.high, ROUND_CEILING)
    return None if low is None or high is None else (low, high)


def _wrapped(value: pa.Scalar | None, rounding: str) -> dict[str, Any] | None:
    """A bound as the union's member for its type; None where there is none."""
    if value is None or not value.is_valid:
        return None
    kind = value.type
    member = _member_of(kind)
    if member is None:
        return None
    if pa.types.is_decimal128(kind):
        return _decimal(value.as_py(), kind, rounding)
    plain = value.value if pa.types.is_temporal(kind) else value.as_py()
    if pa.types.is_timestamp(kind):
        # Apache Hudi takes all times for microseconds.
        whole, rest = divmod(plain * 10**6, _PER_SECOND[kind.unit])
        plain = whole + (rest > 0 and rounding == ROUND_CEILING)
        if not -_HALF <= plain < _HALF:
            return None
    return {f"member{member}": {"value": plain}}


def _decimal(value: Decimal, kind: pa.Decimal128Type, rounding: str) -> dict[str, Any] | None:
    """A decimal in the scale of records; None where the column's type cannot hold it then.

    With more digits than the record's type says it is bytes, which is what Apache Hudi's own compaction makes of all.
    """
    context = Context(prec=kind.precision + _DECIMAL_SCALE + 2, rounding=rounding)
    scaled = value.quantize(Decimal(1).scaleb(-_DECIMAL_SCALE), context=context)
    if scaled.copy_abs() >= Decimal(10) ** (kind.precision - kind.scale):
        return None
    if len(scaled.as_tuple().digits) <= _DECIMAL_DIGITS:
        return {f"member{_DECIMAL}": {"value": scaled}}
    unscaled = int(scaled.scaleb(_DECIMAL_SCALE, context))
    data = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, signed=True)
    return {f"member{_BYTES}": {"value": data}}


# --- bloom filters -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FooterFilter:
    """Bloom filter of a file.

    Attributes:
        type_code, text: as in a footer, the text in base64.
        instant: of the write.
    """

    type_code: str
    text: bytes
    instant: str


def bloom_filter_records(
    filters: Mapping[tuple[str, str], FooterFilter], deleted: Mapping[tuple[str, str], str] | None = None
) -> pa.RecordBatch:
    """Records of `bloom_filters`.

    Args:
        filters: by partition path and file name.
        deleted: instants of the deletion of files, by partition path and file name.
    """
    rows = [(place, f, False) for place, f in filters.items()]
    rows += [(place, FooterFilter("", b"", at), True) for place, at in (deleted or {}).items()]
    return _batch(
        k.BLOOM_FILTERS,
        [k.bloom_filter_key(*place) for place, _, _ in rows],
        k.BLOOM,
        [
            {"type": f.type_code, "timestamp": f.instant, "bloomFilter": f.text, "isDeleted": gone}
            for _, f, gone in rows
        ],
    )


# --- record index --------------------------------------------------------------------------------------


def location_records(
    keys: pa.Array, group: np.ndarray, groups: Sequence[tuple[str, str]], instant_ms: int | Sequence[int]
) -> pa.RecordBatch:
    """Records of `record_index`.

    Args:
        keys: record keys, each once.
        group: number of each key's file group.
        groups: partition path and file id of the file groups.
        instant_ms: of the commit that put the keys there, or of that of each file group.
    """
    times = [instant_ms] * len(groups) if isinstance(instant_ms, int) else instant_ms
    kind = written_schema(k.RECORD_INDEX).field(2).type
    known = pa.array(
        [_location(p, file_id, at) for (p, file_id), at in zip(groups, times, strict=True)], kind
    )
    columns = [
        keys.cast(pa.string()),
        pa.repeat(pa.scalar(k.LOCATION, pa.int32()), len(keys)),
        known.take(pa.array(group, pa.int64())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=written_schema(k.RECORD_INDEX))


def _location(partition: str, file_id: str, instant_ms: int) -> dict[str, Any]:
    out: dict[str, Any] = {
        "partitionName": partition, "instantTime": instant_ms, "fileId": "", "fileIdEncoding": _BY_UUID,
    }  # fmt: skip
    text, dash, number = file_id[:36], file_id[36:37], file_id[37:]
    index = int(number) if dash == "-" and number.isascii() and number.isdecimal() else _NO_INDEX
    try:
        value = uuid.UUID(text).int
    except ValueError:
        value = -1
    # One that does not come back as it is, such as one in capitals, is kept as text.
    back = str(uuid.UUID(int=value)) if value >= 0 else None
    if file_id != (back if index == _NO_INDEX else f"{back}-{index}") or index >= _HALF >> 32:
        return out | {
            "fileId": file_id, "fileIdEncoding": _BY_TEXT, "fileIdHighBits": -1, "fileIdLowBits": -1,
            "fileIndex": _NO_INDEX,
        }  # fmt: skip
    high, low = value >> 64, value & (2**64 - 1)
    return out | {"fileIdHighBits": _signed(high), "fileIdLowBits": _signed(low), "fileIndex": index}


def _signed(half: int) -> int:
    return half - 2 * _HALF if half >= _HALF else half
