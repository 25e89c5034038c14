# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Log blocks found in bytes, without a look at their contents.

One row of 64-bit numbers per block (`hudi_format.log.block_index` names the columns).  Every number that comes from
the file is checked against what is left of it before it is used; nothing is allocated for a number in the file.
The time is linear in the bytes: a damaged stretch is searched once, and never parsed beyond its end.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

# Columns of a row.  Offsets are those of the file.
cdef enum:
    OFFSET, END, TYPE, VERSION, HEADER, HEADERS, CONTENT, LENGTH, FOOTER, FOOTERS, DAMAGE
    INSTANT, INSTANT_LENGTH, TARGET, TARGET_LENGTH, DECLARED
    COLUMNS

# Values of DAMAGE.  From BAD_MAGIC on the frame agrees with itself, so it is no write that was cut off.
cdef enum:
    SOUND
    TORN            # begins as a block does and runs past the end of the file
    DISAGREES       # begins as a block does; what it says of its own length disagrees with the bytes
    NO_MAGIC        # bytes where a block should begin
    STRAY           # a part of a magic, or fewer bytes than one has at the end of the file
    BAD_MAGIC       # a whole block but for its magic
    BAD_VERSION
    BAD_TYPE
    BAD_HEADER
    BAD_CONTENT     # a content length that does not fit the block
    BAD_FOOTER

# Answers of _parse beside a damage.
cdef enum:
    NEED_HEAD = -1  # the head that was given ends too early
    NEED_TAIL = -2

cdef enum:
    MAGIC_SIZE = 6
    FRAME = 14              # magic and size: what the size does not count
    LEAST_SIZE = 32         # version, type, empty header, content length, empty footer, reverse pointer
    LEAST_ENTRY = 8         # key and length of a header entry

cdef const uint8_t* MAGIC = b"#HUDI#"
cdef uint8_t[256] IN_MAGIC   # 1 for the bytes that a magic is made of

memset(IN_MAGIC, 0, 256)
IN_MAGIC[35] = IN_MAGIC[72] = IN_MAGIC[85] = IN_MAGIC[68] = IN_MAGIC[73] = 1


cdef inline int64_t _long(const uint8_t* p) noexcept nogil:
    cdef uint64_t v = (
        (<uint64_t>p[0] << 56) | (<uint64_t>p[1] << 48) | (<uint64_t>p[2] << 40) | (<uint64_t>p[3] << 32)
        | (<uint64_t>p[4] << 24) | (<uint64_t>p[5] << 16) | (<uint64_t>p[6] << 8) | <uint64_t>p[7]
    )
    return <int64_t>v


cdef inline int32_t _int(const uint8_t* p) noexcept nogil:
    return <int32_t>((<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | <uint32_t>p[3])


cdef inline bint _is_magic(const uint8_t* p) noexcept nogil:
    return memcmp(p, MAGIC, MAGIC_SIZE) == 0


cdef int64_t _find(const uint8_t* data, int64_t start, int64_t n) noexcept nogil:
    """Place of the first magic at or after `start`, `n` where there is none.

    One byte of every six is looked at: a magic covers exactly one of them.
    """
    cdef int64_t i = start + MAGIC_SIZE - 1
    cdef uint8_t c
    while i < n:
        c = data[i]
        if not IN_MAGIC[c]:
            i += MAGIC_SIZE
            continue
        if c == 35:  # '#', first or last of a magic
            if _is_magic(data + i - 5):
                return i - 5
            if i + 6 <= n and _is_magic(data + i):
                return i
        elif c == 72:
            if i + 5 <= n and _is_magic(data + i - 1):
                return i - 1
        elif c == 85:
            if i + 4 <= n and _is_magic(data + i - 2):
                return i - 2
        elif c == 68:
            if i + 3 <= n and _is_magic(data + i - 3):
                return i - 3
        elif i + 2 <= n and _is_magic(data + i - 4):
            return i - 4
        i += MAGIC_SIZE
    return n


cdef int64_t _map(
    const uint8_t* p, int64_t at, int64_t end, int64_t shift, int64_t* row, bint header
) noexcept nogil:
    """End of the header or footer map at `at`, -1 where it does not end by `end`; `shift`: file offset of p[0]."""
    cdef int64_t count, i
    cdef int32_t key, length
    if end - at < 4:
        return -1
    count = _int(p + at)
    if header:
        row[HEADER] = shift + at
        row[HEADERS] = count
    else:
        row[FOOTER] = shift + at
        row[FOOTERS] = count
    at += 4
    if count < 0:
        return -1
    for i in range(count):
        if end - at < LEAST_ENTRY:
            return -1
        key = _int(p + at)
        length = _int(p + at + 4)
        at += 8
        if length < 0 or length > end - at:
            return -1
        if header and key == 0:
            row[INSTANT] = shift + at
            row[INSTANT_LENGTH] = length
        elif header and key == 1:
            row[TARGET] = shift + at
            row[TARGET_LENGTH] = length
        at += length
    return at


cdef void _clear(int64_t* row, int64_t offset, int64_t end, int64_t damage) noexcept nogil:
    cdef int i
    for i in range(COLUMNS):
        row[i] = -1
    row[OFFSET] = offset
    row[END] = end
    row[TYPE] = 2  # corrupt, until it is known better
    row[DAMAGE] = damage


cdef int _parse(
    const uint8_t* head, int64_t head_size, const uint8_t* tail, int64_t tail_offset, int64_t tail_size,
    int64_t at, int64_t n, int64_t* row
) noexcept nogil:
    """Fill `row` for the block at file offset `at` of a file of `n` bytes; gives its damage or a NEED.

    `head` holds the bytes from `at` on, `tail` those from `tail_offset` on.  The magic is not looked at, the
    frame is: where size and reverse pointer disagree only OFFSET and DAMAGE mean anything.
    """
    cdef int64_t size, end, p, limit, length, footer
    cdef int64_t left = n - at
    cdef int32_t kind
    _clear(row, at, n, TORN)
    if left < FRAME:
        return TORN
    if head_size < FRAME:
        return NEED_HEAD
    size = _long(head + MAGIC_SIZE)
    row[DECLARED] = size
    if size < LEAST_SIZE:
        row[DAMAGE] = DISAGREES
        return DISAGREES
    if size > left - FRAME:
        return TORN
    end = at + FRAME + size
    if tail_offset > end - 8 or tail_offset + tail_size < end:
        return NEED_TAIL
    if _long(tail + (end - 8 - tail_offset)) != size + MAGIC_SIZE:
        row[DAMAGE] = DISAGREES
        return DISAGREES
    row[END] = end
    limit = size + FRAME if head_size > size + FRAME else head_size  # of the head that is this block's
    if limit < FRAME + 12:
        return NEED_HEAD
    row[VERSION] = _int(head + 14)
    kind = _int(head + 18)
    if row[VERSION] != 1:
        row[DAMAGE] = BAD_VERSION
        return BAD_VERSION
    if kind < 0 or kind == 2 or kind > 6:
        row[DAMAGE] = BAD_TYPE
        row[DECLARED] = kind
        return BAD_TYPE
    # The header must leave room for content length, footer count and reverse pointer.
    p = _map(head, 22, limit if limit < size + FRAME else limit - 20, at, row, True)
    if p < 0 or p + 8 > limit:
        if limit < size + FRAME:
            return NEED_HEAD
        row[DAMAGE] = BAD_HEADER
        return BAD_HEADER
    length = _long(head + p)
    row[CONTENT] = at + p + 8
    if length < 0 or length > size + FRAME - 12 - p - 8:
        row[DAMAGE] = BAD_CONTENT
        return BAD_CONTENT
    row[LENGTH] = length
    footer = row[CONTENT] + length
    if footer < tail_offset:
        return NEED_TAIL
    p = _map(tail, footer - tail_offset, end - 8 - tail_offset, tail_offset, row, False)
    if p != end - 8 - tail_offset:
        row[DAMAGE] = BAD_FOOTER
        return BAD_FOOTER
    row[TYPE] = kind
    row[DAMAGE] = SOUND
    return SOUND


cdef int64_t _one(const uint8_t* data, int64_t at, int64_t n, int64_t* row) noexcept nogil:
    """Fill `row` for what lies at `at` of a whole file; gives where it ends."""
    cdef int damage
    cdef int64_t left = n - at, stop
    if left < MAGIC_SIZE:
        _clear(row, at, n, STRAY)
        return n
    damage = _parse(data + at, left, data, 0, n, at, n, row)
    if not _is_magic(data + at):
        if damage == SOUND:
            row[DAMAGE] = BAD_MAGIC
            row[TYPE] = 2
            return row[END]
        stop = _find(data, at + 1, n)
        # The first bytes of a magic are what a write leaves that was cut off there, before another's append.
        left = stop - at
        _clear(row, at, stop, STRAY if left < MAGIC_SIZE and memcmp(data + at, MAGIC, left) == 0 else NO_MAGIC)
        return stop
    if damage == TORN or damage == DISAGREES:
        stop = _find(data, at + MAGIC_SIZE - 1, n)  # "#HUDI" of one write, "#HUDI#" of the next
        row[END] = stop
        # What can still be read of its header, within the stretch that is lost.
        if stop - at >= FRAME + 8:
            row[VERSION] = _int(data + at + 14)
            _map(data + at, 22, stop - at, at, row, True)
    return row[END]


def scan(const uint8_t[::1] data not None, int64_t start, int64_t[:, ::1] out not None):
    cdef int64_t n = data.shape[0], rows = out.shape[0], at = start, row = 0
    if out.shape[1] != COLUMNS:
        raise ValueError(f"a row has {COLUMNS} columns")
    if start < 0:
        raise ValueError("the start is before the data")
    if at >= n or rows == 0:
        return 0, at
    with nogil:
        while at < n and row < rows:
            at = _one(&data[0], at, n, &out[row, 0])
            row += 1
    return row, at


def find_magic(const uint8_t[::1] data not None, int64_t start):
    cdef int64_t n = data.shape[0], at = n
    if start < 0:
        raise ValueError("the start is before the data")
    if start < n:
        with nogil:
            at = _find(&data[0], start, n)
    return at


def parse(
    const uint8_t[::1] head not None, const uint8_t[::1] tail not None, int64_t tail_offset,
    int64_t at, int64_t size, int64_t[::1] row not None
):
    cdef int answer
    if row.shape[0] != COLUMNS:
        raise ValueError(f"a row has {COLUMNS} columns")
    if at < 0 or tail_offset < 0 or head.shape[0] == 0 or tail.shape[0] == 0:
        raise ValueError("no bytes to parse")
    if at + head.shape[0] > size or tail_offset + tail.shape[0] > size:
        raise ValueError("more bytes than the file has")
    with nogil:
        answer = _parse(
            &head[0], head.shape[0], &tail[0], tail_offset, tail.shape[0], at, size, &row[0]
        )
    return answer


def records(const uint8_t[::1] content not None, int64_t start, int64_t[::1] offsets not None):
    cdef int64_t n = content.shape[0], at = start, i, rows = offsets.shape[0], bad = -1
    cdef int32_t length
    if start < 0 or start > n:
        raise ValueError("the start is not in the content")
    with nogil:
        for i in range(rows):
            if n - at < 4:
                bad = i
                break
            length = _int(&content[0] + at)
            if length < 0 or length > n - at - 4:
                bad = i
                break
            offsets[i] = at + 4
            at += 4 + <int64_t>length
    return bad, at


def join(const uint8_t[::1] data not None, const int64_t[::1] offsets not None, uint8_t[::1] out not None):
    cdef int64_t n = data.shape[0], rows = offsets.shape[0] - 1, room = out.shape[0], i, length, at = 0
    cdef bint sound = rows >= 0
    with nogil:
        for i in range(rows):
            length = offsets[i + 1] - offsets[i]
            if offsets[i] < 0 or length < 0 or length > 0x7FFFFFFF or offsets[i + 1] > n or length + 4 > room - at:
                sound = False
                break
            out[at] = <uint8_t>(length >> 24)
            out[at + 1] = <uint8_t>(length >> 16)
            out[at + 2] = <uint8_t>(length >> 8)
            out[at + 3] = <uint8_t>length
            if length > 0:
                memcpy(&out[at + 4], &data[offsets[i]], <size_t>length)
            at += 4 + length
    if not sound:
        raise ValueError("records that are not within the data, or more than the room for them")
    return at
