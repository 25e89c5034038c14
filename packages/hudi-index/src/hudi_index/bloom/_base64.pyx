# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Base64 of bloom filters, without the GIL: a default filter is 431,380 digits, and each rewritten file has one.

Source: RFC 4648, the standard alphabet with padding.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

cdef const char* ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef uint8_t BITS[256]          # six bits of a digit, 255 of any other byte
cdef uint8_t PAIRS[2 * 4096]    # the two digits of twelve bits


cdef int _make_tables() noexcept:
    cdef int i
    for i in range(256):
        BITS[i] = 255
    for i in range(64):
        BITS[<uint8_t>ALPHABET[i]] = <uint8_t>i
    for i in range(4096):
        PAIRS[2 * i] = <uint8_t>ALPHABET[i >> 6]
        PAIRS[2 * i + 1] = <uint8_t>ALPHABET[i & 63]
    return 0


_make_tables()


def encode(const uint8_t[::1] data not None):
    cdef int64_t n = data.shape[0], i, whole = n // 3
    cdef bytes text = PyBytes_FromStringAndSize(NULL, 4 * ((n + 2) // 3))
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(text)
    cdef const uint8_t* source = &data[0] if n else NULL
    cdef uint32_t bits
    with nogil:
        for i in range(whole):
            bits = <uint32_t>source[0] << 16 | <uint32_t>source[1] << 8 | source[2]
            source += 3
            out[0] = PAIRS[2 * (bits >> 12)]
            out[1] = PAIRS[2 * (bits >> 12) + 1]
            out[2] = PAIRS[2 * (bits & 4095)]
            out[3] = PAIRS[2 * (bits & 4095) + 1]
            out += 4
        if n - 3 * whole:
            bits = <uint32_t>source[0] << 16
            if n - 3 * whole == 2:
                bits |= <uint32_t>source[1] << 8
            out[0] = PAIRS[2 * (bits >> 12)]
            out[1] = PAIRS[2 * (bits >> 12) + 1]
            out[2] = PAIRS[2 * (bits & 4095)] if n - 3 * whole == 2 else c"="
            out[3] = c"="
    return text


def decode(const uint8_t[::1] text not None):
    cdef int64_t n = text.shape[0], i, padding = 0
    if n == 0:
        return b""
    if n % 4:
        return None
    if text[n - 1] == c"=":
        padding = 2 if text[n - 2] == c"=" else 1
    cdef bytes data = PyBytes_FromStringAndSize(NULL, n // 4 * 3 - padding)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(data)
    cdef const uint8_t* source = &text[0]
    cdef int64_t whole = n // 4 - (1 if padding else 0)
    cdef uint8_t a, b, c, d, wrong = 0
    with nogil:
        for i in range(whole):
            a, b, c, d = BITS[source[0]], BITS[source[1]], BITS[source[2]], BITS[source[3]]
            source += 4
            wrong |= a | b | c | d
            out[0] = <uint8_t>(a << 2 | b >> 4)
            out[1] = <uint8_t>(b << 4 | c >> 2)
            out[2] = <uint8_t>(c << 6 | d)
            out += 3
        if padding:
            a, b = BITS[source[0]], BITS[source[1]]
            c = BITS[source[2]] if padding == 1 else 0
            wrong |= a | b | c
            out[0] = <uint8_t>(a << 2 | b >> 4)
            if padding == 1:
                out[1] = <uint8_t>(b << 4 | c >> 2)
    return None if wrong & 0xC0 else data
