"""Records that lack columns, and values that stand for what was not sent."""

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.merge import record_merger
from hudi_format.merge.partial_update import has_mask, has_name, with_marks
from hudi_format.merge.payloads import COMMIT_TIME, EVENT_TIME, mode_rule

pytestmark = pytest.mark.req("PM-09")
GONE = "__debezium_unavailable_value"
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.string())])
MARKED = pa.schema([*SCHEMA, *(pa.field(has_name(n), pa.bool_()) for n in ("v", "w"))])


def records(*rows):
    """Rows as (key, ts, {column: value}): a column that is not named is one that the record lacks."""
    parts = []
    for key, ts, given in rows:
        row = pa.table([[key], [ts], [given.get("v")], [given.get("w")]], schema=SCHEMA)
        parts.append(with_marks(row, MARKED, frozenset(given) | {"k", "ts"}))
    return pa.concat_tables(parts)


def merged(rule, rows, stored=None, kinds=None):
    """Values by key of what `rows` come to, alone or on stored rows; and of the latter those that stay."""
    kinds = np.zeros(rows.num_rows, np.uint8) if kinds is None else np.array(kinds, np.uint8)
    one = record_merger.combine(
        rows.column("k"), rule, ordering=rows.column("ts"), kinds=kinds, logged=True, partial=True
    )
    taken = one.take(rows)
    if stored is None:
        return {r["k"]: (r["ts"], r["v"], r["w"]) for r in taken.to_pylist()}
    keys = taken.column("k").to_pylist()
    found = np.array([keys.index(k) if k in keys else -1 for k in stored.column("k").to_pylist()])
    met = record_merger.decide(
        found, rule, stored_ordering=stored.column("ts"), ordering=taken.column("ts"), kinds=one.kinds
    )
    columns = [
        record_merger.merged_column(
            stored.column(n), taken.column(n), met.take, fill=rule.fill_stored, stored_wins=met.stored_wins,
            has=has_mask(taken, n), gap=rule.gap(n),
        )
        for n in SCHEMA.names
    ]  # fmt: skip
    return {r["k"]: (r["ts"], r["v"], r["w"]) for r in pa.table(columns, schema=SCHEMA).to_pylist()}


def stored(*rows):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], SCHEMA)


def test_a_later_record_leaves_what_it_lacks_as_it_was():
    rows = records(("a", 1, {"v": "1"}), ("a", 2, {"w": "2"}), ("b", 1, {"v": None}), ("b", 2, {"w": "2"}))
    for rule in (COMMIT_TIME, EVENT_TIME):
        assert merged(rule, rows) == {"a": (2, "1", "2"), "b": (2, None, "2")}


def test_a_null_that_was_written_is_a_value():
    rows = records(("a", 2, {"v": None}))
    assert merged(COMMIT_TIME, rows, stored(("a", 1, "old", "old"))) == {"a": (2, None, "old")}


def test_an_older_record_gives_only_what_the_newer_one_lacks():
    rows = records(("a", 5, {"v": "5"}), ("a", 3, {"v": "3", "w": "3"}))
    assert merged(EVENT_TIME, rows) == {"a": (5, "5", "3")}
    assert merged(COMMIT_TIME, rows) == {"a": (3, "3", "3")}


def test_a_stored_row_that_is_newer_stays_whole():
    rows = records(("a", 5, {"v": "5"}), ("b", 5, {"v": "5"}))
    base = stored(("a", 9, "old", "old"), ("b", 5, "old", "old"))
    assert merged(EVENT_TIME, rows, base) == {"a": (9, "old", "old"), "b": (5, "5", "old")}
    assert merged(COMMIT_TIME, rows, base)["a"] == (5, "5", "old")


def test_what_is_lacking_is_still_lacking_after_records_came_together():
    rows = records(("a", 5, {"v": "5"}), ("a", 6, {"v": "6"}), ("b", 5, {"v": "5"}), ("b", 6, {"w": "6"}))
    base = stored(("a", 1, "old", "old"), ("b", 1, "old", "old"))
    assert merged(EVENT_TIME, rows, base) == {"a": (6, "6", "old"), "b": (6, "5", "6")}


def test_a_record_after_a_delete_takes_nothing_from_before_it():
    rows = records(("a", 1, {"v": "1", "w": "1"}), ("a", 2, {}), ("a", 3, {"v": "3"}))
    assert merged(
        COMMIT_TIME, rows, kinds=[record_merger.DATA, record_merger.DELETE, record_merger.DATA]
    ) == {"a": (3, "3", None)}


FILL = mode_rule(
    "EVENT_TIME_ORDERING", partial_update="FILL_UNAVAILABLE",
    properties={"hoodie.write.partial.update.unavailable.value": GONE},
)  # fmt: skip


def test_an_unavailable_value_is_filled_and_a_null_is_not():
    rows = records(("a", 5, {"v": "5", "w": "5"}), ("a", 6, {"v": GONE, "w": None}))
    assert merged(FILL, rows) == {"a": (6, "5", None)}
    base = stored(("a", 1, "old", "old"), ("b", 9, GONE, "old"))
    rows = records(("a", 6, {"v": GONE, "w": None}), ("b", 5, {"v": "5", "w": "5"}))
    assert merged(FILL, rows, base) == {"a": (6, "old", None), "b": (9, "5", "old")}
