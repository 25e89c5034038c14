"""Traces of record keys in one file of any kind, which its first bytes tell, not its name.

Records are decoded and their keys compared; footers, values of HFiles and texts are searched for the key.  A key of
fewer than four bytes is looked for in these as a whole value only, since by chance it stands in any file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

from hudi_format.errors import CorruptFileError
from hudi_format.file_names import parse_log_file
from hudi_format.hfile.reader import HFileReader
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import record_keys
from hudi_format.log.block import BlockType, LogBlock
from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.reader import LogFileReader
from hudi_format.parquet.footer import MAX_KEY, MIN_KEY
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.protocol import Storage

ROW, KEY_RANGE, BLOCK, DELETE_BLOCK, CHANGE, INDEX, VALUE, TEXT = (
    "row", "key range", "log block", "delete block", "captured change", "index entry", "value", "text",
)  # fmt: skip
"""What holds a key."""

_LOG, _PARQUET, _ORC, _HFILE = b"#HUDI#", b"PAR1", b"ORC", b"DATABLK*"
_COMPRESSED = (".parquet", ".orc", ".hfile")
_SHORT = 4
_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@dataclass(frozen=True, slots=True)
class Trace:
    """One key in one file: what holds it, and of a log block where, and whose."""

    key: str
    what: str
    offset: int | None = None
    instant: str | None = None


class TracedKeys:
    """Keys to look for, and how rows without meta columns make theirs."""

    def __init__(self, keys: pa.Array, spec: KeySpec | None) -> None:
        self.keys = keys.cast(pa.string())
        self._spec = spec
        raw = {key.encode(): key for key in self.keys.to_pylist()}
        self._words = Needles({r: key for r, key in raw.items() if len(r) >= _SHORT})
        self._quoted = Needles({b'"%s"' % r: key for r, key in raw.items() if len(r) < _SHORT})
        self._measured = Needles({_length(len(r)) + r: key for r, key in raw.items() if len(r) >= _SHORT})

    def among(self, keys: pa.Array | pa.ChunkedArray) -> list[str]:
        """Wanted keys among others."""
        texts = keys.cast(pa.string())
        found: list[str] = pc.unique(texts.filter(pc.is_in(texts, self.keys))).to_pylist()
        return found

    def in_rows(self, rows: pa.Table) -> list[str]:
        """Keys of rows, by meta column or key columns; of images of changes too."""
        found: list[str] = []
        for name in (RECORD_KEY, "record_key"):
            if name in rows.column_names and rows.column(name).null_count < rows.num_rows:
                found += self.among(rows.column(name).drop_null())
        for name in ("before", "after"):
            if name in rows.column_names and pa.types.is_struct(rows.schema.field(name).type):
                images = rows.select([name]).filter(pc.is_valid(rows.column(name)))
                flat = images.flatten()
                found += self.in_rows(flat.rename_columns([n.partition(".")[2] for n in flat.column_names]))
        spec = self._spec
        if not found and spec is not None and rows.num_rows:
            roots = {k.partition(".")[0] for k in spec.key_fields}
            if roots and roots <= {*rows.column_names}:
                for root in roots if len(roots) == 1 else ():
                    rows = rows.filter(pc.is_valid(rows.column(root)))
                found += self.among(record_keys(rows, spec)) if rows.num_rows else []
        return sorted(set(found))

    def in_text(self, data: bytes | memoryview) -> list[str]:
        """Keys in bytes, where no letter, digit, `_` or `-` is beside them."""
        raw = bytes(data)
        found = {key for key, _, _ in self._quoted.within(raw)}
        for key, begin, end in self._words.within(raw):
            if not (begin and raw[begin - 1] in _WORD) and not (end < len(raw) and raw[end] in _WORD):
                found.add(key)
        return sorted(found)

    def in_values(self, values: pa.ChunkedArray) -> list[str]:
        """Keys in Avro records: a text there has its length before it."""
        found: set[str] = set()
        for chunk in values.cast(pa.large_binary()).chunks:
            _, bounds, data = chunk.buffers()
            if data is None:
                continue
            offsets = np.frombuffer(bounds, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
            for key, begin, end in self._measured.within(data.to_pybytes()):
                # Not what begins in one record and ends in the next.
                at = int(np.searchsorted(offsets, begin, "right")) - 1
                if 0 <= at < len(chunk) and end <= offsets[at + 1]:
                    found.add(key)
        return sorted(found)


class Needles:
    """Byte strings that stand for keys and are looked for in others, all at once.

    Where one may begin is told by tables of their first bytes, so that what is slow is done at few places.
    """

    def __init__(self, keys: Mapping[bytes, str]) -> None:
        self._head = min(4, min(map(len, keys), default=0))
        self._tables = np.zeros((self._head, 256), dtype=bool)
        self._by_head: dict[bytes, dict[int, dict[bytes, str]]] = {}
        for needle, key in keys.items():
            head = needle[: self._head]
            self._tables[range(self._head), list(head)] = True
            self._by_head.setdefault(head, {}).setdefault(len(needle), {})[needle] = key

    def within(self, data: bytes) -> Iterator[tuple[str, int, int]]:
        """Key, begin and end of each occurrence."""
        size = self._head
        places = len(data) - size + 1
        if not self._by_head or places <= 0:
            return
        values = np.frombuffer(data, np.uint8)
        there = self._tables[0][values[:places]]
        for n in range(1, size):
            there &= self._tables[n][values[n : n + places]]
        for begin in np.flatnonzero(there).tolist():
            for length, needles in self._by_head.get(data[begin : begin + size], {}).items():
                key = needles.get(data[begin : begin + length])
                if key is not None:
                    yield key, begin, begin + length


def _length(size: int) -> bytes:
    """Avro's length of a text."""
    left, out = size << 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def traces(storage: Storage, path: str, wanted: TracedKeys) -> Iterator[Trace]:
    """Traces of keys in a file.

    Raises:
        FileNotFoundError, MissingFileError: it is gone.
        CorruptFileError: a file whose records cannot be read, so that nothing can be said of it.
    """
    with storage.open_input(path) as source:
        head = source.read(8)
        if head[:4] == _PARQUET:
            with _readable(storage, path):
                found = list(_parquet(pq.ParquetFile(source), wanted))
        elif head[:3] == _ORC:
            with _readable(storage, path):
                found = list(_orc(orc.ORCFile(source), wanted))
        elif head[:6] == _LOG:
            found = list(_log(storage, path, wanted))
        elif head == _HFILE:
            found = list(_hfile(HFileReader.open(storage, path), wanted))
        else:
            source.seek(0)
            data = source.read()
            # What is compressed is not found as text.
            if _names_records(path) and data.strip(b"\0"):
                raise _unreadable(storage, path, "it does not begin as its name says")
            found = [Trace(k, TEXT) for k in wanted.in_text(data)]
    yield from found


def _names_records(path: str) -> bool:
    """Whether a file has the name of one whose records are compressed."""
    folder, _, name = path.rpartition("/")
    return name.endswith(_COMPRESSED) or parse_log_file(folder, name) is not None


@contextmanager
def _readable(storage: Storage, path: str) -> Iterator[None]:
    """Raise what Arrow raises for damaged bytes, of which it has several kinds, as CorruptFileError."""
    try:
        yield
    except OSError as e:
        if e.errno:  # of the operating system
            raise
        raise _unreadable(storage, path, str(e)) from e
    except (pa.ArrowException, ValueError, MemoryError) as e:
        raise _unreadable(storage, path, str(e)) from e


def _unreadable(storage: Storage, path: str, reason: str) -> CorruptFileError:
    return CorruptFileError(
        f"the file cannot be read, so that nothing can be said of its keys: {reason}", table=storage.uri, file=path,
        remedy="run `hudi verify --deep`.",
    )  # fmt: skip


def _parquet(file: pq.ParquetFile, wanted: TracedKeys) -> Iterator[Trace]:
    found: set[str] = set()
    for batch in file.iter_batches():
        found.update(wanted.in_rows(pa.Table.from_batches([batch])))
    yield from (Trace(k, ROW) for k in sorted(found))
    entries = file.metadata.metadata or {}
    stored = [entries.get(n.encode()) for n in (MIN_KEY, MAX_KEY)]
    ends = pa.array([e.decode("utf-8", "replace") for e in stored if e is not None], pa.string())
    yield from (Trace(k, KEY_RANGE) for k in wanted.among(ends))
    if found or RECORD_KEY in file.schema_arrow.names:
        return
    # A file of something else than the table's rows, such as a history of instants.
    texts: set[str] = set()
    for batch in file.iter_batches():
        for column in batch.columns:
            if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
                for value in column.drop_null():
                    texts.update(wanted.in_text(value.as_buffer()))
    yield from (Trace(k, VALUE) for k in sorted(texts))


def _orc(file: orc.ORCFile, wanted: TracedKeys) -> Iterator[Trace]:
    for stripe in range(file.nstripes):
        rows = pa.Table.from_batches([file.read_stripe(stripe)])
        yield from (Trace(k, ROW) for k in wanted.in_rows(rows))


def _hfile(file: HFileReader, wanted: TracedKeys) -> Iterator[Trace]:
    found: dict[str, set[str]] = {INDEX: set(), VALUE: set()}
    for batch in file.batches():
        rows = pa.Table.from_batches([batch])
        keys, values = rows.column(0), rows.column(1)
        raw = wanted.keys.cast(pa.binary())
        there = pc.is_in(keys.cast(pa.binary()), raw)
        found[INDEX].update(k.decode() for k in keys.cast(pa.binary()).filter(there).to_pylist())
        found[VALUE].update(wanted.in_values(values.cast(pa.binary())))
    yield from (Trace(k, what) for what, keys in found.items() for k in sorted(keys))


def _log(storage: Storage, path: str, wanted: TracedKeys) -> Iterator[Trace]:
    with LogFileReader.open(storage, path) as log:
        for block in log.blocks:
            found = list(
                _block(block, log.content(block) if block.content_length else pa.py_buffer(b""), wanted)
            )
            if block.type is BlockType.CORRUPT:
                found = [(k, TEXT) for k in wanted.in_text(bytes(log.read(block.offset, block.size)))]
            yield from (Trace(k, what, block.offset, block.instant or None) for k, what in found)


def _block(block: LogBlock, content: pa.Buffer, wanted: TracedKeys) -> Sequence[tuple[str, str]]:
    if block.type in (BlockType.CORRUPT, BlockType.COMMAND):
        return []
    if block.type is BlockType.DELETE:
        return [(k, DELETE_BLOCK) for k in wanted.among(read_deletes(block, content).keys)]
    if block.type is BlockType.HFILE_DATA:
        file = HFileReader.from_buffer(memoryview(content), path=block.file, offset=block.content_offset)
        return [(t.key, t.what) for t in _hfile(file, wanted)]
    found: set[str] = set()
    for batch in BlockDecoder().batches(block, content):
        found.update(wanted.in_rows(pa.Table.from_batches([batch])))
    what = CHANGE if block.type is BlockType.CDC_DATA else BLOCK
    if not found and block.type is BlockType.AVRO_DATA:
        # Records of something else than the table's rows, such as archived instants.
        whole = pa.chunked_array([pa.array([content.to_pybytes()], pa.binary())])
        return [(k, VALUE) for k in sorted({*wanted.in_values(whole), *wanted.in_text(memoryview(content))})]
    return [(k, what) for k in sorted(found)]
