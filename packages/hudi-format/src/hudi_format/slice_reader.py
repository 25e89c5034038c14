"""One file slice read as a snapshot sees it: the base file's rows with what its logs say merged into them.

The records of the logs are held in memory, one per key; the base file streams past them.  Order: base rows in
their order, changed ones in place, then the records that have no base row.

Source: HoodieMergedLogRecordScanner and RecordMergingFileIterator of Apache Hudi 0.15; checked on the golden tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import CorruptFileError, HudiError, SchemaError, UnsupportedError
from hudi_format.keys import KeySpec, nested_column, record_keys
from hudi_format.log.blocks import BlockType, LogBlock
from hudi_format.log.damage import CommittedRange
from hudi_format.log.data_block import read_avro
from hudi_format.log.deletes import Deletes, OrderingType, read_deletes
from hudi_format.log.order import BlockScope
from hudi_format.log.slice_log import SliceLog
from hudi_format.merge import modes
from hudi_format.merge.keys import KeyIndex
from hudi_format.merge.partial import block_columns, has_mask, is_has, partial_schema, with_marks
from hudi_format.merge.rules import MODES, MergeRule, Order
from hudi_format.model import FileSlice, LogFile
from hudi_format.parquet.reader import iter_batches
from hudi_format.schema.evolve import conform
from hudi_format.schema.meta_columns import META_COLUMNS, RECORD_KEY
from hudi_format.storage import Storage


@dataclass(frozen=True, slots=True)
class SliceMerge:
    """How the records of a slice meet; the same for all slices of a read.  Plain values, picklable.

    Attributes:
        rule: of the table's payload or merge mode.
        ordering_field: column of the ordering values, a nested one by dot path; None for none.
        scope: whose log blocks count.
        key_spec: how keys are made where the table fills no meta columns; else None.
    """

    rule: MergeRule
    ordering_field: str | None = None
    scope: BlockScope = field(default_factory=BlockScope)
    key_spec: KeySpec | None = None

    def merge_schema(self, wanted: pa.Schema, table: pa.Schema) -> pa.Schema:
        """The columns that a merge must read to give those of `wanted`, all nullable.

        Args:
            wanted: columns of the result.
            table: all columns, with meta columns.
        """
        names = (
            [RECORD_KEY] if self.key_spec is None else [k.partition(".")[0] for k in self.key_spec.key_fields]
        )
        if self.ordering_field:
            names.append(self.ordering_field.partition(".")[0])
        names += [modes.IS_DELETED, self.rule.delete_field]
        more = [table.field(n) for n in dict.fromkeys(names) if n in table.names and n not in wanted.names]
        return pa.schema([f.with_nullable(True) for f in (*wanted, *more)])

    @property
    def stored_may_be_skipped(self) -> bool:
        """Whether a base row says nothing about the row that a log's record makes of it."""
        # From table version 8 on a log may have partial updates, which leave some of the base row's values.
        return self.rule.against_stored == Order.LATER and not self.rule.fills and not self.scope.grouped

    def keys(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        return rows.column(RECORD_KEY) if self.key_spec is None else record_keys(rows, self.key_spec)

    def ordering(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray | None:
        """The ordering values; None where the table has none."""
        return nested_column(rows, self.ordering_field) if self.ordering_field else None


class LogRecords:
    """What the logs of a slice say, one record per key, ready to meet base rows.

    Args:
        files: the slice's log files, in any order.
        schema: the columns, as `SliceMerge.merge_schema` gives them.
        committed: what completed instants say that they wrote, by path; see `SliceLog`.

    Raises:
        MissingFileError, CorruptFileError: naming the log file, and where in it.
        SchemaError: a column of a log that does not fit the table's.
        UnsupportedError: a kind of block that cannot be read yet.
    """

    def __init__(
        self,
        storage: Storage,
        files: Sequence[LogFile],
        merge: SliceMerge,
        schema: pa.Schema,
        *,
        committed: Mapping[str, Sequence[CommittedRange]] | None = None,
    ) -> None:
        self._merge = merge
        with SliceLog(storage, files, merge.scope, committed=committed) as log:
            parts = _Entries(merge, schema, log.blocks)
            for block in log.blocks:
                try:
                    parts.add(block, log.content(block))
                except HudiError as e:
                    raise e.at(table=storage.uri, file=block.file, instant=block.instant) from e.__cause__
        rows, ordering, kinds = parts.all()
        among = ordering
        if not merge.rule.tombstones_compare and "." in (merge.ordering_field or ""):
            among = None  # Apache Hudi 0.15 looks for no nested field there: the later record wins
        combined = modes.combine(
            parts.keys(), merge.rule, ordering=among, kinds=kinds, logged=True, partial=parts.partial
        )
        self.rows: pa.Table = combined.take(rows)
        self.kinds = combined.kinds
        self._ordering = None if ordering is None else ordering.take(pa.array(combined.rows))
        self._index = KeyIndex(parts.keys().take(pa.array(combined.rows)))
        self._seen = np.zeros(len(combined.rows), dtype=bool)

    def merged(self, base: pa.Table) -> pa.Table:
        """Base rows with what the logs say about their keys.  `base` has the columns of the schema."""
        found = self._index.find(self._merge.keys(base))
        hits = found[found >= 0]
        if not len(hits):
            return base
        self._seen[hits] = True
        rule = self._merge.rule
        met = modes.decide(
            found, rule,
            stored_ordering=self._merge.ordering(base), ordering=self._ordering, kinds=self.kinds,
        )  # fmt: skip
        take, stored_wins = met.take, met.stored_wins
        if met.gone is not None:
            keep = ~met.gone
            base, take = base.filter(pa.array(keep)), take[keep]
            stored_wins = None if stored_wins is None else stored_wins[keep]
        if not (take >= 0).any():
            return base
        columns = []
        for name in base.column_names:
            fill = (
                rule.fill_stored and name not in META_COLUMNS
            )  # those are of the later record, or the winner
            columns.append(
                modes.merged_column(
                    base.column(name), self.rows.column(name), take,
                    fill=fill, stored_wins=stored_wins if fill or rule.meta_of_winner else None,
                    has=has_mask(self.rows, name), unavailable=rule.unavailable,
                )
            )  # fmt: skip
        return pa.table(columns, schema=base.schema)

    def rest(self) -> pa.Table:
        """The records whose key no base row had; deletes are none."""
        rows = self.rows.filter(
            pa.array(~self._seen & np.isin(self.kinds, (modes.DATA, modes.DATA_FLAG_NULL)))
        )
        return rows.select([n for n in rows.column_names if not is_has(n)])


class _Entries:
    """The records of a slice's blocks, gathered in the order in which they apply."""

    def __init__(self, merge: SliceMerge, schema: pa.Schema, blocks: Sequence[LogBlock]) -> None:
        self._merge = merge
        self._schema = schema
        self._marked = partial_schema(schema, blocks)
        self._decoders: dict[str, Decoder] = {}
        self._rows: list[pa.Table] = []
        self._keys: list[pa.Array] = []
        self._ordering: list[pa.Array] = []
        self._kinds: list[np.ndarray] = []
        self._ordering_type = pa.null()
        if merge.ordering_field:
            column = nested_column(schema.empty_table(), merge.ordering_field)
            self._ordering_type = pa.null() if column is None else column.type

    def add(self, block: LogBlock, content: pa.Buffer) -> None:
        """Raises: as `LogRecords`."""
        if block.type is BlockType.DELETE:
            self._add_deletes(read_deletes(block, content))
            return
        if block.type is BlockType.AVRO_DATA:
            rows = self._avro(block, content)
        elif block.type is BlockType.PARQUET_DATA:
            rows = self._parquet(block, content)
        else:
            raise UnsupportedError(
                f"{block.type.name} blocks cannot be merged yet", remedy="read the table with Apache Hudi."
            )
        if self.partial:
            rows = with_marks(rows, self._marked, block_columns(block) if block.is_partial else None)
        kinds = modes.deleted_kinds(rows, self._merge.rule)
        if kinds is None:
            kinds = np.zeros(rows.num_rows, dtype=np.uint8)
        elif self._merge.rule.name in MODES:  # there a marked record is a delete with its ordering value
            kinds = np.where(kinds == modes.DATA_DELETED, np.uint8(modes.DELETE), kinds)
        self._append(rows, modes.one_array(self._merge.keys(rows)), self._merge.ordering(rows), kinds)

    def _append(
        self, rows: pa.Table, keys: pa.Array, ordering: pa.Array | pa.ChunkedArray | None, kinds: np.ndarray
    ) -> None:
        self._rows.append(rows)
        self._keys.append(keys.cast(pa.string()))
        self._kinds.append(kinds)
        if ordering is not None:
            self._ordering.append(modes.one_array(ordering).cast(self._ordering_type))

    def _avro(self, block: LogBlock, content: pa.Buffer) -> pa.Table:
        decoder = self._decoders.get(block.schema)
        if decoder is None:
            decoder = self._decoders[block.schema] = Decoder(block.schema, arrow_schema=self._schema)
        records = read_avro(block, content)
        return pa.Table.from_batches([decoder.decode(records.data, records.offsets, records.lengths)])

    def _parquet(self, block: LogBlock, content: pa.Buffer) -> pa.Table:
        try:
            file = pq.ParquetFile(pa.BufferReader(content))
            there = set(file.schema_arrow.names)
            rows = file.read(columns=[n for n in self._schema.names if n in there])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as e:
            reason = str(e).splitlines()[0]
            raise CorruptFileError(
                f"a block at byte {block.offset} cannot be read as Parquet: {reason}"
            ) from None
        return conform(rows, self._schema)

    def _add_deletes(self, deletes: Deletes) -> None:
        if not len(deletes):
            return
        ordering, known = self._delete_ordering(deletes)
        kinds = np.where(known, np.uint8(modes.DELETE), np.uint8(modes.DELETE_DEFAULT))
        nothing = pa.table([pa.nulls(len(deletes), f.type) for f in self._marked], schema=self._marked)
        self._append(nothing, deletes.keys, ordering if self._merge.ordering_field else None, kinds)

    def _delete_ordering(self, deletes: Deletes) -> tuple[pa.Array, np.ndarray]:
        """Ordering values as the column has them, and which deletes have one of the column's own Java class.

        Others are not compared: they delete whatever came before.
        """
        n = len(deletes)
        target = self._ordering_type
        known = np.zeros(n, dtype=bool)
        default = deletes.is_default
        out = pa.nulls(n, target)
        for part in deletes.ordering:
            rows = part.rows[~default[part.rows]]
            if not len(rows):
                continue
            if part.type is OrderingType.ARRAY:
                raise UnsupportedError(
                    "deletes with several ordering values cannot be merged yet", remedy="use Apache Hudi 1.x."
                )
            if not _same_class(part.type, target):
                continue
            values = part.values.take(pa.array(np.flatnonzero(~default[part.rows])))  # type: ignore[union-attr]
            if pa.types.is_timestamp(target) and pa.types.is_integer(values.type):
                values = values.cast(pa.timestamp("us")).cast(pa.timestamp(target.unit))
            if pa.types.is_timestamp(target):
                values = values.view(pa.timestamp(values.type.unit)).cast(target)
            places = np.full(n, -1, dtype=np.int64)
            places[rows] = np.arange(len(rows))
            out = modes.merged_column(out, values.cast(target), places)
            known[rows] = True
        return out, known

    @property
    def partial(self) -> bool:
        """Whether some records lack columns."""
        return len(self._marked) > len(self._schema)

    def keys(self) -> pa.ChunkedArray:
        return pa.chunked_array(self._keys, pa.string())

    def all(self) -> tuple[pa.Table, pa.ChunkedArray | None, np.ndarray]:
        """Rows, ordering values and kinds of all entries."""
        rows = pa.concat_tables(self._rows) if self._rows else self._marked.empty_table()
        kinds = np.concatenate(self._kinds) if self._kinds else np.zeros(0, dtype=np.uint8)
        ordering = None
        if self._merge.ordering_field and not pa.types.is_null(self._ordering_type):
            ordering = pa.chunked_array(self._ordering, self._ordering_type)
            if len(ordering) != rows.num_rows:
                raise SchemaError(f"the logs have no ordering column {self._merge.ordering_field!r}")
        return rows, ordering, kinds


# Java classes: a delete's value of another type is none of these in the records of a log (Avro's Utf8, a number
# of days, raw bytes of a decimal), so that Apache Hudi never compares the two.
_SAME_CLASS: dict[OrderingType, Callable[[pa.DataType], bool]] = {
    OrderingType.BOOLEAN: pa.types.is_boolean,
    OrderingType.INT: pa.types.is_int32,
    OrderingType.LONG: lambda t: pa.types.is_int64(t) or pa.types.is_timestamp(t),
    OrderingType.FLOAT: pa.types.is_float32,
    OrderingType.DOUBLE: pa.types.is_float64,
    OrderingType.TIMESTAMP_MICROS: pa.types.is_timestamp,
}


def _same_class(kind: OrderingType, column: pa.DataType) -> bool:
    """Whether a delete's ordering value is of the Java class that the column's values have."""
    check = _SAME_CLASS.get(kind)
    return check is not None and bool(check(column))


def merge_base(records: LogRecords, base: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The merged rows: base rows part by part, then the records that have none."""
    for part in base:
        yield records.merged(part)
    yield records.rest()


def read_file_slice(
    storage: Storage,
    file_slice: FileSlice,
    merge: SliceMerge,
    schema: pa.Schema,
    *,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of one file slice, merged, in batches; holds the logs' records and one row group.

    Args:
        schema: the table's columns, with meta columns where the table fills them.
        columns: the columns to give, in that order; None for all.

    Raises:
        as `LogRecords`; MissingFileError, CorruptFileError of the base file too.
    """
    wanted = schema if columns is None else pa.schema([schema.field(n) for n in columns])
    needed = merge.merge_schema(wanted, schema)
    records = LogRecords(storage, file_slice.log_files, merge, needed)
    base: Iterable[pa.Table] = ()
    if file_slice.base_file is not None:
        path = file_slice.base_file.path
        batches = iter_batches(storage, path, columns=needed.names, schema=needed)
        base = (pa.Table.from_batches([b]) for b in batches)
    for part in merge_base(records, base):
        yield from part.select(wanted.names).to_batches()


__all__ = ["LogRecords", "SliceMerge", "merge_base", "read_file_slice"]
