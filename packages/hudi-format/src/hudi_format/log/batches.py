"""Records of data blocks as Arrow batches, whatever their content is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.records import KEY_FIELD, with_keys
from hudi_format.log.blocks import BlockType, LogBlock
from hudi_format.log.data_block import read_avro
from hudi_format.log.parquet_content import check_content, fitted, open_content, unreadable
from hudi_format.parquet.reader import has_int96

BATCH_ROWS = 65536


class BlockDecoder:
    """Decodes data blocks into the columns that a reader wants; schemas that blocks share are compiled once.

    Args:
        reader_schema: Avro schema of the columns, JSON text; each block's own by default.  Fields are matched by
            name, aliases and defaults count.
        schema: Arrow names and types of the columns, instead of or beside `reader_schema`.  A column that a block
            does not have is null.
        columns: names of those to give, in this order; all by default.
        batch_rows: rows of a batch at most.
        key_field: of HFile blocks: the field of text that stands in the HFile's keys only; filled in again where it
            is among the columns, and empty.
    """

    def __init__(
        self,
        reader_schema: str | None = None,
        *,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        key_field: str = KEY_FIELD,
    ) -> None:
        self._reader_schema, self._schema = reader_schema, schema
        self._columns = columns
        self._batch_rows = batch_rows
        self._key_field = key_field
        self._decoders: dict[str, Decoder] = {}

    def batches(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.RecordBatch]:
        """The records of one data or CDC block, in its order.

        Args:
            content: as `LogFileReader.content` gives it.

        Raises:
            CorruptFileError: bytes that are no record; with the file, the instant and the place in the file.
            SchemaError, MissingColumnError: the records do not fit what is wanted.
            UnsupportedError: a content version that is not known.
        """
        try:
            if block.type is BlockType.PARQUET_DATA:
                yield from self._parquet(block, content)
            elif block.type is BlockType.HFILE_DATA:
                yield from self._hfile(block, content)
            else:
                yield from self._avro(block, content)
        except HudiError as e:
            raise block.placed(e) from None

    def _decoder(self, block: LogBlock) -> Decoder:
        found = self._decoders.get(block.schema)
        if found is None:
            found = Decoder(block.schema, self._reader_schema, self._columns, self._schema)
            self._decoders[block.schema] = found
        return found

    def _avro(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.RecordBatch]:
        records = read_avro(block, content)
        decoder = self._decoder(block)
        for first in range(0, len(records), self._batch_rows):
            rows = slice(first, first + self._batch_rows)
            yield _decode(decoder, block, content, records.offsets[rows], records.lengths[rows], first)

    def _hfile(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.RecordBatch]:
        decoder = self._decoder(block)
        data = memoryview(content).cast("B")
        file = HFileReader.from_buffer(data, path=block.file, offset=block.content_offset)
        for batch in file.batches():
            keys, values = batch.column(0), batch.column(1)
            _, places, bytes_ = values.buffers()
            ends = np.frombuffer(places, np.int32)[values.offset : values.offset + len(values) + 1]
            offsets = ends[:-1].astype(np.int64)
            lengths = np.diff(ends).astype(np.int64)
            source = bytes_ if bytes_ is not None and bytes_.size else pa.py_buffer(b"\0")
            out = _decode(decoder, block, source, offsets, lengths, 0)
            try:
                out = with_keys(out, keys, self._key_field)
            except CorruptFileError as e:
                raise block.broken(e.message, block.content_offset) from None
            for first in range(0, len(out), self._batch_rows):
                yield out.slice(first, self._batch_rows)

    def _parquet(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.RecordBatch]:
        target = self._target(block)
        try:
            file, left = open_content(block, content)
            there = set(file.schema_arrow.names)
            stored = [n for n in target.names if n in there]
            naive = has_int96(file)
            found = file.iter_batches(self._batch_rows, columns=stored, use_threads=False)
            while (batch := next(found, None)) is not None:
                check_content(block, file, batch)
                left -= len(batch)
                yield fitted(block, batch, target, naive_is_utc=naive)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
            raise unreadable(block, e) from e
        if left and stored:
            raise block.broken(f"a Parquet content with {left} rows less than it says", block.content_offset)

    def _target(self, block: LogBlock) -> pa.Schema:
        """Names and types of the columns wanted of a block, as an Avro block's decoder has them."""
        return self._decoder(block).schema


def _decode(
    decoder: Decoder,
    block: LogBlock,
    data: pa.Buffer,
    offsets: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    lengths: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    first: int,
) -> pa.RecordBatch:
    try:
        return decoder.decode(data, offsets, lengths)
    except CorruptFileError as e:
        record, offset = e.details.get("record", 0), e.details.get("offset", 0)
        number = first + record if isinstance(record, int) else first
        place = block.content_offset
        if block.type is not BlockType.HFILE_DATA and isinstance(offset, int):
            place += offset
        raise block.broken(f"record {number}: {e.message}", place) from e


def data_block_batches(
    block: LogBlock, content: pa.Buffer, reader_schema: str | None = None, *, schema: pa.Schema | None = None
) -> Iterator[pa.RecordBatch]:
    """The records of one data block; a `BlockDecoder` for one block only."""
    return BlockDecoder(reader_schema, schema=schema).batches(block, content)
