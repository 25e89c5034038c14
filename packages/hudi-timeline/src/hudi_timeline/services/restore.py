"""Restore: the table goes back to an earlier commit; what came after it is undone for good.

    lock { plan -> <r>.restore.requested -> .inflight -> the instants after the commit, newest first:
           completed file, then data files, then the other files of the instant -> <r>.restore }

Newest first, so that each state on the way is one that the table once had.  A process that dies on the way leaves a
pending restore, which refuses writes until the same restore is run again.

Source: BaseRestoreActionExecutor and RestorePlanActionExecutor of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hudi_format.errors import CorruptFileError, InstantNotFoundError, OptionError, UnsupportedError
from hudi_format.model import join_path
from hudi_format.names import parse_base_file
from hudi_format.storage import Storage
from hudi_timeline import heartbeat, markers
from hudi_timeline.clock import new_instant
from hudi_timeline.instant import (
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    RESTORE,
    WRITE_ACTIONS,
    Instant,
    instant_path,
)
from hudi_timeline.listing import list_table
from hudi_timeline.metadata import avro_records
from hudi_timeline.metadata.avro_records import Record
from hudi_timeline.metadata.commit import read_commit
from hudi_timeline.rollback import delete_files, rollback_record
from hudi_timeline.services.context import ServiceContext
from hudi_timeline.services.savepoints import savepoints
from hudi_timeline.snapshot import snapshot_of
from hudi_timeline.timeline import Timeline, is_clustering, load_timeline

log = logging.getLogger("hudi")


@dataclass(frozen=True)
class RestoreResult:
    """What a restore did, or with `dry_run` would do.

    Attributes:
        to: the commit that the table went back to.
        undone: instants that are no more, newest first.
        instant: the restore's own instant time; "" of a dry run.
        deleted: how many data files were deleted.
        seconds: how long it took.
    """

    to: str
    undone: tuple[str, ...]
    instant: str = ""
    deleted: int = 0
    seconds: float = 0.0

    def __repr__(self) -> str:
        done = f"{self.deleted:,} files deleted; {self.seconds:.2f} s" if self.instant else "not executed"
        return f"RestoreResult(to {self.to}: {len(self.undone):,} instants undone, {done})"


def restore(
    context: ServiceContext, to: str, *, dry_run: bool = False, now: Callable[[], float] = time.time
) -> RestoreResult:
    """Go back to the commit `to`.

    Raises:
        InstantNotFoundError: no completed commit of the active timeline has that time.
        MissingFileError: files of that state are gone; savepoint a commit to keep them.
        OptionError: a later commit is savepointed, or another restore is not finished.
        UnsupportedError: a merge-on-read table, or a clustering that is not finished.
    """
    began = time.monotonic()
    storage = context.storage
    if dry_run:
        undone = _plan(context, load_timeline(storage, context.table), to)
        return RestoreResult(to, tuple(i.time for i in undone), seconds=time.monotonic() - began)
    with context.locked(while_restoring=True):
        timeline = load_timeline(storage, context.table)
        undone = _plan(context, timeline, to)
        pending = timeline.pending(RESTORE)
        if pending:
            instant = pending[0].time
        else:
            instant = new_instant(timeline, context.table, now, table=storage.uri)
            record = {
                "instantsToRollback": [_info(i) for i in undone],
                "version": 2,
                "savepointToRestoreTimestamp": to,
            }
            content = avro_records.render("HoodieRestorePlan", record)
            storage.create(instant_path(instant, RESTORE, REQUESTED), content)
        inflight = instant_path(instant, RESTORE, INFLIGHT)
        if storage.info(inflight) is None:
            storage.create(inflight, b"")
        listed = _listed(context, undone)
        rolled = {i.time: [_undo(context, timeline, i, instant, listed[i.time])] for i in undone}
        _delete_stale_plans(storage, timeline, to)
        record = {
            "startRestoreTime": instant,
            "timeTakenInMillis": int((time.monotonic() - began) * 1000),
            "instantsToRollback": [i.time for i in undone],
            "hoodieRestoreMetadata": rolled,
            "version": 1,
            "restoreInstantInfo": [_info(i) for i in undone],
        }
        content = avro_records.render("HoodieRestoreMetadata", record)
        storage.create(instant_path(instant, RESTORE, COMPLETED), content)
    deleted = sum(r[0]["totalFilesDeleted"] for r in rolled.values())
    times = tuple(i.time for i in undone)
    result = RestoreResult(to, times, instant, deleted, time.monotonic() - began)
    log.info("%s: %r", storage.uri, result)
    return result


def _info(instant: Instant) -> dict[str, str]:
    return {"commitTime": instant.time, "action": instant.action}


def _plan(context: ServiceContext, timeline: Timeline, to: str) -> list[Instant]:
    """The writes to undo, newest first; what cannot be undone is refused before anything is changed."""
    storage, table = context.storage, context.table
    if table.table_type != "COPY_ON_WRITE":
        raise UnsupportedError(
            f"a {table.table_type} table cannot be restored yet",
            table=storage.uri,
            remedy="restore it with Apache Hudi.",
        )
    if not any(i.time == to for i in timeline.completed_writes()):
        raise InstantNotFoundError(
            f"there is no completed commit {to} on the active timeline",
            table=storage.uri,
            instant=to,
            remedy="`inspect.commits()` lists them.",
        )
    later = [t for t in savepoints(timeline) if t > to]
    if later:
        raise OptionError(
            f"the commit {later[0]} is savepointed, and would be undone",
            table=storage.uri,
            instant=later[0],
            remedy="delete the savepoint first.",
        )
    _refuse_other_restore(storage, timeline, to)
    undone = [i for i in reversed(timeline.instants) if i.time > to and i.action in WRITE_ACTIONS]
    for instant in undone:
        if not instant.completed and is_clustering(storage, timeline, instant):
            raise UnsupportedError(
                f"the clustering {instant.time} is not finished",
                table=storage.uri,
                instant=instant.time,
                remedy="run it or roll it back with Apache Hudi first.",
            )
    # Every file of that state must be there: this raises where the cleaner was at it.
    snapshot_of(storage, table, timeline, to).files()
    return undone


def _refuse_other_restore(storage: Storage, timeline: Timeline, to: str) -> None:
    for pending in timeline.pending(RESTORE):
        path = instant_path(pending.time, RESTORE, REQUESTED)
        try:
            plan = avro_records.parse("HoodieRestorePlan", storage.read(path), path=path)
        except (FileNotFoundError, CorruptFileError):
            continue  # it never began: ours takes its place under the same instant
        target = plan.get("savepointToRestoreTimestamp")
        if target and target != to:
            raise OptionError(
                f"a restore to {target} was begun and not finished",
                table=storage.uri,
                instant=pending.time,
                remedy=f"run restore({str(target)!r}) first.",
            )


def _undo(
    context: ServiceContext,
    timeline: Timeline,
    instant: Instant,
    restore: str,
    listed: Iterable[tuple[str, str]],
) -> Record:
    """Undo one write; each step may be repeated.  The record of its rollback."""
    storage = context.storage
    began = time.monotonic()
    files = _written(context, instant, listed)
    storage.delete(instant_path(instant.time, instant.action, COMPLETED))
    delete_files(storage, [join_path(p, n) for p, names in files.items() for n in names])
    for file in timeline.files:
        if (file.time, file.comparable_action) == (instant.time, instant.comparable_action):
            storage.delete(file.path)
    markers.delete(storage, instant.time)
    heartbeat.delete(storage, instant.time)
    took_ms = int((time.monotonic() - began) * 1000)
    return rollback_record(storage, restore, (instant.time, instant.action), files, took_ms)


def _listed(context: ServiceContext, undone: Sequence[Instant]) -> dict[str, list[tuple[str, str]]]:
    """(partition, name) of the base files that carry the instants, by instant."""
    found: dict[str, list[tuple[str, str]]] = {i.time: [] for i in undone}
    for partition, entries in list_table(context.storage, context.table).files.items():
        for entry in entries:
            base = parse_base_file(partition, entry.name)
            if base is not None and base.instant in found:
                found[base.instant].append((partition, entry.name))
    return found


def _written(
    context: ServiceContext, instant: Instant, listed: Iterable[tuple[str, str]]
) -> dict[str, list[str]]:
    """Names of the files that a write made, by partition: as they lie there, and as its metadata says."""
    found: dict[str, set[str]] = {}
    for partition, name in listed:
        found.setdefault(partition, set()).add(name)
    if instant.completed:
        for stat in read_commit(context.storage, instant).stats:
            partition, _, name = stat.path.lstrip("/").rpartition("/")
            base = parse_base_file(partition, name)
            if base is not None and base.instant == instant.time:
                found.setdefault(partition, set()).add(name)
    return {partition: sorted(names) for partition, names in sorted(found.items())}


def _delete_stale_plans(storage: Storage, timeline: Timeline, to: str) -> None:
    """Withdraw cleanings that were planned on what is undone, and not executed."""
    for file in timeline.files:
        if file.action == "clean" and file.time > to and timeline.find(file.time) is not None:
            done = any(i.time == file.time and i.completed for i in timeline.instants)
            if not done:
                storage.delete(file.path)
