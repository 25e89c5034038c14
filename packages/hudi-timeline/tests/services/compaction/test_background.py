"""Compaction on a thread beside writes: nothing is lost, whatever ends first."""

import os
import threading

import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError, InvalidOptionError, UnsupportedError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.services.compaction import slice_tasks
from hudi_timeline.timeline.instant import COMPACTION, INFLIGHT, instant_path

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
PLANS = {"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
SOON = {"hoodie.compact.inline.max.delta.commits": "1"}
LEFT = {"hoodie.compact.inline": "false"}


@pytest.fixture
def table(tmp_path):
    made = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], ordering_fields=["ts"],
        table_type="MERGE_ON_READ", options={"hoodie.parquet.small.file.limit": "0"},
    )  # fmt: skip
    write(made, 0, "insert")
    return made


def write(table, step, operation="upsert", options=LEFT):
    rows = [{"id": f"k{n}", "ts": step, "v": step} for n in range(4)]
    getattr(table, operation)(pa.Table.from_pylist(rows, schema=SCHEMA), options=options)


def values(table, **how):
    return {r["v"] for r in table.read(["v"], **how).to_arrow().to_pylist()}


@pytest.mark.req("TS-01", "TS-09")
def test_what_writes_plan_is_executed_beside_them(table):
    begun, go = threading.Event(), threading.Event()

    def slow(tasks):
        begun.set()
        assert go.wait(60)
        return slice_tasks.run_on_threads(tasks)

    with table.compact_in_background(seconds=0.01, run=slow) as running:
        write(table, 1, options=PLANS)  # the second delta commit
        assert begun.wait(60)
        write(table, 2, options=LEFT)  # while the execution waits
        assert values(table) == {2}
        assert running.running
        go.set()
    assert not running.running
    assert len(running.executed) == 1
    assert values(table) == {2}
    assert values(table, query="read_optimized") == {1}
    table.compact()
    assert values(table, query="read_optimized") == {2}
    assert table.verify(deep=True) == []


def test_what_is_pending_and_due_at_the_end_is_executed(table):
    with table.compact_in_background(seconds=3600, options=SOON) as running:
        write(table, 1)
        table.compact(mode="schedule")
    assert len(running.executed) >= 1
    assert values(table, query="read_optimized") == {1}
    assert not table.timeline.pending(COMPACTION)
    running.close()


@pytest.mark.parametrize("error", [CorruptFileError, TypeError])
def test_an_error_is_raised_at_the_end_and_the_plan_stays(table, error):
    def fails(tasks):
        raise error("a block is damaged")

    write(table, 1)
    planned = table.compact(mode="schedule").scheduled
    running = table.compact_in_background(seconds=0.01, run=fails)
    running._thread.join(60)
    assert not running.running
    write(table, 2)
    with pytest.raises(error, match="damaged"):
        running.close()
    running.close(finish=False)
    assert [i.time for i in table.timeline.pending(COMPACTION)] == [planned]
    assert not heartbeat.list_instants(table.storage)
    assert table.compact(mode="execute").executed == (planned,)
    assert values(table) == {2}


def test_the_error_of_the_block_is_the_one_that_is_raised(table):
    def fails(tasks):
        raise CorruptFileError("a block is damaged")

    write(table, 1)
    table.compact(mode="schedule")

    def of_the_user():
        with table.compact_in_background(seconds=0.01, run=fails) as running:
            running._thread.join(60)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as e:
        of_the_user()
    assert any("damaged" in note for note in e.value.__notes__)


@pytest.mark.parametrize("who", ["alive", "unknown"])
def test_what_another_process_executes_is_left_to_it(table, who):
    write(table, 1)
    planned = table.compact(mode="schedule").scheduled
    table.storage.create(instant_path(table.config, planned, COMPACTION, INFLIGHT), b"")
    beat = heartbeat.start(table.storage, planned) if who == "alive" else None
    try:
        with table.compact_in_background(seconds=3600) as running:
            pass
    finally:
        if beat is not None:
            beat.stop()
    assert running.executed == ()
    assert [i.state for i in table.timeline.pending(COMPACTION)] == [INFLIGHT]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fork")
def test_a_forked_child_ends_nothing_of_its_parents(table):
    write(table, 1)
    with table.compact_in_background(seconds=3600) as running:
        running._stop.wait(0)
        child = os.fork()
        if not child:
            running.close()
            os._exit(0 if running.executed == () else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert running.running
        table.compact(mode="schedule")
    assert values(table, query="read_optimized") == {1}


def test_what_can_never_run_is_refused_at_once(table, tmp_path):
    other = HudiTable.create(str(tmp_path / "c"), SCHEMA, name="c", record_keys=["id"])
    with pytest.raises(UnsupportedError, match="no log files"):
        other.compact_in_background()
    with pytest.raises(InvalidOptionError):
        table.compact_in_background(options={"hoodie.compact.inline.max.delta.commits": "0"})
    with pytest.raises(ValueError, match="above 0"):
        table.compact_in_background(seconds=0)
