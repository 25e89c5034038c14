"""Changed rows of a file slice: which base rows its logs change, and what becomes of them.

For a reader that has the base rows already, from a scan of its own: it leaves out those at `changed_positions` and adds
`changed_rows`.  Together they are the rows of `hudi_format.file_slice.reader.merged_rows`, in another order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hudi_format.file_slice.base_rows import BATCH_ROWS, BaseFileRead, Result, over_base
from hudi_format.file_slice.reader import LogRecords, SliceMerge, keys_of, log_records, stored_rows
from hudi_format.log.corruption import CommittedRange
from hudi_format.model import LogFile


def changed_positions(
    base: BaseFileRead,
    logs: Sequence[LogFile],
    merge: SliceMerge,
    *,
    committed: Mapping[str, Sequence[CommittedRange]] | None = None,
) -> np.ndarray:
    """Positions in the base file of the rows that the logs change, or may change.

    They are counted from 0, and ascending (int64).  Keys and ordering values alone are read.

    Args:
        base: with the columns that the merge reads, see `SliceMerge.merge_schema`.
        committed: as of `LogRecords`.

    Raises:
        as `hudi_format.file_slice.reader.merged_rows`.
    """
    found, position = [np.zeros(0, np.int64)], 0
    with log_records(replace(base, schema=merge.deciding(base.schema)), logs, merge, committed) as records:

        def step(part: pa.Table) -> tuple[int, np.ndarray]:
            return part.num_rows, records.changed(part)

        for rows, places in _over(base, merge, records, merge.compared(base.schema), step, BATCH_ROWS):
            found.append(places + position)
            position += rows
    return np.concatenate(found)


def changed_rows(
    base: BaseFileRead,
    logs: Sequence[LogFile],
    merge: SliceMerge,
    *,
    committed: Mapping[str, Sequence[CommittedRange]] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.Table]:
    """Rows that replace those at `changed_positions`, then the records without a base row.

    The arguments are those of `changed_positions`.  Of the base file only keys and ordering values are read where a
    record replaces a row whole.
    """
    schema = merge.compared(base.schema) if merge.whole_records else base.schema
    with log_records(base, logs, merge, committed) as records:
        yield from _over(base, merge, records, schema, records.replacements, batch_rows)
        yield from records.rest()


def _over(
    base: BaseFileRead,
    merge: SliceMerge,
    records: LogRecords,
    schema: pa.Schema,
    step: Callable[[pa.Table], Result],
    batch_rows: int,
) -> Iterator[Result]:
    """Results of a step over the base rows, in columns of `schema`."""
    rows = stored_rows(replace(base, schema=schema), (), None, batch_rows)
    again = functools.partial(stored_rows, keys_of(base, merge), (), None, batch_rows)
    yield from over_base(records, base, rows, again, step)
