"""Marked data files: begun only while their write is open, and removed where it is not.

A task may outlive its write: a second attempt, or a process that was taken for dead.  What it leaves then would have
no instant to belong to, or would count as one of the commit's files.
"""

from __future__ import annotations

from collections.abc import Callable

from hudi_format.errors import ConcurrentWriterError
from hudi_format.model import join_path
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency.markers import marker_path


def start_marked(
    storage: Storage, instant: str, inflight: str, partition: str, name: str, kind: str
) -> Callable[[], None]:
    """Create the marker of a data file; returns the check to make before its close.

    Args:
        instant: of the write.
        inflight: path of its inflight file, without which no file is begun.
        kind: of the marker, one of `markers.IO_TYPES`.

    Raises:
        ConcurrentWriterError: the write is over: completed without this attempt, or rolled back.
    """
    marker = marker_path(instant, partition, name, kind)

    def check(path: str) -> None:
        if storage.info(path) is None:
            raise ConcurrentWriterError(
                f"{path} is gone: the write was completed without this attempt, or rolled back by another writer",
                table=storage.uri, instant=instant, file=join_path(partition, name),
                remedy="run the write again if it failed; nothing of this attempt is visible.",
            )  # fmt: skip

    # A task that outlives its write must not even begin: what it leaves would have no instant to belong to.
    check(inflight)
    storage.touch(marker)
    # And with it the write's instant: a file whose write nobody remembers would be taken for one of an archived commit.
    flush(storage, [marker], written=False)
    return lambda: check(marker)


def confirm_marked(storage: Storage, guard: Callable[[], None], *paths: str) -> None:
    """Check that complete files still belong to the write, else remove them; then flush them.

    Between the check before a file is closed and its end the write may have been completed without it: it would
    count as one of the commit's.

    Raises:
        ConcurrentWriterError: as `start_marked`.
    """
    try:
        guard()
    except ConcurrentWriterError:
        for path in paths:
            storage.delete(path)
        raise
    # By who wrote it, and before it is reported: a commit that outlives a power failure names no file that does not.
    flush(storage, list(paths))
