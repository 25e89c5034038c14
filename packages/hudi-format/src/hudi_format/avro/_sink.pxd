# What the decoder fills: the growing buffers of one level of a column, and the state of one run over records.
# Inline bodies, for `_decode` alone.
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from hudi_format.avro._wire cimport hudi_ascii, hudi_load64, hudi_utf8

cdef enum:
    LONGEST = 0x7FFFFFFF      # Arrow's 32-bit offsets end here
    SLACK = 32                # short texts are copied as so many bytes
    MOST_SPARE = 1024         # bytes of output that no input stands for, per byte of input: a null struct's fields
    LEAST_SPARE = 1 << 26

cdef enum Op:
    RECORD, BLOCKS, UNION, NULL_ROW, DEFAULT, UNREADABLE,
    BOOL, INT32, INT64, LONG64, LONG_FLOAT, LONG_DOUBLE, FLOAT32, FLOAT_DOUBLE, DOUBLE64,
    TEXT, FIXED, FIXED_TEXT, ENUM, INT_TEXT, LONG_TEXT, DECIMAL, FIXED_DECIMAL, TIME32, TIME64,
    SKIP_FIXED, SKIP_VARINT, SKIP_BYTES, SKIP_UNION, SKIP_BLOCKS, SKIP_RECORD

cdef enum Layout:
    IN_BITS, IN_WORDS, IN_TEXT, IN_LIST, IN_STRUCT

cdef enum Stop:
    OK, CUT, BAD_NUMBER, BAD_INT, BAD_LENGTH, BAD_BRANCH, BAD_BOOL, BAD_SYMBOL, BAD_COUNT, BAD_BLOCK, BAD_TEXT,
    BAD_DECIMAL, BAD_TIME, TOO_DEEP, LEFT_OVER, OUTSIDE, NO_BRANCH, NO_NULL, TOO_LONG, TOO_MUCH, NO_MEMORY

cdef struct Node:
    Op op
    int32_t sink
    int8_t null_branch         # place of null in the union around the value, -1 without one
    int32_t count              # kids
    Node** kids
    int64_t size               # as that of Step
    const uint8_t* text        # a default, or symbols end to end
    int64_t text_size
    int64_t* spans             # begin and length of each symbol
    uint64_t limit[4]          # 10 to the power of a decimal's digits, lowest word first
    int32_t number             # in the program's list of steps

cdef struct Sink:
    Layout layout
    bint nullable
    bint utf8
    int32_t width
    int32_t count              # kids
    int32_t* kids
    uint8_t* valid             # one byte a row; NULL where the column is never null
    uint8_t* data              # values; one byte a row of IN_BITS
    int32_t* offsets
    int64_t rows
    int64_t room               # rows that fit
    int64_t used               # bytes of text
    int64_t text_room
    int64_t nulls

cdef struct Run:
    Sink* sinks
    const uint8_t* end         # of the record
    const uint8_t* limit       # of the buffer
    int64_t free               # items without bytes that may still come
    int64_t spare              # bytes of nulls, defaults and symbols that may still come
    int32_t depth
    bint check                 # look at every text at once, to tell where the bad one is
    Stop stop
    const uint8_t* at
    const Node* node


cdef inline const uint8_t* _fail(Run* r, Stop stop, const uint8_t* at, const Node* node) noexcept nogil:
    r.stop = stop
    r.at = at
    r.node = node
    return NULL


cdef inline bint _resize(Sink* s, int64_t room) noexcept nogil:
    """Make room for so many rows; False without the memory."""
    cdef void* p
    if s.nullable:
        p = realloc(s.valid, <size_t>room + 8)
        if p == NULL:
            return False
        s.valid = <uint8_t*>p
        memset(s.valid + s.rows, 1, <size_t>(room + 8 - s.rows))
    if s.layout == IN_TEXT or s.layout == IN_LIST:
        p = realloc(s.offsets, (<size_t>room + 1) * 4)
        if p == NULL:
            return False
        s.offsets = <int32_t*>p
        if s.rows == 0:
            s.offsets[0] = 0
    elif s.layout != IN_STRUCT:
        p = realloc(s.data, <size_t>room * s.width + 8)
        if p == NULL:
            return False
        s.data = <uint8_t*>p
    s.room = room
    return True


cdef inline bint _grow(Run* r, Sink* s) noexcept nogil:
    cdef int64_t least = 64 if s.width <= SLACK else 1
    if s.rows >= LONGEST:
        r.stop = TOO_LONG
        return False
    if not _resize(s, min(<int64_t>LONGEST, max(least, s.room * 2))):
        r.stop = NO_MEMORY
        return False
    return True


cdef inline bint _room(Run* r, Sink* s) noexcept nogil:
    return s.rows < s.room or _grow(r, s)


cdef inline bint _grow_text(Run* r, Sink* s, int64_t n) noexcept nogil:
    """Make room for n more bytes and SLACK."""
    cdef int64_t room
    cdef void* p
    if n > LONGEST - s.used:
        r.stop = TOO_LONG
        return False
    room = min(<int64_t>LONGEST + SLACK, max(s.used + n + SLACK, s.text_room * 2))
    p = realloc(s.data, <size_t>room)
    if p == NULL:
        r.stop = NO_MEMORY
        return False
    s.data = <uint8_t*>p
    s.text_room = room
    return True


cdef inline void _allow(Run* r, int64_t size) noexcept nogil:
    """What may be made of so many bytes of input."""
    r.free = size + 1024
    r.spare = max(<int64_t>LEAST_SPARE, size * MOST_SPARE)


cdef inline bint _spend(Run* r, int64_t n) noexcept nogil:
    """Count n bytes of output that no bytes of the input stand for."""
    r.spare -= n
    if r.spare < 0:
        r.stop = TOO_MUCH
        return False
    return True


cdef inline bint _null_row(Run* r, Sink* s) noexcept nogil:
    """Append a null, and what stands for it in the levels below a struct."""
    cdef int32_t i
    if not _spend(r, s.width + 4) or not _room(r, s):
        return False
    if s.valid != NULL:
        s.valid[s.rows] = 0
        s.nulls += 1
    if s.layout == IN_WORDS:
        if s.width == 8:
            (<uint64_t*>s.data)[s.rows] = 0
        else:
            memset(s.data + s.rows * s.width, 0, s.width)
    elif s.layout == IN_BITS:
        s.data[s.rows] = 0
    elif s.layout == IN_STRUCT:
        for i in range(s.count):
            if not _null_row(r, &r.sinks[s.kids[i]]):
                return False
    else:
        s.offsets[s.rows + 1] = s.offsets[s.rows]
    s.rows += 1
    return True


cdef inline bint _copy_text(Run* r, Sink* s, const uint8_t* p, int64_t n, const uint8_t* limit) noexcept nogil:
    """Append n bytes as a row; `limit` is the end of what may be read."""
    if not _room(r, s):
        return False
    if s.text_room - s.used < n + SLACK and not _grow_text(r, s, n):
        return False
    if n <= 16 and limit - p >= 16:
        memcpy(s.data + s.used, p, 16)
    elif n <= SLACK and limit - p >= SLACK:
        memcpy(s.data + s.used, p, SLACK)
    else:
        memcpy(s.data + s.used, p, <size_t>n)
    s.used += n
    s.rows += 1
    s.offsets[s.rows] = <int32_t>s.used
    return True


cdef inline bint _number_text(Run* r, Sink* s, int64_t value) noexcept nogil:
    """Append a number as Java's String.valueOf writes it."""
    cdef uint8_t digits[24]
    cdef int i = 24
    cdef uint64_t v = <uint64_t>value if value >= 0 else 0 - <uint64_t>value
    while True:
        i -= 1
        digits[i] = <uint8_t>(48 + v % 10)
        v //= 10
        if v == 0:
            break
    if value < 0:
        i -= 1
        digits[i] = 45
    return _copy_text(r, s, &digits[i], 24 - i, &digits[i])


cdef inline bint _put_decimal(Sink* s, const uint8_t* p, int64_t n, const uint64_t* limit) noexcept nogil:
    """Write the next row from n bytes, highest first; False where the number is out of the limit."""
    cdef uint64_t words[4]
    cdef uint64_t size[4]
    cdef uint64_t sign, carry
    cdef int64_t i
    cdef int k, count = s.width // 8
    if n < 1:
        return False
    sign = 0 - <uint64_t>(p[0] >> 7)
    while n > s.width:         # longer than need be: the upper bytes must repeat the sign
        if p[0] != <uint8_t>sign or (p[1] ^ p[0]) & 0x80:
            return False
        p += 1
        n -= 1
    for k in range(4):
        words[k] = sign
    for i in range(n):
        k = <int>((n - 1 - i) >> 3)
        words[k] = words[k] << 8 | p[i]
    # A word that was not filled still has the sign above; shifted bits of it are the sign's, too.
    carry = sign & 1
    for k in range(4):
        size[k] = (words[k] ^ sign) + carry
        carry = carry and size[k] == 0
    k = 3
    while k > 0 and size[k] == limit[k]:
        k -= 1
    if size[k] >= limit[k]:
        return False
    for k in range(count):
        (<uint64_t*>(s.data + s.rows * s.width))[k] = words[k]
    return True


cdef inline bint _prepare(Sink* sinks, int32_t count, const uint8_t* flat, int64_t rows, int64_t text_room) noexcept nogil:
    """Empty buffers with room for so many rows where a record gives one; False without the memory."""
    cdef int32_t i
    cdef int64_t room
    cdef Sink* s
    cdef bint ok = True
    for i in range(count):
        s = &sinks[i]
        room = rows if flat[i] and rows > 0 else 1
        if s.layout == IN_WORDS and s.width > SLACK:
            room = min(room, text_room // s.width)
        ok = ok and _resize(s, room)
        if ok and s.layout == IN_TEXT:
            s.data = <uint8_t*>malloc(<size_t>text_room)
            s.text_room = text_room
            ok = s.data != NULL
    return ok


cdef inline bint _sound_texts(Sink* sinks, int32_t count) noexcept nogil:
    """Whether all texts are UTF-8: each by itself, unless all bytes of the column are ASCII."""
    cdef int32_t i
    cdef int64_t row
    cdef Sink* s
    for i in range(count):
        s = &sinks[i]
        if not s.utf8 or hudi_ascii(s.data, s.used):
            continue
        for row in range(s.rows):
            if not hudi_utf8(s.data + s.offsets[row], s.offsets[row + 1] - s.offsets[row]):
                return False
    return True


cdef inline void _pack(uint8_t* flags, int64_t n) noexcept nogil:
    """Turn n bytes of 0 or 1 into bits, in place; 8 bytes after them may be read."""
    cdef int64_t i
    for i in range((n + 7) // 8):
        flags[i] = <uint8_t>(
            ((hudi_load64(flags + 8 * i) & <uint64_t>0x0101010101010101) * <uint64_t>0x0102040810204080) >> 56
        )
    if n & 7:
        flags[n // 8] &= <uint8_t>((1 << (n & 7)) - 1)


cdef inline void _finish(Sink* sinks, int32_t count) noexcept nogil:
    """Bits for flags, and no more memory than is used."""
    cdef int32_t i
    cdef Sink* s
    cdef void* p
    for i in range(count):
        s = &sinks[i]
        if s.nulls == 0:
            free(s.valid)
            s.valid = NULL
        elif s.valid != NULL:
            _pack(s.valid, s.rows)
            p = realloc(s.valid, <size_t>(s.rows + 7) // 8)
            s.valid = <uint8_t*>p if p != NULL else s.valid
        if s.layout == IN_BITS:
            _pack(s.data, s.rows)
            s.used = (s.rows + 7) // 8
        elif s.layout == IN_WORDS:
            s.used = s.rows * s.width
        if s.data != NULL:
            p = realloc(s.data, <size_t>s.used + 1)
            s.data = <uint8_t*>p if p != NULL else s.data
        if s.offsets != NULL and s.rows < s.room:
            p = realloc(s.offsets, (<size_t>s.rows + 1) * 4)
            s.offsets = <int32_t*>p if p != NULL else s.offsets


cdef inline void* _array(int64_t count, size_t width) except NULL:
    cdef inline void* p = calloc(<size_t>max(count, 1), width)
    if p == NULL:
        raise MemoryError
    return p
