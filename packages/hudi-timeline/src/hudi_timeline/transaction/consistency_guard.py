"""Consistency guard: waits until a commit's files are visible, and says whether one may be.

Source: FailSafeConsistencyGuard of Apache Hudi 0.15.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hudi_format.errors import MissingFileError, StorageError
from hudi_format.model import WriteStat
from hudi_format.storage.parallel import on_threads
from hudi_format.storage.protocol import Storage
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.transaction_options import CONSISTENCY_CHECKS


def wait_for_files(
    storage: Storage,
    stats: Sequence[WriteStat],
    config: TransactionConfig,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until every file of a write is visible in its size.

    Args:
        config: how often to look, the first pause between two looks, and the longest; each is twice the one before.
        pause: waits some seconds.

    Raises:
        MissingFileError: files that did not show up.
    """
    looks = max(1, config.consistency_checks)
    files = [size for s in stats for size in ((s.path, s.file_size_in_bytes), *s.cdc_files.items())]
    left, wait_ms = files, config.consistency_first_ms
    for check in range(looks):
        if check:
            pause(wait_ms / 1000)
            wait_ms = min(2 * wait_ms, config.consistency_most_ms)
        infos = on_threads(storage, lambda file: storage.info(file[0]), left)
        left = [
            (path, size)
            for (path, size), info in zip(left, infos, strict=True)
            if info is None or info.size != size
        ]
        if not left:
            return
    raise MissingFileError(
        f"{len(left)} of the {len(files)} files of the write are not there, or not whole, after {looks} looks",
        table=storage.uri,
        file=left[0][0],
        remedy=f"see whether something deletes files there; on a slow store raise {CONSISTENCY_CHECKS}.",
    )


def may_be_there(storage: Storage, path: str) -> bool:
    """Whether a file is there, or that cannot be told."""
    try:
        return storage.info(path) is not None
    except (StorageError, OSError):
        return True


def left_note(instant: str, error: Exception, *, in_doubt: bool) -> str:
    """Note on a failed write that could not be rolled back at once.

    Args:
        error: why it could not be.
        in_doubt: the store may have published it, and has not answered.
    """
    if in_doubt:
        return (
            f"Whether the write {instant} is completed cannot be told now ({error}): it may be completed and visible. "
            "Look at the timeline before it is run again; else the next write rolls it back."
        )
    return (
        f"The failed write {instant} could not be rolled back at once ({error}); nothing of it is visible, and the "
        "next write rolls it back."
    )
