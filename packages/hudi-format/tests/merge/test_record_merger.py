"""Payloads and merge modes against a plain reference that goes row by row, as Apache Hudi does."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_format.errors import SchemaError
from hudi_format.merge import record_merger
from hudi_format.merge.payloads import (
    COMMIT_TIME,
    EVENT_TIME,
    PAYLOADS,
    Order,
    mode_rule,
)
from hudi_format.merge.record_merger import DATA, DATA_DELETED, DATA_FLAG_NULL, DELETE, DELETE_DEFAULT

OVERWRITE = PAYLOADS["OverwriteWithLatestAvroPayload"]
DEFAULT = PAYLOADS["DefaultHoodieRecordPayload"]
EVENT = PAYLOADS["EventTimeAvroPayload"]
FIRST = PAYLOADS["FirstValueAvroPayload"]
NON_DEFAULTS = PAYLOADS["OverwriteNonDefaultsWithLatestAvroPayload"]
PARTIAL = PAYLOADS["PartialUpdateAvroPayload"]
DMS = PAYLOADS["AWSDmsAvroPayload"]


@dataclass
class Rec:
    row: int
    order: object
    kind: int
    values: dict


META = "_hoodie_commit_time"


def reference(rule, records, logged):
    """One record per key, by going through them in order."""
    kept = {}
    for key, new in records:
        old = kept.get(key)
        kept[key] = new if old is None else met(rule, old, new, logged)
    return kept


def newer(a, b, rule):
    """Whether a stands against the later b."""
    x = (a.order is not None, a.order or 0)
    y = (b.order is not None, b.order or 0)
    return x > y or (rule.within == Order.GREATEST_FIRST and x == y)


def met(rule, old, new, logged):
    if rule.within == Order.LATER:
        keep = False
    elif new.kind in (DELETE, DELETE_DEFAULT):
        keep = new.kind == DELETE
        if keep and old.kind == DELETE_DEFAULT:
            keep = rule.tombstones_compare
        else:
            keep = keep and newer(old, new, replace(rule, within=Order.GREATEST))
    elif old.kind in (DELETE, DELETE_DEFAULT):
        keep = rule.tombstones_compare and old.kind == DELETE
        keep = keep and newer(old, new, replace(rule, within=Order.GREATEST))
    else:
        keep = rule.within != Order.LATER_DATA and newer(old, new, rule)
    data = old.kind < DELETE and new.kind < DELETE
    if not rule.fill_within or not data:
        return old if keep else new
    winner, loser = (old, new) if keep else (new, old)
    if winner.kind == DATA_DELETED and not (keep and logged):
        return new
    values = {
        c: (new.values[c] if c == META else loser.values[c] if v is None else v)
        for c, v in winner.values.items()
    }
    kind = loser.kind if winner.kind == DATA_FLAG_NULL else winner.kind
    return Rec(winner.row, winner.order, kind, values)


records = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.one_of(st.none(), st.integers(-2, 2)),
    st.sampled_from([DATA, DATA, DATA, DATA_DELETED, DATA_FLAG_NULL, DELETE, DELETE_DEFAULT]),
    st.one_of(st.none(), st.text(max_size=2)),
    st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=2)),
)
AWS_DMS = mode_rule("CUSTOM", payload="AWSDmsAvroPayload")
MYSQL = mode_rule("CUSTOM", payload="org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload")
RULES = [*PAYLOADS.values(), COMMIT_TIME, EVENT_TIME, AWS_DMS, replace(COMMIT_TIME, fill_within=True)]


@pytest.mark.req("PM-01", "PM-06", "PM-09", "PM-12", "PM-15")
@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
@settings(max_examples=60)
@given(given_rows=st.lists(records, max_size=14), start=st.integers(0, 3))
@pytest.mark.sampled(8, values=False)
def test_combining_agrees_with_going_row_by_row(rule, logged, given_rows, start):
    if not logged:  # an input has no entries of delete blocks
        given_rows = [r for r in given_rows if r[2] < DELETE]
    table = pa.table(
        {
            "key": pa.array([r[0] for r in given_rows], pa.string()),
            "ts": pa.array([r[1] for r in given_rows], pa.int64()),
            "text": pa.array([r[3] for r in given_rows], pa.string()),
            "list": pa.array([r[4] for r in given_rows], pa.list_(pa.int64())),
            META: pa.array([str(i) for i in range(len(given_rows))], pa.string()),
        }
    ).slice(start)
    kinds = np.array([r[2] for r in given_rows[start:]], dtype=np.uint8)
    rows = table.to_pylist()
    want = reference(
        rule,
        [(r["key"], Rec(i, r["ts"], int(kinds[i]), r)) for i, r in enumerate(rows)],
        logged,
    )
    got = record_merger.combine(
        table.column("key"), rule, ordering=table.column("ts"), kinds=kinds, logged=logged
    )
    assert got.rows.tolist() == sorted(w.row for w in want.values())
    taken = got.take(table).to_pylist()
    by_row = {w.row: w for w in want.values()}
    for row, kind, values in zip(got.rows.tolist(), got.kinds.tolist(), taken, strict=True):
        assert kind == by_row[row].kind
        if kind < DELETE:
            assert values == by_row[row].values


def test_without_ordering_values_the_later_record_wins():
    got = record_merger.combine(pa.array(["a", "b", "a"]), DEFAULT)
    assert got.rows.tolist() == [1, 2]


def test_rows_without_a_key_are_dropped():
    assert record_merger.combine(pa.array(["a", None]), DEFAULT).rows.tolist() == [0]
    assert record_merger.combine(pa.array([], pa.string()), DEFAULT).rows.tolist() == []


STORED = pa.array([5, 5, 5, None, 5], pa.int64())
INCOMING = pa.array([4, 5, 6, 1], pa.int64())
FOUND = np.array([0, 1, 2, 3, -1])


def decided(rule, kinds=None):
    kinds = None if kinds is None else np.array(kinds, dtype=np.uint8)
    return record_merger.decide(FOUND, rule, stored_ordering=STORED, ordering=INCOMING, kinds=kinds)


@pytest.mark.req("PM-02", "PM-07", "PM-08")
@pytest.mark.parametrize(
    ("rule", "take"),
    [
        (OVERWRITE, [0, 1, 2, 3, -1]),
        (NON_DEFAULTS, [0, 1, 2, 3, -1]),
        (DMS, [0, 1, 2, 3, -1]),
        (COMMIT_TIME, [0, 1, 2, 3, -1]),
        (DEFAULT, [-1, 1, 2, 3, -1]),
        (EVENT, [-1, 1, 2, 3, -1]),
        (EVENT_TIME, [-1, 1, 2, 3, -1]),
        (FIRST, [-1, -1, 2, 3, -1]),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_who_wins_against_the_stored_row(rule, take):
    met = decided(rule)
    assert met.take.tolist() == take
    assert met.gone is None
    assert met.stored_wins is None


def test_a_partial_update_writes_the_row_even_where_the_stored_one_is_newer():
    met = decided(PARTIAL)
    assert met.take.tolist() == [0, 1, 2, 3, -1]
    assert met.stored_wins.tolist() == [True, False, False, False, False]


@pytest.mark.req("PM-02", "PM-08")
@pytest.mark.parametrize(
    ("rule", "kind", "gone"),
    [
        # a row that is marked as deleted
        (OVERWRITE, DATA_DELETED, [True, True, True, True, False]),
        (DEFAULT, DATA_DELETED, [False, True, True, True, False]),
        (EVENT, DATA_DELETED, [True, True, True, True, False]),
        (PARTIAL, DATA_DELETED, [True, True, True, True, False]),
        (NON_DEFAULTS, DATA_DELETED, [True, True, True, True, False]),
        (FIRST, DATA_DELETED, [False, False, True, True, False]),
        (EVENT_TIME, DATA_DELETED, [False, True, True, True, False]),
        # entries of delete blocks: compared in tables of version 8 and later, unless they have no ordering value
        (DEFAULT, DELETE, [True, True, True, True, False]),
        (EVENT_TIME, DELETE, [False, True, True, True, False]),
        (EVENT_TIME, DELETE_DEFAULT, [True, True, True, True, False]),
        (COMMIT_TIME, DELETE, [True, True, True, True, False]),
        (AWS_DMS, DATA_DELETED, [True, True, True, True, False]),
        (AWS_DMS, DELETE, [False, True, True, True, False]),
        # the payload keeps the stored row at the same place, and a delete is not decided by it
        (MYSQL, DELETE, [False, True, True, True, False]),
        (MYSQL, DATA_DELETED, [False, False, True, True, False]),
    ],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_a_late_delete_counts_as_its_rule_says(rule, kind, gone):
    met = decided(rule, [kind] * 4)
    assert met.gone.tolist() == gone
    assert [t >= 0 for t in met.take.tolist()] == gone


def test_ordering_values_that_do_not_compare_are_refused():
    with pytest.raises(SchemaError):
        record_merger.decide(FOUND, DEFAULT, stored_ordering=STORED, ordering=pa.array(["x"] * 4))


@pytest.mark.req("PM-09")
@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (pa.string(), ["o", None, "o", "o", None], ["n", "n", None, "n"]),
        (pa.list_(pa.int32()), [[1], None, [3], [4], []], [[5], [6], None, [8]]),
        (
            pa.struct([("x", pa.int32())]),
            [{"x": 1}, None, {"x": 3}, {"x": 4}, None],
            [{"x": 5}, {"x": None}, None, {}],
        ),
        (pa.dictionary(pa.int32(), pa.string()), ["o", None, "o", "o", None], ["n", "n", None, "n"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("wins", [None, [True, True, True, False, False]])
@pytest.mark.parametrize("fill", [False, True])
def test_columns_are_merged_value_by_value(kind, old, new, wins, fill):
    take = [0, 1, 2, -1, 3]
    stored, incoming = pa.array(old, kind), pa.array(new, kind)
    plain_old, plain_new = stored.to_pylist(), incoming.to_pylist()
    want = []
    for i, t in enumerate(take):
        if t < 0:
            want.append(plain_old[i])
            continue
        winner, loser = plain_new[t], plain_old[i]
        if fill and wins and wins[i]:
            winner, loser = loser, winner
        want.append(loser if fill and winner is None else winner)
    got = record_merger.merged_column(
        pa.chunked_array([stored[:2], stored[2:]]), incoming, np.array(take), fill=fill,
        stored_wins=None if wins is None or not fill else np.array(wins),
    )  # fmt: skip
    assert got.to_pylist() == want


def test_columns_of_two_types_are_refused():
    with pytest.raises(SchemaError):
        record_merger.merged_column(pa.array([1]), pa.array(["x"]), np.array([0]))


ROWS = pa.table(
    {
        "_hoodie_is_deleted": pa.array([True, False, None, False, True]),
        "Op": pa.array(["I", "D", "d", None, "U"]),
        "n": pa.array([7, 8, None, 7, 8], pa.int32()),
    }
)


@pytest.mark.req("PM-05")
@pytest.mark.parametrize(
    ("rule", "field", "marker", "want"),
    [
        (OVERWRITE, "", "", [1, 0, 0, 0, 1]),
        (OVERWRITE, "n", "7", [1, 0, 0, 0, 1]),
        (DEFAULT, "n", "7", [1, 0, 0, 1, 0]),
        (DEFAULT, "no such column", "7", None),
        (DMS, "", "", [1, 1, 1, 0, 1]),
        (PARTIAL, "", "", [1, 0, DATA_FLAG_NULL, 0, 1]),
    ],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_rows_marked_as_deleted(rule, field, marker, want):
    got = record_merger.deleted_kinds(ROWS, rule, field, marker)
    assert (None if got is None else got.tolist()) == want


def test_a_flag_that_is_not_boolean_is_refused():
    with pytest.raises(SchemaError):
        record_merger.deleted_kinds(pa.table({"_hoodie_is_deleted": ["yes"]}), OVERWRITE)
