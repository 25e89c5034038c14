"""Builds of the metadata table's partitions, as a timeline tells of them.

    <t>.indexing.requested   the plan: partitions, and the instant up to which they are known to be right
    <t>.indexing.inflight    here the plan again, with the instant of the file groups that were made for each partition
                             in the place of that one; empty where Apache Hudi executes it
    <t>.indexing             the partitions that were built

Writers keep a partition up to date while it is built, once its file groups are there.

Source: ScheduleIndexActionExecutor and RunIndexActionExecutor of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hudi_format.errors import MissingFileError
from hudi_format.storage.protocol import Storage
from hudi_timeline.timeline.action_metadata import IndexPlan, read_action
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import INDEXING, INFLIGHT, Instant


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """A build that is pending.

    Attributes:
        plan: of the inflight file, where it is one of ours, else of the requested one.
        is_begun: whether its file groups are made, by this package.
    """

    instant: Instant
    plan: IndexPlan
    is_begun: bool

    @property
    def time(self) -> str:
        return self.instant.time

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(p.partition for p in self.plan.partitions)

    def made_at(self, partition: str) -> str:
        """Instant of a partition's file groups; "" where none were made."""
        if not self.is_begun:
            return ""
        return next((p.up_to for p in self.plan.partitions if p.partition == partition), "")


def pending_builds(storage: Storage, timeline: Timeline) -> tuple[IndexBuild, ...]:
    """Pending builds, oldest first.

    Raises:
        CorruptFileError: a plan cannot be read.
    """
    out = []
    for instant in timeline.pending(INDEXING):
        begun = _plan(storage, instant) if instant.state == INFLIGHT else None
        if begun is not None:
            out.append(IndexBuild(instant, begun, is_begun=True))
            continue
        requested = next(
            (f for f in timeline.files_of({(instant.time, INDEXING)}) if f.state != INFLIGHT),
            instant,
        )
        out.append(IndexBuild(instant, _plan(storage, requested) or IndexPlan(), is_begun=False))
    return tuple(out)


def completed_builds(storage: Storage, timeline: Timeline) -> dict[str, str]:
    """Partitions made by completed builds of this package, and instants of their file groups.

    Without those that another build is to make.
    """
    waiting = {p for b in pending_builds(storage, timeline) for p in b.partitions}
    done = {i.time for i in timeline.of(INDEXING) if i.completed}
    out: dict[str, str] = {}
    for file in timeline.files_of({(time, INDEXING) for time in done}):
        if file.state == INFLIGHT:
            plan = _plan(storage, file)
            out.update((p.partition, p.up_to) for p in (() if plan is None else plan.partitions))
    return {p: at for p, at in out.items() if p not in waiting}


def kept_while_built(storage: Storage, timeline: Timeline, partitions: Iterable[str]) -> set[str]:
    """Partitions being built that writers of this package keep up to date.

    Their file groups are made, or their build is completed and only the table's properties lag.
    """
    asked = set(partitions)
    if not asked:
        return set()
    begun = {p for b in pending_builds(storage, timeline) if b.is_begun for p in b.partitions}
    return asked & (begun | completed_builds(storage, timeline).keys())


def begun_plan(plan: IndexPlan, made_at: dict[str, str]) -> IndexPlan:
    """Plan of an inflight file: partitions whose file groups were made, with their instants."""
    kept = (p for p in plan.partitions if p.partition in made_at)
    return replace(plan, partitions=tuple(replace(p, up_to=made_at[p.partition]) for p in kept))


def _plan(storage: Storage, instant: Instant) -> IndexPlan | None:
    try:
        found = read_action(storage, instant)
    except MissingFileError:  # begun, completed or taken back since
        return None
    return found if isinstance(found, IndexPlan) else None
