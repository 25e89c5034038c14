"""Joda-Time date patterns of the timestamp-based key generator.

Source: `DateTimeFormat` of Joda-Time, which Apache Hudi 0.15 calls, checked on what Apache Hudi writes.  Not provided
are the names of time zones (`z`, and `ZZZ` in input) and weeks in input: these patterns are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_format.keygen.java_text import CYCLE_DAYS, CYCLE_YEARS, ORDINAL_1970, civil

DAY, HOUR, MINUTE, SECOND, MILLI = 86_400_000, 3_600_000, 60_000, 1000, 1

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMERIC = frozenset("CxyYdhHmsSeDwkK")
# The finest letter decides how much of an instant a pattern can show.
_STEP = {
    "S": MILLI, "s": SECOND, "m": MINUTE, "H": HOUR, "k": HOUR, "K": HOUR, "h": HOUR, "a": HOUR,
}  # fmt: skip
# A text without a year is one of that year, if it has a month or a day.
_DEFAULT_YEAR = 2000
_PIVOT_BEHIND = 30


@dataclass(frozen=True, slots=True)
class Token:
    """A run of one pattern letter, or literal text (`letter` "")."""

    letter: str
    length: int
    text: str = ""

    @property
    def is_numeric(self) -> bool:
        return self.letter in _NUMERIC or (self.letter == "M" and self.length <= 2)


@dataclass(frozen=True, slots=True)
class Moment:
    """Local date and time in some zone.

    Attributes:
        local_ms: milliseconds since 1970-01-01T00:00 on that clock.
        offset_ms: what that clock is ahead of UTC.
        zone: its name.
    """

    local_ms: int
    offset_ms: int = 0
    zone: str = "UTC"


@lru_cache(maxsize=256)
def tokens(pattern: str, option: str = "") -> tuple[Token, ...]:
    """Tokens of a pattern.

    Raises:
        InvalidOptionError: a letter that means nothing, or a pattern that is empty.
    """
    out: list[Token] = []
    n = 0
    while n < len(pattern):
        char = pattern[n]
        if char.isascii() and char.isalpha():
            end = n
            while end < len(pattern) and pattern[end] == char:
                end += 1
            if char not in _PRINTERS and char != "z":
                raise InvalidOptionError(
                    f"the date pattern {pattern!r} has the unknown letters {pattern[n:end]!r}",
                    remedy="use letters of Joda-Time's DateTimeFormat, such as yyyy-MM-dd HH:mm:ss; put "
                    "literal text in single quotes.",
                    option=option,
                )
            out.append(Token(char, end - n))
            n = end
            continue
        text, quoted = "", False
        while n < len(pattern):
            char = pattern[n]
            if char == "'":
                if pattern[n + 1 : n + 2] == "'":
                    text, n = text + "'", n + 2
                    continue
                quoted = not quoted
            elif not quoted and char.isascii() and char.isalpha():
                break
            else:
                text += char
            n += 1
        out.append(Token("", 0, text))
    if not out:
        raise InvalidOptionError(
            "the date pattern is empty", option=option, remedy="give one, such as yyyy/MM/dd."
        )
    return tuple(out)


# --- from an instant to text -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Parts:
    year: int
    month: int
    day: int
    day_of_year: int
    weekday: int  # Monday is 1
    millis: int
    moment: Moment


def _parts(moment: Moment) -> _Parts:
    days, millis = divmod(moment.local_ms, DAY)
    year, near = civil(days)
    return _Parts(
        year, near.month, near.day, near.timetuple().tm_yday, near.isoweekday(), millis, moment
    )  # fmt: skip


def _week(p: _Parts) -> tuple[int, int]:
    """Year and number of the ISO week."""
    year, near = civil(p.moment.local_ms // DAY)
    iso = near.isocalendar()
    return iso.year + year - near.year, iso.week


def _padded(value: int, length: int) -> str:
    return f"-{-value:0{length}d}" if value < 0 else f"{value:0{length}d}"


def _year(value: int, length: int) -> str:
    return f"{abs(value) % 100:02d}" if length == 2 else _padded(value, length)


def _of_era(year: int) -> int:
    return year if year > 0 else 1 - year


def _hour(p: _Parts) -> int:
    return p.millis // HOUR


def _offset(p: _Parts, n: int) -> str:
    if n >= 3:
        return p.moment.zone
    minutes = abs(p.moment.offset_ms) // MINUTE
    sign = "-" if p.moment.offset_ms < 0 else "+"
    return f"{sign}{minutes // 60:02d}{':' if n == 2 else ''}{minutes % 60:02d}"


def _fraction(p: _Parts, n: int) -> str:
    return f"{p.millis % 1000:03d}".ljust(n, "0")[:n]


def _month(p: _Parts, n: int) -> str:
    name = _MONTHS[p.month - 1]
    return _padded(p.month, n) if n < 3 else name if n > 3 else name[:3]


def _weekday(p: _Parts, n: int) -> str:
    name = _DAYS[p.weekday - 1]
    return name if n > 3 else name[:3]


_PRINTERS: dict[str, Callable[[_Parts, int], str]] = {
    "G": lambda p, _: "AD" if p.year > 0 else "BC",
    "C": lambda p, n: _padded(_of_era(p.year) // 100, n),
    "Y": lambda p, n: _year(p.year if n == 2 else _of_era(p.year), n),
    "y": lambda p, n: _year(p.year, n),
    "x": lambda p, n: _year(_week(p)[0], n),
    "w": lambda p, n: _padded(_week(p)[1], n),
    "e": lambda p, n: _padded(p.weekday, n),
    "E": _weekday,
    "D": lambda p, n: _padded(p.day_of_year, n),
    "M": _month,
    "d": lambda p, n: _padded(p.day, n),
    "a": lambda p, _: "AM" if _hour(p) < 12 else "PM",
    "K": lambda p, n: _padded(_hour(p) % 12, n),
    "h": lambda p, n: _padded(_hour(p) % 12 or 12, n),
    "H": lambda p, n: _padded(_hour(p), n),
    "k": lambda p, n: _padded(_hour(p) or 24, n),
    "m": lambda p, n: _padded(p.millis % HOUR // MINUTE, n),
    "s": lambda p, n: _padded(p.millis % MINUTE // SECOND, n),
    "S": _fraction,
    "Z": _offset,
}


@dataclass(frozen=True, slots=True)
class Printer:
    """Formats moments in a pattern.

    Attributes:
        step: moments that differ by less within the same `step` of milliseconds have one text.
        shows_zone: whether the offset or name of the zone is part of the text.
    """

    pattern: str
    tokens: tuple[Token, ...]
    step: int
    shows_zone: bool

    def text(self, moment: Moment) -> str:
        parts = _parts(moment)
        return "".join(_PRINTERS[t.letter](parts, t.length) if t.letter else t.text for t in self.tokens)


@lru_cache(maxsize=256)
def printer(pattern: str, option: str = "") -> Printer:
    """The formatter of a pattern.

    Raises:
        InvalidOptionError: no pattern.
        UnsupportedError: names of time zones, which differ between implementations.
    """
    found = tokens(pattern, option)
    _refuse(found, "z", pattern, option)
    letters = {t.letter for t in found}
    step = min((_STEP.get(letter, DAY) for letter in letters), default=DAY)
    return Printer(pattern, found, step, "Z" in letters)


def _refuse(found: tuple[Token, ...], letters: str, pattern: str, option: str) -> None:
    for token in found:
        if token.letter and token.letter in letters:
            raise UnsupportedError(
                f"the letter {token.letter!r} in the date pattern {pattern!r} is not supported",
                remedy="use a pattern of years, months, days, hours and smaller, and Z for the offset.",
                option=option,
            )


# --- from text to an instant -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed text: local milliseconds since 1970, and the zone offset if the text has one."""

    local_ms: int
    offset_ms: int | None


@dataclass(frozen=True, slots=True)
class Parser:
    """Parses texts in a pattern."""

    pattern: str
    regex: re.Pattern[str]
    groups: tuple[tuple[str, int], ...]

    def parse(self, text: str) -> Parsed | None:
        """The parsed text; None where it does not match the pattern.

        Raises:
            ValueError: the text is in the pattern, but names no date, such as the 30th of February.
        """
        match = self.regex.fullmatch(text)
        if match is None:
            return None
        values: dict[str, int] = {}
        for (letter, length), raw in zip(self.groups, match.groups(), strict=True):
            values[letter] = _value(letter, length, raw)
        return _assembled(values)


@lru_cache(maxsize=256)
def parser(pattern: str, option: str = "") -> Parser:
    """The parser of a pattern.

    Raises:
        InvalidOptionError: no pattern.
        UnsupportedError: eras, centuries, weeks and names of time zones.
    """
    found = tokens(pattern, option)
    _refuse(found, "zGCxwe", pattern, option)
    regex: list[str] = []
    groups: list[tuple[str, int]] = []
    for n, token in enumerate(found):
        if not token.letter:
            regex.append(f"(?i:{re.escape(token.text)})")
            continue
        if token.letter == "Z" and token.length > 2:
            _refuse((Token("Z", 3),), "Z", pattern, option)
        adjacent = n + 1 < len(found) and found[n + 1].is_numeric
        regex.append(f"({_expected(token, adjacent)})")
        groups.append((token.letter, token.length))
    if len({letter for letter, _ in groups}) != len(groups):
        raise UnsupportedError(
            f"the date pattern {pattern!r} repeats a letter",
            remedy="give each part of the date once.", option=option,
        )  # fmt: skip
    return Parser(pattern, re.compile("".join(regex)), tuple(groups))


def _expected(token: Token, adjacent: bool) -> str:
    """Regular expression of a token's input.

    Digits are taken greedily and never given back, as Joda does.
    """
    letter, n = token.letter, token.length
    if letter in "yY":
        if n == 2:
            return "[0-9]{2}" if adjacent else "[+-]?[0-9]++"
        sign = "[+-]?" if letter == "y" else ""
        return f"{sign}[0-9]{{1,{n if adjacent else 9}}}+"
    if letter == "M" and n > 2:
        return _names(_MONTHS)
    if letter == "E":
        return _names(_DAYS)
    if letter == "a":
        return _names(("AM", "PM"))
    if letter == "S":
        return f"[0-9]{{1,{n}}}+"
    if letter == "D":
        return "[0-9]{1,3}+"
    if letter == "Z":
        return "[Zz]|[+-](?:[01][0-9]|2[0-3])(?::[0-5][0-9](?::[0-5][0-9])?|[0-5][0-9](?:[0-5][0-9])?)?"
    return "[0-9]{1,2}+"


def _names(names: tuple[str, ...]) -> str:
    known = {
        form for name in names for whole in (name, name[:3]) for form in (whole, whole.lower(), whole.upper())
    }
    return "|".join(sorted(known, key=lambda k: (-len(k), k)))


def _value(letter: str, length: int, raw: str) -> int:
    if letter in "yY" and length == 2:
        if len(raw) == 2 and raw.isdecimal():
            low = datetime.now(UTC).year - _PIVOT_BEHIND - 50
            return low + (int(raw) - low) % 100
        return int(raw)
    if letter == "M" and length > 2:
        return _index(_MONTHS, raw) + 1
    if letter == "E":
        return _index(_DAYS, raw) + 1
    if letter == "a":
        return 0 if raw.upper() == "AM" else 1
    if letter == "S":
        return int(raw[:3].ljust(3, "0"))
    if letter == "Z":
        return _offset_ms(raw)
    return int(raw)


def _index(names: tuple[str, ...], raw: str) -> int:
    return next(n for n, name in enumerate(names) if name.lower().startswith(raw.lower()[:3]))


def _offset_ms(raw: str) -> int:
    if raw in "Zz":
        return 0
    digits = raw[1:].replace(":", "").ljust(6, "0")
    size = int(digits[:2]) * HOUR + int(digits[2:4]) * MINUTE + int(digits[4:6]) * SECOND
    return -size if raw[0] == "-" else size


def _assembled(v: dict[str, int]) -> Parsed:
    has_day = any(letter in v for letter in "MdDE")
    year = v.get("y", v.get("Y", _DEFAULT_YEAR if has_day else 1970))
    cycles, near = divmod(year - 2000, CYCLE_YEARS)
    day = date(2000 + near, 1, 1)
    if "D" in v:
        ordinal = day.toordinal() + _within(v["D"], 1, 366, "day of the year") - 1
        day = date.fromordinal(ordinal)
        if day.year != 2000 + near:
            raise ValueError(f"year {year} has no day {v['D']}")
    if "M" in v or "d" in v:
        day = date(day.year, v.get("M", day.month), v.get("d", 1 if "M" in v else day.day))
    if "E" in v:
        day = date.fromordinal(day.toordinal() - day.isoweekday() + v["E"])
    days = day.toordinal() - ORDINAL_1970 + cycles * CYCLE_DAYS
    millis = _hours(v) * HOUR
    millis += (
        _within(v.get("m", 0), 0, 59, "minute") * MINUTE + _within(v.get("s", 0), 0, 59, "second") * SECOND
    )
    return Parsed(days * DAY + millis + v.get("S", 0), v.get("Z"))


def _hours(v: dict[str, int]) -> int:
    if "H" in v:
        return _within(v["H"], 0, 23, "hour")
    if "k" in v:
        return _within(v["k"], 1, 24, "hour") % 24
    half = 12 * v.get("a", 0)
    if "h" in v:
        return _within(v["h"], 1, 12, "hour") % 12 + half
    return _within(v.get("K", 0), 0, 11, "hour") + half


def _within(value: int, least: int, most: int, what: str) -> int:
    if not least <= value <= most:
        raise ValueError(f"there is no {what} {value}")
    return value
