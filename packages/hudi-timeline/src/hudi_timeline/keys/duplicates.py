"""Duplicates: keys that stand more than once in a partition or table, with who wrote them.

    keys -> 64-bit hashes (on disk beyond the memory limit) -> those that come twice -> their rows -> exact keys

The first pass keeps eight bytes of a row, the second one only rows whose key's hash came twice, some of these at a
time: a table whose keys all stand once takes no more than its hashes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.spill import MemoryLimit, SpillFile, keep_if_large, split
from hudi_format.merge.key_index import key_groups
from hudi_format.model import FileSlice
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import Storage
from hudi_index.hashing.name_ids import xxh64
from hudi_timeline.file_system_view.outlived_snapshot import looked_again
from hudi_timeline.file_system_view.snapshot import CommitCache, TableSnapshot, open_snapshot
from hudi_timeline.file_system_view.table_schema import with_history
from hudi_timeline.keys.keyed_slices import KeyedSlices, Writers
from hudi_timeline.options.read_config import parse_read_options
from hudi_timeline.reading.merged_query import memory_limit

BASE, LOG = "base", "log"

DUPLICATES = pa.schema(
    [
        ("key", pa.string()), ("partition", pa.string()), ("file_id", pa.string()), ("file", pa.string()),
        ("kind", pa.string()), ("copy", pa.int64()), ("commit_time", pa.string()), ("commit_seqno", pa.string()),
        ("operation", pa.string()),
    ]
)  # fmt: skip
"""Columns of `duplicates`: `file` is the base file, or the log file, that has the row; `copy` counts the rows of a key
within one file slice from 0 on, in the order of a read.  What files and timelines do not say is null."""

FOUND = pa.schema(
    [
        ("key", pa.string()), ("slice", pa.int32()), ("copy", pa.int64()), ("from_log", pa.bool_()),
        ("commit_time", pa.string()), ("commit_seqno", pa.string()),
    ]
)  # fmt: skip
"""Columns of a found row: `slice` is its number among `KeyedSlices.slices`."""

# A found row, with its key and the sorting of it; and hashes to one stream of a spill file.
_ROW_BYTES, _STREAMS = 256, 64
_T = TypeVar("_T")
_R = TypeVar("_R")
_SEED = 0x9E3779B97F4A7C15


def duplicates(
    storage: Storage,
    options: Mapping[str, str],
    partitions: str | Sequence[str] | None = None,
    across_partitions: bool = False,
    commits: CommitCache | None = None,
) -> pa.Table:
    """Rows whose key stands more than once, as of `HudiTable.duplicates`."""
    asked = parse_read_options(options)
    limit = memory_limit(asked).for_stream()

    def look() -> pa.Table:
        snapshot = with_history(open_snapshot(storage, commits=commits), asked.schema_on_read)
        found = KeyedSlices.of(snapshot, partitions, merge=asked.merge, limit=limit)
        writers = Writers(snapshot)
        pieces = find(found, across_partitions=across_partitions, limit=limit)
        return keep_if_large((described(found, rows, writers) for rows in pieces), DUPLICATES, limit)

    return looked_again(look)


def find(
    keyed: KeyedSlices, *, across_partitions: bool = False, limit: MemoryLimit | None = None
) -> Iterator[pa.Table]:
    """Rows with keys that stand more than once, all rows of a key in one table (columns: FOUND).

    They are sorted by key, then in the order in which they were written, as far as files tell it.

    Args:
        across_partitions: keys are to be there once in the table, not once in each partition.

    Raises:
        MissingFileError, CorruptFileError, SchemaError: as of a read.  SpillError: hashes could not be spilled.
        StaleSnapshotError: files of the slices were cleaned, or their commits undone, since they were listed.
    """
    with keyed.snapshot.of_its_state():
        yield from _found(keyed, across_partitions, limit or MemoryLimit().for_stream())


def _found(keyed: KeyedSlices, across_partitions: bool, limit: MemoryLimit) -> Iterator[pa.Table]:
    numbered = list(enumerate(keyed.slices))
    parts = [numbered]
    if not across_partitions:
        parts = [list(of) for _, of in groupby(numbered, lambda n: n[1].partition)]
    for part in parts:
        twice = _hashes_twice(keyed, [s for _, s in part], limit)
        step = max(1, limit.held // _ROW_BYTES)
        for start in range(0, len(twice), step):
            rows = _rows_with(keyed, part, twice[start : start + step])
            if rows.num_rows:
                yield rows


def described(keyed: KeyedSlices, rows: pa.Table, writers: Writers) -> pa.Table:
    """Found rows with their files and the writes that made them (columns: DUPLICATES)."""
    slices = keyed.slices
    numbers = pc.unique(rows.column("slice"))
    at = pc.index_in(rows.column("slice"), numbers)
    of = [slices[n] for n in numbers.to_pylist()]
    from_log = rows.column("from_log")
    files = pa.array([s.base_file.path if s.base_file else None for s in of], pa.string()).take(at)
    columns = [
        rows.column("key"),
        pa.array([s.partition for s in of], pa.string()).take(at),
        pa.array([s.file_id for s in of], pa.string()).take(at),
        pc.if_else(from_log, _log_files(rows, slices, writers), files),
        pc.if_else(from_log, LOG, BASE),
        rows.column("copy"),
        rows.column("commit_time"),
        rows.column("commit_seqno"),
        writers.operations(rows.column("commit_time")),
    ]
    return pa.table(columns, schema=DUPLICATES)


def _log_files(rows: pa.Table, slices: Sequence[FileSlice], writers: Writers) -> pa.Array:
    """The log file of each row that is of a log; null for others."""
    pairs = rows.select(["slice", "commit_time"])
    distinct = (
        pairs.filter(pc.fill_null(rows.column("from_log"), False)).group_by(pairs.column_names).aggregate([])
    )
    if not distinct.num_rows:
        return pa.nulls(rows.num_rows, pa.string())
    paths = [
        None if time is None else writers.log_of(time, slices[number])
        for number, time in zip(*(distinct.column(n).to_pylist() for n in pairs.column_names), strict=True)
    ]
    known, wanted = (
        pc.binary_join_element_wise(
            t.column("slice").cast(pa.string()), pc.fill_null(t.column("commit_time"), ""), "/"
        )
        for t in (distinct, pairs)
    )
    return pa.array(paths, pa.string()).take(pc.index_in(wanted, known))


def _hashes_twice(keyed: KeyedSlices, slices: Sequence[FileSlice], limit: MemoryLimit) -> np.ndarray:
    """Hashes of keys that come more than once, ascending."""

    def of_slice(one: FileSlice) -> np.ndarray:
        parts = [_hashes(rows.column("key")) for rows in keyed.keys(one)]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    with _Hashes(limit) as seen:
        for found in _each(of_slice, slices):
            seen.add(found)
        return seen.twice()


def _hashes(keys: pa.ChunkedArray) -> np.ndarray:
    """Hash of each key; rows without a key have none."""
    found: np.ndarray = xxh64(keys, _SEED).drop_null().to_numpy(zero_copy_only=False)
    return found


def _each(call: Callable[[_T], _R], items: Sequence[_T]) -> Iterator[_R]:
    """Results for each item on some threads, of few items at a time: results are held until they are taken."""
    threads = min(4, len(os.sched_getaffinity(0)))
    for start in range(0, len(items), 2 * threads):
        yield from side_by_side(call, items[start : start + 2 * threads], threads, "hudi-keys")


class _Hashes:
    """Hashes, in memory or in streams on disk beyond the limit."""

    _SCHEMA = pa.schema([("hash", pa.uint64())])

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._held: list[np.ndarray] = []
        self._bytes = 0
        self._file: SpillFile | None = None

    def add(self, hashes: np.ndarray) -> None:
        self._held.append(hashes)
        self._bytes += hashes.itemsize * len(hashes)
        if self._bytes > self._limit.held // 2:
            self._flush()

    def _flush(self) -> None:
        if self._file is None:
            self._file = SpillFile(self._SCHEMA, self._limit)
        while self._held:
            hashes = self._held.pop()
            rows = pa.table([pa.array(hashes)], schema=self._SCHEMA)
            streams = (hashes // np.uint64((1 << 64) // _STREAMS)).astype(np.int64)
            for stream, part in split(rows, streams):
                self._file.write(stream, part)
        self._bytes = 0

    def twice(self) -> np.ndarray:
        """Those that were added more than once, ascending."""
        if self._file is None:
            return _repeated(self._held)
        self._flush()
        file, found = self._file, []
        for stream in file.streams:
            found.append(_repeated([p.column(0).to_numpy() for p in file.read(stream)]))
        return np.concatenate(found) if found else np.empty(0, np.uint64)

    def __enter__(self) -> _Hashes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _repeated(parts: Sequence[np.ndarray]) -> np.ndarray:
    every = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.uint64)
    return np.unique(every[1:][every[1:] == every[:-1]])


def _rows_with(keyed: KeyedSlices, part: Sequence[tuple[int, FileSlice]], hashes: np.ndarray) -> pa.Table:
    """Rows of slices with keys of these hashes that stand more than once, sorted (columns: FOUND)."""

    def of_slice(numbered: tuple[int, FileSlice]) -> pa.Table:
        number, one = numbered
        found = []
        for rows in keyed.keys(one):
            rows = rows.filter(pc.is_valid(rows.column("key")))
            own = _hashes(rows.column("key"))
            places = np.searchsorted(hashes, own)
            there = hashes[np.minimum(places, len(hashes) - 1)] == own
            if there.any():
                found.append(rows.filter(pa.array(there)))
        if not found:
            return FOUND.empty_table()
        rows = pa.concat_tables(found)
        return pa.table(
            [
                rows.column("key"),
                pa.array(np.full(rows.num_rows, number, np.int32)),
                pa.array(copies(rows.column("key"))),
                _from_log(keyed.snapshot, one, rows.column("commit_time")),
                rows.column("commit_time"),
                rows.column("commit_seqno"),
            ],
            schema=FOUND,
        )

    rows = pa.concat_tables(_each(of_slice, part)).combine_chunks()
    groups = key_groups(rows.column("key"))
    rows = rows.filter(pa.array(np.bincount(groups, minlength=len(groups))[groups] > 1))
    order = rows.select(["key", "commit_time", "commit_seqno", "slice", "copy"])
    # Unknown ones come first; not by null_placement, which pyarrow 25 deprecates.
    for name in ("commit_time", "commit_seqno"):
        at = order.schema.get_field_index(name)
        order = order.set_column(at, name, pc.fill_null(order.column(name), ""))
    return rows.take(pc.sort_indices(order, [(n, "ascending") for n in order.column_names]))


def copies(keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Number of rows with the same key before each row."""
    groups = key_groups(keys)
    order = np.argsort(groups, kind="stable")
    heads = np.flatnonzero(np.diff(groups[order], prepend=-2))
    starts = np.repeat(heads, np.diff(heads, append=len(order)))
    out = np.empty(len(order), np.int64)
    out[order] = np.arange(len(order)) - starts
    return out


def _from_log(snapshot: TableSnapshot, one: FileSlice, times: pa.ChunkedArray) -> pa.Array:
    """Whether rows come of a slice's logs; null where only a commit time could tell."""
    if not one.log_files or one.base_file is None:
        return pa.array(np.full(len(times), bool(one.log_files)))
    if snapshot.config.version.has_completion_times:
        logged = pa.array(sorted({f.instant for f in one.log_files}), pa.string())
        found = pc.if_else(pc.is_valid(times), pc.is_in(times, logged), None)
    else:
        found = pc.greater(times, one.base_file.instant)
    return one_array(found)
