"""The partition `files` of the metadata table: which files the table has, without listing folders.

Given: the file slices of that partition, and whose log blocks count; both are the caller's to find.

Source: HoodieBackedTableMetadata of Apache Hudi 0.15; spec "Metadata table", section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_format.errors import CorruptFileError
from hudi_format.key_spec import KeySpec
from hudi_format.log.order import BlockScope
from hudi_format.merge.custom import custom_rule
from hudi_format.merge.metadata_payload import FILES, FUNCTION
from hudi_format.model import FileSlice
from hudi_format.slice_reader import SliceMerge, read_file_slice
from hudi_format.storage import Storage

ALL_PARTITIONS = "__all_partitions__"
NOT_PARTITIONED = "."
PARTITION_LIST, FILE_LIST = 1, 2

_ENTRY = pa.struct([pa.field("size", pa.int64()), pa.field("isDeleted", pa.bool_())])
SCHEMA = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("type", pa.int32()),
        pa.field(FILES, pa.map_(pa.string(), _ENTRY)),
    ]
)


@dataclass(frozen=True, slots=True)
class TableFiles:
    """What the metadata table says that there is.

    Attributes:
        files: size in bytes by file name, by partition path; "" for a table without partitions.  Every partition
            has an entry, also one without files.
    """

    files: Mapping[str, Mapping[str, int]]


def metadata_merge(scope: BlockScope) -> SliceMerge:
    """How records of the metadata table meet."""
    return SliceMerge(custom_rule(FUNCTION, ("key",)), None, scope, KeySpec(("key",), (), "NON_PARTITION"))


def read_table_files(storage: Storage, slices: Iterable[FileSlice], scope: BlockScope) -> TableFiles:
    """The table's files.

    Args:
        storage: the metadata table's.
        slices: of its partition `files`.
        scope: whose log blocks count: instants that are completed in the metadata table and not pending in the
            table itself.

    Raises:
        MissingFileError, CorruptFileError: a file of the slices is gone or damaged; or the records contradict
            each other.
    """
    partitions: set[str] = set()
    lists: dict[str, dict[str, int]] = {}
    for file_slice in slices:
        for batch in read_file_slice(storage, file_slice, metadata_merge(scope), SCHEMA):
            for row in batch.to_pylist():
                live = {n: e["size"] for n, e in row[FILES] or () if not e["isDeleted"]}
                if row["type"] == PARTITION_LIST:
                    partitions |= set(live)
                elif row["type"] == FILE_LIST:
                    lists[row["key"]] = live
    strangers = {p for p, files in lists.items() if files} - partitions
    if strangers:
        raise CorruptFileError(
            f"the metadata table has files of the partition {min(strangers)!r}, which it does not list",
            table=storage.uri,
            remedy="delete it: set hoodie.metadata.enable=false for a write, or use Apache Hudi's "
            "delete_metadata_table.",
        )
    return TableFiles({("" if p == NOT_PARTITIONED else p): lists.get(p, {}) for p in sorted(partitions)})
