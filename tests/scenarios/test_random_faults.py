"""Every operation on stores that fail: the rows are the old or the new ones, and the table goes on.

Changes of the timeline, the properties and the metadata table fail once although they were done, in a process that
lives on (tests/scenarios/test_cuts.py ends it there); and at random, a seed of each operation with stores that lie.
`HUDI_FAULTS=1` (nox session `faults`) has each change of any file fail, before or after it is done, and runs
`HUDI_FAULTS_SEEDS` seeds on each store, with honest ones too.  `python tools/cuts/random_faults.py` repeats a run.

With the options of several writers nobody mends what another one has left but a cleaning: changes that fail, or at
which the process ends, and another writer in between.
"""

import os
import zlib

import pytest

from cuts.operations import OPERATIONS
from cuts.random_faults import HONEST, LYING, FaultyRuns
from cuts.several_writers import SEVERAL, SeveralWriters
from hudi_timeline import table_config
from hudi_timeline.services import cleaning
from hudi_timeline.testing import CRASH, FAIL

LONG = os.environ.get("HUDI_FAULTS") == "1"
STATE = "*" if LONG else ".hoodie/[!.]*"
"""What is no marker, no heartbeat and no row."""
STEP = 1 if LONG else 2
"""In CI every other change, the first or the second one first, as the operation's name says."""
SEEDS = int(os.environ.get("HUDI_FAULTS_SEEDS", "200")) if LONG else 1

# The lock file of a process that has ended stays, and this process has not.
KINDS = [(kind, o) for kind in (FAIL, CRASH) for o in SEVERAL if (kind, o) != (CRASH, "lock file")]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(table_config, "READ_PAUSE_S", 0.0)


@pytest.mark.req("RC-01", "RC-09", "NEW-12")
@pytest.mark.parametrize("after", [True, False] if LONG else [True], ids=lambda a: "after" if a else "before")
@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.sampled(6)
def test_a_change_of_the_store_that_fails_leaves_the_old_or_the_new_rows(name, after):
    runs = FaultyRuns(OPERATIONS[name], None)
    first = 1 + zlib.crc32(name.encode()) % STEP
    struck = 0
    while runs.run_failing(first + struck * STEP, after=after, path=STATE).struck:
        struck += 1
    assert struck or runs.run_failing(1, after=after, path=STATE).struck


@pytest.mark.req("RC-01", "RC-09", "NEW-12")
@pytest.mark.parametrize("store", ["memory", "local"] if LONG else ["memory"])
@pytest.mark.parametrize("kinds", [HONEST, LYING] if LONG else [LYING], ids=lambda kinds: "+".join(kinds))
@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.sampled(6)
def test_a_store_that_fails_at_random_leaves_the_old_or_the_new_rows(tmp_path, name, kinds, store):
    runs = FaultyRuns(OPERATIONS[name], tmp_path if store == "local" else None)
    struck = sum(len(runs.run(seed, kinds).struck) for seed in range(SEEDS))
    assert struck or SEEDS < 10


@pytest.mark.req("RC-03", "RC-04", "TP-03", "CC-16", "CC-25", "NEW-12")
@pytest.mark.parametrize(("kind", "options"), KINDS, ids=lambda v: str(v))
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if OPERATIONS[n].slow else []) for n in sorted(OPERATIONS)],
)
@pytest.mark.sampled(120, values=False)
def test_a_writer_of_several_that_fails_is_mended_by_a_cleaning(monkeypatch, name, kind, options):
    # A rollback that another release may be at is left to it for an hour, which is over.
    monkeypatch.setattr(cleaning, "ROLLBACK_OVER_S", -1)
    runs = SeveralWriters(OPERATIONS[name], options)
    struck = 0
    for after in (True, False) if LONG else (True,):
        nth = 1 + zlib.crc32(f"{name} {options}".encode()) % (1 if LONG else 3)
        while runs.run_at(kind, nth, after=after, path=".hoodie/*").struck:
            struck += 1
            nth += 1 if LONG else 3
    assert struck or runs.run_at(kind, 1, after=True, path=".hoodie/*").struck
