# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Places of record keys on a ring of consistent hashing, over Arrow's buffers, without the GIL.

Offsets are checked against the data before a text is read, and the codes of rows against the rings; the scratch
space has room for the longest key, and what is hashed of a key is never longer than the key.

Source: xxHash fast digest algorithm, "XXH32 Algorithm Description"; ConsistentBucketIdentifier of Apache Hudi 0.15,
compared with the file groups of its keys.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp, memcpy

from hudi_index.hashing._texts cimport Texts, is_one_of, texts

cdef uint32_t P1 = 0x9E3779B1u
cdef uint32_t P2 = 0x85EBCA77u
cdef uint32_t P3 = 0xC2B2AE3Du
cdef uint32_t P4 = 0x27D4EB2Fu
cdef uint32_t P5 = 0x165667B1u


cdef inline uint32_t _rotated(uint32_t x, int n) noexcept nogil:
    return (x << n) | (x >> (32 - n))


cdef inline uint32_t _u32(const uint8_t* p) noexcept nogil:
    return <uint32_t>p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


cdef inline uint32_t _round(uint32_t acc, uint32_t lane) noexcept nogil:
    return _rotated(acc + lane * P2, 13) * P1


cdef uint32_t _xxh32(const uint8_t* p, int64_t size) noexcept nogil:
    """XXH32 with seed 0."""
    cdef int64_t at = 0
    cdef uint32_t h, a, b, c, d
    if size >= 16:
        a, b, c, d = P1 + P2, P2, 0, <uint32_t>0 - P1
        while at + 16 <= size:
            a = _round(a, _u32(p + at))
            b = _round(b, _u32(p + at + 4))
            c = _round(c, _u32(p + at + 8))
            d = _round(d, _u32(p + at + 12))
            at += 16
        h = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
    else:
        h = P5
    h += <uint32_t>size
    while at + 4 <= size:
        h = _rotated(h + _u32(p + at) * P3, 17) * P4
        at += 4
    while at < size:
        h = _rotated(h + p[at] * P5, 11) * P1
        at += 1
    h = (h ^ (h >> 15)) * P2
    h = (h ^ (h >> 13)) * P3
    return h ^ (h >> 16)


cdef int64_t _add_part(
    const uint8_t* p, int64_t n, const Texts* names, uint8_t* out, int64_t at
) noexcept nogil:
    """Append what is hashed of one `name:value`; the end of what is there then."""
    cdef const uint8_t* colon = <const uint8_t*>memchr(p, b":", <size_t>n) if n else NULL
    if colon != NULL:
        if not is_one_of(names, p, colon - p):
            return at
        n -= colon - p + 1
        p = colon + 1
        if n == 8 and memcmp(p, b"__null__", 8) == 0:
            # Java joins a null element as this text.
            memcpy(out + at, b"null", 4)
            return at + 4
        if n == 9 and memcmp(p, b"__empty__", 9) == 0:
            return at
    if n:
        memcpy(out + at, p, <size_t>n)
    return at + n


cdef uint32_t _key_hash(const uint8_t* p, int64_t n, const Texts* names, uint8_t* scratch) noexcept nogil:
    cdef int64_t start = 0, end, size = 0
    cdef const uint8_t* comma
    if n == 0 or memchr(p, b":", <size_t>n) == NULL:
        return _xxh32(p, n)
    # String.split drops empty parts at the end.
    while n > 0 and p[n - 1] == b",":
        n -= 1
    while start <= n:
        comma = <const uint8_t*>memchr(p + start, b",", <size_t>(n - start)) if start < n else NULL
        end = comma - p if comma != NULL else n
        size = _add_part(p + start, end - start, names, scratch, size)
        start = end + 1
    return _xxh32(scratch, size)


def key_hashes(
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None,
    const uint8_t[::1] name_data not None, const int64_t[::1] name_offsets not None,
    int32_t[::1] out not None,
):
    """Hash of each record key, 0 to 2^31 - 1."""
    cdef Texts keys = texts(data, offsets)
    cdef Texts names = texts(name_data, name_offsets)
    cdef int64_t i, longest = 0
    cdef const int64_t* ends = keys.offsets
    if keys.rows != out.shape[0]:
        raise ValueError("one result per key is needed")
    with nogil:
        for i in range(keys.rows):
            longest = max(longest, ends[i + 1] - ends[i])
    cdef uint8_t* scratch = <uint8_t*>malloc(<size_t>longest + 1)
    if scratch == NULL:
        raise MemoryError()
    try:
        with nogil:
            for i in range(keys.rows):
                out[i] = <int32_t>(
                    _key_hash(keys.data + ends[i], ends[i + 1] - ends[i], &names, scratch) & 0x7FFFFFFF
                )
    finally:
        free(scratch)


def places(
    const int32_t[::1] hashes not None, const int32_t[::1] codes not None,
    const int64_t[::1] starts not None, const int32_t[::1] values not None, int32_t[::1] out not None,
):
    """Number of each row's node in its ring: the first whose value is not below the hash, else the first.

    Ring k has the ascending values from `starts[k]` to `starts[k + 1]`, at least one.
    """
    cdef int64_t i, n = out.shape[0], rings = starts.shape[0] - 1, size = values.shape[0]
    cdef int64_t low, high, middle, begin
    cdef bint ok = rings >= 0
    if hashes.shape[0] != n or codes.shape[0] != n:
        raise ValueError("one result per row is needed")
    with nogil:
        for i in range(rings):
            if starts[i] < 0 or starts[i + 1] <= starts[i] or starts[i + 1] > size:
                ok = False
                break
        if ok:
            for i in range(n):
                if codes[i] < 0 or codes[i] >= rings:
                    ok = False
                    break
                begin = starts[codes[i]]
                low = begin
                high = starts[codes[i] + 1]
                while low < high:
                    middle = (low + high) >> 1
                    if values[middle] < hashes[i]:
                        low = middle + 1
                    else:
                        high = middle
                out[i] = <int32_t>(low - begin) if low < starts[codes[i] + 1] else 0
    if not ok:
        raise ValueError("a row has no ring")
