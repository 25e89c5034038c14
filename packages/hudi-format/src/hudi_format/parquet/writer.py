"""Writer of Parquet base files with Hudi's footer entries.

What differs from Arrow's own writer with its defaults:

- no `ARROW:schema` entry: readers go by Parquet's types and by `parquet.avro.schema`;
- lists have three levels (`list.element`), maps are `key_value`, decimals are fixed-length bytes, timestamps
  are microseconds: what Apache Hudi (parquet-avro), Spark and hudi-rs read;
- a column gets a dictionary only if one will be kept: half of the encoding time of a key column is a
  dictionary that is thrown away in the end;
- row groups are cut by bytes, and small writes are gathered until one is full;
- a file that is rewritten may hand over column chunks as they are (`hudi_format.parquet.kept_chunks`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_format.arrow.arrays import without_hidden_nulls
from hudi_format.arrow.input import first_line
from hudi_format.arrow.sizes import size_of
from hudi_format.avro.encoder import Encoder
from hudi_format.errors import CorruptFileError, HudiError, SchemaError, StorageError
from hudi_format.fork_safe import Owned
from hudi_format.parquet.kept_chunks import (
    Chunk,
    ChunkFile,
    StoredChunks,
    chunks_of_file,
    kept_groups,
    path_of,
)
from hudi_format.parquet.layout import NO_OBSERVER, KeyObserver, ParquetConfig
from hudi_format.parquet.row_groups import CODECS
from hudi_format.schema.avro import schema_json
from hudi_format.schema.casts import convert
from hudi_format.schema.evolution import conform
from hudi_format.schema.meta_fields import COMMIT_SEQNO, RECORD_KEY
from hudi_format.schema.unions import schema_of_unions
from hudi_format.storage.errors import writing
from hudi_format.storage.protocol import Storage

log = logging.getLogger("hudi")

# Dictionaries are foreseen from this many rows, taken in pieces from all over the first row group.
_SAMPLE_PIECES, _PIECE_ROWS = 8, 1024
# A column with more different values than this share of its rows gains nothing from a dictionary.
_DISTINCT_SHARE = 0.25
# Arrow writes a column chunk by chunk of the table; below this average they are put together first.
_MIN_CHUNK_ROWS = 4096
# Below it Arrow writes a page of no values first, where there is a dictionary; lists behind one are not read again.
_LEAST_PAGE = 16
# Before columns of so many bytes of rows are encoded, Arrow's pool gives back what it keeps for others of other sizes.
_LARGE = 32 << 20
# How Arrow refuses values that a schema does not allow.
_ARROW_REFUSES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


class BaseFileWriter:
    """A base file being written; as a context manager, an error removes the file.

    Attributes:
        observer: sees the record keys of what is written; may be exchanged between two writes, the one set
            at `close` gives the footer entries.
        num_rows: rows taken so far.
        bytes_taken: their size in memory; of a text that comes as a dictionary only the codes count.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        *,
        config: ParquetConfig,
        observer: KeyObserver = NO_OBSERVER,
        entries: Mapping[str, str] | None = None,
        dictionaries: Mapping[str, bool] | None = None,
    ) -> None:
        """Open the file.

        Args:
            schema: the file's columns in types as they are stored, meta columns included.
            entries: further footer entries, such as `parquet.avro.schema`; by the latter, rows have one member of
                each union of several types.
            dictionaries: whether a column is worth a dictionary, where that is known; the others are sampled.

        Raises:
            StorageError: the storage refused.
        """
        self.observer = observer
        self.num_rows = 0
        self.bytes_taken = 0
        self._storage = storage
        self._path = path
        self._schema = schema.remove_metadata()
        self._config = config
        self._entries = dict(entries or {})
        self._unions = _unions(self._entries.get("parquet.avro.schema", ""), self._schema)
        self._known = dictionaries or {}
        self._has_keys = RECORD_KEY in schema.names
        self._gathered: list[pa.Table] = []
        self._gathered_bytes = 0
        self._gathered_rows = 0
        self._size = -1
        self._open = True
        self._owned = Owned()
        self._writer: pq.ParquetWriter | None = None
        self._stored: StoredChunks | None = None
        self._chunks: ChunkFile | None = (
            None  # instead of `_writer`, where chunks of another file are taken over
        )
        self._sink = storage.open_output(path)

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Append rows with the schema's columns, in any order and representation.

        Text columns that come as dictionaries are written without being decoded.

        Raises:
            StorageError: the storage refused.
            SchemaError: a column is missing or does not fit.
        """
        if not self._open:
            raise ValueError(f"{self._path} is closed")
        if rows.num_rows == 0:
            return
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        try:
            table = conform(table, self._schema, keep_dictionaries=True)
            if self._unions is not None:
                self._unions.check(table)
        except HudiError as e:
            raise e.at(table=self._storage.uri, file=self._path) from None
        if self._has_keys and self.observer is not NO_OBSERVER:
            self._observe(table.column(RECORD_KEY))
        self.num_rows += table.num_rows
        self._gathered.append(table)
        size = _row_bytes(table)
        self.bytes_taken += size
        self._gathered_bytes += size
        self._gathered_rows += table.num_rows
        while self._gathered_rows and (
            self._gathered_bytes >= self._config.row_group_bytes
            or self._gathered_rows >= self._config.row_group_rows
        ):
            self._flush(whole=False)

    def keep(self, stored: StoredChunks | None, more_rows: int) -> frozenset[int]:
        """Numbers of the row groups of which `write_kept` may take over chunks; before any write.

        Args:
            stored: of the file that is rewritten, in this file's schema.
            more_rows: how many rows may be appended to it.

        Raises:
            StorageError: the storage refused.
        """
        if stored is None or any("." in name for name in self._schema.names):
            return frozenset()
        empty = chunks_of_file(self._empty({}))
        if not stored.alike(empty):
            return frozenset()
        name = self._config.arrow_codec()[0]
        codec = CODECS.index({"NONE": "UNCOMPRESSED", "LZ4": "LZ4_RAW"}.get(name, name))
        self._leaves = [
            (f.name, path_of(p.split("."))) for f in self._schema for p in _leaves(f.type, f.name)
        ]
        kept = kept_groups(
            stored, [p for _, p in self._leaves], codec, more_rows,
            most_rows=self._config.row_group_rows, most_bytes=self._config.row_group_bytes,
            least_chunk_bytes=self._config.kept_chunk_bytes,
        )  # fmt: skip
        if kept:
            with writing(self._storage, self._path):
                self._stored, self._chunks = stored, ChunkFile(self._sink)
        return kept

    @property
    def names(self) -> list[str]:
        """The file's columns."""
        return list(self._schema.names)

    def write_kept(self, rows: Sequence[pa.Table], same: Collection[str], group: int) -> None:
        """Append a row group: chunks of the stored file for some columns, new ones for the others.

        Args:
            rows: the other columns at least, and the record keys where they are observed; in parts.
            same: columns whose values are those of the stored row group.
            group: its number, one of those that `keep` gave.

        Raises:
            as `write`; CorruptFileError: the stored file is not what its footer says.
        """
        if self._chunks is None or self._stored is None:
            raise ValueError(f"{self._path} takes over nothing")
        self.flush()
        found, count = self._stored.groups[group], sum(r.num_rows for r in rows)
        if found.rows != count:
            raise ValueError(f"{count} rows in the place of {found.rows}")
        schema = pa.schema([f for f in self._schema if f.name not in same])
        tables = []
        for part in rows:
            if self._has_keys and self.observer is not NO_OBSERVER:
                self._observe(part.column(RECORD_KEY))
            try:
                tables.append(conform(part.select(schema.names), schema, keep_dictionaries=True))
            except HudiError as e:
                raise e.at(table=self._storage.uri, file=self._path) from None
        table = pa.concat_tables(self._alike(tables, schema))
        self.num_rows += count
        self.bytes_taken += _row_bytes(table)
        kept = iter(zip(self._leaves, found.chunks, strict=True))
        stored = {n: [(self._stored, c) for _, c in of] for n, of in groupby(kept, key=lambda one: one[0][0])}
        try:
            with self._writing():
                self._chunks.add(count, self._column_chunks(table, stored, same))
        except ValueError as e:
            raise CorruptFileError(
                f"the base file that is rewritten is damaged: {e}", table=self._storage.uri, file=self._path
            ) from None

    def _column_chunks(
        self, rows: pa.Table, stored: Mapping[str, list[tuple[StoredChunks, Chunk]]], same: Collection[str]
    ) -> Iterator[tuple[StoredChunks, Chunk]]:
        """Chunks of a row group in the schema's order, new ones encoded as they are asked for."""
        large = _row_bytes(rows) >= _LARGE
        for name in self._schema.names:
            if name in same:
                yield from stored[name]
            else:
                if large:
                    pa.default_memory_pool().release_unused()
                new = chunks_of_file(self._encoded(rows.select([name])))
                yield from ((new, c) for c in new.groups[0].chunks)

    def _encoded(self, rows: pa.Table) -> pa.Buffer:
        """A Parquet file in memory, of one row group."""
        out = pa.BufferOutputStream()
        with self._parquet(rows, out) as writer:
            writer.write_table(_few_chunks(rows), row_group_size=max(1, rows.num_rows))
        return out.getvalue()

    def _empty(self, entries: Mapping[str, str]) -> bytes:
        """A Parquet file without rows."""
        out = pa.BufferOutputStream()
        with self._parquet(self._schema.empty_table(), out) as writer:
            writer.add_key_value_metadata(entries)
        return bytes(out.getvalue())

    def _observe(self, keys: pa.ChunkedArray) -> None:
        for chunk in convert(keys, pa.string(), RECORD_KEY).chunks:
            self.observer.add(chunk.drop_null() if chunk.null_count else chunk)

    @property
    def bytes_written(self) -> int:
        """Bytes written to the file, without the buffered rows."""
        return int(self._sink.tell()) if self._open else max(self._size, 0)

    @property
    def bytes_pending(self) -> int:
        """Memory size of the buffered rows."""
        return self._gathered_bytes

    def flush(self) -> None:
        """Write the buffered rows as one or more row groups.

        Raises:
            StorageError: the storage refused.
        """
        while self._gathered:
            self._flush(whole=True)

    def _flush(self, *, whole: bool) -> None:
        """Write buffered rows as one row group of limited size; all of them if `whole` and they fit."""
        table = pa.concat_tables(self._alike(self._gathered, self._schema))
        per_row = max(1.0, self._gathered_bytes / self._gathered_rows)
        limit = max(1, min(int(self._config.row_group_bytes / per_row), self._config.row_group_rows))
        head = table if whole and table.num_rows <= limit else table.slice(0, limit)
        rest = table.slice(head.num_rows)
        self._gathered = [rest] if rest.num_rows else []
        self._gathered_rows = rest.num_rows
        self._gathered_bytes = int(per_row * rest.num_rows)
        with self._writing():
            if self._chunks is not None:
                self._chunks.add(head.num_rows, self._column_chunks(head, {}, ()))
                return
            if self._writer is None:
                self._writer = self._parquet(head, self._sink)
            head = _few_chunks(_as_schema(head, self._writer.schema))
            self._writer.write_table(head, row_group_size=head.num_rows)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn refusals of the storage, and of values by Arrow, into errors that name the file."""
        try:
            with writing(self._storage, self._path):
                yield
        except _ARROW_REFUSES as e:  # the first of these is a ValueError, too
            reason = first_line(e)
            raise SchemaError(
                f"the rows cannot be written as Parquet: {reason}",
                table=self._storage.uri,
                file=self._path,
                remedy="change the column that the message names, or its values.",
            ) from e

    def _alike(self, tables: list[pa.Table], schema: pa.Schema) -> list[pa.Table]:
        """Tables in one schema; a column is a dictionary if it is one in all, or was at the start."""
        if self._writer is not None:
            target = self._writer.schema
        else:
            fields = []
            for i, field in enumerate(schema):
                kinds = {t.schema.field(i).type for t in tables}
                fields.append(field.with_type(kinds.pop()) if len(kinds) == 1 else field)
            target = pa.schema(fields)
        return [_as_schema(t, target) for t in tables]

    def _parquet(self, first: pa.Table, sink: Any) -> pq.ParquetWriter:
        # Parquet sees plain text where the Arrow column is a dictionary.
        codec, level = self._config.arrow_codec()
        page_bytes = max(self._config.page_bytes, _LEAST_PAGE)
        return pq.ParquetWriter(
            sink,
            first.schema,
            compression=codec,
            compression_level=level,
            use_dictionary=self._dictionaries(first),
            data_page_size=page_bytes,
            dictionary_pagesize_limit=page_bytes,
            store_schema=False,
            write_statistics=True,
            write_page_index=True,
        )

    def _dictionaries(self, first: pa.Table) -> list[str] | bool:
        """Parquet paths of the columns worth a dictionary, judged by a sample of `first`."""
        if not self._config.dictionary:
            return False
        sample: pa.Table | None = None
        out: list[str] = []
        for field in first.schema:
            if field.name in (RECORD_KEY, COMMIT_SEQNO) or pt.is_boolean(field.type):
                continue
            if pt.is_nested(field.type):
                out += _leaves(field.type, field.name)
                continue
            worth = True if pt.is_dictionary(field.type) else self._known.get(field.name)
            if worth is None:
                sample = _sample(first) if sample is None else sample
                worth = self._repeats(sample.column(field.name), first.num_rows)
            if worth:
                out.append(field.name)
        return out or False

    def _repeats(self, sample: pa.ChunkedArray, rows: int) -> bool:
        values = sample.drop_null()
        seen = pc.count_distinct(values).as_py()
        distinct = min(_distinct(len(values), seen), rows)
        width = size_of(values) / len(values) if len(values) else 0
        return bool(
            distinct <= max(1, _DISTINCT_SHARE * rows) and distinct * width <= self._config.page_bytes
        )

    def close(self) -> int:
        """Write the rest and the footer; returns the file's size in bytes.

        Raises:
            StorageError: the storage refused; the file is no base file then, and is removed.
        """
        if not self._open:
            return self._size
        self.flush()
        try:
            with writing(self._storage, self._path):
                entries = {**self._entries, **self.observer.finish()}
                if self._chunks is not None:
                    self._chunks.close(self._empty(entries))
                else:
                    if self._writer is None:
                        self._writer = self._parquet(self._schema.empty_table(), self._sink)
                    self._writer.add_key_value_metadata(entries)
                    self._writer.close()
                self._size = int(self._sink.tell())
                self._sink.close()
        except StorageError:
            self.abort()
            raise
        self._open = False
        return self._size

    def abort(self) -> None:
        """Remove the unfinished file; does nothing after `close`."""
        if not self._open:
            return
        self._open = False
        if not self._owned.here:  # a forked child that ends leaves its parent's file alone
            if self._writer is not None:
                self._writer.is_open = False
            return
        self._gathered = []
        if self._writer is not None:
            self._writer.is_open = False  # or it would write its footer when it is collected
        with suppress(
            OSError, StorageError
        ):  # the file is removed below, whatever could not be flushed to it
            self._sink.close()
        try:
            self._storage.delete(self._path)
        except StorageError as e:
            # Why the file is dropped matters more to the caller; its marker lets the rollback remove it.
            log.warning("an orphaned file could not be removed: %s", e)

    def __enter__(self) -> BaseFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort()
            return
        try:
            self.close()
        except BaseException:
            self.abort()
            raise


class _Unions:
    """Check of columns that are unions of several types: structs of which one member has a value."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._columns = [f["name"] for f in schema_json(text)["fields"]]
        self._encoder = Encoder(text, pa.schema([schema.field(n) for n in self._columns]))

    def check(self, rows: pa.Table) -> None:
        # What is no record of Avro's fails readers that make one of each row, as Apache Hudi's do.
        for batch in rows.select(self._columns).to_batches():
            self._encoder.encode(batch)


def _unions(text: str, schema: pa.Schema) -> _Unions | None:
    """Check of the rows of a file with this Avro schema; None where it has no unions."""
    if not text or not any(pt.is_nested(f.type) for f in schema):
        return None
    unions = schema_of_unions(text)
    return _Unions(unions, schema) if unions else None


def _row_bytes(table: pa.Table) -> int:
    """Memory size of rows; for dictionaries only of the codes, since batches share values."""
    size = 0
    for column in table.columns:
        if pt.is_dictionary(column.type):
            size += column.type.index_type.bit_width // 8 * len(column)
        else:
            size += size_of(column)
    return size


def _as_schema(table: pa.Table, target: pa.Schema) -> pa.Table:
    """The table with its text columns dictionary-encoded or decoded as in the target."""
    if table.schema.equals(target):
        return table
    columns = [
        c if c.type == f.type else c.dictionary_encode() if pt.is_dictionary(f.type) else c.cast(f.type)
        for c, f in zip(table.columns, target, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=target)


def _few_chunks(table: pa.Table) -> pa.Table:
    """The rows of a row group as Arrow's writer takes them: in few chunks, with one dictionary per column.

    Arrow's writer falls back to plain text at the first chunk with another dictionary.
    """
    chunks = max((c.num_chunks for c in table.columns), default=0)
    table = without_hidden_nulls(table)
    if chunks > 1 and any(pt.is_dictionary(t) for t in table.schema.types):
        table = table.unify_dictionaries()
    return table.combine_chunks() if chunks > 1 and table.num_rows < chunks * _MIN_CHUNK_ROWS else table


def _sample(table: pa.Table) -> pa.Table:
    rows = table.num_rows
    if rows <= _SAMPLE_PIECES * _PIECE_ROWS:
        return table
    step = rows // _SAMPLE_PIECES
    return pa.concat_tables([table.slice(n * step, _PIECE_ROWS) for n in range(_SAMPLE_PIECES)])


def _distinct(drawn: int, seen: int) -> float:
    """Estimated number of distinct values from `drawn` samples with `seen` distinct ones.

    For equally frequent values: `seen = n (1 - exp(-drawn / n))`, solved for n by halving.
    """
    if seen >= drawn:
        return math.inf if drawn > 1 else seen
    low, high = float(seen), float(seen)
    while high * -math.expm1(-drawn / high) < seen - 0.5 and high < 1e12:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        if middle * -math.expm1(-drawn / middle) < seen - 0.5:
            low = middle
        else:
            high = middle
    return high


def _leaves(kind: pa.DataType, path: str) -> list[str]:
    """Parquet column paths of a nested type's leaves."""
    if pt.is_struct(kind):
        return [p for f in kind for p in _leaves(f.type, f"{path}.{f.name}")]
    if pt.is_list(kind):
        return _leaves(kind.value_type, f"{path}.list.element")
    if pt.is_map(kind):
        return [f"{path}.key_value.key", *_leaves(kind.item_type, f"{path}.key_value.value")]
    return [path]
