"""Upserts of copy-on-write tables with and without change data capture, in one run, without a JVM.

    python benchmarks/macro/cdc.py [--rows 2000000] [--repeat 5] [--out FOLDER]
    python benchmarks/macro/cdc.py --scale smoke

Eight partitions, twelve columns; each table is made once and copied before each write.  The contenders are interleaved
and medians count.  What the change feed says of each write is compared with what was written.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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


def upserted(path: Path, rows: pa.Table, updated: int) -> float:
    """Seconds of the write, on a copy of the table; what it logged is checked."""
    copied = path.with_name(path.name + "-copy")
    shutil.copytree(path, copied)
    table = HudiTable.open(copied)
    first = table.timeline.completed_writes()[0].time
    began = time.perf_counter()
    result = table.upsert(rows)
    seconds = time.perf_counter() - began
    if path.name != NONE:
        told = pc.value_counts(table.read_changes(first, columns=["op"]).to_arrow()["op"])
        found = {c["values"]: c["counts"] for c in told.to_pylist()}
        wanted = {k: n for k, n in (("u", updated), ("i", rows.num_rows - updated)) if n}
        if found != wanted or (result.updated, result.inserted) != (updated, rows.num_rows - updated):
            raise AssertionError(f"{path.name}: {found}, not {wanted}")
    shutil.rmtree(copied)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=5)
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
    measured = Measured("cdc")
    with tempfile.TemporaryDirectory() as folder:
        paths = {mode: table_of(Path(folder), mode, base) for mode in TITLES}
        for work, (rows, updated) in works.items():
            seconds: dict[str, list[float]] = {mode: [] for mode in TITLES}
            for _ in range(repeat):
                for mode, path in paths.items():
                    seconds[mode].append(upserted(path, rows, updated))
            measured.add(work, notes[work], seconds)
    write(measured, [seconds_table(measured, TITLES), goals_table(measured, TITLES, GOALS)], given.out)


if __name__ == "__main__":
    main()
