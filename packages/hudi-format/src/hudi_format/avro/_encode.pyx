# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Write rows of Arrow arrays as Avro binary.

A `Step` is one type of the writer's schema, a `Source` the buffers of the array that its values come from.
`_put` appends one value; the loop over rows runs without the GIL.  The door, `hudi_format.avro.encoder`, gives
arrays of exactly the types that the steps expect.
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from hudi_format.avro._wire cimport hudi_put_varint

cdef extern from "Python.h":
    int PyByteArray_Resize(object array, Py_ssize_t size) except -1
    char* PyByteArray_AsString(object array) except NULL

cdef enum:
    SLACK = 32                # a branch, a number, and a number after it take no more

cdef enum Op:
    RECORD, ARRAY, MAP, BOOL, INT, LONG, FLOAT, DOUBLE, TEXT, FIXED, ENUM, DECIMAL, FIXED_DECIMAL, NOTHING, CONSTANT, UNION

cdef enum Stop:
    OK, NO_NULL, NO_SYMBOL, NO_DIGITS, NO_MEMORY, NO_MEMBER

OPS = {
    "record": RECORD, "array": ARRAY, "map": MAP, "boolean": BOOL, "int": INT, "long": LONG, "float": FLOAT,
    "double": DOUBLE, "text": TEXT, "fixed": FIXED, "enum": ENUM, "decimal": DECIMAL,
    "fixed_decimal": FIXED_DECIMAL, "null": NOTHING, "constant": CONSTANT,
    "union": UNION,
}
UNFIT = {
    NO_NULL: "a value is null, but must not be",
    NO_SYMBOL: "a text is no symbol of the enumeration",
    NO_DIGITS: "a decimal has more digits than its type",
    NO_MEMBER: "of the members of a union there is not one that has a value",
}

cdef struct Step:
    Op op
    int64_t null_branch        # places in the union around the value; -1 without a union, or without null
    int64_t value_branch
    int32_t count              # kids
    Step** kids
    int64_t size               # bytes of a fixed value and of a decimal, symbols of an enumeration
    int64_t width              # bytes of the Arrow value of a decimal
    const uint8_t* text        # a constant, or symbols end to end
    int64_t text_size
    int64_t* spans             # begin and length of each symbol
    uint64_t limit[4]          # 10 to the power of a decimal's digits, lowest word first
    int32_t number

cdef struct Source:
    const uint8_t* valid       # bits; NULL without nulls
    const uint8_t* data
    const int32_t* offsets
    int64_t offset             # of row 0 in all of them

cdef struct Run:
    const Source* sources
    PyObject* target           # the bytearray behind out
    uint8_t* out
    int64_t used
    int64_t room
    Stop stop
    const Step* step


cdef bint _grow(Run* r, int64_t n) noexcept with gil:
    cdef int64_t room = max(r.used + n + SLACK, r.room * 2)
    try:
        PyByteArray_Resize(<object>r.target, room)
        r.out = <uint8_t*>PyByteArray_AsString(<object>r.target)
    except MemoryError:
        r.stop = NO_MEMORY
        return False
    r.room = room
    return True


cdef inline bint _bit(const uint8_t* bits, int64_t i) noexcept nogil:
    return bits[i >> 3] >> (i & 7) & 1


cdef inline bint _fail(Run* r, Stop stop, const Step* step) noexcept nogil:
    r.stop = stop
    r.step = step
    return False


cdef inline bint _put_text(Run* r, const uint8_t* p, int64_t n) noexcept nogil:
    """Append a length and n bytes."""
    if r.room - r.used < n + SLACK and not _grow(r, n):
        return False
    r.used = hudi_put_varint(r.out + r.used, n) - r.out
    if n > 0:                  # a column of empty texts may have no bytes at all
        memcpy(r.out + r.used, p, <size_t>n)
    r.used += n
    return True


cdef bint _put_decimal(Run* r, const Step* step, const uint8_t* value) noexcept nogil:
    """Append a number of 16 or 32 bytes, highest byte first: as many as the type has, or as few as hold it."""
    cdef uint64_t words[4]
    cdef uint64_t word, sign, carry
    cdef int64_t n, i
    cdef int k
    memcpy(words, value, <size_t>step.width)
    sign = 0 - (words[step.width // 8 - 1] >> 63)
    for k in range(<int>(step.width // 8), 4):
        words[k] = sign
    carry = sign & 1
    k = 3
    cdef uint64_t size[4]
    for i in range(4):
        size[i] = (words[i] ^ sign) + carry
        carry = carry and size[i] == 0
    while k > 0 and size[k] == step.limit[k]:
        k -= 1
    if size[k] >= step.limit[k]:
        return _fail(r, NO_DIGITS, step)
    n = 32
    while n > 1:               # the first byte may go if it and the next one's upper bit are the sign
        word = words[(n - 1) >> 3] >> (8 * ((n - 1) & 7)) & 0xFF
        if word != sign & 0xFF or (words[(n - 2) >> 3] >> (8 * ((n - 2) & 7)) ^ sign) & 0x80:
            break
        n -= 1
    if step.op == FIXED_DECIMAL:
        if n > step.size:
            return _fail(r, NO_DIGITS, step)
        n = step.size
    if r.room - r.used < n + SLACK and not _grow(r, n):
        return False
    if step.op == DECIMAL:
        r.used = hudi_put_varint(r.out + r.used, n) - r.out
    for i in range(n):
        k = <int>(n - 1 - i)
        r.out[r.used + i] = <uint8_t>(words[k >> 3] >> (8 * (k & 7))) if k < 32 else <uint8_t>sign
    r.used += n
    return True


cdef bint _put_symbol(Run* r, const Step* step, const uint8_t* p, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(step.size):
        if step.spans[2 * i + 1] == n and memcmp(step.text + step.spans[2 * i], p, <size_t>n) == 0:
            r.used = hudi_put_varint(r.out + r.used, i) - r.out
            return True
    return _fail(r, NO_SYMBOL, step)


cdef inline void _put_word(Run* r, const uint8_t* p, int n) noexcept nogil:
    """Append a float of 4 or 8 bytes, lowest byte first."""
    cdef uint64_t long_word
    cdef uint64_t word
    cdef int32_t short_word
    cdef int i
    if n == 8:
        memcpy(&long_word, p, 8)
        word = long_word
    else:
        memcpy(&short_word, p, 4)
        word = <uint64_t>short_word
    for i in range(n):
        r.out[r.used + i] = <uint8_t>(word >> (8 * i))
    r.used += n


cdef bint _put_member(Run* r, const Step* step, int64_t row) noexcept nogil:
    """Append the one member of a union that has a value."""
    cdef const Source* s
    cdef const Step* chosen = NULL
    cdef int32_t k
    for k in range(step.count):
        s = &r.sources[step.kids[k].number]
        if s.valid == NULL or _bit(s.valid, s.offset + row):
            if chosen != NULL:
                return _fail(r, NO_MEMBER, step)
            chosen = step.kids[k]
    if chosen == NULL:
        return _fail(r, NO_MEMBER, step)
    return _put(r, chosen, row)


cdef bint _put(Run* r, const Step* step, int64_t row) noexcept nogil:
    cdef const Source* s = &r.sources[step.number]
    cdef int64_t i = s.offset + row, k, begin, end
    if r.room - r.used < SLACK and not _grow(r, 0):
        return False
    if s.valid != NULL and not _bit(s.valid, i):
        if step.null_branch < 0:
            return _fail(r, NO_NULL, step)
        r.used = hudi_put_varint(r.out + r.used, step.null_branch) - r.out
        return True
    if step.value_branch >= 0:
        r.used = hudi_put_varint(r.out + r.used, step.value_branch) - r.out
    if step.op == TEXT:
        begin = s.offsets[i]
        return _put_text(r, s.data + begin, s.offsets[i + 1] - begin)
    elif step.op == LONG:
        r.used = hudi_put_varint(r.out + r.used, (<const int64_t*>s.data)[i]) - r.out
    elif step.op == DOUBLE:
        _put_word(r, s.data + 8 * i, 8)
    elif step.op == INT:
        r.used = hudi_put_varint(r.out + r.used, (<const int32_t*>s.data)[i]) - r.out
    elif step.op == FLOAT:
        _put_word(r, s.data + 4 * i, 4)
    elif step.op == BOOL:
        r.out[r.used] = _bit(s.data, i)
        r.used += 1
    elif step.op == DECIMAL or step.op == FIXED_DECIMAL:
        return _put_decimal(r, step, s.data + step.width * i)
    elif step.op == RECORD:
        for k in range(step.count):
            if not _put(r, step.kids[k], row):
                return False
    elif step.op == ARRAY or step.op == MAP:
        begin = s.offsets[i]
        end = s.offsets[i + 1]
        if begin < end:
            r.used = hudi_put_varint(r.out + r.used, end - begin) - r.out
        for k in range(begin, end):
            if not _put(r, step.kids[0], k):
                return False
            if step.op == MAP and not _put(r, step.kids[1], k):
                return False
        if r.room - r.used < SLACK and not _grow(r, 0):
            return False
        r.out[r.used] = 0
        r.used += 1
    elif step.op == UNION:
        return _put_member(r, step, row)
    elif step.op == ENUM:
        begin = s.offsets[i]
        return _put_symbol(r, step, s.data + begin, s.offsets[i + 1] - begin)
    elif step.op == FIXED or step.op == CONSTANT:
        k = step.size if step.op == FIXED else step.text_size
        if r.room - r.used < k + SLACK and not _grow(r, k):
            return False
        memcpy(r.out + r.used, s.data + k * i if step.op == FIXED else step.text, <size_t>k)
        r.used += k
    return True


cdef void* _array(int64_t count, size_t width) except NULL:
    cdef void* p = calloc(<size_t>max(count, 1), width)
    if p == NULL:
        raise MemoryError
    return p


cdef class Program:
    """The steps of one writer's schema; never changes, so that threads may share it."""
    cdef Step* steps
    cdef int32_t count
    cdef list texts             # keeps what Step.text points to

    def __cinit__(self, list steps):
        cdef int32_t i, k
        cdef Step* step
        cdef bytes text
        self.texts = []
        self.steps = <Step*>_array(len(steps), sizeof(Step))
        self.count = <int32_t>len(steps)
        for i, (op, null_branch, value_branch, size, width, digits, text, spans, kids) in enumerate(steps):
            step = &self.steps[i]
            step.op = OPS[op]
            step.null_branch = null_branch
            step.value_branch = value_branch
            step.size = size
            step.width = width
            step.number = i
            if step.op in (DECIMAL, FIXED_DECIMAL) and width not in (16, 32):
                raise ValueError("a decimal of an unknown width")
            self.texts.append(text)
            step.text = text
            step.text_size = len(text)
            step.spans = <int64_t*>_array(len(spans), sizeof(int64_t))
            for k in range(<int32_t>len(spans)):
                step.spans[k] = spans[k]
            for k in range(4):
                step.limit[k] = <uint64_t>((10**digits >> (64 * k)) & 0xFFFFFFFFFFFFFFFF)
            step.count = <int32_t>len(kids)
            if step.count != {ARRAY: 1, MAP: 2}.get(step.op, step.count):
                raise ValueError("a list of other than one, or a map of other than two kids")
            step.kids = <Step**>_array(step.count, sizeof(Step*))
            for k in range(step.count):
                if not i < kids[k] < self.count:
                    raise ValueError("a step that is not there")
                step.kids[k] = &self.steps[<int32_t>kids[k]]

    def __dealloc__(self):
        cdef int32_t i
        if self.steps != NULL:
            for i in range(self.count):
                free(self.steps[i].kids)
                free(self.steps[i].spans)
        free(self.steps)

    def run(self, list sources, int64_t rows, int64_t[::1] offsets not None, int64_t guess):
        cdef Run r
        cdef Source* found
        cdef int64_t row = 0
        cdef int32_t i
        cdef bint done = True
        if len(sources) != self.count or offsets.shape[0] != rows + 1:
            raise ValueError("one source per step and one offset per row are needed")
        target = bytearray(guess + SLACK)
        r.target = <PyObject*>target
        r.out = <uint8_t*>PyByteArray_AsString(target)
        r.used = 0
        r.room = guess + SLACK
        r.stop = OK
        r.step = self.steps
        found = <Source*>_array(self.count, sizeof(Source))
        try:
            for i, (valid, data, bounds, offset) in enumerate(sources):
                found[i].valid = <const uint8_t*><size_t>valid
                found[i].data = <const uint8_t*><size_t>data
                found[i].offsets = <const int32_t*><size_t>bounds
                found[i].offset = offset
            r.sources = found
            with nogil:
                offsets[0] = 0
                for row in range(rows):
                    done = _put(&r, self.steps, row)
                    if not done:
                        break
                    offsets[row + 1] = r.used
        finally:
            free(found)
        if r.stop == NO_MEMORY:
            raise MemoryError
        if not done:
            return r.stop, row, r.step.number, None
        del target[r.used:]
        return OK, rows, 0, target
