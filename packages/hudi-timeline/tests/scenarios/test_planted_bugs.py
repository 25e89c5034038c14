"""Planted faults, each of which the simulation finds within so many seeds, while the right code passes all of these.

Which there are, and the acts that show each: tests/support/mutations.py.
"""

import os
from collections import Counter

import pytest
from mutations import PLANTED, taken_for_dead

from hudi_timeline.testing import Violation, shrunk
from hudi_timeline.testing.workload_table import made_table

KINDS = {"lock": 3, "order": 3, "fence": 3, "rename": 3, "retry": 4, "re-check": 9}
SOUND = int(os.environ.get("HUDI_SIMULATED_SEEDS", "2"))


def test_there_are_25_of_six_kinds():
    assert Counter(p.of for p in PLANTED) == KINDS
    assert sum(KINDS.values()) == len({p.name for p in PLANTED}) == 25


@pytest.mark.req("NEW-12")
@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p.name)
def test_a_planted_fault_is_found(planted, monkeypatch):
    made_table(planted.table_type)  # without the fault
    planted.plant(monkeypatch)
    assert planted.found() is not None


@pytest.mark.sampled(2)
@pytest.mark.req("NEW-12")
@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p.name)
def test_the_right_code_passes_what_shows_it(planted, monkeypatch):
    made_table(planted.table_type)
    if planted.harmless is not None:
        planted.harmless(monkeypatch)
    for seed in range(SOUND):
        planted.run(seed)


@pytest.mark.req("NEW-12")
def test_a_failing_seed_shrinks_and_replays_exactly(monkeypatch):
    planted = next(p for p in PLANTED if p.name == "no_conflicts")
    made_table(planted.table_type)
    planted.plant(monkeypatch)
    seed = planted.found()
    with pytest.raises(Violation, match=f"seed {seed}: no serial order") as first:
        planted.run(seed)
    with pytest.raises(Violation) as second:
        planted.run(seed)
    assert _switches(first) == _switches(second)

    def fails(switches):
        try:
            planted.run(seed, switches)
        except Violation:
            return True
        return False

    few = shrunk(_switches(first), fails)
    assert fails(few)
    assert 0 < len(few) <= len(_switches(first))
    assert not fails([])  # one after the other


def _switches(raised):
    return eval(str(raised.value).rpartition("Switches: ")[2])


def test_the_fence_alone_holds_writers_that_were_taken_for_dead(monkeypatch):
    planted = next(p for p in PLANTED if p.harmless is taken_for_dead)
    made_table(planted.table_type)
    taken_for_dead(monkeypatch)
    for seed in range(3):
        planted.run(seed)
