"""The file slices that a merged read of a merge-on-read table sees: base files with their logs.

Table versions up to 6: the name of a log file says which slice it belongs to, see `by_begin`.  From version 8 on the
time at which its commit was completed does, see `completion_slices`.

Source: spec "Queries", section 2; AbstractTableFileSystemView of Apache Hudi 0.15 (merged file slices).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from hudi_format.file_names import log_sort_key, parse_base_file, parse_log_file
from hudi_format.log.corruption import CommittedRange, committed_range
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline.file_system_view.base_files import (
    CommittedBaseFile,
    FileView,
    Group,
    base_files,
    file_slices,
    missing_file,
)
from hudi_timeline.file_system_view.listing import PartitionFilter
from hudi_timeline.file_system_view.outlived_snapshot import Found, replaced_in_archive
from hudi_timeline.file_system_view.snapshot import CommittedFileGroups, TableSnapshot
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.avro_files import read_record
from hudi_timeline.timeline.commit_files import FileStat
from hudi_timeline.timeline.instant import COMPACTION, REQUESTED, Instant, file_name, gone_since
from hudi_timeline.timeline.lsm_timeline import history_instants

# File slices of tables of version 8 and later: a log file belongs to the slice that its commit's completion meets.
#
# The name of a log file carries the time of its own delta commit.  It belongs to the newest slice that was begun at or
# before that commit was completed, so that a compaction need not wait for writers: what they complete after it was
# scheduled is applied to its result.
#
# Source: HoodieFileGroup.addLogFile and CompletionTimeQueryViewV2 of Apache Hudi 1.x; spec "v8 and v9 differences",
# section 4.


class Completions:
    """When writes were completed.  The history is opened only where the active timeline does not say."""

    def __init__(self, storage: Storage, config: TableConfig, timeline: Timeline) -> None:
        self._storage = storage
        self._config = config
        self._first_active = timeline.first_active
        self._active = {i.time: i.completion for i in timeline.completed_writes()}

    def of(self, instant: str) -> str:
        """The time of completion; "" for a write that is not completed.

        Raises:
            CorruptFileError, MissingFileError: the history cannot be read.
        """
        found = self._active.get(instant)
        if found is not None:
            return found
        if instant >= self._first_active:
            return ""
        # Archived before the table's upgrade, which wrote down no time of completion.
        return self._archived.get(instant, instant)

    def is_completed(self, instant: str) -> bool:
        return instant in self._active or instant < self._first_active

    @cached_property
    def _archived(self) -> Mapping[str, str]:
        return {
            i.time: i.completion
            for i in history_instants(self._storage, self._config, until=self._first_active)
        }


def slice_instants(
    begun: Iterable[str], logs: Sequence[LogFile], completions: Completions
) -> dict[str, list[LogFile]]:
    """The log files of one group by the instant that began their slice; every slice that there is has an entry.

    Args:
        begun: the instants of completed base files and of pending compactions.
        logs: of completed instants.
    """
    slices: dict[str, list[LogFile]] = {instant: [] for instant in begun}
    for file in sorted(logs, key=log_sort_key):
        slices.setdefault(_begin_of(slices, file.instant, completions), []).append(file)
    return slices


def _begin_of(slices: Mapping[str, object], instant: str, completions: Completions) -> str:
    newest = max(slices, default=instant)
    if newest <= instant:  # and it was completed later still
        return newest if newest in slices else instant
    completion = completions.of(instant)
    if len(completion) != len(newest):  # times of the metadata table with a suffix
        completion = instant
    return max((s for s in slices if s <= completion), default=instant)


def newest_slice(
    group: Group, slices: Mapping[str, Sequence[LogFile]], pending: str, as_of: str | None
) -> tuple[str, list[LogFile]] | None:
    """The instant that began the newest slice, and its log files; None where there is none.

    A slice that a pending compaction began is given together with the one before it.

    Args:
        pending: the instant of the group's pending compaction, "" for none.
        as_of: slices that were begun later do not count, nor files of later instants; None for all.
    """
    begun = sorted(i for i in slices if as_of is None or i <= as_of)
    if as_of is None and not begun:
        return None
    first = begun[-1] if begun else ""
    files = list(slices[first]) if begun else []
    if first == pending and len(begun) > 1:
        first = begun[-2]
        files = [*slices[first], *files]
    if as_of is not None:
        # A commit that a compaction overtook is in a later slice.  Apache Hudi 1.x misses its log files as of its own
        # instant, and has its base files.
        later = (f for i, of in slices.items() if i > as_of for f in of)
        files = [f for f in (*files, *later) if f.instant <= as_of]
        if not begun and not files:
            return None
        first = first or min(f.instant for f in files)
    return first, sorted(files, key=log_sort_key)


MERGE_ON_READ = "MERGE_ON_READ"

CommittedLogs = Mapping[str, tuple[CommittedRange, ...]]
"""What completed instants of the active timeline say that they wrote, by path of the log file; see `known_ranges`."""


def merged_slices(
    snapshot: TableSnapshot,
    listing: Mapping[str, Sequence[FileInfo]],
    *,
    written: CommittedFileGroups | None = None,
) -> tuple[list[FileSlice], CommittedLogs]:
    """The newest slice of each file group, sorted by partition and file id.

    A slice that a pending compaction began is given together with the one before it: its logs hold what was
    written since.

    Raises:
        MissingFileError, CorruptFileError: a committed file is not there, or not as it was written.
    """
    written = written or snapshot.written()
    newest = snapshot.latest_of(FileView.of_listing(listing), list(listing), written=written)
    bases: dict[Group, BaseFile] = {(b.partition, b.file_id): b for b in base_files(newest)}
    pending = pending_compactions(snapshot)
    committed, sizes = committed_logs(snapshot)
    if snapshot.config.layout_version == 2:
        found_slices = _by_completion(snapshot, listing, written, bases, pending, sizes)
        return found_slices, known_ranges(found_slices, committed, snapshot.timeline.first_active)
    logs = _logs(snapshot, listing, written)
    slices: list[FileSlice] = []
    for group in sorted({*bases, *logs}):
        found = slice_of(group, bases.get(group), logs.get(group, {}), pending.get(group, ""))
        if found is not None:
            slices.append(found)
    if not snapshot.lenient:
        _check_there(slices, sizes, set(listing), written, snapshot)
    return slices, known_ranges(slices, committed)


def checked_slices(
    snapshot: TableSnapshot,
    listing: Mapping[str, Sequence[FileInfo]],
    written: CommittedFileGroups,
    *,
    wanted: PartitionFilter | None = None,
) -> tuple[list[FileSlice], CommittedLogs]:
    """As `merged_slices`, of folders that were just listed.

    Args:
        wanted: the partitions that were listed; None for all.

    Raises:
        StaleSnapshotError: files of the snapshot's state were deleted before that.
    """
    found: tuple[list[FileSlice], CommittedLogs] = ([], {})

    def find() -> Mapping[Group, Found]:
        nonlocal found
        found = merged_slices(snapshot, listing, written=written)
        return {
            (s.partition, s.file_id): Found(
                "" if s.base_file is None else s.base_file.instant,
                {f.path for f in s.log_files},
            )
            for s in found[0]
        }

    snapshot.checked(written, find, logs=True, wanted=wanted)
    return found


def newest_slices(
    snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]] | None = None
) -> list[FileSlice]:
    """The newest slice of each file group of a table of either type, sorted by partition and file id.

    Args:
        listing: the files of its partitions, where they are known already.
    """
    written = snapshot.written()
    found = snapshot.listing(written=written).files if listing is None else listing
    if snapshot.config.table_type == MERGE_ON_READ:
        return checked_slices(snapshot, found, written)[0]
    return file_slices(snapshot.checked_latest_of(FileView.of_listing(found), list(found), written))


def every_slice(snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]]) -> list[FileSlice]:
    """Each slice that the files of a listing make, of any instant, completed or not; sorted as their groups.

    A slice that tasks wrote twice is there with each base file.
    """
    by_completion = snapshot.config.layout_version == 2
    completions = Completions(snapshot.storage, snapshot.config, snapshot.timeline)
    bases: dict[Group, list[BaseFile]] = {}
    logs: dict[Group, list[LogFile]] = {}
    for partition, entries in listing.items():
        for entry in entries:
            base = parse_base_file(partition, entry.name, entry.size)
            log = parse_log_file(partition, entry.name, entry.size) if base is None else None
            if base is not None:
                bases.setdefault((partition, base.file_id), []).append(base)
            elif log is not None:
                logs.setdefault((partition, log.file_id), []).append(log)
    pending = pending_compactions(snapshot) if logs else {}
    out = []
    for group in sorted({*bases, *logs}):
        files = logs.get(group, [])
        by_instant: dict[str, list[LogFile]] = {b.instant: [] for b in bases.get(group, ())}
        if by_completion:
            begun = {*by_instant, *([pending[group]] if group in pending else [])}
            by_instant = slice_instants(begun, files, completions)
        else:
            named: dict[str, list[LogFile]] = {}
            for file in sorted(files, key=log_sort_key):
                named.setdefault(file.instant, []).append(file)
            for begin, own_logs in by_begin([*by_instant], named, pending.get(group, "")).items():
                by_instant.setdefault(begin, []).extend(own_logs)
        for instant in sorted(by_instant):
            own = sorted((b for b in bases.get(group, ()) if b.instant == instant), key=lambda b: b.name)
            found = tuple(by_instant[instant])
            out += [FileSlice(*group, instant, base, found) for base in own]
            if not own and found:
                out.append(FileSlice(*group, instant, None, found))
    return out


def known_ranges(
    slices: Iterable[FileSlice],
    committed: Mapping[str, Sequence[CommittedRange] | None],
    first_active: str = "",
) -> CommittedLogs:
    """What a read of these slices checks their log files against (`hudi_format.log.corruption.check_file`).

    Args:
        committed: ranges by path; None for a path where a commit gives no size.
        first_active: of tables whose log files are named after the commit that wrote them (version 8 and later):
            writes before it were archived (`Timeline.first_active`), and what they wrote is not known.
    """
    out: dict[str, tuple[CommittedRange, ...]] = {}
    for file in (f for s in slices for f in s.log_files):
        ranges = committed.get(file.path, ())
        if ranges or (ranges is not None and file.instant >= first_active):
            out[file.path] = tuple(ranges)
    return out


def _by_completion(
    snapshot: TableSnapshot,
    listing: Mapping[str, Sequence[FileInfo]],
    written: CommittedFileGroups,
    bases: Mapping[Group, BaseFile],
    pending: Mapping[Group, str],
    committed: Mapping[Group, Mapping[str, Sequence[CommittedBaseFile]]],
) -> list[FileSlice]:
    """The newest slice of each file group of a table of version 8 or later."""
    completions = Completions(snapshot.storage, snapshot.config, snapshot.timeline)
    as_of = snapshot.as_of
    logs: dict[Group, dict[str, LogFile]] = {}
    begun: dict[Group, set[str]] = {}
    visible = snapshot.visible()
    for partition, entries in listing.items():
        for entry in entries:
            log = parse_log_file(partition, entry.name, entry.size)
            if log is not None and completions.is_completed(log.instant):
                logs.setdefault((partition, log.file_id), {})[log.path] = log
            base = None if log is not None else parse_base_file(partition, entry.name, entry.size)
            if base is not None and base.instant in visible:
                begun.setdefault((partition, base.file_id), set()).add(base.instant)
    slices = []
    gone: Mapping[Group, str] | None = None
    for group in sorted({*bases, *logs, *(g for g in committed if g[0] in listing)}):
        replaced = written.replaced.get(group)
        if replaced is not None and (as_of is None or replaced <= as_of):
            continue
        found = logs.get(group, {})
        # A file that a commit wrote and that was not listed takes its place in a slice too, so that it is missed.
        for file in (f for files in committed.get(group, {}).values() for f in files):
            if file.path not in found:
                log = parse_log_file(group[0], file.path.rpartition("/")[2])
                if log is not None:
                    found[file.path] = log
        compaction = pending.get(group, "")
        instants = begun.get(group, set()) | ({compaction} if compaction else set())
        newest = newest_slice(
            group, slice_instants(instants, list(found.values()), completions), compaction, as_of
        )
        if newest is None:
            continue
        first, files = newest
        base = bases.get(group)
        base = base if base is not None and base.instant == first else None
        if snapshot.lenient:
            files = [f for f in files if f.size >= 0]
        missing = next((f for f in files if f.size < 0), None)
        if missing is not None:
            gone = replaced_in_archive(snapshot) if gone is None else gone
            if group in gone:
                continue
            raise missing_file(CommittedBaseFile(missing.path, 0, missing.instant), snapshot.storage.uri)
        if base is not None or files:
            slices.append(FileSlice(*group, first, base, tuple(files)))
    return slices


def by_begin(
    bases: Collection[str], logs: Mapping[str, Sequence[LogFile]], pending: str
) -> dict[str, list[LogFile]]:
    """Log files of a group by the instant that began their slice, in table versions up to 6.

    That is the instant in their names, but for what was written in version 8 or 9 before the table was taken down: such
    a log has the instant of its own commit.  A slice is begun by a base file, by a pending compaction, or, before there
    is either, by the first log.  Apache Hudi 1.x reads them so; 0.15 takes each for a slice of its own.

    Args:
        bases: instants of base files.
        logs: by the instant in their names.
        pending: the instant of the group's pending compaction, "" for none.
    """
    begun = {*bases, pending}
    out: dict[str, list[LogFile]] = {}
    for instant in sorted(logs):
        begin = instant
        if instant not in begun:
            begin = max((b for b in (*bases, *out) if b < instant), default=instant)
        out.setdefault(begin, []).extend(logs[instant])
    return out


def slice_of(
    group: Group, base: BaseFile | None, logs: Mapping[str, Sequence[LogFile]], pending: str
) -> FileSlice | None:
    """The newest slice of a group; None where it has no files.

    Args:
        base: the newest base file.
        logs: log files by the instant in their names.
        pending: the instant of a pending compaction of the group: its slice goes together with the one before.
    """
    logs = by_begin([base.instant] if base is not None else [], logs, pending)
    instants = {*logs} | ({base.instant} if base is not None else set())
    latest = max(instants)
    files = list(logs.get(latest, ()))
    before = instants - {latest}
    if latest == pending and before:
        latest = max(before)
        files = [*logs.get(latest, ()), *files]
    if base is not None and base.instant != latest:
        base = None
    if base is None and not files:
        return None
    return FileSlice(*group, latest, base, tuple(sorted(files, key=log_sort_key)))


def _logs(
    snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]], written: CommittedFileGroups
) -> dict[Group, dict[str, list[LogFile]]]:
    """Log files by group and base instant: those of slices that were begun by completed instants or compactions."""
    visible = snapshot.visible()
    compactions = {i.time for i in snapshot.timeline.pending(COMPACTION)}
    as_of = snapshot.as_of
    out: dict[Group, dict[str, list[LogFile]]] = {}
    for partition, entries in listing.items():
        for entry in entries:
            file = parse_log_file(partition, entry.name, entry.size)
            if file is None:
                continue
            if file.instant not in visible and file.instant not in compactions:
                continue
            if as_of is not None and file.instant > as_of:
                continue
            replaced = written.replaced.get((partition, file.file_id))
            if replaced is not None and (as_of is None or replaced <= as_of):
                continue
            out.setdefault((partition, file.file_id), {}).setdefault(file.instant, []).append(file)
    return out


def pending_compactions(snapshot: TableSnapshot) -> dict[Group, str]:
    """The instant of the pending compaction of each file group that is in a plan.

    Raises:
        CorruptFileError: a plan that cannot be read.
        MissingFileError: it is not there any more; without it, what was in a slice before is not known.
    """
    out: dict[Group, str] = {}
    storage = snapshot.storage
    for instant in snapshot.timeline.pending(COMPACTION):
        path = f"{snapshot.config.timeline_folder}/{file_name(instant.time, COMPACTION, REQUESTED)}"
        try:
            plan = read_record(storage, "HoodieCompactionPlan", path, instant.time)
        except FileNotFoundError:  # taken back since the listing, or completed and archived
            raise gone_since(instant, storage.uri) from None
        for operation in plan.get("operations") or ():
            out[operation.get("partitionPath") or "", operation.get("fileId") or ""] = instant.time
    return out


def add_range(ranges: dict[str, list[CommittedRange] | None], instant: Instant, stat: FileStat) -> None:
    """Take what a completed instant says that it wrote into a log file; None from there on where it does not say."""
    part = committed_range(instant.time, {"fileSizeInBytes": stat.size, "logOffset": stat.offset})
    known = ranges.setdefault(stat.path, [])
    if part is None:
        ranges[stat.path] = None
    elif known is not None:
        known.append(part)


def committed_logs(
    snapshot: TableSnapshot,
) -> tuple[dict[str, list[CommittedRange] | None], dict[Group, dict[str, list[CommittedBaseFile]]]]:
    """Ranges by path, None where one is not known; and the log files by group and base instant."""
    ranges: dict[str, list[CommittedRange] | None] = {}
    files: dict[Group, dict[str, list[CommittedBaseFile]]] = {}
    instants = snapshot.instants
    for instant, commit in zip(instants, snapshot.commits.files(instants), strict=True):
        for stat in commit.files:
            log = parse_log_file(stat.partition, stat.path.rpartition("/")[2])
            if log is None:
                continue
            add_range(ranges, instant, stat)
            file = CommittedBaseFile(stat.path, stat.size, instant.time)
            files.setdefault((stat.partition, log.file_id), {}).setdefault(log.instant, []).append(file)
    return ranges, files


def _check_there(
    slices: Iterable[FileSlice],
    logs: Mapping[Group, Mapping[str, Sequence[CommittedBaseFile]]],
    listed: set[str],
    written: CommittedFileGroups,
    snapshot: TableSnapshot,
) -> None:
    """Raise MissingFileError where a log file that a commit wrote into one of the slices was not listed.

    A group whose files are all gone has no slice: then the log files of its newest one are missed.
    """
    found: dict[Group, FileSlice] = {(s.partition, s.file_id): s for s in slices}
    as_of, visible = snapshot.as_of, snapshot.visible()
    gone: Mapping[Group, str] | None = None
    for group, by_instant in logs.items():
        if group[0] not in listed:
            continue
        if group in found:
            first, paths = found[group].base_instant, {f.path for f in found[group].log_files}
        else:
            replaced = written.replaced.get(group)
            if replaced is not None and (as_of is None or replaced <= as_of):
                continue
            first, paths = max((i for i in by_instant if i in visible), default=""), set()
            if not first:
                continue
        for base_instant, files in by_instant.items():
            if base_instant < first:
                continue
            file = next((f for f in files if f.path not in paths), None)
            if file is not None:
                gone = replaced_in_archive(snapshot) if gone is None else gone
                if group not in gone:
                    raise missing_file(file, snapshot.storage.uri)


__all__ = ["Completions", "newest_slice", "slice_instants"]
