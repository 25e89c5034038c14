"""Writer of a slice's base file: new, or rewritten with merged records.

Rows come as Arrow tables whose first column is `_hoodie_record_key`, followed by the data columns;
meta columns are made here.  A merge streams: it holds one row group of the result and a piece of the old file.

Source: the create, merge and concat handles of Apache Hudi 0.15, compared with its files: row order of the
old file is kept, updated rows stay in place, new ones follow; `_hoodie_file_name` is rewritten in every row.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.spill import MemoryLimit, gathered, is_large, pick
from hudi_format.errors import MissingColumnError, SchemaError
from hudi_format.file_names import base_file_name
from hudi_format.file_slice.cdc_writer import CdcWriter
from hudi_format.file_slice.kept_groups import KeptGroups
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import record_keys
from hudi_format.merge.folding import Folding
from hudi_format.merge.key_index import KeyIndex
from hudi_format.merge.ordering import ordering_column
from hudi_format.merge.payloads import MergeRule, Order, payload_rule
from hudi_format.merge.record_merger import decide, deletes_of, merged_column
from hudi_format.model import BaseFile, WriteStat, join_path
from hudi_format.parquet.layout import NO_OBSERVER, KeyObserver, ParquetConfig
from hudi_format.parquet.reader import Pieces
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.evolution import conform
from hudi_format.schema.internal_schema import Reading
from hudi_format.schema.meta_fields import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
    with_meta,
)
from hudi_format.storage.protocol import Storage

# Constant in a whole file or in long runs: kept as dictionaries between reading and writing.
_RUN_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
_VIRTUAL = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH)
# A file that takes more records than this share of its rows is sampled anew for columns worth a dictionary.
_FEW = 0.25

# From the old file's footer entries and its number of rows: an observer seeded with its keys, which then sees only
# those that are appended; None where all keys are to be seen.
Carry = Callable[[Mapping[str, str], int], KeyObserver | None]
# From the same: an observer that sees all keys of the new file.
Anew = Callable[[Mapping[str, str], int], KeyObserver]


def _no_carry(_: Mapping[str, str], __: int) -> None:
    return


@dataclass(frozen=True, slots=True)
class FileSpec:
    """Specification of a base file to write.

    Attributes:
        schema: data columns, without meta columns.
        sequence_prefix: what stands before the running number in `_hoodie_commit_seqno`.
        entries: further footer entries, such as the Avro schema.
        virtual: makes the keys of the old file's rows of their columns, where the meta columns are left empty.
    """

    partition: str
    file_id: str
    write_token: str
    instant: str
    schema: pa.Schema
    config: ParquetConfig
    sequence_prefix: str
    entries: Mapping[str, str] = field(default_factory=dict)
    virtual: KeySpec | None = None

    @property
    def name(self) -> str:
        return base_file_name(self.file_id, self.write_token, self.instant)

    @property
    def path(self) -> str:
        return join_path(self.partition, self.name)


def _no_guard() -> None:
    return


def _none_observed(_: Mapping[str, str], __: int) -> KeyObserver:
    return NO_OBSERVER


class RowCounter:
    """Row numbers for `_hoodie_commit_seqno`, unique within a task with several threads."""

    def __init__(self) -> None:
        self._next = 0
        self._lock = threading.Lock()

    def take(self, n: int) -> range:
        with self._lock:
            start, self._next = self._next, self._next + n
        return range(start, start + n)


def _constant(text: str, n: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(n, dtype=np.int32)), pa.array([text], pa.string())
    )


def _sequence_numbers(prefix: str, numbers: range) -> pa.Array:
    counts = pa.array(np.arange(numbers.start, numbers.stop)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(prefix), counts, "")


def stamp(rows: pa.Table, spec: FileSpec, counter: RowCounter) -> pa.Table:
    """New rows with their five meta columns."""
    n = rows.num_rows
    columns = [
        _constant(spec.instant, n),
        _sequence_numbers(spec.sequence_prefix, counter.take(n)),
        rows.column(RECORD_KEY),
        _constant(spec.partition, n),
        _constant(spec.name, n),
        *(rows.column(f.name) for f in spec.schema),
    ]
    return _as_written(pa.table(columns, names=[*META_COLUMNS, *spec.schema.names]), spec)


def _as_written(rows: pa.Table, spec: FileSpec) -> pa.Table:
    """The rows as written: with virtual keys, only the file name among the meta columns."""
    if spec.virtual is None:
        return rows
    empty = pa.nulls(rows.num_rows, pa.string())
    columns = [empty if n in _VIRTUAL else rows.column(n) for n in rows.schema.names]
    return pa.table(columns, names=rows.schema.names)


@dataclass(frozen=True, slots=True)
class Incoming:
    """Records to merge into one file, with unique keys except for user-defined merges.

    Attributes:
        rows: record key and the data columns (no data columns where every record is a delete).
        rule: how a record meets the stored row of its key.
        kinds: per row, what it is (`hudi_format.merge.record_merger`); None where all are data.
        ordering: per row, the ordering value; None where the incoming record always wins.
        ordering_field: the column of the old file to compare it with, a nested one by dot path.
        event_time: per row, its event time in milliseconds; the statistics say the range of updates.
    """

    rows: pa.Table
    rule: MergeRule = field(default_factory=lambda: payload_rule(None))
    kinds: np.ndarray | None = None
    ordering: pa.Array | None = None
    ordering_field: str | None = None
    event_time: pa.Array | None = None

    def deletes(self) -> np.ndarray | None:
        """Mask of deletes (bool); None where there are none."""
        if self.kinds is None:
            return None
        mask = deletes_of(self.kinds)
        return mask if mask.any() else None


def merge_file(
    storage: Storage,
    spec: FileSpec,
    old: BaseFile,
    incoming: Incoming,
    *,
    observer: Anew = _none_observed,
    carry: Carry = _no_carry,
    guard: Callable[[], None] = _no_guard,
    counter: RowCounter | None = None,
    limit: MemoryLimit | None = None,
    changes: CdcWriter | None = None,
    reading: Reading | None = None,
    tells_keys: bool = False,
    appended: Iterable[pa.Table] | None = None,
) -> WriteStat:
    """Rewrite a base file with records merged by key; returns its statistics.

    A record that matches meets the old row as the rule says: it replaces it in place, fills it, removes it, or
    is dropped because it is older.  Records that match nothing are appended, deletes not.

    Args:
        observer: makes the observer that sees all of the new file's keys.
        carry: makes one that goes on from the old file's footer instead, where that can be.
        limit: records that are more than it lets hold are handled piece by piece, apart from their keys.
        changes: takes what the merge changes; it is closed, or removed where the merge fails.
        reading: how the old file is read by column id, where it has another version of the schema; else None.
        tells_keys: the statistics say the new keys, where no record is deleted.
        appended: rows to append, whatever their keys, in the place of records that match nothing.
    """
    began = time.monotonic()
    counter = counter or RowCounter()
    folding = None
    if incoming.rule.custom:
        folding = Folding(incoming.rows, incoming.rule, incoming.kinds, incoming.ordering_field)
    index = KeyIndex(incoming.rows.column(RECORD_KEY))
    rule = incoming.rule
    compares = rule.against_stored != Order.LATER and incoming.ordering is not None
    seen = np.zeros(incoming.rows.num_rows, dtype=bool)
    updates = deletes = 0
    times: list[pa.StructScalar] = []
    with (
        changes or nullcontext(),
        Pieces(storage, old.path, dictionary_columns=_RUN_COLUMNS, size=old.size) as stored_file,
        _rewriting(storage, spec, stored_file, incoming if appended is None else None) as writer,
    ):
        entries, num_rows = stored_file.entries(), stored_file.num_rows
        of_new = carry(entries, num_rows)
        if of_new is None:
            of_new = writer.observer = observer(entries, num_rows)
        kept = _kept(writer, stored_file, spec, incoming.rows.num_rows, reading)
        for number, group in _old_groups(
            stored_file, old, spec, kept, index if folding is None else None, reading
        ):
            if group is None:
                kept.whole(number, _constant(spec.name, len(counter.take(stored_file.rows(number)))))
                continue
            if not index.rows:
                kept.part(number, group, _with_updates(group, None, spec, counter))
                continue
            if folding is not None:
                rows, take, gone = folding.meet(group)
                deletes += int(gone.sum())
                updates += int((take[~gone] >= 0).sum())
                left = group.filter(pa.array(~gone)) if gone.any() else group
                take = take[~gone]
                written = _with_updates(left, _Changes(rows, take), spec, counter)
                if changes is not None:
                    changes.met(group, gone, take, written)
                kept.part(number, group, written)
                continue
            found = index.find(group.column(RECORD_KEY))
            seen[found[found >= 0]] = True
            stored = _stored_ordering(group, incoming.ordering_field, rule) if compares else None
            met = decide(
                found, rule, stored_ordering=stored, ordering=incoming.ordering, kinds=incoming.kinds
            )
            take, stored_wins = met.take, met.stored_wins
            if incoming.event_time is not None:
                times.append(pc.min_max(incoming.event_time.take(pa.array(take[take >= 0]))))
            before = group
            if met.gone is not None:
                deletes += int(met.gone.sum())
                keep = ~met.gone
                group, take = group.filter(pa.array(keep)), take[keep]
                stored_wins = None if stored_wins is None else stored_wins[keep]
            updates += int((take >= 0).sum())
            rows = incoming.rows
            if is_large(rows, limit):
                rows, take = _only_taken(rows, take)
            written = _with_updates(group, _Changes(rows, take, rule, stored_wins), spec, counter)
            if changes is not None:
                changes.met(before, met.gone, take, written)
            kept.part(number, before, written)
        inserts = 0
        new_keys = [pa.array([], pa.string())]
        for new in _new_rows(incoming, folding, seen, limit) if appended is None else appended:
            inserts += new.num_rows
            if tells_keys:
                new_keys.append(one_array(new.column(RECORD_KEY)).cast(pa.string()))
            if changes is not None:
                changes.inserted(new)
            writer.observer = of_new
            writer.write(stamp(new, spec, counter))
        writer.observer = of_new  # its entries go to the footer in either case
        guard()
        cdc_stats = {} if changes is None else changes.close()
        size = writer.close()
    return WriteStat(
        file_id=spec.file_id,
        path=spec.path,
        partition=spec.partition,
        prev_commit=old.instant,
        num_writes=writer.num_rows,
        num_deletes=deletes,
        num_update_writes=updates,
        num_inserts=inserts,
        min_event_time=min((t["min"].as_py() for t in times if t["min"].is_valid), default=None),
        max_event_time=max((t["max"].as_py() for t in times if t["max"].is_valid), default=None),
        total_write_bytes=size,
        file_size_in_bytes=size,
        upsert_time_ms=int((time.monotonic() - began) * 1000),
        new_keys=pa.concat_arrays(new_keys) if tells_keys and not deletes else None,
        extra=cdc_stats,
    )


def _new_rows(
    incoming: Incoming, folding: Folding | None, seen: np.ndarray, limit: MemoryLimit | None
) -> Iterator[pa.Table]:
    """Records without a stored row, deletes excluded, in pieces."""
    if folding is not None:
        rest = folding.rest()
        if rest.num_rows:
            yield rest
        return
    deleted = incoming.deletes()
    new = np.flatnonzero(~seen if deleted is None else ~seen & ~deleted)
    if not len(new):
        return
    if limit is not None and is_large(incoming.rows, limit):
        yield from gathered(incoming.rows, new, limit)
    else:
        yield incoming.rows.take(pa.array(new))


def _only_taken(rows: pa.Table, take: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    """The rows in use, and their new places (-1: none, as before)."""
    at = np.unique(take[take >= 0])
    return pick(rows, at), np.where(take >= 0, np.searchsorted(at, take), -1)


def concat_file(
    storage: Storage,
    spec: FileSpec,
    old: BaseFile,
    rows: Iterable[pa.Table],
    *,
    observer: Anew = _none_observed,
    carry: Carry = _no_carry,
    guard: Callable[[], None] = _no_guard,
    counter: RowCounter | None = None,
    changes: CdcWriter | None = None,
    reading: Reading | None = None,
) -> WriteStat:
    """Rewrite a base file with rows appended, whatever their keys; returns its statistics.

    Args:
        observer, carry, guard, counter, changes, reading: as of `merge_file`.
    """
    nothing = Incoming(pa.table({RECORD_KEY: pa.array([], pa.string())}))
    return merge_file(
        storage, spec, old, nothing, observer=observer, carry=carry, guard=guard, counter=counter, changes=changes,
        reading=reading, appended=rows,
    )  # fmt: skip


def _rewriting(storage: Storage, spec: FileSpec, old: Pieces, incoming: Incoming | None) -> BaseFileWriter:
    """Writer of the new file, with the old file's dictionaries if few records come, and it is known how many."""
    alike = incoming is not None and incoming.rows.num_rows <= _FEW * old.num_rows
    return BaseFileWriter(
        storage, spec.path, with_meta(spec.schema), config=spec.config, entries=spec.entries,
        dictionaries=old.dictionaries() if alike else None,
    )  # fmt: skip


def _kept(
    writer: BaseFileWriter, stored: Pieces, spec: FileSpec, more_rows: int, reading: Reading | None
) -> KeptGroups:
    by_name = spec.virtual is None and reading is None
    chunks = stored.chunks(spec.config.kept_chunk_bytes) if by_name else None
    return KeptGroups(writer, chunks, more_rows)


def _old_groups(
    stored: Pieces,
    old: BaseFile,
    spec: FileSpec,
    kept: KeptGroups,
    index: KeyIndex | None,
    reading: Reading | None,
) -> Iterator[tuple[int, pa.Table | None]]:
    """The old file in pieces, in the schema to write, run columns as dictionaries, each with its row group's number.

    None in the place of a row group that may stay as it is: none of its keys is in the index.
    """
    for number in range(stored.num_row_groups):
        if number not in kept or index is None:
            pieces = stored.pieces(number)
        else:
            keys = stored.columns(number, [RECORD_KEY]) if index.rows or not kept.unseen else None
            if kept.unseen and (keys is None or not index.any(keys.column(RECORD_KEY))):
                yield number, None
                continue
            pieces = (
                stored.pieces(number) if stored.in_pieces(number) else iter([_whole(stored, number, keys)])
            )
        for group in pieces:
            yield number, _to_write(group, old, spec, reading)


def _whole(stored: Pieces, number: int, keys: pa.Table | None) -> pa.Table:
    """A row group whose keys were read already."""
    names = stored.names()
    rest = stored.columns(number, [n for n in names if n != RECORD_KEY or keys is None])
    return rest if keys is None else rest.append_column(RECORD_KEY, keys.column(0)).select(names)


def _to_write(group: pa.Table, old: BaseFile, spec: FileSpec, reading: Reading | None) -> pa.Table:
    columns = {}
    for name in META_COLUMNS:
        if group.schema.get_field_index(name) < 0:
            raise SchemaError(
                f"the base file has no column {name}", file=old.path,
                remedy="this version cannot write tables without meta columns.",
            )  # fmt: skip
        columns[name] = group.column(name)
    data = by_id(group.select([n for n in group.schema.names if n not in columns]), spec.schema, reading)
    if spec.virtual is not None:
        columns[RECORD_KEY] = record_keys(data, spec.virtual)
    return pa.table([*columns.values(), *data.columns], names=[*columns, *spec.schema.names])


def by_id(rows: pa.Table, schema: pa.Schema, reading: Reading | None) -> pa.Table:
    """Rows of a file in a schema: by column id where a mapping is given, else by name."""
    if reading is None:
        return conform(rows, schema)
    stored = reading.stored(schema)
    if not len(stored):
        return pa.table([pa.nulls(rows.num_rows, f.type) for f in schema], schema=schema)
    return reading.given(conform(rows, stored), schema)


def _stored_ordering(group: pa.Table, name: str | None, rule: MergeRule) -> pa.Array | pa.ChunkedArray | None:
    if name is None:
        return None
    stored = ordering_column(group, name, rule.sequence)
    if stored is None:
        raise MissingColumnError(f"the table has no ordering column {name!r}", column=name)
    return stored


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changed rows; `take` names one per old row, or is -1."""

    rows: pa.Table
    take: np.ndarray
    rule: MergeRule | None = None  # of which values are filled; None: none
    stored_wins: np.ndarray | None = None


def _with_updates(group: pa.Table, changes: _Changes | None, spec: FileSpec, counter: RowCounter) -> pa.Table:
    """The group with changed rows, and the new file name in every row."""
    n = group.num_rows
    names = group.schema.names
    columns: list[pa.ChunkedArray | pa.Array] = list(group.columns)
    columns[names.index(FILE_NAME)] = _constant(spec.name, n)
    start = counter.take(n).start
    if changes is None or not (changes.take >= 0).any():
        return _as_written(pa.table(columns, names=names), spec)
    changed, rule = changes.take >= 0, changes.rule
    for i, name in enumerate(names):
        if name in (FILE_NAME, RECORD_KEY, PARTITION_PATH):
            continue
        if name == COMMIT_TIME:
            columns[i] = _put_constant(columns[i], changed, spec.instant)
        elif name == COMMIT_SEQNO:
            numbers = pa.array(np.flatnonzero(changed) + start).cast(pa.string())
            texts = pc.binary_join_element_wise(pa.scalar(spec.sequence_prefix), numbers, "")
            columns[i] = pc.replace_with_mask(one_array(columns[i]), pa.array(changed), texts)
        else:
            columns[i] = merged_column(
                columns[i], changes.rows.column(name), changes.take,
                fill=rule is not None and rule.fill_stored, stored_wins=changes.stored_wins,
                gap=None if rule is None else rule.gap(name),
            )  # fmt: skip
    return _as_written(pa.table(columns, names=names), spec)


def _put_constant(column: pa.ChunkedArray | pa.Array, mask: np.ndarray, text: str) -> pa.Array:
    """A text column, as a dictionary, with `text` where the mask is set."""
    array = one_array(column)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values = pa.concat_arrays([array.dictionary.cast(pa.string()), pa.array([text], pa.string())])
    codes = pc.fill_null(array.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    codes = np.where(mask, np.int32(len(values) - 1), codes).astype(np.int32, copy=False)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), values)
