"""One run decides the interleavings that differ from it only in the order of what does not meet."""

import itertools
import random
import re
from dataclasses import replace

import pytest

from hudi_timeline.testing import MemoryStorage, decided, drawn, preemptions
from hudi_timeline.testing.interleavings import CLOCK, LOCK, Outcome, Step
from hudi_timeline.testing.preemptions import meets
from hudi_timeline.testing.workload import TABLES, Case, acts_on, rows_of


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


def leaves(case, switches, wanted, **more):
    """Whether an interleaving leaves that; of three times one, as a few waits are as long as the clock says."""
    return any(left_by(case.run(switches=switches, **more)) == wanted for _ in range(3))


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
            assert leaves(case, last, left_by(found.outcome), waits=True), (found.first, found.last)
        assert found.first == before + 1
        assert decided(found.outcome) >= found.places - 1  # the place after all others takes a switch less
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
            assert leaves(case, later, left_by(outcome)), (seed, outcome.switches, later)
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
        if ended_there and goes_on and not meets(mine, block):
            found.append(tuple((s + (s in (one, two)), a) for s, a in outcome.switches))
    return chosen.choice(found) if found else None


def orders(trace):
    """Every order with as many turns and the same first that keeps the order of steps that meet."""
    names = list(dict.fromkeys(step.actor for step in trace))
    turns = sum(a.actor != b.actor for a, b in itertools.pairwise(trace))
    mine = [[n for n, step in enumerate(trace) if step.actor == name] for name in names]
    for places in itertools.combinations(range(len(trace)), len(mine[0])):
        left = [iter(m) for m in mine]
        order = [next(left[n not in places]) for n in range(len(trace))]
        actors = [trace[n].actor for n in order]
        if actors[0] != trace[0].actor or sum(a != b for a, b in itertools.pairwise(actors)) != turns:
            continue
        if all(
            order.index(a) < order.index(b)
            for a, b in itertools.combinations(range(len(trace)), 2)
            if trace[a].actor != trace[b].actor and meets(trace[b], [trace[a]])
        ):
            yield order


@pytest.mark.parametrize("seed", range(40))
def test_as_many_are_counted_as_there_are(seed):
    draw = random.Random(seed)
    whats = [
        ("t/f", False),
        ("t/f", True),
        ("t/", False),
        ("t/", True),
        ("t/g", True),
        (LOCK, True),
        (CLOCK, True),
    ]
    trace = [Step(draw.choice("ab"), set(draw.choices(whats, k=draw.choice([0, 0, 1, 2])))) for _ in range(9)]
    if len({step.actor for step in trace}) == 2:
        assert decided(Outcome(seed, MemoryStorage(), trace=trace)) == len(list(orders(trace)))


@pytest.mark.parametrize(
    ("one", "two", "met"),
    [
        (("t/f", False), ("t/f", False), False),
        (("t/f", False), ("t/f", True), True),
        (("t/f", True), ("t/f", True), True),
        (("t/f", True), ("t/g", True), False),
        (("t/", True), ("t/", True), False),
        (("t/", True), ("t/", False), True),
        ((LOCK, True), (LOCK, True), True),
        ((CLOCK, True), (CLOCK, True), True),
    ],
)
def test_steps_meet_where_one_changes_what_the_other_touches(one, two, met):
    assert meets(Step("a", {one}), [Step("b", set()), Step("b", {two})]) is met
    assert meets(Step("b", {two}), [Step("a", {one})]) is met


def test_more_than_two_actors_and_one_that_was_stopped_count_once():
    trace = [Step("a", set()), Step("b", set()), Step("a", set()), Step("b", set())]
    outcome = Outcome(1, MemoryStorage(), trace=trace)
    assert decided(outcome) == 1.0
    free = replace(outcome, trace=[*(Step("a", set()) for _ in range(4)), Step("b", set()), Step("a", set())])
    assert decided(free) == 4.0
    assert decided(replace(free, was_stopped=True)) == 1.0
    assert decided(replace(free, trace=[*free.trace, Step("c", set())])) == 1.0
