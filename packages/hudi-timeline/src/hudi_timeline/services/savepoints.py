"""Savepoints: commits protected from cleaning and archival.

    <t>.savepoint.inflight -> <t>.savepoint: the files of the newest slices as of the commit `t`

Source: SavepointActionExecutor and SavepointHelpers of Apache Hudi 0.15.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from datetime import date

from hudi_format.errors import ConcurrentWriterError, InstantNotFoundError, OptionError
from hudi_format.model import join_path
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline.concurrency.locks.provider import verify_held
from hudi_timeline.concurrency.own_files import complete_own, create_if_absent
from hudi_timeline.file_system_view.archived_replacements import archived_left
from hudi_timeline.file_system_view.file_slice_history import file_groups
from hudi_timeline.file_system_view.file_slices import SliceBuilder, newest_slices
from hudi_timeline.file_system_view.listing import list_table
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.reading.time_travel import oldest_whole
from hudi_timeline.services.pending_cleans import planned_names, take_back
from hudi_timeline.services.table_service import ServiceContext, dry_run_looks_again
from hudi_timeline.timeline.action_metadata import (
    SavedPartition,
    SavepointMetadata,
    read_action,
    render_action,
)
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.archived_timeline import archived_write_between
from hudi_timeline.timeline.instant import (
    COMPACTION,
    COMPLETED,
    INFLIGHT,
    SAVEPOINT,
    WRITE_ACTIONS,
    Committed,
    Instant,
    instant_path,
    named_instant,
    parse_query_instant,
    zone_of,
)
from hudi_timeline.transaction import late_publication
from hudi_timeline.transaction.rollback_executor import withdraw_overtaken


def savepointed_files(storage: Storage, timeline: Timeline) -> set[tuple[str, str]]:
    """(partition, file name) of every savepointed file.

    Raises:
        CorruptFileError, StaleSnapshotError: a savepoint that cannot be read; nothing may be deleted then.
    """
    kept: set[tuple[str, str]] = set()
    for savepoint in timeline.completed(SAVEPOINT):
        found = read_action(storage, savepoint)
        assert isinstance(found, SavepointMetadata)
        kept.update((p, name) for p, saved in found.partitions.items() for name in saved.files)
    return kept


def completed_commit(snapshot: TableSnapshot, at: str) -> Instant:
    """A completed commit of the active timeline; InstantNotFoundError where it has none."""
    found = next((i for i in snapshot.timeline.completed_writes() if i.time == at), None)
    if found is None:
        raise InstantNotFoundError(
            f"the active timeline has no completed commit {at}",
            table=snapshot.storage.uri,
            instant=at,
            remedy="`hudi commits PATH`, or inspect.commits() of the table, lists them.",
        )
    return found


def commit_of(snapshot: TableSnapshot, given: str | date | Committed) -> str:
    """Instant of a commit that a user names: as such, by its result, or by a time.

    A time stands for the newest commit up to it: of the snapshot, which is that of the lock where something is changed.

    Raises:
        InstantNotFoundError: another form, a time before the first commit of the active timeline, or one whose newest
            commit is archived.
        CorruptFileError, MissingFileError, UnsupportedError: the archive cannot be read.
    """
    if isinstance(given, str) or hasattr(given, "instant"):
        named = named_instant(given).strip()
        if named.isdigit():
            return named
    at = parse_query_instant(given, zone_of(snapshot.config.timezone))
    storage, timeline = snapshot.storage, snapshot.timeline
    there = [i.time for i in timeline.completed_writes() if i.time <= at]
    if not there:
        raise InstantNotFoundError(
            f"the active timeline has no completed commit up to {at}",
            table=storage.uri,
            instant=at,
            remedy="`hudi commits PATH`, or inspect.commits() of the table, lists them.",
        )
    found = max(there)
    # A savepointed commit may have stayed while later ones were archived: it is not what the table was then.
    active = {i.time for i in timeline.instants}
    newer = archived_write_between(storage, snapshot.config, found, at, unless=active.__contains__)
    if newer is not None:
        raise InstantNotFoundError(
            f"the newest commit up to {at} is {newer.time}, which is archived",
            table=storage.uri,
            instant=newer.time,
            remedy=f"name a commit of the active timeline: the newest one before it is {found}.",
        )
    return found


@dry_run_looks_again
def save(
    context: ServiceContext,
    instant: str | date | Committed | None = None,
    *,
    user: str = "",
    comment: str = "",
    dry_run: bool = False,
) -> str:
    """Create a savepoint, by default of the newest commit; returns its instant."""
    with nullcontext(context.look()) if dry_run else context.locked() as found:
        commits = found.timeline.completed_writes()
        if instant is None and not commits:
            raise InstantNotFoundError(
                "the table has no commit to savepoint", table=context.storage.uri, remedy="write to it first."
            )
        at = commits[-1].time if instant is None else commit_of(found, instant)
        if not dry_run and any(i.time == at for i in commits):
            found = withdraw_overtaken(found, kept=at)
        files = create(found.at(at), at, user=user, comment=comment, dry_run=dry_run)
        if not dry_run:
            _check_late(context, found, at, files)
    return at


def _check_late(
    context: ServiceContext, checked: TableSnapshot, at: str, files: Mapping[str, Sequence[str]]
) -> None:
    """Check that a savepoint did not appear after the lock was lost, and what it keeps was undone or cleaned.

    Raises:
        ConcurrentWriterError: so it is, and it is taken back.
    """
    with ExitStack() as stack:
        now, lost = late_publication.anew(context.lock, checked, stack)
        if now is None:
            context.warnings += [lost] if lost else []
            return
        storage, timeline = now.storage, now.timeline
        stands = any(i.time == at for i in timeline.completed_writes())
        if stands and not late_publication.is_being_undone(now, at):
            planned = planned_names(storage, timeline)
            there = {p: {f.name for f in found} for p, found in list_table(storage, now.config).files.items()}
            if all(
                n in there.get(p, ()) and n not in planned.get(p, ())
                for p, names in files.items()
                for n in names
            ):
                return
        if at in timeline.savepoints:  # who undid the commit has deleted it before
            delete(storage, timeline, at)
        raise ConcurrentWriterError(
            f"the commit {at} was undone, or its files cleaned, after this process had lost the lock ({lost})",
            table=storage.uri, instant=at,
            remedy="savepoint a newer commit; where processes stop for long, raise the lease of the lock.",
        )  # fmt: skip


def give_up(context: ServiceContext, instant: str, *, dry_run: bool = False) -> None:
    """Delete a savepoint.  Errors as `delete`."""
    with nullcontext(context.look()) if dry_run else context.locked() as found:
        if not dry_run:
            _archive_before_gap(found, instant)
        delete(context.storage, found.timeline, instant, dry_run=dry_run)


def _archive_before_gap(snapshot: TableSnapshot, at: str) -> None:
    """Archive the commit of a savepoint that later ones were archived beyond.

    Without the savepoint the timeline would begin with it, and their files would be those of failed writes.
    """
    from hudi_timeline.services.archival import remove_instants, write_archive  # which ask for savepoints
    from hudi_timeline.services.archive_planner import ArchivePlan, archive_entry

    storage, config, timeline = snapshot.storage, snapshot.config, snapshot.timeline
    first, there = timeline.first_active, {i.time for i in timeline.instants}
    if at not in timeline.savepoints or at >= first:
        return
    files = tuple(f for f in timeline.files if f.time == at and f.action in WRITE_ACTIONS | {COMPACTION})
    if not files or archived_write_between(storage, config, at, first, unless=there.__contains__) is None:
        return
    write_archive(storage, config, [archive_entry(storage, config, f) for f in files], len(files))
    remove_instants(storage, ArchivePlan(tuple(f for f in files if f.completed), files))


def create(
    snapshot: TableSnapshot,
    at: str,
    *,
    user: str = "",
    comment: str = "",
    dry_run: bool = False,
    now: Callable[[], float] = time.time,
) -> dict[str, list[str]]:
    """Create a savepoint of the commit `at`, under the table's lock; returns its files.

    Args:
        snapshot: of the table as of `at`.
        dry_run: write nothing; the lock is not needed then.

    Raises:
        InstantNotFoundError: no completed commit has that time.
        OptionError: there is such a savepoint already, or the cleaner has been past that commit.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    completed_commit(snapshot, at)
    if at in timeline.savepoints:
        raise OptionError(
            f"the commit {at} is savepointed already",
            table=storage.uri,
            remedy="delete the savepoint first to make it anew.",
        )
    # What was undone since does not count: after a restore the newest commit may be one that a cleaning has passed.
    if oldest := oldest_whole(storage, snapshot.config, timeline, at):
        raise OptionError(
            f"files of the commit {at} may be cleaned away: the cleaner kept those from {oldest} on",
            table=storage.uri,
            remedy="savepoint a newer commit.",
        )
    listing = list_table(storage, snapshot.config).files
    newest_slices(snapshot, listing)  # all of that state is there
    planned = planned_names(storage, timeline)
    files = _files_at(snapshot, at, listing, planned)
    there = {p: {f.name for f in found} for p, found in listing.items()}
    gone = [join_path(p, n) for p, names in files.items() for n in names if n not in there.get(p, ())]
    if gone:
        raise OptionError(
            f"files of the commit {at} are being cleaned away, such as {gone[0]}",
            table=storage.uri,
            remedy="savepoint a newer commit.",
        )
    if dry_run:
        return files
    verify_held()
    take_back(
        storage, timeline, {join_path(p, n) for p, names in files.items() for n in names}, by="savepoint"
    )
    partitions = {p: SavedPartition(p, tuple(names)) for p, names in sorted(files.items())}
    content = render_action(SavepointMetadata(user, int(now() * 1000), comment, partitions))
    inflight = instant_path(snapshot.config, at, SAVEPOINT, INFLIGHT)
    create_if_absent(storage, inflight, b"")  # there is one that a process began and did not finish
    path = instant_path(snapshot.config, at, SAVEPOINT, COMPLETED)
    verify_held()
    complete_own(storage, path, content, what="savepoint", instant=at)
    return files


def _files_at(
    snapshot: TableSnapshot,
    at: str,
    listing: Mapping[str, Sequence[FileInfo]],
    planned: Mapping[str, Collection[str]],
) -> dict[str, list[str]]:
    """Files of the newest slices as of a commit, by partition.

    Args:
        planned: names of files that cleanings are deleting, by partition.
    """
    everything = {
        p: [*listing.get(p, ()), *(FileInfo(n, False) for n in planned.get(p, ()))]
        for p in {*listing, *planned}
    }
    listing = {p: list({f.name: f for f in reversed(found)}.values()) for p, found in everything.items()}
    replaced = {**archived_left(snapshot).groups, **snapshot.written().replaced}
    files: dict[str, list[str]] = {}
    for (partition, file_id), slices in file_groups(snapshot, listing, SliceBuilder.of(snapshot))[0].items():
        gone = replaced.get((partition, file_id))
        if gone is not None and gone <= at:
            continue
        for found in slices:
            if found.instant > at:
                continue
            files.setdefault(partition, []).extend(found.names)
            # A slice that a compaction only began is read with the one before it.
            if found.has_base:
                break
    return files


def delete(storage: Storage, timeline: Timeline, at: str, *, dry_run: bool = False) -> None:
    """Delete a savepoint, under the table's lock.

    Args:
        dry_run: delete nothing; the lock is not needed then.

    Raises:
        InstantNotFoundError: there is no such savepoint.
    """
    found: list[Instant] = [i for i in timeline.of(SAVEPOINT) if i.time == at]
    if not found:
        raise InstantNotFoundError(
            f"the savepoint {at} does not exist",
            table=storage.uri,
            instant=at,
            remedy=f"savepoints: {', '.join(timeline.savepoints) or 'none'}.",
        )
    if dry_run:
        return
    # The completed file last: until it is gone the savepoint counts, and can be deleted again.
    completed = found[0].path_in(COMPLETED, found[0].completion)
    storage.delete(found[0].path_in(INFLIGHT))
    storage.delete(completed)
    flush(storage, [completed], written=False)
