"""Keys, file groups and shards of the metadata table's partitions.

    partition           key                                        type  file groups
    files               __all_partitions__, or a partition (`.`)    1, 2  files-0000-0
    column_stats        column id + partition id + file id          3     col-stats-NNNN-0
    bloom_filters       partition id + file id                      4     bloom-filters-NNNN-0
    record_index        the record key                              5     record-index-NNNN-0
    partition_stats     column id + partition id                    6     partition-stats-NNNN-0
    secondary_index_X   escaped value `$` escaped record key        7     secondary-index-X-NNNN-0
    expr_index_X        as column_stats; as partition_stats with    3, 6  expr-index-X-NNNN-0
                        the id of `__partition_stat__` in between

Ids are those of `hudi_index.hashing.name_ids`.  Which file group of a partition a key is in, its shard, is told by
the key's hash and the number of groups, which is the number of them that are there.

Source: MetadataPartitionType, HoodieMetadataPayload, HoodieTableMetadataUtil and SecondaryIndexKeyUtils of Apache
Hudi 0.15 and 1.x; spec "Metadata table", section 2, and "Bloom filters and hashes", section 9.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import CorruptFileError
from hudi_index.hashing.java import java_hash
from hudi_index.hashing.name_ids import file_name_id, name_id

FILES = "files"
COLUMN_STATS = "column_stats"
BLOOM_FILTERS = "bloom_filters"
RECORD_INDEX = "record_index"
PARTITION_STATS = "partition_stats"
SECONDARY_INDEX = "secondary_index_"
EXPR_INDEX = "expr_index_"
"""Partition names; of the last two, what they begin with."""

ALL_PARTITIONS = "__all_partitions__"
NOT_PARTITIONED = "."

PARTITION_LIST, FILE_LIST, STATS, BLOOM, LOCATION, STATS_OF_PARTITION, SECONDARY = range(1, 8)
"""Values of a record's field `type`."""

_PREFIXES = {
    FILES: "files-",
    COLUMN_STATS: "col-stats-",
    BLOOM_FILTERS: "bloom-filters-",
    RECORD_INDEX: "record-index-",
    PARTITION_STATS: "partition-stats-",
}
_ESCAPED = re.compile(r"[\\$\0]")
_NO_VALUE = "\0"


def identifier(partition: str) -> str:
    """Identifier of a data partition in keys and lists: its path, `.` for the empty one."""
    return partition or NOT_PARTITIONED


def partition_id(partition: str) -> str:
    """Id of a data partition, by its path."""
    return name_id(identifier(partition))


def column_stats_key(column: str, partition: str, file_name: str) -> str:
    """Key of a column's statistics in a file; `partition` is the path of the file's folder."""
    return column_stats_prefix(column, partition) + file_name_id(file_name)


def column_stats_prefix(column: str, partition: str | None = None) -> str:
    """Beginning of the keys of a column, of all partitions or of one."""
    return name_id(column) + ("" if partition is None else name_id(identifier(partition)))


def bloom_filter_key(partition: str, file_name: str) -> str:
    """Key of a base file's bloom filter."""
    return name_id(identifier(partition)) + file_name_id(file_name)


def partition_stats_key(column: str, partition: str) -> str:
    """Key of a column's statistics in a partition."""
    return name_id(column) + name_id(identifier(partition))


def secondary_key(value: str | None, record_key: str) -> str:
    """Key of a secondary index entry: a column's value as text, and a record key with it."""
    return secondary_prefix(value) + _escaped(record_key)


def secondary_prefix(value: str | None) -> str:
    """Beginning of the keys of a value, the separator included."""
    return (_NO_VALUE if value is None else _escaped(value)) + "$"


def split_secondary_key(key: str) -> tuple[str | None, str]:
    """Value and record key of a secondary index entry.

    Raises:
        CorruptFileError: a key without a separator.
    """
    at = _separator(key)
    if at < 0:
        raise CorruptFileError(f"the secondary index has the key {key!r}, which has no separator")
    value = None if key[:at] == _NO_VALUE else _plain(key[:at])
    return value, _plain(key[at + 1 :])


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda m: "\\" + m[0], text)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _separator(key: str) -> int:
    """Position of the first separator that is not escaped; -1 for none."""
    found = re.match(r"(?:[^\\$]|\\.)*\$", key, re.DOTALL)
    return -1 if found is None else found.end() - 1


def file_id_prefix(partition: str) -> str:
    """Common beginning of the file ids of a metadata partition.

    Raises:
        ValueError: a partition that there is not.
    """
    if partition in _PREFIXES:
        return _PREFIXES[partition]
    if partition.startswith((SECONDARY_INDEX, EXPR_INDEX)):
        return partition.replace("_", "-") + "-"
    raise ValueError(f"{partition!r} is no partition of a metadata table")


def file_group_id(partition: str, shard: int) -> str:
    """File id of a metadata partition's file group."""
    return f"{file_id_prefix(partition)}{shard:04d}-0"


def shard_of(partition: str, file_id: str) -> int:
    """Shard of a file group.

    Raises:
        CorruptFileError: a file id that is none of the partition's.
    """
    prefix = file_id_prefix(partition)
    number = file_id.removeprefix(prefix).removesuffix("-0")
    if not file_id.startswith(prefix) or not re.fullmatch("[0-9]{4,9}", number):
        raise CorruptFileError(
            f"the partition {partition} of the metadata table has the file group {file_id!r}"
        )
    return int(number)


def shards(keys: pa.Array | pa.ChunkedArray, count: int) -> np.ndarray:
    """Shard (int64) of each key in a partition of `count` file groups; keys are not null.

    Of a secondary index, pass what `sharded_part` gives.
    """
    hashes = java_hash(keys).to_numpy(zero_copy_only=False).astype(np.int32)
    # Java's abs of the least int is itself, and its remainder has the sign of what is divided.
    positive = np.abs(hashes.astype(np.int64))
    positive[hashes == np.iinfo(np.int32).min] = np.iinfo(np.int32).min
    found: np.ndarray = np.abs(np.fmod(positive, count))
    return found


def sharded_part(keys: pa.Array, *, by_value: bool) -> pa.Array:
    """Part of secondary index keys that tells their shards.

    Args:
        by_value: the value alone does (index version 2, table version 9), else the whole key.
    """
    if not by_value:
        return keys
    return pa.array([k[: _separator(k) + 1] for k in keys.to_pylist()], pa.string())


def sorted_keys(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Distinct keys in the order of HFiles: by unsigned bytes."""
    one = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    one = pc.unique(one.drop_null())
    return one.take(pc.sort_indices(one))
