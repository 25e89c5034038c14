# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Values put into a column at some of its rows: everything between two such rows is copied at once.

`rows` ascend; `source` says which value goes there.  Both are checked against the columns before they are used,
and so are the offsets of texts.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp, memcpy


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
