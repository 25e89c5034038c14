"""Plans of cleanings: the earliest instant that stays, and the plan in its file."""

from datetime import datetime

import pytest
from serviced_tables import KEEP_2, OFF, SCHEMA, rows, write

from hudi_format.errors import (
    InvalidOptionError,
)
from hudi_timeline import HudiTable
from hudi_timeline.options.service_config import ServiceConfig, parse_service_options
from hudi_timeline.services.clean_planner import earliest_to_retain
from hudi_timeline.timeline.action_metadata import parse_action
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMMIT,
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    Instant,
)


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


def instants_of(text):
    """`1c 2c 3i`: time and state."""
    states = {"c": COMPLETED, "i": INFLIGHT, "r": REQUESTED}
    return Timeline.of_files(Instant(w[:-1], COMMIT, states[w[-1]]) for w in text.split())


@pytest.mark.req("TS-17", "TS-19")
@pytest.mark.parametrize(
    ("timeline", "retained", "reads", "want"),
    [
        ("1c 2c 3c", 3, [], None),
        ("1c 2c 3c 4c", 3, [], "2"),
        ("1c 2i 3c 4c 5c", 1, [], "1"),
        ("1i 2c 3c 4c 5c", 1, [], None),
        ("1c 2c 3c 4c 5c", 1, ["3"], "3"),
        ("1c 2c 4c 5c 6c", 1, ["3", "5"], "2"),
        ("5c 6c 7c", 1, ["3"], None),
    ],
)
def test_the_earliest_instant_to_retain(timeline, retained, reads, want):
    config = ServiceConfig(clean_commits_retained=retained)
    found = earliest_to_retain(instants_of(timeline), config, datetime(2026, 1, 1), reads)
    assert (found.time if found else None) == want


def test_hours_go_by_the_clock_of_the_table():
    config = ServiceConfig(clean_policy="KEEP_LATEST_BY_HOURS", clean_hours_retained=2)
    timeline = instants_of("20260101080000000c 20260101093000000c 20260101100000000c")
    at = earliest_to_retain(timeline, config, datetime(2026, 1, 1, 11, 0))
    assert at.time == "20260101093000000"
    assert earliest_to_retain(timeline, config, datetime(2026, 1, 2)) is None


def test_limits_that_contradict_are_refused(table):
    options = {"hoodie.keep.min.commits": "30", "hoodie.keep.max.commits": "20"}
    with pytest.raises(InvalidOptionError, match="not above"):
        parse_service_options(options)
    with pytest.raises(InvalidOptionError, match="not above"):
        table.upsert(rows(0), options=options)


def test_a_plan_survives_its_file(path, table):
    write(table, range(6))
    table.savepoint()
    plan = table.clean(dry_run=True, options=KEEP_2).plan
    again = parse_action("clean", "REQUESTED", plan.to_bytes("file:/somewhere/else"))
    assert (again.files, again.partitions, again.earliest.time) == (plan.files, (), plan.earliest.time)
    assert again.savepoints == plan.savepoints
    assert plan.earliest.action != CLEAN


# --- beside compactions ----------------------------------------------------------------------------------

QUIET = {**OFF, "hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline": "false"}
ONE_VERSION = {
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}


@pytest.fixture
def logged(tmp_path):
    """A merge-on-read table with logs in both partitions."""
    table = HudiTable.create(
        str(tmp_path / "m"), SCHEMA, name="m", table_type="MERGE_ON_READ", record_keys=["k"],
        partition_fields=["p"],
    )  # fmt: skip
    write(table, [1, 2], QUIET)
    return table


def state(table, **how):
    return sorted((r["k"], r["v"]) for r in table.read(["k", "v"], **how).to_arrow().to_pylist())


@pytest.mark.parametrize("options", [ONE_VERSION, {"hoodie.cleaner.commits.retained": "1"}])
def test_a_savepoint_beside_a_pending_compaction_keeps_the_file_that_it_makes(logged, options):
    logged.compact(mode="schedule")
    saved = logged.upsert(rows(3, "c"), options=QUIET).instant
    logged.savepoint(saved)
    before = state(logged)
    logged.compact(mode="execute")
    for step in (4, 5, 6):
        write(logged, [step], QUIET)
        logged.compact()
    assert logged.clean(options=options).deleted
    logged.restore(saved)
    assert state(logged) == before


def test_a_pending_compaction_keeps_files_of_a_file_group_that_was_replaced_since(logged):
    planned = logged.compact(mode="schedule").scheduled
    logged.insert_overwrite(rows(3, "a"), options=QUIET)
    before = state(logged)
    logged.clean(options=ONE_VERSION)
    assert [c.error for c in logged.validate_compaction(planned)] == ["", ""]
    assert logged.compact(mode="execute").executed == (planned,)
    assert state(logged) == before
    assert logged.clean(options=ONE_VERSION).deleted
    assert state(logged) == before
    assert logged.verify(deep=True) == []


def files_of_slices(table):
    """The files on the store by partition, file id and base instant."""
    slices = {}
    for partition in ("a", "b", "c"):
        for entry in table._storage.list(partition):
            name = entry.name
            if name.endswith(".parquet"):
                file_id, _, instant = name.removesuffix(".parquet").split("_")
            elif ".log." in name:
                file_id, instant = name[1:].split(".log.")[0].split("_")
            else:
                continue
            slices.setdefault((partition, file_id, instant), set()).add(name)
    return slices


@pytest.mark.req("TS-24")
@pytest.mark.parametrize("options", [ONE_VERSION, {"hoodie.cleaner.commits.retained": "1"}])
def test_log_files_go_with_their_whole_slice_and_never_alone(logged, options):
    for step in (3, 4):
        write(logged, [step, step + 10], QUIET)
        logged.compact()
    write(logged, [5, 6], QUIET)
    before = files_of_slices(logged)
    rows_before = state(logged)
    assert logged.clean(options=options).deleted
    after = files_of_slices(logged)
    assert after == {s: before[s] for s in after}, "a slice that is left has all its files"
    gone = [before[s] for s in before if s not in after]
    assert any(".log." in name for names in gone for name in names)
    assert any(".log." in name for names in after.values() for name in names)
    assert state(logged) == rows_before
