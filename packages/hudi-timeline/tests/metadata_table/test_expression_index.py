"""What the bounds of an expression say about its column; whole reads are compared in tests/golden."""

import datetime as dt
import random
import zoneinfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.storage.open import open_storage
from hudi_index.metadata_table.records import schema_of
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.metadata_table.expression_index import (
    INDEX_DEFINITIONS,
    IndexDefinition,
    index_definitions,
    source_bounds,
)

MEMBERS = {str: "member6", int: "member1"}
ZONES = ("UTC", "Asia/Kolkata", "Pacific/Kiritimati", "Etc/GMT+12", "America/New_York")
FORMATS = {
    "yyyy": "%Y",
    "yyyy-MM": "%Y-%m",
    "yyyyMMdd": "%Y%m%d",
    "yyyy-MM-dd": "%Y-%m-%d",
    "yyyy/MM/dd HH": "%Y/%m/%d %H",
    "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S",
}


def index(function, format=None):
    options = {} if format is None else {"format": format}
    return IndexDefinition("expr_index_x", function, "c", options)


def stats(low, high):
    """Statistics with bounds of an expression."""
    payload = {
        "fileName": "f", "columnName": "c", "valueCount": 3, "nullCount": 0, "isDeleted": False,
        "minValue": None if low is None else {MEMBERS[type(low)]: {"value": low}},
        "maxValue": None if high is None else {MEMBERS[type(high)]: {"value": high}},
    }  # fmt: skip
    rows = pa.Table.from_pylist([{"key": "k", "ColumnStatsMetadata": payload}], schema_of("expr_index_x"))
    return rows.column("ColumnStatsMetadata").combine_chunks()


def bounds(definition, kind, low, high):
    found = source_bounds(definition, kind).of(stats(low, high))
    return tuple(side[0] for side in found)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("format", FORMATS)
def test_every_value_lies_within_whatever_zone_the_writer_had(format, zone):
    chosen, at = random.Random(f"{format} {zone}"), zoneinfo.ZoneInfo(zone)
    for _ in range(6):
        begin = chosen.randrange(-2_000_000_000, 4_000_000_000)
        seconds = [begin + chosen.randrange(chosen.choice((2, 86_400, 10**8))) for _ in range(5)]
        moments = [dt.datetime.fromtimestamp(s, at) for s in seconds]
        texts = [m.strftime(FORMATS[format]) for m in moments]
        ends = min(texts), max(texts)
        for kind in (pa.int64(), pa.int32()):
            low, high = bounds(index("from_unixtime", format), kind, *ends)
            fits = [s for s in seconds if -(2**31) <= s < 2**31] if kind == pa.int32() else seconds
            assert all(low.as_py() <= s <= high.as_py() for s in fits)
            assert (
                kind == pa.int32()
                or high.as_py() - low.as_py() < max(seconds) - min(seconds) + 3 * 366 * 86_400
            )
        for unit in ("us", "ms"):
            kind = pa.timestamp(unit, "UTC")
            low, high = bounds(index("date_format", format), kind, *ends)
            values = pa.array(moments, kind)
            assert pc.all(pc.and_(pc.less_equal(low, values), pc.less_equal(values, high))).as_py()
        days = pa.array([m.date() for m in moments])
        low, high = bounds(
            index("date_format", format.split(" ")[0]), pa.date32(), *(t.split(" ")[0] for t in ends)
        )
        assert pc.all(pc.and_(pc.less_equal(low, days), pc.less_equal(days, high))).as_py()


def test_years_and_columns_as_they_are():
    low, high = bounds(index("year"), pa.date32(), 2020, 2021)
    assert (low.as_py(), high.as_py()) == (dt.date(2020, 1, 1), dt.date(2022, 1, 1))
    low, high = bounds(index("identity"), pa.string(), "a", "b")
    assert (low.as_py(), high.as_py()) == ("a", "b")


@pytest.mark.parametrize(
    "ends",
    [
        ("1970-01-01", None),
        ("-0001-01-01", "1970-01-01"),
        ("+10000-01-01", "1970-01-01"),
        ("1970-1-1", "1970-01-02"),
        ("1582-10-04", "1970-01-01"),
        ("1970-01-01", "9999-12-31"),
    ],
)
def test_bounds_that_are_no_times_of_now_say_nothing(ends):
    assert not any(side.is_valid for side in bounds(index("from_unixtime", "yyyy-MM-dd"), pa.int64(), *ends))


@pytest.mark.parametrize(
    ("function", "format", "kind"),
    [
        ("from_unixtime", "dd-MM-yyyy", pa.int64()),  # does not ascend
        ("from_unixtime", "yyyy-MM-dd EEE", pa.int64()),
        ("from_unixtime", "", pa.int64()),
        ("from_unixtime", "yyyy", pa.float64()),
        ("date_format", "yyyy", pa.string()),
        ("hour", None, pa.timestamp("us")),
        ("lower", None, pa.string()),
        ("identity", None, pa.float64()),  # bounds leave NaN out
    ],
)
def test_other_expressions_say_nothing(function, format, kind):
    assert source_bounds(index(function, format), kind) is None


def test_seconds_that_overflow_as_microseconds_are_beyond():
    low, high = source_bounds(index("from_unixtime"), pa.int64()).beyond
    assert (-low.as_py(), high.as_py()) == (9223372036854, 9223372036854)
    assert source_bounds(index("from_unixtime"), pa.int32()).beyond is None


def test_definitions_are_read_and_refused_where_they_are_none(tmp_path):
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    HudiTable.create(str(tmp_path / "t"), schema, name="t", record_keys="id")
    storage = open_storage(str(tmp_path / "t"))
    snapshot = open_snapshot(storage)
    assert index_definitions(snapshot) == {}
    storage.create(
        INDEX_DEFINITIONS,
        b'{"indexDefinitions": {"expr_index_a": {"indexFunction": "YEAR", "sourceFields": ["v"]}, '
        b'"record_index": {"sourceFields": []}}}',
    )
    assert index_definitions(snapshot) == {
        "expr_index_a": IndexDefinition("expr_index_a", "year", "v"),
        "record_index": IndexDefinition("record_index", "", ""),
    }
    for content in (b'{"indexDefinitions": []}', b"[" * 100_000):
        storage.delete(INDEX_DEFINITIONS)
        storage.create(INDEX_DEFINITIONS, content)
        with pytest.raises(CorruptFileError, match="definitions of indexes"):
            index_definitions(snapshot)
