"""Buckets of a table: its settings, and the file group and size of each bucket."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hudi_format.errors import UnsupportedError
from hudi_format.model import FileSlice
from hudi_index.bucket import FEATURE, BucketIndex
from hudi_index.consistent_hashing import ConsistentBucketIndex
from hudi_index.extendible_hashing import ExtendibleBucketIndex
from hudi_index.lookup import BUCKET
from hudi_timeline.file_system_view.bucket_settings import last_resize, recorded_settings, settled
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import with_rings
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.file_options import INDEX_TYPE, NUM_BUCKETS
from hudi_timeline.table_config import index_of

BUCKETS = pa.schema(
    [
        ("partition", pa.string()), ("bucket", pa.int64()), ("of", pa.int64()), ("file_id", pa.string()),
        ("bytes", pa.int64()),
    ]
)  # fmt: skip


def table_index(snapshot: TableSnapshot) -> BucketIndex:
    """Settings of the table's bucket index.

    Raises:
        UnsupportedError: it has none, or does not say its settings.
        InvalidOptionError, CorruptFileError: settings, or resizes, that cannot be read.
    """
    stored = settled(snapshot.config.properties, snapshot.timeline)
    if index_of(stored) != BUCKET:
        raise UnsupportedError(
            "the table does not say that it is written with the index BUCKET", table=snapshot.storage.uri,
            remedy=f"another index has no buckets to resize; a table that Apache Hudi made says it after the next "
            f"write with {INDEX_TYPE}=BUCKET.", feature=FEATURE,
        )  # fmt: skip
    last_resize(stored)  # what cannot be read could not be added to
    index = recorded_settings(stored)
    if index is None:
        raise UnsupportedError(
            "the table does not say how many buckets its partitions have", table=snapshot.storage.uri,
            remedy=f"write to it with {INDEX_TYPE}=BUCKET and {NUM_BUCKETS}, which then stay with the table.",
            feature=FEATURE,
        )  # fmt: skip
    return index


def slices_by_bucket(
    index: BucketIndex, slices: Iterable[FileSlice], table: str
) -> dict[str, dict[int, FileSlice]]:
    """Slices by partition and bucket; errors as `BucketIndex.groups`."""
    found: dict[str, dict[str, FileSlice]] = {}
    for one in slices:
        found.setdefault(one.partition, {})[one.file_id] = one
    return {
        p: {number: of[file_id] for number, file_id in index.groups(p, of, table=table).items()}
        for p, of in found.items()
    }


def bucket_table(snapshot: TableSnapshot) -> pa.Table:
    """A row for each bucket that has a file group; columns as `BUCKETS`.

    A bucket holds the keys whose hash has the remainder `bucket` by `of`; with consistent hashing, `of` is null, and
    `bucket` the greatest hash of the bucket's keys.

    Raises:
        UnsupportedError: no bucket index, or file groups that contradict it.
        CorruptFileError, MissingFileError: hashing metadata cannot be read.
    """
    slices = newest_slices_of(snapshot)
    index = with_rings(table_index(snapshot), snapshot, {s.partition for s in slices})
    rows = []
    for partition, of in sorted(slices_by_bucket(index, slices, snapshot.storage.uri).items()):
        for number, one in sorted(of.items()):
            named, modulus = _range(index, partition, number)
            rows.append(
                {
                    "partition": partition,
                    "bucket": named,
                    "of": modulus,
                    "file_id": one.file_id,
                    "bytes": one.bytes,
                }
            )
    return pa.Table.from_pylist(rows, BUCKETS)


def _range(index: BucketIndex, partition: str, number: int) -> tuple[int, int | None]:
    if isinstance(index, ConsistentBucketIndex):
        return index.ring(partition).nodes[number].value, None
    if isinstance(index, ExtendibleBucketIndex):
        directory = index.ring(partition)
        depth = next(b.depth for b in directory.buckets if b.number == number)
        return number, directory.num_buckets << depth
    return number, index.num_buckets
