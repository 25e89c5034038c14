"""Cleanings without a JVM: what goes, what is kept, and those that died."""

import gc
import os
from dataclasses import replace

import pyarrow as pa
import pytest
from serviced_tables import KEEP_2, OFF, SCHEMA, SHORT, files, rows, tree, write

from hudi_format.errors import (
    CorruptFileError,
    InstantNotFoundError,
    OptionError,
    UnsupportedError,
)
from hudi_timeline import HudiTable
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import (
    next_instant,
)


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


@pytest.mark.req("TS-17", "TS-21", "TS-19", "TM-13")
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


@pytest.mark.req("TS-18", "TM-13")
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


def test_an_overwrite_that_a_cleaning_was_past_before_it_was_there_is_cleaned_by_the_next(table, path):
    """Apache Hudi takes the instant of a write seconds before its first file is there."""
    write(table, range(2))
    late = table.insert_overwrite(rows(2, "b"), options=OFF).instant
    shown = {p: p.read_bytes() for p in (path / ".hoodie").glob(f"{late}.*")}
    for file in shown:
        file.unlink()
    for step in range(3, 7):
        table.upsert(rows(step, "a"), options=OFF)
    assert HudiTable.open(str(path)).clean(options=KEEP_2).plan.earliest.time > late
    for file, content in shown.items():
        file.write_bytes(content)
    for step in range(7, 10):
        table.upsert(rows(step, "a"), options=OFF)
    result = HudiTable.open(str(path)).clean(options=KEEP_2)
    assert result.plan.files["b"]
    assert [p.name for p in (path / "b").glob("*.parquet") if late not in p.name] == []


@pytest.mark.req("TS-02")
@pytest.mark.parametrize("left", ["requested", "inflight", "some files deleted", "all files deleted"])
def test_the_next_cleaning_finishes_one_that_died(table, path, left):
    write(table, range(6))
    plan = table.clean(dry_run=True, options=KEEP_2).plan
    content = plan.to_bytes(str(path))
    time = next_instant(table.timeline.newest_time)
    (path / ".hoodie" / f"{time}.clean.requested").write_bytes(content)
    if left != "requested":
        begun = replace(plan, guarded=True).to_bytes(str(path))
        (path / ".hoodie" / f"{time}.clean.inflight").write_bytes(begun)
    planned = [path / p / n for p, names in plan.files.items() for n in names]
    for file in {"some files deleted": planned[:3], "all files deleted": planned}.get(left, []):
        file.unlink()
    result = table.clean(options=KEEP_2)
    assert result.finished == (time,)
    assert not any(f.exists() for f in planned)
    assert (path / ".hoodie" / f"{time}.clean").exists()


def begun_by_apache_hudi(table, path, *, hours=0.0):
    """Instant of a cleaning that another program has begun so long ago, and the files of its plan."""
    plan = table.clean(dry_run=True, options=KEEP_2).plan
    time = next_instant(table.timeline.newest_time)
    for state in ("requested", "inflight"):
        file = path / ".hoodie" / f"{time}.clean.{state}"
        file.write_bytes(plan.to_bytes(str(path)))
        at = file.stat().st_mtime - hours * 3600
        os.utime(file, (at, at))
    return time, [path / p / n for p, names in plan.files.items() for n in names]


def test_a_cleaning_that_another_program_may_be_at_is_left_to_it(table, path):
    write(table, range(6))
    time, planned = begun_by_apache_hudi(table, path)
    # Of one that was never written whole nothing is left, whatever comes after it.
    empty = path / ".hoodie" / "20200101000000000.clean.requested"
    before = tree(path)
    empty.touch()
    result = table.clean(options=KEEP_2)
    assert (result.instant, result.deleted, result.finished) == ("", 0, ())
    (warning,) = result.warnings
    assert time in warning
    assert f"--instant {time}" in warning
    assert tree(path) == before
    late = table.upsert(rows(7), options=KEEP_2)  # nor does a write
    assert any(f"--instant {time}" in w for w in late.warnings)
    assert all(f.exists() for f in planned)
    # It ends: the next ones go on as ever.
    (path / ".hoodie" / f"{time}.clean.inflight").unlink()
    (path / ".hoodie" / f"{time}.clean.requested").unlink()
    done = table.clean(options=KEEP_2)
    assert done.deleted >= len(planned)
    assert done.warnings == ()


def test_a_cleaning_of_another_program_is_run_by_its_name(table, path):
    write(table, range(6))
    time, planned = begun_by_apache_hudi(table, path)
    look = table.clean(instant=time, dry_run=True)
    assert (look.instant, look.plan.count, look.deleted) == ("", len(planned), 0)
    assert all(f.exists() for f in planned)
    result = table.clean(instant=time)
    assert (result.instant, result.finished, result.deleted) == (time, (time,), len(planned))
    assert not any(f.exists() for f in planned)
    assert not table.timeline.pending("clean")
    with pytest.raises(InstantNotFoundError, match="pending cleanings: none"):
        table.clean(instant=time)
    with pytest.raises(OptionError, match="leave out"):
        table.clean(instant=time, plan=result.plan)


def test_an_old_cleaning_of_another_program_counts_as_dead(table, path):
    write(table, range(6))
    time, planned = begun_by_apache_hudi(table, path, hours=25)
    result = table.clean(options=KEEP_2)
    assert result.finished == (time,)
    assert result.warnings == ()
    assert not any(f.exists() for f in planned)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"partition": "../other"}, "not below the table"),
        ({"name": "hoodie.properties"}, "not a data file"),
        ({"delete": [""]}, "the table's own folder"),
        ({"newest": True}, "which the table needs"),
    ],
)
def test_a_plan_that_would_do_harm_is_refused(table, path, change, says):
    write(table, range(6))
    plan = table.clean(dry_run=True, options=KEEP_2).plan
    record = avro_files.parse("HoodieCleanerPlan", plan.to_bytes(str(path)))
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


STRAY_POLICIES = [
    {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"},
    {"hoodie.cleaner.commits.retained": "1"},
]


@pytest.mark.parametrize("policy", STRAY_POLICIES, ids=["versions", "commits"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("saved", [False, True])
def test_a_leftover_of_a_task_is_in_the_place_of_no_file_with_rows(tmp_path, policy, kind, saved):
    """A file of a completed commit that the commit does not name: no read finds it, so what is older is needed."""
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    off = {"hoodie.table.services.enabled": "false", "hoodie.parquet.small.file.limit": "0"}
    table = HudiTable.create(tmp_path / "t", schema, name="t", record_keys=["id"], ordering_fields=["ts"],
                             table_type=kind, options=off)  # fmt: skip
    table.insert([{"id": "a", "ts": 1}], options=off)
    table.insert([{"id": "b", "ts": 1}], options=off)
    file = table.get(["a"], meta_columns=True).column("_hoodie_file_name")[0].as_py()
    commit = table.upsert([{"id": "b", "ts": 2}], options=off)
    stray = f"{file.partition('_')[0]}_9-9-9_{commit.instant}.parquet"
    (tmp_path / "t" / stray).write_bytes((tmp_path / "t" / file).read_bytes())
    table.upsert([{"id": "b", "ts": 3}], options=off)
    if saved:
        table.savepoint(commit)
        table.upsert([{"id": "a", "ts": 5}, {"id": "b", "ts": 5}], options=off)
    for ts in (6, 7):
        table.upsert([{"id": "b", "ts": ts}], options=off)
        table.clean(options={**off, **policy})
    want = [{"id": "a", "ts": 5 if saved else 1}, {"id": "b", "ts": 7}]
    assert sorted(table.read().to_arrow().to_pylist(), key=str) == want
    if saved:
        table.restore(commit)
        assert sorted(table.read().to_arrow().to_pylist(), key=str) == [
            {"id": "a", "ts": 1},
            {"id": "b", "ts": 2},
        ]
