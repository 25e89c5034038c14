"""What the archive says, as far as the checks need it: which instants there were, which files were deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hudi_format.errors import HudiError
from hudi_format.storage import Storage
from hudi_timeline.archived import archived_actions
from hudi_timeline.instant import CLEAN, RESTORE, ROLLBACK, WRITE_ACTIONS
from hudi_timeline.metadata.actions import (
    Action,
    CleanerPlan,
    CleanMetadata,
    RestoreMetadata,
    RollbackMetadata,
    RollbackPlan,
)
from hudi_timeline.table_config import TableConfig


@dataclass
class Removed:
    """What instants deleted on purpose.

    Attributes:
        files: partition path and file name.
        partitions: whole partitions.
    """

    files: set[tuple[str, str]] = field(default_factory=set)
    partitions: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)

    def has(self, partition: str, name: str) -> bool:
        return partition in self.partitions or (partition, name) in self.files

    def take(self, action: Action | None) -> None:
        """Add what a clean, a rollback or a restore deleted, or is about to delete."""
        if isinstance(action, CleanMetadata):
            for partition, cleaned in action.partitions.items():
                self._names(partition, (*cleaned.deleted, *cleaned.failed, *cleaned.patterns))
                if cleaned.is_partition_deleted:
                    self.partitions.add(partition)
        elif isinstance(action, CleanerPlan):
            for partition, planned in action.files.items():
                self._names(partition, [f.path for f in planned])
            for partition, names in action.old_files.items():
                self._names(partition, names)
            self.partitions |= set(action.partitions)
        elif isinstance(action, RollbackMetadata):
            self.targets |= {*action.commits, *(i.time for i in action.instants)}
            for partition, back in action.partitions.items():
                self._names(partition, (*back.deleted, *back.failed))
        elif isinstance(action, RollbackPlan):
            if action.target is not None:
                self.targets.add(action.target.time)
            for request in action.requests:
                self._names(request.partition, request.files)
        elif isinstance(action, RestoreMetadata):
            self.targets |= {*action.commits, *(i.time for i in action.instants)}
            for rollback in (r for several in action.rollbacks.values() for r in several):
                self.take(rollback)

    def _names(self, partition: str, paths: Iterable[str]) -> None:
        self.files |= {(partition, p.rpartition("/")[2]) for p in paths}


@dataclass
class Archived:
    """The archived timeline.

    Attributes:
        writes: times of completed writes in it.
        times: of all instants in it.
        problem: why it could not be read, "" where it could.
    """

    removed: Removed
    writes: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()
    problem: HudiError | None = None

    @property
    def oldest(self) -> str:
        """The oldest write in it, "" for none: what was before it is not known, archives may be thrown away."""
        return min(self.writes, default="")


def read_archived_facts(storage: Storage, config: TableConfig) -> Archived:
    """One pass over the whole archive."""
    out = Archived(Removed())
    writes, times = set(), set()
    try:
        for instant, action in archived_actions(storage, config, frozenset({CLEAN, ROLLBACK, RESTORE})):
            times.add(instant.time)
            if instant.completed:
                if instant.action in WRITE_ACTIONS:
                    writes.add(instant.time)
                out.removed.take(action)
    except HudiError as e:
        out.problem = e
    out.writes, out.times = frozenset(writes), frozenset(times)
    return out
