"""Files of the timeline and of the archive with their values masked, in the same form as before."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro
import numpy as np

from hudi_format.avro.container import MAGIC, SYNC_BYTES, checked_schema, container_parts
from hudi_format.avro.defaults import varint
from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.log.blocks import BlockType, HeaderKey, LogBlock
from hudi_format.log.encode import avro_content, frame
from hudi_format.log.reader import LogFileReader
from hudi_timeline.capsule.mask import Mask
from hudi_timeline.metadata.avro_records import read_container

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
    """The partitions that a record of the timeline names."""
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
    """What an instant's file says; None where it cannot be read, or says nothing."""
    try:
        return read_container(data)[1] if data[:4] == MAGIC else json.loads(data) if data else None
    except (HudiError, ValueError, RecursionError):
        return None


def masked_file(data: bytes, mask: Mask) -> bytes:
    """An instant's file with its values masked; one that cannot be read is as many zeros."""
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
    """A file of the archive with the values in its entries masked; as many zeros where it cannot be read."""
    try:
        with LogFileReader(data) as reader:
            return b"".join(_masked_block(reader, b, mask) for b in reader.blocks)
    except (HudiError, ValueError, EOFError, TypeError, KeyError):
        return bytes(len(data))


def _masked_block(reader: LogFileReader, block: LogBlock, mask: Mask) -> bytes:
    if block.type is not BlockType.AVRO_DATA:
        raise CorruptFileError("a block of the archive that is none of Avro")
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
