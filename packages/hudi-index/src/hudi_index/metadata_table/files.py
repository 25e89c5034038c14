"""Partition `files` of the metadata table: file listings without folder listings.

Given: the file slices of that partition, and whose log blocks count; both are the caller's to find.

Source: HoodieBackedTableMetadata of Apache Hudi 0.15; spec "Metadata table", section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import CorruptFileError
from hudi_format.file_names import META_DIR
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.log.scanner import BlockScope
from hudi_format.merge.user_merger import custom_rule
from hudi_format.model import FileSlice
from hudi_format.storage.protocol import Storage
from hudi_format.storage.safe_path import is_plain
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table.keys import ALL_PARTITIONS, FILE_LIST, NOT_PARTITIONED, PARTITION_LIST
from hudi_index.metadata_table.merger import FILES, FUNCTION
from hudi_index.metadata_table.records import schema_of

SCHEMA = schema_of(k.FILES)
ENTRIES = pa.schema([("partition", pa.string()), ("name", pa.string()), ("size", pa.int64())])


@dataclass(frozen=True, slots=True, eq=False)
class TableFiles:
    """Partitions and files in the metadata table.

    Attributes:
        partitions: paths, sorted, also of partitions without files; "" for a table without partitions.
        entries: one row for each file: columns as `ENTRIES`, sizes in bytes.
    """

    partitions: tuple[str, ...]
    entries: pa.Table

    @property
    def files(self) -> Mapping[str, Mapping[str, int]]:
        """File sizes by name, per partition path."""
        out: dict[str, dict[str, int]] = {p: {} for p in self.partitions}
        for partition, name, size in zip(*(c.to_pylist() for c in self.entries.columns), strict=True):
            out[partition][name] = size
        return out


def metadata_merge(scope: BlockScope) -> SliceMerge:
    """Merge settings for records of the metadata table."""
    return SliceMerge(custom_rule(FUNCTION, ("key",)), None, scope, KeySpec(("key",), (), "NON_PARTITION"))


def read_table_files(
    storage: Storage,
    slices: Iterable[FileSlice],
    scope: BlockScope,
    partitions: Iterable[str] | None = None,
) -> TableFiles:
    """Files of the table, by partition.

    Args:
        storage: the metadata table's.
        slices: of its partition `files`.
        scope: whose log blocks count: instants that are completed in the metadata table and not pending in the
            table itself.
        partitions: paths of those that are wanted, whose records alone are looked up; None for all.

    Raises:
        MissingFileError, CorruptFileError: a file of the slices is gone or damaged; or the records contradict
            each other.
    """
    if partitions is None:
        return _read(storage, slices, scope, None)
    wanted = set(partitions)
    found = read_partitions_and_files(storage, slices, scope, wanted)
    return TableFiles(tuple(p for p in found.partitions if p in wanted), found.entries)


def read_partitions_and_files(
    storage: Storage, slices: Iterable[FileSlice], scope: BlockScope, partitions: Iterable[str]
) -> TableFiles:
    """All partitions, and the files of some; arguments and errors as of `read_table_files`."""
    return _read(storage, slices, scope, [ALL_PARTITIONS, *(p or NOT_PARTITIONED for p in partitions)])


def _read(
    storage: Storage, slices: Iterable[FileSlice], scope: BlockScope, keys: Sequence[str] | None
) -> TableFiles:
    partitions: set[str] = set()
    listed: set[str] = set()
    parts: list[pa.Table] = []
    for file_slice in slices:
        for batch in read_file_slice(storage, file_slice, metadata_merge(scope), SCHEMA, keys=keys):
            rows = batch.filter(batch.column(FILES).is_valid())
            kinds = rows.column("type")
            _check_lists(rows.column(FILES), storage.uri)
            for row in rows.filter(pc.equal(kinds, PARTITION_LIST)).column(FILES).to_pylist():
                partitions |= {n for n, e in row if not e["isDeleted"]}
            part = _entries(rows.filter(pc.equal(kinds, FILE_LIST)))
            if part.num_rows:
                _check_names(part.column("name"), storage.uri)
                parts.append(part)
                listed |= set(pc.unique(part.column("partition")).to_pylist())
    strangers = listed - partitions
    if strangers:
        found = f"the metadata table has files of the unlisted partition {min(strangers)!r}"
        raise _contradicts(found, storage.uri)
    for partition in partitions - {NOT_PARTITIONED}:
        if not is_plain(partition) or partition.partition("/")[0] == META_DIR:
            raise _contradicts(f"the metadata table lists the partition {partition!r}", storage.uri)
    entries = pa.concat_tables(parts) if parts else ENTRIES.empty_table()
    if NOT_PARTITIONED in partitions:
        place = pc.equal(entries.column("partition"), NOT_PARTITIONED)
        entries = entries.set_column(0, ENTRIES.field(0), pc.if_else(place, "", entries.column("partition")))
    return TableFiles(tuple(sorted("" if p == NOT_PARTITIONED else p for p in partitions)), entries)


def _check_lists(lists: pa.MapArray, table: str) -> None:
    """Check that every entry has both values, size and deletion flag."""
    ends = lists.offsets
    stats = lists.items[ends[0].as_py() : ends[-1].as_py()] if len(lists) else lists.items[:0]
    if stats.null_count or any(stats.field(n).null_count for n in range(stats.type.num_fields)):
        raise _contradicts("the metadata table has a file entry without size or state", table)


def _check_names(names: pa.ChunkedArray, table: str) -> None:
    if pc.any(pc.match_substring_regex(names, r"[/\x00]|^\.{0,2}$|\\")).as_py():
        raise _contradicts("the metadata table has a file entry with an invalid name", table)


def _contradicts(found: str, table: str) -> CorruptFileError:
    return CorruptFileError(
        found,
        table=table,
        remedy="delete it: set hoodie.metadata.enable=false for a write, or use Apache Hudi's delete_metadata_table.",
    )


def _entries(rows: pa.RecordBatch) -> pa.Table:
    """Existing files of file lists, one row each."""
    lists = rows.column(FILES)
    ends = lists.offsets.to_numpy()
    at = slice(int(ends[0]), int(ends[-1])) if len(ends) else slice(0, 0)
    names, stats = lists.keys[at], lists.items[at]
    codes = np.repeat(np.arange(rows.num_rows), np.diff(ends))
    size, deleted = stats.field("size"), stats.field("isDeleted")
    columns = [rows.column("key").take(pa.array(codes)), names, size]
    return pa.table(columns, schema=ENTRIES).filter(pc.invert(deleted))
