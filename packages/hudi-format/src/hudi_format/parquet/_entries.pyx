# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Where a Parquet footer's key-value entries are, without decoding the rest of it.

A footer with a bloom filter is some 400 kB of text behind a few kB of column metadata.  Arrow copies that text
several times before it hands it out; an index look-up wants three entries of thousands of footers.  This walks
over the Thrift compact encoding, skips what it does not need, and copies nothing.

Source: Thrift compact protocol; parquet.thrift, FileMetaData (num_rows 3, row_groups 4, key_value_metadata 5), KeyValue,
RowGroup (columns 1), ColumnChunk (meta_data 3), ColumnMetaData (codec 4,
total_compressed_size 7).
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


cdef int _varint(Cursor* c, uint64_t* out) noexcept nogil:
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


cdef inline int64_t _zigzag(uint64_t v) noexcept nogil:
    return <int64_t>(v >> 1) ^ -<int64_t>(v & 1)


cdef int _advance(Cursor* c, uint64_t n) noexcept nogil:
    if n > <uint64_t>(c.size - c.at):
        return CUT_OFF
    c.at += <int64_t>n
    return OK


cdef int _field(Cursor* c, int64_t* number, int* kind) noexcept nogil:
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
    status = _varint(c, &v)
    number[0] = _zigzag(v) if status == OK else 0
    return status


cdef int _list(Cursor* c, uint64_t* count, int* kind) noexcept nogil:
    cdef uint8_t b
    if c.at >= c.size:
        return CUT_OFF
    b = c.data[c.at]
    c.at += 1
    kind[0] = b & 15
    count[0] = b >> 4
    return _varint(c, count) if count[0] == 15 else OK


cdef int _skip(Cursor* c, int kind, int depth, bint element) noexcept nogil:
    """Pass over a value; elements of a list hold their booleans in a byte, fields in their type."""
    cdef uint64_t v, i
    cdef int64_t number = 0
    cdef int inner = 0, other, status
    if depth > MAX_DEPTH:
        return MALFORMED
    if kind == T_TRUE or kind == T_FALSE:
        return _advance(c, 1) if element else OK
    if kind == T_BYTE:
        return _advance(c, 1)
    if kind > T_BYTE and kind < T_DOUBLE:
        return _varint(c, &v)
    if kind == T_DOUBLE:
        return _advance(c, 8)
    if kind == T_BINARY:
        status = _varint(c, &v)
        return _advance(c, v) if status == OK else status
    if kind == T_LIST or kind == T_SET:
        status = _list(c, &v, &inner)
        if status != OK:
            return status
        # Every element takes a byte at least: a count beyond the bytes left ends as "cut off", soon.
        if v > <uint64_t>(c.size - c.at):
            return CUT_OFF
        for i in range(v):
            status = _skip(c, inner, depth + 1, True)
            if status != OK:
                return status
        return OK
    if kind == T_MAP:
        status = _varint(c, &v)
        if status != OK or v == 0:
            return status
        if c.at >= c.size or v > <uint64_t>(c.size - c.at):
            return CUT_OFF
        inner, other = c.data[c.at] >> 4, c.data[c.at] & 15
        c.at += 1
        for i in range(v):
            status = _skip(c, inner, depth + 1, True)
            if status == OK:
                status = _skip(c, other, depth + 1, True)
            if status != OK:
                return status
        return OK
    if kind == T_STRUCT:
        while True:
            status = _field(c, &number, &inner)
            if status != OK or inner == 0:
                return status
            status = _skip(c, inner, depth + 1, False)
            if status != OK:
                return status
    if kind == T_UUID:
        return _advance(c, 16)
    return MALFORMED


cdef int _key_value(Cursor* c, int64_t* spans) noexcept nogil:
    """One KeyValue: offset and length of its key and of its value, length -1 for a missing value."""
    cdef int64_t number = 0
    cdef int kind = 0, status
    cdef uint64_t v
    spans[0] = spans[2] = 0
    spans[1] = spans[3] = -1
    while True:
        status = _field(c, &number, &kind)
        if status != OK or kind == 0:
            return status
        if kind == T_BINARY and 1 <= number <= 2:
            status = _varint(c, &v)
            if status != OK:
                return status
            spans[2 * (number - 1)] = c.at
            status = _advance(c, v)
            spans[2 * (number - 1) + 1] = <int64_t>v
        else:
            status = _skip(c, kind, 1, False)
        if status != OK:
            return status


cdef int _codec(Cursor* c, int level, int64_t* codec) noexcept nogil:
    """Codec and bytes of a ColumnChunk (level 0), which its ColumnMetaData (level 1) says; left as they are else."""
    cdef int64_t number = 0
    cdef int kind = 0, status
    cdef uint64_t v
    while True:
        status = _field(c, &number, &kind)
        if status != OK or kind == 0:
            return status
        if level == 0 and number == 3 and kind == T_STRUCT:
            status = _codec(c, 1, codec)
        elif level == 1 and number == 4 and kind == T_I32:
            status = _varint(c, &v)
            codec[0] = _zigzag(v) if status == OK else -1
        elif level == 1 and number == 7 and kind == T_I64:
            status = _varint(c, &v)
            codec[1] = _zigzag(v) if status == OK else 0
        else:
            status = _skip(c, kind, 1, False)
        if status != OK:
            return status


cdef int _structs(Cursor* c, int kind, uint64_t* count) noexcept nogil:
    """Enter a list of structs: how many."""
    cdef int inner = 0
    cdef int status = MALFORMED if kind != T_LIST else _list(c, count, &inner)
    if status == OK and inner != T_STRUCT and count[0]:
        return MALFORMED
    if status == OK and count[0] > <uint64_t>(c.size - c.at):
        return CUT_OFF
    return status


cdef int _row_group(Cursor* c, set codecs, int64_t* packed) except? -9:
    cdef int64_t number = 0
    cdef int64_t[2] chunk
    cdef int kind = 0, status
    cdef uint64_t v = 0, i
    while True:
        status = _field(c, &number, &kind)
        if status != OK or kind == 0:
            return status
        if number == 1:
            status = _structs(c, kind, &v)
            for i in range(v if status == OK else 0):
                chunk[0], chunk[1] = -1, 0
                status = _codec(c, 0, chunk)
                if status != OK:
                    return status
                codecs.add(chunk[0])
                # Sizes that no file has would overflow: they count nothing.
                if 0 <= chunk[1] <= <int64_t>1 << 48 and packed[0] <= <int64_t>1 << 60:
                    packed[0] += chunk[1]
        else:
            status = _skip(c, kind, 1, False)
        if status != OK:
            return status


cdef object _error(int status, int64_t at):
    what = "is cut off" if status == CUT_OFF else "is not Thrift's compact encoding"
    return ValueError(f"the footer {what} at byte {at}")


def key_value_spans(const uint8_t[::1] data not None):
    cdef Cursor c
    cdef int64_t number = 0, num_rows = -1
    cdef int64_t[4] spans
    cdef uint64_t v, i
    cdef int kind = 0, status
    out = []
    c.size = data.shape[0]
    c.data = &data[0] if c.size else NULL
    c.at = 0
    while True:
        with nogil:
            status = _field(&c, &number, &kind)
        if status != OK:
            raise _error(status, c.at)
        if kind == 0:
            break
        if number == 3 and kind == 6:
            status = _varint(&c, &v)
            num_rows = _zigzag(v) if status == OK else -1
        elif number == 5 and kind == T_LIST:
            status = _structs(&c, kind, &v)
            for i in range(v if status == OK else 0):
                status = _key_value(&c, spans)
                if status != OK:
                    break
                out.append((spans[0], spans[1], spans[2], spans[3]))
        else:
            with nogil:
                status = _skip(&c, kind, 1, False)
        if status != OK:
            raise _error(status, c.at)
    return num_rows, out


def row_groups(const uint8_t[::1] data not None):
    cdef Cursor c
    cdef int64_t number = 0, packed
    cdef uint64_t v = 0, i
    cdef int kind = 0, status
    out = []
    c.size = data.shape[0]
    c.data = &data[0] if c.size else NULL
    c.at = 0
    while True:
        status = _field(&c, &number, &kind)
        if status == OK and kind == 0:
            return out
        if status == OK and number == 4:
            status = _structs(&c, kind, &v)
            for i in range(v if status == OK else 0):
                group, packed = set(), 0
                status = _row_group(&c, group, &packed)
                if status != OK:
                    break
                out.append((group, packed))
        elif status == OK:
            status = _skip(&c, kind, 1, False)
        if status != OK:
            raise _error(status, c.at)
