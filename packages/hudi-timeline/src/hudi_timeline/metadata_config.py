"""Properties of metadata tables, and removal of those that are not kept.

A stale metadata table gives other engines wrong file listings, so before the first change to a table whose metadata
table is not kept (`hudi_timeline.metadata_table.upkeep`) its two properties are cleared, which switches it off for
every reader, and then its folder is deleted.  A crash between the two leaves a folder that nobody reads; the next
write removes it.  Apache Hudi builds the metadata table anew at its next write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hudi_format.keygen.key_generator import KeySpec
from hudi_format.storage.open import open_beside
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.concurrency.locks.provider import verify_held
from hudi_timeline.table_config import (
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    TableConfig,
)

FOLDER = ".hoodie/metadata"
FILES = "files"
# As `hudi_index.metadata_table.keys` has them, which opening a table does not import.
_KEY_INDEX = "record_index"
KEPT = (FILES, "bloom_filters", "column_stats", _KEY_INDEX)
"""Partitions that are kept up to date, in the order in which they are made."""
RECORD_KEY_FIELD = "key"
_PAYLOAD = "HoodieMetadataPayload"
_KEY_GENERATORS = ("HoodieTableMetadataKeyGenerator", "HOODIE_TABLE_METADATA")


def key_spec(config: TableConfig) -> KeySpec:
    """Key settings of a table's records, without partition paths, also of metadata tables.

    What paths are made of is a write's to say: hoodie.properties does not keep all of it.
    """
    return KeySpec((RECORD_KEY_FIELD,), (), "NON_PARTITION") if is_one(config) else config.record_key_spec()


def is_one(config: TableConfig) -> bool:
    """Whether the table is itself a metadata table."""
    return config.base_file_format == "HFILE" and (
        (config.payload_class or "").endswith(f".{_PAYLOAD}")
        or (config.keygen_class or "").rpartition(".")[2] in _KEY_GENERATORS
    )


def built(config: TableConfig) -> tuple[str, ...]:
    """Metadata partitions that are built or being built."""
    return tuple(dict.fromkeys((*config.metadata_partitions, *config.metadata_partitions_inflight)))


def has_key_index(config: TableConfig) -> bool:
    """Whether a record index is built or being built."""
    return _KEY_INDEX in built(config)


def own_storage(storage: Storage) -> Storage:
    """Storage of a table's metadata table."""
    return open_beside(storage, f"{storage.uri}/{FOLDER}")


def partition_properties(complete: Iterable[str] = (), inflight: Iterable[str] = ()) -> dict[str, str]:
    """Properties that name metadata partitions: complete ones, and those being built."""
    return {METADATA_PARTITIONS: ",".join(complete), METADATA_PARTITIONS_INFLIGHT: ",".join(inflight)}


def as_completed(config: TableConfig, partitions: Collection[str]) -> TableConfig:
    """The configuration as if metadata partitions that are being built were complete."""
    complete = sorted({*config.metadata_partitions, *partitions})
    return TableConfig({**config.properties, METADATA_PARTITIONS: ",".join(complete)})


def drop(
    storage: Storage, config: TableConfig, *, is_gone: bool = False, why: str = ""
) -> tuple[TableConfig, str]:
    """Remove the metadata table, under the table's lock and after the feature gate.

    Args:
        is_gone: whether its folder is known not to be there.
        why: the reason, for the user.

    Returns:
        the table's configuration afterwards, and a sentence for the user ("" where there was none).
    """
    partitions = built(config)
    folder = None if is_gone else storage.info(FOLDER)
    if not partitions and folder is None:
        return config, ""
    if partitions:
        config = table_config.update(storage, partition_properties())
    if folder is not None:
        verify_held()  # who has the lock meanwhile may have made it anew
        storage.delete_dir(FOLDER)
    what = f" ({', '.join(partitions)})" if partitions else ""
    return config, (
        f"the metadata table{what} was removed, because {why or 'this version does not keep it up to date'}; "
        "Apache Hudi builds it again at its next write" + _about_savepoints(storage, config)
    )


def drop_partitions(
    storage: Storage, config: TableConfig, partitions: Collection[str], *, why: str
) -> tuple[TableConfig, str]:
    """Remove partitions of the metadata table, under the table's lock; results as of `drop`."""
    gone = sorted(set(partitions) & set(built(config)))
    if not gone:
        return config, ""
    left = [
        [p for p in of if p not in gone]
        for of in (config.metadata_partitions, config.metadata_partitions_inflight)
    ]
    config = table_config.update(storage, partition_properties(*left))
    for partition in gone:
        verify_held()
        storage.delete_dir(f"{FOLDER}/{partition}")
    return config, f"{', '.join(gone)} of the metadata table was removed, because {why}"


def _about_savepoints(storage: Storage, config: TableConfig) -> str:
    """Warning about savepoints older than the metadata table that Apache Hudi will build."""
    saved = sorted(
        e.name.removesuffix(".savepoint").partition("_")[0]
        for e in storage.list(config.timeline_folder)
        if e.name.endswith(".savepoint")
    )
    if not saved:
        return ""
    return (
        f". There are savepoints ({', '.join(saved)}): once Apache Hudi has built it, its own restore to one of them "
        "stops half-way with a HoodieMetadataException; then delete .hoodie/metadata and run it again, or restore "
        "with this package (`restore` of HudiTable, `hudi restore`), before Apache Hudi writes next"
    )
