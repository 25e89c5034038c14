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


def loading(path: str, **options: str) -> Call:
    named = {k.replace("__", "."): v for k, v in options.items()}
    return lambda s, df, t, new: (
        s.read.format("hudi").options(**named).load(path.format(t=t, new=new)).collect()
    )


def with_schema(text: str) -> Call:
    return lambda s, df, t, new: s.read.format("hudi").schema(text).load(t).collect()


def saving(path: str) -> Call:
    return lambda s, df, t, new: save(path.format(t=t, new=new), df)


def new_rows(*columns: str) -> Call:
    return lambda s, df, t, new: save(new, df.selectExpr(*columns))


def streaming(path: str, **options: str) -> Call:
    """A stream that is loaded, and not run."""
    named = {k.replace("__", "."): v for k, v in options.items()}
    return lambda s, df, t, new: s.readStream.format("hudi").options(**named).load(path.format(t=t, new=new))


def file_of(table: str) -> str:
    return next(str(f) for f in Path(table).glob("x/*.parquet"))


def follow(**options: str) -> Call:
    def run(s: SparkSession, df: DataFrame, t: str, new: str) -> None:
        stream = s.readStream.format("hudi").options(**{k.replace("__", "."): v for k, v in options.items()})
        query = stream.load(t).writeStream.format("noop").option("checkpointLocation", f"{new}-checkpoint")
        query.trigger(availableNow=True).start().awaitTermination()

    return run


INCREMENTAL = {"hoodie__datasource__query__type": "incremental"}
BEGIN, END = "hoodie__datasource__read__begin__instanttime", "hoodie__datasource__read__end__instanttime"
PATHS = "hoodie__datasource__read__paths"
NOWHERE = {
    "fs__s3a__endpoint": "http://127.0.0.1:1",
    "fs__s3a__access__key": "a",
    "fs__s3a__secret__key": "b",
}
OPTIMISTIC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
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
CALLS |= {
    # places of reads
    "a file of a table": lambda s, df, t, new: s.read.format("hudi").load(file_of(t)).collect(),
    "the folder of the timeline": loading("{t}/.hoodie"),
    "a metadata table that is not there": loading("{t}/.hoodie/metadata"),
    "a partition": loading("{t}/x"),
    "a pattern below a table": loading("{t}/*/*"),
    "a pattern of tables": loading("{t}*"),
    "a path in braces": loading("{{{t}}}"),
    "a path with percent signs": loading("{new}%20x%"),
    "a path with spaces": loading("{new} with spaces"),
    "a blank path": loading("  "),
    "an empty path": loading(""),
    "no paths at all": lambda s, df, t, new: s.read.format("hudi").load([]).collect(),
    "a path beside the table": loading("{t}/../nope"),
    "a path with a line end": loading("{new}\nx"),
    "a path with a NUL character": loading("{new}\0x"),
    "a name that is too long": loading("{new}/" + "x" * 300),
    "Google's store without its library": loading("gs://bucket/t"),
    "Azure's store without its library": loading("abfss://c@a.dfs.core.windows.net/t"),
    "Alibaba's store without its library": loading("oss://b/t"),
    "HDFS without Hadoop": loading("hdfs://nn:8020/t"),
    "a scheme that is none": loading("nosuch://b/t"),
    "a scheme with one slash": loading("dbfs:/t"),
    "a server that does not answer": loading("http://127.0.0.1:1/t"),
    "a store that does not answer": loading("s3a://b/t", **NOWHERE),
    "a store without a bucket": loading("s3://"),
    "files of another host": loading("file://host{t}"),
    # options of reads
    "no columns": reading(hudi__read__columns=""),
    "columns without names": reading(hudi__read__columns=" , "),
    "a column twice in a list": reading(hudi__read__columns="id,id"),
    "a column in other case": reading(hudi__read__columns="ID"),
    "an empty filter": reading(hudi__read__filter=""),
    "a filter with a value of another type": reading(hudi__read__filter="v = 'x'"),
    "a filter with a second statement": reading(hudi__read__filter="v = 1; drop table x"),
    "a filter with a function": reading(hudi__read__filter="upper(p) = 'X'"),
    "a day that is none": reading(as__of__instant="2024-02-30"),
    "no time": reading(as__of__instant=""),
    "a version's number": reading(as__of__instant="3"),
    "Delta's version": reading(versionAsOf="0"),
    "Delta's time": reading(timestampAsOf="2024-01-01"),
    "a begin of a snapshot": reading(**{BEGIN: "000"}),
    "an end of a snapshot": reading(**{END: "000"}),
    "a begin of a read-optimized query": reading(
        hoodie__datasource__query__type="read_optimized", **{BEGIN: "000"}
    ),
    "a begin that is no time": reading(**INCREMENTAL, **{BEGIN: "dawn"}),
    "paths of an incremental query": reading(**INCREMENTAL, **{BEGIN: "000", PATHS: "x"}),
    "paths outside of the table": reading(**{PATHS: "/etc"}),
    "an unknown way to merge": reading(hoodie__datasource__merge__type="skip"),
    "two names with two values": reading(
        hoodie__datasource__query__type="snapshot", hoodie__datasource__view__type="read_optimized"
    ),
    "an option in other case with a wrong value": reading(Hudi__Read__Columns="idd"),
    "an option with a space behind it": reading(**{"hudi__read__columns ": "id"}),
    "an unknown policy for open commits": reading(hoodie__read__timeline__holes__resolution__policy="WAIT"),
    "two orders": reading(
        **INCREMENTAL,
        **{BEGIN: "000"},
        hudi__read__incremental__order="stable",
        hoodie__read__timeline__holes__resolution__policy="USE_TRANSITION_TIME",
    ),
    "an unknown way with gaps": reading(hudi__read__incremental__on__missing="ignore"),
    "a switch that is neither": reading(hoodie__metadata__enable="yes"),
    "memory that is no number": reading(hoodie__memory__merge__max__size="lots"),
    "an option of Spark's files": reading(recursiveFileLookup="true"),
    "another option of Spark's files": reading(pathGlobFilter="*.parquet"),
    "an option of Spark's streams": reading(maxFilesPerTrigger="3"),
    "filters of an incremental query on a snapshot": reading(
        hoodie__datasource__query__type="snapshot", hoodie__datasource__read__incr__filters="v = 1"
    ),
    # schemas
    "a column twice in a schema": with_schema("id string, id string"),
    "a column in other case in a schema": with_schema("ID string"),
    "a list that is text": with_schema("id array<string>"),
    "a number that is text": with_schema("id int"),
    "a struct that is a number": with_schema("v struct<a: int>"),
    "an interval in a schema": with_schema("v interval day"),
    "void in a schema": with_schema("v void"),
    # views
    "a view with a misspelt option": sql(
        "create temporary view none using hudi options (path '{t}', 'hudi.read.colums' 'id')"
    ),
    "a view of a time that is none": sql(
        "create temporary view none using hudi options (path '{t}', 'as.of.instant' 'never')"
    ),
    "a view of a file": sql(
        "create temporary view none using hudi options (path '{t}/.hoodie/hoodie.properties')"
    ),
    "cache of a dead table": sql("cache table dead"),
    "create or replace table as select": sql("create or replace table h8 using hudi as select 1 id"),
    "writeTo createOrReplace": lambda s, df, t, new: df.writeTo("h9").using("hudi").createOrReplace(),
    # streams
    "a stream of a file": lambda s, df, t, new: s.readStream.format("hudi").load(file_of(t)),
    "a stream without a path": lambda s, df, t, new: s.readStream.format("hudi").load(),
    "a stream of a pattern": streaming("{t}/*"),
    "a stream without its library": streaming("gs://b/t"),
    "a stream with a begin": streaming("{t}", **{BEGIN: "000"}),
    "a stream with an end": streaming("{t}", **{END: "000"}),
    "a stream of a time that is none": streaming("{t}", as__of__instant="never"),
    "a stream of an unknown column": streaming("{t}", hudi__read__columns="idd"),
    "a stream with a filter on an unknown column": streaming("{t}", hudi__read__filter="idd = 'a'"),
    "a stream of unknown changes": streaming("{t}", hoodie__datasource__query__incremental__format="cdcc"),
    "a stream that looks often": streaming("{t}", hudi__streaming__poll__seconds="often"),
    "a stream from nowhere": streaming("{t}", hoodie__datasource__streaming__startOffset=""),
    "a stream from an unknown order": streaming("{t}", hudi__streaming__start__order="fenced"),
    # places of writes
    "a write to a file": lambda s, df, t, new: save(file_of(t), df),
    "a write below a file": lambda s, df, t, new: save(file_of(t) + "/x", df),
    "a write where no files can be": saving("/proc/hudi/t"),
    "a write to a partition": saving("{t}/x"),
    "a write into the timeline": saving("{t}/.hoodie/x"),
    "a write without the store's library": saving("gs://b/t"),
    "a write to a scheme that is none": saving("nosuch://b/t"),
    "a write to a blank path": saving("  "),
    "a write to a NUL character": saving("{new}\0x"),
    "a write to a scheme with one slash": saving("dbfs:/t"),
    # rows
    "a frame without columns": lambda s, df, t, new: save(new, df.select()),
    "a map for a key": new_rows("map(1, 2) id", "p", "ts", "v"),
    "a list for a partition": new_rows("id", "array(1) p", "ts", "v"),
    "no ordering column": new_rows("id", "p", "v"),
    "a map for an ordering column": new_rows("id", "p", "map(1, 2) ts"),
    "a name with a space": new_rows("id", "p", "ts", "v `a b`"),
    "a name with a dot": new_rows("id", "p", "ts", "v `a.b`"),
    "a null key among others": new_rows("if(id = 'a', null, id) id", "p", "ts", "v"),
    "an interval of years": new_rows("id", "p", "ts", "interval '1' year d"),
    # options of writes
    "an overwrite that deletes": lambda s, df, t, new: save(
        t, df, {WRITE + "operation": "delete"}, "overwrite"
    ),
    "partitions to delete of no table": creating(WRITE + "operation", "delete_partition"),
    "partitions to delete of an upsert": writing(WRITE + "partitions.to.delete", "x"),
    "a lock of someone else's": lambda s, df, t, new: save(
        t, df, {**OPTIMISTIC, "hoodie.write.lock.provider": "org.example.Lock"}
    ),
    "a switch of a write that is neither": writing("hoodie.compact.inline", "maybe"),
    "another type of table": writing(WRITE + "table.type", "MERGE_ON_READ"),
    "another version of table": creating("hoodie.write.table.version", "9"),
    "no buckets": creating("hoodie.bucket.index.num.buckets", "0"),
    "buckets in a table without": writing("hoodie.index.type", "BUCKET"),
    "other folders": writing(WRITE + "hive_style_partitioning", "true"),
    "a limit below nothing": writing("hudi.write.staging.limit.bytes", "-1"),
    "a limit with a unit": writing("hudi.write.staging.limit.bytes", "1g"),
    "a validator of someone else's": writing("hoodie.precommit.validators", "org.example.V"),
    "a rule that is none": writing("hudi.write.rules", "v >"),
    "rows against a rule": writing("hudi.write.rules", "v > 5"),
    "a quarantine in the table": lambda s, df, t, new: save(
        t, df, {"hudi.write.rules": "v > 5", "hudi.quarantine.path": t + "/q"}
    ),
    "a merge function that is not there": writing("hudi.merge", "nope:f"),
    "an unknown durability": writing("hudi.durability", "perhaps"),
    "unknown types of a write": writing("hudi.write.types", "strict"),
    "an option of Python's door": writing("schema_mode", "strict"),
    "Delta's overwrite of rows": lambda s, df, t, new: save(t, df, {"replaceWhere": "p = 'x'"}, "overwrite"),
    "Spark's overwrite of partitions": lambda s, df, t, new: save(
        t, df, {"partitionOverwriteMode": "dynamic"}, "overwrite"
    ),
    "a key twice": creating(WRITE + "recordkey.field", "id,id"),
    # Spark's own
    "a path twice": lambda s, df, t, new: s.read.format("hudi").option("path", t).load(t).collect(),
    "a path of a write twice": lambda s, df, t, new: save(t, df, {"path": t}),
    "an operation for a mode": lambda s, df, t, new: save(t, df, mode="upsert"),
    "a type that is none": with_schema("id strng"),
    "select by path at a time": sql("select * from hudi.`{t}` timestamp as of '2024-01-01'"),
    "describe by path": sql("describe hudi.`{t}`"),
    "insert by path": sql("insert into hudi.`{t}` values ('a', 'x', 1, 1)"),
    "changes as a function": sql("select * from hudi_table_changes('{t}', 'latest_state', 'earliest')"),
    "time travel of a view": sql("select * from trips timestamp as of '2024-01-01'"),
    "truncate a dead table": sql("truncate table dead"),
    "overwritePartitions of a dead table": lambda s, df, t, new: df.writeTo("dead").overwritePartitions(),
}
SPARKS_OWN = {
    "a path twice": "There is a 'path' or 'paths' option set",
    "a path of a write twice": "There is a 'path' option set",
    "an operation for a mode": "INVALID_SAVE_MODE",
    "a type that is none": "UNSUPPORTED_DATATYPE",
    "select by path at a time": "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
    "describe by path": "TABLE_OR_VIEW_NOT_FOUND",
    "insert by path": "TABLE_OR_VIEW_NOT_FOUND",
    "changes as a function": "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    "time travel of a view": "TIME_TRAVEL",
    "truncate a dead table": "does not support truncates",
    "overwritePartitions of a dead table": "does not support dynamic overwrite",
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
    "no columns",
    "a column in other case in a schema",
    "a stream with a begin",
    "a rule that is none",
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
