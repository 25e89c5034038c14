"""Keys that ranges admit, beside a comparison of each key with each range."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index import keys_in_ranges

TEXTS = st.text(alphabet="ab\x00\xe9中", max_size=4)
# These stand in one order in UTF-8 and in another one in UTF-16, as Java compares.
ANY_TEXTS = st.text(alphabet="ab\x00\xe9中\ue000\uffff😀", max_size=4)


def units(text):
    return text.encode("utf-16-be")


@pytest.mark.req("IX-20")
@given(
    keys=st.lists(TEXTS, max_size=12),
    ranges=st.lists(st.tuples(st.none() | TEXTS, st.none() | TEXTS), max_size=6),
    chunked=st.booleans(),
)
def test_each_range_admits_the_keys_between_its_ends(keys, ranges, chunked):
    column = pa.array(keys, pa.string())
    given_keys = pa.chunked_array([column.slice(0, 3), column.slice(3)]) if chunked else column
    low, high = (pa.array([r[n] for r in ranges], pa.string()) for n in (0, 1))
    found = keys_in_ranges(given_keys, low, high)
    for number, (least, most) in enumerate(ranges):
        want = [
            n
            for n, key in enumerate(keys)
            if least is None or most is None or least.encode() <= key.encode() <= most.encode()
        ]
        assert sorted(found.rows(number).tolist()) == want
        assert found.counts[number] == len(want)


@pytest.mark.req("IX-20")
@given(
    keys=st.lists(ANY_TEXTS, min_size=1, max_size=12),
    held=st.sets(st.integers(0, 11), min_size=1, max_size=4),
)
def test_the_range_of_a_file_admits_its_keys_in_whichever_order_it_was_taken(keys, held):
    own = [keys[n % len(keys)] for n in held]
    ranges = [(min(own, key=order), max(own, key=order)) for order in (units, str.encode)]
    low, high = (pa.array([r[n] for r in ranges], pa.string()) for n in (0, 1))
    found = keys_in_ranges(pa.array(keys, pa.string()), low, high)
    for number in range(2):
        assert set(own) <= {keys[n] for n in found.rows(number)}


def test_rows_come_in_the_order_of_their_keys():
    found = keys_in_ranges(pa.array(["c", "a", "b"]), pa.array(["a"]), pa.array(["c"]))
    assert found.rows(0).tolist() == [1, 2, 0]


def test_as_many_least_as_greatest_keys_are_asked_for():
    with pytest.raises(ValueError, match="1 least and 2 greatest"):
        keys_in_ranges(pa.array(["a"]), pa.array(["a"]), pa.array(["a", "b"]))


@pytest.mark.req("IX-20")
def test_numbers_are_refused_as_the_order_of_their_texts_is_another():
    numbers = pa.array([5, 10])
    with pytest.raises(TypeError, match="expected a text column, got int64"):
        keys_in_ranges(numbers, pa.array([3]), pa.array([12]))
