# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Java's view of text, over UTF-8: String.hashCode, bucket ids, least and greatest. Without the GIL.

Java's strings are UTF-16 units: a character beyond U+FFFF counts as two.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

from hudi_index.hashing._texts cimport Texts, is_one_of, texts

# Powers of 31 modulo 2^32.
cdef enum:
    _P1 = 31, _P2 = 961, _P3 = 29791, _P4 = 923521, _P5 = 28629151, _P6 = 887503681

cdef uint32_t _P7 = 1742810335u
cdef uint32_t _P8 = 2487512833u


cdef bint _hash(const uint8_t* p, int64_t n, uint32_t* out) noexcept nogil:
    """String.hashCode of UTF-8; False for bytes that are cut off or no UTF-8 lead."""
    cdef uint32_t h = 0, c
    cdef int64_t i = 0
    cdef uint64_t eight
    while i < n:
        # Eight ASCII bytes in one step: 31^8 h + 31^7 c0 + ... + c7.
        if n - i >= 8:
            memcpy(&eight, p + i, 8)
            if not eight & <uint64_t>0x8080808080808080:
                # Without a sign, or a product of bytes above 0x46 would overflow.
                h = (
                    h * _P8 + p[i] * _P7 + p[i + 1] * <uint32_t>_P6 + p[i + 2] * <uint32_t>_P5
                    + p[i + 3] * <uint32_t>_P4 + p[i + 4] * <uint32_t>_P3 + p[i + 5] * <uint32_t>_P2
                    + p[i + 6] * <uint32_t>_P1 + p[i + 7]
                )
                i += 8
                continue
        c = p[i]
        if c < 0x80:
            i += 1
        elif c < 0xC0:
            return False
        elif c < 0xE0:
            if n - i < 2:
                return False
            c = (c & 0x1F) << 6 | (p[i + 1] & 0x3F)
            i += 2
        elif c < 0xF0:
            if n - i < 3:
                return False
            c = (c & 0x0F) << 12 | <uint32_t>(p[i + 1] & 0x3F) << 6 | (p[i + 2] & 0x3F)
            i += 3
        else:
            if n - i < 4:
                return False
            c = (
                (c & 0x07) << 18 | <uint32_t>(p[i + 1] & 0x3F) << 12
                | <uint32_t>(p[i + 2] & 0x3F) << 6 | (p[i + 3] & 0x3F)
            ) - 0x10000
            h = 31 * h + (0xD800 | (c >> 10 & 0x3FF))
            c = 0xDC00 | (c & 0x3FF)
            i += 4
        h = 31 * h + c
    out[0] = h
    return True


cdef bint _is(const uint8_t* p, int64_t n, const char* text, int64_t length) noexcept nogil:
    return n == length and memcmp(p, text, <size_t>length) == 0


cdef bint _add_part(const uint8_t* p, int64_t n, const Texts* names, uint32_t* h) noexcept nogil:
    """Take one `name:value` of a record key into the list's hash, if the name counts."""
    cdef const uint8_t* colon = <const uint8_t*>memchr(p, b":", <size_t>n) if n else NULL
    cdef uint32_t part = 0
    if colon != NULL:
        if not is_one_of(names, p, colon - p):
            return True
        n -= colon - p + 1
        p = colon + 1
        # A null element and the empty text both hash to 0.
        if _is(p, n, "__null__", 8) or _is(p, n, "__empty__", 9):
            n = 0
    if not _hash(p, n, &part):
        return False
    h[0] = 31 * h[0] + part
    return True


cdef bint _list_hash(const uint8_t* p, int64_t n, const Texts* names, uint32_t* out) noexcept nogil:
    """List.hashCode of a record key's hash keys (BucketIdentifier.getHashKeys of 0.15)."""
    cdef uint32_t h = 1, part = 0
    cdef int64_t start = 0, end
    cdef const uint8_t* comma
    if n == 0 or memchr(p, b":", <size_t>n) == NULL:
        if not _hash(p, n, &part):
            return False
        out[0] = 31 + part
        return True
    # String.split drops empty parts at the end.
    while n > 0 and p[n - 1] == b",":
        n -= 1
    while start <= n:
        comma = <const uint8_t*>memchr(p + start, b",", <size_t>(n - start)) if start < n else NULL
        end = comma - p if comma != NULL else n
        if not _add_part(p + start, end - start, names, &h):
            return False
        start = end + 1
    out[0] = h
    return True


cdef int _compare(const Texts* t, int64_t i, int64_t j) noexcept nogil:
    """String.compareTo of two rows: the order of UTF-16 units.

    UTF-8 bytes have the order of code points.  The orders differ only where U+E000..U+FFFF (lead bytes EE
    and EF) meets what UTF-16 writes with surrogates, D800..DFFF (lead bytes F0..F4).
    """
    cdef const uint8_t* p = t.data + t.offsets[i]
    cdef const uint8_t* q = t.data + t.offsets[j]
    cdef int64_t n = t.offsets[i + 1] - t.offsets[i], m = t.offsets[j + 1] - t.offsets[j]
    cdef int64_t k = 0, common = n if n < m else m
    cdef int x, y
    cdef uint64_t eight, other
    while common - k >= 8:
        memcpy(&eight, p + k, 8)
        memcpy(&other, q + k, 8)
        if eight != other:
            break
        k += 8
    while k < common and p[k] == q[k]:
        k += 1
    if k == common:
        return (n > m) - (n < m)
    x = p[k]
    y = q[k]
    if x >= 0xEE and y >= 0xEE:
        x += 0x10 if x <= 0xEF else 0
        y += 0x10 if y <= 0xEF else 0
    return (x > y) - (x < y)


cdef inline uint64_t _prefix(const uint8_t* p, int64_t n) noexcept nogil:
    """The first eight bytes as a number in their order, zeros for those that are not there."""
    cdef uint64_t v = 0
    cdef int64_t i
    if n >= 8:
        return (
            <uint64_t>p[0] << 56 | <uint64_t>p[1] << 48 | <uint64_t>p[2] << 40 | <uint64_t>p[3] << 32
            | <uint64_t>p[4] << 24 | <uint64_t>p[5] << 16 | <uint64_t>p[6] << 8 | p[7]
        )
    for i in range(n):
        v |= <uint64_t>p[i] << (56 - 8 * i)
    return v


cdef void _extremes(const Texts* t, const uint8_t* valid, int64_t* least, int64_t* greatest) noexcept nogil:
    cdef int64_t i, low = -1, high = -1
    cdef uint64_t prefix, low_prefix = 0, high_prefix = 0
    cdef bint plain, low_plain = True, high_plain = True
    for i in range(t.rows):
        if valid != NULL and not valid[i]:
            continue
        prefix = _prefix(t.data + t.offsets[i], t.offsets[i + 1] - t.offsets[i])
        plain = (prefix & <uint64_t>0x8080808080808080) == 0
        # ASCII prefixes that differ decide; the rest is compared in full.
        if low < 0 or (
            prefix < low_prefix if plain and low_plain and prefix != low_prefix else _compare(t, i, low) < 0
        ):
            low = i
            low_prefix = prefix
            low_plain = plain
        if high < 0 or (
            prefix > high_prefix if plain and high_plain and prefix != high_prefix else _compare(t, i, high) > 0
        ):
            high = i
            high_prefix = prefix
            high_plain = plain
    least[0] = low
    greatest[0] = high


def string_hashes(const uint8_t[::1] data not None, const int64_t[::1] offsets not None, int32_t[::1] out not None):
    cdef Texts t = texts(data, offsets)
    cdef int64_t i
    cdef uint32_t h = 0
    cdef bint ok = True
    if out.shape[0] != t.rows:
        raise ValueError("one result per text is needed")
    with nogil:
        for i in range(t.rows):
            if not _hash(t.data + t.offsets[i], t.offsets[i + 1] - t.offsets[i], &h):
                ok = False
                break
            out[i] = <int32_t>h
    if not ok:
        raise ValueError(f"row {i} is not UTF-8")


def bucket_ids(
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None,
    const uint8_t[::1] name_data not None, const int64_t[::1] name_offsets not None,
    int32_t buckets, int32_t[::1] out not None,
):
    cdef Texts t = texts(data, offsets)
    cdef Texts names = texts(name_data, name_offsets)
    cdef int64_t i
    cdef uint32_t h = 0
    cdef bint ok = True
    if out.shape[0] != t.rows:
        raise ValueError("one result per key is needed")
    if buckets < 1:
        raise ValueError("there must be a bucket")
    with nogil:
        for i in range(t.rows):
            if not _list_hash(t.data + t.offsets[i], t.offsets[i + 1] - t.offsets[i], &names, &h):
                ok = False
                break
            out[i] = <int32_t>((h & 0x7FFFFFFF) % <uint32_t>buckets)
    if not ok:
        raise ValueError(f"row {i} is not UTF-8")


def extremes(
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None, const uint8_t[::1] valid
):
    cdef Texts t = texts(data, offsets)
    cdef const uint8_t* flags = NULL
    cdef int64_t least = -1, greatest = -1
    if valid is not None:
        if valid.shape[0] != t.rows:
            raise ValueError("one validity byte per row is needed")
        if t.rows:
            flags = &valid[0]
    with nogil:
        _extremes(&t, flags, &least, &greatest)
    return least, greatest
