"""Checks that a write may be rolled back: dead writer, or no dependent state.

Source: validateSavepointRollbacks and validateRollbackCommitSequence of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from hudi_format.errors import ConcurrentWriterError, MissingFileError, OptionError, UnsupportedError
from hudi_format.file_names import parse_log_file, parse_slice_file
from hudi_format.model import WriteStat
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.file_system_view.base_files import FileView
from hudi_timeline.file_system_view.file_slices import merged_slices, refuse_hidden_logs
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.transaction_options import CONCURRENCY_MODE, OPTIMISTIC, RUNNING_WAIT_MS
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import (
    COMPACTION,
    INFLIGHT,
    LOG_COMPACTION,
    RESTORE,
    SAVEPOINT,
    Instant,
)


def is_running(storage: Storage, pending: Instant, config: TransactionConfig) -> bool:
    """Whether the writer of a pending instant is alive."""
    return heartbeat.liveness(storage, pending.time, *config.beats, to_act=True).alive


def running_writes(snapshot: TableSnapshot, config: TransactionConfig) -> Iterator[str]:
    """Instants of pending writes whose writers are alive, each looked for when asked for."""
    return (i.time for i in snapshot.timeline.pending_writes() if is_running(snapshot.storage, i, config))


def dead_writes(snapshot: TableSnapshot, options: TransactionConfig, beating: Sequence[str]) -> list[Instant]:
    """Pending writes to roll back, newest first, after log compactions.

    Args:
        beating: instants with a heartbeat, of a writer that is alive or dead.

    Raises:
        ConcurrentWriterError: the writer of one of them is alive.
    """
    dead = list(dead_log_compactions(snapshot.storage, snapshot.timeline, options, beating))
    for pending in reversed(snapshot.timeline.pending_writes()):
        if is_clustering(snapshot.storage, snapshot.timeline, pending):
            continue
        refuse_alive(snapshot.storage, pending, options)
        dead.append(pending)
    return dead


def refuse_alive(storage: Storage, pending: Instant, config: TransactionConfig) -> None:
    """Raise ConcurrentWriterError if the writer of a pending instant is alive."""
    state = heartbeat.liveness(storage, pending.time, *config.beats, to_act=True)
    if state.alive:
        owner = state.owner
        who = f" by {state.process}" if state.process else ""
        age = max(state.age_ms or 0, 0) / 1000
        raise ConcurrentWriterError(
            f"another write is running{who}: {pending.action} since {pending.time}, last heartbeat "
            f"{age:.0f} s ago",
            table=storage.uri,
            instant=pending.time,
            remedy=f"wait for it to end and run the write again, or have it wait ({RUNNING_WAIT_MS}, or lock_wait "
            f"without Spark); {CONCURRENCY_MODE}={OPTIMISTIC} in all writers has them overlap; if its writer is known "
            f"to be dead, delete {heartbeat.heartbeat_path(pending.time)}, and the next write rolls it back.",
            running=True,
            heartbeat_age_ms=state.age_ms,
            host=owner.host if owner else "",
            pid=owner.pid if owner else 0,
        )


def dead_log_compactions(
    storage: Storage, timeline: Timeline, config: TransactionConfig, beating: Collection[str]
) -> tuple[Instant, ...]:
    """Log compactions that were begun here and whose process is dead, newest first.

    One of Apache Hudi has no heartbeat: whether it is dead nobody can tell.

    Args:
        beating: instants with a heartbeat, of a process that is alive or dead.
    """
    return tuple(
        i
        for i in reversed(timeline.pending(LOG_COMPACTION))
        if i.state == INFLIGHT and i.time in beating and not is_running(storage, i, config)
    )


def refuse_written_to(snapshot: TableSnapshot, instant: Instant) -> None:
    """Raise if writes have gone to the new file groups of a clustering that is not completed.

    Writers of Apache Hudi write to the old and to the new buckets while a resize is pending.  Without its instant the
    log files in the new ones would be of no slice, but would count once the timeline begins after it.

    Raises:
        UnsupportedError: the first of such writes.
    """
    if instant.completed or not is_clustering(snapshot.storage, snapshot.timeline, instant):
        return
    for later in snapshot.timeline.completed_writes():
        if later.time < instant.time:
            continue
        for stat in snapshot.commits.get(later).stats:
            log = parse_log_file(stat.partition, stat.path.rpartition("/")[2])
            if log is not None and log.instant == instant.time:
                raise UnsupportedError(
                    f"the write {later.time} has written to file group {stat.file_id} of partition "
                    f"{stat.partition or '.'}, which the clustering {instant.time} is to make: without it the records "
                    "would be there twice",
                    table=snapshot.storage.uri, instant=instant.time, feature="pending clustering",
                    remedy="execute the clustering: `hudi buckets resize PATH --pending`; or restore the table to "
                    "before it.",
                )  # fmt: skip


def refuse_needed(snapshot: TableSnapshot, instant: Instant) -> None:
    """Raise if a completed write must not be rolled back.

    Raises:
        OptionError: it is savepointed.
        UnsupportedError: later writes or plans stand on it.
        MissingFileError: files of the state before it were cleaned away.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    if any(i.time == instant.time for i in timeline.of(SAVEPOINT)):
        raise OptionError(
            f"the commit {instant.time} is savepointed",
            table=storage.uri,
            instant=instant.time,
            remedy="delete the savepoint first.",
        )
    later = [i for i in timeline.completed_writes() if i.time > instant.time]
    if later:
        raise UnsupportedError(
            f"{len(later)} completed write{'s' if len(later) > 1 else ''} came after {instant.time}, the newest "
            f"{later[-1]}",
            table=storage.uri,
            instant=instant.time,
            remedy=f"roll back {later[-1].time} and so on down to it, newest first, or restore to an earlier commit.",
        )
    pending = [
        i
        for kind in (COMPACTION, LOG_COMPACTION, RESTORE)
        for i in timeline.pending(kind)
        if i.time > instant.time
    ] + [i for i in timeline.pending_writes() if i.time > instant.time]
    if pending:
        raise UnsupportedError(
            f"{pending[0]} was begun after {instant.time}",
            table=storage.uri,
            instant=instant.time,
            remedy=f"roll {pending[0].time} back first, or let it be finished.",
        )
    # The state before: a cleaner may have taken what the write replaced.
    before = timeline.with_files(
        f
        for f in timeline.files
        if (f.time, f.comparable_action) != (instant.time, instant.comparable_action)
    )
    snapshot = snapshot.with_timeline(before)
    try:
        listing = snapshot.listing().files
        if snapshot.config.table_type == "MERGE_ON_READ":
            merged_slices(snapshot, listing)
        else:
            refuse_hidden_logs(snapshot)
            snapshot.latest_of(FileView.of_listing(listing), list(listing))
        _check_earlier_slices(snapshot.commits.get(instant), listing, instant)
    except MissingFileError as e:
        e.remedy = f"the state before {instant.time} was cleaned away, so that it cannot come back."
        raise e.at(table=storage.uri, instant=instant.time) from None


def _check_earlier_slices(
    commit: CommitMetadata, listing: Mapping[str, Sequence[FileInfo]], instant: Instant
) -> None:
    """Raise MissingFileError if a group has no files from before the write."""
    changed = {
        (p, s.file_id) for p, stats in commit.partition_to_stats.items() for s in stats if _is_update(s)
    }
    changed |= commit.replaced_groups
    there = set()
    for partition in {p for p, _ in changed}:
        for entry in listing.get(partition, ()):
            file = parse_slice_file(partition, entry.name)
            if file is not None and file.instant < instant.time:
                there.add((partition, file.file_id))
    gone = sorted(changed - there)
    if gone:
        raise MissingFileError(
            f"{len(gone)} file groups that {instant} changed have no earlier files, such as {gone[0][1]} in "
            f"{gone[0][0] or 'the table'}"
        )


def _is_update(stat: WriteStat) -> bool:
    return stat.prev_commit not in ("", "null")
