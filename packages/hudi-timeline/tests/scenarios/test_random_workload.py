"""Random operations and services on a table without a JVM, beside a model of its rows (support/random_workload.py)."""

import os

import pytest
from random_workload import CASES, COPIED_CASES, LISTED, MORE_CASES, Workload

# In CI 1,100 in all; where the metadata table is kept a step takes twice as long.
STEPS, LISTED_STEPS = (1000, 1000) if os.environ.get("HUDI_SOAK") else (200, 100)


EVERY = CASES | MORE_CASES | COPIED_CASES
IN_CI = {"logs", "bloom", "rings", "records", "simple, copied", "buckets, copied", "records, copied"}


@pytest.mark.parametrize(
    ("seed", "case"),
    [pytest.param(n, c, marks=[pytest.mark.in_ci] if c in IN_CI else []) for n, c in enumerate(EVERY, 1)],
    ids=[*EVERY],
)
def test_a_random_workload_agrees_with_the_model(tmp_path, seed, case):
    options = EVERY[case]
    steps = LISTED_STEPS if LISTED.items() <= options.items() else STEPS
    Workload(tmp_path / "t", int(os.environ.get("HUDI_SEED", seed)), options, steps).run()
