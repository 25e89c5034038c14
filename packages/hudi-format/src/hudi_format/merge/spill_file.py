"""A temporary file of Arrow batches, in any number of streams.

The file has no name from its first moment on (where the system can do that; on Windows it goes when it is
closed), so that nothing is left of it however the process ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO

import pyarrow as pa

from hudi_format.arrow_size import size_of
from hudi_format.errors import SpillError
from hudi_format.merge.limits import SPILL_PATH, MemoryLimit


def spill_failed(error: OSError, folder: str, written: int) -> SpillError:
    """What to raise where records could not be kept; `written` bytes are there already."""
    return SpillError(
        f"records that do not fit into the memory limit could not be kept in {folder or tempfile.gettempdir()}: "
        f"{error.strerror or error}",
        remedy=f"free space there, name another folder with {SPILL_PATH}, or raise the memory limit.",
        folder=folder or tempfile.gettempdir(),
        written=written,
    )


class SpillFile:
    """Batches of one schema, appended to numbered streams and read back stream by stream.

    Raises:
        SpillError: the folder is not there, is full or cannot be written.
    """

    def __init__(self, schema: pa.Schema, limit: MemoryLimit) -> None:
        self.schema = schema
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
        if not rows.num_rows:
            return
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
        """The streams that have rows, ascending."""
        return sorted(self._parts)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._end

    def has(self, stream: int) -> bool:
        """Whether a stream has rows."""
        return stream in self._parts

    def size_of(self, stream: int) -> int:
        """Bytes in memory of a stream's rows."""
        return self._bytes.get(stream, 0)

    def read(self, stream: int) -> Iterator[pa.Table]:
        """A stream's rows, in the pieces in which they were written."""
        for start, size in self._parts.get(stream, ()):
            data = bytearray(size)
            view = memoryview(data)
            try:
                self._file.seek(start)
                while len(view):
                    got = self._file.readinto(view)  # type: ignore[attr-defined]
                    if not got:
                        raise OSError(f"{len(view)} of {size} bytes are not there")
                    view = view[got:]
            except OSError as e:
                raise self._failed(e) from e
            with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
                yield reader.read_all()

    def _failed(self, error: OSError) -> SpillError:
        return spill_failed(error, self._folder, self._end)

    def close(self) -> None:
        """Give the disk space back."""
        self._file.close()
        self._parts.clear()

    def __enter__(self) -> SpillFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
