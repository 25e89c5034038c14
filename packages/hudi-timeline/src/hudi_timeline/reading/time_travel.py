"""Time travel: checks that the table is readable at an instant.

Source: TimelineUtils.validateTimestampAsOf and handleHollowCommitIfNeeded of Apache Hudi 0.15.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_format.errors import (
    CorruptFileError,
    HollowCommitError,
    InstantNotFoundError,
    StaleSnapshotError,
    UnsupportedError,
)
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.snapshot import CommitCache, TableSnapshot
from hudi_timeline.options.read_options import ON_MISSING, SKIP
from hudi_timeline.options.service_options import CLEAN_COMMITS_RETAINED
from hudi_timeline.reading.stability import open_writes
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.action_metadata import Action, CleanMetadata, read_action
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering
from hudi_timeline.timeline.commit_files import CommitFiles
from hudi_timeline.timeline.commit_metadata import parse_commit
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMPLETED,
    INFLIGHT,
    RESTORE,
    WRITE_ACTIONS,
    Instant,
    file_name,
)
from hudi_timeline.timeline.lsm_timeline import history_files, history_instants, history_metadata


def first_open_write(storage: Storage, timeline: Timeline) -> Instant | None:
    """The oldest pending write, clusterings excluded, which change no rows."""
    return next((i for i in timeline.pending_writes() if not is_clustering(storage, timeline, i)), None)


def has_archive(storage: Storage, config: TableConfig) -> bool:
    """Whether instants were ever archived."""
    if config.version.has_lsm_history:
        return bool(history_files(storage, config))
    return any(not e.is_dir and "archive" in e.name for e in storage.list(config.history_folder))


def earliest_retained(storage: Storage, timeline: Timeline) -> str:
    """Oldest instant retained by the last clean; "" where unknown.

    An older one that a restore went to since was whole then, and so are all after it.
    """
    completed = [i for i in timeline.completed(CLEAN) if i.size != 0]
    if not completed:
        return ""
    last = completed[-1]
    try:
        cleaned = read_action(storage, last)
    except StaleSnapshotError:
        from hudi_timeline.timeline.archived_timeline import read_moved  # as most reads need no archive

        cleaned = read_moved(storage, last)
        if not isinstance(cleaned, CleanMetadata):
            raise
    oldest = cleaned.earliest_to_retain if isinstance(cleaned, CleanMetadata) else ""
    since = [i for i in timeline.completed(RESTORE) if i.time > last.time]
    if not oldest or not since:
        return oldest
    from hudi_timeline.file_system_view.restores import restored_to  # few tables were restored

    return min([oldest, *filter(None, (restored_to(storage, i) for i in since))])


def kept_commits(timeline: Timeline) -> set[str]:
    """Times of the commits at which no cleaning takes files: of savepoints, and the newest."""
    writes = [i.time for i in timeline.completed_writes()]
    return {*writes[-1:], *{*timeline.savepoints}.intersection(writes)}


def is_kept(storage: Storage, config: TableConfig, timeline: Timeline, instant: str) -> bool:
    """Whether the state at an instant is one that no cleaning takes files of.

    It is the newest one, or that of a savepoint.  Between a savepoint and the next write the state is the savepoint's.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: the archive cannot be read, which is opened only for times
            after a savepoint.
    """
    newest = max((i.time for i in timeline.completed_writes() if i.time <= instant), default=None)
    if newest is None or newest not in kept_commits(timeline):
        return False
    if newest == instant or newest >= timeline.first_active:
        return True
    # A savepointed commit may have stayed while later ones were archived.
    from hudi_timeline.timeline.archived_timeline import (
        archived_write_between,
    )  # as most reads need no archive

    active = {i.time for i in timeline.instants}
    later = archived_write_between(storage, config, newest, instant, unless=active.__contains__)
    return later is None


def oldest_whole(storage: Storage, config: TableConfig, timeline: Timeline, instant: str) -> str:
    """Oldest time with all files present, by clean metadata; "" if `instant` has all of its.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: the archive cannot be read, which is opened only for times
            before the active timeline's.
    """
    oldest = earliest_retained(storage, timeline)
    writes = timeline.completed_writes()
    # Not since a savepoint's commit, which may have stayed while later ones were archived.
    saved = timeline.savepoints
    first = next((i.time for i in writes if i.time not in saved), writes[-1].time if writes else "")
    if oldest or not writes or instant >= first:
        if instant >= oldest:
            return ""
    elif any(i.completed for i in timeline.of(CLEAN)):
        # A clean that keeps file versions does not say from when on all files are there.
        oldest = first
    else:
        oldest = _retained_before(storage, config, first)
    return "" if instant >= oldest or is_kept(storage, config, timeline, instant) else oldest


def _retained_before(storage: Storage, config: TableConfig, first: str) -> str:
    """Oldest instant retained by the last archived clean; "" without one.

    Archival does not wait for cleaning: a table that nobody cleans has the files of its archived instants.

    Args:
        first: the oldest active write, which stands for what a clean does not say.
    """
    if not has_archive(storage, config):
        return ""
    from hudi_timeline.timeline.archived_timeline import archived_actions  # as most reads need no archive

    cleans: dict[str, Action | None] = {}
    empty = True
    for instant, action in archived_actions(storage, config, frozenset({CLEAN})):
        empty = False
        if instant.action == CLEAN and instant.completed:
            cleans[instant.time] = action
    if empty:  # an archive that says nothing
        return first
    if not cleans:
        return ""
    last = cleans[max(cleans)]
    return (last.earliest_to_retain if isinstance(last, CleanMetadata) else "") or first


def check_as_of(storage: Storage, config: TableConfig, timeline: Timeline, instant: str) -> None:
    """Check that the table as of `instant` exists and is final.

    Raises:
        HollowCommitError: a commit at or before that time is still open.
        InstantNotFoundError: files of that time were cleaned; the message names the oldest readable instant.
    """
    pending = first_open_write(storage, timeline)
    if pending is not None and instant >= pending.time:
        blocking = open_writes(storage, timeline, until=instant)
        raise HollowCommitError(
            f"cannot read as of {instant}: " + "; ".join(str(b) for b in blocking),
            table=storage.uri,
            instant=pending.time,
            remedy=f"read as of an instant before {pending.time}, or wait until its writer ends; "
            "the next write rolls it back if its writer is dead.",
            blocked_by=blocking,
        )
    oldest = oldest_whole(storage, config, timeline, instant)
    if instant < oldest:
        # What a clean retained may have been undone since.
        kept = sorted(kept_commits(timeline))
        oldest = min([oldest, *kept[-1:]])
        saved = [i for i in kept if i < oldest]
        also = f", beside savepoints ({', '.join(saved)})" if saved else ""
        raise InstantNotFoundError(
            f"cannot read as of {instant}: files of that time were cleaned",
            table=storage.uri,
            instant=instant,
            remedy=f"the oldest instant that can be read is {oldest}{also}; keep more commits with "
            f"{CLEAN_COMMITS_RETAINED}.",
            oldest=oldest,
        )


def check_begun(storage: Storage, config: TableConfig, timeline: Timeline, instant: str) -> None:
    """Check that the table had its first commit by `instant`.

    A table without any commit has none to be before.

    Raises:
        InstantNotFoundError: it had not; the message names the first commit.
        CorruptFileError, MissingFileError, UnsupportedError: the archive cannot be read, which is opened only for times
            before the active timeline's.
    """
    writes = timeline.completed_writes()
    if not writes or instant >= writes[0].time:
        return
    first = writes[0].time
    if has_archive(storage, config):
        from hudi_timeline.timeline.archived_timeline import (
            archived_instants,
        )  # as most reads need no archive

        archived = archived_instants(storage, config)
        first = min([first, *(i.time for i in archived if i.completed and i.action in WRITE_ACTIONS)])
    if instant < first:
        raise InstantNotFoundError(
            f"cannot read as of {instant}: the table's first commit is of {first}",
            table=storage.uri,
            instant=instant,
            remedy=f"read as of {first} or later; on_missing={SKIP!r} ({ON_MISSING}) gives no rows, as Apache Hudi "
            "does.",
            oldest=first,
        )


# A table of version 8 or later as its commits up to a time of completion made it.
#
# Commits completed later do not count, archived ones neither: a timeline that just leaves them out would take their
# files for those of older commits.
#
# Source: completed instants of the history, spec "v8 and v9 differences", sections 2 and 3.


def completed_by(snapshot: TableSnapshot, end: str) -> TableSnapshot:
    """Snapshot of the commits completed at or before `end`.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: the history cannot be read.
    """
    storage, config, timeline = snapshot.storage, snapshot.config, snapshot.timeline
    files = [i for i in timeline.files if not i.completed or i.completion <= end]
    active = {i.time for i in timeline.completed_writes()}
    history = history_instants(storage, config, until=timeline.first_active or None)
    past = [i for i in history if i.action in WRITE_ACTIONS and i.time not in active]
    later = [replace(i, state=INFLIGHT, completion="") for i in past if i.completion > end]
    if not later:
        return replace(snapshot, timeline=timeline.with_files(files))
    # Those before every later one are older than the timeline then, as archived ones are.  All are added, so that
    # files of theirs that the cleaner has removed are missed.
    commits = CommitCache(storage)
    known = _contents(snapshot, {i.time for i in past if i.completion <= end})
    for instant, content in known.items():
        commits.keep(instant, content)
    return replace(snapshot, timeline=timeline.with_files([*files, *known, *later]), commits=commits)


def _contents(snapshot: TableSnapshot, times: set[str]) -> dict[Instant, CommitFiles]:
    """File metadata of archived commits."""
    out: dict[Instant, CommitFiles] = {}
    for instant, data in history_metadata(snapshot.storage, snapshot.config):
        if instant.action not in WRITE_ACTIONS or instant.time not in times or not data:
            continue
        try:
            named = replace(
                instant, file_name=file_name(instant.time, instant.action, COMPLETED, instant.completion)
            )
            out[named] = CommitFiles.of(parse_commit(data))
        except (CorruptFileError, UnsupportedError) as e:
            raise e.at(table=snapshot.storage.uri, instant=instant.time) from None
    return out
