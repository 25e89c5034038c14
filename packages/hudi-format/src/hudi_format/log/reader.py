"""Reader of log files by block, with contents on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.fork_safe import cached_property
from hudi_format.log import _scan
from hudi_format.log.block import MAGIC, BlockType, Damage, LogBlock
from hudi_format.log.block_index import (
    LEAST_BLOCK,
    Buffer,
    Headers,
    IndexColumn,
    Rows,
    block_of,
    blocks_of,
    index,
)
from hudi_format.storage.protocol import Storage
from hudi_format.storage.streams import open_ranges

WHOLE_FILE = 8 << 20  # bytes; a remote file up to here comes in one request
_WINDOW = 64 << 10  # bytes of one ranged read: a header with its schema, and often several small blocks
_SEARCH = 4 << 20  # bytes of one ranged read while the next magic is sought
_LOST_HEAD = 1 << 20  # bytes of a torn block that are searched for its instant
_LEAST_HEAD = 26  # bytes up to a header's number of entries
_TAIL = 12  # empty footer and reverse pointer


class LogFileReader:
    """An open log file.

    Bytes, Arrow buffers and memory maps are read in place.  Of a remote file larger than `WHOLE_FILE` only
    headers are read, about one request a block, and contents when `content` is called.

    Args:
        source: the bytes, or a file that can seek (pyarrow's or Python's), which then is closed with the reader.
        file: name for blocks and errors.
    """

    def __init__(self, source: Buffer | pa.Buffer | Any, *, file: str = "") -> None:
        self.file = file
        self._input: Any = None
        self._data: pa.Buffer | None = None
        self._sound = True
        self._searched: tuple[int, memoryview] = (0, memoryview(b""))
        if isinstance(source, pa.Buffer):
            self._data = source
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self._data = pa.py_buffer(source)
        else:
            self._open(source)
        self.size = self._data.size if self._data is not None else self._length()

    @classmethod
    def open(cls, storage: Storage, path: str, *, in_ranges: bool = False) -> LogFileReader:
        """The log file at a path of a storage.

        Args:
            in_ranges: do not map a local file into memory.

        Raises:
            MissingFileError: there is none.
        """
        info = storage.info(path)
        if info is None:
            raise MissingFileError("a log file is not there", table=storage.uri, file=path)
        if info.size == 0:
            return cls(b"", file=path)  # some systems map no empty file
        if in_ranges and storage.is_local:

            def fetch(start: int, stop: int) -> bytes:
                return storage.read_range(path, start, stop - start)

            return cls(open_ranges(fetch, info.size), file=path)
        try:
            return cls(storage.open_input(path), file=path)
        except FileNotFoundError as e:
            raise MissingFileError("a log file is not there", table=storage.uri, file=path) from e

    def _open(self, source: Any) -> None:
        self._input = source
        if isinstance(source, pa.MemoryMappedFile):
            source.seek(0)
            self._data = source.read_buffer()
        elif self._length() <= WHOLE_FILE:
            source.seek(0)
            self._data = pa.py_buffer(source.read())

    def _length(self) -> int:
        if isinstance(self._input, pa.NativeFile):
            return int(self._input.size())
        return int(self._input.seek(0, 2))

    @cached_property
    def blocks(self) -> tuple[LogBlock, ...]:
        """All blocks in file order; damaged stretches are CORRUPT blocks.

        Never raises for damage: what it means depends on what was committed (`hudi_format.log.corruption`).
        """
        if self._data is None:
            return tuple(_joined(self._blocks_by_range()))
        return tuple(blocks_of(self._data, index(self._data), self.file))

    def content(self, block: LogBlock) -> pa.Buffer:
        """Content of one of this file's blocks; not copied where the file is in memory.

        Raises:
            CorruptFileError: the file has become shorter since it was scanned.
        """
        return self.read(block.content_offset, block.content_length)

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Bytes of the file.

        Raises:
            CorruptFileError: it does not have them.
        """
        if offset < 0 or length < 0 or offset + length > self.size:
            raise self._short(offset, length)
        if self._data is not None:
            return self._data.slice(offset, length)
        self._input.seek(offset)
        data = self._input.read(length)
        if len(data) != length:
            raise self._short(offset, length)
        return pa.py_buffer(data)

    def _short(self, offset: int, length: int) -> CorruptFileError:
        return CorruptFileError(
            f"bytes {offset} to {offset + length} are not there, the file has {self.size}",
            file=self.file,
            offset=min(max(offset, 0), self.size),
        )

    def _blocks_by_range(self) -> Iterator[LogBlock]:
        headers = Headers()
        row = np.empty(len(IndexColumn), np.int64)
        at = 0
        window = _Window(self)
        while at < self.size:
            head = window.at(at, _WINDOW, len(MAGIC))
            if self.size - at < len(MAGIC):
                yield _lost(self.file, at, self.size, Damage.STRAY)
                return
            damage = self._parse(at, row, window)
            magic = bytes(head[: len(MAGIC)]) == MAGIC
            if not magic and damage is Damage.NONE:
                damage = Damage.BAD_MAGIC
                row[IndexColumn.DAMAGE] = damage
            elif not magic:
                stop = self._search(at + 1)
                stray = MAGIC.startswith(bytes(head[: min(stop - at, len(MAGIC))]))
                yield _lost(self.file, at, stop, Damage.STRAY if stray else Damage.NO_MAGIC)
                at = stop
                continue
            elif damage in (Damage.TORN, Damage.DISAGREES):
                stop = self._search(at + len(MAGIC) - 1)
                # As in memory: its header, as far as it can be read within the stretch that is lost.
                lost = index(window.at(at, min(stop - at, _LOST_HEAD)))[0]
                if lost[IndexColumn.INSTANT] >= 0:
                    row[IndexColumn.INSTANT] = at + lost[IndexColumn.INSTANT]
                    row[IndexColumn.INSTANT_LENGTH] = lost[IndexColumn.INSTANT_LENGTH]
                row[IndexColumn.END] = stop
            yield block_of(row.tolist(), self.file, window.at, headers)
            at = int(row[IndexColumn.END])

    def _parse(self, at: int, row: Rows, window: _Window) -> Damage:
        """Fill `row` for the block at `at`, reading more of the file as needed."""
        head_size, tail_size, enough = _WINDOW, _TAIL, _LEAST_HEAD
        while True:
            head = window.at(at, head_size, enough)
            size = int.from_bytes(head[6:14], "big", signed=True)
            end = at + 14 + size
            tail, tail_at = head, at
            if 0 <= size <= self.size - at - 14 and end > at + len(head):
                tail_at = max(at, end - tail_size)
                # One request brings this block's end and the next one's head.
                # Not after a damaged one: what follows it may claim any end.
                tail = window.at(tail_at, tail_size + (_WINDOW if self._sound else 0))
            answer = _scan.parse(head, tail, tail_at, at, self.size, row)
            if answer >= 0:
                self._sound = answer == 0
                return Damage(answer)
            if answer == -1:
                # What was at hand is too little: a window of its own, then greater ones.
                head_size = head_size * 4 if enough == head_size else head_size
                enough = head_size
            else:
                tail_size *= 16

    def _search(self, at: int) -> int:
        """Offset of the next magic at or after `at`, or the file's size."""
        while self.size - at >= len(MAGIC):
            start, part = self._searched
            if not start <= at <= start + len(part) - len(MAGIC):
                start, part = at, memoryview(self.read(at, min(_SEARCH, self.size - at))).cast("B")
                self._searched = start, part  # the next damaged stretch may begin in it
            found = _scan.find_magic(part, at - start)
            if found < len(part):
                return start + found
            at = start + len(part) - (len(MAGIC) - 1)
            if start + len(part) == self.size:
                break
        return self.size

    def close(self) -> None:
        """Close the file; buffers of a memory map stay valid as long as they are held."""
        if self._input is not None:
            self._input.close()
            self._input = None

    def __enter__(self) -> LogFileReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Window:
    """The two most recently used pieces of a file, read in ranges."""

    def __init__(self, reader: LogFileReader) -> None:
        self._reader = reader
        self._pieces: list[tuple[int, memoryview]] = []

    def at(self, offset: int, length: int, enough: int | None = None) -> memoryview:
        """`length` bytes from `offset` on, fewer at the file's end, or if `enough` are cached."""
        length = min(length, self._reader.size - offset)
        least = length if enough is None else min(enough, length)
        for piece in reversed(self._pieces):
            start, data = piece
            if start <= offset and offset + least <= start + len(data):
                if piece is not self._pieces[-1]:
                    self._pieces.reverse()
                return data[offset - start : offset - start + length]
        data = memoryview(self._reader.read(offset, length)).cast("B")
        self._pieces = [*self._pieces[-1:], (offset, data)]
        return data


def _joined(blocks: Iterable[LogBlock]) -> Iterator[LogBlock]:
    """The blocks, with consecutive unreadable beginnings merged as in `index`."""
    run: LogBlock | None = None
    end = 0
    for block in blocks:
        short = (
            block.damage in (Damage.TORN, Damage.DISAGREES) and block.size < LEAST_BLOCK and not block.header
        )
        if run is not None and not short:
            yield run if run.end == end else _lost(run.file, run.offset, end, run.damage)
            run = None
        if not short:
            yield block
            continue
        run = run or block
        end = block.end
    if run is not None:
        yield run if run.end == end else _lost(run.file, run.offset, end, run.damage)


def _lost(file: str, start: int, stop: int, damage: Damage) -> LogBlock:
    return LogBlock(file, start, stop - start, BlockType.CORRUPT, {}, start, stop - start, {}, damage)
