# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""What a Parquet footer says of its row groups and their column chunks, statistics as the bytes that they are.

Arrow's own view ends the process where a chunk's description contradicts its schema, and makes an object of every
chunk where a filter wants two columns.

Source: parquet.thrift, FileMetaData (row_groups 4, column_orders 7), RowGroup (columns 1, num_rows 3), ColumnChunk
(file_path 1, meta_data 3), ColumnMetaData (type 1, path_in_schema 3, codec 4, num_values 5, total_uncompressed_size 6,
total_compressed_size 7, data_page_offset 9, dictionary_page_offset 11, statistics 12),
Statistics (max 1, min 2, null_count 3, max_value 5, min_value 6), ColumnOrder (TYPE_ORDER 1).
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t

from hudi_format.parquet._thrift cimport (
    MALFORMED, OK, T_BINARY, T_I32, T_I64, T_LIST, T_STRUCT, Cursor, advance, count_and_kind, enter, field, skip,
    varint, where, zigzag,
)


cdef enum:
    FLOAT = 4           # of parquet.thrift's Type
    DOUBLE = 5


cdef struct Span:
    int64_t at
    int64_t length      # -1: not there


cdef struct Chunk:
    int64_t physical    # -1: not said, as of the next four
    int64_t codec
    int64_t values
    int64_t unpacked
    int64_t packed
    int64_t data        # -1: not said, or of another file
    int64_t dictionary  # -1: there is none
    bint elsewhere      # whether its pages are in another file
    int64_t nulls       # -1: not said
    Span statistics     # the struct as it lies
    Span path           # the elements as they lie, each behind its length
    uint64_t steps      # how many
    Span[6] bounds      # by field number less 1: max, min, -, -, max_value, min_value


cdef inline int _text(Cursor* c, Span* out) noexcept nogil:
    cdef uint64_t v
    cdef int status = varint(c, &v)
    if status != OK:
        return status
    out.at = c.at
    status = advance(c, v)
    out.length = <int64_t>v if status == OK else -1
    return status


cdef inline int _number(Cursor* c, int64_t* out) noexcept nogil:
    cdef uint64_t v
    cdef int status = varint(c, &v)
    if status == OK:
        out[0] = zigzag(v)
    return status


cdef int _path(Cursor* c, Chunk* chunk) noexcept nogil:
    """The span of a list of texts."""
    cdef uint64_t i
    cdef int kind = 0, status
    cdef Span step
    status = count_and_kind(c, &chunk.steps, &kind)
    if status == OK and kind != T_BINARY:
        return MALFORMED
    chunk.path.at = c.at
    if status == OK:
        for i in range(chunk.steps):
            status = _text(c, &step)
            if status != OK:
                return status
        chunk.path.length = c.at - chunk.path.at
    return status


cdef int _statistics(Cursor* c, Chunk* chunk) noexcept nogil:
    cdef int64_t number = 0
    cdef int kind = 0, status
    while True:
        status = field(c, &number, &kind)
        if status != OK or kind == 0:
            return status
        if kind == T_BINARY and 1 <= number <= 6:
            status = _text(c, &chunk.bounds[number - 1])
        elif kind == T_I64 and number == 3:
            status = _number(c, &chunk.nulls)
        else:
            status = skip(c, kind, 1, False)
        if status != OK:
            return status


cdef int _chunk(Cursor* c, bint inner, Chunk* chunk) noexcept nogil:
    """A ColumnChunk, or the ColumnMetaData in it."""
    cdef int64_t number = 0
    cdef int kind = 0, status
    while True:
        status = field(c, &number, &kind)
        if status != OK or kind == 0:
            return status
        if not inner:
            chunk.elsewhere |= number == 1
            status = _chunk(c, True, chunk) if number == 3 and kind == T_STRUCT else skip(c, kind, 1, False)
        elif number == 1 and kind == T_I32:
            status = _number(c, &chunk.physical)
        elif number == 3 and kind == T_LIST:
            status = _path(c, chunk)
        elif number == 4 and kind == T_I32:
            status = _number(c, &chunk.codec)
        elif number == 5 and kind == T_I64:
            status = _number(c, &chunk.values)
        elif number == 6 and kind == T_I64:
            status = _number(c, &chunk.unpacked)
        elif number == 7 and kind == T_I64:
            status = _number(c, &chunk.packed)
        elif number == 9 and kind == T_I64:
            status = _number(c, &chunk.data)
        elif number == 11 and kind == T_I64:
            status = _number(c, &chunk.dictionary)
        elif number == 12 and kind == T_STRUCT:
            chunk.statistics.at = c.at
            status = _statistics(c, chunk)
            chunk.statistics.length = c.at - chunk.statistics.at
        else:
            status = skip(c, kind, 1, False)
        if status != OK:
            return status


cdef object _bytes(Cursor* c, Span span):
    return None if span.length < 0 else PyBytes_FromStringAndSize(<const char*>c.data + span.at, span.length)


cdef bytes _joined(Cursor* c, Chunk* chunk):
    """The path's elements with dots between them."""
    cdef Cursor inner
    cdef Span step
    cdef uint64_t i
    if chunk.steps == 0 or chunk.path.length < 0:
        return b""
    inner.data, inner.size, inner.at = c.data, chunk.path.at + chunk.path.length, chunk.path.at
    steps = []
    for i in range(chunk.steps):
        if _text(&inner, &step) != OK:
            break
        steps.append(_bytes(c, step))
    return steps[0] if len(steps) == 1 else b".".join(steps)


cdef class _Walk:
    """What a walk over a footer is to find: descriptions of chunks, or the places of some structs.

    One that finds chunks has the row groups in `groups`, and in `orders` for each leaf column whether its values are in
    the order of its type; one that finds places has them in the other lists.
    """
    cdef object wanted          # paths of chunks; None for all
    cdef bint places
    cdef list groups, orders, begins, statistics
    cdef Span entries

    def __init__(self, wanted, places):
        self.wanted, self.places = wanted, places
        self.groups, self.orders, self.begins, self.statistics = [], [], [], []
        self.entries.at, self.entries.length = -1, 0

    cdef int chunk(self, Cursor* c, uint64_t i, list chunks) except? -9:
        """One ColumnChunk of a row group."""
        cdef Chunk chunk
        cdef int64_t begin = c.at
        cdef int n, status
        chunk.physical = chunk.codec = chunk.values = chunk.unpacked = chunk.packed = -1
        chunk.data = chunk.dictionary = chunk.nulls = -1
        chunk.elsewhere = False
        chunk.path.at, chunk.path.length, chunk.steps = 0, -1, 0
        chunk.statistics.at, chunk.statistics.length = 0, -1
        for n in range(6):
            chunk.bounds[n].at, chunk.bounds[n].length = 0, -1
        with nogil:
            status = _chunk(c, False, &chunk)
        if status != OK:
            return status
        if self.places:
            if i == 0:
                self.begins.append(begin)
            if chunk.statistics.length >= 0 and (chunk.physical == FLOAT or chunk.physical == DOUBLE):
                self.statistics.append((chunk.statistics.at, chunk.statistics.length))
            return OK
        path = _joined(c, &chunk)
        if self.wanted is None or path in self.wanted:
            chunks.append((
                i, path, chunk.physical, chunk.codec, chunk.values, chunk.unpacked, chunk.packed,
                chunk.dictionary, chunk.nulls,
                _bytes(c, chunk.bounds[5]), _bytes(c, chunk.bounds[4]),
                _bytes(c, chunk.bounds[1]), _bytes(c, chunk.bounds[0]),
                -1 if chunk.elsewhere else chunk.data,
            ))
        return OK

    cdef int row_group(self, Cursor* c) except? -9:
        """One RowGroup: (rows, [chunk, ...])."""
        cdef int64_t number = 0, rows = -1
        cdef int kind = 0, status
        cdef uint64_t count = 0, i
        chunks = []
        while True:
            status = field(c, &number, &kind)
            if status != OK:
                return status
            if kind == 0:
                self.groups.append((rows, chunks))
                return OK
            if number == 1:
                status = enter(c, kind, &count)
                for i in range(count if status == OK else 0):
                    status = self.chunk(c, i, chunks)
                    if status != OK:
                        return status
            elif number == 3 and kind == T_I64:
                status = _number(c, &rows)
            else:
                status = skip(c, kind, 1, False)
            if status != OK:
                return status

    cdef int file(self, const uint8_t[::1] data) except? -9:
        """The FileMetaData."""
        cdef Cursor c
        cdef int64_t number = 0
        cdef uint64_t count = 0, i
        cdef int kind = 0, status
        c.size = data.shape[0]
        c.data = &data[0] if c.size else NULL
        c.at = 0
        while True:
            status = field(&c, &number, &kind)
            if status == OK and kind == 0:
                return OK
            if status == OK and number == 4:
                status = enter(&c, kind, &count)
                for i in range(count if status == OK else 0):
                    status = self.row_group(&c)
                    if status != OK:
                        break
            elif status == OK and number == 7 and not self.places:
                status = _orders(&c, kind, self.orders)
            elif status == OK:
                if number == 5:
                    self.entries.at = c.at
                with nogil:
                    status = skip(&c, kind, 1, False)
                if number == 5:
                    self.entries.length = c.at - self.entries.at
            if status != OK:
                raise where(status, c.at)


cdef int _orders(Cursor* c, int kind, list out) except? -9:
    """For each leaf column whether its values are in the order of its type."""
    cdef uint64_t count = 0, i
    cdef int64_t number
    cdef int inner = 0, status = enter(c, kind, &count)
    for i in range(count if status == OK else 0):
        number = 0
        typed = False
        while True:
            status = field(c, &number, &inner)
            if status != OK:
                return status
            if inner == 0:
                break
            typed = typed or number == 1
            status = skip(c, inner, 1, False)
            if status != OK:
                return status
        out.append(typed)
    return status


def row_groups(const uint8_t[::1] data not None, wanted=None):
    cdef _Walk walk = _Walk(wanted, False)
    walk.file(data)
    return walk.groups, walk.orders


def float_places(const uint8_t[::1] data not None):
    cdef _Walk walk = _Walk(None, True)
    walk.file(data)
    return walk.begins, walk.statistics, (walk.entries.at, walk.entries.length)
