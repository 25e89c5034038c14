"""Apache Hudi 1.2's own column types: vectors, blobs and variants.

A vector is a fixed type in Avro and in files, its numbers end to end, least byte first; a query gives lists of numbers.
Blobs and variants are read as the records that they are stored as.

Source: HoodieSchema and VectorConversionUtils of Apache Hudi 1.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_format.errors import CorruptFileError, SchemaError, UnsupportedError

Json: TypeAlias = Any

_VECTOR = "vector"
_OWN_TYPES = (_VECTOR, "blob", "variant")
_ELEMENTS = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
_FIXED_BYTES = "FIXED_BYTES"


def vector_type(node: Mapping[str, Json], path: str) -> pa.ListType | None:
    """Arrow type of an Avro fixed type that is a vector; None for others.

    Raises:
        CorruptFileError: its size is not that of so many numbers.
        UnsupportedError: a kind of numbers, or of storage, that is not known.
    """
    if node.get("logicalType") != _VECTOR:
        return None
    element, count = node.get("elementType"), node.get("dimension")
    kind = _ELEMENTS.get(element) if isinstance(element, str) else None
    backing = node.get("storageBacking", _FIXED_BYTES)
    if kind is None or backing != _FIXED_BYTES:
        raise UnsupportedError(
            f"column {path} is a vector of {element!r} in {backing!r}, which is not supported", column=path
        )
    if not isinstance(count, int) or count < 1 or node.get("size") != count * kind.bit_width // 8:
        raise CorruptFileError(f"a vector of {count!r} numbers in {node.get('size')!r} bytes ({path})")
    return pa.list_(pa.field("element", kind, nullable=False))


def is_vector(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a file's bytes column is the wanted vector."""
    return bool(
        pt.is_fixed_size_binary(stored)
        and pt.is_list(wanted)
        and wanted.value_type in _ELEMENTS.values()
        and stored.byte_width % (wanted.value_type.bit_width // 8) == 0
    )


def may_be_vector(kind: pa.DataType) -> bool:
    """Whether a column may be stored as a vector: a list of numbers without nulls."""
    return bool(pt.is_list(kind) and not kind.value_field.nullable and kind.value_type in _ELEMENTS.values())


def is_small_vector(kind: pa.DataType) -> bool:
    """Whether the type is a list of bytes as numbers, which only vectors are."""
    return bool(pt.is_list(kind) and pt.is_int8(kind.value_type))


def numbers_of(array: pa.FixedSizeBinaryArray, wanted: pa.ListType) -> pa.ListArray:
    """Lists of numbers of a vector column; null vectors have no numbers.

    Raises:
        SchemaError: more numbers in one array than lists can count.
    """
    item, width = wanted.value_type, array.type.byte_width
    count = width // (item.bit_width // 8)
    there = array.drop_null()
    if len(there) * count >= 1 << 31:
        raise SchemaError(f"{len(there)} vectors of {count} numbers exceed one array")
    _, data = there.buffers()
    numbers = pa.Array.from_buffers(
        item,
        len(there) * count,
        [None, pa.py_buffer(b"") if data is None else data.slice(there.offset * width)],
    )
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(valid) * count]).astype(np.int32)
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(ends), numbers, type=wanted, mask=mask)


def own_types(text: str) -> dict[str, str]:
    """Names and kinds of columns that are, or contain, vectors, blobs or variants.

    Raises:
        CorruptFileError: the text is no Avro schema of a record.
    """
    if "logicalType" not in text:
        return {}
    try:
        found = {f["name"]: _own_type(f["type"]) for f in json.loads(text)["fields"]}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
        raise CorruptFileError(f"not the Avro schema of a record: {e}") from e
    return {name: kind for name, kind in found.items() if kind}


def _own_type(node: Json) -> str:
    if isinstance(node, list):
        return next(filter(None, map(_own_type, node)), "")
    if not isinstance(node, dict):
        return ""
    if node.get("logicalType") in _OWN_TYPES:
        return str(node["logicalType"])
    inner = [node.get(word) for word in ("type", "items", "values")]
    inner += [f["type"] for f in node.get("fields") or ()]
    return next(filter(None, map(_own_type, inner)), "")
