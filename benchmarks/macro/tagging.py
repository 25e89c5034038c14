"""Tagging: where keys that come in are in a table, beside Apache Hudi 0.15 in the same PySpark.

    python benchmarks/macro/tagging.py [--rows 10000000] [--keys 300000] [--indexes BLOOM,SIMPLE,RECORD_INDEX]
    ... [--engines ours,ours-spark,apache] [--repeat 3] [--table FOLDER] [--out FOLDER]
    python benchmarks/macro/tagging.py --scale smoke --engines ours

Half of the keys are in the table.  It is made once by bulk_insert without a JVM (point_lookups.py), has bloom filters
in its footers and a record index in its metadata table, and all engines look into the same one.

- This: an upsert that is planned and not run, from its rows on: keys and partitions are made of them, and they are
  counted by the file that they go to.
- Apache Hudi: `SparkRDDReadClient.filterExists`, which is `HoodieIndex.tagLocation`, asked by py4j with records of keys
  alone that are made before; those without a location are counted.

Each engine has a process of its own and has been warmed up by look-ups; the keys that are found are counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import point_lookups as table
import pyarrow as pa
import pyarrow.parquet as pq
from processes import Worker, processor_seconds, serve
from report import Goal, Measured, goals_table, seconds_table, write

HERE = Path(__file__).resolve()
INDEXES = ("BLOOM", "SIMPLE", "RECORD_INDEX")
TITLES = {"ours": "this, no JVM", "ours-spark": "this, on Spark", "apache": "Apache Hudi 0.15, Spark"}
GOALS = tuple(
    Goal(index, name, "apache", factor)
    for index in INDEXES
    for name, factor in (("ours-spark", 3.0), ("ours", 10.0))
)
Tag = Callable[[str], int]
"""Looks the keys up by an index; returns how many are in the table."""


def incoming(rows: int, keys: int) -> pa.Table:
    """Rows of which every other one has a key of the table."""
    rng = np.random.default_rng(2)
    known = rng.choice(rows, keys // 2, replace=False)
    numbers = np.concatenate([known, np.arange(rows, rows + keys - len(known))])
    numbers = rng.permutation(numbers)
    folders = pa.array([f"p{n:02d}" for n in range(table.PARTITIONS)])
    columns = [table.keys_of(numbers), folders.take(pa.array(numbers % table.PARTITIONS)), pa.array(numbers)]
    return pa.table(columns, schema=table.SCHEMA)


def options_of(index: str) -> dict[str, str]:
    enabled = table.INDEXED if index == "RECORD_INDEX" else table.WITH
    return {"hoodie.index.type": index, **enabled}


def ours(uri: str, changes: str) -> Tag:
    from hudi_timeline import HudiTable

    rows = pq.read_table(changes)

    def tag(index: str) -> int:
        return HudiTable.open(uri).upsert(rows, options=options_of(index), dry_run=True).updated

    return tag


def session(**config: str) -> Any:
    from engines import _session

    return _session(**config)


def ours_on_spark(uri: str, changes: str) -> Tag:
    import hudi_spark
    from hudi_format import open_storage
    from hudi_spark.writing.engine import SparkEngine
    from hudi_timeline.writing.operation import execute

    spark = hudi_spark.configure(session()).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def tag(index: str) -> int:
        frame = spark.read.parquet(changes)
        options = {"hoodie.datasource.write.operation": "upsert", **options_of(index)}
        engine = SparkEngine(frame, {})
        return execute(engine, open_storage(uri), frame, options, mode="append", dry_run=True).updated

    return tag


def apache(uri: str, changes: str) -> Tag:
    sys.path.insert(0, str(HERE.parents[2] / "tools"))
    from interop import bundles

    spark = session(**{
        "spark.jars": str(bundles.jar(bundles.hudi_bundle("0.15.0"))),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }).getOrCreate()  # fmt: skip
    spark.sparkContext.setLogLevel("OFF")
    java, context = spark._jvm, spark.sparkContext._jsc
    hudi = java.org.apache.hudi
    rows = pq.read_table(changes)
    made = java.java.util.ArrayList(rows.num_rows)
    model = hudi.common.model
    payload = model.EmptyHoodieRecordPayload()  # the record index asks for one
    for key, place in zip(rows["id"].to_pylist(), rows["p"].to_pylist(), strict=True):
        made.add(model.HoodieAvroRecord(model.HoodieKey(key, place), payload))
    records = context.parallelize(made, 8)

    def tag(index: str) -> int:
        settings = java.java.util.HashMap()
        for name, value in options_of(index).items():
            settings.put(name, value)
        # What a write names by these options.
        config = (
            hudi.config.HoodieWriteConfig.newBuilder().withPath(uri).forTable("t").withProps(settings).build()
        )
        engine = hudi.client.common.HoodieSparkEngineContext(context)
        client = hudi.client.SparkRDDReadClient(engine, config)
        return rows.num_rows - int(client.filterExists(records).count())

    return tag


CONTENDERS: dict[str, Callable[[str, str], Tag]] = {
    "ours": ours, "ours-spark": ours_on_spark, "apache": apache,
}  # fmt: skip


def contender(name: str, uri: str, changes: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What answers requests for an index; its session has run."""
    tag = CONTENDERS[name](uri, changes)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        used = processor_seconds()
        found = tag(request["index"])
        return {"found": found, "processor": processor_seconds() - used}

    return answer


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        name, uri, changes = sys.argv[2:]
        serve(name, lambda: contender(name, uri, changes))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=300_000)
    parser.add_argument("--indexes", default=",".join(INDEXES))
    parser.add_argument("--engines", default=",".join(TITLES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--warm", type=int, default=1, help="look-ups by each index that are not counted")
    parser.add_argument(
        "--table", type=Path, default=None, help="folder of the table; made where it is not there"
    )
    parser.add_argument(
        "--scale", choices=("full", "smoke"), default="full", help="smoke: 600 keys, 20,000 rows, once"
    )
    parser.add_argument("--out", type=Path, default=None, help="folder for tagging.md and .json")
    given = parser.parse_args()
    rows, keys, repeat = given.rows, given.keys, given.repeat
    if given.scale == "smoke":
        rows, keys, repeat = 20_000, 600, 1
    names = [n for n in TITLES if n in given.engines.split(",")]
    indexes = [i for i in INDEXES if i in given.indexes.split(",")]
    seconds: dict[str, dict[str, list[float]]] = {i: {n: [] for n in names} for i in indexes}
    used: dict[str, dict[str, list[float]]] = {i: {n: [] for n in names} for i in indexes}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        uri = table.made(given.table or folder / "t", rows)
        changes = str(folder / "changes.parquet")
        pq.write_table(incoming(rows, keys), changes)
        workers = [Worker(n, HERE, ["serve", n, uri, changes], folder / f"{n}.log") for n in names]
        try:
            for turn in range(-given.warm, repeat):  # the first ones warm up
                for index in indexes:
                    for worker in workers:
                        answer = worker.ask(index=index)
                        if answer["found"] != keys // 2:
                            raise SystemExit(
                                f"{worker.name}, {index}: {answer['found']:,} of {keys // 2:,} keys found"
                            )
                        if turn >= 0:
                            seconds[index][worker.name].append(answer["seconds"])
                            used[index][worker.name].append(answer["processor"])
                        print(
                            f"  {worker.name:12} {index:14} {answer['seconds']:8.2f} s "
                            f"{answer['processor']:8.2f} s of a core",
                            file=sys.stderr,
                            flush=True,
                        )
        finally:
            for worker in workers:
                worker.stop()
    measured = Measured("-".join(["tagging", *([] if len(indexes) == len(INDEXES) else indexes)]).lower())
    measured.processor = used
    for index in indexes:
        measured.add(index, f"{index}: {keys:,} keys against {rows:,}", seconds[index])
    text = [seconds_table(measured, TITLES), goals_table(measured, TITLES, GOALS)]
    write(measured, text, given.out)


if __name__ == "__main__":
    main()
