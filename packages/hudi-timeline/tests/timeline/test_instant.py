"""Names of instant files, in both directions."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_timeline.timeline.instant import (
    ACTIONS,
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    Instant,
    file_name,
    parse_instant_file,
)

T = "20261121053557332"
pytestmark = pytest.mark.req("TM-04", "TM-02")


@pytest.mark.parametrize(
    ("name", "action", "state"),
    [
        (f"{T}.commit.requested", "commit", REQUESTED),
        (f"{T}.inflight", "commit", INFLIGHT),
        (f"{T}.commit", "commit", COMPLETED),
        (f"{T}.deltacommit.requested", "deltacommit", REQUESTED),
        (f"{T}.deltacommit.inflight", "deltacommit", INFLIGHT),
        (f"{T}.compaction.requested", "compaction", REQUESTED),
        (f"{T}.compaction.inflight", "compaction", INFLIGHT),
        (f"{T}.logcompaction.inflight", "logcompaction", INFLIGHT),
        (f"{T}.replacecommit", "replacecommit", COMPLETED),
        (f"{T}.savepoint.inflight", "savepoint", INFLIGHT),
        (f"{T}.restore", "restore", COMPLETED),
        (f"{T}.indexing.requested", "indexing", REQUESTED),
        ("20130101010101.clean", "clean", COMPLETED),
        ("00000000000001.commit", "commit", COMPLETED),
    ],
)
def test_names_of_the_format_are_read(name, action, state):
    instant = parse_instant_file(name, mtime_ms=7, size=3)
    assert (instant.action, instant.state, instant.file_name) == (action, state, name)
    assert (instant.mtime_ms, instant.size) == (7, 3)
    assert file_name(instant.time, action, state) == name


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties", "hoodie.properties.backup", "lock", "archived", f"{T}", f"{T}.", f"{T}.tmp",
        f".{T}.commit.0a1b.tmp", f"{T}.commit.tmp", f"{T}.compaction", f"{T}.commit.requested.bak",
        f"{T}.schemacommit", f"{T}_{T}.commit", f"{T}.COMMIT", f"{T}.inflight.requested", f"x{T}.commit",
        "²³.commit", f"{T}.commit\n", f"{T}.commit.inflight",
    ],
)  # fmt: skip
def test_other_names_are_no_instants(name):
    assert parse_instant_file(name) is None


@given(st.from_regex(r"[0-9]{14,20}", fullmatch=True), st.sampled_from(sorted(ACTIONS)),
       st.sampled_from([REQUESTED, INFLIGHT, COMPLETED]))  # fmt: skip
def test_every_name_that_is_made_is_read_back(time, action, state):
    instant = parse_instant_file(file_name(time, action, state))
    assert instant is not None
    assert (instant.time, instant.state) == (time, state)
    assert instant.comparable_action == Instant(time, action, state).comparable_action


@given(st.text(alphabet=string.printable + "é\x00²", max_size=40))
def test_arbitrary_names_never_fail(name):
    instant = parse_instant_file(name)
    assert instant is None or instant.file_name == name


def test_instants_order_by_time_then_action_then_state():
    ordered = [
        Instant("1", "commit", COMPLETED),
        Instant("2", "clean", COMPLETED),
        Instant("2", "compaction", REQUESTED),
        Instant("2", "compaction", INFLIGHT),
        Instant("2", "commit", COMPLETED),
        Instant("3", "commit", REQUESTED),
    ]
    assert sorted([*ordered[3:], *ordered[:3]]) == ordered
