"""CRC-32 of record keys: which of several insert buckets a new record goes to.

The same function exists in Spark SQL (`crc32`), so both engines route a key alike.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudi_index.hashing._crc import crc32_of


def crc32(keys: pa.StringArray | pa.ChunkedArray) -> pa.UInt32Array:
    """CRC-32 (as zlib's) of each text's UTF-8 bytes; a null counts as the empty text."""
    if isinstance(keys, pa.ChunkedArray):
        parts = [crc32(chunk) for chunk in keys.chunks]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.uint32())
    array = keys if pa.types.is_string(keys.type) else keys.cast(pa.string())
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
