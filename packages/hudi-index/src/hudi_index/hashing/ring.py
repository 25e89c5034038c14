"""Hashes of consistent hashing, and the place of a hash on a ring.

Source: ConsistentBucketIdentifier of Apache Hudi 0.15, compared with the file groups of its keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hudi_format._lazy import CompiledParts
from hudi_format.arrow.text_buffers import text_buffers, text_chunks
from hudi_index.hashing.java import field_names

with CompiledParts():
    from hudi_index.hashing import _ring


def ring_hashes(keys: pa.Array | pa.ChunkedArray, fields: str | Sequence[str]) -> pa.Int32Array:
    """Hash of each record key for consistent hashing, 0 .. 2^31 - 1; null for null.

    Args:
        keys: record keys, plain or `f1:v1,f2:v2`.
        fields: the hash fields (`hoodie.bucket.index.hash.field`), by default the record key fields.  Values are
            joined in the order of the key.
    """
    names = field_names(fields)
    out = []
    for chunk in text_chunks(keys):
        data, offsets, valid = text_buffers(chunk)
        hashes = np.empty(len(chunk), dtype=np.int32)
        _ring.key_hashes(data, offsets, names.data, names.offsets, hashes)
        out.append(pa.array(hashes, mask=None if valid is None else valid == 0))
    return pa.concat_arrays(out) if out else pa.array([], pa.int32())


def ring_places(
    hashes: np.ndarray, rings: Sequence[Sequence[int]], codes: np.ndarray | None = None
) -> np.ndarray:
    """Number (int32) of each hash's node: the first whose value is not below it, else the first.

    Args:
        hashes: what `ring_hashes` gives, without nulls.
        rings: the ascending values of each ring's nodes.
        codes: per hash, the number of its ring; the only one if not given.

    Raises:
        TypeError: hashes that are no integers, as nulls are none.
        ValueError: a ring without nodes or whose values do not ascend, or a hash without a ring.
    """
    hashes = np.asarray(hashes)
    if len(hashes) and hashes.dtype.kind not in "iu":
        raise TypeError(f"expected hashes without nulls, got {hashes.dtype}")
    if codes is None:
        codes = np.zeros(len(hashes), dtype=np.int32)
    starts = np.cumsum([0, *(len(values) for values in rings)], dtype=np.int64)
    joined = np.array([v for values in rings for v in values], dtype=np.int32)
    falls = np.flatnonzero(joined[1:] < joined[:-1]) + 1
    if not np.isin(falls, starts).all():
        raise ValueError("the values of a ring do not ascend")
    out = np.empty(len(hashes), dtype=np.int32)
    _ring.places(
        np.ascontiguousarray(hashes, dtype=np.int32),
        np.ascontiguousarray(codes, dtype=np.int32),
        starts,
        joined,
        out,
    )
    return out
