"""Compaction beside Apache Hudi 0.15.0: either executes what the other planned, and both read and write on.

The metadata table of Apache Hudi is kept by both.
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
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
}
ONE = "options => 'hoodie.compact.inline.max.delta.commits=1,hoodie.metadata.enable=false'"


def rows(step, numbers, partitions="ab"):
    return pa.Table.from_pylist(
        [{"k": f"{p}{i}", "p": p, "ts": step, "v": str(step)} for p in partitions for i in numbers],
        schema=SCHEMA,
    )


class Tables:
    """A table with logs, copied before each test, and the process of Apache Hudi."""

    def __init__(self, apache, folder):
        self.apache, self.folder, self.count = apache, folder, 0

    def write(self, path, step, numbers, partitions="ab", operation="upsert"):
        given = {**OPTIONS, "hoodie.datasource.write.operation": operation}
        self.apache.write(path, rows(step, numbers, partitions), given)

    def call(self, path, what):
        self.count += 1
        name = f"compaction_{self.count}"
        self.apache.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
        return self.apache.sql(f"CALL run_compaction(op => '{what}', table => '{name}', {ONE})")

    def copy(self, target):
        shutil.copytree(self.folder / "t", target)
        return target

    def same(self, path, deep=True):
        """Both read the same rows, and nothing is wrong with the table; the rows."""
        table = HudiTable.open(str(path))
        theirs = self.apache.read(path)
        assert_same_rows(table.read(meta_columns=True).to_arrow(), theirs, ["k"])
        assert table.verify(deep=deep) == []
        return theirs


@pytest.fixture(scope="module")
def tables(pool, tmp_path_factory):
    made = Tables(pool.get("0.15.0"), tmp_path_factory.mktemp("compaction"))
    path = made.folder / "t"
    made.write(path, 0, range(7), operation="insert")
    made.write(path, 1, range(2))
    made.write(path, 2, range(1, 3), "a")
    made.write(
        path, 3, range(6, 7), "b", operation="delete"
    )  # a key that never comes back: see the index SIMPLE
    return made


def hoodie(path, ending):
    return sorted((path / ".hoodie").glob(f"*.{ending}"))


# The new files' names, sizes and times differ; so do counters that no reader looks at.
VARYING = {"path", "runtimeStats", "totalWriteBytes", "fileSizeInBytes"}


def commit_of(path):
    value = json.loads(hoodie(path, "commit")[-1].read_bytes())
    stats = {
        s["fileId"]: {k: v for k, v in s.items() if k not in VARYING}
        for of in value.pop("partitionToWriteStats").values()
        for s in of
    }
    return {**value, "stats": stats}


@pytest.mark.req("TS-03", "TM-14")
def test_both_plan_and_execute_alike(tables, tmp_path):
    ours, theirs = tables.copy(tmp_path / "ours"), tables.copy(tmp_path / "theirs")
    before = tables.same(ours).drop_columns(["_hoodie_file_name"])
    assert HudiTable.open(str(ours)).compact().executed
    tables.call(theirs, "schedule")
    tables.call(theirs, "run")
    plans = []
    for path in (ours, theirs):
        plan = avro_files.parse("HoodieCompactionPlan", hoodie(path, "compaction.requested")[-1].read_bytes())
        plan["operations"].sort(key=lambda o: o["fileId"])
        plan["extraMetadata"] = plan["extraMetadata"] or {}  # null where nothing was given, or empty
        plans.append(plan)
    assert plans[0] == plans[1]
    assert commit_of(ours) == commit_of(theirs)
    for path in (ours, theirs):
        assert_same_rows(tables.same(path).drop_columns(["_hoodie_file_name"]), before, ["k"])


@pytest.mark.req("TS-02", "TS-09")
@pytest.mark.parametrize("planner", ["ours", "theirs"])
@pytest.mark.slow
def test_one_executes_what_the_other_planned_beside_writes(tables, tmp_path, planner):
    path = tables.copy(tmp_path / "t")
    if planner == "ours":
        assert HudiTable.open(str(path)).compact(mode="schedule").scheduled
    else:
        tables.call(path, "schedule")
    tables.write(path, 5, range(5))
    before = tables.same(path).drop_columns(["_hoodie_file_name"])
    (planned,) = (i.time for i in HudiTable.open(str(path)).timeline.pending("compaction"))
    if planner == "ours":
        tables.call(path, "execute")  # "run" would plan once more before it looks for what is pending
    else:
        assert len(HudiTable.open(str(path)).compact(mode="execute").executed) == 1
    assert_same_rows(tables.same(path).drop_columns(["_hoodie_file_name"]), before, ["k"])
    assert [f.stem for f in hoodie(path, "commit")] == [planned]
    tables.write(path, 6, range(2, 6))
    HudiTable.open(str(path)).upsert(rows(7, range(1, 3)), options=OPTIONS)
    tables.same(path)
    tables.call(path, "schedule")
    tables.call(path, "run")
    HudiTable.open(str(path)).upsert(rows(8, range(2)), options=OPTIONS)
    HudiTable.open(str(path)).compact()
    assert {r["v"] for r in tables.same(path).to_pylist()} >= {"8"}


@pytest.mark.req("TM-14")
def test_apache_hudi_goes_on_after_an_execution_of_ours_died(tables, tmp_path):
    path = tables.copy(tmp_path / "t")
    planned = HudiTable.open(str(path)).compact(mode="schedule").scheduled

    def dies(tasks):
        raise KeyboardInterrupt

    before = tables.same(path)
    with pytest.raises(KeyboardInterrupt):
        HudiTable.open(str(path)).compact(mode="execute", run=dies)
    (
        path / f".hoodie/{planned}.compaction.inflight"
    ).touch()  # as if it could not have been given back either
    tables.write(path, 5, range(1))
    tables.call(path, "run")
    after = tables.same(path)
    assert after.num_rows == before.num_rows
    assert hoodie(path, "commit")[-1].name.startswith(planned)


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", ["a file is left out", "unreadable"])
def test_apache_hudi_executes_a_plan_that_was_repaired(tables, tmp_path, spoilt):
    path = tables.copy(tmp_path / "t")
    tables.call(path, "schedule")
    tables.write(path, 5, range(5))
    before = tables.same(path).drop_columns(["_hoodie_file_name"])
    (file,) = hoodie(path, "compaction.requested")
    plan = avro_files.parse("HoodieCompactionPlan", file.read_bytes())
    plan["operations"][0]["dataFilePath"] = None
    whole = avro_files.render("HoodieCompactionPlan", plan)
    file.write_bytes(whole if spoilt != "unreadable" else whole[:-30])
    planned = file.name.partition(".")[0]
    assert HudiTable.open(str(path)).repair_compaction(planned).rewritten
    tables.call(path, "execute")
    assert [f.stem for f in hoodie(path, "commit")] == [planned]
    assert_same_rows(tables.same(path).drop_columns(["_hoodie_file_name"]), before, ["k"])
