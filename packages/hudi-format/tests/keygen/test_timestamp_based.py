"""Dates as partition values; the expected paths are those that Apache Hudi 0.15.0 wrote for the same rows."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_format.errors import InvalidOptionError, PartitionPathError, SchemaError, UnsupportedError
from hudi_format.keygen import timestamp_based
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import made_up_keys, partition_paths, record_keys, with_instant
from hudi_format.keygen.timestamp_based import (
    BOTH_ZONES,
    CONSISTENT,
    DELIMITER,
    INPUT,
    INPUT_ZONE,
    OUTPUT,
    OUTPUT_ZONE,
    PARSER_CLASS,
    TYPE,
    UNIT,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")


def spec(
    kind="EPOCHMILLISECONDS", *, name="TimestampBasedKeyGenerator", fields=("p",), keys=("id",), **options
):
    hive, encode = options.pop("hive", False), options.pop("encode", False)
    given = {TYPE: kind, OUTPUT: "yyyy/MM/dd HH"} | {k.replace("__", "."): v for k, v in options.items()}
    return KeySpec.from_class(
        name, key_fields=keys, partition_fields=fields, hive_style=hive, url_encode=encode, options=given
    )


def later(*arguments, **options):
    """A spec that is made in the test: when tests are collected, the zone is still the machine's."""
    return lambda: spec(*arguments, **options)


def paths(column, made):
    return partition_paths(pa.table({"p": column}), made).to_pylist()


def longs(*values):
    return pa.array(values, pa.int64())


UNIX = ["2024/03/05 10", "1969/12/31 23", "1970/01/01 00"]
DAYS = ["2024/02/29 00", "1969/12/31 00", "1970/01/02 00"]


@pytest.mark.req("KG-03")
@pytest.mark.parametrize(
    ("column", "made", "want"),
    [
        (longs(1709632800, -1, None), later("UNIX_TIMESTAMP"), UNIX),
        (longs(1709632800123, -1, None), later(), UNIX),
        (longs(1709632800, -1, None), later("SCALAR"), UNIX),
        (longs(19787, -1, None), later("SCALAR", **{UNIT: "days"}), ["2024/03/05 00", *DAYS[1:]]),
        (pa.array([date(2024, 2, 29), date(1969, 12, 31), None]), later("SCALAR", **{UNIT: "DAYS"}), DAYS),
        (pa.array([date(2024, 2, 29), None]), later("UNIX_TIMESTAMP"), ["1970/01/01 05", "1970/01/01 00"]),
        (pa.array([1709632800.9, -1.9, None]), later("UNIX_TIMESTAMP"), UNIX),
        (pa.array([1709632800, -1, None], pa.int32()), later("UNIX_TIMESTAMP"), UNIX),
        (pa.array([Decimal("1709632800.90"), Decimal("-1.90"), None]), later("UNIX_TIMESTAMP"), UNIX),
        (longs(1709632800123, -1, None), later(**{BOTH_ZONES: "GMT+8:00"}),
         ["2024/03/05 18", "1970/01/01 07", "1970/01/01 08"]),
        (longs(1709632800123, -1, None), later(**{OUTPUT_ZONE: "America/New_York"}),
         ["2024/03/05 05", "1969/12/31 18", "1969/12/31 19"]),
        (longs(1709632800123), later(hive=True, encode=True), ["p=2024%2F03%2F05 10"]),
        (["2024-02-29", "1969-12-31", None], later("MIXED", **{INPUT: "yyyy-MM-dd"}), [*DAYS[:2], "1970/01/01 00"]),
        (["2024-02-29T01:02:03Z", "2024-02-29 05:06:07", None],
         later("DATE_STRING", **{INPUT: "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd HH:mm:ss"}),
         ["2024/02/29 01", "2024/02/29 05", "1970/01/01 00"]),
        (["2024-02-29T01:02:03+0530", "2024-02-29 05:06:07", None],
         later("DATE_STRING", **{INPUT: "yyyy-MM-dd'T'HH:mm:ssZ;yyyy-MM-dd HH:mm:ss", DELIMITER: ";"}),
         ["2024/02/29 01", "2024/02/29 05", "1970/01/01 00"]),
        (["2024-02-29 20:02:03", "1969-12-31 01:00:00", None],
         later("DATE_STRING", **{INPUT: "yyyy-MM-dd HH:mm:ss", OUTPUT_ZONE: "Asia/Tokyo", INPUT_ZONE: "GMT+1:00"}),
         ["2024/03/01 04", "1969/12/31 09", "1970/01/01 09"]),
        (pa.array([datetime(2024, 2, 29, 1, 2, 3, 456789, UTC), datetime(1969, 1, 1, tzinfo=UTC), None]),
         later(**{CONSISTENT: "true"}), ["2024/02/29 01", "1969/01/01 00", "1970/01/01 00"]),
        (pa.array([datetime(2024, 2, 29, 1, 2, 3, 456789, UTC), None]),
         later("SCALAR", **{UNIT: "MICROSECONDS"}), ["2024/02/29 01", "1970/01/01 00"]),
    ],
)  # fmt: skip
def test_a_date_becomes_the_path_that_apache_hudi_writes(column, made, want):
    assert paths(column, made()) == want


@pytest.mark.req("KG-03")
def test_made_up_keys_count_the_rows_of_a_task():
    keys = made_up_keys("", 3, range(8, 10))
    assert keys.to_pylist() == ["_3_8", "_3_9"]
    assert with_instant(pa.chunked_array([keys, pa.array(["2024_0_1"])]), "2025").to_pylist() == [
        "2025_3_8", "2025_3_9", "2024_0_1",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="generated"):
        record_keys(pa.table({"id": ["x"]}), KeySpec((), (), "NON_PARTITION"))


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({TYPE: ""}, InvalidOptionError, TYPE),
        ({TYPE: "EPOCHMICROSECONDS"}, UnsupportedError, TYPE),
        ({OUTPUT: ""}, InvalidOptionError, OUTPUT),
        ({OUTPUT: "yyyyMMuu"}, InvalidOptionError, OUTPUT),
        ({TYPE: "DATE_STRING"}, InvalidOptionError, INPUT),
        ({TYPE: "DATE_STRING", INPUT: "yyyy", DELIMITER: "("}, InvalidOptionError, DELIMITER),
        ({TYPE: "SCALAR", UNIT: "fortnights"}, InvalidOptionError, UNIT),
        ({BOTH_ZONES: "Mars/Olympus"}, InvalidOptionError, INPUT_ZONE),
        ({OUTPUT_ZONE: "+05:30"}, InvalidOptionError, OUTPUT_ZONE),
        ({PARSER_CLASS: "com.acme.Parser"}, UnsupportedError, PARSER_CLASS),
    ],
)
def test_settings_that_make_no_date_are_refused_by_option(options, error, named):
    with pytest.raises(error) as e:
        spec(options.get(TYPE, "EPOCHMILLISECONDS"), **{k: v for k, v in options.items() if k != TYPE})
    assert e.value.details["option"] == named
    assert e.value.remedy


@pytest.mark.parametrize(
    ("column", "made", "error", "words"),
    [
        (["2024-02-29", "nonsense"], spec("DATE_STRING", **{INPUT: "yyyy-MM-dd"}), PartitionPathError, "e.*row 1"),
        ([""], spec("DATE_STRING", **{INPUT: "yyyy-MM-dd"}), PartitionPathError, "none of the patterns"),
        (["2023-02-29"], spec("DATE_STRING", **{INPUT: "yyyy-MM-dd"}), PartitionPathError, "is not a date"),
        (["2024-03-31 02:30"], spec("DATE_STRING", **{INPUT: "yyyy-MM-dd HH:mm", INPUT_ZONE: "Europe/Oslo"}),
         PartitionPathError, "skip that time"),
        (["1709632800"], spec("UNIX_TIMESTAMP"), SchemaError, "is text"),
        (longs(1), spec("MIXED", **{INPUT: "yyyy"}), SchemaError, "says text"),
        (pa.array([True]), spec(), SchemaError, "has no date"),
        (pa.array([datetime(2024, 1, 1, tzinfo=UTC)]), spec(), SchemaError, "consistent.logical.timestamp"),
        (longs(2**62), spec("UNIX_TIMESTAMP"), PartitionPathError, "outside the supported years"),
        (pa.array([1e300]), spec("UNIX_TIMESTAMP"), PartitionPathError, "'p'"),
        (pa.array([b"x"]), spec(), SchemaError, "binary"),
    ],
)  # fmt: skip
def test_values_that_are_no_dates_are_refused(column, made, error, words):
    with pytest.raises(error, match=words) as e:
        paths(column, made)
    assert e.value.remedy


def test_a_binary_partition_column_is_refused():
    with pytest.raises(SchemaError, match="binary"):
        partition_paths(pa.table({"p": [b"x"]}), KeySpec(("a",), ("p",), "SIMPLE"))


def test_the_options_that_hoodie_properties_keeps_are_all_but_the_type():
    assert set(timestamp_based.OPTIONS) - set(timestamp_based.STORED) == {TYPE}
