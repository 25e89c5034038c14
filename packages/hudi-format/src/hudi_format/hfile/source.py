"""Byte sources of HFiles: a file in storage, or a buffer.

A log block's content is an HFile too: its places are relative to the content, those in errors to the log file.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NoReturn, Protocol

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.fork_safe import ProcessLock
from hudi_format.hfile._block import Block
from hudi_format.hfile._index import IndexNode
from hudi_format.storage.protocol import Storage


class Source(Protocol):
    """The bytes of one HFile.

    Attributes:
        path: for messages.
        size: of the HFile, in bytes.
    """

    path: str
    size: int

    def read(self, start: int, length: int) -> bytes | memoryview:
        """Exactly these bytes, which must lie within the HFile."""
        ...

    def corrupt(self, message: str, offset: int) -> NoReturn:
        """Raise CorruptFileError for a byte of the HFile."""
        ...


class BufferSource:
    """HFile bytes in memory.

    Args:
        data: all of the HFile; held, not copied.
        path: the file they come from, for messages.
        offset: where in that file they begin, for messages.
    """

    def __init__(self, data: bytes | memoryview, *, path: str = "", offset: int = 0) -> None:
        self.path = path
        view = memoryview(data)
        self._data = view if view.format == "B" and view.ndim == 1 else view.cast("B")
        self.size = self._data.nbytes
        self._offset = offset

    def read(self, start: int, length: int) -> memoryview:
        return self._data[start : start + length]

    def corrupt(self, message: str, offset: int) -> NoReturn:
        _raise(message, self.path, self._offset + offset)


class StorageSource:
    """HFile in a storage.

    Args:
        storage, path: the file.
        size: its size in bytes, where it is known; else the storage is asked.

    Raises:
        MissingFileError: there is no such file.
    """

    def __init__(self, storage: Storage, path: str, size: int | None = None) -> None:
        self._storage = storage
        self.path = path
        if size is None:
            info = storage.info(path)
            if info is None or info.is_dir:
                raise MissingFileError("the file does not exist", table=storage.uri, file=path)
            size = info.size
        self.size = size

    def read(self, start: int, length: int) -> bytes:
        try:
            data = self._storage.read_range(self.path, start, length)
        except FileNotFoundError as e:
            raise MissingFileError("the file does not exist", table=self._storage.uri, file=self.path) from e
        if len(data) != length:
            self.corrupt(f"the file is shorter than its {self.size} bytes", start + len(data))
        return data

    def corrupt(self, message: str, offset: int) -> NoReturn:
        _raise(message, self.path, offset)


def _raise(message: str, path: str, offset: int) -> NoReturn:
    raise CorruptFileError(f"HFile: {message}, at byte {offset}", file=path, offset=offset)


# Decompressed blocks that were used last.


class BlockCache:
    """LRU cache of blocks by file offset.

    Args:
        most: bytes of memory that all of them may hold; 0 keeps none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._blocks: OrderedDict[int, Block | IndexNode] = OrderedDict()
        self._lock = ProcessLock()

    def get(self, offset: int) -> Block | IndexNode | None:
        with self._lock.threads:
            found = self._blocks.get(offset)
            if found is not None:
                self._blocks.move_to_end(offset)
            return found

    def put(self, offset: int, block: Block | IndexNode) -> None:
        cost = block.cost
        if cost > self._most:
            return
        with self._lock.threads:
            old = self._blocks.pop(offset, None)
            self._held += cost - (old.cost if old is not None else 0)
            self._blocks[offset] = block
            while self._held > self._most:
                _, gone = self._blocks.popitem(last=False)
                self._held -= gone.cost
