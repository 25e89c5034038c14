"""Base of table services: table, lock, conflict check."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from hudi_format.errors import InvalidOptionError, StaleSnapshotError
from hudi_format.storage.open import as_durable_as_asked
from hudi_format.storage.protocol import Storage
from hudi_timeline import feature_gate, table_config
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.heartbeat import Heartbeat
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.outlived_snapshot import looked_again
from hudi_timeline.file_system_view.snapshot import TableSnapshot, load_snapshot
from hudi_timeline.metadata_table import upkeep
from hudi_timeline.options.service_config import ServiceConfig, parse_service_options
from hudi_timeline.options.transaction_config import TransactionConfig, parse_transaction_options
from hudi_timeline.options.transaction_options import HIGH, OVERLAPPING
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import Instant, zone_of
from hudi_timeline.transaction import orphans
from hudi_timeline.transaction.rollback_guard import is_running

# What a service of two steps does: plan, execute what is planned, or both.
SCHEDULE, EXECUTE, BOTH = MODES = ("schedule", "execute", "schedule_and_execute")

WHILE_RESTORING = ("pending restore",)
"""Features of the gate that are allowed to what goes on although a restore is not finished."""
WITH_INDEXES = ("metadata table indexes",)
"""And to what leaves the metadata table as it is, or drops indexes."""


def check_mode(mode: str) -> None:
    """Refuse a mode that services of two steps do not have.

    Raises InvalidOptionError.
    """
    if mode not in MODES:
        raise InvalidOptionError(
            f"mode={mode!r} is unknown", remedy=f"use {', '.join(map(repr, MODES[:-1]))} or {BOTH!r}."
        )


P = ParamSpec("P")
T = TypeVar("T")


def dry_run_looks_again(
    service: Callable[Concatenate[ServiceContext, P], T],
) -> Callable[Concatenate[ServiceContext, P], T]:
    """A service whose dry runs, which hold no lock, go by `looked_again`."""

    @wraps(service)
    def run(context: ServiceContext, /, *args: P.args, **kwargs: P.kwargs) -> T:
        def look() -> T:
            try:
                return service(context, *args, **kwargs)
            except StaleSnapshotError:
                context.forget()
                raise

        return looked_again(look) if kwargs.get("dry_run") else service(context, *args, **kwargs)

    return run


class ServiceContext:
    """Context of one table service.

    Attributes:
        storage: the table's.
        table: its configuration, read again whenever the lock is taken.
        lock: the table's.
        warnings: what the user should know.
    """

    def __init__(self, storage: Storage, options: TransactionConfig | None = None) -> None:
        """Context of a service.

        Raises NotAHudiTableError.
        """
        self.options = options = options or TransactionConfig()
        self.storage = storage = as_durable_as_asked(storage, options.durability)
        self.table: TableConfig = table_config.load(storage)
        self.warnings: list[str] = []
        self.lock = lock_of(storage, self.options, table_name=self.table.name)
        self._seen: TableSnapshot | None = None

    @classmethod
    def of(cls, storage: Storage, options: Mapping[str, str], *, dry_run: bool = False) -> ServiceContext:
        """Context of a call; a dry run is refused whatever the run would be.

        Raises:
            UnsupportedError: of a dry run, the feature gate.
        """
        context = cls(storage, parse_transaction_options(options))
        if dry_run:
            context._seen = context.looked()
        return context

    def service_config(self) -> ServiceConfig:
        """Options of cleaning and archival."""
        return parse_service_options(self.options.raw)

    def clock(self, now: Callable[[], float] = time.time) -> datetime:
        """Time of day in the table's time zone."""
        return datetime.fromtimestamp(now(), zone_of(self.table.timezone)).replace(tzinfo=None)

    def heartbeat_at(self, instant: str, call: RunningCall) -> Heartbeat:
        """Heartbeat of a plan executed from now on, in the place of a dead process's."""
        heartbeat.delete(self.storage, instant)
        return heartbeat.start(self.storage, instant, *self.options.beats, call=call)

    @property
    def patience(self) -> int | None:
        """Commits, or log blocks, by which a service is late when writers wait; None: never."""
        options = self.options
        if options.mode not in OVERLAPPING or not options.precedence_after:
            return None
        return 0 if options.priority == HIGH else options.precedence_after

    @contextmanager
    def standing(self, *, first: bool) -> Iterator[Precedence]:
        """Standing of the caller among what runs beside it; its warning goes into `warnings`.

        Args:
            first: whether it has precedence.
        """
        standing = Precedence(self.storage, self.options, first=first, caller=RunningCall.here())
        try:
            yield standing
        finally:
            standing.end()
            self.warnings += [standing.warning] if standing.warning else []

    def is_alive(self, instant: Instant) -> bool:
        """Whether the writer of a pending instant is alive, by its heartbeat."""
        return is_running(self.storage, instant, self.options)

    def look(self) -> TableSnapshot:
        """Current snapshot; for a dry run, the one that passed its checks."""
        return self._seen or load_snapshot(self.storage, self.table)

    def looked(self, *, allowed: Collection[str] = (), also: Collection[str] = ()) -> TableSnapshot:
        """Current snapshot for a dry run, refused where the run would be; arguments as of `locked`."""
        snapshot = self.look()
        self.check(snapshot, allowed=allowed, also=also)
        return snapshot

    def check(
        self, snapshot: TableSnapshot, *, allowed: Collection[str] = (), also: Collection[str] = ()
    ) -> None:
        """Refuse a table that the service would harm; arguments as of `locked`."""
        feature_gate.check_service(
            self.storage, snapshot.config, snapshot.timeline, self.options, allowed=allowed, also=also
        )

    def forget(self) -> None:
        """Let the next look be at what the table is then."""
        self._seen = None

    @contextmanager
    def locked(
        self,
        *,
        allowed: Collection[str] = (),
        also: Collection[str] = (),
        keep_metadata: bool = False,
    ) -> Iterator[TableSnapshot]:
        """Hold the table's lock to change the table; gives the snapshot under the lock.

        What a change would harm is refused, and a metadata table that would not be kept up to date is taken away.

        Args:
            allowed: features of the gate that this change is made for, or WHILE_RESTORING.
            also: further features of the gate that it would harm.
            keep_metadata: files stay as they are, so that the metadata table stays right.

        Raises:
            LockError; UnsupportedError: the feature gate.
        """
        with self.lock.held():
            table_config.recover(self.storage)
            self.table = table_config.load(self.storage)
            snapshot = load_snapshot(self.storage, self.table)
            self.check(snapshot, allowed=allowed, also=also)
            if not keep_metadata:
                self.settle_metadata_table(snapshot, is_gone=snapshot.timeline.lacks("metadata"))
            yield replace(snapshot, config=self.table)

    def check_lock(self) -> None:
        """Check that the lock is still held; LockError where it is not."""
        self.lock.verify()

    def settle_metadata_table(self, snapshot: TableSnapshot, *, is_gone: bool = False) -> None:
        """Take a metadata table away that is not kept, under the lock, with an entry in `warnings`."""
        settled, warning = upkeep.settle(snapshot, self.options, is_gone=is_gone)
        self.table = settled.config
        if warning:
            self.warnings.append(warning)

    def sweep(self, timeline: Timeline, marked: Sequence[str], beating: Sequence[str]) -> None:
        """Remove markers and heartbeats of finished writes, under the lock.

        Args:
            timeline: as it is now.
            marked, beating: instants that had any before the timeline was looked at.
        """
        orphans.remove_marks(self.storage, timeline, marked)
        orphans.remove_heartbeats(self.storage, timeline, beating, self.options)
        orphans.remove_temporaries(self.storage)
