"""Masked data files of a capsule, with original sizes, footers and block frames.

A base file keeps its row groups, their numbers of rows and nulls, statistics of data columns, key range, bloom filter
and record keys, all masked; values between the least and the greatest are not there.  A log file keeps the frames of
its blocks; their contents are zeros.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.avro.container import MAGIC, SYNC_BYTES, checked_schema, container_parts
from hudi_format.avro.defaults import varint
from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.log.block import BlockType, HeaderKey, LogBlock
from hudi_format.log.encoder import avro_content, frame
from hudi_format.log.reader import LogFileReader
from hudi_format.parquet.footer import (
    AVRO_SCHEMA,
    BLOOM_FILTER,
    BLOOM_FILTER_OLD,
    BLOOM_TYPE,
    MAX_KEY,
    MIN_KEY,
    entries_of,
    open_parquet,
)
from hudi_format.parquet.row_groups import RowGroup, read_row_groups
from hudi_format.parquet.thrift import file_end, footer_of
from hudi_format.schema.meta_fields import COMMIT_TIME, FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.filter import parse_filter
from hudi_timeline.bug_capsule.mask import Mask
from hudi_timeline.timeline.avro_files import read_container

# Files of the timeline and of the archive with their values masked, in the same form as before.

# Maps whose keys are partitions.
_BY_PARTITION = frozenset(
    {
        "partitionToWriteStats", "partitionToReplaceFileIds", "partitionMetadata", "bootstrapPartitionMetadata",
        "filesToBeDeletedPerPartition", "filePathsToBeDeletedPerPartition",
    }
)  # fmt: skip
_SCHEMAS = ("schema", "latest_schema")
# Times of events are data.
_DATA_NUMBERS = frozenset({"minEventTime", "maxEventTime"})
# Who and why: people's words.
_FREE = frozenset({"comments", "savepointedBy"})


def partitions_of(record: Any) -> set[str]:
    """Partitions named in a timeline record."""
    found: set[str] = set()
    if isinstance(record, Mapping):
        for name, value in record.items():
            if name in _BY_PARTITION and isinstance(value, Mapping):
                found.update(value)
            if name == "partitionPath" and isinstance(value, str):
                found.add(value)
            if name == "partitionsToBeDeleted" and isinstance(value, list):
                found.update(v for v in value if isinstance(v, str))
            found |= partitions_of(value)
    elif isinstance(record, list):
        for item in record:
            found |= partitions_of(item)
    return found


def parsed(data: bytes) -> Any:
    """Parsed content of an instant's file; None where it is unreadable or empty."""
    try:
        return read_container(data)[1] if data[:4] == MAGIC else json.loads(data) if data else None
    except (HudiError, ValueError, RecursionError):
        return None


def masked_file(data: bytes, mask: Mask) -> bytes:
    """An instant's file with masked values; zeros of the same length if unreadable."""
    record = parsed(data)
    if record is None:
        return bytes(len(data))
    if data[:4] != MAGIC:
        return json.dumps(_masked(record, mask), indent=2).encode()
    container = container_parts(data)
    body = _datum(_masked(record, mask), container.schema)
    sync = data[len(container.header.prefix) :][:SYNC_BYTES]
    key, schema = b"avro.schema", container.schema.encode()
    head = varint(1) + varint(len(key)) + key + varint(len(schema)) + schema + varint(0)
    return MAGIC + head + sync + varint(1) + varint(len(body)) + body + sync


def masked_archive(data: bytes, mask: Mask) -> bytes:
    """An archive file with masked values; zeros of the same length if unreadable."""
    try:
        with LogFileReader(data) as reader:
            return b"".join(_masked_block(reader, b, mask) for b in reader.blocks)
    except (HudiError, ValueError, EOFError, TypeError, KeyError):
        return bytes(len(data))


def _masked_block(reader: LogFileReader, block: LogBlock, mask: Mask) -> bytes:
    if block.type is not BlockType.AVRO_DATA:
        raise CorruptFileError("a block of the archive that is not an Avro block")
    content = bytes(reader.content(block))
    text = block.header[HeaderKey.SCHEMA]
    schema = checked_schema(text)
    out, ends, at = io.BytesIO(), [0], 8
    for _ in range(int.from_bytes(content[4:8], "big")):
        length = int.from_bytes(content[at : at + 4], "big")
        record = fastavro.schemaless_reader(io.BytesIO(content[at + 4 : at + 4 + length]), schema, None)
        out.write(_datum(_masked(record, mask), text))
        ends.append(out.tell())
        at += 4 + length
    new = avro_content(out.getvalue(), np.asarray(ends, np.int64))
    before, after = frame(BlockType.AVRO_DATA, dict(block.header), len(new))
    return b"".join((before, new, after))


def _datum(record: Any, schema: str) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), record)
    return out.getvalue()


def _masked(value: Any, mask: Mask, name: str = "") -> Any:
    if isinstance(value, Mapping):
        if name in ("extraMetadata", "strategyParams"):
            return {
                k: v if k in _SCHEMAS else mask.free(v) if isinstance(v, str) else None
                for k, v in value.items()
            }
        keys = mask.partition if name in _BY_PARTITION else str
        return {keys(k) if isinstance(k, str) else k: _masked(v, mask, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_masked(v, mask, name) for v in value]
    if name in _DATA_NUMBERS:
        return None
    if isinstance(value, str):
        return mask.free(value) if name in _FREE else mask.word(value)
    if isinstance(value, bytes):
        return bytes(len(value))
    return value


class TooLarge(Exception):
    """The masked file exceeds the original's size."""


def meet_values(storage: Storage, path: str, mask: Mask) -> None:
    """Record a base file's record keys and footer values.

    Raises:
        HudiError: it cannot be read.
    """
    with open_parquet(storage, path) as file:
        names = file.schema_arrow.names
        if RECORD_KEY in names:
            for batch in file.iter_batches(columns=[RECORD_KEY]):
                mask.meet(RECORD_KEY, batch.column(0).to_pylist())
        mask.meet(RECORD_KEY, [v for k, v in entries_of(file.metadata).items() if k in (MIN_KEY, MAX_KEY)])
        for group in read_row_groups(storage, path):
            for column, least, greatest, _ in _statistics(file.schema_arrow, group):
                mask.meet(column, [least, greatest])


def _statistics(schema: pa.Schema, group: RowGroup) -> Iterator[tuple[str, Any, Any, int]]:
    """(column, smallest, largest, nulls) of a row group's flat columns with statistics."""
    for name, said in group.columns.items():
        if name in META_COLUMNS or name not in schema.names:
            continue
        bounds = said.bounds(schema.field(name).type)
        if bounds is not None:
            yield name, bounds[0].as_py(), bounds[1].as_py(), said.nulls or 0


def masked_base_file(
    storage: Storage, path: str, mask: Mask, *, size: int | None, partition: str, key: str
) -> bytes:
    """A masked base file.

    Args:
        size: how large it is to be; None for as large as it gets.
        partition: path of its partition.
        key: the column that alone is the record key, "" where there is no such one.

    Raises:
        TooLarge: it does not fit into `size` bytes.
        HudiError: it cannot be read.
    """
    out = io.BytesIO()
    with open_parquet(storage, path) as file:
        schema = file.schema_arrow.remove_metadata()
        schema = pa.schema([f.with_nullable(True) for f in schema])
        entries = entries_of(file.metadata)
        keys: list[str] = []
        # Statistics and dictionaries where they are needed: masks are longer than values, and the size is to stay.
        groups = read_row_groups(storage, path)
        said = {name for group in groups for name, *_ in _statistics(file.schema_arrow, group)}
        writer = pq.ParquetWriter(
            out, schema, compression="zstd", compression_level=9, store_schema=False,
            use_dictionary=[FILE_NAME, COMMIT_TIME, PARTITION_PATH],
            write_statistics=[n for n in schema.names if n in said],
        )  # fmt: skip
        with writer:
            for number, group in enumerate(groups):
                known = {name: rest for name, *rest in _statistics(file.schema_arrow, group)}
                made = _row_group(file, number, known, schema, mask, partition, key)
                keys += made.column(RECORD_KEY).to_pylist() if RECORD_KEY in schema.names else []
                writer.write_table(made, row_group_size=max(made.num_rows, 1))
            writer.add_key_value_metadata(_entries(entries, keys, mask))
    return out.getvalue() if size is None else _padded(out.getvalue(), size)


def _row_group(
    file: pq.ParquetFile, group: int, known: Mapping[str, list[Any]], schema: pa.Schema, mask: Mask,
    partition: str, key: str,
) -> pa.Table:  # fmt: skip
    rows = file.metadata.row_group(group).num_rows
    columns = {}
    record_keys = None
    if RECORD_KEY in schema.names:
        found = file.read_row_group(group, columns=[RECORD_KEY]).column(0).to_pylist()
        record_keys = [None if k is None else mask.text(RECORD_KEY, k) for k in found]
    for field in schema:
        if field.name == RECORD_KEY or (field.name == key and pa.types.is_string(field.type)):
            columns[field.name] = (
                pa.array(record_keys, field.type) if record_keys else pa.nulls(rows, field.type)
            )
        elif field.name == PARTITION_PATH:
            columns[field.name] = pa.array([mask.partition(partition)] * rows, field.type)
        elif field.name in META_COLUMNS:
            # Without user data: commit times, sequence numbers, file names.
            columns[field.name] = file.read_row_group(group, columns=[field.name]).column(0).cast(field.type)
        elif field.name in known:
            columns[field.name] = _between(mask, field, rows, *known[field.name])
        else:
            columns[field.name] = pa.nulls(rows, field.type)
    return pa.table(columns, schema=schema)


def _between(mask: Mask, field: pa.Field, rows: int, least: Any, greatest: Any, nulls: int) -> pa.Array:
    """A column with that number of rows and nulls, and that smallest and largest value."""
    low, high = (mask.value(field.name, v, field.type) for v in (least, greatest))
    values = [low] * (rows - nulls)
    if len(values) > 1:
        values[-1] = high
    return pa.array([*values, *([None] * nulls)][:rows], field.type)


def _entries(entries: dict[str, str], keys: list[str], mask: Mask) -> dict[str, str]:
    out = {k: v for k, v in entries.items() if k in (AVRO_SCHEMA, BLOOM_TYPE)}
    out |= {k: mask.text(RECORD_KEY, entries[k]) for k in (MIN_KEY, MAX_KEY) if k in entries}
    for name in (BLOOM_FILTER, BLOOM_FILTER_OLD):
        if name in entries:
            out[name] = _masked_filter(entries[name], entries.get(BLOOM_TYPE), keys)
    return out


def _masked_filter(text: str, type_code: str | None, keys: list[str]) -> str:
    """A bloom filter of the same shape with the masked keys; invalid ones stay invalid."""
    try:
        bloom = parse_filter(text, type_code)
    except HudiError:
        return "no filter"
    bloom.rows = [np.zeros_like(bloom.rows[0])]
    bloom.count = 0
    bloom.add(pa.array(keys, pa.string()))
    return bloom.to_base64()


def _padded(data: bytes, size: int) -> bytes:
    """The file padded with zeros before its footer, whose offsets count from the start."""
    if len(data) > size:
        raise TooLarge
    begin, footer = footer_of(data)
    return data[:begin] + bytes(size - len(data)) + file_end(footer)


def masked_history(data: bytes, mask: Mask) -> bytes:
    """A file of the LSM timeline with masked instant metadata."""
    table = pq.read_table(pa.BufferReader(data))
    columns = [
        pa.array([None if v is None else masked_file(v, mask) for v in c.to_pylist()], c.type)
        if pa.types.is_binary(c.type)
        else c
        for c in table.columns
    ]
    out = io.BytesIO()
    pq.write_table(pa.table(columns, schema=table.schema), out, compression="zstd", store_schema=False)
    return out.getvalue()


def masked_log(data: bytes) -> bytes:
    """A log file with zeros for block contents and for damaged stretches."""
    out = bytearray(data)
    with LogFileReader(data) as reader:
        for block in reader.blocks:
            if block.damage:
                head = out[block.offset : block.offset + _HEAD]
                out[block.offset : block.offset + block.size] = bytes(block.size)
                if bytes(head[:6]) == _MAGIC:  # where it was cut, it still begins as a block
                    out[block.offset : block.offset + len(head)] = head
            else:
                at = block.content_offset
                out[at : at + block.content_length] = bytes(block.content_length)
    return bytes(out)


_MAGIC = b"#HUDI#"
_HEAD = 14  # magic and size
