"""What of a column is filled from the record that loses: nulls, a text for what was not sent, defaults."""

import math

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_format.merge import record_merger
from hudi_format.merge.ordering import ordering_values, sequences
from hudi_format.merge.payloads import Default, Unavailable, payload_rule
from hudi_format.merge.record_merger import kept

CASES = [
    (pa.int32(), [1, None, 7], None, [True, False, True]),
    (pa.int32(), [1, 7, 7], None, None),
    (pa.string(), ["x", "?", None], Unavailable("?"), [True, False, True]),
    (pa.binary(), [b"x", b"?", None], Unavailable("?"), [True, False, True]),
    (pa.int64(), [1, None], Unavailable("1"), None),
    (pa.int32(), [7, 8, None], Default(7), [False, True, True]),
    (pa.bool_(), [True, False, None], Default(False), [True, False, True]),
    (pa.date32(), [0, 1, None], Default(0), [False, True, True]),
    (pa.timestamp("us", "UTC"), [5, 6, None], Default(5), [False, True, True]),
    (pa.float64(), [0.0, -0.0, math.nan, None], Default(0.0), [False, True, True, True]),
    (pa.float32(), [0.5, math.nan, None], Default(math.nan), [True, False, True]),
    (pa.list_(pa.int32()), [[], [1], None], Default(()), [False, True, True]),
    (pa.map_(pa.string(), pa.int32()), [[], [("a", 1)], None], Default(()), [False, True, True]),
    (pa.string(), ["", None], Default(None), None),
]


@pytest.mark.req("PM-09")
@pytest.mark.parametrize(("kind", "values", "gap", "want"), CASES, ids=lambda v: str(v)[:40])
def test_values_that_count(kind, values, gap, want):
    whole = pa.array(values, kind)
    chunked = pa.chunked_array([whole[:1], whole[1:]])
    for column in (whole, chunked, pa.concat_arrays([whole, whole])[len(whole) :]):
        found = kept(column, gap)
        assert (None if found is None else found.tolist()) == want


def test_a_column_without_values_has_none_to_fill():
    for kind, _, gap, _ in CASES:
        found = kept(pa.chunked_array([], kind), gap)
        assert found is None or not len(found)


@pytest.mark.req("PM-06")
def test_places_in_a_log_of_changes_go_by_their_numbers():
    old = sequences(pa.chunked_array([["2.100", "10.5"], [None]]))
    new = sequences(pa.array(["2.99", "9.900", "1.1"]))
    stored, incoming = ordering_values(old, new)
    assert [int(a > b) for a, b in zip(stored.numbers[:2], incoming.numbers[:2], strict=True)] == [1, 1]
    assert stored.valid.tolist() == [1, 1, 0]


@pytest.mark.parametrize("values", [["2"], ["a.b"], ["99999999999999999999.1"], [2]])
def test_what_is_no_place_in_a_log_of_changes_is_refused(values):
    with pytest.raises(SchemaError, match="place"):
        sequences(pa.array(values))


@pytest.mark.req("PM-08", "PM-09")
def test_a_record_that_comes_late_does_not_fill_the_stored_row_of_postgres():
    rule = payload_rule("debezium.PostgresDebeziumAvroPayload")
    met = record_merger.decide(
        np.array([0, 1]), rule,
        stored_ordering=pa.array([100, 100]), ordering=pa.array([50, 150]),
    )  # fmt: skip
    assert met.take.tolist() == [-1, 1]
    assert met.stored_wins is None
