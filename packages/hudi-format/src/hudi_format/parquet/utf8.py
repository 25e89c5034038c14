"""Text columns of base files, checked: Arrow's readers of Parquet and ORC take any bytes for UTF-8.

What uses such a column afterwards may fail anywhere, or give something else than was stored.  Only what is read is
checked, in one pass over its bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_format.parquet._utf8 import first_invalid


def check_text(rows: pa.Table | pa.RecordBatch) -> None:
    """Check the text of all columns, on every level.

    Raises:
        ValueError: a text that is not UTF-8; names the column and the row.
    """
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if not _has_text(column.type):
            continue
        before = 0
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            _check(chunk, name, before)
            before += len(chunk)


def _has_text(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        return _has_text(kind.value_type)
    if pt.is_nested(kind):
        return any(_has_text(kind.field(n).type) for n in range(kind.num_fields))
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _check(array: pa.Array, path: str, before: int | None) -> None:
    """`before`: rows of the column before this array; None where its places are no rows."""
    kind = array.type
    if not len(array) or not _has_text(kind):
        return
    if pt.is_dictionary(kind):
        _check(array.dictionary, path, None)
    elif pt.is_struct(kind):
        for n, field in enumerate(kind):
            _check(array.field(n), f"{path}.{field.name}", before)
    elif pt.is_map(kind):
        _check(array.keys, f"{path}.key", None)
        _check(array.items, f"{path}.value", None)
    elif pt.is_nested(kind):
        _check(array.values, f"{path}.{kind.value_field.name}", None)
    else:
        _, offsets, data = array.buffers()
        counted: npt.NDArray[np.int32] | npt.NDArray[np.int64]
        if pt.is_large_string(kind):
            counted = np.frombuffer(offsets, np.int64)
        else:
            counted = np.frombuffer(offsets, np.int32)
        content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
        found = first_invalid(content, counted[array.offset : array.offset + len(array) + 1])
        if found >= 0:
            row = "" if before is None else f", row {before + found}"
            raise ValueError(f"a text is not UTF-8 (column {path}{row})")
        if found < 0 and found != -1:
            raise ValueError(f"texts lie outside of their bytes (column {path})")


__all__ = ["check_text"]
