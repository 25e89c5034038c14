"""Plans that are taken back: no row is lost, whatever was written since they were made."""

import pytest

from hudi_format.errors import ConcurrentWriterError, InstantNotFoundError, UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.action_metadata import CompactionPlan, parse_action
from hudi_timeline.timeline.instant import COMPACTION, INFLIGHT, REQUESTED


@pytest.fixture
def made(tmp_path):
    """A pending plan of two file groups."""
    table = TableBuilder(open_storage(str(tmp_path / "t")), table_type="MERGE_ON_READ")
    table.commit("first", table.base("first", {"a": 1}), table.base("first", {"b": 2}, group=2))
    table.commit("second", table.log("second", {"a": 10}), table.log("second", {"b": 20}, group=2))
    table.instants["plan"] = table.table.compact(mode="schedule").scheduled
    table.instants["beside"] = str(int(table.at("plan")) + 1)
    return table


def rows(made):
    return {r["id"]: r["v"] for r in made.table.read(["id", "v"]).to_arrow().to_pylist()}


def planned(made):
    (instant,) = made.table.timeline.pending(COMPACTION)
    path = instant.path_in(REQUESTED)
    plan = parse_action(COMPACTION, REQUESTED, made.storage.read(path))
    assert isinstance(plan, CompactionPlan)
    return {o.file_id for o in plan.operations}


@pytest.mark.parametrize("begun", [False, True])
def test_a_plan_leaves_the_timeline_and_the_slices_can_be_planned_again(made, begun):
    if begun:  # and left dead
        made.storage.create(made.path_of(made.at("plan"), COMPACTION, INFLIGHT), b"")
    dry = made.table.unschedule_compaction(made.at("plan"), dry_run=True)
    assert len(planned(made)) == 2
    done = made.table.unschedule_compaction(made.at("plan"))
    assert (done.withdrawn, done.kept, done.gone) == (dry.withdrawn, (), True)
    assert not made.table.timeline.of(COMPACTION)
    assert rows(made) == {"a": 10, "b": 20}
    made.commit("third", made.log("third", {"a": 100}))
    assert len(made.table.compact().plan.operations) == 2
    assert rows(made) == {"a": 100, "b": 20}
    assert made.table.verify(deep=True) == []


@pytest.mark.req("TS-09")
def test_a_file_group_that_was_written_to_since_stays_in_the_plan(made):
    made.commit("beside", made.log("beside", {"a": 100}, on="plan"))
    done = made.table.unschedule_compaction(made.at("plan"))
    assert [o.file_id for o in done.withdrawn] == [made.group(2)]
    assert [o.file_id for o in done.kept] == [made.group(1)]
    assert planned(made) == {made.group(1)}
    assert rows(made) == {"a": 100, "b": 20}
    with pytest.raises(UnsupportedError, match="nobody would read"):
        made.table.unschedule_compaction(made.at("plan"))
    assert made.table.compact(mode="execute").executed == (made.at("plan"),)
    made.table.compact()
    assert rows(made) == {"a": 100, "b": 20}
    assert made.table.verify(deep=True) == []


def test_one_file_group_is_withdrawn_by_its_name(made):
    done = made.table.unschedule_compaction(made.at("plan"), partition="p0", file_id=made.group(1))
    assert [o.file_id for o in done.withdrawn] == [made.group(1)]
    assert planned(made) == {made.group(2)}
    with pytest.raises(InstantNotFoundError, match="no such file group"):
        made.table.unschedule_compaction(made.at("plan"), partition="p0", file_id=made.group(1))
    made.table.unschedule_compaction(made.at("plan"), partition="p0", file_id=made.group(2))
    assert not made.table.timeline.of(COMPACTION)


def test_nothing_is_withdrawn_beside_a_write_or_an_execution(made):
    made.pending("beside", alive=True)
    with pytest.raises(ConcurrentWriterError, match="may append"):
        made.table.unschedule_compaction(made.at("plan"))
    beat = heartbeat.start(made.storage, made.at("plan"))
    try:
        with pytest.raises(ConcurrentWriterError, match="running"):
            made.table.unschedule_compaction(made.at("plan"))
    finally:
        beat.stop()
    assert len(planned(made)) == 2


def test_a_plan_that_is_not_pending_is_told_with_those_that_are(made):
    with pytest.raises(InstantNotFoundError) as e:
        made.table.unschedule_compaction("20200101000000000")
    assert made.at("plan") in str(e.value)


def test_validation_tells_which_file_groups_cannot_be_compacted(made):
    checks = made.table.validate_compaction(made.at("plan"))
    assert [c.valid for c in checks] == [True, True]
    gone = f"p0/{checks[0].operation.log_files[0]}"
    made.storage.delete(gone)
    first, second = made.table.validate_compaction(made.at("plan"))
    assert gone in first.error
    assert second.valid
