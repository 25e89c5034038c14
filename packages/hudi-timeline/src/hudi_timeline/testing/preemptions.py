"""Interleavings that one run decides, and all that have one preemption of a pair of actors.

    case = Case({"one": ["upsert"], "two": ["clean"]})
    for found in preemptions(case, "one"):                  # `two` before each step of `one`
        found.first, found.last, found.outcome              # ... before any of these steps with this outcome

Where the step of `one` that comes next finds nothing else than before `two`, and changes nothing that `two` has looked
at, `two` might as well have come after it: the same calls would have had the same answers, and have left the
same files.  Such interleavings are one and the same order of what depends on each other, and one run decides all of
them; model checkers prune by this, and call it partial-order reduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        meeting = first_meeting(rest, came_in)
        is_last = meeting is None
        last = at + (len(rest) if meeting is None else meeting)
        yield Preemption(at, last, outcome)
        at = last + 1


def first_meeting(steps: Sequence[Step], came_in: Sequence[Step]) -> int | None:
    """The first step of an actor that cannot change places with all of another's just before.

    One that looks at what the other had changed can, where it sees what was there before: a file that came and went, or
    a lock that the other did not get.
    """
    looked = {what for step in came_in for what, changed in step.touched if not changed}
    before: dict[str, object] = {}
    for step in came_in:
        for what, changed in step.touched:
            if changed:
                before.setdefault(what, step.held.get(what, step))
    mine: set[str] = set()
    for number, step in enumerate(steps):
        mine |= {what for what, changed in step.touched if changed}
        for what, changed in step.touched:
            if changed and (what in looked or (what in before and not what.endswith("/"))):
                return number
            if not changed and what in before and (what in mine or step.held.get(what) != before[what]):
                return number
    return None


def _around(trace: Sequence[Step], into: str, other: str) -> tuple[list[Step], list[Step]]:
    """The steps of who came in, until it was done or had to wait, and what the other had left by then."""
    began = next((n for n, step in enumerate(trace) if step.actor == other), len(trace))
    ended = next((n for n in range(began, len(trace)) if trace[n].actor == into), len(trace))
    return list(trace[began:ended]), [step for step in trace[ended:] if step.actor == into]
