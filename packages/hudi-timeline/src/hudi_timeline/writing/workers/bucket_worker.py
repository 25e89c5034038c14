"""Bucket worker: merges records by key, then writes the file group.

Runs on a thread or in a Spark executor, from a `WriteContext`, a `Bucket` and rows.  An attempt whose write was
rolled back, or committed without it, removes its file and fails (`hudi_timeline.writing.workers.file_writer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.spill import gather, in_pieces
from hudi_format.errors import HudiError
from hudi_format.file_names import parse_base_file
from hudi_format.file_slice.cdc_writer import CdcWriter
from hudi_format.file_slice.writer import (
    Carry,
    FileSpec,
    Incoming,
    RowCounter,
    by_id,
    concat_file,
    merge_file,
)
from hudi_format.keygen.record_keys import nested_column, with_instant
from hudi_format.merge.folding import folded_alone, inserted_alone
from hudi_format.merge.key_index import KeyIndex, precombine
from hudi_format.merge.ordering import ordering_column
from hudi_format.merge.payloads import MergeRule, Order
from hudi_format.merge.record_merger import DATA, combine, decide, event_times, merged_column
from hudi_format.merge.user_merger import STORED
from hudi_format.model import BaseFile, WriteStat
from hudi_format.parquet.footer import (
    BLOOM_FILTER,
    BLOOM_FILTER_OLD,
    BLOOM_TYPE,
    MAX_KEY,
    MIN_KEY,
    read_entries,
)
from hudi_format.parquet.layout import KeyObserver
from hudi_format.parquet.reader import iter_row_groups, read_keys
from hudi_format.schema.meta_fields import META_COLUMNS, RECORD_KEY
from hudi_index.bloom.key_observer import seeded_observer
from hudi_index.bucket import BucketIndex
from hudi_index.tagging import MOVED, STORED_IN, deleted_rows, record_kinds
from hudi_timeline.concurrency.marked_files import confirm_marked
from hudi_timeline.writing.workers.file_writer import SizedFiles, file_spec, rewriting_observer, start_file
from hudi_timeline.writing.workers.log_append import append_log
from hudi_timeline.writing.workers.null_elements import with_null_elements
from hudi_timeline.writing.workers.tasks import (
    APPEND,
    CONCAT,
    CREATE,
    MERGE,
    Bucket,
    TaskToken,
    WriteContext,
    check_sequences,
)

# Records that meet a stored one of another partition, under payloads that do not just take the later one.
#
# Where the payload fills values, a record that moves leaves the stored one behind as a delete, so what that fills is
# taken along: the worker of the record's new place reads it from the file that holds it.  Where the stored record is
# newer and wins, it stays in its place, and is written again with the values that it has.  A merge of the user's gets
# the stored record as the first of those that it meets one after the other.
#
# Source: HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded of Apache Hudi 0.15, and what it did with the same rows
# (tests/interop/test_index.py).


def with_stored_values(context: WriteContext, rows: pa.Table) -> pa.Table:
    """Rows without `STORED_IN`, merged with the stored records that it names.

    For a merge of the user's they are not merged yet: the stored records come first, and in them alone `STORED_IN`
    is not null.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: reading the files.
    """
    if STORED_IN not in rows.schema.names:
        return rows
    if context.rule.custom:
        return _stored_first(context, rows)
    files = rows.column(STORED_IN).combine_chunks().dictionary_encode()
    rows = rows.drop_columns([STORED_IN])
    codes = files.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    source = np.arange(rows.num_rows, dtype=np.int64)
    parts = [rows]
    end = rows.num_rows
    for code, path in enumerate(files.dictionary.to_pylist()):
        mine = np.flatnonzero(codes == code)
        for at, merged in _merged(context, path, rows.take(pa.array(mine))):
            source[mine[at]] = end + np.arange(merged.num_rows)
            end += merged.num_rows
            parts.append(merged)
    return pa.concat_tables(parts).take(pa.array(source)) if len(parts) > 1 else rows


def _merged(context: WriteContext, path: str, rows: pa.Table) -> list[tuple[np.ndarray, pa.Table]]:
    """Incoming rows merged with the stored ones of a file: row numbers and results."""
    rule = context.rule
    name = context.ordering_field if rule.against_stored != Order.LATER else None
    ordering = ordering_column(rows, name, rule.sequence)
    out = []
    for at, stored in _stored(context, path, rows):
        # Where the stored record wins, and nothing is filled, `take` is -1.
        met = decide(
            at, rule, stored_ordering=ordering_column(stored, name, rule.sequence), ordering=ordering
        )
        columns = [
            merged_column(
                stored.column(n), rows.column(n), met.take,
                fill=rule.fill_stored, stored_wins=met.stored_wins, gap=rule.gap(n),
            ) if n in context.schema.names else rows.column(n).take(pa.array(at))
            for n in rows.schema.names
        ]  # fmt: skip
        out.append((at, pa.table(columns, schema=rows.schema)))
    return out


def _stored_first(context: WriteContext, rows: pa.Table) -> pa.Table:
    """The stored records that `STORED_IN` names, and after them the rows, in which it is null now."""
    paths = rows.column(STORED_IN)
    at = rows.schema.get_field_index(STORED_IN)
    rows = rows.set_column(at, STORED_IN, pa.nulls(rows.num_rows, pa.string()))
    parts = []
    for path in pc.unique(paths.drop_null()).to_pylist():
        for found, stored in _stored(context, path, rows.filter(pc.equal(paths, path))):
            values: dict[str, pa.Array | pa.ChunkedArray] = {
                n: stored.column(n) for n in context.schema.names
            }
            values[RECORD_KEY] = stored.column(RECORD_KEY)
            values[MOVED] = pa.repeat(pa.scalar(False), len(found))
            values[STORED_IN] = pa.repeat(pa.scalar(path), len(found))
            parts.append(pa.table([values[n] for n in rows.schema.names], schema=rows.schema))
    return pa.concat_tables([*parts, rows])


def _stored(context: WriteContext, path: str, rows: pa.Table) -> Iterator[tuple[np.ndarray, pa.Table]]:
    """Stored records of a file with the keys of rows, as the schema has them, and the row of each."""
    index = KeyIndex(rows.column(RECORD_KEY))
    file = parse_base_file(*path.rpartition("/")[::2])
    logged = context.logged is not None and path in context.logged.logs
    # What is merged with logs has the table's columns already.
    reading = None if file is None or logged else context.reading(file)
    for group in _groups(context, path, rows.column(RECORD_KEY)):
        found = index.find(group.column(RECORD_KEY))
        hits = np.flatnonzero(found >= 0)
        if len(hits):
            stored = group.take(pa.array(hits))
            data = stored.select([n for n in stored.schema.names if n not in META_COLUMNS])
            data = by_id(data, context.schema, reading)
            yield found[hits], data.append_column(RECORD_KEY, stored.column(RECORD_KEY))


def _groups(context: WriteContext, path: str, keys: pa.ChunkedArray) -> Iterator[pa.Table]:
    """Stored records of a file: those with the keys at least, merged with its logs."""
    logged = context.logged
    if logged is None or path not in logged.logs:
        return iter_row_groups(context.storage, path)
    wanted = pa.schema([pa.field(RECORD_KEY, pa.string()), *(f.with_nullable(True) for f in context.schema)])
    return logged.stored(context.storage, path, keys, wanted)


# What a footer says of the file's keys.
_OF_KEYS = (BLOOM_FILTER, BLOOM_FILTER_OLD, BLOOM_TYPE, MIN_KEY, MAX_KEY)
# The key may stay in a footer's filter after its record was deleted: the filter then answers "maybe" for
# it.  Past this share of such keys a rewrite builds the filter anew.
STALE_KEYS_ALLOWED = 0.1


def write_bucket(
    context: WriteContext,
    bucket: Bucket,
    rows: pa.Table,
    token: TaskToken,
    counter: RowCounter | None = None,
) -> list[WriteStat]:
    """Write a bucket's rows; returns a statistic per file, [] for none.

    Args:
        rows: the columns of `context.row_schema()`, and `MOVED` and `STORED_IN` where records move; any order
            of rows, later rows are newer.
        counter: numbers the rows; a task with several buckets gives the same to all.
    """
    counter = counter or RowCounter()
    try:
        check_sequences(context, rows)
        if context.key_spec.auto:
            rows = rows.set_column(0, RECORD_KEY, with_instant(rows.column(RECORD_KEY), context.instant))
        rows = with_stored_values(context, rows)
        if context.rule.custom and not context.delete_all:
            rows = _custom_rows(context, bucket, rows)
        elif context.combine or bucket.kind == MERGE:
            rows = _one_per_key(context, rows)
        stats = _written(context, bucket, rows, token, counter)
        found = tuple(with_null_elements(rows))
        return [replace(s, null_elements=found) for s in stats] if found else stats
    except HudiError as e:
        raise e.at(table=context.storage.uri, instant=context.instant) from e.__cause__


def _written(
    context: WriteContext, bucket: Bucket, rows: pa.Table, token: TaskToken, counter: RowCounter
) -> list[WriteStat]:
    if context.bucket is not None and bucket.base_file is not None:
        _check_keys(context, context.bucket, bucket.base_file, all_keys=bucket.kind != APPEND)
    if bucket.kind == APPEND:
        return append_log(context, bucket, rows, token, counter)
    deleted = deleted_rows(context, rows)
    if bucket.kind == CREATE:
        if deleted is not None:
            rows = gather(rows, np.flatnonzero(~deleted), context.memory)
        return _create(context, bucket, rows, token, counter)
    if bucket.kind == CONCAT:
        if deleted is not None:
            rows = gather(rows, np.flatnonzero(~deleted), context.memory)
        return [_concat(context, bucket, rows, token, counter)]
    return [_merge(context, bucket, rows, token, counter)]


def _check_keys(context: WriteContext, index: BucketIndex, file: BaseFile, *, all_keys: bool) -> None:
    """Refuse a base file with keys of other buckets.

    Args:
        all_keys: else the least and the greatest, which the footer tells.
    """
    keys: pa.Array | pa.ChunkedArray
    if all_keys:
        virtual = context.key_spec if context.virtual else None
        keys = read_keys(context.storage, file.path, virtual, size=file.size)
    else:
        entries = read_entries(context.storage, file.path, size=file.size)
        keys = pa.array([k for k in (entries.text(MIN_KEY), entries.text(MAX_KEY)) if k], pa.string())
    index.check_keys(keys, file.file_id, partition=file.partition, table=context.storage.uri, path=file.path)


def assert_base(bucket: Bucket) -> BaseFile:
    """Base file that a bucket rewrites."""
    if bucket.base_file is None:
        raise ValueError(f"bucket {bucket.number} rewrites {bucket.file_id} but names no base file")
    return bucket.base_file


def _custom_rows(context: WriteContext, bucket: Bucket, rows: pa.Table) -> pa.Table:
    """Rows as a merge of the user's makes them, without a file of stored rows."""
    if bucket.kind in (MERGE, APPEND):
        return rows  # all of them meet the stored row, one after the other
    merge = partial(_made_by, context)
    if context.combine:
        return merge(folded_alone, rows)
    if STORED_IN not in rows.schema.names:
        return merge(inserted_alone, rows)
    # Of records that are not combined, those that move meet the stored one all the same.
    keys = rows.column(RECORD_KEY)
    moving = pc.is_in(keys, value_set=one_array(keys.filter(rows.column(STORED_IN).is_valid())))
    parts = [merge(folded_alone, rows.filter(moving)), merge(inserted_alone, rows.filter(pc.invert(moving)))]
    return pa.concat_tables(parts)


def _made_by(
    context: WriteContext,
    make: Callable[[pa.Table, MergeRule, np.ndarray | None, str | None], pa.Table],
    rows: pa.Table,
) -> pa.Table:
    return make(_plain(context, rows), context.rule, _kinds(context, rows), context.ordering_field)


def _plain(context: WriteContext, rows: pa.Table) -> pa.Table:
    """Rows without what says where they go, which is nothing to a merge of the user's."""
    return rows.select(context.row_schema().names)


def _kinds(context: WriteContext, rows: pa.Table) -> np.ndarray | None:
    """Kind of each row, `STORED` for stored records."""
    kinds = record_kinds(context, rows)
    if STORED_IN not in rows.schema.names:
        return kinds
    stored = rows.column(STORED_IN).is_valid().to_numpy()
    return np.where(stored, np.uint8(STORED), np.uint8(DATA) if kinds is None else kinds)


def _one_per_key(context: WriteContext, rows: pa.Table) -> pa.Table:
    keys = rows.column(RECORD_KEY)
    rule = context.rule
    ordering = None
    if context.combine and context.ordering_field and not context.delete_all:
        ordering = ordering_column(rows, context.ordering_field, context.rule.sequence)
    if not context.combine or context.delete_all or (rule.within == Order.GREATEST and not rule.fill_within):
        survivors = precombine(keys, ordering)
        return rows if len(survivors) == rows.num_rows else gather(rows, survivors, context.memory)
    one = combine(keys, rule, ordering=ordering, kinds=record_kinds(context, rows))
    return one.take(rows, context.memory)


def _create(
    context: WriteContext, bucket: Bucket, rows: pa.Table, token: TaskToken, counter: RowCounter
) -> list[WriteStat]:
    files = SizedFiles(context, bucket.partition, bucket.file_id, token, counter)
    try:
        for piece in in_pieces(rows, context.memory):
            files.write(piece)
        files.close()
    except BaseException:
        files.abort()
        raise
    return files.stats


def _concat(
    context: WriteContext, bucket: Bucket, rows: pa.Table, token: TaskToken, counter: RowCounter
) -> WriteStat:
    old = assert_base(bucket)
    spec = file_spec(context, bucket.partition, bucket.file_id, token)
    guard, changes = _start(context, spec)
    stat = concat_file(
        context.storage, spec, old, in_pieces(rows, context.memory),
        observer=partial(rewriting_observer, context, 0), carry=_carried(context, 0), guard=guard, counter=counter,
        changes=changes, reading=context.reading(old),
    )  # fmt: skip
    confirm_marked(context.storage, guard, *stat.paths)
    return stat


def _start(context: WriteContext, spec: FileSpec) -> tuple[Callable[[], None], CdcWriter | None]:
    """Markers of a rewritten file and its CDC file: the check before their close, and the latter's writer."""
    guard = start_file(context, spec.partition, spec.name, MERGE)
    if context.cdc is None:
        return guard, None
    changes = CdcWriter(
        context.storage, context.cdc, spec.schema, partition=spec.partition, file_id=spec.file_id,
        instant=spec.instant, write_token=spec.write_token,
    )  # fmt: skip
    # Of the type that Apache Hudi gives it: its rollback fails on log files that are announced as created.
    logged = start_file(context, spec.partition, changes.name, APPEND)

    def check() -> None:
        guard()
        logged()

    return check, changes


def _merge(
    context: WriteContext,
    bucket: Bucket,
    rows: pa.Table,
    token: TaskToken,
    counter: RowCounter,
) -> WriteStat:
    old = assert_base(bucket)
    spec = file_spec(context, bucket.partition, bucket.file_id, token)
    guard, changes = _start(context, spec)
    ordering = None
    if context.rule.against_stored != Order.LATER and not context.delete_all and context.ordering_field:
        ordering = ordering_column(rows, context.ordering_field, context.rule.sequence)
    incoming = Incoming(
        rows=_plain(context, rows) if context.rule.custom else rows,
        rule=context.rule,
        kinds=_kinds(context, rows),
        ordering=ordering.combine_chunks() if isinstance(ordering, pa.ChunkedArray) else ordering,
        ordering_field=context.ordering_field,
        event_time=_event_times(context, rows),
    )
    deleted = incoming.deletes()
    most_deleted = 0 if deleted is None else int(deleted.sum())
    if context.rule.custom:  # a function may delete any of them
        most_deleted = rows.num_rows
    stat = merge_file(
        context.storage, spec, old, incoming,
        observer=partial(rewriting_observer, context, most_deleted), carry=_carried(context, most_deleted),
        guard=guard, counter=counter, limit=context.memory, changes=changes, reading=context.reading(old),
        tells_keys=context.tells_keys,
    )  # fmt: skip
    confirm_marked(context.storage, guard, *stat.paths)
    return stat


def _event_times(context: WriteContext, rows: pa.Table) -> pa.Array | None:
    if context.delete_all or not context.rule.event_time or not context.event_time_field:
        return None
    column = nested_column(rows, context.event_time_field)
    return None if column is None else event_times(column)


def _carried(context: WriteContext, most_deleted: int) -> Carry:
    """Observer factory that continues the old footer's filter, where possible.

    Keys of a file group are only ever added or deleted.  Without deletes the old filter is exactly that of
    the old keys; with few, it holds some keys too many, which is allowed of a bloom filter.
    """

    def carry(footer: Mapping[str, str], num_rows: int) -> KeyObserver | None:
        bloom = context.bloom
        if bloom is None or context.virtual:
            return None
        return seeded_observer(
            {name: footer[name] for name in _OF_KEYS if name in footer},
            bloom,
            num_rows=num_rows,
            most_deleted=most_deleted,
            stale_allowed=STALE_KEYS_ALLOWED,
        )

    return carry
