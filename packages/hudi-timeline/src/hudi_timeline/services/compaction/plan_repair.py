"""Repair of pending compaction plans: file groups planned anew, with the files they have.

A plan that leaves files out, or cannot be read, is not executed, as rows would be lost; and it cannot be withdrawn once
log files were written for the slices that it began.  Its instant is what these files go by, so it stays: its
operations are made anew from the files that were committed before it.  A file group that nothing was written to since,
and that has nothing to compact any more, leaves the plan.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_format.errors import (
    CorruptFileError,
    MissingFileError,
    StaleSnapshotError,
    UnsupportedError,
)
from hudi_format.file_names import parse_log_file
from hudi_format.keygen.partition_path import is_safe
from hudi_format.model import FileSlice, join_path
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slice_history import FileHistory
from hudi_timeline.file_system_view.file_slices import committed_logs
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.compaction_config import CompactionConfig, parse_compaction_options
from hudi_timeline.services.compaction.compaction_executor import rolled_back
from hudi_timeline.services.compaction.compaction_planner import PLAN_VERSION, operation_of
from hudi_timeline.services.compaction.pending_plans import (
    PendingPlan,
    begun_slices,
    executable_slices,
    find_idle,
    read_pending,
    replace_plan,
)
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.action_metadata import CompactionOperation, CompactionPlan, parse_action
from hudi_timeline.timeline.instant import COMPACTION, REQUESTED, Instant

log = logging.getLogger("hudi")


@dataclass(frozen=True)
class PlanRepair(HtmlView):
    """Result of repairing a plan, or of its `dry_run`.

    Attributes:
        instant: of the plan.
        kept: operations that were right.
        changed: operations with the files that their file groups have; also those that the plan did not name, though
            log files were written for the slices that it began.
        left_out: file groups with nothing to compact, and nothing written since, as `partition/file id`.
        rewritten: whether the plan is another one; also where one of its operations stood in it twice.
    """

    instant: str
    kept: tuple[CompactionOperation, ...] = ()
    changed: tuple[CompactionOperation, ...] = ()
    left_out: tuple[str, ...] = ()
    rewritten: bool = False

    @property
    def operations(self) -> tuple[CompactionOperation, ...]:
        """All operations of the repaired plan."""
        return (*self.kept, *self.changed)

    @property
    def gone(self) -> bool:
        """Whether the plan leaves the timeline, as nothing is left of it."""
        return not self.operations


def repair(
    context: ServiceContext,
    instant: str,
    *,
    accept_missing: bool = False,
    dry_run: bool = False,
    config: CompactionConfig | None = None,
) -> PlanRepair:
    """Plan file groups of a pending compaction anew that have other files than it names.

    An execution that was left dead is rolled back first.

    Args:
        instant: of the plan.
        accept_missing: files that the plan names, that are gone, and that no active commit wrote are not needed.
        dry_run: say what would be done and change nothing.

    Raises:
        InstantNotFoundError: no such plan is pending.
        ConcurrentWriterError: it is being executed, or a write is at work.
        MissingFileError: a file of one of its slices is gone; nothing is changed.
        UnsupportedError: a plan of a newer version, or of a bootstrapped table.
    """
    storage = context.storage
    config = config or parse_compaction_options(context.options.raw)
    if dry_run:
        snapshot = context.look()
        return _repaired(snapshot, find_idle(context, snapshot, instant), config, accept_missing)
    with context.locked(keep_metadata=True) as snapshot:
        pending = find_idle(context, snapshot, instant)
        result = _repaired(snapshot, pending, config, accept_missing)
        if not result.rewritten:
            return result
        plan = _plan_of(snapshot, pending)[0]
        extra = {} if plan is None else plan.extra
        made = CompactionPlan(result.operations, extra, version=PLAN_VERSION)
        if storage.info(pending.path_in(REQUESTED)) is None:
            # The inflight file alone says that log files begin slices of the plan: it stays until another says it.
            replace_plan(context, pending, made)
        snapshot = rolled_back(snapshot, pending)
        if made:
            partitions = {o.partition for o in made.operations}
            listing = {p: e for p, e in snapshot.listing().files.items() if p in partitions}
            executable_slices(snapshot, PendingPlan(pending, made, b""), listing)
        replace_plan(context, pending, made or None)
    log.info("%s: %d operations of compaction %s are planned anew", storage.uri, len(result.changed), instant)
    return result


def _plan_of(snapshot: TableSnapshot, pending: Instant) -> tuple[CompactionPlan | None, bool]:
    """The plan as it stands, None where it cannot be read; and whether it is one that can be followed."""
    try:
        return read_pending(snapshot.storage, pending).plan, True
    except StaleSnapshotError:
        raise
    except MissingFileError:
        return None, False
    except CorruptFileError:
        pass
    try:
        plan = parse_action(COMPACTION, REQUESTED, snapshot.storage.read(pending.path_in(REQUESTED)))
    except CorruptFileError:
        return None, False
    return (plan if isinstance(plan, CompactionPlan) else None), False


def _repaired(
    snapshot: TableSnapshot, pending: Instant, config: CompactionConfig, accept_missing: bool
) -> PlanRepair:
    storage, time = snapshot.storage, pending.time
    plan, sound = _plan_of(snapshot, pending)
    named: dict[Group, CompactionOperation] = {}
    for operation in () if plan is None else plan.operations:
        named.setdefault((operation.partition, operation.file_id), operation)
    listing = snapshot.listing().files
    begun = begun_slices(listing, time).keys()
    history = FileHistory(snapshot, listing, logs=True, without=time)
    kept, changed, left_out = [], [], []
    for group in [*named, *sorted(begun - named.keys())]:
        old = named.get(group)
        found = history.before(group, time) if is_safe(group[0]) else None
        _refuse_missing(snapshot, group, time, found, old, history.sizes, accept_missing)
        if found is None and group in begun:
            raise UnsupportedError(
                f"log files were written for the slice of {group[1]} that the plan began, and there is none before it",
                table=storage.uri,
                instant=time,
                remedy="restore the files of the file group from a backup, or the table to a savepoint.",
            )
        if found is None or not (found.log_files or group in begun):
            left_out.append(join_path(*group))
            continue
        new = operation_of(found, config)
        same = old is not None and _files(old) == _files(new) and old.base_instant == new.base_instant
        if same and old is not None:
            kept.append(old)
        else:
            changed.append(new)
    return PlanRepair(
        time, tuple(kept), tuple(changed), tuple(left_out), bool(changed or left_out) or not sound
    )


def _files(operation: CompactionOperation) -> tuple[str, frozenset[str]]:
    return operation.data_file, frozenset(operation.log_files)


def _refuse_missing(
    snapshot: TableSnapshot,
    group: Group,
    time: str,
    found: FileSlice | None,
    old: CompactionOperation | None,
    sizes: Mapping[str, int],
    accept_missing: bool,
) -> None:
    """Raise MissingFileError where a file of a group's slice before the plan is gone."""
    newest = snapshot.written().newest.get(group)
    base = None if found is None else found.base_file
    committed: list[str] = []
    if newest is not None and newest.instant < time and (base is None or base.instant < newest.instant):
        committed.append(newest.path)
    first = "" if found is None else found.base_instant
    for path in committed_logs(snapshot)[1].get(group, ()):
        file = parse_log_file(group[0], path.rpartition("/")[2])
        if file is not None and first <= file.instant < time:
            committed.append(path)
    gone = next((p for p in committed if p not in sizes), None)
    remedy = "restore the file from a backup, or the table to a savepoint."
    if gone is None and old is not None and not accept_missing and is_safe(group[0]):
        paths = [join_path(group[0], n) for n in (_last(old.data_file), *map(_last, old.log_files)) if n]
        gone = next((p for p in paths if p not in sizes), None)
        remedy = (
            "restore the file from a backup; no commit of the timeline wrote it: where it is known that it is not "
            "needed, run `hudi compact repair` with --accept-missing."
        )
    if gone is not None:
        raise MissingFileError(
            "a file of a slice that the compaction plan takes is gone",
            table=snapshot.storage.uri, instant=time, file=gone, remedy=remedy,
        )  # fmt: skip


def _last(path: str) -> str:
    return path.rpartition("/")[2]
