"""`kill -9` of a writer at random moments: never a wrong or double row, always writable again.

A few kills here, of the same rows each time; the long form by `HUDI_SOAK=1` (nox session `soak`), which draws others.
`HUDI_SOAK_SEED` repeats a run's rows and its choice of moments, as far as a machine's timing can be repeated.
"""

import os
import random

import pytest

from soak.kill import Soak
from soak.steps import MERGE_ON_READ

LONG = os.environ.get("HUDI_SOAK") == "1"
SEED = int(os.environ.get("HUDI_SOAK_SEED") or (random.randrange(10**6) if LONG else 1))


@pytest.mark.req("RC-01")
def test_a_writer_without_a_jvm_that_is_killed_leaves_whole_commits(tmp_path):
    report = Soak("local", str(tmp_path / "t"), SEED).run(40 if LONG else 4)
    print(report)


@pytest.mark.req("RC-01")
def test_a_writer_of_a_merge_on_read_table_that_is_killed_leaves_whole_commits(tmp_path):
    """Also where the kill comes into a compaction."""
    soak = Soak("local", str(tmp_path / "t"), SEED, table_type=MERGE_ON_READ)
    print(soak.run(60 if LONG else 4))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.req("RC-01")
def test_a_spark_writer_of_a_merge_on_read_table_that_is_killed_leaves_whole_commits(tmp_path):
    soak = Soak("spark", str(tmp_path / "t"), SEED, size=6000, table_type=MERGE_ON_READ)
    print(soak.run(15))


@pytest.mark.spark
@pytest.mark.req("RC-01")
def test_a_spark_writer_that_is_killed_leaves_whole_commits(tmp_path):
    report = Soak("spark", str(tmp_path / "t"), SEED, size=6000).run(10 if LONG else 1)
    print(report)
