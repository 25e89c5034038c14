"""Compacted file slice: base file and log files merged into a new base file.

The rows come of the same merge as those of a read (`hudi_format.file_slice.reader`), and go to the file as they
come: in memory are the log records, which may spill, one row group of the old file, and one of the new.  A row keeps
its commit time and sequence number, whichever of the two files it was in; only the file's name is written anew.

Source: HoodieCompactor of Apache Hudi 0.15 and its merge and create handles with preserved meta fields, compared with
the files that they wrote (tests/golden/v6/mor_compacted_then_logs).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import pyarrow as pa

from hudi_format.file_slice.base_rows import BaseFileRead
from hudi_format.file_slice.kept_groups import KeptGroups
from hudi_format.file_slice.reader import MergedPart, SliceMerge, base_of, merged_by_group
from hudi_format.file_slice.writer import FileSpec
from hudi_format.log.corruption import CommittedRange
from hudi_format.merge.log_records import MergeCounts
from hudi_format.model import FileSlice, WriteStat
from hudi_format.parquet.kept_chunks import StoredChunks
from hudi_format.parquet.layout import NO_OBSERVER, KeyObserver
from hudi_format.parquet.reader import stored_chunks
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.meta_fields import FILE_NAME, META_COLUMNS, with_meta
from hudi_format.storage.protocol import Storage


def _not_guarded() -> Callable[[], None]:
    return lambda: None


def _not_observed() -> KeyObserver:
    return NO_OBSERVER


def _unchanged(rows: pa.Table) -> pa.Table:
    return rows


@dataclass(frozen=True, slots=True)
class SliceCompaction:
    """Compaction of one file slice.

    Attributes:
        slice: the base file, if there is one, and the log files to merge into it.
        merge: how a read merges them.
        table: the columns of a read of the table, with meta columns where it fills them.
        spec: the file to write; its schema has the columns that data files hold.
        committed: what completed instants say that they wrote, by path of the log file.
    """

    slice: FileSlice
    merge: SliceMerge
    table: pa.Schema
    spec: FileSpec
    committed: Mapping[str, tuple[CommittedRange, ...]] = field(default_factory=dict)


def compact_slice(
    storage: Storage,
    compaction: SliceCompaction,
    *,
    begin: Callable[[], Callable[[], None]] = _not_guarded,
    observer: Callable[[], KeyObserver] = _not_observed,
    change: Callable[[pa.Table], pa.Table] = _unchanged,
    even_if_empty: bool = False,
) -> WriteStat | None:
    """Write the merged rows of a slice to a new base file; returns its statistics.

    A slice without a base file of which no row is left makes no file, and None is returned, if not asked otherwise.

    Args:
        begin: called before the file's first byte; gives the check to make before it is closed.
        observer: makes the observer of the file's keys.
        change: gives the rows to write of each part of the merged ones, called in their order.
        even_if_empty: make the file in any case, because its logs are to count no longer.

    Raises:
        MissingFileError, CorruptFileError: a file of the slice is not there, or damaged; no file is left behind.
        SchemaError, UnsupportedError, SpillError: as of a read of the slice.
        StorageError: the storage refused.
    """
    began = time.monotonic()
    spec, old = compaction.spec, compaction.slice.base_file
    counts = MergeCounts()

    def counted(read: MergeCounts) -> None:
        nonlocal counts
        counts = read

    found = merged_parts(storage, compaction, counted)
    changed = (replace(p, after=change(p.after)) for p in found)
    parts = (p for p in changed if p.after.num_rows or p.before is not None)
    first = list(islice(parts, 1))
    if not first and old is None and not even_if_empty:
        return None
    scanned = time.monotonic()
    guard = begin()
    with BaseFileWriter(
        storage, spec.path, with_meta(spec.schema), config=spec.config, observer=observer(), entries=spec.entries,
    ) as writer, _chunks(storage, compaction) as chunks:  # fmt: skip
        kept = KeptGroups(writer, chunks, counts.keys)
        for part in _in_order(first, parts):
            rows = as_stored(part.after, spec)
            if part.before is None:
                writer.write(rows)
            else:
                kept.part(part.group, part.before, rows)
            del part, rows
            pa.default_memory_pool().release_unused()
        guard()
        size = writer.close()
    done = time.monotonic()
    took_ms = int((done - scanned) * 1000)
    return WriteStat(
        file_id=spec.file_id,
        path=spec.path,
        partition=spec.partition,
        prev_commit="null" if old is None else old.instant,
        num_writes=writer.num_rows,
        num_deletes=counts.deleted,
        num_update_writes=counts.updated,
        num_inserts=counts.inserted,
        total_write_bytes=size,
        file_size_in_bytes=size,
        scan_time_ms=int((scanned - began) * 1000),
        upsert_time_ms=0 if old is None else took_ms,
        create_time_ms=took_ms if old is None else 0,
        extra=counts.totals(compaction.slice.log_files),
    )


def _base(storage: Storage, compaction: SliceCompaction) -> BaseFileRead:
    merge = compaction.merge
    schema = merge.merge_schema(compaction.table, compaction.table)
    return base_of(storage, compaction.slice, merge, schema)


def merged_parts(
    storage: Storage, compaction: SliceCompaction, counted: Callable[[MergeCounts], None] | None = None
) -> Iterator[MergedPart]:
    """The merged rows of a slice; errors as `compact_slice`."""
    base, logs = _base(storage, compaction), compaction.slice.log_files
    return merged_by_group(base, logs, compaction.merge, committed=compaction.committed, counted=counted)


@contextmanager
def _chunks(storage: Storage, compaction: SliceCompaction) -> Iterator[StoredChunks | None]:
    """The old file's column chunks; None where its columns are other ones now."""
    base = _base(storage, compaction)
    if (
        not base.path
        or base.reading is not None
        or not storage.is_local
        or not base.path.endswith(".parquet")
    ):
        yield None
        return
    try:
        source = storage.open_input(base.path)
    except FileNotFoundError:  # its rows are read from the file as it was opened
        yield None
        return
    with source:
        yield stored_chunks(source, compaction.spec.config.kept_chunk_bytes)


def _in_order(first: list[MergedPart], rest: Iterable[MergedPart]) -> Iterator[MergedPart]:
    """The parts, none of which stays in memory."""
    while first:
        yield first.pop()
    yield from rest


def as_stored(rows: pa.Table, spec: FileSpec) -> pa.Table:
    """Merged rows with the meta columns of the file.

    Without stored ones, the file name alone is filled.
    """
    n = rows.num_rows
    name = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([spec.name], pa.string()))
    columns = [
        name if c == FILE_NAME else rows.column(c) if c in rows.column_names else pa.nulls(n, pa.string())
        for c in META_COLUMNS
    ]
    data = [rows.column(f.name) for f in spec.schema]
    return pa.table([*columns, *data], names=[*META_COLUMNS, *spec.schema.names])
