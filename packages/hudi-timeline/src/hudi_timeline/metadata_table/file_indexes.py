"""Index records of files: statistics of columns, and bloom filters, from their footers.

Log files have neither here: a file that `column_stats` does not know is never left out, by Apache Hudi's readers nor by
ours.

Source: HoodieTableMetadataUtil.convertMetadataToColumnStatsRecords and convertMetadataToBloomFilterRecords of Apache
Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_format.file_names import parse_base_file
from hudi_format.model import BaseFile
from hudi_format.parquet.footer import BLOOM_FILTER, BLOOM_TYPE, read_entries
from hudi_format.parquet.row_groups import read_row_groups
from hudi_format.schema.meta_fields import META_COLUMNS
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import Storage
from hudi_index.metadata_table.index_records import (
    FooterFilter,
    bloom_filter_records,
    column_stats_records,
    lacks_bounds,
    ranges_of,
)
from hudi_timeline.options.transaction_options import COLUMN_STATS_COLUMNS

THREADS = 8
PARQUET = ".parquet"
_DEFAULT_TYPE = "SIMPLE"

Columns = Mapping[str, pa.DataType]
"""Types of indexed columns by dotted path."""


def indexed_columns(schema: pa.Schema, asked: Sequence[str] | None) -> Columns:
    """Columns of `column_stats`, meta columns included.

    Args:
        schema: the table's.
        asked: as of `IndexConfig.columns`; names that the table does not have are left out.
    """
    every = {name: pa.string() for name in META_COLUMNS}
    every |= {f.name: f.type for f in schema if f.name not in every}
    if asked is None:
        return {n: t for n, t in every.items() if not pa.types.is_nested(t)}
    out = {}
    for name in dict.fromkeys((*META_COLUMNS[:1], *META_COLUMNS[2:4], *asked)):
        root, *inner = name.split(".")
        found = every.get(root)
        for part in inner:
            of = found if found is not None and pa.types.is_struct(found) else None
            found = of.field(part).type if of is not None and of.get_field_index(part) >= 0 else None
        if found is not None and not pa.types.is_nested(found):
            out[name] = found
    return out


def unlisted_note(schema: pa.Schema, asked: Sequence[str] | None) -> str:
    """Sentence about `column_stats` of some columns only; "" where it is of all.

    Source: ColumnStatsIndexSupport of Apache Hudi 0.15, which goes by the reader's own list.
    """
    if asked is None:
        return ""
    left = set(indexed_columns(schema, None)).difference(indexed_columns(schema, asked), META_COLUMNS)
    if len(schema) and not left:
        return ""
    unknown = [c for c in asked if len(schema) and schema.get_field_index(c.partition(".")[0]) < 0]
    return (
        (f"the table has no column {', '.join(unknown)}: " if unknown else "")
        + f"column_stats has bounds of {', '.join(asked)} alone: Apache Hudi's readers with data skipping leave files "
        f"with rows out where they filter by another column, unless they are given {COLUMN_STATS_COLUMNS} as well"
    )


def base_files(listed: Mapping[str, Mapping[str, int]]) -> list[BaseFile]:
    """Parquet base files among files, which are sizes by name, by partition path."""
    found = (
        parse_base_file(partition, name, size)
        for partition, names in listed.items()
        for name, size in names.items()
        if name.endswith(PARQUET)
    )
    return [f for f in found if f is not None]


def column_stats_of(
    storage: Storage, files: Sequence[BaseFile], columns: Columns
) -> tuple[pa.RecordBatch, str]:
    """Records of `column_stats` for base files, and why they cannot be kept, or "".

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: of a footer.
    """
    groups = list(side_by_side(lambda f: read_row_groups(storage, f.path, columns), files, THREADS))
    ranges = {
        (f.partition, f.name): ranges_of(found, columns) for f, found in zip(files, groups, strict=True)
    }
    lacking = (
        f"the column {column} of {f.path} has values that its records cannot have bounds of, and Apache Hudi leaves "
        "such a file out of answers"
        for f in files
        for column, found in ranges[f.partition, f.name].items()
        if lacks_bounds(found)
    )
    return column_stats_records(ranges), next(lacking, "")


def bloom_filters_of(storage: Storage, files: Sequence[BaseFile]) -> tuple[pa.RecordBatch, str]:
    """Records of `bloom_filters` for base files, and why they cannot be kept, or "".

    Raises:
        as `column_stats_of`.
    """

    def read(file: BaseFile) -> FooterFilter | None:
        entries = read_entries(storage, file.path, size=file.size)
        text = entries.values.get(BLOOM_FILTER)
        if text is None:
            return None
        return FooterFilter(entries.text(BLOOM_TYPE) or _DEFAULT_TYPE, bytes(text), file.instant)

    found = list(side_by_side(read, files, THREADS))
    filters = {(f.partition, f.name): text for f, text in zip(files, found, strict=True) if text is not None}
    lacking = (f.path for f, text in zip(files, found, strict=True) if text is None)
    why = next((f"the base file {path} has no bloom filter" for path in lacking), "")
    return bloom_filter_records(filters), why


def struck_stats(deleted: Mapping[str, Sequence[str]], columns: Columns) -> pa.RecordBatch:
    """Records of `column_stats` that strike deleted files out; names by partition path."""
    gone = {(p, n): tuple(columns) for p, names in deleted.items() for n in names if n.endswith(PARQUET)}
    return column_stats_records({}, gone)


def struck_filters(deleted: Mapping[str, Sequence[str]], instant: str) -> pa.RecordBatch:
    """Records of `bloom_filters` that strike deleted files out; names by partition path."""
    gone = {(p, n): instant for p, names in deleted.items() for n in names if n.endswith(PARQUET)}
    return bloom_filter_records({}, gone)
