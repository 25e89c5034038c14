"""Options of a transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_format.errors import ConcurrentWriterError, InvalidOptionError
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks import provider as locks
from hudi_timeline.concurrency.locks.select import lock_for
from hudi_timeline.concurrency.locks.storage_lock import DEFAULT_VALIDITY_S
from hudi_timeline.timeline.instant import Instant

EAGER, LAZY, NEVER = "EAGER", "LAZY", "NEVER"


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """Options of a transaction; the defaults are Apache Hudi's.

    Attributes:
        failed_writes: EAGER rolls back dead pending writes at the beginning and refuses to run beside a
            live one; LAZY and NEVER leave them alone.
        lock_wait_ms: how long to wait for the lock, in all.
        allow_empty: whether a write of nothing is committed.
        raw: what the user gave, for the feature gate.
    """

    heartbeat_interval_ms: int = heartbeat.DEFAULT_INTERVAL_MS
    heartbeat_misses: int = heartbeat.DEFAULT_MISSES
    failed_writes: str = EAGER
    lock_provider: str | None = None
    lock_path: str | None = None
    lock_expire_minutes: int = 0
    lock_validity_s: int = DEFAULT_VALIDITY_S
    lock_wait_ms: int = locks.DEFAULT_WAIT_MS
    allow_empty: bool = True
    raw: Mapping[str, str] | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> CommitOptions:
        """Transaction options among those of a write.

        Raises:
            InvalidOptionError: a value that cannot be parsed.
        """

        def number(key: str, default: int, least: int) -> int:
            text = options.get(key, "").strip()
            if not text:
                return default
            if not text.isascii() or not text.isdigit() or int(text) < least:
                raise InvalidOptionError(f"{key}={text!r} is not a whole number from {least}", option=key)
            return int(text)

        policy = (
            options.get("hoodie.cleaner.policy.failed.writes")
            or options.get("hoodie.clean.failed.writes.policy")
            or EAGER
        ).upper()
        if policy not in (EAGER, LAZY, NEVER):
            raise InvalidOptionError(
                f"hoodie.cleaner.policy.failed.writes={policy} is none of EAGER, LAZY, NEVER",
                option="hoodie.cleaner.policy.failed.writes",
            )
        mode = options.get("hoodie.write.concurrency.mode", "").upper()
        if mode == "OPTIMISTIC_CONCURRENCY_CONTROL" and policy == EAGER:
            policy = LAZY  # writers must not roll back each other
        return cls(
            heartbeat_interval_ms=number(
                "hoodie.client.heartbeat.interval_in_ms", heartbeat.DEFAULT_INTERVAL_MS, 1
            ),
            heartbeat_misses=number("hoodie.client.heartbeat.tolerable.misses", heartbeat.DEFAULT_MISSES, 1),
            failed_writes=policy,
            lock_provider=options.get("hoodie.write.lock.provider") or None,
            lock_path=options.get("hoodie.write.lock.filesystem.path") or None,
            lock_expire_minutes=number("hoodie.write.lock.filesystem.expire", 0, 0),
            lock_validity_s=number("hoodie.write.lock.storage.validity.timeout.secs", DEFAULT_VALIDITY_S, 1),
            lock_wait_ms=number("hoodie.write.lock.wait_time_ms", locks.DEFAULT_WAIT_MS, 0),
            allow_empty=options.get("hoodie.allow.empty.commit", "true").strip().lower() != "false",
            raw=options,
        )

    def lock_of(self, storage: Storage) -> locks.TableLock:
        """The lock of a table."""
        lock = lock_for(
            storage,
            self.lock_provider,
            path=self.lock_path,
            expire_minutes=self.lock_expire_minutes,
            validity_s=self.lock_validity_s,
            options=self.raw,
        )
        return locks.TableLock(lock, self.lock_wait_ms)


def refuse_alive(storage: Storage, pending: Instant, options: CommitOptions) -> None:
    """Raise ConcurrentWriterError if the writer of a pending instant is alive."""
    state = heartbeat.liveness(
        storage, pending.time, options.heartbeat_interval_ms, options.heartbeat_misses, now=time.time
    )
    if state.alive:
        owner = state.owner
        who = f" by process {owner.pid} on {owner.host}" if owner is not None and owner.pid else ""
        age = max(state.age_ms or 0, 0) / 1000
        raise ConcurrentWriterError(
            f"another write is running{who}: {pending.action} since {pending.time}, last heartbeat "
            f"{age:.0f} s ago",
            table=storage.uri,
            instant=pending.time,
            remedy="wait for it to end and run the write again; if its writer is known to be dead, "
            f"delete {heartbeat.heartbeat_path(pending.time)}, and the next write rolls it back.",
            heartbeat_age_ms=state.age_ms,
            host=owner.host if owner else "",
            pid=owner.pid if owner else 0,
        )
