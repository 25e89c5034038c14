"""The record keys that a commit's log records speak of, without their other columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.log.batches import BlockDecoder
from hudi_format.log.blocks import BlockType
from hudi_format.log.damage import CommittedRange
from hudi_format.log.deletes import read_deletes
from hudi_format.log.slice_log import SliceLog
from hudi_format.merge import modes
from hudi_format.model import LogFile
from hudi_format.slice_reader import SliceMerge
from hudi_format.storage import Storage


def logged_keys(
    storage: Storage,
    files: Sequence[LogFile],
    merge: SliceMerge,
    table: pa.Schema,
    *,
    committed: Mapping[str, Sequence[CommittedRange]] | None = None,
) -> pa.Array:
    """Each key once, of data and of deletes.

    Args:
        merge: its scope says whose blocks count.
        table: all columns of the table, with meta columns where it fills them.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError: as `SliceLog` and `BlockDecoder`.
    """
    decoder = BlockDecoder(schema=pa.schema([table.field(n) for n in merge.key_columns]))
    found: list[pa.Array] = []
    with SliceLog(storage, files, merge.scope, committed=committed) as log:
        for block in log.blocks:
            content = log.content(block)
            if block.type is BlockType.DELETE:
                found.append(read_deletes(block, content).keys.cast(pa.string()))
                continue
            for batch in decoder.batches(block, content):
                keys = merge.keys(pa.Table.from_batches([batch]))
                found.append(modes.one_array(keys).cast(pa.string()))
    return pc.unique(pa.chunked_array(found, pa.string()))


__all__ = ["logged_keys"]
