"""Keys looked for in texts and values, against a search for each by itself."""

import random
import re

import pyarrow as pa
import pytest

from hudi_timeline.keys.key_traces import Needles, TracedKeys, _length

LETTERS = 'ab-_.:" \x00é中'


def texts(rng, count, longest):
    return ["".join(rng.choices(LETTERS, k=rng.randrange(longest))) for _ in range(count)]


def by_itself(key, data):
    """What was asked of each key before: its own pattern."""
    raw = key.encode()
    if len(raw) < 4:
        return b'"' + raw + b'"' in data
    return re.search(rb"(?<![\w-])" + re.escape(raw) + rb"(?![\w-])", data) is not None


@pytest.mark.req("NEW-18")
@pytest.mark.parametrize("seed", range(40))
def test_all_keys_at_once_are_found_where_each_is_by_itself(seed):
    rng = random.Random(seed)
    keys = sorted({*texts(rng, 60, 9), "", "abab", "a", "-ab-", "é中"})
    parts = [*rng.choices(keys, k=20), *texts(rng, 20, 6), *(f'"{k}"' for k in rng.choices(keys, k=5))]
    data = "".join(part + rng.choice(["", " ", "a", "-", '"', "."]) for part in parts).encode()
    wanted = TracedKeys(pa.array(keys), None)
    assert wanted.in_text(data) == [k for k in keys if by_itself(k, data)]
    assert wanted.in_text(memoryview(data)) == wanted.in_text(data)
    assert wanted.in_text(b"") == []


@pytest.mark.req("NEW-18")
@pytest.mark.parametrize("seed", range(20))
def test_keys_in_records_stand_with_their_length_in_one_of_them(seed):
    rng = random.Random(seed)
    keys = sorted({k for k in texts(rng, 60, 90) if len(k.encode()) >= 4} | {"é" * 70})

    def measured(key):
        return _length(len(key.encode())) + key.encode()

    values = [
        b"".join(rng.choice([measured(k), k.encode(), b"\x02"]) for k in rng.choices(keys, k=3))
        for _ in range(8)
    ]
    torn = measured(keys[0])
    values += [None, b"", torn[:3], torn[3:]]  # begins in one record and ends in the next
    wanted = TracedKeys(pa.array(keys), None)
    whole = pa.array([b"left out", *values], pa.binary())
    forms = [
        pa.chunked_array([values[:4], values[4:]], pa.binary()),
        pa.chunked_array([whole.slice(1, 5), whole.slice(6)]),
        pa.chunked_array([values], pa.large_binary()),
    ]
    want = [k for k in keys if any(measured(k) in v for v in values if v)]
    assert [wanted.in_values(form) for form in forms] == [want] * 3


def test_no_needles_and_needles_longer_than_what_is_searched():
    assert list(Needles({}).within(b"abc")) == []
    assert list(Needles({b"abcd": "k"}).within(b"abc")) == []
    assert list(Needles({b"a": "short", b"abcd": "long"}).within(b"xabcd")) == [
        ("short", 1, 2),
        ("long", 1, 5),
    ]
