# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Values put into a column at some of its rows: everything between two such rows is copied at once, or comes from a
dictionary.

`rows` ascend; `source` says which value goes there.  Both are checked against the columns before they are used,
and so are the offsets of texts.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy

cdef enum:
    COPIED = 8192       # bytes of repeated text copied at once: few calls, and still in the cache


cdef bint _places(
    const int64_t* rows, const int64_t* source, int64_t n, int64_t old, int64_t new
) noexcept nogil:
    """Whether rows ascend within `old` and sources lie within `new`."""
    cdef int64_t i, before = -1
    for i in range(n):
        if rows[i] <= before or source[i] < 0 or source[i] >= new:
            return False
        before = rows[i]
    return before < old


cdef bint _sound(const int32_t* offsets, int64_t rows, int64_t size) noexcept nogil:
    cdef int64_t i
    cdef bint ok = offsets[0] >= 0 and offsets[rows] <= size
    for i in range(rows):
        ok &= offsets[i] <= offsets[i + 1]
    return ok


def text_size(
    const uint8_t[::1] old not None, const int32_t[::1] old_offsets not None,
    const uint8_t[::1] new not None, const int32_t[::1] new_offsets not None,
    const int64_t[::1] rows not None, const int64_t[::1] source not None,
):
    cdef int64_t n = old_offsets.shape[0] - 1, m = new_offsets.shape[0] - 1, hits = rows.shape[0], i, length, s
    cdef int64_t total = 0
    cdef bint ok, same = True
    if n < 0 or m < 0 or source.shape[0] != hits:
        raise ValueError("columns have one offset more than rows, and each row a source")
    if n == 0 or m == 0 or hits == 0:
        if hits:
            raise ValueError("rows that are not there")
        return 0, True
    with nogil:
        ok = (
            _places(&rows[0], &source[0], hits, n, m)
            and _sound(&old_offsets[0], n, old.shape[0])
            and _sound(&new_offsets[0], m, new.shape[0])
        )
        if ok:
            total = old_offsets[n] - old_offsets[0]
            for i in range(hits):
                s = source[i]
                length = new_offsets[s + 1] - new_offsets[s]
                total += length - (old_offsets[rows[i] + 1] - old_offsets[rows[i]])
                if same:
                    same = length == old_offsets[rows[i] + 1] - old_offsets[rows[i]] and (
                        length == 0
                        or memcmp(&old[old_offsets[rows[i]]], &new[new_offsets[s]], <size_t>length) == 0
                    )
    if not ok:
        raise ValueError("rows or offsets that leave their column")
    return total, same


def put_text(
    const uint8_t[::1] old not None, const int32_t[::1] old_offsets not None,
    const uint8_t[::1] new not None, const int32_t[::1] new_offsets not None,
    const int64_t[::1] rows not None, const int64_t[::1] source not None,
    uint8_t[::1] out not None, int32_t[::1] out_offsets not None,
):
    cdef int64_t n = old_offsets.shape[0] - 1, hits = rows.shape[0], i, j, row, start = 0, begin, length, at = 0, s
    cdef int32_t shift
    # The size follows from the same checks that the copying needs.
    total, _ = text_size(old, old_offsets, new, new_offsets, rows, source)
    if out.shape[0] != total or out_offsets.shape[0] != n + 1 or total > 0x7FFFFFFF or n == 0 or hits == 0:
        raise ValueError("the result has another size")
    with nogil:
        for i in range(hits + 1):
            row = rows[i] if i < hits else n
            begin = old_offsets[start]
            length = old_offsets[row] - begin
            shift = <int32_t>(at - begin)
            for j in range(start, row):
                out_offsets[j] = old_offsets[j] + shift
            if length > 0:
                memcpy(&out[at], &old[begin], <size_t>length)
            at += length
            if i == hits:
                break
            out_offsets[row] = <int32_t>at
            s = source[i]
            length = new_offsets[s + 1] - new_offsets[s]
            if length > 0:
                memcpy(&out[at], &new[new_offsets[s]], <size_t>length)
            at += length
            start = row + 1
        out_offsets[n] = <int32_t>at


def same_words(
    const uint8_t[::1] old not None, const uint8_t[::1] new not None, int64_t width,
    const int64_t[::1] rows not None, const int64_t[::1] source not None,
):
    cdef int64_t hits = rows.shape[0], i
    cdef bint ok, same = True
    if width < 1 or source.shape[0] != hits:
        raise ValueError("each row has a source, and values have bytes")
    if hits == 0:
        return True
    with nogil:
        ok = _places(&rows[0], &source[0], hits, old.shape[0] // width, new.shape[0] // width)
        if ok:
            for i in range(hits):
                if memcmp(&old[rows[i] * width], &new[source[i] * width], <size_t>width) != 0:
                    same = False
                    break
    if not ok:
        raise ValueError("rows that leave their column")
    return same


def put_words(
    uint8_t[::1] out not None, const uint8_t[::1] new not None, int64_t width,
    const int64_t[::1] rows not None, const int64_t[::1] source not None,
):
    cdef int64_t hits = rows.shape[0], i
    cdef bint ok
    if width < 1 or source.shape[0] != hits:
        raise ValueError("each row has a source, and values have bytes")
    if hits == 0:
        return
    with nogil:
        ok = _places(&rows[0], &source[0], hits, out.shape[0] // width, new.shape[0] // width)
        if ok and width == 8:
            for i in range(hits):
                memcpy(&out[rows[i] * 8], &new[source[i] * 8], 8)
        elif ok and width == 4:
            for i in range(hits):
                memcpy(&out[rows[i] * 4], &new[source[i] * 4], 4)
        elif ok:
            for i in range(hits):
                memcpy(&out[rows[i] * width], &new[source[i] * width], <size_t>width)
    if not ok:
        raise ValueError("rows that leave their column")


cdef bint _codes_within(const int32_t* codes, const uint8_t* valid, int64_t n, uint32_t words) noexcept nogil:
    """Whether each code is one of the dictionary's; those of nulls may be anything."""
    cdef int64_t i
    cdef bint ok = True
    if valid == NULL:
        for i in range(n):
            ok &= <uint32_t>codes[i] < words
    else:
        for i in range(n):
            ok &= (valid[i] == 0) | (<uint32_t>codes[i] < words)
    return ok


cdef int64_t _spread(
    const int32_t* codes, const uint8_t* valid, int64_t n, bint alike,
    const uint8_t* words, const int32_t* word_offsets, uint8_t* out, int32_t* out_offsets, int64_t at,
) noexcept nogil:
    """The texts of `n` codes, put at `at` of `out`, and where each begins; returns where they end.

    Without `out`, only that.  `alike`: all codes are the same one, and none is null.
    """
    cdef int64_t i = 0, j, end, length, size, done, part
    cdef int32_t code
    while i < n:
        if valid != NULL and valid[i] == 0:
            if out != NULL:
                out_offsets[i] = <int32_t>at
            i += 1
            continue
        code = codes[i]
        end = n if alike else i + 1
        while end < n and codes[end] == code and (valid == NULL or valid[end] != 0):
            end += 1
        length = word_offsets[code + 1] - word_offsets[code]
        size = length * (end - i)
        if out != NULL:
            for j in range(i, end):
                out_offsets[j] = <int32_t>(at + length * (j - i))
            if length > 0:
                # What is there already is copied behind itself: twice as much each time, while it is in the cache.
                memcpy(out + at, words + word_offsets[code], <size_t>length)
                done = length
                while done < size:
                    part = min(done, size - done, max(length, COPIED // length * length))
                    memcpy(out + at + done, out + at, <size_t>part)
                    done += part
        at += size
        i = end
    return at


def repeated_size(
    const int32_t[::1] codes not None, const uint8_t[::1] valid,
    const uint8_t[::1] words not None, const int32_t[::1] word_offsets not None,
    const uint8_t[::1] new not None, const int32_t[::1] new_offsets not None,
    const int64_t[::1] rows not None, const int64_t[::1] source not None,
):
    cdef int64_t n = codes.shape[0], d = word_offsets.shape[0] - 1, m = new_offsets.shape[0] - 1
    cdef int64_t hits = rows.shape[0], i, row, start = 0, total = 0
    cdef const uint8_t* there = NULL
    cdef bint ok = True
    if d < 0 or d > 0x7FFFFFFF or m < 0 or source.shape[0] != hits or (valid is not None and valid.shape[0] != n):
        raise ValueError("columns have one offset more than rows, and each row a source")
    if n == 0:
        if hits:
            raise ValueError("rows that are not there")
        return 0
    if valid is not None:
        there = &valid[0]
    with nogil:
        ok = _sound(&word_offsets[0], d, words.shape[0]) and _codes_within(&codes[0], there, n, <uint32_t>d)
        if ok and hits:
            ok = _places(&rows[0], &source[0], hits, n, m) and _sound(&new_offsets[0], m, new.shape[0])
        if ok:
            for i in range(hits + 1):
                row = rows[i] if i < hits else n
                total = _spread(
                    &codes[0] + start, NULL if there == NULL else there + start, row - start,
                    d == 1 and there == NULL, NULL, &word_offsets[0], NULL, NULL, total,
                )
                if i < hits:
                    total += new_offsets[source[i] + 1] - new_offsets[source[i]]
                start = row + 1
    if not ok:
        raise ValueError("rows, codes or offsets that leave their column")
    return total


def put_repeated(
    const int32_t[::1] codes not None, const uint8_t[::1] valid,
    const uint8_t[::1] words not None, const int32_t[::1] word_offsets not None,
    const uint8_t[::1] new not None, const int32_t[::1] new_offsets not None,
    const int64_t[::1] rows not None, const int64_t[::1] source not None,
    uint8_t[::1] out not None, int32_t[::1] out_offsets not None,
):
    cdef int64_t n = codes.shape[0], hits = rows.shape[0], i, row, start = 0, at = 0, length, s
    cdef const uint8_t* there = NULL
    cdef const uint8_t* bytes_of_words = NULL
    cdef uint8_t empty = 0
    cdef uint8_t* target = &empty
    # The size follows from the same checks that the copying needs.
    total = repeated_size(codes, valid, words, word_offsets, new, new_offsets, rows, source)
    if out.shape[0] != total or out_offsets.shape[0] != n + 1 or total > 0x7FFFFFFF or n == 0:
        raise ValueError("the result has another size")
    if valid is not None:
        there = &valid[0]
    if words.shape[0]:
        bytes_of_words = &words[0]
    if out.shape[0]:
        target = &out[0]
    with nogil:
        for i in range(hits + 1):
            row = rows[i] if i < hits else n
            at = _spread(
                &codes[0] + start, NULL if there == NULL else there + start, row - start,
                word_offsets.shape[0] == 2 and there == NULL, bytes_of_words, &word_offsets[0], target, &out_offsets[0] + start, at,
            )
            if i == hits:
                break
            out_offsets[row] = <int32_t>at
            s = source[i]
            length = new_offsets[s + 1] - new_offsets[s]
            if length > 0:
                memcpy(target + at, &new[new_offsets[s]], <size_t>length)
            at += length
            start = row + 1
        out_offsets[n] = <int32_t>at
