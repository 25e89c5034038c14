"""Bloom filters against Apache Hudi's own, and against a plain-Python reference."""

import base64
import math
import pickle
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError, RecordKeyError
from hudi_index.bloom import _filter
from hudi_index.bloom.filter import BloomFilter, parse_filter, shape_for

DATA = Path(__file__).parent.parent / "data"


def signed(x):
    return (x & 0xFFFFFFFF) - (1 << 32 if x & 0x80000000 else 0)


def murmur(data, seed):
    """Hadoop's MurmurHash, word for word as the format's documentation gives it."""
    m, h = 0x5BD1E995, (seed ^ len(data)) & 0xFFFFFFFF
    for i in range(0, len(data) & ~3, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & 0xFFFFFFFF
        k = (k ^ k >> 24) * m & 0xFFFFFFFF
        h = (h * m & 0xFFFFFFFF) ^ k
    left = len(data) & 3
    for n, shift in ((3, 16), (2, 8), (1, 0)):
        if left >= n:
            byte = data[len(data) - n]
            h ^= ((byte - 256 if byte > 127 else byte) << shift) & 0xFFFFFFFF
    if left:
        h = h * m & 0xFFFFFFFF
    h ^= h >> 13
    h = h * m & 0xFFFFFFFF
    return signed(h ^ h >> 15)


def places(key, bits, hashes):
    iv, out = 0, []
    for _ in range(hashes):
        iv = murmur(key, iv)
        out.append(int(abs(math.fmod(iv, bits))))
    return out


MURMUR = [
    ("a", -1838653602, 1529584742, 713507990),
    ("ab", 1525573013, -1464330887, -1797532438),
    ("abc", 1775488903, 1492699528, -1465591341),
    ("abcd", 646393889, -524664927, 1555318719),
    ("hello", -446617141, -1529287162, -1816943331),
    ("k001", -311570556, 1857524789, -1968563997),
    ("20240101", -1118823875, -684692526, -1360061459),
    ("id:1", 502315614, 1466189822, 474289644),
    ("é", -384040333, 1849032984, -1125067414),
    ("中文", 1072629655, -1032804740, 49346326),
    ("driver-0000-0000-0001", 1084448019, -2136130238, -1689049216),
]


@pytest.mark.parametrize(("text", "zero", "again", "minus_one"), MURMUR)
def test_murmur_gives_what_the_java_class_gives(text, zero, again, minus_one):
    data = text.encode()
    assert _filter.hash_bytes(data, 0, True) == zero == murmur(data, 0)
    assert _filter.hash_bytes(data, zero, True) == again
    assert _filter.hash_bytes(data, -1, True) == minus_one == murmur(data, -1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", 1490454280),
        ("abc", 238646833),
        ("hello", 885767278),
        ("driver-0000-0000-0001", -343555428),
    ],
)
def test_jenkins_gives_what_the_java_class_gives(text, value):
    assert _filter.hash_bytes(text.encode(), 0, False) == value


@given(st.binary(max_size=40), st.integers(-(2**31), 2**31 - 1))
def test_murmur_agrees_with_the_reference_for_any_bytes_and_seed(data, seed):
    assert _filter.hash_bytes(data, seed, True) == murmur(data, seed)


@given(st.binary(min_size=1, max_size=40), st.integers(1, 2**31 - 1), st.integers(1, 40))
@example(b"a", 1, 5)
@example(b"a", 2**31 - 1, 5)
@example(b"a", 2**30 + 1, 5)
def test_places_are_exact_remainders_for_every_size(key, bits, hashes):
    assert _filter.places(key, bits, hashes, True) == places(key, bits, hashes)


@pytest.mark.req("IX-17")
@pytest.mark.parametrize(
    ("entries", "fpp", "bits", "hashes"),
    [
        (60000, 1e-9, 2587966, 30),
        (1000, 1e-6, 28756, 20),
        (100, 1e-3, 1438, 10),
        (10, 1e-2, 96, 7),
        (2, 1e-1, 10, 4),
        (10000, 1e-9, 431328, 30),
        (1, 1e-9, 44, 31),
        (7, 0.5, 11, 2),
        (3, 0.9, 1, 1),
        (1000000, 1e-9, 43132763, 30),
    ],
)
def test_sizes_are_apache_hudis(entries, fpp, bits, hashes):
    shape = shape_for(entries, fpp)
    assert (shape.bits, shape.hashes) == (bits, hashes)


@pytest.mark.parametrize(
    ("entries", "fpp"), [(0, 0.1), (-1, 0.1), (5, 0.0), (5, 1.0), (5, -1.0), (5, math.nan), (2**31 - 1, 1e-9)]
)
def test_impossible_sizes_are_refused(entries, fpp):
    with pytest.raises(ValueError):
        BloomFilter.create("SIMPLE", entries, fpp)


def test_an_unknown_type_is_refused():
    with pytest.raises(ValueError, match="DYNAMIC_V0"):
        BloomFilter.create("CUCKOO")


@pytest.mark.req("IX-16", "IX-19")
def test_a_simple_filter_is_serialised_as_apache_hudi_does():
    f = BloomFilter.create("SIMPLE", 10, 0.01)
    f.add(pa.array(["abc", "hello"]))
    assert f.to_base64() == "/////wAAAAcBAAAAYIEIAIFgCQAUAAQgBA=="
    assert f.to_bytes().hex() == "ffffffff000000070100000060810800816009001400042004"


@pytest.mark.req("IX-18")
def test_a_dynamic_filter_grows_and_overflows_as_apache_hudi_does():
    f = BloomFilter.create("DYNAMIC_V0", 2, 0.1, 4)
    row = "ffffffff00000004010000000a"
    f.add(pa.array(["k1", "k2"]))
    assert f.to_bytes().hex() == row + "000000020000000200000001" + row + "6902"
    f.add(pa.array(["k3"]))
    assert f.to_bytes().hex() == row + "000000020000000100000002" + row + "6902" + row + "6801"
    f.add(pa.array(["k4", "k5", "k6"]))
    assert f.to_bytes().hex() == row + "000000020000000400000002" + row + "6f03" + row + "f801"
    f.add(pa.array(["k7", "k8"]))
    assert f.to_bytes().hex() == row + "000000020000000600000002" + row + "ef03" + row + "f803"


def dynamic_vectors():
    out = {}
    for line in (DATA / "dynamic_filters.txt").read_text().splitlines():
        entries, most, last, text = line.split("\t")
        out.setdefault((int(entries), int(most)), {})[int(last)] = text
    return out


@pytest.mark.req("IX-18")
@pytest.mark.parametrize(("entries", "most"), [(2, 4), (2, 5), (3, 3), (3, 10), (2, 0)])
def test_every_state_of_a_growing_filter_is_apache_hudis(entries, most):
    wanted = dynamic_vectors()[entries, most]
    assert len(wanted) == 23
    one_by_one = BloomFilter.create("DYNAMIC_V0", entries, 0.1, most)
    for i, text in wanted.items():
        one_by_one.add(pa.array([f"key{i}"]))
        assert one_by_one.to_base64() == text
        at_once = BloomFilter.create("DYNAMIC_V0", entries, 0.1, most)
        at_once.add(pa.array([f"key{k}" for k in range(i + 1)]))
        assert at_once.to_base64() == text
        again = parse_filter(text, "DYNAMIC_V0", max_entries=most)
        assert again.total == i + 1
        if i + 1 in wanted:
            again.add(pa.array([f"key{i + 1}"]))
            assert again.to_base64() == wanted[i + 1]


texts = st.lists(st.text(min_size=1, max_size=70), max_size=60)
# Lengths beyond the lanes' limit, and many keys of one length.
odd_texts = st.one_of(
    texts,
    st.lists(st.integers(0, 10**6).map("{:07d}".format), min_size=30, max_size=200),
    st.lists(st.integers(250, 300).map(lambda n: "é" * (n // 2) + "x" * (n % 2)), max_size=8),
)


@given(odd_texts, odd_texts, st.sampled_from([(3, 0.1), (40, 0.01), (500, 1e-9)]))
def test_bits_and_answers_agree_with_the_reference(added, asked, size):
    f = BloomFilter.create("SIMPLE", *size)
    f.add(pa.array(added, pa.string()))
    shape = f.shape
    bits = np.zeros(shape.nbytes * 8, dtype=bool)
    for key in added:
        bits[places(key.encode(), shape.bits, shape.hashes)] = True
    assert np.packbits(bits, bitorder="little").tobytes() == f.rows[0].tobytes()
    want = [bool(bits[places(k.encode(), shape.bits, shape.hashes)].all()) for k in added + asked]
    assert f.might_contain(pa.array(added + asked, pa.string())).to_pylist() == want
    assert all(want[: len(added)])


@given(odd_texts, st.integers(1, 7), st.integers(0, 30), st.integers(0, 4))
def test_chunks_slices_and_large_texts_give_the_same_filter(keys, entries, most, start):
    plain = BloomFilter.create("DYNAMIC_V0", entries, 0.2, most)
    plain.add(pa.array(keys[start:], pa.string()))
    pieces = BloomFilter.create("DYNAMIC_V0", entries, 0.2, most)
    middle = max(start, len(keys) // 2)
    large = pa.array(keys, pa.large_string())
    pieces.add(pa.chunked_array([large.slice(start, middle - start), large.slice(middle)]))
    assert pieces.to_base64() == plain.to_base64()
    assert pieces.might_contain(large.slice(start)).to_pylist() == [True] * len(keys[start:])


def test_more_keys_than_one_block_are_all_found_again():
    f = BloomFilter.create("DYNAMIC_V0", 5000, 1e-6, 12000)
    keys = pa.array([f"key-{i:06d}" for i in range(20_000)])
    f.add(keys)
    assert len(f.rows) == 3
    assert all(f.might_contain(keys).to_pylist())
    others = f.might_contain(pa.array([f"other-{i}" for i in range(20_000)]))
    assert sum(others.to_pylist()) < 20


def test_null_and_empty_keys_are_no_keys():
    f = BloomFilter.create("SIMPLE", 10, 0.01)
    f.add(pa.array(["a"]))
    assert f.might_contain(pa.array(["a", None, "", "b"])).to_pylist() == [True, None, False, False]
    for bad in (["a", None], ["b", ""]):
        before = f.to_base64()
        with pytest.raises(RecordKeyError):
            f.add(pa.array(bad))
        assert f.to_base64() == before


@pytest.mark.parametrize("bad", [["a", None], [None, ""], ["", "b", None, None]])
def test_each_key_that_is_none_counts_once(bad):
    none = sum(not key for key in bad)
    with pytest.raises(RecordKeyError, match=f"{none} keys are null or empty"):
        BloomFilter.create("SIMPLE", 10, 0.01).add(pa.array(bad))


def test_other_columns_than_text_are_refused():
    with pytest.raises(TypeError, match="int64"):
        BloomFilter.create().add(pa.array([1]))


def test_a_filter_of_the_unversioned_format_is_read_with_jenkins():
    shape_bits, hashes = 96, 5
    bits = np.zeros(12, dtype=np.uint8)
    for place in _filter.places(b"abc", shape_bits, hashes, False):
        bits[place >> 3] |= 1 << (place & 7)
    data = struct.pack(">ii", hashes, shape_bits) + bits.tobytes()
    f = parse_filter(base64.b64encode(data).decode())
    assert f.might_contain(pa.array(["abc", "nothing"])).to_pylist() == [True, False]


def sample_filters():
    simple = BloomFilter.create("SIMPLE", 10, 0.01)
    simple.add(pa.array(["abc", "hello"]))
    dynamic = BloomFilter.create("DYNAMIC_V0", 2, 0.1, 4)
    dynamic.add(pa.array(["k1", "k2", "k3"]))
    return [simple, dynamic]


def encoded(data):
    return base64.b64encode(data).decode()


@given(st.sampled_from(sample_filters()), st.data())
def test_every_truncation_and_every_extension_is_an_error(f, data):
    whole = f.to_bytes()
    assert parse_filter(encoded(whole), f.type_code).to_bytes() == whole
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptFileError) as e:
        parse_filter(encoded(whole[:cut]), f.type_code)
    assert 0 <= e.value.details["offset"] <= cut
    assert pickle.loads(pickle.dumps(e.value)).details == e.value.details
    with pytest.raises(CorruptFileError):
        parse_filter(encoded(whole + data.draw(st.binary(min_size=1, max_size=30))), f.type_code)


@given(
    st.one_of(st.text(max_size=60), st.binary(max_size=80).map(encoded)),
    st.sampled_from(["SIMPLE", "DYNAMIC_V0"]),
)
def test_junk_is_a_filter_that_answers_or_an_error(junk, code):
    try:
        f = parse_filter(junk, code)
    except CorruptFileError:
        return
    assert f.might_contain(pa.array(["a"])).to_pylist()[0] in (True, False)


@given(st.sampled_from(sample_filters()), st.integers(0, 24), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
def test_changed_bytes_of_the_header_never_crash_or_allocate_beyond_the_input(f, at, value):
    data = bytearray(f.to_bytes())
    data[at] = value
    try:
        parsed = parse_filter(encoded(bytes(data)), f.type_code)
    except CorruptFileError:
        return
    assert sum(row.nbytes for row in parsed.rows) <= len(data)
    parsed.might_contain(pa.array(["a"]))


@pytest.mark.parametrize(
    "header",
    [
        struct.pack(">iibi", -1, 30, 1, 2**31 - 1),  # more bits than there are bytes
        struct.pack(">iibi", -1, 2**31 - 1, 1, 8),  # hashing for hours
        struct.pack(">iibi", -1, 0, 1, 8),
        struct.pack(">iibi", -1, -5, 1, 8),
        struct.pack(">iibi", -1, 3, 1, 0),
        struct.pack(">iibi", -1, 3, 1, -8),
        struct.pack(">iibi", -1, 3, 7, 8),  # unknown hash function
        struct.pack(">iibi", -2, 3, 1, 8),  # unknown version
    ],
)
def test_hostile_headers_are_corrupt_files(header):
    for code in ("SIMPLE", "DYNAMIC_V0"):
        with pytest.raises(CorruptFileError):
            parse_filter(encoded(header + bytes(20)), code)


@pytest.mark.parametrize(
    "growth", [(0, 0, 1), (-1, 0, 1), (2, -1, 1), (2, 0, 0), (2, 0, -1), (2, 0, 2**31 - 1)]
)
def test_hostile_row_counts_are_corrupt_files(growth):
    header = struct.pack(">iibi", -1, 3, 1, 8)
    with pytest.raises(CorruptFileError):
        parse_filter(encoded(header + struct.pack(">iii", *growth) + header + b"\0"), "DYNAMIC_V0")


def test_a_row_of_another_shape_is_a_corrupt_file():
    one, other = struct.pack(">iibi", -1, 3, 1, 8), struct.pack(">iibi", -1, 4, 1, 8)
    with pytest.raises(CorruptFileError, match="shape differs"):
        parse_filter(encoded(one + struct.pack(">iii", 2, 0, 1) + other + b"\0"), "DYNAMIC_V0")


def test_text_that_is_no_base64_or_an_unknown_type_is_a_corrupt_file():
    good = sample_filters()[0].to_base64()
    for text, code in (
        ("%%%", "SIMPLE"),
        ("é", "SIMPLE"),
        (good[:-1], "SIMPLE"),
        (good, "CUCKOO"),
        ("", None),
    ):
        with pytest.raises(CorruptFileError):
            parse_filter(text, code)


def test_the_kernel_refuses_buffers_that_do_not_fit():
    bits, data = np.zeros(1, np.uint8), np.frombuffer(b"abc", np.uint8)
    sound = np.array([0, 3], np.int64)
    for offsets in ([0, 4], [-1, 3], [2, 1], [0, 9, 3]):
        with pytest.raises(ValueError):
            _filter.add(bits, 8, 3, True, data, np.array(offsets, np.int64), 0, 1, 1)
    for size, rounds in ((9, 3), (0, 3), (2**31, 3), (8, 0), (8, 1 << 20)):
        with pytest.raises(ValueError):
            _filter.add(bits, size, rounds, True, data, sound, 0, 1, 1)
    for start, step, count in ((0, 1, 2), (1, 1, 1), (-1, 1, 1), (0, 0, 1), (0, 2**62, 2)):
        with pytest.raises(ValueError):
            _filter.add(bits, 8, 3, True, data, sound, start, step, count)
    with pytest.raises(ValueError):
        _filter.contains(bits, 8, 3, True, data, sound, np.zeros(2, np.uint8))
