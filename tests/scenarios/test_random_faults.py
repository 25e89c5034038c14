"""Every operation on stores that fail: the rows are the old or the new ones, and the table goes on.

Each change of the timeline, the properties and the metadata table fails once although it was done, in a process that
lives on (tests/scenarios/test_cuts.py ends it there); and at random, a seed of each operation with stores that lie.
`HUDI_FAULTS=1` (nox session `faults`) has each change of any file fail, before or after it is done, and runs
`HUDI_FAULTS_SEEDS` seeds on each store, with honest ones too.  `python tools/cuts/random_faults.py` repeats a run.
"""

import os

import pytest

from cuts.operations import OPERATIONS
from cuts.random_faults import HONEST, LYING, FaultyRuns
from hudi_timeline import table_config

LONG = os.environ.get("HUDI_FAULTS") == "1"
STATE = "*" if LONG else ".hoodie/[!.]*"
"""What is no marker, no heartbeat and no row."""
SEEDS = int(os.environ.get("HUDI_FAULTS_SEEDS", "200")) if LONG else 1


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(table_config, "READ_PAUSE_S", 0.0)


@pytest.mark.req("RC-01", "RC-09", "NEW-12")
@pytest.mark.parametrize("after", [True, False] if LONG else [True], ids=lambda a: "after" if a else "before")
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_change_of_the_store_that_fails_leaves_the_old_or_the_new_rows(name, after):
    runs = FaultyRuns(OPERATIONS[name], None)
    changes = 1  # the first that does not come
    while runs.run_failing(changes, after=after, path=STATE).struck:
        changes += 1
    assert changes > 1


@pytest.mark.req("RC-01", "RC-09", "NEW-12")
@pytest.mark.parametrize("store", ["memory", "local"] if LONG else ["memory"])
@pytest.mark.parametrize("kinds", [HONEST, LYING] if LONG else [LYING], ids=lambda kinds: "+".join(kinds))
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_store_that_fails_at_random_leaves_the_old_or_the_new_rows(tmp_path, name, kinds, store):
    runs = FaultyRuns(OPERATIONS[name], tmp_path if store == "local" else None)
    struck = sum(len(runs.run(seed, kinds).struck) for seed in range(SEEDS))
    assert struck or SEEDS < 10
