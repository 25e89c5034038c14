"""Plots of a table's state with Matplotlib: `HudiTable.plot`.

Each draws one question on an axes and gives it back, so that a notebook shows it and a script may save it.
"""

from __future__ import annotations

import importlib
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    Axes: TypeAlias = Any  # of Matplotlib, which has to be installed only where something is drawn

MOST_BARS, MOST_FILES = 30, 300
_MB = 1e6
_COLOURS = {"completed": "tab:green", "inflight": "tab:orange", "requested": "tab:red"}


class Inspection(Protocol):
    """Source of what is drawn: `Inspector`."""

    def timeline(self) -> pa.Table: ...

    def files(self) -> pa.Table: ...

    def file_slices(self) -> pa.Table: ...

    def stats(self) -> pa.Table: ...


class Plots:
    """Plots of one table; each looks at the table anew.

    Args of each: `ax`, an axes of Matplotlib to draw on; a new one if not given.

    Raises:
        ImportError: Matplotlib is not installed.
    """

    def __init__(self, inspection: Inspection, name: str) -> None:
        self._inspection = inspection
        self._name = name

    def timeline(self, ax: Axes | None = None) -> Axes:
        """Instants over time, one line for each action, coloured by state."""
        ax = self._axes(ax, "timeline")
        rows = [
            (r, at) for r in self._inspection.timeline().to_pylist() if (at := _moment(r["instant"])) is not None
        ]  # fmt: skip
        actions = list(dict.fromkeys(r["action"] for r, _ in rows))
        for state, colour in _COLOURS.items():
            found = [(at, actions.index(r["action"])) for r, at in rows if r["state"].lower() == state]
            if found:
                ax.scatter([at for at, _ in found], [y for _, y in found], color=colour, label=state)
        ax.set_yticks(range(len(actions)), actions)
        if rows:
            ax.legend()
        ax.figure.autofmt_xdate()
        return ax

    def file_sizes(self, ax: Axes | None = None) -> Axes:
        """Number of files of the newest state by size, base files and log files."""
        ax = self._axes(ax, "file sizes")
        files = self._inspection.files()
        for kind in ("base", "log"):
            sizes = files.filter(pc.equal(files.column("kind"), kind)).column("size").to_pylist()
            if sizes:
                ax.hist([s / _MB for s in sizes], bins=30, alpha=0.7, label=f"{len(sizes):,} {kind} files")
        if files.num_rows:
            ax.legend()
        ax.set_xlabel("MB")
        ax.set_ylabel("files")
        return ax

    def log_backlog(self, ax: Axes | None = None) -> Axes:
        """Bytes in log files that wait for compaction, by partition, beside those in base files."""
        ax = self._axes(ax, "log backlog")
        logs: Counter[str] = Counter()
        bases: Counter[str] = Counter()
        for row in self._inspection.file_slices().to_pylist():
            if row["latest"]:
                logs[row["partition"]] += row["log_bytes"]
                bases[row["partition"]] += row["size"] or 0
        shown = [p for p, _ in (logs if logs.total() else bases).most_common(MOST_BARS)]
        names = [_plain(p) or "(none)" for p in shown]
        ax.barh(names, [bases[p] / _MB for p in shown], color="tab:blue", label="base files")
        left = [bases[p] / _MB for p in shown]
        ax.barh(names, [logs[p] / _MB for p in shown], left=left, color="tab:orange", label="log files")
        if shown:
            ax.legend()
        ax.set_xlabel("MB")
        return ax

    def key_ranges(self, ax: Axes | None = None) -> Axes:
        """Key range of each base file; where many overlap, a look-up has to open many.

        Keys stand in their order, not to scale.

        Raises:
            UnsupportedError: base files that are not Parquet.
        """
        ax = self._axes(ax, "key ranges")
        rows = [r for r in self._inspection.stats().to_pylist() if r["min_key"] is not None]
        rows.sort(key=lambda r: (r["min_key"], r["max_key"]))
        rows = rows[:MOST_FILES]
        ends = sorted({k for r in rows for k in (r["min_key"], r["max_key"])})
        place = {key: n for n, key in enumerate(ends)}
        for y, r in enumerate(rows):
            ax.plot([place[r["min_key"]], place[r["max_key"]]], [y, y], color="tab:blue", marker="|")
        if ends:
            at = sorted({0, len(ends) // 2, len(ends) - 1})
            ax.set_xticks(at, [_plain(ends[n][:16]) for n in at])
        ax.set_xlabel("record key")
        ax.set_ylabel("base files")
        return ax

    def _axes(self, ax: Axes | None, title: str) -> Axes:
        if ax is None:
            try:
                pyplot = importlib.import_module("matplotlib.pyplot")
            except ImportError as e:
                raise ImportError("plots need Matplotlib: pip install matplotlib") from e
            _, ax = pyplot.subplots()
        elif not hasattr(ax, "set_title"):
            raise TypeError(f"ax must be axes of Matplotlib, not {type(ax).__name__}")
        ax.set_title(_plain(f"{self._name}: {title}"))
        return ax


def _plain(text: str) -> str:
    """A text of the table that Matplotlib draws as it is, and not what stands between two dollar signs as a formula."""
    return text.replace("$", r"\$")


def _moment(instant: str) -> datetime | None:
    """Time of an instant, for an axis; None of one that is none, such as those of a bootstrap."""
    try:
        return datetime.strptime(instant[:14], "%Y%m%d%H%M%S")
    except ValueError:
        return None
