"""File slices: each group's base files with their log files.

`SliceBuilder` is the one place where log files are attached to slices, whichever slices are asked for: the newest now
or as of an instant (`merged_slices`), all of them (`every_slice`), those before an instant (`file_slice_history`) or
those of a range (`hudi_timeline.reading.incremental.incremental_query`).

A log file belongs to the newest slice that was begun until its time.  Up to table version 6 that is the instant in its
name, the one that began the slice; a log that was written in version 8 or 9 before the table was taken down has the
instant of its own commit instead, which Apache Hudi 1.x attaches to what is before, and 0.15 takes for a slice of its
own.  From version 8 on it is the time at which its commit was completed, so that a compaction need not wait for
writers: what they complete after it was scheduled is applied to its result.

Source: spec "Queries", section 2, and "v8 and v9 differences", section 4; AbstractTableFileSystemView of Apache Hudi
0.15 (merged file slices), HoodieFileGroup.addLogFile and CompletionTimeQueryViewV2 of 1.x.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.file_names import log_sort_key, parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.fork_safe import cached_property
from hudi_format.log.corruption import CommittedRange, committed_range
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline.file_system_view.archived_replacements import with_archived
from hudi_timeline.file_system_view.base_files import (
    CommittedBaseFile,
    FileView,
    Group,
    base_files,
    file_slices,
    missing_file,
)
from hudi_timeline.file_system_view.listing import PartitionFilter, list_partition_files
from hudi_timeline.file_system_view.outlived_snapshot import Found, replaced_in_archive
from hudi_timeline.file_system_view.snapshot import CommittedFileGroups, TableSnapshot
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.avro_files import read_record
from hudi_timeline.timeline.commit_files import FileStat
from hudi_timeline.timeline.instant import COMPACTION, REQUESTED, Instant, plan_gone
from hudi_timeline.timeline.lsm_timeline import history_instants

MERGE_ON_READ = "MERGE_ON_READ"

CommittedLogs = Mapping[str, tuple[CommittedRange, ...]]
"""What completed instants of the active timeline say that they wrote, by path of the log file; see `known_ranges`."""


class SliceBuilder:
    """Attaches log files to their file slices.

    Args:
        pending: the instant of the pending compaction of each file group that is in a plan: it has begun a slice that
            has no base file yet.
    """

    def __init__(
        self, storage: Storage, config: TableConfig, timeline: Timeline, pending: Mapping[Group, str]
    ) -> None:
        self._storage = storage
        self._config = config
        self.pending = pending
        self._archived = timeline.archived()
        self._completions = {i.time: i.completion for i in timeline.completed_writes()}
        self._compactions = frozenset(i.time for i in timeline.pending(COMPACTION))
        self.by_completion = config.version.has_completion_times

    @classmethod
    def of(cls, snapshot: TableSnapshot, *, logs: bool = True, without: str = "") -> SliceBuilder:
        """The builder for a snapshot's table.

        Args:
            logs: whether there may be log files; the plans of pending compactions are not read for others.
            without: as of `pending_compactions`.

        Raises:
            CorruptFileError, MissingFileError: as `pending_compactions`.
        """
        pending = pending_compactions(snapshot, without=without) if logs else {}
        return cls(snapshot.storage, snapshot.config, snapshot.timeline, pending)

    def counts(self, instant: str) -> bool:
        """Whether log files with this instant in their names are visible to a read."""
        if instant in self._completions or instant in self._archived:
            return True
        return not self.by_completion and instant in self._compactions

    def time_of(self, instant: str) -> str:
        """Sort time of files with this instant in their names; "" for a write in flight.

        Up to table version 6 the instant itself; later on when it was completed.  The history is opened only where
        the active timeline does not say.

        Raises:
            CorruptFileError, MissingFileError: the history cannot be read.
        """
        if not self.by_completion:
            return instant
        found = self._completions.get(instant)
        if found is not None:
            return found
        if instant not in self._archived:
            return ""
        # Archived before the table's upgrade, which wrote down no time of completion.
        return self._history.get(instant, instant)

    @cached_property
    def _history(self) -> Mapping[str, str]:
        found = history_instants(self._storage, self._config, until=self._archived.first_active)
        return {i.time: i.completion for i in found}

    def attached(
        self, group: Group, begun: Iterable[str], logs: Iterable[LogFile]
    ) -> dict[str, list[LogFile]]:
        """Log files of a group by the instant that began their slice, for all slices.

        Where nothing was begun before a log file, the first one begins a slice.

        Args:
            begun: the instants of base files.
        """
        slices: dict[str, list[LogFile]] = {instant: [] for instant in begun}
        pending = self.pending.get(group)
        if pending is not None:
            slices.setdefault(pending, [])
        for file in sorted(logs, key=log_sort_key):
            begin = file.instant
            if self.by_completion or begin not in slices:
                begin = self._begin_of(slices, begin)
            slices.setdefault(begin, []).append(file)
        return slices

    def _begin_of(self, slices: Mapping[str, object], instant: str) -> str:
        newest = max(slices, default=instant)
        if newest <= instant:  # and it was completed later still
            return newest if newest in slices else instant
        time = self.time_of(instant)
        if len(time) != len(newest):  # times of the metadata table with a suffix
            time = instant
        return max((s for s in slices if s <= time), default=instant)

    def newest(
        self,
        group: Group,
        bases: Mapping[str, BaseFile],
        logs: Iterable[LogFile],
        as_of: str | None = None,
    ) -> FileSlice | None:
        """The newest slice of a group; None where it has no files.

        A slice that a pending compaction began is given together with the one before it: its logs hold what was
        written since.

        Args:
            bases: by instant; those that are older than the newest that counts may be left out.
            as_of: slices that were begun later do not count, nor files of later instants; None for all.
        """
        slices = self.attached(group, bases, logs)
        begun = sorted(i for i in slices if as_of is None or i <= as_of)
        first = begun[-1] if begun else ""
        files = list(slices[first]) if begun else []
        if first == self.pending.get(group) and len(begun) > 1:
            first = begun[-2]
            files = sorted((*slices[first], *files), key=log_sort_key)
        if as_of is not None:
            # A commit that a compaction overtook is in a later slice.  Apache Hudi 1.x misses its log files as of its
            # own instant, and has its base files.
            later = (f for i, of in slices.items() if i > as_of for f in of)
            files = sorted((f for f in (*files, *later) if f.instant <= as_of), key=log_sort_key)
            first = first or min((f.instant for f in files), default="")
        base = bases.get(first)
        if base is None and not files:
            return None
        return FileSlice(*group, first, base, tuple(files))


def merged_slices(
    snapshot: TableSnapshot,
    listing: Mapping[str, Sequence[FileInfo]],
    *,
    written: CommittedFileGroups | None = None,
) -> tuple[list[FileSlice], CommittedLogs]:
    """Newest slice of each file group, sorted by partition and file id.

    Raises:
        MissingFileError, CorruptFileError: a committed file is not there, or not as it was written.
    """
    written = written or snapshot.written()
    as_of = snapshot.as_of
    builder = SliceBuilder.of(snapshot)
    logs: dict[Group, dict[str, LogFile]] = {}
    for partition, entries in listing.items():
        for entry in entries:
            log = parse_log_file(partition, entry.name, entry.size)
            if log is not None and builder.counts(log.instant):
                logs.setdefault((partition, log.file_id), {})[log.path] = log
    view = FileView.of_listing(listing)
    gone_at = with_archived(snapshot, written.replaced, view, {g: of.values() for g, of in logs.items()})
    newest = snapshot.latest_of(view, list(listing), written=written, replaced=gone_at)
    bases = {(b.partition, b.file_id): b for b in base_files(newest)}
    committed, files = committed_logs(snapshot)
    replaced = {g for g, at in gone_at.items() if as_of is None or at <= as_of}
    logs = {g: of for g, of in logs.items() if g not in replaced}
    if not snapshot.lenient:
        _add_unlisted(
            logs, {g: f for g, f in files.items() if g[0] in listing and g not in replaced}, bases, builder
        )
    slices: list[FileSlice] = []
    gone: Mapping[Group, str] | None = None
    for group in sorted({*bases, *logs}):
        base = bases.get(group)
        found = builder.newest(
            group, {} if base is None else {base.instant: base}, logs.get(group, {}).values(), as_of
        )
        if found is None:
            continue
        missing = next((f for f in found.log_files if f.size < 0), None)
        if missing is None:
            slices.append(found)
            continue
        gone = replaced_in_archive(snapshot) if gone is None else gone
        if group not in gone:
            raise missing_file(files[group][missing.path], snapshot.storage.uri)
    first_active = snapshot.timeline.first_active if builder.by_completion else ""
    return slices, known_ranges(slices, committed, first_active)


def _add_unlisted(
    logs: dict[Group, dict[str, LogFile]],
    committed: Mapping[Group, Iterable[str]],
    bases: Container[Group],
    builder: SliceBuilder,
) -> None:
    """Add unlisted committed log files, with size -1, so that a slice misses them."""
    for group, paths in committed.items():
        there = logs.get(group, {})
        known = group in bases or group in logs
        for path in paths:
            log = None if path in there else parse_log_file(group[0], path.rpartition("/")[2])
            if log is not None and (known or builder.counts(log.instant)):
                logs.setdefault(group, {})[path] = log


def checked_slices(
    snapshot: TableSnapshot,
    listing: Mapping[str, Sequence[FileInfo]],
    written: CommittedFileGroups,
    *,
    partitions: Collection[str] | None = None,
    wanted: PartitionFilter | None = None,
) -> tuple[list[FileSlice], CommittedLogs]:
    """`merged_slices` for freshly listed folders, with a check for deleted files.

    Args:
        partitions: the only ones that were listed; None for all.
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

    snapshot.checked(written, find, logs=True, partitions=partitions, wanted=wanted)
    return found


def hidden_logs(snapshot: TableSnapshot) -> list[LogFile]:
    """Log files of a copy-on-write table's state, from when it was merge on read."""
    if snapshot.config.table_type == MERGE_ON_READ or not snapshot.has_merged_states:
        return []
    slices, _ = merged_slices(snapshot, snapshot.listing().files)
    return [f for s in slices for f in s.log_files]


def refuse_hidden_logs(snapshot: TableSnapshot) -> None:
    """Refusal of a copy-on-write table's state that has rows in log files.

    Raises:
        UnsupportedError: readers and writers would go by the base files alone.
    """
    logs = hidden_logs(snapshot)
    if logs:
        raise UnsupportedError(
            f"the table is copy on write now, and {len(logs):,} log files of that state hold rows, which it would "
            "not show",
            table=snapshot.storage.uri, file=logs[0].path,
            remedy="make it merge on read again (`hudi repair overwrite-hoodie-props`, with "
            "hoodie.table.type=MERGE_ON_READ), and then do this.",
        )  # fmt: skip


def newest_slices(
    snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]] | None = None
) -> list[FileSlice]:
    """Newest slices of a table of either type, sorted by partition and file id.

    Args:
        listing: the files of its partitions, where they are known already.
    """
    written = snapshot.written()
    found = snapshot.listing(written=written).files if listing is None else listing
    if snapshot.config.table_type == MERGE_ON_READ:
        return checked_slices(snapshot, found, written)[0]
    return file_slices(snapshot.checked_latest_of(FileView.of_listing(found), list(found), written))


def newest_slices_of(snapshot: TableSnapshot, partitions: Iterable[str] | None = None) -> list[FileSlice]:
    """Newest slices of a table of either type, in all or some partitions, sorted by group."""
    return newest_with_ranges(snapshot, partitions)[0]


def slices_of_groups(snapshot: TableSnapshot, groups: Collection[Group]) -> list[FileSlice]:
    """Newest slices of some file groups, sorted by group."""
    found = newest_slices_of(snapshot, {partition for partition, _ in groups}) if groups else ()
    return [s for s in found if (s.partition, s.file_id) in groups]


def newest_with_ranges(
    snapshot: TableSnapshot, partitions: Iterable[str] | None = None
) -> tuple[list[FileSlice], CommittedLogs]:
    """Newest slices as of `newest_slices_of`, and the committed ranges of their log files."""
    if snapshot.config.table_type != MERGE_ON_READ:
        refuse_hidden_logs(snapshot)
        return snapshot.slices(partitions), {}
    written = snapshot.written()
    if partitions is None:
        return checked_slices(snapshot, snapshot.listing(written=written).files, written)
    listing = list_partition_files(snapshot.storage, partitions)
    return checked_slices(snapshot, listing, written, partitions=listing)


def every_slice(snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]]) -> list[FileSlice]:
    """All slices of a listing, of any instant, sorted by group.

    A slice that tasks wrote twice is there with each base file.
    """
    bases, logs = files_by_group(listing)
    builder = SliceBuilder.of(snapshot, logs=bool(logs))
    out = []
    for group in sorted({*bases, *logs}):
        own = sorted(bases.get(group, ()), key=lambda b: b.name)
        attached = builder.attached(group, (b.instant for b in own), logs.get(group, ()))
        for instant, files in sorted(attached.items()):
            begun: list[BaseFile | None] = [b for b in own if b.instant == instant]
            if not begun and files:
                begun = [None]
            out += [FileSlice(*group, instant, base, tuple(files)) for base in begun]
    return out


def files_by_group(
    listing: Mapping[str, Sequence[FileInfo]],
    counts: Callable[[BaseFile | LogFile], bool] = lambda _: True,
    *,
    cdc: bool = False,
) -> tuple[dict[Group, list[BaseFile]], dict[Group, list[LogFile]]]:
    """Base files and log files of a listing by file group; other files are left out.

    Args:
        counts: whether a file is wanted; asked in the order of the listing.
        cdc: whether files of captured changes count as log files.
    """
    bases: dict[Group, list[BaseFile]] = {}
    logs: dict[Group, list[LogFile]] = {}
    for partition, entries in listing.items():
        for entry in entries:
            base = parse_base_file(partition, entry.name, entry.size)
            if base is not None:
                if counts(base):
                    bases.setdefault((partition, base.file_id), []).append(base)
                continue
            log = parse_log_file(partition, entry.name, entry.size)
            if log is None and cdc:
                log = parse_cdc_file(partition, entry.name, entry.size)
            if log is not None and counts(log):
                logs.setdefault((partition, log.file_id), []).append(log)
    return bases, logs


def known_ranges(
    slices: Iterable[FileSlice],
    committed: Mapping[str, Sequence[CommittedRange] | None],
    first_active: str = "",
) -> CommittedLogs:
    """Committed byte ranges of the slices' log files (`corruption.check_file`).

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


def refuse_shortened(
    slices: Iterable[FileSlice], committed: Mapping[str, Sequence[CommittedRange] | None], *, table: str
) -> None:
    """Refuse log files that end before what completed instants wrote into them.

    That a file lost whole blocks, none of its bytes tells.

    Args:
        committed: as of `known_ranges`.

    Raises:
        CorruptFileError: such a file.
    """
    for file in (f for s in slices for f in s.log_files):
        last = max(committed.get(file.path) or (), key=lambda part: part.end, default=None)
        if last is not None and 0 <= file.size < last.end:
            raise CorruptFileError(
                f"committed data is missing: the file ends at byte {file.size}, but the instant's blocks extend to "
                f"byte {last.end}",
                table=table, file=file.path, instant=last.instant, offset=file.size,
            )  # fmt: skip


def pending_compactions(snapshot: TableSnapshot, *, without: str = "") -> dict[Group, str]:
    """Pending compaction instant of each planned file group.

    Args:
        without: the instant of a plan that is not read.

    Raises:
        CorruptFileError: a plan that cannot be read.
        MissingFileError: it is not there any more; without it, what was in a slice before is not known.
    """
    out: dict[Group, str] = {}
    storage = snapshot.storage
    for instant in snapshot.timeline.pending(COMPACTION):
        if instant.time == without:
            continue
        try:
            out.update(dict.fromkeys(planned_groups(storage, instant), instant.time))
        except CorruptFileError as e:
            # Deleted, it would take along what was appended to the slices that it began.
            e.remedy = (
                "do not delete the pending plan; in a table of version 6 make it anew: "
                f"`hudi compact repair PATH {instant.time}`."
            )
            raise
    return out


def planned_groups(storage: Storage, compaction: Instant) -> list[Group]:
    """File groups in the plan of a compaction or log compaction.

    Raises:
        CorruptFileError, MissingFileError: it cannot be read, or is not there any more.
    """
    try:
        path = compaction.path_in(REQUESTED)
        plan = read_record(storage, "HoodieCompactionPlan", path, compaction.time)
    except FileNotFoundError:  # taken back since the listing, or completed and archived
        raise plan_gone(storage, compaction) from None
    return [(o.get("partitionPath") or "", o.get("fileId") or "") for o in plan.get("operations") or ()]


def add_range(ranges: dict[str, list[CommittedRange] | None], instant: Instant, stat: FileStat) -> None:
    """Add a completed instant's range of a log file; None from an unknown size on."""
    part = committed_range(instant.time, {"fileSizeInBytes": stat.size, "logOffset": stat.offset})
    known = ranges.setdefault(stat.path, [])
    if part is None:
        ranges[stat.path] = None
    elif known is not None:
        known.append(part)


def committed_logs(
    snapshot: TableSnapshot,
) -> tuple[dict[str, list[CommittedRange] | None], dict[Group, dict[str, CommittedBaseFile]]]:
    """Committed ranges by path (None if unknown), and log files by group and path."""
    ranges: dict[str, list[CommittedRange] | None] = {}
    files: dict[Group, dict[str, CommittedBaseFile]] = {}
    instants = snapshot.instants
    for instant, commit in zip(instants, snapshot.commits.files(instants), strict=True):
        for stat in commit.files:
            log = parse_log_file(stat.partition, stat.path.rpartition("/")[2])
            if log is None:
                continue
            add_range(ranges, instant, stat)
            by_path = files.setdefault((stat.partition, log.file_id), {})
            by_path.setdefault(stat.path, CommittedBaseFile(stat.path, stat.size, instant.time))
    return ranges, files
