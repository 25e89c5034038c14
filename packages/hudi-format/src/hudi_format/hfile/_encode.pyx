# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Data blocks of an HFile, made of two Arrow arrays without the GIL."""
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from hudi_format.hfile._bytes cimport KEY_FIXED, NOTHING, compare

cdef enum:
    OVERHEAD = 8 + KEY_FIXED + 1    # of an entry: two lengths, the key's fixed part, the version
    MOST_KEY = 32767                # Java's short

cdef int64_t MOST_VALUE = 0x7FFFFFFF - MOST_KEY - OVERHEAD

# What `add` gives for a row that it refuses.
cdef enum:
    OUT_OF_ORDER_C = -1
    DUPLICATE_C = -2
    KEY_TOO_LONG_C = -3
    VALUE_TOO_LONG_C = -4

OUT_OF_ORDER = OUT_OF_ORDER_C
DUPLICATE = DUPLICATE_C
KEY_TOO_LONG = KEY_TOO_LONG_C
VALUE_TOO_LONG = VALUE_TOO_LONG_C


cdef inline void _put32(uint8_t* p, uint32_t v) noexcept nogil:
    p[0] = v >> 24
    p[1] = (v >> 16) & 0xFF
    p[2] = (v >> 8) & 0xFF
    p[3] = v & 0xFF


@cython.final
cdef class BlockBuilder:
    """Collects entries until a block is full.

    Args:
        block_size: a block ends before the entry that would make it longer, in bytes of content; it has at
            least one entry, and all entries of one key.
        unique: refuse a key that is there twice.

    Attributes:
        size: bytes of content so far.
        entries: number of entries so far.
        row: after a refusal, the row at fault.
    """

    cdef uint8_t* _data
    cdef int64_t _room, _block_size
    cdef bint _unique
    cdef int64_t _last, _last_length     # the last row, within _data, or in _before where _data is empty
    cdef bytes _before
    cdef readonly int64_t size, entries, row, key_bytes, value_bytes

    def __cinit__(self, int64_t block_size, bint unique):
        if block_size <= 0:
            raise ValueError("a block has at least one byte")
        self._block_size, self._unique = block_size, unique
        self._last = -1

    def __dealloc__(self):
        free(self._data)

    def add(
        self,
        const uint8_t[::1] keys not None, const int64_t[::1] key_offsets not None,
        const uint8_t[::1] values not None, const int64_t[::1] value_offsets not None,
        int64_t start,
    ):
        """Take rows from `start` on, until the block is full or there are no more.

        Returns the row that comes next; it is less than the number of rows where the block is full.  Or, less
        than zero, why `row` is refused; nothing of it and of later ones is taken.
        """
        cdef int64_t n = key_offsets.shape[0] - 1, i, done
        cdef bint ok = n >= 0 and value_offsets.shape[0] == n + 1 and 0 <= start <= n
        cdef const uint8_t* k = &keys[0] if keys.shape[0] else NOTHING
        cdef const uint8_t* v = &values[0] if values.shape[0] else NOTHING
        if ok:
            ok = key_offsets[0] >= 0 and key_offsets[n] <= keys.shape[0]
            ok = ok and value_offsets[0] >= 0 and value_offsets[n] <= values.shape[0]
        if ok and start == 0:
            with nogil:
                for i in range(n):
                    if key_offsets[i] > key_offsets[i + 1] or value_offsets[i] > value_offsets[i + 1]:
                        ok = False
                        break
        if not ok:
            raise ValueError("offsets leave the data")
        cdef const uint8_t* before = NOTHING
        cdef int64_t before_length = -1
        if self._before is not None:
            before = self._before
            before_length = len(self._before)
        with nogil:
            done = self._add(k, &key_offsets[0], v, &value_offsets[0], n, start, before, before_length)
        if done == -100:
            raise MemoryError
        return done

    cdef int64_t _add(
        self, const uint8_t* keys, const int64_t* key_offsets, const uint8_t* values,
        const int64_t* value_offsets, int64_t n, int64_t start, const uint8_t* before, int64_t before_length
    ) noexcept nogil:
        cdef int64_t i, row, value, need, last_length
        cdef const uint8_t* last
        cdef const uint8_t* key
        cdef uint8_t* p
        cdef int order
        for i in range(start, n):
            key = keys + key_offsets[i]
            row = key_offsets[i + 1] - key_offsets[i]
            value = value_offsets[i + 1] - value_offsets[i]
            self.row = i
            if row < 0 or value < 0:
                return OUT_OF_ORDER_C
            if row > MOST_KEY:
                return KEY_TOO_LONG_C
            if value > MOST_VALUE:
                return VALUE_TOO_LONG_C
            order = -1
            if self._last >= 0:
                order = compare(self._data + self._last, self._last_length, key, row)
            elif before_length >= 0:
                order = compare(before, before_length, key, row)
            if order > 0:
                return OUT_OF_ORDER_C
            if order == 0 and self._unique:
                return DUPLICATE_C
            need = OVERHEAD + row + value
            if self.size + need > self._block_size and self.entries and order != 0:
                return i
            if self.size + need > 0x7FFFFFFF:
                return VALUE_TOO_LONG_C
            if not self._grow(need):
                return -100
            p = self._data + self.size
            _put32(p, <uint32_t>(row + KEY_FIXED))
            _put32(p + 4, <uint32_t>value)
            p[8] = row >> 8
            p[9] = row & 0xFF
            memcpy(p + 10, key, <size_t>row)
            self._last = self.size + 10
            self._last_length = row
            p += 10 + row
            p[0] = 0                # no family
            p[1] = 0x7F             # the latest time
            p[2] = p[3] = p[4] = p[5] = p[6] = p[7] = p[8] = 0xFF
            p[9] = 4                # a put
            memcpy(p + 10, values + value_offsets[i], <size_t>value)
            p[10 + value] = 0       # version 0
            self.size += need
            self.entries += 1
            self.key_bytes += row
            self.value_bytes += value
        return n

    cdef bint _grow(self, int64_t more) noexcept nogil:
        cdef int64_t room
        cdef uint8_t* moved
        if more <= self._room - self.size:
            return True
        room = max(self.size + more, 2 * self._room, 4096)
        moved = <uint8_t*>realloc(self._data, <size_t>room)
        if moved == NULL:
            return False
        self._data, self._room = moved, room
        return True

    def take(self):
        """(content, first row, last row) of the block, which is then empty."""
        if self.entries == 0:
            raise ValueError("the block has no entries")
        cdef int64_t first = (<int64_t>self._data[8] << 8) | self._data[9]
        content = self._data[:self.size]
        self._before = self._data[self._last:self._last + self._last_length]
        out = content, self._data[10:10 + first], self._before
        self.size = self.entries = 0
        self._last = -1
        return out
