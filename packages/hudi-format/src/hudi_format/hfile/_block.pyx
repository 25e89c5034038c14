# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Data blocks of an HFile: found sound once, then searched and copied without the GIL.

`Block` walks its bytes once, with every length checked against the end, and keeps where each entry starts;
all later work goes over these places only.  `Rows` collects keys and values of entries as the buffers of two
Arrow arrays.  What is wrong with the bytes is a value (`fault`, `fault_at`), so that the caller can name the file.
"""
cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from hudi_format.hfile._bytes cimport (
    KEY_FIXED, KEY_LENGTH, LEAVES, NONE, NOT_PUT, NOTHING, ORDER, VERSION, Fault, compare, u16, u32,
)

cdef enum:
    ENTRY_LEAST = 8 + KEY_FIXED
    PUT = 4

cdef int64_t MOST = 0x7FFFFFFF  # bytes of one Arrow array with 32-bit offsets

cdef struct Entry:
    const uint8_t* row
    const uint8_t* value
    int64_t row_length
    int64_t value_length


cdef inline Entry _entry(const uint8_t* p) noexcept nogil:
    """The entry at a place that `_layout` has checked."""
    cdef Entry e
    e.row_length = u16(p + 8)
    e.row = p + 10
    e.value = p + 8 + u32(p)
    e.value_length = u32(p + 4)
    return e


cdef struct Layout:
    int64_t entries, key_bytes, value_bytes, at
    Fault fault


cdef void _layout(const uint8_t* base, int64_t size, bint versions, int32_t* places, Layout* out) noexcept nogil:
    """Check all entries from byte 0 to `size` and note where each starts; `places` has room for the most."""
    cdef int64_t at = 0, left, key, value, row, family, n = 0, end, previous_length = 0
    cdef const uint8_t* p
    cdef const uint8_t* previous = NULL
    cdef int first
    out.key_bytes = out.value_bytes = 0
    out.fault = NONE
    while at < size:
        out.at = at
        p = base + at
        left = size - at
        if left < ENTRY_LEAST:
            out.fault = LEAVES
            return
        key = u32(p)
        value = u32(p + 4)
        if key > left - 8 or value > left - 8 - key:  # both below 2^32: no sum wraps
            out.fault = LEAVES
            return
        row = u16(p + 8)
        if key < row + KEY_FIXED:
            out.fault = KEY_LENGTH
            return
        family = p[10 + row]
        if key < row + KEY_FIXED + family:
            out.fault = KEY_LENGTH
            return
        if p[8 + key - 1] != PUT:
            out.fault = NOT_PUT
            return
        end = at + 8 + key + value
        if versions:
            if end >= size:
                out.fault = LEAVES
                return
            # Hadoop's variable-length integer: the first byte says how many follow.
            first = base[end]
            if first >= 0x90 or first < 0x80:
                end += 1
            elif first >= 0x88:
                end += 1 + (0x90 - first)
            else:
                out.fault = VERSION  # a negative one
                return
            if end > size:
                out.fault = LEAVES
                return
        if previous != NULL and compare(previous, previous_length, p + 10, row) > 0:
            out.fault = ORDER
            return
        previous = p + 10
        previous_length = row
        places[n] = <int32_t>at
        n += 1
        out.key_bytes += row
        out.value_bytes += value
        at = end
    out.entries = n


@cython.final
cdef class Keys:
    """Sorted keys to look for: unsigned bytes ascending, none twice.

    Args:
        data: the bytes of all keys.
        offsets: where each starts, and the end of the last.
    """

    cdef const uint8_t[::1] _data
    cdef const int64_t[::1] _offsets
    cdef const uint8_t* _base
    cdef readonly int64_t count

    def __cinit__(self, const uint8_t[::1] data not None, const int64_t[::1] offsets not None):
        cdef int64_t i, n = offsets.shape[0] - 1, size = data.shape[0]
        cdef bint ok = True
        if n < 0 or offsets[0] < 0 or offsets[n] > size:
            raise ValueError("offsets leave the data")
        self._data, self._offsets, self.count = data, offsets, n
        self._base = &data[0] if size else NOTHING
        with nogil:
            for i in range(n):
                if offsets[i] > offsets[i + 1]:
                    ok = False
                    break
            if ok:
                for i in range(1, n):
                    if compare(
                        self._base + offsets[i - 1], offsets[i] - offsets[i - 1],
                        self._base + offsets[i], offsets[i + 1] - offsets[i],
                    ) >= 0:
                        ok = False
                        break
        if not ok:
            raise ValueError("keys are not sorted, or one is there twice")

    cdef inline const uint8_t* at(self, int64_t i) noexcept nogil:
        return self._base + self._offsets[i]

    cdef inline int64_t length(self, int64_t i) noexcept nogil:
        return self._offsets[i + 1] - self._offsets[i]


@cython.final
cdef class Block:
    """The entries of a data block.

    Args:
        payload: its content, decompressed; held, not copied.
        versions: a version number follows each value.
    """

    cdef const uint8_t[::1] _payload
    cdef const uint8_t* _base
    cdef int32_t* _places
    cdef readonly int64_t size, entries, key_bytes, value_bytes, fault_at
    cdef readonly int fault

    def __cinit__(self, const uint8_t[::1] payload not None, bint versions):
        cdef int64_t size = payload.shape[0]
        cdef Layout found
        cdef int32_t* shrunk
        self._payload, self.size = payload, size
        if size > MOST:
            raise ValueError("a block has less than 2 GiB")
        if size == 0:
            return
        self._base = &payload[0]
        self._places = <int32_t*>malloc(<size_t>(size // ENTRY_LEAST + 1) * sizeof(int32_t))
        if self._places == NULL:
            raise MemoryError
        with nogil:
            _layout(self._base, size, versions, self._places, &found)
        self.fault = found.fault
        if found.fault != NONE:
            self.fault_at = found.at
            return
        self.entries, self.key_bytes, self.value_bytes = found.entries, found.key_bytes, found.value_bytes
        shrunk = <int32_t*>realloc(self._places, <size_t>(found.entries + 1) * sizeof(int32_t))
        if shrunk != NULL:
            self._places = shrunk

    def __dealloc__(self):
        free(self._places)

    @property
    def cost(self):
        """Bytes of memory that it holds."""
        return self.size + 4 * self.entries

    def row(self, int64_t i):
        """The key of entry `i`."""
        if not 0 <= i < self.entries:
            raise IndexError(i)
        cdef Entry e = _entry(self._base + self._places[i])
        return e.row[:e.row_length]

    def value(self, int64_t i):
        """The value of entry `i`."""
        if not 0 <= i < self.entries:
            raise IndexError(i)
        cdef Entry e = _entry(self._base + self._places[i])
        return e.value[:e.value_length]

    def lower(self, const uint8_t[::1] key not None):
        """Position of the first entry whose key is not less."""
        cdef int64_t n = key.shape[0], found
        cdef const uint8_t* p = &key[0] if n else NOTHING
        with nogil:
            found = self._lower(p, n, 0)
        return found

    cdef int64_t _lower(self, const uint8_t* key, int64_t n, int64_t lo) noexcept nogil:
        cdef int64_t hi = self.entries, middle
        cdef Entry e
        while lo < hi:
            middle = lo + (hi - lo) // 2
            e = _entry(self._base + self._places[middle])
            if compare(e.row, e.row_length, key, n) < 0:
                lo = middle + 1
            else:
                hi = middle
        return lo


cdef struct Vector:
    uint8_t* data
    int64_t size, room


cdef bint _need(Vector* v, int64_t more) noexcept nogil:
    """Make room for `more` bytes; twice as much where it has to move."""
    cdef int64_t room
    cdef uint8_t* moved
    if more <= v.room - v.size and v.data != NULL:  # not even nothing is copied to NULL
        return True
    room = max(v.size + more, 2 * v.room, 64)
    moved = <uint8_t*>realloc(v.data, <size_t>room)
    if moved == NULL:
        return False
    v.data, v.room = moved, room
    return True


@cython.final
cdef class Rows:
    """Keys and values of entries, as buffers of two Arrow arrays with 32-bit offsets.

    The buffers belong to this object: whoever uses the addresses keeps it.
    """

    cdef Vector _keys, _values, _key_offsets, _value_offsets
    cdef readonly int64_t count

    def __cinit__(self):
        if not _need(&self._key_offsets, 4) or not _need(&self._value_offsets, 4):
            raise MemoryError
        (<int32_t*>self._key_offsets.data)[0] = 0
        (<int32_t*>self._value_offsets.data)[0] = 0
        self._key_offsets.size = self._value_offsets.size = 4

    def __dealloc__(self):
        free(self._keys.data)
        free(self._values.data)
        free(self._key_offsets.data)
        free(self._value_offsets.data)

    @property
    def bytes(self):
        """Bytes of all keys and values."""
        return self._keys.size + self._values.size

    def reserve(self, int64_t count, int64_t key_bytes, int64_t value_bytes):
        """Make room at once for what is known to come."""
        if count < 0 or key_bytes < 0 or value_bytes < 0 or max(count, key_bytes, value_bytes) > MOST:
            raise ValueError("more than Arrow's 32-bit offsets hold")
        if not (
            _need(&self._keys, key_bytes) and _need(&self._values, value_bytes)
            and _need(&self._key_offsets, 4 * count) and _need(&self._value_offsets, 4 * count)
        ):
            raise MemoryError

    def add(self, Block block not None, int64_t start, int64_t end):
        """Take entries `start` to `end`, exclusive, of a block."""
        cdef bint ok
        if not 0 <= start <= end <= block.entries:
            raise IndexError((start, end))
        self._fits(block)
        with nogil:
            ok = self._add(block, start, end)
        if not ok:
            raise MemoryError

    def match(self, Block block not None, Keys keys not None, int64_t first, int64_t last):
        """Take the entries whose key is one of keys `first` to `last`, exclusive, in the block's order."""
        cdef int64_t i, at = 0, start
        cdef Entry e
        cdef bint ok = True
        if not 0 <= first <= last <= keys.count:
            raise IndexError((first, last))
        self._fits(block)
        with nogil:
            for i in range(first, last):
                start = at = block._lower(keys.at(i), keys.length(i), at)
                while at < block.entries:
                    e = _entry(block._base + block._places[at])
                    if compare(e.row, e.row_length, keys.at(i), keys.length(i)) != 0:
                        break
                    at += 1
                if at > start:
                    ok = self._add(block, start, at)
                    if not ok:
                        break
        if not ok:
            raise MemoryError

    cdef int _fits(self, Block block) except -1:
        if self._keys.size + self._values.size + block.size > MOST or self.count + block.entries >= MOST // 4:
            raise OverflowError("more than Arrow's 32-bit offsets hold")
        return 0

    cdef bint _add(self, Block block, int64_t start, int64_t end) noexcept nogil:
        cdef int64_t i, keys = 0, values = 0
        cdef Entry e
        cdef int32_t* key_offsets
        cdef int32_t* value_offsets
        cdef uint8_t* key
        cdef uint8_t* value
        if start == 0 and end == block.entries:
            keys, values = block.key_bytes, block.value_bytes
        else:
            for i in range(start, end):
                e = _entry(block._base + block._places[i])
                keys += e.row_length
                values += e.value_length
        if not (
            _need(&self._keys, keys) and _need(&self._values, values)
            and _need(&self._key_offsets, 4 * (end - start)) and _need(&self._value_offsets, 4 * (end - start))
        ):
            return False
        key_offsets = <int32_t*>(self._key_offsets.data + self._key_offsets.size)
        value_offsets = <int32_t*>(self._value_offsets.data + self._value_offsets.size)
        key = self._keys.data + self._keys.size
        value = self._values.data + self._values.size
        for i in range(start, end):
            e = _entry(block._base + block._places[i])
            memcpy(key, e.row, <size_t>e.row_length)
            memcpy(value, e.value, <size_t>e.value_length)
            key += e.row_length
            value += e.value_length
            key_offsets[0] = <int32_t>(key - self._keys.data)
            value_offsets[0] = <int32_t>(value - self._values.data)
            key_offsets += 1
            value_offsets += 1
        self._keys.size += keys
        self._values.size += values
        self._key_offsets.size += 4 * (end - start)
        self._value_offsets.size += 4 * (end - start)
        self.count += end - start
        return True

    def buffers(self):
        """(address, size in bytes) of key offsets, keys, value offsets, values.  Nothing may be added after."""
        return (
            (<size_t>self._key_offsets.data, self._key_offsets.size),
            (<size_t>self._keys.data, self._keys.size),
            (<size_t>self._value_offsets.data, self._value_offsets.size),
            (<size_t>self._values.data, self._values.size),
        )
