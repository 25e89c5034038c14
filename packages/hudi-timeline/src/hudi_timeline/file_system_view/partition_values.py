"""Typed partition values from partition paths.

Source: HoodieSparkUtils.parsePartitionColumnValues of Apache Hudi 0.15 and Spark's reading of partition
paths with given types; checked on the golden tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import texts
from hudi_format.errors import PartitionPathError
from hudi_format.keygen.key_generator import known_kind
from hudi_format.keygen.partition_path import STORE_COLUMN, split_values
from hudi_format.schema.decimals import decimals_of
from hudi_timeline.table_config import HIVE_STYLE, TableConfig

# The column of paths beside those of values: no column of a table has a name with a slash.
PARTITION = "/partition"
FROM_PATH = "path"
FROM_FILE = "file"


def path_type(config: TableConfig, declared: pa.DataType) -> pa.DataType:
    """Type of a partition column with values from the path."""
    if known_kind(config.keygen_class or "") == "TIMESTAMP":
        return pa.string()  # the path holds a formatted date, whatever the column's own type is
    return declared


def partition_columns(
    config: TableConfig, schema: pa.Schema, *, from_path: bool
) -> tuple[PartitionColumn, ...]:
    """Partition columns of a scan.

    Args:
        schema: the table's schema; a partition field that it lacks is text.
    """
    out = []
    read = set[str]() if config.drop_partition_columns else _never_of_paths(config)
    stored = not config.drop_partition_columns and not config.bootstrap_base_path
    formatted = _may_format(config)
    for name in config.partition_fields:
        index = schema.get_field_index(name)
        declared = schema.field(index).type if index >= 0 else pa.string()
        # A nested field (`address.city`) is part of a struct, which only the files hold.
        if from_path and name not in read and (index >= 0 or "." not in name):
            kind, in_files = path_type(config, declared), stored and index >= 0
            out.append(
                PartitionColumn(name, FROM_PATH, kind, formatted=formatted and in_files, stored=in_files)
            )
        elif from_path and index >= 0 and name in read:
            # Of a timestamp Apache Hudi 1.x makes text that it then fails to read.
            text = not pa.types.is_timestamp(declared)
            out.append(PartitionColumn(name, FROM_FILE, path_type(config, declared) if text else declared))
        else:
            out.append(PartitionColumn(name, FROM_FILE, declared))
    return tuple(out)


def with_times_as_text(config: TableConfig, schema: pa.Schema) -> pa.Schema:
    """Schema of rows from version 8 on, with formatted times of paths as text.

    Values stay those of the files.  So Apache Hudi 1.x types them.
    """
    return _typed_as(config, schema, FROM_FILE)


def with_path_types(config: TableConfig, schema: pa.Schema) -> pa.Schema:
    """Schema of rows with the partition columns typed as in paths."""
    return _typed_as(config, schema, FROM_PATH)


def _typed_as(config: TableConfig, schema: pa.Schema, source: str) -> pa.Schema:
    """Schema with the types of those partition columns that have their values from a source."""
    for column in partition_columns(config, schema, from_path=True):
        index = schema.get_field_index(column.name)
        if column.source == source and index >= 0:
            schema = schema.set(index, schema.field(index).with_type(column.type))
    return schema


def copied_columns(config: TableConfig, schema: pa.Schema) -> tuple[PartitionColumn, ...]:
    """Partition columns; FROM_PATH where a key generator copies the files' value into the path.

    That is so of the plain key generators, and of types that have one text.  Rows have another value than their path
    where a global index left them in their partition as the column changed.  There the path counts, as in
    copy-on-write tables and in Apache Hudi 1.x; Apache Hudi 0.15 shows the files' value, and finds it by no filter.
    """
    is_plain = known_kind(config.keygen_class or "") in ("SIMPLE", "COMPLEX")
    found = partition_columns(config, schema, from_path=is_plain)
    is_bare = not config.hive_style and HIVE_STYLE in config.properties
    return tuple(
        c
        if c.source == FROM_FILE
        else PartitionColumn(c.name, FROM_PATH, c.type, copied=True, bare=is_bare)
        if _has_one_text(c.type)
        else PartitionColumn(c.name, FROM_FILE, c.type)
        for c in found
    )


def _has_one_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _may_format(config: TableConfig) -> bool:
    """Whether the table's key generator may put values into paths in another form than their own text.

    A custom one does, or one of the user's; of TimestampBasedKeyGenerator the form is the value.
    """
    return bool(config.keygen_class) and known_kind(config.keygen_class or "") in (None, "CUSTOM")


def _never_of_paths(config: TableConfig) -> set[str]:
    """Partition columns that Apache Hudi 1.x reads from files: formatted times."""
    kind = known_kind(config.keygen_class or "")
    if not config.version.files_tell_formatted_times:
        return set()
    if kind == "TIMESTAMP":
        return set(config.partition_fields)
    if kind == "CUSTOM":
        kinds = zip(config.partition_fields, config.partition_kinds, strict=True)
        return {name for name, of in kinds if of in ("", "TIMESTAMP")}
    return set()


def partition_table(paths: Sequence[str], columns: Sequence[PartitionColumn], *, uri: str = "") -> pa.Table:
    """One row per path: the path in PARTITION, then each FROM_PATH column.

    Args:
        columns: all partition columns, in the order of the path's segments.

    Raises:
        PartitionPathError: a path that does not say all values, or a value that is not of its type.
    """
    fields = [c.name for c in columns]
    values: list[list[str | None]] = []
    for path in paths:
        found = split_values(path, fields)
        if found is None:
            raise PartitionPathError(
                f"cannot tell the values of {', '.join(fields)} from the partition path {path!r}",
                table=uri,
                remedy="the values probably hold slashes: write the table with "
                "hoodie.datasource.write.partitionpath.urlencode=true.",
            )
        values.append(found)
    arrays: list[pa.Array] = [texts(paths)]
    names = [PARTITION]
    for nth, column in enumerate(columns):
        if column.source == FROM_PATH:
            names.append(column.name)
            text = texts([row[nth] for row in values])
            arrays.append(_typed(text, column, paths, uri))
    return pa.table(arrays, names=names)


@dataclass(frozen=True, slots=True)
class PathValues:
    """Values that partition paths say.

    Attributes:
        table: one row per path: the path in PARTITION, then each FROM_PATH column, null where the path does not say its
            value.
        untold: by path, the columns whose value it does not say; the files do.
    """

    table: pa.Table
    untold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def path_values(paths: Sequence[str], columns: Sequence[PartitionColumn], *, uri: str = "") -> PathValues:
    """Values of paths, as far as these say them; arguments and errors as of `partition_table`.

    Of columns that may be formatted, a path says those whose text is one of their type, and no time: `2024` may be
    a year, a number of days, or half of a date.  Of copied ones, no null, which has the path of an empty text, and
    nothing that may be escaped.
    """
    if not any(c.formatted or c.copied for c in columns if c.source == FROM_PATH):
        return PathValues(partition_table(paths, columns, uri=uri))
    fields = [c.name for c in columns]
    levels = [split_values(path, fields) for path in paths]
    arrays: list[pa.Array] = [texts(paths)]
    names = [PARTITION]
    untold: dict[str, tuple[str, ...]] = {}
    for nth, column in enumerate(columns):
        if column.source != FROM_PATH:
            continue
        text = [None if values is None else values[nth] for values in levels]
        strange = set[str | None]() if column.told_by_paths else set(text)
        if column.told_by_paths:
            try:
                cast_text(texts(text), column.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                strange = {t for t in set(text) if not _is_text_of(t, column.type)}
        if column.copied:
            strange.add(None)
        is_untold = [
            values is None or own in strange or column.may_be_other(path)
            for path, values, own in zip(paths, levels, text, strict=True)
        ]
        for path in itertools.compress(paths, is_untold):
            untold[path] = (*untold.get(path, ()), column.name)
        names.append(column.name)
        known = [None if other else t for other, t in zip(is_untold, text, strict=True)]
        arrays.append(
            cast_text(texts(known), column.type)
            if column.told_by_paths
            else pa.nulls(len(known), column.type)
        )
    return PathValues(pa.table(arrays, names=names), untold)


def _is_text_of(text: str | None, kind: pa.DataType) -> bool:
    try:
        cast_text(texts([text]), kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _typed(text: pa.Array, column: PartitionColumn, paths: Sequence[str], uri: str) -> pa.Array:
    try:
        return cast_text(text, column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as whole:
        remedy = "check the table's key generator; rename the folder if it is not the table's."
        remedy = remedy if column.stored else STORE_COLUMN
        for path, value in zip(paths, text, strict=True):
            try:
                cast_text(texts([value.as_py()]), column.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
                lacking = "" if column.stored else ", and the files do not hold the column"
                raise PartitionPathError(
                    f"the partition path {path!r} has the value {value.as_py()!r} for column {column.name}, "
                    f"which is not of type {column.type}{lacking}: {str(e).splitlines()[0]}",
                    table=uri,
                    column=column.name,
                    remedy=remedy,
                ) from None
        raise PartitionPathError(f"column {column.name}: {whole}", table=uri, remedy=remedy) from None


def cast_text(text: pa.Array, to: pa.DataType) -> pa.Array:
    """Text cast to a type.

    Dates and timestamps are ISO text, or what Apache Hudi's key generators make of them: the days and
    the microseconds since 1970.  Timestamps of a zone are UTC, in which Hudi keeps them.  A timestamp of four digits is
    a year, as in Spark's casts.
    """
    if pa.types.is_timestamp(to):
        plain = pa.timestamp("us")
        numeric = pc.match_substring_regex(text, "^-?([0-9]{1,3}|[0-9]{5,})$|^-[0-9]{4}$")
        micros = pc.if_else(numeric, text, pa.NA).cast(pa.int64()).cast(plain)
        iso = pc.if_else(numeric, pa.NA, pc.replace_substring_regex(text, "(Z|[+]00:?00)$", ""))
        iso = pc.replace_substring_regex(iso, "^([0-9]{4})$", "\\1-01-01")
        value = pc.coalesce(micros, iso.cast(plain))
        return pc.assume_timezone(value, "UTC").cast(to) if to.tz is not None else value.cast(to)
    if pa.types.is_date(to):
        numeric = pc.match_substring_regex(text, "^-?[0-9]+$")
        days = pc.if_else(numeric, text, pa.NA).cast(pa.int32()).cast(pa.date32())
        days = pc.coalesce(days, _days_of_far_years(text))
        iso = pc.if_else(pc.is_null(days), text, pa.NA)
        return pc.coalesce(days, iso.cast(pa.date32())).cast(to)
    return decimals_of(text, to) if pa.types.is_decimal128(to) else text.cast(to)


def _days_of_far_years(text: pa.Array) -> pa.Array:
    """Dates before the year 0 and after 9999, which Java signs and Arrow does not parse; null for others."""
    far = pc.match_substring_regex(text, "^([-][0-9]{4,7}|[+][0-9]{5,7})-[0-9]{2}-[0-9]{2}$")
    if not pc.any(far).as_py():
        return pa.nulls(len(text), pa.date32())
    days = [_day(value.as_py()) if is_far.as_py() else None for value, is_far in zip(text, far, strict=True)]
    return pa.array(days, pa.int32()).cast(pa.date32())


def _day(text: str) -> int | None:
    try:
        return int(np.datetime64(text, "D").astype(np.int64))
    except ValueError:  # no such month or day; the caller's cast says so
        return None


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One field of `hoodie.table.partition.fields`.

    Attributes:
        source: `FROM_PATH`: the value is the one that the partition path says, whatever the files hold
            (snapshot and time travel of copy-on-write tables); `FROM_FILE`: read like any other column.
        type: its type in the result.  A path value may have another one than the table's schema declares:
            a TimestampBasedKeyGenerator's column is text.
        formatted: whether a key generator may have put another form of the value into the path, and the files have
            the value itself (of FROM_PATH only).
        stored: whether the files hold the column.
        copied: whether the files hold the value that the path has as its text, and have it where a path says none
            (of FROM_PATH only).
        bare: of copied ones, whether values have no names of columns before them in paths.
    """

    name: str
    source: str
    type: pa.DataType
    formatted: bool = False
    stored: bool = True
    copied: bool = False
    bare: bool = False

    @property
    def told_by_paths(self) -> bool:
        """Whether a path may say its value: the form of a time looks like that of another one."""
        is_time = pa.types.is_temporal(self.type)
        return self.source == FROM_PATH and not (self.formatted and is_time)

    def may_be_other(self, path: str) -> bool:
        """Whether files may hold another value than the path says: it looks escaped or named."""
        return self.copied and ("%" in path or (self.bare and "=" in path))
