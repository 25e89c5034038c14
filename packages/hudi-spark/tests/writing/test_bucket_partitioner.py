"""Rows go to their bucket and task, said in the plan itself and by a join alike."""

from __future__ import annotations

import zlib

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hudi_spark.writing import bucket_partitioner
from hudi_spark.writing.bucket_partitioner import place, slots
from hudi_timeline.writing.workers.tasks import CREATE, MERGE, Bucket, InsertShare, Routing

NAMES = ("", "it's", 'quo"ted', "back\\slash", "ünï=ø/日本", "%25", "$x{y}", "\n")


def _routing() -> Routing:
    buckets = [Bucket(i, p, MERGE, f"f{i}") for i, p in enumerate(NAMES)]
    located = {(p, f"f{i}"): i for i, p in enumerate(NAMES)}
    inserts = {}
    for p in NAMES[:-1]:
        n = len(buckets)
        if p in NAMES[1::2]:
            buckets.append(Bucket(n, p, CREATE, f"new{n}"))
            inserts[p] = (InsertShare(1.0, n),)
            continue
        buckets += [Bucket(n + i, p, CREATE, f"new{n + i}") for i in range(3)]
        inserts[p] = (InsertShare(0.2, n), InsertShare(0.7, n + 1), InsertShare(1.0, n + 2))
    return Routing(tuple(buckets), located, inserts)


def _expected(routing: Routing, key: str, partition: str, file_id: str) -> int | None:
    if file_id:
        return routing.located.get((partition, file_id))
    hashed = zlib.crc32(key.encode())
    return next((s.bucket for s in routing.inserts.get(partition, ()) if hashed < s.upto * 2**32), None)


@pytest.mark.spark
@pytest.mark.parametrize("literal_places", [1000, 0], ids=["in-the-plan", "joined"])
def test_each_row_goes_to_its_bucket_and_task(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, literal_places: int
) -> None:
    monkeypatch.setattr(bucket_partitioner, "LITERAL_PLACES", literal_places)
    routing = _routing()
    rows = [(f"k{i}-é", p, f) for i in range(40) for p in NAMES for f in ("", f"f{NAMES.index(p)}", "gone")]
    frame = spark.createDataFrame(
        rows, "_hoodie_record_key string, _hoodie_partition_path string, _hudi_file_id string"
    ).withColumn("odd.name", F.lit(1))
    tasks = 5
    number = slots(tasks)
    slot_of = [number[b.number % tasks] for b in routing.buckets]
    kept = ["_hoodie_record_key", "_hoodie_partition_path", "_hudi_file_id", "odd.name"]
    placed = place(spark, frame, routing, slot_of, tasks, kept, all_placed=False)
    found = placed.withColumn("at", F.spark_partition_id()).collect()
    wanted = {r: _expected(routing, *r) for r in rows}
    assert {(r[1], r[2], r[3]): r[0] for r in found} == {r: b for r, b in wanted.items() if b is not None}
    assert len(found) == sum(b is not None for b in wanted.values())
    for row in found:
        assert row["at"] == row[0] % tasks


def _largest_method(spark: SparkSession, places: int) -> int:
    """Bytes of the largest method that Spark generates where so many places stand in the plan."""
    located = {(f"partition-{i % 8}", f"{i:08d}-0000-0000-0000-000000000000-0"): i for i in range(places)}
    buckets = tuple(Bucket(i, p, MERGE, f) for i, (p, f) in enumerate(located))
    frame = spark.range(1).selectExpr(
        "string(id) _hoodie_record_key", "string(id) _hoodie_partition_path", "string(id) _hudi_file_id",
        *(f"string(id) c{i}" for i in range(12)),
    )  # fmt: skip
    routing = Routing(buckets, located, {})
    placed = place(spark, frame, routing, [0] * places, 2, frame.columns, all_placed=False)
    plan = placed._jdf.queryExecution().executedPlan()
    debug = getattr(getattr(spark._jvm.org.apache.spark.sql.execution.debug, "package$"), "MODULE$")
    stages = debug.codegenStringSeq(plan)
    return max(stages.apply(i)._3().maxMethodCodeSize() for i in range(stages.size()))


@pytest.mark.spark
def test_the_code_of_a_row_does_not_grow_with_the_places_that_stand_in_a_plan(spark: SparkSession) -> None:
    """The JVM compiles long methods badly, and none of more than 8,000 bytes."""
    most, adaptive = bucket_partitioner.LITERAL_PLACES, spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        assert _largest_method(spark, most) == _largest_method(spark, most // 2)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", adaptive)


@pytest.mark.spark
def test_the_hash_of_a_key_is_computed_once_however_many_files_share_the_new_rows(
    spark: SparkSession,
) -> None:
    files = range(bucket_partitioner.LITERAL_PLACES)
    buckets = tuple(Bucket(i, "p", CREATE, f"new{i}") for i in files)
    shares = tuple(InsertShare((i + 1) / len(files), i) for i in files)
    frame = spark.range(1).selectExpr(
        "string(id) _hoodie_record_key", "'p' _hoodie_partition_path", "'' _hudi_file_id"
    )
    routing = Routing(buckets, {}, {"p": shares})
    placed = place(spark, frame, routing, [0] * len(files), 2, frame.columns, all_placed=True)
    plan = placed._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("crc32(") == 1, plan
