"""Interleavings of writers: the right code passes all of them, and a seed is repeated.

Planted faults are in tests/scenarios/test_planted_bugs.py.
"""

import os
from dataclasses import replace

import pytest
from simulated_writers import ACTORS, INITIAL, OPTIONS, OPTIONS_OF, clean, increment, make, rows, upsert

from hudi_format.errors import HudiError
from hudi_timeline import HudiTable
from hudi_timeline.reading.incremental import incremental_range
from hudi_timeline.testing import (
    CRASH,
    STALL,
    Act,
    Fault,
    Follower,
    SteppedLock,
    Stuck,
    Violation,
    by_key,
    check,
    shrunk,
    simulate,
)
from hudi_timeline.transaction import conflict_resolution, late_publication

EAGER = {"hoodie.write.concurrency.mode": "SINGLE_WRITER", "hoodie.cleaner.policy.failed.writes": "EAGER"}
SEEDS = int(os.environ.get("HUDI_SIMULATED_SEEDS", "200"))


def run(name, seed, **more):
    outcome = simulate(
        seed, make, ACTORS[name], options={**OPTIONS_OF.get(name, OPTIONS), **more.pop("options", {})}, **more
    )
    try:
        check(outcome, by_key("v", key="id"), INITIAL)
    finally:
        outcome.storage.delete_dir("")
    return outcome


@pytest.mark.req("NEW-12", "NEW-16", "CC-02", "CC-35", "CC-40")
@pytest.mark.parametrize("name", ACTORS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.sampled(4)
def test_some_serial_order_explains_what_writers_leave(name, seed):
    outcome = run(name, seed)
    assert all(isinstance(d.error, HudiError) for d in outcome.done if d.error is not None)
    assert len(outcome.done) == sum(map(len, ACTORS[name].values()))
    assert outcome.switches


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTORS)
def test_many_interleavings_leave_what_some_order_explains(name):
    for seed in range(2, SEEDS):
        run(name, seed)


@pytest.mark.req("NEW-12", "CC-25")
@pytest.mark.parametrize("seed", range(3))
def test_a_writer_that_is_killed_between_others_had_all_of_its_effect_or_none(seed):
    crash = Fault(CRASH, number=15 + 10 * seed)
    outcome = run("updates and a deletion", seed, faults={"one": [crash]})
    assert [d.is_certain for d in outcome.done].count(False) == 1


def stopped(seed, after=False, **more):
    """A writer that is stopped at its commit until others had its lock, beside one of the same row."""
    stop = Fault(STALL, operation="create", path="*.commit", after=after)
    actors = {"one": [upsert(a=1)], "two": [upsert(a=2, b=2)]}
    outcome = simulate(seed, make, actors, options=OPTIONS, faults={"one": [stop]}, **more)
    check(outcome, by_key("v", key="id"), INITIAL)
    return outcome


@pytest.mark.req("NEW-12", "CC-26")
@pytest.mark.parametrize("after", [False, True], ids=["before its commit", "after it"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sampled(3)
def test_a_writer_that_is_stopped_until_its_lock_is_anothers(seed, after):
    outcome = stopped(seed, after)
    assert [d.actor for d in outcome.done if d.struck] == ["one"]
    again = stopped(seed, after, switches=outcome.switches)
    assert [str(d) for d in again.done] == [str(d) for d in outcome.done]


@pytest.mark.req("NEW-12")
def test_a_writer_that_does_not_look_at_its_lock_after_a_stop_is_found(monkeypatch):
    monkeypatch.setattr(late_publication, "check", lambda *args: "")
    with pytest.raises(Violation, match=r"rolled-back|no serial order"):
        [stopped(seed) for seed in range(8)]


def followed(order, seed):
    """A follower of a table with two writers, when they have ended."""
    follower = Follower(order)
    poll = Act(follower.poll, name="poll")
    actors = {"one": [upsert(a=1), upsert(n=1)], "two": [upsert(m=2, b=2)], "reader": [poll] * 8}
    outcome = simulate(seed, make, actors, options=OPTIONS)
    assert all(d.error is None for d in outcome.done)
    check(outcome, by_key("v", key="id"), INITIAL)
    follower.check(outcome)
    return follower


@pytest.mark.req("NEW-12", "TP-04")
@pytest.mark.parametrize("order", ["stable", "completion"])
def test_a_follower_beside_writers_sees_each_change_once(order):
    for seed in range(2):
        follower = followed(order, seed)
        assert len(follower.seen) == len({*follower.seen}) == len(follower.settled)


def test_a_follower_in_the_order_of_begins_misses_nothing_and_sees_again_what_was_not_settled():
    """A change that it read past an open commit comes again, and only such a one."""
    repeated = 0
    for seed in range(8):
        follower = followed("start", seed)
        assert follower.settled == {*follower.seen}
        repeated += len(follower.seen) - len(follower.settled)
    assert repeated


def past_what_is_open(snapshot, begin, end, options):
    found = RIGHT(snapshot, begin, end, options)
    return replace(found, checkpoint=max((i.time for i in found.instants), default=begin))


def from_the_first_commit(snapshot, begin, end, options):
    return RIGHT(snapshot, "000", end, options)


RIGHT = incremental_range.incremental_range


@pytest.mark.parametrize(
    ("wrong", "text"), [(past_what_is_open, "never arrived"), (from_the_first_commit, "more than once")]
)
def test_a_follower_in_the_order_of_begins_finds_readers_that_are_wrong(monkeypatch, wrong, text):
    monkeypatch.setattr(incremental_range, "incremental_range", wrong)
    with pytest.raises(Violation, match=text):
        [followed("start", seed) for seed in range(20)]


def test_a_seed_and_its_switches_repeat_an_interleaving():
    first = run("updates of one key", 5)
    for again in (run("updates of one key", 5), run("updates of one key", 99, switches=first.switches)):
        assert again.switches == first.switches
        assert [(str(d), d.began, d.ended) for d in again.done] == [
            (str(d), d.began, d.ended) for d in first.done
        ]
    assert run("updates of one key", 6).switches != first.switches


def test_a_failing_interleaving_shrinks_and_still_fails(monkeypatch):
    monkeypatch.setattr(conflict_resolution, "_check_groups", lambda *args: None)
    actors = {"one": [upsert(a=1)], "two": [upsert(a=2, b=2)]}
    outcome = None

    def fails(switches, seed=0):
        nonlocal outcome
        outcome = simulate(seed, make, actors, options=OPTIONS, switches=switches)
        try:
            check(outcome, by_key("v", key="id"), INITIAL)
        except Violation:
            return True
        return False

    assert any(fails(None, seed) for seed in range(40))
    few = shrunk(outcome.switches, fails)
    assert fails(few)
    assert 0 < len(few) <= len(outcome.switches)
    # It takes both to have begun before either ends.
    assert not fails(few[:1])


def test_actors_that_wait_for_each_other_are_said_to_be_stuck():
    def keeps_the_lock(table):
        SteppedLock(table.storage.uri, {}).try_acquire()

    with pytest.raises(Stuck, match="wait for a lock"):
        simulate(1, make, {"one": [Act(keeps_the_lock), upsert(a=1)], "two": [upsert(a=2)]}, options=OPTIONS)


def test_an_error_of_the_test_itself_is_raised():
    def wrong(table):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        simulate(1, make, {"one": [Act(wrong)], "two": [clean()]}, options=OPTIONS)


def test_what_a_call_gives_and_raises_is_kept():
    def refused(table):
        return HudiTable.open(table.storage.uri + "/nowhere")

    outcome = simulate(1, make, {"one": [increment(), Act(refused, name="nowhere")]}, options=OPTIONS)
    first, second = outcome.done
    assert first.result.updated == 3
    assert "NotAHudiTableError" in str(second)
    assert outcome.table().upsert(rows({"a": 9})).updated == 1
