"""Transactions: what a commit publishes, whom it refuses to overrun, and what stays when it fails."""

import json
import logging
import re
import threading
import time

import pytest
from commit_steps import LAZY, SCHEMA, data_files, die, group, names, start, timeline, write, write_file

from hudi_format.errors import ClockError, CorruptFileError, LockError, StorageError, UnsupportedError
from hudi_format.model import WriteStat
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage
from hudi_timeline import table_config
from hudi_timeline.concurrency import heartbeat, markers, precedence
from hudi_timeline.concurrency.locks.local import LocalLock
from hudi_timeline.options.transaction_config import LockConfig, TransactionConfig, parse_transaction_options
from hudi_timeline.options.transaction_options import FILE_SYSTEM
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.commit_metadata import read_commit
from hudi_timeline.timeline.instant import next_instant
from hudi_timeline.transaction.transaction import begin_transaction

OVERLAPPING = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.metadata.enable": "false",
}


@pytest.mark.req("TM-02", "TM-08", "WR-09")
def test_a_commit_leaves_three_files_of_its_instant_and_nothing_else(storage):
    tx = write(storage, 1, 2)
    assert tx.committed
    assert names(storage) == ["T.commit", "T.commit.requested", "T.inflight", "hoodie.properties"]
    assert not markers.has_markers(storage, tx.instant)
    assert heartbeat.list_instants(storage) == []
    metadata = read_commit(storage, timeline(storage).find(tx.instant))
    assert metadata.operation == "UPSERT"
    assert metadata.schema_text == SCHEMA
    assert [s.file_id for s in metadata.stats] == [group(1), group(2)]
    assert storage.read(f".hoodie/{tx.instant}.commit.requested") == b""


@pytest.mark.req("TM-15")
def test_a_replacecommit_has_a_request_that_apache_hudi_reads_and_names_what_it_replaced(storage):
    write(storage, 1)
    with start(storage, action="replacecommit", operation="INSERT_OVERWRITE") as tx:
        tx.inflight({})
        tx.commit([write_file(tx, "p", 2)], replaced={"p": [group(1)]}, schema_text=SCHEMA)
    requested = storage.read(f".hoodie/{tx.instant}.replacecommit.requested")
    assert avro_files.parse("HoodieRequestedReplaceMetadata", requested)["operationType"] is None
    content = json.loads(storage.read(f".hoodie/{tx.instant}.replacecommit"))
    assert content["partitionToReplaceFileIds"] == {"p": [group(1)]}
    assert content["operationType"] == "INSERT_OVERWRITE"


def test_the_profile_is_kept_in_the_inflight_file_as_apache_hudi_does(storage):
    with start(storage) as tx:
        planned = (
            WriteStat("", "", "p", num_inserts=7),
            WriteStat(group(1), "", "p", prev_commit="1", num_update_writes=2),
        )
        tx.inflight({"p": planned})
        content = json.loads(storage.read(f".hoodie/{tx.instant}.inflight"))
        first, second = content["partitionToWriteStats"]["p"]
        assert (first["fileId"], first["path"], first["partitionPath"], first["numInserts"]) == (
            "",
            None,
            None,
            7,
        )
        assert (second["fileId"], second["numUpdateWrites"], second["runtimeStats"]) == (group(1), 2, None)
        assert content["extraMetadata"] == {}
        tx.commit([], schema_text=SCHEMA)
    write_less = start(storage)
    write_less.inflight(None)
    assert storage.read(f".hoodie/{write_less.instant}.inflight") == b""
    write_less.abort()


@pytest.mark.req("TM-19")
def test_extra_metadata_is_stored_beside_the_schema(storage):
    tx = write(storage, 1, extra={"_checkpoint": "17", "schema": "not this"})
    extra = read_commit(storage, timeline(storage).find(tx.instant)).extra
    assert extra == {"_checkpoint": "17", "schema": SCHEMA}


@pytest.mark.req("WR-25", "RC-09", "FS-05")
def test_files_of_attempts_that_the_commit_does_not_name_are_deleted(storage):
    with start(storage) as tx:
        tx.inflight({})
        write_file(tx, "p", 1, attempt=0)
        kept = write_file(tx, "p", 1, attempt=1)
        write_file(tx, "q", 2, kind="MERGE")
        markers.create(storage, tx.instant, "q", f"{group(3)}_0-1-0_{tx.instant}.parquet", "CREATE")
        tx.commit([kept], schema_text=SCHEMA)
    assert data_files(storage) == [kept.path.removeprefix("p/")]


@pytest.mark.req("TM-24", "WR-10")
def test_the_snapshot_of_a_transaction_is_the_timeline_without_it(storage):
    first = write(storage, 1)
    with start(storage) as tx:
        assert [i.time for i in tx.snapshot.timeline.instants] == [first.instant]
        assert tx.instant > first.instant
        tx.inflight({})
        tx.commit([], schema_text=SCHEMA)


@pytest.mark.req("RC-01", "TM-10", "CC-27")
def test_a_write_that_raises_is_rolled_back_on_record(storage):
    write(storage, 1)
    before = names(storage)
    tx = start(storage)

    def fail():
        with tx:
            tx.inflight({})
            write_file(tx, "p", 2)
            raise KeyError("the worker died")

    with pytest.raises(KeyError):
        fail()
    assert not tx.committed
    assert len(data_files(storage)) == 1
    assert names(storage) == sorted([*before, "T.rollback", "T.rollback.inflight", "T.rollback.requested"])
    rollback = timeline(storage).of("rollback")[0]
    record = avro_files.parse("HoodieRollbackMetadata", storage.read(rollback.path))
    assert record["commitsRollback"] == [tx.instant]
    assert record["totalFilesDeleted"] == 1
    assert markers.list_instants(storage) == []
    assert heartbeat.list_instants(storage) == []
    assert write(storage, 2).instant > rollback.time


def test_a_block_that_ends_without_a_commit_is_rolled_back(storage):
    with start(storage) as tx:
        tx.inflight({})
        write_file(tx, "p", 1)
    assert data_files(storage) == []
    assert timeline(storage).find(tx.instant) is None
    tx.abort()  # nothing happens
    with pytest.raises(ValueError, match="ended"):
        tx.commit([], schema_text=SCHEMA)


def test_an_empty_commit_is_made_unless_it_is_switched_off(storage):
    tx = write(storage)
    assert timeline(storage).find(tx.instant).completed
    off = write(storage, options=TransactionConfig(allow_empty=False))
    assert not off.committed
    assert timeline(storage).find(off.instant) is None
    assert write(storage, 5, options=TransactionConfig(allow_empty=False)).committed


class _Participant:
    def __init__(self, name, log, *, fails=""):
        self.name, self.log, self.fails = name, log, fails

    def _step(self, step):
        self.log.append(f"{self.name} {step}")
        if step == self.fails:
            raise StorageError(f"{self.name} cannot {step}")

    def prepare(self, transaction, metadata):
        assert transaction.storage.info(f".hoodie/{transaction.instant}.commit") is None
        assert metadata.stats
        self._step("prepare")

    def publish(self):
        self._step("publish")

    def undo(self):
        self._step("undo")


def test_participants_are_prepared_in_order_before_and_published_after_the_commit(storage):
    log = []
    write(storage, 1, participants=[_Participant("a", log), _Participant("b", log)])
    assert log == ["a prepare", "b prepare", "a publish", "b publish"]


def test_participants_are_undone_in_reverse_when_one_cannot_prepare(storage):
    log = []
    participants = [
        _Participant("a", log, fails="undo"),
        _Participant("b", log, fails="prepare"),
        _Participant("c", log),
    ]
    with pytest.raises(StorageError, match="b cannot prepare") as e:
        write(storage, 1, participants=participants)
    assert log == ["a prepare", "b prepare", "b undo", "a undo"]
    assert any("a cannot undo" in note for note in e.value.__notes__)
    assert data_files(storage) == []
    assert timeline(storage).completed_writes() == ()


def test_a_participant_that_fails_after_the_commit_does_not_undo_it(storage):
    log = []
    with pytest.raises(StorageError) as e:
        write(storage, 1, participants=[_Participant("a", log, fails="publish")])
    assert any("completed and visible" in note for note in e.value.__notes__)
    assert len(timeline(storage).completed_writes()) == 1
    assert len(data_files(storage)) == 1
    assert markers.list_instants(storage) == []


class _Moody(LocalStorage):
    """Refuses calls on paths that match, before or after doing the work."""

    pattern = None
    after = False

    def create(self, path, data):
        self._maybe(path, False)
        super().create(path, data)
        self._maybe(path, True)

    def delete(self, path):
        self._maybe(path, False)
        return super().delete(path)

    def delete_dir(self, path):
        self._maybe(path, False)
        super().delete_dir(path)

    def _maybe(self, path, after):
        if self.pattern and re.search(self.pattern, path) and after == self.after:
            raise StorageError("no space left", file=path)


def test_no_space_for_the_commit_rolls_the_write_back(storage):
    moody = _Moody(storage.uri)
    moody.pattern = r"\d\.commit$"
    with pytest.raises(StorageError, match="no space"):
        write(moody, 1)
    assert data_files(storage) == []
    assert timeline(storage).pending_writes() == ()


def test_a_commit_that_the_storage_made_and_reported_as_failed_counts(storage):
    moody = _Moody(storage.uri)
    moody.pattern, moody.after = r"\d\.commit$", True
    tx = write(moody, 1)
    assert tx.committed
    assert len(timeline(storage).completed_writes()) == 1


def test_a_rollback_that_fails_is_a_note_on_the_error_and_left_to_the_next_writer(storage):
    moody = _Moody(storage.uri)

    def fail():
        with start(moody) as tx:
            tx.inflight({})
            write_file(tx, "p", 1)
            moody.pattern = r"parquet$"
            raise KeyError

    with pytest.raises(KeyError) as e:
        fail()
    assert any("next write rolls it back" in note for note in e.value.__notes__)
    assert len(data_files(storage)) == 1
    write(storage, 2)
    assert len(data_files(storage)) == 1
    assert len(timeline(storage).of("rollback")) == 1


def test_leftovers_of_a_completed_write_are_a_warning_and_go_with_the_next(storage):
    moody = _Moody(storage.uri)
    moody.pattern = r"\.temp/"
    tx = write(moody, 1)
    assert tx.committed
    assert "could not be removed" in tx.warnings[0]
    assert markers.list_instants(storage) == [tx.instant]
    die(tx)
    write(storage, 2)
    assert markers.list_instants(storage) == []
    assert heartbeat.list_instants(storage) == []
    assert len(data_files(storage)) == 2


@pytest.mark.req("RC-04")
def test_files_of_tasks_that_outlived_the_rollback_are_deleted(storage):
    write(storage, 1)
    tx = start(storage)
    tx.inflight({})
    tx.abort()
    write_file(tx, "p", 2)
    assert len(data_files(storage)) == 2
    write(storage, 3)
    assert len(data_files(storage)) == 2
    assert markers.list_instants(storage) == []


def test_a_heartbeat_without_an_instant_is_deleted_unless_it_beats(storage):
    alive = heartbeat.start(storage, "29990101000000000")
    heartbeat.start(storage, "20200101000000000").stop()
    storage.publish(
        heartbeat.heartbeat_path("20200101000000000"), alive._content.replace(b'"token": "', b'"token": "x')
    )
    write(storage, 1)
    assert heartbeat.list_instants(storage) == ["29990101000000000"]
    alive.stop()


@pytest.mark.req("CC-13")
def test_the_lock_is_held_only_at_both_ends(storage):
    lock = LocalLock(storage)
    with start(storage) as tx:
        assert lock.try_acquire()
        tx.inflight({})
        lock.release()
        tx.commit([], schema_text=SCHEMA)
    assert lock.try_acquire()
    lock.release()


def test_a_configured_lock_file_is_used_at_both_ends_and_taken_away(storage):
    options = TransactionConfig(lock=LockConfig(provider=FILE_SYSTEM, wait_ms=0))
    assert write(storage, 1, options=options).committed
    assert storage.info(".hoodie/lock") is None
    storage.publish(".hoodie/lock", b"")
    with pytest.raises(LockError, match="lock file"):
        write(storage, 2, options=options)
    storage.delete(".hoodie/lock")
    assert data_files(storage)[0].startswith(group(1))


@pytest.mark.req("CC-28")
def test_writers_in_threads_get_their_own_instants_and_all_commit(storage):
    done, failed = [], []

    def run(number):
        try:
            done.append(write(storage, number, options=LAZY).instant)
        except Exception as e:  # noqa: BLE001 - reported below
            failed.append(e)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
    assert len(set(done)) == 8
    assert len(timeline(storage).completed_writes()) == 8


def test_an_instant_that_another_writer_took_is_passed_over(storage, monkeypatch):
    instants = iter(("20260101000000000", "20260101000000001"))
    monkeypatch.setattr("hudi_timeline.transaction.transaction.new_instant", lambda *a, **k: next(instants))
    original = LocalStorage.create

    def taken(self, path, data):
        if path.endswith("20260101000000000.commit.requested"):
            raise FileExistsError(path)
        original(self, path, data)

    monkeypatch.setattr(LocalStorage, "create", taken)
    tx = start(storage)
    assert tx.instant == "20260101000000001"
    assert heartbeat.list_instants(storage) == [tx.instant]
    tx._heartbeat.stop()


@pytest.mark.req("TM-07")
def test_a_clock_behind_the_table_changes_nothing(storage):
    write(storage, 1)
    storage.create(".hoodie/29990101000000000.clean.requested", b"x")
    before = names(storage)
    with pytest.raises(ClockError, match="29990101000000000"):
        start(storage)
    assert names(storage) == before
    assert heartbeat.list_instants(storage) == []


def test_a_write_whose_clock_is_behind_by_now_is_rolled_back_at_once(storage):
    """Of one that is 20 s behind a write that began and was completed meanwhile; new writes still have to wait."""
    write(storage, 1)
    behind = start(storage, options=LAZY)
    behind.inflight({})
    write_file(behind, "p", 2)
    config = table_config.load(storage)
    with begin_transaction(
        storage, config, operation="UPSERT", options=LAZY, now=lambda: time.time() + 20
    ) as ahead:
        ahead.inflight({})
        ahead.commit([write_file(ahead, "p", 3)], schema_text=SCHEMA)

    def fail():
        with behind:
            raise KeyError("the worker died")

    with pytest.raises(KeyError) as e:
        fail()
    assert not hasattr(e.value, "__notes__")
    now = timeline(storage)
    (rollback,) = now.of("rollback")
    assert (rollback.time, rollback.completed) == (next_instant(ahead.instant), True)
    assert now.pending_writes() == ()
    assert len(data_files(storage)) == 2
    assert heartbeat.list_instants(storage) == []
    for options in (LAZY, None):
        with pytest.raises(ClockError, match=rollback.time):
            start(storage, options=options)


def test_what_others_left_is_not_rolled_back_with_a_clock_that_is_behind(storage):
    """The write that would do it fails with the error of the clock, and has changed nothing."""
    dead = start(storage)
    dead.inflight({})
    die(dead)
    storage.create(".hoodie/29990101000000000.clean.requested", b"x")
    before = names(storage)
    with pytest.raises(ClockError, match="29990101000000000"):
        start(storage)
    assert names(storage) == before


@pytest.mark.req("NEW-37")
def test_an_empty_commit_file_stops_the_next_writer_and_changes_nothing(storage):
    tx = write(storage, 1)
    storage.publish(f".hoodie/{tx.instant}.commit", b"")
    before = names(storage)
    with pytest.raises(CorruptFileError, match="empty"):
        start(storage)
    assert names(storage) == before
    storage.delete(f".hoodie/{tx.instant}.commit")  # the remedy, for a write known to have failed
    write(storage, 2)
    assert [n.startswith(group(2)) for n in data_files(storage)] == [True]


def test_a_commit_of_nonsense_stops_the_next_writer(storage):
    tx = write(storage, 1)
    storage.publish(f".hoodie/{tx.instant}.commit", b"{nonsense")
    before = names(storage)
    with pytest.raises(CorruptFileError, match="JSON"):
        start(storage)
    assert names(storage) == before


def test_the_gate_is_checked_again_under_the_lock(storage):
    config = table_config.load(storage)
    storage.create(".hoodie/20200101000000000.restore.requested", b"x")
    with pytest.raises(UnsupportedError, match="restore"):
        begin_transaction(storage, config, operation="UPSERT")


def test_wrong_actions_are_refused(storage):
    with pytest.raises(ValueError, match="compaction"):
        start(storage, action="compaction")
    with start(storage) as tx:
        tx.inflight({})
        with pytest.raises(ValueError, match="replacecommit"):
            tx.commit([], replaced={"p": [group(1)]}, schema_text=SCHEMA)


def test_an_abort_is_logged(storage, caplog):
    with caplog.at_level(logging.INFO, logger="hudi"), pytest.raises(KeyError), start(storage):
        raise KeyError("because")
    assert "because" in caplog.text


def test_a_table_in_another_kind_of_store_works_the_same():
    remote = open_storage("memory://transactions/t")
    table_config.create(remote, {"hoodie.table.name": "t", "hoodie.table.recordkey.fields": "id"})
    first = write(remote, 1)
    dead = start(remote)
    dead.inflight({})
    write_file(dead, "p", 2)
    die(dead)
    second = write(remote, 3)
    assert [i.time for i in timeline(remote).completed_writes()] == [first.instant, second.instant]
    assert [i.completed for i in timeline(remote).of("rollback")] == [True]
    assert len([e for e in remote.list("p") if e.name.endswith(".parquet")]) == 2
    assert markers.list_instants(remote) == []


@pytest.mark.parametrize("ends", ["commit", "abort"])
@pytest.mark.parametrize("folder", [markers.TEMP_FOLDER, heartbeat.FOLDER])
def test_nobody_waits_for_a_write_that_ended_where_its_leftovers_stay(storage, monkeypatch, ends, folder):
    options = parse_transaction_options({**OVERLAPPING, "hudi.write.priority": "HIGH"})
    tx = begin_transaction(storage, table_config.load(storage), operation="UPSERT", options=options)
    tx.inflight({})
    stats = [write_file(tx, "p", 1)]
    assert len(precedence.claims(storage)) == 1
    delete, delete_dir = LocalStorage.delete, LocalStorage.delete_dir

    def failing(real):
        def remove(self, path, *more, **named):
            if path.startswith(folder):
                raise StorageError("no answer", file=path)
            return real(self, path, *more, **named)

        return remove

    monkeypatch.setattr(LocalStorage, "delete", failing(delete))
    monkeypatch.setattr(LocalStorage, "delete_dir", failing(delete_dir))
    if ends == "commit":
        tx.commit(stats, schema_text=SCHEMA)
        assert "could not be removed" in tx.warnings[-1]
    else:
        with pytest.raises(StorageError):
            tx.abort()
    monkeypatch.undo()
    assert precedence.claims(storage) == []
    assert not heartbeat.liveness(storage, tx.instant).alive


def test_a_write_beside_many_looks_at_no_more_of_them_than_it_has_to(storage, monkeypatch):
    looks = []
    liveness = heartbeat.liveness
    monkeypatch.setattr(heartbeat, "liveness", lambda *a, **named: looks.append(a) or liveness(*a, **named))
    options = parse_transaction_options(OVERLAPPING)
    begun = []
    for _ in range(4):
        looks.clear()
        begun.append(
            begin_transaction(storage, table_config.load(storage), operation="UPSERT", options=options)
        )
    assert (begun[-1].beside_others, len(looks)) == (True, 1)
    for tx in begun:
        tx.abort()
