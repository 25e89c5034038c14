"""What a scan reads and leaves out, and why: as a table and as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_timeline.scan.plan import ScanSource
from hudi_timeline.scan.task import ReadTask, SliceFile

MOST_LINES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """
    Attributes:
        title: the question.
        files: one row for each file: path, partition, size (bytes), read (bool), reason, and of the files
            that are read row_groups and row_groups_read (null where there is no filter).
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
        for r in sorted(rows, key=lambda r: not r["read"])[:MOST_LINES]:
            groups = (
                "" if r["row_groups"] is None else f"; row groups {r['row_groups_read']}/{r['row_groups']}"
            )
            lines.append(f"  {'read' if r['read'] else 'skip'}  {r['path']}  {r['reason']}{groups}")
        if len(rows) > MOST_LINES:
            lines.append(f"  ... and {len(rows) - MOST_LINES} more, see .files")
        return "\n".join(lines)

    __repr__ = __str__


def explain(source: ScanSource, tasks: Sequence[ReadTask]) -> Explanation:
    """Every file that the question concerns.  With a filter, the footers of the files to read are read."""
    groups: dict[str, tuple[int, int]] = {}
    for task in tasks:
        if task.filter is not None and task.logs is None:
            file = SliceFile(task)
            groups[task.path] = (file.num_row_groups, len(file.row_groups))
            file.close()
    planned = {t.path for t in tasks} | {f.path for t in tasks if t.logs for f in t.logs.slice.log_files}
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
                "row_groups": total,
                "row_groups_read": read,
            }
        )
    schema = pa.schema(
        [
            ("path", pa.string()), ("partition", pa.string()), ("size", pa.int64()), ("read", pa.bool_()),
            ("reason", pa.string()), ("row_groups", pa.int64()), ("row_groups_read", pa.int64()),
        ]
    )  # fmt: skip
    return Explanation(source.title, pa.Table.from_pylist(rows, schema))
