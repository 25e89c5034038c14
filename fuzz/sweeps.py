"""Cuts and one-byte changes of HFiles and of base files' footers, and what became of each.

Log files: `log_sweep` beside the tests of hudi-format, which CI runs over a sample.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from hfile_reference import blocks

from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.parquet.footer import read_footer
from hudi_format.parquet.reader import iter_batches
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage

Outcomes = tuple[Counter[str], Counter[str]]
EDGE = 16


def chosen_cuts(data: bytes, boundaries: set[int], random_cuts: int, draw: random.Random) -> list[int]:
    """Every length of a file up to 4 KB; else 16 bytes around each boundary, and some at random."""
    if len(data) <= 4096:
        return list(range(len(data)))
    around = {c for at in boundaries for c in range(at - EDGE, at + EDGE + 1)}
    around |= {draw.randrange(len(data)) for _ in range(random_cuts)}
    return sorted(c for c in around if 0 <= c < len(data))


def changed(data: bytes, first: int, draw: random.Random, less: tuple[int, int] = (0, 0)) -> bytes:
    """One byte from `first` on is another; seldom one of those between `less`."""
    at = draw.randrange(first, len(data))
    while less[0] <= at < less[1] and draw.random() < 0.9:
        at = draw.randrange(first, len(data))
    return data[:at] + bytes([data[at] ^ draw.randrange(1, 256)]) + data[at + 1 :]


# --- HFiles -----------------------------------------------------------------------------------------------


def hfile_content(data: bytes) -> tuple[pa.Table, dict[str, bytes | None]]:
    """Everything that a reader takes from the file: entries, and blocks such as the bloom filter."""
    reader = HFileReader.from_buffer(data, path="f")
    return reader.scan(), {name: reader.meta_block(name) for name in reader.meta_blocks}


def hfile_outcome(data: bytes, intact: tuple[pa.Table, dict[str, bytes | None]]) -> str:
    """`error`, `equal`, `one record` (another key or value, or another meta block), `other` (must not be)."""
    try:
        rows, meta = hfile_content(data)
    except (CorruptFileError, UnsupportedError) as e:
        return "error" if e.file == "f" else "other"
    if rows.equals(intact[0]):
        return "equal" if meta == intact[1] else "one record"
    if rows.num_rows == intact[0].num_rows and meta == intact[1]:
        pairs = zip(rows.to_pylist(), intact[0].to_pylist(), strict=True)
        return "one record" if sum(a != b for a, b in pairs) == 1 else "other"
    return "other"


def sweep_hfile(data: bytes, *, random_cuts: int, changes: int, seed: int) -> Outcomes:
    intact = hfile_content(data)
    draw = random.Random(seed)
    edges = {len(data) - 4096, len(data)} | {
        e for b in blocks(data) for e in (b.offset, b.offset + 33, b.offset + b.size)
    }
    cut = Counter(hfile_outcome(data[:c], intact) for c in chosen_cuts(data, edges, random_cuts, draw))
    after = Counter(hfile_outcome(changed(data, 0, draw), intact) for _ in range(changes))
    return cut, after


# --- base files -------------------------------------------------------------------------------------------


@cache
def _scratch() -> tuple[Storage, Path]:
    shared = Path("/dev/shm")
    if "TMPDIR" in os.environ:  # whoever names a place for files removes them
        shared = Path(os.environ["TMPDIR"])
    folder = Path(tempfile.mkdtemp(prefix="hudi-sweep-", dir=shared if os.access(shared, os.W_OK) else None))
    return open_storage(str(folder)), folder / "f.parquet"


def parquet_content(data: bytes) -> tuple[pa.Table, dict[str, str], Any]:
    """Rows, footer entries and columns of a base file."""
    storage, path = _scratch()
    path.write_bytes(data)
    footer = read_footer(storage, path.name)
    batches = list(iter_batches(storage, path.name))
    rows = pa.Table.from_batches(batches) if batches else footer.schema.empty_table()
    return rows, footer.entries, footer.schema


def parquet_outcome(data: bytes, intact: tuple[pa.Table, dict[str, str], Any]) -> str:
    """`error`, `equal`, `entry` (a text of the footer is another), `column` (one column has another name, type
    or values: no checksum covers where the footer says that it is), `other` (must not be)."""
    try:
        rows, entries, schema = parquet_content(data)
    except (CorruptFileError, UnsupportedError) as e:
        return "error" if e.file == "f.parquet" else "other"
    except HudiError:
        return "other"
    if rows.num_rows != intact[0].num_rows:
        return "other"
    if rows.equals(intact[0]) and schema.equals(intact[2]):
        return "equal" if entries == intact[1] else "entry"
    if rows.num_columns != intact[0].num_columns:
        return "other"
    differ = sum(
        a.name != b.name or a.nullable != b.nullable or not x.equals(y)
        for a, b, x, y in zip(rows.schema, intact[0].schema, rows.columns, intact[0].columns, strict=True)
    )
    return "column" if differ == 1 else "other"


def sweep_footer(data: bytes, *, random_cuts: int, changes: int, seed: int) -> Outcomes:
    """Cuts anywhere in the file, changes in its footer and in what points there."""
    intact = parquet_content(data)
    draw = random.Random(seed)
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    edges = {0, 4, begin, len(data) - 8, len(data) - 4, len(data)}
    cut = Counter(parquet_outcome(data[:c], intact) for c in chosen_cuts(data, edges, random_cuts, draw))
    bloom = max((v for v in intact[1].values()), key=len, default="").encode()
    at = data.find(bloom, begin)
    less = (at, at + len(bloom))
    after = Counter(parquet_outcome(changed(data, begin, draw, less), intact) for _ in range(changes))
    return cut, after
