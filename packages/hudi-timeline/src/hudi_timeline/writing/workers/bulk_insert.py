"""bulk_insert: streams rows into new base files, one open file per partition.

Bounded in memory: a partition's rows are gathered until they fill a row group, and all that is gathered
together stays below `GATHER_BYTES`, or the memory limit.  With an executor the row groups of different files are
encoded at the same time; the order within a file is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor, Future
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.sizes import size_of
from hudi_format.arrow.spill import split
from hudi_format.errors import HudiError, RecordKeyError
from hudi_format.file_names import new_file_id_prefix
from hudi_format.file_slice.writer import RowCounter
from hudi_format.keygen.java_text import to_text
from hudi_format.keygen.partition_path import check_names
from hudi_format.keygen.record_keys import made_up_keys, partition_paths, record_keys
from hudi_format.model import WriteStat
from hudi_format.schema.evolution import conform
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_index.tagging import deleted_rows
from hudi_timeline.writing.workers.file_writer import SizedFiles
from hudi_timeline.writing.workers.null_elements import with_null_elements
from hudi_timeline.writing.workers.tasks import TaskToken, WriteContext, check_sequences

GATHER_BYTES = 512 << 20
# A row group is handed on when a partition has gathered this much; the writer cuts row groups itself.
HAND_ON_BYTES = 32 << 20


class _PartitionWriter:
    """Buffered rows and files of one partition."""

    def __init__(self, context: WriteContext, partition: str, token: TaskToken, counter: RowCounter) -> None:
        prefix = new_file_id_prefix(context.seed, partition, token.partition_id)
        self.files = SizedFiles(context, partition, prefix, token, counter)
        self.gathered: list[pa.Table] = []
        self.gathered_bytes = 0
        self.last: Future[None] | None = None


class BulkWriter:
    """Writes batches of data columns by partition."""

    def __init__(self, context: WriteContext, token: TaskToken, executor: Executor | None = None) -> None:
        self._context = context
        self._token = token
        self._executor = executor
        self._counter = RowCounter()
        self._keys_made = RowCounter()
        self._partitions: dict[str, _PartitionWriter] = {}
        self._gathered = 0
        memory = context.memory
        self._most_gathered = GATHER_BYTES if memory is None else min(GATHER_BYTES, memory.held)
        self._hand_on_bytes = min(HAND_ON_BYTES, self._most_gathered)
        self._pending: list[Future[None]] = []
        self._null_elements: set[str] = set()

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add keys to a batch and buffer its rows by partition.

        Raises:
            RecordKeyError, PartitionPathError: a row without a usable key or path.
        """
        context = self._context
        if batch.num_rows == 0:
            return
        # Of the values as they are stored: a number's text depends on its type.
        data = conform(batch, context.input_schema or context.schema)
        check_sequences(context, data)
        if context.stored_keys:
            keys, paths = stored_keys(batch)
        elif context.key_spec.auto:
            numbers = self._keys_made.take(data.num_rows)
            keys = made_up_keys(context.instant, self._token.partition_id, numbers)
        else:
            keys = record_keys(data, context.key_spec)
        if not context.stored_keys:
            paths = partition_paths(data, context.key_spec)
        self._null_elements.update(with_null_elements(data))
        stored = context.schema.names
        rows = pa.table([keys, *(data.column(n) for n in stored)], names=[RECORD_KEY, *stored])
        deleted = deleted_rows(context, rows)
        codes, names = path_codes(paths)
        if deleted is not None:
            rows, codes = rows.filter(pa.array(~deleted)), codes[~deleted]
        parts = [(names[code], part) for code, part in split(rows, codes)]
        if context.storage.is_local:
            for partition, _ in parts:
                if partition not in self._partitions:
                    check_names(partition)
        for partition, part in parts:
            self._gather(partition, part)

    def _gather(self, partition: str, rows: pa.Table) -> None:
        writer = self._partitions.get(partition)
        if writer is None:
            writer = _PartitionWriter(self._context, partition, self._token, self._counter)
            self._partitions[partition] = writer
        size = size_of(rows)
        writer.gathered.append(rows)
        writer.gathered_bytes += size
        self._gathered += size
        if writer.gathered_bytes >= self._hand_on_bytes:
            self._hand_on(writer)
        while self._gathered >= self._most_gathered:
            self._hand_on(max(self._partitions.values(), key=lambda w: w.gathered_bytes))

    def _hand_on(self, writer: _PartitionWriter, *, close: bool = False) -> None:
        rows = pa.concat_tables(writer.gathered) if writer.gathered else None
        self._gathered -= writer.gathered_bytes
        writer.gathered, writer.gathered_bytes = [], 0

        def work() -> None:
            if rows is not None and rows.num_rows:
                writer.files.write(rows)
            if close:
                writer.files.close()

        if self._executor is None:
            work()
            return
        # What is handed on but not written counts too: wait for the oldest beyond a few.
        while len(self._pending) >= 4:
            self._pending.pop(0).result()
        if writer.last is not None:
            writer.last.result()
        writer.last = self._executor.submit(work)
        self._pending.append(writer.last)

    def finish(self) -> list[WriteStat]:
        """Write buffered rows, close all files; returns their statistics."""
        for writer in self._partitions.values():
            self._hand_on(writer, close=True)
        for future in self._pending:
            future.result()
        stats = [s for w in self._partitions.values() for s in w.files.stats]
        return [replace(s, null_elements=tuple(self._null_elements)) for s in stats]

    def abort(self) -> None:
        """Remove open files; complete ones are left to the rollback."""
        for future in self._pending:
            future.cancel()
        for future in self._pending:
            if not future.cancelled():
                future.exception()
        for writer in self._partitions.values():
            writer.files.abort()


def stored_keys(data: pa.Table | pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Keys and paths of rows that have their meta columns.

    Raises:
        RecordKeyError: a row without one of them, which is none of the table's.
    """
    for name in (RECORD_KEY, PARTITION_PATH):
        nulls = data.column(name).null_count
        if nulls:
            raise RecordKeyError(
                f"{name} is null in {nulls} of {data.num_rows} rows: they were not read from the table",
                remedy="insert new rows without the meta columns; update only rows that the table gave.",
                column=name,
            )
    return to_text(data.column(RECORD_KEY)), to_text(data.column(PARTITION_PATH)).dictionary_encode()


def path_codes(paths: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """Partition paths as codes (one per row), and the text of each code."""
    array = one_array(paths)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes, names = array.indices.to_numpy(zero_copy_only=False), array.dictionary.to_pylist()
    numbers = {name: n for n, name in enumerate(dict.fromkeys(names))}
    if len(numbers) < len(names):  # values of one path, as the days of a year in `yyyy`, or null and ""
        codes = np.array([numbers[name] for name in names], dtype=codes.dtype)[codes]
    return codes, list(numbers)


def write_stream(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch | pa.Table],
    token: TaskToken,
    executor: Executor | None = None,
) -> list[WriteStat]:
    """Write all batches as new files by partition; returns one statistic per file.

    Raises:
        HudiError: with table and instant; no file of this attempt is left open.
    """
    # Side by side partitions would number their rows in turns.
    writer = BulkWriter(context, token, None if context.seed else executor)
    try:
        for batch in batches:
            writer.add(batch)
        return writer.finish()
    except HudiError as e:
        writer.abort()
        raise e.at(table=context.storage.uri, instant=context.instant) from e.__cause__
    except BaseException:
        writer.abort()
        raise
