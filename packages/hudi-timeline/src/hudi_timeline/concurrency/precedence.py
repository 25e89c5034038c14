"""Precedence between writers and services that overlap: others wait before they begin.

A file in `.hoodie/.precedence` says who has it, as a heartbeat says who writes: one of a process that died, or is not
heard of, counts for nothing.  It is looked at under the table's lock, where an operation is about to take its instant.
Who has lost to others as often as the options say waits for those that are open and begins alone, so that it cannot
lose again; among several the first comes first.  A class that is higher than others shows itself from its beginning.

It is about time alone: whoever goes on without regard, as Apache Hudi's writers do, conflicts as it would have.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hudi_format.errors import ConcurrentWriterError
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.heartbeat import Heartbeat
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.transaction_options import HIGH, LOW, NORMAL, OVERLAPPING, PRECEDENCE_WAIT_MS

log = logging.getLogger("hudi")

FOLDER = ".hoodie/.precedence"
HELD_UP = "held_up"  # in the details of an error: who has precedence will be through
_FIRST = 3  # the rank of who lost often enough, above all classes
_TOLD_AFTER_S = 1.0  # a wait that is shorter is nobody's trouble
_RANKS = {LOW: 0, NORMAL: 1, HIGH: 2}


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """A file of the folder: who is of a higher rank, or of the same and earlier, goes first."""

    time: str
    rank: int
    name: str

    @classmethod
    def of(cls, name: str) -> Claim | None:
        rank, _, rest = name.partition("-")
        time, _, token = rest.partition("-")
        known = len(rank) == 1 and rank in "0123" and time.isdecimal() and token
        return cls(time, int(rank), name) if known else None


class Precedence:
    """Standing of one try of a write, or of a service, among those beside it.

    Args:
        lost: how many tries of it have lost.
        first: whether it has precedence however many those are.
        caller: the call that ends it.
    """

    def __init__(
        self,
        storage: Storage,
        options: TransactionConfig,
        *,
        lost: int = 0,
        first: bool = False,
        caller: RunningCall | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._storage, self._options, self._caller = storage, options, caller
        self._clock, self._now = clock, now
        self._claim: Heartbeat | None = None
        self._until = clock() + options.precedence_wait_ms / 1000
        self.warning = ""
        self._waits_since: float | None = None
        self._told = False
        self._counts = options.mode in OVERLAPPING
        often = options.precedence_after and lost >= options.precedence_after
        self._rank = _FIRST if first or often else _RANKS[options.priority]
        if self._counts and self._rank >= _RANKS[HIGH]:
            self._make_claim()

    @property
    def is_first(self) -> bool:
        """Whether others wait for it, of whichever class."""
        return self._counts and self._rank == _FIRST

    def give_way(self, has_folder: bool, others: Callable[[], Iterable[str]]) -> None:
        """Check under the table's lock that it may begin now.

        Args:
            has_folder: whether the folder of claims was listed just now.
            others: gives the instants of open writes whose writers are alive.

        Raises:
            ConcurrentWriterError: with `details["held_up"]`: not yet.
        """
        if not self._counts:
            return
        waits_for = self._ahead() if has_folder or self._claim is not None else ""
        if not waits_for and self._rank in (_FIRST, _RANKS[LOW]):
            waits_for = ", ".join(others())
        waited_s = 0.0 if self._waits_since is None else self._clock() - self._waits_since
        if not waits_for:
            if waited_s >= _TOLD_AFTER_S:
                self.warning = (
                    f"it waited {waited_s:.1f} s before it began, for writes or services that go first"
                )
            return
        if self._clock() >= self._until:
            if self._rank == _FIRST:
                self.warning = (
                    f"it began beside {waits_for} after {self._options.precedence_wait_ms} ms "
                    f"({PRECEDENCE_WAIT_MS}), and may lose to it; it waited {waited_s:.1f} s in all"
                )
                return
            self._withdraw()
            self._rank = _FIRST
            self._make_claim()
            self._until = self._clock() + self._options.precedence_wait_ms / 1000
        if self._waits_since is None:
            self._waits_since = self._clock()
        elif waited_s >= _TOLD_AFTER_S and not self._told:
            self._told = True
            log.warning(
                "%s: it waits for %s, until that has ended, or for %d ms and as long again with precedence (%s)",
                self._storage.uri, waits_for, self._options.precedence_wait_ms, PRECEDENCE_WAIT_MS,
            )  # fmt: skip
        raise ConcurrentWriterError(
            f"it waits for {waits_for}",
            table=self._storage.uri,
            remedy=f"it begins when that has ended, or {PRECEDENCE_WAIT_MS} is over.",
            held_up=True,
        )

    def end(self) -> None:
        """Let others go on; idempotent."""
        # The call has this in its variables: a circle, in which what it reads would stay open.
        self._caller = None
        self._withdraw()

    def _withdraw(self) -> None:
        if self._claim is not None:
            self._claim.stop()
            self._claim = None

    def _make_claim(self) -> None:
        name = f"{self._rank}-{int(self._now() * 1000):013d}-{uuid.uuid4().hex}"
        self._claim = heartbeat.start(
            self._storage, name, *self._options.beats, call=self._caller, folder=FOLDER
        )

    def _ahead(self) -> str:
        """Who goes first, in words; "" for nobody.  Claims of dead ones are removed."""
        mine = self._claim.instant if self._claim is not None else ""
        for claim in claims(self._storage):
            if claim.name == mine:
                continue
            found = heartbeat.liveness(
                self._storage, claim.name, *self._options.beats, folder=FOLDER, to_act=True
            )
            if not found.alive:
                self._storage.delete(heartbeat.heartbeat_path(claim.name, FOLDER))
            elif claim.rank > self._rank or (claim.rank == self._rank == _FIRST and claim.name < mine):
                named = f" of {found.process}" if found.process else ""
                return f"a write or service{named} that has precedence"
        return ""


def claims(storage: Storage) -> list[Claim]:
    """Claims that are there, of the living and the dead, in the order of their times."""
    found = (Claim.of(e.name) for e in storage.list(FOLDER) if not e.is_dir)
    return sorted(c for c in found if c is not None)
