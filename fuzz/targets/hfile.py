"""HFiles: whole files with and without their checksums, trailer and file info, blocks, codecs."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_format.errors import HudiError
from hudi_format.hfile import trailer as t
from hudi_format.hfile._block import Block
from hudi_format.hfile._index import IndexNode
from hudi_format.hfile.compression import Codec, CodecError, compress, decompress
from hudi_format.hfile.reader import HFileReader
from targets import golden
from targets.target import Target


def run_file(data: bytes) -> None:
    """All ways of reading one file agree; without checksums there is more to get wrong."""
    for verify in (True, False):
        try:
            reader = HFileReader.from_buffer(data, path="f", verify_checksums=verify)
            for name in reader.meta_blocks:
                reader.meta_block(name)
            table = reader.scan()
        except HudiError:
            continue
        table.validate(full=True)
        assert table.num_rows == reader.entry_count
        keys = table["key"].to_pylist()
        assert keys == sorted(keys)
        some = sorted(set(keys))[:: max(1, len(keys) // 7)]
        found = reader.lookup(some)["key"].to_pylist()
        assert found == [k for k in keys if k in set(some)]
        for key in some[:3]:
            assert reader.get(key) == table["value"][keys.index(key)].as_py()
            assert reader.prefix(key)["key"].to_pylist() == [k for k in keys if k.startswith(key)]
        assert list(reader.data_blocks()) is not None


def run_trailer(data: bytes) -> None:
    """The message of a trailer."""
    if len(data) < t.TRAILER_SIZE - 12:
        found = t.parse_trailer(t.MAGIC + data.ljust(t.TRAILER_SIZE - 12, b"\0") + b"\3\0\0\3")
        again = t.parse_trailer(t.format_trailer(found))
        assert again == found or found.comparator == "" or found.comparator != again.comparator


def run_info(data: bytes) -> None:
    found = t.parse_file_info(data)
    assert t.parse_file_info(t.format_file_info(found)) == found


def run_block(data: bytes) -> None:
    """Entries of a data block, and of the three kinds of index blocks."""
    if not data:
        return
    how, payload = data[0], data[1:]
    block = Block(payload, bool(how & 1))
    if not block.fault:
        rows = [block.row(i) for i in range(block.entries)]
        assert sum(map(len, rows)) == block.key_bytes
        assert sum(len(block.value(i)) for i in range(block.entries)) == block.value_bytes
        for key in rows[:3]:
            assert block.row(block.lower(key)) == key
    for count in (-1, how >> 1):
        node = IndexNode(payload, count=count, below=bool(how & 2), end=1 << 20)
        if not node.fault:
            for i in range(node.entries):
                node.row(i)
                offset, size = node.span(i)
                assert 0 <= offset <= offset + size <= 1 << 20


def run_codec(data: bytes) -> None:
    """Codec, announced size, compressed bytes."""
    if len(data) >= 4:
        codec = Codec(1 + data[0] % 6)
        size = int.from_bytes(data[1:4], "big")
        assert len(decompress(codec, data[4:], size)) == size


def _info_seeds() -> Iterator[bytes]:
    for data in golden.hfiles():
        reader = HFileReader.from_buffer(data)
        yield t.format_file_info(reader.file_info)


def _trailer_seeds() -> Iterator[bytes]:
    for data in golden.hfiles():
        yield data[-4088:-4].rstrip(b"\0")


def _block_seeds() -> Iterator[bytes]:
    entry = b"\0\0\0\x0f\0\0\0\2\0\3key\0\x7f\xff\xff\xff\xff\xff\xff\xff\4ab"
    yield b"\1" + (entry + b"\0") * 2
    yield b"\0" + entry
    key = b"\0\3key\0\x7f\xff\xff\xff\xff\xff\xff\xff\4"
    yield b"\2" + bytes(8) + b"\0\0\0\x20" + bytes([len(key)]) + key
    items = bytes(8) + b"\0\0\0\x20" + key
    yield b"\2" + b"\0\0\0\1" + bytes(4) + len(items).to_bytes(4, "big") + items


def _codec_seeds() -> Iterator[bytes]:
    import bz2

    import pyarrow as pa

    content = b"content " * 20
    size = len(content).to_bytes(3, "big")

    def framed(data: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + len(data).to_bytes(4, "big") + data

    packed = {
        Codec.GZ: bytes(compress(Codec.GZ, content, 6)),
        Codec.NONE: content,
        Codec.SNAPPY: framed(pa.Codec("snappy").compress(content, asbytes=True)),
        Codec.LZ4: framed(pa.Codec("lz4_raw").compress(content, asbytes=True)),
        Codec.BZIP2: bz2.compress(content),
        Codec.ZSTD: pa.Codec("zstd").compress(content, asbytes=True),
    }
    for codec, data in packed.items():
        yield bytes([codec - 1]) + size + data
    yield bytes([Codec.ZSTD - 1]) + size + framed(packed[Codec.ZSTD])


TARGETS = (
    Target("hfile", run_file, lambda: golden.hfiles(20_000)),
    Target("hfile_trailer", run_trailer, _trailer_seeds, (t.TrailerError,), 4084),
    Target("hfile_info", run_info, _info_seeds, (t.TrailerError,), 8192),
    Target("hfile_block", run_block, _block_seeds, most=4096),
    Target("hfile_codec", run_codec, _codec_seeds, (CodecError,), 4096),
)
