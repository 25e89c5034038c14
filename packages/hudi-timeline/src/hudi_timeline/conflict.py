"""Whether a write may still be completed: what others did to the same file groups since it began.

Source: SimpleConcurrentFileWritesConflictResolutionStrategy of Apache Hudi 0.15.  New file groups never
collide, so two writes that insert one key into new files are not seen here (a stated limit of Hudi).
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_format.errors import ConcurrentWriterError, WriteConflictError
from hudi_format.storage import Storage
from hudi_timeline.instant import REPLACE_COMMIT, REQUESTED, RESTORE, instant_path
from hudi_timeline.metadata import avro_records
from hudi_timeline.metadata.commit import CommitMetadata, read_commit
from hudi_timeline.timeline import Timeline, is_clustering

FileGroup = tuple[str, str]  # partition path, file id

_SHOWN = 5


def check(storage: Storage, instant: str, metadata: CommitMetadata, before: Timeline, now: Timeline) -> None:
    """Make sure that nobody changed what this write is based on.

    Args:
        instant: of this write.
        metadata: what this write is about to publish.
        before: the timeline when the write began.
        now: the timeline under the lock.

    Raises:
        WriteConflictError: another write completed a change to a file group that this one changes, or
            planned to rewrite one.
        ConcurrentWriterError: the table was restored meanwhile.
    """
    known = {i.time for i in before.of(RESTORE)}
    for restore in now.of(RESTORE):
        if restore.time not in known:
            raise ConcurrentWriterError(
                f"the table was restored by {restore.time} while this write was running",
                table=storage.uri,
                instant=instant,
                remedy="run the write again.",
            )
    own = metadata.file_groups()
    if not own:
        return
    for rival, what, groups in _rivals(storage, instant, before, now):
        shared = sorted(own & groups)
        if shared:
            names = [f"{partition or '.'}/{file_id}" for partition, file_id in shared]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise WriteConflictError(
                f"{what} {rival} changed {len(shared)} of the same file groups first: "
                f"{', '.join(names[:_SHOWN])}{more}",
                table=storage.uri,
                instant=instant,
                remedy="run the write again; it then builds on the other one's result.  A long write that loses "
                "to small ones again and again needs a time without them, or a lock around both.",
                rival=rival,
                file_groups=names,
            )


def _rivals(
    storage: Storage, instant: str, before: Timeline, now: Timeline
) -> Iterator[tuple[str, str, frozenset[FileGroup]]]:
    """Writes that completed since then (whenever they began), and clusterings planned since then."""
    done = {i.time for i in before.completed_writes()}
    for rival in now.completed_writes():
        if rival.time not in done and rival.time != instant:
            yield rival.time, rival.action, read_commit(storage, rival).file_groups()
    planned = {i.time for i in before.pending_writes()}
    for rival in now.pending_writes():
        if rival.time not in planned and rival.time != instant and is_clustering(storage, now, rival):
            yield rival.time, "clustering", clustered_groups(storage, rival.time)


def clustered_groups(storage: Storage, instant: str) -> frozenset[FileGroup]:
    """The file groups that a planned clustering rewrites."""
    path = instant_path(instant, REPLACE_COMMIT, REQUESTED)
    record = avro_records.read_record(storage, "HoodieRequestedReplaceMetadata", path, instant)
    plan = record.get("clusteringPlan") or {}
    return frozenset(
        (piece.get("partitionPath") or "", piece.get("fileId") or "")
        for group in plan.get("inputGroups") or ()
        for piece in group.get("slices") or ()
    )
