"""How long the command takes to start, beside what Python and its libraries cost alone.

    python benchmarks/macro/startup.py [--repeat 15] [--out FOLDER]

Each is a process of its own, in turn.  Modules are found compiled, as installed packages are; `hudi` is the script
that pip installs.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from report import Goal, Measured, goals_table, write

from hudi_timeline import HudiTable

WORK = "start"
HUDI = str(Path(sysconfig.get_path("scripts")) / "hudi")
GOAL_MS = 300  # of `hudi --help`
# The goals that are ratios: what a command may cost beside what it cannot do without.
GOALS = [
    Goal(WORK, "hudi show", "import pyarrow", 1 / 3),
    Goal(WORK, "hudi count", "import pyarrow", 1 / 3),
]


def commands(table: str) -> dict[str, list[str]]:
    """Commands by name."""
    python = [sys.executable, "-c"]
    return {
        "python -c pass": [*python, "pass"],
        "import pyarrow": [*python, "import pyarrow"],
        "a query in DuckDB": [*python, "import duckdb; duckdb.sql('select 1').fetchall()"],
        "hudi --help": [HUDI, "--help"],
        "hudi --version": [HUDI, "--version"],
        "hudi show": [HUDI, "show", table],
        "hudi count": [HUDI, "count", table],
        "hudi history": [HUDI, "history", table],
    }


def measure(asked: dict[str, list[str]], repeat: int, compiled: str) -> Measured:
    """Seconds and processor seconds of each command's process, in turn."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = compiled
    seconds: dict[str, list[float]] = {name: [] for name in asked}
    processor: dict[str, list[float]] = {name: [] for name in asked}
    for turn in range(repeat + 1):
        for name, command in asked.items():
            used, begun = _of_children(), time.perf_counter()
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
            if turn:  # the first one compiles
                seconds[name].append(time.perf_counter() - begun)
                processor[name].append(_of_children() - used)
    measured = Measured("startup")
    measured.add(WORK, "each is a process of its own; the table has two commits of three rows", seconds)
    measured.processor[WORK] = processor
    return measured


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--scale", choices=["full", "smoke"], default="full")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = HudiTable.create(
            f"{folder}/t", pa.schema({"id": "int64", "city": "string"}), record_keys="id"
        )
        for city in ("oslo", "bergen"):
            table.upsert([{"id": n, "city": city} for n in range(3)])
        measured = measure(
            commands(f"{folder}/t"), given.repeat if given.scale == "full" else 1, f"{folder}/compiled"
        )
    lines = ["| milliseconds, median (least) | by the clock | of a processor |", "|---|---:|---:|"]
    for name in measured.seconds[WORK]:
        cells = [
            f"{1e3 * statistics.median(t):.0f} ({1e3 * min(t):.0f})"
            for t in (measured.seconds[WORK][name], measured.processor[WORK][name])
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    found = statistics.median(measured.seconds[WORK]["hudi --help"]) * 1e3
    verdict = "held" if found < GOAL_MS else "missed"
    goal = f"`hudi --help`: below {GOAL_MS} ms by the clock: {found:.0f} ms, {verdict}."
    titles = {name: f"`{name}`" for name in measured.seconds[WORK]}
    notes = "\n".join(f"- {note}" for note in measured.notes.values())
    write(measured, [notes, "\n".join(lines), goal, goals_table(measured, titles, GOALS)], given.out)


if __name__ == "__main__":
    main()
