"""Where the blocks of a log file are: one row of numbers each, and values made of them on demand."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from hudi_format.log import _scan
from hudi_format.log.blocks import BlockType, Damage, LogBlock

Rows = npt.NDArray[np.int64]
Buffer = bytes | bytearray | memoryview

_ROWS_AT_ONCE = 4096
_LEAST_BLOCK = 46  # bytes; less of a file than this cannot hold a block


class Column(IntEnum):
    """Columns of a row; offsets are those of the file, -1 stands for unknown.

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

    Runs without the GIL, and in time and memory linear in the bytes.
    """
    view = memoryview(data).cast("B")
    parts: list[Rows] = []
    at = 0
    while at < len(view):
        room = min(_ROWS_AT_ONCE << min(len(parts), 8), (len(view) - at) // 6 + 1)
        out = np.empty((room, len(Column)), np.int64)
        rows, at = _scan.scan(view, at, out)
        parts.append(out[:rows])
    return np.concatenate(parts) if parts else np.empty((0, len(Column)), np.int64)


def block_of(row: Rows, file: str, read: Callable[[int, int], Buffer], texts: dict[bytes, str]) -> LogBlock:
    """The value of one row.

    Args:
        read: bytes of the file from an offset on, so many.
        texts: header values seen before, so that a schema that every block repeats is one object.
    """
    r = dict(zip(Column, row.tolist(), strict=True))
    offset, end, damage = r[Column.OFFSET], r[Column.END], Damage(r[Column.DAMAGE])
    header: dict[int, str] = {}
    footer: dict[int, str] = {}
    if damage is Damage.NONE:
        head, content = r[Column.HEADER], r[Column.CONTENT]
        foot = r[Column.FOOTER]
        found = _map(bytes(read(head, content - 8 - head)), texts)
        at_end = _map(bytes(read(foot, end - 8 - foot)), texts)
        if found is None or at_end is None:
            damage = Damage.BAD_HEADER if found is None else Damage.BAD_FOOTER
        else:
            header, footer = found, at_end
    elif r[Column.INSTANT] >= 0:
        try:
            header[0] = str(bytes(read(r[Column.INSTANT], r[Column.INSTANT_LENGTH])), "utf-8")
        except UnicodeDecodeError:
            header = {}
    if damage is not Damage.NONE:
        return LogBlock(
            file, offset, end - offset, BlockType.CORRUPT, header, offset, end - offset, {}, damage
        )
    kind = BlockType(r[Column.TYPE])
    length = r[Column.LENGTH]
    return LogBlock(file, offset, end - offset, kind, header, r[Column.CONTENT], length, footer)


def _map(data: bytes, texts: dict[bytes, str]) -> dict[int, str] | None:
    """Entries of a map whose lengths the scan has checked; None where a text is no UTF-8 or a key comes twice."""
    out: dict[int, str] = {}
    at = 4
    for _ in range(int.from_bytes(data[:4], "big")):
        key = int.from_bytes(data[at : at + 4], "big", signed=True)
        length = int.from_bytes(data[at + 4 : at + 8], "big")
        value = data[at + 8 : at + 8 + length]
        at += 8 + length
        text = texts.get(value)
        if text is None:
            try:
                text = texts[value] = str(value, "utf-8")
            except UnicodeDecodeError:
                return None
        if key in out:
            return None
        out[key] = text
    return out
