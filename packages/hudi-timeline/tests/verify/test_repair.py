"""Repairs: planned first, done as planned, and finished by the next one."""

import json
import os
import shutil

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from hudi_format.errors import ConcurrentWriterError, OptionError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.cli.main import app
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.testing import CHANGES, CRASH, Fault, Faults

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])


def rows(step, partitions="ab"):
    return [{"k": f"{p}{i}", "p": p, "v": step} for p in partitions for i in range(3)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t"


@pytest.fixture
def table(path):
    return HudiTable.create(str(path), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


def tree(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def planted(path):
    """A stray file, a missing state and a leftover heartbeat; the table's files."""
    (path / ".hoodie/.heartbeat").mkdir(exist_ok=True)
    (path / ".hoodie/.heartbeat/20200101000000000").touch()
    os.utime(path / ".hoodie/.heartbeat/20200101000000000", (1e9, 1e9))
    next((path / ".hoodie").glob("*.inflight")).unlink()
    (path / "a/part-00000.parquet").write_bytes(b"PAR1")
    return tree(path)


@pytest.mark.req("NEW-08")
def test_a_repair_is_planned_first_and_keeps_what_it_takes_away(table, path):
    table.upsert(rows(0))
    before = planted(path)
    run = CliRunner().invoke(app, ["repair", str(path)])
    assert run.exit_code == 0, run.output
    assert tree(path) == before
    assert "move a/part-00000.parquet" in run.stdout
    assert "create .hoodie/2" in run.stdout
    run = CliRunner().invoke(app, ["repair", str(path), "--execute", "--json"])
    assert run.exit_code == 0, run.output
    done = json.loads(run.stdout)
    assert done["left"] == []
    now = tree(path)
    assert all(now.get(n) == d or now[f"{done['folder']}/{n}"] == d for n, d in before.items())
    assert json.loads(now[f"{done['folder']}/repair_plan.json"])["repairs"] == done["repairs"]
    assert table.verify(deep=True) == []


def test_a_repair_of_some_findings_leaves_the_others(table, path):
    table.upsert(rows(0))
    planted(path)
    result = table.repair(only=["name-unknown"], keep=False)
    assert {f.code for f in result.left} == {"timeline-no-inflight", "heartbeat-left"}
    assert not (path / "a/part-00000.parquet").exists()
    assert not (path / result.folder / "a").exists()
    with pytest.raises(OptionError):
        table.repair(only=["no-such-code"])


def test_nothing_is_repaired_while_a_writer_is_at_work(table, path):
    table.upsert(rows(0))
    before = planted(path)
    beat = heartbeat.start(table.storage, "20990101000000000")
    with pytest.raises(ConcurrentWriterError, match="a writer is at work"):
        table.repair()
    beat.stop()
    assert tree(path) == before


def test_a_plan_does_only_what_is_in_it_and_still_so(table, path):
    table.upsert(rows(0))
    planted(path)
    plan = table.repair(dry_run=True).plan
    (path / "a/part-00000.parquet").unlink()
    (path / "b/part-00000.parquet").write_bytes(b"PAR1")
    result = table.repair(plan=plan)
    assert [f.path for f in result.left] == ["b/part-00000.parquet"]


@pytest.mark.req("NEW-08")
def test_a_repair_that_dies_at_any_step_is_done_by_the_next_one(table, path, tmp_path):
    table.upsert(rows(0))
    planted(path)
    (path / ".hoodie/hoodie.properties").rename(path / ".hoodie/hoodie.properties.backup")
    want = table.read(["k", "v"], meta_columns=False).to_arrow().sort_by("k")
    cuts = 0
    while True:
        copy = tmp_path / f"cut{cuts}"
        shutil.copytree(path, copy)
        faults = Faults(Fault(CRASH, operation=CHANGES, nth=cuts + 1, after=bool(cuts % 2)))
        with faults.process():
            HudiTable._of(faults.wrap(LocalStorage(str(copy)))).repair()
        now = HudiTable._of(LocalStorage(str(copy)))
        assert now.repair().left == ()
        assert now.verify(deep=True) == []
        assert now.read(["k", "v"], meta_columns=False).to_arrow().sort_by("k") == want
        if not faults.struck:
            break
        cuts += 1
    assert cuts > 6
