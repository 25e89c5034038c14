"""Encoder of log block contents and frames, as Apache Hudi 0.15 writes them.

Source: HoodieLogFormatWriter, HoodieAvroDataBlock and HoodieDeleteBlock (Hudi format, "Log file format").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.sizes import size_of
from hudi_format.avro.encoder import Encoder
from hudi_format.errors import MissingColumnError, OptionError, RecordKeyError, SchemaError
from hudi_format.hfile.writer import hfile_bytes
from hudi_format.log import _delete, _scan
from hudi_format.log.block import FORMAT_VERSION, MAGIC, BlockType, HeaderKey
from hudi_format.log.data_block import WRITTEN_VERSION
from hudi_format.log.delete_block import AVRO_VERSION, OrderingType
from hudi_format.log.parquet_block import ParquetRows
from hudi_format.schema.casts import convert, stored_leaf, unwrapped
from hudi_format.schema.meta_fields import RECORD_KEY

_LONGEST_BLOCK = 0x7FFFFFFF  # Apache Hudi reads a block's size as an int
_TEXT_TYPES = (OrderingType.STRING, OrderingType.BYTES, OrderingType.DECIMAL)


def frame(kind: BlockType, header: Mapping[int, str], content_length: int) -> tuple[bytes, bytes]:
    """Bytes before and after a block content of this length.

    Raises:
        ValueError: a block of 2 GiB or more, a type that is none or CORRUPT, or a header entry that has no number
            or no text; no reader takes them.
    """
    if BlockType(kind) is BlockType.CORRUPT:
        raise ValueError("CORRUPT blocks are never written; scans report damaged bytes with this type")
    entries = struct.pack(">i", len(header))
    for key, text in header.items():
        if not isinstance(text, str):
            raise ValueError(f"the header entry {key} must be text, not {text!r}")
        data = text.encode()
        entries += struct.pack(">ii", HeaderKey(key), len(data)) + data
    head = struct.pack(">ii", FORMAT_VERSION, kind) + entries + struct.pack(">q", content_length)
    size = len(head) + content_length + 4 + 8
    if size > _LONGEST_BLOCK:
        raise ValueError(f"a block of {size} bytes; at most {_LONGEST_BLOCK} are readable")
    return MAGIC + struct.pack(">q", size) + head, struct.pack(">iq", 0, size + len(MAGIC))


def avro_content(data: Any, offsets: npt.NDArray[np.int64]) -> memoryview:
    """Content of an Avro or CDC data block.

    Args:
        data: Avro datums one after another.
        offsets: where each begins, and where the last one ends; int64, one more than there are records.
    """
    count = len(offsets) - 1
    out = np.empty(8 + 4 * count + int(offsets[-1] - offsets[0]), np.uint8)
    out[:8] = np.frombuffer(struct.pack(">ii", WRITTEN_VERSION, count), np.uint8)
    _scan.join(memoryview(data).cast("B"), np.ascontiguousarray(offsets, np.int64), out[8:])
    return out.data


def delete_content(
    keys: pa.Array | pa.ChunkedArray,
    partitions: pa.Array | pa.ChunkedArray | None = None,
    ordering: pa.Array | pa.ChunkedArray | None = None,
) -> bytes:
    """Content of a delete block of version 3.

    Args:
        keys: record keys, text in any of Arrow's layouts, none of them null.
        partitions: their partition paths, text; None where the table has no partitions ("").
        ordering: their ordering values; None, and null for one record, stand for a delete without, which wins
            over all that was written before it.

    Raises:
        RecordKeyError: a key that is null.
        SchemaError: ordering values of a type that a delete cannot have, keys or partition paths that are no text,
            or not as many of one as of the other.
    """
    if keys.null_count:
        raise RecordKeyError("a delete has no record key")
    rows = len(keys)
    for what, column in (("partition paths", partitions), ("ordering values", ordering)):
        if column is not None and len(column) != rows:
            raise SchemaError(f"{rows} deletes, but {len(column)} {what}")
    ordering = None if ordering is None else _stored_ordering(ordering)
    key_data, key_offsets = _texts(convert(one_array(keys), pa.string(), "record key"))
    parts = (
        pa.repeat("", rows)
        if partitions is None
        else convert(one_array(partitions), pa.string(), "partition")
    )
    part_data, part_offsets = _texts(parts)
    valid = np.asarray(parts.is_valid()).astype(np.uint8)
    # Apache Hudi's default: the int 0, even where the ordering field has another type.
    branches = np.full(rows, OrderingType.INT, np.uint8)
    numbers = np.zeros(rows, np.int64)
    text_data, text_offsets = np.zeros(1, np.uint8), np.zeros(rows + 1, np.int32)
    if ordering is not None and ordering.null_count < rows:
        kind = _ordering_type(ordering.type)
        present = np.asarray(ordering.is_valid())
        branches[present] = kind
        if kind in _TEXT_TYPES:
            text_data, text_offsets = _texts(
                _decimal_bytes(ordering) if kind is OrderingType.DECIMAL else ordering
            )
        else:
            numbers[present] = _numbers(kind, ordering.drop_null())
    room = 20 + 40 * rows + len(key_data) + len(part_data) + len(text_data)
    out = np.empty(room, np.uint8)
    length = _delete.encode(
        key_data, key_offsets, part_data, part_offsets, valid, branches, numbers, text_data, text_offsets, out
    )
    return struct.pack(">ii", AVRO_VERSION, length) + out[:length].tobytes()


def _stored_ordering(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Ordering values in their stored type."""
    kind = stored_leaf(unwrapped(column.type))
    return one_array(column if kind is None else convert(column, kind, "ordering value"))


def _texts(array: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Bytes and offsets of texts or binaries, at least one byte."""
    array = array.cast(pa.binary()) if not pa.types.is_binary(array.type) else array
    _, offsets, data = array.buffers()
    where = (
        np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1] if offsets else None
    )
    if where is None or len(where) == 0:
        where = np.zeros(1, np.int32)
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return bytes_, np.ascontiguousarray(where)


def _ordering_type(kind: pa.DataType) -> OrderingType:
    t = pa.types
    if t.is_boolean(kind):
        return OrderingType.BOOLEAN
    if t.is_int8(kind) or t.is_int16(kind) or t.is_int32(kind):
        return OrderingType.INT
    if t.is_int64(kind):
        return OrderingType.LONG
    if t.is_float32(kind):
        return OrderingType.FLOAT
    if t.is_float64(kind):
        return OrderingType.DOUBLE
    if t.is_string(kind):
        return OrderingType.STRING
    if t.is_binary(kind):
        return OrderingType.BYTES
    if t.is_date32(kind):
        return OrderingType.DATE
    if t.is_decimal128(kind):
        return OrderingType.DECIMAL
    if t.is_timestamp(kind):
        return OrderingType.TIMESTAMP_MICROS
    raise SchemaError(f"a delete cannot have an ordering value of type {kind}", source=str(kind))


def _numbers(kind: OrderingType, values: pa.Array) -> npt.NDArray[np.int64]:
    if kind is OrderingType.FLOAT:
        bits: npt.NDArray[np.float32] = values.to_numpy(zero_copy_only=False)
        return bits.view(np.uint32).astype(np.int64)
    if kind is OrderingType.DOUBLE:
        return np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).view(np.int64)
    if kind is OrderingType.TIMESTAMP_MICROS:
        values = values.cast(pa.timestamp("us", values.type.tz))
    if kind is OrderingType.DATE:
        values = values.cast(pa.int32())
    out: npt.NDArray[np.int64] = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return out


def _decimal_bytes(values: pa.Array) -> pa.Array:
    """Unscaled values of scale 15 as minimal big-endian bytes."""
    try:
        exact = pc.cast(values, pa.decimal128(30, 15))
    except pa.ArrowInvalid as e:
        raise SchemaError(f"a delete's ordering value does not fit decimal(30,15): {e}") from e
    out: list[bytes | None] = []
    for v in exact.to_pylist():
        if v is None:
            out.append(None)
            continue
        sign, digits, _ = v.as_tuple()
        number = int("".join(map(str, digits))) * (-1 if sign else 1)
        out.append(
            number.to_bytes(((number if number >= 0 else ~number).bit_length() + 8) // 8, "big", signed=True)
        )
    return pa.array(out, pa.binary())


# Rows as contents of data blocks of the type that a writer chose.
#
# Source: `hoodie.logfile.data.block.format` (HoodieWriteConfig.getLogDataBlockFormat, HoodieAppendHandle.getBlock) and
# HoodieAvroDataBlock, HoodieParquetDataBlock and HoodieHFileDataBlock of Apache Hudi 0.15.

BLOCK_FORMAT = "hoodie.logfile.data.block.format"
_TYPES = {
    "avro": BlockType.AVRO_DATA,
    "parquet": BlockType.PARQUET_DATA,
    "hfile": BlockType.HFILE_DATA,
}
# Rows are encoded so many at a time; blocks are cut between records.
_STEP_BYTES = 32 << 20


def block_type(chosen: str | None) -> BlockType:
    """Type of data blocks for the option's value, in any case.

    Args:
        chosen: the option; None and "" are Apache Hudi's default beside Parquet and ORC, Avro.

    Raises:
        OptionError: no such type.
    """
    kind = _TYPES.get((chosen or "avro").lower())
    if kind is None:
        raise OptionError(
            f"{BLOCK_FORMAT} is {chosen!r}", remedy=f"use one of {', '.join(_TYPES)}.", option=BLOCK_FORMAT
        )
    return kind


def contents(
    rows: pa.Table, kind: BlockType, schema: str, *, most: int, codec: str = "gzip"
) -> Iterator[pa.Buffer | bytes | memoryview]:
    """Contents of blocks with these rows, in order; in an HFile, in key order.

    Args:
        rows: the fields of `schema`, in any order.
        kind: AVRO_DATA, PARQUET_DATA or HFILE_DATA.
        schema: Avro schema of the block, JSON text.
        most: bytes of a content, about.
        codec: of Parquet pages.

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
            yield _hfile(batch, encoder, schema)
        else:
            data, offsets = encoder.encode(batch)
            yield from avro_contents(data, offsets, most)


def avro_contents(data: Any, offsets: npt.NDArray[np.int64], most: int) -> Iterator[memoryview]:
    """Contents of Avro or CDC data blocks, cut between records.

    Args:
        data, offsets: as of `avro_content`.
        most: bytes of a content, about.
    """
    first, rows = 0, len(offsets) - 1
    ends = np.asarray(offsets, np.int64) + 4 * np.arange(rows + 1)
    while first < rows:
        fits = int(np.searchsorted(ends, ends[first] + most, "right")) - 1
        last = min(max(fits, first + 1), rows)
        yield avro_content(data, offsets[first : last + 1])
        first = last


def _hfile(batch: pa.RecordBatch, encoder: Encoder, schema: str) -> bytes:
    if RECORD_KEY not in batch.schema.names:
        raise MissingColumnError(
            f"an HFile is sorted by {RECORD_KEY}, which the rows lack", column=RECORD_KEY
        )
    # HFiles order keys by their bytes; the later one of two equal keys comes after the other.
    keys = batch.column(RECORD_KEY).cast(pa.large_binary())
    data, offsets = encoder.encode(batch)
    values = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), batch.num_rows, [None, pa.py_buffer(offsets), data]
    )
    order = pc.sort_indices(keys)
    return hfile_bytes(keys.take(order), values.take(order), schema=schema, unique=False)
