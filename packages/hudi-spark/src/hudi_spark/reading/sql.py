"""Spark SQL reads without a catalog: temporary views and queries by path.

    create temporary view trips using hudi options (path 's3://lake/trips', as.of.instant '2024-03-05')
    select city, count(*) from hudi.`s3://lake/trips` group by city
    select * from hudi.`s3://lake/trips` timestamp as of '2024-03-05 10:00:00'

A view is a table's state when it was made, as with Apache Hudi; a query by path sees the newest state.

Source: Spark's SQL reference, "CREATE VIEW" and "SELECT from files"; Apache Hudi's SQL queries.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hudi_format.errors import OptionError
from hudi_spark.reading.reader import load_frame
from hudi_spark.runtime.options import take_option
from hudi_timeline.options.read_options import AS_OF

_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_VIEW = re.compile(
    r"\s*create\s+(?P<replace>or\s+replace\s+)?(?P<everywhere>global\s+)?temp(?:orary)?\s+view\s+"
    r"(?P<name>\w+|`[^`]+`)\s+using\s+`?(?:org\.apache\.)?hudi`?\s+"
    rf"options\s*\((?P<options>(?:[^()'\"]|{_STRING})*)\)\s*;?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_OPTION = re.compile(
    rf"\s*(?P<key>[\w.]+|`[^`]+`|{_STRING})\s*(?:=\s*)?(?P<value>{_STRING}|[\w.+-]+)\s*(?:,|\Z)", re.DOTALL
)
_QUERY = re.compile(r"[\s(]*(?:select|with|from)\b", re.IGNORECASE)
_CHANGES = re.compile(r"\binsert\b", re.IGNORECASE)  # may follow a common table expression
_QUOTED_NAME = re.compile(r"`[^`]*`")
# Strings and comments come first, so that nothing in them counts.
_BY_PATH = re.compile(
    rf"(?P<other>{_STRING}|--[^\n]*|/\*.*?\*/)"
    r"|(?:\b(?:org\.apache\.)?hudi|`(?:org\.apache\.)?hudi`)\s*\.\s*`(?P<path>[^`]+)`"
    rf"(?:\s+timestamp\s+as\s+of\s+(?P<at>{_STRING}))?",
    re.IGNORECASE | re.DOTALL,
)


def temporary_view(spark: SparkSession, text: str) -> DataFrame | None:
    """Create the view of a statement and return its empty result; None for other statements.

    Raises:
        OptionError: options that cannot be read, or no path among them.
        HudiError: as `load_frame`.
    """
    found = _VIEW.match(text)
    if found is None:
        return None
    options = _options(found["options"])
    frame = load_frame(spark, take_option(options, "path"), options)
    name = found["name"].strip("`")
    make = f"create{'OrReplace' if found['replace'] else ''}{'Global' if found['everywhere'] else ''}TempView"
    getattr(frame, make)(name)
    return spark.createDataFrame([], StructType([]))


def query_by_path(spark: SparkSession, text: str, run: Callable[[str], Any]) -> Any:
    """Result of a query with tables by path; None for other statements.

    Args:
        run: runs the query, in which each such table has become a view.

    Raises:
        HudiError: as `load_frame`.
    """
    bare = _QUOTED_NAME.sub(" ", _BY_PATH.sub(" ", text))
    if not _QUERY.match(bare) or _CHANGES.search(bare) or not any(m["path"] for m in _BY_PATH.finditer(text)):
        return None
    views: dict[str, DataFrame] = {}

    def view(found: re.Match[str]) -> str:
        if found["other"] is not None:
            return found["other"]
        options: dict[str, str] = {} if found["at"] is None else {AS_OF: _unquoted(found["at"])}
        name = f"hudi_{uuid.uuid4().hex}"
        views[name] = load_frame(spark, found["path"], options)
        return name

    changed = _BY_PATH.sub(view, text)
    try:
        for name, frame in views.items():
            frame.createTempView(name)
        return run(changed)
    finally:  # the answer's plan holds the tables, not the names
        for name in views:
            spark.catalog.dropTempView(name)


def _options(text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    end = 0
    while text[end:].strip():
        found = _OPTION.match(text, end)
        if found is None:
            raise OptionError(
                f"the view's options are invalid from {text[end:].strip()[:40]!r} on",
                remedy="write them as name 'value', with commas between them.",
            )
        options[_unquoted(found["key"])] = _unquoted(found["value"])
        end = found.end()
    return options


def _unquoted(text: str) -> str:
    if text[0] == "`":
        return text[1:-1]
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL) if text[0] in "'\"" else text
