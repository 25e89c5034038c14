"""When a compaction is due, and what its plan takes."""

from datetime import datetime, timedelta

import pytest

from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.options.compaction_config import parse_compaction_options
from hudi_timeline.services.compaction.compaction_planner import is_due, make_compaction_plan
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.instant import COMMIT, COMPACTION, parse_instant

NOW = datetime(2026, 1, 1, 0, 1)
TRIGGER = "hoodie.compact.inline.trigger.strategy"
COMMITS, SECONDS = "hoodie.compact.inline.max.delta.commits", "hoodie.compact.inline.max.delta.seconds"


@pytest.fixture
def made():
    return TableBuilder(table_type="MERGE_ON_READ")


def due(made, trigger, commits=3, seconds=100, after=0):
    config = parse_compaction_options({TRIGGER: trigger, COMMITS: str(commits), SECONDS: str(seconds)})
    first = parse_instant(made.at("first"))
    return is_due(load_snapshot(made.storage).timeline, config, first + timedelta(seconds=after)).is_due


def plan_of(made, **options):
    return make_compaction_plan(load_snapshot(made.storage), parse_compaction_options(options), now=NOW)


@pytest.mark.req("TS-08")
def test_delta_commits_are_counted_from_the_last_compaction(made):
    made.commit("first", made.base("first", {"a": 1}))
    made.commit("second", made.log("second", {"a": 2}))
    assert not due(made, "NUM_COMMITS")
    made.commit("third", made.log("third", {"a": 3}))
    assert due(made, "NUM_COMMITS")  # the first insert counts
    made.commit(
        "compacted", made.base("compacted", {"a": 3}, prev="first"), operation="COMPACT", action=COMMIT
    )
    assert not due(made, "NUM_COMMITS", commits=1)
    made.commit("after", made.log("after", {"a": 4}, on="compacted"))
    assert due(made, "NUM_COMMITS", commits=1)


def test_a_pending_plan_counts_for_the_trigger_by_requests_only(made):
    made.commit("first", made.base("first", {"a": 1}))
    made.commit("second", made.log("second", {"a": 2}))
    content = plan_of(made).to_bytes()
    made.pending("plan", COMPACTION, request=content, inflight=None)
    made.commit("third", made.log("third", {"a": 3}, on="plan"))
    assert due(made, "NUM_COMMITS", commits=3)
    assert not due(made, "NUM_COMMITS_AFTER_LAST_REQUEST", commits=2)
    assert due(made, "NUM_COMMITS_AFTER_LAST_REQUEST", commits=1)


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [("TIME_ELAPSED", "--++"), ("NUM_AND_TIME", "---+"), ("NUM_OR_TIME", "-+++"), ("NUM_COMMITS", "-+-+")],
)
def test_triggers_by_time_count_from_the_first_delta_commit(made, trigger, expected):
    made.commit("first", made.base("first", {"a": 1}))
    made.commit("second", made.log("second", {"a": 2}))
    found = [due(made, trigger, n, 100, s) for s in (99, 100) for n in (3, 2)]
    assert "".join("-+"[d] for d in found) == expected


@pytest.mark.parametrize("trigger", ["NUM_COMMITS", "TIME_ELAPSED", "NUM_OR_TIME"])
def test_nothing_is_due_without_a_delta_commit(made, trigger):
    made.at("first")
    assert not due(made, trigger, commits=1, seconds=0)


@pytest.mark.req("TS-03")
def test_a_plan_names_the_newest_slices_with_logs_and_their_metrics(made):
    first = made.base("first", {"a": 1})
    made.commit("first", first, made.base("first", {"z": 1}, group=2))
    log = made.log("second", {"a": 2})
    made.commit("second", log)
    alone = made.log("third", {"n": 1}, on="third", group=3)
    made.commit("third", alone)
    plan = plan_of(made)
    assert plan.version == 2
    with_base, without = sorted(plan.operations, key=lambda o: o.file_id)
    assert (with_base.partition, with_base.file_id) == ("p0", made.group(1))
    assert with_base.data_file == first.path.rpartition("/")[2]
    assert with_base.log_files == (log.path.rpartition("/")[2],)
    assert with_base.base_instant == made.at("first")
    assert with_base.metrics == {
        "TOTAL_LOG_FILES": 1.0, "TOTAL_IO_MB": 0.0, "TOTAL_IO_READ_MB": 0.0, "TOTAL_IO_WRITE_MB": 0.0,
        "TOTAL_LOG_FILES_SIZE": float(log.file_size_in_bytes),
    }  # fmt: skip
    assert (without.data_file, without.base_instant) == ("", made.at("third"))
    assert without.metrics["TOTAL_IO_WRITE_MB"] == 120.0  # what a new file may become


def test_file_groups_in_another_plan_are_left_out(made):
    made.commit("first", made.base("first", {"a": 1}), made.base("first", {"b": 1}, group=2))
    made.commit("second", made.log("second", {"a": 2}))
    made.pending("plan", COMPACTION, request=plan_of(made).to_bytes(), inflight=None)
    made.commit("third", made.log("third", {"a": 3}, on="plan"), made.log("third", {"b": 3}, group=2))
    assert [o.file_id for o in plan_of(made).operations] == [made.group(2)]
