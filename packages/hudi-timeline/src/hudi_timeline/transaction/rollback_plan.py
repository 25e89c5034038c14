"""Rollback plan: files to delete, and log files whose blocks are rolled back.

A plan is a HoodieRollbackPlan: Apache Hudi executes ours, and we those that it made.  By markers, for a write that did
not complete; else by listing, what carries the write's instant and what its statistics name.  A merge-on-read write
appends to slices of earlier writes: these files stay, and a command block after them takes the blocks back.

Source: MarkerBasedRollbackStrategy and ListingBasedRollbackStrategy of Apache Hudi 0.15.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hudi_format.errors import CorruptFileError, PartitionPathError
from hudi_format.file_names import parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.keygen.partition_path import check_safe
from hudi_format.log.reader import LogFileReader
from hudi_format.model import LogFile, WriteStat, join_path
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.markers import Marker
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.avro_files import Record
from hudi_timeline.timeline.commit_metadata import CommitMetadata, read_commit
from hudi_timeline.timeline.instant import (
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REQUESTED,
    ROLLBACK,
    Instant,
    instant_path,
)

COMPACT = "COMPACT"

# Files changed within so long before a write was requested are looked into too: clocks of stores and writers differ.
_CLOCK_SLACK_MS = 10 * 60_000

_FILE_ID = re.compile(r"[^_/\\]{1,200}\Z")
_INSTANT = re.compile(r"[0-9]{1,20}\Z")

Files = Mapping[str, Sequence[FileInfo]]
"""Entries of files by partition."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    """A slice that gets a rollback block.

    Attributes:
        base_instant: of the slice.
        logs: what the plan says of the log files with the write's blocks: paths or names, and bytes.
    """

    partition: str
    file_id: str
    base_instant: str
    logs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Work:
    """Checked work of a plan; nothing leads out of the table or to other writes' files.

    Attributes:
        time, action: of the write that is undone.
        files: names of files to delete, by partition.
        logs: slices that get a command block.
    """

    time: str
    action: str
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    logs: tuple[LogRequest, ...] = ()

    @property
    def paths(self) -> list[str]:
        """Paths to delete, below the table."""
        return [join_path(p, n) for p, names in self.files.items() for n in names]


# --- making one ----------------------------------------------------------------------------------------


def make_plan(storage: Storage, timeline: Timeline, instant: Instant) -> Record:
    """Rollback plan of one write or compaction, completed or not.

    Raises:
        CorruptFileError: a marker names files outside the table, or the commit's metadata cannot be read.
    """
    if instant.completed or not markers.has_markers(storage, instant.time):
        # A writer that went past its requested state leaves markers before files.  Without them Apache Hudi plans
        # nothing; a listing also finds files of writers that did otherwise.
        requests = [] if instant.state == REQUESTED else by_listing(storage, timeline, instant)
    else:
        requests = by_markers(storage, instant.time)
    # A compaction that is undone after it was completed was a commit by then.
    action = instant.action if instant.action in (COMPACTION, LOG_COMPACTION) else instant.comparable_action
    return {
        "instantToRollback": {"commitTime": instant.time, "action": action},
        "RollbackRequests": requests,
        "version": 1,
    }


def by_markers(storage: Storage, instant: str) -> list[Record]:
    """A request per marked file, as Apache Hudi's strategy makes them."""
    requests = []
    for marker in markers.list_markers(storage, instant):
        request = _of_marker(storage, instant, marker)
        if request is not None:
            requests.append(request)
    return requests


def _of_marker(storage: Storage, instant: str, marker: Marker) -> Record | None:
    partition, name = marker.partition, marker.file_name
    base = parse_base_file(partition, name)
    if marker.io_type != markers.APPEND or parse_cdc_file(partition, name) is not None:
        file = base or parse_cdc_file(partition, name)
        if file is None or file.instant != instant:
            return None
        return _request(partition, file.file_id, file.instant, [f"{storage.uri}/{marker.path}"])
    log = parse_log_file(partition, name)
    if log is not None and log.instant == instant:
        # A slice that the write itself began: Apache Hudi appends a command block and leaves both files for ever.
        return _request(partition, log.file_id, log.instant, [f"{storage.uri}/{marker.path}"])
    if log is not None:
        return _request(partition, log.file_id, log.instant, logs={name: 1})
    if base is None:
        return None
    # Writers before 0.14 announced an append by the name of the slice's base file.
    found = [
        f
        for f in (parse_log_file(partition, e.name, e.size) for e in storage.list(partition))
        if f is not None and (f.file_id, f.instant) == (base.file_id, base.instant)
    ]
    if not found:
        return None
    newest = max(found, key=lambda f: (f.version, f.write_token))
    path = f"{storage.uri}/{newest.path}"
    if base.instant == instant:
        return _request(partition, base.file_id, base.instant, [path])
    return _request(partition, base.file_id, base.instant, logs={path: newest.size})


def by_listing(
    storage: Storage,
    timeline: Timeline,
    instant: Instant,
    *,
    restoring: bool = False,
    listed: Files | None = None,
) -> list[Record]:
    """Requests for listed files of the write and for those in its metadata.

    Args:
        restoring: everything after an instant is undone: also logs that later writes put on a slice that a compaction
            began go, because these writes go too.
        listed: files by partition, where the caller has them.
    """
    files = walk(storage) if listed is None else listed
    commit = read_commit(storage, instant) if instant.completed else CommitMetadata()
    compaction = instant.action in (COMPACTION,) or (
        instant.completed and instant.action == COMMIT and commit.operation == COMPACT
    )
    with_logs = restoring or not compaction
    found: dict[str, set[str]] = {}
    for partition, entries in files.items():
        for entry in entries:
            if _carries(partition, entry.name, instant.time, with_logs=with_logs) or (
                compaction and instant.completed and _is_spent(storage, timeline, partition, entry, instant)
            ):
                found.setdefault(partition, set()).add(entry.name)
    for stat in commit.stats:
        partition, _, name = stat.path.lstrip("/").rpartition("/")
        if not restoring and parse_base_file(partition, name) is None:
            continue
        if _carries(partition, name, instant.time, with_logs=with_logs):
            found.setdefault(partition, set()).add(name)
    appended: dict[str, list[Record]] = {}
    if instant.action in (DELTA_COMMIT, LOG_COMPACTION):
        if instant.completed:
            logs = [(log, stat.total_write_bytes or 1) for log, stat in _appended(commit.stats, instant.time)]
        else:
            logs = [(log, log.size) for log in _with_blocks_of(storage, timeline, files, instant)]
        for log, size in logs:
            key = f"{'file:' if storage.is_local else ''}{storage.uri}/{log.path}"
            request = _request(log.partition, log.file_id, log.instant, logs={key: size})
            appended.setdefault(log.partition, []).append(request)
    requests: list[Record] = []
    for partition in sorted({*found, *appended}):
        names = sorted(found.get(partition, ()))
        requests += [_request(partition, "", "", [f"{storage.uri}/{join_path(partition, n)}"]) for n in names]
        requests += appended.get(partition, [])
    return requests


def _carries(partition: str, name: str, instant: str, *, with_logs: bool) -> bool:
    """Whether a file was made by the instant, or belongs to a slice that it began."""
    base = parse_base_file(partition, name)
    if base is not None:
        return base.instant == instant
    if not with_logs:
        return False
    log = parse_log_file(partition, name) or parse_cdc_file(partition, name)
    return log is not None and log.instant == instant


def _is_spent(
    storage: Storage, timeline: Timeline, partition: str, entry: FileInfo, compaction: Instant
) -> bool:
    """Whether a log file on a compaction's slice has no committed data.

    Apache Hudi leaves such files.  Once the timeline has been archived past that instant, they would count as a slice
    of their own, without the rows of the one before.
    """
    log = parse_log_file(partition, entry.name, entry.size)
    if log is None or log.instant != compaction.time:
        return False
    done = {i.time for i in timeline.completed_writes()}
    with LogFileReader.open(storage, log.path) as reader:
        return not any(b.instant in done for b in reader.blocks)


def _appended(stats: Iterable[WriteStat], instant: str) -> list[tuple[LogFile, WriteStat]]:
    """Log files of earlier slices that a completed write appended to."""
    found: dict[str, tuple[LogFile, WriteStat]] = {}
    for stat in stats:
        partition, _, name = stat.path.lstrip("/").rpartition("/")
        log = parse_log_file(partition, name)
        if log is not None and log.instant < instant:
            found[log.path] = (log, stat)
    return list(found.values())


def _with_blocks_of(storage: Storage, timeline: Timeline, files: Files, instant: Instant) -> list[LogFile]:
    """Log files of earlier slices with blocks of an incomplete write.

    Nothing but the blocks themselves says which they are, where the markers are gone.
    """
    began = min((f.mtime_ms for f in timeline.files if f.time == instant.time), default=0)
    found = []
    for partition, entries in files.items():
        for entry in entries:
            log = parse_log_file(partition, entry.name, entry.size)
            if log is None or log.instant >= instant.time:
                continue
            if entry.mtime_ms and entry.mtime_ms < began - _CLOCK_SLACK_MS:
                continue
            with LogFileReader.open(storage, log.path) as reader:
                if any(b.instant == instant.time for b in reader.blocks):
                    found.append(log)
    return found


def _request(
    partition: str,
    file_id: str,
    base_instant: str,
    files: Sequence[str] = (),
    logs: Mapping[str, int] | None = None,
) -> Record:
    return {
        "partitionPath": partition,
        "fileId": file_id,
        "latestBaseInstant": base_instant,
        "filesToBeDeleted": list(files),
        "logBlocksToBeDeleted": dict(logs or {}),
    }


# --- reading one ---------------------------------------------------------------------------------------


def read_plan(storage: Storage, rollback: Instant) -> Record | None:
    """Plan of a rollback; None where it was never fully written, or has no target."""
    path = instant_path(rollback.time, ROLLBACK, REQUESTED)
    try:
        plan = avro_files.parse("HoodieRollbackPlan", storage.read(path), path=path)
    except (FileNotFoundError, CorruptFileError):
        return None
    named = plan.get("instantToRollback")
    # The time becomes part of names of files and folders.
    return plan if named and _INSTANT.match(str(named["commitTime"])) else None


def target_of(plan: Record) -> tuple[str, str]:
    """Time and action of the write in a rollback plan."""
    info = plan["instantToRollback"]
    return str(info["commitTime"]), str(info["action"])


def work_of(plan: Record) -> Work:
    """Checked work of a rollback plan.

    Plans hold absolute paths, which are stale once a table was moved: name and partition count.  A name that does
    not carry the target's instant is not deleted by anything the plan says.

    Raises:
        CorruptFileError: a partition or a slice outside the table.
    """
    target, action = target_of(plan)
    files: dict[str, list[str]] = {}
    slices: dict[tuple[str, str, str], dict[str, int]] = {}
    for request in plan.get("RollbackRequests") or ():
        partition = str(request.get("partitionPath") or "")
        try:
            check_safe(partition)
        except PartitionPathError:
            raise _not_below(target, f"the partition {partition!r}") from None
        for path in request.get("filesToBeDeleted") or ():
            name = str(path).rpartition("/")[2]
            if _carries(partition, name, target, with_logs=True):
                files.setdefault(partition, []).append(name)
        logs = request.get("logBlocksToBeDeleted")
        if logs:
            file_id, base = str(request.get("fileId") or ""), str(request.get("latestBaseInstant") or "")
            if not _FILE_ID.match(file_id) or not _INSTANT.match(base):
                raise _not_below(target, f"the slice {file_id!r} of {base!r}")
            slices.setdefault((partition, file_id, base), {}).update(
                (str(k), int(v)) for k, v in logs.items()
            )
    requests = tuple(LogRequest(*key, logs) for key, logs in slices.items())
    return Work(target, action, {p: sorted(set(n)) for p, n in sorted(files.items())}, requests)


def _not_below(target: str, what: str) -> CorruptFileError:
    return CorruptFileError(
        f"a rollback plan names {what}, which is not below the table",
        instant=target,
        remedy="delete the rollback's requested and inflight files; it is then planned anew.",
    )
