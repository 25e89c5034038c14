"""Interleavings that one run decides, and all that have one preemption of a pair of actors.

    case = Case({"one": ["upsert"], "two": ["clean"]})
    for found in preemptions(case, "one"):                  # `two` before each step of `one`
        found.first, found.last, found.outcome              # ... before any of these steps with this outcome
    decided(drawn(7).run())                                 # how many interleavings have the same outcome

Where the step of `one` that comes next touches nothing that `two` has changed, and changes nothing that `two` has
looked at, `two` might as well have come after it: the same calls would have had the same answers, and have left the
same files.  Such interleavings are one and the same order of what depends on each other, and one run decides all of
them; model checkers prune by this, and call it partial-order reduction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hudi_timeline.testing.interleavings import Outcome, Step
from hudi_timeline.testing.workload import Case


@dataclass(frozen=True)
class Preemption:
    """Places at which one actor's acts come into another's, and what comes of all of them.

    Attributes:
        first, last: the steps of the other actor before which they may come, counted from 1; one more than there are
            is after it.
        outcome: of the first place.
    """

    first: int
    last: int
    outcome: Outcome

    @property
    def places(self) -> int:
        """Number of the places."""
        return self.last - self.first + 1


def preemptions(case: Case, into: str, *, deep: bool = True) -> Iterator[Preemption]:
    """Every place at which the acts of one of two actors come into those of the other.

    Who comes in goes on until its acts are done or it has to wait for the other; so does the other then.

    Args:
        case: of two actors, without faults that stop one.
        into: the actor that is interrupted.
        deep: as of `Case.run`.

    Raises:
        Violation: an outcome that is not right; its text has the order.
    """
    (other,) = set(case.actors) - {into}
    at, is_last = 1, False
    while not is_last:
        outcome = case.run(switches=[(0, into), (at, other)], waits=True, deep=deep)
        came_in, rest = _around(outcome.trace, into, other)
        meeting = next((n for n, step in enumerate(rest) if meets(step, came_in)), None)
        is_last = meeting is None
        last = at + (len(rest) if meeting is None else meeting)
        yield Preemption(at, last, outcome)
        at = last + 1


def decided(outcome: Outcome) -> float:
    """Number of interleavings with as many switches that have this outcome, this one among them.

    Of two actors; of more, and where one was stopped for some steps of others, it is 1.
    """
    trace = outcome.trace
    names = list(dict.fromkeys(step.actor for step in trace))
    if len(names) != 2 or outcome.was_stopped:
        return 1.0
    first, second = _needs(trace, names)
    done = np.arange(len(first)), np.arange(len(second))
    # Of each the number of steps that are done: a table of states, of which those may be that keep the order.
    may_be = (first[:, None] <= done[1]) & (second <= done[0][:, None])
    ways = np.zeros(may_be.shape)
    ways[0, 0] = 1.0
    for turn in range(1 + sum(one.actor != two.actor for one, two in pairwise(trace))):
        by = turn % 2
        before = np.cumsum(ways, axis=by) - ways  # at least one step each turn
        ways = np.where(may_be, before, 0.0)
    return float(ways[-1, -1])


def _needs(trace: Sequence[Step], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """For each number of done steps of an actor, how many of the other's must be done by then."""
    needs: dict[str, list[int]] = {name: [0] for name in names}
    looked: dict[str, dict[str, int]] = {name: {} for name in names}
    changed: dict[str, dict[str, int]] = {name: {} for name in names}
    for me, touched, _ in trace:
        other = names[1 - names.index(me)]
        need = needs[me][-1]
        for what, changes in touched:
            if changes:
                need = max(need, looked[other].get(what, 0))
            if not changes or not what.endswith("/"):
                need = max(need, changed[other].get(what, 0))
        needs[me].append(need)
        for what, changes in touched:
            (changed if changes else looked)[me][what] = len(needs[me]) - 1
    one, two = (np.array(needs[name]) for name in names)
    return one, two


def meets(step: Step, others: Iterable[Step]) -> bool:
    """Whether a step cannot change places with all of another actor's."""
    looked = {what for other in others for what, changed in other.touched if not changed}
    changed = {what for other in others for what, changed in other.touched if changed}
    for what, changes in step.touched:
        # Two names that come into one folder do not meet there.
        if (changes and what in looked) or (what in changed and not (changes and what.endswith("/"))):
            return True
    return False


def _around(trace: Sequence[Step], into: str, other: str) -> tuple[list[Step], list[Step]]:
    """The steps of who came in, until it was done or had to wait, and what the other had left by then."""
    began = next((n for n, step in enumerate(trace) if step.actor == other), len(trace))
    ended = next((n for n in range(began, len(trace)) if trace[n].actor == into), len(trace))
    return list(trace[began:ended]), [step for step in trace[ended:] if step.actor == into]


__all__ = ["Preemption", "decided", "meets", "preemptions"]
