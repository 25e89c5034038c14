"""Sixty calls that are wrong, or ask for what is not there: one line of ours each, and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hudi_spark
from hudi_format.errors import HudiError
from hudi_spark.runtime.settings import HAS_DATA_SOURCES

WRITE = "hoodie.datasource.write."
GOOD = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
}
Call = Callable[[SparkSession, DataFrame, str, str], Any]


def save(path: str, frame: DataFrame, mode: str = "append", **options: str) -> None:
    given = {**GOOD, **{WRITE + k if "." not in k else k: v for k, v in options.items()}}
    frame.write.format("hudi").options(**given).mode(mode).save(path)


def read(s: SparkSession, path: str, **options: str) -> Any:
    return s.read.format("hudi").options(**options).load(path).collect()


def sql(text: str) -> Call:
    return lambda s, df, t, new: s.sql(text.format(t=t, new=new)).collect()


def writing(**options: str) -> Call:
    return lambda s, df, t, new: save(t, df, **{k.replace("__", "."): v for k, v in options.items()})


def reading(**options: str) -> Call:
    return lambda s, df, t, new: read(s, t, **{k.replace("__", "."): v for k, v in options.items()})


INCREMENTAL = {"hoodie__datasource__query__type": "incremental"}

CALLS: dict[str, Call] = {
    # SQL
    "create table": sql("create table h1 (id string) using hudi location '{new}'"),
    "create table of a table": sql("create table h2 using hudi location '{t}'"),
    "create table in capitals": sql("CREATE TABLE IF NOT EXISTS h3 (id STRING) USING HUDI"),
    "create table as select": sql("create table h4 using hudi as select 1 as id"),
    "create external table": sql("create external table h5 (id string) using hudi location '{new}'"),
    "replace table": sql("create or replace table h6 (id string) using hudi"),
    "insert by path": sql("insert into hudi.`{t}` values ('a', 'x', 1, 1)"),
    "insert overwrite by path": sql("insert overwrite hudi.`{t}` select 'a', 'x', 1, 1"),
    "insert after a table expression": sql("with s as (select 1) insert into hudi.`{t}` select * from s"),
    "update by path": sql("update hudi.`{t}` set v = 2"),
    "delete by path": sql("delete from hudi.`{t}` where id = 'a'"),
    "merge by path": sql(
        "merge into hudi.`{t}` t using (select 'a' id) s on t.id = s.id when matched then delete"
    ),
    "merge from a path": sql(
        "merge into some_t t using hudi.`{t}` s on t.id = s.id when matched then delete"
    ),
    "update of a view": sql("update trips set v = 2"),
    "delete from a view": sql("delete from trips where id = 'a'"),
    "merge into a view": sql("merge into trips t using trips s on t.id = s.id when matched then delete"),
    "insert into a view": sql("insert into trips values ('a', 'x', 1, 1)"),
    "alter table by path": sql("alter table hudi.`{t}` add columns (n int)"),
    "drop table by path": sql("drop table hudi.`{t}`"),
    "call show_commits": sql("call show_commits(table => 'trips', limit => 10)"),
    "call run_clean": sql("CALL run_clean(path => '{t}')"),
    "call with system": sql("call system.rollback_to_instant('trips', '2024')"),
    "changes of a table": sql("select * from hudi_table_changes('{t}', 'latest_state', 'earliest')"),
    "time travel by version": sql("select * from hudi.`{t}` version as of 3"),
    "a path that is none": sql("select * from hudi.`{new}`"),
    "merge with schema evolution": sql(
        "merge with schema evolution into trips t using trips s on t.id = s.id when matched then delete"
    ),
    "a function of Apache Hudi": sql("select * from hudi_filesystem_view('{t}')"),
    "the metadata table's function": sql("select * from hudi_metadata('{t}')"),
    "time travel of a view": sql("select * from trips timestamp as of '2030-01-01'"),
    "a version of a view": sql("select * from trips version as of 3"),
    # catalogs and other doors
    "saveAsTable": lambda s, df, t, new: df.write.format("hudi").options(**GOOD).saveAsTable("h7"),
    "saveAsTable with format": lambda s, df, t, new: df.write.saveAsTable("h8", format="hudi"),
    "insertInto": lambda s, df, t, new: df.write.format("hudi").insertInto("trips"),
    "insertInto a view": lambda s, df, t, new: df.write.insertInto("trips"),
    "insertInto by path": lambda s, df, t, new: df.write.insertInto(f"hudi.`{t}`", overwrite=True),
    "writeTo a view": lambda s, df, t, new: df.writeTo("trips").append(),
    "writeTo by path": lambda s, df, t, new: df.writeTo(f"hudi.`{t}`").overwritePartitions(),
    "readStream.table": lambda s, df, t, new: s.readStream.table("trips"),
    "readStream.table by path": lambda s, df, t, new: s.readStream.table(f"hudi.`{t}`"),
    "read.table of no table": lambda s, df, t, new: s.read.table(f"hudi.`{new}`"),
    "table of no table": lambda s, df, t, new: s.table(f"hudi.`{new}`"),
    "toTable": lambda s, df, t, new: (
        s.readStream.format("rate")
        .load()
        .writeStream.format("hudi")
        .option("checkpointLocation", new)
        .toTable("h")
    ),
    "writeTo": lambda s, df, t, new: df.writeTo("h9").using("hudi").create(),
    "read.table": lambda s, df, t, new: s.read.format("hudi").table("trips"),
    "catalog.createTable": lambda s, df, t, new: s.catalog.createTable("h10", path=t, source="hudi"),
    "createExternalTable": lambda s, df, t, new: s.catalog.createExternalTable("h11", path=t, source="hudi"),
    "a stream into a table": lambda s, df, t, new: (
        s.readStream.format("rate")
        .load()
        .writeStream.format("hudi")
        .option("checkpointLocation", new)
        .start(t)
    ),
    "bucketBy": lambda s, df, t, new: df.write.format("hudi").options(**GOOD).bucketBy(2, "id").save(t),
    "sortBy": lambda s, df, t, new: df.write.format("hudi").options(**GOOD).sortBy("id").save(t),
    # writes
    "a mode that is none": lambda s, df, t, new: (
        df.write.format("hudi").options(**GOOD).mode("upsert").save(t)
    ),
    "an operation for a mode, before the format": lambda s, df, t, new: (
        df.write.mode("upsert").format("hudi").options(**GOOD).save(t)
    ),
    "a path that is no text": lambda s, df, t, new: save(3, df),  # type: ignore[arg-type]
    "partitionBy another column": lambda s, df, t, new: (
        df.write.format("hudi").options(**GOOD).partitionBy("v").mode("append").save(new)
    ),
    "partitionBy no column": lambda s, df, t, new: (
        df.write.format("hudi")
        .options(**{k: v for k, v in GOOD.items() if "partition" not in k})
        .partitionBy("date(ts)")
        .mode("append")
        .save(new)
    ),
    "no path": lambda s, df, t, new: df.write.format("hudi").options(**GOOD).mode("append").save(),
    "the default mode": lambda s, df, t, new: df.write.format("hudi").options(**GOOD).save(t),
    "no table name": lambda s, df, t, new: df.write.format("hudi").mode("append").save(new),
    "a misspelt option": writing(hoodie__datasource__write__recordkey__feild="id"),
    "another key": writing(hoodie__datasource__write__recordkey__field="v"),
    "a key that is no column": lambda s, df, t, new: save(new, df, **{WRITE + "recordkey.field": "idd"}),
    "another partition": writing(hoodie__datasource__write__partitionpath__field="v"),
    "another table name": writing(hoodie__table__name="u"),
    "an unknown operation": writing(hoodie__datasource__write__operation="upsrt"),
    "an unknown index": writing(hoodie__index__type="BLOM"),
    "a number that is none": writing(hoodie__upsert__shuffle__parallelism="many"),
    "a table type that is none": lambda s, df, t, new: save(new, df, **{WRITE + "table.type": "COW"}),
    "null keys": lambda s, df, t, new: save(t, df.selectExpr("cast(null as string) id", "p", "ts", "v")),
    "null ordering values": lambda s, df, t, new: save(
        t, df.selectExpr("id", "p", "cast(null as long) ts", "v")
    ),
    "a column twice": lambda s, df, t, new: save(new, df.selectExpr("id", "p", "ts", "v", "v")),
    "columns that only differ in case": lambda s, df, t, new: save(
        new, df.selectExpr("id", "p", "ts", "v", "v V")
    ),
    "a missing column": lambda s, df, t, new: save(t, df.drop("v")),
    "a partition that leaves the table": lambda s, df, t, new: save(
        t, df.selectExpr("id", "'../x' p", "ts", "v")
    ),
    "a UDF that fails": lambda s, df, t, new: save(t, df.selectExpr("id", "p", "ts", "fails(v) v")),
    "an intervall": lambda s, df, t, new: save(new, df.selectExpr("*", "interval '1' day as d")),
    "deletes of nothing": lambda s, df, t, new: save(new, df, **{WRITE + "operation": "delete"}),
    # reads
    "a missing path": lambda s, df, t, new: read(s, new),
    "a folder without a table": lambda s, df, t, new: read(s, os.path.dirname(t)),
    "no path to read": lambda s, df, t, new: s.read.format("hudi").load().collect(),
    "a number for a path": lambda s, df, t, new: s.read.format("hudi").load(3),  # type: ignore[arg-type]
    "a misspelt option of a read": reading(hoodie__datasource__query__typ="snapshot"),
    "an unknown kind of query": reading(hoodie__datasource__query__type="snap"),
    "a time that is none": reading(as__of__instant="last tuesday"),
    "a time before the first commit": reading(as__of__instant="1999-01-01"),
    "an incremental query without a begin": reading(**INCREMENTAL),
    "both times": reading(**INCREMENTAL, as__of__instant="2024-01-01"),
}
if HAS_DATA_SOURCES:
    CALLS |= {
        "mergeInto a view": lambda s, df, t, new: (
            df.mergeInto("trips", F.expr("true")).whenMatched().delete().merge()
        ),
        "mergeInto by path": lambda s, df, t, new: df.mergeInto(f"hudi.`{t}`", F.expr("true")),
        "clusterBy": lambda s, df, t, new: df.write.format("hudi").options(**GOOD).clusterBy("id").save(t),
        "a variant": lambda s, df, t, new: save(new, df.selectExpr("*", "parse_json('{}') as d")),
    }


def files(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def room(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DataFrame]:
    spark = session
    hudi_spark.enable(spark)
    root = tmp_path_factory.mktemp("wrong")
    frame = spark.sql("select 'a' id, 'x' p, 1L ts, 1 v union all select 'b', 'y', 1L, 2")
    save(str(root / "in" / "t"), frame)
    spark.read.format("hudi").load(str(root / "in" / "t")).createOrReplaceTempView("trips")
    spark.udf.register("fails", lambda v: v // 0, "int")
    return root, frame


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_one_line_of_ours_and_writes_nothing(
    spark: SparkSession, room: tuple[Path, DataFrame], name: str
) -> None:
    root, frame = room
    before = files(root)
    tables = {t.name for t in spark.catalog.listTables()}
    with pytest.raises(HudiError) as e:
        CALLS[name](spark, frame, str(root / "in" / "t"), str(root / "new"))
    text = str(e.value)
    assert "\n" not in text
    assert e.value.remedy, text
    assert len(text) < 900, text
    left = {f for f in files(root) - before if "heartbeat" not in f and not f.endswith("lock")}
    assert not left, text
    assert {t.name for t in spark.catalog.listTables()} == tables
    assert not (root / "new" / ".hoodie").exists()
