"""Record key and partition path as Spark's own column expressions, where Spark writes a value as Hudi does.

Source: hudi_format.keys, which the tests hold these expressions to.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.keys import KeySpec
from hudi_format.partition_path import ESCAPED_CHARS, HIVE_DEFAULT

NULL, EMPTY = "__null__", "__empty__"

# Spark's cast of these to string is the text of Apache Hudi's key generators.
_SAME_TEXT = (T.StringType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.BooleanType, T.DateType)


def field_type(schema: T.StructType, path: str) -> T.DataType | None:
    """The type of a column by dot path, None where there is none."""
    kind: T.DataType = schema
    for part in path.split("."):
        if not isinstance(kind, T.StructType) or part not in kind.names:
            return None
        kind = kind[part].dataType
    return kind


def column(path: str) -> Column:
    """A column by dot path."""
    return F.col(".".join(f"`{part}`" for part in path.split(".")))


def native(spec: KeySpec, schema: T.StructType) -> bool:
    """Whether all key and partition fields have a native text."""
    fields = (*spec.key_fields, *spec.partition_fields)
    return all(isinstance(field_type(schema, f), _SAME_TEXT) for f in fields)


def record_key(spec: KeySpec) -> Column:
    """The record key; null where it would be null or empty."""
    texts = [column(f).cast("string") for f in spec.key_fields]
    if len(texts) == 1:
        return F.when(texts[0] != "", texts[0])
    parts: list[Column] = []
    for field, text in zip(spec.key_fields, texts, strict=True):
        value = F.coalesce(F.when(text == "", F.lit(EMPTY)).otherwise(text), F.lit(NULL))
        parts += [F.lit(f"{',' if parts else ''}{field}:"), value]
    filled = F.lit(False)
    for text in texts:
        filled = filled | F.coalesce(text != "", F.lit(False))
    return F.when(filled, F.concat(*parts))


def partition_path(spec: KeySpec) -> Column:
    """The partition path; "" for a table without partitions."""
    if not spec.partition_fields:
        return F.lit("")
    parts: list[Column] = []
    for field in spec.partition_fields:
        text = column(field).cast("string")
        value = _escaped(text) if spec.url_encode else text
        value = F.when(text != "", value).otherwise(F.lit(HIVE_DEFAULT))
        start = ("/" if parts else "") + (f"{field}=" if spec.hive_style else "")
        parts += [F.lit(start), value] if start else [value]
    return F.concat(*parts)


def _escaped(text: Column) -> Column:
    """Apache Hudi's %XX form.  "%" is replaced first; a text without special characters skips the rest."""
    out = text
    for char in sorted(ESCAPED_CHARS, key=lambda c: c != "%"):
        out = F.regexp_replace(out, f"\\x{ord(char):02x}", f"%{ord(char):02X}")
    special = "[" + "".join(f"\\x{ord(c):02x}" for c in ESCAPED_CHARS) + "]"
    return F.when(text.rlike(special), out).otherwise(text)
