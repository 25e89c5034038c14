"""The consistent-hashing bucket index in the hands of two writers: Apache Hudi 0.15.0 and this project, on one table.

Each finds the other one's keys in their buckets, also after the other has split or replaced the buckets.
"""

import pyarrow.compute as pc
import pytest

from hudi_format.errors import UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_index import consistent_hashing
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import load_rings
from hudi_timeline.file_system_view.snapshot import open_snapshot
from interop import ours
from interop.bucket_tables import FIELDS, IDS, WRITE, Shared, rows
from interop.spark_process import SparkProcessError

RING = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "3",
    WRITE + "table.type": "MERGE_ON_READ",
}
CLASSES = "org.apache.hudi.client.clustering."
SPLITTING = {
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.parquet.max.file.size": "1000",
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


def in_their_buckets(table):
    """Rings of the table's partitions, after a look whether each key is in its bucket's file group."""
    snapshot = open_snapshot(open_storage(str(table.path)))
    slices = newest_slices_of(snapshot)
    rings = load_rings(snapshot, {s.partition for s in slices})
    fields = tuple((table.index.get(FIELDS) or ",".join(table.keys)).split(","))
    index = consistent_hashing.ConsistentBucketIndex(3, fields, rings)
    for piece in slices:
        assert index.number(piece.file_id, piece.partition) is not None, piece
    found = ours.read(table.path)
    for partition in rings:
        part = found.filter(pc.equal(found.column("_hoodie_partition_path"), partition))
        numbers = index.of(part.column("_hoodie_record_key"), partition).tolist()
        files = [name.partition("_")[0] for name in part.column("_hoodie_file_name").to_pylist()]
        assert files == [index.new_file_id(partition, n) for n in numbers]
    return rings


@pytest.mark.req("IX-11")
@pytest.mark.sampled(4, values=False)
@pytest.mark.parametrize(
    ("first", "operation", "keys", "fields", "turns"),
    [
        ("ours", "upsert", ("id",), "", 4),
        ("apache", "upsert", ("id", "n"), "", 4),
        ("ours", "bulk_insert", ("id", "n"), "id", 2),
        ("apache", "bulk_insert", ("id",), "", 4),
    ],
)
def test_two_writers_go_on_on_the_same_rings(tmp_path, pool, first, operation, keys, fields, turns):
    apache = pool.get("0.15.0")
    table = Shared(tmp_path / "t", apache, keys, RING | ({FIELDS: fields} if fields else {}))
    if first == "ours":
        table.create()
    table.write(first, operation, rows(IDS))
    rings = in_their_buckets(table)
    for turn, writer in enumerate(("apache", "ours", "apache", "ours")[:turns]):
        table.write(writer, "upsert", rows(IDS[turn::2], ts=10 + turn, v=f"{writer}{turn}"))
        table.check(apache)
        table.write(writer, "delete", rows(IDS)[turn * 3 : turn * 3 + 2])
        table.write(writer, "upsert", rows(["new", f"new{turn}"], p=f"p{turn}"))
        assert in_their_buckets(table)["a"] == rings["a"]
    table.write("ours", "insert_overwrite", rows(IDS[:12], ts=30))
    table.write("apache", "upsert", rows(IDS[:20], ts=31))
    table.write("ours", "upsert", rows(IDS[10:30], ts=32))
    assert in_their_buckets(table)["a"].seq_no == 1
    table.check(apache, pool.get("1.0.2"))


@pytest.mark.req("IX-11")
@pytest.mark.slow
def test_buckets_that_apache_hudi_has_split_are_written_on(tmp_path, pool):
    apache = pool.get("0.15.0")
    table = Shared(tmp_path / "t", apache, ("id",), RING)
    table.create()
    table.write("ours", "upsert", rows(IDS))
    table.index = RING | SPLITTING
    table.write("apache", "upsert", rows(IDS[::2], ts=2))
    table.index = {}
    rings = in_their_buckets(table)
    assert len(rings["a"].nodes) > 3
    table.write("ours", "upsert", rows(IDS[::3], ts=3))
    table.write("apache", "upsert", rows(IDS[1::3], ts=4))
    table.write("ours", "delete", rows(IDS[:4]))
    assert in_their_buckets(table) == rings
    table.check(apache)


@pytest.mark.req("IX-11", "NEW-14")
def test_the_table_keeps_its_engine(tmp_path, pool):
    apache = pool.get("0.15.0")
    table = Shared(tmp_path / "t", apache, ("id",), RING)
    table.create()
    table.write("ours", "upsert", rows(IDS))
    table.index = {}
    table.write("apache", "upsert", rows(IDS[::2], ts=2))
    assert len(in_their_buckets(table)["a"].nodes) == 3
    table.check(apache)
    table.index = {"hoodie.index.bucket.engine": "SIMPLE"}
    with pytest.raises(SparkProcessError, match="Config conflict"):
        table.write("apache", "upsert", rows(IDS, ts=3))


@pytest.mark.req("IX-11")
def test_neither_writes_it_into_a_copy_on_write_table(tmp_path, pool):
    table = Shared(
        tmp_path / "t", pool.get("0.15.0"), ("id",), {**RING, WRITE + "table.type": "COPY_ON_WRITE"}
    )
    with pytest.raises(SparkProcessError, match=r"(?i)consistent hashing"):
        table.write("apache", "upsert", rows(IDS))
    with pytest.raises(UnsupportedError, match="copy-on-write"):
        table.create()
