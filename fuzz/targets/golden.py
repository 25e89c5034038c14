"""Seeds: files of the golden tables, and parts of them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from functools import cache

from golden_tables import ROOT

from hudi_format.log.block import BlockType, LogBlock
from hudi_format.log.reader import LogFileReader

# Whole tables by version first, then tables about one thing each: whatever holds tables.
FOLDERS = sorted(
    (p.name for p in ROOT.iterdir() if any(p.glob("*.zip"))), key=lambda name: (not name[1:].isdigit(), name)
)


@cache
def files() -> tuple[tuple[str, bytes], ...]:
    """(name, bytes) of every file in the golden tables."""
    found = []
    for folder in FOLDERS:
        for archive in sorted((ROOT / folder).glob("*.zip")):
            with zipfile.ZipFile(archive) as z:
                names = [n for n in z.namelist() if not n.endswith("/")]
                found += [(f"{folder}/{n}", z.read(n)) for n in sorted(names)]
    return tuple(found)


def logs(most: int = 6000) -> Iterator[tuple[str, bytes]]:
    """Small log files: the first of each combination of table and types of blocks."""
    seen = set()
    for name, data in files():
        last = name.rpartition("/")[2]
        if not (last.startswith(".") and ".log." in last) or not 0 < len(data) < most:
            continue
        kind = (name.split("/")[1], tuple(b.type for b in LogFileReader(data).blocks))
        if kind not in seen:
            seen.add(kind)
            yield name, data


def blocks(*types: BlockType, most: int = 6000) -> Iterator[tuple[LogBlock, bytes]]:
    """Blocks of these types with their contents."""
    for name, data in logs(20_000):
        reader = LogFileReader(data, file=name)
        for b in reader.blocks:
            if b.type in types and b.content_length < most:
                yield b, reader.content(b).to_pybytes()


def hfiles(most: int = 60_000) -> Iterator[bytes]:
    """HFiles, cut down: of the golden files those that are small, contents of log blocks, and files of ours."""
    import pyarrow as pa

    from hudi_format.hfile.writer import HFileWriter

    for path in sorted((ROOT / "hfile").glob("*.hfile")):
        data = path.read_bytes()
        if len(data) < most:
            yield data
    yield from (c for _, c in list(blocks(BlockType.HFILE_DATA, most=most))[:6])
    for codec, index, entries in (("none", None, 3), ("gz", None, 5), ("none", 60, 12), ("none", None, 0)):
        out = io.BytesIO()
        writer = HFileWriter(out, schema='"string"', codec=codec, block_size=64, index_block_size=index)
        keys = [f"k{i:02d}" for i in range(entries)]
        if entries:
            writer.append(pa.array(keys), pa.array([k.encode() for k in keys]))
        writer.add_meta_block("m", b"content")
        writer.finish()
        yield out.getvalue()


def named(*suffixes: str, most: int = 40_000) -> Iterator[tuple[str, bytes]]:
    """Files whose names end so, the first of each table."""
    seen = set()
    for name, data in files():
        for suffix in suffixes:
            key = (name.split("/")[1], suffix)
            if name.endswith(suffix) and key not in seen and 0 < len(data) < most:
                seen.add(key)
                yield name, data
