"""Hashes and places of consistent hashing, beside a reference that is written out in Python."""

import bisect

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index import ring_hashes, ring_places
from hudi_index.hashing import _ring

MASK = 0xFFFFFFFF
P = (2654435761, 2246822519, 3266489917, 668265263, 374761393)


def rotated(x, n):
    return (x << n | x >> (32 - n)) & MASK


def xxh32(data):
    lanes = [P[0] + P[1], P[1], 0, -P[0]]
    at, size = 0, len(data)
    h = P[4]
    if size >= 16:
        while at + 16 <= size:
            for n in range(4):
                word = int.from_bytes(data[at + 4 * n : at + 4 * n + 4], "little")
                lanes[n] = rotated((lanes[n] + word * P[1]) & MASK, 13) * P[0] & MASK
            at += 16
        h = sum(rotated(lanes[n] & MASK, (1, 7, 12, 18)[n]) for n in range(4))
    h = (h + size) & MASK
    while at + 4 <= size:
        h = rotated((h + int.from_bytes(data[at : at + 4], "little") * P[2]) & MASK, 17) * P[3] & MASK
        at += 4
    for byte in data[at:]:
        h = rotated((h + byte * P[4]) & MASK, 11) * P[0] & MASK
    for shift, prime in ((15, P[1]), (13, P[2]), (16, 1)):
        h = (h ^ h >> shift) * prime & MASK
    return h


def reference(key, fields):
    """What BucketIdentifier.getHashKeys and String.join give."""
    if ":" not in key:
        return xxh32(key.encode()) & 0x7FFFFFFF
    parts = key.split(",")
    while parts and parts[-1] == "":
        parts.pop()
    out = []
    for part in parts:
        name, colon, value = part.partition(":")
        if not colon:
            out.append(part)
        elif name in fields:
            out.append({"__null__": "null", "__empty__": ""}.get(value, value))
    return xxh32("".join(out).encode()) & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 46947589), ("a", 1426945110), ("abc", 852579327), ("key1", 133378825), ("中", 1409146971),
     (".", 980023493), ("2024/01/01", 1126097859), ("city=0/2024", -2074532432)],
)  # fmt: skip
def test_hashes_are_those_of_apache_hudi_without_their_sign(text, value):
    assert ring_hashes(pa.array([text]), ["id"]).to_pylist() == [value & 0x7FFFFFFF]


KEYS = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.lists(
            st.tuples(st.sampled_from(["a", "b", "é", ""]), st.sampled_from(["__null__", "__empty__", "x", "中𝄞", ""])),
            max_size=5,
        ).map(lambda parts: ",".join(f"{n}:{v}" for n, v in parts)),
    ),
    max_size=20,
)  # fmt: skip


@given(KEYS, st.sampled_from([["a"], ["a", "é"], [""], []]), st.integers(0, 3))
def test_hashes_agree_with_the_reference_also_in_slices_and_chunks(keys, fields, start):
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        array = pa.array(keys, kind)
        want = [reference(k, fields) for k in keys]
        assert ring_hashes(array.slice(start), fields).to_pylist() == want[start:]
        assert ring_hashes(pa.chunked_array([array, array.slice(start)]), fields).to_pylist() == [
            *want,
            *want[start:],
        ]


def test_a_null_has_no_hash():
    assert ring_hashes(pa.array(["a", None]), ["id"]).to_pylist()[1] is None
    assert ring_hashes(pa.chunked_array([], pa.string()), ["id"]).to_pylist() == []


RINGS = st.lists(
    st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=9, unique=True).map(sorted), min_size=1
)


@given(RINGS, st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 50))))
def test_a_hash_goes_to_the_first_node_not_below_it_else_to_the_first(rings, rows):
    hashes = np.array([h for h, _ in rows], dtype=np.int32)
    codes = np.array([c % len(rings) for _, c in rows], dtype=np.int32)
    want = [
        bisect.bisect_left(rings[c], h) % len(rings[c])
        for h, c in zip(hashes.tolist(), codes.tolist(), strict=True)
    ]
    assert ring_places(hashes, rings, codes).tolist() == want


@pytest.mark.parametrize("rings", [[], [[]], [[1], []]])
def test_rows_without_a_ring_are_refused(rings):
    with pytest.raises(ValueError, match="no ring"):
        ring_places(np.array([1], dtype=np.int32), rings)


def test_values_of_a_ring_ascend():
    with pytest.raises(ValueError, match="do not ascend"):
        ring_places(np.array([1], dtype=np.int32), [[3], [1, 9, 7]], np.array([1]))
    assert ring_places(np.array([4], dtype=np.int32), [[3, 7], [1, 9]], np.array([1])).tolist() == [1]


def test_a_null_has_no_place():
    with pytest.raises(TypeError, match="without nulls"):
        ring_places(ring_hashes(pa.array(["a", None]), ["id"]), [[3, 7]])


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 2], [2, 1]])
def test_the_kernel_refuses_offsets_that_leave_the_data(offsets):
    data, given = np.zeros(4, np.uint8), np.array(offsets, np.int64)
    none = np.zeros(0, np.uint8), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="leave the data"):
        _ring.key_hashes(data, given, *none, np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="leave the data"):
        _ring.key_hashes(data, np.array([0, 1]), data, given, np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="one result"):
        _ring.key_hashes(data, np.array([0, 1]), *none, np.zeros(2, np.int32))
