"""Decoder of data blocks of all kinds into the wanted columns.

An HFile block's value is the record without its key, which stands in the entry's key (field `key`, where the record
has one and it is empty).

Source: HoodieAvroDataBlock, HoodieParquetDataBlock and HoodieHFileDataBlock of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.records import KEY_FIELD, decode_entries, with_keys
from hudi_format.log.block import BlockType, LogBlock
from hudi_format.log.data_block import block_fields, read_avro
from hudi_format.log.parquet_block import check_content, fitted, open_content, unreadable
from hudi_format.parquet.reader import has_int96
from hudi_format.schema.avro import from_avro
from hudi_format.schema.evolution import conform
from hudi_format.schema.internal_schema import ReadEvolution, Reading


class BlockRows:
    """Reader of a slice's data blocks.

    Args:
        schema: the wanted columns, all nullable.
        evolution: how older blocks are read by column id; None where the table has no schema history.
        step: bytes of a block that are turned into rows at once, about.
        float_digits: floats of Avro records that are doubles now keep the digits that they print with.
        changed_digits: and those of blocks that are read by column id.
    """

    def __init__(
        self,
        schema: pa.Schema,
        evolution: ReadEvolution | None,
        step: int,
        float_digits: bool = False,
        changed_digits: bool = True,
    ) -> None:
        self._schema = schema
        self._evolution = evolution
        self._step = step
        self._float_digits = float_digits
        self._changed_digits = changed_digits
        self._readings: dict[str, Reading | None] = {}
        self._decoders: dict[tuple[str, str], Decoder] = {}
        self._floats: dict[tuple[str, str], pa.Schema] = {}

    def read(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.Table]:
        """The block's rows in order, as tables of the wanted columns.

        Raises:
            CorruptFileError: the content is damaged.
            SchemaError: a column that does not fit the wanted one.
            UnsupportedError: a kind of block that holds no rows of a table.
        """
        reading = self._reading(block.instant)
        if reading is None:
            yield from self._rows(block, content, self._schema, "")
            return
        stored = reading.stored(self._schema, logged=True)
        for rows in self._rows(block, content, stored, block.instant):
            yield reading.given(rows, self._schema, logged=True, logged_digits=self._changed_digits)

    def columns(self, block: LogBlock) -> frozenset[str]:
        """Wanted columns that the block's records have; partial updates lack others.

        Through a change of the schema partial updates stay partial.  Apache Hudi 1.0.2 and 1.2.0 make whole records
        of those that are older than it, with nulls in all other columns, the record key's own among them: rows are
        lost.  That is not followed.

        Raises:
            CorruptFileError: its schema is none.
        """
        reading = self._reading(block.instant)
        stored = frozenset(block_fields(block))
        if reading is None:
            return stored & frozenset(self._schema.names)
        return reading.columns(self._schema.names, stored)

    def _rows(
        self, block: LogBlock, content: pa.Buffer, schema: pa.Schema, version: str
    ) -> Iterator[pa.Table]:
        if block.type is BlockType.AVRO_DATA:
            if self._float_digits and '"float"' in block.schema:
                stored = self._with_floats(block.schema, schema, version)
                rows = self._avro(block, content, self._decoder(block.schema, stored, version))
                return (conform(part, schema) for part in rows)
            return self._avro(block, content, self._decoder(block.schema, schema, version))
        if block.type is BlockType.PARQUET_DATA:
            return self._parquet(block, content, schema)
        if block.type is BlockType.HFILE_DATA:
            return self._hfile(block, content, schema, version)
        raise UnsupportedError(
            f"{block.type.name} blocks cannot be merged", remedy="read the table with Apache Hudi."
        )

    def _reading(self, instant: str) -> Reading | None:
        if self._evolution is None:
            return None
        if instant not in self._readings:
            self._readings[instant] = self._evolution.reading(instant)
        return self._readings[instant]

    def _with_floats(self, written: str, schema: pa.Schema, version: str) -> pa.Schema:
        """Cached `with_floats`, for all blocks of one schema."""
        key = (written, version)
        if key not in self._floats:
            self._floats[key] = with_floats(schema, written)
        return self._floats[key]

    def _decoder(self, written: str, schema: pa.Schema, version: str) -> Decoder:
        """Decoder of a schema.

        `version` names the instant whose reading made `schema`, "" where that is the wanted one.
        """
        key = (written, version)
        if key not in self._decoders:
            self._decoders[key] = Decoder(written, arrow_schema=schema)
        return self._decoders[key]

    def _avro(self, block: LogBlock, content: pa.Buffer, decoder: Decoder) -> Iterator[pa.Table]:
        records = read_avro(block, content)
        n = len(records)
        step = max(1, n * self._step // max(1, content.size)) if content.size > self._step else max(1, n)
        for start in range(0, max(1, n), step):
            part = slice(start, start + step)
            batch = decoder.decode(records.data, records.offsets[part], records.lengths[part])
            yield pa.Table.from_batches([batch])

    def _hfile(
        self, block: LogBlock, content: pa.Buffer, schema: pa.Schema, version: str
    ) -> Iterator[pa.Table]:
        file = HFileReader.from_buffer(memoryview(content), path=block.file, offset=block.content_offset)
        decoder = self._decoder(file.schema or block.schema, schema, version)
        for entries in file.batches(min(self._step, 16 << 20)):
            yield pa.Table.from_batches([decode_entries(entries, decoder)])

    def _parquet(self, block: LogBlock, content: pa.Buffer, schema: pa.Schema) -> Iterator[pa.Table]:
        try:
            file, left = open_content(block, content)
            there = set(file.schema_arrow.names)
            columns = [n for n in schema.names if n in there]
            if content.size <= self._step:
                rows = file.read(columns=columns)
                check_content(block, file, rows)
                left -= len(rows)
                yield fitted(block, rows, schema)
            else:
                step = max(1, left * self._step // content.size)
                for batch in file.iter_batches(step, columns=columns):
                    check_content(block, file, batch)
                    left -= len(batch)
                    yield fitted(block, pa.Table.from_batches([batch]), schema)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
            raise unreadable(block, e) from e
        if left and columns:
            raise block.broken(f"a Parquet content with {left} rows less than it says", block.content_offset)


def with_floats(schema: pa.Schema, written: str) -> pa.Schema:
    """`schema` with float for the double columns that are float in a block's records.

    Args:
        written: the block's Avro schema, JSON text.
    """
    own = from_avro(written)
    return pa.schema([f.with_type(_floats(f.type, own.field(f.name).type)) if f.name in own.names else f
                      for f in schema])  # fmt: skip


def _floats(wanted: pa.DataType, own: pa.DataType) -> pa.DataType:
    if pt.is_float64(wanted) and pt.is_float32(own):
        return own
    if pt.is_struct(wanted) and pt.is_struct(own):
        known = {f.name: f.type for f in own}
        return pa.struct([f.with_type(_floats(f.type, known.get(f.name, f.type))) for f in wanted])
    if pt.is_map(wanted) and pt.is_map(own):
        item = wanted.item_field
        return pa.map_(wanted.key_field, item.with_type(_floats(item.type, own.item_type)))
    if pt.is_list(wanted) and pt.is_list(own):
        element = wanted.value_field
        return pa.list_(element.with_type(_floats(element.type, own.value_type)))
    return wanted


# Records of data blocks as Arrow batches, whatever their content is made of.

BATCH_ROWS = 65536


class BlockDecoder:
    """Decoder of data blocks for one reader schema; caches compiled schemas.

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
        """Names and types of a block's wanted columns, as an Avro block's decoder has them."""
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
    """The records of one data block, by a `BlockDecoder` for this block only."""
    return BlockDecoder(reader_schema, schema=schema).batches(block, content)
