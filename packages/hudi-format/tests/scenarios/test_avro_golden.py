"""Records of Apache Hudi's own log files, of table versions 6, 8 and 9."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import fastavro
import golden_tables
import pyarrow as pa
import pytest
from avro_strategies import as_arrow, plain, stored

from hudi_format.avro import Decoder, Encoder
from hudi_format.log.block import BlockType
from hudi_format.log.data_block import AvroRecords, read_avro
from hudi_format.log.reader import LogFileReader
from hudi_format.schema.avro import from_avro

TABLES = sorted(
    archive
    for version in ("v6", "v8", "v9")
    for archive in (golden_tables.ROOT / version).glob("*.zip")
    if any(word in archive.name for word in ("mor", "cdc", "payload", "flagged"))
    and "hfile" not in archive.name
    and "parquet" not in archive.name
)


def blocks(archive_path: Any) -> list[tuple[str, AvroRecords]]:
    """Schema and records of every Avro block in the table's log files."""
    found = []
    with zipfile.ZipFile(archive_path) as archive:
        names = [n for n in archive.namelist() if "/.hoodie/" not in n and ".log." in n.rpartition("/")[2]]
        for name in names:
            log = LogFileReader(archive.read(name), file=name)
            for block in log.blocks:
                if block.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
                    found.append((block.schema, read_avro(block, log.content(block))))
    return found


def rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = [stored(c).to_pylist() for c in batch.columns]
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


@pytest.mark.req("LF-15", "SE-07")
@pytest.mark.parametrize("archive", TABLES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_records_of_apache_hudi_are_read_as_by_fastavro_and_written_back_byte_for_byte(archive: Any) -> None:
    found = blocks(archive)
    assert found
    for schema, records in found:
        decoder = Decoder(schema)
        batch = decoder.decode(records.data, records.offsets, records.lengths)
        batch.validate(full=True)
        assert batch.schema == from_avro(schema)
        node, raw = json.loads(schema), memoryview(records.data)
        parsed = fastavro.parse_schema(plain(node))
        written = [
            bytes(raw[o : o + n])
            for o, n in zip(records.offsets.tolist(), records.lengths.tolist(), strict=True)
        ]
        expected = [fastavro.schemaless_reader(io.BytesIO(w), parsed, None) for w in written]
        assert rows(batch) == [as_arrow(r, node) for r in expected]
        data, offsets = Encoder(schema, batch.schema).encode(batch)
        assert data.to_pybytes() == b"".join(written)
        assert len(offsets) == len(written) + 1
