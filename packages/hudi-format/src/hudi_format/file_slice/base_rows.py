"""Base rows of a file slice, in the table's columns, and their merge with log records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow import arrays
from hudi_format.arrow.arrays import no_columns, put_together, repeated
from hudi_format.arrow.input import first_line
from hudi_format.errors import (
    CorruptFileError,
    HudiError,
    LibraryError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from hudi_format.file_slice.base_file import OtherBaseFile, open_other
from hudi_format.keygen.partition_path import lacks_column
from hudi_format.parquet.arrow_file import has_int96, parquet_file
from hudi_format.parquet.footer import check_columns, footer_bytes, reading
from hudi_format.parquet.reader import checked, pays_threads, row_counts, wrong_rows
from hudi_format.parquet.row_group_filter import RowGroupFilter
from hudi_format.parquet.row_groups import repeating, row_groups
from hudi_format.parquet.utf8 import check_text, texts_as_bytes
from hudi_format.schema.evolution import conform
from hudi_format.schema.internal_schema import Reading
from hudi_format.storage.protocol import Storage

if TYPE_CHECKING:
    from hudi_format.file_slice.reader import LogRecords

BATCH_ROWS = 131_072
"""Of a batch, where the caller does not say."""
# Of rows that are merged there are several copies at a time: stored, merged, and the next ones.
PART_BYTES = 8 << 20
Result = TypeVar("Result")
# Names and texts of a damaged file are decoded by Arrow's Python side: then it is a ValueError.
_UNREADABLE = (pa.ArrowException, ValueError, OSError)


@dataclass(frozen=True, slots=True, eq=False)
class BaseFileRead:
    """Read of one base file: columns and filter.

    Attributes:
        schema: all columns that are looked at, with those of the filter; types of the table.
        columns: those to give, in this order; None for all.
        instant: that of the file, for errors.
        constants: one row with the columns that have one value in the whole file, or None.
        filter: rows to keep, over `schema`; None for all.
        filter_columns: the columns of `filter`.
        reading: how the file is read by column id, where it has another version of the schema; else None.
        nested_digits: as of `conform`.
        held: columns that the file has to hold, where others that it lacks are null.
        open_file: instead of `open_other`: opens a skeleton file with its source, or an HFile for some keys.
    """

    storage: Storage
    path: str
    schema: pa.Schema
    columns: Sequence[str] | None = None
    instant: str = ""
    constants: pa.RecordBatch | None = None
    filter: pc.Expression | None = None
    filter_columns: Sequence[str] = ()
    reading: Reading | None = None
    nested_digits: bool = False
    open_file: Callable[[pa.Schema], OtherBaseFile | None] | None = None
    held: tuple[str, ...] = ()

    @property
    def given(self) -> pa.Schema:
        """The columns of the result."""
        return (
            self.schema if self.columns is None else pa.schema([self.schema.field(n) for n in self.columns])
        )


class BaseFileReader:
    """An open base file and the columns and rows that are wanted of it; closed by the caller."""

    def __init__(self, wanted: BaseFileRead, dictionaries: Collection[str] = (), batch_rows: int = 0) -> None:
        """Open the file and read its footer.

        Args:
            dictionaries: text columns to give as dictionaries where that is less work, in batches of so many rows.

        Raises:
            MissingFileError, CorruptFileError: naming the file.
        """
        self.wanted = wanted
        fixed = set(wanted.constants.schema.names) if wanted.constants is not None else set()
        self._from_file = pa.schema([f for f in wanted.schema if f.name not in fixed])
        reading = wanted.reading
        self._stored = self._from_file if reading is None else reading.stored(self._from_file)
        self._other = _open_other(wanted, self._stored)
        if self._other is not None:
            self._columns = [n for n in self._stored.names if n in set(self._other.names)]
            self.row_groups = []
            self._check_held(self._other.names)
            return
        with _reading(wanted):
            self._source = wanted.storage.open_input(wanted.path)
        coded = self._repeating(dictionaries, batch_rows)
        try:
            with _reading(wanted):
                self._file = parquet_file(
                    self._source, is_local=wanted.storage.is_local, dictionary_columns=coded
                )
                check_columns(self._file.schema_arrow)
                self._texts = texts_as_bytes(self._file)
                stored = set(self._file.schema_arrow.names)
                self._rows = row_counts(self._file.metadata)
        except BaseException:
            self._source.close()
            raise
        self._stored = _with_dictionaries(self._stored, self._file.schema_arrow, coded)
        self._columns = [n for n in self._stored.names if n in stored]
        self._check_held(stored)
        self.row_groups = list(range(self._file.num_row_groups))
        if wanted.filter is not None:
            columns, constants = tuple(wanted.filter_columns), wanted.constants
            self.keep_row_groups(
                RowGroupFilter(wanted.filter, wanted.schema, columns=columns, constants=constants)
            )

    def _check_held(self, stored: Collection[str]) -> None:
        wanted = self.wanted
        if not wanted.held:
            return
        names = frozenset(stored)
        found = names if wanted.reading is None else wanted.reading.columns(wanted.held, names)
        lacking = next((n for n in wanted.held if n in wanted.schema.names and n not in found), None)
        if lacking is not None:
            self.close()
            raise lacks_column(lacking).at(table=wanted.storage.uri, instant=wanted.instant, file=wanted.path)

    def _repeating(self, columns: Collection[str], batch_rows: int) -> list[str]:
        """Text columns that are cheaper as dictionaries.

        One text over and over, as in most meta columns, is then written once for each row, with the merged values in
        their places, rather than by Arrow and then again.
        """
        # Of a remote file the footer would be one more request.
        if not columns or self.wanted.reading is not None or not self.wanted.storage.is_local:
            return []
        try:
            return repeating(row_groups(footer_bytes(self._source), columns), columns, batch_rows)
        except (CorruptFileError, UnsupportedError, *_UNREADABLE):
            return []  # Arrow says what is wrong with it

    def keep_row_groups(self, filter: RowGroupFilter) -> None:
        """Skip row groups that by their statistics have no row that a filter keeps."""
        # Statistics lie under the names of the file, which may mean other columns now.
        if not self.row_groups or self.wanted.reading is not None or not filter.names:
            return
        with _reading(self.wanted):
            # Arrow has just read the footer.
            stored = _without_dictionaries(self._file.schema_arrow)
            self.row_groups = filter.matching(footer_bytes(self._source), stored)

    @property
    def num_row_groups(self) -> int:
        """Number of row groups in the file; `row_groups` are those to read."""
        return 0 if self._other is not None else int(self._file.num_row_groups)

    def rows_of_part(self, group: int) -> int:
        """Number of a row group's rows of about `PART_BYTES`, by the footer; at least 1."""
        if group >= self.num_row_groups:  # of no Parquet file, or of one whose last row was deleted
            return BATCH_ROWS
        whole = max(1, int(self._file.metadata.row_group(group).total_byte_size))
        return max(1, min(BATCH_ROWS, int(self._rows[group]) * PART_BYTES // whole))

    def close(self) -> None:
        if self._other is not None:
            self._other.close()
            return
        self._file.close()
        self._source.close()

    def read(self) -> pa.Table:
        """All rows at once."""
        if self._other is not None:
            if not self._columns:
                return self._finish(pa.table({}), self._other.rows)
            parts = list(self._other_batches(self._other, BATCH_ROWS))
            return put_together([pa.Table.from_batches([p]) for p in parts], self.wanted.given)
        rows = sum(self._rows[n] for n in self.row_groups)
        threads = pays_threads(rows, len(self._columns))
        with _reading(self.wanted):
            if len(self.row_groups) == self._file.num_row_groups:
                raw = self._file.read(columns=self._columns, use_threads=threads)
            else:
                raw = self._file.read_row_groups(self.row_groups, self._columns, use_threads=threads)
            check_text(raw, self._texts)
            if self._columns and raw.num_rows != rows:
                raise wrong_rows(raw.num_rows, rows)
        return self._finish(raw, rows)

    def batches(self, batch_rows: int, *, frugal: bool = False) -> Iterator[pa.RecordBatch]:
        """Rows in batches of at most `batch_rows`, with one row group in memory.

        Args:
            frugal: decode large row groups on one thread, as each thread keeps memory for its next use.
        """
        if self._other is not None and self._columns:
            yield from self._other_batches(self._other, batch_rows)
            return
        if not self.row_groups and self._other is None:
            return
        if not self._columns:  # nothing to decode: only the count of the rows matters
            yield from self.read().to_batches(max_chunksize=batch_rows)
            return
        # A batch is no longer than a row group: rows are wide where row groups are short.
        longest = max(self._rows[n] for n in self.row_groups)
        rows = sum(self._rows[n] for n in self.row_groups)
        batch_rows = max(1, min(batch_rows, longest))
        threads = pays_threads(longest, len(self._columns))
        if threads and frugal:
            sizes = (self._file.metadata.row_group(n).total_byte_size for n in self.row_groups)
            threads = max(sizes) <= 2 * PART_BYTES
        raw = self._file.iter_batches(
            batch_size=batch_rows, row_groups=self.row_groups, columns=self._columns, use_threads=threads
        )
        for batch in checked(raw, rows, self._texts, _reading(self.wanted)):
            yield from self._finish(pa.Table.from_batches([batch]), batch.num_rows).to_batches(
                max_chunksize=batch_rows
            )

    def _other_batches(self, file: OtherBaseFile, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows of a file other than Parquet."""
        with _reading(self.wanted):
            for batch in file.batches(self._columns, batch_rows):
                yield from self._finish(pa.Table.from_batches([batch]), batch.num_rows).to_batches()

    def _is_utc(self) -> bool:
        """Whether times without a zone mean an instant; another file than Parquet gives its own a zone."""
        return self._other is None and has_int96(self._file)

    def _finish(self, raw: pa.Table, rows: int) -> pa.Table:
        """The task's columns of file rows: table types, constants, filter applied."""
        wanted = self.wanted
        stored = self._stored
        try:
            if raw.schema.types != stored.types or raw.schema.names != stored.names:
                raw = (
                    conform(raw, stored, naive_is_utc=self._is_utc(), nested_digits=wanted.nested_digits)
                    if raw.num_columns
                    else _nulls(stored, rows)
                )
            if wanted.reading is not None:
                raw = (
                    wanted.reading.given(raw, self._from_file, nested_digits=wanted.nested_digits)
                    if raw.num_columns
                    else _nulls(self._from_file, rows)
                )
        except HudiError as e:
            raise _placed(e, wanted) from None
        columns: list[pa.ChunkedArray | pa.Array] = []
        for field in wanted.schema:
            if wanted.constants is not None and field.name in wanted.constants.schema.names:
                columns.append(repeated(wanted.constants.column(field.name)[0], rows))
            else:
                columns.append(raw.column(field.name))
        needed = pa.schema([f.with_type(c.type) for f, c in zip(wanted.schema, columns, strict=True)])
        table = pa.table(columns, schema=needed) if columns else no_columns(rows)
        if wanted.filter is not None:
            try:
                table = filtered(table, wanted.filter)
            except LibraryError as e:
                raise _placed(e, wanted) from e.__cause__
        return table if wanted.columns is None else table.select(wanted.columns)


def _with_dictionaries(schema: pa.Schema, stored: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The schema with the columns that Arrow returns as text dictionaries."""
    kind = pa.dictionary(pa.int32(), pa.string())
    for name in columns:
        if stored.field(name).type == kind:
            schema = schema.set(schema.get_field_index(name), schema.field(name).with_type(kind))
    return schema


def _without_dictionaries(schema: pa.Schema) -> pa.Schema:
    kinds = (t.value_type if pa.types.is_dictionary(t) else t for t in schema.types)
    return pa.schema([f.with_type(t) for f, t in zip(schema, kinds, strict=True)])


def filtered(rows: pa.Table, filter: pc.Expression) -> pa.Table:
    """The rows that pass a filter.

    Raises:
        LibraryError: it cannot be evaluated for one of them.
    """
    try:
        return arrays.filtered(rows, filter)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        # The filter was tried on the schema when the scan was made: the rows are not at fault.
        reason = first_line(e)
        raise LibraryError(
            f"pyarrow {pa.__version__} could not evaluate the filter: {reason}",
            remedy="write the condition in another way, or install another version of pyarrow.",
        ) from e


def _nulls(schema: pa.Schema, rows: int) -> pa.Table:
    return pa.table([pa.nulls(rows, f.type) for f in schema], schema=schema)


def _open_other(wanted: BaseFileRead, schema: pa.Schema) -> OtherBaseFile | None:
    with _reading(wanted):
        if wanted.open_file is not None:
            return wanted.open_file(schema)
        return open_other(wanted.storage, wanted.path, schema)


@contextmanager
def _reading(wanted: BaseFileRead) -> Iterator[None]:
    """Errors of a read of the file, as `reading` makes them of Arrow's, with its place and a remedy."""
    kind = {"orc": "ORC", "hfile": "HFile"}.get(wanted.path.rpartition(".")[2], "Parquet")
    try:
        with reading(wanted.storage, wanted.path, kind):
            try:
                yield
            except FileNotFoundError:
                raise MissingFileError("a file of the scan is gone") from None
            except KeyError as e:  # row groups have a column that the schema has not
                raise ValueError(str(e)) from None
    except HudiError as e:
        raise _placed(e, wanted) from e.__cause__


def _placed(error: HudiError, wanted: BaseFileRead) -> HudiError:
    """The error with the file's place and a remedy."""
    if isinstance(error, MissingFileError):
        remedy = "read the table again: a cleaner may have removed the file since the scan was planned."
    elif isinstance(error, StorageError):
        remedy = "run it again once the store answers."
    else:
        remedy = CorruptFileError.usual_remedy
    if not isinstance(error, LibraryError):
        error.advise(remedy)
    return error.at(table=wanted.storage.uri, instant=wanted.instant, file=wanted.path)


def over_base(
    records: LogRecords,
    base: BaseFileRead,
    rows: Iterable[pa.Table],
    keys: Callable[[], Iterable[pa.Table]],
    step: Callable[[pa.Table], Result],
) -> Iterator[Result]:
    """Results of a step over the rows of a base file, part by part, in their order.

    Args:
        keys: gives the same base rows once more with `SliceMerge.key_columns` alone; it is called before the
            base is read, where the records went to disk.
        step: looks the records of some base rows up.

    Raises:
        CorruptFileError: a base row has no record key, and there are records.
    """
    try:
        if records.spilled:
            records.meet(keys() if records.merges else ())
        for part in rows:
            # What meets a batch may be wider than the batch.
            for start in range(0, max(1, part.num_rows), records.rows_at_once):
                yield step(part.slice(start, records.rows_at_once))
    except CorruptFileError as e:  # of a file that is named, but where the rows are at fault
        raise e.at(table=base.storage.uri, file=base.path) from e.__cause__
