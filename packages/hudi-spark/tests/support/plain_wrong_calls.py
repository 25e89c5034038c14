"""Wrong calls of a script that imports nothing of ours, on Spark 4: what it says to each, and what is left behind.

`CALLS` has them by name.  `IN_CI` are those that differ in the way that Spark takes with them; the rest is for the long
form.  `SPARKS_OWN` are decided by Spark before it asks a data source: of these the condition that it names is told.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

WRITE = "hoodie.datasource.write."
QUERY = "hoodie.datasource.query.type"
GOOD = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
}
Call = Callable[[SparkSession, DataFrame, str, str], Any]


def save(path: str, frame: DataFrame, options: dict[str, str] | None = None, mode: str = "append") -> None:
    frame.write.format("hudi").options(**{**GOOD, **(options or {})}).mode(mode).save(path)


def sql(text: str) -> Call:
    return lambda s, df, t, new: s.sql(text.format(t=t, new=new)).collect()


def reading(**options: str) -> Call:
    named = {k.replace("__", "."): v for k, v in options.items()}
    return lambda s, df, t, new: s.read.format("hudi").options(**named).load(t).collect()


def writing(name: str, value: str) -> Call:
    return lambda s, df, t, new: save(t, df, {name: value})


def creating(name: str, value: str) -> Call:
    return lambda s, df, t, new: save(new, df, {name: value})


def rows(*columns: str) -> Call:
    return lambda s, df, t, new: save(t, df.selectExpr(*columns))


def follow(**options: str) -> Call:
    def run(s: SparkSession, df: DataFrame, t: str, new: str) -> None:
        stream = s.readStream.format("hudi").options(**{k.replace("__", "."): v for k, v in options.items()})
        query = stream.load(t).writeStream.format("noop").option("checkpointLocation", f"{new}-checkpoint")
        query.trigger(availableNow=True).start().awaitTermination()

    return run


INCREMENTAL = {"hoodie__datasource__query__type": "incremental"}
CALLS: dict[str, Call] = {
    # reads
    "a missing path": lambda s, df, t, new: s.read.format("hudi").load(new).collect(),
    "a folder without a table": lambda s, df, t, new: (
        s.read.format("hudi").load(os.path.dirname(t)).collect()
    ),
    "no path to read": lambda s, df, t, new: s.read.format("hudi").load().collect(),
    "several paths": lambda s, df, t, new: s.read.format("hudi").load([t, new]).collect(),
    "no path but a schema": lambda s, df, t, new: s.read.format("hudi").schema("id string").load().collect(),
    "a misspelt option of a read": reading(hoodie__datasource__query__typ="snapshot"),
    "an unknown kind of query": reading(hoodie__datasource__query__type="snap"),
    "a time that is none": reading(as__of__instant="last tuesday"),
    "a time before the first commit": reading(as__of__instant="1999-01-01"),
    "an incremental query without a begin": reading(**INCREMENTAL),
    "both times": reading(**INCREMENTAL, as__of__instant="2024-01-01"),
    "changes of a snapshot": reading(hoodie__datasource__query__incremental__format="cdc"),
    "an unknown column": reading(hudi__read__columns="idd"),
    "a filter that is none": reading(hudi__read__filter="id = = 'a'"),
    "a filter on an unknown column": reading(hudi__read__filter="idd = 'a'"),
    "a type that the values are not": lambda s, df, t, new: (
        s.read.format("hudi").schema("v date").load(t).collect()
    ),
    "a view of no table": sql("create temporary view none using hudi options (path '{new}')"),
    "a view without a path": sql("create temporary view none using hudi"),
    # streams
    "a stream of no table": lambda s, df, t, new: s.readStream.format("hudi").load(new),
    "a stream from a time that is none": follow(hoodie__datasource__streaming__startOffset="dawn"),
    "a misspelt option of a stream": follow(hoodie__datasource__streaming__startOfset="earliest"),
    "a stream into a table": lambda s, df, t, new: (
        s.readStream.format("rate")
        .load()
        .writeStream.format("hudi")
        .option("checkpointLocation", f"{new}-checkpoint")
        .start(t)
        .awaitTermination(60)
    ),
    # writes
    "no path": lambda s, df, t, new: df.write.format("hudi").options(**GOOD).mode("append").save(),
    "no table name": lambda s, df, t, new: df.write.format("hudi").mode("append").save(new),
    "a misspelt option": writing(WRITE + "recordkey.feild", "id"),
    "another key": writing(WRITE + "recordkey.field", "v"),
    "a key that is no column": creating(WRITE + "recordkey.field", "idd"),
    "another partition": writing(WRITE + "partitionpath.field", "v"),
    "another table name": writing("hoodie.table.name", "u"),
    "an unknown operation": writing(WRITE + "operation", "upsrt"),
    "an unknown index": writing("hoodie.index.type", "BLOM"),
    "an unknown payload": creating(WRITE + "payload.class", "org.example.Newest"),
    "an unknown key generator": creating(WRITE + "keygenerator.class", "org.example.Keys"),
    "a number that is none": writing("hoodie.upsert.shuffle.parallelism", "many"),
    "a limit that is none": writing("hudi.write.staging.limit.bytes", "much"),
    "more than the limit": writing("hudi.write.staging.limit.bytes", "1"),
    "a table type that is none": creating(WRITE + "table.type", "COW"),
    "a codec that is none": creating("hoodie.parquet.compression.codec", "zip"),
    "a sync": writing("hoodie.datasource.hive_sync.enable", "true"),
    "a clustering": writing("hoodie.clustering.inline", "true"),
    "null keys": rows("cast(null as string) id", "p", "ts", "v"),
    "null ordering values": rows("id", "p", "cast(null as long) ts", "v"),
    "text in a column of numbers": lambda s, df, t, new: save(
        t, df.selectExpr("id", "p", "ts", "'x' v"), {"hudi.write.types": "table"}
    ),
    "columns that only differ in case": lambda s, df, t, new: save(
        new, df.selectExpr("id", "p", "ts", "v", "v V")
    ),
    "a missing column": lambda s, df, t, new: save(t, df.drop("v")),
    "a partition that leaves the table": rows("id", "'../x' p", "ts", "v"),
    "deletes of nothing": creating(WRITE + "operation", "delete"),
    "a place with other data": lambda s, df, t, new: save(os.path.dirname(t), df),
    "an overwrite with another option": lambda s, df, t, new: save(t, df, {"hoodie.x": "y"}, "overwrite"),
    # tables of the catalog
    "create table without columns": sql("create table h1 using hudi location '{t}'"),
    "create table without anything": sql("create table h2 using hudi"),
    "create table as select": sql("create table h3 using hudi as select 1 as id"),
    "saveAsTable": lambda s, df, t, new: df.write.format("hudi").options(**GOOD).saveAsTable("h4"),
    "saveAsTable append": lambda s, df, t, new: (
        df.write.format("hudi").options(**GOOD).mode("append").saveAsTable("h5")
    ),
    "writeTo create": lambda s, df, t, new: df.writeTo("h6").using("hudi").create(),
    "catalog.createTable": lambda s, df, t, new: s.catalog.createTable("h7", path=t, source="hudi"),
    "select from a dead table": sql("select * from dead"),
    "read.table of a dead table": lambda s, df, t, new: s.read.table("dead").collect(),
    "insert into a dead table": sql("insert into dead values ('a', 'x', 1, 1)"),
    "insert overwrite of a dead table": sql("insert overwrite dead values ('a', 'x', 1, 1)"),
    "insertInto a dead table": lambda s, df, t, new: df.write.insertInto("dead"),
    "writeTo append to a dead table": lambda s, df, t, new: df.writeTo("dead").append(),
    # Spark's own
    "partitionBy": lambda s, df, t, new: (
        df.write.format("hudi").options(**GOOD).partitionBy("p").mode("append").save(t)
    ),
    "bucketBy": lambda s, df, t, new: (
        df.write.format("hudi").options(**GOOD).bucketBy(2, "id").mode("append").save(t)
    ),
    "mode ignore": lambda s, df, t, new: save(t, df, mode="ignore"),
    "the default mode": lambda s, df, t, new: df.write.format("hudi").options(**GOOD).save(new),
    "select by path": sql("select * from hudi.`{t}`"),
    "update of a dead table": sql("update dead set v = 2"),
    "delete from a dead table": sql("delete from dead where id = 'a'"),
    "merge into a dead table": sql("merge into dead t using trips s on t.id = s.id when matched then delete"),
    "call": sql("call show_commits(table => 'dead')"),
    "an interval": lambda s, df, t, new: save(new, df.selectExpr("*", "interval '1' day as d")),
    "a column twice": lambda s, df, t, new: save(new, df.selectExpr("id", "p", "ts", "v", "v")),
}
SPARKS_OWN = {
    "partitionBy": "The provided partitioning or clustering columns do not match",
    "bucketBy": "does not support bucketBy",
    "mode ignore": "UNSUPPORTED_DATA_SOURCE_SAVE_MODE",
    "the default mode": "UNSUPPORTED_DATA_SOURCE_SAVE_MODE",
    "select by path": "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
    "update of a dead table": "does not support UPDATE TABLE",
    "delete from a dead table": "does not support deletes",
    "merge into a dead table": "does not support MERGE INTO TABLE",
    "call": "show_commits",
}
# One for each way that Spark takes to the data source.
IN_CI = [
    "a missing path",
    "create table without columns",
    "saveAsTable",
    "select from a dead table",
    "insert into a dead table",
    "a misspelt option",
    "null keys",
    "a stream into a table",
    "partitionBy",
    "mode ignore",
    "update of a dead table",
]
_OURS = re.compile(r"^.*hudi_format\.errors\.\w+: \[HUDI-E\d+\] .*$", re.MULTILINE)


def told(error: BaseException) -> dict[str, Any]:
    text = str(error)
    return {"ours": _OURS.findall(text), "lines": len(text.splitlines()), "text": text[:3000]}


def files(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


def wrong(spark: SparkSession, folder: str, names: list[str]) -> dict[str, Any]:
    """What each call said, what it wrote, and the tables that it left in the catalog."""
    root = Path(folder)
    frame = spark.sql("select 'a' id, 'x' p, 1L ts, 1 v union all select 'b', 'y', 1L, 2")
    table = str(root / "in" / "t")
    save(table, frame)
    spark.read.format("hudi").load(table).createOrReplaceTempView("trips")
    spark.sql("create table dead (id string, p string, ts long, v int) using hudi")
    seen: dict[str, Any] = {}
    for name in names:
        before, tables = files(root), {t.name for t in spark.catalog.listTables()}
        try:
            CALLS[name](spark, frame, table, str(root / "new"))
            seen[name] = {"ours": [], "lines": 0, "text": ""}
        except (PySparkException, Py4JJavaError) as e:
            seen[name] = told(e)
        left = [f for f in files(root) - before if "-checkpoint" not in f and not f.endswith("lock")]
        seen[name]["left"] = sorted(f for f in left if "heartbeat" not in f)
        seen[name]["tables"] = sorted({t.name for t in spark.catalog.listTables()} - tables)
        print(json.dumps({name: seen[name]}), flush=True)
    return seen


if __name__ == "__main__":
    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{sys.argv[1]}/warehouse")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    os.makedirs(f"{sys.argv[1]}/wrong")
    print("SEEN " + json.dumps(wrong(made, f"{sys.argv[1]}/wrong", sys.argv[2:] or list(CALLS))))
    made.stop()
