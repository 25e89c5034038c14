"""Removal of orphaned files of crashed writers.

Markers and heartbeats of writes that are over; temporary files, of writers killed between writing a file and giving it
its name; and folders of staged rows, of Spark's Python data source.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from hudi_format.errors import HudiError
from hudi_format.file_names import META_DIR, PARTITION_METADATA
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.timeline.action_metadata import RollbackMetadata, read_action
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.archived_timeline import archived_actions
from hudi_timeline.timeline.instant import CLUSTERING, COMPACTION, LOG_COMPACTION, ROLLBACK
from hudi_timeline.transaction import rollback_executor

# `LocalStorage` names them so; other stores write in one step.
_TEMPORARY = re.compile(r"^\.(?P<name>.+)\.[0-9a-f]{32}\.tmp$")
STAGING = ".hoodie_staging_"
"""Beginning of the name of a folder in which a write stages rows before they are committed; 32 hex digits follow."""
_STAGING = re.compile(re.escape(STAGING) + r"[0-9a-f]{32}\Z")
STAGING_AGE_MS = 24 * 3_600_000
"""A folder of staged rows into which nothing came for so long belongs to no write any more."""
TEMPORARY_AGE_MS = 24 * 3_600_000
"""Nor does a temporary file of that age: to write one and to name it takes moments."""
_RUN_AGAIN = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING})
"""Actions whose plan stays where an execution of it is rolled back."""
_INSTANT = re.compile(r"^\d{14,17}(?!\d)")


def remove_marks(storage: Storage, timeline: Timeline, marked: Sequence[str]) -> None:
    """Remove markers of completed instants, and of unknown ones with their files.

    Called under the table's lock.

    Args:
        marked: instants that had markers before the timeline was loaded.
    """
    there = {f.time for f in timeline.files}
    for time_ in marked:
        if time_ in there:
            found = timeline.find(time_)
            if found is not None and found.completed:
                markers.delete(storage, time_)
        elif time_ > timeline.first_active or _was_rolled_back(storage, timeline, time_):
            # Files of an instant that is nowhere, left by tasks that outlived its rollback.  Older ones than
            # the timeline may belong to commits that were archived.
            rollback_executor.remove_leftovers(storage, time_)
        else:
            markers.delete(storage, time_)


def _was_rolled_back(storage: Storage, timeline: Timeline, instant: str) -> bool:
    """Whether a rollback of the instant is on the timeline, or was archived, and nothing was completed at it.

    A compaction whose execution was rolled back may have been executed again, at the same instant, and then archived.
    Where the archive cannot be read it is not.
    """
    try:
        undone = [read_action(storage, i) for i in timeline.of(ROLLBACK) if i.completed]
        for archived, did in archived_actions(storage, table_config.load(storage), frozenset({ROLLBACK})):
            if archived.time == instant and archived.action != ROLLBACK and archived.completed:
                return False
            undone.append(did)
    except HudiError:
        return False
    names = [
        i for u in undone if isinstance(u, RollbackMetadata) and instant in u.commits for i in u.instants
    ]
    return bool(names) and not any(i.time == instant and i.action in _RUN_AGAIN for i in names)


def remove_heartbeats(
    storage: Storage, timeline: Timeline, beating: Sequence[str], interval_ms: int, misses: int
) -> None:
    """Remove dead heartbeats without a pending instant.

    Args:
        beating: instants that had a heartbeat before the timeline was loaded.
        interval_ms, misses: as `heartbeat.liveness`.
    """
    for time_ in beating:
        pending = any(i.time == time_ and not i.completed for i in timeline.instants)
        if not pending and not heartbeat.liveness(storage, time_, interval_ms, misses).alive:
            heartbeat.delete(storage, time_)


def remove_temporaries(storage: Storage, *, now: Callable[[], float] = time.time) -> None:
    """Remove temporary files of dead writers in the timeline and heartbeats.

    Called under the table's lock, after dead writes were rolled back: what begins, commits or is rolled back does
    so under that lock, and what runs meanwhile has a heartbeat.  Files of no instant (hoodie.properties) may be
    those of a caller that holds no lock, and stay for a day.

    Args:
        now: seconds since the epoch.
    """
    if not storage.is_local:
        return
    at_work = set(heartbeat.list_instants(storage))
    for folder in (META_DIR, heartbeat.FOLDER):
        for entry in storage.list(folder):
            found = None if entry.is_dir else _TEMPORARY.match(entry.name)
            if found is None:
                continue
            instant = _INSTANT.match(found["name"])
            if instant is not None:
                gone = instant[0] not in at_work
            else:
                gone = now() * 1000 - entry.mtime_ms > TEMPORARY_AGE_MS
            if gone:
                storage.delete(f"{folder}/{entry.name}")


def remove_staging(storage: Storage, *, now: Callable[[], float] = time.time) -> None:
    """Remove folders of staged rows unchanged for a day.

    Args:
        now: seconds since the epoch.
    """
    for entry in storage.list(""):
        if not entry.is_dir or not _STAGING.match(entry.name):
            continue
        # Object stores have no time of a folder; the youngest of its files says as much.
        youngest = max((f.mtime_ms for f in storage.list(entry.name)), default=0)
        if now() * 1000 - max(youngest, entry.mtime_ms) > STAGING_AGE_MS:
            storage.delete_dir(entry.name)


def remove_unborn(storage: Storage) -> None:
    """Remove a table created by a failed first write."""
    try:
        timeline = load_snapshot(storage, table_config.load(storage)).timeline
    except HudiError:
        return  # half made or damaged: left for the user to see
    if timeline.completed_writes() or timeline.pending_writes():
        return
    # Without its metadata a table with a file left over would be no table, and could not be written to again.
    if remove_bare_partitions(storage):
        storage.delete_dir(META_DIR)


def remove_bare_partitions(storage: Storage) -> bool:
    """Remove partition folders without data files.

    Returns:
        False where some folder holds other files; then nothing is removed.
    """
    top = [e for e in storage.list("") if not e.name.startswith(META_DIR)]
    if not all(e.is_dir and _is_bare(storage, e.name) for e in top):
        return False
    for entry in top:
        storage.delete_dir(entry.name)
    storage.delete(PARTITION_METADATA)
    return True


def _is_bare(storage: Storage, folder: str) -> bool:
    return all(
        _is_bare(storage, f"{folder}/{e.name}")
        if e.is_dir
        else e.name.startswith((PARTITION_METADATA, f".{PARTITION_METADATA}"))
        for e in storage.list(folder)
    )
