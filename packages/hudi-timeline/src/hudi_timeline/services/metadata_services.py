"""Services of the metadata table after a commit: its compaction, cleaning and archival.

They run under the table's lock and fail like cleaning and archival of the table: the next commit tries again.

    archival: commits before the last compaction, and before every write and every pending instant of the table's own
    active timeline, where there are more than `most`, all but `least`; cleanings, rollbacks and compactions of that
    stretch too

A block of the metadata table counts as long as the instant of its time stands on the table's timeline, or a compaction
has merged it: the table's own archival stops at the last compaction (`archive_planner`), this one at the table's first
write.  Cleanings, rollbacks, restores and indexings of the table hold nothing back: one that is alone stays on its
timeline for good, and so would all of the metadata table's instants.

Source: HoodieBackedTableMetadataWriter.performTableServices and HoodieTimelineArchiver of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging

from hudi_timeline.metadata_config import FILES
from hudi_timeline.metadata_table import own_compaction
from hudi_timeline.metadata_table.own_table import OwnTable, open_own, own_if_there
from hudi_timeline.options.service_config import ServiceConfig
from hudi_timeline.services.archival import remove_instants, write_archive
from hudi_timeline.services.archive_planner import ArchivePlan, archive_entry
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import WRITE_ACTIONS

log = logging.getLogger("hudi")


def maintain(context: ServiceContext, config: ServiceConfig) -> None:
    """Compact, clean and archive the metadata table, where there is one and it is due.

    Raises:
        HudiError: the metadata table stays as it is, or what was done so far stands.
    """
    if FILES not in context.table.metadata_partitions:
        return
    own = own_if_there(context.storage)  # another writer may have dropped it since
    if (
        own is None
        or not own.deltas_since_compaction()
        or not own_compaction.is_due(own, context.look().timeline, config.metadata_delta_commits)
    ):
        return
    with context.locked() as snapshot:
        if FILES not in context.table.metadata_partitions:
            return
        timeline, partitions = snapshot.timeline, context.table.metadata_partitions
        own = open_own(context.storage)
        if not own_compaction.compact(own, timeline, config.metadata_delta_commits, partitions):
            return
        own_compaction.clean(open_own(context.storage), partitions)
        _archive(open_own(context.storage), timeline, config)


def plan_archive(own: OwnTable, table: Timeline, config: ServiceConfig) -> ArchivePlan:
    """Instants of the metadata table that can be archived."""
    writes = own.timeline.completed_writes()
    if len(writes) <= config.archive_max_commits + 1:
        return ArchivePlan()
    oldest_kept = writes[-(config.archive_min_commits + 1)].time
    needed = (i.time for i in table.instants if i.action in WRITE_ACTIONS or not i.completed)
    bound = min([own.last_compaction, oldest_kept, *needed])
    chosen = []
    for instant in own.timeline.instants:
        if instant.time >= bound or not instant.completed:
            break
        chosen.append(instant)
    keys = {(i.time, i.comparable_action) for i in chosen}
    return ArchivePlan(tuple(chosen), own.timeline.files_of(keys))


def _archive(own: OwnTable, table: Timeline, config: ServiceConfig) -> None:
    plan = plan_archive(own, table, config)
    if not plan:
        return
    table_config = own.snapshot.config
    entries = [archive_entry(own.storage, table_config, f) for f in plan.files]
    path = write_archive(own.storage, table_config, entries, config.archive_batch)
    remove_instants(own.storage, plan)
    log.info("%s: %d instants are archived into %s", own.storage.uri, len(plan.instants), path)
