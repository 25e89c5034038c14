"""Version check on Spark: prepped rows whose record in a slice with logs is another by now.

The slices are dealt out to as many tasks as run side by side.  A task gets key and version of the rows that stand in
its slices, reads the merged records of these, and hands back how many rows of each are not among them: no row passes
through the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.file_slice.record_versions import LoggedSlices
from hudi_format.schema.meta_fields import COMMIT_SEQNO, FILE_NAME, PARTITION_PATH, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.tagging import rows_by_code
from hudi_spark.runtime.python_workers import in_workers
from hudi_spark.writing.bucket_partitioner import SLOT, slots, small_frame

# File id of the group that a row says to stand in.
GROUP = "_hudi_group"
_CHANGED = "_hudi_changed"
_SLOTS = (
    T.StructType().add(PARTITION_PATH, T.StringType()).add(GROUP, T.StringType()).add(SLOT, T.IntegerType())
)
_COUNTS = (
    T.StructType().add(PARTITION_PATH, T.StringType()).add(GROUP, T.StringType()).add(_CHANGED, T.LongType())
)


def changed_records(
    spark: SparkSession, rows: DataFrame, storage: Storage, slices: LoggedSlices, tasks: int
) -> DataFrame:
    """Number of rows that are not the merged records of their keys, by file group.

    Args:
        rows: with record key, partition path, `_hoodie_commit_seqno` and `_hoodie_file_name`; only those in a group of
            `slices` count.
    """
    number = slots(tasks)
    largest = sorted(slices.slices, key=lambda g: -slices.slices[g].bytes)
    dealt = small_frame(spark, ((*g, number[n % tasks]) for n, g in enumerate(largest)), _SLOTS)
    stated = rows.select(
        RECORD_KEY, COMMIT_SEQNO, PARTITION_PATH, F.substring_index(FILE_NAME, "_", 1).alias(GROUP)
    )
    sent = stated.join(F.broadcast(dealt), [PARTITION_PATH, GROUP]).repartition(tasks, SLOT)
    return in_workers(sent, CountChanged(storage, slices), _COUNTS)


@dataclass(frozen=True)
class CountChanged:
    """Worker that compares the rows of its task with the records of their slices."""

    storage: Storage
    slices: LoggedSlices

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [b for b in batches if b.num_rows]
        if not parts:
            return
        rows = pa.Table.from_batches(parts)
        paths, ids = (rows.column(n).combine_chunks().dictionary_encode() for n in (PARTITION_PATH, GROUP))
        of_path, of_id = (a.indices.to_numpy(zero_copy_only=False).astype(np.int64) for a in (paths, ids))
        pairs, codes = np.unique(of_path * len(ids.dictionary) + of_id, return_inverse=True)
        stated = rows.select([RECORD_KEY, COMMIT_SEQNO])
        found = []
        for pair, mine in zip(pairs.tolist(), rows_by_code(codes, len(pairs)), strict=True):
            path, file_id = divmod(pair, len(ids.dictionary))
            group = (paths.dictionary[path].as_py(), ids.dictionary[file_id].as_py())
            kept = self.slices.unchanged(self.storage, group, stated.take(pa.array(mine)))
            found.append((*group, int((~kept).sum())))
        columns = [pa.array(c) for c in zip(*found, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, names=_COUNTS.names)
