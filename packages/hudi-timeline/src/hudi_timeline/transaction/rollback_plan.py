"""Rollback plan: files to delete, and log files whose blocks are rolled back.

A plan is a HoodieRollbackPlan: Apache Hudi executes ours, and we those that it made.  By markers, for a write that did
not complete; else by listing, what carries the write's instant and what its statistics name.  A merge-on-read write
appends to slices of earlier writes: these files stay, and a command block after them takes the blocks back.

Source: MarkerBasedRollbackStrategy and ListingBasedRollbackStrategy of Apache Hudi 0.15.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from hudi_format.errors import CorruptFileError, PartitionPathError
from hudi_format.file_names import parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.keygen.partition_path import check_safe
from hudi_format.log.reader import LogFileReader
from hudi_format.model import LogFile, WriteStat, join_path
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.markers import Marker
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.timeline.action_metadata import InstantName, RollbackPlan, RollbackRequest, parse_action
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.commit_metadata import COMPACT, CommitMetadata, read_commit
from hudi_timeline.timeline.instant import (
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REQUESTED,
    ROLLBACK,
    Instant,
)

CLOCK_SLACK_MS = 10 * 60_000
"""Files changed so long before a write was requested are looked into too: clocks of stores and writers differ."""

_FILE_ID = re.compile(r"[^_/\\]{1,200}\Z")
_INSTANT = re.compile(r"[0-9]{1,20}\Z")

Files = Mapping[str, Sequence[FileInfo]]
"""Entries of files by partition."""


# --- making one ----------------------------------------------------------------------------------------


def make_rollback_plan(storage: Storage, timeline: Timeline, instant: Instant) -> RollbackPlan:
    """Rollback plan of one write or compaction, completed or not.

    Raises:
        CorruptFileError: a marker names files outside the table, or the commit's metadata cannot be read.
    """
    if instant.completed or not markers.has_markers(storage, instant.time):
        # A writer that went past its requested state leaves markers before files.  Without them Apache Hudi plans
        # nothing; a listing also finds files of writers that did otherwise.
        requests = () if instant.state == REQUESTED else by_listing(storage, timeline, instant)
    else:
        requests = by_markers(storage, instant.time)
    # A compaction that is undone after it was completed was a commit by then.
    action = instant.action if instant.action in (COMPACTION, LOG_COMPACTION) else instant.comparable_action
    return RollbackPlan(InstantName(instant.time, action), requests)


def by_markers(storage: Storage, instant: str) -> tuple[RollbackRequest, ...]:
    """A request per marked file, as Apache Hudi's strategy makes them."""
    found = (_of_marker(storage, instant, marker) for marker in markers.list_markers(storage, instant))
    return tuple(request for request in found if request is not None)


def _of_marker(storage: Storage, instant: str, marker: Marker) -> RollbackRequest | None:
    partition, name = marker.partition, marker.file_name
    base = parse_base_file(partition, name)
    if marker.io_type != markers.APPEND or parse_cdc_file(partition, name) is not None:
        file = base or parse_cdc_file(partition, name)
        if file is None or file.instant != instant:
            return None
        return RollbackRequest(partition, file.file_id, file.instant, (f"{storage.uri}/{marker.path}",))
    log = parse_log_file(partition, name)
    if log is not None and log.instant == instant:
        # A slice that the write itself began: Apache Hudi appends a command block and leaves both files for ever.
        return RollbackRequest(partition, log.file_id, log.instant, (f"{storage.uri}/{marker.path}",))
    if log is not None:
        return RollbackRequest(partition, log.file_id, log.instant, log_blocks={name: 1})
    if base is None:
        return None
    # Writers before 0.14 announced an append by the name of the slice's base file.
    found = logs_of_slice(storage, partition, base.file_id, base.instant)
    if not found:
        return None
    newest = max(found, key=lambda f: (f.version, f.write_token))
    path = f"{storage.uri}/{newest.path}"
    if base.instant == instant:
        return RollbackRequest(partition, base.file_id, base.instant, (path,))
    return RollbackRequest(partition, base.file_id, base.instant, log_blocks={path: newest.size})


def logs_of_slice(storage: Storage, partition: str, file_id: str, instant: str) -> list[LogFile]:
    """Log files of a file slice, in no order."""
    listed = (parse_log_file(partition, e.name, e.size) for e in storage.list(partition))
    return [f for f in listed if f is not None and (f.file_id, f.instant) == (file_id, instant)]


def log_uri(storage: Storage, path: str) -> str:
    """URI of a log file as plans and metadata of rollbacks name it."""
    return f"{'file:' if storage.is_local else ''}{storage.uri}/{path}"


def by_listing(
    storage: Storage,
    timeline: Timeline,
    instant: Instant,
    *,
    restoring: bool = False,
    listed: Files | None = None,
) -> tuple[RollbackRequest, ...]:
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
    appended: dict[str, list[RollbackRequest]] = {}
    if instant.action in (DELTA_COMMIT, LOG_COMPACTION):
        if instant.completed:
            logs = [(log, stat.total_write_bytes or 1) for log, stat in _appended(commit.stats, instant.time)]
        else:
            logs = [(log, log.size) for log in _with_blocks_of(storage, timeline, files, instant)]
        for log, size in logs:
            blocks = {log_uri(storage, log.path): size}
            request = RollbackRequest(log.partition, log.file_id, log.instant, log_blocks=blocks)
            appended.setdefault(log.partition, []).append(request)
    requests: list[RollbackRequest] = []
    for partition in sorted({*found, *appended}):
        names = sorted(found.get(partition, ()))
        requests += [
            RollbackRequest(partition, "", "", (f"{storage.uri}/{join_path(partition, n)}",)) for n in names
        ]
        requests += appended.get(partition, [])
    return tuple(requests)


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
            if entry.mtime_ms and entry.mtime_ms < began - CLOCK_SLACK_MS:
                continue
            with LogFileReader.open(storage, log.path) as reader:
                if any(b.instant == instant.time for b in reader.blocks):
                    found.append(log)
    return found


# --- reading one ---------------------------------------------------------------------------------------


def read_plan(storage: Storage, rollback: Instant) -> RollbackPlan | None:
    """Plan of a rollback; None where it was never fully written, or has no target."""
    try:
        plan = parse_action(ROLLBACK, REQUESTED, storage.read(rollback.path_in(REQUESTED)))
    except (FileNotFoundError, CorruptFileError):
        return None
    assert isinstance(plan, RollbackPlan)
    # The time becomes part of names of files and folders.
    return plan if plan.target is not None and _INSTANT.match(plan.target.time) else None


def target_of(plan: RollbackPlan) -> InstantName:
    """Target of a rollback plan."""
    if plan.target is None:
        raise ValueError("a rollback plan without an instant")
    return plan.target


def files_to_delete(plan: RollbackPlan) -> dict[str, list[str]]:
    """Names of the files that a plan deletes, by partition.

    Paths are stale once a table was moved: name and partition count.  A name that does not carry the target's instant
    is not deleted by anything the plan says.

    Raises:
        CorruptFileError: a partition outside the table.
    """
    target = target_of(plan).time
    files: dict[str, set[str]] = {}
    for request in plan.requests:
        _check_partition(request, target)
        for path in request.files:
            name = path.rpartition("/")[2]
            if _carries(request.partition, name, target, with_logs=True):
                files.setdefault(request.partition, set()).add(name)
    return {p: sorted(names) for p, names in sorted(files.items())}


def paths_to_delete(plan: RollbackPlan) -> list[str]:
    """Paths below the table of the files that a plan deletes; errors as `files_to_delete`."""
    return [join_path(p, n) for p, names in files_to_delete(plan).items() for n in names]


def command_requests(plan: RollbackPlan) -> tuple[RollbackRequest, ...]:
    """The slices that get a command block, each once.

    Raises:
        CorruptFileError: a partition or a slice outside the table.
    """
    target = target_of(plan).time
    slices: dict[tuple[str, str, str], dict[str, int]] = {}
    for request in plan.requests:
        _check_partition(request, target)
        if request.log_blocks:
            file_id, base = request.file_id, request.base_instant
            if not _FILE_ID.match(file_id) or not _INSTANT.match(base):
                raise _not_below(target, f"the slice {file_id!r} of {base!r}")
            slices.setdefault((request.partition, file_id, base), {}).update(request.log_blocks)
    return tuple(RollbackRequest(*key, log_blocks=logs) for key, logs in slices.items())


def check_plan(plan: RollbackPlan) -> None:
    """Raise CorruptFileError where a plan leads out of the table."""
    files_to_delete(plan)
    command_requests(plan)


def _check_partition(request: RollbackRequest, target: str) -> None:
    try:
        check_safe(request.partition)
    except PartitionPathError:
        raise _not_below(target, f"the partition {request.partition!r}") from None


def _not_below(target: str, what: str) -> CorruptFileError:
    return CorruptFileError(
        f"a rollback plan names {what}, which is not below the table",
        instant=target,
        remedy="delete the rollback's requested and inflight files; it is then planned anew.",
    )
