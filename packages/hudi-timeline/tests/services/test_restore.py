"""Restores to savepoints and instants: for good, finished after a crash, or refused."""

import os
from datetime import UTC, date, timedelta

import pytest
from serviced_tables import KEEP_2, SCHEMA, SHORT, files, rows, tree, write

from hudi_format.errors import (
    InstantNotFoundError,
    MissingFileError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.services.archival import ArchivePlan, remove_instants, write_archive
from hudi_timeline.services.archive_planner import archive_entry
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.instant import parse_instant


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


@pytest.mark.req("RC-06")
def test_a_restore_takes_the_table_back_for_good(table, path):
    write(table, range(3))
    saved = table.savepoint()
    before = table.read().to_arrow().sort_by("k")
    write(table, range(3, 6), SHORT)
    table.insert_overwrite(rows(6, "a"), options=SHORT)
    table.delete_partitions("b", options=SHORT)
    plan = table.restore(saved, dry_run=True)
    assert (len(plan.undone), plan.instant) == (5, "")
    result = table.restore(saved)
    assert result.undone == plan.undone
    assert table.read().to_arrow().sort_by("k").equals(before)
    assert not [f for f in files(path) if any(t in f for t in result.undone)]
    assert table.upsert(rows(9)).updated == 6
    assert set(table.read().to_arrow().column("v").to_pylist()) == {9}


@pytest.mark.req("RC-06")
def test_what_cannot_be_restored_is_refused_and_nothing_changes(table, path):
    instants = write(table, range(6))
    table.clean(options=KEEP_2)
    table.savepoint(instants[5])
    before = tree(path)
    for to, error in ((instants[4], OptionError), ("20200101000000000", InstantNotFoundError)):
        with pytest.raises(error):
            table.restore(to)
    table.delete_savepoint(instants[5])
    with pytest.raises(MissingFileError):
        table.restore(instants[1])
    assert {k: v for k, v in before.items() if "savepoint" not in k} == tree(path)


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("after", range(1, 30, 4))
@pytest.mark.sampled(2)
def test_a_restore_that_died_is_finished_by_the_same_restore(table, path, monkeypatch, after):
    instants = write(table, range(4))
    before = table.read(as_of=instants[1]).to_arrow().sort_by("k")
    calls = iter(range(1000))

    def delete(self, name, real=LocalStorage.delete):
        if next(calls) == after:
            raise StorageError("the process ends here")
        return real(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "delete", delete)
        died = False
        try:
            table.restore(instants[1])
        except StorageError:
            died = True
    if died:
        with pytest.raises(UnsupportedError, match="restore that is not finished") as e:
            table.upsert(rows(7))
        assert "HudiTable.restore()" in e.value.remedy
        with pytest.raises(OptionError, match="begun and not finished"):
            table.restore(instants[0])
        table.restore(instants[1])
    assert table.read().to_arrow().sort_by("k").equals(before)
    assert table.upsert(rows(8)).updated == 6


def test_a_plan_of_a_dry_run_is_refused_where_a_savepoint_needs_its_files_since(table, path):
    instants = write(table, range(6))
    plan = table.clean(dry_run=True, options=KEEP_2).plan
    table.savepoint(instants[2])
    before = tree(path)
    with pytest.raises(UnsupportedError, match="which a savepoint needs") as e:
        table.clean(plan=plan)
    assert "make the plan anew" in e.value.remedy
    assert tree(path) == before


@pytest.mark.req("RC-07")
def test_a_restore_between_writes_that_overlapped_says_so(table, path):
    first, second, third = write(table, range(3))
    assert table.restore(second, dry_run=True).warnings == ()
    done = path / ".hoodie" / f"{third}.commit"
    os.utime(done, ns=(done.stat().st_atime_ns, (path / ".hoodie" / f"{first}.commit").stat().st_mtime_ns))
    (words,) = table.restore(second, dry_run=True).warnings
    assert second in words
    assert third in words
    assert table.restore(second).warnings == (words,)


def archived(made, name):
    config = made.table.config
    files = tuple(
        f
        for f in load_snapshot(made.storage).timeline.files
        if f.time == made.at(name) and f.action != "savepoint"
    )
    write_archive(made.storage, config, [archive_entry(made.storage, config, f) for f in files], 10)
    remove_instants(made.storage, ArchivePlan(tuple(f for f in files if f.completed), files))


def beyond_a_savepoint(table_type):
    """A savepoint, and a later commit that was archived nevertheless."""
    made = TableBuilder(table_type=table_type)
    made.commit("saved", made.base("saved", {"v1": 1}))
    made.table.savepoint()
    made.commit("archived", made.base("archived", {"v2": 1}, prev="saved"))
    made.commit("newest", made.base("newest", {"v3": 1}, prev="archived"))
    archived(made, "archived")
    return made


@pytest.mark.req("RC-06")
def test_files_of_commits_that_were_archived_beyond_the_savepoint_do_not_come_back():
    """They would, when the timeline begins with the first write after the restore."""
    made = beyond_a_savepoint("COPY_ON_WRITE")
    made.table.restore(made.at("saved"))
    made.commit("after", made.base("after", {"x": 1}, group=5, partition="p1"))
    changed = made.table.read_incremental(made.at("saved")).to_arrow()
    assert changed["id"].to_pylist() == ["x"], "what was undone is not lacked"
    made.table.delete_savepoint(made.at("saved"))
    assert sorted(made.table.read(["id"]).to_arrow()["id"].to_pylist()) == ["v1", "x"]


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_time_whose_commit_was_archived_beyond_a_savepoint_stands_for_no_older_one(is_kept):
    made = beyond_a_savepoint("COPY_ON_WRITE")
    moment = parse_instant(made.at("archived"))
    if not is_kept:
        for state in ("INFLIGHT", "COMPLETED"):  # as Apache Hudi does it
            made.storage.delete(made.path_of(made.at("saved"), "savepoint", state))
    for act in (made.table.restore, made.table.savepoint):
        for dry_run in (True, False):
            with pytest.raises(InstantNotFoundError, match="is archived") as caught:
                act(moment, dry_run=dry_run)
            assert caught.value.instant == made.at("archived")
            assert made.at("saved") in caught.value.remedy
    assert made.table.read(["id"]).to_arrow()["id"].to_pylist() == ["v3"]
    before = moment - timedelta(milliseconds=1)
    assert made.table.restore(before, dry_run=True).to == made.at("saved")


@pytest.mark.req("RC-06")
def test_merge_on_read_tables_are_not_restored_beyond_archived_commits():
    made = beyond_a_savepoint("MERGE_ON_READ")
    with pytest.raises(UnsupportedError, match="is archived") as caught:
        made.table.restore(made.at("saved"))
    assert "as of" in caught.value.remedy
    assert made.table.read(["id"]).to_arrow()["id"].to_pylist() == ["v3"]


@pytest.mark.parametrize("kept", ["second", "none"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_neither_do_they_where_the_savepoint_that_they_were_archived_beyond_is_deleted(table_type, kept):
    made = TableBuilder(table_type=table_type)
    made.commit("saved", made.base("saved", {"v1": 1}))
    made.table.savepoint()
    if kept == "second":
        made.commit("second", made.base("second", {"v2": 1}, prev="saved"))
        made.table.savepoint()
    made.commit("archived", made.base("archived", {"v3": 1}, prev="saved"))
    made.commit("newest", made.base("newest", {"v4": 1}, prev="archived"))
    archived(made, "archived")
    gone = made.at("second" if kept == "second" else "saved")
    for state in ("INFLIGHT", "COMPLETED"):  # as Apache Hudi does it
        made.storage.delete(made.path_of(gone, "savepoint", state))
    if table_type == "MERGE_ON_READ":
        with pytest.raises(UnsupportedError, match="is archived"):
            made.table.restore(made.at("saved"))
        return
    files = made.table.restore(made.at("saved"), dry_run=True).files
    assert any(made.at("archived") in f for f in files)
    assert made.table.restore(made.at("saved")).files == files
    made.commit("after", made.base("after", {"x": 1}, group=5, partition="p1"))
    if kept == "none":
        archived(made, "saved")
    assert sorted(made.table.read(["id"]).to_arrow()["id"].to_pylist()) == ["v1", "x"]


def test_commits_that_were_archived_beyond_a_savepoint_count_when_it_is_deleted():
    made = TableBuilder()
    made.commit("saved", made.base("saved", {"v1": 1}))
    made.table.savepoint()
    made.commit("archived", made.base("archived", {"v2": 1}, prev="saved"))
    made.commit("other", made.base("other", {"x": 1}, group=5, partition="p1"))
    made.commit("newest", made.base("newest", {"v3": 1}, prev="archived"))
    archived(made, "archived")
    made.table.delete_savepoint(made.at("saved"))
    made.table.rollback(made.at("newest"))
    assert sorted(made.table.read(["id"]).to_arrow()["id"].to_pylist()) == ["v2", "x"]
    assert made.table.verify() == []


@pytest.mark.parametrize("act", ["restore", "savepoint"])
def test_a_time_is_asked_of_the_state_under_the_lock(table, monkeypatch, act):
    """A commit that another writer makes before the lock is had is one of those up to the time."""
    write(table, range(2))
    made = []
    locked = ServiceContext.locked

    def late(context, **how):
        if not made:
            made.extend(write(table, [2]))
        return locked(context, **how)

    monkeypatch.setattr(ServiceContext, "locked", late)
    found = getattr(table, act)(date(2999, 1, 1))
    assert (found.to if act == "restore" else found) == made[0]
    assert act == "savepoint" or not found.undone


def test_a_time_stands_for_the_newest_commit_up_to_it(table):
    first, second, _ = write(table, range(3))
    moment = parse_instant(second)
    assert table.restore(moment, dry_run=True).to == second
    assert table.restore(moment - timedelta(milliseconds=1), dry_run=True).to == first
    assert table.restore(moment.astimezone(UTC), dry_run=True).to == second
    assert table.savepoint(moment) == second
    assert table.savepoints == [second]
    for early in ("2020-01-01", date(2020, 1, 1), moment - timedelta(days=1)):
        with pytest.raises(InstantNotFoundError, match="no completed commit up to"):
            table.restore(early)
        with pytest.raises(InstantNotFoundError, match="no completed commit up to"):
            table.savepoint(early)
    for none in ("now", 3, ""):
        with pytest.raises(InstantNotFoundError, match="point in time"):
            table.restore(none)
    wrong = f"{int(second) - 1}"  # an instant, not a time: no other one is meant
    for given in (wrong, f" {wrong}\n"):
        with pytest.raises(InstantNotFoundError, match=f"no completed commit {wrong}"):
            table.restore(given)
    assert table.restore(f" {second}", dry_run=True).to == second
    assert table.restore(moment).undone
    assert [i.time for i in table.timeline.completed_writes()] == [first, second]
