"""The content of a Parquet data block, whose pages Apache Hudi writes without checksums."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import HudiError, SchemaError
from hudi_format.log.blocks import LogBlock
from hudi_format.log.data_block import block_fields
from hudi_format.parquet.footer import check_columns, long_decimal
from hudi_format.parquet.stated import missing_column, stated_schema
from hudi_format.parquet.utf8 import check_text, texts_as_bytes
from hudi_format.schema.evolve import Batch, conform


def open_content(block: LogBlock, content: pa.Buffer) -> tuple[pq.ParquetFile, int]:
    """The file within a block, which has what the block's schema says, and its number of rows.

    Raises:
        CorruptFileError: it contradicts itself or the block's schema.
        pa.ArrowException, OSError: bytes that are no Parquet.
    """
    file = pq.ParquetFile(pa.BufferReader(content))
    stored = {f.name: f.type for f in file.schema_arrow}
    for name, kind in block_fields(block).items():
        if name not in stored:
            raise block.broken(f"a Parquet content without column {name}", block.content_offset)
        if stored[name] == pa.null() and kind not in ("null", ["null"]):
            raise block.broken(f"a Parquet content whose column {name} has no type", block.content_offset)
    try:
        check_columns(file.schema_arrow)
    except ValueError as e:
        raise block.broken(f"a Parquet content of which {e}", block.content_offset) from None
    stated = stated_schema(block.schema.encode())
    if stated is not None and (missing := missing_column(file.schema_arrow, stated)) is not None:
        raise block.broken(f"a Parquet content without column {missing}", block.content_offset)
    # Arrow reads what the row groups say: one that is damaged would be rows that are missing.
    metadata = file.metadata
    groups = sum(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    if groups != metadata.num_rows:
        what = f"a Parquet content of {metadata.num_rows} rows with {groups} in its row groups"
        raise block.broken(what, block.content_offset)
    return file, int(metadata.num_rows)


def check_content(block: LogBlock, file: pq.ParquetFile, rows: pa.Table | pa.RecordBatch) -> None:
    """Raises: CorruptFileError: a text that is not UTF-8."""
    try:
        check_text(rows, texts_as_bytes(file))
    except ValueError as e:
        raise block.broken(f"a Parquet content of which {e}", block.content_offset) from None


def unreadable(block: LogBlock, error: Exception) -> HudiError:
    """The error for a content that Arrow's reader refuses: UnsupportedError where that is no damage."""
    wide = long_decimal(error)
    if wide is not None:
        return wide.at(file=block.file, instant=block.instant)
    return block.broken(f"a Parquet content that cannot be read ({error})", block.content_offset)


def fitted(block: LogBlock, rows: Batch, schema: pa.Schema, *, naive_is_utc: bool = False) -> Batch:
    """Rows of the content with the columns and types that are wanted.

    Raises:
        CorruptFileError: they do not fit what the block's own schema says of them.
        SchemaError: they do, but not what is wanted.
    """
    try:
        return conform(rows, schema, naive_is_utc=naive_is_utc)
    except SchemaError as e:
        own = Decoder(block.schema).schema
        there = [f for f in own if f.name in rows.schema.names]
        try:
            conform(rows.select([f.name for f in there]), pa.schema(there), naive_is_utc=naive_is_utc)
        except SchemaError as other:
            what = f"a Parquet content that contradicts the block's schema: {other.message}"
            raise block.broken(what, block.content_offset) from e
        raise
