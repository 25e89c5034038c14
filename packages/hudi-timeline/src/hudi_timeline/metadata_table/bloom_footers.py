"""Footers of base files by the metadata table, for look-ups of BLOOM and GLOBAL_BLOOM.

Where `hoodie.bloom.index.use.metadata` asks for it, key ranges come from `column_stats` and bloom filters from
`bloom_filters`; what is not there, or cannot be read, from the files.

Source: HoodieBloomIndex.loadColumnRangesFromMetaIndex of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_format.model import BaseFile
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_index.lookup import LookupTask
from hudi_index.metadata_footers import MetadataFooters
from hudi_index.metadata_table import keys as k
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.reader import UNUSABLE, MetadataTable


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
    from hudi_timeline.metadata_table.data_skipping import bounds_of, stats_of  # few writes ask for them

    records, keys = stats_of(table, k.COLUMN_STATS, files, [RECORD_KEY])
    if not records.num_rows:
        return {}
    found = bounds_of(records.combine_chunks(), RECORD_KEY, keys[RECORD_KEY], pa.string(), whole=True)
    told = zip(files, found.low.to_pylist(), found.high.to_pylist(), found.known.tolist(), strict=True)
    return {f.path: (least, most) for f, least, most, is_known in told if is_known}
