"""Deletes among the rows of a write on Spark, and which of others' keys they delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.merge.payloads import IS_DELETED
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_index.lookup import LookupTask
from hudi_spark.runtime.python_workers import in_workers
from hudi_spark.types import quoted


def is_delete(rows: DataFrame, task: LookupTask) -> Column:
    """Mask of deletes, equal to `record_merger.deleted_kinds`."""
    rule = task.rule
    if task.delete_all:
        return F.lit(True)
    if task.delete_field and rule.delete_fields:
        if task.delete_field not in rows.columns:
            return F.lit(False)
        text = quoted(task.delete_field).cast("string")
        return F.coalesce(text == F.lit(task.delete_marker), F.lit(False))
    out = F.lit(False)
    if IS_DELETED in rows.columns:
        out = out | F.coalesce(F.col(IS_DELETED), F.lit(False))
    if rule.delete_field and rule.delete_field in rows.columns:
        text = F.lower(quoted(rule.delete_field).cast("string"))
        out = out | F.coalesce(text == F.lit(rule.delete_marker.lower()), F.lit(False))
    return out


def deletes_among(rows: DataFrame, among: Mapping[str, pa.Array], task: LookupTask) -> DataFrame:
    """Record keys that rows delete, of those among others; arguments as `Engine.deleted_keys`."""
    keys = rows.where(is_delete(rows, task)).select(RECORD_KEY, PARTITION_PATH)
    worker = KeysAmong(dict(among), everywhere=task.is_global)
    return in_workers(keys, worker, T.StructType().add(RECORD_KEY, T.StringType()))


@dataclass(frozen=True)
class KeysAmong:
    """Worker that hands back record keys that are among others.

    Attributes:
        among: the others by partition.
        everywhere: whatever their partition is.
    """

    among: Mapping[str, pa.Array]
    everywhere: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys, paths = batch.column(0), batch.column(1)
            hit = pa.array(np.zeros(len(keys), dtype=bool))
            for partition, others in self.among.items():
                mine = pc.is_in(keys, value_set=others)
                if not self.everywhere:
                    mine = pc.and_(mine, pc.equal(paths, partition))
                hit = pc.or_(hit, mine)
            yield pa.RecordBatch.from_arrays([keys.filter(hit)], names=[RECORD_KEY])
