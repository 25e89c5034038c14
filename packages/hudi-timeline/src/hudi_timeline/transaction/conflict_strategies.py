"""Conflict strategies: which file groups of two writers that overlap are the same.

The first of two writers whose file groups overlap wins.  What counts as the same file group, and whether a table
service that is only planned counts, is said by a strategy: those of Apache Hudi by the names of their classes, or a
class of the user's as `module:Class`, which the call's options name and a table cannot.

Source: ConflictResolutionStrategy of Apache Hudi 0.15 and its three implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hudi_format._checks import imported
from hudi_format.errors import HudiError, InvalidOptionError
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.transaction_options import (
    BUCKET_STRATEGY,
    CONFLICT_STRATEGY,
    NON_BLOCKING,
    PRIMARY_STRATEGIES,
    SIMPLE_STRATEGY,
)

FileGroup = tuple[str, str]  # partition path, file id

CLUSTERING, COMPACTION = "clustering", "compaction"
# Operations whose rows do not depend on what is in the table.
_BLIND = ("UPSERT", "INSERT")
# Digits of a file id that are the number of its bucket.
_BUCKET = 8


@dataclass(frozen=True, slots=True)
class ConcurrentOperation:
    """Facts about a writer or table service, for a strategy.

    Attributes:
        instant: its instant time.
        action: `commit`, `deltacommit`, `replacecommit`; `compaction` or `clustering` for a plan that is pending.
        operation: Apache Hudi's name, such as UPSERT; "" for a plan.
        completed: whether it is committed; else it is planned.
        file_groups: partition path and file id of what it wrote, replaced, or is to rewrite.
        extra: the extraMetadata of its commit.
        appended: those of the file groups to which it only added log files, without a deletion.
    """

    instant: str
    action: str
    operation: str = ""
    completed: bool = True
    file_groups: frozenset[FileGroup] = frozenset()
    extra: Mapping[str, str] = field(default_factory=dict)
    appended: frozenset[FileGroup] = frozenset()


class ConflictStrategy(Protocol):
    """Decides about two operations that overlap in time."""

    def shared(self, ours: ConcurrentOperation, theirs: ConcurrentOperation) -> Iterable[FileGroup]:
        """Shared file groups, of our ids; theirs is completed or planned."""
        ...


class SimpleConcurrentFileWrites:
    """File groups that both write: the default."""

    def shared(self, ours: ConcurrentOperation, theirs: ConcurrentOperation) -> Iterable[FileGroup]:
        return ours.file_groups & theirs.file_groups


class BucketIndexConcurrentFileWrites:
    """Buckets that both write, whatever the rest of their file ids is."""

    def shared(self, ours: ConcurrentOperation, theirs: ConcurrentOperation) -> Iterable[FileGroup]:
        there = {(partition, file_id[:_BUCKET]) for partition, file_id in theirs.file_groups}
        return [group for group in ours.file_groups if (group[0], group[1][:_BUCKET]) in there]


class IngestionPrimaryWriter:
    """File groups that both write; a clustering that is only planned gives way.

    It then fails when it is committed.  A compaction does not give way: what a log would take after it was planned
    would be lost with it.
    """

    def shared(self, ours: ConcurrentOperation, theirs: ConcurrentOperation) -> Iterable[FileGroup]:
        if not theirs.completed and theirs.action == CLUSTERING:
            return ()
        return ours.file_groups & theirs.file_groups


class NonBlocking:
    """Conflict strategy: file groups that both writes only appended to are not shared.

    Args:
        inner: says which file groups are the same.
        blind: whether our rows depend on nothing that was read from the table.
    """

    def __init__(self, inner: ConflictStrategy, *, blind: bool) -> None:
        self._inner = inner
        self._blind = blind

    def shared(self, ours: ConcurrentOperation, theirs: ConcurrentOperation) -> Iterable[FileGroup]:
        found = self._inner.shared(ours, theirs)
        if not (self._blind and theirs.completed and ours.operation in _BLIND and theirs.operation in _BLIND):
            return found
        both = ours.appended & theirs.appended
        return [group for group in found if group not in both]


class _OwnStrategy:
    """Strategy of a class of the user's, whose faults are those of the option that names it."""

    def __init__(self, name: str) -> None:
        self._name = name
        made = imported(name, CONFLICT_STRATEGY)
        try:
            self._inner: ConflictStrategy = made()
        except Exception as e:
            raise self._wrong(f"makes no strategy: {type(e).__name__}: {e}") from e
        if not callable(getattr(self._inner, "shared", None)):
            raise self._wrong("makes no strategy: it has no method shared")

    def shared(self, ours: ConcurrentOperation, theirs: ConcurrentOperation) -> Iterable[FileGroup]:
        try:
            found = list(self._inner.shared(ours, theirs))
        except HudiError:
            raise
        except Exception as e:
            raise self._wrong(f"failed: {type(e).__name__}: {e}", instant=ours.instant) from e
        for group in found:
            if not (isinstance(group, tuple) and len(group) == 2 and all(isinstance(n, str) for n in group)):
                why = f"gave {group!r} for a file group, and not its partition and file id"
                raise self._wrong(why, instant=ours.instant)
        return found

    def _wrong(self, why: str, **where: str) -> InvalidOptionError:
        return InvalidOptionError(
            f"{CONFLICT_STRATEGY}={self._name} {why}",
            remedy="give a class that is made without arguments, with the method shared(ours, theirs) of "
            "hudi_timeline.transaction.conflict_strategies.ConflictStrategy, which gives file groups of ours.",
            option=CONFLICT_STRATEGY,
            **where,
        )


_STRATEGIES: Mapping[str, Callable[[], ConflictStrategy]] = {
    SIMPLE_STRATEGY: SimpleConcurrentFileWrites,
    BUCKET_STRATEGY: BucketIndexConcurrentFileWrites,
    **dict.fromkeys(PRIMARY_STRATEGIES, IngestionPrimaryWriter),
}


def strategy_of(options: TransactionConfig, *, blind: bool = False) -> ConflictStrategy:
    """The strategy that a call's options name.

    Args:
        blind: whether the write's rows depend on nothing that was read from the table.

    Raises:
        InvalidOptionError: a class of the user's that cannot be imported or made, or is none.
    """
    name = options.conflict_strategy
    found = _STRATEGIES[name]() if name in _STRATEGIES else _OwnStrategy(name)
    return NonBlocking(found, blind=blind) if options.mode == NON_BLOCKING else found
