"""File slices with logs: base rows by Spark's own scan, changed rows by Python workers.

The scan leaves out the rows that the logs change, by their positions, which other workers find first: they read the
keys of both.  Positions are bits of words, 64 rows each, so that the table that Spark broadcasts has at most a
64th as many rows as the base files, and no more than there are keys in the logs.

Source: Spark's SQL reference, "Parquet files: metadata columns".
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hudi_spark.reading.file_schemas import files_of_types
from hudi_timeline.reading.plan import SNAPSHOT
from hudi_timeline.reading.scan import Scan
from hudi_timeline.reading.task import ReadTask

PARQUET = ".parquet"

MOST_WORDS = 2 << 20
"""Words of all slices of a scan: about 200 MB where they are collected and broadcast."""

LEAST_BYTES = 16 << 20
"""Base files below which, together, the job for the positions takes longer than it saves."""

LEAST_ROW, LEAST_RECORD = 16, 32
"""Bytes that a row of a base file, and a record of a log, are taken to have at least."""

# In such names nothing is encoded in the path that Spark shows.
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
# Names that no table has.
ROW_WORD, ROW_BIT, WORD, CHANGED = "_hudi:row_word", "_hudi:row_bit", "_hudi:word", "_hudi:changed"
WORDS = pa.schema([pa.field(WORD, pa.int64()), pa.field(CHANGED, pa.int64())])

_POSITION = "_metadata.row_index"
PLACE = (
    (ROW_WORD, f"shiftleft(crc32(cast(_metadata.file_name as binary)), 31) + shiftright({_POSITION}, 6)"),
    (ROW_BIT, f"cast({_POSITION} & 63 as int)"),
)
"""Columns of a row's word and bit, and the expressions that make them of Spark's hidden columns."""


@dataclass(frozen=True)
class Split:
    """Tasks of a scan by who reads them.

    Attributes:
        spark: base files that Spark reads whole.
        both: slices whose base rows Spark reads, and whose changed rows workers give.
        workers: what workers read whole.
    """

    spark: tuple[ReadTask, ...]
    both: tuple[ReadTask, ...]
    workers: tuple[ReadTask, ...]


def split(scan: Scan, tasks: Sequence[ReadTask], stored: pa.Schema) -> Split:
    """Tasks by who reads them.

    Workers read whole what Spark's scan would give other values for, and slices of which most rows change.

    Args:
        stored: the scan's columns that come from the files.
    """
    plan = scan.plan
    usual = plan.kind == SNAPSHOT and not (plan.merge is not None and plan.merge.unmerged)
    parquet = [
        t for t in tasks if usual and t.path.endswith(PARQUET) and t.reading is None and t.source is None
    ]
    alike = files_of_types(scan.snapshot, {t.path: t.instant for t in parquet}, stored)
    native = [t for t in parquet if t.path in alike]
    both: list[ReadTask] = []
    numbers: set[int] = set()
    room = MOST_WORDS
    for task in sorted((t for t in native if t.logs is not None), key=_words):
        room -= _words(task)
        number = file_number(task.path)
        if room < 0:
            break
        if number is not None and number not in numbers and 2 * _log_bytes(task) <= task.size:
            numbers.add(number)
            both.append(task)
    if sum(t.size - _log_bytes(t) for t in both) < LEAST_BYTES:
        both = []
    chosen = {t.path for t in both}
    whole = {t.path for t in native if t.logs is None}
    return Split(
        tuple(t for t in tasks if t.path in whole),
        tuple(t for t in tasks if t.path in chosen),
        tuple(t for t in tasks if t.path not in whole and t.path not in chosen),
    )


def file_number(path: str) -> int | None:
    """Number of a file by its name; None for names that Spark may show in another way."""
    name = path.rpartition("/")[2]
    return zlib.crc32(name.encode()) if _PLAIN.fullmatch(name) else None


def _log_bytes(task: ReadTask) -> int:
    return 0 if task.logs is None else task.logs.size


def _words(task: ReadTask) -> int:
    """Number of words of a slice, at most about."""
    logs = _log_bytes(task)
    return 1 + min((task.size - logs) // (LEAST_ROW * 64), logs // LEAST_RECORD)


def unchanged(rows: DataFrame, words: DataFrame) -> DataFrame:
    """Base rows of a scan without those that logs change.

    Args:
        rows: with the columns of `PLACE`.
        words: of `WORDS`, see `changed_words`; each word once.
    """
    # Broadcast, so that the rows stay where they are; the plan asks for nothing else.
    met = rows.join(F.broadcast(words), F.expr(f"`{ROW_WORD}` = `{WORD}`"), "left")
    kept = met.where(f"`{CHANGED}` IS NULL OR getbit(`{CHANGED}`, `{ROW_BIT}`) = 0")
    return kept.drop(ROW_WORD, ROW_BIT, WORD, CHANGED)


def changed_words(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Base rows of a slice that its logs change, as `WORDS`.

    A word has a bit for each of 64 rows of a file, the first row the lowest.
    """
    yield words_of(file_number(task.path) or 0, task.changed_positions())


def words_of(number: int, positions: np.ndarray) -> pa.RecordBatch:
    """Words of a file's changed positions, which ascend; as `WORDS`."""
    if not len(positions):
        return pa.RecordBatch.from_pylist([], WORDS)
    words = positions >> 6
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    bits = np.left_shift(np.uint64(1), (positions & 63).astype(np.uint64))
    changed = np.bitwise_or.reduceat(bits, starts).view(np.int64)
    return pa.RecordBatch.from_arrays(
        [pa.array((number << 31) + words[starts]), pa.array(changed)], schema=WORDS
    )
