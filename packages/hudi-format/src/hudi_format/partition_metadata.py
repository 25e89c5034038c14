"""The `.hoodie_partition_metadata` file, which marks a folder as a partition.

Source: Hudi format, "Partition metadata"; HoodiePartitionMetadata of Apache Hudi 0.15.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hudi_format import properties
from hudi_format.file_names import PARTITION_METADATA
from hudi_format.model import join_path
from hudi_format.storage.protocol import Storage


def depth_of(partition: str) -> int:
    """The number of folders between the base path and the partition; 0 where not partitioned."""
    return partition.count("/") + 1 if partition else 0


def render(commit_time: str, depth: int) -> bytes:
    """Content of the partition metadata file."""
    values = {"commitTime": commit_time, "partitionDepth": str(depth)}
    try:  # not the clock: the same write makes the same file
        written = datetime.strptime(commit_time[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:  # the instant of a bootstrap, which is no time
        written = datetime.now(UTC)
    return properties.render(values, ["partition metadata", properties.java_date(written)])


def write_if_absent(storage: Storage, partition: str, instant: str) -> bool:
    """Mark a folder as a partition; False where it is already marked.

    An existing file is left alone, whichever instant it names: readers look at its presence and
    depth, and a concurrent writer may have made it.
    """
    path = join_path(partition, PARTITION_METADATA)
    if storage.info(path) is not None:
        return False
    try:
        storage.create(path, render(instant, depth_of(partition)))
    except FileExistsError:
        return False
    return True
