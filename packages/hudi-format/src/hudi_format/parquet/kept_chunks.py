"""Column chunks that a rewritten base file takes over, and the file of them and new ones.

Most values of a file group outlive the write that rewrites it: of a record that changes most columns stay, and new
records change none.  A chunk that stays costs a copy instead of decoding, encoding and compressing it.  Its bytes and
what the footer says of it are copied, places apart.

Only chunks that this machine's Arrow could have written so now are taken over: the footers name the same writer and
have the same schema, the codec is the wanted one, and the offset index is there.  A column index is not where a page
has values without bounds: texts of more than 4096 bytes, or NaN alone.  Their pages are not looked at: what is damaged
in them is found by who reads them, in the new file as in the old one.

Source: parquet.thrift, FileMetaData, RowGroup, ColumnChunk, ColumnMetaData and OffsetIndex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from hudi_format.parquet.thrift import (
    I16,
    I32,
    I64,
    LIST,
    MAGIC,
    STRUCT,
    Cursor,
    Fields,
    file_end,
    footer_of,
    integer,
    number_of,
    once,
    optional_number,
    raw_of,
    replaced,
    struct,
    structs,
    texts,
)

# Fields of FileMetaData.
_SCHEMA, _ROWS, _GROUPS, _WRITER, _ORDERS = 2, 3, 4, 6, 7
# Of ColumnChunk: those that are known, and that say where the indexes are.  Pages in another file have one more, and
# encrypted ones too.
_META, _OFFSETS_AT, _OFFSETS_LENGTH, _BOUNDS_AT, _BOUNDS_LENGTH = 3, 4, 5, 6, 7
_OF_CHUNK = {2, _META, _OFFSETS_AT, _OFFSETS_LENGTH, _BOUNDS_AT, _BOUNDS_LENGTH}
# Of ColumnMetaData; a bloom filter, or anything that is not known here, is not copied with the pages.
_PATH, _CODEC, _UNPACKED, _PACKED, _DATA_AT, _DICTIONARY_AT = 3, 4, 6, 7, 9, 11
_OF_META = {1, 2, _PATH, _CODEC, 5, _UNPACKED, _PACKED, _DATA_AT, _DICTIONARY_AT, 12, 13, 16}
# A row group stays while it has so many times the rows behind it.
_WORTH = 4


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of one row group.

    Attributes:
        meta: fields of its ColumnMetaData.
        begin, length: of its pages, in bytes of the file.
        data: where those with values begin, behind a dictionary.
        offsets, bounds: place and length of its page indexes; None where it has no such one.
    """

    meta: Fields
    begin: int
    length: int
    data: int
    offsets: tuple[int, int] | None
    bounds: tuple[int, int] | None

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Place and length of each part."""
        pages, offsets, bounds = (self.begin, self.length), self.offsets, self.bounds
        if offsets is not None and bounds is not None:
            return pages, offsets, bounds
        return tuple(p for p in (pages, offsets, bounds) if p is not None)

    @classmethod
    def of(cls, fields: Fields, end: int, known: Set[int] | None = None) -> Chunk:
        """The chunk of a ColumnChunk's fields.

        Args:
            end: where in the file its footer begins.
            known: numbers of the fields that its ColumnMetaData may have; None for any.

        Raises:
            ValueError: damaged, or pages in another file, or encrypted ones.
        """
        meta = once(Cursor(raw_of(once(fields, _OF_CHUNK), _META)).fields(), known)
        data, dictionary = number_of(meta, _DATA_AT), optional_number(meta, _DICTIONARY_AT)
        # Some writers name place 0 where there is no dictionary.
        begin = min(data, dictionary or data)
        offsets, bounds = _place(fields, _OFFSETS_AT), _place(fields, _BOUNDS_AT)
        chunk = cls(meta, begin, number_of(meta, _PACKED), data, offsets, bounds)
        for at, length in chunk.places:
            if at < len(MAGIC) or at + length > end:
                raise ValueError("a column chunk that is not in the file")
        return chunk


def _place(fields: Fields, number: int) -> tuple[int, int] | None:
    """A page index's place, and its length, which is the next field."""
    at = optional_number(fields, number)
    return None if at is None else (at, number_of(fields, number + 1))


@dataclass(frozen=True, slots=True)
class Group:
    """A row group: its rows, and its chunks in the order of the schema's leaves."""

    rows: int
    chunks: tuple[Chunk, ...]

    @property
    def unpacked(self) -> int:
        """Bytes of its pages before they were compressed."""
        return sum(number_of(c.meta, _UNPACKED) for c in self.chunks)


class StoredChunks:
    """The column chunks of a file.

    Args:
        footer: its bytes.
        begin: where in the file they begin.
        read: gives bytes of the file: place and length.

    Raises:
        ValueError: damaged bytes, or something that is not known here.
    """

    def __init__(self, footer: bytes, begin: int, read: Callable[[int, int], Any]) -> None:
        self.read = read
        fields = once(Cursor(footer).fields())
        self._begin = begin
        self._alike = [raw_of(fields, n) for n in (_SCHEMA, _WRITER, _ORDERS)]
        self.groups = [self._group(f) for f in Cursor(raw_of(fields, _GROUPS)).structs()]
        # Chunks that lie over each other would be copied more than once: a small file would become a large one.
        if sum(length for g in self.groups for c in g.chunks for _, length in c.places) > begin:
            raise ValueError("column chunks that lie over each other")

    def alike(self, other: StoredChunks) -> bool:
        """Whether both files have one schema and one writer."""
        return self._alike == other._alike

    def _group(self, fields: Fields) -> Group:
        chunks = tuple(self._chunk(f) for f in Cursor(raw_of(once(fields), 1)).structs())
        return Group(number_of(fields, 3), chunks)

    def _chunk(self, fields: Fields) -> Chunk:
        chunk = Chunk.of(fields, self._begin, _OF_META)
        if chunk.offsets is None:
            raise ValueError("a column chunk without a page index")
        return chunk


def chunks_of_file(file: Any) -> StoredChunks:
    """Chunks of a whole file in memory, which Arrow has just written."""
    view = memoryview(file)
    begin, footer = footer_of(view)
    return StoredChunks(footer, begin, lambda at, n: view[at : at + n])


def kept_groups(
    stored: StoredChunks,
    paths: Sequence[bytes],
    codec: int,
    more_rows: int,
    *,
    most_rows: int,
    most_bytes: int,
    least_chunk_bytes: int,
) -> frozenset[int]:
    """Numbers of the row groups that a new file may have as they are.

    A row group that is small beside what follows it is put together with that, or files would gather ever more of
    them: those that are left have at least four times the rows behind them, or half of a row group's bytes.

    Args:
        paths: of the schema's leaves, as chunks state them.
        more_rows: how many rows may be appended.
        most_rows, most_bytes: of a row group.
        least_chunk_bytes: of its chunks on average, before compression.
    """
    kept, behind = set(), more_rows
    for number in reversed(range(len(stored.groups))):
        group = stored.groups[number]
        size = group.unpacked
        known = len(group.chunks) == len(paths) and all(
            raw_of(c.meta, _PATH) == path and number_of(c.meta, _CODEC) == codec
            for c, path in zip(group.chunks, paths, strict=True)
        )
        fits = 0 < group.rows <= most_rows and least_chunk_bytes * len(paths) <= size <= most_bytes
        if known and fits and (group.rows >= _WORTH * behind or 2 * size >= most_bytes):
            kept.add(number)
        behind += group.rows
    return frozenset(kept)


def path_of(parts: Sequence[str]) -> bytes:
    """A leaf's path as chunks state it."""
    return texts(p.encode() for p in parts)


class ChunkFile:
    """A file of column chunks, written from its beginning to its end."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._groups: list[tuple[int, list[tuple[Fields, bytes, bytes | None]]]] = []
        sink.write(MAGIC)

    def add(self, rows: int, chunks: Iterable[tuple[StoredChunks, Chunk]]) -> None:
        """Append a row group of these chunks, in the order of the schema's leaves.

        Raises:
            OSError: the storage refused.
            ValueError: a chunk's page index is damaged, or shorter than it says.
        """
        out = []
        for source, chunk in chunks:
            # Looked at before anything is written.
            offsets = _whole(source, chunk.offsets)
            bounds = None if chunk.bounds is None else bytes(_whole(source, chunk.bounds))
            delta = int(self._sink.tell()) - chunk.begin
            moved = _moved(offsets, delta)
            self._sink.write(_whole(source, (chunk.begin, chunk.length)))
            places = {
                n: (I64, integer(at + delta))
                for n in (_DATA_AT, _DICTIONARY_AT)
                if (at := optional_number(chunk.meta, n))
            }
            out.append((replaced(chunk.meta, places), moved, bounds))
        self._groups.append((rows, out))

    def close(self, empty: bytes) -> None:
        """Write the page indexes and the footer.

        Args:
            empty: a file without rows, with the schema and the footer entries of this one.
        """
        footer = Cursor(footer_of(empty)[1]).fields()
        bounds = [[None if b is None else self._put(b) for _, _, b in chunks] for _, chunks in self._groups]
        offsets = [[self._put(o) for _, o, _ in chunks] for _, chunks in self._groups]
        groups = [
            _row_group(number, rows, [m for m, _, _ in chunks], offsets[number], bounds[number])
            for number, (rows, chunks) in enumerate(self._groups)
        ]
        total = sum(rows for rows, _ in self._groups)
        written = struct(replaced(footer, {_ROWS: (I64, integer(total)), _GROUPS: (LIST, structs(groups))}))
        self._sink.write(file_end(written))

    def _put(self, index: bytes) -> tuple[int, int]:
        at = int(self._sink.tell())
        self._sink.write(index)
        return at, len(index)


def _whole(source: StoredChunks, place: tuple[int, int] | None) -> Any:
    if place is None or len(found := source.read(*place)) != place[1]:
        raise ValueError("a column chunk is cut off, or has no page index")
    return found


def _moved(offsets: Any, delta: int) -> bytes:
    """An offset index with its pages elsewhere."""
    fields = Cursor(bytes(offsets)).fields()
    pages = [
        struct(replaced(page, {1: (I64, integer(number_of(page, 1) + delta))}))
        for page in Cursor(raw_of(fields, 1)).structs()
    ]
    return struct(replaced(fields, {1: (LIST, structs(pages))}))


def _row_group(
    number: int,
    rows: int,
    metas: Sequence[Fields],
    offsets: Sequence[tuple[int, int]],
    bounds: Sequence[tuple[int, int] | None],
) -> bytes:
    columns = []
    for meta, o, b in zip(metas, offsets, bounds, strict=True):
        fields = [
            (2, I64, integer(0)),  # of metadata behind the chunk, which nobody writes
            (_META, STRUCT, struct(meta)),
            (_OFFSETS_AT, I64, integer(o[0])),
            (_OFFSETS_LENGTH, I32, integer(o[1])),
        ]
        if b is not None:
            fields += [(_BOUNDS_AT, I64, integer(b[0])), (_BOUNDS_LENGTH, I32, integer(b[1]))]
        columns.append(struct(fields))
    first = metas[0]
    return struct(
        [
            (1, LIST, structs(columns)),
            (2, I64, integer(sum(number_of(m, _UNPACKED) for m in metas))),
            (3, I64, integer(rows)),
            (5, I64, integer(optional_number(first, _DICTIONARY_AT) or number_of(first, _DATA_AT))),
            (6, I64, integer(sum(number_of(m, _PACKED) for m in metas))),
            (7, I16, integer(min(number, 0x7FFF))),
        ]
    )
