"""Merge-on-read writes and compaction beside Apache Hudi 0.15 in one run, on Spark and without a JVM.

    python benchmarks/macro/mor_writes.py [--rows 2000000] [--repeat 2] [--index SIMPLE|BUCKET] [--out FOLDER]
        [--clock processor: goals by processor time, on a machine that does other work too]
    python benchmarks/macro/mor_writes.py --scale smoke

The headline workload: 12 columns in 8 partitions; 5 % of the keys are updated and 1 % new, in every file.  Each
contender has a process of its own, with a warm session; the works are interleaved, and each state is checked: rows and
a sum.  A repeat begins with a new table.  Peak memory is that of the contender's process and those below it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import engines
import workload
from processes import Worker, processor_seconds, resident, serve
from report import Goal, Measured, goals_table, seconds_table, write

TITLES = {"apache": "Apache Hudi 0.15", "ours-spark": "this, on Spark", "ours": "this, no JVM"}
WORKS = ("bulk_insert", "upsert", "read", "upsert again", "compaction", "read compacted")
LOGS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
}
# (index, work, ours, times as fast as Apache Hudi at least)
GOALS = (
    ("SIMPLE", "upsert", "ours-spark", 4.0),
    ("SIMPLE", "upsert", "ours", 12.0),
    ("BUCKET", "upsert", "ours-spark", 1.5),
    ("BUCKET", "upsert", "ours", 8.0),
    ("BUCKET", "bulk_insert", "ours-spark", 2.0),
    ("BUCKET", "bulk_insert", "ours", 5.0),
    ("SIMPLE", "read", "ours-spark", 1.0),
    ("SIMPLE", "compaction", "ours-spark", 5.0),
    ("SIMPLE", "compaction", "ours", 10.0),
)


def of_index() -> dict[str, str]:
    index = engines.settings["index"]
    if index != "BUCKET":
        return {"hoodie.index.type": index}
    # Its row writer makes two file groups of one bucket.
    return {
        "hoodie.index.type": index,
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.datasource.write.row.writer.enable": "false",
    }


class LogsOnSpark(engines.OursOnSpark):
    options: ClassVar[dict[str, str]] = {**engines.OursOnSpark.options, **LOGS}

    def index(self) -> dict[str, str]:
        return of_index()

    def compaction(self) -> None:
        import hudi_spark

        hudi_spark.compact(self.spark, self.path)


class LogsOfApache(engines.ApacheHudi):
    options: ClassVar[dict[str, str]] = {**engines.ApacheHudi.options, **LOGS}

    def index(self) -> dict[str, str]:
        return of_index()

    def compaction(self) -> None:
        every = "hoodie.compact.inline.max.delta.commits=1"
        for what in ("schedule", "run"):
            self.spark.sql(
                f"CALL run_compaction(op => '{what}', path => '{self.path}', options => '{every}')"
            ).collect()
        if not list(Path(self.path, ".hoodie").glob("*.commit")):
            raise SystemExit("Apache Hudi compacted nothing")


class LogsWithoutJvm(engines.Ours):
    options: ClassVar[dict[str, str]] = {**engines.Ours.options, **LOGS}

    def _create(self, facts: workload.Facts) -> Any:
        import pyarrow.parquet as pq

        from hudi_timeline import HudiTable

        return HudiTable.create(
            self.path, pq.read_schema(facts.base), name="trips", table_type="MERGE_ON_READ",
            record_keys=[workload.KEY], partition_fields=[workload.PARTITION],
            ordering_fields=[workload.ORDERING], options=of_index(),
        )  # fmt: skip

    def _given(self) -> dict[str, str]:
        return {**self.options, **of_index()}

    def compaction(self) -> None:
        self._table().compact()


ENGINES = {"apache": LogsOfApache, "ours-spark": LogsOnSpark, "ours": LogsWithoutJvm}


class Peak:
    """Greatest resident memory of this process and those below it, in bytes, looked at ten times a second."""

    def __init__(self) -> None:
        self.bytes = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, resident(os.getpid()))
            time.sleep(0.1)


def contender(name: str, folder: Path, rows: int, index: str) -> None:
    engines.settings["index"] = index
    facts = workload.make(folder.parent, rows)

    def ready() -> Any:
        engine = ENGINES[name](folder / "warm")
        small = workload.make(
            folder.parent, max(4_000, rows // 10)
        )  # so that files are read in the same ways
        for work in WORKS:
            _do(engine, work, small)
        engine = type(engine)(folder / "measured")
        peak = Peak()

        def answer(request: dict[str, Any]) -> dict[str, Any]:
            if request["work"] == "clear":
                engine.clear()
                return {"peak": peak.bytes}
            peak.bytes = 0
            used, began = processor_seconds(), time.perf_counter()
            found = _do(engine, request["work"], facts)
            seconds, used = time.perf_counter() - began, processor_seconds() - used
            return {"seconds": seconds, "processor": used, "found": found, "peak": peak.bytes}

        return answer

    serve(name, ready)


def _do(engine: Any, work: str, facts: workload.Facts) -> Any:
    if work.startswith("read"):
        return engine.read()
    if work == "compaction":
        return engine.compaction()
    return getattr(engine, work.partition(" ")[0])(facts)


def check(facts: workload.Facts, name: str, work: str, found: Any) -> None:
    """Raise SystemExit where a contender computes the wrong thing."""
    rows, total = facts.after_upsert
    if found[0] != rows or abs(found[1] - total) > 1e-9 * abs(total):
        raise SystemExit(f"{name}, {work}: {found}; right is {rows}, {total}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--index", choices=("SIMPLE", "BUCKET"), default="SIMPLE")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--scale", choices=("smoke", "full"), default="full")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows, repeat = (8_000, 1) if given.scale == "smoke" else (given.rows, given.repeat)
    names = given.engines.split(",")
    measured = Measured(f"mor-writes-{given.index.lower()}")
    seconds: dict[str, dict[str, list[float]]] = {w: {n: [] for n in names} for w in WORKS}
    processor: dict[str, dict[str, list[float]]] = {w: {n: [] for n in names} for w in WORKS}
    peaks: dict[str, int] = {}
    root = Path(tempfile.mkdtemp(prefix="mor-writes-"))
    try:
        facts = workload.make(root, rows)
        workers = {}
        for name in names:
            (root / name).mkdir()
            workers[name] = Worker(
                name, Path(__file__), ["--contender", name, str(root / name), str(rows), given.index],
                root / f"{name}.log",
            )  # fmt: skip
        for _ in range(repeat):
            for work in WORKS:
                for name, worker in workers.items():
                    answer = worker.ask(work=work)
                    seconds[work][name].append(answer["seconds"])
                    processor[work][name].append(answer["processor"])
                    peaks[name] = max(peaks.get(name, 0), answer["peak"])
                    if work.startswith("read"):
                        check(facts, name, work, answer["found"])
            for worker in workers.values():
                worker.ask(work="clear")
        for worker in workers.values():
            worker.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    for work in WORKS:
        measured.add(work, f"{work}: {rows:,} rows, index {given.index}", seconds[work])
    if given.clock == "processor":
        measured.processor = processor
    measured.more["peak_bytes"] = peaks
    goals = [Goal(w, o, "apache", f) for i, w, o, f in GOALS if i == given.index]
    memory = "| peak memory, MB |" + "".join(f" {TITLES[n]} |" for n in names)
    memory += "\n|---|" + "---:|" * len(names) + "\n| process and below |"
    memory += "".join(f" {peaks[n] / 1e6:,.0f} |" for n in names)
    tables = [seconds_table(measured, TITLES), goals_table(measured, TITLES, goals), memory]
    write(measured, tables, given.out)
    print(json.dumps(peaks))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--contender"]:
        name, folder, rows, index = sys.argv[2:]
        Path(folder, "warm").mkdir(parents=True, exist_ok=True)
        Path(folder, "measured").mkdir(parents=True, exist_ok=True)
        contender(name, Path(folder), int(rows), index)
    else:
        main()
