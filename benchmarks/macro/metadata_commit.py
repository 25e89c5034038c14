"""What the metadata table costs a commit: one upsert of 120,000 rows beside the same one without a metadata table.

    python benchmarks/macro/metadata_commit.py [--rows 2000000] [--repeat 7] [--out FOLDER]
    python benchmarks/macro/metadata_commit.py --scale smoke

The headline's table and upsert (workload.py): of 120,000 rows 20,000 are new.  Each upsert is made on a fresh copy of
its table; the tables take turns, and the one that begins changes from round to round.  Without a JVM.

none      no metadata table
files     the listing of files alone
all       files, column_stats, bloom_filters and record_index
tagged    as `all`, and keys are found by the record index (RECORD_INDEX), not in the files (SIMPLE)
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import workload
from report import Goal, Measured, goals_table, seconds_table, write

from hudi_timeline import HudiTable

_NONE = {"hoodie.metadata.enable": "false"}
_FILES = {"hoodie.metadata.enable": "true"}
_ALL = {
    **_FILES,
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}
OPTIONS: dict[str, dict[str, str]] = {
    "none": _NONE,
    "files": _FILES,
    "all": _ALL,
    "tagged": {**_ALL, "hoodie.index.type": "RECORD_INDEX"},
}
PARTITIONS = {"none": 0, "files": 1, "all": 4, "tagged": 4}
TITLES = {
    "none": "no metadata table", "files": "files", "all": "all indexes", "tagged": "all, RECORD_INDEX",
}  # fmt: skip
WORKS = ("upsert", "commit", "processor")
GOALS = tuple(Goal("upsert", name, "none", 1 / 1.1) for name in ("files", "all", "tagged"))


def made(folder: Path, facts: workload.Facts, options: Mapping[str, str]) -> Path:
    """The headline's table with its metadata table."""
    rows = pq.read_table(facts.base)
    table = HudiTable.create(
        str(folder), rows.schema, name="trips", record_keys=[workload.KEY],
        partition_fields=[workload.PARTITION], ordering_fields=[workload.ORDERING],
    )  # fmt: skip
    table.bulk_insert(rows, options=_NONE)
    if PARTITIONS[folder.name]:  # made by the next write, as base files
        table.insert(rows.slice(0, 0), options={**options, "hoodie.allow.empty.commit": "true"})
    return folder


def upserted(table: Path, scratch: Path, facts: workload.Facts, options: Mapping[str, str]) -> dict[str, Any]:
    """Seconds of one upsert on a copy of the table, and of its commit."""
    copy = scratch / "copy"
    shutil.copytree(table, copy)
    rows = pq.read_table(facts.upserts)
    os.sync()  # nobody pays for the copy
    began, before = time.perf_counter(), time.process_time()
    result = HudiTable.open(str(copy)).upsert(rows, options=options)
    out = {
        "upsert": time.perf_counter() - began,
        "processor": time.process_time() - before,
        "commit": result.timings["commit"],
    }
    table_now = HudiTable.open(str(copy))
    rows_now = table_now.read(["fare"]).to_arrow()
    built = table_now.config.metadata_partitions
    if rows_now.num_rows != facts.after_upsert[0] or len(built) != PARTITIONS[table.name]:
        raise SystemExit(f"{table.name}: {rows_now.num_rows:,} rows, {built}; {result.warnings}")
    shutil.rmtree(copy)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--tables", default=",".join(OPTIONS))
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--scale", choices=("full", "smoke"), default="full", help="smoke: 4,000 rows, once")
    parser.add_argument("--out", type=Path, default=None, help="folder for metadata-commit.md and .json")
    given = parser.parse_args()
    rows, repeat = (4_000, 1) if given.scale == "smoke" else (given.rows, given.repeat)
    names = [n for n in OPTIONS if n in given.tables.split(",")]
    measured = Measured("metadata-commit")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        facts = workload.make(folder / "data", rows)
        tables = {n: made(folder / n, facts, OPTIONS[n]) for n in names}
        found: dict[str, dict[str, list[float]]] = {w: {n: [] for n in names} for w in WORKS}
        for round_ in range(-1, repeat):
            turn = names[round_ % len(names) :] + names[: round_ % len(names)]
            for name in turn:
                seen = upserted(tables[name], folder, facts, OPTIONS[name])
                if round_ < 0 and repeat > 1:  # warms up
                    continue
                for work, seconds in seen.items():
                    found[work][name].append(seconds)
                print(f"  {name:8} {seen}", file=sys.stderr, flush=True)
    changed = rows // 20 + rows // 100
    measured.add("upsert", f"an upsert of {changed:,} rows into {rows:,}", found["upsert"])
    measured.add("commit", "commit: the part of it after the data files are written", found["commit"])
    measured.more = {"processor_seconds": found["processor"]}
    lines = [
        "| table | upsert, ms | least | commit, ms | processor, ms | over none |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    base = statistics.median(found["upsert"]["none"]) if "none" in names else None
    for name in names:
        total, commit, used = (statistics.median(found[w][name]) * 1e3 for w in WORKS)
        over = "" if base is None else f"{total / base / 10 - 100:+.0f} %"
        least = min(found["upsert"][name]) * 1e3
        lines.append(f"| {TITLES[name]} | {total:.0f} | {least:.0f} | {commit:.0f} | {used:.0f} | {over} |")
    text = [seconds_table(measured, TITLES), "\n".join(lines), goals_table(measured, TITLES, GOALS)]
    write(measured, text, given.out)


if __name__ == "__main__":
    main()
