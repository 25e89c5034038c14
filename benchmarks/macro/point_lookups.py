"""Look-ups of keys by `get` through the record index, beside scans with a filter.

    python benchmarks/macro/point_lookups.py [--rows 10000000] [--gets 1000] [--scans 20] [--table FOLDER]
    python benchmarks/macro/point_lookups.py --scale smoke

single    one key a call: `get` on one table object, which keeps the index open, beside a read with `id == key`
first     one key, by a new table object: the index is opened
batch     as many keys as `--gets` in one call, beside one read with `id` in all of them

The table is made once by bulk_insert without a JVM: 20 partitions, keys without any order.  Scans read without
an index.  Every answer is compared with the rows that the key has.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from report import Goal, Measured, goals_table, write

from hudi_timeline import HudiTable

WITH = {"hoodie.metadata.enable": "true"}
WITHOUT = {"hoodie.metadata.enable": "false"}
INDEXED = {**WITH, "hoodie.metadata.record.index.enable": "true", "hoodie.allow.empty.commit": "true"}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
PARTITIONS, PIECE = 20, 500_000
MULTIPLIER = 0x9E3779B97F4A7C15  # an odd number: the keys of two rows differ, and have no order
TITLES = {"get": "get, record index", "scan": "filtered scan"}
GOALS = (Goal("single", "get", "scan", 20.0), Goal("batch", "get", "scan", 20.0))


def keys_of(numbers: np.ndarray) -> pa.Array:
    """Keys of rows; 19 digits each."""
    mixed = (numbers.astype(np.uint64) * np.uint64(MULTIPLIER)) >> np.uint64(1)
    return pc.utf8_lpad(pa.array(mixed.astype(np.int64)).cast(pa.string()), 19, "0")


def rows_of(first: int, count: int) -> pa.Table:
    """Rows of the table from a number on."""
    numbers = np.arange(first, first + count)
    folders = pa.array([f"p{n:02d}" for n in range(PARTITIONS)])
    return pa.table(
        [keys_of(numbers), folders.take(pa.array(numbers % PARTITIONS)), pa.array(numbers)], schema=SCHEMA
    )


def made(path: Path, rows: int, **index: str) -> str:
    """The table with a record index, unless it is there."""
    uri = str(path)
    if (path / ".hoodie" / "made").exists():
        return uri

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, rows, PIECE):
            yield from rows_of(first, min(PIECE, rows - first)).to_batches()

    table = HudiTable.create(uri, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"])
    sorted_ = {"hoodie.bulkinsert.sort.mode": "PARTITION_SORT", **WITHOUT}
    table.bulk_insert(pa.RecordBatchReader.from_batches(SCHEMA, batches()), options=sorted_)
    result = HudiTable.open(uri).insert(rows_of(0, 0), options={**INDEXED, **index})
    if "record_index" not in HudiTable.open(uri).config.metadata_partitions:
        raise SystemExit(f"no record index: {result.warnings}")
    (path / ".hoodie" / "made").touch()
    return uri


def timed(call: Callable[[], pa.Table], numbers: list[int]) -> tuple[float, float]:
    """Seconds, and processor seconds, of a call that gives the rows of these numbers."""
    began, before = time.perf_counter(), time.process_time()
    found = call()
    took = time.perf_counter() - began, time.process_time() - before
    if sorted(found.column("v").to_pylist()) != sorted(numbers):
        raise SystemExit(f"{found.num_rows} rows of {len(numbers)} keys")
    return took


def measure(uri: str, rows: int, gets: int, scans: int) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Times of every call, by work and way; scans come between the gets, so that both see the same machine."""
    chosen = random.Random(1).sample(range(rows), gets)
    table = HudiTable.open(uri)
    out: dict[str, dict[str, list[tuple[float, float]]]] = {
        "single": {"get": [], "scan": []}, "first": {"get": []}, "batch": {"get": [], "scan": []},
    }  # fmt: skip

    def key(number: int) -> str:
        return str(keys_of(np.array([number]))[0].as_py())

    def scan(condition: pc.Expression) -> pa.Table:
        return HudiTable.open(uri).read(filter=condition, options=WITHOUT).to_arrow()

    timed(lambda: table.get(key(0), options=WITH), [0])
    timed(lambda: scan(pc.field("id") == key(0)), [0])
    for n, number in enumerate(chosen):
        if n % max(1, gets // scans) == 0 and len(out["single"]["scan"]) < scans:
            out["single"]["scan"].append(timed(partial(scan, pc.field("id") == key(number)), [number]))
            opened = HudiTable.open(uri)
            out["first"]["get"].append(timed(partial(opened.get, key(number), options=WITH), [number]))
        out["single"]["get"].append(timed(partial(table.get, key(number), options=WITH), [number]))
    every = keys_of(np.array(chosen))
    for _ in range(max(1, scans // 4)):
        out["batch"]["get"].append(timed(lambda: HudiTable.open(uri).get(every, options=WITH), chosen))
        out["batch"]["scan"].append(timed(lambda: scan(pc.field("id").isin(every)), chosen))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--gets", type=int, default=1000)
    parser.add_argument("--scans", type=int, default=20)
    parser.add_argument(
        "--table", type=Path, default=None, help="folder of the table; made where it is not there"
    )
    parser.add_argument(
        "--scale", choices=("full", "smoke"), default="full", help="smoke: 20,000 rows, 10 gets"
    )
    parser.add_argument("--out", type=Path, default=None, help="folder for point-lookups.md and .json")
    given = parser.parse_args()
    rows, gets, scans = (20_000, 10, 2) if given.scale == "smoke" else (given.rows, given.gets, given.scans)
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        uri = made(given.table or Path(scratch) / "t", rows)
        print(f"  made in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        found: dict[str, Any] = measure(uri, rows, gets, scans)
    measured = Measured("point-lookups")
    notes = {
        "single": f"one key a call, {gets} gets and {scans} scans", "first": "one key, the index opened",
        "batch": f"{gets} keys in one call",
    }  # fmt: skip
    lines = [
        "| ms, median | get, record index | processor | filtered scan | processor |",
        "|---|---:|---:|---:|---:|",
    ]
    for work, ways in found.items():
        measured.add(work, notes[work], {n: [t[0] for t in of] for n, of in ways.items()})
        cells = [f"{statistics.median(t[i] for t in of) * 1e3:.2f}" for of in ways.values() for i in (0, 1)]
        lines.append(f"| {notes[work]} | " + " | ".join([*cells, "-", "-"][:4]) + " |")
    measured.more = {
        "processor_seconds": {
            w: {n: [t[1] for t in of] for n, of in ways.items()} for w, ways in found.items()
        }
    }
    text = [
        f"{rows:,} keys in {PARTITIONS} partitions",
        "\n".join(lines),
        goals_table(measured, TITLES, GOALS),
    ]
    write(measured, text, given.out)


if __name__ == "__main__":
    main()
