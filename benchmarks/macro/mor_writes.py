"""Merge-on-read writes and compaction beside Apache Hudi 0.15 in one run, on Spark and without a JVM.

    python benchmarks/macro/mor_writes.py [--rows 2000000] [--repeat 2] [--index SIMPLE|BUCKET] [--out FOLDER]
        [--updates 2000000: keys that an upsert updates, in place of 5 % of them]
        [--clock processor: goals by processor time, on a machine that does other work too]
    python benchmarks/macro/mor_writes.py --scale smoke [--updates 8000]

The headline workload: 12 columns in 8 partitions; 5 % of the keys are updated and 1 % new, in every file.  Each
contender has a process of its own, with a warm session; the works are interleaved, and each state is checked: rows and
a sum.  A repeat begins with a new table.  `plain` and `pyarrow` read the base files alone of the tables that this
project has just written, in the same turns: what no reader of these tables can undercut.  Peak memory is that of the
contender's process and those below it, by work; a page that several of them share counts once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import engines
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import workload
from processes import Worker, processor_seconds, resident, serve
from report import Goal, Measured, goals_table, seconds_table, write

TITLES = {
    "apache": "Apache Hudi 0.15",
    "ours-spark": "this, on Spark",
    "ours": "this, no JVM",
    "plain": "Spark, base files alone",
    "pyarrow": "pyarrow, base files alone",
}
# Who reads the files of whom.
READS = {"plain": "ours-spark", "pyarrow": "ours"}
WORKS = ("bulk_insert", "upsert", "read", "upsert again", "compaction", "read compacted")
LOGS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
}
# (index, work, ours, times as fast as Apache Hudi at least)
ALL_UPDATED = (("BUCKET", "upsert", "ours-spark", 3.0),)
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


# Reads of a table with logs beside those of its base files alone, whatever its index.
READ_GOALS = (
    Goal("read", "ours-spark", "plain", 1 / 1.25),
    Goal("read", "ours", "pyarrow", 1 / 1.15),
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


class BaseFilesOnSpark(engines.PlainParquet):
    """Spark's own scan of base files that another contender wrote."""

    shared: ClassVar[list[str]] = []

    def read(self) -> tuple[int, float]:
        from pyspark.sql import functions as F

        rows = self.spark.read.parquet(*self.shared)
        found = rows.agg(F.count("rider"), *(F.sum(c) for c in workload.SUMMED)).collect()[0]
        return found[0], found[1]


class BaseFilesOfPyarrow(engines.Floor):
    """Two base files at a time, each by Arrow's threads."""

    shared: ClassVar[list[str]] = []

    def read(self) -> tuple[int, float]:
        with ThreadPoolExecutor(2) as pool:
            rows = pa.concat_tables(pool.map(lambda p: pq.read_table(p, partitioning=None), self.shared))
        return rows.num_rows, pc.sum(rows["fare"]).as_py()


ENGINES = {
    "apache": LogsOfApache,
    "ours-spark": LogsOnSpark,
    "ours": LogsWithoutJvm,
    "plain": BaseFilesOnSpark,
    "pyarrow": BaseFilesOfPyarrow,
}


def base_files(table: Path) -> list[str]:
    """Those of the newest slices."""
    from hudi_timeline import HudiTable

    paths = HudiTable.open(str(table)).inspect.files()["path"].to_pylist()
    return [str(table / path) for path in paths if path.endswith(".parquet")]


class Peak:
    """Greatest resident memory of this process and those below it, in bytes, looked at ten times a second."""

    def __init__(self) -> None:
        self.bytes = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, resident(os.getpid()))
            time.sleep(0.1)


def contender(name: str, folder: Path, rows: int, index: str, updates: int | None) -> None:
    engines.settings["index"] = index
    facts = workload.make(folder.parent, rows, updates=updates)

    def ready() -> Any:
        engine = ENGINES[name](folder / "warm")
        if name in READS:
            engine.shared[:] = [facts.base]
            for _ in range(2):
                engine.read()
        else:
            # So many that files are read in the same ways.
            warm = max(4_000, rows // 10)
            small = workload.make(folder.parent, warm, updates=None if updates is None else warm)
            for work in WORKS:
                _do(engine, work, small)
        engine = type(engine)(folder / "measured")
        peak = Peak()

        def answer(request: dict[str, Any]) -> dict[str, Any]:
            if request["work"] == "clear":
                engine.clear()
                return {}
            if name in READS:
                engine.shared[:] = request["files"]
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
    """Raise SystemExit where a contender computes the wrong thing; of base files alone, where one is missing."""
    rows, total = facts.after_upsert
    if name in READS and work == "read":
        if not facts.rows <= found[0] <= rows:
            raise SystemExit(f"{name}, {work}: {found}; base files have {facts.rows} to {rows} rows")
        return
    if found[0] != rows or abs(found[1] - total) > 1e-9 * abs(total):
        raise SystemExit(f"{name}, {work}: {found}; right is {rows}, {total}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--index", choices=("SIMPLE", "BUCKET"), default="SIMPLE")
    parser.add_argument(
        "--updates", type=int, default=None, help="keys that an upsert updates; 5 % of the rows"
    )
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--scale", choices=("smoke", "full"), default="full")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows, repeat = (8_000, 1) if given.scale == "smoke" else (given.rows, given.repeat)
    names = [n for n in ENGINES if n in given.engines.split(",")]
    if len(names) != len(given.engines.split(",")) or any(READS[n] not in names for n in names if n in READS):
        parser.error(f"engines are {', '.join(ENGINES)}; {READS} read the files of the other")
    if given.updates is not None and given.updates > rows:
        parser.error(f"there are {rows} keys")
    measured = Measured(f"mor-writes-{given.index.lower()}" + ("-updates" if given.updates else ""))
    seconds: dict[str, dict[str, list[float]]] = {w: {} for w in WORKS}
    processor: dict[str, dict[str, list[float]]] = {w: {} for w in WORKS}
    peaks: dict[str, dict[str, int]] = {w: {} for w in WORKS}
    root = Path(tempfile.mkdtemp(prefix="mor-writes-"))
    try:
        facts = workload.make(root, rows, updates=given.updates)
        workers = {}
        for name in names:
            (root / name).mkdir()
            workers[name] = Worker(
                name, Path(__file__),
                ["--contender", name, str(root / name), str(rows), given.index, str(given.updates or "")],
                root / f"{name}.log",
            )  # fmt: skip
        for _ in range(repeat):
            for work in WORKS:
                for name, worker in workers.items():
                    files = None
                    if name in READS:
                        if not work.startswith("read"):
                            continue
                        files = base_files(root / READS[name] / "measured" / "table")
                    answer = worker.ask(work=work, files=files)
                    seconds[work].setdefault(name, []).append(answer["seconds"])
                    processor[work].setdefault(name, []).append(answer["processor"])
                    peaks[work][name] = max(peaks[work].get(name, 0), answer["peak"])
                    if work.startswith("read"):
                        check(facts, name, work, answer["found"])
                    print(f"  {name:12} {work:14} {answer['seconds']:8.2f} s", file=sys.stderr, flush=True)
            for worker in workers.values():
                worker.ask(work="clear")
        for worker in workers.values():
            worker.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    what = f"{rows:,} rows, index {given.index}"
    what += "" if given.updates is None else f", {given.updates:,} updates"
    for work in WORKS:
        measured.add(work, f"{work}: {what}", seconds[work])
    if given.clock == "processor":
        measured.processor = processor
    measured.more["peak_bytes"] = peaks
    # Those of Apache Hudi are for 5 % of the keys, and one is for all of them.
    chosen = GOALS if given.updates is None else ALL_UPDATED
    goals = [Goal(w, o, "apache", f) for i, w, o, f in chosen if i == given.index]
    goals += READ_GOALS if given.updates is None else ()
    tables = [
        seconds_table(measured, TITLES),
        goals_table(measured, TITLES, goals),
        memory_table(peaks, names),
    ]
    write(measured, tables, given.out)


def memory_table(peaks: dict[str, dict[str, int]], names: list[str]) -> str:
    """A row for each work, and one for the most of all."""
    written = [n for n in names if n not in READS]
    lines = ["| peak memory, MB |" + "".join(f" {TITLES[n]} |" for n in written)]
    lines.append("|---|" + "---:|" * len(written))
    most = {n: max(of[n] for of in peaks.values()) for n in written}
    for work, of in (*peaks.items(), ("process and below", most)):
        lines.append(f"| {work} |" + "".join(f" {of[n] / 1e6:,.0f} |" for n in written))
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--contender"]:
        name, folder, rows, index, updates = sys.argv[2:]
        Path(folder, "warm").mkdir(parents=True, exist_ok=True)
        Path(folder, "measured").mkdir(parents=True, exist_ok=True)
        contender(name, Path(folder), int(rows), index, int(updates) if updates else None)
    else:
        main()
