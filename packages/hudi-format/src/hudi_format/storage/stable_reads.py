"""Timeline files that another writer created but has not finished writing.

Where renaming is not Apache Hudi's way (local disks, and HDFS for plans), it makes a file and then writes it in pieces
of some KB: who reads in between finds nothing, or a part.  Object stores show a file when it is whole.

Source: HoodieStorage.createImmutableFileInPath and ActiveTimelineV1.createFileInMetaPath of Apache Hudi.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from hudi_format.errors import CorruptFileError
from hudi_format.storage.protocol import Storage, has_no_folders

T = TypeVar("T")

# A file that stays as it is for so long is not being written any more; the writer may be held up by its garbage
# collection, or by a busy machine.
PATIENCE_S, PAUSE_S = 2.0, 0.02
# An older file is what it will stay; the other machine's clock may differ by as much.
YOUNG_S = 30.0
# A file that does not come to rest in this time is not one of a timeline.
MOST_S = 60.0


def read_whole(storage: Storage, path: str, parse: Callable[[bytes], T]) -> T:
    """The parsed content of a file, read again while it may be incomplete.

    Args:
        parse: raises CorruptFileError for content that is not whole, an empty one too.

    Raises:
        FileNotFoundError: it is not there, or not any more.
        CorruptFileError: it is old, or has come to rest, and is not whole; as `parse` raised it last.
    """
    data = storage.read(path)
    try:
        return parse(data)
    except CorruptFileError as e:
        problem = e
    if not may_be_filled(storage, path):
        raise problem
    begin = rest = time.monotonic()
    while True:
        time.sleep(PAUSE_S)
        # It is read once more when the time is up: this process may have been held up too.
        now = time.monotonic()
        found = storage.read(path)
        if found != data:
            data, rest = found, now
            try:
                return parse(data)
            except CorruptFileError as e:
                problem = e
        if now > min(rest + PATIENCE_S, begin + MOST_S):
            raise problem


def may_be_filled(storage: Storage, path: str) -> bool:
    """Whether a file is so young that its writer may still be writing."""
    if has_no_folders(storage):
        return False
    info = storage.info(path)
    return info is not None and abs(time.time() - info.mtime_ms / 1000) < YOUNG_S
