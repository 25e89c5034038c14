"""Keys of base files that stay in a process, for the index INMEMORY."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa

from hudi_format.arrow.sizes import size_of
from hudi_format.fork_safe import ProcessLock
from hudi_format.model import BaseFile
from hudi_format.storage.protocol import Storage


class KeptKeys:
    """Keys of base files that stay in this process, up to a size, for the index INMEMORY.

    Shareable between threads.  A base file never changes: its keys are read once, and what another writer commits has
    files of its own.  Nothing has to be told of commits, and nothing is lost with the process but time.  Only a table
    that is made anew, by writes with a given seed and instant, has other files under the same names: size and time tell
    them apart.

    Apache Hudi's index of this name is a map that its own writes fill: of a table that another process wrote it knows
    nothing, and keys are written twice.

    Source: HoodieInMemoryHashIndex of Apache Hudi 0.15.

    Args:
        limit_bytes: of the keys; those that were asked for longest ago go first.
    """

    def __init__(self, limit_bytes: int = 512 << 20) -> None:
        self._limit = limit_bytes
        self._keys: OrderedDict[tuple[str, str, int, int], pa.ChunkedArray] = OrderedDict()
        self._bytes = 0
        self._lock = ProcessLock()

    def of(
        self, storage: Storage, file: BaseFile, read: Callable[[], pa.Array | pa.ChunkedArray]
    ) -> tuple[pa.ChunkedArray, bool]:
        """Keys of a file, and whether they were there already.

        Args:
            read: gives the keys; its errors are passed on, and nothing is kept then.
        """
        info = storage.info(file.path)
        # Of a file that is gone, reading says so.
        name = (
            (storage.uri, file.path, -1, -1)
            if info is None
            else (storage.uri, file.path, info.size, info.mtime_ms)
        )
        with self._lock.threads:
            found = self._keys.get(name)
            if found is not None:
                self._keys.move_to_end(name)
                return found, True
        keys = read()
        made = keys if isinstance(keys, pa.ChunkedArray) else pa.chunked_array([keys])
        with self._lock.threads:
            if name not in self._keys and size_of(made) <= self._limit:
                self._keys[name] = made
                self._bytes += size_of(made)
            while self._bytes > self._limit:
                _, gone = self._keys.popitem(last=False)
                self._bytes -= size_of(gone)
        return made, False


KEPT = KeptKeys()
