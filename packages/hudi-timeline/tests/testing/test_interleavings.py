"""Interleavings of writers: the right code passes all of them, planted faults are found, and a seed is repeated."""

import os
import threading

import pytest
from simulated_writers import ACTORS, INITIAL, OPTIONS, OPTIONS_OF, clean, increment, make, rows, upsert

from hudi_format.errors import HudiError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.heartbeat import Liveness
from hudi_timeline.testing import (
    CRASH,
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
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.transaction import conflict_resolution, rollback_guard, transaction
from hudi_timeline.transaction.write_basis import Basis, Changes
from hudi_timeline.writing.key_conflicts import KeyCheck
from hudi_timeline.writing.latest_slices import LatestSlices
from hudi_timeline.writing.replanning import Replanner

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
def test_some_serial_order_explains_what_writers_leave(name, seed):
    outcome = run(name, seed)
    assert all(isinstance(d.error, HudiError) for d in outcome.done if d.error is not None)
    assert len(outcome.done) == sum(map(len, ACTORS[name].values()))
    assert outcome.switches


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTORS)
def test_many_interleavings(name):
    for seed in range(2, SEEDS):
        run(name, seed)


@pytest.mark.req("NEW-12", "CC-25")
@pytest.mark.parametrize("seed", range(3))
def test_a_writer_that_is_killed_between_others_had_all_of_its_effect_or_none(seed):
    crash = Fault(CRASH, number=15 + 10 * seed)
    outcome = run("updates and a deletion", seed, faults={"one": [crash]})
    assert [d.is_certain for d in outcome.done].count(False) == 1


@pytest.mark.req("NEW-12", "TP-04")
@pytest.mark.parametrize("order", ["stable", "completion"])
def test_a_follower_beside_writers_sees_each_change_once(order):
    for seed in range(2):
        follower = Follower(order)
        poll = Act(follower.poll, name="poll")
        actors = {"one": [upsert(a=1), upsert(n=1)], "two": [upsert(m=2, b=2)], "reader": [poll, poll, poll]}
        outcome = simulate(seed, make, actors, options=OPTIONS)
        assert all(d.error is None for d in outcome.done)
        check(outcome, by_key("v", key="id"), INITIAL)
        follower.check(outcome)


def test_a_seed_and_its_switches_repeat_an_interleaving():
    first = run("updates of one key", 5)
    for again in (run("updates of one key", 5), run("updates of one key", 99, switches=first.switches)):
        assert again.switches == first.switches
        assert [(str(d), d.began, d.ended) for d in again.done] == [
            (str(d), d.began, d.ended) for d in first.done
        ]
    assert run("updates of one key", 6).switches != first.switches


# --- faults that are planted, each of which some interleaving shows


def no_lock(patch):
    patch.setattr(SteppedLock, "try_acquire", lambda self: True)
    patch.setattr(SteppedLock, "verify", lambda self: None)


def no_conflicts(patch):
    patch.setattr(conflict_resolution, "_check_groups", lambda *args: None)


def replaced_groups_do_not_count(patch):
    patch.setattr(
        CommitMetadata, "file_groups",
        lambda self: frozenset((s.partition, s.file_id) for s in self.stats),
    )  # fmt: skip


def only_newer_instants_are_rivals(patch):
    """A rival that began earlier and ended meanwhile is overlooked."""
    found = Basis.changes

    def changes(self, config, timeline):
        all_of_them = found(self, config, timeline)
        newest = max((i.time for i in timeline.instants if not i.completed), default="")
        written = tuple(i for i in all_of_them.written if i.time > newest)
        return Changes(written, all_of_them.undone, all_of_them.restores, all_of_them.properties)

    patch.setattr(Basis, "changes", changes)


def rows_that_were_read_are_not_checked(patch):
    planned = Replanner.__call__

    def call(self, plan, transaction):
        return planned(Replanner(self.engine, self.data, self.config, self.check), plan, transaction)

    patch.setattr(Replanner, "__call__", call)


def a_retry_keeps_its_first_slices(patch):
    """What was looked up for the try that lost is written upon by the next one."""
    found, kept = LatestSlices.of, {}

    def of(snapshot, partitions=None):
        return kept.setdefault((snapshot.storage.uri, threading.get_ident()), found(snapshot, partitions))

    patch.setattr(LatestSlices, "of", of)


def the_wrong_instant_is_older(patch):
    """Instants that do not grow: a reader in the order of instants has passed them."""
    given = []

    def older(timeline, *args, **kwargs):
        given.append(None)
        return f"{20200101000000000 - len(given)}"

    patch.setattr(transaction, "new_instant", older)


def conflicts_are_looked_for_without_the_lock(patch):
    """The re-check sees the table as it was when the write began."""
    patch.setattr(transaction.schema_rebase, "beside_others", lambda i, metadata, *args: (metadata, ()))


def new_keys_are_not_compared(patch):
    """Apache Hudi's own limit: two writers that add one key leave two rows."""
    patch.setattr(KeyCheck, "check", lambda *args: None)


PLANTED = {
    new_keys_are_not_compared: "one new key",
    no_lock: "updates of one key",
    no_conflicts: "updates of one key",
    replaced_groups_do_not_count: "an overwrite",
    only_newer_instants_are_rivals: "updates of one key",
    rows_that_were_read_are_not_checked: "updates of what was read",
    a_retry_keeps_its_first_slices: "updates of one key",
    conflicts_are_looked_for_without_the_lock: "updates and a deletion",
}


def found(name, seeds=40, **more):
    """The first seed that shows a fault; None for none."""
    for seed in range(seeds):
        try:
            run(name, seed, **more)
        except (Violation, HudiError):
            return seed
    return None


@pytest.mark.req("NEW-12")
@pytest.mark.parametrize("plant", PLANTED, ids=lambda p: p.__name__)
def test_a_planted_fault_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert found(PLANTED[plant]) is not None


@pytest.mark.req("NEW-12", "CC-26")
def test_a_writer_that_was_taken_for_dead_never_publishes_and_without_that_fence_it_is_found(monkeypatch):
    """Each beginning writer rolls back all others: what they wrote may be gone, never half there."""
    dead = lambda *args, **kwargs: Liveness(False, None, "said so")  # noqa: E731
    monkeypatch.setattr(heartbeat, "liveness", dead)
    for seed in range(3):
        run("updates of one key", seed, options=EAGER)
    monkeypatch.setattr(Timeline, "has_file", lambda self, name: True)
    monkeypatch.setattr(heartbeat.Heartbeat, "check", lambda self: None)
    monkeypatch.setattr(rollback_guard, "refuse_alive", lambda *args: None)
    assert found("updates of one key", options=EAGER) is not None


@pytest.mark.req("NEW-12")
def test_an_older_instant_is_found_by_the_follower(monkeypatch):
    the_wrong_instant_is_older(monkeypatch)

    def follow(seed):
        follower = Follower()
        poll = Act(follower.poll, name="poll")
        actors = {"one": [upsert(n=1)], "two": [upsert(m=2)], "reader": [poll, poll]}
        follower.check(simulate(seed, make, actors, options=OPTIONS))

    shown = None
    for seed in range(20):
        try:
            follow(seed)
        except Violation as e:
            shown = str(e)
            break
    assert shown is not None
    assert f"seed {seed}" in shown


def test_a_failing_interleaving_shrinks_and_still_fails(monkeypatch):
    no_conflicts(monkeypatch)
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
