"""Tables on S3 through Spark as pip brings it, which has no file system for S3: Python workers read and write."""

from __future__ import annotations

import logging
import uuid

import pytest

import hudi_spark
from hudi_format.errors import StorageError
from hudi_timeline import HudiTable

pytestmark = [pytest.mark.spark, pytest.mark.req("SS-02")]


@pytest.fixture
def place(s3_server):
    return f"s3a://{s3_server.new_bucket()}/warehouse/trips"


@pytest.fixture
def store(spark, s3_server):
    """The session's settings of the store, as a user gives them."""
    settings = {f"spark.hadoop.{k}": v for k, v in s3_server.hadoop_options.items()}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield settings
    for key in settings:
        spark.conf.unset(key)


def rows(spark, start, end, ts):
    return spark.sql(
        f"select concat('k', id) id, {ts}L ts, concat('c/', id % 2) city, id * 1.5D fare from range({start}, {end})"
    )


def save(frame, path, options, operation="upsert", mode="append"):
    writer = frame.write.format("hudi").options(**options).mode(mode)
    writer.option("hoodie.datasource.write.operation", operation).save(path)
    return hudi_spark.last_commit()


def found(spark, path, **options):
    frame = spark.read.format("hudi").options(**options).load(path)
    return sorted((r.id, r.ts) for r in frame.select("id", "ts").collect())


@pytest.mark.req("SS-05")
def test_every_kind_of_write_and_query(spark, store, trips, place, s3_server):
    first = save(rows(spark, 0, 6, 1).repartition(3), place, trips, "bulk_insert")
    save(rows(spark, 4, 8, 2), place, trips)
    expected = [(f"k{n}", 2 if n >= 4 else 1) for n in range(8)]
    assert found(spark, place) == expected
    assert found(spark, place.replace("s3a://", "s3://")) == expected
    plain = HudiTable.open(place, storage_options=s3_server.storage_options)
    assert plain.read().count() == 8
    assert found(spark, place, **{"as.of.instant": first.instant}) == [(f"k{n}", 1) for n in range(6)]
    changes = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": first.instant,
    }
    assert found(spark, place, **changes) == [(f"k{n}", 2) for n in range(4, 8)]
    save(rows(spark, 0, 2, 3), place, trips, "delete")
    assert found(spark, place) == expected[2:]
    save(rows(spark, 20, 22, 4), place, trips, "insert_overwrite_table")
    assert found(spark, place) == [("k20", 4), ("k21", 4)]
    save(rows(spark, 30, 31, 5), place, trips, mode="overwrite")
    assert found(spark, place) == [("k30", 5)]
    assert spark.read.format("hudi").load(place).columns == plain.read(meta_columns=True).schema.names


def test_only_the_asked_columns_and_rows_are_read_and_it_is_said_once(
    spark, store, trips, place, caplog, monkeypatch
):
    monkeypatch.setattr("hudi_spark.reading.reader._said", set())
    save(rows(spark, 0, 10, 1), place, trips)
    with caplog.at_level(logging.WARNING, "hudi"):
        frame = spark.read.format("hudi").schema("id string, fare double").load(place)
        assert frame.columns == ["id", "fare"]
        chosen = {"hudi.read.columns": "fare", "hudi.read.filter": "city = 'c/1' and fare > 3"}
        few = spark.read.format("hudi").options(**chosen).load(place)
        assert sorted(r.fare for r in few.collect()) == [4.5, 7.5, 10.5, 13.5]
    assert frame.count() == 10
    said = [r for r in caplog.records if "Python workers" in r.getMessage()]
    assert len(said) == 1


def test_the_options_of_a_call_are_enough(spark, trips, place, s3_server):
    options = {**trips, **s3_server.hadoop_options}
    save(rows(spark, 0, 3, 1), place, options)
    assert len(found(spark, place, **s3_server.hadoop_options)) == 3
    # Nothing of them goes into the table.
    client, bucket = s3_server.client, place.split("/")[2]
    secret = s3_server.hadoop_options["fs.s3a.secret.key"].encode()
    for key in s3_server.keys(bucket):
        assert secret not in client.get_object(Bucket=bucket, Key=key)["Body"].read()


@pytest.mark.req("NEW-36")
def test_a_bucket_that_is_not_there_is_an_error_of_ours(spark, store, trips):
    with pytest.raises(StorageError, match=r"the bucket .* does not exist"):
        save(rows(spark, 0, 1, 1), f"s3a://no-{uuid.uuid4().hex}/t", trips)
