"""The worker of one bucket: reduce its records to one per key, then write the file group.

Runs on a thread or in a Spark executor, from a `WriteContext`, a `Bucket` and rows.  Every file gets a
marker before its first byte, and the marker is looked at again before the file is closed: an attempt whose
write was rolled back, or committed without it, removes its file and fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import ConcurrentWriterError, HudiError
from hudi_format.keys import nested_column, with_instant
from hudi_format.merge.keys import precombine
from hudi_format.merge.modes import (
    DATA,
    DATA_DELETED,
    DELETE,
    DELETE_DEFAULT,
    combine,
    deleted_kinds,
    event_times,
)
from hudi_format.merge.rules import MergeRule, Order
from hudi_format.model import BaseFile, WriteStat, join_path
from hudi_format.observer import NO_OBSERVER, KeyObserver
from hudi_format.parquet.entries import read_entries
from hudi_format.partition_metadata import write_if_absent
from hudi_format.schema.meta_columns import RECORD_KEY
from hudi_format.slice_writer import FileSpec, Incoming, RowCounter, concat_file, create_file, merge_file
from hudi_index.bloom.observer import (
    BLOOM,
    MAX_KEY,
    MIN_KEY,
    OLD_BLOOM,
    TYPE_CODE,
    BloomObserver,
    MinMaxObserver,
    seeded_observer,
)
from hudi_timeline.markers import marker_path
from hudi_timeline.write.tasks import CONCAT, CREATE, MERGE, MOVED, Bucket, TaskToken, WriteContext

# The key may stay in a footer's filter after its record was deleted: the filter then answers "maybe" for
# it.  Past this share of such keys a rewrite builds the filter anew.
STALE_KEYS_ALLOWED = 0.1


class Deletes(Protocol):
    """Which rows are deletes, as `WriteContext` says it."""

    @property
    def rule(self) -> MergeRule: ...

    @property
    def delete_all(self) -> bool: ...

    @property
    def delete_field(self) -> str: ...

    @property
    def delete_marker(self) -> str: ...


def write_bucket(
    context: WriteContext,
    bucket: Bucket,
    rows: pa.Table,
    token: TaskToken,
    counter: RowCounter | None = None,
) -> list[WriteStat]:
    """Write a bucket's rows and return a statistic for each file; [] where nothing was to be written.

    Args:
        rows: the columns of `context.row_schema()`, and `MOVED` where records move; any order of rows,
            later rows are newer.
        counter: numbers the rows; a task with several buckets gives the same to all.
    """
    counter = counter or RowCounter()
    try:
        if context.key_spec.auto:
            rows = rows.set_column(0, RECORD_KEY, with_instant(rows.column(RECORD_KEY), context.instant))
        rows = _one_per_key(context, rows) if context.combine or bucket.kind == MERGE else rows
        deleted = deleted_rows(context, rows)
        if bucket.kind == CREATE:
            if deleted is not None:
                rows = rows.filter(pa.array(~deleted))
            return _create(context, bucket, rows, token, counter)
        assert_base(bucket)
        if bucket.kind == CONCAT:
            if deleted is not None:
                rows = rows.filter(pa.array(~deleted))
            return [_concat(context, bucket, rows, token, counter)]
        return [_merge(context, bucket, rows, token, counter)]
    except HudiError as e:
        raise e.at(table=context.storage.uri, instant=context.instant) from e.__cause__


def assert_base(bucket: Bucket) -> BaseFile:
    """The base file that a bucket rewrites."""
    if bucket.base_file is None:
        raise ValueError(f"bucket {bucket.number} rewrites {bucket.file_id} but names no base file")
    return bucket.base_file


def _one_per_key(context: WriteContext, rows: pa.Table) -> pa.Table:
    keys = rows.column(RECORD_KEY)
    rule = context.rule
    ordering = None
    if context.combine and context.ordering_field and not context.delete_all:
        ordering = nested_column(rows, context.ordering_field)
    if not context.combine or context.delete_all or (rule.within == Order.GREATEST and not rule.fill_within):
        survivors = precombine(keys, ordering)
        return rows if len(survivors) == rows.num_rows else rows.take(pa.array(survivors))
    return combine(keys, rule, ordering=ordering, kinds=_kinds(context, rows)).take(rows)


def _kinds(context: Deletes, rows: pa.Table) -> np.ndarray | None:
    """What each row is (`hudi_format.merge.modes`); None where all are data."""
    if context.delete_all:
        return np.full(rows.num_rows, DELETE_DEFAULT, dtype=np.uint8)
    kinds = deleted_kinds(rows, context.rule, context.delete_field, context.delete_marker)
    if MOVED not in rows.schema.names:
        return kinds
    # That the record moves was decided by its ordering value already: here it only goes.
    moved = pc.fill_null(rows.column(MOVED), False).to_numpy()
    if kinds is None:
        return np.where(moved, np.uint8(DELETE_DEFAULT), np.uint8(DATA)) if moved.any() else None
    return np.where(moved, np.uint8(DELETE_DEFAULT), kinds)


def deleted_rows(context: Deletes, rows: pa.Table) -> np.ndarray | None:
    """Which rows are deletes (bool, one per row), None where none is."""
    kinds = _kinds(context, rows)
    if kinds is None:
        return None
    mask: np.ndarray = (kinds == DATA_DELETED) | (kinds >= DELETE)
    return mask if mask.any() else None


def start_file(context: WriteContext, partition: str, name: str, kind: str) -> Callable[[], None]:
    """Leave the marker of a file about to be written, and give the check to make before it is closed.

    Raises:
        ConcurrentWriterError: the write is over: completed without this attempt, or rolled back.
    """
    marker = marker_path(context.instant, partition, name, kind)

    def check(path: str) -> None:
        if context.storage.info(path) is None:
            raise ConcurrentWriterError(
                f"{path} is gone: the write was completed without this attempt, or rolled back by another writer",
                table=context.storage.uri, instant=context.instant, file=join_path(partition, name),
                remedy="run the write again if it failed; nothing of this attempt is visible.",
            )  # fmt: skip

    # A task that outlives its write must not even begin: what it leaves would have no instant to belong to.
    check(context.inflight)
    context.storage.touch(marker)
    return lambda: check(marker)


def new_observer(context: WriteContext) -> KeyObserver:
    """What collects the footer's filter and key range of a new file."""
    bloom = context.bloom
    if context.virtual:
        return NO_OBSERVER  # as Apache Hudi: such a footer says nothing of keys
    if bloom is None:
        return MinMaxObserver()
    return BloomObserver(bloom.type_code, bloom.entries, bloom.fpp, bloom.max_entries)


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


def _create(
    context: WriteContext, bucket: Bucket, rows: pa.Table, token: TaskToken, counter: RowCounter
) -> list[WriteStat]:
    if rows.num_rows == 0:
        return []
    write_if_absent(context.storage, bucket.partition, context.instant)
    stats: list[WriteStat] = []
    for part in _file_sized(rows, context.parquet.max_file_bytes):
        file_id = f"{bucket.file_id}-{len(stats)}"
        spec = file_spec(context, bucket.partition, file_id, token)
        guard = start_file(context, bucket.partition, spec.name, CREATE)
        stats.append(
            create_file(
                context.storage, spec, [part], observer=new_observer(context), guard=guard, counter=counter
            )
        )
    return stats


def _file_sized(rows: pa.Table, max_bytes: int) -> Iterator[pa.Table]:
    """Cut rows so that a file stays near its greatest size, at a third of Arrow's bytes once encoded."""
    files = max(1, -(-rows.nbytes // (3 * max_bytes)))
    step = -(-rows.num_rows // files)
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)


def _concat(
    context: WriteContext, bucket: Bucket, rows: pa.Table, token: TaskToken, counter: RowCounter
) -> WriteStat:
    old = assert_base(bucket)
    spec = file_spec(context, bucket.partition, bucket.file_id, token)
    guard = start_file(context, bucket.partition, spec.name, MERGE)
    observer, carried = _carried_observer(context, old, any_deleted=False)
    return concat_file(
        context.storage, spec, old, [rows],
        observer=observer, observe_all=not carried, guard=guard, counter=counter,
    )  # fmt: skip


def _merge(
    context: WriteContext,
    bucket: Bucket,
    rows: pa.Table,
    token: TaskToken,
    counter: RowCounter,
) -> WriteStat:
    old = assert_base(bucket)
    spec = file_spec(context, bucket.partition, bucket.file_id, token)
    guard = start_file(context, bucket.partition, spec.name, MERGE)
    ordering = None
    if context.rule.against_stored != Order.LATER and not context.delete_all and context.ordering_field:
        ordering = nested_column(rows, context.ordering_field)
    incoming = Incoming(
        rows=rows,
        rule=context.rule,
        kinds=_kinds(context, rows),
        ordering=ordering.combine_chunks() if isinstance(ordering, pa.ChunkedArray) else ordering,
        ordering_field=context.ordering_field,
        event_time=_event_times(context, rows),
    )
    deleted = incoming.deletes()
    observer, carried = _carried_observer(
        context,
        old,
        any_deleted=deleted is not None,
        most_deleted=0 if deleted is None else int(deleted.sum()),
    )
    return merge_file(
        context.storage, spec, old, incoming,
        observer=observer, observe_all=not carried, guard=guard, counter=counter,
    )  # fmt: skip


def _event_times(context: WriteContext, rows: pa.Table) -> pa.Array | None:
    if context.delete_all or not context.rule.event_time or not context.event_time_field:
        return None
    column = nested_column(rows, context.event_time_field)
    return None if column is None else event_times(column)


def _carried_observer(
    context: WriteContext, old: BaseFile, *, any_deleted: bool, most_deleted: int = 0
) -> tuple[KeyObserver, bool]:
    """An observer that goes on from the old file's footer where that is sound, and whether it does.

    Keys of a file group are only ever added or deleted.  Without deletes the old filter is exactly that of
    the old keys; with few, it holds some keys too many, which is allowed of a bloom filter.
    """
    if context.bloom is None or context.virtual:
        return new_observer(context), False
    footer = read_entries(context.storage, old.path, size=old.size)
    wanted = (BLOOM, OLD_BLOOM, TYPE_CODE, MIN_KEY, MAX_KEY)
    observer = seeded_observer(
        {name: footer.text(name) or "" for name in wanted if name in footer.values},
        context.bloom.type_code,
        context.bloom.entries,
        context.bloom.fpp,
        context.bloom.max_entries,
        num_rows=footer.num_rows,
        most_deleted=most_deleted if any_deleted else 0,
        stale_allowed=STALE_KEYS_ALLOWED,
    )
    return (observer, True) if observer is not None else (new_observer(context), False)
