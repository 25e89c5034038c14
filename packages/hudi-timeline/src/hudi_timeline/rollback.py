"""Undo a write that did not complete: its files, then its instants, on record as a rollback instant.

    plan -> <r>.rollback.requested -> .inflight -> delete data files -> delete the target's instant files
    -> <r>.rollback -> delete its markers and heartbeat

Every step may be the last one of a process: the plan says what is left to do, each step may be repeated, and
markers go last.  The caller holds the table's lock.

Source: BaseRollbackActionExecutor and MarkerBasedRollbackStrategy of Apache Hudi 0.15.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from hudi_format import properties
from hudi_format.errors import CorruptFileError, PartitionPathError, UnsupportedError
from hudi_format.model import join_path
from hudi_format.names import PARTITION_METADATA, parse_base_file
from hudi_format.partition_path import check_safe
from hudi_format.storage import Storage
from hudi_timeline import heartbeat, markers
from hudi_timeline.clock import new_instant
from hudi_timeline.instant import (
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    ROLLBACK,
    WRITE_ACTIONS,
    Instant,
    instant_path,
)
from hudi_timeline.metadata import avro_records
from hudi_timeline.metadata.avro_records import Record
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline import Timeline, load_timeline

# Deletes are round trips on object stores; few are not worth a pool of threads.
_POOL_FROM = 64
_POOL_SIZE = 16


def rollback_instant(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    instant: Instant,
    *,
    now: Callable[[], float] = time.time,
) -> str:
    """Undo a pending write and return the rollback's instant time.

    A rollback of the same write that was begun and not finished is finished under its own time.

    Args:
        timeline: loaded under the lock.

    Raises:
        UnsupportedError: the write is completed, or its rollback needs log files.
        CorruptFileError: a marker or plan names files outside the table.
    """
    if instant.completed or instant.action not in WRITE_ACTIONS:
        raise UnsupportedError(
            f"only a pending write can be rolled back, not {instant}",
            table=storage.uri,
            instant=instant.time,
            remedy="roll it back with Apache Hudi.",
        )
    for pending in timeline.pending(ROLLBACK):
        plan = _read_plan(storage, pending)
        if plan is not None and _target(plan)[0] == instant.time:
            _execute(storage, pending.time, plan)
            return pending.time
    plan = _plan(storage, timeline, instant)
    content = avro_records.render("HoodieRollbackPlan", plan)
    while True:
        time_ = new_instant(timeline, config, now, table=storage.uri)
        try:
            storage.create(instant_path(time_, ROLLBACK, REQUESTED), content)
        except FileExistsError:  # taken by a writer without our lock; the next millisecond is free
            continue
        _execute(storage, time_, plan)
        return time_


def finish_pending(storage: Storage, config: TableConfig, timeline: Timeline) -> Timeline:
    """Finish every rollback that a process left half done, and return the timeline afterwards.

    One whose plan cannot be read is withdrawn: its target, if it is still there, is rolled back anew.
    """
    pending = timeline.pending(ROLLBACK)
    for rollback in pending:
        plan = _read_plan(storage, rollback)
        if plan is None:
            storage.delete(instant_path(rollback.time, ROLLBACK, INFLIGHT))
            storage.delete(instant_path(rollback.time, ROLLBACK, REQUESTED))
            continue
        time_, action = _target(plan)
        if timeline.has_file(f"{time_}.{action}"):
            raise UnsupportedError(
                f"rollback {rollback.time} of the completed {action} {time_} was begun and not finished",
                table=storage.uri,
                instant=rollback.time,
                remedy="finish the rollback with Apache Hudi, then run the write again.",
            )
        _execute(storage, rollback.time, plan)
    return load_timeline(storage, config) if pending else timeline


def remove_leftovers(storage: Storage, instant: str) -> None:
    """Delete what markers say of an instant that is not on the timeline: files of tasks that outlived it."""
    if markers.has_markers(storage, instant):
        found = markers.base_files(markers.list_markers(storage, instant), instant)
        delete_files(storage, [m.path for m in found])
        markers.delete(storage, instant)
    heartbeat.delete(storage, instant)


def withdraw(storage: Storage, instant: Instant) -> bool:
    """Take back a write of this process that is to leave no trace, and say whether that was possible.

    Its data files, the folders that it made for them, its instant files, its markers: in this order, so that a crash
    on the way leaves what the next writer rolls back.  Not for writes to log files, whose readers need the record.
    """
    found = markers.list_markers(storage, instant.time)
    if any(m.io_type == markers.APPEND for m in found):
        return False
    files = markers.base_files(found, instant.time)
    delete_files(storage, [m.path for m in files])
    for partition in sorted({m.partition for m in files}, reverse=True):
        _remove_own_folder(storage, partition, instant.time)
    storage.delete(instant_path(instant.time, instant.comparable_action, INFLIGHT))
    storage.delete(instant_path(instant.time, instant.comparable_action, REQUESTED))
    markers.delete(storage, instant.time)
    heartbeat.delete(storage, instant.time)
    return True


def _remove_own_folder(storage: Storage, partition: str, instant: str) -> None:
    """Remove a partition's folder if the instant made it and nothing else is in it, and parents left empty by that."""
    path = join_path(partition, PARTITION_METADATA)
    try:
        made_by = properties.parse(storage.read(path)).get("commitTime")
    except FileNotFoundError:
        return
    others = [e for e in storage.list(partition) if e.name != PARTITION_METADATA]
    if made_by != instant or others:
        return
    storage.delete(path)
    folder = partition
    while folder and not storage.list(folder):
        storage.delete_dir(folder)
        folder = folder.rpartition("/")[0]


# --- plan ----------------------------------------------------------------------------------------------


def _plan(storage: Storage, timeline: Timeline, instant: Instant) -> Record:
    """What undoing the write takes, as Apache Hudi writes it down."""
    files: dict[str, list[str]] = {}
    if markers.has_markers(storage, instant.time):
        found = markers.list_markers(storage, instant.time)
        appended = next((m for m in found if m.io_type == markers.APPEND), None)
        if appended is not None:
            raise UnsupportedError(
                f"the failed write appended to log files ({appended.path}), which cannot be undone yet",
                table=storage.uri,
                instant=instant.time,
                remedy="roll it back with Apache Hudi.",
            )
        for marker in markers.base_files(found, instant.time):
            files.setdefault(marker.partition, []).append(marker.file_name)
    elif instant.state != REQUESTED:
        # A writer that went past its requested state leaves markers before files.  Without them Apache Hudi
        # plans nothing; a listing also finds files of writers that did otherwise.
        for partition, name in _listed_files(storage, instant.time):
            files.setdefault(partition, []).append(name)
    return {
        "instantToRollback": {"commitTime": instant.time, "action": instant.comparable_action},
        "RollbackRequests": [
            {
                "partitionPath": partition,
                "fileId": "",
                "latestBaseInstant": "",
                "filesToBeDeleted": [f"{storage.uri}/{join_path(partition, n)}" for n in sorted(set(names))],
                "logBlocksToBeDeleted": {},
            }
            for partition, names in sorted(files.items())
        ],
        "version": 1,
    }


def _listed_files(storage: Storage, instant: str) -> list[tuple[str, str]]:
    """(partition, name) of every base file below the table that carries the instant."""
    found = []
    pending = [""]
    while pending:
        folder = pending.pop()
        for entry in storage.list(folder):
            if entry.is_dir:
                if not entry.name.startswith("."):
                    pending.append(join_path(folder, entry.name))
            else:
                base = parse_base_file(folder, entry.name)
                if base is not None and base.instant == instant:
                    found.append((folder, entry.name))
    return found


def _read_plan(storage: Storage, rollback: Instant) -> Record | None:
    """The plan of a rollback, None where it was never written whole."""
    path = instant_path(rollback.time, ROLLBACK, REQUESTED)
    try:
        plan = avro_records.parse("HoodieRollbackPlan", storage.read(path), path=path)
    except (FileNotFoundError, CorruptFileError):
        return None
    return plan if plan.get("instantToRollback") else None


def _target(plan: Record) -> tuple[str, str]:
    """Time and action of the write that a plan undoes."""
    info = plan["instantToRollback"]
    return str(info["commitTime"]), str(info["action"])


def planned_files(plan: Record) -> dict[str, list[str]]:
    """File names to delete by partition.

    Plans hold absolute paths, which are stale once a table was moved: name and partition count.  A name
    that does not carry the target's instant is not deleted by anything the plan says.

    Raises:
        CorruptFileError: a partition outside the table.
        UnsupportedError: log blocks to undo.
    """
    target, _ = _target(plan)
    files: dict[str, list[str]] = {}
    for request in plan.get("RollbackRequests") or ():
        partition = str(request.get("partitionPath") or "")
        if request.get("logBlocksToBeDeleted"):
            raise UnsupportedError(
                "the rollback undoes blocks of log files, which cannot be done yet",
                instant=target,
                remedy="finish the rollback with Apache Hudi.",
            )
        try:
            check_safe(partition)
        except PartitionPathError:
            raise CorruptFileError(
                f"a rollback plan names the partition {partition!r}, which is not below the table",
                instant=target,
                remedy="delete the rollback's requested and inflight files; it is then planned anew.",
            ) from None
        for path in request.get("filesToBeDeleted") or ():
            name = str(path).rpartition("/")[2]
            base = parse_base_file(partition, name)
            if base is not None and base.instant == target:
                files.setdefault(partition, []).append(name)
    return files


# --- execution -----------------------------------------------------------------------------------------


def _execute(storage: Storage, rollback: str, plan: Record) -> None:
    began = time.monotonic()
    target, action = _target(plan)
    files = planned_files(plan)
    _create_if_absent(storage, instant_path(rollback, ROLLBACK, INFLIGHT), b"")
    delete_files(storage, [join_path(p, n) for p, names in files.items() for n in names])
    storage.delete(instant_path(target, action, INFLIGHT))
    storage.delete(instant_path(target, action, REQUESTED))
    took_ms = int((time.monotonic() - began) * 1000)
    metadata = rollback_record(storage, rollback, (target, action), files, took_ms)
    content = avro_records.render("HoodieRollbackMetadata", metadata)
    _create_if_absent(storage, instant_path(rollback, ROLLBACK, COMPLETED), content)
    markers.delete(storage, target)
    heartbeat.delete(storage, target)


def rollback_record(
    storage: Storage, at: str, target: tuple[str, str], files: Mapping[str, Sequence[str]], took_ms: int
) -> Record:
    """HoodieRollbackMetadata: what was done.

    Args:
        at: the instant of the rollback, or of the restore that it belongs to.
        target: time and action of the write that is no more.
        files: names of the files that were deleted, by partition.
    """
    time_, action = target
    return {
        "startRollbackTime": at,
        "timeTakenInMillis": took_ms,
        "totalFilesDeleted": sum(map(len, files.values())),
        "commitsRollback": [time_],
        "partitionMetadata": {
            partition: {
                "partitionPath": partition,
                "successDeleteFiles": [f"{storage.uri}/{join_path(partition, n)}" for n in names],
                "failedDeleteFiles": [],
                "rollbackLogFiles": {},
                "logFilesFromFailedCommit": {},
            }
            for partition, names in files.items()
        },
        "version": 1,
        "instantsRollback": [{"commitTime": time_, "action": action}],
    }


def _create_if_absent(storage: Storage, path: str, data: bytes) -> None:
    try:
        storage.create(path, data)
    except FileExistsError:  # an earlier run of the same rollback came this far
        return


def delete_files(storage: Storage, paths: Iterable[str]) -> None:
    """Delete data files; one that is gone already counts as deleted."""
    ordered = sorted(set(paths))
    if len(ordered) < _POOL_FROM:
        for path in ordered:
            storage.delete(path)
        return
    with ThreadPoolExecutor(_POOL_SIZE, thread_name_prefix="hudi-rollback") as pool:
        list(pool.map(storage.delete, ordered))
