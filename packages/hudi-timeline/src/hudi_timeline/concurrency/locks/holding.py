"""Holding of a lock, as any process sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from hudi_timeline.concurrency import heartbeat


@dataclass(frozen=True, slots=True)
class Holding:
    """One holding of a lock, from its acquisition to its release.

    Attributes:
        token: of this holding and no other.
        holder: as the provider notes it.
        process: the holder's process; None where it is not told, as of Apache Hudi's writers.
        since_ms, renewed_ms, expires_ms: milliseconds since the epoch; None where they are not told.
        waiting: who else is in the queue, where there is one.
    """

    token: str
    holder: str
    process: heartbeat.Owner | None = None
    since_ms: int | None = None
    renewed_ms: int | None = None
    expires_ms: int | None = None
    waiting: int = 0


@runtime_checkable
class ShownLock(Protocol):
    """Lock whose holding can be looked at and ended by others."""

    def holding(self) -> Holding | None:
        """Current holding; None for a lock that is free.

        Raises:
            LockError: it cannot be told.
        """
        ...

    def end_holding(self, token: str) -> bool:
        """End one holding, and no other; returns whether it was still there.

        Raises:
            LockError: it cannot be ended from outside, or now.
        """
        ...


def process_in(text: str) -> heartbeat.Owner | None:
    """Process noted in the text of a holder, the last of its words."""
    return heartbeat.Owner.of_text(text.rpartition(" ")[2])


def is_dead(process: heartbeat.Owner | None) -> bool:
    """Whether it was another process of this machine, which has ended."""
    return (
        process is not None
        and process.text() != heartbeat.this_process().text()
        and heartbeat.has_ended(process)
    )


def milliseconds_of(text: str) -> int | None:
    """Moment that a lock file of Apache Hudi names, in the local time of its writer."""
    try:
        return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f").timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None
