# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Index blocks of an HFile: found sound once, then searched without the GIL.

What is wrong with the bytes is a value (`fault`, `fault_at`), so that the caller can name the file.
"""
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from hudi_format.hfile._bytes cimport (
    COUNT, KEY_FIXED, KEY_LENGTH, LEAVES, NONE, NOT_PUT, NOTHING, ORDER, SPANS, VERSION, compare, i64, u16, u32,
)

cdef enum:
    ROOT_ENTRY_LEAST = 13       # offset, size, length of the key
    MID_KEY = 16                # what HBase puts after the entries of a root with levels below

FAULTS = {
    <int>LEAVES: "a length leaves the block",
    <int>KEY_LENGTH: "lengths within a key do not agree",
    <int>NOT_PUT: "an entry is no put",
    <int>ORDER: "keys are not in order",
    <int>VERSION: "the version after a value is malformed",
    <int>COUNT: "the number of entries does not fit the block",
    <int>SPANS: "blocks of the index overlap or leave the file",
}


cdef struct Child:
    int64_t offset     # of the block in the file
    int64_t size       # of the whole block, bytes
    const uint8_t* row
    int64_t row_length


cdef int64_t _variable(const uint8_t* p, int64_t left, int64_t* value) noexcept nogil:
    """Hadoop's variable-length integer, not negative; how many bytes it takes, 0 if there is none."""
    cdef int first, more, i
    cdef uint64_t v = 0
    if left < 1:
        return 0
    first = p[0]
    if first < 0x80:
        value[0] = first
        return 1
    more = 0x90 - first
    if first < 0x88 or first >= 0x90 or more >= left:
        return 0
    for i in range(1, more + 1):
        v = (v << 8) | p[i]
    if v >> 63:
        return 0
    value[0] = <int64_t>v
    return 1 + more


@cython.final
cdef class IndexNode:
    """Entries of one block of the data block index: what block begins at or after which key.

    Args:
        payload: the block's content, decompressed; held, not copied.
        count: entries of a root block, or -1 for a leaf or intermediate block, which says so itself.
        below: there are index blocks between this one and the data.
        end: blocks end there at the latest, bytes from the file's start.
        plain: keys are names, as in the index of meta blocks, in any order.
    """

    cdef const uint8_t[::1] _payload
    cdef Child* _children
    cdef readonly int64_t entries, size, fault_at
    cdef readonly int fault

    def __cinit__(
        self, const uint8_t[::1] payload not None, *, int64_t count, bint below, int64_t end, bint plain=False
    ):
        cdef int64_t size = payload.shape[0], n = count
        cdef const uint8_t* base = &payload[0] if size else NOTHING
        self._payload, self.size = payload, size
        if count < 0:
            if size < 8:
                self.fault = LEAVES
                return
            n = u32(base)
            if n > (size - 8) // (4 + 12):
                self.fault = COUNT
                return
        elif n > size // ROOT_ENTRY_LEAST:
            self.fault = COUNT
            return
        self._children = <Child*>malloc(<size_t>(n + 1) * sizeof(Child))
        if self._children == NULL:
            raise MemoryError
        with nogil:
            if count < 0:
                self._leaf(base, size, n)
            else:
                self._root(base, size, n, below)
            if self.fault == NONE:
                self._check(base, n, end, plain)
        if self.fault == NONE:
            self.entries = n

    def __dealloc__(self):
        free(self._children)

    cdef void _root(self, const uint8_t* base, int64_t size, int64_t n, bint below) noexcept nogil:
        cdef int64_t at = 0, i, length = 0, taken
        for i in range(n):
            self.fault_at = at
            if size - at < ROOT_ENTRY_LEAST:
                self.fault = LEAVES
                return
            taken = _variable(base + at + 12, size - at - 12, &length)
            if taken == 0 or length > size - at - 12 - taken:
                self.fault = LEAVES
                return
            self._children[i] = Child(
                offset=i64(base + at), size=u32(base + at + 8), row=base + at + 12 + taken, row_length=length
            )
            at += 12 + taken + length
        self.fault_at = at
        # Bytes that are left are entries that the trailer does not count, but for HBase's middle key.
        if at != size and not (below and size - at == MID_KEY):
            self.fault = COUNT

    cdef void _leaf(self, const uint8_t* base, int64_t size, int64_t n) noexcept nogil:
        cdef int64_t i, start, stop = 0, data = 4 + 4 * (n + 1)
        if u32(base + 4) != 0:
            self.fault, self.fault_at = LEAVES, 4
            return
        for i in range(n):
            self.fault_at = 4 + 4 * i
            start = u32(base + 4 + 4 * i)
            stop = u32(base + 8 + 4 * i)
            if stop > size - data or start > stop or stop - start < 12:
                self.fault = LEAVES
                return
            self._children[i] = Child(
                offset=i64(base + data + start), size=u32(base + data + start + 8),
                row=base + data + start + 12, row_length=stop - start - 12,
            )
        if data + stop != size:
            self.fault, self.fault_at = COUNT, data + stop

    cdef void _check(self, const uint8_t* base, int64_t n, int64_t end, bint plain) noexcept nogil:
        """Reduce keys to rows; rows ascend, blocks follow each other and lie in the file."""
        cdef int64_t i, row, after = 0
        cdef Child* c
        for i in range(n):
            c = &self._children[i]
            self.fault_at = c.row - base
            if c.offset < after or c.size > end or c.offset > end - c.size:
                self.fault = SPANS
                return
            if plain:
                continue
            after = c.offset + c.size
            if c.row_length < 2:
                self.fault = KEY_LENGTH
                return
            row = u16(c.row)
            # Either the row alone, or all of a key, which has ten bytes more.
            if c.row_length != 2 + row and c.row_length < KEY_FIXED + row:
                self.fault = KEY_LENGTH
                return
            c.row += 2
            c.row_length = row
            if i and compare(
                self._children[i - 1].row, self._children[i - 1].row_length, c.row, c.row_length
            ) > 0:
                self.fault = ORDER
                return

    @property
    def cost(self):
        """Bytes of memory that it holds."""
        return self.size + <int64_t>sizeof(Child) * self.entries

    def row(self, int64_t i):
        """The key of entry `i`, a lower bound of the keys below it."""
        self._in(i)
        return self._children[i].row[:self._children[i].row_length]

    def span(self, int64_t i):
        """(offset, size) of the block of entry `i`, in bytes from the file's start."""
        self._in(i)
        return self._children[i].offset, self._children[i].size

    cdef int _in(self, int64_t i) except -1:
        if not 0 <= i < self.entries:
            raise IndexError(i)
        return 0

    cdef int64_t _below(self, const uint8_t* key, int64_t n, bint equal, int64_t lo) noexcept nogil:
        """How many rows are less than the key, or, with `equal`, not greater."""
        cdef int64_t hi = self.entries, middle
        cdef int c
        while lo < hi:
            middle = lo + (hi - lo) // 2
            c = compare(self._children[middle].row, self._children[middle].row_length, key, n)
            if c < 0 or (equal and c == 0):
                lo = middle + 1
            else:
                hi = middle
        return lo

    def touch(self, const uint8_t[::1] data not None, const int64_t[::1] offsets not None,
              int64_t[::1] low not None, int64_t[::1] high not None):
        """Which entries' blocks may hold each of some ascending keys: `low` to `high`, exclusive.

        A key that equals an entry's row may also stand at the end of the block before, where a key is
        there more than once.
        """
        cdef int64_t i, n = offsets.shape[0] - 1, size = data.shape[0], at = 0, length
        cdef const uint8_t* base = &data[0] if size else NOTHING
        cdef bint ok = n >= 0 and low.shape[0] == n and high.shape[0] == n
        if ok:
            with nogil:
                for i in range(n):
                    length = offsets[i + 1] - offsets[i]
                    if offsets[i] < 0 or length < 0 or offsets[i + 1] > size:
                        ok = False
                        break
                    at = self._below(base + offsets[i], length, False, at)
                    low[i] = at - 1 if at else 0
                    high[i] = self._below(base + offsets[i], length, True, at)
        if not ok:
            raise ValueError("offsets leave the data, or not one place per key")

    def range(self, const uint8_t[::1] start, const uint8_t[::1] end):
        """First and last entry, exclusive, whose blocks may hold keys from `start` to `end`, exclusive.

        None is the begin or the end of the file.
        """
        cdef int64_t low = 0, high = self.entries
        cdef const uint8_t* p
        if start is not None:
            p = &start[0] if start.shape[0] else NOTHING
            low = max(self._below(p, start.shape[0], False, 0) - 1, 0)
        if end is not None:
            p = &end[0] if end.shape[0] else NOTHING
            high = self._below(p, end.shape[0], False, 0)
        return low, max(low, high)
