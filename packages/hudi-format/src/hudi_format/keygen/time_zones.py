"""Time zones by Java's names, and their UTC offsets.

Source: java.util.TimeZone and java.time.ZoneId.SHORT_IDS.  A name that Java does not know means GMT there; here it is
an error.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import InvalidOptionError

_FIXED = re.compile(r"GMT([+-])([0-9]{1,2})(?::?([0-9]{2}))?\Z")
# Three-letter names that are not in the time zone database, or mean something else there.
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Before these years clocks showed local mean time; after, the rules repeat with the calendar.
_FIRST_MS = -62_135_596_800_000 + 10 * 86_400_000  # some days after 0001-01-01
_ARROW_LAST_MS = 2_114_380_800_000  # 2037: Arrow reads no rules for later, only tables that may end here
_LAST_MS = 253_370_764_800_000  # 9999-01-01
_CYCLE_MS = 146_097 * 86_400_000


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone: from the database by `name`, or with a fixed offset."""

    name: str
    fixed_ms: int | None = None

    def offsets(self, utc_ms: np.ndarray) -> np.ndarray:
        """UTC offset at each instant, in milliseconds (int64)."""
        if self.fixed_ms is not None:
            return np.full(len(utc_ms), self.fixed_ms, dtype=np.int64)
        near = np.maximum(utc_ms, _FIRST_MS)
        late = near > _ARROW_LAST_MS
        if late.any():
            return self._late_offsets(near, late)
        instants = pa.array(near).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", self.name))
        local = pc.local_timestamp(instants).view(pa.int64()).to_numpy(zero_copy_only=False)
        return np.asarray(local - near, dtype=np.int64)

    def _late_offsets(self, near: np.ndarray, late: np.ndarray) -> np.ndarray:
        out = np.empty(len(near), dtype=np.int64)
        out[~late] = self.offsets(near[~late])
        # Offsets change at full quarters of an hour.
        quarters, places = np.unique(near[late] // 900_000, return_inverse=True)
        own = ZoneInfo(self.name)
        found = []
        for quarter in quarters.tolist():
            ms = _in_calendar(quarter * 900_000)
            moment = (_EPOCH + timedelta(milliseconds=ms)).astimezone(own)
            found.append((moment.utcoffset() or timedelta(0)) // timedelta(milliseconds=1))
        out[late] = np.array(found, dtype=np.int64)[places]
        return out

    def offset_of_local(self, local_ms: int) -> int:
        """UTC offset of a local time; for an ambiguous time, of the earlier instant.

        Raises:
            ValueError: clocks skip that time.
        """
        if self.fixed_ms is not None:
            return self.fixed_ms
        near = _in_calendar(max(local_ms, _FIRST_MS))
        naive = datetime(1970, 1, 1) + timedelta(milliseconds=near)
        zone = ZoneInfo(self.name)
        aware = naive.replace(tzinfo=zone)
        back = aware.astimezone(UTC).astimezone(zone)
        if back.replace(tzinfo=None) != naive:
            raise ValueError(f"clocks in {self.name} skip that time")
        return near - (aware.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)


def _in_calendar(ms: int) -> int:
    """The same time in a year that Python's calendar has: rules repeat with the calendar."""
    return ms if ms <= _LAST_MS else ms - ((ms - _LAST_MS) // _CYCLE_MS + 1) * _CYCLE_MS


@lru_cache(maxsize=64)
def zone(name: str, option: str = "") -> Zone:
    """The zone with a Java name.

    Raises:
        InvalidOptionError: no such zone.
    """
    text = name.strip()
    if text in ("UTC", "GMT", "Etc/UTC", "Z", "Etc/GMT", "UCT", "Zulu"):
        return Zone(text, 0)
    fixed = _FIXED.match(text)
    if fixed is not None and int(fixed[2]) < 24 and int(fixed[3] or 0) < 60:
        size = int(fixed[2]) * 3_600_000 + int(fixed[3] or 0) * 60_000
        return Zone(text, -size if fixed[1] == "-" else size)
    try:
        ZoneInfo(_SHORT.get(text, text))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidOptionError(
            f"unknown time zone {name!r}",
            remedy="use a name such as Europe/Oslo or UTC, or an offset such as GMT+05:30.",
            option=option,
        ) from None
    return Zone(_SHORT.get(text, text))


def local_zone() -> Zone:
    """This machine's zone, the default of a JVM."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name:
        try:
            target = str(Path("/etc/localtime").readlink())
            name = target.partition("zoneinfo/")[2]
        except OSError:
            name = ""
    try:
        return zone(name or "UTC")
    except InvalidOptionError:
        offset = datetime.now().astimezone().utcoffset() or timedelta(0)
        return Zone("local", int(offset.total_seconds() * 1000))
