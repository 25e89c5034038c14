# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Structs of Thrift's compact protocol as the bytes of their fields.

Only the fields of one struct are copied; what is in them is walked over.  Footers have thousands of values that
nobody looks at.

Source: Thrift compact protocol.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from hudi_format.parquet._thrift cimport CUT_OFF, OK, Cursor, enter, field, skip


cdef object _wrong(int status):
    return ValueError("it is cut off" if status == CUT_OFF else "it is not Thrift's compact encoding")


cdef int _begin(Cursor* c, bytes data, int64_t at) except -1:
    c.size = len(data)
    c.data = <const uint8_t*><const char*>data
    if at < 0 or at > c.size:
        raise ValueError("it is cut off")
    c.at = at
    return 0


cdef list _of_struct(Cursor* c):
    cdef int64_t number = 0, begin
    cdef int kind = 0, status
    cdef const char* text = <const char*>c.data
    out = []
    while True:
        status = field(c, &number, &kind)
        if status != OK:
            raise _wrong(status)
        if kind == 0:
            return out
        begin = c.at
        status = skip(c, kind, 0, False)
        if status != OK:
            raise _wrong(status)
        out.append((number, kind, text[begin:c.at]))


def fields(bytes data not None, int64_t at):
    cdef Cursor c
    _begin(&c, data, at)
    out = _of_struct(&c)
    return out, c.at


def structs(bytes data not None, int64_t at):
    cdef Cursor c
    cdef uint64_t count = 0, i
    cdef int status
    _begin(&c, data, at)
    status = enter(&c, 9, &count)
    if status != OK:
        raise _wrong(status)
    out = []
    for i in range(count):      # each takes a byte at least
        out.append(_of_struct(&c))
    return out, c.at


def behind(bytes data not None, int64_t at, int kind):
    cdef Cursor c
    cdef int status
    _begin(&c, data, at)
    status = skip(&c, kind, 0, True)
    if status != OK:
        raise _wrong(status)
    return c.at
