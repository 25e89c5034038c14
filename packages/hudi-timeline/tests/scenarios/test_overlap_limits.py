"""What writers that overlap do not promise: keys in two rows, the order of commits for readers; and what is said of it.

docs/guide/several-writers.md has these limits.  Each is there by default, as in Apache Hudi, is told to who runs into
it, and has an option or a read without it.
"""

import pytest
from rival_writers import DURING, GLOBAL, OCC, Between, Older, OnePartition, beside, make, rows, values

from hudi_format.errors import HollowCommitError, WriteConflictError
from hudi_timeline import HudiTable

BY_KEYS = {"hudi.write.conflict.detection": "keys"}
RETRY = {"hoodie.write.num.retries.on.conflict.failures": "1"}
STRATEGY = "hoodie.write.lock.conflict.resolution.strategy"
TWICE = "a key that both added stands in the table twice"


@pytest.fixture
def path(shared_table):
    return shared_table


def of(path, key):
    return [v for v in values(path) if v[0][0] == key]


@pytest.mark.req("CC-18", "CC-41")
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
@pytest.mark.parametrize("rival", ["upsert", "insert"])
def test_one_new_key_of_two_writers_is_two_rows_and_the_second_is_told(path, monkeypatch, operation, rival):
    between = beside(path, monkeypatch, "nx", act=rival)
    result = getattr(HudiTable.open(path), operation)(rows("nx", ts=9, v=9), options=OCC)
    assert (between.refused, result.retries) == (None, 0)
    assert of(path, "n") == [("nx", 5), ("nx", 9)]
    said = [d for d in result.duplicates if TWICE in d or "stand in it twice" in d]
    assert len(said) == 1, "an upsert says it where it overlapped, an insert always"
    assert ("keys in all writers" in said[0]) == (operation == "upsert")
    assert len(HudiTable.open(path).duplicates()) == 2


@pytest.mark.req("CC-18", "CC-41")
def test_where_keys_are_compared_it_is_one_row_and_nobody_is_warned(path, monkeypatch):
    beside(path, monkeypatch, "nx")
    result = HudiTable.open(path).upsert(rows("nx", ts=9, v=9), options={**OCC, **BY_KEYS, **RETRY})
    assert (result.retries, [d for d in result.duplicates if TWICE in d]) == (1, [])
    assert of(path, "n") == [("nx", 9)]


@pytest.mark.req("CC-18")
def test_the_first_rows_of_a_table_are_warned_of_too(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    HudiTable.create(path, rows("ax"), name="t", record_keys="id", partition_fields="p", ordering_fields="ts")
    beside(path, monkeypatch, "nx")
    (said,) = HudiTable.open(path).insert(rows("nx", ts=9, v=9), options=OCC).duplicates
    assert TWICE in said
    assert of(path, "n") == [("nx", 5), ("nx", 9)]


@pytest.mark.req("CC-41")
def test_additions_are_isolated_by_partitions_and_changes_by_file_groups(path, monkeypatch):
    """Two that add to one partition share no file group, and are told apart by nothing smaller than it."""
    beside(path, monkeypatch, "ny")
    elsewhere = HudiTable.open(path).upsert(rows("nx", ts=9, v=9), options=OCC)
    assert [d for d in elsewhere.duplicates if TWICE in d] == [], (
        "other partitions are no danger to a key of this"
    )
    beside(path, monkeypatch, "rx")
    updated = HudiTable.open(path).upsert(rows("ax", ts=9, v=9), options=OCC)
    assert [d for d in updated.duplicates if TWICE in d] == [], "it added nothing"
    beside(path, monkeypatch, "ax", act="upsert")
    with pytest.raises(WriteConflictError):
        HudiTable.open(path).upsert(rows("ax", ts=9), options=OCC)


@pytest.mark.req("CC-41")
def test_who_needs_it_has_partitions_as_the_unit_of_conflicts(path, monkeypatch):
    mine = {**OCC, STRATEGY: "rival_writers:OnePartition"}
    monkeypatch.setattr(OnePartition, "seen", [])
    between = beside(path, monkeypatch, "nx")
    with pytest.raises(WriteConflictError):
        HudiTable.open(path).insert(rows("nx", "mx", ts=9, v=9), options=mine)
    assert {r[0] for r in between.state[0]} == {
        r["id"] for r in HudiTable.open(path).read(["id"]).to_arrow().to_pylist()
    }
    beside(path, monkeypatch, "oy")
    assert HudiTable.open(path).insert(rows("px"), options=mine).retries == 0


@pytest.mark.req("CC-19")
@pytest.mark.parametrize("alone", [True, False])
def test_a_key_is_unique_over_partitions_with_one_writer_and_not_with_two(tmp_path, monkeypatch, alone):
    path = str(tmp_path / "t")
    make(path, **GLOBAL)
    everywhere = {**OCC, **GLOBAL}

    def rival(table):
        HudiTable.open(table).upsert(rows("ny", ts=5, v=5), options=everywhere)

    if alone:
        rival(path)
    else:
        Between(monkeypatch, path, rival, DURING)
    result = HudiTable.open(path).upsert(rows("nx", ts=9, v=9), options=everywhere)
    assert of(path, "n") == ([("nx", 9)] if alone else [("nx", 9), ("ny", 5)])
    assert [TWICE in d for d in result.duplicates] == ([] if alone else [True])
    if not alone:
        Between(monkeypatch, path, lambda p: HudiTable.open(p).upsert(rows("my"), options=everywhere), DURING)
        options = {**everywhere, **BY_KEYS, **RETRY}
        assert HudiTable.open(path).upsert(rows("mx", ts=9, v=9), options=options).retries == 1
        assert of(path, "m") == [("mx", 9)]


@pytest.mark.req("CC-20")
def test_a_reader_may_see_a_later_commit_before_an_earlier_one_and_is_told(path):
    older = Older(path, "my")
    HudiTable.open(path).insert(rows("nx", v=9), options=OCC)
    (later,) = (i.time for i in HudiTable.open(path).timeline.completed_writes()[-1:])
    between = HudiTable.open(path).read(["id"])
    assert sorted(between.to_arrow()["id"].to_pylist()) == ["a", "b", "c", "n"], (
        "the second of the two, alone"
    )
    (open_write,) = between.stability.changed_by
    assert not between.stability.stable
    assert open_write.instant < later
    with pytest.raises(HollowCommitError, match=open_write.instant):
        HudiTable.open(path).read(as_of=later)
    older.commits()
    assert HudiTable.open(path).read(["id"]).stability.stable
    assert sorted(HudiTable.open(path).read(["id"], as_of=later).to_arrow()["id"].to_pylist()) == list(
        "abcmn"
    )


def test_a_commit_that_ends_last_with_an_earlier_instant_does_not_move_the_table_back(path):
    """The greatest of both stays the newest: for readers, checkpoints, and whoever takes the next instant."""
    older = Older(path, "my")
    later = HudiTable.open(path).insert(rows("nx", v=9, note="kept"), options=OCC).instant
    older.commits()
    table = HudiTable.open(path)
    assert [i.time for i in table.timeline.completed_writes()][-1] == later
    assert table.read().stability.upto == later
    assert table.read_incremental("000", order="stable").checkpoint == later
    assert "note" in table.schema.names, "that of the newest instant, not of the last completed"
    assert HudiTable.open(path).upsert(rows("ax", ts=9, note="n"), options=OCC).instant > later
