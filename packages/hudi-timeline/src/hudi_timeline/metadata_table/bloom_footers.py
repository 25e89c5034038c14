"""Footers of base files by the metadata table, for look-ups of BLOOM and GLOBAL_BLOOM.

Where `hoodie.bloom.index.use.metadata` asks for it, key ranges come from `column_stats` and bloom filters from
`bloom_filters`; what is not there, or cannot be read, from the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.model import BaseFile
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_index.lookup import LookupTask
from hudi_index.metadata_footers import MetadataFooters
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table import records as r
from hudi_index.metadata_table.merger import STATS
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.reader import UNUSABLE, MetadataTable

# Of fewer files records are looked up one by one; else all of the column are read.
_LOOKED_UP = 1000


def with_footers(
    task: LookupTask, files: Mapping[str, Sequence[BaseFile]], snapshot: TableSnapshot
) -> LookupTask:
    """The task of a look-up by bloom filters, with what the metadata table says of the files.

    Args:
        files: latest base files that keys are looked for in, by partition.
    """
    built = snapshot.config.metadata_partitions
    if not {k.COLUMN_STATS, k.BLOOM_FILTERS} & set(built):
        return task
    every = [f for of in files.values() for f in of]
    try:
        table = MetadataTable.of(snapshot)
        ranges = _ranges(table, every) if k.COLUMN_STATS in built and every else {}
        slices = table.slices(k.BLOOM_FILTERS) if k.BLOOM_FILTERS in built else ()
    except UNUSABLE as e:
        return replace(
            task, instead=f"footers are read for the index, because the metadata table cannot be: {e}"
        )
    return replace(task, footers=MetadataFooters(ranges, table.storage, slices, table.scope))


def _ranges(table: MetadataTable, files: Sequence[BaseFile]) -> dict[str, tuple[str, str]]:
    """Least and greatest record key by path, of files of which they are known."""
    keys = [k.column_stats_key(RECORD_KEY, f.partition, f.name) for f in files]
    if len(files) <= _LOOKED_UP:
        records = table.lookup(k.COLUMN_STATS, keys)
    else:
        records = table.by_prefix(k.COLUMN_STATS, [k.column_stats_prefix(RECORD_KEY)])
    if not records.num_rows:
        return {}
    rows = records.combine_chunks()
    stats = rows.column(STATS).combine_chunks()
    found = stats.take(pc.index_in(pa.array(keys, pa.string()), rows.column("key").combine_chunks()))
    low, high = r.bounds(found, pa.string())
    live = pc.fill_null(pc.invert(found.field("isDeleted")), False)
    live = pc.and_(live, pa.array(~r.may_lack_values(found, pa.string())))
    known = zip(files, low.to_pylist(), high.to_pylist(), live.to_pylist(), strict=True)
    return {f.path: (least, most) for f, least, most, is_live in known if is_live and least is not None}


__all__ = ["with_footers"]
