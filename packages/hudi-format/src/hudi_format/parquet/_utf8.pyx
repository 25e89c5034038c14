# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Whether the texts of a column are UTF-8.

Bytes are looked at end to end, which for ASCII is as fast as memory; a column with other bytes is gone through once
more for boundaries inside of a character, and text by text only to tell where it is wrong.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t

from hudi_format.avro._wire cimport hudi_ascii, hudi_utf8

ctypedef fused offset_t:
    int32_t
    int64_t


cdef int64_t _first(const uint8_t* data, const offset_t* offsets, int64_t rows, int64_t size) noexcept nogil:
    """The first text that is not UTF-8, -1 where all are, -2 where offsets leave the bytes."""
    cdef int64_t i
    cdef bint sound = offsets[0] >= 0 and offsets[rows] <= size
    for i in range(rows):
        sound &= offsets[i] <= offsets[i + 1]
    if not sound:
        return -2
    if hudi_ascii(data + offsets[0], offsets[rows] - offsets[0]):
        return -1
    if hudi_utf8(data + offsets[0], offsets[rows] - offsets[0]):
        # Then only a boundary inside of a character can be wrong: on one of its later bytes.
        for i in range(1, rows):
            if offsets[i] < offsets[rows] and data[offsets[i]] & 0xC0 == 0x80:
                break
        else:
            return -1
    for i in range(rows):
        if not hudi_utf8(data + offsets[i], offsets[i + 1] - offsets[i]):
            return i
    return -1


def first_invalid(const uint8_t[::1] data not None, const offset_t[::1] offsets not None):
    cdef int64_t rows = offsets.shape[0] - 1, size = data.shape[0], out
    cdef const uint8_t* bytes_ = &data[0] if size else NULL
    if rows < 0:
        raise ValueError("a column has one offset more than texts")
    if not size:
        return -1 if offsets[0] == 0 and offsets[rows] == 0 else -2
    with nogil:
        out = _first(bytes_, &offsets[0], rows, size)
    return out
