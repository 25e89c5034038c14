"""Partition columns of a native scan, as expressions over the file path.

Spark evaluates a filter on such an expression once per file when it plans, so that only the files of matching
partitions are read; where it is selected, each row costs.  If all files are of one partition, its path is a constant.
What the paths look like is known when the scan is planned: ordinary ones are cut and cast, others decoded, and what no
cast gives (dates as day numbers and the like) is looked up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from urllib.parse import quote, unquote

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from hudi_format.keygen.java_text import timestamp_micros, to_text
from hudi_format.keygen.partition_path import HIVE_DEFAULT
from hudi_spark.types import to_spark_type
from hudi_timeline.file_system_view.partition_values import FROM_PATH, PARTITION
from hudi_timeline.reading.plan import ScanPlan

# What java.net.URI leaves alone in a path, besides letters, digits and most of what is not ASCII.
_URI_SAFE = "/;:@&=+$,_-!.~'()*"
_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def java_path(path: str) -> str:
    """A path as `java.net.URI` writes it, and as Spark shows file paths."""
    return "".join(c if ord(c) >= 0x80 and not _blank(c) else quote(c, safe=_URI_SAFE) for c in path)


def _blank(char: str) -> bool:
    return char.isspace() or 0x80 <= ord(char) < 0xA0


@dataclass(frozen=True)
class _Text:
    """One column's text per partition, raw and as an expression."""

    raw: list[str]
    column: Column


def partition_columns(plan: ScanPlan) -> dict[str, Column]:
    """Partition columns of a plan that come from the path, by name."""
    wanted = {c.name: n for n, c in enumerate(plan.partition_columns) if c.source == FROM_PATH}
    paths: list[str] = plan.partition_values.column(PARTITION).to_pylist()
    out = {}
    for name, nth in wanted.items():
        kind = plan.partition_columns[nth].type
        values = plan.partition_values.column(name)
        text = _text(plan, paths, nth)
        made = None if text is None else _converted(text, name, kind, _python_values(values))
        if made is None:
            made = _looked_up(plan.uri, paths, values)
        # A value that no partition is without today, one may be without tomorrow: nullable, as Apache Hudi's.
        # PySpark 4 sees through a condition that is true; each file has a path, which the optimizer finds later.
        # Types by name: PySpark 3.5 looks for the session to convert others.
        out[name] = F.when(_file_path().isNotNull(), made.cast(to_spark_type(kind, name).simpleString()))
    return out


def _python_values(values: pa.ChunkedArray) -> list[object]:
    """Values as Python has them; dates as Java's text, and timestamps as microseconds, which have no last year."""
    if pa.types.is_date(values.type):
        values = to_text(values.combine_chunks())
    elif pa.types.is_timestamp(values.type):
        values = timestamp_micros(values.combine_chunks())
    plain: list[object] = values.to_pylist()
    return plain


def _file_path() -> Column:
    return F.col("_metadata.file_path")


def _text(plan: ScanPlan, paths: Sequence[str], nth: int) -> _Text | None:
    """Path levels of the column, or None where they differ between partitions."""
    depths = {p.count("/") + 1 for p in paths}
    fields = len(plan.partition_columns)
    if len(depths) != 1:
        return None
    depth = depths.pop()
    if fields not in (1, depth):
        return None
    raw = list(paths) if fields == 1 else [p.split("/")[nth] for p in paths]
    if len(raw) == 1:
        return _Text(raw, F.lit(java_path(raw[0])))
    if fields == 1:
        below = F.substring_index(_file_path(), "/", -(depth + 1))
        return _Text(raw, F.substring_index(below, "/", depth))
    level = F.substring_index(F.substring_index(_file_path(), "/", -(depth + 1 - nth)), "/", 1)
    return _Text(raw, level)


def _converted(text: _Text, name: str, kind: pa.DataType, values: Sequence[object]) -> Column | None:
    """Column values cut, decoded and cast from the path; None where `values` differ."""
    column = text.column
    if any(java_path(raw) != raw for raw in text.raw):
        column = _decoded(column)
    prefix = f"{name}="
    styled = [raw.startswith(prefix) for raw in text.raw]
    bare = [raw[len(prefix) :] if is_styled else raw for raw, is_styled in zip(text.raw, styled, strict=True)]
    if all(styled):
        column = column.substr(F.lit(len(prefix) + 1), F.length(column))
    elif any(styled):
        cut = column.substr(F.lit(len(prefix) + 1), F.length(column))
        column = F.when(column.startswith(prefix), cut).otherwise(column)
    null = column == HIVE_DEFAULT
    if any("%" in b for b in bare):
        if any(_ESCAPE.search(b) for b in bare):
            return None  # Java refuses such escapes, Hudi's reader takes them as they are
        column = _decoded(column)
    texts = [None if b == HIVE_DEFAULT else unquote(b) for b in bare]
    is_value = _checker(kind)
    if is_value is None:
        return None
    for shown, value in zip(texts, values, strict=True):
        if (shown is None) != (value is None) or (shown is not None and not is_value(shown, value)):
            return None
    if any(t is None for t in texts):
        column = F.when(~null, column)
    if pa.types.is_timestamp(kind):
        column = F.timestamp_micros(column.cast("long"))
    return column


def _decoded(column: Column) -> Column:
    # Java's decoder takes "+" for a space, which in a path it is not.
    return F.url_decode(F.regexp_replace(column, r"\+", "%2B"))


def _checker(kind: pa.DataType) -> Callable[[str, object], bool] | None:
    """Check of Spark's cast from text; None for types without a safe cast."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda text, value: text == value
    if pa.types.is_integer(kind):
        return lambda text, value: text == str(value)
    if pa.types.is_boolean(kind):
        return lambda text, value: text == str(value).lower()
    if pa.types.is_date(kind):
        return lambda text, value: text == value
    if pa.types.is_decimal(kind):
        return _is_decimal
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return lambda text, value: re.fullmatch("-?[0-9]{5,18}", text) is not None
    return None


def _is_decimal(text: str, value: object) -> bool:
    try:
        return "e" not in text.lower() and Decimal(text) == value
    except InvalidOperation:
        return False


def _looked_up(uri: str, paths: Sequence[str], values: pa.ChunkedArray) -> Column:
    """Values by partition, from a constant map; for any path and type."""
    kind = values.type
    numeric = pa.types.is_timestamp(kind) and kind.tz is not None
    if pa.types.is_binary(kind):
        texts = [None if v is None else v.hex() for v in values.to_pylist()]
    elif numeric or pa.types.is_date(kind):
        texts = [None if v is None else str(v) for v in _python_values(values)]
    else:
        texts = values.cast(pa.string()).to_pylist()
    table = json.dumps({java_path(p): t for p, t in zip(paths, texts, strict=True) if t is not None})
    base = java_path(uri.partition("://")[2] or uri) + "/"
    path = _file_path()
    below = path.substr(F.locate(base, path) + len(base), F.length(path))
    folder = below.substr(F.lit(1), F.length(below) - F.length(F.substring_index(below, "/", -1)) - 1)
    found = F.element_at(F.from_json(F.lit(table), "map<string,string>"), folder)
    if numeric:
        return F.timestamp_micros(found.cast("long"))
    return F.unhex(found) if pa.types.is_binary(kind) else found
