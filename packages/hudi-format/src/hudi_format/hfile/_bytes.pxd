# Reading of big-endian numbers and order of keys: inline bodies, so each extension compiles its own copy.
# Whoever calls them has checked that the bytes are there.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

cdef enum:
    KEY_FIXED = 12              # of a key: length of the row, of the family, time, type

cdef enum Fault:
    NONE, LEAVES, KEY_LENGTH, NOT_PUT, ORDER, VERSION, COUNT, SPANS

# What a pointer to no bytes points to.
cdef extern from *:
    """
    static const unsigned char hudi_nothing[1] = {0};
    """
    const uint8_t* NOTHING "hudi_nothing"


cdef inline uint32_t u32(const uint8_t* p) noexcept nogil:
    return (<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | p[3]


cdef inline int64_t i64(const uint8_t* p) noexcept nogil:
    return <int64_t>((<uint64_t>u32(p) << 32) | u32(p + 4))


cdef inline int64_t u16(const uint8_t* p) noexcept nogil:
    return (<int64_t>p[0] << 8) | p[1]


cdef inline int compare(const uint8_t* a, int64_t n, const uint8_t* b, int64_t m) noexcept nogil:
    """Order of two keys by unsigned bytes, a shorter one first."""
    cdef int64_t common = n if n < m else m
    cdef int c = memcmp(a, b, <size_t>common) if common else 0
    return c if c else (n > m) - (n < m)
