"""Initialisation of a metadata table from the files that a table has.

    folder deleted -> properties -> partition `files`: log with an empty delete block, base file, delta commit
    -> the table's properties name the partition

Until the last step nobody reads it, and whoever comes next begins anew.  The caller holds the table's lock.

Source: HoodieBackedTableMetadataWriter.initializeFromFilesystem of Apache Hudi 0.15; spec "Metadata table", section 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_format import partition_metadata
from hudi_format.file_names import base_file_name, parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.log.writer import LogWriter
from hudi_format.model import WriteStat, join_path
from hudi_format.storage.open import flush, open_beside
from hudi_format.storage.protocol import FileInfo
from hudi_index.metadata_table.encoding import file_records, hfile_of
from hudi_timeline import table_config
from hudi_timeline.file_system_view.listing import list_table
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_config import FILES, FOLDER, RECORD_KEY_FIELD
from hudi_timeline.metadata_table import deltacommit
from hudi_timeline.metadata_table.own_table import EMPTY_TABLE, FIRST_INITIALISATION, OwnTable, open_own
from hudi_timeline.table_config import (
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    PROPERTIES_FILE,
    TableConfig,
)
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import DELTA_COMMIT, INFLIGHT, REQUESTED, instant_path

FILES_GROUP = "files-0000-0"
OPERATION = "BULK_INSERT"
_FIRST_LOG_TOKEN = "0-0-0"
_BASE_TOKEN = "0-0-0"


def can_initialise(snapshot: TableSnapshot) -> bool:
    """Whether nothing is pending, so that the files of storage are those of completed instants."""
    return all(i.completed for i in snapshot.timeline.instants)


def initialise(snapshot: TableSnapshot) -> TableConfig:
    """Make a metadata table with the partition `files`; returns the table's new configuration.

    Args:
        snapshot: loaded under the lock, with nothing pending; see `can_initialise`.

    Raises:
        StorageError: what there is of it is not used by anybody.
    """
    storage, config = snapshot.storage, snapshot.config
    storage.delete_dir(FOLDER)
    last = max((i.time for i in snapshot.timeline.instants), default=EMPTY_TABLE)
    instant = f"{last}{FIRST_INITIALISATION:03d}"
    own = open_beside(storage, f"{storage.uri}/{FOLDER}")
    for folder in (".temp", ".aux", ".schema", "archived"):
        own.make_dir(f".hoodie/{folder}")
    own.create(PROPERTIES_FILE, table_config.render(_properties(config), "Properties saved on"))
    table = open_own(storage)
    _make_files_partition(table, instant, list_table(storage, config).files)
    flush(own, [PROPERTIES_FILE, ""], written=False)
    return table_config.update(storage, {METADATA_PARTITIONS: FILES, METADATA_PARTITIONS_INFLIGHT: ""})


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


def _make_files_partition(own: OwnTable, instant: str, listed: Mapping[str, Sequence[FileInfo]]) -> None:
    storage, config = own.storage, own.snapshot.config
    files = {
        p: {e.name: e.size for e in entries if _is_data_file(p, e.name)} for p, entries in listed.items()
    }
    records = file_records(files)
    partition_metadata.write_if_absent(storage, FILES, instant)
    with LogWriter(
        storage, FILES, FILES_GROUP, instant, instant=instant, schema="", write_token=_FIRST_LOG_TOKEN
    ) as writer:
        writer.append_deletes(pa.array([], pa.string()))
        logs = writer.close()
    name = base_file_name(FILES_GROUP, _BASE_TOKEN, instant, "hfile")
    content = hfile_of(records)
    storage.create(join_path(FILES, name), content)
    flush(storage, [*(w.file.path for w in logs), join_path(FILES, name)])
    storage.create(instant_path(config, instant, DELTA_COMMIT, REQUESTED), b"")
    inflight = CommitMetadata(operation=OPERATION).to_json()
    storage.create(instant_path(config, instant, DELTA_COMMIT, INFLIGHT), inflight)
    stat = WriteStat(
        FILES_GROUP,
        join_path(FILES, name),
        FILES,
        num_writes=records.num_rows,
        num_inserts=records.num_rows,
        total_write_bytes=len(content),
        file_size_in_bytes=len(content),
    )
    deltacommit.complete(own, instant, [stat], OPERATION)


def _is_data_file(partition: str, name: str) -> bool:
    return any(parse(partition, name) for parse in (parse_base_file, parse_log_file, parse_cdc_file))
