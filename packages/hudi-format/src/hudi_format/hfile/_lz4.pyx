# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""How many bytes LZ4-compressed bytes hold: the block format does not say it, Arrow's decompressor wants it."""
from libc.stdint cimport int64_t, uint8_t


cdef int64_t _length(const uint8_t* p, int64_t size) noexcept nogil:
    cdef int64_t at = 0, total = 0, n
    cdef int token
    while at < size:
        token = p[at]
        at += 1
        n = token >> 4
        if n == 15:
            while True:
                if at >= size:
                    return -1
                n += p[at]
                at += 1
                if p[at - 1] != 255:
                    break
        if n > size - at:
            return -1
        at += n
        total += n
        if at == size:
            return total
        if size - at < 2:
            return -1
        at += 2
        n = token & 15
        if n == 15:
            while True:
                if at >= size:
                    return -1
                n += p[at]
                at += 1
                if p[at - 1] != 255:
                    break
        total += n + 4
    return -1  # a block ends with literals


def content_length(const uint8_t[::1] data not None):
    """Bytes of content, -1 where the compressed bytes are malformed."""
    cdef int64_t size = data.shape[0], out = -1
    if size:
        with nogil:
            out = _length(&data[0], size)
    return out
