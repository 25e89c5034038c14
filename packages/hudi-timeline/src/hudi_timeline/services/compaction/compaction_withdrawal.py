"""Withdrawal of compaction plans, whole or for one file group, and their validation.

A plan begins a slice of each of its file groups: what is appended while it is pending goes to log files that carry the
plan's instant.  Once the plan is gone nobody reads these files: neither this project nor Apache Hudi knows an instant
for them.  Apache Hudi's command renames them, under names that the commits do not know, and then its incremental
queries, and every reader here, miss committed files.  So a file group that has such log files keeps its plan, which is
to be executed; the other ones leave it.

Source: CompactionAdminClient of Apache Hudi 0.15, whose plans and timelines these are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from hudi_format.errors import HudiError, InstantNotFoundError, UnsupportedError
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.services.compaction.compaction_executor import rolled_back
from hudi_timeline.services.compaction.pending_plans import (
    PendingPlan,
    begun_slices,
    executable_slices,
    find_idle,
    find_pending,
    read_pending,
    replace_plan,
)
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.action_metadata import CompactionOperation, CompactionPlan

log = logging.getLogger("hudi")


@dataclass(frozen=True)
class WithdrawalResult(HtmlView):
    """Result of withdrawing a plan, or of its `dry_run`.

    Attributes:
        instant: of the plan.
        withdrawn: operations that leave the plan.
        kept: operations that stay in it, as log files were written for the slices that it began.
        gone: whether the plan leaves the timeline.
    """

    instant: str
    withdrawn: tuple[CompactionOperation, ...]
    kept: tuple[CompactionOperation, ...] = ()

    @property
    def gone(self) -> bool:
        return not self.kept


@dataclass(frozen=True)
class OperationCheck(HtmlView):
    """Whether an operation of a pending plan can be executed.

    Attributes:
        operation: of the plan.
        error: why not; "" where it can.
    """

    operation: CompactionOperation
    error: str = ""

    @property
    def valid(self) -> bool:
        return not self.error


def unschedule(
    context: ServiceContext,
    instant: str,
    *,
    partition: str | None = None,
    file_id: str | None = None,
    dry_run: bool = False,
) -> WithdrawalResult:
    """Withdraw a pending plan, or one file group of it.

    An execution that was left dead is rolled back first.

    Args:
        instant: of the plan.
        partition, file_id: the file group; not given, all of them.
        dry_run: say what would be done and change nothing.

    Raises:
        InstantNotFoundError: no such plan is pending, or it has no such file group.
        ConcurrentWriterError: it is being executed, or a write is at work that may append to its slices.
        UnsupportedError: log files were written for each of the slices: the plan is to be executed.
    """
    storage = context.storage
    if (partition is None) != (file_id is None):
        raise ValueError("a file group is named by partition and file_id")

    def chosen(operation: CompactionOperation) -> bool:
        return file_id is None or (operation.partition, operation.file_id) == (partition, file_id)

    if dry_run:
        snapshot = context.look()
        found = _checked(context, snapshot, instant)
        return _result(snapshot, found, chosen)
    with context.locked(keep_metadata=True) as snapshot:
        found = _checked(context, snapshot, instant)
        result = _result(snapshot, found, chosen)
        rolled_back(snapshot, found.instant)
        left = None if result.gone else replace(found.plan, operations=result.kept)
        replace_plan(context, found.instant, left)
    log.info("%s: %d operations of compaction %s are withdrawn", storage.uri, len(result.withdrawn), instant)
    return result


def _checked(context: ServiceContext, snapshot: TableSnapshot, instant: str) -> PendingPlan:
    # Earlier writes append to the slices before those that the plan began.
    return read_pending(context.storage, find_idle(context, snapshot, instant, after=instant))


def _result(
    snapshot: TableSnapshot, found: PendingPlan, chosen: Callable[[CompactionOperation], bool]
) -> WithdrawalResult:
    storage, operations = snapshot.storage, found.plan.operations
    wanted = [o for o in operations if chosen(o)]
    if operations and not wanted:
        raise InstantNotFoundError(
            f"the compaction {found.time} has no such file group",
            table=storage.uri,
            instant=found.time,
            remedy="`hudi compact show` lists its file groups.",
        )
    begun = begun_slices(list_partition_files(storage, {o.partition for o in operations}), found.time)
    withdrawn = tuple(o for o in wanted if (o.partition, o.file_id) not in begun)
    if wanted and not withdrawn:
        first = begun[wanted[0].partition, wanted[0].file_id]
        raise UnsupportedError(
            "what was written since the plan was made stands in log files of the slices that it began, which nobody "
            "would read without it",
            table=storage.uri,
            instant=found.time,
            file=first,
            remedy=f"execute it: `hudi compact run PATH {found.time}`.",
        )
    out = {id(o) for o in withdrawn}
    return WithdrawalResult(found.time, withdrawn, tuple(o for o in operations if id(o) not in out))


def validate(context: ServiceContext, instant: str) -> tuple[OperationCheck, ...]:
    """Check whether each operation of a pending plan can be executed; changes nothing.

    Raises:
        InstantNotFoundError: no such plan is pending.
        CorruptFileError, UnsupportedError: the plan cannot be read.
    """
    snapshot = context.look()
    storage = context.storage
    found = read_pending(storage, find_pending(snapshot.timeline, instant, table=storage.uri))
    listing = list_partition_files(storage, {o.partition for o in found.plan.operations})
    checks = []
    for operation in found.plan.operations:
        alone = replace(found, plan=CompactionPlan((operation,), version=found.plan.version))
        try:
            executable_slices(snapshot, alone, listing)
        except HudiError as e:
            checks.append(OperationCheck(operation, str(e)))
        else:
            checks.append(OperationCheck(operation))
    return tuple(checks)
