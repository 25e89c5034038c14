"""Ordering values of several fields: compared field by field, null first."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import SchemaError
from hudi_format.merge.ordering import ordering_values, sequences

FIELDS = (pa.int64(), pa.string(), pa.float64(), pa.timestamp("us", "UTC"))
NUMBERS, MOMENTS = st.sampled_from([None, -1, 0, 1, 2**62]), st.sampled_from([None, 0, 1, 10**15])
ROWS = st.lists(
    st.tuples(NUMBERS, st.sampled_from([None, "", "a", "b", "é", "\U0001f600"]),
              st.sampled_from([None, -1.5, 0.0, 2.5]), MOMENTS),
    max_size=12,
)  # fmt: skip


def structs(rows):
    columns = [pa.array([r[n] for r in rows], t) for n, t in enumerate(FIELDS)]
    return pa.StructArray.from_arrays(columns, [str(n) for n in range(len(FIELDS))])


def in_order(row):
    return tuple((v is not None, (v or "").encode() if n == 1 else v or 0) for n, v in enumerate(row))


@pytest.mark.req("PM-06")
@given(ROWS, ROWS, st.integers(0, 12))
def test_rows_compare_as_tuples_do(old, new, cut):
    chunked = pa.chunked_array([structs(new[:cut]), structs(new[cut:])])
    one, other = ordering_values(structs(old), chunked)
    for (i, x), (j, y) in itertools.product(enumerate(old), enumerate(new)):
        want = (in_order(x) > in_order(y)) - (in_order(x) < in_order(y))
        assert int(one.numbers[i] > other.numbers[j]) - int(one.numbers[i] < other.numbers[j]) == want


def test_a_missing_struct_is_a_missing_value():
    values = structs([(1, "a", 0.0, 1), (2, "a", 0.0, 1)])
    (found,) = ordering_values(pa.concat_arrays([values, pa.nulls(1, values.type)]))
    assert found.valid.tolist() == [1, 1, 0]


def test_several_fields_do_not_compare_with_one():
    with pytest.raises(SchemaError):
        ordering_values(structs([(1, "a", 0.0, 1)]), pa.array([1]))


@pytest.mark.req("PM-06")
def test_places_in_a_log_of_changes_go_by_their_numbers():
    old = sequences(pa.chunked_array([["2.100", "10.5"], [None]]))
    new = sequences(pa.array(["2.99", "9.900", "1.1"]))
    stored, incoming = ordering_values(old, new)
    assert [int(a > b) for a, b in zip(stored.numbers[:2], incoming.numbers[:2], strict=True)] == [1, 1]
    assert stored.valid.tolist() == [1, 1, 0]


@pytest.mark.parametrize("values", [["2"], ["a.b"], ["99999999999999999999.1"], [2]])
def test_what_is_no_place_in_a_log_of_changes_is_refused(values):
    with pytest.raises(SchemaError, match="log position") as refused:
        sequences(pa.array(values))
    assert "3.154 for mysql-bin.000003 and 154" in refused.value.remedy
