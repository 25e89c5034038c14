"""Rollbacks that must not be, since others need what they undo."""

import pytest

from hudi_format.errors import OptionError, UnsupportedError
from hudi_timeline import table_config
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.transaction.rollback_executor import finish_pending
from hudi_timeline.transaction.rollback_guard import refuse_needed

T = "20260101000000000"
R = "20260102000000000"
LATER = "20260102120000000"
pytestmark = pytest.mark.req("RC-01", "TM-10")


def put(storage, *paths, data=b"x"):
    for path in paths:
        storage.publish(path, data)


def pending(storage, state="inflight", action="commit"):
    put(storage, f".hoodie/{T}.{action}.requested", data=b"")
    if state == "inflight":
        put(storage, f".hoodie/{T}.inflight" if action == "commit" else f".hoodie/{T}.{action}.inflight")


def timeline(storage):
    return load_timeline(storage, table_config.load(storage))


def begun(storage, requests, *, state="requested", target=T, action="commit", content=None):
    """A rollback that a process left half done."""
    plan = {"instantToRollback": {"commitTime": target, "action": action}, "RollbackRequests": requests}
    data = avro_files.render("HoodieRollbackPlan", plan) if content is None else content
    put(storage, f".hoodie/{R}.rollback.requested", data=data)
    if state == "inflight":
        put(storage, f".hoodie/{R}.rollback.inflight", data=b"")


def finish(storage):
    return finish_pending(load_snapshot(storage)).timeline


IN_THE_WAY = {
    "later commit": f".hoodie/{R}.commit",
    "savepoint": f".hoodie/{T}.savepoint",
    "later write": f".hoodie/{R}.inflight",
    "compaction plan": f".hoodie/{R}.compaction.requested",
}


@pytest.mark.parametrize("in_the_way", IN_THE_WAY)
def test_a_rollback_of_a_completed_commit_that_others_need_is_refused(storage, in_the_way):
    pending(storage)
    put(storage, f".hoodie/{T}.commit", IN_THE_WAY[in_the_way], data=b"{}")
    with pytest.raises((UnsupportedError, OptionError)):
        refuse_needed(load_snapshot(storage), timeline(storage).find(T))


@pytest.mark.parametrize("state", ["requested", "inflight"])
@pytest.mark.parametrize("in_the_way", IN_THE_WAY)
def test_one_that_died_before_it_changed_anything_is_withdrawn_where_others_need_the_commit(
    storage, in_the_way, state
):
    """Else no write could begin: nobody but the user could say which of the two is to stay."""
    pending(storage)
    put(storage, f".hoodie/{T}.commit", IN_THE_WAY[in_the_way], data=b"{}")
    put(storage, "p/f_0-0-0_20260101000000000.parquet")
    begun(
        storage,
        [{"partitionPath": "p", "filesToBeDeleted": ["p/f_0-0-0_20260101000000000.parquet"]}],
        state=state,
    )
    now = finish(storage)
    assert now.find(T).completed
    assert not now.of("rollback")
    assert storage.info("p/f_0-0-0_20260101000000000.parquet") is not None
    assert storage.info(IN_THE_WAY[in_the_way]) is not None
    assert finish(storage) == now


def test_one_that_took_the_commit_away_is_finished_whoever_came_after(storage):
    pending(storage)
    put(storage, f".hoodie/{LATER}.commit", data=b"{}")
    begun(storage, [], state="inflight")
    now = finish(storage)
    assert now.find(T) is None
    assert now.find(LATER).completed
    assert [i.completed for i in now.of("rollback")] == [True]
