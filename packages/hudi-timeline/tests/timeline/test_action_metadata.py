"""Every action's files as typed values, of all table versions."""

import io
from collections import Counter

import fastavro
import pytest

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import table_config
from hudi_timeline.timeline import action_metadata
from hudi_timeline.timeline.action_metadata import parse_action, read_action, render_action
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.avro_files import parse, render
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import Instant

T = "20260101000000000"
# Actions and states with a content that the golden timelines have.
SEEN_2 = {
    ("clean", "REQUESTED"), ("clean", "INFLIGHT"), ("clean", "COMPLETED"), ("rollback", "REQUESTED"),
    ("rollback", "COMPLETED"), ("compaction", "REQUESTED"), ("clustering", "REQUESTED"),
    ("replacecommit", "REQUESTED"), ("indexing", "REQUESTED"), ("indexing", "COMPLETED"),
    ("commit", "COMPLETED"), ("deltacommit", "COMPLETED"), ("replacecommit", "COMPLETED"),
    ("commit", "INFLIGHT"), ("deltacommit", "INFLIGHT"), ("replacecommit", "INFLIGHT"),
}  # fmt: skip
SEEN_1 = (SEEN_2 - {("clustering", "REQUESTED"), ("indexing", "REQUESTED"), ("indexing", "COMPLETED")}) | {
    ("restore", "REQUESTED"), ("restore", "COMPLETED"), ("savepoint", "COMPLETED")
}  # fmt: skip


def everything(folder):
    """Every instant file with a content, and its value."""
    for table in sorted(folder.glob("v?/*")):
        storage = LocalStorage(str(table))
        for file in load_timeline(storage, table_config.load(storage)).files:
            value = read_action(storage, file)
            if value is not None and file.size:
                yield table.name, file, value


@pytest.mark.req("TM-17", "TM-18")
def test_every_file_of_the_golden_timelines_of_layout_1(golden_timelines):
    assert {(f.action, f.state) for _, f, _ in everything(golden_timelines)} >= SEEN_1


@pytest.mark.req("TM-17", "TM-18")
def test_every_file_of_the_golden_timelines_of_layout_2(golden_timelines_2):
    kinds = Counter()
    for _, file, value in everything(golden_timelines_2):
        kinds[file.action, file.state] += 1
        if isinstance(value, action_metadata.CleanMetadata):
            assert value.files_deleted == sum(len(p.deleted) for p in value.partitions.values())
            assert value.took_ms >= 0
        elif isinstance(value, action_metadata.CleanPlan):
            assert value.policy == "KEEP_LATEST_COMMITS"
            assert value.earliest is None or value.earliest.time
            assert all(name for names in value.files.values() for name in names)
        elif isinstance(value, action_metadata.RollbackPlan):
            assert value.target.action == "deltacommit"
            # Whole log files are deleted; there are no rollback blocks any more.
            assert any(r.files for r in value.requests)
            assert not any(r.log_blocks for r in value.requests)
        elif isinstance(value, action_metadata.RollbackMetadata):
            assert value.files_deleted == sum(len(p.deleted) for p in value.partitions.values()) > 0
            assert [i.time for i in value.instants] == list(value.commits)
        elif isinstance(value, action_metadata.CompactionPlan):
            for operation in value.operations:
                assert operation.base_instant in operation.data_file or not operation.data_file
                assert all(operation.file_id in f for f in operation.log_files)
        elif isinstance(value, action_metadata.ReplaceRequest) and file.action == "clustering":
            assert value.operation == "CLUSTER"
            assert value.clustering.groups
            assert all(s.file_id in s.data_file for g in value.clustering.groups for s in g.slices)
        elif isinstance(value, action_metadata.IndexPlan | action_metadata.IndexMetadata):
            assert value.partitions[0].partition
            assert len(value.partitions[0].up_to) == 17
    assert kinds.keys() >= SEEN_2


WRITTEN_HERE = {
    ("clean", "REQUESTED"): "HoodieCleanerPlan", ("clean", "INFLIGHT"): "HoodieCleanerPlan",
    ("clean", "COMPLETED"): "HoodieCleanMetadata", ("rollback", "REQUESTED"): "HoodieRollbackPlan",
    ("rollback", "COMPLETED"): "HoodieRollbackMetadata", ("restore", "REQUESTED"): "HoodieRestorePlan",
    ("restore", "COMPLETED"): "HoodieRestoreMetadata", ("savepoint", "COMPLETED"): "HoodieSavepointMetadata",
}  # fmt: skip


def without_nothing(value):
    """A record without the fields that are null or empty: which of the two a writer takes tells nothing."""
    if isinstance(value, dict):
        inner = {k: without_nothing(v) for k, v in value.items()}
        return {k: v for k, v in inner.items() if v not in (None, "", False, {}, [])}
    return [without_nothing(v) for v in value] if isinstance(value, list) else value


@pytest.mark.req("TM-18")
def test_plans_and_results_of_the_golden_timelines_are_written_as_they_were_read(golden_timelines):
    kinds = Counter()
    for table, file, value in everything(golden_timelines):
        name = WRITTEN_HERE.get((file.action, file.state))
        if name is None:
            continue
        data = next(golden_timelines.glob(f"v?/{table}/{file.path}")).read_bytes()
        given = without_nothing(parse(name, data))
        if name == "HoodieCleanerPlan":
            paths = [
                f["filePath"]
                for several in given["filePathsToBeDeletedPerPartition"].values()
                for f in several
            ]
            partition = next(iter(value.files))
            again = value.to_bytes(paths[0].partition(f"/{partition}/")[0])
        else:
            again = render_action(value)
        assert without_nothing(parse(name, again)) == given, file.path
        kinds[file.action, file.state] += 1
    assert kinds.keys() == WRITTEN_HERE.keys()


def test_a_restore_and_a_savepoint_of_layout_1(golden_timelines):
    storage = LocalStorage(str(golden_timelines / "v6" / "savepoint_restore"))
    timeline = load_timeline(storage, table_config.load(storage))
    (restore,), (savepoint,) = timeline.of("restore"), timeline.of("savepoint")
    done, saved = read_action(storage, restore), read_action(storage, savepoint)
    assert list(done.rollbacks) == list(done.commits)
    assert all(rolled[0].files_deleted for rolled in done.rollbacks.values())
    assert saved.at_ms > 0
    assert all(p.files for p in saved.partitions.values())
    plan = read_action(storage, next(f for f in timeline.files if f.file_name.endswith("restore.requested")))
    assert sorted(i.time for i in plan.instants) == sorted(done.commits)
    assert plan.savepoint == savepoint.time


def test_an_empty_file_says_nothing_unless_the_instant_is_completed(storage):
    for state, name in (("INFLIGHT", f"{T}.rollback.inflight"), ("COMPLETED", f"{T}.rollback")):
        storage.publish(f".hoodie/{name}", b"")
        instant = Instant(T, "rollback", state, name)
        if state == "INFLIGHT":
            assert read_action(storage, instant) is None
        else:
            with pytest.raises(CorruptFileError) as e:
                read_action(storage, instant)
            assert e.value.file == f".hoodie/{name}"
    with pytest.raises(MissingFileError):
        read_action(storage, Instant(T, "clean", "COMPLETED", f"{T}.clean"))


def test_fields_of_other_types_are_an_error_that_names_them():
    schema = {"type": "record", "name": "HoodieSavepointMetadata", "fields": [
        {"name": "savepointedBy", "type": "string"}, {"name": "savepointedAt", "type": "string"},
        {"name": "comments", "type": "string"}, {"name": "later", "type": "long"},
    ]}  # fmt: skip
    out = io.BytesIO()
    fastavro.writer(
        out, schema, [{"savepointedBy": "us", "savepointedAt": "now", "comments": "", "later": 4}]
    )
    with pytest.raises(CorruptFileError, match="savepointedAt is a string"):
        parse_action("savepoint", "COMPLETED", out.getvalue())


def test_fields_that_are_left_out_or_unknown_do_no_harm():
    plan = parse_action("rollback", "REQUESTED", render("HoodieRollbackPlan", {}))
    assert plan == action_metadata.RollbackPlan()
    with pytest.raises(UnsupportedError):
        parse_action("restore", "INFLIGHT", b"Obj\x01")
    with pytest.raises(CorruptFileError, match="HoodieRollbackPlan"):
        parse_action("clean", "COMPLETED", render("HoodieRollbackPlan", {}))


def test_a_commit_is_commit_metadata(golden_timelines_2):
    storage = LocalStorage(str(golden_timelines_2 / "v8" / "cow_clustered"))
    writes = load_timeline(storage, table_config.load(storage)).completed_writes()
    assert all(isinstance(read_action(storage, w), CommitMetadata) for w in writes)
