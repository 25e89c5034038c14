"""Arrow rows beyond the memory limit, on disk.

All that is spilled goes through `SpillFile`: records and rows parted into streams, and whole tables (`keep`), which are
mapped.  Whatever would make such rows anew makes them piece by piece: `gather` for `Table.take`, `windows` for a whole
table handed on.

Source: options `hoodie.memory.merge.*`, `hoodie.memory.spillable.map.path` and `hoodie.common.diskmap.*` of Apache
Hudi 0.15, whose spillable map this stands for.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import IO

import numpy as np
import pyarrow as pa

from hudi_format.arrow.sizes import size_of
from hudi_format.errors import SpillError

SPILL_PATH = "hoodie.memory.spillable.map.path"
DEFAULT_BYTES = 1 << 30  # Apache Hudi's
# Of a stream of batches, whose memory is to stay small whatever the logs hold: with it a merge takes less than 300 MB.
STREAM_BYTES = 128 << 20
# Records are held twice while one per key is chosen, and once more where they are laid out anew.
_HELD = 0.3


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The memory limit of one merge: a file slice, or a file being rewritten.

    Attributes:
        bytes: what the records that meet the stored rows may take, decoded; beyond it they go to disk.  The
            stored rows, which stream past, one log block and the result's batches come on top.
        folder: of the temporary files; "" for the system's.
        compress: LZ4 in the temporary files.
        given: whether the user chose the bytes.
    """

    bytes: int = DEFAULT_BYTES
    folder: str = ""
    compress: bool = True
    given: bool = False

    def __post_init__(self) -> None:
        if self.bytes < 1:
            raise ValueError(f"invalid memory limit of {self.bytes} bytes")

    @classmethod
    def of(cls, given: int | None, folder: str, compress: bool) -> MemoryLimit:
        """The limit of options; None where they give no bytes."""
        return cls(given or DEFAULT_BYTES, folder, compress, given is not None)

    @property
    def held(self) -> int:
        """Bytes of records held in memory before spilling."""
        return max(1, int(self.bytes * _HELD))

    @property
    def step(self) -> int:
        """Bytes per processing step."""
        return max(1 << 16, min(self.bytes // 16, 32 << 20))

    def shared(self, by: int) -> MemoryLimit:
        """The limit divided among concurrent merges."""
        return replace(self, bytes=max(1, self.bytes // by))

    def for_stream(self) -> MemoryLimit:
        """The limit of a merge with streamed output."""
        return self if self.given else replace(self, bytes=min(self.bytes, STREAM_BYTES))


class SpillFile:
    """Temporary file of Arrow batches of one schema, in numbered streams.

    The file has no name from its first moment on (where the system can do that; on Windows it goes when it is
    closed), so that nothing is left of it however the process ends.

    Raises:
        SpillError: the folder is not there, is full or cannot be written.
    """

    def __init__(self, schema: pa.Schema, limit: MemoryLimit) -> None:
        self.schema = schema
        self._limit = limit
        self._folder = limit.folder or tempfile.gettempdir()
        self._options = pa.ipc.IpcWriteOptions(compression="lz4" if limit.compress else None)
        self._parts: dict[int, list[tuple[int, int]]] = {}
        self._bytes: dict[int, int] = {}
        self._end = 0
        self._file: IO[bytes]
        try:
            self._file = tempfile.TemporaryFile(dir=limit.folder or None, buffering=0)  # noqa: SIM115
        except OSError as e:
            raise self._failed(e) from e

    def write(self, stream: int, rows: pa.Table) -> None:
        """Append rows to a stream."""
        for _, piece in windows(rows, self._limit):
            self._append(stream, piece)

    def _append(self, stream: int, rows: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.schema, options=self._options) as writer:
            writer.write_table(rows)
        data = memoryview(sink.getvalue())
        size = len(data)
        try:
            self._file.seek(self._end)
            while len(data):
                data = data[self._file.write(data) :]
        except OSError as e:
            raise self._failed(e) from e
        self._parts.setdefault(stream, []).append((self._end, size))
        self._bytes[stream] = self._bytes.get(stream, 0) + size_of(rows)
        self._end += size

    @property
    def streams(self) -> list[int]:
        """Numbers of the streams with rows, ascending."""
        return sorted(self._parts)

    @property
    def size(self) -> int:
        """Size on disk in bytes."""
        return self._end

    def has(self, stream: int) -> bool:
        """Whether a stream has rows."""
        return stream in self._parts

    def size_of(self, stream: int) -> int:
        """Memory size of a stream's rows in bytes."""
        return self._bytes.get(stream, 0)

    def read(self, stream: int) -> Iterator[pa.Table]:
        """Rows of a stream in pieces, in the order in which they were written."""
        for start, size in self._parts.get(stream, ()):
            data = bytearray(size)
            view = memoryview(data)
            try:
                self._file.seek(start)
                while len(view):
                    got = self._file.readinto(view)  # type: ignore[attr-defined]
                    if not got:
                        raise OSError(f"{len(view)} of {size} bytes are missing")
                    view = view[got:]
            except OSError as e:
                raise self._failed(e) from e
            with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
                yield reader.read_all()

    def mapped(self, stream: int) -> pa.Table:
        """All rows of a stream as one table, which outlives the file.

        Where nothing is compressed the file is mapped: a column that is not looked at takes no memory, and what was
        looked at the system may take back.
        """
        if not self.has(stream):
            return self.schema.empty_table()
        try:
            data = pa.py_buffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as e:
            raise self._failed(e) from e
        tables = []
        for start, size in self._parts[stream]:
            with pa.ipc.open_stream(data.slice(start, size)) as reader:
                tables.append(reader.read_all())
        return pa.concat_tables(tables)

    def _failed(self, error: OSError) -> SpillError:
        return SpillError(
            "records beyond the memory limit could not be spilled to "
            f"{self._folder}: {error.strerror or error}",
            remedy=f"free space there, name another folder with {SPILL_PATH}, or raise the memory limit.",
            folder=self._folder,
            written=self._end,
        )

    def close(self) -> None:
        """Release the disk space."""
        self._file.close()
        self._parts.clear()

    def __enter__(self) -> SpillFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_large(rows: pa.Table, limit: MemoryLimit | None) -> bool:
    """Whether rows exceed the memory limit."""
    return limit is not None and size_of(rows) > limit.held


def keep(pieces: Iterable[pa.Table], schema: pa.Schema, limit: MemoryLimit) -> pa.Table:
    """The rows of all pieces as one table, on disk.

    Raises:
        SpillError: the folder is not there, is full or cannot be written.
    """
    typed = (p.cast(schema) if p.schema != schema else p for p in pieces)
    with SpillFile(schema, replace(limit, compress=False)) as file:
        for rows in joined(typed, limit.step):
            file.write(0, rows)
        return file.mapped(0)


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


def in_pieces(rows: pa.Table, limit: MemoryLimit | None) -> Iterator[pa.Table]:
    """Rows for processing, in slices where they exceed the memory limit."""
    if limit is None or not is_large(rows, limit):
        yield rows
    else:
        yield from (piece for _, piece in windows(rows, limit))


def window_rows(rows: pa.Table, limit: MemoryLimit) -> int:
    """Number of rows per processing step."""
    return rows_in(rows, limit.step)


def rows_in(rows: pa.Table, size: int) -> int:
    """Number of these rows in `size` bytes; at least one."""
    return max(1, int(size // max(1, size_of(rows) // max(1, rows.num_rows))))


def joined(pieces: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Pieces put together to about `size` bytes, in their chunks."""
    some: list[pa.Table] = []
    held = 0
    for piece in pieces:
        some.append(piece)
        held += size_of(piece)
        if held >= size:
            yield pa.concat_tables(some)
            some, held = [], 0
    if some:
        yield pa.concat_tables(some)


def split(rows: pa.Table, numbers: np.ndarray) -> Iterator[tuple[int, pa.Table]]:
    """Rows grouped by number, in order of arrival, without those of -1."""
    if len(numbers) and bool((numbers == numbers[0]).all()):
        if numbers[0] >= 0:
            yield int(numbers[0]), rows
        return
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    rows = rows.take(pa.array(order))
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for start, end in pairwise([0, *starts, len(ordered)]):
        if end > start and ordered[start] >= 0:
            yield int(ordered[start]), rows.slice(start, end - start)


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
