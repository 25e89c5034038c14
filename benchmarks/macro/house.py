"""Two checkouts of this project beside each other: what importing, opening, planning, reading and writing cost.

    python benchmarks/macro/house.py --before CHECKOUT [--after CHECKOUT] [--repeat 7] [--out FOLDER]
    python benchmarks/macro/house.py --before CHECKOUT --scale smoke

Each checkout has its compiled modules beside its sources (`python setup.py build_ext --inplace` in hudi-format and
hudi-index), and is measured with its own `PYTHONPATH` by the code below, which uses public names only.  The runs are
interleaved, and the checkout that begins changes from one to the next; medians count.  Both find the same tables, of
which the files of the timeline are written here.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
PACKAGES = ("hudi-format", "hudi-index", "hudi-timeline", "hudi-spark")
IMPORTS = {
    "import hudi_format": "import hudi_format",
    "import hudi_index": "import hudi_index",
    "import hudi_timeline": "import hudi_timeline",
    "import hudi_spark": "import hudi_spark",
    "from hudi_timeline import HudiTable": "from hudi_timeline import HudiTable",
    "hudi --help": "from hudi_timeline.cli.main import main; main()",
}
FLOOR = "import pyarrow alone"
WORKS = ("bulk_insert", "insert", "upsert", "delete", "read")
NAMES = ("before", "after")
SCHEMA = {
    "type": "record", "name": "r",
    "fields": [{"name": n, "type": ["null", "string"], "default": None} for n in ("id", "p")],
}  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        commits: of the table of many commits, each of which writes three files.
        files: of the table of many files, 50 in each partition.
        rows: of the headline's table and of those whose memory is measured.
    """

    commits: int
    files: int
    rows: int
    memory_rows: int
    repeat: int


SCALES = {
    "full": Scale(commits=1_000, files=10_000, rows=200_000, memory_rows=1_500_000, repeat=7),
    "smoke": Scale(commits=20, files=200, rows=2_000, memory_rows=5_000, repeat=1),
}


@dataclass
class Found:
    """Numbers by row of a table and checkout."""

    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    bytes: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, kind: str, row: str, name: str, value: float) -> None:
        table: dict[str, dict[str, list[float]]] = getattr(self, kind)
        table.setdefault(row, {}).setdefault(name, []).append(value)


# --- what each checkout does, in a process of its own ----------------------------------------------------


def _serve() -> None:
    """Open and plan again and again in one process."""
    from processes import serve

    def make() -> Callable[[dict[str, Any]], dict[str, Any]]:
        from hudi_timeline import HudiTable

        def answer(request: dict[str, Any]) -> dict[str, Any]:
            began = time.perf_counter()
            table = HudiTable.open(request["uri"])
            if request["filter"] is None and not request["whole"]:
                return {"seconds": time.perf_counter() - began, "found": table.name}
            files = table.read(filter=request["filter"]).plan.files
            return {"seconds": time.perf_counter() - began, "found": files.num_rows}

        return answer

    serve("house", make)


def _peak(work: str, uri: str, changes: str) -> None:
    """Bytes at the most above what the process held after its imports, of one read or upsert."""
    import pyarrow.parquet as pq
    from memory import Watch

    from hudi_timeline import HudiTable

    given = pq.read_table(changes) if work == "upsert" else None
    watch = Watch()
    began = time.perf_counter()
    table = HudiTable.open(uri)
    if given is not None:
        table.upsert(given)
        found = given.num_rows
    else:
        found = sum(batch.num_rows for batch in table.read(meta_columns=True).to_batches())
    seconds = time.perf_counter() - began
    print(json.dumps({**watch.stop(), "found": found, "seconds": seconds}))


def _make(target: str, rows: str) -> None:
    """A table of the headline's rows, for `_peak`."""
    import pyarrow.parquet as pq

    from hudi_timeline import HudiTable

    names = {"record_keys": ["uuid"], "partition_fields": ["city"], "ordering_fields": ["ts"]}
    HudiTable.create(target, pq.read_schema(rows), name="trips", **names).bulk_insert(pq.read_table(rows))


# --- tables ----------------------------------------------------------------------------------------------


def _file(number: int, instant: str) -> str:
    return f"{number:08d}-0000-4000-8000-000000000000-0_0-1-2_{instant}.parquet"


def _commit(folder: Path, instant: str, written: Mapping[str, list[int]], *, files: bool) -> None:
    """One completed commit; `written` has numbers of file groups by partition."""
    stats: dict[str, list[dict[str, Any]]] = {}
    for partition, numbers in written.items():
        for number in numbers:
            path = f"{partition}/{_file(number, instant)}"
            stat = {"fileId": path.split("/")[1].partition("_")[0], "path": path, "prevCommit": "null",
                    "numWrites": 10, "partitionPath": partition, "fileSizeInBytes": 4}  # fmt: skip
            stats.setdefault(partition, []).append(stat)
            if files:
                (folder / path).write_bytes(b"PAR1")
    metadata = {"partitionToWriteStats": stats, "compacted": False,
                "extraMetadata": {"schema": json.dumps(SCHEMA)}, "operationType": "UPSERT"}  # fmt: skip
    for name, text in (("commit.requested", ""), ("inflight", ""), ("commit", json.dumps(metadata))):
        (folder / ".hoodie" / f"{instant}.{name}").write_text(text)


def _table(folder: Path, partitions: int) -> list[str]:
    names = [f"p{n:04d}" for n in range(partitions)]
    (folder / ".hoodie").mkdir(parents=True)
    properties = {
        "hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1", "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "p", "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.datasource.write.hive_style_partitioning": "false", "hoodie.archivelog.folder": "archived",
    }  # fmt: skip
    text = "".join(f"{k}={v}\n" for k, v in properties.items())
    (folder / ".hoodie" / "hoodie.properties").write_text(text)
    for name in names:
        (folder / name).mkdir()
        (folder / name / ".hoodie_partition_metadata").write_text("commitTime=1\npartitionDepth=1\n")
    return names


def many_commits(folder: Path, commits: int, kept: int = 10) -> Path:
    """Each commit writes a new version of the one file in each of three partitions; the last versions are there."""
    names = _table(folder, 3)
    for n in range(commits):
        written = {name: [i] for i, name in enumerate(names)}
        _commit(folder, f"20260101{n:09d}", written, files=n >= commits - kept)
    return folder


def many_files(folder: Path, files: int, each: int = 50, commits: int = 20) -> Path:
    """Partitions of 50 files, written by 20 commits."""
    names = _table(folder, files // each)
    for n in range(commits):
        written = {name: list(range(n, each, commits)) for name in names}
        _commit(folder, f"20260101{n:09d}", written, files=True)
    return folder


# --- measuring -------------------------------------------------------------------------------------------


class Checkout:
    """A tree of sources with its compiled modules."""

    def __init__(self, name: str, root: Path, folder: Path) -> None:
        self.name, self.root = name, root
        sources = [root / "packages" / p / "src" for p in PACKAGES]
        if not list(sources[0].rglob("*.so")) and not list(sources[0].rglob("*.pyd")):
            raise SystemExit(f"{root}: compiled modules are missing; build them in its packages")
        self.environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.environment["PYTHONPATH"] = os.pathsep.join(map(str, sources))
        self.environment["PYTHONPYCACHEPREFIX"] = str(folder / f"compiled-{name}")

    def run(self, *arguments: str) -> str:
        """Standard output of Python."""
        done = subprocess.run([sys.executable, *arguments], env=self.environment, text=True,
                              capture_output=True, check=False, cwd=self.root)  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{self.name}: {arguments}\n{done.stderr[-3000:]}")
        return done.stdout

    def seconds(self, code: str) -> float:
        """Of a new process, which finds its modules compiled to byte code as installed packages do."""
        began = time.perf_counter()
        self.run("-c", code)
        return time.perf_counter() - began


def _turns(checkouts: list[Checkout], repeat: int) -> list[Checkout]:
    """Which checkout is measured when: in turn, each as often first as the other."""
    return [c for n in range(repeat) for c in (checkouts if n % 2 == 0 else checkouts[::-1])]


def measure_processes(found: Found, checkouts: list[Checkout], uri: str, repeat: int) -> None:
    """New processes: imports, and a table opened and planned."""
    plan = f"from hudi_timeline import HudiTable; HudiTable.open({uri!r}).read(filter=\"p = 'p0001'\").plan"
    codes = {FLOOR: "import pyarrow", **IMPORTS, "a process that opens and plans one partition": plan}
    codes["hudi --help"] = "import sys; sys.argv = ['hudi', '--help']; " + codes["hudi --help"]
    for row, code in codes.items():
        for checkout in checkouts:
            checkout.seconds(code)
        for checkout in _turns(checkouts, repeat):
            found.add("seconds", row, checkout.name, checkout.seconds(code))


def measure_planning(
    found: Found, checkouts: list[Checkout], commits: Path, files: Path, scale: Scale, folder: Path
) -> None:
    """One warm process for each checkout."""
    from processes import Worker

    of_files = f"{scale.files:,} files in {scale.files // 50} partitions"
    requests = {
        f"HudiTable.open, {scale.commits:,} commits": (commits, None, False, "t"),
        f"open and plan one partition of three, {scale.commits:,} commits": (
            commits,
            "p = 'p0001'",
            False,
            1,
        ),
        f"open and plan one partition, {of_files}": (files, "p = 'p0001'", False, 50),
        f"open and plan all, {of_files}": (files, None, True, scale.files),
    }
    workers = {
        c.name: Worker(c.name, HERE, ["--serve"], folder / f"{c.name}.log", c.environment) for c in checkouts
    }
    try:
        for row, (table, filter, whole, right) in requests.items():
            for n, checkout in enumerate(_turns(checkouts, 1 + 2 * scale.repeat)):
                answer = workers[checkout.name].ask(uri=str(table), filter=filter, whole=whole)
                if answer["found"] != right:
                    raise SystemExit(f"{checkout.name}: {row}: {answer['found']}, right is {right}")
                if n >= len(checkouts):  # the first of each warms up
                    found.add("seconds", row, checkout.name, answer["seconds"])
    finally:
        for worker in workers.values():
            worker.stop()


def measure_memory(found: Found, checkouts: list[Checkout], scale: Scale, folder: Path) -> None:
    """Peaks of new processes, each on a copy of the same table."""
    import workload

    facts = workload.make(folder / "rows", scale.memory_rows)
    table = folder / "memory"
    checkouts[-1].run(str(HERE), "--make", str(table), facts.base)
    for work in ("read", "upsert"):
        row = f"{work} of {scale.memory_rows:,} rows" if work == "read" else "upsert of 6 % of their number"
        for checkout in _turns(checkouts, min(scale.repeat, 3)):
            copy = folder / "copy"
            shutil.copytree(table, copy)
            answer = json.loads(checkout.run(str(HERE), "--peak", work, str(copy), facts.upserts))
            shutil.rmtree(copy)
            if work == "read" and answer["found"] != scale.memory_rows:
                raise SystemExit(f"{checkout.name}: {answer['found']} rows read, not {scale.memory_rows}")
            for kind in ("own", "resident"):
                found.add("bytes", f"{row}, {kind}", checkout.name, answer[kind])


def measure_headline(found: Found, checkouts: list[Checkout], scale: Scale, folder: Path) -> None:
    """The headline's works without a JVM, one warm process for each checkout."""
    import headline
    import workload

    facts = workload.make(folder / "rows", scale.rows)
    workers = {}
    for checkout in checkouts:
        (folder / checkout.name).mkdir()
        workers[checkout.name] = headline.Worker(
            "ours", folder / checkout.name, facts.rows, {"columns": workload.COLUMNS}, checkout.environment
        )
    try:
        for turn in range(max(1, scale.repeat - 2)):
            for work in WORKS:
                for checkout in checkouts if turn % 2 == 0 else checkouts[::-1]:
                    answer = workers[checkout.name].run(work, None, None)
                    headline.check(facts, checkout.name, work, answer["found"])
                    found.add("seconds", f"{work}, {scale.rows:,} rows", checkout.name, answer["seconds"])
    finally:
        for worker in workers.values():
            worker.stop()


def lines_of(root: Path) -> dict[str, int]:
    """Lines of source by package, Python and Cython."""
    out = {}
    for package in PACKAGES:
        paths = [
            p
            for p in (root / "packages" / package / "src").rglob("*.p*")
            if p.suffix in {".py", ".pyx", ".pxd"}
        ]
        out[package] = sum(p.read_bytes().count(b"\n") for p in paths)
    return out


# --- the page --------------------------------------------------------------------------------------------


def table(of: Mapping[str, Mapping[str, list[float]]], unit: str, factor: float) -> list[str]:
    """Medians and least values of both checkouts, and the ratio of the medians."""
    lines = [
        f"| {unit} | before | least | after | least | after / before |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row, values in of.items():
        cells, medians = [], []
        for name in NAMES:
            medians.append(statistics.median(values[name]))
            cells += [f"{factor * medians[-1]:,.1f}", f"{factor * min(values[name]):,.1f}"]
        lines.append(f"| {row} | {' | '.join(cells)} | {medians[1] / medians[0]:.2f} |")
    return lines


def page(found: Found, checkouts: list[Checkout]) -> list[str]:
    """The tables, as Markdown."""
    sizes = {c.name: lines_of(c.root) for c in checkouts}
    lines = ["| lines of source | before | after | after / before |", "|---|---:|---:|---:|"]
    for package in (*PACKAGES, "all"):
        before, after = (sizes[n].get(package, sum(sizes[n].values())) for n in NAMES)
        lines.append(f"| {package} | {before:,} | {after:,} | {after / before:.3f} |")
    commits = {c.name: _revision(c.root) for c in checkouts}
    return [
        f"Before: commit {commits['before']}; after: {commits['after']}. Runs are interleaved.",
        "\n".join(table(found.seconds, "milliseconds", 1e3)),
        "\n".join(table(found.bytes, "MiB at the most, above the imports", 1 / (1 << 20))),
        "\n".join(lines),
    ]


def _revision(root: Path) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        return _serve()
    if sys.argv[1:2] == ["--peak"]:
        return _peak(*sys.argv[2:5])
    if sys.argv[1:2] == ["--make"]:
        return _make(*sys.argv[2:4])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="a checkout with its compiled modules")
    parser.add_argument("--after", type=Path, default=HERE.parents[2], help="another; default: this one")
    parser.add_argument("--repeat", type=int, default=None)
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--out", type=Path, default=None, help="folder for house-before-after.md and .json")
    given = parser.parse_args()
    scale = SCALES[given.scale]
    repeat = given.repeat or scale.repeat
    scale = Scale(scale.commits, scale.files, scale.rows, scale.memory_rows, repeat)
    from report import Measured, write

    with tempfile.TemporaryDirectory(prefix="hudi-bench-") as work:
        folder = Path(work)
        roots = zip(NAMES, (given.before, given.after), strict=True)
        checkouts = [Checkout(name, root.resolve(), folder) for name, root in roots]
        commits = many_commits(folder / "commits", scale.commits)
        files = many_files(folder / "files", scale.files)
        found = Found()
        works: dict[str, Callable[[], None]] = {
            "new processes": lambda: measure_processes(found, checkouts, str(commits), repeat),
            "planning": lambda: measure_planning(found, checkouts, commits, files, scale, folder),
            "headline": lambda: measure_headline(found, checkouts, scale, folder),
            "memory": lambda: measure_memory(found, checkouts, scale, folder),
        }
        for name, work_on in works.items():
            began = time.perf_counter()
            work_on()
            print(f"  {name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    measured = Measured("house-before-after", found.seconds, {}, {"bytes": found.bytes})
    write(measured, page(found, checkouts), given.out)


if __name__ == "__main__":
    main()
