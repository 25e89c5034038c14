"""Tasks that die, are repeated, or see other rows when they are repeated: no row is lost, doubled or left over.

Each test runs a script in a process of its own, because retries of tasks are a property of the master
(`local[2,4]`: two threads, four attempts).
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import json, os, signal, sys
import pyarrow as pa
from pyspark.sql import SparkSession, functions as F
import hudi_spark

path, flag = sys.argv[1:3]
builder = (SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
           .config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "4")
           .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1"))
spark = hudi_spark.configure(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
           "hoodie.datasource.write.partitionpath.field": "p", "hoodie.datasource.write.precombine.field": "ts"}

def save(df, operation, **more):
    df.write.format("hudi").options(**options, **more).option(
        "hoodie.datasource.write.operation", operation).mode("append").save(path)

def stray_files():
    from hudi_timeline import HudiTable
    known = {f["path"] for f in HudiTable.open(path).inspect.files().to_pylist()}
    there = {os.path.relpath(os.path.join(d, f), path) for d, _, files in os.walk(path) for f in files
             if f.endswith(".parquet")}
    return sorted(there - known)

def die_once(batches):
    for batch in batches:
        yield batch
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)
"""


def run(tmp_path, body):
    script = tmp_path / "script.py"
    script.write_text(HEAD + textwrap.dedent(body))
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "t"), str(tmp_path / "flag")],
        capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.spark
@pytest.mark.req("WR-22", "RC-02")
@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_a_killed_python_worker_is_retried_without_doubles_or_strays(tmp_path, operation):
    found = run(tmp_path, f"""
        rows = spark.range(20000).select(F.col("id").cast("string").alias("id"), (F.col("id") % 3).cast("string")
            .alias("p"), F.lit(1).alias("ts"), F.rand().alias("v"))
        rows = rows.repartition(4).mapInArrow(die_once, rows.schema)
        save(rows, "{operation}")
        got = spark.read.format("hudi").load(path)
        print(json.dumps([os.path.exists(flag), got.count(), got.select("id").distinct().count(), stray_files()]))
    """)  # fmt: skip
    assert found == [True, 20000, 20000, []]


@pytest.mark.spark
@pytest.mark.req("WR-22")
def test_an_input_that_differs_each_time_it_is_evaluated_is_evaluated_once(tmp_path):
    found = run(tmp_path, """
        import random, uuid

        def invent(batches):
            for batch in batches:
                n = batch.num_rows
                yield pa.RecordBatch.from_pydict({"id": [str(uuid.uuid4()) for _ in range(n)],
                                                  "p": [str(random.randrange(3)) for _ in range(n)], "ts": [1] * n})

        rows = spark.range(5000).mapInArrow(invent, "id string, p string, ts long")
        save(rows, "upsert")
        first = hudi_spark.last_commit()
        save(rows, "upsert")
        got = spark.read.format("hudi").load(path)
        print(json.dumps([first.inserted, first.updated, got.count(), got.select("id").distinct().count()]))
    """)  # fmt: skip
    assert found == [5000, 0, 10000, 10000]


@pytest.mark.spark
@pytest.mark.req("NEW-36")
def test_an_error_in_a_worker_is_ours_in_one_line_and_the_table_is_as_it_was(tmp_path):
    found = run(tmp_path, """
        from hudi_format.errors import RecordKeyError
        good = spark.range(100).selectExpr("cast(id as string) id", "'p' p", "1 ts")
        save(good, "bulk_insert")
        bad = good.withColumn("id", F.when(F.col("id") != "7", F.col("id")))
        out = []
        for operation in ("bulk_insert", "upsert"):
            try:
                save(bad, operation)
            except RecordKeyError as e:
                out.append([e.code, str(e).count(chr(10)), "py4j" in str(e).lower(), e.__cause__ is None])
        print(json.dumps([out, spark.read.format("hudi").load(path).count(), stray_files()]))
    """)  # fmt: skip
    assert found == [[["HUDI-E0503", 0, False, True]] * 2, 100, []]
