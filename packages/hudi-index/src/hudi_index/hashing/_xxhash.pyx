# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""XXH64 of each text of an Arrow array, over its buffers, without the GIL.

Every index is covered: offsets are checked against the data and the ones before them before a text is hashed, and
`_xxh64` reads below `size` only.

Source: xxHash fast digest algorithm, "XXH64 Algorithm Description".
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef uint64_t P1 = 0x9E3779B185EBCA87ULL
cdef uint64_t P2 = 0xC2B2AE3D27D4EB4FULL
cdef uint64_t P3 = 0x165667B19E3779F9ULL
cdef uint64_t P4 = 0x85EBCA77C2B2AE63ULL
cdef uint64_t P5 = 0x27D4EB2F165667C5ULL


cdef inline uint64_t _rotated(uint64_t x, int n) noexcept nogil:
    return (x << n) | (x >> (64 - n))


cdef inline uint64_t _u64(const uint8_t* p) noexcept nogil:
    cdef uint64_t x = 0
    cdef int i
    for i in range(8):
        x |= <uint64_t>p[i] << (8 * i)
    return x


cdef inline uint64_t _u32(const uint8_t* p) noexcept nogil:
    return <uint64_t>p[0] | <uint64_t>p[1] << 8 | <uint64_t>p[2] << 16 | <uint64_t>p[3] << 24


cdef inline uint64_t _round(uint64_t acc, uint64_t lane) noexcept nogil:
    return _rotated(acc + lane * P2, 31) * P1


cdef uint64_t _xxh64(const uint8_t* p, int64_t size, uint64_t seed) noexcept nogil:
    cdef int64_t at = 0
    cdef uint64_t h, a, b, c, d
    if size >= 32:
        a, b, c, d = seed + P1 + P2, seed + P2, seed, seed - P1
        while at + 32 <= size:
            a = _round(a, _u64(p + at))
            b = _round(b, _u64(p + at + 8))
            c = _round(c, _u64(p + at + 16))
            d = _round(d, _u64(p + at + 24))
            at += 32
        h = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        h = (h ^ _round(0, a)) * P1 + P4
        h = (h ^ _round(0, b)) * P1 + P4
        h = (h ^ _round(0, c)) * P1 + P4
        h = (h ^ _round(0, d)) * P1 + P4
    else:
        h = seed + P5
    h += <uint64_t>size
    while at + 8 <= size:
        h = _rotated(h ^ _round(0, _u64(p + at)), 27) * P1 + P4
        at += 8
    if at + 4 <= size:
        h = _rotated(h ^ (_u32(p + at) * P1), 23) * P2 + P3
        at += 4
    while at < size:
        h = _rotated(h ^ (p[at] * P5), 11) * P1
        at += 1
    h = (h ^ (h >> 33)) * P2
    h = (h ^ (h >> 29)) * P3
    return h ^ (h >> 32)


def hashes(
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None, uint64_t seed, uint64_t[::1] out not None
):
    """Fill `out` (n values) from n + 1 offsets into `data`; ValueError for offsets that leave it."""
    cdef int64_t n = out.shape[0], size = data.shape[0], i
    cdef bint ok = True
    cdef uint8_t nothing = 0
    if n == 0:
        return
    if offsets.shape[0] < n + 1:
        raise ValueError("fewer offsets than texts")
    cdef const uint8_t* base = &data[0] if size else &nothing
    with nogil:
        for i in range(n):
            if offsets[i] < 0 or offsets[i + 1] < offsets[i] or offsets[i + 1] > size:
                ok = False
                break
            out[i] = _xxh64(base + offsets[i], offsets[i + 1] - offsets[i], seed)
    if not ok:
        raise ValueError("offsets leave the data")
