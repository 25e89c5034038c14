"""Dates in partition paths as Spark's own expressions, where numbers are shown by the clock of UTC.

Source: hudi_format.time_keys, which the tests hold these expressions to.
"""

from __future__ import annotations

import re
from datetime import date

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.time_keys import TimeSpec
from hudi_format.zones import zone

_UTC = ("UTC", "GMT", "Etc/UTC", "Etc/GMT")
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_MILLIS = {"MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
_DAY = 86_400_000
_TOKENS = re.compile(r"yyyy|MM|dd|HH|mm|ss|[-/_.: ]")
# Years of four digits; beyond them the pattern makes other texts.
_FIRST, _LAST = ((d - date(1970, 1, 1)).days for d in (date.min, date.max))


def time_text(values: Column, kind: T.DataType, spec: TimeSpec) -> Column | None:
    """The text of a column of whole numbers; None where only the kernels make the same.

    A row whose year has not four digits gets null: the kernels have to make its path.
    """
    place = spec.local if spec.output_zone is None else zone(spec.output_zone)
    tokens = _TOKENS.findall(spec.output_pattern)
    plain = "".join(tokens) == spec.output_pattern and spec.output_pattern.strip()
    if not isinstance(kind, _WHOLE) or spec.unit not in _MILLIS or place.name not in _UTC or not plain:
        return None
    factor = _MILLIS[spec.unit]
    first, last = _FIRST * (_DAY // factor), (_LAST + 1) * (_DAY // factor) - 1
    number = F.coalesce(values.cast("long"), F.lit(1).cast("long"))  # a null is 1 in the unit
    millis = number * F.lit(factor).cast("long")
    of_day = F.pmod(millis, F.lit(_DAY).cast("long"))
    days = ((millis - of_day) / F.lit(_DAY)).cast("int")  # exact: a whole number far below 2**53
    shown = F.date_add(F.lit(date(1970, 1, 1)), days).cast("string")
    parts = {
        "yyyy": shown.substr(1, 4),
        "MM": shown.substr(6, 2),
        "dd": shown.substr(9, 2),
        "HH": _two(of_day, 3_600_000, 24),
        "mm": _two(of_day, 60_000, 60),
        "ss": _two(of_day, 1000, 60),
    }
    text = F.concat(*(parts[t] if t in parts else F.lit(t) for t in tokens))
    return F.when(number.between(first, last), text)


def _two(of_day: Column, unit_ms: int, of: int) -> Column:
    """The hours, minutes or seconds of a day's milliseconds, in two digits."""
    rest = of_day - F.pmod(of_day, F.lit(unit_ms).cast("long"))
    return F.lpad(F.pmod((rest / F.lit(unit_ms)).cast("int"), F.lit(of)).cast("string"), 2, "0")
