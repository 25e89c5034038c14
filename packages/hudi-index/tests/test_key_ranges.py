"""Keys that ranges admit, beside a comparison of each key with each range."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index import keys_in_ranges

TEXTS = st.text(alphabet="ab\x00\xe9中😀", max_size=4)


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


def test_rows_come_in_the_order_of_their_keys():
    found = keys_in_ranges(pa.array(["c", "a", "b"]), pa.array(["a"]), pa.array(["c"]))
    assert found.rows(0).tolist() == [1, 2, 0]


def test_as_many_least_as_greatest_keys_are_asked_for():
    with pytest.raises(ValueError, match="1 least and 2 greatest"):
        keys_in_ranges(pa.array(["a"]), pa.array(["a"]), pa.array(["a", "b"]))
