# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""CRC-32 and CRC-32C of each chunk of a block, without the GIL.

Eight bytes a step by tables; CRC-32C by the processor's own instruction where it has one.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>

    static uint32_t hudi_crc_tables[2][8][256];

    static void hudi_crc_fill(void) {
        const uint32_t polynomials[2] = {0xEDB88320U, 0x82F63B78U};
        for (int kind = 0; kind < 2; kind++) {
            for (uint32_t n = 0; n < 256; n++) {
                uint32_t c = n;
                for (int k = 0; k < 8; k++) c = c & 1 ? polynomials[kind] ^ (c >> 1) : c >> 1;
                hudi_crc_tables[kind][0][n] = c;
            }
            for (uint32_t n = 0; n < 256; n++)
                for (int k = 1; k < 8; k++) {
                    uint32_t c = hudi_crc_tables[kind][k - 1][n];
                    hudi_crc_tables[kind][k][n] = hudi_crc_tables[kind][0][c & 0xFF] ^ (c >> 8);
                }
        }
    }

    /* Words are put together from bytes, so that the order of bytes of the machine has no part in it. */
    static uint32_t hudi_crc_by_table(int kind, uint32_t c, const uint8_t *p, int64_t n) {
        uint32_t (*t)[256] = hudi_crc_tables[kind];
        for (; n >= 8; n -= 8, p += 8) {
            uint32_t a = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
            c = t[7][a & 0xFF] ^ t[6][(a >> 8) & 0xFF] ^ t[5][(a >> 16) & 0xFF] ^ t[4][a >> 24]
                ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
        }
        for (; n > 0; n--, p++) c = t[0][(c ^ *p) & 0xFF] ^ (c >> 8);
        return c;
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    __attribute__((target("sse4.2")))
    static uint32_t hudi_crc32c_by_instruction(uint32_t c, const uint8_t *p, int64_t n) {
        uint64_t wide = c, word;
        for (; n >= 8; n -= 8, p += 8) {
            memcpy(&word, p, 8);
            wide = __builtin_ia32_crc32di(wide, word);
        }
        c = (uint32_t)wide;
        for (; n > 0; n--, p++) c = __builtin_ia32_crc32qi(c, *p);
        return c;
    }
    static int hudi_has_crc32c(void) { return __builtin_cpu_supports("sse4.2"); }
    #else
    static uint32_t hudi_crc32c_by_instruction(uint32_t c, const uint8_t *p, int64_t n) {
        return hudi_crc_by_table(1, c, p, n);
    }
    static int hudi_has_crc32c(void) { return 0; }
    #endif
    """
    void hudi_crc_fill()
    uint32_t hudi_crc_by_table(int kind, uint32_t c, const uint8_t* p, int64_t n)
    uint32_t hudi_crc32c_by_instruction(uint32_t c, const uint8_t* p, int64_t n)
    bint hudi_has_crc32c()

hudi_crc_fill()
cdef bint FAST = hudi_has_crc32c()


def chunk_checksums(const uint8_t[::1] data not None, int64_t chunk, *, bint castagnoli, bint by_table=False):
    """Big-endian checksums of each `chunk` bytes of `data` and of what is left, one after the other."""
    cdef int64_t size = data.shape[0]
    if chunk <= 0:
        raise ValueError("a chunk has at least one byte")
    cdef int64_t n = size // chunk + (size % chunk != 0), i, length
    out = bytearray(4 * n)
    if n == 0:
        return bytes(out)
    cdef uint8_t[::1] view = out
    cdef const uint8_t* p = &data[0]
    cdef uint32_t c
    cdef bint fast = castagnoli and FAST and not by_table
    with nogil:
        for i in range(n):
            length = min(chunk, size - i * chunk)
            if fast:
                c = hudi_crc32c_by_instruction(0xFFFFFFFFU, p + i * chunk, length)
            else:
                c = hudi_crc_by_table(castagnoli, 0xFFFFFFFFU, p + i * chunk, length)
            c ^= 0xFFFFFFFFU
            view[4 * i] = c >> 24
            view[4 * i + 1] = (c >> 16) & 0xFF
            view[4 * i + 2] = (c >> 8) & 0xFF
            view[4 * i + 3] = c & 0xFF
    return bytes(out)
