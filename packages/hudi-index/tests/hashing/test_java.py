"""Java's hashes, order and buckets, against Java's own answers and a plain-Python reference."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index import BloomFilter, keys_in_ranges, ring_hashes
from hudi_index.hashing import _java
from hudi_index.hashing.java import (
    ORDERS_PART,
    bucket_ids,
    crc32,
    java_hash,
    min_max,
    orders_part,
    text_bounds,
)

DATA = Path(__file__).parent.parent / "data"


def signed(x):
    return (x & 0xFFFFFFFF) - (1 << 32 if x & 0x80000000 else 0)


def units(text):
    data = text.encode("utf-16-be")
    return [data[i] << 8 | data[i + 1] for i in range(0, len(data), 2)]


def string_hash(text):
    h = 0
    for unit in units(text):
        h = 31 * h + unit & 0xFFFFFFFF
    return signed(h)


def hash_keys(key, fields):
    """BucketIdentifier.getHashKeys of 0.15."""
    if ":" not in key:
        return [key]
    parts = key.split(",")
    while parts and parts[-1] == "":
        parts.pop()
    out = []
    for part in parts:
        name, colon, value = part.partition(":")
        if not colon:
            out.append(part)
        elif name in fields:
            out.append({"__null__": None, "__empty__": ""}.get(value, value))
    return out


def bucket(key, fields, buckets):
    h = 1
    for element in hash_keys(key, fields):
        h = 31 * h + (0 if element is None else string_hash(element)) & 0xFFFFFFFF
    return (h & 0x7FFFFFFF) % buckets


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("abc", 96354),
        ("key1", 3288498),
        ("k001", 3235302),
        ("uuid:1", -834078670),
        ("2024/01/01", -556081408),
        ("中", 20013),
        ("polygenelubricants", -(2**31)),
    ],
)
def test_hashes_are_those_of_java(text, value):
    assert java_hash(pa.array([text])).to_pylist() == [value] == [string_hash(text)]


@given(st.lists(st.one_of(st.none(), st.text(max_size=40))), st.integers(0, 5))
def test_hashes_agree_with_the_reference_also_in_slices_and_chunks(texts, start):
    array = pa.array(texts, pa.string()).slice(min(start, len(texts)))
    want = [None if t is None else string_hash(t) for t in array.to_pylist()]
    assert java_hash(array).to_pylist() == want
    assert (
        java_hash(
            pa.chunked_array([array.cast(pa.large_string()), array[:0].cast(pa.large_string())])
        ).to_pylist()
        == want
    )
    assert java_hash(array).type == pa.int32()


@pytest.mark.req("IX-10", "IX-22")
@pytest.mark.parametrize(
    ("key", "fields", "buckets", "want"),
    [
        ("abc", "uuid", 4, 1),
        ("abc", "uuid", 8, 1),
        ("uuid:abc,i32:5", "uuid,i32", 4, 0),
        ("uuid:abc,i32:5", "i32", 4, 0),
        ("uuid:abc,i32:__null__", "uuid,i32", 4, 3),
        ("uuid:abc,i32:__empty__", "uuid,i32", 4, 3),
        ("k001", "uuid", 256, 5),
        # The next ones from BucketIdentifier.getBucketId of 0.15.0.
        ("uuid:a,", "uuid", 1000003, 128),
        ("a:,", "uuid", 1000003, 1),
        (":,:", "uuid", 1000003, 1),
        (",a:b", "uuid", 1000003, 31),
        ("uuid:a,,b:2", "uuid", 1000003, 3968),
        ("a:b:c,d", "uuid", 1000003, 131),
        ("uuid:a", "other", 1000003, 1),
        ("uuid:a,b,i32:5", "uuid,i32", 1000003, 126099),
        (",,:", "uuid", 1000003, 961),
        ("x:__null__,y:__empty__,z:__null__a", "x,y,z", 1000003, 623388),
        ("plain,comma", "uuid", 1000003, 39296),
        ("a:b", "uuid", 1000003, 1),
        ("uuid:,i:", "uuid,i", 1000003, 961),
        ("x:", "uuid", 1000003, 1),
    ],
)
def test_buckets_are_apache_hudis(key, fields, buckets, want):
    names = fields.split(",")
    assert bucket_ids(pa.array([key]), names, buckets).to_pylist() == [want]
    assert bucket_ids(pa.array([key]), names[::-1], buckets).to_pylist() == [want]
    assert bucket(key, names, buckets) == want


@pytest.mark.req("IX-10", "IX-22")
def test_every_key_of_a_golden_bucket_table_is_in_its_bucket():
    files = [r for r in pq.read_table(DATA / "golden_footers.parquet").to_pylist() if r["bucket"] is not None]
    assert len(files) == 30
    for row in files:
        assert set(bucket_ids(pa.array(row["keys"]), ["uuid"], 4).to_pylist()) == {row["bucket"]}


key_texts = st.lists(
    st.one_of(
        st.text(alphabet="ab:,é😀_", max_size=12),
        st.lists(
            st.tuples(
                st.sampled_from(["a", "b", "é"]), st.sampled_from(["", "x", "__null__", "__empty__", "a:b"])
            ),
            max_size=3,
        ).map(lambda parts: ",".join(f"{n}:{v}" for n, v in parts)),
    ),
    max_size=20,
)


@given(key_texts, st.lists(st.sampled_from(["a", "b", "é", ""]), max_size=3), st.integers(1, 2**31 - 1))
def test_buckets_agree_with_the_reference(keys, fields, buckets):
    array = pa.array([*keys, None], pa.string())
    assert bucket_ids(array, fields, buckets).to_pylist() == [
        *(bucket(k, fields, buckets) for k in keys),
        None,
    ]


@pytest.mark.parametrize("buckets", [0, -1, 2**31])
def test_impossible_bucket_counts_are_refused(buckets):
    with pytest.raises(ValueError):
        bucket_ids(pa.array(["a"]), ["id"], buckets)


@pytest.mark.parametrize("number", [2.5, "4", None])
def test_a_number_of_buckets_is_a_whole_number(number):
    with pytest.raises(TypeError):
        bucket_ids(pa.array(["a"]), ["id"], number)


def test_one_hash_field_may_stand_for_itself():
    keys = pa.array(["id:1,x:2", "id:7,x:2"])
    assert bucket_ids(keys, "id", 64).equals(bucket_ids(keys, ["id"], 64))


FUNCTIONS = {
    "java_hash": java_hash,
    "min_max": min_max,
    "bucket_ids": lambda a: bucket_ids(a, ["id"], 7),
    "ring_hashes": lambda a: ring_hashes(a, ["id"]),
    "crc32": crc32,
    "keys_in_ranges": lambda a: keys_in_ranges(a, a, a).counts.tolist(),
    "might_contain": BloomFilter.create("SIMPLE", 10, 0.01).might_contain,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "other", [["a"], "a", np.array(["a"]), pa.array([1]), pa.array([b"a"]), pa.array([["a"]])]
)
def test_what_is_no_text_column_is_refused_by_every_function(name, other):
    with pytest.raises(TypeError, match="expected a text column"):
        FUNCTIONS[name](other)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_text_counts_alike_in_every_encoding(name):
    function, texts = FUNCTIONS[name], pa.array(["x", "a", "a", None, "", "é", "\U0001f600"]).slice(1)
    views = texts.cast(pa.string_view())
    encodings = [
        texts.cast(pa.large_string()),
        views,
        texts.dictionary_encode(),
        pc.run_end_encode(texts),
        pa.chunked_array([texts[:2], texts[2:]]),
        pa.chunked_array([views[:0], views]),
    ]

    def plain(found):
        return found.to_pylist() if hasattr(found, "to_pylist") else found

    assert all(plain(function(e)) == plain(function(texts)) for e in encodings)


texts_near_the_surrogates = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab\ud7ff\ue000\uffff\U00010000\U0010ffff\x00\x7f\x80"), st.characters(codec="utf-8")
    ),
    max_size=12,
)


@given(st.lists(st.one_of(st.none(), texts_near_the_surrogates), max_size=12), st.text("ab", max_size=10))
def test_least_and_greatest_are_by_utf16_units(texts, prefix):
    array = pa.array([None if t is None else prefix + t for t in texts], pa.string())
    present = sorted((t for t in array.to_pylist() if t is not None), key=units)
    want = (present[0], present[-1]) if present else None
    assert min_max(array) == want
    middle = len(array) // 2
    assert min_max(pa.chunked_array([array.slice(0, middle), array.slice(middle)])) == want


def test_supplementary_characters_come_before_the_private_use_area():
    assert min_max(pa.array(["\uffff", "😀"])) == ("😀", "\uffff")  # by bytes it would be the other way


@given(st.binary(max_size=12))
def test_bytes_that_are_no_utf8_are_hashed_or_refused_but_never_read_past(data):
    content = np.frombuffer(data, np.uint8)
    out = np.zeros(1, np.int32)
    try:
        _java.string_hashes(content, np.array([0, len(data)], np.int64), out)
    except ValueError:
        with pytest.raises(UnicodeDecodeError):
            data.decode()


def test_the_kernel_refuses_buffers_that_do_not_fit():
    content, out = np.frombuffer(b"abc", np.uint8), np.zeros(1, np.int32)
    for offsets in ([0, 4], [-1, 3], [2, 1]):
        with pytest.raises(ValueError):
            _java.string_hashes(content, np.array(offsets, np.int64), out)
    sound = np.array([0, 3], np.int64)
    with pytest.raises(ValueError):
        _java.string_hashes(content, sound, np.zeros(2, np.int32))
    with pytest.raises(ValueError):
        _java.extremes(content, sound, np.zeros(2, np.uint8))
    with pytest.raises(ValueError):
        _java.bucket_ids(content, sound, content, sound, 0, out)


@given(st.lists(texts_near_the_surrogates, min_size=1, max_size=8))
def test_where_no_end_is_apart_all_orders_of_a_range_agree(texts):
    least, greatest = min_max(pa.array(texts, pa.string()))
    apart = orders_part(least) or orders_part(greatest)
    assert apart == (orders_part(least.encode()) or orders_part(greatest.encode()))
    matched = pc.match_substring_regex(pa.array([least, greatest]), ORDERS_PART)
    assert apart == pc.any(matched).as_py()
    assert apart or (least, greatest) == (min(texts), max(texts))


def test_text_bounds_hold_in_both_orders():
    draw = random.Random(7)
    alphabet, behind_all = "ab\ud7ff\ue000\ufffd\uffff\U00010000\U0001f600\U0010ffff", 0
    for _ in range(3000):
        texts = ["".join(draw.choices(alphabet, k=draw.randrange(5))) for _ in range(draw.randint(1, 4))]
        found = text_bounds(min(texts), max(texts))
        if found is None:
            behind_all += 1
            assert max(texts).lstrip("\uffff")[0] > "\uffff"
            continue
        for order in ("utf-8", "utf-16-be"):
            low, *inside, high = (t.encode(order) for t in (found[0], *texts, found[1]))
            assert all(low <= t <= high for t in inside)
    assert 0 < behind_all < 3000
