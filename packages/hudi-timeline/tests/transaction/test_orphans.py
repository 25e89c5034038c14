"""Temporary files of killed writers go with the next write; those of writers at work stay."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, HudiError, LockError, ValidationError
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.action_metadata import (
    InstantName,
    RollbackMetadata,
    RolledBackPartition,
    render_action,
)
from hudi_timeline.timeline.instant import COMPLETED, INFLIGHT, REQUESTED
from hudi_timeline.transaction import orphans
from hudi_timeline.transaction.orphans import remove_temporaries
from hudi_timeline.transaction.transaction import begin_transaction
from hudi_timeline.writing import operation
from hudi_timeline.writing.writes import write

HEX = "0123456789abcdef" * 2


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = HudiTable.create(
        str(tmp_path / "t"), pa.schema([("id", pa.string()), ("v", pa.int64())]), name="t", record_keys=["id"]
    )
    made.insert(pa.table({"id": ["a"], "v": [1]}))
    return made


@pytest.mark.req("RC-01")
def test_the_next_write_removes_what_killed_writers_left(table: HudiTable, tmp_path: Path) -> None:
    meta = tmp_path / "t" / ".hoodie"
    (meta / ".heartbeat").mkdir(exist_ok=True)
    left = [
        meta / ".heartbeat" / f".20250101000000000.{HEX}.tmp",
        meta / f".20250101000000000.commit.requested.{HEX}.tmp",
        meta / f".20250101000000000.inflight.{HEX}.tmp",
    ]
    others = [
        meta / f".hoodie.properties.{HEX}.tmp",
        meta / f".2025.commit.{HEX}.tmp",
        meta / ".20250101000000000.commit.requested.tmp",
    ]
    for path in (*left, *others):
        path.write_bytes(b"half")
    table.upsert(pa.table({"id": ["b"], "v": [2]}))
    assert [p for p in left if p.exists()] == []
    assert [p for p in others if not p.exists()] == []
    assert table.read().to_arrow().num_rows == 2


@pytest.mark.req("RC-01")
def test_half_written_properties_of_a_killed_writer_go_after_a_day(table: HudiTable, tmp_path: Path) -> None:
    meta = tmp_path / "t" / ".hoodie"
    old, young = (meta / f".hoodie.properties.{digit * 32}.tmp" for digit in "ab")
    for path, hours in ((old, 25), (young, 1)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - hours * 3600,) * 2)
    table.upsert(pa.table({"id": ["b"], "v": [2]}))
    assert (old.exists(), young.exists()) == (False, True)
    assert table.read().to_arrow().num_rows == 2


@pytest.mark.req("RC-01")
def test_a_writer_at_work_keeps_its_files(table: HudiTable, tmp_path: Path) -> None:
    instant = "20250101000000000"
    beat = heartbeat.start(table.storage, instant)
    try:
        mine = tmp_path / "t" / ".hoodie" / f".{instant}.inflight.{HEX}.tmp"
        mine.write_bytes(b"half")
        remove_temporaries(table.storage)
        assert mine.exists()
    finally:
        beat.stop()
    remove_temporaries(table.storage)
    assert not mine.exists()


def test_staged_rows_of_a_killed_write_go_a_day_after_the_last_of_them(
    table: HudiTable, tmp_path: Path
) -> None:
    root = tmp_path / "t"
    names = {n: f".hoodie_staging_{n}{HEX[1:]}" for n in "012"}
    for n, age_h in (("0", 25), ("1", 23), ("2", 25)):
        folder = root / names[n]
        folder.mkdir()
        (folder / "0-1.arrow").write_bytes(b"rows")
        then = time.time() - age_h * 3600
        os.utime(folder / "0-1.arrow", (then, then))
        os.utime(folder, (then, then))
    (root / names["2"] / "1-2.arrow").write_bytes(b"rows of a task that has just ended")
    (root / ".hoodie_staging_mine").mkdir()  # not a name of ours
    os.utime(root / ".hoodie_staging_mine", (0, 0))
    table.upsert(pa.table({"id": ["b"], "v": [2]}))
    assert not (root / names["0"]).exists()
    assert (root / names["1"]).exists()
    assert (root / names["2"]).exists()
    assert (root / ".hoodie_staging_mine").exists()
    assert table.read().to_arrow().num_rows == 2


@pytest.mark.parametrize("archived", [False, True], ids=["rollback on the timeline", "rollback archived"])
def test_files_of_a_writer_that_outlived_its_rollback_go_also_when_the_timeline_begins_after_it(
    table: HudiTable, tmp_path: Path, archived: bool
) -> None:
    occ = parse_transaction_options({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})
    short = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }

    def rolled_back() -> str:
        write = begin_transaction(table.storage, table.config, operation="UPSERT", options=occ)
        write.abort("it is taken for dead")
        return write.instant

    dead = rolled_back()
    (rollback,) = HudiTable.open(table.uri).timeline.of("rollback")
    for n in range(5):
        table.upsert(pa.table({"id": ["a"], "v": [n]}), options=short)
        if archived:
            rolled_back()
    timeline = HudiTable.open(table.uri).timeline
    assert timeline.first_active > dead
    assert (rollback.time not in [i.time for i in timeline.of("rollback")]) is archived
    base = next((tmp_path / "t").glob("*.parquet"))
    late = f"{uuid.uuid4()}-0_0-0-0_{dead}.parquet"
    markers.create(table.storage, dead, "", late, markers.CREATE)
    (tmp_path / "t" / late).write_bytes(base.read_bytes())
    assert HudiTable.open(table.uri).read().to_arrow().num_rows == 2
    HudiTable.open(table.uri).upsert(pa.table({"id": ["a"], "v": [9]}))
    assert not (tmp_path / "t" / late).exists()
    assert HudiTable.open(table.uri).read().to_arrow().num_rows == 1


def test_files_of_a_compaction_that_was_run_again_stay_when_both_are_archived(tmp_path: Path) -> None:
    table = HudiTable.create(
        str(tmp_path / "m"), pa.schema([("id", pa.string()), ("v", pa.int64())]), name="m", record_keys=["id"],
        ordering_fields=["v"], table_type="MERGE_ON_READ",
    )  # fmt: skip
    apart = {"hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0"}
    table.upsert(pa.table({"id": ["a", "b"], "v": [1, 1]}), options=apart)
    table.upsert(pa.table({"id": ["a"], "v": [2]}), options=apart)
    planned = table.compact(mode="schedule").scheduled

    def dies(tasks: object) -> list[object]:
        raise RuntimeError("it dies")

    with pytest.raises(RuntimeError):
        HudiTable.open(table.uri).compact(mode="execute", instant=planned, run=dies)
    done = HudiTable.open(table.uri).compact(mode="execute", instant=planned)
    (stat,) = done.write_stats[planned]
    for n in range(6):
        HudiTable.open(table.uri).insert(pa.table({"id": [f"c{n}"], "v": [n]}), options=apart)
    HudiTable.open(table.uri).archive(
        options={
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
            "hoodie.cleaner.commits.retained": "1",
        }
    )
    assert planned < HudiTable.open(table.uri).timeline.first_active
    rows = HudiTable.open(table.uri).read().to_arrow().sort_by("id")
    # Its executor, of another program, died between its completed file and the removal of its markers.
    markers.create(table.storage, planned, "", stat.path, markers.CREATE)
    HudiTable.open(table.uri).upsert(pa.table({"id": ["b"], "v": [7]}), options=apart)
    assert (tmp_path / "m" / stat.path).exists()
    after = HudiTable.open(table.uri).read().to_arrow().sort_by("id")
    assert after["id"].to_pylist() == rows["id"].to_pylist()


def test_the_archive_is_read_once_for_all_old_markers(
    table: HudiTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        (tmp_path / "t" / ".hoodie" / ".temp" / f"2020010100000000{n}").mkdir(parents=True)
    asked: list[object] = []

    def counted(*given: object) -> Iterator[object]:
        asked.append(given)
        return iter(())

    monkeypatch.setattr(orphans, "archived_actions", counted)
    orphans.remove_marks(table.storage, table.timeline, markers.list_instants(table.storage))
    assert len(asked) == 1
    assert markers.list_instants(table.storage) == []
    orphans.remove_marks(table.storage, table.timeline, [])
    assert len(asked) == 1


def test_half_written_claims_go_after_a_day_also_where_failed_writes_are_cleaned_up_late(
    table: HudiTable, tmp_path: Path
) -> None:
    folder = tmp_path / "t" / ".hoodie" / ".precedence"
    folder.mkdir()
    old, young = (folder / f".3-2025010100000-{HEX}.{digit * 32}.tmp" for digit in "ab")
    for path, hours in ((old, 25), (young, 1)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - hours * 3600,) * 2)
    occ = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
    }
    table.clean(options=occ)
    assert (old.exists(), young.exists()) == (False, True)


def test_a_file_that_came_after_its_rollback_and_has_no_marker_goes_before_it_would_count(
    table: HudiTable, tmp_path: Path
) -> None:
    short = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.archive.automatic": "false",
    }
    table.upsert(pa.table({"id": ["a"], "v": [0]}), options=short)
    occ = parse_transaction_options(
        {
            "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
        }
    )
    stopped = begin_transaction(table.storage, table.config, operation="UPSERT", options=occ)
    late = f"{uuid.uuid4()}-0_0-0-0_{stopped.instant}.parquet"
    stopped.inflight(None)
    markers.create(table.storage, stopped.instant, "", late, markers.CREATE)
    stopped.abort("it is taken for dead")
    assert not markers.list_instants(table.storage)
    for n in range(5):
        table.upsert(pa.table({"id": ["a"], "v": [n]}), options=short)
    base = next((tmp_path / "t").glob("*.parquet"))
    (tmp_path / "t" / late).write_bytes(base.read_bytes())
    assert table.read().to_arrow().num_rows == 1
    assert table.archive(options=short).plan.instants
    timeline = HudiTable.open(table.uri).timeline
    assert timeline.first_active > stopped.instant
    assert not (tmp_path / "t" / late).exists()
    assert HudiTable.open(table.uri).read().to_arrow().to_pylist() == [{"id": "a", "v": 4}]


def test_files_of_a_clustering_that_was_run_again_stay_when_its_archive_is_gone() -> None:
    """Apache Hudi runs a clustering again at its instant after a rollback of it."""
    made = TableBuilder()
    made.commit("first", made.base("first", {"a": 1}, group=1))
    clustering, rollback = made.at("clustering"), made.at("rollback")
    done = RollbackMetadata(
        rollback,
        commits=(clustering,),
        partitions={"p0": RolledBackPartition("p0", ("x",))},
        instants=(InstantName(clustering, "replacecommit"),),
    )
    made.pending("rollback", "rollback", request=b"")
    made.storage.create(made.path_of(rollback, "rollback", "COMPLETED"), render_action(done))
    made.commit(
        "clustering",
        made.base("clustering", {"a": 1}, group=2),
        replaced={"p0": [made.group(1)]},
        operation="CLUSTER",
    )
    for entry in made.storage.list("p0"):
        if made.group(1) in entry.name:
            made.storage.delete(f"p0/{entry.name}")
    made.commit("last", made.base("last", {"z": 1}, group=7, partition="p1"))
    for name in ("first", "clustering"):
        for state in (REQUESTED, INFLIGHT, COMPLETED):
            action = "replacecommit" if name == "clustering" else "commit"
            made.storage.delete(made.path_of(made.at(name), action, state))
    assert orphans.remove_late_files(load_snapshot(made.storage)) == []
    assert sorted(made.table.read(["id"]).to_arrow()["id"].to_pylist()) == ["a", "z"]


def test_a_rollback_that_says_nothing_does_not_stop_archival() -> None:
    made = TableBuilder()
    made.commit("first", made.base("first", {"a": 1}))
    made.pending("rollback", "rollback", request=b"")
    made.storage.create(made.path_of(made.at("rollback"), "rollback", "COMPLETED"), b"damaged")
    assert orphans.remove_late_files(load_snapshot(made.storage)) == []


@pytest.mark.req("CC-40")
@pytest.mark.parametrize("mode", ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"])
def test_a_first_write_that_fails_takes_the_table_from_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Who begins while the table that it made is removed waits for the lock, and makes a table of its own then."""
    path = str(tmp_path / "t")
    rows = pa.table({"id": ["a"], "v": [1]})
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.write.concurrency.mode": mode,
        "hoodie.write.lock.wait_time_ms": "0",
    }
    told: list[object] = []

    def refuse(change: object) -> None:
        raise ValueError("no")

    def another() -> None:
        try:
            told.append(write(open_storage(path), "upsert", rows, options, opened=False))
        except HudiError as e:
            told.append(e)

    def beside(storage: Storage) -> bool:
        rival = threading.Thread(target=another)
        rival.start()
        rival.join()
        return removed(storage)

    removed = orphans.remove_bare_partitions
    monkeypatch.setattr(orphans, "remove_bare_partitions", beside)
    with pytest.raises(ValidationError):
        write(open_storage(path), "upsert", rows, options, [refuse], opened=False)
    assert [type(t) for t in told] == [LockError]
    another()
    assert HudiTable.open(path).read(["id", "v"]).to_arrow().to_pylist() == [{"id": "a", "v": 1}]


@pytest.mark.req("CC-40")
@pytest.mark.parametrize("planned", ["for a new table", "for the table that goes"])
def test_a_writer_whose_table_a_failed_first_write_removes_makes_its_own_or_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned: str
) -> None:
    """The other first write has made the table, and takes it away while this one waits for the lock."""
    path = str(tmp_path / "t")
    rows = pa.table({"id": ["a"], "v": [1]})
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    properties = {"hoodie.table.name": "t", "hoodie.table.recordkey.fields": "id"}
    made, begin, taken = operation._made, operation.begin_transaction, []

    def make(run: Any, storage: Storage) -> Any:
        if not taken and planned == "for a new table":
            table_config.create(open_storage(path), properties)
        return made(run, storage)

    def begin_late(storage: Storage, *args: Any, **more: Any) -> Any:
        if not taken:
            taken.append(True)
            orphans.remove_unborn(storage, more["options"], table_name="t")
            assert storage.list("") == []
        return begin(storage, *args, **more)

    monkeypatch.setattr(operation, "_made", make)
    monkeypatch.setattr(operation, "begin_transaction", begin_late)
    if planned == "for the table that goes":
        table_config.create(open_storage(path), properties)
        with pytest.raises(ConcurrentWriterError, match="removed since this write was planned") as caught:
            write(open_storage(path), "upsert", rows, options, opened=False)
        assert "run the write again" in caught.value.remedy
        assert open_storage(path).list("") == []
    write(open_storage(path), "upsert", rows, options, opened=False)
    assert taken
    assert HudiTable.open(path).read(["id", "v"]).to_arrow().to_pylist() == [{"id": "a", "v": 1}]
    assert HudiTable.open(path).verify() == []


def test_a_first_write_that_cannot_begin_leaves_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(str(tmp_path / "t"))
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}

    def fail(*args: Any, **more: Any) -> Any:
        raise LockError("no lock")

    monkeypatch.setattr(operation, "begin_transaction", fail)
    with pytest.raises(LockError):
        write(storage, "upsert", pa.table({"id": ["a"], "v": [1]}), options, opened=False)
    assert storage.list("") == []
