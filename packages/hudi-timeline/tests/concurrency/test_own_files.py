"""Each put of a table service, done twice by the storage client, or answered with an error although it was done."""

from dataclasses import replace

import pytest

from hudi_format.errors import ConcurrentWriterError, StorageError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.own_files import complete_own, create_if_absent, create_own
from hudi_timeline.testing import DOUBLE, FAIL, Fault, Faults, MemoryStorage
from hudi_timeline.testing.workload_table import INITIAL, SAVED, made_table, rows_of

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
COMPACT = {"hoodie.compact.inline.max.delta.commits": "1"}
FEW = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
}
LOGS = {"hoodie.log.compaction.blocks.threshold": "1"}


def undo(table):
    return table.rollback(table.timeline.completed_writes()[-1].time)


SERVICES = {
    "clean": (COW, lambda t: t.clean(options={"hoodie.cleaner.commits.retained": "1"})),
    "archive": (COW, lambda t: t.archive(options=FEW)),
    "savepoint": (COW, lambda t: t.savepoint()),
    "restore": (COW, lambda t: t.restore(t.savepoints[0])),
    "restore logs": (MOR, lambda t: t.restore(t.savepoints[0])),
    "rollback": (MOR, undo),
    "build_index": (COW, lambda t: t.build_index("column_stats")),
    "compact": (MOR, lambda t: t.compact(options=COMPACT)),
    "log_compact": (MOR, lambda t: t.log_compact(options=LOGS)),
}


def undisturbed(name):
    """Paths of the files that a service creates, and the actions on the timeline afterwards."""
    kind, call = SERVICES[name]
    made, faults = made_table(kind).copy_of(), Faults()
    call(HudiTable.open(faults.wrap(made)))
    return [c.path for c in faults.log if c.operation == "create"], actions(made)


def actions(storage):
    return [(i.action, i.state) for i in HudiTable.open(storage).timeline.instants]


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.sampled(3)
def test_a_doubled_put_is_ones_own(name):
    kind, call = SERVICES[name]
    created, expected = undisturbed(name)
    assert created
    for nth, path in enumerate(created, 1):
        made, faults = made_table(kind).copy_of(), Faults(Fault(DOUBLE, operation="create", nth=nth))
        try:
            call(HudiTable.open(faults.wrap(made)))
        except ConcurrentWriterError:
            # An empty file may be that of another program's execution, which nobody but the user can tell.
            assert path.endswith("compaction.inflight")
            table = HudiTable.open(made)
            table.rollback(table.timeline.instants[-1].time)
            call(HudiTable.open(made))
        assert len(faults.struck) == 1
        check(made, name)
        assert [a for a in actions(made) if a[0] != "rollback" or name == "rollback"] == expected, path


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.sampled(2)
def test_a_lost_answer_is_a_storage_error_or_nothing_and_the_next_call_goes_on(name):
    kind, call = SERVICES[name]
    for nth in range(1, len(undisturbed(name)[0]) + 1):
        made = made_table(kind).copy_of()
        faults = Faults(Fault(FAIL, operation="create", nth=nth, after=True))
        try:
            call(HudiTable.open(faults.wrap(made)))
        except StorageError:
            if name == "savepoint" or "restore" in name:
                call(HudiTable.open(made))
        assert len(faults.struck) == 1
        table = HudiTable.open(made)
        table.rollback()
        if name != "rollback":
            check(made, name)
        assert not [f for f in table.verify(workers=1) if f.severity == "error"]


def check(storage, name):
    table = HudiTable.open(storage)
    undone = "restore" in name or name == "rollback"
    assert rows_of(table) == (SAVED if undone else INITIAL)
    assert not [f for f in table.verify(workers=1) if f.severity == "error"]


# --- each way to make a file


class Answering(MemoryStorage):
    """Storage in which each put is done, and answered so."""

    answer: Exception

    def create(self, path, data):
        super().create(path, data)
        raise self.answer


@pytest.mark.parametrize("answer", [FileExistsError("f"), StorageError("timed out")])
def test_what_is_there_decides(answer):
    storage = Answering()
    storage.answer = answer
    create_own(storage, "f", b"mine")
    complete_own(storage, "g", b"mine", what="restore", instant="1")
    with pytest.raises(type(answer)):
        create_own(storage, "empty", b"")


def test_the_file_of_another_is_never_ones_own():
    storage = MemoryStorage()
    storage.create("f", b"theirs")
    with pytest.raises(FileExistsError):
        create_own(storage, "f", b"mine")
    with pytest.raises(ConcurrentWriterError, match="restore"):
        complete_own(storage, "f", b"mine", what="restore", instant="1")
    create_if_absent(storage, "f", b"mine")
    assert storage.read("f") == b"theirs"


def test_a_failure_before_the_put_stays_one():
    faults = Faults(replace(Fault(FAIL, operation="create"), times=0))
    storage = faults.wrap(MemoryStorage())
    for make in (create_own, create_if_absent):
        with pytest.raises(StorageError):
            make(storage, "f", b"mine")
    assert storage.info("f") is None
