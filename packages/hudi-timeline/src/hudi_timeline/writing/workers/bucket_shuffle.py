"""Bucket shuffle: rows grouped by bucket, in memory or in a spill file."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import pyarrow as pa

from hudi_format.arrow.input import no_rows
from hudi_format.arrow.sizes import size_of
from hudi_format.arrow.spill import MemoryLimit, SpillFile, is_large, keep_if_large, split, windows


class Buckets(Protocol):
    def of(self, number: int) -> pa.Table:
        """Rows of a bucket in order of arrival; callable from any thread."""
        ...


@contextmanager
def buckets_of(
    rows: pa.Table, numbers: np.ndarray, by_bucket: Sequence[np.ndarray], limit: MemoryLimit | None
) -> Iterator[Buckets]:
    """Rows grouped by bucket.

    Args:
        numbers: per row, its bucket; -1: it goes nowhere.
        by_bucket: the same, as the rows of each bucket, ascending.
        limit: of the rows of one bucket; None: all rows are held.

    Raises:
        SpillError: they could not be kept on disk.
    """
    if limit is None or not is_large(rows, limit):
        # One chunk: a take from many chunks puts them together anew for every bucket.
        yield _HeldRows(rows.combine_chunks(), by_bucket)
        return
    with SpillFile(rows.schema, limit) as file:
        _part(rows, numbers, file, limit)
        yield _OnDisk(file, limit)


class _HeldRows:
    def __init__(self, rows: pa.Table, by_bucket: Sequence[np.ndarray]) -> None:
        self._rows = rows
        self._by_bucket = by_bucket

    def of(self, number: int) -> pa.Table:
        return self._rows.take(pa.array(self._by_bucket[number]))


class _OnDisk:
    def __init__(self, file: SpillFile, limit: MemoryLimit) -> None:
        self._file = file
        self._limit = limit
        self._reading = threading.Lock()  # the file has one position

    def of(self, number: int) -> pa.Table:
        rows = keep_if_large(self._pieces(number), self._file.schema, self._limit)
        return rows if is_large(rows, self._limit) else rows.combine_chunks()

    def _pieces(self, number: int) -> Iterator[pa.Table]:
        pieces = self._file.read(number)
        while True:
            with self._reading:
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece


def _part(rows: pa.Table, numbers: np.ndarray, file: SpillFile, limit: MemoryLimit) -> None:
    """Write each row to its bucket's stream, gathering small parts."""
    waiting: dict[int, list[pa.Table]] = {}
    size = 0

    def flush() -> None:
        nonlocal size
        for bucket, parts in waiting.items():
            file.write(bucket, pa.concat_tables(parts))
        waiting.clear()
        size = 0

    for start, piece in windows(rows, limit):
        for bucket, part in split(piece, numbers[start : start + piece.num_rows]):
            waiting.setdefault(bucket, []).append(part)
            size += size_of(part)
        if size >= limit.held:
            flush()
    flush()


def pieces_of(data: pa.RecordBatchReader | pa.Table, limit: MemoryLimit) -> Iterator[pa.Table]:
    """Incoming rows in pieces of limited size; at least one piece."""
    source = [data] if isinstance(data, pa.Table) else (pa.Table.from_batches([b]) for b in data)
    none = True
    for rows in source:
        for _, piece in windows(rows, limit):
            none = False
            yield piece
    if none:
        yield no_rows(data.schema)
