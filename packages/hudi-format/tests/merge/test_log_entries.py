"""Log records as a merge holds them: taken by place, and found by the number of their key."""

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.merge.log_entries import Entries, Resolved


def entries(ordering=True):
    rows = pa.table({"v": [1, 2, 3, 4]})
    keys = pa.array(["a", "a", "b", "c"])
    return Entries(rows, keys, pa.array([9, 8, 7, 6]) if ordering else None, np.array([0, 1, 0, 0], np.uint8))


@pytest.mark.parametrize("ordering", [True, False])
def test_records_are_taken_with_all_that_belongs_to_them(ordering):
    taken = entries(ordering).take(np.array([2, 1]))
    assert len(taken) == 2
    assert taken.rows["v"].to_pylist() == [3, 2]
    assert taken.keys.to_pylist() == ["b", "a"]
    assert taken.kinds.tolist() == [0, 1]
    assert (taken.ordering.to_pylist() if ordering else taken.ordering) == ([7, 8] if ordering else None)


def test_stored_rows_meet_the_one_record_of_their_key():
    resolved = Resolved(entries(), pa.array(["a", "b"]), np.array([1, 2]))
    hits = np.array([1, -1, 0])
    met = resolved.patches(hits)
    assert (met.found.tolist(), met.counts) == ([1, -1, 0], None)


def test_stored_rows_meet_all_records_of_their_key_in_order():
    resolved = Resolved(
        entries(), pa.array(["a", "b", "c"]), np.array([1, 2, 3]), np.array([0, 2, 3]), np.array([2, 1, 1])
    )
    met = resolved.patches(np.array([2, -1, 0, 0]))
    assert met.found.tolist() == [3, -1, 0, 0]
    assert met.counts.tolist() == [1, 0, 2, 2]


def test_without_any_key_no_row_meets_anything():
    none = np.array([], np.int64)
    met = Resolved(entries(), pa.array([], pa.string()), none, none, none).patches(np.array([-1, -1]))
    assert (met.found.tolist(), met.counts.tolist()) == ([-1, -1], [0, 0])
