"""Schema evolution through `format("hudi")`: the FAQ's example, and reading old files natively."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from hudi_format.errors import MissingColumnError, SchemaError
from hudi_format.schema.meta_fields import META_COLUMNS
from hudi_spark.writing.writer import last_commit
from hudi_timeline import HudiTable

WRITE = "hoodie.datasource.write."
NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}


def save(frame, path, options, **more):
    frame.write.format("hudi").options(**{**options, **more}).mode("append").save(path)


@pytest.mark.req("SE-05")
def test_the_faqs_example_of_schema_reconciliation(spark, path):
    """FAQ, "How do I verify datasource schema reconciliation in Hudi?", without its Hive options."""
    hudi_options = {
        "hoodie.table.name": "test_recon1",
        "hoodie.datasource.write.recordkey.field": "uuid",
        "hoodie.datasource.write.table.name": "test_recon1",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.upsert.shuffle.parallelism": 2,
        "hoodie.insert.shuffle.parallelism": 2,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.reconcile.schema": "true",
    }
    sc = spark.sparkContext
    some_json = '{"uuid":1,"ts":1,"Url":"hudi.apache.com"}'
    df = spark.read.json(sc.parallelize([some_json]))
    df.write.format("hudi").mode("append").options(**hudi_options).save(path)
    missing_field_json = '{"uuid":2,"ts":1}'
    df = spark.read.json(sc.parallelize([missing_field_json]))
    df.write.format("hudi").mode("append").options(**hudi_options).save(path)
    got = spark.read.format("hudi").load(path)
    assert got.columns[5:] == ["Url", "ts", "uuid"]
    assert {tuple(r)[5:] for r in got.collect()} == {("hudi.apache.com", 1, 1), (None, 1, 2)}
    assert [str(c) for c in last_commit().schema_changes] == ["Url filled with null"]


@pytest.mark.req("SE-02")
def test_new_columns_are_there_for_old_and_new_rows(spark, path, trips):
    """FAQ, "What's Hudi's schema evolution story?": appended fields work, a deletion of fields does not."""
    save(spark.createDataFrame([("a", "x", 1, 7)], "id string, city string, ts long, n int"), path, trips)
    more = spark.createDataFrame(
        [("b", "y", 1, 8, "new")], "id string, city string, ts long, n int, m string"
    )
    save(more, path, trips)
    rows = spark.read.format("hudi").load(path).select("id", "n", "m").collect()
    assert {tuple(r) for r in rows} == {("a", 7, None), ("b", 8, "new")}
    with pytest.raises(MissingColumnError, match="m \\(string\\)"):
        save(more.drop("m"), path, trips)


@pytest.mark.req("SE-06")
def test_rows_take_a_given_schema(spark, path, trips, tmp_path):
    """FAQ, "What's Hudi's schema evolution story?": a schema passed explicitly, or the DataFrame's own."""
    types = {"id": "string", "city": "string", "ts": "long", "n": "double", "m": "string"}
    fields = [{"name": n, "type": ["null", t], "default": None} for n, t in types.items()]
    (tmp_path / "trip.avsc").write_text(json.dumps({"type": "record", "name": "trip", "fields": fields}))
    given = {"hoodie.streamer.schemaprovider.source.schema.file": f"file://{tmp_path}/trip.avsc"}
    first = spark.createDataFrame([(7, 1, "a", "x")], "n int, ts int, id string, city string")
    for operation in ("bulk_insert", "upsert"):
        save(first, path, trips, **given, **{WRITE + "operation": operation})
    save(first.withColumn("id", F.lit("b")).withColumn("m", F.lit("new")), path, trips, **given)
    got = spark.read.format("hudi").load(path).drop(*META_COLUMNS)
    assert {f.name: f.dataType.simpleString() for f in got.schema} == {**types, "ts": "bigint"}
    assert {tuple(r) for r in got.select("id", "ts", "n", "m", "city").collect()} == {
        ("a", 1, 7.0, None, "x"), ("b", 1, 7.0, "new", "x"),
    }  # fmt: skip
    with pytest.raises(SchemaError, match="no column o"):
        save(first.withColumn("o", F.lit(1)), path, trips, **given)


def test_files_of_each_type_are_read_natively_and_filters_hold(spark, path, trips):
    for n, (kind, value) in enumerate([("int", 1), ("bigint", 2**40), ("double", 2.5), ("string", "q")]):
        frame = spark.createDataFrame(
            [(f"k{n}", f"p{n}", 1, value)], f"id string, city string, ts long, v {kind}"
        )
        save(frame, path, trips)
    got = spark.read.format("hudi").load(path)
    assert {(r.id, r.v) for r in got.collect()} == {
        ("k0", "1"), ("k1", str(2**40)), ("k2", "2.5"), ("k3", "q"),
    }  # fmt: skip
    assert [r.id for r in got.where("v = '1'").collect()] == ["k0"]
    assert {r.id for r in got.where("v > '2'").collect()} == {"k2", "k3"}
    (warning,) = last_commit().warnings
    assert warning == "column v is text from now on, it was double; hudi.write.types=table refuses that"


@pytest.mark.req("SE-02")
def test_a_type_that_changes_is_warned_of_and_can_be_refused(spark, path, trips, caplog):
    columns = "id string, city string, ts long, v int, s struct<x:int>"
    save(spark.createDataFrame([("a", "x", 1, 7, (1,))], columns), path, trips)
    wide = spark.createDataFrame([("a", "x", 1, 2**40, (2**40,))], columns.replace("int", "long"))
    table = {"hudi.write.types": "table"}
    with pytest.raises(SchemaError, match="column v has type int32 in the table, and would become int64"):
        save(wide, path, trips, **table)
    assert last_commit().schema_changes == ()
    with caplog.at_level("WARNING", "hudi"):
        save(wide, path, trips)
    first, second = last_commit().warnings
    assert first == "column v is int64 from now on, it was int32; hudi.write.types=table refuses that"
    assert second.startswith("column s.x is int64 from now on, it was int32: Apache Hudi 0.15 cannot read")
    assert first in caplog.text
    # What the table's types hold is converted, in whatever order; new columns come last then.
    save(
        spark.sql("select 2 v, 'b' id, 'x' city, 1L ts, named_struct('x', 5) s, 'new' n"),
        path,
        trips,
        **table,
    )
    assert spark.read.format("hudi").load(path).columns[5:] == ["id", "ts", "v", "s", "n", "city"]
    assert last_commit().warnings == ()


VOID = """
    select 'b' id, 'x' city, 1L ts, null v, named_struct('x', null, 'y', 'q') s, array(null) l, map('k', null) m,
        array(named_struct('q', null)) ls, named_struct('i', named_struct('j', null)) d
"""
TYPED = """
    select 'a' id, 'x' city, 1L ts, 1 v, named_struct('x', 1, 'y', 'q') s, array(1) l, map('k', 1.5D) m,
        array(named_struct('q', date'2024-02-29')) ls, named_struct('i', named_struct('j', 1.5BD)) d
"""


@pytest.mark.req("SE-02")
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
@pytest.mark.sampled(3)
def test_void_takes_the_tables_type_on_every_level(spark, path, trips, operation):
    save(spark.sql(TYPED), path, trips)
    before = spark.read.format("hudi").load(path).schema
    save(spark.sql(VOID), path, trips, **{WRITE + "operation": operation})
    got = spark.read.format("hudi").load(path)
    assert got.schema == before
    (warning,) = last_commit().warnings
    assert warning.startswith("l: lists with null elements")
    row = got.where("id = 'b'").drop("id", "city", "ts", *META_COLUMNS).collect()[0].asDict(recursive=True)
    assert row == {
        "v": None, "s": {"x": None, "y": "q"}, "l": [None], "m": {"k": None}, "ls": [{"q": None}],
        "d": {"i": {"j": None}},
    }  # fmt: skip


def test_new_columns_of_void_are_left_out_with_a_warning_or_refused(spark, path, trips):
    save(
        spark.sql("select 'a' id, 'x' city, 1L ts, null v, named_struct('x', null, 'y', 'q') s"), path, trips
    )
    assert last_commit().warnings == (
        "v, s.x: left out, as new columns of nulls only have no type; give them one to add them to the table",
    )
    got = spark.read.format("hudi").load(path)
    assert got.columns[5:] == ["id", "ts", "s", "city"]
    assert got.schema["s"].dataType.names == ["y"]
    with pytest.raises(SchemaError, match=r"column l\.element has type null"):
        save(
            spark.sql("select 'a' id, 'x' city, 1L ts, named_struct('y', 'q') s, array(null) l"), path, trips
        )


@pytest.mark.slow
def test_keys_are_made_of_the_value_that_is_stored(spark, path, trips):
    first = spark.sql("select cast(7 as decimal(8,2)) id, 'x' city, 1L ts, 1 v")
    save(first, path, trips)
    again = spark.sql("select 7 id, 'x' city, 2L ts, 2 v")
    save(again, path, trips, **{WRITE + "operation": "upsert"})
    assert (last_commit().inserted, last_commit().updated) == (0, 1)
    assert [r.v for r in spark.read.format("hudi").load(path).collect()] == [2]
    with pytest.raises(SchemaError, match="fit"):
        save(spark.sql("select 12345678 id, 'x' city, 2L ts, 2 v"), path, trips)
    assert spark.read.format("hudi").load(path).count() == 1


def test_values_that_do_not_fit_fail_the_write_and_leave_nothing(spark, path, trips):
    save(spark.sql("select 'a' id, 'x' city, 1L ts, cast(1.25 as decimal(5,2)) v"), path, trips)
    wide = spark.sql("select 'b' id, 'x' city, 1L ts, 12345 v")
    for operation in ("upsert", "bulk_insert"):
        with pytest.raises(SchemaError, match="column v has type"):
            save(wide, path, trips, **{WRITE + "operation": operation})
    save(spark.sql("select 'b' id, 'x' city, 1L ts, 2.5D v"), path, trips)
    rows = spark.read.format("hudi").load(path).select("id", "v").collect()
    assert {(r.id, str(r.v)) for r in rows} == {("a", "1.25"), ("b", "2.50")}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.sampled(2)
def test_writes_go_on_after_columns_were_changed(spark, path, trips, kind):
    """Files and logs of before are read by column id, by readers and by the workers that rewrite them."""
    options = {**trips, WRITE + "table.type": kind}
    save(
        spark.createDataFrame([("a", "x", 1, 7), ("b", "x", 1, 7)], "id string, city string, ts long, n int"),
        path,
        options,
    )
    table = HudiTable.open(path)
    table.alter().rename("n", "m").add("n", "string").execute()
    rows = spark.createDataFrame(
        [("b", "x", 2, 8, "new")], "id string, city string, ts long, m int, n string"
    )
    save(rows, path, options)
    found = spark.read.format("hudi").load(path).select("id", "m", "n").collect()
    assert {tuple(r) for r in found} == {("a", 7, None), ("b", 8, "new")}
    assert table.verify(deep=True) == []


def test_a_collation_is_told_as_lost_and_the_texts_are_there(spark, path, trips):
    if not hasattr(StringType(), "collation"):
        pytest.skip("texts have collations from Spark 4 on")
    rows = spark.createDataFrame([("a", "x", 1, "Q")], "id string, city string, ts long, name string")
    save(rows.withColumn("name", F.expr("name collate UNICODE_CI")), path, trips)
    (warning,) = last_commit().warnings
    assert warning.startswith("name: the collation UNICODE_CI is not stored")
    got = spark.read.format("hudi").load(path)
    assert got.schema["name"].dataType == StringType()
    assert [r.name for r in got.collect()] == ["Q"]
    assert got.where("name = 'q'").count() == 0
