"""What the macro benchmarks say: seconds, ratios beside goals, and the machine they were seen on."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PACKAGES = ("pyspark", "pyarrow", "numpy", "deltalake", "hudi", "fastavro", "hudi-format", "hudi-spark")


@dataclass(frozen=True)
class Goal:
    """`ours` does `work` at least `factor` times as fast as `other`; below 1: in at most 1/factor of its time."""

    work: str
    ours: str
    other: str
    factor: float


@dataclass
class Measured:
    """Seconds by work and contender, in the order in which they were seen.

    Attributes:
        processor: seconds of processor time in the same order, where they were measured.  Goals are then judged by
            them: they hold on a machine that does other work too.
        notes: what each work is.
        more: further facts for the JSON.
    """

    name: str
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    processor: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)

    def add(self, work: str, note: str, seconds: dict[str, list[float]]) -> None:
        self.notes[work] = note
        self.seconds[work] = seconds

    def median(self, work: str, name: str) -> float | None:
        times = (self.processor or self.seconds).get(work, {}).get(name)
        return statistics.median(times) if times else None


def machine() -> dict[str, Any]:
    """CPU, cores, memory, system and versions of what takes part."""
    cpu = ""
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # not taking part, or run from a source tree
    return {
        "cpu": cpu or platform.processor(), "cores": os.cpu_count(), "memory_gb": round(memory / 1e9, 1),
        "system": platform.platform(), "versions": versions,
    }  # fmt: skip


def machine_line() -> str:
    found = machine()
    versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    return f"{found['cpu']}, {found['cores']} cores, {found['memory_gb']} GB; {versions}"


def seconds_table(measured: Measured, titles: Mapping[str, str]) -> str:
    """A row for each work, a column for each contender: median and least."""
    lines = [f"- {note}" for note in measured.notes.values()]
    lines += ["", _table("seconds", measured.seconds, titles)]
    if measured.processor:
        lines += ["", _table("processor seconds", measured.processor, titles)]
    return "\n".join(lines)


def _table(what: str, seconds: Mapping[str, Mapping[str, list[float]]], titles: Mapping[str, str]) -> str:
    names = [n for n in titles if any(n in of for of in seconds.values())]
    lines = [f"| {what} | " + " | ".join(titles[n] for n in names) + " |", "|---" * (len(names) + 1) + "|"]
    for work, of in seconds.items():
        cells = [f"{statistics.median(of[n]):.2f} ({min(of[n]):.2f})" if n in of else "-" for n in names]
        lines.append(f"| {work} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def goals_table(measured: Measured, titles: Mapping[str, str], goals: Sequence[Goal]) -> str:
    """Ratios of medians beside their goals; those that were not measured are left out."""
    lines = [f"| goal{', by processor time' if measured.processor else ''} | found | |", "|---|---:|---|"]
    for goal in goals:
        ours, other = measured.median(goal.work, goal.ours), measured.median(goal.work, goal.other)
        if ours is None or other is None:
            continue
        if goal.factor >= 1:
            what = f"at least {goal.factor:g} x as fast as {titles[goal.other]}"
        else:
            what = f"at most {1 / goal.factor:.4g} x the time of {titles[goal.other]}"
        ratio = other / ours
        if goal.factor >= 1:
            found = f"{ratio:.2f} x as fast"
        else:
            found = f"{1 / ratio:.2f} x the time"
        verdict = "held" if ratio >= goal.factor else f"missed: {goal.factor / ratio:.2f} x too slow"
        lines.append(f"| {goal.work}, {titles[goal.ours]}: {what} | {found} | {verdict} |")
    return "\n".join(lines)


def write(measured: Measured, text: Sequence[str], out: Path | None) -> None:
    """Print the tables, and keep them and the numbers in a folder where one is given."""
    whole = "\n\n".join([f"On {machine_line()}.", *text]) + "\n"
    print(whole)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{measured.name}.md").write_text(whole)
        found = {
            "seconds": measured.seconds,
            "processor": measured.processor,
            "notes": measured.notes,
            **measured.more,
            "machine": machine(),
        }
        (out / f"{measured.name}.json").write_text(json.dumps(found, indent=1) + "\n")
