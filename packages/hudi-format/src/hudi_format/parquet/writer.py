"""Write base files: whole row groups out of any sizes of batches, with Hudi's footer entries.

Differences from Arrow's own writer that matter here: no `ARROW:schema` entry (readers go by Parquet's types and
`parquet.avro.schema`), no dictionaries for columns whose values hardly repeat (half of the encoding time of a
key column is a dictionary that is thrown away), row groups cut by bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_format.errors import StorageError
from hudi_format.observer import NO_OBSERVER, KeyObserver
from hudi_format.parquet.config import ParquetConfig
from hudi_format.schema.meta_columns import COMMIT_SEQNO, RECORD_KEY
from hudi_format.storage import Storage

MAX_ROW_GROUP_ROWS = 1 << 20
_SAMPLE_ROWS = 4096
# A sampled column with more distinct values than this share gets no dictionary.
_DISTINCT_SHARE = 0.5


class BaseFileWriter:
    """One base file being written.

    Attributes:
        observer: sees the record keys of what is written; may be exchanged between two writes, the one set
            at `close` gives the footer entries.
        num_rows: rows taken so far.
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
    ) -> None:
        self.observer = observer
        self.num_rows = 0
        self._storage = storage
        self._path = path
        self._schema = schema.remove_metadata()
        self._config = config
        self._entries = dict(entries or {})
        self._codec, self._level = config.arrow_codec()
        self._gathered: list[pa.Table] = []
        self._gathered_bytes = 0
        self._gathered_rows = 0
        self._open = True
        self._writer: pq.ParquetWriter | None = None
        self._sink = storage.open_output(path)

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows with the columns of the schema; text columns may come as dictionaries.

        Raises:
            StorageError: the storage refused.
        """
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        if table.num_rows == 0:
            return
        if self.observer is not NO_OBSERVER:
            for chunk in table.column(RECORD_KEY).chunks:
                self.observer.add(chunk)
        self.num_rows += table.num_rows
        self._gathered.append(table)
        self._gathered_bytes += table.nbytes
        self._gathered_rows += table.num_rows
        while self._gathered_rows and (
            self._gathered_bytes >= self._config.row_group_bytes or self._gathered_rows >= MAX_ROW_GROUP_ROWS
        ):
            self._flush(whole=False)

    @property
    def bytes_written(self) -> int:
        """Bytes that have reached the file, without what is still gathered."""
        return int(self._sink.tell()) if self._open else 0

    def _flush(self, *, whole: bool) -> None:
        """Write gathered rows as one row group; all of them if `whole`, else at most a row group's bytes."""
        table = pa.concat_tables(_alike(self._gathered))
        per_row = max(1.0, self._gathered_bytes / self._gathered_rows)
        limit = max(1, min(int(self._config.row_group_bytes / per_row), MAX_ROW_GROUP_ROWS))
        head = table if whole and table.num_rows <= limit else table.slice(0, limit)
        rest = table.slice(head.num_rows)
        self._gathered = [rest] if rest.num_rows else []
        self._gathered_rows = rest.num_rows
        self._gathered_bytes = int(per_row * rest.num_rows)
        try:
            if self._writer is None:
                self._writer = self._parquet(head)
            self._writer.write_table(head.cast(self._writer.schema), row_group_size=head.num_rows)
        except OSError as e:
            raise self._refused(e) from e

    def _parquet(self, first: pa.Table | None) -> pq.ParquetWriter:
        # Dictionaries that come in are written as they are, without decoding; Parquet sees plain text.
        fields = [
            first.schema.field(f.name) if first is not None and pa.types.is_dictionary(first.schema.field(f.name).type)
            else f
            for f in self._schema
        ]  # fmt: skip
        return pq.ParquetWriter(
            self._sink,
            pa.schema([f.with_nullable(self._schema.field(f.name).nullable) for f in fields]),
            compression=self._codec,
            compression_level=self._level,
            use_dictionary=self._dictionaries(first),
            data_page_size=self._config.page_bytes,
            dictionary_pagesize_limit=self._config.page_bytes,
            store_schema=False,
            write_statistics=True,
        )

    def _dictionaries(self, first: pa.Table | None) -> list[str] | bool:
        """Columns worth a dictionary, judged by the first rows."""
        if not self._config.dictionary or first is None:
            return False
        sample = first.slice(0, _SAMPLE_ROWS)
        out: list[str] = []
        for field in self._schema:
            column = sample.column(field.name)
            if field.name in (RECORD_KEY, COMMIT_SEQNO) or pa.types.is_boolean(field.type):
                continue
            if pa.types.is_nested(field.type):
                out += _leaves(field.type, field.name)
            elif (
                pa.types.is_dictionary(column.type)
                or pc.count_distinct(column).as_py() <= _DISTINCT_SHARE * sample.num_rows
            ):
                out.append(field.name)
        return out or False

    def close(self) -> int:
        """Write what is left and the footer, and return the file's size in bytes.

        Raises:
            StorageError: the storage refused; the file is no base file then and is removed.
        """
        try:
            while self._gathered:
                self._flush(whole=True)
            if self._writer is None:
                self._writer = self._parquet(None)
            self._writer.add_key_value_metadata({**self._entries, **self.observer.finish()})
            self._writer.close()
            size = int(self._sink.tell())
            self._sink.close()
        except OSError as e:
            self.abort()
            raise self._refused(e) from e
        self._open = False
        return size

    def abort(self) -> None:
        """Drop the file; nothing happens if it is closed."""
        if not self._open:
            return
        self._open = False
        self._gathered = []
        # Arrow's writer would write a footer when it is collected: the sink goes first.
        try:
            self._sink.close()
        except OSError:
            pass  # the file is removed below, whatever could not be flushed to it
        self._storage.delete(self._path)

    def __enter__(self) -> BaseFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort()
        elif self._open:
            self.close()

    def _refused(self, error: OSError) -> StorageError:
        return StorageError(
            f"the storage refused: {str(error).splitlines()[0]}",
            table=self._storage.uri,
            file=self._path,
            remedy="see that the storage has space and is reachable, then run the write again.",
        )


def _leaves(kind: pa.DataType, path: str) -> list[str]:
    """Parquet's column paths of a nested type's leaves."""
    if pa.types.is_struct(kind):
        return [p for i in range(kind.num_fields) for p in _leaves(kind.field(i).type, f"{path}.{kind.field(i).name}")]
    if pa.types.is_list(kind):
        return _leaves(kind.value_type, f"{path}.list.element")
    if pa.types.is_map(kind):
        return [f"{path}.key_value.key", *_leaves(kind.item_type, f"{path}.key_value.value")]
    return [path]


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    """Tables in one schema: where only some have a column as a dictionary, all get it plain."""
    first = tables[0].schema
    if all(t.schema.equals(first) for t in tables):
        return tables
    mixed = {
        name for i, name in enumerate(first.names) if len({str(t.schema.field(i).type) for t in tables}) > 1
    }
    out = []
    for table in tables:
        for i, name in enumerate(table.schema.names):
            kind = table.schema.field(i).type
            if name in mixed and pa.types.is_dictionary(kind):
                table = table.set_column(i, pa.field(name, kind.value_type), table.column(i).cast(kind.value_type))
        out.append(table)
    base = out[0].schema
    return [t if t.schema.equals(base) else t.cast(base) for t in out]
