"""What a spike of updates costs: the same number of changed rows, first in few partitions, then in all of them.

    python benchmarks/macro/spikes.py [--partitions 40] [--rows-per-partition 10000] [--contenders ours,...]

Copy on write rewrites each file that a row of the batch lies in, so the writer pays for a spike at once.  Merge on
read appends to logs, and compaction pays later, once for all that came in between.  Here: quiet batches, a spike, a
quiet batch again, and for merge on read the compaction, both its seconds and the bytes that its commit wrote.
"""

from __future__ import annotations

import argparse
import json
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
from report import Measured, seconds_table, write

from hudi_format import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "spikes",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "day",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.index.type": "SIMPLE",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.parquet.small.file.limit": "0",
}
MERGE_ON_READ = {WRITE + "table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
TITLES = {
    "ours": "copy on write, this without a JVM",
    "apache": "copy on write, Apache Hudi 0.15",
    "apache-mor": "merge on read, Apache Hudi 0.15",
}
QUIET_PARTITIONS = 2

Save = Callable[[Path, pa.Table, dict[str, str]], None]


@dataclass
class Shape:
    """The table, and batches of changes to it."""

    partitions: int
    rows: int  # of a partition
    batch: int

    def table(self) -> pa.Table:
        return self._rows(np.arange(self.partitions * self.rows), 0)

    def changes(self, partitions: int, ts: int) -> pa.Table:
        """`batch` rows evenly of the newest `partitions`."""
        first = (self.partitions - partitions) * self.rows
        numbers = np.linspace(first, self.partitions * self.rows - 1, self.batch).astype(np.int64)
        return self._rows(np.unique(numbers), ts)

    def _rows(self, numbers: np.ndarray, ts: int) -> pa.Table:
        rng = np.random.default_rng(ts)
        return pa.table(
            {
                "id": [f"k{n:09d}" for n in numbers.tolist()],
                "day": [f"d{n:04d}" for n in (numbers // self.rows).tolist()],
                "ts": pa.array(np.full(len(numbers), ts), pa.int64()),
                **{f"v{c}": rng.random(len(numbers)) for c in range(4)},
                "text": [f"some text of row {n * 7919}" for n in numbers.tolist()],
            }
        )


def without_jvm(path: Path, rows: pa.Table, options: dict[str, str]) -> None:
    execute(LocalEngine(), open_storage(str(path)), rows, options)


def written(path: Path) -> int:
    """Bytes that commits wrote so far, by their own statistics: compactions are commits too."""
    total = 0
    for file in (path / ".hoodie").iterdir():
        if file.suffix in (".commit", ".deltacommit"):
            stats = json.loads(file.read_bytes())["partitionToWriteStats"]
            total += sum(s["totalWriteBytes"] for of in stats.values() for s in of)
    return total


def run(save: Save, path: Path, shape: Shape, more: dict[str, str]) -> dict[str, tuple[float, int]]:
    """Seconds and bytes of each step; the table's rows are checked at the end."""
    given = {**OPTIONS, **more, WRITE + "operation": "upsert"}
    merge_on_read = WRITE + "table.type" in more
    save(path, shape.table(), {**given, WRITE + "operation": "bulk_insert"})
    found: dict[str, tuple[float, int]] = {}
    steps = [("warm-up", QUIET_PARTITIONS), ("quiet", QUIET_PARTITIONS), ("spike", shape.partitions),
             ("quiet again", QUIET_PARTITIONS)]  # fmt: skip
    for ts, (name, partitions) in enumerate(steps, 1):
        before, began = written(path), time.monotonic()
        save(path, shape.changes(partitions, ts), given)
        found[name] = (time.monotonic() - began, written(path) - before)
    if merge_on_read:
        before, began = written(path), time.monotonic()
        save(path, shape.changes(QUIET_PARTITIONS, len(steps) + 1), {**given, **COMPACT})
        seconds, size = found["quiet again"]
        # One more quiet batch came with it, which is taken off.
        found["compaction"] = (time.monotonic() - began - seconds, written(path) - before - size)
    check(path, shape, len(steps) + merge_on_read)
    del found["warm-up"]
    return found


def check(path: Path, shape: Shape, last: int) -> None:
    rows = HudiTable.open(str(path)).read(["ts"]).to_arrow()
    newest = sum(v == last for v in rows["ts"].to_pylist())
    if (
        rows.num_rows != shape.partitions * shape.rows
        or newest != shape.changes(QUIET_PARTITIONS, last).num_rows
    ):
        raise SystemExit(f"{path} holds other rows than were written")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=40)
    parser.add_argument("--rows-per-partition", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=4_000)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--contenders", default=",".join(TITLES))
    parser.add_argument("--scale", choices=("full", "smoke"), default="full")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    shape = Shape(arguments.partitions, arguments.rows_per_partition, arguments.batch)
    if arguments.scale == "smoke":
        shape = Shape(5, 50, 20)
    names = arguments.contenders.split(",")
    measured = Measured("spikes")
    found: dict[str, list[dict[str, tuple[float, int]]]] = {n: [] for n in names}
    apache: Any = None
    if any(n.startswith("apache") for n in names):
        from interop.apache_hudi import ApacheHudi

        apache = ApacheHudi("0.15.0")
    try:
        with tempfile.TemporaryDirectory(prefix="hudi-spikes-") as scratch:
            for number in range(arguments.repeat):
                for name in names:
                    save: Save = without_jvm if name == "ours" else apache.write
                    more = MERGE_ON_READ if name.endswith("-mor") else {}
                    found[name].append(run(save, Path(scratch) / f"{name}-{number}", shape, more))
    finally:
        if apache is not None:
            apache.close()
    note = (
        f"{shape.partitions} partitions of one file of {shape.rows:,} rows; batches of {shape.batch:,} updates, quiet "
        f"ones in {QUIET_PARTITIONS} partitions, the spike in all; median of {arguments.repeat}"
    )
    steps = list(dict.fromkeys(s for runs in found.values() for s in runs[0]))
    lines = ["| MB written | " + " | ".join(TITLES[n] for n in names) + " |", "|---" * (len(names) + 1) + "|"]
    for step in steps:
        of = {n: [r[step][0] for r in runs] for n, runs in found.items() if step in runs[0]}
        measured.add(step, "", of)
        sizes = [
            f"{statistics.median(r[step][1] for r in found[n]) / 1e6:.2f}" if step in found[n][0] else "-"
            for n in names
        ]
        lines.append(f"| {step} | " + " | ".join(sizes) + " |")
    measured.notes = {"spikes": note}
    measured.more = {"bytes": {n: {s: [r[s][1] for r in runs] for s in runs[0]} for n, runs in found.items()}}
    write(measured, [seconds_table(measured, TITLES), "\n".join(lines)], arguments.out)


if __name__ == "__main__":
    main()
