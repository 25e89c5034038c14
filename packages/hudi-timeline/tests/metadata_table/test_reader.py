"""Whose log blocks of a metadata table count; what it says is compared with tables in tests/golden."""

import pytest

from hudi_timeline.metadata_table.reader import trusted_scope
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import parse_instant_file

DONE, PENDING, BROKEN = "20240101000000001", "20240101000000002", "20240101000000003"
LAST = "20240101000000009"


def timeline(*names, folder=".hoodie"):
    return Timeline.of_files([parse_instant_file(n, folder, mtime_ms=0, size=1) for n in names])


def own_6(*times):
    return timeline(*(f"{t}.deltacommit" for t in times))


DATA_6 = timeline(f"{DONE}.commit", f"{PENDING}.commit.requested", f"{LAST}.commit")


@pytest.mark.parametrize(
    ("instant", "counts"),
    [
        (DONE, True),
        (PENDING, False),
        (BROKEN, False),  # the table has no such instant
        (f"{DONE}001", True),
        (f"{DONE}005", True),
        (f"{PENDING}010", True),  # a partition was initialised
        (f"{DONE}007", False),
        ("20230101000000000", True),  # archived
        ("20240101000000010", False),  # no suffix
        ("00000000000000010", True),
        ("00000000000000012001", True),
    ],
)
def test_up_to_version_6_an_instant_counts_that_the_table_completed(instant, counts):
    scope = trusted_scope(own_6(instant), DATA_6, suffixes=True)
    assert scope.sees(instant) is counts


@pytest.mark.parametrize(
    "action",
    ["commit", "deltacommit", "replacecommit", "compaction", "clean", "rollback", "restore", "indexing"],
)
def test_of_a_pending_action_of_any_kind_nothing_counts(action):
    data = timeline(f"{DONE}.commit", f"{PENDING}.{action}.requested", f"{LAST}.commit")
    for suffixes in (True, False):
        scope = trusted_scope(own_6(DONE, PENDING), data, suffixes=suffixes)
        assert scope.sees(DONE)
        assert not scope.sees(PENDING)


def test_what_the_metadata_table_did_not_complete_does_not_count():
    own = timeline(f"{DONE}.deltacommit.requested", f"{LAST}.deltacommit")
    assert not trusted_scope(own, DATA_6, suffixes=True).sees(DONE)


def test_from_version_8_on_its_own_instants_count_that_are_no_writes_of_the_table():
    data = timeline(
        f"{DONE}_{LAST}.commit",
        f"{PENDING}.commit.requested",
        f"{LAST}_{LAST}.commit",
        folder=".hoodie/timeline",
    )
    names = (
        f"{t}_{LAST}.deltacommit" for t in (DONE, PENDING, BROKEN, "20250101000000000", "00000000000000002")
    )
    scope = trusted_scope(timeline(*names, folder=".hoodie/timeline"), data, suffixes=False)
    assert scope.sees(DONE)
    assert scope.sees(BROKEN)
    assert scope.sees("00000000000000002")
    assert not scope.sees(PENDING)
    assert not scope.sees("20250101000000000")  # of a state after the snapshot's
    assert scope.grouped
