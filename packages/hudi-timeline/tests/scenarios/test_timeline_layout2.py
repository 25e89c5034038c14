"""The timeline of layout 2: names with the time of completion, Avro metadata, a folder of its own."""

import shutil
from datetime import UTC, datetime

import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import table_config
from hudi_timeline.inspector import Inspector
from hudi_timeline.reading.time_travel import earliest_retained
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering, latest_schema, load_timeline
from hudi_timeline.timeline.avro_files import parse
from hudi_timeline.timeline.commit_files import read_commit_files
from hudi_timeline.timeline.commit_metadata import parse_commit, read_commit
from hudi_timeline.timeline.instant import parse_instant_file

FOLDER = ".hoodie/timeline"
A, B, C, D = (f"2026010100000{n}000" for n in range(4))


def instant(name):
    return parse_instant_file(name, FOLDER)


@pytest.fixture
def table(storage):
    """The table of version 9, with an empty timeline."""
    storage.make_dir(FOLDER)
    table_config.update(storage, {"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"})
    return storage


def load(storage):
    return load_timeline(storage, table_config.load(storage))


NAMES = [
    (f"{A}.commit.requested", (A, "commit", "REQUESTED", "")),
    (f"{A}.inflight", (A, "commit", "INFLIGHT", "")),
    (f"{A}_{B}.commit", (A, "commit", "COMPLETED", B)),
    (f"{A}.deltacommit.inflight", (A, "deltacommit", "INFLIGHT", "")),
    (f"{A}_{B}.deltacommit", (A, "deltacommit", "COMPLETED", B)),
    (f"{A}.clustering.requested", (A, "clustering", "REQUESTED", "")),
    (f"{A}.clustering.inflight", (A, "clustering", "INFLIGHT", "")),
    (f"{A}_{B}.replacecommit", (A, "replacecommit", "COMPLETED", B)),
    (f"{A}.compaction.requested", (A, "compaction", "REQUESTED", "")),
    (f"{A}.logcompaction.inflight", (A, "logcompaction", "INFLIGHT", "")),
    *[
        (f"{A}_{B}.{action}", (A, action, "COMPLETED", B))
        for action in ("clean", "rollback", "restore", "savepoint", "indexing")
    ],
    (f"{A}.commit", (A, "commit", "COMPLETED", "")),  # left by the upgrade from version 6
]


@pytest.mark.req("TM-22")
@pytest.mark.parametrize(("name", "what"), NAMES, ids=[n for n, _ in NAMES])
def test_the_name_of_every_action_and_state(name, what):
    found = instant(name)
    assert (found.time, found.action, found.state, found.completion) == what
    assert found.path == f"{FOLDER}/{name}"


@pytest.mark.parametrize(
    "name",
    ["history", f"{A}_{B}.shredding", f"{A}_{B}.commit.requested", f"{A}_{B}.clustering", f"{A}_{B}.compaction",
     f"{A}_{B}.inflight", f"{A}_{B}_{C}.commit", f"{A}_.commit", f"{A}_{B}.commit.crc", "x.commit",
     f"{A}.commit.inflight"],
)  # fmt: skip
def test_other_names_are_no_instants(name):
    assert instant(name) is None


def test_a_clustering_and_the_replacecommit_that_it_becomes_are_one_instant():
    names = [f"{A}.clustering.requested", f"{A}.clustering.inflight", f"{A}_{B}.replacecommit",
             f"{C}.clustering.requested"]  # fmt: skip
    timeline = Timeline.of_files(map(instant, names))
    assert [str(i) for i in timeline.instants] == [
        f"{A} replacecommit completed",
        f"{C} clustering requested",
    ]
    assert [i.time for i in timeline.pending_writes()] == [C]
    assert is_clustering(None, timeline, timeline.pending_writes()[0])


@pytest.mark.req("TM-22")
def test_the_golden_timelines_load_and_say_when_writes_were_completed(golden_timelines_2):
    folders = sorted(golden_timelines_2.glob("v?/*"))
    assert len(folders) > 50
    operations = set()
    for folder in folders:
        storage = LocalStorage(str(folder))
        config = table_config.load(storage)
        timeline = load_timeline(storage, config)
        assert timeline.completed_writes()
        assert timeline.pending_writes() == ()
        for write in timeline.completed_writes():
            assert write.time < write.completion
            metadata = read_commit(storage, write)
            operations.add(metadata.operation)
            assert all(s.path and s.file_id and s.file_size_in_bytes for s in metadata.stats)
        assert latest_schema(storage, timeline, config).names[:2]
    assert {"INSERT", "UPSERT", "DELETE", "COMPACT", "CLUSTER", "INSERT_OVERWRITE_TABLE"} <= operations


def test_what_a_golden_commit_of_version_9_says(golden_timelines_2):
    storage = LocalStorage(str(golden_timelines_2 / "v9" / "cow_clustered"))
    timeline = load(storage)
    (clustering,) = timeline.of("replacecommit")
    metadata = read_commit(storage, clustering)
    assert metadata.operation == "CLUSTER"
    assert metadata.is_replace
    assert sum(len(ids) for ids in metadata.replaced.values()) >= 3
    for stat in metadata.stats:
        assert stat.prev_commit == "null"
        assert stat.num_writes == stat.num_inserts
        assert stat.path.startswith(f"{stat.partition}/{stat.file_id}_")


def test_every_other_action_of_the_golden_timelines_is_decoded(golden_timelines_2):
    names = {
        "clean": "HoodieCleanMetadata", "rollback": "HoodieRollbackMetadata",
        "indexing": "HoodieIndexCommitMetadata",
    }  # fmt: skip
    seen = set()
    for folder in sorted(golden_timelines_2.glob("v?/*")):
        storage = LocalStorage(str(folder))
        for done in load(storage).instants:
            if done.completed and done.action in names:
                record = parse(names[done.action], storage.read(done.path))
                assert record["version"]
                seen.add(done.action)
    assert seen == set(names)
    storage = LocalStorage(str(golden_timelines_2 / "v9" / "cow_archived"))
    assert earliest_retained(storage, load(storage)) in {i.time for i in load(storage).completed_writes()}


def test_a_completed_file_without_a_time_of_completion_has_that_of_its_modification(table):
    table.publish(f"{FOLDER}/{A}.commit", b'{"partitionToWriteStats": {}, "operationType": "UPSERT"}')
    (old,) = load(table).completed_writes()
    assert len(old.completion) == 17
    assert old.completion > "2026"
    assert read_commit(table, old).operation == "UPSERT"


def test_an_empty_file_of_a_completed_write_is_an_error(table):
    table.publish(f"{FOLDER}/{A}_{B}.deltacommit", b"")
    with pytest.raises(CorruptFileError) as e:
        load(table)
    assert e.value.file == f"{FOLDER}/{A}_{B}.deltacommit"
    assert e.value.remedy


def test_a_timeline_whose_folder_is_gone_is_an_error_and_no_empty_table(table):
    table.delete_dir(FOLDER)
    with pytest.raises(CorruptFileError) as e:
        load(table)
    assert e.value.file == FOLDER
    assert "hoodie.timeline.path" in e.value.remedy


@pytest.mark.parametrize("path", ["../elsewhere", "a/../../b", "..", "a//b", "."])
@pytest.mark.parametrize("key", ["hoodie.timeline.path", "hoodie.timeline.history.path"])
def test_the_timeline_cannot_lie_outside_of_the_table(key, path):
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.version": "9",
        "hoodie.timeline.layout.version": "2",
    }
    with pytest.raises(CorruptFileError, match=key):
        table_config.TableConfig({**properties, key: path})


def test_the_timeline_lies_where_the_properties_say(table):
    table_config.update(table, {"hoodie.timeline.path": "mine/line", "hoodie.timeline.history.path": "old"})
    table.publish(f".hoodie/mine/line/{A}_{B}.commit", b"{}")
    config = table_config.load(table)
    assert config.history_folder == ".hoodie/mine/line/old"
    assert [i.path for i in load(table).instants] == [f".hoodie/mine/line/{A}_{B}.commit"]


def test_avro_of_another_record_is_no_commit(golden_timelines_2):
    folder = golden_timelines_2 / "v9" / "cow_archived" / ".hoodie" / "timeline"
    clean = next(folder.glob("*_*.clean")).read_bytes()
    with pytest.raises(CorruptFileError, match="HoodieCleanMetadata"):
        parse_commit(clean)
    commit = next(folder.glob("*_*.commit")).read_bytes()
    assert parse_commit(commit).operation
    for cut in (5, 100, len(commit) // 2, len(commit) - 17, len(commit) - 1):
        with pytest.raises(CorruptFileError):
            parse_commit(commit[:cut])
    with pytest.raises(CorruptFileError):
        parse_commit(commit + b"\0")


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("name", [b"partitionToWriteStats", b"path", b"fileId", b"partitionToReplaceFileIds"])
def test_a_schema_that_names_a_field_otherwise_loses_no_files(golden_timelines_2, tmp_path, name):
    """In the header of a commit's container, which no checksum covers."""
    from_where = golden_timelines_2 / "v9" / "cdc_cow_op_key_only" / ".hoodie"
    shutil.copytree(from_where, tmp_path / ".hoodie")
    storage = LocalStorage(str(tmp_path))
    timeline = load_timeline(storage, table_config.load(storage))
    action = "replacecommit" if name.startswith(b"partitionToR") else "commit"
    instant = next(i for i in timeline.completed_writes() if i.action == action)
    path = tmp_path / instant.path
    data = path.read_bytes()
    assert b'"' + name + b'"' in data
    path.write_bytes(data.replace(b'"' + name + b'"', b'"' + name[:-1] + b'_"', 1))
    for read in (lambda: read_commit(storage, instant), lambda: read_commit_files(storage, [instant])):
        with pytest.raises(CorruptFileError, match=name.decode()) as e:
            read()
        assert e.value.file == instant.path


def test_times_of_completion_are_shown_as_they_are_asked_for(table):
    table.publish(f"{FOLDER}/{A}_{B}.commit", b'{"partitionToWriteStats": {}}')
    table.publish(f"{FOLDER}/{C}.commit.requested", b"")
    inspect = Inspector(table)
    assert inspect.timeline().column("completion").to_pylist() == [B, None]
    done, pending = inspect.commits().column("completed_at").to_pylist()
    assert done == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert pending is None
