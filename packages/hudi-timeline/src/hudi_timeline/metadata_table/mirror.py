"""Actions of a table, mirrored in the partitions of its metadata table.

Each has one delta commit of the same time, made before the action itself is completed, under the table's lock.  An
index that cannot be kept exactly is dropped, before the delta commit.

Source: HoodieTableMetadataUtil.convertMetadataToRecords and HoodieBackedTableMetadataWriter of Apache Hudi 0.15; spec
"Metadata table", section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudi_format.file_names import PARTITION_METADATA, parse_base_file
from hudi_format.model import join_path
from hudi_format.schema.avro import from_avro
from hudi_format.schema.meta_fields import without_meta
from hudi_format.storage.protocol import Storage
from hudi_index.metadata_table.encoding import file_records
from hudi_index.metadata_table.index_records import location_records
from hudi_index.metadata_table.keys import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX, file_group_id, shards
from hudi_timeline import metadata_config
from hudi_timeline.file_system_view.snapshot import TableSnapshot, open_snapshot
from hudi_timeline.metadata_config import FILES
from hudi_timeline.metadata_table import deltacommit, file_indexes
from hudi_timeline.metadata_table.deltacommit import GroupChange
from hudi_timeline.metadata_table.initialisation import (
    FILES_GROUP,
    epoch_ms,
    no_place,
    sharded,
)
from hudi_timeline.metadata_table.key_changes import KeyChanges, key_changes
from hudi_timeline.metadata_table.own_table import OwnTable, open_own
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.options.transaction_config import IndexConfig
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.action_metadata import CleanMetadata
from hudi_timeline.timeline.commit_metadata import CommitMetadata

_INDEXES = (BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX)


@dataclass
class Mirrored:
    """Outcome of a mirrored action.

    Attributes:
        config: the table's configuration.
        warnings: about dropped indexes, one sentence each.
    """

    config: TableConfig
    warnings: list[str] = field(default_factory=list)

    def drop(self, storage: Storage, partitions: Iterable[str], why: str) -> None:
        """Drop indexes."""
        self.config, warning = metadata_config.drop_partitions(
            storage, self.config, tuple(partitions), why=why
        )
        self.warnings += [warning] if warning else []


def mirror_write(
    snapshot: TableSnapshot, instant: str, metadata: CommitMetadata, indexes: IndexConfig
) -> Mirrored:
    """Mirror a write, or a compaction, that is about to be completed.

    Files of replaced file groups stay listed until they are cleaned; their keys leave the record index at once.

    Args:
        snapshot: the table without the write, loaded under the lock.

    Raises:
        HudiError: the write must not be completed.
    """
    out = Mirrored(snapshot.config)
    built = metadata_config.built(snapshot.config)
    if not built:
        return out
    storage = snapshot.storage
    files: dict[str, dict[str, int]] = {}
    for stat in metadata.stats:
        sizes = {stat.path: stat.file_size_in_bytes, **stat.cdc_files}
        for path, size in sizes.items():
            if path:
                partition, _, name = path.rpartition("/")
                there = files.setdefault(partition, {})
                there[name] = max(size, there.get(name, 0))
    own = open_own(storage)
    slices = own.slices(built)
    changes = {FILES: {FILES_GROUP: GroupChange(file_records(files))}}
    schema = without_meta(from_avro(text)) if (text := metadata.schema_text) else snapshot.schema
    new = file_indexes.base_files(files)
    made = {}
    if COLUMN_STATS in built:
        columns = file_indexes.indexed_columns(schema, indexes.columns)
        made[COLUMN_STATS] = file_indexes.column_stats_of(storage, new, columns)
    if BLOOM_FILTERS in built:
        made[BLOOM_FILTERS] = file_indexes.bloom_filters_of(storage, new)
    for partition, (records, why) in made.items():
        if why:
            out.drop(storage, [partition], why)
        else:
            changes[partition] = sharded_changes(slices, partition, records)
    if RECORD_INDEX in built and not metadata.compacted:
        keys = key_changes(snapshot, instant, metadata.stats, metadata.replaced, schema)
        twice = keys.ambiguous or _known_elsewhere(snapshot, own, keys)
        if twice:
            out.drop(storage, [RECORD_INDEX], no_place(twice))
        else:
            records = location_records(keys.keys, keys.group, keys.groups, epoch_ms(instant))
            changes[RECORD_INDEX] = sharded_changes(slices, RECORD_INDEX, records, keys.gone)
    deltacommit.apply(own, instant, changes, slices)
    return out


def _known_elsewhere(snapshot: TableSnapshot, own: OwnTable, changes: KeyChanges) -> str:
    """A key that comes to a file group while the index has it in another one, which keeps it; "" for none."""
    fresh = changes.keys.filter(pa.array(~changes.moved))
    if not len(fresh):
        return ""
    seen = replace(snapshot, config=metadata_config.as_completed(snapshot.config, [RECORD_INDEX]))
    found = MetadataTable.of(seen, own.snapshot).lookup(RECORD_INDEX, fresh, is_rare=True)
    return str(found.column("key")[0].as_py()) if found.num_rows else ""


def sharded_changes(
    slices: Iterable[tuple[str, str]],
    partition: str,
    records: pa.RecordBatch,
    deletes: pa.Array | None = None,
) -> dict[str, GroupChange]:
    """Changes of a partition's file groups; none of those that nothing changes in.

    Args:
        slices: partition and file id of the file groups, of other partitions too.
    """
    gone = pa.array([], pa.string()) if deletes is None else deletes
    if not records.num_rows and not len(gone):
        return {}
    count = len({file_id for p, file_id in slices if p == partition}) or 1
    places = shards(gone, count)
    out = {}
    for number, content in enumerate(sharded(records, count)):
        left = tuple(gone.filter(pa.array(places == number)).to_pylist())
        if content.num_rows or left:
            out[file_group_id(partition, number)] = GroupChange(content if content.num_rows else None, left)
    return out


def mirror_clean(storage: Storage, config: TableConfig, metadata: CleanMetadata) -> None:
    """Mirror a cleaning whose files are deleted; errors as `mirror_write`."""
    built = metadata_config.built(config)
    if not built:
        return
    deleted = {p: did.deleted for p, did in metadata.partitions.items() if did.deleted}
    gone = [p for p, did in metadata.partitions.items() if did.is_partition_deleted]
    own = open_own(storage)
    slices = own.slices(built)
    changes = {FILES: {FILES_GROUP: GroupChange(file_records({}, deleted, gone=gone))}}
    if COLUMN_STATS in built:
        struck = file_indexes.indexed_columns(open_snapshot(storage).schema, None)
        changes[COLUMN_STATS] = sharded_changes(
            slices, COLUMN_STATS, file_indexes.struck_stats(deleted, struck)
        )
    if BLOOM_FILTERS in built:
        records = file_indexes.struck_filters(deleted, metadata.start)
        changes[BLOOM_FILTERS] = sharded_changes(slices, BLOOM_FILTERS, records)
    deltacommit.apply(own, metadata.start, changes, slices)


def mirror_rollback(
    storage: Storage,
    config: TableConfig,
    rollback: str,
    target: str,
    deleted: Mapping[str, Iterable[str]],
    logs: Mapping[str, Iterable[str]],
) -> Mirrored:
    """Mirror a rollback whose files are deleted and whose command blocks are written.

    The delta commit of what is rolled back is taken back too.  Where a compaction has merged it, or a partition was
    made of a table that had it, its deleted files are struck out instead, and its indexes are dropped.

    Args:
        rollback, target: the instants.
        deleted: names of the files that were deleted, by partition.
        logs: names of log files with blocks of the target or with command blocks, by partition; what is not there
            does not count.

    Raises:
        HudiError: the rollback must not be completed.
    """
    out = Mirrored(config)
    if not metadata_config.built(config):
        return out
    own = open_own(storage)
    files: dict[str, dict[str, int]] = {}
    for partition, names in logs.items():
        for name in names:
            found = storage.info(join_path(partition, name))
            if found is not None:
                files.setdefault(partition, {})[name] = found.size
    is_merged = target <= own.last_compaction
    held = _made_with(own, target, metadata_config.built(config))
    gone = _INDEXES if is_merged else [p for p in _INDEXES if p in held]
    out.drop(storage, gone, f"the commit {target}, which was rolled back, is merged into it")
    # Log files of its slices may be those of later writes, which rollbacks of these have named.
    whole = is_merged or FILES in held
    chosen = {p: tuple(n for n in of if whole or parse_base_file(p, n) is None) for p, of in deleted.items()}
    struck = {p: names for p, names in chosen.items() if names}
    folders = [p for p in deleted if storage.info(join_path(p, PARTITION_METADATA)) is not None]
    records = file_records(files, struck, partitions=folders)
    deltacommit.apply(own, rollback, {FILES: {FILES_GROUP: GroupChange(records)}})
    if not is_merged:
        deltacommit.roll_back(own, target, rollback)
    return out


def _made_with(own: OwnTable, target: str, partitions: Iterable[str]) -> set[str]:
    """Partitions that were made while a commit was completed already, so that it has no blocks in them."""
    writes = own.timeline.completed_writes()
    told = next((i for i in own.timeline.files if i.time == target and i.completed), None)
    if told is None and writes and target > writes[0].time:
        return set()  # not completed when its writer died: what is made counts completed ones only
    touched = set() if told is None else {s.partition for s in own.snapshot.commits.get(told).stats}
    slices = own.every_slice(partitions)
    return {p for (p, _), of in slices.items() if of[0].base_instant > target} - touched
