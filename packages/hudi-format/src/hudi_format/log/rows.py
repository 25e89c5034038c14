"""The rows of data blocks, of each kind, in the columns that are wanted.

An HFile block's value is the record without its key, which stands in the entry's key (field `key`, where the record
has one and it is empty).

Source: HoodieAvroDataBlock, HoodieParquetDataBlock and HoodieHFileDataBlock of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.records import decode_entries
from hudi_format.log.blocks import BlockType, LogBlock
from hudi_format.log.data_block import read_avro
from hudi_format.schema.evolve import conform
from hudi_format.schema.history import Evolution, Reading


class BlockRows:
    """Reads the data blocks of a slice.

    Args:
        schema: the wanted columns, all nullable.
        evolution: how older blocks are read by column id; None where the table has no schema history.
        step: bytes of a block that are turned into rows at once, about.
    """

    def __init__(self, schema: pa.Schema, evolution: Evolution | None, step: int) -> None:
        self._schema = schema
        self._evolution = evolution
        self._step = step
        self._readings: dict[str, Reading | None] = {}
        self._decoders: dict[tuple[str, str], Decoder] = {}

    def read(self, block: LogBlock, content: pa.Buffer) -> Iterator[pa.Table]:
        """The block's rows, in its order, as tables of the wanted columns.

        Raises:
            CorruptFileError: the content is damaged.
            SchemaError: a column that does not fit the wanted one.
            UnsupportedError: a kind of block that holds no rows of a table; an older version that cannot be read.
        """
        reading = self._reading(block.instant)
        if reading is None:
            yield from self._rows(block, content, self._schema, "")
            return
        if block.is_partial:
            raise UnsupportedError(
                "a block of partial updates that is older than a change of the schema cannot be read yet",
                remedy="compact the table with Apache Hudi first.",
            )
        stored = reading.stored(self._schema)
        for rows in self._rows(block, content, stored, block.instant):
            yield reading.given(rows, self._schema, logged=True)

    def _rows(
        self, block: LogBlock, content: pa.Buffer, schema: pa.Schema, version: str
    ) -> Iterator[pa.Table]:
        if block.type is BlockType.AVRO_DATA:
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
            file = pq.ParquetFile(pa.BufferReader(content))
            there = set(file.schema_arrow.names)
            columns = [n for n in schema.names if n in there]
            if content.size <= self._step:
                yield conform(file.read(columns=columns), schema)
                return
            rows = max(1, file.metadata.num_rows * self._step // content.size)
            for batch in file.iter_batches(rows, columns=columns):
                yield conform(pa.Table.from_batches([batch]), schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as e:
            reason = str(e).splitlines()[0]
            raise CorruptFileError(
                f"a block at byte {block.offset} cannot be read as Parquet: {reason}"
            ) from None
