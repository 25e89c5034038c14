"""Readers of every kind beside a writer that cleans and archives after each commit.

    python -m soak.readers write|read TABLE SECONDS [SEED]

The writer gives all rows of some partitions the number of its commit, so that what a reader saw is a number for each
partition, and is one of the states that the writer made.  A reader says each answer, or the class of its error, in a
line of JSON.  `watch` runs both and compares.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import polars
import pyarrow as pa

from hudi_format import HudiError
from hudi_format.arrow.arrays import put_together
from hudi_timeline import HudiTable
from hudi_timeline.reading.scan import Scan

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
PARTITIONS = ("2024", "2024/01", "_x", "c", "d")
KEYS = 3
SERVICES = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.parquet.small.file.limit": "0",
}
BY_VERSIONS = {
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}
# A scan is held for so long before it is planned, and again before it is read.
LONGEST_HOLD_S = 1.5
LONGEST_REST_S = 1.0
"""Of the writer, between two commits."""
READERS = 3

State = tuple[int, ...]
"""The number of the commit that each partition was written by."""


class WrongAnswerError(AssertionError):
    """Rows that the table never held, or fewer."""


# --- the writer


def make(path: str) -> HudiTable:
    """A new table with a first commit."""
    table = HudiTable.create(
        path, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"]
    )
    table.insert(_rows(1, PARTITIONS))
    return table


def _rows(number: int, partitions: tuple[str, ...]) -> list[dict[str, object]]:
    return [{"id": f"{p}-{i}", "p": p, "v": number, "ts": number} for p in partitions for i in range(KEYS)]


def write(path: str, seconds: float, seed: int) -> None:
    """Write, and say each state before it is committed."""
    rng = random.Random(seed)
    state = dict.fromkeys(PARTITIONS, 1)
    until = time.monotonic() + seconds
    number = 1
    while time.monotonic() < until:
        number += 1
        kind = rng.choice(["upsert"] * 6 + ["insert_overwrite", "insert_overwrite_table"])
        some = tuple(rng.sample(PARTITIONS, rng.randint(1, 2)))
        chosen = PARTITIONS if kind == "insert_overwrite_table" else some
        state |= dict.fromkeys(chosen, number)
        print(json.dumps([state[p] for p in PARTITIONS]), flush=True)
        options = {**SERVICES, **(BY_VERSIONS if rng.random() < 0.3 else {})}
        getattr(HudiTable.open(path), kind)(_rows(number, chosen), options=options)
        time.sleep(rng.random() ** 2 * LONGEST_REST_S)


# --- the readers


def _state(rows: pa.Table) -> State:
    found: dict[str, list[int]] = {p: [] for p in PARTITIONS}
    for p, v in zip(rows.column("p").to_pylist(), rows.column("v").to_pylist(), strict=True):
        found[p].append(v)
    if any(len(of) != KEYS or len(set(of)) != 1 for of in found.values()):
        raise WrongAnswerError(f"rows of no commit: {found}")
    return tuple(of[0] for of in found.values())


class Reader:
    """Asks in turn, in each way that there is."""

    def __init__(self, path: str, seed: int) -> None:
        self.path, self.rng = path, random.Random(seed)
        self._followed: dict[str, tuple[str, dict[str, int]]] = {}

    def _hold(self) -> None:
        time.sleep(self.rng.random() ** 2 * LONGEST_HOLD_S)

    def _held(self, scan: Scan) -> Scan:
        self._hold()
        if self.rng.random() < 0.5:
            assert scan.plan is not None
            self._hold()
        return scan

    def _table(self) -> HudiTable:
        return HudiTable.open(self.path)

    def snapshot(self) -> State:
        return _state(self._held(self._table().read()).to_arrow())

    def read_optimized(self) -> State:
        return _state(self._held(self._table().read(query="read_optimized")).to_arrow())

    def of_some_partitions(self) -> State:
        scan = self._table().read(filter="p <> 'c'")
        rest = _rows(0, ("c",))
        return _state(pa.concat_tables([self._held(scan).to_arrow().select(["p", "v"]),
                                        pa.Table.from_pylist(rest, SCHEMA).select(["p", "v"])]))  # fmt: skip

    def pickled(self) -> State:
        data = pickle.dumps(self._table().read())
        self._hold()
        return _state(pickle.loads(data).to_arrow())

    def tasks(self) -> State:
        scan = self._held(self._table().read())
        tasks = [pickle.dumps(t) for t in scan.plan_files()]
        self._hold()
        return _state(put_together([pickle.loads(t).to_table() for t in tasks], scan.schema))

    def batches(self) -> State:
        stream = self._table().read().to_batches(2)
        self._hold()
        return _state(pa.Table.from_batches(list(stream), stream.schema))

    def duckdb(self) -> State:
        return _state(duckdb.from_arrow(self._held(self._table().read()).to_batches()).to_arrow_table())

    def polars(self) -> State:
        return _state(polars.DataFrame(self._held(self._table().read())).to_arrow())

    def time_travel(self) -> State:
        table = self._table()
        writes = table.timeline.completed_writes()
        return _state(self._held(table.read(as_of=self.rng.choice(writes).time)).to_arrow())

    def look_up(self) -> State:
        self._hold()
        return _state(self._table().get([f"{p}-{i}" for p in PARTITIONS for i in range(KEYS)]))

    def incremental(self, order: str = "") -> State:
        """Rows of ranges on top of a snapshot."""

        def changed(table: HudiTable, begin: str) -> tuple[pa.Table, str]:
            scan = self._held(table.read_incremental(begin, order=order or None))
            return scan.to_arrow(), scan.checkpoint

        return self._follow(f"incremental {order}", changed)

    def stable(self) -> State:
        return self.incremental("stable")

    def from_start(self) -> State:
        return self.incremental("start")

    def full_scan(self) -> State:
        """The whole table by the way of a range."""
        return _state(self._held(self._table().read_incremental("000", on_missing="full_scan")).to_arrow())

    def changes(self) -> State:
        def changed(table: HudiTable, begin: str) -> tuple[pa.Table, str]:
            scan = self._held(table.read_changes(begin, images="struct"))
            found = scan.to_arrow()
            return pa.Table.from_struct_array(found.column("after").drop_null()), scan.checkpoint

        return self._follow("changes", changed)

    def _follow(self, name: str, changed: Callable[[HudiTable, str], tuple[pa.Table, str]]) -> State:
        table = self._table()
        if name not in self._followed:
            scan = table.read()
            rows = _state(scan.to_arrow())
            self._followed[name] = scan.checkpoint, dict(zip(PARTITIONS, rows, strict=True))
        begin, state = self._followed.pop(name)  # after an error it begins anew
        self._hold()
        found, end = changed(table, begin)
        newest = {}
        for p, v in zip(found.column("p").to_pylist(), found.column("v").to_pylist(), strict=True):
            newest[p] = max(v, newest.get(p, 0))
        state = {**state, **newest}
        self._followed[name] = end, state
        return tuple(state[p] for p in PARTITIONS)


KINDS = (
    "snapshot", "read_optimized", "of_some_partitions", "pickled", "tasks", "batches", "duckdb", "polars",
    "time_travel", "look_up", "incremental", "stable", "from_start", "full_scan", "changes",
)  # fmt: skip


def read(path: str, seconds: float, seed: int) -> None:
    """Ask until the time is over, and say what came."""
    reader = Reader(path, seed)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        kind = reader.rng.choice(KINDS)
        try:
            print(json.dumps([kind, list(getattr(reader, kind)()), ""]), flush=True)
        except WrongAnswerError as e:
            print(json.dumps([kind, [], f"wrong: {e}"]), flush=True)
        except HudiError as e:
            print(json.dumps([kind, [], e.code]), flush=True)
        except (duckdb.Error, polars.exceptions.PolarsError, OSError) as e:  # the text of an error of ours
            found = [part for part in str(e).split("[") if part.startswith("HUDI-E")]
            if not found:
                raise
            print(json.dumps([kind, [], found[0][:10]]), flush=True)


# --- both


def watch(path: str, seconds: float, seed: int) -> Mapping[str, Counter[str]]:
    """Run a writer and readers, and compare; how often each kind of query ended how.

    Raises:
        WrongAnswerError: an answer that is no state of the table, or a process that failed.
    """
    make(path)
    processes = [_start("write", path, seconds, seed)]
    processes += [_start("read", path, seconds, seed + n) for n in range(1, READERS + 1)]
    outputs = []
    for process in processes:
        out, errors = process.communicate(timeout=seconds + 300)
        if process.returncode:
            raise WrongAnswerError(f"a process failed: {errors[-3000:]}")
        outputs.append([json.loads(line) for line in out.splitlines()])
    states = {tuple([1] * len(PARTITIONS)), *map(tuple, outputs[0])}
    but_c = {(*s[:3], 0, *s[4:]) for s in states}
    report: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for kind, state, problem in (answer for of in outputs[1:] for answer in of):
        if problem.startswith("wrong"):
            raise WrongAnswerError(f"{kind}: {problem}")
        known = but_c if kind == "of_some_partitions" else states
        if not problem and tuple(state) not in known:
            raise WrongAnswerError(f"{kind} gave {state}, which the table never was")
        report[kind][problem or "right"] += 1
    if [f for f in HudiTable.open(path).verify(deep=True) if f.severity == "error"]:
        raise WrongAnswerError("the table is damaged")
    report["commits"] = Counter(right=len(outputs[0]))
    return report


def _start(what: str, path: str, seconds: float, seed: int) -> subprocess.Popen[str]:
    tools = str(Path(__file__).parents[1])
    paths = os.pathsep.join(filter(None, (tools, os.environ.get("PYTHONPATH", ""))))
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "soak.readers", what, path, str(seconds), str(seed)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
