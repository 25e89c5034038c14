"""Slices of every instant: what cleanings and savepoints choose among is what reads would find."""

from dataclasses import replace

import pyarrow as pa
import pytest
from made_tables import MadeTable, at

from hudi_format.model import FileSlice
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.protocol import FileInfo
from hudi_timeline import table_config
from hudi_timeline.file_system_view.file_slice_history import Slice, file_groups
from hudi_timeline.file_system_view.file_slices import SliceBuilder, every_slice, files_by_group
from hudi_timeline.file_system_view.snapshot import load_snapshot

GROUP = ("p", "f")
SCHEMA_FIELDS = ("id", "p")


def base(n, token="0-0-0"):
    return f"f_{token}_{at(n)}.parquet"


def log(n, version=1):
    return f".f_{at(n)}.log.{version}_0-0-0"


def cdc(n):
    return f"{log(n)}.cdc"


@pytest.fixture
def snapshot(tmp_path):
    """A table of version 6 with completed instants 1 to 4, a pending compaction 5 and a pending write 6."""
    made = MadeTable(tmp_path / "t", pa.schema([(n, pa.string()) for n in SCHEMA_FIELDS]))
    for n in range(1, 5):
        made.complete(at(n), [made.base_file(at(n), "p", "f", [], token="0-0-0")])
    made.instant_file(f"{at(5)}.compaction.requested")
    made.instant_file(f"{at(6)}.commit.requested")
    storage = LocalStorage(str(made.path))
    return load_snapshot(storage, table_config.load(storage))


def builder(snapshot, pending=None):
    return SliceBuilder(snapshot.storage, snapshot.config, snapshot.timeline, pending or {})


def groups(snapshot, *names, pending=None):
    listing = {"p": [FileInfo(n, False, 1) for n in names]}
    return file_groups(snapshot, listing, builder(snapshot, pending))


def test_a_slice_has_its_base_file_logs_and_captured_changes_the_newest_slice_first(snapshot):
    found, open_partitions = groups(snapshot, base(1), log(1), log(1, 2), base(2), cdc(2), "other.txt")
    assert found == {
        GROUP: [
            Slice(at(2), tuple(sorted([base(2), cdc(2)])), True),
            Slice(at(1), tuple(sorted([base(1), log(1), log(1, 2)])), True),
        ]
    }
    assert open_partitions == set()


def test_both_base_files_of_a_task_that_was_tried_twice_are_in_its_slice(snapshot):
    found, _ = groups(snapshot, base(1), base(1, "0-1-1"))
    assert found == {GROUP: [Slice(at(1), (base(1), base(1, "0-1-1")), True)]}


def test_a_leftover_alone_is_no_slice(snapshot):
    """Of a group that its commit did not write."""
    found, open_partitions = groups(snapshot, base(1), "g_1-1-1_" + base(2).rpartition("_")[2])
    assert {g: [s.names for s in slices] for g, slices in found.items()} == {GROUP: [(base(1),)]}
    assert open_partitions == set()


def test_a_snapshot_of_an_earlier_instant_knows_the_files_of_later_ones(snapshot):
    found, _ = groups(snapshot.at(at(1)), base(1), log(1), base(2), log(2))
    assert [s.names for s in found[GROUP]] == [(log(2), base(2)), (log(1), base(1))]


def test_a_log_that_is_named_after_its_own_commit_keeps_the_base_file_that_it_changes(snapshot):
    # As version 8 named them before the table was taken down: reads apply it to the base file before.
    names = [base(1), base(2), log(3)]
    found, _ = groups(snapshot, *names)
    assert [(s.instant, s.names) for s in found[GROUP]] == [(at(2), (log(3), base(2))), (at(1), (base(1),))]
    read = builder(snapshot).newest(GROUP, *_of(names))
    assert isinstance(read, FileSlice)
    assert read.base_file.name == base(2)
    assert [f.name for f in read.log_files] == [log(3)]


def _of(names):
    bases, logs = files_by_group({"p": [FileInfo(n, False, 1) for n in names]})
    return {b.instant: b for b in bases[GROUP]}, logs[GROUP]


def test_logs_after_a_pending_compaction_are_a_slice_without_a_base_file(snapshot):
    found, _ = groups(snapshot, base(1), log(5), pending={GROUP: at(5)})
    assert [(s.instant, s.has_base) for s in found[GROUP]] == [(at(5), False), (at(1), True)]


def test_a_slice_that_a_compaction_began_counts_from_its_first_file_on(snapshot):
    found, _ = groups(snapshot, base(1), log(1), pending={GROUP: at(5)})
    assert [s.instant for s in found[GROUP]] == [at(1)]


def test_files_of_a_pending_write_are_in_no_slice_and_hold_their_partition_open(snapshot):
    found, open_partitions = groups(snapshot, base(1), base(6))
    assert [s.names for s in found[GROUP]] == [(base(1),)]
    assert open_partitions == {"p"}


def test_every_slice_of_a_listing_has_those_of_pending_writes_too(snapshot):
    listing = {"p": [FileInfo(n, False, 1) for n in (base(1), log(1), base(6), cdc(1))]}
    assert [
        (s.base_instant, len(s.log_files)) for s in every_slice(without_compaction(snapshot), listing)
    ] == [
        (at(1), 1),
        (at(6), 0),
    ]


def without_compaction(snapshot):
    """The snapshot without the plan of a compaction, which has no content here."""
    kept = [i for i in snapshot.timeline.files if i.action != "compaction"]
    return replace(snapshot, timeline=type(snapshot.timeline).of_files(kept))
