"""Several writers of one table under optimistic concurrency control: who retries, who waits, and what is left."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from rival_writers import RIVALS, Between, Input, rows, state

from hudi_format.errors import ConcurrentWriterError, InvalidOptionError, MissingFileError, WriteConflictError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, write_hudi
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.concurrency.locks.zookeeper import ZookeeperLock
from hudi_timeline.options import parse_write_options
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.transaction import retries
from hudi_timeline.transaction.transaction import Transaction, begin_transaction

LOCK = "hoodie.write.lock."
OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    LOCK + "provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
TWICE = {**OCC, "hoodie.write.num.retries.on.conflict.failures": "2"}
BEFORE, DURING = "before the instant", "while it writes"


@pytest.fixture
def path(shared_table, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.0)
    return shared_table


def changes(*keys, v):
    """Another writer's upsert."""
    return lambda path: HudiTable.open(path).upsert(rows(*keys, ts=5, v=v), options=OCC)


@pytest.mark.req("CC-29", "TP-07")
def test_the_mode_is_switched_on_and_off_by_options(path):
    table = HudiTable.open(path)
    table.upsert(rows("nx", ts=9), options=OCC)
    table.upsert(rows("mx", ts=9))
    assert {k[0] for k in state(path)[0]} == {"a", "b", "c", "m", "n"}
    for policy in (
        {},
        {"hoodie.cleaner.policy.failed.writes": "EAGER"},
        {"hoodie.cleaner.policy.failed.writes": "NEVER"},
    ):
        given = parse_write_options(
            {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL", **policy}
        )
        assert given.transaction.failed_writes == "LAZY"


def test_the_example_of_apache_hudi_names_zookeeper_by_its_address_alone(tmp_path):
    example = {
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        LOCK + "zookeeper.url": "zookeeper",
        LOCK + "zookeeper.port": "2181",
        LOCK + "zookeeper.lock_key": "test_table",
        LOCK + "zookeeper.base_path": "/test",
    }
    lock = lock_of(open_storage(str(tmp_path)), parse_transaction_options(example))
    assert isinstance(lock.lock, ZookeeperLock)
    del example[LOCK + "zookeeper.base_path"]
    with pytest.raises(InvalidOptionError, match="base_path"):
        parse_transaction_options(example)


def test_a_store_without_a_lock_between_processes_needs_a_provider(tmp_path, monkeypatch):
    storage = open_storage(str(tmp_path))
    monkeypatch.setattr(type(storage), "is_local", property(lambda _: False))
    mode = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    with pytest.raises(InvalidOptionError, match="between processes") as e:
        lock_of(storage, parse_transaction_options(mode))
    assert "ZookeeperBasedLockProvider" in e.value.remedy
    lock_of(storage, parse_transaction_options({**mode, LOCK + "provider": "InProcessLockProvider"}))


@pytest.mark.req("CC-27", "CC-42", "CC-40", "NEW-17")
def test_the_loser_is_rolled_back_and_run_again_with_a_newer_instant(path, monkeypatch):
    between = Between(monkeypatch, path, changes("ax", "zx", v=5), DURING)
    began = []
    inflight = Transaction.inflight
    monkeypatch.setattr(Transaction, "inflight", lambda t, p: (began.append(t.instant), inflight(t, p))[1])
    result = HudiTable.open(path).upsert(Input(rows("ax", "nx", ts=9)), options=TWICE)
    assert between.refused is None
    assert result.retries == 1
    first, rival, second = began
    assert first < rival < second == result.instant
    there, _ = state(path)
    assert (there["a", "x"]["ts"], there["z", "x"]["v"], there["n", "x"]["ts"]) == (9, 5, 9)
    table = HudiTable.open(path)
    assert table.timeline.find(first) is None
    assert table.verify(deep=True) == []


@pytest.mark.req("CC-03")
def test_without_retries_the_second_fails(path, monkeypatch):
    between = Between(monkeypatch, path, changes("ax", v=5), DURING)
    with pytest.raises(WriteConflictError):
        HudiTable.open(path).upsert(rows("ax", ts=9), options=OCC)
    assert state(path) == between.state


OPERATIONS = {
    "delete": (lambda t, o: t.delete(rows("ax"), options=o), {("b", "y"), ("c", "q"), ("z", "x")}),
    "delete by a filter": (lambda t, o: t.delete("p = 'x'", options=o), {("b", "y"), ("c", "q")}),
    "update": (
        lambda t, o: t.update({"v": 70}, "p = 'x'", options=o),
        {("a", "x"), ("b", "y"), ("c", "q"), ("z", "x")},
    ),
    "merge": (
        lambda t, o: t.merge(rows("ax", "zx", v=70, ts=9), options=o).when_matched_update().execute(),
        {("a", "x"), ("b", "y"), ("c", "q"), ("z", "x")},
    ),
    "insert_overwrite": (lambda t, o: t.insert_overwrite(rows("nx"), options=o), {("b", "y"), ("c", "q"), ("n", "x")}),
    "delete_partition": (lambda t, o: t.delete_partitions(["x"], options=o), {("b", "y"), ("c", "q")}),
}  # fmt: skip


@pytest.mark.req("CC-02", "CC-35")
@pytest.mark.parametrize("moment", [BEFORE, DURING])
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.sampled(4)
def test_a_retry_is_evaluated_on_what_the_rival_left(path, monkeypatch, name, moment):
    """The result is that of the rival's write first and this one after it."""
    act, left = OPERATIONS[name]
    Between(monkeypatch, path, changes("ax", "zx", v=5), moment)
    result = act(HudiTable.open(path), TWICE)
    there, _ = state(path)
    assert set(there) == left
    if name in ("update", "merge"):
        assert there["a", "x"]["v"] == there["z", "x"]["v"] == 70
    assert result.retries == (moment == DURING)
    assert HudiTable.open(path).verify(deep=True) == []


ONCE = {
    "reader": lambda t: t.to_reader(),
    "generator": lambda t: iter(t.to_pylist()),
    "stream": Input,
    "table": lambda t: t,
}


@pytest.mark.parametrize("kind", ONCE)
@pytest.mark.parametrize("limit", [None, "1000"])
def test_rows_that_come_once_are_kept_for_a_retry(path, monkeypatch, kind, limit):
    Between(monkeypatch, path, changes("ax", v=5), DURING)
    ours = pa.concat_tables([rows("ax", ts=9), *(rows(f"{c}x", ts=9) for c in "defghij")])
    more = {} if limit is None else {"hoodie.memory.merge.max.size": limit}
    result = HudiTable.open(path).upsert(ONCE[kind](ours), options={**TWICE, **more})
    assert result.retries == 1
    there, _ = state(path)
    assert {k for k, r in there.items() if r["ts"] == 9} == {(c, "x") for c in "adefghij"}


@pytest.mark.parametrize("rival", ["adds a column", "widens to text", "drops a column", "deletes our partition",
                                   "sets the ordering field", "records a global index"])  # fmt: skip
@pytest.mark.req("CC-02")
def test_a_rival_that_changes_the_table_is_a_conflict_or_both_effects_are_there(path, monkeypatch, rival):
    between = Between(monkeypatch, path, RIVALS[rival], DURING)
    before = state(path)[0]
    try:
        HudiTable.open(path).upsert(rows("ax", "nx", ts=9), options=TWICE)
    except (WriteConflictError, ConcurrentWriterError):
        assert state(path) == between.state
    else:
        there, schema = state(path)
        assert there["n", "x"]["ts"] == 9
        theirs, left = between.state
        assert set(left.names) <= set(schema.names) or rival == "drops a column"
        for key in set(theirs) - {("a", "x")}:
            assert {c: there[key][c] for c in theirs[key] if c in there[key]} == {
                c: v for c, v in theirs[key].items() if c in there[key]
            }
        assert set(before) - {("a", "x")} <= set(there) | (set(before) - set(theirs))
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-24")
def test_additions_that_overlap_never_collide_on_a_small_file(path, monkeypatch):
    between = Between(
        monkeypatch, path, lambda p: HudiTable.open(p).insert(rows("rx", "sx"), options=OCC), DURING
    )
    HudiTable.open(path).insert(rows("nx"), options=OCC)
    assert between.refused is None
    assert {k[0] for k in state(path)[0]} == {"a", "b", "c", "r", "s", "n"}
    table = HudiTable.open(path)
    files = table.inspect.files().num_rows
    table.insert(rows("mx"), options=OCC)  # alone again: the small file takes it
    assert HudiTable.open(path).inspect.files().num_rows - files <= 1
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-29")
def test_a_second_writer_waits_for_a_long_one(path):
    table = HudiTable.open(path)
    long = begin_transaction(table.storage, table.config, operation="UPSERT")
    long.inflight({})
    with pytest.raises(ConcurrentWriterError, match="lock_wait"):
        table.upsert(rows("nx"))
    done = []

    def second():
        done.append(HudiTable.open(path, lock_wait=60).upsert(rows("nx")))
        done.append(write_hudi(path, rows("mx"), lock_wait=60))

    thread = threading.Thread(target=second)
    thread.start()
    time.sleep(0.3)
    assert done == []
    long.abort()
    thread.join(60)
    assert [r.inserted for r in done] == [1, 1]


def test_a_second_writer_tries_again_as_often_as_asked(path, monkeypatch):
    table = HudiTable.open(path)
    long = begin_transaction(table.storage, table.config, operation="UPSERT")
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            long.abort()

    monkeypatch.setattr(retries.time, "sleep", pause)
    assert HudiTable.open(path, write_retries=3).upsert(rows("nx")).retries == 2


KILLED = """
    import os, signal, sys
    from rival_writers import rows
    from hudi_timeline import HudiTable
    from hudi_timeline.transaction.transaction import Transaction
    path, options = sys.argv[1], eval(sys.argv[2])
    inflight = Transaction.inflight

    def first(transaction, profile):
        inflight(transaction, profile)
        Transaction.inflight = inflight
        HudiTable.open(path).upsert(rows("ax", "zx", ts=5, v=5), options=options)
        Transaction.inflight = retried

    def retried(transaction, profile):
        inflight(transaction, profile)
        os.kill(os.getpid(), signal.SIGKILL)

    Transaction.inflight = first
    HudiTable.open(path, write_retries=3).upsert(rows("ax", "nx", ts=9), options=options)
"""


@pytest.mark.req("CC-25")
def test_a_writer_that_is_killed_in_its_retry_leaves_nothing_visible(path):
    here = os.path.dirname(__file__)
    code = textwrap.dedent(KILLED)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.join(here, "..", "support"), *sys.path])}
    ended = subprocess.run(
        [sys.executable, "-c", code, path, repr(OCC)], env=env, capture_output=True, text=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    there, _ = state(path)
    assert ("n", "x") not in there
    assert there["z", "x"]["v"] == 5
    table = HudiTable.open(path)
    pending = table.timeline.pending_writes()
    assert len(pending) == 1
    table.upsert(rows("mx", ts=9), options=OCC)  # beside the dead one
    table.clean(options=OCC)
    table = HudiTable.open(path)
    assert table.timeline.pending_writes() == ()
    assert table.verify(deep=True) == []
    assert ("m", "x") in state(path)[0]


def without_older_versions(path):
    """As a cleaning leaves it that goes by the newest versions."""
    newest = {}
    for file in sorted(
        (p for p in Path(path).rglob("*.parquet") if ".hoodie" not in p.parts), key=_instant_of
    ):
        older = newest.get((file.parent, file.name[:36]))
        if older is not None:
            older.unlink()
        newest[file.parent, file.name[:36]] = file


def _instant_of(file):
    return file.stem.rpartition("_")[2]


def test_a_write_whose_base_file_was_rewritten_and_cleaned_meanwhile_is_run_again(path, monkeypatch):
    def rival(path):
        changes("ax", v=5)(path)
        without_older_versions(path)

    Between(monkeypatch, path, rival, DURING)
    result = HudiTable.open(path).upsert(Input(rows("ax", "nx", ts=9)), options=TWICE)
    assert result.retries == 1
    assert state(path)[0]["a", "x"]["ts"] == 9


def test_a_base_file_that_nobody_has_rewritten_is_missing(path, monkeypatch):
    def lost(path):
        changes("zx", v=5)(path)
        for file in Path(path).rglob("*.parquet"):
            if _instant_of(file) == HudiTable.open(path).timeline.completed_writes()[0].time:
                file.unlink()

    Between(monkeypatch, path, lost, DURING)
    with pytest.raises(MissingFileError):
        HudiTable.open(path).upsert(Input(rows("ax", ts=9)), options=TWICE)
