"""Text column of a base file without nulls, as record keys are, taken apart in one pass.

Arrow appends texts to a builder one by one, which takes as long as to unpack them.  Keys have no dictionary, as each is
there once: their pages are of lengths and texts in turns.

Whatever is not so (a null, a dictionary, another encoding or codec, bytes that contradict the footer or are damaged) is
left to Arrow's reader, which reads it or says what is wrong.

Source: parquet.thrift, PageHeader; Parquet format, "Data Pages"; RFC 8878, 3.1.1.1, "Frame_Header".
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.parquet._texts import all_present, plain_texts
from hudi_format.parquet._utf8 import first_invalid
from hudi_format.parquet.row_groups import ColumnChunk, RowGroup
from hudi_format.parquet.thrift import Cursor, Fields, number_of, once, raw_of

ReadAt = Callable[[int, int], bytes]
"""Bytes of a file: place and length."""

_DATA_PAGE, _DATA_PAGE_V2 = 0, 3
_PLAIN, _RLE = 0, 3
_HEADER = 4 << 10  # of a page; a longer one, with long bounds, is left to Arrow
_MOST_BYTES = 0x7FFFFFFF
_CODECS = ("UNCOMPRESSED", "ZSTD", "SNAPPY", "GZIP")
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def read_texts(
    file: pq.ParquetFile, groups: Sequence[RowGroup], read: ReadAt, name: str
) -> pa.ChunkedArray | None:
    """Texts of an open file, a chunk for each row group; None where they are for Arrow to read.

    Args:
        groups: the file's, with that column at least.
        name: of their column, which the file has.
    """
    schema = file.schema
    found = [n for n in range(len(schema.names)) if schema.column(n).path == name]
    if len(found) != 1 or file.schema_arrow.field(name).type != pa.string():
        return None
    leaf = schema.column(found[0])
    if leaf.physical_type != "BYTE_ARRAY" or leaf.max_repetition_level or leaf.max_definition_level > 1:
        return None
    chunks = []
    for group in groups:
        try:
            chunk = _texts(group.columns[name], read, group.num_rows, leaf.max_definition_level > 0)
        except (KeyError, ValueError, zlib.error, OSError, pa.ArrowException):
            return None
        if chunk is None:
            return None
        chunks.append(chunk)
    return pa.chunked_array(chunks, pa.string())


def _texts(chunk: ColumnChunk, read: ReadAt, rows: int, nullable: bool) -> pa.Array | None:
    """Texts of a column chunk; None, or an error, where they are for Arrow to read."""
    size, begin, codec = chunk.packed, chunk.data, chunk.codec
    if chunk.dictionary or codec not in _CODECS or chunk.num_values != rows:
        return None
    # A text takes its length at least: no more is allocated than the pages may be.
    room = chunk.unpacked - 4 * rows
    if rows < 0 or size <= 0 or begin < 4 or not 0 <= room <= _MOST_BYTES - 4 * rows:
        return None
    data = memoryview(read(begin, size))
    if len(data) != size:
        return None
    content = pa.allocate_buffer(room)
    bounds = pa.allocate_buffer(4 * (rows + 1))
    texts, offsets = np.frombuffer(content, np.uint8), np.frombuffer(bounds, np.int32)
    offsets[0] = at = first = end = 0
    while at < size:
        header = Cursor(bytes(data[at : at + _HEADER]))
        fields = once(header.fields())
        at += header.at
        packed, unpacked = number_of(fields, 3), number_of(fields, 2)
        if packed > size - at or unpacked > room + 4 * rows:
            return None
        values, page = _values(fields, data[at : at + packed], unpacked, codec, nullable)
        if page is None or values > rows - first:
            return None
        end = plain_texts(page, offsets, texts, first, values)
        if end < 0:
            return None
        first += values
        at += packed
    if first != rows or (end and first_invalid(texts, offsets) != -1):
        return None
    return pa.Array.from_buffers(pa.string(), rows, [None, bounds, content.slice(0, end)])


def _values(
    fields: Fields, data: memoryview, unpacked: int, codec: str, nullable: bool
) -> tuple[int, memoryview | None]:
    """Number of a page's values, and their bytes; None where they are not plain, or not all are there.

    Args:
        unpacked: bytes of the page before it was compressed.
    """
    kind = number_of(fields, 1)
    if kind == _DATA_PAGE_V2:
        about = once(Cursor(raw_of(fields, 8)).fields())
        values, levels = number_of(about, 1), number_of(about, 5)
        if number_of(about, 4) != _PLAIN or number_of(about, 2) or number_of(about, 6):
            return values, None
        if levels > min(len(data), unpacked) or (nullable and not all_present(data[:levels], values)):
            return values, None
        # Field 7, a boolean, is its own type: 2 is false.
        plain = any(number == 7 and type == 2 for number, type, _ in about)
        return values, _unpacked(data[levels:], unpacked - levels, "UNCOMPRESSED" if plain else codec)
    if kind != _DATA_PAGE:
        return 0, None
    about = once(Cursor(raw_of(fields, 5)).fields())
    values = number_of(about, 1)
    if number_of(about, 2) != _PLAIN or (nullable and number_of(about, 3) != _RLE):
        return values, None
    page = _unpacked(data, unpacked, codec)
    if not nullable or page is None:
        return values, page
    length = int.from_bytes(page[:4], "little")
    if len(page) < 4 or length > len(page) - 4:
        return values, None
    if not all_present(page[4 : 4 + length], values):
        return values, None
    return values, page[4 + length :]


def _unpacked(data: memoryview, size: int, codec: str) -> memoryview | None:
    """The bytes of a page before it was compressed; None where they are not as many, or for Arrow to unpack.

    Arrow's codecs do not say how many bytes they gave: what the compressed bytes say of it themselves, and what the
    codec compares with them, must be the wanted size.
    """
    if codec == "UNCOMPRESSED":
        return data if len(data) == size else None
    if codec == "GZIP":
        reader = zlib.decompressobj(31)
        found = reader.decompress(data, size + 1)
        found += b"" if reader.eof else reader.decompress(reader.unconsumed_tail, 1)
        return memoryview(found) if reader.eof and len(found) == size else None
    said = _snappy_size(data) if codec == "SNAPPY" else _zstd_size(data)
    if said == size:
        return memoryview(pa.Codec(codec.lower()).decompress(data, size)).cast("B")
    if codec == "SNAPPY" or said >= 0:
        return None
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "zstd") as stream:
        whole = stream.read(size + 1)
    return memoryview(whole) if len(whole) == size else None


def _snappy_size(data: memoryview) -> int:
    """Content size at the start of Snappy bytes."""
    return Cursor(bytes(data[:10])).varint()


def _zstd_size(data: memoryview) -> int:
    """Content size that the header of a Zstandard frame says; -1 for none."""
    if data[:4] != _ZSTD_MAGIC or len(data) < 5:
        raise ValueError("no Zstandard frame")
    flags = data[4]
    single, code = flags >> 5 & 1, flags >> 6
    length = (single, 2, 4, 8)[code]
    begin = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3]
    if not length:
        return -1
    if len(data) < begin + length:
        raise ValueError("a frame header that is cut off")
    return int.from_bytes(data[begin : begin + length], "little") + (256 if length == 2 else 0)
