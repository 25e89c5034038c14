"""Rollback executor: undoes a write's files, then its instants.

    plan -> <r>.rollback.requested -> .inflight -> the target's completed file, if there is one -> delete data files,
    command blocks into log files -> delete the target's other instant files -> the same in the metadata table
    -> <r>.rollback -> delete its markers and heartbeat

Every step may be the last one of a process: the plan says what is left to do, each step may be repeated, and
markers go last.  A write is no more from the moment at which its completed file is gone.  The caller holds the
table's lock.

Source: BaseRollbackActionExecutor and BaseRollbackHelper of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hudi_format import properties
from hudi_format.errors import CorruptFileError, LockError, MissingFileError, OptionError, UnsupportedError
from hudi_format.file_names import PARTITION_METADATA, log_file_name, parse_base_file, parse_log_file
from hudi_format.keygen.partition_path import is_safe
from hudi_format.log.reader import LogFileReader
from hudi_format.log.writer import LogWriter
from hudi_format.model import LogFile, join_path
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.concurrency.locks.provider import check_begun, verify_held
from hudi_timeline.concurrency.own_files import create_if_absent
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.mirror import mirror_rollback
from hudi_timeline.timeline.action_metadata import (
    InstantName,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackPartition,
    render_action,
)
from hudi_timeline.timeline.commit_metadata import parse_commit
from hudi_timeline.timeline.instant import (
    COMMIT,
    COMPACTION,
    COMPLETED,
    INFLIGHT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    REQUESTED,
    ROLLBACK,
    WRITE_ACTIONS,
    Instant,
    instant_path,
    parse_instant_file,
    plan_gone,
)
from hudi_timeline.timeline.instant_generator import request_instant
from hudi_timeline.transaction.ring_files import delete_rings
from hudi_timeline.transaction.rollback_guard import refuse_needed
from hudi_timeline.transaction.rollback_plan import (
    by_markers,
    check_plan,
    command_requests,
    files_to_delete,
    log_uri,
    logs_of_slice,
    make_rollback_plan,
    paths_to_delete,
    read_plan,
    target_of,
)
from hudi_timeline.transaction.settings_change import take_back

log = logging.getLogger("hudi")

# Deletes are round trips on object stores; few are not worth a pool of threads.
_POOL_FROM = 64
_POOL_SIZE = 16

ROLLBACK_TOKEN = "1-0-1"
"""Write token of log files that hold command blocks, as in Apache Hudi's."""


def rollback_instant(
    snapshot: TableSnapshot,
    instant: Instant,
    *,
    plan: RollbackPlan | None = None,
    now: Callable[[], float] = time.time,
    own: bool = False,
) -> str:
    """Roll back a write; returns the rollback's instant time.

    A rollback of the same write that was begun and not finished is finished under its own time.  A compaction that is
    inflight goes back to its plan, which stays requested; a log compaction goes with its plan, which is of no use once
    its slices were written to, as in Apache Hudi.

    Args:
        snapshot: loaded under the lock.
        plan: made under it, of a write that nothing depends on; made here if not given.
        own: the write is this process's, of a clock that was right enough for it; others have begun or completed
            theirs since, and if the clock is behind these by more than a second that is no reason to leave it open.

    Raises:
        UnsupportedError: no write or inflight compaction, or one that others depend on.
        OptionError: a completed write that is savepointed.
        CorruptFileError: a marker or plan names files outside the table.
        LockError: the lock was lost; nothing was changed, or the next writer finishes what is left.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    refuse_kind(storage, instant)
    if instant.completed and plan is None:
        refuse_needed(snapshot, instant)
    for pending in timeline.pending(ROLLBACK):
        begun = read_plan(storage, pending)
        if begun is not None and target_of(begun).time == instant.time:
            execute(snapshot, pending.time, begun)
            return pending.time
    plan = plan or make_rollback_plan(storage, timeline, instant)
    verify_held()
    time_ = request_instant(
        storage, timeline, snapshot.config, ROLLBACK, render_action(plan), now, however_far=own
    )
    _keep_if_held(snapshot, time_)
    execute(snapshot, time_, plan)
    return time_


def _keep_if_held(snapshot: TableSnapshot, rollback: str) -> None:
    """Withdraw a plan that was made when the lock was lost already: its write may be completed since.

    Whoever finishes what is pending would undo a write that its writer was told is done.

    Raises LockError.
    """
    try:
        verify_held()
    except LockError:
        config, storage = snapshot.config, snapshot.storage
        if storage.info(instant_path(config, rollback, ROLLBACK, INFLIGHT)) is None:
            storage.delete(instant_path(config, rollback, ROLLBACK, REQUESTED))
        raise


def refuse_kind(storage: Storage, instant: Instant) -> None:
    """Refuse an instant that a rollback cannot take.

    Raises:
        UnsupportedError: it is not a write.
        MissingFileError: a compaction whose plan is gone.
    """
    undone = {*WRITE_ACTIONS, LOG_COMPACTION}
    if instant.action == COMPACTION and instant.state == INFLIGHT:
        if (
            storage.info(instant.path_in(REQUESTED)) is None
        ):  # nothing would say any more which slices it began
            raise plan_gone(storage, instant)
        return
    if instant.action in undone:
        return
    remedy = "`hudi timeline` lists the writes."
    if instant.action == COMPACTION:
        remedy = "nothing was done by it yet: run it, or unschedule it (hudi-cli: compaction unschedule)."
    raise UnsupportedError(
        f"a write or an inflight compaction can be rolled back, not {instant}",
        table=storage.uri,
        instant=instant.time,
        remedy=remedy,
    )


def finish_pending(
    snapshot: TableSnapshot, *, left: Callable[[Instant], bool] = lambda rollback: False
) -> TableSnapshot:
    """Finish every unfinished rollback, or withdraw it; returns the resulting snapshot.

    One that was overtaken is withdrawn (`withdraw_overtaken`), and one whose plan cannot be read: its target, if it is
    still there, is rolled back anew.

    Args:
        left: says which are left to whoever began them.
    """
    storage = snapshot.storage
    snapshot = withdraw_overtaken(snapshot)
    for rollback in snapshot.timeline.pending(ROLLBACK):
        if left(rollback):
            continue
        plan = read_plan(storage, rollback)
        if plan is None:
            _withdraw_plan(storage, rollback)
        else:
            execute(snapshot, rollback.time, plan)
        snapshot = snapshot.reloaded()
    return snapshot


def withdraw_overtaken(snapshot: TableSnapshot, *, kept: str = "", going: str = "") -> TableSnapshot:
    """Withdraw rollbacks that died before they changed anything, of writes that others need.

    A write counts until its completed file is gone, which goes before all else.  A rollback that died before that has
    had no effect; whoever came after it went by the write: it stays, for good.  Apache Hudi re-attempts such a rollback
    at the next write too, but also beneath later commits (policy LAZY), or else fails at each write.

    Args:
        kept: writes up to this time stay, whether anything needs them or not.
        going: a write that is rolled back now.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    gone = False
    for rollback in timeline.pending(ROLLBACK):
        plan = read_plan(storage, rollback)
        target = None if plan is None else target_of(plan)
        if target is None or target.time == going:
            continue
        done = [i for i in timeline.completed_writes() if (i.time, i.action) == (target.time, target.action)]
        why = _needs(snapshot, done[0], kept) if done else ""
        if why:
            _withdraw_plan(storage, rollback)
            gone = True
            log.warning(
                "%s: rollback %s of the %s %s had died before it changed anything, and is withdrawn: %s",
                storage.uri, rollback.time, target.action, target.time, why,
            )  # fmt: skip
    return snapshot.reloaded() if gone else snapshot


def _needs(snapshot: TableSnapshot, instant: Instant, kept: str) -> str:
    """Who needs a completed write, in words; "" for nobody."""
    if instant.time <= kept:
        return f"the state of {kept} is asked for"
    try:
        refuse_needed(snapshot, instant)
    except (OptionError, UnsupportedError, MissingFileError) as e:
        return e.message
    return ""


def _withdraw_plan(storage: Storage, rollback: Instant) -> None:
    """Remove a pending rollback, the requested file last, as it names what is left to do."""
    storage.delete(rollback.path_in(INFLIGHT))
    storage.delete(rollback.path_in(REQUESTED))
    flush(storage, [rollback.path_in(REQUESTED)], written=False)


def remove_leftovers(storage: Storage, instant: str) -> None:
    """Undo the files in markers of an instant that left the timeline."""
    if markers.has_markers(storage, instant):
        undo_late(storage, instant, by_markers(storage, instant))
        markers.delete(storage, instant)
    heartbeat.delete(storage, instant)


def undo_late(storage: Storage, instant: str, requests: tuple[RollbackRequest, ...]) -> None:
    """Undo files of an instant that left the timeline.

    A block that a task appended to another write's log file gets a command block after it: nobody reads it now,
    but instants that the timeline was archived past count as completed.
    """
    plan = RollbackPlan(InstantName(instant, COMMIT), requests)
    commands = command_requests(plan)
    delete_files(storage, paths_to_delete(plan))
    for request in commands:
        names = (path.rpartition("/")[2] for path in request.log_blocks)
        holding = [n for n in names if _holds_block_of(storage, join_path(request.partition, n), instant)]
        if holding and not is_taken_back(storage, request, holding, instant):
            append_command(storage, request, instant, instant)
    # Those of the command blocks.
    markers.delete(storage, instant)


def _holds_block_of(storage: Storage, path: str, instant: str) -> bool:
    if storage.info(path) is None:
        return False
    with LogFileReader.open(storage, path) as reader:
        return any(b.instant == instant for b in reader.blocks)


def is_taken_back(storage: Storage, request: RollbackRequest, holding: Sequence[str], instant: str) -> bool:
    """Whether a command block follows the blocks of an instant in these log files."""
    last = max(f.version for n in holding if (f := parse_log_file(request.partition, n)) is not None)
    logs = logs_of_slice(storage, request.partition, request.file_id, request.base_instant)
    return any(log.version > last and _takes_back(storage, log, instant) for log in logs)


def withdraw(storage: Storage, instant: Instant) -> bool:
    """Remove a write of this process without a trace; returns whether that was possible.

    Its data files, the folders that it made for them, its instant files, its markers: in this order, so that a crash
    on the way leaves what the next writer rolls back.  Not for writes to log files, whose readers need the record.
    """
    found = markers.list_markers(storage, instant.time)
    files = markers.own_files(found, instant.time)
    if any(m.io_type == markers.APPEND for m in found if m not in files):
        return False
    delete_files(storage, [m.path for m in files])
    for partition in sorted({m.partition for m in files}, reverse=True):
        _remove_own_folder(storage, partition, instant.time)
    storage.delete(instant.path_in(INFLIGHT))
    storage.delete(instant.path_in(REQUESTED))
    markers.delete(storage, instant.time)
    heartbeat.delete(storage, instant.time)
    return True


def _remove_own_folder(storage: Storage, partition: str, instant: str) -> None:
    """Remove a partition folder created by the instant if empty, and empty parents."""
    path = join_path(partition, PARTITION_METADATA)
    try:
        made_by = properties.parse(storage.read(path), path=path).get("commitTime")
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


# --- execution -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstantRollback:
    """Result of rolling back a write.

    Attributes:
        files: names of the files that were deleted, by partition.
        commands: sizes of the log files with command blocks, by partition and path.
        logs: what the plan said of the log files whose blocks were taken back, by partition.
        announced: the partitions that its inflight file names: tasks that outlive the rollback may write there yet.
    """

    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    commands: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    logs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    announced: frozenset[str] = frozenset()

    @property
    def deleted(self) -> int:
        return sum(map(len, self.files.values()))

    @property
    def log_names(self) -> dict[str, set[str]]:
        """Names of log files with blocks taken back and with command blocks, by partition."""
        names: dict[str, set[str]] = {}
        for found in (self.logs, self.commands):
            for partition, paths in found.items():
                names.setdefault(partition, set()).update(path.rpartition("/")[2] for path in paths)
        return names


def execute(snapshot: TableSnapshot, rollback: str, plan: RollbackPlan) -> InstantRollback:
    """Execute a requested rollback plan, from any earlier point of failure.

    Raises:
        CorruptFileError: the plan leads out of the table; nothing was changed.
        LockError: the lock was lost; the next writer finishes what is left.
    """
    began = time.monotonic()
    storage, config = snapshot.storage, snapshot.config
    check_plan(plan)
    verify_held()
    inflight = instant_path(config, rollback, ROLLBACK, INFLIGHT)
    create_if_absent(storage, inflight, b"")
    check_begun(storage, inflight, instant_path(config, rollback, ROLLBACK, REQUESTED))
    target = target_of(plan)
    undone = undo(storage, plan, rollback, keep_request=target.action == COMPACTION)
    logs = undone.log_names
    for marker in markers.list_markers(storage, rollback) if undone.commands else ():
        logs.setdefault(marker.partition, set()).add(marker.file_name)  # also those of a run that died
    verify_held()
    mirror_rollback(storage, config, rollback, target.time, undone.files, logs)
    took_ms = int((time.monotonic() - began) * 1000)
    metadata = rollback_metadata(storage, rollback, target, undone, took_ms)
    completed = instant_path(config, rollback, ROLLBACK, COMPLETED)
    create_if_absent(storage, completed, render_action(metadata))
    flush(storage, [completed], written=False)
    tidy(storage, target.time, rollback)
    return undone


def undo(storage: Storage, plan: RollbackPlan, at: str, *, keep_request: bool = False) -> InstantRollback:
    """Undo one write up to its instant files; every step is repeatable.

    Args:
        at: the instant that does it: of a rollback or a restore.
        keep_request: the target's requested file stays, because it is a plan to run again.

    Raises:
        CorruptFileError: the plan leads out of the table; nothing was changed.
        LockError: the lock was lost on the way.
    """
    target, files, requests = target_of(plan), files_to_delete(plan), command_requests(plan)
    states = _instant_files(storage, target)
    announced = frozenset() if COMPLETED in states else _announced(storage, states.get(INFLIGHT, ()))
    # Once the lock is another's, a plan that is run again has files of the same names on the timeline.
    verify_held()
    for name in states.get(COMPLETED, ()):
        storage.delete(f".hoodie/{name}")
        flush(storage, [f".hoodie/{name}"], written=False)  # else it might come back without its files
    if target.action == REPLACE_COMMIT:
        delete_rings(storage, target.time)
        take_back(storage, target.time)
    delete_files(storage, [join_path(p, n) for p, names in files.items() for n in names])
    commands: dict[str, dict[str, int]] = {}
    logs: dict[str, dict[str, int]] = {}
    for request in requests:
        verify_held()
        logs.setdefault(request.partition, {}).update(request.log_blocks)
        for path, size in append_command(storage, request, target.time, at).items():
            commands.setdefault(request.partition, {})[path] = size
    verify_held()
    for state in (INFLIGHT, REQUESTED):
        if state == REQUESTED and keep_request:
            continue
        for name in states.get(state, ()):
            storage.delete(f".hoodie/{name}")
    return InstantRollback(files, commands, logs, announced)


def _announced(storage: Storage, inflight: Sequence[str]) -> frozenset[str]:
    """Partitions that an inflight file names; none where it says nothing, as after a bulk insert."""
    found: set[str] = set()
    for name in inflight:
        try:
            found.update(parse_commit(storage.read(f".hoodie/{name}")).partition_to_stats)
        except (FileNotFoundError, CorruptFileError):
            continue  # empty, or of an action whose inflight file holds something else
    return frozenset(filter(is_safe, found))


def _instant_files(storage: Storage, target: InstantName) -> dict[str, list[str]]:
    """The target's own instant files by state, a completed compaction's plan included."""
    wanted = Instant(target.time, target.action, COMPLETED).comparable_action
    found: dict[str, list[str]] = {}
    for entry in storage.list(".hoodie"):
        if entry.is_dir or not entry.name.startswith(target.time):
            continue
        instant = parse_instant_file(entry.name)
        if instant is not None and (instant.time, instant.comparable_action) == (target.time, wanted):
            found.setdefault(instant.state, []).append(entry.name)
    return found


def append_command(storage: Storage, request: RollbackRequest, target: str, at: str) -> dict[str, int]:
    """Append a rollback block for the target to a slice's logs; returns sizes by path.

    A slice of which nothing is there needs none: the writer died between its marker and its file.
    """
    there: list[LogFile] = []
    has_base = False
    for entry in storage.list(request.partition):
        log = parse_log_file(request.partition, entry.name, entry.size)
        if log is not None and (log.file_id, log.instant) == (request.file_id, request.base_instant):
            there.append(log)
        base = parse_base_file(request.partition, entry.name)
        if base is not None and (base.file_id, base.instant) == (request.file_id, request.base_instant):
            has_base = True
    if not there and not has_base:
        return {}
    announced = {m.path for m in markers.list_markers(storage, at) if m.io_type == markers.APPEND}
    earlier = [f for f in there if f.path in announced and _takes_back(storage, f, target)]
    if earlier:  # an earlier run of the same rollback came this far
        return {log_uri(storage, f.path): f.size for f in earlier}
    version = max((f.version for f in there), default=0) + 1
    name = log_file_name(request.file_id, request.base_instant, version, ROLLBACK_TOKEN)
    markers.create(storage, at, request.partition, name, markers.APPEND)
    with LogWriter(
        storage, request.partition, request.file_id, request.base_instant,
        instant=at, schema="", write_token=ROLLBACK_TOKEN, version=version,
    ) as writer:  # fmt: skip
        writer.append_rollback(target)
        written = writer.close()
    flush(storage, [w.file.path for w in written])
    return {log_uri(storage, w.file.path): w.file.size for w in written}


def _takes_back(storage: Storage, file: LogFile, target: str) -> bool:
    with LogFileReader.open(storage, file.path) as reader:
        return any(b.is_rollback and b.target_instant == target for b in reader.blocks)


def tidy(storage: Storage, target: str, at: str) -> None:
    """Remove markers and heartbeat of an undone write, and the markers of its rollback."""
    markers.delete(storage, target)
    markers.delete(storage, at)
    heartbeat.delete(storage, target)


def rollback_metadata(
    storage: Storage, at: str, target: InstantName, undone: InstantRollback, took_ms: int
) -> RollbackMetadata:
    """Metadata of a completed rollback.

    Args:
        at: the instant of the rollback, or of the restore that it belongs to.
        target: the write that is no more.
    """
    partitions = {
        p: RolledBackPartition(
            p,
            tuple(f"{storage.uri}/{join_path(p, n)}" for n in undone.files.get(p, ())),
            command_logs=undone.commands.get(p, {}),
            logs_of_failed=undone.logs.get(p, {}),
        )
        for p in sorted({*undone.files, *undone.commands, *undone.logs, *undone.announced})
    }
    return RollbackMetadata(at, took_ms, undone.deleted, (target.time,), partitions, (target,))


def delete_files(storage: Storage, paths: Iterable[str]) -> None:
    """Delete data files; missing ones count as deleted."""
    ordered = sorted(set(paths))
    if len(ordered) < _POOL_FROM:
        for path in ordered:
            storage.delete(path)
    else:
        with ThreadPoolExecutor(_POOL_SIZE, thread_name_prefix="hudi-rollback") as pool:
            list(pool.map(storage.delete, ordered))
    flush(storage, ordered, written=False)  # before the timeline forgets why nobody reads them
