"""Dates and times of ISO 8601 texts, and what a type does not hold of them."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.schema.iso_texts import dates_of, lack_zones, moments_of

UTC, NAIVE = pa.timestamp("us", "UTC"), pa.timestamp("us")
LAYOUTS = [pa.string(), pa.large_string(), pa.string_view()]


def moment(*parts):
    return dt.datetime(*parts, tzinfo=dt.UTC)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_dates_are_read_in_each_layout_of_text(layout):
    texts = pa.array(["2024-03-05", None, "2024-02-29T00:00", "0001-01-01 00:00:00.000"], layout)
    day = dt.date(2024, 3, 5)
    assert dates_of(texts).to_pylist() == [day, None, dt.date(2024, 2, 29), dt.date(1, 1, 1)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_times_are_read_with_their_zones(layout):
    texts = {
        "2024-03-05T10:11:12Z": moment(2024, 3, 5, 10, 11, 12),
        "2024-03-05 10:11:12.250+02:00": moment(2024, 3, 5, 8, 11, 12, 250_000),
        "2024-03-05T10:11:12.1234560000-0130": moment(2024, 3, 5, 11, 41, 12, 123_456),
        "2024-03-05T10:11": moment(2024, 3, 5, 10, 11),
        "2024-03-05 10:11:12.0": moment(2024, 3, 5, 10, 11, 12),
        "1969-12-31T23:59:59.9-00": moment(1969, 12, 31, 23, 59, 59, 900_000),
    }
    assert moments_of(pa.array([*texts, None], layout), UTC).to_pylist() == [*texts.values(), None]


@given(
    st.datetimes(min_value=dt.datetime(1, 1, 2), max_value=dt.datetime(9999, 12, 30)), st.sampled_from("T ")
)
def test_what_python_writes_is_read_again(moment, sep):
    assert moments_of(pa.array([moment.isoformat(sep)]), NAIVE).to_pylist() == [moment]
    zoned = moment.replace(tzinfo=dt.timezone(dt.timedelta(hours=-7)))
    assert moments_of(pa.array([zoned.isoformat(sep)]), UTC).to_pylist() == [zoned]
    assert dates_of(pa.array([moment.date().isoformat()])).to_pylist() == [moment.date()]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2024-3-5", "no date such as"),
        ("20240305", "no date such as"),
        ("2024-03-05\n", "no date such as"),
        (" 2024-03-05", "no date such as"),
        ("2024-02-30", "no such day"),
        ("2024-03-05T00:00:01", "time of day"),
        ("2024-03-05T00:00Z", "no date such as"),
        ("", "no date such as"),
    ],
)
def test_what_is_no_date_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        dates_of(pa.array([None, text]))


@pytest.mark.parametrize(
    ("text", "target", "why"),
    [
        ("2024-03-05", UTC, "no time of day"),
        ("2024-03-05T24:00", UTC, "no such time"),
        ("2024-02-30T10:00", UTC, "no such time"),
        ("2024-03-05T10", UTC, "no time such as"),
        ("10:00", UTC, "no time such as"),
        ("2024-03-05T10:00 Europe/Oslo", UTC, "no time such as"),
        ("2024-03-05T10:00:00Z", NAIVE, "has a time zone"),
        ("2024-03-05T10:00:00.1234567Z", UTC, "digits"),
        ("2024-03-05T10:00:00.0001", pa.timestamp("ms"), "digits"),
        ("2024-03-05T10:00:00.1", pa.timestamp("s"), "digits"),
    ],
)
def test_what_is_no_time_or_loses_something_is_refused(text, target, why):
    with pytest.raises(ValueError, match=why):
        moments_of(pa.array([text, None]), target)


def test_texts_without_a_zone_are_told():
    assert lack_zones(pa.array(["2024-03-05T10:00Z", "2024-03-05T10:00", None]))
    assert lack_zones(pa.array(["2024-03-05T10:00:00.5"]))
    assert not lack_zones(pa.array(["2024-03-05T10:00-02", "2024-03-05T10:00:00.5+02:00", None]))
    assert not lack_zones(pa.array([], pa.string()))


def test_no_texts_are_no_dates_and_no_times():
    assert dates_of(pa.array([None], pa.string())).equals(pa.array([None], pa.date32()))
    assert moments_of(pa.array([], pa.string()), UTC).equals(pa.array([], UTC))
