"""Who holds a table's lock, whether that one is alive, and the end of a lock that is left over."""

import json
import os
import subprocess
import sys

import pytest

from hudi_format.errors import LockError
from hudi_timeline import HudiTable, table_config
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.options.transaction_options import FILE_SYSTEM, IN_PROCESS
from hudi_timeline.transaction.transaction import LOCK_NOTE, begin_transaction

PROVIDER = "hoodie.write.lock.provider"
IN_FILE = {PROVIDER: FILE_SYSTEM}
HOLD = """
import json, sys
from hudi_format.storage.open import open_storage
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.options.transaction_config import parse_transaction_options

lock = lock_of(open_storage(sys.argv[1]), parse_transaction_options(json.loads(sys.argv[2])))
with lock.held():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(storage):
    """Starts a process that holds the table's lock until it is told to end."""
    started = []

    def start(options):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, storage.uri, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def write(storage, options):
    config = parse_transaction_options(options)
    with begin_transaction(storage, table_config.load(storage), operation="UPSERT", options=config) as write:
        write.inflight(None)
        write.commit([], schema_text="")
        return write.instant


@pytest.mark.req("NEW-35")
@pytest.mark.parametrize("options", [{}, IN_FILE], ids=["flock", "file"])
def test_a_free_lock_is_nobodys(storage, options):
    table = HudiTable.open(storage.uri)
    report = table.lock_report(options=options)
    assert (report.holding, report.alive, report.instants) == (None, None, ())
    assert table.break_lock(options=options).holding is None
    write(storage, options)


@pytest.mark.req("NEW-35")
def test_the_kernels_lock_names_its_process_and_is_not_broken(storage, holder):
    process = holder({})
    table = HudiTable.open(storage.uri)
    report = table.lock_report()
    assert report.holding.process.pid == process.pid
    assert (report.alive, report.host) == (True, heartbeat.this_process().host)
    for force in (False, True):
        with pytest.raises(LockError, match=rf"{process.pid}"):
            table.break_lock(force=force)
    process.kill()
    process.wait()
    assert table.lock_report().holding is None


@pytest.mark.req("NEW-35")
def test_the_lock_file_of_a_killed_process_is_broken_and_that_of_a_live_one_is_not(storage, holder):
    process = holder(IN_FILE)
    table = HudiTable.open(storage.uri)
    report = table.lock_report(options=IN_FILE)
    assert (report.alive, report.holding.process.pid) == (True, process.pid)
    assert report.age_ms is not None
    with pytest.raises(LockError, match="runs on this machine") as e:
        table.break_lock(options=IN_FILE)
    assert "--force" in e.value.remedy
    process.kill()
    process.wait()
    dead = table.break_lock(options=IN_FILE)
    assert dead.alive is False
    assert "has ended" in dead.why
    write(storage, IN_FILE)


@pytest.mark.req("NEW-35")
def test_a_holder_whose_lock_is_taken_away_by_force_does_not_publish(storage):
    config = parse_transaction_options(IN_FILE)
    transaction = begin_transaction(storage, table_config.load(storage), operation="UPSERT", options=config)
    check = transaction._heartbeat.check
    table = HudiTable.open(storage.uri)
    seen = []

    def broken_meanwhile():
        check()
        seen.append(table.break_lock(force=True, options=IN_FILE))

    transaction._heartbeat.check = broken_meanwhile
    transaction.inflight(None)
    with transaction, pytest.raises(LockError, match="taken away"):
        transaction.commit([], schema_text="")
    assert seen[0].instants == (transaction.instant,)
    assert seen[0].why.startswith(f"its write {transaction.instant} is alive")
    assert HudiTable.open(storage.uri).timeline.completed_writes() == ()
    write(storage, IN_FILE)


@pytest.mark.req("NEW-35")
def test_a_lock_file_of_another_writer_is_broken_by_force_only(storage):
    storage.publish(".hoodie/lock", b"")
    table = HudiTable.open(storage.uri)
    report = table.lock_report(options=IN_FILE)
    assert (report.alive, report.holding.holder) == (None, "")
    with pytest.raises(LockError, match="does not say which process"):
        table.break_lock(options=IN_FILE)
    table.break_lock(force=True, options=IN_FILE)
    assert storage.info(".hoodie/lock") is None


@pytest.mark.req("NEW-35")
def test_a_lock_that_changed_hands_is_left_alone(storage, monkeypatch):
    storage.publish(".hoodie/lock", b"")
    table = HudiTable.open(storage.uri)
    lock = lock_of(storage, parse_transaction_options(IN_FILE)).lock
    seen = lock.holding()
    lock.end_holding(seen.token)
    assert lock.try_acquire()
    assert not lock.end_holding(seen.token)
    lock.verify()
    lock.release()
    assert table.lock_report(options=IN_FILE).holding is None


@pytest.mark.req("NEW-35", "CC-14")
def test_commits_under_another_lock_are_named(storage):
    write(storage, {})
    other = write(storage, {PROVIDER: IN_PROCESS})
    write(storage, IN_FILE)
    table = HudiTable.open(storage.uri)
    report = table.lock_report(options=IN_FILE)
    assert list(report.others.values()) == [other]
    assert next(iter(report.others)).startswith("in-process lock")
    note = table.inspect.commits().to_pylist()[-1]["extra"]
    assert LOCK_NOTE in dict(note)


def test_a_lock_within_this_process_ends_with_it(storage):
    options = {PROVIDER: IN_PROCESS}
    table = HudiTable.open(storage.uri)
    with lock_of(storage, parse_transaction_options(options)).held():
        report = table.lock_report(options=options)
        assert (report.alive, report.holding.process.pid) == (True, os.getpid())
        with pytest.raises(LockError, match="cannot be broken from outside"):
            table.break_lock(force=True, options=options)
    assert table.lock_report(options=options).holding is None
