"""Memory size of Arrow data, safe for arrays without an offset buffer.

Arrow's own `nbytes` reads the first offset of each list, map and text below a column even where there is none: an
array of no values may have an offsets buffer of no bytes, and Spark's writer leaves such ones below empty lists.  The
read then ends the process.  It also knows nothing of views before Arrow 22.  So sizes are counted here, from the
lengths that buffers have, and nothing is read that is not there.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

Data: TypeAlias = pa.Table | pa.RecordBatch | pa.ChunkedArray | pa.Array


def size_of(data: Data) -> int:
    """Bytes of the values of a table, batch or column; for a slice, only its own values."""
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return sum(size_of(column) for column in data.columns)
    if isinstance(data, pa.ChunkedArray):
        return sum(_size(chunk) for chunk in data.chunks)
    return _size(data)


def _size(array: pa.Array) -> int:
    rows, kind = len(array), array.type
    if not rows or pt.is_null(kind):
        return 0
    if pt.is_string(kind) or pt.is_primitive(kind):  # nearly every column
        return _flat(array, kind, rows)
    if isinstance(array, pa.ExtensionArray):
        return _size(array.storage)
    if pt.is_dictionary(kind):
        return _size(array.indices) + _size(array.dictionary)
    if pt.is_run_end_encoded(kind):
        return _run_ends(array)
    if pt.is_union(kind):
        return _union(array)
    buffers = array.buffers()
    size = 0 if buffers[0] is None else -(-rows // 8)
    if pt.is_struct(kind):
        return size + sum(_size(array.field(n)) for n in range(kind.num_fields))
    if pt.is_fixed_size_list(kind):
        each = kind.list_size
        return size + _size(_span(array.values, array.offset * each, (array.offset + rows) * each))
    if pt.is_list(kind) or pt.is_map(kind) or pt.is_large_list(kind):
        wide = offset_width(kind)
        start, end = _ends(buffers[1], wide, array.offset, rows)
        children = (array.keys, array.items) if pt.is_map(kind) else (array.values,)
        return size + rows * wide + sum(_size(_span(c, start, end)) for c in children)
    if pt.is_list_view(kind) or pt.is_large_list_view(kind):
        wide = 8 if pt.is_large_list_view(kind) else 4
        start, end = _viewed(buffers[1], buffers[2], wide, array.offset, rows)
        return size + 2 * rows * wide + _size(_span(array.values, start, end))
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        return size + 16 * rows + _beyond_views(array, buffers[1])
    return _flat(array, kind, rows)


def _flat(array: pa.Array, kind: pa.DataType, rows: int) -> int:
    """Size of texts, or of values of a fixed width."""
    buffers = array.buffers()
    size = 0 if buffers[0] is None else -(-rows // 8)
    wide = offset_width(kind)
    if not wide:
        return size + -(-rows * int(kind.bit_width) // 8)
    start, end = _ends(buffers[1], wide, array.offset, rows)
    there = buffers[2].size if buffers[2] is not None else 0
    return size + rows * wide + max(0, min(end, there) - min(start, there))


def offset_width(kind: pa.DataType) -> int:
    """Bytes of each offset of texts, bytes, lists or maps; 0 for types that have none."""
    if pt.is_large_string(kind) or pt.is_large_binary(kind) or pt.is_large_list(kind):
        return 8
    return 4 if pt.is_string(kind) or pt.is_binary(kind) or pt.is_list(kind) or pt.is_map(kind) else 0


def _ends(offsets: pa.Buffer | None, wide: int, first: int, rows: int) -> tuple[int, int]:
    """First and last offset of some rows; (0, 0) where the buffer is too short."""
    if offsets is None or offsets.size < (first + rows + 1) * wide:
        return 0, 0
    values = np.frombuffer(offsets, dtype=np.int64 if wide == 8 else np.int32, count=first + rows + 1)
    return int(values[first]), int(values[-1])


def _viewed(
    offsets: pa.Buffer | None, sizes: pa.Buffer | None, wide: int, first: int, rows: int
) -> tuple[int, int]:
    """Span of the child array that a list view's lists use."""
    least = (first + rows) * wide
    if offsets is None or sizes is None or min(offsets.size, sizes.size) < least:
        return 0, 0
    kind = np.int64 if wide == 8 else np.int32
    starts = np.frombuffer(offsets, kind, first + rows)[first:].astype(np.int64)
    counts = np.frombuffer(sizes, kind, first + rows)[first:].astype(np.int64)
    there = counts > 0
    if not there.any():
        return 0, 0
    return int(starts[there].min()), int((starts + counts)[there].max())


def _beyond_views(array: pa.Array, views: pa.Buffer | None) -> int:
    """Bytes of the texts that are stored outside their string views."""
    first, rows = array.offset, len(array)
    if views is None or views.size < 16 * (first + rows):
        return 0
    lengths = np.frombuffer(views, np.int32, 4 * (first + rows))[4 * first :: 4]
    if array.null_count:
        lengths = lengths[array.is_valid().to_numpy(zero_copy_only=False)]
    return int(lengths[lengths > 12].sum(dtype=np.int64))


def _span(child: pa.Array, start: int, end: int) -> pa.Array:
    start, end = max(0, min(start, len(child))), max(0, min(end, len(child)))
    return child.slice(start, max(0, end - start))


def _run_ends(array: pa.Array) -> int:
    first, runs = array.find_physical_offset(), array.find_physical_length()
    return _size(_span(array.run_ends, first, first + runs)) + _size(_span(array.values, first, first + runs))


def _union(array: pa.UnionArray) -> int:
    rows, kind = len(array), array.type
    children = sum(_size(array.field(n)) for n in range(kind.num_fields))
    return children + (rows if kind.mode == "sparse" else 5 * rows)
