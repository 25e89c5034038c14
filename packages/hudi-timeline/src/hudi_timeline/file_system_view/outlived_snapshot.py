"""Detection of snapshots whose files were cleaned or rolled back.

A snapshot's timeline is read before its folders are listed.  A cleaning in between takes files of that state, and an
archival after it takes what the timeline says of the cleaning: file groups would be left out and nobody would know.  So
the timeline is listed once more after the folders; where it is still the same, as it is nearly always, that is all.

Of an earlier state any later cleaning may have taken files, and may be archived since: cleans are archived by their own
number, and commits stay for a savepoint or a compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache, wraps
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from hudi_format.errors import CorruptFileError, StaleSnapshotError
from hudi_format.file_names import parse_base_file, parse_log_file, parse_slice_file
from hudi_format.model import BaseFile, LogFile, join_path
from hudi_format.storage.local import LocalStorage
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.restores import Restores
from hudi_timeline.table_config import DEFAULT_TIMELINE, META_FOLDER, load
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import CLEAN, REPLACE_COMMIT, REQUESTED, Instant, parse_instant, zone_of

if TYPE_CHECKING:
    from hudi_timeline.file_system_view.listing import PartitionFilter
    from hudi_timeline.file_system_view.snapshot import CommittedFileGroups, TableSnapshot
    from hudi_timeline.timeline.action_metadata import Action

P = ParamSpec("P")
T = TypeVar("T")
LOOKS = 3
"""How often a state that was cleaned or undone while it was read is looked at anew."""
LOST = "lost"
"""In the details of an error: its file is gone, and the state that had it is still the table's; no look finds it."""
# A table whose time zone is that of its machines is read on others, too.
_CLOCKS_APART_MS = 26 * 3_600_000
# How often the timeline is listed where what it names is archived in the meantime.
_TRIES = 5


class Found(NamedTuple):
    """Files found of a group: instant of its newest base file ("" for none), and log files."""

    base: str = ""
    logs: Collection[str] = ()


def looked_again(look: Callable[[], T]) -> T:
    """Result of a look at the newest state, repeated where files of it went in the meantime.

    Args:
        look: opens a snapshot of its own.

    Raises:
        StaleSnapshotError: they go faster than they can be read.
    """
    for _ in range(LOOKS):
        with suppress(StaleSnapshotError):
            return look()
    return look()


def looks_again(look: Callable[P, T]) -> Callable[P, T]:
    """A function that looks at the newest state, by `looked_again`."""

    @wraps(look)
    def looks(*args: P.args, **kwargs: P.kwargs) -> T:
        return looked_again(lambda: look(*args, **kwargs))

    return looks


def refuse_outlived(
    snapshot: TableSnapshot,
    written: CommittedFileGroups,
    found: Callable[[], Mapping[Group, Found]],
    *,
    logs: bool = False,
    partitions: Collection[str] | None = None,
    wanted: PartitionFilter | None = None,
    missed: str = "",
) -> None:
    """Raise if files of the snapshot were deleted; called after listing its folders.

    Args:
        written: what the snapshot's commits say.
        found: gives what was found, by file group.
        logs: whether log files count.
        partitions: the only ones that were looked at; None for all.
        wanted: what was looked at of these; None for all.
        missed: the path of a file that was not found, which alone is asked for, or of its file group.

    Raises:
        StaleSnapshotError: files were cleaned, or commits undone.
        CorruptFileError, MissingFileError, UnsupportedError: what a cleaning did cannot be read.
    """
    now = _listed_again(snapshot)
    if not _is_as_before(snapshot, now):
        _refuse_undone(snapshot, now)
        _refuse_deleted(snapshot, now, written, found, logs, partitions, wanted, missed)
    if missed:
        _refuse_superseded(snapshot, missed)


def _refuse_deleted(
    snapshot: TableSnapshot,
    now: Timeline,
    written: CommittedFileGroups,
    found: Callable[[], Mapping[Group, Found]],
    logs: bool,
    partitions: Collection[str] | None,
    wanted: PartitionFilter | None,
    missed: str,
) -> None:
    """Raise if a clean deleted a file of the snapshot; arguments as of `refuse_outlived`."""
    slices: Mapping[Group, Found] | None = None
    before: Mapping[Group, str] | None = None
    completed = snapshot.visible().completed
    restores = cache(lambda: Restores.of(snapshot.storage, now))
    looked_at: dict[str, bool] = {}
    for clean, partition, name in _deleted_since(snapshot, now):
        file: BaseFile | LogFile | None = parse_base_file(partition, name)
        if file is None and logs:
            file = parse_log_file(partition, name)
        if file is None or not _counts(snapshot, file.instant):
            continue
        if missed and missed not in (file.path, join_path(partition, file.file_id)):
            continue
        # What was undone is of no state, and looks archived once the timeline begins later.
        if file.instant not in completed and restores().surely_undid(file.instant):
            continue
        if partition not in looked_at:
            looked_at[partition] = (partitions is None or partition in partitions) and (
                wanted is None or bool(wanted.keep([partition])[0])
            )
        if not looked_at[partition]:
            continue
        group = (partition, file.file_id)
        if missed:  # it was wanted
            raise _deleted(snapshot, clean, file.path)
        if group in written.replaced:
            continue
        slices = found() if slices is None else slices
        if group in slices and _is_old(file, slices[group]):
            continue
        before = replaced_in_archive(snapshot) if before is None else before
        if group in before:
            continue
        raise _deleted(snapshot, clean, file.path)


def _refuse_superseded(snapshot: TableSnapshot, path: str) -> None:
    """Raise of a missing file of an earlier state which newer ones are without.

    Most likely it was cleaned, and nothing says so any more.  The table has no damage then that a copy would mend.
    """
    partition, _, name = path.rpartition("/")
    file = parse_slice_file(partition, name)
    as_of = snapshot.as_of
    if file is None or as_of is None:
        return
    for instant in snapshot.timeline.completed_writes():
        if instant.time <= as_of:
            continue
        (commit,) = snapshot.commits.files([instant])
        written = any(
            f.file_id == file.file_id
            and f.partition == partition
            and parse_base_file(partition, f.path.rpartition("/")[2])
            for f in commit.files
        )
        if written or file.file_id in commit.replaced.get(partition, ()):
            raise StaleSnapshotError(
                f"the table as of {as_of} cannot be read: a file of that state is gone, which is none of the table's "
                f"since {instant.time}, and neither the timeline nor its archive has a cleaning that deleted it",
                table=snapshot.storage.uri,
                instant=instant.time,
                file=path,
                remedy=f"read the table as of {instant.time} or later, which is without that file; the state before it "
                "comes back only with the file, from a copy of the table.",
            )


def _is_old(file: BaseFile | LogFile, found: Found) -> bool:
    """Whether a file is of an older slice than the one found, or not deleted.

    Without a base file there is one slice: the next ones are begun by compactions, which make one.
    """
    if isinstance(file, BaseFile):  # that another attempt may have written too
        return file.instant <= found.base
    return file.instant < found.base or file.path in found.logs


def replaced_in_archive(snapshot: TableSnapshot) -> dict[Group, str]:
    """Archived instants of the snapshot that replaced file groups.

    Apache Hudi's consistent hashing goes on writing into such groups for a while.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: the archive cannot be read.
    """
    from hudi_timeline.timeline.archived_timeline import archived_actions  # few reads need the archive
    from hudi_timeline.timeline.commit_metadata import CommitMetadata

    storage = snapshot.storage
    found: dict[Group, str] = {}
    for instant, did in archived_actions(storage, snapshot.config, frozenset({REPLACE_COMMIT})):
        if isinstance(did, CommitMetadata) and _counts(snapshot, instant.time):
            found.update(dict.fromkeys(did.replaced_groups, instant.time))
    return found


def _counts(snapshot: TableSnapshot, instant: str) -> bool:
    """Whether an instant's files are, or were, part of the snapshot's state."""
    return instant in snapshot.visible() and (snapshot.as_of is None or instant <= snapshot.as_of)


def _stale(snapshot: TableSnapshot, why: str, instant: str, file: str = "") -> StaleSnapshotError:
    what = f"the table as of {snapshot.as_of}" if snapshot.as_of else f"the state of {snapshot.instant}"
    return StaleSnapshotError(
        f"{what} cannot be read: {why}",
        table=snapshot.storage.uri,
        instant=instant,
        file=file,
        remedy="keep more commits with hoodie.cleaner.commits.retained, and read the table as of a later instant."
        if snapshot.as_of
        else "read the table again: a new read gives its newest state; for reads that take long keep more commits "
        "with hoodie.cleaner.commits.retained.",
    )


def _deleted(snapshot: TableSnapshot, clean: str, path: str) -> StaleSnapshotError:
    since = "since" if snapshot.as_of is None else f"after {snapshot.as_of}"
    return _stale(snapshot, f"files of that state were cleaned {since}", clean, path)


def _listed_again(snapshot: TableSnapshot) -> Timeline:
    """The current timeline, without sizes and times of its files."""
    folder = snapshot.config.timeline_folder
    now = _listed(snapshot, folder)
    if not _gone(snapshot, now):
        return now
    # An upgrade or downgrade moves instants from one folder to another.
    others = {META_FOLDER, f"{META_FOLDER}/{DEFAULT_TIMELINE}"} - {folder}
    more = [i for other in sorted(others) for i in _listed(snapshot, other).instants]
    return now.with_files([*now.instants, *more]) if more else now


def _listed(snapshot: TableSnapshot, folder: str) -> Timeline:
    storage = snapshot.storage
    # On a local disk to ask for each file's size takes most of the time of a listing.
    entries = storage.list(folder, unless=("",)) if type(storage) is LocalStorage else storage.list(folder)
    return Timeline.of_listing(entries, folder, snapshot.config)


def _new_cleans(snapshot: TableSnapshot, now: Timeline) -> list[Instant]:
    """Cleans that may have deleted files of the snapshot's state.

    Of the newest state those that were completed when it was read took nothing; of an earlier one any later may have.
    """
    as_of = snapshot.as_of
    known = {
        i.time for i in snapshot.timeline.of(CLEAN) if i.completed and (as_of is None or i.time <= as_of)
    }
    return [i for i in now.of(CLEAN) if i.state != REQUESTED and i.time not in known]


def _is_as_before(snapshot: TableSnapshot, now: Timeline) -> bool:
    """Whether no instant since could delete files or instants."""
    return not (
        _new_cleans(snapshot, now)
        or _gone(snapshot, now)
        or _cleans_archived(snapshot, now)
        or _may_lack_cleans(snapshot)
    )


def _gone(snapshot: TableSnapshot, now: Timeline) -> list[Instant]:
    """Commits of the snapshot that left the timeline."""
    there = {i.time for i in now.completed_writes()}
    return [i for i in snapshot.instants if i.time not in there and i.time != snapshot.announced]


def _cleans_archived(snapshot: TableSnapshot, now: Timeline) -> bool:
    """Whether a clean after the snapshot may be archived; cleans are archived oldest first."""
    before = [i.time for i in snapshot.timeline.of(CLEAN) if i.completed]
    return bool(before) and max(before) not in {i.time for i in now.of(CLEAN)}


def _may_lack_cleans(snapshot: TableSnapshot) -> bool:
    """Whether cleans after an earlier state may have been archived before its timeline was read.

    Cleans are archived oldest first: none was where there is an older one.
    """
    as_of, timeline = snapshot.as_of, snapshot.timeline
    if as_of is None or all(i.time <= as_of for i in timeline.completed_writes()):
        return False
    return not any(i.completed and i.time <= as_of for i in timeline.of(CLEAN))


def _archived_later(snapshot: TableSnapshot) -> Iterator[tuple[Instant, Action | None]]:
    """Archived cleans after an earlier state."""
    from hudi_timeline.timeline.archived_timeline import archived_cleans  # few reads need the archive

    storage, as_of = snapshot.storage, snapshot.as_of or ""
    config = load(storage)
    try:
        at = parse_instant(as_of).replace(tzinfo=zone_of(config.timezone)).timestamp() * 1000
    except (ValueError, OverflowError):  # a number
        at = 0
    since_ms = max(0, round(at) - _CLOCKS_APART_MS)
    cleans = archived_cleans(storage, config, written_since_ms=since_ms)
    return (found for found in cleans if found[0].time > as_of)


def _refuse_undone(snapshot: TableSnapshot, now: Timeline) -> None:
    """Raise if commits of the snapshot were rolled back, or the table was replaced."""
    gone = _gone(snapshot, now)
    # What is archived goes oldest first.
    older = now.archived()
    undone = [i for i in gone if i.time not in older]
    if not undone and len(gone) == len(snapshot.instants):
        archived = {i.time for i, _ in _archive(snapshot)}
        undone = [i for i in gone if i.time not in archived]
    if undone:
        raise _stale(snapshot, "a commit of it was undone since", undone[-1].time)


def _archive(snapshot: TableSnapshot) -> list[tuple[Instant, Action | None]]:
    """Completed archived instants, with the content of cleans."""
    from hudi_timeline.timeline.archived_timeline import archived_actions  # few reads need the archive

    storage = snapshot.storage
    # The table may have been upgraded since, and its archive with it.
    found = archived_actions(storage, load(storage), frozenset({CLEAN}))
    return [(i, did) for i, did in found if i.completed]


def _deleted_since(snapshot: TableSnapshot, now: Timeline) -> list[tuple[str, str, str]]:
    """Clean instant, partition and name of each deleted file, pending cleans included."""
    seen: set[str] = set()
    out: list[tuple[str, str, str]] | None = None
    for attempt in range(_TRIES):
        cleans = _new_cleans(snapshot, now)
        try:
            if attempt:  # listed twice without its plan: nothing is left of it that could be executed
                cleans = [
                    c for c in cleans if c.completed or now.has_file(_plan_of(c)) or _has_plan(snapshot, c)
                ]
            out = [(c.time, *file) for c in cleans for file in _files_of(snapshot, c)]
            break
        except FileNotFoundError:  # completed or archived since
            seen |= {c.time for c in cleans}
            now = _listed_again(snapshot)
    if out is None:
        raise _stale(snapshot, "its timeline is cleaned and archived faster than it can be read", max(seen))
    there = {c.time for c in now.of(CLEAN)}
    if _gone(snapshot, now) or _cleans_archived(snapshot, now) or seen - there:
        since = max((i.time for i in snapshot.timeline.instants if i.completed), default="")
        since = since if snapshot.as_of is None else snapshot.as_of
        pending = {i.time for i in snapshot.timeline.pending(CLEAN)}
        for clean, did in _archive(snapshot):
            if (
                clean.action == CLEAN
                and clean.time not in there
                and (clean.time > since or clean.time in pending)
            ):
                out += [(clean.time, *file) for file in _files_in(did)]
    elif _may_lack_cleans(snapshot):
        for clean, did in _archived_later(snapshot):
            if clean.time not in there:
                out += [(clean.time, *file) for file in _files_in(did)]
    return out


def _plan_of(clean: Instant) -> str:
    return clean.path_in(REQUESTED).rpartition("/")[2]


def _has_plan(snapshot: TableSnapshot, clean: Instant) -> bool:
    """Whether the inflight file of a clean holds its plan, as those of this project do."""
    return bool(snapshot.storage.read(clean.path))


def _files_of(snapshot: TableSnapshot, clean: Instant) -> list[tuple[str, str]]:
    """Partitions and names of the files of a started clean.

    Raises:
        FileNotFoundError: its file is not there any more.
        CorruptFileError: it cannot be read.
    """
    from hudi_timeline.timeline.action_metadata import parse_action

    storage, state, path = snapshot.storage, clean.state, clean.path
    data = storage.read(path)
    if not data:  # of Apache Hudi's; what is to be deleted stands in the requested file
        state, path = REQUESTED, clean.path_in(REQUESTED)
        data = storage.read(path)
        if not data:  # begun by a writer that died before it had a plan
            return []
    try:
        return _files_in(parse_action(CLEAN, state, data))
    except CorruptFileError as e:
        raise e.at(table=storage.uri, instant=clean.time, file=path) from None


def _files_in(did: Action | None) -> list[tuple[str, str]]:
    from hudi_timeline.timeline.action_metadata import CleanMetadata, CleanPlan

    out: list[tuple[str, str]] = []
    if isinstance(did, CleanPlan):
        out += [(partition, name) for partition, names in did.files.items() for name in names]
    elif isinstance(did, CleanMetadata):
        for partition, cleaned in did.partitions.items():
            out += [(partition, path) for path in (*cleaned.deleted, *cleaned.patterns)]
    return [(partition, path.rpartition("/")[2]) for partition, path in dict.fromkeys(out)]
