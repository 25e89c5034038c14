"""1,000 files of which an upsert touches 100: each index, beside rewriting everything.

    python benchmarks/macro/files1000.py [--files 1000] [--rows-per-file 2000] [--works ours,rewrite,spark]

Keys are random, so key ranges rule nothing out: filters do.  Each work starts from a copy of the same table, and
its rows and sum are checked.  Seconds are of this machine and this run; what counts are the ratios.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import workload
from engines import OPERATION, OPTIONS, _session
from report import Goal, Measured, goals_table, write
from workload import KEY, PARTITION

from hudi_timeline import HudiTable

INDEX = "hoodie.index.type"
# No file takes new records, so that nothing but the index decides which files are touched.
SIZING = {"hoodie.parquet.small.file.limit": "0", "hoodie.copyonwrite.insert.auto.split": "false"}


def make(folder: Path, files: int, rows_per_file: int) -> Path:
    """A table of that many files in one commit."""
    path = folder / "table"
    rows = workload._rows(np.random.default_rng(1), np.arange(files * rows_per_file))
    table = HudiTable.create(
        str(path),
        rows.schema,
        name="trips",
        record_keys=[KEY],
        partition_fields=[PARTITION],
        ordering_fields=["ts"],
    )
    table.insert(rows, options={**SIZING, "hoodie.copyonwrite.insert.split.size": str(rows_per_file)})
    return path


def changes(path: Path, touched: int) -> pa.Table:
    """New fares for every 50th row of some files."""
    table = HudiTable.open(str(path))
    files = sorted(table.inspect.files()["path"].to_pylist())
    parts = []
    for name in files[:: max(1, len(files) // touched)][:touched]:
        part = pq.ParquetFile(path / name).read()
        part = part.select([n for n in part.column_names if not n.startswith("_hoodie_")])
        parts.append(part.take(pa.array(np.arange(0, part.num_rows, 50))))
    out = pa.concat_tables(parts)
    fare = out.schema.get_field_index("fare")
    return out.set_column(fare, out.schema.field("fare"), pc.add(out["fare"], 1000.0))


def upsert(index: str) -> Callable[[Path, Path, Any], str]:
    def run(path: Path, given: Path, _: Any) -> str:
        result = HudiTable.open(str(path)).upsert(pq.read_table(given), options={INDEX: index, **SIZING})
        return str(result.lookup)

    return run


def rewrite(path: Path, given: Path, _: Any) -> str:
    table = HudiTable.open(str(path))
    old, new = table.read().to_arrow(), pq.read_table(given)
    kept = old.filter(pc.invert(pc.is_in(old[KEY], value_set=new[KEY])))
    table.insert_overwrite_table(pa.concat_tables([kept, new.select(kept.column_names).cast(kept.schema)]))
    return "read, merge and insert_overwrite_table"


def on_spark(index: str) -> Callable[[Path, Path, Any], str]:
    def run(path: Path, given: Path, spark: Any) -> str:
        import hudi_spark

        frame = spark.read.parquet(str(given))
        options = {**OPTIONS, **SIZING, INDEX: index, OPERATION: "upsert"}
        frame.write.format("hudi").options(**options).mode("append").save(str(path))
        commit = hudi_spark.last_commit()
        return str(commit.lookup if commit is not None else "")

    return run


def spark_rewrite(path: Path, given: Path, spark: Any) -> str:
    """Spark alone: join away what changes, union, write all of it anew; read back as plain Parquet."""
    names = HudiTable.open(str(path)).inspect.files()["path"].to_pylist()
    new = spark.read.parquet(str(given))
    old = spark.read.parquet(*(str(path / n) for n in names)).select(new.columns)
    merged = (
        old.join(new.select(KEY, PARTITION), [KEY, PARTITION], "left_anti").select(new.columns).union(new)
    )
    target = path / ".rewritten"
    merged.write.partitionBy(PARTITION).mode("overwrite").parquet(str(target))
    return "join and rewrite of plain Parquet"


WORKS: dict[str, dict[str, Callable[[Path, Path, Any], str]]] = {
    "ours": {"this, no JVM, BLOOM": upsert("BLOOM"), "this, no JVM, SIMPLE": upsert("SIMPLE")},
    "global": {
        "this, no JVM, GLOBAL_BLOOM": upsert("GLOBAL_BLOOM"),
        "this, no JVM, GLOBAL_SIMPLE": upsert("GLOBAL_SIMPLE"),
    },
    "rewrite": {"this, no JVM, full rewrite": rewrite},
    "spark": {"this, on Spark, BLOOM": on_spark("BLOOM"), "this, on Spark, SIMPLE": on_spark("SIMPLE")},
    "spark-rewrite": {"Spark, join and rewrite": spark_rewrite},
}


def check(path: Path, want: tuple[int, float]) -> None:
    plain = path / ".rewritten"
    if plain.is_dir():
        rows = pq.read_table(plain, columns=["fare"])
    else:
        rows = HudiTable.open(str(path)).read(["fare"]).to_arrow()
    found = rows.num_rows, pc.sum(rows["fare"]).as_py()
    if found[0] != want[0] or abs(found[1] - want[1]) > 1e-6 * abs(want[1]):
        raise SystemExit(f"{found} rows and sum, right is {want}")


# On Spark the rival is what Spark does without an index; without a JVM it is our own full rewrite.
GOALS = (
    Goal("upsert", "this, on Spark, BLOOM", "Spark, join and rewrite", 10.0),
    Goal("upsert", "this, no JVM, BLOOM", "Spark, join and rewrite", 10.0),
    Goal("upsert", "this, no JVM, BLOOM", "this, no JVM, full rewrite", 5.0),
)


@dataclass(frozen=True)
class Given:
    """A table, the changes to it, and what it must hold afterwards."""

    path: Path
    changes: Path
    want: tuple[int, float]
    what: str


def prepare(folder: Path, files: int, rows_per_file: int) -> Given:
    folder.mkdir(parents=True)
    path = make(folder, files, rows_per_file)
    new = changes(path, files // 10)
    pq.write_table(new, folder / "changes.parquet")
    before = HudiTable.open(str(path)).read(["fare"]).to_arrow()
    want = (before.num_rows, pc.sum(before["fare"]).as_py() + 1000.0 * new.num_rows)
    what = f"{before.num_rows:,} rows in {files} files, {new.num_rows:,} changes in a tenth of them"
    return Given(path, folder / "changes.parquet", want, what)


def timed(work: Callable[[Path, Path, Any], str], given: Given, spark: Any) -> tuple[float, str]:
    """Seconds of one work on a copy of the table, and what it says of its look-up."""
    copy = given.path.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(given.path, copy)
    os.sync()  # nobody pays for the copy
    began = time.perf_counter()
    said = work(copy, given.changes, spark)
    seconds = time.perf_counter() - began
    check(copy, given.want)
    return seconds, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows-per-file", type=int, default=2000)
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scale", choices=("full", "smoke"), default="full", help="smoke: 20 files, once")
    parser.add_argument("--out", type=Path, default=None, help="folder for files1000.md and .json")
    arguments = parser.parse_args()
    if arguments.scale == "smoke":
        arguments.files, arguments.rows_per_file, arguments.repeat = 20, 200, 1
    chosen = arguments.works.split(",")
    if set(chosen) - set(WORKS):
        parser.error(f"works are {', '.join(WORKS)}")
    spark = None
    if any(w.startswith("spark") for w in chosen):
        import hudi_spark

        spark = hudi_spark.configure(_session()).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
    measured = Measured("files1000")
    with tempfile.TemporaryDirectory() as scratch:
        small = prepare(Path(scratch) / "warm", 20, 200)
        works = {n: w for c in chosen for n, w in WORKS[c].items()}
        for work in works.values():
            for _ in range(2):  # sessions and code warm up on a small table
                timed(work, small, spark)
        given = prepare(Path(scratch) / "full", arguments.files, arguments.rows_per_file)
        print(given.what)
        seconds: dict[str, list[float]] = {n: [] for n in works}
        said = {}
        for _ in range(arguments.repeat):
            for name, work in works.items():
                took, said[name] = timed(work, given, spark)
                seconds[name].append(took)
                print(f"  {name:28} {took:8.2f} s", file=sys.stderr, flush=True)
        measured.add("upsert", given.what, seconds)
        measured.more = {"lookups": said}
    titles = {n: n for n in works}
    lines = ["| work | seconds, median | least | look-up |", "|---|---:|---:|---|"]
    for name, times in seconds.items():
        lines.append(f"| {name} | {statistics.median(times):.2f} | {min(times):.2f} | {said[name]} |")
    text = [
        f"{given.what}; median of {arguments.repeat}",
        "\n".join(lines),
        goals_table(measured, titles, GOALS),
    ]
    write(measured, text, arguments.out)


if __name__ == "__main__":
    main()
