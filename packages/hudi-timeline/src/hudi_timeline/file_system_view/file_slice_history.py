"""File slice history: slices of some partitions at earlier instants, from one listing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hudi_format.file_names import parse_base_file, parse_log_file
from hudi_format.fork_safe import cached_property
from hudi_format.log.corruption import CommittedRange
from hudi_format.model import BaseFile, FileSlice, LogFile, VisibleInstants, join_path
from hudi_format.storage.protocol import FileInfo
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slices import SliceBuilder, committed_logs, files_by_group
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.restores import Restores
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import COMPACTION, LOG_COMPACTION, WRITE_ACTIONS


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
        self._snapshot = snapshot
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

    def before(self, group: Group, instant: str, begun: str = "") -> FileSlice | None:
        """Newest slice of a group before an instant; None where there is none.

        Before means that it was begun earlier, and its log files may hold blocks of later instants; from table
        version 8 on that all of it was completed earlier.

        Args:
            begun: as of `slice_named`, for a commit that wrote before the table came to version 8.
        """
        bases, logs = self._bases.get(group, {}), self._logs.get(group, ())
        if begun:
            bases = {i: b for i, b in bases.items() if i <= begun}
            return self._builder.newest(group, bases, [f for f in logs if f.instant <= begun])
        # An upgrade takes times of modification for those of completion, of which several may be the same.
        at = self._at(instant)
        bases = {i: b for i, b in bases.items() if self._at(i) < at}
        return self._builder.newest(group, bases, [f for f in logs if self._at(f.instant) < at])

    def _at(self, instant: str) -> tuple[str, str]:
        return self._builder.time_of(instant), instant

    def shared(self, one: FileSlice) -> bool:
        """Whether a log file of a slice may have blocks of other commits than the one in its name."""
        ranges = ((f, self.committed.get(f.path)) for f in one.log_files)
        return any(not of or any(r.instant != f.instant for r in of) for f, of in ranges)

    def replaced(self, group: Group, instant: str) -> FileSlice | None:
        """Slice of a group that an instant replaced; None where it is not there any more.

        A cleaning takes all slices of a replaced group but those that savepoints keep, which are older ones then.

        Raises:
            CorruptFileError, MissingFileError, UnsupportedError: the archive cannot be read, which is opened where no
                active commit wrote to the group.
        """
        found = self.before(group, instant)
        if found is None:
            return None
        at = self._at(instant)
        written = [w for w in self._written.get(group, ()) if w[0] < at]
        first = self._snapshot.timeline.first_active
        if not written and found.base_instant < first:
            written = self._archived.get(group, [])
        if not written:
            return found
        _, began, name = max(written)
        if began:
            return found if found.base_instant >= began else None
        return found if any(f.name == name for f in found.log_files) else None

    def lost(self, group: Group, instant: str, found: FileSlice | None) -> str:
        """Name of a committed file that the slice before an instant lacks, or "".

        Active commits tell it: from table version 8 on the statistics of a log file name neither its base file nor the
        log files before it.
        """
        if not self._snapshot.config.version.names_logs_by_own_instant:
            return ""
        at = self._at(instant)
        written = [w for w in self._written.get(group, ()) if w[0] < at]
        began, base = max((w[1:] for w in written), default=("", ""))
        have = None if found is None else found.base_file
        if began and (have is None or have.instant < began):
            return base
        there = {f.name for f in found.log_files} if found is not None else set()
        logs = (name for (time, _), base_of, name in written if not base_of and time >= began)
        return next((n for n in logs if n not in there and parse_log_file(group[0], n) is not None), "")

    @cached_property
    def _written(self) -> dict[Group, list[_Write]]:
        """What active commits wrote to each group."""
        instants = self._snapshot.instants
        out: dict[Group, list[_Write]] = {}
        for instant, commit in zip(instants, self._snapshot.commits.files(instants), strict=True):
            for partition, file_id, path, _, _ in commit.files:
                out.setdefault((partition, file_id), []).append(_write(self._at(instant.time), path))
        return out

    @cached_property
    def _archived(self) -> dict[Group, list[_Write]]:
        """What archived commits wrote to each group."""
        from hudi_timeline.timeline.archived_timeline import archived_actions  # few reads need the archive

        snapshot, out = self._snapshot, dict[Group, list[_Write]]()
        visible, restores = snapshot.visible(), Restores.of(snapshot.storage, snapshot.timeline)
        for instant, did in archived_actions(snapshot.storage, snapshot.config, frozenset(WRITE_ACTIONS)):
            if (
                not isinstance(did, CommitMetadata)
                or instant.time not in visible
                or restores.undid(instant.time)
            ):
                continue
            for stat in did.stats:
                if stat.path:
                    out.setdefault((stat.partition, stat.file_id), []).append(
                        _write((instant.time, instant.time), stat.path)
                    )
        return out


_Write: TypeAlias = tuple[tuple[str, str], str, str]
"""When a file was completed, and its commit; the instant of a base file, or ""; its name."""


def _write(at: tuple[str, str], path: str) -> _Write:
    name = path.rpartition("/")[2]
    base = parse_base_file("", name)
    return at, "" if base is None else base.instant, name


def slice_named(instant: str, paths: Iterable[str]) -> str:
    """Instant in the names of a commit's log files, where it is that of their slice.

    It is so up to table version 6.  Such a file holds blocks of several commits, so that what was there before one of
    them is told by blocks.

    Args:
        paths: of the files that the commit wrote to a file group.

    Returns:
        "" where they have the commit's own instant, or are no log files.
    """
    logs = (parse_log_file("", path.rpartition("/")[2]) for path in paths)
    return next((f.instant for f in logs if f is not None and f.instant != instant), "")


def latest_before(instant: str) -> str:
    """The latest instant before a commit: the largest smaller one of the same length."""
    return f"{int(instant) - 1:0{len(instant)}d}"


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
        if file.instant not in visible.overwritten:
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
