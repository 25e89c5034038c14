"""Clock of a table's store, by which the age of its files is told.

The store stamps each file by its own clock.  A process whose clock is minutes ahead would take the fresh lock file or
heartbeat of a live writer for an old one.  So whoever is about to act on an age asks the store first what time it is,
by a file of its own that is made and deleted again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from hudi_format.errors import StorageError
from hudi_format.storage.protocol import Storage

# By how much a store's clock is ahead of ours, and by how much ours was ahead of a clock that nobody sets: another
# difference says that ours was set since.
_known: dict[str, tuple[float, float]] = {}
_MOST_KNOWN = 100
_SET_S = 1.0


def store_seconds(storage: Storage, folder: str, *, now: Callable[[], float] | None = None) -> float:
    """Seconds since the epoch by the store's clock, rather too few than too many.

    Asked once by a process for each store, and again where the clock here was set.

    Args:
        folder: where a file may be made for a moment.
        now: this process's clock, if another than `time.time`.

    Raises:
        StorageError: the file cannot be made, or is not seen.
    """
    now = now or time.time
    known = _known.get(storage.uri)
    if known is None or abs(now() - time.monotonic() - known[1]) > _SET_S:
        known = _asked(storage, folder, now), now() - time.monotonic()
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[storage.uri] = known
    return now() + known[0]


def _asked(storage: Storage, folder: str, now: Callable[[], float]) -> float:
    # As the temporary files of local stores are called, which are swept where a process dies here.
    path = f"{folder}/.clock.{uuid.uuid4().hex}.tmp".lstrip("/")
    storage.create(path, b"")
    try:
        found = storage.info(path)
    finally:
        storage.delete(path)
    if found is None:
        raise StorageError(
            "a file that was just made is not seen, so that the age of files cannot be told",
            table=storage.uri,
            file=path,
            remedy="run it again; give a lock provider that needs no file of this store.",
        )
    return found.mtime_ms / 1000 - now()
