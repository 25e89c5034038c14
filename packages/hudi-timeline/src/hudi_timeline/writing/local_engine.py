"""Local engine: Arrow tables on threads of this process, no JVM.

Data comes as anything with `__arrow_c_stream__` (pyarrow, polars, DuckDB), pandas, or a list of dicts
(`hudi_format.schema.input_rows`).
Kernels and Parquet release the GIL, so file groups are written side by side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.input import no_rows
from hudi_format.arrow.spill import MemoryLimit, keep_if_large
from hudi_format.errors import MissingColumnError, OptionError, OrderingValueError
from hudi_format.file_slice.record_versions import LoggedSlices
from hudi_format.keygen.java_text import to_text
from hudi_format.keygen.record_keys import made_up_keys, nested_column, partition_paths, record_keys
from hudi_format.model import BaseFile, WriteStat
from hudi_format.schema.evolution import conform
from hudi_format.schema.exact import Exact
from hudi_format.schema.fit import Batch, fit, unlike
from hudi_format.schema.meta_fields import COMMIT_SEQNO, FILE_NAME, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.hashing.java import crc32
from hudi_index.lookup import LookupCount, LookupTask
from hudi_index.tagging import (
    MOVED,
    check_files,
    deleted_rows,
    refuse_changed,
    rows_by_code,
    stated_group,
    tag_rows,
)
from hudi_timeline.reading.scan import Scan
from hudi_timeline.services.compaction.slice_tasks import Task, run_on_threads
from hudi_timeline.validation.row_rules import LocalScreened, Screening
from hudi_timeline.validation.sql_validators import Queries, duck_queries
from hudi_timeline.writing.bulk_insert_sort import in_order, user_function
from hudi_timeline.writing.engine import DATA, TABLE, PrepareTask
from hudi_timeline.writing.planning.write_schema import about_texts
from hudi_timeline.writing.workers.bucket_shuffle import buckets_of, pieces_of
from hudi_timeline.writing.workers.bucket_worker import write_bucket
from hudi_timeline.writing.workers.bulk_insert import path_codes, stored_keys, write_stream
from hudi_timeline.writing.workers.tasks import ProfileRow, Routing, TaskToken, WriteContext, as_written

STREAM_BATCH_ROWS = 131_072
# Sort modes that order rows; the others only choose the task, and here is one.
SORTING = ("GLOBAL_SORT", "PARTITION_SORT")


# Files of a remote store that are written side by side at most, and how many bytes of them, encoded.
REMOTE_WRITERS, REMOTE_BYTES = 16, 128 << 20


@dataclass(frozen=True)
class LocalFrame:
    """Evaluated rows of the local engine.

    Attributes:
        rows: record key, then the data columns.
        codes: per row, the number of its partition in `partitions`.
        files: file groups that rows were looked for in, as (number of the partition, file id).
        location: per row, the number of its file group in `files`, -1 for none; None if untagged.
    """

    rows: pa.Table
    codes: np.ndarray
    partitions: tuple[str, ...]
    files: tuple[tuple[int, str], ...] = ()
    location: np.ndarray | None = None


class LocalEngine:
    """Engine that runs the workers on threads of this process."""

    name = "python"
    streams_buckets = False  # it holds the rows anyway

    def __init__(
        self,
        threads: int | None = None,
        *,
        types: str = TABLE,
        guessed: bool = False,
        warnings: tuple[str, ...] = (),
    ) -> None:
        """Args:
        types: whose types count, see `Engine`.
        guessed: those of the rows were guessed from Python's values, so that any double may be meant for a float.
        warnings: of what the rows are made from, see `Engine`.
        """
        self.types = types
        self.warnings = self._told = warnings
        self._exact = Exact(rounds=guessed)
        self.parallelism = threads or len(os.sched_getaffinity(0))
        self.looked_up: LookupCount | None = None
        self.on_progress: Callable[[int, int], None] = lambda done, total: None

    def progress(self, asked: str) -> str:
        return asked

    def schema(self, data: pa.RecordBatchReader | pa.Table) -> pa.Schema:
        return data.schema

    def fitted(
        self, data: pa.RecordBatchReader | pa.Table, schema: pa.Schema, *, exact: bool
    ) -> pa.RecordBatchReader | pa.Table:
        if not exact:
            return data
        if isinstance(data, pa.Table):
            return self._fit(data, schema)
        if not unlike(data.schema, schema):
            return data
        empty = self._fit(no_rows(data.schema), schema)

        def batches() -> Iterator[pa.RecordBatch]:
            first = 0
            with data:  # a source that is not read to its end is let go of
                for batch in data:
                    yield self._fit(batch, schema, first)
                    first += batch.num_rows

        return pa.RecordBatchReader.from_batches(empty.schema, batches())

    def _fit(self, rows: Batch, schema: pa.Schema, first: int = 0) -> Batch:
        fitted = fit(rows, schema, first=first, exact=self._exact)
        self.warnings = (*self._told, *about_texts(self._exact.without_zone))
        return fitted

    def screen(self, data: pa.RecordBatchReader | pa.Table, screening: Screening) -> LocalScreened:
        return LocalScreened(data, screening)

    def another(self, data: pa.RecordBatchReader | None) -> tuple[LocalEngine, pa.RecordBatchReader | None]:
        return LocalEngine(self.parallelism, types=DATA), data

    def queries(self, before: Scan | pa.Table, after: Scan | pa.Table) -> AbstractContextManager[Queries]:
        return duck_queries(before, after)

    def frame_of(self, scan: Scan) -> pa.Table:
        return scan.to_arrow()

    def prepare(self, data: pa.RecordBatchReader | pa.Table, task: PrepareTask) -> LocalFrame:
        if task.memory is None:
            table = data if isinstance(data, pa.Table) else data.read_all()
            rows, codes, names = self._prepared(table, task, 0)
            return LocalFrame(rows, codes, tuple(names))
        known: dict[str, int] = {}
        by_piece: list[np.ndarray] = []

        def prepared() -> Iterator[pa.Table]:
            first = 0
            for piece in pieces_of(data, task.memory or MemoryLimit()):
                rows, codes, names = self._prepared(piece, task, first)
                numbers = np.array([known.setdefault(n, len(known)) for n in names], dtype=codes.dtype)
                by_piece.append(numbers[codes])
                first += piece.num_rows
                yield rows

        fields = [pa.field(RECORD_KEY, pa.string()), *task.schema]
        fields += [pa.field(n, pa.string()) for n in task.stated if n in data.schema.names]
        rows = keep_if_large(prepared(), pa.schema(fields), task.memory)
        codes = np.concatenate(by_piece) if by_piece else np.zeros(0, dtype=np.int32)
        return LocalFrame(rows, codes, tuple(known))

    def _prepared(
        self, table: pa.Table, task: PrepareTask, first: int
    ) -> tuple[pa.Table, np.ndarray, list[str]]:
        """Rows with keys, partition number of each, and the partitions.

        `first` is the first row's number in the whole input.
        """
        check_ordering(table, task, first)
        rows = conform(table, task.schema)
        # Of the values as they are stored: a number's text depends on its type.
        keys, paths = self.keys_and_paths(table, rows, task, first)
        if task.read_back is not None:
            task.read_back(rows, keys, paths)
        codes, names = path_codes(paths)
        rows = pa.table([keys, *rows.columns], names=[RECORD_KEY, *task.schema.names])
        for name in task.stated:
            if name in table.schema.names:
                rows = rows.append_column(name, to_text(table.column(name)))
        return rows, codes, names

    def keys_and_paths(
        self, data: pa.Table, rows: pa.Table, task: PrepareTask, first: int
    ) -> tuple[pa.Array, pa.Array]:
        """Record keys and partition paths of `rows`, which are `data` in the types to write."""
        if task.stored_keys:
            return stored_keys(data)
        spec = task.key_spec
        numbers = range(first, first + rows.num_rows)
        keys = made_up_keys("", 0, numbers) if spec.auto else record_keys(rows, spec)
        return keys, partition_paths(rows, spec)

    def partition_counts(self, frame: LocalFrame) -> dict[str, int]:
        counts = np.bincount(frame.codes, minlength=len(frame.partitions))
        return {p: int(n) for p, n in zip(frame.partitions, counts, strict=True) if n}

    def tag(
        self,
        frame: LocalFrame,
        storage: Storage,
        files: Mapping[str, Sequence[BaseFile]],
        task: LookupTask,
    ) -> LocalFrame:
        if task.prepped and (task.bucket is None or FILE_NAME in frame.rows.schema.names):
            named = located(frame, storage, files, task.slices, self.parallelism)
            if task.bucket is None:
                return named
        tagged = tag_rows(frame.rows, frame.codes, frame.partitions, storage, files, task, self.parallelism)
        self.looked_up = tagged.count
        return LocalFrame(tagged.rows, tagged.codes, tagged.partitions, tagged.files, tagged.location)

    def deleted_keys(self, frame: LocalFrame, among: Mapping[str, pa.Array], task: LookupTask) -> list[str]:
        deletes = deleted_rows(task, frame.rows)
        if deletes is None:
            return []
        keys = frame.rows.column(RECORD_KEY)
        hit = np.zeros(len(keys), dtype=bool)
        for partition, others in among.items():
            mine = deletes
            if not task.is_global:
                mine = deletes & (frame.codes == _number(frame.partitions, partition))
            hit |= mine & pc.is_in(keys, value_set=others).to_numpy()
        return list(pc.unique(keys.filter(pa.array(hit))).to_pylist())

    def profile(self, frame: LocalFrame) -> list[ProfileRow]:
        if frame.location is None:
            return [ProfileRow(p, "", n) for p, n in self.partition_counts(frame).items()]
        free = frame.location < 0
        fresh = np.bincount(frame.codes[free], minlength=len(frame.partitions))
        known = np.bincount(frame.location[~free], minlength=len(frame.files))
        out = [ProfileRow(p, "", int(n)) for p, n in zip(frame.partitions, fresh, strict=True) if n]
        moved = np.zeros(len(frame.files), dtype=np.int64)
        if MOVED in frame.rows.schema.names:
            going = pc.fill_null(frame.rows.column(MOVED), False).to_numpy()
            moved = np.bincount(frame.location[going], minlength=len(frame.files))
        for (code, file_id), n, gone in zip(frame.files, known, moved, strict=True):
            if n:
                out.append(ProfileRow(frame.partitions[code], file_id, int(n), int(gone)))
        return out

    def write(self, frame: LocalFrame, context: WriteContext, routing: Routing) -> list[WriteStat]:
        numbers = bucket_numbers(frame, routing)
        by_bucket = rows_by_code(numbers + 1, len(routing.buckets) + 1)[1:]
        if context.memory is not None:  # each of the workers has its part of it
            context = replace(context, memory=context.memory.shared(self.parallelism))
        rows = as_written(frame.rows, context.row_schema())
        attempts = count()

        def work(number: int) -> list[WriteStat]:
            token = TaskToken(number, 0, number if context.seed else next(attempts))
            return write_bucket(context, routing.buckets[number], taken.of(number), token)

        order = sorted(range(len(routing.buckets)), key=lambda i: -routing.buckets[i].expected_bytes)
        with (
            buckets_of(rows, numbers, by_bucket, context.memory) as taken,
            ThreadPoolExecutor(self._writers(context, routing)) as pool,
        ):
            taking = [i for i in order if len(by_bucket[i])]
            if len(taking) == 1:  # which needs no thread
                stats = work(taking[0])
                self.on_progress(1, 1)
                return stats
            futures = [pool.submit(work, i) for i in taking]
            done = count(1)
            for future in futures:
                future.add_done_callback(lambda _: self.on_progress(next(done), len(futures)))
            try:
                return [s for f in futures for s in f.result()]
            except BaseException:
                for f in futures:
                    f.cancel()
                raise

    def _writers(self, context: WriteContext, routing: Routing) -> int:
        """Number of files to write in parallel: more than cores where small files wait for storage."""
        largest = max((b.expected_bytes for b in routing.buckets), default=0)
        if context.storage.is_local:
            return self.parallelism
        return max(self.parallelism, min(REMOTE_WRITERS, REMOTE_BYTES // max(1, largest)))

    def write_stream(
        self, data: pa.RecordBatchReader | pa.Table, task: PrepareTask, context: WriteContext
    ) -> list[WriteStat]:
        if task.order.function:
            whole = data if isinstance(data, pa.Table) else data.read_all()
            data = user_ordered(whole, task.order.function, task.order.tasks)
        ordered: Iterable[pa.Table | pa.RecordBatch] | None = None
        if not task.order.function and (task.order.columns or task.order.mode in SORTING):
            whole = task.memory is None and isinstance(data, pa.Table)
            pieces = iter([data]) if whole else pieces_of(data, task.memory or MemoryLimit())
            ordered = in_order(pieces, task)

        def batches() -> Iterator[pa.RecordBatch]:
            source = ordered
            if source is None:
                source = [data] if isinstance(data, pa.Table) else data
            for piece in source:
                for batch in (
                    piece.to_batches(max_chunksize=STREAM_BATCH_ROWS)
                    if isinstance(piece, pa.Table)
                    else [piece]
                ):
                    check_ordering(batch, task)
                    yield batch

        with ThreadPoolExecutor(self.parallelism) as pool:
            return write_stream(context, batches(), TaskToken(), pool)

    def compact(self, tasks: Sequence[Task]) -> list[WriteStat | None]:
        return run_on_threads(tasks, self.parallelism)

    def release(self, frame: LocalFrame | None) -> None:
        return


def _number(partitions: Sequence[str], partition: str) -> int:
    return partitions.index(partition) if partition in partitions else -1


def user_ordered(rows: pa.Table, name: str, tasks: int | None) -> pa.Table:
    """Rows in the order of the user's function, called with a `pyarrow.Table` and tasks.

    Raises:
        OptionError: there is no such function, or it gave back something else than these rows.
    """
    out = user_function(name)(rows, tasks)
    if not isinstance(out, pa.Table) or out.schema != rows.schema or out.num_rows != rows.num_rows:
        got = (
            f"{out.num_rows:,} rows of {out.schema.names}"
            if isinstance(out, pa.Table)
            else type(out).__name__
        )
        raise OptionError(
            f"the partitioner {name} gave back {got}, not the {rows.num_rows:,} rows that it was given",
            remedy="it may change the order of the rows, nothing else; give back a pyarrow.Table.",
        )
    return out


def located(
    frame: LocalFrame,
    storage: Storage,
    files: Mapping[str, Sequence[BaseFile]],
    logged: LoggedSlices | None = None,
    threads: int = 1,
) -> LocalFrame:
    """The frame with each row's stated file as its location.

    Raises:
        ConcurrentWriterError, MissingColumnError: see `check_files`; `refuse_changed`.
        MissingFileError, CorruptFileError, SchemaError, UnsupportedError, StorageError: reading a slice.
    """
    names = one_array(frame.rows.column(FILE_NAME)).dictionary_encode()
    texts = names.dictionary.to_pylist()
    at = names.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    known = np.flatnonzero(at >= 0)
    pairs, place, counts = np.unique(
        frame.codes[known].astype(np.int64) * max(len(texts), 1) + at[known],
        return_inverse=True,
        return_counts=True,
    )
    places = [(int(p) // len(texts), texts[int(p) % len(texts)]) for p in pairs]
    stated = [(frame.partitions[code], name) for code, name in places]
    beside = check_files(
        dict(zip(stated, counts.tolist(), strict=True)), files, logged,
        columns=frame.rows.schema.names, table=storage.uri,
    )  # fmt: skip
    # A group with logs may be named by its base file and by its id.
    of_place = [stated_group(*s) for s in stated]
    numbers = {group: n for n, group in enumerate(dict.fromkeys(of_place))}
    location = np.full(frame.rows.num_rows, -1, dtype=np.int32)
    location[known] = np.array([numbers[g] for g in of_place], dtype=np.int32)[place]
    if beside and logged is not None:
        versions = frame.rows.select([RECORD_KEY, COMMIT_SEQNO])
        in_group = rows_by_code(location + 1, len(numbers) + 1)[1:]

        def changed(group: tuple[str, str]) -> int:
            mine = versions.take(pa.array(in_group[numbers[group]]))
            return int((~logged.unchanged(storage, group, mine)).sum())

        with ThreadPoolExecutor(threads) as pool:
            refuse_changed(dict(zip(beside, pool.map(changed, beside), strict=True)), table=storage.uri)
    codes = {path: code for code, path in enumerate(frame.partitions)}
    groups = tuple((codes[path], file_id) for path, file_id in numbers)
    return LocalFrame(frame.rows, frame.codes, frame.partitions, groups, location)


class StoredRowsEngine(LocalEngine):
    """Engine for stored rows with meta columns, which give key and path.

    Made anew from the data columns they might differ: a partition path does not always give back the value
    that it was made from.
    """

    def keys_and_paths(
        self, data: pa.Table, rows: pa.Table, task: PrepareTask, first: int
    ) -> tuple[pa.Array, pa.Array]:
        return stored_keys(data)


def check_ordering(rows: pa.Table | pa.RecordBatch, task: PrepareTask, first: int | None = None) -> None:
    """Refuse null ordering values.

    Args:
        first: number of the first of the rows in the whole input, where that is known.

    Raises:
        OrderingValueError: naming the column, how many rows, and the first of them.
    """
    if not task.check_ordering or task.ordering_field is None:
        return
    column = nested_column(rows, task.ordering_field)
    if column is None:
        raise MissingColumnError(
            f"ordering column {task.ordering_field!r} is not in the data",
            remedy="write rows with it.",
            column=task.ordering_field,
        )
    if column.null_count:
        nulls = f"is null in {column.null_count} of {rows.num_rows} rows"
        if first is not None:
            nulls += f", first in row {first + pc.index(column.is_null(), True).as_py()}"
        raise OrderingValueError(
            f"ordering field {task.ordering_field!r} {nulls}",
            remedy="fill the column, or choose another hoodie.datasource.write.precombine.field.",
            column=task.ordering_field,
        )


def bucket_numbers(frame: LocalFrame, routing: Routing) -> np.ndarray:
    """Bucket number of each row; -1 for rows without one."""
    n = frame.rows.num_rows
    out = np.full(n, -1, dtype=np.int64)
    free = np.ones(n, dtype=bool)
    if frame.location is not None:
        free = frame.location < 0
        buckets = np.array(
            [routing.located.get((frame.partitions[code], file_id), -1) for code, file_id in frame.files],
            dtype=np.int64,
        )
        tagged = ~free
        out[tagged] = buckets[frame.location[tagged]]
    hashes: np.ndarray | None = None
    for code, partition in enumerate(frame.partitions):
        shares = routing.inserts.get(partition)
        if shares is None:
            continue
        rows = np.flatnonzero(free & (frame.codes == code))
        if len(shares) == 1:
            out[rows] = shares[0].bucket
            continue
        if hashes is None:
            hashes = crc32(frame.rows.column(RECORD_KEY)).to_numpy(zero_copy_only=False).astype(np.float64)
        bounds = np.array([s.upto for s in shares]) * 2.0**32
        which = np.minimum(np.searchsorted(bounds, hashes[rows], side="right"), len(shares) - 1)
        out[rows] = np.array([s.bucket for s in shares])[which]
    return out
