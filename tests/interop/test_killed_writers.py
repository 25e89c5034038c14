"""Apache Hudi's writer killed with `kill -9` in mid-commit, and our next write; and the other way round.

One or two kills here, each with a Spark of its own where it is Apache Hudi's; ten in the long form.
"""

import os
import random

import pytest

from interop.spark_process import QUIET_OPTIONS
from soak.steps import OPERATION, OPTIONS
from soak.taking_over import TakingOver
from soak.writer import local_writer

LONG = pytest.param(10, id="10", marks=pytest.mark.slow)


def seed(rounds):
    """Of the short form the same rows each time, of the long form others; `HUDI_SOAK_SEED` repeats a run's."""
    return int(os.environ.get("HUDI_SOAK_SEED") or (random.randrange(10**6) if rounds == 10 else 1))


@pytest.mark.req("RC-01", "RC-02", "RC-09")
@pytest.mark.parametrize("rounds", [1, LONG])
def test_our_next_write_rolls_back_what_a_killed_apache_hudi_left(tmp_path, rounds):
    path = str(tmp_path / "t")
    soak = TakingOver("apache", path, seed(rounds), local_writer(path))
    print(soak.run(rounds), soak.rolled_back)
    assert len(soak.report.kills) == rounds
    assert soak.rolled_back or rounds < 10


@pytest.mark.req("RC-01", "RC-02", "RC-09")
@pytest.mark.parametrize("rounds", [2, LONG])
def test_apache_hudis_next_write_rolls_back_what_our_killed_writer_left(tmp_path, apache, rounds):
    path = str(tmp_path / "t")

    def write(step):
        apache.write(path, step.table(), {**OPTIONS, **QUIET_OPTIONS, OPERATION: step.operation})

    soak = TakingOver("local", path, seed(rounds), write)
    print(soak.run(rounds), soak.rolled_back)
    assert len(soak.report.kills) == rounds
    assert soak.rolled_back or rounds < 10
