"""Instant times: text of 17 digits, `yyyyMMddHHmmssSSS`, wall clock of the table's time zone.

Old tables have 14 digits, read as if the milliseconds were 999; metadata tables append a suffix of
three digits.  Instants are compared as text.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from hudi_format.errors import InstantNotFoundError

LENGTH = 17
_DIGITS = re.compile(r"\d+\Z")


def format_instant(moment: datetime) -> str:
    """The instant of a wall-clock moment; what is below a millisecond is cut off."""
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"


def parse_instant(instant: str) -> datetime:
    """The wall-clock moment of an instant, without zone.

    Raises:
        ValueError: not an instant time, such as the bootstrap instants `00000000000001`.
    """
    if not _DIGITS.match(instant) or len(instant) < 14:
        raise ValueError(f"not an instant time: {instant!r}")
    base = datetime.strptime(instant[:14], "%Y%m%d%H%M%S")
    millis = int(instant[14:LENGTH]) if len(instant) >= LENGTH else 999
    return base + timedelta(milliseconds=millis)


def next_instant(instant: str) -> str:
    """The smallest instant time after `instant`."""
    return format_instant(parse_instant(instant) + timedelta(milliseconds=1))


def zone_of(timezone_property: str) -> tzinfo | None:
    """The zone that `hoodie.table.timeline.timezone` names: None is this machine's local zone."""
    return UTC if timezone_property.upper() == "UTC" else None


def parse_query_instant(value: str | datetime, zone: tzinfo | None = None) -> str:
    """The instant that a user's time means: digits, `yyyy-MM-dd`, with time, with milliseconds.

    A datetime with a zone, and an ISO text that ends in one (`Z`, `+02:00`), is turned into the table's zone.

    Raises:
        InstantNotFoundError: another form; the message lists the forms that are accepted.
    """
    if isinstance(value, datetime):
        try:
            return format_instant(value.astimezone(zone).replace(tzinfo=None) if value.tzinfo else value)
        except OverflowError:  # the year 10000, or that before 1, in the table's zone
            raise InstantNotFoundError(
                f"{value} is not within the years 1 to 9999 of the table's time zone",
                remedy="give a time within them.",
            ) from None
    text = value.strip() if isinstance(value, str) else ""
    if _DIGITS.match(text) and len(text) in (14, LENGTH):
        return text
    for pattern, length in (("%Y-%m-%d", 10), ("%Y-%m-%d %H:%M:%S", 19), ("%Y-%m-%d %H:%M:%S.%f", 23)):
        normal = text.replace("T", " ", 1)
        if len(normal) != length:
            continue
        try:
            moment = datetime.strptime(normal, pattern)
        except ValueError:
            break
        # Seconds without a fraction mean the whole second, as for instants of 14 digits.
        return format_instant(moment)[:14] + "999" if length == 19 else format_instant(moment)
    with_zone = _with_zone(text)
    if with_zone is not None:
        instant = parse_query_instant(with_zone, zone)
        return instant if "." in text else instant[:14] + "999"
    raise InstantNotFoundError(
        f"cannot read {value!r} as a point in time",
        remedy="give an instant (14 or 17 digits), 'yyyy-MM-dd', 'yyyy-MM-dd HH:mm:ss' "
        "or 'yyyy-MM-dd HH:mm:ss.SSS', the latter two also with a zone such as +02:00.",
    )


def _with_zone(text: str) -> datetime | None:
    """The moment of an ISO text that names its zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
