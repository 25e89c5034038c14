"""Tagging: the file group of each incoming row.

Within partitions a key goes to every file of its partition that holds it.  The global kinds look in all
partitions: a record that is in another one is updated there, or is deleted there and inserted into its own.

Source: HoodieIndexUtils.tagGlobalLocationBackToRecords of Apache Hudi 0.15, and what it did with the same rows
(tests/interop).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.spill import gather
from hudi_format.errors import ConcurrentWriterError, MissingColumnError
from hudi_format.file_slice.record_versions import LoggedSlices
from hudi_format.merge.key_index import key_groups
from hudi_format.merge.ordering import ordering_column
from hudi_format.merge.payloads import MergeRule
from hudi_format.merge.record_merger import DATA, DELETE_DEFAULT, combine, deleted_kinds, deletes_of
from hudi_format.model import BaseFile, join_path
from hudi_format.schema.meta_fields import COMMIT_SEQNO, PARTITION_PATH, RECORD_KEY
from hudi_format.storage.parallel import REMOTE_THREADS, on_pool
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.footer_index import MAYBE
from hudi_index.bucket import locate
from hudi_index.lookup import (
    FileLookup,
    KeyMatches,
    KeyStages,
    LookupCount,
    LookupTask,
    surviving,
    with_equal_keys,
)
from hudi_index.record_index import Places, files_are_cheaper

# A further column of rows that go to a bucket: true for a record that moves to another partition, and is to be
# deleted in this one.
MOVED = "_hudi_moved"
# Another: the path of the base file that holds the stored record, for a record that moves, where it is merged with the
# new one, and for one that does not, because the stored one is newer, or because the slice has logs: it is then merged
# with what is stored, of which a log's record may be a part.  Null for all others.
STORED_IN = "_hudi_stored_in"

# A base file and the number of its partition.
_Candidate: TypeAlias = tuple[int, BaseFile]
# Local files that a thread looks into before it takes the next ones, and how many times at least files are taken where
# there are as many: of 20 large files in groups of 8, one of two threads would get 12.
_AT_ONCE = 8
_LEAST_PARTS = 32


@dataclass(frozen=True)
class Tagged:
    """Tagged rows.

    Attributes:
        rows: the incoming rows, each as often as it goes somewhere; with a column `MOVED` if a record moves:
            true for the row that deletes it in its old partition; and with `STORED_IN` if stored records are needed.
        codes: per row, the number of its partition.
        partitions: all partitions that rows are in.
        files: file groups that rows are in, as (number of the partition, file id).
        location: per row, the number of its file group, -1 for none.
        count: what the look-up had to do with.
    """

    rows: pa.Table
    codes: np.ndarray
    partitions: tuple[str, ...]
    files: tuple[tuple[int, str], ...]
    location: np.ndarray
    count: LookupCount


class _Lookup(NamedTuple):
    storage: Storage
    files: Mapping[str, Sequence[BaseFile]]
    task: LookupTask
    pool: ThreadPoolExecutor


def tag_rows(
    rows: pa.Table,
    codes: np.ndarray,
    partitions: tuple[str, ...],
    storage: Storage,
    files: Mapping[str, Sequence[BaseFile]],
    task: LookupTask,
    threads: int,
) -> Tagged:
    """Look up the keys of rows.

    Args:
        rows: record key and the columns to write.
        codes: per row, the number of its partition in `partitions`.
        files: latest base files by partition; for the global kinds of the whole table.
    """
    if task.bucket is None:
        workers = threads if storage.is_local else max(threads, REMOTE_THREADS)
        with ThreadPoolExecutor(workers) as pool:
            tag = _tag_global if task.is_global else _tag_within
            return tag(rows, codes, partitions, _Lookup(storage, files, task, pool))
    count = LookupCount(task.index, sum(len(of) for of in task.groups.values()))
    if task.drop_known:
        known = tag_rows(rows, codes, partitions, storage, files, task.looking(), threads)
        fresh = np.flatnonzero(known.location < 0)
        rows, codes = gather(known.rows, fresh, task.memory), known.codes[fresh]
        count = replace(known.count, index=task.index)
    groups, location = locate(
        task.bucket, rows.column(RECORD_KEY), codes, partitions, task.groups, table=storage.uri
    )
    told = location >= 0
    count = replace(count, keys=count.keys or KeyStages.of(told, np.zeros(len(told), dtype=bool), ()))
    return Tagged(rows, codes, partitions, groups, location, count)


def _tag_within(rows: pa.Table, codes: np.ndarray, partitions: tuple[str, ...], asked: _Lookup) -> Tagged:
    storage, files, task, pool = asked
    candidates = [(code, f) for code, p in enumerate(partitions) for f in files.get(p, ())]
    by_code = rows_by_code(codes, len(partitions))
    keys = rows.column(RECORD_KEY)
    lookups = {
        code: FileLookup(storage, keys.take(pa.array(by_code[code])), task)
        for code in {code for code, _ in candidates}
    }
    found = _in_all(candidates, lambda c: lookups[c[0]].find(c[1]), storage, pool)
    same = {code: lookup.same_keys for code, lookup in lookups.items()}
    hits = [
        by_code[code][with_equal_keys(f.rows, same[code])]
        for (code, _), f in zip(candidates, found, strict=True)
    ]
    if task.logged is not None:
        dead = _deleted(
            candidates, hits, rows.num_rows, pool,
            lambda c, at: lookups[c[0]].deleted(c[1], np.searchsorted(by_code[c[0]], at)), task,
        )  # fmt: skip
        hits = [at[~gone] for at, gone in zip(hits, dead, strict=True)]
    order, location = _placed(hits, np.zeros(rows.num_rows, dtype=bool))
    groups = tuple((code, f.file_id) for code, f in candidates)
    compared = np.zeros(rows.num_rows, dtype=bool)
    for code, lookup in lookups.items():
        compared[by_code[code][lookup.compared]] = True
    keys_of = KeyStages.of(np.zeros(rows.num_rows, dtype=bool), compared, hits)
    count = replace(LookupCount.of(task.index, (f.verdict for f in found)), keys=keys_of)
    if len(order) == rows.num_rows:  # no key in two files: keep the rows where they are
        out = np.empty(rows.num_rows, dtype=np.int32)
        out[order] = location
        return Tagged(rows, codes, partitions, groups, out, count)
    back = np.argsort(order, kind="stable")
    order, location = order[back], location[back]
    return Tagged(gather(rows, order, task.memory), codes[order], partitions, groups, location, count)


def _tag_global(rows: pa.Table, codes: np.ndarray, partitions: tuple[str, ...], asked: _Lookup) -> Tagged:
    storage, files, task, pool = asked
    may_move: np.ndarray | None = None
    ordering = ordering_column(rows, task.ordering_field, task.rule.sequence)
    if task.fills_within:
        rows, codes = _filled(rows, codes, task, ordering)
        ordering = ordering_column(rows, task.ordering_field, task.rule.sequence)
    elif task.keeps_together:
        codes, may_move = _together(rows, codes, task)
    elif task.combine:
        keep = surviving(rows.column(RECORD_KEY), task, ordering)
        if len(keep) < rows.num_rows:
            rows, codes = gather(rows, keep, task.memory), codes[keep]
            ordering = ordering_column(rows, task.ordering_field, task.rule.sequence)
    known = {p: n for n, p in enumerate(partitions)}
    for partition in files:
        known.setdefault(partition, len(known))
    candidates = [(known[p], f) for p, of in files.items() for f in of]
    if task.logged is None and files_are_cheaper(storage, files, task.groups, task.locator, rows.num_rows):
        task = replace(task, locator=None)
    deletes = deleted_rows(task, rows)
    if may_move is None:
        may_move = np.full(rows.num_rows, True) if deletes is None else ~deletes
    may_move &= task.update_partition
    lookup = FileLookup(storage, rows.column(RECORD_KEY), task, ordering if task.compares_stored else None)

    def leaves(code: int) -> np.ndarray:
        elsewhere: np.ndarray = may_move & (codes != code)
        return elsewhere

    def find(candidate: _Candidate) -> KeyMatches:
        code, file = candidate
        found = lookup.find(file, leaves(code) if task.compares_stored else None)
        lookup.check_base(file, found.rows, leaves(code))
        return found

    places = lookup.places(pool)
    told = np.zeros(rows.num_rows, dtype=bool)
    if places is None:
        found = _in_all(candidates, find, storage, pool)
        count = LookupCount.of(task.index, (f.verdict for f in found))
    else:
        total = len(candidates)
        for at in places.rows.values():
            told[with_equal_keys(at, lookup.same_keys)] = True
        candidates, found, count = _by_index(lookup, places, candidates, known, leaves, pool)
        count = replace(count, files=total)
    same = lookup.same_keys
    hits, moves, renewed = [], [], []
    leaving = np.ones(rows.num_rows, dtype=bool)  # of the rows that are found: whether they leave every file
    at_of = [with_equal_keys(f.rows, same) for f in found]
    # The index knows what logs have deleted.
    looked = task if places is None else replace(task, logged=None)
    dead = _deleted(
        candidates, at_of, rows.num_rows, pool, lambda c, at: lookup.deleted(c[1], at), looked
    )  # fmt: skip
    compared = lookup.compared if same is None else lookup.compared[same]
    count = replace(count, keys=KeyStages.of(told, compared, at_of))
    for (code, _), f, at, gone in zip(candidates, found, at_of, dead, strict=True):
        stays = np.zeros(rows.num_rows, dtype=bool)
        if f.stays is not None:
            stays[with_equal_keys(f.rows[f.stays], same)] = True
        at = at[~gone]
        elsewhere = may_move[at] & (codes[at] != code)
        moved = elsewhere & ~stays[at]
        leaving[at[~moved]] = False
        hits.append(at)
        moves.append(moved)
        renewed.append(elsewhere & stays[at])
    order, location = _placed(hits, leaving)
    moved = np.zeros(len(order), dtype=bool)
    if moves:
        marks = np.concatenate(moves)
        moved[: len(marks)] = marks
    back = np.argsort(order, kind="stable")
    order, location, moved = order[back], location[back], moved[back]
    group_codes = np.array([code for code, _ in candidates] or [0], dtype=codes.dtype)
    out_codes = np.where(location >= 0, group_codes[np.maximum(location, 0)], codes[order])
    if not task.update_partition:
        left = (location >= 0) & (out_codes != codes[order])
        if deletes is not None:
            left &= ~deletes[order]
        count = replace(count, left=int(left.sum()))
    out = rows if _is_range(order, rows.num_rows) else gather(rows, order, task.memory)
    paths = [f.path for _, f in candidates]
    here = np.zeros(len(order), dtype=bool)  # merged with the stored record, where that is
    if task.merges_beside_logs and task.logged is not None and candidates:
        logged = np.array([path in task.logged.logs for path in paths])
        here = (location >= 0) & ~moved & logged[np.maximum(location, 0)]
        if deletes is not None:
            here &= ~deletes[order]
    if task.renews_stored and candidates:
        again = np.zeros(len(order), dtype=bool)
        marks = np.concatenate(renewed)
        again[: len(marks)] = marks
        here |= again[back]
    stored_in = pa.array(paths, pa.string()).take(pa.array(location, mask=~here))
    if moved.any():
        out = out.append_column(MOVED, pa.array(moved))
        if task.takes_values_along:
            stored_in = pc.coalesce(stored_in, _stored_in(hits, paths, order, location))
    if stored_in.null_count < len(stored_in):
        out = out.append_column(STORED_IN, stored_in)
    groups = tuple((code, f.file_id) for code, f in candidates)
    return Tagged(out, out_codes, tuple(known), groups, location, count)


def _by_index(
    lookup: FileLookup,
    places: Places,
    candidates: Sequence[_Candidate],
    known: Mapping[str, int],
    moves: Callable[[int], np.ndarray],
    pool: ThreadPoolExecutor,
) -> tuple[list[_Candidate], list[KeyMatches], LookupCount]:
    """File groups that hold keys by the index, or by a look into the files for keys that it left in doubt.

    Args:
        candidates: all base files.
        moves: whether each row moves if it is in a file, by the number of the file's partition.
    """
    bases = {(code, f.file_id): f for code, f in candidates}
    held = {(known[p], file_id): rows for (p, file_id), rows in places.rows.items()}
    verdicts: list[str] = []
    if len(places.doubted):
        rest = lookup.among(places.doubted)

        def living(candidate: _Candidate) -> KeyMatches:
            found = rest.find(candidate[1])
            gone = rest.deleted(candidate[1], found.rows)
            return KeyMatches(found.verdict, places.doubted[found.rows[~gone]])

        for (code, file), found in zip(
            candidates, _in_all(candidates, living, lookup.storage, pool), strict=True
        ):
            verdicts.append(found.verdict)
            lookup.compared[places.doubted[rest.compared]] = True
            if len(found.rows):
                at = (code, file.file_id)
                held[at] = np.union1d(held[at], found.rows) if at in held else found.rows
    names = {code: p for p, code in known.items()}
    # A file group may have logs alone.
    chosen = [(code, bases.get((code, i)) or BaseFile(names[code], "", i, "")) for code, i in held]

    def matched(candidate: _Candidate) -> KeyMatches:
        code, file = candidate
        rows = held[code, file.file_id]
        lookup.check_base(file, rows, moves(code))
        compared = moves(code) if lookup.task.compares_stored and file.name else None
        stays = lookup.staying(file, rows, compared)
        return KeyMatches(MAYBE, rows, stays)

    count = LookupCount.of(lookup.task.index, verdicts, doubted=len(places.doubted), why=places.why)
    return chosen, _in_all(chosen, matched, lookup.storage, pool), count


def _deleted(
    candidates: Sequence[_Candidate],
    hits: Sequence[np.ndarray],
    n: int,
    pool: ThreadPoolExecutor,
    deleted: Callable[[_Candidate, np.ndarray], np.ndarray],
    task: LookupTask,
) -> list[np.ndarray]:
    """Masks of the hits that do not count: deleted in a log, while the key is in another file too.

    Of a key that is deleted wherever it is, the first place counts, but with `only_living`, and where a compaction is
    pending.

    Args:
        deleted: mask of rows, found in a file, that a log has deleted.
    """
    none = [np.zeros(len(at), dtype=bool) for at in hits]
    times = np.zeros(n, dtype=np.int64)
    for at in hits:
        times[at] += 1
    if task.logged is None:
        return none
    least = 1 if task.only_living else 2
    planned = [file.path in task.logged.planned for _, file in candidates]
    if not (times >= least).any() and not any(planned):
        return none

    def masked(number: int) -> np.ndarray:
        at, mask = hits[number], none[number]
        asked = np.arange(len(at)) if planned[number] else np.flatnonzero(times[at] >= least)
        if len(asked):
            mask[asked] = deleted(candidates[number], at[asked])
        return mask

    masks = list(on_pool(pool, masked, range(len(hits))))
    if task.only_living:
        return masks
    alive = np.zeros(n, dtype=bool)
    for at, mask in zip(hits, masks, strict=True):
        alive[at[~mask]] = True
    for at, mask, left_out in zip(hits, masks, planned, strict=True):
        if left_out:
            continue
        first = mask & ~alive[at]
        mask[first] = False
        alive[at[first]] = True
    return masks


def _in_all(
    candidates: Sequence[_Candidate],
    find: Callable[[_Candidate], KeyMatches],
    storage: Storage,
    pool: ThreadPoolExecutor,
) -> list[KeyMatches]:
    """Matches in each file, in order; local files in groups, as one takes 0.1 ms."""
    step = min(_AT_ONCE, max(1, len(candidates) // _LEAST_PARTS)) if storage.is_local else 1
    parts = [candidates[n : n + step] for n in range(0, len(candidates), step)]
    return [found for part in on_pool(pool, lambda some: [find(c) for c in some], parts) for found in part]


def _filled(
    rows: pa.Table, codes: np.ndarray, task: LookupTask, ordering: pa.Array | pa.ChunkedArray | None
) -> tuple[pa.Table, np.ndarray]:
    """One row per key, nulls filled, in the last partition."""
    given = rows.append_column(PARTITION_PATH, pa.array(codes))
    one = combine(rows.column(RECORD_KEY), task.rule, ordering=ordering, kinds=record_kinds(task, rows)).take(
        given, task.memory
    )
    return one.drop_columns([PARTITION_PATH]), one.column(PARTITION_PATH).to_numpy()


def _together(rows: pa.Table, codes: np.ndarray, task: LookupTask) -> tuple[np.ndarray, np.ndarray]:
    """Partition of each row, that of its key's last one which is no delete; and whether there is such a one."""
    first = key_groups(rows.column(RECORD_KEY))
    deletes = deleted_rows(task, rows)
    data = np.arange(len(codes)) if deletes is None else np.flatnonzero(~deletes)
    last = np.full(len(codes), -1, dtype=np.int64)
    last[first[data]] = data  # of several rows the last counts
    of_key = last[first]
    return np.where(of_key >= 0, codes[np.maximum(of_key, 0)], codes), of_key >= 0


def _stored_in(
    hits: Sequence[np.ndarray], paths: Sequence[str], order: np.ndarray, location: np.ndarray
) -> pa.Array:
    """Least path of a stored record per row that moves; null for others."""
    rank = np.argsort(paths)
    held = np.full(int(order.max()) + 1, -1, dtype=np.int64)
    for n in rank[::-1]:
        held[hits[n]] = n
    number = np.where(location < 0, held[order], -1)
    return pa.array(list(paths), pa.string()).take(pa.array(number, mask=number < 0))


def _placed(hits: Sequence[np.ndarray], leaving: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with their file number; -1 last, for new locations.

    Args:
        hits: per file, its rows.
        leaving: per row, whether it goes to a place of its own even if it is in a file.
    """
    free = np.ones(len(leaving), dtype=bool)
    for rows in hits:
        free[rows] = False
    rest = np.flatnonzero(free) if not leaving.any() else np.flatnonzero(free | leaving)
    numbers = [np.full(len(rows), n, dtype=np.int32) for n, rows in enumerate(hits)]
    return (
        np.concatenate([*hits, rest]).astype(np.int64, copy=False),
        np.concatenate([*numbers, np.full(len(rest), -1, dtype=np.int32)]),
    )


def _is_range(order: np.ndarray, n: int) -> bool:
    return len(order) == n and bool((order == np.arange(n)).all())


def rows_by_code(codes: np.ndarray, n: int) -> list[np.ndarray]:
    """Ascending rows of each code."""
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(n), side="right")
    starts = np.concatenate(([0], ends))[:n]
    return [order[s:e] for s, e in zip(starts, ends, strict=True)]


class DeleteRule(Protocol):
    """Rule for deletes, as in `LookupTask` and the tasks of workers."""

    @property
    def rule(self) -> MergeRule: ...

    @property
    def delete_all(self) -> bool: ...

    @property
    def delete_field(self) -> str: ...

    @property
    def delete_marker(self) -> str: ...


def record_kinds(context: DeleteRule, rows: pa.Table) -> np.ndarray | None:
    """Kind of each row (`record_merger`); None where all are data."""
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


def deleted_rows(context: DeleteRule, rows: pa.Table) -> np.ndarray | None:
    """Mask of deletes (bool); None where there are none."""
    kinds = record_kinds(context, rows)
    if kinds is None:
        return None
    mask = deletes_of(kinds)
    return mask if mask.any() else None


# Rows that say where they are: prepped operations take key, partition path and file from the meta columns.
#
# A record that was read from a table stands in the file that its `_hoodie_file_name` names, and in every later slice of
# that file group until it is deleted.  No key is looked up; instead each row's file must still be the latest of its
# group, or the record might have been changed or deleted since it was read.  Beside log files no name tells that: the
# base file keeps its name, and a logged record has the file id, however often it is changed.  There the merged record
# of the key must have the row's `_hoodie_commit_seqno` still.


def check_files(
    counted: Mapping[tuple[str, str], int],
    files: Mapping[str, Sequence[BaseFile]],
    logged: LoggedSlices | None = None,
    *,
    columns: Sequence[str] = (),
    table: str,
) -> tuple[tuple[str, str], ...]:
    """Check that rows are located in latest base files, or in file groups with log files.

    Args:
        counted: rows by partition path and file name.
        files: latest base files by partition.
        logged: latest slices with log files; None where there are none.
        columns: of the rows.

    Returns:
        File groups with log files that rows are in, as (partition path, file id), and that they were not compared with
        before: with their records they are to be compared.

    Raises:
        ConcurrentWriterError: a file is not the latest of its group, or none of the partition, or its group has logs
            and versions of its records cannot be told.
        MissingColumnError: rows of a group with logs do not say their version.
    """
    slices = {} if logged is None else logged.slices
    beside = sorted(k for k in counted if stated_group(*k) in slices)
    if beside and logged is not None and logged.untold:
        raise ConcurrentWriterError(
            f"{sum(counted[k] for k in beside):,} rows stand in file groups with log files, first "
            f"{join_path(*beside[0])}, and nothing says whether they were changed since they were read: "
            f"{logged.untold}",
            table=table,
            file=join_path(*beside[0]),
            remedy="use the operation without _prepped, which looks up their keys, or compact the table and read the "
            "rows again.",
        )
    if beside and COMMIT_SEQNO not in columns:
        raise MissingColumnError(
            f"{sum(counted[k] for k in beside):,} rows stand in file groups with log files, first "
            f"{join_path(*beside[0])}, where {COMMIT_SEQNO} says whether they were changed since they were read, but "
            f"the rows have no {COMMIT_SEQNO}",
            table=table,
            column=COMMIT_SEQNO,
            remedy="read the rows with all meta columns, or use the operation without _prepped, which looks up their "
            "keys.",
        )
    latest = {p: {f.path: f for f in of} for p, of in files.items()}
    known = set(beside)
    stale = sorted(k for k in counted if k not in known and join_path(*k) not in latest.get(k[0], {}))
    if stale:
        partition, name = stale[0]
        now = next((f for f in files.get(partition, ()) if f.file_id == name.partition("_")[0]), None)
        raise ConcurrentWriterError(
            f"{sum(counted[k] for k in stale):,} rows name {len(stale)} files that are not the latest of the table: "
            f"{join_path(partition, name)}"
            + (f" was rewritten as {now.path}" if now else " is none of them"),
            table=table,
            file=join_path(partition, name),
            remedy="read the rows again, or use the operation without _prepped, which looks up their keys.",
        )
    compared = frozenset() if logged is None else logged.compared
    return tuple(dict.fromkeys(g for k in beside if (g := stated_group(*k)) not in compared))


def stated_group(partition: str, name: str) -> tuple[str, str]:
    """File group of a stated file name: a base file's, or the file id of a record in a log."""
    return partition, name.partition("_")[0]


def refuse_changed(changed: Mapping[tuple[str, str], int], *, table: str) -> None:
    """Refuse rows that are not the stored records of their keys any more.

    Args:
        changed: their number by file group.

    Raises:
        ConcurrentWriterError: there are any.
    """
    found = sorted(group for group, n in changed.items() if n)
    if found:
        raise ConcurrentWriterError(
            f"{sum(changed.values()):,} rows of {len(found)} file groups with log files, first {join_path(*found[0])}, "
            "were changed or deleted since they were read",
            table=table,
            file=join_path(*found[0]),
            remedy="read the rows again, or use the operation without _prepped, which looks up their keys.",
        )
