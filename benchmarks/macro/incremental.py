"""The rows of one commit of 100, on a table of 1,000 files: an incremental query beside a snapshot with a filter.

    python benchmarks/macro/incremental.py [--engines ours,ours-spark,apache] [--table FOLDER] [--repeat 5]
    python benchmarks/macro/incremental.py --scale smoke

Each commit wrote ten files of its own.  From plain Python the rows end as Arrow columns in memory, on Spark in its
`noop` sink.  Every contender runs in its own process, warmed up on the same table; works are interleaved and the
median counts.  The rows of each answer are counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import workload
from processes import Worker, serve
from report import Goal, Measured, goals_table, seconds_table, write
from workload import KEY, ORDERING, PARTITION

from hudi_timeline import HudiTable

HERE = Path(__file__).resolve()
TITLES = {"ours": "this, no JVM", "ours-spark": "this, on Spark", "apache": "Apache Hudi 0.15, Spark"}
FILES_EACH = 10
ROWS_EACH = 2_000  # of a file
TIME = "_hoodie_commit_time"
WORKS = ("incremental", "filtered")
GOALS = (
    Goal("incremental", "ours-spark", "apache", 3.0),
    Goal("incremental", "ours", "apache", 3.0),
)


def table(path: Path, commits: int) -> None:
    """The table, unless it is there."""
    if (path / ".hoodie" / "hoodie.properties").is_file():
        return
    rng = np.random.default_rng(3)
    per_commit = FILES_EACH * ROWS_EACH
    made = None
    for n in range(commits):
        rows = workload._rows(rng, np.arange(n * per_commit, (n + 1) * per_commit))
        # One partition a commit, so that each commit has as many files as it should.
        city = workload.CITIES[n % len(workload.CITIES)]
        place = rows.schema.get_field_index(PARTITION)
        rows = rows.set_column(place, rows.schema.field(place), pa.array([city] * rows.num_rows))
        if made is None:
            made = HudiTable.create(
                str(path), rows.schema, name="trips", record_keys=[KEY], partition_fields=[PARTITION],
                ordering_fields=[ORDERING],
            )  # fmt: skip
        made.insert(
            rows,
            options={
                "hoodie.parquet.small.file.limit": "0",
                "hoodie.copyonwrite.insert.auto.split": "false",
                "hoodie.copyonwrite.insert.split.size": str(ROWS_EACH),
                "hoodie.clean.automatic": "false",
                "hoodie.archive.automatic": "false",
            },
        )


def bounds(path: str) -> tuple[str, str]:
    """(begin, end] of the commit in the middle."""
    times = [i.time for i in HudiTable.open(path).timeline.completed_writes()]
    return times[len(times) // 2 - 1], times[len(times) // 2]


def contender(name: str, path: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What answers both works; it is warm."""
    begin, end = bounds(path)
    condition = f"{TIME} > '{begin}' and {TIME} <= '{end}'"
    if name == "ours":

        def rows(work: str) -> int:
            read = HudiTable.open(path)
            scan = (
                read.read_incremental(begin, end, meta_columns=True)
                if work == "incremental"
                else read.read(filter=condition, meta_columns=True)
            )
            return int(scan.to_arrow().num_rows)
    else:
        import engines

        engine = {"ours-spark": engines.OursOnSpark, "apache": engines.ApacheHudi}[name](Path(path).parent)
        asked = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": begin,
            "hoodie.datasource.read.end.instanttime": end,
        }

        def frame(work: str) -> Any:
            reader = engine.spark.read.format("hudi")
            if work == "incremental":
                return reader.options(**asked).load(path)
            return reader.load(path).where(condition)

        def rows(work: str) -> int:
            frame(work).write.format("noop").mode("overwrite").save()
            return -1

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        found = rows(request["work"])
        if request.get("check"):
            found = found if found >= 0 else frame(request["work"]).count()
            if found != FILES_EACH * ROWS_EACH:
                raise SystemExit(f"{name}: {found} rows, right is {FILES_EACH * ROWS_EACH}")
        return {}

    for work in WORKS:
        answer({"work": work, "check": True})
        answer({"work": work})
    return answer


def measure(path: str, names: list[str], repeat: int, scratch: Path) -> dict[str, dict[str, list[float]]]:
    """Seconds by work and contender."""
    workers: dict[str, Worker] = {}
    seconds: dict[str, dict[str, list[float]]] = {w: {n: [] for n in names} for w in WORKS}
    try:
        for name in names:
            workers[name] = Worker(name, HERE, ["--serve", name, path], scratch / f"{name}.txt")
        for _ in range(repeat):
            for work in WORKS:
                for name, worker in workers.items():
                    seconds[work][name].append(worker.ask(work=work)["seconds"])
    finally:
        for worker in workers.values():
            worker.stop()
    return seconds


def said(measured: Measured, names: list[str]) -> str:
    """The incremental query beside the snapshot of the same contender."""
    lines = ["| goal | found | |", "|---|---:|---|"]
    for name in names:
        fast, slow = measured.median("incremental", name), measured.median("filtered", name)
        if fast and slow:
            verdict = "" if name == "apache" else "held" if slow >= 10 * fast else "missed"
            goal = "" if name == "apache" else ": at least 10 x as fast as its own filtered snapshot"
            lines.append(f"| {TITLES[name]}{goal} | {slow / fast:.1f} x as fast | {verdict} |")
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        name, path = sys.argv[2:]
        serve(name, lambda: contender(name, path))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--engines", default=",".join(TITLES))
    parser.add_argument("--table", type=Path, default=None, help="where the table is kept; default: nowhere")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scale", choices=("full", "smoke"), default="full", help="smoke: 4 commits, once")
    parser.add_argument("--out", type=Path, default=None, help="folder for incremental.md and .json")
    given = parser.parse_args()
    names = [n for n in TITLES if n in given.engines.split(",")]
    commits, repeat = (4, 1) if given.scale == "smoke" else (100, given.repeat)
    measured = Measured("incremental")
    with tempfile.TemporaryDirectory() as scratch:
        path = (given.table or Path(scratch)) / f"trips-{commits}"
        table(path, commits)
        note = f"{commits * FILES_EACH:,} files of {ROWS_EACH:,} rows in {commits} commits, one of which is asked for"
        found = measure(str(path), names, repeat, Path(scratch))
        for work in WORKS:
            what = "incremental query" if work == "incremental" else f"snapshot filtered by {TIME}"
            measured.add(work, f"{work}: {what}; {note}; median of {repeat}, least in brackets", found[work])
    text = [seconds_table(measured, TITLES), said(measured, names), goals_table(measured, TITLES, GOALS)]
    write(measured, text, given.out)


if __name__ == "__main__":
    main()
