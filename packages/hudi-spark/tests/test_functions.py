"""Hudi's functions in queries give what writes compute."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from hudi_format.errors import CorruptFileError, OptionError, RecordKeyError
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.ordered_keys import with_time_prefix
from hudi_format.keygen.record_keys import partition_paths, record_keys
from hudi_index.bloom.filter import BloomFilter
from hudi_index.hashing.java import bucket_ids
from hudi_index.hashing.java import java_hash as java_hash_of
from hudi_spark import functions as H

pytestmark = pytest.mark.spark

DDL = (
    "s string, i int, l long, b boolean, d date, t timestamp, n timestamp_ntz, p decimal(20,10), "
    "f float, x double, y binary, g struct<v:int>"
)
ROWS = [
    ("a b", 1, 1 << 40, True, date(2024, 2, 29), datetime(2024, 3, 5, 10, 0, 0, 123456), datetime(1969, 1, 1),
     Decimal("1.5"), 0.1, 1e-7, b"\x00\xff", (1,)),
    ("Ω/=", -1, None, False, date(1, 1, 1), datetime(1900, 1, 1, 0, 0, 0, 1), datetime(2200, 1, 1),
     Decimal("0.0000001"), -0.0, 1e300, b"", (2,)),
    (None,) * 12,
    ("", 0, 0, None, date(1969, 12, 31), None, None, Decimal(0), 1.0, 123456789.125, b"x", (None,)),
]  # fmt: skip
COLUMNS = ["s", "i", "l", "b", "d", "t", "n", "p", "f", "x", "y", "g.v"]


@pytest.fixture
def rows(spark):
    return spark.createDataFrame(ROWS, DDL)


def expected(to_arrow, rows, make):
    """What the kernel gives for each row by itself; None where it refuses it."""
    table = to_arrow(rows)
    out = []
    for n in range(table.num_rows):
        try:
            out.append(make(table.slice(n, 1))[0].as_py())
        except RecordKeyError:
            out.append(None)
    return out


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.sampled(4)
@pytest.mark.one_version
def test_a_record_key_of_any_type_is_that_of_a_write(rows, to_arrow, column):
    spec = KeySpec((column,), (), "NON_PARTITION")
    found = [r[0] for r in rows.select(H.record_key(column)).collect()]
    assert found == expected(to_arrow, rows, lambda t: record_keys(t, spec))


def test_a_record_key_of_several_columns(rows, to_arrow):
    spec = KeySpec(("s", "t", "l"), (), "NON_PARTITION")
    found = [r[0] for r in rows.select(H.record_key("s", "t", "l")).collect()]
    assert found == expected(to_arrow, rows, lambda t: record_keys(t, spec))
    assert found[2] is None


@pytest.mark.parametrize("style", [{}, {"hive_style": True}, {"hive_style": True, "url_encode": True}])
@pytest.mark.sampled(3)
def test_a_partition_path_is_that_of_a_write(spark, style):
    values = [("oslo", date(2024, 1, 1)), ("", None), ("b=c d", None)]
    frame = spark.createDataFrame(values, "city string, day date")
    spec = KeySpec(("_",), ("city", "day"), "COMPLEX", **style)
    table = pa.table({"city": [v[0] for v in values], "day": pa.array([v[1] for v in values], pa.date32())})
    found = [r[0] for r in frame.select(H.partition_path("city", "day", **style)).collect()]
    assert found == partition_paths(table, spec).to_pylist()


def test_hashes_and_buckets_are_java_s(spark):
    texts = ["", "a", "id:1,name:x", "Ω𝄞", None]
    frame = spark.createDataFrame([(t,) for t in texts], "k string")
    found = frame.select(H.java_hash("k"), H.bucket_id(F.col("k"), fields=["id"], num_buckets=7)).collect()
    array = pa.array(texts, pa.string())
    assert [r[0] for r in found] == java_hash_of(array).to_pylist()
    assert [r[1] for r in found] == bucket_ids(array, ["id"], 7).to_pylist()
    with pytest.raises(ValueError, match="bucket"):
        H.bucket_id("k", fields=["id"], num_buckets=0)


def test_a_footer_filter_tells_which_keys_may_be_there(spark):
    bloom = BloomFilter.create("DYNAMIC_V0", 100, 1e-9, 1000)
    bloom.add(pa.array([f"k{i}" for i in range(50)]))
    frame = spark.range(100).select(F.concat(F.lit("k"), F.col("id").cast("string")).alias("k"))
    may = frame.where(H.bloom_might_contain(bloom.to_base64(), "k", type_code="DYNAMIC_V0"))
    assert sorted(int(r.k[1:]) for r in may.collect()) == list(range(50))
    with pytest.raises(CorruptFileError):
        H.bloom_might_contain("not a filter", "k")


def test_the_functions_work_in_filters_groups_and_on_no_rows(spark, rows):
    assert rows.where("1 = 0").select(H.record_key("i")).collect() == []
    grouped = (
        spark.range(20).groupBy(H.bucket_id(F.col("id"), fields=["id"], num_buckets=4).alias("b")).count()
    )
    assert sum(r["count"] for r in grouped.collect()) == 20


def test_a_timestamp_key_does_not_depend_on_the_session_s_zone(spark):
    frame = spark.createDataFrame([(datetime(2024, 3, 5, 10, tzinfo=UTC),)], "t timestamp")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert frame.select(H.record_key("t")).collect()[0][0] == "1709632800000000"
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.req("KG-04")
def test_keys_that_grow_with_time_are_those_of_the_kernel(spark):
    moments = [datetime(2024, 5, 1, 12, 30, 1, 2345, UTC), datetime(1970, 1, 1, tzinfo=UTC), None]
    frame = spark.createDataFrame([(f"k{n}", m) for n, m in enumerate(moments)], "id string, at timestamp")
    got = [r[0] for r in frame.orderBy("id").select(H.time_ordered("id", "at")).collect()]
    wanted = with_time_prefix(pa.array(["k0", "k1", "k2"]), pa.array(moments, pa.timestamp("us", "UTC")))
    assert got == wanted.to_pylist()
    early = spark.sql("select 'k' as id, timestamp'1969-12-31 00:00:00' as at")
    assert early.select(H.time_ordered("id", "at")).first()[0] is None


WRONG = {
    "no field of a key": (lambda: H.record_key(), OptionError, "record_key is given no field"),
    "an empty field of a key": (lambda: H.record_key("s", ""), OptionError, "empty name"),
    "a column for a field": (lambda: H.record_key(F.col("s")), TypeError, "names of columns"),
    "no field of a path": (lambda: H.partition_path(), OptionError, "partition_path is given no field"),
    "no bucket": (lambda: H.bucket_id("s", fields=["s"], num_buckets=0), OptionError, "not 0"),
    "a text for a number": (
        lambda: H.bucket_id("s", fields=["s"], num_buckets="4"),
        TypeError,
        "must be a number",
    ),
    "no field of a bucket": (lambda: H.bucket_id("s", fields=[], num_buckets=4), OptionError, "no field"),
    "no field of a ring": (lambda: H.ring_hash("s", fields=[]), OptionError, "no field"),
    "a number for a column": (lambda: H.java_hash(3), TypeError, "a column or its name is wanted, not int"),
    "no filter": (lambda: H.bloom_might_contain("x", "s"), CorruptFileError, "not base64"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_refused_before_spark_runs_anything(spark, name):
    call, error, words = WRONG[name]
    with pytest.raises(error, match=words) as e:
        call()
    assert error is TypeError or e.value.remedy


@pytest.mark.one_version
def test_hash_fields_are_names_or_a_text_with_commas(spark):
    keys = spark.createDataFrame([(f"a:{n},b:{n % 7}",) for n in range(20)], "k string")
    for fields in ("b", "a,b"):
        of_text, of_names = (
            keys.select(H.bucket_id("k", fields=f, num_buckets=16), H.ring_hash("k", fields=f)).collect()
            for f in (fields, fields.split(","))
        )
        assert [tuple(r) for r in of_text] == [tuple(r) for r in of_names]
    assert len({tuple(r) for r in of_names}) > 7
