"""Arrow streams over remote files: ranged reads, and uploads visible on close."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from hudi_format.storage.calls import of_arrow

# A base file's footer holds its bloom filter: 430 KB with Apache Hudi's defaults.  The end of a file is asked for at
# once, with that; less than that costs about as much time as the request itself.
TAIL_BYTES = 512 * 1024

Guard = Callable[[], AbstractContextManager[None]]


class RangeReader(io.RawIOBase):
    """Random-access file that requests only the byte ranges read, with a cache of its end.

    Whoever reads the end gets what may be needed next with it, which is kept.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        """Open a file.

        Args: fetch: the bytes from a first to before a last one.
        """
        self._fetch = fetch
        self._size = size
        self._at = 0
        self._tail = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._at + size)
        if self._at >= end:
            return b""
        with of_arrow:
            data = self._bytes(self._at, end)
        self._at += len(data)
        return data

    def _bytes(self, start: int, end: int) -> bytes:
        kept = self._size - len(self._tail)
        if end == self._size and start > self._size - TAIL_BYTES and not self._tail:
            kept = max(0, self._size - TAIL_BYTES)
            self._tail = self._fetch(kept, end)
            if len(self._tail) != end - kept:  # the file is shorter than it was said to be
                tail, self._tail = self._tail, b""
                return tail[start - kept :]
        if start >= kept:
            return self._tail[start - kept : end - kept]
        return self._fetch(start, end)


def open_ranges(fetch: Callable[[int, int], bytes], size: int) -> pa.NativeFile:
    """A file of `size` bytes for Arrow's readers."""
    return pa.PythonFile(RangeReader(fetch, size), mode="r")


class Upload(io.RawIOBase):
    """A new remote file, with storage errors translated to StorageError."""

    def __init__(self, file: Any, guard: Guard) -> None:
        self._file = file
        self._guard = guard
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        view = memoryview(data)
        with self._guard():
            self._file.write(view)
        self._written += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        """Does nothing: a store accepts whole parts only."""

    def close(self) -> None:
        if self.closed:
            return
        try:
            with self._guard():
                self._file.close()
        except BaseException:
            # Or the file would try once more when it is collected, and tell nobody.
            self._file.closed = True
            raise
        finally:
            super().close()


def open_upload(file: Any, guard: Guard) -> pa.NativeFile:
    """A stream into a new file."""
    return pa.PythonFile(Upload(file, guard), mode="w")
