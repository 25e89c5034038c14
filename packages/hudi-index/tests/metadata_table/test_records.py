"""Records of the metadata table as values: the type of the data column decides what a bound means."""

import math
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_index.metadata_table import records as r

BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, STRING, DATE, DECIMAL = range(9)


def union(member, value):
    return None if value is None else {f"member{member}": {"value": value}}


def stats(member, low, high, *, values=10, nulls=0, ordinal=None, info=None):
    """One record, as an array of the field's type."""
    row = {
        "fileName": "f", "columnName": "c", "minValue": union(member, low), "maxValue": union(member, high),
        "valueCount": values, "nullCount": nulls, "isDeleted": False,
        "valueType": None if ordinal is None else {"typeOrdinal": ordinal, "additionalInfo": info},
    }  # fmt: skip
    return pa.array([row], r.schema_of("column_stats").field("ColumnStatsMetadata").type)


def scaled(value, scale):
    whole = int(Decimal(value).scaleb(scale))
    return whole.to_bytes(16, signed=True)


US = pa.timestamp("us", "UTC")
NOW = 1_700_000_000_000_000
KNOWN = {
    "bool": (stats(BOOLEAN, False, True), pa.bool_(), (False, True)),
    "short": (stats(INT, -5, 7), pa.int16(), (-5, 7)),
    "int": (stats(INT, -5, 7, ordinal=3), pa.int32(), (-5, 7)),
    "a long that was an int": (stats(INT, -5, 7), pa.int64(), (-5, 7)),
    "long": (stats(LONG, -5, 7, ordinal=4), pa.int64(), (-5, 7)),
    "float": (stats(FLOAT, -0.0, 1.5), pa.float32(), (-0.0, 1.5)),
    "double": (stats(DOUBLE, -1.5, math.inf), pa.float64(), (-1.5, math.inf)),
    "string": (stats(STRING, "", "日本"), pa.string(), ("", "日本")),
    "date": (stats(DATE, 0, 1), pa.date32(), (date(1970, 1, 1), date(1970, 1, 2))),
    "a date that was compacted": (stats(INT, 0, 1), pa.date32(), (date(1970, 1, 1), date(1970, 1, 2))),
    "a date of version 9": (stats(INT, 0, 1, ordinal=12), pa.date32(), (date(1970, 1, 1), date(1970, 1, 2))),
    "decimal": (
        stats(DECIMAL, Decimal("1.25"), Decimal("2")), pa.decimal128(5, 2), (Decimal("1.25"), Decimal("2.00")),
    ),
    "a decimal that was compacted": (
        stats(BYTES, scaled("-1.25", 15), scaled("2", 15)), pa.decimal128(5, 2),
        (Decimal("-1.25"), Decimal("2.00")),
    ),
    "a decimal of version 9": (
        stats(BYTES, scaled("1.25", 2), scaled("2", 2), ordinal=10, info="5,2"), pa.decimal128(6, 3),
        (Decimal("1.250"), Decimal("2.000")),
    ),
    "microseconds": (stats(LONG, NOW, NOW + 1), US, (NOW, NOW + 1)),
    "old microseconds of version 9": (stats(LONG, -7, 7, ordinal=16), US, (-7, 7)),
    "milliseconds of version 9": (stats(LONG, 5, 7, ordinal=15), pa.timestamp("ms", "UTC"), (5, 7)),
}  # fmt: skip


@pytest.mark.parametrize("what", KNOWN)
def test_bounds_are_values_of_the_column(what):
    found, kind, wanted = KNOWN[what]
    low, high = r.bounds(found, kind)
    assert low.type == high.type == kind
    if pa.types.is_timestamp(kind):
        low, high = low.cast(pa.int64()), high.cast(pa.int64())
    assert (low[0].as_py(), high[0].as_py()) == wanted


UNKNOWN = {
    "no bounds": (stats(INT, None, None), pa.int32()),
    "one bound": (stats(INT, 1, None), pa.int32()),
    "all null": (stats(BOOLEAN, False, False, values=4, nulls=4), pa.bool_()),
    "another type": (stats(STRING, "1", "2"), pa.int32()),
    "a type that it is promoted to": (stats(INT, 1, 2), pa.float64()),
    "another type of version 9": (stats(INT, 1, 2, ordinal=12), pa.int32()),
    "a type of a later release": (stats(INT, 1, 2, ordinal=77), pa.int32()),
    "an int that does not fit": (stats(INT, 1, 1 << 20), pa.int16()),
    "binary": (stats(BYTES, b"a", b"b"), pa.binary()),
    "not a number": (stats(DOUBLE, math.nan, 1.0), pa.float64()),
    "bounds in the wrong order": (stats(LONG, 2, 1), pa.int64()),
    "text that Java orders otherwise": (stats(STRING, "a", "\uffff"), pa.string()),
    "text beyond Java's characters": (stats(STRING, "a", "\U0001f600"), pa.string()),
    "a decimal with more digits": (stats(DECIMAL, Decimal("1.255"), Decimal("2")), pa.decimal128(5, 2)),
    "a decimal that is too large": (stats(DECIMAL, Decimal("1"), Decimal("1000")), pa.decimal128(5, 2)),
    "a decimal whose scale is not said": (
        stats(BYTES, scaled("1", 2), scaled("2", 2), ordinal=10), pa.decimal128(5, 2),
    ),
    "an empty decimal": (stats(BYTES, b"", b""), pa.decimal128(5, 2)),
    "times of an unknown unit": (stats(LONG, 1_700_000_000_000, 1_700_000_000_001), US),
    "milliseconds before version 9": (stats(LONG, NOW, NOW), pa.timestamp("ms", "UTC")),
    "times of another unit": (stats(LONG, NOW, NOW, ordinal=15), US),
    "a list": (stats(INT, 1, 2), pa.list_(pa.int32())),
    "no record": (pa.nulls(1, stats(INT, 1, 2).type), pa.int32()),
}  # fmt: skip


@pytest.mark.parametrize("what", UNKNOWN)
def test_bounds_that_cannot_be_relied_on_are_null(what):
    found, kind = UNKNOWN[what]
    low, high = r.bounds(found, kind)
    assert (low.null_count, high.null_count) == (1, 1)
    assert low.type == high.type == kind


def test_bounds_of_a_slice_are_those_of_its_rows():
    both = pa.concat_arrays([stats(INT, 1, 2), stats(INT, 3, 4)])
    low, high = r.bounds(both.slice(1), pa.int32())
    assert (low.to_pylist(), high.to_pylist()) == ([3], [4])
    assert [len(side) for side in r.bounds(both.slice(2), pa.int32())] == [0, 0]


# Of a table of Apache Hudi 0.15.
@pytest.mark.parametrize(
    ("nulls", "size", "kind", "doubted"),
    [
        (0, 9000, pa.string(), False), (1, 9000, pa.string(), True), (None, 9000, pa.string(), True),
        (1, 4096, pa.string(), False), (1, 4097, pa.string(), True), (1, None, pa.string(), True),
        (1, 0, pa.string(), False), (1, 9000, pa.int64(), False), (0, 50, pa.float64(), True),
        (0, None, pa.float32(), True), (0, 0, pa.float64(), False),
    ],
)  # fmt: skip
def test_bounds_may_lack_long_texts_and_what_stands_beside_nan(nulls, size, kind, doubted):
    row = stats(STRING, "a", "b", nulls=nulls).to_pylist()[0] | {"totalUncompressedSize": size}
    found = pa.array([row], r.schema_of("column_stats").field("ColumnStatsMetadata").type)
    assert r.may_lack_values(found, kind).tolist() == [doubted]


def batch(partition, kind, payload, key="k"):
    schema = r.schema_of(partition)
    return pa.RecordBatch.from_pylist([{"key": key, "type": kind, schema.names[2]: payload}], schema)


def test_other_records_are_values():
    bloom = {"type": "SIMPLE", "timestamp": "1", "bloomFilter": b"AA==", "isDeleted": False}
    (found,) = r.bloom_filters(batch("bloom_filters", 4, bloom))
    assert found == r.BloomFilterRecord("k", "SIMPLE", b"AA==", "1", False)
    (second,) = r.secondary_entries(batch("secondary_index_x", 7, {"isDeleted": True}, r"a\$b$1"))
    assert second == r.SecondaryEntry("a$b", "1", True)
    with pytest.raises(ValueError, match="no partition"):
        r.schema_of("filez")
