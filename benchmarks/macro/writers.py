"""What several writers of one table cost.

    python benchmarks/macro/writers.py [--works single,commits] [--repeat 7] [--rows 120000]
    python benchmarks/macro/writers.py --scale smoke

single   an upsert of N rows into a table of as many, in turn as the only writer and under optimistic concurrency
         control (by file groups, and by keys), with how long the table's lock was held by each
commits  commits a minute of 1, 2, 4 and 8 processes that upsert small batches for some seconds, each to a partition of
         its own, and all to one; those that lost are tried again
apache   the same on a lock in ZooKeeper, by this project and by Apache Hudi 0.15.0 on Spark, each writer with a JVM of
         its own; --writers says how many
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from report import machine, machine_line

from hudi_format import WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.locks.provider import TableLock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from interop.apache_hudi import ApacheHudi, OursOnSpark
from interop.spark_process import SparkProcess, SparkProcessError
from lock_servers import LockServer

PYTHON, ON_SPARK, APACHE = "plain Python", "on Spark", "Apache Hudi"
OCC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
MODES: dict[str, dict[str, str]] = {
    "the only writer": {},
    "optimistic": OCC,
    "optimistic, by keys": {**OCC, "hudi.write.conflict.detection": "keys"},
}
RETRIES = {"hoodie.write.num.retries.on.conflict.failures": "50"}
SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
FRAME = {
    **OCC,
    **SERVICES,
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "50",
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.metadata.enable": "false",
    "hoodie.write.lock.client.num_retries": "50",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
}


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


def zookeeper_options(port: int) -> dict[str, str]:
    of = "hoodie.write.lock."
    return {
        of + "provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        of + "zookeeper.url": f"127.0.0.1:{port}",
        of + "zookeeper.port": str(port),
        of + "zookeeper.base_path": "/hudi",
        of + "zookeeper.lock_key": "t",
    }


def write_on(
    folder: str, number: int, partition: str, seconds: float, lock: Mapping[str, str] | None = None
) -> dict[str, float]:
    """What one process does in `commits`, and one of this project's in `apache`."""
    table = HudiTable.open(folder, options={**OCC, **RETRIES, **SERVICES, **(lock or {})})
    done = lost = 0
    first = number * 100 if partition == "p0" else int(partition[1:]) * 1000
    table.upsert(rows(first, 50, partition, 0))  # to have all code loaded
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    began = time.monotonic()
    until = began + seconds
    while time.monotonic() < until:
        try:
            lost += table.upsert(rows(first, 50, partition, done + 1)).retries
            done += 1
        except WriteConflictError:
            lost += 51
    return {"done": done, "lost": lost, "seconds": time.monotonic() - began}


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
            rate = sum(r["done"] * 60 / r["seconds"] for r in results)
            found.append({
                "writers": count, "overlapping": overlapping, "a_minute": rate, "done": done,
                "lost": sum(r["lost"] for r in results), "least": least,
            })  # fmt: skip
    return found


def measure_apache(
    folder: Path, seconds: float, writers: list[int], engines: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Commits a minute of each engine on one lock in ZooKeeper, on tables of the same rows."""
    found = []
    server = LockServer("zookeeper")
    try:
        lock = zookeeper_options(server.port)
        for engine in engines:
            for count in writers:
                for overlapping in (False, True):
                    path = folder / f"{engine}-{count}-{overlapping}"
                    make(path, 1000, [f"p{n}" for n in range(1 if overlapping else count)])
                    found.append({
                        "engine": engine, "writers": count, "overlapping": overlapping,
                        **side_by_side(engine, path, count, overlapping, seconds, lock),
                    })  # fmt: skip
    finally:
        server.stop()
    return found


def side_by_side(
    engine: str, path: Path, count: int, overlapping: bool, seconds: float, lock: Mapping[str, str]
) -> dict[str, Any]:
    """What so many writers of an engine get done: plain Python, this project on Spark, or Apache Hudi."""
    places = [(n * 100 if overlapping else n * 1000, "p0" if overlapping else f"p{n}") for n in range(count)]
    if engine == PYTHON:
        results = plain_writers(path, places, overlapping, seconds, lock)
    else:
        with ThreadPoolExecutor(count) as pool, ExitStack() as stack:
            start = OursOnSpark if engine == ON_SPARK else lambda: ApacheHudi("0.15.0")
            made = [stack.enter_context(p) for p in pool.map(lambda _: start(), range(count))]
            ready = threading.Barrier(count)
            jobs = [
                pool.submit(frames_on, spark, path, *place, seconds, lock, ready)
                for spark, place in zip(made, places, strict=True)
            ]
            results = [job.result() for job in jobs]
    done = sum(r["done"] for r in results)
    return {
        "a_minute": sum(r["done"] * 60 / r["seconds"] for r in results), "done": done,
        "lost": sum(r["lost"] for r in results), "least": min(r["done"] for r in results),
    }  # fmt: skip


def plain_writers(
    path: Path, places: list[tuple[int, str]], overlapping: bool, seconds: float, lock: Mapping[str, str]
) -> list[dict[str, float]]:
    command = [sys.executable, __file__, "--write", str(path)]
    began = [
        subprocess.Popen(
            [*command, str(n), place[1], str(seconds), json.dumps(lock)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n, place in enumerate(places)
    ]
    for process in began:
        assert process.stdout is not None
        process.stdout.readline()
    for process in began:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [json.loads(process.communicate()[0]) for process in began]


def frames_on(
    spark: SparkProcess, path: Path, first: int, partition: str, seconds: float, lock: Mapping[str, str],
    ready: threading.Barrier,
) -> dict[str, float]:  # fmt: skip
    """What one Spark does; a write that lost after all its tries, or failed, counts as one that lost."""
    options = {**FRAME, **lock}
    done = lost = 0

    def write(value: int) -> bool:
        try:
            spark.write(path, rows(first, 50, partition, value), options)
        except SparkProcessError:
            return False
        return True

    write(0)  # to have all code loaded
    ready.wait()
    began = time.monotonic()
    until = began + seconds
    while time.monotonic() < until:
        if write(done + 1):
            done += 1
        else:
            lost += 1
    return {"done": done, "lost": lost, "seconds": time.monotonic() - began}


def said_of_apache(found: list[dict[str, Any]]) -> str:
    lines = [
        "Upserts of 50 rows for some seconds by processes side by side, table of 1,000 rows a partition on the local "
        "disk, one lock in ZooKeeper; the ratio is to Apache Hudi with as many writers.", "",
        "| writers | partitions | engine | commits a minute | ratio | failed or lost | least of one writer |",
        "|---:|---|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    peers = {(f["writers"], f["overlapping"]): f["a_minute"] for f in found if f["engine"] == APACHE}
    for f in sorted(found, key=lambda f: (f["writers"], f["overlapping"], f["engine"])):
        where = "one, shared" if f["overlapping"] else "of their own"
        peer = peers.get((f["writers"], f["overlapping"]), 0.0)
        ratio = f"{f['a_minute'] / peer:.1f} x" if peer else ""
        lines.append(
            f"| {f['writers']} | {where} | {f['engine']} | {f['a_minute']:.0f} | {ratio} | {f['lost']} | {f['least']} |"
        )
    return "\n".join(lines)


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
        folder, number, partition, seconds, *lock = sys.argv[2:]
        options = json.loads(lock[0]) if lock else {}
        print(json.dumps(write_on(folder, int(number), partition, float(seconds), options)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--works", default="single,commits")
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--writers", default="1,2,4,8", help="how many at a time, with commas between them")
    parser.add_argument("--engines", default=f"{PYTHON},{ON_SPARK},{APACHE}", help="of `apache`")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--scale", choices=("full", "smoke"), default="full", help="smoke: few rows, once")
    parser.add_argument("--out", type=Path, default=None, help="folder for writers.md and .json")
    given = parser.parse_args()
    smoke = given.scale == "smoke"
    writers = [2] if smoke else [int(n) for n in given.writers.split(",")]
    seconds = 0.5 if smoke else given.seconds
    text, kept = [f"On {machine_line()}."], {"machine": machine()}
    with tempfile.TemporaryDirectory() as scratch:
        if "single" in given.works.split(","):
            found = measure_single(
                Path(scratch) / "single", 500 if smoke else given.rows, 1 if smoke else given.repeat
            )
            kept["single"] = found
            text.append(said_of_single(found))
        if "commits" in given.works.split(","):
            several = measure_commits(Path(scratch), seconds, writers)
            kept["commits"] = several
            text.append(said_of_commits(several))
        if "apache" in given.works.split(","):
            engines = tuple(given.engines.split(","))
            beside = measure_apache(Path(scratch), seconds, writers, engines)
            kept["apache"] = beside
            text.append(said_of_apache(beside))
    whole = "\n\n".join(text) + "\n"
    print(whole)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "writers.md").write_text(whole)
        (given.out / "writers.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
