"""Cleaning, archival and savepoints without a JVM; against Apache Hudi they stand in tests/interop."""

import gc
import os
from datetime import datetime

import pyarrow as pa
import pytest

from hudi_format.errors import (
    CorruptFileError,
    InstantNotFoundError,
    InvalidOptionError,
    MissingFileError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.options.service_config import ServiceConfig, parse_service_options
from hudi_timeline.services.clean_planner import CleanPlan, earliest_to_retain
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.active_timeline import Timeline, load_timeline
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMMIT,
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    Instant,
    next_instant,
)

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])
OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
KEEP_2 = {"hoodie.cleaner.commits.retained": "2"}
SHORT = {**KEEP_2, "hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"}


def rows(step, partitions="ab"):
    return [{"k": f"{p}{i}", "p": p, "v": step} for p in partitions for i in range(3)]


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


def write(table, steps, options=OFF):
    return [table.upsert(rows(s), options=options).instant for s in steps]


def files(path):
    return sorted(str(f.relative_to(path)) for f in path.rglob("*.parquet"))


def tree(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.mark.req("TS-19", "TS-20", "TS-31", "OP-10")
def test_three_hundred_commits_leave_a_bounded_table(table, path):
    for step in range(300):
        result = table.upsert(rows(step))
        assert result.warnings == ()
    assert len(files(path)) <= 2 * 12
    assert len(list((path / ".hoodie").glob("*.commit"))) <= 31
    assert len(list((path / ".hoodie").iterdir())) < 200
    archived = archived_instants(LocalStorage(str(path)), table.config)
    commits = [i for i in archived if i.action == COMMIT]
    assert len(commits) + len(list((path / ".hoodie").glob("*.commit"))) == 300
    assert all(i.completed for i in archived)
    assert table.read().to_arrow().column("v").to_pylist() == [299] * 6


@pytest.mark.req("TS-17", "TS-21", "TS-19")
def test_what_is_readable_before_a_cleaning_is_readable_after_it_back_to_the_earliest_commit(table, path):
    instants = write(table, range(6))
    before = {t: table.read(as_of=t).to_arrow().sort_by("k") for t in instants}
    result = table.clean(options=KEEP_2)
    assert result.plan.earliest.time == instants[4]
    assert result.deleted == 2 * 3  # of each partition the versions of commits 0 to 2
    for t in instants[4:]:
        assert table.read(as_of=t).to_arrow().sort_by("k").equals(before[t])


@pytest.mark.req("NEW-08")
def test_a_dry_run_gives_the_plan_and_changes_nothing(table, path):
    write(table, range(6))
    before = tree(path)
    result = table.clean(dry_run=True, options=KEEP_2)
    assert tree(path) == before
    assert result.instant == ""
    assert "6 files would be deleted" in repr(result)
    done = table.clean(plan=result.plan)
    assert done.deleted == 6
    assert table.archive(dry_run=True, options=SHORT).plan.instants == ()
    write(table, range(6, 12))
    table.clean(options=KEEP_2)  # commits whose files the cleaner has kept stay on the timeline
    before = tree(path)
    assert table.archive(dry_run=True, options=SHORT).plan
    assert tree(path) == before


def test_nothing_is_written_where_there_is_nothing_to_clean(table, path):
    write(table, range(3))
    before = tree(path)
    assert not table.clean().plan
    assert tree(path) == before


@pytest.mark.req("TS-26")
def test_one_switch_turns_the_services_off(table, path):
    write(table, range(14), {"hoodie.table.services.enabled": "false"})
    assert len(files(path)) == 28
    assert not list((path / ".hoodie").glob("*.clean"))


@pytest.mark.req("TS-19")
def test_a_read_that_is_open_keeps_its_files(table, path):
    instants = write(table, range(2))
    scan = table.read(as_of=instants[1])
    write(table, range(2, 9))
    table.clean(options=KEEP_2)
    assert set(scan.to_arrow().column("v").to_pylist()) == {1}
    table.clean(options={"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
                         "hoodie.cleaner.fileversions.retained": "1"})  # fmt: skip
    assert set(scan.to_arrow().column("v").to_pylist()) == {1}
    del scan
    gc.collect()
    table.upsert(rows(9), options=KEEP_2)
    assert len(files(path)) == 2 * 3


@pytest.mark.req("RC-06", "RC-08")
def test_a_savepoint_keeps_its_files_and_its_instants(table, path):
    write(table, range(2))
    table.upsert(rows(2, "a"), options=OFF)  # the savepoint's commit did not touch partition b
    saved = table.savepoint(user="me", comment="as it was")
    assert table.savepoints == [saved]
    kept = set(table.inspect.files().column("path").to_pylist())
    write(table, range(3, 15), SHORT)
    assert kept <= set(files(path))
    assert (path / ".hoodie" / f"{saved}.commit").exists()
    with pytest.raises(OptionError, match="savepointed already"):
        table.savepoint(saved)
    table.delete_savepoint(saved)
    assert table.savepoints == []
    write(table, range(15, 16), SHORT)
    assert not kept & set(files(path))
    with pytest.raises(InstantNotFoundError, match="no savepoint"):
        table.delete_savepoint(saved)


def test_a_commit_that_the_cleaner_has_passed_cannot_be_savepointed(table):
    instants = write(table, range(6))
    table.clean(options=KEEP_2)
    with pytest.raises(OptionError, match="may be cleaned away"):
        table.savepoint(instants[1])
    with pytest.raises(InstantNotFoundError):
        table.savepoint("20200101000000000")


@pytest.mark.req("TS-18")
def test_versions_of_each_file_are_kept(table, path):
    write(table, range(6))
    options = {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "3",
    }
    result = table.clean(options=options)
    assert result.plan.earliest is None
    assert len(files(path)) == 2 * 3


def test_replaced_groups_and_empty_partitions_go(table, path):
    write(table, range(2))
    table.delete_partitions("b", options=OFF)
    for step in range(3, 6):
        table.upsert(rows(step, "a"), options=OFF)
    result = table.clean(options=KEEP_2)
    assert result.plan.partitions == ("b",)
    assert not (path / "b").exists()
    assert set(table.read().to_arrow().column("p").to_pylist()) == {"a"}
    record = avro_files.parse("HoodieCleanMetadata", next((path / ".hoodie").glob("*.clean")).read_bytes())
    assert record["partitionMetadata"]["b"]["isPartitionDeleted"] is True
    assert table.upsert(rows(9)).inserted == 3  # a partition that was cleaned away comes back


@pytest.mark.parametrize("left", ["requested", "inflight", "some files deleted", "all files deleted"])
def test_the_next_cleaning_finishes_one_that_died(table, path, left):
    write(table, range(6))
    plan = table.clean(dry_run=True, options=KEEP_2).plan
    content = avro_files.render("HoodieCleanerPlan", plan.to_record(str(path)))
    time = next_instant(table.timeline.newest_time)
    (path / ".hoodie" / f"{time}.clean.requested").write_bytes(content)
    if left != "requested":
        (path / ".hoodie" / f"{time}.clean.inflight").write_bytes(content)
    planned = [path / p / n for p, names in plan.files.items() for n in names]
    for file in {"some files deleted": planned[:3], "all files deleted": planned}.get(left, []):
        file.unlink()
    result = table.clean(options=KEEP_2)
    assert result.finished == (time,)
    assert not any(f.exists() for f in planned)
    assert (path / ".hoodie" / f"{time}.clean").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"partition": "../other"}, "not below the table"),
        ({"name": "hoodie.properties"}, "no data file"),
        ({"delete": [""]}, "the table's own folder"),
        ({"newest": True}, "which the table needs"),
    ],
)
def test_a_plan_that_would_do_harm_is_refused(table, path, change, says):
    write(table, range(6))
    plan = table.clean(dry_run=True, options=KEEP_2).plan
    record = plan.to_record(str(path))
    entry = {"filePath": f"x/{change.get('name', 'f-0_0-0-0_20200101000000000.parquet')}",
             "isBootstrapBaseFile": False}  # fmt: skip
    if change.get("newest"):
        entry["filePath"] = table.inspect.files().column("path")[0].as_py()
    record["filePathsToBeDeletedPerPartition"] = {change.get("partition", "a"): [entry]}
    record["partitionsToBeDeleted"] = change.get("delete", [])
    content = avro_files.render("HoodieCleanerPlan", record)
    time = next_instant(table.timeline.newest_time)
    (path / ".hoodie" / f"{time}.clean.requested").write_bytes(content)
    before = tree(path)
    with pytest.raises((CorruptFileError, UnsupportedError), match=says):
        table.clean(options=KEEP_2)
    assert tree(path) == before
    if not change.get("newest"):  # the write goes on, and says what is wrong
        result = table.upsert(rows(7), options=KEEP_2)
        assert any(says in w for w in result.warnings)


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


@pytest.mark.req("TL-14")
def test_archived_entries_hold_what_the_instants_said(table, path):
    write(table, range(3))
    table.insert_overwrite(rows(3, "a"), options=OFF)
    write(table, range(4, 14), SHORT)
    storage = LocalStorage(str(path))
    archived = archived_instants(storage, table_config.load(storage))
    assert [i.action for i in archived][:4] == ["commit", "commit", "commit", "replacecommit"]
    active = load_timeline(storage, table.config)
    # Cleanings are archived by their own number, as in Apache Hudi: one may be newer than the first active write.
    assert max(i for i in archived if i.action != "clean").time < active.completed_writes()[0].time
    changes = table.read_incremental("000").to_arrow()  # into the archived past: with a warning, not wrong
    assert changes.num_rows == 6


def test_archival_stops_before_a_pending_write_and_before_a_replacement_that_is_not_cleaned(table, path):
    write(table, range(4))
    table.insert_overwrite(rows(4, "a"), options=OFF)
    write(table, range(5, 14))
    plan = table.archive(dry_run=True, options={**SHORT, "hoodie.cleaner.commits.retained": "1"}).plan
    assert len(plan.instants) == 4


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
    content = avro_files.render("HoodieCleanerPlan", plan.to_record("file:/somewhere/else"))
    again = CleanPlan.of_record(avro_files.parse("HoodieCleanerPlan", content), "1")
    assert (again.files, again.partitions, again.earliest.time) == (plan.files, (), plan.earliest.time)
    assert again.savepoints == plan.savepoints
    assert plan.earliest.action != CLEAN


@pytest.mark.req("RC-06")
def test_a_restore_takes_the_table_back_for_good(table, path):
    write(table, range(3))
    saved = table.savepoint()
    before = table.read().to_arrow().sort_by("k")
    write(table, range(3, 6), SHORT)
    table.insert_overwrite(rows(6, "a"), options=SHORT)
    table.delete_partitions("b", options=SHORT)
    plan = table.restore(saved, dry_run=True)
    assert (len(plan.undone), plan.instant) == (5, "")
    result = table.restore(saved)
    assert result.undone == plan.undone
    assert table.read().to_arrow().sort_by("k").equals(before)
    assert not [f for f in files(path) if any(t in f for t in result.undone)]
    assert table.upsert(rows(9)).updated == 6
    assert set(table.read().to_arrow().column("v").to_pylist()) == {9}


@pytest.mark.req("RC-06")
def test_what_cannot_be_restored_is_refused_and_nothing_changes(table, path):
    instants = write(table, range(6))
    table.clean(options=KEEP_2)
    table.savepoint(instants[5])
    before = tree(path)
    for to, error in ((instants[4], OptionError), ("20200101000000000", InstantNotFoundError)):
        with pytest.raises(error):
            table.restore(to)
    table.delete_savepoint(instants[5])
    with pytest.raises(MissingFileError):
        table.restore(instants[1])
    assert {k: v for k, v in before.items() if "savepoint" not in k} == tree(path)


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("after", range(1, 30, 4))
def test_a_restore_that_died_is_finished_by_the_same_restore(table, path, monkeypatch, after):
    instants = write(table, range(4))
    before = table.read(as_of=instants[1]).to_arrow().sort_by("k")
    calls = iter(range(1000))

    def delete(self, name, real=LocalStorage.delete):
        if next(calls) == after:
            raise StorageError("the process ends here")
        return real(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "delete", delete)
        died = False
        try:
            table.restore(instants[1])
        except StorageError:
            died = True
    if died:
        with pytest.raises(UnsupportedError, match="restore that is not finished"):
            table.upsert(rows(7))
        with pytest.raises(OptionError, match="begun and not finished"):
            table.restore(instants[0])
        table.restore(instants[1])
    assert table.read().to_arrow().sort_by("k").equals(before)
    assert table.upsert(rows(8)).updated == 6


def test_a_plan_of_a_dry_run_is_refused_where_a_savepoint_needs_its_files_since(table, path):
    instants = write(table, range(6))
    plan = table.clean(dry_run=True, options=KEEP_2).plan
    table.savepoint(instants[2])
    before = tree(path)
    with pytest.raises(UnsupportedError, match="which a savepoint needs") as e:
        table.clean(plan=plan)
    assert "make the plan anew" in e.value.remedy
    assert tree(path) == before


def test_a_commit_that_the_archive_cannot_hold_is_named_and_stays(table, path):
    instants = write(table, range(8))
    file = path / ".hoodie" / f"{instants[0]}.commit"
    file.write_text(file.read_text().replace('"numWrites" : 3', '"numWrites" : "three"'))
    short = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }
    before = tree(path)
    with pytest.raises(CorruptFileError) as e:
        table.archive(options=short)
    assert instants[0] in str(e.value)
    assert tree(path) == before


@pytest.mark.req("RC-07")
def test_a_restore_between_writes_that_overlapped_says_so(table, path):
    first, second, third = write(table, range(3))
    assert table.restore(second, dry_run=True).warnings == ()
    done = path / ".hoodie" / f"{third}.commit"
    os.utime(done, ns=(done.stat().st_atime_ns, (path / ".hoodie" / f"{first}.commit").stat().st_mtime_ns))
    (words,) = table.restore(second, dry_run=True).warnings
    assert second in words
    assert third in words
    assert table.restore(second).warnings == (words,)


@pytest.mark.req("RC-01", "RC-03", "NEW-08")
def test_a_write_that_died_is_rolled_back_by_hand_or_by_the_cleaner_of_lazy_writers(table, path):
    write(table, range(2))
    dead = next_instant(table.timeline.newest_time)
    for lazily in (False, True):
        (path / f".hoodie/{dead}.commit.requested").touch()
        (path / f".hoodie/{dead}.inflight").touch()
        there = tree(path)
        assert table.rollback(dry_run=True).undone == (dead,)
        assert tree(path) == there
        if lazily:
            table.clean(options={"hoodie.cleaner.policy.failed.writes": "LAZY"})
        else:
            assert table.rollback().undone == (dead,)
        assert HudiTable.open(str(path)).timeline.find(dead) is None
        dead = next_instant(HudiTable.open(str(path)).timeline.newest_time)


@pytest.mark.req("RC-01")
def test_only_the_newest_commit_is_rolled_back(table, path):
    first, second = write(table, range(2))
    with pytest.raises(UnsupportedError, match="came after"):
        table.rollback(first)
    with pytest.raises(InstantNotFoundError):
        table.rollback("20200101000000000")
    table.savepoint(second)
    with pytest.raises(OptionError, match="savepointed"):
        table.rollback(second)
    table.delete_savepoint(second)
    before = table.read(as_of=first).to_arrow()
    result = table.rollback(second)
    assert (result.files, result.blocks) == (2, 0)
    assert table.read().to_arrow().sort_by("k").equals(before.sort_by("k"))
    # What the cleaner took cannot come back.
    write(table, range(2, 6))
    table.clean(options={**KEEP_2, "hoodie.cleaner.commits.retained": "1"})
    newest = table.timeline.completed_writes()
    table.rollback(newest[-1].time)
    with pytest.raises(MissingFileError) as e:
        table.rollback(newest[-2].time)
    assert "cleaned away" in e.value.remedy
