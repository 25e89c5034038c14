"""Rows of some pages of a Parquet file, without the other pages.

Arrow reads whole row groups.  Here the pages that hold some rows are put together to a small file, under a footer that
describes it, and Arrow decodes that.  Which rows a page has is in the file's offset index; a column chunk without one
counts as one page.

A file with something that is not known here, or whose index contradicts its pages, is a ValueError: Arrow's own
reader says what it is.

Source: parquet.thrift, FileMetaData, SchemaElement, ColumnMetaData, PageHeader, OffsetIndex and ColumnIndex.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.parquet.arrow_file import ARROW_SCHEMA
from hudi_format.parquet.footer import check_columns
from hudi_format.parquet.kept_chunks import Chunk, path_of
from hudi_format.parquet.reader import pays_threads
from hudi_format.parquet.row_groups import VALUES_PER_BYTE
from hudi_format.parquet.text_column import ReadAt
from hudi_format.parquet.thrift import (
    BINARY,
    BOOLEANS,
    I32,
    I64,
    LIST,
    MAGIC,
    STRUCT,
    Cursor,
    Fields,
    file_end,
    integer,
    number_of,
    once,
    optional_number,
    raw_of,
    replaced,
    struct,
    structs,
)
from hudi_format.parquet.utf8 import check_text, texts_as_bytes

Rows = npt.NDArray[np.int64]

# Fields of FileMetaData: those that are looked at, and entries and encryption, which are not.
_VERSION, _SCHEMA, _ROWS, _GROUPS, _WRITER = 1, 2, 3, 4, 6
_OF_FILE = {_VERSION, _SCHEMA, _ROWS, _GROUPS, 5, _WRITER, 7}
# Of ColumnMetaData.
_PHYSICAL, _CODEC, _VALUES, _UNPACKED, _STATISTICS = 1, 4, 5, 6, 12
_BYTE_ARRAY = 6
_REPEATED = 2
_ENDLESS = 64  # levels of a schema
# What lies closer together in the file is read at once.
_GAP = 4 << 10
_REMOTE_GAP = 1 << 20
_INT96 = 3  # the physical type
_HEADER = 1 << 10  # of a page; one with long bounds has more


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Leaf of the schema.

    Attributes:
        path: as chunks state it.
        is_flat_bytes: whether it is a column of byte arrays by itself.
        repeats: whether a row may have several values.
    """

    path: bytes
    is_flat_bytes: bool
    repeats: bool


@dataclass(frozen=True, slots=True)
class _Column:
    """Column of the file: its part of the schema, and the numbers of its leaves."""

    schema: tuple[bytes, ...]
    leaves: range


@dataclass(frozen=True, slots=True)
class _Pages:
    """Data pages of a chunk: the first row of each, with the number of rows behind the last, and their bytes."""

    first: Rows
    places: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Group:
    rows: int
    chunks: list[Chunk]
    pages: dict[int, _Pages] = field(default_factory=dict)
    ranges: dict[int, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    bounds: dict[int, list[tuple[bytes, bytes] | None] | None] = field(default_factory=dict)


class PagedFile:
    """Layout of a Parquet file, from its footer.

    Page indexes are read when they are first needed, and kept.

    Args:
        footer: its bytes.
        size: of the file.

    Attributes:
        names: of the columns.
        size: of the file.
        num_chunks: how many column chunks it describes.

    Raises:
        ValueError: damaged, or something that is not known here.
    """

    def __init__(self, footer: memoryview, size: int) -> None:
        fields = once(Cursor(bytes(footer)).fields(), _OF_FILE)
        # Arrow's own schema says other types than Parquet's.
        if any(n == 5 and ARROW_SCHEMA in raw for n, _, raw in fields):
            raise ValueError("a file with Arrow's schema")
        self.size = size
        self._head = [f for f in fields if f[0] in (_VERSION, _WRITER)]
        self._leaves: list[_Leaf] = []
        self._columns = self._schema(Cursor(raw_of(fields, _SCHEMA)).structs())
        self.names = list(self._columns)
        orders = next((raw for n, _, raw in fields if n == 7), None)
        typed = [] if orders is None else [{n for n, _, _ in f} == {1} for f in Cursor(orders).structs()]
        self._typed = len(typed) == len(self._leaves) and all(typed)
        end = size - 8 - len(footer)
        self._groups = [self._group(once(f), end) for f in Cursor(raw_of(fields, _GROUPS)).structs()]
        if sum(g.rows for g in self._groups) != number_of(fields, _ROWS):
            raise ValueError("row groups with other rows than the footer")
        self.num_chunks = len(self._leaves) * len(self._groups)

    @property
    def num_row_groups(self) -> int:
        return len(self._groups)

    def rows(self, group: int) -> int:
        """Number of rows of a row group."""
        return self._groups[group].rows

    def _schema(self, elements: Sequence[Fields]) -> dict[str, _Column]:
        out: dict[str, _Column] = {}
        at = 1
        for _ in range(number_of(elements[0], 5) if elements else 0):
            begin, first = at, len(self._leaves)
            at = self._walk(elements, at, [], False)
            name = _text(elements[begin], 4)
            if name in out:
                raise ValueError(f"column {name} is duplicated")
            if len(self._leaves) == first:
                raise ValueError(f"column {name} has no values")
            out[name] = _Column(tuple(struct(f) for f in elements[begin:at]), range(first, len(self._leaves)))
        if at != len(elements) or not out:
            raise ValueError("a schema that is no tree of columns")
        self._root = elements[0]
        return out

    def _walk(self, elements: Sequence[Fields], at: int, above: list[str], repeats: bool) -> int:
        """Take the leaves of an element; gives the place behind it."""
        if at >= len(elements) or len(above) > _ENDLESS:
            raise ValueError("a schema that is cut off")
        element = elements[at]
        path = [*above, _text(element, 4)]
        children = optional_number(element, 5)
        repeats = repeats or number_of(element, 3) == _REPEATED
        if children is None:
            flat = not above and not repeats and optional_number(element, 1) == _BYTE_ARRAY
            self._leaves.append(_Leaf(path_of(path), flat, repeats))
            return at + 1
        at += 1
        for _ in range(children):
            at = self._walk(elements, at, path, repeats)
        return at

    def _group(self, fields: Fields, end: int) -> _Group:
        chunks = [Chunk.of(f, end) for f in Cursor(raw_of(fields, 1)).structs()]
        if len(chunks) != len(self._leaves):
            raise ValueError("a row group without all columns")
        return _Group(number_of(fields, 3), chunks)

    def is_flat_bytes(self, name: str) -> bool:
        """Whether a column is of byte arrays, whose bounds are in the order of their bytes."""
        column = self._columns.get(name)
        return column is not None and len(column.leaves) == 1 and self._leaves[column.leaves[0]].is_flat_bytes

    def load(self, read: ReadAt, group: int, names: Iterable[str], bounds_of: str, gap: int) -> None:
        """Read the page indexes of some columns that are not there yet.

        Args:
            bounds_of: the column of which the bounds of pages are wanted too.
        """
        found, missing = self._groups[group], []
        for name in names:
            missing += [leaf for leaf in self._columns[name].leaves if leaf not in found.pages]
        asked = self._columns[bounds_of].leaves[0]
        bounds = found.chunks[asked].bounds
        ranges = [o for leaf in missing if (o := found.chunks[leaf].offsets) is not None]
        if asked not in found.bounds and bounds is not None:
            ranges.append(bounds)
        parts = _read(read, ranges, gap)
        for leaf in missing:
            found.pages[leaf] = _pages(found.chunks[leaf], found.rows, parts)
        if asked not in found.bounds:
            usable = bounds is not None and self._typed
            found.ranges[asked] = _range(found.chunks[asked])
            found.bounds[asked] = _bounds(bytes(parts[bounds])) if usable and bounds is not None else None

    def pages_with(self, group: int, name: str, keys: Sequence[bytes]) -> tuple[Rows, Rows]:
        """First rows, and rows behind the last, of runs of pages that may hold one of the values.

        Args:
            name: a column that `is_flat_bytes`, whose indexes are loaded.
            keys: in ascending order.
        """
        found, leaf = self._groups[group], self._columns[name].leaves[0]
        pages, bounds = found.pages[leaf], found.bounds[leaf]
        if not found.rows or (self._typed and not _within(keys, *found.ranges[leaf])):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if bounds is None:
            chosen = np.ones(len(pages.places), bool)
        elif len(bounds) != len(pages.places):
            raise ValueError("page indexes with different numbers of pages")
        else:
            chosen = np.array([b is not None and _within(keys, *b) for b in bounds], bool)
        return _runs(pages.first, chosen)

    def covering(self, group: int, name: str, rows: Rows) -> tuple[Rows, Rows]:
        """Runs of rows of the pages that hold some rows, the same for all leaves of a column."""
        found = self._groups[group]
        leaves = self._columns[name].leaves
        starts, ends = rows, rows + 1
        while True:
            runs = [_overlapping(found.pages[leaf].first, starts, ends) for leaf in leaves]
            first = runs[0]
            if all(np.array_equal(first[0], r[0]) and np.array_equal(first[1], r[1]) for r in runs):
                return first
            starts, ends = (np.concatenate([r[n] for r in runs]) for n in (0, 1))

    def decode(
        self, read: ReadAt, group: int, names: Sequence[str], runs: tuple[Rows, Rows], gap: int
    ) -> tuple[pa.Table, Callable[[pa.Table], pa.Table]]:
        """Columns of runs of whole pages, and a check of some of the rows, which makes them plain.

        Args:
            names: columns whose pages begin and end where the runs do.

        Raises:
            ValueError, pa.ArrowException, OSError: the pages are not what the index says.
        """
        found, rows = self._groups[group], int((runs[1] - runs[0]).sum())
        picked = [(leaf, self._picked(found, leaf, runs)) for n in names for leaf in self._columns[n].leaves]
        ranges = [r for _, (dictionary, places) in picked for r in (*dictionary, *places)]
        parts = _read(read, ranges, gap)
        body: list[memoryview | bytes] = [MAGIC]
        at, columns, packed = len(MAGIC), [], 0
        for leaf, (dictionary, places) in picked:
            begin = at
            for place in (*dictionary, *places):
                body.append(parts[place])
                at += place[1]
            chunk = found.chunks[leaf]
            if number_of(chunk.meta, _PHYSICAL) == _INT96:
                raise ValueError("times without a zone, which mean instants as the whole file says")
            if len(places) == len(found.pages[leaf].places):
                values = number_of(chunk.meta, _VALUES)
            else:
                values = sum(_values(parts[p]) for p in places) if self._leaves[leaf].repeats else rows
            columns.append(
                self._described(chunk, leaf, values, begin, begin + sum(n for _, n in dictionary), at)
            )
            packed += at - begin
        body.append(self._footer(names, rows, columns, packed))
        codes = [
            n for n in names
            if len(self._columns[n].leaves) == 1
            and self._leaves[leaf := self._columns[n].leaves[0]].is_flat_bytes
            and _repeats(found.chunks[leaf])
        ]  # fmt: skip
        with pq.ParquetFile(pa.BufferReader(b"".join(body)), read_dictionary=codes) as file:
            check_columns(file.schema_arrow)
            texts = texts_as_bytes(file)
            table = file.read(use_threads=pays_threads(rows, len(names)))
        if table.num_rows != rows:
            raise ValueError(f"pages of {table.num_rows} rows instead of {rows}")

        def checked(some: pa.Table) -> pa.Table:
            check_text(some, texts)
            for n, kind in enumerate(some.schema.types):
                if pa.types.is_dictionary(kind):
                    plain = some.column(n).cast(kind.value_type)
                    some = some.set_column(n, some.schema.field(n).with_type(plain.type), plain)
            return some

        return table, checked

    def _picked(
        self, found: _Group, leaf: int, runs: tuple[Rows, Rows]
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Places of a chunk's dictionary, [] for none, and of its pages within the runs."""
        pages, chunk = found.pages[leaf], found.chunks[leaf]
        low, high = np.searchsorted(pages.first, runs[0]), np.searchsorted(pages.first, runs[1])
        filled = np.diff(pages.first) > 0  # Arrow takes a page without rows for the end, if it is the first
        taken = [
            n for a, b in zip(low.tolist(), high.tolist(), strict=True) for n in range(a, b) if filled[n]
        ]
        places = [pages.places[n] for n in taken]
        first = pages.places[0][0]
        return ([(chunk.begin, first - chunk.begin)] if first > chunk.begin else []), places

    def _described(self, chunk: Chunk, leaf: int, values: int, begin: int, data: int, end: int) -> bytes:
        """The ColumnChunk of pages in the small file."""
        places = [(9, I64, integer(data))]
        if data > begin:
            places.append((11, I64, integer(begin)))
        meta = struct(
            [
                (_PHYSICAL, I32, integer(number_of(chunk.meta, _PHYSICAL))),
                (2, LIST, bytes([1 << 4 | I32]) + integer(0)),  # pages say their encodings themselves
                (3, LIST, self._leaves[leaf].path),
                (_CODEC, I32, integer(number_of(chunk.meta, _CODEC))),
                (_VALUES, I64, integer(values)),
                (_UNPACKED, I64, integer(number_of(chunk.meta, _UNPACKED))),
                (7, I64, integer(end - begin)),
                *places,
            ]
        )
        return struct([(2, I64, integer(0)), (3, STRUCT, meta)])

    def _footer(self, names: Sequence[str], rows: int, columns: Sequence[bytes], packed: int) -> bytes:
        root = struct(replaced(self._root, {5: (I32, integer(len(names)))}))
        schema = [root, *(e for n in names for e in self._columns[n].schema)]
        group = struct([(1, LIST, structs(columns)), (2, I64, integer(packed)), (3, I64, integer(rows))])
        written = struct(
            replaced(
                self._head,
                {
                    _SCHEMA: (LIST, structs(schema)),
                    _ROWS: (I64, integer(rows)),
                    _GROUPS: (LIST, structs([group])),
                },
            )
        )
        return file_end(written)


def gap_of(*, is_local: bool) -> int:
    """Bytes between two parts of a file that are read rather than left out."""
    return _GAP if is_local else _REMOTE_GAP


def places_in(runs: tuple[Rows, Rows], rows: Rows) -> Rows:
    """Places of rows among those of runs."""
    run = np.searchsorted(runs[0], rows, "right") - 1
    return np.asarray(_before(runs)[run] + rows - runs[0][run], np.int64)


def rows_at(runs: tuple[Rows, Rows], places: Rows) -> Rows:
    """Rows at places among those of runs."""
    before = _before(runs)
    run = np.searchsorted(before, places, "right") - 1
    return np.asarray(runs[0][run] + places - before[run], np.int64)


def _before(runs: tuple[Rows, Rows]) -> Rows:
    """How many rows of runs come before each."""
    lengths = runs[1] - runs[0]
    return np.asarray(np.cumsum(lengths) - lengths, np.int64)


def _repeats(chunk: Chunk) -> bool:
    """Whether its values are so few that codes of them are cheaper."""
    unpacked, values = (number_of(chunk.meta, n) for n in (_UNPACKED, _VALUES))
    return chunk.begin < chunk.data and unpacked * VALUES_PER_BYTE <= values


def _range(chunk: Chunk) -> tuple[bytes | None, bytes | None]:
    """Bounds of its values; None where the footer names none."""
    statistics = next((raw for n, _, raw in chunk.meta if n == _STATISTICS), None)
    if statistics is None:
        return None, None
    said = {n: raw for n, kind, raw in Cursor(statistics).fields() if kind == BINARY}
    low, high = (_bytes(said[n]) if n in said else None for n in (6, 5))
    return low, high


def _pages(chunk: Chunk, rows: int, parts: dict[tuple[int, int], memoryview]) -> _Pages:
    end = chunk.begin + chunk.length
    if chunk.offsets is None:
        # An older dictionary lies before the pages without being named; Arrow begins where the pages do.
        places: tuple[tuple[int, int], ...] = ((chunk.data, end - chunk.data),)
        return _Pages(np.array([0, rows], np.int64), places)
    pages = Cursor(raw_of(Cursor(bytes(parts[chunk.offsets])).fields(), 1)).structs()
    places = tuple((number_of(p, 1), number_of(p, 2)) for p in pages)
    first = np.array([*(number_of(p, 3) for p in pages), rows], np.int64)
    at = [chunk.data, *(a + n for a, n in places)]
    # Where Arrow gives a dictionary up between two pages, it writes one without rows.
    if not places or first[0] or (np.diff(first) < 0).any():
        raise ValueError("an offset index whose pages are not in order")
    # One after the other, as they are put together.
    if [a for a, _ in places] != at[:-1] or at[-1] != end:
        raise ValueError("an offset index with other pages than the column chunk")
    return _Pages(first, places)


def _bounds(raw: bytes) -> list[tuple[bytes, bytes] | None]:
    """Bounds of the values of each page; None for a page of nulls."""
    fields = Cursor(raw).fields()
    nulls = Cursor(raw_of(fields, 1))
    count, kind = nulls.list_head()
    if kind not in BOOLEANS or len(nulls.data) - nulls.at != count:
        raise ValueError("a column index that is damaged")
    flags = nulls.data[nulls.at :]
    low, high = (_texts(raw_of(fields, n)) for n in (2, 3))
    if not len(low) == len(high) == count:
        raise ValueError("a column index that is damaged")
    return [None if flag == 1 else (a, b) for flag, a, b in zip(flags, low, high, strict=True)]


def _texts(raw: bytes) -> list[bytes]:
    cursor = Cursor(raw)
    count, kind = cursor.list_head()
    if count and kind != BINARY:
        raise ValueError(f"a list of Thrift's type {kind}")
    out = []
    for _ in range(count):
        begin = cursor.at
        cursor.skip(BINARY)
        out.append(_bytes(cursor.data[begin : cursor.at]))
    return out


def _bytes(raw: bytes) -> bytes:
    cursor = Cursor(raw)
    length = cursor.varint()
    if len(raw) - cursor.at != length:
        raise ValueError("it is cut off")
    return raw[cursor.at :]


def _text(fields: Fields, number: int) -> str:
    return _bytes(raw_of(fields, number)).decode()


def _values(page: memoryview) -> int:
    """Number of values of a data page, by its header."""
    try:
        cursor = Cursor(bytes(page[:_HEADER]))
        fields = cursor.fields()
    except ValueError:
        cursor = Cursor(bytes(page))
        fields = cursor.fields()
    if cursor.at + number_of(fields, 3) != len(page):
        raise ValueError("a page of another length than its index says")
    headers = [raw for n, _, raw in fields if n in (5, 8)]
    if len(headers) != 1:
        raise ValueError("a page without values")
    return number_of(Cursor(headers[0]).fields(), 1)


def _within(keys: Sequence[bytes], low: bytes | None, high: bytes | None) -> bool:
    """Whether one of the keys, in ascending order, is within bounds."""
    if low is None or high is None:
        return True
    at = bisect_left(keys, low)
    return at < len(keys) and keys[at] <= high


def _runs(first: Rows, chosen: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """Runs of rows of pages."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    return first[edges[0::2]], first[edges[1::2]]


def _overlapping(first: Rows, starts: Rows, ends: Rows) -> tuple[Rows, Rows]:
    """Runs of rows of the pages that have rows of some runs."""
    low = np.searchsorted(first, starts, "right") - 1
    high = np.searchsorted(first, ends, "left")
    count = len(first)
    open_ = np.bincount(low, minlength=count) - np.bincount(high, minlength=count)
    return _runs(first, np.cumsum(open_)[:-1] > 0)


def _read(read: ReadAt, ranges: Iterable[tuple[int, int]], gap: int) -> dict[tuple[int, int], memoryview]:
    """Ranges of a file, those near to each other in one read."""
    out: dict[tuple[int, int], memoryview] = {}
    together: list[tuple[int, int]] = []

    def flush() -> None:
        if not together:
            return
        begin, end = together[0][0], max(at + n for at, n in together)
        data = memoryview(read(begin, end - begin))
        if len(data) != end - begin:
            raise ValueError("it is cut off")
        out.update({(at, n): data[at - begin : at - begin + n] for at, n in together})
        together.clear()

    stop = 0
    for at, length in sorted(set(ranges)):
        if together and at > stop + gap:
            flush()
        together.append((at, length))
        stop = max(stop, at + length) if len(together) > 1 else at + length
    flush()
    return out
