"""Transactions beside others: who is refused, rolled back or overruled, and what conflicts."""

import os

import pytest
from commit_steps import LAZY, SCHEMA, data_files, die, group, names, start, timeline, write, write_file
from rival_writers import make, rows

from hudi_format.errors import (
    ConcurrentWriterError,
    MissingFileError,
    WriteConflictError,
)
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import COMMIT, INFLIGHT, Instant
from hudi_timeline.timeline.instant_generator import wait_for_next_tick
from hudi_timeline.transaction import transaction
from hudi_timeline.transaction.conflict_resolution import refuse_cleaned


@pytest.mark.req("RC-02", "CC-25")
def test_a_second_writer_is_refused_while_the_first_one_lives(storage):
    with start(storage) as tx:
        tx.inflight({})
        write_file(tx, "p", 1)
        before = names(storage)
        with pytest.raises(ConcurrentWriterError) as e:
            start(storage)
        text = str(e.value)
        assert f"since {tx.instant}" in text
        assert "last heartbeat" in text
        assert f"process {os.getpid()}" in text
        assert e.value.details["heartbeat_age_ms"] >= 0
        assert e.value.remedy
        assert names(storage) == before
        assert len(data_files(storage)) == 1
        tx.commit([], schema_text=SCHEMA)


@pytest.mark.req("RC-02")
@pytest.mark.parametrize("action", ["commit", "replacecommit"])
@pytest.mark.parametrize("got_to", ["requested", "inflight", "files"])
def test_the_next_writer_rolls_back_a_dead_one(storage, got_to, action):
    write(storage, 1)
    dead = start(storage, action=action)
    if got_to != "requested":
        dead.inflight({})
    if got_to == "files":
        write_file(dead, "p", 2)
    die(dead)
    write(storage, 3)
    assert len(data_files(storage)) == 2
    now = timeline(storage)
    assert now.find(dead.instant) is None
    assert now.pending_writes() == ()
    assert [i.completed for i in now.of("rollback")] == [True]
    assert markers.list_instants(storage) == []
    assert heartbeat.list_instants(storage) == []


def test_several_dead_writers_are_rolled_back_newest_first(storage):
    dead = [start(storage, options=LAZY) for _ in range(3)]
    for tx in dead:
        tx.inflight({})
        write_file(tx, "p", 1)
        die(tx)
    write(storage, 9)
    rollbacks = timeline(storage).of("rollback")
    targets = [
        avro_files.parse("HoodieRollbackMetadata", storage.read(r.path))["commitsRollback"][0]
        for r in rollbacks
    ]
    assert targets == [tx.instant for tx in reversed(dead)]
    assert len(data_files(storage)) == 1


@pytest.mark.req("RC-03")
@pytest.mark.parametrize("policy", ["LAZY", "NEVER"])
def test_other_policies_leave_pending_writes_alone(storage, policy):
    dead = start(storage)
    dead.inflight({})
    write_file(dead, "p", 1)
    die(dead)
    write(storage, 2, options=TransactionConfig(failed_writes=policy))
    assert timeline(storage).find(dead.instant) is not None
    assert len(data_files(storage)) == 2


@pytest.mark.req("CC-03", "CC-04", "CC-40")
def test_the_first_of_two_writers_of_one_file_group_wins(storage):
    base = write(storage, 1, 2, 3)
    slow = start(storage, options=LAZY)
    slow.inflight({})
    stats = [write_file(slow, "p", n, prev=base.instant) for n in (1, 2)]
    fast = write(storage, 2, 3, prev=base.instant, options=LAZY)
    with pytest.raises(WriteConflictError) as e, slow:
        slow.commit(stats, schema_text=SCHEMA)
    assert fast.instant in str(e.value)
    assert e.value.details["file_groups"] == [f"p/{group(2)}"]
    assert e.value.details["rival"] == fast.instant
    assert timeline(storage).find(slow.instant) is None
    assert len(data_files(storage)) == 5


@pytest.mark.req("WR-24")
def test_a_bulk_change_loses_to_each_small_update_until_it_is_alone(storage):
    """The limit of optimistic concurrency that the README names: nothing is lost, and the loser is told what to do."""
    before = write(storage, 1, 2, 3)
    for _ in range(3):
        bulk = start(storage, options=LAZY)
        bulk.inflight({})
        stats = [write_file(bulk, "p", n, prev=before.instant) for n in (1, 2, 3)]
        small = write(storage, 2, prev=before.instant, options=LAZY)
        with pytest.raises(WriteConflictError) as e, bulk:
            bulk.commit(stats, schema_text=SCHEMA)
        assert "run the write again" in e.value.remedy
        assert "lock" in e.value.remedy
        before = small
    write(storage, 1, 2, 3, prev=before.instant, options=LAZY)
    assert len(timeline(storage).completed_writes()) == 5


@pytest.mark.req("CC-03")
def test_writers_of_other_file_groups_do_not_conflict(storage):
    base = write(storage, 1, 2)
    slow = start(storage, options=LAZY)
    slow.inflight({})
    stats = [write_file(slow, "p", 1, prev=base.instant), write_file(slow, "q", 2)]
    write(storage, 2, 3, prev=base.instant, options=LAZY)
    slow.commit(stats, schema_text=SCHEMA)
    assert len(timeline(storage).completed_writes()) == 3


@pytest.mark.req("CC-04")
def test_a_writer_that_began_earlier_and_ended_meanwhile_is_a_rival_too(storage):
    base = write(storage, 1)
    older = start(storage, options=LAZY)
    older.inflight({})
    newer = start(storage, options=LAZY)
    newer.inflight({})
    assert older.instant < newer.instant
    older.commit([write_file(older, "p", 1, prev=base.instant)], schema_text=SCHEMA)
    with pytest.raises(WriteConflictError), newer:
        newer.commit([write_file(newer, "p", 1, prev=base.instant)], schema_text=SCHEMA)


def test_a_replaced_file_group_is_a_conflict(storage):
    base = write(storage, 1)
    slow = start(storage, options=LAZY)
    slow.inflight({})
    stats = [write_file(slow, "p", 1, prev=base.instant)]
    with start(storage, action="replacecommit", options=LAZY) as tx:
        tx.inflight({})
        tx.commit([], replaced={"p": [group(1)]}, schema_text=SCHEMA)
    with pytest.raises(WriteConflictError), slow:
        slow.commit(stats, schema_text=SCHEMA)


def test_a_clustering_planned_meanwhile_over_the_same_groups_is_a_conflict(storage):
    base = write(storage, 1)
    slow = start(storage)
    slow.inflight({})
    stats = [write_file(slow, "p", 1, prev=base.instant)]
    plan = {"inputGroups": [{"slices": [{"fileId": group(1), "partitionPath": "p"}]}]}
    request = avro_files.render(
        "HoodieRequestedReplaceMetadata", {"operationType": "CLUSTER", "clusteringPlan": plan}
    )
    storage.create(".hoodie/29990101000000000.replacecommit.requested", request)
    with pytest.raises(WriteConflictError, match="clustering 2999"):
        slow.commit(stats, schema_text=SCHEMA)
    storage.delete(".hoodie/29990101000000000.replacecommit.requested")
    slow.abort()


def test_a_restore_meanwhile_ends_the_write(storage):
    tx = start(storage)
    tx.inflight({})
    storage.create(".hoodie/29990101000000000.restore", b"x")
    with pytest.raises(ConcurrentWriterError, match="restored"):
        tx.commit([], schema_text=SCHEMA)
    storage.delete(".hoodie/29990101000000000.restore")
    tx.abort()


@pytest.mark.req("CC-26")
@pytest.mark.parametrize("lost", ["inflight", "requested", "heartbeat", "all"])
def test_a_write_that_was_rolled_back_by_another_is_not_committed(storage, lost):
    tx = start(storage)
    tx.inflight({})
    stats = [write_file(tx, "p", 1)]
    if lost in ("inflight", "all"):
        storage.delete(f".hoodie/{tx.instant}.inflight")
    if lost in ("requested", "all"):
        storage.delete(f".hoodie/{tx.instant}.commit.requested")
    if lost in ("heartbeat", "all"):
        heartbeat.delete(storage, tx.instant)
    with pytest.raises(ConcurrentWriterError) as e, tx:
        tx.commit(stats, schema_text=SCHEMA)
    assert e.value.instant == tx.instant
    assert data_files(storage) == []
    assert timeline(storage).find(tx.instant) is None
    assert markers.list_instants(storage) == []


def test_inflight_needs_the_requested_file_and_happens_once(storage):
    tx = start(storage)
    tx.inflight({})
    with pytest.raises(ConcurrentWriterError, match="already"):
        tx.inflight({})
    tx.abort()
    other = start(storage)
    storage.delete(f".hoodie/{other.instant}.commit.requested")
    with pytest.raises(ConcurrentWriterError, match="requested"):
        other.inflight({})
    other.abort()


@pytest.mark.req("IN-05", "IN-08")
def test_writes_that_end_right_after_each_other_have_times_of_completion_of_their_own(storage, monkeypatch):
    waited = []

    def wait(written_ms):
        waited.append(written_ms)
        wait_for_next_tick(written_ms)

    monkeypatch.setattr(transaction, "wait_for_next_tick", wait)
    begun = [start(storage, options=LAZY) for _ in range(9)]
    for tx in begun:
        tx.inflight({})
    for number, tx in enumerate(begun):
        tx.commit([write_file(tx, "p", number)], schema_text=SCHEMA)
    times = [storage.info(f".hoodie/{tx.instant}.commit").mtime_ms for tx in begun]
    assert times == sorted(set(times))
    assert waited == [0, *times[:-1]]


KEEP = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
}


@pytest.mark.parametrize("archived", [True, False])
@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
def test_a_file_that_others_cleaned_is_a_conflict_also_where_they_are_archived(tmp_path, operation, archived):
    """A writer that counted as dead, and was rolled back, holds back no archival."""
    table = make(str(tmp_path / "t"))
    begun = open_snapshot(table.storage)
    old = next(n for n in os.listdir(tmp_path / "t" / "x") if n.endswith(".parquet"))
    getattr(table, operation)(rows("ax", ts=9))
    for turn in range(6 if archived else 0):
        table.upsert(rows("by", ts=9 + turn), options=KEEP)
    versions = {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
    }
    table.clean(options=versions)
    assert old not in os.listdir(tmp_path / "t" / "x")
    missing = MissingFileError("the base file is missing", table="t", file=f"x/{old}")
    with pytest.raises(WriteConflictError, match="was cleaned since") as e:
        refuse_cleaned(missing, begun, lambda: open_snapshot(table.storage))
    assert bool(e.value.rival) is not archived
    assert e.value.retry_safe is not False


@pytest.mark.parametrize("others", [0, 2])
def test_a_file_that_nobody_cleaned_is_missing(tmp_path, others):
    table = make(str(tmp_path / "t"))
    begun = open_snapshot(table.storage)
    for turn in range(others):
        table.upsert(rows("by", ts=9 + turn))
    old = next(n for n in os.listdir(tmp_path / "t" / "x") if n.endswith(".parquet"))
    os.remove(tmp_path / "t" / "x" / old)
    missing = MissingFileError("the base file is missing", table="t", file=f"x/{old}")
    assert refuse_cleaned(missing, begun, lambda: open_snapshot(table.storage)) is None


def test_a_file_of_a_commit_that_was_taken_back_is_a_conflict(tmp_path):
    """Who publishes after its lock was lost takes its commit back; others may have begun with it."""
    table = make(str(tmp_path / "t"))
    table.upsert(rows("ax", ts=9))
    begun = open_snapshot(table.storage)
    newest = begun.timeline.completed_writes()[-1].time
    gone = next(n for n in os.listdir(tmp_path / "t" / "x") if n.endswith(f"{newest}.parquet"))
    table.rollback(newest)
    missing = MissingFileError("the base file is missing", table="t", file=f"x/{gone}")
    with pytest.raises(WriteConflictError, match="was rolled back") as e:
        refuse_cleaned(missing, begun, lambda: open_snapshot(table.storage))
    assert e.value.retry_safe is not False


def test_a_file_that_an_open_write_rewrote_which_is_archived_is_a_conflict(tmp_path):
    """Its instant is older than the newest commit of the time, which the timeline still has."""
    table = make(str(tmp_path / "t"))
    early = open_snapshot(table.storage)
    old = next(n for n in os.listdir(tmp_path / "t" / "x") if n.endswith(".parquet"))
    open_then = "20200101000000000"
    files = (*early.timeline.files, Instant(open_then, COMMIT, INFLIGHT))
    begun = early.with_timeline(Timeline.of_files(files))
    table.upsert(rows("by", ts=9))
    os.remove(tmp_path / "t" / "x" / old)
    missing = MissingFileError("the base file is missing", table="t", file=f"x/{old}")
    with pytest.raises(WriteConflictError, match="has left the timeline"):
        refuse_cleaned(missing, begun, lambda: open_snapshot(table.storage))
