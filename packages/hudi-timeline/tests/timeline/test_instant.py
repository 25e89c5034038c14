"""Names of instant files, in both directions; times of instants, and the forms in which queries give them."""

import string
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import InstantNotFoundError
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.instant import (
    ACTIONS,
    COMPLETED,
    INFLIGHT,
    REPLACE_COMMIT,
    REQUESTED,
    Instant,
    file_name,
    format_instant,
    instant_path,
    parse_instant,
    parse_instant_file,
    parse_query_instant,
)

T = "20261121053557332"


@pytest.mark.req("TM-04")
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


@pytest.mark.req("TM-04")
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


@pytest.mark.req("TM-04")
@given(st.from_regex(r"[0-9]{14,20}", fullmatch=True), st.sampled_from(sorted(ACTIONS)),
       st.sampled_from([REQUESTED, INFLIGHT, COMPLETED]), st.sampled_from(["", "20260101000000000"]))  # fmt: skip
def test_every_name_that_is_made_is_read_back(time, action, state, completion):
    name = file_name(time, action, state, completion)
    said = completion if state == COMPLETED else ""
    instant = parse_instant_file(name, ".hoodie/timeline")
    assert instant is not None
    assert (instant.time, instant.state, instant.completion) == (time, state, said)
    assert instant.path == f".hoodie/timeline/{name}"
    # Versions up to 6 know no completion times.
    assert (parse_instant_file(name) is None) == bool(said)
    assert instant.comparable_action == Instant(time, action, state).comparable_action


@pytest.mark.req("TM-04")
@given(st.text(alphabet=string.printable + "é\x00²", max_size=40))
def test_arbitrary_names_never_fail(name):
    instant = parse_instant_file(name)
    assert instant is None or instant.file_name == name


@pytest.mark.req("TM-04")
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


@given(st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9999, 1, 1)))
def test_instants_round_trip_to_the_millisecond(moment):
    text = format_instant(moment)
    assert len(text) == 17
    assert format_instant(parse_instant(text)) == text


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        ("20240305101112123", "20240305101112123"),
        ("20240305101112", "20240305101112"),
        ("2024-03-05", "20240305000000000"),
        ("2024-03-05 10:11:12", "20240305101112999"),
        ("2024-03-05T10:11:12", "20240305101112999"),
        ("2024-03-05 10:11:12.123", "20240305101112123"),
        (datetime(2024, 3, 5, 1), "20240305010000000"),
    ],
)
def test_query_instants_in_each_form(given, instant):
    assert parse_query_instant(given) == instant


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        ("2024-03-05T12:11:12+02:00", "20240305101112999"),
        ("2024-03-05T10:11:12Z", "20240305101112999"),
        ("2024-03-05 10:11:12.5+00:00", "20240305101112500"),
    ],
)
def test_iso_text_with_a_zone_is_turned_into_the_tables_zone(given, instant):
    assert parse_query_instant(given, UTC) == instant


def test_a_datetime_with_a_zone_is_turned_into_the_tables_zone():
    moment = datetime.fromisoformat("2024-03-05T02:00:00+02:00")
    assert parse_query_instant(moment, UTC) == "20240305000000000"


def test_times_that_no_year_has_in_the_zone_of_the_table():
    for text in ("9999-12-31T23:59:59.999-23:59", "0001-01-01T00:00:00+23:59"):
        with pytest.raises(InstantNotFoundError, match="years"):
            parse_query_instant(text, UTC)


@pytest.mark.parametrize(
    "text", ["yesterday", "2024-13-01", "2024-03-05 10", "123", "", "20240305101112.123"]
)
def test_other_forms_are_refused_with_the_forms_accepted(text):
    with pytest.raises(InstantNotFoundError, match="yyyy-MM-dd"):
        parse_query_instant(text)


@pytest.mark.parametrize(
    ("properties", "requested", "completed"),
    [
        (
            {"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"},
            ".hoodie/1.replacecommit.requested",
            ".hoodie/1.replacecommit",
        ),
        (
            {"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"},
            ".hoodie/timeline/1.replacecommit.requested",
            ".hoodie/timeline/1_2.replacecommit",
        ),
    ],
)
def test_files_of_instants_are_named_as_the_tables_version_does(properties, requested, completed):
    config = TableConfig(properties)
    done = "2" if config.version.has_completion_times else ""
    assert instant_path(config, "1", REPLACE_COMMIT, REQUESTED) == requested
    assert instant_path(config, "1", REPLACE_COMMIT, COMPLETED, done) == completed
    listed = parse_instant_file("1.replacecommit.requested", config.timeline_folder)
    assert (listed.path, listed.path_in(REQUESTED), listed.path_in(COMPLETED, done)) == (
        requested,
        requested,
        completed,
    )
