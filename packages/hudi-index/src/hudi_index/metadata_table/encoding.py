"""Encoding of the metadata table's records, as table version 6 has them.

Source: HoodieMetadataPayload and HoodieAvroHFileWriter of Apache Hudi 0.15; spec "Metadata table", sections 3 and 4.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.avro.encoder import Encoder
from hudi_format.hfile.writer import Bloom, HFileWriter
from hudi_format.schema.meta_fields import META_COLUMNS
from hudi_index.bloom.filter import SIMPLE, BloomFilter
from hudi_index.metadata_table.files import SCHEMA
from hudi_index.metadata_table.keys import ALL_PARTITIONS, FILE_LIST, NOT_PARTITIONED, PARTITION_LIST

KEY, _BLOOM, _LOCATION = "key", "BloomFilterMetadata", "recordIndexMetadata"
RECORD = "HoodieMetadataRecord"

FileSizes = Mapping[str, Mapping[str, int]]
"""Sizes in bytes of files by name, per partition path."""


@cache
def record_schema() -> str:
    """Avro schema of a record, compact JSON, as commits of the metadata table hold it.

    Order of fields and of unions are those of Apache Hudi 0.15, so that its readers find the schema that they know.
    """
    text = (Path(__file__).parent / "schemas" / f"{RECORD}.avsc").read_text(encoding="utf-8")
    return json.dumps(json.loads(text), separators=(",", ":"))


@cache
def stored_schema() -> str:
    """Avro schema of records in HFiles and log blocks: the meta fields, then `record_schema`."""
    record = json.loads(record_schema())
    meta = [{"name": n, "type": ["null", "string"], "doc": "", "default": None} for n in META_COLUMNS]
    return json.dumps({**record, "fields": [*meta, *record["fields"]]}, separators=(",", ":"))


def file_records(
    files: FileSizes,
    deleted: Mapping[str, Collection[str]] | None = None,
    *,
    partitions: Iterable[str] = (),
    gone: Iterable[str] = (),
) -> pa.RecordBatch:
    """Records of the partition `files` for a change, sorted; columns as `files.SCHEMA`.

    Args:
        files: new files, or files of another size.
        deleted: names of deleted files, per partition.
        partitions: partitions to list beside those with new files.
        gone: partitions whose folders were deleted.
    """
    deleted = deleted or {}
    listed = {p or NOT_PARTITIONED: (0, False) for p in (*files, *partitions)}
    listed |= {p or NOT_PARTITIONED: (0, True) for p in gone}
    rows: dict[str, tuple[int, dict[str, tuple[int, bool]]]] = {ALL_PARTITIONS: (PARTITION_LIST, listed)}
    for partition in {*files, *deleted}:
        entries = dict.fromkeys(deleted.get(partition, ()), (0, True))
        entries |= {name: (size, False) for name, size in files.get(partition, {}).items()}
        if entries:
            rows[partition or NOT_PARTITIONED] = (FILE_LIST, entries)
    keys = sorted(rows, key=str.encode)
    maps = [
        [(name, {"size": size, "isDeleted": dead}) for name, (size, dead) in sorted(rows[k][1].items())]
        for k in keys
    ]
    columns = [
        pa.array(keys, pa.string()),
        pa.array([rows[k][0] for k in keys], pa.int32()),
        pa.array(maps, SCHEMA.field(2).type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


FOR_LONG, FOR_SHORT = 6, 3
"""Levels of compression: of base files, and of log blocks, which a compaction soon encodes again; these are a tenth
larger, in half the time."""


@lru_cache(maxsize=16)
def _encoder(schema: pa.Schema) -> Encoder:
    return Encoder(stored_schema(), schema)


_FALSE_POSITIVES = 0.001
_MOST_FILTERED = 100_000_000  # keys; a filter of more has no number for its bits


def base_file_of(records: pa.RecordBatch | pa.Table) -> bytes:
    """A base file of records, as of `hfile_of`.

    One of `record_index` has a bloom filter of its keys and their range, as Apache Hudi's have: most keys that a write
    looks for in it are new, and each would have a block of 64 KiB read and unpacked.
    """
    return hfile_of(records, filtered=_LOCATION in records.schema.names)


def hfile_of(records: pa.RecordBatch | pa.Table, *, level: int = FOR_LONG, filtered: bool = False) -> bytes:
    """A whole HFile of records, each with its key in the entry and an empty one in the value.

    Args:
        records: a column `key`, and further columns of a record; what is missing is null.
        level: of zlib's compression.
        filtered: with a bloom filter of the keys and their range.

    Raises:
        SchemaError: a column that is not one of a record.
        RecordKeyError: a key that is null, duplicated or too long.
    """
    table = pa.table(records) if isinstance(records, pa.Table) else pa.Table.from_batches([records])
    keys = table.column(KEY).combine_chunks().cast(pa.large_binary())
    order = pc.sort_indices(keys)
    place = table.schema.get_field_index(KEY)
    empty = pa.repeat("", table.num_rows)
    blanked = table.set_column(place, pa.field(KEY, pa.string()), empty)
    encoder = _encoder(blanked.schema)
    out = io.BytesIO()
    is_random = _BLOOM in table.schema.names
    writer = HFileWriter(out, schema=stored_schema(), level=level, is_random=is_random)
    if table.num_rows:
        (batch,) = blanked.take(order).combine_chunks().to_batches()
        data, offsets = encoder.encode(batch)
        values = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(),
            batch.num_rows,
            [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), data],
        )
        writer.append(keys.take(order), values)
    bloom = _filter_of(table.column(KEY)) if filtered else None
    if bloom is None:
        writer.finish()
    else:
        ends = keys.take(order.take(pa.array([0, table.num_rows - 1])))
        writer.finish(bloom=bloom, key_range=(ends[0].as_py().decode(), ends[1].as_py().decode()))
    return out.getvalue()


def _filter_of(keys: pa.ChunkedArray) -> Bloom | None:
    """Filter of keys; None for no key, an empty one, which no filter has, or more than a filter takes."""
    if not 0 < len(keys) <= _MOST_FILTERED or not pc.min(pc.binary_length(keys)).as_py():
        return None
    made = BloomFilter.create(SIMPLE, len(keys), _FALSE_POSITIVES)
    made.add(keys)
    return Bloom(SIMPLE, made.to_base64().encode())
