"""Tables beyond the memory limit, memory-mapped from disk.

The file has no name, holds Arrow batches as they are in memory, and is mapped: a column that is not looked at takes
no memory, and what was looked at the system may take back.  Whatever would make such rows anew makes them piece by
piece: `gather` for `Table.take`, `windows` for a whole table handed on.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from hudi_format.arrow.sizes import size_of
from hudi_format.merge.memory_limit import MemoryLimit
from hudi_format.merge.spilled_records import spill_failed


def is_large(rows: pa.Table, limit: MemoryLimit | None) -> bool:
    """Whether rows exceed the memory limit."""
    return limit is not None and size_of(rows) > limit.held


def keep(pieces: Iterable[pa.Table], schema: pa.Schema, limit: MemoryLimit) -> pa.Table:
    """The rows of all pieces as one table, on disk.

    Raises:
        SpillError: the folder is not there, is full or cannot be written.
    """
    written = 0
    try:
        with tempfile.TemporaryFile(dir=limit.folder or None) as file:
            with pa.ipc.new_stream(file, schema) as writer:
                for piece in pieces:
                    writer.write_table(piece.cast(schema) if piece.schema != schema else piece)
                    written += piece.num_rows
            file.flush()
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as e:
        raise spill_failed(e, limit.folder, 0) from e
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()


def keep_if_large(pieces: Iterable[pa.Table], schema: pa.Schema, limit: MemoryLimit) -> pa.Table:
    """The rows of all pieces as one table, on disk if they exceed the memory limit.

    Raises:
        SpillError: see `keep`.
    """
    held: list[pa.Table] = []
    size = 0
    rest = iter(pieces)
    for piece in rest:
        held.append(piece)
        size += size_of(piece)
        if size > limit.held:
            return keep(_all(held, rest), schema, limit)
    return pa.concat_tables(held) if held else schema.empty_table()


def _all(held: list[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    while held:
        yield held.pop(0)
    yield from rest


def windows(rows: pa.Table, limit: MemoryLimit) -> Iterator[tuple[int, pa.Table]]:
    """Slices for processing, each with the number of its first row."""
    step = window_rows(rows, limit)
    for start in range(0, rows.num_rows, step):
        yield start, rows.slice(start, step)


def window_rows(rows: pa.Table, limit: MemoryLimit) -> int:
    """Number of rows per processing step."""
    each: int = max(1, size_of(rows) // max(1, rows.num_rows))
    step: int = limit.step
    return max(1, step // each)


def pick(rows: pa.Table, at: np.ndarray) -> pa.Table:
    """The rows at some places, reading only the chunks needed."""
    batches = rows.to_batches()
    if len(batches) < 2:
        return rows.take(pa.array(at))
    ends = np.cumsum([b.num_rows for b in batches])
    of = np.searchsorted(ends, at, side="right")
    parts, places = [], []
    for number in np.unique(of):
        mine = np.flatnonzero(of == number)
        batch = batches[number]
        parts.append(batch.take(pa.array(at[mine] - (ends[number] - batch.num_rows))))
        places.append(mine)
    out = pa.Table.from_batches(parts, rows.schema)
    if not places or bool((np.diff(at) >= 0).all()):
        return out
    back = np.empty(len(at), dtype=np.int64)
    back[np.concatenate(places)] = np.arange(len(at))
    return out.take(pa.array(back))


def gather(rows: pa.Table, at: np.ndarray, limit: MemoryLimit | None) -> pa.Table:
    """The rows at some places (`Table.take`), on disk where `rows` are large.

    Raises:
        SpillError: see `keep`.
    """
    if limit is None or not is_large(rows, limit):
        return rows.take(pa.array(at))
    return keep(gathered(rows, at, limit), rows.schema, limit)


def gathered(rows: pa.Table, at: np.ndarray, limit: MemoryLimit) -> Iterator[pa.Table]:
    """The rows at some places, in order, in pieces."""
    step = window_rows(rows, limit)
    for start in range(0, len(at), step):
        yield pick(rows, at[start : start + step])


__all__ = ["gather", "gathered", "is_large", "keep", "keep_if_large", "pick", "window_rows", "windows"]
