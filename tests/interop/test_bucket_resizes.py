"""Resized bucket indexes in the hands of Apache Hudi: it reads all, and writes on where it knows the buckets."""

import pyarrow as pa
import pytest

from hudi_format.errors import UnsupportedError
from hudi_timeline import HudiTable
from interop.bucket_tables import BUCKET, IDS, INDEX, NUMBER, WRITE, Shared, rows
from interop.spark_process import SparkProcessError

CLASSES = "org.apache.hudi.client.clustering."
SPLITTING = {
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.parquet.max.file.size": "100",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clustering.plan.strategy.class": CLASSES
    + "plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": CLASSES
    + "run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
    "hoodie.clustering.updates.strategy": CLASSES
    + "update.strategy.SparkConsistentBucketDuplicateUpdateStrategy",
}

ENGINE = "hoodie.index.bucket.engine"
RING = {INDEX: "BUCKET", ENGINE: "CONSISTENT_HASHING", NUMBER: "3", WRITE + "table.type": "MERGE_ON_READ"}
SMALL = {"hoodie.parquet.max.file.size": "100", "hoodie.bucket.index.max.num.buckets": "8"}
LARGE = {"hoodie.bucket.index.min.num.buckets": "2"}


def resize(table, *args, **options):
    return HudiTable.open(str(table.path)).resize_buckets(*args, options=options)


@pytest.mark.req("IX-28", "IX-29", "IX-32")
@pytest.mark.sampled(4, values=False)
@pytest.mark.parametrize("number", [12, 5])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_multiplied_buckets_are_written_on_by_both(tmp_path, pool, kind, number):
    apache = pool.get("0.15.0")
    table = Shared(tmp_path / "t", apache, ("id",), {**BUCKET, WRITE + "table.type": kind})
    table.write("apache", "upsert", rows(IDS))
    table.write("ours", "upsert", rows(IDS[::2], ts=2))
    table.index = {}
    HudiTable.open(str(table.path)).resize_buckets(number, overwrite=number == 5)
    table.check(apache, pool.get("1.0.2"))
    groups = table.groups()
    for turn, writer in enumerate(("apache", "ours")):
        both = [rows(IDS[turn::3], ts=10 + turn, v=writer), rows([f"new{turn}"], p=f"p{turn}")]
        table.write(writer, "upsert", pa.concat_tables(both))
    table.check(apache)
    assert groups.items() <= table.groups().items()
    table.index = {**BUCKET, WRITE + "table.type": kind}  # the old number
    with pytest.raises(SparkProcessError, match="Config conflict"):
        table.write("apache", "upsert", rows(IDS))
    assert HudiTable.open(str(table.path)).verify() == []


@pytest.mark.req("IX-11")
def test_split_and_merged_rings_are_written_on_by_both(tmp_path, pool):
    apache = pool.get("0.15.0")
    table = Shared(tmp_path / "t", apache, ("id",), RING)
    table.write("apache", "upsert", rows(IDS))
    table.write("ours", "upsert", rows(IDS[:3]))
    table.index = {}
    assert resize(table, **SMALL).plan.buckets == {"a": (3, 6)}
    table.check(apache, pool.get("1.0.2"))
    table.write("apache", "upsert", rows(IDS[::2], ts=2))
    table.write("ours", "upsert", rows(IDS[::3], ts=3))
    table.check(apache)
    assert resize(table, **LARGE).plan.buckets == {"a": (6, 2)}
    table.write("apache", "upsert", rows([*IDS[::4], "new"], ts=4))
    table.write("ours", "delete", rows(IDS[:4]))
    table.check(apache)
    assert HudiTable.open(str(table.path)).verify() == []


@pytest.mark.req("IX-11")
@pytest.mark.slow
def test_a_resize_that_one_has_planned_is_executed_by_the_other(tmp_path, pool):
    apache = pool.get("0.15.0")
    table = Shared(tmp_path / "t", apache, ("id",), RING)
    table.write("apache", "upsert", rows(IDS))
    table.write("ours", "upsert", rows(IDS[:3]))
    planning = {**SPLITTING, "hoodie.clustering.inline": "false", "hoodie.clustering.schedule.inline": "true"}
    table.index = {**RING, **planning}
    table.write("apache", "upsert", rows(IDS[::2], ts=2))
    table.index = {**RING, **SPLITTING, "hoodie.clustering.inline": "false"}
    table.write("apache", "upsert", rows([*IDS[1::2], "new"], ts=3))  # to the old and to the new buckets
    table.index = {}
    with pytest.raises(UnsupportedError, match="--pending"):
        table.write("ours", "upsert", rows(IDS))
    table.check(apache)
    done = HudiTable.open(str(table.path)).resize_buckets(mode="execute")
    assert len(done.executed) == 1
    assert done.plan.buckets == {"a": (3, 6)}
    # The writer between the two wrote to the old buckets too.
    assert HudiTable.open(str(table.path)).verify(deep=True) == []
    table.check(apache)
    table.write("ours", "upsert", rows(IDS[::3], ts=5))
    ours = HudiTable.open(str(table.path)).resize_buckets(mode="schedule", options=SMALL)
    assert ours.plan.buckets == {"a": (6, 8)}
    table.index = {**RING, **SPLITTING}
    table.write("apache", "upsert", rows(IDS[::4], ts=6))
    table.index = {}
    assert ours.instant in [i.time for i in HudiTable.open(str(table.path)).timeline.completed_writes()]
    table.check(apache)
    table.write("ours", "upsert", rows(IDS[::5], ts=7))
    assert HudiTable.open(str(table.path)).verify(deep=True) == []
    table.check(apache)


@pytest.mark.req("IX-30")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_extendible_hashing_is_read_by_apache_hudi_and_refused_to_its_writers(tmp_path, pool, kind):
    apache = pool.get("0.15.0")
    table = Shared(tmp_path / "t", apache, ("id",), {**BUCKET, WRITE + "table.type": kind})
    table.write("apache", "upsert", rows(IDS))
    table.write("ours", "upsert", rows(IDS[:3]))
    table.index = {}
    HudiTable.open(str(table.path)).resize_buckets(engine="EXTENDIBLE_HASHING", options=SMALL)
    table.write("ours", "upsert", rows([*IDS[::2], "new"], ts=2))
    table.write("ours", "upsert", rows(IDS[:5], p="b"))
    table.check(apache, pool.get("1.0.2"), pool.get("1.2.0"))
    for index in ({}, {**BUCKET, ENGINE: "SIMPLE"}):
        table.index = {**index, WRITE + "table.type": kind}
        with pytest.raises(SparkProcessError, match="EXTENDIBLE_HASHING"):
            table.write("apache", "upsert", rows(IDS, ts=3))
    table.index = {}
    table.write("ours", "upsert", rows(IDS[:9], ts=5))
    table.check(apache)
