"""Upserts of copy-on-write tables with and without change data capture, in one run, without a JVM or on Spark.

    python benchmarks/macro/cdc.py [--rows 2000000] [--repeat 5] [--engine none|spark] [--out FOLDER]
        [--clock processor: goals by processor time, on a machine that does other work too]
    python benchmarks/macro/cdc.py --scale smoke

Eight partitions, twelve columns; each table is made once and copied before each write.  The contenders are interleaved
and medians count.  What the change feed says of each write is compared with what was written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from processes import processor_seconds
from report import Goal, Measured, goals_table, seconds_table, write

from hudi_format.model import CDC_MODES
from hudi_timeline import HudiTable

NONE = "none"
TITLES = {NONE: "without CDC", **{mode: mode for mode in CDC_MODES}}
FEW, ALL = "upsert of 5 %", "upsert of all"
GOALS = tuple(Goal(FEW, mode, NONE, 1 / most) for mode, most in zip(CDC_MODES, (1.2, 1.5, 1.5), strict=True))


def made(keys: np.ndarray, version: int, seed: int) -> pa.Table:
    random, n = np.random.default_rng(seed), len(keys)
    columns = {
        "id": pc.binary_join_element_wise("key-", pa.array(keys).cast(pa.string()), ""),
        "part": pc.binary_join_element_wise("p", pa.array(keys % 8).cast(pa.string()), ""),
        "ts": pa.array(np.full(n, version, np.int64)),
    }
    for i in range(3):
        columns[f"long{i}"] = pa.array(random.integers(0, 10**9, n))
        columns[f"double{i}"] = pa.array(random.random(n))
        columns[f"text{i}"] = pc.binary_join_element_wise(
            "text ", pa.array(random.integers(0, 10**6, n)).cast(pa.string()), ""
        )
    return pa.table(columns)


def options(mode: str) -> dict[str, str]:
    if mode == NONE:
        return {}
    return {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode}


def table_of(folder: Path, mode: str, rows: pa.Table) -> Path:
    path = folder / mode
    HudiTable.create(
        path, rows.schema, name="t", record_keys=["id"], partition_fields=["part"], ordering_fields=["ts"],
        options=options(mode),
    ).bulk_insert(rows)  # fmt: skip
    return path


def upserted(path: Path, rows: pa.Table, updated: int, spark: Any) -> tuple[float, float]:
    """Seconds of the write, on a copy of the table, and of processor time; what it logged is checked."""
    copied = path.with_name(path.name + "-copy")
    shutil.copytree(path, copied)
    table = HudiTable.open(copied)
    first = table.timeline.completed_writes()[0].time
    given = path.parent / "given.parquet"
    if spark is not None:
        pq.write_table(rows, given)
    used, began = processor_seconds(), time.perf_counter()
    if spark is None:
        result = table.upsert(rows)
    else:
        result = _on_spark(spark, given, copied)
    seconds, used = time.perf_counter() - began, processor_seconds() - used
    table = HudiTable.open(copied)
    if path.name != NONE:
        told = pc.value_counts(table.read_changes(first, columns=["op"]).to_arrow()["op"])
        found = {c["values"]: c["counts"] for c in told.to_pylist()}
        wanted = {k: n for k, n in (("u", updated), ("i", rows.num_rows - updated)) if n}
        if found != wanted or (result.updated, result.inserted) != (updated, rows.num_rows - updated):
            raise AssertionError(f"{path.name}: {found}, not {wanted}")
    shutil.rmtree(copied)
    return seconds, used


def _session() -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    import engines

    import hudi_spark

    spark = hudi_spark.configure(engines._session()).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _on_spark(spark: Any, given: Path, table: Path) -> Any:
    import hudi_spark

    rows = spark.read.parquet(str(given))
    names = {"hoodie.table.name": "t", "hoodie.datasource.write.operation": "upsert"}
    rows.write.format("hudi").options(**names).mode("append").save(str(table))
    return hudi_spark.last_commit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--engine", choices=("none", "spark"), default="none")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--scale", choices=("smoke", "full"), default="full")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    n, repeat = (4_000, 1) if given.scale == "smoke" else (given.rows, given.repeat)
    base = made(np.arange(n), 1, 1)
    few = np.random.default_rng(2).choice(n, n // 20, replace=False)
    works = {
        FEW: (made(np.concatenate([few, np.arange(n, n + n // 100)]), 2, 3), n // 20),
        ALL: (made(np.arange(n), 2, 4), n),
    }
    notes = {
        FEW: f"{FEW}: {n:,} rows of {base.num_columns} columns in 8 partitions; 5 % updates, 1 % new rows",
        ALL: f"{ALL}: the same table, an update of every row",
    }
    measured = Measured("cdc" if given.engine == "none" else "cdc-spark")
    spark = None if given.engine == "none" else _session()
    with tempfile.TemporaryDirectory() as folder:
        paths = {mode: table_of(Path(folder), mode, base) for mode in TITLES}
        for work, (rows, updated) in works.items():
            seconds: dict[str, list[float]] = {mode: [] for mode in TITLES}
            processor: dict[str, list[float]] = {mode: [] for mode in TITLES}
            upserted(paths[NONE], rows, updated, spark)  # the first of its process
            for _ in range(repeat):
                for mode, path in paths.items():
                    took, used = upserted(path, rows, updated, spark)
                    seconds[mode].append(took)
                    processor[mode].append(used)
            measured.add(work, notes[work], seconds)
            if given.clock == "processor":
                measured.processor[work] = processor
    write(measured, [seconds_table(measured, TITLES), goals_table(measured, TITLES, GOALS)], given.out)


if __name__ == "__main__":
    main()
