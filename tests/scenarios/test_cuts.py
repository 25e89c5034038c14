"""Every operation that changes a table, cut at any of its storage calls: one of two states, and the table goes on.

Before the first, and after every other call that changes the store.  With `HUDI_FAULTS=1` (nox session `faults`) after
each of them, also before each and at every call that only looks, which leaves what the cut after the change before it
leaves, and in the middle of all that is written.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from cuts.driver import Cutter, pool
from cuts.operations import OPERATIONS
from hudi_timeline import table_config

LONG = os.environ.get("HUDI_FAULTS") == "1"


@pytest.fixture(scope="module")
def processes():
    with pool() as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    """In memory where there is such a place: a disk that syncs makes most of the time."""
    shared = Path("/dev/shm")
    # In a container it may be small, or not to be written to.
    if not os.access(shared, os.W_OK) or shutil.disk_usage(shared).free < 256 << 20:
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(prefix="hudi-cuts-", dir=shared))
    yield made
    shutil.rmtree(made)


@pytest.mark.req("RC-01", "RC-02", "RC-04", "RC-06", "RC-09", "TM-03", "NEW-12")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if OPERATIONS[n].slow else []) for n in sorted(OPERATIONS)],
)
@pytest.mark.sampled(8, values=False)
def test_a_cut_at_any_storage_call_leaves_the_old_or_the_new_state(folder, processes, monkeypatch, name):
    # No other process is at the properties of these tables: a table that is half made is not waited for.
    monkeypatch.setattr(table_config, "READ_PAUSE_S", 0.0)
    cutter = Cutter(OPERATIONS[name], folder, processes)
    assert cutter.run(long=LONG) > 2
    if cutter.seen:
        assert "new" in cutter.seen
