"""RECORD_POSITIONS header: base file rows of a block's records.

Base64 of a 64-bit Roaring bitmap in the portable format: a little-endian count of 32-bit bitmaps, each after
its high half.  Source: RoaringFormatSpec; the header as Apache Hudi 1.0.2 and 1.2.0 write it.  The i-th position
is that of the block's i-th record.
"""

from __future__ import annotations

import base64
import binascii
import struct

import numpy as np
import numpy.typing as npt

from hudi_format.log.block import HeaderKey, LogBlock

_NO_RUNS = 12346
_WITH_RUNS = 12347
_SMALL = 4  # containers; with runs and fewer than this there are no offsets
_ARRAY_MOST = 4096  # values of an array container; more are a bitmap of 8 KiB
_BITMAP_BYTES = 8192
# A run of 65,536 positions takes ten bytes: a bitmap of more positions than the block can have records is none.
_ROWS_PER_BYTE = 64
_FEW_ROWS = 1 << 16


class RoaringError(ValueError):
    """Bytes that are not a valid Roaring bitmap."""


def record_positions(block: LogBlock) -> npt.NDArray[np.uint64] | None:
    """Ascending row positions in the base file of `positions_base_instant`, or None.

    A position counts rows of the base file from 0.  They may be left aside: keys say the same.

    Raises:
        CorruptFileError: the header entry is no bitmap.
    """
    text = block.header.get(HeaderKey.RECORD_POSITIONS)
    if text is None:
        return None
    try:
        data = base64.b64decode(text, validate=True)
        return read_roaring64(data, most=_ROWS_PER_BYTE * block.content_length + _FEW_ROWS)
    except (binascii.Error, RoaringError, ValueError) as e:
        raise block.broken(f"RECORD_POSITIONS is not a Roaring bitmap ({e})") from e


def read_roaring64(data: bytes, most: int = 1 << 24) -> npt.NDArray[np.uint64]:
    """All numbers of a 64-bit bitmap, ascending.

    Args:
        most: numbers that it may have, as runs make them far more than the bytes.

    Raises:
        RoaringError: not the portable format, bytes after it, or too many numbers.
    """
    (buckets,) = _unpack("<Q", data, 0)
    if buckets > (len(data) - 8) // 8:
        raise RoaringError(f"{buckets} buckets in {len(data)} bytes")
    at, last = 8, -1
    parts: list[npt.NDArray[np.uint64]] = []
    for _ in range(buckets):
        (high,) = _unpack("<I", data, at)
        if high <= last:
            raise RoaringError("buckets that are not ascending")
        last = high
        low, at = _read32(data, at + 4, most)
        most -= len(low)
        parts.append(low.astype(np.uint64) | np.uint64(high << 32))
    if at != len(data):
        raise RoaringError(f"{len(data) - at} bytes after the bitmap")
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _read32(data: bytes, at: int, most: int) -> tuple[npt.NDArray[np.uint32], int]:
    """Numbers of the 32-bit bitmap at `at`, and its end."""
    (cookie,) = _unpack("<I", data, at)
    at += 4
    runs = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        runs = _slice(data, at, (count + 7) // 8)
        at += len(runs)
    elif cookie == _NO_RUNS:
        (count,) = _unpack("<I", data, at)
        at += 4
    else:
        raise RoaringError(f"cookie {cookie}")
    if count > 1 << 16:
        raise RoaringError(f"{count} containers")
    heads = np.frombuffer(_slice(data, at, 4 * count), "<u2").reshape(-1, 2)
    at += 4 * count
    if (np.diff(heads[:, 0].astype(np.int64)) <= 0).any():
        raise RoaringError("containers that are not ascending")
    total = int(heads[:, 1].sum(dtype=np.int64)) + count
    if total > most:
        raise RoaringError(f"{total} numbers, but at most {most} are allowed")
    if not runs or count >= _SMALL:
        at += len(_slice(data, at, 4 * count))  # offsets, which follow from the rest
    parts: list[npt.NDArray[np.uint32]] = []
    for i, (key, least) in enumerate(heads.tolist()):
        size = least + 1
        if runs and runs[i // 8] >> (i % 8) & 1:
            values, at = _runs(data, at, size)
        elif size <= _ARRAY_MOST:
            values = np.frombuffer(_slice(data, at, 2 * size), "<u2").astype(np.uint32)
            at += 2 * size
            if (np.diff(values.astype(np.int64)) <= 0).any():
                raise RoaringError("values that are not ascending")
        else:
            bits = np.frombuffer(_slice(data, at, _BITMAP_BYTES), np.uint8)
            at += _BITMAP_BYTES
            values = np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.uint32)
        if len(values) != size:
            raise RoaringError(f"{len(values)} values, but {size} are declared")
        parts.append(values | np.uint32(key << 16))
    return (np.concatenate(parts) if parts else np.empty(0, np.uint32)), at


def _runs(data: bytes, at: int, size: int) -> tuple[npt.NDArray[np.uint32], int]:
    (count,) = _unpack("<H", data, at)
    pairs = np.frombuffer(_slice(data, at + 2, 4 * count), "<u2").reshape(-1, 2).astype(np.int64)
    at += 2 + 4 * count
    starts, more = pairs[:, 0], pairs[:, 1]
    ends = starts + more  # inclusive
    if (starts[1:] <= ends[:-1]).any() or (ends > 0xFFFF).any() or int((more + 1).sum()) != size:
        raise RoaringError("runs that overlap, or are not as long as declared")
    steps = np.repeat(starts - np.concatenate(([0], np.cumsum(more + 1)[:-1])), more + 1)
    return (steps + np.arange(size)).astype(np.uint32), at


def _slice(data: bytes, at: int, length: int) -> bytes:
    if length > len(data) - at:
        raise RoaringError(f"{length} bytes, but only {len(data) - at} are left")
    return data[at : at + length]


def _unpack(form: str, data: bytes, at: int) -> tuple[int, ...]:
    return struct.unpack(form, _slice(data, at, struct.calcsize(form)))
