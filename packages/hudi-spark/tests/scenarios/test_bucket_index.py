"""The simple bucket index on Spark: each operation leaves the same rows in the same buckets as without a JVM."""

import pyarrow as pa
import pytest

import hudi_spark
from hudi_format.errors import (
    ConflictingOptionError,
    PartitionPathError,
    RecordKeyError,
    UnsupportedError,
    WriteConflictError,
)
from hudi_format.storage.open import open_storage
from hudi_index.consistent_hashing import ConsistentBucketIndex
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import load_rings
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
DDL = "id string, n bigint, p string, ts bigint"
NUMBER, POLICY = "hoodie.bucket.index.num.buckets", "hoodie.datasource.insert.dup.policy"
IDS = [*(f"k{n:03d}" for n in range(60)), "a,b", "a:b", "é𝄞", "x,y:z"]
# More places than stand in a plan (bucket_partitioner.LITERAL_PLACES), and few.
NUMBERS = {"many": 50, "few": 3}


def options(kind, keys, number):
    return {
        "hoodie.table.name": "t", WRITE + "recordkey.field": keys, WRITE + "partitionpath.field": "p",
        WRITE + "precombine.field": "ts", WRITE + "table.type": kind, "hoodie.index.type": "BUCKET",
        NUMBER: str(number), "hoodie.bucket.index.hash.field": "id",
    }  # fmt: skip


def rows(ids, p="a", ts=1):
    return [(i, n % 3, p, ts) for n, i in enumerate(ids)]


STEPS = [
    ("bulk_insert", rows(IDS[:40]) + rows(IDS[:9], "b"), {}),
    ("upsert", rows(IDS[30:], ts=2) + rows(["new"], "c"), {}),
    ("insert", rows(["i1", "i2"], ts=3) + rows(["i1"], "d"), {}),
    ("bulk_insert", rows(IDS[:3], ts=4) + rows(["j"], "d", 4), {}),
    ("delete", rows(IDS[:12:2]) + rows(["unknown"], "nowhere"), {}),
    ("insert_overwrite", rows(IDS[:5], "b", 5), {}),
    ("upsert", rows(IDS[:9], "b", 6), {}),
]


def found(path):
    """Rows, each with its partition and the bucket of its file."""
    read = HudiTable.open(path).read(meta_columns=True).to_arrow()
    names = ["id", "n", "p", "ts", "_hoodie_record_key"]
    files = (f[:9] for f in read.column("_hoodie_file_name").to_pylist())
    return sorted(zip(*(read.column(c).to_pylist() for c in names), files, strict=True))


def groups(path):
    slices = newest_slices_of(open_snapshot(open_storage(path)))
    by_bucket = {(s.partition, s.file_id[:9]) for s in slices}
    assert len(by_bucket) == len(slices)
    return by_bucket


def on_spark(spark, path, given, wanted):
    spark.createDataFrame(given, DDL).write.format("hudi").options(**wanted).mode("append").save(path)
    return hudi_spark.last_commit()


def without_jvm(path, given, wanted):
    names = ("id", "n", "p", "ts")
    table = pa.Table.from_pylist([dict(zip(names, r, strict=True)) for r in given])
    return execute(LocalEngine(2), open_storage(path), table, wanted)


@pytest.mark.req("IX-10", "IX-23", "IX-24")
@pytest.mark.parametrize(
    ("kind", "keys", "number"),
    [("COPY_ON_WRITE", "id", "few"), ("MERGE_ON_READ", "id,n", "many")],
)
@pytest.mark.sampled(2)
def test_both_engines_put_each_key_into_the_same_bucket(session, tmp_path, kind, keys, number):
    spark, local = str(tmp_path / "spark"), str(tmp_path / "local")
    base = options(kind, keys, NUMBERS[number])
    for operation, given, more in STEPS:
        wanted = {**base, **more, WRITE + "operation": operation}
        results = on_spark(session, spark, given, wanted), without_jvm(local, given, wanted)
        counts = [(r.inserted, r.updated, r.deleted, str(r.lookup)) for r in results]
        # On Spark a first bulk insert asks nothing of the table.
        assert counts[0] == counts[1] or (given is STEPS[0][1] and counts[0][:3] == counts[1][:3]), operation
        assert found(spark) == found(local), operation
        assert groups(spark) == groups(local), operation
    assert table_config.load(open_storage(spark)).properties[NUMBER] == str(NUMBERS[number])
    # Each engine goes on in the other's table, without a word about the index.
    names = {k: v for k, v in base.items() if "index" not in k}
    on_spark(session, local, rows(IDS[:20], ts=9), names)
    without_jvm(spark, rows(IDS[:20], ts=9), names)
    assert found(spark) == found(local)
    assert groups(spark) == groups(local)


@pytest.mark.req("IX-11")
@pytest.mark.slow
def test_both_engines_go_by_the_same_rings(session, tmp_path):
    spark, local = str(tmp_path / "spark"), str(tmp_path / "local")
    base = {**options("MERGE_ON_READ", "id,n", 3), "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    for operation, given, more in STEPS:
        wanted = {**base, **more, WRITE + "operation": operation}
        results = on_spark(session, spark, given, wanted), without_jvm(local, given, wanted)
        counts = {(r.inserted, r.updated, r.deleted) for r in results}
        assert len(counts) == 1, operation
        on_rings(spark)
        on_rings(local)
    names = {k: v for k, v in base.items() if "index" not in k}
    on_spark(session, local, rows(IDS[:20], ts=9), names)
    without_jvm(spark, rows(IDS[:20], ts=9), names)
    assert on_rings(spark) == on_rings(local)


def on_rings(path):
    """Rows, after a look whether each is in the file group of its ring."""
    snapshot = open_snapshot(open_storage(path))
    slices = newest_slices_of(snapshot)
    rings = load_rings(snapshot, {s.partition for s in slices})
    index = ConsistentBucketIndex(3, ("id",), rings)
    read = HudiTable.open(path).read(meta_columns=True).to_arrow()
    columns = (read.column(f"_hoodie_{n}").to_pylist() for n in ("record_key", "partition_path", "file_name"))
    for key, partition, name in zip(*columns, strict=True):
        assert name.partition("_")[0] == index.new_file_id(partition, index.of(pa.array([key]), partition)[0])
    names = ("id", "n", "p", "ts")
    return sorted(zip(*(read.column(c).to_pylist() for c in names), strict=True))


@pytest.mark.slow
def test_policies_of_known_keys_on_spark(session, tmp_path):
    path = str(tmp_path / "t")
    base = {**options("COPY_ON_WRITE", "id", 4), WRITE + "operation": "insert"}
    on_spark(session, path, rows(IDS[:20]), base)
    on_spark(session, path, rows(["k001", "x"], ts=5), {**base, POLICY: "drop"})
    assert [r[0] for r in found(path) if r[3] == 5] == ["x"]
    on_spark(session, path, rows(["y"], ts=6), {**base, POLICY: "fail"})
    assert [r[0] for r in found(path) if r[3] == 6] == ["y"]
    groups(path)


def test_settings_that_contradict_the_table_are_refused_on_spark(session, tmp_path):
    path = str(tmp_path / "t")
    base = {**options("COPY_ON_WRITE", "id", 4), WRITE + "operation": "upsert"}
    on_spark(session, path, rows(IDS[:20]), base)
    before = found(path)
    with pytest.raises(ConflictingOptionError, match="was written with 4"):
        on_spark(session, path, rows(IDS[:20], ts=2), {**base, NUMBER: "5"})
    table_config.update(open_storage(path), {NUMBER: "8"})  # a worker sees that the files say otherwise
    with pytest.raises(UnsupportedError, match="belong to other buckets"):
        on_spark(session, path, rows(IDS[:20], ts=2), {**base, NUMBER: "8"})
    assert found(path) == before


@pytest.mark.slow
def test_a_first_bulk_insert_is_streamed_and_checks_its_rows(session, tmp_path):
    path = str(tmp_path / "t")
    wanted = options("COPY_ON_WRITE", "id", 4) | {WRITE + "operation": "bulk_insert"}
    for given, error in (
        ([("a", 1, "p", 1), (None, 1, "p", 1)], RecordKeyError),
        ([("a", 1, "p", 1), ("b", 1, "../up", 1)], PartitionPathError),
    ):
        with pytest.raises(error):
            on_spark(session, path, given, wanted)
    result = on_spark(session, path, rows(IDS), wanted | {"hoodie.bulkinsert.shuffle.parallelism": "2"})
    assert "evaluate" in result.timings
    assert "tag" not in result.timings  # no pass over the rows before they are written
    assert len(result.write_stats) == len(groups(path)) == 4
    assert found(path) == sorted(found(path))
    again = on_spark(session, path, rows(["n1", "n2"]), wanted)
    assert "tag" in again.timings
    assert len(groups(path)) == 4
    assert HudiTable.open(path).read(meta_columns=True).to_arrow().num_rows == len(IDS) + 2


def test_a_first_bulk_insert_writes_partitions_of_any_year(session, tmp_path):
    path = str(tmp_path / "t")
    wanted = options("COPY_ON_WRITE", "id", 2) | {WRITE + "operation": "bulk_insert"}
    days = session.sql(
        "SELECT id, 1 AS n, make_date(y, 3, 1) AS p, 1L AS ts FROM VALUES ('a', 2024), ('b', 12024), ('c', -5) v(id, y)"
    )
    for to, more in (path, {}), (str(tmp_path / "other"), {"hoodie.combine.before.insert": "true"}):
        days.write.format("hudi").options(**wanted, **more).mode("append").save(to)
    assert {p for p, _ in groups(path)} == {"+12024-03-01", "-0005-03-01", "2024-03-01"}
    assert groups(path) == groups(str(tmp_path / "other"))
    assert (
        len(list((tmp_path / "t").rglob("*.parquet"))) == 3
    )  # none is left of the attempt without the kernels


def test_a_first_bulk_insert_refuses_groups_that_came_meanwhile(session, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    wanted = options("COPY_ON_WRITE", "id", 2)
    on_spark(session, path, rows(["gone"]), wanted)
    HudiTable.open(path).delete_partitions(["a"])
    from hudi_timeline.writing import operation

    begin = operation._transaction

    def with_a_rival(run):
        monkeypatch.setattr(operation, "_transaction", begin)
        without_jvm(path, rows(["rival"]), wanted)
        return begin(run)

    monkeypatch.setattr(operation, "_transaction", with_a_rival)
    with pytest.raises(WriteConflictError, match="first file groups"):
        on_spark(session, path, rows(IDS), wanted | {WRITE + "operation": "bulk_insert"})
    assert [r[0] for r in found(path)] == ["rival"]
