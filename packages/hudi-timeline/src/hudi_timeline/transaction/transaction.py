"""Transactions: the only way for a write to change the timeline.

    begin:  lock { repair what died, new instant, heartbeat, requested }
    write:  inflight; data files with markers, by the engine, without the lock
    commit: lock { still ours? conflict? participants prepare, files of failed attempts deleted,
                   completed file = the commit, participants publish, markers deleted } heartbeat ends

Until the completed file is there, nothing of the write is visible and everything can be found and undone;
afterwards every step left may be repeated or left to the next writer.

Source: HoodieWriteClient of Apache Hudi 0.15, "Commit protocol".
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Protocol

from hudi_format.errors import (
    ConcurrentWriterError,
    HudiError,
    PartitionPathError,
    StorageError,
    ValidationError,
    WriteConflictError,
    WriteFailedError,
)
from hudi_format.model import WriteStat
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_timeline import feature_gate, metadata_config, table_config
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.concurrency.heartbeat import Heartbeat
from hudi_timeline.concurrency.locks import provider as locks
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.concurrency.own_files import create_own
from hudi_timeline.concurrency.precedence import FOLDER as CLAIMS
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.snapshot import CommitCache, TableSnapshot, load_snapshot
from hudi_timeline.metadata_table import mirror, upkeep
from hudi_timeline.options.transaction_config import EAGER, TransactionConfig
from hudi_timeline.options.transaction_options import ALLOW_EMPTY_COMMIT, BY_KEYS
from hudi_timeline.table_config import BACKUP_FILE, OVERWRITE_ROOM, TableConfig
from hudi_timeline.timeline.active_timeline import list_folder
from hudi_timeline.timeline.avro_files import empty_replace_request
from hudi_timeline.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, by_partition
from hudi_timeline.timeline.instant import (
    COMMIT,
    COMPLETED,
    INFLIGHT,
    REPLACE_COMMIT,
    REQUESTED,
    WRITE_ACTIONS,
    Instant,
    file_name,
    instant_path,
)
from hudi_timeline.timeline.instant_generator import TRIES_FOR_INSTANT, new_instant, wait_for_next_tick
from hudi_timeline.transaction import (
    conflict_report,
    consistency_guard,
    late_publication,
    orphans,
    overwrite,
    rollback_executor,
    rollback_guard,
    schema_history,
    schema_rebase,
    settings_change,
)
from hudi_timeline.transaction.conflict_strategies import strategy_of
from hudi_timeline.transaction.retries import waited_for
from hudi_timeline.transaction.rollback_guard import running_writes

log = logging.getLogger("hudi")

# In the commit's extraMetadata: the lock that its writer was told to take, so that different ones are found.
LOCK_NOTE = "hudi.lock"


class Participant(Protocol):
    """Participant of a commit, such as an index or callback."""

    @property
    def name(self) -> str: ...

    def prepare(self, transaction: Transaction, metadata: CommitMetadata) -> None:
        """Fallible part, without effect unless the commit's completed file appears."""
        ...

    def publish(self) -> None:
        """Called once the commit is visible; a crash may skip it."""
        ...

    def undo(self) -> None:
        """Undo `prepare`, also after a partial failure."""
        ...


def begin_transaction(
    storage: Storage,
    table: TableConfig,
    *,
    operation: str,
    action: str = COMMIT,
    options: TransactionConfig | None = None,
    now: Callable[[], float] = time.time,
    caller: RunningCall | None = None,
    commits: CommitCache | None = None,
    lost: int = 0,
    precedence: Precedence | None = None,
) -> Transaction:
    """Begin a write: repair after crashes, take an instant, announce it.

    Args:
        table: as the caller knows it; it is read again under the lock.
        operation: Apache Hudi's name of the operation, e.g. UPSERT.
        action: `commit`, `deltacommit` or `replacecommit`.
        options: how the transaction behaves.
        now: seconds since the epoch.
        caller: the call that ends the write; where it is over and the write is not ended, because of an interrupt,
            the next write rolls it back.  Without it the write goes on until it is ended.
        commits: what the caller has read of the table's commits.
        lost: how many tries of the same write have lost to others.
        precedence: that the write has already; it ends with the transaction.

    Raises:
        UnsupportedError: the feature gate, see `hudi_timeline.feature_gate`.
        ConcurrentWriterError: another write is running (policy EAGER), and was for `running_wait_ms`.
        LockError, ClockError, CorruptFileError, StorageError.
    """
    if action not in WRITE_ACTIONS:
        raise ValueError(f"a write is a commit, deltacommit or replacecommit, not {action!r}")
    options = options or TransactionConfig()
    strategy_of(options)  # one that cannot be had stops the write before it begins
    lock = lock_of(storage, options, table_name=table.name)
    precedence = precedence or Precedence(storage, options, lost=lost, caller=caller)
    try:
        begin = partial(_begin, storage, lock, operation, action, options, now, caller, commits, precedence)
        return waited_for(begin, options.running_wait_ms)
    except BaseException:
        precedence.end()
        raise


def _begin(
    storage: Storage,
    lock: locks.TableLock,
    operation: str,
    action: str,
    options: TransactionConfig,
    now: Callable[[], float],
    caller: RunningCall | None,
    commits: CommitCache | None,
    precedence: Precedence,
) -> Transaction:
    """One try to begin; see `begin_transaction`."""
    with lock.held():
        listed = list_folder(storage)
        if listed.has(OVERWRITE_ROOM):
            overwrite.settle(storage, beside_others=options.failed_writes != EAGER)
            listed = list_folder(storage)
        marked = markers.list_instants(storage) if listed.has(markers.TEMP_FOLDER) else []
        beating = heartbeat.list_instants(storage) if listed.has(heartbeat.FOLDER) else []
        if marked or beating:
            # The timeline is looked at after them: a marker folder that was seen had its instant before that.
            listed = list_folder(storage)
        if listed.has(BACKUP_FILE):
            table_config.recover(storage)
        snapshot = load_snapshot(storage, table_config.load(storage), commits=commits, listed=listed)
        feature_gate.check_write(
            storage, snapshot.config, snapshot.timeline, options, operation, read=snapshot.commits.get
        )
        for newest in snapshot.instants[-1:]:
            snapshot.commits.get(newest)  # one that cannot be read stops the write before it begins
        precedence.give_way(listed.has(CLAIMS), lambda: running_writes(snapshot, options))
        dead: list[Instant] = []
        if options.failed_writes == EAGER:
            dead = rollback_guard.dead_writes(snapshot, options, beating)
        no_metadata_table = not listed.has(metadata_config.FOLDER)
        snapshot, warning = upkeep.settle(snapshot, options, is_gone=no_metadata_table)
        if options.failed_writes == EAGER:
            snapshot = _repair(snapshot, dead, marked, beating, options)
        else:
            snapshot = rollback_executor.withdraw_overtaken(snapshot)
        snapshot = settings_change.settle(snapshot)
        snapshot, not_made = upkeep.build(snapshot, options)
        instant, beat = _announce(snapshot, action, options, now, RunningCall.here())
    warnings = tuple(w for w in (warning, not_made, precedence.warning) if w)
    transaction = Transaction(snapshot, instant, action, operation, options, lock, beat, precedence, warnings)
    if options.failed_writes != EAGER:
        transaction.beside_others = next(running_writes(snapshot, options), None) is not None
    beat.call = caller
    return transaction


def _repair(
    snapshot: TableSnapshot,
    dead: list[Instant],
    marked: list[str],
    beating: list[str],
    options: TransactionConfig,
) -> TableSnapshot:
    """Finish or undo work of dead writers; returns the resulting snapshot."""
    storage = snapshot.storage
    snapshot = rollback_executor.finish_pending(snapshot)
    for instant in dead:
        if snapshot.timeline.find(instant.time) is not None:  # else a pending rollback has undone it just now
            rollback_executor.rollback_instant(snapshot, instant)
            snapshot = snapshot.reloaded()
    timeline = snapshot.timeline
    orphans.remove_marks(storage, timeline, marked)
    orphans.remove_heartbeats(storage, timeline, beating, options)
    orphans.remove_temporaries(storage)
    orphans.remove_staging(storage)
    return snapshot


def _announce(
    snapshot: TableSnapshot,
    action: str,
    options: TransactionConfig,
    now: Callable[[], float],
    call: RunningCall,
) -> tuple[str, Heartbeat]:
    """Take an instant, heartbeat first, so that it is never pending without one."""
    storage = snapshot.storage
    content = empty_replace_request() if action == REPLACE_COMMIT else b""
    for _ in range(TRIES_FOR_INSTANT):
        instant = new_instant(snapshot.timeline, snapshot.config, now, table=storage.uri, at=options.instant)
        try:
            beat = heartbeat.start(storage, instant, *options.beats, call=call)
        except FileExistsError:
            continue
        try:
            storage.create(instant_path(snapshot.config, instant, action, REQUESTED), content)
        except FileExistsError:
            beat.stop()
            continue
        except BaseException:
            beat.stop()
            raise
        return instant, beat
    raise ConcurrentWriterError(
        "other writers took each of the instants tried", table=storage.uri,
        remedy="run the write again; configure the same lock provider for all writers.",
    )  # fmt: skip


class Transaction:
    """One write between its announcement and its commit or rollback.

    As a context manager it is rolled back when the block ends without `commit`.

    Attributes:
        storage, config: the table; `config` as it was read under the lock.
        instant, action, operation: of this write.
        snapshot: the table as of the beginning, without this write.
        warnings: what the user should know, one sentence each.
        beside_others: whether other writers were running when this one began.
        blind: whether its rows depend on nothing in the table, so that another try is the same write.
        judge: adds to a conflict what only the write knows, called with what gives the table as it is then.
    """

    def __init__(
        self,
        snapshot: TableSnapshot,
        instant: str,
        action: str,
        operation: str,
        options: TransactionConfig,
        lock: locks.TableLock,
        beat: Heartbeat,
        precedence: Precedence,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.storage = snapshot.storage
        self.config = snapshot.config
        self.snapshot = snapshot
        self.instant = instant
        self.action = action
        self.operation = operation
        self.warnings = list(warnings)
        self._options = options
        self._lock = lock
        self._heartbeat = beat
        self._precedence = precedence
        self._open = True
        self._mirrored = self._in_doubt = False
        self.committed = False
        self.beside_others = self.blind = False
        self.judge: Callable[[WriteConflictError, Callable[[], TableSnapshot]], None] | None = None
        self._undoing: list[Callable[[], None]] = []

    def when_undone(self, act: Callable[[], None]) -> None:
        """Register an action for before the rollback."""
        self._undoing.append(act)

    def now(self) -> TableSnapshot:
        """Current snapshot, with changes by others since the beginning."""
        return replace(self.snapshot, config=self.config).reloaded()

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._open:
            return
        try:
            # Rows that are refused: those of a stream are not known before.
            refused = isinstance(error, ValidationError | PartitionPathError)
            self.abort(repr(error) if error else "it ended without a commit", without_trace=refused)
        except (HudiError, OSError) as e:
            if error is None:
                raise
            if self.committed:
                error.add_note(f"The write itself is completed and visible as {self.instant}.")
                return
            error.add_note(consistency_guard.left_note(self.instant, e, in_doubt=self._in_doubt))

    def inflight(self, profile: Mapping[str, Sequence[WriteStat]] | None) -> None:
        """Write the inflight file.

        Args:
            profile: planned inserts and updates by partition, as in Apache Hudi's inflight files; None
                for an empty file, as its bulk_insert makes.

        Raises:
            ConcurrentWriterError: another writer rolled this write back.
        """
        content = b""
        if profile is not None:
            planned = {p: tuple(stats) for p, stats in profile.items()}
            content = CommitMetadata(planned, operation=self.operation).to_json()
        if self.storage.info(instant_path(self.config, self.instant, self.action, REQUESTED)) is None:
            raise self._taken_away("its requested file is gone")
        try:
            self.storage.create(instant_path(self.config, self.instant, self.action, INFLIGHT), content)
        except FileExistsError:
            raise self._taken_away("it is inflight already") from None

    def metadata_of(
        self,
        stats: Iterable[WriteStat],
        *,
        replaced: Mapping[str, Sequence[str]] | None = None,
        schema_text: str,
        extra: Mapping[str, str] | None = None,
    ) -> CommitMetadata:
        """Commit metadata of these files; arguments as `commit`."""
        return CommitMetadata(
            partition_to_stats=by_partition(stats),
            replaced={p: tuple(ids) for p, ids in (replaced or {}).items()},
            extra={**(extra or {}), **self._lock_note(), SCHEMA_KEY: schema_text},
            operation=self.operation,
            is_replace=self.action == REPLACE_COMMIT,
        )

    def _lock_note(self) -> dict[str, str]:
        return {LOCK_NOTE: self._lock.lock.name} if self._options.lock.provider else {}

    def commit(
        self,
        stats: Iterable[WriteStat],
        *,
        replaced: Mapping[str, Sequence[str]] | None = None,
        schema_text: str,
        extra: Mapping[str, str] | None = None,
        participants: Sequence[Participant] = (),
        even_if_empty: bool = False,
        recheck: schema_rebase.Recheck | None = None,
    ) -> CommitMetadata:
        """Make the write visible atomically.

        Args:
            stats: one for each file that belongs to the write; files of other attempts are deleted.
            replaced: file ids that the write replaces, by partition (replacecommit only).
            schema_text: the writer's Avro schema without meta columns.
            extra: further entries of the commit's metadata.
            participants: prepared in this order before the commit, undone in reverse if it fails.
            even_if_empty: commit a write of nothing whatever the options say.
            recheck: called under the lock where others have changed anything since this one began.

        Returns what was published: its schema is merged with what others did to the table's since this write began.

        Raises:
            WriteConflictError: another write changed the same file groups first, or what else this one goes by.
            ConcurrentWriterError: this write was taken for dead by another writer.
            MissingFileError: files of the write do not show up (hoodie.consistency.check.enabled).
            LockError, StorageError: before the commit; nothing is visible.

        An exception after the commit, from a participant's `publish`, has a note that says so.
        """
        if not self._open:
            raise ValueError(f"transaction {self.instant} has ended")
        metadata = self.metadata_of(stats, replaced=replaced, schema_text=schema_text, extra=extra)
        if metadata.replaced and self.action != REPLACE_COMMIT:
            raise ValueError("only a replacecommit replaces file groups")
        if not (metadata.stats or metadata.replaced or self._options.allow_empty or even_if_empty):
            self.abort(f"{ALLOW_EMPTY_COMMIT}=false")
            return metadata
        if self._options.consistency_check:
            consistency_guard.wait_for_files(self.storage, metadata.stats, self._options)
        try:
            with self._lock.held():
                return self._commit_locked(metadata, participants, recheck)
        except WriteConflictError as e:
            e.details["overtaken"] = self.blind
            # Outside of the lock: it reads files of both.
            if self.judge is not None:
                self.judge(e, self.now)
            conflict_report.complete(
                e, self.now, self.instant, metadata, every_group=self._options.detection == BY_KEYS
            )
            raise

    def _commit_locked(
        self,
        metadata: CommitMetadata,
        participants: Sequence[Participant],
        recheck: schema_rebase.Recheck | None,
    ) -> CommitMetadata:
        metadata, now = self._check_ours(metadata, recheck)
        metadata, history = schema_history.continued(now, self.instant, metadata)
        prepared: list[Participant] = []
        path = instant_path(self.config, self.instant, self.action, COMPLETED)
        try:
            for participant in (*participants, *history):
                prepared.append(participant)
                participant.prepare(self, metadata)
            self._delete_other_attempts(metadata)
            self._mirrored = True
            now = replace(now, config=table_config.load(self.storage)) if prepared else now
            mirrored = mirror.mirror_write(now, self.instant, metadata, self._options.indexes)
            self.config = mirrored.config
            self.warnings += mirrored.warnings
            # The last moment: preparing may have taken long.
            self._lock.verify()
            self._heartbeat.check()
            self._in_doubt = True
            self._publish(metadata)
            late = late_publication.check(self._lock, now, self.instant, self.action, metadata)
            self.warnings += [late] if late else []
        except BaseException as e:
            # What a visible commit goes by stays, whatever has failed after it.
            visible = consistency_guard.may_be_there(self.storage, path)
            self._in_doubt = self._in_doubt and visible
            for participant in () if visible else reversed(prepared):
                try:
                    participant.undo()
                except (HudiError, OSError) as undo_error:
                    e.add_note(f"{participant.name} could not be undone: {undo_error}")
            raise
        self._open = False
        self.committed = True
        try:
            for participant in participants:
                participant.publish()
        except BaseException as e:
            e.add_note(f"The write itself is completed and visible as {self.instant}.")
            raise
        finally:
            self._tidy()
        return metadata

    def _check_ours(
        self, metadata: CommitMetadata, recheck: schema_rebase.Recheck | None
    ) -> tuple[CommitMetadata, TableSnapshot]:
        """Check that the write may be completed; returns its final metadata, and the table without it."""
        self._lock.verify()
        self._heartbeat.check()
        snapshot = replace(self.snapshot, config=table_config.load(self.storage)).reloaded()
        config, timeline = snapshot.config, snapshot.timeline
        for state in (REQUESTED, INFLIGHT):
            if not timeline.has_file(file_name(self.instant, self.action, state)):
                raise self._taken_away(f"its {state.lower()} file is gone")
        strategy = strategy_of(self._options, blind=self.blind)
        metadata, warnings = schema_rebase.beside_others(
            self.instant, metadata, self.snapshot, snapshot, recheck, strategy
        )
        self.warnings += warnings
        if metadata_config.built(config):
            # Another writer may have built it since this one took it away, or have gone on without it.
            feature_gate.check_write(
                self.storage, config, timeline, self._options, self.operation, read=snapshot.commits.get,
                own=self.instant,
            )  # fmt: skip
            snapshot, warning = upkeep.settle(snapshot, self._options)
            self.warnings += [warning] if warning else []
        self.config = snapshot.config
        if self.storage.is_local:
            # Version 6 notes the time of completion as that of the file: readers in the order of completion that went
            # up to the newest commit would miss one of the same time.
            wait_for_next_tick(max((i.mtime_ms for i in timeline.completed_writes()), default=0))
        return metadata, snapshot

    def _delete_other_attempts(self, metadata: CommitMetadata) -> None:
        """Delete marked files that the commit does not name: failed and repeated attempts."""
        kept = {path for s in metadata.stats for path in s.paths}
        found = markers.list_markers(self.storage, self.instant)
        for marker in (*markers.own_files(found, self.instant), *markers.log_files(found, self.instant)):
            if marker.path not in kept:
                self.storage.delete(marker.path)
                flush(self.storage, [marker.path], written=False)

    def _publish(self, metadata: CommitMetadata) -> None:
        path = instant_path(self.config, self.instant, self.action, COMPLETED)
        content = metadata.to_json()
        try:
            create_own(self.storage, path, content)
        except FileExistsError:
            raise self._taken_away("another completed file is there") from None
        flush(self.storage, [path], written=False)

    def _tidy(self) -> None:
        """Remove the temporary files of a completed write; the next writer removes the rest."""
        for remove in (partial(markers.delete, self.storage, self.instant), self._stop):
            try:
                remove()
            except (StorageError, OSError) as e:
                self.warnings.append(
                    f"leftovers of the completed write {self.instant} could not be removed: {e}"
                )

    def _stop(self) -> None:
        """End the heartbeat and the precedence: where one file stays, others do not wait for the other."""
        try:
            self._heartbeat.stop()
        finally:
            self._precedence.end()

    def abort(self, reason: str = "", *, without_trace: bool = False) -> None:
        """Roll the write back; does nothing if it has ended.

        Args:
            reason: for the log.
            without_trace: leave no rollback instant and no new folder, so that the table is byte for byte as before;
                only where no other writer is at work (policy EAGER).

        Raises:
            HudiError: it could not be undone now; the next writer does it.
        """
        if not self._open:
            return
        self._open = False
        if not self._heartbeat.is_own:  # a forked child that ends does not end the write of its parent
            return
        log.info("%s: write %s is rolled back: %s", self.storage.uri, self.instant, reason or "it failed")
        try:
            with self._lock.held():
                # Whether there is a metadata table by now, which the rollback goes into.
                self.config = table_config.load(self.storage)
                now, warning = upkeep.settle(self.now(), self._options)
                self.warnings += [warning] if warning else []
                mine = (self.instant, self.action)
                own = next((i for i in now.timeline.instants if (i.time, i.action) == mine), None)
                if own is None:  # rolled back by another writer
                    rollback_executor.remove_leftovers(self.storage, self.instant)
                elif own.completed:
                    self.committed = True
                    raise WriteFailedError(
                        "the write was completed although its commit reported a failure",
                        table=self.storage.uri, instant=self.instant,
                        remedy="read the table: the write is visible; do not run it again.",
                    )  # fmt: skip
                else:
                    for act in self._undoing:
                        act()
                    alone = self._options.failed_writes == EAGER and not self._mirrored
                    if not (without_trace and alone and rollback_executor.withdraw(self.storage, own)):
                        rollback_executor.rollback_instant(now, own, own=True)
        finally:
            self._stop()

    def _taken_away(self, what: str) -> ConcurrentWriterError:
        return ConcurrentWriterError(
            f"this write was rolled back, or completed, by another writer: {what}",
            table=self.storage.uri, instant=self.instant,
            remedy="run the write again; configure the same lock provider for all writers.",
        )  # fmt: skip
