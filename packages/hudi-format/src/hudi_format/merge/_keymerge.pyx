# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Hash tables over record keys: find keys, keep one row per key, decide by ordering value.

A table is a power of two of 64-bit slots: the upper half of the key's hash, and its row plus one; 0 is an
empty slot.  At most half of the slots are used, so a probe ends at an empty one.  The doors in
`hudi_format.merge.key_index` say what is computed; the loops run without the GIL.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from hudi_format.merge._key_texts cimport Text, compare_text, equal, hudi_prefetch, hudi_text_hash, is_text, present

cdef enum:
    BATCH = 32          # probes in flight: enough to hide a cache miss, few enough for L1

cdef uint64_t TAG = 0xFFFFFFFF00000000u


cdef inline uint64_t _bits(uint64_t h) noexcept nogil:
    """Bits of a hash in its word of the filter, both of the half of it that slots hold."""
    return (<uint64_t>1 << ((h >> 32) & 63)) | (<uint64_t>1 << ((h >> 38) & 63))


cdef enum Order:
    BY_POSITION, BY_NUMBER, BY_TEXT


# Of keys that are looked up: as their column has them, which is mostly the shorter.
ctypedef fused offset_t:
    int32_t
    int64_t


cdef struct Ordering:
    Order kind
    const int64_t* numbers
    Text text


cdef inline int _compare(const Ordering* a, int64_t i, const Ordering* b, int64_t j) noexcept nogil:
    if a.kind == BY_NUMBER:
        return (a.numbers[i] > b.numbers[j]) - (a.numbers[i] < b.numbers[j])
    if a.kind == BY_TEXT:
        return compare_text(&a.text, i, &b.text, j)
    return 0


cdef bint _sound(const Text* t, int64_t size) noexcept nogil:
    """Whether every row lies within `size` bytes of data."""
    cdef int64_t i
    cdef bint ok = t.offsets[0] >= 0 and t.offsets[t.rows] <= size
    for i in range(t.rows):
        ok &= t.offsets[i] <= t.offsets[i + 1]
    return ok


# The pointers that these two give live as long as the arrays, which the caller's arguments hold.
cdef Text _text(const uint8_t[::1] data, const int64_t[::1] offsets, const uint8_t[::1] valid) except *:
    cdef Text t
    cdef bint ok
    if offsets.shape[0] < 1:
        raise ValueError("no offsets")
    t.rows = offsets.shape[0] - 1
    t.offsets = &offsets[0]
    t.data = &data[0] if data.shape[0] else NULL
    t.valid = NULL
    if valid is not None:
        if valid.shape[0] != t.rows:
            raise ValueError("one validity byte per row is needed")
        if t.rows:
            t.valid = &valid[0]
    cdef int64_t size = data.shape[0]
    with nogil:
        ok = _sound(&t, size)
    if not ok:
        raise ValueError("offsets leave the data")
    return t


cdef Ordering _ordering(object numbers, object text, int64_t rows) except *:
    cdef Ordering o = Ordering(
        kind=BY_POSITION, numbers=NULL, text=Text(data=NULL, offsets=NULL, valid=NULL, rows=0)
    )
    cdef const int64_t[::1] values
    if numbers is not None:
        values = numbers
        if values.shape[0] != rows:
            raise ValueError("one ordering value per row is needed")
        o.kind = BY_NUMBER
        if rows:
            o.numbers = &values[0]
    elif text is not None:
        o.text = _text(text[0], text[1], text[2])
        if o.text.rows != rows:
            raise ValueError("one ordering value per row is needed")
        o.kind = BY_TEXT
    return o


cdef uint64_t _mask(uint64_t[::1] slots, int64_t rows) except 0:
    cdef uint64_t size = slots.shape[0]
    if size < 2 or size & (size - 1) or <uint64_t>rows > size // 2 or rows >= 0xFFFFFFFF:
        raise ValueError("the number of slots must be a power of two, and twice the rows at least")
    return size - 1


cdef int64_t _build(
    const Text* keys, uint64_t* slots, uint64_t mask, uint64_t seed, const Ordering* order, uint8_t* dead
) noexcept nogil:
    """Put every key into the table and mark the rows that lose; returns how many do.

    The row in the table is the winner so far: a later row wins unless its ordering value is smaller.
    """
    cdef uint64_t hashes[BATCH]
    cdef int64_t start = 0, i, n, row, rival, lost = 0
    cdef uint64_t at, slot, h
    while start < keys.rows:
        n = min(<int64_t>BATCH, keys.rows - start)
        for i in range(n):
            row = start + i
            hashes[i] = hudi_text_hash(
                keys.data + keys.offsets[row], keys.offsets[row + 1] - keys.offsets[row], seed
            )
            hudi_prefetch(&slots[hashes[i] & mask])
        for i in range(n):
            row = start + i
            if not present(keys, row):
                continue
            h = hashes[i]
            at = h & mask
            while True:
                slot = slots[at]
                if slot == 0:
                    slots[at] = (h & TAG) | <uint64_t>(row + 1)
                    break
                if (slot ^ h) & TAG == 0:
                    rival = <int64_t>(slot & ~TAG) - 1
                    if equal(keys, row, keys, rival):
                        lost += 1
                        if _compare(order, row, order, rival) >= 0:
                            slots[at] = (h & TAG) | <uint64_t>(row + 1)
                            rival, row = row, rival
                        if dead != NULL:
                            dead[row] = 1
                        break
                at = (at + 1) & mask
        start += n
    return lost


cdef void _find(
    const Text* keys, const uint8_t* data, const offset_t* offsets, const uint8_t* valid, int64_t rows,
    const uint64_t* slots, uint64_t mask, uint64_t seed, const uint64_t* words, uint64_t words_mask,
    int64_t* out, uint8_t* marks,
) noexcept nogil:
    """Look every probed key up: its row goes to `out`, or `marks` of its row is set, whichever is given."""
    cdef uint64_t hashes[BATCH]
    cdef int64_t left[BATCH]
    cdef int64_t start = 0, i, n, m, row, found
    cdef uint64_t at, slot, h, both
    while start < rows:
        n = min(<int64_t>BATCH, rows - start)
        m = 0
        for i in range(n):
            row = start + i
            h = hudi_text_hash(data + offsets[row], offsets[row + 1] - offsets[row], seed)
            if out != NULL:
                out[row] = -1
            hashes[m] = h
            left[m] = row
            if words != NULL:
                both = _bits(h)
                m += (words[(h >> 44) & words_mask] & both) == both
            else:
                hudi_prefetch(&slots[h & mask])
                m += 1
        if words != NULL:
            for i in range(m):
                hudi_prefetch(&slots[hashes[i] & mask])
        for i in range(m):
            row = left[i]
            if valid != NULL and valid[row] == 0:
                continue
            h = hashes[i]
            at = h & mask
            while True:
                slot = slots[at]
                if slot == 0:
                    break
                if (slot ^ h) & TAG == 0:
                    found = <int64_t>(slot & ~TAG) - 1
                    if is_text(keys, found, data + offsets[row], offsets[row + 1] - offsets[row]):
                        if out != NULL:
                            out[row] = found
                        if marks != NULL:
                            marks[found] = 1
                        break
                at = (at + 1) & mask
        start += n


def hashes(keys, uint64_t seed, uint64_t[::1] out not None):
    cdef Text t = _text(keys[0], keys[1], keys[2])
    cdef int64_t i
    if out.shape[0] != t.rows:
        raise ValueError("one hash per key is needed")
    with nogil:
        for i in range(t.rows):
            out[i] = hudi_text_hash(t.data + t.offsets[i], t.offsets[i + 1] - t.offsets[i], seed)


def build(keys, uint64_t[::1] slots not None, uint64_t seed):
    cdef Text t = _text(keys[0], keys[1], keys[2])
    cdef uint64_t mask = _mask(slots, t.rows)
    cdef Ordering by_position = _ordering(None, None, t.rows)
    cdef int64_t lost
    with nogil:
        lost = _build(&t, &slots[0], mask, seed, &by_position, NULL)
    return lost


def words(const uint64_t[::1] slots not None, uint64_t[::1] out not None):
    cdef uint64_t size = out.shape[0], h
    cdef int64_t i, n = slots.shape[0]
    if size < 1 or size & (size - 1):
        raise ValueError("the number of words must be a power of two")
    with nogil:
        for i in range(n):
            h = slots[i]
            if h != 0:
                out[(h >> 44) & (size - 1)] |= _bits(h)


def find(
    keys, const uint64_t[::1] slots not None, uint64_t seed, probes, const uint64_t[::1] words,
    int64_t[::1] out, uint8_t[::1] marks,
):
    cdef Text t = _text(keys[0], keys[1], keys[2])
    cdef uint64_t size = slots.shape[0]
    if size < 2 or size & (size - 1):
        raise ValueError("the number of slots must be a power of two")
    if words is not None and (words.shape[0] < 1 or words.shape[0] & (words.shape[0] - 1)):
        raise ValueError("the number of words must be a power of two")
    if marks is not None and marks.shape[0] != t.rows:
        raise ValueError("one mark per row is needed")
    if probes[1].itemsize == 4:
        _probe[int32_t](&t, &slots[0], size - 1, seed, probes[0], probes[1], probes[2], words, out, marks)
    else:
        _probe[int64_t](&t, &slots[0], size - 1, seed, probes[0], probes[1], probes[2], words, out, marks)


cdef int _probe(
    const Text* keys, const uint64_t* slots, uint64_t mask, uint64_t seed,
    const uint8_t[::1] data, const offset_t[::1] offsets, const uint8_t[::1] valid,
    const uint64_t[::1] words, int64_t[::1] out, uint8_t[::1] marks,
) except -1:
    cdef int64_t rows = offsets.shape[0] - 1, size = data.shape[0], i
    cdef const uint8_t* bytes_of_keys = &data[0] if size else NULL
    cdef const uint8_t* there = NULL
    cdef const uint64_t* first_word = NULL
    cdef uint64_t words_mask = 0
    cdef int64_t* places = NULL
    cdef uint8_t* marked = NULL
    cdef bint ok
    if rows < 0:
        raise ValueError("no offsets")
    if out is not None and out.shape[0] != rows:
        raise ValueError("one result per probed key is needed")
    if rows == 0:
        return 0
    if valid is not None:
        if valid.shape[0] != rows:
            raise ValueError("one validity byte per row is needed")
        there = &valid[0]
    if words is not None:
        first_word = &words[0]
        words_mask = <uint64_t>words.shape[0] - 1
    if out is not None:
        places = &out[0]
    if marks is not None and keys.rows:
        marked = &marks[0]
    with nogil:
        ok = offsets[0] >= 0 and offsets[rows] <= size
        for i in range(rows):
            ok &= offsets[i] <= offsets[i + 1]
        if ok:
            _find(
                keys, bytes_of_keys, &offsets[0], there, rows, slots, mask, seed, first_word, words_mask,
                places, marked,
            )
    if not ok:
        raise ValueError("offsets leave the data")
    return 0


def losers(keys, uint64_t[::1] slots not None, uint64_t seed, numbers, text, uint8_t[::1] dead not None):
    cdef Text t = _text(keys[0], keys[1], keys[2])
    cdef uint64_t mask = _mask(slots, t.rows)
    cdef Ordering order = _ordering(numbers, text, t.rows)
    cdef int64_t lost
    if dead.shape[0] != t.rows:
        raise ValueError("one mark per row is needed")
    if t.rows == 0:
        return 0
    with nogil:
        lost = _build(&t, &slots[0], mask, seed, &order, &dead[0])
    return lost


def keep_newer(
    int64_t[::1] take not None,
    old_numbers, old_text, const uint8_t[::1] old_valid,
    new_numbers, new_text, int64_t new_rows, bint ties_stay=False,
):
    cdef int64_t n = take.shape[0], i, row
    cdef Ordering old = _ordering(old_numbers, old_text, n)
    cdef Ordering new = _ordering(new_numbers, new_text, new_rows)
    cdef const uint8_t* valid = NULL
    cdef bint ok = True
    if old.kind != new.kind:
        raise ValueError("ordering values of two kinds")
    if n == 0:
        return
    if old_valid is not None:
        if old_valid.shape[0] != n:
            raise ValueError("one validity byte per row is needed")
        valid = &old_valid[0]
    with nogil:
        for i in range(n):
            row = take[i]
            if row < 0:
                continue
            if row >= new_rows:
                ok = False
                break
            if (valid == NULL or valid[i] != 0) and _compare(&old, i, &new, row) > -<int>ties_stay:
                take[i] = -1
    if not ok:
        raise ValueError("a position that is no incoming row")


# --- records of one key, in the order in which they came ---------------------------------------------

cdef enum Act:                  # what a record does to what its key has so far
    TAKE, KEEP, TAKE_FILL, KEEP_FILL

# Who wins: the later one, or the greatest (of equal ones the later, the earlier), or the later one but for deletes.
cdef enum How:
    LATER, GREATEST, GREATEST_FIRST, LATER_DATA

cdef enum Kind:
    DATA, DATA_DELETED, DATA_FLAG_NULL, DELETE, DELETE_DEFAULT


cdef void _group(
    const Text* keys, uint64_t* slots, uint64_t mask, uint64_t seed, int64_t* out
) noexcept nogil:
    """For each row, the first row with its key; -1 for null."""
    cdef uint64_t hashes[BATCH]
    cdef int64_t start = 0, i, n, row, first
    cdef uint64_t at, slot, h
    while start < keys.rows:
        n = min(<int64_t>BATCH, keys.rows - start)
        for i in range(n):
            row = start + i
            hashes[i] = hudi_text_hash(
                keys.data + keys.offsets[row], keys.offsets[row + 1] - keys.offsets[row], seed
            )
            hudi_prefetch(&slots[hashes[i] & mask])
        for i in range(n):
            row = start + i
            out[row] = -1
            if not present(keys, row):
                continue
            h = hashes[i]
            at = h & mask
            while True:
                slot = slots[at]
                if slot == 0:
                    slots[at] = (h & TAG) | <uint64_t>(row + 1)
                    out[row] = row
                    break
                if (slot ^ h) & TAG == 0:
                    first = <int64_t>(slot & ~TAG) - 1
                    if equal(keys, row, keys, first):
                        out[row] = first
                        break
                at = (at + 1) & mask
        start += n


cdef inline int _rank(const Ordering* o, const uint8_t* valid, int64_t i, int64_t j) noexcept nogil:
    """Order of two values of one column; null comes first."""
    if valid != NULL and (valid[i] == 0 or valid[j] == 0):
        return <int>valid[i] - <int>valid[j]
    return _compare(o, i, o, j)


cdef bint _fold(
    const int64_t* group, const uint8_t* kinds, int64_t rows, const Ordering* order, const uint8_t* valid,
    int how, bint fill, bint logged, bint tombstones_compare,
    int64_t* state, uint8_t* state_kind, uint8_t* actions,
) noexcept nogil:
    cdef int64_t row, g, s
    cdef uint8_t k, sk, winner
    cdef bint keep
    cdef int c
    for row in range(rows):
        g = group[row]
        actions[row] = KEEP
        if g < 0:
            continue
        if g > row or kinds[row] > DELETE_DEFAULT:
            return False
        s = state[g]
        k = kinds[row]
        if s < 0:
            state[g] = row
            state_kind[g] = k
            actions[row] = TAKE
            continue
        sk = state_kind[g]
        if k == DELETE and sk == DELETE_DEFAULT:
            # Where entries of delete blocks are compared with stored rows, one that is not must not give way to it.
            keep = tombstones_compare and how != LATER
        elif k >= DELETE:
            keep = how != LATER and k == DELETE and _rank(order, valid, s, row) > 0
        elif sk >= DELETE:
            keep = tombstones_compare and how != LATER and sk == DELETE and _rank(order, valid, s, row) > 0
        else:
            c = 0 if how == LATER or how == LATER_DATA else _rank(order, valid, s, row)
            keep = c > 0 or (c == 0 and how == GREATEST_FIRST)
            winner = sk if keep else k
            # A merge whose winner is a delete comes to nothing, and the later record stands as it is; only
            # where rows have meta columns is an earlier winner kept.
            if fill and (winner != DATA_DELETED or (keep and logged)):
                actions[row] = KEEP_FILL if keep else TAKE_FILL
                if winner == DATA_FLAG_NULL:
                    winner = k if keep else sk
                state_kind[g] = winner
                if not keep:
                    state[g] = row
                continue
            if fill:
                keep = False
        if not keep:
            actions[row] = TAKE
            state[g] = row
            state_kind[g] = k
    return True


cdef void _fold_column(
    const int64_t* group, const uint8_t* actions, const uint8_t* valid, int64_t rows, bint latest, int64_t* source
) noexcept nogil:
    cdef int64_t row, g
    cdef uint8_t a
    for row in range(rows):
        a = actions[row]
        if a == KEEP:
            continue
        g = group[row]
        if a == TAKE or latest or valid == NULL and a == TAKE_FILL:
            source[g] = row
        elif valid != NULL and valid[row] and (a == TAKE_FILL or not valid[source[g]]):
            source[g] = row


def group(keys, uint64_t[::1] slots not None, uint64_t seed, int64_t[::1] out not None):
    cdef Text t = _text(keys[0], keys[1], keys[2])
    cdef uint64_t mask = _mask(slots, t.rows)
    if out.shape[0] != t.rows:
        raise ValueError("one result per key is needed")
    if t.rows == 0:
        return
    with nogil:
        _group(&t, &slots[0], mask, seed, &out[0])


def fold(
    const int64_t[::1] groups not None, const uint8_t[::1] kinds not None, numbers, text,
    const uint8_t[::1] valid, int how, bint fill, bint logged, bint tombstones_compare,
    int64_t[::1] state not None, uint8_t[::1] state_kind not None, uint8_t[::1] actions not None,
):
    cdef int64_t n = groups.shape[0]
    cdef Ordering order = _ordering(numbers, text, n)
    cdef const uint8_t* v = NULL
    cdef bint ok
    if not (kinds.shape[0] == state.shape[0] == state_kind.shape[0] == actions.shape[0] == n):
        raise ValueError("all arrays have one element per row")
    if not LATER <= how <= LATER_DATA:
        raise ValueError("no such order")
    if valid is not None and valid.shape[0] != n:
        raise ValueError("one validity byte per row is needed")
    if n == 0:
        return
    if valid is not None:
        v = &valid[0]
    state[:] = -1
    with nogil:
        ok = _fold(
            &groups[0], &kinds[0], n, &order, v, how, fill, logged, tombstones_compare,
            &state[0], &state_kind[0], &actions[0],
        )
    if not ok:
        raise ValueError("a group that begins later than its row, or an unknown kind of record")


def fold_column(
    const int64_t[::1] groups not None, const uint8_t[::1] actions not None, const uint8_t[::1] valid,
    bint latest, int64_t[::1] source not None,
):
    cdef int64_t n = groups.shape[0], row
    cdef const uint8_t* v = NULL
    cdef bint ok = True
    if not (actions.shape[0] == source.shape[0] == n) or (valid is not None and valid.shape[0] != n):
        raise ValueError("all arrays have one element per row")
    if n == 0:
        return
    if valid is not None:
        v = &valid[0]
    source[:] = -1
    with nogil:
        for row in range(n):
            # A key's first row is taken, so that there is something to fill afterwards.
            if actions[row] != KEEP and not 0 <= groups[row] <= row:
                ok = False
            elif groups[row] == row and actions[row] != TAKE:
                ok = False
        if ok:
            _fold_column(&groups[0], &actions[0], v, n, latest, &source[0])
    if not ok:
        raise ValueError("groups and actions that no fold gave")
