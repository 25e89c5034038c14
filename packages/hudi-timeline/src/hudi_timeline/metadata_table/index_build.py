"""Content of partitions of the metadata table that are built while writers go on.

    under the lock: folder, file groups with an empty log each, their delta commit  -> writers keep the partition
    without it:     records of the files that were committed by then                -> base files below those logs
    under the lock: their delta commit names the base files; what writers have not kept
                                                                                    -> records of the build's own time

Until the table's properties name the partition nobody reads it.

Source: HoodieBackedTableMetadataWriter.buildMetadataPartitions and AbstractIndexingCatchupTask of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import ConcurrentWriterError, MissingFileError
from hudi_format.file_names import base_file_name, parse_base_file
from hudi_format.model import BaseFile, WriteStat, join_path
from hudi_format.parquet.footer import open_parquet
from hudi_format.storage.open import flush
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table import records as r
from hudi_index.metadata_table.encoding import base_file_of
from hudi_index.metadata_table.index_records import location_records, written_schema
from hudi_index.metadata_table.keys import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from hudi_index.metadata_table.slice_records import ALL, read_slices
from hudi_index.record_index import located
from hudi_timeline import metadata_config
from hudi_timeline.concurrency.own_files import create_own
from hudi_timeline.file_system_view.file_slices import newest_slices_of, slices_of_groups
from hudi_timeline.file_system_view.listing import list_table
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table import deltacommit, file_indexes
from hudi_timeline.metadata_table.deltacommit import GroupChange
from hudi_timeline.metadata_table.initialisation import (
    OPERATION,
    base_file_stat,
    index_content,
    index_groups,
    no_place,
    sharded,
    write_partition,
)
from hudi_timeline.metadata_table.key_changes import changes_of, slice_keys
from hudi_timeline.metadata_table.mirror import sharded_changes
from hudi_timeline.metadata_table.own_table import FIRST_INITIALISATION, OwnTable, open_own, own_if_there
from hudi_timeline.metadata_table.reader import MetadataTable, partition_slices
from hudi_timeline.options.transaction_config import IndexConfig
from hudi_timeline.timeline.action_metadata import CleanMetadata, read_action
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import CLEAN, DELTA_COMMIT, RESTORE, WRITE_ACTIONS, Instant

INDEXER_SUFFIX = 4
_LAST_SUFFIX = 99
_BASE_TOKEN = "0-1-0"
_TRIES = 5


@dataclass(frozen=True, slots=True, eq=False)
class BuiltIndex:
    """Content of one partition.

    Attributes:
        records: what its base files hold.
        refused: why it cannot be made; "" where it can.
        stats: of the base files that were written.
    """

    records: pa.RecordBatch
    refused: str = ""
    stats: tuple[WriteStat, ...] = ()


def group_count(snapshot: TableSnapshot, partition: str, indexes: IndexConfig) -> int:
    """Number of file groups of a new partition; footers say how many keys a record index has."""
    if partition == COLUMN_STATS:
        return indexes.column_stats_groups
    if partition == BLOOM_FILTERS:
        return indexes.bloom_filters_groups
    if indexes.record_index_least == indexes.record_index_most:
        return indexes.record_index_least
    rows = 0
    for part in newest_slices_of(snapshot):
        if part.base_file is not None:
            with open_parquet(snapshot.storage, part.base_file.path) as file:
                rows += file.metadata.num_rows
    return index_groups(rows, indexes)


def make_groups(snapshot: TableSnapshot, partition: str, groups: int) -> str:
    """Make a partition's folder and file groups anew, under the lock; returns their instant.

    It is later than everything that the metadata table has of the partition's earlier life.
    """
    own = open_own(snapshot.storage)
    last = max(i.time for i in snapshot.timeline.instants)
    known = {f.time for f in own.timeline.files}
    suffixes = (INDEXER_SUFFIX, *range(FIRST_INITIALISATION, _LAST_SUFFIX + 1))
    free = (f"{last}{n:03d}" for n in suffixes if f"{last}{n:03d}" not in known)
    instant = next(free, None)
    if instant is None:
        raise ConcurrentWriterError(
            f"indexes were made {len(suffixes)} times since {last}",
            table=snapshot.storage.uri,
            remedy="drop the index, and build it after the next write.",
        )
    write_partition(own, partition, instant, _empty(partition), groups)
    return instant


def _empty(partition: str) -> pa.RecordBatch:
    schema = written_schema(partition)
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def forget_groups(snapshot: TableSnapshot, instants: Iterable[str]) -> None:
    """Take delta commits of removed file groups back, so that no late base file of them counts."""
    own = own_if_there(snapshot.storage)
    if own is None:
        return
    gone = set(instants)
    for file in reversed(own.timeline.files):
        if file.time in gone and file.comparable_action == DELTA_COMMIT:
            own.storage.delete(file.path)


def read_content(snapshot: TableSnapshot, partition: str, indexes: IndexConfig) -> BuiltIndex:
    """Content of a partition by what is committed in a snapshot, without the lock.

    A file that a cleaning takes away meanwhile is left out: the cleaning strikes it out in the partition, too.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: of the files.
    """
    visible = snapshot.visible()
    for attempt in range(_TRIES):
        listed = {
            p: {
                e.name: e.size
                for e in entries
                if (base := parse_base_file(p, e.name)) is not None and base.instant in visible
            }
            for p, entries in list_table(snapshot.storage, snapshot.config).files.items()
        }
        try:
            records, _, why = index_content(snapshot, partition, listed, indexes)
        except MissingFileError:
            if partition == RECORD_INDEX or attempt == _TRIES - 1:
                raise
            continue
        return BuiltIndex(records, why)
    raise AssertionError("unreachable")


def write_content(
    own: OwnTable, partition: str, instant: str, records: pa.RecordBatch, check: Callable[[], None]
) -> tuple[WriteStat, ...]:
    """Statistics of a partition's new base files, which nobody reads before `name_content`.

    Args:
        instant: of the file groups.
        check: called before each file; raises where the build is another process's by now.
    """
    groups = len({file_id for _, file_id in own.slices([partition])})
    if not groups:
        return ()  # a write could not keep the partition, and dropped it
    stats = []
    for number, content in enumerate(sharded(records, groups)):
        if not content.num_rows:
            continue
        file_id = k.file_group_id(partition, number)
        name = base_file_name(file_id, _BASE_TOKEN, instant, "hfile")
        data = base_file_of(content)
        check()
        path = join_path(partition, name)
        create_own(own.storage, path, data)
        flush(own.storage, [path])
        stats.append(base_file_stat(partition, file_id, name, content.num_rows, len(data)))
    return tuple(stats)


def name_content(own: OwnTable, instant: str, stats: Sequence[WriteStat]) -> None:
    """Name base files in the delta commit of their file groups, under the lock."""
    deltacommit.complete(own, instant, stats, OPERATION, again=True)


# --- catch-up ------------------------------------------------------------------------------------------


def not_kept(before: TableSnapshot, now: TableSnapshot, partition: str) -> list[Instant]:
    """Actions completed since the file groups were made that wrote nothing into a partition.

    Raises:
        ConcurrentWriterError: what was there is no more, or a restore came between: the content is of another state.
    """
    known = {(i.time, i.comparable_action) for i in before.timeline.instants if i.completed}
    there = {(i.time, i.comparable_action) for i in now.timeline.instants if i.completed}
    archived = now.timeline.archived()
    lost = sorted(t for t, a in known - there if a in WRITE_ACTIONS and t not in archived)
    fresh = [i for i in now.timeline.instants if i.completed and (i.time, i.comparable_action) not in known]
    if lost or any(i.action == RESTORE for i in fresh):
        raise ConcurrentWriterError(
            f"the commit {lost[0]} was rolled back" if lost else "the table was restored",
            table=now.storage.uri,
            instant=lost[0] if lost else "",
            remedy="build the index again.",
        )
    own = open_own(now.storage)
    told = {i.time: i for i in own.timeline.completed_writes()}
    out = []
    for instant in fresh:
        if instant.action not in WRITE_ACTIONS and instant.action != CLEAN:
            continue
        mirrored = told.get(instant.time)
        stats = () if mirrored is None else own.snapshot.commits.get(mirrored).stats
        if not any(s.partition == partition for s in stats):
            out.append(instant)
    return out


def catch_up(
    now: TableSnapshot, partition: str, missed: Sequence[Instant], indexes: IndexConfig
) -> tuple[Mapping[str, GroupChange], str]:
    """Changes that writers have not kept of a partition, and why they cannot be kept, or "".

    Args:
        missed: as of `not_kept`.
    """
    if not missed:
        return {}, ""
    own = open_own(now.storage)
    if partition == RECORD_INDEX:
        return _missed_keys(now, own, [i for i in missed if i.action in WRITE_ACTIONS])
    new: dict[str, BaseFile] = {}
    gone: dict[str, list[str]] = {}
    for instant in missed:
        if instant.action == CLEAN:
            cleaned = read_action(now.storage, instant)
            assert isinstance(cleaned, CleanMetadata)
            for folder, did in cleaned.partitions.items():
                gone.setdefault(folder, []).extend(did.deleted)
            continue
        for stat in now.commits.get(instant).stats:
            folder, _, name = stat.path.rpartition("/")
            for base in file_indexes.base_files({folder: {name: stat.file_size_in_bytes}}):
                new[base.path] = base
    files = [f for f in new.values() if now.storage.info(f.path) is not None]
    if partition == COLUMN_STATS:
        columns = file_indexes.indexed_columns(now.schema, indexes.columns)
        records, why = file_indexes.column_stats_of(now.storage, files, columns)
        struck = file_indexes.struck_stats(gone, columns)
    else:
        records, why = file_indexes.bloom_filters_of(now.storage, files)
        struck = file_indexes.struck_filters(gone, missed[-1].time)
    if why:
        return {}, why
    return sharded_changes(own.slices([partition]), partition, _joined([records, struck])), ""


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Records of batches, the last one of each key."""
    table = pa.Table.from_batches(batches).combine_chunks()
    last = dict(zip(table.column("key").to_pylist(), range(table.num_rows), strict=True))
    chosen = table.take(pa.array(sorted(last.values()), pa.int64())).combine_chunks()
    found = chosen.to_batches()
    return found[0] if found else batches[0].slice(0, 0)


def _missed_keys(
    now: TableSnapshot, own: OwnTable, missed: Sequence[Instant]
) -> tuple[Mapping[str, GroupChange], str]:
    """Keys of the file groups that writes touched, as they are now, and those that are gone from them."""
    touched: set[tuple[str, str]] = set()
    for instant in missed:
        touched |= now.commits.get(instant).file_groups()
    if not touched:
        return {}, ""
    slices = slices_of_groups(now, touched)
    changes = changes_of([(s.partition, s.file_id) for s in slices], slice_keys(now, slices), [])
    if changes.ambiguous:
        return {}, no_place(changes.ambiguous)
    records = location_records(changes.keys, changes.group, changes.groups, 0)
    here = set(changes.keys.to_pylist())
    said = located(_as_built(now, RECORD_INDEX).scan(RECORD_INDEX)).by_key()
    stale = [key for key, group in said.items() if group in touched and key not in here]
    return sharded_changes(
        own.slices([RECORD_INDEX]), RECORD_INDEX, records, pa.array(stale, pa.string())
    ), ""


def _as_built(snapshot: TableSnapshot, partition: str) -> MetadataTable:
    """The metadata table with a partition as if its build was completed."""
    config = metadata_config.as_completed(snapshot.config, [partition])
    return MetadataTable.of(replace(snapshot, config=config))


def key_of_two_groups(now: TableSnapshot, built: pa.RecordBatch) -> str:
    """A key that came to a file group while its earlier one still has it; "" for none.

    Args:
        built: records of the base files.
    """
    table = _as_built(now, RECORD_INDEX)
    logs = [replace(s, base_file=None) for s in partition_slices(table._own, RECORD_INDEX)]
    written = read_slices(table.storage, ((s, ALL) for s in logs), table.scope, r.schema_of(RECORD_INDEX))
    moved = located(written).by_key()
    if not moved:
        return ""
    known = built.filter(pc.is_in(built.column("key"), pa.array(list(moved), pa.string())))
    old: dict[tuple[str, str], set[str]] = {}
    for row in known.to_pylist():
        place = (row[r.LOCATION]["partitionName"], r.file_id_of(row[r.LOCATION], row["key"]))
        if moved[row["key"]] != place:
            old.setdefault(place, set()).add(row["key"])
    slices = slices_of_groups(now, old)
    for part, keys in zip(slices, slice_keys(now, slices), strict=True):
        left = old[part.partition, part.file_id] & set(keys.to_pylist())
        if left:
            return min(left)
    return ""


def completed_at(timeline: Timeline) -> str:
    """Newest completed instant, up to which a completed build is right."""
    return max((i.time for i in timeline.instants if i.completed), default="")


def apply_catch_up(
    snapshot: TableSnapshot,
    instant: str,
    changes: Mapping[str, Mapping[str, GroupChange]],
    partitions: Collection[str],
) -> None:
    """Write what writers have not kept, which counts once the build is completed."""
    chosen = {p: of for p, of in changes.items() if p in partitions and of}
    if chosen:
        deltacommit.apply(open_own(snapshot.storage), instant, chosen)
