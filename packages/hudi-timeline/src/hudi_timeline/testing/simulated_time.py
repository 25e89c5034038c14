"""Time and chance of a simulation, which are the same whenever it runs.

    clock = SimulatedTime()
    with clock.thread("one"):                # of this thread, until the block ends
        table.upsert(rows)                   # instants, modification times and new ids: the same each time
    clock.seconds

The clock goes on where an instant is taken, where somebody waits, and where it is told to, and nowhere else: what ran
in the same order leaves the same bytes.  Other threads have the machine's clock.
"""

from __future__ import annotations

import inspect
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, tzinfo
from functools import cache
from types import FunctionType, MappingProxyType
from typing import Any

from hudi_timeline.timeline import instant_generator

BEGIN_S = 1_767_268_800.0
"""Noon of the first day of 2026, in UTC: a table of a simulation is older than what is done to it afterwards."""

TICK_S = 0.001
# A simulation begins so long after what was done to its table before.
_APART_S = 5.0
# What is left of a pause, for those that wait for a clock's next tick.
_LONGEST_PAUSE_S = 0.02

_time, _monotonic, _sleep, _urandom, _random = (
    time.time, time.monotonic, time.sleep, os.urandom, random.random,
)  # fmt: skip


class SimulatedTime:
    """A clock, and random numbers by the name of a thread.

    Attributes:
        seconds: what it says, since the epoch.
        pausing: gets the seconds of each pause, beside it.
        taken: is called where an instant is taken.
        waited: for how many seconds the threads of a name paused, which is what durations are.
        ahead: by how many seconds the clock is ahead for who takes an instant, by the thread's name.
    """

    def __init__(self, begin_s: float = BEGIN_S) -> None:
        self.seconds = begin_s
        self.pausing: Callable[[float], None] | None = None
        self.taken: Callable[[], None] | None = None
        self.ahead: Mapping[str, float] = MappingProxyType({})
        # What they waited is all that a call takes: how long it took does not depend on what others did meanwhile.
        self.waited: dict[str, float] = {}
        self._chances: dict[str, random.Random] = {}

    @contextmanager
    def thread(self, name: str) -> Iterator[None]:
        """Let this thread have this clock; its random numbers follow from the name."""
        me = threading.get_ident()
        with _changing:
            before = _threads.get(me)
            if not _threads:
                _put_in_place()
            _threads[me] = (self, name)
        try:
            yield
        finally:
            with _changing:
                if before is not None:
                    _threads[me] = before
                else:
                    del _threads[me]
                if not _threads:
                    _put_back()

    def tick(self, seconds: float = TICK_S) -> None:
        """Go on."""
        self.seconds += seconds

    def go_after(self, newest_ms: int) -> None:
        """Go on to some seconds after what was done to a table before."""
        self.seconds = max(self.seconds, newest_ms / 1000 + _APART_S)

    def chance(self, name: str) -> random.Random:
        """Random numbers of the threads of this name."""
        if name not in self._chances:
            # Of another time too: ids of an earlier simulation of a table are there.
            self._chances[name] = random.Random(f"{name} {self.seconds}")
        return self._chances[name]

    def _pause(self, name: str, seconds: float) -> None:
        if self.pausing is not None:
            self.pausing(seconds)
        passed = min(seconds, _LONGEST_PAUSE_S)
        self.waited[name] = self.waited.get(name, 0.0) + passed
        self.tick(passed)

    def _take(self, name: str) -> float:
        if self.taken is not None:
            self.taken()
        self.tick()
        return self.ahead.get(name, 0.0)


def current_time() -> SimulatedTime | None:
    """The simulated time of this thread; None if it has the machine's."""
    found = _threads.get(threading.get_ident())
    return None if found is None else found[0]


# The threads that have a simulated time, and their names there.
_threads: dict[int, tuple[SimulatedTime, str]] = {}
_changing = threading.Lock()
_before: list[Callable[[], None]] = []


def _now() -> float:
    found = _threads.get(threading.get_ident())
    return _time() if found is None else found[0].seconds


def _steady() -> float:
    found = _threads.get(threading.get_ident())
    return _monotonic() if found is None else found[0].waited.get(found[1], 0.0)


def _pause(seconds: float) -> None:
    found = _threads.get(threading.get_ident())
    if found is None:
        _sleep(seconds)
    else:
        found[0]._pause(found[1], seconds)


def _bytes(size: int) -> bytes:
    found = _threads.get(threading.get_ident())
    return _urandom(size) if found is None else found[0].chance(found[1]).randbytes(size)


def _draw() -> float:
    found = _threads.get(threading.get_ident())
    return _random() if found is None else found[0].chance(found[1]).random()


class _InstantsClock(datetime):
    """What instants are made of: of a simulated time no two are the same."""

    @classmethod
    def fromtimestamp(cls, timestamp: float, tz: tzinfo | None = None) -> Any:
        found = _threads.get(threading.get_ident())
        if found is None:
            return datetime.fromtimestamp(timestamp, tz)
        return datetime.fromtimestamp(timestamp + found[0]._take(found[1]), tz)


_INSTEAD: Mapping[object, Callable[..., Any]] = {
    _time: _now, _monotonic: _steady, _sleep: _pause, _random: _draw,
}  # fmt: skip


def _put_in_place() -> None:
    def put(owner: Any, name: str, value: object) -> None:
        old = getattr(owner, name)
        _before.append(lambda: setattr(owner, name, old))
        setattr(owner, name, value)

    put(time, "time", _now)
    put(time, "monotonic", _steady)
    put(time, "sleep", _pause)
    put(os, "urandom", _bytes)
    put(instant_generator, "datetime", _InstantsClock)
    put(instant_generator, "_last_given", {})
    for function, by_place, by_name in _with_clocks(len(sys.modules)):
        if by_place is not None:
            put(function, "__defaults__", by_place)
        if by_name is not None:
            put(function, "__kwdefaults__", by_name)


def _put_back() -> None:
    for undo in reversed(_before):
        undo()
    _before.clear()


@cache
def _with_clocks(
    modules_there: int,
) -> list[tuple[FunctionType, tuple[Any, ...] | None, dict[str, Any] | None]]:
    """Functions with a clock, a pause or chance for a default, and their defaults in a simulation."""
    found = []
    for function in _functions():
        by_place, by_name = function.__defaults__ or (), function.__kwdefaults__ or {}
        places = tuple(_instead(value) for value in by_place)
        names = {name: _instead(value) for name, value in by_name.items()}
        if places != by_place or names != by_name:
            found.append((
                function, places if places != by_place else None, names if names != by_name else None
            ))  # fmt: skip
    return found


def _instead(value: object) -> object:
    return next((new for old, new in _INSTEAD.items() if value is old), value)


def _functions() -> set[FunctionType]:
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("hudi_") and name != __name__]
    found: set[FunctionType] = set()
    for module in modules:
        for value in list(vars(module).values()):
            inside = vars(value).values() if isinstance(value, type) else (value,)
            for one in inside:
                call = getattr(one, "__func__", one)
                if callable(call) and isinstance(call := inspect.unwrap(call), FunctionType):
                    found.add(call)
    return found
