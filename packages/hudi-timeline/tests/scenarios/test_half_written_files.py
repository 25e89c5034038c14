"""Files that another writer has made and not yet filled, as Apache Hudi makes them on local disks and HDFS."""

import os
import shutil
import time
from pathlib import Path

import pytest

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.storage import stable_reads
from hudi_format.storage.local import LocalStorage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.file_slices import pending_compactions
from hudi_timeline.file_system_view.snapshot import snapshot_of
from hudi_timeline.timeline.action_metadata import read_action
from hudi_timeline.timeline.active_timeline import is_clustering, load_timeline
from hudi_timeline.timeline.commit_files import read_commit_files
from hudi_timeline.timeline.instant import COMPACTION, REPLACE_COMMIT, REQUESTED

TABLES = [
    "v6/savepoint_restore",
    "v6/cow_insert_overwrite",
    "v6/mor_compacted_then_logs",
    "v8/cow_archived",
    "v8/mor_pending_compaction",
    "v9/cow_clustered",
]


def opened(path):
    storage = LocalStorage(str(path))
    config = table_config.load(storage)
    return storage, config, load_timeline(storage, config)


def as_filled(storage, instant, state=None):
    """The file of an instant, as a writer that fills it while its reader sleeps."""
    name = instant.file_name if state is None else f"{instant.time}.{instant.action}.{state.lower()}"
    return SlowWriter(Path(storage.uri) / instant.folder / name)


class SlowWriter:
    """Fills a file by pieces, one each time that its reader sleeps."""

    def __init__(self, path):
        self.path, whole = path, path.read_bytes()
        self.rest = [b"", whole[: len(whole) // 3], whole[:-1], whole]
        self.step()

    def step(self, _seconds=0.0):
        if self.rest:
            self.path.write_bytes(self.rest.pop(0))


@pytest.fixture
def table(golden_timelines, golden_timelines_2, tmp_path):
    """Makes a copy of a timeline by its name."""

    def copy(name):
        root = golden_timelines if (golden_timelines / name).exists() else golden_timelines_2
        return opened(shutil.copytree(root / name, tmp_path / name))

    return copy


@pytest.mark.parametrize("name", TABLES)
def test_a_file_of_a_completed_instant_is_waited_for(table, monkeypatch, name):
    storage, _, timeline = table(name)
    done = [i for i in timeline.instants if i.completed]
    assert done
    for instant in done:
        want = read_action(storage, instant)
        writer = as_filled(storage, instant)
        monkeypatch.setattr(stable_reads.time, "sleep", writer.step)
        assert read_action(storage, instant) == want
        assert not writer.rest


@pytest.mark.parametrize("name", TABLES)
def test_many_commits_one_of_them_half_written(table, monkeypatch, name):
    storage, _, timeline = table(name)
    want = read_commit_files(storage, timeline.completed_writes())
    writer = as_filled(storage, timeline.completed_writes()[-1])
    monkeypatch.setattr(stable_reads.time, "sleep", writer.step)
    assert read_commit_files(storage, timeline.completed_writes()) == want


@pytest.mark.parametrize(
    "name", ["v6/mor_pending_compaction", "v8/mor_pending_compaction", "v9/mor_pending_compaction"]
)
def test_a_plan_of_a_compaction_is_waited_for(table, monkeypatch, name):
    storage, config, timeline = table(name)
    pending = timeline.pending(COMPACTION)
    want = pending_compactions(snapshot_of(storage, config, timeline))
    assert set(want.values()) == {i.time for i in pending}
    writer = as_filled(storage, pending[-1], REQUESTED)
    monkeypatch.setattr(stable_reads.time, "sleep", writer.step)
    assert pending_compactions(snapshot_of(storage, config, timeline)) == want


def test_who_stopped_in_the_middle_is_not_waited_for_any_longer(table, monkeypatch):
    storage, config, timeline = table("v8/mor_pending_compaction")
    instant = timeline.pending(COMPACTION)[-1]
    file = as_filled(storage, instant, REQUESTED).path
    naps = []
    monkeypatch.setattr(stable_reads.time, "sleep", naps.append)
    monkeypatch.setattr(stable_reads, "PATIENCE_S", 0.05)
    with pytest.raises(CorruptFileError, match="pending plan") as e:
        pending_compactions(snapshot_of(storage, config, timeline))
    assert naps
    assert (e.value.instant, e.value.file.rpartition("/")[2]) == (instant.time, file.name)


def test_an_old_file_is_what_it_is(table, monkeypatch):
    storage, config, timeline = table("v8/mor_pending_compaction")
    file = as_filled(storage, timeline.pending(COMPACTION)[-1], REQUESTED).path
    before = time.time() - 2 * stable_reads.YOUNG_S
    os.utime(file, (before, before))
    monkeypatch.setattr(
        stable_reads.time, "sleep", lambda _: pytest.fail("waited for a file that nobody writes")
    )
    with pytest.raises(CorruptFileError):
        pending_compactions(snapshot_of(storage, config, timeline))


def test_a_file_that_is_taken_back_meanwhile_is_missing(table, monkeypatch):
    storage, _, timeline = table("v6/cow_insert_overwrite")
    last = timeline.completed_writes()[-1]
    writer = as_filled(storage, last)
    monkeypatch.setattr(stable_reads.time, "sleep", lambda _: writer.path.unlink())
    with pytest.raises(MissingFileError, match=last.time):
        read_action(storage, last)


def test_an_empty_completed_file_is_waited_for_when_the_timeline_is_listed(table, monkeypatch):
    storage, config, timeline = table("v6/cow_insert_overwrite")
    writer = as_filled(storage, timeline.completed_writes()[-1])
    monkeypatch.setattr(stable_reads.time, "sleep", writer.step)
    assert all(i.size for i in load_timeline(storage, config).completed_writes())


def test_a_plan_of_a_clustering_is_told_once_it_is_whole(table, monkeypatch):
    storage, _, timeline = table("v6/cow_clustered")
    done = next(i for i in timeline.completed_writes() if i.action == REPLACE_COMMIT)
    (Path(storage.uri) / done.path).unlink()
    writer = as_filled(storage, done, REQUESTED)
    writer.step()  # some bytes are there when the folder is listed
    storage, _, timeline = opened(storage.uri)
    monkeypatch.setattr(stable_reads.time, "sleep", writer.step)
    assert is_clustering(storage, timeline, timeline.find(done.time))
    assert not writer.rest
