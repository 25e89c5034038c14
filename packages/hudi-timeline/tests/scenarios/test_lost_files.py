"""Writes that read the table and meet a file that is lost: nothing brings it back, so nothing is tried again."""

import os
from contextlib import suppress

import pytest
from resized_tables import FULL, KINDS, found, make

from hudi_format.errors import MissingFileError
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.services.buckets import resizing
from hudi_timeline.services.buckets.resize_tasks import run_on_threads
from hudi_timeline.transaction.retries import Tries

WRITES = {
    "resize": lambda t: t.resize_buckets(options=FULL),
    "update": lambda t: t.update({"ts": 9}),
    "delete": lambda t: t.delete("ts < 9"),
}


@pytest.fixture
def ends(monkeypatch):
    """Errors at which a write decided whether to try again."""
    seen, real = [], Tries.read_again

    def counted(tries, error):
        seen.append(error)
        return real(tries, error)

    monkeypatch.setattr(Tries, "read_again", counted)
    return seen


def current(table, *, log):
    """A base or log file of the newest state."""
    files = [
        f
        for s in newest_slices_of(open_snapshot(table.storage))
        for f in (s.log_files if log else [s.base_file])
    ]
    return next(f.path for f in files if f)


@pytest.mark.parametrize(("kind", "log"), [(KINDS[0], False), (KINDS[1], False), (KINDS[1], True)])
@pytest.mark.parametrize("name", WRITES)
def test_a_lost_file_is_said_at_once(tmp_path, ends, kind, log, name):
    table = make(tmp_path / "t", kind, "EXTENDIBLE_HASHING", 4)
    before, lost = table.timeline.instants, current(table, log=log)
    os.rename(tmp_path / "t" / lost, tmp_path / "kept")
    with pytest.raises(MissingFileError) as e:
        WRITES[name](table)
    assert e.value.file == lost
    assert len(ends) == 1
    assert table.timeline.instants == before
    os.rename(tmp_path / "kept", tmp_path / "t" / lost)
    WRITES[name](table)


def test_a_file_that_is_lost_while_a_resize_reads_is_said_at_once(tmp_path, ends, monkeypatch):
    table = make(tmp_path / "t", "MERGE_ON_READ", "CONSISTENT_HASHING", 4)
    before, lost, tries = found(table), current(table, log=False), []

    def beside(tasks):
        tries.append(len(tasks))
        with suppress(FileNotFoundError):
            os.rename(tmp_path / "t" / lost, tmp_path / "kept")
        return run_on_threads(tasks)

    monkeypatch.setattr(resizing, "run_on_threads", beside)
    with pytest.raises(MissingFileError) as e:
        table.resize_buckets(options=FULL)
    assert e.value.file == lost
    assert (len(tries), len(ends)) == (1, 1)
    os.rename(tmp_path / "kept", tmp_path / "t" / lost)
    assert found(table) == before
