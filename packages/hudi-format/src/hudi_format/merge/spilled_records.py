"""Log records beyond the memory limit, spilled to disk by key hash.

They are parted by a hash of their keys.  The stored rows pass twice: first their keys alone, which are parted the
same way, so that each part's records find the places of the rows that they meet; these records are written down
in the order of those places ("patches").  Then the rows themselves pass, and meet the patches of all parts side by
side.  What met no row comes last, in the order in which it would have come from memory.

A part that is still too large is parted again by other bits of the hash.  Everything is read and written once or
twice, in order; memory holds one part, or one batch of each.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from hudi_format.arrow.sizes import size_of
from hudi_format.arrow.spill import MemoryLimit, SpillFile, joined, rows_in, split
from hudi_format.arrow.text_buffers import one_text_array, text_buffers
from hudi_format.merge import _keymerge
from hudi_format.merge.key_index import KeyIndex, Keys
from hudi_format.merge.log_entries import Entries, Patches, Resolver

MOST_PARTS = 64
_MOST_DEPTH = 4  # 64 parts, parted again so often: beyond it one key alone fills a part
_BINS = 4096
_FEWEST_ROWS = 1024
_POSITIONS = pa.schema([("key", pa.string()), ("position", pa.int64())])


class SpilledRecords:
    """Records on disk: all `add` calls, then `meet` once, then `patches` and `rest`.

    Args:
        resolver: what becomes of records, in order, that are all there are of their keys.
        columns, ordering: schema of the records' columns, and type of their ordering values (None for none).
        expected: bytes of all records, roughly; decides into how many parts they go.

    Raises:
        SpillError: from every call.
    """

    def __init__(
        self,
        resolver: Resolver,
        columns: pa.Schema,
        ordering: pa.DataType | None,
        limit: MemoryLimit,
        *,
        expected: int = 0,
    ) -> None:
        self._resolver = resolver
        self._limit = limit
        self._columns = columns
        self._ordering = ordering
        extra = [pa.field("", pa.string()), pa.field("", pa.uint8()), pa.field("", pa.int64())]
        if ordering is not None:
            extra.append(pa.field("", ordering))
        self._schema = pa.schema([*columns, *extra])
        self._place = len(columns) + 2  # the column of positions
        self._seed = random.getrandbits(64)
        self._next = 0
        self._stored = 0
        self._parts = min(MOST_PARTS, max(4, -(-2 * expected // limit.held)))
        self._streams = self._parts
        self._stack = ExitStack()
        try:
            self._records = self._stack.enter_context(SpillFile(self._schema, limit))
            self._keys = self._stack.enter_context(SpillFile(_POSITIONS, limit))
            self._met = self._stack.enter_context(SpillFile(self._schema, limit))
            self._rest = self._stack.enter_context(SpillFile(self._schema, limit))
        except BaseException:
            self._stack.close()
            raise
        self._cursors: list[_Cursor] = []
        self._written = 0
        self._bin = 1
        self._left = np.zeros(0, np.int64)  # bytes of the rest, by bins of places

    @property
    def bytes_on_disk(self) -> int:
        return self._records.size + self._keys.size + self._met.size + self._rest.size

    @property
    def rows_at_once(self) -> int:
        """Number of stored rows whose records fit in memory."""
        each = sum(self._met.size_of(s) for s in self._met.streams) // max(1, self._written)
        return max(_FEWEST_ROWS, self._limit.held // (4 * max(1, each)))

    def add(self, entries: Entries) -> None:
        """Add records, later than all before."""
        n = len(entries.kinds)
        order = pa.array(np.arange(self._next, self._next + n))
        self._next += n
        rows = self._packed(entries, order)
        step = rows_in(rows, max(self._limit.step, self._limit.held // 2))
        for start in range(0, n, step):
            piece = rows.slice(start, step)
            self._write(self._records, piece, piece.column(len(self._columns)), 0, 0, self._parts)

    def meet(self, stored: Iterable[Keys]) -> None:
        """Locate the records among the stored keys, given in row order."""
        for keys in stored:
            n = len(keys)
            places = pa.array(np.arange(self._stored, self._stored + n))
            self._stored += n
            one = one_text_array(keys).cast(pa.string())
            rows = pa.table([one, places], schema=_POSITIONS)
            self._write(self._keys, rows, one, 0, 0, self._parts)
        self._bin = -(-max(1, self._next) // _BINS)
        self._left = np.zeros(_BINS, np.int64)
        leaf = 0
        todo = [(part, 0) for part in reversed(range(self._parts))]
        while todo:
            part, depth = todo.pop()
            if not self._records.has(part):
                continue
            entries, order = self._load(part)
            if entries is None:
                if depth + 1 < _MOST_DEPTH:
                    todo += [(p, depth + 1) for p in reversed(self._part_again(part, depth + 1))]
                    continue
                entries, order = self._load(part, whatever=True)
                assert entries is not None
            self._join(part, leaf, entries, order)
            leaf += 1
        self._cursors = [_Cursor(self._met, stream, self._place) for stream in self._met.streams]

    def patches(self, start: int, stop: int) -> Patches:
        """Records for stored rows `start` to below `stop`; ranges must ascend."""
        parts = [c.until(stop) for c in self._cursors]
        rows = pa.concat_tables([p for p in parts if p is not None] or [self._schema.empty_table()])
        places = rows.column(self._place).to_numpy() - start
        order = np.argsort(places, kind="stable")  # the records of one row come from one part, in order
        entries, _ = self._unpacked(rows.take(pa.array(order)))
        counts = np.bincount(places, minlength=stop - start)
        firsts = np.cumsum(counts) - counts
        found = np.where(counts > 0, firsts, -1)
        return Patches(entries, found, counts if len(counts) and counts.max() > 1 else None)

    def rest(self) -> Iterator[Entries]:
        """Resolved records without a stored row, in order; no deletes."""
        cursors = [_Cursor(self._rest, stream, self._place) for stream in self._rest.streams]
        for stop in self._windows():
            parts = [p for p in (c.until(stop) for c in cursors) if p is not None]
            if parts:
                rows = pa.concat_tables(parts)
                places = rows.column(self._place).to_numpy()
                yield self._unpacked(rows.take(pa.array(np.argsort(places, kind="stable"))))[0]

    def _windows(self) -> Iterator[int]:
        """Positions that divide the remaining records into parts that fit in memory."""
        size = 0
        for number, of_bin in enumerate(self._left.tolist()):
            size += of_bin
            if size > self._limit.held // 4:
                yield (number + 1) * self._bin
                size = 0
        yield self._next

    def close(self) -> None:
        self._stack.close()

    # --- parts ---------------------------------------------------------------------------------------

    def _packed(self, entries: Entries, order: pa.Array) -> pa.Table:
        columns = [*entries.rows.columns, entries.keys, pa.array(entries.kinds), order]
        if self._ordering is not None:
            columns.append(entries.ordering)
        return pa.table(columns, schema=self._schema)

    def _unpacked(self, rows: pa.Table) -> tuple[Entries, np.ndarray]:
        n = len(self._columns)
        data = rows.select(range(n))
        ordering = rows.column(n + 3) if self._ordering is not None else None
        kinds = rows.column(n + 1).to_numpy()
        return Entries(data, rows.column(n), ordering, kinds), rows.column(n + 2).to_numpy()

    def _write(self, file: SpillFile, rows: pa.Table, keys: Keys, first: int, depth: int, parts: int) -> None:
        """Append rows to streams from `first` on, by key hash."""
        one = one_text_array(keys)
        out = np.empty(len(one), dtype=np.uint64)
        _keymerge.hashes(text_buffers(one), (self._seed + depth) & 0xFFFFFFFFFFFFFFFF, out)
        numbers = ((out >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32)
        for number, piece in split(rows, numbers.astype(np.uint8)):
            file.write(first + number, piece)

    def _part_again(self, part: int, depth: int) -> list[int]:
        """Split the records and keys of one part into new streams; returns their numbers."""
        n = len(self._columns)
        parts = min(MOST_PARTS, -(-2 * self._records.size_of(part) // self._limit.held))
        first, self._streams = self._streams, self._streams + parts
        # Put together, since repeated splits make the pieces ever smaller.
        for rows in map(pa.Table.combine_chunks, joined(self._records.read(part), self._limit.step)):
            self._write(self._records, rows, rows.column(n), first, depth, parts)
        for rows in map(pa.Table.combine_chunks, joined(self._keys.read(part), self._limit.step)):
            self._write(self._keys, rows, rows.column(0), first, depth, parts)
        return list(range(first, first + parts))

    def _load(self, part: int, *, whatever: bool = False) -> tuple[Entries | None, np.ndarray]:
        """Records of a part and their positions; None where they do not fit in memory."""
        if not whatever and self._records.size_of(part) > self._limit.held:
            return None, np.empty(0, np.int64)
        tables = list(self._records.read(part)) or [self._schema.empty_table()]
        # In many chunks each of the takes to come would go through all of them.
        return self._unpacked(pa.concat_tables(tables).combine_chunks())

    def _join(self, part: int, leaf: int, entries: Entries, order: np.ndarray) -> None:
        """Write matches of a part's records and stored rows, and the remaining records."""
        resolved = self._resolver.resolve(entries)
        index = KeyIndex(resolved.keys)
        seen = np.zeros(len(resolved.keys), dtype=bool)
        width = rows_in(resolved.entries.rows, self._limit.held // (2 * self._parts))
        for rows in self._keys.read(part):
            hits = index.find(rows.column(0))
            met = hits >= 0
            seen[hits[met]] = True
            patches = resolved.patches(hits[met])
            places, records = rows.column(1).to_numpy()[met], patches.found
            if patches.counts is not None:
                places = np.repeat(places, patches.counts)
                records = _ranges(records, patches.counts)
            for start in range(0, len(records), width):
                picked = resolved.entries.take(records[start : start + width])
                self._written += len(picked)
                self._met.write(leaf, self._packed(picked, pa.array(places[start : start + width])))
        rest, firsts = self._resolver.alone(resolved, ~seen)
        if len(firsts):
            each = -(-size_of(rest.rows) // len(firsts))
            self._left += each * np.bincount(order[firsts] // self._bin, minlength=_BINS)
        for start in range(0, len(firsts), width):
            piece = rest.take(np.arange(start, min(start + width, len(firsts))))
            self._rest.write(leaf, self._packed(piece, pa.array(order[firsts[start : start + width]])))


class _Cursor:
    """Cursor over a stream with an ascending position in its last columns."""

    def __init__(self, file: SpillFile, stream: int, place: int) -> None:
        self._pieces = file.read(stream)
        self._place = place
        self._rows: pa.Table | None = None
        self._at: np.ndarray = np.empty(0, np.int64)

    def fill(self) -> bool:
        """Whether there is another row."""
        while not len(self._at):
            self._rows = next(self._pieces, None)
            if self._rows is None:
                return False
            self._at = self._rows.column(self._place).to_numpy()
        return True

    def until(self, stop: int) -> pa.Table | None:
        """The rows at positions below `stop` not returned before."""
        out = []
        while self.fill() and self._at[0] < stop:
            assert self._rows is not None
            count = int(np.searchsorted(self._at, stop))
            out.append(self._rows.slice(0, count))
            self._rows, self._at = self._rows.slice(count), self._at[count:]
        return pa.concat_tables(out) if out else None


def _ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Concatenated ranges, each `count` numbers from its start."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    out: np.ndarray = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return out
