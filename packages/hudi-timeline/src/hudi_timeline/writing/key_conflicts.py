"""Conflicts by record key: two writers that overlap never leave one new key in two rows.

Apache Hudi compares file groups, so that two writers which add the same key make two rows of it.  With
`hudi.write.conflict.detection=keys` a write's keys are compared with those that others wrote since it began, of the
same partition, or of all with an index over all of them.  Most of that is read before the lock is taken: under
it only what was committed in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import UnsupportedError, WriteConflictError
from hudi_format.model import WriteStat
from hudi_index.lookup import GLOBAL_KINDS
from hudi_timeline.options.transaction_options import BY_KEYS, CONFLICT_DETECTION
from hudi_timeline.options.write_options import DUP_POLICY
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import Instant
from hudi_timeline.transaction.conflict_report import written_keys
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.transaction.write_basis import Basis
from hudi_timeline.writing.write_plan import Plan, drops_duplicates, fails_on_known_keys

# Under it a write of keys is not looked up, so that a second try would add them too.
_ADDS = ("insert", "bulk_insert")
_SHOWN = 5
# Of all partitions, where keys are unique over them.
_EVERYWHERE = ""

Keys = Mapping[str, pa.Array]  # by partition


def refuse_unknown(plan: Plan) -> None:
    """Refuse detection by keys where files do not hold them.

    Raises:
        UnsupportedError: the table fills no meta columns.
    """
    if plan.config.transaction.detection == BY_KEYS and plan.virtual:
        raise UnsupportedError(
            f"{CONFLICT_DETECTION}={BY_KEYS} needs the record keys in the files, and the table fills no meta columns",
            table=plan.storage.uri,
            remedy=f"leave {CONFLICT_DETECTION} out.",
            option=CONFLICT_DETECTION,
        )


class KeyCheck:
    """Comparison of a write's keys with those of its rivals; each file is read once."""

    def __init__(self, plan: Plan, instant: str, stats: Sequence[WriteStat]) -> None:
        self._plan = plan
        self._instant = instant
        self._stats = stats
        self._everywhere = plan.index in GLOBAL_KINDS
        self._ours: Keys | None = None
        self._theirs: dict[str, Keys] = {}

    @classmethod
    def of(cls, plan: Plan, transaction: Transaction, stats: Sequence[WriteStat]) -> KeyCheck | None:
        """Check of a write, with what can be read before the lock; None if not asked for."""
        if plan.config.transaction.detection != BY_KEYS or not stats:
            return None
        made = cls(plan, transaction.instant, stats)
        now = transaction.now()
        basis = Basis.of(transaction.snapshot.config, transaction.snapshot.timeline)
        for rival in basis.changes(now.config, now.timeline).written:
            made._keys_of(rival, now.commits.get(rival), now.config)
        return made

    def check(self, commits: Mapping[Instant, CommitMetadata], config: TableConfig) -> None:
        """Compare with what others committed.

        Raises:
            WriteConflictError: they wrote some of the same keys, elsewhere.
            MissingFileError, CorruptFileError, StorageError: reading their files.
        """
        for rival, commit in commits.items():
            theirs = self._keys_of(rival, commit, config)
            if not theirs:
                continue
            if self._ours is None:
                self._ours = self._by_partition(self._instant, self._stats, config)
            for partition, keys in self._ours.items():
                other = theirs.get(partition)
                both = [] if other is None else pc.filter(keys, pc.is_in(keys, value_set=other)).to_pylist()
                if both:
                    raise self._conflict(rival, both)

    def _keys_of(self, rival: Instant, commit: CommitMetadata, config: TableConfig) -> Keys:
        found = self._theirs.get(rival.time)
        if found is None:
            own = {s.partition for s in self._stats}
            stats = [s for s in commit.stats if self._everywhere or s.partition in own]
            found = self._theirs[rival.time] = self._by_partition(rival.time, stats, config)
        return found

    def _by_partition(self, instant: str, stats: Sequence[WriteStat], config: TableConfig) -> Keys:
        by: dict[str, list[WriteStat]] = {}
        for stat in stats:
            by.setdefault(_EVERYWHERE if self._everywhere else stat.partition, []).append(stat)
        read = {p: written_keys(self._plan.storage, config, instant, of) for p, of in by.items()}
        return {p: keys for p, keys in read.items() if keys is not None and len(keys)}

    def _conflict(self, rival: Instant, keys: list[str]) -> WriteConflictError:
        plan = self._plan
        looked_up = drops_duplicates(plan) or fails_on_known_keys(plan)
        safe = plan.operation not in _ADDS or looked_up
        remedy = "run the write again; it then updates the other one's rows."
        if not safe:
            remedy = f"use the operation upsert, which updates them, or set {DUP_POLICY}=drop to skip them."
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        return WriteConflictError(
            f"{rival.action} {rival.time} wrote {len(keys)} of the same record keys first, to other file groups: "
            f"{', '.join(keys[:_SHOWN])}{more}",
            table=plan.storage.uri,
            instant=self._instant,
            remedy=remedy,
            rival=rival.time,
            keys=keys[:_SHOWN],
            retry_safe=safe,
        )


__all__ = ["KeyCheck", "refuse_unknown"]
