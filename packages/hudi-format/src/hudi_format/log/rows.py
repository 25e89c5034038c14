"""The rows of data blocks, of each kind, in the columns that are wanted.

An HFile block's value is the record without its key, which stands in the entry's key (field `key`, where the record
has one and it is empty).

Source: HoodieAvroDataBlock, HoodieParquetDataBlock and HoodieHFileDataBlock of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.records import decode_entries
from hudi_format.log.blocks import BlockType, LogBlock
from hudi_format.log.data_block import block_fields, read_avro
from hudi_format.log.parquet_content import check_content, fitted, open_content, unreadable
from hudi_format.schema.avro import from_avro
from hudi_format.schema.evolve import conform
from hudi_format.schema.history import Evolution, Reading


class BlockRows:
    """Reads the data blocks of a slice.

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
        evolution: Evolution | None,
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
        """The block's rows, in its order, as tables of the wanted columns.

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
        """Which of the wanted columns the records of a block have; the others of partial updates are not theirs.

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
        """As `_decoder` for `with_floats`: once for all blocks of one schema."""
        key = (written, version)
        if key not in self._floats:
            self._floats[key] = with_floats(schema, written)
        return self._floats[key]

    def _decoder(self, written: str, schema: pa.Schema, version: str) -> Decoder:
        """`version` names the instant whose reading made `schema`, "" where that is the wanted one."""
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
    """`schema` with floats in place of the doubles that are floats in a block's records.

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
