"""Writer of HFiles for Apache Hudi's readers: HBase's (0.x) and its own (0.15 and later).

Keys ascend by unsigned bytes.  The block index has one level, which every reader reads, unless the caller wants
more; index keys are whole first keys; checksums are CRC-32C; the file info has what HBase requires.

Source: format notes of HFile version 3; each choice tried with the readers of Apache Hudi 0.15.0, 1.0.2 and 1.2.0.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa

from hudi_format.arrow.text_buffers import one_binary_array, text_buffers
from hudi_format.errors import RecordKeyError, SchemaError
from hudi_format.hfile import _encode as e
from hudi_format.hfile import block as b
from hudi_format.hfile import trailer as t
from hudi_format.hfile._checksum import chunk_checksums
from hudi_format.hfile.compression import Codec, compress

BLOCK_SIZE = 64 << 10
_BYTES_PER_CHECKSUM = 16384
_CODECS = {"gz": Codec.GZ, "gzip": Codec.GZ, "none": Codec.NONE}
_KEY_TAIL = b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\x04"  # no family, the latest time, a put


@dataclass(frozen=True, slots=True)
class HFileStats:
    """Statistics of a written HFile; sizes in bytes, keys None without entries."""

    size: int
    entries: int
    data_blocks: int
    first_key: bytes | None
    last_key: bytes | None


@dataclass(frozen=True, slots=True)
class Bloom:
    """Bloom filter of the keys: kind (`DYNAMIC_V0` or `SIMPLE`) and base64 text."""

    type_code: str
    text: bytes


@dataclass(frozen=True, slots=True)
class _Child:
    offset: int
    size: int
    key: bytes


class HFileWriter:
    """Writes one HFile: any number of `append` calls, then `finish`.

    Args:
        sink: takes bytes by `write`; it stays open.
        schema: Avro schema of the values, JSON; Apache Hudi's readers require one.
        codec: "gz" or "none".
        level: of zlib's compression.
        is_random: values are text of random bits, in which only runs are looked for: what else repeats there does so by
            chance.
        block_size: of data blocks, in bytes of content.
        unique: refuse a key that is there twice; Apache Hudi does so in base files, not in log blocks.
        file_info: further entries of the file info.
        index_block_size: bytes of an index block's content, past which the index gets a further level.  None:
            one level, the most that Apache Hudi 0.15's own reader, which is not its default, reads.
        path: for messages.
    """

    def __init__(
        self,
        sink: IO[bytes] | pa.NativeFile,
        *,
        schema: str | None,
        codec: str = "gz",
        level: int = 6,
        is_random: bool = False,
        block_size: int = BLOCK_SIZE,
        unique: bool = True,
        file_info: Mapping[bytes, bytes] | None = None,
        index_block_size: int | None = None,
        path: str = "",
    ) -> None:
        if codec not in _CODECS:
            raise ValueError(f"codec {codec!r}: gz or none")
        if index_block_size is not None and index_block_size <= 0:
            raise ValueError("an index block has at least one byte")
        self._write: Callable[[Any], Any] = sink.write
        self._codec, self._level = _CODECS[codec], level
        self._strategy = zlib.Z_RLE if is_random else zlib.Z_DEFAULT_STRATEGY
        self._index_block_size = index_block_size
        self._path = path
        self._builder = e.BlockBuilder(block_size, unique)
        self._at = 0
        self._uncompressed = 0
        self._entries = 0
        self._previous = {b.DATA: -1}
        self._index: list[_Child] = []
        self._first_key: bytes | None = None
        self._last_key: bytes | None = None
        self._meta: dict[str, bytes] = {}
        self._info = dict(file_info or {})
        self._finished = False
        if schema is not None:
            self._info[t.SCHEMA] = schema.encode()

    def append(self, keys: pa.Array | pa.ChunkedArray, values: pa.Array | pa.ChunkedArray) -> None:
        """Append entries.

        Args:
            keys: text or binary, ascending by unsigned bytes.
            values: binary (or text), one for each key.

        Raises:
            RecordKeyError: a key that is null, not in order, there twice, or longer than 32767 bytes.
            SchemaError: a value that is null or too long, or not as many of them as keys.
            ValueError: after `finish`.
        """
        self._open()
        if len(keys) != len(values):
            raise SchemaError(f"{len(keys)} keys and {len(values)} values", file=self._path)
        if keys.null_count:
            raise RecordKeyError("a null key", file=self._path, remedy="give every record a key.")
        if values.null_count:
            raise SchemaError("a null value", file=self._path, remedy="write a delete block instead.")
        key_data, key_offsets, _ = text_buffers(one_binary_array(keys))
        value_data, value_offsets, _ = text_buffers(one_binary_array(values))
        row, n = 0, len(keys)
        while row < n:
            row = self._builder.add(key_data, key_offsets, value_data, value_offsets, row)
            if row < 0:
                at = self._builder.row
                self._refuse(row, bytes(key_data[key_offsets[at] : key_offsets[at + 1]]))
            if row < n:
                self._flush()

    def add_meta_block(self, name: str, content: bytes) -> None:
        """Add a meta block, written by `finish`."""
        self._meta[name] = content

    def add_file_info(self, entries: Mapping[bytes, bytes]) -> None:
        """Add entries to the file info."""
        self._info.update(entries)

    def finish(self, *, bloom: Bloom | None = None, key_range: tuple[str, str] | None = None) -> HFileStats:
        """Write the remaining entries, the index and the trailer.

        Args:
            bloom: filter of all keys, as base files of metadata tables have it.
            key_range: least and greatest key, as base files have them beside the filter.

        Raises:
            ValueError: it is finished already.
        """
        self._open()
        self._finished = True
        if self._builder.entries:
            self._flush()
        if bloom is not None:
            self._meta[t.BLOOM_BLOCK] = bloom.text
            self._info[t.BLOOM_TYPE] = bloom.type_code.encode()
        if key_range is not None:
            self._info[t.MIN_RECORD_KEY] = key_range[0].encode()
            self._info[t.MAX_RECORD_KEY] = key_range[1].encode()
        data_blocks = len(self._index)
        root, levels = self._write_index()
        meta = [
            _Child(*self._block(b.META, self._meta[name], -1, name == t.BLOOM_BLOCK), name.encode())
            for name in sorted(self._meta)
        ]
        load_on_open = self._at
        root_content = _root_entries(root)
        self._block(b.ROOT_INDEX, root_content, -1)
        self._block(b.ROOT_INDEX, _root_entries(meta), load_on_open)
        info_offset, _ = self._block(b.FILE_INFO, t.format_file_info(self._file_info()), -1)
        trailer = t.Trailer(
            file_info_offset=info_offset,
            load_on_open_offset=load_on_open,
            uncompressed_index_size=len(root_content),
            total_uncompressed_bytes=self._uncompressed + t.TRAILER_SIZE,
            data_index_count=len(root),
            meta_index_count=len(meta),
            entry_count=self._entries,
            index_levels=levels,
            first_data_block_offset=0 if data_blocks else -1,
            last_data_block_offset=self._previous[b.DATA],
            comparator=t.COMPARATOR,
            codec=self._codec,
        )
        self._put(t.format_trailer(trailer))
        return HFileStats(self._at, self._entries, data_blocks, self._first_key, self._last_key)

    def _open(self) -> None:
        if self._finished:
            raise ValueError("the HFile is finished; nothing can follow its trailer")

    def _refuse(self, why: int, key: bytes) -> None:
        shown = key[:80].decode("utf-8", "backslashreplace")
        if why == e.VALUE_TOO_LONG:
            raise SchemaError(
                f"the value of key {shown!r} has more than an HFile block's 2 GiB",
                file=self._path,
                remedy="split the record.",
            )
        what, remedy = {
            e.OUT_OF_ORDER: (
                "does not come after the one before it",
                "sort the records by their keys' bytes.",
            ),
            e.DUPLICATE: ("is duplicated", "merge the records of a key before they are written."),
            e.KEY_TOO_LONG: (f"has {len(key)} bytes, an HFile's keys at most 32767", "use a shorter key."),
        }[why]
        raise RecordKeyError(f"key {shown!r} {what}", file=self._path, remedy=remedy)

    def _flush(self) -> None:
        """Write the current data block."""
        entries = self._builder.entries
        content, first, self._last_key = self._builder.take()
        if self._first_key is None:
            self._first_key = first
        offset, size = self._block(b.DATA, content, self._previous[b.DATA])
        self._previous[b.DATA] = offset
        self._index.append(_Child(offset, size, _key(first)))
        self._entries += entries

    def _write_index(self) -> tuple[list[_Child], int]:
        """Write index blocks below the root; returns root entries and number of levels."""
        level, levels = self._index, 1
        most = self._index_block_size
        while most is not None and len(level) > 1 and sum(14 + len(c.key) for c in level) > most:
            magic = b.LEAF_INDEX if levels == 1 else b.INTERMEDIATE_INDEX
            above, previous = [], -1
            for part in _parts(level, most):
                previous, size = self._block(magic, _leaf_entries(part), previous)
                above.append(_Child(previous, size, part[0].key))
            level, levels = above, levels + 1
        return level, levels

    def _block(self, magic: bytes, content: bytes, previous: int, is_packed: bool = False) -> tuple[int, int]:
        """Write a block; returns (offset, size).

        Args:
            is_packed: as it is, in the codec's format: a filter is random, and read whole by whoever reads of it.
        """
        offset = self._at
        packed = compress(
            self._codec, content, zlib.Z_NO_COMPRESSION if is_packed else self._level, self._strategy
        )
        data_size = b.HEADER_SIZE + len(packed)
        chunks = -(-data_size // _BYTES_PER_CHECKSUM)
        head = b"".join(
            (
                magic,
                (len(packed) + 4 * chunks).to_bytes(4),
                len(content).to_bytes(4),
                previous.to_bytes(8, signed=True),
                bytes([b.CRC32C]),
                _BYTES_PER_CHECKSUM.to_bytes(4),
                data_size.to_bytes(4),
            )
        )
        block = head + packed
        self._put(block + chunk_checksums(block, _BYTES_PER_CHECKSUM, castagnoli=True))
        self._uncompressed += b.HEADER_SIZE + len(content)
        return offset, self._at - offset

    def _put(self, data: bytes) -> None:
        self._write(data)
        self._at += len(data)

    def _file_info(self) -> dict[bytes, bytes]:
        n = max(self._entries, 1)
        keys = self._builder.key_bytes + 12 * self._entries
        info = {
            t.KEY_VALUE_VERSION: (1).to_bytes(4),
            t.MAX_MEMSTORE_TS: bytes(8),
            t.AVG_KEY_LENGTH: (keys // n).to_bytes(4),
            t.AVG_VALUE_LENGTH: (self._builder.value_bytes // n).to_bytes(4),
            t.CREATE_TIME: bytes(8),
        }
        if self._last_key is not None:
            info[t.LAST_KEY] = _key(self._last_key)
        return {**self._info, **info}


def hfile_bytes(
    keys: pa.Array | pa.ChunkedArray,
    values: pa.Array | pa.ChunkedArray,
    *,
    schema: str | None,
    codec: str = "gz",
    block_size: int = BLOCK_SIZE,
    unique: bool = True,
) -> bytes:
    """A whole HFile, as embedded in a log block; arguments and errors as of `HFileWriter`."""
    out = io.BytesIO()
    writer = HFileWriter(out, schema=schema, codec=codec, block_size=block_size, unique=unique)
    writer.append(keys, values)
    writer.finish()
    return out.getvalue()


def _key(row: bytes) -> bytes:
    return len(row).to_bytes(2) + row + _KEY_TAIL


def _root_entries(children: list[_Child]) -> bytes:
    return b"".join(
        part
        for c in children
        for part in (c.offset.to_bytes(8), c.size.to_bytes(4), _hadoop_varint(len(c.key)), c.key)
    )


def _leaf_entries(children: list[_Child]) -> bytes:
    offsets, at = [0], 0
    for c in children:
        at += 12 + len(c.key)
        offsets.append(at)
    places = np.array(offsets, ">u4").tobytes()
    entries = b"".join(part for c in children for part in (c.offset.to_bytes(8), c.size.to_bytes(4), c.key))
    return len(children).to_bytes(4) + places + entries


def _parts(level: list[_Child], most: int) -> list[list[_Child]]:
    """Entries split into parts of limited size, at least two entries each."""
    out: list[list[_Child]] = [[]]
    size = 0
    for c in level:
        if size + 16 + len(c.key) > most and len(out[-1]) >= 2:
            out.append([])
            size = 0
        out[-1].append(c)
        size += 16 + len(c.key)
    return out


def _hadoop_varint(value: int) -> bytes:
    if value <= 127:
        return bytes([value])
    text = value.to_bytes((value.bit_length() + 7) // 8)
    return bytes([0x90 - len(text)]) + text
