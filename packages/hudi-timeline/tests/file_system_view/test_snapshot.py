"""Snapshots of a table: what is read with them, when, and how often."""

import collections
import pickle
import threading

import pyarrow as pa
import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.snapshot import CommitCache, load_snapshot, open_snapshot
from hudi_timeline.testing.faulty_storage import Faults
from hudi_timeline.timeline.commit_files import CommitFiles

ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"], "ts": [1, 2]})
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


@pytest.fixture
def table(tmp_path):
    made = HudiTable.create(
        str(tmp_path / "t"), ROWS.schema, name="t", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
    )  # fmt: skip
    made.insert(ROWS, options=QUIET)
    made.insert(ROWS.append_column("more", pa.array([3, 4])), options=QUIET)
    return made


def watched(table):
    faults = Faults()
    return faults, faults.wrap(open_storage(table.uri))


def commits_read(faults):
    paths = [c.path for c in faults.log if c.operation == "read" and c.path.endswith(".commit")]
    return collections.Counter(paths)


def test_a_snapshot_for_a_change_reads_no_commit_before_its_schema_is_asked_for(table):
    faults, storage = watched(table)
    snapshot = load_snapshot(storage)
    assert not commits_read(faults)
    assert snapshot.schema.names == ["id", "p", "ts", "more"]
    assert snapshot.schema is snapshot.stored_schema
    assert commits_read(faults).total() == 1


def test_what_was_read_of_commits_is_not_read_again_for_a_newer_snapshot(table):
    faults, storage = watched(table)
    first = load_snapshot(storage)
    first.files()
    before = commits_read(faults)
    table.insert(ROWS.append_column("more", pa.array([5, 6])), options=QUIET)
    newer = first.reloaded()
    newer.files()
    assert len(newer.instants) == len(first.instants) + 1
    assert set((commits_read(faults) - before).values()) == {1}
    assert commits_read(faults).total() == before.total() + 1


def test_a_snapshot_as_of_an_instant_has_the_schema_of_that_time(table):
    snapshot = load_snapshot(open_storage(table.uri))
    earlier = snapshot.at(snapshot.instants[0].time)
    assert snapshot.schema.names == ["id", "p", "ts", "more"]
    assert earlier.schema.names == ["id", "p", "ts"]
    assert len(earlier.slices()) == 2
    later = snapshot.with_timeline(type(snapshot.timeline).of_files(snapshot.timeline.files))
    assert later.instants == snapshot.instants


def test_a_timeline_knows_which_folders_were_not_there_when_it_was_listed(table):
    storage = open_storage(table.uri)
    timeline = load_snapshot(storage).timeline
    assert timeline.lacks("metadata")
    assert timeline.lacks(".bucket_index/p")
    assert not timeline.lacks("hoodie.properties")
    assert not timeline.lacks(".temp")
    # One that was made of files alone knows nothing of it.
    assert not type(timeline).of_files(timeline.files).lacks("metadata")


def test_a_snapshot_in_another_process_has_the_schema_that_it_was_read_with(table):
    storage = open_storage(table.uri)
    snapshot = pickle.loads(pickle.dumps(open_snapshot(storage)))
    assert snapshot.schema.names == ["id", "p", "ts", "more"]
    assert pickle.loads(pickle.dumps(load_snapshot(storage))).schema == snapshot.schema


def test_threads_may_ask_for_commits_at_the_same_time(table):
    """What one of them has read comes in while another one counts what is kept."""
    first, *others = table.timeline.completed_writes()
    assert others
    cache = CommitCache(table.storage)
    found = []

    class CountedBeside(tuple):
        def __len__(self):
            if not found:
                found.append(None)
                beside = threading.Thread(target=lambda: found.append(cache.files(others)))
                beside.start()
                beside.join()
            return 0

    cache.keep(first, CommitFiles(CountedBeside()))
    cache.files([first])
    assert len(cache.files([first])) == 1
    assert len(found[1]) == len(others)
