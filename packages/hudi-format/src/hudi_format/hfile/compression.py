"""Compression codecs of HFile blocks.

GZ, BZIP2 and Zstandard are plain streams.  Snappy, LZ4 and, from some libraries, Zstandard come in Hadoop's
framing: a big-endian length of the content of a group, then chunks, each with the length of its compressed bytes.
The content's length is known from the block's header and is not believed: no more is allocated than the
compressed bytes can hold, or than has been decompressed.
"""

from __future__ import annotations

import bz2
import enum
import zlib

import pyarrow as pa

from hudi_format.errors import UnsupportedError
from hudi_format.hfile._lz4 import content_length

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# Most bytes of content per compressed byte: a deflate match of 258 bytes takes 2 bits, a Snappy copy of 64
# bytes 3 bytes.
_MOST = {"gz": 1032, "snappy": 22}
_PIECE = 1 << 20
# BZIP2 and Zstandard pack without such a bound: a block beyond both of these is none that a writer made.
_MOST_CONTENT, _MOST_RATIO = 64 << 20, 1032


class Codec(enum.IntEnum):
    """HBase's numbers of compression algorithms, as in trailers."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


class CodecError(ValueError):
    """Compressed bytes that are damaged or have the wrong size."""


def require(codec: Codec, path: str) -> None:
    """Raise UnsupportedError for a codec that cannot be read."""
    if codec is Codec.LZO:
        raise UnsupportedError(
            "HFile compressed with LZO",
            file=path,
            remedy="rewrite it with hoodie.hfile.compression.algorithm=gz, for example by a compaction.",
        )


def decompress(codec: Codec, data: bytes | memoryview, size: int) -> bytes | memoryview:
    """The `size` decompressed bytes of `data`.

    Raises:
        CodecError: it does not hold exactly these, or is damaged.
    """
    if codec is Codec.NONE:
        if len(data) != size:
            raise CodecError(f"{len(data)} bytes instead of {size}")
        return data
    try:
        out = _decompress(codec, data, size)
    except (zlib.error, OSError, pa.ArrowException) as e:
        raise CodecError(f"{codec.name} content is damaged") from e
    if len(out) != size:
        raise CodecError(f"content of {len(out)} bytes instead of {size}")
    return out


def _decompress(codec: Codec, data: bytes | memoryview, size: int) -> bytes | memoryview:
    if codec is Codec.GZ:
        _plausible("gz", len(data), size)
        return _gunzip(data, size)
    if size > max(_MOST_CONTENT, _MOST_RATIO * len(data)):
        raise CodecError(f"{len(data)} bytes declare {size}, more than a thousand times as many")
    if codec is Codec.BZIP2:
        reader = bz2.BZ2Decompressor()
        return _ended(reader, reader.decompress(data, size + 1))
    if codec is Codec.ZSTD and bytes(data[:4]) == _ZSTD_MAGIC:
        return _unzstd(data, size)
    return _unframe(codec, memoryview(data), size)


def _plausible(name: str, compressed: int, size: int) -> None:
    if size > _MOST[name] * compressed + 64:
        raise CodecError(f"{compressed} bytes cannot hold the declared {size}")


def _gunzip(data: bytes | memoryview, size: int) -> bytes:
    reader = zlib.decompressobj(31)
    out = reader.decompress(data, size + 1)
    if not reader.eof and len(out) == size:
        out += reader.decompress(
            reader.unconsumed_tail, 1
        )  # the checksum is read with what follows the last byte
    return _ended(reader, out)


def _ended(reader: zlib._Decompress | bz2.BZ2Decompressor, out: bytes) -> bytes:
    if not reader.eof:
        raise CodecError("compressed content does not end at its declared end")
    if reader.unused_data:
        raise CodecError("bytes follow the compressed content")
    return out


def _unzstd(data: bytes | memoryview, size: int) -> bytes:
    # Piece by piece: what a frame says of its size is not believed.
    pieces, left = [], size + 1
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "zstd") as stream:
        while left:
            piece = stream.read(min(left, _PIECE))
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
    return b"".join(pieces)


def _unframe(codec: Codec, data: memoryview, size: int) -> bytes:
    """Content of Hadoop's framed chunks."""
    pieces: list[bytes] = []
    at = done = 0
    while at < len(data):
        group, at = _length(data, at)
        if group > size - done:
            raise CodecError(f"more content than the declared {size} bytes")
        left = group
        while left:
            length, at = _length(data, at)
            if length > len(data) - at or length == 0:
                raise CodecError("a chunk exceeds the block")
            piece = _unchunk(codec, data[at : at + length], left)
            at += length
            if not piece or len(piece) > left:
                raise CodecError("a chunk's size differs from the declared one")
            left -= len(piece)
            pieces.append(piece)
        done += group
    return b"".join(pieces)


def _length(data: memoryview, at: int) -> tuple[int, int]:
    """(length, place after it)."""
    if len(data) - at < 4:
        raise CodecError("a length is cut off")
    return int.from_bytes(data[at : at + 4]), at + 4


def _unchunk(codec: Codec, data: memoryview, most: int) -> bytes:
    """Content of one chunk, at most `most` bytes."""
    if codec is Codec.ZSTD:
        return _unzstd(data, most)
    if codec is Codec.SNAPPY:
        length = _snappy_length(data)
        if length > most:
            raise CodecError("a chunk's size differs from the declared one")
        _plausible("snappy", len(data), length)
        return bytes(pa.Codec("snappy").decompress(data, length, asbytes=True))
    length = content_length(data)
    if not 0 <= length <= most:
        raise CodecError("a chunk's size differs from the declared one")
    return bytes(pa.Codec("lz4_raw").decompress(data, length, asbytes=True))


def _snappy_length(data: memoryview) -> int:
    """Content length at the start of Snappy bytes."""
    length = 0
    for i, byte in enumerate(data[:5]):
        length |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return length
    raise CodecError("a chunk has no length")


def compress(
    codec: Codec, data: bytes | memoryview, level: int, strategy: int = zlib.Z_DEFAULT_STRATEGY
) -> bytes | memoryview:
    """`data` compressed as Apache Hudi's readers take it; `level`, `strategy`: zlib's."""
    if codec is Codec.NONE:
        return data
    if codec is Codec.GZ:
        writer = zlib.compressobj(level, zlib.DEFLATED, 31, zlib.DEF_MEM_LEVEL, strategy)
        return writer.compress(data) + writer.flush()
    raise UnsupportedError(
        f"writing an HFile with {codec.name}",
        remedy="write GZ or NONE, which all readers of Apache Hudi support.",
    )
