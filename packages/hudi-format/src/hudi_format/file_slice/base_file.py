"""Base files other than Parquet (ORC, HFile), with the interface of `ParquetFile`.

ORC: a stripe is what a row group is to Parquet; pyarrow shows no statistics of stripes, so none is left out.
HFile: the metadata table's; a whole file is one group, its records are decoded for the wanted columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.orc as po

from hudi_format.avro.decoder import known_decoder
from hudi_format.errors import CorruptFileError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.records import decode_entries
from hudi_format.parquet.footer import check_columns
from hudi_format.parquet.utf8 import check_text
from hudi_format.schema.evolution import conform
from hudi_format.storage.protocol import Storage

ORC, HFILE = ".orc", ".hfile"


class OtherBaseFile(Protocol):
    """An open base file without statistics."""

    @property
    def names(self) -> Sequence[str]:
        """Columns of the file."""
        ...

    @property
    def rows(self) -> int: ...

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows, in the file's order.

        Raises:
            CorruptFileError, pa.ArrowInvalid, OSError: damage.
        """
        ...

    def close(self) -> None: ...


def open_other(
    storage: Storage, path: str, schema: pa.Schema, *, keys: Iterable[str] | None = None
) -> OtherBaseFile | None:
    """A base file other than Parquet; None for Parquet.

    Args:
        schema: the wanted columns.
        keys: of an HFile, those whose records are wanted, in the order of keys; None for all.

    Raises:
        FileNotFoundError, CorruptFileError, pa.ArrowInvalid, OSError: it is not there, or damaged.
        UnsupportedError: an HFile with something that Apache Hudi never writes.
    """
    if path.endswith(ORC):
        return _Orc(storage, path, schema)
    return _HFile(storage, path, schema, keys) if path.endswith(HFILE) else None


class _Orc:
    def __init__(self, storage: Storage, path: str, schema: pa.Schema) -> None:
        self._source = storage.open_input(path)
        self._schema = schema
        try:
            self._file = po.ORCFile(self._source)
            self._own: pa.Schema = self._file.schema
            try:
                check_columns(self._own)
            except ValueError as e:
                raise CorruptFileError(f"the base file cannot be read as ORC: {e}") from None
        except BaseException:
            self._source.close()
            raise

    @property
    def names(self) -> Sequence[str]:
        return list(self._own.names)

    @property
    def rows(self) -> int:
        return int(self._file.nrows)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        rows = 0
        wanted = pa.schema([self._schema.field(n) for n in columns])
        for stripe in range(self._file.nstripes):
            batch = self._file.read_stripe(stripe, columns=list(columns))
            rows += batch.num_rows
            try:
                check_text(batch)
            except ValueError as e:
                raise CorruptFileError(f"the base file cannot be read as ORC: {e}") from None
            # ORC's timestamps have no zone: they are Avro's, which mean an instant.
            table = conform(pa.Table.from_batches([batch]), wanted, naive_is_utc=True)
            yield from table.to_batches(max_chunksize=batch_rows)
        if rows != self.rows:
            raise CorruptFileError(f"the base file's footer says {self.rows} rows, but it has {rows}")

    def close(self) -> None:
        self._source.close()


class _HFile:
    def __init__(self, storage: Storage, path: str, schema: pa.Schema, keys: Iterable[str] | None) -> None:
        self._schema = schema
        self._keys = keys
        self._file = HFileReader.open(storage, path)
        if self._file.schema is None:
            raise CorruptFileError("an HFile without the schema of its records")

    @property
    def names(self) -> Sequence[str]:
        return list(self._schema.names)

    @property
    def rows(self) -> int:
        return self._file.entry_count

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        decoder = known_decoder(self._file.schema or "", columns=columns, arrow_schema=self._schema)
        found = self._file.batches() if self._keys is None else self._file.lookup(self._keys).to_batches()
        for entries in found:
            for start in range(0, entries.num_rows, batch_rows):
                yield decode_entries(entries.slice(start, batch_rows), decoder, keys_agree=True)

    def close(self) -> None:
        pass
