"""Which instants leave the active timeline.

Source: HoodieTimelineArchiver of Apache Hudi 0.15 (getCommitInstantsToArchive, getCleanInstantsToArchive).
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_format.config.services import KEEP_COMMITS, ServiceConfig
from hudi_format.storage import Storage
from hudi_timeline.instant import (
    CLEAN,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
)
from hudi_timeline.services.clean_records import last_clean
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline import Timeline, is_clustering


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The instants to archive, oldest first, each with the files of all its states."""

    instants: tuple[Instant, ...] = ()
    files: tuple[Instant, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.instants)


def wants_archive(timeline: Timeline, config: ServiceConfig) -> bool:
    """Whether the timeline is so long that there may be something to archive."""
    longest = max(
        len(timeline.completed_writes()),
        *(sum(i.completed for i in timeline.of(action)) for action in (CLEAN, ROLLBACK)),
    )
    return longest > config.archive_max_commits


def make_plan(storage: Storage, table: TableConfig, timeline: Timeline, config: ServiceConfig) -> ArchivePlan:
    """What may be archived now.

    Raises:
        CorruptFileError: a pending clustering's plan or the last cleaning cannot be read.
    """
    if not wants_archive(timeline, config):
        return ArchivePlan()
    least, most = _bounds(storage, timeline, config)
    chosen: list[Instant] = []
    for action in (CLEAN, ROLLBACK):
        done = [i for i in timeline.of(action) if i.completed]
        if len(done) > most:
            chosen += done[: len(done) - least]
    commits = timeline.completed_writes()
    if len(commits) > most:
        bounds = _upper_bounds(storage, table, timeline, config)
        saved = {i.time for i in timeline.of(SAVEPOINT)}
        if not config.archive_beyond_savepoint and saved:
            bounds.append(min(saved))
        bound = min(bounds, default=None)
        chosen += [
            i
            for i in commits[: len(commits) - least]
            if (bound is None or i.time < bound) and i.time not in saved
        ]
    chosen.sort()
    keys = {(i.time, i.comparable_action) for i in chosen}
    files = tuple(f for f in timeline.files if (f.time, f.comparable_action) in keys)
    return ArchivePlan(tuple(chosen), files)


def _bounds(storage: Storage, timeline: Timeline, config: ServiceConfig) -> tuple[int, int]:
    """How many commits stay, and how many there must be for archival to begin.

    Commits whose files the cleaner has kept must stay on the timeline, and two more.
    """
    least, most = config.archive_min_commits, config.archive_max_commits
    cleaned = last_clean(storage, timeline)
    if cleaned is not None and cleaned.earliest:
        needed = sum(i.time >= cleaned.earliest for i in timeline.completed_writes()) + 2
    elif config.clean_policy == KEEP_COMMITS:
        needed = config.clean_commits_retained + 2
    else:
        needed = 0
    more = max(0, needed - least)
    return least + more, most + more


def _upper_bounds(
    storage: Storage, table: TableConfig, timeline: Timeline, config: ServiceConfig
) -> list[str]:
    """Times of instants that must stay, with all after them."""
    bounds = []
    commits = timeline.completed_writes()
    kinds = WRITE_ACTIONS | {COMPACTION, LOG_COMPACTION}
    pending = next((i for i in timeline.instants if not i.completed and i.action in kinds), None)
    if pending is not None:
        # A writer that is open may have planned on the commit before it.
        bounds.append(max((i.time for i in commits if i.time < pending.time), default=pending.time))
    if table.table_type == "MERGE_ON_READ":
        bounds += _for_next_compaction(timeline, config.compaction_delta_commits)
    cleaned = last_clean(storage, timeline)
    covered = "" if cleaned is None else cleaned.earliest or cleaned.instant
    bounds += [
        i.time
        for i in timeline.of(REPLACE_COMMIT)
        # Until the cleaner has been past a replacement, the timeline alone knows of the replaced groups.
        if (i.completed and i.time >= covered) or (not i.completed and is_clustering(storage, timeline, i))
    ][:1]
    return bounds


def _for_next_compaction(timeline: Timeline, delta_commits: int) -> list[str]:
    """The oldest instant that tells when the next compaction is due."""
    deltas = [i.time for i in timeline.of(DELTA_COMMIT) if i.completed]
    last = max((i.time for i in timeline.of(COMMIT) if i.completed), default=None)
    since = [t for t in deltas if last is None or t > last]
    if len(since) >= delta_commits:
        return [since[len(since) - delta_commits]]
    if last is not None:
        return [last]
    return deltas[:1]
