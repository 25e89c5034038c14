"""Every operation on stores that fail at random: the rows are the old or the new ones, and the table goes on.

A few seeds here, from a fixed one on; `HUDI_FAULTS=1` (nox session `faults`) runs `HUDI_FAULTS_SEEDS` of them on each
store, with stores that lie too.  `python tools/cuts/random_faults.py` repeats one.
"""

import os

import pytest

from cuts.operations import OPERATIONS
from cuts.random_faults import HONEST, LYING, RandomRuns
from hudi_timeline import table_config

LONG = os.environ.get("HUDI_FAULTS") == "1"
SEEDS = int(os.environ.get("HUDI_FAULTS_SEEDS", "200")) if LONG else 1


@pytest.mark.req("RC-01", "RC-09", "NEW-12")
@pytest.mark.parametrize("store", ["memory", "local"] if LONG else ["memory"])
@pytest.mark.parametrize("kinds", [HONEST, LYING], ids=["honest", "lying"])
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_store_that_fails_at_random_leaves_the_old_or_the_new_rows(
    tmp_path, monkeypatch, name, kinds, store
):
    monkeypatch.setattr(table_config, "READ_PAUSE_S", 0.0)
    runs = RandomRuns(OPERATIONS[name], tmp_path if store == "local" else None)
    struck = sum(len(runs.run(seed, kinds).struck) for seed in range(SEEDS))
    assert struck or SEEDS < 10
