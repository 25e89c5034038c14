"""Inline table services after a commit: cleaning, archival, compaction, log compaction.

The write is completed and visible by then, so cleaning or archival that fails makes a warning, and the next commit
tries again.  A compaction that fails makes the call fail, as in Apache Hudi, unless the options say otherwise; where
another process is at it, it is left to that.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from hudi_format.errors import ConcurrentWriterError, HudiError, WriteConflictError
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.compaction_config import CompactionConfig
from hudi_timeline.options.service_config import ServiceConfig
from hudi_timeline.options.service_options import FAIL_ON_SERVICES
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.services import metadata_services
from hudi_timeline.services.archival import archive
from hudi_timeline.services.archive_planner import wants_archive
from hudi_timeline.services.cleaning import clean, wants_clean
from hudi_timeline.services.compaction import compaction, log_compaction
from hudi_timeline.services.compaction.compaction import begun_elsewhere
from hudi_timeline.services.compaction.compaction_planner import is_due
from hudi_timeline.services.compaction.slice_tasks import Runner
from hudi_timeline.services.table_service import EXECUTE, ServiceContext
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import COMPACTION, DELTA_COMMIT
from hudi_timeline.transaction.retries import COMPLETED_WRITE

log = logging.getLogger("hudi")


@dataclass(frozen=True, slots=True)
class AfterCommit:
    """Result of the inline services.

    Attributes:
        warnings: what went wrong, one sentence each.
        timeline: with the commit, as they found it; None where none was looked at.
        compacted: instants of the compactions and log compactions that were completed.
    """

    warnings: tuple[str, ...] = ()
    timeline: Timeline | None = None
    compacted: tuple[str, ...] = ()


def run(
    storage: Storage, config: ServiceConfig, options: TransactionConfig, *, runner: Runner | None = None
) -> AfterCommit:
    """Run the services that are due.

    Args:
        runner: runs the tasks of a compaction; None for threads of this process.

    Raises:
        HudiError: a compaction failed, and `hoodie.fail.writes.on.inline.table.service.exception` is true.
    """
    if not config.enabled:
        return AfterCommit()
    done = _clean_and_archive(storage, config, options)
    if done.timeline is None or not done.timeline.of(DELTA_COMMIT):
        return done
    warnings, compacted = list(done.warnings), []
    try:
        context = ServiceContext(storage, options)
        if context.table.table_type == "MERGE_ON_READ":
            compacted = _compact(context, config.compaction, warnings, runner)
            if config.compaction.log_compact_inline:
                compacted += _log_compact(context, config.compaction, runner)
            warnings += context.warnings
    except ConcurrentWriterError as e:
        warnings.append(f"the compaction after the write is left to another process: {e}")
    except (HudiError, OSError) as e:
        if config.compaction.fail_writes:
            e.add_note(
                "The write itself is completed and visible; the compaction after it failed, and its plan, if there "
                f"is one, is still there.  {FAIL_ON_SERVICES}=false makes this a warning."
            )
            if isinstance(e, HudiError):
                e.details[COMPLETED_WRITE] = True
            raise
        log.warning("%s: the compaction after the commit failed", storage.uri, exc_info=True)
        warnings.append(f"the write is completed, but the compaction after it failed: {e}")
    return AfterCommit(tuple(warnings), done.timeline, tuple(compacted))


def _compact(
    context: ServiceContext, config: CompactionConfig, warnings: list[str], runner: Runner | None
) -> list[str]:
    """Compact as the options say; returns the instants of completed compactions."""
    timeline = context.look().timeline
    pending = timeline.pending(COMPACTION)
    if config.schedule_inline:
        if not pending and is_due(timeline, config, context.clock()).is_due:
            compaction.schedule(context, config, only_if_due=True)
        return []
    if not config.compacts_inline:
        return []
    done: list[str] = []
    for instant in pending:
        if not begun_elsewhere(context, instant, warnings) and not context.is_alive(instant):
            result = compaction.compact(
                context, config, mode=EXECUTE, instant=instant.time, seen=True, run=runner
            )
            done += result.executed
    if is_due(timeline, config, context.clock()).is_due:
        made = compaction.schedule(context, config, only_if_due=True)
        if made.instant:
            result = compaction.compact(
                context, config, mode=EXECUTE, instant=made.instant, seen=True, run=runner
            )
            done += result.executed
    return done


def _log_compact(context: ServiceContext, config: CompactionConfig, runner: Runner | None) -> list[str]:
    """Merge log blocks; returns the instants of completed log compactions.

    What a write that came between takes back is planned again after the next commit.
    """
    try:
        return list(log_compaction.log_compact(context, config, run=runner).executed)
    except WriteConflictError as e:
        context.warnings.append(f"no log blocks were merged: {e.message}")
        return []


def _clean_and_archive(storage: Storage, config: ServiceConfig, options: TransactionConfig) -> AfterCommit:
    snapshot: TableSnapshot | None = None
    warnings: list[str] = []
    try:
        context = ServiceContext(storage, options)
        snapshot = context.look()
        # The lock is taken only where there may be something to do.
        fresh = 0
        if config.clean_automatic and wants_clean(context, snapshot, config):
            result = clean(context, config, only_if_due=True)
            fresh = len(result.finished) + bool(result.instant)
            for partition, names in result.failed.items():
                warnings.append(f"{len(names)} old files in {partition or 'the table'} could not be deleted")
        metadata_services.maintain(context, config)
        if config.archive_automatic and wants_archive(snapshot.timeline, config, fresh):
            archive(context, config)
        warnings += context.warnings
    except (HudiError, OSError) as e:
        log.warning("%s: services after the commit failed", storage.uri, exc_info=True)
        warnings.append(f"the write is completed, but cleaning up after it failed: {e}")
    return AfterCommit(tuple(warnings), None if snapshot is None else snapshot.timeline)
