"""This project without a JVM, behind the calls that `interop.apache_hudi` has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_timeline import CommitResult, HudiTable
from interop.samples import Shape


def create(path: str | os.PathLike[str], shape: Shape, *, schema: pa.Schema | None = None) -> HudiTable:
    """A new, empty table of a shape."""
    return HudiTable.create(
        str(path),
        schema or shape.schema,
        name=shape.name,
        record_keys=list(shape.keys),
        partition_fields=list(shape.partitions),
        ordering_fields=["ts"],
        options={
            "hoodie.datasource.write.hive_style_partitioning": shape.hive_style,
            "hoodie.datasource.write.partitionpath.urlencode": shape.url_encode,
            **shape.options,
        },
    )


def write(
    path: str | os.PathLike[str],
    operation: str,
    rows: pa.Table,
    *,
    partitions: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> CommitResult:
    """One operation on a table that is there, by Hudi's name of it."""
    table = HudiTable.open(str(path))
    if operation == "delete_partition":
        return table.delete_partitions(partitions, options=options)
    method = {
        "insert": table.insert,
        "upsert": table.upsert,
        "bulk_insert": table.bulk_insert,
        "delete": table.delete,
        "insert_overwrite": table.insert_overwrite,
        "insert_overwrite_table": table.insert_overwrite_table,
    }[operation]
    return method(rows, options=options)


def table(path: str | os.PathLike[str]) -> HudiTable:
    """The table at a path."""
    return HudiTable.open(str(path))


def read(path: str | os.PathLike[str], *, as_of: str | None = None) -> pa.Table:
    """All columns and rows of a table."""
    return HudiTable.open(str(path)).read(as_of=as_of, meta_columns=True).to_arrow()
