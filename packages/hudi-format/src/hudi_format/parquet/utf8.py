"""UTF-8 validation of text columns, which Arrow's Parquet and ORC readers skip.

What uses such a column afterwards may fail anywhere, or give something else than was stored.  Only what is read is
checked, in one pass over its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_format.arrow.arrays import contains
from hudi_format.parquet._utf8 import first_invalid

# Parquet's annotations of text that Arrow gives as bytes: enumerations of Avro, and JSON without Arrow's own schema.
_TEXTS = frozenset({"ENUM", "JSON"})
_NONE: Mapping[str, pa.DataType] = MappingProxyType({})
# Most columns are told by the number of their type alone: each file's are asked for several times.
_STRINGS = frozenset({pa.string().id, pa.large_string().id})
_BYTES = frozenset({pa.binary().id, pa.large_binary().id})


def texts_as_bytes(file: pq.ParquetFile) -> Mapping[str, pa.DataType]:
    """Text columns that Arrow reads as bytes, with their types as text."""
    schema: pa.Schema = file.schema_arrow
    if not any(contains(kind, lambda k: k.id in _BYTES) for kind in schema.types):
        return _NONE
    # Both have the leaves in the same order.
    columns = file.schema
    leaves = (columns.column(n).logical_type.type in _TEXTS for n in range(len(columns)))
    kinds = [(f.name, f.type, _with_texts(f.type, leaves)) for f in schema]
    return {name: there for name, kind, there in kinds if there != kind}


def check_text(rows: pa.Table | pa.RecordBatch, texts: Mapping[str, pa.DataType] = _NONE) -> None:
    """Check the text of all columns, on every level.

    Args:
        texts: `texts_as_bytes` of the file that they are of.

    Raises:
        ValueError: a text that is not UTF-8; names the column and the row.
    """
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        kind = texts.get(name, column.type)
        if not _has_text(kind):
            continue
        before = 0
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            _check(chunk, kind, name, before)
            before += len(chunk)


def _has_text(kind: pa.DataType) -> bool:
    return contains(kind, lambda k: k.id in _STRINGS)


def _with_texts(kind: pa.DataType, leaves: Iterator[bool]) -> pa.DataType:
    """The type with text in place of bytes, for the leaves marked in `leaves`."""
    if isinstance(kind, pa.BaseExtensionType):
        _with_texts(kind.storage_type, leaves)
        return kind
    if pt.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _with_texts(kind.value_type, leaves))
    if pt.is_struct(kind):
        return pa.struct([f.with_type(_with_texts(f.type, leaves)) for f in kind])
    if pt.is_map(kind):
        key = kind.key_field.with_type(_with_texts(kind.key_type, leaves))
        return pa.map_(key, kind.item_field.with_type(_with_texts(kind.item_type, leaves)))
    if pt.is_nested(kind):
        return pa.list_(kind.value_field.with_type(_with_texts(kind.value_type, leaves)))
    if not next(leaves, False):
        return kind
    return pa.string() if pt.is_binary(kind) else pa.large_string() if pt.is_large_binary(kind) else kind


def _check(array: pa.Array, kind: pa.DataType, path: str, before: int | None) -> None:
    """Check one array.

    `before`: rows of the column before this array; None where its places are no rows.
    """
    if not len(array) or not _has_text(kind):
        return
    if isinstance(array, pa.ExtensionArray):
        _check(array.storage, kind.storage_type, path, before)
    elif pt.is_dictionary(kind):
        _check(array.dictionary, kind.value_type, path, None)
    elif pt.is_struct(kind):
        for n, field in enumerate(kind):
            _check(array.field(n), field.type, f"{path}.{field.name}", before)
    elif pt.is_map(kind):
        _check(array.keys, kind.key_type, f"{path}.key", None)
        _check(array.items, kind.item_type, f"{path}.value", None)
    elif pt.is_nested(kind):
        _check(array.values, kind.value_type, f"{path}.{kind.value_field.name}", None)
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
            raise ValueError(f"texts exceed their bytes (column {path})")
