"""Data blocks: record places of Avro and CDC blocks, content kind of the others.

Source: HoodieAvroDataBlock of Apache Hudi: content version, number of records, and each record after its
length.  Versions 1 and 2 have the same layout as 3, which every release since 0.9 writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_format._checks import loads
from hudi_format.errors import UnsupportedError
from hudi_format.log import _scan
from hudi_format.log.block import BlockType, LogBlock

WRITTEN_VERSION = 3


@dataclass(frozen=True, slots=True)
class AvroRecords:
    """Encoded Avro records of one block, in the block's schema.

    Attributes:
        data: the block's content.
        offsets, lengths: where in `data` each datum is, in bytes, int64.
    """

    data: pa.Buffer
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)


def block_fields(block: LogBlock) -> dict[str, Any]:
    """Columns of a data block: Avro types (JSON) by name.

    Raises:
        CorruptFileError: its schema is none.
    """
    try:
        return {f["name"]: f["type"] for f in loads(block.schema)["fields"]}
    except (ValueError, LookupError, TypeError, RecursionError) as e:
        raise block.broken(f"a SCHEMA that is none: {type(e).__name__}: {e}") from None


def read_avro(block: LogBlock, content: pa.Buffer) -> AvroRecords:
    """The records of an Avro or CDC data block.

    Raises:
        CorruptFileError: lengths that do not add up to the content; with file and offset.
        UnsupportedError: a content version that is newer than this package.
    """
    if block.type not in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
        raise ValueError(f"a {block.type.name} block holds no Avro records")
    view = memoryview(content).cast("B")
    start = block.content_offset
    if len(view) < 8:
        raise block.broken("a data block without its version and count", start)
    version = int.from_bytes(view[:4], "big", signed=True)
    count = int.from_bytes(view[4:8], "big", signed=True)
    if version > WRITTEN_VERSION:
        raise UnsupportedError(
            f"a data block of version {version} at byte {block.offset}; {WRITTEN_VERSION} is the newest known",
            file=block.file,
            instant=block.instant,
            remedy="read the table with a newer release of hudi-format.",
        )
    if version < 1:
        raise block.broken(f"a data block of version {version}", start)
    if count < 0 or count > (len(view) - 8) // 4:
        raise block.broken(f"{count} records in a content of {len(view)} bytes", start + 4)
    offsets = np.empty(count, np.int64)
    bad, end = _scan.records(view, 8, offsets)
    if bad >= 0:
        raise block.broken(f"record {bad} of {count} runs past the block", start + end)
    if end != len(view):
        raise block.broken(f"{len(view) - end} bytes after the last of {count} records", start + end)
    lengths = np.diff(np.append(offsets, end + 4)) - 4
    return AvroRecords(content, offsets, lengths)
