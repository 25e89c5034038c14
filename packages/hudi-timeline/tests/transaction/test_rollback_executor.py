"""Rollback: what it deletes, what it leaves on record, and rollbacks that others began."""

import json
from pathlib import Path

import pytest

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.file_names import parse_log_file
from hudi_format.log.block import BlockType
from hudi_format.log.reader import LogFileReader
from hudi_format.log.writer import LogWriter
from hudi_timeline import table_config
from hudi_timeline.concurrency import markers
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.action_metadata import parse_action
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.instant import Instant
from hudi_timeline.transaction import rollback_executor
from hudi_timeline.transaction.rollback_executor import append_command, finish_pending, rollback_instant
from hudi_timeline.transaction.rollback_plan import command_requests

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
    now = load_snapshot(storage)
    return rollback_instant(now, now.timeline.find(T))


def files(storage):
    return sorted(p.relative_to(storage.uri).as_posix() for p in Path(storage.uri).rglob("*.parquet"))


def records(storage, time):
    plan = storage.read(f".hoodie/{time}.rollback.requested")
    done = storage.read(f".hoodie/{time}.rollback")
    assert storage.read(f".hoodie/{time}.rollback.inflight") == b""
    return avro_files.parse("HoodieRollbackPlan", plan), avro_files.parse("HoodieRollbackMetadata", done)


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
        "fileId": name(1).partition("_")[0],
        "latestBaseInstant": T,
        "filesToBeDeleted": [f"{storage.uri}/p/{name(1)}"],
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
    with pytest.raises(CorruptFileError, match="not a data file of the table"):
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


@pytest.mark.parametrize(("action", "state"), [("clean", "REQUESTED"), ("compaction", "REQUESTED")])
def test_only_writes_and_inflight_compactions_are_rolled_back(storage, action, state):
    instant = Instant(T, action, state, f"{T}.{action}.requested")
    with pytest.raises(UnsupportedError, match="a write or an inflight compaction"):
        rollback_instant(load_snapshot(storage), instant)


LOG = f".aa-0_{OLD}.log.1_0-1-2"


def logged(storage, path, instant):
    """A log file with one block of an instant."""
    partition, _, name = path.rpartition("/")
    file = parse_log_file(partition, name)
    with LogWriter(
        storage, partition, file.file_id, file.instant, instant=instant, schema="{}", write_token="0-1-2"
    ) as writer:
        writer.append(BlockType.AVRO_DATA, b"")


def blocks(storage, path):
    with LogFileReader.open(storage, path) as reader:
        return reader.blocks


@pytest.mark.parametrize("by", ["markers", "timeline server", "listing"])
def test_blocks_of_a_failed_write_are_taken_back_by_a_command_block(storage, by):
    pending(storage, action="deltacommit")
    put(storage, f"p/aa-0_0-0-0_{OLD}.parquet", f"p/{name(1)}")
    logged(storage, f"p/{LOG}", T)
    if by == "markers":
        markers.create(storage, T, "p", LOG, "APPEND")
        markers.create(storage, T, "p", name(1), "CREATE")
    if by == "timeline server":
        root = f".hoodie/.temp/{T}"
        put(storage, f"{root}/MARKERS.type", data=b"TIMELINE_SERVER_BASED")
        lines = f"p/{LOG}.marker.APPEND\np/{name(1)}.marker.CREATE\n"
        put(storage, f"{root}/MARKERS3", data=lines.encode())
    time = undo(storage)
    plan, done = records(storage, time)
    command = f"p/.aa-0_{OLD}.log.2_1-0-1"
    (block,) = blocks(storage, command)
    assert (block.is_rollback, block.target_instant, block.instant) == (True, T, time)
    assert len(storage.read(command)) == 105  # as Apache Hudi's
    assert files(storage) == [f"p/aa-0_0-0-0_{OLD}.parquet"]
    key = f"file:{storage.uri}/p/{LOG}" if by == "listing" else LOG
    assert {k for r in plan["RollbackRequests"] for k in r["logBlocksToBeDeleted"]} == {key}
    partition = done["partitionMetadata"]["p"]
    assert partition["rollbackLogFiles"] == {f"file:{storage.uri}/{command}": 105}
    assert set(partition["logFilesFromFailedCommit"]) == {key}
    assert storage.list(".hoodie/.temp") == []


def test_a_rollback_that_is_run_again_appends_no_second_command_block(storage):
    pending(storage, action="deltacommit")
    put(storage, f"p/aa-0_0-0-0_{OLD}.parquet")
    logged(storage, f"p/{LOG}", T)
    request = {"partitionPath": "p", "fileId": "aa-0", "latestBaseInstant": OLD, "filesToBeDeleted": [],
               "logBlocksToBeDeleted": {LOG: 1}}  # fmt: skip
    begun(storage, [request], state="inflight", action="deltacommit")
    append_command(storage, command_requests(plan_of(storage))[0], T, R)
    finish(storage)
    assert [e.name for e in storage.list("p") if ".log.2" in e.name] == [f".aa-0_{OLD}.log.2_1-0-1"]
    assert not [e.name for e in storage.list("p") if ".log.3" in e.name]
    _, done = records(storage, R)
    assert len(done["partitionMetadata"]["p"]["rollbackLogFiles"]) == 1


def plan_of(storage):
    return parse_action("rollback", "REQUESTED", storage.read(f".hoodie/{R}.rollback.requested"))


def test_a_slice_of_which_nothing_is_there_gets_no_command_block(storage):
    pending(storage, action="deltacommit")
    markers.create(storage, T, "p", LOG, "APPEND")
    _, done = records(storage, undo(storage))
    assert done["partitionMetadata"]["p"]["rollbackLogFiles"] == {}
    assert storage.list("p") == []


@pytest.mark.parametrize("by", ["markers", "listing"])
def test_log_files_of_a_slice_that_the_write_began_are_deleted(storage, by):
    pending(storage, action="deltacommit")
    logged(storage, f"p/.aa-0_{T}.log.1_0-1-2", T)
    if by == "markers":
        markers.create(storage, T, "p", f".aa-0_{T}.log.1_0-1-2", "APPEND")
    _, done = records(storage, undo(storage))
    assert done["totalFilesDeleted"] == 1
    assert storage.list("p") == []


def test_an_inflight_compaction_goes_back_to_its_plan(storage):
    put(storage, f".hoodie/{T}.compaction.requested", f".hoodie/{T}.compaction.inflight", data=b"plan")
    put(storage, f"p/{name(1)}", f"p/.aa-0_{T}.log.1_0-1-2")
    plan, _ = records(storage, undo(storage))
    assert plan["instantToRollback"]["action"] == "compaction"
    assert files(storage) == []
    # What was logged on top of the new slice since it was planned belongs to others.
    assert storage.info(f"p/.aa-0_{T}.log.1_0-1-2") is not None
    assert str(timeline(storage).find(T)) == f"{T} compaction requested"


def begun(storage, requests, *, state="requested", target=T, action="commit", content=None):
    """A rollback that a process left half done."""
    plan = {"instantToRollback": {"commitTime": target, "action": action}, "RollbackRequests": requests}
    data = avro_files.render("HoodieRollbackPlan", plan) if content is None else content
    put(storage, f".hoodie/{R}.rollback.requested", data=data)
    if state == "inflight":
        put(storage, f".hoodie/{R}.rollback.inflight", data=b"")


def finish(storage):
    return finish_pending(load_snapshot(storage)).timeline


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


def test_a_rollback_of_the_last_commit_that_another_process_began_is_finished(storage):
    pending(storage)
    put(storage, f".hoodie/{T}.commit", data=b'{"partitionToWriteStats": {}}')
    put(storage, f"p/{name(1)}")
    begun(storage, [{"partitionPath": "p", "filesToBeDeleted": [f"/x/p/{name(1)}"]}])
    assert [str(i) for i in finish(storage).instants] == [f"{R} rollback completed"]
    assert files(storage) == []


def test_a_plan_that_leads_out_of_the_table_is_refused(storage, tmp_path):
    pending(storage)
    (tmp_path / name(1)).write_bytes(b"x")
    begun(storage, [{"partitionPath": "..", "filesToBeDeleted": [f"../{name(1)}"]}])
    with pytest.raises(CorruptFileError, match="not below the table"):
        finish(storage)
    assert (tmp_path / name(1)).exists()


def test_blocks_of_a_task_that_outlived_its_write_are_taken_back(storage):
    put(storage, f"p/aa-0_0-0-0_{OLD}.parquet")
    logged(storage, f"p/{LOG}", T)
    logged(storage, f"p/.bb-0_{T}.log.1_0-1-2", T)
    for log in (LOG, f".bb-0_{T}.log.1_0-1-2", f".cc-0_{OLD}.log.1_0-1-2"):
        markers.create(storage, T, "p", log, "APPEND")
    rollback_executor.remove_leftovers(storage, T)
    assert sorted(e.name for e in storage.list("p")) == [
        LOG, f".aa-0_{OLD}.log.2_1-0-1", f"aa-0_0-0-0_{OLD}.parquet"
    ]  # fmt: skip
    assert blocks(storage, f"p/.aa-0_{OLD}.log.2_1-0-1")[0].target_instant == T
    assert not markers.has_markers(storage, T)


def test_leftovers_of_an_instant_without_files_are_no_error(storage):
    rollback_executor.remove_leftovers(storage, T)
    markers.create(storage, T, "p", name(1), "CREATE")
    rollback_executor.remove_leftovers(storage, T)
    assert not markers.has_markers(storage, T)
    assert json.loads(json.dumps(files(storage))) == []
