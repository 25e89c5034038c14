"""Merges base rows with log records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_format.errors import CorruptFileError

if TYPE_CHECKING:
    from hudi_format.file_slice.reader import LogRecords


def merge_base(
    records: LogRecords,
    base: Iterable[pa.Table],
    keys: Callable[[], Iterable[pa.Table]],
    *,
    table: str,
    file: str,
) -> Iterator[pa.Table]:
    """The merged rows: base rows in parts, then records without a base row.

    Closes `records`.

    Args:
        keys: gives the same base rows once more with `SliceMerge.key_columns` alone; it is called before the
            base is read, where the records went to disk.
        table, file: which table and base file, for errors.

    Raises:
        CorruptFileError: a base row has no record key, and there are records.
    """
    with records:
        try:
            if records.spilled:
                records.meet(keys() if records.merges else ())
            for part in base:
                # What meets a batch may be wider than the batch.
                for start in range(0, max(1, part.num_rows), records.rows_at_once):
                    yield records.merged(part.slice(start, records.rows_at_once))
        except CorruptFileError as e:  # of a file that is named, but where the rows are at fault
            raise e.at(table=table, file=file) from e.__cause__
        yield from records.rest()
