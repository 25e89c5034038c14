"""Prepped operations on Spark, and a function of the user's that orders a bulk_insert."""

import pytest

import hudi_spark
from hudi_format.errors import ConcurrentWriterError, MissingColumnError, OptionError
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
PARTITIONER = "hoodie.bulkinsert.user.defined.partitioner.class"
DDL = "id string, v int, ts long, city string"
FIRST = [("a", 1, 1, "x"), ("b", 2, 1, "x"), ("c", 3, 1, "y")]


@pytest.fixture
def save(path, trips):
    def write(frame, operation, **options):
        given = {**trips, WRITE + "operation": operation, **options}
        frame.write.format("hudi").options(**given).mode("append").save(path)
        return hudi_spark.last_commit()

    return write


def values(path):
    got = HudiTable.open(path).read(columns=["id", "v", "city"]).to_arrow()
    return sorted(tuple(r.values()) for r in got.to_pylist())


def test_rows_go_back_to_their_files_without_a_look_up(spark, path, save):
    save(spark.createDataFrame(FIRST, DDL), "insert")
    read = spark.read.format("hudi").load(path)
    rows = read.withColumn("v", read["v"] + 10).where("id != 'b'").localCheckpoint()
    result = save(rows, "upsert_prepped")
    assert (result.operation, result.updated, result.inserted, result.lookup) == (
        "upsert_prepped",
        2,
        0,
        None,
    )
    assert values(path) == [("a", 11, "x"), ("b", 2, "x"), ("c", 13, "y")]
    with pytest.raises(ConcurrentWriterError, match="was rewritten as"):
        save(rows, "delete_prepped")
    gone = save(spark.read.format("hudi").load(path).where("id = 'a'"), "delete_prepped")
    assert gone.deleted == 1
    again = rows.where("id = 'a'")
    save(again, "insert_prepped")
    save(again, "bulk_insert_prepped", **{"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
    assert values(path) == [("a", 11, "x"), ("a", 11, "x"), ("b", 2, "x"), ("c", 13, "y")]


@pytest.mark.req("CC-40")
@pytest.mark.parametrize("index", ["SIMPLE", pytest.param("BUCKET", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_rows_beside_log_files_go_back_while_they_are_the_stored_records(spark, path, save, index):
    given = {
        WRITE + "table.type": "MERGE_ON_READ",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.compact.inline": "false",
        "hoodie.index.type": index,
        **({"hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}),
    }

    def read():
        return spark.read.format("hudi").load(path).localCheckpoint()

    save(spark.createDataFrame(FIRST, DDL), "insert", **given)
    stale = read()
    save(spark.createDataFrame([("a", 5, 2, "x"), ("c", 6, 2, "y")], DDL), "upsert", **given)
    for operation in ("upsert_prepped", "delete_prepped"):
        with pytest.raises(ConcurrentWriterError, match=r"2 rows of 2 file groups with log files"):
            save(stale, operation, **given)
    now = read()
    with pytest.raises(MissingColumnError, match="have no _hoodie_commit_seqno"):
        save(now.drop("_hoodie_commit_seqno"), "upsert_prepped", **given)
    both = now.where("id != 'b'").union(stale.where("id = 'b'"))
    result = save(both.withColumn("v", both["v"] + 10), "upsert_prepped", **given)
    assert (result.operation, result.updated, result.inserted) == ("upsert_prepped", 3, 0)
    assert all("logVersion" in s.extra for s in result.write_stats)
    assert values(path) == [("a", 15, "x"), ("b", 12, "x"), ("c", 16, "y")]
    assert save(read().where("id = 'a'"), "delete_prepped", **given).deleted == 1
    with pytest.raises(ConcurrentWriterError, match="1 rows of 1 file groups"):
        save(both.where("id = 'a'"), "upsert_prepped", **given)
    assert values(path) == [("b", 12, "x"), ("c", 16, "y")]


@pytest.mark.req("WR-19", "WR-20")
def test_a_function_of_the_users_gives_order_and_files(spark, path, save):
    rows = spark.createDataFrame([(f"k{i:02d}", i, 1, "x") for i in range(30)], DDL).repartition(5)
    given = {PARTITIONER: "frame_orders:backwards", "hoodie.bulkinsert.shuffle.parallelism": "1"}
    result = save(rows, "bulk_insert", **given)
    assert result.files_written == 1
    got = HudiTable.open(path).read(columns=["v"]).to_arrow()["v"].to_pylist()
    assert got == list(range(29, -1, -1))
    with pytest.raises(OptionError, match="returned columns"):
        save(rows, "bulk_insert", **{PARTITIONER: "frame_orders:narrower"})
    assert len(values(path)) == 30
