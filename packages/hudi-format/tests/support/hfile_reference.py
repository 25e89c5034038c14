"""A plain reader of HFiles and of HFile log blocks, block after block and without the index: the tests' oracle."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

GOLDEN = Path(__file__).parents[4] / "tests" / "golden"
FILES = sorted((GOLDEN / "hfile").glob("*.hfile"))
TABLES = sorted(p for v in ("v6", "v8", "v9") for p in (GOLDEN / v).glob("*.zip"))


class ReferenceBlock(NamedTuple):
    """`offset` and `size` of the whole block; `content` decompressed."""

    magic: bytes
    offset: int
    size: int
    content: bytes


def blocks(data: bytes) -> Iterator[ReferenceBlock]:
    """All blocks of an HFile, in its order."""
    gz = b"\x60\x01" in data[-4096:][:200]  # field 12 of the trailer
    at = 0
    while at < len(data) - 4096:
        on_disk, size = struct.unpack_from(">ii", data, at + 8)
        (stop,) = struct.unpack_from(">i", data, at + 29)
        content = data[at + 33 : at + stop]
        content = zlib.decompress(content, 31) if gz else content
        assert len(content) == size
        yield ReferenceBlock(data[at : at + 8], at, 33 + on_disk, content)
        at += 33 + on_disk


def entries(data: bytes) -> list[tuple[bytes, bytes]]:
    """All keys and values of an HFile, in its order."""
    out = []
    for block in blocks(data):
        at = 0
        while block.magic == b"DATABLK*" and at < len(block.content):
            key, value, row = struct.unpack_from(">iih", block.content, at)
            start = at + 8 + key
            out.append((block.content[at + 10 : at + 10 + row], block.content[start : start + value]))
            at = start + value + 1
    return out


def log_hfiles(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(offset, content) of the HFile blocks of a log file."""
    at = 0
    while at < len(data):
        assert data[at : at + 6] == b"#HUDI#"
        size, _, kind = struct.unpack_from(">qii", data, at + 6)
        end = at + 14 + size
        place = at + 22
        (headers,) = struct.unpack_from(">i", data, place)
        place += 4
        for _ in range(headers):
            (length,) = struct.unpack_from(">i", data, place + 4)
            place += 8 + length
        (length,) = struct.unpack_from(">q", data, place)
        if kind == 4:
            yield place + 8, data[place + 8 : place + 8 + length]
        at = end


def metadata_hfiles(table: Path) -> Iterator[tuple[str, int, bytes]]:
    """(file, offset, bytes) of each HFile in a zipped table: base files, log blocks, bootstrap indexes."""
    with zipfile.ZipFile(table) as archive:
        for name in archive.namelist():
            leaf = name.rpartition("/")[2]
            if leaf.endswith(".hfile"):
                yield name, 0, archive.read(name)
            elif (
                "/.hoodie/metadata/" in name
                and ".log." in leaf
                and leaf.startswith(".")
                and leaf[-4:] != ".crc"
            ):
                for offset, content in log_hfiles(archive.read(name)):
                    yield name, offset, content
