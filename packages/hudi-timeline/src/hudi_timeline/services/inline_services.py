"""Inline table services after a commit: cleaning, then archival.

The write is completed and visible by then, so a service that fails makes a warning, and the next commit tries again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from hudi_format.errors import HudiError
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.service_config import ServiceConfig
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.services.archival import archive
from hudi_timeline.services.archive_planner import wants_archive
from hudi_timeline.services.cleaning import clean, wants_clean
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.active_timeline import Timeline

log = logging.getLogger("hudi")


@dataclass(frozen=True, slots=True)
class AfterCommit:
    """Result of the inline services.

    Attributes:
        warnings: what went wrong, one sentence each.
        timeline: with the commit, as they found it; None where none was looked at.
    """

    warnings: tuple[str, ...] = ()
    timeline: Timeline | None = None


def run(storage: Storage, config: ServiceConfig, options: TransactionConfig) -> AfterCommit:
    """Run the services that are due."""
    if not config.enabled:
        return AfterCommit()
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
        if config.archive_automatic and wants_archive(snapshot.timeline, config, fresh):
            archive(context, config)
        warnings += context.warnings
    except (HudiError, OSError) as e:
        log.warning("%s: services after the commit failed", storage.uri, exc_info=True)
        warnings.append(f"the write is completed, but cleaning up after it failed: {e}")
    return AfterCommit(tuple(warnings), None if snapshot is None else snapshot.timeline)
