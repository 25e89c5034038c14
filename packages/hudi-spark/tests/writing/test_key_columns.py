"""Native keys and paths are those of hudi_format.keygen.record_keys; routing is Spark's own hash partitioning."""

import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.errors import RecordKeyError, SchemaError
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.partition_path import ESCAPED_CHARS
from hudi_format.keygen.record_keys import partition_paths, record_keys
from hudi_format.keygen.timestamp_based import BOTH_ZONES, OUTPUT, TYPE, UNIT, TimeSpec
from hudi_spark.types import to_arrow_schema, to_spark_schema
from hudi_spark.writing import key_columns
from hudi_spark.writing.bucket_partitioner import slots, spark_hash_int, spread
from hudi_timeline.writing.workers.tasks import CREATE, Bucket

pytestmark = pytest.mark.spark

DDL = (
    "s string, y tinyint, h smallint, i int, l long, b boolean, d date, t timestamp, p decimal(20,6), "
    "z binary, g struct<v:string>, `a.b` string, q decimal(20,10), x double, n timestamp_ntz"
)
ROWS = [
    ("a b/%=", 1, -2, 3, 1 << 62, True, date(2024, 2, 29), datetime(2024, 3, 5, 1, 2, 3, 4, UTC), Decimal("1.500000"),
     b"\x00\xfe", ("v",), "ab", Decimal(1), 1.0, datetime(2024, 1, 1)),
    ("Ω日本", -128, 32767, -(1 << 31), -(1 << 63), False, date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC),
     Decimal("-0.000001"), b"", ("",), "", Decimal(0), 0.5, datetime(1969, 1, 1)),
    ("", 0, 0, 0, 0, None, date(9999, 12, 31), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), Decimal(0), None,
     (None,), None, None, None, None),
    (None,) * 15,
]  # fmt: skip
NATIVE = ["s", "y", "h", "i", "l", "b", "d", "t", "p", "z", "g.v", "a.b"]
BY_ARROW = ["q", "x", "n"]


@pytest.fixture(scope="module")
def rows(session):
    return session.createDataFrame(ROWS, DDL).coalesce(1)


@pytest.fixture(scope="module")
def table(session, rows):
    frame = rows.toArrow() if hasattr(rows, "toArrow") else pa.Table.from_batches(rows._collect_as_arrow())
    return frame.cast(to_arrow_schema(rows.schema))


def keys_or_none(table, spec):
    out = []
    for n in range(table.num_rows):
        try:
            out.append(record_keys(table.slice(n, 1), spec)[0].as_py())
        except RecordKeyError:
            out.append(None)
    return out


@pytest.mark.parametrize("field", NATIVE)
@pytest.mark.sampled(4)
def test_a_native_key_is_the_kernel_s(spark, rows, table, field):
    spec = KeySpec((field,), (), "NON_PARTITION")
    column = key_columns.record_key(spec, rows.schema)
    assert [r[0] for r in rows.select(column).collect()] == keys_or_none(table, spec)


@pytest.mark.parametrize("fields", [("s", "i"), ("a.b", "g.v"), ("s", "d", "t", "b")])
def test_a_native_key_of_several_fields_is_the_kernel_s(spark, rows, table, fields):
    spec = KeySpec(fields, (), "NON_PARTITION")
    column = key_columns.record_key(spec, rows.schema)
    assert [r[0] for r in rows.select(column).collect()] == keys_or_none(table, spec)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize("fields", [("s",), ("i", "d"), ("g.v", "b", "p"), ("t",)])
def test_a_native_path_is_the_kernel_s(spark, rows, table, fields, hive, encode):
    spec = KeySpec(("s",), fields, "COMPLEX", hive, encode)
    column = key_columns.partition_path(spec, rows.schema)
    assert [r[0] for r in rows.select(column).collect()] == partition_paths(table, spec).to_pylist()


def test_every_character_is_escaped_as_the_kernel_does(spark):
    texts = (
        [f"a{c}b{c}%41" for c in ESCAPED_CHARS if c != "\x00"] + [chr(c) for c in range(1, 300)] + ["𝄞}~ é"]
    )
    texts = [t for t in texts if t not in (".",)]
    frame = spark.createDataFrame([(t,) for t in texts], "p string").coalesce(1)
    spec = KeySpec(("k",), ("p",), "SIMPLE", True, True)
    found = [r[0] for r in frame.select(key_columns.partition_path(spec, frame.schema)).collect()]
    assert found == partition_paths(pa.table({"p": texts}), spec).to_pylist()


@pytest.mark.parametrize("field", [*BY_ARROW, "nowhere"])
def test_types_that_spark_writes_otherwise_are_left_to_arrow(rows, field):
    assert key_columns.key_text(field, rows.schema) is None
    assert key_columns.record_key(KeySpec((field, "s"), (), "NON_PARTITION"), rows.schema) is None


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=50))
def test_the_hash_stays_within_an_int(values):
    assert all(-(2**31) <= spark_hash_int(v) < 2**31 for v in values)


def test_the_hash_is_spark_s(spark):
    values = [0, 1, -1, 42, 2**31 - 1, -(2**31), *range(1000, 1100)]
    frame = spark.createDataFrame([(v,) for v in values], "v int")
    assert [r[0] for r in frame.select(F.hash("v")).collect()] == [spark_hash_int(v) for v in values]


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_every_task_gets_exactly_its_own_rows(spark, n):
    numbers = slots(n)
    assert len(set(numbers)) == n
    frame = spark.createDataFrame([(s,) for s in numbers], "s int").repartition(n, "s")
    placed = {r.s: r.p for r in frame.select("s", F.spark_partition_id().alias("p")).collect()}
    assert [placed[s] for s in numbers] == list(range(n))


def test_buckets_are_spread_by_their_weight():
    buckets = [
        Bucket(n, "", CREATE, str(n), expected_rows=rows) for n, rows in enumerate([900, 300, 300, 300])
    ]
    assert spread(buckets, 1) == [0, 1, 1, 1]
    assert sorted(spread(buckets, 2)) == [0, 1, 2, 3]
    many = [Bucket(n, "", CREATE, str(n), expected_rows=1) for n in range(1000)]
    tasks = spread(many, 2)
    assert max(tasks) + 1 == 4
    assert max(tasks.count(t) for t in set(tasks)) == 250
    assert spread([], 2) == []
    assert max(spread(many, 2, 7)) + 1 == 7  # asked for
    assert max(spread(buckets, 2, 50)) + 1 == 4  # never more than buckets
    large = [Bucket(n, "", CREATE, str(n), expected_rows=1_000_000) for n in range(40)]
    assert max(spread(large, 2, 1)) + 1 == 40  # nor more for one task than it can take


def test_types_go_both_ways(rows):
    back = to_spark_schema(to_arrow_schema(rows.schema))
    assert back.simpleString() == rows.schema.simpleString()
    nested = T._parse_datatype_string("struct<a:array<map<string,struct<b:timestamp_ntz>>>>")
    assert to_spark_schema(to_arrow_schema(nested)) == nested


def test_types_that_no_table_stores_are_refused_by_column(spark):
    with pytest.raises(SchemaError, match="'v'") as e:
        to_arrow_schema(spark.sql("select interval 1 day as v").schema)
    assert e.value.remedy


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("null", pa.null()),
        ("array(null)", pa.list_(pa.field("element", pa.null()))),
        ("named_struct('a', null)", pa.struct([pa.field("a", pa.null())])),
    ],
)
def test_void_is_arrows_type_of_nulls_which_takes_the_tables_type(spark, sql, kind):
    assert to_arrow_schema(spark.sql(f"select {sql} as v").schema).field("v").type == kind


@pytest.mark.sampled(4, values=False)
@pytest.mark.req("KG-03")
@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize(
    ("unit", "pattern"),
    [
        ("EPOCHMILLISECONDS", "yyyy/MM/dd"),
        ("UNIX_TIMESTAMP", "yyyy-MM-dd HH"),
        ("EPOCHMILLISECONDS", "dd.MM.yyyy_HH:mm:ss"),
        ("DAYS", "yyyyMM"),
        ("HOURS", "yyyy/HH"),
    ],
)
def test_a_native_date_is_the_kernel_s(spark, unit, pattern, hive):
    kind = {"UNIX_TIMESTAMP": unit, "EPOCHMILLISECONDS": unit}.get(unit, "SCALAR")
    options = {TYPE: kind, OUTPUT: pattern, UNIT: unit, BOTH_ZONES: "UTC"}
    spec = KeySpec(
        ("v",), ("v",), "TIMESTAMP", hive, True,
        times=TimeSpec.from_options(options if kind == "SCALAR" else {**options, UNIT: ""}),
    )  # fmt: skip
    per_day = {"EPOCHMILLISECONDS": 86_400_000, "UNIX_TIMESTAMP": 86_400, "DAYS": 1, "HOURS": 24}[unit]
    rng = random.Random(3)
    edges = [-719162 * per_day, 2932897 * per_day - 1, 0, -1, 1, None]
    values = edges + [rng.randrange(-719162 * per_day, 2932896 * per_day) for _ in range(2000)]
    far = [-719162 * per_day - 1, 2932897 * per_day]
    frame = spark.createDataFrame([(v,) for v in (*values, *far)], "v long").coalesce(1)
    *found, before, after = (
        r[0] for r in frame.select(key_columns.partition_path(spec, frame.schema)).collect()
    )
    assert found == partition_paths(pa.table({"v": pa.array(values, pa.int64())}), spec).to_pylist()
    assert (before, after) == (None, None)


@pytest.mark.parametrize(
    "options",
    [
        {OUTPUT: "yy/MM"},
        {OUTPUT: "yyyy/MM/dd", BOTH_ZONES: "Europe/Oslo"},
        {OUTPUT: "EEE"},
        {OUTPUT: "yyyy'x'"},
    ],
)
def test_other_dates_are_left_to_the_kernels(spark, options):
    given = {TYPE: "EPOCHMILLISECONDS", BOTH_ZONES: "UTC", **options}
    spec = KeySpec(("v",), ("v",), "TIMESTAMP", times=TimeSpec.from_options(given))
    frame = spark.createDataFrame([(1,)], "v long")
    assert key_columns.partition_path(spec, frame.schema) is None
