"""Index of a log file's blocks: a row of numbers each, `LogBlock` values on demand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from hudi_format.log import _scan, _values
from hudi_format.log.block import BlockType, Damage, LogBlock

Rows = npt.NDArray[np.int64]
Buffer = bytes | bytearray | memoryview

_ROWS_AT_ONCE = 4096
_MOST_DOUBLINGS = 4  # of it
LEAST_BLOCK = 30  # bytes of a torn block up to where its header may name an instant
_EMPTY_FOOTER = 12  # bytes of a footer without entries, and of the reverse pointer


class IndexColumn(IntEnum):
    """Columns of an index row; offsets count from the file's start, -1 is unknown.

    HEADER and FOOTER are the places of the maps, HEADERS and FOOTERS their declared numbers of entries.
    DECLARED is the size that the block gives itself, or the type number of a block of unknown type.
    """

    OFFSET = 0
    END = 1
    TYPE = 2
    VERSION = 3
    HEADER = 4
    HEADERS = 5
    CONTENT = 6
    LENGTH = 7
    FOOTER = 8
    FOOTERS = 9
    DAMAGE = 10
    INSTANT = 11
    INSTANT_LENGTH = 12
    TARGET = 13
    TARGET_LENGTH = 14
    DECLARED = 15


def index(data: Buffer) -> Rows:
    """All blocks and damaged stretches of a whole file in its order, shape (blocks, 16).

    Beginnings of blocks that follow one another and say nothing are one stretch: hostile bytes may be nothing but
    magics, and a row for each would take 25 times their size.  Runs without the GIL but for a step each 65,536 blocks,
    in time linear in the bytes.
    """
    view = memoryview(data).cast("B")
    parts: list[Rows] = []
    at, before = 0, False
    while at < len(view):
        room = min(_ROWS_AT_ONCE << min(len(parts), _MOST_DOUBLINGS), (len(view) - at) // 6 + 1)
        out = np.empty((room, len(IndexColumn)), np.int64)
        count, at = _scan.scan(view, at, out)
        rows = out[:count]
        quiet = _says_nothing(rows)
        if not quiet.any():  # nearly every file
            before = False
            if len(rows):
                parts.append(rows)
            continue
        follows = quiet & np.append(before, quiet[:-1])
        before = bool(quiet[-1])
        if follows.any():
            first = np.flatnonzero(~follows)
            ends = rows[
                np.append(first, count) - 1, IndexColumn.END
            ]  # of what is before each of them, and of all
            if follows[0]:
                parts[-1][-1, IndexColumn.END] = ends[0]
            rows = rows[first]
            rows[:, IndexColumn.END] = ends[1:]
        if len(rows):
            parts.append(rows)
    return np.concatenate(parts) if parts else np.empty((0, len(IndexColumn)), np.int64)


def _says_nothing(rows: Rows) -> npt.NDArray[np.bool_]:
    """Mask of block beginnings that are too short to interpret."""
    damage = rows[:, IndexColumn.DAMAGE]
    lost: npt.NDArray[np.bool_] = (damage == Damage.TORN) | (damage == Damage.DISAGREES)
    lost &= rows[:, IndexColumn.END] - rows[:, IndexColumn.OFFSET] < LEAST_BLOCK
    return lost


_TYPES = tuple(BlockType)
_SLOTS = tuple(LogBlock.__dict__[f.name] for f in fields(LogBlock))
_MOST_MAPS = 4096
_LONG_TEXT = 64  # bytes; schemas and positions, not instants
_NO_FOOTER: dict[int, str] = {}


class Headers:
    """Cache of a file's header maps and schemas, which blocks often repeat."""

    def __init__(self) -> None:
        self._maps: dict[bytes, dict[int, str] | None] = {}
        self._texts: dict[bytes, str] = {}

    def parse(self, data: bytes) -> dict[int, str] | None:
        """Entries of a map with checked lengths; None for invalid UTF-8 or a repeated key."""
        if data not in self._maps:
            if len(self._maps) >= _MOST_MAPS:
                self._maps.clear()
            self._maps[data] = self._entries(data)
        return self._maps[data]

    def _entries(self, data: bytes) -> dict[int, str] | None:
        out: dict[int, str] = {}
        at = 4
        for _ in range(int.from_bytes(data[:4], "big")):
            key = int.from_bytes(data[at : at + 4], "big", signed=True)
            length = int.from_bytes(data[at + 4 : at + 8], "big")
            at += 8 + length
            value = data[at - length : at]
            text = self._texts.get(value)
            if text is None:
                try:
                    text = str(value, "utf-8")
                except UnicodeDecodeError:
                    return None
                if length >= _LONG_TEXT:
                    self._texts[value] = text
            if key in out:
                return None
            out[key] = text
        return out


def blocks_of(data: Buffer, rows: Rows, file: str) -> list[LogBlock]:
    """`LogBlock` values of all rows of a whole file."""
    view = memoryview(data).cast("B")
    headers = Headers()

    def read(at: int, length: int) -> memoryview:
        return view[at : at + length]

    def other(row: int) -> LogBlock:
        return block_of(rows[row].tolist(), file, read, headers)

    return _values.block_values(
        view, rows, LogBlock, _SLOTS, file, _TYPES, Damage.NONE, _NO_FOOTER, headers.parse, other
    )


def block_of(row: list[int], file: str, read: Callable[[int, int], Buffer], headers: Headers) -> LogBlock:
    """`LogBlock` value of one row.

    Args:
        row: as a list of numbers.
        read: bytes of the file from an offset on, so many.
        headers: those seen before in the file.
    """
    offset, end = row[IndexColumn.OFFSET], row[IndexColumn.END]
    size = end - offset
    if row[IndexColumn.DAMAGE] == Damage.NONE:
        head, content, foot = row[IndexColumn.HEADER], row[IndexColumn.CONTENT], row[IndexColumn.FOOTER]
        header = headers.parse(bytes(read(head, content - 8 - head)))
        footer = (
            _NO_FOOTER if end - foot == _EMPTY_FOOTER else headers.parse(bytes(read(foot, end - 8 - foot)))
        )
        if header is not None and footer is not None:
            kind = _TYPES[row[IndexColumn.TYPE]]
            return LogBlock(file, offset, size, kind, header, content, row[IndexColumn.LENGTH], footer)
        damage = Damage.BAD_HEADER if header is None else Damage.BAD_FOOTER
    else:
        damage = Damage(row[IndexColumn.DAMAGE])
    header = {}
    if damage is not Damage.BAD_HEADER and row[IndexColumn.INSTANT] >= 0:
        with suppress(UnicodeDecodeError):
            place = row[IndexColumn.INSTANT], row[IndexColumn.INSTANT_LENGTH]
            header[0] = str(bytes(read(*place)), "utf-8")
    return LogBlock(file, offset, size, BlockType.CORRUPT, header, offset, size, {}, damage)
