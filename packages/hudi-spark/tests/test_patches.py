"""format("hudi") on readers and writers: what is diverted, what is left alone, what is refused."""

import logging
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.readwriter import DataFrameWriter

import hudi_spark
from hudi_format.errors import (
    ConflictingOptionError,
    InvalidOptionError,
    NotAHudiTableError,
    OptionError,
    TableExistsError,
    UnknownOptionError,
    UnsupportedError,
)
from hudi_spark.runtime import settings
from hudi_spark.runtime.options import is_hudi, merged
from hudi_spark.runtime.settings import HAS_DATA_SOURCES

pytestmark = pytest.mark.spark


@pytest.fixture
def rows(spark):
    return spark.createDataFrame([("a", 1, "oslo"), ("b", 1, "rome")], "id string, ts long, city string")


@pytest.fixture
def written(rows, trips, path):
    rows.write.format("hudi").options(**trips).mode("append").save(path)
    return path


@pytest.mark.req("WR-22")
@pytest.mark.parametrize("name", ["hudi", "HUDI", "org.apache.hudi", "Org.Apache.Hudi"])
@pytest.mark.sampled(3)
@pytest.mark.one_version
def test_every_name_of_the_format_writes_and_reads(spark, rows, trips, path, name):
    rows.write.format(name).options(**trips).mode("append").save(path)
    assert hudi_spark.last_commit().inserted == 2
    assert spark.read.format(name).load(path).count() == 2


def test_the_order_of_calls_is_free(spark, rows, trips, path):
    rows.write.mode("append").options(**trips).format("hudi").option("hoodie.table.name", "trips").save(path)
    assert spark.read.option("as.of.instant", "2099-12-31").format("hudi").load(path).count() == 2


def test_everything_may_be_given_to_save_and_load(spark, rows, trips, path):
    del trips["hoodie.datasource.write.partitionpath.field"]
    rows.write.save(path, format="hudi", mode="append", partitionBy="city", **trips)
    assert spark.read.load(path, format="hudi").select("city").distinct().count() == 2
    assert spark.read.format("hudi").option("path", path).load().count() == 2
    assert spark.read.format("hudi").load([path]).count() == 2


@pytest.mark.one_version
def test_the_path_may_be_an_option(spark, rows, trips, path):
    rows.write.format("hudi").options(**trips, path=path).mode("append").save()
    assert spark.read.format("hudi").load(path).count() == 2


@pytest.mark.one_version
def test_a_path_may_be_one_of_pathlib(spark, rows, trips, path):
    rows.write.format("hudi").options(**trips).mode("append").save(Path(path))
    assert spark.read.format("hudi").load(Path(path)).count() == 2
    assert spark.read.format("hudi").load([Path(path)]).count() == 2


@pytest.mark.req("QR-18")
def test_a_table_is_named_by_its_path(spark, written):
    for table in (spark.table, spark.read.table, spark.read.format("hudi").table):
        assert sorted(r.id for r in table(f"hudi.`{written}`").collect()) == ["a", "b"]
    old = (
        spark.read.option("hoodie.datasource.query.type", "snapshot")
        .schema("city string")
        .table(f"HUDI.`{written}`")
    )
    assert old.columns == ["city"]


def test_other_tables_are_left_alone_by_name(spark, rows):
    rows.createOrReplaceTempView("plain_rows")
    assert spark.table("plain_rows").count() == spark.read.table("plain_rows").count() == 2
    for write in (rows.writeTo("nowhere").append, lambda: rows.write.insertInto("nowhere")):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            write()


def test_hudi_may_be_the_sessions_default_format(spark, rows, trips, path):
    before = spark.conf.get("spark.sql.sources.default")
    spark.conf.set("spark.sql.sources.default", "hudi")
    try:
        rows.write.options(**trips).mode("append").save(path)
        assert spark.read.load(path).count() == 2
    finally:
        spark.conf.set("spark.sql.sources.default", before)


@pytest.mark.parametrize("style", ["list", "names"])
@pytest.mark.sampled(2)
def test_partition_by_names_the_partition_field(spark, rows, trips, path, style):
    del trips["hoodie.datasource.write.partitionpath.field"]
    writer = rows.write.format("hudi").options(**trips).mode("append")
    (writer.partitionBy(["city"]) if style == "list" else writer.partitionBy("city")).save(path)
    found = spark.read.format("hudi").load(path).select("_hoodie_partition_path").collect()
    assert {r[0] for r in found} == {"oslo", "rome"}


def test_partition_by_and_an_option_that_says_otherwise_conflict(rows, trips, path):
    with pytest.raises(ConflictingOptionError, match="partitionBy"):
        rows.write.format("hudi").options(**trips).partitionBy("ts").mode("append").save(path)


@pytest.mark.one_version
def test_session_settings_count_below_explicit_options(spark, rows, trips, path):
    for name, value in trips.items():
        spark.conf.set(name, value)
    spark.conf.set("hoodie.table.name", "of_the_session")
    rows.write.format("hudi").option("hoodie.table.name", "trips").mode("append").save(path)
    rows.write.format("hudi").option("hoodie.table.name", "trips").mode("append").save(path)
    assert hudi_spark.last_commit().updated == 2
    with pytest.raises(ConflictingOptionError):
        rows.write.format("hudi").mode("append").save(path)


def test_options_are_compared_without_case():
    assert merged({"hoodie.A": "1", "hoodie.b": "2"}, {"HOODIE.a": "3"}) == {"hoodie.b": "2", "HOODIE.a": "3"}


def test_modes_do_what_spark_says(spark, rows, trips, written):
    with pytest.raises(TableExistsError):
        rows.write.format("hudi").options(**trips).save(written)
    with pytest.raises(TableExistsError):
        rows.write.format("hudi").options(**trips).mode("errorifexists").save(written)
    rows.write.format("hudi").options(**trips).mode("ignore").save(written)
    assert hudi_spark.last_commit().instant == ""
    rows.where("id = 'a'").write.format("hudi").options(**trips).mode("overwrite").save(written)
    assert spark.read.format("hudi").load(written).count() == 1


def test_other_formats_pass_through(spark, rows, tmp_path):
    rows.write.format("parquet").partitionBy("city").mode("overwrite").save(str(tmp_path / "p"))
    rows.write.mode("overwrite").json(str(tmp_path / "j"))
    rows.write.save(str(tmp_path / "d"))
    assert spark.read.format("parquet").load(str(tmp_path / "p")).count() == 2
    assert spark.read.schema("id string").json(str(tmp_path / "j")).columns == ["id"]
    assert spark.read.load(str(tmp_path / "d"), schema="id string").columns == ["id"]


def test_the_schema_of_the_user_chooses_columns_and_types(spark, written):
    frame = spark.read.format("hudi").schema("ts int, id string, none double").load(written)
    assert [(f.name, f.dataType.simpleString()) for f in frame.schema] == [
        ("ts", "int"), ("id", "string"), ("none", "double"),
    ]  # fmt: skip
    assert sorted(map(tuple, frame.collect())) == [(1, "a", None), (1, "b", None)]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s, df, p: df.write.format("hudi").saveAsTable("t"), "saveAsTable"),
        (lambda s, df, p: df.write.saveAsTable("t", format="hudi"), "saveAsTable"),
        (lambda s, df, p: df.write.saveAsTable("t", "HUDI"), "saveAsTable"),
        (lambda s, df, p: df.write.format("hudi").insertInto("t"), "insertInto"),
        (lambda s, df, p: df.writeTo("t").using("hudi").create(), "writeTo"),
        (lambda s, df, p: s.read.format("hudi").table("t"), "table"),
        (
            lambda s, df, p: s.readStream.format("rate").load().writeStream.format("hudi").start(p),
            "writeStream",
        ),
        (lambda s, df, p: s.readStream.format("rate").load().writeStream.start(p, "hudi"), "writeStream"),
        (lambda s, df, p: s.sql(f"create table t using hudi location '{p}'"), "USING hudi"),
        (lambda s, df, p: s.sql("CREATE TABLE t (a int) USING `org.apache.hudi`"), "USING hudi"),
        (lambda s, df, p: s.sql(f"insert into hudi.`{p}` values (1)"), "by path"),
        (lambda s, df, p: s.sql(f"with a as (select 1) insert into hudi.`{p}` select * from a"), "by path"),
        (lambda s, df, p: s.sql(f"alter table hudi.`{p}` drop column a"), "by path.*alter"),
        (lambda s, df, p: s.sql("select * from hudi_table_changes('t', 'cdc', '0')"), "by path"),
        (lambda s, df, p: df.write.format("hudi").sortBy("id").bucketBy(2, "id").save(p), "bucketBy"),
    ],
)
def test_what_is_not_there_yet_is_refused_with_a_way_round(spark, rows, path, call, says):
    with pytest.raises(UnsupportedError, match=says) as e:
        call(spark, rows, path)
    assert e.value.remedy


def test_sql_that_only_mentions_hudi_is_spark_s(spark):
    text = "select 'create table t using hudi' as a -- using hudi\n /* from hudi.`x` */ , 1 as hudi"
    assert spark.sql(text).collect()[0].hudi == 1


@pytest.mark.req("QR-18")
def test_views_make_tables_readable_in_sql(spark, rows, written):
    table = spark.read.format("hudi").load(written)
    table.createOrReplaceTempView("hudi_trips")
    table.createOrReplaceGlobalTempView("hudi_trips")
    rows.where("id = 'b'").createOrReplaceTempView("others")
    assert spark.sql("select count(*) from hudi_trips where city = 'rome'").collect()[0][0] == 1
    everything = spark.sql("select * from global_temp.hudi_trips")
    assert everything.columns == table.columns
    assert everything.count() == 2
    joined = (
        "select t.id, t._hoodie_record_key k from hudi_trips t join others o on t.id = o.id where t.ts >= 1"
    )
    assert [tuple(r) for r in spark.sql(joined).collect()] == [("b", "b")]
    assert [r.city for r in spark.table("hudi_trips").orderBy("city").select("city").collect()] == [
        "oslo",
        "rome",
    ]


@pytest.mark.req("QR-18")
def test_statements_make_views_of_tables(spark, rows, trips, written):
    first = hudi_spark.last_commit().instant
    rows.limit(1).withColumn("ts", F.lit(2)).write.format("hudi").options(**trips).mode("append").save(
        written
    )
    made = "create {} view {} using {} options ({})"
    spark.sql(made.format("temporary", "now", "hudi", f"path '{written}'"))
    old = f"path = \"{written}\", `as.of.instant` '{first}'"
    newest = "select max(ts) from {}"
    assert spark.sql(newest.format("now")).collect()[0][0] == 2
    if not HAS_DATA_SOURCES:  # from 4.0 on Spark's own, which finds no other name
        spark.sql(made.format("or replace global temp", "`then`", "org.apache.hudi", old))
        assert spark.sql(newest.format("global_temp.then")).collect()[0][0] == 1
    with pytest.raises(AnalysisException):
        spark.sql(made.format("temporary", "now", "hudi", f"path '{written}'"))
    with pytest.raises(Exception, match=r"hoodie\.tabel|no release"):
        spark.sql(made.format("temporary", "x", "hudi", f"path '{written}', hoodie.tabel.name 'x'"))


@pytest.mark.req("QR-18")
def test_queries_name_tables_by_path(spark, rows, trips, written):
    first = hudi_spark.last_commit().instant
    rows.limit(1).withColumn("ts", F.lit(2)).write.format("hudi").options(**trips).mode("append").save(
        written
    )
    table = f"hudi.`{written}`"
    found = spark.sql(f"select sum(ts), 'hudi.`x`' as t from {table} -- hudi.`y`")
    assert [tuple(r) for r in found.collect()] == [(3, "hudi.`x`")]
    for same in (f"`hudi`.`{written}`", f"`org.apache.hudi`.`{written}`", f"Hudi . `{written}`"):
        assert spark.sql(f"-- all\n/* of it */ select sum(ts) from {same}").first()[0] == 3
    both = f"with old as (select * from {table} timestamp as of '{first}') select n.id, n.ts, o.ts from {table} n "
    assert {tuple(r) for r in spark.sql(both + "join old o on n.id = o.id").collect()} == {
        ("a", 2, 1),
        ("b", 1, 1),
    }
    assert not [
        t.name for t in spark.catalog.listTables() if t.name.startswith("hudi_") and len(t.name) == 37
    ]
    with pytest.raises(NotAHudiTableError):
        spark.sql(f"select * from hudi.`{written}-not`")


@pytest.mark.one_version
def test_names_in_a_query_by_path_may_be_words_of_statements(spark, rows, trips, path):
    there = f"{path}/insert/update-log"
    rows.write.format("hudi").options(**trips).mode("append").save(there)
    found = spark.sql(f"with `insert` as (select id from hudi.`{there}`) select id `insert` from `insert`")
    assert sorted(r["insert"] for r in found.collect()) == ["a", "b"]


@pytest.mark.one_version
def test_paths_and_patterns_below_a_table_choose_its_files(spark, written):
    def count(path, **options):
        return spark.read.format("hudi").options(**options).load(path).count()

    everything = count(written)
    assert everything > count(f"{written}/rome") > 0
    assert (
        count(f"{written}/*/*") == count(f"{written}/*") == count([written, f"{written}/rome"]) == everything
    )
    paths = {"hoodie.datasource.read.paths": f"{written}/r*"}
    assert (
        count(written, **paths)
        == count(None, **paths)
        == count(f"{written}/rome/*")
        == count(f"{written}/rome")
        == count(f"{written}/{{rome,nowhere}}/*")
        == count(None, **{"hoodie.datasource.read.paths": f"{written}/{{nowhere,r*}}"})
    )


def test_no_path_an_unknown_option_and_paths_of_no_table_are_refused(spark, rows, trips, written):
    with pytest.raises(OptionError, match="path"):
        rows.write.format("hudi").options(**trips).mode("append").save()
    with pytest.raises(OptionError, match="path"):
        spark.read.format("hudi").load()
    with pytest.raises(OptionError, match="not below one Hudi table"):
        spark.read.format("hudi").load(f"{written}_*/*")
    with pytest.raises(OptionError, match="not below the table"):
        spark.read.format("hudi").load([written, f"{written}/../other"])
    for nothing in ("nope*", "nope", ".hoodie", "*/*/*/*"):
        with pytest.raises(InvalidOptionError, match="no partition and no file at"):
            spark.read.format("hudi").load(f"{written}/{nothing}").count()
    with pytest.raises(UnknownOptionError):
        rows.write.format("hudi").options(**trips).option("hoodie.tabel.name", "x").mode("append").save(
            written
        )


def test_a_path_without_a_table_is_an_error_of_one_line(spark, path):
    with pytest.raises(NotAHudiTableError) as e:
        spark.read.format("hudi").load(path)
    assert "\n" not in str(e.value)
    assert e.value.remedy


def test_what_is_no_session_and_no_builder_is_refused(spark):
    with pytest.raises(UnsupportedError, match="a str is no session"):
        hudi_spark.enable("local")
    with pytest.raises(UnsupportedError, match="a SparkSession is no builder of sessions"):
        hudi_spark.configure(spark)


def test_enabling_twice_is_enabling_once_and_disabling_gives_the_original_back(spark, path):
    ours = DataFrameWriter.save
    hudi_spark.enable(spark)
    assert DataFrameWriter.save is ours
    hudi_spark.disable()
    try:
        assert not hudi_spark.enabled()
        assert DataFrameWriter.save is not ours
        if not settings.HAS_DATA_SOURCES:
            with pytest.raises(Exception, match="hudi"):
                spark.read.format("hudi").load(path)
    finally:
        hudi_spark.enable(spark)
    assert hudi_spark.enabled()


def test_a_wrapper_of_someone_else_survives_disabling(spark, rows, trips, path, monkeypatch):
    ours = DataFrameWriter.save
    calls = []

    def theirs(self, *args, **kwargs):
        calls.append(args)
        return ours(self, *args, **kwargs)

    monkeypatch.setattr(DataFrameWriter, "save", theirs)
    hudi_spark.disable()
    assert DataFrameWriter.save is theirs
    rows.write.format("parquet").save(path + "_p")
    hudi_spark.enable(spark)
    rows.write.format("hudi").options(**trips).mode("append").save(path)
    assert len(calls) == 2


def test_configure_enables_when_the_session_is_made(session):
    hudi_spark.disable()
    builder = SparkSession.builder
    assert hudi_spark.configure(hudi_spark.configure(builder)) is builder
    assert not hudi_spark.enabled()
    assert builder.getOrCreate() is session or builder.getOrCreate().sparkContext is session.sparkContext
    assert hudi_spark.enabled()


def test_workers_run_the_driver_s_python(spark):
    import os
    import sys

    assert os.environ["PYSPARK_PYTHON"]
    spark.sparkContext.pythonExec = "python3"
    hudi_spark.enable(spark)
    assert spark.sparkContext.pythonExec == os.environ["PYSPARK_PYTHON"]
    assert sys.executable


def test_a_connect_session_is_refused():
    class Session:
        pass

    Session.__module__ = "pyspark.sql.connect.session"
    with pytest.raises(UnsupportedError, match="Connect") as e:
        hudi_spark.enable(Session())
    assert e.value.remedy


def test_with_the_bundle_on_the_class_path_it_is_said_once(spark, monkeypatch, caplog):
    from hudi_spark import session as module

    monkeypatch.setattr(module, "has_bundle", lambda _: True)
    monkeypatch.setattr(module, "_said", set())
    with caplog.at_level(logging.WARNING, logger="hudi"):
        hudi_spark.enable(spark)
        hudi_spark.enable(spark)
    assert [r.message for r in caplog.records if "bundle" in r.message] != []
    assert len([r for r in caplog.records if "bundle" in r.message]) == 1


def test_names_of_the_format():
    assert is_hudi(" Hudi ")
    assert is_hudi("org.apache.hudi.DefaultSource")
    assert not is_hudi("hudi2")
    assert not is_hudi(None)


@pytest.mark.one_version
def test_values_of_options_are_written_as_spark_writes_them(spark, rows, trips, path):
    writer = rows.write.format("hudi").options(**trips).option("hoodie.combine.before.upsert", True)
    writer.option("hoodie.bloom.index.filter.type", None).mode("append").save(path)
    assert spark.read.format("hudi").load(path).agg(F.count("*")).collect()[0][0] == 2
