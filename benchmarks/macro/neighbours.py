"""A filtered question in DuckDB, Polars and pyarrow: put to a table, beside the same question put to its files by hand.

    python benchmarks/macro/neighbours.py [--rows 2000000] [--repeat 15]

A table of eight files; the mean of a column over a twentieth of the rows, by city.  Each time the table is opened anew,
and so are the files, in one process, contender after contender in turn: what differs is what the table costs.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from report import Goal, Measured, goals_table, write

from hudi_timeline import HudiTable, read_hudi, scan_hudi

FILES = 8
TITLES = {"table": "the table", "hand": "its files, by hand"}
GOALS = [Goal(engine, "table", "hand", 1 / 1.3) for engine in ("DuckDB", "Polars", "pyarrow dataset")]
_ASKED = "select city, avg(fare) as fare from t where id < {} group by city order by city"


def make(folder: Path, rows: int) -> list[str]:
    """The table, and the paths of its files."""
    numbers = np.arange(rows)
    random = np.random.default_rng(7)
    data = pa.table(
        {
            "id": numbers,
            "city": pa.array([f"city {n:02d}" for n in range(20)]).take(pa.array(numbers % 20)),
            "fare": random.random(rows).round(2) * 100,
            "a": random.random(rows),
            "note": pa.array([f"note {n}" for n in range(1000)]).take(pa.array(numbers % 1000)),
        }
    )
    table = HudiTable.create(folder, data.schema, record_keys="id")
    each = -(-rows // FILES)
    for start in range(0, rows, each):
        table.bulk_insert(data.slice(start, each))
    return [str(folder / path) for path in table.read().files.column("path").to_pylist()]


def questions(folder: str, files: list[str], below: int) -> dict[str, dict[str, Callable[[], Any]]]:
    """Questions by engine and contender; both answer the same."""
    condition = pl.col("id") < below

    def in_duckdb(relation: duckdb.DuckDBPyRelation) -> Any:
        return relation.query("t", _ASKED.format(below)).fetchall()

    def in_polars(frame: pl.LazyFrame) -> Any:
        return (
            frame.filter(condition).group_by("city").agg(pl.col("fare").mean()).sort("city").collect().rows()
        )

    def in_pyarrow(dataset: ds.Dataset) -> Any:
        rows = dataset.to_table(columns=["city", "fare"], filter=pc.field("id") < below)
        found = rows.group_by("city").aggregate([("fare", "mean")]).sort_by("city")
        return list(zip(found["city"].to_pylist(), found["fare_mean"].to_pylist(), strict=True))

    def by_hand() -> Any:
        with duckdb.connect() as connection:
            return in_duckdb(connection.read_parquet(files))

    def by_table() -> Any:
        with duckdb.connect() as connection:
            return in_duckdb(read_hudi(folder).to_duckdb(connection))

    return {
        "DuckDB": {"table": by_table, "hand": by_hand},
        "Polars": {
            "table": lambda: in_polars(scan_hudi(folder)), "hand": lambda: in_polars(pl.scan_parquet(files)),
        },
        "pyarrow dataset": {
            "table": lambda: in_pyarrow(read_hudi(folder).to_pyarrow_dataset()),
            "hand": lambda: in_pyarrow(ds.dataset(files)),
        },
    }  # fmt: skip


def measure(
    asked: dict[str, Callable[[], Any]], repeat: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds and processor seconds by contender, in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in asked}
    processor: dict[str, list[float]] = {name: [] for name in asked}
    answers = {name: ask() for name, ask in asked.items()}  # and for once to warm up
    first = next(iter(answers.values()))
    for found in answers.values():
        if not np.allclose([v for _, v in found], [v for _, v in first]) or [k for k, _ in found] != [
            k for k, _ in first
        ]:
            raise SystemExit(f"different answers: {answers}")
    for _ in range(repeat):
        for name, ask in asked.items():
            gc.collect()
            begun, used = time.perf_counter(), time.process_time()
            ask()
            seconds[name].append(time.perf_counter() - begun)
            processor[name].append(time.process_time() - used)
    return seconds, processor


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--scale", choices=["full", "smoke"], default="full")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows, repeat = (given.rows, given.repeat) if given.scale == "full" else (8_000, 1)
    measured = Measured("neighbours")
    with tempfile.TemporaryDirectory() as folder:
        files = make(Path(folder) / "t", rows)
        for engine, asked in questions(str(Path(folder) / "t"), files, rows // 20).items():
            seconds, processor = measure(asked, repeat)
            measured.add(engine, f"{engine}: the mean fare by city of a twentieth of {rows:,} rows", seconds)
            measured.processor[engine] = processor
    lines = ["| milliseconds, median (least) | the table | its files, by hand |", "|---|---:|---:|"]
    for what, of in (("", measured.seconds), (", processor", measured.processor)):
        for engine, times in of.items():
            cells = [f"{1e3 * statistics.median(t):.1f} ({1e3 * min(t):.1f})" for t in times.values()]
            lines.append(f"| {engine}{what} | {' | '.join(cells)} |")
    notes = "\n".join(f"- {note}" for note in measured.notes.values())
    write(measured, [notes, "\n".join(lines), goals_table(measured, TITLES, GOALS)], given.out)


if __name__ == "__main__":
    main()
