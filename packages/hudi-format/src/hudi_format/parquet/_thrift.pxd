"""Thrift's compact encoding, walked over in place: nothing is copied, nothing is read past the end.

Source: Thrift compact protocol.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef enum:
    MAX_DEPTH = 32      # parquet.thrift nests 7 deep
    OK = 0
    CUT_OFF = -1
    MALFORMED = -2

cdef enum:
    T_TRUE = 1
    T_FALSE = 2
    T_BYTE = 3
    T_I32 = 5
    T_I64 = 6
    T_DOUBLE = 7
    T_BINARY = 8
    T_LIST = 9
    T_SET = 10
    T_MAP = 11
    T_STRUCT = 12
    T_UUID = 13


cdef struct Cursor:
    const uint8_t* data     # borrowed
    int64_t size
    int64_t at              # 0 <= at <= size, always


cdef inline int varint(Cursor* c, uint64_t* out) noexcept nogil:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t b
    while shift < 64:
        if c.at >= c.size:
            return CUT_OFF
        b = c.data[c.at]
        c.at += 1
        value |= <uint64_t>(b & 0x7f) << shift
        if not b & 0x80:
            out[0] = value
            return OK
        shift += 7
    return MALFORMED


cdef inline int64_t zigzag(uint64_t v) noexcept nogil:
    return <int64_t>(v >> 1) ^ -<int64_t>(v & 1)


cdef inline int advance(Cursor* c, uint64_t n) noexcept nogil:
    if n > <uint64_t>(c.size - c.at):
        return CUT_OFF
    c.at += <int64_t>n
    return OK


cdef inline int field(Cursor* c, int64_t* number, int* kind) noexcept nogil:
    """The next field's number and type; type 0 at the end of the struct."""
    cdef uint64_t v
    cdef uint8_t b
    cdef int status
    if c.at >= c.size:
        return CUT_OFF
    b = c.data[c.at]
    c.at += 1
    kind[0] = b & 15
    if kind[0] == 0:
        return OK if b == 0 else MALFORMED
    if b >> 4:
        number[0] += b >> 4
        return OK
    status = varint(c, &v)
    if status == OK and v > 0xffff:     # numbers have 16 bits
        return MALFORMED
    number[0] = zigzag(v) if status == OK else 0
    return status


cdef inline int count_and_kind(Cursor* c, uint64_t* count, int* kind) noexcept nogil:
    cdef uint8_t b
    if c.at >= c.size:
        return CUT_OFF
    b = c.data[c.at]
    c.at += 1
    kind[0] = b & 15
    count[0] = b >> 4
    return varint(c, count) if count[0] == 15 else OK


cdef inline int skip(Cursor* c, int kind, int depth, bint element) noexcept nogil:
    """Pass over a value; elements of a list hold their booleans in a byte, fields in their type."""
    cdef uint64_t v, i
    cdef int64_t number = 0
    cdef int inner = 0, other, status
    if depth > MAX_DEPTH:
        return MALFORMED
    if kind == T_TRUE or kind == T_FALSE:
        return advance(c, 1) if element else OK
    if kind == T_BYTE:
        return advance(c, 1)
    if kind > T_BYTE and kind < T_DOUBLE:
        return varint(c, &v)
    if kind == T_DOUBLE:
        return advance(c, 8)
    if kind == T_BINARY:
        status = varint(c, &v)
        return advance(c, v) if status == OK else status
    if kind == T_LIST or kind == T_SET:
        status = count_and_kind(c, &v, &inner)
        if status != OK:
            return status
        # Every element takes a byte at least: a count beyond the bytes left ends as "cut off", soon.
        if v > <uint64_t>(c.size - c.at):
            return CUT_OFF
        for i in range(v):
            status = skip(c, inner, depth + 1, True)
            if status != OK:
                return status
        return OK
    if kind == T_MAP:
        status = varint(c, &v)
        if status != OK or v == 0:
            return status
        if c.at >= c.size or v > <uint64_t>(c.size - c.at):
            return CUT_OFF
        inner, other = c.data[c.at] >> 4, c.data[c.at] & 15
        c.at += 1
        for i in range(v):
            status = skip(c, inner, depth + 1, True)
            if status == OK:
                status = skip(c, other, depth + 1, True)
            if status != OK:
                return status
        return OK
    if kind == T_STRUCT:
        while True:
            status = field(c, &number, &inner)
            if status != OK or inner == 0:
                return status
            status = skip(c, inner, depth + 1, False)
            if status != OK:
                return status
    if kind == T_UUID:
        return advance(c, 16)
    return MALFORMED


cdef inline int enter(Cursor* c, int kind, uint64_t* count) noexcept nogil:
    """Enter a list of structs: how many."""
    cdef int inner = 0
    cdef int status = MALFORMED if kind != T_LIST else count_and_kind(c, count, &inner)
    if status == OK and inner != T_STRUCT and count[0]:
        return MALFORMED
    if status == OK and count[0] > <uint64_t>(c.size - c.at):
        return CUT_OFF
    return status


cdef inline object where(int status, int64_t at):
    """The error for what a walk came upon."""
    what = "is cut off" if status == CUT_OFF else "is not Thrift's compact encoding"
    return ValueError(f"the footer {what} at byte {at}")
