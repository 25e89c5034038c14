"""Every file slice of every file group, of completed instants: what the cleaner and savepoints choose among."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudi_format.names import parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.storage import FileInfo
from hudi_timeline.instant import COMPACTION, LOG_COMPACTION
from hudi_timeline.snapshot import TableSnapshot
from hudi_timeline.view import Group

COMPACTIONS = (COMPACTION, LOG_COMPACTION)


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice: `instant` began it; `names` are its base files, log files and files of changes."""

    instant: str
    names: tuple[str, ...]
    has_base: bool


def file_groups(
    snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]]
) -> tuple[dict[Group, list[Slice]], set[str]]:
    """The slices of each file group, newest first; and the partitions that hold files of open instants."""
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
