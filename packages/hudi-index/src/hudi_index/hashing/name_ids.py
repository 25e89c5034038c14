"""Ids of columns, partitions and file names in keys of the metadata table.

Source: HashID, ColumnIndexID, PartitionIndexID and FileIndexID of Apache Hudi 0.15; spec "Bloom filters and hashes",
section 8.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

import numpy as np
import pyarrow as pa

from hudi_format._lazy import CompiledParts
from hudi_format.arrow.text_buffers import text_buffers, text_chunks

with CompiledParts():
    from hudi_index.hashing import _xxhash

# Java's int 0xdabadaba, which becomes a long with its sign.
SEED = 0xFFFFFFFF_DABADABA

FILE_ID_DIGITS = 24
"""Length of a file name's id, in base64 digits."""


def xxh64(texts: pa.Array | pa.ChunkedArray, seed: int = SEED) -> pa.UInt64Array:
    """XXH64 of each text's UTF-8 bytes, null for null.

    Raises:
        TypeError: a column that is not text.
    """
    out = []
    for chunk in text_chunks(texts):
        data, offsets, valid = text_buffers(chunk)
        found = np.empty(len(chunk), dtype=np.uint64)
        _xxhash.hashes(data, offsets, seed, found)
        out.append(pa.array(found, mask=None if valid is None else valid == 0))
    return pa.concat_arrays(out) if out else pa.array([], pa.uint64())


def name_ids(texts: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """Id of each column name or partition identifier: XXH64 in base64; null for null.

    A column within others has a dotted name; the partition of a table without partitions is `.`.

    Raises:
        TypeError: a column that is not text.
    """
    hashes = xxh64(texts)
    return pa.array(
        [None if h is None else base64.b64encode(h.to_bytes(8)).decode() for h in hashes.to_pylist()],
        pa.string(),
    )


@lru_cache(maxsize=4096)  # the same few columns and partitions stand in the key of each file's statistics
def name_id(text: str) -> str:
    """Id of one column name or partition identifier."""
    found: str = name_ids(pa.array([text], pa.string()))[0].as_py()
    return found


def file_name_id(name: str) -> str:
    """Id of a file name (without its folder): MD5 in base64."""
    return base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()
