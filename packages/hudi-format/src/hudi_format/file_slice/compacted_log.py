"""Compacted log of a file slice: its log blocks merged into one of data and one of deletes.

The records of the logs meet one another as in a read, and no base row.  What comes of each key is written once, to a
new log file: a record keeps its commit time and sequence number, a delete its ordering value.  The old blocks stay
where they are; the header of the new ones names their instants, and a reader that knows it (Apache Hudi's optimized
scan, every reader here) passes over them.  One that does not meets each key's result behind what it was made of, and
finds the same.

Source: HoodieLogCompactionPlanGenerator, LogCompactionExecutionHelper and HoodieAppendHandle of Apache Hudi 0.15,
compared with its files (tests/golden/v6/mor_log_compacted).  One difference on purpose: a record that is marked as
deleted stays such a record, where Apache Hudi makes it a delete, which some payloads compare in another way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hudi_format.arrow.arrays import one_array
from hudi_format.errors import UnsupportedError
from hudi_format.file_slice.reader import SliceMerge
from hudi_format.file_slice.slice_entries import SliceEntries, compares, open_log
from hudi_format.log.block import BlockType, HeaderKey
from hudi_format.log.corruption import CommittedRange
from hudi_format.log.scanner import SliceLog
from hudi_format.log.writer import DEFAULT_BLOCK_SIZE, LogWriter, WrittenLog
from hudi_format.merge.log_entries import Entries, Resolved
from hudi_format.merge.log_records import MergeCounts, OnePerKey
from hudi_format.merge.record_merger import DELETE, DELETE_DEFAULT
from hudi_format.merge.user_merger import custom_of
from hudi_format.model import FileSlice, WriteStat
from hudi_format.schema.meta_fields import FILE_NAME, META_COLUMNS
from hudi_format.storage.protocol import Storage

_ONE_FILE = 1 << 62


@dataclass(frozen=True, slots=True)
class LogCompaction:
    """Log compaction of one file slice.

    Attributes:
        slice: the log files to merge; its base file is not looked at.
        merge: how a read merges them.
        table: the columns of a read of the table, with meta columns where it fills them.
        schema: the data columns that its files hold.
        instant: that of the log compaction.
        avro_schema: of the new block, with meta columns; JSON text.
        version, write_token: of the new log file.
        kind: type of the data block.
        codec: of Parquet pages.
        block_bytes: size of a data block, about; what is larger makes several.
        committed: what completed instants say that they wrote, by path of the log file.
    """

    slice: FileSlice
    merge: SliceMerge
    table: pa.Schema
    schema: pa.Schema
    instant: str
    avro_schema: str
    version: int
    write_token: str
    kind: BlockType = BlockType.AVRO_DATA
    codec: str = "gzip"
    block_bytes: int = DEFAULT_BLOCK_SIZE
    committed: Mapping[str, tuple[CommittedRange, ...]] = field(default_factory=dict)


class _EveryKey(OnePerKey):
    """Resolver that gives deletes too, as no base row is there that they could meet."""

    def alone(self, resolved: Resolved, unseen: np.ndarray) -> tuple[Entries, np.ndarray]:
        left = np.flatnonzero(unseen)
        return resolved.entries.take(left), resolved.places[left]


def count_blocks(storage: Storage, file_slice: FileSlice, merge: SliceMerge) -> int:
    """Number of log blocks that a read of a slice goes through, 0 where they are of one instant.

    Errors as of `SliceLog`.
    """
    with SliceLog(storage, file_slice.log_files, merge.scope) as log:
        return len(log.blocks) if len({b.instant for b in log.blocks}) > 1 else 0


def compact_log(
    storage: Storage,
    compaction: LogCompaction,
    *,
    begin: Callable[[str], Callable[[], None]] = lambda _: lambda: None,
) -> WriteStat | None:
    """Write the merged records of a slice's logs to a new log file; None where there is none.

    Args:
        begin: called with the file's name before its first byte; gives the check to make before it is closed.

    Raises:
        MissingFileError, CorruptFileError: a log file of the slice is not there, or damaged; no file is left behind.
        SchemaError, SpillError: as of a read of the slice.
        UnsupportedError: a merge that is no function of one record for each key, or partial updates.
        StorageError: the storage refused.
    """
    began = time.monotonic()
    merge = compaction.merge
    refuse_merge(merge, storage.uri)
    schema = merge.merge_schema(compaction.table, compaction.table)
    resolver = _EveryKey(merge.rule, logged=True, ordered=compares(merge))
    files = compaction.slice.log_files
    with open_log(storage, files, merge, compaction.committed) as log:
        parts = SliceEntries(merge, schema, log.blocks)
        if parts.partial:
            raise UnsupportedError(
                "the log files have partial updates, which are not merged with one another",
                table=storage.uri,
                remedy="compact the table instead.",
            )
        with parts.records(files, resolver) as records:
            counts = parts.add_all(log, storage.uri)
            records.meet(())
            scanned = time.monotonic()
            # Newest first, as in Apache Hudi's headers.
            merged = list(dict.fromkeys(b.instant for b in reversed(log.blocks)))
            done = _write(storage, compaction, records.rest(), ",".join(merged), begin)
    if done is None:
        return None
    written, rows, deletes = done
    return _stat(compaction, written, counts, rows, deletes, scanned - began, time.monotonic() - scanned)


def refuse_merge(merge: SliceMerge, table: str) -> None:
    """Raise UnsupportedError where the records of a key cannot be made one without its base row."""
    if custom_of(merge.rule) is not None:
        raise UnsupportedError(
            "a merge of the user's meets the base row record by record, so that those of the logs cannot be made one",
            table=table,
            remedy="compact the table instead.",
        )


def _write(
    storage: Storage,
    compaction: LogCompaction,
    parts: Iterator[Entries],
    merged: str,
    begin: Callable[[str], Callable[[], None]],
) -> tuple[WrittenLog, int, int] | None:
    """Write all records; gives the file, and the numbers of records and deletes."""
    header = {int(HeaderKey.COMPACTED_BLOCK_TIMES): merged}
    guards: list[Callable[[], None]] = []
    rows, deletes = 0, []
    writer = LogWriter(
        storage, compaction.slice.partition, compaction.slice.file_id, compaction.slice.base_instant,
        instant=compaction.instant, schema=compaction.avro_schema, version=compaction.version,
        write_token=compaction.write_token, max_file_size=_ONE_FILE, max_block_size=compaction.block_bytes,
        announce=lambda name: guards.append(begin(name)),
    )  # fmt: skip
    try:
        for part in parts:
            gone = part.kinds >= DELETE
            if gone.any():
                found = part.take(np.flatnonzero(gone))
                deletes.append(Entries(pa.table({}), found.keys, found.ordering, found.kinds))
            if not gone.all():
                kept = part if not gone.any() else part.take(np.flatnonzero(~gone))
                stored = _as_stored(kept.rows, compaction)
                writer.append_rows(stored, compaction.kind, codec=compaction.codec, header=header)
                rows += len(kept)
        for one in deletes:
            paths = pa.repeat(compaction.slice.partition, len(one))
            writer.append_deletes(one.keys, paths, _ordering(one), header=header)
        for guard in guards:
            guard()
        written: Sequence[WrittenLog] = writer.close()
    except BaseException:
        writer.abort()
        raise
    return (written[0], rows, sum(map(len, deletes))) if written else None


def _as_stored(rows: pa.Table, compaction: LogCompaction) -> pa.Table:
    """Records with the meta columns of the file; without stored ones, the file name alone is filled."""
    columns = []
    for name in META_COLUMNS:
        if name in rows.column_names:
            columns.append(rows.column(name))
        elif name == FILE_NAME:
            columns.append(pa.repeat(compaction.slice.file_id, rows.num_rows))
        else:
            columns.append(pa.nulls(rows.num_rows, pa.string()))
    names = compaction.schema.names
    return pa.table([*columns, *(rows.column(n) for n in names)], names=[*META_COLUMNS, *names])


def _ordering(deletes: Entries) -> pa.Array | pa.ChunkedArray | None:
    """Ordering values of deletes as they stand in a block; null where one has none."""
    without = deletes.kinds == DELETE_DEFAULT
    values = deletes.ordering
    if values is None or without.all():
        return None
    values = one_array(values)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    if not without.any():
        return values
    places = np.where(without, 0, np.arange(len(values)))
    return values.take(pa.array(places, mask=without))


def _stat(
    compaction: LogCompaction,
    written: WrittenLog,
    counts: MergeCounts,
    rows: int,
    deletes: int,
    scan: float,
    upsert: float,
) -> WriteStat:
    found = compaction.slice
    base = "" if found.base_file is None else found.base_file.name
    earlier = [f.name for f in found.log_files]
    stat = written.stat(found.base_instant, base, earlier, rows=rows, deletes=deletes)
    return replace(
        stat,
        scan_time_ms=int(scan * 1000),
        upsert_time_ms=int(upsert * 1000),
        extra={**counts.totals(found.log_files), **stat.extra},
    )
