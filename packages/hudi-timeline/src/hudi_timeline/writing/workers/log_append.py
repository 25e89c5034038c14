"""Log append: a bucket's rows as blocks of a new log file of their file slice.

One append is data blocks, then a delete block, with one instant; under a merge of the user's, which meets records in
their order, the delete block comes first, and of a key's rows those that a delete among them ends are left out.  A file
is never appended to in place: each attempt of a task has a file of its own, whose name says the write and the attempt,
so that what an attempt leaves that lost can be told from what counts.

Source: HoodieAppendHandle of Apache Hudi 0.15, compared with its files: `_hoodie_file_name` of a logged record is the
file id, deletes of the operation `delete` have no ordering value, timestamps order as numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.spill import gather, in_pieces
from hudi_format.errors import ConcurrentWriterError
from hudi_format.file_slice.writer import FileSpec, RowCounter, stamp
from hudi_format.keygen.record_keys import nested_column
from hudi_format.log.writer import LogWriter, WrittenLog
from hudi_format.merge.key_index import key_groups
from hudi_format.merge.record_merger import DELETE_DEFAULT, deletes_of, event_times
from hudi_format.model import WriteStat, join_path
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_index.tagging import record_kinds
from hudi_timeline.concurrency.marked_files import confirm_marked
from hudi_timeline.concurrency.markers import APPEND, append_token
from hudi_timeline.writing.workers.file_writer import file_spec, start_file
from hudi_timeline.writing.workers.tasks import Bucket, LogTarget, TaskToken, WriteContext


def append_log(
    context: WriteContext, bucket: Bucket, rows: pa.Table, token: TaskToken, counter: RowCounter
) -> list[WriteStat]:
    """Append a bucket's rows to its file slice; returns a statistic per log file.

    Args:
        rows: record key and data columns, later rows are newer.

    Raises:
        SchemaError: a value that does not fit the schema, or an ordering value that a delete cannot have.
        ConcurrentWriterError: the write is over.
        StorageError: the storage refused.
    """
    if bucket.log is None:
        raise ValueError(f"bucket {bucket.number} appends to {bucket.file_id} but names no slice")
    if not rows.num_rows:
        return []
    began = time.monotonic()
    gone, without_order = _deletes(context, rows)
    in_order = bool(context.rule.custom) and bool(gone.any())
    if in_order:
        left = _not_ended(rows, gone)
        rows, gone, without_order = gather(rows, left, context.memory), gone[left], without_order[left]
    files = _LogFiles(context, bucket, bucket.log, token)
    try:
        if in_order:
            files.append_deletes(rows, gone, without_order)
        kept = rows if not gone.any() else gather(rows, np.flatnonzero(~gone), context.memory)
        for piece in in_pieces(kept, context.memory) if kept.num_rows else ():
            files.writer.append_rows(
                stamp(piece, files.spec, counter), context.log.block, codec=context.parquet.codec
            )
        if gone.any() and not in_order:
            files.append_deletes(rows, gone, without_order)
        written = files.close()
    except BaseException:
        files.abort()
        raise
    took = int((time.monotonic() - began) * 1000)
    deleted = int(gone.sum())
    times = None if context.delete_all else _event_range(context, rows, ~gone)
    stored = rows.num_rows - deleted
    return [
        _stat(bucket.log, w, took, stored if n == 0 else 0, deleted if n == 0 else 0, times)
        for n, w in enumerate(written)
    ]


def _deletes(context: WriteContext, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Masks of deletes, and of those without ordering value."""
    kinds = record_kinds(context, rows)
    if kinds is None:
        none = np.zeros(rows.num_rows, dtype=bool)
        return none, none
    return deletes_of(kinds), kinds == DELETE_DEFAULT


def _not_ended(rows: pa.Table, gone: np.ndarray) -> np.ndarray:
    """Ascending rows (int64) of each key from its last delete on; all of a key without one."""
    first = key_groups(rows.column(RECORD_KEY))
    last = np.full(len(gone), -1, dtype=np.int64)
    deletes = np.flatnonzero(gone)
    last[first[deletes]] = deletes  # of several rows the last counts
    left: np.ndarray = np.flatnonzero(np.arange(len(gone)) >= last[first])
    return left


class _LogFiles:
    """Log files of one append, with their markers."""

    def __init__(self, context: WriteContext, bucket: Bucket, target: LogTarget, token: TaskToken) -> None:
        self._context, self._bucket = context, bucket
        self._guards: dict[str, Callable[[], None]] = {}
        spec = file_spec(context, bucket.partition, bucket.file_id, token)
        self.spec = LogSpec(**{f.name: getattr(spec, f.name) for f in fields(spec)})
        self.writer = LogWriter(
            context.storage, bucket.partition, bucket.file_id, target.base_instant,
            instant=context.instant, schema=context.avro_schema, version=target.version,
            write_token=append_token(token.partition_id, context.instant, token.attempt_id),
            max_file_size=context.log.file_bytes, max_block_size=context.log.block_bytes, announce=self._announce,
        )  # fmt: skip

    def _announce(self, name: str) -> None:
        context, partition = self._context, self._bucket.partition
        self._guards[name] = start_file(context, partition, name, APPEND)
        # After the marker: a commit either sees the marker, or is seen here.  Blocks count by their instant, whatever
        # the commit says of their file.
        if context.completed and context.storage.info(context.completed) is not None:
            raise ConcurrentWriterError(
                "the write was completed without this attempt",
                table=context.storage.uri,
                instant=context.instant,
                file=join_path(partition, name),
                remedy="nothing of this attempt is visible, and nothing is to be done.",
            )

    def append_deletes(self, rows: pa.Table, gone: np.ndarray, without_order: np.ndarray) -> None:
        """Append the delete block."""
        deleted = rows.filter(pa.array(gone))
        ordering = _ordering(self._context, deleted, without_order[gone])
        paths = pa.repeat(self._bucket.partition, deleted.num_rows)
        self.writer.append_deletes(deleted.column(RECORD_KEY), paths, ordering)

    def close(self) -> tuple[WrittenLog, ...]:
        """Close and confirm the files."""
        for guard in self._guards.values():
            guard()
        written = self.writer.close()
        for w in written:
            confirm_marked(self._context.storage, self._guards[w.file.name], w.file.path)
        return written

    def abort(self) -> None:
        """Close and remove the files, which no one else has a name for.

        The write may be completed without this attempt: then their blocks would count.
        """
        self.writer.abort()


class LogSpec(FileSpec):
    """Specification of log records: that of a base file, with the file id as file name."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self.file_id


def _ordering(context: WriteContext, rows: pa.Table, without: np.ndarray) -> pa.Array | None:
    """Ordering values of deletes; null where one has none, and None where none has."""
    if context.delete_all or not context.ordering_field or without.all():
        return None
    column = nested_column(rows, context.ordering_field)
    if column is None:
        return None
    values = one_array(column)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return pc.if_else(pa.array(without), pa.scalar(None, values.type), values) if without.any() else values


def _event_range(
    context: WriteContext, rows: pa.Table, kept: np.ndarray
) -> tuple[int | None, int | None] | None:
    if not context.rule.event_time or not context.event_time_field or not kept.any():
        return None
    column = nested_column(rows, context.event_time_field)
    found = None if column is None else event_times(column)
    if found is None:
        return None
    ends = pc.min_max(found.filter(pa.array(kept))).as_py()
    return ends["min"], ends["max"]


def _stat(
    target: LogTarget,
    written: WrittenLog,
    took_ms: int,
    data: int,
    deleted: int,
    times: tuple[int | None, int | None] | None,
) -> WriteStat:
    low, high = times or (None, None)
    stat = written.stat(target.base_instant, target.base_file, target.files, rows=data, deletes=deleted)
    return replace(stat, min_event_time=low, max_event_time=high, upsert_time_ms=took_ms)
