"""Expression indexes: what bounds of an expression say about its column.

An index of Apache Hudi 1.x, such as one by `from_unixtime(ts, 'yyyy-MM-dd')`, holds the bounds of the expression in
each file.  Of expressions that ascend with their column these are bounds of the column, by which any filter on it may
leave files out; others say nothing here.  The time zone of the session that wrote the index is not known: bounds of
times are as wide as all zones together.

Source: HoodieExpressionIndex and IndexDefinition of Apache Hudi 1.x; spec "Metadata table", section 6.
"""

from __future__ import annotations

import calendar
import datetime as dt
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import CorruptFileError
from hudi_index.metadata_table import records as r
from hudi_index.metadata_table.keys import EXPR_INDEX, SECONDARY_INDEX
from hudi_timeline.file_system_view.snapshot import TableSnapshot

INDEX_DEFINITIONS = ".hoodie/.index_defs/index.json"
_IDENTITY, _YEAR, _FROM_UNIXTIME, _DATE_FORMAT = "identity", "year", "from_unixtime", "date_format"
_WHOLE_TIME = "yyyy-MM-dd HH:mm:ss"
# Fields of a format from the longest to the shortest: text in that order ascends as time does.
_FIELDS = (("yyyy", "%Y"), ("MM", "%m"), ("dd", "%d"), ("HH", "%H"), ("mm", "%M"), ("ss", "%S"))
_APART = re.compile("[-/:. _]?")
# Before these years calendars and zones had other rules.
_FIRST_YEAR, _LAST_YEAR = 1900, 9999
_ZONES = dt.timedelta(hours=18)
# Seconds further from 1970 overflow as microseconds, and Spark shows another time.
_MOST_SECONDS = ((1 << 63) - 1) // 10**6


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """Definition of a secondary or expression index.

    Attributes:
        name: of its partition in the metadata table.
        function: that is applied to the column.
        column: that it is of; "" for several.
    """

    name: str
    function: str
    column: str
    options: Mapping[str, str] = field(default_factory=dict)


def index_definitions(snapshot: TableSnapshot) -> dict[str, IndexDefinition]:
    """Definitions of a table's indexes by the names of their metadata partitions.

    Raises:
        CorruptFileError: they cannot be read.
    """
    try:
        said = json.loads(snapshot.storage.read(INDEX_DEFINITIONS))["indexDefinitions"]
        return {str(name): _definition(str(name), one) for name, one in said.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
        raise CorruptFileError(
            f"the definitions of indexes cannot be read: {e!r}", file=INDEX_DEFINITIONS
        ) from None


def _definition(name: str, one: Mapping[str, Any]) -> IndexDefinition:
    sources = [str(s) for s in one["sourceFields"]]
    options = {str(n): str(v) for n, v in (one.get("indexOptions") or {}).items()}
    function = str(one.get("indexFunction") or "").lower()
    return IndexDefinition(name, function, sources[0] if len(sources) == 1 else "", options)


def secondary_columns(snapshot: TableSnapshot) -> dict[str, str]:
    """Columns of secondary indexes by partition; errors as `index_definitions`."""
    return {
        name: one.column
        for name, one in index_definitions(snapshot).items()
        if name.startswith(SECONDARY_INDEX) and one.column
    }


@dataclass(frozen=True, slots=True)
class SourceBounds:
    """Bounds of the column of an expression.

    Attributes:
        of: gives the bounds, in the column's type, of statistics; null where they are not known.
        beyond: bounds past which values of the column may be outside of `of`; None for none.
    """

    of: Callable[[pa.StructArray], tuple[pa.Array, pa.Array]]
    beyond: tuple[pa.Scalar, pa.Scalar] | None = None


def source_bounds(index: IndexDefinition, kind: pa.DataType) -> SourceBounds | None:
    """Bounds of a column by those of an expression; None for one that says nothing.

    Args:
        kind: the column's type.
    """
    is_time = pa.types.is_timestamp(kind) and kind.unit in ("us", "ms")
    if not index.name.startswith(EXPR_INDEX) or not index.column:
        return None
    if index.function == _IDENTITY and r.has_bounds(kind) and not pa.types.is_floating(kind):
        return SourceBounds(lambda stats: r.bounds(stats, kind))
    if index.function == _YEAR and (is_time or pa.types.is_date32(kind)):
        return SourceBounds(lambda stats: _periods(*r.bounds(stats, pa.int32()), _of_year, kind))
    parse = _parser(index.options.get("format", _WHOLE_TIME))
    if parse is None:
        return None
    if index.function == _DATE_FORMAT and (is_time or pa.types.is_date32(kind)):
        return SourceBounds(lambda stats: _periods(*r.bounds(stats, pa.string()), parse, kind))
    if index.function == _FROM_UNIXTIME and (pa.types.is_int32(kind) or pa.types.is_int64(kind)):
        most = pa.scalar(_MOST_SECONDS, kind) if pa.types.is_int64(kind) else None
        beyond = None if most is None else (pa.scalar(-_MOST_SECONDS, kind), most)
        return SourceBounds(lambda stats: _periods(*r.bounds(stats, pa.string()), parse, kind), beyond)
    return None


_Period = tuple[dt.datetime, dt.datetime]
"""First moment of a period, and that of the next one."""


def _of_year(year: Any) -> _Period | None:
    if not _FIRST_YEAR <= year < _LAST_YEAR:
        return None
    return dt.datetime(year, 1, 1), dt.datetime(year + 1, 1, 1)


def _parser(format: str) -> Callable[[Any], _Period | None] | None:
    """Function that gives the period of a formatted time; None for a format that does not ascend with time."""
    rest, pattern, shortest = format, "", ""
    for letters, code in _FIELDS:
        apart = _APART.match(rest) if pattern else None
        separator = "" if apart is None else apart[0]
        if not rest.startswith(separator + letters):
            break
        pattern, shortest = f"{pattern}{separator}{code}", letters
        rest = rest[len(separator + letters) :]
    if rest or not shortest:
        return None

    def parse(text: Any) -> _Period | None:
        # strptime takes fields with fewer digits, which a format does not make.
        if len(text) != len(format):
            return None
        try:
            begin = dt.datetime.strptime(text, pattern)
        except ValueError:
            return None
        return (begin, _next(begin, shortest)) if _FIRST_YEAR <= begin.year < _LAST_YEAR else None

    return parse


def _next(begin: dt.datetime, shortest: str) -> dt.datetime:
    if shortest == "yyyy":
        return begin.replace(year=begin.year + 1)
    if shortest == "MM":
        return begin + dt.timedelta(days=calendar.monthrange(begin.year, begin.month)[1])
    step = {"dd": "days", "HH": "hours", "mm": "minutes", "ss": "seconds"}[shortest]
    return begin + dt.timedelta(**{step: 1})


def _periods(
    low: pa.Array, high: pa.Array, parse: Callable[[Any], _Period | None], kind: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    """Least and greatest values of a column whose times are in periods between two."""
    lows, highs = [], []
    for least, greatest in zip(low.to_pylist(), high.to_pylist(), strict=True):
        first = None if least is None else parse(least)
        last = None if greatest is None else parse(greatest)
        known = first is not None and last is not None
        lows.append(first[0] if known and first is not None else None)
        highs.append(last[1] if known and last is not None else None)
    if pa.types.is_date32(kind):  # dates have no zone
        return pa.array(lows, pa.timestamp("us")).cast(kind), pa.array(highs, pa.timestamp("us")).cast(kind)
    begins = pa.array([None if t is None else t - _ZONES for t in lows], pa.timestamp("us"))
    ends = pa.array([None if t is None else t + _ZONES for t in highs], pa.timestamp("us"))
    return _of_kind(begins, kind), _of_kind(ends, kind)


def _of_kind(moments: pa.Array, kind: pa.DataType) -> pa.Array:
    """Moments as a column has them: as timestamps, or as seconds since 1970."""
    if pa.types.is_timestamp(kind):
        return moments.cast(pa.timestamp(kind.unit)).cast(pa.int64()).cast(kind)
    seconds = pc.divide(moments.cast(pa.int64()), 10**6)
    least, most = -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1
    within = pc.max_element_wise(seconds, least, skip_nulls=False)
    return pc.min_element_wise(within, most, skip_nulls=False).cast(kind)
