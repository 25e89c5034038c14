"""Archival: what entries hold, and before what it stops."""

import os

import pyarrow as pa
import pytest
from archived_tables import AGGRESSIVE, ROWS, go_on, replaced, row, writes_of
from serviced_tables import OFF, SCHEMA, SHORT, rows, tree, write

from hudi_format.errors import ConcurrentWriterError, CorruptFileError, LockError, StorageError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.options.service_config import parse_service_options
from hudi_timeline.services import archival
from hudi_timeline.services.archive_planner import make_plan
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.instant import WRITE_ACTIONS


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


def test_archived_entries_hold_what_the_instants_said(table, path):
    write(table, range(3))
    table.insert_overwrite(rows(3, "a"), options=OFF)
    write(table, range(4, 14), SHORT)
    storage = LocalStorage(str(path))
    archived = archived_instants(storage, table_config.load(storage))
    assert [i.action for i in archived][:4] == ["commit", "commit", "commit", "replacecommit"]
    active = load_timeline(storage, table.config)
    # Cleanings are archived by their own number, as in Apache Hudi: one may be newer than the first active write.
    assert max(i for i in archived if i.action != "clean").time < active.completed_writes()[0].time
    changes = table.read_incremental("000").to_arrow()  # into the archived past: with a warning, not wrong
    assert changes.num_rows == 6


def test_archival_stops_before_a_pending_write_and_before_a_replacement_that_is_not_cleaned(table, path):
    write(table, range(4))
    table.insert_overwrite(rows(4, "a"), options=OFF)
    write(table, range(5, 14))
    plan = table.archive(dry_run=True, options={**SHORT, "hoodie.cleaner.commits.retained": "1"}).plan
    assert len(plan.instants) == 4


def test_a_commit_that_the_archive_cannot_hold_is_named_and_stays(table, path):
    instants = write(table, range(8))
    file = path / ".hoodie" / f"{instants[0]}.commit"
    modified = file.stat().st_mtime_ns  # which says when it was completed
    file.write_text(file.read_text().replace('"numWrites" : 3', '"numWrites" : "three"'))
    os.utime(file, ns=(modified, modified))
    short = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }
    before = tree(path)
    with pytest.raises(CorruptFileError) as e:
        table.archive(options=short)
    assert instants[0] in str(e.value)
    assert tree(path) == before


def commits(count, word="c"):
    return " ".join(f"2026010100{n:02d}00000{word}" for n in range(count))


def at(n, word):
    return f" 2026010100{n:02d}00000{word}"


@pytest.mark.req("TS-31", "TS-19")
def test_rows_that_were_replaced_do_not_come_back_where_their_files_could_not_be_deleted(
    tmp_path, monkeypatch
):
    delete = LocalStorage.delete

    def refuses(self, path):
        if path.startswith("a/"):
            raise StorageError("access denied", file=path)
        delete(self, path)

    monkeypatch.setattr(LocalStorage, "delete", refuses)
    table, at = replaced(tmp_path / "t")
    assert any(at in w for w in go_on(table))
    assert at in writes_of(table)
    monkeypatch.undo()
    table.clean(options={**AGGRESSIVE, "hoodie.cleaner.incremental.mode": "false"})
    assert go_on(table) == ()
    assert at not in writes_of(table)


@pytest.mark.req("TS-31", "TM-20")
def test_the_cleaning_that_a_write_began_counts_when_it_archives(tmp_path):
    """After the eighth write Apache Hudi has three cleanings: it counts the seventh, which that write has run."""
    options = {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "6",
    }
    table = HudiTable.create(
        str(tmp_path / "t"),
        ROWS,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    counts = []
    for n in range(9):
        table.upsert(row("a", "b", n), options=options)
        timeline = HudiTable.open(table.uri).timeline
        counts.append((len(timeline.completed_writes()), sum(i.completed for i in timeline.of("clean"))))
    assert counts == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (3, 6), (4, 3), (5, 4)]


POLICIES = {
    "commits": {"hoodie.cleaner.commits.retained": "2"},
    "versions": {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
    },
    "hours": {"hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS", "hoodie.cleaner.hours.retained": "1"},
}


@pytest.mark.req("TS-31", "TM-20")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.sampled(3)
def test_archival_goes_on_where_writes_leave_nothing_to_clean(tmp_path, policy):
    options = {
        **POLICIES[policy],
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": "6",
        "hoodie.parquet.small.file.limit": "0",
    }
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = HudiTable.create(
        str(tmp_path / "t"), schema, name="t", record_keys=["id"], ordering_fields=["ts"]
    )
    for n in range(5):
        table.upsert([{"id": "1", "ts": n}], options=options)
    for n in range(25):
        table.bulk_insert([{"id": f"x{n}", "ts": n}], options=options)
    storage = LocalStorage(str(tmp_path / "t"))
    active = load_timeline(storage, table.config).completed_writes()
    gone = [i for i in archived_instants(storage, table.config) if i.action in WRITE_ACTIONS]
    assert len(active) + len(gone) == 30
    # Hours keep what is younger than an hour, which is all of it.
    assert (len(active) <= 6) == (policy != "hours")
    assert table.read(columns=["id"]).to_arrow().num_rows == 26


BRIEF = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
}


def test_instants_that_another_archival_removes_meanwhile_are_planned_again(table, path, monkeypatch):
    """One that was stopped, and whose lock was taken, goes on with its plan when it is let."""
    instants = write(table, range(8))
    real, others = archival.archive_entry, []

    def entry(storage, config, instant):
        if not others:
            plan = make_plan(open_snapshot(storage), parse_service_options(BRIEF))
            others.append(archival.write_archive(storage, config, [real(storage, config, plan.files[0])], 1))
            (path / plan.files[0].path).unlink()
        return real(storage, config, instant)

    monkeypatch.setattr(archival, "archive_entry", entry)
    table.archive(options=BRIEF)
    assert others
    storage = LocalStorage(str(path))
    archived = [i.time for i in archived_instants(storage, table_config.load(storage))]
    active = [i.time for i in load_timeline(storage, table.config).completed_writes()]
    assert archived + active == instants
    assert len(active) == 2


def test_instants_that_always_leave_are_a_typed_error_and_nothing_is_archived(table, path, monkeypatch):
    write(table, range(8))

    def entry(storage, config, instant):
        raise FileNotFoundError(instant.path)

    monkeypatch.setattr(archival, "archive_entry", entry)
    before = tree(path)
    with pytest.raises(ConcurrentWriterError, match="leave the timeline while they are archived"):
        table.archive(options=BRIEF)
    assert tree(path) == before


@pytest.mark.parametrize("moment", ["before the archive's file", "before instants are removed"])
def test_an_archival_that_lost_its_lock_removes_no_instant(table, path, monkeypatch, moment):
    write(table, range(8))
    before = {n for n in tree(path) if n.startswith(".hoodie/2")}
    step = "archive_entry" if moment == "before the archive's file" else "write_archive"
    real, lost = getattr(archival, step), []

    def loses(*given):
        lost.append(True)
        return real(*given)

    def verify(lock):
        if lost:
            raise LockError("the lock was taken away by another writer")

    monkeypatch.setattr(archival, step, loses)
    monkeypatch.setattr(ServiceContext, "check_lock", verify)
    with pytest.raises(LockError):
        table.archive(options=BRIEF)
    assert {n for n in tree(path) if n.startswith(".hoodie/2")} == before
