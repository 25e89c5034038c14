"""Random operations and services on a table, on Spark and without a JVM: Apache Hudi reads what they leave.

Each step is compared with a model of the table's rows; packages/hudi-timeline takes more than 1,000 such steps.
"""

import os
import random

import pytest
from pyspark.sql import SparkSession
from random_workload import CASES, COPIED_CASES, Workload, as_set
from spark_workload import SparkWorkload

import hudi_spark
from interop.rows import assert_same_rows, without_meta
from interop.spark_worker import QUICK_JVM

LONG = os.environ.get("HUDI_SOAK") == "1"
SEED = int(os.environ.get("HUDI_SEED") or (random.randrange(10**6) if LONG else 1))
# What an `alter` leaves is read by Apache Hudi with this only.
BY_ID = {"hoodie.schema.on.read.enable": "true"}
STEPS = 25  # of each case on Spark, 100 in all
EVERY = CASES | COPIED_CASES
# What is added to the seed: so drawn, the cases have every service together.
ON_SPARK = {"logs": 12, "bloom": 13, "buckets, copied": 12, "rings": 15}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """One task at a time: of a step on a few rows most is what Spark does for each task."""
    folder = tmp_path_factory.mktemp("spark")
    builder = (
        SparkSession.builder.master("local[1]")
        .appName("random workload")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.extraJavaOptions", f"{QUICK_JVM} -Dderby.system.home={folder}")
    )
    made = hudi_spark.configure(builder).getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()
    hudi_spark.disable()


def apache_agrees(apache, path, work):
    found = apache.read(path, **BY_ID)
    assert as_set(without_meta(found).to_pylist()) == as_set(work.model.now.all_shown())
    assert_same_rows(found, work.table.read(meta_columns=True).to_arrow(), ["id"])


@pytest.fixture(scope="module")
def counts():
    """What the workloads have done, by engine and case."""
    return {"without a JVM": {}, "on Spark": {}}


def done(work):
    return work.merged, work.altered, work.built, work.resized, work.told


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "case"), [*enumerate(EVERY, SEED)], ids=[*EVERY])
def test_apache_hudi_reads_what_a_random_workload_leaves(apache, tmp_path, counts, seed, case):
    path = tmp_path / "t"
    work = Workload(path, seed, EVERY[case], 200 if LONG else 50)
    work.run(every_kind=False)
    apache_agrees(apache, path, work)
    counts["without a JVM"][case] = done(work)


@pytest.mark.parametrize(("seed", "case"), [(SEED + n, c) for c, n in ON_SPARK.items()], ids=[*ON_SPARK])
def test_a_random_workload_on_spark_agrees_with_the_model_and_with_apache_hudi(
    apache, session, tmp_path, counts, seed, case
):
    path = tmp_path / "t"
    work = SparkWorkload(session, path, seed, EVERY[case], 200 if LONG else STEPS)
    work.run(every_kind=False)
    apache_agrees(apache, path, work)
    counts["on Spark"][case] = done(work)


@pytest.mark.slow
def test_the_workloads_without_a_jvm_had_every_service(counts):
    had_every_service(counts["without a JVM"], EVERY)


def test_the_workloads_on_spark_had_every_service(counts):
    had_every_service(counts["on Spark"], ON_SPARK)


def had_every_service(counts, cases):
    if counts.keys() != cases.keys():
        pytest.skip("of all cases together")
    assert all(map(sum, zip(*counts.values(), strict=True))), counts
