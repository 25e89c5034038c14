"""Bug capsules: the same plan, the same findings, the same faults; and none of the data."""

import json
import re
import zipfile

import pytest
from typer.testing import CliRunner

from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.bug_capsule import make, make_capsule, open_capsule
from hudi_timeline.cli.main import app
from hudi_timeline.concurrency import store_clock
from hudi_timeline.testing import CHANGES, CRASH, DOUBLE, FAIL, Fault, Faults, make_state, state_names

pytestmark = pytest.mark.req("NEW-13")
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "name",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}


def rebuilt(table, folder, **more):
    make_capsule(table.storage, folder / "bug.zip", **more)
    open_capsule(folder / "bug.zip", folder / "rebuilt")
    return HudiTable._of(LocalStorage(str(folder / "rebuilt")))


NAME = re.compile(r"[0-9a-z-]+_[0-9-]+_\d{17}\.parquet|\.[0-9a-z-]+_\d{17}\.log\.\d+_[0-9-]+")


def plan(table):
    """Names and sizes of the files of a plan, or how it fails."""
    try:
        tasks = table.read().plan_files()
    except HudiError as e:
        return [type(e)]
    return sorted(
        (t.path.rpartition("/")[2], t.size, t.instant, t.file_id, sorted(set(NAME.findall(repr(t.logs)))))
        for t in tasks
    )


def findings(table):
    return sorted((f.code, str(f.severity), f.path.rpartition("/")[2], f.instant) for f in table.verify())


def test_a_rebuilt_table_has_the_same_plan_and_the_same_findings(table, tmp_path):
    again = rebuilt(table, tmp_path)
    assert plan(again) == plan(table)
    assert len(plan(table)) == 2
    assert all(size for _, size, *_ in plan(table))
    assert findings(again) == findings(table)
    assert [str(i) for i in again.timeline.instants] == [str(i) for i in table.timeline.instants]
    assert again.savepoints == table.savepoints
    assert again.schema == table.schema
    keys = again.read(["_hoodie_record_key", "name"]).to_arrow()
    assert keys["_hoodie_record_key"].to_pylist() == keys["name"].to_pylist()
    order = [k for _, k in sorted(zip(table.read(["name"]).to_arrow()["name"].to_pylist(),
                                      keys["name"].to_pylist(), strict=True))]  # fmt: skip
    assert order == sorted(order), "masks keep the order"
    assert again.get(keys["name"]).num_rows == 3


@pytest.mark.parametrize("name", [n for n in state_names() if n != "no commit"])
def test_every_state_is_rebuilt_with_its_plan_and_its_findings(name, tmp_path):
    state = make_state(name)
    again = rebuilt(state.table, tmp_path)
    assert findings(again) == findings(state.table)
    assert plan(again) == plan(state.table)
    if name in ("log files", "pending compaction"):
        assert plan(again)[0][4], "log files are in the plan"


@pytest.mark.parametrize(
    "faults",
    [
        lambda: Faults(Fault(CRASH, operation=CHANGES, nth=8)),
        lambda: Faults.random(7, rate=0.1, kinds=(FAIL, DOUBLE)),
    ],
    ids=["crash", "seed 7"],
)
def test_a_fault_strikes_in_the_rebuilt_table_as_in_the_table(table, tmp_path, faults):
    def run(storage):
        made, told = faults(), ""
        # Only of a writer that is not known here the store is asked for the time, once by a process.
        store_clock.store_seconds(storage, ".hoodie")
        partition = min(e.name for e in storage.list("") if e.name.startswith("city="))
        try:
            with made.process():
                HudiTable._of(made.wrap(storage), OPTIONS).delete_partitions([partition])
        except HudiError as e:
            told = e.code
        assert made.struck
        instants = [(i.action, i.state) for i in HudiTable._of(storage).timeline.instants]
        return [(c.operation, c.fault, c.error) for c in made.log], instants, told

    again = rebuilt(table, tmp_path)
    assert run(again.storage) == run(table.storage)


@pytest.mark.parametrize("time", [-1, 10**15, 10**30])
def test_a_time_that_no_file_has_is_refused(tmp_path, time):
    with zipfile.ZipFile(tmp_path / "bug.zip", "w") as archive:
        archive.writestr(
            "capsule.json", json.dumps({"format": 1, "files": [{"path": "a", "mtime_ms": time}]})
        )
        archive.writestr("files/a", "x")
    with pytest.raises(CorruptFileError, match="the time"):
        open_capsule(tmp_path / "bug.zip", tmp_path / "table")


def test_the_command_makes_a_capsule_and_opens_it(table, tmp_path):
    runner = CliRunner()
    made = runner.invoke(app, ["capsule", table.uri, "-o", str(tmp_path / "b.zip"), "--option", "hoodie.x=1"])
    assert made.exit_code == 0, made.output
    opened = runner.invoke(app, ["capsule", "open", str(tmp_path / "b.zip"), str(tmp_path / "r")])
    assert opened.exit_code == 0, opened.output
    assert "hoodie.x=1" in opened.output
    assert findings(HudiTable.open(str(tmp_path / "r"))) == findings(table)
    assert runner.invoke(app, ["capsule", table.uri]).exit_code == 2


def test_a_file_that_is_cleaned_while_the_capsule_is_made_is_left_out(table, tmp_path, monkeypatch):
    real, gone = make.masked_base_file, []

    def cleaned(storage, path, *rest, **more):
        if not gone:
            gone.append(path)
            storage.delete(path)
        return real(storage, path, *rest, **more)

    monkeypatch.setattr(make, "masked_base_file", cleaned)
    again = rebuilt(table, tmp_path)
    left = list((tmp_path / "original").rglob("*.parquet"))
    assert gone
    assert len(list((tmp_path / "rebuilt").rglob("*.parquet"))) == len(left)
    assert findings(again) == findings(table)
