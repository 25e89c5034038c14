"""Places of keys that look-ups on Spark hand back: their shape, and the batches of workers.

A place is that of a row's number, which stands for a key only as long as the rows are kept; so each has its key's
checksum.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.model import BaseFile
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_index.hashing.java import crc32
from hudi_index.lookup import LookupTask
from hudi_spark.writing.stored_keys import FILE_ID

# Tells the rows of one evaluation apart, also those of one key.
ROW_ID = "_hudi_row"
STAYS = "_hudi_stays"
PATH = "_hudi_path"
# Whether the file has logs.
LOGGED = "_hudi_logged"
# Whether a log has deleted the record since.
DEAD = "_hudi_dead"
# Checksum of the key that was found.
CHECKSUM = "_hudi_checksum"
FOUND = T.StructType(
    [
        T.StructField(ROW_ID, T.LongType()),
        T.StructField(CHECKSUM, T.LongType()),
        T.StructField(FILE_ID, T.StringType()),
        T.StructField(DEAD, T.BooleanType()),
    ]
)
FOUND_GLOBAL = T.StructType(
    [*FOUND.fields, T.StructField(PARTITION_PATH, T.StringType()), T.StructField(STAYS, T.BooleanType())]
)
# Where stored records are needed, also the file.
FOUND_FILES = T.StructType(
    [*FOUND_GLOBAL.fields, T.StructField(PATH, T.StringType()), T.StructField(LOGGED, T.BooleanType())]
)


def found_type(task: LookupTask) -> T.StructType:
    return FOUND_FILES if task.needs_stored else FOUND_GLOBAL


def place_type(task: LookupTask) -> T.StructType:
    return T.StructType([f for f in found_type(task).fields if f.name not in (ROW_ID, CHECKSUM)])


def checksum() -> Column:
    """Checksum of a row's key, as `checksums`."""
    return F.crc32(F.col(RECORD_KEY).cast("binary")).alias(CHECKSUM)


def checksums(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    sums: pa.Array = crc32(keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys)
    return sums.cast(pa.int64())


def place_batch(
    task: LookupTask,
    rows: pa.Table,
    at: np.ndarray | None,
    file: BaseFile | None,
    stays: np.ndarray | None = None,
    dead: np.ndarray | None = None,
) -> pa.RecordBatch:
    """A location for each row; rows without a file are dropped."""
    rows = rows.select([ROW_ID, RECORD_KEY])
    rows = rows if at is None else rows.take(pa.array(at))
    n = rows.num_rows
    columns = [
        rows.column(ROW_ID).combine_chunks(),
        checksums(rows.column(RECORD_KEY)),
        pa.repeat(pa.scalar(None if file is None else file.file_id, pa.string()), n),
        pa.array(np.zeros(n, dtype=bool) if dead is None else dead),
        pa.repeat(pa.scalar(None if file is None else file.partition, pa.string()), n),
        pa.array(np.zeros(n, dtype=bool) if stays is None else stays),
    ]
    if task.needs_stored:
        columns.append(pa.repeat(pa.scalar(None if file is None else file.path, pa.string()), n))
        logs = file is not None and task.logged is not None and file.path in task.logged.logs
        columns.append(pa.repeat(pa.scalar(logs), n))
    return pa.RecordBatch.from_arrays(columns, names=found_type(task).names)
