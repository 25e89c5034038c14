"""Times of instants, and the forms in which queries give them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import InstantNotFoundError
from hudi_timeline.timeline.instant import format_instant, parse_instant, parse_query_instant


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
