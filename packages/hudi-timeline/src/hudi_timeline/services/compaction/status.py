"""Compaction status: log files not compacted yet, and the lag of read-optimized queries.

A read-optimized query reads base files alone: what was written since the newest compaction of a file group is not in
its answer.  Pure function of a snapshot and the options; of log files whose commits were archived the first block is
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hudi_format.log.reader import LogFileReader
from hudi_format.model import LogFile
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.file_slices import newest_slices
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.compaction_config import CompactionConfig
from hudi_timeline.services.compaction.compaction_planner import Due, is_due, seconds_since
from hudi_timeline.timeline.instant import COMPACTION


@dataclass(frozen=True)
class CompactionStatus(HtmlView):
    """Status of compaction: what waits for it.

    Attributes:
        slices: newest file slices with log files.
        log_files, log_bytes: in these slices.
        oldest: instant of the oldest write that stands in log files only; "" where none does.
        lag_seconds: since that write: how far read-optimized queries are behind.
        newest: instant of the newest write that stands in log files only; "" where none does.
        due: whether the trigger of the options fires.
        pending: instants of pending compactions, oldest first.
    """

    slices: int
    log_files: int
    log_bytes: int
    oldest: str
    lag_seconds: float
    newest: str
    due: Due
    pending: tuple[str, ...]


def compaction_status(snapshot: TableSnapshot, config: CompactionConfig, now: datetime) -> CompactionStatus:
    """Status of a merge-on-read table.

    Args:
        now: in the table's time zone.

    Raises:
        CorruptFileError, MissingFileError: a committed file is not there, or a pending plan cannot be read.
        StaleSnapshotError: files were cleaned, or commits undone, since the snapshot was opened.
    """
    slices = [s for s in newest_slices(snapshot) if s.log_files]
    logs = [f for s in slices for f in s.log_files]
    instants = _instants(snapshot, logs)
    oldest = min(instants, default="")
    return CompactionStatus(
        len(slices),
        len(logs),
        sum(max(f.size, 0) for f in logs),
        oldest,
        seconds_since(oldest, now) if oldest else 0.0,
        max(instants, default=""),
        is_due(snapshot.timeline, config, now),
        tuple(i.time for i in snapshot.timeline.pending(COMPACTION)),
    )


def _instants(snapshot: TableSnapshot, logs: list[LogFile]) -> set[str]:
    """Instants that wrote log files, as commits say; of those that no active commit names, as their blocks say."""
    visible = snapshot.visible()
    paths = {f.path for f in logs}
    known: dict[str, set[str]] = {}
    for instant, commit in zip(snapshot.instants, snapshot.commits.files(snapshot.instants), strict=True):
        for stat in commit.files:
            if stat.path in paths:
                known.setdefault(stat.path, set()).add(instant.time)
    found = {t for times in known.values() for t in times}
    for file in logs:
        if file.path not in known:
            with snapshot.of_its_state(), LogFileReader.open(snapshot.storage, file.path) as reader:
                found |= {b.instant for b in reader.blocks if b.instant in visible}
    return found
