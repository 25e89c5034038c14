"""Log compaction of tables: their rows stay what they are, and it gives way to whoever writes."""

import json

import pyarrow as pa
import pytest

from hudi_format.errors import (
    ConcurrentWriterError,
    CorruptFileError,
    InstantNotFoundError,
    UnsupportedError,
    WriteConflictError,
)
from hudi_format.file_names import parse_log_file
from hudi_format.log.block import BlockType
from hudi_format.log.reader import LogFileReader
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.services.compaction import log_compaction, plan_execution, slice_tasks
from hudi_timeline.testing.faulty_storage import CRASH, Fault, Faults
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import DELTA_COMMIT, INFLIGHT, LOG_COMPACTION, REQUESTED

TWO = {"hoodie.log.compaction.blocks.threshold": "2"}


@pytest.fixture
def made(tmp_path):
    """One group with a base file and three logs, one with a base file and one log."""
    table = TableBuilder(open_storage(str(tmp_path / "t")), table_type="MERGE_ON_READ")
    table.commit(
        "first", table.base("first", {"a": 1, "b": 2, "c": 3}), table.base("first", {"z": 1}, group=2)
    )
    table.commit("second", table.log("second", {"a": 20, "d": 40}))
    table.commit("third", table.log("third", {"b": 30}, deletes=["c"]), table.log("third", {"z": 5}, group=2))
    return table


EXPECTED = {"a": 20, "b": 30, "d": 40, "z": 5}


def rows(made, **how):
    return {r["id"]: r["v"] for r in made.table.read(["id", "v"], **how).to_arrow().to_pylist()}


def meta(made):
    columns = ["_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path"]
    return sorted(map(tuple, (r.values() for r in made.table.read(columns).to_arrow().to_pylist())))


def states(made):
    kinds = (LOG_COMPACTION, "rollback")
    return [(i.action, i.state) for i in made.table.timeline.instants if i.action in kinds]


def test_a_log_compaction_makes_one_block_of_each_kind_and_keeps_rows_and_their_meta_columns(made):
    before = meta(made)
    result = made.table.log_compact(options=TWO)
    assert rows(made) == EXPECTED
    assert rows(made, query="read_optimized") == {"a": 1, "b": 2, "c": 3, "z": 1}
    assert meta(made) == before
    assert made.table.verify(deep=True) == []
    (instant,) = result.executed
    commit = json.loads(made.storage.read(made.path_of(instant, DELTA_COMMIT, "COMPLETED")))
    assert (commit["compacted"], commit["operationType"]) == (True, "LOG_COMPACT")
    (stat,) = commit["partitionToWriteStats"]["p0"]
    assert stat["fileId"] == made.group(1)
    numbers = ("numWrites", "numDeletes", "totalLogFilesCompacted", "totalLogBlocks", "logVersion")
    assert [stat[n] for n in numbers] == [3, 1, 2, 3, 2]
    assert parse_log_file("p0", stat["path"].rpartition("/")[2]).version == 2
    with LogFileReader.open(made.storage, stat["path"]) as reader:
        blocks = list(reader.blocks)
    assert [b.type for b in blocks] == [BlockType.AVRO_DATA, BlockType.DELETE]
    assert {b.compacted_instants for b in blocks} == {(made.at("third"), made.at("second"))}
    assert not markers.list_instants(made.storage)
    assert not heartbeat.list_instants(made.storage)


def test_what_has_been_merged_is_not_merged_again_and_few_blocks_are_left(made):
    assert made.table.log_compact().executed == ()
    assert "no file slice has 5 log blocks" in made.table.log_compact().skipped
    made.table.log_compact(options=TWO)
    again = made.table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "1"})
    assert again.executed == ()


def test_a_dry_run_plans_and_changes_nothing(made):
    before = made.storage.list(".hoodie")
    result = made.table.log_compact(dry_run=True, options=TWO)
    assert [o.file_id for o in result.plan.operations] == [made.group(1)]
    assert made.storage.list(".hoodie") == before


def test_a_plan_is_as_apache_hudi_makes_it(made):
    planned = made.table.log_compact(mode="schedule", options=TWO)
    record = avro_files.read_record(
        made.storage, "HoodieCompactionPlan", made.path_of(planned.scheduled, LOG_COMPACTION, REQUESTED), ""
    )
    assert record["strategy"] == {
        "compactorClassName": "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper",
        "strategyParams": {},
        "version": 1,
    }
    assert record["preserveHoodieMetadata"] is True
    assert rows(made) == EXPECTED
    done = made.table.log_compact(mode="execute", instant=planned.scheduled)
    assert done.executed == (planned.scheduled,)
    with pytest.raises(InstantNotFoundError, match="no log compaction"):
        made.table.log_compact(mode="execute", instant=planned.scheduled)
    with pytest.raises(ValueError, match="execute"):
        made.table.log_compact(instant="1")
    with pytest.raises(ValueError, match="mode"):
        made.table.log_compact(mode="run")


def write_beside(made, instant, name="beside"):
    made.instants[name] = str(int(instant) + 1)
    made.commit(name, made.log(name, {"a": 99}))


def test_a_plan_whose_slice_was_written_to_is_withdrawn(made):
    planned = made.table.log_compact(mode="schedule", options=TWO).scheduled
    write_beside(made, planned)
    assert made.table.log_compact(mode="execute", dry_run=True).skipped == "its slices were written to since"
    with pytest.raises(WriteConflictError, match="withdrawn"):
        made.table.log_compact(mode="execute", instant=planned)
    assert states(made) == []
    assert rows(made) == {**EXPECTED, "a": 99}
    result = made.table.log_compact(options=TWO)
    assert len(result.executed) == 1
    assert rows(made) == {**EXPECTED, "a": 99}


def test_a_stale_plan_among_all_is_withdrawn_with_a_warning_and_made_anew(made):
    planned = made.table.log_compact(mode="schedule", options=TWO).scheduled
    write_beside(made, planned)
    result = made.table.log_compact(options=TWO)
    assert [planned in w for w in result.warnings] == [True]
    assert len(result.executed) == 1
    assert rows(made) == {**EXPECTED, "a": 99}


@pytest.mark.parametrize("how", ["pending", "just planned"])
def test_a_plan_that_another_process_was_faster_with_is_no_error(made, monkeypatch, how):
    if how == "pending":
        made.table.log_compact(mode="schedule", options=TWO)
    ours, came = log_compaction._execute, []

    def later(context, time, *args, **given):
        if not came:
            came.append(time)
            HudiTable.open(made.table.uri).log_compact(mode="execute", instant=time, options=TWO)
        return ours(context, time, *args, **given)

    monkeypatch.setattr(log_compaction, "_execute", later)
    result = made.table.log_compact(options=TWO)
    assert came[0] not in result.executed
    assert any(f"log compaction {came[0]} is pending no more" in w for w in result.warnings)
    assert rows(made) == EXPECTED
    with pytest.raises(InstantNotFoundError, match="no log compaction"):
        made.table.log_compact(mode="execute", instant=came[0], options=TWO)


def test_a_pending_plan_blocks_no_compaction_and_is_overtaken_by_it(made):
    planned = made.table.log_compact(mode="schedule", options=TWO).scheduled
    assert made.table.compact().executed
    with pytest.raises(WriteConflictError, match="withdrawn"):
        made.table.log_compact(mode="execute", instant=planned)
    assert rows(made, query="read_optimized") == EXPECTED


@pytest.mark.parametrize("how", ["compacted", "replaced", "lost"])
def test_verify_misses_no_file_of_a_plan_that_was_overtaken_and_cleaned(made, how):
    planned = made.table.log_compact(mode="schedule", options=TWO)
    (operation, *_) = planned.plan.operations
    if how == "compacted":
        made.table.compact()
    elif how == "replaced":
        made.table.insert_overwrite([{"id": "n", "p": operation.partition, "v": 1, "ts": 1}])
    else:
        made.storage.delete(f"{operation.partition}/{operation.log_files[0]}".lstrip("/"))
    if how != "lost":
        made.table.clean(options={"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
                                  "hoodie.cleaner.fileversions.retained": "1"})  # fmt: skip
        assert made.storage.info(f"{operation.partition}/{operation.data_file}".lstrip("/")) is None
    found = {f.code for f in made.table.verify()}
    assert ("plan-slice-missing" in found) == (how == "lost")


def test_slices_of_a_pending_compaction_are_left_out(made):
    made.table.compact(mode="schedule")
    assert not made.table.log_compact(options=TWO).plan


def test_an_open_write_lets_nothing_be_planned_or_executed(made):
    planned = made.table.log_compact(mode="schedule", options=TWO).scheduled
    made.instants["open"] = str(int(planned) + 1)
    made.pending("open")
    assert "is not completed" in made.table.log_compact(mode="schedule", options=TWO).skipped
    with pytest.raises(ConcurrentWriterError, match="is not completed"):
        made.table.log_compact(mode="execute", instant=planned)
    assert states(made) == [(LOG_COMPACTION, REQUESTED)]


@pytest.mark.parametrize("how", ["written", "open", "compacted"])
def test_it_gives_way_to_what_came_while_it_ran(made, how):
    context = made.table._service(TWO)

    def meanwhile(tasks):
        stats = slice_tasks.run_on_threads(tasks)
        if how == "written":
            write_beside(made, tasks[0].instant)
        elif how == "open":
            made.instants["open"] = str(int(tasks[0].instant) + 1)
            made.pending("open")
        else:
            made.storage.delete(made.path_of(tasks[0].instant, LOG_COMPACTION, INFLIGHT))
        return stats

    with pytest.raises((WriteConflictError, ConcurrentWriterError)):
        log_compaction.log_compact(context, run=meanwhile)
    assert rows(made) == ({**EXPECTED, "a": 99} if how == "written" else EXPECTED)
    assert all(state == "COMPLETED" for action, state in states(made) if action == "rollback")


def test_a_dead_execution_is_rolled_back_by_the_next_write_and_by_the_next_one(made, monkeypatch):
    planned = made.table.log_compact(mode="schedule", options=TWO).scheduled
    context = made.table._service(TWO)
    tasks = []

    class Killed(BaseException):
        pass

    def dies(found):
        tasks.extend(found)
        slice_tasks.run_on_threads(found)
        raise Killed

    monkeypatch.setattr(plan_execution, "_give_back", lambda context, begun, error: begun.beat.give_up())
    with pytest.raises(Killed):
        log_compaction.log_compact(context, mode="execute", instant=planned, run=dies)
    monkeypatch.undo()
    assert states(made) == [(LOG_COMPACTION, INFLIGHT)]
    assert rows(made) == EXPECTED
    result = HudiTable.open(made.storage).rollback()
    assert result.undone == (planned,)
    assert rows(made) == EXPECTED
    assert made.table.verify(deep=True) == []
    assert made.table.log_compact(options=TWO).executed
    assert rows(made) == EXPECTED


def test_a_log_compaction_can_be_rolled_back_and_restored_over(made):
    done = made.table.log_compact(options=TWO).executed[0]
    made.table.rollback(done)
    assert rows(made) == EXPECTED
    assert [i.time for i in made.table.timeline.instants if i.time == done] == []
    made.table.log_compact(options=TWO)
    made.table.restore(made.at("second"))
    assert rows(made) == {"a": 20, "b": 2, "c": 3, "d": 40, "z": 1}
    assert made.table.verify(deep=True) == []


def test_a_requested_plan_is_taken_off_the_timeline_by_a_rollback(made):
    planned = made.table.log_compact(mode="schedule", options=TWO).scheduled
    made.table.rollback(planned)
    assert not made.table.timeline.pending(LOG_COMPACTION)
    assert rows(made) == EXPECTED


def test_a_copy_on_write_table_has_no_log_blocks(tmp_path):
    table = TableBuilder(open_storage(str(tmp_path / "t")))
    table.commit("first", table.base("first", {"a": 1}))
    with pytest.raises(UnsupportedError, match="copy-on-write"):
        table.table.log_compact()


def test_a_damaged_log_is_an_error_and_nothing_is_changed(made, tmp_path):
    path = next((tmp_path / "t").glob("p0/.*log*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 40] = b"\0" * 40
    data = data[:-20]
    path.write_bytes(bytes(data))
    with pytest.raises(CorruptFileError):
        made.table.log_compact(options=TWO)


def mor(path, name="t", **properties):
    start = [{"id": n, "ts": 10, "a": n, "b": "x"} for n in range(8)]
    table = HudiTable.create(
        str(path / name), pa.Table.from_pylist(start), table_type="MERGE_ON_READ", record_keys="id",
        ordering_fields="ts", **properties,
    )  # fmt: skip
    table.insert(start)
    return table


@pytest.mark.parametrize("block", ["avro", "parquet"])
@pytest.mark.parametrize(
    "payload",
    [
        "OverwriteWithLatestAvroPayload",
        "DefaultHoodieRecordPayload",
        "EventTimeAvroPayload",
        "PartialUpdateAvroPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
        "FirstValueAvroPayload",
    ],
)
@pytest.mark.sampled(24)
def test_every_query_answers_the_same_before_and_after(tmp_path, payload, block):
    options = {
        "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
        "hoodie.compaction.payload.class": f"org.apache.hudi.common.model.{payload}",
        "hoodie.logfile.data.block.format": block,
        "hoodie.compact.inline": "false",
    }
    table = mor(tmp_path, options=options)
    schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.string())])
    for batch in (
        [(0, 11, 5, None), (1, 9, None, "y"), (2, 11, 2, "z"), (20, 5, 1, "n")],
        [(0, 11, None, "q"), (1, 12, 7, None), (3, 8, None, None), (20, 4, 2, None)],
        [(2, 3, None, "late"), (21, 1, 1, None), (0, 10, 1, "old")],
    ):
        found = pa.Table.from_pylist([dict(zip(schema.names, r, strict=True)) for r in batch], schema)
        table.upsert(found, options=options)
        table.delete("id = 5", options=options)
    flagged = schema.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    marked = [(4, 50, None, None, True), (21, 0, 3, "m", False)]
    marked = pa.Table.from_pylist([dict(zip(flagged.names, r, strict=True)) for r in marked], flagged)
    table.upsert(marked, options=options)

    def answers():
        times = [i.time for i in table.timeline.completed_writes()]
        first = times[0]
        found = [table.read(meta_columns=True).to_arrow().to_pylist()]
        found += [table.read(as_of=t, meta_columns=True).to_arrow().to_pylist() for t in known]
        found += [table.read_incremental(first, meta_columns=True).to_arrow().to_pylist()]
        found += [table.read_incremental(known[1], known[-1], meta_columns=True).to_arrow().to_pylist()]
        key = lambda r: r["_hoodie_record_key"]  # noqa: E731
        return [sorted(f, key=key) for f in found]

    known = [i.time for i in table.timeline.completed_writes()]
    before = answers()
    assert table.log_compact(options={**options, **TWO}).executed
    assert answers() == before
    table.upsert([{"id": 0, "ts": 99, "a": 1, "b": "end", "_hoodie_is_deleted": None}], options=options)
    latest = table.read(meta_columns=True).to_arrow().to_pylist()
    assert table.log_compact(options={**options, **TWO}).executed
    assert table.read(meta_columns=True).to_arrow().to_pylist() == latest
    table.compact(options=options)
    assert sorted(
        r["id"] for r in table.read(query="read_optimized", meta_columns=True).to_arrow().to_pylist()
    ) == sorted(r["id"] for r in latest)
    assert table.verify(deep=True) == []


def test_memory_beyond_the_limit_goes_to_disk(tmp_path):
    options = {"hoodie.compact.inline": "false", "hoodie.memory.compaction.max.size": "8000"}
    table = mor(tmp_path)
    for ts in (11, 12, 13):
        table.upsert(
            [{"id": n, "ts": ts, "a": n * ts, "b": "v" * 50} for n in range(0, 900, ts % 3 + 1)],
            options=options,
        )
        table.delete(f"id < {ts}", options=options)
    before = sorted(table.read(meta_columns=True).to_arrow().to_pylist(), key=lambda r: r["id"])
    assert table.log_compact(options={**options, **TWO}).executed
    assert sorted(table.read(meta_columns=True).to_arrow().to_pylist(), key=lambda r: r["id"]) == before


def test_virtual_keys_and_dropped_partition_columns(tmp_path):
    for name, extra in (
        ("virtual", {"hoodie.populate.meta.fields": "false"}),
        ("dropped", {"hoodie.datasource.write.drop.partition.columns": "true"}),
    ):
        rows_ = [{"id": n, "p": str(n % 2), "ts": 1, "v": n} for n in range(6)]
        table = HudiTable.create(
            str(tmp_path / name), pa.Table.from_pylist(rows_), table_type="MERGE_ON_READ", record_keys="id",
            partition_fields="p", ordering_fields="ts", options=extra,
        )  # fmt: skip
        options = {"hoodie.compact.inline": "false", **extra}
        table.insert(rows_, options=options)
        for ts in (2, 3, 4):
            table.upsert([{**r, "ts": ts, "v": r["v"] * ts} for r in rows_[ts:]], options=options)
        table.delete("id = 5", options=options)
        before = sorted(table.read(["id", "p", "v"]).to_arrow().to_pylist(), key=lambda r: r["id"])
        assert table.log_compact(options={**options, **TWO}).executed
        after = sorted(table.read(["id", "p", "v"]).to_arrow().to_pylist(), key=lambda r: r["id"])
        assert after == before


def test_writes_merge_log_blocks_inline_and_no_compaction_is_disturbed(tmp_path):
    table = mor(tmp_path)
    options = {
        "hoodie.log.compaction.inline": "true",
        "hoodie.log.compaction.blocks.threshold": "3",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "8",
    }
    want = {n: n for n in range(8)}
    for ts in range(11, 21):
        want[ts % 8] = ts
        table.upsert([{"id": ts % 8, "ts": ts, "a": ts, "b": "y"}], options=options)
        assert {r["id"]: r["a"] for r in table.read(meta_columns=True).to_arrow().to_pylist()} == want
    operations = [c["operation"] for c in table.inspect.commits().to_pylist()]
    assert {"LOG_COMPACT", "COMPACT"} <= set(operations)
    assert table.verify(deep=True) == []


def test_a_user_defined_merge_is_refused_before_anything_is_written(tmp_path):
    table = mor(tmp_path, options={"hudi.merge": '{"a": "sum"}'})
    for ts in (11, 12):
        table.upsert([{"id": 1, "ts": ts, "a": 1, "b": "y"}])
    before = len(table.timeline.instants)
    with pytest.raises(UnsupportedError, match="base row"):
        table.log_compact(options=TWO)
    with pytest.raises(UnsupportedError, match="base row"):
        table.upsert(
            [{"id": 1, "ts": 13, "a": 1, "b": "y"}], options={"hoodie.log.compaction.inline": "true"}
        )
    assert len(HudiTable.open(table.storage).timeline.instants) == before


def test_a_cut_at_every_storage_call_leaves_the_rows_and_a_table_that_goes_on(tmp_path):
    for cut in range(5, 400, 13):
        table = TableBuilder(open_storage(str(tmp_path / str(cut))), table_type="MERGE_ON_READ")
        table.commit("first", table.base("first", {"a": 1, "b": 2, "c": 3}))
        table.commit("second", table.log("second", {"a": 20, "d": 40}))
        table.commit("third", table.log("third", {"b": 30}, deletes=["c"]))
        faults = Faults(Fault(CRASH, number=cut))
        with faults.process():
            HudiTable.open(faults.wrap(table.storage)).log_compact(options=TWO)
        assert rows(table) == {"a": 20, "b": 30, "d": 40}
        HudiTable.open(table.storage).rollback()
        HudiTable.open(table.storage).log_compact(options=TWO)
        assert rows(table) == {"a": 20, "b": 30, "d": 40}
        if not faults.struck:
            break
    else:
        pytest.fail("never came to its end")
