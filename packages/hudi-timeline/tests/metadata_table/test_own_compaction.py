"""Compaction, cleaning and archival of the metadata table."""

from pathlib import Path

import pytest
from listed_tables import KEPT, made, names, rows, table, write

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.metadata_table import own_compaction
from hudi_timeline.metadata_table.own_table import open_own
from hudi_timeline.reading.metadata_listing import differences
from hudi_timeline.testing import CRASH, Fault, Faults
from hudi_timeline.timeline.instant import CLEAN, COMPACTION

EVERY_3 = {"hoodie.metadata.compact.max.delta.commits": "3"}
SHORT = {
    **EVERY_3,
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


def test_it_is_compacted_after_so_many_delta_commits_at_the_last_ones_time(storage):
    made(storage)  # two delta commits: that of the initialisation is the first
    last = write(storage, rows(4, v=1), **EVERY_3).instant
    assert f"{last}001.commit" in names(storage)
    own = open_own(storage)
    (file_slice,) = own.slices(["files"]).values()
    assert (file_slice.base_instant, file_slice.log_files) == (f"{last}001", ())
    assert differences(storage) == []
    write(storage, rows(4, v=2), **EVERY_3)
    (file_slice,) = open_own(storage).slices(["files"]).values()
    assert file_slice.base_instant == f"{last}001"
    assert len(file_slice.log_files) == 1
    assert differences(storage) == []


def test_it_is_not_compacted_while_an_older_write_is_pending(storage):
    made(storage)
    for v in range(3):
        write(storage, rows(4, v=v), **{"hoodie.metadata.compact.max.delta.commits": "100"})
    own, timeline = open_own(storage), table(storage).timeline
    assert own_compaction.is_due(own, timeline, 3)
    newest = timeline.completed_writes()[-1]
    storage.delete(newest.path)
    assert not own_compaction.is_due(own, table(storage).timeline, 3)


@pytest.mark.parametrize("at", ["create */2*.compaction.inflight", "create *.hfile", "create *001.commit"])
def test_one_that_died_is_executed_again_and_what_came_since_lies_on_it(storage, at):
    made(storage)
    operation, path = at.split()
    faults = Faults(Fault(CRASH, operation=operation, path=path))
    with faults.process():
        write(faults.wrap(storage), rows(4, v=1), **EVERY_3)
    assert faults.dead
    (pending,) = open_own(storage).timeline.pending(COMPACTION)
    assert differences(storage) == []
    write(storage, rows(4, v=2), **{"hoodie.table.services.enabled": "false"})
    assert differences(storage) == []
    write(storage, rows(4, v=3))
    own = open_own(storage)
    assert own.timeline.pending(COMPACTION) == ()
    assert own.last_compaction == pending.time
    assert len(own.slices(["files"])["files", "files-0000-0"].log_files) >= 2
    assert differences(storage) == []
    assert HudiTable._of(storage).verify() == []


def test_old_slices_are_cleaned_and_both_timelines_stay_short(storage):
    made(storage)
    for v in range(14):
        write(storage, rows(2, v=v), **SHORT)
        assert differences(storage) == []
    own = open_own(storage)
    folder = Path(storage.uri) / FOLDER
    assert len(list((folder / "files").glob("*.hfile"))) == own_compaction.VERSIONS_RETAINED
    assert own.timeline.of(CLEAN)
    assert all(len(i.time) == 20 for i in own.timeline.of(CLEAN))
    first = table(storage).timeline.instants[0].time
    assert first > "2"
    # Nothing that a block needs has left the table's timeline before a compaction merged it.
    timeline = table(storage).timeline
    kept = {i.time for i in timeline.instants}
    assert all(i.time in kept for i in own.deltas_since_compaction())
    assert list((folder / ".hoodie/archived").iterdir())
    assert len(own.timeline.completed_writes()) < 20
    assert not list((folder / ".hoodie/.temp").iterdir())
    assert HudiTable._of(storage).verify() == []


def test_without_a_compaction_nothing_of_the_table_is_archived(storage):
    made(storage)
    for v in range(8):
        write(storage, rows(2, v=v), **{**SHORT, "hoodie.metadata.compact.max.delta.commits": "100"})
    assert len(table(storage).timeline.completed_writes()) == 9
    assert differences(storage) == []
    write(storage, rows(2, v=9), **SHORT, **KEPT)
    write(storage, rows(2, v=9), **SHORT)
    assert len(table(storage).timeline.completed_writes()) < 9
    assert differences(storage) == []


@pytest.mark.sampled(3, values=False)
@pytest.mark.parametrize("stays", ["rollback", "restore", "indexing"])
def test_an_old_instant_that_stays_on_the_table_s_timeline_holds_nothing_back(storage, stays):
    made(storage)
    opened = HudiTable._of(storage)
    write(storage, rows(2, v=1))
    if stays == "rollback":
        faults = Faults(Fault(CRASH, operation="create", path=".hoodie/2*commit"))
        with faults.process():
            write(faults.wrap(storage), rows(2, v=2))
        assert faults.dead
        write(storage, rows(2, v=2))
    elif stays == "restore":
        to = write(storage, rows(2, v=2)).instant
        write(storage, rows(2, v=3))
        opened.restore(to)
        write(storage, rows(2, v=3))
    else:
        opened.build_index("column_stats")
    (old, *_) = table(storage).timeline.of(stays)
    for v in range(16):
        write(storage, rows(2, v=v), **SHORT)
        assert differences(storage) == []
    assert old in table(storage).timeline.instants
    own = open_own(storage)
    assert own.timeline.completed_writes()[0].time > old.time
    assert len(own.timeline.completed_writes()) < 14
    assert opened.verify() == []
