"""Rollback: what it deletes, what it leaves on record, and rollbacks that others began."""

import json
from pathlib import Path

import pytest

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_timeline import markers, rollback, table_config
from hudi_timeline.instant import Instant
from hudi_timeline.metadata import avro_records
from hudi_timeline.rollback import finish_pending, planned_files, rollback_instant
from hudi_timeline.timeline import load_timeline

T = "20260101000000000"
OLD = "20250101000000000"
R = "20260102000000000"
pytestmark = pytest.mark.req("RC-01", "TM-10")


def name(number, instant=T):
    return f"aa{number:06x}-1111-1111-1111-1111111111aa-0_0-1-2_{instant}.parquet"


def put(storage, *paths, data=b"x"):
    for path in paths:
        storage.publish(path, data)


def pending(storage, state="inflight", action="commit"):
    put(storage, f".hoodie/{T}.{action}.requested", data=b"")
    if state == "inflight":
        put(storage, f".hoodie/{T}.inflight" if action == "commit" else f".hoodie/{T}.{action}.inflight")


def timeline(storage):
    return load_timeline(storage, table_config.load(storage))


def undo(storage):
    now = timeline(storage)
    return rollback_instant(storage, table_config.load(storage), now, now.find(T))


def files(storage):
    return sorted(p.relative_to(storage.uri).as_posix() for p in Path(storage.uri).rglob("*.parquet"))


def records(storage, time):
    plan = storage.read(f".hoodie/{time}.rollback.requested")
    done = storage.read(f".hoodie/{time}.rollback")
    assert storage.read(f".hoodie/{time}.rollback.inflight") == b""
    return avro_records.parse("HoodieRollbackPlan", plan), avro_records.parse("HoodieRollbackMetadata", done)


def test_the_markers_files_are_deleted_and_the_record_is_apache_hudis(storage):
    pending(storage)
    put(storage, f"p/{name(1)}", f"p/{name(2)}", f"q/{name(3)}", f"p/{name(1, OLD)}")
    for partition, number in (("p", 1), ("p", 2), ("q", 3), ("q", 4)):
        markers.create(storage, T, partition, name(number), "CREATE")
    time = undo(storage)
    assert files(storage) == [f"p/{name(1, OLD)}"]
    plan, done = records(storage, time)
    assert plan["instantToRollback"] == {"commitTime": T, "action": "commit"}
    assert plan["RollbackRequests"][0] == {
        "partitionPath": "p",
        "fileId": "",
        "latestBaseInstant": "",
        "filesToBeDeleted": [f"{storage.uri}/p/{name(1)}", f"{storage.uri}/p/{name(2)}"],
        "logBlocksToBeDeleted": {},
    }
    assert done["startRollbackTime"] == time
    assert done["commitsRollback"] == [T]
    assert done["totalFilesDeleted"] == 4
    assert done["instantsRollback"] == [{"commitTime": T, "action": "commit"}]
    assert done["partitionMetadata"]["q"]["successDeleteFiles"] == [
        f"{storage.uri}/q/{name(3)}", f"{storage.uri}/q/{name(4)}"
    ]  # fmt: skip
    assert done["partitionMetadata"]["q"]["failedDeleteFiles"] == []
    assert timeline(storage).find(T) is None
    assert not markers.has_markers(storage, T)
    assert [str(i) for i in timeline(storage).instants] == [f"{time} rollback completed"]


def test_fields_are_those_of_a_rollback_that_apache_hudi_made(golden_timelines):
    folder = golden_timelines / "v6/cow_rollback/.hoodie"
    for path in folder.glob("*.rollback.requested"):
        plan = avro_records.parse("HoodieRollbackPlan", path.read_bytes())
        assert set(plan["RollbackRequests"][0]) == {
            "partitionPath", "fileId", "latestBaseInstant", "filesToBeDeleted", "logBlocksToBeDeleted"
        }  # fmt: skip
        found = planned_files(plan)
        assert sum(map(len, found.values())) == 3
        assert set(found) == {"oslo", "pune", "sao_paulo"}


def test_batched_markers_of_apache_hudi_are_followed(storage):
    pending(storage)
    put(storage, f"p/{name(1)}", f"{name(2)}")
    root = f".hoodie/.temp/{T}"
    put(storage, f"{root}/MARKERS.type", data=b"TIMELINE_SERVER_BASED")
    put(storage, f"{root}/MARKERS0", data=f"p/{name(1)}.marker.MERGE\n".encode())
    put(storage, f"{root}/MARKERS7", data=f"{name(2)}.marker.CREATE\n".encode())
    undo(storage)
    assert files(storage) == []
    assert not markers.has_markers(storage, T)


def test_without_markers_every_partition_is_searched(storage):
    pending(storage)
    put(
        storage,
        f"{name(1)}",
        f"a/b/c/{name(2)}",
        f"p/{name(3)}",
        f"p/{name(3, OLD)}",
        f".hoodie/metadata/files/{name(4)}",
    )
    undo(storage)
    assert files(storage) == [f".hoodie/metadata/files/{name(4)}", f"p/{name(3, OLD)}"]


def test_a_write_that_was_only_requested_has_no_files(storage):
    pending(storage, state="requested")
    plan, done = records(storage, undo(storage))
    assert plan["RollbackRequests"] == []
    assert done["totalFilesDeleted"] == 0
    assert done["partitionMetadata"] == {}
    assert timeline(storage).find(T) is None


def test_an_inflight_without_its_request_is_undone_too(storage):
    put(storage, f".hoodie/{T}.inflight")
    undo(storage)
    assert timeline(storage).find(T) is None


def test_a_replacecommit_is_undone_under_its_action(storage):
    pending(storage, action="replacecommit")
    plan, _ = records(storage, undo(storage))
    assert plan["instantToRollback"]["action"] == "replacecommit"
    assert timeline(storage).find(T) is None


def test_files_that_markers_of_another_instant_name_stay(storage):
    pending(storage)
    put(storage, f"p/{name(1, OLD)}", "p/notes.txt")
    markers.create(storage, T, "p", name(1, OLD), "MERGE")
    markers.create(storage, T, "p", "notes.txt", "CREATE")
    undo(storage)
    assert files(storage) == [f"p/{name(1, OLD)}"]
    assert storage.info("p/notes.txt") is not None


def test_a_marker_that_leads_out_of_the_table_stops_the_rollback_before_any_change(storage, tmp_path):
    pending(storage)
    outside = tmp_path / name(1)
    outside.write_bytes(b"x")
    put(storage, f".hoodie/.temp/{T}/MARKERS0", data=f"../{name(1)}.marker.CREATE\n".encode())
    before = list(timeline(storage).files)
    with pytest.raises(CorruptFileError, match="no data file of the table"):
        undo(storage)
    assert outside.exists()
    assert list(timeline(storage).files) == before


def test_many_files_are_deleted_at_once(storage):
    pending(storage)
    for number in range(100):
        put(storage, f"p/{name(number)}")
        markers.create(storage, T, "p", name(number), "CREATE")
    _, done = records(storage, undo(storage))
    assert done["totalFilesDeleted"] == 100
    assert files(storage) == []


@pytest.mark.parametrize("action", ["commit", "clean"])
def test_only_pending_writes_are_rolled_back(storage, action):
    instant = Instant(T, action, "COMPLETED" if action == "commit" else "REQUESTED", f"{T}.{action}")
    with pytest.raises(UnsupportedError, match="pending write"):
        rollback_instant(storage, table_config.load(storage), timeline(storage), instant)


def test_appends_to_log_files_are_refused(storage):
    pending(storage)
    markers.create(storage, T, "p", f".aa-0_{OLD}.log.1_0-1-2", "APPEND")
    with pytest.raises(UnsupportedError, match="log files"):
        undo(storage)


def begun(storage, requests, *, state="requested", target=T, action="commit", content=None):
    """A rollback that a process left half done."""
    plan = {"instantToRollback": {"commitTime": target, "action": action}, "RollbackRequests": requests}
    data = avro_records.render("HoodieRollbackPlan", plan) if content is None else content
    put(storage, f".hoodie/{R}.rollback.requested", data=data)
    if state == "inflight":
        put(storage, f".hoodie/{R}.rollback.inflight", data=b"")


def finish(storage):
    return finish_pending(storage, table_config.load(storage), timeline(storage))


@pytest.mark.parametrize("state", ["requested", "inflight"])
@pytest.mark.parametrize("target", ["inflight", "requested", "gone"])
def test_a_rollback_that_another_process_began_is_finished_under_its_own_time(storage, state, target):
    if target != "gone":
        pending(storage, state=target)
    put(storage, f"p/{name(1)}", f"p/{name(2)}")
    markers.create(storage, T, "p", name(1), "CREATE")
    # The table was moved since: the plan's absolute paths are those of the old place.
    begun(
        storage, [{"partitionPath": "p", "filesToBeDeleted": [f"file:/old/place/p/{name(1)}"]}], state=state
    )
    now = finish(storage)
    assert [str(i) for i in now.instants] == [f"{R} rollback completed"]
    assert files(storage) == [f"p/{name(2)}"]
    assert not markers.has_markers(storage, T)


def test_a_plan_that_exists_is_used_for_its_target(storage):
    pending(storage)
    put(storage, f"p/{name(1)}")
    begun(storage, [{"partitionPath": "p", "filesToBeDeleted": [f"/x/p/{name(1)}"]}])
    assert undo(storage) == R
    assert files(storage) == []
    assert len(timeline(storage).of("rollback")) == 1


@pytest.mark.parametrize("content", [b"", b"Obj\x01", b"nonsense"])
@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_plan_that_cannot_be_read_is_withdrawn(storage, content, state):
    pending(storage)
    put(storage, f"p/{name(1)}")
    begun(storage, [], content=content, state=state)
    now = finish(storage)
    assert now.of("rollback") == ()
    assert now.find(T) is not None
    assert undo(storage) > R
    assert files(storage) == []


def test_a_rollback_of_a_completed_commit_is_left_to_apache_hudi(storage):
    pending(storage)
    put(storage, f".hoodie/{T}.commit", data=b"{}")
    begun(storage, [])
    with pytest.raises(UnsupportedError, match="completed"):
        finish(storage)
    assert timeline(storage).find(T).completed


def test_a_plan_that_leads_out_of_the_table_is_refused(storage, tmp_path):
    pending(storage)
    (tmp_path / name(1)).write_bytes(b"x")
    begun(storage, [{"partitionPath": "..", "filesToBeDeleted": [f"../{name(1)}"]}])
    with pytest.raises(CorruptFileError, match="not below the table"):
        finish(storage)
    assert (tmp_path / name(1)).exists()


def test_a_plan_never_deletes_a_file_of_another_instant():
    plan = {
        "instantToRollback": {"commitTime": T, "action": "commit"},
        "RollbackRequests": [
            {
                "partitionPath": "p",
                "filesToBeDeleted": [
                    f"/t/p/{name(1, OLD)}",
                    "/t/p/.hoodie_partition_metadata",
                    f"/q/{name(2)}",
                ],
            }
        ],
    }
    assert planned_files(plan) == {"p": [name(2)]}


def test_a_plan_with_log_blocks_is_refused():
    request = {"partitionPath": "p", "filesToBeDeleted": [], "logBlocksToBeDeleted": {"x.log": 1}}
    plan = {"instantToRollback": {"commitTime": T, "action": "commit"}, "RollbackRequests": [request]}
    with pytest.raises(UnsupportedError, match="log files"):
        planned_files(plan)


def test_leftovers_of_an_instant_without_files_are_no_error(storage):
    rollback.remove_leftovers(storage, T)
    markers.create(storage, T, "p", name(1), "CREATE")
    rollback.remove_leftovers(storage, T)
    assert not markers.has_markers(storage, T)
    assert json.loads(json.dumps(files(storage))) == []
