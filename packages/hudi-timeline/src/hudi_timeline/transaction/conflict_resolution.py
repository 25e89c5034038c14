"""Conflict resolution: whether a write may be completed next to others since its begin.

What the same file group is, a strategy says (`hudi_timeline.transaction.conflict_strategies`).  New file groups never
collide, so two writes that insert one key into new files are not seen here (a stated limit of Hudi).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hudi_format.errors import ConcurrentWriterError, MissingFileError, WriteConflictError
from hudi_format.file_names import parse_log_file, parse_slice_file
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.file_slices import pending_compactions
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.table_config import INDEX
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering
from hudi_timeline.timeline.commit_metadata import COMPACT, CommitMetadata
from hudi_timeline.timeline.instant import (
    COMPACTION,
    REQUESTED,
    RESTORE,
    Instant,
)
from hudi_timeline.transaction.conflict_strategies import (
    CLUSTERING,
    ConcurrentOperation,
    ConflictStrategy,
    FileGroup,
)
from hudi_timeline.transaction.conflict_strategies import COMPACTION as PLANNED
from hudi_timeline.transaction.write_basis import Basis, Changes

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Rivals:
    """Changes by other writers while a write was running.

    Attributes:
        changes: since the write began.
        commits: what the completed writes among them say, oldest first.
        now: the table under the lock.
    """

    changes: Changes
    commits: Mapping[Instant, CommitMetadata]
    now: TableSnapshot


def check(
    instant: str,
    metadata: CommitMetadata,
    changes: Changes,
    before: Timeline,
    now: TableSnapshot,
    strategy: ConflictStrategy,
) -> Rivals:
    """Raise if others changed the write's files, table properties or history.

    Args:
        instant: of this write.
        metadata: what this write is about to publish.
        changes: since the write began.
        before: the timeline when the write began.
        now: the table under the lock.
        strategy: says which file groups are the same.

    Raises:
        WriteConflictError: another write completed a change to a file group that this one changes, or
            planned to rewrite one; or hoodie.properties changed, or a write was undone.
        ConcurrentWriterError: the table was restored meanwhile.
    """
    storage = now.storage
    known = {i.time for i in before.of(RESTORE)}
    for restore in now.timeline.of(RESTORE):
        if restore.time not in known:
            raise ConcurrentWriterError(
                f"the table was restored by {restore.time} while this write was running",
                table=storage.uri,
                instant=instant,
                remedy="run the write again.",
            )
    # Whether the table's index matters is for who looked for keys to say.
    if changes.undone or set(changes.properties) - {INDEX}:
        raise changes.conflict("its files were written for what was there before", table=storage.uri,
                               instant=instant)  # fmt: skip
    if changes.untold:
        raise changes.conflict("what it wrote is not told any more", table=storage.uri, instant=instant)
    commits = {rival: now.commits.get(rival) for rival in changes.written}
    ours = ConcurrentOperation(
        instant,
        "",
        metadata.operation,
        completed=False,
        file_groups=metadata.file_groups(),
        extra=metadata.extra,
        appended=_appended(metadata),
    )
    _check_groups(storage, ours, _groups(now, instant, commits, before), strategy)
    _check_appended(metadata, changes, instant, now)
    return Rivals(changes, commits, now)


def check_planned(
    instant: str,
    operation: str,
    groups: frozenset[FileGroup],
    before: Timeline,
    now: TableSnapshot,
    strategy: ConflictStrategy,
) -> None:
    """Raise if others planned to rewrite file groups that came to a write last.

    Raises:
        WriteConflictError: a clustering or compaction did.
    """
    ours = ConcurrentOperation(instant, "", operation, completed=False, file_groups=groups)
    _check_groups(now.storage, ours, _groups(now, instant, {}, before), strategy)


def _check_groups(
    storage: Storage,
    ours: ConcurrentOperation,
    rivals: Iterator[ConcurrentOperation],
    strategy: ConflictStrategy,
) -> None:
    if not ours.file_groups:
        return
    for rival in rivals:
        shared = sorted(strategy.shared(ours, rival))
        if shared:
            names = [f"{partition or '.'}/{file_id}" for partition, file_id in shared]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise WriteConflictError(
                f"{rival.action} {rival.instant} changed {len(shared)} of the same file groups first: "
                f"{', '.join(names[:_SHOWN])}{more}",
                table=storage.uri,
                instant=ours.instant,
                remedy="run the write again; it then builds on the other one's result. A long write that keeps losing "
                "to short ones needs hudi.write.priority=HIGH, or a lock around both.",
                rival=rival.instant,
                file_groups=names,
                groups=shared,
            )


def _groups(
    now: TableSnapshot,
    instant: str,
    commits: Mapping[Instant, CommitMetadata],
    before: Timeline,
) -> Iterator[ConcurrentOperation]:
    """File groups of concurrently completed writes, and of planned clusterings and compactions.

    A compaction that was planned before the write began is none of them: the write's log files stand on the slice that
    the plan began, whenever it is executed.
    """
    known = {i.time for i in before.pending(COMPACTION)}
    for rival, commit in commits.items():
        if not (commit.operation == COMPACT and rival.time in known):
            yield ConcurrentOperation(
                rival.time,
                rival.action,
                commit.operation,
                file_groups=commit.file_groups(),
                extra=commit.extra,
                appended=_appended(commit),
            )
    storage, timeline = now.storage, now.timeline
    planned = {i.time for i in before.pending_writes()}
    for rival in timeline.pending_writes():
        if rival.time not in planned and rival.time != instant and is_clustering(storage, timeline, rival):
            groups = clustered_groups(storage, rival)
            yield ConcurrentOperation(rival.time, CLUSTERING, completed=False, file_groups=groups)
    if any(i.time not in known for i in timeline.pending(COMPACTION)):
        compacted: dict[str, set[FileGroup]] = {}
        for group, time in pending_compactions(now).items():
            compacted.setdefault(time, set()).add(group)
        for time in sorted(set(compacted) - known):
            groups = frozenset(compacted[time])
            yield ConcurrentOperation(time, PLANNED, completed=False, file_groups=groups)


def _appended(commit: CommitMetadata) -> frozenset[FileGroup]:
    """File groups to which a write only added log files, without a deletion."""
    others = commit.replaced_groups | {
        (s.partition, s.file_id) for s in commit.stats if s.num_deletes or not _is_log(s.path)
    }
    return commit.file_groups() - others


def _is_log(path: str) -> bool:
    return parse_log_file("", path.rpartition("/")[2]) is not None


def _check_appended(metadata: CommitMetadata, changes: Changes, instant: str, now: TableSnapshot) -> None:
    """Check that the slices still stand that log files were appended to.

    Raises:
        WriteConflictError: the compaction that began one of them was taken back.
    """
    slices = {s.prev_commit for s in metadata.stats if _is_log(s.path)}
    timeline = now.timeline
    there = {i.time for i in (*timeline.completed_writes(), *timeline.pending(COMPACTION))}
    archived = timeline.archived()
    gone = sorted(s for s in slices - there - {instant} if s not in archived)
    if gone:
        raise changes.conflict(
            f"log files were appended to slices of {gone[0]}, which was taken back",
            table=now.storage.uri,
            instant=instant,
        )


def clustered_groups(storage: Storage, clustering: Instant) -> frozenset[FileGroup]:
    """File groups that a planned clustering rewrites."""
    path = clustering.path_in(REQUESTED)
    record = avro_files.read_record(storage, "HoodieRequestedReplaceMetadata", path, clustering.time)
    plan = record.get("clusteringPlan") or {}
    return frozenset(
        (piece.get("partitionPath") or "", piece.get("fileId") or "")
        for group in plan.get("inputGroups") or ()
        for piece in group.get("slices") or ()
    )


def refuse_cleaned(error: MissingFileError, begun: TableSnapshot, now: Callable[[], TableSnapshot]) -> None:
    """Raise a conflict where others rewrote the file group of a missing file, which was cleaned.

    A writer that had its instant first may complete a newer version of it than the write began with.  What others
    completed while this one counted as dead may be archived too, so that nothing tells which of them rewrote it.

    Args:
        begun: the table when the write began.
        now: gives the table as it is.

    Raises:
        WriteConflictError: the write would have lost to the one that rewrote the file group.
    """
    partition, _, name = error.file.rpartition("/")
    file = parse_slice_file(partition, name)
    if file is None:
        return
    there = now()
    changes = Basis.of(begun.config, begun.timeline).changes(there.config, there.timeline)
    if file.instant in changes.undone or changes.restores or changes.untold:
        # Whoever published without knowing that the lock was lost takes its commit back.
        raise changes.conflict(f"{error.file} is gone", table=there.storage.uri) from error
    known = max((i.time for i in begun.timeline.completed_writes()), default="")
    by = ""
    for rival in changes.written:
        if (partition, file.file_id) in there.commits.get(rival).file_groups():
            by = rival.time
            said = (
                f"{rival.action} {rival.time} rewrote the file group of {error.file}, which was cleaned since"
            )
            break
    else:
        if not changes.written or there.timeline.first_active <= known:
            return
        said = f"writes that were completed since this one began are archived, and {error.file} was cleaned since"
    raise WriteConflictError(
        said,
        table=there.storage.uri,
        remedy="run the write again; it then builds on the other one's result.",
        rival=by,
        groups=[(partition, file.file_id)],
        file_groups=[f"{partition or '.'}/{file.file_id}"],
    ) from error
