"""What a conflict says: the rival, who that is, the keys that both wrote, and whether to try again."""

import os
import pickle
import shutil
from pathlib import Path

import pytest
from rival_writers import Between, Input, OnePartition, make, rows, state

from hudi_format.errors import InvalidOptionError, WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.transaction import conflict_report

DURING = "while it writes"
OCC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
STRATEGY = "hoodie.write.lock.conflict.resolution.strategy"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "t"
    make(str(path)).upsert(rows("bx", "cx", "dx", "ex", "fx", "gx", v=1, ts=1))
    return path


@pytest.fixture
def path(made, tmp_path):
    shutil.copytree(made, tmp_path / "t")
    return str(tmp_path / "t")


def lost(path, monkeypatch, rival, ours, *, options=OCC, operation="upsert"):
    between = Between(monkeypatch, path, rival, DURING)
    with pytest.raises(WriteConflictError) as e:
        getattr(HudiTable.open(path), operation)(ours, options=options)
    assert between.refused is None
    assert state(path) == between.state
    return e.value


def upserts(*keys, **options):
    return lambda path: HudiTable.open(path).upsert(rows(*keys, ts=5, v=5), options={**OCC, **options})


@pytest.mark.req("CC-15", "NEW-17")
def test_it_names_the_rival_its_owner_and_the_keys_of_both(path, monkeypatch):
    keys = ("ax", "bx", "cx", "dx", "ex", "fx", "gx")
    error = lost(path, monkeypatch, upserts(*keys), rows(*keys, ts=9))
    rival = HudiTable.open(path).timeline.completed_writes()[-1].time
    assert error.rival == rival
    assert error.owner == f"UPSERT by python in process {os.getpid()} on {os.uname().nodename}"
    assert len(error.file_groups) == 1
    assert error.file_groups[0].startswith("x/")
    assert len(error.keys) == 5
    assert set(error.keys) < {"a", "b", "c", "d", "e", "f", "g"}
    assert error.retry_safe
    text = str(error)
    assert "and 2 more" in text
    assert error.owner in text
    assert "a retry is safe" in text
    assert "\n" not in text
    assert len(text) < 80 * 24
    again = pickle.loads(pickle.dumps(error))
    assert (again.rival, again.owner, again.keys, again.file_groups) == (
        error.rival, error.owner, error.keys, error.file_groups
    )  # fmt: skip


def begins_late(monkeypatch, path, rival):
    Between(monkeypatch, path, rival, "before the instant")
    return HudiTable.open(path).upsert, rows("ax", ts=9), OCC


def cleaned(monkeypatch, path, rival):
    def act(path):
        rival(path)
        older = sorted((Path(path) / "x").glob("*.parquet"), key=lambda f: f.stem.rpartition("_")[2])[:-1]
        for file in older:
            file.unlink()

    Between(monkeypatch, path, act, DURING)
    return HudiTable.open(path).upsert, Input(rows("ax", ts=9)), OCC


def early(monkeypatch, path, rival):
    Between(monkeypatch, path, rival, DURING)
    detection = "hoodie.write.concurrency.early.conflict."
    return HudiTable.open(path).upsert, rows("ax", ts=9), {
        **OCC, detection + "detection.enable": "true", detection + "check.commit.conflict": "true",
    }  # fmt: skip


@pytest.mark.req("NEW-17")
@pytest.mark.parametrize("found", [begins_late, cleaned, early])
def test_a_conflict_that_is_found_before_the_commit_names_the_owner_too(path, monkeypatch, found):
    def rival(path):
        HudiTable.open(path).upsert(rows("ax", "bx", ts=5, note="new"), options=OCC)

    write, ours, options = found(monkeypatch, path, rival)
    with pytest.raises(WriteConflictError) as e:
        write(ours, options=options)
    assert e.value.rival == HudiTable.open(path).timeline.completed_writes()[-1].time
    assert e.value.owner == f"UPSERT by python in process {os.getpid()} on {os.uname().nodename}"
    assert str(e.value).count(e.value.owner) == 1
    assert e.value.retry_safe


def test_other_keys_of_one_file_group_are_said_to_be_others(path, monkeypatch):
    error = lost(path, monkeypatch, upserts("ax"), rows("bx", ts=9))
    assert error.keys == ()
    assert "no key was written by both" in str(error)


def test_a_rival_without_a_note_and_one_that_deletes_leave_it_open(path, monkeypatch):
    def deletes(table):
        HudiTable.open(table).delete(rows("ax"), options={"hoodie.cleaner.policy.failed.writes": "LAZY"})

    error = lost(path, monkeypatch, deletes, rows("ax", ts=9))
    assert error.owner == "DELETE by a writer that left no name"
    assert error.keys == ()
    assert "no key was written" not in str(error)
    assert "a retry is safe" in str(error)


def test_keys_of_log_files_are_known_too(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = HudiTable.create(
        path, rows("ax"), name="t", table_type="MERGE_ON_READ", record_keys="id", partition_fields="p",
        ordering_fields="ts",
    )  # fmt: skip
    table.insert(rows("ax", "bx", "cx"))
    error = lost(path, monkeypatch, upserts("ax", "bx"), rows("bx", "cx", ts=9))
    assert error.keys == ("b",)


def test_a_report_that_cannot_be_made_hides_no_conflict(path, monkeypatch):
    def unreadable(*_):
        raise OSError("the store does not answer")

    monkeypatch.setattr(conflict_report, "written_keys", unreadable)
    error = lost(path, monkeypatch, upserts("ax"), rows("ax", ts=9))
    assert "does not answer" in error.__notes__[0]
    assert error.rival


@pytest.mark.req("CC-15")
def test_a_strategy_of_the_users_decides(path, monkeypatch):
    monkeypatch.setattr(OnePartition, "seen", [])
    mine = {**OCC, STRATEGY: "rival_writers:OnePartition"}
    lost(path, monkeypatch, lambda p: HudiTable.open(p).bulk_insert(rows("rx"), options=OCC), rows("sx"),
         options=mine, operation="bulk_insert")  # fmt: skip
    assert OnePartition.seen == [("BULK_INSERT", "BULK_INSERT", True)]
    before = state(path)
    with pytest.raises(InvalidOptionError):
        HudiTable.open(path).upsert(rows("sx"), options={**OCC, STRATEGY: "nowhere:Strict"})
    assert state(path) == before
