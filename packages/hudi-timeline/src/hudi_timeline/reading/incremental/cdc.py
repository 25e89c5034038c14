"""Change data capture (CDC) planning: changes of each commit per file group.

The rows of a commit are told in one of five ways: by the changes that its writer logged beside the files; all
inserted, where it began a file group; all deleted, where it replaced one; by its log records against the slice
before them; and else, where nothing was logged, by the file before against the file after.  In the last case
Apache Hudi gives an error.

Source: spec "Queries", section 5; HoodieCDCExtractor of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_format.errors import ConflictingOptionError, CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.file_names import parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.file_slice.bootstrap import INSTANT as SKELETONS
from hudi_format.model import BaseFile, FileSlice, LogFile, WriteStat, join_path
from hudi_timeline.file_system_view.base_files import CommittedBaseFile, Group, check_size, missing_file
from hudi_timeline.file_system_view.file_slice_history import FileHistory, latest_before, slice_named
from hudi_timeline.file_system_view.partition_values import PARTITION
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.read_config import ReadConfig
from hudi_timeline.options.read_options import ERROR, FULL_SCAN, ON_MISSING, SKIP
from hudi_timeline.reading.incremental.incremental_range import (
    Range,
    RangeSource,
    incremental_range,
    is_start,
)
from hudi_timeline.reading.merged_query import merged_schema, read_merge
from hudi_timeline.reading.plan import (
    CHANGES,
    COMPARED,
    DELETED,
    FILES_SCHEMA,
    INSERTED,
    JSON,
    LOGGED,
    RECORDS,
    ChangeUnit,
    FileDecision,
    ScanPlan,
    SliceLogs,
    as_file,
)
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import Instant

# Operations that lay rows out anew, or touch none.
_SAME_ROWS = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX", "ALTER_SCHEMA", "BUCKET_RESCALE"})


def changes_schema(table: pa.Schema, images: str) -> pa.Schema:
    """Columns of a CDC query.

    Args:
        table: the table's columns without meta columns.
        images: JSON, texts as Apache Hudi gives them; STRUCT, the columns of the row.
    """
    image = pa.string() if images == JSON else pa.struct([f.with_nullable(True) for f in table])
    return pa.schema([("op", pa.string()), ("ts_ms", pa.string()), ("before", image), ("after", image)])


def changes_range(snapshot: TableSnapshot, begin: str, end: str | None, options: ReadConfig) -> Range:
    """Commits in (begin, end] of a CDC query.

    Raises:
        ConflictingOptionError: the whole table is to be read where commits are archived.
        InstantNotFoundError, HollowCommitError: as `incremental_range`; the first of them also where all commits of a
            range from the table's start are archived, unless the options ask for what is left.
    """
    if options.on_missing == FULL_SCAN or options.fallback_full_scan:
        raise ConflictingOptionError(
            f"{ON_MISSING}={FULL_SCAN} cannot go with change data capture: rows do not say what they were",
            remedy="begin at a later instant.",
            option=ON_MISSING,
        )
    defaults = options.on_missing is None
    if defaults:
        options = replace(options, on_missing=SKIP if is_start(begin) else ERROR)
    found = incremental_range(snapshot, begin, end, options, changes=True)
    if defaults and found.gone and not found.instants:
        # A reader that goes on at the range's end would never know that there were changes.
        options = replace(options, on_missing=ERROR)
        return incremental_range(snapshot, begin, end, options, changes=True)
    return found


@dataclass(frozen=True, slots=True)
class ChangesSource(RangeSource):
    """CDC query: plans and explains itself; its `schema` is that of `changes_schema`."""

    @property
    def title(self) -> str:
        end = self.range.end or "the newest commit"
        return f"each change of table {self.snapshot.config.name} after {self.range.begin}, up to {end}"

    def plan(self) -> ScanPlan:
        """Changes of the commits, oldest first.

        Raises:
            MissingFileError, CorruptFileError: a file that tells the changes is not there, or not as it was written.
        """
        snapshot = self.snapshot
        commits = [(i, snapshot.commits.get(i)) for i in self.range.instants]
        commits = [(i, m) for i, m in commits if m.operation not in _SAME_ROWS and not m.compacted]
        partitions = {p for _, m in commits for p in (*m.partition_to_stats, *m.replaced)}
        merged = snapshot.has_merged_states
        history = FileHistory(snapshot, partitions, logs=merged)
        units: list[ChangeUnit] = []
        for instant, metadata in commits:
            found = _deletes_first(_of_commit(history, instant, metadata, snapshot.storage.uri), metadata)
            if (
                not snapshot.config.version.names_logs_by_own_instant
            ):  # their files hold blocks of several commits
                latest = latest_before(instant.time)
                found = [replace(u, before_latest=latest) for u in found]
            units += found
        files = (f for u in units for f, _ in u.told_by())
        if snapshot.config.bootstrap_base_path and any(f.instant == SKELETONS for f in files):
            raise UnsupportedError(
                "changes of rows whose data lie in the source files of a bootstrap cannot be determined",
                table=snapshot.storage.uri,
                remedy="begin at an instant after which those file groups were written again.",
            )
        warnings: tuple[str, ...] = ()
        if not self.range.complete:
            warnings = (
                f"the result holds no changes of instants before {snapshot.timeline.first_active}, the oldest that can "
                "be read: they are archived",
            )
        return ScanPlan(
            kind=CHANGES,
            uri=snapshot.storage.uri,
            files=_files(units),
            schema=self.schema,
            partition_columns=(),
            partition_values=pa.table({PARTITION: pa.array([], pa.string())}),
            complete=self.range.complete,
            warnings=warnings,
            merge=read_merge(snapshot, self.options),
            table_schema=merged_schema(snapshot.config, snapshot.schema),
            changes=tuple(units),
            nulls_kept=snapshot.config.version.images_keep_nulls,
            evolution=snapshot.evolution,
        )

    def fates(self) -> Iterator[FileDecision]:
        """Decision for every file with changes, or with images before and after them."""
        for unit in self.plan().changes:
            if unit.deletes:  # the same files tell the group's other changes
                continue
            for file, why in unit.told_by():
                yield FileDecision(file, True, f"{why} {unit.instant}")
        for instant in self.range.instants:
            metadata = self.snapshot.commits.get(instant)
            if metadata.operation in _SAME_ROWS or metadata.compacted:
                for stat in metadata.stats:
                    partition, _, name = stat.path.lstrip("/").rpartition("/")
                    base = parse_base_file(partition, name, stat.file_size_in_bytes)
                    log = parse_log_file(partition, name, stat.file_size_in_bytes)
                    skipped = base or (None if log is None else as_file(log))
                    if skipped is not None:
                        yield FileDecision(
                            skipped, False, f"{metadata.operation} at {instant.time} changes no rows"
                        )


def _deletes_first(units: Iterable[ChangeUnit], metadata: CommitMetadata) -> list[ChangeUnit]:
    """The changes of a commit in an order in which who applies them by record key has its rows.

    A key goes from one file group and comes in another where it moves to another partition, and where file groups are
    replaced: there its delete comes before its insert.
    """
    stats = [s for s in metadata.stats if s.path]
    takes = {(s.partition, s.file_id) for s in stats if s.num_deletes > 0}
    gives = {s.partition for s in stats if s.num_inserts > 0}
    first: list[ChangeUnit] = []
    rest: list[ChangeUnit] = []
    for unit in units:
        if unit.kind == DELETED:
            first.append(unit)
        elif (unit.partition, unit.file_id) in takes and gives - {unit.partition}:
            first.append(replace(unit, deletes=True))
            rest.append(replace(unit, deletes=False))
        else:
            rest.append(unit)
    return [*first, *rest]


def _of_commit(
    history: FileHistory, instant: Instant, metadata: CommitMetadata, uri: str
) -> Iterator[ChangeUnit]:
    """Changes of one commit, group by group."""
    for partition in sorted({*metadata.partition_to_stats, *metadata.replaced}):
        by_group: dict[str, list[WriteStat]] = {}
        for stat in metadata.partition_to_stats.get(partition, ()):
            by_group.setdefault(stat.file_id, []).append(stat)
        for file_id in sorted({*by_group, *metadata.replaced.get(partition, ())}):
            group = (partition, file_id)
            if file_id in metadata.replaced.get(partition, ()):
                before = _before(history, group, instant, None, uri)
                if before is not None:
                    yield ChangeUnit(DELETED, instant.time, *group, before=_slice_logs(history, before))
            yield from _of_group(history, group, instant, by_group.get(file_id, []), uri)


def _of_group(
    history: FileHistory, group: Group, instant: Instant, stats: list[WriteStat], uri: str
) -> Iterator[ChangeUnit]:
    logs: list[LogFile] = []
    for stat in stats:
        if not stat.path:
            continue
        path = stat.path.lstrip("/")
        name = path.rpartition("/")[2]
        log = parse_log_file(group[0], name)
        if log is not None:
            logs.append(replace(log, size=_there(history, path, stat, instant, uri)))
            continue
        base = parse_base_file(group[0], name)
        if base is not None:
            base = replace(base, size=history.sizes.get(base.path, -1))
            yield from _of_base_file(history, group, instant, stat, base, uri)
    if logs:
        stat = next(s for s in stats if parse_log_file(group[0], s.path.rpartition("/")[2]) is not None)
        before = _before(history, group, instant, stat, uri)
        told = _slice_logs(history, FileSlice(*group, logs[0].instant, None, tuple(logs)))
        latest = latest_before(instant.time) if slice_named(instant.time, [stat.path]) else ""
        yield ChangeUnit(
            RECORDS,
            instant.time,
            *group,
            before=_slice_logs(history, before),
            records=told,
            before_latest=latest,
        )


def _of_base_file(
    history: FileHistory, group: Group, instant: Instant, stat: WriteStat, base: BaseFile, uri: str
) -> Iterator[ChangeUnit]:
    def written() -> BaseFile:
        return replace(base, size=_there(history, base.path, stat, instant, uri))

    cdc = stat.extra.get("cdcStats")
    if isinstance(cdc, dict) and cdc:
        files = []
        for path, size in cdc.items():
            file = parse_cdc_file(group[0], str(path).rpartition("/")[2])
            if file is None:
                raise CorruptFileError(
                    f"{path!r} is not the name of a CDC file",
                    table=uri,
                    instant=instant.time,
                    file=instant.path,
                    remedy="restore the instant's file from a backup.",
                )
            found = history.sizes.get(file.path)
            told = CommittedBaseFile(file.path, size if isinstance(size, int) else 0, instant.time)
            if found is None:
                raise _gone(told, uri)
            check_size(told, found, uri)
            files.append(replace(file, size=found))
        before: FileSlice | None = None
        with suppress(MissingFileError):  # told where it is needed: other logging modes hold the rows before
            before = _before(history, group, instant, stat, uri)
        yield ChangeUnit(
            LOGGED, instant.time, *group, cdc=tuple(files), after=base, before=_slice_logs(history, before)
        )
        return
    fresh = stat.num_update_writes == 0 and stat.num_deletes == 0 and stat.num_writes == stat.num_inserts
    if fresh and history.before(group, instant.time) is None:
        yield ChangeUnit(INSERTED, instant.time, *group, after=written())
        return
    before = _before(history, group, instant, stat, uri)
    if stat.num_writes == 0 and stat.num_deletes and before is not None:
        # All of them are gone, as of a replaced group: Apache Hudi does not compare either.
        yield ChangeUnit(DELETED, instant.time, *group, before=_slice_logs(history, before))
        return
    yield ChangeUnit(COMPARED, instant.time, *group, after=written(), before=_slice_logs(history, before))


def _before(
    history: FileHistory, group: Group, instant: Instant, stat: WriteStat | None, uri: str
) -> FileSlice | None:
    """The slice before a commit.

    Args:
        stat: what the commit wrote; None for a group that it replaced.

    Raises:
        MissingFileError: it is not there any more.
    """
    place = join_path(*group)
    if stat is None:
        replaced = history.replaced(group, instant.time)
        if replaced is None:
            raise _gone(CommittedBaseFile(place, 0, instant.time), uri)
        return replaced
    begun = slice_named(instant.time, [stat.path])
    found = history.before(group, instant.time, begun)
    none = {"null", instant.time, *history.compactions}
    previous = "" if stat.prev_commit in none else stat.prev_commit
    base = stat.extra.get("baseFile")
    have = None if found is None or found.base_file is None else found.base_file
    if isinstance(base, str) and base and (have is None or have.name != base):
        raise _gone(CommittedBaseFile(join_path(group[0], base), 0, instant.time), uri)
    if previous and (found is None or found.base_instant < previous):
        raise _gone(CommittedBaseFile(place, 0, previous), uri)
    names = stat.extra.get("logFiles")
    if isinstance(names, list):
        mine = stat.path.rpartition("/")[2]
        there = {f.name for f in found.log_files} if found is not None else set()
        for name in names:
            if name != mine and not str(name).endswith(".cdc") and name not in there:
                raise _gone(CommittedBaseFile(join_path(group[0], str(name)), 0, instant.time), uri)
    lost = "" if begun else history.lost(group, instant.time, found)
    if lost:
        raise _gone(CommittedBaseFile(join_path(group[0], lost), 0, instant.time), uri)
    return found


def _there(history: FileHistory, path: str, stat: WriteStat, instant: Instant, uri: str) -> int:
    """Size of a file written by a commit."""
    told = CommittedBaseFile(path, stat.file_size_in_bytes, instant.time)
    found = history.sizes.get(path)
    if found is None:
        raise _gone(told, uri)
    if parse_log_file("", path.rpartition("/")[2]) is None:
        check_size(told, found, uri)
    return found


def _gone(file: CommittedBaseFile, uri: str) -> MissingFileError:
    error = missing_file(file, uri)
    error.remedy = f"if the cleaner removed it, begin at a later instant; else {error.remedy}"
    return error


def _slice_logs(history: FileHistory, part: FileSlice | None) -> SliceLogs | None:
    return None if part is None else SliceLogs.of(part, history.committed)


def _files(units: list[ChangeUnit]) -> pa.Table:
    rows = {f.path: f for u in units for f, _ in u.told_by()}
    columns = list(
        zip(*((f.path, f.partition, f.size, f.instant, f.file_id) for f in rows.values()), strict=True)
    )
    columns = columns or [()] * len(FILES_SCHEMA)
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, FILES_SCHEMA, strict=True)], schema=FILES_SCHEMA
    )
