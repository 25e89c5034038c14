"""Records of a file slice's log blocks, in merge order, as the merge takes them.

They meet base rows in a read (`hudi_format.file_slice.reader`), or one another alone in a log compaction
(`hudi_format.file_slice.compacted_log`).

Source: HoodieMergedLogRecordScanner of Apache Hudi 0.15; checked on the golden tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hudi_format.arrow.arrays import one_array
from hudi_format.errors import CorruptFileError, HudiError, SchemaError, UnsupportedError
from hudi_format.log.block import BlockType, LogBlock
from hudi_format.log.corruption import CommittedRange
from hudi_format.log.data_block import BlockRows
from hudi_format.log.delete_block import DeleteBlock, OrderingType, read_deletes
from hudi_format.log.scanner import SliceLog
from hudi_format.merge import record_merger
from hudi_format.merge.log_entries import Entries, Resolver
from hudi_format.merge.log_records import MergeCounts, OnePerKey, Records
from hudi_format.merge.ordering import of_column, of_several, same_class, sequences, widened
from hudi_format.merge.partial_update import partial_schema, with_marks
from hudi_format.merge.payloads import MODES, Order
from hudi_format.merge.user_merger import custom_of
from hudi_format.model import LogFile
from hudi_format.schema.casts import convert
from hudi_format.storage.protocol import Storage

if TYPE_CHECKING:
    from hudi_format.file_slice.reader import SliceMerge


def compares(merge: SliceMerge) -> bool:
    """Whether records of the logs are compared by ordering value among one another.

    Apache Hudi 0.15 looks for no nested field among the records of a log: there the later one wins.
    """
    return merge.rule.tombstones_compare or "." not in (merge.ordering_field or "")


def open_log(
    storage: Storage,
    files: Sequence[LogFile],
    merge: SliceMerge,
    committed: Mapping[str, Sequence[CommittedRange]] | None,
) -> SliceLog:
    """The log of a slice, read piece by piece where its records may exceed the limit.

    Errors as of `SliceLog`.
    """
    in_ranges = merge.limit is not None and _decoded_bytes(files) > merge.limit.held
    return SliceLog(storage, files, merge.scope, committed=committed, in_ranges=in_ranges)


def _decoded_bytes(files: Sequence[LogFile]) -> int:
    return 2 * sum(max(f.size, 0) for f in files)  # encoded records about double when decoded


class SliceEntries:
    """Records of a slice's blocks, in merge order."""

    def __init__(self, merge: SliceMerge, schema: pa.Schema, blocks: Sequence[LogBlock]) -> None:
        self._merge = merge
        self._schema = schema
        self._ordering_type = pa.null()
        if merge.ordering_field:
            column = merge.ordering(schema.empty_table())
            self._ordering_type = pa.null() if column is None else column.type
        step = merge.limit.step if merge.limit is not None else 1 << 62
        # By column id Apache Hudi 0.15 and 1.2 (table versions 6 and 9) keep digits, 1.0 does not.
        changed = merge.float_digits or not merge.scope.grouped
        self._blocks = BlockRows(schema, merge.evolution, step, merge.float_digits, changed)
        self._marked = partial_schema(schema, (self._blocks.columns(b) for b in blocks if b.is_partial))
        self._data_rows = self._all_rows = 0

    def records(self, files: Sequence[LogFile], resolver: Resolver | None = None) -> Records:
        """The collection that receives the entries.

        Args:
            files: the log files, by whose sizes room is made.
            resolver: of the records of one key; None for what a read makes of them.
        """
        merge = self._merge
        resolver = resolver or merge.chains()
        if resolver is None:
            resolver = OnePerKey(merge.rule, logged=True, ordered=compares(merge), partial=self.partial)
        elif self.partial and (custom := custom_of(merge.rule)) is not None and custom.function:
            # It gets whole rows.  Whatever stood for the columns that an update does not name, null or the value so
            # far, some function would make wrong rows of: a sum would lose the value, or count it twice.
            raise UnsupportedError(
                "the log files have partial updates, which a merge function such as "
                f"{custom.function} does not support",
                remedy="use merge expressions, omit hudi.merge, or compact the table with Apache Hudi first.",
            )
        ordering = None if pa.types.is_null(self._ordering_type) else self._ordering_type
        expected = _decoded_bytes(files)
        self._records = Records(resolver, self._marked, ordering, merge.limit, expected=expected)
        return self._records

    def add_all(self, log: SliceLog, table: str) -> MergeCounts:
        """Add the records of all blocks, and end the additions; errors as of `LogRecords`."""
        for block in log.blocks:
            try:
                self._add(block, log.content(block))
            except HudiError as e:
                raise block.placed(e).at(table=table) from e.__cause__
        self._records.seal()
        keys = self._records.keys
        keys = self._all_rows if keys is None else keys  # None: they were too many to be held
        return MergeCounts(
            len(log.blocks), log.ordered.corrupt, log.ordered.rolled_back, self._data_rows, keys
        )

    def _add(self, block: LogBlock, content: pa.Buffer) -> None:
        if block.type is BlockType.DELETE:
            self._add_deletes(read_deletes(block, content))
            return
        columns = self._blocks.columns(block) if block.is_partial else None
        for rows in self._blocks.read(block, content):
            self._data_rows += rows.num_rows
            self._add_rows(with_marks(rows, self._marked, columns) if self.partial else rows)

    @property
    def partial(self) -> bool:
        """Whether some records lack columns."""
        return len(self._marked) > len(self._schema)

    def _add_rows(self, rows: pa.Table) -> None:
        kinds = record_merger.deleted_kinds(rows, self._merge.rule)
        if kinds is None:
            kinds = np.zeros(rows.num_rows, np.uint8)
        elif self._merge.rule.name in MODES:  # there a marked record is a delete with its ordering value
            kinds = np.where(kinds == record_merger.DATA_DELETED, np.uint8(record_merger.DELETE), kinds)
        self._append(rows, one_array(self._merge.keys(rows)), self._merge.ordering(rows), kinds)

    def _append(
        self, rows: pa.Table, keys: pa.Array, ordering: pa.Array | pa.ChunkedArray | None, kinds: np.ndarray
    ) -> None:
        values = None
        if not pa.types.is_null(self._ordering_type):
            if ordering is None:
                raise SchemaError(f"the log files have no ordering column {self._merge.ordering_field!r}")
            values = one_array(ordering).cast(self._ordering_type)
        if keys.null_count:
            raise CorruptFileError(
                f"{keys.null_count} log records have no record key",
                remedy=CorruptFileError.usual_remedy,
            )
        self._all_rows += len(keys)
        self._records.add(Entries(rows, keys.cast(pa.string()), values, kinds))

    def _add_deletes(self, deletes: DeleteBlock) -> None:
        if not len(deletes):
            return
        ordering, known = self._delete_ordering(deletes)
        rule = self._merge.rule
        ordered = rule.against_stored != Order.GREATEST_FIRST or rule.sequence
        if rule.tombstones_compare and not ordered and known.any():
            # Apache Hudi 1.0.2 compares these with the records around them, whose order among one another the payload
            # decides in another way.
            raise UnsupportedError(
                f"deletes with ordering values are not supported among records of {rule.name}, "
                "which has another order",
                remedy="compact the table with Apache Hudi first.",
            )
        kinds = np.where(known, np.uint8(record_merger.DELETE), np.uint8(record_merger.DELETE_DEFAULT))
        nothing = pa.table([pa.nulls(len(deletes), f.type) for f in self._marked], schema=self._marked)
        self._append(nothing, deletes.keys, ordering if self._merge.ordering_field else None, kinds)

    def _delete_ordering(self, deletes: DeleteBlock) -> tuple[pa.Array, np.ndarray]:
        """Ordering values in the column's type, and the deletes comparable with it.

        Others are not compared: they delete whatever came before.
        """
        n = len(deletes)
        rule, target = self._merge.rule, self._ordering_type
        known = np.zeros(n, dtype=bool)
        default = deletes.is_default
        out = pa.nulls(n, target)
        for part in deletes.ordering:
            rows = part.rows[~default[part.rows]]
            if not len(rows):
                continue
            there = np.flatnonzero(~default[part.rows])
            if part.type is OrderingType.ARRAY:
                values = of_several([part.values[i] for i in there], target)
            elif rule.sequence and rule.tombstones_compare and part.type is OrderingType.STRING:
                values = sequences(part.values.take(pa.array(there)))  # type: ignore[union-attr]
            elif same_class(part.type, target):
                values = of_column(part.values.take(pa.array(there)), target)  # type: ignore[union-attr]
            elif rule.tombstones_compare and widened(part.type, target):
                older = part.values.take(pa.array(there))  # type: ignore[union-attr]
                name = self._merge.ordering_field or ""
                values = convert(older, target, name, float_digits=self._merge.float_digits)
            else:
                continue
            places = np.full(n, -1, dtype=np.int64)
            places[rows] = np.arange(len(rows))
            out = record_merger.merged_column(out, values, places)
            known[rows] = True
        return out, known
