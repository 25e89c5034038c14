"""Reader of Parquet base files: columns by name, in the wanted schema.

Arrow's reader is called directly and nothing is converted where the file's types are the wanted ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_format.arrow.arrays import filtered
from hudi_format.errors import CorruptFileError, HudiError, MissingColumnError, UnsupportedError
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import record_keys
from hudi_format.parquet.arrow_file import as_instants, has_int96
from hudi_format.parquet.footer import entries_of, footer_bytes, open_with_source, reading
from hudi_format.parquet.kept_chunks import StoredChunks
from hudi_format.parquet.row_group_filter import RowGroupFilter
from hudi_format.parquet.row_groups import RowGroup, row_groups
from hudi_format.parquet.text_column import read_texts
from hudi_format.parquet.thrift import TAIL
from hudi_format.parquet.utf8 import check_text, texts_as_bytes
from hudi_format.schema.evolution import conform
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.protocol import Storage

# Row groups of more encoded bytes than this are rewritten in pieces.
PIECE_BYTES = 32 << 20
# Fewer are decoded on one thread: handing them to others takes longer.
_VALUES_FOR_THREADS = 1 << 17
# How Arrow's writer names itself in footers: it is the one that files of ours are written with.
_ARROW = "parquet-cpp-arrow"

Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)


def read_table(
    storage: Storage,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    filter: pc.Expression | None = None,
    use_threads: bool = True,
    dictionary_columns: Sequence[str] = (),
) -> pa.Table:
    """The rows of a base file.

    Args:
        columns: those to give, in this order; None for all.
        schema: columns and types of the table; a column that the file lacks is null.  Without `columns` all
            of them are given.
        filter: only rows for which it is true, over any columns of the file or of `schema`.
        use_threads: decode columns in parallel; to be switched off where files are read in parallel.
        dictionary_columns: text columns to give as dictionaries, without decoding each row.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: as `open_parquet`.
        MissingColumnError: a column of `columns` or `filter` that is neither in the file nor in `schema`.
        SchemaError: the file's types do not fit `schema`.
    """
    with _OpenedFile(storage, path, schema, dictionary_columns) as file:
        wanted = file.wanted(columns)
        if filter is None:
            return file.finish(file.read(None, wanted, use_threads), wanted)
        # The filter does not say which columns it looks at; those that are not wanted are dropped after it.
        everything = file.wanted(None)
        table = file.finish(file.read(None, everything, use_threads), everything)
        try:
            return filtered(table, filter).select(wanted)
        except pa.ArrowInvalid as e:
            if "FieldRef" in str(e):
                raise MissingColumnError(
                    f"the filter names a missing column: {e}", table=storage.uri, file=path
                ) from None
            raise


def iter_batches(
    storage: Storage,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    batch_rows: int | None = 65536,
    row_groups: Sequence[int] | None = None,
    filter: RowGroupFilter | None = None,
    nested_digits: bool = False,
    use_threads: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of a base file in batches, with one row group in memory at a time.

    Args:
        batch_rows: rows of a batch at most; None for batches as long as their row group, where Arrow can.
        row_groups: numbers of those to read, None for all.
        filter: leaves out row groups that by the footer's statistics have no row for which it is true; the rows of
            the others are given whatever it says.
        nested_digits: as of `conform`.

    Raises:
        as `read_table`, while iterating.
    """
    with _OpenedFile(storage, path, schema, nested_digits=nested_digits) as file:
        wanted = file.wanted(columns)
        groups = range(file.num_row_groups) if row_groups is None else row_groups
        if filter is not None:
            kept = set(file.matching(filter))
            groups = [n for n in groups if n in kept]
        for group in groups:
            if batch_rows is None or not file.stored(wanted):
                table = file.finish(file.read(group, wanted, use_threads), wanted)
                yield from table.to_batches(max_chunksize=batch_rows)
                continue
            for batch in file.batches(group, wanted, batch_rows, use_threads):
                yield file.finish(batch, wanted)


def iter_row_groups(
    storage: Storage,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    dictionary_columns: Sequence[str] = (),
) -> Iterator[pa.Table]:
    """A base file by row group; arguments and errors as of `read_table`."""
    with _OpenedFile(storage, path, schema, dictionary_columns) as file:
        wanted = file.wanted(columns)
        for group in range(file.num_row_groups):
            yield file.finish(file.read(group, wanted, False), wanted)


def stored_chunks(
    source: pa.NativeFile, least_bytes: int, groups: Sequence[RowGroup] | None = None
) -> StoredChunks | None:
    """The column chunks of an open file; None for a file of another make, or of small chunks.

    Args:
        least_bytes: in one row group at least chunks have so many, on average and before compression.
        groups: its row groups with all columns, where they are known.
    """
    try:
        footer = footer_bytes(source)
        sizes = ([c.unpacked for c in g.columns.values()] for g in groups or row_groups(footer))
        if not any(sum(of_chunks) >= least_bytes * len(of_chunks) for of_chunks in sizes):
            return None
        begin = source.size() - TAIL - len(footer)
        return StoredChunks(bytes(footer), begin, lambda at, length: source.read_at(length, at))
    except (ValueError, CorruptFileError, UnsupportedError):
        return None  # Arrow says what is wrong with it


def read_keys(
    storage: Storage, path: str, virtual: KeySpec | None = None, *, size: int = -1
) -> pa.ChunkedArray:
    """Record keys of a base file, in file order, without reading other columns.

    Args:
        virtual: makes the keys of their columns, where the file's meta columns are empty.
        size: of the file in bytes, where a listing told.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: as `open_parquet`; a file
            without that column counts as corrupt.
    """
    with _OpenedFile(storage, path, None, size=size) as file:
        if virtual is not None:
            roots = list(dict.fromkeys(name.partition(".")[0] for name in virtual.key_fields))
            return pa.chunked_array([record_keys(file.read(None, roots, False), virtual)])
        if not file.stored([RECORD_KEY]):
            raise CorruptFileError(f"the base file has no column {RECORD_KEY}", table=storage.uri, file=path)
        return file.texts(RECORD_KEY)


def pays_threads(rows: int, columns: int) -> bool:
    """Whether threads decode so many values sooner than one does."""
    return rows * columns >= _VALUES_FOR_THREADS


def row_counts(metadata: pq.FileMetaData) -> list[int]:
    """Number of rows of each row group.

    Arrow reads what the row groups say: one that is damaged would be rows that are missing.

    Raises:
        ValueError: they are not as many as the footer says.
    """
    counts = [int(metadata.row_group(n).num_rows) for n in range(metadata.num_row_groups)]
    if sum(counts) != metadata.num_rows or min(counts, default=0) < 0:
        raise wrong_rows(sum(counts), int(metadata.num_rows))
    return counts


def wrong_rows(found: int, wanted: int) -> ValueError:
    """Error for a file whose row count contradicts its footer."""
    return ValueError(f"its footer says {wanted} rows, but it has {found}")


def checked(
    batches: Iterable[pa.RecordBatch],
    rows: int,
    texts: Mapping[str, pa.DataType],
    errors: AbstractContextManager[None],
) -> Iterator[pa.RecordBatch]:
    """Batches whose text is UTF-8 and which have so many rows; others end in `errors`."""
    found = 0
    with errors:
        for batch in batches:
            check_text(batch, texts)
            found += batch.num_rows
            yield batch
        if found != rows:
            raise wrong_rows(found, rows)


class _OpenedFile:
    """An open base file, and the schema it is read in; a context manager."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema | None,
        dictionary_columns: Sequence[str] = (),
        size: int = -1,
        nested_digits: bool = False,
    ) -> None:
        self._storage = storage
        self._path = path
        self._nested_digits = nested_digits
        self._file, self._source = open_with_source(
            storage, path, dictionary_columns=tuple(dictionary_columns), size=size
        )
        try:
            with reading(storage, path):
                self._own: pa.Schema = self._file.schema_arrow
                self._texts = texts_as_bytes(self._file)
                self.metadata: pq.FileMetaData = self._file.metadata
                self._rows = row_counts(self.metadata)
        except BaseException:
            self._file.close(force=True)
            raise
        self._schema = schema
        self._groups: list[RowGroup] | None = None
        self._is_utc = has_int96(self._file)
        self._keep_dictionaries = bool(dictionary_columns)
        self.num_row_groups = int(self._file.num_row_groups)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close(force=True)  # the source too: ParquetFile closes only what it opened itself

    def chunks(self, least_bytes: int) -> StoredChunks | None:
        """The file's column chunks to take over; None where that is not done.

        Of a remote file they would be read twice.

        Args:
            least_bytes: see `stored_chunks`.
        """
        if not self._storage.is_local:
            return None
        try:
            groups = self.row_groups()
        except (CorruptFileError, UnsupportedError):
            return None  # Arrow says what is wrong with it
        return stored_chunks(self._source, least_bytes, groups)

    def row_groups(self, columns: Collection[str] | None = None) -> list[RowGroup]:
        """The footer's row groups, with all columns or some."""
        if columns is None and self._groups is not None:
            return self._groups
        try:
            found = row_groups(footer_bytes(self._source), columns)
        except HudiError as e:
            raise e.at(table=self._storage.uri, file=self._path) from None
        if columns is None:
            self._groups = found
        return found

    def matching(self, filter: RowGroupFilter) -> list[int]:
        """Numbers of the row groups that may pass the filter."""
        try:
            return filter.matching(footer_bytes(self._source), self._own)
        except HudiError as e:
            raise e.at(table=self._storage.uri, file=self._path) from None

    def rows(self, group: int) -> int:
        """Number of rows of a row group."""
        return self._rows[group]

    def rows_within(self, group: int, most_bytes: int) -> int | None:
        """Number of rows of a row group in so many bytes; None for all of them."""
        rows, size = self._rows[group], int(self.metadata.row_group(group).total_byte_size)
        return None if size <= most_bytes else max(1, rows * most_bytes // size)

    def wanted(self, columns: Sequence[str] | None) -> list[str]:
        """Names of the columns to return."""
        known = self._own if self._schema is None else self._schema
        if columns is None:
            return list(known.names)
        for name in columns:
            if name not in known.names:
                raise MissingColumnError(
                    f"the file has no column {name}", table=self._storage.uri, file=self._path, column=name
                )
        return list(columns)

    def stored(self, names: Sequence[str]) -> list[str]:
        """The columns that the file has."""
        there = set(self._own.names)
        return [n for n in names if n in there]

    def read(self, group: int | None, names: Sequence[str], use_threads: bool) -> pa.Table:
        """Stored columns of one row group, or of all."""
        stored = self.stored(names)
        rows = sum(self._rows) if group is None else self._rows[group]
        if not stored:
            return pa.table({"": pa.nulls(rows)})
        use_threads = use_threads and pays_threads(rows, len(stored))
        with reading(self._storage, self._path):
            if group is None:
                table = self._file.read(columns=stored, use_threads=use_threads)
            else:
                table = self._file.read_row_group(group, columns=stored, use_threads=use_threads)
            check_text(table, self._texts)
            if table.num_rows != rows:
                raise wrong_rows(table.num_rows, rows)
        return table

    def texts(self, name: str) -> pa.ChunkedArray:
        """A stored column of texts, of all rows."""
        groups = self.row_groups([name])
        with reading(self._storage, self._path):
            found = read_texts(self._file, groups, lambda at, n: self._source.read_at(n, at), name)
        return self.read(None, [name], False).column(0) if found is None else found

    def batches(
        self, group: int, names: Sequence[str], batch_rows: int, use_threads: bool
    ) -> Iterator[pa.RecordBatch]:
        stored = self.stored(names)
        use_threads = use_threads and pays_threads(self._rows[group], len(stored))
        found = self._file.iter_batches(
            batch_rows, row_groups=[group], columns=stored, use_threads=use_threads
        )
        return checked(found, self._rows[group], self._texts, reading(self._storage, self._path))

    def finish(self, rows: Batch, names: Sequence[str]) -> Batch:
        """Rows converted to the wanted columns and types."""
        if self._schema is None:
            rows = rows.replace_schema_metadata(None) if rows.schema.metadata else rows
            if self._is_utc:
                rows = conform(rows, as_instants(rows.schema), keep_dictionaries=True, naive_is_utc=True)
            return rows if rows.schema.names == list(names) else rows.select(list(names))
        target = pa.schema([self._schema.field(n) for n in names])
        try:
            return conform(
                rows,
                target,
                keep_dictionaries=self._keep_dictionaries,
                naive_is_utc=self._is_utc,
                nested_digits=self._nested_digits,
            )
        except HudiError as e:
            raise e.at(table=self._storage.uri, file=self._path) from None


class Pieces(_OpenedFile):
    """Base file to rewrite: its footer, and its rows in order, in pieces.

    Small row groups come whole, larger ones in pieces of about `most_bytes`.

    Args:
        dictionary_columns: text columns to give as dictionaries, without decoding each row.
        size: of the file in bytes, where a listing told.

    Attributes:
        num_rows: of the file.

    Raises:
        as `read_table`, also while iterating.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        *,
        dictionary_columns: Sequence[str] = (),
        most_bytes: int = PIECE_BYTES,
        size: int = -1,
    ) -> None:
        super().__init__(storage, path, None, dictionary_columns, size)
        self._most_bytes = most_bytes
        self.num_rows = int(self.metadata.num_rows)

    def entries(self) -> dict[str, str]:
        """The footer's text entries."""
        return entries_of(self.metadata)

    def dictionaries(self) -> dict[str, bool]:
        """Whether each column, by Parquet path, has a dictionary; {} for other writers than Arrow."""
        if not str(self.metadata.created_by).startswith(_ARROW):
            return {}
        groups = self.row_groups()
        return {path: chunk.dictionary for path, chunk in groups[0].columns.items()} if groups else {}

    def columns(self, group: int, names: Sequence[str]) -> pa.Table:
        """Some columns of a row group, whole."""
        return self.finish(self.read(group, names, False), names)

    def names(self) -> list[str]:
        """The file's columns."""
        return self.wanted(None)

    def __iter__(self) -> Iterator[pa.Table]:
        for group in range(self.num_row_groups):
            yield from self.pieces(group)

    def in_pieces(self, group: int) -> bool:
        """Whether a row group is too large to come whole."""
        return self.rows_within(group, self._most_bytes) is not None

    def pieces(self, group: int) -> Iterator[pa.Table]:
        """The rows of a row group."""
        names = self.names()
        rows = self.rows_within(group, self._most_bytes)
        if rows is None:
            yield self.columns(group, names)
            return
        for batch in self.batches(group, names, rows, False):
            yield pa.Table.from_batches([self.finish(batch, names)])
