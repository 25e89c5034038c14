"""A slow writer beside processes that never pause, and a compaction that they keep from being planned."""

import json
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.concurrency.precedence import claims
from hudi_timeline.options.transaction_config import parse_transaction_options
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


@pytest.mark.parametrize("priority", ["NORMAL", "HIGH"])
def test_a_compaction_that_is_overdue_waits_for_open_writes_and_others_for_it(
    tmp_path, priority, monkeypatch
):
    made = table(tmp_path / "t", table_type="MERGE_ON_READ")
    options = {**OCC, "hoodie.compact.inline.max.delta.commits": "2", "hudi.write.priority": priority}
    made.upsert([{"id": "a", "ts": 1}])
    open_write = begin_transaction(
        made.storage,
        made.config,
        operation="UPSERT",
        action="deltacommit",
        options=parse_transaction_options(OCC),
    )
    seen = []

    def pause(seconds):
        """Another write is still open; it ends when somebody waits for it."""
        if claims(made.storage) and not seen:
            seen.append(claims(made.storage))
            open_write.abort("it is over")
        time.sleep(min(seconds, 0.01))

    monkeypatch.setitem(waited_for.__kwdefaults__, "pause", pause)
    if priority == "NORMAL":
        assert "not completed" in made.compact(options=options).skipped  # it is due, and has not waited long
        assert seen == []
        for number in range(2, 4):
            made.upsert([{"id": "a", "ts": number}])
    result = made.compact(options=options)
    assert seen
    assert result.executed
    assert claims(made.storage) == []


@pytest.mark.parametrize("precedence", ["0", "3"])
def test_it_costs_a_writer_that_does_not_lose_no_file(tmp_path, precedence):
    made = table(tmp_path / "t")
    made.upsert([{"id": "a", "ts": 1}], options={"hudi.write.precedence.after": precedence})
    assert not (tmp_path / "t" / ".hoodie" / ".precedence").exists()
