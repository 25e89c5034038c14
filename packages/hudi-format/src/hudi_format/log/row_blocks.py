"""Rows as contents of data blocks of the type that a writer chose.

Source: `hoodie.logfile.data.block.format` (HoodieWriteConfig.getLogDataBlockFormat, HoodieAppendHandle.getBlock) and
HoodieAvroDataBlock, HoodieParquetDataBlock and HoodieHFileDataBlock of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow_size import size_of
from hudi_format.avro.encoder import Encoder
from hudi_format.errors import MissingColumnError, OptionError
from hudi_format.hfile.writer import hfile_bytes
from hudi_format.log.blocks import BlockType
from hudi_format.log.encode import avro_content
from hudi_format.log.parquet_rows import ParquetRows
from hudi_format.schema.meta_columns import RECORD_KEY

BLOCK_FORMAT = "hoodie.logfile.data.block.format"
_TYPES = {
    "avro": BlockType.AVRO_DATA,
    "parquet": BlockType.PARQUET_DATA,
    "hfile": BlockType.HFILE_DATA,
}
# Rows are encoded so many at a time; blocks are cut between records.
_STEP_BYTES = 32 << 20


def block_type(chosen: str | None, base_file_format: str = "PARQUET") -> BlockType:
    """The type of data blocks that the option asks for, in any case of letters.

    Args:
        chosen: the option; None and "" leave it to the format of the base files: HFile beside HFiles, else Avro.

    Raises:
        OptionError: no such type.
    """
    if not chosen:
        return BlockType.HFILE_DATA if base_file_format.upper() == "HFILE" else BlockType.AVRO_DATA
    kind = _TYPES.get(chosen.lower())
    if kind is None:
        raise OptionError(
            f"{BLOCK_FORMAT} is {chosen!r}", remedy=f"use one of {', '.join(_TYPES)}.", option=BLOCK_FORMAT
        )
    return kind


def contents(
    rows: pa.Table, kind: BlockType, schema: str, *, most: int, codec: str = "gzip", key: str = RECORD_KEY
) -> Iterator[pa.Buffer | bytes | memoryview]:
    """Contents of blocks that hold these rows, in their order; within an HFile in that of their keys.

    Args:
        rows: the fields of `schema`, in any order.
        kind: AVRO_DATA, PARQUET_DATA or HFILE_DATA.
        schema: Avro schema of the block, JSON text.
        most: bytes of a content, about.
        codec: of Parquet pages.
        key: column that an HFile is sorted by.

    Raises:
        SchemaError: a value that does not fit the schema.
        RecordKeyError, MissingColumnError: rows without keys in an HFile, or without a column of the schema.
        UnsupportedError: a type of column that Parquet blocks are not written with.
    """
    step = max(1, min(most, _STEP_BYTES if kind is BlockType.AVRO_DATA else most))
    count = max(1, rows.num_rows * step // max(1, size_of(rows)))
    if kind is BlockType.PARQUET_DATA:
        parquet = ParquetRows(schema, rows.schema)
        for start in range(0, rows.num_rows, count):
            (batch,) = rows.slice(start, count).combine_chunks().to_batches()
            yield parquet.content(batch, codec)
        return
    encoder = Encoder(schema, rows.schema)
    for start in range(0, rows.num_rows, count):
        piece = rows.slice(start, count)
        (batch,) = piece.combine_chunks().to_batches()
        if kind is BlockType.HFILE_DATA:
            yield _hfile(batch, encoder, schema, key)
        else:
            data, offsets = encoder.encode(batch)
            yield from _cut(data, offsets, most)


def _cut(data: pa.Buffer, offsets: np.ndarray, most: int) -> Iterator[memoryview]:
    first, rows = 0, len(offsets) - 1
    ends = offsets + 4 * np.arange(rows + 1)
    while first < rows:
        fits = int(np.searchsorted(ends, ends[first] + most, "right")) - 1
        last = min(max(fits, first + 1), rows)
        yield avro_content(data, offsets[first : last + 1])
        first = last


def _hfile(batch: pa.RecordBatch, encoder: Encoder, schema: str, key: str) -> bytes:
    if key not in batch.schema.names:
        raise MissingColumnError(f"an HFile is sorted by {key}, which the rows do not have", column=key)
    # HFiles order keys by their bytes; the later one of two equal keys comes after the other.
    keys = batch.column(key).cast(pa.large_binary())
    data, offsets = encoder.encode(batch)
    values = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), batch.num_rows, [None, pa.py_buffer(offsets), data]
    )
    order = pc.sort_indices(keys)
    return hfile_bytes(keys.take(order), values.take(order), schema=schema, unique=False)


__all__ = ["BLOCK_FORMAT", "block_type", "contents"]
