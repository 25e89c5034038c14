"""Row groups of an old base file that its successor takes over, changed columns apart.

Which columns changed is found by comparison, bit by bit: merging says which rows meet a record, not whether it says
anything new.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.arrow.arrays import contains
from hudi_format.parquet.kept_chunks import StoredChunks
from hudi_format.parquet.layout import NO_OBSERVER
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.meta_fields import FILE_NAME

_BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


class KeptGroups:
    """Row groups of the old file on their way into the new one.

    Args:
        writer: of the new file, before its first row.
        stored: the old file's column chunks; None where none are taken over.
        more_rows: how many rows may be appended.
    """

    def __init__(self, writer: BaseFileWriter, stored: StoredChunks | None, more_rows: int) -> None:
        self._writer = writer
        self._numbers = writer.keep(stored, more_rows)
        self._names = writer.names
        self._group = -1
        self._left = 0
        self._rows: list[pa.Table] = []
        self._same: set[str] = set()
        self._stored = stored

    def __contains__(self, group: int) -> bool:
        return group in self._numbers

    @property
    def unseen(self) -> bool:
        """Whether nobody looks at the keys of rows that stay."""
        return self._writer.observer is NO_OBSERVER

    def whole(self, group: int, file_name: pa.Array) -> None:
        """Take a row group over but for the file's name."""
        rest = [n for n in self._names if n != FILE_NAME]
        self._writer.write_kept([pa.table([file_name], names=[FILE_NAME])], rest, group)

    def part(self, group: int, before: pa.Table, after: pa.Table) -> None:
        """Rows of the old file's row group, and what they are in the new one: in order, all of them."""
        if group != self._group:
            self._group, self._rows, self._same = group, [], set(self._names)
            self._left = self._stored.groups[group].rows if self._stored and group in self._numbers else -1
        if before.num_rows != after.num_rows and self._left >= 0:
            self._left = -1  # rows are gone: its chunks are of no use
            rows, self._rows = self._rows, []
            for one in rows:
                self._writer.write(one)
        if self._left < 0:
            self._writer.write(after)
            return
        self._same = same_columns(before, after, self._same)
        self._rows.append(after)
        self._left -= before.num_rows
        if self._left == 0:
            rows, self._rows = self._rows, []
            self._writer.write_kept(rows, self._same, group)


def same_columns(before: pa.Table, after: pa.Table, names: Collection[str]) -> set[str]:
    """Columns, of these, with the same values, bit by bit, in both."""
    there = set(before.schema.names)
    return {n for n in names if n in there and _identical(before.column(n), after.column(n))}


def _identical(before: pa.ChunkedArray, after: pa.ChunkedArray) -> bool:
    if pt.is_dictionary(before.type) and before.type.value_type == after.type:
        before = before.cast(after.type)
    if before.type != after.type:
        return False
    if pt.is_floating(before.type):
        bits = _BITS[before.type.bit_width]
        before, after = _as(before, bits), _as(after, bits)
    elif contains(before.type, pt.is_floating):
        return False  # 0.0 would equal -0.0
    return bool(before.equals(after))


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([c.view(kind) for c in column.chunks], kind)
