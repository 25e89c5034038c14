# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""The files that the JSON of a commit names, without objects for the rest of it.

A plan reads the files of all active instants and wants four of some twenty fields of each write statistic.  This checks
the whole text as JSON, remembers where the wanted values are, and makes text of those alone.  Whatever is not as
writers of Apache Hudi write it (escapes in wanted texts, fields given twice, numbers that are no plain integers) is
left to a full parser: the answer is None then, and never a guess.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp

cdef enum:
    MAX_DEPTH = 64
    OK = 0
    UNUSUAL = -1
    NO_MEMORY = -2

# What a span stands for.
cdef enum:
    PARTITION = 0       # of statistics; text
    STAT = 1            # file id, path, size, offset
    REPLACED_IN = 2     # a partition's path; text
    REPLACED_ID = 3     # text


cdef struct Span:
    int kind
    int64_t start
    int64_t size
    int64_t path_start
    int64_t path_size
    int64_t bytes
    int64_t offset


cdef struct Walk:
    const uint8_t* data     # borrowed
    int64_t size
    int64_t at              # 0 <= at <= size, always
    Span* spans             # owned
    int64_t count
    int64_t room


cdef inline void _blank(Walk* w) noexcept nogil:
    cdef uint8_t c
    while w.at < w.size:
        c = w.data[w.at]
        if c != 32 and c != 10 and c != 13 and c != 9:
            return
        w.at += 1


cdef inline bint _is(Walk* w, uint8_t c) noexcept nogil:
    """Takes the byte `c` after blanks, if it is the next."""
    _blank(w)
    if w.at < w.size and w.data[w.at] == c:
        w.at += 1
        return True
    return False


cdef inline bint _is_hex(uint8_t c) noexcept nogil:
    return (48 <= c <= 57) or (65 <= c <= 70) or (97 <= c <= 102)


cdef int _string(Walk* w, int64_t* start, int64_t* size, bint* escaped) noexcept nogil:
    """A text, whose bytes between the quotes are given; UTF-8 was checked before."""
    cdef uint8_t c
    cdef int n
    if not _is(w, 34):
        return UNUSUAL
    start[0] = w.at
    escaped[0] = False
    while w.at < w.size:
        c = w.data[w.at]
        w.at += 1
        if c == 34:
            size[0] = w.at - 1 - start[0]
            return OK
        if c < 32:
            return UNUSUAL
        if c == 92:
            escaped[0] = True
            if w.at >= w.size:
                return UNUSUAL
            c = w.data[w.at]
            w.at += 1
            if c == 117:  # u
                for n in range(4):
                    if w.at >= w.size or not _is_hex(w.data[w.at]):
                        return UNUSUAL
                    w.at += 1
            elif not (c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116):
                return UNUSUAL
    return UNUSUAL


cdef int _plain(Walk* w, int64_t* start, int64_t* size) noexcept nogil:
    """A text without escapes."""
    cdef bint escaped = False
    if _string(w, start, size, &escaped) != OK or escaped:
        return UNUSUAL
    return OK


cdef inline bint _word(Walk* w, const char* word, int64_t size) noexcept nogil:
    if w.size - w.at >= size and memcmp(w.data + w.at, word, size) == 0:
        w.at += size
        return True
    return False


cdef inline bint _null(Walk* w) noexcept nogil:
    _blank(w)
    return _word(w, b"null", 4)


cdef inline int64_t _digits(Walk* w) noexcept nogil:
    cdef int64_t begun = w.at
    while w.at < w.size and 48 <= w.data[w.at] <= 57:
        w.at += 1
    return w.at - begun


cdef int _number(Walk* w) noexcept nogil:
    """Any number of JSON."""
    cdef bint zero
    if w.at < w.size and w.data[w.at] == 45:
        w.at += 1
    zero = w.at < w.size and w.data[w.at] == 48
    cdef int64_t count = _digits(w)
    if count == 0 or (zero and count > 1):
        return UNUSUAL
    if w.at < w.size and w.data[w.at] == 46:
        w.at += 1
        if _digits(w) == 0:
            return UNUSUAL
    if w.at < w.size and (w.data[w.at] == 101 or w.data[w.at] == 69):
        w.at += 1
        if w.at < w.size and (w.data[w.at] == 43 or w.data[w.at] == 45):
            w.at += 1
        if _digits(w) == 0:
            return UNUSUAL
    return OK


cdef int _integer(Walk* w, int64_t* out) noexcept nogil:
    """An integer of at most 18 digits."""
    cdef bint negative = False
    cdef int64_t begun, i, value = 0
    _blank(w)
    begun = w.at
    if _number(w) != OK:
        return UNUSUAL
    if w.data[begun] == 45:
        negative = True
        begun += 1
    if w.at - begun > 18:
        return UNUSUAL
    for i in range(begun, w.at):
        if not 48 <= w.data[i] <= 57:  # a fraction, or an exponent
            return UNUSUAL
        value = value * 10 + (w.data[i] - 48)
    out[0] = -value if negative else value
    return OK


cdef int _skip(Walk* w, int depth) noexcept nogil:
    """Any value."""
    cdef int64_t start, size
    cdef bint escaped
    cdef uint8_t c
    if depth > MAX_DEPTH:
        return UNUSUAL
    _blank(w)
    if w.at >= w.size:
        return UNUSUAL
    c = w.data[w.at]
    if c == 34:
        return _string(w, &start, &size, &escaped)
    if c == 123:
        w.at += 1
        if _is(w, 125):
            return OK
        while True:
            if _string(w, &start, &size, &escaped) != OK or not _is(w, 58) or _skip(w, depth + 1) != OK:
                return UNUSUAL
            if _is(w, 125):
                return OK
            if not _is(w, 44):
                return UNUSUAL
    if c == 91:
        w.at += 1
        if _is(w, 93):
            return OK
        while True:
            if _skip(w, depth + 1) != OK:
                return UNUSUAL
            if _is(w, 93):
                return OK
            if not _is(w, 44):
                return UNUSUAL
    if _word(w, b"null", 4) or _word(w, b"true", 4) or _word(w, b"false", 5):
        return OK
    return _number(w)


cdef Span* _new(Walk* w, int kind) noexcept nogil:
    """Room for one more span, all zero; NULL where there is no memory."""
    cdef int64_t room
    cdef Span* grown
    cdef Span* out
    if w.count == w.room:
        room = 2 * w.room if w.room else 64
        grown = <Span*>realloc(w.spans, room * sizeof(Span))
        if grown == NULL:
            return NULL
        w.spans = grown
        w.room = room
    out = w.spans + w.count
    w.count += 1
    out.kind = kind
    out.start = out.size = out.path_start = out.path_size = out.bytes = out.offset = 0
    return out


cdef inline bint _named(Walk* w, int64_t start, int64_t size, const char* name, int64_t length) noexcept nogil:
    return size == length and memcmp(w.data + start, name, length) == 0


cdef int _stat(Walk* w) noexcept nogil:
    """One write statistic; one without a path is left out."""
    cdef int64_t start, size
    cdef bint has_id = False, has_path = False, has_bytes = False, has_offset = False
    cdef bint id_null = False
    cdef Span* span = _new(w, STAT)
    if span == NULL:
        return NO_MEMORY
    if not _is(w, 123) or _is(w, 125):
        return UNUSUAL
    while True:
        if _plain(w, &start, &size) != OK or not _is(w, 58):
            return UNUSUAL
        if _named(w, start, size, b"fileId", 6):
            if has_id:
                return UNUSUAL
            has_id = True
            if _null(w):
                id_null = True
            elif _plain(w, &span.start, &span.size) != OK:
                return UNUSUAL
        elif _named(w, start, size, b"path", 4):
            if has_path:
                return UNUSUAL
            has_path = True
            if not _null(w) and _plain(w, &span.path_start, &span.path_size) != OK:
                return UNUSUAL
        elif _named(w, start, size, b"fileSizeInBytes", 15):
            if has_bytes or _integer(w, &span.bytes) != OK:
                return UNUSUAL
            has_bytes = True
        elif _named(w, start, size, b"logOffset", 9):
            if has_offset:
                return UNUSUAL
            has_offset = True
            if not _null(w) and _integer(w, &span.offset) != OK:
                return UNUSUAL
        elif _skip(w, 4) != OK:
            return UNUSUAL
        if _is(w, 125):
            break
        if not _is(w, 44):
            return UNUSUAL
    if not has_path:
        return UNUSUAL
    if span.path_size == 0:
        w.count -= 1
        return OK
    if not has_id or id_null or not has_bytes:
        return UNUSUAL
    while span.path_size and w.data[span.path_start] == 47:
        span.path_start += 1
        span.path_size -= 1
    return OK


cdef int _listed(Walk* w, bint stats) noexcept nogil:
    """An object of lists by partition: of statistics, or of file ids."""
    cdef Span* span
    cdef int status
    if not _is(w, 123):
        return UNUSUAL
    if _is(w, 125):
        return OK
    while True:
        span = _new(w, PARTITION if stats else REPLACED_IN)
        if span == NULL:
            return NO_MEMORY
        if _plain(w, &span.start, &span.size) != OK or not _is(w, 58) or not _is(w, 91):
            return UNUSUAL
        if not _is(w, 93):
            while True:
                if stats:
                    status = _stat(w)
                    if status != OK:
                        return status
                else:
                    span = _new(w, REPLACED_ID)
                    if span == NULL:
                        return NO_MEMORY
                    if _plain(w, &span.start, &span.size) != OK:
                        return UNUSUAL
                if _is(w, 93):
                    break
                if not _is(w, 44):
                    return UNUSUAL
        if _is(w, 125):
            return OK
        if not _is(w, 44):
            return UNUSUAL


cdef int _commit(Walk* w) noexcept nogil:
    cdef int64_t start, size
    cdef bint has_stats = False, has_replaced = False
    cdef int status
    if not _is(w, 123) or _is(w, 125):
        return UNUSUAL
    while True:
        if _plain(w, &start, &size) != OK or not _is(w, 58):
            return UNUSUAL
        if _named(w, start, size, b"partitionToWriteStats", 21):
            if has_stats:
                return UNUSUAL
            has_stats = True
            status = _listed(w, True)
            if status != OK:
                return status
        elif _named(w, start, size, b"partitionToReplaceFileIds", 25):
            if has_replaced:
                return UNUSUAL
            has_replaced = True
            if not _null(w):
                status = _listed(w, False)
                if status != OK:
                    return status
        elif _skip(w, 1) != OK:
            return UNUSUAL
        if _is(w, 125):
            break
        if not _is(w, 44):
            return UNUSUAL
    _blank(w)
    return OK if has_stats and w.at == w.size else UNUSUAL


def files_of_json(bytes data not None):
    """See the stub."""
    cdef Walk w
    cdef const uint8_t[::1] view
    cdef int status
    cdef int64_t i
    cdef Span* s
    if len(data) == 0:
        return None
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return None
    view = data
    w.data = &view[0]
    w.size = len(data)
    w.at = 0
    w.spans = NULL
    w.count = w.room = 0
    try:
        with nogil:
            status = _commit(&w)
        if status == NO_MEMORY:
            raise MemoryError
        if status != OK:
            return None
        files = []
        replaced = {}
        seen = set()
        partition = ""
        ids = []
        for i in range(w.count):
            s = w.spans + i
            text = data[s.start : s.start + s.size].decode()
            if s.kind == STAT:
                path = data[s.path_start : s.path_start + s.path_size].decode()
                files.append((partition, text, path, s.bytes, s.offset))
            elif s.kind == PARTITION:
                if text in seen:
                    return None
                seen.add(text)
                partition = text
            elif s.kind == REPLACED_IN:
                if text in replaced:
                    return None
                ids = replaced[text] = []
            else:
                ids.append(text)
        return files, {p: tuple(found) for p, found in replaced.items()}
    finally:
        free(w.spans)
