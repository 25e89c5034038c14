"""Record key and partition path as Spark expressions, where they equal Hudi's text.

Source: hudi_format.keygen.record_keys, which the tests hold these expressions to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.keygen.key_generator import SIMPLE, KeySpec
from hudi_format.keygen.partition_path import ESCAPED_CHARS, HIVE_DEFAULT, check_told, null_texts
from hudi_format.keygen.record_keys import EMPTY_PART, NULL_PART
from hudi_format.keygen.time_zones import zone
from hudi_format.keygen.timestamp_based import TimeSpec
from hudi_spark.types import quoted

# Dates in partition paths as Spark's own expressions, where numbers are shown by the clock of UTC.
#
# Source: hudi_format.keygen.timestamp_based, which the tests hold these expressions to.

_UTC = ("UTC", "GMT", "Etc/UTC", "Etc/GMT")
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_MILLIS = {"MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
_DAY = 86_400_000
_TOKENS = re.compile(r"yyyy|MM|dd|HH|mm|ss|[-/_.: ]")
# Years of four digits; beyond them the pattern makes other texts.
_FIRST, _LAST = ((d - date(1970, 1, 1)).days for d in (date.min, date.max))


def time_text(values: Column, kind: T.DataType, spec: TimeSpec) -> Column | None:
    """Formatted text of a number column; None where only the kernels can make it.

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
    """Two digits of the hours, minutes or seconds in a day's milliseconds."""
    rest = of_day - F.pmod(of_day, F.lit(unit_ms).cast("long"))
    return F.lpad(F.pmod((rest / F.lit(unit_ms)).cast("int"), F.lit(of)).cast("string"), 2, "0")


# Spark's cast of these to string is the text of Apache Hudi's key generators.
_SAME_TEXT = (T.StringType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.BooleanType, T.DateType)
# BigDecimal.toString has an exponent from the seventh digit on; what Spark's cast does there depends on settings.
_PLAIN_SCALE = 6


def nested_field(path: str, schema: T.StructType) -> tuple[Column, T.DataType] | None:
    """A column and its type, by name or dot path; None where it is missing."""
    if path in schema.names:
        return quoted(path), schema[path].dataType
    kind: T.DataType = schema
    for part in path.split("."):
        if not isinstance(kind, T.StructType) or part not in kind.names:
            return None
        kind = kind[part].dataType
    return quoted(*path.split(".")), kind


def column_at(path: str, rows: DataFrame) -> Column:
    """A column of rows by name or dot path; Spark says so where there is none."""
    found = nested_field(path, rows.schema)
    return quoted(path) if found is None else found[0]


def key_text(path: str, schema: T.StructType) -> Column | None:
    """The column's key and path text; None where only Arrow can make it."""
    found = nested_field(path, schema)
    if found is None:
        return None
    values, kind = found
    if isinstance(kind, _SAME_TEXT) or (isinstance(kind, T.DecimalType) and kind.scale <= _PLAIN_SCALE):
        return values.cast("string")
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(values).cast("string")
    if isinstance(kind, T.BinaryType):
        return F.lower(F.hex(values))
    return None


def _texts(fields: Sequence[str], schema: T.StructType, spec: KeySpec) -> list[Column] | None:
    if spec.timestamp_zone is not None and any(
        _is(f, schema, T.TimestampType, T.TimestampNTZType) for f in fields
    ):
        return None
    found = [key_text(f, schema) for f in fields]
    known = [t for t in found if t is not None]
    return known if len(known) == len(found) else None


def _dates(field: str, schema: T.StructType, spec: KeySpec) -> list[Column]:
    found = nested_field(field, schema)
    if found is None or spec.times is None:
        return []
    text = time_text(*found, spec.times)
    return [] if text is None else [text]


def _is(path: str, schema: T.StructType, *kinds: type[T.DataType]) -> bool:
    """Whether a column is there, and of one of these types."""
    found = nested_field(path, schema)
    return found is not None and isinstance(found[1], kinds)


def made_up_key() -> Column:
    """Generated key without its instant: `_<number of the task>_<number of the row in it>`."""
    number = F.monotonically_increasing_id()  # the task's number stands in the upper 31 bits
    task, row = F.shiftright(number, 33), number.bitwiseAND(F.lit((1 << 33) - 1))
    return F.concat(F.lit("_"), task.cast("string"), F.lit("_"), row.cast("string"))


def record_key(spec: KeySpec, schema: T.StructType) -> Column | None:
    """Record key expression, null for null or empty keys; None where a field needs Arrow."""
    if spec.auto:
        return made_up_key()
    texts = _texts(spec.key_fields, schema, spec)
    if texts is None:
        return None
    if len(texts) == 1 and spec.kind != "GLOBAL_DELETE":
        return F.when(texts[0] != "", texts[0])
    parts: list[Column] = []
    for field, value in zip(spec.key_fields, texts, strict=True):
        shown = F.coalesce(F.when(value == "", F.lit(EMPTY_PART)).otherwise(value), F.lit(NULL_PART))
        parts += [F.lit(f"{',' if parts else ''}{field}:"), shown]
    filled = F.lit(False)
    for value in texts:
        filled = filled | F.coalesce(value != "", F.lit(False))
    return F.when(filled, F.concat(*parts))


# Around the number of a field whose value is refused, in the path of its row; no path of a table has this character.
_REFUSED = "\0"


def refused_field(path: str, spec: KeySpec) -> str | None:
    """Partition column with a refused value in rows of this path; None without one."""
    found = re.search(f"{_REFUSED}([0-9]+){_REFUSED}", path) if spec.refuses_null_texts else None
    return None if found is None else spec.partition_fields[int(found[1])]


def refuse_untold(paths: Iterable[str], spec: KeySpec) -> None:
    """Refuse paths that do not tell their values apart.

    Raises:
        PartitionPathError: the first of them.
    """
    if spec.refuses_null_texts and all(kind == SIMPLE for kind in spec.field_kinds):
        for path in paths:
            check_told(path, spec.partition_fields)


def partition_path(spec: KeySpec, schema: T.StructType) -> Column | None:
    """Partition path expression, "" without partitions; None where a field needs Arrow.

    With dates in a pattern the path is null in rows that `time_text` leaves to the kernels.  Rows whose value the
    spec refuses have a path that names the column, see `refused_field`.
    """
    if not spec.partition_fields:
        return F.lit("")
    if any(_is(f, schema, T.BinaryType) for f in spec.partition_fields):
        return None
    texts: list[Column] = []
    for field, kind in zip(spec.partition_fields, spec.field_kinds, strict=True):
        found = _texts((field,), schema, spec) if kind == SIMPLE else _dates(field, schema, spec)
        if not found:
            return None
        texts += found
    parts: list[Column] = []
    for number, (field, kind, value) in enumerate(
        zip(spec.partition_fields, spec.field_kinds, texts, strict=True)
    ):
        shown = _escaped(value) if spec.url_encode else value
        if kind == SIMPLE:
            shown = F.when(value != "", shown).otherwise(F.lit(HIVE_DEFAULT))
            if spec.refuses_null_texts and _is(field, schema, T.StringType):
                refused = null_texts(field, hive_style=spec.hive_style, url_encode=spec.url_encode)
                mark = F.lit(f"{_REFUSED}{number}{_REFUSED}")
                shown = F.when(value.isin(*refused), mark).otherwise(shown)
        start = ("/" if parts else "") + (f"{field}=" if spec.hive_style else "")
        parts += [F.lit(start), shown] if start else [shown]
    return F.concat(*parts)


def _escaped(value: Column) -> Column:
    """Apache Hudi's %XX form of a text.

    "%" is replaced first; a text without special characters skips the rest.
    """
    out = value
    for char in sorted(ESCAPED_CHARS, key=lambda c: c != "%"):
        out = F.regexp_replace(out, f"\\x{ord(char):02x}", f"%{ord(char):02X}")
    special = "[" + "".join(f"\\x{ord(c):02x}" for c in ESCAPED_CHARS) + "]"
    return F.when(value.rlike(special), out).otherwise(value)
