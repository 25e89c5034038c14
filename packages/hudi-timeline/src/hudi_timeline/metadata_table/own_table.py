"""The metadata table as a table of its own: where the next log file of a file group goes.

Its own listing is always that of its folders, so that nothing of it is looked up in itself.

Source: spec "Metadata table", sections 1, 2 and 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hudi_format.errors import CorruptFileError, NotAHudiTableError
from hudi_format.file_names import log_sort_key, parse_base_file, parse_log_file
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency.locks.provider import verify_held
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.snapshot import TableSnapshot, load_snapshot
from hudi_timeline.metadata_config import FOLDER, own_storage
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import COMMIT, COMPACTION, Instant

COMPACTION_SUFFIX, CLEAN_SUFFIX, ROLLBACK_SUFFIX = "001", "002", "006"
"""What instants of the metadata table's own actions have behind the instant of the table that they follow."""
FIRST_INITIALISATION = 10
EMPTY_TABLE = "00000000000000"
"""Stands for the last instant of a table that has none."""


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A metadata table at one moment.

    Attributes:
        storage: its own.
        snapshot: configuration and timeline.
    """

    storage: Storage
    snapshot: TableSnapshot

    @property
    def timeline(self) -> Timeline:
        return self.snapshot.timeline

    @property
    def last_compaction(self) -> str:
        """Instant of its newest completed compaction; "" before the first."""
        done = [i.time for i in self.timeline.completed_writes() if i.action == COMMIT]
        return max(done, default="")

    def deltas_since_compaction(self) -> tuple[Instant, ...]:
        """Completed delta commits that no compaction has merged, oldest first."""
        last = self.last_compaction
        return tuple(i for i in self.timeline.completed_writes() if i.action != COMMIT and i.time > last)

    def slices(self, partitions: Iterable[str]) -> dict[tuple[str, str], FileSlice]:
        """Newest file slice of each file group, by partition and file id.

        That of a pending compaction has begun: it has no base file, and gets the next log files.
        """
        return {group: found[-1] for group, found in self.every_slice(partitions).items()}

    def every_slice(self, partitions: Iterable[str]) -> dict[tuple[str, str], list[FileSlice]]:
        """File slices of each file group, oldest first; files of failed instants do not count."""
        pending = {i.time for i in self.timeline.pending(COMPACTION)}
        known = self.timeline.visible()
        bases: dict[tuple[str, str], dict[str, BaseFile]] = {}
        logs: dict[tuple[str, str], dict[str, list[LogFile]]] = {}
        for partition, entries in list_partition_files(self.storage, partitions).items():
            for entry in entries:
                base = parse_base_file(partition, entry.name, entry.size)
                log = None if base is not None else parse_log_file(partition, entry.name, entry.size)
                if base is not None and base.instant in known:
                    bases.setdefault((partition, base.file_id), {})[base.instant] = base
                elif log is not None and (log.instant in known or log.instant in pending):
                    logs.setdefault((partition, log.file_id), {}).setdefault(log.instant, []).append(log)
        out: dict[tuple[str, str], list[FileSlice]] = {}
        for group in sorted({*bases, *logs}):
            begun = {*bases.get(group, {}), *logs.get(group, {}), *pending}
            out[group] = [
                FileSlice(
                    *group,
                    time,
                    bases.get(group, {}).get(time),
                    tuple(sorted(logs.get(group, {}).get(time, ()), key=log_sort_key)),
                )
                for time in sorted(begun)
            ]
        return out


def open_own(storage: Storage) -> OwnTable:
    """The metadata table of a table, under the table's lock.

    Raises:
        LockError: there is none any more, and the lock is another's.
        NotAHudiTableError, CorruptFileError: there is none, or it cannot be read.
    """
    own = own_storage(storage)
    try:
        return OwnTable(own, load_snapshot(own))
    except NotAHudiTableError:
        verify_held()  # whoever has the lock now may have dropped it
        raise


def own_if_there(storage: Storage) -> OwnTable | None:
    """The metadata table as `open_own`; None where there is none, as after others dropped it."""
    try:
        return open_own(storage)
    except NotAHudiTableError:
        return None


def merged(slices: Mapping[tuple[str, str], list[FileSlice]], before: str) -> list[FileSlice]:
    """One slice per file group with all that was written to it before a compaction.

    Args:
        before: the compaction's instant; its own slice is left out.

    Raises:
        CorruptFileError: a file group without any file of that time.
    """
    out = []
    for (partition, file_id), of in slices.items():
        earlier = [s for s in of if s.base_instant < before]
        if not earlier:
            raise CorruptFileError(
                f"the file group {file_id} of the metadata table has no files before {before}",
                file=f"{FOLDER}/{partition}",
            )
        first = max((n for n, s in enumerate(earlier) if s.base_file is not None), default=0)
        logs = tuple(log for s in earlier[first:] for log in s.log_files)
        out.append(FileSlice(partition, file_id, earlier[first].base_instant, earlier[first].base_file, logs))
    return out
