"""Partition paths: encoding of values as path segments, and decoding.

Source: Apache Hudi 0.15's key generators and its reading of Spark-style partition paths, checked on
the golden tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from hudi_format.errors import PartitionPathError
from hudi_format.file_names import META_DIR
from hudi_format.storage.safe_path import is_plain

HIVE_DEFAULT = "__HIVE_DEFAULT_PARTITION__"
NULL_TEXTS_OPTION = "hudi.partition.null.texts"
STORE_COLUMN = (
    "read other columns; to have this one, write the rows anew with hoodie.datasource.write.drop.partition.columns"
    "=false, or with a pattern of paths that makes text of the column's type."
)
MAX_NAME_BYTES = 255
"""Of one name in a path, on local file systems and HDFS; object stores have no such bound."""

# What Apache Hudi escapes with hoodie.datasource.write.partitionpath.urlencode; a space, "}" and
# all that is not ASCII stay as they are.
ESCAPED_CHARS = "".join(map(chr, range(0x20))) + "\"#%'*/:=?\\\x7f{[]^"
_ESCAPE = re.compile(f"[{re.escape(ESCAPED_CHARS)}]")


def escape(value: str) -> str:
    """`value` with the characters of `ESCAPED_CHARS` percent-encoded in upper case."""
    return _ESCAPE.sub(lambda m: f"%{ord(m[0]):02X}", value)


def segment(field: str, value: str | None, *, hive_style: bool, url_encode: bool) -> str:
    """One level of a partition path; null and empty become Hive's default partition."""
    text = HIVE_DEFAULT if value is None or value == "" else escape(value) if url_encode else value
    return f"{field}={text}" if hive_style else text


def null_texts(field: str, *, hive_style: bool, url_encode: bool) -> tuple[str, ...]:
    """Texts of a partition column whose path segments are read back as null."""
    # A level that begins with the field's name is taken for Hive style, whatever the table's style is.
    more = () if hive_style or url_encode else (f"{field}={HIVE_DEFAULT}",)
    return ("", HIVE_DEFAULT, *more)


def null_text_error(field: str, rows: int, total: int) -> PartitionPathError:
    """Error for rows with one of `null_texts` in a partition column.

    Args:
        total: of how many rows.
    """
    counted = f" in {rows:,} of {total:,} rows" if total > 1 else ""
    return PartitionPathError(
        f"partition column {field!r} is empty text or {HIVE_DEFAULT}{counted}, which would be read back as null",
        remedy="write null, which is the same partition, or another value; "
        f"{NULL_TEXTS_OPTION}=write accepts them as Apache Hudi does.",
        column=field,
        rows=rows,
    )


def lacks_column(column: str) -> PartitionPathError:
    """Error for a file without a column whose value its partition path does not say."""
    return PartitionPathError(
        f"the file does not hold column {column}, and its partition path has the value in another form",
        remedy=STORE_COLUMN,
        column=column,
    )


def check_told(path: str, fields: Sequence[str]) -> None:
    """Check that a path to be written tells the values of its fields apart.

    Raises:
        PartitionPathError: it does not, and no read of the table would go through.
    """
    if split_values(path, fields) is None:
        raise PartitionPathError(
            f"partition path {path!r} does not tell the values of {', '.join(fields)} apart: there is a slash in one",
            remedy="write values without slashes, or make the table with "
            f"hoodie.datasource.write.partitionpath.urlencode=true; {NULL_TEXTS_OPTION}=write writes it as Apache Hudi "
            "does.",
            column=",".join(fields),
            path=path,
        )


def split_values(path: str, fields: Sequence[str]) -> list[str | None] | None:
    """Text values of a partition path, one per field, or None where they are ambiguous.

    One field takes the whole path, so that an unescaped `2024/03/05` stays one value.  Several fields
    over another number of segments can only be told apart in hive style.
    """
    if not fields:
        return []
    segments = path.split("/")
    if len(fields) == 1 and len(segments) > 1:
        return [_value(path, fields[0])]
    if len(segments) == len(fields):
        return [_value(s, f) for s, f in zip(segments, fields, strict=True)]
    groups: list[str] = []
    for s in segments:
        nth = len(groups)
        if nth < len(fields) and s.startswith(f"{fields[nth]}="):
            groups.append(s)
        elif groups:
            groups[-1] += "/" + s
        else:
            return None
    if len(groups) != len(fields):
        return None
    return [_value(g, f) for g, f in zip(groups, fields, strict=True)]


def _value(text: str, field: str) -> str | None:
    raw = text[len(field) + 1 :] if text.startswith(f"{field}=") else text
    return None if raw == HIVE_DEFAULT else unquote(raw)


def is_safe(path: str) -> bool:
    """Whether the path stays below the table and outside `.hoodie`; see `check_safe`."""
    # Some file systems take upper and lower case for the same.
    return path == "" or (is_plain(path) and path.partition("/")[0].lower() != META_DIR)


def read_otherwise(path: str, fields: Sequence[str], *, hive_style: bool) -> list[tuple[str, str | None]]:
    """Values in a path that is not URL-encoded, with what is read of it where that is another.

    `a%20b` is taken for an encoded `a b`, and `p=x` of a field p for a level in Hive style, by Apache Hudi and here.
    """
    levels = [path] if len(fields) == 1 else path.split("/")
    read = split_values(path, fields)
    if read is None or len(levels) != len(fields):  # there are slashes in values: see `check_told`
        return []
    out = []
    for field, level, value in zip(fields, levels, read, strict=True):
        text = level.removeprefix(f"{field}=") if hive_style else level
        if text not in (value, HIVE_DEFAULT):
            out.append((text, value))
    return out


def check_safe(path: str) -> str:
    """The path, after a check that it stays below the table and outside `.hoodie`.

    Raises:
        PartitionPathError: it leads out or is not plain (`safe_path`), or is below `.hoodie`.
    """
    if not is_safe(path):
        raise PartitionPathError(
            f"partition path {path!r} does not name a folder below the table",
            remedy="correct the value, or make the table with hoodie.datasource.write.partitionpath.urlencode=true, "
            "for values with slashes, or hoodie.datasource.write.hive_style_partitioning=true, for '.', '..' and "
            "'.hoodie'.",
        )
    return path


def check_names(path: str) -> str:
    """The path, after a check that a file system can have folders of its names.

    Raises:
        PartitionPathError: a name that is too long.
    """
    size = max(len(name.encode()) for name in path.split("/"))
    if size > MAX_NAME_BYTES:
        raise PartitionPathError(
            f"partition path {path[:50]!r}... has a name of {size} bytes, and file systems have folders of up to "
            f"{MAX_NAME_BYTES}",
            remedy="partition by another column, or by a shorter form of the value.",
        )
    return path
