"""A plan is taken by its inflight file, whatever a store answers to its creation."""

import time

import pyarrow as pa
import pytest

from hudi_format.errors import StorageError
from hudi_format.schema.avro import to_avro
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.table_config import load
from hudi_timeline.testing import FAIL, Fault, Faults, MemoryStorage
from hudi_timeline.timeline.instant import COMPACTION, INFLIGHT, REQUESTED, ROLLBACK, next_instant
from hudi_timeline.transaction.transaction import begin_transaction
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

CREATE = Fault(FAIL, operation="create", path="*.compaction.inflight", after=True)
DELETE = Fault(FAIL, operation="delete", path="*.compaction.inflight")
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
}


def write(storage, v):
    data = pa.table({"id": ["a", "b"], "v": pa.array([v, v], pa.int64())})
    return execute(LocalEngine(1), storage, data, OPTIONS, mode="append")


@pytest.fixture
def storage():
    made = MemoryStorage()
    write(made, 1)
    write(made, 2)
    return made


def compact_with(storage, *faults):
    """Compact on a store that fails; the error, and the plan that is left."""
    wrapped = Faults(*faults).wrap(storage)
    with pytest.raises(StorageError) as failed:
        HudiTable._of(wrapped).compact()
    heartbeat.abandon(wrapped)
    (plan,) = HudiTable._of(storage).timeline.pending(COMPACTION)
    return failed.value, plan


def compacts(storage, plan):
    table = HudiTable._of(storage)
    table.compact()
    assert [(i.time, i.action) for i in table.timeline.completed_writes()][-1] == (plan.time, "commit")
    assert not table.timeline.pending(COMPACTION)
    assert table.read(["id", "v"], meta_columns=False).to_arrow()["v"].to_pylist() == [2, 2]


@pytest.mark.req("RC-01", "RC-09")
def test_an_inflight_file_whose_creation_failed_after_it_was_done_is_taken_back(storage):
    _, plan = compact_with(storage, CREATE)
    assert plan.state == REQUESTED
    assert heartbeat.list_instants(storage) == []
    compacts(storage, plan)


@pytest.mark.req("RC-01")
def test_an_execution_that_fails_with_a_clock_behind_others_gives_its_plan_back(storage):
    table = HudiTable._of(storage)
    instant = table.compact(mode="schedule").scheduled
    ahead = begin_transaction(
        storage, load(storage), operation="UPSERT", now=lambda: time.time() + 20
    )  # fmt: skip
    ahead.inflight({})
    ahead.commit([], schema_text=to_avro(table.schema, "t"))
    fails = Fault(FAIL, operation="create", path=f"*{instant}.commit")
    error, plan = compact_with(storage, fails)
    assert not hasattr(error, "__notes__")
    assert (plan.time, plan.state) == (instant, REQUESTED)
    assert [i.time for i in table.timeline.of(ROLLBACK)] == [next_instant(ahead.instant)]
    assert table.compact(mode="execute").executed == (instant,)


def test_where_it_cannot_be_taken_back_the_heartbeat_tells_that_its_process_died(storage):
    error, plan = compact_with(storage, CREATE, DELETE)
    assert plan.state == INFLIGHT
    assert heartbeat.list_instants(storage) == [plan.time]
    assert any("the next execution of the plan does that" in note for note in error.__notes__)
    compacts(storage, plan)
