"""What a killed process leaves pending: `hudi doctor` says so, and what it names ends it without a wrong row."""

import json
import re
import shlex
import shutil
import sys

import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.cli.main import main
from hudi_timeline.services.pending_work import pending_work
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.testing import CHANGES, CRASH, Fault, Faults
from hudi_timeline.transaction.transaction import begin_transaction

pytestmark = pytest.mark.req("RC-01")
ALONE = {"hoodie.table.services.enabled": "false"}
FEW = {"hoodie.cleaner.commits.retained": "1"}


def batch(v):
    return [{"id": key, "p": p, "v": v} for key, p in (("a", "x"), ("b", "y"), ("c", "x"))]


def commits(table):
    return sorted(table.inspect.commits().column("instant").to_pylist())


OPERATIONS = {
    "upsert": lambda t: t.upsert(batch(9)[:2], options=ALONE),
    "insert_overwrite": lambda t: t.insert_overwrite(batch(9), options=ALONE),
    "clean": lambda t: t.clean(options=FEW),
    "compact": lambda t: t.compact(),
    "rollback": lambda t: t.rollback(commits(t)[-1]),
    "restore": lambda t: t.restore(commits(t)[1]),
    "savepoint": lambda t: t.savepoint(),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Paths of tables, by type."""
    folder = tmp_path_factory.mktemp("made")
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = HudiTable.create(
            folder / kind, batch(0), record_keys="id", partition_fields="p", table_type=kind
        )
        for v in range(1, 4):
            table.upsert(batch(v), options=ALONE)
    return folder


def rows(path):
    return sorted((r["id"], r["p"], r["v"]) for r in HudiTable.open(path).read().to_arrow().to_pylist())


@pytest.fixture
def hudi(monkeypatch, capsys):
    """Runs the command; gives exit code and standard output."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["hudi", *arguments])
        with pytest.raises(SystemExit) as e:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return e.value.code or 0, captured.out or captured.err

    return run


def killed(template, path, act, at):
    """Kill an operation before its change of this number; whether it came so far."""
    shutil.copytree(template, path)
    faults = Faults(Fault(CRASH, operation=CHANGES, nth=at))
    with faults.process():
        act(HudiTable.open(faults.wrap(open_storage(path))))
    return faults.dead


def notes(hudi, path):
    code, out = hudi("doctor", path, "-o", "json")
    assert code == 0, out
    return [r["note"] for r in json.loads(out) if r["check"] == "pending" and r["state"] != "ok"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_doctor_names_ends_what_a_killed_process_left(made, tmp_path, hudi, name):
    template = made / ("MERGE_ON_READ" if name == "compact" else "COPY_ON_WRITE")
    whole = tmp_path / "whole"
    shutil.copytree(template, whole)
    OPERATIONS[name](HudiTable.open(whole))
    states = (rows(template), rows(whole))
    seen, at = set(), 0
    while killed(template, path := str(tmp_path / f"t {(at := at + 1)}"), OPERATIONS[name], at):
        pending = [i for i in HudiTable.open(path).timeline.instants if not i.completed]
        kind = tuple((i.action, i.state) for i in pending)
        if not kind or kind in seen:
            continue
        seen.add(kind)
        assert rows(path) in states
        for _ in range(len(pending)):  # one may end others too
            found = notes(hudi, path)
            if not found:
                break
            assert all("left behind" in n or "planned" in n for n in found)
            way = next(w for n in found for w in re.findall("`hudi (.+)`", n))
            code, out = hudi(*shlex.split(way))
            assert code == 0, out
        assert notes(hudi, path) == []
        assert rows(path) in states, kind
        assert hudi("verify", path, "--deep")[0] == 0
        HudiTable.open(path).upsert([{"id": "n", "p": "x", "v": 1}], options=ALONE)
        assert ("n", "x", 1) in rows(path)
    assert seen


def test_a_writer_at_work_is_told_from_one_that_is_gone(made, tmp_path):
    shutil.copytree(made / "COPY_ON_WRITE", tmp_path / "t")
    table = HudiTable.open(tmp_path / "t")
    with begin_transaction(table.storage, table.config, operation="UPSERT") as writer:
        (work,) = pending_work(ServiceContext(table.storage))
        assert work.alive
        assert str(work).startswith(f"{writer.instant} commit requested: at work (its last heartbeat is")


def test_a_plan_that_nobody_has_begun_is_none_of_a_dead_process(made, tmp_path, hudi):
    path = str(tmp_path / "t")
    shutil.copytree(made / "MERGE_ON_READ", path)
    assert hudi("compact", "schedule", path, "--option", "hoodie.compact.inline.max.delta.commits=1")[0] == 0
    (note,) = notes(hudi, path)
    assert "compaction requested: planned; the next compaction does it" in note


def test_more_than_a_few_are_counted(made, tmp_path, hudi):
    path = tmp_path / "t"
    shutil.copytree(made / "COPY_ON_WRITE", path)
    for n in range(8):
        (path / ".hoodie" / f"2020010100000000{n}.commit.requested").touch()
    found = notes(hudi, str(path))
    assert len(found) == 6
    assert found[-1] == "and 3 more, see `hudi timeline`"
