"""Resizes of rings that are planned by one call and executed by another."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, CorruptFileError, UnsupportedError, WriteConflictError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.services.buckets import pending_resizes, resizing
from hudi_timeline.services.buckets.clustering_plans import CHILDREN, SEQUENCE, read_resize
from hudi_timeline.services.buckets.resize_tasks import run_on_threads
from hudi_timeline.testing import CHANGES, CRASH, Fault, Faults
from hudi_timeline.timeline.action_metadata import read_action, render_action
from hudi_timeline.writing import operation

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
IDS = [f"k{n:02d}" for n in range(40)]
FULL = {"hoodie.parquet.max.file.size": "100", "hoodie.bucket.index.max.num.buckets": "6"}
LEAST = {"hoodie.bucket.index.min.num.buckets": "1"}


def rows(ids, p="a", ts=1):
    return pa.table([ids, [p] * len(ids), [ts] * len(ids), [7] * len(ids)], schema=SCHEMA)


@pytest.fixture
def table(tmp_path):
    made = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, table_type="MERGE_ON_READ", name="t", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
        options={
            "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3",
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        },
    )  # fmt: skip
    made.upsert(pa.concat_tables([rows(IDS), rows(IDS[:20], "b")]))
    made.upsert(rows(IDS[5:15], ts=2))
    return made


def found(table):
    columns = ["id", "p", "ts", "_hoodie_commit_seqno"]
    read = HudiTable.open(table.uri).read(columns).to_arrow()
    return sorted(tuple(r.values()) for r in read.to_pylist())


def request_of(table):
    storage = open_storage(table.uri)
    (pending,) = table.timeline.pending_writes()
    return storage, pending, read_action(storage, pending)


@pytest.mark.req("IX-11")
@pytest.mark.parametrize("options", [FULL, LEAST], ids=["split", "merge"])
def test_a_plan_is_scheduled_shown_and_executed(table, options):
    before = found(table)
    dry = table.resize_buckets(mode="schedule", options=options, dry_run=True)
    assert not table.timeline.pending_writes()
    made = table.resize_buckets(mode="schedule", options=options)
    assert (made.instant, dry.instant) == (table.timeline.pending_writes()[0].time, "")
    assert made.plan.buckets == dry.plan.buckets
    assert found(table) == before
    with pytest.raises(UnsupportedError, match="--pending"):
        table.upsert(rows(IDS))
    shown = table.resize_buckets(mode="execute", dry_run=True).plan
    assert sorted(m.file_ids for m in shown.moves) == sorted(m.file_ids for m in made.plan.moves)
    assert {(m.partition, n, f) for m in shown.moves for n, f in m.targets.items()} == {
        (m.partition, n, f) for m in made.plan.moves for n, f in m.targets.items()
    }
    done = table.resize_buckets(mode="execute")
    assert (done.executed, done.plan.buckets) == ((made.instant,), made.plan.buckets)
    assert found(table) == before
    assert HudiTable.open(table.uri).verify(deep=True) == []
    table.upsert(rows([*IDS[::3], "new"], ts=3))
    assert HudiTable.open(table.uri).verify(deep=True) == []
    assert table.resize_buckets(mode="execute").executed == ()


def groups_of(table, partition="a"):
    """Ids of a partition by file group."""
    out = {}
    read = HudiTable.open(table.uri).read(["id", "_hoodie_file_name"], filter=f"p = '{partition}'").to_arrow()
    for row in read.to_pylist():
        out.setdefault(row["_hoodie_file_name"].lstrip(".")[:38], []).append(row["id"])
    return out


def planned(table, **more):
    """A plan of one bucket of partition a, and ids of that bucket and of the others."""
    one = {**FULL, "hoodie.bucket.index.max.num.buckets": "4"}
    made = table.resize_buckets(mode="schedule", partitions=["a"], options={**one, **more})
    ids = groups_of(table)
    touched = [i for m in made.plan.moves for f in m.file_ids for i in ids[f]]
    return made, touched, sorted(set(IDS) - set(touched))


SERVICES = {
    "hoodie.compact.inline.max.delta.commits": "2", "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3",
}  # fmt: skip


@pytest.mark.req("NEW-22", "IX-11")
@pytest.mark.parametrize("metadata", ["false", "true"])
@pytest.mark.sampled(2)
def test_writes_to_other_buckets_go_on_beside_a_plan_and_all_services_with_them(table, metadata):
    on = {"hoodie.metadata.enable": metadata}
    table.upsert(rows(IDS[:1]), options=on)
    made, touched, others = planned(table)
    assert touched
    assert others
    expected = {(r[0], r[1]): r[2] for r in found(table)}
    for step in range(3, 8):
        changes = pa.concat_tables(
            [rows(others[step::3], ts=step), rows(IDS[step:30], "b", step), rows(IDS[:step], "c", step)]
        )
        table.upsert(changes, options={**SERVICES, **on})
        expected.update({(r["id"], r["p"]): r["ts"] for r in changes.to_pylist()})
    table.delete(rows(others[:2]), options=on)
    for gone in others[:2]:
        del expected[gone, "a"]
    assert {(r[0], r[1]): r[2] for r in found(table)} == expected
    assert [i.time for i in table.timeline.pending_writes()] == [made.instant]
    done = HudiTable.open(table.uri).resize_buckets(mode="execute", options=on)
    assert done.executed == (made.instant,)
    assert {(r[0], r[1]): r[2] for r in found(table)} == expected
    table.upsert(rows([*IDS, "new"], ts=20), options=on)
    expected |= {(i, "a"): 20 for i in (*IDS, "new")}
    assert {(r[0], r[1]): r[2] for r in found(table)} == expected
    assert HudiTable.open(table.uri).verify(deep=True) == []


@pytest.mark.req("NEW-22", "NEW-14")
def test_writes_to_planned_buckets_are_refused_and_leave_nothing(table):
    made, touched, others = planned(table)
    before = found(table)
    for write, data in (
        (table.upsert, rows(touched[:1])),
        (table.upsert, rows([*others, touched[0]])),
        (table.delete, rows(touched[:1])),
        (table.insert, rows(touched[:1])),
    ):
        with pytest.raises(UnsupportedError, match="is split or merged by the clustering") as e:
            write(data)
        assert e.value.instant == made.instant
    for write, data in (
        (table.insert_overwrite, rows(others)),
        (table.insert_overwrite_table, rows(others)),
        (table.bulk_insert, rows(["z1"])),
        (table.delete_partitions, "b"),
    ):
        with pytest.raises(UnsupportedError, match="a clustering that is not finished"):
            write(data)
    assert found(table) == before
    assert [i.time for i in table.timeline.pending_writes()] == [made.instant]
    table.resize_buckets(mode="execute")
    table.upsert(rows(IDS, ts=9))
    assert HudiTable.open(table.uri).verify(deep=True) == []


@pytest.mark.req("NEW-22")
@pytest.mark.parametrize("policy", ["EAGER", "LAZY"])
def test_writes_to_other_buckets_go_on_beside_an_execution(table, monkeypatch, policy):
    how = {"hoodie.cleaner.policy.failed.writes": policy}
    _, touched, others = planned(table)
    other = HudiTable.open(table.uri)

    def late(tasks):
        stats = run_on_threads(tasks)
        other.upsert(pa.concat_tables([rows(others[:3], ts=9), rows(IDS[:3], "c", 9)]), options=how)
        with pytest.raises(UnsupportedError, match="is split or merged"):
            other.upsert(rows(touched[:1], ts=9), options=how)
        return stats

    monkeypatch.setattr(resizing, "run_on_threads", late)
    table.resize_buckets(mode="execute", options=how)
    assert not HudiTable.open(table.uri).timeline.pending_writes()
    assert sorted(r[:2] for r in found(table) if r[2] == 9) == sorted(
        [*((i, "a") for i in others[:3]), *((i, "c") for i in IDS[:3])]
    )
    table.upsert(rows(IDS, ts=10), options=how)
    assert HudiTable.open(table.uri).verify(deep=True) == []


@pytest.mark.req("NEW-22", "NEW-14")
def test_a_write_that_outlasts_an_execution_is_refused_only_where_its_buckets_changed(table):
    lazy = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
    made, _, others = planned(table)
    other = HudiTable.open(table.uri)

    def meanwhile(_):
        other.resize_buckets(mode="execute", options=lazy)
        return True

    table.upsert(rows(others, ts=9), options=lazy, validators=[meanwhile])
    assert made.instant in [i.time for i in HudiTable.open(table.uri).timeline.completed_writes()]
    assert {r[0] for r in found(table) if r[2] == 9} == set(others)
    assert HudiTable.open(table.uri).verify(deep=True) == []


def written_to_both(table, made, key, monkeypatch):
    """A write of one row to its old and to its new bucket, as Apache Hudi's writers do it."""
    with monkeypatch.context() as patch:
        patch.setattr(operation, "refuse_planned_buckets", lambda *_: None)
        at = table.upsert(rows([key], ts=5)).instant
    storage = open_storage(table.uri)
    (completed,) = [i for i in HudiTable.open(table.uri).timeline.completed_writes() if i.time == at]
    commit = json.loads(storage.read(completed.path))
    (stat,) = commit["partitionToWriteStats"]["a"]
    number = made.plan.index(made.instant).of(pa.array([key]), "a")[0]
    (group,) = [m.targets[number] for m in made.plan.moves if number in m.targets]
    token = stat["path"].rpartition("_")[2]
    path = f"a/.{group}_{made.instant}.log.1_{token}"
    storage.create(path, storage.read(stat["path"]))
    commit["partitionToWriteStats"]["a"].append(
        {**stat, "path": path, "fileId": group, "prevCommit": made.instant}
    )
    storage.publish(completed.path, json.dumps(commit).encode())


@pytest.mark.req("IX-11")
def test_a_plan_whose_new_buckets_were_written_to_is_not_taken_back(table, monkeypatch):
    made, touched, _ = planned(table)
    written_to_both(table, made, touched[0], monkeypatch)
    before = found(table)
    assert [r[:3] for r in before if r[2] == 5] == [(touched[0], "a", 5)]
    table = HudiTable.open(table.uri)
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="records would be there twice"):
            table.rollback(made.instant, dry_run=dry_run)

    def failing(tasks):
        run_on_threads(tasks)
        raise RuntimeError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(resizing, "run_on_threads", failing)
        with pytest.raises(RuntimeError) as e:
            table.resize_buckets(mode="execute")
    assert "records would be there twice" in e.value.__notes__[-1]
    assert [i.time for i in HudiTable.open(table.uri).timeline.pending_writes()] == [made.instant]
    assert found(table) == before
    assert table.resize_buckets(mode="execute").executed == (made.instant,)
    assert found(table) == before
    table.upsert(rows(IDS, ts=9))
    assert len(found(table)) == len(before)
    assert HudiTable.open(table.uri).verify(deep=True) == []


@pytest.mark.req("IX-11")
def test_a_planned_merge_around_an_empty_bucket_keeps_every_key(table):
    ids = groups_of(table)
    (_, first), (_, second), (_, third) = sorted(ids.items())
    for left_out in (first, second, third):
        table.insert_overwrite(rows(sorted(set(IDS) - set(left_out)), ts=3))
        before = found(table)
        made = table.resize_buckets(mode="schedule", partitions=["a"], options=LEAST)
        assert made.instant
        table.resize_buckets(mode="execute")
        assert found(table) == before
        table.upsert(rows(IDS, ts=4))
        assert len([r for r in found(table) if r[1] == "a"]) == len(IDS)
        assert HudiTable.open(table.uri).verify(deep=True) == []
        table.resize_buckets(partitions=["a"], options={**FULL, "hoodie.bucket.index.max.num.buckets": "3"})


@pytest.mark.req("IX-11")
def test_a_resize_in_one_call_executes_what_is_pending_first(table):
    before = found(table)
    made = table.resize_buckets(mode="schedule", options=FULL)
    done = table.resize_buckets(options=LEAST)
    assert done.executed == (made.instant,)
    assert done.plan.buckets == {"a": (6, 1), "b": (6, 1)}
    assert found(table) == before
    table.upsert(rows(IDS, ts=3))
    assert HudiTable.open(table.uri).verify(deep=True) == []


@pytest.mark.req("IX-11")
def test_an_execution_that_dies_is_executed_from_the_start(table):
    before = found(table)
    made = table.resize_buckets(mode="schedule", options=FULL)
    for nth in range(5, 60, 10):
        faults = Faults(Fault(CRASH, operation=CHANGES, nth=nth))
        with faults.process():
            HudiTable._of(faults.wrap(open_storage(table.uri))).resize_buckets(mode="execute")
        assert faults.dead or nth > 45
        assert found(table) == before
        if not table.timeline.pending_writes():
            break
    table.resize_buckets(mode="execute")
    assert made.instant in [i.time for i in HudiTable.open(table.uri).timeline.completed_writes()]
    table.upsert(rows([*IDS, "new"], ts=3))
    assert len(found(table)) == len(before) + 1
    assert HudiTable.open(table.uri).verify(deep=True) == []


@pytest.mark.req("IX-11")
@pytest.mark.parametrize("mode", ["execute", "schedule_and_execute"])
def test_a_table_with_columns_that_were_renamed_is_refused_whoever_made_the_plan(table, monkeypatch, mode):
    table.alter().rename("n", "m").execute()
    monkeypatch.setattr(pending_resizes, "check_resize", lambda *_: None)  # as Apache Hudi
    table.resize_buckets(mode="schedule", options=FULL)
    monkeypatch.undo()
    before = table.read(["id", "m"]).to_arrow().sort_by("id")
    with pytest.raises(UnsupportedError, match="schema-on-read"):
        table.resize_buckets(mode=mode)
    assert HudiTable.open(table.uri).read(["id", "m"]).to_arrow().sort_by("id") == before
    assert len(table.timeline.pending_writes()) == 1


@pytest.mark.req("IX-11")
def test_columns_that_are_renamed_before_the_instant_are_seen(table, monkeypatch):
    other, begin = HudiTable.open(table.uri), resizing.begin_transaction

    def late(*given, **how):
        other.alter().rename("n", "m").execute()
        return begin(*given, **how)

    monkeypatch.setattr(resizing, "begin_transaction", late)
    with pytest.raises(UnsupportedError, match="schema-on-read"):
        table.resize_buckets(options=FULL)
    found_now = HudiTable.open(table.uri).read(["m"]).to_arrow().column("m")
    assert found_now.null_count == 0


@pytest.mark.req("IX-11")
def test_an_execution_that_fails_takes_the_plan_back(table, monkeypatch):
    before = found(table)
    table.resize_buckets(mode="schedule", options=FULL)

    def failing(tasks):
        run_on_threads(tasks)
        raise RuntimeError("no more")

    monkeypatch.setattr(resizing, "run_on_threads", failing)
    with pytest.raises(RuntimeError):
        table.resize_buckets(mode="execute")
    monkeypatch.undo()
    assert not table.timeline.pending_writes()
    assert found(table) == before
    table.upsert(rows(IDS, ts=3))
    assert HudiTable.open(table.uri).verify(deep=True) == []


def test_a_plan_is_rolled_back(table):
    before = found(table)
    made = table.resize_buckets(mode="schedule", options=FULL)
    table.rollback(made.instant)
    assert not table.timeline.pending_writes()
    assert found(table) == before
    table.upsert(rows(IDS, ts=3))


NODE = {"value": 7, "fileIdPrefix": "x", "tag": "REPLACE"}


@pytest.mark.parametrize(
    ("extra", "error"),
    [
        ({CHILDREN: "{"}, CorruptFileError),
        ({CHILDREN: "[" * 100_000}, CorruptFileError),
        ({CHILDREN: "3"}, CorruptFileError),
        ({CHILDREN: "[3]"}, CorruptFileError),
        ({CHILDREN: "[]"}, CorruptFileError),
        ({CHILDREN: json.dumps([{**NODE, "tag": "NORMAL"}])}, CorruptFileError),
        ({CHILDREN: json.dumps([{**NODE, "fileIdPrefix": "../x"}])}, CorruptFileError),
        ({SEQUENCE: "7"}, CorruptFileError),
        ({"clustering.group.partition": "zz"}, CorruptFileError),
        (None, UnsupportedError),
    ],
)
@pytest.mark.sampled(3)
def test_a_plan_that_contradicts_the_table_is_refused_and_stays(table, extra, error):
    table.resize_buckets(mode="schedule", options=FULL)
    storage, pending, request = request_of(table)
    groups = request.clustering.groups
    first = replace(groups[0], extra={} if extra is None else {**groups[0].extra, **extra})
    changed = replace(request.clustering, groups=(first, *groups[1:]))
    storage.publish(pending.path_in("REQUESTED"), render_action(replace(request, clustering=changed)))
    before = found(table)
    with pytest.raises(error):
        table.resize_buckets(mode="execute")
    assert [i.time for i in table.timeline.pending_writes()] == [pending.time]
    assert found(table) == before


def test_only_rings_without_writes_are_planned_apart(table, tmp_path):
    simple = HudiTable.create(
        str(tmp_path / "s"), SCHEMA, name="s", record_keys=["id"], partition_fields=["p"],
        options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
    )  # fmt: skip
    simple.upsert(rows(IDS))
    with pytest.raises(UnsupportedError, match="one call"):
        simple.resize_buckets(6, mode="schedule")
    lazy = {"hoodie.cleaner.policy.failed.writes": "LAZY"}

    def meanwhile(_):
        with pytest.raises(UnsupportedError, match="is not completed"):
            HudiTable.open(table.uri).resize_buckets(mode="schedule", options={**FULL, **lazy})
        return True

    table.upsert(rows(IDS[:1], ts=4), options=lazy, validators=[meanwhile])
    with pytest.raises(ValueError, match="mode='later' is unknown"):
        table.resize_buckets(mode="later")


def test_a_write_beside_an_execution_is_a_conflict(table, monkeypatch):
    lazy = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
    resized = []

    def meanwhile(_):
        resized.append(HudiTable.open(table.uri).resize_buckets(options={**FULL, **lazy}).instant)
        return True

    with pytest.raises(WriteConflictError):
        table.upsert(rows(IDS[:1], ts=8), options=lazy, validators=[meanwhile])
    assert resized != [""]
    assert HudiTable.open(table.uri).verify(deep=True) == []


def test_a_plan_that_is_taken_back_before_it_is_read_is_a_rival_s(table):
    table.resize_buckets(mode="schedule", options=FULL)
    snapshot = open_snapshot(open_storage(table.uri))
    (pending,) = snapshot.timeline.pending_writes()
    table.rollback(pending.time)
    with pytest.raises(ConcurrentWriterError, match="taken back by another process") as e:
        read_resize(snapshot, pending)
    assert e.value.instant == pending.time
