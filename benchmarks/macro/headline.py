"""The headline table: this project beside plain Parquet, Delta and Apache Hudi on Spark, and without a JVM.

    python benchmarks/macro/headline.py [--rows 2000000] [--engines plain,apache,ours-spark,...] [--repeat 3]
    python benchmarks/macro/headline.py --scale smoke
    ... [--index BLOOM|GLOBAL_SIMPLE|GLOBAL_BLOOM|SIMPLE] [--columns 100] [--store s3]

Every engine runs in its own process with a warm session; the works are interleaved (one work by each engine, then
the next), and the median of the repeats counts.  Each state is checked: rows and a sum.  Seconds are of this
machine and this run; what counts are the ratios.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import workload

HERE = Path(__file__).resolve().parent
ALL = ("plain", "delta", "apache", "apache-defaults", "ours-spark", "ours", "delta-rs", "hudi-rs", "floor")
INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")
# Those that write to S3 with what `pip install` brings.
ON_S3 = ("ours-spark", "ours", "delta-rs")
WORKS = ("bulk_insert", "insert", "upsert", "delete", "read")
TITLES = {
    "plain": "plain Parquet on Spark",
    "delta": "Delta 3.3",
    "apache": "Apache Hudi 0.15, zstd",
    "apache-defaults": "Apache Hudi 0.15, its defaults",
    "ours-spark": "this, on Spark",
    "ours": "this, no JVM",
    "delta-rs": "delta-rs",
    "hudi-rs": "hudi-rs",
    "floor": "pyarrow alone",
}
# (work, ours, other, how many times as fast at least; below 1: how many times as slow at most)
GOALS = (
    ("bulk_insert", "ours-spark", "plain", 1 / 1.25),
    ("bulk_insert", "ours-spark", "apache", 1.8),
    ("bulk_insert", "ours", "apache", 4.0),
    ("bulk_insert", "ours", "delta-rs", 1 / 1.25),
    ("insert", "ours-spark", "apache", 2.0),
    ("insert", "ours", "apache", 5.0),
    ("upsert", "ours-spark", "apache", 6.0),
    ("upsert", "ours-spark", "delta", 2.0),
    ("upsert", "ours-spark", "plain", 1.0),
    ("upsert", "ours", "apache", 12.0),
    ("upsert", "ours", "delta-rs", 1.0),
    ("delete", "ours-spark", "apache", 6.0),
    ("delete", "ours", "apache", 12.0),
    ("read", "ours-spark", "plain", 1 / 1.1),
    ("read", "ours", "floor", 1 / 1.1),
    ("read", "ours", "hudi-rs", 1.0),
)


class Worker:
    """An engine's process."""

    def __init__(
        self,
        name: str,
        folder: Path,
        rows: int,
        settings: dict[str, Any],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.name = name
        self.folder = folder
        self.log = open(folder / "log.txt", "w")  # noqa: SIM115 - closed in stop
        command = [
            sys.executable,
            str(HERE / "engines.py"),
            name,
            str(folder),
            str(rows),
            json.dumps(settings),
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.log.flush()
            raise SystemExit(f"{self.name} died:\n{(self.folder / 'log.txt').read_text()[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, work: str, table: str | None, files: list[str] | None) -> dict[str, Any]:
        """One work; `table` and `files` are what this project without a JVM has, for those who read that."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"work": work, "table": table, "files": files}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def stop(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:  # all is measured
            self.process.kill()
            self.process.wait(timeout=60)
        self.log.close()


def check(facts: workload.Facts, engine: str, work: str, found: Any) -> None:
    """An engine that computes the wrong thing is no competitor."""
    rows, total = found
    wanted = {
        "bulk_insert": facts.after_insert, "insert": facts.after_insert, "upsert": facts.after_upsert,
    }.get(work, (facts.after_delete, None))  # fmt: skip
    if rows != wanted[0] or (wanted[1] is not None and not math.isclose(total, wanted[1], rel_tol=1e-9)):
        raise SystemExit(f"{engine} after {work}: {rows:,} rows, sum {total}; right is {wanted}")


def measure(
    facts: workload.Facts, names: list[str], folder: Path, repeat: int, settings: dict[str, Any]
) -> tuple[dict[str, dict[str, list[float]]], dict[str, int]]:
    """Seconds by engine and work, and the bytes of each engine's files after the first load."""
    from engines import ENGINES

    workers = {}
    for name in names:
        (folder / name).mkdir()
        workers[name] = Worker(name, folder / name, facts.rows, settings)
    seconds: dict[str, dict[str, list[float]]] = {n: {} for n in names}
    sizes: dict[str, int] = {}
    try:
        for _ in range(repeat):
            # The state that `upsert` finds is the one of the last load, so loads come first.
            for work in ("bulk_insert", "insert", "upsert", "delete", "read"):
                shared = (
                    _newest_files(folder / "ours" / "table")
                    if work == "read" and "ours" in names and not settings.get("s3")
                    else None
                )
                for name, worker in workers.items():
                    if work not in ENGINES[name].works:
                        continue
                    answer = worker.run(work, str(folder / "ours" / "table") if shared else None, shared)
                    check(facts, name, work, answer["found"])
                    seconds[name].setdefault(work, []).append(answer["seconds"])
                    sizes.setdefault(name, answer["bytes"])
                    print(f"  {name:16} {work:12} {answer['seconds']:8.2f} s", file=sys.stderr, flush=True)
    finally:
        for worker in workers.values():
            worker.stop()
    return seconds, sizes


def _newest_files(table: Path) -> list[str]:
    """The base files of a table's newest state."""
    from hudi_timeline import HudiTable

    return [str(table / path) for path in HudiTable.open(str(table)).inspect.files()["path"].to_pylist()]


def report(
    seconds: dict[str, dict[str, list[float]]], sizes: dict[str, int], rows: int, settings: dict[str, Any]
) -> str:
    """The tables of seconds and of ratios, as Markdown."""
    names = [n for n in ALL if n in seconds]
    median = {n: {w: statistics.median(s) for w, s in of.items()} for n, of in seconds.items()}
    repeats = max(len(times) for of in seconds.values() for times in of.values())
    lines = [
        f"{rows:,} rows of {settings['columns']} columns in 8 partitions, zstd level 3, "
        f"{'S3 (a local server)' if settings.get('s3') else 'local disk'}, "
        f"index {settings.get('index') or 'as each writer chooses'}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}; seconds, median of {repeats}:",
        "",
    ]
    lines.append("| work | " + " | ".join(TITLES[n] for n in names) + " |")
    lines.append("|---" * (len(names) + 1) + "|")
    for work in WORKS:
        cells = [f"{median[n][work]:.2f}" if work in median[n] else "-" for n in names]
        lines.append(f"| {work} | " + " | ".join(cells) + " |")
    cells = [f"{sizes[n] / 1e6:.0f}" if sizes.get(n) else "-" for n in names]
    lines.append("| MB after the load | " + " | ".join(cells) + " |")
    lines += ["", "| goal | ratio | |", "|---|---:|---|"]
    for work, ours, other, factor in GOALS:
        if work not in median.get(ours, {}) or work not in median.get(other, {}):
            continue
        ratio = median[other][work] / median[ours][work]
        if factor >= 1:
            goal = f"{work}, {TITLES[ours]}: at least {factor:g} x as fast as {TITLES[other]}"
        else:
            goal = f"{work}, {TITLES[ours]}: at most {1 / factor:.4g} x the time of {TITLES[other]}"
        verdict = "held" if ratio >= factor else f"missed: {factor / ratio:.2f} x too slow"
        lines.append(f"| {goal} | {ratio:.2f} x as fast | {verdict} |")
    return "\n".join(lines)


def versions() -> dict[str, str]:
    """Of what is compared."""
    names = ("pyspark", "pyarrow", "deltalake", "hudi", "hudi-timeline", "hudi-spark")
    out = {"python": platform.python_version()}
    for name in names:
        try:
            out[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # not taking part, or run from a source tree
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--engines", default=None, help=f"of {','.join(ALL)}; default: all that can")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scale", choices=("full", "smoke"), default="full", help="smoke: 40,000 rows, once")
    parser.add_argument(
        "--out", type=Path, default=None,
        help="write the seconds (.json) and the tables (.md) to this folder; default at full scale: benchmarks/results",
    )  # fmt: skip
    parser.add_argument(
        "--index", choices=INDEXES, default=None, help="of Hudi tables; default: the writer's"
    )
    parser.add_argument("--columns", type=int, default=workload.COLUMNS)
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--name", default="headline", help="of the files in the folder of results")
    given = parser.parse_args()
    rows, repeat = (40_000, 1) if given.scale == "smoke" else (given.rows, given.repeat)
    if given.out is None and given.scale == "full":
        given.out = HERE.parent / "results"
    if given.engines is None:
        given.engines = ",".join(ALL if given.store == "local" else ON_S3)
    names = [n for n in ALL if n in given.engines.split(",")]
    unknown = set(given.engines.split(",")) - set(ALL)
    if unknown:
        parser.error(f"unknown engines: {', '.join(sorted(unknown))}")
    if "hudi-rs" in names and "ours" not in names:
        parser.error("hudi-rs reads the table of ours: name both")
    settings: dict[str, Any] = {"index": given.index, "columns": given.columns}
    server = None
    if given.store == "s3":
        if set(names) - set(ON_S3):
            parser.error(f"on S3 without further jars: {', '.join(ON_S3)}")
        sys.path.insert(0, str(HERE.parents[1] / "tools"))
        from s3_server import S3Server

        server = S3Server()
        settings["s3"] = {
            "bucket": server.new_bucket(), "storage_options": server.storage_options,
            "hadoop_options": server.hadoop_options,
        }  # fmt: skip
    folder = Path(tempfile.mkdtemp(prefix="hudi-bench-"))
    try:
        facts = workload.make(folder / "data", rows, columns=given.columns)
        seconds, sizes = measure(facts, names, folder, repeat, settings)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if server is not None:
            server.stop()
    text = report(seconds, sizes, rows, settings)
    print(text)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        settings.pop("s3", None)
        machine = {
            "settings": {**settings, "store": given.store},
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "versions": versions(),
        }
        found = {"rows": rows, "seconds": seconds, "bytes": sizes, **machine}
        (given.out / f"{given.name}.json").write_text(json.dumps(found, indent=1) + "\n")
        (given.out / f"{given.name}.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
