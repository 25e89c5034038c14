# cython: language_level=3
"""Texts of an Arrow array by its buffers, checked before a loop without the GIL reads them."""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp


cdef struct Texts:
    const uint8_t* data       # borrowed
    const int64_t* offsets    # rows + 1, checked by `texts`
    int64_t rows


cdef inline Texts texts(const uint8_t[::1] data, const int64_t[::1] offsets) except *:
    """Pointers to texts, which live as long as the arrays do; every row lies within the data."""
    cdef Texts t
    cdef int64_t i, size = data.shape[0]
    cdef bint ok
    if offsets.shape[0] < 1:
        raise ValueError("no offsets")
    t.rows = offsets.shape[0] - 1
    t.offsets = &offsets[0]
    t.data = &data[0] if size else NULL
    with nogil:
        ok = t.offsets[0] >= 0 and t.offsets[t.rows] <= size
        for i in range(t.rows):
            ok &= t.offsets[i] <= t.offsets[i + 1]
    if not ok:
        raise ValueError("offsets leave the data")
    return t


cdef inline bint is_one_of(const Texts* names, const uint8_t* p, int64_t n) noexcept nogil:
    """Whether a text is one of a few."""
    cdef int64_t i, size
    for i in range(names.rows):
        size = names.offsets[i + 1] - names.offsets[i]
        if size == n and (n == 0 or memcmp(names.data + names.offsets[i], p, <size_t>n) == 0):
            return True
    return False
