"""Compressed blocks of HFiles: every codec both ways, and sizes that are made up."""

import bz2
import struct
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import little_memory

from hudi_format.hfile.compression import Codec, CodecError, decompress


def _framed(name, content, chunk):
    """Hadoop's framing: groups of one write, in chunks."""
    out = struct.pack(">I", len(content))
    for at in range(0, len(content), chunk):
        packed = pa.Codec(name).compress(content[at : at + chunk], asbytes=True)
        out += struct.pack(">I", len(packed)) + packed
    return out


@given(st.binary(max_size=50), st.integers(1, 400), st.integers(1, 5000))
def test_every_codec_gives_back_what_was_compressed(seed, times, chunk):
    content = (seed * times)[:20_000]
    packed = {
        Codec.GZ: zlib.compress(content, wbits=31),
        Codec.NONE: content,
        Codec.BZIP2: bz2.compress(content),
        Codec.SNAPPY: _framed("snappy", content, chunk),
        Codec.LZ4: _framed("lz4_raw", content, chunk),
        Codec.ZSTD: pa.Codec("zstd").compress(content, asbytes=True),
    }
    for codec, data in packed.items():
        assert bytes(decompress(codec, data, len(content))) == content
        for wrong in (len(content) + 1, len(content) - 1):
            with pytest.raises(CodecError):
                decompress(codec, data, max(wrong, 0) if content else 1)
    framed = _framed("zstd", content, chunk)
    assert decompress(Codec.ZSTD, framed, len(content)) == content


def test_announced_sizes_are_not_believed():
    zeros = bytes(50_000_000)
    bombs = {
        Codec.GZ: zlib.compress(zeros, wbits=31),
        Codec.ZSTD: pa.Codec("zstd").compress(zeros, asbytes=True),
    }
    for codec, bomb in bombs.items():
        before = pa.total_allocated_bytes()
        with pytest.raises(CodecError):
            decompress(codec, bomb, 1000)
        assert pa.total_allocated_bytes() - before < 1 << 20
    bombs[Codec.BZIP2] = bz2.compress(zeros)
    for codec, bomb in bombs.items():
        with little_memory(), pytest.raises(CodecError):
            decompress(codec, bomb, 2**31 - 1)
    for codec in (Codec.GZ, Codec.SNAPPY, Codec.LZ4):
        with pytest.raises(CodecError):
            decompress(codec, b"\xff\xff\xff\x7f" * 3, 2**31 - 1)
