"""Slices with logs by Spark's own scan and workers: who reads which, what is pushed down, and the rows of both."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from hudi_spark.reading import logged_slices
from hudi_spark.reading.logged_slices import file_number, words_of
from hudi_spark.reading.read_tasks import shares
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def however_small(monkeypatch):
    monkeypatch.setattr(logged_slices, "LEAST_BYTES", 0)


def batch(keys, ts, seed):
    random.seed(seed)
    return pa.table(
        {
            "id": [f"k{n:04}" for n in keys],
            "ts": pa.array([ts] * len(keys), pa.int64()),
            "city": [("oslo", "a b", "ø")[n % 3] for n in keys],
            "fare": [random.random() for _ in keys],
            "tags": [[n % 5, None] if n % 7 else None for n in keys],
            "place": [{"lat": n / 2, "name": None if n % 4 else f"n{n}"} for n in keys],
            "_hoodie_is_deleted": [bool(ts > 1 and n % 11 == 0) for n in keys],
        }
    )


def made(path, *, rows=600, upserts=2, **options):
    """A table with base files and logs; its newest rows win."""
    first = batch(range(rows), 1, 0)
    table = HudiTable.create(
        path, first.schema, name="made", table_type="MERGE_ON_READ", record_keys="id", partition_fields="city",
        ordering_fields="ts", options={f"hoodie.{k}": v for k, v in options.items()},
    )  # fmt: skip
    given = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.compact.inline": "false",
    }
    table.bulk_insert(first, options=given)
    for n in range(upserts):
        keys = random.Random(n).sample(range(rows + 30), 60)
        HudiTable.open(path).upsert(batch(sorted(keys), 2 + n, n + 1), options=given)
    return HudiTable.open(path)


def load(spark, path, **options):
    return spark.read.format("hudi").options(**options).load(path)


def texts(rows):
    return sorted(map(repr, rows.to_pylist()))


def plan_of(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.req("QR-01")
@pytest.mark.slow
def test_rows_and_schema_are_those_that_workers_alone_give(spark, path, to_arrow, monkeypatch):
    table = made(path)
    frame = load(spark, path)
    text = plan_of(frame)
    assert "FileScan parquet" in text
    assert "MapInArrow" in text
    found = to_arrow(frame)
    monkeypatch.setattr(logged_slices, "LEAST_BYTES", 1 << 60)
    other = load(spark, path)
    assert "FileScan parquet" not in plan_of(other)
    assert frame.schema == other.schema
    assert texts(found) == texts(to_arrow(other)) == texts(table.read(meta_columns=True).to_arrow())


@pytest.mark.req("QR-01", "QR-08")
def test_columns_and_conditions_reach_the_scan(spark, path, to_arrow, files_read):
    table = made(path)
    frame = load(spark, path)
    text = plan_of(frame.where("ts > 1").select("ts"))
    (scan,) = (line for line in text.splitlines() if "FileScan parquet" in line)
    assert "GreaterThan(ts,1)" in scan
    # The place of a row is a column of Spark's own.
    columns = scan.partition("ReadSchema: struct<")[2].partition(">")[0].split(",")
    assert [c for c in columns if "row_index" not in c] == ["ts:bigint"]
    want = table.read(["id", "fare"], filter="fare > 0.5 and city = 'oslo'").to_arrow()
    for asked in (
        frame.where("fare > 0.5 and city = 'oslo'"),
        load(spark, path, **{"hudi.read.filter": "fare > 0.5 and city = 'oslo'"}),
    ):
        assert texts(to_arrow(asked.select("id", "fare"))) == texts(want)
    assert frame.count() == table.read().count()
    assert frame.agg(F.sum("ts")).collect()[0][0] == sum(table.read(["ts"]).to_arrow()["ts"].to_pylist())


@pytest.mark.parametrize(
    "payload", ["DefaultHoodieRecordPayload", "PartialUpdateAvroPayload", "FirstValueAvroPayload"]
)
@pytest.mark.sampled(3)
def test_what_base_rows_decide_stays_so(spark, path, to_arrow, payload):
    table = made(path, **{"datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"})
    assert texts(to_arrow(load(spark, path))) == texts(table.read(meta_columns=True).to_arrow())


@pytest.mark.req("QR-03")
def test_other_queries_give_what_they_gave(spark, path, to_arrow):
    table = made(path)
    at = [i.time for i in table.timeline.instants]
    assert texts(to_arrow(load(spark, path, **{"as.of.instant": at[1]}))) == texts(
        table.read(as_of=at[1], meta_columns=True).to_arrow()
    )
    for kind in ("read_optimized", "snapshot"):
        found = to_arrow(load(spark, path, **{"hoodie.datasource.query.type": kind}))
        assert texts(found) == texts(table.read(query=kind, meta_columns=True).to_arrow())
    unmerged = {"hoodie.datasource.merge.type": "skip_merge"}
    assert texts(to_arrow(load(spark, path, **unmerged))) == texts(
        table.read(options=unmerged, meta_columns=True).to_arrow()
    )


def test_slices_that_change_for_the_most_part_are_read_by_workers(spark, path, to_arrow):
    table = made(path, rows=40, upserts=6)
    scan = table.read(meta_columns=True)
    tasks = scan.plan_files()
    parts = logged_slices.split(scan, tasks, scan.schema)
    assert len(parts.both) + len(parts.workers) + len(parts.spark) == len(tasks)
    assert all(2 * t.logs.size <= t.size for t in parts.both)
    assert texts(to_arrow(load(spark, path))) == texts(table.read(meta_columns=True).to_arrow())


def test_no_more_is_broadcast_than_the_bound_says(spark, path, to_arrow, monkeypatch):
    table = made(path)
    scan = table.read(meta_columns=True)
    tasks = scan.plan_files()
    words = sorted(map(logged_slices._words, tasks))
    monkeypatch.setattr(logged_slices, "MOST_WORDS", sum(words[:2]))
    assert len(logged_slices.split(scan, tasks, scan.schema).both) == 2
    assert texts(to_arrow(load(spark, path))) == texts(table.read(meta_columns=True).to_arrow())


def test_files_that_spark_cannot_tell_apart_are_read_by_workers(spark, path, to_arrow, monkeypatch):
    table = made(path)
    monkeypatch.setattr(logged_slices, "file_number", lambda path: 7 if "oslo" in path else None)
    scan = table.read(meta_columns=True)
    assert len(logged_slices.split(scan, scan.plan_files(), scan.schema).both) == 1
    assert file_number("a/b c/x.parquet") is not None
    assert file_number("a/ø.parquet") is None


def test_a_file_with_other_types_is_read_by_workers(spark, path, to_arrow):
    first = pa.table({"id": ["a", "b", "c"], "n": pa.array([1, 2, 3], pa.int32()), "city": ["x", "x", "y"]})
    made_by = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    options = {
        "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city", "hoodie.datasource.write.precombine.field": "n",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false",
    }  # fmt: skip

    def write(rows, operation):
        frame = spark.createDataFrame(rows.to_pylist(), rows_schema(rows))
        frame.write.format("hudi").options(
            **options, **made_by, **{"hoodie.datasource.write.operation": operation}
        ).mode("append").save(path)

    def rows_schema(rows):
        from hudi_spark.types import to_spark_schema

        return to_spark_schema(rows.schema)

    write(first, "bulk_insert")
    wider = pa.table(
        {"id": ["a", "z"], "n": pa.array([1 << 40, 5], pa.int64()), "city": ["x", "y"], "more": ["m", None]}
    )
    write(wider, "upsert")
    table = HudiTable.open(path)
    frame = load(spark, path)
    assert "FileScan parquet" not in plan_of(frame)
    assert texts(to_arrow(frame)) == texts(table.read(meta_columns=True).to_arrow())


@pytest.mark.parametrize("number", [0, 1, 7, (1 << 32) - 1])
def test_words_hold_the_positions(number):
    rng = np.random.default_rng(number)
    positions = np.unique(rng.integers(0, 5000, 700))
    positions = np.concatenate([positions, [63 + (1 << 20), 64 + (1 << 20)]])
    found = words_of(number, positions)
    back = [
        ((w - (number << 31)) << 6) + bit
        for w, bits in zip(*(c.to_pylist() for c in found.columns), strict=True)
        for bit in range(64)
        if (bits >> bit) & 1
    ]
    assert back == positions.tolist()
    assert len(set(found.column(0).to_pylist())) == found.num_rows
    assert words_of(number, positions[:0]).num_rows == 0


def test_shares_hold_every_task_once(path):
    tasks = made(path).read().plan_files()
    for count in (1, 2, 4, 50):
        groups = shares(tasks, count)
        assert sorted(t.path for g in groups for t in g) == sorted(t.path for t in tasks)
        assert 0 < len(groups) <= count
        assert all(groups)
    assert shares((), 3) == ()


def test_a_base_file_that_is_gone_is_an_error_and_no_fewer_rows(spark, path):
    table = made(path)
    frame = load(spark, path)
    task = next(t for t in table.read().plan_files() if t.logs is not None)
    Path(path, task.path).unlink()
    with pytest.raises(Exception, match=r"gone|does not exist|FileNotFound"):
        frame.agg(F.sum("fare")).collect()
