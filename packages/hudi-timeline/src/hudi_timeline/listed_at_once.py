"""A folder of a local disk as it was at one moment, while another process makes and removes files in it.

The system gives a long folder in pieces, and sizes one by one: a listing that runs beside an archival may have an
instant and lack a later one that was removed at the same time, or lack the completed file of an instant whose
inflight file it has.  Both would pass for writes that were never completed.
"""

from __future__ import annotations

import time

from hudi_format.errors import StorageError
from hudi_format.storage import FileInfo, LocalStorage

# The system notes the time of a change by its tick, 10 ms at most: a folder that is older was not changed in the tick
# in which it is looked at, and any change from then on shows.
TICK_MS = 20
# Of file systems that note whole seconds, of which FAT notes every second one.
COARSE_TICK_MS = 2020
# An archival removes some thousand files a second.
MOST_S, PAUSE_S = 30.0, 0.002


def list_at_once(storage: LocalStorage, folder: str, *, unless: tuple[str, ...] = ()) -> list[FileInfo]:
    """As `LocalStorage.list`, of one moment.

    Raises:
        StorageError: files come and go all the time.
    """
    until = time.monotonic() + MOST_S
    names: set[str] | None = None
    while True:
        before = storage.info(folder)
        if before is None:
            return []
        tick = TICK_MS if before.mtime_ms % 1000 else COARSE_TICK_MS
        is_old = time.time() * 1000 - before.mtime_ms > tick
        entries = storage.list(folder, unless=unless)
        after = storage.info(folder)
        if is_old and after is not None and after.mtime_ms == before.mtime_ms:
            return entries
        found = {e.name for e in entries}
        if found == names:  # the same twice: so it was in between
            return entries
        if time.monotonic() > until:
            raise StorageError(
                f"the folder changes faster than it can be listed, for {MOST_S:.0f} s",
                table=storage.uri,
                file=folder,
                remedy="read the table again when its writer is done with archiving.",
            )
        if names is not None:
            time.sleep(PAUSE_S)
        names = found


__all__ = ["list_at_once"]
