"""Sort order of bulk_insert, with an external sort beyond the memory limit.

More rows than may be held are kept on disk and parted by values between which they lie, which a sample gives; so
that each part is sorted by itself, and they follow each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format._checks import imported
from hudi_format.arrow.sizes import size_of
from hudi_format.arrow.spill import (
    MemoryLimit,
    SpillFile,
    gathered,
    is_large,
    keep_if_large,
    pick,
    split,
    windows,
)
from hudi_format.keygen.record_keys import nested_column, partition_paths, record_keys
from hudi_format.schema.evolution import conform
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_timeline.options.write_options import PARTITIONER
from hudi_timeline.writing.engine import PrepareTask
from hudi_timeline.writing.workers.bulk_insert import stored_keys

MOST_PARTS = 256
_SAMPLES = 64  # of each part
_MOST_DEPTH = 3


def in_order(pieces: Iterable[pa.Table], task: PrepareTask) -> Iterator[pa.Table]:
    """Rows sorted by partition path, then by wanted columns or record key; stable.

    This process is one task, so there is no difference between sorting all rows and those of each task.

    Raises:
        SpillError: they could not be kept on disk.
    """
    schema = task.schema
    if task.stored_keys:
        for name in (RECORD_KEY, PARTITION_PATH):
            schema = schema.append(pa.field(name, pa.string()))
    typed = (_typed(piece, task) for piece in pieces)
    if task.memory is None:
        yield _sorted(pa.concat_tables(typed), task)
    else:
        yield from _in_order(typed, schema, task, task.memory, 0)


def _typed(data: pa.Table, task: PrepareTask) -> pa.Table:
    """Rows in the types to write, with record key and partition path if they had them."""
    rows = conform(data, task.schema)
    if task.stored_keys:
        keys, paths = stored_keys(data)
        rows = rows.append_column(RECORD_KEY, keys).append_column(PARTITION_PATH, paths.cast(pa.string()))
    return rows


def _sort_columns(rows: pa.Table, task: PrepareTask) -> pa.Table:
    """Sort columns, most significant first."""
    if task.stored_keys:
        by = {"path": rows.column(PARTITION_PATH)}
    else:
        by = {"path": partition_paths(rows, task.key_spec).cast(pa.string())}
    for number, name in enumerate(task.order.columns):
        column = nested_column(rows, name)
        if column is not None:
            by[str(number)] = column
    if not task.order.columns and not task.key_spec.auto:  # made-up keys follow the order of the rows
        by["key"] = rows.column(RECORD_KEY) if task.stored_keys else record_keys(rows, task.key_spec)
    return pa.table(by)


def _order(by: pa.Table) -> np.ndarray:
    indices = pc.sort_indices(by, [(name, "ascending") for name in by.schema.names])
    return np.asarray(indices).astype(np.int64)


def _sorted(rows: pa.Table, task: PrepareTask) -> pa.Table:
    return rows.take(pa.array(_order(_sort_columns(rows, task))))


def _in_order(
    pieces: Iterable[pa.Table], schema: pa.Schema, task: PrepareTask, limit: MemoryLimit, depth: int
) -> Iterator[pa.Table]:
    rows = keep_if_large(pieces, schema, limit)
    if not is_large(rows, limit):
        yield _sorted(rows, task)
        return
    bounds = _bounds(rows, task, limit)
    if depth == _MOST_DEPTH or not bounds.num_rows:
        # Nearly all rows have the same values: then their order is theirs already, or is found by those alone.
        order = _order(_sort_columns(rows, task))
        yield from gathered(rows, order, limit)
        return
    with SpillFile(schema, limit) as file:
        for _, piece in windows(rows, limit):
            for part, of in split(piece, _part_numbers(piece, bounds, task)):
                file.write(part, of)
        del rows
        for part in file.streams:
            yield from _in_order(file.read(part), schema, task, limit, depth + 1)


def _bounds(rows: pa.Table, task: PrepareTask, limit: MemoryLimit) -> pa.Table:
    """Ascending distinct split values from a sample of the rows."""
    parts = min(MOST_PARTS, 1 + 2 * size_of(rows) // limit.held)
    at = np.unique(np.linspace(0, rows.num_rows - 1, parts * _SAMPLES).astype(np.int64))
    sample = _sort_columns(pick(rows, at), task)
    sample = sample.take(pa.array(_order(sample)))
    chosen = sample.take(pa.array(np.linspace(0, sample.num_rows, parts + 1).astype(np.int64)[1:-1]))
    new = np.ones(chosen.num_rows, dtype=bool)
    texts = chosen.to_pylist()
    for i in range(1, len(texts)):
        new[i] = texts[i] != texts[i - 1]
    return chosen.filter(pa.array(new))


def _part_numbers(rows: pa.Table, bounds: pa.Table, task: PrepareTask) -> np.ndarray:
    """Number of split values not after each row."""
    by = _sort_columns(rows, task)
    # The order is stable, so that a bound comes before the rows that equal it.
    order = _order(pa.concat_tables([bounds.cast(by.schema), by]))
    is_bound = order < bounds.num_rows
    before = np.cumsum(is_bound)
    out = np.empty(rows.num_rows, dtype=np.int64)
    out[order[~is_bound] - bounds.num_rows] = before[~is_bound]
    return out


# A function of the user's in the place of Apache Hudi's BulkInsertPartitioner classes.


def user_function(name: str) -> Callable[..., Any]:
    """The function behind `module:function`, dots allowed on both sides.

    It is called with all rows of a bulk_insert (a `pyarrow.Table`, on Spark a DataFrame) and with the number of
    tasks that `hoodie.bulkinsert.shuffle.parallelism` asks for, None where it does not; it gives the rows back in
    the order, on Spark also in the partitions, in which they are to be written.

    Raises:
        InvalidOptionError: it cannot be imported, or is none.
    """
    return imported(name, PARTITIONER)
