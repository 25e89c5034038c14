"""Snapshots of merge-on-read tables that Apache Hudi 0.15.0 made, all columns, beside who else reads them.

    python benchmarks/macro/merge_on_read.py [--kinds base-heavy,log-heavy] [--engines ours,hudi-rs,pyarrow,...]
                                             [--tables FOLDER] [--codec gzip] [--repeat 5]
    python benchmarks/macro/merge_on_read.py --scale smoke

From plain Python the rows end as Arrow columns in memory, on Spark in its `noop` sink.  Every contender runs in
its own process, warmed up on the same table; works are interleaved and the median counts.  What is read is
compared with what was written.  Tables are kept in the folder given.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mor_tables
import pyarrow as pa
import pyarrow.parquet as pq
from mor_tables import Made
from processes import Worker, serve
from report import Goal, Measured, goals_table, seconds_table, write

HERE = Path(__file__).resolve()
TITLES = {
    "ours": "this, no JVM",
    "hudi-rs": "hudi-rs",
    "pyarrow": "pyarrow, base files alone",
    "ours-spark": "this, on Spark",
    "apache": "Apache Hudi 0.15, Spark",
    "plain": "Spark, base files alone",
}
SIZES = {"base-heavy": 2_000_000, "log-heavy": 1_000_000}
GOALS = (
    Goal("base-heavy", "ours", "pyarrow", 1 / 1.15),
    Goal("base-heavy", "ours", "hudi-rs", 1.0),
    Goal("base-heavy", "ours", "apache", 3.0),
    Goal("log-heavy", "ours", "hudi-rs", 2.0),
    Goal("log-heavy", "ours", "apache", 3.0),
    Goal("base-heavy", "ours-spark", "apache", 1.0),
    Goal("base-heavy", "ours-spark", "plain", 1 / 1.25),
)


def _ours(made: Made) -> Callable[[], pa.Table]:
    from hudi_timeline import HudiTable

    return lambda: HudiTable.open(made.path).read(meta_columns=True).to_arrow()


def _hudi_rs(made: Made) -> Callable[[], pa.Table]:
    from hudi import HudiTableBuilder

    return lambda: pa.Table.from_batches(HudiTableBuilder.from_base_uri(made.path).build().read())


def _pyarrow(made: Made) -> Callable[[], pa.Table]:
    """Two files at a time, each by Arrow's threads: the fastest way here."""
    paths = made.base_files()

    def read() -> pa.Table:
        with ThreadPoolExecutor(2) as pool:
            return pa.concat_tables(pool.map(lambda p: pq.read_table(p, partitioning=None), paths))

    return read


def _spark(name: str, made: Made) -> Callable[[], Any]:
    import engines

    kinds = {"ours-spark": engines.OursOnSpark, "apache": engines.ApacheHudi, "plain": engines.PlainParquet}
    engine = kinds[name](Path(made.path).parent)

    def frame() -> Any:
        if name == "plain":
            return engine.spark.read.parquet(*made.base_files())
        return engine.spark.read.format("hudi").load(made.path)

    return frame


def contender(name: str, made: Made) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What answers `read` and `check`; it is warm."""
    if name in ("ours", "hudi-rs", "pyarrow"):
        read = {"ours": _ours, "hudi-rs": _hudi_rs, "pyarrow": _pyarrow}[name](made)

        def answer(request: dict[str, Any]) -> dict[str, Any]:
            rows = read()
            if request["check"] and name != "pyarrow":
                mor_tables.check(made, rows, name)
            return {}
    else:
        frame = _spark(name, made)

        def answer(request: dict[str, Any]) -> dict[str, Any]:
            if not request["check"]:
                frame().write.format("noop").mode("overwrite").save()
            elif name != "plain":
                columns = [mor_tables.KEY, mor_tables.ORDERING, "fare"]
                with tempfile.TemporaryDirectory() as scratch:
                    frame().select(*columns).write.mode("overwrite").parquet(f"{scratch}/rows")
                    mor_tables.check(made, pq.read_table(f"{scratch}/rows"), name)
            return {}

    answer({"check": True})
    for _ in range(2):
        answer({"check": False})
    return answer


def measure(made: Made, names: list[str], repeat: int, scratch: Path) -> dict[str, list[float]]:
    """Seconds of each contender."""
    workers = {}
    seconds: dict[str, list[float]] = {n: [] for n in names}
    try:
        for name in names:
            arguments = ["--serve", name, made.kind, str(Path(made.path).parent), str(made.rows), made.codec]
            workers[name] = Worker(name, HERE, arguments, scratch / f"{made.kind}-{name}.txt")
        for _ in range(repeat):
            for name, worker in workers.items():
                seconds[name].append(worker.ask(check=False)["seconds"])
                print(f"  {made.kind:12} {name:12} {seconds[name][-1]:8.2f} s", file=sys.stderr, flush=True)
    finally:
        for worker in workers.values():
            worker.stop()
    return seconds


def describe(made: Made, engines: dict[str, list[float]]) -> str:
    base = sum(Path(p).stat().st_size for p in made.base_files()) / 1e6
    logs = sum(Path(p).stat().st_size for p in made.log_files()) / 1e6
    times = next(iter(engines.values()))
    return (
        f"{made.kind}: {made.rows:,} base rows of 12 columns and the meta columns in {len(made.base_files())} files "
        f"({base:.0f} MB, {made.codec}), {made.log_records:,} records in {len(made.log_files())} Avro log files "
        f"({logs:.0f} MB); median of {len(times)}, least in brackets"
    )


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        name, kind, folder, rows, codec = sys.argv[2:]
        serve(name, lambda: contender(name, mor_tables.table(Path(folder), kind, int(rows), codec)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kinds", default=",".join(SIZES))
    parser.add_argument("--engines", default=",".join(TITLES))
    parser.add_argument("--tables", type=Path, default=None, help="where tables are kept; default: nowhere")
    parser.add_argument("--codec", default="gzip", help="of base files; gzip is Apache Hudi's default")
    parser.add_argument("--rows", type=int, default=None, help="base rows, in place of the kind's own number")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scale", choices=("full", "smoke"), default="full", help="smoke: 10,000 rows, once")
    parser.add_argument("--out", type=Path, default=None, help="folder for merge-on-read.md and .json")
    given = parser.parse_args()
    names = [n for n in TITLES if n in given.engines.split(",")]
    kinds = given.kinds.split(",")
    if len(names) != len(given.engines.split(",")) or set(kinds) - set(SIZES):
        parser.error(f"engines are {', '.join(TITLES)}; kinds {', '.join(SIZES)}")
    repeat = given.repeat
    if given.scale == "smoke":
        given.rows, repeat = given.rows or 10_000, 1
    measured = Measured("merge-on-read")
    with tempfile.TemporaryDirectory() as scratch:
        for kind in kinds:
            folder = given.tables or Path(scratch)
            made = mor_tables.table(folder, kind, given.rows or SIZES[kind], given.codec)
            seconds = measure(made, names, repeat, Path(scratch))
            measured.add(kind, describe(made, seconds), seconds)
    text = [seconds_table(measured, TITLES), goals_table(measured, TITLES, GOALS)]
    write(measured, text, given.out)


if __name__ == "__main__":
    main()
