"""One run decides the interleavings that differ from it only in the order of what does not meet."""

import itertools
import random
import re

import pytest

from hudi_timeline.testing import MemoryStorage, drawn, preemptions
from hudi_timeline.testing.acts import acts_on
from hudi_timeline.testing.interleavings import CLOCK, LOCK, Step
from hudi_timeline.testing.preemptions import first_meeting
from hudi_timeline.testing.workload import Case
from hudi_timeline.testing.workload_table import TABLES, rows_of


def left_by(outcome):
    """What an interleaving leaves: the ends of its calls, the rows, and files by what their names say."""
    calls = sorted((d.actor, d.act.name, type(d.error).__name__) for d in outcome.done)
    names = sorted(MemoryStorage.state(outcome.storage))
    instants = sorted(set(re.findall(r"\d{17}", " ".join(names))))
    rank = {instant: str(n) for n, instant in enumerate(instants)}
    plain = (re.sub(r"\d{17}", lambda m: rank[m[0]], name.partition("/t/")[2]) for name in names)
    # File ids are drawn, and the stage in a write token is of the time of day.
    unnamed = sorted(re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=-)\d{6,}(?=-)", "id", name) for name in plain)
    return calls, rows_of(outcome.table()), unnamed


PAIRS = [
    ("upsert", "clean"), ("upsert", "delete_where"), ("alter_rename", "upsert_all"), ("rollback_dead", "insert"),
    ("build_record_index", "upsert"), ("compact", "delete"), ("read", "restore"), ("archive", "update"),
]  # fmt: skip


@pytest.mark.req("NEW-12")
@pytest.mark.parametrize(("one", "two"), PAIRS)
@pytest.mark.sampled(4, values=False)
def test_the_places_that_one_run_stands_for_leave_the_same(one, two):
    kind, index = next(k for k in TABLES[::-1] if {one, two} <= {*acts_on(*k)})
    case, ran, whole = Case({"one": [one], "two": [two]}, kind, index=index), 0, 0
    before = 0
    for found in preemptions(case, "one"):
        ran, whole = ran + 1, whole + found.places
        # All of them with all pairs are some thousand runs: the ends of each range.
        if found.places > 1:
            last = [(0, "one"), (found.last, "two")]
            assert left_by(case.run(switches=last, waits=True)) == left_by(found.outcome), (
                found.first,
                found.last,
            )
        assert found.first == before + 1
        before = found.last
    assert 1 <= ran < whole


@pytest.mark.req("NEW-12")
def test_a_switch_that_comes_a_step_later_leaves_the_same_where_no_step_meets():
    """Drawn interleavings, each with one switch moved to where the count says that it is the same."""
    moved = 0
    for seed in range(24):
        case = drawn(seed)
        if len(case.actors) != 2 or case.faults or case.clocks:
            continue
        outcome = case.run()
        later = a_step_later(outcome, random.Random(seed))
        if later is not None:
            moved += 1
            assert left_by(case.run(switches=later)) == left_by(outcome), (seed, outcome.switches, later)
    assert moved >= 2


def a_step_later(outcome, chosen):
    """Switches of which one to another and the one back come a step later; None where no step may come first."""
    trace, places = outcome.trace, {step.at: n for n, step in enumerate(outcome.trace) if step.at}
    found = []
    for (one, _), (two, _) in itertools.pairwise(outcome.switches[1:]):
        # Where the turn came back to who gave it away, and that goes on for a step.
        at = places.get(one, 0)
        if not at or two not in places or at + 1 >= len(trace) or two + 1 in dict(outcome.switches):
            continue
        mine, block = trace[at], []
        while at > len(block) and trace[at - 1 - len(block)].actor != mine.actor:
            block.append(trace[at - 1 - len(block)])
        ended_there = block and max(step.at for step in block) == two - 1
        goes_on = (trace[at + 1].actor, trace[at + 1].at) == (mine.actor, two + 1)
        if ended_there and goes_on and first_meeting([mine], block) is None:
            found.append(tuple((s + (s in (one, two)), a) for s, a in outcome.switches))
    return chosen.choice(found) if found else None


def step(*touched):
    """Step that touches these: what, whether it changes it, and what is there when it comes."""
    return Step(
        "a", {(what, changed) for what, changed, _ in touched}, 1, {what: held for what, _, held in touched}
    )


MEETINGS = {
    "both look": (("t/f", False, 1), ("t/f", False, 1), False),
    "one sees what the other wrote": (("t/f", True, 1), ("t/f", False, 2), True),
    "one writes what the other saw": (("t/f", False, 1), ("t/f", True, 1), True),
    "both write a file": (("t/f", True, 1), ("t/f", True, 2), True),
    "both write files of their own": (("t/f", True, 0), ("t/g", True, 0), False),
    "both put names into a folder": (("t/", True, 1), ("t/", True, 2), False),
    "one lists what the other put in": (("t/", True, 1), ("t/", False, 2), True),
    "one lists what the other put in and took out": (("t/", True, 1), ("t/", False, 1), False),
    "one puts in what the other would have listed": (("t/", False, 1), ("t/", True, 1), True),
    "one finds no file that came and went": (("t/f", True, 0), ("t/f", False, 0), False),
    "both take the lock": ((LOCK, True, None), (LOCK, True, None), True),
    "one has the lock, and the other asked for it": ((LOCK, True, "a"), (LOCK, False, "a"), False),
    "one lost the lock to the other": ((LOCK, True, "a"), (LOCK, False, "b"), True),
    "both take an instant": ((CLOCK, True, None), (CLOCK, True, None), True),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_steps_meet_where_one_sees_or_changes_what_the_other_did(name):
    came_in, mine, met = MEETINGS[name]
    assert first_meeting([step(), step(mine)], [step(), step(came_in)]) == (1 if met else None)


def test_who_changed_a_folder_itself_since_does_not_know_what_would_be_there():
    came_in = [step(("t/", True, 1)), step(("t/", True, 2))]
    assert first_meeting([step(("t/", False, 1))], came_in) is None
    assert first_meeting([step(("t/", True, 0)), step(("t/", False, 1))], came_in) == 1
