"""Warnings about records that may be stored a second time, and refusal of known ones.

Only an upsert by an index over the whole table knows that there is one record of each key.  What other operations do
not look for they cannot count: the warnings say what was not looked for, and how to.  As they are of every such write,
the log has each once for a table and process.  docs/guide/duplicates.md has it operation by operation.

Snapshots of copy-on-write tables take partition columns from the paths, in Apache Hudi and here, which a key generator
may have formatted: 20240229 of some milliseconds.  Written back, such a value is another moment, which Apache Hudi puts
into another partition, where the key stands a second time.

Source: FAQ, "How does Hudi handle duplicate record keys in an input"; operations of Apache Hudi 0.15 by experiment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import DuplicateKeyError, HudiError, SchemaError, UnsupportedError
from hudi_format.fork_safe import cached_property
from hudi_format.keygen.key_generator import SIMPLE
from hudi_format.model import BaseFile, WriteStat
from hudi_format.parquet.footer import footer_bytes, open_parquet, reading
from hudi_format.parquet.row_groups import row_groups
from hudi_format.schema.meta_fields import RECORD_KEY as KEY
from hudi_index.lookup import GLOBAL_KINDS, LookupTask
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.listing import list_partitions
from hudi_timeline.file_system_view.partition_values import (
    PARTITION,
    PartitionColumn,
    partition_columns,
    path_values,
)
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.file_options import INDEX_TYPE
from hudi_timeline.options.table_options import RECORD_KEY
from hudi_timeline.options.transaction_options import BY_KEYS, CONFLICT_DETECTION
from hudi_timeline.options.write_options import ADDS_ROWS, DUP_POLICY
from hudi_timeline.timeline.commit_metadata import SCHEMA_NEUTRAL, CommitMetadata
from hudi_timeline.writing.engine import Engine
from hudi_timeline.writing.planning.write_plan import Plan, drops_duplicates, fails_on_known_keys

_logged: set[tuple[str, str]] = set()

WAY_BACK = (
    'write the rows of read_incremental("000", on_missing="full_scan"), which have the values of the files where '
    "read() has those of the paths"
)


def first_time(table: str, warning: str) -> bool:
    """Whether a warning about a table is new to this process."""
    new = (table, warning) not in _logged
    _logged.add((table, warning))
    return new


def about_duplicates(plan: Plan, stats: Sequence[WriteStat]) -> Iterator[str]:
    """Warnings of a write.

    Args:
        stats: of the files that it wrote.
    """
    inserted = sum(s.num_inserts for s in stats)
    if not inserted or plan.config.prepped:
        return
    if plan.key_spec.auto:
        if plan.operation in ADDS_ROWS or plan.operation == "upsert":
            yield (
                "the table has no record key: rows that are written a second time stand in it twice; name the columns "
                f"that identify a row with {RECORD_KEY} when the table is made"
            )
        return
    if plan.replaced or not _has_writes(plan):
        return
    if plan.operation in ADDS_ROWS and plan.bucket is None:
        if not drops_duplicates(plan) and not fails_on_known_keys(plan):
            yield (
                f"{plan.operation} does not look for keys that are in the table already, which then stand in it twice; "
                f"upsert updates them, and insert with {DUP_POLICY}=drop or fail skips or refuses them"
            )
    elif plan.operation == "upsert" and _may_have_moved(plan):
        fields = ", ".join(plan.key_spec.partition_fields)
        yield (
            f"keys were looked for in the partitions of the rows only ({plan.index}): of a record whose {fields} has "
            f"changed the old row stays in its partition; {INDEX_TYPE}=GLOBAL_SIMPLE or GLOBAL_BLOOM moves it"
        )


def added_beside(plan: Plan, stats: Sequence[WriteStat], rivals: Iterable[CommitMetadata]) -> Iterator[str]:
    """Warnings of a write beside which others have added records.

    Where their keys are compared, or each has one bucket, there are none.  Nor are there for operations that say of
    every write that they look for no keys.

    Args:
        stats: of the files that it wrote.
        rivals: what was completed since it began.
    """
    if plan.operation not in (*ADDS_ROWS, "upsert") or plan.bucket is not None or plan.key_spec.auto:
        return
    compared = (
        plan.config.transaction.detection == BY_KEYS or drops_duplicates(plan) or fails_on_known_keys(plan)
    )
    if compared or plan.config.prepped or (plan.operation in ADDS_ROWS and _has_writes(plan)):
        return
    ours = {s.partition for s in stats if s.num_inserts}
    theirs = {
        s.partition for c in rivals if c.operation not in SCHEMA_NEUTRAL for s in c.stats if s.num_inserts
    }
    if ours and theirs and (plan.index in GLOBAL_KINDS or ours & theirs):
        yield (
            "another write added records while this one was running: a key that both added stands in the table twice; "
            f"with {CONFLICT_DETECTION}={BY_KEYS} in all writers it is a conflict, and a retry of an upsert updates it"
        )


def _has_writes(plan: Plan) -> bool:
    """Whether the table may have had rows when the write was planned."""
    return plan.snapshot is not None and bool(plan.snapshot.timeline.completed_writes())


def _may_have_moved(plan: Plan) -> bool:
    """Whether a key may stand in another partition."""
    spec = plan.key_spec
    outside = set(spec.partition_fields) - set(spec.key_fields)
    return plan.index not in GLOBAL_KINDS and bool(outside)


def refuse_known_keys(
    engine: Engine[Any, Any],
    frame: Any,
    plan: Plan,
    files: Mapping[str, Sequence[BaseFile]],
    task: LookupTask,
) -> Any:
    """Refuse tagged rows with known keys.

    Raises:
        DuplicateKeyError: how many rows have a key that is, by partition.
    """
    tagged = engine.tag(frame, plan.storage, files, task if plan.bucket is None else task.looking())
    known: dict[str, int] = {}
    for row in engine.profile(tagged):
        if row.file_id:
            known[row.partition] = known.get(row.partition, 0) + row.rows
    if known:
        most = sorted(known, key=lambda p: -known[p])
        shown = ", ".join(f"{known[p]:,} in {p or 'the table'}" for p in most[:3])
        raise DuplicateKeyError(
            f"{sum(known.values()):,} rows have a key that is in the table already: {shown}"
            + (f" and {len(most) - 3} more partitions" if len(most) > 3 else ""),
            table=plan.storage.uri,
            remedy=f"use the operation upsert to update them, or set {DUP_POLICY}=drop to skip them.",
            rows=sum(known.values()),
            partitions=most,
        )
    return tagged


def with_way_back(error: HudiError, plan: Plan) -> HudiError:
    """An error of a write; of text of a formatted path it names the read that has the value."""
    if not isinstance(error, SchemaError) or error.details.get("source") != "string":
        return error
    named = error.details.get("column")
    if named in _formatted(plan):
        error.remedy = f"read() gives what the paths say of {named}: {WAY_BACK}."
    return error


def _formatted(plan: Plan) -> set[str]:
    """Partition columns that snapshots of the table read from paths which a key generator formatted."""
    table, spec = plan.table, plan.key_spec
    if table is None or plan.replaced or table.table_type != "COPY_ON_WRITE" or table.drop_partition_columns:
        return set()
    dated = {f for f, kind in zip(spec.partition_fields, spec.field_kinds, strict=True) if kind != SIMPLE}
    columns = partition_columns(table, plan.schema, from_path=True)
    return {c.name for c in columns if c.name in dated and c.told_by_paths and c.stored}


@dataclass(frozen=True)
class ReadBack:
    """Refusal of rows that have the values of folders, in which their records have others.

    Attributes:
        names: of the columns that snapshots read from formatted paths, in the type of the files.
        columns: of the partitions, in the order of the paths.
    """

    snapshot: TableSnapshot
    names: Sequence[str]
    columns: Sequence[PartitionColumn]

    @classmethod
    def of(cls, plan: Plan) -> ReadBack | None:
        """The one of a write; None where its rows can have no such values, or are not stored."""
        if plan.snapshot is None or plan.stored_keys or plan.config.prepped:
            return None
        if plan.operation not in (*ADDS_ROWS, "upsert", "insert_overwrite", "insert_overwrite_table"):
            return None
        names, types = _formatted(plan), {f.name: f.type for f in plan.schema}
        columns = partition_columns(plan.snapshot.config, plan.schema, from_path=True)
        same = [c.name for c in columns if c.name in names and c.type == types.get(c.name)]
        return cls(plan.snapshot, same, columns) if same else None

    def __call__(self, rows: pa.Table, keys: pa.Array, paths: pa.Array) -> None:
        """Refuse rows.

        Args:
            rows: in the types to write.
            keys, paths: record keys and partition paths made of them.

        Raises:
            UnsupportedError: how many rows are like that, with one of them.
        """
        given = pa.table([*map(rows.column, self.names), keys, paths], names=[*self.names, KEY, PARTITION])
        for name in self.names:
            told = self._folders.column(name).combine_chunks().drop_null()
            given = given.filter(pc.is_in(given.column(name), value_set=told))
        if not given.num_rows:
            return
        name = self.names[0]
        there = set(pc.unique(given.column(name)).to_pylist())
        count, shown = 0, ""
        for folder in self._folders.to_pylist():
            others = self._others(folder, given) if folder[name] in there else ()
            if others and not shown:
                shown = f"of partition {folder[PARTITION]} {name} {folder[name]!r}, where the record has "
                shown += f"{others[0][name]!r}"
                if others[0][PARTITION] != folder[PARTITION]:
                    shown += f", and as another moment it would stand in {others[0][PARTITION]} a second time"
            count += len(others)
        if count:
            raise UnsupportedError(
                f"{count:,} of {rows.num_rows:,} rows have what read() takes from the paths: {shown}",
                table=self.snapshot.storage.uri,
                remedy=f"{WAY_BACK}; to store these values themselves, delete the rows by a filter first.",
                rows=count,
                columns=list(self.names),
            )

    @cached_property
    def _folders(self) -> pa.Table:
        """The columns by partition, null where a path does not say the value."""
        storage = self.snapshot.storage
        paths = list_partitions(storage, self.snapshot.config)
        return path_values(paths, self.columns, uri=storage.uri).table.select([PARTITION, *self.names])

    def _others(self, folder: Mapping[str, Any], given: pa.Table) -> list[dict[str, Any]]:
        """Records with other values than their folder, whose keys are given with its values.

        Returns:
            Their values, key, and the partition that the given row is to go to.
        """
        values = {n: pa.scalar(folder[n], self._folders.schema.field(n).type) for n in self.names}
        for name, value in values.items():
            given = given.filter(pc.equal(given.column(name), value))
        out = []
        for file_slice in newest_slices_of(self.snapshot, [folder[PARTITION]] if given.num_rows else []):
            if file_slice.base_file is not None and file_slice.base_file.path.endswith(".parquet"):
                stored = self._unlike(file_slice.base_file.path, values)
                out += stored.join(given.select([KEY, PARTITION]), KEY, join_type="inner").to_pylist()
        return out

    def _unlike(self, path: str, values: Mapping[str, pa.Scalar]) -> pa.Table:
        """Keys and values of the rows of a file that has not these values in all of them."""
        storage = self.snapshot.storage
        schema = pa.schema([(KEY, pa.string()), *((n, v.type) for n, v in values.items())])
        with reading(storage, path), storage.open_input(path) as source:
            groups = row_groups(footer_bytes(source), list(values))
        chunks = [(g.columns.get(n), v, g.num_rows) for g in groups for n, v in values.items()]
        if all(chunk is not None and chunk.holds_only(value, rows) for chunk, value, rows in chunks):
            return schema.empty_table()
        file = open_parquet(storage, path)
        try:
            found = file.read(schema.names).select(schema.names).cast(schema)
        finally:
            file.close(force=True)
        alike = pa.chunked_array([pa.repeat(pa.scalar(True), found.num_rows)])
        for name, value in values.items():
            alike = pc.and_(alike, pc.fill_null(pc.equal(found.column(name), value), False))
        return found.filter(pc.invert(alike))
