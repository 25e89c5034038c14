"""Incremental query planning: rows of commits in (begin, end], in their newest state.

Source: spec "Queries", section 4; IncrementalRelation of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_format.arrow.arrays import flags
from hudi_format.errors import (
    CorruptFileError,
    HollowCommitError,
    InstantNotFoundError,
    MissingFileError,
    UnsupportedError,
)
from hudi_format.file_names import parse_base_file
from hudi_format.model import BaseFile, join_path
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage import stable_reads
from hudi_format.storage.protocol import has_no_folders
from hudi_timeline.file_system_view.base_files import (
    CommittedBaseFile,
    Group,
    check_size,
    missing_file,
    table_of,
)
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.partition_values import (
    partition_columns,
    path_values,
    with_times_as_text,
)
from hudi_timeline.file_system_view.restores import no_loss
from hudi_timeline.file_system_view.snapshot import TableSnapshot, is_base_file
from hudi_timeline.options.read_config import ReadConfig, refuse_whole
from hudi_timeline.options.read_options import (
    BLOCK,
    COMPLETION,
    ERROR,
    FULL_SCAN,
    FULL_SCAN_FALLBACK,
    HOLLOW_POLICY,
    ON_MISSING,
    PATH_GLOB,
    SKIP,
    STABLE,
    START_ORDER,
    TRANSITION,
)
from hudi_timeline.reading.bootstrap import with_sources
from hudi_timeline.reading.path_globs import file_filter
from hudi_timeline.reading.plan import INCREMENTAL, FileDecision, Predicate, ScanPlan, as_file
from hudi_timeline.reading.snapshot_query import START, distinct, plan_files_table
from hudi_timeline.reading.stability import open_writes
from hudi_timeline.reading.time_travel import completed_by, first_open_write, has_archive, oldest_whole
from hudi_timeline.timeline.active_timeline import completed_at
from hudi_timeline.timeline.archived_timeline import archived_instants, archived_write_with_time
from hudi_timeline.timeline.instant import WRITE_ACTIONS, Instant, parse_instant, zone_of
from hudi_timeline.timeline.lsm_timeline import history_instants

log = logging.getLogger("hudi")

CLOCKS_APART_MS = 3_600_000
"""How far the clocks of writers and of the store may be apart."""


def by_completion(options: ReadConfig) -> bool:
    """Whether bounds are completion times."""
    return options.order == COMPLETION or (options.order is None and options.hollow_policy == TRANSITION)


def is_start(begin: str) -> bool:
    """Whether a begin means the first commit: zeros only."""
    return begin.strip("0") == ""


@dataclass(frozen=True, slots=True)
class Range:
    """Range of an incremental query.

    Attributes:
        begin: exclusive.
        end: inclusive; "" for the newest completed instant.
        instants: the completed writes in it, oldest first.
        gone: the newest write in it that was archived; "" where none was.
        on_missing: ERROR, FULL_SCAN or SKIP.
        by_completion: whether begin and end are times at which commits were completed.
        archived: times of the completed writes in it that a history still names (table version 8 and later).
        checkpoint: what to begin the next read at.
    """

    begin: str
    end: str
    instants: tuple[Instant, ...]
    gone: str = ""
    on_missing: str = ERROR
    by_completion: bool = False
    checkpoint: str = START
    archived: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the active timeline has all commits of the range."""
        return not self.gone

    @property
    def bounds(self) -> tuple[str, str, bool]:
        """Bounds as in `ScanSource.bounds`."""
        last = max((i.time for i in self.instants), default=self.begin)
        return self.begin, self.end or (self.checkpoint if self.by_completion else last), self.by_completion

    @property
    def full_scan(self) -> bool:
        """Whether to read the whole table where commits or files of the range are gone."""
        return self.on_missing == FULL_SCAN


def incremental_range(
    snapshot: TableSnapshot, begin: str, end: str | None, options: ReadConfig, *, changes: bool = False
) -> Range:
    """Commits in (begin, end], by instant time, or by completion time from version 8 on.

    Args:
        changes: of rows are asked for: a table without meta columns will do, and the whole table will not.

    Raises:
        UnsupportedError: a table without meta columns, whose rows do not say when they were written.
        InstantNotFoundError: commits after begin were archived, and begin is not the table's start, nor do
            the options say what to do then; the message names the oldest instant that can be begun from.
        HollowCommitError, ConflictingOptionError: see `ReadConfig.hollow_policy` and `refuse_whole`.
    """
    uri = snapshot.storage.uri
    if not snapshot.config.populate_meta_fields and not changes:
        raise UnsupportedError(
            "incremental queries need the meta columns, which this table does not fill",
            table=uri,
            remedy="compare two snapshots (as_of), or rewrite the table with hoodie.populate.meta.fields=true.",
        )
    timeline = snapshot.timeline
    if snapshot.config.version.has_completion_times:
        if options.order in (STABLE, START_ORDER):
            raise UnsupportedError(
                f"order={options.order!r}: from table version 8 on, a range is given in completion times",
                table=uri,
                remedy=f"use order={COMPLETION!r}, which neither waits nor misses a commit.",
            )
        return _completed_range(snapshot, begin, end, options, changes)
    if by_completion(options):
        refuse_whole(options, uri)
        completed = completion_times(snapshot)
        chosen = tuple(i for i, at in completed.items() if begin < at <= (end or "~"))
        checkpoint = max((completed[i] for i in chosen), default=begin)
        first = min(completed.values(), default="")
        gone = _gone_or_refused(snapshot, begin, end, first, options, changes)
        return Range(begin, end or "", chosen, *gone, by_completion=True, checkpoint=checkpoint)
    writes = timeline.completed_writes()
    if end is not None:
        writes = tuple(i for i in writes if i.time <= end)
    pending = first_open_write(snapshot.storage, timeline)
    final = writes
    if pending is not None and any(i.time > pending.time for i in writes):
        if options.order not in (STABLE, START_ORDER) and options.hollow_policy != BLOCK:
            blocking = open_writes(snapshot.storage, timeline, until=writes[-1].time)
            raise HollowCommitError(
                f"the {pending.action} {pending.time} is not completed, later ones are: "
                "reading past it now would miss its rows for good; " + "; ".join(str(b) for b in blocking),
                table=uri,
                instant=pending.time,
                remedy=f"end before {pending.time}, set {HOLLOW_POLICY}={BLOCK} to read up to it, "
                "or let a next write roll it back if its writer is dead.",
                blocked_by=blocking,
            )
        final = tuple(i for i in writes if i.time < pending.time)
        writes = writes if options.order == START_ORDER else final
    chosen = tuple(i for i in writes if i.time > begin)
    gone = _gone_or_refused(snapshot, begin, end, timeline.first_active, options, changes)
    # Never beyond what is open: the next read may give rows again, and never misses one.
    checkpoint = max((i.time for i in final if i.time > begin), default=begin)
    return Range(begin, end or "", chosen, *gone, checkpoint=checkpoint)


def _completed_range(
    snapshot: TableSnapshot, begin: str, end: str | None, options: ReadConfig, changes: bool
) -> Range:
    """Commits completed in (begin, end], for timelines with completion times.

    None can turn up later in a range that was read: a time of completion is given when the commit is published.
    As in Apache Hudi 1.x the whole table is read where commits or files of the range are gone, unless the options
    say otherwise.
    """
    completed = completion_times(snapshot)
    last = end or "~"
    chosen = tuple(i for i, at in completed.items() if begin < at <= last)
    first = min(completed.values(), default="")
    on_missing = options.on_missing or FULL_SCAN
    if options.fallback_full_scan is False and options.on_missing is None:
        on_missing = SKIP if is_start(begin) else ERROR
    past = archived_instants(snapshot.storage, snapshot.config) if begin < first else _late(snapshot, begin)
    # An archival first writes its archive, then removes files: what is in both places is there.
    is_no_loss = no_loss(snapshot)
    archived = [
        i
        for i in past
        if i.action in WRITE_ACTIONS and begin < i.completion <= last and not is_no_loss(i.time)
    ]
    gone = max((i.completion for i in archived), default="")
    if gone and on_missing == ERROR:
        raise _archived_error(snapshot, begin, gone, first, changes)
    checkpoint = max((completed[i] for i in chosen), default=begin)
    times = tuple(i.time for i in archived)
    return Range(begin, end or "", chosen, gone, on_missing, True, checkpoint, times)


def _late(snapshot: TableSnapshot, begin: str) -> tuple[Instant, ...]:
    """Archived instants that may have been completed after `begin`.

    Archival goes by the times of requests: what a writer that took long completes last may be archived first.
    Apache Hudi 1.2.0 leaves the rows of such a write out, for good where a reader follows its checkpoints.
    """
    storage = snapshot.storage
    try:
        return history_instants(
            storage, snapshot.config, written_since_ms=_archiving_since_ms(snapshot, begin)
        )
    except (CorruptFileError, MissingFileError) as e:
        log.warning("%s: the archived timeline cannot be read, so commits may be missing: %s", storage.uri, e)
        return ()


def _archiving_since_ms(snapshot: TableSnapshot, begin: str) -> int:
    """Earliest write time of archive files with instants completed after `begin`."""
    try:
        moment = parse_instant(begin).replace(tzinfo=zone_of(snapshot.config.timezone))
    except ValueError:  # a begin that is no time: all files
        return 0
    # Whatever archives an instant writes its file after the instant was completed.
    return round(moment.timestamp() * 1000) - CLOCKS_APART_MS


def latest_checkpoint(snapshot: TableSnapshot, options: ReadConfig) -> str:
    """Latest checkpoint that misses no pending commit; "" where there is no commit."""
    if snapshot.config.version.has_completion_times or by_completion(options):
        return max(completion_times(snapshot).values(), default="")
    pending = first_open_write(snapshot.storage, snapshot.timeline)
    times = (i.time for i in snapshot.timeline.completed_writes() if pending is None or i.time < pending.time)
    return max(times, default="")


def completion_times(snapshot: TableSnapshot) -> dict[Instant, str]:
    """Completion times of the completed writes, as instant times in the table's zone.

    Version 6 does not say it otherwise than by the modification time of the completed file.  One that was still being
    filled when the timeline was listed counts as completed later.
    """
    zone = zone_of(snapshot.config.timezone)
    writes = snapshot.timeline.completed_writes()
    return {i: completed_at(i, zone) for i in writes if i.completion or _at_rest(snapshot, i)}


def _at_rest(snapshot: TableSnapshot, instant: Instant) -> bool:
    """Whether a completed instant's file was whole when listed, so that its time is final."""
    storage = snapshot.storage
    if has_no_folders(storage) or abs(time.time() - instant.mtime_ms / 1000) > stable_reads.YOUNG_S:
        return True
    snapshot.commits.get(instant)  # waits until it is whole
    found = storage.info(instant.path)
    return found is None or found.mtime_ms == instant.mtime_ms


def _gone_or_refused(
    snapshot: TableSnapshot, begin: str, end: str | None, first: str, options: ReadConfig, changes: bool
) -> tuple[str, str]:
    """Archived commits of a range, and how to handle them; see `Range.gone` and `.on_missing`.

    Args:
        first: the oldest time on the active timeline.
    """
    on_missing = FULL_SCAN if options.fallback_full_scan else options.on_missing
    if on_missing is None:
        on_missing = SKIP if is_start(begin) else ERROR
    gone = ""
    if begin < first or by_completion(options):
        since_ms = 0 if begin < first else _archiving_since_ms(snapshot, begin)
        gone = _gone(snapshot, begin, end, by_completion(options), since_ms)
    if gone and on_missing == ERROR:
        raise _archived_error(snapshot, begin, gone, first, changes or by_completion(options))
    return gone, on_missing


def _archived_error(
    snapshot: TableSnapshot, begin: str, gone: str, first: str, never_whole: bool
) -> InstantNotFoundError:
    whole = "" if never_whole else f"{FULL_SCAN!r} reads the whole table, "
    return InstantNotFoundError(
        f"cannot read from {begin}: commits after it are archived, up to {gone}",
        table=snapshot.storage.uri,
        instant=begin,
        remedy=f"begin at {gone} or later, so that {first} is the oldest instant whose rows are read; "
        f"on_missing ({ON_MISSING}): {whole}{SKIP!r} what is on the active timeline.",
        oldest=first,
    )


def _gone(snapshot: TableSnapshot, begin: str, end: str | None, completion: bool, since_ms: int) -> str:
    """Newest archived commit in (begin, end]; the active timeline's start where unknown.

    Args:
        since_ms: files of the archive that were written before do not count; 0 where the begin is archived itself.
    """
    storage, config = snapshot.storage, snapshot.config
    if not has_archive(storage, config):
        return ""
    try:
        found = archived_write_with_time(
            storage, config, begin, end,
            by_completion=completion, unless=no_loss(snapshot), written_since_ms=since_ms,
        )  # fmt: skip
    except (CorruptFileError, UnsupportedError, MissingFileError) as e:
        log.warning("%s: the archived timeline cannot be read, so commits may be missing: %s", storage.uri, e)
        return "" if since_ms else snapshot.timeline.first_active
    return "" if found is None else found[0]


def incremental_schema(snapshot: TableSnapshot) -> pa.Schema:
    """Result columns: meta columns, then the table's in order; values come from the files."""
    table = with_times_as_text(snapshot.config, snapshot.schema)
    return with_meta(pa.schema([f.with_nullable(True) for f in table]))


@dataclass(frozen=True, slots=True)
class RangeSource:
    """Base of queries over a range of instants.

    Attributes:
        schema: the result's columns.
    """

    snapshot: TableSnapshot
    range: Range
    schema: pa.Schema
    options: ReadConfig
    predicate: Predicate | None = None

    @property
    def checkpoint(self) -> str:
        return self.range.checkpoint

    @property
    def bounds(self) -> tuple[str, str, bool]:
        return self.range.bounds

    def prunes_by(self, columns: Collection[str]) -> bool:
        """True: partitions and logged changes may be left out."""
        return True


@dataclass(frozen=True, slots=True)
class IncrementalSource(RangeSource):
    """An incremental query: plans and explains itself."""

    @property
    def title(self) -> str:
        end = self.range.end or "the newest commit"
        return f"changes of table {self.snapshot.config.name} after {self.range.begin}, up to {end}"

    def plan(self) -> ScanPlan:
        """Files to read.

        Raises:
            MissingFileError, CorruptFileError: a committed file is not there, or not as it was written.
        """
        if not self.range.complete and self.range.full_scan:
            return self._full_scan()
        try:
            return self._planned()
        except MissingFileError as e:
            if self.range.full_scan:
                return self._full_scan()
            if self.snapshot.config.version.ranges_skip_missing_files and self.options.on_missing == SKIP:
                return self._left(f"first {e.file}", lenient=True)
            raise

    def _planned(self) -> ScanPlan:
        """The plan, given that all commits and files exist."""
        return self._of_range(self._existing(self._written()[0]))

    def _of_range(self, files: list[BaseFile]) -> ScanPlan:
        """Plan of some base files, filtered by the commits of the range."""
        instants = self.range.instants
        warnings: tuple[str, ...] = ()
        if not self.range.complete:
            instead = f" (on_missing={FULL_SCAN!r} reads the whole table instead)"
            warnings = (
                f"the result may lack rows of instants before {self.snapshot.timeline.first_active}, the oldest that "
                f"can be read: they are archived{'' if by_completion(self.options) else instead}",
            )
        plan = self._plan_of(
            plan_files_table(table_of(files)),
            (instants[0].time, instants[-1].time) if instants and not self.range.by_completion else None,
            complete=self.range.complete,
            warnings=warnings,
        )
        # Commits that were completed in a range need not be neighbours by their own times.
        return (
            replace(plan, commit_times=tuple(i.time for i in instants)) if self.range.by_completion else plan
        )

    def _written(self) -> tuple[dict[Group, CommittedBaseFile], dict[Group, str]]:
        """Newest file of each group written in the range, and the groups replaced in it."""
        newest: dict[Group, CommittedBaseFile] = {}
        replaced: dict[Group, str] = {}
        for instant in self.range.instants:
            metadata = self.snapshot.commits.get(instant)
            for partition, stats in metadata.partition_to_stats.items():
                for stat in stats:
                    if stat.path and is_base_file(stat.path):
                        file = CommittedBaseFile(stat.path.lstrip("/"), stat.file_size_in_bytes, instant.time)
                        newest[partition, stat.file_id] = file
            replaced.update(dict.fromkeys(metadata.replaced_groups, instant.time))
        kept = {g: f for g, f in newest.items() if g not in replaced}
        if not self.options.incr_path_glob:
            return kept, replaced
        wanted = self._wanted()
        return {g: f for g, f in kept.items() if wanted(f.path)}, replaced

    def _wanted(self) -> Callable[[str], bool]:
        """Matcher of the option's path pattern."""
        matches = file_filter(self.options.incr_path_glob, PATH_GLOB)
        root = self.snapshot.storage.uri
        return lambda path: matches(f"{root}/{path}")

    def _sizes(self, partitions: Collection[str], written: Iterable[CommittedBaseFile]) -> dict[str, int]:
        """Sizes of the files in some partitions, by path.

        Raises:
            MissingFileError: one of those that were written is not there.
        """
        storage = self.snapshot.storage
        listing = list_partition_files(storage, partitions)
        sizes = {join_path(p, f.name): f.size for p, found in listing.items() for f in found}
        gone = next((f for f in written if f.path not in sizes), None)
        if gone is None:
            return sizes
        error = missing_file(gone, storage.uri)
        self._advise(error)
        raise error

    def _existing(self, written: dict[Group, CommittedBaseFile]) -> list[BaseFile]:
        sizes = self._sizes({p for p, _ in written}, written.values())
        out = []
        for (partition, _), file in written.items():
            check_size(file, sizes[file.path], self.snapshot.storage.uri)
            base = parse_base_file(partition, file.path.rpartition("/")[2], sizes[file.path])
            if base is not None:
                out.append(base)
        return sorted(out, key=lambda b: (b.partition, b.file_id))

    def _full_scan(self) -> ScanPlan:
        """The whole table at the end of the range, filtered by commit time.

        Where the cleaner has removed files of that state, and the options ask for this, it is the table as it is now,
        as in Apache Hudi; the plan is not complete then: what later commits changed is not there any more.

        Raises:
            MissingFileError: files of that state are gone, and the options do not say what to do then.
        """
        snapshot, end = self.snapshot, self.range.end
        if snapshot.config.version.has_completion_times:
            state = completed_by(snapshot, end) if end else snapshot
        else:
            oldest = end and oldest_whole(snapshot.storage, snapshot.config, snapshot.timeline, end)
            if end < oldest:
                return self._left(f"of instants before {oldest}")
            state = replace(snapshot, as_of=end or max((i.time for i in self.range.instants), default=""))
        try:
            return self._of_commits(self._whole(state))
        except MissingFileError as e:
            if end and (self.options.on_missing == FULL_SCAN or self.options.fallback_full_scan):
                return self._left(f"first {e.file}")
            self._advise(e)
            raise

    def _advise(self, error: MissingFileError) -> None:
        """Name what can be read without a missing file; where there is no end, no cleaner took it."""
        if self.range.end:
            whole = f", set on_missing={FULL_SCAN!r} ({FULL_SCAN_FALLBACK}=true) for the rows that are left"
            if not self.snapshot.config.version.has_completion_times and self.range.by_completion:
                whole = ""  # `refuse_whole`
            error.remedy = (
                f"if the cleaner removed it, end at a later commit or give no end{whole}; else {error.remedy}"
            )

    def _left(self, gone: str, *, lenient: bool = False) -> ScanPlan:
        """Rows of the range that are still in the table.

        Args:
            gone: which files are not there any more.
            lenient: read what is left of the present state too.
        """
        plan = self._of_commits(self._whole(replace(self.snapshot, lenient=lenient)))
        text = f"rows are missing from the result, because files of its commits are gone, {gone}"
        return replace(plan, complete=False, warnings=(*plan.warnings, text))

    def _of_commits(self, plan: ScanPlan) -> ScanPlan:
        """Plan of a whole state, filtered by the commits of the range."""
        begin, end, instants = self.range.begin, self.range.end, self.range.instants
        if not self.snapshot.config.version.has_completion_times:
            last = end or (instants[-1].time if instants else "")
            # Nothing sorts between `begin` and `begin` with a digit after it.
            return replace(plan, kind=INCREMENTAL, commit_time_range=(f"{begin}0", last))
        if is_start(begin) and not end:
            return replace(plan, kind=INCREMENTAL)
        times = (*self.range.archived, *(i.time for i in instants))
        return replace(plan, kind=INCREMENTAL, commit_times=times)

    def _whole(self, snapshot: TableSnapshot) -> ScanPlan:
        """Plan of all files of a snapshot."""
        files = plan_files_table(snapshot.files())
        if self.options.incr_path_glob:
            wanted = self._wanted()
            files = files.filter(flags([wanted(p) for p in files.column("path").to_pylist()]))
        return self._plan_of(files, None)

    def _plan_of(
        self,
        files: pa.Table,
        times: tuple[str, str] | None,
        *,
        complete: bool = True,
        warnings: tuple[str, ...] = (),
    ) -> ScanPlan:
        snapshot = self.snapshot
        config = snapshot.config
        # Where files lack the partition columns, Apache Hudi 0.15 gives nulls of copy-on-write tables only; 1.x gives
        # what paths say, as text that it does not decode: here it is decoded, as in its snapshots.
        from_path = (
            self.options.extract_partition_values_from_path
            or config.version.paths_tell_partition_values
            or (config.drop_partition_columns and config.table_type == "MERGE_ON_READ")
        )
        columns_ = partition_columns(config, snapshot.schema, from_path=from_path)
        values = path_values(distinct(files.column("partition")), columns_, uri=snapshot.storage.uri)
        plan = ScanPlan(
            kind=INCREMENTAL,
            uri=snapshot.storage.uri,
            files=files,
            schema=self.schema,
            partition_columns=columns_,
            partition_values=values.table,
            untold=values.untold,
            commit_time_range=times,
            complete=complete,
            warnings=warnings,
            evolution=snapshot.evolution,
            nested_digits=snapshot.config.version.keeps_digits_of_floats,
        )
        return with_sources(plan, snapshot.storage, snapshot.config)

    def _fates_of_whole(self) -> Iterator[FileDecision]:
        reason = f"the whole table is read: commits up to {self.range.gone} are archived"
        plan = self._full_scan()
        for row in plan.files.to_pylist():
            whole = parse_base_file(row["partition"], row["path"].rpartition("/")[2], row["size"])
            if whole is not None:
                yield FileDecision(whole, True, reason)
        for part in plan.logs:
            for log in part.slice.log_files:
                yield FileDecision(as_file(log), True, reason)

    def fates(self) -> Iterator[FileDecision]:
        """Decision for every file written in the range, or read by a full scan."""
        if not self.range.complete and self.range.full_scan:
            yield from self._fates_of_whole()
            return
        newest, replaced = self._written()
        read = {f.path for f in newest.values()}
        for instant in self.range.instants:
            for stat in self.snapshot.commits.get(instant).stats:
                partition, _, name = stat.path.lstrip("/").rpartition("/")
                file = parse_base_file(partition, name, stat.file_size_in_bytes)
                if file is None:
                    continue
                group = (stat.partition, stat.file_id)
                if file.path in read:
                    yield FileDecision(file, True, "the newest file of its group in the range")
                elif group in replaced:
                    yield FileDecision(file, False, f"its file group was replaced at {replaced[group]}")
                elif group not in newest:
                    yield FileDecision(file, False, f"not of {PATH_GLOB}")
                else:
                    reason = f"an older version; the newest is of {newest[group].instant}"
                    yield FileDecision(file, False, reason, older=True)
