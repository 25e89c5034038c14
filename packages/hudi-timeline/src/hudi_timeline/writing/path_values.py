"""Warnings about partition values that a folder's name does not give back.

Without URL encoding a value stands in the partition path as it is.  Snapshots of copy-on-write tables take values of
partition columns from the path, in Apache Hudi and here: `a%20b` is taken for an encoded `a b`, and `p=x` of a column p
for a level in Hive style.  The files have the value itself; incremental queries and merge-on-read tables give it.

Apache Hudi accepts such values, so that to refuse them would stop scripts that write them.

Source: Apache Hudi 0.15 by experiment; `tests/interop/test_path_values.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hudi_format.keygen.key_generator import SIMPLE, KeySpec
from hudi_format.keygen.partition_path import HIVE_DEFAULT, split_values
from hudi_format.model import WriteStat
from hudi_timeline.options.table_options import URL_ENCODE
from hudi_timeline.table_config import TableConfig

_SHOWN = 3


def about_path_values(spec: KeySpec, table: TableConfig, stats: Sequence[WriteStat]) -> Iterator[str]:
    """Warning of a write, where values of its partitions are read back as others.

    Args:
        stats: of the files that it wrote.
    """
    by_path = table.table_type == "COPY_ON_WRITE" or table.drop_partition_columns
    if not by_path or spec.url_encode or any(kind != SIMPLE for kind in spec.field_kinds):
        return
    found = list(dict.fromkeys(_changed({s.partition for s in stats}, spec)))
    if not found:
        return
    shown = ", ".join(f"{value!r} as {read!r}" for value, read in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    yield (
        f"values of {', '.join(spec.partition_fields)} are taken from the partition path by snapshots, as by those of "
        f"Apache Hudi, and read back in another form: {shown}{more}; tables made with {URL_ENCODE}=true have no such "
        "values"
    )


def _changed(paths: Iterable[str], spec: KeySpec) -> Iterator[tuple[str, str | None]]:
    """Values of partition paths, and what is read of the path where that is another."""
    fields = spec.partition_fields
    for path in sorted(paths):
        levels = [path] if len(fields) == 1 else path.split("/")
        read = split_values(path, fields)
        if read is None or len(levels) != len(
            fields
        ):  # with slashes in values, of which no read goes through
            continue
        for field, level, value in zip(fields, levels, read, strict=True):
            text = level.removeprefix(f"{field}=") if spec.hive_style else level
            if text not in (value, HIVE_DEFAULT):
                yield text, value


__all__ = ["about_path_values"]
