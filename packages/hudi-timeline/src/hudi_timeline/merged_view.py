"""The file slices that a merged read of a merge-on-read table sees: base files with their logs.

Table versions up to 6: the name of a log file says which slice it belongs to.

Source: spec "Queries", section 2; AbstractTableFileSystemView of Apache Hudi 0.15 (merged file slices).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hudi_format.errors import CorruptFileError
from hudi_format.log.damage import CommittedRange, committed_range
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.names import log_sort_key, parse_log_file
from hudi_format.storage import FileInfo
from hudi_timeline.instant import COMPACTION, REQUESTED, file_name
from hudi_timeline.metadata.avro_records import parse
from hudi_timeline.metadata.commit import stat_to_json
from hudi_timeline.snapshot import TableSnapshot, Written
from hudi_timeline.view import FileView, Group, WrittenFile, base_files, missing_file

CommittedLogs = Mapping[str, tuple[CommittedRange, ...]]
"""What completed instants of the active timeline say that they wrote, by path of the log file."""


def merged_slices(
    snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]], *, written: Written | None = None
) -> tuple[list[FileSlice], CommittedLogs]:
    """The newest slice of each file group, sorted by partition and file id.

    A slice that a pending compaction began is given together with the one before it: its logs hold what was
    written since.

    Raises:
        MissingFileError, CorruptFileError: a committed file is not there, or not as it was written.
    """
    written = written or snapshot.written()
    newest = snapshot.latest_of(FileView.of_listing(listing), list(listing), written=written)
    bases: dict[Group, BaseFile] = {(b.partition, b.file_id): b for b in base_files(newest)}
    logs = _logs(snapshot, listing, written)
    pending = pending_compactions(snapshot)
    committed, sizes = _committed_logs(snapshot)
    slices = []
    for group in sorted({*bases, *logs}):
        found = _slice_of(group, bases.get(group), logs.get(group, {}), pending.get(group, ""))
        if found is not None:
            slices.append(found)
    _check_there(slices, sizes, set(listing), snapshot.storage.uri)
    return slices, committed


def _slice_of(
    group: Group, base: BaseFile | None, logs: Mapping[str, Sequence[LogFile]], pending: str
) -> FileSlice | None:
    instants = {*logs} | ({base.instant} if base is not None else set())
    latest = max(instants)
    files = list(logs.get(latest, ()))
    before = instants - {latest}
    if latest == pending and before:
        latest = max(before)
        files = [*logs.get(latest, ()), *files]
    if base is not None and base.instant != latest:
        base = None
    if base is None and not files:
        return None
    return FileSlice(*group, latest, base, tuple(sorted(files, key=log_sort_key)))


def _logs(
    snapshot: TableSnapshot, listing: Mapping[str, Sequence[FileInfo]], written: Written
) -> dict[Group, dict[str, list[LogFile]]]:
    """Log files by group and base instant: those of slices that were begun by completed instants or compactions."""
    visible = snapshot.visible()
    compactions = {i.time for i in snapshot.timeline.pending(COMPACTION)}
    as_of = snapshot.as_of
    out: dict[Group, dict[str, list[LogFile]]] = {}
    for partition, entries in listing.items():
        for entry in entries:
            file = parse_log_file(partition, entry.name, entry.size)
            if file is None:
                continue
            if file.instant not in visible and file.instant not in compactions:
                continue
            if as_of is not None and file.instant > as_of:
                continue
            replaced = written.replaced.get((partition, file.file_id))
            if replaced is not None and (as_of is None or replaced <= as_of):
                continue
            out.setdefault((partition, file.file_id), {}).setdefault(file.instant, []).append(file)
    return out


def pending_compactions(snapshot: TableSnapshot) -> dict[Group, str]:
    """The instant of the pending compaction of each file group that is in a plan.

    Raises:
        CorruptFileError: a plan that cannot be read.
    """
    out: dict[Group, str] = {}
    storage = snapshot.storage
    for instant in snapshot.timeline.pending(COMPACTION):
        path = f".hoodie/{file_name(instant.time, COMPACTION, REQUESTED)}"
        try:
            data = storage.read(path)
        except FileNotFoundError:  # completed or taken back since the listing
            continue
        try:
            plan = parse("HoodieCompactionPlan", data, path=path)
        except CorruptFileError as e:
            raise e.at(table=storage.uri, instant=instant.time, file=path) from None
        for operation in plan.get("operations") or ():
            out[operation.get("partitionPath") or "", operation.get("fileId") or ""] = instant.time
    return out


def _committed_logs(
    snapshot: TableSnapshot,
) -> tuple[CommittedLogs, dict[Group, dict[str, list[WrittenFile]]]]:
    """Ranges by path, and the log files by group and base instant."""
    ranges: dict[str, list[CommittedRange]] = {}
    files: dict[Group, dict[str, list[WrittenFile]]] = {}
    for instant in snapshot.instants:
        for partition, stats in snapshot.commits.get(instant).partition_to_stats.items():
            for stat in stats:
                path = stat.path.lstrip("/")
                log = parse_log_file(partition, path.rpartition("/")[2])
                if log is None:
                    continue
                part = committed_range(instant.time, stat_to_json(stat))
                if part is not None:
                    ranges.setdefault(path, []).append(part)
                file = WrittenFile(path, stat.file_size_in_bytes, instant.time)
                files.setdefault((partition, log.file_id), {}).setdefault(log.instant, []).append(file)
    return {p: tuple(r) for p, r in ranges.items()}, files


def _check_there(
    slices: Iterable[FileSlice],
    written: Mapping[Group, Mapping[str, Sequence[WrittenFile]]],
    listed: set[str],
    uri: str,
) -> None:
    """Raise MissingFileError where a log file that a commit wrote into one of the slices was not listed."""
    found: dict[Group, FileSlice] = {(s.partition, s.file_id): s for s in slices}
    for group, by_instant in written.items():
        if group[0] not in listed or group not in found:
            continue
        file_slice = found[group]
        paths = {f.path for f in file_slice.log_files}
        for base_instant, files in by_instant.items():
            if base_instant < file_slice.base_instant:
                continue
            for file in files:
                if file.path not in paths:
                    raise missing_file(file, uri)
