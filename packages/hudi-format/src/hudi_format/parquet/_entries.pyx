# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Where a Parquet footer's key-value entries are, without decoding the rest of it.

A footer with a bloom filter is some 400 kB of text behind a few kB of column metadata.  Arrow copies that text
several times before it hands it out; an index look-up wants three entries of thousands of footers.  This walks
over the Thrift compact encoding, skips what it does not need, and copies nothing.

Source: parquet.thrift, FileMetaData (num_rows 3, key_value_metadata 5), KeyValue.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from hudi_format.parquet._thrift cimport OK, T_BINARY, T_LIST, Cursor, advance, enter, field, skip, varint, where, zigzag


cdef int _key_value(Cursor* c, int64_t* spans) noexcept nogil:
    """One KeyValue: offset and length of its key and of its value, length -1 for a missing value."""
    cdef int64_t number = 0
    cdef int kind = 0, status
    cdef uint64_t v
    spans[0] = spans[2] = 0
    spans[1] = spans[3] = -1
    while True:
        status = field(c, &number, &kind)
        if status != OK or kind == 0:
            return status
        if kind == T_BINARY and 1 <= number <= 2:
            status = varint(c, &v)
            if status != OK:
                return status
            spans[2 * (number - 1)] = c.at
            status = advance(c, v)
            spans[2 * (number - 1) + 1] = <int64_t>v
        else:
            status = skip(c, kind, 1, False)
        if status != OK:
            return status


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
            status = field(&c, &number, &kind)
        if status != OK:
            raise where(status, c.at)
        if kind == 0:
            break
        if number == 3 and kind == 6:
            status = varint(&c, &v)
            num_rows = zigzag(v) if status == OK else -1
        elif number == 5 and kind == T_LIST:
            status = enter(&c, kind, &v)
            for i in range(v if status == OK else 0):
                status = _key_value(&c, spans)
                if status != OK:
                    break
                out.append((spans[0], spans[1], spans[2], spans[3]))
        else:
            with nogil:
                status = skip(&c, kind, 1, False)
        if status != OK:
            raise where(status, c.at)
    return num_rows, out
