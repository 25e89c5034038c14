"""Parquet data sets become Hudi tables: as a whole, a month of them, or partition by partition, by read and write."""

import pytest
from pyspark.sql import functions as F

import hudi_spark

pytestmark = pytest.mark.spark

MONTHS = ("2024_01", "2024_02", "2024_03")
KEYS = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
BULK_INSERT = {**KEYS, "hoodie.datasource.write.operation": "bulk_insert"}


@pytest.fixture(scope="module")
def source(session, tmp_path_factory):
    """A Parquet data set of three months, forty rows each."""
    path = str(tmp_path_factory.mktemp("source") / "orders")
    month = F.element_at(F.array(*map(F.lit, MONTHS)), (F.col("n") % 3 + 1).cast("int"))
    rows = session.range(120).withColumnRenamed("id", "n").select(
        F.format_string("o%03d", "n").alias("id"), F.lit(1).cast("long").alias("ts"),
        (F.col("n") / 4).alias("price"), F.struct(F.col("n").alias("no")).alias("origin"), month.alias("month"),
    )  # fmt: skip
    rows.repartition(2).write.partitionBy("month").parquet(path)
    return path


def as_parquet(spark, path, months=MONTHS):
    return spark.read.option("basePath", path).parquet(*(f"{path}/month={m}" for m in months))


def save(frame, path, options, mode="append"):
    frame.write.format("org.apache.hudi").options(**options).mode(mode).save(path)
    return hudi_spark.last_commit()


def rows(frame):
    return sorted(map(tuple, frame.select("id", "ts", "price", "origin.no", "month").collect()))


@pytest.mark.req("MG-01")
@pytest.mark.slow
def test_a_month_is_imported_for_a_trial_and_samples_of_it_upserted(spark, source, path):
    month = as_parquet(spark, source, MONTHS[1:2])
    storage_type = {"hoodie.datasource.write.storage.type": "COPY_ON_WRITE"}  # its name before 0.6
    first = save(month, path, {**BULK_INSERT, **storage_type})
    assert (first.operation, first.inserted, first.partitions) == ("bulk_insert", 40, ("month=2024_02",))
    assert rows(spark.read.format("hudi").load(path)) == rows(month)

    sample = (
        month.orderBy("id").limit(7).withColumn("ts", F.lit(2).cast("long")).withColumn("price", F.lit(0.5))
    )
    again = save(sample, path, {**KEYS, "hoodie.datasource.write.operation": "upsert"})
    assert (again.inserted, again.updated) == (0, 7)
    wanted = {r[0]: r for r in rows(month)} | {r[0]: r for r in rows(sample)}
    assert rows(spark.read.format("hudi").load(path)) == sorted(wanted.values())


@pytest.mark.req("MG-03")
def test_partitions_move_one_by_one_while_the_others_stay_parquet(spark, source, path):
    whole, moved = rows(as_parquet(spark, source)), []
    for month in MONTHS[:0:-1]:  # the oldest never moves
        save(as_parquet(spark, source, [month]), path, BULK_INSERT)
        moved.append(month)
        left = as_parquet(spark, source, [m for m in MONTHS if m not in moved])
        both = spark.read.format("hudi").load(path).unionByName(left, allowMissingColumns=True)
        assert rows(both) == whole
    # A month that is moved again, as a job that failed half-way does it, stands there once.
    again = save(
        as_parquet(spark, source, MONTHS[1:2]), path,
        {**KEYS, "hoodie.datasource.write.operation": "insert_overwrite"},
    )  # fmt: skip
    assert again.inserted == 40
    assert rows(spark.read.format("hudi").load(path)) == [r for r in whole if r[-1] != MONTHS[0]]


@pytest.mark.req("MG-05")
def test_a_table_takes_the_place_of_a_parquet_data_set(spark, source, path, files_read):
    before = as_parquet(spark, source)
    save(before, path, BULK_INSERT, "overwrite")
    after = spark.read.format("hudi").load(path)
    # The same columns in the same types, the same answers, partitions read as few.
    assert [(f.name, f.dataType) for f in after.schema if not f.name.startswith("_hoodie_")] == [
        (f.name, f.dataType) for f in before.schema
    ]
    assert rows(after) == rows(before)
    by_month = [
        f.groupBy("month").agg(F.sum("price"), F.max("origin.no")).orderBy("month") for f in (before, after)
    ]
    assert by_month[0].collect() == by_month[1].collect()
    assert files_read(after.where("month = '2024_03'")) == files_read(before.where("month = '2024_03'"))
    # What reads Parquet reads it on.
    plain = as_parquet(spark, path)
    assert rows(plain) == rows(before)
    # And what took a rewrite of the partition takes one of the file that holds the row.
    change = before.where("id = 'o004'").withColumn("ts", F.lit(2).cast("long"))
    result = save(change, path, KEYS)
    assert (result.updated, result.files_rewritten, result.files_written) == (1, 1, 0)
    assert spark.read.format("hudi").load(path).where("ts = 2").count() == 1
