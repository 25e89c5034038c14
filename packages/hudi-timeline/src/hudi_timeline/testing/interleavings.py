"""Interleavings of writers, chosen by a seed: real operations that take turns.

    outcome = simulate(7, make, {"ingest": [Act(lambda t: t.upsert(a))], "backfill": [Act(lambda t: t.upsert(b))]})
    outcome.table().read()                                   # as they left it
    simulate(7, make, actors, switches=outcome.switches)     # the same interleaving again

Each actor is a thread with its calls one after the other; one of them runs at a time, until it comes to a call of the
store, waits for the table's lock or pauses, where the seed may give the turn to another.  What it would do on threads
of its own it does itself.  So the order in which writers come to their steps is decided by the seed alone.  Faults may
strike an actor, end it as a killed process ends, or stop it until its lock is another's; its clock may be wrong.
Whether the outcome is right, `hudi_timeline.testing.histories` says.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from hudi_format.errors import HudiError, LockError
from hudi_format.storage.protocol import Storage
from hudi_timeline.options.transaction_options import CONCURRENCY_MODE, LOCK_PROVIDER, OPTIMISTIC
from hudi_timeline.table import HudiTable
from hudi_timeline.table_config import META_FOLDER
from hudi_timeline.testing.faulty_storage import CHANGES, Crash, Fault, Faults
from hudi_timeline.testing.memory_storage import MemoryStorage
from hudi_timeline.testing.simulated_time import SimulatedTime, current_time

T = TypeVar("T")

Rows = dict[Any, Any]
"""A table's content in a model: what is kept of a row, by its key."""

# How likely the turn is given away at a step, before a change of the timeline, and where the lock is taken or given
# back: there others are met.  Which of them, the seed says.
_RESTLESS = (
    (0.02, 0.02, 0.02), (0.1, 0.1, 0.1), (0.3, 0.3, 0.3), (0.01, 0.3, 0.1), (0.03, 0.6, 0.3), (0.0, 0.0, 0.4),
    (0.0, 0.0, 0.0),
)  # fmt: skip
# Where it is given away at a few steps only, they are among so many for each act.
_STEPS_OF_AN_ACT = 60
_FEW = 4
# A turn that nobody takes for so long is an error of the kit, or a call that never ends.
_STUCK_S = 120.0
# How likely who pauses gives the turn away.
_AT_PAUSES = 0.7
# For how many steps of others who is stopped stays so: for a part of an act, for some, or until they have ended.
_STOPS = (20, 150, 1_000_000)
# Threads that outlive the call that began them.
_OWN_THREADS = "hudi-background"


def unchanged(rows: Rows) -> Rows:
    """Effect of a call that changes no row, such as a table service."""
    return rows


@dataclass(frozen=True)
class Act:
    """One call of an actor.

    Attributes:
        call: gets the actor's table; an error of it means that the call had no effect.
        effect: what it means: the rows after it, of those before it; None where it cannot be done with those.
        name: for messages.
        sees: the rows that its result shows, of a call that reads; they have to be those before it.
        lasts: what is left of it when it dies on the way is finished by others later, if at all.
        goes_back: until then, and while it is at work, readers may find a state that the table had before, any of them.
        in_parts: it is several writes and services; one that raises may have had its effect.
    """

    call: Callable[[HudiTable], object]
    effect: Callable[[Rows], Rows | None] = unchanged
    name: str = ""
    sees: Callable[[Any], Rows] | None = None
    lasts: bool = False
    goes_back: bool = False
    in_parts: bool = False


@dataclass(frozen=True)
class Done:
    """An act that was called.

    Attributes:
        began, ended: steps at which it did.
        error: what it raised; None for nothing.
        result: what it gave.
        struck: whether a fault struck it.
    """

    actor: str
    act: Act
    began: int
    ended: int
    error: BaseException | None = None
    result: object = None
    struck: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether it is known if the act had an effect.

        Of a process that was killed it is not, nor of a call that raised because the store did, nor of one that
        raised and is several writes.
        """
        if self.error is None:
            return True
        return not (isinstance(self.error, Crash) or self.struck or self.act.in_parts)

    def __str__(self) -> str:
        end = "" if self.error is None else f": {type(self.error).__name__}"
        return f"{self.actor} {self.act.name or 'act'} [{self.began}-{self.ended}]{end}"


class Step(NamedTuple):
    """Step of an actor, until its next one.

    Attributes:
        touched: full paths of files, and of folders with a slash at their end, `LOCK` and `CLOCK`, each with whether it
            was changed; a folder is where a name in it comes, goes, or stands for other content.
        held: what was there when the step came to it: a file's version, a folder's entries, who has the lock.
        at: its number, as in `Outcome.switches`; 0 at the begin and after a wait for the lock.
    """

    actor: str
    touched: set[tuple[str, bool]]
    at: int = 0
    held: dict[str, object] = {}  # noqa: RUF012  of steps that touched nothing


LOCK, CLOCK = "lock", "clock"
"""What else than files actors meet at: the table's lock, and the order of instants."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a simulation.

    Attributes:
        seed: that chose it.
        storage: the table's, without the simulation.
        done: the acts, in the order in which they ended.
        switches: where the turn was given to whom: (step, actor); they repeat the interleaving.
        steps: number of steps.
        trace: the steps, in order.
        was_stopped: whether an actor was, for some steps of the others.
    """

    seed: int
    storage: Storage
    done: tuple[Done, ...] = ()
    switches: tuple[tuple[int, str], ...] = ()
    steps: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    trace: Sequence[Step] = ()
    was_stopped: bool = False

    def table(self) -> HudiTable:
        """The table as the actors left it."""
        return HudiTable.open(self.storage, options=self.options)


class Stuck(AssertionError):
    """A simulation in which nobody can go on: all wait for locks, or a call never ends."""


class _Turns:
    """Whose turn it is; threads other than the actors' pass freely."""

    def __init__(
        self,
        seed: int,
        names: Sequence[str],
        acts: int,
        switches: Sequence[tuple[int, str]] | None,
        waits: bool,
        clock: SimulatedTime,
    ) -> None:
        self.clock = clock
        self._random, self._stops = random.Random(seed), random.Random(f"{seed} stops")
        self._restless, self.at_changes, self.at_locks = self._random.choice(_RESTLESS)
        few = self._random.randint(1, _FEW) if not self._restless and not self.at_locks else 0
        self._at = {self._random.randrange(1, _STEPS_OF_AN_ACT * (acts + 1)) for _ in range(few)}
        self._given, self._waits = None if switches is None else dict(switches), waits
        # Each actor's gate opens when the turn is its: only who has the turn changes anything here.
        self._gates = {name: threading.Lock() for name in names}
        for gate in self._gates.values():
            gate.acquire()
        self._actor_of: dict[int, str] = {}
        self._live = list(names)
        self._blocked: set[str] = set()
        # Who is stopped until which step; sooner where nobody else can go on.
        self._stopped: dict[str, int] = {}
        self._over = ""
        self.steps, self.was_stopped = 0, False
        self.trace: list[Step] = []
        self.turn = self._another(None)
        self.switches: list[tuple[int, str]] = [(0, self.turn)]
        self._gates[self.turn].release()

    @property
    def actor(self) -> str | None:
        """The actor whose thread this is; None for other threads."""
        return self._actor_of.get(threading.get_ident())

    def enter(self, name: str) -> None:
        """Begin of an actor's thread."""
        self._actor_of[threading.get_ident()] = name
        self._wait(name)
        self.trace.append(Step(name, set(), 0, {}))

    def touch(self, what: str, changed: bool, held: object = None) -> None:
        """Note what this actor looks at or changes, and what was there; of other threads nothing."""
        if self.actor is not None:
            self.trace[-1].touched.add((what, changed))
            self.trace[-1].held.setdefault(what, held)

    def step(self, likely: float = 0.0) -> None:
        """Place where the turn may be given to another, at least so likely."""
        if (me := self.actor) is None:
            return
        self.steps += 1
        at = self.steps
        if self._gives_away(likely):
            self._give(self._another(me), me)
        self.trace.append(Step(me, set(), at, {}))

    def stop(self) -> None:
        """Stop of this actor, while the others go on, for some of their steps or until they have ended."""
        if (me := self.actor) is None:
            return
        self.steps, self.was_stopped = self.steps + 1, True
        self._stopped[me] = self.steps + self._stops.choice(_STOPS)
        self._give(self._another(me), me)
        self.trace.append(Step(me, set(), 0, {}))
        del self._stopped[me]

    def pause(self, seconds: float) -> None:
        """Pause of a thread, where the turn goes to another more often than not."""
        self.step(_AT_PAUSES)

    def wait_for(self, holder: Callable[[], str | None]) -> None:
        """Give the turn away until nobody holds the lock."""
        if (me := self.actor) is None:
            return
        self.touch(LOCK, True, holder())
        while holder() is not None:
            self.steps += 1
            self._blocked.add(me)
            self._give(self._another(me), me)
            self.trace.append(Step(me, {(LOCK, True)}, 0, {LOCK: holder()}))

    def freed(self, by: str | None) -> None:
        """The lock, for which others wait, is free; who had it."""
        self.touch(LOCK, True, by)
        self._blocked.clear()

    def leave(self) -> None:
        """End of an actor's thread."""
        me = self._actor_of.pop(threading.get_ident())
        self._live.remove(me)
        self._blocked.discard(me)
        if self._live and not self._over:
            self.steps += 1
            self._give(self._another(me))

    def _gives_away(self, likely: float) -> bool:
        if self._given is not None:
            return self.steps in self._given or (self._waits and likely >= _AT_PAUSES)
        return self.steps in self._at or self._random.random() < max(self._restless, likely)

    def _another(self, me: str | None) -> str:
        able = [n for n in self._live if n not in self._blocked]
        ready = [n for n in able if n != me and self._stopped.get(n, 0) <= self.steps]
        if self._given is not None and self._given.get(self.steps) in ready:
            return self._given[self.steps]
        if not ready:
            if me is not None and me in able and me not in self._stopped:
                return me
            if stopped := sorted((self._stopped[n], n) for n in able if n in self._stopped):
                return stopped[0][1]
            self._end("all actors wait for a lock")
            raise Stuck(self._over)
        return ready[0] if self._given is not None else self._random.choice(ready)

    def _give(self, name: str, me: str | None = None) -> None:
        """Give the turn to an actor, and wait until it is that of `me` again."""
        self.check()
        if name == self.turn:
            return
        self.switches.append((self.steps, name))
        self.clock.tick()
        self.turn = name
        self._gates[name].release()
        if me is not None:
            self._wait(me)

    def _wait(self, me: str) -> None:
        steps = -1
        while not self._gates[me].acquire(timeout=_STUCK_S):
            if steps == self.steps and not self._over:
                self._end(f"{self.turn} has had the turn for {_STUCK_S:.0f} s")
            steps = self.steps
        self.check()

    def check(self) -> None:
        """Check that all went on to their ends: an act may have taken `Stuck` for an error of its own lock.

        Raises Stuck.
        """
        if self._over:
            raise Stuck(self._over)

    def _end(self, why: str) -> None:
        """Let nobody wait any longer."""
        self._over = why
        for gate in self._gates.values():
            if gate.locked():
                gate.release()


# The simulation of a table, by its URI, and who holds its lock.
_simulated: dict[str, _Turns] = {}
_holders: dict[str, SteppedLock] = {}


class SteppedLock:
    """The lock of a simulated table; whoever waits for it gives the turn away."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self._uri = uri
        self._actor: str | None = None

    @property
    def name(self) -> str:
        return f"simulated lock of {self._uri}"

    def try_acquire(self) -> bool:
        if (turns := _simulated.get(self._uri)) is not None:
            turns.step(turns.at_locks)
            turns.wait_for(self._held_by)
            self._actor = turns.actor
        return _holders.setdefault(self._uri, self) is self

    def verify(self) -> None:
        if (turns := _simulated.get(self._uri)) is not None:
            turns.touch(LOCK, False, self._held_by())
        if _holders.get(self._uri) is not self:
            raise LockError(f"the lock is not held: {self.name}", table=self._uri)

    def release(self) -> None:
        if _holders.get(self._uri) is self:
            del _holders[self._uri]
            if (turns := _simulated.get(self._uri)) is not None:
                turns.freed(self._actor)
                turns.step(turns.at_locks)

    @classmethod
    def expire(cls, uri: str, actor: str | None) -> None:
        """End of the lease of an actor that holds the lock of a table."""
        holder, turns = _holders.get(uri), _simulated.get(uri)
        if holder and turns and holder._actor == actor:
            del _holders[uri]
            turns.freed(actor)

    def _held_by(self) -> str | None:
        """The actor that has the lock, "" for another thread; None where it is free."""
        there = _holders.get(self._uri)
        return None if there is None else there._actor or ""

    def holder(self) -> str:
        return "another actor" if self._uri in _holders else ""


OPTIONS: Mapping[str, str] = {
    CONCURRENCY_MODE: OPTIMISTIC,
    LOCK_PROVIDER: f"{__name__}:SteppedLock",
    "hudi.progress": "false",
}
"""Options of the actors' tables, below those that are given."""


class _Stepping(Faults):
    """Faults of an actor, each of whose calls is a step."""

    def __init__(self, turns: _Turns, faults: Sequence[Fault], uri: str) -> None:
        def stall() -> None:
            SteppedLock.expire(uri, turns.actor)
            turns.stop()

        super().__init__(*faults, sleep=lambda seconds: turns.step(1.0), stall=stall)
        self._turns = turns

    def strike(self, operation: str, path: str, act: Callable[[], T], tear: Callable[[float], None]) -> T:
        meets = operation in CHANGES and path.startswith(META_FOLDER)
        self._turns.step(self._turns.at_changes if meets else 0.0)
        return super().strike(operation, path, act, tear) if self.faults else act()


def _done(call: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
    done: Future[T] = Future()
    try:
        done.set_result(call(*args, **kwargs))
    except BaseException as e:  # noqa: BLE001  raised by whoever asks for the result, as a thread's is
        done.set_exception(e)
    return done


def on_this_thread() -> AbstractContextManager[None]:
    """Calls without threads of their own: of a small table in memory that is faster."""
    me = threading.get_ident()
    return _at_once(lambda: threading.get_ident() == me)


@contextmanager
def _at_once(mine: Callable[[], bool]) -> Iterator[None]:
    """The threads of which `mine` is true do themselves what they would do on threads of their own."""
    submit = ThreadPoolExecutor.submit

    def called(pool: ThreadPoolExecutor, call: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        if not mine() or str(pool._thread_name_prefix).startswith(_OWN_THREADS):
            return submit(pool, call, *args, **kwargs)
        return _done(call, *args, **kwargs)

    ThreadPoolExecutor.submit = called  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]


def simulate(
    seed: int,
    make: Callable[[Storage], object] | MemoryStorage,
    actors: Mapping[str, Sequence[Act]],
    *,
    options: Mapping[str, str] | None = None,
    faults: Mapping[str, Sequence[Fault]] | None = None,
    clocks: Mapping[str, float] | None = None,
    switches: Sequence[tuple[int, str]] | None = None,
    waits: bool = False,
) -> Outcome:
    """Run the actors' acts side by side on a table of their own, in memory.

    Args:
        seed: chooses the interleaving.
        make: makes the table in the storage; or one with the table, of which a copy is taken.
        actors: acts by actor, which are called one after the other.
        options: for all calls; without them several writers with the policy LAZY, and a lock of the simulation.
        faults: what strikes an actor's calls of the store; after a crash its other acts are not called.
        clocks: by how many seconds an actor's clock is ahead.
        switches: of an earlier outcome, or a part of them, instead of those that the seed chooses.
        waits: who pauses gives the turn away besides, as what it waits for is another's to do.

    Raises:
        Stuck: nobody can go on.
    """
    given = {**OPTIONS, **(options or {})}
    clock = current_time() or SimulatedTime()
    with clock.thread("simulation"):
        if isinstance(make, MemoryStorage):
            storage = make.copy_of()
        else:
            storage = MemoryStorage()
            make(storage)
        clock.go_after(storage.newest_ms())
        turns = _Turns(seed, sorted(actors), sum(map(len, actors.values())), switches, waits, clock)
        done = _run(storage, actors, given, turns, faults or {}, clocks or {})
    switched = tuple(turns.switches)
    return Outcome(seed, storage, tuple(done), switched, turns.steps, given, turns.trace, turns.was_stopped)


def _run(
    storage: MemoryStorage,
    actors: Mapping[str, Sequence[Act]],
    options: Mapping[str, str],
    turns: _Turns,
    faults: Mapping[str, Sequence[Fault]],
    clocks: Mapping[str, float],
) -> list[Done]:
    """Run the actors, each on its thread."""
    done: list[Done] = []
    failed: list[BaseException] = []

    def run(name: str) -> None:
        try:
            turns.enter(name)
            mine = _Stepping(turns, faults.get(name, ()), storage.uri)
            with mine.process(), turns.clock.thread(name):
                wrapped = mine.wrap(storage)
                for act in actors[name]:
                    struck = len(mine.struck)
                    ended = _called(act, name, wrapped, options, turns)
                    ended = replace(ended, struck=len(mine.struck) > struck)
                    done.append(ended)
                    if isinstance(ended.error, Crash):
                        raise ended.error
        except BaseException as e:  # noqa: BLE001  handed to the caller, who alone can fail the test
            failed.append(e)
        finally:
            try:
                turns.leave()
            except Stuck as e:
                failed.append(e)

    _simulated[storage.uri] = turns
    storage.watch(turns.touch)
    turns.clock.pausing, turns.clock.taken = turns.pause, lambda: turns.touch(CLOCK, True)
    turns.clock.ahead = clocks
    threads = [
        threading.Thread(target=run, args=(n,), name=f"actor-{n}", daemon=True) for n in sorted(actors)
    ]
    try:
        with _at_once(lambda: turns.actor is not None):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        storage.watch(None)
        turns.clock.pausing = turns.clock.taken = None
        turns.clock.ahead = {}
        _simulated.pop(storage.uri, None)
        _holders.pop(storage.uri, None)
    turns.check()
    for error in failed:
        raise error
    return done


def _called(act: Act, name: str, storage: Storage, options: Mapping[str, str], turns: _Turns) -> Done:
    began = turns.steps
    try:
        result = act.call(HudiTable.open(storage, options=options))
    except (HudiError, Crash) as e:
        return Done(name, act, began, turns.steps, error=e)
    return Done(name, act, began, turns.steps, result=result)


def shrunk(
    switches: Sequence[tuple[int, str]], fails: Callable[[Sequence[tuple[int, str]]], bool]
) -> tuple[tuple[int, str], ...]:
    """The fewest switches found with which a simulation still fails.

    Args:
        fails: runs it with the given ones, and says whether it failed.
    """
    left = list(switches)
    size = len(left) // 2
    while size:
        at, before = 0, len(left)
        while at < len(left):
            fewer = left[:at] + left[at + size :]
            if fails(fewer):
                left = fewer
            else:
                at += size
        if size > 1 or len(left) == before:
            size //= 2
    return tuple(left)
