"""Resizes of bucket indexes on Spark: what they do to a table is what they do without a JVM."""

import random

import pyarrow as pa
import pytest

import hudi_spark
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
FULL = {"hoodie.parquet.max.file.size": "100", "hoodie.bucket.index.max.num.buckets": "8"}


def written(path):
    found = HudiTable.open(path).read(["id", "ts"], meta_columns=False).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


@pytest.mark.req("NEW-22")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["SIMPLE", "EXTENDIBLE_HASHING", "CONSISTENT_HASHING"])
def test_writes_and_resizes_in_turn_leave_each_key_once(spark, tmp_path, engine):
    path, draw, want = str(tmp_path / "t"), random.Random(engine), {}
    HudiTable.create(
        path, SCHEMA, name="t", table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"],
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
