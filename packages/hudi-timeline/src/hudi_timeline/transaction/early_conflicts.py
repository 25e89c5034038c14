"""Early conflict detection: markers of other writers, looked at before a data file is begun.

A write that would lose when it commits ends before it has written the file: its worker finds the marker of a live
writer for the same file group.  Direct markers and those that Apache Hudi's timeline server batches are read alike.

    direct:       marks of writers that began earlier count; the check takes no lock
    transaction:  marks of all others count; check and mark are one step under a lock, so of two writers one goes on

What slips through is found at the commit, as without it.

Source: SimpleDirectMarkerBasedDetectionStrategy, SimpleTransactionDirectMarkerBasedDetectionStrategy and MarkerUtils of
Apache Hudi 0.15.  There the second one takes no lock but ZooKeeper's, gives it back before the marker is made, and then
looks at earlier writers only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from hudi_format.errors import WriteConflictError
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.concurrency.locks.provider import TableLock
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.transaction_options import (
    CONFLICT_RETRIES,
    EARLY_DETECTION,
    EARLY_TRANSACTION,
    ZOOKEEPER,
)
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.instant import COMMIT, COMPLETED, DELTA_COMMIT, REQUESTED, instant_path
from hudi_timeline.transaction.conflict_strategies import (
    BucketIndexConcurrentFileWrites,
    ConcurrentOperation,
    ConflictStrategy,
    FileGroup,
    strategy_of,
)
from hudi_timeline.transaction.transaction import Transaction

# Services mark their files too, and are none of a writer's rivals: readers and the commit tell them apart.
_WRITERS = (COMMIT, DELTA_COMMIT)


@dataclass(frozen=True, slots=True)
class EarlyDetection:
    """Early conflict detection of one write, for its workers.

    Attributes:
        options: of the write's transaction.
        table: its configuration.
        instant: of the write.
        by_bucket: whether two file groups of one bucket are the same.
        known: times of the writes that were completed when it began.
    """

    options: TransactionConfig
    table: TableConfig
    instant: str
    by_bucket: bool
    known: frozenset[str]

    @contextmanager
    def checked(self, storage: Storage, partition: str, file_id: str) -> Iterator[None]:
        """Scope in which the marker of a file group's new file is made.

        Raises:
            WriteConflictError: another writer is at work on the file group, or has changed it since this write began.
            LockError: the transaction strategy's lock.
        """
        within = self.options.early_strategy == EARLY_TRANSACTION
        lock = self._lock(storage, partition, file_id) if within else None
        with nullcontext() if lock is None else lock.held():
            self._check(storage, (partition, file_id), everyone=within)
            yield

    def _lock(self, storage: Storage, partition: str, file_id: str) -> TableLock:
        """Lock of a file group with ZooKeeper, as Apache Hudi names it; else the table's."""
        options = self.options
        if options.lock.provider == ZOOKEEPER:
            key = f"{partition}/{file_id}"
            options = replace(options, lock=replace(options.lock, zookeeper_lock_key=key))
        return lock_of(storage, options, table_name=self.table.name)

    def _check(self, storage: Storage, group: FileGroup, *, everyone: bool) -> None:
        strategy = strategy_of(self.options)
        for rival in markers.list_instants(storage):
            if rival == self.instant or (rival > self.instant and not everyone):
                continue
            try:
                found = markers.list_markers(storage, rival, partition=group[0])
            except FileNotFoundError:  # its batch of markers is deleted: it has ended
                continue
            groups = frozenset((m.partition, markers.file_id_of(m.file_name)) for m in found)
            if self._shares(
                strategy, group, ConcurrentOperation(rival, "", completed=False, file_groups=groups)
            ):
                self._refuse_alive(storage, group, rival)
        if self.options.early_commits:
            self._check_commits(storage, group, strategy)

    def _shares(self, strategy: ConflictStrategy, group: FileGroup, theirs: ConcurrentOperation) -> bool:
        ours = ConcurrentOperation(self.instant, "", completed=False, file_groups=frozenset({group}))
        strategies = (strategy, BucketIndexConcurrentFileWrites()) if self.by_bucket else (strategy,)
        return any(any(True for _ in s.shared(ours, theirs)) for s in strategies)

    def _refuse_alive(self, storage: Storage, group: FileGroup, rival: str) -> None:
        """Raise if the rival is a writer that is alive and not completed."""

        def has(action: str, state: str) -> bool:
            return storage.info(instant_path(self.table, rival, action, state)) is not None

        action = next((a for a in _WRITERS if has(a, REQUESTED)), None)
        if action is None or has(action, COMPLETED):
            return
        state = heartbeat.liveness(storage, rival, *self.options.beats, to_act=True)
        if not state.alive:
            return
        owner = state.process or "a writer that left no name"
        raise self._conflict(
            storage,
            group,
            rival,
            f"{action} {rival} of {owner} is writing file group",
            f"pending {action} of {owner}",
        )

    def _check_commits(self, storage: Storage, group: FileGroup, strategy: ConflictStrategy) -> None:
        """Raise if a write completed since this one began touched the file group."""
        now = load_snapshot(storage, self.table)
        for instant in now.timeline.completed_writes():
            if instant.time in self.known:
                continue
            groups = now.commits.get(instant).file_groups()
            completed = ConcurrentOperation(instant.time, instant.action, file_groups=groups)
            if self._shares(strategy, group, completed):
                what = f"{instant.action} {instant.time} has changed file group"
                raise self._conflict(storage, group, instant.time, what, "")

    def _conflict(
        self, storage: Storage, group: FileGroup, rival: str, what: str, owner: str
    ) -> WriteConflictError:
        name = f"{group[0] or '.'}/{group[1]}"
        return WriteConflictError(
            f"{what} {name}, which this write is about to change ({EARLY_DETECTION}); nothing of it was written yet",
            table=storage.uri,
            instant=self.instant,
            remedy=f"run the write again when the other one has ended, or set {CONFLICT_RETRIES}.",
            rival=rival,
            owner=owner,
            file_groups=[name],
            early=True,
        )


def of(transaction: Transaction, options: TransactionConfig, *, by_bucket: bool) -> EarlyDetection | None:
    """Early conflict detection of a write, as its options say; None for none."""
    if not options.early_detection:
        return None
    known = frozenset(i.time for i in transaction.snapshot.timeline.completed_writes())
    return EarlyDetection(options, transaction.config, transaction.instant, by_bucket, known)
