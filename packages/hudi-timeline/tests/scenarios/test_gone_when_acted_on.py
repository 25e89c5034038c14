"""What one look at the table has seen, and is gone, or another's, when it is acted on."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.errors import ConcurrentWriterError, MissingFileError
from hudi_timeline import HudiTable
from hudi_timeline.services import cleaning
from hudi_timeline.services.compaction import compaction_executor, log_compaction, plan_execution
from hudi_timeline.services.compaction.slice_tasks import run_on_threads
from hudi_timeline.testing import CRASH, Fault, Faults, MemoryStorage
from hudi_timeline.testing.workload import OPTIONS
from hudi_timeline.testing.workload_table import INITIAL, SAVED, made_table, rows_of
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMMIT,
    COMPLETED,
    DELTA_COMMIT,
    INFLIGHT,
    REQUESTED,
    instant_path,
    next_instant,
)

ROW = pa.table({"id": ["a"], "p": ["x"], "v": [7]})


class Taken(MemoryStorage):
    """A store in which another process rolls the newest commit back just before it is read."""

    armed = ""

    def read(self, path):
        if path == self.armed:
            self.armed = ""
            other = MemoryStorage(self.uri, self._files)
            HudiTable.open(other, options=OPTIONS).rollback(path.rpartition("/")[2].partition(".")[0])
        return super().read(path)


@pytest.fixture
def taken():
    made = made_table().copy_of()
    storage = Taken(made.uri, made._files)
    storage.armed = HudiTable.open(made).timeline.completed_writes()[-1].path
    return storage


@pytest.mark.parametrize("write", ["upsert", "update", "delete"])
def test_a_write_is_planned_again_where_a_commit_is_rolled_back_while_it_looks(taken, write):
    table = HudiTable.open(taken, options=OPTIONS)
    calls = {
        "upsert": (lambda: table.upsert(ROW), {**SAVED, "a": ("x", 7, ())}),
        "update": (
            lambda: table.update({"v": pc.add(pc.field("v"), 1)}, "id = 'c'"),
            {**SAVED, "c": ("y", 2, SAVED["c"][2])},
        ),
        "delete": (lambda: table.delete("id = 'd'"), {k: r for k, r in SAVED.items() if k != "d"}),
    }
    call, after = calls[write]
    call()
    assert rows_of(HudiTable.open(taken)) == after


def test_a_commit_that_is_there_and_cannot_be_read_is_an_error_at_once(monkeypatch):
    made = made_table().copy_of()
    table = HudiTable.open(made, options=OPTIONS)
    newest = table.timeline.completed_writes()[-1].path
    tried = []

    def read(self, path):
        if path == newest:
            tried.append(path)
            raise MissingFileError("lost", instant="1", file=newest)
        return MemoryStorage._files_read(self, path)

    monkeypatch.setattr(MemoryStorage, "_files_read", MemoryStorage.read, raising=False)
    monkeypatch.setattr(MemoryStorage, "read", read)
    with pytest.raises(MissingFileError, match="lost"):
        table.upsert(ROW)
    assert len(tried) == 1


def test_a_cleaning_that_was_filled_meanwhile_is_not_withdrawn(monkeypatch):
    """Apache Hudi makes the file of a plan first, and fills it then."""
    made = made_table().copy_of()
    table = HudiTable.open(made, options=OPTIONS)
    plan = table.clean(options={"hoodie.cleaner.commits.retained": "1"}, dry_run=True).plan
    assert plan
    path = instant_path(table.config, "20990101000000000", CLEAN, REQUESTED)
    made.create(path, b"")
    read = cleaning.pending_plan

    def filled(storage, clean):
        found = read(storage, clean)
        made.touch(path, plan.to_bytes(made.uri))
        return found

    monkeypatch.setattr(cleaning, "pending_plan", filled)
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert made.info(path) is not None
    done = HudiTable.open(made, options=OPTIONS).clean()
    assert done.finished == ("20990101000000000",)
    assert rows_of(HudiTable.open(made)) == INITIAL


def test_a_cleaning_that_a_restore_has_taken_back_is_passed_over(monkeypatch):
    made = made_table().copy_of()
    table = HudiTable.open(made, options=OPTIONS)
    saved = table.savepoints[0]
    table.delete_savepoint(saved)
    at = next_instant(table.upsert(pa.table({"id": ["a", "c"], "p": ["x", "y"], "v": [7, 7]})).instant)
    plan = table.clean(options={"hoodie.cleaner.commits.retained": "1"}, dry_run=True).plan
    made.create(instant_path(table.config, at, CLEAN, REQUESTED), plan.to_bytes(made.uri))
    read = cleaning.pending_plan

    def restored(storage, clean):
        found = read(storage, clean)
        monkeypatch.setattr(cleaning, "pending_plan", read)
        HudiTable.open(made, options=OPTIONS).restore(saved)
        return found

    monkeypatch.setattr(cleaning, "pending_plan", restored)
    assert table.clean().finished == ()
    assert rows_of(HudiTable.open(made)) == SAVED


def test_a_cleaning_that_another_program_has_begun_meanwhile_is_left_to_it(monkeypatch):
    made = made_table().copy_of()
    table = HudiTable.open(made, options=OPTIONS)
    plan = table.clean(options={"hoodie.cleaner.commits.retained": "1"}, dry_run=True).plan
    at = next_instant(table.timeline.newest_time)
    made.create(instant_path(table.config, at, CLEAN, REQUESTED), plan.to_bytes(made.uri))
    read = cleaning.pending_plan

    def begun(storage, clean):
        monkeypatch.setattr(cleaning, "pending_plan", read)
        made.create(instant_path(table.config, at, CLEAN, INFLIGHT), plan.to_bytes(made.uri))
        return read(storage, clean)

    monkeypatch.setattr(cleaning, "pending_plan", begun)
    result = table.clean()
    assert (result.finished, result.deleted) == ((), 0)
    assert [at in w for w in result.warnings] == [True]


@pytest.mark.parametrize("kind", ["compact", "log_compact"])
def test_another_completed_file_is_an_error_of_ours(monkeypatch, kind):
    """Of a process with another lock, whose compaction was completed first."""
    module = compaction_executor if kind == "compact" else log_compaction
    monkeypatch.setattr(module, "_check_ours", lambda *args: None)
    monkeypatch.setattr(plan_execution, "_refuse_taken_away", lambda *args: None)
    made = made_table("MERGE_ON_READ").copy_of()
    table = HudiTable.open(made, options=OPTIONS)

    def run(tasks):
        action = COMMIT if kind == "compact" else DELTA_COMMIT
        now = HudiTable.open(made).timeline
        time = next(i.time for i in now.instants if "compaction" in i.action)
        made.create(instant_path(table.config, time, action, COMPLETED), b"{}")
        return run_on_threads(tasks)

    options = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.log.compaction.blocks.threshold": "1"}
    with pytest.raises(ConcurrentWriterError, match="another completed file is there"):
        getattr(table, kind)(options=options, run=run)


def test_log_files_of_a_dead_write_are_no_finding_of_the_metadata_table():
    made = made_table("MERGE_ON_READ").copy_of()
    HudiTable.open(made, options={**OPTIONS, "hoodie.metadata.enable": "true"}).upsert(ROW)
    faults = Faults(Fault(CRASH, operation="create", path=".hoodie/*.deltacommit"))
    with faults.process():
        HudiTable.open(faults.wrap(made), options=OPTIONS).upsert(ROW)
    assert faults.dead
    table = HudiTable.open(made, options=OPTIONS)
    assert table.timeline.pending_writes()
    assert not [f for f in table.verify(deep=True) if f.severity == "error"]
    table.rollback()
    assert not [f for f in HudiTable.open(made).verify(deep=True) if f.severity == "error"]
