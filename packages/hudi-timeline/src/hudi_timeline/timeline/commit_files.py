"""File entries of many commits, decoded in bulk for planning.

The Avro files of table versions 8 and 9 are decoded together, column by column, and only the columns that count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from hudi_format.commit_json import files_of_json
from hudi_format.errors import HudiError
from hudi_format.storage.parallel import on_threads
from hudi_format.storage.protocol import Storage
from hudi_timeline.timeline.commit_metadata import AVRO_NAMES, MAGIC, CommitMetadata, read_commit
from hudi_timeline.timeline.instant import REPLACE_COMMIT, Instant

if TYPE_CHECKING:  # the Avro decoders are imported where a table has Avro files
    from hudi_format.avro.container import Container, ContainerHeader
    from hudi_format.avro.decoder import Decoder

# How an Avro object container begins; known here too, because `hudi_format.avro.container` brings fastavro along.
LATEST_SCHEMA = "latest_schema"
_HISTORY_BYTES = LATEST_SCHEMA.encode()
_STATS = "partitionToWriteStats"
_REPLACED = "partitionToReplaceFileIds"
_REPLACED_BYTES = f'"{_REPLACED}"'.encode()
_STAT = pa.struct(
    [
        ("fileId", pa.string()),
        ("path", pa.string()),
        ("fileSizeInBytes", pa.int64()),
        ("logOffset", pa.int64()),
    ]
)
_COLUMNS = pa.schema(
    [
        (_STATS, pa.map_(pa.string(), pa.list_(_STAT))),
        (_REPLACED, pa.map_(pa.string(), pa.list_(pa.string()))),
    ]
)


class FileStat(NamedTuple):
    """One file of a commit.

    `path` is below the table, `size` in bytes, 0 where the commit does not say; for a log file that is what was
    written, from `offset` on.
    """

    partition: str
    file_id: str
    path: str
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """Files written by a commit, and replaced file ids by partition.

    `names_history` is false only where the commit says nothing of a schema history.
    """

    files: tuple[FileStat, ...] = ()
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names_history: bool = False

    @classmethod
    def of(cls, metadata: CommitMetadata) -> CommitFiles:
        """File entries of fully read metadata."""
        files = (
            FileStat(
                partition,
                s.file_id,
                s.path.lstrip("/"),
                s.file_size_in_bytes,
                _offset(s.extra.get("logOffset")),
            )
            for partition, stats in metadata.partition_to_stats.items()
            for s in stats
            if s.path
        )
        return cls(tuple(files), metadata.replaced, LATEST_SCHEMA in metadata.extra)


def _offset(value: object) -> int:
    return value if isinstance(value, int) else 0


def read_commit_files(
    storage: Storage, instants: Sequence[Instant], read: Callable[[Instant], CommitMetadata] | None = None
) -> list[CommitFiles]:
    """File entries of completed instants, in their order.

    Args:
        read: gives the whole metadata of one whose file is not as usual; `read_commit` otherwise.

    Raises:
        CorruptFileError, MissingFileError: as `read_commit`.
    """
    out: list[CommitFiles | None] = [None] * len(instants)
    avro: dict[str, list[tuple[int, bytes]]] = {}
    head: ContainerHeader | None = None
    for n, data in enumerate(on_threads(storage, lambda i: _bytes(storage, i), instants)):
        if data.startswith(MAGIC):
            part = _container(data, head)
            if part is not None:
                head = part.header
                avro.setdefault(part.schema, []).append((n, part.blocks[0][1]))
        else:
            out[n] = _from_json(data, instants[n])
    for schema, parts in avro.items():
        for (n, _), files in zip(parts, _from_avro(schema, [b for _, b in parts]), strict=True):
            out[n] = files
    # What is not as usual is read once more, alone: then an error says where it is.
    return [
        found
        if found is not None
        else CommitFiles.of(read_commit(storage, instant) if read is None else read(instant))
        for instant, found in zip(instants, out, strict=True)
    ]


def _bytes(storage: Storage, instant: Instant) -> bytes:
    try:
        return storage.read(instant.path)
    except FileNotFoundError:
        return b""


def _container(data: bytes, known: ContainerHeader | None) -> Container | None:
    from hudi_format.avro.container import checked_schema, container_parts

    try:
        part = container_parts(data, known)
        name = str(checked_schema(part.schema).get("name", "")).rpartition(".")[2]
    except HudiError:
        return None
    usual = [n for n, _ in part.blocks] == [1] and name in AVRO_NAMES
    return part if usual and _is_whole(part.schema, name == AVRO_NAMES[1]) else None


@lru_cache(maxsize=16)
def _is_whole(schema: str, replaces: bool) -> bool:
    """Whether a record schema has all fields with file entries, under their names."""
    from hudi_format.avro.decoder import Decoder

    try:
        own = Decoder(schema).schema
        names = [f.name for f in own.field(_STATS).type.item_type.value_type]
        return {"fileId", "path"} <= set(names) and (not replaces or _REPLACED in own.names)
    except (HudiError, LookupError, AttributeError):
        return False


@lru_cache(maxsize=16)
def _decoder(schema: str) -> Decoder:
    from hudi_format.avro.decoder import Decoder

    return Decoder(schema, arrow_schema=_COLUMNS)


def _from_avro(schema: str, bodies: Sequence[bytes]) -> Sequence[CommitFiles | None]:
    lengths = np.fromiter(map(len, bodies), np.int64, len(bodies))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]])
    try:
        batch = _decoder(schema).decode(pa.py_buffer(b"".join(bodies)), offsets, lengths)
    except HudiError:
        return [None] * len(bodies)
    stats, replaced = batch.column(0), batch.column(1)
    partitions, ends = stats.keys.to_pylist(), stats.items.offsets.to_numpy().tolist()
    columns = stats.items.values.flatten()
    old = replaced.to_pylist() if replaced.null_count < len(replaced) else [None] * len(replaced)
    folders = {p for gone in old for p, _ in gone or ()}.union(partitions)
    text = columns[1].buffers()[2]
    # Places that may lie outside the table are for who reads it all.
    if any("\0" in p or ".." in p for p in folders) or (text is not None and _astray(memoryview(text))):
        return [None] * len(bodies)
    ids, paths, sizes, starts = (c.to_pylist() for c in columns)
    out = []
    places = stats.offsets.to_numpy().tolist()
    for n, gone in enumerate(old):
        files = tuple(
            FileStat(partitions[p], ids[s] or "", paths[s].lstrip("/"), sizes[s] or 0, starts[s] or 0)
            for p in range(places[n], places[n + 1])
            for s in range(ends[p], ends[p + 1])
            if paths[s]
        )
        ids_gone = {p: tuple(i for i in some if i) for p, some in gone or () if some}
        out.append(CommitFiles(files, ids_gone, _HISTORY_BYTES in bodies[n]))
    return out


def _astray(text: memoryview) -> bool:
    found = bytes(text)
    return b"\0" in found or b".." in found


def _from_json(data: bytes, instant: Instant) -> CommitFiles | None:
    """File entries of a commit's JSON.

    None where the file has not the usual form, or names places that may lie outside the table.
    """
    if instant.action == REPLACE_COMMIT and _REPLACED_BYTES not in data:
        return None
    found = None if b".." in data else files_of_json(data)
    if found is None:
        return None
    files, replaced = found
    return CommitFiles(tuple(map(FileStat._make, files)), replaced, _HISTORY_BYTES in data)
