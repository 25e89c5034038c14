"""Lists with null elements, and the warning about them.

Apache Hudi's writer of Avro records makes lists of two levels, in which a null has no place, unless it is told
otherwise; so it cannot write such a file again.  Files of this project have three levels, from which it reads them;
told otherwise, it does not read those of two levels when it writes them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.model import WriteStat

SETTING = "spark.hadoop.parquet.avro.write-old-list-structure=false"


def with_null_elements(rows: pa.Table | pa.RecordBatch) -> Iterator[str]:
    """Columns that contain lists with null elements, at any depth."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if _has_list(field.type):
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            if any(_found(chunk) for chunk in chunks):
                yield field.name


def _has_list(kind: pa.DataType) -> bool:
    if pt.is_list(kind):
        return True
    return pt.is_nested(kind) and any(_has_list(kind.field(n).type) for n in range(kind.num_fields))


def _found(array: pa.Array) -> bool:
    kind = array.type
    if not len(array) or not _has_list(kind):
        return False
    if pt.is_list(kind):
        values = array.flatten()
        return values.null_count > 0 or _found(values)
    if pt.is_map(kind):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return _found(array.items.slice(start, end - start))
    return any(_found(child) for child in array.flatten())


def about_null_elements(stats: Iterable[WriteStat]) -> Sequence[str]:
    """Warnings about null list elements in the written files."""
    columns = sorted({name for stat in stats for name in stat.null_elements})
    if not columns:
        return ()
    return (
        f"{', '.join(columns)}: lists with null elements, which Apache Hudi reads; but 0.15 and 1.0 write their files "
        f"again only in sessions with {SETTING}, in which they cannot update files with lists that they wrote without "
        "it",
    )
