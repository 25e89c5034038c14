"""Initialisation of a metadata table, and of its indexes, from the files that a table has.

    folder deleted -> properties -> for each partition: logs with an empty delete block, base files, delta commit
    -> the table's properties name the partition

Until the last step nobody reads a partition, and whoever comes next begins it anew.  The caller holds the table's lock.

Source: HoodieBackedTableMetadataWriter.initializeFromFilesystem of Apache Hudi 0.15; spec "Metadata table", section 8.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from hudi_format import partition_metadata
from hudi_format.file_names import base_file_name, parse_data_file
from hudi_format.log.writer import LogWriter
from hudi_format.model import WriteStat, join_path
from hudi_format.storage.open import flush
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table.encoding import base_file_of, file_records
from hudi_index.metadata_table.index_records import location_records
from hudi_timeline import metadata_config, table_config
from hudi_timeline.concurrency.locks.provider import verify_held
from hudi_timeline.concurrency.own_files import create_if_absent
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.listing import list_table
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_config import FILES, FOLDER, KEPT, RECORD_KEY_FIELD
from hudi_timeline.metadata_table import deltacommit, file_indexes
from hudi_timeline.metadata_table.key_changes import changes_of, slice_keys
from hudi_timeline.metadata_table.own_table import EMPTY_TABLE, FIRST_INITIALISATION, OwnTable, open_own
from hudi_timeline.options.transaction_config import IndexConfig
from hudi_timeline.table_config import PROPERTIES_FILE, TableConfig
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import (
    COMPLETED,
    DELTA_COMMIT,
    INFLIGHT,
    INSTANT_DIGITS,
    REQUESTED,
    instant_path,
)

FILES_GROUP = k.file_group_id(FILES, 0)
OPERATION = "BULK_INSERT"
_FIRST_LOG_TOKEN = "0-0-0"
_BASE_TOKEN = "0-0-0"
# What Apache Hudi takes an entry of the record index for, in bytes.
_LOCATION_BYTES = 48

Listed = Mapping[str, Mapping[str, int]]
"""Sizes in bytes of files by name, by partition path."""


def can_initialise(snapshot: TableSnapshot) -> bool:
    """Whether nothing is pending, so that the files of storage are those of completed instants."""
    return all(i.completed for i in snapshot.timeline.instants)


def initialise(
    snapshot: TableSnapshot, partitions: Collection[str], indexes: IndexConfig
) -> tuple[TableConfig, tuple[str, ...]]:
    """Make partitions of the metadata table that there are not, and the metadata table itself.

    Args:
        snapshot: loaded under the lock, with nothing pending; see `can_initialise`.
        partitions: of `KEPT`; `files` is always made.

    Returns:
        the table's configuration afterwards, and what the user should know, one sentence each: why a partition could
        not be made, and what its readers need.

    Raises:
        ConcurrentWriterError, LockError: another process, without this lock, makes it at the same time.
        HudiError: what there is of it is not used by anybody.
    """
    storage, config = snapshot.storage, snapshot.config
    others = snapshot.timeline.overwritten
    listed = {
        p: {e.name: e.size for e in entries if (f := parse_data_file(p, e.name)) and f.instant not in others}
        for p, entries in list_table(storage, config).files.items()
    }
    if FILES not in config.metadata_partitions:
        verify_held()  # another process may have made one since
        storage.delete_dir(FOLDER)
        own = metadata_config.own_storage(storage)
        for folder in (".temp", ".aux", ".schema", "archived"):
            own.make_dir(f".hoodie/{folder}")
        content = table_config.render(_properties(config), "Properties saved on")
        deltacommit.create_or_same(own, PROPERTIES_FILE, content)
        config = _made(snapshot, config, FILES, file_records(listed), 1)
        flush(own, [PROPERTIES_FILE, ""], written=False)
    said: list[str] = []
    for partition in KEPT[1:]:
        if partition not in partitions or partition in config.metadata_partitions:
            continue
        records, groups, why = index_content(snapshot, partition, listed, indexes)
        if why:
            said.append(f"{partition} of the metadata table is not made, because {why}")
        else:
            config = _made(snapshot, config, partition, records, groups)
            if partition == k.COLUMN_STATS:
                said.append(file_indexes.unlisted_note(snapshot.schema, indexes.columns))
    return config, tuple(filter(None, said))


def index_content(
    snapshot: TableSnapshot, partition: str, listed: Listed, indexes: IndexConfig
) -> tuple[pa.RecordBatch, int, str]:
    """Records of an index, its number of file groups, and why it cannot be made, or ""."""
    storage, files = snapshot.storage, file_indexes.base_files(listed)
    if partition == k.COLUMN_STATS:
        schema = snapshot.schema if files else pa.schema([])
        columns = file_indexes.indexed_columns(schema, indexes.columns)
        records, why = file_indexes.column_stats_of(storage, files, columns)
        return records, indexes.column_stats_groups, why
    if partition == k.BLOOM_FILTERS:
        records, why = file_indexes.bloom_filters_of(storage, files)
        return records, indexes.bloom_filters_groups, why
    return _locations(snapshot, indexes)


def no_place(key: str) -> str:
    """Why `record_index` cannot be kept; "" without a key."""
    return (
        f"the record key {key!r} is in several file groups, and the record index has one place for each"
        if key
        else ""
    )


def _locations(snapshot: TableSnapshot, indexes: IndexConfig) -> tuple[pa.RecordBatch, int, str]:
    slices = newest_slices_of(snapshot)
    found = slice_keys(snapshot, slices)
    changes = changes_of([(s.partition, s.file_id) for s in slices], found, [])
    times = [epoch_ms(s.base_instant) for s in slices]
    records = location_records(changes.keys, changes.group, changes.groups, times)
    return records, index_groups(records.num_rows, indexes), no_place(changes.ambiguous)


def index_groups(records: int, indexes: IndexConfig) -> int:
    """Number of file groups of a record index, as Apache Hudi 0.15 chooses it."""
    in_one = max(1, indexes.record_index_bytes // _LOCATION_BYTES)
    wanted = math.ceil(math.ceil(records * indexes.record_index_growth) / in_one)
    return min(max(wanted, indexes.record_index_least), indexes.record_index_most)


def epoch_ms(instant: str) -> int:
    """Milliseconds of an instant in this process's zone, as in Apache Hudi; 0 for another text."""
    try:
        text = instant[:INSTANT_DIGITS].ljust(INSTANT_DIGITS, "0")
        moment = datetime.strptime(f"{text[:14]}.{text[14:]}", "%Y%m%d%H%M%S.%f")
    except ValueError:
        return 0
    return int(moment.timestamp() * 1000)


def _properties(config: TableConfig) -> dict[str, str]:
    """Content of hoodie.properties, as Apache Hudi 0.15 writes it for tables of version 6."""
    p = {
        table_config.NAME: f"{config.name}_metadata",
        table_config.TYPE: "MERGE_ON_READ",
        table_config.VERSION: str(config.version),
        table_config.LAYOUT_VERSION: str(config.version.layout),
        table_config.BASE_FILE_FORMAT: "HFILE",
        table_config.RECORD_KEY_FIELDS: RECORD_KEY_FIELD,
        table_config.POPULATE_META_FIELDS: "false",
        table_config.KEYGEN_CLASS: "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
        table_config.PAYLOAD_CLASS: "org.apache.hudi.metadata.HoodieMetadataPayload",
        table_config.OLD_MERGE_STRATEGY: table_config.EVENT_TIME_STRATEGY,
        table_config.ARCHIVE_FOLDER: "archived",
        table_config.DROP_PARTITION_COLUMNS: "false",
    }
    return {**p, table_config.CHECKSUM: table_config.checksum(p)}


def _made(
    snapshot: TableSnapshot, config: TableConfig, partition: str, records: pa.RecordBatch, groups: int
) -> TableConfig:
    """Make one partition; returns the table's configuration that names it."""
    own = open_own(snapshot.storage)
    last = max((i.time for i in snapshot.timeline.instants), default=EMPTY_TABLE)
    known = {f.time for f in own.timeline.files}
    done = {f.time for f in own.timeline.files if f.state == COMPLETED}
    for file in own.timeline.files:
        if file.comparable_action == DELTA_COMMIT and file.time not in done and _is_initial(file.time):
            own.storage.delete(file.path)  # of an initialisation that died; its folder is deleted below
    number = FIRST_INITIALISATION
    while f"{last}{number:03d}" in known:
        number += 1
    verify_held()
    write_partition(own, partition, f"{last}{number:03d}", records, groups)
    verify_held()  # what was listed may be gone, or more than that be there
    named = sorted({*config.metadata_partitions, partition})
    return table_config.update(snapshot.storage, metadata_config.partition_properties(named))


def _is_initial(time: str) -> bool:
    """Whether a metadata table's instant is that of an initialisation."""
    return len(time) in (len(EMPTY_TABLE) + 3, INSTANT_DIGITS + 3) and int(time[-3:]) >= FIRST_INITIALISATION


def write_partition(
    own: OwnTable, partition: str, instant: str, records: pa.RecordBatch, groups: int
) -> None:
    """Make a partition anew: its file groups, their base files, and the delta commit of both."""
    storage, config = own.storage, own.snapshot.config
    verify_held()
    storage.delete_dir(partition)
    partition_metadata.write_if_absent(storage, partition, instant)
    stats = []
    for number, content in enumerate(sharded(records, groups)):
        file_id = k.file_group_id(partition, number)
        with LogWriter(
            storage, partition, file_id, instant, instant=instant, schema="", write_token=_FIRST_LOG_TOKEN
        ) as writer:
            writer.append_deletes(pa.array([], pa.string()))
            written = [w.file.path for w in writer.close()]
        if content.num_rows:
            name = base_file_name(file_id, _BASE_TOKEN, instant, "hfile")
            data = base_file_of(content)
            deltacommit.create_or_same(storage, join_path(partition, name), data)
            written.append(join_path(partition, name))
            stats.append(base_file_stat(partition, file_id, name, content.num_rows, len(data)))
        flush(storage, written)
    create_if_absent(storage, instant_path(config, instant, DELTA_COMMIT, REQUESTED), b"")
    inflight = CommitMetadata(operation=OPERATION).to_json()
    deltacommit.create_or_same(storage, instant_path(config, instant, DELTA_COMMIT, INFLIGHT), inflight)
    deltacommit.complete(own, instant, stats, OPERATION)


def sharded(records: pa.RecordBatch, groups: int) -> Sequence[pa.RecordBatch]:
    """Records of each file group of a partition."""
    if groups == 1:
        return [records]
    shards = k.shards(records.column("key"), groups)
    return [records.filter(pa.array(shards == n)) for n in range(groups)]


def base_file_stat(partition: str, file_id: str, name: str, rows: int, size: int) -> WriteStat:
    """Statistic of a new base file."""
    return WriteStat(
        file_id,
        join_path(partition, name),
        partition,
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size,
        file_size_in_bytes=size,
    )
