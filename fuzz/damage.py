"""Cut and changed golden files, accounted for file by file: an error, equal rows, or what no checksum covers.

    python fuzz/damage.py --changes 200 --jobs 2                                  ten minutes
    python fuzz/damage.py --changes 10000 --jobs 2 --name damage-10000            the nightly form: an hour or two
    python fuzz/damage.py --changes 10000 --name damage-10000 --minutes 20 --resume     a part of it at a time

Writes fuzz/results/<name>.md, and <name>.csv with a line for each file.  Files are taken in a random but fixed order,
so that those of a part are a sample; the table says how many of all they are.  Exit code 1 where an outcome is none
of those.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
for _path in (HERE, ROOT / "tests" / "golden", ROOT / "packages" / "hudi-format" / "tests" / "support"):
    sys.path.insert(0, str(_path))

KINDS = {"log": "log files", "hfile": "HFiles", "footer": "footers of base files"}
RESULTS = HERE / "results"
OUTCOMES = ("error", "equal", "one record", "schema", "parquet", "entry", "column", "other")
MOST_FOOTER_CHANGES = 1000  # the same writers make them; a footer has a few hundred bytes that matter


class Job(NamedTuple):
    kind: str
    name: str
    data: bytes
    changes: int
    seed: int


class Found(NamedTuple):
    """Outcomes of cuts and of changes of one file."""

    kind: str
    name: str
    size: int
    cut: Counter[str]
    after: Counter[str]


def inputs(kind: str, every: int) -> Iterator[tuple[str, bytes]]:
    """Golden files of a kind: in tables of all versions, and the HFiles beside them.

    One of so many is taken by its name, so that it is the same one when tables are added.
    """
    from golden_tables import ROOT as GOLDEN
    from targets.golden import files

    if kind == "hfile":
        yield from ((f"hfile/{p.name}", p.read_bytes()) for p in sorted((GOLDEN / "hfile").glob("*.hfile")))
    found = []
    for name, data in files():
        last = name.rpartition("/")[2]
        is_log = last.startswith(".") and ".log." in last
        if data and (
            (kind == "log" and is_log)
            or (kind == "hfile" and last.endswith(".hfile"))
            or (kind == "footer" and last.endswith(".parquet") and not last.startswith("."))
        ):
            found.append((name, data))
    yield from ((n, d) for n, d in found if zlib.crc32(n.encode()) % every == 0)


def sweep_one(job: Job) -> Found:
    if job.kind == "log":
        from log_sweep import sweep

        cut, after = sweep(
            job.data, cdc=job.name.endswith(".cdc"), random_cuts=500, changes=job.changes, seed=job.seed
        )
    else:
        from sweeps import sweep_footer, sweep_hfile

        how = sweep_hfile if job.kind == "hfile" else sweep_footer
        cut, after = how(job.data, random_cuts=500, changes=job.changes, seed=job.seed)
    return Found(job.kind, job.name, len(job.data), cut, after)


def sweep_all(jobs: list[Job], workers: int, seconds: float) -> Iterator[Found | tuple[Job, BaseException]]:
    """What became of the files, as it is known; after so many seconds no other file is begun.

    An error that is none of the outcomes comes with its file: it is a finding, and the others go on.
    """
    begun = time.monotonic()
    todo = iter(jobs)
    with ProcessPoolExecutor(workers) as pool:
        running: dict[Future[Found], Job] = {}
        while True:
            while len(running) < 2 * workers and time.monotonic() - begun < seconds:
                job = next(todo, None)
                if job is None:
                    break
                running[pool.submit(sweep_one, job)] = job
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                job, error = running.pop(done), done.exception()
                yield (job, error) if error else done.result()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--changes", type=int, default=200, help="one-byte changes of each file")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="take one of n files")
    parser.add_argument("--footers", type=int, default=10, help="and of base files one of n of these")
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--name", default="damage", help="of the two files of results")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no file after these")
    parser.add_argument(
        "--resume", action="store_true", help="keep the lines of files that have as many changes"
    )
    chosen = parser.parse_args()
    begun = time.monotonic()
    jobs = [
        Job(
            kind,
            name,
            data,
            min(chosen.changes, MOST_FOOTER_CHANGES) if kind == "footer" else chosen.changes,
            number,
        )
        for kind in chosen.only
        for number, (name, data) in enumerate(
            inputs(kind, chosen.every * (chosen.footers if kind == "footer" else 1))
        )
    ]
    lines_file = RESULTS / f"{chosen.name}.csv"
    found = _read(lines_file, jobs) if chosen.resume else []
    known = {f.name for f in found}
    todo = [j for j in jobs if j.name not in known]
    todo.sort(key=lambda j: hashlib.sha256(j.name.encode()).digest())
    RESULTS.mkdir(exist_ok=True)
    failed = []
    kept = begun
    for one in sweep_all(todo, chosen.jobs, chosen.minutes * 60):
        if isinstance(one, Found):
            found.append(one)
        else:
            failed.append(f"{one[0].name} (seed {one[0].seed}): {type(one[1]).__name__}: {one[1]}")
        if time.monotonic() - kept > 60:  # a run that is ended goes on from here with --resume
            kept = time.monotonic()
            _write(lines_file, found)
    _write(lines_file, found)
    lines = _table(found, chosen.changes, Counter((j.kind, j.name.split("/")[0]) for j in jobs))
    (RESULTS / f"{chosen.name}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    bad = [f.name for f in found if f.cut["other"] + f.after["other"] or set(f.cut) - {"error"}]
    print(
        f"{len(found)} of {len(jobs)} files, {time.monotonic() - begun:.0f} s"
        + "".join(f"\nunaccounted for: {b}" for b in bad + failed)
    )
    return 1 if bad or failed else 0


def _write(path: Path, found: list[Found]) -> None:
    found.sort(key=lambda f: (list(KINDS).index(f.kind), f.name))
    with open(path, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(
            ["file", "bytes", *(f"cut: {o}" for o in OUTCOMES), *(f"changed: {o}" for o in OUTCOMES)]
        )
        for f in found:
            writer.writerow([f.name, f.size, *(f.cut[o] for o in OUTCOMES), *(f.after[o] for o in OUTCOMES)])


def _read(path: Path, jobs: list[Job]) -> list[Found]:
    """Lines of an earlier run, of files that are still the same and were changed as often."""
    wanted = {j.name: j for j in jobs}
    found = []
    if path.is_file():
        with open(path, newline="") as lines:
            for line in csv.DictReader(lines):
                job = wanted.get(line["file"])
                cut, after = (
                    Counter({o: int(line[f"{part}: {o}"]) for o in OUTCOMES if int(line[f"{part}: {o}"])})
                    for part in ("cut", "changed")
                )
                if job and int(line["bytes"]) == len(job.data) and after.total() == job.changes:
                    found.append(Found(job.kind, job.name, len(job.data), cut, after))
    return found


def _table(found: list[Found], changes: int, files: Counter[tuple[str, str]]) -> list[str]:
    groups: dict[tuple[str, str], list[Counter[str]]] = {}
    for f in found:
        group = groups.setdefault((f.kind, f.name.split("/")[0]), [Counter(), Counter(), Counter()])
        group[0]["files"] += 1
        group[1].update(f.cut)
        group[2].update(f.after)
    used = [o for o in OUTCOMES if o == "other" or any(g[2][o] for g in groups.values())]
    part = (
        "Every golden file"
        if len(found) == files.total()
        else f"{len(found):,} of {files.total():,} golden files, chosen at random (the others are not swept yet),"
    )
    lines = [
        "# Damage table",
        "",
        f"{part} cut and changed by `fuzz/damage.py`: all lengths of files up to 4 KB, else 16 bytes around",
        f"each structural boundary and 500 random cuts; {changes:,} random one-byte changes of each file (of footers",
        f"at most {MOST_FOOTER_CHANGES}, most of them outside the bloom filter). A line for each file: in the .csv.",
        "",
        "- error: `CorruptFileError` or `UnsupportedError` that names the file.",
        "- equal: all rows as they were: the byte means nothing, such as an offset that no reader uses.",
        "- one record: no checksum covers it, and one record has another key or value.",
        "- schema, parquet: a name or type in the text of a log block's schema; several values of a Parquet log block,",
        "  whose pages Apache Hudi writes without checksums.",
        "- entry, column: a text in a Parquet footer; one column's values, name or type, by what the footer says.",
        "- other: anything else, such as a record that is missing.",
        "",
        "| golden files | files | of all | cuts | of them errors | changes | " + " | ".join(used) + " |",
        "|---|---|---|---|---|---|" + "---|" * len(used),
    ]
    for (kind, version), (count, cut, after) in sorted(groups.items()):
        of_all = files[kind, version]
        cells = [
            f"{KINDS[kind]}, {version}",
            count["files"],
            of_all,
            cut.total(),
            cut["error"],
            after.total(),
        ]
        lines.append("| " + " | ".join(f"{c:,}" if isinstance(c, int) else c for c in cells) + " | "
                     + " | ".join(f"{after[o]:,}" for o in used) + " |")  # fmt: skip
    return lines


if __name__ == "__main__":
    sys.exit(main())
