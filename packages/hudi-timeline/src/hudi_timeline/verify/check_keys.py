"""Deep key checks: duplicate keys, and the record index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import FunctionNotAllowedError, HudiError
from hudi_format.keygen.record_keys import record_keys
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_timeline.reading.scan import Scan
from hudi_timeline.reading.task import ReadTask
from hudi_timeline.table_config import PROPERTIES_FILE
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import TableFacts

ScanOf = Callable[..., Scan]
"""`HudiTable.read`."""


@dataclass(frozen=True)
class SliceKeys:
    """Record keys of one file group's newest slice."""

    partition: str
    file_id: str
    path: str
    keys: pa.ChunkedArray


def read_keys(facts: TableFacts, scan_of: ScanOf, report: VerifyReport) -> list[SliceKeys] | None:
    """Keys of all slices; None where the newest snapshot is unreadable."""
    config = facts.config
    try:
        columns = (
            [RECORD_KEY]
            if config.populate_meta_fields
            else list(dict.fromkeys(f.partition(".")[0] for f in config.record_key_fields))
        )
        scan = scan_of(columns)
        spec = None if config.populate_meta_fields else config.record_key_spec()

        def one(task: ReadTask) -> SliceKeys | HudiError:
            try:
                rows = task.to_table()
            except HudiError as e:
                return e
            keys = rows.column(0) if spec is None else pa.chunked_array([record_keys(rows, spec)])
            part = task.logs.slice if task.logs is not None else None
            partition, file_id = (
                (part.partition, part.file_id) if part is not None else (task.partition, task.file_id)
            )
            logs = part.log_files if part is not None else ()
            path = task.path or (logs[0].path if logs else "")
            return SliceKeys(partition, file_id, path, keys.cast(pa.string()))

        found = facts.each(one, [t for t in scan.plan_files() if isinstance(t, ReadTask)])
    except HudiError as e:
        _add_error(e, report)
        return None
    for error in found:
        if isinstance(error, HudiError):
            _add_error(error, report)
    sound = [f for f in found if isinstance(f, SliceKeys)]
    return sound if len(sound) == len(found) else None


def _add_error(error: HudiError, report: VerifyReport) -> None:
    if isinstance(error, FunctionNotAllowedError):  # no fault of the table
        report.add("merge-not-allowed", PROPERTIES_FILE, error.message)
        return
    if not report.names(error.file) and not any(f.severity == "error" for f in report.findings()):
        report.add(
            "unreadable", error.file, f"the newest state cannot be read: {error.message}", error.instant
        )


def check_duplicates(slices: list[SliceKeys], report: VerifyReport) -> None:
    """Report keys that occur twice in a partition."""
    by_partition: dict[str, list[SliceKeys]] = defaultdict(list)
    for part in slices:
        by_partition[part.partition].append(part)
    for partition, parts in by_partition.items():
        for key, paths in _duplicates(parts):
            where = " and ".join(sorted(set(paths)))
            report.add("duplicate-key", paths[-1], f"the key {key!r} is there {len(paths)} times, in {where}",
                       partition=partition, key=key)  # fmt: skip


def _duplicates(parts: list[SliceKeys]) -> Iterator[tuple[str, list[str]]]:
    """A shared key for each pair of files, with the paths of all files that have it."""
    every = pa.chunked_array([c for p in parts for c in p.keys.chunks], pa.string())
    counts = pc.value_counts(every.drop_null())
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if not len(twice):
        return
    seen: set[tuple[str, ...]] = set()
    homes: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        for key in part.keys.filter(pc.is_in(part.keys, twice)).to_pylist():
            homes[key].append(part.path)
    for key in sorted(homes):
        paths = tuple(sorted(homes[key]))
        if paths not in seen:
            seen.add(paths)
            yield key, list(paths)
