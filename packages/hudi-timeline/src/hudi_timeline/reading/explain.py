"""Explanation of a scan: files read and skipped, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from hudi_format.file_slice.base_rows import filtered
from hudi_timeline.display.html_view import rows_view, titled
from hudi_timeline.reading.cdc_task import ChangeTask
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
            metadata table that ruled it out, or null), and of the files that are read row_groups and row_groups_read
            (null where there is no filter); missed, how many rows of what was left out for the filter's sake pass it
            after all: always 0, or data skipping is at fault (null where nothing was left out, or no proof was asked
            for).
    """

    title: str
    files: pa.Table

    def __str__(self) -> str:
        rows = self.files.to_pylist()
        read = [r for r in rows if r["read"]]
        size = sum(max(r["size"], 0) for r in read)
        lines = [
            f"{self.title}",
            f"reads {len(read)} of {len(rows)} files, {size:,} bytes",
        ]
        by = Counter(r["index"] for r in rows if r["index"])
        if by:
            lines.append("left out by " + ", ".join(f"{index}: {n}" for index, n in sorted(by.items())))
        for r in sorted(rows, key=lambda r: not r["read"])[:MOST_LINES]:
            groups = (
                "" if r["row_groups"] is None else f"; row groups {r['row_groups_read']}/{r['row_groups']}"
            )
            proof = "" if r["missed"] is None else f"; proved, {r['missed']} rows missed"
            lines.append(f"  {'read' if r['read'] else 'skip'}  {r['path']}  {r['reason']}{groups}{proof}")
        if len(rows) > MOST_LINES:
            lines.append(f"  ... and {len(rows) - MOST_LINES} more, see .files")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = self.files.sort_by([("read", "descending"), ("path", "ascending")])
        read = self.files.filter(self.files.column("read"))
        size = sum(max(s, 0) for s in read.column("size").to_pylist())
        shown = [n for n in rows.column_names if rows.column(n).null_count < rows.num_rows]
        head = f"{self.title}: reads {read.num_rows:,} of {rows.num_rows:,} files, {size:,} bytes"
        return titled(head, rows_view(rows.select(shown)))


def missed_rows(source: ScanSource, tasks: Sequence[Task], every: Sequence[Task]) -> dict[str, int]:
    """Rows passing the filter in skipped parts, by path; each number should be 0.

    Args:
        tasks: of the scan.
        every: of the same question without the filter, with at least the filter's columns.
    """
    predicate = source.predicate
    if predicate is None:
        return {}
    given = {_key(t): t for t in tasks}
    out = {}
    for whole in every:
        task = given.get(_key(whole))
        same = task is not None and (isinstance(task, ChangeTask) or task.path == _path(whole))
        if isinstance(whole, ChangeTask) or (task is not None and same and not _leaves_out(task)):
            continue
        match = filtered(whole.to_table(), predicate.expression).num_rows
        out[whole.path] = match - (0 if task is None else task.to_table().num_rows)
    return out


def _key(task: Task) -> tuple[str, str, str]:
    if isinstance(task, ChangeTask):
        return task.unit.partition, task.unit.file_id, task.unit.instant
    return task.partition, task.file_id, ""


def _path(task: Task) -> str:
    return "" if isinstance(task, ChangeTask) else task.path


def _leaves_out(task: Task) -> bool:
    """Whether row groups of the task's file are skipped."""
    if isinstance(task, ChangeTask) or task.filter is None or not task.path:
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
    source: ScanSource, tasks: Sequence[Task], missed: Mapping[str, int] | None = None
) -> Explanation:
    """Decision for every file of the query; a filter reads the footers of files to read.

    Args:
        missed: what `missed_rows` found.
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
                "row_groups": total,
                "row_groups_read": read,
                "missed": None if missed is None else missed.get(fate.file.path),
            }
        )
    schema = pa.schema(
        [
            ("path", pa.string()), ("partition", pa.string()), ("size", pa.int64()), ("read", pa.bool_()),
            ("reason", pa.string()), ("index", pa.string()), ("row_groups", pa.int64()),
            ("row_groups_read", pa.int64()), ("missed", pa.int64()),
        ]
    )  # fmt: skip
    return Explanation(source.title, pa.Table.from_pylist(rows, schema))
