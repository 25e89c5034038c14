"""Rows that say where they are: prepped operations take key, partition path and file from the meta columns.

A record that was read from a table stands in the file that its `_hoodie_file_name` names, and in every later slice of
that file group until it is deleted.  No key is looked up; instead each row's file must still be the latest of its
group, or the record might have been changed or deleted since it was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_format.errors import ConcurrentWriterError
from hudi_format.model import BaseFile, join_path


def check_files(
    counted: Mapping[tuple[str, str], int], files: Mapping[str, Sequence[BaseFile]], *, table: str
) -> None:
    """Make sure that rows stand in latest base files.

    Args:
        counted: rows by partition path and file name.
        files: latest base files by partition.

    Raises:
        ConcurrentWriterError: a file is not the latest of its group, or none of the partition.
    """
    latest = {p: {f.path: f for f in of} for p, of in files.items()}
    stale = sorted(k for k in counted if join_path(*k) not in latest.get(k[0], {}))
    if not stale:
        return
    partition, name = stale[0]
    now = next((f for f in files.get(partition, ()) if f.file_id == name.partition("_")[0]), None)
    rows = sum(counted[k] for k in stale)
    raise ConcurrentWriterError(
        f"{rows:,} rows say that they stand in {len(stale)} files which are not the latest of the table: "
        f"{join_path(partition, name)}"
        + (f" was written again as {now.path}" if now else " is none of them"),
        table=table,
        file=join_path(partition, name),
        remedy="read the rows again, or use the operation without _prepped, which looks their keys up.",
    )
