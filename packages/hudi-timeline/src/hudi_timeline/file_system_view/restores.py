"""Restores of a table, and which instants they have undone.

The timeline keeps restores for good.  What they undid is on no timeline, but the archive has what was archived before
them: commits that came after a savepoint, with `hoodie.archive.beyond.savepoint`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hudi_format.errors import CorruptFileError
from hudi_format.storage.protocol import Storage
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import REQUESTED, RESTORE, Instant

if TYPE_CHECKING:
    from hudi_timeline.file_system_view.snapshot import TableSnapshot


@dataclass(frozen=True, slots=True)
class Restores:
    """Restores on a timeline.

    Attributes:
        times: of the restores.
        targets: the commit that each went to, by its time, where its plan says so.
        writes: times of completed writes.
    """

    times: tuple[str, ...]
    targets: Mapping[str, str]
    writes: tuple[str, ...]

    @classmethod
    def of(cls, storage: Storage, timeline: Timeline) -> Restores:
        restores = timeline.of(RESTORE)
        targets = {i.time: to for i in restores if (to := restored_to(storage, i))}
        writes = timeline.completed_writes() if restores else ()
        return cls(tuple(i.time for i in restores), targets, tuple(w.time for w in writes))

    def surely_undid(self, instant: str) -> bool:
        """Whether one that says where it went to went to a state before an archived instant."""
        return any(to < instant < at for at, to in self.targets.items())

    def undid(self, instant: str) -> bool:
        """Whether one went to a state before an archived instant.

        Of one that does not say where to: that it left no write between the two.  Writes are archived and restores are
        not, so that this alone would undo all that was archived before any restore.
        """
        unsaid = (at for at in self.times if at > instant and at not in self.targets)
        return self.surely_undid(instant) or any(
            not any(instant < w < at for w in self.writes) for at in unsaid
        )


def restored_to(storage: Storage, restore: Instant) -> str:
    """Commit that a restore goes to; "" where its plan does not say."""
    from hudi_timeline.timeline.action_metadata import (  # few tables were restored
        RestorePlan,
        parse_action,
    )

    try:
        plan = parse_action(RESTORE, REQUESTED, storage.read(restore.path_in(REQUESTED)))
    except (FileNotFoundError, CorruptFileError):
        return ""
    return plan.savepoint if isinstance(plan, RestorePlan) else ""


def no_loss(snapshot: TableSnapshot) -> Callable[[str], bool]:
    """Function that says whether a range lacks nothing by an archived instant.

    It is on the timeline too, as an archival writes before it removes; or it was undone.
    """
    active = snapshot.visible().completed
    restores = cache(lambda: Restores.of(snapshot.storage, snapshot.timeline))  # whose plans few ranges need
    return lambda instant: instant in active or restores().surely_undid(instant)
