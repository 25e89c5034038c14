"""Values of partition columns from paths."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_format.errors import PartitionPathError
from hudi_timeline.file_system_view.partition_values import (
    FROM_FILE,
    FROM_PATH,
    PARTITION,
    PartitionColumn,
    cast_text,
    partition_columns,
    partition_table,
    path_type,
    path_values,
)
from hudi_timeline.table_config import TableConfig


def columns(**types):
    return [PartitionColumn(n, FROM_PATH, t) for n, t in types.items()]


def values(path, **types):
    (row,) = partition_table([path], columns(**types)).to_pylist()
    assert row.pop(PARTITION) == path
    return row


@pytest.mark.parametrize(
    ("path", "types", "row"),
    [
        ("oslo", {"city": pa.string()}, {"city": "oslo"}),
        ("city=oslo", {"city": pa.string()}, {"city": "oslo"}),
        ("2024/03/05", {"day": pa.string()}, {"day": "2024/03/05"}),
        ("day=2024/03/05", {"day": pa.string()}, {"day": "2024/03/05"}),
        ("a%2Fb", {"city": pa.string()}, {"city": "a/b"}),
        ("__HIVE_DEFAULT_PARTITION__", {"n": pa.int32()}, {"n": None}),
        ("n=7/city=x", {"n": pa.int64(), "city": pa.string()}, {"n": 7, "city": "x"}),
        ("7/x", {"n": pa.int64(), "city": pa.string()}, {"n": 7, "city": "x"}),
        ("n=7/city=x/y", {"n": pa.int32(), "city": pa.string()}, {"n": 7, "city": "x/y"}),
        ("2020-02-29", {"d": pa.date32()}, {"d": date(2020, 2, 29)}),
        ("18321", {"d": pa.date32()}, {"d": date(2020, 2, 29)}),
        ("1.50", {"m": pa.decimal128(6, 2)}, {"m": Decimal("1.50")}),
        ("true", {"b": pa.bool_()}, {"b": True}),
        ("1.5", {"f": pa.float32()}, {"f": 1.5}),
    ],
)
def test_a_path_says_typed_values(path, types, row):
    assert values(path, **types) == row


@pytest.mark.parametrize(
    ("text", "day"),
    [("+10000-01-05", 2932901), ("-0221-09-04", -800000), ("9999-12-31", 2932896), ("0000-01-01", -719528)],
)
def test_a_date_of_any_year_is_what_java_writes(text, day):
    days = cast_text(pa.array([text, None, "1970-01-02"]), pa.date32())
    assert days.cast(pa.int32()).to_pylist() == [day, None, 1]


@pytest.mark.parametrize("text", ["+10000-13-05", "+9999-01-01", "10000-01-05", "-0221-09-04x"])
def test_a_date_that_java_does_not_write_is_no_date(text):
    with pytest.raises(pa.ArrowInvalid):
        cast_text(pa.array([text]), pa.date32())


def test_moments_near_1970_are_microseconds_and_four_digits_a_year():
    text = pa.array(["0", "-1", "999", "-1234", "12345", "2024"])
    micros = cast_text(text, pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    assert micros == [0, -1, 999, -1234, 12345, 1704067200000000]


def test_timestamps_are_text_or_microseconds():
    moment = datetime(2020, 1, 2, 3, 4, 5, 600000)
    text = pa.array(["2020-01-02 03:04:05.6", "1577934245600000", "2020-01-02T03:04:05.6", None])
    plain = cast_text(text, pa.timestamp("us")).to_pylist()
    assert plain == [moment, moment, moment, None]
    zoned = cast_text(text, pa.timestamp("us", "UTC")).to_pylist()
    assert zoned == [moment.replace(tzinfo=UTC)] * 3 + [None]


@pytest.mark.parametrize(
    ("path", "types"),
    [
        ("x", {"n": pa.int32()}),
        ("99999999999", {"n": pa.int32()}),
        ("n=7", {"n": pa.int32(), "m": pa.int32()}),
        ("1/2/3", {"n": pa.int32(), "m": pa.int32()}),
        ("soon", {"d": pa.date32()}),
        ("1E-999999999", {"n": pa.decimal128(9, 2)}),  # which ends the process in Arrow's cast
        ("1." + "1" * 80, {"n": pa.decimal128(9, 2)}),  # of which it makes another number
    ],
)
def test_a_path_that_is_no_partition_names_itself(path, types):
    good = "/".join("1" for _ in types) if "d" not in types else "2020-01-01"
    with pytest.raises(PartitionPathError) as e:
        partition_table([good, path], columns(**types), uri="/t")
    assert repr(path) in str(e.value)
    assert e.value.table == "/t"


def test_a_timestamp_key_generator_makes_text():
    config = TableConfig(
        {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}
    )
    assert path_type(config, pa.int64()) == pa.string()
    assert path_type(TableConfig({}), pa.int64()) == pa.int64()


def test_a_nested_partition_field_is_read_from_the_files():
    config = TableConfig({"hoodie.table.partition.fields": "address.city,day"})
    schema = pa.schema([("address", pa.struct([("city", pa.string())])), ("day", pa.int32())])
    nested, day = partition_columns(config, schema, from_path=True)
    assert (nested.source, day.source, day.type) == (FROM_FILE, FROM_PATH, pa.int32())
    (row,) = partition_table(["oslo/5"], [nested, day]).to_pylist()
    assert row == {PARTITION: "oslo/5", "day": 5}


def test_incremental_queries_take_every_value_from_the_files():
    config = TableConfig({"hoodie.table.partition.fields": "day"})
    (day,) = partition_columns(config, pa.schema([("day", pa.int32())]), from_path=False)
    assert day.source == FROM_FILE


def formatted(**types):
    return [PartitionColumn(n, FROM_PATH, t, formatted=True) for n, t in types.items()]


def test_what_a_path_does_not_say_is_named_and_null():
    paths = ["x/2024", "x/2024-01-01", "x/2024/01", "__HIVE_DEFAULT_PARTITION__/5", "y/n=6"]
    found = path_values(paths, formatted(c=pa.string(), n=pa.int64()), uri="/t")
    assert found.untold == {"x/2024-01-01": ("n",), "x/2024/01": ("c", "n")}
    assert found.table.column("c").to_pylist() == ["x", "x", None, None, "y"]
    assert found.table.column("n").to_pylist() == [2024, None, None, 5, 6]


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us")]
)
def test_formatted_times_are_never_those_of_paths(kind):
    (column,) = formatted(d=kind)
    assert not column.told_by_paths
    found = path_values(["2024-01-01", "19000", "__HIVE_DEFAULT_PARTITION__"], [column])
    assert [*found.untold.values()] == [("d",)] * 3
    assert found.table.column("d").null_count == 3


@pytest.mark.parametrize(
    ("generator", "more", "is_formatted"),
    [
        ("org.apache.hudi.keygen.CustomKeyGenerator", {}, True),
        ("CUSTOM", {}, True),
        ("com.acme.Keys", {}, True),
        ("org.apache.hudi.keygen.SimpleKeyGenerator", {}, False),
        ("COMPLEX_AVRO", {}, False),
        ("org.apache.hudi.keygen.TimestampBasedKeyGenerator", {}, False),
        ("CUSTOM", {"hoodie.datasource.write.drop.partition.columns": "true"}, False),
        ("CUSTOM", {"hoodie.table.bootstrap.base.path": "/b", "hoodie.bootstrap.base.path": "/b"}, False),
        ("", {}, False),
    ],
)
def test_other_forms_of_values_are_expected_of_generators_that_may_make_them(generator, more, is_formatted):
    given = {"hoodie.table.partition.fields": "n", "hoodie.table.keygenerator.class": generator, **more}
    (n,) = partition_columns(TableConfig(given), pa.schema([("n", pa.int64())]), from_path=True)
    assert (n.source, n.formatted, n.stored) == (FROM_PATH, is_formatted, not more)
    if not is_formatted and n.type == pa.int64():
        with pytest.raises(PartitionPathError, match="do not hold" if more else "not of type int64: ") as e:
            path_values(["2024-01-01"], [n])
        assert e.value.remedy
