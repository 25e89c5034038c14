"""Pending compaction plans of any writer: read, and checked before anything goes by them.

A plan names files of the table.  It may be of a stranger, of a newer program, or of a time when its files were there
still: each is an error that says so, and the plan stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_format.errors import (
    ConcurrentWriterError,
    CorruptFileError,
    InstantNotFoundError,
    MissingFileError,
    PartitionPathError,
    UnsupportedError,
)
from hudi_format.file_names import log_sort_key, parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.keygen.partition_path import check_safe
from hudi_format.model import BaseFile, FileSlice, LogFile, join_path
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_format.storage.stable_reads import read_whole
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slice_history import FileHistory
from hudi_timeline.file_system_view.file_slices import committed_logs
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.services.compaction.compaction_planner import PLAN_VERSION, open_writes
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.action_metadata import CompactionOperation, CompactionPlan, parse_action
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import COMPACTION, REQUESTED, Instant, plan_gone
from hudi_timeline.transaction.rollback_guard import refuse_alive

_REPAIR = "plan its file groups anew, with the files that they have (`hudi compact repair`)"


@dataclass(frozen=True, slots=True)
class PendingPlan:
    """A plan on the timeline.

    Attributes:
        instant: of the compaction, requested or inflight.
        plan: what its requested file says.
        data: the bytes of that file, to find out later whether it is still the same plan.
    """

    instant: Instant
    plan: CompactionPlan
    data: bytes

    @property
    def time(self) -> str:
        return self.instant.time


def find_pending(timeline: Timeline, time: str, *, table: str, action: str = COMPACTION) -> Instant:
    """The pending compaction of a time, or the log compaction where that is the action.

    Raises:
        InstantNotFoundError: there is none.
    """
    pending = timeline.pending(action)
    what = "compaction" if action == COMPACTION else "log compaction"
    for instant in pending:
        if instant.time == time:
            return instant
    there = ", ".join(i.time for i in pending) or "none"
    raise InstantNotFoundError(
        f"no {what} {time} is pending",
        table=table,
        instant=time,
        remedy=f"pending {what}s: {there}.",
    )


def warns_of_done(
    context: ServiceContext, timeline: Timeline, time: str, *, action: str = COMPACTION
) -> bool:
    """Whether a plan that was pending is no more; the context has a warning then.

    A look at the timeline is over when its plans are begun one after the other: each may be executed, or taken back,
    by another process in between, and neither is a fault of the caller.
    """
    if any(i.time == time for i in timeline.pending(action)):
        return False
    what = "compaction" if action == COMPACTION else "log compaction"
    context.warnings.append(f"{what} {time} is pending no more: another process executed it, or took it back")
    return True


def find_idle(context: ServiceContext, snapshot: TableSnapshot, time: str, *, after: str = "") -> Instant:
    """A pending compaction that nobody executes, and beside which no write is open.

    Args:
        after: writes of this time and earlier do not count.

    Raises:
        InstantNotFoundError: no such plan is pending.
        ConcurrentWriterError: it is being executed, or a write is at work.
    """
    storage, timeline = context.storage, snapshot.timeline
    pending = find_pending(timeline, time, table=storage.uri)
    refuse_alive(storage, pending, context.options)
    writes = [i for i in open_writes(storage, timeline) if i.time > after]
    if writes:
        raise ConcurrentWriterError(
            f"{writes[0]} may append to the slices of the plan",
            table=storage.uri,
            instant=time,
            remedy=f"wait for it; if its writer is dead, roll it back (`hudi rollback {writes[0].time}`).",
        )
    return pending


def replace_plan(context: ServiceContext, pending: Instant, plan: CompactionPlan | None) -> None:
    """Put a plan in the place of a pending one, under the table's lock.

    Args:
        plan: None takes the pending one off the timeline.

    Raises:
        LockError: the lock was lost; nothing is changed.
    """
    storage, path = context.storage, pending.path_in(REQUESTED)
    context.check_lock()
    if plan is None:
        storage.delete(path)
    else:
        storage.publish(path, plan.to_bytes())
    flush(storage, [path], written=False)


def read_pending(storage: Storage, instant: Instant) -> PendingPlan:
    """Plan of a pending compaction, checked.

    Raises:
        MissingFileError: its file is not there (any more).
        CorruptFileError: no such plan, or one that names what is not below the table.
        UnsupportedError: a plan of a newer version, or of a bootstrapped table.
    """
    path = instant.path_in(REQUESTED)
    try:
        data, plan = read_whole(storage, path, lambda b: (b, parse_action(instant.action, REQUESTED, b)))
        assert isinstance(plan, CompactionPlan)
        return PendingPlan(instant, _checked(plan, instant.time), data)
    except FileNotFoundError:
        raise plan_gone(storage, instant) from None
    except (CorruptFileError, UnsupportedError) as e:
        raise e.at(table=storage.uri, instant=instant.time, file=path) from None


def _checked(plan: CompactionPlan, time: str) -> CompactionPlan:
    if plan.version > PLAN_VERSION:
        raise UnsupportedError(
            f"a compaction plan of version {plan.version}, by a newer program; up to {PLAN_VERSION} are known",
            remedy="run it with the program that made it.",
        )
    operations = plan.operations
    if plan.version == 1:  # its paths are absolute, and stale once a table was moved: the names count
        operations = tuple(
            replace(
                o, data_file=_last(o.data_file), log_files=tuple(map(_last, o.log_files)),
            ) for o in operations
        )  # fmt: skip
    # Apache Hudi names files of changes among the logs, and passes them over when it executes the plan.
    operations = tuple(
        replace(o, log_files=tuple(n for n in o.log_files if parse_cdc_file(o.partition, n) is None))
        for o in operations
    )
    seen = set()
    for operation in operations:
        group = (operation.partition, operation.file_id)
        if group in seen:
            raise _bad(f"names the file group {operation.file_id} twice")
        seen.add(group)
        _check_operation(operation, time)
    return replace(plan, operations=operations)


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _check_operation(operation: CompactionOperation, time: str) -> None:
    if operation.source_file:
        raise UnsupportedError(
            "the compaction of a bootstrapped file group",
            remedy="run it with Apache Hudi.",
        )
    try:
        check_safe(operation.partition)
    except PartitionPathError:
        raise _bad(f"names the partition {operation.partition!r}, which is not below the table") from None
    if not operation.log_files and not operation.data_file:
        raise _bad(f"names no file of the file group {operation.file_id!r}")
    base = parse_base_file(operation.partition, operation.data_file) if operation.data_file else None
    if operation.data_file and (base is None or base.file_id != operation.file_id or base.instant >= time):
        raise _bad(f"names {operation.data_file!r}, which is no earlier base file of {operation.file_id!r}")
    for name in operation.log_files:
        log = parse_log_file(operation.partition, name)
        if log is None or log.file_id != operation.file_id or log.instant >= time:
            raise _bad(f"names {name!r}, which is no log file of an earlier slice of {operation.file_id!r}")


def _bad(what: str) -> CorruptFileError:
    return CorruptFileError(f"a compaction plan {what}", remedy=f"{_REPAIR}.")


def executable_slices(
    snapshot: TableSnapshot, pending: PendingPlan, listing: Mapping[str, Sequence[FileInfo]] | None = None
) -> list[FileSlice]:
    """File slices of a plan, in its order, after all checks that an execution makes of them.

    Args:
        listing: the files of its partitions; listed if not given.

    Raises:
        MissingFileError: a file of the plan is not there.
        ConcurrentWriterError, UnsupportedError: rows would be lost, or old ones come back.
    """
    refuse_overtaken(snapshot, pending)
    if listing is None:
        listing = list_partition_files(snapshot.storage, {o.partition for o in pending.plan.operations})
    slices = _planned_slices(pending, listing, table=snapshot.storage.uri)
    _refuse_misfit(snapshot, pending)
    return slices


def _planned_slices(
    pending: PendingPlan, listing: Mapping[str, Sequence[FileInfo]], *, table: str
) -> list[FileSlice]:
    sizes = {p: {e.name: e.size for e in entries} for p, entries in listing.items()}
    slices = []
    for operation in pending.plan.operations:
        there = sizes.get(operation.partition, {})
        for name in (operation.data_file, *operation.log_files):
            if name and name not in there:
                raise MissingFileError(
                    "a file that the compaction plan names is gone",
                    table=table,
                    instant=pending.time,
                    file=join_path(operation.partition, name),
                    remedy="restore the file from a backup; where it is known that it is not needed, run "
                    "`hudi compact repair` with --accept-missing.",
                )
        slices.append(_slice_of(operation, there))
    return slices


def _slice_of(operation: CompactionOperation, sizes: Mapping[str, int]) -> FileSlice:
    base: BaseFile | None = None
    if operation.data_file:
        base = parse_base_file(operation.partition, operation.data_file, sizes[operation.data_file])
    logs: list[LogFile] = []
    for name in operation.log_files:
        log = parse_log_file(operation.partition, name, sizes[name])
        if log is not None:
            logs.append(log)
    logs.sort(key=log_sort_key)
    begin = operation.base_instant or (base.instant if base is not None else logs[0].instant)
    return FileSlice(operation.partition, operation.file_id, begin, base, tuple(logs))


def begun_slices(listing: Mapping[str, Sequence[FileInfo]], time: str) -> dict[Group, str]:
    """A log file of each file group with one at a plan's instant: of a slice it began."""
    begun: dict[Group, str] = {}
    for partition, entries in listing.items():
        for entry in entries:
            file = parse_log_file(partition, entry.name)
            if file is not None and file.instant == time:
                begun.setdefault((partition, file.file_id), file.path)
    return begun


def refuse_overtaken(snapshot: TableSnapshot, pending: PendingPlan) -> None:
    """Raise where a write that began before the plan was made would lose rows by its execution.

    Its log files belong to the slices that are compacted, of which nobody reads any more afterwards.

    Raises:
        ConcurrentWriterError: such a write is still open.
        UnsupportedError: such a write was completed, and its log files are not in the plan.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    earlier = [i for i in open_writes(storage, timeline) if i.time < pending.time]
    if earlier:
        raise ConcurrentWriterError(
            f"{earlier[0]} began before the compaction was planned, and is not completed",
            table=storage.uri,
            instant=pending.time,
            remedy=f"wait for it; if its writer is dead, roll it back (`hudi rollback {earlier[0].time}`).",
        )
    files = committed_logs(snapshot)[1]
    for operation in pending.plan.operations:
        planned = {join_path(operation.partition, n) for n in operation.log_files}
        first = operation.base_instant
        for path in files.get((operation.partition, operation.file_id), ()):
            log = parse_log_file(operation.partition, path.rpartition("/")[2])
            if log is not None and first <= log.instant < pending.time and path not in planned:
                raise UnsupportedError(
                    "a write that began before the compaction was planned has appended to a slice of the plan, which "
                    "does not name its log file: executing the plan would lose its rows",
                    table=storage.uri,
                    instant=pending.time,
                    file=path,
                    remedy=f"{_REPAIR}.",
                )


def _refuse_misfit(snapshot: TableSnapshot, pending: PendingPlan) -> None:
    """Raise where a plan does not name the base file and log files that its slices have.

    A base file that it leaves out, or an older one, would take rows away that nobody would miss.

    Raises:
        UnsupportedError: such a slice.
    """
    operations = pending.plan.operations
    history = FileHistory(snapshot, {o.partition for o in operations}, logs=True, without=pending.time)
    files = committed_logs(snapshot)[1]
    for operation in operations:
        group = (operation.partition, operation.file_id)
        found = history.before(group, pending.time)
        base = None if found is None else found.base_file
        named = parse_base_file(operation.partition, operation.data_file) if operation.data_file else None
        logs = {join_path(operation.partition, n) for n in operation.log_files}
        wrong: str | None = None
        if (None if base is None else base.instant) != (None if named is None else named.instant):
            file = base or named
            wrong = None if file is None else file.path
        elif found is not None:
            known = files.get(group, {})
            wrong = next((f.path for f in found.log_files if f.path in known and f.path not in logs), None)
        if wrong is not None:
            raise UnsupportedError(
                f"the compaction plan does not name the files that the file group {operation.file_id} has: "
                "executing it would lose rows, or bring old ones back",
                table=snapshot.storage.uri,
                instant=pending.time,
                file=wrong,
                remedy=f"{_REPAIR}.",
            )
