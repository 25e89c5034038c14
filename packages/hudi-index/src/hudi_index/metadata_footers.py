"""Footers of base files as a metadata table has them: key ranges and bloom filters.

Ranges are those of `column_stats` for the record key, bloom filters those of `bloom_filters`.  Of a file that either
does not have, the footer is asked.

Source: HoodieBloomIndex with `hoodie.bloom.index.use.metadata` of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_format.fork_safe import ProcessLock
from hudi_format.log.scanner import BlockScope
from hudi_format.model import BaseFile, FileSlice
from hudi_format.parquet.footer import BLOOM_FILTER, BLOOM_TYPE, MAX_KEY, MIN_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table.records import bloom_filters, schema_of
from hudi_index.metadata_table.slice_records import OpenedSlices, WantedRecords

# Of a shard of bloom filters: 600 of the default size.
_HELD_LOG_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Told:
    """Entries of a footer, from elsewhere."""

    values: Mapping[str, memoryview]


@dataclass(frozen=True, eq=False)
class MetadataFooters:
    """Footers of base files by a metadata table; picklable.

    Attributes:
        ranges: least and greatest key by path of the file, where they are known.
        storage, slices, scope: of the partition `bloom_filters`; no slices where there is none.
    """

    ranges: Mapping[str, tuple[str, str]]
    storage: Storage
    slices: tuple[FileSlice, ...]
    scope: BlockScope


class OpenedFooters:
    """Footers whose bloom filters stay open between files; shareable between threads."""

    def __init__(self, footers: MetadataFooters) -> None:
        self._footers = footers
        self._opened: OpenedSlices | None = None
        self._lock = ProcessLock()

    def range(self, file: BaseFile) -> Told | None:
        """Footer with a file's key range alone; None where it is not known."""
        known = self._footers.ranges.get(file.path)
        if known is None:
            return None
        low, high = (memoryview(text.encode()) for text in known)
        return Told({MIN_KEY: low, MAX_KEY: high})

    def filter(self, file: BaseFile) -> Told | None:
        """Footer with a file's bloom filter alone; None where there is none.

        Raises:
            MissingFileError, CorruptFileError, UnsupportedError: reading the metadata table.
        """
        own = self._footers
        if not own.slices:
            return None
        key = k.bloom_filter_key(file.partition, file.name)
        shard = int(k.shards(pa.array([key]), len(own.slices))[0])
        with self._lock.threads:
            if self._opened is None:
                schema = schema_of(k.BLOOM_FILTERS)
                self._opened = OpenedSlices(own.storage, own.scope, schema, log_bytes=_HELD_LOG_BYTES)
            records = self._opened.records(own.slices[shard], WantedRecords(keys=(key,)))
        for found in bloom_filters(records):
            if not found.is_deleted and found.text:
                code = memoryview(found.type_code.encode())
                return Told(
                    {BLOOM_FILTER: memoryview(found.text), **({BLOOM_TYPE: code} if len(code) else {})}
                )
        return None
