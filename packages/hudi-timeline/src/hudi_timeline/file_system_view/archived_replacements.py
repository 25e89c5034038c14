"""Replacements that were archived while files that they replaced were still there.

The active timeline says which file groups were replaced, and cleaning takes their files before archival takes the
instant.  Apache Hudi takes an instant seconds before it shows it: a cleaning may be past an overwrite that is not there
yet, after which nothing cleans what it replaced and nothing keeps it from being archived.  Apache Hudi then reads the
replaced rows beside the new ones.  Here the archive is asked: a file group that an archived instant replaced, and into
which nothing was written since, is no part of the table, and a cleaning deletes its files.

A cleaning that has looked through the archive leaves a mark in its folder, so that reads open what is newer only.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.file_names import parse_slice_file
from hudi_format.keygen.partition_path import is_safe
from hudi_format.model import LogFile
from hudi_format.storage.parallel import on_threads
from hudi_format.storage.protocol import FileInfo
from hudi_timeline.file_system_view.base_files import FileView, Group
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.restores import Restores
from hudi_timeline.timeline.active_timeline import HFILE

if TYPE_CHECKING:
    from hudi_timeline.file_system_view.snapshot import TableSnapshot

_log = logging.getLogger("hudi")

MOST_BYTES = 8 << 20
"""Of a long archive that no cleaning of ours has looked through, a read opens the newest file, and more up to this."""
MOST_FILES = 64
"""And so many files: each is a few requests to an object store."""

_MARK = re.compile(r"\.replaced_cleaned_(\d{1,19})_(\d{1,19})\Z")
_ARCHIVE = re.compile(r"\.commits_\.archive\.\d+_.*\Z|\d+_\d+_\d+\.parquet\Z")

Replacements = tuple[tuple[str, frozenset[Group]], ...]
"""What a file of the archive says: instants, and the file groups that each replaced."""


class ArchivedReplacements(NamedTuple):
    """Archived replacements of file groups whose files may be there still.

    Attributes:
        groups: the archived instant that replaced a file group.
        mark: the name of the mark that says that all of this was cleaned; "" where it is there, or not all of the
            archive was looked at.
    """

    groups: Mapping[Group, str]
    mark: str = ""


def archived_replacements(snapshot: TableSnapshot, *, everything: bool = False) -> ArchivedReplacements:
    """The archived replacements since the last mark.

    What cannot be read of the archive is passed over with a warning, as it says nothing of most tables' files.

    Args:
        everything: whether archives are opened however long they are.
    """
    if snapshot.config.base_file_format == HFILE:  # the metadata table replaces nothing
        return ArchivedReplacements({})
    storage = snapshot.storage
    entries = storage.list(snapshot.config.history_folder)
    files = [e for e in entries if not e.is_dir and e.size != 0 and _ARCHIVE.match(e.name)]
    unread = _since_mark(files, entries)
    if not unread:
        return ArchivedReplacements({})
    groups: dict[Group, str] = {}
    chosen: list[FileInfo] = []
    left = MOST_BYTES
    for entry in sorted(unread, key=lambda e: (e.mtime_ms, len(e.name), e.name), reverse=True):
        left -= max(entry.size, 0)
        if not everything and ((left < 0 and chosen) or len(chosen) == MOST_FILES):
            break
        chosen.append(entry)
    is_whole = len(chosen) == len(unread)
    visible, restores = snapshot.visible(), Restores.of(snapshot.storage, snapshot.timeline)
    for found in on_threads(storage, lambda e: _read_or_warn(snapshot, e), chosen):
        if found is None:
            is_whole = False
            continue
        for time, replaced in found:
            # A snapshot that is held for long is of a state before what was completed and archived since.
            if time in visible and not restores.undid(time):
                groups.update((g, time) for g in replaced if groups.get(g, "") < time and is_safe(g[0]))
    return ArchivedReplacements(groups, _mark_of(files) if is_whole else "")


def archived_left(snapshot: TableSnapshot) -> ArchivedReplacements:
    """The archived replacements since the last mark of file groups whose files are there still.

    All of the archive since then is opened.
    """
    groups, mark = archived_replacements(snapshot, everything=True)
    listing = list_partition_files(snapshot.storage, {partition for partition, _ in groups})
    files = [parse_slice_file(p, e.name) for p, of in listing.items() for e in of]
    there = {(f.partition, f.file_id) for f in files if f is not None}
    logs = _by_group(f for f in files if isinstance(f, LogFile))
    left = _not_written_since(snapshot, groups, FileView.of_listing(listing), logs)
    return ArchivedReplacements({g: at for g, at in left.items() if g in there}, mark)


def with_archived(
    snapshot: TableSnapshot,
    replaced: Mapping[Group, str],
    view: FileView,
    logs: Mapping[Group, Iterable[LogFile]] | None = None,
) -> Mapping[Group, str]:
    """Replaced file groups of the active timeline and, of the files at hand, of the archive.

    Args:
        replaced: by instants of the active timeline.
        view: base files.
        logs: log files.
    """
    logs = logs or {}
    first = snapshot.timeline.first_active
    if not (view.has_older(first) or any(f.instant < first for files in logs.values() for f in files)):
        return replaced
    groups = snapshot.archived_replacements.groups
    if not groups:
        return replaced
    return {**_not_written_since(snapshot, groups, view, logs), **replaced}


def _not_written_since(
    snapshot: TableSnapshot,
    groups: Mapping[Group, str],
    view: FileView,
    logs: Mapping[Group, Iterable[LogFile]],
) -> dict[Group, str]:
    """The replaced file groups that have no visible file of a later instant."""
    visible = snapshot.visible()
    found = view.instants_of({file_id for _, file_id in groups})
    found += [(g, f.instant) for g, files in logs.items() for f in files]
    since = {g for g, instant in found if instant >= groups.get(g, "~") and instant in visible}
    return {g: at for g, at in groups.items() if g not in since}


def _by_group(logs: Iterable[LogFile]) -> dict[Group, list[LogFile]]:
    out: dict[Group, list[LogFile]] = {}
    for file in logs:
        out.setdefault((file.partition, file.file_id), []).append(file)
    return out


def is_mark(name: str) -> bool:
    """Whether a file of the archive's folder is a cleaning's mark."""
    return _MARK.match(name) is not None


def _mark_of(files: Sequence[FileInfo]) -> str:
    return f".replaced_cleaned_{max(e.mtime_ms for e in files)}_{sum(e.size for e in files)}"


def _since_mark(files: Sequence[FileInfo], entries: Iterable[FileInfo]) -> list[FileInfo]:
    """The archive's files that are newer than the mark; stores tell times by the second, hence the bytes."""
    marks = [m for m in (_MARK.match(e.name) for e in entries) if m is not None]
    if not marks:
        return list(files)
    at, size = max((int(m[1]), int(m[2])) for m in marks)
    # A clock that was set back, or a copied file, has put something before the mark since.
    exact = sum(e.size for e in files if e.mtime_ms <= at) <= size
    return [e for e in files if e.mtime_ms > at] if exact else list(files)


def _read_or_warn(snapshot: TableSnapshot, entry: FileInfo) -> Replacements | None:
    try:
        return _read(snapshot, entry)
    except (CorruptFileError, MissingFileError, UnsupportedError) as e:
        _log.warning("%s: which archived instants replaced files is not known: %s", snapshot.storage.uri, e)
        return None


def _read(snapshot: TableSnapshot, entry: FileInfo) -> Replacements:
    from hudi_timeline.timeline.archived_timeline import replacements_in  # few reads need the archive

    known = snapshot.commits.archived
    key = (entry.name, entry.size, entry.mtime_ms)
    found = known.get(key)
    if found is None:
        path = f"{snapshot.config.history_folder}/{entry.name}"
        found = known[key] = tuple(
            (time, did.replaced_groups)
            for time, did in replacements_in(snapshot.storage, snapshot.config, path)
        )
    return found
