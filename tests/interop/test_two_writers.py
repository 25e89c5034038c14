"""One table that Apache Hudi 0.15.0 and this project write in turn at random, under any retention, beside twins of one
writer: the same rows, schema, nullability and active instants.

A seed is a history; `python tools/interop/two_writers.py` tries others.
"""

import pytest

from interop.two_writers import TwoWriters, run
from interop.unseen import APACHE_FAILS, SAME, WRONG

SEEDS = [3005, *range(3006, 3017), 3000, *range(3017, 3028)]


@pytest.mark.req("TS-31", "TS-20", "TM-20")
@pytest.mark.parametrize("seed", SEEDS)
def test_histories_of_two_writers_end_as_those_of_one(pool, apache, tmp_path, seed):
    text, found = run(seed, apache, pool.ours, tmp_path)
    assert not [o for o in found if o.kind in WRONG], text
    # What Apache Hudi cannot do ends a history; of one that goes on it can read all, or both say what is missing.
    assert sum(o.kind == SAME for o in found) > 4 or any(o.kind == APACHE_FAILS for o in found), text


def test_a_seed_is_the_same_history_each_time():
    one, again = TwoWriters(7), TwoWriters(7)
    assert str(one) == str(again)
    assert one.rows.new(5) == again.rows.new(5)
