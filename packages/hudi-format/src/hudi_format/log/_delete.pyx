# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Delete records of version 3 found in Avro bytes: where keys and partition paths are, and ordering values.

One row of 64-bit numbers per record.  Every length is checked against what is left before it is used.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    KEY, KEY_LENGTH, PARTITION, PARTITION_LENGTH, BRANCH, VALUE, VALUE_LENGTH
    COLUMNS

# Branches of the ordering value's union.
cdef enum:
    NULL_VALUE, BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, STRING, DATE, DECIMAL, TIME_MICROS, TIMESTAMP_MICROS
    ARRAY           # several ordering fields, from Apache Hudi 1.1 on
    LOCAL_DATE = 12 # within an array

cdef struct Cursor:
    const uint8_t* data
    int64_t at
    int64_t end
    bint bad


cdef inline int64_t _varint(Cursor* c) noexcept nogil:
    """The next zigzag number; sets `bad` where it does not end, or has more than 64 bits."""
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t b
    while c.at < c.end and shift < 70:
        b = c.data[c.at]
        if shift == 63 and b > 1:
            break
        c.at += 1
        value |= <uint64_t>(b & 0x7F) << shift
        if b < 0x80:
            return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
        shift += 7
    c.bad = True
    return 0


cdef inline void _bytes(Cursor* c, int64_t* offset, int64_t* length) noexcept nogil:
    cdef int64_t n = _varint(c)
    if c.bad or n < 0 or n > c.end - c.at:
        c.bad = True
        return
    offset[0] = c.at
    length[0] = n
    c.at += n


cdef inline void _text(Cursor* c, int64_t* offset, int64_t* length) noexcept nogil:
    """A nullable string: offset and length, or -1 and -1."""
    cdef int64_t branch = _varint(c)
    offset[0] = length[0] = -1
    if branch == 1:
        _bytes(c, offset, length)
    elif branch != 0:
        c.bad = True


cdef void _scalar(Cursor* c, int64_t branch, int64_t* value, int64_t* length) noexcept nogil:
    """One wrapped value: the number, the bits of a float or double, or the place of bytes with their length."""
    cdef uint32_t four
    value[0] = length[0] = -1
    if branch == NULL_VALUE:
        return
    if branch == BOOLEAN:
        if c.at >= c.end or c.data[c.at] > 1:
            c.bad = True
            return
        value[0] = c.data[c.at]
        c.at += 1
    elif branch == FLOAT:
        if c.end - c.at < 4:
            c.bad = True
            return
        four = (
            <uint32_t>c.data[c.at] | (<uint32_t>c.data[c.at + 1] << 8)
            | (<uint32_t>c.data[c.at + 2] << 16) | (<uint32_t>c.data[c.at + 3] << 24)
        )
        value[0] = <int64_t>four
        c.at += 4
    elif branch == DOUBLE:
        if c.end - c.at < 8:
            c.bad = True
            return
        value[0] = 0
        for four in range(8):
            value[0] |= <int64_t>(<uint64_t>c.data[c.at + four] << (8 * four))
        c.at += 8
    elif branch == BYTES or branch == STRING or branch == DECIMAL:
        _bytes(c, value, length)
    else:  # INT, LONG, DATE, LOCAL_DATE, TIME_MICROS, TIMESTAMP_MICROS
        value[0] = _varint(c)
        if (branch == INT or branch == DATE or branch == LOCAL_DATE) and value[0] != <int64_t><int32_t>value[0]:
            c.bad = True


cdef void _array(Cursor* c, int64_t* value, int64_t* length) noexcept nogil:
    """Walk over an array wrapper: the place of its first byte and how many bytes it has."""
    cdef int64_t count, size, branch, ignored, other
    value[0] = c.at
    branch = _varint(c)
    if branch == 1:
        while not c.bad:
            count = _varint(c)
            if count == 0:
                break
            if count < 0:
                size = _varint(c)
                if c.bad or size < 0 or size > c.end - c.at or count < -size:  # the least number has no opposite
                    c.bad = True
                    return
                count = -count
            if count < 0 or count > c.end - c.at:
                c.bad = True
                return
            while count > 0 and not c.bad:
                branch = _varint(c)
                if branch < 0 or branch > LOCAL_DATE:
                    c.bad = True
                    return
                _scalar(c, branch, &ignored, &other)
                count -= 1
    elif branch != 0:
        c.bad = True
    length[0] = c.at - value[0]


cdef inline void _record(Cursor* c, int64_t* row) noexcept nogil:
    _text(c, &row[KEY], &row[KEY_LENGTH])
    if not c.bad:
        _text(c, &row[PARTITION], &row[PARTITION_LENGTH])
    if c.bad:
        return
    row[BRANCH] = _varint(c)
    if c.bad or row[BRANCH] < 0 or row[BRANCH] > ARRAY:
        c.bad = True
    elif row[BRANCH] == ARRAY:
        _array(c, &row[VALUE], &row[VALUE_LENGTH])
    else:
        _scalar(c, row[BRANCH], &row[VALUE], &row[VALUE_LENGTH])


cdef int64_t _walk(Cursor* c, int64_t* out, int64_t rows) noexcept nogil:
    """How many records there are; the first `rows` of them go to `out`."""
    cdef int64_t[COLUMNS] scratch
    cdef int64_t done = 0, count, size
    while not c.bad:
        count = _varint(c)
        if c.bad or count == 0:
            break
        if count < 0:
            size = _varint(c)
            if size < 0 or size > c.end - c.at or count < -size:  # the least number has no opposite
                c.bad = True
            if c.bad:
                break
            count = -count
        if count < 0 or count > (c.end - c.at) // 3:  # two null texts and a null value are three bytes
            c.bad = True
            break
        while count > 0 and not c.bad:
            _record(c, out + done * COLUMNS if done < rows else &scratch[0])
            done += 1
            count -= 1
    return done


def walk(const uint8_t[::1] data not None, int64_t[:, ::1] out not None):
    cdef int64_t rows = out.shape[0], found
    cdef int64_t[COLUMNS] none
    cdef int64_t* target = &none[0]
    cdef Cursor c
    if out.shape[1] != COLUMNS:
        raise ValueError(f"a row has {COLUMNS} columns")
    if data.shape[0] == 0:
        return 0, 0, False
    if rows > 0:
        target = &out[0, 0]
    c.data, c.at, c.end, c.bad = &data[0], 0, data.shape[0], False
    with nogil:
        found = _walk(&c, target, rows)
    return found, c.at, not c.bad


def array_items(const uint8_t[::1] data not None, int64_t at, int64_t length):
    cdef Cursor c
    cdef int64_t count, branch, value, size
    if at < 0 or length < 1 or at > data.shape[0] or length > data.shape[0] - at:
        raise ValueError("not within the data")
    c.data, c.at, c.end, c.bad = &data[0], at, at + length, False
    if _varint(&c) == 0:
        return None
    items = []
    while not c.bad:
        count = _varint(&c)
        if count == 0:
            break
        if count < 0:
            _varint(&c)
            count = -count
        while count > 0 and not c.bad:
            branch = _varint(&c)
            _scalar(&c, branch, &value, &size)
            items.append((branch, value, size))
            count -= 1
    return items


def gather(
    const uint8_t[::1] data not None, const int64_t[::1] places not None, const int64_t[::1] lengths not None,
    int32_t[::1] offsets not None, uint8_t[::1] out not None
):
    cdef int64_t rows = places.shape[0], i, total = 0, room = out.shape[0], n = data.shape[0]
    cdef bint sound = True
    if lengths.shape[0] != rows or offsets.shape[0] != rows + 1:
        raise ValueError("places, lengths and offsets disagree")
    if room > 0x7FFFFFFF:
        raise ValueError("more than an array of texts can hold")
    with nogil:
        offsets[0] = 0
        for i in range(rows):
            if lengths[i] > 0:
                if places[i] < 0 or lengths[i] > n - places[i] or lengths[i] > room - total:
                    sound = False
                    break
                memcpy(&out[total], &data[places[i]], <size_t>lengths[i])
                total += lengths[i]
            offsets[i + 1] = <int32_t>total
    if not sound:
        raise ValueError("a text is not within the data")


cdef inline int64_t _put(uint8_t* out, int64_t at, int64_t number) noexcept nogil:
    cdef uint64_t value = (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)
    while value > 0x7F:
        out[at] = <uint8_t>(value & 0x7F) | 0x80
        at += 1
        value >>= 7
    out[at] = <uint8_t>value
    return at + 1


cdef inline int64_t _put_bytes(
    uint8_t* out, int64_t at, const uint8_t* data, const int32_t* offsets, int64_t row
) noexcept nogil:
    cdef int64_t length = offsets[row + 1] - offsets[row]
    at = _put(out, at, length)
    memcpy(out + at, data + offsets[row], <size_t>length)
    return at + length


cdef bint _within(const int32_t[::1] offsets, int64_t rows, int64_t size) noexcept nogil:
    cdef int64_t i
    if offsets.shape[0] != rows + 1 or offsets[0] < 0 or offsets[rows] > size:
        return False
    for i in range(rows):
        if offsets[i] > offsets[i + 1]:
            return False
    return True


def encode(
    const uint8_t[::1] keys not None, const int32_t[::1] key_offsets not None,
    const uint8_t[::1] partitions not None, const int32_t[::1] partition_offsets not None,
    const uint8_t[::1] partition_valid not None,
    const uint8_t[::1] branches not None, const int64_t[::1] numbers not None,
    const uint8_t[::1] texts not None, const int32_t[::1] text_offsets not None,
    uint8_t[::1] out not None,
):
    cdef int64_t rows = key_offsets.shape[0] - 1, i, at = 0, branch, value
    cdef int64_t need
    cdef int k
    if rows < 0 or min(keys.shape[0], partitions.shape[0], texts.shape[0]) < 1:
        raise ValueError("an empty buffer")
    if partition_valid.shape[0] != rows or branches.shape[0] != rows or numbers.shape[0] != rows:
        raise ValueError("columns of different lengths")
    if not (_within(key_offsets, rows, keys.shape[0]) and _within(partition_offsets, rows, partitions.shape[0])
            and _within(text_offsets, rows, texts.shape[0])):
        raise ValueError("texts that are not within their data")
    need = 20 + 40 * rows + (key_offsets[rows] - key_offsets[0])
    need += (partition_offsets[rows] - partition_offsets[0]) + (text_offsets[rows] - text_offsets[0])
    if out.shape[0] < need:
        raise ValueError("no room for the list")
    with nogil:
        if rows > 0:
            at = _put(&out[0], at, rows)
        for i in range(rows):
            at = _put(&out[0], at, 1)
            at = _put_bytes(&out[0], at, &keys[0], &key_offsets[0], i)
            if partition_valid[i]:
                at = _put(&out[0], at, 1)
                at = _put_bytes(&out[0], at, &partitions[0], &partition_offsets[0], i)
            else:
                at = _put(&out[0], at, 0)
            branch = branches[i]
            value = numbers[i]
            at = _put(&out[0], at, branch)
            if branch == BOOLEAN:
                out[at] = value != 0
                at += 1
            elif branch == FLOAT or branch == DOUBLE:
                for k in range(4 if branch == FLOAT else 8):
                    out[at + k] = <uint8_t>(<uint64_t>value >> (8 * k))
                at += 4 if branch == FLOAT else 8
            elif branch == BYTES or branch == STRING or branch == DECIMAL:
                at = _put_bytes(&out[0], at, &texts[0], &text_offsets[0], i)
            elif branch != NULL_VALUE:
                at = _put(&out[0], at, value)
        at = _put(&out[0], at, 0)
    return at
