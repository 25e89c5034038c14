# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Run a program of `hudi_format.avro.resolver` over records: Avro binary to the buffers of Arrow columns.

A `Node` is one step, a `Sink` the growing buffers of one level of a column.  `_value` reads one value at `p`
and gives the byte after it, NULL after a failure that `Run` then describes.  No read passes `Run.end`, no
write passes a sink's capacity, and what is allocated is a small multiple of the bytes read: an item takes at
least one byte, or counts against `Run.free`; what nulls, defaults and symbols stand for counts against `Run.spare`.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from hudi_format.avro._sink cimport *
from hudi_format.avro._wire cimport hudi_double, hudi_float, hudi_utf8, hudi_varint

cdef enum:
    MOST_DEPTH = 400          # calls inside calls; twice what a schema can be nested

OPS = {
    "record": RECORD, "blocks": BLOCKS, "union": UNION, "null_row": NULL_ROW, "default": DEFAULT,
    "unreadable": UNREADABLE, "bool": BOOL, "int32": INT32, "int64": INT64, "long64": LONG64,
    "long_float": LONG_FLOAT, "long_double": LONG_DOUBLE, "float32": FLOAT32, "float_double": FLOAT_DOUBLE,
    "double64": DOUBLE64, "text": TEXT, "fixed": FIXED, "fixed_text": FIXED_TEXT, "enum": ENUM, "int_text": INT_TEXT,
    "long_text": LONG_TEXT, "decimal": DECIMAL, "fixed_decimal": FIXED_DECIMAL, "time32": TIME32, "time64": TIME64,
    "skip_fixed": SKIP_FIXED, "skip_varint": SKIP_VARINT, "skip_bytes": SKIP_BYTES, "skip_union": SKIP_UNION,
    "skip_blocks": SKIP_BLOCKS, "skip_record": SKIP_RECORD,
}
LAYOUTS = {
    "bool": IN_BITS, "fixed": IN_WORDS, "utf8": IN_TEXT, "bytes": IN_TEXT, "list": IN_LIST, "struct": IN_STRUCT,
}
CORRUPT = {
    CUT: "a value runs past the end of its record",
    BAD_NUMBER: "a number is cut off or has more than 64 bits",
    BAD_INT: "an int has more than 32 bits",
    BAD_LENGTH: "a length is negative",
    BAD_BRANCH: "a union has no such branch",
    BAD_BOOL: "a boolean is neither 0 nor 1",
    BAD_SYMBOL: "an enumeration has no such symbol",
    BAD_COUNT: "a list or map has more items than bytes are left",
    BAD_BLOCK: "a block of a list or map has another size than it says",
    BAD_TEXT: "a text is not UTF-8",
    BAD_DECIMAL: "a decimal has more digits than its type",
    BAD_TIME: "a time of day is not within a day",
    TOO_DEEP: "values are nested too deeply",
    OUTSIDE: "a record leaves the data",
    LEFT_OVER: "bytes are left after the record's last value",
}
UNFIT = {
    NO_BRANCH: "a value is of a type that the wanted column cannot hold",
    NO_NULL: "a value is null, but must not be",
}
TOO_LONG_FOR_ARROW = TOO_LONG
TOO_MUCH_FOR_INPUT = TOO_MUCH

# --- passing over -----------------------------------------------------------------------------------


cdef const uint8_t* _skip(Run* r, const Node* node, const uint8_t* p) noexcept nogil:
    cdef int64_t n = 0, size = 0, i
    cdef int32_t k
    cdef const uint8_t* start = p
    cdef const Node* kid
    if node.op == SKIP_FIXED:
        if node.size > r.end - p:
            return _fail(r, CUT, p, node)
        return p + node.size
    if node.op == SKIP_VARINT:
        p = hudi_varint(p, r.end, &n)
        return p if p != NULL else _fail(r, BAD_NUMBER, start, node)
    if node.op == SKIP_BYTES:
        p = hudi_varint(p, r.end, &n)
        if p == NULL:
            return _fail(r, BAD_NUMBER, start, node)
        if n < 0:
            return _fail(r, BAD_LENGTH, start, node)
        if n > r.end - p:
            return _fail(r, CUT, start, node)
        return p + n
    if r.depth >= MOST_DEPTH:
        return _fail(r, TOO_DEEP, p, node)
    r.depth += 1
    if node.op == SKIP_UNION:
        p = hudi_varint(p, r.end, &n)
        if p == NULL:
            return _fail(r, BAD_NUMBER, start, node)
        if n < 0 or n >= node.count:
            return _fail(r, BAD_BRANCH, start, node)
        p = _skip(r, node.kids[n], p)
    elif node.op == SKIP_RECORD:
        for k in range(node.count):
            p = _skip(r, node.kids[k], p)
            if p == NULL:
                break
    else:
        kid = node.kids[node.count - 1]
        while True:
            start = p
            p = hudi_varint(p, r.end, &n)
            if p == NULL:
                return _fail(r, BAD_NUMBER, start, node)
            if n == 0:
                break
            if n < 0:
                p = hudi_varint(p, r.end, &size)
                if p == NULL:
                    return _fail(r, BAD_NUMBER, start, node)
                if size < 0:
                    return _fail(r, BAD_LENGTH, start, node)
                if size > r.end - p:
                    return _fail(r, CUT, start, node)
                p += size
                continue
            if node.size > 0 and n > (r.end - p) // node.size:
                return _fail(r, BAD_COUNT, start, node)
            if node.size == 0 and kid.op == SKIP_FIXED:
                continue                     # items without bytes
            if kid.op == SKIP_FIXED and node.count == 1:
                p += n * kid.size            # node.size is kid.size then
                continue
            if node.size == 0:               # bytes may be there, but need not
                if n > r.free:
                    return _fail(r, BAD_COUNT, start, node)
                r.free -= n
            for i in range(n):
                if node.count == 2:
                    p = _skip(r, node.kids[0], p)
                    if p == NULL:
                        return NULL
                p = _skip(r, kid, p)
                if p == NULL:
                    return NULL
    r.depth -= 1
    return p


# --- reading ----------------------------------------------------------------------------------------


cdef const uint8_t* _blocks(Run* r, const Node* node, const uint8_t* p) noexcept nogil:
    """Append an array, or a map: blocks of items, the last of them of none."""
    cdef Sink* s = &r.sinks[node.sink]
    cdef Sink* inner = &r.sinks[s.kids[0]]
    cdef int64_t n = 0, size = 0, i
    cdef int32_t k
    cdef const uint8_t* start
    cdef const uint8_t* stop
    if not _room(r, s):
        return _fail(r, r.stop, p, node)
    if r.depth >= MOST_DEPTH:
        return _fail(r, TOO_DEEP, p, node)
    r.depth += 1
    while True:
        start = p
        stop = NULL
        p = hudi_varint(p, r.end, &n)
        if p == NULL:
            return _fail(r, BAD_NUMBER, start, node)
        if n == 0:
            break
        if n < 0:
            p = hudi_varint(p, r.end, &size)
            if p == NULL:
                return _fail(r, BAD_NUMBER, start, node)
            if size < 0:
                return _fail(r, BAD_LENGTH, start, node)
            if size > r.end - p:
                return _fail(r, CUT, start, node)
            stop = p + size
            n = <int64_t>(0 - <uint64_t>n)
            if n < 0:
                return _fail(r, BAD_COUNT, start, node)
        if node.size > 0:
            if n > (r.end - p) // node.size:
                return _fail(r, BAD_COUNT, start, node)
        else:
            if n > r.free:
                return _fail(r, BAD_COUNT, start, node)
            r.free -= n
        for i in range(n):
            for k in range(node.count):
                p = _value(r, node.kids[k], p)
                if p == NULL:
                    return NULL
        if stop != NULL and p != stop:
            return _fail(r, BAD_BLOCK, start, node)
    r.depth -= 1
    if inner.rows > LONGEST:
        return _fail(r, TOO_LONG, p, node)
    s.rows += 1
    s.offsets[s.rows] = <int32_t>inner.rows
    return p


cdef const uint8_t* _record(Run* r, const Node* node, const uint8_t* p) noexcept nogil:
    cdef Sink* s = &r.sinks[node.sink]
    cdef int32_t k
    if not _room(r, s):
        return _fail(r, r.stop, p, node)
    if r.depth >= MOST_DEPTH:
        return _fail(r, TOO_DEEP, p, node)
    r.depth += 1
    for k in range(node.count):
        p = _value(r, node.kids[k], p)
        if p == NULL:
            return NULL
    r.depth -= 1
    s.rows += 1
    return p


cdef const uint8_t* _default(Run* r, const Node* node, const uint8_t* p) noexcept nogil:
    """Append the value that stands in the program; `p` does not move."""
    cdef const uint8_t* end = r.end
    cdef const uint8_t* limit = r.limit
    cdef const uint8_t* after
    if not _spend(r, node.text_size + 16):
        return _fail(r, TOO_MUCH, p, node)
    r.end = r.limit = node.text + node.text_size
    after = _value(r, node.kids[0], node.text)
    r.end = end
    r.limit = limit
    if after == NULL:
        return _fail(r, r.stop, p, node)
    return p


cdef const uint8_t* _text(Run* r, const Node* node, Sink* s, const uint8_t* p, int64_t n, const uint8_t* start) noexcept nogil:
    """Append n bytes at p; `start` is where the value begins."""
    if n < 0:
        return _fail(r, BAD_LENGTH, start, node)
    if n > r.end - p:
        return _fail(r, CUT, start, node)
    if r.check and s.utf8 and not hudi_utf8(p, n):
        return _fail(r, BAD_TEXT, p, node)
    if not _copy_text(r, s, p, n, r.limit):
        return _fail(r, r.stop, start, node)
    return p + n


cdef const uint8_t* _rare(Run* r, const Node* node, const uint8_t* p) noexcept nogil:
    """Values that are not worth a place in the loop of `_value`."""
    cdef Sink* s
    cdef int64_t n = 0
    cdef const uint8_t* start = p
    if node.op >= SKIP_FIXED:
        return _skip(r, node, p)
    if node.op == DEFAULT:
        return _default(r, node, p)
    if node.op == UNREADABLE:
        return _fail(r, NO_BRANCH, p, node)
    s = &r.sinks[node.sink]
    if node.op == NULL_ROW:
        return p if _null_row(r, s) else _fail(r, r.stop, p, node)
    if node.op == UNION:
        p = hudi_varint(p, r.end, &n)
        if p == NULL:
            return _fail(r, BAD_NUMBER, start, node)
        if n < 0 or n >= node.count:
            return _fail(r, BAD_BRANCH, start, node)
        return _value(r, node.kids[n], p)
    if node.op == FIXED and node.size > r.end - p:
        return _fail(r, CUT, p, node)
    if not _room(r, s):
        return _fail(r, r.stop, p, node)
    if node.op == FIXED:
        memcpy(s.data + s.rows * s.width, p, s.width)
        s.rows += 1
        return p + node.size
    if node.op == FIXED_TEXT:
        return _text(r, node, s, p, node.size, p)
    if node.op == FIXED_DECIMAL:
        if node.size > r.end - p:
            return _fail(r, CUT, p, node)
        if not _put_decimal(s, p, node.size, node.limit):
            return _fail(r, BAD_DECIMAL, p, node)
        s.rows += 1
        return p + node.size
    p = hudi_varint(p, r.end, &n)
    if p == NULL:
        return _fail(r, BAD_NUMBER, start, node)
    if node.op == DECIMAL:
        if n < 0:
            return _fail(r, BAD_LENGTH, start, node)
        if n > r.end - p:
            return _fail(r, CUT, start, node)
        if not _put_decimal(s, p, n, node.limit):
            return _fail(r, BAD_DECIMAL, start, node)
        s.rows += 1
        return p + n
    if node.op == ENUM:
        if n < 0 or n >= node.size:
            return _fail(r, BAD_SYMBOL, start, node)
        if node.spans[2 * n] < 0:
            return _fail(r, NO_BRANCH, start, node)
        if not _spend(r, node.spans[2 * n + 1]) or not _copy_text(
            r, s, node.text + node.spans[2 * n], node.spans[2 * n + 1], node.text
        ):
            return _fail(r, r.stop, start, node)
        return p
    if node.op == TIME32 or node.op == TIME64:
        if n < 0 or n >= node.size:
            return _fail(r, BAD_TIME, start, node)
        if node.op == TIME32:
            (<int32_t*>s.data)[s.rows] = <int32_t>n
        else:
            (<int64_t*>s.data)[s.rows] = n
        s.rows += 1
        return p
    if node.op == INT_TEXT and n != <int32_t>n:
        return _fail(r, BAD_INT, start, node)
    return p if _number_text(r, s, n) else _fail(r, r.stop, start, node)


cdef const uint8_t* _value(Run* r, const Node* node, const uint8_t* p) noexcept nogil:
    cdef Sink* s
    cdef int64_t n = 0
    cdef const uint8_t* start
    if node.null_branch >= 0:
        start = p
        p = hudi_varint(p, r.end, &n)
        if p == NULL:
            return _fail(r, BAD_NUMBER, start, node)
        if n == node.null_branch:
            s = &r.sinks[node.sink]
            if not s.nullable:
                return _fail(r, NO_NULL, start, node)
            return p if _null_row(r, s) else _fail(r, r.stop, start, node)
        if n != 1 - node.null_branch:
            return _fail(r, BAD_BRANCH, start, node)
    start = p
    if node.op == RECORD:
        return _record(r, node, p)
    elif node.op == BLOCKS:
        return _blocks(r, node, p)
    elif node.op == TEXT:
        p = hudi_varint(p, r.end, &n)
        if p == NULL:
            return _fail(r, BAD_NUMBER, start, node)
        return _text(r, node, &r.sinks[node.sink], p, n, start)
    elif node.op >= BOOL and node.op <= DOUBLE64:
        s = &r.sinks[node.sink]
        if not _room(r, s):
            return _fail(r, r.stop, p, node)
        if node.op == LONG64:
            p = hudi_varint(p, r.end, &n)
            if p == NULL:
                return _fail(r, BAD_NUMBER, start, node)
            (<int64_t*>s.data)[s.rows] = n
        elif node.op == DOUBLE64:
            if r.end - p < 8:
                return _fail(r, CUT, p, node)
            (<double*>s.data)[s.rows] = hudi_double(p)
            p += 8
        elif node.op == INT32 or node.op == INT64:
            p = hudi_varint(p, r.end, &n)
            if p == NULL:
                return _fail(r, BAD_NUMBER, start, node)
            if n != <int32_t>n:
                return _fail(r, BAD_INT, start, node)
            if node.op == INT32:
                (<int32_t*>s.data)[s.rows] = <int32_t>n
            else:
                (<int64_t*>s.data)[s.rows] = n
        elif node.op == BOOL:
            if p >= r.end:
                return _fail(r, CUT, p, node)
            if p[0] > 1:
                return _fail(r, BAD_BOOL, p, node)
            s.data[s.rows] = p[0]
            p += 1
        elif node.op == FLOAT32 or node.op == FLOAT_DOUBLE:
            if r.end - p < 4:
                return _fail(r, CUT, p, node)
            if node.op == FLOAT32:
                (<float*>s.data)[s.rows] = hudi_float(p)
            else:
                (<double*>s.data)[s.rows] = hudi_float(p)
            p += 4
        else:
            p = hudi_varint(p, r.end, &n)
            if p == NULL:
                return _fail(r, BAD_NUMBER, start, node)
            if node.size == 4 and n != <int32_t>n:
                return _fail(r, BAD_INT, start, node)
            if node.op == LONG_FLOAT:
                (<float*>s.data)[s.rows] = <float>n
            else:
                (<double*>s.data)[s.rows] = <double>n
        s.rows += 1
        return p
    return _rare(r, node, p)


# --- all records ------------------------------------------------------------------------------------


cdef int64_t _decode(
    Run* r, const Node* root, int32_t kids, const uint8_t* data, int64_t size,
    const int64_t* offsets, const int64_t* lengths, int64_t rows, int64_t* end
) noexcept nogil:
    """Read the records; gives how many were read.

    `offsets` is NULL for records end to end from end[0] on, which is left after the last one.
    """
    cdef const uint8_t* p = data + end[0]
    cdef bint whole = offsets != NULL and kids == root.count
    cdef int64_t row
    cdef int32_t k
    r.limit = data + size
    r.end = r.limit
    for row in range(rows):
        if offsets != NULL:
            if offsets[row] < 0 or offsets[row] > size or lengths[row] < 0 or lengths[row] > size - offsets[row]:
                r.stop = OUTSIDE
                r.at = data
                r.node = root
                return row
            p = data + offsets[row]
            r.end = p + lengths[row]
        for k in range(kids):
            p = _value(r, root.kids[k], p)
            if p == NULL:
                return row
        if whole and p != r.end:
            r.stop = LEFT_OVER
            r.at = p
            r.node = root
            return row
    end[0] = p - data
    return rows


cdef class Memory:
    """Owns one buffer of the C heap."""
    cdef void* pointer
    cdef readonly int64_t size

    def __dealloc__(self):
        free(self.pointer)

    @property
    def address(self):
        return <size_t>self.pointer


cdef Memory _owned(void** pointer, int64_t size):
    if pointer[0] == NULL:
        return None
    cdef Memory out = Memory.__new__(Memory)
    out.pointer = pointer[0]
    out.size = size
    pointer[0] = NULL
    return out


cdef class Program:
    """The steps and sinks of one pair of schemas; never changes, so that threads may share it."""
    cdef Node* nodes
    cdef int32_t node_count
    cdef Sink* sinks
    cdef uint8_t* flat
    cdef int32_t sink_count
    cdef int32_t text_count
    cdef int32_t short_count    # of the root's kids, without those at the end that only pass over
    cdef int64_t least
    cdef list texts             # keeps what Node.text points to

    def __cinit__(self, list nodes, list sinks, int64_t least):
        cdef int32_t i, k
        cdef Node* node
        cdef Sink* s
        cdef bytes text
        self.texts = []
        self.least = least
        self.nodes = <Node*>_array(len(nodes), sizeof(Node))
        self.node_count = <int32_t>len(nodes)
        self.sinks = <Sink*>_array(len(sinks), sizeof(Sink))
        self.flat = <uint8_t*>_array(len(sinks), 1)
        self.sink_count = <int32_t>len(sinks)
        for i, (layout, nullable, utf8, width, kids, flat) in enumerate(sinks):
            s = &self.sinks[i]
            s.layout = LAYOUTS[layout]
            s.nullable = nullable
            s.utf8 = utf8
            s.width = width if s.layout != IN_BITS else 1
            s.count = <int32_t>len(kids)
            s.kids = <int32_t*>_array(s.count, sizeof(int32_t))
            if not all(0 <= kid < self.sink_count for kid in kids):
                raise ValueError("a sink that is not there")
            for k in range(s.count):
                s.kids[k] = kids[k]
            self.flat[i] = flat
            self.text_count += s.layout == IN_TEXT
        for i, (op, sink, null_branch, size, digits, text, spans, kids) in enumerate(nodes):
            node = &self.nodes[i]
            node.op = OPS[op]
            node.sink, node.null_branch, node.size = sink, null_branch, size
            node.number = i
            if not -1 <= sink < self.sink_count or (sink < 0 and node.op < SKIP_FIXED and i > 0):
                raise ValueError("a sink that is not there")
            self.texts.append(text)
            node.text, node.text_size = text, len(text)
            node.spans = <int64_t*>_array(len(spans), sizeof(int64_t))
            for k in range(<int32_t>len(spans)):
                node.spans[k] = spans[k]
            for k in range(4):
                node.limit[k] = <uint64_t>((10**digits >> (64 * k)) & 0xFFFFFFFFFFFFFFFF)
            node.count = <int32_t>len(kids)
            node.kids = <Node**>_array(node.count, sizeof(Node*))
            for k in range(node.count):
                if not 0 <= kids[k] < self.node_count:
                    raise ValueError("a step that is not there")
                node.kids[k] = &self.nodes[<int32_t>kids[k]]
        self.short_count = self.nodes[0].count
        while self.short_count and self.nodes[0].kids[self.short_count - 1].op >= SKIP_FIXED:
            self.short_count -= 1

    def __dealloc__(self):
        cdef int32_t i
        if self.nodes != NULL:
            for i in range(self.node_count):
                free(self.nodes[i].kids)
                free(self.nodes[i].spans)
        if self.sinks != NULL:
            for i in range(self.sink_count):
                free(self.sinks[i].kids)
        free(self.nodes)
        free(self.sinks)
        free(self.flat)

    def run(self, const uint8_t[::1] data not None, const int64_t[::1] offsets, const int64_t[::1] lengths,
            int64_t start, int64_t rows):
        cdef int64_t size = data.shape[0], done = 0, end = start, text_room, bytes_read
        cdef const uint8_t* base = &data[0] if size else <const uint8_t*>&size
        cdef const int64_t* begins = NULL
        cdef const int64_t* spans = NULL
        cdef int32_t kids = self.nodes[0].count, i
        cdef int64_t no_rows = 0
        cdef bint ready, again = False
        cdef Sink* sinks
        cdef Run r
        memset(&r, 0, sizeof(Run))
        if offsets is not None:
            if lengths is None or offsets.shape[0] != lengths.shape[0]:
                raise ValueError("one length per offset is needed")
            rows = offsets.shape[0]
            begins = &offsets[0] if rows else &no_rows
            spans = &lengths[0] if rows else &no_rows
            kids = self.short_count
            start = end = 0
        elif not 0 <= start <= size or rows < 0:
            raise ValueError("a start or a count that is not in the data")
        _allow(&r, size)
        if offsets is None and rows > (r.free if self.least == 0 else (size - start) // self.least):
            return BAD_COUNT, 0, start, 0, None
        text_room = min((size - start) // (self.text_count + 1) + 64, <int64_t>LONGEST)
        sinks = <Sink*>_array(self.sink_count, sizeof(Sink))
        memcpy(sinks, self.sinks, self.sink_count * sizeof(Sink))
        r.sinks = sinks
        try:
            with nogil:
                # No more rows than the bytes can hold.
                ready = _prepare(sinks, self.sink_count, self.flat, min(rows, size // max(self.least, 1) + 1), text_room)
                if ready:
                    done = _decode(&r, self.nodes, kids, base, size, begins, spans, rows, &end)
                    if r.stop == OK and not _sound_texts(sinks, self.sink_count):
                        again = True
                        r.check = True
                        _allow(&r, size)
                        for i in range(self.sink_count):
                            if sinks[i].valid != NULL:
                                memset(sinks[i].valid, 1, <size_t>sinks[i].room)
                            sinks[i].rows = sinks[i].used = sinks[i].nulls = 0
                        end = start
                        done = _decode(&r, self.nodes, kids, base, size, begins, spans, rows, &end)
                    if r.stop == OK:
                        _finish(sinks, self.sink_count)
            if not ready or r.stop == NO_MEMORY:
                raise MemoryError
            if r.stop != OK:
                return r.stop, done, r.at - base, r.node.number, None
            if again:
                raise RuntimeError("a text that is not UTF-8 was not found again")
            out = []
            for i in range(self.sink_count):
                out.append((
                    sinks[i].rows,
                    sinks[i].nulls,
                    _owned(<void**>&sinks[i].valid, (sinks[i].rows + 7) // 8),
                    _owned(<void**>&sinks[i].offsets, (sinks[i].rows + 1) * 4),
                    _owned(<void**>&sinks[i].data, sinks[i].used),
                ))
            return OK, done, end, 0, out
        finally:
            for i in range(self.sink_count):
                free(sinks[i].valid)
                free(sinks[i].offsets)
                free(sinks[i].data)
            free(sinks)
