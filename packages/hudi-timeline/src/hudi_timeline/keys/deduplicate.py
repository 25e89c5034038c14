"""Deduplication: one row of each key stays, by a commit of new base files.

    begin -> duplicates (`find`) -> what stays of each key -> new base files without the others -> commit

They are looked for behind the beginning: who commits to one of the file groups from there on is a conflict.  The logs
of a merge-on-read slice are merged into its new base file, which begins the next slice, so that what an update in a log
did to several rows of its key is settled too.

hudi-cli's `repair deduplicate` writes the files aside and copies them over those of old commits; here their file groups
get a new version, so that the repair is visible at once, can be rolled back, and older commits stay what they were.

Source: DedupeSparkJob of Apache Hudi 0.15.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.spill import MemoryLimit, keep_if_large
from hudi_format.errors import ConcurrentWriterError, HudiError, InvalidOptionError, UnsupportedError
from hudi_format.file_slice.cdc_writer import CdcSettings, CdcWriter
from hudi_format.file_slice.compacted_file import compact_slice
from hudi_format.merge.folding import folded_alone
from hudi_format.merge.key_index import KeyIndex
from hudi_format.merge.record_merger import combine
from hudi_format.merge.user_merger import among_stored
from hudi_format.model import WriteStat
from hudi_format.schema.evolution import conform
from hudi_format.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, META_COLUMNS, RECORD_KEY
from hudi_format.storage.parallel import side_by_side
from hudi_index.bloom.key_observer import observer_of
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.marked_files import confirm_marked, start_marked
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.file_slices import pending_compactions
from hudi_timeline.file_system_view.slice_merge import slice_merge
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import with_history, written_text
from hudi_timeline.keys.duplicates import DUPLICATES, copies, described, find
from hudi_timeline.keys.keyed_slices import KeyedSlices, Writers
from hudi_timeline.options.compaction_config import CompactionConfig, parse_compaction_options
from hudi_timeline.options.service_options import DedupeType
from hudi_timeline.services.compaction.plan_execution import HARMED
from hudi_timeline.services.compaction.slice_tasks import CompactionTask, make_tasks, stored_schema_text
from hudi_timeline.services.table_service import ServiceContext, dry_run_looks_again
from hudi_timeline.timeline.instant import COMMIT, DELTA_COMMIT, INFLIGHT, instant_path
from hudi_timeline.transaction.transaction import Transaction, begin_transaction

KEPT, REMOVED, MERGED = "kept", "removed", "merged"

PLAN = DUPLICATES.append(pa.field("action", pa.string()))
"""Columns of a plan: `action` is what becomes of the row, "merged" where it takes values of others of its key."""


@dataclass(frozen=True)
class DedupeResult(HtmlView):
    """Result of a deduplication, or of its `dry_run`.

    Attributes:
        keys: of how many keys rows are taken out.
        rows: how many rows are taken out.
        files: rows that are taken out, by path of the base file; by that of a log file where there is no base file.
        plan: all rows of these keys, with what becomes of each (columns: PLAN).
        instant: of the commit; "" where nothing was written.
    """

    keys: int
    rows: int
    files: Mapping[str, int]
    plan: pa.Table = field(default_factory=PLAN.empty_table, repr=False, compare=False)
    instant: str = ""


@dry_run_looks_again
def deduplicate(
    context: ServiceContext,
    partitions: str | Sequence[str] | None = None,
    *,
    kind: DedupeType | str = DedupeType.MERGE,
    across_partitions: bool = False,
    dry_run: bool = False,
) -> DedupeResult:
    """Leave one row of each key, as of `HudiTable.deduplicate`.

    Raises:
        UnsupportedError: base files that are not written here, a file slice that is being compacted, or a merge that is
            not built here.
        UnknownPartitionError: a partition without files.
        ConcurrentWriterError, WriteConflictError: other writers are at work.
    """
    kind = _kind(kind)
    config = parse_compaction_options(context.options.raw)
    # Before anything is announced: a table whose base files are not to be written, or that has no such partition.
    snapshot = context.looked(also=HARMED)
    choose = partial(_Choice.of, partitions=partitions, kind=kind, config=config, across=across_partitions)
    if dry_run:
        return choose(snapshot).result()
    table = context.table
    action = DELTA_COMMIT if table.table_type == "MERGE_ON_READ" else COMMIT
    transaction = begin_transaction(
        context.storage, table, operation="UPSERT", action=action, options=context.options,
        caller=RunningCall.here(),
    )  # fmt: skip
    with transaction:
        try:
            choice = choose(transaction.snapshot)
            tasks = _tasks(transaction, choice, config)
        except HudiError as e:
            transaction.abort(e.message, without_trace=True)
            raise
        if not tasks:
            transaction.abort("no key stands twice", without_trace=True)
            return choice.result()
        profile: dict[str, list[WriteStat]] = {}
        for task in tasks:
            one = task.compaction.slice
            stat = WriteStat(one.file_id, "", one.partition, one.base_instant)
            profile.setdefault(one.partition, []).append(stat)
        transaction.inflight(profile)
        threads = len(os.sched_getaffinity(0))
        numbered = list(zip(choice.slices, tasks, strict=True))
        stats = list(
            side_by_side(lambda n: _rewrite(transaction, choice, *n), numbered, threads, "hudi-dedupe")
        )
        transaction.commit(stats, schema_text=stored_schema_text(transaction.snapshot))
    context.warnings += transaction.warnings
    return choice.result(transaction.instant)


def _kind(kind: DedupeType | str) -> DedupeType:
    try:
        return DedupeType(kind)
    except ValueError:
        raise InvalidOptionError(
            f"{kind!r} does not say which row of a key stays",
            remedy=f"use {', '.join(repr(str(k)) for k in DedupeType)}.",
            value=str(kind),
        ) from None


@dataclass(frozen=True)
class _SliceChange:
    """What becomes of rows of one slice.

    Attributes:
        keys, copy: of each row that does not stay as it is.
        merged: its row of `rows`; -1 for a row that is taken out.
        rows: merged rows, with all columns of a read.
    """

    keys: pa.Array
    copy: np.ndarray
    merged: np.ndarray
    rows: pa.Table


@dataclass(frozen=True)
class _Choice:
    """What stays of each key.

    Attributes:
        slices: changes by number of the slice.
        plan, keys: see `DedupeResult`.
    """

    keyed: KeyedSlices
    slices: Mapping[int, _SliceChange]
    plan: pa.Table

    keys: int

    @classmethod
    def of(
        cls,
        snapshot: TableSnapshot,
        *,
        partitions: str | Sequence[str] | None,
        kind: DedupeType,
        config: CompactionConfig,
        across: bool,
    ) -> _Choice:
        limit = MemoryLimit.of(config.merge_memory, config.spill_path, config.spill_compress).for_stream()
        snapshot = with_history(snapshot, None)
        keyed = KeyedSlices.of(snapshot, partitions, merge=config.merge, limit=limit)
        if kind is DedupeType.MERGE:
            keyed = replace(keyed, merge=replace(slice_merge(snapshot, config.merge), limit=limit))
        parts: dict[int, list[_SliceChange]] = {}
        writers, keys = Writers(snapshot), 0

        def planned() -> Iterator[pa.Table]:
            nonlocal keys
            for rows in find(keyed, across_partitions=across, limit=limit):
                stays, places, made = _stays(keyed, rows, kind)
                keys += len(pc.unique(rows.column("key").filter(pa.array(~stays))))
                for number, change in _changes(rows, stays, places, made):
                    parts.setdefault(number, []).append(change)
                codes = np.where(places >= 0, 2, stays.astype(np.int64))
                actions = pa.array([REMOVED, KEPT, MERGED]).take(pa.array(codes))
                yield described(keyed, rows, writers).append_column(PLAN.field("action"), actions)

        plan = keep_if_large(planned(), PLAN, limit)
        _refuse_pending(snapshot, keyed, parts)
        return cls(keyed, {n: _joined(of) for n, of in sorted(parts.items())}, plan, keys)

    def result(self, instant: str = "") -> DedupeResult:
        files = {}
        for number, change in self.slices.items():
            one = self.keyed.slices[number]
            gone = int((change.merged < 0).sum())
            if gone:
                files[(one.base_file or one.log_files[0]).path] = gone
        return DedupeResult(self.keys, sum(files.values()), files, self.plan, instant)


def _refuse_pending(snapshot: TableSnapshot, keyed: KeyedSlices, numbers: Mapping[int, object]) -> None:
    """Refuse slices of a pending compaction, whose result would be older than the new files."""
    if snapshot.config.table_type != "MERGE_ON_READ":
        return
    pending = pending_compactions(snapshot)
    for number in sorted(numbers):
        one = keyed.slices[number]
        time = pending.get((one.partition, one.file_id))
        if time is not None:
            raise UnsupportedError(
                f"the file group {one.partition or '.'}/{one.file_id} has rows to take out, and the compaction {time} "
                "of it is pending",
                table=snapshot.storage.uri,
                remedy=f"run `hudi compact run {snapshot.storage.uri}` first, or withdraw the plan.",
                pending=time,
            )


def _stays(keyed: KeyedSlices, rows: pa.Table, kind: DedupeType) -> tuple[np.ndarray, np.ndarray, pa.Table]:
    """Mask of the rows that stay; the place of each row's merged form in a table, or -1; and that table."""
    keys = rows.column("key")
    if kind is DedupeType.MERGE:
        return _merged(keyed, rows)
    # Rows are sorted by key and time: of each key they are one run.
    groups = KeyIndex(pc.unique(keys)).find(keys)
    first = np.diff(groups, prepend=-1) != 0
    last = np.diff(groups, append=-1) != 0
    nothing = np.full(rows.num_rows, -1, np.int64), keyed.schema.empty_table()
    if kind is DedupeType.INSERT:
        return first, *nothing
    if kind is DedupeType.UPSERT:
        return last, *nothing
    times = pc.fill_null(rows.column("commit_time"), "")
    newest = times.take(pa.array(np.flatnonzero(last)[groups]))
    return pc.equal(times, newest).to_numpy(zero_copy_only=False).astype(bool), *nothing


def _merged(keyed: KeyedSlices, rows: pa.Table) -> tuple[np.ndarray, np.ndarray, pa.Table]:
    """`_stays` by the table's merge of records of one key in the order of their writes."""
    merge = keyed.merge
    rule, keys = merge.rule, rows.column("key")
    stays, places = np.zeros(rows.num_rows, bool), np.full(rows.num_rows, -1, np.int64)
    if rule.custom:
        data = _data(keyed, rows, [n for n in keyed.schema.names if n not in META_COLUMNS])
        given = data.append_column(RECORD_KEY, keys)
        made = folded_alone(given, among_stored(rule), None, merge.ordering_field)
        # It stands where the last row of its key did.
        heads = KeyIndex(keys).find(made.column(RECORD_KEY))
        made = made.select(data.column_names)
    else:
        whole = bool(rule.fill_within)
        data = _data(
            keyed, rows, (keyed.schema if whole else merge.merge_schema(pa.schema([]), keyed.schema)).names
        )
        one = combine(keys, rule, ordering=merge.ordering(data), logged=True)
        heads = one.rows
        if not whole:
            stays[heads] = True
            return stays, places, keyed.schema.empty_table()
        made = one.take(data)
    stays[heads] = True
    before = data.take(pa.array(heads))
    same = np.ones(made.num_rows, bool)
    for name in made.column_names:
        if name not in META_COLUMNS:
            same &= _same(made.column(name), before.column(name))
    changed = np.flatnonzero(~same)
    places[heads[changed]] = np.arange(len(changed))
    return stays, places, made.take(pa.array(changed))


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> np.ndarray:
    """Mask of equal values; two nulls are equal."""
    if pa.types.is_nested(one.type):
        pairs = zip(one, other, strict=True)
        return np.fromiter((a.equals(b) for a, b in pairs), bool, len(one))
    equal = pc.fill_null(pc.equal(one, other), False)
    both = pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other)))
    found: np.ndarray = both.to_numpy(zero_copy_only=False).astype(bool)
    return found


def _text(rows: pa.Table, keyed: KeyedSlices) -> pa.Array | pa.ChunkedArray:
    return keyed.merge.keys(rows).cast(pa.string())


def _data(keyed: KeyedSlices, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Columns of found rows, in their order."""
    found, at = [], []
    needed = list(dict.fromkeys([*keyed.merge.key_columns, *columns]))
    numbers = rows.column("slice").to_numpy()
    for number in np.unique(numbers):
        places = np.flatnonzero(numbers == number)
        own = rows.take(pa.array(places))
        index = _CopyIndex(own.column("key"), own.column("copy").to_numpy())
        for part in keyed.rows(keyed.slices[int(number)], needed):
            hits = index.find(_text(part, keyed))
            there = np.flatnonzero(hits >= 0)
            if len(there):
                found.append(part.take(pa.array(there)))
                at.append(places[hits[there]])
    order = np.argsort(np.concatenate(at), kind="stable")
    return pa.concat_tables(found).take(pa.array(order)).select(list(columns)).combine_chunks()


class _CopyIndex:
    """Places of rows by key and copy, for the rows of one slice as they come."""

    def __init__(self, keys: pa.Array | pa.ChunkedArray, copy: np.ndarray) -> None:
        self._keys = pc.unique(keys)
        self._index = KeyIndex(self._keys)
        groups = self._index.find(keys)
        # The copies of a key, one after the other.
        self._most = int(copy.max(initial=0)) + 1
        code = groups * self._most + copy
        self._order = np.argsort(code, kind="stable")
        self._codes = code[self._order]
        self._seen = np.zeros(len(self._keys), np.int64)

    def find(self, keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """Place of each row, -1 for others; rows of all calls count as one sequence."""
        out = np.full(len(keys), -1, np.int64)
        groups = self._index.find(keys)
        there = np.flatnonzero(groups >= 0)
        if not len(there):
            return out
        own = groups[there]
        copy = self._seen[own] + copies(self._keys.take(pa.array(own)))
        np.add.at(self._seen, own, 1)
        wanted = np.where(copy < self._most, own * self._most + copy, -1)
        places = np.minimum(np.searchsorted(self._codes, wanted), len(self._codes) - 1)
        hit = self._codes[places] == wanted
        out[there[hit]] = self._order[places[hit]]
        return out


def _changes(
    rows: pa.Table, stays: np.ndarray, places: np.ndarray, made: pa.Table
) -> Iterator[tuple[int, _SliceChange]]:
    """Changes by slice."""
    changed = ~stays | (places >= 0)
    numbers = rows.column("slice").to_numpy()
    for number in np.unique(numbers[changed]):
        own = np.flatnonzero(changed & (numbers == number))
        at = pa.array(own)
        used = np.flatnonzero(places[own] >= 0)
        target = np.full(len(own), -1, np.int64)
        target[used] = np.arange(len(used))
        yield int(number), _SliceChange(
            rows.column("key").take(at).combine_chunks(), rows.column("copy").to_numpy()[own], target,
            made.take(pa.array(places[own][used])),
        )  # fmt: skip


def _joined(parts: Sequence[_SliceChange]) -> _SliceChange:
    if len(parts) == 1:
        return parts[0]
    shifts = np.cumsum([0, *(p.rows.num_rows for p in parts[:-1])])
    return _SliceChange(
        pa.concat_arrays([p.keys for p in parts]),
        np.concatenate([p.copy for p in parts]),
        np.concatenate(
            [np.where(p.merged >= 0, p.merged + s, -1) for p, s in zip(parts, shifts, strict=True)]
        ),
        pa.concat_tables([p.rows for p in parts]),
    )


def _tasks(transaction: Transaction, choice: _Choice, config: CompactionConfig) -> list[CompactionTask]:
    """A new base file for each slice with changes."""
    snapshot, instant = choice.keyed.snapshot, transaction.instant
    inflight = instant_path(transaction.config, instant, transaction.action, INFLIGHT)
    slices = [choice.keyed.slices[n] for n in choice.slices]
    made = make_tasks(snapshot, instant, slices, config)
    # Rows are counted per key in the order of the merge by which they were found.
    merge, committed = choice.keyed.merge, choice.keyed.committed
    return [
        replace(t, inflight=inflight, compaction=replace(t.compaction, merge=merge, committed=committed))
        for t in made
    ]


def _rewrite(transaction: Transaction, choice: _Choice, number: int, task: CompactionTask) -> WriteStat:
    """Write the new base file of a slice, and the CDC file beside it where the table logs changes."""
    compaction, spec, storage = task.compaction, task.compaction.spec, task.storage
    change = choice.slices[number]
    changes: CdcWriter | None = None
    guards: list[Callable[[], None]] = []
    table = transaction.config

    def marked(name: str, kind: str) -> None:
        guards.append(start_marked(storage, task.instant, task.inflight, spec.partition, name, kind))

    def begin() -> Callable[[], None]:
        marked(spec.name, markers.CREATE if compaction.slice.base_file is None else markers.MERGE)
        return check

    def check() -> None:
        for guard in guards:
            guard()

    if table.cdc_enabled:
        settings = CdcSettings(table.cdc_mode, written_text(spec.schema, table.name, transaction.snapshot))
        changes = CdcWriter(
            storage, settings, spec.schema, partition=spec.partition, file_id=spec.file_id,
            instant=task.instant, write_token=spec.write_token,
        )  # fmt: skip
        marked(changes.name, markers.APPEND)
    rewriting = _Rewriting(choice.keyed, change, task.instant, number, changes, spec.schema)
    try:
        if changes is None:
            stat = _compacted(task, begin, rewriting)
            paths = [spec.path]
        else:
            with changes:
                stat = _compacted(task, begin, rewriting)
                stat = replace(stat, extra=changes.close())
            paths = [spec.path, changes.path]
    except HudiError as e:
        raise e.at(table=storage.uri, instant=task.instant) from e.__cause__
    if rewriting.met != len(change.keys):
        raise ConcurrentWriterError(
            f"{len(change.keys) - rewriting.met} of the rows to take out are not where they were found",
            table=storage.uri,
            instant=task.instant,
            file=spec.path,
            remedy="run the deduplication again.",
        )
    confirm_marked(storage, check, *paths)
    gone = int((change.merged < 0).sum())
    return replace(stat, num_deletes=gone, num_update_writes=len(change.keys) - gone, num_inserts=0)


def _compacted(
    task: CompactionTask, begin: Callable[[], Callable[[], None]], rewriting: _Rewriting
) -> WriteStat:
    stat = compact_slice(
        task.storage, task.compaction, begin=begin, observer=lambda: observer_of(task.bloom, virtual=task.virtual),
        change=rewriting, even_if_empty=True,
    )  # fmt: skip
    assert stat is not None  # it makes a file in any case
    return replace(stat, prev_commit=task.compaction.slice.base_instant, extra={})


class _Rewriting:
    """Change of a slice's rows, part by part.

    Attributes:
        met: changed rows so far.
    """

    def __init__(
        self, keyed: KeyedSlices, change: _SliceChange, instant: str, number: int, changes: CdcWriter | None,
        schema: pa.Schema,
    ) -> None:  # fmt: skip
        self._keyed, self._change, self._changes, self._schema = keyed, change, changes, schema
        self._index = _CopyIndex(change.keys, change.copy)
        self._instant, self._number = instant, number
        self.met = 0

    def __call__(self, rows: pa.Table) -> pa.Table:
        keys = _text(rows, self._keyed)
        hits = self._index.find(keys)
        there = hits >= 0
        self.met += int(there.sum())
        if not there.any():
            return rows
        target = np.full(rows.num_rows, -1, np.int64)
        target[there] = self._change.merged[hits[there]]
        gone = there & (target < 0)
        out = self._put(rows, target).filter(pa.array(~gone))
        if self._changes is not None:
            stored = conform(rows.select(self._schema.names), self._schema).add_column(0, RECORD_KEY, keys)
            self._changes.met(
                stored, gone, target[~gone], conform(out.select(self._schema.names), self._schema)
            )
        return out

    def _put(self, rows: pa.Table, target: np.ndarray) -> pa.Table:
        """The rows, with merged ones in place of what they were; those are written by this commit."""
        at = np.flatnonzero(target >= 0)
        if not len(at):
            return rows
        made = self._change.rows
        numbers = pa.array([f"{self._instant}_{self._number}_{n}" for n in target[at]], pa.string())
        source = np.arange(rows.num_rows, dtype=np.int64)
        source[at] = rows.num_rows + np.arange(len(at))
        out = rows
        for place, name in enumerate(rows.column_names):
            if name == COMMIT_TIME:
                new: pa.Array | pa.ChunkedArray = pa.repeat(self._instant, len(at))
            elif name == COMMIT_SEQNO:
                new = numbers
            elif name in META_COLUMNS or name not in made.column_names:
                continue
            else:
                new = made.column(name).take(pa.array(target[at]))
            column = rows.column(name)
            new = new.cast(column.type)
            chunks = [*column.chunks, *(new.chunks if isinstance(new, pa.ChunkedArray) else [new])]
            mixed = pa.chunked_array(chunks, column.type).take(pa.array(source))
            out = out.set_column(place, rows.schema.field(name), mixed)
        return out
