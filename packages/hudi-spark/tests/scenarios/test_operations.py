"""Options of the operations on Spark: duplicates on insert, orders of bulk_insert, partitions, empty commits."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_format.errors import DuplicateKeyError
from hudi_spark.writing.writer import last_commit

WRITE = "hoodie.datasource.write."
MODE, COLUMNS = "hoodie.bulkinsert.sort.mode", "hoodie.bulkinsert.user.defined.partitioner.sort.columns"


@pytest.fixture
def save(spark, path, trips):
    def write(rows, operation, **options):
        frame = spark.createDataFrame(rows, "id string, v int, ts long, city string")
        given = {**trips, WRITE + "operation": operation, **options}
        frame.write.format("hudi").options(**given).mode("append").save(path)
        return last_commit()

    return write


@pytest.fixture
def content(spark, path):
    def read():
        return sorted(
            tuple(r) for r in spark.read.format("hudi").load(path).select("id", "v", "city").collect()
        )

    return read


FIRST = [("a", 1, 1, "x"), ("b", 1, 1, "x"), ("c", 1, 1, "y")]


@pytest.mark.req("WR-07", "WR-08")
def test_known_keys_are_dropped_or_refused(save, content):
    save(FIRST, "insert")
    new = [("a", 2, 2, "x"), ("e", 2, 2, "x"), ("e", 3, 3, "x"), ("a", 9, 9, "y")]
    with pytest.raises(DuplicateKeyError, match="1 rows have a key"):
        save(new, "insert", **{"hoodie.datasource.insert.dup.policy": "fail"})
    result = save(new, "upsert", **{WRITE + "insert.drop.duplicates": "true"})
    assert (result.operation, result.inserted, result.updated) == ("insert", 2, 0)
    assert content() == [("a", 1, "x"), ("a", 9, "y"), ("b", 1, "x"), ("c", 1, "y"), ("e", 3, "x")]


@pytest.mark.req("WR-19", "WR-20", "WR-03")
@pytest.mark.parametrize(
    ("options", "files", "sorted_by"),
    [
        ({MODE: "NONE"}, 6, None),
        ({MODE: "NONE", "hoodie.bulkinsert.shuffle.parallelism": "1"}, 3, None),
        ({MODE: "GLOBAL_SORT", "hoodie.bulkinsert.shuffle.parallelism": "1"}, 3, "_hoodie_record_key"),
        ({MODE: "PARTITION_SORT"}, 6, "_hoodie_record_key"),
        ({MODE: "PARTITION_PATH_REPARTITION"}, 3, None),
        ({MODE: "PARTITION_PATH_REPARTITION_AND_SORT"}, 3, None),
        ({COLUMNS: "v", "hoodie.bulkinsert.shuffle.parallelism": "1"}, 3, "v"),
    ],
    ids=lambda v: "-".join(v.values()) if isinstance(v, dict) else None,
)
@pytest.mark.sampled(3)
def test_bulk_insert_orders_and_spreads_rows_as_asked(spark, save, content, path, options, files, sorted_by):
    rows = [(f"k{(i * 7) % 40:02d}", 100 - i, 1, f"p{i % 3}") for i in range(40)]
    assert save(rows, "bulk_insert", **options).inserted == 40
    assert content() == sorted((k, v, p) for k, v, _, p in rows)
    found = [pq.read_table(f) for f in sorted(Path(path).glob("p*/*.parquet"))]
    assert len(found) == files
    if sorted_by:
        assert all(t.column(sorted_by).to_pylist() == sorted(t.column(sorted_by).to_pylist()) for t in found)


def test_a_global_sort_gives_tasks_ranges_that_do_not_overlap(save, path):
    rows = [(f"k{(i * 7) % 40:02d}", i, 1, "x") for i in range(40)]
    save(rows, "bulk_insert", **{MODE: "GLOBAL_SORT", "hoodie.bulkinsert.shuffle.parallelism": "3"})
    keys = sorted(
        pq.read_table(f).column("_hoodie_record_key").to_pylist() for f in Path(path).glob("x/*.parquet")
    )
    assert len(keys) > 1
    assert [k for of in keys for k in of] == sorted(r[0] for r in rows)


def test_partitions_are_deleted_and_overwritten_as_without_a_jvm(save, content):
    save([*FIRST, ("d", 1, 1, "z/1")], "insert")
    result = save([], "delete_partition", **{WRITE + "partitions.to.delete": "z*,nope"})
    assert result.partitions == ("z/1",)
    assert result.warnings == ("nope is no partition of the table: nothing was deleted there",)
    result = save(
        [("q", 1, 1, "x"), ("q", 1, 1, "nope")], "delete_partition", **{WRITE + "partitions.to.delete": "y"}
    )
    assert result.partitions == ("y",)  # names go before rows
    assert content() == [("a", 1, "x"), ("b", 1, "x")]
    static = {"hoodie.datasource.overwrite.mode": "STATIC"}
    assert "counts in SQL only" in save([("n", 2, 2, "new")], "insert_overwrite", **static).warnings[0]
    assert [r[0] for r in content()] == ["a", "b", "n"]


@pytest.mark.slow
def test_nothing_to_write_is_no_commit_where_empty_ones_are_not_wanted(save, content):
    save(FIRST, "insert")
    for operation in ("upsert", "bulk_insert", "delete"):
        assert save([], operation, **{"hoodie.allow.empty.commit": "false"}).instant == ""
    assert len(content()) == 3
    assert save([], "upsert").instant


@pytest.mark.req("MB-09")
def test_the_phases_of_a_write_are_named_jobs(spark, save):
    """What Spark's UI shows; its store is there without the UI too."""
    store = spark.sparkContext._jsc.sc().statusStore()

    def jobs():
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(300_000)  # another thread fills the store
        found = store.jobsList(None)  # of the newest thousand
        return {j.jobId(): j.description() for j in map(found.apply, range(found.size()))}

    before = max(jobs(), default=-1)
    save(FIRST, "upsert")
    save(FIRST, "upsert")
    named = {d.get() for n, d in jobs().items() if n > before and d.isDefined()}
    assert {"hudi: evaluate", "hudi: tag", "hudi: write"} <= named
