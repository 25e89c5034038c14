"""Compaction after writes and beside them: inline, in two calls, or where another process is faster."""

import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError, InstantNotFoundError, UnsupportedError
from hudi_timeline import HudiTable
from hudi_timeline.services.compaction import compaction
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import COMPACTION, REQUESTED
from hudi_timeline.writing.local_engine import LocalEngine


@pytest.fixture
def table(tmp_path):
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    return HudiTable.create(
        str(tmp_path / "w"),
        schema,
        name="w",
        table_type="MERGE_ON_READ",
        record_keys=["id"],
        ordering_fields=["ts"],
    )


def upsert(table, n, **options):
    data = pa.table({"id": ["a", "b", str(n)], "ts": [n, n, n], "v": [n, -n, n]})
    return table.upsert(data, options={"hoodie.parquet.small.file.limit": "0", **options})


def actions(table):
    return "".join(
        {"deltacommit": "d", "commit": "c", "compaction": "p"}.get(i.action, "")
        for i in table.timeline.instants
    )


@pytest.mark.parametrize("wrong", ["no base file", "an older base file", "no log files"])
def test_a_plan_that_leaves_out_files_of_its_slice_is_refused_and_no_row_is_lost(table, wrong):
    quiet = {"hoodie.compact.inline": "false"}
    upsert(table, 1, **quiet)
    upsert(table, 2, **quiet)
    older = table.compact().plan.operations[0]
    table.upsert(pa.table({"id": ["a"], "ts": [3], "v": [3]}), options=quiet)
    before = table.read(["id", "v"]).to_arrow().sort_by("id")
    planned = table.compact(mode="schedule").scheduled
    path = f".hoodie/{planned}.compaction.requested"
    record = avro_files.parse("HoodieCompactionPlan", table.storage.read(path))
    (operation,) = record["operations"]
    assert operation["fileId"] == older.file_id
    if wrong == "no log files":
        operation.update(deltaFilePaths=[], baseInstantTime="9" * 17)
    elif wrong == "an older base file":
        operation.update(dataFilePath=older.data_file)
    else:
        operation.update(dataFilePath=None)
    table.storage.publish(path, avro_files.render("HoodieCompactionPlan", record))
    (check,) = table.validate_compaction(planned)
    assert "does not name the files" in check.error
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="does not name the files") as e:
            table.compact(mode="execute", dry_run=dry_run)
        assert e.value.instant == planned
    assert table.read(["id", "v"]).to_arrow().sort_by("id") == before
    assert table.unschedule_compaction(planned).gone
    assert table.compact().executed
    assert table.read(["id", "v"]).to_arrow().sort_by("id") == before


@pytest.mark.req("TS-06")
def test_the_fifth_delta_commit_of_batch_writes_compacts(table):
    for n in range(1, 7):
        upsert(table, n)
    assert actions(table) == "dddddcd"
    assert table.verify(deep=True) == []


@pytest.mark.req("TS-05")
def test_inline_options_say_when_to_plan_and_when_to_execute(table):
    soon = {"hoodie.compact.inline.max.delta.commits": "2"}
    for n in range(1, 3):
        upsert(table, n, **soon, **{"hoodie.compact.inline": "false"})
    upsert(table, 3, **soon, **{"hoodie.datasource.compaction.async.enable": "true"})
    upsert(table, 4, **soon, **{"hoodie.table.services.enabled": "false"})
    assert actions(table) == "dddd"
    upsert(table, 5, **soon, **{"hoodie.compact.schedule.inline": "true"})
    assert actions(table) == "dddddp"
    upsert(table, 6, **soon, **{"hoodie.compact.schedule.inline": "true"})
    assert actions(table) == "dddddpd"
    upsert(table, 7, **soon)  # executes what is pending, and plans what is due
    assert actions(table).count("c") == 2
    assert "p" not in actions(table)
    assert {r["id"]: r["v"] for r in table.read(["id", "v"]).to_arrow().to_pylist()}["a"] == 7


def test_inline_compaction_on_a_copy_on_write_table_is_refused_before_anything_is_written(tmp_path):
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    t = HudiTable.create(str(tmp_path / "c"), schema, name="c", record_keys=["id"])
    for option in ("hoodie.compact.inline", "hoodie.compact.schedule.inline"):
        with pytest.raises(UnsupportedError, match="no log files"):
            upsert(t, 1, **{option: "true"})
    assert not t.timeline.instants


@pytest.mark.parametrize("fatal", [True, False])
def test_a_compaction_that_fails_after_a_write_says_that_the_write_is_there(table, monkeypatch, fatal):
    upsert(table, 1)

    def fail(tasks, threads=None):
        raise CorruptFileError("a block is damaged")

    monkeypatch.setattr("hudi_timeline.writing.local_engine.run_on_threads", fail)
    options = {"hoodie.compact.inline.max.delta.commits": "2"}
    if fatal:
        with pytest.raises(CorruptFileError) as e:
            upsert(table, 2, **options)
        assert any("write itself is completed" in note for note in e.value.__notes__)
    else:
        more = {"hoodie.fail.writes.on.inline.table.service.exception": "false"}
        result = upsert(table, 2, **options, **more)
        assert any("compaction after it failed" in w for w in result.warnings)
    assert [i.state for i in table.timeline.of(COMPACTION)] == [REQUESTED]
    assert table.read(["v"], filter="id = 'a'").to_arrow()["v"].to_pylist() == [2]
    monkeypatch.undo()
    upsert(table, 3)
    assert "c" in actions(table)


def content(table, **how):
    return {r["id"]: r["v"] for r in table.read(["id", "v"], **how).to_arrow().to_pylist()}


@pytest.mark.req("TS-09", "TS-34")
@pytest.mark.parametrize("when", ["before its files", "after its files"])
@pytest.mark.parametrize("what", ["execute", "schedule"])
def test_a_write_that_overlaps_a_compaction_loses_nothing(table, monkeypatch, what, when):
    off = {"hoodie.compact.inline": "false"}
    upsert(table, 1, **off)
    upsert(table, 2, **off)
    if what == "execute":
        table.compact(mode="schedule")
    ours, done = LocalEngine.write, []

    def overlapping(engine, frame, context, routing):
        if when == "before its files":
            done.append(HudiTable.open(table.uri).compact(mode=what))
        stats = ours(engine, frame, context, routing)
        if when == "after its files":
            done.append(HudiTable.open(table.uri).compact(mode=what))
        return stats

    with monkeypatch.context() as patched:
        patched.setattr(LocalEngine, "write", overlapping)
        upsert(table, 3, **off)
    assert bool(done[0].executed) == (what == "execute")
    assert not done[0].scheduled  # the write is open
    expected = {"a": 3, "b": -3, "1": 1, "2": 2, "3": 3}
    assert content(table) == expected
    table.compact()
    assert content(table) == content(table, query="read_optimized") == expected
    assert table.verify(deep=True) == []


RIVALS = {
    "executed it": lambda table, planned: table.compact(mode="execute", instant=planned),
    "took it back": lambda table, planned: table.unschedule_compaction(planned),
}


@pytest.fixture
def overtaken(monkeypatch):
    """Makes a rival come between the look at pending plans and the begin of each."""

    def arrange(table, rival):
        ours, came = compaction.execute, []

        def later(context, time, *args, **how):
            if not came:
                came.append(time)
                rival(HudiTable.open(table.uri), time)
            return ours(context, time, *args, **how)

        monkeypatch.setattr(compaction, "execute", later)
        return came

    return arrange


@pytest.mark.req("TS-09")
@pytest.mark.parametrize(
    ("door", "how", "rival"),
    [
        (door, how, rival)
        for door in ("a call", "a write", "the background")
        for how in ("pending", "just planned")
        for rival in RIVALS
        # A plan behind which a write began a log file is taken back by nobody.
        if (door, how, rival) != ("a write", "pending", "took it back")
    ],
)
@pytest.mark.sampled(2)
def test_a_plan_that_another_process_was_faster_with_is_no_error(table, overtaken, door, how, rival):
    off = {"hoodie.compact.inline": "false"}
    for n in range(1, 6):
        upsert(table, n, **off)
    if how == "pending":
        table.compact(mode="schedule")
    came = overtaken(table, RIVALS[rival])
    if door == "a call":
        result = table.compact()
        warnings = result.warnings
        assert came[0] not in result.executed
    elif door == "a write":
        warnings = upsert(table, 6).warnings
    else:
        with table.compact_in_background() as background:
            pass
        warnings = background.warnings
    assert any(f"compaction {came[0]} is pending no more" in w for w in warnings)
    assert content(table)["a"] == (6 if door == "a write" else 5)
    assert table.verify(deep=True) == []


def test_a_plan_that_is_asked_for_by_its_instant_and_is_not_pending_is_an_error(table):
    upsert(table, 1, **{"hoodie.compact.inline": "false"})
    with pytest.raises(InstantNotFoundError, match="no compaction 20200101000000000 is pending"):
        table.compact(mode="execute", instant="20200101000000000")
