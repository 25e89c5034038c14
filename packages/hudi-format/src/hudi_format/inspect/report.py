"""Report on a file: facts and a table, as text or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_WIDEST = 60  # characters of a cell in the readable table; JSON has all of it
# C0, DEL and C1, which drive a terminal; marks of direction, which reorder what is read; line separators;
# halves of surrogate pairs, which no encoding has.
_DRIVING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class FileReport:
    """Inspection report of one file.

    Attributes:
        kind: of file, such as "log file".
        facts: about the whole file, by name.
        columns: of the table.
        rows: of the table, values as JSON has them.
        schemas: of the records: Avro schemas' JSON texts, each once; () where there is none.
        problems: what is damaged, a line each.
        more: by row, what only JSON has; () for nothing.
    """

    kind: str
    facts: dict[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    schemas: tuple[str, ...] = ()
    problems: tuple[str, ...] = field(default=())
    more: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> str:
        """The report as one JSON object: facts, `rows`, `problems`, `schema` and `schemas`."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        for row, more in zip(rows, self.more, strict=False):
            row.update(more)
        out = {"kind": self.kind, **self.facts, "rows": rows, "problems": list(self.problems)}
        schemas = [_schema_json(s) for s in self.schemas]
        out |= {"schema": schemas[-1] if schemas else None, "schemas": schemas}
        return printable_json(json.dumps(out, ensure_ascii=False, indent=2))

    def to_text(self) -> str:
        """The report as text: facts, table, schema and problems."""
        width = max(map(len, (*self.facts, "kind")))
        lines = [
            f"{name:{width}}  {_text(value)}" for name, value in {"kind": self.kind, **self.facts}.items()
        ]
        if self.rows:
            lines += ["", *table(self.columns, self.rows)]
        for number, schema in enumerate(self.schemas, 1):
            title = "schema" if len(self.schemas) == 1 else f"schema {number}"
            lines += ["", title, *(f"  {line}" for line in _schema_lines(schema))]
        if self.problems:
            lines += ["", *(f"problem: {p}" for p in self.problems)]
        return "\n".join(map(printable, lines))


def schemas_of(schema: str | None) -> tuple[str, ...]:
    """The schemas of a file with one schema or none."""
    return (schema,) if schema else ()


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Lines of a text table; numbers are right-aligned."""
    cells = [[_shown(v) for v in row] for row in rows]
    widths = [max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(columns)]
    right = [
        all(v is None or isinstance(v, int) for v in (row[i] for row in rows)) for i in range(len(columns))
    ]
    out = []
    for row in [list(columns), ["-" * w for w in widths], *cells]:
        line = "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        out.append(line.rstrip())
    return out


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _shown(value: Any) -> str:
    text = "" if value is None else _text(value)
    text = printable(text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def _schema_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _schema_lines(text: str) -> list[str]:
    """One line per field, with its Avro type."""
    parsed = _schema_json(text)
    if not isinstance(parsed, dict) or not isinstance(parsed.get("fields"), list):
        return [text]
    return table(("field", "type"), [(_name(f), _type(f)) for f in parsed["fields"]])


def _name(field_: Any) -> str:
    return str(field_.get("name", "?")) if isinstance(field_, dict) else str(field_)


def _type(field_: Any) -> str:
    kind = field_.get("type") if isinstance(field_, dict) else None
    return kind if isinstance(kind, str) else json.dumps(kind, ensure_ascii=False)


def printable(text: str) -> str:
    """The text as one line, with characters that drive a terminal as escapes, such as \\x1b."""
    return _DRIVING.sub(_escape, text)


def printable_json(text: str) -> str:
    """JSON text with such characters as escapes of JSON: the values stay what they are."""
    return _DRIVING.sub(lambda m: m[0] if m[0] in "\n\r\t" else f"\\u{ord(m[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
