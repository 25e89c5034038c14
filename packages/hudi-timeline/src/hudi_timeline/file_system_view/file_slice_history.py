"""File slice history: slices of some partitions at earlier instants, from one listing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hudi_format.log.corruption import CommittedRange
from hudi_format.model import BaseFile, FileSlice, LogFile, VisibleInstants, join_path
from hudi_format.storage.protocol import FileInfo
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slices import SliceBuilder, committed_logs, files_by_group
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

    def __init__(
        self, snapshot: TableSnapshot, partitions: Iterable[str], *, logs: bool, without: str = ""
    ) -> None:
        """History of some partitions.

        Args:
            logs: whether log files matter.
            without: the instant of a pending compaction whose plan is not gone by.
        """
        visible = snapshot.visible()
        known = _named(snapshot)
        self.compactions = frozenset(i.time for i in snapshot.timeline.pending(COMPACTION))
        builder = self._builder = SliceBuilder.of(snapshot, logs=logs, without=without)
        ranges = committed_logs(snapshot)[0] if logs else {}
        self.committed: Mapping[str, tuple[CommittedRange, ...]] = {
            p: tuple(r) for p, r in ranges.items() if r
        }
        listing = list_partition_files(snapshot.storage, partitions)
        self.sizes = {join_path(p, e.name): e.size for p, entries in listing.items() for e in entries}

        def counts(file: BaseFile | LogFile) -> bool:
            if isinstance(file, LogFile):
                return logs and builder.counts(file.instant)
            return file.instant in visible and not _is_stray(file, visible, known)

        bases, self._logs = files_by_group(listing, counts)
        self._bases = {group: {b.instant: b for b in own} for group, own in bases.items()}

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


def _named(snapshot: TableSnapshot) -> Collection[str]:
    """Paths of base files that active commits name, of those after the snapshot's instant too.

    Files of later instants are no leftovers: they end the slices before them.
    """
    return (snapshot if snapshot.as_of is None else snapshot.at(None)).written().paths


def _is_stray(file: BaseFile | LogFile, visible: VisibleInstants, known: Collection[str]) -> bool:
    """Whether it is a base file of an active commit that the commit does not name: a leftover of a task."""
    return isinstance(file, BaseFile) and file.instant in visible.completed and file.path not in known


# Every file slice of every file group, of completed instants: what the cleaner and savepoints choose among.

COMPACTIONS = (COMPACTION, LOG_COMPACTION)


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice, begun by `instant`; `names` are base, log and CDC file names, sorted."""

    instant: str
    names: tuple[str, ...]
    has_base: bool


def file_groups(
    snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]], builder: SliceBuilder
) -> tuple[dict[Group, list[Slice]], set[str]]:
    """Slices of each file group, newest first, and partitions with files of pending instants.

    Log files are in the slices that reads find them in.
    """
    visible = snapshot.visible()
    known = _named(snapshot)
    pending = {i.time for kind in COMPACTIONS for i in snapshot.timeline.pending(kind)}
    open_partitions: set[str] = set()

    def counts(file: BaseFile | LogFile) -> bool:
        if file.instant in visible or file.instant in pending:
            return True
        open_partitions.add(file.partition)
        return False

    bases, logs = files_by_group(listing, counts, cdc=True)
    groups: dict[Group, list[Slice]] = {}
    for group in {**bases, **logs}:
        begun: dict[str, list[str]] = {}
        own = bases.get(group, ())
        named = {b.instant for b in own if not _is_stray(b, visible, known)}
        if own and not named and group not in logs:
            continue
        for base in own:
            # What a task left goes with the file of the try that was committed; alone it is no slice: no read finds it.
            if base.instant not in named:
                continue
            begun.setdefault(base.instant, []).append(base.name)
        attached = builder.attached(group, begun, logs.get(group, ()))
        groups[group] = [
            Slice(
                instant, tuple(sorted([*begun.get(instant, ()), *(f.name for f in files)])), instant in begun
            )
            for instant, files in sorted(attached.items(), reverse=True)
            if files or instant in begun
        ]
    return groups, open_partitions


__all__ = ["FileHistory"]
