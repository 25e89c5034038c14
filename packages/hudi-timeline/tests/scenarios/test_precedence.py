"""A slow writer beside processes that never pause, and a compaction that they keep from being planned."""

import json
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from hudi_format.errors import WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.precedence import claims
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.reading.scan import Scan
from hudi_timeline.services.buckets import resizing
from hudi_timeline.services.compaction import log_compaction
from hudi_timeline.transaction import retries
from hudi_timeline.transaction.retries import waited_for
from hudi_timeline.transaction.transaction import begin_transaction

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
OCC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.num.retries.on.conflict.failures": "20",
    "hudi.write.precedence.after": "2",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
LONGEST_S = 120
pytestmark = pytest.mark.req("NEW-31")

FAST = """
import json, sys, threading
from hudi_timeline import HudiTable
path, options = sys.argv[1], json.loads(sys.argv[2])
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
number = 0
while not over.is_set():
    number += 1
    HudiTable.open(path, options=options).upsert([{"id": "a", "ts": number}])
"""


def table(path, **more):
    HudiTable.create(str(path), SCHEMA, name="t", record_keys=["id"], ordering_fields=["ts"], **more)
    made = HudiTable.open(str(path), options=OCC)
    made.insert([{"id": "a", "ts": 0}, {"id": "slow", "ts": 0}])
    return made


def writes(table):
    return len(HudiTable.open(table.uri).timeline.completed_writes())


def open_write(table):
    """A write that is not completed."""
    options = parse_transaction_options(OCC)
    return begin_transaction(
        table.storage, table.config, operation="UPSERT", action="deltacommit", options=options
    )


def ended_when_waited_for(table, monkeypatch):
    """Claims that were there when an open write ended, because somebody waited for it; none until then."""
    write, seen = open_write(table), []

    def pause(seconds):
        if claims(table.storage) and not seen:
            seen.append(claims(table.storage))
            write.abort("it is over")
        time.sleep(min(seconds, 0.01))

    monkeypatch.setitem(waited_for.__kwdefaults__, "pause", pause)
    return seen


def test_a_slow_writer_loses_so_often_and_no_more_to_fast_ones(tmp_path):
    slow = table(tmp_path / "t")
    fast = subprocess.Popen(
        [sys.executable, "-c", FAST, str(tmp_path / "t"), json.dumps(OCC)], stdin=subprocess.PIPE
    )
    tries = []

    def is_slow(view):
        """As long as it takes until another one was faster; nobody is while it has precedence."""
        tries.append(view)
        before, until = writes(slow), time.monotonic() + (LONGEST_S if len(tries) <= 2 else 0.7)
        while writes(slow) == before and time.monotonic() < until:
            time.sleep(0.01)
        return True

    try:
        result = slow.upsert([{"id": "slow", "ts": 1}], validators=[is_slow])
    finally:
        fast.stdin.close()
        code = fast.wait(LONGEST_S)
    assert code == 0
    assert result.retries == 2
    assert claims(slow.storage) == []
    found = {r["id"]: r["ts"] for r in slow.read(["id", "ts"]).to_arrow().to_pylist()}
    assert found["slow"] == 1
    assert slow.verify(deep=True) == []


COMPUTED = {
    "update": lambda t, o: t.update({"ts": 77}, "id = 'slow'", options=o),
    "merge": lambda t, o: t.merge([{"id": "slow", "ts": 77}], options=o).when_matched_update().execute(),
    "delete": lambda t, o: t.delete("id = 'slow'", options=o),
}


@pytest.mark.req("CC-38")
@pytest.mark.parametrize("name", COMPUTED)
def test_a_write_of_rows_that_were_read_loses_so_often_and_no_more_to_those_that_commit_while_it_reads(
    tmp_path, monkeypatch, name
):
    """What is committed between its reading and its instant takes its rows back: it has to be first before it reads."""
    made = table(tmp_path / "t")
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.0)
    claimed = []

    def read(scan, *given, **named):
        rows = to_arrow(scan, *given, **named)
        claimed.append([c.rank for c in claims(made.storage)])
        if not claimed[-1]:  # else another write waits
            HudiTable.open(made.uri, options=OCC).upsert([{"id": "a", "ts": len(claimed)}])
        return rows

    to_arrow = Scan.to_arrow
    monkeypatch.setattr(Scan, "to_arrow", read)
    options = {"hoodie.write.num.retries.on.conflict.failures": "0"}
    result = COMPUTED[name](made, options)
    monkeypatch.undo()
    assert claimed == [[], [], [3]]
    assert result.retries == 0, "it has begun once"
    assert claims(made.storage) == []
    found = {r["id"]: r["ts"] for r in made.read(["id", "ts"]).to_arrow().to_pylist()}
    assert found == ({"a": 2} if name == "delete" else {"a": 2, "slow": 77})
    assert made.verify(deep=True) == []


@pytest.mark.parametrize("priority", ["NORMAL", "HIGH"])
def test_a_compaction_that_is_overdue_waits_for_open_writes_and_others_for_it(
    tmp_path, priority, monkeypatch
):
    made = table(tmp_path / "t", table_type="MERGE_ON_READ")
    options = {**OCC, "hoodie.compact.inline.max.delta.commits": "2", "hudi.write.priority": priority}
    made.upsert([{"id": "a", "ts": 1}])
    seen = ended_when_waited_for(made, monkeypatch)
    if priority == "NORMAL":
        assert "not completed" in made.compact(options=options).skipped  # it is due, and has not waited long
        assert seen == []
        for number in range(2, 4):
            made.upsert([{"id": "a", "ts": number}])
    result = made.compact(options=options)
    assert seen
    assert result.executed
    assert claims(made.storage) == []


@pytest.mark.parametrize("priority", ["NORMAL", "HIGH"])
def test_a_log_compaction_that_is_overdue_waits_for_open_writes_and_others_for_it(
    tmp_path, priority, monkeypatch
):
    made = table(tmp_path / "t", table_type="MERGE_ON_READ")
    options = {**OCC, "hoodie.log.compaction.blocks.threshold": "2", "hudi.write.priority": priority}
    for number in range(1, 3):
        made.upsert([{"id": "a", "ts": number}])
    seen, during = ended_when_waited_for(made, monkeypatch), []

    def execute(context, *arguments, **named):
        during.extend(claims(made.storage))
        return run(context, *arguments, **named)

    run = log_compaction._execute
    monkeypatch.setattr(log_compaction, "_execute", execute)
    if priority == "NORMAL":
        assert (
            "not completed" in made.log_compact(options=options).skipped
        )  # it is due, and has not waited long
        assert seen == []
        for number in range(3, 5):
            made.upsert([{"id": "a", "ts": number}])
    result = made.log_compact(options=options)
    assert seen
    assert result.executed
    assert during, "others wait until it is executed, as it gives way to each"
    assert claims(made.storage) == []
    assert made.verify(deep=True) == []


def test_a_resize_of_buckets_loses_so_often_and_no_more(tmp_path, monkeypatch):
    buckets = {**OCC, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], ordering_fields=["ts"], options=buckets
    )
    own = {k: v for k, v in buckets.items() if "bucket" not in k}
    made = HudiTable.open(str(tmp_path / "t"), options=own)
    made.insert([{"id": k, "ts": 0} for k in "abcdef"])
    claimed = []

    def write_first(transaction, plan, config, run):
        """Another write comes first, but where it has to wait for the resize."""
        claimed.append([c.rank for c in claims(made.storage)])
        if not claimed[-1]:
            HudiTable.open(made.uri, options=own).upsert([{"id": "a", "ts": len(claimed)}])
        return execute(transaction, plan, config, run)

    execute = resizing._execute
    monkeypatch.setattr(resizing, "_execute", write_first)
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.0)
    with pytest.raises(WriteConflictError):
        made.resize_buckets(4, options={"hoodie.write.num.retries.on.conflict.failures": "0"})
    claimed.clear()
    result = made.resize_buckets(4)
    assert claimed == [[], [], [3]]
    assert result.retries == 2
    assert result.plan.after.num_buckets == 4
    assert claims(made.storage) == []
    found = {r["id"]: r["ts"] for r in made.read(["id", "ts"]).to_arrow().to_pylist()}
    assert found == {"a": 2, "b": 0, "c": 0, "d": 0, "e": 0, "f": 0}
    assert made.verify(deep=True) == []


def test_a_log_compaction_waits_for_nobody_where_precedence_is_off(tmp_path):
    made = table(tmp_path / "t", table_type="MERGE_ON_READ")
    for number in range(1, 6):
        made.upsert([{"id": "a", "ts": number}])
    options = {**OCC, "hoodie.log.compaction.blocks.threshold": "1", "hudi.write.precedence.after": "0"}
    write = open_write(made)
    assert "not completed" in made.log_compact(options=options).skipped
    assert claims(made.storage) == []
    write.abort("it is over")


@pytest.mark.parametrize("precedence", ["0", "3"])
def test_it_costs_a_writer_that_does_not_lose_no_file(tmp_path, precedence):
    made = table(tmp_path / "t")
    made.upsert([{"id": "a", "ts": 1}], options={"hudi.write.precedence.after": precedence})
    assert not (tmp_path / "t" / ".hoodie" / ".precedence").exists()
