# cython: language_level=3
"""Texts that are keys: their hash within this process, equality and order."""
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(_MSC_VER) && defined(_M_X64)
      #include <intrin.h>
    #endif
    #if defined(__GNUC__)
      #define hudi_prefetch(p) __builtin_prefetch(p)
    #else
      #define hudi_prefetch(p) ((void)(p))
    #endif

    static inline uint64_t hudi_mix(uint64_t a, uint64_t b) {
    #if defined(__SIZEOF_INT128__)
        unsigned __int128 r = (unsigned __int128)a * b;
        return (uint64_t)r ^ (uint64_t)(r >> 64);
    #elif defined(_MSC_VER) && defined(_M_X64)
        uint64_t hi, lo = _umul128(a, b, &hi);
        return lo ^ hi;
    #else
        uint64_t ah = a >> 32, al = (uint32_t)a, bh = b >> 32, bl = (uint32_t)b;
        uint64_t ll = al * bl, hl = ah * bl, lh = al * bh;
        uint64_t mid = (ll >> 32) + (uint32_t)hl + (uint32_t)lh;
        uint64_t lo = (mid << 32) | (uint32_t)ll;
        return lo ^ (ah * bh + (hl >> 32) + (lh >> 32) + (mid >> 32));
    #endif
    }
    static inline uint64_t hudi_read8(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }
    static inline uint64_t hudi_read4(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }

    /* The mixing of wyhash (final version 3, public domain): two words per multiplication, every read
       within [p, p + n).  It never leaves this process, so byte order does not matter. */
    static inline uint64_t hudi_text_hash(const uint8_t *p, int64_t n, uint64_t seed) {
        const uint64_t s0 = 0xa0761d6478bd642fULL, s1 = 0xe7037ed1a0b428dbULL;
        uint64_t a, b;
        int64_t i = n;
        seed ^= s0;
        if (n <= 16) {
            if (n >= 4) {
                int64_t half = (n >> 3) << 2;
                a = (hudi_read4(p) << 32) | hudi_read4(p + half);
                b = (hudi_read4(p + n - 4) << 32) | hudi_read4(p + n - 4 - half);
            } else if (n > 0) {
                a = ((uint64_t)p[0] << 16) | ((uint64_t)p[n >> 1] << 8) | p[n - 1];
                b = 0;
            } else {
                a = b = 0;
            }
        } else {
            do {
                seed = hudi_mix(hudi_read8(p) ^ s1, hudi_read8(p + 8) ^ seed);
                p += 16;
                i -= 16;
            } while (i > 16);
            a = hudi_read8(p + i - 16);
            b = hudi_read8(p + i - 8);
        }
        return hudi_mix(s1 ^ (uint64_t)n, hudi_mix(a ^ s1, b ^ seed));
    }
    """
    void hudi_prefetch(const void* p)
    uint64_t hudi_text_hash(const uint8_t* p, int64_t n, uint64_t seed)


cdef struct Text:
    const uint8_t* data       # borrowed
    const int64_t* offsets    # rows + 1, checked by _sound
    const uint8_t* valid      # NULL where no row is null
    int64_t rows


cdef inline bint present(const Text* t, int64_t row) noexcept nogil:
    return t.valid == NULL or t.valid[row] != 0


cdef inline bint equal(const Text* a, int64_t i, const Text* b, int64_t j) noexcept nogil:
    cdef int64_t n = a.offsets[i + 1] - a.offsets[i]
    if n != b.offsets[j + 1] - b.offsets[j]:
        return False
    return n == 0 or memcmp(a.data + a.offsets[i], b.data + b.offsets[j], <size_t>n) == 0


cdef inline bint is_text(const Text* a, int64_t i, const uint8_t* data, int64_t n) noexcept nogil:
    return n == a.offsets[i + 1] - a.offsets[i] and (
        n == 0 or memcmp(a.data + a.offsets[i], data, <size_t>n) == 0
    )


cdef inline int compare_text(const Text* a, int64_t i, const Text* b, int64_t j) noexcept nogil:
    """Order of two texts by their UTF-8 bytes, as Avro's Utf8.compareTo."""
    cdef int64_t n = a.offsets[i + 1] - a.offsets[i], m = b.offsets[j + 1] - b.offsets[j]
    cdef int64_t common = n if n < m else m
    cdef int c = 0
    if common:
        c = memcmp(a.data + a.offsets[i], b.data + b.offsets[j], <size_t>common)
    if c == 0:
        return (n > m) - (n < m)
    return c
