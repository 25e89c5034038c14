"""Python validators: functions that accept or reject a `Change` before its commit.

    def no_free_rides(change):
        return change.rows(["id", "fare"], "fare <= 0").to_arrow()      # the bad rows; none is good

A function gives back None or True for good, False for bad, rows (Arrow) that are bad, none of them for good, or a text
that says what is bad, empty for good.  Anything that it raises stops the commit too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format._checks import imported
from hudi_format.arrow.input import checked_table
from hudi_format.errors import HudiError, UnsupportedError, ValidationError
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_timeline.file_system_view.listing import PartitionFilter, ThesePartitions
from hudi_timeline.file_system_view.partition_values import PartitionColumn, partition_columns
from hudi_timeline.file_system_view.snapshot import CommitCache, TableSnapshot, snapshot_of
from hudi_timeline.options.read_config import ReadConfig
from hudi_timeline.options.write_options import VALIDATORS
from hudi_timeline.reading.filters import make_predicate
from hudi_timeline.reading.incremental.incremental_query import MergedIncrementalSource
from hudi_timeline.reading.incremental.incremental_range import IncrementalSource, Range, incremental_schema
from hudi_timeline.reading.merged_query import MergedSource, merged_schema
from hudi_timeline.reading.plan import ScanPlan
from hudi_timeline.reading.scan import Scan
from hudi_timeline.reading.snapshot_query import SnapshotSource, snapshot_schema
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.commit_files import CommitFiles
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import COMPLETED, Instant, file_name
from hudi_timeline.transaction.transaction import Transaction

# What a validator sees: the rows that a write changed, and the table before it and as if it were committed.
#
# All of it is lazy: a scan reads only what is asked of it, from the files that the write has put on storage already.

Filter: TypeAlias = str | pc.Expression | None


class _WithPending(CommitCache):
    """Commit metadata that includes a pending write's."""

    def __init__(self, transaction: Transaction, metadata: CommitMetadata) -> None:
        super().__init__(transaction.storage)
        self._instant, self._metadata = transaction.instant, metadata

    def get(self, instant: Instant) -> CommitMetadata:
        return self._metadata if instant.time == self._instant else super().get(instant)

    def files(self, instants: Sequence[Instant]) -> list[CommitFiles]:
        there = [i for i in instants if i.time != self._instant]
        found = dict(zip(there, super().files(there), strict=True))
        own = CommitFiles.of(self._metadata)
        return [found.get(i, own) for i in instants]


@dataclass(frozen=True)
class Change:
    """A written but uncommitted change.

    Mode "overwrite" makes a new table: it was empty.

    Attributes:
        table: the base path.
        name: the table's name.
        instant, operation: of the write; the operation as Apache Hudi names it, e.g. UPSERT.
        metadata: what the commit would publish: statistics of each file, replaced file groups.
        earlier, later: the table's state without and with it.
        frame_of: see `frame`.
    """

    table: str
    name: str
    instant: str
    operation: str
    metadata: CommitMetadata
    earlier: TableSnapshot
    later: TableSnapshot
    frame_of: Callable[[Scan], Any]

    @property
    def schema(self) -> pa.Schema:
        """The table's columns after the write, without meta columns."""
        return self.later.schema

    @property
    def partitions(self) -> tuple[str, ...]:
        """Sorted paths of the partitions with a written or replaced file."""
        return tuple(sorted({*self.metadata.partition_to_stats, *self.metadata.replaced}))

    def rows(self, columns: Sequence[str] | None = None, filter: Filter = None) -> Scan:
        """Rows that the write inserted or updated, as they would be in the table; no deletes.

        Raises:
            UnsupportedError: a table without meta columns, whose rows do not say when they were written.
        """
        config = self.later.config
        if not config.populate_meta_fields:
            raise UnsupportedError(
                "the rows of this table do not say which write they are of (hoodie.populate.meta.fields=false)",
                table=self.table,
                remedy="compare before() and after(), or use rules for rows (hudi.write.rules).",
            )
        schema = incremental_schema(self.later)
        instants = tuple(i for i in self.later.instants if i.time == self.instant)
        merged = config.table_type == "MERGE_ON_READ"
        source = (MergedIncrementalSource if merged else IncrementalSource)(
            self.later,
            Range("", self.instant, instants, checkpoint=self.instant),
            schema,
            ReadConfig(),
            None if filter is None else make_predicate(filter, schema),
        )
        return Scan(self.later.storage, source, columns)

    def after(self, columns: Sequence[str] | None = None, filter: Filter = None) -> Scan:
        """The table after the write; columns as in `HudiTable.read`."""
        return _scan(self.later, columns, filter)

    def before(self, columns: Sequence[str] | None = None, filter: Filter = None) -> Scan:
        """The table before the write, in its columns after the write."""
        return _scan(self.earlier, columns, filter)

    def deleted(self) -> pa.Table:
        """`_hoodie_record_key` and `_hoodie_partition_path` of the deleted rows, in memory.

        Raises:
            UnsupportedError: a table without meta columns.
        """
        if not self.later.config.populate_meta_fields:
            raise UnsupportedError(
                "the keys of this table's rows are not stored",
                table=self.table,
                remedy="compare before() and after().",
            )
        keys = [PARTITION_PATH, RECORD_KEY]
        was, now = (_scan_of(_state(s, self.partitions), keys).to_arrow() for s in (self.earlier, self.later))
        return was.join(now, keys, join_type="left anti").select([RECORD_KEY, PARTITION_PATH])

    def frame(self, scan: Scan) -> Any:
        """A scan in the engine's form: a DataFrame on Spark, else a `pyarrow.Table`."""
        return self.frame_of(scan)

    def changed_partitions(self) -> tuple[Scan, Scan]:
        """The changed partitions before and after the write, as the SQL validators see them."""
        return tuple(  # type: ignore[return-value]
            _scan_of(_state(s, self.partitions), None) for s in (self.earlier, self.later)
        )


def change_of(
    transaction: Transaction, table: TableConfig, metadata: CommitMetadata, frame_of: Callable[[Scan], Any]
) -> Change:
    """The change of a transaction before its commit, next to all commits published so far."""
    storage, instant = transaction.storage, transaction.instant
    now = transaction.now()
    timeline = now.timeline
    name = file_name(instant, transaction.action, COMPLETED)
    published = Instant(instant, transaction.action, COMPLETED, name, mtime_ms=int(time.time() * 1000))
    commits = _WithPending(transaction, metadata)
    later = snapshot_of(storage, table, timeline.with_files((*timeline.files, published)), commits=commits)
    later = replace(later, announced=instant)  # readers find no completed file of it
    earlier = TableSnapshot(storage, table, timeline, later.schema, None, commits)
    return Change(storage.uri, table.name, instant, transaction.operation, metadata, earlier, later, frame_of)


@dataclass(frozen=True, slots=True)
class StateSource(SnapshotSource):
    """Partitions of a snapshot, with values as in the files, as for Apache Hudi's validators."""

    partitions: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[PartitionColumn, ...]:
        return partition_columns(self.snapshot.config, self.snapshot.schema, from_path=False)

    def plan(self) -> ScanPlan:
        return self._plan_of(self.snapshot.files(self.partitions))


@dataclass(frozen=True, slots=True)
class MergedState(MergedSource):
    """Partitions of a snapshot of a merge-on-read table."""

    partitions: tuple[str, ...] = ()

    def _wanted(self) -> PartitionFilter:
        return ThesePartitions(frozenset(self.partitions))


def _state(snapshot: TableSnapshot, partitions: tuple[str, ...]) -> SnapshotSource:
    source = MergedState if snapshot.config.table_type == "MERGE_ON_READ" else StateSource
    return source(snapshot, merged_schema(snapshot.config, snapshot.schema), partitions=partitions)


def _scan(snapshot: TableSnapshot, columns: Sequence[str] | None, filter: Filter) -> Scan:
    merged = snapshot.config.table_type == "MERGE_ON_READ"
    schema = (merged_schema if merged else snapshot_schema)(snapshot.config, snapshot.schema)
    predicate = None if filter is None else make_predicate(filter, schema)
    return _scan_of((MergedSource if merged else SnapshotSource)(snapshot, schema, predicate), columns)


def _scan_of(source: SnapshotSource, columns: Sequence[str] | None) -> Scan:
    return Scan(source.snapshot.storage, source, columns)


Validator: TypeAlias = Callable[[Change], Any]
SHOWN = 5


def named(names: Sequence[str]) -> tuple[Validator, ...]:
    """Validator functions of the option's `module:name` entries.

    Raises:
        InvalidOptionError: one that cannot be imported.
    """
    return tuple(imported(n, VALIDATORS) for n in names if ":" in n)


def name_of(validator: Validator) -> str:
    return str(getattr(validator, "__name__", None) or type(validator).__name__)


def run_function(validator: Validator, change: Change) -> None:
    """Run one validator function.

    Raises:
        ValidationError: it says no, or fails; its name is the rule.
    """
    rule = name_of(validator)
    try:
        answer = validator(change)
    except HudiError:
        raise
    except Exception as e:
        raise ValidationError(
            f"validator {rule} failed: {type(e).__name__}: {e}",
            remedy="correct the validator or the rows; nothing was committed.",
            rule=rule,
        ) from e
    if answer is None or answer is True or (isinstance(answer, str) and not answer):
        return
    if answer is False or isinstance(answer, str):
        why = f": {answer}" if answer else ""
        raise ValidationError(
            f"validator {rule} refused the write{why}",
            remedy="correct the rows; nothing was committed.",
            rule=rule,
        )
    rows = _rows(answer, rule)
    if rows.num_rows:
        keys = RECORD_KEY if RECORD_KEY in rows.column_names else (rows.column_names or [""])[0]
        sample = [str(v) for v in rows.column(keys).slice(0, SHOWN).to_pylist()] if keys else []
        raise refused(rule, rows.num_rows, sample, what=f"validator {rule} found")


def _rows(answer: object, rule: str) -> pa.Table:
    if isinstance(answer, pa.Table):
        return checked_table(answer)
    if isinstance(answer, pa.RecordBatch):
        return checked_table(pa.Table.from_batches([answer]))
    if hasattr(answer, "__arrow_c_stream__"):
        return checked_table(pa.RecordBatchReader.from_stream(answer).read_all())
    raise ValidationError(
        f"validator {rule} returned a {type(answer).__name__}, which is not an answer",
        remedy="return None or True to accept, False, a text, or the invalid rows as an Arrow "
        "table to refuse.",
        rule=rule,
    )


def refused(rule: str, rows: int, sample: Sequence[str], *, what: str) -> ValidationError:
    """Error for invalid rows: rule, count, and some of their keys."""
    shown = ", ".join(sample) + (", ..." if rows > len(sample) else "")
    return ValidationError(
        f"{what} {rows:,} bad rows" + (f", with keys {shown}" if sample else ""),
        remedy="correct or leave out these rows; nothing was committed.",
        rule=rule,
        rows=rows,
        sample=list(sample),
    )
