"""What waits for compaction: counted from files and commits, also where these were archived."""

import math
from datetime import timedelta

import pytest

from hudi_format.errors import UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.options.compaction_config import CompactionConfig
from hudi_timeline.services.compaction.status import compaction_status
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.instant import DELTA_COMMIT, parse_instant


@pytest.fixture
def made(tmp_path):
    table = TableBuilder(open_storage(str(tmp_path / "t")), table_type="MERGE_ON_READ")
    table.commit("first", table.base("first", {"a": 1}), table.base("first", {"z": 1}, group=2))
    return table


@pytest.mark.req("TS-27")
def test_the_lag_of_read_optimized_queries_is_since_the_oldest_write_in_logs_only(made):
    none = made.table.compaction_status()
    assert (none.slices, none.log_files, none.log_bytes, none.oldest, none.lag_seconds) == (0, 0, 0, "", 0.0)
    stats = [made.log("second", {"a": 2}), made.log("third", {"a": 3})]
    made.commit("second", stats[0])
    made.commit("third", stats[1])
    snapshot = load_snapshot(made.storage, made.table.config)
    now = parse_instant(made.at("second")) + timedelta(seconds=90)
    found = compaction_status(snapshot, CompactionConfig(delta_commits=3), now)
    assert (found.slices, found.log_files) == (1, 2)
    assert found.log_bytes == sum(s.file_size_in_bytes for s in stats)
    assert (found.oldest, found.newest) == (made.at("second"), made.at("third"))
    assert found.lag_seconds == 90
    assert (found.due.is_due, found.due.delta_commits, found.pending) == (True, 3, ())
    planned = made.table.compact(mode="schedule").scheduled
    assert made.table.compaction_status().pending == (planned,)
    assert made.table.compaction_status().slices == 1
    made.table.compact(mode="execute")
    done = made.table.compaction_status()
    assert (done.slices, done.oldest, done.pending) == (0, "", ())


def test_logs_of_archived_commits_are_as_old_as_their_blocks(made):
    made.commit("second", made.log("second", {"a": 2}))
    made.commit("third", made.log("third", {"a": 3}))
    for name in ("first", "second"):  # as archival takes them away
        for state in ("REQUESTED", "INFLIGHT", "COMPLETED"):
            made.storage.delete(made.path_of(made.at(name), DELTA_COMMIT, state))
    found = made.table.compaction_status()
    assert (found.log_files, found.oldest) == (2, made.at("second"))
    assert math.isfinite(found.lag_seconds)


def test_a_copy_on_write_table_has_none(tmp_path):
    made = TableBuilder(open_storage(str(tmp_path / "t")))
    made.commit("first", made.base("first", {"a": 1}))
    with pytest.raises(UnsupportedError, match="no log files"):
        made.table.compaction_status()
