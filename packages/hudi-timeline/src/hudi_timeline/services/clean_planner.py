"""Cleaning planner: file slices that the retention policy does not need.

Kept are: of each file group the newest slice; with a policy of commits or hours all slices since the earliest
instant to retain and the one before it, so that a query at that instant can be answered; with the policy of
versions the newest few.  Whatever the policy: files of savepoints, slices that a pending compaction needs, and
what reads of this process that were begun before are made of.

Commits and hours count by the time of the instant, as in Apache Hudi, and by that of completion too: what a write
that took long replaced was the newest state until a moment ago.

Source: CleanPlanner and CleanerUtils of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta, tzinfo

from hudi_format.storage.protocol import FileInfo
from hudi_timeline.file_system_view.archived_replacements import archived_left
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slice_history import Slice, file_groups
from hudi_timeline.file_system_view.file_slices import SliceBuilder
from hudi_timeline.file_system_view.listing import list_partition_files, list_table
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.service_config import KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS, ServiceConfig
from hudi_timeline.services.pending_cleans import last_clean
from hudi_timeline.services.savepoints import savepointed_files
from hudi_timeline.timeline.action_metadata import CleanMetadata, CleanPlan
from hudi_timeline.timeline.active_timeline import Timeline, completed_at
from hudi_timeline.timeline.instant import (
    COMPACTION,
    REPLACE_COMMIT,
    WRITE_ACTIONS,
    Instant,
    format_instant,
    zone_of,
)


def is_due(last: CleanMetadata | None, timeline: Timeline, config: ServiceConfig) -> bool:
    """Whether enough commits follow the last planned cleaning."""
    since = "" if last is None else last.last_completed
    fresh = [i for i in timeline.completed_writes() if i.time > since]
    return len(fresh) >= config.clean_max_commits


def make_clean_plan(
    snapshot: TableSnapshot,
    config: ServiceConfig,
    *,
    now: datetime,
    open_reads: Iterable[str] = (),
    archived: Mapping[Group, str] | None = None,
) -> CleanPlan:
    """Plan of a cleaning; falsy where nothing can be deleted.

    Args:
        snapshot: the table now.
        now: the wall clock in the table's time zone.
        open_reads: times up to which reads of this process count all commits.
        archived: the file groups whose replacement was archived before their files were deleted; looked for where it
            is not given.

    Raises:
        CorruptFileError, MissingFileError: what it must know cannot be read; nothing may be deleted then.
    """
    timeline, storage = snapshot.timeline, snapshot.storage
    commits = timeline.completed_writes()
    by_versions = config.clean_policy == KEEP_VERSIONS
    zone = zone_of(snapshot.config.timezone)
    earliest = None if by_versions else earliest_to_retain(timeline, config, now, zone, open_reads)
    spared = tuple(timeline.savepoints)
    empty = CleanPlan(config.clean_policy, earliest, commits[-1].time if commits else "", savepoints=spared)
    if not commits or (earliest is None and not by_versions):
        return empty
    last = last_clean(storage, timeline)
    if archived is None:
        archived = archived_left(snapshot).groups
    touched = None if earliest is None else _touched(snapshot, config, last, earliest)
    if touched is not None:
        touched |= {partition for partition, _ in archived}
        if not touched:
            return empty
    listing = (
        list_table(storage, snapshot.config).files
        if touched is None
        else list_partition_files(storage, touched)
    )
    saved = savepointed_files(storage, timeline)
    oldest_read = min(open_reads, default="") if by_versions else ""
    replaced = {**archived, **snapshot.written().replaced}
    chooser = _Chooser(snapshot, config, earliest, saved, oldest_read, replaced)
    files, partitions = chooser.choose(listing)
    return CleanPlan(config.clean_policy, earliest, empty.last_commit, files, partitions, spared)


def earliest_to_retain(
    timeline: Timeline,
    config: ServiceConfig,
    now: datetime,
    zone: tzinfo | None,
    open_reads: Iterable[str] = (),
) -> Instant | None:
    """Oldest commit to stay readable under the policy; None for all.

    It is never later than the commit before the oldest pending write, nor than what an open read stands for.
    """
    commits = timeline.completed_writes()
    kinds = WRITE_ACTIONS | {COMPACTION}
    chosen = before_pending(timeline, retained_by_policy(commits, config, now, zone), kinds)
    oldest = min(open_reads, default=None)
    if chosen is not None and oldest is not None and chosen.time > oldest:
        chosen = max((i for i in commits if i.time <= oldest), default=None)
    return chosen


def retained_by_policy(
    commits: Sequence[Instant], config: ServiceConfig, now: datetime, zone: tzinfo | None
) -> Instant | None:
    """Oldest completed commit retained by a policy of commits or hours; None for all.

    Of those that were begun last and of those that were completed last.  All commits that a snapshot lacks are of
    later completions, so that the slices since the oldest of these, and the one before, have what it reads.

    Args:
        commits: oldest first.
        now: in `zone`, the table's.
    """
    done = {i: completed_at(i, zone) for i in commits}
    if config.clean_policy == KEEP_HOURS:
        since = format_instant(now - timedelta(hours=config.clean_hours_retained))
        begun = next((i for i in commits if i.time >= since), None)
        lately = {i for i in commits if done[i] >= since}
    elif config.clean_policy == KEEP_COMMITS and len(commits) > config.clean_commits_retained:
        begun = commits[len(commits) - config.clean_commits_retained]
        since = sorted(done.values())[-config.clean_commits_retained]
        lately = {i for i in _overtaken(done) if done[i] >= since}
    else:
        return None
    if begun is None:  # Apache Hudi then cleans nothing
        return None
    return next((i for i in commits if i in lately or i == begun), begun)


def _overtaken(done: Mapping[Instant, str]) -> list[Instant]:
    """Commits before whose completion one was completed that was begun after them.

    No other is among those completed last without being among those begun last.  Where a table was copied, the storage
    tells the time of the copy: in the order of the files' names, or one time for all of them.

    Args:
        done: completion times, of the oldest instant first.
    """
    found = []
    first = ""
    for instant, at in reversed(list(done.items())):
        # Storage may tell no more than the second; of one time there any may be the last.
        if first and (first < at or (first == at and at.endswith("000"))):
            found.append(instant)
        first = min(first or at, at)
    return found


def before_pending(timeline: Timeline, chosen: Instant | None, kinds: Set[str]) -> Instant | None:
    """The commit, or the last completed one before an older pending instant of these actions."""
    pending = next((i for i in timeline.instants if not i.completed and i.action in kinds), None)
    if chosen is None or pending is None or chosen <= pending:
        return chosen
    return max((i for i in timeline.completed_writes() if i.time < pending.time), default=None)


def _touched(
    snapshot: TableSnapshot, config: ServiceConfig, last: CleanMetadata | None, earliest: Instant
) -> set[str] | None:
    """Partitions to examine since the last cleaning; None for all."""
    timeline = snapshot.timeline
    if not config.clean_incremental or last is None or not last.earliest_to_retain:
        return None
    if last.earliest_to_retain < timeline.first_active:
        return None
    if set(last.savepoints) - set(timeline.savepoints):
        return None  # what the savepoint kept may lie in any partition, not only in those of its commit
    found: set[str] = set()
    zone = zone_of(snapshot.config.timezone)
    for instant in timeline.completed_writes():
        # Apache Hudi takes an instant before it shows it: a cleaning may have been past one that was not there yet.
        late = completed_at(instant, zone) >= last.start
        if instant.time >= earliest.time:
            continue
        if late or last.earliest_to_retain <= instant.time:
            metadata = snapshot.commits.get(instant)
            found.update(metadata.partition_to_stats, metadata.replaced)
        elif instant.action == REPLACE_COMMIT:
            # A cleaning of Apache Hudi in between does not go back to what came late, and looks later than it.
            found.update(snapshot.commits.get(instant).replaced)
    return found


class _Chooser:
    """Retention rules of one policy for the slices of each file group."""

    def __init__(
        self,
        snapshot: TableSnapshot,
        config: ServiceConfig,
        earliest: Instant | None,
        saved: set[tuple[str, str]],
        oldest_read: str,
        replaced: Mapping[Group, str],
    ) -> None:
        self._replaced = replaced
        self._snapshot, self._config, self._earliest, self._saved = snapshot, config, earliest, saved
        self._oldest_read = oldest_read
        self._savepoints = snapshot.timeline.savepoints
        self._builder = SliceBuilder.of(snapshot)

    def choose(
        self, listing: Mapping[str, Sequence[FileInfo]]
    ) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
        """File names by partition, and the partitions to delete."""
        replaced = self._replaced
        groups, open_partitions = file_groups(self._snapshot, listing, self._builder)
        files: dict[str, list[str]] = {}
        alive: set[str] = set()
        for group, slices in groups.items():
            partition = group[0]
            gone = replaced.get(group)
            if gone is None:
                alive.add(partition)
                chosen = self._old(group, slices)
            elif (
                group in self._builder.pending
            ):  # replaced since its compaction was planned, which needs its files
                alive.add(partition)
                chosen = []
            elif self._may_go(gone):
                chosen = slices
            else:
                chosen = []
            seen = self._seen_by_savepoints(slices, gone)
            names = [
                n
                for s in chosen
                if s.instant not in seen and not self._is_saved(partition, s)
                for n in s.names
            ]
            if names:
                files.setdefault(partition, []).extend(names)
        kept = self._replaced_lately() | alive | open_partitions | {p for p, _ in self._saved}
        partitions = (
            [p for p in listing if p and p not in kept] if self._snapshot.config.partition_fields else []
        )
        return {p: tuple(sorted(names)) for p, names in sorted(files.items())}, tuple(sorted(partitions))

    def _old(self, group: Group, slices: list[Slice]) -> list[Slice]:
        """Deletable slices of a live file group, newest first."""
        if self._earliest is not None:
            # A pending compaction is not before the bound: what it reads is the newest slice, or the one before.
            bound = self._earliest.time
            before = next((s.instant for s in slices if s.instant < bound), None)
            spared = {slices[0].instant, before}
            return [s for s in slices if s.instant < bound and s.instant not in spared]
        if group in self._builder.pending:
            return []
        keep = self._config.clean_versions_retained
        read = self._oldest_read
        if read:  # the slice that the read sees, and newer ones
            seen = next((k for k, s in enumerate(slices) if s.instant <= read), len(slices) - 1)
            keep = max(keep, seen + 1)
        return slices[keep:]

    def _may_go(self, replaced_at: str) -> bool:
        if self._earliest is not None:
            return replaced_at < self._earliest.time
        return not self._oldest_read or replaced_at <= self._oldest_read

    def _is_saved(self, partition: str, slice_: Slice) -> bool:
        return any((partition, name) in self._saved for name in slice_.names)

    def _seen_by_savepoints(self, slices: list[Slice], gone: str | None) -> set[str]:
        """Instants of the slices that reads as of the savepoints find.

        A compaction that was pending when a savepoint was made has its base file since, which the savepoint cannot
        name: its files are of the slice before, and a read as of it, and a restore, go by the new file.

        Args:
            slices: of a file group, newest first.
            gone: when the group was replaced; None where it was not.
        """
        saved = (at for at in self._savepoints if gone is None or at < gone)
        return {s.instant for at in saved for s in [next((s for s in slices if s.instant <= at), None)] if s}

    def _replaced_lately(self) -> set[str]:
        """Partitions of an overwrite or deletion that must stay readable."""
        found: set[str] = set()
        bound = "" if self._earliest is None else self._earliest.time
        for instant in self._snapshot.timeline.completed_writes():
            if instant.action == REPLACE_COMMIT and bound and instant.time >= bound:
                found.update(self._snapshot.commits.get(instant).replaced)
        for group, at in self._replaced.items():
            if not self._may_go(at):
                found.add(group[0])
        return found
