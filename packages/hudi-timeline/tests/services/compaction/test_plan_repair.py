"""Plans that cannot be executed and cannot be withdrawn: they are made anew, and no row is lost."""

import pytest

from hudi_format.errors import (
    ConcurrentWriterError,
    CorruptFileError,
    MissingFileError,
    UnsupportedError,
)
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.testing import CHANGES, CRASH, Fault, Faults
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import COMPACTION, INFLIGHT, REQUESTED

PLAN = "HoodieCompactionPlan"
ROWS = {"a": 100, "b": 20, "c": 3}


@pytest.fixture
def made(tmp_path):
    """A pending plan of two file groups, the first of which was written to since."""
    table = TableBuilder(open_storage(str(tmp_path / "t")), table_type="MERGE_ON_READ")
    table.commit("first", table.base("first", {"a": 1, "c": 3}), table.base("first", {"b": 2}, group=2))
    table.commit("second", table.log("second", {"a": 10}), table.log("second", {"b": 20}, group=2))
    table.instants["plan"] = table.table.compact(mode="schedule").scheduled
    table.instants["beside"] = str(int(table.at("plan")) + 1)
    table.commit("beside", table.log("beside", {"a": 100}, on="plan"))
    return table


def rows(made, **how):
    return {r["id"]: r["v"] for r in made.table.read(["id", "v"], **how).to_arrow().to_pylist()}


def change(made, how):
    """Change the operations of the plan, as a stranger may have made them."""
    path = made.path_of(made.at("plan"), COMPACTION, REQUESTED)
    record = avro_files.parse(PLAN, made.storage.read(path))
    how(record["operations"])
    made.storage.publish(path, avro_files.render(PLAN, record))


def drop_logs(operations):
    operations[0]["deltaFilePaths"] = []


def drop_base(operations):
    operations[0]["dataFilePath"] = None


def drop_first(operations):
    del operations[0]


def lead_out(operations):
    operations[1]["partitionPath"] = "../other"


def repeat(operations):
    operations.append(dict(operations[0]))


@pytest.mark.parametrize("how", [drop_logs, drop_base, lead_out, repeat])
@pytest.mark.parametrize("begun", [False, True])
def test_a_plan_that_is_neither_executed_nor_withdrawn_is_repaired_and_executed(made, how, begun):
    plan = made.at("plan")
    change(made, lambda operations: (operations.sort(key=lambda o: o["fileId"]), how(operations)))
    if begun:  # and left dead
        made.storage.create(made.path_of(plan, COMPACTION, INFLIGHT), b"")
    with pytest.raises((UnsupportedError, CorruptFileError), match="hudi compact repair"):
        made.table.compact(mode="execute", instant=plan)
    dry = made.table.repair_compaction(plan, dry_run=True)
    done = made.table.repair_compaction(plan)
    assert (done.changed, done.left_out, done.gone) == (dry.changed, dry.left_out, False)
    assert made.group(1) in {o.file_id for o in done.operations}
    assert rows(made) == ROWS
    again = made.table.repair_compaction(plan)
    assert (done.rewritten, again.rewritten) == (True, False)
    assert all(c.valid for c in made.table.validate_compaction(plan))
    assert made.table.compact(mode="execute").executed == (plan,)
    assert rows(made) == ROWS
    made.table.compact()
    assert rows(made, query="read_optimized") == ROWS
    assert made.table.verify(deep=True) == []


@pytest.mark.parametrize("what", [b"", b"no plan", None])
def test_a_plan_that_cannot_be_read_is_made_anew_for_what_was_written_since(made, what):
    plan = made.at("plan")
    path = made.path_of(plan, COMPACTION, REQUESTED)
    made.storage.publish(path, made.storage.read(path)[:-20] if what is None else what)
    with pytest.raises(CorruptFileError, match="hudi compact repair"):
        rows(made)
    done = made.table.repair_compaction(plan)
    assert [o.file_id for o in done.changed] == [made.group(1)]
    assert rows(made) == ROWS
    assert made.table.compact(mode="execute").executed == (plan,)
    made.table.compact()
    assert rows(made, query="read_optimized") == ROWS
    assert made.table.verify(deep=True) == []


@pytest.mark.parametrize("written", [True, False])
def test_a_plan_that_is_gone_is_made_anew_and_its_inflight_file_stays_until_then(tmp_path, written):
    table = TableBuilder(open_storage(str(tmp_path / "t")), table_type="MERGE_ON_READ")
    table.commit("first", table.base("first", {"a": 1, "c": 3}))
    table.commit("second", table.log("second", {"a": 10}))
    plan = table.instants["plan"] = table.table.compact(mode="schedule").scheduled
    want = {"a": 10, "c": 3}
    if written:
        table.instants["beside"] = str(int(plan) + 1)
        table.commit("beside", table.log("beside", {"a": 100}, on="plan"))
        want["a"] = 100
    table.storage.create(table.path_of(plan, COMPACTION, INFLIGHT), b"")
    table.storage.delete(table.path_of(plan, COMPACTION, REQUESTED))
    for act in (
        lambda: rows(table),
        lambda: table.table.compact(),
        lambda: table.table.rollback(plan),
        lambda: table.table.validate_compaction(plan),
    ):
        with pytest.raises(MissingFileError, match="hudi compact repair") as e:
            act()
        assert e.value.file == table.path_of(plan, COMPACTION, REQUESTED)
    assert table.table.repair_compaction(plan, dry_run=True).gone is not written
    assert table.table.repair_compaction(plan).gone is not written
    assert rows(table) == want
    assert table.table.compact().executed
    assert rows(table, query="read_optimized") == want
    assert table.table.verify(deep=True) == []


def test_a_file_group_that_a_plan_forgot_and_that_was_written_to_comes_back_into_it(made):
    plan = made.at("plan")
    change(made, lambda operations: (operations.sort(key=lambda o: o["fileId"]), drop_first(operations)))
    done = made.table.repair_compaction(plan)
    assert [o.file_id for o in done.kept] == [made.group(2)]
    assert [o.file_id for o in done.changed] == [made.group(1)]
    made.table.compact()
    assert rows(made, query="read_optimized") == ROWS


def test_a_plan_of_which_nothing_is_left_leaves_the_timeline(tmp_path):
    made = TableBuilder(open_storage(str(tmp_path / "t")), table_type="MERGE_ON_READ")
    made.commit("first", made.base("first", {"a": 1}))
    operation = {
        "partitionPath": "p0",
        "fileId": made.group(7),
        "deltaFilePaths": ["x"],
        "baseInstantTime": "1",
    }
    request = avro_files.render(PLAN, {"operations": [operation], "version": 2})
    made.pending("plan", COMPACTION, request=request, inflight=None)
    with pytest.raises(MissingFileError):
        made.table.repair_compaction(made.at("plan"))
    done = made.table.repair_compaction(made.at("plan"), accept_missing=True)
    assert (done.gone, done.left_out) == (True, (f"p0/{made.group(7)}",))
    assert not made.table.timeline.of(COMPACTION)
    assert made.table.verify(deep=True) == []


@pytest.mark.parametrize("what", ["base", "log"])
@pytest.mark.parametrize("accept", [False, True])
def test_a_committed_file_that_is_gone_is_never_planned_away(made, what, accept):
    checks = made.table.validate_compaction(made.at("plan"))
    operation = next(c.operation for c in checks if c.operation.file_id == made.group(1))
    gone = f"p0/{operation.data_file if what == 'base' else operation.log_files[0]}"
    path = made.path_of(made.at("plan"), COMPACTION, REQUESTED)
    before = made.storage.read(path)
    made.storage.delete(gone)
    with pytest.raises(MissingFileError) as e:
        made.table.repair_compaction(made.at("plan"), accept_missing=accept)
    assert e.value.file == gone
    assert made.storage.read(path) == before


def test_nothing_is_planned_anew_beside_a_write_or_an_execution(made):
    change(made, drop_logs)
    beat = heartbeat.start(made.storage, made.at("plan"))
    try:
        with pytest.raises(ConcurrentWriterError, match="running"):
            made.table.repair_compaction(made.at("plan"))
    finally:
        beat.stop()
    made.pending("later", alive=True)
    with pytest.raises(ConcurrentWriterError, match="may append"):
        made.table.repair_compaction(made.at("plan"))


def test_a_repair_that_dies_anywhere_leaves_a_plan_that_is_repaired_again(tmp_path):
    number = 0
    while True:
        number += 1
        made = TableBuilder(open_storage(str(tmp_path / f"t{number}")), table_type="MERGE_ON_READ")
        made.commit("first", made.base("first", {"a": 1}))
        made.commit("second", made.log("second", {"a": 10}))
        plan = made.instants["plan"] = made.table.compact(mode="schedule").scheduled
        made.instants["beside"] = str(int(plan) + 1)
        made.commit("beside", made.log("beside", {"a": 100}, on="plan"))
        change(made, drop_logs)
        made.storage.create(made.path_of(plan, COMPACTION, INFLIGHT), b"")
        faults = Faults(Fault(CRASH, operation=tuple(CHANGES), nth=number))
        with faults.process():
            HudiTable.open(faults.wrap(made.storage)).repair_compaction(plan)
        assert rows(made) == {"a": 100}
        made.table.repair_compaction(plan)
        made.table.compact()
        assert rows(made, query="read_optimized") == {"a": 100}
        if not faults.dead:
            break
    assert number > 2
