"""Java's string hashes and order, and bucket ids.

Source: String.hashCode, List.hashCode, String.compareTo; BucketIdentifier of Apache Hudi 0.15, compared with
its answers and with the file ids of the golden tables.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hudi_format._lazy import CompiledParts
from hudi_format.arrow.text_buffers import TextBuffers, text_buffers, text_chunks
from hudi_index.hashing._crc import crc32_of

with CompiledParts():
    from hudi_index.hashing import _java


def java_hash(array: pa.Array | pa.ChunkedArray) -> pa.Int32Array:
    """`String.hashCode()` of each text, null for null."""
    out = []
    for chunk in text_chunks(array):
        data, offsets, valid = text_buffers(chunk)
        hashes = np.empty(len(chunk), dtype=np.int32)
        _java.string_hashes(data, offsets, hashes)
        out.append(pa.array(hashes, mask=None if valid is None else valid == 0))
    return pa.concat_arrays(out) if out else pa.array([], pa.int32())


def bucket_ids(
    keys: pa.Array | pa.ChunkedArray, fields: str | Sequence[str], num_buckets: int
) -> pa.Int32Array:
    """Bucket of each record key in a simple bucket index, 0 .. num_buckets - 1; null for null.

    Args:
        keys: record keys, plain or `f1:v1,f2:v2`.
        fields: the hash fields (`hoodie.bucket.index.hash.field`), by default the record key fields; their
            order does not matter.
        num_buckets: `hoodie.bucket.index.num.buckets`.

    Raises:
        TypeError: keys that are no texts, or a number that is none.
        ValueError: no bucket.
    """
    if not 1 <= operator.index(num_buckets) < 2**31:
        raise ValueError(f"the number of buckets must be between 1 and 2^31 - 1, not {num_buckets}")
    names = field_names(fields)
    out = []
    for chunk in text_chunks(keys):
        data, offsets, valid = text_buffers(chunk)
        ids = np.empty(len(chunk), dtype=np.int32)
        _java.bucket_ids(data, offsets, names.data, names.offsets, num_buckets, ids)
        out.append(pa.array(ids, mask=None if valid is None else valid == 0))
    return pa.concat_arrays(out) if out else pa.array([], pa.int32())


def field_names(fields: str | Sequence[str]) -> TextBuffers:
    """Names of hash fields for the kernels; one name may stand for itself."""
    return text_buffers(pa.array([fields] if isinstance(fields, str) else fields, pa.string()))


def min_max(array: pa.Array | pa.ChunkedArray) -> tuple[str, str] | None:
    """Smallest and largest text in `String.compareTo` order; None where all are null."""
    ends: list[str] = []
    chunks = text_chunks(array)
    for chunk in chunks:
        data, offsets, valid = text_buffers(chunk)
        least, greatest = _java.extremes(data, offsets, valid)
        if least >= 0:
            ends += [chunk[least].as_py(), chunk[greatest].as_py()]
    if len(chunks) > 1 and ends:
        return min_max(pa.array(ends, pa.string()))
    return (ends[0], ends[1]) if ends else None


# Java orders text by UTF-16 units, others by bytes, which is the order of code points.  The orders part only where one
# text has a character above U+FFFF and another one from U+E000 on: both are from here on.
_FIRST_APART = "\ue000"
_LAST_OF_ONE_UNIT = "\uffff"
_FIRST_BYTE = _FIRST_APART.encode()[0]
ORDERS_PART = f"[{_FIRST_APART}-\U0010ffff]"
"""Regular expression of what `orders_part` tells of one text."""


def orders_part(text: str | bytes) -> bool:
    """Whether `String.compareTo` may place a text elsewhere than the order of its bytes does.

    Of a range, either end says so: texts between two that are not apart lie between them in both orders.
    """
    if text.isascii():
        return False
    return max(text) >= _FIRST_APART if isinstance(text, str) else max(text) >= _FIRST_BYTE


def text_bounds(low: str, high: str) -> tuple[str, str] | None:
    """Bounds in Java's order and in that of bytes, of texts between two in the order of bytes.

    The lower one ends before the first character that Java places behind those above U+FFFF.  The upper one is raised
    before its first character above U+FFFF; None where it begins with one, as no text is behind all others then.
    """
    low = low[: next((n for n, c in enumerate(low) if _FIRST_APART <= c <= _LAST_OF_ONE_UNIT), len(low))]
    end = next((n for n, c in enumerate(high) if c > _LAST_OF_ONE_UNIT), None)
    if end is None:
        return low, high
    raised = high[:end].rstrip(_LAST_OF_ONE_UNIT)
    if not raised:
        return None
    after = chr(ord(raised[-1]) + 1)
    return low, raised[:-1] + (after if after < "\ud800" or after >= _FIRST_APART else _FIRST_APART)


# CRC-32 of record keys: which of several insert buckets a new record goes to.
#
# The same function exists in Spark SQL (`crc32`), so both engines route a key alike.


def crc32(keys: pa.StringArray | pa.ChunkedArray) -> pa.UInt32Array:
    """CRC-32 (zlib) of each text's UTF-8 bytes; null counts as empty."""
    if isinstance(keys, pa.ChunkedArray):
        parts = [crc32(chunk) for chunk in keys.chunks]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.uint32())
    array = text_chunks(keys)[0].cast(pa.string())
    n = len(array)
    out = np.zeros(n, dtype=np.uint32)
    if n:
        if array.null_count:
            array = array.fill_null("")
        _, offsets, data = array.buffers()
        starts = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + n + 1]
        content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)
        crc32_of(starts, content, out)
    return pa.array(out)
