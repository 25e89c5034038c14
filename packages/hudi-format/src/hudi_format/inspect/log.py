"""A look into a log file: its blocks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_format.errors import HudiError
from hudi_format.hfile.reader import HFileReader
from hudi_format.inspect.report import Report
from hudi_format.log.batches import BlockDecoder
from hudi_format.log.blocks import BlockType, HeaderKey, LogBlock
from hudi_format.log.data_block import read_avro
from hudi_format.log.deletes import read_deletes
from hudi_format.log.parquet_content import unreadable
from hudi_format.log.reader import LogFileReader
from hudi_format.names import parse_cdc_file, parse_log_file
from hudi_format.schema.meta_columns import RECORD_KEY
from hudi_format.storage import Storage

COLUMNS = ("offset", "bytes", "type", "instant", "records", "first key", "last key", "notes")
_KEYS = frozenset(HeaderKey)


def inspect_log(storage: Storage, path: str) -> Report:
    """Blocks of a log file with their instants, how many records they have, and their least and greatest key.

    Damage does not stop it: a stretch that is no block is a row, and a content that cannot be read a problem.

    Raises:
        MissingFileError: there is no such file.
        StorageError: the storage refused.
    """
    name = path.rpartition("/")[2]
    facts: dict[str, Any] = {"file": path}
    file = parse_log_file("", name) or parse_cdc_file("", name)
    if file is not None:
        token = {"write token": file.write_token} if file.write_token else {}
        facts |= {
            "file id": file.file_id,
            "instant of the name": file.instant,
            "version": file.version,
            **token,
        }
    problems: list[str] = []
    rows: list[tuple[Any, ...]] = []
    more: list[dict[str, Any]] = []
    schemas: dict[str, int] = {}
    with LogFileReader.open(storage, path) as log:
        blocks = log.blocks
        facts |= {"bytes": log.size, "blocks": len(blocks)}
        for block in blocks:
            count, first, last = None, None, None
            if block.type is BlockType.CORRUPT:
                problems.append(f"byte {block.offset}: {block.damage.text}, {block.size} bytes")
            else:
                try:
                    count, first, last = _contents(block, log.content(block))
                except HudiError as e:
                    problems.append(e.message)
            schema = schemas.setdefault(block.schema, len(schemas) + 1) if block.schema else None
            more.append({"header": _header(block), "schema": schema})
            row = (
                block.offset,
                block.size,
                block.type.name,
                block.instant or None,
                count,
                first,
                last,
                _notes(block, schema),
            )
            rows.append(row)
    counts = Counter(b.type.name for b in blocks)
    facts |= {"types": [f"{n} {t}" for t, n in sorted(counts.items())]}
    facts |= {"instants": sorted({b.instant for b in blocks if b.instant})}
    return Report("log file", facts, COLUMNS, tuple(rows), tuple(schemas), tuple(problems), tuple(more))


def _contents(block: LogBlock, content: pa.Buffer) -> tuple[int | None, str | None, str | None]:
    """How many records, least and greatest key; None where the block has none."""
    if block.type is BlockType.COMMAND:
        return None, None, None
    if block.type is BlockType.DELETE:
        deletes = read_deletes(block, content)
        return len(deletes), *_least_and_greatest([deletes.keys])
    if block.type is BlockType.HFILE_DATA:
        reader = HFileReader.from_buffer(
            memoryview(content).cast("B"), path=block.file, offset=block.content_offset
        )
        keys = [b.column(0).cast(pa.string(), safe=False) for b in reader.batches()]
        return reader.entry_count, *_least_and_greatest(keys)
    if block.type is BlockType.PARQUET_DATA:
        try:
            rows = pq.ParquetFile(pa.BufferReader(content)).metadata.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
            raise unreadable(block, e) from e
    else:
        rows = len(read_avro(block, content))
    if f'"{RECORD_KEY}"' not in block.schema:
        return rows, None, None
    batches = BlockDecoder(columns=[RECORD_KEY]).batches(block, content)
    return rows, *_least_and_greatest([b.column(0) for b in batches])


def _least_and_greatest(arrays: list[pa.Array]) -> tuple[str | None, str | None]:
    found = [pc.min_max(a).as_py() for a in arrays if len(a)]
    least = [f["min"] for f in found if f["min"] is not None]
    greatest = [f["max"] for f in found if f["max"] is not None]
    return min(least, default=None), max(greatest, default=None)


def _header(block: LogBlock) -> dict[str, str]:
    """Header entries by name, by number where it has none known; the schema is shown once for all blocks."""
    return {
        HeaderKey(key).name if key in _KEYS else str(int(key)): text
        for key, text in sorted(block.header.items())
        if key != HeaderKey.SCHEMA
    }


def _notes(block: LogBlock, schema: int | None) -> str:
    notes = []
    if unknown := [str(int(key)) for key in sorted(block.header) if key not in _KEYS]:
        notes.append(f"unknown header entries {' '.join(unknown)}")
    if block.type is BlockType.CORRUPT:
        notes.append(block.damage.text)
    if block.target_instant:
        notes.append(f"rolls back {block.target_instant}")
    if block.is_partial:
        notes.append("partial update")
    if block.compacted_instants:
        notes.append(f"compacted from {' '.join(block.compacted_instants)}")
    if block.positions_base_instant:
        notes.append(f"positions in {block.positions_base_instant}")
    if schema is not None and schema > 1:
        notes.append(f"schema {schema}")
    return "; ".join(notes)
