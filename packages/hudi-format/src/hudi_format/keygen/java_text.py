"""Text of values in record keys and partition paths, as Apache Hudi writes it.

Source: `HoodieAvroUtils.getNestedFieldValAsString` of Apache Hudi 0.15, which is `toString` of the Avro value
after logical types are applied: LocalDate, BigDecimal, but for a timestamp the plain number of microseconds, or
with hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled a text (`java_timestamp`).  Bytes are
hexadecimal; Apache Hudi's bulk_insert by rows writes an object's address there, which no reader can reproduce.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.sizes import size_of
from hudi_format.errors import SchemaError
from hudi_format.keygen.java_float import double_text, float_text
from hudi_format.keygen.time_zones import Zone

# Timestamps as `java.sql.Timestamp` shows them, which keys hold where Apache Hudi keeps them "consistent".
#
# `2024-02-29 01:02:03.456`: milliseconds, without trailing zeros but with one digit at least, by the clock of some
# zone, and by the Julian calendar before 1582-10-15.  Source: java.sql.Timestamp.toString and java.util.Date.

_DAY = 86_400_000
_MOST_TEXT = (1 << 31) - 1  # bytes of an array with 32-bit offsets
_GREGORIAN_MS = -12_219_292_800_000  # 1582-10-15
_YEAR_10000_MS = 253_402_300_800_000


def timestamp_texts(micros: pa.Array, zone: Zone | None) -> pa.StringArray:
    """Text of each timestamp.

    Args:
        micros: microseconds since 1970 in UTC (int64); what is below a millisecond is cut off towards 1970.
        zone: the clock's; None where `micros` are local times.
    """
    values = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False)
    millis = np.asarray(np.sign(values) * (np.abs(values) // 1000), dtype=np.int64)
    local = millis if zone is None else millis + zone.offsets(millis)
    usual = (local >= _GREGORIAN_MS) & (local < _YEAR_10000_MS)
    near = pa.array(np.where(usual, local, 0)).cast(pa.timestamp("ms"))
    texts = pc.replace_substring_regex(
        pc.strftime(near, format="%Y-%m-%d %H:%M:%S"), r"(\.[0-9]+?)0+$", r"\1"
    )
    if not usual.all():
        odd = [None if u else _text(ms) for u, ms in zip(usual.tolist(), local.tolist(), strict=True)]
        texts = pc.coalesce(pa.array(odd, pa.string()), texts)
    return pc.if_else(micros.is_null(), pa.scalar(None, pa.string()), texts) if micros.null_count else texts


def _text(local_ms: int) -> str:
    days, ms = divmod(local_ms, _DAY)
    if local_ms < _GREGORIAN_MS:
        year, month, day = _julian(days)
    else:
        year, near = civil(days)
        month, day = near.month, near.day
    shown = year if year > 0 else 1 - year
    clock = f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d}"
    fraction = f"{ms % 1000:03d}".rstrip("0") or "0"
    return f"{shown:04d}-{month:02d}-{day:02d} {clock}.{fraction}"


def _julian(days: int) -> tuple[int, int, int]:
    """Year (0 is 1 BC), month and day in the Julian calendar for a day since 1970-01-01."""
    # A year that begins in March has its leap day last; 1461 days make four years.
    since = days + 719470  # since 1 March of the Julian year 0
    year, rest = divmod(4 * since + 3, 1461)
    day_of_year = rest // 4
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return (year + 1, month - 9, day) if month >= 10 else (year, month + 3, day)


# LocalDate.toString has four digits within these years, and a sign beyond.
_FIRST_DAY = -719528  # 0000-01-01
_LAST_DAY = 2932896  # 9999-12-31
ORDINAL_1970, _ORDINAL_2000 = date(1970, 1, 1).toordinal(), date(2000, 1, 1).toordinal()
CYCLE_DAYS, CYCLE_YEARS = 146_097, 400
"""After which the calendar repeats."""


def to_text(array: pa.Array | pa.ChunkedArray, *, zone: Zone | None = None) -> pa.StringArray:
    """Java's text of each value; null stays null.

    Text of more than 2 GiB comes as large_string.

    Args:
        zone: in which timestamps are shown; None for their microseconds.

    Raises:
        SchemaError: a type that has no text in a key: lists, maps, structs, times, durations.
    """
    array = one_array(array)
    kind = array.type
    if pa.types.is_large_string(kind):
        return array.cast(pa.string()) if size_of(array) < _MOST_TEXT else array
    if pa.types.is_string(kind):
        return array
    if pa.types.is_dictionary(kind):
        texts = to_text(array.dictionary, zone=zone)
        return pc.take(texts, array.indices)
    if pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return array.cast(pa.string())
    # Arrow's text of these is Java's: BigDecimal's exponent for less than 1E-6 too.
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return array.cast(pa.string())
    if pa.types.is_date(kind):
        return _dates(array.cast(pa.date32()))
    if pa.types.is_timestamp(kind):
        micros = timestamp_micros(array)
        if zone is None:
            return micros.cast(pa.string())
        return timestamp_texts(micros, zone if kind.tz is not None else None)
    if pa.types.is_floating(kind):
        return _fractions(array)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _distinct(array, bytes.hex)
    raise SchemaError(
        f"a column of type {kind} cannot be part of a record key or partition path",
        remedy="use a column of text, numbers, dates or timestamps.",
        type=str(kind),
    )


def _dates(array: pa.Array) -> pa.Array:
    days = array.cast(pa.int32())
    bounds = pc.min_max(days)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None or (low >= _FIRST_DAY and high <= _LAST_DAY):
        return array.cast(pa.string())
    return _distinct(days, _local_date)


def _local_date(day: int) -> str:
    """LocalDate.toString for any day since 1970-01-01."""
    year, moment = civil(day)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{moment.month:02d}-{moment.day:02d}"


def civil(days: int) -> tuple[int, date]:
    """Year of a day since 1970-01-01, and the same date in 2000..2399."""
    cycles, rest = divmod(days + ORDINAL_1970 - _ORDINAL_2000, CYCLE_DAYS)
    near = date.fromordinal(_ORDINAL_2000 + rest)
    return near.year + CYCLE_YEARS * cycles, near


def timestamp_micros(array: pa.Array) -> pa.Array:
    """Microseconds since the epoch, finer units truncated towards the past."""
    unit = array.type.unit
    numbers = array.view(pa.int64())
    if unit == "ns":
        values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False) // 1000
        return pa.array(values, mask=numbers.is_null().to_numpy(zero_copy_only=False))
    factor = {"s": 1_000_000, "ms": 1000, "us": 1}[unit]
    return numbers if factor == 1 else pc.multiply_checked(numbers, factor)


def _fractions(array: pa.Array) -> pa.Array:
    """Java's text of floats or doubles, computed once per bit pattern (0.0 and -0.0 differ)."""
    single = not pa.types.is_float64(array.type)
    bits = (array.cast(pa.float32()) if single else array).view(pa.int32() if single else pa.int64())
    encoded = bits.dictionary_encode()
    values = encoded.dictionary.to_numpy().view(np.float32 if single else np.float64)
    text = float_text if single else double_text
    return pc.take(pa.array([text(v) for v in values.tolist()], pa.string()), encoded.indices)


def _distinct(array: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    """`text` of each value, computed once per distinct value."""
    encoded = array.dictionary_encode()
    texts = [None if v is None else text(v) for v in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(texts, pa.string()), encoded.indices)
