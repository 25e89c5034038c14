"""Places of keys by an index of them: the record index, or any other like it.

An index is asked for the keys that come in, and what it says is believed only of file groups that the table has: a
key in one that is not there, and every key where the index cannot be read, is looked for in all files.

Source: SparkMetadataTableRecordIndex of Apache Hudi 0.15, which believes a location whose instant is on the timeline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from hudi_format.errors import (
    CorruptFileError,
    HudiError,
    MissingFileError,
    NotAHudiTableError,
    SchemaError,
    UnsupportedError,
)
from hudi_format.log.scanner import BlockScope
from hudi_format.model import BaseFile, FileSlice
from hudi_format.parquet.row_groups import read_row_groups
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table.records import LOCATION, file_id_of, schema_of
from hudi_index.metadata_table.slice_records import OpenedSlices, WantedRecords, read_slices

Group = tuple[str, str]
"""Partition path and file id."""
UNREADABLE = (CorruptFileError, MissingFileError, NotAHudiTableError, SchemaError, UnsupportedError)
"""Errors of an index whose keys are looked for in the files instead."""

_NUMBERS = ("fileIdHighBits", "fileIdLowBits", "fileIndex", "fileIdEncoding")
_TEXTS = ("partitionName", "fileId")
# Fewer keys than these are asked for at once, more of them in so many parts at most, by threads.
_SMALL = 10_000
_MOST_PARTS = 16
# Bytes of a block of an index in the file: 64 KiB before they were compressed, and what they come to.
_BLOCK_BYTES = 12_000
# Measured on one core: compressed bytes of an index a second, nine tenths of which is inflation of six times as many;
# unpacked bytes of a column of keys; and what opening a base file takes, on a local disk and in a store.
_INDEX_BYTES_PER_S = 45e6
_KEY_BYTES_PER_S = 190e6
_OPENING_S = 0.002
_OPENING_REMOTE_S = 0.03
# Sending one key to one task; by the index it is sent as often as here: for its shard, back, and to the shard's task.
_SENDING_S = 1e-6
_SENT_BY_INDEX = 3
# Below this many seconds no footer is read to choose.
_WORTH_CHOOSING_S = 0.2
# As the estimates are rough, the files are asked where they are as much cheaper as this.
_CHEAPER = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """File groups of keys.

    Attributes:
        keys: those that the index has, once for each file group that it has them in.
        group: number of each key's file group in `groups` (int64).
        groups: each once.
        doubted: keys that are to be looked for in all files, whatever else is said of them; None for none.
        why: what makes them doubtful.
    """

    keys: pa.Array
    group: np.ndarray
    groups: tuple[Group, ...]
    doubted: pa.Array | None = None
    why: str = ""

    def by_key(self) -> dict[str, Group]:
        """File group of each key, of keys that are in one."""
        return dict(zip(self.keys.to_pylist(), (self.groups[n] for n in self.group.tolist()), strict=True))


class KeyLocator(Protocol):
    """Index of keys over all partitions; picklable, as tasks carry it."""

    @property
    def count(self) -> int:
        """Number of parts that the keys are divided into; keys of one are best asked for together."""
        ...

    def shards(self, keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """Part (int64) that each key is in; keys are not null."""
        ...

    def locate(self, keys: pa.Array | pa.ChunkedArray) -> Located:
        """File groups of keys; absent ones are left out.

        Raises:
            one of `UNREADABLE`: what the index says cannot be read; the keys are looked for in the files.
            StorageError: the store does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Partition `record_index` of a metadata table.

    Attributes:
        storage: the metadata table's.
        slices: its file slices by shard, from 0 on.
        scope: whose log blocks count.
    """

    storage: Storage
    slices: tuple[FileSlice, ...]
    scope: BlockScope

    @property
    def count(self) -> int:
        return len(self.slices)

    def shards(self, keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
        return k.shards(keys, len(self.slices))

    def wanted(self, keys: pa.Array | pa.ChunkedArray) -> list[tuple[FileSlice, WantedRecords]]:
        """Slices that keys may be in, and the keys of each."""
        distinct = k.sorted_keys(keys)
        shards = self.shards(distinct)
        return [
            (self.slices[n], WantedRecords(keys=distinct.filter(pa.array(shards == n))))
            for n in np.unique(shards).tolist()
        ]

    def locate(self, keys: pa.Array | pa.ChunkedArray) -> Located:
        parts = self.wanted(keys)
        return located(read_slices(self.storage, parts, self.scope, schema_of(k.RECORD_INDEX)))

    def opened(self) -> OpenedRecordIndex:
        """The index with files that stay open between look-ups."""
        return OpenedRecordIndex(self, OpenedSlices(self.storage, self.scope, schema_of(k.RECORD_INDEX)))


@dataclass(frozen=True, slots=True)
class OpenedRecordIndex:
    """Record index whose files stay open between look-ups; not for several threads at once."""

    index: RecordIndex
    files: OpenedSlices

    def locate(self, keys: pa.Array | pa.ChunkedArray) -> Located:
        """As `RecordIndex.locate`."""
        found = [self.files.records(s, wanted) for s, wanted in self.index.wanted(keys)]
        return located(pa.Table.from_batches(found, schema_of(k.RECORD_INDEX)))


def located(records: pa.Table) -> Located:
    """File groups of records of `record_index`.

    Raises:
        CorruptFileError: a record without a file group, or of an encoding that no release has.
    """
    rows = records.combine_chunks()
    if not rows.num_rows:
        return Located(pa.array([], pa.string()), np.empty(0, dtype=np.int64), ())
    keys, places = (one.combine_chunks() for one in (rows.column("key"), rows.column(LOCATION)))
    if places.null_count:
        lost = keys.filter(places.is_null())[0].as_py()
        raise CorruptFileError(f"the record index has no location for the key {lost!r}")
    # One number for each combination of the fields, which are few: those of file groups.
    code = np.zeros(len(keys), dtype=np.int64)
    for name in (*_TEXTS, *_NUMBERS):
        column = places.field(name).dictionary_encode("encode")
        own = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        code = code * max(1, len(column.dictionary)) + own
        code = pa.array(code).dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(code, return_index=True)
    groups: dict[Group, int] = {}
    number = np.empty(len(first), dtype=np.int64)
    for n, at in enumerate(first.tolist()):
        found = places[at].as_py()
        partition = found["partitionName"]
        group = (
            "" if partition in (None, k.NOT_PARTITIONED) else partition,
            file_id_of(found, keys[at].as_py()),
        )
        number[n] = groups.setdefault(group, len(groups))
    return Located(keys, number[code], tuple(groups))


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Answer of an index about keys that come in, as far as it is believed.

    Attributes:
        rows: of each file group that holds any, the rows of the keys, ascending (int64).
        doubted: rows of the keys that are to be looked for in all files (int64).
        why: the first reason, "" for none.
    """

    rows: Mapping[Group, np.ndarray]
    doubted: np.ndarray
    why: str = ""


def located_by(
    locator: KeyLocator, keys: pa.Array | pa.ChunkedArray, pool: Executor | None = None
) -> Located:
    """File groups of keys, asked for by threads where there are many; errors of `locate`."""
    if pool is None or locator.count < 2 or len(keys) < _SMALL:
        return locator.locate(keys)
    part = np.array(shards_by_task(locator.count, _MOST_PARTS))[locator.shards(keys)]
    wanted = [keys.filter(pa.array(part == n)) for n in np.unique(part).tolist()]
    return _together(list(pool.map(locator.locate, wanted)))


def _together(parts: Sequence[Located]) -> Located:
    """Answers about different keys as one."""
    groups: dict[Group, int] = {}
    numbers = [
        np.array([groups.setdefault(g, len(groups)) for g in one.groups], dtype=np.int64)[one.group]
        for one in parts
        if len(one.group)
    ]
    none = pa.array([], pa.string())
    keys = pa.concat_arrays([none, *(one.keys.cast(pa.string()) for one in parts)])
    doubted = [one.doubted.cast(pa.string()) for one in parts if one.doubted is not None]
    return Located(
        keys,
        np.concatenate([np.empty(0, dtype=np.int64), *numbers]),
        tuple(groups),
        pa.concat_arrays(doubted) if doubted else None,
        next((one.why for one in parts if one.why), ""),
    )


def places_of(
    locator: KeyLocator,
    keys: pa.Array | pa.ChunkedArray,
    find: Callable[[pa.Array], np.ndarray],
    groups: Mapping[str, Iterable[str]],
    pool: Executor | None = None,
) -> Places:
    """Places of keys in the file groups of a table.

    Args:
        keys: not null.
        find: row of each key among those that come in, -1 for none (`KeyIndex.find`).
        groups: ids of the table's file groups by partition.
        pool: its threads ask for many keys.

    Raises:
        StorageError: the index does not answer.
    """
    rows = np.arange(len(keys), dtype=np.int64)
    try:
        told = located_by(locator, keys, pool)
    except UNREADABLE as e:
        return Places({}, rows, str(e))
    at = find(told.keys)
    known = {(p, i) for p, ids in groups.items() for i in ids}
    order = np.argsort(told.group, kind="stable")
    bounds = np.searchsorted(told.group[order], np.arange(len(told.groups) + 1))
    out: dict[Group, np.ndarray] = {}
    doubted: list[np.ndarray] = []
    why = ""
    if told.doubted is not None and len(told.doubted):
        mine = find(told.doubted)
        doubted.append(mine[mine >= 0])
        why = told.why
    for n, group in enumerate(told.groups):
        mine = at[order[bounds[n] : bounds[n + 1]]]
        mine = np.unique(mine[mine >= 0])
        if not len(mine):
            continue
        if group in known:
            out[group] = mine
        else:
            doubted.append(mine)
            why = why or f"it has keys in the file group {group[1]}, which the table has not"
    none = np.empty(0, dtype=np.int64)
    return Places(out, np.unique(np.concatenate([none, *doubted])), why)


def files_are_cheaper(
    storage: Storage,
    files: Mapping[str, Sequence[BaseFile]],
    groups: Mapping[str, Sequence[str]],
    locator: KeyLocator | None,
    keys: int,
    tasks: int = 0,
) -> bool:
    """Whether keys are found with less work in all files than by the record index.

    It holds keys in compressed blocks of some 700.  Where keys come in for most of its blocks it is unpacked almost
    whole, with a place beside each key; the keys alone, in the base files, are several times less to unpack.  Both say
    the same where no file slice has log files: then the cheaper one is asked.

    Args:
        files: latest base files of the whole table by partition, none of which has log files.
        groups: ids of the table's file groups by partition.
        locator: of an index of one's own nothing is known, so that it is asked.
        keys: number of those that are looked for.
        tasks: to each of which all keys are sent; 0 where they are at hand.
    """
    if not isinstance(locator, RecordIndex):
        return False
    bases = [f for of in files.values() for f in of]
    # A file group without a base file is not in the files.
    if len(bases) != sum(map(len, groups.values())) or any(f.size < 0 for f in bases):
        return False
    by_index = index_seconds(locator, keys)
    if by_index < _WORTH_CHOOSING_S or not bases:
        return False
    opening = len(bases) * (_OPENING_S if storage.is_local else _OPENING_REMOTE_S)
    sending = max(0, tasks - _SENT_BY_INDEX) * keys * _SENDING_S
    if (opening + sending) * _CHEAPER >= by_index:
        return False
    share = _key_share(storage, max(bases, key=lambda f: f.size))
    if share is None:
        return False
    seconds = opening + sending + share * sum(f.size for f in bases) / _KEY_BYTES_PER_S
    return seconds * _CHEAPER < by_index


def index_seconds(index: RecordIndex, keys: int) -> float:
    """Seconds of one core that an index takes for keys in no order; 0 where no size is known."""
    held = [f for s in index.slices for f in (s.base_file, *s.log_files) if f is not None]
    size = sum(max(0, f.size) for f in held)
    blocks = max(1.0, size / _BLOCK_BYTES)
    # A block is read if any key is in its range.
    return size * -math.expm1(-keys / blocks) / _INDEX_BYTES_PER_S


def _key_share(storage: Storage, file: BaseFile) -> float | None:
    """Unpacked bytes of keys for each byte of a base file; None where its footer does not say.

    Errors of the file are those of the look-up itself, which says them better.
    """
    try:
        groups = read_row_groups(storage, file.path, [RECORD_KEY])
    except HudiError:
        return None
    chunks = [g.columns.get(RECORD_KEY) for g in groups]
    if not chunks or file.size <= 0 or any(c is None or c.unpacked < 0 for c in chunks):
        return None
    return sum(c.unpacked for c in chunks if c is not None) / file.size


def shards_by_task(count: int, tasks: int) -> Sequence[int]:
    """Number of a task for each shard, so that neighbours go to one."""
    return [n * max(1, min(tasks, count)) // max(1, count) for n in range(count)]
