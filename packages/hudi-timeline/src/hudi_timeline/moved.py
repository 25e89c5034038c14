"""Completed instants whose file is not where it was listed: archived meanwhile, or moved by the table's upgrade.

A state of the table that was read stays what it was: archiving removes no data, and what a commit said is in the
archive before its file goes.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_format.errors import CorruptFileError, InstantNotFoundError, MissingFileError, UnsupportedError
from hudi_format.names import parse_log_file
from hudi_format.storage import Storage
from hudi_timeline.archived import read_archived
from hudi_timeline.instant import Instant
from hudi_timeline.metadata.actions import Action, read_action
from hudi_timeline.metadata.commit import CommitMetadata
from hudi_timeline.table_config import load
from hudi_timeline.timeline import load_timeline


def read_moved(storage: Storage, instant: Instant) -> Action | None:
    """What the file of a completed instant said, from where it is now; None where nobody has it any more.

    Log files of archived delta commits have no size: archives of table version 6 do not say where in a file the bytes
    of a commit begin.
    """
    config = load(storage)
    try:
        if config.timeline_folder != instant.folder:
            there = load_timeline(storage, config).instants
            found = (i for i in there if i.completed and (i.time, i.action) == (instant.time, instant.action))
            moved = next(found, None)
            if moved is not None:
                return read_action(storage, moved)
        action = read_archived(storage, config, instant)
    except (InstantNotFoundError, MissingFileError, CorruptFileError, UnsupportedError):
        return None  # the caller's error says what is missed
    return _without_log_sizes(action) if isinstance(action, CommitMetadata) else action


def _without_log_sizes(metadata: CommitMetadata) -> CommitMetadata:
    stats = {
        partition: tuple(
            replace(s, file_size_in_bytes=0)
            if parse_log_file(partition, s.path.rpartition("/")[2]) is not None and "logOffset" not in s.extra
            else s
            for s in found
        )
        for partition, found in metadata.partition_to_stats.items()
    }
    return replace(metadata, partition_to_stats=stats)


__all__ = ["read_moved"]
