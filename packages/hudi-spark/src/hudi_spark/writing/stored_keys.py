"""Record keys of base files, with their file groups.

Spark's own scan of the two meta columns where it has a file system for the table, else Python workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.keygen.key_generator import KeySpec
from hudi_format.model import BaseFile
from hudi_format.parquet.reader import read_keys
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_spark.reading.parquet_scan import base_files, lacks_file_system
from hudi_spark.runtime.python_workers import in_groups

FILE_ID = "_hudi_file_id"
_SCHEMA = T.StructType([T.StructField(n, T.StringType()) for n in (RECORD_KEY, PARTITION_PATH, FILE_ID)])
_FILES_A_TASK = 8


def stored_keys(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[BaseFile],
    hadoop: Mapping[str, str] | None = None,
    virtual: KeySpec | None = None,
) -> DataFrame:
    """Record key, partition path and file name or id (see `file_id`) of each row.

    Args:
        virtual: makes the keys of their columns, where the files hold none.
    """
    if virtual is not None:
        return _by_workers(spark, storage, files, virtual)
    try:
        rows = base_files(spark, storage, [f.path for f in files], T.StructType(_SCHEMA.fields[:2]), hadoop)
    except (Py4JJavaError, PySparkException) as e:
        if not lacks_file_system(e):
            raise
        return _by_workers(spark, storage, files)
    return rows.select(RECORD_KEY, PARTITION_PATH, F.col("_metadata.file_name").alias(FILE_ID))


def _by_workers(
    spark: SparkSession, storage: Storage, files: Sequence[BaseFile], virtual: KeySpec | None = None
) -> DataFrame:
    groups = tuple(tuple(files[n : n + _FILES_A_TASK]) for n in range(0, len(files), _FILES_A_TASK))
    return in_groups(spark, groups, partial(_keys_of, storage, virtual), _SCHEMA)


def file_id() -> Column:
    """File id from `FILE_ID` of `stored_keys`; computed only for rows left after a join."""
    return F.substring_index(F.col(FILE_ID), "_", 1).alias(FILE_ID)


def _keys_of(storage: Storage, virtual: KeySpec | None, file: BaseFile) -> Iterator[pa.RecordBatch]:
    for keys in read_keys(storage, file.path, virtual, size=file.size).chunks:
        n = len(keys)
        columns = [keys, pa.repeat(file.partition, n), pa.repeat(file.file_id, n)]
        yield pa.RecordBatch.from_arrays(columns, names=_SCHEMA.names)
