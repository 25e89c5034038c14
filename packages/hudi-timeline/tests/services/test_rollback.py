"""Rollbacks by hand."""

import pytest
from serviced_tables import KEEP_2, SCHEMA, tree, write

from hudi_format.errors import (
    InstantNotFoundError,
    MissingFileError,
    OptionError,
    UnsupportedError,
)
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import markers
from hudi_timeline.timeline.instant import (
    next_instant,
)


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


@pytest.mark.req("RC-01", "RC-03", "NEW-08")
def test_a_write_that_died_is_rolled_back_by_hand_or_by_the_cleaner_of_lazy_writers(table, path):
    write(table, range(2))
    dead = next_instant(table.timeline.newest_time)
    for lazily in (False, True):
        (path / f".hoodie/{dead}.commit.requested").touch()
        (path / f".hoodie/{dead}.inflight").touch()
        there = tree(path)
        assert table.rollback(dry_run=True).undone == (dead,)
        assert tree(path) == there
        if lazily:
            table.clean(options={"hoodie.cleaner.policy.failed.writes": "LAZY"})
        else:
            assert table.rollback().undone == (dead,)
        assert HudiTable.open(str(path)).timeline.find(dead) is None
        dead = next_instant(HudiTable.open(str(path)).timeline.newest_time)


@pytest.mark.req("RC-01")
def test_only_the_newest_commit_is_rolled_back(table, path):
    first, second = write(table, range(2))
    with pytest.raises(UnsupportedError, match="came after"):
        table.rollback(first)
    with pytest.raises(InstantNotFoundError):
        table.rollback("20200101000000000")
    table.savepoint(second)
    with pytest.raises(OptionError, match="savepointed"):
        table.rollback(second)
    table.delete_savepoint(second)
    before = table.read(as_of=first).to_arrow()
    result = table.rollback(second)
    assert (result.files, result.blocks) == (2, 0)
    assert table.read().to_arrow().sort_by("k").equals(before.sort_by("k"))
    # What the cleaner took cannot come back.
    write(table, range(2, 6))
    table.clean(options={**KEEP_2, "hoodie.cleaner.commits.retained": "1"})
    newest = table.timeline.completed_writes()
    table.rollback(newest[-1].time)
    with pytest.raises(MissingFileError) as e:
        table.rollback(newest[-2].time)
    assert "cleaned away" in e.value.remedy


def test_a_write_that_begins_without_the_lock_during_a_rollback_keeps_its_files(table, path, monkeypatch):
    write(table, range(2))
    instant = next_instant(table.timeline.newest_time)
    name = f"f1-0_0-1-1_{instant}.parquet"
    look = markers.list_instants

    def begins_before(storage):
        if not markers.exists(storage, instant, "a", name, markers.CREATE):
            (path / f".hoodie/.heartbeat/{instant}").touch()
            (path / f".hoodie/{instant}.commit.requested").touch()
            (path / f".hoodie/{instant}.inflight").touch()
            markers.create(storage, instant, "a", name, markers.CREATE)
            (path / "a" / name).write_bytes(b"PAR1")
        return look(storage)

    monkeypatch.setattr(markers, "list_instants", begins_before)
    assert table.rollback().undone == ()
    assert (path / "a" / name).exists()
    assert look(table.storage) == [instant]
    assert (path / f".hoodie/.heartbeat/{instant}").exists()
