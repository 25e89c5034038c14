"""Snapshot and time travel queries: newest base file of each file group.

Source: spec "Queries", sections 2, 3 and 8; BaseFileOnlyRelation of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import flags
from hudi_format.errors import MissingFileError
from hudi_format.model import BaseFile, FileSlice
from hudi_format.schema.meta_fields import with_meta
from hudi_timeline.file_system_view.archived_replacements import with_archived
from hudi_timeline.file_system_view.base_files import FileView, Group, base_files, paths_of
from hudi_timeline.file_system_view.listing import PartitionFilter, ThesePartitions
from hudi_timeline.file_system_view.partition_values import (
    FROM_PATH,
    PartitionColumn,
    partition_columns,
    path_values,
    with_times_as_text,
)
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.read_options import ERROR, ON_MISSING, SKIP
from hudi_timeline.reading.partition_pruning import PartitionPruner
from hudi_timeline.reading.plan import (
    FILES_SCHEMA,
    SNAPSHOT,
    FileDecision,
    Predicate,
    ScanPlan,
)
from hudi_timeline.table_config import INDEX, TableConfig

if TYPE_CHECKING:
    from hudi_timeline.file_system_view.bucket_files import BucketChoice
    from hudi_timeline.metadata_table.data_skipping import Skipped
    from hudi_timeline.reading.path_globs import PathSelection

START = "000"
"""A begin before every instant."""


def snapshot_schema(config: TableConfig, table: pa.Schema, *, in_place: bool = False) -> pa.Schema:
    """Result columns: meta columns, data columns, then partition columns in their order.

    That is where Apache Hudi 0.15 puts columns whose value comes from the path; only in a bootstrapped table,
    with a schema history (`in_place`), and from table version 8 on, they stay where they are.  All are nullable:
    a path may say null.
    """
    columns = partition_columns(config, table, from_path=True)
    from_path = {c.name: pa.field(c.name, c.type) for c in columns if c.source == FROM_PATH}
    if config.bootstrap_base_path or in_place or config.version.partition_columns_stay:
        fields = [from_path.pop(f.name, f) for f in with_times_as_text(config, table)]
    else:
        fields = [f for f in table if f.name not in from_path]
    schema = pa.schema([f.with_nullable(True) for f in (*fields, *from_path.values())])
    return with_meta(schema) if config.populate_meta_fields else schema


def plan_files_table(files: pa.Table) -> pa.Table:
    """A `FILES_SCHEMA` table of a `view.SCHEMA` one."""
    columns = [paths_of(files), *(files.column(n) for n in ("partition", "size", "instant", "file_id"))]
    return pa.table(columns, schema=FILES_SCHEMA).combine_chunks()


def ruled_out(file: BaseFile, index: str) -> FileDecision:
    """Decision about a file that an index rules out."""
    return FileDecision(file, False, f"{index} has no row of it that passes the filter", index)


def distinct(column: pa.ChunkedArray) -> list[str]:
    """Sorted distinct values of a text column."""
    return sorted(pc.unique(column).to_pylist())


@dataclass(frozen=True, slots=True)
class SnapshotSource:
    """Snapshot query: plans and explains itself.

    Attributes:
        schema: see `snapshot_schema`.
        paths: the files to look at; None for all.
        on_missing: ERROR; or SKIP, which reads what is left of a state whose files were cleaned, with a warning.
        by_indexes: whether the metadata table's indexes may rule out files.
        groups: the file groups to look at; None for all.
    """

    snapshot: TableSnapshot
    schema: pa.Schema
    predicate: Predicate | None = None
    paths: PathSelection | None = None
    on_missing: str = ERROR
    by_indexes: bool = field(default=False, kw_only=True)
    groups: frozenset[Group] | None = field(default=None, kw_only=True)

    @property
    def columns(self) -> tuple[PartitionColumn, ...]:
        return partition_columns(self.snapshot.config, self.snapshot.schema, from_path=True)

    @property
    def title(self) -> str:
        at = f" as of {self.snapshot.as_of}" if self.snapshot.as_of else ""
        return f"snapshot{at} of table {self.snapshot.config.name}"

    @property
    def checkpoint(self) -> str:
        """Newest commit before any pending one.

        In tables of version 8 and later its completion time, before which no commit outside of the snapshot was
        completed.
        """
        timeline = self.snapshot.timeline
        if self.snapshot.config.version.has_completion_times:
            inside = set(self.snapshot.instants)
            outside = min((i.completion for i in timeline.completed_writes() if i not in inside), default="~")
            return max((i.completion for i in inside if i.completion < outside), default=START)
        from hudi_timeline.reading.time_travel import first_open_write

        pending = first_open_write(self.snapshot.storage, timeline)
        times = [i.time for i in self.snapshot.instants if pending is None or i.time < pending.time]
        return max(times, default=START)

    @property
    def bounds(self) -> tuple[str, str, bool]:
        return "", self.snapshot.as_of or self.snapshot.instant, False

    def _pruner(self) -> PartitionPruner | None:
        if self.predicate is None:
            return None
        return PartitionPruner(
            self.predicate.expression,
            self.schema,
            self.snapshot.config,
            self.columns,
            self.predicate.conjuncts,
        )

    def plan(self) -> ScanPlan:
        """Files to read.

        Raises:
            MissingFileError, CorruptFileError: a committed file is not there, or not as it was written.
            PartitionPathError: a folder whose name is no value of the partition columns.
            InvalidOptionError: `paths` where the table has nothing.
        """
        try:
            found = self._planned(self.snapshot)
        except MissingFileError as e:
            if self.on_missing != SKIP:
                e.remedy += f" on_missing={SKIP!r} ({ON_MISSING}) reads what is left, as Apache Hudi does."
                raise
            left = self._planned(replace(self.snapshot, lenient=True))
            text = f"rows are missing from the result, because files of that state are gone, first {e.file}"
            found = replace(left, complete=False, warnings=(*left.warnings, text))
        if self.paths is not None and not found.files.num_rows and not found.logs:
            listed = self.snapshot.listing().files  # of all partitions: a filter may have left some out
            names = {p: [f.name for f in of] for p, of in listed.items()}
            self.paths.refuse_if_nothing(self.snapshot.storage.uri, names)
        return found

    def prunes_by(self, columns: Collection[str]) -> bool:
        """Whether a filter on these columns may leave out files of the plan."""
        if self.by_indexes or INDEX in self.snapshot.config.properties:
            return True
        return not {c.name for c in self.columns}.isdisjoint(columns)

    def _planned(self, snapshot: TableSnapshot) -> ScanPlan:
        files = snapshot.files(wanted=self._wanted())
        if self.groups is not None:
            groups = zip(*(files.column(n).to_pylist() for n in ("partition", "file_id")), strict=True)
            files = files.filter(flags([g in self.groups for g in groups]))
        return self._plan_of(files)

    def _wanted(self) -> PartitionFilter | None:
        """Filter of the partitions to list."""
        pruner = self._pruner()
        if self.groups is None:
            return pruner
        partitions = sorted({p for p, _ in self.groups})
        kept = partitions if pruner is None else compress(partitions, pruner.keep(partitions))
        return ThesePartitions(frozenset(kept))

    def _plan_of(self, files: pa.Table) -> ScanPlan:
        snapshot = self.snapshot
        planned = self._in_wanted_buckets(plan_files_table(files))
        if self.paths is not None:
            planned = self.paths.keep(planned)
        planned, warnings = self._not_skipped(planned)
        values = path_values(distinct(files.column("partition")), self.columns, uri=snapshot.storage.uri)
        plan = ScanPlan(
            kind=SNAPSHOT,
            uri=snapshot.storage.uri,
            files=planned,
            schema=self.schema,
            partition_columns=self.columns,
            partition_values=values.table,
            untold=values.untold,
            as_of=snapshot.as_of,
            warnings=warnings,
            evolution=snapshot.evolution,
            nested_digits=snapshot.config.version.keeps_digits_of_floats,
        )
        if not snapshot.config.bootstrap_base_path:
            return plan
        from hudi_timeline.reading.bootstrap import with_sources

        return with_sources(plan, snapshot.storage, snapshot.config)

    def _buckets(self) -> BucketChoice | None:
        """Buckets that the filter's rows may be in, by the table's bucket index."""
        # The decoders of an index take longer to import than a plan takes, and few tables have this one.
        if self.predicate is None or INDEX not in self.snapshot.config.properties:
            return None
        from hudi_timeline.file_system_view.bucket_files import bucket_choice

        parts = [(p.expression, p.columns) for p in self.predicate.conjuncts]
        return bucket_choice(self.snapshot.config, self.schema, parts)

    def _in_wanted_buckets(self, files: pa.Table) -> pa.Table:
        """The files of a `FILES_SCHEMA` table whose bucket may have rows for the filter."""
        choice = self._buckets()
        if choice is None or not files.num_rows:
            return files
        groups = list(zip(*(files.column(n).to_pylist() for n in ("partition", "file_id")), strict=True))
        dropped = choice.dropped(groups, self.snapshot)
        return files.filter(flags([g not in dropped for g in groups])) if dropped else files

    @property
    def _is_newest(self) -> bool:
        """Whether the rows are those of the newest state, not of base files beside logs."""
        return self.snapshot.config.table_type != "MERGE_ON_READ"

    def _skipped(
        self, slices: Sequence[FileSlice], logged_by: frozenset[str] | None = None
    ) -> Skipped | None:
        """Files of slices that indexes rule out; None where they are not asked."""
        if not self.by_indexes or self.predicate is None:
            return None
        # Few reads go by indexes, whose decoders take long to import.
        from hudi_timeline.metadata_table.data_skipping import DataSkipping

        from_path = frozenset(c.name for c in self.columns if c.source == FROM_PATH)
        whole = self.predicate
        parts = tuple((p.expression, p.columns) for p in whole.conjuncts)
        skipping = DataSkipping(
            self.snapshot, self.schema, whole.expression, whole.columns, parts, from_path, self._is_newest
        )
        return skipping.skipped(slices, logged_by)

    def _not_skipped(self, files: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
        """The files of a `FILES_SCHEMA` table that indexes do not rule out, and warnings."""
        if not self.by_indexes or self.predicate is None or not files.num_rows:
            return files, ()
        columns = (files.column(n).to_pylist() for n in ("path", "partition", "size", "instant", "file_id"))
        slices = [
            FileSlice(partition, file_id, instant,
                      BaseFile(partition, path.rpartition("/")[2], file_id, instant, "", size))
            for path, partition, size, instant, file_id in zip(*columns, strict=True)
        ]  # fmt: skip
        found = self._skipped(slices)
        if found is None or not found.by:
            return files, () if found is None else found.warnings
        return files.filter(
            flags([p not in found.by for p in files.column("path").to_pylist()])
        ), found.warnings

    def fates(self) -> Iterator[FileDecision]:
        """Decision for every base file in the table's folders."""
        yield from self._fates(self._skipped_newest())

    def _skipped_newest(self) -> Mapping[str, str]:
        """The index that rules each of the newest base files out."""
        if not self.by_indexes or self.predicate is None:
            return {}
        found = self._skipped(self.snapshot.slices())
        return {} if found is None else found.by

    def _fates(self, skipped: Mapping[str, str]) -> Iterator[FileDecision]:
        """Decisions, given the index that rules each file out that one does."""
        snapshot = self.snapshot
        listing = snapshot.listing()
        partitions = sorted(listing.files)
        pruner = self._pruner()
        wanted = dict(zip(partitions, pruner.keep(partitions), strict=True)) if pruner else {}
        view = FileView.of_listing(listing.files)
        written = snapshot.written()
        replaced = with_archived(snapshot, written.replaced, view)
        files = snapshot.latest_of(view, partitions, written=written, replaced=replaced)
        newest = {b.path: b for b in base_files(files)}
        latest = {(b.partition, b.file_id): b for b in newest.values()}
        choice = self._buckets()
        other_buckets = choice.dropped(latest, snapshot) if choice is not None else frozenset()
        visible = snapshot.visible()
        for file in sorted(base_files(view.files), key=lambda b: b.path):
            group = (file.partition, file.file_id)
            after = snapshot.as_of is not None and file.instant > snapshot.as_of
            if self.paths is not None and file.path not in self.paths:
                yield FileDecision(file, False, "not below the paths that were given")
            elif file.path in newest:
                if group in other_buckets:
                    yield FileDecision(
                        file, False, "no key that passes the filter is in its bucket", "bucket"
                    )
                elif wanted.get(file.partition, True) and file.path in skipped:
                    yield ruled_out(file, skipped[file.path])
                elif wanted.get(file.partition, True):
                    yield FileDecision(file, True, "the newest file of its group")
                else:
                    yield FileDecision(file, False, "no row of its partition can pass the filter")
            elif file.instant in visible.overwritten:
                yield FileDecision(file, False, "of the table that was overwritten")
            elif file.instant not in visible:
                yield FileDecision(file, False, f"its instant {file.instant} is not completed")
            elif after:
                yield FileDecision(file, False, f"written after {snapshot.as_of}")
            elif group in replaced and group not in latest:
                yield FileDecision(file, False, f"its file group was replaced at {replaced[group]}")
            elif file.instant in visible.completed and file.path not in written.paths:
                yield FileDecision(file, False, "not among the files of its commit")
            else:
                newest_of = latest[group].instant
                yield FileDecision(file, False, f"an older version; the newest is of {newest_of}", older=True)
