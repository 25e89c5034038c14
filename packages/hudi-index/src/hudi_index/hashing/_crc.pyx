# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""CRC-32 of each text of an Arrow array, over its buffers, without the GIL.

Every index is covered: `crc32_of` checks that the last offset lies in the data before the loop runs, and the
loop refuses offsets that go backwards.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

cdef uint32_t TABLE[256]


cdef void _fill() noexcept nogil:
    cdef uint32_t c
    cdef int n, k
    for n in range(256):
        c = <uint32_t>n
        for k in range(8):
            c = (0xEDB88320U ^ (c >> 1)) if c & 1 else c >> 1
        TABLE[n] = c


_fill()


cdef bint _run(const int32_t* offsets, const uint8_t* data, int64_t size, int64_t n, uint32_t* out) noexcept nogil:
    cdef int64_t i, j
    cdef uint32_t c
    for i in range(n):
        if offsets[i] < 0 or offsets[i + 1] < offsets[i] or offsets[i + 1] > size:
            return False
        c = 0xFFFFFFFFU
        for j in range(offsets[i], offsets[i + 1]):
            c = TABLE[(c ^ data[j]) & 0xFF] ^ (c >> 8)
        out[i] = c ^ 0xFFFFFFFFU
    return True


def crc32_of(const int32_t[::1] offsets not None, const uint8_t[::1] data not None, uint32_t[::1] out not None):
    """Fill `out` (n values) from n + 1 offsets into `data`; ValueError for offsets that leave it."""
    cdef int64_t n = out.shape[0], size = data.shape[0]
    cdef bint ok
    cdef uint8_t nothing = 0
    if n == 0:
        return
    if offsets.shape[0] < n + 1:
        raise ValueError("fewer offsets than texts")
    cdef const uint8_t* base = &data[0] if size else &nothing
    with nogil:
        ok = _run(&offsets[0], base, size, n, &out[0])
    if not ok:
        raise ValueError("offsets leave the data")
