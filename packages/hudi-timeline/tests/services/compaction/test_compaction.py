"""Compaction of tables: their rows stay what they are, whoever dies or writes meanwhile."""

import json

import pyarrow.parquet as pq
import pytest

from hudi_format.errors import (
    ConcurrentWriterError,
    ConflictingOptionError,
    CorruptFileError,
    InstantNotFoundError,
    MissingFileError,
    UnsupportedError,
    WriteConflictError,
)
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, write_hudi
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.services.compaction import slice_tasks
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import COMMIT, COMPACTION, DELTA_COMMIT, INFLIGHT, REQUESTED

PLAN = "HoodieCompactionPlan"


@pytest.fixture
def made(tmp_path):
    """One group with a base file and two logs, one with a base file alone, one with logs alone."""
    table = TableBuilder(open_storage(str(tmp_path / "t")), table_type="MERGE_ON_READ")
    table.commit(
        "first", table.base("first", {"a": 1, "b": 2, "c": 3}), table.base("first", {"z": 1}, group=2)
    )
    table.commit("second", table.log("second", {"a": 20, "d": 40}))
    table.commit(
        "third",
        table.log("third", {"b": 30}, deletes=["c"]),
        table.log("third", {"n": 5}, on="third", group=3),
    )
    return table


EXPECTED = {"a": 20, "b": 30, "d": 40, "n": 5, "z": 1}


def rows(made, **how):
    return {r["id"]: r["v"] for r in made.table.read(["id", "v"], **how).to_arrow().to_pylist()}


def meta(made):
    columns = ["_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path"]
    return sorted(map(tuple, (r.values() for r in made.table.read(columns).to_arrow().to_pylist())))


def commit_of(made, instant):
    return json.loads(made.storage.read(made.path_of(instant, COMMIT, "COMPLETED")))


def states(made):
    return [(i.action, i.state) for i in made.table.timeline.instants if i.action in (COMPACTION, "rollback")]


@pytest.mark.req("TM-14", "TS-03", "TL-24", "PM-15")
def test_a_compaction_merges_logs_into_base_files_and_keeps_rows_and_their_meta_columns(made):
    before = meta(made)
    result = made.table.compact()
    assert rows(made) == EXPECTED
    assert rows(made, query="read_optimized") == EXPECTED
    assert meta(made) == before
    assert made.table.verify(deep=True) == []
    (instant,) = result.executed
    assert instant == result.scheduled
    commit = commit_of(made, instant)
    assert (commit["compacted"], commit["operationType"]) == (True, "COMPACT")
    assert "id" in commit["extraMetadata"]["schema"]
    by_group = {s["fileId"]: s for s in commit["partitionToWriteStats"]["p0"]}
    assert set(by_group) == {made.group(1), made.group(3)}
    merged, alone = by_group[made.group(1)], by_group[made.group(3)]
    numbers = ("numWrites", "numUpdateWrites", "numInserts", "numDeletes", "totalLogFilesCompacted")
    assert [merged[n] for n in numbers] == [3, 2, 1, 1, 2]
    assert [alone[n] for n in numbers] == [1, 0, 1, 0, 1]
    assert merged["prevCommit"] == made.at("first")
    assert alone["prevCommit"] == "null"
    assert (merged["totalLogBlocks"], merged["totalLogRecords"], merged["totalUpdatedRecordsCompacted"]) == (
        3,
        3,
        4,
    )
    assert not markers.list_instants(made.storage)
    assert not heartbeat.list_instants(made.storage)


def test_a_new_base_file_has_a_footer_as_writes_make_it_and_its_own_name_in_its_rows(made, tmp_path):
    result = made.table.compact()
    for stat in result.write_stats[result.scheduled]:
        file = tmp_path / "t" / stat.path
        footer = pq.read_metadata(file).metadata
        assert b"org.apache.hudi.bloomfilter" in footer
        assert footer[b"hoodie_min_record_key"] <= footer[b"hoodie_max_record_key"]
        names = [f["name"] for f in json.loads(footer[b"parquet.avro.schema"])["fields"]]
        assert names[0] == "_hoodie_commit_time"
        assert names[-1] == "p"
        assert set(pq.read_table(file)["_hoodie_file_name"].to_pylist()) == {file.name}


@pytest.mark.req("TS-01", "TS-02")
def test_scheduling_and_execution_may_be_two_calls(made):
    planned = made.table.compact(mode="schedule")
    assert planned.scheduled
    assert not planned.executed
    assert states(made) == [(COMPACTION, REQUESTED)]
    assert rows(made) == EXPECTED
    again = made.table.compact(mode="schedule")
    assert not again.scheduled
    assert "no file slice" in again.skipped
    done = made.table.compact(mode="execute", instant=planned.scheduled)
    assert done.executed == (planned.scheduled,)
    assert rows(made, query="read_optimized") == EXPECTED
    with pytest.raises(InstantNotFoundError, match="no compaction"):
        made.table.compact(mode="execute", instant=planned.scheduled)


@pytest.mark.req("TS-09")
def test_what_is_written_beside_a_pending_compaction_is_read_before_and_after_it(made):
    planned = made.table.compact(mode="schedule").scheduled
    made.instants["plan"] = planned
    made.instants["beside"] = str(int(planned) + 1)
    made.commit("beside", made.log("beside", {"a": 99, "e": 1}, deletes=["b"], on="plan"))
    expected = {"a": 99, "d": 40, "e": 1, "n": 5, "z": 1}
    assert rows(made) == expected
    made.table.compact(mode="execute")
    assert rows(made) == expected
    assert rows(made, query="read_optimized") == EXPECTED
    made.table.compact()
    assert rows(made, query="read_optimized") == expected


def test_dry_runs_change_nothing_and_give_the_plan_that_is_then_made(made, tmp_path):
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    planned = made.table.compact(dry_run=True)
    assert len(planned.plan.operations) == 2
    assert not planned.scheduled
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    made_plan = made.table.compact(plan=planned.plan, mode="schedule")
    assert made_plan.plan == planned.plan
    assert made.table.compact(mode="execute", dry_run=True).plan.operations == planned.plan.operations
    assert states(made) == [(COMPACTION, REQUESTED)]


def test_a_plan_of_an_earlier_state_is_refused(made):
    plan = made.table.compact(dry_run=True).plan
    made.commit("fourth", made.log("fourth", {"a": 7}))
    with pytest.raises(WriteConflictError, match="other files than when the plan was made"):
        made.table.compact(plan=plan)
    made.table.compact(mode="schedule")
    with pytest.raises(WriteConflictError, match="in another pending plan"):
        made.table.compact(plan=plan, mode="schedule")
    assert [s for s in states(made) if s[0] == COMPACTION] == [(COMPACTION, REQUESTED)]


@pytest.mark.req("TS-34")
def test_nothing_is_planned_beside_a_write_that_began_before(made):
    made.pending("open", alive=True)
    result = made.table.compact()
    assert not result.scheduled
    assert made.at("open") in result.skipped
    assert states(made) == []


def test_one_that_has_waited_long_enough_says_beside_what_it_began(made, monkeypatch):
    def has_waited(self, has_folder, others):
        self.warning = "it began beside 1 after 60000 ms"

    monkeypatch.setattr(Precedence, "is_first", True)
    monkeypatch.setattr(Precedence, "give_way", has_waited)
    assert "it began beside 1 after 60000 ms" in made.table.compact(mode="schedule").warnings


def test_a_foreign_plan_is_not_executed_over_a_write_that_it_overtook(made):
    plan = made.table.compact(dry_run=True).plan
    made.pending("open")
    made.pending("plan", COMPACTION, request=plan.to_bytes(), inflight=None)
    with pytest.raises(ConcurrentWriterError, match="began before the compaction was planned"):
        made.table.compact(mode="execute")
    made.complete("open", made.log("open", {"a": 7}, on="first"), action=DELTA_COMMIT)
    before = rows(made)
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="would lose its rows"):
            made.table.compact(mode="execute", dry_run=dry_run)
    assert states(made) == [(COMPACTION, REQUESTED)]
    assert rows(made) == before


def test_an_execution_left_dead_is_rolled_back_and_run_again(made, monkeypatch):
    planned = made.table.compact(mode="schedule").scheduled
    made.storage.create(made.path_of(planned, COMPACTION, INFLIGHT), b"")
    made.instants["plan"] = planned
    left = made.base("plan", {"a": 0}, prev="first")
    markers.create(made.storage, planned, "p0", left.path.rpartition("/")[2], markers.MERGE)
    assert made.table.compact(mode="execute", instant=planned).executed == (planned,)
    assert made.storage.info(left.path) is None
    assert rows(made) == rows(made, query="read_optimized") == EXPECTED
    assert made.table.verify(deep=True) == []


def test_one_that_another_program_has_begun_is_run_only_by_its_name(made):
    planned = made.table.compact(mode="schedule").scheduled
    made.storage.create(made.path_of(planned, COMPACTION, INFLIGHT), b"")  # Apache Hudi's have no heartbeat
    begun = [(COMPACTION, INFLIGHT)]
    for result in (made.table.compact(mode="execute", dry_run=True), made.table.compact()):
        assert not result.executed
        assert not result.plan
        assert f"hudi compact run PATH {planned}" in " ".join(result.warnings)
        assert states(made) == begun
    assert rows(made) == EXPECTED
    assert made.table.compact(mode="execute", instant=planned).executed == (planned,)
    assert rows(made) == rows(made, query="read_optimized") == EXPECTED


def test_one_that_is_alive_is_left_alone(made):
    planned = made.table.compact(mode="schedule").scheduled
    beat = heartbeat.start(made.storage, planned)
    try:
        made.storage.create(made.path_of(planned, COMPACTION, INFLIGHT), b"")
        with pytest.raises(ConcurrentWriterError, match="running"):
            made.table.compact(mode="execute")
    finally:
        beat.stop()
    assert states(made) == [(COMPACTION, INFLIGHT)]


def test_a_failed_execution_leaves_the_plan_and_no_file(made, tmp_path):
    planned = made.table.compact(mode="schedule").scheduled
    files = set(tmp_path.rglob("*.parquet"))

    def fail_after_one(tasks):
        slice_tasks.run_task(tasks[0])
        raise RuntimeError("the second task failed")

    with pytest.raises(RuntimeError, match="second task"):
        made.table.compact(mode="execute", run=fail_after_one)
    assert (COMPACTION, REQUESTED) in states(made)
    assert set(tmp_path.rglob("*.parquet")) == files
    assert not heartbeat.list_instants(made.storage)
    assert not markers.list_instants(made.storage)
    assert made.table.compact(mode="execute").executed == (planned,)
    assert rows(made) == EXPECTED


def test_files_of_second_attempts_are_removed_by_the_commit(made, tmp_path):
    def twice(tasks):
        slice_tasks.run_on_threads([t.of_attempt(1) for t in tasks])
        return slice_tasks.run_on_threads(tasks)

    result = made.table.compact(run=twice)
    stats = result.write_stats[result.scheduled]
    there = {p.name for p in tmp_path.rglob(f"*_{result.scheduled}.parquet")}
    assert there == {s.path.rpartition("/")[2] for s in stats}
    assert made.table.verify(deep=True) == []


@pytest.mark.parametrize("what", ["heartbeat", "inflight", "markers", "plan"])
def test_a_process_that_was_taken_for_dead_completes_nothing(made, what):
    planned = made.table.compact(mode="schedule").scheduled

    def taken_away(tasks):
        stats = slice_tasks.run_on_threads(tasks)
        if what == "heartbeat":
            made.storage.delete(heartbeat.heartbeat_path(planned))
        elif what == "inflight":
            made.storage.delete(made.path_of(planned, COMPACTION, INFLIGHT))
        elif what == "markers":
            markers.delete(made.storage, planned)
        else:
            path = made.path_of(planned, COMPACTION, REQUESTED)
            made.storage.publish(path, made.storage.read(path) + b"")
            made.storage.publish(path, avro_files.render(PLAN, {"operations": [], "version": 2}))
        return stats

    with pytest.raises(ConcurrentWriterError):
        made.table.compact(mode="execute", run=taken_away)
    assert not any(i.time == planned and i.completed for i in made.table.timeline.instants)


def test_a_commit_beside_the_execution_does_not_disturb_it(made):
    planned = made.table.compact(mode="schedule").scheduled
    made.instants["plan"] = planned

    def beside(tasks):
        made.instants["beside"] = str(int(planned) + 1)
        made.commit("beside", made.log("beside", {"a": 99}, on="plan"))
        return slice_tasks.run_on_threads(tasks)

    made.table.compact(mode="execute", run=beside)
    assert rows(made) == {**EXPECTED, "a": 99}


def test_a_write_undone_beside_the_execution_ends_it(made):
    planned = made.table.compact(mode="schedule").scheduled

    def undone(tasks):
        stats = slice_tasks.run_on_threads(tasks)
        made.storage.delete(made.path_of(made.at("third"), DELTA_COMMIT, "COMPLETED"))
        return stats

    with pytest.raises(WriteConflictError, match="was rolled back"):
        made.table.compact(mode="execute", run=undone)
    assert not any(i.time == planned and i.completed for i in made.table.timeline.instants)


@pytest.mark.parametrize("what", ["base", "log"])
def test_a_plan_whose_files_are_gone_stays_pending(made, what):
    planned = made.table.compact(mode="schedule")
    operation = next(o for o in planned.plan.operations if o.data_file)
    name = operation.data_file if what == "base" else operation.log_files[0]
    made.storage.delete(f"p0/{name}")
    with pytest.raises(MissingFileError) as e:
        made.table.compact(mode="execute")
    assert e.value.file == f"p0/{name}"
    assert states(made) == [(COMPACTION, REQUESTED)]


def test_a_damaged_committed_block_is_not_compacted_away(made):
    planned = made.table.compact(mode="schedule")
    operation = next(o for o in planned.plan.operations if o.data_file)
    path = f"p0/{operation.log_files[0]}"
    data = bytearray(made.storage.read(path))
    data[: len(data) // 2] = bytes(len(data) // 2)
    made.storage.publish(path, bytes(data))
    with pytest.raises(CorruptFileError) as e:
        made.table.compact(mode="execute")
    assert e.value.file == path
    assert (COMPACTION, REQUESTED) in states(made)
    assert not [s for s in made.table.timeline.instants if s.action == COMMIT]


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"version": 3}, UnsupportedError, "version 3"),
        ({"partitionPath": "../other"}, CorruptFileError, "not below the table"),
        ({"dataFilePath": "../../x.parquet"}, CorruptFileError, "no earlier base file"),
        ({"deltaFilePaths": ["/etc/passwd"]}, CorruptFileError, "no log file"),
        ({"fileId": "other"}, CorruptFileError, "'other'"),
        ({"bootstrapFilePath": "x"}, UnsupportedError, "bootstrapped"),
        ({"deltaFilePaths": [], "dataFilePath": None}, CorruptFileError, "names no file"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_an_error_and_stays(made, change, error, match):
    plan = made.table.compact(mode="schedule")
    path = made.path_of(plan.scheduled, COMPACTION, REQUESTED)
    record = avro_files.parse(PLAN, made.storage.read(path))
    for key, value in change.items():
        (record if key in record else record["operations"][0])[key] = value
    made.storage.publish(path, avro_files.render(PLAN, record))
    with pytest.raises(error, match=match) as e:
        made.table.compact(mode="execute")
    assert e.value.instant == plan.scheduled
    assert states(made) == [(COMPACTION, REQUESTED)]


def test_a_slice_without_rows_and_base_file_makes_no_file(made):
    made.commit("fourth", made.log("fourth", {}, deletes=["n"], on="third", group=3))
    result = made.table.compact()
    assert {s.file_id for s in result.write_stats[result.scheduled]} == {made.group(1)}
    assert rows(made) == {k: v for k, v in EXPECTED.items() if k != "n"}
    assert made.table.verify(deep=True) == []


def test_a_base_file_of_which_no_row_is_left_is_written_without_rows(made):
    made.commit("fourth", made.log("fourth", {}, deletes=["a", "b", "d"]))
    result = made.table.compact()
    assert [s.num_writes for s in result.write_stats[result.scheduled] if s.file_id == made.group(1)] == [0]
    assert rows(made) == {"n": 5, "z": 1}
    assert made.table.verify(deep=True) == []


def test_log_records_beyond_the_memory_go_to_disk_and_back(tmp_path):
    made = TableBuilder(open_storage(str(tmp_path / "t")), table_type="MERGE_ON_READ")
    made.commit("first", made.base("first", {f"k{n:05d}": n for n in range(3000)}))
    made.commit("second", made.log("second", {f"k{n:05d}": -n for n in range(1000, 4000)}))
    before = rows(made)
    result = made.table.compact(options={"hoodie.memory.compaction.max.size": "20000"})
    assert rows(made) == before
    assert len(before) == 4000
    (stat,) = result.write_stats[result.scheduled]
    assert (stat.num_update_writes, stat.num_inserts) == (2000, 1000)


def test_a_copy_on_write_table_has_nothing_to_compact(tmp_path):
    made = TableBuilder(open_storage(str(tmp_path / "t")))
    made.commit("first", made.base("first", {"a": 1}))
    with pytest.raises(UnsupportedError, match="no log files"):
        made.table.compact()


def test_a_merge_that_the_table_does_not_name_is_refused(made):
    with pytest.raises(ConflictingOptionError, match="is not how the table merges"):
        made.table.compact(options={"hudi.merge": '{"v": "sum"}'})
    assert rows(made) == EXPECTED


@pytest.mark.req("TS-08")
def test_only_if_due_waits_for_the_trigger(made):
    assert "not due" in made.table.compact(only_if_due=True).skipped
    options = {"hoodie.compact.inline.max.delta.commits": "3"}
    assert made.table.compact(only_if_due=True, options=options).executed


def test_a_completed_compaction_can_be_rolled_back(made):
    instant = made.table.compact().scheduled
    made.table.rollback(instant)
    assert rows(made) == EXPECTED
    assert made.table.compact().executed
    assert rows(made, query="read_optimized") == EXPECTED


def test_time_travel_and_incremental_reads_see_no_difference(made):
    before = [rows(made, as_of=made.at(n)) for n in ("first", "second", "third")]

    def since(begin):
        found = made.table.read_incremental(made.at(begin), columns=["id", "v"]).to_arrow().to_pylist()
        return {r["id"]: r["v"] for r in found}

    changed = since("first"), since("second")
    made.table.compact()
    assert [rows(made, as_of=made.at(n)) for n in ("first", "second", "third")] == before
    assert (since("first"), since("second")) == changed


def test_files_of_changes_that_apache_hudi_names_in_its_plan_are_passed_over(made):
    plan = made.table.compact(mode="schedule")
    path = made.path_of(plan.scheduled, COMPACTION, REQUESTED)
    record = avro_files.parse(PLAN, made.storage.read(path))
    for operation in record["operations"]:
        operation["deltaFilePaths"] += [f"{n}.cdc" for n in operation["deltaFilePaths"]]
    made.storage.publish(path, avro_files.render(PLAN, record))
    assert [c.error for c in made.table.validate_compaction(plan.scheduled)] == ["", ""]
    assert not made.table.repair_compaction(plan.scheduled).rewritten
    assert made.table.compact(mode="execute").executed == (plan.scheduled,)
    assert rows(made, query="read_optimized") == EXPECTED


def test_a_base_file_without_rows_is_compacted_with_its_logs(tmp_path):
    """Such a file, of whose rows the last was deleted, has no row group."""
    options = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
    }
    write_hudi(tmp_path / "t", [{"id": "a", "v": 1}], key="id", options=options)
    table = HudiTable.open(tmp_path / "t")
    table.compact()
    table.delete([{"id": "a"}])
    table.compact()
    assert [
        pq.ParquetFile(tmp_path / "t" / p).num_row_groups for p in table.read().plan.files["path"].to_pylist()
    ] == [0]
    for new in ({"id": "a", "v": 2}, {"id": "b", "v": 3}):
        table.upsert([new])
        assert table.compact().executed
    assert table.read().to_arrow().to_pylist() == [{"id": "a", "v": 2}, {"id": "b", "v": 3}]
