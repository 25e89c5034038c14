"""Read base files into Arrow: columns by name, in the schema that is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_format.parquet.footer import corrupt, open_parquet
from hudi_format.schema.evolve import conform
from hudi_format.schema.meta_columns import RECORD_KEY
from hudi_format.storage import Storage


def read_table(
    storage: Storage,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    filter: pc.Expression | None = None,
    use_threads: bool = True,
) -> pa.Table:
    """A base file's rows.

    Args:
        columns: those to read, None for all; with `schema`, its columns.
        schema: the wanted columns and types; a column that the file lacks is null.
        filter: only rows for which it is true, over wanted columns.

    Raises:
        MissingFileError, CorruptFileError: no file, or no Parquet file.
        SchemaError: the file's types do not fit `schema`.
    """
    with open_parquet(storage, path, pre_buffer=not storage.is_local) as file:
        wanted = _present(file, columns if schema is None else schema.names)
        try:
            table = file.read(columns=wanted, use_threads=use_threads)
        except (pa.ArrowInvalid, OSError) as e:
            raise corrupt(storage, path, e) from None
        if schema is not None:
            table = conform(_with_rows(table, file.metadata.num_rows), schema)
    return table if filter is None else table.filter(filter)


def _present(file: pq.ParquetFile, columns: Sequence[str] | None) -> list[str] | None:
    if columns is None:
        return None
    there = set(file.schema_arrow.names)
    return [c for c in columns if c in there]


def _with_rows(table: pa.Table, rows: int) -> pa.Table:
    """A table read without any column has forgotten how many rows it has."""
    if table.num_columns or not rows:
        return table
    return pa.table({"": pa.nulls(rows)})


def iter_batches(
    storage: Storage,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    batch_rows: int = 65536,
    row_groups: Sequence[int] | None = None,
    use_threads: bool = False,
) -> Iterator[pa.RecordBatch]:
    """A base file's rows in batches, one row group in memory at a time.

    Raises:
        as `read_table`, while iterating.
    """
    with open_parquet(storage, path, pre_buffer=not storage.is_local) as file:
        wanted = _present(file, columns if schema is None else schema.names)
        groups = range(file.metadata.num_row_groups) if row_groups is None else row_groups
        for group in groups:
            rows = file.metadata.row_group(group).num_rows
            if schema is not None and not wanted:
                yield conform(pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""]), schema)
                continue
            try:
                for batch in file.iter_batches(
                    batch_rows, row_groups=[group], columns=wanted, use_threads=use_threads
                ):
                    yield batch if schema is None else conform(batch, schema)
            except (pa.ArrowInvalid, OSError) as e:
                raise corrupt(storage, path, e) from None


def iter_row_groups(
    storage: Storage,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    dictionary_columns: Sequence[str] = (),
    use_threads: bool = False,
) -> Iterator[pa.Table]:
    """A base file row group by row group.

    Args:
        dictionary_columns: text columns to hand out as dictionaries, without decoding each row.

    Raises:
        as `read_table`, while iterating.
    """
    with open_parquet(
        storage, path, pre_buffer=not storage.is_local, read_dictionary=list(dictionary_columns)
    ) as file:
        wanted = _present(file, columns)
        for group in range(file.metadata.num_row_groups):
            try:
                yield file.read_row_group(group, columns=wanted, use_threads=use_threads)
            except (pa.ArrowInvalid, OSError) as e:
                raise corrupt(storage, path, e) from None


def read_keys(storage: Storage, path: str) -> pa.ChunkedArray:
    """The record keys of a base file, in its order; no other column is read.

    Raises:
        as `read_table`.
    """
    with open_parquet(storage, path, pre_buffer=not storage.is_local) as file:
        try:
            return file.read(columns=[RECORD_KEY], use_threads=False).column(RECORD_KEY)
        except (pa.ArrowInvalid, OSError, KeyError) as e:
            raise corrupt(storage, path, e) from None
