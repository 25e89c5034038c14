"""Retries of writes that lost to others, and waiting for a writer that runs.

A retry is the whole operation with a new instant, from a fresh snapshot on: what was looked up, routed and written
before is forgotten, and the loser has been rolled back by then.  So what is retried has to be able to give its rows
again.  What is no conflict, and what a retry cannot mend, is raised at once.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol, TypeVar

from hudi_format.errors import ConcurrentWriterError, MissingFileError, WriteConflictError
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.concurrency.precedence import HELD_UP, Precedence
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.outlived_snapshot import LOST
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.options.transaction_config import TransactionConfig, parse_transaction_options
from hudi_timeline.options.transaction_options import (
    BY_KEYS,
    CONCURRENCY_MODE,
    CONFLICT_DETECTION,
    CONFLICT_RETRIES,
    NON_BLOCKING,
    OVERLAPPING,
)
from hudi_timeline.transaction.rollback_guard import running_writes

log = logging.getLogger("hudi")

# In the details of an error: it is of what comes after the commit, which another try would make a second time.
COMPLETED_WRITE = "completed"
# In those of a conflict: others have added keys that were looked up and not found, or deleted some that were found.
LOOK_AGAIN = "look_again"
# How often keys are looked up again at once.
LOOKUPS = 4

T = TypeVar("T")

# Two writers that lost to each other are to come back at different times.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 10.0
# A write that goes on losing to writers of other keys ends as a conflict too.
MOST_REBASES = 20
# While another writer runs, its instant is looked for this often.
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.02, 1.0


class Counted(Protocol):
    """Result of a write with the tries that it took."""

    @property
    def retries(self) -> int: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=Counted)


def waited_for(
    begin: Callable[[], T],
    wait_ms: int,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> T:
    """Result of `begin`, called again while it is refused because another write runs.

    For how long it gives way to one that has precedence, `begin` says itself.

    Raises:
        ConcurrentWriterError: the other write runs on after `wait_ms`.
    """
    deadline = clock() + wait_ms / 1000
    look_s = _FIRST_LOOK_S
    while True:
        try:
            return begin()
        except ConcurrentWriterError as e:
            left = _LONGEST_LOOK_S if e.details.get(HELD_UP) else deadline - clock()
            if not (e.details.get("running") or e.details.get(HELD_UP)) or left <= 0:
                raise
        pause(min(look_s, left))
        look_s = min(2 * look_s, _LONGEST_LOOK_S)


def is_retryable(error: ConcurrentWriterError) -> bool:
    """Whether the same write may succeed, and means the same, after this error."""
    if isinstance(error, WriteConflictError):
        return error.details.get("retry_safe") is not False
    return bool(error.details.get("running"))


class Tries:
    """Tries of one write, whose rows can be had again.

    Attributes:
        lost: what each try lost to.
        ended: how many tries came to nothing because of others, those included that do not count as retries.
    """

    def __init__(
        self,
        retries: int,
        *,
        readings: int = 0,
        lookups: int = 0,
        rebases: int = 0,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """Args:
        retries: how often a write that lost is run again.
        readings: how often rows that were read from the table are read again at once, where it has changed before
            anything was written, or has other rows of their kind before the commit.
        lookups: how often keys are looked up again at once, where others have added or deleted some of them.
        rebases: how often a write is made again at once on top of one that wrote other keys of its file groups, or that
            overtook it where writers do not block each other.
        """
        self._retries = retries
        self._readings = readings
        self._lookups = lookups
        self._rebases = rebases
        self._draw = draw
        self.lost: list[str] = []
        self.ended = 0
        self._counted = 0

    def read_again(self, error: MissingFileError) -> bool:
        """Count a reading of what others have archived, cleaned or rolled back meanwhile.

        Returns:
            False where rows are not read anew, the file is lost, or the write completed: the error is to be raised.
        """
        if self._readings <= 0 or error.details.get(LOST) or error.details.get(COMPLETED_WRITE):
            return False
        self._readings -= 1
        self.ended += 1
        return True

    def again(self, error: ConcurrentWriterError) -> bool:
        """Pause before the next try.

        Returns:
            False where there is none: the error is to be raised, by its handler, as here it would hold this call, and
            with it all that was read, until Python's next garbage collection.
        """
        self.ended += 1
        if error.details.get("read_again") and self._readings > 0:
            self._readings -= 1
            return True
        if error.details.get(LOOK_AGAIN) and self._lookups > 0:
            self._lookups -= 1
            return True
        if not is_retryable(error):
            return False
        if (error.details.get("keys_disjoint") or error.details.get("overtaken")) and self._rebases > 0:
            self._rebases -= 1
            self.lost.append(error.message)
            return True
        if self._counted >= self._retries:
            if self._counted:
                error.details["retries"] = self._counted
                error.add_note(
                    f"The write was tried {self._counted + 1} times ({CONFLICT_RETRIES}={self._retries})."
                )
            return False
        self._counted += 1
        self.lost.append(error.message)
        pause_s = min(FIRST_PAUSE_S * 2.0 ** (self._counted - 1), LONGEST_PAUSE_S) * (0.5 + self._draw() / 2)
        log.warning(
            "try %d of %d lost, again in %.1f s: %s", self._counted, self._retries + 1, pause_s, error.message
        )
        time.sleep(pause_s)
        return True

    def counted(self, result: R) -> R:
        """The result, which says how often it was tried."""
        if not self.lost:
            return result
        said = f"it was written at try {len(self.lost) + 1}; the one before lost: {self.lost[-1]}"
        return replace(result, retries=len(self.lost), warnings=(*result.warnings, said))  # type: ignore[type-var]


def retried(
    options: Mapping[str, str],
    write: Callable[[int], R],
    *,
    readings: int = 0,
    lookups: int = 0,
    once: bool = False,
) -> R:
    """Result of a write, run again as its options say.

    Args:
        write: one try, which begins with nothing that an earlier one looked up; it is told how many others were first.
        readings, lookups: as of `Tries`.
        once: a dry run, which loses to nobody.

    Raises:
        ConcurrentWriterError, MissingFileError: of the last try.  OptionError: as of the write.
    """
    asked = _asked(options)
    rebases = MOST_REBASES if _rebases(asked) else 0
    tries = Tries(0 if once else asked.conflict_retries, readings=readings, lookups=lookups, rebases=rebases)
    while True:
        try:
            return tries.counted(write(tries.ended))
        except MissingFileError as e:
            if not tries.read_again(e):
                raise
        except ConcurrentWriterError as e:
            if not tries.again(e):
                raise


@contextmanager
def before_reading(storage: Storage, options: Mapping[str, str], lost: int) -> Iterator[Precedence | None]:
    """Scope of a try that reads the rows it is made of, with precedence where it lost often.

    It is had before the rows are read, and after what was open then has ended.  What is committed between the reading
    and the write's instant would take the rows back, and the write would lose to that each time.

    Args:
        lost: as `retried` tells it.

    Raises:
        LockError, ConcurrentWriterError, StorageError.  OptionError: as of the write.
    """
    asked = _asked(options)
    if asked.mode not in OVERLAPPING or not 0 < asked.precedence_after <= lost:
        yield None
        return
    config = table_config.load(storage)
    lock = lock_of(storage, asked, table_name=config.name)
    standing = Precedence(storage, asked, lost=lost, caller=RunningCall.here())

    def give_way() -> None:
        with lock.held():  # who has looked for precedence before has its instant now
            standing.give_way(True, lambda: running_writes(load_snapshot(storage, config), asked))

    try:
        waited_for(give_way, asked.running_wait_ms)
        yield standing
    finally:
        standing.end()


def may_retry(options: Mapping[str, str]) -> bool:
    """Whether a write of these options may be run again, so that its rows are needed again.

    Raises:
        OptionError: as of the write.
    """
    asked = _asked(options)
    return asked.conflict_retries > 0 or _rebases(asked)


def _rebases(asked: TransactionConfig) -> bool:
    return asked.detection == BY_KEYS or asked.mode == NON_BLOCKING


def _asked(options: Mapping[str, str]) -> TransactionConfig:
    named = any(key in options for key in (CONFLICT_RETRIES, CONFLICT_DETECTION, CONCURRENCY_MODE))
    return parse_transaction_options(options) if named else TransactionConfig()
