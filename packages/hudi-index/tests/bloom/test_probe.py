"""Look-ups in the text of bloom filters."""

import base64

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError
from hudi_index.bloom import _filter
from hudi_index.bloom.filter import BloomFilter, parse_filter
from hudi_index.bloom.probe import Probe, filter_text

KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
SHAPES = st.sampled_from(
    [
        ("SIMPLE", 10, 0.01, 0),
        ("SIMPLE", 100, 0.5, 0),
        ("DYNAMIC_V0", 5, 0.01, 20),
        ("DYNAMIC_V0", 7, 1e-9, 15),
        ("DYNAMIC_V0", 1, 0.3, 3),
    ]
)


@pytest.mark.req("IX-04", "IX-16", "IX-18", "IX-19")
@given(st.lists(KEYS, max_size=40), st.lists(KEYS, min_size=1, max_size=40), SHAPES)
def test_a_filter_answers_in_its_text_as_decoded(stored, asked, shape):
    filter = BloomFilter.create(*shape)
    filter.add(pa.array(stored, pa.string()))
    text = filter.to_base64()
    want = np.flatnonzero(
        parse_filter(text, shape[0]).might_contain(pa.array(asked, pa.string())).to_numpy(False)
    )
    probe = Probe(pa.array(asked, pa.string()))
    parsed = filter_text(memoryview(text.encode()), shape[0])
    assert probe.might_be_in(parsed).tolist() == want.tolist()
    some = np.arange(0, len(asked), 2)
    assert probe.might_be_in(parsed, some).tolist() == [i for i in want.tolist() if i % 2 == 0]


@pytest.mark.req("IX-04")
def test_filters_with_the_hash_of_ancient_releases_are_read():
    # Version 1 has no hash type: hashes, bits, Jenkins' hash.
    data = bytearray(bytes(8) + bytes(12))
    data[:8] = (3).to_bytes(4, "big") + (96).to_bytes(4, "big")
    for place in _filter.places(b"key", 96, 3, False):
        data[8 + place // 8] |= 1 << place % 8
    text = memoryview(base64.b64encode(data))
    assert Probe(pa.array(["key", "other"])).might_be_in(filter_text(text)).tolist() == [0]


@given(st.integers(0, 400))
def test_a_filter_that_is_cut_off_is_an_error(n):
    filter = BloomFilter.create("DYNAMIC_V0", 5, 0.01, 20)
    filter.add(pa.array([str(i) for i in range(18)]))
    text = filter.to_base64().encode()
    with pytest.raises(CorruptFileError):
        filter_text(memoryview(text[: min(n, len(text) - 1)]), "DYNAMIC_V0")


def test_a_digit_that_is_none_is_an_error_where_it_is_looked_at():
    filter = BloomFilter.create("SIMPLE", 10, 0.01)
    text = bytearray(filter.to_base64().encode())
    text[24:] = b"!" * (len(text) - 24)
    with pytest.raises(CorruptFileError, match="base64"):
        Probe(pa.array([str(i) for i in range(100)])).might_be_in(filter_text(memoryview(bytes(text))))


def test_the_kernels_refuse_what_leads_outside():
    probe = Probe(pa.array(["a", "b"]))
    text = filter_text(memoryview(BloomFilter.create("SIMPLE", 10, 0.01).to_base64().encode()))
    hashes = np.zeros((2, 2), np.uint32)
    out = np.zeros(2, np.int64)
    base = np.array([13], np.int64)
    with pytest.raises(ValueError, match="leave"):
        _filter.screen(text.text[:8], base, 96, 2, hashes, None, out)
    with pytest.raises(ValueError, match="not there"):
        _filter.screen(text.text, base, 96, 2, hashes, np.array([2]), out)
    with pytest.raises(ValueError, match="room"):
        _filter.screen(text.text, base, 96, 2, hashes, None, out[:1])
    with pytest.raises(ValueError, match="hashes"):
        _filter.screen(text.text, base, 96, 3, hashes, None, out)
    with pytest.raises(ValueError, match="size"):
        _filter.screen(text.text, base, 96, 0, hashes, None, out)
    data, offsets, _ = probe.buffers
    with pytest.raises(ValueError, match="not there"):
        _filter.confirm(text.text, base, 96, 7, True, data, offsets, np.array([5]), 1)
    with pytest.raises(ValueError, match="per round"):
        _filter.first_hashes(3, True, data, offsets, hashes)
    with pytest.raises(ValueError, match="per key"):
        _filter.prefixes(data, offsets, 0, np.zeros(1, np.uint64))


@settings(max_examples=20)
@given(
    st.lists(st.text("ab\U00010000", min_size=1, max_size=40), min_size=1, max_size=300),
    st.integers(1, 2**31 - 1),
    st.booleans(),
)
def test_hashes_made_ahead_are_those_of_one_key_at_a_time(keys, size, murmur):
    probe = Probe(pa.array(keys, pa.string()))
    data, offsets, _ = probe.buffers
    out = np.zeros((5, len(keys)), np.uint32)
    _filter.first_hashes(5, murmur, data, offsets, out)
    bits = np.abs(out.view(np.int32).astype(np.int64)) % size
    for i, key in enumerate(keys):
        assert bits[:, i].tolist() == _filter.places(key.encode(), size, 5, murmur)


def test_keys_are_hashed_once_for_filters_of_all_sizes(monkeypatch):
    calls, hashed = [], _filter.first_hashes
    monkeypatch.setattr(_filter, "first_hashes", lambda *a: calls.append(a) or hashed(*a))
    keys = pa.array([f"key-{n}" for n in range(300)])
    probe = Probe(keys)
    for entries in range(1, 300, 7):
        filter = BloomFilter.create("DYNAMIC_V0", entries, 0.01, 3 * entries)
        filter.add(keys.slice(0, entries))
        text = memoryview(filter.to_base64().encode())
        want = np.flatnonzero(filter.might_contain(keys).to_numpy(False)).tolist()
        assert probe.might_be_in(filter_text(text, "DYNAMIC_V0")).tolist() == want
    assert len(calls) == 1
