"""Rollback and restore: Apache Hudi 0.15.0 reads what we undid and carries on, and we leave what it leaves.

What we undo is undone in the metadata table of Apache Hudi too.
"""

import json
import shutil

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.timeline import avro_files
from interop.rows import assert_same_rows

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.compact.schedule.inline": "false",
}
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


def rows(step, numbers, partitions="ab"):
    return pa.Table.from_pylist(
        [{"k": f"{p}{i}", "p": p, "ts": step, "v": str(step)} for p in partitions for i in numbers],
        schema=SCHEMA,
    )


class Made:
    """Tables of Apache Hudi, copied before each test, and the process that reads them."""

    def __init__(self, apache, folder):
        self.apache, self.folder = apache, folder
        self.count = 0

    def write(self, path, table_type, step, numbers, partitions="ab", operation="upsert", **more):
        given = {
            **OPTIONS,
            "hoodie.datasource.write.table.type": table_type,
            # Apache Hudi restores to before its metadata table's first base file only where there is none.
            "hoodie.metadata.enable": str(table_type == MOR).lower(),
            "hoodie.datasource.write.operation": operation,
            **more,
        }
        self.apache.write(path, rows(step, numbers, partitions), given)

    def named(self, path):
        self.count += 1
        name = f"undo_{self.count}"
        self.apache.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
        return name

    def copy(self, name, target):
        if name == COW and not (self.folder / COW).exists():
            self.start(COW)
        shutil.copytree(self.folder / name, target)
        return target

    def start(self, table_type):
        path = self.folder / table_type
        self.write(path, table_type, 0, range(4), operation="insert")
        self.write(path, table_type, 1, range(2))
        self.write(path, table_type, 2, range(1, 6), "a")


@pytest.fixture(scope="module")
def made(pool, tmp_path_factory):
    made = Made(pool.get("0.15.0"), tmp_path_factory.mktemp("undo"))
    made.start(MOR)
    path = made.folder / "compacted"
    shutil.copytree(made.folder / MOR, path)
    name = made.named(path)
    options = "options => 'hoodie.compact.inline.max.delta.commits=1'"
    made.apache.sql(f"CALL run_compaction(op => 'schedule', table => '{name}', {options})")
    made.write(path, MOR, 3, range(3))
    shutil.copytree(path, made.folder / "scheduled")
    made.apache.sql(f"CALL run_compaction(op => 'run', table => '{name}')")
    made.write(path, MOR, 4, range(8))
    return made


def commits(path):
    return sorted(f.name.split(".")[0] for f in (path / ".hoodie").iterdir() if f.name.endswith("commit"))


def data_files(path):
    found = (f for f in path.rglob("*") if f.is_file() and ".hoodie" not in f.relative_to(path).parts)
    return sorted(str(f.relative_to(path)) for f in found if not f.name.endswith(".crc"))


def record(path, suffix, kind):
    (file,) = (path / ".hoodie").glob(f"*.{suffix}")
    return avro_files.parse(kind, file.read_bytes())


def comparable(record, path):
    """A plan or result without times and the table's place, in an order."""
    record = json.loads(json.dumps(record).replace(str(path), "<table>"))
    for varying in ("startRollbackTime", "timeTakenInMillis"):
        record.pop(varying, None)
    if "RollbackRequests" in record:
        record["RollbackRequests"].sort(key=json.dumps)
    return record


@pytest.mark.req("RC-01", "TM-10")
@pytest.mark.parametrize("name", ["compacted", COW, MOR])
def test_we_roll_back_a_completed_commit_as_apache_hudi_does(made, tmp_path, name):
    ours, theirs = made.copy(name, tmp_path / "ours"), made.copy(name, tmp_path / "theirs")
    last = commits(ours)[-1]
    HudiTable.open(str(ours)).rollback(last)
    made.apache.sql(f"CALL rollback_to_instant(table => '{made.named(theirs)}', instant_time => '{last}')")
    assert data_files(ours) == data_files(theirs)
    for suffix, kind in (
        ("rollback.requested", "HoodieRollbackPlan"),
        ("rollback", "HoodieRollbackMetadata"),
    ):
        mine, other = (comparable(record(p, suffix, kind), p) for p in (ours, theirs))
        assert mine == other
    assert_same_rows(
        HudiTable.open(str(ours)).read(meta_columns=True).to_arrow(), made.apache.read(ours), ["k"]
    )
    assert_same_rows(made.apache.read(ours), made.apache.read(theirs), ["k"])
    made.write(ours, COW if name == COW else MOR, 9, range(1, 7))
    assert_same_rows(
        HudiTable.open(str(ours)).read(meta_columns=True).to_arrow(), made.apache.read(ours), ["k"]
    )


def fail(path, last):
    """As if the writer of the last commit had died before it completed it."""
    (completed,) = (path / ".hoodie").glob(f"{last}.*commit")
    metadata = json.loads(completed.read_bytes())
    completed.unlink()
    for stats in metadata["partitionToWriteStats"].values():
        for stat in stats:
            kind = (
                "APPEND" if ".log." in stat["path"] else "MERGE" if stat["prevCommit"] != "null" else "CREATE"
            )
            marker = path / ".hoodie/.temp" / last / f"{stat['path']}.marker.{kind}"
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()


@pytest.mark.req("RC-01", "RC-02", "RC-09", "TM-02")
@pytest.mark.parametrize("name", [MOR, COW])
def test_a_failed_write_of_apache_hudi_is_rolled_back_as_by_itself(made, tmp_path, name):
    ours, theirs = made.copy(name, tmp_path / "ours"), made.copy(name, tmp_path / "theirs")
    last = commits(ours)[-1]
    fail(ours, last), fail(theirs, last)
    assert HudiTable.open(str(ours)).rollback().undone == (last,)
    made.write(theirs, name, 9, range(1), "b")
    for suffix, kind in (
        ("rollback.requested", "HoodieRollbackPlan"),
        ("rollback", "HoodieRollbackMetadata"),
    ):
        mine, other = (comparable(record(p, suffix, kind), p) for p in (ours, theirs))
        assert mine == other
    assert not list((ours / ".hoodie/.temp").iterdir())
    made.write(ours, name, 9, range(1), "b")
    mine, other = made.apache.read(ours), made.apache.read(theirs)
    meta = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
    assert_same_rows(mine.drop_columns(meta), other.drop_columns(meta), ["k"])
    assert_same_rows(HudiTable.open(str(ours)).read(meta_columns=True).to_arrow(), mine, ["k"])


@pytest.mark.req("RC-01", "TM-02")
@pytest.mark.parametrize("planner", ["ours", "apache"])
@pytest.mark.parametrize("name", [MOR, COW])
def test_one_executes_the_rollback_that_the_other_requested(made, tmp_path, name, planner):
    path, done = made.copy(name, tmp_path / "t"), made.copy(name, tmp_path / "done")
    last = commits(path)[-1]
    fail(path, last), fail(done, last)
    if planner == "ours":
        HudiTable.open(str(done)).rollback()
    else:
        made.write(done, name, 9, range(1), "b")
    # Only the plan of it, put to the table where nothing was done yet.
    (plan,) = (done / ".hoodie").glob("*.rollback.requested")
    parsed = avro_files.parse("HoodieRollbackPlan", plan.read_bytes())
    moved = json.loads(json.dumps(parsed).replace(str(done), str(path)))
    content = avro_files.render("HoodieRollbackPlan", moved)
    (path / ".hoodie" / plan.name).write_bytes(content)
    if planner == "ours":
        made.write(path, name, 9, range(1), "b")
    else:
        HudiTable.open(str(path)).rollback()
        made.write(path, name, 9, range(1), "b")
    (finished,) = (path / ".hoodie").glob("*.rollback")
    assert finished.name == plan.name.removesuffix(".requested")
    mine = HudiTable.open(str(path)).read(meta_columns=True).to_arrow()
    assert_same_rows(mine, made.apache.read(path), ["k"])
    assert "2" not in mine.column("v").to_pylist()


@pytest.mark.req("RC-06", "TM-11", "TM-12")
@pytest.mark.parametrize(("name", "to"), [("compacted", 2), (MOR, 0), ("compacted", 3), ("scheduled", 1)])
def test_apache_hudi_goes_on_after_our_restore_of_a_merge_on_read_table(made, tmp_path, name, to):
    ours, theirs = made.copy(name, tmp_path / "ours"), made.copy(name, tmp_path / "theirs")
    at = commits(ours)[to]
    table = HudiTable.open(str(ours))
    before = table.read(as_of=at, meta_columns=True).to_arrow()
    table.savepoint(at)
    other = made.named(theirs)
    made.apache.sql(f"CALL create_savepoint(table => '{other}', commit_time => '{at}')")
    mine, saved = (
        record(p, "savepoint", "HoodieSavepointMetadata")["partitionMetadata"] for p in (ours, theirs)
    )
    for found in (*mine.values(), *saved.values()):
        found["savepointDataFile"].sort()
    assert mine == saved
    result = table.restore(at)
    assert_same_rows(made.apache.read(ours), before, ["k"])
    made.apache.sql(f"CALL rollback_to_savepoint(table => '{other}', instant_time => '{at}')")
    assert_same_rows(made.apache.read(theirs), before, ["k"])
    plans = [record(p, "restore.requested", "HoodieRestorePlan") for p in (ours, theirs)]
    assert plans[0] == plans[1]
    done = [record(p, "restore", "HoodieRestoreMetadata")["instantsToRollback"] for p in (ours, theirs)]
    assert done[0] == done[1] == list(result.undone)
    made.write(ours, MOR, 9, range(6))
    assert_same_rows(
        HudiTable.open(str(ours)).read(meta_columns=True).to_arrow(), made.apache.read(ours), ["k"]
    )
    made.apache.sql(f"CALL run_compaction(op => 'scheduleandexecute', table => '{made.named(ours)}', "
                    "options => 'hoodie.compact.inline.max.delta.commits=1')")  # fmt: skip
    after = HudiTable.open(str(ours)).read(meta_columns=True).to_arrow()
    assert_same_rows(after, made.apache.read(ours), ["k"])
    assert after.column("v").to_pylist().count("9") == 12


@pytest.mark.req("RC-01", "TM-03")
def test_apache_hudi_runs_a_compaction_that_we_rolled_back(made, tmp_path):
    path = made.copy("scheduled", tmp_path / "t")
    before = HudiTable.open(str(path)).read(meta_columns=True).to_arrow()
    (requested,) = (path / ".hoodie").glob("*.compaction.requested")
    time = requested.name.split(".")[0]
    # As if its process had died between two files.
    (path / ".hoodie" / f"{time}.compaction.inflight").touch()
    half = next(f for f in path.glob("a/*.parquet"))
    name = f"{half.name.split('_')[0]}_0-1-2_{time}.parquet"
    (path / "a" / name).write_bytes(half.read_bytes()[:1000])
    marker = path / ".hoodie/.temp" / time / "a" / f"{name}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    result = HudiTable.open(str(path)).rollback(time)
    assert (result.files, result.plans[0].target.action) == (1, "compaction")
    assert requested.exists()
    assert_same_rows(made.apache.read(path), before, ["k"])
    made.apache.sql(f"CALL run_compaction(op => 'run', table => '{made.named(path)}')")
    assert (path / ".hoodie" / f"{time}.commit").exists()
    assert_same_rows(
        made.apache.read(path), HudiTable.open(str(path)).read(meta_columns=True).to_arrow(), ["k"]
    )
    assert sorted(before.column("v").to_pylist()) == sorted(made.apache.read(path).column("v").to_pylist())


@pytest.mark.req("RC-01")
@pytest.mark.parametrize("name", [MOR, COW])
@pytest.mark.slow
def test_apache_hudi_takes_our_rollback_of_a_write_whose_tasks_write_only_afterwards(made, tmp_path, name):
    """Partitions without files in the rollback's metadata, and late files that an archival of ours undoes."""
    path = made.copy(name, tmp_path / "t")
    last = commits(path)[-1]
    (completed,) = (path / ".hoodie").glob(f"{last}.*commit")
    stats = [s for of in json.loads(completed.read_bytes())["partitionToWriteStats"].values() for s in of]
    late = {s["path"]: (path / s["path"]).read_bytes() for s in stats}
    completed.unlink()
    for file in late:
        (path / file).unlink()
        (path / file).with_name(f".{(path / file).name}.crc").unlink(missing_ok=True)
    assert HudiTable.open(str(path)).rollback().undone == (last,)
    said = record(path, "rollback", "HoodieRollbackMetadata")["partitionMetadata"]
    assert {p: of["successDeleteFiles"] for p, of in said.items()} == {"a": []}
    for file, content in late.items():
        (path / file).write_bytes(content)
    own = {"hoodie.metadata.compact.max.delta.commits": "1", "hoodie.parquet.small.file.limit": "0"}
    for step in range(3, 8):
        made.write(path, name, step, range(2), **own)
    before = made.apache.read(path)
    assert "2" not in before.column("v").to_pylist()
    short = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    assert HudiTable.open(str(path)).archive(options=short).plan
    assert HudiTable.open(str(path)).timeline.first_active > last
    assert_same_rows(made.apache.read(path), before, ["k"])
    assert_same_rows(HudiTable.open(str(path)).read(meta_columns=True).to_arrow(), before, ["k"])
    made.write(path, name, 9, range(3), **own)
    assert_same_rows(
        HudiTable.open(str(path)).read(meta_columns=True).to_arrow(), made.apache.read(path), ["k"]
    )
