"""Processes that are stopped at any call of the store until their lock is another's, who then acts on the table.

What is left has to be right, and both ends are errors that say so or none.  What no storage can prevent is left out: a
stop between the last look at the lock and the very call that it is for, where that call takes something away.
"""

import itertools
import os

import pytest

from hudi_format.errors import (
    ConcurrentWriterError,
    CorruptFileError,
    MissingFileError,
    StaleSnapshotError,
    StorageError,
)
from hudi_timeline.testing import CHANGES, STALL, Act, Case, Fault
from hudi_timeline.testing.workload_table import SAVED

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
STEP = 1 if os.environ.get("HUDI_SOAK") else 3  # of the calls, how many until the next is the one to stop at
BROKEN = (CorruptFileError, MissingFileError, StorageError)
PAIRS = [
    (COW, "savepoint", "restore"),
    (MOR, "savepoint", "clean"),
    (COW, "metadata_on", "rollback"),
    (COW, "archive", "metadata_on"),
    (MOR, "clean", "restore"),
    (MOR, "compact", "upsert"),
    (MOR, "upsert", "compact"),
]


def stopped(kind, act, rival, number, after):
    """One of both is stopped at a call, and goes on when the other has ended; whether there was such a call."""
    stop = Fault(STALL, number=number, after=after)
    case = Case({"one": [act], "two": [rival]}, kind, faults={"one": [stop]})
    outcome = case.run(number, switches=[(0, "one")])
    for done in outcome.done:
        assert not isinstance(done.error, BROKEN) or isinstance(done.error, StaleSnapshotError), str(
            done.error
        )
    return any(d.struck for d in outcome.done)


@pytest.mark.req("CC-22", "NEW-12")
@pytest.mark.parametrize(("kind", "act", "rival"), PAIRS, ids=[f"{a} and {r}" for _, a, r in PAIRS])
@pytest.mark.sampled(6, values=False)
def test_a_process_that_is_stopped_anywhere_harms_nothing(kind, act, rival):
    for number in itertools.count(1, STEP):
        struck = [stopped(kind, act, rival, number, after) for after in (False, True)]
        if not any(struck):
            break
    assert number > 10


@pytest.mark.req("NEW-12")
@pytest.mark.parametrize(
    ("kind", "index", "act", "rival"),
    [
        (COW, "SIMPLE", "double_buckets", "double_buckets"),
        (COW, "SIMPLE", "grow_apart", "double_buckets"),
        (MOR, "", "drop_index", "upsert"),
    ],
    ids=lambda v: v,
)
@pytest.mark.sampled(2, values=False)
def test_one_that_is_stopped_after_a_change_takes_back_no_properties_of_the_table_that_are_others(
    kind, index, act, rival
):
    """Nor does it write those that it read before: the number of buckets, and which metadata table there is."""
    for nth in range(1, 1000, STEP):
        stop = Fault(STALL, operation=CHANGES, nth=nth, after=True)
        case = Case({"one": [act], "two": [rival]}, kind, faults={"one": [stop]}, index=index)
        outcome = case.run(nth, switches=[(0, "one")])
        if not any(d.struck for d in outcome.done):
            break
    assert nth > 20


@pytest.mark.req("RC-03", "CC-26", "NEW-12")
@pytest.mark.parametrize("act", ["clean", "rollback_dead"])
def test_one_that_is_stopped_before_it_rolls_back_takes_no_write_back_that_was_completed_since(act):
    """It saw the write pending and alive; then the lock is lost, the write is completed, and its heartbeat ends."""
    struck = 0
    for number in range(8, 20, 1 if os.environ.get("HUDI_SOAK") else 3):
        stop = Fault(STALL, number=number, after=True)
        outcome = Case({"one": [act], "two": ["upsert"]}, COW, faults={"one": [stop]}).run(
            number, switches=[(0, "two"), (29, "one")], deep=False
        )
        struck += any(d.struck for d in outcome.done)
        assert [d.error for d in outcome.done if d.actor == "two"] == [None]
    assert struck


@pytest.mark.req("RC-06")
def test_a_savepoint_that_others_deleted_with_its_commit_says_what_became_of_it():
    def undo(table):
        table.delete_savepoint(table.savepoints[-1])
        table.rollback(table.timeline.completed_writes()[-1].time)

    stop = Fault(STALL, operation="create", path="*.savepoint", after=True)
    others = Act(undo, lambda rows: dict(SAVED), name="undo")
    case = Case({"one": ["savepoint"], "two": [others]}, COW, faults={"one": [stop]})
    outcome = case.run(switches=[(0, "one")])
    (error,) = [d.error for d in outcome.done if d.actor == "one"]
    assert isinstance(error, ConcurrentWriterError)
    assert "was undone" in str(error)
    assert len(outcome.table().savepoints) == 1, "that of before"
