"""Storage that fails on purpose: calls of a store fail, are delayed, lost or done twice, or are the last of a process.

    faults = Faults(Fault(CRASH, operation="create", path="*.commit", after=True))
    with faults.process():                                  # ends as a killed process does, at the fault
        HudiTable(faults.wrap(storage)).upsert(rows)
    HudiTable(storage).upsert(rows)                         # the next writer mends what is left
    faults.log                                              # every call, with what was done to it

Which calls are struck is said by number, operation and path, or left to a seed; `struck` gives the faults that did
strike, by number, so that a run of one thread can be repeated exactly.  Heartbeats beat at any time: their calls are
neither counted nor struck, and end with the process.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeVar

from hudi_format.errors import StorageError
from hudi_format.storage import Storage
from hudi_timeline import heartbeat

T = TypeVar("T")

CHANGES = frozenset(
    {
        "create", "publish", "touch", "open_output", "close_output", "delete", "delete_dir", "make_dir",
        "copy", "rename", "replace",
    }
)  # fmt: skip
"""The calls that change a store; `close_output` ends a stream of `open_output`."""
LOOKS = frozenset({"list", "info", "read", "read_range", "open_input", "read_version"})
"""The calls that only look."""
WRITES = frozenset({"create", "publish", "touch", "close_output"})
"""The calls that can be torn: their content can arrive in part."""


class Kind(StrEnum):
    """What happens to a call.

    FAIL: StorageError; with `after`, although the call was done: its answer is lost.
    CRASH: the process ends, before or `after` the call; every later call raises `Crash` too.
    LOSE: nothing is done, and the caller is not told.
    DOUBLE: done twice, as by a client that repeats a request; the second answer counts.
    DELAY: done after some seconds, or answered that late with `after`.
    TEAR: a part of the content arrives, then the process ends.
    STALE: a listing as it was some changes ago.
    """

    FAIL = "fail"
    CRASH = "crash"
    LOSE = "lose"
    DOUBLE = "double"
    DELAY = "delay"
    TEAR = "tear"
    STALE = "stale"


FAIL, CRASH, LOSE, DOUBLE = Kind.FAIL, Kind.CRASH, Kind.LOSE, Kind.DOUBLE
DELAY, TEAR, STALE = Kind.DELAY, Kind.TEAR, Kind.STALE


class Crash(BaseException):
    """The process is gone.  Not an Exception: nothing that handles errors may handle this."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Which calls are struck, and how.

    Attributes:
        number: the call with that number, counted from 1 over all calls; 0 for any.
        operation: a method of `Storage` or several; () for any that the kind can strike.
        path: a pattern of paths below the base path; `*` stands for slashes too.
        nth: of the calls that match all of the above, the first to be struck, from 1.
        times: how many from there on; 0 for all.
        after: once the call is done (FAIL, CRASH, DELAY).
        seconds: of DELAY.
        keep: the part of the bytes that arrives (TEAR).
        lag: how many changes ago the listing was true (STALE).
        error: the text of FAIL's error.
    """

    kind: Kind
    number: int = 0
    operation: str | frozenset[str] | tuple[str, ...] = ()
    path: str = "*"
    nth: int = 1
    times: int = 1
    after: bool = False
    seconds: float = 0.0
    keep: float = 0.5
    lag: int = 1
    error: str = "the store does not answer"

    def matches(self, number: int, operation: str, path: str) -> bool:
        """Whether the call is one of those that the fault is about."""
        if self.number and number != self.number:
            return False
        if not _can_strike(self.kind, operation):
            return False
        wanted = (self.operation,) if isinstance(self.operation, str) else self.operation
        return (not wanted or operation in wanted) and fnmatchcase(path, self.path)


def _can_strike(kind: Kind, operation: str) -> bool:
    if kind is TEAR:
        return operation in WRITES
    if kind is STALE:
        return operation == "list"
    if kind is LOSE:
        return operation in CHANGES and operation not in ("open_output", "replace")
    return kind is not DOUBLE or operation not in ("open_output", "open_input", "close_output")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the log.  `fault` is what struck it; `error` the class of what it raised; "" for nothing."""

    number: int
    operation: str
    path: str
    fault: str = ""
    error: str = ""

    @property
    def is_change(self) -> bool:
        return self.operation in CHANGES


class Faults:
    """Faults of one process; all storages that it wraps share one count of calls."""

    def __init__(self, *faults: Fault, sleep: Callable[[float], None] = time.sleep) -> None:
        """Args: sleep: waits for DELAY."""
        self.faults = faults
        self.log: list[Call] = []
        self.dead = False
        self._random: _Random | None = None
        self._met = [0] * len(faults)
        self._sleep = sleep
        self._lock = threading.RLock()
        self._storages: list[Storage] = []
        self._struck: list[Fault] = []
        self._now = threading.local()

    @classmethod
    def random(
        cls,
        seed: int,
        *,
        rate: float = 0.02,
        kinds: Iterable[Kind] = (FAIL, LOSE, DOUBLE),
        operations: Iterable[str] = (),
        path: str = "*",
        sleep: Callable[[float], None] = time.sleep,
    ) -> Faults:
        """Faults that a seed chooses: each call that fits is struck with probability `rate`, by one of the kinds.

        What is chosen depends on the seed, the number of the call and its operation.
        """
        found = cls(sleep=sleep)
        found._random = _Random(seed, rate, tuple(kinds), frozenset(operations), path)
        return found

    @property
    def calls(self) -> int:
        """How many calls there were."""
        return len(self.log)

    @property
    def changes(self) -> int:
        """How many of them were calls that change a store."""
        return sum(c.is_change for c in self.log)

    @property
    def struck(self) -> tuple[Fault, ...]:
        """The faults that struck, each by the number of its call: `Faults(*struck)` repeats them."""
        return tuple(self._struck)

    def wrap(self, storage: Storage) -> Storage:
        """The storage, with these faults."""
        from hudi_timeline.testing.storage import FaultyStorage  # which needs this module

        wrapped = FaultyStorage(storage, self)
        self._storages.append(wrapped)
        return wrapped

    @contextmanager
    def process(self) -> Iterator[Faults]:
        """What is done here ends at a crash, with all that a process takes with it: its heartbeats stop, their
        files stay."""
        try:
            yield self
        except Crash:
            if not self.dead:
                raise
        finally:
            if self.dead:
                for storage in self._storages:
                    heartbeat.abandon(storage)

    # --- for the storage -----------------------------------------------------------------------------

    def strike(self, operation: str, path: str, act: Callable[[], T], tear: Callable[[float], None]) -> T:
        """Do a call, or what its fault makes of it.

        Args:
            act: the call itself; may be done twice or not at all.
            tear: does the call with a part of its content.
        """
        if threading.current_thread().name.startswith("hudi-heartbeat"):
            if self.dead:
                raise StorageError("the process is gone", file=path)
            return act()
        fault, number = self._begin(operation, path)
        self._now.lag = fault.lag if fault is not None and fault.kind is STALE else 0
        try:
            result = act() if fault is None else self._do(fault, operation, path, act, tear)
        except BaseException as e:
            self._note(number, type(e).__name__)
            raise
        return result

    @property
    def lag(self) -> int:
        """How many changes ago the listing that this thread makes is to be true; 0 where it is not stale."""
        return int(getattr(self._now, "lag", 0))

    @property
    def keeps_journal(self) -> bool:
        """Whether listings may be stale, so that changes have to be remembered."""
        kinds = self._random.kinds if self._random is not None else [f.kind for f in self.faults]
        return STALE in kinds

    def _begin(self, operation: str, path: str) -> tuple[Fault | None, int]:
        with self._lock:
            if self.dead:
                raise Crash(f"{operation} {path}")
            number = len(self.log) + 1
            fault = self._choose(number, operation, path)
            if fault is not None:
                at = replace(fault, number=number, operation=(), path="*", nth=1, times=1)
                self._struck.append(at)
                if fault.kind in (CRASH, TEAR):
                    self.dead = True
            self.log.append(Call(number, operation, path, fault.kind.value if fault else ""))
            return fault, number

    def _choose(self, number: int, operation: str, path: str) -> Fault | None:
        if self._random is not None:
            return self._random.choose(number, operation, path)
        chosen = None
        for at, fault in enumerate(self.faults):
            if not fault.matches(number, operation, path):
                continue
            self._met[at] += 1
            past = self._met[at] - fault.nth
            if chosen is None and past >= 0 and (not fault.times or past < fault.times):
                chosen = fault
        return chosen

    def _do(
        self, fault: Fault, operation: str, path: str, act: Callable[[], T], tear: Callable[[float], None]
    ) -> T:
        if fault.kind is TEAR:
            tear(fault.keep)
            raise Crash(f"{operation} {path}")
        if fault.kind is DELAY and not fault.after:
            self._sleep(fault.seconds)
        if fault.kind is LOSE:
            return _nothing(operation)  # type: ignore[return-value]
        if fault.kind is DOUBLE:
            act()
        if fault.after or fault.kind in (DOUBLE, DELAY, STALE):
            result = act()
            if fault.kind is DELAY and fault.after:
                self._sleep(fault.seconds)
            if fault.kind not in (FAIL, CRASH):
                return result
        if fault.kind is FAIL:
            raise StorageError(fault.error, file=path)
        raise Crash(f"{operation} {path}")

    def _note(self, number: int, error: str) -> None:
        with self._lock:
            self.log[number - 1] = replace(self.log[number - 1], error=error)


def _nothing(operation: str) -> object:
    """What a call gives that was not done: a deletion says that there was a file."""
    return True if operation == "delete" else None


@dataclass(frozen=True, slots=True)
class _Random:
    seed: int
    rate: float
    kinds: tuple[Kind, ...]
    operations: frozenset[str]
    path: str

    def choose(self, number: int, operation: str, path: str) -> Fault | None:
        source = random.Random(f"{self.seed}/{number}/{operation}")
        if source.random() >= self.rate:
            return None
        kinds = [k for k in self.kinds if _can_strike(k, operation)]
        if not kinds or (self.operations and operation not in self.operations):
            return None
        if not fnmatchcase(path, self.path):
            return None
        return Fault(
            source.choice(kinds),
            after=source.random() < 0.5,
            seconds=source.random() / 1000,
            keep=source.random(),
            lag=source.randint(1, 5),
        )
