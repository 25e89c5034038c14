"""Dates and times of ISO 8601 texts, in the forms that no reader takes for another moment.

A date is `2024-03-05`; a time has a date, `T` or a space, hours and minutes, and perhaps seconds, their fraction and a
zone: `2024-03-05T10:11`, `2024-03-05 10:11:12.250+02:00`, `20240305` is neither.  What a type does not hold (a time of
day in a date, digits below its unit, a zone where it has none) is refused and never rounded.

Source: ISO 8601:2004, 4.3.2 (extended format); RFC 3339, 5.6, for the space.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?"
_ZONE = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
# A fraction of no digits is none.
_DIGITS = {"s": "{0}", "ms": "{1,3}", "us": "{1,6}", "ns": "{1,9}"}
_MIDNIGHT = "[T ]00:00(:00([.]0+)?)?"


def dates_of(texts: pa.Array) -> pa.Array:
    """Dates of texts: dates, or midnights without a zone.

    Raises:
        ValueError: a text is none, or has a time of day; the message says which.
    """
    texts = _plain(texts)
    if not _all(texts, f"^{_DATE}({_MIDNIGHT})?$"):
        if _all(texts, f"^{_DATE}([T ]{_CLOCK})?$"):
            raise ValueError("it has a time of day")
        raise ValueError("it is no date such as 2024-03-05")
    try:
        return pc.utf8_slice_codeunits(texts, 0, 10).cast(pa.date32())
    except pa.ArrowInvalid:
        raise ValueError("the calendar has no such day") from None


def moments_of(texts: pa.Array, target: pa.TimestampType) -> pa.Array:
    """Timestamps of texts; without a zone they are of UTC where the target has one.

    Raises:
        ValueError: a text is none, or the target does not hold it; the message says which.
    """
    texts = _plain(texts)
    if not _all(texts, f"^{_DATE}[T ]{_CLOCK}{_ZONE}?$"):
        if _all(texts, f"^{_DATE}([T ]{_CLOCK}{_ZONE}?)?$"):
            raise ValueError("it has no time of day")
        raise ValueError("it is no time such as 2024-03-05T10:11:12Z")
    if target.tz is None and not _all(texts, f"^{_DATE}[T ]{_CLOCK}$"):
        raise ValueError("it has a time zone, and the column has none")
    # Zeros say nothing, and Arrow takes them for digits below the unit.
    texts = pc.replace_substring_regex(texts, "([.][0-9]*?)0+(Z|[+-]|$)", "\\1\\2")
    texts = pc.replace_substring_regex(texts, "[.](Z|[+-]|$)", "\\1")
    if target.tz is not None:
        texts = pc.replace_substring_regex(texts, f"^({_DATE}[T ]{_CLOCK})$", "\\1Z")
    if not _all(texts, f"^[^.]*([.][0-9]{_DIGITS[target.unit]}(Z|[+-].*)?)?$"):
        raise ValueError(f"it has digits that {target} does not hold")
    try:
        return texts.cast(target)
    except pa.ArrowInvalid:
        raise ValueError("the calendar or the clock has no such time") from None


def lack_zones(texts: pa.Array) -> bool:
    """Whether any of the texts of times has no time zone."""
    ends = pc.match_substring_regex(_plain(texts), f":[0-9.]+{_ZONE}$")
    return pc.all(ends, min_count=0).as_py() is False


def _plain(texts: pa.Array) -> pa.Array:
    return texts if pt.is_string(texts.type) else texts.cast(pa.large_string())


def _all(texts: pa.Array, pattern: str) -> bool:
    """Whether all texts that are there match."""
    return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py())
