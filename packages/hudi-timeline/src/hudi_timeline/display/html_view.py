"""HTML views of tables, scans and results, for notebooks.

All text comes from a table that a stranger may have written: it is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

import pyarrow as pa

from hudi_format.arrow.arrays import python_rows

MOST_ROWS, MOST_ITEMS, MOST_TEXT = 20, 10, 300
_LEFT = "style='text-align:left'"


class HtmlView:
    """Mixin with an HTML view of a dataclass: one line for each attribute that says something."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not is_dataclass(self):
            raise TypeError(f"{type(self).__name__} is no dataclass")
        shown = [(f.name.replace("_", " "), getattr(self, f.name)) for f in fields(self) if f.repr]
        return titled(type(self).__name__, facts_view(shown))


def titled(title: str, *parts: str) -> str:
    """A view below its title."""
    return f"<div><b>{escape(title)}</b>{''.join(parts)}</div>"


def facts_view(facts: Iterable[tuple[str, object]]) -> str:
    """Names and values below each other; values that say nothing are left out."""
    lines = []
    for name, value in facts:
        text = rows_view(value) if isinstance(value, pa.Table) and value.num_rows else escape(text_of(value))
        if text:
            lines.append(f"<tr><th {_LEFT}>{escape(name)}</th><td {_LEFT}>{text}</td></tr>")
    return f"<table>{''.join(lines)}</table>"


def rows_view(table: pa.Table, *, most: int = MOST_ROWS) -> str:
    """The first rows of an Arrow table."""
    head = "".join(f"<th {_LEFT}>{escape(n)}</th>" for n in table.column_names)
    body = [
        "<tr>" + "".join(f"<td {_LEFT}>{escape(text_of(v))}</td>" for v in row.values()) + "</tr>"
        for row in python_rows(table.slice(0, most))
    ]
    more = table.num_rows - len(body)
    note = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{note}"


def schema_rows(schema: pa.Schema) -> pa.Table:
    """Columns of a schema as rows."""
    kinds = [str(f.type) + ("" if f.nullable else " not null") for f in schema]
    return pa.table({"column": schema.names, "type": kinds})


def text_of(value: object) -> str:
    """A value in few words; "" for None and for what is empty."""
    if value is None or value == () or value == [] or value == {} or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, pa.Table):
        return f"{value.num_rows:,} rows" if value.num_rows else ""
    if isinstance(value, Mapping):
        return _listed([f"{k}: {text_of(v)}" for k, v in value.items()])
    if isinstance(value, (tuple, list, frozenset, set)):
        return _listed([text_of(v) for v in value])
    if is_dataclass(value) and hasattr(type(value).__repr__, "__wrapped__"):  # not one with a text of its own
        return _of_dataclass(value)
    text = str(value)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} …"


def _of_dataclass(value: Any) -> str:
    """A value inside of a view: what it is made of is counted, not told."""
    parts = []
    for name in (f.name for f in fields(value) if f.repr):
        inner = getattr(value, name)
        many = isinstance(inner, (tuple, list)) and len(inner) and is_dataclass(inner[0])
        text = f"{len(inner):,}" if many else text_of(inner)
        parts += [f"{name.replace('_', ' ')}: {text}"] if text else []
    return "; ".join(parts)


def _listed(texts: list[str]) -> str:
    more = len(texts) - MOST_ITEMS
    return ", ".join(texts[:MOST_ITEMS]) + (f" and {more:,} more" if more > 0 else "")
