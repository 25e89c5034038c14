"""Partial updates from before and after changes of the columns (tools/golden/make_partial_tables.py).

Through a change of the schema history Apache Hudi 1.0.2 and 1.2.0 take older partial updates for whole records: their
answer has nulls in every other column, the record key's own too.  So the rows that must come are written down here;
those that Apache Hudi does not lose are compared with its answer.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_tables import READ_OPTIMIZED, SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import UnsupportedError
from hudi_timeline.table import HudiTable

TABLES = [t for v in ("partial_v8", "partial_v9") for t in golden(v)]
UNANSWERED = [(t, name) for t in TABLES for name in t.unanswered()]
BY_NAME = {"hoodie.schema.on.read.enable": "false"}


def named(*names):
    found = [t for t in TABLES if t.name in names]
    assert found
    return pytest.mark.parametrize("table", found, ids=str)


def stories(table, columns):
    return {r.pop("id"): r for r in table.select(["id", *columns]).sort_by("id").to_pylist()}


def base(n, **more):
    """A row that no update met."""
    return {"ts": 100, "seq": n, "v2": f"v{n}", "f": float(f"{n}.1"), "z": None, **more}


# Before v became v2, seq a long, f a double, z came and w went: ("k00", "v", "a", 200), ...
CHANGED = {
    "k00": base(0, ts=260, seq=70, v2="a"),  # v at 200, w at 150 (late, but of another column), seq at 260
    "k01": base(1, ts=250, v2="a"),
    "k02": base(2),  # v at 50 came too late
    "k04": base(4, ts=250),  # of w alone, which went
    "k05": base(5, ts=260, seq=75),
    "k06": base(6, ts=270, seq=76, f=0.3),  # a float, which reads as the double that prints so
    "k07": base(7, ts=270, f=0.7),
    "k08": base(8),
    "k09": base(9),
    "k10": base(10, ts=250),
    "k11": base(11),
}
IN_COMMIT_TIME = {**CHANGED, "k02": base(2, ts=50, v2="a"), "k08": base(8, ts=20, f=0.8)}
# The UPDATE went by what Apache Hudi read, so that it found one of its three rows.
UPDATED = {**CHANGED, "k09": base(9, ts=500, v2="new", z="new")}
COLUMNS = ["ts", "seq", "v2", "f", "z"]


@pytest.mark.req("SE-04", "PM-09")
@pytest.mark.parametrize("memory", [None, "1"])
@named("partial_changed", "partial_changed_commit_time", "partial_updated")
def test_older_partial_updates_stay_partial_through_renames_retypes_drops_and_additions(
    opened, table, memory
):
    options = {} if memory is None else {"hoodie.memory.merge.max.size": memory}
    found = opened(table).read(options=options, meta_columns=True).to_arrow()
    wanted = {"partial_changed_commit_time": IN_COMMIT_TIME, "partial_updated": UPDATED}.get(
        table.name, CHANGED
    )
    if table.version == "partial_v8":  # Apache Hudi 1.0.2 reads it as the double nearest to it
        nearest = {"k06": float(np.float32(0.3)), "k07": float(np.float32(0.7))}
        wanted = {k: {**row, "f": nearest.get(k, row["f"])} for k, row in wanted.items()}
    assert stories(found, COLUMNS) == wanted
    assert [str(found.schema.field(n).type) for n in COLUMNS] == [
        "int64",
        "int64",
        "string",
        "double",
        "string",
    ]


@pytest.mark.req("PM-09", "SE-04")
@named("partial_again")
def test_a_dropped_column_and_another_of_its_name_are_two(opened, table):
    found = stories(opened(table).read(meta_columns=True).to_arrow(), ["ts", "u", "v"])
    assert {r["v"] for r in found.values()} == {None}
    changed = {"k00": (250, "b"), "k01": (200, "w1"), "k03": (250, "b")}
    untouched = {f"k{n:02d}": (100, f"w{n}") for n in (2, 4, 5, 6, 7)}
    assert {k: (r["ts"], r["u"]) for k, r in found.items()} == {**changed, **untouched}


@named("partial_changed", "partial_changed_commit_time", "partial_updated", "partial_again")
def test_rows_that_apache_hudi_does_not_lose_are_those_that_it_gives(opened, table):
    theirs = table.question(SNAPSHOT).expected()
    kept = theirs.filter(pc.is_valid(theirs["id"]))
    assert 0 < kept.num_rows < theirs.num_rows
    mine = opened(table).read(meta_columns=True).to_arrow()
    assert mine.num_rows == theirs.num_rows
    assert_same_answer(mine.filter(pc.is_in(mine["id"], kept["id"].combine_chunks())), kept)
    assert_same_answer(
        opened(table).read(query=READ_OPTIMIZED, meta_columns=True).to_arrow(),
        table.question(READ_OPTIMIZED).expected(),
    )


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(4)
def test_a_column_alone_has_the_values_that_it_has_among_others(opened, table):
    options = BY_NAME if "added" in table.name or "forgotten" in table.name else {}
    whole = opened(table).read(options=options, meta_columns=True).to_arrow()
    for name in whole.schema.names:
        keys = ["_hoodie_record_key"]
        alone = opened(table).read(list(dict.fromkeys([*keys, name])), options=options).to_arrow()
        assert alone.sort_by("_hoodie_record_key").column(name) == whole.sort_by("_hoodie_record_key").column(
            name
        )


@pytest.mark.req("PM-09", "SE-04")
@named("partial_forgotten", "partial_added_commit_time")
def test_partial_updates_that_forget_the_history_are_read_by_name_only(opened, table):
    with pytest.raises(UnsupportedError, match="does not go on with the table's schema history"):
        opened(table).read().to_arrow()
    assert_same_answer(
        opened(table).read(options=BY_NAME, meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected()
    )


@pytest.mark.req("PM-09")
@named("partial_evolved", "partial_evolved_commit_time")
def test_partial_updates_before_and_after_promotions(opened, table):
    """Apache Hudi fails on it: "Integer cannot be cast to class java.lang.Long"."""
    assert "cannot be cast" in table.unanswered()[SNAPSHOT]
    found = opened(table).read(meta_columns=True).to_arrow()
    assert found.schema.field("seq").type == pa.int64()
    late = "commit_time" in table.name
    rows = {f"k{n:02d}": (100, n, f"v{n}", None) for n in range(10)}
    rows |= {
        "k00": (400, 77, "a", "late"),
        "k01": (300, 5_000_000_000, "full", "z"),
        # The records of a log meet first: v at 50 is of the record that comes to the base row at 300.
        "k02": (300, 2, "a", "late"),
        "k04": (150, 1, "old", "z") if late else (200, 1, "a", "z"),
        "k05": (400, 7_000_000_000, "v5", None),
        "k06": (200, 6_000_000_000, "full", "late") if late else (300, 6_000_000_000, "full", "z"),
    }
    del rows["k07"]
    answer = stories(found, ["ts", "seq", "v", "z"])
    assert {k: tuple(r.values()) for k, r in answer.items()} == rows


def test_a_history_that_names_completion_times_is_found(opened):
    """Without it the base file's `v` is no column of the table, and its values are lost."""
    (table,) = golden("partial_v9", "partial_changed")
    path = opened(table).uri.removeprefix("file://")
    assert HudiTable.open(path).read(["v2"]).to_arrow()["v2"].null_count == 0


@pytest.mark.req("PM-09")
@named("partial_stacked")
def test_late_partial_updates_within_a_log_meet_before_the_base_row(opened, table):
    assert_same_answer(opened(table).read(meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected())
