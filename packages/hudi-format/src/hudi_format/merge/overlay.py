"""Replacement of a column's values at some rows.

Arrow's `replace_with_mask` takes text value by value; here what lies between two rows is copied at once, and a
column that would stay as it is is not copied at all, which is the rule for most columns of an update.  A column whose
text repeats may come as a dictionary: it is written out once, with the other values in their places.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format._lazy import CompiledParts

with CompiledParts():
    from hudi_format.merge import _overlay

# What one array of 32-bit offsets can hold.
_MOST_TEXT = (1 << 31) - 1
_NO_CODES = np.empty(0, np.int32)


def overlay(old: pa.Array, new: pa.Array, rows: np.ndarray, source: np.ndarray) -> pa.Array:
    """`old` with `new[source[i]]` at `rows[i]`.

    Args:
        old, new: of one type that is not nested and no dictionary; but `old` may be one of such values.
        rows: ascending (int64).
        source: one for each of `rows` (int64).
    """
    if pa.types.is_dictionary(old.type):
        return _repeated(old, new, rows, source)
    if not len(rows):
        return old
    kind = old.type
    if pa.types.is_boolean(kind):  # Arrow before 24 puts bits of slices into wrong places
        as_bytes = overlay(old.cast(pa.uint8()), new.cast(pa.uint8()), rows, source)
        return as_bytes.cast(kind)
    valid = None
    if old.null_count or new.null_count:
        valid, new_valid = _valid(old), _valid(new)[source]
        unchanged = bool((valid[rows] == new_valid).all())
        valid[rows] = new_valid
    else:
        unchanged = True
    out = None
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        out = _texts(old, new, rows, source, valid, unchanged)
    elif (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)) and kind.bit_width % 8 == 0:
        out = _words(old, new, rows, source, valid, unchanged)
    if out is not None:
        return out
    mask = np.zeros(len(old), dtype=bool)
    mask[rows] = True
    return pc.replace_with_mask(old, pa.array(mask), new.take(pa.array(source)))


def written_out(rows: pa.Table) -> pa.Table:
    """The rows with dictionaries decoded."""
    for place, kind in enumerate(rows.schema.types):
        if pa.types.is_dictionary(kind):
            none = np.empty(0, np.int64)
            empty = pa.array([], kind.value_type)
            chunks = [overlay(c, empty, none, none) for c in rows.column(place).chunks]
            field = rows.schema.field(place).with_type(kind.value_type)
            rows = rows.set_column(place, field, pa.chunked_array(chunks, field.type))
    return rows


def _repeated(old: pa.DictionaryArray, new: pa.Array, rows: np.ndarray, source: np.ndarray) -> pa.Array:
    kind = old.type.value_type
    words = old.dictionary
    text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    if not text or old.type.index_type != pa.int32() or words.null_count:
        return overlay(old.cast(kind), new, rows, source)
    valid = old_valid = None
    if old.null_count or (len(rows) and new.null_count):
        valid = _valid(old)
        old_valid = valid.view(np.uint8).copy()
        valid[rows] = _valid(new)[source]
    codes = (
        np.frombuffer(old.buffers()[1], np.int32)[old.offset : old.offset + len(old)]
        if len(old)
        else _NO_CODES
    )
    given = (codes, old_valid, *_text_buffers(words), *_text_buffers(new), rows, source)
    size = _overlay.repeated_size(*given)
    if size > _MOST_TEXT or not len(old):
        return overlay(old.cast(kind), new, rows, source)
    data, offsets = pa.allocate_buffer(size), pa.allocate_buffer(4 * (len(old) + 1))
    _overlay.put_repeated(*given, np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32))
    return pa.Array.from_buffers(kind, len(old), [_bitmap(valid), offsets, data])


def _texts(
    old: pa.Array, new: pa.Array, rows: np.ndarray, source: np.ndarray, valid: np.ndarray | None, same: bool
) -> pa.Array | None:
    given = (*_text_buffers(old), *_text_buffers(new), rows, source)
    size, equal = _overlay.text_size(*given)
    if same and equal:
        return old
    if size > _MOST_TEXT:
        return None
    data, offsets = pa.allocate_buffer(size), pa.allocate_buffer(4 * (len(old) + 1))
    _overlay.put_text(*given, np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32))
    return pa.Array.from_buffers(old.type, len(old), [_bitmap(valid), offsets, data])


def _words(
    old: pa.Array, new: pa.Array, rows: np.ndarray, source: np.ndarray, valid: np.ndarray | None, same: bool
) -> pa.Array:
    width = old.type.bit_width // 8
    stored, incoming = _word_bytes(old, width), _word_bytes(new, width)
    if same and _overlay.same_words(stored, incoming, width, rows, source):
        return old
    data = pa.allocate_buffer(len(stored))
    out = np.frombuffer(data, np.uint8)
    out[:] = stored
    _overlay.put_words(out, incoming, width, rows, source)
    return pa.Array.from_buffers(old.type, len(old), [_bitmap(valid), data])


def _text_buffers(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    _, offsets, data = array.buffers()
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    if offsets is None or not offsets.size:  # of an array without rows
        return content, np.zeros(1, np.int32)
    return content, np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]


def _word_bytes(array: pa.Array, width: int) -> np.ndarray:
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, np.uint8)
    return np.frombuffer(data, np.uint8)[array.offset * width : (array.offset + len(array)) * width]


def _valid(array: pa.Array) -> np.ndarray:
    if not array.null_count:
        return np.ones(len(array), dtype=bool)
    return np.array(array.is_valid().to_numpy(zero_copy_only=False))


def _bitmap(valid: np.ndarray | None) -> pa.Buffer | None:
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
