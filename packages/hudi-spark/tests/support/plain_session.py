"""A user's script that imports nothing of ours: what `format("hudi")` does on Spark as it comes.

Run as `python plain_session.py <folder>`; prints one line of JSON, what each scenario saw.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from plain_wrong_calls import IN_CI, wrong
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

TRIPS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
}
TYPES = """select 'k' id, true b, 7 i, 8L l, cast(1.5 as float) f, 2.5D d, 12.34BD dec, cast('ab' as binary) bin,
    date'2024-02-29' day, timestamp'2024-03-05 10:00:00.123456' at, timestamp_ntz'2024-03-05 10:00:00' wall,
    array(1, null) a, map('x', 1L) m, named_struct('p', 1, 'q', array(named_struct('r', 'z'))) s"""


def rows(spark: SparkSession, start: int, end: int, ts: int) -> DataFrame:
    return spark.sql(
        f"select concat('k', id) id, {ts}L ts, concat('c', id % 2) city, id * 1.5D fare from range({start}, {end})"
    )


def save(frame: DataFrame, path: str, mode: str = "append", **more: str) -> None:
    frame.write.format("hudi").options(**{**TRIPS, **more}).mode(mode).save(path)


def refused(call: Callable[[], Any]) -> str:
    try:
        call()
    except (PySparkException, Py4JJavaError) as e:
        return str(e)
    return ""


def instants(path: str) -> list[str]:
    return sorted(n.partition(".")[0] for n in os.listdir(f"{path}/.hoodie") if n.endswith(".commit"))


def below(path: str) -> list[str]:
    return sorted(os.listdir(path)) if os.path.exists(path) else []


def main(folder: str) -> dict[str, Any]:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    seen: dict[str, Any] = {}
    for scenario in (appends, types, overwrites):
        seen[scenario.__name__] = scenario(spark, f"{folder}/{scenario.__name__}")
    seen["wrong"] = wrong(spark, f"{folder}/wrong", IN_CI)
    seen["modules"] = sorted(m for m in sys.modules if m.partition(".")[0].startswith("hudi"))
    spark.stop()
    return seen


def appends(spark: SparkSession, path: str) -> dict[str, Any]:
    save(rows(spark, 0, 10, 1).repartition(3), path)
    save(rows(spark, 8, 12, 2), path)
    frame = spark.read.format("hudi").load(path)
    as_of = {"path": path, "as.of.instant": instants(path)[0], "hudi.read.columns": "fare,id"}
    before = spark.read.format("HUDI").options(**as_of).load()
    return {
        "rows": sorted([r.id, r.ts, r.city, r.fare] for r in frame.collect()),
        "schema": frame.schema.jsonValue(),
        "before": [before.columns, before.count()],
        "below": below(path),
    }


def types(spark: SparkSession, path: str) -> dict[str, Any]:
    given = spark.sql(TYPES)
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    given.write.format("hudi").options(**options).mode("append").save(path)
    read = spark.read.format("hudi").load(path).select(*given.columns)
    return {"same": read.collect() == given.collect(), "types": read.dtypes == given.dtypes}


def overwrites(spark: SparkSession, path: str) -> dict[str, Any]:
    failing = rows(spark, 0, 50_000, 1).selectExpr(
        "id", "ts", "city", "if(id = 'k49999', raise_error('this row is bad'), fare) fare"
    )
    seen = {"task": refused(lambda: save(failing, path)), "none": below(path)}
    save(rows(spark, 0, 3, 1), path)
    seen["mode"] = refused(lambda: save(rows(spark, 0, 1, 1), path, mode="ignore"))
    save(rows(spark, 20, 23, 1), path, mode="overwrite")
    spark.sql(f"create temporary view trips using hudi options (path '{path}', {_sql(TRIPS)})")
    rows(spark, 30, 32, 1).createOrReplaceTempView("news")
    # A view's columns are those of the table, so the meta columns are given too; they are made anew.
    spark.sql("insert into trips select null, null, null, null, null, id, ts, fare, city from news")
    ids = spark.read.format("hudi").schema("id string").load(path).collect()
    return {**seen, "ids": sorted(r.id for r in ids), "below": below(path)}


def _sql(options: dict[str, str]) -> str:
    return ", ".join(f"'{k}' '{v}'" for k, v in options.items())


if __name__ == "__main__":
    print("SEEN " + json.dumps(main(sys.argv[1])))
