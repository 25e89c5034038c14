"""HFile blocks: header, checksums and content."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_format.errors import UnsupportedError
from hudi_format.hfile._checksum import chunk_checksums
from hudi_format.hfile.compression import Codec, CodecError, decompress
from hudi_format.hfile.source import Source

HEADER_SIZE = 33
DATA = b"DATABLK*"
ENCODED_DATA = b"DATABLKE"
LEAF_INDEX = b"IDXLEAF2"
INTERMEDIATE_INDEX = b"IDXINTE2"
ROOT_INDEX = b"IDXROOT2"
META = b"METABLKc"
FILE_INFO = b"FILEINF2"

NO_CHECKSUM, CRC32, CRC32C = 0, 1, 2


@dataclass(frozen=True, slots=True)
class HFileBlockHeader:
    """A block's header.

    Attributes:
        magic: what kind of block it is.
        on_disk_size: of the whole block with header and checksums, in bytes.
        uncompressed_size: of the content, in bytes.
        previous_offset: of the block before of its kind; of no use for reading.
        checksum_type: NO_CHECKSUM, CRC32 or CRC32C.
        bytes_per_checksum: length of a chunk.
        data_size: of header and compressed content together, in bytes.
    """

    magic: bytes
    on_disk_size: int
    uncompressed_size: int
    previous_offset: int
    checksum_type: int
    bytes_per_checksum: int
    data_size: int


def parse_header(source: Source, data: bytes | memoryview, offset: int) -> HFileBlockHeader:
    """The header at the start of `data`; `offset` is its place in the HFile.

    Raises:
        CorruptFileError: sizes that contradict each other.
    """
    if len(data) < HEADER_SIZE:
        source.corrupt("a block's header is cut off", offset)

    def number(at: int) -> int:
        return int.from_bytes(data[at : at + 4], signed=True)

    header = HFileBlockHeader(
        magic=bytes(data[:8]),
        on_disk_size=HEADER_SIZE + number(8),
        uncompressed_size=number(12),
        previous_offset=int.from_bytes(data[16:24], signed=True),
        checksum_type=data[24],
        bytes_per_checksum=number(25),
        data_size=number(29),
    )
    if header.uncompressed_size < 0 or not HEADER_SIZE <= header.data_size <= header.on_disk_size:
        source.corrupt("a block's sizes contradict each other", offset + 8)
    if header.checksum_type > CRC32C or header.bytes_per_checksum <= 0:
        source.corrupt("a block has an unknown checksum type", offset + 24)
    chunks = -(-header.data_size // header.bytes_per_checksum)
    if header.on_disk_size - header.data_size != 4 * chunks:
        source.corrupt("a block's sizes do not fit its checksums", offset + 8)
    return header


def read_content(
    source: Source, data: bytes | memoryview, offset: int, magic: bytes, codec: Codec, *, verify: bool
) -> bytes | memoryview:
    """The content of a block, decompressed.

    Args:
        data: the whole block.
        offset: its place in the HFile.
        magic: the kind of block that it must be.
        verify: compare checksums, where the block has any.

    Raises:
        CorruptFileError: another kind of block, or damage.
    """
    found = bytes(data[:8])
    if found != magic:
        if found == ENCODED_DATA:
            raise UnsupportedError(
                "HFile with encoded data blocks",
                file=source.path,
                remedy="rewrite it without a data block encoding; Apache Hudi never uses one.",
            )
        source.corrupt(f"expected a block {magic.decode()}", offset)
    header = parse_header(source, data, offset)
    if header.on_disk_size != len(data):
        source.corrupt(f"a block has {header.on_disk_size} bytes, expected {len(data)}", offset + 8)
    data = memoryview(data)
    if verify and header.checksum_type != NO_CHECKSUM:
        expected = chunk_checksums(
            data[: header.data_size],
            header.bytes_per_checksum,
            castagnoli=header.checksum_type == CRC32C,
        )
        stored = data[header.data_size :]
        if stored != expected:
            bad = next(i for i in range(0, len(expected), 4) if stored[i : i + 4] != expected[i : i + 4])
            source.corrupt("a block's checksum is wrong", offset + bad // 4 * header.bytes_per_checksum)
    try:
        return decompress(codec, data[HEADER_SIZE : header.data_size], header.uncompressed_size)
    except CodecError as e:
        source.corrupt(f"a block's {e}", offset + HEADER_SIZE)
