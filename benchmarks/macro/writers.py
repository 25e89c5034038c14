"""What several writers of one table cost.

    python benchmarks/macro/writers.py [--works single,commits] [--repeat 7] [--rows 120000]
    python benchmarks/macro/writers.py --scale smoke

single   an upsert of N rows into a table of as many, in turn as the only writer and under optimistic concurrency
         control (by file groups, and by keys), with how long the table's lock was held by each
commits  commits a minute of 1, 2 and 4 processes that upsert small batches for some seconds, each to a partition of its
         own, and all to one; those that lost are tried again
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from report import machine, machine_line

from hudi_format.errors import WriteConflictError
from hudi_timeline.concurrency.locks.provider import TableLock
from hudi_timeline.table import HudiTable

OCC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
MODES: dict[str, dict[str, str]] = {
    "the only writer": {},
    "optimistic": OCC,
    "optimistic, by keys": {**OCC, "hudi.write.conflict.detection": "keys"},
}
RETRIES = {"hoodie.write.num.retries.on.conflict.failures": "50"}
SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def rows(first: int, count: int, partition: str, value: int) -> pa.Table:
    keys = pa.array([f"key-{n:09d}" for n in range(first, first + count)])
    amounts = pa.array(np.random.default_rng(value).random(count))
    return pa.table(
        {"id": keys, "p": pa.repeat(partition, count), "ts": pa.repeat(value, count), "amount": amounts}
    )


def make(folder: Path, count: int, partitions: list[str]) -> None:
    table = HudiTable.create(
        str(folder),
        rows(0, 1, "p0", 0),
        name="t",
        record_keys="id",
        partition_fields="p",
        ordering_fields="ts",
    )
    for n, partition in enumerate(partitions):
        table.bulk_insert(rows(n * count, count, partition, 0), options=SERVICES)


@contextmanager
def lock_held(seconds: list[float]) -> Iterator[None]:
    """Notes how long the table's lock is held, each time."""
    held = TableLock.held

    @contextmanager
    def timed(lock: TableLock) -> Iterator[None]:
        with held(lock):
            began = time.perf_counter()
            try:
                yield
            finally:
                seconds.append(time.perf_counter() - began)

    with mock.patch.object(TableLock, "held", timed):
        yield


def measure_single(folder: Path, count: int, repeat: int) -> dict[str, Any]:
    """Seconds of an upsert of all rows by mode, and of the lock, in turn."""
    make(folder, count, ["p0"])
    seconds: dict[str, list[float]] = {m: [] for m in MODES}
    locks: dict[str, list[float]] = {m: [] for m in MODES}
    HudiTable.open(str(folder)).upsert(rows(0, count, "p0", 1), options=SERVICES)  # to have all code loaded
    for turn in range(repeat):
        names = list(MODES)
        for mode in names[turn % len(names) :] + names[: turn % len(names)]:
            table, batch = HudiTable.open(str(folder)), rows(0, count, "p0", turn + 2)
            with lock_held(locks[mode]):
                began = time.perf_counter()
                table.upsert(batch, options={**SERVICES, **MODES[mode]})
                seconds[mode].append(time.perf_counter() - began)
    return {"rows": count, "seconds": seconds, "lock": locks}


def write_on(folder: str, number: int, partition: str, seconds: float) -> dict[str, int]:
    """What one process does in `commits`."""
    table = HudiTable.open(folder, options={**OCC, **RETRIES, **SERVICES})
    done = lost = 0
    first = number * 100 if partition == "p0" else int(partition[1:]) * 1000
    table.upsert(rows(first, 50, partition, 0))  # to have all code loaded
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            lost += table.upsert(rows(first, 50, partition, done + 1)).retries
            done += 1
        except WriteConflictError:
            lost += 51
    return {"done": done, "lost": lost}


def measure_commits(folder: Path, seconds: float, writers: list[int]) -> list[dict[str, Any]]:
    found = []
    for count in writers:
        for overlapping in (False, True):
            path = folder / f"{count}-{overlapping}"
            make(path, 1000, [f"p{n}" for n in range(1 if overlapping else count)])
            began = []
            for n in range(count):
                partition = "p0" if overlapping else f"p{n}"
                command = [sys.executable, __file__, "--write", str(path), str(n), partition, str(seconds)]
                began.append(
                    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                )
            for process in began:
                assert process.stdout is not None
                process.stdout.readline()
            for process in began:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            results = [json.loads(process.communicate()[0]) for process in began]
            done = sum(r["done"] for r in results)
            least = min(r["done"] for r in results)
            found.append({
                "writers": count, "overlapping": overlapping, "a_minute": done * 60 / seconds, "done": done,
                "lost": sum(r["lost"] for r in results), "least": least,
            })  # fmt: skip
    return found


def said_of_single(found: dict[str, Any]) -> str:
    alone = statistics.median(found["seconds"]["the only writer"])
    lines = [
        f"An upsert of {found['rows']:,} rows into as many, {len(found['seconds']['optimistic'])} runs each in turn; "
        "medians.", "", "| | s | against the only writer | lock held, ms: median | most |", "|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    for mode, times in found["seconds"].items():
        lock = found["lock"][mode]
        ratio = f"{(statistics.median(times) / alone - 1) * 100:+.1f} %"
        held = f"{statistics.median(lock) * 1000:.1f} | {max(lock) * 1000:.1f}"
        lines.append(
            f"| {mode} | {statistics.median(times):.3f} (least {min(times):.3f}) | {ratio} | {held} |"
        )
    return "\n".join(lines)


def said_of_commits(found: list[dict[str, Any]]) -> str:
    lines = [
        "Upserts of 50 rows for some seconds by processes side by side, table of 1,000 rows a partition, flock of the "
        "local disk.", "", "| writers | partitions | commits a minute | tries that lost | least of one writer |",
        "|---:|---|---:|---:|---:|",
    ]  # fmt: skip
    for f in found:
        where = "one, shared" if f["overlapping"] else "of their own"
        tries = f"{f['lost']} of {f['done'] + f['lost']}"
        lines.append(f"| {f['writers']} | {where} | {f['a_minute']:.0f} | {tries} | {f['least']} |")
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        folder, number, partition, seconds = sys.argv[2:]
        print(json.dumps(write_on(folder, int(number), partition, float(seconds))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--works", default="single,commits")
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--scale", choices=("full", "smoke"), default="full", help="smoke: few rows, once")
    parser.add_argument("--out", type=Path, default=None, help="folder for writers.md and .json")
    given = parser.parse_args()
    smoke = given.scale == "smoke"
    text, kept = [f"On {machine_line()}."], {"machine": machine()}
    with tempfile.TemporaryDirectory() as scratch:
        if "single" in given.works.split(","):
            found = measure_single(
                Path(scratch) / "single", 500 if smoke else given.rows, 1 if smoke else given.repeat
            )
            kept["single"] = found
            text.append(said_of_single(found))
        if "commits" in given.works.split(","):
            several = measure_commits(
                Path(scratch), 0.5 if smoke else given.seconds, [2] if smoke else [1, 2, 4]
            )
            kept["commits"] = several
            text.append(said_of_commits(several))
    whole = "\n\n".join(text) + "\n"
    print(whole)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "writers.md").write_text(whole)
        (given.out / "writers.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
