"""Small files, new file groups and sized files on Spark: the plan of the engine without a JVM, record by record."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_spark
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("text", pa.string())])
MAX, LIMIT = "hoodie.parquet.max.file.size", "hoodie.parquet.small.file.limit"
ESTIMATE = "hoodie.copyonwrite.record.size.estimate"
PLAIN = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.parquet.bloom.filter.enabled": "false",
}


def rows(start, n):
    text = np.random.default_rng(start).bytes(n * 15).hex()
    ids = range(start, start + n)
    columns = [
        [f"key-{i:06d}" for i in ids],
        [f"p{i % 2}" for i in ids],
        list(ids),
        [text[30 * i : 30 * i + 30] for i in range(n)],
    ]
    return pa.table(columns, schema=SCHEMA)


def save(spark, path, given, operation, options, folder):
    file = folder / "rows.parquet"
    pq.write_table(given, file)
    frame = spark.read.parquet(str(file)).coalesce(1)
    options = {**PLAIN, **options, "hoodie.datasource.write.operation": operation}
    frame.write.format("hudi").options(**options).mode("append").save(path)
    return hudi_spark.last_commit()


def keys_by_file(path, result):
    """Which keys lie in which group, new groups without their random names."""
    out = []
    for s in result.write_stats:
        keys = (
            pq.ParquetFile(f"{path}/{s.path}").read(["_hoodie_record_key"])["_hoodie_record_key"].to_pylist()
        )
        out.append((s.partition, s.file_id if s.prev_commit != "null" else "", sorted(keys)))
    return sorted(out)


@pytest.mark.req("WR-15", "WR-16", "NEW-02", "FS-07")
@pytest.mark.parametrize(
    ("operation", "given", "options"),
    [
        ("insert", rows(2000, 1500), {MAX: "300000", ESTIMATE: "400"}),
        ("upsert", rows(1500, 1500), {MAX: "150000", ESTIMATE: "400"}),
        ("insert", rows(2000, 1500), {LIMIT: "0", "hoodie.copyonwrite.insert.auto.split": "false",
                                      "hoodie.copyonwrite.insert.split.size": "200"}),
        ("insert_overwrite", rows(2000, 1000), {MAX: "100000", ESTIMATE: "300"}),
    ],
    ids=["small-files-and-new", "updates-and-new", "fixed-splits", "overwrite"],
)  # fmt: skip
@pytest.mark.sampled(3)
def test_both_engines_put_each_record_into_the_same_group(spark, tmp_path, operation, given, options):
    start = tmp_path / "start"
    made = HudiTable.create(
        str(start), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"]
    )
    made.insert(rows(0, 2000), options=PLAIN)
    mine, theirs = str(tmp_path / "python"), str(tmp_path / "spark")
    shutil.copytree(start, mine)
    shutil.copytree(start, theirs)
    here = getattr(HudiTable.open(mine), operation)(given, options={**PLAIN, **options})
    there = save(spark, theirs, given, operation, options, tmp_path)
    assert len(here.write_stats) > 2
    assert keys_by_file(mine, here) == keys_by_file(theirs, there)


@pytest.mark.req("WR-15", "FS-07")
@pytest.mark.parametrize("operation", ["bulk_insert", "insert"])
@pytest.mark.sampled(2)
def test_files_end_at_their_greatest_size_on_spark(spark, tmp_path, operation):
    greatest = 300_000
    options = {MAX: str(greatest), ESTIMATE: "1", "hoodie.bulkinsert.shuffle.parallelism": "1"}
    result = save(spark, str(tmp_path / "t"), rows(0, 60_000), operation, options, tmp_path)
    sizes = sorted(s.file_size_in_bytes for s in result.write_stats)
    assert len(sizes) >= 4
    assert sizes[-1] < 1.1 * greatest
    assert sizes[2] > 0.9 * greatest  # all but the last of either partition
