# Avro's numbers, and texts, in borrowed memory: inline bodies, so that each extension compiles its own copy.
# Every read takes the end of what may be read; none goes past it.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from * nogil:
    """
    #ifndef HUDI_AVRO_WIRE
    #define HUDI_AVRO_WIRE
    #include <stdint.h>
    #include <string.h>
    #if defined(__GNUC__)
      #define HUDI_HOT static inline __attribute__((always_inline))
      #define HUDI_COLD static __attribute__((noinline, unused))
      #define hudi_likely(x) __builtin_expect(!!(x), 1)
    #else
      #define HUDI_HOT static inline
      #define HUDI_COLD static
      #define hudi_likely(x) (x)
    #endif

    HUDI_HOT int64_t hudi_unzigzag(uint64_t v) { return (int64_t)((v >> 1) ^ (0 - (v & 1))); }
    HUDI_HOT uint64_t hudi_zigzag(int64_t v) { return ((uint64_t)v << 1) ^ (0 - ((uint64_t)v >> 63)); }

    /* Little-endian words, on any machine; compilers make one load of each. */
    HUDI_HOT uint32_t hudi_load32(const uint8_t *p) {
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    }
    HUDI_HOT uint64_t hudi_load64(const uint8_t *p) {
        return (uint64_t)hudi_load32(p) | (uint64_t)hudi_load32(p + 4) << 32;
    }
    HUDI_HOT void hudi_store64(uint8_t *p, uint64_t v) {
        int i;
        for (i = 0; i < 8; i++) p[i] = (uint8_t)(v >> (8 * i));
    }
    HUDI_HOT float hudi_float(const uint8_t *p) {
        uint32_t v = hudi_load32(p); float out; memcpy(&out, &v, 4); return out;
    }
    HUDI_HOT double hudi_double(const uint8_t *p) {
        uint64_t v = hudi_load64(p); double out; memcpy(&out, &v, 8); return out;
    }

    HUDI_COLD const uint8_t *hudi_varint_slow(const uint8_t *p, const uint8_t *end, int64_t *out) {
        uint64_t v = 0;
        int shift;
        for (shift = 0; shift < 64 && p < end; shift += 7) {
            uint64_t b = *p++;
            if (shift == 63 && b > 1) return 0;
            v |= (b & 0x7f) << shift;
            if (b < 0x80) { *out = hudi_unzigzag(v); return p; }
        }
        return 0;
    }

    /* A zigzag number; the byte after it, or NULL where it is cut off or has more than 64 bits.
       Up to 8 bytes are taken at once: the first byte without the upper bit ends the number, and the groups
       of 7 bits are moved together in three steps. */
    HUDI_HOT const uint8_t *hudi_varint(const uint8_t *p, const uint8_t *end, int64_t *out) {
        if (hudi_likely(p < end) && *p < 0x80) {
            *out = hudi_unzigzag(*p);
            return p + 1;
        }
    #if defined(__GNUC__)
        if (hudi_likely(end - p >= 8)) {
            uint64_t w = hudi_load64(p), stop = ~w & 0x8080808080808080ULL;
            if (hudi_likely(stop != 0)) {
                int bits = __builtin_ctzll(stop);           /* 7, 15, ... 63 */
                w &= (~0ULL >> (63 - bits)) & 0x7f7f7f7f7f7f7f7fULL;
                w = (w & 0x007f007f007f007fULL) | (w & 0x7f007f007f007f00ULL) >> 1;
                w = (w & 0x00003fff00003fffULL) | (w & 0x3fff00003fff0000ULL) >> 2;
                w = (w & 0x000000000fffffffULL) | (w & 0x0fffffff00000000ULL) >> 4;
                *out = hudi_unzigzag(w);
                return p + (bits >> 3) + 1;
            }
        }
    #endif
        return hudi_varint_slow(p, end, out);
    }

    /* Writes up to 10 bytes; the byte after them. */
    HUDI_HOT uint8_t *hudi_put_varint(uint8_t *p, int64_t number) {
        uint64_t v = hudi_zigzag(number);
        while (v > 0x7f) { *p++ = (uint8_t)(v | 0x80); v >>= 7; }
        *p++ = (uint8_t)v;
        return p;
    }

    /* Whether n bytes are ASCII. */
    static inline int hudi_ascii(const uint8_t *p, int64_t n) {
        uint64_t all = 0;
        int64_t i = 0;
        while (n - i >= 32) {
            uint64_t w[4];
            memcpy(w, p + i, 32);
            if ((w[0] | w[1] | w[2] | w[3]) & 0x8080808080808080ULL) return 0;
            i += 32;
        }
        for (; i < n; i++) all |= p[i];
        return all < 0x80;
    }

    /* Whether n bytes are well-formed UTF-8 (Unicode 15, table 3-7). */
    static inline int hudi_utf8(const uint8_t *p, int64_t n) {
        const uint8_t *end = p + n;
        while (p < end) {
            uint8_t b = *p;
            int more;
            if (b < 0x80) {
                uint64_t w;
                if (end - p >= 8 && (memcpy(&w, p, 8), (w & 0x8080808080808080ULL) == 0)) p += 8;
                else p++;
                continue;
            }
            if (b < 0xc2 || b > 0xf4) return 0;
            more = b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3;
            if (end - p <= more || (p[1] & 0xc0) != 0x80) return 0;
            if ((b == 0xe0 && p[1] < 0xa0) || (b == 0xed && p[1] > 0x9f)
                || (b == 0xf0 && p[1] < 0x90) || (b == 0xf4 && p[1] > 0x8f)) return 0;
            if (more > 1 && (p[2] & 0xc0) != 0x80) return 0;
            if (more > 2 && (p[3] & 0xc0) != 0x80) return 0;
            p += more + 1;
        }
        return 1;
    }
    #endif
    """
    const uint8_t* hudi_varint(const uint8_t* p, const uint8_t* end, int64_t* out)
    uint8_t* hudi_put_varint(uint8_t* p, int64_t number)
    uint32_t hudi_load32(const uint8_t* p)
    uint64_t hudi_load64(const uint8_t* p)
    void hudi_store64(uint8_t* p, uint64_t v)
    float hudi_float(const uint8_t* p)
    double hudi_double(const uint8_t* p)
    bint hudi_ascii(const uint8_t* p, int64_t n)
    bint hudi_utf8(const uint8_t* p, int64_t n)
    bint hudi_likely(bint x)
