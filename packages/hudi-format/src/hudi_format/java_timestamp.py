"""Timestamps as `java.sql.Timestamp` shows them, which keys hold where Apache Hudi keeps them "consistent".

`2024-02-29 01:02:03.456`: milliseconds, without trailing zeros but with one digit at least, by the clock of some zone,
and by the Julian calendar before 1582-10-15.  Source: java.sql.Timestamp.toString and java.util.Date.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.zones import Zone

_DAY = 86_400_000
_GREGORIAN_MS = -12_219_292_800_000  # 1582-10-15
_YEAR_10000_MS = 253_402_300_800_000


def timestamp_texts(micros: pa.Array, zone: Zone | None) -> pa.StringArray:
    """The text of each instant.

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
    year, month, day = _julian(days) if local_ms < _GREGORIAN_MS else _gregorian(days)
    shown = year if year > 0 else 1 - year
    clock = f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d}"
    fraction = f"{ms % 1000:03d}".rstrip("0") or "0"
    return f"{shown:04d}-{month:02d}-{day:02d} {clock}.{fraction}"


def _julian(days: int) -> tuple[int, int, int]:
    """Year (0 is 1 BC), month and day by the Julian calendar of a day since 1970-01-01."""
    # A year that begins in March has its leap day last; 1461 days make four years.
    since = days + 719470  # since 1 March of the Julian year 0
    year, rest = divmod(4 * since + 3, 1461)
    return _from_march(year, rest // 4)


def _gregorian(days: int) -> tuple[int, int, int]:
    since = days + 719468  # since 1 March of the year 0
    era, of_era = divmod(since, 146_097)
    in_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    rest = of_era - (365 * in_era + in_era // 4 - in_era // 100)
    return _from_march(400 * era + in_era, rest)


def _from_march(year: int, day_of_year: int) -> tuple[int, int, int]:
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return (year + 1, month - 9, day) if month >= 10 else (year, month + 3, day)
