"""Records of file slices of the metadata table: by key, by the beginning of keys, or all.

Base files and log blocks are HFiles, so that a look-up reads the blocks of keys that it looks for.  What came later
takes the place of what came before, but for lists of files and statistics, which are combined
(`hudi_index.metadata_table.merger`).

Given: file slices, and whose log blocks count; both are the caller's to find.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.avro.decoder import Decoder, known_decoder
from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.records import decode_entries
from hudi_format.hfile.trailer import BLOOM_BLOCK, BLOOM_TYPE
from hudi_format.log.block import BlockType
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.scanner import BlockScope, SliceLog
from hudi_format.model import FileSlice
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.filter import DYNAMIC, SIMPLE, parse_filter
from hudi_index.metadata_table.merger import FILES, STATS, combine_files, combine_stats


@dataclass(frozen=True, slots=True)
class WantedRecords:
    """Choice of records: of `keys`, of keys that begin with one of `prefixes`, or all.

    Attributes:
        is_rare: few of the keys are there, so that the bloom filter of an HFile that has one is asked first.
    """

    keys: Sequence[str] | pa.Array | None = None
    prefixes: Sequence[str] | None = None
    is_rare: bool = False

    def of(self, file: HFileReader) -> Iterator[pa.RecordBatch]:
        """Entries of an HFile."""
        if self.keys is not None:
            yield from file.lookup(_screened(file, self.keys) if self.is_rare else self.keys).to_batches()
        elif self.prefixes is not None:
            yield from file.prefix(self.prefixes).to_batches()
        else:
            yield from file.batches()

    def has(self, keys: pa.Array) -> pa.Array:
        """Mask of the wanted among keys."""
        if self.keys is not None:
            own = self.keys if isinstance(self.keys, pa.Array) else pa.array(self.keys, pa.string())
            return pc.is_in(keys, own)
        if self.prefixes is not None:
            found = [k is not None and k.startswith(tuple(self.prefixes)) for k in keys.to_pylist()]
            return pa.array(found, pa.bool_())
        return pa.array(np.ones(len(keys), dtype=bool))


def _screened(file: HFileReader, keys: Sequence[str] | pa.Array) -> Sequence[str] | pa.Array:
    """The keys that an HFile's bloom filter does not rule out; all of few, and where it has none that is known."""
    code = file.file_info.get(BLOOM_TYPE, b"").decode("ascii", "replace")
    if len(keys) < _SCREENED or code not in (SIMPLE, DYNAMIC):
        return keys
    text = file.meta_block(BLOOM_BLOCK)
    if text is None:
        return keys
    given = keys if isinstance(keys, pa.Array) else pa.array(keys, pa.string())
    return given.filter(parse_filter(text.decode("ascii", "replace"), code).might_contain(given))


ALL = WantedRecords()
_SCREENED = 8
"""Keys from which on a filter is read for them, which is as long as some blocks."""
HELD_LOG_BYTES = 16 << 20
"""Log files of a slice that `OpenedSlices` holds in memory, unless told otherwise."""


class _Decoders:
    """Decoders into one schema, by the schema of the records; files of one table have few."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._known: dict[str, Decoder] = {}

    def records(self, file: HFileReader, wanted: WantedRecords, *, agree: bool) -> Iterator[pa.RecordBatch]:
        """The wanted records of an HFile; `agree` is `decode_entries`' `keys_agree`."""
        for entries in wanted.of(file):
            if entries.num_rows:
                yield decode_entries(entries, self._of(file), keys_agree=agree)

    def _of(self, file: HFileReader) -> Decoder:
        text = file.schema
        if text is None:
            raise CorruptFileError("an HFile without the schema of its records", file=file.path)
        if text not in self._known:
            self._known[text] = known_decoder(text, arrow_schema=self.schema)
        return self._known[text]


def read_records(
    storage: Storage, file_slice: FileSlice, scope: BlockScope, schema: pa.Schema, wanted: WantedRecords = ALL
) -> pa.RecordBatch:
    """Records of a file slice of the metadata table, one per key, in the order of the keys.

    Deleted ones are left out, but those that say of themselves that they are deleted.

    Args:
        storage: the metadata table's.
        scope: whose log blocks count.
        schema: as of `hudi_index.metadata_table.records.schema_of`.

    Raises:
        MissingFileError, CorruptFileError: a file is gone or damaged.
        UnsupportedError: a base file or a log block that is no HFile.
    """
    return _read(_parts(storage, file_slice, scope), storage, _Decoders(schema), wanted)


@dataclass(frozen=True, slots=True)
class _SlicePart:
    """HFile of a slice, or keys that a block deletes.

    Attributes:
        instant: of the log block; "" for the base file.
    """

    path: str
    instant: str
    file: HFileReader | None
    deleted: pa.Array | None = None


def _read(
    files: Iterable[_SlicePart], storage: Storage, decoders: _Decoders, wanted: WantedRecords
) -> pa.RecordBatch:
    parts: list[pa.RecordBatch] = []
    gone: list[tuple[int, pa.Array]] = []  # how many parts came before the delete
    try:
        for part in files:
            if part.deleted is not None:
                gone.append((len(parts), part.deleted.filter(wanted.has(part.deleted))))
            if part.file is not None:
                try:
                    parts += decoders.records(part.file, wanted, agree=not part.instant)
                except CorruptFileError as e:
                    raise e.at(file=part.path, instant=part.instant) from e.__cause__
    except HudiError as e:
        raise e.at(table=storage.uri) from e.__cause__
    return _merged(parts, gone, decoders.schema)


def _parts(storage: Storage, file_slice: FileSlice, scope: BlockScope) -> Iterator[_SlicePart]:
    """HFiles and deletes of a slice, in the order in which they were written."""
    base = file_slice.base_file
    if base is not None:
        if not base.path.endswith(".hfile"):
            raise UnsupportedError("the metadata table has a base file that is no HFile", file=base.path)
        try:
            yield _SlicePart(base.path, "", HFileReader.open(storage, base.path))
        except CorruptFileError as e:
            raise e.at(file=base.path) from e.__cause__
    if not file_slice.log_files:
        return
    with SliceLog(storage, file_slice.log_files, scope) as log:
        for block in log.blocks:
            content = log.content(block)
            if block.type is BlockType.DELETE:
                yield _SlicePart(block.file, block.instant, None, read_deletes(block, content).keys)
                continue
            if block.type is not BlockType.HFILE_DATA:
                raise UnsupportedError(
                    f"the metadata table has a {block.type.name} block in its log", file=block.file
                )
            data = memoryview(content).cast("B")
            file = HFileReader.from_buffer(data, path=block.file, offset=block.content_offset)
            yield _SlicePart(block.file, block.instant, file)


class OpenedSlices:
    """File slices that stay open between look-ups: their indexes, blocks and log blocks.

    Not for several threads at once.

    Args:
        storage: the metadata table's.
        scope: whose log blocks count.
        schema: as of `hudi_index.metadata_table.records.schema_of`.
        log_bytes: log files up to which a slice's are held.
    """

    def __init__(
        self, storage: Storage, scope: BlockScope, schema: pa.Schema, *, log_bytes: int = HELD_LOG_BYTES
    ) -> None:
        self._storage = storage
        self._scope = scope
        self._decoders = _Decoders(schema)
        self._log_bytes = log_bytes
        self._held: dict[FileSlice, tuple[_SlicePart, ...]] = {}

    def records(self, file_slice: FileSlice, wanted: WantedRecords) -> pa.RecordBatch:
        """Records of a slice; arguments and errors as of `read_records`."""
        parts: Iterable[_SlicePart] | None = self._held.get(file_slice)
        if parts is None:
            parts = _parts(self._storage, file_slice, self._scope)
            if file_slice.log_bytes <= self._log_bytes:
                try:
                    parts = self._held[file_slice] = tuple(parts)
                except HudiError as e:
                    raise e.at(table=self._storage.uri) from e.__cause__
        return _read(parts, self._storage, self._decoders, wanted)


def _merged(
    parts: Sequence[pa.RecordBatch], gone: Sequence[tuple[int, pa.Array]], schema: pa.Schema
) -> pa.RecordBatch:
    """The last record of each key that was not deleted after it, combined with those before it."""
    if not parts:
        return pa.RecordBatch.from_pylist([], schema)
    table = pa.Table.from_batches([p.cast(schema) for p in parts]).combine_chunks()
    rows = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema)
    if not rows.num_rows:
        return rows
    part = np.repeat(np.arange(len(parts)), [p.num_rows for p in parts])
    keys = rows.column("key")
    if len(parts) == 1 and not gone:
        return _once(rows, keys)
    codes = keys.dictionary_encode()
    numbers = codes.indices.to_numpy(zero_copy_only=False)
    deleted_before = np.zeros(len(codes.dictionary), dtype=np.int64)
    for at, deletes in gone:
        found = pc.index_in(pc.unique(deletes.cast(pa.string())), codes.dictionary).drop_null()
        deleted_before[found.to_numpy(zero_copy_only=False)] = at
    alive = np.flatnonzero(part >= deleted_before[numbers])
    return _once(rows.take(pa.array(alive)), keys.take(pa.array(alive)))


def _once(rows: pa.RecordBatch, keys: pa.Array) -> pa.RecordBatch:
    """One record per key, in the order of the keys; rows are in the order in which they were written."""
    count = rows.num_rows
    ascending = pc.less(keys.slice(0, max(0, count - 1)), keys.slice(1))
    if pc.all(ascending, skip_nulls=False, min_count=0).as_py():
        return rows  # as those of one HFile are
    order = pc.array_sort_indices(keys).to_numpy()  # stable
    sorted_keys = keys.take(pa.array(order))
    same = np.asarray(pc.equal(sorted_keys.slice(1), sorted_keys.slice(0, count - 1)))
    last = np.flatnonzero(np.append(~same, True))
    out = rows.take(pa.array(order[last]))
    if len(last) == count:
        return out
    for name, combine in ((FILES, combine_files), (STATS, combine_stats)):
        at = out.schema.get_field_index(name)
        if at < 0:
            continue
        values = out.column(at).to_pylist()
        starts = np.append(0, last[:-1] + 1)
        for n in np.flatnonzero(last > starts).tolist():
            value = None
            for row in rows.column(name).take(pa.array(order[starts[n] : last[n] + 1])).to_pylist():
                value = combine(value, row) if value is not None and row is not None else row
            values[n] = value
        out = out.set_column(at, out.schema.field(at), pa.array(values, out.schema.field(at).type))
    return out


def read_slices(
    storage: Storage,
    slices: Iterable[tuple[FileSlice, WantedRecords]],
    scope: BlockScope,
    schema: pa.Schema,
) -> pa.Table:
    """Records of several file slices, one after the other; errors as of `read_records`."""
    decoders = _Decoders(schema)
    found = [_read(_parts(storage, s, scope), storage, decoders, wanted) for s, wanted in slices]
    return pa.Table.from_batches(found, schema)
