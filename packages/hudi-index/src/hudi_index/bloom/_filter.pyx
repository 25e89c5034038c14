# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Set and test the bits of bloom filters, many keys at a time, without the GIL.

Every round of a key hashes the key again, seeded with the round before, so one key is a long chain of
dependent multiplications.  Keys of equal length therefore go through the rounds together, one per lane of the
vector unit; and the mixed words of a key do not depend on the seed, so they are made once.

Source: Hadoop's MurmurHash, JenkinsHash and HashFunction, as Apache Hudi's filters use them.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from hudi_index.hashing._texts cimport Texts, texts

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>

    /* One more copy for processors with AVX2, chosen when the module is loaded. */
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
      #define HUDI_CLONES __attribute__((target_clones("avx2", "default")))
    #else
      #define HUDI_CLONES
    #endif

    #define HUDI_LANES 32
    #define HUDI_MURMUR 0x5bd1e995u

    typedef struct {
        uint32_t size;      /* bits, 1 .. 2^31 - 1 */
        uint32_t magic;     /* ceil(2^shift / size) */
        int shift;          /* 31 + ceil(log2(size)) */
        int rounds;
    } hudi_shape;

    /* x / size for x <= 2^31 is exactly (x * magic) >> shift: with e = magic * size - 2^shift, e < size and
       x * e < 2^31 * size <= 2^shift, so the error stays below one part in size. */
    static hudi_shape hudi_make_shape(uint32_t size, int rounds) {
        hudi_shape s;
        int log = 0;
        while (((uint64_t)1 << log) < size) log++;
        s.size = size;
        s.rounds = rounds;
        s.shift = 31 + log;
        s.magic = (uint32_t)((((uint64_t)1 << s.shift) + size - 1) / size);
        return s;
    }

    static inline uint32_t hudi_place(uint32_t iv, const hudi_shape *s) {
        uint32_t x = (int32_t)iv < 0 ? 0u - iv : iv;    /* 2^31 for Integer.MIN_VALUE, as wanted */
        return x - (uint32_t)(((uint64_t)x * s->magic) >> s->shift) * s->size;
    }

    static inline uint32_t hudi_mix_word(uint32_t k) {
        k *= HUDI_MURMUR;
        k ^= k >> 24;
        return k * HUDI_MURMUR;
    }

    /* The six bits of a base64 digit, 255 for any other byte. */
    static const uint8_t HUDI_BASE64[256] = {
        255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,
        255,255,255,255,255,255,255,255,255,255,255,62,255,255,255,63,52,53,54,55,56,57,58,59,60,61,255,255,255,255,255,255,
        255,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,255,255,255,255,255,
        255,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,255,255,255,255,255,
        255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,
        255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,
        255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,
        255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,
    };

    /* The next round's seed and bit of every lane.  words: mixed words, lane after lane for each word. */
    HUDI_CLONES
    static void hudi_round(const uint32_t *words, int64_t nwords, const uint32_t *tail, uint32_t length,
                           const hudi_shape *shape, uint32_t *iv, uint32_t *place) {
        uint32_t h[HUDI_LANES];
        int j;
        for (j = 0; j < HUDI_LANES; j++) h[j] = iv[j] ^ length;
        for (int64_t w = 0; w < nwords; w++) {
            const uint32_t *k = words + w * HUDI_LANES;
            for (j = 0; j < HUDI_LANES; j++) h[j] = (h[j] * HUDI_MURMUR) ^ k[j];
        }
        if (length & 3)
            for (j = 0; j < HUDI_LANES; j++) h[j] = (h[j] ^ tail[j]) * HUDI_MURMUR;
        for (j = 0; j < HUDI_LANES; j++) {
            uint32_t x = h[j];
            x ^= x >> 13;
            x *= HUDI_MURMUR;
            x ^= x >> 15;
            iv[j] = x;
        }
        for (j = 0; j < HUDI_LANES; j++) place[j] = hudi_place(iv[j], shape);
    }
    """
    enum:
        LANES "HUDI_LANES"

    ctypedef struct Shape "hudi_shape":
        uint32_t size
        int rounds

    const uint8_t[256] HUDI_BASE64
    Shape hudi_make_shape(uint32_t size, int rounds)
    uint32_t hudi_place(uint32_t iv, const Shape* shape)
    uint32_t hudi_mix_word(uint32_t k)
    void hudi_round(
        const uint32_t* words, int64_t nwords, const uint32_t* tail, uint32_t length,
        const Shape* shape, uint32_t* iv, uint32_t* place
    )

cdef enum:
    BLOCK = 4096        # keys that are sorted by length together; 16-bit row numbers within
    MAX_LENGTH = 256    # longer keys go one by one
    MAX_WORDS = 64
    FEW = 4             # fewer keys of one length than this go one by one

cdef uint32_t MURMUR = 0x5bd1e995u


cdef inline uint32_t _tail(const uint8_t* end, int64_t left) noexcept nogil:
    """What the last 1 to 3 bytes add: taken from the end, sign-extended (both are Hadoop's)."""
    cdef uint32_t t = <uint32_t>(<int32_t>(<signed char>(end - 1)[0]))
    if left >= 2:
        t ^= <uint32_t>(<int32_t>(<signed char>(end - 2)[0])) << 8
    if left >= 3:
        t ^= <uint32_t>(<int32_t>(<signed char>(end - 3)[0])) << 16
    return t


cdef inline uint32_t _word(const uint8_t* p) noexcept nogil:
    return p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


cdef uint32_t _murmur(const uint8_t* p, int64_t n, uint32_t seed) noexcept nogil:
    cdef uint32_t h = seed ^ <uint32_t>n
    cdef int64_t i
    for i in range(n >> 2):
        h = (h * MURMUR) ^ hudi_mix_word(_word(p + 4 * i))
    if n & 3:
        h = (h ^ _tail(p + n, n & 3)) * MURMUR
    h ^= h >> 13
    h *= MURMUR
    return h ^ (h >> 15)


cdef inline uint32_t _turn(uint32_t x, int by) noexcept nogil:
    return (x << by) | (x >> (32 - by))


cdef uint32_t _jenkins(const uint8_t* p, int64_t n, uint32_t seed) noexcept nogil:
    """lookup3's hashlittle, byte by byte; in filters of before 2019 only."""
    cdef uint32_t a = 0xdeadbeefu + <uint32_t>n + seed
    cdef uint32_t b = a, c = a
    cdef uint8_t last[12]
    while n > 12:
        a += _word(p)
        b += _word(p + 4)
        c += _word(p + 8)
        a -= c; a ^= _turn(c, 4); c += b
        b -= a; b ^= _turn(a, 6); a += c
        c -= b; c ^= _turn(b, 8); b += a
        a -= c; a ^= _turn(c, 16); c += b
        b -= a; b ^= _turn(a, 19); a += c
        c -= b; c ^= _turn(b, 4); b += a
        p += 12
        n -= 12
    if n == 0:
        return c
    memset(last, 0, 12)
    memcpy(last, p, <size_t>n)
    a += _word(last)
    b += _word(&last[4])
    c += _word(&last[8])
    c ^= b; c -= _turn(b, 14)
    a ^= c; a -= _turn(c, 11)
    b ^= a; b -= _turn(a, 25)
    c ^= b; c -= _turn(b, 16)
    a ^= c; a -= _turn(c, 4)
    b ^= a; b -= _turn(a, 14)
    c ^= b; c -= _turn(b, 24)
    return c


cdef inline uint32_t _next(const uint8_t* p, int64_t n, bint murmur, uint32_t iv) noexcept nogil:
    """The hash of a key in a round, by that of the round before."""
    return _murmur(p, n, iv) if murmur else _jenkins(p, n, iv)


cdef bint _one(
    const uint8_t* p, int64_t n, bint murmur, const Shape* shape, uint8_t* bits, bint add
) noexcept nogil:
    """Set one key's bits, or tell whether all are set."""
    cdef uint32_t iv = 0, place
    cdef int r
    for r in range(shape.rounds):
        iv = _next(p, n, murmur, iv)
        place = hudi_place(iv, shape)
        if add:
            bits[place >> 3] |= <uint8_t>(1 << (place & 7))
        elif not bits[place >> 3] >> (place & 7) & 1:
            return False
    return True


cdef void _hashes(
    const Texts* keys, int64_t row, bint murmur, const Shape* shape, uint32_t* out
) noexcept nogil:
    """The hashes of one key, as `_block` stores them."""
    cdef const uint8_t* p = keys.data + keys.offsets[row]
    cdef int64_t n = keys.offsets[row + 1] - keys.offsets[row]
    cdef uint32_t iv = 0
    cdef int r
    for r in range(shape.rounds):
        iv = _next(p, n, murmur, iv)
        out[r * keys.rows + row] = iv


cdef void _lanes(
    const Texts* keys, const int64_t* rows, int count, uint32_t length, const Shape* shape,
    uint8_t* bits, uint8_t* found, uint32_t* out
) noexcept nogil:
    """Up to LANES keys of one length.  Sets their bits, or `found` of those whose bits are all set, or `out`."""
    cdef uint32_t words[MAX_WORDS * LANES]
    cdef uint32_t tail[LANES]
    cdef uint32_t iv[LANES]
    cdef uint32_t place[LANES]
    cdef uint8_t alive[LANES]
    cdef int64_t nwords = length >> 2, w
    cdef const uint8_t* p
    cdef int j, r
    cdef uint8_t any_alive
    for j in range(LANES):
        # Spare lanes repeat the last key, which changes nothing.
        p = keys.data + keys.offsets[rows[j if j < count else count - 1]]
        for w in range(nwords):
            words[w * LANES + j] = hudi_mix_word(_word(p + 4 * w))
        tail[j] = _tail(p + length, length & 3) if length & 3 else 0
        iv[j] = 0
        alive[j] = 1
    for r in range(shape.rounds):
        hudi_round(words, nwords, tail, length, shape, iv, place)
        if out != NULL:
            for j in range(count):
                out[r * keys.rows + rows[j]] = iv[j]
        elif found == NULL:
            for j in range(LANES):
                bits[place[j] >> 3] |= <uint8_t>(1 << (place[j] & 7))
        else:
            any_alive = 0
            for j in range(LANES):
                alive[j] &= bits[place[j] >> 3] >> (place[j] & 7)
                any_alive |= alive[j]
            if not any_alive & 1:
                return
    if out == NULL and found != NULL:
        for j in range(count):
            found[rows[j]] = alive[j] & 1


cdef void _block(
    const Texts* keys, int64_t start, int64_t step, int count, bint murmur, const Shape* shape,
    uint8_t* bits, uint8_t* found, uint32_t* out
) noexcept nogil:
    """`count` keys, from row `start`, every `step`-th; with `found`, only those not found yet.

    With `out`, nothing is set or tested: the hash of row i in round r goes to out[r * rows + i].
    """
    cdef uint16_t order[BLOCK]
    cdef int ends[MAX_LENGTH + 2]
    cdef int64_t rows[LANES]
    cdef int64_t row, n
    cdef int i, j, length, first, last, fill
    memset(ends, 0, sizeof(ends))
    for i in range(count):
        row = start + i * step
        n = keys.offsets[row + 1] - keys.offsets[row]
        if n == 0 or (found != NULL and found[row]):
            continue
        if n > MAX_LENGTH or not murmur:
            if out != NULL:
                _hashes(keys, row, murmur, shape, out)
            elif _one(keys.data + keys.offsets[row], n, murmur, shape, bits, found == NULL) and found != NULL:
                found[row] = 1
            continue
        ends[n + 1] += 1
    for length in range(1, MAX_LENGTH + 2):
        ends[length] += ends[length - 1]
    # ends[n] is now where keys of length n begin; filling moves it to where they end.
    for i in range(count):
        row = start + i * step
        n = keys.offsets[row + 1] - keys.offsets[row]
        if n == 0 or n > MAX_LENGTH or not murmur or (found != NULL and found[row]):
            continue
        order[ends[n]] = <uint16_t>i
        ends[n] += 1
    first = 0
    for length in range(1, MAX_LENGTH + 1):
        last = ends[length]
        while first < last:
            fill = min(<int>LANES, last - first)
            for j in range(fill):
                rows[j] = start + order[first + j] * step
            if fill < FEW:
                for j in range(fill):
                    row = rows[j]
                    if out != NULL:
                        _hashes(keys, row, True, shape, out)
                    elif _one(
                        keys.data + keys.offsets[row], length, True, shape, bits, found == NULL
                    ) and found != NULL:
                        found[row] = 1
            else:
                _lanes(keys, rows, fill, <uint32_t>length, shape, bits, found, out)
            first += fill


cdef Shape _shape(int64_t size, int64_t rounds, int64_t nbytes) except *:
    if not 0 < size < 0x80000000 or not 0 < rounds < 0x10000 or nbytes < (size + 7) // 8:
        raise ValueError("a filter's size does not fit its bits")
    return hudi_make_shape(<uint32_t>size, <int>rounds)


def add(
    uint8_t[::1] bits not None, int64_t size, int64_t rounds, bint murmur,
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None,
    int64_t start, int64_t step, int64_t count,
):
    cdef Texts keys = texts(data, offsets)
    cdef Shape shape = _shape(size, rounds, bits.shape[0])
    cdef int64_t done = 0
    if count <= 0:
        return
    if start < 0 or step < 1 or start >= keys.rows or count - 1 > (keys.rows - 1 - start) // step:
        raise ValueError("rows that are not there")
    with nogil:
        while done < count:
            _block(
                &keys, start + done * step, step, <int>min(<int64_t>BLOCK, count - done), murmur, &shape,
                &bits[0], NULL, NULL,
            )
            done += BLOCK


def contains(
    const uint8_t[::1] bits not None, int64_t size, int64_t rounds, bint murmur,
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None, uint8_t[::1] found not None,
):
    cdef Texts keys = texts(data, offsets)
    cdef Shape shape = _shape(size, rounds, bits.shape[0])
    cdef int64_t done = 0
    if found.shape[0] != keys.rows:
        raise ValueError("one result per key is needed")
    if keys.rows == 0:
        return
    with nogil:
        while done < keys.rows:
            _block(
                &keys, done, 1, <int>min(<int64_t>BLOCK, keys.rows - done), murmur, &shape,
                <uint8_t*>&bits[0], &found[0], NULL,
            )
            done += BLOCK


def first_hashes(
    int64_t rounds, bint murmur,
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None, uint32_t[:, ::1] out not None,
):
    cdef Texts keys = texts(data, offsets)
    cdef Shape shape = _shape(8, rounds, 1)  # its size is of no account
    cdef int64_t done = 0
    if out.shape[0] != rounds or out.shape[1] != keys.rows:
        raise ValueError("one hash per round and key is needed")
    if keys.rows == 0:
        return
    with nogil:
        while done < keys.rows:
            _block(
                &keys, done, 1, <int>min(<int64_t>BLOCK, keys.rows - done), murmur, &shape,
                NULL, NULL, &out[0, 0],
            )
            done += BLOCK


cdef inline int _text_bit(const uint8_t* text, int64_t base, uint32_t place) noexcept nogil:
    """A filter's bit in base64 text: 0 or 1, above 1 where the digit is none."""
    # Bytes count their bits from the low end, base64 its digits from the high one.
    cdef int64_t at = 8 * (base + (place >> 3)) + 7 - (place & 7)
    cdef uint8_t digit = HUDI_BASE64[text[at // 6]]
    if digit > 63:
        return 2
    return digit >> (5 - at % 6) & 1


cdef int64_t _check_text(int64_t length, const int64_t[::1] bases, int64_t size) except -1:
    """How many rows of bits there are; all lie within the text."""
    cdef int64_t i, last
    for i in range(bases.shape[0]):
        last = bases[i] + (size + 7) // 8 - 1
        if bases[i] < 0 or last > (1 << 40) or (8 * last + 7) // 6 >= length:
            raise ValueError("a filter's bits leave its text")
    return bases.shape[0]


def screen(
    const uint8_t[::1] text not None, const int64_t[::1] bases not None, int64_t size,
    int64_t rounds, const uint32_t[:, ::1] hashes not None, const int64_t[::1] rows, int64_t[::1] out not None,
):
    cdef int64_t nrows = _check_text(text.shape[0], bases, size)
    cdef Shape shape = _shape(size, rounds, (size + 7) // 8)
    cdef int64_t keys = hashes.shape[1]
    cdef int64_t count = keys if rows is None else rows.shape[0]
    cdef int64_t i, b, r, row, found = 0
    cdef int bit = 1
    cdef bint inside = True
    if out.shape[0] < count or rounds > hashes.shape[0]:
        raise ValueError("room for every key and its hashes are needed")
    if rows is not None:
        with nogil:
            for i in range(count):
                inside &= 0 <= rows[i] < keys
        if not inside:
            raise ValueError("rows that are not there")
    if count == 0 or nrows == 0:
        return 0
    with nogil:
        for i in range(count):
            row = i if rows is None else rows[i]
            for b in range(nrows):
                for r in range(rounds):
                    bit = _text_bit(&text[0], bases[b], hudi_place(hashes[r, row], &shape))
                    if bit != 1:
                        break
                if bit != 0:
                    break
            if bit > 1:
                break
            if bit:
                out[found] = row
                found += 1
    return -1 if bit > 1 else found


def confirm(
    const uint8_t[::1] text not None, const int64_t[::1] bases not None, int64_t size, int64_t rounds,
    bint murmur, const uint8_t[::1] data not None, const int64_t[::1] offsets not None,
    int64_t[::1] rows not None, int64_t count,
):
    cdef int64_t nrows = _check_text(text.shape[0], bases, size)
    cdef Texts keys = texts(data, offsets)
    cdef Shape shape = _shape(size, rounds, (size + 7) // 8)
    cdef int64_t i, b, n, row, found = 0
    cdef uint32_t iv
    cdef const uint8_t* p
    cdef int r, bit = 0
    if count < 0 or count > rows.shape[0]:
        raise ValueError("rows that are not there")
    for i in range(count):
        if not 0 <= rows[i] < keys.rows:
            raise ValueError("rows that are not there")
    with nogil:
        for i in range(count):
            row = rows[i]
            p = keys.data + keys.offsets[row]
            n = keys.offsets[row + 1] - keys.offsets[row]
            bit = 0
            for b in range(nrows):
                iv = 0
                for r in range(shape.rounds):
                    iv = _next(p, n, murmur, iv)
                    bit = _text_bit(&text[0], bases[b], hudi_place(iv, &shape))
                    if bit != 1:
                        break
                if bit != 0:
                    break
            if bit > 1:
                break
            if bit:
                rows[found] = row
                found += 1
    return -1 if bit > 1 else found


def prefixes(
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None, int64_t skip,
    uint64_t[::1] out not None,
):
    cdef Texts keys = texts(data, offsets)
    cdef int64_t i, at, end, n
    cdef int k
    cdef uint64_t v
    if out.shape[0] != keys.rows or skip < 0:
        raise ValueError("one result per key is needed")
    with nogil:
        for i in range(keys.rows):
            at, end = keys.offsets[i] + skip, keys.offsets[i + 1]
            v = 0
            for k in range(8):
                v <<= 8
                if at + k < end:
                    v |= keys.data[at + k]
            out[i] = v


def hash_bytes(const uint8_t[::1] data not None, int64_t seed, bint murmur):
    cdef int64_t n = data.shape[0]
    cdef const uint8_t* p = &data[0] if n else NULL
    return <int32_t>_next(p, n, murmur, <uint32_t>seed)


def places(const uint8_t[::1] data not None, int64_t size, int64_t rounds, bint murmur):
    cdef Shape shape = _shape(size, rounds, (size + 7) // 8)
    cdef int64_t n = data.shape[0]
    cdef const uint8_t* p = &data[0] if n else NULL
    cdef uint32_t iv = 0
    out = []
    for _ in range(rounds):
        iv = _next(p, n, murmur, iv)
        out.append(hudi_place(iv, &shape))
    return out
