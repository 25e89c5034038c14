"""Random operations and services on a table without a JVM, beside a model of its rows (support/random_workload.py)."""

import os

import pytest
from random_workload import CASES, LISTED, Workload

# In CI 1,000 in all; where the metadata table is kept a step takes twice as long.
STEPS, LISTED_STEPS = (1000, 1000) if os.environ.get("HUDI_SOAK") else (200, 100)


@pytest.mark.parametrize(("seed", "case"), [*enumerate(CASES, 1)], ids=[*CASES])
def test_a_random_workload_agrees_with_the_model(tmp_path, seed, case):
    options = CASES[case]
    steps = LISTED_STEPS if LISTED.items() <= options.items() else STEPS
    Workload(tmp_path / "t", int(os.environ.get("HUDI_SEED", seed)), options, steps).run()
