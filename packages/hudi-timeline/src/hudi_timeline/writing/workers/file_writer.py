"""Writer of new base files: marker, name, rollover at the target size.

Every file gets a marker before its first byte, and the marker is looked at again before the file is closed, and after.

Source: Apache Hudi 0.15 ends a file when the bytes that its Parquet writer has encoded pass
`hoodie.parquet.max.file.size` (and a tenth), and looks at every hundredth record at the earliest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_format.arrow.sizes import size_of
from hudi_format.file_slice.writer import FileSpec, RowCounter, stamp
from hudi_format.model import WriteStat
from hudi_format.parquet.layout import KeyObserver
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.partition_metadata import write_if_absent
from hudi_format.schema.meta_fields import with_meta
from hudi_index.bloom.key_observer import observer_of, observer_of_rewritten
from hudi_timeline.concurrency.marked_files import confirm_marked, start_marked
from hudi_timeline.concurrency.markers import file_id_of
from hudi_timeline.writing.workers.tasks import CREATE, TaskToken, WriteContext

# A file has at least so many records, however large they are.
MIN_ROWS = 100
# A file that is so full gets no further row group: it would be a very small one.
_FULL = 0.95
# Columns that are made for each row: the sequence number, and the codes of the constant ones.
_STAMP_BYTES = 48


def start_file(context: WriteContext, partition: str, name: str, kind: str) -> Callable[[], None]:
    """Create the marker of a file; returns the check to make before its close.

    Raises:
        ConcurrentWriterError: the write is over: completed without this attempt, or rolled back.
        WriteConflictError: another writer is at work on its file group (early conflict detection).
    """

    def begin() -> Callable[[], None]:
        return start_marked(context.storage, context.instant, context.inflight, partition, name, kind)

    # Nobody else has the id of a new file group, unless it is that of a bucket.
    if context.early is None or (kind == CREATE and context.bucket is None):
        return begin()
    with context.early.checked(context.storage, partition, file_id_of(name)):
        return begin()


def rewriting_observer(
    context: WriteContext, most_deleted: int, footer: Mapping[str, str], num_rows: int
) -> KeyObserver:
    """Observer for the bloom filter and key range of a file that is rewritten."""
    if context.virtual:
        return observer_of(context.bloom, virtual=True)
    return observer_of_rewritten(footer, context.bloom, num_rows=num_rows, most_deleted=most_deleted)


def file_spec(context: WriteContext, partition: str, file_id: str, token: TaskToken) -> FileSpec:
    return FileSpec(
        partition=partition,
        file_id=file_id,
        write_token=token.text,
        instant=context.instant,
        schema=context.schema,
        config=context.parquet,
        sequence_prefix=f"{context.instant}_{token.partition_id}_",
        entries={"parquet.avro.schema": context.avro_schema, "writer.model.name": "avro"},
        virtual=context.key_spec if context.virtual else None,
    )


@dataclass
class _OpenFile:
    spec: FileSpec
    writer: BaseFileWriter
    guard: Callable[[], None]
    began: float


class SizedFiles:
    """Writes rows of one partition into new files of the target size, in order.

    How much smaller rows become is measured on each row group that reaches the file, and foretells the next; the
    first is taken for as large as it is in memory.  A file so ends within a few per cent of
    `hoodie.parquet.max.file.size`; its footer, with the bloom filter, comes on top.

    Args:
        prefix: of the file ids, which are `<prefix>-0`, `<prefix>-1` ...

    Attributes:
        stats: of the files that are closed.
    """

    def __init__(
        self, context: WriteContext, partition: str, prefix: str, token: TaskToken, counter: RowCounter
    ) -> None:
        self.stats: list[WriteStat] = []
        self._context = context
        self._partition = partition
        self._prefix = prefix
        self._token = token
        self._counter = counter
        self._open: _OpenFile | None = None
        self._shrink = 1.0  # encoded bytes per byte in memory

    def write(self, rows: pa.Table) -> None:
        """Append rows: record key and data columns.

        Raises:
            StorageError: the storage refused; the open file is removed.
            ConcurrentWriterError: the write is over.
        """
        if not rows.num_rows:
            return
        row_bytes = max(1.0, size_of(rows) / rows.num_rows) + _STAMP_BYTES
        start = 0
        while start < rows.num_rows:
            file = self._open or self._begin()
            least = MIN_ROWS - file.writer.num_rows
            n = min(max(int(self._room(file.writer) / row_bytes), least, 1), rows.num_rows - start)
            file.writer.write(stamp(rows.slice(start, n), file.spec, self._counter))
            start += n
            self._measure(file.writer)
            if file.writer.num_rows < MIN_ROWS or self._room(file.writer) >= row_bytes:
                continue
            file.writer.flush()
            self._measure(file.writer)
            if file.writer.bytes_written >= _FULL * self._context.parquet.max_file_bytes:
                self.close()

    def _room(self, writer: BaseFileWriter) -> float:
        """Remaining bytes in memory for the file."""
        left = self._context.parquet.max_file_bytes - writer.bytes_written
        return left / self._shrink - writer.bytes_pending

    def _measure(self, writer: BaseFileWriter) -> None:
        encoded = writer.bytes_taken - writer.bytes_pending
        if encoded > 0:
            self._shrink = max(writer.bytes_written / encoded, 1e-4)

    def _begin(self) -> _OpenFile:
        context = self._context
        if not self.stats:
            write_if_absent(context.storage, self._partition, context.instant)
        spec = file_spec(context, self._partition, f"{self._prefix}-{len(self.stats)}", self._token)
        began = time.monotonic()
        guard = start_file(context, self._partition, spec.name, CREATE)
        writer = BaseFileWriter(
            context.storage, spec.path, with_meta(spec.schema),
            config=spec.config, observer=observer_of(context.bloom, virtual=context.virtual), entries=spec.entries,
        )  # fmt: skip
        self._open = _OpenFile(spec, writer, guard, began)
        return self._open

    def close(self) -> None:
        """Close the open file, if there is one.

        Raises:
            StorageError, ConcurrentWriterError: as `write`.
        """
        if self._open is None:
            return
        file, self._open = self._open, None
        try:
            file.guard()
            size = file.writer.close()
        except BaseException:
            file.writer.abort()
            raise
        confirm_marked(self._context.storage, file.guard, file.spec.path)
        n = file.writer.num_rows
        self.stats.append(
            WriteStat(
                file_id=file.spec.file_id,
                path=file.spec.path,
                partition=self._partition,
                num_writes=n,
                num_inserts=n,
                total_write_bytes=size,
                file_size_in_bytes=size,
                create_time_ms=int((time.monotonic() - file.began) * 1000),
            )
        )

    def abort(self) -> None:
        """Remove the open file; closed ones are left to the rollback."""
        if self._open is not None:
            file, self._open = self._open, None
            file.writer.abort()
