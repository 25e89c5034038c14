"""Actions of a table, mirrored in the partition `files` of its metadata table.

Each has one delta commit of the same time, made before the action itself is completed, under the table's lock.

Source: HoodieTableMetadataUtil.convertMetadataToRecords of Apache Hudi 0.15; spec "Metadata table", section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_format.file_names import PARTITION_METADATA
from hudi_format.model import WriteStat, join_path
from hudi_format.storage.protocol import Storage
from hudi_index.metadata_table.encoding import file_records
from hudi_timeline import metadata_config
from hudi_timeline.metadata_config import FILES
from hudi_timeline.metadata_table import deltacommit
from hudi_timeline.metadata_table.deltacommit import GroupChange
from hudi_timeline.metadata_table.initialisation import FILES_GROUP
from hudi_timeline.metadata_table.own_table import OwnTable, open_own
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.action_metadata import CleanMetadata


def mirror_write(storage: Storage, config: TableConfig, instant: str, stats: Iterable[WriteStat]) -> None:
    """Mirror a write, or a compaction, that is about to be completed.

    Files of replaced file groups stay listed until they are cleaned.

    Args:
        stats: one for each file of the write.

    Raises:
        HudiError: the write must not be completed.
    """
    if not metadata_config.built(config):
        return
    files: dict[str, dict[str, int]] = {}
    for stat in stats:
        sizes = {stat.path: stat.file_size_in_bytes, **stat.cdc_files}
        for path, size in sizes.items():
            if path:
                partition, _, name = path.rpartition("/")
                there = files.setdefault(partition, {})
                there[name] = max(size, there.get(name, 0))
    _apply(open_own(storage), instant, files)


def mirror_clean(storage: Storage, config: TableConfig, metadata: CleanMetadata) -> None:
    """Mirror a cleaning whose files are deleted; errors as `mirror_write`."""
    if not metadata_config.built(config):
        return
    deleted = {p: did.deleted for p, did in metadata.partitions.items() if did.deleted}
    gone = [p for p, did in metadata.partitions.items() if did.is_partition_deleted]
    _apply(open_own(storage), metadata.start, {}, deleted, gone=gone)


def mirror_rollback(
    storage: Storage,
    config: TableConfig,
    rollback: str,
    target: str,
    deleted: Mapping[str, Iterable[str]],
    logs: Mapping[str, Iterable[str]],
) -> None:
    """Mirror a rollback whose files are deleted and whose command blocks are written.

    The delta commit of what is rolled back is taken back too.  Where a compaction has merged it, its deleted files are
    struck out instead.

    Args:
        rollback, target: the instants.
        deleted: names of the files that were deleted, by partition.
        logs: names of log files with blocks of the target or with command blocks, by partition; what is not there
            does not count.

    Raises:
        HudiError: the rollback must not be completed.
    """
    if not metadata_config.built(config):
        return
    own = open_own(storage)
    files: dict[str, dict[str, int]] = {}
    for partition, names in logs.items():
        for name in names:
            found = storage.info(join_path(partition, name))
            if found is not None:
                files.setdefault(partition, {})[name] = found.size
    is_merged = target <= own.last_compaction
    struck = {p: tuple(names) for p, names in deleted.items()} if is_merged else {}
    folders = [p for p in deleted if storage.info(join_path(p, PARTITION_METADATA)) is not None]
    _apply(own, rollback, files, struck, partitions=folders)
    if not is_merged:
        deltacommit.roll_back(own, target, rollback)


def _apply(
    own: OwnTable,
    instant: str,
    files: Mapping[str, Mapping[str, int]],
    deleted: Mapping[str, Iterable[str]] | None = None,
    *,
    partitions: Iterable[str] = (),
    gone: Iterable[str] = (),
) -> None:
    struck = {p: tuple(names) for p, names in (deleted or {}).items()}
    records = file_records(files, struck, partitions=partitions, gone=gone)
    deltacommit.apply(own, instant, {FILES: {FILES_GROUP: GroupChange(records)}})
