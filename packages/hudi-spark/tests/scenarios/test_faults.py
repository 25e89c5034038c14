"""Tasks that die, are repeated, or see other rows when they are repeated: no row is lost, doubled or left over.

The session of the tests has two threads and four attempts for each task (`local[2,4]`).
"""

import os
import random
import signal
import uuid

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_spark
from hudi_format.errors import RecordKeyError, WriteFailedError
from hudi_spark.writing import engine
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
OPERATION = "hoodie.datasource.write.operation"


@pytest.fixture(autouse=True)
def _only_errors_of_ours(spark):
    """Tasks die by design: Spark prints a trace of each."""
    spark.sparkContext.setLogLevel("OFF")
    yield
    spark.sparkContext.setLogLevel("ERROR")


def save(frame, path, operation):
    frame.write.format("hudi").options(**OPTIONS).option(OPERATION, operation).mode("append").save(path)


def stray_files(path):
    known = {f["path"] for f in HudiTable.open(path).inspect.files().to_pylist()}
    there = {
        os.path.relpath(os.path.join(folder, f), path)
        for folder, _, files in os.walk(path)
        for f in files
        if f.endswith(".parquet")
    }
    return sorted(there - known)


def die_once(flag):
    """Passes batches on; the first worker that comes to its end of one is killed."""

    def run(batches):
        for batch in batches:
            yield batch
            try:
                os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    return run


@pytest.mark.req("FS-05", "WR-25")
@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
@pytest.mark.sampled(2)
def test_a_killed_python_worker_is_retried_without_doubles_or_strays(spark, path, tmp_path, operation):
    flag = str(tmp_path / "flag")
    text = F.col("id").cast("string").alias("id"), (F.col("id") % 3).cast("string").alias("p")
    rows = spark.range(20000).select(*text, F.lit(1).alias("ts"), F.rand().alias("v"))
    save(rows.repartition(4).mapInArrow(die_once(flag), rows.schema), path, operation)
    got = spark.read.format("hudi").load(path)
    assert os.path.exists(flag)
    assert got.agg(F.count("id"), F.countDistinct("id")).collect() == [(20000, 20000)]
    assert stray_files(path) == []


@pytest.mark.req("FS-05", "WR-25", "LF-12")
def test_a_task_that_runs_twice_appends_nothing_twice(spark, path, tmp_path, monkeypatch):
    """The worker is killed when its log file is whole, and nobody has heard of it yet."""
    flag, real = str(tmp_path / "flag"), engine.WriteBuckets

    def dying(context, buckets):
        worker = real(context, buckets)

        def run(batches):
            for status in worker(batches):
                try:
                    os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    yield status
                else:
                    os.kill(os.getpid(), signal.SIGKILL)

        return run

    text = F.col("id").cast("string").alias("id"), (F.col("id") % 2).cast("string").alias("p")
    rows = spark.range(2000).select(*text, F.lit(1).alias("ts"), F.lit(1.0).alias("v"))
    table = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hudi.merge": '{"v": "sum"}'}
    write = rows.write.format("hudi").options(**OPTIONS, **table).option(OPERATION, "upsert")
    write.mode("append").save(path)
    monkeypatch.setattr(engine, "WriteBuckets", dying)
    write.mode("append").save(path)
    assert os.path.exists(flag)
    stats = HudiTable.open(path).inspect.files().to_pylist()
    logs = sorted(f["path"] for f in stats if ".log." in f["path"])
    there = sorted(
        os.path.relpath(os.path.join(folder, f), path)
        for folder, _, files in os.walk(path)
        for f in files
        if ".log." in f and ".hoodie" not in folder
    )
    assert len(logs) == 2
    assert there == logs
    got = spark.read.format("hudi").load(path)
    assert got.agg(F.count("id"), F.min("v"), F.max("v")).collect() == [(2000, 2.0, 2.0)]


def test_an_input_that_differs_each_time_it_is_evaluated_is_evaluated_once(spark, path):
    def invent(batches):
        for batch in batches:
            n = batch.num_rows
            yield pa.RecordBatch.from_pydict({
                "id": [str(uuid.uuid4()) for _ in range(n)],
                "p": [str(random.randrange(3)) for _ in range(n)],
                "ts": [1] * n,
            })  # fmt: skip

    rows = spark.range(5000).mapInArrow(invent, "id string, p string, ts long")
    save(rows, path, "upsert")
    first = hudi_spark.last_commit()
    save(rows, path, "upsert")
    assert (first.inserted, first.updated) == (5000, 0)
    got = spark.read.format("hudi").load(path)
    assert got.agg(F.count("id"), F.countDistinct("id")).collect() == [(10000, 10000)]


def in_another_order(batches):
    """The rows of a partition, in an order that differs each time."""
    rows = pa.Table.from_batches(list(batches))
    yield from rows.take(pa.array(random.sample(range(rows.num_rows), rows.num_rows))).to_batches()


def lose_what_is_kept(spark, monkeypatch, rows_only):
    """Lose the kept rows, and the places of their keys, before they are written, as with an executor."""
    context, write = spark.sparkContext._jsc, engine.SparkEngine.write

    def losing(self, *args):
        kept = sorted(context.getPersistentRDDs())
        for number in kept[:1] if rows_only else kept:
            context.sc().env().blockManager().master().removeRdd(number, True)
        return write(self, *args)

    monkeypatch.setattr(engine.SparkEngine, "write", losing)


@pytest.mark.parametrize(
    "index",
    [
        "SIMPLE",
        "GLOBAL_SIMPLE",
        *(pytest.param(i, marks=pytest.mark.slow) for i in ("BLOOM", "RECORD_INDEX")),
    ],
)
@pytest.mark.sampled(2)
def test_rows_that_are_lost_and_come_in_another_order_get_no_others_places(spark, path, monkeypatch, index):
    given = {"hoodie.index.type": index, "hoodie.metadata.enable": str(index == "RECORD_INDEX").lower()}
    if index == "RECORD_INDEX":
        given["hoodie.metadata.record.index.enable"] = "true"
    if index == "SIMPLE":
        monkeypatch.setattr(engine, "SENT_KEYS", 0)  # Spark's own join finds the places
    rows = spark.range(0, 200, 1, 2).selectExpr("cast(id as string) id", "'p' p", "1 ts")
    more = spark.range(0, 400, 1, 2).selectExpr("cast(id as string) id", "'p' p", "2 ts")

    def upsert(frame):
        frame.write.format("hudi").options(**OPTIONS, **given).mode("append").save(path)

    def count():
        return (
            spark.read.format("hudi")
            .load(path)
            .agg(F.count("id"), F.countDistinct("id"), F.max("ts"))
            .collect()
        )

    upsert(rows)
    with monkeypatch.context() as during:
        lose_what_is_kept(spark, during, rows_only=True)
        with pytest.raises(WriteFailedError, match="came in another order"):
            upsert(more.mapInArrow(in_another_order, more.schema))
        assert count() == [(200, 200, 1)]
        upsert(more.where("id < 300"))  # in the same order
    assert count() == [(300, 300, 2)]
    with monkeypatch.context() as during:
        lose_what_is_kept(spark, during, rows_only=False)
        upsert(more)
    assert count() == [(400, 400, 2)]


@pytest.mark.req("NEW-36")
def test_an_error_in_a_worker_is_ours_in_one_line_and_the_table_is_as_it_was(spark, path):
    good = spark.range(100).selectExpr("cast(id as string) id", "'p' p", "1 ts")
    save(good, path, "bulk_insert")
    bad = good.withColumn("id", F.when(F.col("id") != "7", F.col("id")))
    for operation in ("bulk_insert", "upsert"):
        with pytest.raises(RecordKeyError) as e:
            save(bad, path, operation)
        assert e.value.code == "HUDI-E0503"
        assert "\n" not in str(e.value)
        assert "py4j" not in str(e.value).lower()
        assert e.value.__cause__ is None
    assert spark.read.format("hudi").load(path).count() == 100
    assert stray_files(path) == []


@pytest.mark.slow
def test_good_and_bad_rows_are_of_one_evaluation_where_paths_are_made_twice(spark, path, monkeypatch):
    """Spark's expressions do not make all paths: the kernels make them again, of the rows that were checked."""
    counted, real = [], engine.SparkEngine._count

    def count(self, rows, task, *, all_paths):
        counted.append(all_paths)
        return real(self, rows, task, all_paths=all_paths) if all_paths else None

    monkeypatch.setattr(engine.SparkEngine, "_count", count)

    def invent(batches):
        for batch in batches:
            names = [str(uuid.uuid4()) for _ in range(batch.num_rows)]
            bad = random.randrange(1, batch.num_rows)
            yield pa.RecordBatch.from_pydict(
                {"id": names, "p": ["x"] * len(names), "ts": [-1] * bad + [1] * (len(names) - bad)}
            )

    rows = spark.range(0, 1000, 1, 2).mapInArrow(invent, "id string, p string, ts long")
    given = {"hudi.write.rules": "late: ts > 0", "hudi.quarantine.path": path + "_aside"}
    rows.write.format("hudi").options(**OPTIONS, **given).mode("append").save(path)
    assert counted == [False, True]
    result = hudi_spark.last_commit()
    assert result.inserted + result.quarantined["late"] == 1000
