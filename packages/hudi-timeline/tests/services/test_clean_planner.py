"""Plans of cleanings: the earliest instant that stays, and the plan in its file."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from serviced_tables import KEEP_2, OFF, SCHEMA, rows, write

from hudi_format.errors import (
    InvalidOptionError,
)
from hudi_timeline import HudiTable
from hudi_timeline.options.service_config import ServiceConfig, parse_service_options
from hudi_timeline.services.clean_planner import earliest_to_retain, retained_by_policy
from hudi_timeline.timeline.action_metadata import parse_action
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMMIT,
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    Instant,
    format_instant,
)


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


STATES = {"c": COMPLETED, "i": INFLIGHT, "r": REQUESTED}


def instants_of(text):
    """`1c 2c 3i`: time and state."""
    return Timeline.of_files(Instant(w[:-1], COMMIT, STATES[w[-1]]) for w in text.split())


def completed_then(text, *, says):
    """`08 09:12 10-`: hours of a day at which commits were begun, and when they were completed; `-` for pending.

    Args:
        says: whether the name of the file says when it was completed, or only its modification time.
    """
    found = []
    for word in text.split():
        begun, _, completed = word.rstrip("-").partition(":")
        moment = datetime(2026, 1, 1, int(completed or begun), 1, tzinfo=UTC)
        at = "" if word.endswith("-") else format_instant(moment)
        found.append(
            Instant(
                f"20260101{begun}0000000", COMMIT, COMPLETED if at else INFLIGHT,
                mtime_ms=0 if says else int(moment.timestamp() * 1000), completion=at if says else "",
            )
        )  # fmt: skip
    return Timeline.of_files(found)


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
    found = earliest_to_retain(instants_of(timeline), config, datetime(2026, 1, 1), UTC, reads)
    assert (found.time if found else None) == want


@pytest.mark.req("TS-17", "TS-19")
@pytest.mark.parametrize("says", [True, False])
@pytest.mark.parametrize(
    ("timeline", "retained", "want"),
    [
        ("01 02 03 04 05", 2, "04"),
        ("01 02:06 03 04 05", 1, "02"),  # a moment ago the newest state was without it
        ("01 02:06 03 04 05", 2, "02"),
        ("01 02:06 03 04 05 07", 2, "02"),
        ("01 02:06 03 04 05 07 08", 2, "07"),  # two states since
        ("01:09 02:08 03 04 05 06", 1, "01"),
        ("01:08 02:09 03 04 05 06", 1, "02"),
        ("01:08 02:09 03 04 05 06", 2, "01"),
        ("01 02:03 03 04 05", 2, "04"),
        ("01 02:05 03 04 05", 1, "02"),  # as of the same moment as the newest
        ("01 02- 03:07 04 05 06", 1, "01"),
        ("01 02:07 03- 04 05 06", 1, "02"),
        ("01:07 02", 2, None),
    ],
)
def test_commits_count_by_completion_too(timeline, retained, want, says):
    config = ServiceConfig(clean_commits_retained=retained)
    timeline = completed_then(timeline, says=says)
    found = earliest_to_retain(timeline, config, datetime(2026, 1, 2), UTC)
    assert (found and found.time[8:10]) == want


@pytest.mark.req("TS-19")
@pytest.mark.parametrize("says", [True, False])
@pytest.mark.parametrize(
    ("timeline", "hours", "want"),
    [
        ("01 02 03 04 05", 3, "03"),
        ("01 02:04 03 04 05", 3, "02"),
        ("01 02:04 03 04 05", 1, "05"),
        ("01 02:05 03- 04 05", 1, "02"),
        ("01 02:05 03", 2, None),  # Apache Hudi cleans nothing where none was begun in these hours
    ],
)
def test_hours_count_by_completion_too(timeline, hours, want, says):
    config = ServiceConfig(clean_policy="KEEP_LATEST_BY_HOURS", clean_hours_retained=hours)
    found = earliest_to_retain(completed_then(timeline, says=says), config, datetime(2026, 1, 1, 6), UTC)
    assert (found and found.time[8:10]) == want


@pytest.mark.parametrize("config", [{"clean_commits_retained": 2}, {"clean_policy": "KEEP_LATEST_BY_HOURS"}])
def test_what_is_retained_is_never_less_than_what_apache_hudi_retains(config):
    """Whatever the storage says of when files were modified, or where it says nothing."""
    draw = random.Random(18)
    for _ in range(200):
        begun = [f"202601{day:02d}000000000" for day in range(1, 9)]
        done = [
            Instant(
                t, COMMIT, COMPLETED, mtime_ms=draw.choice([0, draw.randrange(1767225600000, 1768000000000)])
            )
            for t in begun
        ]
        now = datetime(2026, 1, draw.randrange(1, 12))
        asked = ServiceConfig(**config)
        plain = done[-2] if "clean_commits_retained" in config else next(
            (i for i in done if i.time >= format_instant(now - timedelta(hours=24))), None
        )  # fmt: skip
        found = retained_by_policy(done, asked, now, UTC)
        assert (found is None) == (plain is None)
        assert found is None or found <= plain


@pytest.mark.parametrize(
    ("first", "step", "want"),
    [
        (1767225600123, 0, 6),  # copied within a tick of the clock
        (1767225600123, 4, 6),  # in the order of names
        (1767225600000, 1000, 6),
        (1767225600000, 0, 0),  # by the second: of these commits any may have been completed last
    ],
)
def test_the_modification_times_of_a_copied_table_do_not_keep_all_commits(first, step, want):
    commits = [
        Instant(f"202601{day:02d}000000000", COMMIT, COMPLETED, mtime_ms=first + n * step)
        for n, day in enumerate(range(1, 9))
    ]
    config = ServiceConfig(clean_commits_retained=2)
    assert retained_by_policy(commits, config, datetime(2026, 1, 9), UTC) == commits[want]


def test_hours_go_by_the_clock_of_the_table():
    config = ServiceConfig(clean_policy="KEEP_LATEST_BY_HOURS", clean_hours_retained=2)
    timeline = instants_of("20260101080000000c 20260101093000000c 20260101100000000c")
    at = earliest_to_retain(timeline, config, datetime(2026, 1, 1, 11, 0), UTC)
    assert at.time == "20260101093000000"
    assert earliest_to_retain(timeline, config, datetime(2026, 1, 2), UTC) is None


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
