"""Compaction planning: whether one is due, and the file slices that it takes.

Pure functions of a snapshot and the options.  A plan is Apache Hudi's HoodieCompactionPlan, version 2: either program
executes what the other one planned.

Once a plan stands on the timeline, what is written to its file groups goes to log files of a slice that begins at the
plan's instant.  A write that began before it does not know that: its log files would belong to the slice that is
compacted, and be in no plan.  So nothing is planned while such a write is open.

Source: ScheduleCompactionActionExecutor and BaseHoodieCompactionPlanGenerator of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from hudi_format.file_names import log_sort_key
from hudi_format.model import FileSlice
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slices import newest_slices, pending_compactions, planned_groups
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.compaction_config import CompactionConfig
from hudi_timeline.options.service_options import (
    NUM_AND_TIME,
    NUM_COMMITS,
    NUM_COMMITS_AFTER_LAST_REQUEST,
    NUM_OR_TIME,
)
from hudi_timeline.services.compaction.compaction_strategies import (
    LOG_BYTES,
    LOG_FILES,
    READ_MB,
    TOTAL_IO_MB,
    WRITE_MB,
    choose_operations,
    choose_partitions,
)
from hudi_timeline.timeline.action_metadata import CompactionOperation, CompactionPlan
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering
from hudi_timeline.timeline.instant import (
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    INFLIGHT,
    LOG_COMPACTION,
    Instant,
    parse_instant,
)
from hudi_timeline.transaction.conflict_resolution import clustered_groups

PLAN_VERSION = 2
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a compaction is due.

    Attributes:
        is_due: whether it is.
        delta_commits: since the last compaction, or plan of one, as the trigger counts them.
        seconds: since the last compaction, or the first delta commit.
    """

    is_due: bool
    delta_commits: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.delta_commits} delta commits and {self.seconds:,.0f} s since the last compaction"


def is_due(timeline: Timeline, config: CompactionConfig, now: datetime) -> Due:
    """Whether a compaction is due, by the trigger of the options.

    Args:
        now: in the table's time zone.
    """
    deltas = [i.time for i in timeline.of(DELTA_COMMIT)]
    last = max((i.time for i in timeline.completed(COMMIT)), default="")
    counted_from = last
    if config.trigger == NUM_COMMITS_AFTER_LAST_REQUEST:
        counted_from = max((i.time for i in timeline.pending(COMPACTION)), default=last)
        counted_from = max(counted_from, last)
    count = sum(t > counted_from for t in deltas)
    since = last or min(deltas, default="")
    seconds = seconds_since(since, now) if since else 0.0
    enough, late = count >= config.delta_commits, seconds >= config.delta_seconds
    if not deltas:
        due = False
    elif config.trigger in (NUM_COMMITS, NUM_COMMITS_AFTER_LAST_REQUEST):
        due = enough
    elif config.trigger == NUM_AND_TIME:
        due = enough and late
    elif config.trigger == NUM_OR_TIME:
        due = enough or late
    else:
        due = late
    return Due(due, count, seconds)


def seconds_since(instant: str, now: datetime) -> float:
    """Seconds from an instant to now, in the table's time zone; infinite where it is no time."""
    try:
        return (now - parse_instant(instant)).total_seconds()
    except ValueError:  # the instant of a bootstrap, which is no time
        return float("inf")


def open_writes(storage: Storage, timeline: Timeline) -> list[Instant]:
    """Pending writes that a plan must not overtake, oldest first.

    Clusterings append nothing, nor do log compactions that nobody has begun.
    """
    return [
        *(i for i in timeline.pending_writes() if not is_clustering(storage, timeline, i)),
        *(i for i in timeline.pending(LOG_COMPACTION) if i.state == INFLIGHT),
    ]


def reserved_groups(snapshot: TableSnapshot, *, without: str = "") -> frozenset[Group]:
    """File groups in pending compactions and clusterings, and in begun log compactions.

    One that was not begun is overtaken, and withdrawn by whoever comes to execute it.

    Args:
        without: the instant of a log compaction that does not count.

    Raises:
        CorruptFileError, MissingFileError: a plan that cannot be read.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    groups = set(pending_compactions(snapshot))
    begun = (i for i in timeline.pending(LOG_COMPACTION) if i.state == INFLIGHT and i.time != without)
    groups.update(*(planned_groups(storage, i) for i in begun))
    for instant in timeline.pending_writes():
        if is_clustering(storage, timeline, instant):
            groups |= clustered_groups(storage, instant)
    return frozenset(groups)


def make_compaction_plan(
    snapshot: TableSnapshot,
    config: CompactionConfig,
    *,
    now: datetime,
    extra: dict[str, str] | None = None,
    leave_out: Collection[Group] = (),
) -> CompactionPlan:
    """Plan of a compaction; without operations where there is nothing to compact.

    Args:
        now: in the table's time zone.
        extra: entries for the plan, which go into the metadata of its commit.
        leave_out: further file groups to leave out.

    Raises:
        CorruptFileError, MissingFileError: a committed file is not there, or a pending plan cannot be read.
        UnsupportedError: partitions that the strategy cannot handle.
    """
    listing = snapshot.listing().files
    chosen = choose_partitions(listing, config, now.date())
    reserved = {*reserved_groups(snapshot), *leave_out}
    wanted = set(chosen)
    operations = [
        operation_of(s, config)
        for s in newest_slices(snapshot, listing)
        if s.log_files and s.partition in wanted and (s.partition, s.file_id) not in reserved
    ]
    return CompactionPlan(
        tuple(choose_operations(operations, config, now.date())), extra or {}, version=PLAN_VERSION
    )


def operation_of(file_slice: FileSlice, config: CompactionConfig) -> CompactionOperation:
    """Operation of a plan that compacts a file slice."""
    base = file_slice.base_file
    logs = sorted(file_slice.log_files, key=log_sort_key)
    log_bytes = file_slice.log_bytes
    base_bytes = file_slice.bytes - log_bytes
    read = file_slice.bytes // _MIB
    write = (config.max_file_bytes if base is None else base_bytes) // _MIB
    metrics = {
        LOG_FILES: len(logs),
        TOTAL_IO_MB: read + write,
        READ_MB: read,
        LOG_BYTES: log_bytes,
        WRITE_MB: write,
    }
    return CompactionOperation(
        partition=file_slice.partition,
        file_id=file_slice.file_id,
        base_instant=file_slice.base_instant,
        data_file="" if base is None else base.name,
        log_files=tuple(f.name for f in logs),
        metrics={name: float(value) for name, value in metrics.items()},
    )
