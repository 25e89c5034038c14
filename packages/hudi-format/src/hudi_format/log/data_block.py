"""Data blocks: encoded records, and their decoding into the wanted columns.

An Avro or CDC block has a content version, the number of records, and each record after its length; versions 1 and 2
have the same layout as 3, which every release since 0.9 writes.  An HFile block's value is the record without its key,
which stands in the entry's key (field `key`, where the record has one and it is empty).

Source: HoodieAvroDataBlock, HoodieParquetDataBlock and HoodieHFileDataBlock of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_format.avro.decoder import Decoder, known_decoder
from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.records import KEY_FIELD, decode_entries
from hudi_format.log import _scan
from hudi_format.log.block import BlockType, LogBlock
from hudi_format.log.parquet_block import check_content, fitted, open_content, unreadable
from hudi_format.parquet.arrow_file import has_int96
from hudi_format.parquet.reader import pays_threads
from hudi_format.schema.avro import from_avro
from hudi_format.schema.evolution import conform
from hudi_format.schema.internal_schema import ReadEvolution, Reading

WRITTEN_VERSION = 3


@dataclass(frozen=True, slots=True)
class AvroRecords:
    """Encoded Avro records of one block, in the block's schema.

    Attributes:
        data: the block's content.
        offsets, lengths: where in `data` each datum is, in bytes, int64.
    """

    data: pa.Buffer
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)


def read_avro(block: LogBlock, content: pa.Buffer) -> AvroRecords:
    """The records of an Avro or CDC data block.

    Raises:
        CorruptFileError: lengths that do not add up to the content; with file and offset.
        UnsupportedError: a content version that is newer than this package.
    """
    if block.type not in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
        raise ValueError(f"a {block.type.name} block holds no Avro records")
    view = memoryview(content).cast("B")
    start = block.content_offset
    if len(view) < 8:
        raise block.broken("a data block without its version and count", start)
    version = int.from_bytes(view[:4], "big", signed=True)
    count = int.from_bytes(view[4:8], "big", signed=True)
    block.check_version(version, "a data block", WRITTEN_VERSION)
    if count < 0 or count > (len(view) - 8) // 4:
        raise block.broken(f"{count} records declared in a content of {len(view)} bytes", start + 4)
    offsets = np.empty(count, np.int64)
    bad, end = _scan.records(view, 8, offsets)
    if bad >= 0:
        raise block.broken(f"record {bad} of {count} exceeds the block", start + end)
    if end != len(view):
        raise block.broken(f"{len(view) - end} bytes follow the last of {count} records", start + end)
    lengths = np.diff(np.append(offsets, end + 4)) - 4
    return AvroRecords(content, offsets, lengths)


BATCH_ROWS = 65536
# Of an HFile block, whose entries are copied before they are decoded.
_HFILE_BYTES = 16 << 20


class BlockDecoder:
    """Decoder of data blocks for one reader schema; caches compiled schemas.

    Args:
        reader_schema: Avro schema of the columns, JSON text; each block's own by default.  Fields are matched by
            name, aliases and defaults count.
        schema: Arrow names and types of the columns, instead of or beside `reader_schema`.  A column that a block
            does not have is null.
        columns: names of those to give, in this order; all by default.
        batch_rows: rows of a batch at most; None for no limit.
        batch_bytes: bytes of a block that are decoded at once, about; None for no limit.
        key_field: of HFile blocks: the field of text that stands in the HFile's keys only; filled in again where it
            is among the columns, and empty.
    """

    def __init__(
        self,
        reader_schema: str | None = None,
        *,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int | None = BATCH_ROWS,
        batch_bytes: int | None = None,
        key_field: str = KEY_FIELD,
    ) -> None:
        self._reader_schema, self._schema = reader_schema, schema
        self._columns = columns
        self._batch_rows = batch_rows
        self._batch_bytes = batch_bytes
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
        for rows in self.tables(block, content):
            yield from rows.to_batches(max_chunksize=self._batch_rows)

    def tables(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.Table]:
        """The records as tables."""
        try:
            if block.type is BlockType.PARQUET_DATA:
                yield from self._parquet(block, content)
            elif block.type is BlockType.HFILE_DATA:
                yield from self._hfile(block, content)
            else:
                yield from self._avro(block, content)
        except HudiError as e:
            raise block.placed(e) from e.__cause__

    def _decoder(self, written: str) -> Decoder:
        """Decoder of an Avro schema's records."""
        found = self._decoders.get(written)
        if found is None:
            found = known_decoder(written, self._reader_schema, self._columns, self._schema)
            self._decoders[written] = found
        return found

    def _at_once(self, rows: int, size: int) -> int:
        """Number of rows to decode at once, of a content of `size` bytes."""
        if self._batch_bytes is not None and size > self._batch_bytes:
            rows = rows * self._batch_bytes // size
        return max(1, rows if self._batch_rows is None else min(rows, self._batch_rows))

    def _avro(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.Table]:
        records = read_avro(block, content)
        decoder = self._decoder(block.schema)
        step = self._at_once(len(records), content.size)
        for first in range(0, len(records), step):
            part = slice(first, first + step)
            try:
                rows = decoder.decode(records.data, records.offsets[part], records.lengths[part])
            except CorruptFileError as e:
                raise _broken(block, e, first, block.content_offset) from e
            yield pa.Table.from_batches([rows])

    def _hfile(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.Table]:
        data = memoryview(content).cast("B")
        file = HFileReader.from_buffer(data, path=block.file, offset=block.content_offset)
        decoder = self._decoder(file.schema or block.schema)
        first = 0
        for entries in file.batches(min(self._batch_bytes or _HFILE_BYTES, _HFILE_BYTES)):
            try:
                rows = decode_entries(entries, decoder, field=self._key_field)
            except CorruptFileError as e:
                raise _broken(block, e, first) from e
            first += len(entries)
            yield pa.Table.from_batches([rows])

    def _parquet(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.Table]:
        # Where Arrow's types alone are wanted, of whatever can be converted to them.
        target = self._schema
        if target is None or self._reader_schema is not None or self._columns is not None:
            target = self._decoder(block.schema).schema
        try:
            file, left = open_content(block, content)
            there = set(file.schema_arrow.names)
            stored = [n for n in target.names if n in there]
            naive = has_int96(file)
            step = self._at_once(left, content.size)
            threads = pays_threads(left, len(stored))
            if step >= left:
                parts = iter([file.read(columns=stored, use_threads=threads)])
            else:
                found = file.iter_batches(step, columns=stored, use_threads=threads)
                parts = (pa.Table.from_batches([b]) for b in found)
            for rows in parts:
                check_content(block, file, rows)
                left -= len(rows)
                yield fitted(block, rows, target, naive_is_utc=naive)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
            raise unreadable(block, e) from e
        if left and stored:
            raise block.broken(
                f"a Parquet content with {left} rows less than its footer says", block.content_offset
            )


def _broken(
    block: LogBlock, error: CorruptFileError, first: int, start: int | None = None
) -> CorruptFileError:
    """Decoding error with its place in the file.

    Args:
        first: number of the first of the records that were decoded.
        start: where in the file the bytes begin that the decoder's offsets count from; None where they are none of it.
    """
    record, offset = error.details.get("record"), error.details.get("offset")
    what = f"record {first + record}: {error.message}" if isinstance(record, int) else error.message
    inside = offset if start is not None and isinstance(offset, int) else 0
    return block.broken(what, block.content_offset + inside)


class BlockRows:
    """Rows of a slice's data blocks in the table's columns, through schema changes.

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
        self._decoders: dict[tuple[str, str], tuple[pa.Schema, BlockDecoder]] = {}

    def read(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.Table]:
        """The block's rows in order, as tables of the wanted columns.

        Raises:
            CorruptFileError: the content is damaged.
            SchemaError: a column that does not fit the wanted one.
            UnsupportedError: a kind of block that holds no rows of a table.
        """
        if not block.type.has_records:
            raise UnsupportedError(
                f"{block.type.name} blocks are not supported", remedy="read the table with Apache Hudi."
            )
        reading = self._reading(block.instant)
        stored, decoder = self._decoder(block, reading)
        for rows in decoder.tables(block, content):
            rows = conform(rows, stored)
            if reading is not None:
                rows = reading.given(rows, self._schema, logged=True, logged_digits=self._changed_digits)
            yield rows

    def columns(self, block: LogBlock) -> frozenset[str]:
        """Wanted columns that the block's records have; partial updates lack others.

        Through a change of the schema partial updates stay partial.  Apache Hudi 1.0.2 and 1.2.0 make whole records
        of those that are older than it, with nulls in all other columns, the record key's own among them: rows are
        lost.  That is not followed.

        Raises:
            CorruptFileError: its schema is none.
        """
        reading = self._reading(block.instant)
        stored = frozenset(block.fields())
        if reading is None:
            return stored & frozenset(self._schema.names)
        return reading.columns(self._schema.names, stored)

    def _reading(self, instant: str) -> Reading | None:
        if self._evolution is None:
            return None
        if instant not in self._readings:
            self._readings[instant] = self._evolution.reading(instant)
        return self._readings[instant]

    def _decoder(self, block: LogBlock, reading: Reading | None) -> tuple[pa.Schema, BlockDecoder]:
        """Stored columns and their decoder, cached by block schema."""
        by_float = self._float_digits and block.type is BlockType.AVRO_DATA and '"float"' in block.schema
        key = ("" if reading is None else block.instant, block.schema if by_float else "")
        found = self._decoders.get(key)
        if found is None:
            stored = self._schema if reading is None else reading.stored(self._schema, logged=True)
            own = with_floats(stored, block.schema) if by_float else stored
            decoder = BlockDecoder(schema=own, batch_rows=None, batch_bytes=self._step)
            found = self._decoders[key] = stored, decoder
        return found


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
