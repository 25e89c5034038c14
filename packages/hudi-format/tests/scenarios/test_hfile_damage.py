"""Cut, changed and made-up HFiles: an error with file and offset, or the right rows; never anything else."""

import io
import random
import struct

import pyarrow as pa
import pytest
from hfile_reference import FILES, blocks
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.hfile import trailer as t
from hudi_format.hfile._block import Block
from hudi_format.hfile._index import IndexNode
from hudi_format.hfile._lz4 import content_length
from hudi_format.hfile.compression import Codec, CodecError, decompress
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.writer import HFileWriter

SCHEMA = '{"type":"string"}'


def _small(codec="none", index_block_size=None, entries=40):
    out = io.BytesIO()
    writer = HFileWriter(out, schema=SCHEMA, codec=codec, block_size=200, index_block_size=index_block_size)
    keys = [f"key-{i:05d}" for i in range(entries)]
    writer.append(pa.array(keys), pa.array([k.encode() * 2 for k in keys]))
    writer.add_meta_block("meta", b"content")
    writer.finish()
    return out.getvalue()


def _without_checksums(data):
    """As Apache Hudi's own writer makes them: no checksum, zeros in its place."""
    out = bytearray(data)
    for block in blocks(data):
        stop = block.offset + struct.unpack_from(">i", data, block.offset + 29)[0]
        out[block.offset + 24] = 0
        out[stop : block.offset + block.size] = bytes(block.offset + block.size - stop)
    return bytes(out)


def _outcome(data):
    """Rows and meta blocks, or None for an error, which has a place."""
    error = None
    try:
        reader = HFileReader.from_buffer(data, path="f", offset=1000)
        for name in reader.meta_blocks:
            reader.meta_block(name)
        return reader.scan()
    except (CorruptFileError, UnsupportedError) as e:
        error = e
    assert error.file == "f"
    assert 1000 <= error.details.get("offset", 1000) <= 1000 + max(len(data), 4096)
    return None


@pytest.mark.req("MT-02")
@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem.removeprefix("hudi_1_0_hbase_"))
@pytest.mark.sampled(3)
def test_every_cut_of_golden_files_is_an_error(file):
    data = file.read_bytes()
    edges = {b.offset for b in blocks(data)} | {b.offset + 33 for b in blocks(data)} | {len(data) - 4096}
    cuts = {c for edge in edges for c in range(edge - 8, edge + 9)} | {*range(len(data) - 16, len(data))}
    cuts |= set(random.Random(1).sample(range(len(data)), 500))
    for cut in cuts:
        if 0 <= cut < len(data):
            with pytest.raises(CorruptFileError):
                HFileReader.from_buffer(data[:cut])


@pytest.mark.parametrize("data", [_small(), _small("gz"), _without_checksums(_small())])
def test_every_cut_of_small_files_is_an_error(data):
    for cut in range(len(data)):
        with pytest.raises(CorruptFileError):
            HFileReader.from_buffer(data[:cut])


@pytest.mark.req("MT-02")
@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem.removeprefix("hudi_1_0_hbase_"))
@pytest.mark.sampled(6, values=False)
def test_200_changed_bytes_of_golden_files_give_an_error_or_the_same_rows(file):
    data = file.read_bytes()
    want = HFileReader.from_buffer(data).scan()
    draw = random.Random(2)
    opened = HFileReader.from_buffer(data).trailer.load_on_open_offset
    places = [draw.randrange(opened) for _ in range(120)]
    places += [draw.randrange(opened, len(data) - 4096 + 150) for _ in range(80)]
    errors = 0
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << draw.randrange(8)
        got = _outcome(bytes(changed))
        errors += got is None
        assert got is None or got.equals(want), place
    assert errors > 120, "checksums cover all but the trailer"


@pytest.mark.parametrize("index_block_size", [None, 150])
@pytest.mark.parametrize("codec", ["gz", "none"])
@pytest.mark.sampled(3)
def test_every_byte_changed_where_there_are_checksums(codec, index_block_size):
    data = _small(codec, index_block_size)
    want = HFileReader.from_buffer(data).scan()
    for place in [*range(len(data) - 3990), *range(len(data) - 4, len(data))]:
        changed = bytearray(data)
        changed[place] ^= 0x41
        got = _outcome(bytes(changed))
        assert got is None or got.equals(want), place


@pytest.mark.parametrize("index_block_size", [None, 150])
@pytest.mark.parametrize("bit", [0x01, 0x80, 0xFF])
@pytest.mark.sampled(3)
def test_every_byte_changed_where_nothing_covers_it_changes_one_record_at_most(index_block_size, bit):
    data = _without_checksums(_small("none", index_block_size))
    want = HFileReader.from_buffer(data).scan().to_pylist()
    for place in range(len(data) - 3990):
        changed = bytearray(data)
        changed[place] ^= bit
        got = _outcome(bytes(changed))
        if got is None:
            continue
        rows = got.to_pylist()
        assert len(rows) == len(want), place
        assert sum(a != b for a, b in zip(rows, want, strict=True)) <= 1, place


def test_an_index_whose_entries_lead_to_the_same_blocks_is_refused():
    data = bytearray(_without_checksums(_small("none", 100, 200)))
    inner = [b for b in blocks(bytes(data)) if b.magic == b"IDXINTE2"]
    first = inner[0]
    entries = first.offset + 33 + 4 + 4 * (struct.unpack_from(">i", first.content)[0] + 1)
    data[entries : entries + 8] = struct.pack(">q", first.offset)  # itself
    data[entries + 8 : entries + 12] = struct.pack(">i", first.size)
    assert _outcome(bytes(data)) is None


@given(st.binary(max_size=300))
@example(b"")
def test_junk_is_refused_by_every_parser(junk):
    with pytest.raises(CorruptFileError):
        HFileReader.from_buffer(junk)
    with pytest.raises(t.TrailerError):
        t.parse_trailer(t.MAGIC + junk.ljust(4096 - 12, b"\xff") + b"\0\0\0\3")
    with pytest.raises(t.TrailerError):
        t.parse_file_info(b"PBUF" + junk + b"\xff")
    for versions in (False, True):
        block = Block(junk, versions)
        assert block.fault or block.key_bytes + block.value_bytes <= len(junk)
    for count in (-1, 0, 1, 2, 2**31):
        node = IndexNode(junk, count=count, below=count == 2, end=1 << 40)
        assert node.fault or node.entries <= len(junk) // 13 + (count < 0)
    assert content_length(junk) <= 255 * len(junk)
    for codec in (Codec.GZ, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD, Codec.BZIP2):
        with pytest.raises(CodecError):
            decompress(codec, junk, len(junk) + 100)


def test_lzo_is_refused_by_name():
    data = bytearray(_small())
    place = data.index(b"\x60\x02", len(data) - 4096)
    data[place + 1] = 0
    with pytest.raises(UnsupportedError, match="LZO"):
        HFileReader.from_buffer(bytes(data))
