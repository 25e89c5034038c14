"""Explanation of a scan: files read and skipped, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.file_slice.base_rows import filtered
from hudi_timeline.display.html_view import rows_view, titled
from hudi_timeline.reading.incremental.cdc_task import ChangeTask
from hudi_timeline.reading.plan import ScanSource
from hudi_timeline.reading.task import ReadTask

Task: TypeAlias = ReadTask | ChangeTask

MOST_LINES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Explanation of a scan.

    Attributes:
        title: the question.
        files: one row for each file: path, partition, size (bytes), read (bool), reason, index (the partition of the
            metadata table that ruled it out, or null), older (bool: an older version of a file group), and of the
            files that are read row_groups and row_groups_read (null where there is no filter); missed, how many rows
            of what was left out for the filter's sake pass it after all: always 0, or data skipping is at fault (null
            where nothing was left out, or no proof was asked for).
        verbose: whether text and HTML name each older version of a file; else they say how many there are.
    """

    title: str
    files: pa.Table
    verbose: bool = False

    def __str__(self) -> str:
        rows = self._shown().to_pylist()
        most = len(rows) if self.verbose else MOST_LINES
        lines = [self.title, self._sum()]
        by = Counter(r["index"] for r in rows if r["index"])
        if by:
            lines.append("left out by " + ", ".join(f"{index}: {n}" for index, n in sorted(by.items())))
        for r in sorted(rows, key=lambda r: not r["read"])[:most]:
            groups = (
                "" if r["row_groups"] is None else f"; row groups {r['row_groups_read']}/{r['row_groups']}"
            )
            proof = "" if r["missed"] is None else f"; proved, {r['missed']} rows missed"
            lines.append(f"  {'read' if r['read'] else 'skip'}  {r['path']}  {r['reason']}{groups}{proof}")
        if len(rows) > most:
            lines.append(f"  ... and {len(rows) - most} more, see .files")
        if older := self._older():
            lines.append(f"  skip  {older}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = self._shown().sort_by([("read", "descending"), ("path", "ascending")])
        shown = [n for n in rows.column_names if n != "older" and rows.column(n).null_count < rows.num_rows]
        older = self._older()
        head = f"{self.title}: {self._sum()}{older and f'; {older}'}"
        return titled(head, rows_view(rows.select(shown)))

    def _shown(self) -> pa.Table:
        return self.files if self.verbose else self.files.filter(pc.invert(self.files.column("older")))

    def _sum(self) -> str:
        read = self.files.filter(self.files.column("read"))
        size = sum(max(s, 0) for s in read.column("size").to_pylist())
        return f"reads {read.num_rows:,} of {self.files.num_rows:,} files, {size:,} bytes"

    def _older(self) -> str:
        """What stands for the files that are not named; "" where all are."""
        if self.verbose:
            return ""
        older = self.files.filter(self.files.column("older"))
        count, places = older.num_rows, pc.count_distinct(older.column("partition")).as_py()
        if not count:
            return ""
        where = "" if places == 1 else f" in {places:,} partitions"
        return f"{count:,} older version{'s' if count > 1 else ''} of files{where}, named by explain(verbose=True)"


def missed_rows(source: ScanSource, tasks: Sequence[Task], every: Sequence[Task]) -> dict[str, int]:
    """Rows passing the filter in skipped parts, by path; each number should be 0.

    Args:
        tasks: of the scan.
        every: of the same question without the filter, with at least the filter's columns.
    """
    predicate = source.predicate
    if predicate is None:
        return {}
    given = {(t.partition, t.file_id): t for t in tasks if isinstance(t, ReadTask)}
    out = {}
    for whole in every:
        if isinstance(whole, ChangeTask):  # of a commit, which no filter leaves out
            continue
        task = given.get((whole.partition, whole.file_id))
        if task is not None and task.path == whole.path and not _leaves_out(task):
            continue
        match = filtered(whole.to_table(), predicate.expression).num_rows
        out[whole.path] = match - (0 if task is None else task.to_table().num_rows)
    return out


def _leaves_out(task: ReadTask) -> bool:
    """Whether row groups of the task's file are skipped."""
    if task.filter is None or not task.path:
        return False
    if task.logs is not None:
        by = task.merge.skipped_by if task.merge is not None else frozenset()
        return by is None or not by.isdisjoint(task.filter_columns)
    file = task.open()
    try:
        return len(file.row_groups) < file.num_row_groups
    finally:
        file.close()


def explain(
    source: ScanSource,
    tasks: Sequence[Task],
    missed: Mapping[str, int] | None = None,
    *,
    verbose: bool = False,
) -> Explanation:
    """Decision for every file of the query; a filter reads the footers of files to read.

    Args:
        missed: what `missed_rows` found.
        verbose: as of `Explanation`.
    """
    groups: dict[str, tuple[int, int]] = {}
    planned: set[str] = set()
    for task in tasks:
        if isinstance(task, ChangeTask):
            planned |= {f.path for f, _ in task.unit.told_by()}
            continue
        planned.add(task.path)
        if task.logs is not None:
            planned |= {f.path for f in task.logs.slice.log_files}
        elif task.filter is not None:
            file = task.open()
            groups[task.path] = (file.num_row_groups, len(file.row_groups))
            file.close()
    rows = []
    for fate in source.fates():
        total, read = groups.get(fate.file.path, (None, None))
        reason = fate.reason
        if read == 0 and total:
            reason = "no row group can hold a row that passes the filter"
        rows.append(
            {
                "path": fate.file.path,
                "partition": fate.file.partition,
                "size": fate.file.size,
                "read": fate.read and fate.file.path in planned and not (read == 0 and total),
                "reason": reason,
                "index": fate.index or None,
                "older": fate.older,
                "row_groups": total,
                "row_groups_read": read,
                "missed": None if missed is None else missed.get(fate.file.path),
            }
        )
    schema = pa.schema(
        [
            ("path", pa.string()), ("partition", pa.string()), ("size", pa.int64()), ("read", pa.bool_()),
            ("reason", pa.string()), ("index", pa.string()), ("older", pa.bool_()), ("row_groups", pa.int64()),
            ("row_groups_read", pa.int64()), ("missed", pa.int64()),
        ]
    )  # fmt: skip
    return Explanation(source.title, pa.Table.from_pylist(rows, schema), verbose)
