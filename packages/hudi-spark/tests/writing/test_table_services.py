"""Table services on Spark: what they do to a table is what they do without a JVM."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_spark
from hudi_format.errors import CorruptFileError, HudiError, MissingFileError, UnsupportedError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import COMPACTION, REQUESTED

pytestmark = pytest.mark.spark

PLAN = "HoodieCompactionPlan"
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
KEYED = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
FULL = {"hoodie.parquet.max.file.size": "100", "hoodie.bucket.index.max.num.buckets": "8"}
INDEXED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "id",
    "hoodie.metadata.enable": "true",
}
SWITCHED_OFF = {"hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0"}


@pytest.fixture
def path(tmp_path):
    """A table of four file groups, of which three have logs."""
    t = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", table_type="MERGE_ON_READ", record_keys=["id"],
        partition_fields=["city"], ordering_fields=["ts"],
    )  # fmt: skip
    rows = [{"id": f"{c}{n}", "city": c, "ts": 1} for c in "abcd" for n in range(5)]
    t.upsert(pa.Table.from_pylist(rows, SCHEMA), options=SWITCHED_OFF)
    rows = [{"id": f"{c}{n}", "city": c, "ts": 2} for c in "abc" for n in range(2)]
    t.upsert(pa.Table.from_pylist(rows, SCHEMA), options=SWITCHED_OFF)
    return t.uri


def content(path, **how):
    found = HudiTable.open(path).read(["id", "ts", "_hoodie_commit_seqno"], **how).to_arrow()
    return sorted(map(tuple, (r.values() for r in found.to_pylist())))


@pytest.mark.req("TS-10")
def test_a_session_plans_and_executes(spark, path):
    before = content(path)
    assert len(hudi_spark.compact(spark, path, dry_run=True).plan.operations) == 3
    planned = hudi_spark.compact(spark, path, mode="schedule")
    done = hudi_spark.compact(spark, path, mode="execute", instant=planned.scheduled)
    stats = done.write_stats[planned.scheduled]
    assert sorted((s.partition, s.num_update_writes, s.num_writes) for s in stats) == [
        (c, 2, 5) for c in "abc"
    ]
    assert content(path) == content(path, query="read_optimized") == before
    assert HudiTable.open(path).verify(deep=True) == []


def test_a_session_and_a_write_merge_log_blocks(spark, path):
    table = HudiTable.open(path)
    for ts in (3, 4):
        table.upsert([{"id": "a0", "city": "a", "ts": ts}], options=SWITCHED_OFF)
    before = content(path)
    two = {"hoodie.log.compaction.blocks.threshold": "2"}
    assert len(hudi_spark.log_compact(spark, path, dry_run=True, options=two).plan.operations) == 1
    done = hudi_spark.log_compact(spark, path, options=two)
    (stat,) = done.write_stats[done.scheduled]
    assert (stat.partition, stat.num_writes) == ("a", 2)
    assert content(path) == before
    frame = spark.createDataFrame([("b0", "b", 3)], "id string, city string, ts long")
    inline = {**SWITCHED_OFF, **two, "hoodie.log.compaction.inline": "true"}
    frame.write.format("hudi").options(**inline).mode("append").save(path)
    assert [c["operation"] for c in HudiTable.open(path).inspect.commits().to_pylist()].count(
        "LOG_COMPACT"
    ) == 2
    assert ("b0", 3) in [r[:2] for r in content(path)]
    assert HudiTable.open(path).verify(deep=True) == []


def test_a_write_on_spark_compacts_on_its_workers(spark, path):
    frame = spark.createDataFrame([("a0", "a", 3)], "id string, city string, ts long")
    frame.write.format("hudi").option("hoodie.compact.inline.max.delta.commits", "3").mode("append").save(
        path
    )
    assert [i.action for i in HudiTable.open(path).timeline.instants][-1] == "commit"
    assert ("a0", 3) in [r[:2] for r in content(path, query="read_optimized")]


def test_what_a_worker_finds_damaged_is_told_as_it_is_and_the_plan_stays(spark, path):
    planned = hudi_spark.compact(spark, path, mode="schedule")
    operation = planned.plan.operations[0]
    storage, log = LocalStorage(path), f"{operation.partition}/{operation.log_files[0]}"
    data = storage.read(log)
    storage.publish(log, bytes(50) + data[50:])
    with pytest.raises(CorruptFileError) as e:
        hudi_spark.compact(spark, path, mode="execute")
    assert e.value.file == log
    (pending,) = HudiTable.open(path).timeline.pending(COMPACTION)
    assert pending.state == REQUESTED


@pytest.mark.parametrize("what", ["base", "log", "a newer version"])
def test_a_plan_that_workers_cannot_follow_is_an_error_and_stays(spark, path, what):
    before = content(path)
    planned = hudi_spark.compact(spark, path, mode="schedule")
    operation = planned.plan.operations[0]
    storage = LocalStorage(path)
    error: type[HudiError] = MissingFileError
    if what == "a newer version":
        request = f".hoodie/{planned.scheduled}.compaction.requested"
        record = avro_files.parse(PLAN, storage.read(request))
        storage.publish(request, avro_files.render(PLAN, {**record, "version": 3}))
        error = UnsupportedError
    else:
        gone = operation.data_file if what == "base" else operation.log_files[0]
        storage.delete(f"{operation.partition}/{gone}")
    with pytest.raises(error) as e:
        hudi_spark.compact(spark, path, mode="execute")
    (pending,) = HudiTable.open(path).timeline.pending(COMPACTION)
    assert pending.state == REQUESTED
    if what == "a newer version":
        assert e.value.instant == planned.scheduled
        assert content(path) == before
    else:
        assert e.value.file == f"{operation.partition}/{gone}"
        assert not list(Path(path, operation.partition).glob(f"*_{planned.scheduled}.parquet"))


def written(path):
    found = HudiTable.open(path).read(["id", "ts"], meta_columns=False).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


@pytest.mark.req("NEW-22")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("engine", ["SIMPLE", "EXTENDIBLE_HASHING", "CONSISTENT_HASHING"])
def test_writes_and_resizes_in_turn_leave_each_key_once(spark, tmp_path, engine):
    path, draw, want = str(tmp_path / "t"), random.Random(engine), {}
    HudiTable.create(
        path, KEYED, name="t", table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
        options={
            "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", "hoodie.index.bucket.engine": engine,
        },
    )  # fmt: skip
    for turn in range(2):
        keys = {f"k{draw.randrange(60)}": turn for _ in range(40)}
        want |= keys
        rows = spark.createDataFrame([(k, "a", t) for k, t in keys.items()], "id string, p string, ts long")
        options = {"hoodie.datasource.write.operation": "upsert", "hoodie.table.name": "t"}
        rows.write.format("hudi").options(**options).mode("append").save(path)
        assert written(path) == want
        number = 2 << (turn + 1) if engine == "SIMPLE" else None
        dry = hudi_spark.resize_buckets(spark, path, number, dry_run=True, options=FULL)
        done = hudi_spark.resize_buckets(spark, path, plan=dry.plan, options=FULL)
        assert bool(done.instant) == bool(dry.plan)
        assert written(path) == want
        assert HudiTable.open(path).verify(deep=True) == []
    key = min(want)
    assert [r.ts for r in spark.read.format("hudi").load(path).where(f"id = '{key}'").collect()] == [
        want[key]
    ]


@pytest.mark.req("TM-16")
def test_indexes_are_built_and_dropped_by_the_session_and_filters_use_them(spark, tmp_path):
    path = str(tmp_path / "t")
    for n in range(2):
        frame = spark.createDataFrame(
            [(n * 10 + i, f"p{i % 2}", n) for i in range(6)], "id int, p string, v int"
        )
        options = {**INDEXED, "hoodie.datasource.write.operation": "bulk_insert"}
        frame.coalesce(1).write.format("hudi").options(**options).mode("append").save(path)
    planned = hudi_spark.build_index(spark, path, "column_stats", mode="schedule").scheduled
    built = hudi_spark.build_index(spark, path, ["column_stats", "record_index"])
    assert built.executed[0] == planned
    assert sorted(built.built) == ["column_stats", "record_index"]
    table = HudiTable.open(path)
    assert table.verify(deep=True) == []
    reading = spark.read.format("hudi").option("hoodie.metadata.enable", "true")
    assert reading.option("hoodie.enable.data.skipping", "true").load(path).where("v = 1").count() == 6
    assert hudi_spark.drop_index(spark, path, "record_index").dropped == ("record_index",)
    assert HudiTable.open(path).config.metadata_partitions == ("column_stats", "files")
