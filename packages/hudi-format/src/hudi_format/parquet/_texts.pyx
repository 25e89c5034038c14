# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Texts of data pages in encoding PLAIN, as the buffers of an Arrow array, without the GIL.

Each text lies behind its length, so that one pass over a page moves the texts together and notes where each ends.  All
lengths are checked against what is left of the page and of the room, before anything is read or written.

Source: Parquet format, "Plain" and "Run Length Encoding / Bit-Packing Hybrid".
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    STEP = 32  # bytes moved at once: most keys are no longer, and a copy of a fixed length is no call


cdef bint _all_present(const uint8_t* data, int64_t size, int64_t values) noexcept nogil:
    cdef int64_t at = 0, left, count, n
    cdef uint64_t head
    cdef int shift
    while values > 0:
        head = 0
        shift = 0
        while True:
            if at >= size or shift > 35:
                return False
            head |= <uint64_t>(data[at] & 0x7F) << shift
            at += 1
            if data[at - 1] < 0x80:
                break
            shift += 7
        count = <int64_t>(head >> 1)
        if not head & 1:  # a level, and how often it comes
            if at >= size or data[at] != 1 or count == 0:
                return False
            at += 1
            values -= count
            continue
        if count > size - at:  # of eight levels each
            return False
        left = values
        for n in range(count):
            if left <= 0:
                break
            if left >= 8:
                if data[at + n] != 0xFF:
                    return False
            elif data[at + n] & ((1 << left) - 1) != (1 << left) - 1:
                return False
            left -= 8
        if count == 0:
            return False
        at += count
        values -= 8 * count
    return True


def all_present(const uint8_t[::1] levels not None, int64_t values):
    cdef int64_t size = levels.shape[0]
    cdef bint found
    if values <= 0:
        return values == 0
    if not size:
        return False
    with nogil:
        found = _all_present(&levels[0], size, values)
    return found


cdef int64_t _plain(
    const uint8_t* page, int64_t size, int64_t values, int32_t* ends, uint8_t* out, int64_t at, int64_t room,
) noexcept nogil:
    cdef int64_t i, place = 0, length
    cdef const uint8_t* p
    for i in range(values):
        if size - place < 4:
            return -1
        p = page + place
        length = <int64_t>(p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24)
        place += 4
        p += 4
        if length > size - place or length > room - at:
            return -1
        if length <= STEP and size - place >= STEP and room - at >= STEP:
            memcpy(out + at, p, STEP)
        elif length:
            memcpy(out + at, p, <size_t>length)
        place += length
        at += length
        ends[i] = <int32_t>at
    return at if place == size else -1


def plain_texts(
    const uint8_t[::1] page not None, int32_t[::1] offsets not None, uint8_t[::1] data not None, int64_t first,
    int64_t values,
):
    cdef int64_t size = page.shape[0], room = data.shape[0], at
    if first < 0 or values < 0 or values > offsets.shape[0] - 1 - first or room > 0x7FFFFFFF:
        raise ValueError("more texts than there is room for")
    if not values:
        return -1 if size else offsets[first]
    if not 0 <= offsets[first] <= room:
        raise ValueError("an offset outside of the room")
    if not size:
        return -1
    cdef uint8_t nothing = 0
    cdef uint8_t* out = &data[0] if room else &nothing
    with nogil:
        at = _plain(&page[0], size, values, &offsets[first + 1], out, offsets[first], room)
    return at
