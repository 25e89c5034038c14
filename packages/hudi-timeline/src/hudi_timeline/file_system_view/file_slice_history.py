"""File slice history: slices of some partitions at earlier instants, from one listing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hudi_format.file_names import parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.log.corruption import CommittedRange
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.storage.protocol import FileInfo
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slices import SliceBuilder, committed_logs
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.timeline.instant import COMPACTION, LOG_COMPACTION


class FileHistory:
    """Committed files of some partitions, by file group.

    Attributes:
        compactions: those that are pending; they begin slices that have no base file yet.
        sizes: bytes of each file as listed, by path.
        committed: what completed instants say that they wrote, by path of a log file.
    """

    def __init__(self, snapshot: TableSnapshot, partitions: Iterable[str], *, logs: bool) -> None:
        """History of some partitions.

        Args:
            logs: whether log files matter.
        """
        visible = snapshot.visible()
        known = snapshot.written().paths
        self.compactions = frozenset(i.time for i in snapshot.timeline.pending(COMPACTION))
        self._bases: dict[Group, dict[str, BaseFile]] = {}
        self._logs: dict[Group, list[LogFile]] = {}
        self._builder = SliceBuilder.of(snapshot, logs=logs)
        self.sizes: dict[str, int] = {}
        ranges = committed_logs(snapshot)[0] if logs else {}
        self.committed: Mapping[str, tuple[CommittedRange, ...]] = {
            p: tuple(r) for p, r in ranges.items() if r
        }
        for partition, found in list_partition_files(snapshot.storage, partitions).items():
            for entry in found:
                base = parse_base_file(partition, entry.name, entry.size)
                log = None if base is not None else parse_log_file(partition, entry.name, entry.size)
                file = base or log
                if file is None:
                    self.sizes[f"{partition}/{entry.name}" if partition else entry.name] = entry.size
                    continue
                self.sizes[file.path] = entry.size
                if base is not None:
                    # A file of an active commit that the commit does not name is a leftover of a task.
                    stray = base.instant in visible.completed and base.path not in known
                    if base.instant in visible and not stray:
                        self._bases.setdefault((partition, base.file_id), {})[base.instant] = base
                elif log is not None and logs and self._builder.counts(log.instant):
                    self._logs.setdefault((partition, log.file_id), []).append(log)

    def before(self, group: Group, instant: str) -> FileSlice | None:
        """Newest slice of a group before an instant; None where there is none.

        Before means that it was begun earlier, and its log files may hold blocks of later instants; from table
        version 8 on that all of it was completed earlier.
        """
        time_of = self._builder.time_of
        at = time_of(instant)
        bases = {i: b for i, b in self._bases.get(group, {}).items() if time_of(i) < at}
        logs = [f for f in self._logs.get(group, ()) if time_of(f.instant) < at]
        return self._builder.newest(group, bases, logs)


# Every file slice of every file group, of completed instants: what the cleaner and savepoints choose among.

COMPACTIONS = (COMPACTION, LOG_COMPACTION)


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice, begun by `instant`; `names` are base, log and CDC file names."""

    instant: str
    names: tuple[str, ...]
    has_base: bool


def file_groups(
    snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]]
) -> tuple[dict[Group, list[Slice]], set[str]]:
    """Slices of each file group, newest first, and partitions with files of pending instants."""
    visible = snapshot.visible()
    pending = {i.time for kind in COMPACTIONS for i in snapshot.timeline.pending(kind)}
    found: dict[Group, dict[str, list[str]]] = {}
    bases: set[tuple[str, str, str]] = set()
    open_partitions: set[str] = set()
    for partition, entries in listing.items():
        for entry in entries:
            base = parse_base_file(partition, entry.name)
            file = base or parse_log_file(partition, entry.name) or parse_cdc_file(partition, entry.name)
            if file is None:
                continue
            if file.instant not in visible and file.instant not in pending:
                open_partitions.add(partition)
                continue
            if base is not None:
                bases.add((partition, base.file_id, base.instant))
            found.setdefault((partition, file.file_id), {}).setdefault(file.instant, []).append(entry.name)
    groups = {
        group: [
            Slice(instant, tuple(sorted(names)), (*group, instant) in bases)
            for instant, names in sorted(by_instant.items(), reverse=True)
        ]
        for group, by_instant in found.items()
    }
    return groups, open_partitions


__all__ = ["FileHistory"]
