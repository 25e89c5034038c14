"""Texts of timestamps as java.sql.Timestamp writes them."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.keygen.java_text import timestamp_texts
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import partition_paths, record_keys
from hudi_format.keygen.time_zones import zone
from hudi_format.keygen.timestamp_based import (
    CONSISTENT,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")


def longs(*values):
    return pa.array(values, pa.int64())


@pytest.mark.req("KG-03")
def test_consistent_timestamps_are_text_as_java_sql_timestamp_writes_it():
    made = KeySpec.from_class(
        "SimpleKeyGenerator", key_fields=["t"], partition_fields=["p"], options={CONSISTENT: "true"},
    )  # fmt: skip
    times = pa.array([1709168523456789, -31536000000000, 120000], pa.timestamp("us", "UTC"))
    table = pa.table({"t": times, "p": times})
    want = ["2024-02-29 01:02:03.456", "1969-01-01 00:00:00.0", "1970-01-01 00:00:00.12"]
    assert record_keys(table, made).to_pylist() == want
    assert partition_paths(table, made).to_pylist() == want


def test_old_and_far_dates_follow_java_s_calendar():
    micros = longs(-62_135_596_800_000_000, -12_219_292_800_001_000, 253_402_300_800_000_000, -1, None)
    assert timestamp_texts(micros, zone("UTC")).to_pylist() == [
        "0001-01-03 00:00:00.0", "1582-10-04 23:59:59.999", "10000-01-01 00:00:00.0", "1970-01-01 00:00:00.0", None,
    ]  # fmt: skip


@given(st.lists(st.integers(-12_219_292_800_000, 253_402_300_799_999), max_size=20))
def test_consistent_timestamps_are_python_s_in_usual_years(millis):
    made = timestamp_texts(longs(*(m * 1000 for m in millis)), zone("UTC")).to_pylist()
    for text, m in zip(made, millis, strict=True):
        moment = datetime.fromtimestamp(m // 1000, UTC)
        assert text == f"{moment:%Y-%m-%d %H:%M:%S}.{f'{m % 1000:03d}'.rstrip('0') or '0'}".rjust(
            len(text), "0"
        )
