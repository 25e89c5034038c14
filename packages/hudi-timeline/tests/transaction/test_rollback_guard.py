"""Rollbacks that must not be, since others need what they undo."""

import pytest

from hudi_format.errors import OptionError, UnsupportedError
from hudi_timeline import table_config
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.transaction.rollback_executor import finish_pending

T = "20260101000000000"
R = "20260102000000000"
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


@pytest.mark.parametrize("in_the_way", ["later commit", "savepoint", "later write", "compaction plan"])
def test_a_rollback_of_a_completed_commit_that_others_need_is_refused(storage, in_the_way):
    pending(storage)
    put(storage, f".hoodie/{T}.commit", data=b"{}")
    later = {
        "later commit": f".hoodie/{R}.commit",
        "savepoint": f".hoodie/{T}.savepoint",
        "later write": f".hoodie/{R}.inflight",
        "compaction plan": f".hoodie/{R}.compaction.requested",
    }
    put(storage, later[in_the_way], data=b"{}")
    begun(storage, [])
    with pytest.raises((UnsupportedError, OptionError)) as e:
        finish(storage)
    assert f"{R}.rollback.requested" in e.value.remedy
    assert timeline(storage).find(T).completed
