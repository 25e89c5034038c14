"""Keys that a write adds to file groups, takes away or moves, for the record index.

    keys of a file group's slice before the write and after it -> what came, what went

Only file groups whose keys may have changed are read, their key columns alone: rewritten base files with inserts or
deletes, new ones, those that are replaced, log files with deletes or behind deletes.  The index has one place per key:
a key that two file groups hold has none, and is named as `ambiguous`.

Source: HoodieBackedTableMetadataWriter.getRecordIndexUpserts of Apache Hudi 0.15, which goes by the write statuses: a
delete that the ordering value overrules stays without a place there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.file_names import parse_base_file, parse_log_file
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.log.scanner import BlockScope
from hudi_format.merge.key_index import KeyIndex
from hudi_format.merge.payloads import MergeRule
from hudi_format.model import BaseFile, FileSlice, LogFile, WriteStat
from hudi_format.parquet.reader import read_keys
from hudi_format.schema.meta_fields import RECORD_KEY, with_meta
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import Storage
from hudi_index.lookup import BUCKET, deletes_by_columns, has_deletes
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slices import slices_of_groups
from hudi_timeline.file_system_view.slice_merge import slice_merge
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.table_config import index_of

THREADS = 8
_NO_KEYS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True, eq=False)
class KeyChanges:
    """Changes of the record index.

    Attributes:
        keys: new keys of file groups, each once.
        group: number of each key's file group in `groups`.
        gone: keys that no file group has any longer.
        moved: whether a new key was in another file group before, which has lost it.
        ambiguous: a key that is in two of the file groups; "" for none.
    """

    keys: pa.Array
    group: np.ndarray
    groups: tuple[Group, ...]
    gone: pa.Array
    moved: np.ndarray
    ambiguous: str = ""


@dataclass(frozen=True, slots=True)
class _Task:
    """Slice of a file group before the write and after it; None for none.

    Attributes:
        came: the keys that came, where the write has told them and none went; None where files say it.
    """

    group: Group
    before: FileSlice | None
    after: FileSlice | None
    came: pa.Array | None = None


def key_changes(
    snapshot: TableSnapshot,
    instant: str,
    stats: Iterable[WriteStat],
    replaced: Mapping[str, Sequence[str]],
    schema: pa.Schema,
) -> KeyChanges:
    """Changes of keys by a write that is about to be completed.

    Args:
        snapshot: without it, loaded under the lock.
        stats, replaced: of the write; compactions change no keys.
        schema: of the write, without meta columns.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: reading the slices.
    """
    merge = slice_merge(snapshot)
    tasks = _tasks(snapshot, instant, list(stats), replaced, merge.rule, schema)
    own = replace(merge, scope=_seeing(merge, instant))
    columns = with_meta(schema)

    def read(task: _Task) -> tuple[pa.Array, pa.Array]:
        if task.came is not None:
            return task.came, _NO_KEYS
        before = _stored_keys(snapshot.storage, task.before, merge, columns)
        return came_and_went(before, _stored_keys(snapshot.storage, task.after, own, columns))

    found = list(side_by_side(read, tasks, THREADS))
    return changes_of([t.group for t in tasks], [f[0] for f in found], [f[1] for f in found])


def came_and_went(before: pa.Array, after: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Distinct keys that came, and that went; neither has nulls."""
    if not len(before) or not len(after):
        return pc.unique(after), pc.unique(before)
    index = KeyIndex(before)
    at = index.find(after)
    left = np.ones(len(before), dtype=bool)
    left[at[at >= 0]] = False
    if index.duplicates:
        left = left[index.find(before)]
    return pc.unique(after.filter(pa.array(at < 0))), pc.unique(before.filter(pa.array(left)))


def changes_of(groups: Sequence[Group], came: Sequence[pa.Array], went: Sequence[pa.Array]) -> KeyChanges:
    """Changes from the keys that came to each file group, and that went from it."""
    keys = pa.concat_arrays([_NO_KEYS, *came])
    gone = pa.concat_arrays([_NO_KEYS, *went])
    group = np.repeat(np.arange(len(groups)), [len(c) for c in came])
    distinct = pc.unique(keys)
    ambiguous = ""
    if len(distinct) != len(keys):
        counts = pc.value_counts(keys)
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        ambiguous = twice[0].as_py()
    return KeyChanges(
        keys,
        group,
        tuple(groups),
        gone.filter(pc.invert(pc.is_in(gone, value_set=distinct))),
        np.asarray(pc.is_in(keys, value_set=gone)) if len(gone) else np.zeros(len(keys), dtype=bool),
        ambiguous,
    )


def slice_keys(snapshot: TableSnapshot, slices: Sequence[FileSlice]) -> list[pa.Array]:
    """Distinct keys of each slice; errors as of `key_changes`."""
    merge = slice_merge(snapshot)
    columns = with_meta(snapshot.schema) if slices else pa.schema([])
    return list(
        side_by_side(lambda s: pc.unique(_stored_keys(snapshot.storage, s, merge, columns)), slices, THREADS)
    )


def _stored_keys(storage: Storage, part: FileSlice | None, merge: SliceMerge, schema: pa.Schema) -> pa.Array:
    """Keys of a slice, without nulls."""
    if part is None:
        return _NO_KEYS
    if not part.log_files:
        if part.base_file is None:
            return _NO_KEYS
        keys = read_keys(storage, part.base_file.path, size=part.base_file.size)
    else:
        batches = list(read_file_slice(storage, part, merge, schema, columns=[RECORD_KEY]))
        keys = pa.chunked_array([b.column(0) for b in batches], pa.string())
    found = one_array(keys).cast(pa.string())
    return found.drop_null() if found.null_count else found


def _seeing(merge: SliceMerge, instant: str) -> BlockScope:
    """The scope of a merge that sees one more instant."""
    scope = merge.scope
    known = scope.visible
    if known is None:
        return scope
    visible = replace(known, completed=known.completed | {instant})
    return replace(scope, visible=visible, inflight=scope.inflight - {instant})


def _tasks(
    snapshot: TableSnapshot,
    instant: str,
    stats: Sequence[WriteStat],
    replaced: Mapping[str, Sequence[str]],
    rule: MergeRule,
    schema: pa.Schema,
) -> list[_Task]:
    """File groups whose keys may change."""
    bases: dict[Group, BaseFile] = {}
    logs: dict[Group, list[LogFile]] = {}
    by_group: dict[Group, list[WriteStat]] = {}
    for stat in stats:
        partition, _, name = stat.path.rpartition("/")
        base = parse_base_file(partition, name, stat.file_size_in_bytes)
        log = None if base is not None else parse_log_file(partition, name, stat.file_size_in_bytes)
        group = (partition, stat.file_id)
        by_group.setdefault(group, []).append(stat)
        if base is not None:
            bases[group] = base
        elif log is not None:
            logs.setdefault(group, []).append(log)
    left = {(p, file_id) for p, ids in replaced.items() for file_id in ids}
    new_in_logs = index_of(snapshot.config.properties) == BUCKET
    of_logs = new_in_logs or deletes_by_columns(rule, schema)
    asked = {
        g
        for g, of in by_group.items()
        if g in logs
        or snapshot.config.table_type == "MERGE_ON_READ"
        or any(s.num_inserts or s.num_deletes for s in of)
    } | left
    slices = {(s.partition, s.file_id): s for s in slices_of_groups(snapshot, asked)}
    out = []
    for group in sorted(asked):
        before = slices.get(group)
        if group in left:
            out.append(_Task(group, before, None))
            continue
        if group in bases:
            base = bases[group]
            counted = any(s.num_inserts or s.num_deletes for s in by_group[group])
            if before is not None and not before.log_files and not counted:
                continue
            after = FileSlice(*group, base.instant, base)
            out.append(_Task(group, before, after, _told_keys(by_group[group], before)))
            continue
        known = () if before is None else before.log_files
        names = {f.name for f in logs[group]}
        earlier = tuple(f for f in known if f.name not in names)
        if (
            not of_logs
            and before is not None
            and before.base_file is not None
            and not any(s.num_deletes for s in by_group[group])
            and not has_deletes(snapshot.storage, earlier)
        ):
            continue
        first = logs[group][0].instant if before is None else before.base_instant
        base_file = None if before is None else before.base_file
        if before is not None:
            before = (
                FileSlice(*group, first, base_file, earlier) if base_file is not None or earlier else None
            )
        out.append(_Task(group, before, FileSlice(*group, first, base_file, (*earlier, *logs[group]))))
    return out


def _told_keys(stats: Sequence[WriteStat], before: FileSlice | None) -> pa.Array | None:
    """Keys that came to a file group by what the write says of the one file that it made of the one before."""
    if len(stats) != 1 or before is None or before.log_files or before.base_file is None:
        return None
    return stats[0].new_keys if stats[0].prev_commit == before.base_file.instant else None
