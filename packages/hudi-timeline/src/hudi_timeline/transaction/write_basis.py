"""Basis of a write's plan, and changes to it by concurrent writers.

A write looks at a table and makes up its mind, then takes its instant, then writes files, then publishes its commit.
Another writer may come in between any two of these.  So what it went by is kept as one value, and compared with what
is there under the lock, when the instant is taken and again before the commit is published.  Comparing reads nothing:
both sides were loaded for other reasons.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from hudi_format.errors import WriteConflictError
from hudi_timeline import table_config
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import RESTORE, Instant

# Nothing of a plan depends on the metadata table, which a write may make or take away.
_NOT_LOOKED_AT = frozenset(
    {table_config.METADATA_PARTITIONS, table_config.METADATA_PARTITIONS_INFLIGHT, table_config.CHECKSUM}
)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes since the basis.

    Attributes:
        written: writes that were completed since then, whenever they began, oldest first.
        undone: writes that were completed then, and were rolled back since.
        restores: times of restores that were begun since then.
        properties: keys of hoodie.properties with another value, sorted.
        untold: writes that were open then and are gone from before the oldest active one: they were completed and
            archived, or rolled back, and what they did is not told.
    """

    written: tuple[Instant, ...] = ()
    undone: tuple[str, ...] = ()
    restores: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.written or self.undone or self.restores or self.properties or self.untold)

    @property
    def rival(self) -> str:
        """Newest instant of a change; "" for a change to hoodie.properties only."""
        return max((*(i.time for i in self.written), *self.restores, *self.untold), default="")

    def __str__(self) -> str:
        parts = [f"{i.action} {i.time} was completed" for i in self.written[-_SHOWN:]]
        if len(self.written) > _SHOWN:
            parts.insert(0, f"{len(self.written) - _SHOWN} writes were completed")
        parts += [f"the table was restored by {t}" for t in self.restores]
        if not self.restores:
            parts += [f"{t} was rolled back" for t in self.undone[-_SHOWN:]]
        parts += [f"{t}, which was open, has left the timeline" for t in self.untold[-_SHOWN:]]
        if self.properties:
            parts.append(f"hoodie.properties changed ({', '.join(self.properties)})")
        return ", ".join(parts)

    def conflict(
        self, why: str, *, table: str, instant: str = "", remedy: str = "", read_again: bool = False
    ) -> WriteConflictError:
        """Error of a write that cannot continue."""
        return WriteConflictError(
            f"the table changed while this write was running ({self}): {why}",
            table=table,
            instant=instant,
            remedy=remedy or "run the write again; it then builds on what is there.",
            rival=self.rival,
            changed=str(self),
            read_again=read_again,
        )


@dataclass(frozen=True, slots=True)
class Basis:
    """Table state that a write depends on.

    Attributes:
        properties: of hoodie.properties, what a write looks at.
        writes: times of the completed writes.
        restores: times of the restores, in any state.
        open: times of the pending writes.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    writes: frozenset[str] = frozenset()
    restores: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()

    @classmethod
    def of(cls, config: TableConfig, timeline: Timeline) -> Basis:
        """Basis of a configuration and timeline."""
        return cls(
            {k: v for k, v in config.properties.items() if k not in _NOT_LOOKED_AT},
            frozenset(i.time for i in timeline.completed_writes()),
            frozenset(i.time for i in timeline.of(RESTORE)),
            frozenset(i.time for i in timeline.pending_writes()),
        )

    def changes(self, config: TableConfig, timeline: Timeline) -> Changes:
        """Changes from the basis to the current state.

        Args:
            config, timeline: as they are under the table's lock.
        """
        now = Basis.of(config, timeline)
        if now == self:
            return Changes()
        # What is older than the oldest active instant was archived, not undone.  Archival leaves the newest writes.
        archived: Container[str] = timeline.archived() if now.writes else ()
        keys = {*self.properties, *now.properties}
        return Changes(
            tuple(i for i in timeline.completed_writes() if i.time not in self.writes),
            tuple(sorted(t for t in self.writes - now.writes if t not in archived)),
            tuple(sorted(now.restores - self.restores)),
            tuple(sorted(k for k in keys if self.properties.get(k) != now.properties.get(k))),
            tuple(sorted(t for t in self.open - now.open - now.writes if t in archived)),
        )


NOTHING = Basis()
"""Of whoever found no table."""


class FirstBasis:
    """Basis of the first of several tries of one write.

    A try that begins after another writer's commit looks at the table with it, and so sees no rival in it.  A write
    that would be another one after that commit goes by what the first try has found.
    """

    def __init__(self) -> None:
        self.basis: Basis | None = None

    def kept(self, found: Basis) -> Basis:
        """The basis of the first try, which is the one found now if there was none."""
        if self.basis is None:
            self.basis = found
        return self.basis
