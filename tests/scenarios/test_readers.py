"""Readers of every kind beside a writer that cleans and archives: rows of some commit, or an error that says why not.

Half a minute here; ten minutes by `HUDI_SOAK=1` (nox session `soak`).
"""

import os
import random

import pytest

from soak.readers import KINDS, watch

LONG = os.environ.get("HUDI_SOAK") == "1"
SEED = int(os.environ.get("HUDI_SOAK_SEED") or (random.randrange(10**6) if LONG else 1))
SECONDS = 600 if LONG else 15
# Snapshot not there any more, files gone, archived or cleaned, an open commit.
ERRORS = {"right", "HUDI-E0402", "HUDI-E0403", "HUDI-E0901", "HUDI-E0902"}


@pytest.mark.req("CC-01", "QR-13", "IN-17", "TS-19")
def test_every_answer_is_a_state_of_the_table(tmp_path):
    report = watch(str(tmp_path / "t"), SECONDS, SEED)
    for kind, ends in report.items():
        print(f"{kind:20} {dict(ends)}")
    assert {problem for ends in report.values() for problem in ends} <= ERRORS
    assert sum(ends["right"] for kind, ends in report.items() if kind in KINDS) > 10
