"""Java properties files: the text of hoodie.properties and of partition metadata files.

Source: java.util.Properties (ISO-8859-1, `\\uXXXX`, backslash escapes, line continuation).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from hudi_format.errors import CorruptFileError

_REMEMBERED_FILES = 64
_REMEMBERED_BYTES = 16_384
_HEX = re.compile("[0-9a-fA-F]{4}")
_MARK = "\ufeff".encode().decode("iso-8859-1")  # what editors put before text in UTF-8
_SHOWN = 80  # letters of a line, in errors
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {c: f"\\{letter}" for letter, c in _ESCAPES.items()}
_MARKS = "\\=:#!"
_SPECIAL = re.compile(r"[\\=:#!]|[^ -~]")


def parse(data: bytes, *, path: str = "") -> dict[str, str]:
    """Keys and values of a properties file; for a repeated key the last value counts.

    Raises:
        CorruptFileError: a `\\u` escape without four hexadecimal digits, a NUL byte, or a byte order mark before the
            first entry, which no writer of properties produces.
    """
    return dict(_known(data, path) if len(data) <= _REMEMBERED_BYTES else _parsed(data, path))


def _parsed(data: bytes, path: str) -> dict[str, str]:
    text = data.decode("iso-8859-1")
    if "\x00" in text:
        raise CorruptFileError("NUL byte in a properties file", file=path, offset=text.index("\x00"))
    out: dict[str, str] = {}
    for line in _logical_lines(text):
        marked = line.startswith(_MARK) and line[len(_MARK) :].lstrip(" \t\f")
        if marked and marked[0] not in "#!":
            # Java takes it for letters of the name, and the entry is lost.
            raise CorruptFileError(f"a byte order mark before {marked[:_SHOWN]!r}", file=path, offset=0)
        key, value = _split(line, path)
        out[key] = value
    return out


# A table's properties are read several times in each call, and rarely change.
_known = lru_cache(maxsize=_REMEMBERED_FILES)(_parsed)


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending = ""
    continued = False
    for raw in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = raw.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        slashes = len(line) - len(line.rstrip("\\"))
        continued = slashes % 2 == 1
        pending += line[:-1] if continued else line
        if not continued:
            lines.append(pending)
            pending = ""
    if pending:
        lines.append(pending)
    return lines


def _split(line: str, path: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return _unescape(line[:end], path), _unescape(rest, path)


def _unescape(text: str, path: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    i = 0
    while i < len(text):
        c = text[i]
        i += 1
        if c != "\\" or i >= len(text):
            if c != "\\":
                out.append(c)
            continue
        c = text[i]
        i += 1
        if c == "u":
            digits = text[i : i + 4]
            if _HEX.fullmatch(digits) is None:  # int() would take signs, spaces, underscores and 0x too
                raise CorruptFileError(f"bad \\u escape {digits!r} in a properties file", file=path)
            out.append(chr(int(digits, 16)))
            i += 4
        else:
            out.append(_ESCAPES.get(c, c))
    # Characters beyond the basic plane stand as two escapes, a surrogate pair.
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def render(properties: Mapping[str, str], comments: list[str]) -> bytes:
    """Text of a properties file, with leading comment lines."""
    lines = [f"#{c}" for c in comments]
    lines += [f"{_escape(k, key=True)}={_escape(v, key=False)}" for k, v in properties.items()]
    return ("\n".join(lines) + "\n").encode("iso-8859-1")


def _escape(text: str, *, key: bool) -> str:
    escaped = _SPECIAL.sub(_escaped, text)
    if key:
        return escaped.replace(" ", "\\ ")
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escaped(found: re.Match[str]) -> str:
    c = found[0]
    if c in _MARKS:
        return f"\\{c}"
    if c in _ESCAPED:
        return _ESCAPED[c]
    units = c.encode("utf-16-be")
    return "".join(f"\\u{units[n] << 8 | units[n + 1]:04X}" for n in range(0, len(units), 2))


def java_date(moment: datetime) -> str:
    """The date comment that java.util.Properties writes, e.g. `Sat Nov 21 05:37:48 UTC 2026`."""
    # strftime's names follow the locale; Java's do not.
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.weekday()]
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    zone = moment.tzname() or "UTC"
    return f"{day} {months[moment.month - 1]} {moment:%d %H:%M:%S} {zone} {moment.year}"
