"""Scan plan: files to read, and the mapping of their columns to the result.

One plan serves both ways of running it: `hudi_timeline.reading.scan` reads the files with Arrow, the Spark
engine makes a native Parquet scan of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.partition_values import FROM_FILE, PARTITION, PartitionColumn

if TYPE_CHECKING:
    from hudi_format.file_slice.bootstrap import BootstrapSourceFile
    from hudi_format.file_slice.reader import SliceMerge
    from hudi_format.log.corruption import CommittedRange
    from hudi_format.schema.internal_schema import ReadEvolution
    from hudi_timeline.file_system_view.snapshot import TableSnapshot

SNAPSHOT = "snapshot"
INCREMENTAL = "incremental"
CHANGES = "changes"

# How images of changes are given.
JSON, STRUCT = "json", "struct"

BATCH_ROWS = 131_072
"""Of a stream, where the caller does not say."""

# How a commit's changes to a file group are told.
LOGGED = "logged"
INSERTED = "inserted"
DELETED = "deleted"
RECORDS = "records"
COMPARED = "compared"


FILES_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("instant", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class SliceLogs:
    """A file slice with log files, with or without a base file.

    Attributes:
        committed: what completed instants say that they wrote, by path of the log file.
    """

    slice: FileSlice
    committed: Mapping[str, tuple[CommittedRange, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, one: FileSlice, committed: Mapping[str, tuple[CommittedRange, ...]]) -> SliceLogs:
        """A slice, with what is known of its log files among others."""
        return cls(one, {f.path: committed[f.path] for f in one.log_files if f.path in committed})

    @property
    def size(self) -> int:
        """Size of the log files in bytes, as listed."""
        return self.slice.log_bytes


@dataclass(frozen=True, slots=True)
class ChangeUnit:
    """Changes of one commit in one file group.

    Attributes:
        kind: LOGGED: the files of `cdc` say it, `before` and `after` what those leave out; INSERTED: all rows of
            `after`; DELETED: all rows of `before`; RECORDS: the log records of `records` against `before`;
            COMPARED: `before` against `after`.
        before: the slice before the commit.
        before_latest: blocks of later instants in its logs do not count; "" where it has none.
        deletes: whether of these changes the deletes are given, or the others; None for all.
    """

    kind: str
    instant: str
    partition: str
    file_id: str
    cdc: tuple[LogFile, ...] = ()
    before: SliceLogs | None = None
    after: BaseFile | None = None
    records: SliceLogs | None = None
    before_latest: str = ""
    deletes: bool | None = None

    def told_by(self) -> Iterator[tuple[BaseFile, str]]:
        """Files to read, each with its purpose."""
        for log in self.cdc:
            yield as_file(log), "the changes that were logged with"
        if self.records is not None:
            for log in self.records.slice.log_files:
                yield as_file(log), "the records of"
        if self.after is not None:
            yield self.after, "rows after"
        if self.before is not None and self.kind != INSERTED:
            if self.before.slice.base_file is not None:
                yield self.before.slice.base_file, "rows before"
            for log in self.before.slice.log_files:
                yield as_file(log), "rows before"

    @property
    def size(self) -> int:
        """Size of those files in bytes, as listed."""
        return sum(max(f.size, 0) for f, _ in self.told_by())


@dataclass(frozen=True, slots=True, eq=False)
class ScanPlan:
    """Plan of a scan, as plain picklable values.

    Attributes:
        kind: SNAPSHOT (also time travel), INCREMENTAL or CHANGES.
        uri: the table's base path; paths in `files` are below it.
        files: columns as `FILES_SCHEMA`; one row for each base file to read; `path` is relative to the
            table, `size` in bytes as listed, `instant` the one in the file's name.
        schema: the result's columns in their order and types when every column is selected; meta columns
            first where the scan has them.
        partition_columns: the table's partition fields, also those that a selection leaves out.
        partition_values: one row for each partition that `files` names: its path in PARTITION, then one
            column of the type in `partition_columns` for each field with source FROM_PATH.
        untold: by partition, those of these columns whose value its path does not say: the files do.
        commit_time_range: only rows with first <= `_hoodie_commit_time` <= last count (both inclusive,
            compared as text); None where all rows of a file do.
        commit_times: only rows whose `_hoodie_commit_time` is one of these count; None where that does not matter.
        since: by path of a file, of which only rows with a later `_hoodie_commit_time` count.
        as_of: the instant of a time travel query, None for the newest state.
        complete: False where rows that the question covers cannot be given any more, because instants
            were archived.
        warnings: one sentence each, for the user.
        logs: the slices that have logs to merge; their base files are among `files`.
        merge: how, where there are any.
        sources: of skeleton files of a bootstrap, by their path: the file that holds the data columns.
        source_storage: where these are.
        nested_digits: floats of base files that are doubles now keep the digits that they print with inside of other
            columns too, as in tables of version 9 (Apache Hudi 1.2); others are the nearest doubles.
        evolution: how files are read by column id, where the table has a schema history; else None.
        table_schema: all columns of the table with meta columns, where there are any logs or changes.
        changes: of a change data capture query, what each commit did to each file group, oldest first.
        nulls_kept: whether images of rows that met log records keep null columns, as releases before 1.1 do.
    """

    kind: str
    uri: str
    files: pa.Table
    schema: pa.Schema
    partition_columns: tuple[PartitionColumn, ...]
    partition_values: pa.Table
    untold: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)
    commit_time_range: tuple[str, str] | None = None
    commit_times: tuple[str, ...] | None = None
    since: Mapping[str, str] = field(default_factory=dict)
    as_of: str | None = None
    complete: bool = True
    warnings: tuple[str, ...] = ()
    logs: tuple[SliceLogs, ...] = ()
    merge: SliceMerge | None = None
    table_schema: pa.Schema | None = None
    evolution: ReadEvolution | None = None
    changes: tuple[ChangeUnit, ...] = ()
    nulls_kept: bool = True
    sources: Mapping[str, BootstrapSourceFile] = field(default_factory=dict)
    source_storage: Storage | None = None
    nested_digits: bool = False

    @property
    def has_whole_files(self) -> bool:
        """Whether no row of its files is left out because of its commit."""
        return self.commit_time_range is None and self.commit_times is None and not self.since


@dataclass(frozen=True, slots=True)
class ToldAlike:
    """Files of a plan whose partition paths say the values of the same columns.

    Attributes:
        plan: of these files alone; what paths do not say is FROM_FILE in it.
        held: the columns that each of its files has to hold for that.
    """

    plan: ScanPlan
    held: tuple[str, ...] = ()


def told_alike(plan: ScanPlan) -> list[ToldAlike]:
    """The parts of a plan; itself alone where paths say all values."""
    if not plan.untold:
        return [ToldAlike(plan)]
    groups: dict[tuple[str, ...], list[str]] = {}
    for partition in pc.unique(plan.files.column("partition")).to_pylist():
        groups.setdefault(plan.untold.get(partition, ()), []).append(partition)
    parts = []
    for held, partitions in groups.items():
        wanted = pa.array(partitions, pa.string())
        files, values = (
            rows.filter(pc.is_in(rows.column(paths), value_set=wanted))
            for rows, paths in ((plan.files, "partition"), (plan.partition_values, PARTITION))
        )
        columns = tuple(replace(c, source=FROM_FILE) if c.name in held else c for c in plan.partition_columns)
        part = replace(
            plan,
            files=files,
            partition_columns=columns,
            partition_values=values.drop_columns(list(held)),
            untold={},
        )
        parts.append(ToldAlike(part, to_be_held(plan.partition_columns, held)))
    return parts


def to_be_held(columns: Sequence[PartitionColumn], untold: Sequence[str]) -> tuple[str, ...]:
    """Untold columns without which a file cannot be read; a copied one is null there."""
    return tuple(c.name for c in columns if c.name in untold and not c.copied)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A filter checked against a schema.

    Attributes:
        expression: true for the rows to keep; rows for which it is null are not kept.
        columns: the top-level columns that it needs, in the schema's order; never too few.
        text: for people.
        parts: predicates that all must hold where this one does, and the other way round; () for itself alone.
    """

    expression: pc.Expression
    columns: tuple[str, ...]
    text: str
    parts: tuple[Predicate, ...] = ()

    @property
    def conjuncts(self) -> tuple[Predicate, ...]:
        """Predicates that all must hold where this one does, and the other way round; one at least."""
        return self.parts or (self,)


@dataclass(frozen=True, slots=True)
class FileDecision:
    """Decision to read or skip a file, with the reason.

    Attributes:
        index: what ruled the file out, a partition of the metadata table or `bucket`; "" where none did.
        older: whether it is skipped because a newer version of its file group is read, as is the case of most files.
    """

    file: BaseFile
    read: bool
    reason: str
    index: str = ""
    older: bool = False


def as_file(log: LogFile) -> BaseFile:
    """A log file as the file of a `FileDecision`."""
    return BaseFile(log.partition, log.name, log.file_id, log.instant, log.write_token, log.size)


class ScanSource(Protocol):
    """A query that a `Scan` plans and runs."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result with all columns."""
        ...

    @property
    def snapshot(self) -> TableSnapshot:
        """The snapshot being queried."""
        ...

    @property
    def predicate(self) -> Predicate | None: ...

    @property
    def title(self) -> str: ...

    @property
    def checkpoint(self) -> str: ...

    @property
    def bounds(self) -> tuple[str, str, bool]:
        """Commit range (since, until], and whether its bounds are completion times."""
        ...

    def plan(self) -> ScanPlan: ...

    def prunes_by(self, columns: Collection[str]) -> bool:
        """Whether a filter on these columns may leave out files of the plan."""
        ...

    def fates(self) -> Iterator[FileDecision]: ...
