"""Reader of HFiles: lookups by key, prefix and range, and scans.

A file is opened by reading its end; look-ups then read the blocks they need, found by binary search in the
block index.  Blocks are checked when they are loaded (checksum, structure, order, and that their keys lie where
the index says), so damage is an error and not a missing row.  Keys order by unsigned bytes; where a key is in the
file more than once, all its entries come in the file's order.

Given: a `Storage` and a path, or the bytes of an HFile, such as the content of a log block.
Gives: Arrow tables of two binary columns, `key` and `value`, both without nulls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_format.arrow.text_buffers import one_binary_array, text_buffers
from hudi_format.errors import UnsupportedError
from hudi_format.hfile import trailer as t
from hudi_format.hfile._block import Block, Keys, Rows
from hudi_format.hfile._index import FAULTS, IndexNode
from hudi_format.hfile.block import (
    DATA,
    FILE_INFO,
    HEADER_SIZE,
    INTERMEDIATE_INDEX,
    LEAF_INDEX,
    META,
    ROOT_INDEX,
    parse_header,
    read_content,
)
from hudi_format.hfile.compression import require
from hudi_format.hfile.source import BlockCache, BufferSource, Source, StorageSource
from hudi_format.storage.protocol import Storage

SCHEMA = pa.schema(
    [pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)
# One read gets the trailer and, in all but huge files, all that is read on opening; a small file whole.
TAIL_BYTES = 256 << 10
CACHE_BYTES = 16 << 20
BATCH_BYTES = 16 << 20
_READ_BYTES = 8 << 20  # blocks that lie together are read together, up to so much
_GAP_BYTES = 64 << 10  # skipping less than this costs more than reading it
_MOST_LEVELS = 16
_MOST_ROWS_BYTES = 0x7FFFFFFF


class _Data(NamedTuple):
    """A data block as listed in the index.

    `row` is a lower bound of its keys, `next_row` an upper one (None: none is known); keys `first` to `last`,
    exclusive, of those that are looked for may be in it.
    """

    offset: int
    size: int
    row: bytes
    next_row: bytes | None
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """Position and sizes of a data block.

    Sizes are in bytes: on disk with header and checksums, and of the content.
    """

    offset: int
    size: int
    content_size: int
    entries: int
    first_key: bytes
    last_key: bytes


class HFileReader:
    """An open HFile; made by `open` or `from_buffer`.

    Attributes:
        path: for messages.
        trailer: what the trailer says.
        file_info: entries of the file info.
        meta_blocks: names of the meta blocks, in the file's order.
    """

    def __init__(
        self, source: Source, *, cache_bytes: int = CACHE_BYTES, verify_checksums: bool = True
    ) -> None:
        self._source = source
        self._verify = verify_checksums
        self._cache = BlockCache(cache_bytes)
        self.path = source.path
        end = source.size - t.TRAILER_SIZE
        if end < 0:
            source.corrupt("shorter than a trailer: not an HFile, or cut off", 0)
        self._end = end
        tail = max(0, source.size - TAIL_BYTES)
        data = memoryview(source.read(tail, source.size - tail))
        try:
            self.trailer = t.parse_trailer(data[len(data) - t.TRAILER_SIZE :])
        except t.TrailerError as e:
            source.corrupt(str(e), end + e.at)
        require(self.trailer.codec, self.path)
        self._check_trailer(end)
        begin = self.trailer.load_on_open_offset
        if begin < tail:
            data = memoryview(bytes(source.read(begin, tail - begin)) + bytes(data))
            tail = begin
        self._held = (tail, data)  # (offset, bytes) of the file's end
        self._load()

    @classmethod
    def open(
        cls,
        storage: Storage,
        path: str,
        *,
        size: int | None = None,
        cache_bytes: int = CACHE_BYTES,
        verify_checksums: bool = True,
    ) -> HFileReader:
        """The HFile at a path of a storage.

        One ranged read, two where what is read on opening has more than `TAIL_BYTES`.

        Args:
            size: of the file in bytes, where the caller knows it; else the storage is asked.
            cache_bytes: memory for decompressed blocks, which look-ups share.
            verify_checksums: compare them, where blocks have any.

        Raises:
            MissingFileError: there is no such file.
            CorruptFileError: it is no HFile, or damaged.
            UnsupportedError: it uses something that Apache Hudi never writes.
        """
        source = StorageSource(storage, path, size)
        return cls(source, cache_bytes=cache_bytes, verify_checksums=verify_checksums)

    @classmethod
    def from_buffer(
        cls,
        data: bytes | memoryview,
        *,
        path: str = "",
        offset: int = 0,
        cache_bytes: int = CACHE_BYTES,
        verify_checksums: bool = True,
    ) -> HFileReader:
        """The HFile in these bytes; errors name `path` and count from `offset` in it."""
        source = BufferSource(data, path=path, offset=offset)
        return cls(source, cache_bytes=cache_bytes, verify_checksums=verify_checksums)

    # --- what it is ---------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self._source.size

    @property
    def entry_count(self) -> int:
        """Number of keys and values."""
        return self.trailer.entry_count

    @property
    def schema(self) -> str | None:
        """Avro schema (JSON) of the values; None where there is none."""
        text = self.file_info.get(t.SCHEMA)
        try:
            return None if text is None else text.decode()
        except UnicodeDecodeError:
            self._source.corrupt("the schema is not UTF-8", self.trailer.file_info_offset)

    @property
    def meta_blocks(self) -> list[str]:
        return list(self._meta)

    def meta_block(self, name: str) -> bytes | None:
        """Content of a meta block; None where there is none of this name."""
        found = self._meta.get(name)
        if found is None:
            return None
        offset, size = found
        data = self._read(offset, size)
        return bytes(read_content(self._source, data, offset, META, self.trailer.codec, verify=self._verify))

    # --- look-ups -----------------------------------------------------------------------------------

    def get(self, key: bytes | str) -> bytes | None:
        """Value of a key's first entry; None where the key is absent."""
        wanted = key.encode() if isinstance(key, str) else key
        offsets = np.array([0, len(wanted)], np.int64)
        touched = self._touched(self._root, self.trailer.index_levels, wanted, offsets, None)
        for _, block in self._blocks(touched):
            i = block.lower(wanted)
            if i < block.entries and block.row(i) == wanted:
                return block.value(i)
        return None

    def lookup(self, keys: pa.Array | pa.ChunkedArray | Iterable[bytes | str] | bytes | str) -> pa.Table:
        """Entries of one or more keys, in key order; absent keys give no row.

        Blocks are read once each, in the file's order, whatever the order of `keys`.
        """
        data, offsets = _sorted_unique([keys] if isinstance(keys, (bytes, str)) else keys)
        wanted = Keys(data, offsets)
        out = _Collector()
        if wanted.count:
            touched = self._touched(self._root, self.trailer.index_levels, data, offsets, None)
            for at, block in self._blocks(touched):
                out.make_room(block)
                out.rows.match(block, wanted, at.first, at.last)
        return out.table()

    def range(self, start: bytes | str | None = None, end: bytes | str | None = None) -> pa.Table:
        """Entries with keys from `start` to below `end`; None: unbounded."""
        low = start.encode() if isinstance(start, str) else start
        high = end.encode() if isinstance(end, str) else end
        out = _Collector()
        if low is None or high is None or low < high:
            self._range(low, high, out)
        return out.table()

    def prefix(self, prefixes: bytes | str | Iterable[bytes | str]) -> pa.Table:
        """Entries whose keys begin with one of the prefixes, in key order."""
        given = [prefixes] if isinstance(prefixes, (bytes, str)) else prefixes
        texts = sorted({p.encode() if isinstance(p, str) else p for p in given})
        out = _Collector()
        last: bytes | None = None
        for text in texts:
            if last is not None and text.startswith(last):
                continue  # its entries have come with those of the shorter one
            last = text
            self._range(text, _after_prefix(text), out)
        return out.table()

    def scan(self) -> pa.Table:
        """All entries."""
        return pa.Table.from_batches(self.batches(), SCHEMA)

    def batches(self, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch]:
        """All entries, in batches of whole blocks of about `batch_bytes` bytes.

        Raises:
            CorruptFileError: damage; also when the file has not as many entries as its trailer says, which
                is seen at the end.
        """
        out = _Collector()
        for _, block in self._whole():
            if out.rows.count and out.rows.bytes + block.key_bytes + block.value_bytes > batch_bytes:
                yield from out.flush()
            out.make_room(block)
            out.rows.add(block, 0, block.entries)
        yield from out.flush()

    def data_blocks(self) -> Iterator[BlockInfo]:
        """The data blocks in file order, after reading all; errors as of `batches`."""
        for at, block in self._whole():
            n = block.entries
            first, last = (block.row(0), block.row(n - 1)) if n else (b"", b"")
            yield BlockInfo(at.offset, at.size, block.size, n, first, last)

    def _whole(self) -> Iterator[tuple[_Data, Block]]:
        """All data blocks, with a final check against the trailer's counts."""
        count, last = 0, b""
        for at, block in self._blocks(self._all(), keep=False):
            count += block.entries
            last = block.row(block.entries - 1) if block.entries else last
            yield at, block
        self._check_whole(count, last)

    # --- opening ------------------------------------------------------------------------------------

    def _check_trailer(self, end: int) -> None:
        trailer, corrupt = self.trailer, self._source.corrupt
        if not 0 <= trailer.load_on_open_offset <= trailer.file_info_offset <= end - HEADER_SIZE:
            corrupt("the trailer's offsets exceed the file", end)
        if not 1 <= trailer.index_levels <= _MOST_LEVELS:
            corrupt(f"an index of {trailer.index_levels} levels", end)
        if (trailer.entry_count == 0) != (trailer.data_index_count == 0):
            corrupt("the trailer's counts of entries and of blocks contradict each other", end)

    def _load(self) -> None:
        trailer, source = self.trailer, self._source
        at = trailer.load_on_open_offset
        root, after = self._opened(at, ROOT_INDEX)
        end = trailer.load_on_open_offset
        self._root = IndexNode(root, count=trailer.data_index_count, below=trailer.index_levels > 1, end=end)
        self._sound(self._root, at)
        meta, after_meta = self._opened(after, ROOT_INDEX)
        names = IndexNode(meta, count=trailer.meta_index_count, below=False, end=end, plain=True)
        self._sound(names, after)
        self._meta = {names.row(i).decode("utf-8", "replace"): names.span(i) for i in range(names.entries)}
        if after_meta > trailer.file_info_offset:
            source.corrupt("the file info lies within the index", trailer.file_info_offset)
        info, _ = self._opened(trailer.file_info_offset, FILE_INFO)
        try:
            self.file_info = t.parse_file_info(info)
        except t.TrailerError as e:
            source.corrupt(str(e), trailer.file_info_offset)
        self._versions = self.file_info.get(t.KEY_VALUE_VERSION) == b"\0\0\0\x01"
        encoding = self.file_info.get(t.BLOCK_ENCODING, b"NONE")
        for what, there in (("tags", t.MAX_TAGS_LENGTH in self.file_info),
                            ("encoded data blocks", encoding != b"NONE")):  # fmt: skip
            if there:
                raise UnsupportedError(
                    f"HFile with {what}",
                    file=self.path,
                    remedy="rewrite it without them; Apache Hudi never uses them.",
                )

    def _opened(self, offset: int, magic: bytes) -> tuple[bytes | memoryview, int]:
        """Content and end offset of a block in the load-on-open section."""
        start, held = self._held
        header = parse_header(self._source, held[offset - start : offset - start + HEADER_SIZE], offset)
        if header.on_disk_size > self._end - offset:
            self._source.corrupt("a block exceeds the file", offset + 8)
        data = held[offset - start : offset - start + header.on_disk_size]
        codec = self.trailer.codec
        content = read_content(self._source, data, offset, magic, codec, verify=self._verify)
        return content, offset + header.on_disk_size

    def _sound(self, node: IndexNode, offset: int) -> None:
        if node.fault:
            self._source.corrupt(f"{FAULTS[node.fault]}, in an index block's byte {node.fault_at}", offset)

    # --- blocks -------------------------------------------------------------------------------------

    def _read(self, offset: int, size: int) -> bytes | memoryview:
        start, held = self._held
        if offset >= start:
            return held[offset - start : offset - start + size]
        return self._source.read(offset, size)

    def _node(self, at: _Data, level: int) -> IndexNode:
        """An index block below the root; `level` 2 is a leaf."""
        found = self._cache.get(at.offset)
        if isinstance(found, IndexNode):
            return found
        magic = LEAF_INDEX if level == 2 else INTERMEDIATE_INDEX
        data = self._read(at.offset, at.size)
        codec = self.trailer.codec
        content = read_content(self._source, data, at.offset, magic, codec, verify=self._verify)
        node = IndexNode(content, count=-1, below=level > 2, end=self.trailer.load_on_open_offset)
        self._sound(node, at.offset)
        if node.entries == 0:
            self._source.corrupt("an index block is empty", at.offset)
        self._between(node, at)
        self._cache.put(at.offset, node)
        return node

    def _decode(self, at: _Data, data: bytes | memoryview, keep: bool) -> Block:
        codec = self.trailer.codec
        content = read_content(self._source, data, at.offset, DATA, codec, verify=self._verify)
        if keep and isinstance(content, memoryview):
            content = bytes(content)  # else one block would hold all that was read with it
        block = Block(content, self._versions)
        if block.fault:
            self._source.corrupt(f"{FAULTS[block.fault]}, in a data block's byte {block.fault_at}", at.offset)
        self._between(block, at)
        if keep:
            self._cache.put(at.offset, block)
        return block

    def _between(self, node: Block | IndexNode, at: _Data) -> None:
        """Check that a node's keys lie within the bounds of its parent's entry."""
        if node.entries and (
            node.row(0) < at.row or (at.next_row is not None and node.row(node.entries - 1) > at.next_row)
        ):
            self._source.corrupt("a block's keys contradict its index entry", at.offset)

    def _blocks(self, spans: Iterable[_Data], *, keep: bool = True) -> Iterator[tuple[_Data, Block]]:
        """The data blocks at some places, adjacent ones in one read.

        Those that are read are kept in the cache, but for those of a scan.
        """
        group: list[_Data] = []
        end = 0
        for at in spans:
            if at.offset < end:
                # Else an index that leads to its blocks in many ways would be followed in all of them.
                self._source.corrupt("two data blocks overlap", at.offset)
            end = at.offset + at.size
            if group and (
                at.offset - group[-1].offset - group[-1].size > _GAP_BYTES
                or at.offset + at.size - group[0].offset > _READ_BYTES
            ):
                yield from self._group(group, keep)
                group = []
            group.append(at)
        yield from self._group(group, keep)

    def _group(self, group: Sequence[_Data], keep: bool) -> Iterator[tuple[_Data, Block]]:
        found = [self._cache.get(at.offset) for at in group]
        missing = [at for at, block in zip(group, found, strict=True) if not isinstance(block, Block)]
        if not missing:
            yield from ((at, b) for at, b in zip(group, found, strict=True) if isinstance(b, Block))
            return
        start = missing[0].offset
        data = memoryview(self._read(start, missing[-1].offset + missing[-1].size - start))
        for at, block in zip(group, found, strict=True):
            if isinstance(block, Block):
                yield at, block
            else:
                yield at, self._decode(at, data[at.offset - start : at.offset - start + at.size], keep)

    # --- the index ----------------------------------------------------------------------------------

    def _children(
        self, node: IndexNode, low: int, high: int, next_row: bytes | None
    ) -> Iterator[tuple[int, _Data]]:
        row = node.row(low) if low < high else b""
        for i in range(low, high):
            after = node.row(i + 1) if i + 1 < node.entries else next_row
            yield i, _Data(*node.span(i), row, after)
            row = after or b""

    def _touched(
        self,
        node: IndexNode,
        level: int,
        data: bytes | NDArray[np.uint8],
        offsets: NDArray[np.int64],
        next_row: bytes | None,
        base: int = 0,
    ) -> Iterator[_Data]:
        """Data blocks that may hold the keys at `offsets`; `base` is the number of the first."""
        n = len(offsets) - 1
        low, high = np.empty(n, np.int64), np.empty(n, np.int64)
        node.touch(data, offsets, low, high)
        depth = np.zeros(node.entries + 1, np.int64)
        some = high > low
        np.add.at(depth, low[some], 1)
        np.add.at(depth, high[some], -1)
        for i in np.flatnonzero(np.cumsum(depth)).tolist():
            _, at = next(self._children(node, i, i + 1, next_row))
            # `low` and `high` ascend, so the keys of one entry lie together.
            first = int(np.searchsorted(high, i, "right"))
            last = int(np.searchsorted(low, i, "right"))
            if level == 1:
                yield at._replace(first=base + first, last=base + last)
            else:
                below = self._node(at, level)
                part = offsets[first : last + 1]
                yield from self._touched(below, level - 1, data, part, at.next_row, base + first)

    def _ranged(
        self,
        node: IndexNode,
        level: int,
        start: bytes | None,
        end: bytes | None,
        next_row: bytes | None,
    ) -> Iterator[_Data]:
        """Data blocks that may hold keys from `start` to below `end`."""
        low, high = node.range(start, end)
        for _, at in self._children(node, low, high, next_row):
            if level == 1:
                yield at
            else:
                yield from self._ranged(self._node(at, level), level - 1, start, end, at.next_row)

    def _all(self) -> Iterator[_Data]:
        return self._ranged(self._root, self.trailer.index_levels, None, None, None)

    def _range(self, start: bytes | None, end: bytes | None, out: _Collector) -> None:
        touched = self._ranged(self._root, self.trailer.index_levels, start, end, None)
        for _, block in self._blocks(touched):
            low = 0 if start is None else block.lower(start)
            high = block.entries if end is None else block.lower(end)
            out.make_room(block)
            out.rows.add(block, low, max(low, high))

    def _check_whole(self, count: int, last: bytes) -> None:
        if count != self.trailer.entry_count:
            self._source.corrupt(
                f"{count} entries, but the trailer says {self.trailer.entry_count}", self._end
            )
        key = self.file_info.get(t.LAST_KEY)
        if count and key is not None and key[2 : 2 + int.from_bytes(key[:2])] != last:
            self._source.corrupt(
                "the last key differs from the one in the file info", self.trailer.file_info_offset
            )


class _Collector:
    """Collects rows into batches within Arrow's 32-bit offsets."""

    def __init__(self) -> None:
        self.rows = Rows()
        self._batches: list[pa.RecordBatch] = []

    def make_room(self, block: Block) -> None:
        if self.rows.count and self.rows.bytes + block.size > _MOST_ROWS_BYTES:
            self._batches += self.flush()

    def flush(self) -> list[pa.RecordBatch]:
        """The rows collected since the last call, as at most one batch."""
        if self.rows.count == 0:
            return []
        rows, self.rows = self.rows, Rows()
        key_offsets, keys, value_offsets, values = (
            # The buffers hold `rows`, to which the memory belongs.
            pa.foreign_buffer(address, size, rows) if size else pa.py_buffer(b"")
            for address, size in rows.buffers()
        )
        arrays = [
            pa.Array.from_buffers(pa.binary(), rows.count, [None, key_offsets, keys]),
            pa.Array.from_buffers(pa.binary(), rows.count, [None, value_offsets, values]),
        ]
        return [pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)]

    def table(self) -> pa.Table:
        return pa.Table.from_batches([*self._batches, *self.flush()], SCHEMA)


def _after_prefix(prefix: bytes) -> bytes | None:
    """The least key above all keys with the prefix; None where there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _sorted_unique(
    keys: pa.Array | pa.ChunkedArray | Iterable[bytes | str],
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Distinct sorted keys as (bytes, offsets), without nulls."""
    if isinstance(keys, (pa.Array, pa.ChunkedArray)):
        array = one_binary_array(keys)
    else:
        array = pa.array([k.encode() if isinstance(k, str) else k for k in keys], pa.large_binary())
    array = pc.unique(array.drop_null())
    data, offsets, _ = text_buffers(array.take(pc.sort_indices(array)))
    return data, offsets
